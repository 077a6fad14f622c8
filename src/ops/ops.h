/* SPDX-License-Identifier: Apache-2.0 */
/* ops.h - the op table: the only place that knows what Conv means.
 *
 * One row an op (ops.def, scalar.def, attrs.def) expands into the enum, the attribute structs, the table, printer,
 * parser, hash and documentation. Generic code asks traits (traits.def) and attribute descriptors; lists of op ids
 * outside ops are refused (tools/check_op_lists.py). */
#ifndef OPS_OPS_H
#define OPS_OPS_H

#include "base/text.h"
#include "core/dim.h"
#include "core/view.h"

/* clang-format off */
#include "ops/traits.def"
#define X(bit, trait, ...) trait = 1 << (bit),
enum { OP_TRAITS(X) };
#undef X
enum { VARIADIC = 4096, OP_IN_MAX = 4096, OP_OUT_MAX = 4096 };

/* Scalar functions come first, so an op id below OP_SCALAR_COUNT is also a scalar function's id. */
typedef enum op_id {
#define S(name, ...) OP_##name,
#include "ops/scalar.def"
#undef S
    OP_SCALAR_COUNT, OP_before_named = OP_SCALAR_COUNT - 1,
#define OP(name, ...) OP_##name,
#include "ops/ops.def"
#undef OP
    OP_COUNT
} op_id;

#include "ops/attrs.def"
#define ENUM_ITEM(name, item) name##_##item,
#define E(name) typedef enum name { ENUM_##name(ENUM_ITEM, name) name##_count } name;
ATTR_ENUMS(E)
#undef E
/* clang-format on */

enum { ATTR_INTS_MAX = 32, ATTR_REALS_MAX = 16 };
typedef struct attr_ints { uint32_t count; int64_t at[ATTR_INTS_MAX]; } attr_ints;
typedef struct attr_reals { uint32_t count; double at[ATTR_REALS_MAX]; } attr_reals;
/* While a graph is built `at` holds dim ids; in a problem and in a call it holds sizes (in a problem: those at opt, and
 * is_dynamic says that a run may bring others). The array is owned by the arena of whoever made the attrs. */
typedef struct attr_dims { uint32_t count; bool is_dynamic; const int64_t *at; } attr_dims;

typedef enum attr_kind {
    ATTR_INT, ATTR_REAL, ATTR_INTS, ATTR_REALS, ATTR_DIMS, ATTR_TEXT, ATTR_TYPE, ATTR_NAME
} attr_kind;
typedef struct attr_info {
    const char        *name;
    attr_kind          kind;
    size_t             at;              /* offset in the op's attribute struct */
    double             initial;         /* default of INT, REAL, TYPE, NAME */
    const char *const *item;            /* names of a NAME kind's values, NULL-terminated */
} attr_info;

/* struct attrs_<op> for each op of ops.def that has attributes; every NAME kind is stored as int64_t. */
#define ATTR_FIELD_INT(f) int64_t f;
#define ATTR_FIELD_REAL(f) double f;
#define ATTR_FIELD_INTS(f) attr_ints f;
#define ATTR_FIELD_REALS(f) attr_reals f;
#define ATTR_FIELD_DIMS(f) attr_dims f;
#define ATTR_FIELD_TEXT(f) const char *f;
#define ATTR_FIELD_TYPE(f) int64_t f;
#define ATTR_FIELD_NAME(f) int64_t f;
#define ATTR_FIELD(kind, field, initial) ATTR_FIELD_##kind(field)
#define OP(name, ...) typedef struct attrs_##name { ATTRS_##name(ATTR_FIELD) char unused_; } attrs_##name;
#include "ops/ops.def"
#undef OP

/* Of cast, cast_wrap, quantize and dequantize: the type of the result. */
typedef struct attrs_typed { ATTRS_cast(ATTR_FIELD) char unused_; } attrs_typed;

struct infer_ctx;
struct ref_call;
typedef struct op_info {
    const char      *name;
    uint32_t         in_min, in_max, out_min, out_max, regions, traits;
    size_t           attrs_size;        /* 0 for scalar functions, except those with attrs_typed */
    const attr_info *attr;              /* ends with name NULL; never NULL */
    sinter_status  (*infer)(struct infer_ctx *c);
    sinter_status  (*reference)(struct ref_call *c);
} op_info;
const op_info *op_at(op_id op);                                     /* op < OP_COUNT */
bool           op_parse(const char *name, size_t length, op_id *out);
static inline bool op_is_scalar(op_id op) { return op < OP_SCALAR_COUNT; }
/* Has it one of these traits? */
static inline bool op_has(op_id op, uint32_t traits) { return (op_at(op)->traits & traits) != 0; }
/* Is output i the input i with elements replaced, and may it lie in its bytes? */
static inline bool op_updates(op_id op, uint32_t i) { return i < 3 && op_has(op, i ? APPENDS : UPDATES); }
/* May it run in f32, between conversions, where its operands are f16 or bf16? */
static inline bool op_widens(op_id op) { return op_has(op, CONTRACTION | REDUCTION | ROWWISE | WIDENS); }

