#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The demo's network through the CUDA backend: the same results as on the CPU, engines with code and without, engines for
# chips that are not there. On a GPU where SINTER_TEST_DEVICE names one; else on kernels that a CPU runs (tests/cuda).
set -eu
sinter=${SINTER_BIN:?} source=${SINTER_SOURCE_DIR:?}
model=$source/examples/digits/digits.onnx seven=$source/examples/digits/seven.npy
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
. "$source/tests/golden/helpers.sh"
find_cuda || { echo "no $SINTER_LIBCUDA"; exit 77; }

# Results of the CPU for sizes that one profile covers, and what the GPU makes of them.
case=$work/cases/digits
mkdir -p "$case"
cp "$model" "$case/model.onnx"
for n in 1 3 4 2; do
    mkdir "$case/set_$n"
    python3 - "$seven" "$case/set_$n/input_0.npy" $n <<'TEXT'
import ast, struct, sys
raw = open(sys.argv[1], "rb").read()
head_size = 10 + struct.unpack("<H", raw[8:10])[0]
pixels, n = raw[head_size:], int(sys.argv[3])
head = "{'descr': '<f4', 'fortran_order': False, 'shape': (%d, 1, 28, 28), }" % n
head += " " * (63 - (len(head) + 10) % 64) + "\n"
rows = [struct.pack("<784f", *(v / (1 + i) for v in struct.unpack("<784f", pixels))) for i in range(n)]
open(sys.argv[2], "wb").write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(head)) + head.encode() + b"".join(rows))
TEXT
    "$sinter" run "$model" --shape N=$n --input image="$case/set_$n/input_0.npy" --output-dir "$case/set_$n" >/dev/null
done
"$sinter" test "$work/cases" --device "$device" | tail -1 | grep -qx '4 passed, 0 failed' || fail "sinter test --device $device"

# One launch, nothing on the host, nothing copied; with code it is larger than without.
"$sinter" build "$model" -o "$work/code.sinter" --device "$device" --tune off --profile N=1,1,4 >/dev/null
"$sinter" build "$model" -o "$work/none.sinter" --device "$device" --tune off --profile N=1,1,4 --no-code >/dev/null
"$sinter" inspect "$work/code.sinter" >"$work/inspect"
grep -q '1 graph launch' "$work/inspect" || fail "not one launch"
grep -q 'cuda_reference\|cuda_transfer' "$work/inspect" && fail "something runs on the host"
[ "$(stat -c %s "$work/code.sinter")" -gt "$(stat -c %s "$work/none.sinter")" ] || fail "no code in the engine"

# Kernels come from the cache, or are compiled, or, where the file is trusted, come with it. Else the run fails.
run() { "$sinter" run "$@" --input image="$seven"; }
[ -n "$(ls "$SINTER_KERNEL_CACHE")" ] || fail "nothing in the kernel cache"
SINTER_LIBNVRTC=/nonexistent run "$work/none.sinter" >"$work/cached" || fail "the cache does not serve"
for engine in code none; do
    SINTER_LIBNVRTC=/nonexistent says 'there is no NVRTC' run "$work/$engine.sinter" --kernel-cache ''
done
SINTER_LIBNVRTC=/nonexistent run "$work/code.sinter" --kernel-cache '' --trust-code >"$work/trusted" ||
    fail "code in the engine does not serve"
cmp "$work/cached" "$work/trusted" || fail "the same engine gives something else"

# Chips that are not there.
for sm in 75 80 90a 120a; do
    "$sinter" build "$model" -o "$work/$sm.sinter" --device cuda:sm_$sm --tune off --profile N=1,1,4 >/dev/null ||
        fail "no engine for sm_$sm"
    "$sinter" build "$model" -o "$work/small.sinter" --device cuda:sm_$sm --tune off --profile N=1,1,4 --no-code >/dev/null
    "$sinter" inspect "$work/$sm.sinter" | grep -q "sm_${sm%a} " || fail "inspect does not name sm_$sm"
    [ "$(stat -c %s "$work/$sm.sinter")" -gt "$(stat -c %s "$work/small.sinter")" ] || fail "no code for sm_$sm"
done
cmp "$work/small.sinter" "$work/120a.sinter" >/dev/null 2>&1 && fail "--no-code changes nothing"
says 'none of sm_75' "$sinter" build "$model" -o "$work/e" --device cuda:sm_77
says 'compute capability 7.5' run "$work/75.sinter"
says 'there is no GPU 900' run "$model" --device cuda:900

"$sinter" bench "$work/code.sinter" --duration 0.1 --json >"$work/bench.json"
python3 - "$work/bench.json" <<'TEXT' || fail "bench --json"
import json, sys
b = json.load(open(sys.argv[1]))
assert 0 < b["min_ms"] <= b["median_ms"] <= b["p99_ms"] and len(b["steps"]) > 3
TEXT
echo "summary: digits on $device"
