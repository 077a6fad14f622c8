/* SPDX-License-Identifier: Apache-2.0 */
/* cuda_emit.c - expression programs as CUDA text over the vocabulary of device/emit.cuh.
 *
 * Each operand and result becomes a walk: for each axis of the space the bytes of one step, which are nothing
 * (broadcast), a number, or a field of the parameters. Text and parameters are both written from the walks, so they
 * agree by construction; bind checks that the views are what the text was written for. */
#include "cuda/cuda_emit.h"

#include "cuda/device/device_args.h"
#include "cuda/emit_codes.h"

#include <inttypes.h>
#include <string.h>

typedef enum step_kind { STEP_NONE, STEP_KNOWN, STEP_FIELD } step_kind;

typedef struct walk {
    const problem_operand *o;
    bool is_out, is_wide; /* wide: offsets may pass 2^31 bytes */
    bool is_staged;       /* it lies where the kernel says */
    uint8_t index, lead;  /* of the operand; axes of the space before its first */
    uint8_t kind[SINTER_RANK_MAX];
    int64_t step[SINTER_RANK_MAX]; /* bytes */
    uint32_t size, vector;         /* bytes of an element; adjacent ones at once */
} walk;

typedef struct walks {
    uint32_t count;
    walk at[2 * EXPR_MAX];
} walks;

/* ---- the space ---- */

static sinter_dtype acc_of(sinter_dtype dtype)
{
    if (dtype == SINTER_DTYPE_F64) return dtype;
    if (dtype_is_float(dtype)) return SINTER_DTYPE_F32;
    return sinter_dtype_bits(dtype) == 64 ? SINTER_DTYPE_I64 : SINTER_DTYPE_I32;
}

void emit_space_of(const problem *p, emit_space *s)
{
    const problem_operand *o = &p->out[0];
    *s = (emit_space){ .p = p, .program = p->epilogue, .prefix = "epi", .rank = o->rank, .width = 8 };
    memcpy(s->dim, o->dim, sizeof s->dim);
    if (o->rank) s->inner = o->order[o->rank - 1];
    /* Axes of one element say nothing about what is adjacent. */
    for (uint32_t i = o->rank; i-- > 0;) {
        if (o->dim[o->order[i]].max == 1) continue;
        s->inner = o->order[i];
        break;
    }
    if (!s->rank) {
        s->rank = 1;
        s->dim[0] = (dim_range){ 1, 1, 1, 1 };
    }
    sinter_dtype dtype = o->dtype;
    for (uint32_t i = 0; p->epilogue && i < p->epilogue->count; i++)
        if (p->epilogue->at[i].op == EXPR_ACC) dtype = (sinter_dtype)p->epilogue->at[i].dtype;
    s->acc = acc_of(dtype);
}

void emit_space_of_prologue(const problem *p, uint8_t inner, uint32_t width, sinter_dtype acc, emit_space *s)
{
    const problem_operand *o = &p->in[0];
    *s = (emit_space){
        .p = p, .program = p->prologue, .prefix = "pro", .rank = o->rank, .inner = inner, .width = width, .acc = acc
    };
    memcpy(s->dim, o->dim, sizeof s->dim);
}

sinter_dtype emit_input_type(const problem *p)
{
    for (uint32_t i = 0; p->prologue && i < p->prologue->count; i++)
        if (p->prologue->at[i].op == EXPR_STORE) return (sinter_dtype)p->prologue->at[i].dtype;
    return p->in[0].dtype;
}

/* ---- walks ---- */

static bool range_equal(dim_range a, dim_range b)
{
    return a.min == b.min && a.max == b.max && a.divisor == b.divisor;
}

/* Bytes from one element to the next along `axis`; false where sizes that vary decide it. */
static bool dense_step(const problem_operand *o, uint32_t axis, uint32_t size, int64_t *step)
{
    *step = size;
    for (uint32_t i = o->rank; i-- > 0 && o->order[i] != axis;) {
        const dim_range d = o->dim[o->order[i]];
        if (!problem_dim_is_static(d) || !i64_mul(*step, d.max, step)) return false;
    }
    return true;
}

/* The axis along which elements are adjacent where it is not gapped. */
static uint32_t innermost(const problem_operand *o)
{
    for (uint32_t i = o->rank; i-- > 0;)
        if (o->dim[o->order[i]].max != 1) return o->order[i];
    return 0;
}

