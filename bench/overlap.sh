#!/usr/bin/env bash
# How much of the time for communication a data parallel step loses when queues run one after the
# other, and when they overlap: two processes with a link of so many Gbit/s between them, as Markdown.
#
#     bench/overlap.sh [GBITS [ROUNDS [TIMES [NETWORK]]]]      10 Gbit/s, 3 rounds by default
#
# TIMES: so many times the samples of bench/train_cpu.sh, by default 1: 8 images, 2 sentences.
# Needs mpirun, root (for a network of its own) and tc. The link is the loopback device with a token
# bucket; both directions share it. "alone" is half of the samples on each core, at the same time,
# with nothing to send.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
gbits=${1:-10}
rounds=${2:-3}
times=${3:-1}
networks=(${4:-resnext50 bert_base})
bin=${BIN:-build/release/bin}
if [[ -z ${IN_OWN_NETWORK:-} ]]; then
  command -v tc >/dev/null || { echo "bench/overlap.sh: there is no tc (Debian: iproute2)" >&2; exit 2; }
  IN_OWN_NETWORK=1 exec unshare --net "$0" "$gbits" "$rounds" "$times" "${networks[*]}"
fi
ip link set lo up
tc qdisc add dev lo root tbf rate "${gbits}gbit" burst 1mb latency 50ms
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT

# The machine that plans are made for: half of the link for each direction.
sed "s/gb_per_s: 0.6 /gb_per_s: $(awk -v g="$gbits" 'BEGIN {printf "%.4f", 0.96 * g / 16}') /" \
  bench/linked_cores.textproto >"$out/machine"

declare -A whole=(
  [resnext50]="zoo:resnext50?batch=$((8 * times))"
  [bert_base]="zoo:bert_large?layers=12&hidden=768&heads=12&intermediate=3072&seq=128&batch=$((2 * times))&language=1"
) half=(
  [resnext50]="zoo:resnext50?batch=$((4 * times))"
  [bert_base]="zoo:bert_large?layers=12&hidden=768&heads=12&intermediate=3072&seq=128&batch=$times&language=1"
)
for name in "${networks[@]}"; do
  [[ -n ${whole[$name]:-} ]] || { echo "bench/overlap.sh: NETWORK is one of ${!whole[*]}, not '$name'" >&2; exit 2; }
done
steps=8

median_ms() { # JSON
  grep -A1 '"step_us"' "$1" | grep -oP '"median": \K[0-9.]+' | awk '{printf "%.1f\n", $1 / 1000}'
}

# ARGS of isomer-run, by two processes.
on_two() { # NAME ARGS..
  local name=$1
  shift
  mpirun --quiet --allow-run-as-root -n 2 --mca btl tcp,self --mca btl_tcp_if_include lo \
    "$bin/isomer-run" "$out/$name" --communicator=mpi --steps=$steps "--json=$out/json" "$@" \
    >/dev/null 2>"$out/err" || { cat "$out/err" >&2; exit 1; }
  median_ms "$out/json"
}

# Both copies run at the same time; the slower counts.
alone() { # NAME
  for copy in 0 1; do
    taskset -c $copy "$bin/isomer-run" "$out/$1.half" --steps=$steps --pin=false "--json=$out/json.$copy" \
      >/dev/null 2>"$out/err.$copy" &
  done
  wait
  { median_ms "$out/json.0"; median_ms "$out/json.1"; } | sort -g | tail -1
}

for name in "${networks[@]}"; do
  "$bin/isomer-optimize" "${whole[$name]}" "--machine=$out/machine" --plan=data_parallel \
    --loss_alone "--out=$out/$name" >/dev/null 2>"$out/err" || { cat "$out/err" >&2; exit 1; }
  "$bin/isomer-optimize" "${half[$name]}" --machine=laptop_cpu --nodes=1 --devices_per_node=1 \
    --loss_alone "--out=$out/$name.half" >/dev/null 2>"$out/err" || { cat "$out/err" >&2; exit 1; }
  for ((round = 0; round < rounds; ++round)); do
    alone "$name" >>"$out/$name.alone"
    on_two "$name" --execution=inline >>"$out/$name.inline"
    on_two "$name" --execution=threaded >>"$out/$name.threaded"
  done
done

middle() { sort -g "$1" | sed -n "$(((rounds + 1) / 2))p"; }
echo "| network | alone, ms | inline | threaded | lost inline | lost threaded | of it |"
echo "|---|--:|--:|--:|--:|--:|--:|"
for name in "${networks[@]}"; do
  awk -v name=$name -v a="$(middle "$out/$name.alone")" -v i="$(middle "$out/$name.inline")" \
    -v t="$(middle "$out/$name.threaded")" 'BEGIN {
      printf "| %s | %.0f | %.0f | %.0f | %.0f | %.0f | %.0f %% |\n", name, a, i, t, i - a, t - a, 100 * (t - a) / (i - a) }'
done
