#!/usr/bin/env bash
# Installs a build into a folder with a space in its name, moves it, and runs every program from
# there, from another folder and through a symbolic link. Usage: install_test.sh BUILD
set -euo pipefail

build=$(realpath "$1")
work=$(mktemp -d "${TMPDIR:-/tmp}/isomer install.XXXXXX")
trap 'rm -rf "$work"' EXIT
export XDG_CACHE_HOME="$work/cache"

fail() {
  echo "error: $*" >&2
  exit 1
}

# expect TEXT COMMAND..: it succeeds, and what it prints has TEXT.
expect() {
  local text=$1 printed
  shift
  printed=$("$@" 2>&1) || fail "$* failed: $printed"
  [[ $printed == *"$text"* ]] || fail "$* printed no '$text': $printed"
}

cmake --install "$build" --prefix "$work/as installed" >"$work/log" || { cat "$work/log"; exit 1; }
mkdir -p "$work/an other"
mv "$work/as installed" "$work/an other/place"
place="$work/an other/place"
mkdir "$work/here" "$work/links"
cd "$work/here"

for name in generate optimize profile run verify; do
  program="$place/bin/isomer-$name"
  expect "isomer-$name " "$program" --version
  expect $'\ncommit: ' "$program" --version
  expect "Usage: isomer-$name" "$program" --help
  bash -n "$place/share/bash-completion/completions/isomer-$name"
  page=("$place/share/man/man1/isomer-$name.1"*)
  [[ -s ${page[0]} ]] || fail "isomer-$name has no manual page"
  ln -s "$program" "$work/links/isomer-$name"
done
"$place/bin/isomer-run" --help=mann 2>/dev/null && fail "--help=mann is a form of help"

models="$place/share/isomer/models/data"
expect "laptop_cpu: 1 node of 4 core" "$place/bin/isomer-optimize" --machine=laptop_cpu --describe
# Through links, from another folder: presets and rules are found beside the programs.
export PATH="$work/links:$PATH"
expect "steps of" isomer-optimize "$models/bert_tiny.onnx" --machine=laptop_cpu \
  --devices_per_node=2 --out=bert.plan --dot=bert.dot --timeline=bert.svg --trace=bert.json
expect "accepted bert.plan" isomer-verify plan bert.plan --model="$models/bert_tiny.onnx"
expect "2 steps on 2 devices" isomer-run bert.plan --steps=2 --check
expect "rules proved" isomer-generate --ops=matmul,add --max_ops=1 --out=small.rules
expect "Measures" isomer-profile --help
# The Python package, where it was built.
python=$(sed -n 's/^Python3_EXECUTABLE:[A-Z]*=//p' "$build/CMakeCache.txt")
package=$place/lib/python3/dist-packages
if [[ -d $build/python/isomer && -n $python ]] && "$python" -c 'import numpy' 2>/dev/null; then
  expect "equal True" env PYTHONPATH="$package" "$python" -W ignore -c '
import isomer, sys
assert isomer.__file__.startswith(sys.argv[1]), isomer.__file__
plan = isomer.optimize(isomer.load(sys.argv[2]), isomer.Machine("laptop_cpu", devices_per_node=2), time_limit=5)
print("equal", bool(plan.verify(sys.argv[2])) and bool(plan.check()))' "$package" "$models/bert_tiny.onnx"
fi

# They are the installed ones, not those of the tree that they were built from.
mv "$place/share/isomer/rules" "$place/share/isomer/no_rules"
isomer-optimize zoo:mlp --machine=laptop_cpu --out=m.plan 2>err && fail "rules came from elsewhere"
grep -q "an other/place/share/isomer/rules/default.rules" err || fail "$(cat err)"

# reply LINE: what bash completes at its end.
reply() (
  set +eu
  source "$place/share/bash-completion/completions/isomer-optimize"
  COMP_LINE=$1 COMP_POINT=${#1}
  _isomer_optimize 2>/dev/null  # of compopt, outside of a real completion
  printf '%s\n' "${COMPREPLY[@]}"
)
[[ $(reply 'isomer-optimize --mach') == '--machine=' ]] || fail "$(reply 'isomer-optimize --mach')"
[[ $(reply 'isomer-optimize --machine=k80') == k80_cluster ]] || fail "no preset after ="
[[ $(reply 'isomer-optimize --machine k80') == k80_cluster ]] || fail "no preset after a blank"
[[ $(reply 'isomer-optimize zoo:bert_l') == bert_large ]] || fail "no network of the zoo"
# A program with commands, and a usage without one.
[[ $(reply 'isomer-optimize di') == diff ]] || fail "no command: $(reply 'isomer-optimize di')"
[[ -z $(reply 'isomer-optimize x.plan di') ]] || fail "a command is completed as a second argument"
page=$("$place/bin/isomer-optimize" --help=man)
for command in diff export; do
  [[ $page == *"\\fB$command\\fR PLAN"* ]] || fail "isomer-optimize's manual page has no $command"
done
[[ $(reply 'isomer-optimize --mode=inf') == inference ]] || fail "no mode"
[[ -z $(reply 'isomer-optimize --nodes=') ]] || fail "a number is completed"
[[ $(reply 'isomer-optimize ber' | sort | tr '\n' ' ') == 'bert.dot bert.json bert.plan bert.svg ' ]] ||
  fail "files: $(reply 'isomer-optimize ber')"
if command -v fish >/dev/null; then
  completed=$(HOME=$work fish --no-config -c "source '$place/share/fish/vendor_completions.d/isomer-optimize.fish'
    complete -C 'isomer-optimize --machine=k80'")
  [[ $completed == *k80_cluster* ]] || fail "fish completes '$completed'"
fi
if command -v zsh >/dev/null; then
  for file in "$place"/share/zsh/site-functions/*; do zsh -n "$file"; done
fi
echo "installed, moved and run"