static bool is_moving(const emit_space *s, const walk *w)
{
    bool moves = false;
    for (uint32_t axis = 0; axis < s->rank; axis++) moves |= (s->turns >> axis & 1u) && w->kind[axis] != STEP_NONE;
    return moves;
}

static void walk_init(const emit_space *s, bool is_out, uint32_t index, walk *w)
{
    const problem_operand *o = is_out ? &s->p->out[index] : &s->p->in[index];
    *w = (walk){ .o = o, .is_out = is_out, .index = (uint8_t)index, .size = sinter_dtype_bits(o->dtype) / 8 };
    w->lead = (uint8_t)(s->rank - o->rank);
    int64_t bytes = w->size;
    w->is_wide = o->is_strided;
    for (uint32_t i = 0; i < o->rank; i++)
        if (!i64_mul(bytes, o->dim[i].max, &bytes) || bytes > INT32_MAX) w->is_wide = true;
    for (uint32_t i = 0; i < o->rank; i++) {
        const uint32_t axis = w->lead + i;
        const dim_range d = o->dim[i];
        if (d.max == 1) continue;
        /* A size that may be 1 may be repeated. Where it has the range of the space along the vectors it is taken to
         * be the same size; bind checks that. */
        const bool may_repeat = !is_out && d.min <= 1 && !(axis == s->inner && range_equal(d, s->dim[axis]));
        bool is_known = false;
        if (o->is_strided) {
            is_known = !o->is_gapped && i == innermost(o);
            w->step[axis] = w->size;
        } else {
            is_known = dense_step(o, i, w->size, &w->step[axis]);
        }
        w->kind[axis] = is_known && !may_repeat ? STEP_KNOWN : STEP_FIELD;
    }
    uint32_t most = 16 / w->size;
    if (most > s->width) most = s->width;
    w->is_staged = s->is_staged && (is_out || is_moving(s, w));
    const bool is_adjacent = w->kind[s->inner] == STEP_KNOWN && w->step[s->inner] == w->size;
    w->vector = w->is_staged ? most : is_adjacent ? cuda_operand_vector(o, most) : 1;
}

static uint32_t walk_find(const walks *w, bool is_out, uint32_t index)
{
    uint32_t i = 0;
    while (i < w->count && (w->at[i].is_out != is_out || w->at[i].index != index)) i++;
    return i;
}

static void walk_add(const emit_space *s, walks *w, bool is_out, uint32_t index)
{
    if (walk_find(w, is_out, index) == w->count) walk_init(s, is_out, index, &w->at[w->count++]);
}

static bool is_prologue(const emit_space *s)
{
    return s->prefix[0] == 'p';
}

static void walks_init(const emit_space *s, walks *w)
{
    w->count = 0;
    if (!s->program) walk_add(s, w, true, 0);
    for (uint32_t i = 0; s->program && i < s->program->count; i++) {
        const expr_instr *n = &s->program->at[i];
        if (n->op == EXPR_LOAD) walk_add(s, w, false, n->operand);
        if (n->op == EXPR_STORE && !is_prologue(s)) walk_add(s, w, true, n->operand);
    }
}

/* ---- what changes from turn to turn ---- */

enum fetch_part { FETCH_ALL, FETCH_STILL, FETCH_MOVING };

static bool is_fetched(const emit_space *s, const walk *w, enum fetch_part part)
{
    return !w->is_out && (part == FETCH_ALL || is_moving(s, w) == (part == FETCH_MOVING));
}

/* ---- reject ---- */

static bool is_served(sinter_dtype dtype)
{
    return dtype > SINTER_DTYPE_NONE && sinter_dtype_bits(dtype) >= 8;
}

static const char *reject_operand(const emit_space *s, const problem_operand *o)
{
    if (!is_served(o->dtype)) return "a type under a byte";
    return o->rank <= s->rank ? NULL : "an operand of more axes than the space";
}

