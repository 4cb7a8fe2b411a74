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
  - the processors' time of a step, of all processes, on average over the same tenths: what a step
    costs whatever else the machine does (but for processes that wait for each other busily)
Exit code 1: memory grew by more than 1 %, or both times by more than 10 %.
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


def processor_seconds(pids):
    """User's and system's, of all threads."""
    ticks = 0
    for pid in pids:
        try:
            with open(f"/proc/{pid}/stat") as stat:
                ticks += sum(int(x) for x in stat.read().rpartition(")")[2].split()[11:13])
        except (OSError, ValueError):
            return None
    return ticks / os.sysconf("SC_CLK_TCK")


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
    looks, processors = [], []
    ends = threading.Event()

    def look():
        while not ends.wait(1 / LOOKS_PER_SECOND):
            pids = [process.pid for process in processes]
            resident, seconds = resident_bytes(pids), processor_seconds(pids)
            if resident and seconds:
                looks.append((at_step[0], resident))
                processors.append((at_step[0], seconds))

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
    return looks, times, processors, last, checkpoints


def tenth(values, steps, i):
    """Of pairs (step, value) the values in the i-th tenth of the steps, from 0."""
    return [value for step, value in values if steps * i <= 10 * step < steps * (i + 1)]


def processor_us_in_tenth(processors, steps, i):
    of_tenth = [(step, seconds) for step, seconds in processors
                if steps * i <= 10 * step < steps * (i + 1)]
    (s0, t0), (s1, t1) = of_tenth[0], of_tenth[-1]
    return 1e6 * (t1 - t0) / max(1, s1 - s0)


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
        looks, times, processors, last, checkpoints = run(arguments, folder)
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
    # Behind the last step the summary is made, of all losses.
    most = max(resident for step, resident in looks
               if arguments.steps <= 10 * step < 10 * arguments.steps) / first - 1
    us = [statistics.median(tenth(step_us, arguments.steps, i)) for i in (1, 9)]
    processor_us = [processor_us_in_tenth(processors, arguments.steps, i) for i in (1, 9)]
    result = {
        "model": arguments.model, "communicator": arguments.communicator,
        "devices": arguments.devices, "steps": arguments.steps, "checkpoint_every": arguments.every,
        "flags": arguments.flags, "seconds": round(seconds, 1),
        "resident_mib": [round(first / 2**20, 2), round(statistics.median(late) / 2**20, 2)],
        "growth": round(growth, 5), "most_above": round(most, 5),
        "step_us": [round(x, 1) for x in us], "slower": round(us[1] / us[0] - 1, 4),
        "processor_us": [round(x, 1) for x in processor_us],
        "stall_us": checkpoints["stall_us"], "last_line": last,
    }
    if arguments.json:
        with open(arguments.json, "w") as out:
            json.dump(result, out, indent=2)
            out.write("\n")
    print(f"{arguments.communicator}, {arguments.devices} devices, {arguments.steps} steps in "
          f"{seconds:.0f} s: resident {first / 2**20:.1f} -> {statistics.median(late) / 2**20:.1f} "
          f"MiB ({100 * growth:+.2f} %, at most {100 * most:+.2f} %), step {us[0]:.0f} -> "
          f"{us[1]:.0f} us ({100 * (us[1] / us[0] - 1):+.1f} %), of processors "
          f"{processor_us[0]:.0f} -> {processor_us[1]:.0f} us")
    is_slower = all(late > (1 + MOST_SLOWER) * early for early, late in (us, processor_us))
    return 0 if growth <= MOST_GROWTH and not is_slower else 1


if __name__ == "__main__":
    sys.exit(main())
