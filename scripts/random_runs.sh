#!/usr/bin/env bash
# Draws models, machines and ways to plan by seed, and takes each through the three programs:
# isomer-optimize, isomer-verify plan, isomer-run --check. Whatever isomer-optimize plans must be
# verified, agree with the model, and give the same bits however its queues run.
#
#   scripts/random_runs.sh [COUNT] [SEED]      48 runs from seed 1; run I of a seed is always the same
#   ONLY=I scripts/random_runs.sh 400 1        run I of those alone, with all that the programs say
#
# Needs a release build (BIN=FOLDER: of other programs). Prints the three command lines of every run
# that differs, why isomer-optimize refused what it refused, and a summary. LOG=FILE gets what the
# checks say. SEEDS=N: adversarial runs of each, 2 by default. Exit code 1 if any differs, or if less than half have a plan.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

count=${1:-48}
seed=${2:-1}
bin=${BIN:-build/release/bin}
seeds=${SEEDS:-2}
seconds=120  # that each program may take
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
export XDG_CACHE_HOME=${XDG_CACHE_HOME:-$folder/cache}

# Networks of the zoo with the settings that make them small: of each .small the last .name before it that is
# no setting's, whose value would follow.
networks=()
while IFS= read -r network; do networks+=("$network"); done < <(
  for file in models/zoo/networks/*.cc; do
    tr '\n' ' ' <"$file" | grep -oP '\.name = "\K\w+"(?!, *\.value)|\.small\s*=\s*\K"[^,;]*(?=,)'
  done | tr -d ' ' | awk '/^"/ { gsub(/"/, ""); print "zoo:" name "?" $0; next } { sub(/"/, ""); name = $0 }')
exported=(models/data/bert_tiny.onnx models/data/digits_cnn.onnx models/data/digits_cnn_dynamic.onnx
  models/data/small/*.onnx)
# Steps of a decoder, which leave keys and values for the next.
steps=("zoo:gpt?layers=2&hidden=32&heads=4&vocabulary=61&cache=8&seq=1&batch=2"
  "zoo:gpt?layers=1&hidden=24&heads=3&vocabulary=32&cache=8&seq=4&batch=4"
  "zoo:llama?layers=2&hidden=32&heads=4&key_heads=2&intermediate=48&vocabulary=64&cache=8&seq=1&batch=2"
  "zoo:llama?layers=1&hidden=32&heads=4&key_heads=1&intermediate=64&vocabulary=64&cache=16&seq=8&batch=4"
  "zoo:mixtral?layers=1&hidden=32&heads=4&key_heads=2&experts=4&intermediate=32&vocabulary=32&dropless=1&cache=8&seq=1&batch=4"
  models/data/decoder.onnx)
operators=(tests/data/onnx/agree/*/model.onnx) # of few operators, most without weights

pick() { # of the words given, one
  local words=("$@")
  (($# > 0)) || { echo "nothing to draw from" >&2 && exit 1; }
  picked=${words[RANDOM % ${#words[@]}]}
}

# Sets `options` of isomer-optimize and `model_options`, which isomer-verify takes with --model, too.
draw() {
  RANDOM=$(((seed * 7919 + $1 * 104729) % 32768))
  RANDOM=$((RANDOM ^ $1 % 32768))
  options=() model_options=()
  pick training training training inference && mode=$picked
  pick network network network network exported exported operator step
  case $picked in
    network)
      pick "${networks[@]}" && model=$picked
      pick 16 16 8 32 && model=${model/batch=16/batch=$picked}
      ;;
    exported)
      pick "${exported[@]}" && model=$picked
      [[ $model == *_dynamic.onnx ]] && pick 8 16 && model_options+=("--dim=batch=$picked")
      ;;
    step)
      pick "${steps[@]}" && model=$picked
      [[ $model == *.onnx ]] && model_options+=(--dim=batch=2 --dim=past=7 --dim=total=8)
      mode=inference
      ;;
    operator)
      pick "${operators[@]}" && model=$picked
      mode=inference
      ;;
  esac
  pick "cpu_2cores 1 2" "laptop_cpu 1 2" "laptop_cpu 1 4" "laptop_cpu 1 1" "dgx_h100 1 2" "dgx_h100 2 4" \
    "dgx_h100 1 8" "dgx_h100 1 3" "k80_cluster 2 2" "k80_cluster 2 4" "p100_cluster 2 2" "p100_cluster 1 4" \
    "summit 1 6" "workstation 1 2" "gb200_nvl72 1 8" "dgx_a100 2 2" "dgx_h200 4 1"
  read -r machine nodes devices <<<"$picked"
  options+=("--machine=$machine" "--nodes=$nodes" "--devices_per_node=$devices")
  pick float32 float32 bfloat16 float16 fp8 && precision=$picked
  options+=("--precision=$precision" "--mode=$mode")
  if [[ $precision == fp8 ]]; then
    pick tensor row block && options+=("--fp8_scaling=$picked")
    pick ends none none && options+=("--fp8_keep=$picked")
  fi
  if [[ $mode == training ]]; then
    pick sgd momentum adam lion adagrad && options+=("--optimizer=$picked")
    pick auto auto all_reduce sharded sharded_gradients sharded_weights owner && options+=("--update=$picked")
    low=bfloat16 && [[ $precision == float16 ]] && low=float16
    pick float32 float32 "$low" auto && options+=("--gradient_precision=$picked")
    pick -1 -1 0 1000 && options+=("--bucket_bytes=$picked")
    pick no no no yes && [[ $picked == yes ]] && options+=(--loss_alone)
  fi
  pick no no no no no yes && [[ $picked == yes ]] && options+=(--device_memory_gib=0.0003)
  draw_plan "$1"
}

draw_whole_machine() {
  pick no no no yes && [[ $picked == yes ]] && options+=(--whole_machine)
}

draw_plan() {
  pick search search search baseline
  if [[ $picked == search ]]; then
    pick hierarchical hierarchical hierarchical enumeration egraph algebra sequential mcmc exhaustive
    [[ $picked =~ ^(mcmc|exhaustive)$ && $precision != float32 ]] && picked=hierarchical
    [[ $picked == exhaustive && ${options[*]} == *--gradient_precision=@(bfloat16|auto)* ]] && picked=mcmc
    options+=("--search=$picked" "--seed=$1")
    case $picked in
      mcmc | exhaustive) options+=(--budget=2000 --time_limit=5) ;;
      *) options+=(--budget=10 --time_limit=20) ;;
    esac
    draw_whole_machine
    return
  fi
  pick data_parallel zero3 megatron published pipeline grid grid
  # What the update drawn before contradicts is refused, as it should be; but not here.
  [[ $picked == zero3 && ($mode == inference || ${options[*]} != *--update=@(auto|sharded_weights)*) ]] && picked=data_parallel
  local plan=$picked
  options+=("--plan=$plan")
  [[ $plan =~ ^(pipeline|grid)$ ]] || draw_whole_machine
  if [[ $plan == grid ]]; then
    pick 1 1 2 4 && options+=("--tensor=$picked")
    pick 1 1 1 2 4 && options+=("--context=$picked")
    [[ $picked != 1 ]] && pick all_gather all_to_all auto && options+=("--context_exchange=$picked")
    pick 1 1 1 2 && options+=("--expert=$picked")
    pick 1 2 2 4 2x2 && options+=("--pipeline=$picked")
    pick 0 1 1 2 && options+=("--micro_batch_size=$picked")
    [[ $mode == training ]] && pick none none selective full && options+=("--recompute=$picked")
    pick 1 1 1 2 && [[ $mode == training && $picked != 1 ]] && options+=("--steps_between_flushes=$picked")
    if [[ $mode == training && ${options[*]} != *--pipeline=1* && $picked == 1 ]]; then
      pick 1f1b zb_h1 zb_h2 zb_v auto && options+=("--schedule=$picked")
    fi
  fi
}

