#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# `sinter exec` on a GPU, or on kernels that a CPU runs: the GPU is the default where there is one, runs are started and waited
# for, and results are those of the CPU.
set -eu
sinter=${SINTER_BIN:?} source=${SINTER_SOURCE_DIR:?}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
. "$source/tests/golden/helpers.sh"
find_cuda || { echo "no GPU, and no library that stands for one"; exit 77; }
cd "$work"
PYTHONPATH=$source/tests/golden python3 - <<'TEXT'
import onnx_bytes as onnx
graph = onnx.node("Relu", ["x"], "y") + onnx.data(2, "g") + onnx.data(11, onnx.value("x", ["N", 8])) + onnx.data(12, onnx.value("y", ["N", 8]))
onnx.write_model("m.onnx", graph)
TEXT
quick="--builderOptimizationLevel=0 --duration=0 --warmUp=0"

# shellcheck disable=SC2086
{
    "$sinter" exec --onnx=m.onnx $quick --shapes=x:4x8 --iterations=2 --exportOutput=cpu.json --device=cpu >cpu.log || fail "the CPU"
    "$sinter" exec --onnx=m.onnx $quick --shapes=x:4x8 --iterations=2 --exportOutput=gpu.json --saveEngine=g.engine --exportTimes=t.json >gpu.log ||
        fail "the default: $(tail -3 gpu.log)"
    grep -q '^\[.*\] \[I\] Selected Device ID: 0$' gpu.log || fail "the GPU is no default"
    grep -q '^\[.*\] \[I\] Device: cuda:0$' gpu.log || fail "the device in the options"
    grep -q 'Selected Device: cpu' cpu.log || fail "--device=cpu"
    cmp cpu.json gpu.json || fail "the results differ"
    "$sinter" exec --loadEngine=g.engine $quick --shapes=x:4x8 --iterations=3 --infStreams=2 --useSpinWait --noDataTransfers --exportOutput=two.json \
        --dumpProfile --exportTimes=two_t.json --device=0 >two.log || fail "two streams: $(tail -3 two.log)"
    cmp cpu.json two.json || fail "the results of two streams differ"
    grep -q 'H2D Latency: min = 0 ms' two.log || fail "--noDataTransfers copies"
    # What a profiler with a capture range sees is the measured part: each of the iterations, and nothing else.
    if [ -z "${SINTER_TEST_DEVICE:-}" ]; then
        SINTER_FAKE_PROFILE=$work/recorded "$sinter" exec --loadEngine=g.engine --warmUp=20 --duration=0 --shapes=x:4x8 --iterations=50 >log ||
            fail "a profiler: $(tail -3 log)"
        [ "$(cat recorded)" = "50 launches" ] || fail "a profiler sees $(cat recorded)"
    fi
    "$sinter" exec --onnx=m.onnx $quick --builderOptimizationLevel=0 --shapes=x:4x8 --device=cpu --saveEngine=c.engine --skipInference >log
    "$sinter" exec --loadEngine=c.engine $quick --iterations=1 >log || fail "an engine for the CPU where a GPU is"
    grep -q 'Selected Device: cpu' log || fail "an engine knows its device"
    "$sinter" exec --onnx="$source/examples/digits/digits.onnx" $quick --iterations=1 --saveEngine=d.engine --exportOutput=all.json >log
    for budget in -1 0% 50% 1K; do
        "$sinter" exec --loadEngine=d.engine $quick --iterations=1 --weightStreamingBudget=$budget --exportOutput=part.json >log || fail "budget $budget"
        grep -q 'Weight streaming budget: ' log || fail "nothing is said of the budget $budget"
        cmp all.json part.json || fail "the results with the budget $budget differ"
    done
    for strategy in static runtime; do
        "$sinter" exec --loadEngine=d.engine $quick --iterations=2 --infStreams=2 --allocationStrategy=$strategy --exportOutput=part.json >log ||
            fail "the strategy $strategy"
        cmp all.json part.json || fail "the results with the strategy $strategy differ"
    done
}
python3 - <<'TEXT' || fail "exportTimes"
import json
for name, count in (("t.json", 2), ("two_t.json", 6)):
    times = json.load(open(name))
    assert len(times) == count, (name, len(times))
    for t in times:
        assert t["startEnqMs"] <= t["endEnqMs"] <= t["endD2hMs"] and t["computeMs"] > 0 and t["endComputeMs"] <= t["endD2hMs"], t
TEXT
if [ -z "${SINTER_TEST_DEVICE:-}" ]; then
    says "Cannot find device with ID 1" "$sinter" exec --onnx=m.onnx --device=1 --skipInference
fi
exit 0
