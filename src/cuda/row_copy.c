/* SPDX-License-Identifier: Apache-2.0 */
/* row_copy.c - ops that lay elements out anew: each is one view of the source and one of the destination.
 *
 * The views are made when the shapes are known, joined and ordered as the destination lies in memory, and cut into
 * units of up to 16 bytes; the code knows nothing of them, so one compilation copies everything. Where the innermost
 * axes differ the other tactics turn blocks over in shared memory. */
#include "cuda/copy.h"
#include "cuda/copy_move.h"
#include "cuda/cuda_kernels.h"

#include "cuda/device/copy_args.h"

#include <string.h>

typedef struct copy_tactic {
    uint8_t side; /* of blocks that are turned over, in elements; 0: plain */
    uint8_t zero[TACTIC_SIZE - 1];
} copy_tactic;
_Static_assert(sizeof(copy_tactic) == TACTIC_SIZE, "a tactic");
static const tactic_field fields[] = { FIELD(copy_tactic, side, 0, 64) };

enum { COPY_JOBS = 6, CONCAT_PARTS = 60, COPY_BLOCK = 256 };

_Static_assert(COPY_JOBS * sizeof(struct copy_job) <= RECORD_ARGS, "what one launch may have for parameters");

/* ---- what is copied ---- */

static bool is_served(const problem *p)
{
    switch (p->op) {
    case OP_copy:
    case OP_bit_cast:
    case OP_reshape:
    case OP_transpose:
    case OP_slice:
    case OP_expand:
    case OP_tile:
    case OP_concat: return true;
    default: return false;
    }
}

/* All parts and the result are dense in one order: the code for rows side by side serves. */
static bool is_rows(const problem *p)
{
    if (p->op != OP_concat || p->count_in > CONCAT_PARTS || p->out[0].is_strided) return false;
    for (uint32_t i = 0; i < p->count_in; i++)
        if (p->in[i].is_strided || p->in[i].rank != p->out[0].rank ||
            memcmp(p->in[i].order, p->out[0].order, p->out[0].rank) != 0)
            return false;
    return true;
}

/* An axis that is repeated is two. */
static uint32_t tile_axes(const problem *p)
{
    const attrs_tile *a = p->attrs;
    uint32_t count = 0;
    for (uint32_t i = 0; i < p->in[0].rank; i++) {
        const bool is_kept = a->repeats.count > i && !a->repeats.is_dynamic && a->repeats.at[i] == 1;
        count += (p->in[0].dim[i].max != 1 ? 1u : 0u) + (is_kept ? 0u : 1u);
    }
    return count;
}

static const char *reject(const problem *p, const kernel_target *t)
{
    (void)t;
    REJECT_UNLESS(is_served(p), "not a copy");
    REJECT_UNLESS(!p->prologue && !p->epilogue, "a copy with a program");
    REJECT_UNLESS(sinter_dtype_bits(p->out[0].dtype) >= 8, "a type under a byte");
    REJECT_UNLESS(p->op == OP_concat || p->count_in == 1, "operands beyond those of the op");
    REJECT_UNLESS(p->op != OP_concat || p->count_in <= COPY_JOBS || is_rows(p), "more parts than one launch copies");
    REJECT_UNLESS(p->op != OP_tile || tile_axes(p) <= COPY_AXES, "a repetition of too many axes");
    for (uint32_t i = 0; i < p->count_in; i++) REJECT_UNLESS(p->in[i].dtype != SINTER_DTYPE_NONE, "an absent operand");
    return NULL;
}

/* The axes that are not of one element, innermost first. */
static uint32_t long_axes(const problem_operand *o, uint8_t axis[SINTER_RANK_MAX])
{
    uint32_t count = 0;
    for (uint32_t i = o->rank; i-- > 0;)
        if (o->dim[o->order[i]].max != 1) axis[count++] = o->order[i];
    return count;
}

