/* SPDX-License-Identifier: Apache-2.0 */
/* build.h - the graph builder: the one way to add nodes and constants to a graph.
 *
 * Each op of the op table has a typed call, made from its row:
 *     ir_builder b = { .g = g, .region = IR_MAIN };
 *     const ir_value_id y = build_relu(&b, build_conv(&b, x, w, &(attrs_conv){ .groups = 2, … }));
 *     if (b.status) …
 * Scalar functions take values (cast, quantize and dequantize: the result's type last). Other ops take values and a
 * pointer to their attributes, which are copied; NULL: the defaults of attrs.def. DEFAULTS(conv) points to a fresh set
 * of defaults on the stack. Optional inputs may be 0, absent inputs at the end are left out. An op with one output
 * returns its value. Other ops take the number of outputs and return a node; build_result() gives its values.
 *
 * Nothing here trusts its caller: ids, regions, counts, attributes, types and sizes are checked before the graph
 * changes. Failure is sticky: the first one is in the error chain of the graph's env and in `status`; every later call
 * returns 0 and adds nothing. */
#ifndef IR_BUILD_H
#define IR_BUILD_H

#include "ir/graph.h"

typedef struct ir_builder {
    ir_graph       *g;
    ir_region_id    region;         /* new nodes belong to it */
    const char     *name;           /* of new nodes, for messages; lives as long as the graph; NULL: none */
    const uint32_t *origin;         /* model nodes that new nodes come from, as in ir_node; see build_from */
    uint32_t        count_origin;
    size_t          fold_max;       /* new nodes whose inputs are known are folded where no operand and no result has
                                       more bytes; 0: none are */
    sinter_status   status;         /* the first failure */
} ir_builder;

/* A pointer to default attributes; it lives as long as the enclosing block. */
#define DEFAULTS(op) (&(attrs_##op){ ATTRS_##op(ATTR_INITIAL) .unused_ = 0 })
#define ATTR_INITIAL(kind, field, value) ATTR_INITIAL_##kind(field, value)
#define ATTR_INITIAL_INT(field, value) .field = (value),
#define ATTR_INITIAL_REAL(field, value) .field = (value),
#define ATTR_INITIAL_INTS(field, value)
#define ATTR_INITIAL_REALS(field, value)
#define ATTR_INITIAL_DIMS(field, value)
#define ATTR_INITIAL_TEXT(field, value) .field = (value),
#define ATTR_INITIAL_TYPE(field, value) .field = (value),
#define ATTR_INITIAL_NAME(field, items) .field = 0,

/* ---- any op ---- */
/* The node; 0 on failure. An op with regions is left open: give it regions and results, then call build_close. */
ir_node_id  build_node(ir_builder *b, op_id op, const void *attrs, const ir_value_id *in, uint32_t count_in,
                       uint32_t count_out);
/* The first output of a node with as few outputs as the op permits. */
ir_value_id build_emit(ir_builder *b, op_id op, const void *attrs, const ir_value_id *in, uint32_t count_in);
ir_value_id build_unary(ir_builder *b, op_id op, ir_value_id x);
ir_value_id build_binary(ir_builder *b, op_id op, ir_value_id x, ir_value_id y);
/* The same op and attributes as node n, on other inputs. */
ir_value_id build_again(ir_builder *b, ir_node_id n, const ir_value_id *in, uint32_t count_in);
ir_value_id build_result(const ir_builder *b, ir_node_id n, uint32_t i);    /* output i; 0 where there is none */
/* Infers the outputs of a node whose regions are complete. */
void        build_close(ir_builder *b, ir_node_id n);
/* New nodes come from the model nodes of these nodes from now on. */
void        build_from(ir_builder *b, const ir_node_id *n, uint32_t count);
/* Takes `status`, which has been reported, where there was no failure before. */
void        build_fail(ir_builder *b, sinter_status status);

/* ---- constants ---- */
/* Dense bytes, which must live as long as the graph. */
ir_value_id build_const(ir_builder *b, const char *name, const view *v);
ir_value_id build_scalar(ir_builder *b, sinter_dtype type, double value);
ir_value_id build_scalar_like(ir_builder *b, ir_value_id like, double value);       /* of the type of `like` */
ir_value_id build_scalar_i64(ir_builder *b, sinter_dtype type, int64_t value);      /* all 64 bits */
ir_value_id build_sizes(ir_builder *b, const dim *d, uint32_t count, bool is_scalar);   /* i64, known when it runs */
ir_value_id build_iota(ir_builder *b, dim count);                                   /* 0, 1, 2 … i64 */
attr_dims   build_dims(ir_builder *b, const dim *d, uint32_t count);                /* for an attribute */

/* v, computed now where its operands are known. So a constant that is made of others has a recipe. */
ir_value_id build_folded(ir_builder *b, ir_value_id v);

