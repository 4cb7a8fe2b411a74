#!/usr/bin/env bash
# Is a plan for more devices ever predicted slower than one for fewer, or than a baseline? One global
# batch, networks of the zoo, 1 to 8 devices of a node and two to eight nodes.
# Usage: bench/never_worse.sh [BUILD [MODEL..]]; exit 1 if any is.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
build=${1:-build/release}
shift || true
models=("$@")
if [ ${#models[@]} -eq 0 ]; then
  models=(lenet digits_cnn encoder mlp alexnet squeezenet candle_uno dlrm xdl rnnlm nmt nasrnn vit "gpt?layers=2")
fi
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT

echo "| model | devices | step, us | of the fastest baseline | from |"
echo "|---|--:|--:|--:|---|"
worse=0
for model in "${models[@]}"; do
  before=""
  for shape in 1x1 1x2 1x4 1x8 2x8 4x8 8x8; do
    "$build/bin/isomer-optimize" "zoo:$model" --machine=dgx_h100 --nodes="${shape%x*}" \
      --devices_per_node="${shape#*x}" --budget=50 --update=auto --out="$out/plan" \
      --json="$out/json" >"$out/report" 2>"$out/err" || { cat "$out/err" >&2; exit 1; }
    python3 - "$out/json" "$model" "$shape" "$before" <<'PY' || worse=1
import json, sys
path, model, shape, before = sys.argv[1:]
metrics = json.load(open(path))
metrics = metrics.get("metrics", metrics)
step = metrics["predicted_step_us"]
baselines = [b["predicted_step_us"] for b in metrics["baselines"].values()]
n, d = map(int, shape.split("x"))
print(f"| {model} | {n * d} | {step:.1f} | {min(baselines):.1f} | {metrics['plan']} |")
slower = step > min(baselines) * (1 + 1e-9) or (before and step > float(before) * (1 + 1e-9))
sys.exit(1 if slower else 0)
PY
    before=$(grep -m1 '"predicted_step_us":' "$out/json" | sed 's/.*: *//; s/,$//')
  done
done
exit $worse
