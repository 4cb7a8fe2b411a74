"""isomer.optimize: the program's plans, options and errors; threads, Ctrl-C, progress."""

import inspect
import json
import os
import signal
import subprocess
import sys
import threading
import unittest
import warnings

import isomer
from support import BERT, MLP, Case, error_of, program, small_plan

# Searches for some seconds, and has a plan at once.
LONG = "zoo:nasnet_a"
LONG_MACHINE = "dgx_h100"


class OptionsTest(Case):
    def test_keywords_are_the_options_of_the_program(self):
        parameters = inspect.signature(isomer.optimize).parameters
        table = isomer.search_options()
        self.assertEqual([name for name in parameters if name not in ("model", "machine", "progress")],
                         list(table))
        for name, (kind, default, text) in table.items():
            given = parameters[name].default
            self.assertEqual(list(given) if kind == "list[str]" else given, default, name)
            if kind != "list[str]":
                self.assertIs(type(given), type(default), name)
            self.assertIn(f"{name}: ", isomer.optimize.__doc__)
            self.assertTrue(text)

    def test_options_are_flags_of_the_program(self):
        text = program("isomer-optimize", "--help").stdout
        for name in isomer.search_options():
            self.assertIn(f"  --{name}: ", text)

    def test_the_same_plan_as_the_program(self):
        for model, options in [
            (MLP, {}),
            (MLP, {"optimizer": "adam", "precision": "bfloat16", "update": "sharded"}),
            (MLP, {"mode": "inference", "search": "egraph"}),
            (MLP, {"search": "algebra"}),
            (MLP, {"search": "mcmc", "budget": 500, "seed": 7}),
            (MLP, {"plan": "grid", "tensor": 2, "pipeline": "2", "micro_batch_size": 4}),
            (MLP, {"plan": "zero3"}),
            (MLP, {"without": ["grids", "walks"], "policy": "near_best=1.2", "split": False}),
            (str(BERT), {"loss": "mse:encoded", "loss_alone": True, "threads": 1}),
        ]:
            with self.subTest(model=model, options=options):
                plan = small_plan(model, **options)
                plan.save(self.folder / "python.plan")
                flags = []
                for name, value in options.items():
                    text = ",".join(value) if isinstance(value, list) else str(value).lower()
                    flags.append(f"--{name}={text}")
                program("isomer-optimize", model, "--machine=laptop_cpu", "--devices_per_node=4",
                        "--nocache", f"--out={self.folder / 'program.plan'}",
                        f"--json={self.folder / 'program.json'}", *flags)
                self.assertEqual((self.folder / "python.plan").read_bytes(),
                                 (self.folder / "program.plan").read_bytes())
                # But for seconds.
                of_program = json.loads((self.folder / "program.json").read_text())
                for name in ("headline", "baselines", "memory", "rules_used"):
                    self.assertEqual(plan.summary[name], of_program[name])

    def test_the_same_errors_as_the_program(self):
        for options in [
            {"mode": "foo"}, {"search": "foo"}, {"plan": "foo"}, {"optimizer": "foo"},
            {"update": "foo"}, {"precision": "int8"}, {"gradient_precision": "float16"},
            {"loss": "foo"}, {"loss": "mse:nope"}, {"attention": "foo"}, {"attention": "unfused"},
            {"tensor": 2}, {"pipeline": 2}, {"recompute": "full"}, {"plan": "grid", "pipeline": "x"},
            {"without": ["nope"]}, {"policy": "x=1"}, {"constraints": "no.txt"},
            {"rules": "no.rules"}, {"profile": "no.profile"}, {"compare": "no.json"},
            {"threads": 5000}, {"time_limit": -1}, {"alpha": 0.5}, {"budget": -1},
            {"bucket_bytes": -5}, {"steps_between_flushes": 3},
            {"mode": "inference", "loss": "mse"}, {"mode": "inference", "steps_between_flushes": 2},
            {"mode": "inference", "plan": "zero3"}, {"search": "exhaustive", "precision": "float16"},
        ]:
            with self.subTest(options=options):
                flags = [f"--{name}={','.join(v) if isinstance(v, list) else v}"
                         for name, v in options.items()]
                line = error_of(MLP, "--machine=laptop_cpu", f"--out={self.folder / 'x.plan'}",
                                *flags)
                with self.refuses(isomer.errors.in_python_words(line)):
                    small_plan(**options)

    def test_values_of_no_use(self):
        for options, parts in [
            ({"time_limit": float("nan")}, ["time_limit=nan", "finite"]),
            ({"time_limit": float("inf")}, ["time_limit=inf", "finite"]),
            ({"time_limit": "10"}, ["time_limit=10", "number"]),
            ({"threads": 1.5}, ["threads=1.5", "whole number"]),
            ({"threads": True}, ["threads=True", "whole number"]),
            ({"budget": 10**30}, ["budget=", "whole number"]),
            ({"seed": -1}, ["seed=-1", "0 or more"]),
            ({"seed": 2**64}, ["seed="]),
            ({"split": "no"}, ["split=no", "True or False"]),
            ({"split": 1}, ["split=1", "True or False"]),
            ({"mode": None}, ["mode=None", "text"]),
            ({"without": 3}, ["without=3", "list"]),
            ({"without": [3]}, ["without=[3]"]),
            ({"constraints": "a\0b"}, ["constraints", "null character"]),
            ({"progress": 3}, ["progress=3"]),
        ]:
            with self.subTest(options=options), self.refuses(*parts):
                small_plan(**options)
        with self.assertRaises(TypeError):
            small_plan(no_such_option=1)

    def test_what_does_not_fit(self):
        machine = isomer.Machine("dgx_h100", nodes=1, devices_per_node=1, device_memory_gib=0.001)
        with self.assertRaises(isomer.DoesNotFit) as caught:
            isomer.optimize("zoo:mlp?layers=4&inputs=256&hidden=256&classes=8&batch=16", machine,
                            cache=False, progress=False)
        self.assertIn("does not fit", str(caught.exception))
        plan = caught.exception.plan
        self.assertFalse(plan.fits)
        self.assertGreater(plan.predicted_peak_bytes, machine.memory_bytes)
        with self.refuses("does not fit"):
            plan.save(self.folder / "x.plan")
        self.assertEqual(list(self.folder.iterdir()), [])

    def test_the_loss_that_was_guessed_is_a_note(self):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            plan = isomer.optimize(isomer.load(BERT), isomer.Machine("laptop_cpu"), cache=False)
        self.assertIn("the loss is mse of 'encoded'", plan.notes[0])
        self.assertIn(plan.notes[0], [str(w.message) for w in caught])
        self.assertEqual(plan.loss, "loss")


