#!/usr/bin/env bash
# What do stages and micro-batches cost, and what do chunks (interleaved 1F1B) and steps without a
# flush in between (2BW) save? The simulated idle time beside the formula for equal stages and free
# transfers, the step and the memory. Usage: bench/pipelines.sh [BUILD]
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
build=${1:-build/release}
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT

# value KEY: the first number of that key in the last summary.
value() { grep -m1 "\"$1\":" "$out/json" | sed 's/.*: *//; s/,$//'; }

# row STAGES MICRO_BATCHES CHUNKS STEPS
row() {
  "$build/bin/isomer-optimize" zoo:bert_large --batch_size=128 --machine=dgx_h100 --nodes=1 \
    --devices_per_node=8 --plan=grid --pipeline="$1x$3" --micro_batch_size=$((128 * $1 / 8 / $2)) \
    --steps_between_flushes="$4" --out="$out/plan" --json="$out/json" >/dev/null 2>"$out/err" ||
    { cat "$out/err" >&2; exit 1; }
  "$build/bin/isomer-verify" plan "$out/plan" >/dev/null
  awk "BEGIN { printf \"| $1 | $2 | $3 | $4 | %.1f %% | %.1f %% | %.1f ms | %.1f GiB |\n\",
       100 * $(sed -n '/"pipeline": {/,/}/p' "$out/json" | grep bubble_share | sed 's/.*: *//; s/,$//'), 100 * $(value idle_share), $(value predicted_step_us) / 1000,
       $(value predicted_peak_bytes) / 2^30 }"
}

echo "| stages | micro-batches | chunks | steps | bubble | idle, simulated | step | memory of a device |"
echo "|--:|--:|--:|--:|--:|--:|--:|--:|"
for stages in 2 4 8; do
  for micro_batches in 4 8 16 32; do row $stages $micro_batches 1 1; done
done
for micro_batches in 8 16; do
  for steps in 1 4 16; do
    for chunks in 1 2 4; do
      [ $chunks = 1 ] && [ $steps = 1 ] || row 4 $micro_batches $chunks $steps
    done
  done
done
data=$(grep -A3 '"data_parallel": {' "$out/json")
echo
echo "data parallelism: $(awk "BEGIN { printf \"%.1f ms, %.1f GiB\",
  $(echo "$data" | grep -m1 predicted_step_us | sed 's/.*: *//; s/,$//') / 1000,
  $(echo "$data" | grep -m1 predicted_peak_bytes | sed 's/.*: *//; s/,$//') / 2^30 }")"
