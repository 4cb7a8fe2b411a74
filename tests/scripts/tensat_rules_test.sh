#!/usr/bin/env bash
# Rules written as TENSAT writes TASO's, judged: true ones, one of each that a renaming makes equal, and a
# false one. Usage: tensat_rules_test.sh BIN TREE
set -euo pipefail

bin=$(realpath "$1")
tree=$(realpath "$2")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"

# The third is the first, renamed; the last is false.
printf '%s' 'ewadd(input_1,input_2)==ewadd(input_2,input_1)' \
  'matmul(input_1,smul(input_4,input_20))==smul(matmul(input_1,input_4),input_20)' \
  'ewadd(input_3,input_1)==ewadd(input_1,input_3)' \
  'relu(ewadd(input_1,input_2))==ewadd(relu(input_1),relu(input_2))' >single
printf '%s\n' 'relu(input_1)==split_0(split(1,relu(concat(1,2,input_1,input_2))))' \
  'relu(input_2)==split_1(split(1,relu(concat(1,2,input_1,input_2))))' >multi
python3 "$tree/bench/tensat_rules.py" single multi >rules.textproto 2>said
grep -qx '5 equations, 4 distinct rules' said || { echo "error: $(cat said)" >&2; exit 1; }
code=0
"$bin/isomer-verify" taso rules.textproto --max_steps=0 --quiet >out || code=$?
grep '^rule ' out | sed 's/ *$//' >verdicts
printf 'rule %s\n' '0: proved' '1: proved' '2: refuted' '3: proved' >expected
diff expected verdicts
[ "$code" = 1 ] || { echo "error: exit code $code" >&2; exit 1; }

printf 'relu(input_1)' >single
if python3 "$tree/bench/tensat_rules.py" single multi >/dev/null 2>said; then
  echo "error: half an equation was taken" >&2
  exit 1
fi
grep -qx 'error: no "==" after equation 0' said || { echo "error: $(cat said)" >&2; exit 1; }