/* The names of an enum's items, NULL-terminated: attr_items_reduce_kind, … */
#define E(name) extern const char *const attr_items_##name[];
ATTR_ENUMS(E)
#undef E

/* Attribute structs as data. */
/* defaults; NULL when out of memory; never NULL else */
void  *op_attrs_new(arena *a, op_id op);
bool   op_attrs_equal(op_id op, const void *a, const void *b);
uint64_t op_attrs_hash(op_id op, const void *attrs, uint64_t seed);
void  *op_attrs_copy(arena *a, op_id op, const void *attrs);           /* deep */
/* " stride=[1,1] groups=2": those that differ from their default. dims: prints DIMS as expressions; NULL: as integers,
 * with '?' before the list where is_dynamic. */
void   op_attrs_print(op_id op, const void *attrs, const dim_table *dims, text *out);
/* The inverse: reads `name=value` words until one that is no attribute. False: `*why` says what is wrong. */
bool   op_attrs_parse(op_id op, void *attrs, arena *a, dim_table *dims, scan *s, const char **why);

/* ---- scalar functions (scalar.def), the reference of everything elementwise ---- */
typedef union scalar { double f; int64_t i; } scalar;   /* floats in f; integers, bool in i (u64 in its bits) */
typedef struct scalar_info { const char *name; uint32_t arity; char types[4]; char result[6]; } scalar_info;
const scalar_info *scalar_at(op_id op);
/* from: the (common) type of the arguments (of `where`: of a and b; of quantize/dequantize: of x), to: of the result.
 * The result is exact in double or wrapped to the integer type; it is not yet rounded to a narrow float type. */
scalar scalar_eval(op_id op, sinter_dtype from, sinter_dtype to, const scalar *arg);
/* What a result in f32 may be off by on every backend: units of its last place, and `least` whatever its size. */
typedef struct scalar_error { double ulps, least; } scalar_error;
scalar_error scalar_error_of(op_id op);
scalar scalar_load(sinter_dtype dtype, const void *base, int64_t index);
void   scalar_store(sinter_dtype dtype, void *base, int64_t index, scalar value);

/* ---- shape inference ---- */
typedef struct infer_value {
    sinter_dtype dtype;                 /* NONE: an absent optional input */
    uint32_t     rank;
    dim          dim[SINTER_RANK_MAX];
    const void  *data;                  /* constants only: dense row-major bytes, else NULL */
    /* Integer values known as expressions: scalars and lists of at most 64, else NULL */
    const dim   *shape_value;
    uint32_t     shape_count;
} infer_value;

typedef struct infer_ctx {
    env        *e;
    arena      *a;                      /* what outlives the call */
    dim_table  *dims;
    op_id       op;
    const void *attrs;
    uint32_t    count_in, count_out;    /* count_out: how many the node has */
    infer_value *in, *out;              /* out: zeroed; infer fills dtype, rank, dim; shape_value where it can */
    const struct expr *program;         /* of pointwise */
} infer_ctx;
/* Names the op in errors; the caller adds the node. */
sinter_status op_infer(infer_ctx *c);
/* The broadcast of two dims: equal, or one is 1. Of different symbols: dim_broadcast, and the run checks that they go
 * together. False: they are different constants. */
bool infer_broadcast(dim_table *t, dim a, dim b, dim *out);

/* ---- reference kernels ---- */
/* The first bad index of a run: written once, read with the outputs. */
typedef struct data_fault { uint32_t is_set; uint32_t step; int64_t index, value, limit; } data_fault;

typedef struct ref_call {
    env        *e;
    op_id       op;
    const void *attrs;                  /* DIMS hold sizes */
    uint32_t    count_in, count_out;
    const view *in;                     /* dtype NONE where absent */
    /* allocated, any strides; of LATE ops only dtype and rank are set before resize */
    view       *out;
    const struct expr *program;         /* of pointwise */
    bool        in_f32;                 /* as in expr_run */
    arena      *scratch;                /* rewound by the caller after the call */
    data_fault *fault;                  /* may be NULL */
    /* LATE ops: gives out[i] dims and memory (dense). Also for bind: dims are the symbols' values, i is 0,
     * no memory. */
    sinter_status (*resize)(struct ref_call *c, uint32_t i, const int64_t *dim_at, uint32_t count);
    void       *user;                   /* of resize */
} ref_call;
/* Runs the op's reference: readable, strided, accumulating in double. Any thread; no state. */
sinter_status op_reference(ref_call *c);
void ref_fault(ref_call *c, int64_t index, int64_t value, int64_t limit);

/* clang-format off */
#define OP(name, infer, reference, ...)          \
    sinter_status infer_##infer(infer_ctx *c);   \
    sinter_status reference_##reference(ref_call *c);
#include "ops/ops.def"
#undef OP
sinter_status infer_elementwise(infer_ctx *c);
sinter_status reference_elementwise(ref_call *c);
/* clang-format on */

#endif
