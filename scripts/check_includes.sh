#!/usr/bin/env bash
# Fails when an #include, or an import of a .proto, runs against an arrow:
#
#   pcg  <-  rules  <-  generator, verifier, optimizer
#   pcg  <-  models
#   pcg  <-  runtime
#
# Of rules/ and verifier/, theorems (rules/theorems/) and elements (verifier/elements/) include
# rules/language/rule.h and themselves, and the checker of certificates (verifier/certificate/)
# these three.
# What a certificate rests on stays small: see the sizes below. The second opinion on lemmas,
# verifier/exhaustive/, includes nothing of rules/ and verifier/ but itself.
#
# Within a module, folders are rooms: a file may include what lies in its own, and what lies in the
# rooms that the table below names. The arrows have no circle: that is checked, too. Files at the
# top of a module (mains of programs, the readers of models) may include all of its rooms.
#
# A program's main (*_main.cc) may use models besides its module, and isomer-generate's and
# isomer-optimize's the verifier. Z3 stays behind the wall of verifier/; oneDNN and CUDA stay in
# runtime/, MPI there and in generator/workers/. Usage: scripts/check_includes.sh [TREE]
set -euo pipefail
cd "${1:-$(dirname "${BASH_SOURCE[0]}")/..}"

# ROOM: rooms of the same module that it may include.
rooms='
pcg/support:
pcg/ir: support
pcg/operators: ir support
pcg/operators/declared: ir operators support
pcg/evaluation: ir support
pcg/profile: ir support
pcg/schedule: ir support
pcg/schedule/order: ir schedule support
pcg/schedule/memory: ir schedule support
pcg/schedule/program: ir schedule schedule/memory support
pcg/schedule/lowering: ir profile schedule schedule/memory schedule/order support
pcg/schedule/symmetry: ir profile schedule schedule/lowering support
pcg/schedule/check: ir profile schedule schedule/lowering schedule/memory schedule/order schedule/program support
rules/language:
rules/theorems: language
rules/calls: language
rules/matching: language theorems
rules/equality: language matching
generator/assignments:
generator/preconditions: assignments
generator/enumeration: assignments preconditions
generator/schemas: assignments enumeration preconditions
generator/checking: assignments preconditions
generator/inspect: assignments
generator/workers:
generator/pipeline: assignments enumeration inspect preconditions schemas workers
verifier/elements:
verifier/certificate: elements
verifier/exhaustive:
verifier/terms: elements
verifier/types: terms
verifier/values: elements terms types
verifier/refutation: values
verifier/gradients: terms types
verifier/families: refutation terms types values
verifier/proving: certificate elements families refutation terms types values
verifier/plans: certificate proving
verifier/lemmas: exhaustive families proving terms values
verifier/audit: proving refutation terms types values
verifier/mutation: plans proving refutation types values
optimizer/machine:
optimizer/sharding:
optimizer/canonical:
optimizer/cost: machine sharding
optimizer/mapping: cost sharding
optimizer/simulator: cost mapping sharding
optimizer/substitution: mapping sharding
optimizer/bound: cost mapping sharding simulator
optimizer/walk: mapping simulator
optimizer/proposal: bound canonical cost mapping sharding simulator substitution walk
optimizer/search: bound canonical cost proposal sharding simulator substitution
optimizer/request: bound cost machine proposal search sharding substitution walk
optimizer/report: cost machine search sharding simulator
optimizer/comparison: cost machine proposal report search simulator
optimizer/page: comparison cost machine proposal report search sharding simulator
runtime/device:
runtime/communication: device
runtime/cpu: device
runtime/cuda: device
runtime/execution: communication cpu cuda device
runtime/data: device execution
runtime/checking: cpu device execution
runtime/checkpoint: device execution
runtime/weight_files: checkpoint data device execution
runtime/launch:
runtime/evaluation: data execution
runtime/logging: data
runtime/profiler: communication cpu device execution
models/support:
models/frameworks:
models/onnx:
models/onnx/graph: onnx
models/onnx/import: onnx onnx/graph support
models/onnx/export: onnx
models/zoo:
models/zoo/blocks: support zoo
models/zoo/networks: zoo zoo/blocks
'

