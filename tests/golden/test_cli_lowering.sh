#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# --allow, --data and --budget on the demo's network: what is lowered, what inspect says of it, and the same numbers from
# kernels for a GPU (that a CPU runs, see tests/cuda; or on a GPU where SINTER_TEST_DEVICE names one).
set -eu
sinter=${SINTER_BIN:?} source=${SINTER_SOURCE_DIR:?}
model=$source/examples/digits/digits.onnx seven=$source/examples/digits/seven.npy
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
. "$source/tests/golden/helpers.sh"
. "$source/examples/digits/show.sh"

# lowers WANTED options...: builds, looks for WANTED in what inspect says, runs.
lowers() {
    local wanted=$1 said
    shift
    "$sinter" build "$model" -o "$work/e" --tune off "$@" >/dev/null 2>"$work/err" || fail "build $*: $(cat "$work/err")"
    said=$("$sinter" inspect "$work/e" | grep -o 'device=.*')
    [[ $said == *$wanted* ]] || fail "build $*: '$said' is not '$wanted'"
    "$sinter" run "$work/e" --input image="$seven" --output-dir "$work/out" >/dev/null
    read -r digit _ <<<"$(npy_argmax "$work/out/output_0.npy")"
    [ "$digit" = 7 ] || fail "build $*: the network sees a $digit"
}
# near FILE: the outputs are within a tenth of FILE's.
near() {
    paste <(npy_values "$1") <(npy_values "$work/out/output_0.npy") |
        LC_ALL=C awk '{ gap += ($1 - $2) ^ 2; size += $1 ^ 2 } END { exit !(gap <= 0.01 * size) }' || fail "far from $1"
}

lowers 'math=fp32'
cp "$work/out/output_0.npy" "$work/f32.npy"
cp "$work/e" "$work/plain"

# The CPU multiplies f16 in f32: what is permitted is not used, the engine is the plain one, and the build says why.
lowers 'allow=fp16 (0 of ' --allow fp16 --data image="$seven"
cmp "$work/out/output_0.npy" "$work/f32.npy" || fail "--allow fp16 changed the results"
steps() { "$sinter" inspect "$1" | sed -n '/^profile 0/,$p'; }
[ "$(steps "$work/e")" = "$(steps "$work/plain")" ] || fail "--allow fp16 changed the steps"
"$sinter" build "$model" -o "$work/e" --tune off --allow fp16 --data image="$seven" >"$work/said"
grep -Eq '^  fp16: 0 of [0-9]+ ops, 3 not faster, 9 beside them \((matmul|conv) .*: f16 .* us with conversions, f32 .* us' "$work/said" ||
    fail "the build does not say what fp16 came to: $(cat "$work/said")"
# Whether bf16 and 8 bits are faster depends on the machine.
lowers 'allow=int8 (? of 2 products in 8 bits)' --allow int8 --data image="$seven"
near "$work/f32.npy"
lowers 'allow=bf16 (' --allow bf16 --data image="$seven"
near "$work/f32.npy"
"$sinter" build "$model" -o "$work/e" --json --allow fp16 | grep -q '"lowered": *"fp16: 0 of ' || fail "JSON does not say it"
"$sinter" inspect "$model" --allow fp16 --why | grep -q '^lowering: not faster, ' || fail "--why does not say it"

# The clock has the last word, whatever the cost model says: times in bf16 that a cache says are 100 times as long, or as short.
cache=$work/times
clocked() {
    "$sinter" build "$model" -o "$work/e" --tune fast --threads 1 --allow bf16 --timing-cache "$1" | grep -o 'bf16: [0-9]* of'
}
clocked "$cache" >/dev/null || fail "the build does not say what bf16 came to"
times_by() {
    LC_ALL=C awk -F' [|] ' -v OFS=' | ' -v by="$1" '/:bf16\[/ { split($NF, t, " "); $NF = t[1] * by " " t[2] * by } 1' "$cache" >"$cache.by"
}
if grep -q '^\(matmul\|conv\):bf16\[' "$cache"; then
    times_by 100
    [ "$(clocked "$cache.by")" = 'bf16: 0 of' ] || fail "bf16 is lowered though it takes 100 times as long"
    times_by 0.01
    [ "$(clocked "$cache.by")" != 'bf16: 0 of' ] || fail "bf16 is not lowered though it takes a hundredth of the time"
fi

always=(--lower always)
lowers 'allow=int8 (2 of 2 products in 8 bits) moved=*on samples' "${always[@]}" --allow int8 --data image="$seven"
near "$work/f32.npy"
cp "$work/out/output_0.npy" "$work/int8.npy"
[ -s "$work/err" ] && fail "a note where samples were given: $(cat "$work/err")"
lowers 'allow=int8 (2 of 2 products in 8 bits) moved=*on seeded inputs' "${always[@]}" --allow int8
grep -q -- --data "$work/err" || fail "no note that ranges are seeded"
lowers 'allow=fp16,int8 (*ops) (2 of 2 products' "${always[@]}" --allow fp16,int8 --data image="$seven" --data image="$seven"
near "$work/f32.npy"
lowers 'allow=int8 (0 of 2 products in 8 bits) moved=0/1e-09' "${always[@]}" --allow int8 --data image="$seven" --budget 1e-9
cmp "$work/out/output_0.npy" "$work/f32.npy" || fail "something moved"
lowers 'allow=int8 (2 of 2' "${always[@]}" --allow int8 --data image="$seven" --timing-cache "$work/cache"
lowers 'allow=int8 (2 of 2' "${always[@]}" --allow int8 --data image="$seven" --timing-cache "$work/cache"
"$sinter" build "$model" -o "$work/e" "${always[@]}" --allow int8 --data image="$seven" --tune off --shape N=8 >/dev/null
"$sinter" inspect "$work/e" | grep -q '(2 of 2 products in 8 bits) moved=.*on samples' || fail "one image for a batch of 8"
grep -q '^lowered to i8' "$work/cache" || fail "the verdict is not in the cache"