/* Blocks pay where source and result do not run on together: which axes those are is known for copies and
 * transpositions. */
static bool wants_blocks(const problem *p)
{
    if (p->op != OP_copy && p->op != OP_transpose && p->op != OP_bit_cast) return false;
    uint8_t from[SINTER_RANK_MAX], to[SINTER_RANK_MAX];
    const uint32_t count = long_axes(&p->in[0], from);
    if (long_axes(&p->out[0], to) != count) return false;
    int64_t run = sinter_dtype_bits(p->out[0].dtype) / 8;
    for (uint32_t i = 0; i < count && run < RUN_BYTES; i++) {
        uint32_t of = to[i];
        if (p->op == OP_transpose) {
            const attrs_transpose *a = p->attrs;
            if (a->perm.count != p->in[0].rank) return false;
            of = (uint32_t)a->perm.at[of];
        }
        if (of != from[i]) return true;
        run *= p->out[0].dim[to[i]].opt;
    }
    return false;
}

static void tactics(const problem *p, const kernel_target *t, tactic_sink *out)
{
    (void)t;
    for (uint32_t side = wants_blocks(p) ? BLOCK_SIDE : 0;; side = side == BLOCK_SIDE ? BLOCK_SIDE / 2 : 0) {
        const copy_tactic own = { .side = (uint8_t)side };
        tactic_put(out, &own);
        if (!side) break;
    }
}

static bool check(const problem *p, const tactic *t)
{
    const uint32_t side = t->at[0];
    if (!FIELDS_HOLD(fields, t)) return false;
    return !side || ((side == BLOCK_SIDE || side == BLOCK_SIDE / 2) && wants_blocks(p));
}

static void print(const tactic *t, text *out)
{
    if (t->at[0]) text_printf(out, "block %u", t->at[0]);
    else text_printf(out, "plain");
}

static double cost_ns(const problem *p, const tactic *t, const kernel_target *target)
{
    const double side = t->at[0], own = cuda_operand_bytes(&p->out[0]);
    const double ns = cuda_cost_ns(target, own * 2.2 * (wants_blocks(p) && side == 0 ? 3 : 1), 0);
    if (side == 0) return ns;
    /* As many blocks as the chip holds go at once, each through a table, two barriers and a row of reads. */
    const double blocks = own / (sinter_dtype_bits(p->out[0].dtype) / 8) / (side * side);
    const double waves = blocks / (8.0 * (target->units ? target->units : 1));
    return ns + (150 + side * side * 0.035) * (waves > 1 ? waves : 1);
}

void copy_code(cuda_code *c)
{
    c->source = "copy.cu";
    c->entry = "copy";
    cuda_code_define(c, "JOBS", 1);
}

static uint32_t jobs_of(const problem *p)
{
    const uint32_t count = p->op == OP_concat ? p->count_in : 1;
    return count <= 2 ? count : count <= 4 ? 4 : COPY_JOBS;
}

/* Few compilations serve many concatenations. */
static uint32_t parts_of(const problem *p)
{
    uint32_t count = 2;
    while (count < p->count_in) count *= 2;
    return count < CONCAT_PARTS ? count : CONCAT_PARTS;
}

static bool code(const problem *p, const tactic *t, const kernel_target *target, uint32_t index, cuda_code *c)
{
    (void)target;
    if (index > (t->at[0] ? 1u : 0u)) return false;
    if (index) {
        copy_code(c);
    } else if (t->at[0]) {
        c->source = "transpose.cu";
        c->entry = "transpose";
        cuda_code_define(c, "SIZE", sinter_dtype_bits(p->out[0].dtype) / 8);
    } else if (is_rows(p)) {
        c->source = "concat.cu";
        c->entry = "concat";
        cuda_code_define(c, "PARTS", parts_of(p));
    } else {
        c->source = "copy.cu";
        c->entry = "copy";
        cuda_code_define(c, "JOBS", jobs_of(p));
    }
    return true;
}