const char *emit_reject(const emit_space *s)
{
    uint32_t stores = 0;
    if (!s->program) return reject_operand(s, &s->p->out[0]);
    for (uint32_t i = 0; i < s->program->count; i++) {
        const expr_instr *n = &s->program->at[i];
        const char *why = NULL;
        if (n->op == EXPR_REDUCE) return "a program that reduces";
        if (!is_served((sinter_dtype)n->dtype)) return "a type under a byte";
        if (n->op == EXPR_LOAD) why = reject_operand(s, &s->p->in[n->operand]);
        if (n->op == EXPR_STORE && !is_prologue(s)) why = reject_operand(s, &s->p->out[n->operand]);
        if (why) return why;
        stores += n->op == EXPR_STORE;
    }
    return is_prologue(s) && stores != 1 ? "a prologue that does not have one result" : NULL;
}

const char *emit_reject_prologue(const emit_space *s)
{
    enum { OPERANDS = 6 };
    uint32_t loads = 0;
    for (uint32_t i = 0; i < s->program->count; i++) loads += s->program->at[i].op == EXPR_LOAD;
    return loads > OPERANDS ? "a prologue of more than 6 operands" : emit_reject(s);
}

/* ---- parameters ---- */

/* Fields in order: addresses, then steps of 8 bytes, then steps of 4. Calls `field` for each. */
typedef struct layout {
    const emit_space *s;
    text *out;
    size_t at;
    uint8_t *bytes; /* bind: the parameter */
    const view *const *view_at;
    cuda_record *r;
} layout;

static void put_field(layout *l, const walk *w, uint32_t id, uint32_t axis)
{
    const size_t size = w->is_wide ? 8 : 4;
    if (l->out) text_printf(l->out, "    %s s%" PRIu32 "_%" PRIu32 ";\n", w->is_wide ? "wide" : "small", id, axis);
    if (l->bytes) {
        const view *v = l->view_at[id];
        const uint32_t own = axis - w->lead;
        const int64_t step = v->dim[own] <= 1 ? 0 : v->stride[own] * (int64_t)w->size;
        const int32_t narrow = (int32_t)step;
        memcpy(l->bytes + l->at, w->is_wide ? (const void *)&step : (const void *)&narrow, size);
    }
    l->at += size;
}

static void put_fields(layout *l, const walks *w)
{
    for (uint32_t i = 0; i < w->count; i++) {
        if (w->at[i].is_staged) continue;
        if (l->out) text_printf(l->out, "    address p%" PRIu32 ";\n", i);
        if (l->bytes) {
            const patch_kind kind = w->at[i].is_out ? PATCH_OUT : PATCH_IN;
            cuda_patch_add(l->r, l->bytes, l->at, kind, w->at[i].index, 0);
        }
        l->at += 8;
    }
    for (uint32_t pass = 0; pass < 2; pass++)
        for (uint32_t i = 0; i < w->count; i++)
            for (uint32_t axis = 0; axis < l->s->rank; axis++)
                if (w->at[i].kind[axis] == STEP_FIELD && w->at[i].is_wide == !pass && !w->at[i].is_staged)
                    put_field(l, &w->at[i], i, axis);
    if (l->at) return;
    if (l->out) text_printf(l->out, "    small none;\n");
    l->at += 4;
}

static sinter_status check_view(env *e, const emit_space *s, const walk *w, const view *v, int64_t inner)
{
    if (v->rank != w->o->rank || v->dtype != w->o->dtype)
        return FAIL(e, INTERNAL, "%s %u of a generated kernel has rank %u and type %s, wanted %u and %s",
                    w->is_out ? "result" : "operand", w->index, v->rank, sinter_dtype_name(v->dtype), w->o->rank,
                    sinter_dtype_name(w->o->dtype));
    /* Nothing is read or written: strides say nothing. */
    if (inner == 0 || view_count(v) == 0) return SINTER_OK;
    for (uint32_t i = 0; i < v->rank; i++) {
        const uint32_t axis = w->lead + i;
        if (w->kind[axis] == STEP_NONE && v->dim[i] != 1)
            return FAIL(e, INTERNAL, "axis %u of operand %u has size %" PRId64 ", the kernel was made for 1", i,
                        w->index, v->dim[i]);
        if (w->kind[axis] != STEP_KNOWN) continue;
        if (axis == s->inner && v->dim[i] != inner)
            return FAIL(e, INVALID_ARG,
                        "axis %u of operand %u has size %" PRId64 " and is repeated %" PRId64
                        " times; the kernel was made for equal sizes",
                        i, w->index, v->dim[i], inner);
        if (v->dim[i] > 1 && v->stride[i] * (int64_t)w->size != w->step[axis])
            return FAIL(e, INTERNAL, "axis %u of operand %u has a stride of %" PRId64 " elements, wanted %" PRId64, i,
                        w->index, v->stride[i], w->step[axis] / (int64_t)w->size);
    }
    return SINTER_OK;
}

