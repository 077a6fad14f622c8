/* SPDX-License-Identifier: Apache-2.0 */
/* requant.c - recognising the usual end of a product of integers in a program. */
#include "cpu/requant.h"

#include "core/dtype.h"
#include <math.h>
#include <string.h>

/* A program followed from its sums on. Every value on the way has one reader. */
typedef struct path {
    const expr *x;
    const view *in, *out;
    const uint8_t *order;
    uint32_t uses[EXPR_MAX], reader[EXPR_MAX], at;
} path;

static bool path_init(path *p)
{
    uint32_t accs = 0, stores = 0;
    for (uint32_t i = 0; i < p->x->count; i++) {
        const expr_instr *n = &p->x->at[i];
        for (uint32_t k = 0; k < expr_arity(n); k++) {
            p->uses[n->arg[k]]++;
            p->reader[n->arg[k]] = i;
        }
        stores += n->op == EXPR_STORE;
        if (n->op != EXPR_ACC) continue;
        accs++;
        p->at = i;
    }
    return accs == 1 && stores == 1 && p->x->at[p->at].dtype == SINTER_DTYPE_I32;
}

/* The one reader of the value. */
static const expr_instr *next(const path *p)
{
    return p->uses[p->at] == 1 ? &p->x->at[p->reader[p->at]] : NULL;
}

static void step(path *p)
{
    p->at = p->reader[p->at];
}

/* The other argument of a reader with two. */
static uint16_t other(const path *p, const expr_instr *n)
{
    return n->arg[0] == p->at ? n->arg[1] : n->arg[0];
}

static bool imm_f32(const path *p, uint16_t at, float *out)
{
    const expr_instr *n = &p->x->at[at];
    *out = (float)n->imm.f;
    return n->op == EXPR_IMM && n->dtype == SINTER_DTYPE_F32;
}

/* One number, or one for each column: an immediate, or an operand in f32 that is dense along columns. */
static bool is_numbers(const path *p, uint16_t at, uint16_t *operand, float *imm, bool *is_each)
{
    const expr_instr *n = &p->x->at[at];
    *operand = 0;
    *is_each = false;
    if (imm_f32(p, at, imm)) return true;
    if (n->op != EXPR_LOAD || p->in[n->operand].dtype != SINTER_DTYPE_F32) return false;
    const view *v = &p->in[n->operand];
    const uint32_t rank = p->out->rank, col = p->order[rank - 1];
    if (v->rank > rank) return false;
    for (uint32_t i = 0; i < v->rank; i++) {
        const uint32_t axis = rank - v->rank + i;
        if (v->dim[i] == 1) continue;
        if (axis != col || v->stride[i] != 1 || v->dim[i] != p->out->dim[col]) return false;
        *is_each = true;
    }
    *operand = n->operand;
    return true;
}

/* Do rows, walked in the order, lie `pitch` apart, with adjacent columns? */
static bool is_rows(const path *p, const view *v, int64_t *pitch)
{
    const uint32_t rank = p->out->rank;
    if (v->rank != rank) return false;
    for (uint32_t i = 0; i < rank; i++)
        if (v->dim[i] != p->out->dim[i]) return false;
    const uint32_t col = p->order[rank - 1];
    if (v->dim[col] > 1 && v->stride[col] != 1) return false;
    int64_t wanted = 0;
    *pitch = v->dim[col];
    for (uint32_t i = rank - 1; i-- > 0;) {
        const uint32_t axis = p->order[i];
        if (v->dim[axis] == 1) continue;
        if (!wanted) *pitch = wanted = v->stride[axis];
        if (v->stride[axis] != wanted) return false;
        wanted *= v->dim[axis];
    }
    return *pitch >= v->dim[col];
}

/* A residual: codes of 8 bits that lie as rows, dequantised. */
static bool take_residual(const path *p, uint16_t at, requant *r)
{
    const expr_instr *d = &p->x->at[at];
    if (d->op != OP_dequantize || d->dtype != SINTER_DTYPE_F32 || p->uses[at] != 1 || r->add) return false;
    const expr_instr *load = &p->x->at[d->arg[0]], *zero = &p->x->at[d->arg[2]];
    if (load->op != EXPR_LOAD || zero->op != EXPR_IMM || !imm_f32(p, d->arg[1], &r->block.add_scale)) return false;
    const view *v = &p->in[load->operand];
    const bool is_signed = v->dtype == SINTER_DTYPE_I8;
    if ((!is_signed && v->dtype != SINTER_DTYPE_U8) || !is_rows(p, v, &r->block.ld_add) || !load->operand) return false;
    r->add = load->operand;
    r->block.add_flip = is_signed ? 128 : 0;
    r->block.add_zero = (int32_t)zero->imm.i + r->block.add_flip;
    return true;
}

/* May v_div_near() divide by the scale? All quotients of up to 9 bits were compared for all mantissas: one differs. */
static bool is_divisor(float scale)
{
    int exponent;
    return scale > 0x1p-80f && scale < 0x1p80f && frexpf(scale, &exponent) != 1 - 0x1p-24f;
}

