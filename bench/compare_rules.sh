#!/usr/bin/env bash
# What other rules than the shipped ones make of networks: inference of batch 1 on one H100 by
# algebra, of the seven networks of TENSAT's evaluation and of exported files, with rules/default.rules
# and with RULES; the table and the derivations of what differs are of bench/compare_rules.py.
#
#     bench/compare_rules.sh RULES [BUILD [FOLDER_OF_ONNX_FILES..]]
#
# RULES is what isomer-optimize --rules takes, such as default,/tmp/more.rules. Without folders the
# files of models/data and models/data/small. What has no plan is named and left out. Flags of both
# searches in COMPARE_FLAGS: --budget=3000, or --time_limit=60 where more rules make a search long.
set -euo pipefail
(($# > 0)) || { echo "error: bench/compare_rules.sh RULES [BUILD [FOLDER_OF_ONNX_FILES..]]" >&2; exit 2; }
rules=$1
shift
cd "$(dirname "${BASH_SOURCE[0]}")/.."
source bench/plans.sh
take_arguments "$@"

# As bench/algebra has them.
models=(
  "zoo:bert_large?seq=64" "zoo:resnext50?training=0" zoo:nasnet_a zoo:nasrnn "zoo:inception_v3?training=0"
  zoo:squeezenet zoo:vgg19
)
for folder in "${folders[@]}"; do
  for file in "$folder"/*.onnx; do
    [[ $file == *_training* ]] || models+=("$file")
  done
done
read -ra flags <<<"${COMPARE_FLAGS:-}"
pages=()
for model in "${models[@]}"; do
  batch=()
  [[ $model == zoo:* ]] && batch=(--batch_size=1) # Of a file: its own.
  page=$out/${#pages[@]}
  search() {
    search_plan "$model" --search=algebra --machine=dgx_h100 --nodes=1 --devices_per_node=1 --mode=inference \
      "${batch[@]}" --nocache "${flags[@]}" --out="$out/plan" --rules="$1" --report="$2.html" --json="$2.json"
  }
  search default "$page.shipped" && search "$rules" "$page.other" && pages+=("$page")
done
bench/compare_rules.py rules/default.txt "${pages[@]}"
