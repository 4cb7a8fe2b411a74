"""What the tests of the Python package share: small plans, the programs, folders that go."""

import contextlib
import os
import pathlib
import subprocess
import tempfile
import unittest
import warnings

import isomer

SOURCE = pathlib.Path(os.environ["ISOMER_SOURCE_DIR"])
BIN = pathlib.Path(os.environ["ISOMER_BIN_DIR"])
BERT = SOURCE / "models/data/bert_tiny.onnx"
DYNAMIC = SOURCE / "models/data/digits_cnn_dynamic.onnx"
MLP = "zoo:mlp?layers=2&inputs=32&hidden=32&classes=8&batch=16"


def program(name, *arguments, check=True):
    """Runs one of the programs."""
    return subprocess.run([BIN / name, *map(str, arguments)], capture_output=True, text=True,
                          check=check)


def error_of(*arguments):
    """The line that isomer-optimize ends with, without "error: "."""
    found = program("isomer-optimize", *arguments, check=False)
    assert found.returncode == 2, found
    lines = [line for line in found.stderr.splitlines() if line.startswith("error: ")]
    return lines[-1][len("error: "):]


def quietly():
    """Without notes."""
    context = warnings.catch_warnings()
    context.__enter__()
    warnings.simplefilter("ignore", isomer.Note)
    return context


class Case(unittest.TestCase):
    """A test with a folder of its own, without notes."""

    def setUp(self):
        stack = contextlib.ExitStack()
        self.addCleanup(stack.close)
        stack.enter_context(warnings.catch_warnings())
        warnings.simplefilter("ignore", isomer.Note)
        self.folder = pathlib.Path(stack.enter_context(tempfile.TemporaryDirectory()))

    def refuses(self, *parts, kind=isomer.InputError):
        """Expects one line with all parts."""
        test = self

        class Context:
            def __enter__(self):
                return self

            def __exit__(self, raised, value, _):
                test.assertIsNotNone(raised, f"nothing was refused; {parts} expected")
                if not issubclass(raised, kind):
                    return False
                line = str(value)
                test.assertNotIn("\n", line)
                for part in parts:
                    test.assertIn(part, line)
                return True

        return Context()


def small_plan(model=MLP, machine="laptop_cpu", **options):
    """A plan for four virtual devices."""
    return isomer.optimize(model, isomer.Machine(machine, devices_per_node=4),
                           **{"cache": False, "progress": False, **options})
