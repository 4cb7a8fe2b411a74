#!/usr/bin/env bash
# Installs the Python package by pip, without a network, and runs an example where the tree
# is not. Usage: python_install_test.sh BUILD PYTHON
set -euo pipefail

build=$(realpath "$1")
python=$2
tree=$(realpath "$(dirname "${BASH_SOURCE[0]}")/../..")
work=$(mktemp -d "${TMPDIR:-/tmp}/isomer pip.XXXXXX")
trap 'rm -rf "$work"' EXIT
export XDG_CACHE_HOME="$work/cache" PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_CACHE_DIR=1
unset PYTHONPATH

fail() {
  echo "error: $*" >&2
  exit 1
}

# setuptools writes beside the sources.
mkdir "$work/tree"
cp -r "$tree/python" "$work/tree"
ln -s "$tree/CMakeLists.txt" "$tree/rules" "$tree/optimizer" "$work/tree"

"$python" -m venv --system-site-packages "$work/venv"
install() {
  "$work/venv/bin/pip" install --no-index --no-build-isolation "$work/tree/python" >"$work/log" 2>&1
}
mkdir "$work/empty"
ISOMER_BUILD="$work/empty" install && fail "an empty folder has no module"
grep -q "error: .*/empty has no _isomer" "$work/log" || { cat "$work/log"; exit 1; }
ISOMER_BUILD="$build" install || { cat "$work/log"; exit 1; }
rm -r "$work/tree"

cd "$work"
printed=$("$work/venv/bin/python" -W ignore "$tree/python/examples/onnx_to_plan.py" \
  "$tree/models/data/bert_tiny.onnx" --out=bert.plan) || fail "$printed"
[[ $printed == *": agrees"* && -s bert.plan ]] || fail "$printed"
"$work/venv/bin/python" -c 'import isomer, sys
assert isomer.__file__.startswith(sys.prefix), isomer.__file__
assert "dgx_h100" in isomer.machine_presets()'
echo "installed by pip, and run"
