/* SPDX-License-Identifier: Apache-2.0 */
/* row_strassen.c - large products with a constant matrix, and 1x1 convolutions, by one step of Strassen's algorithm: an
 * eighth fewer multiply-adds, results that differ more. Whether that is faster the clock decides. */
#include "cpu/cpu_kernels.h"
#include "cpu/row.h"
#include "cpu/strassen.h"

/* Below these sizes the sums around the products cost more than an eighth of them. */
enum { LEAST_M = 48, LEAST_N = 96, LEAST_K = 128 };

static gemm_tactic tactic_of(const tactic *t)
{
    gemm_tactic own;
    row_tactic_own(t, &own, sizeof own);
    return own;
}

typedef struct record {
    strassen_params params;
    size_t shared, scratch;
    row_epilogue epilogue;
} record;

typedef struct sizes {
    int64_t m, n, k;
} sizes;

/* Axes of the weight that K and N are. */
static void weight_axes(const problem *p, uint32_t *k, uint32_t *n)
{
    const uint32_t rank = p->in[1].rank;
    if (p->op == OP_conv) {
        *k = 1;
        *n = 0;
        return;
    }
    const attrs_matmul *a = p->attrs;
    *k = rank - (a->trans_b ? 1u : 2u);
    *n = rank - (a->trans_b ? 2u : 1u);
}

static sizes sizes_of(const problem *p, row_bound b)
{
    const problem_operand *y = &p->out[0];
    const uint32_t channels = y->order[y->rank - 1];
    uint32_t k, n;
    weight_axes(p, &k, &n);
    sizes s = { .m = 1, .n = p->in[1].dim[n].max, .k = p->in[1].dim[k].max };
    for (uint32_t i = 0; i < y->rank; i++)
        if (i != channels && !i64_mul(s.m, row_size(y->dim[i], b), &s.m)) s.m = INT64_MAX / 4;
    return s;
}

static const char *conv_reject(const problem *p)
{
    const attrs_conv *a = p->attrs;
    const problem_operand *x = &p->in[0], *w = &p->in[1], *y = &p->out[0];
    REJECT_UNLESS(x->rank >= 3 && w->rank == x->rank && y->rank == x->rank, "has no spatial axes");
    REJECT_UNLESS(a->groups == 1, "has groups");
    REJECT_UNLESS(a->stride.count == x->rank - 2u && a->pad.count == 2 * a->stride.count,
                  "an attribute list has another length");
    for (uint32_t i = 0; i < a->stride.count; i++)
        REJECT_UNLESS(w->dim[2 + i].max == 1 && a->stride.at[i] == 1 && !a->pad.at[i] &&
                          !a->pad.at[a->stride.count + i],
                      "not a product: has taps, strides or pads");
    REJECT_UNLESS(row_is_channels_last(x) && row_has_channels_last(y), "not channels-last");
    return row_pitch_reject(y);
}

static const char *matmul_reject(const problem *p)
{
    const attrs_matmul *a = p->attrs;
    const problem_operand *x = &p->in[0], *w = &p->in[1], *y = &p->out[0];
    REJECT_UNLESS(!p->weight, "its weight is packed");
    REJECT_UNLESS(x->rank >= 2 && w->rank >= 2 && y->rank >= x->rank && !a->trans_a, "not rows by a matrix");
    for (uint32_t i = 0; i + 2 < w->rank; i++) REJECT_UNLESS(w->dim[i].max == 1, "has several weights");
    for (uint32_t i = 0; i < x->rank; i++) REJECT_UNLESS(x->order[i] == i, "the rows are not adjacent");
    for (uint32_t i = 0; i < y->rank; i++) REJECT_UNLESS(y->order[i] == i, "the result is not row-major");
    REJECT_UNLESS(!x->is_strided && !x->is_gapped && !y->is_strided && !y->is_gapped, "an operand is strided");
    return NULL;
}

static const char *reject(const problem *p, const kernel_target *t)
{
    (void)t;
    REJECT_UNLESS(p->op == OP_matmul || p->op == OP_conv, "not a product");
    REJECT_UNLESS(row_is_f32(p, p->count_anchor), "not in f32");
    REJECT_UNLESS(p->in[1].is_const && !p->in[1].is_strided, "the second factor is no constant");
    const char *why = p->op == OP_conv ? conv_reject(p) : matmul_reject(p);
    if (why) return why;
    for (uint32_t i = 0; i < p->in[1].rank; i++)
        REJECT_UNLESS(problem_dim_is_static(p->in[1].dim[i]) && p->in[1].dim[i].max > 0,
                      "the weight's size is not fixed");
    const sizes s = sizes_of(p, AT_OPT), most = sizes_of(p, AT_MAX);
    REJECT_UNLESS(s.m >= LEAST_M && s.n >= LEAST_N && s.k >= LEAST_K, "too small");
    REJECT_UNLESS(row_count_max(&p->in[0]) < INT64_MAX / 64 && row_count_max(&p->out[0]) < INT64_MAX / 64,
                  "a size has no bound");
    why = strassen_check(most.m, most.n, most.k);
    return why ? why : row_epilogue_reject(p);
}