class ThreadsTest(Case):
    def test_two_searches_at_once(self):
        models = [MLP, str(BERT), MLP, str(BERT)]
        alone = {model: self.bytes_of(small_plan(model), "alone") for model in set(models)}
        found = [None] * len(models)

        def search(i):
            found[i] = small_plan(models[i])

        threads = [threading.Thread(target=search, args=(i,)) for i in range(len(models))]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        for model, plan in zip(models, found):
            self.assertEqual(self.bytes_of(plan, "beside"), alone[model])

    def bytes_of(self, plan, name):
        path = self.folder / f"{name}.plan"
        plan.save(path)
        return path.read_bytes()

    def test_other_threads_run(self):
        counted = [0]
        is_over = threading.Event()

        def count():
            while not is_over.is_set():
                counted[0] += 1
                is_over.wait(0.001)

        thread = threading.Thread(target=count)
        thread.start()
        isomer.optimize(LONG, isomer.Machine(LONG_MACHINE), cache=False, time_limit=1,
                        progress=False)
        is_over.set()
        thread.join()
        self.assertGreater(counted[0], 50)


def send_interrupts(count, first_after):
    """What Ctrl-C does, from another thread, once a search has a plan."""

    def send():
        first_after.wait(60)
        for _ in range(count):
            os.kill(os.getpid(), signal.SIGINT)
            threading.Event().wait(0.3)  # Signals that are pending together are one.

    thread = threading.Thread(target=send, daemon=True)
    thread.start()
    return thread


class InterruptTest(Case):
    def search(self, count):
        has_plan = threading.Event()
        sender = send_interrupts(count, has_plan)

        def progress(state):
            if state.best_step_us is not None:
                has_plan.set()

        try:
            return isomer.optimize(LONG, isomer.Machine(LONG_MACHINE), cache=False,
                                   progress=progress)
        finally:
            sender.join()

    def test_ctrl_c_ends_it_with_the_best_plan_so_far(self):
        plan = self.search(1)
        self.assertEqual(plan.stop_reason, "interrupted")
        self.assertTrue(plan.verify())
        # And the next search is not ended by it.
        self.assertNotEqual(small_plan().stop_reason, "interrupted")

    def test_a_second_one_raises(self):
        with self.assertRaises(KeyboardInterrupt):
            self.search(2)
            threading.Event().wait(1)  # The second may come when the search is over already.


class ProgressTest(Case):
    def test_a_callback(self):
        states = []
        plan = isomer.optimize(LONG, isomer.Machine(LONG_MACHINE), cache=False, time_limit=1.5,
                               progress=states.append)
        self.assertGreater(len(states), 3)
        self.assertEqual(states[0].time_limit, 1.5)
        times = [state.seconds for state in states]
        self.assertEqual(times, sorted(times))
        self.assertGreaterEqual(states[-1].plans, states[0].plans)
        self.assertLess(states[-1].best_step_us, 10 * plan.predicted_step_us)
        self.assertIn("plans", str(states[-1]))

    def test_what_a_callback_raises_is_raised(self):
        def progress(state):
            raise LookupError("mine")

        with self.assertRaisesRegex(LookupError, "mine"):
            isomer.optimize(LONG, isomer.Machine(LONG_MACHINE), cache=False, progress=progress)

    def test_nothing_is_printed_in_a_log(self):
        found = subprocess.run(
            [sys.executable, "-W", "ignore", "-c",
             "import isomer; isomer.optimize('zoo:nasnet_a', 'dgx_h100', cache=False, time_limit=3)"],
            capture_output=True, text=True, check=True)
        self.assertEqual((found.stdout, found.stderr), ("", ""))

    def test_a_notebook_gets_one_line_that_changes(self):
        shown = []

        class Handle:
            def update(self, data, raw):
                shown.append(data["text/plain"])

        def display(data, raw, display_id):
            shown.append(data["text/plain"])
            return Handle()

        line = isomer.progress._Notebook(display)
        watch = isomer._isomer.SearchWatch()
        reporter = isomer.progress.Reporter(watch, 0, None)
        reporter._display, reporter._start = line, reporter._start - 5
        reporter.tell()
        reporter.tell()
        reporter.end()
        self.assertEqual(shown[0][:9], "search: 5")
        self.assertEqual((len(shown), shown[-1]), (3, ""))


if __name__ == "__main__":
    unittest.main()
