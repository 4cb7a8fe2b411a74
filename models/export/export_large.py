#!/usr/bin/env python3
"""Exports a large network without having its weights, as the dynamo exporter writes it.

    python3 models/export/export_large.py FOLDER [--model=llama_70b|llama_8b|gpt2] [--layers=N]

FOLDER/model.onnx is the graph; FOLDER/weights.bin holds the weights in float32 (282 GB of the
largest), of which the disk keeps next to nothing: all but the first few numbers of each are a hole
of the file.

Needs torch, transformers, onnx and onnxscript, and a file system that has sparse files.
"""
import argparse
import pathlib
import struct

import torch
import transformers
from onnxscript import ir

ALIGNMENT, FEW = 4096, 65536


class Logits(torch.nn.Module):
    """The first output alone."""

    def __init__(self, network):
        super().__init__()
        self.network = network

    def forward(self, tokens):
        return self.network(tokens, use_cache=False)[0]


def llama(layers, hidden, intermediate, heads):
    """Llama 3 (Grattafiori et al. 2024, table 3) whose weights have no values."""
    config = transformers.LlamaConfig(
        vocab_size=128256, hidden_size=hidden, intermediate_size=intermediate,
        num_hidden_layers=layers, num_attention_heads=heads, num_key_value_heads=8,
        max_position_embeddings=8192, rope_theta=500000.0)
    with torch.device("meta"):
        network = Logits(transformers.LlamaForCausalLM(config).eval())
    for module in network.modules():
        if hasattr(module, "inv_freq"):  # Of the rotation: no parameter, and made at once.
            width = config.hidden_size // config.num_attention_heads
            powers = torch.arange(0, width, 2, dtype=torch.float32) / width
            module.inv_freq = 1 / config.rope_parameters["rope_theta"] ** powers
    return network


def gpt2(layers):
    """GPT-2 of 124 million parameters (Radford et al. 2019, table 2)."""
    with torch.device("meta"):
        return Logits(transformers.GPT2LMHeadModel(transformers.GPT2Config(n_layer=layers)).eval())


# The network, its layers, and how many tokens of how many samples it is exported for.
MODELS = {
    "llama_70b": (lambda layers: llama(layers, 8192, 28672, 64), 80, (16, 4096)),
    "llama_8b": (lambda layers: llama(layers, 4096, 14336, 32), 32, (256, 8192)),
    "gpt2": (gpt2, 12, (64, 1024)),
}


def store(model, folder):
    """Moves the initializers to a file of holes, but for the small ones."""
    numbers = torch.Generator().manual_seed(1)
    offset = 0
    with open(folder / "weights.bin", "wb") as file:
        for name, value in model.graph.initializers.items():
            tensor = value.const_value
            first = torch.randn(min(tensor.size, FEW), generator=numbers) * 0.02
            if tensor.size < FEW:
                if torch.device("meta") == getattr(tensor.raw, "device", None):
                    value.const_value = ir.tensor(first.reshape(tuple(tensor.shape)).numpy(),
                                                  name=name)
                continue
            file.seek(offset)
            file.write(struct.pack("<64f", *first[:64]))
            size = int(tensor.size * tensor.dtype.itemsize)
            value.const_value = ir.ExternalTensor("weights.bin", offset, size, tensor.dtype,
                                                  shape=tensor.shape, name=name, base_dir=folder)
            offset += -(-size // ALIGNMENT) * ALIGNMENT
        file.truncate(offset)
    return offset


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--model", choices=MODELS, default="llama_70b")
    parser.add_argument("--layers", type=int)
    arguments = parser.parse_args()
    arguments.folder.mkdir(parents=True, exist_ok=True)
    network, layers, sizes = MODELS[arguments.model]
    tokens = torch.zeros(sizes, dtype=torch.int64, device="meta")
    program = torch.export.export(network(arguments.layers or layers), (tokens,), strict=False)
    model = torch.onnx.export(program, (tokens,), dynamo=True, optimize=False,
                              input_names=["tokens"], output_names=["logits"]).model
    size = store(model, arguments.folder)
    ir.save(model, arguments.folder / "model.onnx")
    print(f"{arguments.folder}: {size / 1e9:.1f} GB of weights")


if __name__ == "__main__":
    main()