static bool take_round_trip(path *p, round_trip *trip)
{
    uint16_t from = 0;
    uint32_t end = p->at;
    do {
        if (p->uses[end] != 1) return false;
        end = p->reader[end];
    } while (p->x->at[end].op == OP_quantize || p->x->at[end].op == OP_clip);
    if (!round_trip_find(p->x, p->uses, end, trip, &from) || from != p->at || !is_divisor(trip->scale)) return false;
    if (fmaxf(-trip->low, trip->high) > 256 * trip->scale) return false; /* codes of more than 8 bits */
    p->at = end;
    return true;
}

/* Bounds of the value so far; the later ones have the last word. */
static bool take_clip(path *p, const expr_instr *n, float *low, float *high)
{
    float a = 0, b = INFINITY;
    if (n->op != OP_relu &&
        !(n->op == OP_clip && n->arg[0] == p->at && imm_f32(p, n->arg[1], &a) && imm_f32(p, n->arg[2], &b) && a <= b))
        return false;
    *low = fminf(fmaxf(*low, a), b);
    *high = fminf(fmaxf(*high, a), b);
    step(p);
    return true;
}

/* Is the value a load of codes, one for each column? */
static bool is_codes(const path *p, uint16_t at, sinter_dtype type)
{
    const expr_instr *n = &p->x->at[at];
    if (n->op != EXPR_LOAD || !n->operand || p->in[n->operand].dtype != type) return false;
    const view *v = &p->in[n->operand];
    const uint32_t rank = p->out->rank, col = p->order[rank - 1];
    if (v->rank > rank) return false;
    bool is_each = false;
    for (uint32_t i = 0; i < v->rank; i++) {
        const uint32_t axis = rank - v->rank + i;
        if (v->dim[i] == 1) continue;
        if (axis != col || v->stride[i] != 1 || v->dim[i] != p->out->dim[col]) return false;
        is_each = true;
    }
    return is_each;
}

/* The last quantising, by numbers of each column. */
static bool take_end_each(path *p, const view *out, requant *r)
{
    const expr_instr *q = next(p);
    const sinter_dtype type = (sinter_dtype)q->dtype;
    float imm;
    bool is_each;
    if (q->arg[0] != p->at || type != out->dtype || (type != SINTER_DTYPE_U8 && type != SINTER_DTYPE_I8)) return false;
    if (!is_numbers(p, q->arg[1], &r->end_scale, &imm, &is_each) || !is_each) return false;
    const expr_instr *zero = &p->x->at[q->arg[2]];
    if (zero->op == EXPR_IMM) r->block.zero = (int32_t)zero->imm.i;
    else if (is_codes(p, q->arg[2], type)) r->end_zero = zero->operand;
    else return false;
    step(p);
    const expr_instr *n = next(p);
    r->block.flip = type == SINTER_DTYPE_I8 ? 128 : 0;
    r->block.high_code = 255;
    r->size = 1;
    return n && n->op == EXPR_STORE && n->operand == 0;
}

static requant_act act_of(uint16_t op)
{
    return op == OP_gelu        ? REQUANT_GELU
           : op == OP_gelu_tanh ? REQUANT_GELU_TANH
           : op == OP_silu      ? REQUANT_SILU
                                : REQUANT_PLAIN;
}

/* The last quantising, with clips of the integer behind it. */
static bool take_end(path *p, const view *out, requant *r)
{
    int64_t low, high;
    const expr_instr *q = next(p);
    round_trip *end = &r->block.end;
    if (q->arg[0] != p->at || p->x->at[q->arg[2]].op != EXPR_IMM || !imm_f32(p, q->arg[1], &end->scale)) return false;
    const sinter_dtype type = (sinter_dtype)q->dtype;
    if (type != out->dtype || (type != SINTER_DTYPE_U8 && type != SINTER_DTYPE_I8)) return false;
    const int64_t zero = p->x->at[q->arg[2]].imm.i;
    dtype_int_range(type, &low, &high);
    step(p);
    const expr_instr *n = next(p);
    for (; n && n->op == OP_clip && n->arg[0] == p->at; n = next(p)) {
        const expr_instr *a = &p->x->at[n->arg[1]], *b = &p->x->at[n->arg[2]];
        if (a->op != EXPR_IMM || b->op != EXPR_IMM || a->imm.i > b->imm.i) return false;
        low = low < a->imm.i ? a->imm.i : low > b->imm.i ? b->imm.i : low;
        high = high < a->imm.i ? a->imm.i : high > b->imm.i ? b->imm.i : high;
        step(p);
    }
    if (!n || n->op != EXPR_STORE || n->operand != 0) return false;
    if (!is_divisor(end->scale)) return false;
    end->inverse = 1 / end->scale;
    const float least = (float)(low - zero) * end->scale, most = (float)(high - zero) * end->scale;
    end->low = fminf(fmaxf(end->low, least), most);
    end->high = fminf(fmaxf(end->high, least), most);
    r->block.zero = (int32_t)zero;
    r->block.flip = type == SINTER_DTYPE_I8 ? 128 : 0;
    r->block.low_code = (uint8_t)((int64_t)nearbyintf(end->low / end->scale) + zero + r->block.flip);
    r->block.high_code = (uint8_t)((int64_t)nearbyintf(end->high / end->scale) + zero + r->block.flip);
    /* What a trip and a residual can bring is not cut off before it becomes an integer. */
    const float most_trip = 257 * fabsf(r->block.trip.back), most_add = r->add ? 512 * fabsf(r->block.add_scale) : 0;
    if (r->block.has_trip && !(most_trip + most_add < 0x1p30f * end->scale)) return false;
    r->size = 1;
    return true;
}

