#!/usr/bin/env bash
# Runs the benchmarks of bench/README.md and prints their results as a table. Builds first.
set -euo pipefail
(($# == 0)) || { echo "error: bench/run.sh takes no arguments" >&2; exit 2; }
cd "$(dirname "${BASH_SOURCE[0]}")/.."
cmake --preset release >/dev/null
cmake --build --preset release --parallel "$(nproc)" >/dev/null
bin=build/release/bin
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT

# value FILE KEY: the first number of that key in a JSON file.
value() { grep -m1 "\"$2\":" "$1" | sed 's/.*: *//; s/,$//'; }
# phases FILE: what "seconds" holds, each with its share.
phases() {
  awk '/"seconds": \{/ { inside = 1; next }
       inside && /\}/ { exit }
       inside { gsub(/[",:]/, ""); name[++n] = $1; time[n] = $2; sum += $2 }
       END { for (i = 1; i <= n; i++)
               printf "%s %.1f s (%.0f %%)%s", name[i], time[i], 100 * time[i] / sum, i < n ? ", " : "" }
      ' "$1"
}
# seconds COMMAND...: how long it takes.
seconds() {
  local start=$EPOCHREALTIME
  "$@" >/dev/null 2>&1
  awk "BEGIN { printf \"%.2f\", ($EPOCHREALTIME) - ($start) }"
}

build/release/bench/pcg_bench 2>/dev/null
build/release/bench/generator_bench 2>/dev/null

$bin/isomer-generate --ops=all --max_ops=3 --out="$out/all.rules" --json="$out/all.json" >/dev/null 2>&1
echo
echo "generation: $(value "$out/all.json" graphs_enumerated) graphs, $(value "$out/all.json" candidates) candidates," \
  "$(value "$out/all.json" rules) rules proved, $(value "$out/all.json" refuted) refuted, $(value "$out/all.json" unknown) unknown;" \
  "peak $(value "$out/all.json" peak_rss_bytes) bytes"
echo "phases: $(phases "$out/all.json")"
echo "proving rules/default.rules: $(seconds $bin/isomer-verify rules rules/default.rules --cache="$out/proofs") s," \
  "$(seconds $bin/isomer-verify rules rules/default.rules --cache="$out/proofs") s with the cache"
for model in models/data/bert_tiny.onnx zoo:bert_large models/data/resnext50.onnx; do
  $bin/isomer-optimize "$model" --machine=dgx_h100 --nodes=2 --devices_per_node=4 \
    --out="$out/plan" --json="$out/plan.json" >/dev/null 2>&1
  echo "$model on 2 nodes of 4 H100: predicted $(value "$out/plan.json" predicted_step_us) us a step," \
    "data_parallel $(grep -A2 '"data_parallel"' "$out/plan.json" | grep -m1 predicted_step_us | sed 's/.*: *//; s/,$//') us," \
    "search $(value "$out/plan.json" seconds) s, certificate checked in $(seconds $bin/isomer-verify plan "$out/plan") s"
done
