# shellcheck shell=bash
# Sourced by scripts that search plans of many models.

# Reads [BUILD [FOLDER_OF_ONNX_FILES..]]: sets build, folders (without any, those of models/data and
# models/data/small) and out, a folder that is removed when the script ends.
take_arguments() {
  build=${1:-build/release}
  shift || true
  folders=("$@")
  [ ${#folders[@]} -gt 0 ] || folders=(models/data models/data/small)
  out=$(mktemp -d)
  trap 'rm -rf "$out"' EXIT
}

# isomer-optimize MODEL FLAGS..: false, and a line that names the model, if there is no plan.
search_plan() {
  local model=$1
  "$build/bin/isomer-optimize" "$@" >/dev/null 2>"$out/err" && return
  echo "no plan: $model: $(tail -1 "$out/err")" >&2
  return 1
}