folders=()
for folder in pcg rules generator verifier optimizer runtime models python tests bench; do
  [[ -d $folder ]] && folders+=("$folder")
done

grep -rnE --include='*.h' --include='*.cc' --include='*.cu' --include='*.cuh' --include='*.proto' \
  '^[[:space:]]*(#[[:space:]]*include|import)[[:space:]]' "${folders[@]}" | awk -v rooms="$rooms" '
# The rooms that `room` leads to; a circle is an error.
function follow(room, path,    to, i, n) {
  if (index(path, " " room " ")) {
    print "rooms: a circle:" path room
    violations++
    return
  }
  if (room in followed) return
  n = split(opens[room], to, " ")
  for (i = 1; i <= n; i++) follow(module_of(room) "/" to[i], path room " ")
  followed[room] = 1
}
function module_of(path) { sub(/\/.*/, "", path); return path }
function room_of(path) { sub(/\/[^\/]*$/, "", path); return path }
BEGIN {
  num_rooms = split(rooms, lines, "\n")
  for (i = 1; i <= num_rooms; i++) {
    if (lines[i] == "") continue
    colon = index(lines[i], ":")
    room = substr(lines[i], 1, colon - 1)
    opens[room] = " " substr(lines[i], colon + 1) " "
  }
  for (room in opens) follow(room, " ")
  may["pcg"] = " pcg "
  may["rules"] = " pcg rules "
  may["generator"] = " pcg rules generator "
  may["verifier"] = " pcg rules verifier "
  may["optimizer"] = " pcg rules optimizer "
  may["runtime"] = " pcg runtime "
  may["models"] = " pcg models "
  modules = " pcg rules generator verifier optimizer runtime models python tests bench "
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
  # Rooms; what is generated lies at the top of its module.
  room = room_of(file); opened = room_of(included)
  if (from in may && from == to && room != from && room != opened && opened != from) {
    if (!(room in opens)) refuse("the table of rooms has no " room)
    name = opened; sub(/^[^\/]*\//, "", name)
    if (room in opens && !index(opens[room], " " name " "))
      refuse(room " may include of " from "/ only itself and:" opens[room])
  }
  if (from in may && from == to && room != from && opened == from && base != "code_digest.h" &&
      base !~ /\.pb\.h$/)
    refuse("what lies at the top of " from "/ is on top of its rooms")
  if (from in may && index(modules, " " to " ") && included ~ /\// &&
      !index(may[from], " " to " ") && !(main && (to == "models" || ((from == "generator" || from == "optimizer") && to == "verifier"))))
    refuse(from " may include only" may[from])
  # What each part that others trust may include of rules/ and verifier/.
  of_parts = to == "rules" || to == "verifier"
  if (file ~ /^rules\/theorems\// && of_parts && included !~ /^rules\/(language\/rule\.h|theorems\/)/)
    refuse("rules/theorems stands alone")
  if (file ~ /^verifier\/elements\// && of_parts && included !~ /^(rules\/language\/rule\.h|verifier\/elements\/)/)
    refuse("verifier/elements stands alone")
  if (file ~ /^verifier\/certificate\// && of_parts &&
      included !~ /^(rules\/(language\/rule\.h|theorems\/)|verifier\/(certificate|elements)\/)/)
    refuse("verifier/certificate stands on theorems and elements alone")
  if (file ~ /^verifier\/exhaustive\// && (to == "rules" || to == "verifier") &&
      included !~ /^verifier\/exhaustive\//)
    refuse("verifier/exhaustive shares no code with the proofs")
  if (base ~ /^z3(\+\+|_.*)?\.h$/ && from != "verifier") refuse("Z3 belongs in verifier/")
  if (included ~ /dnnl/ && to != "runtime" && from != "runtime")
    refuse("oneDNN belongs in runtime/")
  if (base == "mpi.h" && from != "runtime" && file !~ /^generator\/workers\//)
    refuse("MPI belongs in runtime/ and generator/workers/")
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
  '1500 verifier/certificate/*.[ch]*'
  '2575 rules/theorems/*.[ch]*'
  '2700 verifier/elements/*.[ch]*'
  '2750 pcg/schedule/check/*.[ch]*'
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
