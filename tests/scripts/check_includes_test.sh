#!/usr/bin/env bash
# scripts/check_includes.sh against small trees: each of the refused includes alone must fail it.
set -euo pipefail
check=$1
tree=$(mktemp -d)
trap 'rm -rf "$tree"' EXIT
failures=0

# expect accepted|refused FILE LINE
expect() {
  rm -rf "${tree:?}"/*
  mkdir -p "$tree/$(dirname "$2")"
  printf '%s\n' "$3" >"$tree/$2"
  local verdict=accepted
  "$check" "$tree" >/dev/null || verdict=refused
  if [[ $verdict != "$1" ]]; then
    echo "$2 with $3 was $verdict, not $1"
    failures=$((failures + 1))
  fi
}

expect accepted rules/a.cc '#include "pcg/ir/graph.h"'
expect accepted optimizer/a.cc '#include "rules/language/rule.h"'
expect accepted optimizer/isomer_optimize_main.cc '#include "models/zoo.h"'
expect accepted runtime/operators/a.cc '#include <dnnl.hpp>'
expect accepted verifier/a.cc '#include <z3++.h>'
expect accepted rules/language/rules.proto 'import "pcg/ir/pcg.proto";'
expect accepted tests/pcg/a_test.cc '#include "optimizer/substitution/search.h"'
expect refused pcg/operators/a.h '#include "rules/language/rule.h"'
expect refused rules/a.cc '#include "verifier/proving/prover.h"'
expect refused optimizer/a.cc '#include "models/zoo.h"'
expect refused optimizer/a.cc '  #  include "runtime/execution/executor.h"'
expect refused runtime/a.cc '#include "rules/language/rule.h"'
expect refused models/a.h '#include <rules/language/rule.h>'
expect accepted generator/isomer_generate_main.cc '#include "verifier/proving/prover.h"'
expect refused generator/pipeline/generate.cc '#include "verifier/proving/prover.h"'
expect refused pcg/a.cc '#include "../rules/language/rule.h"'
expect refused optimizer/a.cc '#include <z3.h>'
expect refused tests/verifier/a_test.cc '#include "z3++.h"'
expect refused pcg/a.cc '#include <oneapi/dnnl/dnnl.hpp>'
expect refused optimizer/a.cc '#include <cuda_runtime.h>'
expect refused tests/optimizer/a.cc '#include <cuda.h>'
expect accepted tests/runtime/a.cc '#include <cuda.h>'
expect refused pcg/ir/pcg.proto 'import "rules/language/rules.proto";'
expect accepted verifier/certificate/a.cc '#include "rules/language/rule.h"'
expect accepted verifier/certificate/a.cc '#include "verifier/certificate/b.h"'
expect accepted verifier/certificate/a.cc '#include "rules/theorems/structure.h"'
expect accepted verifier/certificate/a.cc '#include "verifier/elements/normal_form.h"'
expect refused verifier/certificate/a.cc '#include "rules/matching/rewrite.h"'
expect refused verifier/certificate/a.cc '#include "verifier/terms/smt.h"'
expect refused rules/theorems/a.cc '#include "rules/matching/rewrite.h"'
expect refused verifier/elements/a.cc '#include "verifier/terms/smt.h"'
expect accepted verifier/elements/a.cc '#include "rules/language/rule.h"'
expect refused verifier/certificate/a.cc '#include "verifier/proving/prover.h"'
expect accepted verifier/exhaustive/a.cc '#include "verifier/exhaustive/elements.h"'
expect refused verifier/exhaustive/a.cc '#include "verifier/elements/polynomial.h"'

# Rooms: only along the arrows, to what is generated, and from the top of a module to all.
expect accepted optimizer/search/a.cc '#include "optimizer/proposal/b.h"'
expect accepted optimizer/cost/a.cc '#include "optimizer/cost/b.h"'
expect accepted optimizer/isomer_optimize_main.cc '#include "optimizer/report/b.h"'
expect accepted optimizer/substitution/a.cc '#include "optimizer/code_digest.h"'
expect accepted pcg/schedule/check/a.cc '#include "pcg/schedule/schedule.h"'
expect refused optimizer/cost/a.cc '#include "optimizer/search/b.h"'
expect refused optimizer/cost/a.cc '#include "optimizer/b.h"'
expect refused pcg/ir/a.h '#include "pcg/schedule/schedule.h"'
expect refused pcg/schedule/schedule.h '#include "pcg/schedule/check/check.h"'
expect refused optimizer/attic/a.cc '#include "optimizer/cost/b.h"'
circle=$(mktemp)
sed 's|^optimizer/machine:$|optimizer/machine: search|' "$check" >"$circle"
if bash "$circle" "$tree" >/dev/null; then
  echo "a circle of rooms was accepted"
  failures=$((failures + 1))
fi
rm -f "$circle"

# A checker of more than 1,500 lines.
rm -rf "${tree:?}"/*
mkdir -p "$tree/verifier/certificate"
seq 1501 | sed 's|.*|// A line.|' >"$tree/verifier/certificate/a.cc"
if "$check" "$tree" >/dev/null; then
  echo "1,501 lines of checker were accepted"
  failures=$((failures + 1))
fi

((failures == 0))
