#!/usr/bin/env bash
# Follows docs/adding-an-operator.md: puts each of its blocks of code where the sentence before it
# says, in a copy of the tree, builds the tests of pcg there and runs those of the new operator. It
# takes some minutes. With --check it only looks whether each block has one place (recipe_check).
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
recipe=docs/adding-an-operator.md

blocks=$(mktemp -d)
trap 'rm -rf "$blocks"' EXIT
# Of each block: its code in N.code; in N.place its file, "above" or "below", the text of the line.
awk -v out="$blocks" '
/^In `[^`]+`, (above|below) the line with `.*`:$/ {
  split($0, quoted, "`")
  place = quoted[2] "\n" (quoted[3] ~ /above/ ? "above" : "below") "\n" quoted[4]
  next
}
/^```/ && in_block { in_block = 0; place = ""; close(file); next }
/^```cpp$/ && place != "" {
  file = sprintf("%s/%02d.code", out, ++count)
  printf "" > file
  print place > (out sprintf("/%02d.place", count))
  in_block = 1
  next
}
/^```cpp$/ { print FILENAME ":" FNR ": no sentence says where this goes"; exit 1 }
in_block { print > file }
' "$recipe"

# Sets `place` to the three of a block.
read_place() { mapfile -t place <"${1%.code}.place"; }

failures=0
for block in "$blocks"/*.code; do
  read_place "$block"
  lines=$(grep -cF -- "${place[2]}" "${place[0]}" || true)
  if [[ $lines != 1 ]]; then
    echo "$recipe: '${place[2]}' is on $lines lines of ${place[0]}, not on one"
    failures=$((failures + 1))
  fi
done
((failures == 0)) || exit 1
[[ ${1:-} == --check ]] && exit

tree=$(mktemp -d)
trap 'rm -rf "$blocks" "$tree"' EXIT
git ls-files -z | xargs -0 cp --parents --target-directory="$tree"
cd "$tree"
for block in "$blocks"/*.code; do
  read_place "$block"
  line=$(grep -nF -- "${place[2]}" "${place[0]}" | cut -d: -f1)
  [[ ${place[1]} == above ]] && line=$((line - 1))
  sed -i "${line}r $block" "${place[0]}"
done
kind=$(sed -nE 's/^ *V\((\w+),.*/\1/p' "$blocks"/*.code)
cmake -S . -B build -G Ninja -DCMAKE_BUILD_TYPE=Debug >build.log
cmake --build build --target isomer_pcg_test
build/tests/isomer_pcg_test --gtest_filter="*$kind*:CallTable.*:OperatorTraits.*"
