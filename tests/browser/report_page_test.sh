#!/usr/bin/env bash
# Opens pages of isomer-optimize --report in headless Chromium, at three widths: nothing may be said
# on the console, and the page's own test (optimizer/page/web/selftest.js) must hold.
# Usage: tests/browser/report_page_test.sh BIN [CHROMIUM]
set -euo pipefail

bin=$1
chromium=${2:-chromium}
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

# page NAME MODEL FLAG..
page() {
  local name=$1
  shift
  "$bin/isomer-optimize" "$@" --cache=false --out="$folder/$name.plan" \
    --report="$folder/$name.html" >"$folder/$name.txt" || {
    echo "FAILED: isomer-optimize $*"
    exit 1
  }
}

# open NAME WIDTH
open() {
  local dom=$folder/$1.$2.dom log=$folder/$1.$2.log
  timeout 120 "$chromium" --headless --no-sandbox --disable-gpu --user-data-dir="$folder/profile" \
    --window-size="$2,1000" --virtual-time-budget=20000 --enable-logging=stderr --dump-dom \
    "file://$folder/$1.html#selftest" >"$dom" 2>"$log" || true
  if grep -q ':CONSOLE' "$log"; then
    echo "FAILED: $1 at $2 px: the console says:"
    grep ':CONSOLE' "$log"
    failures=$((failures + 1))
  fi
  sed -n '/<pre id="selftest">/,/<\/pre>/p' "$dom" | sed 's/<[^>]*>//g' >"$dom.checks"
  if [[ ! -s $dom.checks ]] || grep '^FAILED' "$dom.checks"; then
    echo "FAILED: $1 at $2 px, $(wc -c <"$dom") bytes of DOM; the last of Chromium's log:"
    tail -3 "$log"
    failures=$((failures + 1))
  else
    echo "$1 at $2 px: $(grep -c '^ok' "$dom.checks") checks, $(grep -o 'drawn in .*' "$dom.checks")"
  fi
}

page mlp zoo:mlp?layers=4 --machine=dgx_h100 --nodes=1 --devices_per_node=4
page pipeline 'zoo:gpt?layers=8&hidden=256&heads=8&vocabulary=512&seq=128' --batch_size=64 \
  --machine=dgx_h100 --nodes=2 --plan=grid --pipeline=4 --tensor=2 --micro_batch_size=1
# A name that would end the page's data, if it were taken as HTML.
own="$folder/<script>alert(1)<!--&lt;.txt"
echo '--tensor-model-parallel-size 2 --micro-batch-size 1' >"$own"
page compared 'zoo:gpt?layers=2&hidden=64&heads=4&vocabulary=64&seq=32' --machine=dgx_h100 --nodes=1 \
  --devices_per_node=4 --compare="$own"
page inference zoo:lenet --machine=laptop_cpu --mode=inference

failures=0
for name in mlp pipeline compared inference; do
  for width in 400 1024 1920; do open "$name" "$width"; done
done
exit $((failures > 0))