uint32_t emit_operand_words(const emit_space *s, bool moving)
{
    walks w;
    uint32_t words = 0;
    walks_init(s, &w);
    for (uint32_t i = 0; i < w.count; i++) {
        if (!is_fetched(s, &w.at[i], moving ? FETCH_MOVING : FETCH_STILL)) continue;
        const uint32_t count = w.at[i].kind[s->inner] == STEP_NONE ? 1 : s->width;
        words += (w.at[i].size * count + 3) / 4;
    }
    return words;
}

uint32_t emit_moving(const emit_space *s, uint8_t *operand)
{
    walks w;
    uint32_t count = 0;
    walks_init(s, &w);
    for (uint32_t i = 0; i < w.count; i++) {
        if (!is_fetched(s, &w.at[i], FETCH_MOVING)) continue;
        if (!count++) *operand = w.at[i].index;
    }
    return count;
}

sinter_status emit_bind(env *e, const emit_space *s, const view *in, const view *out, cuda_record *r)
{
    walks w;
    const view *view_at[2 * EXPR_MAX];
    int64_t inner = 1;
    walks_init(s, &w);
    for (uint32_t i = 0; i < w.count; i++) {
        const walk *own = &w.at[i];
        view_at[i] = own->is_out ? &out[own->index] : &in[own->index];
        if (own->lead > s->inner || view_at[i]->rank != own->o->rank) continue;
        const int64_t size = view_at[i]->dim[s->inner - own->lead];
        if (size != 1) inner = size;
    }
    for (uint32_t i = 0; i < w.count; i++) TRY(check_view(e, s, &w.at[i], view_at[i], inner));
    layout l = { .s = s };
    put_fields(&l, &w);
    void *param = cuda_param_add(r, size_align(l.at, 8));
    if (!param || r->patch_count + w.count > RECORD_PATCHES)
        return FAIL(e, UNSUPPORTED, "a program of %u operands and results has too many parameters for a launch",
                    w.count);
    layout fill = { .s = s, .bytes = param, .view_at = view_at, .r = r };
    put_fields(&fill, &w);
    return SINTER_OK;
}

/* ---- text of instructions ---- */

const char *emit_stored(sinter_dtype dtype)
{
    return dtype == SINTER_DTYPE_F32 ? "float" : dtype == SINTER_DTYPE_F64 ? "double" : sinter_dtype_name(dtype);
}

const char *emit_carrier(sinter_dtype dtype)
{
    switch (dtype) {
    case SINTER_DTYPE_F64: return "double";
    case SINTER_DTYPE_U32: return "u32";
    case SINTER_DTYPE_I64: return "i64";
    case SINTER_DTYPE_U64: return "u64";
    default: return dtype_is_float(dtype) ? "float" : "i32";
    }
}

static bool is_narrow_float(sinter_dtype dtype)
{
    return dtype == SINTER_DTYPE_F16 || dtype == SINTER_DTYPE_BF16;
}

static bool has_narrow_form(op_id op)
{
    switch (op) {
    case OP_exp:
    case OP_sigmoid:
    case OP_silu:
    case OP_gelu:
    case OP_gelu_tanh:
    case OP_tanh: return true;
    default: return false;
    }
}

static const char *infix_of(op_id op)
{
    switch (op) {
    case OP_add: return "+";
    case OP_sub: return "-";
    case OP_mul: return "*";
    case OP_div: return "/";
    case OP_eq: return "==";
    case OP_lt: return "<";
    case OP_le: return "<=";
    case OP_gt: return ">";
    case OP_ge: return ">=";
    case OP_and: return "&&";
    case OP_or: return "||";
    case OP_bit_and: return "&";
    case OP_bit_or: return "|";
    case OP_bit_xor: return "^";
    default: return NULL;
    }
}

