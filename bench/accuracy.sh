#!/usr/bin/env bash
# Predicted against measured step times and memory on this computer: bench/results/accuracy.{md,json,svg}.
# Builds first; takes about ten minutes, in which nothing else should run. Arguments go to the
# program: bench/accuracy.sh --models=mlp,lenet --rounds=1
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
cmake --preset release >/dev/null
cmake --build --preset release --parallel "$(nproc)" \
  --target accuracy isomer-optimize isomer-profile isomer-run >/dev/null
build/release/bench/accuracy "$@"
