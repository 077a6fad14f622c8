/* SPDX-License-Identifier: Apache-2.0 */
/* row_conv_shape.c - sizes and strides of convolutions, right-aligned to depth, height, width. */
#include "cpu/row_conv_shape.h"

/* Kernel, stride and the like; an axis that the convolution lacks has size 1. */
static conv_shape shape_begin(const problem *p, const void *attrs, uint32_t spatial)
{
    /* Both ops have the same attributes. */
    const attrs_conv_integer *ai = attrs;
    const attrs_conv *af = attrs;
    const bool is_integer = p->op == OP_conv_integer;
    conv_shape s = { .groups = is_integer ? ai->groups : af->groups, .c_out = p->in[1].dim[0].max };
    for (uint32_t i = 0; i < 3; i++) s.in[i] = s.out[i] = s.kernel[i] = s.stride[i] = s.dilation[i] = 1;
    for (uint32_t i = 0; i < spatial; i++) {
        const uint32_t to = 3 - spatial + i;
        s.kernel[to] = p->in[1].dim[2 + i].max;
        s.stride[to] = is_integer ? ai->stride.at[i] : af->stride.at[i];
        s.dilation[to] = is_integer ? ai->dilation.at[i] : af->dilation.at[i];
        s.pad[to] = is_integer ? ai->pad.at[i] : af->pad.at[i];
    }
    return s;
}

conv_shape row_conv_shape(const problem *p, row_bound b)
{
    const problem_operand *x = &p->in[0], *y = &p->out[0];
    const uint32_t spatial = x->rank - 2;
    conv_shape s = shape_begin(p, p->attrs, spatial);
    s.images = row_size(x->dim[0], b);
    s.c_in = x->dim[1].max;
    for (uint32_t i = 0; i < spatial; i++) {
        s.in[3 - spatial + i] = row_size(x->dim[2 + i], b);
        s.out[3 - spatial + i] = row_size(y->dim[2 + i], b);
    }
    const bool is_last = row_is_channel_inner(x) || s.c_in == 1;
    s.x_c = is_last ? 1 : s.in[0] * s.in[1] * s.in[2];
    if (!is_last && s.x_c < 2) s.x_c = 2;
    s.x_dim[2] = is_last ? s.c_in : 1;
    s.x_dim[1] = s.x_dim[2] * s.in[2];
    s.x_dim[0] = s.x_dim[1] * s.in[1];
    s.x_image = s.c_in * s.in[0] * s.in[1] * s.in[2];
    return s;
}

conv_shape row_conv_bind(const problem *p, const void *attrs, const view *x, const view *y)
{
    const uint32_t spatial = x->rank - 2;
    conv_shape s = shape_begin(p, attrs, spatial);
    s.images = x->dim[0];
    s.c_in = x->dim[1];
    s.x_image = x->stride[0];
    s.x_c = x->dim[1] > 1 ? x->stride[1] : 1;
    for (uint32_t i = 0; i < spatial; i++) {
        const uint32_t to = 3 - spatial + i;
        s.in[to] = x->dim[2 + i];
        s.out[to] = y->dim[2 + i];
        s.x_dim[to] = x->stride[2 + i];
    }
    return s;
}

void row_filter_strides(const view *w, int64_t stride[5])
{
    const uint32_t spatial = w->rank - 2;
    for (uint32_t i = 0; i < 5; i++) stride[i] = 0;
    stride[0] = w->stride[0];
    stride[1] = w->stride[1];
    for (uint32_t i = 0; i < spatial; i++) stride[5 - spatial + i] = w->stride[2 + i];
}
