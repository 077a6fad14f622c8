/* SPDX-License-Identifier: Apache-2.0 */
/* row_integer.c - matmul_integer and conv_integer: the kernel rows of integer.h.
 *
 * Constant matrices are packed at build, others by whoever computes with them. Where B is one matrix, all batch axes
 * are rows. Programs run over sums while these are still in the L1 cache. */
#include "cpu/integer.h"
#include "cpu/cpu_kernels.h"
#include "cpu/level.h"
#include "cpu/row.h"

typedef struct record {
    integer_params params;
    size_t scratch;
    bool has_za, has_zb;
    int64_t matrix_rows, matrix_cols; /* how far the next matrix is in the space of the program */
    row_epilogue epilogue;
} record;

static bool has_in(const problem *p, uint32_t i)
{
    return i < p->count_anchor && p->in[i].dtype != SINTER_DTYPE_NONE;
}

static bool is_byte(const problem_operand *o)
{
    return o->dtype == SINTER_DTYPE_U8 || o->dtype == SINTER_DTYPE_I8;
}

static bool is_one(const problem_operand *o)
{
    for (uint32_t i = 0; i < o->rank; i++)
        if (o->dim[i].max != 1) return false;
    return true;
}

static const char *common_reject(const problem *p)
{
    REJECT_UNLESS(is_byte(&p->in[0]) && is_byte(&p->in[1]), "not in 8 bits");
    REJECT_UNLESS(p->epilogue || p->out[0].dtype == SINTER_DTYPE_I32, "the result is not i32");
    for (uint32_t i = 2; i < 4; i++) {
        REJECT_UNLESS(!has_in(p, i) || is_byte(&p->in[i]), "zero points are not in 8 bits");
        REJECT_UNLESS(!has_in(p, i) || p->in[i].rank < 2 || is_one(&p->in[i]), "zero points have several axes");
        REJECT_UNLESS(!has_in(p, i) || p->in[i].dtype == p->in[i - 2].dtype, "zero points are of another type");
    }
    return row_epilogue_reject(p);
}

static bool is_conv(const problem *p)
{
    return p->op == OP_conv_integer;
}

static int64_t groups_of(const problem *p)
{
    return is_conv(p) ? ((const attrs_conv_integer *)p->attrs)->groups : 1;
}

static bool is_packed(const problem *p)
{
    if (is_conv(p)) return true;
    if (!p->in[1].is_const) return false;
    for (uint32_t i = 0; i + 2 < p->in[1].rank; i++)
        if (p->in[1].dim[i].max != 1) return false;
    return true;
}

/* Upper bounds of the terms of a sum and of the columns of a matrix. */
static void sizes_of(const problem *p, int64_t *terms, int64_t *n)
{
    const problem_operand *b = &p->in[1];
    if (!is_conv(p)) {
        *terms = b->dim[b->rank - 2].max < p->in[0].dim[p->in[0].rank - 1].max ? b->dim[b->rank - 2].max
                                                                               : p->in[0].dim[p->in[0].rank - 1].max;
        *n = b->dim[b->rank - 1].max;
        return;
    }
    *terms = 1;
    for (uint32_t i = 1; i < b->rank; i++)
        if (!i64_mul(*terms, b->dim[i].max, terms)) *terms = INT64_MAX;
    *n = b->dim[0].max / (groups_of(p) > 0 ? groups_of(p) : 1);
}

static const char *sizes_reject(const problem *p)
{
    int64_t terms, n;
    sizes_of(p, &terms, &n);
    REJECT_UNLESS(terms <= INTEGER_TERMS_MAX, "a sum has no bound of terms, or too large a one");
    REJECT_UNLESS(n < INT32_MAX / 4, "a size has no bound, or too large a one");
    return NULL;
}

static const char *matmul_reject(const problem *p, const kernel_target *t)
{
    (void)t;
    REJECT_UNLESS(p->op == OP_matmul_integer, "not a product of integers");
    const char *why = common_reject(p);
    if (why) return why;
    REJECT_UNLESS(p->in[0].rank >= 2 && p->in[1].rank >= 2, "an operand is a vector");
    return sizes_reject(p);
}

static const char *conv_reject(const problem *p, const kernel_target *t)
{
    (void)t;
    REJECT_UNLESS(p->op == OP_conv_integer, "not a convolution of integers");
    const char *why = common_reject(p);
    if (why) return why;
    REJECT_UNLESS(p->in[0].rank == 3 || p->in[0].rank == 4, "not of one or two spatial axes");
    REJECT_UNLESS(p->in[1].is_const, "the weight is no constant");
    REJECT_UNLESS(groups_of(p) > 0 && p->in[1].dim[0].max % groups_of(p) == 0, "groups do not divide the filters");
    return sizes_reject(p);
}

