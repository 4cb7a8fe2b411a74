#!/usr/bin/env bash
# What programs say of their progress: on a terminal a line that is drawn over itself, in a pipe
# nothing, with --quiet nothing. Usage: progress_test.sh BIN TREE
set -euo pipefail

bin=$(realpath "$1")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
export XDG_CACHE_HOME="$work/cache" TERM=xterm

fail() {
  echo "error: $*" >&2
  exit 1
}

# Takes some seconds everywhere, as nothing is kept of it.
search="'$bin/isomer-optimize' zoo:nasnet_a --machine=dgx_h100 --nodes=1 --nocache --time_limit=3 --out=n.plan"

# on_terminal COMMAND: stderr is a pseudo terminal, stdout a file.
on_terminal() {
  script --quiet --return --command "stty cols 100; $1 >out" /dev/null </dev/null >terminal
}

on_terminal "$search"
grep -q $'\rplan: ' terminal || fail "no progress on a terminal: $(cat terminal)"
grep -q 'at most [0-9]* s left' terminal || fail "no time that is left: $(cat terminal)"
(($(grep -o $'\r[^\r]*' terminal | wc -L) <= 110)) || fail "lines are longer than the terminal"
[[ $(tail -c 4 terminal) == *$'\e[K' ]] || fail "the line stays: $(tail -c 40 terminal | od -c)"
grep -q "a step" out || fail "no results on stdout: $(cat out)"
! grep -q $'\e' out || fail "escapes on stdout"

on_terminal "$search --quiet"
[[ ! -s terminal ]] || fail "--quiet says: $(cat terminal)"
TERM=dumb on_terminal "$search"
! grep -q $'\e' terminal || fail "escapes on a dumb terminal"

eval "$search" >out 2>err
[[ ! -s err ]] || fail "in a pipe: $(cat err)"

# Notes are no results.
"$bin/isomer-optimize" "$2/models/data/bert_tiny.onnx" --machine=laptop_cpu --out=b.plan >out 2>err
grep -q '^note: ' err || fail "no note of the loss"
"$bin/isomer-optimize" "$2/models/data/bert_tiny.onnx" --machine=laptop_cpu --out=b.plan --quiet \
  >quiet 2>err
[[ ! -s err ]] || fail "--quiet says: $(cat err)"
[[ -s quiet ]] || fail "--quiet leaves out results"
echo "progress is said on terminals alone"