static void put_quantize(const expr *x, const expr_instr *n, text *out)
{
    const uint32_t a = n->arg[0], b = n->arg[1], c = n->arg[2];
    const sinter_dtype from = (sinter_dtype)x->at[a].dtype, to = (sinter_dtype)n->dtype;
    const char *name = sinter_dtype_name(to);
    const bool is_f64 = from == SINTER_DTYPE_F64;
    const bool is_plain = emit_is_exact_in_f32(from) && x->at[b].dtype != SINTER_DTYPE_F64;
    text_printf(out, "emit_%s_%s(", dtype_is_float(to) ? "cast" : "quantized", name);
    const char *sum = !is_f64 && emit_is_exact_in_f32(to) && !dtype_is_float(to) ? "float" : "double";
    if (!dtype_is_float(to)) text_printf(out, "op_round(");
    float reciprocal;
    if (is_plain && !dtype_is_float(to) && sinter_dtype_bits(to) <= 16 && emit_has_reciprocal(&x->at[b], &reciprocal)) {
        uint32_t bits;
        memcpy(&bits, &reciprocal, sizeof bits);
        text_printf(out, "emit_quotient((float)t%u, t%u, float_of_bits(0x%08" PRIx32 "u))", a, b, bits);
    } else if (is_plain) text_printf(out, "(%s)((float)t%u / t%u)", sum, a, b);
    else text_printf(out, "(%s)(%s)((double)t%u / (double)t%u)", sum, is_f64 ? "double" : "float", a, b);
    if (!dtype_is_float(to)) text_printf(out, ")");
    text_printf(out, " + (%s)t%u)", sum, c);
}

static void put_dequantize(const expr *x, const expr_instr *n, text *out)
{
    const uint32_t a = n->arg[0], b = n->arg[1], c = n->arg[2];
    const sinter_dtype from = (sinter_dtype)x->at[a].dtype, to = (sinter_dtype)n->dtype;
    const bool is_plain = emit_is_exact_in_f32(from) && to != SINTER_DTYPE_F64 && x->at[b].dtype != SINTER_DTYPE_F64;
    const char *name = sinter_dtype_name(to);
    if (is_plain) text_printf(out, "emit_cast_%s((float)(t%u - t%u) * t%u)", name, a, c, b);
    else text_printf(out, "emit_cast_%s(((double)t%u - (double)t%u) * (double)t%u)", name, a, c, b);
}

static void put_function(const expr *x, const expr_instr *n, text *out)
{
    const op_id op = (op_id)n->op;
    const sinter_dtype to = (sinter_dtype)n->dtype, from = (sinter_dtype)x->at[n->arg[op == OP_where]].dtype;
    const uint32_t arity = scalar_at(op)->arity, a = n->arg[0], b = n->arg[1], c = n->arg[2];
    const char *infix = infix_of(op), *name = sinter_dtype_name(to);
    /* Sums, products and quotients of integers wrap. */
    const bool is_arithmetic = op == OP_add || op == OP_sub || op == OP_mul || op == OP_div;
    switch (op) {
    case OP_identity: text_printf(out, "t%u", a); return;
    case OP_cast:
    case OP_cast_wrap: {
        /* Only floats of 8 bits tell them apart. */
        const bool wraps = op == OP_cast_wrap && dtype_is_float(to) && sinter_dtype_bits(to) == 8;
        text_printf(out, "emit_%s_%s(t%u)", wraps ? "wrap" : "cast", name, a);
        return;
    }
    case OP_where: text_printf(out, "t%u ? t%u : t%u", a, b, c); return;
    case OP_not: text_printf(out, "!t%u", a); return;
    case OP_xor: text_printf(out, "!t%u != !t%u", a, b); return;
    case OP_bit_not: text_printf(out, "emit_cast_%s(~t%u)", name, a); return;
    case OP_quantize: put_quantize(x, n, out); return;
    case OP_dequantize: put_dequantize(x, n, out); return;
    default: break;
    }
    if (infix && (!is_arithmetic || dtype_is_float(from))) {
        text_printf(out, "t%u %s t%u", a, infix, b);
        return;
    }
    const bool wraps = dtype_is_int(to) && sinter_dtype_bits(to) < 32;
    if (wraps) text_printf(out, "emit_cast_%s(", name);
    text_printf(out, "op_%s%s(", scalar_at(op)->name, is_narrow_float(to) && has_narrow_form(op) ? "_narrow" : "");
    for (uint32_t i = 0; i < arity; i++) text_printf(out, "%st%u", i ? ", " : "", n->arg[i]);
    if (op == OP_shift_left || op == OP_shift_right) text_printf(out, ", %u", sinter_dtype_bits(from));
    text_printf(out, wraps ? "))" : ")");
}

