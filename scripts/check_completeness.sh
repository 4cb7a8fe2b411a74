#!/usr/bin/env bash
# Brute force over all pairs of terms, longer than the tests do: that the generator misses no
# equality. Needs a release build.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
build/release/tests/isomer_generator_test --gtest_also_run_disabled_tests \
  --gtest_filter='*Completeness*'
