#!/usr/bin/env python3
"""Does a long training keep its memory and its speed?

    bench/soak.py [--steps=20000] [--every=500] [--communicator=threads|tcp] [--devices=2]
                  [--model=MODEL] [--data=FILE] [--batch=N] [--bin=DIR] [--json=FILE] [-- FLAGS..]

Trains with rows of data, a log and checkpoints, and looks at the processes four times a second. The
first tenth of the steps is the warm-up: code is loaded, buffers are made, heaps find their size. Of
what follows it prints
  - resident memory (VmRSS, all processes added up): medians of the second and of the last tenth of
    the steps, and the most of any moment between, relative to the first of these
  - the time of a step, by the clock of who reads the log, so with data, checkpoints and all: medians
    of the second and of the last tenth
Exit code 1: memory grew by more than 1 %, or steps became slower by more than 10 %, which is what
two busy cores differ by from one minute to the next.
"""
import argparse
import json
import os
import re
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time

MOST_GROWTH = 0.01
MOST_SLOWER = 0.10
LOOKS_PER_SECOND = 4
LOGS = 1000  # lines of the log


def resident_bytes(pids):
    total = 0
    for pid in pids:
        try:
            with open(f"/proc/{pid}/statm") as statm:
                total += int(statm.read().split()[1]) * os.sysconf("SC_PAGESIZE")
        except (OSError, IndexError):
            return None
    return total


def free_port():
    with socket.socket() as s:
        s.bind(("localhost", 0))
        return s.getsockname()[1]


def start(arguments, command):
    if arguments.communicator == "threads":
        return [subprocess.Popen(command, stdout=subprocess.PIPE, text=True)]
    port = str(free_port())
    processes = []
    for rank in range(arguments.devices):
        env = dict(os.environ, RANK=str(rank), WORLD_SIZE=str(arguments.devices),
                   LOCAL_RANK=str(rank), LOCAL_WORLD_SIZE=str(arguments.devices),
                   MASTER_ADDR="localhost", MASTER_PORT=port)
        processes.append(subprocess.Popen(
            command + ["--communicator=tcp"], env=env, text=True,
            stdout=subprocess.PIPE if rank == 0 else subprocess.DEVNULL))
    return processes


def run(arguments, folder):
    plan = os.path.join(folder, "plan")
    program = os.path.join(arguments.bin, "isomer-optimize")
    subprocess.run([program, arguments.model, "--machine=laptop_cpu",
                    f"--devices_per_node={arguments.devices}", "--plan=data_parallel",
                    "--optimizer=adam", f"--out={plan}"] + arguments.optimize,
                   check=True, stdout=subprocess.DEVNULL)
    log_every = max(1, arguments.steps // LOGS)
    command = [os.path.join(arguments.bin, "isomer-run"), plan, f"--data={arguments.data}",
               f"--steps={arguments.steps}", f"--log_every={log_every}", "--learning_rate=0.0001",
               f"--checkpoint_dir={folder}/checkpoints", f"--checkpoint_every={arguments.every}",
               f"--json={folder}/json"] + arguments.flags
    processes = start(arguments, command)
    at_step = [0]
    times = [(time.monotonic(), 0)]
    looks = []
    ends = threading.Event()

    def look():
        while not ends.wait(1 / LOOKS_PER_SECOND):
            resident = resident_bytes([process.pid for process in processes])
            if resident:
                looks.append((at_step[0], resident))

    looker = threading.Thread(target=look)
    looker.start()
    last = ""
    for line in processes[0].stdout:
        last = line.strip()
        found = re.match(r"step (\d+): .*us a step", line)
        if found:
            at_step[0] = int(found[1])
            times.append((time.monotonic(), at_step[0]))
    ends.set()
    looker.join()
    codes = [process.wait() for process in processes]
    if any(codes):
        sys.exit(f"bench/soak.py: exit codes {codes}: {last}")
    with open(f"{folder}/json") as summary:
        checkpoints = json.load(summary)["checkpoints"]
    return looks, times, last, checkpoints


def tenth(values, steps, i):
    """Of pairs (step, value) the values in the i-th tenth of the steps, from 0."""
    return [value for step, value in values if steps * i <= 10 * step < steps * (i + 1)]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=20000)
    parser.add_argument("--every", type=int, default=500)
    parser.add_argument("--communicator", choices=["threads", "tcp"], default="threads")
    parser.add_argument("--devices", type=int, default=2)
    parser.add_argument("--model", default="models/data/digits_cnn.onnx")
    parser.add_argument("--data", default="models/data/digits.csv")
    parser.add_argument("--bin", default="build/release/bin")
    parser.add_argument("--json", default="")
    parser.add_argument("--optimize", action="append", default=[], help="a flag of isomer-optimize")
    parser.add_argument("flags", nargs="*", help="of isomer-run, behind --")
    arguments = parser.parse_args()
    folder = tempfile.mkdtemp()
    try:
        begin = time.monotonic()
        looks, times, last, checkpoints = run(arguments, folder)
        seconds = time.monotonic() - begin
    finally:
        shutil.rmtree(folder)
    step_us = [(s1, 1e6 * (t1 - t0) / (s1 - s0))
               for (t0, s0), (t1, s1) in zip(times[1:], times[2:])]
    early, late = tenth(looks, arguments.steps, 1), tenth(looks, arguments.steps, 9)
    if not early or not late:
        sys.exit("bench/soak.py: too few steps: a tenth of them was over before it was looked at")
    first = statistics.median(early)
    growth = statistics.median(late) / first - 1
    most = max(resident for step, resident in looks if 10 * step >= arguments.steps) / first - 1
    us = [statistics.median(tenth(step_us, arguments.steps, i)) for i in (1, 9)]
    result = {
        "model": arguments.model, "communicator": arguments.communicator,
        "devices": arguments.devices, "steps": arguments.steps, "checkpoint_every": arguments.every,
        "flags": arguments.flags, "seconds": round(seconds, 1),
        "resident_mib": [round(first / 2**20, 2), round(statistics.median(late) / 2**20, 2)],
        "growth": round(growth, 5), "most_above": round(most, 5),
        "step_us": [round(x, 1) for x in us], "slower": round(us[1] / us[0] - 1, 4),
        "stall_us": checkpoints["stall_us"], "last_line": last,
    }
    if arguments.json:
        with open(arguments.json, "w") as out:
            json.dump(result, out, indent=2)
            out.write("\n")
    print(f"{arguments.communicator}, {arguments.devices} devices, {arguments.steps} steps in "
          f"{seconds:.0f} s: resident {first / 2**20:.1f} -> {statistics.median(late) / 2**20:.1f} "
          f"MiB ({100 * growth:+.2f} %, at most {100 * most:+.2f} %), step {us[0]:.0f} -> "
          f"{us[1]:.0f} us ({100 * (us[1] / us[0] - 1):+.1f} %)")
    return 0 if growth <= MOST_GROWTH and us[1] <= (1 + MOST_SLOWER) * us[0] else 1


if __name__ == "__main__":
    sys.exit(main())
