"""Plans on virtual devices: arrays in and out."""

import re
import threading
import unittest
import warnings

import numpy as np

import isomer
from support import BERT, MLP, Case, program, small_plan


class RunTest(Case):
    @classmethod
    def setUpClass(cls):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            cls.plan = small_plan(str(BERT))
        cls.inputs = cls.plan.random_inputs()
        cls.result = cls.plan.run(cls.inputs)

    def with_input(self, **arrays):
        return {**self.inputs, **arrays}

    def loss_of(self, **arrays):
        return float(self.plan.run(self.with_input(**arrays)).outputs["loss"])

    def test_arrays_of_the_models_types(self):
        self.assertEqual(self.inputs["input_ids"].dtype, np.int64)
        outputs, gradients = self.result
        self.assertEqual((outputs["encoded"].shape, outputs["encoded"].dtype),
                         ((8, 16, 64), np.float32))
        self.assertEqual(outputs["loss"].shape, ())
        self.assertEqual({name: array.shape for name, array in gradients.items()},
                         {weight.name: weight.shape for weight in self.plan.weights})
        outputs["encoded"][:] = 0  # It is the caller's.

    def test_the_outputs_of_the_program(self):
        path = self.folder / "x.plan"
        self.plan.save(path)
        text = program("isomer-run", path, "--steps=1", "--print_outputs").stdout
        shown = re.search(r"encoded f32\[8,16,64\]: (.*) \.\.", text)[1].split()
        encoded = self.plan.run(self.inputs).outputs["encoded"].ravel()
        self.assertEqual([f"{value:.6g}" for value in encoded[:len(shown)]], shown)

    def test_the_gradient_is_the_slope_of_the_loss(self):
        weight = next(w for w in self.plan.weights if w.shape == (64, 256))
        weights = self.plan.session().parameters()
        gradient = self.result.gradients[weight.name]
        step = 1e-2 * gradient / np.linalg.norm(gradient)
        losses = [float(self.plan.run(self.inputs, weights={weight.name: weights[weight.name] + d})
                        .outputs["loss"]) for d in (step, -step)]
        slope = (losses[0] - losses[1]) / 2e-2
        self.assertAlmostEqual(slope / np.linalg.norm(gradient), 1, places=2)

    def test_the_same_numbers_otherwise_stored(self):
        expected = float(self.result.outputs["loss"])
        target, ids = self.inputs["target"], self.inputs["input_ids"]
        read_only = target.copy()
        read_only.flags.writeable = False
        for name, arrays in {
            "float64": {"target": target.astype(np.float64)},
            "column by column": {"target": np.asfortranarray(target)},
            "every other number": {"target": np.repeat(target, 2, axis=2)[..., ::2]},
            "backwards": {"target": target[::-1].copy()[::-1]},
            "other byte order": {"target": target.astype(">f4"), "input_ids": ids.astype(">i8")},
            "long double": {"target": target.astype(np.longdouble)},
            "read only": {"target": read_only},
            "int8": {"input_ids": ids.astype(np.int8)},
            "uint64": {"input_ids": ids.astype(np.uint64)},
            "lists": {"input_ids": ids.tolist(), "target": target.tolist()},
            "memory": {"input_ids": memoryview(ids)},
        }.items():
            with self.subTest(name=name):
                self.assertEqual(self.loss_of(**arrays), expected)
        half = target.astype(np.float16)
        self.assertEqual(self.loss_of(target=half), self.loss_of(target=half.astype(np.float32)))

    def test_numbers_that_are_not_finite_are_numbers(self):
        target = self.inputs["target"]
        self.assertTrue(np.isnan(self.loss_of(target=target * np.nan)))
        self.assertEqual(self.loss_of(target=target * 0 + np.inf), np.inf)
        with self.refuses("'target'", "finite"):
            self.plan.check(self.with_input(target=target * np.nan))

    def test_inputs_that_are_refused(self):
        target, ids = self.inputs["target"], self.inputs["input_ids"]
        masked = np.ma.masked_array(target, mask=target > 0)
        for name, inputs, parts in [
            ("missing", {}, ["input 'input_ids' is missing", "i64[8,16]"]),
            ("unknown", self.with_input(x=1), ["no input is called 'x'", "input_ids, target"]),
            ("shape", self.with_input(input_ids=ids[:4]), ["'input_ids'", "(4, 16)", "(8, 16)"]),
            ("none of it", self.with_input(input_ids=ids[:0]), ["(0, 16)"]),
            ("a dim more", self.with_input(input_ids=ids[None]), ["(1, 8, 16)"]),
            ("a number", self.with_input(input_ids=3), ["()"]),
            ("floats for integers", self.with_input(input_ids=ids * 1.0), ["float64", "integers"]),
            ("integers for floats", self.with_input(target=target.astype(int)), ["int64", "floats"]),
            ("truth values", self.with_input(input_ids=ids > 3), ["bool", "integers"]),
            ("complex", self.with_input(target=target * 1j), ["complex"]),
            ("objects", self.with_input(target=object()), ["object"]),
            ("text", self.with_input(target="abc"), ["'target'"]),
            ("none", self.with_input(target=None), ["object"]),
            ("ragged", self.with_input(target=[[1.0], [1.0, 2.0]]), ["'target'"]),
            ("dates", self.with_input(input_ids=ids.astype("M8[s]")), ["datetime64"]),
            ("masked", self.with_input(target=masked), ["masked"]),
            ("no table entry", self.with_input(input_ids=ids + 10**6), ["embedding", "[0, 128)"]),
            ("negative", self.with_input(input_ids=ids - 10**6), ["[0, 128)"]),
            ("too large", self.with_input(input_ids=ids + 2**60), ["too large"]),
            ("a list", [1], ["a dict", "list"]),
            ("names", {1: 2}, ["a name is a str"]),
        ]:
            with self.subTest(name=name), self.refuses(*parts):
                self.plan.run(inputs)

    def test_weights_that_are_refused(self):
        name = self.plan.weights[0].name
        for weights, parts in [({"no": [1.0]}, ["no weight is called 'no'"]),
                               ({name: np.zeros(3)}, [name, "(3,)"]),
                               ({name: np.zeros(3, int)}, [name])]:
            with self.refuses(*parts):
                self.plan.run(self.inputs, weights=weights)
        for seed in (-1, 1.5, True, 2**64):
            with self.refuses("seed="):
                self.plan.run(self.inputs, seed=seed)

    def test_the_check(self):
        check = self.plan.check()
        self.assertTrue(check)
        self.assertLess(check.max_relative_error, 1e-5)
        self.assertEqual(len(check.gradients), len(self.plan.weights))
        self.assertIsNone(check.in_float32)
        self.assertTrue(check.compared)
        low = small_plan(MLP, precision="bfloat16", optimizer="adam").check()
        self.assertTrue(low)
        self.assertTrue(low.in_float32.agrees)

    def test_training(self):
        session = self.plan.session()
        losses = [float(session.step(self.inputs, 0.5)["loss"]) for _ in range(5)]
        self.assertEqual(losses, sorted(losses, reverse=True))
        self.assertLess(float(session.evaluate(self.inputs)["loss"]), losses[-1])
        self.assertGreater(session.step_us, 0)
        before = self.plan.session().parameters()
        first = self.plan.session()
        first.step(self.inputs, 0.5)
        after = first.parameters()
        for name, gradient in self.result.gradients.items():
            np.testing.assert_allclose(after[name], before[name] - 0.5 * gradient, atol=1e-6)

    def test_decay_and_clipping(self):
        session = self.plan.session(weight_decay=0.1, no_decay="norm", clip_norm=0.01)
        before = session.parameters()
        session.step(self.inputs, 0.5)
        after = session.parameters()
        norm = np.sqrt(sum(float(np.square(gradient.astype("f8")).sum())
                           for gradient in self.result.gradients.values()))
        for name, gradient in self.result.gradients.items():
            decay = 0 if "norm" in name else 0.1
            expected = before[name] - 0.5 * (0.01 / (norm + 1e-6) * gradient + decay * before[name])
            np.testing.assert_allclose(after[name], expected, atol=1e-6)
        for settings in ({"weight_decay": -1}, {"clip_norm": "x"}, {"no_decay": "norm"},
                         {"weight_decay": 1, "no_decay": 3}, {"weight_decay": 1, "no_decay": "("}):
            with self.refuses(list(settings)[-1]):
                self.plan.session(**settings)

    def test_steps_that_are_refused(self):
        session = self.plan.session()
        for rate in (float("nan"), -1, "x", None, float("inf")):
            with self.refuses("learning_rate="):
                session.step(self.inputs, rate)
        with self.refuses("inputs of 1 steps are expected", "not of 2"):
            session.step([self.inputs, self.inputs])
        with self.refuses("[0, 128)"):
            session.step(self.with_input(input_ids=self.inputs["input_ids"] + 10**6))
        with self.refuses("[0, 128)"):  # It is over.
            session.step(self.inputs)
        with self.refuses("execution"):
            self.plan.session(execution="foo")

    def test_several_steps_between_flushes(self):
        plan = small_plan(MLP, plan="grid", pipeline=2, micro_batch_size=4, optimizer="momentum",
                          steps_between_flushes=2)
        session = plan.session()
        self.assertEqual(session.steps_between_flushes, 2)
        inputs = plan.random_inputs()
        self.assertIn("loss", session.step([inputs, inputs], 0.01))
        self.assertTrue(plan.check())
        self.assertIn("loss", plan.run(inputs).outputs)

    def test_inference(self):
        plan = small_plan(MLP, mode="inference")
        inputs = plan.random_inputs()
        outputs, gradients = plan.run(inputs)
        self.assertEqual((list(outputs), gradients), (["logits"], {}))
        self.assertTrue(plan.check())
        with self.refuses("evaluate"):
            plan.session().step(inputs)
        self.assertEqual(plan.session().gradients(), {})

    def test_executions_agree(self):
        expected = self.plan.session().first_step(self.inputs)
        for execution in ("threaded", "adversarial"):
            found = self.plan.session(execution=execution).first_step(self.inputs)
            for name, gradient in expected.gradients.items():
                np.testing.assert_array_equal(found.gradients[name], gradient)

    def test_sessions_of_several_threads(self):
        shared = self.plan.session()
        losses = []

        def work(session):
            for _ in range(3):
                losses.append(float(session.evaluate(self.inputs)["loss"]))

        threads = [threading.Thread(target=work, args=(session,))
                   for session in (shared, shared, self.plan.session(), self.plan.session())]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(set(losses), {float(self.result.outputs["loss"])})

    def test_more_devices_than_threads(self):
        plan = isomer.optimize("zoo:mlp?layers=2&inputs=64&hidden=64&classes=64&batch=512",
                               isomer.Machine("dgx_h100", nodes=64), plan="data_parallel",
                               cache=False)
        with self.refuses("512 devices", "256"):
            plan.run({})

    def test_it_outlives_its_plan(self):
        session = small_plan().session()
        inputs = small_plan().random_inputs()
        loss = session.step(inputs)["loss"]
        del session
        self.assertTrue(np.isfinite(loss))


if __name__ == "__main__":
    unittest.main()