static void put_imm(const expr_instr *n, text *out)
{
    const sinter_dtype dtype = (sinter_dtype)n->dtype;
    if (dtype == SINTER_DTYPE_F64) {
        uint64_t bits;
        memcpy(&bits, &n->imm.f, sizeof bits);
        text_printf(out, "double_of_bits(0x%016" PRIx64 "ull)", bits);
    } else if (dtype_is_float(dtype)) {
        const float f = (float)n->imm.f;
        uint32_t bits;
        memcpy(&bits, &f, sizeof bits);
        text_printf(out, "float_of_bits(0x%08" PRIx32 "u)", bits);
    } else {
        text_printf(out, "(%s)0x%" PRIx64 "ull", emit_carrier(dtype), (uint64_t)n->imm.i);
    }
}

static void put_acc(sinter_dtype dtype, text *out)
{
    if (dtype_is_float(dtype)) text_printf(out, "(%s)v[k]", emit_carrier(dtype));
    else text_printf(out, "emit_cast_%s(v[k])", sinter_dtype_name(dtype));
}

/* Whether results may be codes: bytes in memory, or the floats that a prologue hands over. */
static bool stores_codes(const emit_space *s)
{
    return !is_prologue(s) || s->acc == SINTER_DTYPE_F32;
}

/* The instructions of one element, then y (or v) of it. */
static void put_element(const emit_space *s, const walks *w, text *out)
{
    const expr *x = s->program;
    emit_codes codes;
    emit_codes_find(x, stores_codes(s), &codes);
    if (!x) {
        text_printf(out, "        y0[k] = ");
        put_acc(s->p->out[0].dtype, out);
        text_printf(out, ";\n");
        return;
    }
    for (uint32_t i = 0; i < x->count; i++) {
        const expr_instr *n = &x->at[i];
        const sinter_dtype dtype = (sinter_dtype)n->dtype;
        if (n->op == EXPR_STORE) {
            /* Storing rounds, or the anchor does: a cast to the stored type before it would do so twice. */
            const expr_instr *last = &x->at[n->arg[0]];
            const bool is_cast = last->op == OP_cast && is_narrow_float(dtype) && last->dtype == n->dtype &&
                                 strcmp(emit_carrier((sinter_dtype)x->at[last->arg[0]].dtype), "float") == 0 &&
                                 (s->is_rounded || !is_prologue(s));
            const uint32_t from = is_cast ? last->arg[0] : n->arg[0];
            if (codes.is_code[n->arg[0]]) {
                if (is_prologue(s)) text_printf(out, "        v[k] = ");
                else text_printf(out, "        y%u[k] = ", walk_find(w, true, n->operand));
                (is_prologue(s) ? emit_code_value : emit_code_store)(x, n, out);
                text_printf(out, ";\n");
            } else if (is_prologue(s)) text_printf(out, "        v[k] = (%s_acc)t%u;\n", s->prefix, from);
            else text_printf(out, "        y%u[k] = t%u;\n", walk_find(w, true, n->operand), from);
            continue;
        }
        text_printf(out, "        const %s t%u = ", codes.is_code[i] ? "float" : emit_carrier(dtype), i);
        if (n->op == EXPR_ACC) {
            put_acc(dtype, out);
        } else if (n->op == EXPR_LOAD) {
            const uint32_t id = walk_find(w, false, n->operand);
            text_printf(out, "emit_%s_%s(x.w%u, %s)", codes.is_code[i] ? "code" : "get",
                        sinter_dtype_name(w->at[id].o->dtype), id, w->at[id].kind[s->inner] == STEP_NONE ? "0" : "k");
        } else if (n->op == EXPR_IMM) {
            put_imm(n, out);
        } else if (n->op == OP_cast && dtype == SINTER_DTYPE_F32 && s->acc == SINTER_DTYPE_F32 &&
                   x->at[n->arg[0]].op == EXPR_ACC && x->at[n->arg[0]].dtype == SINTER_DTYPE_I32) {
            text_printf(out, "v[k]"); /* an integer that the kernel summed up in f32 */
        } else if (codes.is_code[i]) {
            emit_code_quantize(x, n, out);
        } else if (n->op == OP_dequantize && codes.is_code[n->arg[0]]) {
            emit_code_dequantize(x, n, out);
        } else {
            put_function(x, n, out);
        }
        text_printf(out, ";\n");
    }
}

