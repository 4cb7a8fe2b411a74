#!/usr/bin/env python3
"""Exports networks of Hugging Face, torchvision and PyTorch as ONNX files that people have.

    python3 models/export/export_transformers.py FOLDER [--wide] [NETWORK...]

Real structure at small sizes, by both exporters, where both export the network. Each file is
FOLDER/NETWORK_EXPORTER/model.onnx with input_N.pb, output_0.pb, which is PyTorch's own, target_0.pb
and a gradient_N.pb for each parameter that the file still has: those of the mean square of
output_0 - target_0, by PyTorch's autograd in float64. scripts/check_exports.sh compares them all.

Parameters are not as modules initialise them, but as training leaves them: no two are equal, no
bias is zero.

--wide exports for planning instead: two layers of the widths of published networks, without
anything expected and with parameters as they are initialised, of which exporters make one where
they are equal. bench/exports.sh plans them beside the zoo's.

Needs torch, torchvision, transformers, onnx and onnxscript.
"""
import argparse
import copy
import dataclasses
import pathlib
import shutil

import onnx
import torch
import torchvision
import transformers
from onnx import numpy_helper


@dataclasses.dataclass
class Sizes:
    """Of one layer of a network of tokens, and of images."""
    batch: int
    tokens: int
    vocabulary: int
    width: int
    heads: int
    key_heads: int
    hidden: int
    image: int
    patch: int
    classes: int
    layers: int = 2


SMALL = Sizes(batch=2, tokens=8, vocabulary=64, width=32, heads=4, key_heads=2, hidden=48,
              image=32, patch=8, classes=10)
WIDE = Sizes(batch=16, tokens=1024, vocabulary=8192, width=1024, heads=16, key_heads=4,
             hidden=4096, image=224, patch=16, classes=1000)


class FirstOutput(torch.nn.Module):
    """The first output alone."""

    def __init__(self, network, **options):
        super().__init__()
        self.network = network
        self.options = options

    def forward(self, *inputs):
        output = self.network(*inputs, **self.options)
        return output if torch.is_tensor(output) else output[0]


class Translation(torch.nn.Module):
    """An encoder and a decoder of T5."""

    def __init__(self, network):
        super().__init__()
        self.network = network

    def forward(self, tokens, target):
        return self.network(input_ids=tokens, decoder_input_ids=target, use_cache=False)[0]


class Recommendation(torch.nn.Module):
    """DLRM: tables looked up, dense features by layers, their pairwise products, layers."""

    def __init__(self, rows, width, tables, dense, hidden):
        super().__init__()
        self.tables = torch.nn.ModuleList(
            torch.nn.Embedding(rows, width) for _ in range(tables))
        self.bottom = torch.nn.Sequential(torch.nn.Linear(dense, hidden), torch.nn.ReLU(),
                                          torch.nn.Linear(hidden, width), torch.nn.ReLU())
        pairs = tables * (tables + 1) // 2
        self.top = torch.nn.Sequential(torch.nn.Linear(width + pairs, hidden), torch.nn.ReLU(),
                                       torch.nn.Linear(hidden, 1), torch.nn.Sigmoid())
        self.register_buffer("upper", torch.triu_indices(tables + 1, tables + 1, 1),
                             persistent=False)

    def forward(self, dense, sparse):
        x = self.bottom(dense)
        # EmbeddingBag becomes a loop over sequences, in both exporters.
        rows = [x] + [table(sparse[:, i]).sum(1) for i, table in enumerate(self.tables)]
        features = torch.stack(rows, dim=1)
        products = torch.bmm(features, features.transpose(1, 2))
        return self.top(torch.cat([x, products[:, self.upper[0], self.upper[1]]], dim=1))


class Steps(torch.nn.Module):
    """Cells of a recurrent layer, called step by step from a state of zeros."""

    def __init__(self, width, steps, classes):
        super().__init__()
        self.cell = torch.nn.LSTMCell(width, width)
        self.steps = steps
        self.classify = torch.nn.Linear(width, classes)

    def forward(self, x):
        state = torch.zeros_like(x[:, 0]), torch.zeros_like(x[:, 0])
        for step in range(self.steps):
            state = self.cell(x[:, step], state)
        return self.classify(state[0])


class LastStep(torch.nn.Module):
    """Classes of a sequence by an LSTM."""

    def __init__(self, vocabulary, width, layers, classes):
        super().__init__()
        self.table = torch.nn.Embedding(vocabulary, width)
        self.lstm = torch.nn.LSTM(width, width, layers, batch_first=True)
        self.classify = torch.nn.Linear(width, classes)

    def forward(self, tokens):
        return self.classify(self.lstm(self.table(tokens))[0][:, -1])


