"""torch modules, exported on the spot."""

import gc
import os
import pathlib
import unittest

import numpy as np
import torch

import isomer
from support import Case, small_plan


class Perceptron(torch.nn.Module):
    def __init__(self, inputs=16, hidden=32, classes=8):
        super().__init__()
        self.first = torch.nn.Linear(inputs, hidden)
        self.drop = torch.nn.Dropout(0.5)
        self.second = torch.nn.Linear(hidden, classes)

    def forward(self, features):
        return self.second(self.drop(torch.relu(self.first(features))))


class TorchTest(Case):
    def setUp(self):
        super().setUp()
        torch.manual_seed(0)
        self.module = Perceptron()
        self.example = torch.randn(16, 16)

    def test_both_exporters_compute_what_torch_does(self):
        self.module.eval()
        expected = self.module(self.example).detach().numpy()
        for exporter in ("auto", "dynamo", "torchscript"):
            with self.subTest(exporter=exporter):
                model = isomer.load(self.module, self.example, exporter=exporter,
                                    input_names=["features"])
                self.assertEqual(model.source, "Perceptron")
                plan = small_plan(model, mode="inference")
                self.assertTrue(plan.verify(model))
                outputs = plan.run({"features": self.example}).outputs
                np.testing.assert_allclose(list(outputs.values())[0], expected, atol=1e-6)

    def test_gradients_are_torchs(self):
        model = isomer.load(self.module, self.example, input_names=["features"])
        plan = small_plan(model, loss="cross_entropy")
        labels = torch.randint(0, 8, (16,))
        names = {tensor.dtype: tensor.name for tensor in plan.inputs}
        outputs, gradients = plan.run({"features": self.example, names["i64"]: labels})
        self.module.eval()
        loss = torch.nn.functional.cross_entropy(self.module(self.example), labels)
        loss.backward()
        self.assertAlmostEqual(float(outputs[plan.loss]), float(loss), places=5)
        for name in ("first.bias", "second.bias"):
            np.testing.assert_allclose(gradients[name],
                                       self.module.get_parameter(name).grad.numpy(), atol=1e-6)

    def test_buffers_and_frozen_parameters_are_not_trained(self):
        class Scaled(Perceptron):
            def __init__(self):
                super().__init__()
                self.register_buffer("positions", torch.arange(16).float())

            def forward(self, features):
                return super().forward(features + 0.01 * self.positions)

        module = Scaled()
        module.second.weight.requires_grad_(False)
        for exporter in ("dynamo", "torchscript"):
            with self.subTest(exporter=exporter):
                kept = self.folder / f"{exporter}.onnx"
                model = isomer.load(module, self.example, exporter=exporter, save_to=kept)
                self.assertEqual({tensor.name for tensor in model.weights},
                                 {"first.weight", "first.bias", "second.bias"})
                # The file says so to whoever reads it.
                plan = small_plan(model)
                plan.save(self.folder / "net.plan")
                self.assertTrue(isomer.load_plan(self.folder / "net.plan").verify(kept))
        # Of a module to run, all are weights.
        module.requires_grad_(False)
        model = isomer.load(module, self.example)
        self.assertEqual(len(model.weights), 4)

    def test_rows_of_padding_are_not_trained(self):
        class Padded(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.table = torch.nn.Embedding(10, 8, padding_idx=3)
                self.table.weight.data[3] = torch.arange(8).float()
                self.head = torch.nn.Linear(8, 4)

            def forward(self, tokens):
                return self.head(self.table(tokens))

        module, tokens = Padded(), torch.tensor([[3, 1, 4], [1, 3, 3]])
        plan = small_plan(isomer.load(module, tokens, exporter="dynamo"), loss="mse")
        target = torch.randn(2, 3, 4)
        names = {tensor.dtype: tensor.name for tensor in plan.inputs}
        outputs, gradients = plan.run({names["i64"]: tokens, names["f32"]: target})
        loss = torch.nn.functional.mse_loss(module(tokens), target)
        loss.backward()
        self.assertAlmostEqual(float(outputs[plan.loss]), float(loss), places=5)
        for name, parameter in module.named_parameters():
            np.testing.assert_allclose(gradients[name], parameter.grad.numpy(), atol=1e-6)
        self.assertFalse(gradients["table.weight"][3].any())
        # The older exporter says nothing of it.
        model = isomer.load(module, tokens, exporter="torchscript")
        self.assertTrue(any("padding_idx" in note and "table" in note for note in model.notes))

    def test_what_cannot_be_exported_is_said_in_a_line(self):
        class Singular(torch.nn.Module):
            def forward(self, features):
                return torch.linalg.svdvals(features)

        read, write = os.pipe()
        kept = os.dup(2)
        os.dup2(write, 2)
        try:
            with self.refuses("Singular cannot be exported: ", "torchscript: UnsupportedOperatorError"):
                isomer.load(Singular(), self.example)
        finally:
            os.dup2(kept, 2)
            os.close(kept)
            os.close(write)
        with os.fdopen(read) as text:
            self.assertEqual(text.read(), "")

    def test_an_export_needs_weights_that_stay(self):
        model = isomer.load(Perceptron(inputs=1024, hidden=2048), torch.randn(4, 1024),
                            exporter="dynamo")
        with self.refuses("save_to=FILE"):
            small_plan(model).export(self.folder / "net_plan.py")

    def test_the_module_stays_as_it_was(self):
        self.module.train()
        self.module.first.eval()
        isomer.load(self.module, self.example)
        self.assertTrue(self.module.training and self.module.drop.training)
        self.assertFalse(self.module.first.training)

    def test_a_module_of_two_inputs(self):
        class Two(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.layer = torch.nn.Linear(8, 8)

            def forward(self, left, right):
                return self.layer(left) + right

        model = isomer.load(Two(), (torch.randn(4, 8), torch.randn(4, 8)),
                            input_names=["left", "right"])
        self.assertEqual([tensor.name for tensor in model.inputs], ["left", "right"])
        # By name, in any order; as the networks of transformers are called.
        module, left, right = Two().eval(), torch.randn(4, 8), torch.randn(4, 8)
        for exporter in ("dynamo", "torchscript"):
            model = isomer.load(module, {"right": right, "left": left}, exporter=exporter)
            self.assertEqual([tensor.name for tensor in model.inputs], ["left", "right"])
            outputs = small_plan(model, mode="inference").run({"left": left, "right": right}).outputs
            np.testing.assert_allclose(list(outputs.values())[0],
                                       module(left, right).detach().numpy(), atol=1e-6)
        with self.refuses("example_inputs: 'left' is a int"):
            isomer.load(module, {"left": 1})

    def test_inputs_in_tuples_lists_and_dicts(self):
        class Nested(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.layer = torch.nn.Linear(8, 6)

            def forward(self, batch, extra):
                left, right = batch["pair"]
                return {"sum": self.layer(left) + right, "rest": extra[0] * batch["scale"]}

        module = Nested().eval()
        given = {"batch": {"pair": (torch.randn(4, 8), torch.randn(4, 6)),
                           "scale": torch.randn(4, 3)},
                 "extra": [torch.randn(4, 3)]}
        for example in (given, tuple(given.values())):
            for exporter in ("dynamo", "torchscript"):
                model = isomer.load(module, example, exporter=exporter)
                self.assertEqual([tensor.shape for tensor in model.inputs],
                                 [(4, 8), (4, 6), (4, 3), (4, 3)])
                tensors = [*given["batch"]["pair"], given["batch"]["scale"], *given["extra"]]
                arrays = {tensor.name: value for tensor, value in zip(model.inputs, tensors)}
                outputs = small_plan(model, mode="inference").run(arrays).outputs
                found = {array.shape: array for array in outputs.values()}
                for expected in module(**given).values():
                    np.testing.assert_allclose(found[tuple(expected.shape)],
                                               expected.detach().numpy(), atol=1e-6)
        for example, where in [(({"a": 1},), r"number 0\['a'\] is a int"),
                               ({"batch": [None]}, r"'batch'\[0\] is a NoneType")]:
            with self.assertRaisesRegex(isomer.InputError, where):
                isomer.load(module, example)

    def test_large_weights_stay_in_their_file(self):
        module = Perceptron(inputs=1024, hidden=2048)  # 8.4 MB
        example = torch.randn(4, 1024)
        kept = self.folder / "net.onnx"
        model = isomer.load(module, example, exporter="dynamo", save_to=kept)
        plan = small_plan(model)
        self.assertEqual({pathlib.Path(file).parent for file in plan._handle.weight_files},
                         {self.folder})
        plan.save(self.folder / "net.plan")
        self.assertLess((self.folder / "net.plan").stat().st_size, 1 << 20)
        self.assertTrue(isomer.load_plan(self.folder / "net.plan").verify(kept))

    def test_a_temporary_export_goes_with_its_plan(self):
        module = Perceptron(inputs=1024, hidden=2048)
        model = isomer.load(module, torch.randn(4, 1024), exporter="dynamo")
        plan = small_plan(model)
        folder = os.path.dirname(model._export.path)
        del model
        gc.collect()
        self.assertTrue(os.path.isdir(folder))
        self.assertIn("loss", plan.run(plan.random_inputs()).outputs)
        with self.refuses("save_to=FILE"):
            plan.save(self.folder / "x.plan")
        del plan
        gc.collect()
        self.assertFalse(os.path.exists(folder))

    def test_a_small_one_is_saved_all_the_same(self):
        plan = small_plan(isomer.load(self.module, self.example))
        plan.save(self.folder / "x.plan")
        self.assertTrue(isomer.load_plan(self.folder / "x.plan").verify())

    def test_what_is_refused(self):
        class Branches(torch.nn.Module):
            def forward(self, x):
                return x * 2 if float(x.sum()) > 0 else torch.linalg.svd(x)[0]

        for arguments, parts in [
            ({}, ["needs example_inputs"]),
            ({"example_inputs": []}, ["needs example_inputs"]),
            ({"example_inputs": [1]}, ["number 0 is a int"]),
            ({"example_inputs": self.example, "input_names": ["a", "b"]}, ["2 names of 1 inputs"]),
            ({"example_inputs": self.example, "exporter": "foo"}, ["exporter=foo"]),
            ({"example_inputs": self.example, "batch_size": 3}, ["batch_size"]),
            ({"example_inputs": self.example, "save_to": "/none/x.onnx"}, ["no folder /none"]),
            ({"example_inputs": torch.randn(16, 5)}, ["Perceptron cannot be exported", "dynamo: ",
                                                      "torchscript: "]),
        ]:
            with self.subTest(arguments=list(arguments)), self.refuses(*parts):
                isomer.load(self.module, **arguments)
        with self.refuses("Branches"):
            isomer.load(Branches(), self.example, exporter="dynamo")

    def test_tensors_are_inputs(self):
        plan = small_plan()
        arrays = plan.random_inputs()
        tensors = {name: torch.from_numpy(array) for name, array in arrays.items()}
        name = next(tensor.name for tensor in plan.inputs if tensor.dtype == "f32")
        expected = plan.run(arrays).outputs["loss"]
        self.assertEqual(plan.run(tensors).outputs["loss"], expected)
        tensors[name] = tensors[name].clone().requires_grad_()
        self.assertEqual(plan.run(tensors).outputs["loss"], expected)
        tensors[name] = tensors[name].detach().bfloat16()
        self.assertTrue(np.isfinite(plan.run(tensors).outputs["loss"]))


if __name__ == "__main__":
    unittest.main()
