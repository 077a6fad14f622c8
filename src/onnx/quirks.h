/* SPDX-License-Identifier: Apache-2.0 */
/* quirks.h - the conversions that onnx.def names, and the pieces that they share. */
#ifndef ONNX_QUIRKS_H
#define ONNX_QUIRKS_H

#include "onnx/onnx_call.h"

/* clang-format off */
#define N(name, since, until, convert, arg) void convert_##convert(onnx_call *c);
#define NL N
#define NT N
#define NA N
#define NM N
#define ML N
#define MM N
#define MK N
#define MT N
#define MS N
#define MX N
#define PV N
#define PT N
#define QN N
#define TR N
#define TP N
#include "onnx/onnx.def"
#undef N
#undef NL
#undef NT
#undef NA
#undef NM
#undef ML
#undef MM
#undef MK
#undef MT
#undef MS
#undef MX
#undef PV
#undef PT
#undef QN
#undef TR
#undef TP
/* clang-format on */

void quirk_plugin(onnx_call *c);        /* an operator that the table does not have, as a call of a plugin */
/* A call of a plugin; outputs whose sizes the run tells are cut to them. */
struct plugin_request;
void call_plugin(onnx_call *c, const struct plugin_request *r);

typedef struct quirk_window_attrs { attr_ints kernel, stride, dilation, pad; } quirk_window_attrs;
const onnx_graph *quirk_graph(onnx_call *c, const char *name);          /* the subgraph in an attribute */
/* Closes a node whose regions are made; its outputs are the call's. */
void        quirk_owner_done(onnx_call *c, ir_node_id n);
/* Undoes the nodes and regions of a try, newest first. */
void        quirk_discard(onnx_call *c, uint32_t node_first, uint32_t region_first);
ir_value_id quirk_scalar_in(onnx_call *c, ir_value_id v);               /* of one element in any rank */
/* Makes the run fail where the condition is not `wanted`; the kind says what was relied on, for the message. */
typedef enum quirk_guard_kind {
    GUARD_BRANCH = 1, GUARD_SCALE, GUARD_ASCII, GUARD_OPTIONAL, GUARD_ASSERTION, GUARD_CATEGORY,
    GUARD_AXES, GUARD_SQUEEZE
} quirk_guard_kind;
void        quirk_guard(onnx_call *c, ir_value_id condition, bool wanted, quirk_guard_kind kind);
/* 1 over the root of a head's size, f32, which may be known when it runs only. */
ir_value_id quirk_head_scale(onnx_call *c, dim size);
/* Writes a Loop out, turn by turn. `why` starts the message that refuses a Loop whose turns are not known. */
void quirk_loop_unroll(onnx_call *c, const onnx_graph *body, const char *why);
ir_value_id quirk_constant_text(onnx_call *c, const onnx_attr *a);
/* The numbers that text was cast from while the model runs; else x itself. */
ir_value_id quirk_text_numbers(const onnx_call *c, ir_value_id x);
/* A Cast of x from constant text, or of numbers to text; false: it is another one. */
bool        quirk_cast_text(onnx_call *c, ir_value_id x, int64_t to);
/* Converts a node that moves elements, some of which are text that was cast from numbers: the numbers move. */
void        quirk_move_text(onnx_call *c, onnx_convert convert);
/* text_value.c. The bytes of text, u8 [..., W], also of constants; and text of bytes. */
ir_value_id quirk_text_bytes(onnx_call *c, ir_value_id x);
ir_value_id quirk_text_new(onnx_call *c, ir_value_id bytes);
ir_value_id quirk_text_there(onnx_call *c, ir_value_id bytes);                   /* flags: no filling */
ir_value_id quirk_text_sum(onnx_call *c, ir_value_id x, bool keeps);            /* of the last axis */
void        quirk_text_ascii(onnx_call *c, ir_value_id bytes);                  /* or the run fails */
dim         quirk_text_width(const onnx_call *c, ir_value_id bytes);
ir_value_id quirk_text_wide(onnx_call *c, ir_value_id bytes, dim width);        /* filled up; not narrower */
/* Of bytes that broadcast: which are the same. */
ir_value_id quirk_text_same(onnx_call *c, ir_value_id a, ir_value_id b);
ir_value_id quirk_text_any(onnx_call *c, ir_value_id flags, bool all);          /* of the last axis: any, or all */
/* Which of the words each is: bool [..., words]. */
ir_value_id quirk_text_which(onnx_call *c, ir_value_id bytes, const onnx_text *word, uint32_t count);
/* The index of each among words, all different; and whether there is one. */
ir_value_id quirk_text_find(onnx_call *c, ir_value_id bytes, const onnx_text *word, uint32_t count,
                            ir_value_id *is_found);
/* Numbers in the place of text: what it was cast from, or the elements' places. No text: x itself. */
ir_value_id quirk_text_index(onnx_call *c, ir_value_id x);
/* Converts a node that moves elements, some of which are text. */
void        quirk_move_bytes(onnx_call *c, onnx_convert convert);
bool        quirk_axes(onnx_call *c, int64_t version, uint32_t i, uint32_t rank, attr_ints *out);
/* x in a shape of `rank` sizes that the model computes. */
ir_value_id quirk_reshape_late(onnx_call *c, ir_value_id x, ir_value_id shape, uint32_t rank, bool zero_is_zero);
/* quirks_axes.c. Does only the run know these axes? Then these are their operators; how many axes there are; and a list
 * [rank] of the values that the axes have, and of `others` where an axis is not among them. */
