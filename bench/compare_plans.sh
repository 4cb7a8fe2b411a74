#!/usr/bin/env bash
# Plans of two builds beside each other: what a change of the optimizer makes of predicted steps, and
# of the CPU seconds that searches take.
#
#   bench/compare_plans.sh BEFORE AFTER [MODEL..]
#
# BEFORE and AFTER are folders of programs (build/release/bin). Every network of the zoo, or each
# MODEL, is planned by both on MACHINES (preset:nodes:devices of a node; default: 1 GPU, 8, 16 and 64
# of DGX H100, 48 of Summit) for MODES (default: training inference), without caches. Prints the
# plans that differ by more than 0.01 %, a summary, and exits 1 if a step got longer by more than
# 0.1 %. FLAGS are more flags for both.
set -euo pipefail
before=${1:?BEFORE}; after=${2:?AFTER}; shift 2
machines=${MACHINES:-dgx_h100:1:1 dgx_h100:1:8 dgx_h100:2:8 dgx_h100:8:8 summit:8:6}
modes=${MODES:-training inference}
models=("$@")
if ((${#models[@]} == 0)); then
  mapfile -t models < <("$after/isomer-optimize" --list_models | awk '/^[a-z]/ && $1 != "model" {print "zoo:" $1}')
fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# plan BIN MODEL PRESET NODES DEVICES MODE: "STEP_US CPU_SECONDS FITS", or "- - -" where there is none.
plan() {
  local times rc=0
  rm -f "$work/json"
  TIMEFORMAT='%U %S'
  # shellcheck disable=SC2086  # FLAGS are several
  times=$({ time "$1/isomer-optimize" "$2" --machine="$3" --nodes="$4" --devices_per_node="$5" \
    --mode="$6" --cache=false --out="$work/plan" --json="$work/json" ${FLAGS:-} \
    >/dev/null 2>&1; } 2>&1) || rc=$?
  [[ -s $work/json ]] || { echo "- - -"; return; }
  awk -v times="$times" -v rc="$rc" '
    !step && /^  "predicted_step_us":/ {step = $2 + 0}
    END {split(times, t, " "); print step, t[1] + t[2], rc == 0 ? "fits" : "too_large"}' "$work/json"
}

for machine in $machines; do
  IFS=: read -r preset nodes devices <<<"$machine"
  for mode in $modes; do
    for model in "${models[@]}"; do
      echo "$machine $mode $model $(plan "$before" "$model" "$preset" "$nodes" "$devices" "$mode")" \
        "$(plan "$after" "$model" "$preset" "$nodes" "$devices" "$mode")"
    done
  done
done | awk '
  {
    runs++
    if ($4 == "-" || $7 == "-") {
      if ($4 != $7) { print $1, $2, $3 ": a plan before:", $4, "after:", $7; worse += $7 == "-" }
      next
    }
    cpu[++n] = $8 / ($5 > 0 ? $5 : 0.01); before_s += $5; after_s += $8
    change = $7 / $4 - 1
    if ($6 != $9) print $1, $2, $3 ": " $6 " before, " $9 " after"
    if (change > 1e-4 || change < -1e-4)
      printf "%s %s %s: %.1f us before, %.1f after (%+.2f %%)\n", $1, $2, $3, $4, $7, 100 * change
    if (change > 1e-3 || ($6 == "fits" && $9 != "fits")) worse++
    differ += change > 1e-4 || change < -1e-4
    fflush()
  }
  END {
    for (i = 2; i <= n; i++) for (j = i; j > 1 && cpu[j] < cpu[j - 1]; j--) { t = cpu[j]; cpu[j] = cpu[j - 1]; cpu[j - 1] = t }
    printf "%d runs: %d steps differ, %d got longer by more than 0.1 %%; CPU seconds %.0f before, %.0f after, median ratio %.3f\n",
      runs, differ, worse, before_s, after_s, n ? cpu[int((n + 1) / 2)] : 1
    exit worse > 0
  }'
