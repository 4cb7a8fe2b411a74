"""What an export of a plan computed, as an ONNX test case for isomer-run --test_data to judge: shared
by check_pytorch_export.py and check_jax_export.py. Needs: pip install numpy onnx."""

import os

import numpy as np
from onnx import numpy_helper


def write_case(folder, exported, inputs, outputs, gradients):
    """`exported`: the module; arrays of NumPy by the names that it has for them."""
    os.makedirs(folder, exist_ok=True)

    def write(file_name, name, value):
        tensor = numpy_helper.from_array(np.asarray(value, order="C"), name)
        with open(f"{folder}/{file_name}.pb", "wb") as file:
            file.write(tensor.SerializeToString())

    # What the loss compares the first output with is the last input of the model.
    names = list(inputs)
    targets = names[-1:] if "target" in names[-1] or "labels" in names[-1] else []
    for i, name in enumerate(n for n in names if n not in targets):
        write(f"input_{i}", exported.INPUTS[name].name, inputs[name])
    for i, name in enumerate(targets):
        write(f"target_{i}", exported.INPUTS[name].name, inputs[name])
    others = [name for name in exported.OUTPUTS if name != exported.LOSS]
    for i, name in enumerate(others):
        write(f"output_{i}", name, outputs[name])
    for i, (name, gradient) in enumerate(sorted(gradients.items())):
        write(f"gradient_{i}", name, gradient)
    return f"{len(others)} outputs and {len(gradients)} gradients"
