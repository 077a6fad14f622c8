#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Plugins by the command: a new plugin's folder builds and its test passes; its library is listed, and a model and its
# engine run with --plugin and are refused without.
set -eu
sinter=${SINTER_BIN:?} source=${SINTER_SOURCE_DIR:?}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
. "$source/tests/golden/helpers.sh"

PYTHONPATH=$source/tests/golden python3 - "$work" <<'TEXT'
import pathlib, struct, sys
import onnx_bytes as onnx
work = pathlib.Path(sys.argv[1])
scale = onnx.data(5, onnx.data(1, "scale") + onnx.varint(2 << 3 | 5) + struct.pack("<f", 3.0) + onnx.num(20, 1))
def model(op, name, attrs=b""):
    graph = onnx.node(op, ["x"], "y", attrs) + onnx.data(11, onnx.value("x", ["N", 6])) + onnx.data(12, onnx.value("y", ["N", 6]))
    onnx.write_model(work / name, graph, 18)
model("Scaled", "scaled.onnx", scale)
model("CustomKernel", "kernel.onnx")
onnx.write_npy(work / "x.npy", [2, 6], range(12))
TEXT

# A new plugin, built with the headers alone.
(cd "$work" && "$sinter" plugin new Scaled >/dev/null)
says "cannot be made" "$sinter" plugin new "$work/Scaled"
says "no name for a plugin" "$sinter" plugin new "$work/a-b"
says "neither new nor list" "$sinter" plugin show x
says "cannot be opened" "$sinter" plugin list "$work/none.so"
cmake -S "$work/Scaled" -B "$work/Scaled/build" -DSINTER_INCLUDE="$source/include" -DCMAKE_C_FLAGS="-Wall -Wextra -Werror" >"$work/log" 2>&1 ||
    fail "the new plugin is not configured: $(cat "$work/log")"
cmake --build "$work/Scaled/build" >"$work/log" 2>&1 || fail "the new plugin does not build: $(cat "$work/log")"
"$work/Scaled/build/test_Scaled" | grep -q 'Scaled: passed' || fail "the new plugin's test"
scaled=$work/Scaled/build/libScaled.so
"$sinter" plugin list "$scaled" | grep -q '^Scaled *1 .*scale:real' || fail "plugin list"
"$sinter" plugin list "$scaled" --json | python3 -m json.tool >/dev/null || fail "plugin list --json"

# Models and engines.
says "node #0 'y' (Scaled, ai.onnx 18)" "$sinter" run "$work/scaled.onnx" --shape N=2
"$sinter" run "$work/scaled.onnx" --plugin "$scaled" --input x="$work/x.npy" --json >"$work/run.json"
python3 - "$work/run.json" <<'TEXT' || fail "the plugin's results"
import json, sys
y = json.load(open(sys.argv[1]))["outputs"][0]
assert y["shape"] == [2, 6] and y["max"] == 33 and y["min"] == 0, y
TEXT
"$sinter" build "$work/scaled.onnx" --plugin "$scaled" --profile N=1,2,4 -o "$work/s.sinter" >/dev/null
says "plugin 'Scaled' version '1' in namespace '' is not registered" "$sinter" run "$work/s.sinter"
says "plugin 'Scaled' version '1' in namespace '' is not registered" "$sinter" inspect "$work/s.sinter"
"$sinter" inspect "$work/s.sinter" --plugin "$scaled" | grep -q 'plugin:.*name="Scaled" version="1" fields="scale=3"' || fail "inspect"
"$sinter" bench "$work/s.sinter" --plugin "$scaled" --duration 0.05 >/dev/null || fail "bench"
"$sinter" refit "$work/s.sinter" --plugin "$scaled" --strip -o "$work/t.sinter" >/dev/null || fail "refit"

# A CUDA source alone.
(cd "$work" && "$sinter" plugin new Scaler --cu >/dev/null)
"$sinter" plugin list "$work/Scaler/Scaler.cu" | grep -q '^Scaler *1 .*cuda.*scale:real' || fail "plugin list of a CUDA source"
"$sinter" plugin list "$source/tests/plugins/cu_pool.cu" | grep -q '^CuPool .*2..2 *2..2.*k:int!' || fail "plugin list: fields without a default"

# Two libraries at once; the tests' own has four plugins.
set_of_tests=$PWD/tests/libsinter_plugin_library.so
if [ -f "$set_of_tests" ]; then
    [ "$("$sinter" plugin list "$set_of_tests" | grep -c '^Custom')" -ge 4 ] || fail "the tests' plugins"
    "$sinter" run "$work/kernel.onnx" --plugin "$scaled" --plugin "$set_of_tests" --shape N=2 >/dev/null || fail "two libraries"
    says "already" "$sinter" run "$work/kernel.onnx" --plugin "$set_of_tests" --plugin "$set_of_tests" --shape N=2
fi
