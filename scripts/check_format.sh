#!/usr/bin/env bash
# Fails when clang-format would change a source file. With --fix it changes them.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

arguments=(--dry-run -Werror)
[[ ${1:-} == --fix ]] && arguments=(-i)

command -v clang-format >/dev/null || {
  echo "error: clang-format is not installed; run scripts/install_dependencies.sh" >&2
  exit 1
}
for folder in pcg rules generator verifier optimizer runtime models python tests bench; do
  [[ -d $folder ]] && find "$folder" -name '*.h' -o -name '*.cc' -o -name '*.cu' -o -name '*.cuh' \
    -o -name '*.js'
done | sort | xargs -r -n 20 -P 2 clang-format "${arguments[@]}" || {
  echo "format: run scripts/check_format.sh --fix" >&2
  exit 1
}
