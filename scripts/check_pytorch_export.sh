#!/usr/bin/env bash
# Twelve plans that differ, as PyTorch: each runs under gloo on four processes, gives the outputs and
# gradients of the unoptimised model within 1e-5, and isomer-run, which shares no code with PyTorch,
# finds its own in them.
#
#     PYTHON=venv/bin/python scripts/check_pytorch_export.sh [BUILD]
#
# Needs: pip install torch numpy onnx. Exit 1 if anything differs or is refused.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
bin=${1:-build/release}/bin
python=${PYTHON:-python3}
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT
export OMP_NUM_THREADS=1

plans=0 bad=0
# check NAME FLAGS-OF-isomer-optimize..
check() {
  local name=$1
  plans=$((plans + 1))
  if "$bin/isomer-optimize" "${@:2}" --machine=laptop_cpu --devices_per_node=4 \
    --cache_dir="$out/cache" --out="$out/$name.plan" >"$out/said" 2>&1 &&
    "$bin/isomer-optimize" export "$out/$name.plan" --to=pytorch --out="$out/$name.py" \
      >"$out/said" 2>&1 &&
    "$python" -m torch.distributed.run --nproc-per-node=4 scripts/check_pytorch_export.py \
      "$out/$name.py" "$out/$name.case" >"$out/said" 2>&1 &&
    own=$(grep "off by" "$out/said") &&
    "$bin/isomer-run" "$out/$name.plan" --test_data="$out/$name.case" --rtol=1e-5 \
      >"$out/said" 2>&1; then
    echo "$name: $own; $(tail -n 1 "$out/said" | sed 's/.*: //')"
  else
    bad=$((bad + 1))
    echo "$name: $(grep -v "^\[rank\|^W[0-9]" "$out/said" | tail -n 2 | tr '\n' ' ')"
  fi
}

gpt="zoo:gpt?layers=4&hidden=64&heads=4&vocabulary=64&seq=16&batch=16"
check data_parallel "zoo:mlp?layers=3&inputs=16&hidden=32&classes=8&batch=16" --plan=data_parallel
check tensor_x_data "$gpt" --plan=grid --tensor=2
check context "$gpt" --plan=grid --context=4
check pipeline_x_tensor "$gpt" --plan=grid --pipeline=2 --tensor=2 --micro_batch_size=2
check interleaved "zoo:encoder?layers=4" --plan=grid --pipeline=2x2 --micro_batch_size=1
check zero_3 "$gpt" --plan=zero3 --optimizer=adam
check searched_bert models/data/bert_tiny.onnx
echo 'tensor { name: "/conv*/product" split { dim: 2 degree: 2 } }' >"$out/rows.txt"
check convolutions_in_rows models/data/digits_cnn.onnx --constraints="$out/rows.txt"
check dropout "zoo:alexnet?width=4&hidden=16&side=63&classes=8&dropout=1&batch=8"
check sums_in_parts "zoo:mlp?layers=3&inputs=512&hidden=512&classes=512&batch=4"
check mixture "zoo:mixtral?layers=2&hidden=64&heads=4&key_heads=2&intermediate=128&experts=4&vocabulary=64&seq=16&batch=4" \
  --plan=grid --expert=4
check all_operators tests/integration/all_operators.txt --loss=none:loss
echo "$((plans - bad)) of $plans plans are equal in PyTorch"
[ "$bad" -eq 0 ]
