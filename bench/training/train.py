#!/usr/bin/env python3
"""Trains five networks, each under several plans, and compares: bench/results/training.

    bench/training/train.py [--only=digits,lstm,dlrm,moe] [--bin=build/release/bin] [--work=FOLDER]
    bench/training/train.py --only=gpt,lstm_pytorch --python=VENV/bin/python

Each training runs on one device as the model is, with three seeds, and then under plans on 1 to 8
devices, as threads and as processes (trainings.py). Losses of the first 300 steps must be within
1e-3 of those of one device, and the metrics on test rows at the end as near as three seeds are to
each other: else exit code 1. So must PyTorch's be, which
exports gpt and lstm_pytorch and trains them, too.

Runs that FOLDER has are not repeated; --report runs nothing and writes the results of those. Takes
hours; needs Python's standard library, and mpirun for plans that say so (without it they run as
processes by TCP); of --python, torch, onnx and onnxscript.
"""
import argparse
import collections
import dataclasses
import json
import os
import re
import shlex
import shutil
import socket
import subprocess
import sys
import time

import data
import report
from trainings import TRAININGS, Plan

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
WORK = "/tmp/isomer_training"
WITHOUT_PYTORCH = ",".join(t.name for t in TRAININGS if not t.pytorch)


@dataclasses.dataclass
class Row:
    """A run: its name in the results, and what isomer-optimize and isomer-run say of it.

    Without a plan it is the reference, the first row, or the same with another seed or rounding.
    """
    name: str
    summary: dict
    plan: Plan | None = None
    seed: bool = False
    headline: str = "the model as it is"
    splits: collections.Counter = dataclasses.field(default_factory=collections.Counter)


def other_rounding(flags):
    """The same run with a rate that is off by its last bit in float32."""
    return re.sub(r"(?<=--learning_rate=)[\d.]+", lambda rate: repr(float(rate[0]) * (1 + 2**-23)), flags)


def run(command, log):
    with open(log, "w") as file:
        result = subprocess.run(command, stdout=file, stderr=subprocess.STDOUT, cwd=ROOT)
    if result.returncode:
        fail(command, log)


def run_by_tcp(command, devices, log):
    """A process for each device, which meet at a port that is free."""
    with socket.socket() as probe:
        probe.bind(("localhost", 0))
        port = probe.getsockname()[1]
    processes = []
    for rank in range(devices):
        environment = dict(os.environ, RANK=str(rank), WORLD_SIZE=str(devices), MASTER_ADDR="localhost",
                           MASTER_PORT=str(port))
        with open(log if rank == 0 else os.devnull, "w") as file:
            processes.append(subprocess.Popen(command, stdout=file, stderr=subprocess.STDOUT, env=environment,
                                              cwd=ROOT))
    if any([process.wait() for process in processes]):
        fail(command, log)


def fail(command, log):
    with open(log) as file:
        sys.exit(f"error: {shlex.join(command)}\n" + file.read()[-2000:])


def file_name(text):
    return "".join(c if c.isalnum() else "_" for c in text)


