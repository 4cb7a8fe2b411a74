#!/usr/bin/env bash
# From a fresh clone to a proved plan that runs; every step says what it does and how long it took.
set -euo pipefail
(($# == 0)) || { echo "error: scripts/quickstart.sh takes no arguments" >&2; exit 2; }
cd "$(dirname "${BASH_SOURCE[0]}")/.."

build=build/release
bin=$build/bin
out=build/quickstart  # everything that the steps write

# step TITLE FUNCTION
step() {
  printf '\n== %s\n' "$1"
  local start=$EPOCHREALTIME
  "$2"
  local microseconds=$((${EPOCHREALTIME/[.,]/} - ${start/[.,]/}))
  printf -- '-- %d.%d s\n' $((microseconds / 1000000)) $((microseconds / 100000 % 10))
}

set_up() {
  scripts/install_dependencies.sh
}

build() {
  mkdir -p "$out"
  cmake --preset release >"$out/configure.log" || { cat "$out/configure.log"; return 1; }
  cmake --build --preset release --target programs --parallel "$(nproc)"
}

rules() {
  "$bin/isomer-generate" --ops=matmul,add,relu,partition,combine,replicate,reduce --max_ops=2 \
    --out="$out/small.rules"
  "$bin/isomer-verify" rules "$out/small.rules"
}

optimize_encoder() {
  "$bin/isomer-optimize" models/data/bert_tiny.onnx --machine=laptop_cpu --devices_per_node=4 \
    --out="$out/bert.plan" --dot="$out/bert.dot" --trace="$out/bert.json"
}

certify_encoder() {
  "$bin/isomer-verify" plan "$out/bert.plan"
}

run_encoder() {
  "$bin/isomer-run" "$out/bert.plan" --backend=cpu --check --steps=3
}

train_digits() {
  "$bin/isomer-optimize" models/data/digits_cnn.onnx --machine=laptop_cpu --nodes=1 \
    --devices_per_node=4 --out="$out/digits.plan"
  "$bin/isomer-run" "$out/digits.plan" --data=models/data/digits.csv --epochs=20 \
    --learning_rate=0.05
}

step "Set up: install what is missing" set_up
step "Build the five programs (tests and benchmarks: scripts/test.sh)" build
step "Rules: find small graphs that are equal, and prove it" rules
step "Optimise a BERT-like encoder for four devices" optimize_encoder
step "Certify the plan: replay its derivation, check types, views and schedule" certify_encoder
step "Run it on four virtual devices, beside the unoptimised model" run_encoder
step "Train a classifier of digits under an optimised plan on 4 virtual devices" train_digits

printf '\nWritten to %s: small.rules, bert.plan, bert.dot, bert.json (a trace for ui.perfetto.dev), digits.plan\n' "$out"
