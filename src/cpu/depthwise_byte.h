/* SPDX-License-Identifier: Apache-2.0 */
/* depthwise_byte.h - depthwise convolution of 8-bit codes, channels-last, with exact sums in 32 bits.
 *
 * An output pixel's taps are pointers; those in the padding point at a line of zero points. So a pixel's sums are one
 * loop over channels and taps, and what zero points add is the same for all pixels: the caller takes it off. Data is
 * u8, or i8 seen as u8 that is 128 more (flip); weights are i8. */
#ifndef CPU_DEPTHWISE_BYTE_H
#define CPU_DEPTHWISE_BYTE_H

#include "cpu/conv.h"

/* How weights are packed. Both have 16-bit or 8-bit factors of taps beside each other for each channel. */
typedef enum depthwise_form { DEPTHWISE_PAIRS, DEPTHWISE_QUADS } depthwise_form;

/* sum[c] = the products of `sets` sets of 2 or 4 taps with packed weights. Bytes are xored with flip. */
typedef void depthwise_byte_fn(int32_t *sum, const uint8_t *const *tap, int64_t sets, const void *w, int64_t channels,
                               uint8_t flip);

/* Sums of `count` results of a row, of filters of 3x3 whose quads of taps are columns. */
typedef struct depthwise_columns {
    int32_t *sum;          /* [count][channels]                                  */
    const uint8_t *row[3]; /* pixel 0 of the rows of the window; NULL: padding   */
    const uint8_t *pad;
    int64_t step, in; /* bytes from pixel to pixel; pixels of a row         */
    int64_t x, ahead; /* first column of the first window; from one to the next */
    int64_t count, channels;
    const void *w;
    uint8_t flip;
} depthwise_columns;

#if CPU_HAS_X86
depthwise_byte_fn level_depthwise_quads; /* level_avx512_vnni.c */
void level_depthwise_columns(const depthwise_columns *p);
#endif

typedef struct depthwise_byte_params {
    depthwise_byte_fn *fn;
    void (*columns)(const depthwise_columns *p); /* NULL: none, only where the form is quads */
    depthwise_form form;
    conv_shape shape;       /* groups == c_in == c_out; strides in bytes */
    const uint8_t *x, *pad; /* pad: zero points, not flipped: c_in, at least 64 */
    const void *w;
    const void *ones; /* a packed filter of ones, so that windows are summed, too; NULL: they are not */
    uint8_t flip;
    /* Takes sums of pixels [row, row + rows), counted over all images, rows of all channels `ld` apart. seen: sums of
     * the flipped codes in the windows, as many, or NULL. */
    void (*post)(void *user, int64_t row, int64_t rows, int32_t *sum, const int32_t *seen, int64_t ld);
} depthwise_byte_params;

size_t depthwise_byte_pack_size(depthwise_form form, const conv_shape *s);
/* w: strides of {channel, height, width}. flip: of the weights. sum: [c_in], of each channel's flipped weights. */
void depthwise_byte_pack(depthwise_form form, const conv_shape *s, const uint8_t *w, const int64_t stride[3],
                         uint8_t flip, void *dst, int32_t *sum);
size_t depthwise_byte_scratch_size(const conv_shape *s); /* with room for sums of windows */
int64_t depthwise_byte_tile_count(const depthwise_byte_params *p);
void depthwise_byte_run(const depthwise_byte_params *p, int64_t begin, int64_t end, void *scratch, void *user);

#endif
