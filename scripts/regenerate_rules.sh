#!/usr/bin/env bash
# Generates and proves the shipped rules again, in both forms, rules/README.md, which counts them,
# docs/lemmas.md, which lists what their proofs rest on, and docs/derivations.md, which shows what
# they do together. Needs a release build. With --check it changes nothing: rules are generated from
# nothing, and must be those that are shipped (five minutes on two cores).
set -euo pipefail
if (($# > 1)) || { (($# == 1)) && [[ $1 != --check ]]; }; then
  echo "error: scripts/regenerate_rules.sh takes no arguments but --check" >&2
  exit 2
fi
cd "$(dirname "${BASH_SOURCE[0]}")/.."
if (($# == 1)); then
  folder=$(mktemp -d)
  trap 'rm -rf "$folder"' EXIT
  build/release/bin/isomer-generate --ops=all --max_ops=3 --out="$folder/default.rules"
  if ! build/release/bin/isomer-generate diff rules/default.rules "$folder/default.rules"; then
    echo "error: rules/default.rules is not what isomer-generate finds" >&2
    exit 1
  fi
  exit 0
fi
# What earlier runs found is kept: only what a change touches is generated again.
build/release/bin/isomer-generate --ops=all --max_ops=3 --work_dir=build/release/rules_work \
  --out=rules/default.rules,rules/default.txt
build/release/bin/isomer-verify rules rules/default.rules --no_cache --gradients
build/release/bin/isomer-generate stats rules/default.rules --markdown=rules/README.md
build/release/bin/isomer-verify lemmas rules/default.rules --exhaustive --markdown=docs/lemmas.md
# What the rules derive names them by id.
ISOMER_WRITE_DERIVATIONS=1 \
  build/release/tests/isomer_derivations_test --gtest_filter='DerivationsPage.*'