# Runs a program; its output is in $folder/out, its exit code in `code`. `command` is how to run it again.
run() {
  command=$(printf ' %q' "$@")
  timeout "$seconds" "$@" >"$folder/out" 2>&1
  code=$?
  [[ -n ${ONLY:-} ]] && { echo "  ${command# }"; sed 's/^/    /' "$folder/out"; }
}

agree=0 none=0 refused=0 differ=0
for ((i = 0; i < count; ++i)); do
  [[ -n ${ONLY:-} && $ONLY != "$i" ]] && continue
  draw "$i"
  plan=$folder/plan
  rm -f "$plan"
  run "$bin/isomer-optimize" "$model" "${model_options[@]}" "${options[@]}" "--out=$plan"
  commands="  ${command# }"
  step=isomer-optimize
  if ((code == 1)); then
    none=$((none + 1))
    continue
  fi
  if ((code == 2)); then
    refused=$((refused + 1))
    echo "$(grep -m1 error: "$folder/out" | sed 's/^error: //; s/[0-9]\+/N/g' | cut -c1-90), as run $i" >>"$folder/refused"
    continue
  fi
  if ((code == 0)); then
    step="isomer-verify plan"
    run "$bin/isomer-verify" plan "$plan" "--model=$model" "${model_options[@]}"
    commands+=$'\n'"  ${command# }"
  fi
  if ((code == 0)); then
    step="isomer-run --check"
    run "$bin/isomer-run" "$plan" --check "--check_executions=$seeds" --steps=2
    # A pipeline that is drained less often takes several steps at once.
    if ((code == 2)) && grep -q 'a multiple is expected' "$folder/out"; then
      run "$bin/isomer-run" "$plan" --check "--check_executions=$seeds" --steps=4
    fi
    commands+=$'\n'"  ${command# }"
  fi
  if ((code == 0)); then
    agree=$((agree + 1))
    [[ -n ${LOG:-} ]] && { echo "run $i $model ${options[*]}"; grep '^check' "$folder/out"; } >>"$LOG"
    continue
  fi
  differ=$((differ + 1))
  echo "run $i of seed $seed: $step ends with $code"
  echo "$commands"
  grep -v '^$' "$folder/out" | tail -5 | sed 's/^/    /'
done
# Why, once for each reason: a mistake of isomer-optimize may be among them.
[[ -f $folder/refused ]] && LC_ALL=C sort "$folder/refused" | awk -F', as run ' '!seen[$1]++ { print "refused: " $0 }'
echo "$((agree + none + refused + differ)) runs: $agree agree, $none have no plan that fits," \
  "$refused are refused, $differ differ"
# A script that ended early has found nothing.
[[ -n ${ONLY:-} ]] || ((agree + none + refused + differ == count)) || exit 1
((differ == 0 && 2 * agree >= agree + none + refused + differ))
