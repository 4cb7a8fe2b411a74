#!/usr/bin/env bash
# Whether this machine's GPU computes what it should, and how fast, in about ten minutes.
#
#   gpu_check.sh [FOLDER [PART..]]      writes gpu.json and gpu.md there; the current folder by default
#
#   kernels   every kernel against the evaluator
#   plans     small networks on one, two and four devices, all of them this GPU, checked as isomer-run
#             --check does
#   ranks     some of them as processes, which share the GPU, with NCCL and recorded steps
#   times     training steps in bfloat16, planned with times that were measured here, beside PyTorch's,
#             eager and compiled, where there is one
#
# All parts by default, in this order; each leaves what it found before the next begins. In a bundle
# (scripts/gpu_bundle.sh) or in a tree that is built. Exit code 1 if anything is wrong, 2 if there is
# nothing to check with: no GPU, no driver, no NVRTC, no cuBLASLt. The last two, NCCL and cuDNN
# may be PyTorch's.
set -uo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
out=$(realpath -m "${1:-.}")
shift || true
parts=("$@")
((${#parts[@]})) || parts=(kernels plans ranks times)
for part in "${parts[@]}"; do
  case $part in kernels | plans | ranks | times) ;; *)
    echo "gpu_check.sh: there is no part $part: kernels, plans, ranks, times"
    exit 2
    ;;
  esac
done
mkdir -p "$out"
if [[ -d $here/bin ]]; then
  bin=$here/bin tests=$here/bin train=$here/train_gpu.py
  export LD_LIBRARY_PATH=$here/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
else
  bin=$here/../build/release/bin tests=$here/../build/release/tests train=$here/../bench/train_gpu.py
fi
python=
for candidate in "${PYTHON:-}" python3 python; do
  [[ -n $candidate ]] || continue
  found=$("$candidate" -c 'import glob, nvidia
names = ("libnvrtc.so.1[23]", "libcublasLt.so.1[23]", "libnccl.so.2", "libcudnn.so.9")
files = [file for folder in nvidia.__path__ for name in names for file in glob.glob(folder + "/*/lib/" + name)]
print(":".join(sorted({file.rsplit("/", 1)[0] for file in files})))' 2>/dev/null)
  [[ -n $found ]] && export LD_LIBRARY_PATH=$found${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
  "$candidate" -c 'import torch; torch.zeros(1).cuda()' 2>/dev/null && python=$candidate
  [[ -n $found || -n $python ]] && break
done
backend=${BACKEND:-cuda} # BACKEND=cpu: plans and ranks alone, on cores
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
export XDG_CACHE_HOME=${XDG_CACHE_HOME:-$folder/cache}

# A network of a few kinds of calls each.
networks=("zoo:mlp?layers=3&inputs=64&hidden=128&classes=16&batch=32"
  "zoo:lenet?batch=8"
  "zoo:resnext50?blocks1=1&blocks2=1&blocks3=1&blocks4=1&groups=4&stem=16&side=32&batch=4"
  "zoo:encoder?layers=2&hidden=64&heads=4&intermediate=128&vocabulary=100&seq=16&batch=8"
  "zoo:gpt?layers=2&hidden=64&heads=4&vocabulary=100&seq=16&batch=8"
  "zoo:rnnlm?layers=1&steps=4&hidden=64&embedding=64&vocabulary=100&batch=8"
  "zoo:dlrm?tables=4&rows=200&features=16&bottom_hidden=32&top_hidden=32&batch=32")

"$bin/isomer-optimize" "${networks[0]}" --machine=dgx_h100 --nodes=1 --devices_per_node=1 --loss_alone \
  "--out=$folder/plan" >"$folder/log" 2>&1 || { tail -1 "$folder/log"; exit 2; }
if ! "$bin/isomer-run" "$folder/plan" "--backend=$backend" --steps=1 >"$folder/log" 2>&1; then
  tail -1 "$folder/log"
  exit 2
fi

device=$(nvidia-smi --query-gpu=name,driver_version --format=csv,noheader 2>/dev/null | head -1)
rows=() times=() failed=0 start=$SECONDS
report() {
  {
    echo "# A GPU, checked"
    echo
    echo "Made by \`scripts/gpu_check.sh\` on $(date -u +%F) with ${device:-an unnamed GPU}, in $((SECONDS - start)) s."
    if ((${#times[@]})); then
      echo
      echo "Training steps in bfloat16, medians in ms; predicted with times of isomer-profile:"
      echo
      echo "| network | Isomer | predicted | host | PyTorch eager | channels last | compiled | best of PyTorch's / Isomer |"
      echo "|---|--:|--:|--:|--:|--:|--:|--:|"
      for line in "${times[@]}"; do echo "| ${line//|/ | } |"; done
    fi
    echo
    echo "| what | |"
    echo "|---|---|"
    for line in "${rows[@]}"; do echo "| ${line%%|*} | ${line#*|} |"; done
  } >"$out/gpu.md"
  {
    printf '{"device": "%s", "date": "%s", "checks": [' "$device" "$(date -u +%F)"
    separator=
    for line in "${rows[@]}"; do
      printf '%s\n  {"what": "%s", "verdict": "%s"}' "$separator" "${line%%|*}" "$(printf %s "${line#*|}" | tr -d '"\\' | tr -c '[:print:]' ' ')"
      separator=,
    done
    printf '\n], "times": ['
    separator=
    for line in "${times[@]}"; do
      IFS='|' read -r network isomer predicted host eager last compiled ratio <<<"$line"
      printf '%s\n  {"network": "%s", "isomer_ms": "%s", "predicted_ms": "%s", "host_ms": "%s", "eager_ms": "%s", "channels_last_ms": "%s", "compiled_ms": "%s", "ratio": "%s"}' \
        "$separator" "$network" "$isomer" "$predicted" "$host" "$eager" "$last" "$compiled" "$ratio"
      separator=,
    done
    printf '\n]}\n'
  } >"$out/gpu.json"
}
row() { # WHAT VERDICT
  rows+=("$1|$2")
  echo "$1: $2"
  [[ $2 == ok* ]] || failed=1
  report
}
number() { # FILE KEY.. of a JSON file
  local file=$1
  shift
  "${python:-python3}" -c 'import functools, json, sys
print("%.3f" % (functools.reduce(lambda o, k: o[k], sys.argv[2:], json.load(open(sys.argv[1]))) / 1e3))' "$file" "$@" 2>/dev/null
}

kernels() {
  [[ $backend == cuda ]] || return
  local begin=$SECONDS
  if "$tests/isomer_runtime_test" --gtest_filter='GpuKernels.AgreeWithTheDeclarations' >"$folder/log" 2>&1 && ! grep -q SKIPPED "$folder/log"; then
    row "kernels against the evaluator" "ok, $((SECONDS - begin)) s"
  else
    row "kernels against the evaluator" "$(grep -c 'Failure$' "$folder/log") differences: $(grep -m1 -A3 'Failure$' "$folder/log" | tail -3 | tr '\n' ' ')"
  fi
}

plan() { # NETWORK PRECISION DEVICES WHICH
  local how=("--plan=$4")
  [[ $4 != searched ]] || how=(--budget=20)
  "$bin/isomer-optimize" "$1" --machine=dgx_h100 --nodes=1 "--devices_per_node=$3" "--precision=$2" \
    --optimizer=adam --loss_alone "${how[@]}" "--out=$folder/plan" >"$folder/log" 2>&1
}
title() { # NETWORK PRECISION DEVICES WHICH
  local name=${1#zoo:}
  echo "${name%%\?*} $2, $3 devices, $4"
}

plans() {
  for network in "${networks[@]}"; do
    for precision in float32 bfloat16; do
      for devices in 1 2 4; do
        for which in searched data_parallel zero3 megatron; do
          [[ $devices == 1 && $which != searched ]] && continue
          name=$(title "$network" $precision $devices $which)
          if ! plan "$network" $precision $devices $which; then
            [[ $which == megatron ]] && continue # Not every network has one.
            row "$name" "no plan: $(tail -1 "$folder/log")"
          elif "$bin/isomer-run" "$folder/plan" "--backend=$backend" --steps=4 --check >"$folder/log" 2>&1; then
            row "$name" "ok"
          else
            row "$name" "$(tail -1 "$folder/log")"
          fi
        done
      done
    done
  done
}

# Each process says it is on another computer, as NCCL wants one GPU once on each.
ranks() {
  for network in "${networks[0]}" "${networks[4]}" "${networks[2]}"; do
    for devices in 2 4; do
      for which in data_parallel zero3; do
        name="$(title "$network" bfloat16 $devices $which), as processes"
        plan "$network" bfloat16 $devices $which || { row "$name" "no plan: $(tail -1 "$folder/log")"; continue; }
        pids=() verdict=ok port=$((20000 + RANDOM % 10000))
        for ((r = 0; r < devices; ++r)); do
          NCCL_HOSTID=isomer$r RANK=$r WORLD_SIZE=$devices MASTER_ADDR=127.0.0.1 MASTER_PORT=$port timeout 100 \
            "$bin/isomer-run" "$folder/plan" "--backend=$backend" --communicator=tcp --steps=4 --check >"$folder/log.$r" 2>&1 &
          pids+=($!)
        done
        for ((r = 0; r < devices; ++r)); do wait "${pids[r]}" || verdict="rank $r: $(tail -1 "$folder/log.$r")"; done
        row "$name" "$verdict"
      done
    done
  done
}

torch() { # NETWORK HOW
  [[ -n $python ]] || return
  timeout 150 "$python" "$train" "$1" "$2" 2>"$folder/err" || { tail -1 "$folder/err" >&2; echo nan; }
}
times() {
  [[ $backend == cuda ]] || return
  [[ -z $python ]] || echo "a product of 8192 x 8192 in bfloat16 by PyTorch: $("$python" "$train" peak) TFLOP/s"
  while read -r network optimizer zoo; do
    how=("$zoo" --machine=dgx_h100 --nodes=1 --devices_per_node=1 --precision=bfloat16 "--optimizer=$optimizer"
      --loss_alone --budget=2000 "--out=$folder/plan" "--json=$folder/plan.json")
    rm -f "$folder/profile"
    if ! "$bin/isomer-optimize" "${how[@]}" >"$folder/log" 2>&1 ||
      ! timeout 120 "$bin/isomer-profile" "$folder/plan" --backend=cuda --devices=1 --seconds_per_kernel=0.05 \
        "--out=$folder/profile" >"$folder/log" 2>&1 ||
      ! "$bin/isomer-optimize" "${how[@]}" "--profile=$folder/profile" >"$folder/log" 2>&1 ||
      ! timeout 200 "$bin/isomer-run" "$folder/plan" --backend=cuda --steps=22 "--json=$folder/run.json" >"$folder/log" 2>&1; then
      row "time of $network" "$(tail -1 "$folder/log")"
      continue
    fi
    isomer=$(number "$folder/run.json" step_us median)
    predicted=$(number "$folder/plan.json" predicted_step_us)
    host=$(number "$folder/run.json" host_us median)
    eager=$(torch "$network" eager) last= compiled=$(torch "$network" compile)
    [[ $network == resnet50 || $network == inception_v3 ]] && last=$(torch "$network" channels_last)
    ratio=$(printf '%s\n' "$eager" "$last" "$compiled" | awk -v isomer="$isomer" '/^[0-9]/ && (best == "" || $1 < best) {best = $1}
      END {if (best != "" && isomer > 0) printf "%.2f", best / isomer}')
    times+=("$network|$isomer|$predicted|$host|$eager|$last|$compiled|$ratio")
    echo "$network: Isomer $isomer ms, predicted $predicted; PyTorch eager $eager, channels last ${last:--}, compiled $compiled: $ratio"
    report
  done <<'NETWORKS'
mlp adam zoo:mlp?layers=8&inputs=4096&hidden=4096&classes=4096&batch=1024
bert_large adam zoo:bert_large?batch=8&seq=512
gpt_350m adam zoo:gpt?layers=24&hidden=1024&heads=16&seq=1024&batch=8
dlrm sgd zoo:dlrm?rows=100000&batch=4096
resnet50 adam zoo:resnet101?blocks3=6&batch=64
gpt_1.3b adam zoo:gpt?layers=24&hidden=2048&heads=16&seq=1024&batch=4
inception_v3 adam zoo:inception_v3?batch=64
NETWORKS
}

[[ $backend == cuda ]] || echo "plans and ranks alone, by --backend=$backend"
for part in "${parts[@]}"; do "$part"; done
report
exit $failed
