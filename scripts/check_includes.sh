#!/usr/bin/env bash
# Fails when an #include, or an import of a .proto, runs against an arrow:
#
#   pcg  <-  rules  <-  generator, verifier, optimizer
#   pcg  <-  models
#   pcg  <-  runtime
#
# Of rules/ and verifier/, theorems (rules/theorems/) and elements (verifier/elements/) include
# rules/rule.h and themselves, and the checker of certificates (verifier/certificate/) these three.
# What a certificate rests on stays small: see the sizes below. The second opinion on lemmas,
# verifier/exhaustive/, includes nothing of rules/ and verifier/ but itself.
#
# A program's main (*_main.cc) may use models besides its module, and isomer-generate's and
# isomer-optimize's the verifier. Z3 stays behind the wall of verifier/; oneDNN, MPI and CUDA stay
# in runtime/. Usage: scripts/check_includes.sh [TREE]
set -euo pipefail
cd "${1:-$(dirname "${BASH_SOURCE[0]}")/..}"

folders=()
for folder in pcg rules generator verifier optimizer runtime models tests bench; do
  [[ -d $folder ]] && folders+=("$folder")
done

grep -rnE --include='*.h' --include='*.cc' --include='*.cu' --include='*.cuh' --include='*.proto' \
  '^[[:space:]]*(#[[:space:]]*include|import)[[:space:]]' "${folders[@]}" | awk '
BEGIN {
  may["pcg"] = " pcg "
  may["rules"] = " pcg rules "
  may["generator"] = " pcg rules generator "
  may["verifier"] = " pcg rules verifier "
  may["optimizer"] = " pcg rules optimizer "
  may["runtime"] = " pcg runtime "
  may["models"] = " pcg models "
  modules = " pcg rules generator verifier optimizer runtime models tests bench "
}
function refuse(why) {
  printf "%s:%s: includes %s: %s\n", file, line, included, why
  violations++
}
{
  split($0, part, ":"); file = part[1]; line = part[2]
  if (!match($0, /["<][^">]*[">]/)) next
  included = substr($0, RSTART + 1, RLENGTH - 2)
  checked++
  from = file; sub(/\/.*/, "", from)
  to = included; sub(/\/.*/, "", to)
  base = included; sub(/.*\//, "", base)
  main = file ~ /_main\.cc$/

  if (included ~ /(^|\/)\.\.?\//) refuse("write paths from the repository root")
  if (from in may && index(modules, " " to " ") && included ~ /\// &&
      !index(may[from], " " to " ") && !(main && (to == "models" || ((from == "generator" || from == "optimizer") && to == "verifier"))))
    refuse(from " may include only" may[from])
  # What each part that others trust may include of rules/ and verifier/.
  of_parts = to == "rules" || to == "verifier"
  if (file ~ /^rules\/theorems\// && of_parts && included !~ /^rules\/(rule\.h|theorems\/)/)
    refuse("rules/theorems stands alone")
  if (file ~ /^verifier\/elements\// && of_parts && included !~ /^(rules\/rule\.h|verifier\/elements\/)/)
    refuse("verifier/elements stands alone")
  if (file ~ /^verifier\/certificate\// && of_parts &&
      included !~ /^(rules\/(rule\.h|theorems\/)|verifier\/(certificate|elements)\/)/)
    refuse("verifier/certificate stands on theorems and elements alone")
  if (file ~ /^verifier\/exhaustive\// && (to == "rules" || to == "verifier") &&
      included !~ /^verifier\/exhaustive\//)
    refuse("verifier/exhaustive shares no code with the proofs")
  if (base ~ /^z3(\+\+|_.*)?\.h$/ && from != "verifier") refuse("Z3 belongs in verifier/")
  if (included ~ /dnnl/ && to != "runtime" && from != "runtime")
    refuse("oneDNN belongs in runtime/")
  if (base == "mpi.h" && from != "runtime") refuse("MPI belongs in runtime/")
  if (base ~ /^(cuda|cublas|cudnn|nccl)[A-Za-z_0-9]*\.h$/ && to != "runtime" && from != "runtime" &&
      file !~ /^tests\/runtime\//)
    refuse("CUDA belongs in runtime/ and tests/runtime/")
}
END {
  if (violations) { printf "%d includes run against the arrows\n", violations; exit 1 }
  printf "%d includes follow the arrows\n", checked
}'

# Patterns of files, and how many lines they may have together.
size_limits=(
  '1500 verifier/certificate/*'
  '2500 rules/theorems/*'
  '2000 verifier/elements/*'
  '2550 pcg/schedule/check* pcg/schedule/buffer_meaning* pcg/schedule/forward_buffers*'
)
for limit in "${size_limits[@]}"; do
  read -r most patterns <<<"$limit"
  # shellcheck disable=SC2086  # the patterns are to be expanded
  lines=$(cat $patterns 2>/dev/null | wc -l) || true
  if ((lines > most)); then
    echo "$patterns are $lines lines: too many to be read by everyone"
    exit 1
  fi
done