/* ---- views ---- */

static void move_begin(move *m, sinter_dtype dtype)
{
    memset(m, 0, sizeof *m);
    m->bytes = sinter_dtype_bits(dtype) / 8;
}

static void move_axis(move *m, int64_t size, int64_t from, int64_t to)
{
    if (size == 1) return;
    m->size[m->count] = size;
    m->from[m->count] = from * m->bytes;
    m->to[m->count++] = to * m->bytes;
}

/* The same shape on both sides. */
static sinter_status move_same(env *e, move *m, uint32_t rank, const view *src, const view *dst)
{
    for (uint32_t i = 0; i < rank; i++) {
        if (src->dim[i] != dst->dim[i])
            return FAIL(e, INVALID_ARG, "axis %u of a copy has %lld elements in the source and %lld in the result", i,
                        (long long)src->dim[i], (long long)dst->dim[i]);
        move_axis(m, dst->dim[i], src->stride[i], dst->stride[i]);
    }
    return SINTER_OK;
}

static sinter_status move_slice(env *e, move *m, const attrs_slice *a, const view *in, const view *out)
{
    view src = *in;
    if (a->start.count != in->rank || a->step.count != in->rank || a->size.count != in->rank)
        return FAIL(e, INVALID_ARG, "slice: start, step and size are not as long as the rank");
    for (uint32_t i = 0; i < in->rank; i++) {
        const int64_t start = a->start.at[i], step = a->step.at[i], size = a->size.at[i];
        int64_t last = 0;
        src.dim[i] = size;
        if (size == 0) continue;
        const bool fits = size > 0 && i64_mul(size - 1, step, &last) && i64_add(last, start, &last);
        if (!fits || start < 0 || start >= in->dim[i] || last < 0 || last >= in->dim[i])
            return FAIL(e, INVALID_ARG,
                        "slice: axis %u has size %lld, the slice takes %lld elements from %lld with step %lld", i,
                        (long long)in->dim[i], (long long)size, (long long)start, (long long)step);
        m->offset_in += start * in->stride[i] * m->bytes;
        src.stride[i] = size == 1 ? 0 : in->stride[i] * step;
    }
    return move_same(e, m, out->rank, &src, out);
}

static sinter_status move_tile(env *e, move *m, const attrs_tile *a, const view *in, const view *out)
{
    if (a->repeats.count != in->rank || out->rank != in->rank)
        return FAIL(e, INVALID_ARG, "tile: repeats is not as long as the rank");
    for (uint32_t i = 0; i < in->rank; i++) {
        int64_t size = 0;
        if (!i64_mul(in->dim[i], a->repeats.at[i], &size) || size != out->dim[i])
            return FAIL(e, INVALID_ARG, "tile: axis %u of %lld elements, %lld times, is not %lld", i,
                        (long long)in->dim[i], (long long)a->repeats.at[i], (long long)out->dim[i]);
        move_axis(m, a->repeats.at[i], 0, in->dim[i] * out->stride[i]);
        move_axis(m, in->dim[i], in->stride[i], out->stride[i]);
    }
    return SINTER_OK;
}

/* Both shapes cut at each other's boundaries; false where these do not nest. */
static bool move_reshape(move *m, const view *in, const view *out)
{
    uint32_t i = 0, j = 0;
    int64_t a = 1, b = 1; /* what is left of the axes i - 1 and j - 1 */
    m->count = 0;
    for (;;) {
        while (a == 1 && i < in->rank) a = in->dim[i++];
        while (b == 1 && j < out->rank) b = out->dim[j++];
        if (a == 1 && b == 1) return true;
        const int64_t f = a < b ? a : b;
        if (f <= 1 || a % f || b % f || m->count == MOVE_AXES) return false;
        a /= f;
        b /= f;
        move_axis(m, f, in->stride[i - 1] * a, out->stride[j - 1] * b);
    }
}

