#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# tools/check_arm.sh FOLDER JOBS: runs what was built in FOLDER for 64-bit Arm with qemu-user: the unit tests of the CPU's
# kernels, engines of earlier builds, random graphs and the digits model. qemu's CPU has all features; the tests and
# graphs use fewer, too.
set -u
cd "$(dirname "$0")/.." || exit 1
folder=$1 jobs=$2
export QEMU_LD_PREFIX=/usr/aarch64-linux-gnu SINTER_SOURCE_DIR=$PWD SINTER_BIN=$PWD/$folder/sinter_under_qemu

printf '#!/bin/sh\nexec qemu-aarch64 "%s" "$@"\n' "$PWD/$folder/sinter" >"$SINTER_BIN" && chmod +x "$SINTER_BIN" || exit 1
"$SINTER_BIN" doctor | grep '^cpu .* neon_bf16 ' || { echo "FAIL qemu's CPU is not seen with all its features"; exit 1; }

# The random products of test_cpu_units take a minute here, and its tiles are in every_tile.
run() {
    local said status
    said=$("$@" 2>&1)
    status=$?
    printf '%s\n%s\n' "$*" "$said"
    [ $status -eq 0 ] || printf 'FAIL %s: status %d\n' "$*" $status
}
export -f run
xargs -P "$jobs" -I{} bash -c 'run {}' <<TEXT | tee "$folder/arm.out"
qemu-aarch64 $folder/tests/unit_test_cpu_gemm
qemu-aarch64 $folder/tests/unit_test_cpu_units every_tile random_convolutions choices_have_names
qemu-aarch64 $folder/tests/unit_test_cpu_vm
qemu-aarch64 $folder/tests/unit_test_special
qemu-aarch64 $folder/tests/unit_test_cpu_conv
qemu-aarch64 $folder/tests/unit_test_cpu_conv_transpose
qemu-aarch64 $folder/tests/unit_test_cpu_depthwise
qemu-aarch64 $folder/tests/unit_test_cpu_rows
qemu-aarch64 $folder/tests/unit_test_round_trip
qemu-aarch64 $folder/tests/golden_test_golden_engines
qemu-aarch64 $folder/tests/graphs_test_random_graphs --device cpu --seed 9 --count 60 --jobs 1
bash tests/golden/test_cli_digits.sh
TEXT
grep -q '^FAIL' "$folder/arm.out" && exit 1
echo "summary: $(grep -cE '^(qemu-aarch64|bash) ' "$folder/arm.out") programs"
