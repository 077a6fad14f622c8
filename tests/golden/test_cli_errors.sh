#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# What the command says and how it ends where it was asked for something wrong.
set -u
sinter=${SINTER_BIN:?} source=${SINTER_SOURCE_DIR:?}
model=$source/examples/digits/digits.onnx
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failed=0

# wants STATUS TEXT command...: the exit status, and text somewhere in what it wrote.
wants() {
    local status=$1 text=$2 out got
    shift 2
    out=$("$sinter" "$@" 2>&1)
    got=$?
    if [ $got -ne "$status" ] || [[ "$out" != *"$text"* ]]; then
        printf 'FAIL sinter %s\n  status %s, wanted %s; wanted text: %s\n%s\n' "$*" $got "$status" "$text" "$out"
        failed=$((failed + 1))
    fi
}

wants 2 'usage: sinter VERB'
wants 0 'usage: sinter VERB' --help
wants 0 'sinter 0.' --version
wants 2 "unknown verb 'biuld': did you mean build?" biuld
wants 2 "unknown verb 'zzzzzz'" zzzzzz
for verb in build run bench test inspect ops doctor; do wants 0 "usage: sinter $verb" $verb --help; done
wants 0 'rtol 1e-3' test --help

wants 2 "unknown option '--thread': did you mean --threads?" run "$model" --thread 2
wants 2 "unknown option '--qqqqqqqq'" run "$model" --qqqqqqqq
wants 2 "unknown option '--duration" build "$model" -o "$work/e" --duration 3
wants 2 "unknown option '-x'" run "$model" -x
wants 2 "wants a value: '--threads'" run "$model" --threads
wants 2 'expected a whole number' run "$model" --threads two
wants 2 'expected a whole number' run "$model" --threads -1
wants 2 'off|fast|full' run "$model" --tune maximal
wants 2 'auto|off|small|all' run "$model" --branches some
for r in -1 nan inf a ''; do wants 2 'expected a number' run "$model" --budget "$r"; done
wants 2 "takes no value: '--no-data-transfers=1'" bench "$model" --no-data-transfers=1
wants 2 "unknown option '--no-data-transfers'" run "$model" --no-data-transfers
wants 2 "unknown option '--data'" test "$work" --data image=x.npy
wants 2 'expected fp16|bf16|tf32|int8' run "$model" --allow fp16,int4
wants 2 'cuda[:N|:sm_XX]' run "$model" --device cudb
wants 2 'cuda[:N|:sm_XX]' run "$model" --device cuda:x
wants 2 "takes no value: '--json=yes'" run "$model" --json=yes
wants 2 'a file is missing' run
wants 2 'too many files' run "$model" "$model"
wants 2 '-o ENGINE is missing' build "$model"
wants 2 'expected NAME=N' run "$model" --limit nodes=3

wants 1 'no/such.onnx' run no/such.onnx
wants 1 'no/such.onnx' build no/such.onnx -o "$work/e"
wants 1 "no folder" test "$work/nothing"
wants 1 'no case' test "$work"
wants 1 'error:' run "$source/README.md"
printf '\x89SINTER\nand then nothing' >"$work/bad.sinter"
wants 1 'error:' run "$work/bad.sinter"
wants 1 'cannot' build "$model" -o "$work/no/such/folder/e"
[ -e "$work/e" ] && { echo "FAIL a failed build left a file"; failed=$((failed + 1)); }

wants 2 'expected NAME=1x3x224x224' run "$model" --shape image
wants 2 'expected NAME=1x3x224x224 (whole numbers)' run "$model" --shape image=1x1x28x
wants 1 "no named dim 'imge'; the inputs are 'image' [N,1,28,28]" run "$model" --shape imge=1x1x28x28
wants 1 'error:' run "$model" --shape image=1x1x28x27
wants 1 'error:' run "$model" --shape image=1x28x28
wants 2 'min <= opt <= max' build "$model" -o "$work/e" --profile N=4,2,8
wants 2 'expected NAME=MIN,OPT,MAX' build "$model" -o "$work/e" --profile N=1,2
wants 2 'expected NAME=FILE' run "$model" --input image
wants 1 'no/such.npy' run "$model" --input image=no/such.npy
wants 2 'expected NAME=FILE' build "$model" -o "$work/e" --allow int8 --data image
wants 1 'no/such.npy' build "$model" -o "$work/e" --allow int8 --data image=no/such.npy
wants 0 'median' bench "$model" --tune off --duration 0 --no-data-transfers
wants 1 "no input 'picture'" run "$model" --input picture="$source/examples/digits/seven.npy"

