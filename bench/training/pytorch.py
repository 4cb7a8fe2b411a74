#!/usr/bin/env python3
"""A network in PyTorch, exported with its initial weights, and what PyTorch trains of it.

    VENV/bin/python bench/training/pytorch.py gpt|lstm SEED FOLDER [JSON]

writes FOLDER/NETWORK.seedSEED.onnx, and into JSON, as isomer-run does, the losses of 300 steps of
PyTorch on the rows of FOLDER/train.bin in their order, and the loss on test.bin (train.py writes both). Needs torch, onnx and onnxscript.
"""
import array
import json
import math
import sys

import torch
from torch import nn
from torch.nn import functional

STEPS, WARMUP, CLIP = 300, 30, 1.0
VOCABULARY = 256


class Block(nn.Module):
    def __init__(self, hidden, heads):
        super().__init__()
        self.heads = heads
        self.norm1, self.norm2 = nn.LayerNorm(hidden), nn.LayerNorm(hidden)
        self.qkv, self.projection = nn.Linear(hidden, 3 * hidden), nn.Linear(hidden, hidden)
        self.wide, self.narrow = nn.Linear(hidden, 4 * hidden), nn.Linear(4 * hidden, hidden)

    def forward(self, x):
        batch, seq, hidden = x.shape
        parts = self.qkv(self.norm1(x)).split(hidden, dim=2)
        q, k, v = (part.view(batch, seq, self.heads, -1).transpose(1, 2) for part in parts)
        y = functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.projection(y.transpose(1, 2).reshape(batch, seq, hidden))
        return x + self.narrow(functional.gelu(self.wide(self.norm2(x))))


class Gpt(nn.Module):
    """As GPT-2: norms before, one table for embedding and logits; 9,951,360 parameters; no dropout."""

    def __init__(self, layers=8, hidden=320, heads=8, seq=16):
        super().__init__()
        self.tokens, self.positions = nn.Embedding(VOCABULARY, hidden), nn.Embedding(seq, hidden)
        self.blocks = nn.ModuleList(Block(hidden, heads) for _ in range(layers))
        self.norm = nn.LayerNorm(hidden)
        self.logits = nn.Linear(hidden, VOCABULARY, bias=False)
        self.logits.weight = self.tokens.weight
        for name, parameter in self.named_parameters():
            if parameter.dim() == 2:
                residual = name.endswith(("projection.weight", "narrow.weight"))
                nn.init.normal_(parameter, std=0.02 / math.sqrt(2 * layers) if residual else 0.02)
            elif name.endswith("bias"):
                nn.init.zeros_(parameter)

    def forward(self, ids):
        x = self.tokens(ids) + self.positions(torch.arange(ids.shape[1]))
        for block in self.blocks:
            x = block(x)
        return self.logits(self.norm(x)).flatten(0, 1)


class Lstm(nn.Module):
    def __init__(self, hidden=128, layers=2):
        super().__init__()
        self.tokens = nn.Embedding(VOCABULARY, hidden)
        self.lstm = nn.LSTM(hidden, hidden, layers, batch_first=True)
        self.logits = nn.Linear(hidden, VOCABULARY)

    def forward(self, ids):
        return self.logits(self.lstm(self.tokens(ids))[0]).flatten(0, 1)


# The network, samples of a step, their tokens, the peak of the rate, the decay of weights.
NETWORKS = {"gpt": (Gpt, 8, 16, 6e-4, 0.1), "lstm": (Lstm, 16, 32, 1e-3, 0.0)}


def batches_of(path, batch, seq):
    """Inputs and next tokens of whole batches, in the order of the file."""
    tokens = array.array("H")
    with open(path, "rb") as file:
        tokens.frombytes(file.read())
    stream = torch.tensor(tokens.tolist())
    rows = (len(stream) - 1) // seq
    inputs = stream[: rows * seq].view(rows, seq)
    labels = stream[1 : rows * seq + 1].view(rows, seq)
    for at in range(0, rows - batch + 1, batch):
        yield inputs[at : at + batch], labels[at : at + batch].flatten()


def rate_of(step, peak):
    if step < WARMUP:
        return peak * (step + 1) / WARMUP
    return peak * (1 + math.cos(math.pi * (step - WARMUP) / (STEPS - WARMUP))) / 2


def train(network, folder, batch, seq, peak, decay):
    """AdamW, which decays weights of two and more dims, warm-up, cosine, clipping."""
    decays = [p for p in network.parameters() if p.dim() >= 2]
    others = [p for p in network.parameters() if p.dim() < 2]
    optimizer = torch.optim.AdamW([{"params": decays, "weight_decay": decay},
                                   {"params": others, "weight_decay": 0.0}])
    losses = []
    for step, (ids, labels) in zip(range(STEPS), batches_of(f"{folder}/train.bin", batch, seq)):
        for group in optimizer.param_groups:
            group["lr"] = rate_of(step, peak)
        loss = functional.cross_entropy(network(ids), labels)
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(network.parameters(), CLIP)
        optimizer.step()
        losses.append(loss.item())
    with torch.no_grad():
        test = [(functional.cross_entropy(logits, labels).item(), (logits.argmax(1) == labels).float().mean().item())
                for ids, labels in batches_of(f"{folder}/test.bin", batch, seq) for logits in [network(ids)]]
    metrics = {"test_loss": sum(t[0] for t in test) / len(test), "test_accuracy": sum(t[1] for t in test) / len(test)}
    return {"loss": losses, "metrics": metrics}


def main(name, seed, folder, out=None):
    torch.set_num_threads(1)
    torch.manual_seed(int(seed))
    kind, batch, seq, peak, decay = NETWORKS[name]
    network = kind()
    ids = torch.zeros(batch, seq, dtype=torch.int64)
    # Without optimize=False weights lose their names, and tied ones may come apart.
    torch.onnx.export(network, (ids,), f"{folder}/{name}.seed{seed}.onnx", input_names=["ids"], output_names=["logits"],
                      dynamo=True, optimize=False, external_data=False)
    if out:
        summary = train(network, folder, batch, seq, peak, decay)
        with open(out, "w") as file:
            json.dump(summary, file)


if __name__ == "__main__":
    main(*sys.argv[1:])
