#!/usr/bin/env python3
"""What bench/training/report.py complains of, and that it writes what it says.

Usage: training_report_test.py TREE
"""
import collections
import os
import sys
import tempfile
import types
import xml.etree.ElementTree as xml

sys.path.insert(0, os.path.join(sys.argv[1], "bench", "training"))
import report  # noqa: E402

TRAINING = types.SimpleNamespace(name="net", title="A net", about="Of a test.", wants="")
PAGE = """data 2: 1 ms a step
Plan of net for laptop_cpu

times  operator                 each  what is split, and where
    2  layer*/product matmul  522 us  columns over 2 devices of a node (column-parallel)
    1  a name  in parts add   1.2 ms  whole, on device 0, though batch could be split

Communication
"""


def row(name, losses, test_loss, devices=0, headline=""):
    plan = types.SimpleNamespace(devices=devices) if devices else None
    summary = {"loss": losses, "metrics": {"test_loss": test_loss}}
    return types.SimpleNamespace(name=name, plan=plan, headline=headline, splits=collections.Counter(), summary=summary,
                                 seed=plan is None)


def complaints(*rows):
    with tempfile.TemporaryDirectory() as folder:
        said = report.write(TRAINING, [row("one device", [2.0, 1.0], 0.5), *rows], ["isomer-run"], folder)
        xml.parse(os.path.join(folder, "net.svg"))
        with open(os.path.join(folder, "net.tsv")) as file:
            assert len(file.read().splitlines()) == 3
        with open(os.path.join(folder, "net.md")) as file:
            page = file.read()
        assert all(f"| {row.name} |" in page for row in rows), page
        return said


def main():
    seeds = [row("seed 2", [2.1, 1.1], 0.53)]
    good = row("data parallel", [2.001, 0.9995], 0.52, 2, "data 2")
    assert complaints(*seeds, good) == []
    [said] = complaints(*seeds, row("bad", [2.0, 1.002], 0.5, 2))
    assert "the loss of step 2 is off by 2.0e-03" in said, said
    [said] = complaints(*seeds, row("no number", [2.0, float("nan")], 0.5, 2))
    assert "step 2 is off by nan" in said, said
    [said] = complaints(*seeds, row("learnt less", [2.0, 1.0], 0.54, 2))
    assert "test_loss is 0.54, and 0.5 on one device; 0.03 is noise" in said, said
    [said] = complaints(row("without seeds", [2.0, 1.0], 0.501, 2))
    assert "0.0005 is noise" in said, said
    [said] = complaints(*seeds, good, row("again", [2.0, 1.0], 0.5, 2, "data 2"))
    assert "one plan under several names: data parallel; again" in said, said
    try:
        complaints(*seeds, row("ended", [2.0], 0.5, 2))
        raise AssertionError("a run that is shorter")
    except (ValueError, IndexError):
        pass
    assert report.splits_of(PAGE) == {"columns over 2 devices": 2, "whole, on device 0": 1}, report.splits_of(PAGE)


if __name__ == "__main__":
    main()
