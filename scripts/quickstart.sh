#!/usr/bin/env bash
# From a fresh clone to a proved plan that runs; every step says what it does and how long it took.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

build=build/release
bin=$build/bin
out=build/quickstart  # everything that the steps write

# step TITLE FUNCTION
step() {
  printf '\n== %s\n' "$1"
  local start=$EPOCHREALTIME
  "$2"
  local microseconds=$((${EPOCHREALTIME/[.,]/} - ${start/[.,]/}))
  printf -- '-- %d.%d s\n' $((microseconds / 1000000)) $((microseconds / 100000 % 10))
}

set_up() {
  scripts/install_dependencies.sh
}

build() {
  mkdir -p "$out"
  cmake --preset release >"$out/configure.log" || { cat "$out/configure.log"; return 1; }
  cmake --build --preset release --parallel "$(nproc)"
}

step "Set up: install what is missing" set_up
step "Build" build