static bool recognise(path *p, requant *r)
{
    requant_block *b = &r->block;
    const expr_instr *n = next(p);
    bool is_each, has_bias = false, has_clip = false;
    float low = -INFINITY, high = INFINITY;
    if (!n || n->op != OP_cast || n->dtype != SINTER_DTYPE_F32) return false;
    step(p);
    n = next(p);
    if (!n || n->op != OP_mul || !is_numbers(p, other(p, n), &r->scale, &r->scale_imm, &b->scale_each)) return false;
    step(p);
    n = next(p);
    if (n && n->op == OP_mul) {
        if (!is_numbers(p, other(p, n), &r->factor, &b->factor, &is_each) || is_each) return false;
        step(p);
    }
    for (n = next(p); n; n = next(p)) {
        if (n->op == EXPR_STORE) {
            if (b->act) return false;
            b->to_f32 = true;
            r->size = sizeof(float);
            b->end = (round_trip){ .low = low, .high = high };
            return n->operand == 0 && p->out->dtype == SINTER_DTYPE_F32;
        }
        if (act_of(n->op) && !b->act && !r->factor && !has_clip && !r->add && !b->has_trip) {
            b->act = (uint8_t)act_of(n->op);
            step(p);
        } else if (n->op == OP_add && !has_bias && !has_clip && !r->add && !b->has_trip && !b->act &&
                   is_numbers(p, other(p, n), &r->bias, &r->bias_imm, &b->bias_each)) {
            has_bias = true;
            step(p);
        } else if (n->op == OP_add && !b->act && (!has_clip || b->has_trip) && take_residual(p, other(p, n), r)) {
            low = -INFINITY;
            high = INFINITY;
            step(p);
        } else if (take_clip(p, n, &low, &high)) {
            has_clip = true;
        } else if (n->op == OP_quantize && !r->add && !b->has_trip && !b->act && take_round_trip(p, &b->trip)) {
            /* What was cut off before the trip is cut off within it. */
            if (!(b->trip.low <= high && low <= b->trip.high)) return false;
            b->trip.low = fmaxf(b->trip.low, low);
            b->trip.high = fminf(b->trip.high, high);
            b->has_trip = true;
            low = -INFINITY;
            high = INFINITY;
        } else if (n->op == OP_quantize && !r->factor && !has_clip && !r->add && !b->has_trip && !b->act &&
                   p->x->at[n->arg[1]].op == EXPR_LOAD) {
            return take_end_each(p, p->out, r);
        } else if (n->op == OP_quantize) {
            b->end = (round_trip){ .low = low, .high = high };
            return take_end(p, p->out, r);
        } else {
            return false;
        }
    }
    return false;
}

void requant_bind(const problem *p, const view *in, const view *out, const uint8_t *order, requant *r)
{
    *r = (requant){ .block = { .factor = 1 } };
    path w = { .x = p->epilogue, .in = in, .out = &out[0], .order = order };
    if (!p->epilogue || p->epilogue->count > EXPR_MAX || p->count_out != 1 || !path_init(&w)) return;
    r->is_on = recognise(&w, r) && is_rows(&w, &out[0], &r->block.ldy);
}

void requant_run(const requant *r, requant_fn *fn, void *const *in, void *const *out, int64_t row, int64_t rows,
                 int64_t col, int64_t cols, const int32_t *sum, int64_t ld, const int32_t *less)
{
    requant_block b = r->block;
    b.sum = sum;
    b.ld = ld;
    b.less = less;
    b.rows = rows;
    b.cols = cols;
    b.scale = r->scale ? (const float *)in[r->scale] + (b.scale_each ? col : 0) : &r->scale_imm;
    b.bias = r->bias ? (const float *)in[r->bias] + (b.bias_each ? col : 0) : &r->bias_imm;
    if (r->end_scale) b.end_scale = (const float *)in[r->end_scale] + col;
    if (r->end_zero) b.end_zero = (const uint8_t *)in[r->end_zero] + col;
    if (r->factor) b.factor = *(const float *)in[r->factor];
    if (r->add) b.add = (const uint8_t *)in[r->add] + row * b.ld_add + col;
    b.y = (char *)out[0] + (row * b.ldy + col) * r->size;
    fn(&b);
}
