/* SPDX-License-Identifier: Apache-2.0 */
/* row_integer.c - matmul_integer on the tiles of 8-bit words.
 *
 * A constant B is packed once, with the sums of its columns behind it. Any other B is first copied, as codes with a
 * sign, while the sums are made. Batches of A against one B are rows. */
#include "cpu/cpu_kernels.h"
#include "cpu/integer.h"

#include "base/env.h"
#include <string.h>

typedef struct record {
    gemm_params params;
    int64_t rows;                                          /* of a matrix of A before batches became rows */
    int64_t copies;                                        /* matrices of B that are copied; 0: it is packed */
    size_t copy_at, sums_at, work_at, scratch_at, scratch; /* in the workspace */
    integer_end end;
} record;

static gemm_tactic tactic_of(const tactic *t)
{
    gemm_tactic own;
    row_tactic_own(t, &own, sizeof own);
    return own;
}

static gemm_unit unit_of(const tactic *t)
{
    return (gemm_unit)tactic_of(t).unit;
}

static bool is_packed(const problem *p)
{
    if (!p->in[1].is_const || p->in[1].is_strided) return false;
    for (uint32_t i = 0; i + 2 < p->in[1].rank; i++)
        if (p->in[1].dim[i].max != 1) return false;
    return true;
}

static bool is_inner(const problem_operand *o)
{
    uint32_t i = o->rank - 1u;
    while (i && o->order[i] != o->rank - 1u && o->dim[o->order[i]].max == 1) i--;
    return !o->is_strided && o->order[i] == o->rank - 1u;
}

/* unit: that the product is computed by. */
static gemm_shape shape_of(const problem *p, row_bound b, gemm_unit unit)
{
    const problem_operand *x = &p->in[0], *w = &p->in[1], *y = &p->out[0];
    gemm_shape s = { .m = row_size(x->dim[x->rank - 2], b),
                     .n = row_size(w->dim[w->rank - 1], b),
                     .k = row_size(x->dim[x->rank - 1], b),
                     .taps = 1,
                     .b_raw = !is_packed(p),
                     .unit = unit,
                     .is_converted = x->dtype != gemm_unit_type(unit) };
    if (is_packed(p))
        for (uint32_t i = 0; i + 2 < y->rank; i++)
            if (!i64_mul(s.m, row_size(y->dim[i], b), &s.m)) s.m = INT64_MAX / 4;
    /* 1 only where no run can bring another stride. */
    s.a_col = is_inner(x) || x->dim[x->rank - 1].max <= 1 ? 1 : s.m > 2 ? s.m : 2;
    s.a_row = s.a_col == 1 ? s.k : 1;
    return s;
}

static int64_t batch_of(const problem *p, row_bound b)
{
    int64_t n = 1;
    for (uint32_t i = 0; i + 2 < p->out[0].rank && !is_packed(p); i++)
        if (!i64_mul(n, row_size(p->out[0].dim[i], b), &n)) n = INT64_MAX / 4;
    return n;
}

static const char *reject(const problem *p, const kernel_target *t)
{
    (void)t;
    REJECT_UNLESS(p->op == OP_matmul_integer, "not a product of integers");
    REJECT_UNLESS(p->in[0].rank >= 2 && p->in[1].rank >= 2, "an operand is a vector");
    const char *why = integer_reject(p);
    if (why) return why;
    const gemm_shape s = shape_of(p, AT_MAX, GEMM_U8);
    REJECT_UNLESS(s.k <= INTEGER_TERMS_MAX, "a sum has no bound of terms, or too large a one");
    REJECT_UNLESS(s.n < INT32_MAX / 4 && batch_of(p, AT_MAX) < INT32_MAX, "a size has no bound, or too large a one");
    REJECT_UNLESS(p->in[1].dim[p->in[1].rank - 2].max == s.k || !is_packed(p), "the operands do not fit each other");
    REJECT_UNLESS(p->out[0].rank <= 2 + GEMM_BATCH_RANK || is_packed(p), "has too many batch axes");
    REJECT_UNLESS(p->out[0].rank <= 2 + GEMM_BATCH_RANK || !p->in[0].is_strided, "has too many batch axes");
    return NULL;
}

static void tactics(const problem *p, const kernel_target *t, tactic_sink *out)
{
    gemm_tactic list[GEMM_TACTICS_MAX];
    gemm_unit units[2];
    const int count = row_units_of(SINTER_DTYPE_U8, t, units);
    for (int i = 0; i < count; i++) {
        gemm_shape s = shape_of(p, AT_OPT, units[i]);
        s.cache = t->cache_l2;
        row_tactics_add(t, list, gemm_tactics((isa_level)t->isa, &s, list), sizeof *list, out);
    }
}

