#!/usr/bin/env bash
# Tries every shipped rule on 1,000 random instances each, in double and over the prime field, and
# compares the gradients of both sides. Needs a release build. Arguments are passed on, e.g.
# --instances=100 --sample=50.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
build/release/bin/isomer-generate check rules/default.rules --instances=1000 "$@"
