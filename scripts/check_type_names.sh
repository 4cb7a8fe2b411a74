#!/usr/bin/env bash
# Fails when two types of one namespace have one name: programs and tests that link both would mix
# their inline functions, and no compiler says so. Types in anonymous namespaces are each file's own.
# Usage: scripts/check_type_names.sh [TREE]
set -euo pipefail
cd "${1:-$(dirname "${BASH_SOURCE[0]}")/..}"

folders=()
for folder in pcg rules generator verifier optimizer runtime models python tests bench; do
  [[ -d $folder ]] && folders+=("$folder")
done
find "${folders[@]}" -name '*.h' -o -name '*.cc' | sort | xargs awk '
FNR == 1 { space = ""; hidden = 0 }
/^namespace \{/ { hidden = 1 }
/^\}  \/\/ namespace$/ { hidden = 0 }
/^namespace [a-z]/ { space = $2 }
!hidden && /^(struct|class|union|enum|enum class) [A-Za-z]/ && !/;[[:space:]]*$/ {
  name = $2 == "class" ? $3 : $2
  sub(/[:<{;].*/, "", name)
  # Of a class, a part that its own file defines; a specialisation of a template.
  if ($0 ~ "(struct|class) " name "(::|<)") next
  key = space "::" name
  types++
  if (key in first && first[key] != FILENAME) {
    printf "%s:%d: %s is also defined in %s\n", FILENAME, FNR, key, first[key]
    doubles++
  } else if (!(key in first)) {
    first[key] = FILENAME
  }
}
END {
  if (doubles) { printf "%d types have the name of another\n", doubles; exit 1 }
  printf "%d types have names of their own\n", types
}'