static bool check(const problem *p, const tactic *t)
{
    if (!row_tactic_check(t, sizeof(gemm_tactic))) return false;
    const gemm_shape s = shape_of(p, AT_OPT, unit_of(t));
    return gemm_unit_is_integer(s.unit) && s.unit != GEMM_U8_NARROW && !gemm_tactic_check(row_isa(t), &s, tactic_of(t));
}

static void print(const tactic *t, text *out)
{
    char name[48];
    (void)gemm_tactic_print(name, sizeof name, row_isa(t), tactic_of(t));
    row_tactic_print(t, name, out);
}

static double cost_ns(const problem *p, const tactic *t, const kernel_target *target)
{
    const gemm_shape s = shape_of(p, AT_OPT, unit_of(t));
    return (gemm_cost(row_isa(t), &s, tactic_of(t)) * (double)batch_of(p, AT_OPT) + integer_end_ns(p)) /
               (target->threads ? target->threads : 1) +
           500;
}

static gemm_params params_max(const problem *p, const tactic *t)
{
    const gemm_shape s = shape_of(p, AT_MAX, unit_of(t));
    return (gemm_params){ .isa = row_isa(t),
                          .tactic = tactic_of(t),
                          .m = s.m,
                          .n = s.n,
                          .k = s.k,
                          .a_type = p->in[0].dtype,
                          .b_raw = s.b_raw,
                          .epilogue = { .drain = true } };
}

/* Matrices of B at most that are copied. */
static int64_t copies_max(const problem *p)
{
    if (is_packed(p)) return 0;
    for (uint32_t i = 0; i + 2 < p->in[1].rank; i++)
        if (p->in[1].dim[i].max != 1) return batch_of(p, AT_MAX);
    return 1;
}

typedef struct rooms {
    size_t copy_at, sums_at, work_at, scratch_at, scratch;
} rooms;

static rooms rooms_of(const problem *p, const tactic *t)
{
    const gemm_params g = params_max(p, t);
    const size_t copies = (size_t)copies_max(p), n = (size_t)g.n;
    rooms r = { .copy_at = 0 };
    r.sums_at = size_align(size_mul(size_mul(copies, n), (size_t)g.k), 64);
    r.work_at = size_add(r.sums_at, size_align(size_mul(size_mul(copies, n), sizeof(int32_t)), 64));
    r.scratch_at = size_add(r.work_at, integer_work_size(g.n, copies ? (int64_t)copies : 1));
    r.scratch = size_align(gemm_scratch_size(&g), 64);
    return r;
}

static size_t workspace(const problem *p, const tactic *t, uint32_t threads)
{
    const rooms r = rooms_of(p, t);
    return size_add(r.scratch_at, size_mul(r.scratch, threads));
}

static size_t panels_size(const problem *p, const tactic *t)
{
    const gemm_params g = params_max(p, t);
    return gemm_pack_size(g.isa, g.tactic, 1, g.k, g.n);
}

static size_t pack_size(const problem *p, const tactic *t, uint32_t input)
{
    if (input != 1 || !is_packed(p)) return 0;
    return size_add(panels_size(p, t), integer_sums_size(shape_of(p, AT_MAX, unit_of(t)).n));
}

static int32_t code_of(uint8_t bits, uint8_t flip)
{
    return (int8_t)(bits ^ flip);
}

static void pack(const problem *p, const tactic *t, uint32_t input, const view *src, void *dst)
{
    (void)input;
    const uint8_t flip = src->dtype == SINTER_DTYPE_U8 ? 128 : 0, *from = src->data;
    const int64_t k = src->dim[src->rank - 2], n = src->dim[src->rank - 1], row = src->stride[src->rank - 2],
                  col = src->stride[src->rank - 1];
    const size_t size = panels_size(p, t);
    gemm_tactic own = tactic_of(t);
    int32_t *sum = (int32_t *)(void *)((char *)dst + size);
    sum[n] = 0;
    if (own.unit == GEMM_U8_PAIRS && !flip) {
        own.unit = GEMM_U8_NARROW;
        memset(dst, 0, size);
        gemm_pack(row_isa(t), own, 1, k, n, from, 0, row, col, dst);
        sum[n] = integer_is_narrow(dst, size);
        own = tactic_of(t);
    }
    if (!sum[n]) gemm_pack(row_isa(t), own, 1, k, n, from, 0, row, col, dst);
    if (flip) integer_flip(unit_of(t), dst, size);
    for (int64_t j = 0; j < n; j++) {
        sum[j] = 0;
        for (int64_t i = 0; i < k; i++) sum[j] += code_of(from[i * row + j * col], flip);
    }
}

static size_t record_size(const problem *p, const tactic *t)
{
    (void)t;
    return sizeof(record) + integer_room(p);
}

typedef struct axis {
    int64_t size, a, b;
} axis;

