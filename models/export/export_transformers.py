#!/usr/bin/env python3
"""Exports networks of Hugging Face and PyTorch, with what they compute, as ONNX test cases.

    python3 models/export/export_transformers.py FOLDER
    for case in FOLDER/*/; do isomer-run --test_data=$case; done

Needs torch, transformers, onnx and onnxscript. Small weights, real structure; both exporters, where
both export the network. Each case is FOLDER/NETWORK_EXPORTER with model.onnx, input_0.pb and
output_0.pb, which is PyTorch's own.
"""
import pathlib
import sys

import torch
import transformers
from onnx import numpy_helper

SEQUENCE = 8
VOCABULARY = 64


class FirstOutput(torch.nn.Module):
    """The first output alone, without a cache of keys."""

    def __init__(self, network, **options):
        super().__init__()
        self.network = network
        self.options = options

    def forward(self, tokens):
        return self.network(tokens, **self.options)[0]


def networks():
    """Names, modules and inputs."""
    tokens = torch.randint(0, VOCABULARY, (2, SEQUENCE))
    yield "llama", FirstOutput(transformers.LlamaForCausalLM(transformers.LlamaConfig(
        vocab_size=VOCABULARY, hidden_size=32, intermediate_size=48, num_hidden_layers=2,
        num_attention_heads=4, num_key_value_heads=2, max_position_embeddings=64)),
        use_cache=False), tokens
    yield "gpt2", FirstOutput(transformers.GPT2LMHeadModel(transformers.GPT2Config(
        vocab_size=VOCABULARY, n_embd=32, n_layer=2, n_head=4, n_positions=16)),
        use_cache=False), tokens
    yield "bert", FirstOutput(transformers.BertModel(transformers.BertConfig(
        vocab_size=VOCABULARY, hidden_size=32, num_hidden_layers=2, num_attention_heads=4,
        intermediate_size=48, max_position_embeddings=16))), tokens
    layer = torch.nn.TransformerEncoderLayer(32, 4, 64, batch_first=True)
    yield "encoder", torch.nn.TransformerEncoder(
        layer, 2, enable_nested_tensor=False), torch.randn(2, SEQUENCE, 32)


def export(folder, module, example, dynamo):
    """Writes one case; the exporter's own error where it cannot export the network."""
    folder.mkdir(parents=True, exist_ok=True)
    options = {"dynamo": True, "external_data": False} if dynamo else {
        "dynamo": False, "opset_version": 17}
    torch.onnx.export(module, (example,), str(folder / "model.onnx"), input_names=["input"],
                      output_names=["output"], **options)
    for name, kind, value in (("input_0", "input", example),
                              ("output_0", "output", module(example).detach())):
        tensor = numpy_helper.from_array(value.numpy(), kind)
        (folder / f"{name}.pb").write_bytes(tensor.SerializeToString())


def main():
    torch.manual_seed(0)
    root = pathlib.Path(sys.argv[1])
    for name, module, example in networks():
        module.eval()
        for exporter in ("dynamo", "legacy"):
            folder = root / f"{name}_{exporter}"
            try:
                export(folder, module, example, exporter == "dynamo")
                print(f"{folder}: exported")
            except Exception as error:  # pylint: disable=broad-except
                for path in folder.iterdir():
                    path.unlink()
                folder.rmdir()
                print(f"{folder}: not exported: {str(error).splitlines()[0]}")


if __name__ == "__main__":
    main()
