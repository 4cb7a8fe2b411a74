#!/usr/bin/env bash
# Installs what is missing, builds, fuzzes the readers and attacks the verifier for 45 s each,
# runs every test. Arguments go to ctest, and then nothing is fuzzed or attacked:
# scripts/test.sh -R pcg
# ISOMER_PRESET chooses another preset of CMakePresets.json (release is the default).
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

preset=${ISOMER_PRESET:-release}
scripts/install_dependencies.sh
cmake --preset "$preset"
cmake --build --preset "$preset" --parallel "$(nproc)"
if (($# == 0)); then
  scripts/fuzz.sh 45
  [[ $preset != release ]] || scripts/attack.sh 45
fi
exec ctest --test-dir "build/$preset" --output-on-failure -j2 "$@"