/* The batch axes, outermost first; neighbours that walk alike are merged, and the innermost into M where B stays. */
static uint32_t batch_axes(const view *a, const view *b, const view *y, gemm_params *g, axis *out)
{
    const uint32_t rank = y->rank - 2;
    view va = *a, vb = *b, wa, wb;
    va.rank -= 2;
    vb.rank -= 2;
    uint32_t n = 0;
    if (!view_broadcast(&va, rank, y->dim, &wa) || !view_broadcast(&vb, rank, y->dim, &wb)) return UINT32_MAX;
    for (uint32_t i = 0; i < rank; i++) {
        if (y->dim[i] == 1) continue;
        const axis x = { y->dim[i], wa.stride[i], wb.stride[i] };
        axis *last = n ? &out[n - 1] : NULL;
        if (last && last->a == x.a * x.size && last->b == x.b * x.size) *last = (axis){ last->size * x.size, x.a, x.b };
        else out[n++] = x;
    }
    if (n && !out[n - 1].b && (g->m == 1 || out[n - 1].a == g->a_row * g->m)) {
        if (g->m == 1) g->a_row = out[n - 1].a;
        g->m *= out[n - 1].size;
        n--;
    }
    return n;
}

static sinter_status bind(env *e, const problem *p, const tactic *t, const void *attrs, const view *in, const view *out,
                          void *to)
{
    (void)attrs;
    record *r = to;
    isa_level isa;
    TRY(row_unit_bind(e, p, t, unit_of(t), &isa));
    const view *a = &in[0], *b = &in[1], *y = &out[0];
    memset(r, 0, sizeof *r);
    gemm_params *g = &r->params;
    *g = (gemm_params){
        .isa = isa,
        .tactic = tactic_of(t),
        .m = a->dim[a->rank - 2],
        .n = b->dim[b->rank - 1],
        .k = a->dim[a->rank - 1],
        .a_type = a->dtype,
        .a_row = a->stride[a->rank - 2],
        .a_col = a->stride[a->rank - 1],
        .b_raw = !is_packed(p),
        .ldc = y->dim[y->rank - 1],
        .epilogue = { .drain = true },
    };
    if (b->dim[b->rank - 2] != g->k) return FAIL(e, INTERNAL, "the operands of a product do not fit each other");
    r->rows = g->m;
    if (g->k <= 1) g->a_col = 1;
    axis axes[SINTER_RANK_MAX];
    const uint32_t n = batch_axes(a, b, y, g, axes);
    if (n > GEMM_BATCH_RANK)
        return FAIL(e, INTERNAL, "a matrix product has %u batch axes that do not merge; at most %d are taken", n,
                    GEMM_BATCH_RANK);
    for (uint32_t i = 0; i < GEMM_BATCH_RANK; i++) g->batch[i] = 1;
    bool is_shared = true;
    for (uint32_t i = 0; i < n; i++) {
        const uint32_t k = GEMM_BATCH_RANK - n + i;
        g->batch[k] = axes[i].size;
        g->a_batch[k] = axes[i].a;
        g->b_batch[k] = axes[i].b;
        is_shared = is_shared && !axes[i].b;
    }
    if (g->a_col != 1 && !g->tactic.copy_a)
        return FAIL(e, INTERNAL, "a matrix product's rows are not adjacent, and the tactic does not copy");
    if (g->b_raw) {
        r->copies = is_shared ? 1 : g->batch[0] * g->batch[1] * g->batch[2];
        g->b_row = b->stride[b->rank - 2];
        g->b_col = b->stride[b->rank - 1];
    }
    const rooms at = rooms_of(p, t);
    r->copy_at = at.copy_at;
    r->sums_at = at.sums_at;
    r->work_at = at.work_at;
    r->scratch_at = at.scratch_at;
    r->scratch = at.scratch;
    uint8_t order[SINTER_RANK_MAX];
    for (uint8_t i = 0; i < SINTER_RANK_MAX; i++) order[i] = i;
    TRY(integer_end_bind(e, p, t, in, out, order, r + 1, &r->end));
    r->end.n = g->n;
    r->end.k = g->k;
    return SINTER_OK;
}

typedef struct job {
    gemm_params g;
    const record *r;
    integer_run end;
    const uint8_t *a, *b;
    uint8_t *copy;
    int32_t *sums;
    char *scratch;
} job;

static int64_t batch_at(const gemm_params *g, const int64_t stride[GEMM_BATCH_RANK], int64_t batch)
{
    int64_t at = 0;
    for (int i = GEMM_BATCH_RANK - 1; i >= 0; i--) {
        at += batch % g->batch[i] * stride[i];
        batch /= g->batch[i];
    }
    return at;
}

