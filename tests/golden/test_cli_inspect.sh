#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# `sinter inspect` shows engines of every CPU level and every class of GPU on any machine, and says the same everywhere.
set -u
sinter=${SINTER_BIN:?} source=${SINTER_SOURCE_DIR:?}
model=$source/examples/digits/digits.onnx
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
. "$source/tests/golden/helpers.sh"

# shows WORD FILE: at each level, the same text with WORD in it.
shows() {
    local word=$1 file=$2 level
    for level in plain avx2 avx512; do
        SINTER_ISA=$level "$sinter" inspect "$file" >"$work/$level.txt" 2>"$work/err" || fail "$file at $level: $(cat "$work/err")"
        cmp -s "$work/plain.txt" "$work/$level.txt" || fail "$file is shown differently at $level"
        SINTER_ISA=$level "$sinter" inspect "$file" --json | python3 -m json.tool >/dev/null || fail "$file at $level: --json"
    done
    grep -q "$word" "$work/plain.txt" || fail "$file: no '$word'"
}

for level in plain avx2 avx512; do
    "$sinter" build "$model" -o "$work/$level.sinter" --tune off --isa $level >/dev/null || fail "build at $level"
    built=$("$sinter" inspect "$work/$level.sinter" | sed -n 's/^built for cpu \([a-z0-9]*\).*/\1/p')
    [ "$built" = $level ] || continue # this CPU has less
    shows "built for cpu $level" "$work/$level.sinter"
    [ $level = plain ] && continue
    says 'the engine needs CPU level' env SINTER_ISA=plain "$sinter" run "$work/$level.sinter"
done
"$sinter" build "$model" -o "$work/reference.sinter" --device reference >/dev/null || fail "build for the reference"
shows 'device=reference' "$work/reference.sinter"

for chip in sm_75 sm_80 sm_86 sm_89 sm_90a sm_100a sm_120a; do
    "$sinter" build "$model" -o "$work/gpu.sinter" --tune off --no-code --device cuda:$chip >/dev/null || fail "build for $chip"
    shows "sm_${chip//[!0-9]/} " "$work/gpu.sinter"
done
# Chips that no table has: the driver names them, and then it is gone.
if find_cuda && [ -z "${SINTER_TEST_DEVICE:-}" ]; then
    for sm in 87 103 121; do
        SINTER_FAKE_SM=$sm "$sinter" build "$model" -o "$work/gpu.sinter" --tune off --no-code --device cuda >/dev/null ||
            fail "build for a driver's sm_$sm"
        SINTER_LIBCUDA=/no/such/library shows "sm_$sm " "$work/gpu.sinter"
    done
fi
echo "all as wanted"
