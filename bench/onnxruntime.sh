#!/bin/bash
# Ten networks, optimised for one CPU device with a profile and exported, beside the originals in onnxruntime with
# all of its own optimisations on.
#
#   bench/onnxruntime.sh [FOLDER]    # of files; the table goes to standard output. Ten minutes
#
# A profile that lacks the kernels of a plan says little of it: they are measured and it is planned again, until a
# plan has kernels that are all measured. Needs python3 (PYTHON) with onnxruntime; the programs of build/release (BIN).
set -euo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)
bin=${BIN:-$root/build/release/bin}
python=${PYTHON:-python3}
out=${1:-$(mktemp -d)}
mkdir -p "$out"

networks=(
  "bert zoo:bert_large?layers=2&hidden=256&heads=4&intermediate=1024&vocabulary=1000&seq=64&batch=4"
  "squeezenet zoo:squeezenet?side=112"
  "resnext50 zoo:resnext50?side=64&batch=1&training=0"
  "inception_v3 zoo:inception_v3?side=128&batch=1"
  "nasnet_a zoo:nasnet_a?stages=1&cells=2&side=64&width=32"
  "nasrnn zoo:nasrnn"
  "gpt zoo:gpt?layers=2&hidden=128&heads=4&vocabulary=512&seq=64&batch=2"
  "llama zoo:llama?layers=2&hidden=128&heads=4&key_heads=2&intermediate=256&vocabulary=256&seq=64&batch=2"
  "vit zoo:vit?layers=2&hidden=128&heads=4&intermediate=256&side=64&batch=2"
  "mlp zoo:mlp?layers=4&inputs=256&hidden=512&classes=10&batch=32"
)
one_device=(--mode=inference --machine=cpu_2cores --devices_per_node=1)
most_rounds=8

# A field of the summary that --json wrote.
field() { "$python" -c 'import json, sys; print(eval(sys.argv[2], {"j": json.load(open(sys.argv[1]))}))' "$@"; }

echo "| network | predicted: as it is, ms | plan, ms | ratio | onnxruntime: original, ms | written, ms | ratio | error | rounds |"
echo "|---|---|---|---|---|---|---|---|---|"
for entry in "${networks[@]}"; do
  read -r name spec <<<"$entry"
  original=$out/$name.onnx profile=$out/$name.profile json=$out/$name.json plan=$out/$name.plan
  "$bin/isomer-run" "$spec" --mode=inference --steps=1 --out="$original" >/dev/null
  "$bin/isomer-profile" "$original" --mode=inference --devices=1 --out="$profile" >/dev/null 2>&1
  for ((round = 1; round <= most_rounds; ++round)); do
    "$bin/isomer-optimize" "$original" "${one_device[@]}" --profile="$profile" --out="$plan" --json="$json" \
      --export_onnx="$out/$name.fast.onnx" >/dev/null
    [[ $(field "$json" 'set(j["times_from"]) <= {"measured", "calibrations"}') == True ]] && break
    "$bin/isomer-profile" "$plan" --out="$profile" >/dev/null 2>&1
  done
  predicted=$(field "$json" \
    '"%.3f | %.3f | %.3f" % (j["single_device"]["predicted_step_us"] / 1e3, j["predicted_step_us"] / 1e3, j["single_device"]["predicted_step_us"] / j["predicted_step_us"])')
  read -r before after ratio error < <("$python" "$root/bench/time_onnx.py" "$original" "$out/$name.fast.onnx" 8)
  echo "| $name | $predicted | $before | $after | $ratio | $error | $round |"
done
