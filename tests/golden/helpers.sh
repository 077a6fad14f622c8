# SPDX-License-Identifier: Apache-2.0
# What scripts here share; sourced, with `work` a folder of the test's own.

fail() { echo "FAIL $*"; exit 1; }

# says TEXT command...: fails, and says why.
says() {
    local text=$1 out
    shift
    if out=$("$@" 2>&1); then fail "it did not fail: $*"; fi
    [[ $out == *"$text"* ]] || fail "'$*' does not say '$text': $out"
}

# Sets `device`: the GPU that SINTER_TEST_DEVICE names, else kernels that a CPU runs (tests/cuda). 1: there is neither.
find_cuda() {
    device=${SINTER_TEST_DEVICE:-cuda}
    export SINTER_KERNEL_CACHE=$work/kernels
    [ -z "${SINTER_TEST_DEVICE:-}" ] || return 0
    export SINTER_LIBCUDA=$PWD/tests/libsinter_emulated_cuda.so SINTER_FAKE_SM=90 SINTER_FAKE_DEVICES=1
    export SINTER_LIBNVRTC=$SINTER_LIBCUDA
    [ -f "$SINTER_LIBCUDA" ]
}
