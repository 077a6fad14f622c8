#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The demo's model through every verb: files, tables and JSON hold what they should, and `sinter test` tells right from wrong.
set -eu
sinter=${SINTER_BIN:?} source=${SINTER_SOURCE_DIR:?}
model=$source/examples/digits/digits.onnx seven=$source/examples/digits/seven.npy
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
fail() { echo "FAIL $*"; exit 1; }
. "$source/examples/digits/show.sh"

"$sinter" build "$model" -o "$work/d.sinter" --profile N=1,1,2 --profile N=3,4,8 --tune off --json >"$work/build.json"
python3 -m json.tool "$work/build.json" >/dev/null || fail "build --json"
"$sinter" build "$model" -o "$work/again.sinter" --profile N=1,1,2 --profile N=3,4,8 --tune off >/dev/null
cmp "$work/d.sinter" "$work/again.sinter" || fail "two builds differ"
"$sinter" inspect "$work/d.sinter" | grep -q 'profile 1' || fail "a name given twice starts a second profile"

"$sinter" run "$work/d.sinter" --input image="$seven" --output-dir "$work/out" | grep -q '1x10' || fail "run's table"
read -r digit _ <<<"$(npy_argmax "$work/out/output_0.npy")"
[ "$digit" = 7 ] || fail "the network sees a $digit"
"$sinter" run "$work/d.sinter" --seed 3 --json >"$work/a.json"
"$sinter" run "$model" --shape N=1 --seed 3 --json >"$work/b.json"
python3 - "$work/a.json" "$work/b.json" <<'TEXT' || fail "an engine and its model differ"
import json, sys
a, b = (json.load(open(p))["outputs"][0] for p in sys.argv[1:])
assert a["shape"] == b["shape"] == [1, 10] and abs(a["max"] - b["max"]) < 1e-6, (a, b)
TEXT

for stage in import groups; do
    "$sinter" inspect "$model" --stage $stage | grep -q . || fail "no graph after $stage"
done
"$sinter" inspect "$model" --why >"$work/why"
grep -q '^rejected cpu_gemm: not a matrix product' "$work/why" || fail "inspect --why: what was rejected"
grep -q '^taken .* by the cost model, of [0-9]* tactics, for softmax:' "$work/why" || fail "inspect --why: what was taken"
"$sinter" inspect "$model" --json --why | python3 -m json.tool >/dev/null || fail "inspect --json"
"$sinter" doctor --json | python3 -m json.tool >/dev/null || fail "doctor --json"
"$sinter" ops --json | python3 -m json.tool >/dev/null || fail "ops --json"
"$sinter" bench "$work/d.sinter" --duration 0.1 --json >"$work/bench.json"
python3 - "$work/bench.json" <<'TEXT' || fail "bench --json"
import json, sys
b = json.load(open(sys.argv[1]))
assert 0 < b["min_ms"] <= b["median_ms"] <= b["p99_ms"] and b["per_second"] > 0 and len(b["steps"]) > 3
assert abs(sum(s["share"] for s in b["steps"]) - 1) < 1e-6
TEXT

# Cases: right, wrong by one value, of another shape, without outputs, with a sample, with a tolerance of their own.
case=$work/cases/digits
mkdir -p "$case"/{set_0,set_1,set_2,set_3,set_10,test_data_set_0}
cp "$model" "$case/model.onnx"
for set in "$case"/*/; do cp "$seven" "$set/input_0.npy"; done
good=$work/out/output_0.npy
cp "$good" "$case/set_0/output_0.npy"
npy() { # npy FILE "shape" value...
    python3 - "$@" <<'TEXT'
import struct, sys
path, shape, values = sys.argv[1], sys.argv[2], [float(v) for v in sys.argv[3:]]
head = "{'descr': '<f4', 'fortran_order': False, 'shape': %s, }" % shape
head += " " * (63 - (len(head) + 10) % 64) + "\n"
open(path, "wb").write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(head)) + head.encode() + struct.pack("<%df" % len(values), *values))
TEXT
}
mapfile -t scores < <(npy_values "$good" | tr -d ' ')
wrong=("${scores[@]}")
wrong[7]=0.5
npy "$case/set_1/output_0.npy" '(1, 10)' "${wrong[@]}"
npy "$case/set_2/output_0.npy" '(10,)' "${scores[@]}"
npy "$case/set_10/sample_0.npy" '(4,)' "${scores[0]}" "${scores[3]}" "${scores[6]}" "${scores[9]}"
cp "$case/set_1/output_0.npy" "$case/test_data_set_0/output_0.npy"
echo '{"output_0": {"atol": 0.6, "rtol": 0, "nrms": 2}}' >"$case/test_data_set_0/tolerance.json"
for device in cpu reference; do
    "$sinter" test "$work/cases" --device $device >"$work/test.out" && fail "test passes wrong outputs"
    cat >"$work/want" <<TEXT
PASS $case/set_0
FAIL $case/set_1: output_0 'scores' 1 of 10 values differ, most at [0,7]:
FAIL $case/set_2: output_0 'scores' has shape 1x10, want 10
SKIP $case/set_3:
PASS $case/set_10
PASS $case/test_data_set_0
3 passed, 2 failed, 1 skipped
TEXT
    paste -d '\t' "$work/want" "$work/test.out" | while IFS=$'\t' read -r want got; do
        [[ "$got" == "$want"* ]] || { echo "wanted: $want"; echo "found:  $got"; exit 1; }
    done || fail "test --device $device"
done
echo '{"output_0": {"atol": 0.6, "rtol": 0, "nrms": 0.1}}' >"$case/test_data_set_0/tolerance.json"
"$sinter" test "$case" --json >"$work/test.json" && fail "nrms is not looked at"
python3 - "$work/test.json" <<'TEXT' || fail "test --json"
import json, sys
t = json.load(open(sys.argv[1]))
assert (t["passed"], t["failed"], t["skipped"]) == (2, 3, 1), t
assert "rms" in t["cases"][-1]["reason"]
TEXT
rm -r "$case"/set_{1,2} "$case/test_data_set_0"
"$sinter" test "$work/cases" | tail -1 | grep -qx '2 passed, 0 failed, 1 skipped' || fail "the last line"
echo "all as wanted"