static double cost_ns(const problem *p, const tactic *t, const kernel_target *target)
{
    (void)t;
    int64_t terms, n;
    sizes_of(p, &terms, &n);
    const double flops = target->flops > 0 ? target->flops : 1e10, threads = target->threads ? target->threads : 1;
    const double results = row_operand_bytes(&p->out[0]) / (sinter_dtype_bits(p->out[0].dtype) / 8);
    return (2.5 * results * (double)terms / flops * 1e9 + results + row_epilogue_ns(p)) / threads +
           row_memory_ns(p, target, 1.0);
}

static size_t scratch_max(const problem *p, const tactic *t)
{
    int64_t terms, n;
    sizes_of(p, &terms, &n);
    return integer_scratch_size(level_of((isa_level)t->at[0])->integer, terms, n, !is_packed(p));
}

static size_t workspace(const problem *p, const tactic *t, uint32_t threads)
{
    return size_mul(scratch_max(p, t), threads);
}

static size_t pack_size(const problem *p, const tactic *t, uint32_t input)
{
    if (input != 1 || !is_packed(p)) return 0;
    int64_t terms, n;
    sizes_of(p, &terms, &n);
    return size_mul(integer_pack_size(level_of((isa_level)t->at[0])->integer, terms, n), (size_t)groups_of(p));
}

/* How a sum walks over B. */
static void terms_bind(const problem *p, const view *b, integer_params *g)
{
    g->b_signed = b->dtype == SINTER_DTYPE_I8;
    if (!is_conv(p)) {
        g->n = b->dim[b->rank - 1];
        g->terms[0] = g->terms[1] = 1;
        g->terms[2] = b->dim[b->rank - 2];
        g->b_term[2] = b->stride[b->rank - 2];
        g->b_col = b->stride[b->rank - 1];
        return;
    }
    const bool is_2d = b->rank == 4;
    g->n = b->dim[0] / groups_of(p);
    g->terms[0] = is_2d ? b->dim[2] : 1;
    g->terms[1] = b->dim[b->rank - 1];
    g->terms[2] = b->dim[1];
    g->b_term[0] = is_2d ? b->stride[2] : 0;
    g->b_term[1] = b->stride[b->rank - 1];
    g->b_term[2] = b->stride[1];
    g->b_col = b->stride[0];
}

static void pack(const problem *p, const tactic *t, uint32_t input, const view *src, void *dst)
{
    (void)input;
    integer_params g = { .set = level_of((isa_level)t->at[0])->integer };
    terms_bind(p, src, &g);
    const size_t each = integer_pack_size(g.set, g.terms[0] * g.terms[1] * g.terms[2], g.n);
    for (int64_t i = 0; i < groups_of(p); i++)
        integer_pack(&g, (const uint8_t *)src->data + i * g.n * g.b_col,
                     (int16_t *)(void *)((char *)dst + (size_t)i * each));
}

static size_t record_size(const problem *p, const tactic *t)
{
    (void)t;
    return sizeof(record) + row_room(p);
}

static int64_t zero_stride(const view *z)
{
    return z->rank == 1 && z->dim[0] > 1 ? z->stride[0] : 0;
}

static sinter_status common_bind(env *e, const problem *p, const tactic *t, const view *in, record *r)
{
    isa_level isa;
    TRY(row_isa_bind(e, p, t, &isa));
    memset(r, 0, sizeof *r);
    integer_params *g = &r->params;
    g->set = level_of(isa)->integer;
    g->a_signed = in[0].dtype == SINTER_DTYPE_I8;
    g->b_raw = !is_packed(p);
    terms_bind(p, &in[1], g);
    r->has_za = has_in(p, 2);
    r->has_zb = has_in(p, 3);
    if (r->has_za) g->za_row = zero_stride(&in[2]);
    if (r->has_zb) g->zb_col = zero_stride(&in[3]);
    r->scratch = scratch_max(p, t);
    return SINTER_OK;
}

/* order: of the axes, columns last. */
static sinter_status program_bind(env *e, const problem *p, const tactic *t, const view *in, const view *out,
                                  const uint8_t *order, record *r)
{
    return row_epilogue_bind(e, p, row_isa(t), in, out, order, false, &r->epilogue, r + 1);
}

static sinter_status matmul_bind(env *e, const problem *p, const tactic *t, const void *attrs, const view *in,
                                 const view *out, void *to)
{
    (void)attrs;
    record *r = to;
    TRY(common_bind(e, p, t, in, r));
    integer_params *g = &r->params;
    const view *y = &out[0];
    const uint32_t rank = y->rank - 2;
    view a = in[0], b = in[1], wa, wb;
    g->a_term[2] = a.stride[a.rank - 1];
    const int64_t m = a.dim[a.rank - 2], a_row = a.stride[a.rank - 2];
    if (a.dim[a.rank - 1] != g->terms[2]) return FAIL(e, INTERNAL, "the operands of a product do not fit each other");
    a.rank -= 2;
    b.rank -= 2;
    if (!view_broadcast(&a, rank, y->dim, &wa) || !view_broadcast(&b, rank, y->dim, &wb))
        return FAIL(e, INTERNAL, "batch dims of a product do not broadcast");
    bool is_shared = true;
    for (uint32_t i = 0; i < rank; i++) is_shared = is_shared && (y->dim[i] == 1 || !wb.stride[i]);
    for (uint32_t i = 0; i < rank; i++) {
        if (is_shared) {
            g->row[i] = y->dim[i];
            g->a_row[i] = wa.stride[i];
            g->y_row[i] = y->stride[i];
        } else {
            g->matrix[i] = y->dim[i];
            g->a_matrix[i] = wa.stride[i];
            g->b_matrix[i] = wb.stride[i];
            g->y_matrix[i] = y->stride[i];
        }
    }
    g->matrix_rank = is_shared ? 0 : rank;
    const uint32_t at = is_shared ? rank : 0;
    g->row[at] = m;
    g->a_row[at] = a_row;
    g->y_row[at] = y->stride[rank];
    g->row_rank = at + 1;
    g->y_col = y->stride[rank + 1];
    r->matrix_rows = m;
    uint8_t order[SINTER_RANK_MAX];
    for (uint32_t i = 0; i < y->rank; i++) order[i] = (uint8_t)i;
    return program_bind(e, p, t, in, out, order, r);
}

