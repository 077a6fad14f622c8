/* SPDX-License-Identifier: Apache-2.0 */
/* row_strassen.c - products with a constant matrix, and 1x1 convolutions, by one level of Strassen's method: 7/8 of the
 * products, weights of 7/4 the size, results that differ more. Which kernel is faster the clock decides. */
#include "cpu/cpu_kernels.h"
#include "cpu/row.h"
#include "cpu/strassen.h"

/* Fewer rows wait for weights, of which there are more than in the plain product. With fewer terms or columns the loads
 * and stores of partial sums take what the products save. */
enum { ROWS_LEAST = 16, TERMS_LEAST = 128, COLUMNS_LEAST = 128 };

typedef struct record {
    strassen_params params;
    size_t shared, scratch;
    row_epilogue epilogue;
} record;

static gemm_tactic tactic_of(const tactic *t)
{
    gemm_tactic own;
    row_tactic_own(t, &own, sizeof own);
    return own;
}

typedef struct sizes {
    int64_t m, n, k;
} sizes;

/* The axes of the weight along columns and terms. */
static uint32_t col_axis(const problem *p)
{
    const attrs_matmul *a = p->attrs;
    return p->op == OP_conv ? 0 : p->in[1].rank - (a->trans_b ? 2u : 1u);
}
static uint32_t term_axis(const problem *p)
{
    const attrs_matmul *a = p->attrs;
    return p->op == OP_conv ? 1 : p->in[1].rank - (a->trans_b ? 1u : 2u);
}

typedef enum row_end { END_MIN, END_OPT, END_MAX } row_end;

/* m of INT64_MAX / 4: has no bound. */
static sizes sizes_of(const problem *p, row_end end)
{
    const problem_operand *y = &p->out[0];
    sizes s = { .m = 1, .n = p->in[1].dim[col_axis(p)].max, .k = p->in[1].dim[term_axis(p)].max };
    const uint32_t columns = p->op == OP_conv ? 1 : y->rank - 1u;
    for (uint32_t i = 0; i < y->rank; i++) {
        const dim_range d = y->dim[i];
        const int64_t size = end == END_MIN ? d.min : end == END_OPT ? d.opt : d.max;
        if (i != columns && !i64_mul(s.m, size, &s.m)) s.m = INT64_MAX / 4;
    }
    return s;
}

static const char *matmul_reject(const problem *p)
{
    const attrs_matmul *a = p->attrs;
    const problem_operand *x = &p->in[0], *w = &p->in[1], *y = &p->out[0];
    REJECT_UNLESS(x->rank >= 2 && w->rank >= 2, "an operand is a vector");
    REJECT_UNLESS(!a->trans_a && !x->is_strided, "rows of the first operand are not adjacent");
    for (uint32_t i = 0; i < x->rank; i++) REJECT_UNLESS(x->order[i] == i, "the first operand is not row-major");
    for (uint32_t i = 0; i < y->rank; i++) REJECT_UNLESS(y->order[i] == i, "the result is not row-major");
    REJECT_UNLESS(!y->is_gapped, "the result's columns are not adjacent");
    REJECT_UNLESS(x->rank == y->rank, "the second operand has more axes");
    for (uint32_t i = 0; i + 2 < w->rank; i++) REJECT_UNLESS(w->dim[i].max == 1, "has several second operands");
    for (uint32_t i = 0; i + 2 < y->rank; i++)
        REJECT_UNLESS(!y->is_strided || y->dim[i].max == 1, "rows of the result do not lie at one distance");
    return NULL;
}

