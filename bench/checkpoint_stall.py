#!/usr/bin/env python3
"""How long does training stand still for a checkpoint, and how much memory does going on from one take?

    bench/checkpoint_stall.py [--parameters=1e9] [--ranks=4] [--communicator=threads|tcp]
                              [--plan=zero3] [--steps=6] [--every=3] [--bin=DIR] [--json=FILE]
                              [--folder=DIR] [--resume=PLAN:RANKS]

A network of 16 dense layers of one width, trained by SGD without states, its weights spread over the
ranks so that each is there once. Every so many steps it writes a checkpoint. Printed are
  - `stall`: the longest that training stood still for one: what comes between two steps, and how long
    the next step waited, before it updated, for what was not copied yet
  - `write`: how long one took in all, until the disk had it
  - the most resident memory of all processes added up, sampled
and, with --resume=PLAN:RANKS, that of a run that goes on under another plan for one step, beside that
of a run that begins with that plan: both write their checkpoint at the end.
Exit code 1: the stall is 5 % of the write or more, or going on takes more than 10 % more memory than
the larger of the two runs that begin.

Memory: 4 bytes a parameter for each of weights, gradients and the copy that is written.
"""
import argparse
import json
import math
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import time

from soak import resident_bytes, start

LAYERS = 16
MOST_STALL = 0.05
MOST_MORE_MEMORY = 0.10
LOOKS_PER_SECOND = 20


def make_plan(arguments, plan, ranks, out):
    width = 16 * round(math.sqrt(arguments.parameters / LAYERS) / 16)
    model = (f"zoo:mlp?layers={LAYERS}&inputs={width}&hidden={width}&classes={width}"
             f"&batch={arguments.batch}")
    command = [os.path.join(arguments.bin, "isomer-optimize"), model, "--machine=laptop_cpu",
               f"--devices_per_node={ranks}", "--optimizer=sgd", f"--out={out}", "--quiet",
               "--whole_machine", "--budget=20", "--time_limit=30"]
    if plan != "search":
        command.append(f"--plan={plan}")
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    return LAYERS * width * (width + 1)


def measured(arguments, plan, ranks, flags, folder):
    """The summary of a run, with the most resident memory."""
    path = f"{folder}/json"
    command = [os.path.join(arguments.bin, "isomer-run"), plan, "--learning_rate=0.001", "--quiet",
               f"--json={path}"] + flags
    processes = start(argparse.Namespace(communicator=arguments.communicator, devices=ranks), command)
    most = [0]
    ends = threading.Event()

    def look():
        while not ends.wait(1 / LOOKS_PER_SECOND):
            most[0] = max(most[0], resident_bytes([process.pid for process in processes]) or 0)

    looker = threading.Thread(target=look)
    looker.start()
    text = processes[0].stdout.read()
    codes = [process.wait() for process in processes]
    ends.set()
    looker.join()
    if any(codes):
        sys.exit(f"bench/checkpoint_stall.py: exit codes {codes}: {text}")
    with open(path) as summary:
        result = json.load(summary)
    result["most_resident"] = most[0]
    return result


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--parameters", type=float, default=1e9)
    parser.add_argument("--ranks", type=int, default=4)
    parser.add_argument("--communicator", choices=["threads", "tcp"], default="threads")
    parser.add_argument("--plan", default="zero3")
    parser.add_argument("--batch", type=int, default=16)
    parser.add_argument("--steps", type=int, default=6)
    parser.add_argument("--every", type=int, default=3)
    parser.add_argument("--bin", default="build/release/bin")
    parser.add_argument("--folder", default=None, help="where checkpoints are written")
    parser.add_argument("--json", default="")
    parser.add_argument("--resume", default="", help="PLAN:RANKS")
    arguments = parser.parse_args()
    folder = tempfile.mkdtemp(dir=arguments.folder)
    mib = 2**20
    try:
        begin = time.monotonic()
        parameters = make_plan(arguments, arguments.plan, arguments.ranks, f"{folder}/plan")
        keep = [f"--checkpoint_dir={folder}/checkpoints", "--keep_checkpoints=1"]
        run = measured(arguments, f"{folder}/plan", arguments.ranks,
                       [f"--steps={arguments.steps}", f"--checkpoint_every={arguments.every}"] + keep,
                       folder)
        about = run["checkpoints"]
        result = {"parameters": parameters, "ranks": arguments.ranks, "plan": arguments.plan,
                  "communicator": arguments.communicator, "step_us": run["step_us"]["median"],
                  "stall_us": about["stall_us"], "write_us": about["write_us"],
                  "waited_us": about["waited_us"], "stall": about["stall_us"] / about["write_us"],
                  "most_resident_mib": round(run["most_resident"] / mib, 1)}
        good = result["stall"] < MOST_STALL
        print(f"{parameters / 1e6:.0f} million parameters on {arguments.ranks} ranks "
              f"({arguments.communicator}, {arguments.plan}): step {result['step_us'] / 1e6:.2f} s, "
              f"stall {about['stall_us'] / 1e6:.3f} s of {about['write_us'] / 1e6:.2f} s, "
              f"{100 * result['stall']:.1f} %; at most {result['most_resident_mib']:.0f} MiB",
              flush=True)
        if arguments.resume:
            plan, ranks = arguments.resume.split(":")
            make_plan(arguments, plan, int(ranks), f"{folder}/other")
            fresh = measured(arguments, f"{folder}/other", int(ranks),
                             ["--steps=1", f"--checkpoint_dir={folder}/fresh"], folder)
            shutil.rmtree(f"{folder}/fresh")
            again = measured(arguments, f"{folder}/other", int(ranks),
                             [f"--steps={arguments.steps + 1}", "--resume"] + keep, folder)
            larger = max(run["most_resident"], fresh["most_resident"])
            result["resumed"] = {
                "plan": plan, "ranks": int(ranks),
                "most_resident_mib": round(again["most_resident"] / mib, 1),
                "of_one_that_begins_mib": round(fresh["most_resident"] / mib, 1),
                "more_than_the_larger": round(again["most_resident"] / larger - 1, 4)}
            good &= again["most_resident"] <= (1 + MOST_MORE_MEMORY) * larger
            print(f"going on with {plan} on {ranks} ranks: {again['most_resident'] / mib:.0f} MiB; "
                  f"beginning with it: {fresh['most_resident'] / mib:.0f} MiB; "
                  f"{100 * result['resumed']['more_than_the_larger']:+.1f} % of the larger plan's",
                  flush=True)
        result["seconds"] = round(time.monotonic() - begin, 1)
    finally:
        shutil.rmtree(folder)
    if arguments.json:
        with open(arguments.json, "w") as out:
            json.dump(result, out, indent=2)
            out.write("\n")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
