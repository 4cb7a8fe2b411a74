#!/usr/bin/env python3
"""Exports a Llama of 70 billion parameters without having it, as the dynamo exporter writes it.

    python3 models/export/export_large.py FOLDER [--layers=80]

FOLDER/model.onnx is the graph; FOLDER/weights.bin holds the weights in float32, 282 GB, of which
the disk keeps next to nothing: all but the first few numbers of each are a hole of the file.

Needs torch, transformers, onnx and onnxscript, and a file system that has sparse files.
"""
import argparse
import pathlib
import struct

import torch
import transformers
from onnxscript import ir

BATCH, TOKENS, ALIGNMENT, FEW = 16, 4096, 4096, 65536


class Logits(torch.nn.Module):
    """The first output alone."""

    def __init__(self, network):
        super().__init__()
        self.network = network

    def forward(self, tokens):
        return self.network(tokens, use_cache=False)[0]


def llama(layers):
    """Llama 3 70B (Grattafiori et al. 2024, table 3) whose weights have no values."""
    config = transformers.LlamaConfig(
        vocab_size=128256, hidden_size=8192, intermediate_size=28672, num_hidden_layers=layers,
        num_attention_heads=64, num_key_value_heads=8, max_position_embeddings=8192,
        rope_theta=500000.0)
    with torch.device("meta"):
        network = Logits(transformers.LlamaForCausalLM(config).eval())
    for module in network.modules():
        if hasattr(module, "inv_freq"):  # Of the rotation: no parameter, and made at once.
            width = config.hidden_size // config.num_attention_heads
            powers = torch.arange(0, width, 2, dtype=torch.float32) / width
            module.inv_freq = 1 / config.rope_parameters["rope_theta"] ** powers
    return network


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
    parser.add_argument("--layers", type=int, default=80)
    arguments = parser.parse_args()
    arguments.folder.mkdir(parents=True, exist_ok=True)
    tokens = torch.zeros((BATCH, TOKENS), dtype=torch.int64, device="meta")
    program = torch.export.export(llama(arguments.layers), (tokens,), strict=False)
    model = torch.onnx.export(program, (tokens,), dynamo=True, optimize=False,
                              input_names=["tokens"], output_names=["logits"]).model
    size = store(model, arguments.folder)
    ir.save(model, arguments.folder / "model.onnx")
    print(f"{arguments.folder}: {size / 1e9:.1f} GB of weights")


if __name__ == "__main__":
    main()