/* ---- text ---- */

/* The bytes of one step along an axis. */
static void put_step(const walk *w, uint32_t id, uint32_t axis, text *out)
{
    if (w->kind[axis] == STEP_KNOWN) text_printf(out, "%" PRId64, w->step[axis]);
    else if (w->kind[axis] == STEP_FIELD) text_printf(out, "a.s%u_%u", id, axis);
    else text_printf(out, "0");
}

static void put_begin(const emit_space *s, const walks *w, text *out)
{
    text_printf(out,
                "DEVICE void %s_begin(const %s_args &a, %s_row &r, const i32 (&at)[%u])\n"
                "{\n",
                s->prefix, s->prefix, s->prefix, s->rank);
    for (uint32_t i = 0; i < w->count; i++) {
        const walk *own = &w->at[i];
        if (own->is_staged) continue;
        text_printf(out, "    r.p%u = (%su8 *)a.p%u", i, own->is_out ? "" : "const ", i);
        const char *sign = " + (";
        for (uint32_t axis = 0; axis < s->rank; axis++) {
            if (own->kind[axis] == STEP_NONE) continue;
            text_printf(out, "%s%sat[%u] * ", sign, own->is_wide ? "(i64)" : "", axis);
            put_step(own, i, axis, out);
            sign = " + ";
        }
        text_printf(out, sign[3] == '(' ? ";\n" : ");\n");
    }
    text_printf(out, "}\n");
}

static void put_position(const emit_space *s, const walk *w, uint32_t id, text *out)
{
    if (w->is_staged) {
        text_printf(out, "r.staged, %u", w->size);
        return;
    }
    text_printf(out, "r.p%u", id);
    if (w->kind[s->inner] != STEP_NONE) {
        text_printf(out, " + %si * ", w->is_wide ? "(i64)" : "");
        put_step(w, id, s->inner, out);
    }
    text_printf(out, ", ");
    put_step(w, id, s->inner, out);
}

static void put_fetch_of(const emit_space *s, const walks *w, const char *suffix, enum fetch_part part, text *out)
{
    text_printf(out,
                "template <int V> DEVICE void %s_fetch%s(const %s_args &a, const %s_row &r, i32 i, i32 n, "
                "%s_regs<V> &x)\n"
                "{\n",
                s->prefix, suffix, s->prefix, s->prefix, s->prefix);
    for (uint32_t i = 0; i < w->count; i++) {
        const walk *own = &w->at[i];
        if (!is_fetched(s, own, part)) continue;
        if (own->kind[s->inner] == STEP_NONE) text_printf(out, "    emit_load<%u, 1, 1>(x.w%u, ", own->size, i);
        else text_printf(out, "    emit_load<%u, V, %u>(x.w%u, ", own->size, own->vector, i);
        put_position(s, own, i, out);
        text_printf(out, ", n);\n");
    }
    text_printf(out, "}\n");
}

static void put_fetch(const emit_space *s, const walks *w, text *out)
{
    text_printf(out, "template <int V> struct %s_regs {\n", s->prefix);
    for (uint32_t i = 0; i < w->count; i++) {
        const walk *own = &w->at[i];
        if (own->is_out) continue;
        if (own->kind[s->inner] == STEP_NONE) text_printf(out, "    u32 w%u[EMIT_WORDS(%u, 1)];\n", i, own->size);
        else text_printf(out, "    u32 w%u[EMIT_WORDS(%u, V)];\n", i, own->size);
    }
    text_printf(out, "};\n");
    put_fetch_of(s, w, "", FETCH_ALL, out);
    if (!s->turns) return;
    put_fetch_of(s, w, "_still", FETCH_STILL, out);
    put_fetch_of(s, w, "_moving", FETCH_MOVING, out);
    text_printf(out,
                "template <int V> DEVICE void %s_keep(const %s_regs<V> &x, %s_regs<V> &y)\n"
                "{\n",
                s->prefix, s->prefix, s->prefix);
    for (uint32_t i = 0; i < w->count; i++)
        if (is_fetched(s, &w->at[i], FETCH_STILL))
            text_printf(out,
                        "#pragma unroll\n"
                        "    for (int k = 0; k < (int)(sizeof x.w%u / 4); k++) y.w%u[k] = x.w%u[k];\n",
                        i, i, i);
    text_printf(out, "}\n");
}

