#!/usr/bin/env bash
# scripts/check_type_names.sh against small trees.
set -euo pipefail
check=$1
tree=$(mktemp -d)
trap 'rm -rf "$tree"' EXIT
failures=0

# expect accepted|refused TEXT_OF_A TEXT_OF_B: of two headers in two modules.
expect() {
  rm -rf "${tree:?}"/*
  mkdir -p "$tree/pcg/ir" "$tree/runtime/cpu"
  printf 'namespace isomer {\n\n%s\n\n}  // namespace isomer\n' "$2" >"$tree/pcg/ir/a.h"
  printf 'namespace isomer {\n\n%s\n\n}  // namespace isomer\n' "$3" >"$tree/runtime/cpu/b.cc"
  local verdict=accepted
  "$check" "$tree" >/dev/null || verdict=refused
  if [[ $verdict != "$1" ]]; then
    echo "'$2' beside '$3' was $verdict, not $1"
    failures=$((failures + 1))
  fi
}

expect accepted 'struct Piece {};' 'struct Part {};'
expect refused $'struct Piece {\n};' $'struct Piece {\n};'
expect refused $'struct Piece {\n};' $'class Piece : public Other {\n};'
expect refused $'enum class Kind {\n};' $'struct Kind {\n};'
expect refused $'template <typename T>\nstruct Place {\n};' $'struct Place {\n};'
expect accepted $'struct Piece {\n};' $'namespace {\n\nstruct Piece {\n};\n\n}  // namespace'
expect accepted $'struct Piece {\n};' 'struct Piece;'
expect accepted $'class Search {\n};' $'struct Search::Impl {\n};'
expect accepted $'struct Piece {\n};' $'}  // namespace isomer\nnamespace isomer::other {\nstruct Piece {\n};'
expect refused $'struct Piece {\n};' $'namespace {\n\nint a;\n\n}  // namespace\n\nstruct Piece {\n};'

((failures == 0))
