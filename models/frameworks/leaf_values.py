# The first values of weights and constants: the same in exports to all frameworks.

import math
import os
from typing import NamedTuple

import numpy as np


class InFile(NamedTuple):
    """A leaf's values: where they lie in a file (None: the one beside this)."""

    path: str | None
    offset: int
    dtype: str


class Drawn(NamedTuple):
    """A leaf's values: random numbers, those that isomer-run --seed=1 starts with, or ones."""

    stream: int
    deviation: float | None  # None: ones


def drawn(values, shape):
    if values.deviation is None:
        return np.ones(shape, np.float32)

    def mixed(x):  # Steele, Lea, Flood, "Fast Splittable Pseudorandom Number Generators", 2014
        x = x + np.uint64(0x9E3779B97F4A7C15)
        x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        return x ^ (x >> np.uint64(31))

    def uniform(first):
        n = np.arange(first, 2 * math.prod(shape), 2, dtype=np.uint64)
        bits = mixed(np.uint64(values.stream) + n * np.uint64(0x9E3779B97F4A7C15))
        return ((bits >> np.uint64(11)).astype(np.float64) + 0.5) * 2.0**-53

    normal = np.sqrt(-2 * np.log(uniform(0))) * np.cos(2 * math.pi * uniform(1))
    return (values.deviation * normal).astype(np.float32).reshape(shape)


def path_of(values):
    return values.path or os.path.join(os.path.dirname(os.path.abspath(__file__)), WEIGHTS_FILE)
