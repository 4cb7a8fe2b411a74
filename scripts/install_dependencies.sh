#!/usr/bin/env bash
# Installs what building and testing Isomer needs and is not there yet (Debian 12 or newer, Ubuntu).
set -euo pipefail
(($# == 0)) || { echo "error: scripts/install_dependencies.sh takes no arguments" >&2; exit 2; }

packages=(
  g++ cmake ninja-build ccache pkg-config git
  libabsl-dev libprotobuf-dev protobuf-compiler libz3-dev libgmp-dev libdnnl-dev libjemalloc-dev
  libopenmpi-dev openmpi-bin
  libgtest-dev libgmock-dev libbenchmark-dev
  clang-format clang-tidy
)
# Installed where the distribution has them. Without the first two nothing is fuzzed, without the
# next two isomer-optimize has no --report, without the others there is no Python package, or pip
# cannot install it.
optional=(
  clang-16 libclang-rt-16-dev node-d3 node-dagre-layout
  pybind11-dev python3-dev python3-numpy python3-venv python3-setuptools python3-wheel
)

is_installed() {
  [[ $(dpkg-query -W -f='${Status}' "$1" 2>/dev/null) == *" installed" ]]
}

missing=()
if command -v dpkg-query >/dev/null; then
  for package in "${packages[@]}"; do
    is_installed "$package" || missing+=("$package")
  done
else
  echo "error: not a Debian system; install the equivalents of: ${packages[*]}" >&2
  exit 1
fi
missing_optional=()
for package in "${optional[@]}"; do
  is_installed "$package" || missing_optional+=("$package")
done
if ((${#missing[@]} + ${#missing_optional[@]} == 0)); then
  echo "dependencies: all installed"
  exit 0
fi

as_root=()
if ((EUID != 0)); then
  if ! command -v sudo >/dev/null; then
    echo "error: neither root nor sudo; run as root: apt-get install ${missing[*]}" >&2
    exit 1
  fi
  as_root=(sudo)
fi

echo "dependencies: installing ${missing[*]} ${missing_optional[*]}"
log=$(mktemp)
trap 'rm -f "$log"' EXIT
apt_get() {
  "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -y -qq \
    -o DPkg::Lock::Timeout=300 -o Acquire::Retries=3 "$@" >"$log" 2>&1 || {
    cat "$log" >&2
    echo "error: apt-get $* failed" >&2
    exit 1
  }
}
apt_get update
for package in "${missing_optional[@]}"; do
  if [[ -n $(apt-cache madison "$package" 2>/dev/null) ]]; then
    missing+=("$package")
  else
    echo "dependencies: this distribution has no $package; what needs it is left out"
  fi
done
if ((${#missing[@]} > 0)); then
  apt_get install --no-install-recommends "${missing[@]}"
fi
echo "dependencies: done"
