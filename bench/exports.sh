#!/usr/bin/env bash
# What PyTorch exported, planned beside the same network of the zoo, where the zoo has it: predicted
# step, time and memory of the search, and whether the plan is accepted of that very file.
#
#     python3 models/export/export_transformers.py /tmp/exports --wide
#     bench/exports.sh /tmp/exports [BUILD]
#
# 16 H100, bfloat16, Adam. Exit 1 if a plan is refused.
set -euo pipefail
folder=$(realpath "${1:?the folder of export_transformers.py --wide}")
cd "$(dirname "${BASH_SOURCE[0]}")/.."
build=${2:-build/release}
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT

# The sizes that the exporter's script has.
declare -A zoo=(
  [llama]="zoo:llama?layers=2&hidden=1024&heads=16&key_heads=4&intermediate=4096&vocabulary=8192&seq=1024&batch=16"
  [qwen3]="zoo:llama?norms=1&layers=2&hidden=1024&heads=16&key_heads=4&intermediate=4096&vocabulary=8192&seq=1024&batch=16"
  [gpt2]="zoo:gpt?layers=2&hidden=1024&heads=16&vocabulary=8192&seq=1024&batch=16"
  [bert]="zoo:bert_large?layers=2&hidden=1024&heads=16&seq=1024&batch=16"
  [distilbert]="zoo:bert_large?layers=2&hidden=1024&heads=16&seq=1024&batch=16"
  [encoder]="zoo:bert_large?layers=2&hidden=1024&heads=16&seq=1024&batch=16"
  [lstm]="zoo:rnntc?layers=2&steps=32&hidden=1024&embedding=1024&vocabulary=8192&classes=1000&batch=16"
  [vit]="zoo:vit?layers=2&hidden=1024&heads=16&intermediate=4096&batch=16"
  [vit_hf]="zoo:vit?layers=2&hidden=1024&heads=16&intermediate=4096&batch=16"
  [gemma2]="zoo:gemma2?layers=2&hidden=1024&heads=16&key_heads=4&head_size=64&intermediate=4096&window=512&vocabulary=8192&seq=1024&batch=16"
  [mixtral]="zoo:mixtral?layers=2&hidden=1024&heads=16&key_heads=4&intermediate=4096&experts=4&vocabulary=8192&seq=1024&batch=16&dropless=1"
  [t5]="zoo:t5?layers=2&hidden=1024&heads=16&head_size=64&intermediate=4096&vocabulary=8192&seq=1024&batch=16"
  [swin]="zoo:swin?stages=2&layers1=2&layers2=2&width=128&heads=4&batch=16"
  [convnext]="zoo:convnext?stages=2&blocks1=2&blocks2=2&width=256&batch=16"
  [dlrm]="zoo:dlrm?pairs=1&tables=6&rows=8192&features=128&bag=4&dense=16&bottom_layers=1&bottom_hidden=1024&top_layers=1&top_hidden=1024&batch=256"
  [resnet50]="zoo:resnet101?blocks3=6&training=0&batch=16"
)

# plan MODEL: "STEP_US SECONDS MIB"
plan() {
  rm -rf "$out/cache"
  /usr/bin/time -f "%e %M" -o "$out/time" "$build/bin/isomer-optimize" "$1" --machine=dgx_h100 \
    --nodes=2 --devices_per_node=8 --precision=bfloat16 --optimizer=adam --loss_alone \
    --cache_dir="$out/cache" --out="$out/plan" --json="$out/json" >"$out/report" 2>"$out/err" ||
    { cat "$out/err" >&2; return 1; }
  python3 - "$out/json" $(cat "$out/time") <<'PY'
import json, sys
metrics = json.load(open(sys.argv[1]))
metrics = metrics.get("metrics", metrics)
print(f"{metrics['predicted_step_us']:.1f} {float(sys.argv[2]):.1f} {int(sys.argv[3]) / 1024:.0f}")
PY
}

echo "| file | step, us | of the zoo's | whole run, s | zoo's | memory, MiB | zoo's | verified |"
echo "|---|--:|--:|--:|--:|--:|--:|---|"
refused=0
for model in "$folder"/*/model.onnx; do
  name=$(basename "$(dirname "$model")")
  hand="- - -"
  [[ -z ${zoo[${name%_*}]:-} ]] || hand=$(plan "${zoo[${name%_*}]}")
  read -r step seconds mib <<<"$(plan "$model")"
  read -r zoo_step zoo_seconds zoo_mib <<<"$hand"
  verdict=accepted
  "$build/bin/isomer-verify" plan "$out/plan" --model="$model" >"$out/report" 2>&1 ||
    { verdict=refused; refused=1; }
  echo "| $name | $step | $zoo_step | $seconds | $zoo_seconds | $mib | $zoo_mib | $verdict |"
done
exit $refused
