#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# carry_build.sh BUILD OUT: what ./check --device cuda needs of a build folder, without what debuggers read, to be put into
# the tree as `build` on a machine that has a GPU and not much else.
set -eu
build=${1:?a build folder} out=${2:?where to put it}
mkdir -p "$out/tests"
for file in sinter libsinter.so.0 tests/cuda_check_device tests/unit_test_rules tests/example_several_devices \
    tests/libsinter_fake_cuda.so tests/libsinter_fake_cuda_odd.so; do
    strip -o "$out/$file" "$build/$file"
done
for file in "$build"/tests/unit_test_cuda_*; do
    if [ -x "$file" ]; then strip -o "$out/tests/$(basename "$file")" "$file"; fi
done
du -sh "$out"
