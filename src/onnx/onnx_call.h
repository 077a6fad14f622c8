/* SPDX-License-Identifier: Apache-2.0 */
/* onnx_call.h - one ONNX node while it is converted: its attributes, what is known of its inputs, its subgraphs.
 *
 * Nodes are made with the builder `b`. Failure is sticky in its `status`: after the first, everything here and there
 * returns 0 and adds nothing, so a conversion reads as a straight line. Pointers to values die when something is added;
 * ids, dims and types do not. */
#ifndef ONNX_CALL_H
#define ONNX_CALL_H

#include "ir/build.h"
#include "onnx/model.h"

struct importer;
struct onnx_scope;
typedef struct onnx_call {
    struct importer   *im;
    struct onnx_scope *scope;
    env               *e;
    ir_builder         b;
    const onnx_node   *node;
    int64_t            version;         /* of the node's opset */
    int64_t            arg;             /* the table row's own */
    uint32_t           count_in, count_out;
    const ir_value_id *in;              /* 0: absent */
    ir_value_id       *out;             /* to be filled; 0: not supported, fails where it is used */
} onnx_call;

#define REJECT(c, code, ...) ((c)->b.status ? (void)0 : (void)((c)->b.status = FAIL((c)->e, code, __VA_ARGS__)))

/* ---- the node ---- */
static inline ir_value_id call_in(const onnx_call *c, uint32_t i) { return i < c->count_in ? c->in[i] : 0; }
bool call_wants(const onnx_call *c, uint32_t output);           /* the model names this output */
const onnx_attr *call_attr(onnx_call *c,
                           const char *name); /* references to a function's attributes are resolved; NULL: absent */
int64_t     call_int(onnx_call *c, const char *name, int64_t initial);
double      call_real(onnx_call *c, const char *name, double initial);
const char *call_text(onnx_call *c, const char *name, const char *initial);
bool        call_ints(onnx_call *c, const char *name, attr_ints *out);      /* false: absent */
bool        call_reals(onnx_call *c, const char *name, attr_reals *out);
bool        call_tensor(onnx_call *c, const onnx_tensor *t, view *out);     /* decoded, for the life of the graph */
bool        call_sparse(onnx_call *c, const onnx_sparse *t, view *out);
sinter_dtype call_dtype(onnx_call *c, int64_t onnx_type);
int64_t     call_axis(onnx_call *c, int64_t axis, uint32_t rank);           /* -rank … rank-1 to 0 … rank-1 */

/* ---- values ---- */
static inline uint32_t call_rank(const onnx_call *c, ir_value_id v) { return ir_value_at(c->b.g, v)->rank; }
static inline dim call_dim(const onnx_call *c, ir_value_id v, uint32_t i) { return ir_value_at(c->b.g, v)->dim[i]; }
static inline sinter_dtype call_type(const onnx_call *c, ir_value_id v) { return ir_value_at(c->b.g, v)->dtype; }
static inline dim call_k(const onnx_call *c, int64_t value) { return dim_const(c->b.g->dims, value); }
uint32_t call_shape(const onnx_call *c, ir_value_id v, dim *out);           /* the rank */
bool call_size(const onnx_call *c, ir_value_id v, uint32_t axis, int64_t *out);     /* false: not constant */
bool call_is_empty(const onnx_call *c, ir_value_id list);                   /* known to have no elements */
/* An input whose last axis has real and imaginary parts: two, as it is made where only a run can tell. */
ir_value_id call_pairs(onnx_call *c, uint32_t input);
/* A list that has to have `want` elements, with that length where only the run knows one; the run checks it. */
ir_value_id call_of_length(onnx_call *c, ir_value_id list, uint32_t want);
/* Constant elements of any integer (float) type; rejects with the input's name where they are unknown or more than
 * `max`. Integers of an empty list are known, constant or not. */
