#!/usr/bin/env bash
# The first steps of three trainings of bench/training under all their plans, and that a loss that is
# off, a training that there is not and one that needs PyTorch are errors.
#
# Usage: trainings_test.sh BIN TREE
set -euo pipefail
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT
train=("$2/bench/training/train.py" "--bin=$1" "--work=$out/work" "--results=$out/results" --steps=30)

"${train[@]}" --only=digits,dlrm,moe
for name in digits dlrm moe; do
  for ending in tsv svg md; do
    [[ -s $out/results/$name.$ending ]] || { echo "no $name.$ending" >&2; exit 1; }
  done
done

python3 - "$out/work/digits_4_ZeRO_1.json" <<'PY'
import json, sys
summary = json.load(open(sys.argv[1]))
summary["loss"][20] *= 1.002
json.dump(summary, open(sys.argv[1], "w"))
PY
expect() { # CODE TEXT ARGUMENT..
  local code=0
  "${train[@]}" "${@:3}" >/dev/null 2>"$out/err" || code=$?
  [[ $code == "$1" ]] && grep -q "$2" "$out/err" || { echo "exit code $code:" >&2; cat "$out/err" >&2; exit 1; }
}
expect 1 "digits: ZeRO 1, 4 tcp: the loss of step 21 is off by 2.0e-03, of 1e-03 allowed" --only=digits --report
expect 2 "there are digits, lstm, gpt" --only=digit
expect 2 "needs a Python that has PyTorch" --only=gpt
