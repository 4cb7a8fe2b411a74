#!/usr/bin/env bash
# What the rules of algebra gain in best plans: inference on one H100, of the zoo's networks with
# batch 1 and of exported files, and bench/rule_gains.py over the pages of the plans.
#
#     bench/rule_gains.sh [BUILD [FOLDER_OF_ONNX_FILES..]]
#
# WITHOUT=1: each plan is searched once more without each of its rules, one at a time.
#
# Without folders the files of models/data and models/data/small. What has no plan is named and left out.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
source bench/plans.sh
take_arguments "$@"

models=(
  zoo:alexnet zoo:candle_uno zoo:dlrm zoo:inception_v3 zoo:nasnet_a zoo:nasrnn zoo:nmt zoo:rnnlm zoo:squeezenet zoo:vgg19
  zoo:xdl "zoo:bert_large?layers=2" "zoo:convnext?stages=2" "zoo:gemma2?layers=2" "zoo:gpt?layers=2" "zoo:llama?layers=2"
  "zoo:mixtral?layers=2&hidden=1024&heads=16&key_heads=4&intermediate=4096&vocabulary=8192&seq=1024" "zoo:swin?stages=2"
  "zoo:t5?layers=2" "zoo:vit?layers=2"
)
for folder in "${folders[@]}"; do
  for file in "$folder"/*.onnx; do
    [[ $file == *_training* ]] || models+=("$file")
  done
done
pages=()
for model in "${models[@]}"; do
  page=$out/${#pages[@]}.html
  search=("$model" --machine=dgx_h100 --nodes=1 --devices_per_node=1 --mode=inference --time_limit=60 --out="$out/plan")
  [[ $model != zoo:* ]] || search+=(--batch_size=1) # Of a file: its own.
  rm -rf "$out/cache"
  if search_plan "${search[@]}" --cache_dir="$out/cache" --report="$page"; then
    pages+=("$page")
    printf '%s\n' "$build/bin/isomer-optimize" "${search[@]}" >"$page.search"
  fi
done
bench/rule_gains.py ${WITHOUT:+--without} "${pages[@]}"
