#!/usr/bin/env python3
"""Times ORIGINAL.onnx and WRITTEN.onnx in onnxruntime, run by run in turn, with all of its own optimisations.

    python3 bench/time_onnx.py original.onnx written.onnx [SECONDS]

One thread. Prints the median times in milliseconds, the median of the ratios original / written of
neighbouring runs, and the largest difference of an output beside its largest value. Needs onnxruntime.
"""
import statistics
import sys
import time

import numpy as np
import onnxruntime


def session(path):
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_ALL
    return onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])


def random_inputs(of):
    """Small numbers that are valid indices where integers are asked for."""
    random = np.random.default_rng(1)
    inputs = {}
    for info in of.get_inputs():
        if "float" in info.type:
            inputs[info.name] = random.standard_normal(info.shape).astype(np.float32)
        else:
            inputs[info.name] = random.integers(0, 2, info.shape).astype(np.int64)
    return inputs


def seconds_of(of, inputs):
    start = time.perf_counter()
    of.run(None, inputs)
    return time.perf_counter() - start


def main():
    original, written = (session(path) for path in sys.argv[1:3])
    inputs = random_inputs(original)
    expected, actual = original.run(None, inputs), written.run(None, inputs)
    error = max(float(np.abs(want - got).max() / (np.abs(want).max() or 1))
                for want, got in zip(expected, actual, strict=True))
    limit = time.monotonic() + float(sys.argv[3] if len(sys.argv) > 3 else 5)
    times = []
    while time.monotonic() < limit or len(times) < 5:
        times.append((seconds_of(original, inputs), seconds_of(written, inputs)))
    print(f"{1e3 * statistics.median(a for a, _ in times):.3f} "
          f"{1e3 * statistics.median(b for _, b in times):.3f} "
          f"{statistics.median(a / b for a, b in times):.3f} {error:.1g}")


if __name__ == "__main__":
    main()
