#!/usr/bin/env python3
"""Ranks that generate rules are killed at random moments; the rules are the same, to the byte.

    scripts/generation_kills.py                   # 50 kills, some minutes
    scripts/generation_kills.py --short           # a few
    scripts/generation_kills.py --kills=200 --ranks=5 --seed=7

A kill hits a process of a job that mpirun started: a rank, or one of the processes that work for
it. Every other job is started with --enable-recovery, so that the other ranks live on. A job that
ends without having written its rules is started again with the same --work_dir, as a user would.
What is asked:
  - a job that lost a worker, or with --enable-recovery a rank that is not rank 0, ends well by itself;
  - the rules are those of one process that nothing was done to, but for how long proofs took;
  - a last run with the same --work_dir finds every result there.
"""

import argparse
import collections
import glob
import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
JOB_ENDS = 120  # seconds within which a job does, whatever was done to it


def children_of(pid):
    try:
        with open(f"/proc/{pid}/task/{pid}/children") as file:
            return [int(child) for child in file.read().split()]
    except OSError:
        return []


def rank_of(pid):
    try:
        with open(f"/proc/{pid}/environ", "rb") as file:
            found = re.search(rb"(?:^|\0)OMPI_COMM_WORLD_RANK=(\d+)", file.read())
    except OSError:
        return None
    return int(found.group(1)) if found else None


def has_mpi(folder):
    said = subprocess.run([os.path.join(folder, "isomer-generate"), "--communicator=mpi",
                           "--out=/nowhere"], stderr=subprocess.PIPE, text=True, check=False)
    return "no MPI" not in said.stderr


def rules_in(path):
    with open(path) as file:
        return [line for line in file if not line.lstrip().startswith("seconds: ")]


class Kills:
    def __init__(self, options, scratch):
        self.options = options
        self.scratch = scratch
        self.random = random.Random(options.seed)
        self.failures = []
        self.hits = collections.Counter()
        self.jobs = self.chains = 0
        self.whole_run = 0  # seconds that a job takes

    def command(self, folder, *more):
        return [os.path.join(self.options.bin, "isomer-generate"), f"--ops={self.options.ops}",
                "--max_ops=2", f"--work_dir={folder}", f"--out={folder}/out.txt", *more]

    def start(self, folder, recovers):
        mpirun = ["mpirun", "--quiet", "--oversubscribe", "--bind-to", "none"]
        if os.geteuid() == 0:
            mpirun.append("--allow-run-as-root")
        if recovers:
            mpirun.append("--enable-recovery")
        self.jobs += 1
        self.folder, self.old_logs = folder, self.logs_in(folder)
        return subprocess.Popen(
            mpirun + ["-n", str(self.options.ranks)] + self.command(folder, "--communicator=mpi"),
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)

    @staticmethod
    def logs_in(folder):
        return set(glob.glob(os.path.join(glob.escape(folder), "memo.rank-*")))

    def all_have_come(self):
        """Each rank but 0 has its log. Before, they wait for each other in MPI_Init, which no kill of
        one ends but the limit of the others (generator/workers/README.md)."""
        return len(self.logs_in(self.folder) - self.old_logs) >= self.options.ranks - 1

    def kill_one(self, job):
        """Who was killed: ("rank" or "worker", its rank); None: nobody, as all have ended or not yet
        begun."""
        ranks = [pid for pid in children_of(job.pid) if rank_of(pid) is not None]
        if not ranks:
            return None
        rank = self.random.choice(ranks)
        number, workers = rank_of(rank), children_of(rank)
        what = "worker" if workers and self.random.random() < 0.5 else "rank"
        if what == "rank" and not self.all_have_come():
            return None
        try:
            os.kill(self.random.choice(workers) if what == "worker" else rank, signal.SIGKILL)
        except ProcessLookupError:
            return None
        return what, number

    def run_job(self, folder, kills):
        """One job and up to so many kills; how many hit, and whether it wrote its rules."""
        begin = time.monotonic()
        recovers = self.jobs % 2 == 1
        job = self.start(folder, recovers)
        hits, must_live = [], True
        while len(hits) < kills:
            try:
                job.wait(self.random.uniform(0, self.whole_run * 0.7))
                break
            except subprocess.TimeoutExpired:
                pass
            hit = self.kill_one(job)
            if hit is None:
                continue
            hits.append(hit)
            must_live &= hit[0] == "worker" or (recovers and hit[1] != 0)
            if not must_live:
                break
        try:
            text = job.communicate(timeout=JOB_ENDS)[0]
        except subprocess.TimeoutExpired:
            job.kill()
            text = job.communicate()[0]
            self.failures.append(f"a job did not end in {JOB_ENDS} s after {hits}")
        done = "rules proved" in text
        if done and not hits:  # A machine that others use is now slow, now fast.
            self.whole_run = time.monotonic() - begin
        if must_live and not done:
            self.failures.append(f"a job ended after {hits}, recovery {recovers}: {text[-300:]}")
        self.hits.update(("recovering " if recovers else "") + what + (" of rank 0" if of == 0 else "")
                         for what, of in hits)
        return len(hits), done

    def run(self):
        begin = time.monotonic()
        whole = os.path.join(self.scratch, "whole")
        os.mkdir(whole)
        subprocess.run(self.command(whole, "--jobs=1"), check=True, stdout=subprocess.DEVNULL)
        self.whole_run = time.monotonic() - begin
        expected = rules_in(f"{whole}/out.txt")
        kills = 0
        while kills < self.options.kills or not self.chains:
            folder = os.path.join(self.scratch, f"chain{self.chains}")
            os.mkdir(folder)
            self.chains += 1
            done = False
            while not done:
                hit, done = self.run_job(folder, self.options.kills - kills)
                kills += hit
            if rules_in(f"{folder}/out.txt") != expected:
                self.failures.append(f"other rules in chain {self.chains} after {kills} kills")
            self.check_all_is_kept(folder)
            shutil.rmtree(folder)
        return kills

    def check_all_is_kept(self, folder):
        summary = f"{folder}/again.json"
        subprocess.run(self.command(folder, "--jobs=1", f"--json={summary}"), check=True,
                       stdout=subprocess.DEVNULL)
        with open(summary) as file:
            said = json.load(file)
        misses = {step: counts["misses"] for step, counts in said["memo"].items()}
        misses["prove"] = misses.get("prove", 0) - said["unknown"]  # These are asked for again.
        if any(misses.values()):
            self.failures.append(f"not kept: {misses}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--bin", default=os.path.join(ROOT, "build/release/bin"))
    parser.add_argument("--kills", type=int, default=50)
    parser.add_argument("--ranks", type=int, default=3)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--ops", default="relu,scale,matmul")
    parser.add_argument("--short", action="store_true")
    options = parser.parse_args()
    if options.short:
        options.kills = min(options.kills, 4)
    if shutil.which("mpirun") is None or not has_mpi(options.bin):
        print("skipped: there is no MPI")
        return 0
    with tempfile.TemporaryDirectory() as scratch:
        kills = Kills(options, scratch)
        begin = time.monotonic()
        hit = kills.run()
        print(f"{hit} kills in {kills.jobs} jobs of {options.ranks} ranks, {kills.chains} times the "
              f"same rules, {time.monotonic() - begin:.0f} s")
        for what, count in sorted(kills.hits.items()):
            print(f"  {what}: {count}")
        for failure in kills.failures:
            print(f"FAILED: {failure}")
        return 1 if kills.failures else 0


if __name__ == "__main__":
    sys.exit(main())