def networks(s):
    """Per name: how the module is made, and the example inputs."""
    tokens = lambda: (torch.randint(0, s.vocabulary, (s.batch, s.tokens)),)
    images = lambda: (torch.randn(s.batch, 3, s.image, s.image),)
    decoder = dict(vocab_size=s.vocabulary, hidden_size=s.width, intermediate_size=s.hidden,
                   num_hidden_layers=s.layers, num_attention_heads=s.heads,
                   num_key_value_heads=s.key_heads, max_position_embeddings=s.tokens)
    head = dict(head_dim=s.width // s.heads)
    causal = lambda network: FirstOutput(network, use_cache=False)
    return {
        "llama": (lambda: causal(transformers.LlamaForCausalLM(
            transformers.LlamaConfig(**decoder))), tokens),
        "qwen3": (lambda: causal(transformers.Qwen3ForCausalLM(
            transformers.Qwen3Config(**decoder, **head))), tokens),
        "gemma2": (lambda: causal(transformers.Gemma2ForCausalLM(
            transformers.Gemma2Config(**decoder, **head, query_pre_attn_scalar=s.width // s.heads,
                                      sliding_window=s.tokens // 2))), tokens),
        "mixtral": (lambda: causal(transformers.MixtralForCausalLM(
            # No exporter knows the grouped product, nor loops over the experts that were chosen.
            transformers.MixtralConfig(**decoder, num_local_experts=4,
                                       experts_implementation="batched_mm"))), tokens),
        "gpt2": (lambda: causal(transformers.GPT2LMHeadModel(transformers.GPT2Config(
            vocab_size=s.vocabulary, n_embd=s.width, n_layer=s.layers, n_head=s.heads,
            n_positions=s.tokens))), tokens),
        "bert": (lambda: FirstOutput(transformers.BertModel(transformers.BertConfig(
            vocab_size=s.vocabulary, hidden_size=s.width, num_hidden_layers=s.layers,
            num_attention_heads=s.heads, intermediate_size=s.hidden,
            max_position_embeddings=s.tokens))), tokens),
        # One layer, called for each: the exporter turns its matrices for each call.
        "albert": (lambda: FirstOutput(transformers.AlbertModel(transformers.AlbertConfig(
            vocab_size=s.vocabulary, embedding_size=s.width // 4, hidden_size=s.width,
            num_hidden_layers=s.layers, num_attention_heads=s.heads, intermediate_size=s.hidden,
            max_position_embeddings=s.tokens))), tokens),
        "distilbert": (lambda: FirstOutput(transformers.DistilBertModel(
            transformers.DistilBertConfig(
                vocab_size=s.vocabulary, dim=s.width, n_layers=s.layers, n_heads=s.heads,
                hidden_dim=s.hidden, max_position_embeddings=s.tokens))), tokens),
        "t5": (lambda: Translation(transformers.T5ForConditionalGeneration(transformers.T5Config(
            vocab_size=s.vocabulary, d_model=s.width, d_kv=s.width // s.heads, d_ff=s.hidden,
            num_layers=s.layers, num_decoder_layers=s.layers, num_heads=s.heads,
            attn_implementation="eager"))),  # The other takes views that cannot be decomposed.
               lambda: tokens() + tokens()),
        "vit_hf": (lambda: FirstOutput(transformers.ViTForImageClassification(
            transformers.ViTConfig(hidden_size=s.width, num_hidden_layers=s.layers,
                                   num_attention_heads=s.heads, intermediate_size=s.hidden,
                                   image_size=s.image, patch_size=s.patch,
                                   num_labels=s.classes))), images),
        "vit": (lambda: torchvision.models.VisionTransformer(
            s.image, s.patch, s.layers, s.heads, s.width, s.hidden, num_classes=s.classes), images),
        "resnet50": (lambda: torchvision.models.resnet50(num_classes=s.classes), images),
        "convnext": (lambda: torchvision.models.ConvNeXt(
            [torchvision.models.convnext.CNBlockConfig(s.width // 4, s.width // 2, s.layers),
             torchvision.models.convnext.CNBlockConfig(s.width // 2, None, s.layers)],
            num_classes=s.classes), images),
        "swin": (lambda: torchvision.models.SwinTransformer(
            [4, 4], s.width // 8, [s.layers, s.layers], [s.heads // 4, s.heads // 2],
            [s.image // 8 // 4] * 2, num_classes=s.classes), images),
        "encoder": (lambda: initialized(torch.nn.TransformerEncoder(
            torch.nn.TransformerEncoderLayer(s.width, s.heads, s.hidden, batch_first=True),
            s.layers, enable_nested_tensor=False)),
                    lambda: (torch.randn(s.batch, s.tokens, s.width),)),
        "dlrm": (lambda: Recommendation(s.vocabulary, s.width // 8, 6, 16, s.width),
                 lambda: (torch.randn(s.batch * 16, 16),
                          torch.randint(0, s.vocabulary, (s.batch * 16, 6, 4)))),
        "cells": (lambda: Steps(s.width, 6, s.classes),
                  lambda: (torch.randn(s.batch, 6, s.width),)),
        "lstm": (lambda: LastStep(s.vocabulary, s.width, s.layers, s.classes),
                 lambda: (torch.randint(0, s.vocabulary, (s.batch, min(s.tokens, 32))),)),
    }


def initialized(module):
    """As nn.Transformer does it. The layers of an encoder are copies of one, values and all, of
    which the legacy exporter makes one layer."""
    for parameter in module.parameters():
        if parameter.dim() > 1:
            torch.nn.init.xavier_uniform_(parameter)
    return module


def trained(module):
    """With parameters that are all different, near those of the start."""
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.add_(torch.randn_like(parameter) * 0.05)
    return module


def write_tensor(path, name, value):
    path.write_bytes(numpy_helper.from_array(value.detach().float().numpy() if
                                             value.is_floating_point() else value.numpy(),
                                             name).SerializeToString())


def write_outputs(folder, module, examples, has_padding_rows=True):
    """The output for the examples, and the gradients of its mean squared error to a target. The
    legacy exporter does not say which rows of an embedding are padding, and so are not trained."""
    output = module(*examples).detach()
    target = torch.randn_like(output)
    for name, value in [*((f"input_{i}", value) for i, value in enumerate(examples)),
                        ("output_0", output), ("target_0", target)]:
        write_tensor(folder / f"{name}.pb", name, value)
    exact = copy.deepcopy(module).double()
    for part in exact.modules():
        if isinstance(part, torch.nn.Embedding) and not has_padding_rows:
            part.padding_idx = None
    inputs = [value.double() if value.is_floating_point() else value for value in examples]
    (exact(*inputs) - target).square().mean().backward()
    stored = [(tensor.name, torch.from_numpy(numpy_helper.to_array(tensor).copy()))
              for tensor in onnx.load(folder / "model.onnx").graph.initializer]
    number, missing = 0, []
    for (name, parameter), twin in zip(module.named_parameters(), exact.parameters()):
        found = matching(stored, parameter.detach())
        if found is None or twin.grad is None:
            missing.append(name)
            continue
        write_tensor(folder / f"gradient_{number}.pb", found[0], found[1](twin.grad))
        number += 1
    return number, missing


def is_computed(name):
    return name.startswith("val_")


def matching(stored, parameter):
    """The stored tensor that is the parameter, turned maybe: its name, and how to turn another."""
    for turn in (lambda x: x, lambda x: x.transpose(-1, -2) if x.dim() > 1 else x):
        turned = turn(parameter)
        same = [name for name, value in stored
                if value.shape == turned.shape and torch.equal(value, turned)]
        # Several of the dynamo exporter are one parameter, which has the name of the first.
        if same and (len(same) == 1 or all(is_computed(name) for name in same)):
            return min(same), lambda x: turn(x).contiguous()
    return None


def export(folder, module, examples, dynamo, with_outputs):
    """Writes one case and returns what there is to say of it; the exporter's own error where it
    cannot export the network."""
    folder.mkdir(parents=True, exist_ok=True)
    names = [f"input_{i}" for i in range(len(examples))]
    options = {"dynamo": True, "external_data": False} if dynamo else {
        "dynamo": False, "opset_version": 17}
    torch.onnx.export(module, examples, str(folder / "model.onnx"), input_names=names,
                      output_names=["output"], **options)
    if not with_outputs:
        return ""
    gradients, missing = write_outputs(folder, module, examples, has_padding_rows=dynamo)
    text = f" with {gradients} gradients"
    return text + (f", without {len(missing)}: {', '.join(missing[:3])}" if missing else "")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("networks", nargs="*", help="all, unless named")
    parser.add_argument("--wide", action="store_true")
    arguments = parser.parse_intermixed_args()
    known = networks(WIDE if arguments.wide else SMALL)
    for name in arguments.networks or known:
        if name not in known:
            parser.error(f"no network {name}; there are {', '.join(known)}")
        make, inputs = known[name]
        torch.manual_seed(0)
        module, examples = make().eval(), inputs()
        if not arguments.wide:
            module = trained(module)
        for exporter in ("dynamo", "legacy"):
            folder = arguments.folder / f"{name}_{exporter}"
            try:
                said = export(folder, module, examples, exporter == "dynamo", not arguments.wide)
                print(f"{folder}: exported{said}", flush=True)
            except Exception as error:  # pylint: disable=broad-except
                shutil.rmtree(folder)
                print(f"{folder}: not exported: {str(error).splitlines()[0]}", flush=True)


if __name__ == "__main__":
    main()