/* Do both sides run on from axis `outer` to axis `inner`? Only the outermost axis may be of more than 2^31. */
static bool move_runs_on(const move *m, uint32_t outer, uint32_t inner)
{
    return m->from[outer] == m->from[inner] * m->size[inner] && m->to[outer] == m->to[inner] * m->size[inner] &&
           (outer == 0 || m->size[outer] <= INT32_MAX / m->size[inner]);
}

void move_order(move *m)
{
    for (uint32_t i = 1; i < m->count; i++)
        for (uint32_t k = i; k > 0 && m->to[k - 1] < m->to[k]; k--) {
            const int64_t size = m->size[k], from = m->from[k], to = m->to[k];
            m->size[k] = m->size[k - 1], m->from[k] = m->from[k - 1], m->to[k] = m->to[k - 1];
            m->size[k - 1] = size, m->from[k - 1] = from, m->to[k - 1] = to;
        }
    uint32_t count = 0;
    for (uint32_t i = 0; i < m->count; i++) {
        const uint32_t last = count - 1;
        if (count && move_runs_on(m, last, i)) {
            m->size[last] *= m->size[i];
            m->from[last] = m->from[i];
            m->to[last] = m->to[i];
        } else {
            m->size[count] = m->size[i];
            m->from[count] = m->from[i];
            m->to[count++] = m->to[i];
        }
    }
    m->count = count;
}

/* Only the outermost axis may have more than 2^31 units. Axes are copied in any order, so one that has comes first. */
static void move_largest_first(move *m)
{
    uint32_t i = 0;
    while (i < m->count && m->size[i] <= INT32_MAX) i++;
    if (i == m->count) return;
    const int64_t size = m->size[i], from = m->from[i], to = m->to[i];
    for (; i > 0; i--) {
        m->size[i] = m->size[i - 1];
        m->from[i] = m->from[i - 1];
        m->to[i] = m->to[i - 1];
    }
    m->size[0] = size;
    m->from[0] = from;
    m->to[0] = to;
}

/* The largest unit of bytes that everything but the first address is a multiple of. */
static uint32_t move_unit(const move *m)
{
    uint32_t unit = 16;
    if (!m->count) return m->bytes;
    const uint32_t last = m->count - 1;
    if (m->from[last] != m->bytes || m->to[last] != m->bytes) return m->bytes;
    while (unit > m->bytes) {
        bool fits = !(m->size[last] * m->bytes % unit);
        for (uint32_t i = 0; i < last && fits; i++) fits = !(m->from[i] % unit) && !(m->to[i] % unit);
        if (fits) break;
        unit /= 2;
    }
    return unit;
}

/* Does the result run on from its first element to its last, along axes that count in 32 bits but for the first? */
static bool move_is_dense(const move *m)
{
    int64_t step = m->bytes;
    for (uint32_t i = m->count; i-- > 0; step *= m->size[i])
        if (m->to[i] != step || (m->size[i] > INT32_MAX && (i > 0 || m->count == 1))) return false;
    return m->count > 0;
}

/* ---- records ---- */

sinter_status move_too_large(env *e)
{
    return FAIL(e, UNSUPPORTED, "a copy with two axes of more than 2^31 units, or of more than %d axes", COPY_AXES);
}

/* Quotients are by sizes of 32 bits; the outermost axis is what is left, however large. */
static bool set_div(struct fast_div *d, uint32_t axis, int64_t size)
{
    if (axis && size > INT32_MAX) return false;
    *d = cuda_fast_div(axis ? size : 1);
    return true;
}

static bool set_total(struct copy_job *j, int64_t total, int64_t *blocks)
{
    const int64_t per_block = (int64_t)COPY_BLOCK * j->each, own = (total + per_block - 1) / per_block;
    j->total = total;
    if (own > *blocks) *blocks = own;
    return own <= INT32_MAX;
}

