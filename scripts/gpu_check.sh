#!/usr/bin/env bash
# Whether this machine's GPU computes what it should, in under ten minutes: every kernel against the
# evaluator, then plans of small networks on one, two and four devices, all of them this GPU, checked
# as isomer-run --check does.
#
#   gpu_check.sh [FOLDER]      writes gpu.json and gpu.md there; the current folder by default
#
# In a bundle (scripts/gpu_bundle.sh) or in a tree that is built. Exit code 1 if anything is wrong, 2
# if there is nothing to check with: no GPU, no driver, no NVRTC, no cuBLASLt. The last two may be
# PyTorch's.
set -uo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
out=$(realpath -m "${1:-.}")
mkdir -p "$out"
if [[ -d $here/bin ]]; then
  bin=$here/bin tests=$here/bin
  export LD_LIBRARY_PATH=$here/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
else
  bin=$here/../build/release/bin tests=$here/../build/release/tests
fi
for python in "${PYTHON:-}" python3 python; do
  [[ -n $python ]] || continue
  found=$("$python" -c 'import glob, nvidia
names = ("libnvrtc.so.1[23]", "libcublasLt.so.1[23]")
files = [file for folder in nvidia.__path__ for name in names for file in glob.glob(folder + "/*/lib/" + name)]
print(":".join(sorted({file.rsplit("/", 1)[0] for file in files})))' 2>/dev/null)
  [[ -n $found ]] && export LD_LIBRARY_PATH=$found${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH} && break
done
backend=${BACKEND:-cuda} # BACKEND=cpu: the plans alone, on cores
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

rows=() failed=0
row() { # WHAT VERDICT
  rows+=("$1|$2")
  echo "$1: $2"
  [[ $2 == ok* ]] || failed=1
}

start=$SECONDS
if [[ $backend != cuda ]]; then
  echo "plans alone, by --backend=$backend"
elif "$tests/isomer_runtime_test" --gtest_filter='GpuKernels.AgreeWithTheDeclarations' >"$folder/log" 2>&1 && ! grep -q SKIPPED "$folder/log"; then
  row "kernels against the evaluator" "ok, $((SECONDS - start)) s"
else
  row "kernels against the evaluator" "$(grep -c 'Failure$' "$folder/log") differences: $(grep -m1 -A3 'Failure$' "$folder/log" | tail -3 | tr '\n' ' ')"
fi
for network in "${networks[@]}"; do
  for precision in float32 bfloat16; do
    for devices in 1 2 4; do
      for plan in searched data_parallel zero3 megatron; do
        [[ $devices == 1 && $plan != searched ]] && continue
        name=${network#zoo:}
        name="${name%%\?*} $precision, $devices devices, $plan"
        how=()
        [[ $plan == searched ]] || how=("--plan=$plan")
        if ! "$bin/isomer-optimize" "$network" --machine=dgx_h100 --nodes=1 "--devices_per_node=$devices" \
          "--precision=$precision" --optimizer=adam --loss_alone --budget=20 "${how[@]}" \
          "--out=$folder/plan" >"$folder/log" 2>&1; then
          [[ $plan == megatron ]] && continue # Not every network has one.
          row "$name" "no plan: $(tail -1 "$folder/log")"
        elif "$bin/isomer-run" "$folder/plan" "--backend=$backend" --steps=3 --check >"$folder/log" 2>&1; then
          row "$name" "ok"
        else
          row "$name" "$(tail -1 "$folder/log")"
        fi
      done
    done
  done
done

device=$(nvidia-smi --query-gpu=name,driver_version --format=csv,noheader 2>/dev/null | head -1)
{
  echo "# A GPU, checked"
  echo
  echo "Made by \`scripts/gpu_check.sh\` on $(date -u +%F) with ${device:-an unnamed GPU}, in $((SECONDS - start)) s."
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
  printf '\n]}\n'
} >"$out/gpu.json"
exit $failed
