#!/usr/bin/env python3
"""Runs an export to PyTorch on all of its processes, compares it with the model as it was, and writes
what it computed as an ONNX test case, for isomer-run --test_data to judge.

    torchrun --nproc-per-node=4 scripts/check_pytorch_export.py plan.py FOLDER

Needs: pip install torch numpy onnx. Exit 1 if outputs or gradients differ.
"""

import importlib.util
import math
import sys

import torch
import torch.distributed as dist
from export_case import write_case


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
        arrays = [
            {name: x.detach().cpu().numpy() for name, x in of.items()}
            for of in (inputs, outputs, gradients)
        ]
        written = write_case(folder, exported, *arrays)
        print(f"{written}, off by at most {worst:.1e}")
    dist.destroy_process_group()
    return 0 if worst <= exported.TOLERANCE else 1


if __name__ == "__main__":
    torch.set_num_threads(1)
    sys.exit(main(*sys.argv[1:3]))
