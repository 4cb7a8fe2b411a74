"""Plans: what they say, files, the certificate, pages."""

import html.parser
import json
import subprocess
import unittest

import isomer
from support import BERT, MLP, SOURCE, Case, program, small_plan


class PlanTest(Case):
    @classmethod
    def setUpClass(cls):
        import warnings
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            cls.model = isomer.load(BERT)
            cls.plan = small_plan(cls.model)

    def test_what_it_says(self):
        plan = self.plan
        self.assertEqual((plan.model_name, plan.machine_name, plan.devices, plan.mode),
                         ("bert_tiny", "laptop_cpu", 4, "training"))
        self.assertEqual((plan.precision, plan.optimizer, plan.loss), ("float32", "sgd", "loss"))
        self.assertEqual([tensor.name for tensor in plan.inputs], ["input_ids", "target"])
        self.assertEqual([tensor.name for tensor in plan.outputs], ["encoded", "loss"])
        self.assertIn("a step", plan.headline)
        self.assertGreater(plan.predicted_step_us, 0)
        # Of the fullest device; the peak is of what is simulated most closely.
        self.assertAlmostEqual(sum(plan.memory.values()) / plan.predicted_peak_bytes, 1, places=1)
        self.assertIn("data_parallel", plan.baselines)
        self.assertGreaterEqual(plan.baselines["data_parallel"].step_us, plan.predicted_step_us)
        self.assertEqual(json.loads(plan.to_json()), plan.summary)
        self.assertTrue(plan.is_priced and plan.fits)
        self.assertIn("Predicted", plan.explain())
        self.assertIn("digraph", plan.graph_dot())
        self.assertTrue(plan.graph_text().startswith("%0 = input"))
        self.assertIn("bert_tiny", repr(plan))

    def test_operators(self):
        operators = self.plan.operators
        products = [op for op in operators if op.kind == "linear"]
        self.assertGreaterEqual(len(products), 8)
        for op in operators:
            self.assertEqual(tuple(size // degree for size, degree in zip(op.shape, op.degrees)),
                             op.shard_shape)
            self.assertTrue(set(op.devices) <= set(range(4)))
            self.assertEqual(op.time_us, op.forward_us + op.backward_us)
        self.assertTrue(all(op.time_us > 0 for op in products))
        self.assertTrue(all(op.split for op in products))
        self.assertEqual(products[0].devices, (0, 1, 2, 3))
        busy = sum(op.time_us for op in operators)
        self.assertLess(busy, 2 * self.plan.predicted_step_us)

    def test_operators_of_low_precision_have_its_dtype(self):
        plan = small_plan(precision="bfloat16")
        self.assertIn("bf16", {op.dtype for op in plan.operators if op.kind in ("linear", "matmul")})
        self.assertIn("it computes in bfloat16", plan.deviations)

    def test_files(self):
        path = self.folder / "it's \"a\" plan;$x.plan"
        self.plan.save(path)
        loaded = isomer.load_plan(path)
        self.assertFalse(loaded.is_priced)
        self.assertEqual(loaded.predicted_step_us, self.plan.predicted_step_us)
        self.assertEqual(len(loaded.operators), len(self.plan.operators))
        self.assertIsNone(loaded.operators[0].time_us)
        with self.refuses("plan.price(machine)"):
            _ = loaded.headline
        again = self.folder / "again.plan"
        loaded.save(again)
        self.assertEqual(again.read_bytes(), path.read_bytes())
        self.assertIn("bert_tiny", loaded._repr_html_())
        program("isomer-verify", "plan", path, f"--model={BERT}")

    def test_price(self):
        self.plan.save(self.folder / "x.plan")
        loaded = isomer.load_plan(self.folder / "x.plan")
        machine = isomer.Machine("laptop_cpu", devices_per_node=4)
        priced = loaded.price(machine)
        self.assertEqual(priced.headline, self.plan.headline)
        self.assertIsNone(priced.stop_reason)
        self.assertTrue(priced.verify(self.model))
        elsewhere = loaded.price(isomer.Machine("dgx_h100", nodes=1, devices_per_node=4))
        self.assertLess(elsewhere.predicted_step_us, self.plan.predicted_step_us)
        with self.refuses("4 devices", "the machine has 2"):
            loaded.price(isomer.Machine("laptop_cpu", devices_per_node=2))
        tiny = loaded.price(isomer.Machine("laptop_cpu", devices_per_node=4,
                                           device_memory_gib=0.0001))
        self.assertFalse(tiny.fits)

    def test_the_certificate(self):
        found = self.plan.verify(self.model)
        self.assertTrue(found)
        self.assertEqual((found.accepted, found.reason), (True, ""))
        self.assertEqual(sum(found.steps_by.values()), found.steps)
        self.assertEqual(found.steps, len(self.plan.steps))
        self.assertEqual(found.loss, "mse of 'encoded' f32[8,16,64] and 'target'")
        self.assertGreater(self.plan.verify(reprove=True).rules_proved, 3)
        self.assertEqual(self.plan.verify(schedule="all").scheduled_devices, 4)
        self.assertEqual(self.plan.verify(schedule="none").scheduled_devices, 0)
        self.assertTrue(self.plan.verify(BERT))

    def test_another_model_is_refused(self):
        found = self.plan.verify(MLP)
        self.assertFalse(found)
        self.assertIn("not that of zoo:mlp", found.reason)

    def test_a_tampered_plan_is_refused(self):
        path = self.folder / "plan.textproto"
        self.plan.save(path)
        text = path.read_text()
        for what, change in [
            ("seal", lambda t: t.replace("predicted_step_us: ", "predicted_step_us: 1", 1)),
            ("", lambda t: t.replace("strides: 1", "strides: 0", 1)),
        ]:
            changed = change(text)
            self.assertNotEqual(changed, text)
            path.write_text(changed)
            try:
                found = isomer.load_plan(path).verify()
            except isomer.InputError:
                continue  # Its reader sees it.
            self.assertFalse(found)
            self.assertIn(what, found.reason)

    def test_new_predictions_do_not_seal_a_tampered_plan(self):
        path = self.folder / "plan.textproto"
        self.plan.save(path)
        text = path.read_text()
        changed = text.replace('name: "bert_tiny"', 'name: "bert_tinx"', 1)
        self.assertNotEqual(changed, text)
        path.write_text(changed)
        self.assertIn("seal", isomer.load_plan(path).verify().reason)
        machine = isomer.Machine("laptop_cpu", devices_per_node=4)
        self.assertFalse(isomer.load_plan(path).price(machine).verify())

    def test_arguments_of_verify(self):
        for arguments, parts in [({"schedule": "x"}, ["schedule=x"]), ({"schedule": 3}, ["schedule"]),
                                 ({"rules": "no.rules"}, ["no.rules"]), ({"reprove": 1}, ["reprove"]),
                                 ({"model": 3}, ["int"]), ({"model": "no.onnx"}, ["no.onnx"])]:
            with self.subTest(arguments=arguments), self.refuses(*parts):
                self.plan.verify(**arguments)

    def test_damaged_files(self):
        self.plan.save(self.folder / "x.plan")
        data = (self.folder / "x.plan").read_bytes()
        for name, contents in [("cut", data[:-100]), ("empty", b""), ("csv", b"1,2,3\n")]:
            path = self.folder / name
            path.write_bytes(contents)
            with self.subTest(name=name), self.refuses(name):
                isomer.load_plan(path)
        with self.refuses("no.plan: no such file"):
            isomer.load_plan("no.plan")
        with self.refuses("folder to write to does not exist"):
            self.plan.save(self.folder / "none" / "x.plan")

    def test_pages_and_drawings(self):
        for name, write in [("x.svg", self.plan.timeline), ("x.json", self.plan.trace)]:
            write(self.folder / name)
            self.assertGreater((self.folder / name).stat().st_size, 1000)
        try:
            self.plan.report(self.folder / "x.html")
        except isomer.InputError as error:
            self.assertIn("node-d3", str(error))
        else:
            self.assertIn("bert_tiny", (self.folder / "x.html").read_text())
        with self.refuses("folder to write to does not exist"):
            self.plan.timeline(self.folder / "none" / "x.svg")
        with self.refuses("mode=inference"):
            self.plan.export_onnx(self.folder / "x.onnx")
        inference = isomer.optimize(self.model, isomer.Machine("laptop_cpu", devices_per_node=1),
                                    mode="inference", cache=False)
        inference.export_onnx(self.folder / "x.onnx")
        self.assertEqual(isomer.load(self.folder / "x.onnx").outputs[0].shape, (8, 16, 64))

    def test_exports_for_frameworks_are_the_programs(self):
        for to in ("pytorch", "jax"):
            file = self.folder / f"plan_{to}.py"
            self.plan.export(file, to)
            saved = self.folder / "exported.plan"
            self.plan.save(saved)
            by_program = self.folder / "by_program" / file.name
            by_program.parent.mkdir(exist_ok=True)
            program("isomer-optimize", "export", saved, f"--to={to}", f"--out={by_program}")
            self.assertEqual(file.read_bytes(), by_program.read_bytes())
            self.assertEqual(file.with_suffix(".safetensors").read_bytes(),
                             by_program.with_suffix(".safetensors").read_bytes())
        with self.refuses("there are pytorch and jax"):
            self.plan.export(self.folder / "x.py", "tensorflow")

    def test_notebooks_show_names_as_text(self):
        graph = self.folder / "graph.txt"
        graph.write_text('%0 = input "<script>alert(1)</script>" : f32[8,8]\n')
        self.assertNotIn("<script", self.plan._repr_html_())
        html.parser.HTMLParser().feed(self.plan._repr_html_())
        name = isomer.plan._table(("", ""), [("<script>", "&")])
        self.assertIn("&lt;script&gt;", name)


class InstalledDataTest(Case):
    def test_rules_and_machines_of_a_folder(self):
        """As in an installed package, whose files lie below isomer/data."""
        import os
        import sys
        data = self.folder / "data"
        for name in ["rules/default.rules", "optimizer/machines/laptop_cpu.textproto"]:
            (data / name).parent.mkdir(parents=True, exist_ok=True)
            (data / name).write_bytes((SOURCE / name).read_bytes())
        code = ("import isomer, os, sys; isomer._isomer.set_data_folder(os.fsencode(sys.argv[1]));"
                "plan = isomer.optimize('zoo:mlp?layers=1&hidden=32&batch=16', 'laptop_cpu', "
                "cache=False); assert plan.verify()")
        # rules are read from there: without them nothing is found.
        subprocess.run([sys.executable, "-c", code, data], check=True, env=dict(os.environ))
        (data / "rules/default.rules").write_text("nonsense")
        found = subprocess.run([sys.executable, "-c", code, data], env=dict(os.environ),
                               capture_output=True, text=True, check=False)
        self.assertIn("data/rules/default.rules", found.stderr)


if __name__ == "__main__":
    unittest.main()