static const char *conv_reject(const problem *p)
{
    const attrs_conv *a = p->attrs;
    const problem_operand *x = &p->in[0], *w = &p->in[1], *y = &p->out[0];
    REJECT_UNLESS(x->rank >= 3, "has no spatial axis");
    REJECT_UNLESS(a->groups == 1 && w->dim[1].max == x->dim[1].max, "has groups");
    REJECT_UNLESS(a->stride.count == x->rank - 2u && a->pad.count == 2 * a->stride.count,
                  "an attribute list has another length");
    for (uint32_t i = 0; i < a->stride.count; i++) {
        REJECT_UNLESS(w->dim[2 + i].max == 1, "the filter is not 1x1");
        REJECT_UNLESS(a->stride.at[i] == 1, "a stride is not 1");
        REJECT_UNLESS(!a->pad.at[i] && !a->pad.at[a->stride.count + i], "there is padding");
    }
    REJECT_UNLESS(row_is_channels_last(x) && !x->is_strided, "the input is not channels-last, or strided");
    REJECT_UNLESS(row_has_channels_last(y), "the result is not channels-last");
    return row_pitch_reject(y);
}

static const char *reject(const problem *p, const kernel_target *t)
{
    (void)t;
    REJECT_UNLESS(p->op == OP_matmul || p->op == OP_conv, "neither a matrix product nor a convolution");
    REJECT_UNLESS(!p->weight, "its weight is packed");
    REJECT_UNLESS(row_is_f32(p, p->count_anchor), "not in f32");
    const problem_operand *w = &p->in[1];
    REJECT_UNLESS(w->is_const && !w->is_strided, "the second operand is no constant");
    for (uint32_t i = 0; i < w->rank; i++)
        REJECT_UNLESS(problem_dim_is_static(w->dim[i]) && w->dim[i].max > 0, "the second operand's size is not fixed");
    const char *why = p->op == OP_conv ? conv_reject(p) : matmul_reject(p);
    if (why) return why;
    const sizes least = sizes_of(p, END_MIN), most = sizes_of(p, END_MAX);
    REJECT_UNLESS(least.m >= ROWS_LEAST, "may have few rows");
    REJECT_UNLESS(most.k >= TERMS_LEAST && most.n >= COLUMNS_LEAST, "has few terms or columns");
    why = strassen_shape_check(most.m, most.n, most.k);
    return why ? why : row_epilogue_reject(p);
}

static void tactics(const problem *p, const kernel_target *t, tactic_sink *out)
{
    gemm_tactic list[STRASSEN_TACTICS_MAX];
    const sizes s = sizes_of(p, END_OPT);
    const int count = strassen_tactics((isa_level)t->isa, s.m, s.n, s.k, t->cache_l2, t->threads, list);
    row_tactics_add(t, list, count, sizeof *list, out);
}

static bool check(const problem *p, const tactic *t)
{
    const sizes s = sizes_of(p, END_OPT);
    return row_tactic_check(t, sizeof(gemm_tactic)) && !strassen_tactic_check(row_isa(t), s.m, s.n, s.k, tactic_of(t));
}

static void print(const tactic *t, text *out)
{
    char name[48];
    (void)gemm_tactic_print(name, sizeof name, row_isa(t), tactic_of(t));
    row_tactic_print(t, name, out);
}

static double cost_ns(const problem *p, const tactic *t, const kernel_target *target)
{
    const sizes s = sizes_of(p, END_OPT);
    return (strassen_cost(row_isa(t), s.m, s.n, s.k, tactic_of(t)) + row_epilogue_ns(p)) /
           (target->threads ? target->threads : 1);
}

static strassen_params params_max(const problem *p, const tactic *t)
{
    const sizes s = sizes_of(p, END_MAX);
    return (strassen_params){ .isa = row_isa(t), .tactic = tactic_of(t), .m = s.m, .n = s.n, .k = s.k };
}

/* Bytes of a worker, for every number of rows in range. */
static size_t scratch_size(const problem *p, const strassen_params *most)
{
    return strassen_scratch_size(most, sizes_of(p, END_MIN).m < most->m);
}

static size_t workspace(const problem *p, const tactic *t, uint32_t threads)
{
    const strassen_params s = params_max(p, t);
    return size_add(strassen_workspace_size(&s), size_mul(scratch_size(p, &s), threads));
}

static size_t pack_size(const problem *p, const tactic *t, uint32_t input)
{
    const sizes s = sizes_of(p, END_OPT);
    return input == 1 ? strassen_pack_size(row_isa(t), tactic_of(t), s.n, s.k) : 0;
}

