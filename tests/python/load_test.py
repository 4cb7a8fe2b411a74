"""Loading models and machines, and what is refused of them."""

import os
import pathlib
import unittest
import warnings

import isomer
from support import BERT, DYNAMIC, SOURCE, Case, error_of


class LoadTest(Case):
    def test_an_onnx_file(self):
        model = isomer.load(BERT)
        self.assertEqual(model.name, "bert_tiny")
        self.assertEqual(model.inputs, (isomer.Tensor("input_ids", "i64", (8, 16)),))
        self.assertEqual(model.outputs[0].shape, (8, 16, 64))
        self.assertEqual(model.num_parameters, 109312)
        self.assertIsNone(model.loss)
        self.assertIn("matmul", model.describe())
        self.assertIn("109,312", repr(model))

    def test_dims_by_name_and_batch_size(self):
        self.assertEqual(isomer.load(DYNAMIC, dims={"batch": 8}).inputs[0].shape[0], 8)
        self.assertEqual(isomer.load(str(DYNAMIC), batch_size=4).inputs[0].shape[0], 4)

    def test_the_zoo(self):
        names = {network.name: network for network in isomer.zoo()}
        self.assertIn("bert_large", names)
        model = isomer.load("zoo:mlp?layers=1", batch_size=4)
        self.assertEqual(model.inputs[0].shape[0], 4)
        self.assertEqual(names["mlp"].parameters["hidden"], 8192)

    def test_notes_are_warnings_of_the_caller(self):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            model = isomer.load(BERT)
        self.assertEqual([str(w.message) for w in caught], list(model.notes))
        self.assertEqual({pathlib.Path(w.filename).name for w in caught}, {"load_test.py"})
        self.assertTrue(all(issubclass(w.category, isomer.Note) for w in caught))

    def test_what_is_refused(self):
        for source, parts in [
            ("no.onnx", ["no.onnx: no such file"]),
            ("zoo:nope", ["zoo:nope: no such network", "bert_large"]),
            ("zoo:mlp?width=3", ["no parameter 'width'"]),
            ("", ["source: the path is empty"]),
            ("a\0b", ["null character"]),
            (3, ["source", "int"]),
            (None, ["NoneType"]),
            ("/", ["/", "directory"]),
            (BERT.parent / "digits.csv", ["digits.csv"]),
            (b"zoo:\xff", ["no such network"]),
        ]:
            with self.subTest(source=source), self.refuses(*parts):
                isomer.load(source)

    def test_dims_that_are_refused(self):
        for dims, parts in [
            ({}, ["'image'", "batch_size=N"]),
            ({"batch": 0}, ["dims: batch=0"]),
            ({"batch": 2.5}, ["batch=2.5", "whole number"]),
            ({"batch": True}, ["whole number"]),
            ({"other": 2}, ["other", "'batch'"]),
            ({"bat=ch,x": 2}, ["bat=ch,x"]),
            ({3: 2}, ["a name is a str"]),
            ([("batch", 2)], ["a dict", "list"]),
        ]:
            with self.subTest(dims=dims), self.refuses(*parts):
                isomer.load(DYNAMIC, dims=dims)

    def test_arguments_that_do_not_apply(self):
        with self.refuses("dims", "only an .onnx file"):
            isomer.load("zoo:mlp", dims={"a": 3})
        for name, value in [("example_inputs", [1]), ("save_to", "x.onnx"), ("input_names", ["a"]),
                            ("exporter", "dynamo")]:
            with self.subTest(name=name), self.refuses(name, "torch.nn.Module"):
                isomer.load("zoo:mlp", **{name: value})

    def test_names_that_break_quoting(self):
        folder = self.folder / "a 'b' \"c\" $d\u00e9"
        folder.mkdir()
        path = folder / "net;--loss=mse.onnx"
        path.write_bytes(BERT.read_bytes())
        self.assertEqual(isomer.load(path).num_parameters, 109312)
        strange = os.fsencode(folder) + b"/\xff.onnx"
        with open(strange, "wb") as file:
            file.write(BERT.read_bytes())
        self.assertEqual(isomer.load(os.fsdecode(strange)).num_parameters, 109312)
        with self.refuses("no such file"):
            isomer.load(folder / "other\n.onnx")

    def test_unsupported_of_a_file(self):
        self.assertEqual(isomer.unsupported(BERT), [])
        with self.refuses("no.onnx"):
            isomer.unsupported("no.onnx")


    def test_operators_that_are_declared(self):
        folder = SOURCE / "models/data/operators"
        with self.refuses("unknown operator 'scaled_glu'; isomer.declare_operators(FILE) declares others"):
            isomer.load(folder / "gated.txt")
        isomer.declare_operators(folder / "examples.txt")
        self.assertIn("scaled_glu", isomer.load(folder / "gated.txt").describe())
        with self.refuses("examples.txt:5:10: there is an operator 'scaled_glu' already"):
            isomer.declare_operators(folder / "examples.txt")


class MachineTest(Case):
    def test_a_preset(self):
        machine = isomer.Machine("dgx_h100", nodes=2, devices_per_node=4)
        self.assertEqual((machine.devices, machine.nodes), (8, 2))
        self.assertEqual(machine.memory_bytes, 80 << 30)
        self.assertIn("H100", machine.device_name)
        self.assertEqual(repr(machine), "Machine('dgx_h100: 2 nodes of 4 H100-SXM5-80GB')")
        self.assertEqual(machine.levels[-1].count, 2)
        self.assertGreater(machine.levels[0].bytes_per_s, 1e11)
        self.assertTrue(machine._repr_html_().startswith("<svg"))
        self.assertIn("all-reduce", machine.describe())

    def test_all_presets(self):
        for name in isomer.machine_presets():
            self.assertEqual(isomer.Machine(name).name, name)

    def test_a_file_and_less_memory(self):
        path = self.folder / "mine.textproto"
        path.write_bytes((BERT.parents[2] / "optimizer/machines/laptop_cpu.textproto").read_bytes())
        self.assertEqual(isomer.Machine(path, device_memory_gib=0.5).memory_bytes, 1 << 29)

    def test_what_is_refused(self):
        for arguments, parts in [
            ({"spec": "nope"}, ["'nope'", "dgx_h100"]),
            ({"spec": ""}, ["machine: the path is empty"]),
            ({"spec": "dgx_h100", "nodes": -1}, ["nodes=-1"]),
            ({"spec": "dgx_h100", "nodes": 1.0}, ["nodes=1.0", "whole number"]),
            ({"spec": "dgx_h100", "nodes": 10**7}, ["65536 devices"]),
            ({"spec": "dgx_h100", "device_memory_gib": float("nan")}, ["device_memory_gib"]),
            ({"spec": "dgx_h100", "device_memory_gib": "1"}, ["device_memory_gib='1'"]),
        ]:
            with self.subTest(arguments=arguments), self.refuses(*parts):
                isomer.Machine(**arguments)

    def test_the_lines_are_the_programs(self):
        with self.refuses(error_of("zoo:mlp", "--machine=nope", "--out=x")):
            isomer.Machine("nope")


if __name__ == "__main__":
    unittest.main()
