#!/usr/bin/env bash
# What each proposer of plans is worth (isomer-optimize --list_proposers): every one switched off by
# itself, on the networks of bench/gap.
#
#   bench/ablation.sh OUT.tsv [PROPOSER..]
#
# MACHINES (preset:nodes:devices of a node; default: 16 and 64 of DGX H100), NETWORKS, JOBS (runs at
# a time, default 1; CPU seconds then count others' caches, too), BIN (default build/release/bin).
# A device has as many samples as in the zoo, whose batches are for four; a step gives back its loss
# alone. OUT gets a line for each run: network, machine, what was switched off ("-": nothing), step in
# us, CPU seconds, fits. Runs that OUT has already are not run again. Prints for each proposer by how
# much the step is longer without it (median, largest and where) and what the search takes without.
set -euo pipefail
out=${1:?OUT.tsv}; shift
bin=${BIN:-build/release/bin}
machines=${MACHINES:-dgx_h100:2:8 dgx_h100:8:8}
networks=${NETWORKS:-mlp lenet alexnet vgg19 squeezenet resnet101 resnext50 inception_v3 nasnet_a
  unet vit bert_large dlrm xdl candle_uno rnntc rnnlm nmt nasrnn}
proposers=("$@")
if ((${#proposers[@]} == 0)); then
  mapfile -t proposers < <("$bin/isomer-optimize" --list_proposers | awk '$1 != "pipeline" {print $1}')
fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
touch "$out"

batches=$work/batches
"$bin/isomer-optimize" --list_models | awk '
  /^[a-z]/ {name = $1}
  /^ / {for (i = 1; i <= NF; i++) if ($i ~ /^batch=/) print name, substr($i, 7)}' >"$batches"

# run NETWORK MACHINE WITHOUT
run() {
  local preset nodes devices batch json times rc=0
  IFS=: read -r preset nodes devices <<<"$2"
  batch=$(awk -v n="$1" '$1 == n {print $2}' "$batches")
  batch=$((batch * nodes * devices / 4))
  json=$(mktemp -p "$work")
  TIMEFORMAT='%U %S'
  local without=()
  [[ $3 == - ]] || without=(--without="$3")
  times=$({ time "$bin/isomer-optimize" "zoo:$1" --machine="$preset" --nodes="$nodes" \
    --devices_per_node="$devices" --batch_size="$batch" --loss_alone --cache=false --budget=100 \
    --threads=1 "${without[@]}" --out="$json.plan" --json="$json" >/dev/null 2>&1; } 2>&1) || rc=$?
  rm -f "$json.plan"
  [[ -s $json ]] || { echo "$1 $2 without $3: no plan" >&2; return; }
  awk -v of="$1\t$2\t$3" -v times="$times" -v rc="$rc" '
    !step && /^  "predicted_step_us":/ {step = $2 + 0}
    END {split(times, t, " "); printf "%s\t%.3f\t%.2f\t%d\n", of, step, t[1] + t[2], rc == 0}' \
    "$json" >>"$out"
}
export -f run
export bin work batches out

for machine in $machines; do
  for network in $networks; do
    for without in - "${proposers[@]}"; do
      grep -qF "$network	$machine	$without	" "$out" || echo "$network $machine $without"
    done
  done
done | xargs -r -P "${JOBS:-1}" -L 1 bash -c 'run "$@"' run

awk -F'\t' '
  $3 == "-" {all[$1, $2] = $4; cpu[$1, $2] = $5; next}
  {runs[++n] = $0}
  END {
    for (r = 1; r <= n; r++) {
      split(runs[r], f, "\t"); p = f[3]; key = f[1] SUBSEP f[2]
      if (!(key in all)) continue
      loss = 100 * (f[4] / all[key] - 1)
      if (!(p in count)) order[++k] = p
      losses[p, ++count[p]] = loss
      if (!(p in most) || loss > most[p]) { most[p] = loss; where[p] = f[1] " " f[2] }
      if (loss > 0.05) gains[p]++
      before[p] += cpu[key]; after[p] += f[5]
    }
    printf "%-17s %5s %8s %8s %8s %8s  %s\n", "without", "runs", "worse", "median", "most", "CPU", "where most"
    for (i = 1; i <= k; i++) {
      p = order[i]; m = count[p]
      for (a = 2; a <= m; a++) for (b = a; b > 1 && losses[p, b] < losses[p, b - 1]; b--) {
        t = losses[p, b]; losses[p, b] = losses[p, b - 1]; losses[p, b - 1] = t
      }
      printf "%-17s %5d %8d %7.2f%% %7.2f%% %7.2fx  %s\n", p, m, gains[p], losses[p, int((m + 1) / 2)], most[p], after[p] / before[p], where[p]
    }
  }' "$out"
