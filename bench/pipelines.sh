#!/usr/bin/env bash
# What do stages and micro-batches cost? The simulated idle time of 1F1B beside the formula for equal
# stages and free transfers, the step and the memory. Usage: bench/pipelines.sh [BUILD]
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
build=${1:-build/release}
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT

# value KEY: the first number of that key in the last summary.
value() { grep -m1 "\"$1\":" "$out/json" | sed 's/.*: *//; s/,$//'; }

echo "| stages | micro-batches | bubble | idle, simulated | step | memory of a device | of data parallelism |"
echo "|--:|--:|--:|--:|--:|--:|--:|"
for stages in 2 4 8; do
  for micro_batches in 4 8 16 32; do
    "$build/bin/isomer-optimize" zoo:bert_large --batch_size=128 --machine=dgx_h100 --nodes=1 \
      --devices_per_node=8 --plan=pipeline --stages=$stages --micro_batches=$micro_batches \
      --out="$out/plan" --json="$out/json" >/dev/null 2>"$out/err" || { cat "$out/err" >&2; exit 1; }
    "$build/bin/isomer-verify" plan "$out/plan" >/dev/null
    data=$(grep -A3 '"data_parallel": {' "$out/json" | grep -m1 predicted_peak_bytes | sed 's/.*: *//; s/,$//')
    awk "BEGIN { printf \"| $stages | $micro_batches | %.1f %% | %.1f %% | %.1f ms | %.1f GiB | %.1f GiB |\n\",
         100 * $(value bubble_share), 100 * $(value idle_share), $(value predicted_step_us) / 1000,
         $(value predicted_peak_bytes) / 2^30, $data / 2^30 }"
  done
done
