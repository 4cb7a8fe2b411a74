#!/usr/bin/env bash
# Plans that differ, as JAX: each runs on eight devices of the host, gives the outputs and gradients
# of the unoptimised model within 1e-5, and isomer-run, which shares no code with JAX, finds its own
# in them.
#
#     PYTHON=venv/bin/python scripts/check_jax_export.sh [BUILD]
#
# Needs: pip install jax numpy onnx. Exit 1 if anything differs or is refused.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
bin=${1:-build/release}/bin
python=${PYTHON:-python3}
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT
export JAX_PLATFORMS=cpu XLA_FLAGS=--xla_force_host_platform_device_count=8

plans=0 bad=0
# check NAME FLAGS-OF-isomer-optimize..
check() {
  local name=$1
  plans=$((plans + 1))
  if "$bin/isomer-optimize" "${@:2}" --machine=laptop_cpu --devices_per_node=8 \
    --cache_dir="$out/cache" --out="$out/$name.plan" >"$out/said" 2>&1 &&
    "$bin/isomer-optimize" export "$out/$name.plan" --to=jax --out="$out/$name.py" \
      >"$out/said" 2>&1 &&
    "$python" scripts/check_jax_export.py "$out/$name.py" "$out/$name.case" >"$out/said" 2>&1 &&
    own=$(grep "off by" "$out/said") &&
    "$bin/isomer-run" "$out/$name.plan" --test_data="$out/$name.case" --rtol=1e-5 \
      >"$out/said" 2>&1; then
    echo "$name: $own; $(tail -n 1 "$out/said" | sed 's/.*: //')"
  else
    bad=$((bad + 1))
    echo "$name: $(tail -n 2 "$out/said" | tr '\n' ' ')"
  fi
}

gpt="zoo:gpt?layers=2&hidden=64&heads=4&vocabulary=64&seq=16&batch=16"
mlp="zoo:mlp?layers=3&inputs=16&hidden=32&classes=8&batch=32"
check data_parallel "$mlp" --plan=data_parallel --optimizer=momentum
check tensor_x_data "$gpt" --plan=grid --tensor=2
check context "$gpt" --plan=grid --context=4
check zero_1_micro_batches "$gpt" --plan=grid --tensor=2 --micro_batch_size=2 --update=sharded
check zero_2_micro_batches "$mlp" --plan=grid --micro_batch_size=2 --update=sharded_gradients
check zero_3 "$gpt" --plan=zero3 --optimizer=adam
check recomputed "$gpt" --plan=grid --tensor=4 --recompute=full
check searched_bert models/data/bert_tiny.onnx
echo 'tensor { name: "/conv*/product" split { dim: 2 degree: 2 } }' >"$out/rows.txt"
check convolutions_in_rows models/data/digits_cnn.onnx --constraints="$out/rows.txt"
check dropout "zoo:alexnet?width=4&hidden=16&side=63&classes=8&dropout=1&batch=8"
check sums_in_parts "zoo:mlp?layers=3&inputs=512&hidden=512&classes=512&batch=4"
check look_ups "zoo:dlrm?tables=8&rows=64&features=16&look_ups=1&bag=4&dense=8&bottom_hidden=16&top_hidden=16&batch=32"
check mixture "zoo:mixtral?layers=2&hidden=64&heads=4&key_heads=2&intermediate=128&experts=4&vocabulary=64&seq=16&batch=8" \
  --plan=grid --expert=4
check all_operators tests/integration/all_operators.txt --loss=none:loss
echo "$((plans - bad)) of $plans plans are equal in JAX"
[ "$bad" -eq 0 ]