static void put_apply(const emit_space *s, const walks *w, text *out)
{
    text_printf(out,
                "template <int V> DEVICE void %s_apply(const %s_args &a, const %s_row &r, i32 i, i32 n, const "
                "%s_regs<V> &x, %s_acc (&v)[V])\n"
                "{\n",
                s->prefix, s->prefix, s->prefix, s->prefix, s->prefix);
    bool is_code[2 * EXPR_MAX] = { false };
    emit_codes codes;
    emit_codes_find(s->program, stores_codes(s), &codes);
    for (uint32_t i = 0; s->program && i < s->program->count; i++) {
        const expr_instr *n = &s->program->at[i];
        if (n->op == EXPR_STORE && !is_prologue(s) && codes.is_code[n->arg[0]])
            is_code[walk_find(w, true, n->operand)] = true;
    }
    for (uint32_t i = 0; i < w->count; i++)
        if (w->at[i].is_out)
            text_printf(out, "    %s y%u[V];\n", is_code[i] ? "float" : emit_carrier(w->at[i].o->dtype), i);
    text_printf(out, "#pragma unroll\n"
                     "    for (int k = 0; k < V; k++) {\n");
    put_element(s, w, out);
    text_printf(out, "    }\n");
    for (uint32_t i = 0; i < w->count; i++) {
        const walk *own = &w->at[i];
        if (!own->is_out) continue;
        text_printf(out,
                    "    u32 z%u[EMIT_WORDS(%u, V)];\n"
                    "    emit_pack_%s<V>(z%u, y%u);\n"
                    "    emit_store<%u, V, %u>(z%u, ",
                    i, own->size, is_code[i] ? "code" : sinter_dtype_name(own->o->dtype), i, i, own->size, own->vector,
                    i);
        put_position(s, own, i, out);
        text_printf(out, ", n);\n");
    }
    text_printf(out, "}\n");
}

void emit_text(const emit_space *s, text *out)
{
    walks w;
    char upper[16] = "";
    for (uint32_t i = 0; s->prefix[i] && i + 1 < sizeof upper; i++)
        upper[i] = (char)(s->prefix[i] >= 'a' ? s->prefix[i] - 32 : s->prefix[i]);
    walks_init(s, &w);
    text_printf(out,
                "#include \"emit.cuh\"\n"
                "#define %s_RANK %u\n"
                "typedef %s %s_acc;\n"
                "struct %s_args {\n",
                upper, s->rank, emit_carrier(s->acc), s->prefix, s->prefix);
    layout l = { .s = s, .out = out };
    put_fields(&l, &w);
    if (l.at % 8) text_printf(out, "    small tail;\n");
    text_printf(out,
                "};\n"
                "struct %s_row {\n",
                s->prefix);
    for (uint32_t i = 0; i < w.count; i++)
        if (!w.at[i].is_staged) text_printf(out, "    %su8 *p%u;\n", w.at[i].is_out ? "" : "const ", i);
    if (s->is_staged) text_printf(out, "    u8 *staged;\n");
    text_printf(out, "};\n");
    uint32_t moving = 0;
    for (uint32_t i = 0; i < w.count; i++) moving += is_fetched(s, &w.at[i], FETCH_MOVING);
    if (s->turns) text_printf(out, "#define %s_MOVING %" PRIu32 "\n", upper, moving);
    put_begin(s, &w, out);
    put_fetch(s, &w, out);
    put_apply(s, &w, out);
    text_printf(out,
                "template <int V> DEVICE void %s_run(const %s_args &a, const %s_row &r, i32 i, i32 n, %s_acc (&v)[V])\n"
                "{\n"
                "    %s_regs<V> x;\n"
                "    %s_fetch(a, r, i, n, x);\n"
                "    %s_apply(a, r, i, n, x, v);\n"
                "}\n",
                s->prefix, s->prefix, s->prefix, s->prefix, s->prefix, s->prefix, s->prefix);
}
