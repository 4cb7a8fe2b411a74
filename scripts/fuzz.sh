#!/usr/bin/env bash
# Fuzzes the readers of ONNX and PCG files, and of declared operators: scripts/fuzz.sh [SECONDS], 60 by default, all targets
# at the same time. A crash, a leak, undefined behaviour, an input that takes over 25 s (with sanitizers) or an allocation of
# over 2 GB fails; the input that did it is left in build/fuzz/findings.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

seconds=${1:-60}
if ! command -v clang++-16 >/dev/null; then
  echo "fuzz: clang++-16 is not there (Debian: clang-16 libclang-rt-16-dev); skipped"
  exit 0
fi
echo "fuzz: building (clang 16, sanitizers)"
cmake --preset fuzz >/dev/null
cmake --build --preset fuzz --parallel "$(nproc)" >build/fuzz/build.log || { tail -40 build/fuzz/build.log; exit 1; }

findings=build/fuzz/findings
mkdir -p "$findings"
# protobuf and Abseil come uninstrumented from the distribution: what they do to containers is not
# seen, so containers cannot be checked for overflow.
export ASAN_OPTIONS=detect_container_overflow=0:allocator_may_return_null=0
targets=(onnx operators pcg)
pids=()
for target in "${targets[@]}"; do
  corpus=build/fuzz/corpus/$target
  mkdir -p "$corpus"
  seeds=(tests/fuzz/corpus/"$target")
  [[ $target == onnx ]] && seeds+=(models/data tests/data/onnx)
  echo "fuzz: $target for $seconds s"
  build/fuzz/fuzz/"${target}_fuzzer" -max_total_time="$seconds" -timeout=25 -rss_limit_mb=3072 \
    -malloc_limit_mb=2048 -max_len=65536 -verbosity=0 -print_final_stats=1 \
    -artifact_prefix="$findings/$target-" "$corpus" "${seeds[@]}" \
    >"$findings/$target.log" 2>&1 &
  pids+=($!)
done
failed=0
for i in "${!targets[@]}"; do
  target=${targets[$i]}
  if wait "${pids[$i]}"; then
    echo "fuzz: $target:$(grep -o 'number_of_executed_units:.*' "$findings/$target.log" | cut -d: -f2) inputs, nothing found"
  else
    tail -40 "$findings/$target.log"
    echo "fuzz: $target: FAILED, see $findings"
    failed=1
  fi
done
exit "$failed"