/* A matrix of B, with a sign, in the order in which it lies, and the sums of its columns. */
static void copy(void *arg, uint32_t begin, uint32_t end, uint32_t worker)
{
    (void)worker;
    const job *j = arg;
    const gemm_params *g = &j->r->params;
    const int64_t k = g->k, n = g->n;
    const uint8_t flip = j->r->end.b_flip;
    const integer_set *set = j->r->end.set;
    for (int64_t m = begin; m < end; m++) {
        const uint8_t *from = j->b + (j->r->copies > 1 ? batch_at(g, g->b_batch, m) : 0);
        uint8_t *to = j->copy + m * k * n;
        int32_t *sum = j->sums + m * n;
        memset(sum, 0, (size_t)n * sizeof *sum);
        if (g->b_row == 1 && g->b_col != 1) { /* columns are adjacent terms: they stay so */
            for (int64_t c = 0; c < n; c++, to += k) sum[c] = set->copy(to, from + c * g->b_col, k, flip);
            continue;
        }
        for (int64_t i = 0; i < k; i++, to += n) {
            if (g->b_col == 1) {
                set->add(to, from + i * g->b_row, n, flip, sum);
                continue;
            }
            for (int64_t c = 0; c < n; c++) {
                to[c] = from[i * g->b_row + c * g->b_col] ^ flip;
                sum[c] += (int8_t)to[c];
            }
        }
    }
}

static void row_sums(const void *user, int64_t batch, int64_t row, int64_t rows, int64_t col, int64_t *sum)
{
    (void)col;
    const job *j = user;
    const gemm_params *g = &j->g;
    const uint8_t *from = j->a + batch_at(g, g->a_batch, batch) + row * g->a_row, flip = j->r->end.a_flip;
    for (int64_t i = 0; i < rows; i++, from += g->a_row) {
        uint32_t all = 0;
        if (g->a_col == 1) all = j->r->end.set->sum(from, g->k, flip);
        for (int64_t k = 0; g->a_col != 1 && k < g->k; k++) all += (uint8_t)(from[k * g->a_col] ^ flip);
        sum[i] = all;
    }
}

static void post(void *user, int64_t batch, int64_t row, int64_t rows, int64_t col, int64_t cols, void *c, int64_t ldc)
{
    const job *j = user;
    integer_finish(&j->end, j->r->copies > 1 ? batch : 0, batch, row, batch * j->g.m + row, rows, col, cols, c, ldc);
}

static void body(void *arg, uint32_t begin, uint32_t end, uint32_t worker)
{
    job *j = arg;
    gemm_run(&j->g, begin, end, j->scratch + worker * j->r->scratch, j);
}

static sinter_status run(const kernel_run *k)
{
    const record *r = k->record;
    char *work = k->workspace;
    job j = { .g = r->params,
              .r = r,
              .a = k->in[0],
              .b = k->in[1],
              .copy = (uint8_t *)work + r->copy_at,
              .sums = (int32_t *)(void *)(work + r->sums_at),
              .scratch = work + r->scratch_at };
    const int32_t *sums = j.sums;
    j.g.a = k->in[0];
    j.g.b = k->in[1];
    j.g.epilogue.post = post;
    if (r->copies) {
        row_parallel(k, r->copies, copy, &j);
        const bool is_turned = r->params.b_row == 1 && r->params.b_col != 1;
        j.g.b = j.copy;
        j.g.b_row = is_turned ? 1 : j.g.n;
        j.g.b_col = is_turned ? j.g.k : 1;
        const int64_t each = r->copies > 1 ? j.g.n * j.g.k : 0;
        j.g.b_batch[2] = each;
        j.g.b_batch[1] = each * j.g.batch[2];
        j.g.b_batch[0] = each * j.g.batch[2] * j.g.batch[1];
    } else {
        sums = (const int32_t *)(const void *)((const char *)k->in[1] +
                                               gemm_pack_size(j.g.isa, j.g.tactic, 1, j.g.k, j.g.n));
        j.g.tactic = integer_tactic(j.g.tactic, sums, j.g.n, j.g.a_type, j.g.a_col == 1);
    }
    integer_begin(&r->end, k, sums, r->copies ? r->copies : 1, work + r->work_at, &j.end);
    j.end.rows = row_sums;
    j.end.user = &j;
    row_parallel(k, gemm_tile_count(&j.g), body, &j);
    return SINTER_OK;
}

const kernel cpu_matmul_integer = {
    .name = "cpu_matmul_integer",
    .abi = 3,
    .out_strides = STRIDES_ROWS,
    .reject = reject,
    .tactics = tactics,
    .check = check,
    .print = print,
    .cost_ns = cost_ns,
    .workspace = workspace,
    .pack_size = pack_size,
    .pack = pack,
    .record_size = record_size,
    .bind = bind,
    .run = run,
};
