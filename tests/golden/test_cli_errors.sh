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
wants 2 "unknown option '--calib'" test "$work" --calib image=x.npy
wants 2 'fp16, bf16, tf32, int8' run "$model" --allow fp16,int4
wants 2 "cuda:N or cuda:sm_XX" run "$model" --device cudb
wants 2 "cuda:N or cuda:sm_XX" run "$model" --device cuda:x
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

wants 1 'expected NAME=1x3x224x224' run "$model" --shape image
wants 1 'is not of the form' run "$model" --shape image=1x1x28x
wants 1 "no named dim 'imge'; its inputs are 'image' [N,1,28,28]" run "$model" --shape imge=1x1x28x28
wants 1 'error:' run "$model" --shape image=1x1x28x27
wants 1 'error:' run "$model" --shape image=1x28x28
wants 1 'min <= opt <= max' build "$model" -o "$work/e" --profile N=4,2,8
wants 1 'is not of the form' build "$model" -o "$work/e" --profile N=1,2
wants 1 'expected NAME=FILE' run "$model" --input image
wants 1 'no/such.npy' run "$model" --input image=no/such.npy
wants 1 'expected NAME=FILE' build "$model" -o "$work/e" --allow int8 --calib image
wants 1 'no/such.npy' build "$model" -o "$work/e" --allow int8 --calib image=no/such.npy
wants 0 'median' bench "$model" --tune off --duration 0 --no-data-transfers
wants 1 "no input 'picture'" run "$model" --input picture="$source/examples/digits/seven.npy"

wants 0 'built' build "$model" -o "$work/d.sinter" --profile N=2,2,4 --tune off
wants 1 "the engine was built for 'cpu'" run "$work/d.sinter" --device cuda
wants 1 'permits 2 to 4' run "$work/d.sinter" --input image="$source/examples/digits/seven.npy"
wants 1 'is an engine already' build "$work/d.sinter" -o "$work/e"
wants 1 'go with a model' run "$work/d.sinter" --shape N=3
wants 2 'needs a model' inspect "$work/d.sinter" --why
wants 1 "no stage 'nowhere'; there are:" inspect "$model" --stage nowhere
[ $failed -eq 0 ] && echo "all as wanted"
exit $((failed > 0))
