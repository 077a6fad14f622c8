#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Sourced by ./demo: looks into little-endian f32 .npy files with nothing but od and awk.

# The numbers of a file, one a line.
npy_values() {
    local header
    header=$(od -A n -j 8 -N 2 -t u2 "$1")
    LC_ALL=C od -A n -v -w4 -j $((10 + header)) -t f4 "$1"
}

# An image of WIDTH columns as characters, darker for more ink; two characters a pixel keep its shape.
npy_picture() {
    npy_values "$1" | LC_ALL=C awk -v width="$2" '{
        level = int($1 * 4.999); if (level < 0) level = 0; if (level > 4) level = 4
        c = substr(" .+#@", level + 1, 1); row = row c c
        if (NR % width == 0) { print "    " row; row = "" } }'
}

# The index of the largest number, counted from 0, and the number.
npy_argmax() {
    npy_values "$1" | LC_ALL=C awk 'NR == 1 || $1 > best { best = $1; at = NR - 1 } END { printf "%d %.4f\n", at, best }'
}
