#!/bin/bash
# Writes tests/integration/messages.txt, the golden file of what programs say when the answer is no or the input is
# bad, anew: from what the integration tests provoke. Read what changed, as a whole: does each line say what is
# wrong, where, and what to do?
#
#   scripts/update_messages.sh [BUILD]    # build/release; some five minutes
set -euo pipefail
cd "$(dirname "$0")/.."
build=${1:-build/release}
record=$(mktemp)
trap 'rm -f "$record"' EXIT
ISOMER_RECORD_MESSAGES=$record "$build/tests/isomer_integration_test" --gtest_brief=1
LC_ALL=C sort -u "$record" >tests/integration/messages.txt
git --no-pager diff --stat -- tests/integration/messages.txt
