#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# check_cuda_kernels.sh BUILD [--full]: compiles the CUDA kernels that the case files name (tests/cuda/check_compile.c).
# NVRTC is the machine's, or PyPI's in build/venv; where neither can be had the exit status is 77.
set -u
cd "$(dirname "$0")/.." || exit 1
build=$1
shift

cases=(tests/conformance/cases/*.txt)
for file in tests/cuda/cases/*.txt; do
    if [ -f "$file" ]; then cases+=("$file"); fi
done

compile() { "$build/tests/cuda_check_compile" --cache "$PWD/build/kernel_cache" "$@" "${cases[@]}"; }

compile "$@"
status=$?
[ $status -ne 77 ] && exit $status
[ -n "${SINTER_LIBNVRTC:-}" ] && exit 77

if [ ! -f build/venv/.nvrtc ]; then
    [ -x build/venv/bin/python ] || python3 -m venv build/venv || exit 77
    if ! timeout 240 build/venv/bin/python -m pip install --quiet --disable-pip-version-check nvidia-cuda-nvrtc; then
        echo "no NVRTC: nvidia-cuda-nvrtc cannot be installed from PyPI"
        exit 77
    fi
    touch build/venv/.nvrtc
fi
VIRTUAL_ENV=$PWD/build/venv compile "$@"