class Runner:
    def __init__(self, arguments):
        self.bin, self.work = os.path.abspath(arguments.bin), os.path.abspath(arguments.work)
        self.python = arguments.python and os.path.abspath(arguments.python)
        self.runs = not arguments.report

    def path(self, name):
        return os.path.join(self.work, name)

    def make(self, name, function):
        """Whether there is a file, if need be by function(file), which has it once it is whole."""
        if not os.path.exists(self.path(name)) and self.runs:
            print(f"{time.strftime('%H:%M:%S')} {name}", flush=True)
            function(self.path(name) + ".part")
            os.rename(self.path(name) + ".part", self.path(name))
        return os.path.exists(self.path(name))

    def make_data(self, kind):
        def write(done):
            {"text": data.make_text, "clicks": data.make_clicks}[kind](self.work)
            open(done, "w").close()
        self.make(f"{kind}.done", write)

    def summary(self, name):
        with open(self.path(name)) as file:
            return json.load(file)

    def flags(self, training):
        return training.run.format(work=self.work).split()

    def model(self, training, seed=None):
        return training.model.format(work=self.work, seed=seed or training.seeds[0])

    def train_command(self, training, seed, other=False):
        flags = [other_rounding(flag) if other else flag for flag in self.flags(training)]
        return [os.path.join(self.bin, "isomer-run"), self.model(training, seed), f"--optimizer={training.optimizer}",
                f"--seed={seed}", *flags]

    def pytorch_command(self, training, seed, out=None):
        command = [self.python or "python3", os.path.join(ROOT, "bench/training/pytorch.py"), training.pytorch, str(seed),
                   self.work]
        return command + [out] if out else command

    def plan_name(self, training, plan):
        return file_name(f"{training.name}.{plan.devices}.{plan.name}")

    def planned(self, training, plan):
        return self.summary(f"{self.plan_name(training, plan)}.plan.json")

    def plan_command(self, training, plan, out):
        return [os.path.join(self.bin, "isomer-optimize"), self.model(training), "--machine=laptop_cpu", "--nodes=1",
                f"--devices_per_node={plan.devices}", f"--optimizer={training.optimizer}", "--cache=false",
                *plan.flags.split(), f"--out={out}"]

    def run_command(self, training, plan, file):
        command = [os.path.join(self.bin, "isomer-run"), file, *self.flags(training)]
        # Clipping needs all gradients before the first update.
        if "--clip_norm" in training.run and self.planned(training, plan)["immediate_updates"]:
            command.append("--late_updates")
        return command if plan.communicator == "threads" else command + [f"--communicator={plan.communicator}"]

    def run_plan(self, training, plan, file, out):
        if plan.communicator == "mpi" and not shutil.which("mpirun"):
            plan = dataclasses.replace(plan, communicator="tcp")
        command = self.run_command(training, plan, file) + [f"--json={out}"]
        log = f"{file}.log"
        if plan.communicator == "mpi":
            root = ["--allow-run-as-root"] if os.geteuid() == 0 else []
            command = ["mpirun", "--quiet", "--oversubscribe", *root, "-n", str(plan.devices)] + command
        if plan.communicator == "tcp":
            run_by_tcp(command, plan.devices, log)
        else:
            run(command, log)

    def made_row(self, file, name, command, **fields):
        """The row of a run without a plan; command(out) is what makes it."""
        if self.make(file, lambda out: run(command(out), self.path(f"{file}.log"))):
            yield Row(name, self.summary(file), **fields)

    def export(self, training, seed, out):
        run(self.pytorch_command(training, seed), f"{out}.log")
        open(out, "w").close()

    def references(self, training):
        """What plans are compared with, and then how far other seeds and another rounding are from it."""
        name = training.name
        for seed in training.seeds:
            if training.pytorch:
                self.make(f"{name}.seed{seed}.exported", lambda out: self.export(training, seed, out))
            said = f"one device, seed {seed}" if seed != training.seeds[0] else "one device"
            yield from self.made_row(f"{name}.seed{seed}.json", said,
                                     lambda out: self.train_command(training, seed) + [f"--json={out}"], seed=True)
        yield from self.made_row(f"{name}.rounded.json", "one device, another rounding",
                                 lambda out: self.train_command(training, training.seeds[0], True) + [f"--json={out}"],
                                 headline="the rate is off by its last bit")
        if training.pytorch:
            yield from self.made_row(f"{name}.pytorch.json", "PyTorch", headline="the module",
                                     command=lambda out: self.pytorch_command(training, training.seeds[0], out))

    def train(self, training):
        """All rows of a training that there are."""
        if training.reads:
            self.make_data(training.reads)
        rows = list(self.references(training))
        for plan in training.plans:
            name = self.plan_name(training, plan)
            file, said = self.path(f"{name}.plan"), f"{name}.plan.json"
            made = self.make(said, lambda out: run(self.plan_command(training, plan, file) + [f"--json={out}"],
                                                   self.path(f"{name}.txt")))
            if not made or not self.make(f"{name}.json", lambda out: self.run_plan(training, plan, file, out)):
                continue
            with open(self.path(f"{name}.txt")) as page:
                splits = report.splits_of(page.read())
            where = "1 device" if plan.devices == 1 else f"{plan.devices} {plan.communicator}"
            rows.append(Row(f"{plan.name}, {where}", self.summary(f"{name}.json"), plan,
                            headline=self.planned(training, plan)["headline"].split(":")[0], splits=splits))
        return rows

    def commands(self, training, rows):
        """What to type for each figure; $WORK is the folder, and $FLAGS what all runs have."""
        def typed(command):
            words = [word.replace(self.work, "$WORK").replace(self.bin + "/", "").replace(ROOT + "/", "") for word in command]
            return " ".join(f"'{word}'" if any(c in word for c in "?&") else word for word in words)
        lines = [f"WORK={WORK}", f'FLAGS="{typed(self.flags(training))}"']
        for seed in training.seeds:
            if training.pytorch:
                out = [f"{self.work}/pytorch.json"] if seed == training.seeds[0] else []
                lines.append("VENV/bin/python " + typed(self.pytorch_command(training, seed, *out)[1:]))
            lines.append(typed(self.train_command(training, seed)))
        lines.append(typed(self.train_command(training, training.seeds[0], True)))
        for plan in [row.plan for row in rows if row.plan]:
            file = f"$WORK/{file_name(f'{plan.devices} {plan.name}')}.plan"
            lines.append(typed(self.plan_command(training, plan, file)))
            launched = {"threads": "", "mpi": f"mpirun -n {plan.devices} ",
                        "tcp": f"torchrun --no-python --nproc_per_node={plan.devices} "}[plan.communicator]
            lines.append(launched + typed(self.run_command(training, plan, file)))
        shared = typed(self.flags(training))
        return lines[:2] + [re.sub(re.escape(shared) + r"(?!\S)", "$FLAGS", line) for line in lines[2:]]


