#!/usr/bin/env python3
"""Trainings are killed, stopped, and their disks fail; nothing may be lost but the steps since the
last checkpoint.

    scripts/fault_campaign.py                      # all of it, some minutes
    scripts/fault_campaign.py --short              # a part, drawn by --seed, in less than 30 s
    scripts/fault_campaign.py --only=kills,flips   # some of it
    scripts/fault_campaign.py --only=kills --communicator=mpi

What is asked of every run, whatever was done to it:
  - each process that is left ends within --deadline seconds, with code 0, 1 or 3, or 2 where it had
    not begun to train;
  - all of them together write one line that begins with "error:", unless the run is done;
  - no process is left, and no checkpoint under its name is torn;
  - --resume goes on, and its losses are those of the run that nothing was done to, to the bit.
"""

import argparse
import collections
import json
import os
import random
import re
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import time

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
RANKS = 3
STEPS = 80
EVERY = 5  # steps between two checkpoints
WHOLE_RUN = 120  # seconds that it takes at most
FEW = f"--checkpoint_every={STEPS // 2}"  # where each of their writes is to fail in one run


class Campaign:
    def __init__(self, options, scratch):
        self.options = options
        self.scratch = scratch
        self.random = random.Random(options.seed)
        self.failures = []
        self.counts = collections.OrderedDict()
        self.longest = {}  # by part: seconds from the fault to the end of the last process
        self.part = ""
        self.whole_run_s = 0  # that a run takes now
        self.late = 0  # kills of who had ended
        self.hits = collections.Counter()  # kills of who lived, by rank
        self.phases = collections.Counter()  # and by what it was doing, as the others say
        self.runs = 0
        self.plan = os.path.join(scratch, "three.plan")
        self.data = os.path.join(ROOT, "models/data/digits.csv")
        self.program("isomer-optimize", os.path.join(ROOT, "models/data/digits_cnn.onnx"),
                     "--machine=laptop_cpu", f"--devices_per_node={RANKS}", "--plan=zero3",
                     "--optimizer=adam", "--cache=false", f"--out={self.plan}")
        self.losses = self.finish(self.folder("whole"), resume=False)
        assert len(self.losses) == STEPS

    # Running things

    def program(self, name, *arguments):
        subprocess.run([os.path.join(self.options.bin, name), *arguments], check=True,
                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def folder(self, name):
        path = os.path.join(self.scratch, name)
        shutil.rmtree(path, ignore_errors=True)
        return path

    def command(self, folder, *more, steps=STEPS):
        more = [f"--checkpoint_every={EVERY}", *more]  # The last one counts.
        if not any(flag.startswith("--schedule=") for flag in more):
            more.append("--learning_rate=0.01")
        return [os.path.join(self.options.bin, "isomer-run"), self.plan, f"--data={self.data}",
                "--data_scale=0.0625", f"--steps={steps}", f"--checkpoint_dir={folder}",
                f"--stall_timeout={self.options.stall_timeout}", *more]

    def finish(self, folder, resume=True):
        """The losses of a run that nothing is done to."""
        path = os.path.join(self.scratch, "losses.json")
        result = subprocess.run(self.command(folder, f"--json={path}", *(["--resume"] * resume)),
                                capture_output=True, text=True, timeout=WHOLE_RUN)
        self.noted = result.stderr
        if result.returncode != 0:
            return result.stderr.strip() or f"exit code {result.returncode}"
        return json.load(open(path)).get("loss", [])

    def start(self, folder, *more, faulty=None, fault=None):
        """Processes, by rank; `fault`: what the environment of rank `faulty` has besides."""
        self.runs += 1
        if self.options.communicator == "threads":
            places = [{}]
            arguments = self.command(folder, *more)
        else:
            with socket.socket() as free:
                free.bind(("", 0))
                port = free.getsockname()[1]
            places = [{"RANK": str(r), "WORLD_SIZE": str(RANKS), "MASTER_ADDR": "localhost",
                       "MASTER_PORT": str(port)} for r in range(RANKS)]
            arguments = self.command(folder, "--communicator=tcp", *more)
        processes = []
        for rank, place in enumerate(places):
            environment = {**os.environ, **place, **(fault if rank == faulty else {})}
            errors = open(os.path.join(self.scratch, f"rank-{rank}.err"), "w+")
            out = open(os.path.join(self.scratch, f"rank-{rank}.out"), "w+")
            process = subprocess.Popen(arguments, env=environment, stdout=out, stderr=errors)
            process.said = errors
            processes.append(process)
        return processes

    def wait(self, processes, since=None, but=()):
        """Until all have ended but those; says who has not, and kills them. `since`: of the fault;
        none: they run to their end, on a machine that may have little time for them."""
        limit = WHOLE_RUN if since is None else self.options.deadline
        begin = since or time.monotonic()
        while any(p.poll() is None for p in processes if p not in but):
            if time.monotonic() - begin > limit:
                late = [r for r, p in enumerate(processes) if p.poll() is None and p not in but]
                self.fail(f"ranks {late} have not ended after {limit} s")
                break
            time.sleep(0.005)
        if since is not None:
            took = time.monotonic() - since
            self.longest[self.part] = max(self.longest.get(self.part, 0), took)
        for p in processes:
            if p not in but and p.poll() is None:
                p.kill()
                p.wait()

    def all_words(self, process):
        process.said.seek(0)
        return process.said.read()

    def words(self, processes):
        lines = []
        for process in processes:
            process.said.seek(0)
            lines += process.said.read().splitlines()
        return [line for line in lines if not line.startswith("note:")]

    # What is asked

    def fail(self, what):
        self.failures.append(f"{self.part}: {what}")
        print(f"FAILED {self.part}: {what}", flush=True)

    def check(self, is_true, what):
        if not is_true:
            self.fail(what)
        return is_true

    def check_end(self, processes, what, victims=(), may_not_have_begun=False, must_name=None):
        codes = [p.returncode for p in processes if p not in victims]
        allowed = {0, 3} | ({2} if may_not_have_begun else set())
        self.check(set(codes) <= allowed, f"{what}: exit codes {codes}: {self.words(processes)}")
        lines = self.words([p for p in processes if p not in victims])
        if any(codes):
            self.check(len(lines) == 1 and lines[0].startswith("error: "),
                       f"{what}: these lines were said: {lines}")
            if must_name:
                self.check(must_name in " ".join(lines), f"{what}: {must_name} is not said: {lines}")
        return lines

    def check_resumes(self, folder, what, damaged=False):
        """Goes on to the end as if nothing had been."""
        first = newest(folder)
        losses = self.finish(folder)
        if not isinstance(losses, list):
            return self.fail(f"{what}: --resume says {losses}")
        self.check(losses == self.losses[STEPS - len(losses):],
                   f"{what}: the losses of the last {len(losses)} steps are others")
        if not damaged:
            self.check("is taken" not in self.noted, f"{what}: a torn checkpoint: {self.noted}")
            self.check(len(losses) == STEPS - first, f"{what}: resumed at {STEPS - len(losses)}, "
                       f"not at {first}")
        self.check(not [n for n in os.listdir(folder) if n.startswith(".")],
                   f"{what}: left behind: {os.listdir(folder)}")

    # What is done to them

    def start_parent(self, folder, *more):
        """isomer-run as the parent of its ranks, or mpirun."""
        self.runs += 1
        errors = open(os.path.join(self.scratch, "parent.err"), "w+")
        if self.has_mpirun():
            command = ["mpirun", "--oversubscribe", "--allow-run-as-root", "-np", str(RANKS),
                       *self.command(folder, "--communicator=mpi", *more)]
        else:
            command = self.command(folder, "--communicator=processes", *more)
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=errors)
        process.said = errors
        return process

    def has_mpirun(self):
        return self.options.communicator == "mpi"

    def children(self, parent):
        """Process ids of those who live, by rank."""
        says_rank = "OMPI_COMM_WORLD_RANK=" if self.has_mpirun() else "RANK="
        found = {}
        try:
            for thread in os.listdir(f"/proc/{parent.pid}/task"):
                for word in open(f"/proc/{parent.pid}/task/{thread}/children").read().split():
                    place = open(f"/proc/{word}/environ").read().split("\0")
                    found.update({int(v[len(says_rank):]): int(word) for v in place
                                  if v.startswith(says_rank)})
        except OSError:
            pass  # It has ended meanwhile.
        return found

    def wait_for_all(self, parent, pids, what):
        """Until the parent and its ranks have ended."""
        since = time.monotonic()
        self.wait([parent], since)
        while any(is_there(pid) for pid in pids):
            if time.monotonic() - since > self.options.deadline:
                self.fail(f"{what}: orphans: {[pid for pid in pids if is_there(pid)]}")
                for pid in pids:
                    if is_there(pid):
                        os.kill(pid, signal.SIGKILL)
                break
            time.sleep(0.005)
        self.longest[self.part] = max(self.longest.get(self.part, 0), time.monotonic() - since)

    def kills(self, count):
        """kill -9 of one process, at any moment from its start to behind its end: of each rank
        while it lives `count` times, and of their parent."""
        begin = time.monotonic()
        parent = self.start_parent(self.folder("kill"))
        self.wait([parent])
        whole = time.monotonic() - begin
        victims = list(range(RANKS)) * count + ["parent"] * max(count // 4, 1)
        self.random.shuffle(victims)
        for number, rank in enumerate(victims, 1):
            while not self.kill_once(rank, self.random.uniform(0, 1.05 * whole)):
                self.late += 1
            if number % 20 == 0:
                print(f"kills: {number} of {len(victims)}, {len(self.failures)} failed, "
                      f"{time.monotonic() - begin:.0f} s", flush=True)

    def kill_once(self, rank, moment):
        """Whether the victim lived."""
        what = f"{rank} killed after {moment:.3f} s"
        folder = self.folder("kill")
        parent = self.start_parent(folder)
        time.sleep(moment)
        pids = self.children(parent)
        while rank != "parent" and rank not in pids and parent.poll() is None:
            time.sleep(0.001)  # Until it is there.
            pids = self.children(parent)
        victim = parent.pid if rank == "parent" else pids.get(rank)
        lived = victim is not None and is_there(victim)
        if lived:
            kill(victim)
        self.wait_for_all(parent, list(pids.values()), what)
        said = " ".join(self.words([parent]))
        if rank == "parent":
            self.check(parent.returncode in (0, -9, 3), f"{what}: exit code {parent.returncode}")
        elif self.has_mpirun():  # Which has a code, and words, of its own.
            self.check(lived == (parent.returncode != 0) or parent.returncode == 0,
                       f"{what}: exit code {parent.returncode}: {said}")
        else:
            self.check(parent.returncode in (0, 2, 3),
                       f"{what}: exit code {parent.returncode}: {said}")
            if parent.returncode > 0:
                lines = self.words([parent])
                self.check(len(lines) == 1 and f"rank {rank} " in lines[0],
                           f"{what}: these lines were said: {lines}")
        if lived:
            self.hits[str(rank)] += 1
            self.phases[phase_of(said, parent.returncode == 0, newest(folder))] += 1
        self.check_resumes(folder, what)
        return lived

    def restarts(self, count):
        """Ranks that are killed again and again, under --restarts: the run comes to its end."""
        for i in range(count):
            folder = self.folder("restart")
            losses = os.path.join(self.scratch, "restart.json")
            parent = self.start_parent(folder, "--restarts=20", f"--json={losses}")
            kills = 0
            what = f"run {i}"
            seen = set()
            while parent.poll() is None:
                time.sleep(self.random.uniform(0.2, 0.5))
                pids = self.children(parent)
                seen |= set(pids.values())
                if kills < 3 and pids:
                    rank = self.random.choice(list(pids))
                    step = newest(folder)
                    # One in four is stopped instead; its parent ends it when the others have.
                    stops = not self.options.short and self.random.randrange(4) == 0
                    kill(pids[rank], signal.SIGSTOP if stops else signal.SIGKILL)
                    kills += 1
                    while parent.poll() is None and newest(folder) <= step and kills < 3:
                        time.sleep(0.01)
            self.wait_for_all(parent, seen, what)
            lines = self.words([parent])
            if self.check(parent.returncode == 0, f"{what}: exit code {parent.returncode}: {lines}"):
                made = json.load(open(losses)).get("loss", [])
                self.check(made == self.losses[STEPS - len(made):], f"{what}: other losses")
            self.check_resumes(folder, what)
        # Who is asked to stop does, with a checkpoint, and is not started again.
        for asked in (signal.SIGINT, signal.SIGTERM):
            folder = self.folder("asked")
            parent = self.start_parent(folder, "--restarts=20")
            while parent.poll() is None and newest(folder) < 10:
                time.sleep(0.001)
            pids = self.children(parent)
            kill(parent.pid, asked)
            self.wait_for_all(parent, list(pids.values()), asked.name)
            self.check(parent.returncode in (0, 3) and not self.words([parent]),
                       f"{asked.name}: exit code {parent.returncode}: {self.words([parent])}")
            self.check_resumes(folder, asked.name)
        # What fails at the same place each time is not started for ever.
        parent = self.start_parent(self.folder("vain"), "--restarts=20", "--schedule=" +
                                   self.rates(32))
        self.wait([parent])
        lines = self.words([parent])
        self.check(parent.returncode == 3, f"in vain: exit code {parent.returncode}")
        self.check(any("without coming further" in line for line in lines), f"in vain: {lines}")
        # One device is gone: the others go on under another plan.
        folder = self.folder("gone")
        losses = os.path.join(self.scratch, "gone.json")
        parent = self.start_parent(folder, "--restarts=3", f"--json={losses}",
                                   f"--available_devices=echo {RANKS - 1}")
        while parent.poll() is None and newest(folder) < 20:
            time.sleep(0.001)
        pids = self.children(parent)
        if self.check(RANKS - 1 in pids, "gone: it has ended already"):
            kill(pids[RANKS - 1])
        self.wait_for_all(parent, list(pids.values()), "gone")
        said = self.all_words(parent)
        self.check(parent.returncode == 0, f"gone: exit code {parent.returncode}: {said}")
        self.check(f"{RANKS - 1} of {RANKS} devices are left" in said, f"gone: {said}")
        made = json.load(open(losses)).get("loss", []) if os.path.exists(losses) else []
        rest = self.losses[STEPS - len(made):] if made else []
        near = all(abs(a - b) <= 1e-3 * abs(b) + 1e-5 for a, b in zip(made, rest))
        self.check(made and near, "gone: the losses are others")

    def rates(self, step):
        """A schedule that is right but for one step, from whose weights nothing comes."""
        path = os.path.join(self.scratch, "rates")
        with open(path, "w") as file:
            file.write(f"1 0.01\n{step - 1} 0.01\n{step} 3.4e38\n{step + 1} 0.01\n")
        return path

    def kills_at_writes(self, count):
        """A process that is killed at its Nth write."""
        for rank in range(RANKS if self.options.communicator != "threads" else 1):
            for n in self.some(self.writes(rank, FEW), count):
                what = f"rank {rank} killed at its write {n}"
                folder = self.folder("write")
                fault = self.disk("kill", n)
                processes = self.start(folder, FEW, faulty=rank, fault=fault)
                victim = processes[rank]
                victim.wait(WHOLE_RUN)
                self.wait(processes, time.monotonic())
                self.check(victim.returncode == -signal.SIGKILL, f"{what}: it was not")
                self.check_end(processes, what, [victim], may_not_have_begun=True)
                self.check_resumes(folder, what)

    def stops(self, count):
        """SIGSTOP; who was stopped ends, too, when it is continued."""
        for i in range(count):
            rank, step = i % RANKS, self.random.randrange(1, STEPS // EVERY - 1) * EVERY
            what = f"rank {rank} stopped after step {step}"
            folder = self.folder("stop")
            processes = self.start(folder)
            while newest(folder) < step and processes[0].poll() is None:
                time.sleep(0.001)
            time.sleep(self.random.uniform(0, 0.02))
            victim = processes[rank]
            victim.send_signal(signal.SIGSTOP)
            since = time.monotonic()
            self.wait(processes, since, but=[victim])
            if any(p.returncode for p in processes if p != victim):
                self.check_end(processes, what, [victim], must_name=f"rank {rank}")
                self.check("--resume goes on from step" in " ".join(self.words(processes)),
                           f"{what}: nobody says how to go on")
            victim.send_signal(signal.SIGCONT)
            self.wait(processes, time.monotonic())
            self.check(victim.returncode in (0, 3), f"{what}: continued, it ends with code "
                       f"{victim.returncode}: {self.words([victim])}")
            self.check_resumes(folder, what)

    def disk(self, mode, n):
        return {"LD_PRELOAD": self.options.disk, "FAULT_MODE": mode, "FAULT_AT": str(n)}

    def writes(self, rank, *more):
        """How many calls to the disk a whole run of the rank makes."""
        log = os.path.join(self.scratch, "calls.log")
        if os.path.exists(log):
            os.remove(log)
        begin = time.monotonic()
        processes = self.start(self.folder("count"), *more, faulty=rank,
                               fault={"LD_PRELOAD": self.options.disk, "FAULT_LOG": log})
        self.wait(processes)
        self.whole_run_s = time.monotonic() - begin
        count = len(open(log).read().splitlines()) if os.path.exists(log) else 0
        self.check(count > 0, f"rank {rank}: {self.options.disk} counts no writes")
        return count

    def some(self, total, count):
        numbers = list(range(1, total + 1))
        if count and count < total:
            numbers = sorted(self.random.sample(numbers, count))
        return numbers

    def disks(self, mode, count):
        """The Nth write of one rank fails, and all after it; of outputs, too."""
        outputs = ["out", "json", "trace"]
        flags = [FEW] + [f"--{name}={os.path.join(self.scratch, 'made.' + name)}"
                         for name in outputs]
        for rank in range(RANKS if self.options.communicator != "threads" else 1):
            for n in self.some(self.writes(rank, *flags), count):
                what = f"rank {rank}, {mode} at write {n}"
                for name in outputs:
                    with open(os.path.join(self.scratch, "made." + name), "w") as file:
                        file.write("before")
                folder = self.folder("disk")
                processes = self.start(folder, *flags, faulty=rank, fault=self.disk(mode, n))
                time.sleep(0.05)
                while all(p.poll() is None for p in processes):
                    if mode == "hang" and is_quiet(folder):
                        break
                    time.sleep(0.005)
                # A disk that hangs is waited for at the next checkpoint, up to a run later.
                since = time.monotonic() + (self.whole_run_s if mode == "hang" else 0)
                self.wait(processes, since)
                lines = self.check_end(processes, what, may_not_have_begun=True)
                codes = {p.returncode for p in processes}
                # Where a disk hangs before the first step, others may have come to it.
                self.check(len(codes) == 1 or mode == "hang", f"{what}: the exit codes are {codes}: {lines}")
                for name in outputs:
                    path = os.path.join(self.scratch, "made." + name)
                    contents = open(path, "rb").read()
                    self.check(contents == b"before" or is_whole(name, contents),
                               f"{what}: --{name} is torn: {len(contents)} bytes")
                torn = [n for n in os.listdir(self.scratch) if ".tmp." in n]
                self.check(not torn or mode == "hang", f"{what}: left behind: {torn}")
                for name in torn:
                    os.remove(os.path.join(self.scratch, name))
                # Who still writes when others give a checkpoint up may leave some of it, which the
                # next run removes.
                if self.options.communicator == "threads" and os.path.isdir(folder):
                    hidden = [n for n in os.listdir(folder) if n.startswith(".") or ".tmp." in n]
                    self.check(not hidden, f"{what}: left behind: {hidden}")
                if newest(folder) > 0 or os.path.isdir(folder):
                    self.check_resumes(folder, what)

    def whole_checkpoints(self):
        """A folder with those of steps 40, 45 and 50, to be damaged."""
        folder = self.folder("good")
        result = subprocess.run(self.command(folder, steps=50), capture_output=True)
        assert result.returncode == 0, result.stderr
        return folder

    def damaged(self, good, what, damage, expected, named=None):
        """A copy, damaged: --resume goes on from step `expected`."""
        folder = self.folder("damaged")
        shutil.copytree(good, folder)
        damage(folder)
        self.runs += 1
        losses = self.finish(folder)
        if not isinstance(losses, list):
            return self.fail(f"{what}: --resume says {losses}")
        self.check(losses == self.losses[expected:],
                   f"{what}: resumed at {STEPS - len(losses)}, not {expected}, or other losses")
        if expected < 50:
            self.check("the checkpoint before it is taken" in self.noted, f"{what}: nothing is said")
            for name in named or []:
                self.check(name in self.noted, f"{what}: {name} is not named: {self.noted}")

    def flips(self, count):
        """A bit of each region of a checkpoint."""
        good = self.whole_checkpoints()
        newest_one = "step-000000050"
        for file, name, begin, end in regions(os.path.join(good, newest_one)):
            for _ in range(count):
                at, bit = self.random.randrange(begin, end), self.random.randrange(8)

                def damage(folder, file=file, at=at, bit=bit):
                    path = os.path.join(folder, newest_one, file)
                    with open(path, "r+b") as changed:
                        changed.seek(at)
                        byte = changed.read(1)[0]
                        changed.seek(at)
                        changed.write(bytes([byte ^ (1 << bit)]))

                self.damaged(good, f"bit {bit} of byte {at} of {file} ({name})", damage, 45,
                             [newest_one] + ([name] if file == "state.safetensors" and
                                             name != "header" else []))

    def cuts(self, count):
        """Files of a checkpoint that are too short, too long, empty or missing."""
        good = self.whole_checkpoints()
        newest_one = os.path.join(good, "step-000000050")
        for file in sorted(os.listdir(newest_one)):
            size = os.path.getsize(os.path.join(newest_one, file))
            lengths = {0, 1, 7, 8, size - 1, size + 1} | {self.random.randrange(size)
                                                         for _ in range(count)}
            for length in sorted(lengths):
                self.damaged(good, f"{file} of {length} of {size} bytes", lambda folder:
                             os.truncate(os.path.join(folder, "step-000000050", file), length), 45)
            self.damaged(good, f"{file} is missing", lambda folder:
                         os.remove(os.path.join(folder, "step-000000050", file)), 45)
            self.damaged(good, f"{file} is a folder", lambda folder: (
                os.remove(os.path.join(folder, "step-000000050", file)),
                os.mkdir(os.path.join(folder, "step-000000050", file))), 45)

    def swaps(self, _):
        """Files of two checkpoints, exchanged."""
        good = self.whole_checkpoints()
        for file in sorted(os.listdir(os.path.join(good, "step-000000050"))):
            self.damaged(good, f"{file} of step 45 in 50", lambda folder: shutil.copy(
                os.path.join(folder, "step-000000045", file),
                os.path.join(folder, "step-000000050", file)), 45)

        def rename(folder):
            shutil.rmtree(os.path.join(folder, "step-000000050"))
            shutil.copytree(os.path.join(folder, "step-000000045"),
                            os.path.join(folder, "step-000000050"))

        self.damaged(good, "step 45 under the name of 50", rename, 45)
        self.damaged(good, "a file of another name", lambda folder: open(
            os.path.join(folder, "step-000000060"), "w").close(), 50)
        self.damaged(good, "an empty folder as the newest", lambda folder: os.mkdir(
            os.path.join(folder, "step-000000055")), 50)

    def nans(self, count):
        """A step whose weights become NaN, or infinite."""
        for i in range(count):
            step = self.random.randrange(8, STEPS - 5)
            rates = self.rates(step)
            folder = self.folder("nan")
            processes = self.start(folder, f"--schedule={rates}")
            self.wait(processes)
            what = f"a rate of 3.4e38 in step {step}"
            lines = self.check_end(processes, what)
            # The loss of the next step, or a weight some steps later, is the first that is not.
            self.check(re.search(r"the loss of step (\d+) is not|is not finite after step (\d+)",
                                 " ".join(lines)), f"{what}: no step is named: {lines}")
            self.check(any(p.returncode for p in processes), f"{what}: went on")
            self.check("--resume goes on from step" in " ".join(lines), f"{what}: {lines}")
            # What follows is trained at 0.01 again, as the undisturbed run was.
            if step % EVERY != 0:
                self.check_resumes(folder, what)

    def report(self, seconds):
        return {"command": "scripts/fault_campaign.py " + " ".join(sys.argv[1:]),
                "seed": self.options.seed, "ranks": RANKS, "steps": STEPS,
                "communicator": self.options.communicator,
                "stall_timeout_s": self.options.stall_timeout,
                "seconds": round(seconds), "kills_by_rank": dict(sorted(self.hits.items())),
                "kills_by_phase": dict(sorted(self.phases.items())),
                "kills_of_who_had_ended": self.late, "runs": self.runs, "parts": self.counts,
                "failures": self.failures}


def phase_of(said, is_done, checkpoint):
    """What a victim was doing, by the words of who noticed, or by what is on the disk."""
    if found := re.search(r"it was in step \d+(?:, in (\w+))?", said):
        return "in a step, " + (found.group(1) or "computing")
    if found := re.search(r"it was in (\w+)", said):
        return "between steps, " + found.group(1)
    if is_done:
        return "behind the last step"
    return "not said, behind a checkpoint" if checkpoint else "not said, before a checkpoint"


def kill(pid, how=signal.SIGKILL):
    try:
        os.kill(pid, how)
    except ProcessLookupError:
        pass


def is_there(pid):
    """Whether it lives; who has ended and is not waited for does not."""
    try:
        return open(f"/proc/{pid}/stat").read().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False


def newest(folder):
    steps = [int(n[5:]) for n in os.listdir(folder) if n.startswith("step-")] if os.path.isdir(
        folder) else []
    return max(steps, default=0)


def is_quiet(folder):
    """Whether nothing has changed in it for a second."""
    def state():
        return sorted((n, os.stat(os.path.join(folder, n)).st_mtime) for n in os.listdir(folder)
                      if os.path.exists(os.path.join(folder, n))) if os.path.isdir(folder) else []
    before = state()
    time.sleep(1)
    return before == state()


def is_whole(name, contents):
    if name == "out":
        return len(contents) > 1000
    try:
        json.loads(contents)
        return True
    except ValueError:
        return False


def regions(folder):
    """(file, name, first byte, end) of all parts of a checkpoint's files."""
    state = open(os.path.join(folder, "state.safetensors"), "rb").read()
    size = struct.unpack("<Q", state[:8])[0]
    header = json.loads(state[8:8 + size])
    yield "state.safetensors", "header", 0, 8
    yield "state.safetensors", "header", 8, 8 + len(state[8:8 + size].rstrip())
    if state[8 + size - 1:8 + size] == b" ":
        yield "state.safetensors", "header", 8 + len(state[8:8 + size].rstrip()), 8 + size
    for name, tensor in header.items():
        if name != "__metadata__":
            begin, end = tensor["data_offsets"]
            yield "state.safetensors", name, 8 + size + begin, 8 + size + end
    whole = os.path.getsize(os.path.join(folder, "checkpoint"))
    for part in range(8):
        yield "checkpoint", f"eighth {part}", whole * part // 8, whole * (part + 1) // 8


PARTS = {  # how many: in full, and in short
    "kills": (lambda c, n: c.kills(n), 100, 2),
    "restarts": (lambda c, n: c.restarts(n), 6, 1),
    "kills_at_writes": (lambda c, n: c.kills_at_writes(n), 0, 2),
    "stops": (lambda c, n: c.stops(n), 12, 1),
    "full": (lambda c, n: c.disks("full", n), 0, 3),
    "short": (lambda c, n: c.disks("short", n), 20, 1),
    "error": (lambda c, n: c.disks("error", n), 0, 2),
    "hang": (lambda c, n: c.disks("hang", n), 6, 0),
    "flips": (lambda c, n: c.flips(n), 3, 0),
    "cuts": (lambda c, n: c.cuts(n), 10, 0),
    "swaps": (lambda c, n: c.swaps(n), 1, 1),
    "nans": (lambda c, n: c.nans(n), 6, 1),
}


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    build = os.path.join(ROOT, "build/release")
    parser.add_argument("--bin", default=os.path.join(build, "bin"), help="where the programs are")
    parser.add_argument("--disk", default=os.path.join(build, "tests/libisomer_failing_disk.so"),
                        help="the library of tests/faults/failing_disk.cc")
    parser.add_argument("--communicator", default="tcp", choices=["tcp", "threads", "mpi"])
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--short", action="store_true")
    parser.add_argument("--count", type=int, help="of each part, in place of its own")
    parser.add_argument("--only", default="", help="parts, with commas between")
    parser.add_argument("--deadline", type=float, default=10, help="seconds")
    parser.add_argument("--stall_timeout", type=float, default=5, help="of isomer-run")
    parser.add_argument("--json", default="", help="write the summary to this file")
    options = parser.parse_args()
    only = options.only.split(",") if options.only else list(PARTS)
    unknown = [part for part in only if part not in PARTS]
    if unknown:
        parser.error(f"--only={unknown[0]}: there are {', '.join(PARTS)}")
    if options.communicator == "mpi" and only != ["kills"]:
        parser.error("--communicator=mpi is for --only=kills: mpirun ends what it started itself")
    begin = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="isomer_faults_") as scratch:
        campaign = Campaign(options, scratch)
        for name in only:
            run, full, short = PARTS[name]
            count = short if options.short else full
            if options.short and count == 0:
                continue
            if options.count is not None:
                count = options.count
            campaign.part = name
            runs, failed, since = campaign.runs, len(campaign.failures), time.monotonic()
            run(campaign, count)
            campaign.counts[name] = {
                "runs": campaign.runs - runs, "failed": len(campaign.failures) - failed,
                "longest_end_s": round(campaign.longest.get(name, 0), 2)}
            print(f"{name}: {campaign.runs - runs} runs, {len(campaign.failures) - failed} failed, "
                  f"{time.monotonic() - since:.0f} s; the longest end took "
                  f"{campaign.longest.get(name, 0):.2f} s", flush=True)
    if options.json:
        with open(options.json, "w") as file:
            json.dump(campaign.report(time.monotonic() - begin), file, indent=1)
            file.write("\n")
    return 1 if campaign.failures else 0


if __name__ == "__main__":
    sys.exit(main())
