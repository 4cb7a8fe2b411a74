#!/usr/bin/env bash
# Every network of the zoo in a small size, on four devices, in float32 and bfloat16: whether its
# plan computes the same however queues run.
#
#   scripts/zoo_executions.sh [SEEDS]      inline, threaded, and 50 adversarial runs of each
#
# Needs a release build (BIN=FOLDER: of other programs). Exit code 1 if any differs, or has no plan.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

seeds=${1:-50}
bin=${BIN:-build/release/bin}
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
export XDG_CACHE_HOME=$folder/cache

agree=0 bad=0
for file in models/zoo/networks/*.cc; do
  small=$(tr '\n' ' ' <"$file" | grep -oP '\.small = *\K"[^,;]*(?=,)' | tr -d '" ')
  [[ -z $small ]] && continue
  for precision in float32 bfloat16; do
    network="zoo:$(basename "$file" .cc)?$small"
    if "$bin/isomer-optimize" "$network" --machine=laptop_cpu --nodes=1 --devices_per_node=4 \
      "--precision=$precision" --optimizer=adam --whole_machine --budget=10 --time_limit=20 \
      --loss_alone "--out=$folder/plan" >"$folder/out" 2>&1 &&
      "$bin/isomer-run" "$folder/plan" --steps=2 "--check_executions=$seeds" >"$folder/out" 2>&1; then
      agree=$((agree + 1))
    else
      bad=$((bad + 1))
      echo "$network in $precision: $(grep -v '^run ' "$folder/out" | tail -1)"
    fi
  done
done
echo "$((agree + bad)) plans: $agree give the same bits, $bad do not"
((bad == 0))
