#!/usr/bin/env bash
# What PyTorch exported, with PyTorch's own outputs and gradients: the file as it is on one device,
# then a plan of it for eight, which is verified of that very file, run as eight threads and
# compared with PyTorch's numbers again, and with the file's own by --check.
#
#     python3 models/export/export_transformers.py /tmp/exports
#     scripts/check_exports.sh /tmp/exports [BUILD]
#
# Exit 1 if anything differs, is refused or is not accepted.
set -euo pipefail
folder=$(realpath "${1:?the folder of export_transformers.py}")
cd "$(dirname "${BASH_SOURCE[0]}")/.."
bin=${2:-build/release}/bin
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT

# step NAME WHAT COMMAND..: runs it, and says what went wrong.
step() {
  "${@:3}" >"$out/said" 2>&1 && return
  echo "$1: $2: $(tail -n 2 "$out/said" | tr '\n' ' ')"
  return 1
}

files=0 bad=0
for model in "$folder"/*/model.onnx; do
  case=$(dirname "$model")
  name=$(basename "$case")
  files=$((files + 1))
  if step "$name" "as it is" "$bin/isomer-run" "$model" --test_data="$case" &&
    one=$(tail -n 1 "$out/said") &&
    step "$name" "planned" "$bin/isomer-optimize" "$model" --machine=laptop_cpu --nodes=1 \
      --devices_per_node=8 --whole_machine --cache_dir="$out/cache" --out="$out/plan" &&
    step "$name" "verified" "$bin/isomer-verify" plan "$out/plan" --model="$model" &&
    step "$name" "checked" "$bin/isomer-run" "$out/plan" --check --steps=1 &&
    step "$name" "on 8 devices" "$bin/isomer-run" "$out/plan" --test_data="$case"; then
    echo "$name: on one device ${one##*: }; on 8 $(tail -n 1 "$out/said" | sed 's/.*: //')"
  else
    bad=$((bad + 1))
  fi
done
echo "$files files, $bad of them bad"
[[ $files -gt 0 && $bad == 0 ]]