bool call_const_ints(onnx_call *c, ir_value_id v, const char *what, int64_t *out, uint32_t max, uint32_t *count);
bool call_const_reals(onnx_call *c, ir_value_id v, const char *what, double *out, uint32_t max, uint32_t *count);
/* Known integers as expressions; false, and no failure, where they are not known. */
bool call_known(onnx_call *c, ir_value_id v, dim *out, uint32_t max, uint32_t *count);
/* The same, but binds fresh late symbols where they are unknown. bound: what each is at most; DIM_NONE: no idea. */
bool call_sizes(onnx_call *c, ir_value_id v, const char *what, dim bound, dim *out, uint32_t max, uint32_t *count);
/* The same for numbers that may be negative. */
bool call_numbers(onnx_call *c, ir_value_id v, const char *what, dim *out, uint32_t max, uint32_t *count);
dim  call_clamp_min(onnx_call *c, dim a, dim b);                 /* min(a, b), decided by ranges where they tell */
dim  call_clamp_max(onnx_call *c, dim a, dim b);
dim  call_quotient(onnx_call *c, dim a, dim b);                  /* exact where that shows, else floordiv */

/* ---- subgraphs (import_region.c) ---- */
/* The values around the node that a subgraph reads by name, constants left out: appends those that are new. */
typedef struct call_captures {
    ir_value_id *at;
    uint32_t     count, capacity;
    uint32_t    *place, places;         /* by hash of the value: 1 + its index; 0: free */
} call_captures;
void call_capture(onnx_call *c, const onnx_graph *graph, call_captures *captures);
/* Nodes behind an if that are converted in each of its branches, and the names that are read outside of them. */
typedef struct call_tail {
    onnx_graph graph;                   /* has nodes, and what they read */
    onnx_names exports;
} call_tail;
/* A region of `owner` with parameters like `param` (type, dims; for captures also known integers), converted from
 * `graph`, whose own inputs stand for the first count_param of them. The results are the graph's, or where there is a
 * tail, what that exports. */
ir_region_id call_region(onnx_call *c, const onnx_graph *graph, ir_node_id owner, const ir_value *param,
                         uint32_t count_param, const call_captures *captures, const call_tail *tail);
/* Converts `graph` in place, without a region, with in[i] for its input i. */
void call_inline(onnx_call *c, const onnx_graph *graph, const ir_value_id *in, uint32_t count_in, ir_value_id *out,
                 uint32_t count_out);

/* ---- text: constants, or values of the graph, with ids like those of sequences (quirks_text.c, text_value.c) ---- */
typedef struct call_strings {
    ir_value_id      number;            /* text that a Cast makes while the model runs: its numbers */
    ir_value_id      bytes;             /* text that the run has: u8, one axis more (text_value.c). Neither: constant */
    uint32_t         rank;
    int64_t          dim[SINTER_RANK_MAX];
    uint32_t         count;
    const onnx_text *at;                /* NUL-terminated too */
} call_strings;
ir_value_id         call_strings_new(struct importer *im, const call_strings *s);          /* 0: memory ran out */
const call_strings *call_strings_at(const onnx_call *c, ir_value_id v);     /* NULL: v is something else */
/* The elements of a TensorProto of text. */
sinter_status       call_strings_read(struct importer *im, const onnx_tensor *t, call_strings *out);

/* ---- sequences: lists of values that exist while the model is read, with ids of their own kind ---- */
typedef struct call_list {
    bool        is_none;                /* an optional without a value */
    ir_value_id has, inner;             /* an optional of which the run knows whether it has one, and that; 0: is not */
    uint32_t    count;
    const ir_value_id *item;
    const call_strings *strings;        /* a tensor of text, no sequence */
    ir_value_id keys;                   /* maps [N] with these keys [K], text as bytes; item[0]: their values [N, K] */
} call_list;
ir_value_id      call_list_new(onnx_call *c, const ir_value_id *item, uint32_t count, bool is_none);   /* copies */
const call_list *call_list_at(const onnx_call *c, ir_value_id v);           /* NULL: v is a tensor, or 0 */
ir_value_id      call_optional_new(onnx_call *c, ir_value_id inner, ir_value_id has);
ir_value_id      call_maps_new(onnx_call *c, ir_value_id values, ir_value_id keys);

typedef void (*onnx_convert)(onnx_call *c);

#endif
