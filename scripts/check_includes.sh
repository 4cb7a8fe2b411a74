#!/usr/bin/env bash
# Fails when an #include, or an import of a .proto, runs against an arrow:
#
#   pcg  <-  rules  <-  generator, verifier, optimizer
#   pcg  <-  models
#   pcg  <-  runtime
#
# The checker of certificates, verifier/certificate/, reads rules (rules/rule.h) and includes nothing
# else of rules/ or verifier/; it stays under 1,500 lines, and the checker of schedules under 1,900,
# pcg/schedule/check*. The second opinion on lemmas, verifier/exhaustive/, includes nothing of rules/
# and verifier/ but itself.
#
# A program's main (*_main.cc) may use models besides its module, and isomer-generate's the verifier. Z3 stays behind the wall of
# verifier/; oneDNN, MPI and CUDA stay in runtime/. Usage: scripts/check_includes.sh [TREE]
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
      !index(may[from], " " to " ") && !(main && (to == "models" || (from == "generator" && to == "verifier"))))
    refuse(from " may include only" may[from])
  if (file ~ /^verifier\/certificate\// && (to == "rules" || to == "verifier") &&
      included != "rules/rule.h" && included !~ /^verifier\/certificate\//)
    refuse("verifier/certificate stands alone")
  if (file ~ /^verifier\/exhaustive\// && (to == "rules" || to == "verifier") &&
      included !~ /^verifier\/exhaustive\//)
    refuse("verifier/exhaustive shares no code with the proofs")
  if (base ~ /^z3(\+\+|_.*)?\.h$/ && from != "verifier") refuse("Z3 belongs in verifier/")
  if (included ~ /dnnl/ && to != "runtime" && from != "runtime")
    refuse("oneDNN belongs in runtime/")
  if (base == "mpi.h" && from != "runtime") refuse("MPI belongs in runtime/")
  if (base ~ /^(cuda|cublas|cudnn|nccl)[A-Za-z_0-9]*\.h$/ && to != "runtime" && from != "runtime")
    refuse("CUDA belongs in runtime/")
}
END {
  if (violations) { printf "%d includes run against the arrows\n", violations; exit 1 }
  printf "%d includes follow the arrows\n", checked
}'

for part in 'verifier/certificate/*:1500' 'pcg/schedule/check*:1900'; do
  most=${part#*:} part=${part%:*}
  lines=$({ cat $part.{h,cc} 2>/dev/null || true; } | wc -l)
  if ((lines > most)); then
    echo "$part are $lines lines: too many to be read by everyone"
    exit 1
  fi
done
