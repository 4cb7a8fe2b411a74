#!/usr/bin/env python3
"""Runs an export to PyTorch on all of its processes, compares it with the model as it was, and writes
what it computed as an ONNX test case, for isomer-run --test_data to judge.

    torchrun --nproc-per-node=4 scripts/check_pytorch_export.py plan.py FOLDER

Needs: pip install torch numpy onnx. Exit 1 if outputs or gradients differ.
"""

import importlib.util
import math
import os
import sys

import torch
import torch.distributed as dist
from onnx import numpy_helper


def write(path, name, value):
    tensor = numpy_helper.from_array(value.detach().cpu().contiguous().numpy(), name)
    with open(path, "wb") as file:
        file.write(tensor.SerializeToString())


def main(path, folder):
    spec = importlib.util.spec_from_file_location("exported", path)
    exported = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(exported)
    dist.init_process_group("gloo")
    runner = exported.Runner("cpu")
    inputs = exported.random_inputs(seed=7)
    errors = exported.check(runner, seed=7)
    for x in runner.named_parameters().values():
        x.grad = None
    outputs = runner.step(inputs)
    gradients = {n: x.grad.full_tensor() for n, x in runner.named_parameters().items()
                 if x.grad is not None}
    everybody = [None] * dist.get_world_size()
    dist.all_gather_object(everybody, (errors, outputs, gradients))
    worst = max(
        (e if e == e else math.inf for of, _, _ in everybody for e in of.values()), default=0.0
    )
    if dist.get_rank() == 0:
        gradients, outputs = {}, None
        for _, of_device, own in everybody:
            gradients.update(own)
            outputs = outputs or of_device
        os.makedirs(folder, exist_ok=True)
        # What the loss compares the first output with is the last input of the model.
        names = list(inputs)
        targets = names[-1:] if "target" in names[-1] or "labels" in names[-1] else []
        for i, name in enumerate(n for n in names if n not in targets):
            write(f"{folder}/input_{i}.pb", exported.INPUTS[name].name, inputs[name])
        for i, name in enumerate(targets):
            write(f"{folder}/target_{i}.pb", exported.INPUTS[name].name, inputs[name])
        others = [name for name in exported.OUTPUTS if name != exported.LOSS]
        for i, name in enumerate(others):
            write(f"{folder}/output_{i}.pb", name, outputs[name])
        for i, (name, gradient) in enumerate(sorted(gradients.items())):
            write(f"{folder}/gradient_{i}.pb", name, gradient)
        print(f"{len(others)} outputs and {len(gradients)} gradients, off by at most {worst:.1e}")
    dist.destroy_process_group()
    return 0 if worst <= exported.TOLERANCE else 1


if __name__ == "__main__":
    torch.set_num_threads(1)
    sys.exit(main(*sys.argv[1:3]))
