#!/usr/bin/env bash
# A training step on one and on two CPU cores, Isomer's beside PyTorch's, eager and compiled: medians,
# taken in turns, as Markdown.
#
#     bench/train_cpu.sh [ROUNDS [NETWORK..]]      2 rounds of all by default
#
# PYTHON: one that has torch, torchvision and transformers. Two cores are two devices for Isomer, by
# the plan that it finds. The last lines are the geometric mean of PyTorch's best over Isomer's, and
# how much of a step devices spend outside of kernels and collectives, by a trace.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
rounds=${1:-2}
shift || true
networks=("$@")
((${#networks[@]})) || networks=(mlp bert_base gpt lstm dlrm resnext50)
python=${PYTHON:-python3}
bin=${BIN:-build/release/bin}
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT

declare -A zoo=(
  [mlp]="zoo:mlp?layers=4&inputs=2048&hidden=2048&classes=2048&batch=64"
  [bert_base]="zoo:bert_large?layers=12&hidden=768&heads=12&intermediate=3072&seq=128&batch=2&language=1"
  [gpt]="zoo:gpt?layers=12&seq=128&batch=2"
  [lstm]="zoo:rnnlm?steps=35&hidden=650&embedding=650&vocabulary=10000&batch=20"
  [dlrm]="zoo:dlrm?rows=100000&batch=512"
  [resnext50]="zoo:resnext50?batch=8"
)

isomer() { # NETWORK CORES
  local plan=$out/$1.$2
  [[ -e $plan ]] || "$bin/isomer-optimize" "${zoo[$1]}" --machine=laptop_cpu --nodes=1 \
    "--devices_per_node=$2" --loss_alone "--out=$plan" >/dev/null 2>"$out/err" || { cat "$out/err" >&2; exit 1; }
  "$bin/isomer-run" "$plan" --steps=11 "--json=$out/json" >/dev/null 2>"$out/err" || { cat "$out/err" >&2; exit 1; }
  "$python" -c 'import json, sys; print(json.load(open(sys.argv[1]))["step_us"]["median"] / 1e3)' "$out/json"
}

# Between the first and the last task of three steps, but for what lies between steps.
outside() { # NETWORK CORES
  "$bin/isomer-run" "$out/$1.$2" --steps=6 --trace_steps=3 "--trace=$out/trace" >/dev/null 2>"$out/err" || { cat "$out/err" >&2; exit 1; }
  "$python" - "$out/trace" "$1 on $2" <<'PY'
import json, sys
queues = {}
for event in json.load(open(sys.argv[1]))["traceEvents"]:
    if event["ph"] == "X":
        queues.setdefault(event["tid"], []).append((event["ts"], event["dur"]))
worst = 0
for events in queues.values():
    events.sort()
    gaps = sorted(b[0] - a[0] - a[1] for a, b in zip(events, events[1:]))
    busy, idle = sum(us for _, us in events), sum(gaps[:-2])  # the two largest: between three steps
    worst = max(worst, idle / (busy + idle))
print(f"outside of kernels and collectives, {sys.argv[2]}: {100 * worst:.2f} % of a step")
PY
}

for ((round = 0; round < rounds; ++round)); do
  for network in "${networks[@]}"; do
    for cores in 1 2; do
      echo "$network $cores isomer $(isomer "$network" "$cores")" >>"$out/times"
      for how in eager channels_last compile; do
        [[ $how == channels_last && $network != resnext50 ]] && continue
        echo "$network $cores $how $("$python" bench/train_cpu.py "$network" "$cores" "$how" 2>"$out/err" || { tail -3 "$out/err" >&2; echo nan; })" >>"$out/times"
      done
    done
  done
done
"$python" - "$out/times" <<'PY'
import math, statistics, sys
times = {}
for line in open(sys.argv[1]):
    network, cores, how, ms = line.split()
    times.setdefault((network, cores), {}).setdefault(how, []).append(float(ms))
print("| network | cores | Isomer, ms | PyTorch eager | channels last | compiled | best of PyTorch's / Isomer |")
print("|---|--:|--:|--:|--:|--:|--:|")
ratios = []
for (network, cores), by in times.items():
    ms = {how: statistics.median(values) for how, values in by.items()}
    best = min(value for how, value in ms.items() if how != "isomer" and not math.isnan(value))
    ratios.append(best / ms["isomer"])
    cell = lambda how: f"{ms[how]:.1f}" if how in ms else ""
    print(f"| {network} | {cores} | {cell('isomer')} | {cell('eager')} | {cell('channels_last')} | "
          f"{cell('compile')} | {ratios[-1]:.2f} |")
print(f"\ngeometric mean {math.exp(statistics.mean(map(math.log, ratios))):.2f}")
PY
for network in "${networks[@]}"; do
  [[ $network == bert_base ]] && for cores in 1 2; do outside "$network" "$cores"; done
done