static sinter_status fill_job(env *e, move *m, struct copy_job *j, int64_t *blocks)
{
    int64_t total = 1;
    for (uint32_t i = 0; i < m->count; i++)
        if (!i64_mul(total, m->size[i], &total)) return move_too_large(e);
    if (total == 0) return SINTER_OK;
    move_order(m);
    const uint32_t unit = move_unit(m), per = unit / m->bytes, last = m->count - 1;
    if (m->count > COPY_AXES) return move_too_large(e);
    j->is_dense = total > 1 && move_is_dense(m);
    const bool is_small = j->is_dense && unit < 8; /* then a thread makes 16 bytes of units */
    if (per > 1 && !is_small) {
        m->size[last] /= per;
        m->from[last] = m->to[last] = unit;
        total /= per;
    }
    if (!j->is_dense) move_largest_first(m);
    for (uint32_t i = 0; i < m->count; i++) {
        if (!set_div(&j->dim[i], i, m->size[i])) return move_too_large(e);
        j->src_step[i] = m->from[i];
        j->dst_step[i] = m->to[i];
    }
    if (is_small) j->inner = (small)m->size[last], j->piece = (uint8_t)unit;
    j->axes = (uint8_t)(m->count ? m->count : 1);
    j->unit = (uint8_t)(is_small ? m->bytes : unit);
    j->each = (uint8_t)(is_small ? 16 / m->bytes : total >= 1 << 17 ? 4 : 1);
    return set_total(j, total, blocks) ? SINTER_OK : move_too_large(e);
}

/* A reshape whose shapes do not nest: each side has its own axes. */
static sinter_status fill_split(env *e, const move *m, const view *in, const view *out, struct copy_job *j,
                                int64_t *blocks)
{
    const int64_t total = view_count(out);
    if (total == 0) return SINTER_OK;
    for (uint32_t i = 0; i < out->rank; i++) {
        if (!set_div(&j->dim[i], i, out->dim[i])) return move_too_large(e);
        j->dst_step[i] = out->stride[i] * m->bytes;
    }
    for (uint32_t i = 0; i < in->rank; i++) {
        if (!set_div(&j->src_dim[i], i, in->dim[i])) return move_too_large(e);
        j->src_step[i] = in->stride[i] * m->bytes;
    }
    j->axes = (uint8_t)out->rank;
    j->src_axes = (uint8_t)in->rank;
    j->is_split = 1;
    j->unit = (uint8_t)m->bytes;
    j->each = 1;
    return set_total(j, total, blocks) ? SINTER_OK : move_too_large(e);
}

sinter_status copy_launch(env *e, cuda_record *r, uint32_t index_of_code, uint32_t index, sinter_dtype type,
                          const view *src, const view *dst)
{
    move m;
    int64_t blocks = 0;
    move_begin(&m, type);
    TRY(move_same(e, &m, dst->rank, src, dst));
    struct copy_job *job;
    TRY(cuda_launch_begin(e, r, index_of_code, 1, 1, 1, COPY_BLOCK, 0, sizeof *job, &job));
    job->axes = job->unit = job->each = 1;
    TRY(fill_job(e, &m, job, &blocks));
    CUDA_PATCH(r, job, src, PATCH_IN, index);
    CUDA_PATCH(r, job, dst, PATCH_OUT, 0);
    cuda_launch_last(r)->grid[0] = (uint32_t)blocks;
    return SINTER_OK;
}

