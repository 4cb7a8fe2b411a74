#!/usr/bin/env python3
"""Weights of isomer-run (--out, --weights, checkpoints) against NumPy's and safetensors' own code.

    weight_files_test.py BIN SOURCE

Needs numpy and safetensors; torch, where it is, for bfloat16 and state_dicts.
"""
import json
import os
import pathlib
import struct
import subprocess
import sys
import tempfile
import unittest

import numpy
import safetensors.numpy

try:
    import torch
except ImportError:
    torch = None

BIN, SOURCE = sys.argv[1:3]
MODEL = f"{SOURCE}/models/data/digits_cnn.onnx"
NAMES = [f"{layer}.{kind}" for layer in ("conv1", "conv2", "dense1", "dense2")
         for kind in ("bias", "weight")]


def run(*flags):
    return subprocess.run([f"{BIN}/isomer-run", *flags], capture_output=True, text=True, check=False)


def as_dict(path):
    if str(path).endswith(".npz"):
        return dict(numpy.load(path))
    return safetensors.numpy.load_file(path)


class WeightFiles(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.at = pathlib.Path(self.folder.name)

    def tearDown(self):
        self.folder.cleanup()

    def good(self, *flags):
        result = run(MODEL, *flags)
        self.assertEqual(result.returncode, 0, result.stderr)
        return result

    def trained(self):
        """The weights after three steps, as a dict."""
        path = self.at / "trained.npz"
        if not path.exists():
            self.good("--steps=3", f"--out={path}")
        return as_dict(path)

    def through(self, weights, *flags):
        """What is written of weights that a run begins with and does not change."""
        out = self.at / "through.safetensors"
        self.good(f"--weights={weights}", "--learning_rate=0", "--steps=1", f"--out={out}", *flags)
        return as_dict(out)

    def assert_equal(self, a, b):
        self.assertEqual(sorted(a), sorted(b))
        for name in a:
            self.assertEqual(a[name].dtype, numpy.float32)
            numpy.testing.assert_array_equal(a[name], b[name], name)

    def refused(self, weights, *words, flags=()):
        before = set(os.listdir(self.at))
        result = run(MODEL, f"--weights={weights}", "--steps=1", f"--out={self.at}/none.npz", *flags)
        self.assertEqual(result.returncode, 2, result.stderr)
        lines = [x for x in result.stderr.splitlines() if not x.startswith("note:")]
        self.assertEqual(len(lines), 1, result.stderr)
        for word in words:
            self.assertIn(word, lines[0])
        self.assertEqual(before, set(os.listdir(self.at)))

    def test_what_is_written_is_read_by_all(self):
        trained = self.trained()
        self.assertEqual(sorted(trained), NAMES)
        self.assertEqual(trained["conv2.weight"].shape, (32, 16, 3, 3))
        for ending in "safetensors", "npz", "onnx", "model":
            out = self.at / f"again.{ending}"
            self.good("--steps=3", f"--out={out}")
            if ending in ("safetensors", "npz"):
                self.assert_equal(as_dict(out), trained)
            self.assert_equal(self.through(out), trained)

    def test_checkpoints(self):
        folder = self.at / "checkpoints"
        self.good("--steps=3", f"--checkpoint_dir={folder}", "--optimizer=adam",
                  f"--out={self.at}/adam.npz")
        trained = as_dict(self.at / "adam.npz")
        state = as_dict(folder / "step-000000003" / "state.safetensors")
        self.assertEqual(len(state), 3 * len(NAMES))
        self.assert_equal({name: state[name] for name in NAMES}, trained)
        self.assert_equal(self.through(folder), trained)
        # One of them, under another name.
        (folder / "step-000000003").rename(self.at / "best")
        self.assert_equal(self.through(self.at / "best"), trained)
        path = self.at / "best" / "state.safetensors"
        damaged = bytearray(path.read_bytes())
        damaged[-5] ^= 1
        path.write_bytes(damaged)
        self.refused(self.at / "best", "is not what was written")

    def test_several_files_as_hugging_face_has_them(self):
        trained = self.trained()
        folder = self.at / "hub"
        folder.mkdir()
        files = [f"model-0000{i}-of-00002.safetensors" for i in (1, 2)]
        parts = [{n: trained[n] for n in NAMES[:3]}, {n: trained[n] for n in NAMES[3:]}]
        weight_map = {}
        for file, part in zip(files, parts):
            safetensors.numpy.save_file(part, folder / file, metadata={"format": "pt"})
            weight_map.update({name: file for name in part})
        index = folder / "model.safetensors.index.json"
        index.write_text(json.dumps({"metadata": {"total_size": 1}, "weight_map": weight_map}))
        self.assert_equal(self.through(folder), trained)
        index.write_text(json.dumps({"weight_map": {**weight_map, NAMES[0]: files[1]}}))
        self.refused(folder, "index.json", f"'{NAMES[0]}' should be in", files[1])
        index.write_text(json.dumps({"weight_map": {**weight_map, NAMES[0]: "../x"}}))
        self.refused(folder, "index.json", f"'{NAMES[0]}' is in no file of the folder")
        index.write_text("{")
        self.refused(folder, "index.json: it is damaged")
        index.write_text(json.dumps({"weight_map": weight_map}))
        (folder / files[1]).unlink()
        self.refused(folder, files[1], "no such file")
        index.unlink()
        self.refused(folder, "is expected")
        safetensors.numpy.save_file(trained, folder / "model.safetensors")
        self.assert_equal(self.through(folder), trained)

    def test_other_types_are_widened(self):
        trained = self.trained()
        for kind in "float16", "float64", ">f4":
            numpy.savez(self.at / "w.npz", **{n: x.astype(kind) for n, x in trained.items()})
            self.assert_equal(self.through(self.at / "w.npz"),
                              {n: x.astype(kind).astype("float32") for n, x in trained.items()})
        for kind in "float16", "float64":
            path = self.at / "w.safetensors"
            safetensors.numpy.save_file({n: x.astype(kind) for n, x in trained.items()}, path)
            self.assert_equal(self.through(path),
                              {n: x.astype(kind).astype("float32") for n, x in trained.items()})
        numpy.savez(self.at / "i.npz", **{n: x.astype("int64") for n, x in trained.items()})
        self.refused(self.at / "i.npz", "i.npz: array 'conv1.", "it is int64; float16")
        safetensors.numpy.save_file({n: x.astype("int32") for n, x in trained.items()},
                                    self.at / "i.safetensors")
        self.refused(self.at / "i.safetensors", "is I32; float16")

    @unittest.skipIf(torch is None, "there is no torch")
    def test_bfloat16_and_state_dicts(self):
        import safetensors.torch
        half = {n: torch.from_numpy(x).bfloat16() for n, x in self.trained().items()}
        safetensors.torch.save_file(half, self.at / "half.safetensors")
        through = self.through(self.at / "half.safetensors")
        self.assert_equal(through, {n: x.float().numpy() for n, x in half.items()})
        digits = torch.nn.ModuleDict({
            "conv1": torch.nn.Conv2d(1, 16, 3), "conv2": torch.nn.Conv2d(16, 32, 3),
            "dense1": torch.nn.Linear(512, 64), "dense2": torch.nn.Linear(64, 10)})
        digits.load_state_dict(
            safetensors.torch.load_file(self.at / "through.safetensors"), strict=True)

    @unittest.skipIf(torch is None, "there is no torch")
    def test_pickles(self):
        for is_zip in True, False:
            torch.save({"w": torch.zeros(3)}, self.at / "w.pt",
                       _use_new_zipfile_serialization=is_zip)
            self.refused(self.at / "w.pt", "w.pt: it is a pickle of PyTorch's", "save_file")

    def test_names(self):
        trained = self.trained()
        path = self.at / "w.safetensors"
        safetensors.numpy.save_file({"model." + n: x for n, x in trained.items()}, path)
        self.refused(path, "none is in both", r"--rename_weights='^model\.=' would find 8 more")
        self.assert_equal(self.through(path, r"--rename_weights=^model\.="), trained)
        self.refused(path, "it matches no name", flags=["--rename_weights=^x="])
        self.refused(path, "is no regular expression", flags=["--rename_weights=(=x"])
        self.refused(path, "REGEX=TEXT is expected", flags=["--rename_weights=x"])
        self.refused(path, "are both 'a'", flags=["--rename_weights=^.*$=a"])
        safetensors.numpy.save_file({n.split(".", 1)[0] + "." + n: x for n, x in trained.items()},
                                    path)
        self.assert_equal(self.through(path, r"--rename_weights=^\w+\.(.*)=$1"), trained)

    def test_what_is_missing_and_too_much(self):
        trained = self.trained()
        path = self.at / "w.npz"
        numpy.savez(path, **{n: x for n, x in trained.items() if "conv" not in n})
        self.refused(path, "w.npz: it lacks 'conv1.bias', 'conv1.weight', 'conv2.bias' and 1 more",
                     "--partial_weights goes on")
        through = self.through(path, "--partial_weights")
        numpy.testing.assert_array_equal(through["dense1.weight"], trained["dense1.weight"])
        self.assertFalse((through["conv1.weight"] == trained["conv1.weight"]).all())
        result = self.good(f"--weights={path}", "--partial_weights", "--steps=1")
        self.assertIn("lacks 'conv1.bias'", result.stderr)
        numpy.savez(path, position_ids=numpy.arange(3), **trained)
        self.refused(path, "w.npz has 'position_ids', which the model lacks")
        self.assert_equal(self.through(path, "--partial_weights"), trained)
        numpy.savez(path, a=numpy.zeros(3))
        self.refused(path, "none is in both", flags=["--partial_weights"])

    def test_shapes(self):
        trained = self.trained()
        path = self.at / "w.safetensors"
        for shape, words in {(64, 512, 1): "it has 3 dims and not 2",
                             (512, 64): "dim 0 is 512 and not 64"}.items():
            changed = dict(trained, **{"dense1.weight": numpy.zeros(shape, "float32")})
            safetensors.numpy.save_file(changed, path)
            self.refused(path, "w.safetensors: 'dense1.weight' is [", words)

    def test_damaged_files(self):
        trained = self.trained()
        path = self.at / "w.safetensors"
        safetensors.numpy.save_file(trained, path)
        whole = path.read_bytes()
        for size in list(range(0, 40)) + list(range(40, len(whole), len(whole) // 20)):
            path.write_bytes(whole[:size])
            self.refused(path, "w.safetensors")
        path.write_bytes(whole + b"x")
        self.refused(path, "its tensors end at")
        length = struct.unpack("<Q", whole[:8])[0]
        header = json.loads(whole[8:8 + length])

        def with_header(change):
            changed = json.loads(json.dumps(header))
            change(changed["conv1.bias"])
            text = json.dumps(changed).encode()
            path.write_bytes(struct.pack("<Q", len(text)) + text + whole[8 + length:])

        for change, words in [
                (lambda e: e.update(dtype="F31"), "is of type 'F31', which nobody knows"),
                (lambda e: e.update(dtype=3), "is of type ''"),
                (lambda e: e.update(shape=[2, -8]), "no shape and place of whole numbers"),
                (lambda e: e.update(shape=[1e300]), "no shape and place of whole numbers"),
                (lambda e: e.update(shape=[2**40, 2**40]), "larger than any file"),
                (lambda e: e.update(shape=[17]), "has 64 bytes, and its shape is of 68"),
                (lambda e: e.update(data_offsets=[0, 2**50]), "cut short, or damaged"),
                (lambda e: e.update(data_offsets=[4, 0]), "cut short, or damaged"),
                (lambda e: e.pop("shape"), "has no dtype, shape and data_offsets"),
        ]:
            with_header(change)
            self.refused(path, "w.safetensors: 'conv1.bias'", words)
        path = self.at / "w.npz"
        whole = (self.at / "trained.npz").read_bytes()
        for size in range(1, len(whole), len(whole) // 20):
            path.write_bytes(whole[:size])
            self.refused(path, "w.npz")

    def test_flags(self):
        self.refused(self.at / "none.safetensors", "no such file")
        result = run(MODEL, "--partial_weights", "--steps=1")
        self.assertIn("--partial_weights needs --weights", result.stderr)
        result = run(MODEL, "--weights=", "--steps=1")
        self.assertIn("--weights: a file or a folder is expected", result.stderr)
        self.trained()
        result = run(MODEL, f"--weights={self.at}/trained.npz", f"--out={self.at}/trained.npz")
        self.assertEqual(result.returncode, 2)
        self.assertIn("trained.npz", result.stderr)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1] + sys.argv[3:])
