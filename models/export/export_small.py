#!/usr/bin/python3
"""Writes models/data/small/: ONNX files of small networks, and what torch computes for them.

Run: /usr/bin/python3 models/export/export_small.py   (Debian's python3-torch, python3-torchvision)

Every network is exported in inference form; those with train=True in training form, whose
BatchNormalization takes the statistics of the batch. reference.txt has for each file

    model FILE
    input NAME MODULUS DIMS..     element i is sin(0.7 i + 0.3), or (7 i + 3) mod MODULUS
    output NAME SIZE mean V sum_of_squares V first V1..V8

from the same network in float64.
"""

import dataclasses
import io
import warnings

import torch
from torch import nn

import networks
import small_convolutional as convolutional
import small_sequence as sequence

TARGET = networks.DATA_DIR / "small"
SEED = 2022


@dataclasses.dataclass
class Export:
    name: str
    build: object
    inputs: dict  # name: dims, or (modulus, dims)
    outputs: list
    opset: int = 13
    train: bool = False
    compare: bool = True


IMAGE16, IMAGE32 = {"image": (2, 3, 16, 16)}, {"image": (2, 3, 32, 32)}
IDS = {"ids": (48, (2, 8))}
EXPORTS = [
    Export("resnet18", convolutional.ResNet18, IMAGE16, ["logits"]),
    Export("resnet18_training", convolutional.ResNet18, IMAGE16, ["logits"], 14, True),
    Export("mobilenet_v2", convolutional.MobileNetV2, IMAGE16, ["logits"], 11),
    # Drops units at random, so only its structure is compared.
    Export("mobilenet_v2_training", convolutional.MobileNetV2, IMAGE16, ["logits"], 15, True,
           compare=False),
    Export("mobilenet_v3", convolutional.mobilenet_v3, IMAGE32, ["logits"], 14),
    Export("squeezenet", convolutional.SqueezeNet, IMAGE32, ["logits"], 9),
    Export("densenet", convolutional.densenet, IMAGE32, ["logits"], 12),
    Export("densenet_training", convolutional.densenet, IMAGE32, ["logits"], 14, True),
    Export("inception", convolutional.InceptionNet, IMAGE16, ["logits"]),
    Export("diffusion_unet", convolutional.DiffusionUNet, {**IMAGE16, "step": (2,)}, ["noise"], 12),
    Export("segmenter", convolutional.Segmenter, IMAGE16, ["log_probabilities"], 16),
    Export("gpt2", sequence.Gpt, IDS, ["logits"]),
    # Rate 0: the Dropout nodes are there, and the numbers can be compared.
    Export("gpt2_training", sequence.Gpt, IDS, ["logits"], 14, True),
    Export("vision_transformer", sequence.VisionTransformer, IMAGE16, ["logits"], 16),
    Export("bert_masked", sequence.BertMasked,
           {"ids": (48, (2, 8)), "types": (2, (2, 8)), "mask": (2, (2, 8))}, ["encoded", "pooled"]),
    Export("encoder_decoder", sequence.EncoderDecoder,
           {"source": (40, (2, 6)), "target": (40, (2, 5))}, ["log_probabilities"], 14),
    Export("lstm_language_model", sequence.LstmLanguageModel, {"ids": (40, (2, 6))}, ["logits"], 11),
    Export("gru_classifier", sequence.GruClassifier,
           {"sequence": (5, 2, 6), "initial": (2, 2, 8)}, ["logits", "states"], 14),
    Export("dlrm", sequence.Dlrm,
           {"dense": (3, 5), "a": (20, (3, 4)), "b": (30, (3, 4)), "c": (16, (3, 4))},
           ["probability"], 10),
    Export("wide_deep", sequence.WideDeep, {"dense": (4, 4), "left": (16, (4,)),
                                            "right": (16, (4,))}, ["probability"]),
]


def make_input(spec, dtype):
    if isinstance(spec[-1], tuple):
        modulus, dims = spec
        return ((7 * torch.arange(torch.Size(dims).numel()) + 3) % modulus).reshape(dims)
    i = torch.arange(torch.Size(spec).numel(), dtype=torch.float64)
    return torch.sin(0.7 * i + 0.3).reshape(spec).to(dtype)


def build(export):
    torch.manual_seed(SEED)
    model = export.build()
    networks.perturb_vectors(model)
    with torch.no_grad():
        for name, statistic in model.named_buffers():
            if name.endswith("running_var"):
                statistic.abs_()
    # Without nn.Transformer's fast path, which has no ONNX form.
    plain = any(isinstance(m, (nn.Transformer, nn.TransformerEncoderLayer)) for m in model.modules())
    return model.train(export.train or plain)


def write_onnx(export):
    model = build(export)
    mode = torch.onnx.TrainingMode
    buffer = io.BytesIO()
    inputs = tuple(make_input(spec, torch.float32) for spec in export.inputs.values())
    torch.onnx.export(model, inputs, buffer, opset_version=export.opset,
                      input_names=list(export.inputs), output_names=export.outputs,
                      training=mode.TRAINING if model.training else mode.EVAL,
                      do_constant_folding=not export.train)
    path = TARGET / f"{export.name}.onnx"
    path.write_bytes(buffer.getvalue())
    print(f"{path}: {len(buffer.getvalue())} bytes")


def reference(export):
    model = build(export).double()
    inputs = [make_input(spec, torch.float64) for spec in export.inputs.values()]
    with torch.no_grad():
        results = model(*inputs)
    results = results if isinstance(results, tuple) else (results,)
    lines = [f"model {export.name}.onnx"]
    for name, spec in export.inputs.items():
        modulus, dims = spec if isinstance(spec[-1], tuple) else (0, spec)
        lines.append(f"input {name} {modulus} {' '.join(map(str, dims))}")
    for name, result in zip(export.outputs, results):
        flat = result.flatten()
        first = " ".join(f"{float(v):.12g}" for v in flat[:8])
        lines.append(f"output {name} {len(flat)} mean {float(flat.mean()):.12g} sum_of_squares "
                     f"{float(flat.square().sum()):.12g} first {first}")
    return lines


def main():
    warnings.filterwarnings("ignore")
    TARGET.mkdir(exist_ok=True, parents=True)
    lines = ["# What torch computes in float64 for the files of this folder.",
             "# Written by models/export/export_small.py, which describes the format."]
    for export in EXPORTS:
        write_onnx(export)
        if export.compare:
            lines += reference(export)
    (TARGET / "reference.txt").write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
