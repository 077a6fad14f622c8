#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# A block that squeezes and excites, through the CUDA backend: the gate is made by one kernel, and applied by the
# convolution behind it, in f32 and lowered to f16, so there are three kernels less, and the results are the CPU's. A norm
# before products of a row, which is part of them, and a decoder's attention, which appends to its states. On a GPU where
# SINTER_TEST_DEVICE names one; else on kernels that a CPU runs (tests/cuda).
set -eu
sinter=${SINTER_BIN:?} source=${SINTER_SOURCE_DIR:?}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
. "$source/tests/golden/helpers.sh"
find_cuda || { echo "no $SINTER_LIBCUDA"; exit 77; }

# The model, as protobuf by hand: conv + relu, its mean through two small convolutions as a gate, gate, conv.
mkdir -p "$work/cases/block/set_0"
PYTHONPATH=$source/tests/golden python3 -B - "$work/cases/block" <<'TEXT'
import math, sys
from onnx_bytes import FLOAT, data, ints, node, numbers, tensor, value, write_model, write_npy
def weight(name, dims, scale): return tensor(name, FLOAT, dims, numbers(math.prod(dims), scale))
graph = (node("Conv", ["x", "w1"], "c1", ints("pads", [1, 1, 1, 1])) + node("Relu", ["c1"], "y") +
         node("GlobalAveragePool", ["y"], "m") + node("Conv", ["m", "w2", "b2"], "c2") + node("Relu", ["c2"], "r2") +
         node("Conv", ["r2", "w3", "b3"], "c3") + node("Sigmoid", ["c3"], "gate") + node("Mul", ["y", "gate"], "gated") +
         node("Conv", ["gated", "w4"], "out") + data(2, "block") +
         weight("w1", [64, 16, 3, 3], 0.2) + weight("w2", [16, 64, 1, 1], 0.3) + weight("b2", [16], 0.5) +
         weight("w3", [64, 16, 1, 1], 0.5) + weight("b3", [64], 0.5) + weight("w4", [32, 64, 1, 1], 0.3) +
         data(11, value("x", [1, 16, 12, 12])) + data(12, value("out", [1, 32, 12, 12])))
write_model(sys.argv[1] + "/model.onnx", graph)
write_npy(sys.argv[1] + "/set_0/input_0.npy", [1, 16, 12, 12], numbers(16 * 144))
TEXT
case=$work/cases/block
"$sinter" run "$case/model.onnx" --input x="$case/set_0/input_0.npy" --output-dir "$case/set_0" >/dev/null
for allow in "" "--allow fp16"; do
    within="--atol 1e-5"
    [ -z "$allow" ] || within="--rtol 2e-2 --atol 2e-2"
    # shellcheck disable=SC2086
    "$sinter" build "$case/model.onnx" -o "$work/e.sinter" --device "$device" --tune off $allow >/dev/null
    "$sinter" inspect "$work/e.sinter" >"$work/inspect"
    grep -q 'conv:.* pro="[^"]*mul .*# gated + out' "$work/inspect" ||
        fail "the gate has a kernel of its own: $(cat "$work/inspect")"
    grep -q 'excite:.* middle="[^"]*relu .* epi="[^"]*sigmoid ' "$work/inspect" ||
        fail "the gate has more than one kernel: $(cat "$work/inspect")"
    grep -q 'mul a b .*# gated$' "$work/inspect" && fail "the gate is applied twice: $(cat "$work/inspect")"
    # shellcheck disable=SC2086
    "$sinter" test "$work/cases" --device "$device" --tune off $allow $within | tail -1 | grep -qx '1 passed, 0 failed' ||
        fail "other results than the CPU's: $allow"
done

# A row of a decoder: its norm is part of both products that read it. Where something else reads it, too, it stays.
rm -r "$work/cases/block"
for more in none Relu; do
    case=$work/cases/$more
    mkdir -p "$case/set_0"
    PYTHONPATH=$source/tests/golden python3 -B - "$case" "$more" <<'TEXT'
