#!/usr/bin/env bash
# Installs what is missing, builds, runs every test. Arguments go to ctest: scripts/test.sh -R pcg
# ISOMER_PRESET chooses another preset of CMakePresets.json (release is the default).
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

preset=${ISOMER_PRESET:-release}
scripts/install_dependencies.sh
cmake --preset "$preset"
cmake --build --preset "$preset" --parallel "$(nproc)"
exec ctest --test-dir "build/$preset" --output-on-failure -j2 "$@"