static void tactics(const problem *p, const kernel_target *t, tactic_sink *out)
{
    gemm_tactic list[STRASSEN_TACTICS_MAX];
    const sizes s = sizes_of(p, AT_OPT);
    const int count = strassen_tactics((isa_level)t->isa, s.m, s.n, s.k, list);
    row_tactics_add(t, list, count, sizeof *list, out);
}

static bool check(const problem *p, const tactic *t)
{
    const sizes s = sizes_of(p, AT_OPT);
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
    const sizes s = sizes_of(p, AT_OPT);
    return (strassen_cost(row_isa(t), s.m, s.n, s.k, tactic_of(t)) + row_epilogue_ns(p)) /
               (target->threads ? target->threads : 1) +
           1000;
}

static strassen_params params_max(const problem *p, const tactic *t)
{
    const sizes s = sizes_of(p, AT_MAX);
    return (strassen_params){ .isa = row_isa(t), .tactic = tactic_of(t), .m = s.m, .n = s.n, .k = s.k };
}

static size_t workspace(const problem *p, const tactic *t, uint32_t threads)
{
    const strassen_params s = params_max(p, t);
    return size_add(strassen_workspace_size(&s), size_mul(strassen_scratch_size(&s), threads));
}

static size_t pack_size(const problem *p, const tactic *t, uint32_t input)
{
    if (input != 1) return 0;
    const sizes s = sizes_of(p, AT_OPT);
    return strassen_pack_size(row_isa(t), tactic_of(t), s.n, s.k);
}

static void pack(const problem *p, const tactic *t, uint32_t input, const view *src, void *dst)
{
    (void)input;
    const sizes s = sizes_of(p, AT_OPT);
    uint32_t k, n;
    weight_axes(p, &k, &n);
    strassen_pack(row_isa(t), tactic_of(t), s.n, s.k, src->data, src->stride[k], src->stride[n], dst);
}

static size_t record_size(const problem *p, const tactic *t)
{
    (void)t;
    return sizeof(record) + row_room(p);
}

static sinter_status bind(env *e, const problem *p, const tactic *t, const void *attrs, const view *in, const view *out,
                          void *to)
{
    (void)attrs;
    record *r = to;
    isa_level isa;
    TRY(row_isa_bind(e, p, t, &isa));
    memset(&r->params, 0, sizeof r->params);
    const sizes most = sizes_of(p, AT_MAX);
    strassen_params *s = &r->params;
    *s = (strassen_params){ .isa = isa, .tactic = tactic_of(t), .m = 1, .n = most.n, .k = most.k, .a_row = most.k };
    const view *y = &out[0];
    uint8_t order[SINTER_RANK_MAX];
    s->ldc = s->n;
    if (p->op == OP_conv) {
        row_order_channels_last(y->rank, order);
        TRY(row_pitch(e, y, &s->ldc));
    } else {
        for (uint8_t i = 0; i < SINTER_RANK_MAX; i++) order[i] = i;
    }
    for (uint32_t i = 0; i + 1 < y->rank; i++) s->m *= y->dim[order[i]];
    TRY(row_epilogue_bind(e, p, isa, in, out, order, true, &r->epilogue, r + 1));
    /* The products are summed before anything is done to them, so a factor is left to the program. */
    if (r->epilogue.has_scale) TRY(row_epilogue_bind(e, p, isa, in, out, order, false, &r->epilogue, r + 1));
    row_gemm_epilogue_bind(&r->epilogue, s->ldc, &s->epilogue);
    const strassen_params max = params_max(p, t);
    r->shared = strassen_workspace_size(&max);
    r->scratch = strassen_scratch_size(&max);
    return SINTER_OK;
}

typedef struct job {
    strassen_params s;
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
    strassen_run(&j->s, j->phase, begin, end, j->workspace, j->workspace + j->r->shared + worker * j->r->scratch, j);
}

static sinter_status run(const kernel_run *k)
{
    const record *r = k->record;
    job j = { .s = r->params, .r = r, .io = { k->in, k->out }, .workspace = k->workspace };
    j.s.a = k->in[0];
    j.s.b = k->in[1];
    j.s.c = k->out[0];
    row_gemm_epilogue_run(&r->epilogue, k, post, &j.s.epilogue);
    for (j.phase = 0; j.phase < STRASSEN_PHASES; j.phase++)
        row_parallel(k, strassen_tile_count(&j.s, j.phase), body, &j);
    return SINTER_OK;
}

const kernel cpu_strassen = {
    .name = "cpu_strassen",
    .abi = 1,
    .is_strided_out = true,
    .numerics = KERNEL_TRANSFORMED,
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