static sinter_status move_of(env *e, const problem *p, const void *attrs, const view *in, const view *out, move *m)
{
    view src = in[0];
    switch (p->op) {
    case OP_slice: return move_slice(e, m, attrs, &in[0], &out[0]);
    case OP_tile: return move_tile(e, m, attrs, &in[0], &out[0]);
    case OP_transpose: {
        const attrs_transpose *a = attrs;
        if (a->perm.count != in[0].rank) return FAIL(e, INVALID_ARG, "transpose: perm is not as long as the rank");
        for (uint32_t i = 0; i < in[0].rank; i++) {
            if (a->perm.at[i] < 0 || a->perm.at[i] >= (int64_t)in[0].rank)
                return FAIL(e, INVALID_ARG, "transpose: perm names axis %lld of %u", (long long)a->perm.at[i],
                            in[0].rank);
            src.dim[i] = in[0].dim[a->perm.at[i]];
            src.stride[i] = in[0].stride[a->perm.at[i]];
        }
        return move_same(e, m, out[0].rank, &src, &out[0]);
    }
    case OP_expand:
        if (!view_broadcast(&in[0], out[0].rank, out[0].dim, &src))
            return FAIL(e, INVALID_ARG, "expand: the input does not broadcast to the result's shape");
        return move_same(e, m, out[0].rank, &src, &out[0]);
    default:
        if (in[0].rank != out[0].rank) return FAIL(e, INVALID_ARG, "a copy of another rank");
        return move_same(e, m, out[0].rank, &src, &out[0]);
    }
}

static sinter_status bind_concat(env *e, const problem *p, const attrs_concat *a, const view *in, const view *out,
                                 struct copy_job *job, int64_t *blocks, cuda_record *r)
{
    int64_t at = 0;
    if (a->axis < 0 || a->axis >= (int64_t)out->rank) return FAIL(e, INVALID_ARG, "concat: the axis is not there");
    for (uint32_t k = 0; k < p->count_in; k++) {
        view part = *out;
        move m;
        move_begin(&m, p->out[0].dtype);
        if (in[k].rank != out->rank) return FAIL(e, INVALID_ARG, "concat: input %u has another rank", k);
        part.dim[a->axis] = in[k].dim[a->axis];
        m.offset_out = at * out->stride[a->axis] * m.bytes;
        TRY(move_same(e, &m, out->rank, &in[k], &part));
        TRY(fill_job(e, &m, &job[k], blocks));
        at += in[k].dim[a->axis];
        CUDA_PATCH(r, &job[k], src, PATCH_IN, k);
        cuda_patch_add(r, &job[k], offsetof(struct copy_job, dst), PATCH_OUT, 0, m.offset_out);
    }
    if (at != out->dim[a->axis])
        return FAIL(e, INVALID_ARG, "concat: the inputs have %lld elements along the axis, the result has %lld",
                    (long long)at, (long long)out->dim[a->axis]);
    return SINTER_OK;
}

/* Elements of an operand from the axis on inwards. */
static int64_t run_of(const problem_operand *o, const view *v, uint32_t axis)
{
    int64_t run = 1;
    for (uint32_t i = o->rank; i-- > 0;) {
        run *= v->dim[o->order[i]];
        if (o->order[i] == axis) break;
    }
    return run;
}