wants 0 'built' build "$model" -o "$work/d.sinter" --profile N=2,2,4 --tune off
wants 1 "the engine was built for 'cpu'" run "$work/d.sinter" --device cuda
wants 1 'permits 2 to 4' run "$work/d.sinter" --input image="$source/examples/digits/seven.npy"
wants 1 'is an engine already' build "$work/d.sinter" -o "$work/e"
# Messages name the limit and the profile.
wants 1 'the limit memory_max, 70000 bytes, is too small' build "$model" -o "$work/e" --limit memory_max=70000
wants 1 'the limit memory_max is 1300000' build "$model" -o "$work/e" --tune off --profile N=1,1,2 --profile N=64,64,64 --limit memory_max=1300000
wants 1 'while making profile 1' build "$model" -o "$work/e" --tune off --profile N=1,1,2 --profile N=64,64,64 --limit memory_max=1300000
wants 1 'the limit memory_max, 70000 bytes' run "$work/d.sinter" --limit memory_max=70000
wants 1 'more than 3 nodes, the limit nodes_max' build "$model" -o "$work/e" --limit nodes_max=3
# What only a build can honour; and shapes and profiles of an engine.
for option in '--tune off' '--profile N=1,1,1' '--value image=x' '--data image=x' '--allow fp16' '--math exact' '--rules -add-zero' '--rule-limit 3' \
    '--timing-cache t' --cache-only --verify '--branches off' '--budget 1' '--device reference' '--device cuda:sm_90a'; do
    # shellcheck disable=SC2086
    wants 2 "goes with a model: '$work/d.sinter' is an engine" run "$work/d.sinter" $option
done
wants 2 'goes with a model' inspect "$work/d.sinter" --shape N=3
wants 0 '3x10' run "$work/d.sinter" --shape N=3
wants 0 'profile 0: image f32 4x1x28x28 (random)' bench "$work/d.sinter" --shape image=4x1x28x28 --duration 0
wants 0 'profile 0: image f32 2x1x28x28 (random)' bench "$work/d.sinter" --duration 0
wants 0 'profile 0: image f32 1x1x28x28' bench "$model" --tune off --input image="$source/examples/digits/seven.npy" --duration 0
wants 1 "axis 0 of input 'image' is 5, profile 0 permits 2 to 4" run "$work/d.sinter" --shape N=5
wants 1 "axis 1 of input 'image' is 3" run "$work/d.sinter" --shape image=2x3x28x28
wants 1 "has rank 2, the engine wants 4" run "$work/d.sinter" --shape image=2x784
wants 1 "no named dim 'M'; the inputs are 'image' [N,1,28,28]" run "$work/d.sinter" --shape M=3
wants 0 'built' build "$model" -o "$work/two.sinter" --profile N=1,1,2 --profile N=3,4,8 --tune off
wants 0 'profile 1: image f32 5x1x28x28' bench "$work/two.sinter" --shape N=5 --duration 0
wants 0 'profile 1: image f32 4x1x28x28' bench "$work/two.sinter" --use-profile 1 --duration 0
wants 0 '4x10' run "$work/two.sinter" --use-profile 1
wants 1 "is 9, profile 0 permits 1 to 2; axis 0 of input 'image' is 9, profile 1 permits 3 to 8" run "$work/two.sinter" --shape N=9
wants 1 "is 5, profile 0 permits 1 to 2" run "$work/two.sinter" --shape N=5 --use-profile 0
wants 1 'the engine has profiles 0 to 1' run "$work/two.sinter" --use-profile 2
rm -f "$work/e"
wants 1 "there is no rule 'no-such-rule'" build "$model" -o "$work/e" --rules -add-zero,-no-such-rule
SINTER_LOG=import,grpah wants 1 "there is no log topic 'grpah'" build "$model" -o "$work/e"
SINTER_LOG=grpah wants 1 "SINTER_LOG" run "$work/d.sinter"
SINTER_LOG=all,import wants 0 'built' build "$model" -o "$work/e" --tune off --rules -add-zero
wants 2 'needs a model' inspect "$work/d.sinter" --why
wants 1 "no stage 'nowhere'; there are:" inspect "$model" --stage nowhere
[ $failed -eq 0 ] && echo "all as wanted"
exit $((failed > 0))
