#!/usr/bin/env bash
# What a machine with a GPU needs to run Isomer, in one file, with all libraries that it may lack:
#
#   scripts/gpu_bundle.sh [FILE]      build/isomer-gpu.tar.gz by default
#
# Builds first. There: tar xf isomer-gpu.tar.gz && isomer-gpu/gpu_check.sh
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
file=$(realpath -m "${1:-build/isomer-gpu.tar.gz}")
cmake --preset release >/dev/null
cmake --build --preset release --parallel "$(nproc)" \
  --target isomer-run isomer-optimize isomer-profile isomer_runtime_test >/dev/null
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
to=$folder/isomer-gpu
mkdir -p "$to/bin" "$to/lib" "$to/share/isomer/rules" "$(dirname "$file")"
for program in bin/isomer-run bin/isomer-optimize bin/isomer-profile tests/isomer_runtime_test; do
  strip -o "$to/bin/$(basename "$program")" "build/release/$program"
done
cp rules/*.rules "$to/share/isomer/rules/"
cp scripts/gpu_check.sh bench/train_gpu.py "$to/"
# All but what belongs to the C library, which is the machine's.
ldd "$to"/bin/* | awk '/=> \//{print $3}' | sort -u |
  grep -vE '/(ld-linux.*|lib(c|m|dl|rt|pthread|resolv)\.so\..*)$' | xargs -I{} cp -L {} "$to/lib/"
tar -C "$folder" -czf "$file" isomer-gpu
echo "$file: $(du -h "$file" | cut -f1)"
