#!/usr/bin/env bash
# An adversary who draws false rules and false plans for as long as you like, a minute by default:
#
#   scripts/attack.sh [SECONDS] [SEED]
#
# What is proved or accepted is run, with other numbers than the prover's; it must be right. What is
# not is printed with the rule or the plan that shows it, and the exit code is 1. Needs a release
# build. ISOMER_ATTACK_JOBS: processes, one for each processor by default.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
export ISOMER_ATTACK_SECONDS=${1:-60} ISOMER_ATTACK_SEED=${2:-1}
export ISOMER_ATTACK_JOBS=${ISOMER_ATTACK_JOBS:-$(nproc)}
echo "attack: for $ISOMER_ATTACK_SECONDS s, seed $ISOMER_ATTACK_SEED"
exec build/release/tests/isomer_unsound_test --gtest_filter='Attack.FindsNothing' --gtest_brief=1