/* ---- the value in another form: v itself, and no node, where nothing changes ---- */
ir_value_id build_typed(ir_builder *b, ir_value_id v, sinter_dtype type);
ir_value_id build_shaped(ir_builder *b, ir_value_id v, const dim *d, uint32_t rank);
ir_value_id build_expanded(ir_builder *b, ir_value_id v, const dim *d, uint32_t rank);
ir_value_id build_permuted(ir_builder *b, ir_value_id v, const int64_t *perm, uint32_t rank);
ir_value_id build_unsqueezed(ir_builder *b, ir_value_id v, uint32_t axis);
ir_value_id build_squeezed(ir_builder *b, ir_value_id v, uint32_t axis);
ir_value_id build_along(ir_builder *b, ir_value_id v, uint32_t axis, uint32_t rank);    /* [C] to [1, …, C, …, 1] */

/* ---- one axis, or a few ---- */
ir_value_id build_part(ir_builder *b, ir_value_id v, uint32_t axis, dim start, int64_t step, dim size);  /* a slice */
ir_value_id build_padded(ir_builder *b, ir_value_id v, pad_mode mode, const dim *begin, const dim *end,
                         ir_value_id value);                                        /* value 0: zeros */
ir_value_id build_reduced(ir_builder *b, reduce_kind kind, ir_value_id v, const int64_t *axes, uint32_t count,
                          bool keep);

/* ---- attention without new rows; mask and length may be 0 ---- */
ir_value_id build_attended(ir_builder *b, ir_value_id q, ir_value_id k, ir_value_id v, ir_value_id mask,
                           ir_value_id length, const attrs_attention *attrs);

/* ---- one call for each op ---- */
/* clang-format off */
#define BUILD_PARAMS_0
#define BUILD_PARAMS_1        , ir_value_id x
#define BUILD_PARAMS_2        , ir_value_id x, ir_value_id y
#define BUILD_PARAMS_3        , ir_value_id x, ir_value_id y, ir_value_id z
#define BUILD_PARAMS_4        BUILD_PARAMS_3, ir_value_id x3
#define BUILD_PARAMS_5        BUILD_PARAMS_4, ir_value_id x4
#define BUILD_PARAMS_6        BUILD_PARAMS_5, ir_value_id x5
#define BUILD_PARAMS_7        BUILD_PARAMS_6, ir_value_id x6
#define BUILD_PARAMS_8        BUILD_PARAMS_7, ir_value_id x7
#define BUILD_PARAMS_VARIADIC , const ir_value_id *in, uint32_t count_in
#define BUILD_IN_0            NULL, 0
#define BUILD_IN_1            &x, 1
#define BUILD_IN_2            (const ir_value_id[]){ x, y }, 2
#define BUILD_IN_3            (const ir_value_id[]){ x, y, z }, 3
#define BUILD_IN_4            (const ir_value_id[]){ x, y, z, x3 }, 4
#define BUILD_IN_5            (const ir_value_id[]){ x, y, z, x3, x4 }, 5
#define BUILD_IN_6            (const ir_value_id[]){ x, y, z, x3, x4, x5 }, 6
#define BUILD_IN_7            (const ir_value_id[]){ x, y, z, x3, x4, x5, x6 }, 7
#define BUILD_IN_8            (const ir_value_id[]){ x, y, z, x3, x4, x5, x6, x7 }, 8
#define BUILD_IN_VARIADIC     in, count_in

#define BUILD_VALUE(name, inputs)                                                                                   \
    static inline ir_value_id build_##name(ir_builder *b BUILD_PARAMS_##inputs, const attrs_##name *attrs)          \
    { return build_emit(b, OP_##name, attrs, BUILD_IN_##inputs); }
#define BUILD_NODE(name, inputs)                                                                                    \
    static inline ir_node_id build_##name(ir_builder *b BUILD_PARAMS_##inputs, const attrs_##name *attrs,           \
                                          uint32_t count_out)                                                       \
    { return build_node(b, OP_##name, attrs, BUILD_IN_##inputs, count_out); }
#define BUILD_OP_0(name, inputs)                                                                                    \
    static inline ir_node_id build_##name(ir_builder *b BUILD_PARAMS_##inputs, const attrs_##name *attrs)           \
    { return build_node(b, OP_##name, attrs, BUILD_IN_##inputs, 0); }
#define BUILD_OP_1 BUILD_VALUE
#define BUILD_OP_2 BUILD_NODE
#define BUILD_OP_3 BUILD_NODE
#define BUILD_OP_4 BUILD_NODE
#define BUILD_OP_8 BUILD_NODE
#define BUILD_OP_VARIADIC BUILD_NODE
#define OP(name, infer, reference, in_min, in_max, out_min, out_max, ...) BUILD_OP_##out_max(name, in_max)
#include "ops/ops.def"
#undef OP

#define BUILD_SAME(name, arity)                                                                                     \
    static inline ir_value_id build_##name(ir_builder *b BUILD_PARAMS_##arity)                                      \
    { return build_emit(b, OP_##name, NULL, BUILD_IN_##arity); }
#define BUILD_BOOL BUILD_SAME
#define BUILD_TYPED(name, arity)                                                                                    \
    static inline ir_value_id build_##name(ir_builder *b BUILD_PARAMS_##arity, sinter_dtype type)                   \
    { return build_emit(b, OP_##name, &(attrs_typed){ .type = type }, BUILD_IN_##arity); }
#define S(name, arity, types, result, ...) BUILD_##result(name, arity)
#include "ops/scalar.def"
#undef S
/* clang-format on */

#endif
