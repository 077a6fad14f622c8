#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Attention of numbers of 8 bits, through the CUDA backend: both products run on tensor cores, on factors that kernels
# before them leave as numbers that f16 holds, and the results are the CPU's but for a step of a rounding. On a GPU
# where SINTER_TEST_DEVICE names one; else on kernels that a CPU runs (tests/cuda). How many rows there are varies: the
# second sum is over rows that are no whole 16 bytes, and over many more steps than kernels were chosen for.
set -eu
sinter=${SINTER_BIN:?} source=${SINTER_SOURCE_DIR:?}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
. "$source/tests/golden/helpers.sh"
find_cuda || { echo "no $SINTER_LIBCUDA"; exit 77; }

# The model, as protobuf by hand: three products by weights of 8 bits, heads, two products of what was computed.
mkdir -p "$work/cases/heads/set_0" "$work/cases/heads/set_1"
PYTHONPATH=$source/tests/golden python3 -B - "$work/cases/heads" <<'TEXT'
import sys
from onnx_bytes import FLOAT, I8, I64, U8, data, integer, ints, node, numbers, tensor, value, write_model, write_npy
H, D = 2, 16
E = H * D
def rounded(x, scale, zero):
    global graph
    graph += tensor(x + "_s", FLOAT, [], [scale]) + tensor(x + "_z", U8, [], [zero])
    graph += node("QuantizeLinear", [x, x + "_s", x + "_z"], x + "_q")
    graph += node("DequantizeLinear", [x + "_q", x + "_s", x + "_z"], x + "_d")
    return x + "_d"
graph = data(2, "heads") + data(11, value("x", [1, "S", E])) + data(12, value("out", [1, "S", E]))
x = rounded("x", 1 / 127, 128)
graph += tensor("split", I64, [4], [1, -1, H, D]) + tensor("join", I64, [3], [1, -1, E])
for n, zero, perm in ("query", 121, [0, 2, 1, 3]), ("key", 133, [0, 2, 3, 1]), ("value", 128, [0, 2, 1, 3]):
    graph += tensor(n + "_w", I8, [E, E], [int(v * 127) for v in numbers(E * E)])
    graph += tensor(n + "_ws", FLOAT, [E], [0.002 + 0.0001 * i for i in range(E)]) + tensor(n + "_wz", I8, [E], [0] * E)
    graph += node("DequantizeLinear", [n + "_w", n + "_ws", n + "_wz"], n + "_wd",
                  integer("axis", 1))
    graph += node("MatMul", [x, n + "_wd"], n + "_y") + tensor(n + "_b", FLOAT, [E], numbers(E))
    graph += node("Add", [n + "_y", n + "_b"], n)
    y = rounded(n, 0.02, zero)
    graph += node("Reshape", [y, "split"], n + "_r")
    graph += node("Transpose", [n + "_r"], n + "_t", ints("perm", perm))
graph += node("MatMul", ["query_t", "key_t"], "scores") + tensor("by", FLOAT, [], [0.25])
graph += node("Mul", ["scores", "by"], "scaled")
graph += node("Softmax", ["scaled"], "share", integer("axis", -1))
share = rounded("share", 1 / 255, 0)
graph += node("MatMul", [share, "value_t"], "sums")
graph += node("Transpose", ["sums"], "back", ints("perm", [0, 2, 1, 3])) + node("Reshape", ["back", "join"], "out")
write_model(sys.argv[1] + "/model.onnx", graph)
for i, S in enumerate((24, 301)):
    write_npy("%s/set_%d/input_0.npy" % (sys.argv[1], i), [1, S, E], numbers(S * E))
TEXT
case=$work/cases/heads
for set in set_0 set_1; do
    "$sinter" run "$case/model.onnx" --input x="$case/$set/input_0.npy" --output-dir "$case/$set" >/dev/null
done
for allow in "" "--allow fp16"; do
    # shellcheck disable=SC2086
    "$sinter" build "$case/model.onnx" -o "$work/e.sinter" --device "$device" --tune off --profile S=24,24,301 $allow \
        >/dev/null
    "$sinter" inspect "$work/e.sinter" >"$work/inspect"
    [ "$(grep -c 'cuda_mma .* matmul:f16.* f16.* type=f32' "$work/inspect")" = 2 ] ||
        fail "products of 8 bits are not on tensor cores: $(cat "$work/inspect")"
    grep -q 'matmul:f32' "$work/inspect" && fail "a product is in f32: $(cat "$work/inspect")"
    grep -q 'softmax:.* -> f16' "$work/inspect" || fail "shares are not left as f16: $(cat "$work/inspect")"
    # shellcheck disable=SC2086
    "$sinter" test "$work/cases" --device "$device" --tune off $allow --atol 0.02 | tail -1 |
        grep -qx '2 passed, 0 failed' || fail "other results than the CPU's: $allow"
done
echo "summary: attention in 8 bits on $device"