def shortened(training, steps):
    run = re.sub(r"--(steps|epochs)=\d+", f"--steps={steps}", training.run)
    return dataclasses.replace(training, run=run, seeds=training.seeds[:1])


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--only", default=WITHOUT_PYTORCH, help="trainings, separated by commas")
    parser.add_argument("--bin", default=os.path.join(ROOT, "build/release/bin"), help="folder of the programs")
    parser.add_argument("--work", default=WORK, help="folder of data, plans and runs")
    parser.add_argument("--python", help="a Python that has PyTorch, for gpt_pytorch and lstm_pytorch")
    parser.add_argument("--steps", type=int, help="so many steps with one seed, for a short test")
    parser.add_argument("--report", action="store_true", help="run nothing, write the results of the runs there are")
    parser.add_argument("--results", default=os.path.join(ROOT, "bench/results/training"), help="where they are written")
    arguments = parser.parse_args()
    trainings = {training.name: training for training in TRAININGS}
    complaints = []
    for name in arguments.only.split(","):
        if name not in trainings:
            parser.error(f"--only={name}: there are {', '.join(trainings)}")
        if trainings[name].pytorch and not (arguments.python or arguments.report):
            parser.error(f"--only={name} needs a Python that has PyTorch: --python")
    if arguments.steps:
        trainings = {name: shortened(training, arguments.steps) for name, training in trainings.items()}
    os.makedirs(arguments.work, exist_ok=True)
    runner = Runner(arguments)
    for name in arguments.only.split(","):
        rows = runner.train(trainings[name])
        if rows:
            complaints += report.write(trainings[name], rows, runner.commands(trainings[name], rows), arguments.results)
    for complaint in complaints:
        print(f"error: {complaint}", file=sys.stderr)
    return 1 if complaints else 0


if __name__ == "__main__":
    sys.exit(main())