import math, sys
from onnx_bytes import FLOAT, data, node, numbers, tensor, value, write_model, write_npy
def weight(name, dims, scale): return tensor(name, FLOAT, dims, numbers(math.prod(dims), scale))
more = sys.argv[2] != "none"
graph = (node("LayerNormalization", ["x", "scale", "bias"], "y") + node("MatMul", ["y", "w1"], "a") +
         node("MatMul", ["y", "w2"], "c") + node("Tanh", ["c"], "out_1") + node("Add", ["a", "b1"], "out_0") +
         (node(sys.argv[2], ["y"], "out_2") if more else b"") + data(2, "row") + weight("scale", [96], 1.0) +
         weight("bias", [96], 0.5) + weight("w1", [96, 40], 0.3) + weight("b1", [40], 0.5) + weight("w2", [96, 24], 0.3) +
         data(11, value("x", [1, 1, 96])) + data(12, value("out_0", [1, 1, 40])) +
         data(12, value("out_1", [1, 1, 24])) + (data(12, value("out_2", [1, 1, 96])) if more else b""))
write_model(sys.argv[1] + "/model.onnx", graph)
write_npy(sys.argv[1] + "/set_0/input_0.npy", [1, 1, 96], numbers(96))
TEXT
    "$sinter" run "$case/model.onnx" --input x="$case/set_0/input_0.npy" --output-dir "$case/set_0" >/dev/null
    for allow in "" "--allow fp16"; do
        # shellcheck disable=SC2086
        "$sinter" build "$case/model.onnx" -o "$work/e.sinter" --device "$device" --tune off $allow >/dev/null
        "$sinter" inspect "$work/e.sinter" >"$work/inspect"
        [ "$(grep -c 'norm_matmul:' "$work/inspect")" = "$([ $more = none ] && echo 2 || echo 0)" ] ||
            fail "norms with $more behind: $(cat "$work/inspect")"
        within="--atol 1e-5"
        [ -z "$allow" ] || within="--rtol 2e-2 --atol 2e-2"
        # shellcheck disable=SC2086
        "$sinter" test "$case" --device "$device" --tune off $allow $within | tail -1 | grep -qx '1 passed, 0 failed' ||
            fail "other results than the CPU's: $more $allow"
    done
done
# A decoder's attention puts the new rows into the states itself, unless there may be many.
rm -r "$work/cases"
mkdir "$work/cases"
PYTHONPATH=$source/tests/golden python3 -B - "$work/cases" <<'TEXT'
import sys
from onnx_bytes import data, node, value, write_model
new, past, all_ = [1, 4, "S", 24], [1, 4, "P", 24], [1, 4, "T", 24]
write_model(sys.argv[1] + "/decoder.onnx",
            node("Attention", ["q", "k", "v", "", "past_k", "past_v"], "y", data(2, "present_k") + data(2, "present_v")) +
            data(2, "decoder") + b"".join(data(11, value(name, new)) for name in "qkv") +
            data(11, value("past_k", past)) + data(11, value("past_v", past)) + data(12, value("y", new)) +
            data(12, value("present_k", all_)) + data(12, value("present_v", all_)), 23)
TEXT
for most in 1 40; do
    "$sinter" build "$work/cases/decoder.onnx" -o "$work/e.sinter" --device "$device" --tune off \
        --state 'past_*=present_*' --capacity 100 --profile S=1,1,$most >/dev/null
    "$sinter" inspect "$work/e.sinter" >"$work/inspect"
    [ "$(grep -c 'cuda_attention_append ' "$work/inspect")" = "$([ $most = 1 ] && echo 1 || echo 0)" ] &&
        [ "$(grep -c 'tensor_scatter:' "$work/inspect")" = "$([ $most = 1 ] && echo 0 || echo 2)" ] ||
        fail "new rows of a state, at most $most: $(cat "$work/inspect")"
done
echo "summary: a gate, a norm and a state's new rows on $device"
