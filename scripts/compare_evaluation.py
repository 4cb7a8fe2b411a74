#!/usr/bin/env python3
"""Compares tests of isomer-run with PyTorch's model.eval(): batch norm and dropout of 0.9.

    scripts/compare_evaluation.py build/bin/isomer-run

A network is exported in training mode and trained by both on the same rows in the same order. With
dropout, whose masks differ, the rate is 0 and the running statistics alone move. PyTorch's running
variances are unbiased, ONNX's are not; here PyTorch's layers are given the latter. Exit code 1 if a
test's loss is off by more than 1e-5 of it, or an accuracy differs. Needs torch, onnx and numpy.
"""
import json
import pathlib
import subprocess
import sys
import tempfile

import numpy as np
import onnx
import torch
from onnx import numpy_helper
from torch import nn

BATCH, FEATURES, WIDTH, CLASSES, SCALE, MOMENTUM = 16, 64, 32, 10, 0.0625, 0.1
DIGITS = pathlib.Path(__file__).parent.parent / "models/data/digits.csv"


def network(rate):
    return nn.Sequential(nn.Linear(FEATURES, WIDTH), nn.BatchNorm1d(WIDTH), nn.ReLU(),
                         nn.Dropout(rate), nn.Linear(WIDTH, CLASSES))


def export(model, path):
    model.train()
    torch.onnx.export(model, (torch.zeros(BATCH, FEATURES),), path, input_names=["x"],
                      output_names=["logits"], training=torch.onnx.TrainingMode.TRAINING,
                      do_constant_folding=False, dynamo=False, opset_version=17)
    graph = onnx.load(path).graph
    return {tensor.name: torch.tensor(numpy_helper.to_array(tensor).copy())
            for tensor in graph.initializer}


def of_torch(initial, rate, learning_rate, steps):
    rows = np.loadtxt(DIGITS, delimiter=",")
    x = torch.tensor(rows[:, :FEATURES] * SCALE, dtype=torch.float32)
    y = torch.tensor(rows[:, FEATURES], dtype=torch.int64)
    test = np.arange(4, len(rows), 5)
    train = np.setdiff1d(np.arange(len(rows)), test)
    model = network(rate)
    model.load_state_dict(initial, strict=False)
    model.train()
    mean, variance = initial["1.running_mean"], initial["1.running_var"]
    optimizer = torch.optim.SGD(model.parameters(), lr=learning_rate)
    for step in range(steps):
        batch = train[step * BATCH:(step + 1) * BATCH]
        with torch.no_grad():
            hidden = model[0](x[batch])
            mean = (1 - MOMENTUM) * mean + MOMENTUM * hidden.mean(0)
            variance = (1 - MOMENTUM) * variance + MOMENTUM * hidden.var(0, unbiased=False)
        loss = nn.functional.cross_entropy(model(x[batch]), y[batch])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    model[1].running_mean.copy_(mean)
    model[1].running_var.copy_(variance)
    model.eval()
    with torch.no_grad():
        logits = model(x[test])
    return (nn.functional.cross_entropy(logits, y[test]).item(),
            (logits.argmax(1) == y[test]).double().mean().item())


def of_isomer(program, model, folder, learning_rate, steps):
    summary = folder / "summary.json"
    subprocess.run([program, model, f"--data={DIGITS}", "--noshuffle", f"--data_scale={SCALE}",
                    f"--learning_rate={learning_rate}", f"--steps={steps}", f"--eval_every={steps}",
                    f"--json={summary}"], check=True, stdout=subprocess.DEVNULL)
    metrics = json.loads(summary.read_text())["metrics"]
    return metrics["test_loss"], metrics["test_accuracy"]


def main():
    agrees = True
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        for what, rate, learning_rate, steps in (("batch norm", 0.0, 0.1, 40),
                                                 ("batch norm, dropout", 0.9, 0.0, 40)):
            torch.manual_seed(1)
            path = str(folder / "model.onnx")
            initial = export(network(rate), path)
            theirs = of_torch(initial, rate, learning_rate, steps)
            ours = of_isomer(sys.argv[1], path, folder, learning_rate, steps)
            equal = abs(ours[0] - theirs[0]) < 1e-5 * theirs[0] and abs(ours[1] - theirs[1]) < 1e-9
            agrees = agrees and equal
            print(f"{what}: PyTorch {theirs[0]:.6f}, {100 * theirs[1]:.2f} %; "
                  f"Isomer {ours[0]:.6f}, {100 * ours[1]:.2f} %: {'agrees' if equal else 'DIFFERS'}")
    return 0 if agrees else 1


if __name__ == "__main__":
    sys.exit(main())
