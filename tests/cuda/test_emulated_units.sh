#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Kernels whose blocks stay and take tile after tile, as a chip of 2 or 3 multiprocessors has them: so a small problem
# has several tiles a block, in turns, weights that stay, and widths that such a chip prefers.
set -eu
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

on() { # UNITS LINE WANTED...
    local status=0 wanted
    tests/cuda_test_emulated -v --kernel cuda_wgmma --units "$1" --tactics 9 "$2" >"$work/out" 2>&1 || status=$?
    [ $status -ne 77 ] || exit 77
    [ $status -eq 0 ] || { cat "$work/out"; exit 1; }
    for wanted in "${@:3}"; do
        grep -q "cuda_wgmma $wanted.* ok" "$work/out" || { cat "$work/out"; echo "FAIL no $wanted: $2"; exit 1; }
    done
}

bias='a=acc : f32; b=load 2 : f16; c=cast b : f32; d=add a c : f32'
gelu="epi=\"$bias; e=gelu d : f32; f=cast e : f16; store 0 f\""
sum="epi=\"$bias; e=load 3 : f16; f=cast e : f32; g=add d f : f32; h=relu g : f32; i=cast h : f16; store 0 i\""
on 2 "matmul:f16[900,200] w:f16[200,264] + w:f16[264] -> f16[900,264] $gelu" \
    '192x160 s. kept staged' '128x160 s. staged' 192x160 '128x96 s. staged'
on 2 "matmul:f16[2,270,520] w:f16[2,520,200] + w:f16[200] f16[2,270,200] -> f16[2,270,200] $sum" \
    '128x128 s. pingpong staged' '128x128 s. pingpong' 128x224
on 3 'matmul:bf16[700,72] bf16[224,72] -> f32[700,224] trans_b=1' '128x128 s. pingpong' 128x224
on 3 "conv:f16[3,64,14,15]{0,2,3,1} w:f16[64,64,3,3] + w:f16[1,64,1,1] f16[3,64,14,15]{0,2,3,1} -> \
f16[3,64,14,15]{0,2,3,1} stride=[1,1] dilation=[1,1] pad=[1,1,1,1] $sum" \
    '128x64 s. pingpong kept staged' '128x64 s. paired staged' '128x64 s. kept paired'
on 2 'matmul_integer:u8[520,272] w:i8[272,152] w:u8[] + u8[520,152] w:f32[152] w:f32[152] -> f32[520,152] epi="a=load 3 : u8; b=imm 0.034244198352098465; c=imm 127 : u8; d=dequantize a b c : f32; e=acc : i32; f=cast e : f32; g=load 4; h=mul f g : f32; i=load 5; j=add h i : f32; k=add d j : f32; store 0 k"' \
    '128x128 s. pingpong' 128x160 128x96
on 3 "matmul:f16[560,200] w:f16[200,190] + w:f16[190] f16[560,190] -> f16[560,190] $sum" 192x192 '128x64 s. kept paired'
on 3 'matmul:bf16[560,328] bf16[184,328] -> f32[560,184] trans_b=1' 192x192
on 2 'matmul_integer:u8[380,272] w:i8[272,152] w:u8[] + w:f32[152] w:f32[152] -> f32[380,152] epi="a=acc : i32; b=cast a : f32; c=load 3; d=mul b c : f32; e=load 4; f=add d e : f32; store 0 f"' \
    192x160
