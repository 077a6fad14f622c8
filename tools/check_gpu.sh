#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Sourced by ./check --device cuda: the tests on a GPU, the cheap ones first. Nothing is needed but bash, Python and what
# compiled sinter here or elsewhere: a build folder that was made elsewhere (tools/carry_build.sh) is used as it is. Tests
# find the tree and the command through the environment, so it does not matter where they were built.
export SINTER_SOURCE_DIR=$PWD SINTER_BIN=$PWD/build/sinter \
    SINTER_FAKE_CUDA=$PWD/build/tests/libsinter_fake_cuda.so SINTER_FAKE_CUDA_ODD=$PWD/build/tests/libsinter_fake_cuda_odd.so
export SINTER_KERNEL_CACHE=${SINTER_KERNEL_CACHE:-$PWD/build/gpu/kernels} SINTER_TEST_DEVICE=$device
mkdir -p build/gpu

gpu=()
case $device in cuda:[0-9]*) gpu=(--gpu "${device#cuda:}") ;; esac
check_device=(build/tests/cuda_check_device "${gpu[@]}")

gpu_build() {
    if [ -x build/sinter ] && ! grep -qsx "CMAKE_HOME_DIRECTORY:INTERNAL=$PWD" build/CMakeCache.txt; then
        echo "summary: carried here"
        return
    fi
    build build gcc "sinter_cli sinter_fake_cuda sinter_odd_cuda cuda_check_device unit_test_cuda_driver unit_test_cuda_compile \
        unit_test_cuda_compile_threads unit_test_cuda_device unit_test_cuda_program unit_test_cuda_threads \
        unit_test_cuda_engine unit_test_cuda_engine_threads \
        unit_test_rules example_several_devices" -DCMAKE_BUILD_TYPE=Release
}

gpu_doctor() {
    build/sinter doctor
    build/sinter doctor | grep -q '^gpu_advice.*cuda works' || { echo "FAIL doctor sees no GPU to use"; return 1; }
    "${check_device[@]}" --rows >build/gpu/rows || { cat build/gpu/rows; return 1; }
    echo "summary: $(tail -1 build/gpu/rows)"
}

# Tests that need no GPU, on a machine that has one.
gpu_unit() {
    local status=0 count=0 program
    for program in build/tests/unit_test_cuda_* build/tests/unit_test_rules; do
        [ -x "$program" ] || continue
        count=$((count + 1))
        env -u SINTER_LIBCUDA -u SINTER_LIBNVRTC -u SINTER_FAKE_SM -u SINTER_FAKE_DEVICES timeout 120 "$program" || { echo "FAIL $program"; status=1; }
    done
    echo "summary: $count programs"
    return $status
}

# One process, a thread for each GPU of the machine; with one GPU, two threads on it.
gpu_devices() {
    local gpu=(/dev/nvidia[0-9]*) names=() i
    [ -z "${CUDA_VISIBLE_DEVICES:-}" ] || IFS=, read -ra gpu <<<"$CUDA_VISIBLE_DEVICES"
    for i in "${!gpu[@]}"; do names+=("cuda:$i"); done
    [ ${#names[@]} -gt 1 ] || names=("$device" "$device")
    LD_LIBRARY_PATH=$PWD/build timeout 120 build/tests/example_several_devices examples/digits/digits.onnx cpu "${names[@]:0:7}" || return 1
    echo "summary: cpu ${names[*]}"
}

conformance() { # ARGUMENT...
    "${check_device[@]}" "$@" | tee build/gpu/conformance.out
    local status=${PIPESTATUS[0]}
    echo "summary: $(tail -1 build/gpu/conformance.out)"
    return "$status"
}

# under TOOL CASES TACTICS PATTERN: the rows that match, each in a process of its own, under compute-sanitizer.
under() {
    local tool=$1 cases=$2 tactics=$3 rows padding=
    if ! command -v compute-sanitizer >/dev/null; then
        echo "no compute-sanitizer"
        return 77
    fi
    [ "$tool" = memcheck ] && padding='--padding 1024'
    rows=$(grep -o '^cuda_[a-z0-9_]*' build/gpu/rows | grep -E "$4")
    [ -n "$rows" ] || { echo "no row of $4"; return 1; }
    # shellcheck disable=SC2086
    echo "$rows" | xargs -P "$jobs" -I ROW bash -c 'row=$1 tool=$2
        shift 2
        log=build/gpu/$tool-$row.log
        if timeout 100 "$@" >"$log" 2>&1; then echo "ok $row"; else
            echo "FAIL $row under $tool ($log)"
            grep -E "^FAIL|^     |=========" "$log" | head -12
        fi' _ ROW "$tool" compute-sanitizer --tool "$tool" --error-exitcode 9 --print-limit 3 $padding \
        "${check_device[@]}" --jobs 0 --separate --row ROW --cases "$cases" --tactics "$tactics" |
        tee "build/gpu/$tool.out"
    echo "summary: $(grep -c '^ok ' "build/gpu/$tool.out") of $(echo "$rows" | wc -l) rows without a finding"
    ! grep -q '^FAIL' "build/gpu/$tool.out"
}

# Quick is for a machine that is there for minutes.
case $mode in
quick) tactics=(--tactics 1 --seconds 90) cases=1 repeat=(--repeat 8 --cases 4 --tactics 1 --seconds 40) ;;
normal) tactics=(--tactics 4 --seconds 300) cases=2 repeat=(--repeat 20 --cases 8 --tactics 2 --seconds 100) ;;
full) tactics=() cases=16 repeat=(--repeat 50 --cases 64) ;;
esac
anchors='mma|simt|attention|gemv|depthwise|grouped|stem|conv|einsum'

step build gpu_build
step doctor gpu_doctor
step unit gpu_unit
step golden timeout 120 bash tests/golden/test_cuda_digits.sh
step devices gpu_devices
step conformance conformance "${tactics[@]}"
step streams conformance "${repeat[@]}"
step memcheck under memcheck $cases 1 "$anchors"
step racecheck under racecheck $cases 1 "$anchors"
if [ $mode = full ]; then
    step memcheck-all under memcheck 4 1 .
    step racecheck-all under racecheck 4 1 .
fi
if [ -n "$data" ]; then
    if [ $mode = full ]; then
        step sanitizers python3 tools/check_sanitizers.py "$data/zoo" --device "$device"
    fi
    step models run_models timeout 200
    step onnx-cuda run_backend_cases "$device" --against cpu
fi
