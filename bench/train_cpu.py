#!/usr/bin/env python3
"""A training step of PyTorch on CPU cores, for bench/train_cpu.sh: prints its median in milliseconds.

    python3 bench/train_cpu.py NETWORK THREADS eager|channels_last|compile [STEPS]

Networks and sizes are those of the zoo's settings in train_cpu.sh; stochastic gradient descent,
float32, random data, no dropout. Needs torch, and transformers or torchvision for some.
"""
import statistics
import sys
import time

import torch
from torch import nn
from torch.nn import functional


class Perceptron(nn.Module):
    def __init__(self):
        super().__init__()
        layers = []
        for layer in range(4):
            layers += [nn.Linear(2048, 2048)] + ([nn.ReLU()] if layer < 3 else [])
        self.layers = nn.Sequential(*layers)

    def forward(self, features, labels):
        return functional.cross_entropy(self.layers(features), labels)


class MaskedLanguage(nn.Module):
    def __init__(self):
        super().__init__()
        import transformers
        config = transformers.BertConfig(
            num_hidden_layers=12, hidden_size=768, num_attention_heads=12, intermediate_size=3072,
            hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0)
        self.network = transformers.BertForMaskedLM(config)

    def forward(self, tokens, labels):
        logits = self.network(tokens).logits
        return functional.cross_entropy(logits.flatten(0, 1), labels.flatten())


class Decoder(nn.Module):
    def __init__(self):
        super().__init__()
        import transformers
        config = transformers.GPT2Config(n_layer=12, n_embd=768, n_head=12, n_positions=128,
                                         resid_pdrop=0.0, embd_pdrop=0.0, attn_pdrop=0.0)
        self.network = transformers.GPT2LMHeadModel(config)

    def forward(self, tokens, labels):
        logits = self.network(tokens, use_cache=False).logits
        return functional.cross_entropy(logits.flatten(0, 1), labels.flatten())


class Recurrent(nn.Module):
    def __init__(self):
        super().__init__()
        self.words = nn.Embedding(10000, 650)
        self.lstm = nn.LSTM(650, 650, num_layers=2)
        self.logits = nn.Linear(650, 10000)

    def forward(self, words, labels):
        states, _ = self.lstm(self.words(words))
        return functional.cross_entropy(self.logits(states).flatten(0, 1), labels.flatten())


class Recommendation(nn.Module):
    def __init__(self):
        super().__init__()
        self.tables = nn.ModuleList(nn.EmbeddingBag(100000, 64, mode="sum") for _ in range(8))
        self.bottom = self.dense([64, 512, 512, 64])
        self.top = self.dense([576, 1024, 1024, 1024, 1])

    @staticmethod
    def dense(sizes):
        layers = []
        for size, following in zip(sizes, sizes[1:]):
            layers += [nn.Linear(size, following, bias=False), nn.ReLU()]
        return nn.Sequential(*layers[:-1])

    def forward(self, dense, indices, target):
        found = [table(indices[:, t:t + 1]) for t, table in enumerate(self.tables)]
        return functional.mse_loss(self.top(torch.cat([self.bottom(dense)] + found, 1)), target)


class Convolutional(nn.Module):
    def __init__(self):
        super().__init__()
        import torchvision
        self.network = torchvision.models.resnext50_32x4d()

    def forward(self, images, labels):
        return functional.cross_entropy(self.network(images), labels)


NETWORKS = {
    "mlp": (Perceptron, lambda: (torch.randn(64, 2048), torch.randint(2048, (64,)))),
    "bert_base": (MaskedLanguage,
                  lambda: (torch.randint(30522, (2, 128)), torch.randint(30522, (2, 128)))),
    "gpt": (Decoder, lambda: (torch.randint(50257, (2, 128)), torch.randint(50257, (2, 128)))),
    "lstm": (Recurrent, lambda: (torch.randint(10000, (35, 20)), torch.randint(10000, (35, 20)))),
    "dlrm": (Recommendation, lambda: (torch.randn(512, 64), torch.randint(100000, (512, 8)),
                                      torch.randn(512, 1))),
    "resnext50": (Convolutional,
                  lambda: (torch.randn(8, 3, 224, 224), torch.randint(1000, (8,)))),
}


def main():
    name, threads, how = sys.argv[1], int(sys.argv[2]), sys.argv[3]
    steps = int(sys.argv[4]) if len(sys.argv) > 4 else 9
    torch.set_num_threads(threads)
    torch.manual_seed(1)
    make, draw = NETWORKS[name]
    network, inputs = make().train(), draw()
    if how == "channels_last":
        network = network.to(memory_format=torch.channels_last)
        inputs = tuple(x.contiguous(memory_format=torch.channels_last) if x.dim() == 4 else x
                       for x in inputs)
    optimizer = torch.optim.SGD(network.parameters(), lr=0.01)
    loss_of = torch.compile(network) if how == "compile" else network
    times = []
    for _ in range(steps + 2):
        begin = time.perf_counter()
        optimizer.zero_grad(set_to_none=True)
        loss_of(*inputs).backward()
        optimizer.step()
        times.append(time.perf_counter() - begin)
    print(f"{1e3 * statistics.median(times[2:]):.2f}")


main()
