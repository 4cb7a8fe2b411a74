#!/usr/bin/python3
"""Writes models/data/digits.csv. Run: /usr/bin/python3 models/export/export_digits.py

The UCI optical digits (test part) as Debian's python3-sklearn ships them: one line per image,
64 pixels 0..16 by rows, then the label 0..9, no head line, in the order of the source. By convention
lines 1..1437 are for training and the last 360 for testing.
"""

import pathlib

from sklearn.datasets import load_digits

TARGET = pathlib.Path(__file__).resolve().parent.parent / "data" / "digits.csv"


def main():
    digits = load_digits()
    lines = [",".join(str(int(value)) for value in (*pixels, label))
             for pixels, label in zip(digits.data, digits.target)]
    TARGET.parent.mkdir(exist_ok=True)
    TARGET.write_text("\n".join(lines) + "\n")
    print(f"{TARGET}: {len(lines)} images")


if __name__ == "__main__":
    main()