static sinter_status bind_rows(env *e, const problem *p, const attrs_concat *a, const view *in, const view *out,
                               cuda_record *r)
{
    const int64_t bytes = sinter_dtype_bits(p->out[0].dtype) / 8;
    int64_t at = 0, along = 0, blocks = 0;
    if (a->axis < 0 || a->axis >= (int64_t)out->rank) return FAIL(e, INVALID_ARG, "concat: the axis is not there");
    const int64_t pitch = run_of(&p->out[0], out, (uint32_t)a->axis) * bytes;
    struct copy_part *part;
    TRY(cuda_launch_begin(e, r, 0, 1, p->count_in, 1, COPY_BLOCK, 0, parts_of(p) * sizeof *part, &part));
    for (uint32_t k = 0; k < p->count_in; k++) {
        for (uint32_t i = 0; i < out->rank; i++)
            if (in[k].rank != out->rank || (i != (uint32_t)a->axis && in[k].dim[i] != out->dim[i]))
                return FAIL(e, INVALID_ARG, "concat: input %u does not have the shape of the others", k);
        along += in[k].dim[a->axis];
        const int64_t row = run_of(&p->in[k], &in[k], (uint32_t)a->axis) * bytes, total = view_count(&in[k]) * bytes;
        int64_t unit = 16;
        while (unit > bytes && (row % unit || pitch % unit || at % unit)) unit /= 2;
        part[k].src_step = row;
        part[k].dst_step = pitch;
        part[k].row = cuda_fast_div(row / unit <= INT32_MAX ? row / unit : 1);
        part[k].units = row / unit;
        part[k].total = total / unit;
        part[k].unit = (small)unit;
        part[k].each = total / unit >= 1 << 15 ? 4 : 1;
        const int64_t each = unit == 16 ? part[k].each : unit == 8 ? 2 : 4, per_block = COPY_BLOCK * each;
        const int64_t own = (total / unit + per_block - 1) / per_block;
        if (own > blocks) blocks = own;
        if (own > INT32_MAX) return move_too_large(e);
        CUDA_PATCH(r, &part[k], src, PATCH_IN, k);
        cuda_patch_add(r, &part[k], offsetof(struct copy_part, dst), PATCH_OUT, 0, at);
        at += row;
    }
    if (along != out->dim[a->axis])
        return FAIL(e, INVALID_ARG, "concat: the inputs have %lld elements along the axis, the result has %lld",
                    (long long)along, (long long)out->dim[a->axis]);
    cuda_launch_last(r)->grid[0] = (uint32_t)blocks;
    return SINTER_OK;
}

static sinter_status bind(env *e, const problem *p, const tactic *t, const void *attrs, const view *in, const view *out,
                          void *record)
{
    cuda_record *r = record;
    move m;
    int64_t blocks = 0;
    for (uint32_t i = 0; i < out->rank && (p->op == OP_slice || p->op == OP_tile); i++)
        if (out->dim[i] > INT32_MAX) return move_too_large(e);
    move_begin(&m, p->out[0].dtype);
    bool is_split = false;
    if (p->op == OP_reshape) {
        if (view_count(&in[0]) != view_count(&out[0]))
            return FAIL(e, INVALID_ARG, "reshape: the input has %lld elements, the new shape has %lld",
                        (long long)view_count(&in[0]), (long long)view_count(&out[0]));
        is_split = view_count(out) > 0 && !move_reshape(&m, &in[0], &out[0]);
        if (view_count(out) == 0) return SINTER_OK;
    } else if (p->op != OP_concat) {
        TRY(move_of(e, p, attrs, in, out, &m));
    }
    if (is_rows(p)) return bind_rows(e, p, attrs, in, out, r);
    if (t->at[0]) {
        for (uint32_t i = 0; i < m.count; i++)
            if (m.size[i] == 0) return SINTER_OK;
        move_order(&m);
        if (!move_runs_together(&m)) return move_bind_block(e, &m, t->at[0], r);
    }
    struct copy_job *job;
    TRY(cuda_launch_begin(e, r, t->at[0] ? 1 : 0, 1, jobs_of(p), 1, COPY_BLOCK, 0, jobs_of(p) * sizeof *job, &job));
    for (uint32_t i = 0; i < jobs_of(p); i++) job[i].axes = job[i].unit = job[i].each = 1;
    if (p->op == OP_concat) {
        TRY(bind_concat(e, p, attrs, in, out, job, &blocks, r));
    } else {
        if (is_split) TRY(fill_split(e, &m, in, out, job, &blocks));
        else TRY(fill_job(e, &m, job, &blocks));
        cuda_patch_add(r, job, offsetof(struct copy_job, src), PATCH_IN, 0, m.offset_in);
        cuda_patch_add(r, job, offsetof(struct copy_job, dst), PATCH_OUT, 0, m.offset_out);
    }
    cuda_launch_last(r)->grid[0] = (uint32_t)blocks;
    return SINTER_OK;
}

CUDA_ROW(cuda_copy, 2, reject, , .out_strides = STRIDES_ANY);