static sinter_status conv_bind(env *e, const problem *p, const tactic *t, const void *attrs, const view *in,
                               const view *out, void *to)
{
    record *r = to;
    TRY(common_bind(e, p, t, in, r));
    const attrs_conv_integer *c = attrs;
    integer_params *g = &r->params;
    const view *x = &in[0], *y = &out[0];
    const uint32_t spatial = x->rank - 2;
    g->matrix_rank = 1;
    g->matrix[0] = c->groups;
    g->a_matrix[0] = g->terms[2] * x->stride[1];
    g->y_matrix[0] = g->n * y->stride[1];
    g->zero_matrix = g->n * g->zb_col;
    g->a_term[2] = x->stride[1];
    g->has_window = true;
    g->row_rank = 3;
    g->row[0] = y->dim[0];
    g->a_row[0] = x->stride[0];
    g->y_row[0] = y->stride[0];
    g->row[1] = g->limit[0] = g->step[0] = g->dilation[0] = 1;
    g->za_row = 0;
    for (uint32_t i = 0; i < spatial; i++) {
        const uint32_t k = 2 - spatial + i;
        g->row[1 + k] = y->dim[2 + i];
        g->y_row[1 + k] = y->stride[2 + i];
        g->limit[k] = x->dim[2 + i];
        g->a_term[k] = x->stride[2 + i];
        g->step[k] = c->stride.at[i];
        g->dilation[k] = c->dilation.at[i];
        g->before[k] = c->pad.at[i];
    }
    g->y_col = y->stride[1];
    r->matrix_cols = g->n;
    uint8_t order[SINTER_RANK_MAX];
    row_order_channels_last(y->rank, order);
    return program_bind(e, p, t, in, out, order, r);
}

typedef struct job {
    integer_params p;
    const record *r;
    vm_io io;
    char *workspace;
    size_t scratch;
} job;

static void post(void *user, int64_t matrix, int64_t row, int64_t rows, int64_t col, int64_t cols, const int32_t *sums,
                 int64_t ld)
{
    const job *j = user;
    vm_block(&j->r->epilogue.program, &j->io, matrix * j->r->matrix_rows + row, rows, matrix * j->r->matrix_cols + col,
             cols, sums, ld);
}

static void body(void *arg, uint32_t begin, uint32_t end, uint32_t worker)
{
    job *j = arg;
    integer_run(&j->p, begin, end, j->workspace + worker * j->scratch, j);
}

static sinter_status run(const kernel_run *k)
{
    const record *r = k->record;
    job j = { .p = r->params, .r = r, .io = { k->in, k->out }, .workspace = k->workspace, .scratch = r->scratch };
    j.p.a = k->in[0];
    j.p.b = k->in[1];
    if (r->has_za) j.p.za = k->in[2];
    if (r->has_zb) j.p.zb = k->in[3];
    j.p.y = k->out[0];
    j.p.post = r->epilogue.has_program ? post : NULL;
    row_parallel(k, integer_tile_count(&j.p), body, &j);
    return SINTER_OK;
}

const kernel cpu_matmul_integer = {
    .name = "cpu_matmul_integer",
    .abi = 1,
    .is_strided_out = true,
    .reject = matmul_reject,
    .tactics = row_tactics_isa,
    .check = row_check_isa,
    .print = row_print_isa,
    .cost_ns = cost_ns,
    .workspace = workspace,
    .pack_size = pack_size,
    .pack = pack,
    .record_size = record_size,
    .bind = matmul_bind,
    .run = run,
};

const kernel cpu_conv_integer = {
    .name = "cpu_conv_integer",
    .abi = 1,
    .is_strided_out = true,
    .reject = conv_reject,
    .tactics = row_tactics_isa,
    .check = row_check_isa,
    .print = row_print_isa,
    .cost_ns = cost_ns,
    .workspace = workspace,
    .pack_size = pack_size,
    .pack = pack,
    .record_size = record_size,
    .bind = conv_bind,
    .run = run,
};