# A calibration cache: written, read, the same engine each time; a product whose data has no range there stays as it is.
"$sinter" calibrate "$model" --data image="$seven" -o "$work/cache1" >/dev/null
"$sinter" calibrate "$model" --data image="$seven" -o "$work/cache2" --method minmax >/dev/null
cp "$work/cache1" "$work/again"
"$sinter" calibrate "$model" --data image="$seven" -o "$work/again" >/dev/null
cmp "$work/cache1" "$work/again" || fail "the same data gave another cache"
[ "$(head -n 1 "$work/cache2")" = TRT-101600-MinMaxCalibration ] || fail "the header: $(head -n 1 "$work/cache2")"
[ "$(sed -n 's/^image: //p' "$work/cache2")" = 3c010204 ] || fail "the image reaches 1, so the scale is 1/127"
mkdir "$work/folder"
cp "$seven" "$work/folder/b.npy"
tail -c 3136 "$seven" >"$work/folder/a.raw"
"$sinter" calibrate "$model" --data image="$work/folder" -o "$work/again" --json | grep -q '"samples": *2' || fail "two files are two samples"
cmp "$work/cache1" "$work/again" || fail "numbers without a header are other numbers"
lowers 'allow=int8 (2 of 2 products in 8 bits)' "${always[@]}" --allow int8 --calib "$work/cache1"
near "$work/f32.npy"
[ -s "$work/err" ] && fail "a note where ranges were given: $(cat "$work/err")"
cp "$work/e" "$work/first"
lowers 'allow=int8 (2 of 2' "${always[@]}" --allow int8 --calib "$work/cache1"
cmp "$work/e" "$work/first" || fail "the same cache gave another engine"
sed -n '1p;/^pool1/p' "$work/cache1" >"$work/less"
lowers 'allow=int8 (1 of 2 products in 8 bits)' "${always[@]}" --allow int8 --calib "$work/less"
lowers 'allow=fp16,int8 (*ops) (1 of 2 products in 8 bits)' "${always[@]}" --allow fp16,int8 --calib "$work/less"
printf 'x' >>"$work/folder/a.raw"
says 'has 3137 bytes, input '"'image'"' takes 3136' "$sinter" calibrate "$model" --data image="$work/folder" -o "$work/again"
says 'is not a calibration cache' "$sinter" calibrate "$model" --data image="$seven" -o "$work/f32.npy"
printf 'TRT-1-X\nimage\n' >"$work/bad"
says 'line 2' "$sinter" build "$model" -o "$work/e" --allow int8 --calib "$work/bad"
says 'int8 is not allowed' "$sinter" build "$model" -o "$work/e" --calib "$work/less"
says 'data goes with --data' "$sinter" build "$model" -o "$work/e" --allow int8 --calib image="$seven"

says "'picture', and the model has no such input" "$sinter" build "$model" -o "$work/e" --allow int8 --data picture="$seven"
says 'NAME=FILE' "$sinter" build "$model" -o "$work/e" --allow int8 --data "$seven"
says 'int8' "$sinter" build "$model" -o "$work/e" --allow int4
says 'exact' "$sinter" build "$model" -o "$work/e" --allow int8 --math exact

find_cuda || { echo "summary: on the CPU alone"; exit 0; }
lowers 'allow=int8 (2 of 2 products' "${always[@]}" --allow int8 --data image="$seven" --device "$device"
near "$work/f32.npy"
"$sinter" inspect "$work/e" >"$work/inspect"
[ "$(grep -c 'cuda_[a-z0-9]* .*_integer:[iu]8' "$work/inspect")" = 2 ] || fail "products are not in 8 bits"
grep -q 'cuda_reference\|cuda_transfer' "$work/inspect" && fail "something runs on the host"
cp "$work/e" "$work/gpu"
lowers 'allow=int8 (2 of 2 products' "${always[@]}" --allow int8 --calib "$work/cache1" --device "$device"
near "$work/f32.npy"
cmp -s "$work/e" "$work/gpu" && fail "the ranges of a cache are those that the build finds itself"
lowers 'allow=fp16,int8' "${always[@]}" --allow fp16,int8 --data image="$seven" --device "$device"
near "$work/f32.npy"
lowers 'allow=fp16 (12 of 12 ops)' --allow fp16 --device "$device"
near "$work/f32.npy"
echo "summary: 8 bits on $device"