static void pack(const problem *p, const tactic *t, uint32_t input, const view *src, void *dst)
{
    (void)input;
    const sizes s = sizes_of(p, END_OPT);
    strassen_pack(row_isa(t), tactic_of(t), s.n, s.k, src->data, src->stride[term_axis(p)], src->stride[col_axis(p)],
                  dst);
}

static sinter_status bind(env *e, const problem *p, const tactic *t, const void *attrs, const view *in, const view *out,
                          void *to)
{
    (void)attrs;
    record *r = to;
    isa_level isa;
    TRY(row_isa_bind(e, p, t, &isa));
    const view *y = &out[0];
    const sizes s = sizes_of(p, END_OPT);
    memset(&r->params, 0, sizeof r->params);
    strassen_params *g = &r->params;
    *g = (strassen_params){ .isa = isa, .tactic = tactic_of(t), .m = 1, .n = s.n, .k = s.k, .a_row = s.k };
    uint8_t order[SINTER_RANK_MAX];
    if (p->op == OP_conv) {
        TRY(row_pitch(e, y, &g->ldc));
        row_order_channels_last(y->rank, order);
        for (uint32_t i = 0; i < y->rank; i++) g->m *= i == 1 ? 1 : y->dim[i];
    } else {
        g->ldc = y->stride[y->rank - 2];
        for (uint8_t i = 0; i < SINTER_RANK_MAX; i++) order[i] = i;
        for (uint32_t i = 0; i + 1 < y->rank; i++) g->m *= y->dim[i];
        /* Of one row a matrix the batch says how far rows are apart. */
        for (uint32_t i = y->rank - 1; i-- > 0 && y->dim[i + 1] == 1 && i + 2 < y->rank;) g->ldc = y->stride[i];
    }
    TRY(row_epilogue_bind(e, p, isa, in, out, order, true, &r->epilogue, r + 1));
    row_gemm_epilogue_bind(&r->epilogue, g->ldc, &g->epilogue);
    const strassen_params max = params_max(p, t);
    r->shared = strassen_workspace_size(&max);
    r->scratch = scratch_size(p, &max);
    return SINTER_OK;
}

typedef struct job {
    strassen_params g;
    const record *r;
    vm_io io;
    char *workspace;
    int phase;
} job;

static void post(void *user, int64_t batch, int64_t row, int64_t rows, int64_t col, int64_t cols, void *c, int64_t ldc)
{
    (void)batch;
    const job *j = user;
    row_epilogue_block(&j->r->epilogue, &j->io, row, rows, col, cols, c, ldc);
}

static void body(void *arg, uint32_t begin, uint32_t end, uint32_t worker)
{
    job *j = arg;
    char *scratch = j->workspace + j->r->shared + worker * j->r->scratch;
    strassen_run(&j->g, j->phase, begin, end, j->workspace, scratch, j);
}

static sinter_status run(const kernel_run *k)
{
    const record *r = k->record;
    job j = { .g = r->params, .r = r, .io = { k->in, k->out }, .workspace = k->workspace };
    j.g.a = k->in[0];
    j.g.b = k->in[1];
    j.g.c = k->out[0];
    row_gemm_epilogue_run(&r->epilogue, k, post, &j.g.epilogue);
    for (j.phase = 0; j.phase < STRASSEN_PHASES; j.phase++)
        row_parallel(k, strassen_tile_count(&j.g, j.phase), body, &j);
    return SINTER_OK;
}

const kernel cpu_strassen = {
    .name = "cpu_strassen",
    .abi = 1,
    .out_strides = STRIDES_ROWS,
    .numerics = KERNEL_TRANSFORMED,
    .reject = reject,
    .tactics = tactics,
    .check = check,
    .print = print,
    .cost_ns = cost_ns,
    .workspace = workspace,
    .pack_size = pack_size,
    .pack = pack,
    .record = sizeof(record),
    .record_size = row_record_room,
    .bind = bind,
    .run = run,
};
