#!/usr/bin/env python3
"""Runs an export to JAX on all of its devices, compares it with the model as it was, and writes what
it computed as an ONNX test case, for isomer-run --test_data to judge.

    XLA_FLAGS=--xla_force_host_platform_device_count=8 python scripts/check_jax_export.py plan.py FOLDER

Needs: pip install jax numpy onnx. Exit 1 if outputs or gradients differ.
"""

import importlib.util
import math
import sys

import numpy as np
from export_case import write_case


def main(path, folder):
    spec = importlib.util.spec_from_file_location("exported", path)
    exported = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(exported)
    mesh = exported.make_mesh()
    inputs = exported.random_inputs(seed=7)
    outputs, gradients = exported.first_step(mesh, inputs)
    errors = exported.check((outputs, gradients), exported.reference_step(inputs))
    worst = max(e if e == e else math.inf for e in errors.values())
    for name, gradient in gradients.items():
        assert gradient.sharding.is_equivalent_to(exported.placed(mesh, name), gradient.ndim), name
    arrays = [{name: np.asarray(x) for name, x in of.items()} for of in (inputs, outputs, gradients)]
    written = write_case(folder, exported, *arrays)
    print(f"{written}, off by at most {worst:.1e}")
    return 0 if worst <= exported.TOLERANCE else 1


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:3]))
