#!/usr/bin/env bash
# Which rules are best plans made of, and which match the networks and are not used? The search's
# plans of the zoo's networks, small and large, and of exported files, for 16 H100; then
# isomer-generate stats --use over all of them.
#
#     bench/rule_use.sh [BUILD [FOLDER_OF_ONNX_FILES..]]
#
# Without folders the files of models/data and models/data/small. What has no plan is named and left out.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
source bench/plans.sh
take_arguments "$@"

models=(
  zoo:alexnet zoo:candle_uno zoo:digits_cnn zoo:dlrm zoo:encoder zoo:inception_v3 zoo:lenet zoo:mlp zoo:nasrnn zoo:nmt
  zoo:rnnlm zoo:rnntc zoo:squeezenet zoo:vgg19 zoo:xdl
  "zoo:bert_large?layers=2" "zoo:convnext?stages=2" "zoo:gemma2?layers=2" "zoo:gpt?layers=2" "zoo:llama?layers=2"
  "zoo:mixtral?layers=2&hidden=1024&heads=16&key_heads=4&intermediate=4096&vocabulary=8192&seq=1024"
  "zoo:qwen3_moe?layers=2&experts=32&vocabulary=8192&seq=1024" "zoo:swin?stages=2" "zoo:t5?layers=2" "zoo:vit?layers=2"
)
for folder in "${folders[@]}"; do
  for file in "$folder"/*.onnx; do models+=("$file"); done
done
plans=()
for model in "${models[@]}"; do
  plan=$out/${#plans[@]}.plan
  if search_plan "$model" --machine=dgx_h100 --nodes=2 --loss_alone --time_limit=60 --out="$plan"; then
    plans+=("$plan")
  fi
done
"$build/bin/isomer-generate" stats rules/default.rules --use="$(IFS=,; echo "${plans[*]}")"
