#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Random graphs and the corpus through the CUDA backend: on a GPU where SINTER_TEST_DEVICE names one, else on kernels that
# a CPU runs (tests/cuda).
set -eu
source=${SINTER_SOURCE_DIR:?}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
. "$source/tests/golden/helpers.sh"
find_cuda || { echo "no $SINTER_LIBCUDA"; exit 77; }
export SINTER_KERNEL_CACHE=$work/kernels
count=24 tuned=0
[ "${SINTER_TEST_SCALE:-}" = full ] && count=2000
[ -n "${SINTER_TEST_DEVICE:-}" ] && count=$((count * 10)) tuned=64
files=()
for file in "$source"/tests/graphs/corpus/*.graph; do files+=(--file "$file"); done
tests/graphs_test_random_graphs --device cuda "${files[@]}"
tests/graphs_test_random_graphs --device cuda --palette 100 --count $count --tuned $tuned --limit 180
