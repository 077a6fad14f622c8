#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# check_device.c without a GPU: kernels that a CPU runs pass, once and often; kernels that do nothing fail, each of them; and
# where there is no driver it says so.
set -eu
check=tests/cuda_check_device
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
fail() { echo "FAIL $*"; cat "$work/out"; exit 1; }
export SINTER_FAKE_SM=90 SINTER_FAKE_DEVICES=1 SINTER_KERNEL_CACHE=$work/kernels
lines=('copy:f32[5,7] -> f32[5,7]{1,0}' 'matmul:f32[9,40] w:f32[40,24] -> f32[9,24]')

on() { # LIBRARY ARGUMENT...
    SINTER_LIBCUDA=$PWD/tests/$1 SINTER_LIBNVRTC=$PWD/tests/$1 "$check" "${@:2}" >"$work/out" 2>&1
}
on libsinter_emulated_cuda.so --tactics 1 "${lines[@]}" || fail "kernels that work do not pass"
grep -q ' runs of 2 problems, 0 failed' "$work/out" || fail "no summary"
for way in "--repeat 3" "--separate" "--jobs 0"; do
    # shellcheck disable=SC2086
    on libsinter_emulated_cuda.so --tactics 1 $way "${lines[@]}" || fail "kernels that work do not pass with $way"
done
rm -r "$work/kernels"
on libsinter_fake_cuda.so --tactics 1 "${lines[@]}" && fail "kernels that do nothing pass"
[ "$(grep -c '^FAIL' "$work/out")" -eq "$(grep '^  cuda_' "$work/out" | awk '{n += $2} END {print n}')" ] ||
    fail "a kernel that does nothing passes"
grep -q 'wanted' "$work/out" || fail "it does not say what was wanted"
status=0
SINTER_LIBCUDA=/nonexistent "$check" "${lines[@]}" >"$work/out" 2>&1 || status=$?
[ $status -eq 77 ] || fail "status $status without a driver"
