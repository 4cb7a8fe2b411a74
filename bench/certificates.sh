#!/usr/bin/env bash
# How long does checking certificates take, in how much memory? One fresh isomer-verify a plan, the
# best of three. Usage: bench/certificates.sh [BUILD]
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
build=${1:-build/release}
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT

# value KEY: the first number of that key in the last summary.
value() { grep -m1 "\"$1\":" "$out/json" | sed 's/.*: *//; s/,$//'; }

"$build/bench/certificate_plans" "$out"
echo "| network | devices | steps | certificate | check | CPU | memory | devices looked at |"
echo "|---|--:|--:|--:|--:|--:|--:|--:|"
for network in bert_large inception_v3 dlrm gpt_175b; do
  for devices in 8 64 1024; do
    plan=$out/$network.$devices
    best="" cpu=""
    for _ in 1 2 3; do
      TIMEFORMAT='%R %U %S'
      read -r real user system < <({ time "$build/bin/isomer-verify" plan "$plan" --json="$out/json" >/dev/null; } 2>&1)
      best=$(awk "BEGIN { print \"$best\" == \"\" || $real < \"$best\" + 0 ? $real : \"$best\" }")
      cpu=$(awk "BEGIN { c = $user + $system; print \"$cpu\" == \"\" || c < \"$cpu\" + 0 ? c : \"$cpu\" }")
    done
    grep -q '"accepted": true' "$out/json"
    printf '| %s | %d | %d | %d kB | %.2f s | %.2f s | %d MB | %d |\n' "$network" "$devices" "$(value steps)" \
      $(($(stat -c %s "$plan") / 1000)) "$best" "$cpu" $(($(value peak_rss_bytes) / 1000000)) "$(value scheduled_devices)"
  done
done
