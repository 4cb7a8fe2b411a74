"""What the trainings of bench/training/train.py train on, made of nothing but this computer.

Standard library only: .bin files of tokens, and .npy files, are a header and numbers in a row.
"""
import array
import glob
import math
import os
import random
import struct
import sys

# Text that every Debian system has: base-files and perl-base are Essential, and licences stay where
# documentation is left out. 345 KB in Debian 12; a release more or less changes some of them.
TEXTS = ["/usr/share/common-licenses/*", "/usr/share/doc/perl-base/copyright"]
BLOCK = 2048  # bytes: of so many, every TEST_EVERYth tests
TEST_EVERY = 20


def text_files():
    """The files that TEXTS name, without links, in the order of their names."""
    names = [name for pattern in TEXTS for name in sorted(glob.glob(pattern))]
    return [name for name in names if os.path.isfile(name) and not os.path.islink(name)]


def little_endian(numbers):
    if sys.byteorder == "big":
        numbers.byteswap()
    return numbers


def make_text(folder):
    """train.bin and test.bin: each byte a token, as uint16."""
    files = text_files()
    if not files:
        sys.exit("error: none of " + ", ".join(TEXTS) + " is there: a Debian system has them")
    text = b"".join(open(name, "rb").read() for name in files)
    parts = {"train.bin": array.array("H"), "test.bin": array.array("H")}
    for at in range(0, len(text), BLOCK):
        name = "test.bin" if at // BLOCK % TEST_EVERY == TEST_EVERY - 1 else "train.bin"
        parts[name].extend(text[at : at + BLOCK])
    for name, tokens in parts.items():
        with open(os.path.join(folder, name), "wb") as file:
            little_endian(tokens).tofile(file)


def write_npy(path, numbers, columns):
    """`numbers`, an array of "f" or "q", as rows of `columns` (0: one dim)."""
    kind = {"f": "<f4", "q": "<i8"}[numbers.typecode]
    shape = f"({len(numbers) // columns}, {columns})" if columns else f"({len(numbers)},)"
    header = f"{{'descr': '{kind}', 'fortran_order': False, 'shape': {shape}, }}"
    header += " " * (-(len(header) + 11) % 64) + "\n"
    with open(path, "wb") as file:
        file.write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode())
        little_endian(numbers).tofile(file)


def make_clicks(folder, tables=8, rows=1000, dense=16, samples=204800, test=12800, seed=1):
    """A log of clicks: dense features, one id for each table, and whether there was a click.

    Clicks are drawn from a hidden logistic model: a weight for each dense feature, a vector of four
    numbers for each id, whose products between neighbouring tables count, too, and a bias. Ids are
    drawn as popularity has it: the square of a uniform number times `rows`.
    """
    random_numbers = random.Random(seed)
    normal, uniform = random_numbers.gauss, random_numbers.random
    weights = [normal(0, 1 / math.sqrt(dense)) for _ in range(dense)]
    first = [normal(0, 1) for _ in range(4)]
    vectors = [[[normal(0, 0.7) for _ in range(4)] for _ in range(rows)] for _ in range(tables)]
    log = {"dense": array.array("f"), "target": array.array("f")}
    log.update({f"table{t}_ids": array.array("q") for t in range(tables)})
    for _ in range(samples):
        x = [normal(0, 1) for _ in range(dense)]
        ids = [int(uniform() ** 2 * rows) for _ in range(tables)]
        score = sum(w * value for w, value in zip(weights, x)) - 0.5
        for t in range(tables):
            here, there = vectors[t][ids[t]], vectors[t - 1][ids[t - 1]]
            score += 0.5 * sum(a * b for a, b in zip(first, here))
            score += 0.25 * sum(a * b for a, b in zip(here, there))
        log["dense"].extend(x)
        log["target"].append(float(uniform() < 1 / (1 + math.exp(-score))))
        for t in range(tables):
            log[f"table{t}_ids"].append(ids[t])
    for name, numbers in log.items():
        columns = {"dense": dense, "target": 1}.get(name, 0)
        cut = (samples - test) * max(columns, 1)
        write_npy(os.path.join(folder, f"{name}.npy"), numbers[:cut], columns)
        write_npy(os.path.join(folder, f"{name}.test.npy"), numbers[cut:], columns)
