#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The runner of random graphs, on a driver whose kernels do nothing: failures are counted, named and kept, and the time is
# kept to.
set -eu
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
. "${SINTER_SOURCE_DIR:?}/tests/golden/helpers.sh"
export SINTER_KERNEL_CACHE=$work/kernels SINTER_FAKE_SM=90 SINTER_FAKE_DEVICES=1
export SINTER_LIBCUDA=$PWD/tests/libsinter_fake_cuda.so SINTER_LIBNVRTC=$PWD/tests/libsinter_fake_cuda.so

run="tests/graphs_test_random_graphs --device cuda --seed 3 --count 12 --palette 3 --jobs 3"
! $run --save "$work" >"$work/log" || fail "kernels that do nothing were taken for right"
count=$(grep -c '^FAIL --seed 3 --graph [0-9]* --palette 3 --device cuda' "$work/log")
[ "$count" -ge 6 ] || fail "only $count of 12 failed"
grep -q "^all: .* 12 graphs, .* $count failed" "$work/log" || fail "other counts: $(cat "$work/log")"
[ "$(grep -l '^# [a-z]*: ' "$work"/3-*.graph | wc -l)" -eq "$count" ] || fail "not each failure has its text"
[ "$(ls "$work"/3-*.onnx | wc -l)" -eq "$count" ] || fail "not each failure has its model"
files=("$work"/3-*.graph)
says "FAIL" tests/graphs_test_random_graphs --device cuda --file "${files[0]}"

begun=$SECONDS
out=$(tests/graphs_test_random_graphs --seconds 2 --every 1 --jobs 2)
[[ $out == *"1 s: "*"all: "* ]] || fail "no counts: $out"
[ $((SECONDS - begun)) -lt 60 ] || fail "2 seconds became $((SECONDS - begun))"

# A worker that is killed is named, and the others go on.
tests/graphs_test_random_graphs --seconds 4 --jobs 2 --save "$work" >"$work/log" &
runner=$!
sleep 1
kill -KILL "$(pgrep -P $runner | head -1)"
! wait $runner || fail "a worker was killed, and the runner was content"
grep -q '^FAIL --seed 1 --graph [0-9]* .*: crash: killed by signal 9' "$work/log" || fail "$(cat "$work/log")"
grep -q '^all: .* 1 failed' "$work/log" || fail "$(cat "$work/log")"
