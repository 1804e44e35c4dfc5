#!/bin/sh
# Usage: sample_test.sh healthy|faults PROGRAM [ARGUMENT …]
#
# healthy: the program learns, two runs of it agree to the last bit, and so does the loop written by hand.
# faults:  every fault runs to its end and does to the training what it is there for.
set -eu
what=$1
shift
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

fail() {
  echo "$*" >&2
  exit 1
}

healthy() {
  "$@" --print-losses --save "$folder/first" >"$folder/first.txt" || fail "the healthy run ended with status $?"
  "$@" --print-losses --save "$folder/second" >"$folder/second.txt"
  "$@" --print-losses --save "$folder/by_hand" --by-hand >"$folder/by_hand.txt"
  grep -c '^loss ' "$folder/first.txt" | grep -qx 120 || fail "120 losses were expected: $(cat "$folder/first.txt")"
  for other in second by_hand; do
    cmp "$folder/first.txt" "$folder/$other.txt" || fail "the losses differ"
    cmp "$folder/first" "$folder/$other" || fail "the weights differ"
  done
  # A seed that changes nothing, or weights that are not those of the training, would have passed all of the above.
  "$@" --print-losses --save "$folder/other" --seed 2 --steps 3 >"$folder/other.txt"
  if cmp -s "$folder/first" "$folder/other"; then fail "another seed gave the same weights"; fi
  tail -n 2 "$folder/first.txt"
}

# skipped FAULT: how many steps the run printed as skipped; scale FAULT: its last loss scale.
skipped() { sed -n 's/^\([0-9]*\) of [0-9]* steps skipped.*/\1/p' "$folder/$1"; }
scale() { sed -n 's/.*steps skipped, loss scale //p' "$folder/$1"; }
is() { awk "BEGIN { exit !($1) }"; }

faults() {
  "$@" --list-faults >"$folder/list"
  for fault in $(cut -d ' ' -f 1 "$folder/list"); do
    "$@" --fault "$fault" >"$folder/$fault" || fail "$fault ended with status $?"
    skipped=$(skipped "$fault") scale=$(scale "$fault")
    echo "$fault: $(tail -n 2 "$folder/$fault" | tr '\n' ' ')"
    case $fault in
      calibration | scheduler-advanced-on-skip) is "$skipped > 0 && $skipped < 12 && $scale < 16777216" ;;
      cast-overflow) is "$skipped > 20" ;;
      fp16-overflow-matmul) is "$skipped == 1 && $scale == 32768" ;;
      fp16-overflow-reduction) is "$skipped == 6" ;;
      grad-underflow) is "$skipped == 0 && $scale < 1" ;;
      loss-outside-autocast) is "$skipped < 12" ;;
      missing-scaler | scaler-bypassed) is "$skipped == 0" ;;
      nonfinite-input | nonfinite-origin) is "$skipped > 0 && $skipped < 60" ;;
      scale-collapse) is "$skipped > 8 && $scale <= 256" ;;
      scaler-with-bf16) is "$skipped == 0 && $scale == 65536" ;;
      backward-under-autocast | clip-before-unscale) is "$skipped == 0" ;;
      scaler-in-every-epoch) is "$skipped > 40 && $skipped < 80" ;;
      scaler-restored | unscaled-twice) is "$skipped == 0 && $scale == 65536" ;;
      update-forgotten) grep -q '^119 of 120 steps refused' "$folder/$fault" ;;
      *) fail "this test knows nothing of the fault $fault" ;;
    esac || fail "$fault did not do what it is there for"
  done
}

"$what" "$@"