bool        quirk_axes_late(onnx_call *c, ir_value_id axes);
ir_value_id quirk_not_empty(onnx_call *c, ir_value_id x, uint32_t axis); /* an axis of size 0 gets an element, 0 */
ir_value_id quirk_axis_counted(onnx_call *c, ir_value_id axis, uint32_t rank);  /* one axis, from 0; i64 [1] */
uint32_t    quirk_axes_count(onnx_call *c, ir_value_id axes, uint32_t rank);
ir_value_id quirk_axes_spread(onnx_call *c, ir_value_id axes, uint32_t rank, ir_value_id values, int64_t others);
ir_value_id quirk_squeeze_late(onnx_call *c, ir_value_id x, ir_value_id axes);
ir_value_id quirk_unsqueeze_late(onnx_call *c, ir_value_id x, ir_value_id axes);
ir_value_id quirk_reduce_late(onnx_call *c, reduce_kind kind, ir_value_id x, ir_value_id axes, bool keep);
ir_value_id quirk_random(onnx_call *c, bool normal, double low, double high, sinter_dtype type, const dim *d,
                         uint32_t rank);        /* seeded as the node's attribute says */
ir_value_id quirk_bias(onnx_call *c, ir_value_id y, ir_value_id bias);
ir_value_id quirk_conv(onnx_call *c, ir_value_id x, ir_value_id w);
ir_value_id quirk_conv_integer(onnx_call *c, ir_value_id x, ir_value_id w, ir_value_id x_zero, ir_value_id w_zero);
ir_value_id quirk_avg_pool(onnx_call *c, ir_value_id x);
void quirk_qlinear_pool(onnx_call *c); /* of codes, the channels behind the batch */
void quirk_layer_norm(onnx_call *c, ir_value_id x, ir_value_id scale, ir_value_id bias, int64_t axis, double epsilon,
                      uint32_t outputs, ir_value_id *out);
ir_value_id quirk_rms_norm(onnx_call *c, ir_value_id x, ir_value_id scale, int64_t axis, double epsilon);
ir_value_id quirk_one_hot(onnx_call *c, ir_value_id index, sinter_dtype type, int64_t axis, dim depth);
ir_value_id quirk_quantize(onnx_call *c, ir_value_id x, ir_value_id scale, ir_value_id zero, sinter_dtype type);
ir_value_id quirk_dequantize(onnx_call *c, ir_value_id q, ir_value_id scale, ir_value_id zero);
/* By the axis and block_size that the node's attributes give; block 0: none is given. zero 0: it is 0. */
ir_value_id quirk_dequantize_blocks(onnx_call *c, ir_value_id q, ir_value_id scale, ir_value_id zero, int64_t axis,
                                    int64_t block);
ir_value_id quirk_quantize_blocks(onnx_call *c, ir_value_id x, ir_value_id scale, sinter_dtype type);
/* quirks_trt.c. Blocks of an axis quantised by their largest magnitudes: out[0] the codes, out[1] the scales. second: a
 * scalar that scales are divided by; 0: none. */
typedef struct quirk_blocks {
    int64_t axis, size;
    sinter_dtype type, scale_type;
} quirk_blocks;
void        quirk_dynamic_blocks(onnx_call *c, ir_value_id x, ir_value_id second, const quirk_blocks *how);
/* x resized by the op, to sizes, and by these scales; NULL: by those that the sizes say. */
ir_value_id quirk_resize(onnx_call *c, ir_value_id x, attrs_resize *a, const dim *size, const double *scale);
/* quirks_scale.c. x resized by scales that are values, scalars of f64; 0: the axis stays as it is. low and high: of a
 * box, with tf_crop_and_resize. is_apart: the new sizes are not those that the scales make. is_upsample: the nearest
 * element is the one before a place, or the one behind it along an axis that shrinks. */
typedef struct quirk_scales {
    dim size[SINTER_RANK_MAX];
    ir_value_id scale[SINTER_RANK_MAX], low[SINTER_RANK_MAX], high[SINTER_RANK_MAX];
    bool is_apart, is_upsample;
} quirk_scales;
ir_value_id quirk_resize_scaled(onnx_call *c, ir_value_id x, attrs_resize *a, const quirk_scales *s);
ir_value_id quirk_size_real(onnx_call *c, dim size); /* f64, a scalar */
/* quirks_crop.c. Resize with tf_crop_and_resize, and a roi that is computed while the model runs: true where it became
 * out[0]. It has to be linear, of an image [N, C, H, W] of f32, or of the roi's type, whose axes 0 and 1 are kept, to
 * sizes that are known. */
bool        quirk_crop_late(onnx_call *c, const attrs_resize *a, const attr_ints *axes);
/* A constant of f32: [count], or [rows, count / rows] where there is more than one row. */
ir_value_id quirk_reals(onnx_call *c, const float *at, uint32_t count, uint32_t rows);
/* A constant's bytes seen as [rows, columns] of numbers of 2, 4 or 8 bits; `what` names it in refusals. */
ir_value_id quirk_bits_seen(onnx_call *c, ir_value_id v, const char *what, sinter_dtype type, int64_t rows,
                            int64_t columns);
/* NONE, LOGISTIC, SOFTMAX, SOFTMAX_ZERO or PROBIT of scores [B, C]. */
ir_value_id quirk_post_transform(onnx_call *c, const char *how, ir_value_id y);
/* quirks_coupling.c. Probabilities of classes [N, classes], from those of class i where it is i or j, [N, pairs]. */
ir_value_id quirk_coupled(onnx_call *c, ir_value_id r, uint32_t classes);
/* Labels by the index of a class, [B]: classlabels_strings, or the integers of attribute `name`. */
ir_value_id quirk_labelled(onnx_call *c, ir_value_id at, uint32_t count, const char *name);
/* Keys or values [B, H, S, D] with each head as often as the queries have more of them. */
ir_value_id quirk_repeat_heads(onnx_call *c, ir_value_id k, ir_value_id q);

#endif
