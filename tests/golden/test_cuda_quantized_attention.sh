#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Attention of numbers of 8 bits, through the CUDA backend: both products run on tensor cores, on factors that kernels
# before them leave as numbers that f16 holds, and the results are the CPU's but for a step of a rounding. On a GPU
# where SINTER_TEST_DEVICE names one; else on kernels that a CPU runs (tests/cuda).
set -eu
sinter=${SINTER_BIN:?} device=${SINTER_TEST_DEVICE:-}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
fail() { echo "FAIL $*"; exit 1; }
if [ -z "$device" ]; then
    device=cuda
    export SINTER_LIBCUDA=$PWD/tests/libsinter_emulated_cuda.so SINTER_FAKE_SM=90 SINTER_FAKE_DEVICES=1
    export SINTER_LIBNVRTC=$SINTER_LIBCUDA
    [ -f "$SINTER_LIBCUDA" ] || { echo "no $SINTER_LIBCUDA"; exit 77; }
fi
export SINTER_KERNEL_CACHE=$work/kernels

# The model, as protobuf by hand: three products by weights of 8 bits, heads, two products of what was computed.
mkdir -p "$work/cases/heads/set_0"
python3 - "$work/cases/heads" <<'TEXT'
import struct, sys
def varint(n):
    out = b""
    while n > 127:
        out, n = out + bytes([n & 127 | 128]), n >> 7
    return out + bytes([n])
def num(field, n): return varint(field << 3) + varint(n & (1 << 64) - 1)
def data(field, b):
    b = b.encode() if isinstance(b, str) else b
    return varint(field << 3 | 2) + varint(len(b)) + b
state = [1]
def values(count):
    out = []
    for _ in range(count):
        state[0] = (state[0] * 6364136223846793005 + 1442695040888963407) % 2**64
        out.append((state[0] >> 40) / 2**23 - 1)
    return out
FLOAT, U8, I8, I64 = 1, 2, 3, 7
pack = {FLOAT: "f", U8: "B", I8: "b", I64: "q"}
def tensor(name, type_, dims, list_):
    raw = struct.pack("<%d%s" % (len(list_), pack[type_]), *list_)
    return data(5, b"".join(num(1, d) for d in dims) + num(2, type_) + data(8, name) + data(9, raw))
def shape(dims): return data(1, num(1, 1) + data(2, b"".join(data(1, num(1, d)) for d in dims)))
def value(name, dims): return data(1, name) + data(2, shape(dims))
def ints(name, list_): return data(5, data(1, name) + b"".join(num(8, v) for v in list_) + num(20, 7))
def node(op, ins, out, attrs=b""):
    return data(1, b"".join(data(1, i) for i in ins) + data(2, out) + data(3, out) + data(4, op) + attrs)
S, H, D = 24, 2, 16
E = H * D
def rounded(x, scale, zero):
    global graph
    graph += tensor(x + "_s", FLOAT, [], [scale]) + tensor(x + "_z", U8, [], [zero])
    graph += node("QuantizeLinear", [x, x + "_s", x + "_z"], x + "_q")
    graph += node("DequantizeLinear", [x + "_q", x + "_s", x + "_z"], x + "_d")
    return x + "_d"
graph = data(2, "heads") + data(11, value("x", [1, S, E])) + data(12, value("out", [1, S, E]))
x = rounded("x", 1 / 127, 128)
graph += tensor("split", I64, [4], [1, S, H, D]) + tensor("join", I64, [3], [1, S, E])
for n, zero, perm in ("query", 121, [0, 2, 1, 3]), ("key", 133, [0, 2, 3, 1]), ("value", 128, [0, 2, 1, 3]):
    graph += tensor(n + "_w", I8, [E, E], [int(v * 127) for v in values(E * E)])
    graph += tensor(n + "_ws", FLOAT, [E], [0.002 + 0.0001 * i for i in range(E)]) + tensor(n + "_wz", I8, [E], [0] * E)
    graph += node("DequantizeLinear", [n + "_w", n + "_ws", n + "_wz"], n + "_wd",
                  data(5, data(1, "axis") + num(3, 1) + num(20, 2)))
    graph += node("MatMul", [x, n + "_wd"], n + "_y") + tensor(n + "_b", FLOAT, [E], values(E))
    graph += node("Add", [n + "_y", n + "_b"], n)
    y = rounded(n, 0.02, zero)
    graph += node("Reshape", [y, "split"], n + "_r")
    graph += node("Transpose", [n + "_r"], n + "_t", ints("perm", perm))
graph += node("MatMul", ["query_t", "key_t"], "scores") + tensor("by", FLOAT, [], [0.25])
graph += node("Mul", ["scores", "by"], "scaled")
graph += node("Softmax", ["scaled"], "share", data(5, data(1, "axis") + num(3, -1) + num(20, 2)))
share = rounded("share", 1 / 255, 0)
graph += node("MatMul", [share, "value_t"], "sums")
graph += node("Transpose", ["sums"], "back", ints("perm", [0, 2, 1, 3])) + node("Reshape", ["back", "join"], "out")
open(sys.argv[1] + "/model.onnx", "wb").write(num(1, 8) + data(7, graph) + data(8, num(2, 17)))
head = "{'descr': '<f4', 'fortran_order': False, 'shape': (1, %d, %d), }" % (S, E)
head += " " * (63 - (len(head) + 10) % 64) + "\n"
head = b"\x93NUMPY\x01\x00" + struct.pack("<H", len(head)) + head.encode()
open(sys.argv[1] + "/set_0/input_0.npy", "wb").write(head + struct.pack("<%df" % (S * E), *values(S * E)))
TEXT
case=$work/cases/heads
"$sinter" run "$case/model.onnx" --input x="$case/set_0/input_0.npy" --output-dir "$case/set_0" >/dev/null
for allow in "" "--allow fp16"; do
    # shellcheck disable=SC2086
    "$sinter" build "$case/model.onnx" -o "$work/e.sinter" --device "$device" --tune off $allow >/dev/null
    "$sinter" inspect "$work/e.sinter" >"$work/inspect"
    [ "$(grep -c 'cuda_mma .* matmul:f16.* f16.* type=f32' "$work/inspect")" = 2 ] ||
        fail "products of 8 bits are not on tensor cores: $(cat "$work/inspect")"
    grep -q 'matmul:f32' "$work/inspect" && fail "a product is in f32: $(cat "$work/inspect")"
    grep -q 'softmax:.* -> f16' "$work/inspect" || fail "shares are not left as f16: $(cat "$work/inspect")"
    # shellcheck disable=SC2086
    "$sinter" test "$work/cases" --device "$device" --tune off $allow --atol 0.02 | tail -1 |
        grep -qx '1 passed, 0 failed' || fail "other results than the CPU's: $allow"
done
echo "summary: attention in 8 bits on $device"
