#!/usr/bin/env python3
"""Whether an .onnx file that Isomer wrote is one, and computes what the one that it read does.

    isomer-optimize net.onnx --mode=inference --machine=laptop_cpu --devices_per_node=1 \\
        --export_onnx=fast.onnx
    python3 models/export/check_onnx.py net.onnx fast.onnx

Needs the onnx package; runs both files with onnxruntime where that is installed, otherwise with
onnx's own evaluator. Exit code 1 where an output differs by more than 1e-4 of its largest value.
"""
import sys

import numpy as np
import onnx


def runner(path):
    """A function from named inputs to outputs."""
    try:
        import onnxruntime

        session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
        return lambda inputs: session.run(None, inputs)
    except ImportError:
        from onnx.reference import ReferenceEvaluator

        evaluator = ReferenceEvaluator(path)
        return lambda inputs: evaluator.run(None, inputs)


def random_inputs(model, sizes):
    """Small numbers that are valid indices where integers are asked for."""
    random = np.random.default_rng(1)
    stored = {tensor.name for tensor in model.graph.initializer}
    inputs = {}
    for info in model.graph.input:
        if info.name in stored:
            continue
        shape = [dim.dim_value or sizes.get(dim.dim_param, 1)
                 for dim in info.type.tensor_type.shape.dim]
        dtype = onnx.helper.tensor_dtype_to_np_dtype(info.type.tensor_type.elem_type)
        is_float = np.issubdtype(dtype, np.floating)
        values = random.standard_normal(shape) if is_float else random.integers(0, 2, shape)
        inputs[info.name] = values.astype(dtype)
    return inputs


def main():
    original, written = sys.argv[1:3]
    onnx.checker.check_model(written, full_check=True)
    model = onnx.load(written)
    inputs = random_inputs(model, {})
    expected, actual = runner(original)(inputs), runner(written)(inputs)
    worst = 0.0
    for want, got in zip(expected, actual, strict=True):
        if want.shape != got.shape or want.dtype != got.dtype:
            sys.exit(f"{written}: {got.dtype}{got.shape}, not {want.dtype}{want.shape}")
        scale = np.abs(want).max() or 1
        worst = max(worst, float(np.abs(want - got).max() / scale))
    print(f"{written}: {len(model.graph.node)} nodes, checked; largest relative error {worst:.2g}")
    sys.exit(worst > 1e-4)


if __name__ == "__main__":
    main()
