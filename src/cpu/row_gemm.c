/* SPDX-License-Identifier: Apache-2.0 */
/* row_gemm.c - matmul in f32 and bf16 on the packed products: constant matrices packed once, others tile by tile.
 *
 * Axes of the batch are merged into M where memory allows (any number of tokens against one weight is one product), the
 * rest are at most three. Bias, residual and clip go into the micro-kernel's store, everything else into its hook. */
#include "cpu/codes.h"
#include "cpu/cpu_kernels.h"
#include "cpu/level.h"
#include "cpu/row.h"

#include <math.h>

typedef struct record {
    gemm_params params;
    gemm_codes codes;       /* B, where it is in codes */
    size_t copied, scratch; /* bytes in the workspace: rows that are copied first, and of each worker */
    row_epilogue epilogue;
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

static uint32_t row_axis(const problem_operand *o, bool is_swapped)
{
    return o->rank - (is_swapped ? 1u : 2u);
}
static uint32_t col_axis(const problem_operand *o, bool is_swapped)
{
    return o->rank - (is_swapped ? 2u : 1u);
}

/* True where elements along `axis` are known to be adjacent: no axis that can have more than one lies inside it. */
static bool is_inner(const problem_operand *o, uint32_t axis)
{
    uint32_t i = o->rank - 1u;
    while (o->order[i] != axis && o->dim[o->order[i]].max == 1) i--;
    return !o->is_strided && o->order[i] == axis;
}

/* The product that tactics are chosen for. Strides are only as exact as choosing needs. */
static gemm_shape shape_of(const problem *p, row_bound b, gemm_unit unit)
{
    const attrs_matmul *a = p->attrs;
    const problem_operand *x = &p->in[0], *w = &p->in[1], *y = &p->out[0];
    const uint32_t m = row_axis(x, a->trans_a), k = col_axis(x, a->trans_a), n = col_axis(w, a->trans_b);
    gemm_shape s = { .m = row_size(x->dim[m], b),
                     .n = row_size(w->dim[n], b),
                     .k = row_size(x->dim[k], b),
                     .taps = 1,
                     .b_raw = !is_packed(p) || p->weight,
                     .is_converted = gemm_unit_splits(unit),
                     .is_whole = true,
                     .unit = unit };
    if (is_packed(p))
        for (uint32_t i = 0; i + 2 < y->rank; i++)
            if (!i64_mul(s.m, row_size(y->dim[i], b), &s.m)) s.m = INT64_MAX / 4;
    /* Adjacent elements of a row, or else surely not: 1 only where no run can bring another stride. */
    s.a_col = is_inner(x, k) || x->dim[k].max <= 1 ? 1 : s.m > 2 ? s.m : 2;
    s.a_row = is_inner(x, k) ? s.k : 1;
    return s;
}

static int64_t batch_of(const problem *p)
{
    int64_t n = 1;
    for (uint32_t i = 0; i + 2 < p->out[0].rank && !is_packed(p); i++) n *= p->out[0].dim[i].opt;
    return n;
}

static const char *product_reject(const problem *p)
{
    REJECT_UNLESS(p->in[0].rank >= 2 && p->in[1].rank >= 2, "an operand is a vector");
    const problem_operand *y = &p->out[0];
    for (uint32_t i = 0; i < y->rank; i++) REJECT_UNLESS(y->order[i] == i, "the result is not row-major");
    REJECT_UNLESS(!y->is_gapped, "the result's columns are not adjacent");
    const gemm_shape s = shape_of(p, AT_MAX, GEMM_F32);
    REJECT_UNLESS(s.k < INT32_MAX && s.n < INT32_MAX, "a size has no bound, or too large a one");
    REJECT_UNLESS(y->rank <= 2 + GEMM_BATCH_RANK || is_packed(p), "has too many batch axes");
    REJECT_UNLESS(y->rank <= 2 + GEMM_BATCH_RANK || (!p->in[0].is_strided && !y->is_strided),
                  "has too many batch axes");
    return row_epilogue_reject(p);
}

static const char *reject(const problem *p, const kernel_target *t)
{
    (void)t;
    REJECT_UNLESS(p->op == OP_matmul, "not a matrix product");
    REJECT_UNLESS(!p->weight, "its weight is packed");
    const char *why = row_unit_reject(p);
    return why ? why : product_reject(p);
}

static void unit_tactics(const problem *p, const kernel_target *t, gemm_unit unit, tactic_sink *out)
{
    gemm_tactic list[GEMM_TACTICS_MAX];
    gemm_shape s = shape_of(p, AT_OPT, unit);
    s.cache = t->cache_l2;
    row_tactics_add(t, list, gemm_tactics((isa_level)t->isa, &s, list), sizeof *list, out);
}

static bool unit_check(const problem *p, const tactic *t, gemm_unit unit)
{
    const gemm_shape s = shape_of(p, AT_OPT, unit);
    return row_tactic_check(t, sizeof(gemm_tactic)) && !gemm_tactic_check(row_isa(t), &s, tactic_of(t));
}

static void tactics(const problem *p, const kernel_target *t, tactic_sink *out)
{
    gemm_unit units[2];
    const int count = row_units_of(p->in[0].dtype, t, units);
    for (int i = 0; i < count; i++) unit_tactics(p, t, units[i], out);
}

static bool check(const problem *p, const tactic *t)
{
    return row_unit_fits(p->in[0].dtype, unit_of(t)) && unit_check(p, t, unit_of(t));
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
    return (gemm_cost(row_isa(t), &s, tactic_of(t)) * (double)batch_of(p) + row_epilogue_ns(p)) /
               (target->threads ? target->threads : 1) +
           500;
}

static size_t scratch_max(const problem *p, const tactic *t)
{
    const gemm_shape s = shape_of(p, AT_MAX, unit_of(t));
    gemm_codes codes;
    gemm_params g = { .epilogue.drain = row_may_drain(p),
                      .isa = row_isa(t),
                      .tactic = tactic_of(t),
                      .m = s.m,
                      .n = s.n,
                      .k = s.k,
                      .b_raw = s.b_raw };
    if (p->weight && !codes_form_of(p, &codes.form)) g.codes = &codes;
    return size_align(gemm_scratch_size(&g), 64);
}

/* Of all rows that are copied before they are multiplied. */
static size_t copied_max(const problem *p, const tactic *t)
{
    const gemm_shape s = shape_of(p, AT_MAX, unit_of(t));
    const gemm_params g = { .isa = row_isa(t), .tactic = tactic_of(t), .m = s.m, .n = s.n, .k = s.k };
    return gemm_copied_size(&g);
}

static size_t workspace(const problem *p, const tactic *t, uint32_t threads)
{
    return size_add(copied_max(p, t), size_mul(scratch_max(p, t), threads));
}

static size_t pack_size(const problem *p, const tactic *t, uint32_t input)
{
    if (input != 1 || !is_packed(p)) return 0;
    const gemm_shape s = shape_of(p, AT_MAX, unit_of(t));
    return gemm_pack_size(row_isa(t), tactic_of(t), 1, s.k, s.n);
}

static void pack(const problem *p, const tactic *t, uint32_t input, const view *src, void *dst)
{
    (void)input;
    const attrs_matmul *a = p->attrs;
    const uint32_t k = row_axis(&p->in[1], a->trans_b), n = col_axis(&p->in[1], a->trans_b);
    gemm_pack(row_isa(t), tactic_of(t), 1, src->dim[k], src->dim[n], src->data, 0, src->stride[k], src->stride[n], dst);
}

typedef struct axis {
    int64_t size, a, b, c;
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
        const axis x = { y->dim[i], wa.stride[i], wb.stride[i], y->stride[i] };
        axis *last = n ? &out[n - 1] : NULL;
        if (last && last->a == x.a * x.size && last->b == x.b * x.size && last->c == x.c * x.size)
            *last = (axis){ last->size * x.size, x.a, x.b, x.c };
        else out[n++] = x;
    }
    if (n && !out[n - 1].b && (g->m == 1 || (out[n - 1].a == g->a_row * g->m && out[n - 1].c == g->ldc * g->m))) {
        if (g->m == 1) {
            g->a_row = out[n - 1].a;
            g->ldc = out[n - 1].c;
        }
        g->m *= out[n - 1].size;
        n--;
    }
    return n;
}

static sinter_status bind(env *e, const problem *p, const tactic *t, const void *attrs, const view *in, const view *out,
                          void *to)
{
    record *r = to;
    const attrs_matmul *at = attrs;
    isa_level isa;
    TRY(row_unit_bind(e, p, t, tactic_of(t).dot ? GEMM_U8_DOT : unit_of(t), &isa));
    memset(&r->params, 0, sizeof r->params);
    gemm_params *g = &r->params;
    const view *a = &in[0], *b = &in[1], *y = &out[0];
    const uint32_t am = row_axis(&p->in[0], at->trans_a), ak = col_axis(&p->in[0], at->trans_a),
                   bk = row_axis(&p->in[1], at->trans_b), bn = col_axis(&p->in[1], at->trans_b);
    *g = (gemm_params){
        .isa = isa,
        .tactic = tactic_of(t),
        .m = a->dim[am],
        .n = b->dim[bn],
        .k = a->dim[ak],
        .a_row = a->stride[am],
        .a_col = a->stride[ak],
        .b_raw = !is_packed(p),
        .b_row = b->stride[bk],
        .b_col = b->stride[bn],
        .ldc = y->stride[y->rank - 2],
    };
    if (g->m == 1) g->ldc = g->n;
    if (g->k <= 1) g->a_col = 1;
    axis axes[SINTER_RANK_MAX];
    const uint32_t n = batch_axes(a, b, y, g, axes);
    if (n > GEMM_BATCH_RANK)
        return FAIL(e, INTERNAL, "a matrix product has %u batch axes that do not merge; at most %d are taken", n,
                    GEMM_BATCH_RANK);
    for (uint32_t i = 0; i < GEMM_BATCH_RANK; i++) g->batch[i] = 1;
    for (uint32_t i = 0; i < n; i++) {
        const uint32_t k = GEMM_BATCH_RANK - n + i;
        g->batch[k] = axes[i].size;
        g->a_batch[k] = axes[i].a;
        g->b_batch[k] = axes[i].b;
        g->c_batch[k] = g->residual_batch[k] = axes[i].c;
    }
    /* The tactic was chosen for adjacent elements; a strided operand always copies. */
    if (g->a_col != 1 && !g->tactic.copy_a)
        return FAIL(e, INTERNAL, "a matrix product's rows are not adjacent, and the tactic does not copy");
    uint8_t order[SINTER_RANK_MAX];
    for (uint8_t i = 0; i < SINTER_RANK_MAX; i++) order[i] = i;
    TRY(row_epilogue_bind(e, p, isa, in, out, order, true, &r->epilogue, r + 1));
    row_gemm_epilogue_bind(&r->epilogue, g->ldc, &g->epilogue);
    g->narrow_c = y->dtype == SINTER_DTYPE_BF16 && !r->epilogue.drain;
    if (p->weight) {
        const char *why = codes_form_of(p, &r->codes.form);
        if (why) return FAIL(e, INTERNAL, "a packed weight: %s", why);
        r->codes.is_direct = g->m <= g->tactic.direct;
        g->codes = &r->codes;
    }
    r->copied = gemm_copied_size(g);
    r->scratch = scratch_max(p, t);
    return SINTER_OK;
}

typedef struct job {
    gemm_params g;
    gemm_codes codes;
    const record *r;
    vm_io io;
    char *workspace;
} job;

static void post(void *user, int64_t batch, int64_t row, int64_t rows, int64_t col, int64_t cols, void *c, int64_t ldc)
{
    const job *j = user;
    row_epilogue_block(&j->r->epilogue, &j->io, batch * j->g.m + row, rows, col, cols, c, ldc);
}

static void body(void *arg, uint32_t begin, uint32_t end, uint32_t worker)
{
    job *j = arg;
    gemm_run(&j->g, begin, end, j->workspace + worker * j->r->scratch, j);
}

static void copy_body(void *arg, uint32_t begin, uint32_t end, uint32_t worker)
{
    job *j = arg;
    gemm_copy(&j->g, begin, end, j->workspace - j->r->copied, j->workspace + worker * j->r->scratch);
}

static sinter_status run(const kernel_run *k)
{
    const record *r = k->record;
    job j = { .g = r->params, .r = r, .io = { k->in, k->out }, .workspace = (char *)k->workspace + r->copied };
    j.g.a = k->in[0];
    j.g.b = k->in[1];
    j.g.c = k->out[0];
    if (j.g.codes) {
        j.codes = r->codes;
        j.codes.code = k->in[1];
        j.codes.scale = k->in[j.codes.form.w.scale];
        j.codes.zero = j.codes.form.w.zero ? k->in[j.codes.form.w.zero] : NULL;
        j.g.codes = &j.codes;
    }
    row_gemm_epilogue_run(&r->epilogue, k, post, &j.g.epilogue);
    if (r->copied) {
        row_parallel(k, gemm_copy_count(&j.g), copy_body, &j);
        j.g.copied = k->workspace;
    }
    row_parallel(k, gemm_tile_count(&j.g), body, &j);
    return SINTER_OK;
}

const kernel cpu_gemm = {
    .name = "cpu_gemm",
    .abi = 1,
    .out_strides = STRIDES_ROWS,
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

/* ---- in numbers that are split ---- */

/* With fewer rows or terms most of what the registers hold is empty. */
enum { SPLIT_ROWS_LEAST = 8, SPLIT_TERMS_LEAST = 16 };

static const char *split_reject(const problem *p, const kernel_target *t)
{
    const char *why = reject(p, t);
    if (!why) why = row_split_reject(p, t);
    if (why) return why;
    const gemm_shape s = shape_of(p, AT_MAX, GEMM_F32_AMX);
    REJECT_UNLESS(s.m >= SPLIT_ROWS_LEAST && s.k >= SPLIT_TERMS_LEAST, "has few rows or terms");
    return NULL;
}

static void split_long_tactics(const problem *p, const kernel_target *t, tactic_sink *out)
{
    unit_tactics(p, t, GEMM_F32_AMX, out);
}

static void split_short_tactics(const problem *p, const kernel_target *t, tactic_sink *out)
{
    unit_tactics(p, t, GEMM_F32_AMX_SHORT, out);
}

static bool split_long_check(const problem *p, const tactic *t)
{
    return unit_check(p, t, GEMM_F32_AMX);
}

static bool split_short_check(const problem *p, const tactic *t)
{
    return unit_check(p, t, GEMM_F32_AMX_SHORT);
}

const kernel cpu_gemm_split = {
    .name = "cpu_gemm_split",
    .abi = 1,
    .out_strides = STRIDES_ROWS,
    .numerics = KERNEL_TRANSFORMED,
    .reject = split_reject,
    .tactics = split_long_tactics,
    .check = split_long_check,
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

const kernel cpu_gemm_split_short = {
    .name = "cpu_gemm_split_short",
    .abi = 1,
    .out_strides = STRIDES_ROWS,
    .numerics = KERNEL_RELAXED,
    .reject = split_reject,
    .tactics = split_short_tactics,
    .check = split_short_check,
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

/* ---- with a weight in codes ---- */

static const char *codes_reject(const problem *p, const kernel_target *t)
{
    (void)t;
    codes_form f;
    REJECT_UNLESS(p->op == OP_matmul, "not a matrix product");
    REJECT_UNLESS(row_is_f32(p, 1), "not in f32");
    const char *why = codes_form_of(p, &f);
    return why ? why : product_reject(p);
}

/* Few rows are cheaper with codes, more of them with what codes become: rows of A from which on panels are expanded. */
static const uint8_t direct_rows[] = { 12, 24, GEMM_DIRECT_MAX };

static void codes_tactics(const problem *p, const kernel_target *t, tactic_sink *out)
{
    gemm_tactic list[GEMM_TACTICS_MAX], kept[4 * GEMM_TACTICS_MAX];
    gemm_shape s = shape_of(p, AT_OPT, GEMM_F32);
    s.cache = t->cache_l2;
    const int count = gemm_tactics((isa_level)t->isa, &s, list);
    int kept_count = 0;
    bool has_direct = false;
    codes_form f;
    const bool has_dot = !codes_form_of(p, &f) && codes_dot_of((isa_level)t->isa, &f) && !t->is_exact &&
                         !(gemm_unit_needs((isa_level)t->isa, GEMM_U8_DOT) & ~t->features);
    for (int i = 0; i < count; i++) {
        if (CODES_VECTORS % list[i].vectors) continue;
        for (size_t k = 0; k < COUNT_OF(direct_rows); k++) {
            const bool is_direct = s.m <= direct_rows[k];
            if (k && is_direct == (s.m <= direct_rows[k - 1])) continue; /* the same for the usual size */
            if (is_direct && has_direct) continue;                       /* however panels are cut */
            has_direct = has_direct || is_direct;
            kept[kept_count] = list[i];
            kept[kept_count].direct = direct_rows[k];
            kept[kept_count++].ahead = 0;
            if (!has_dot) continue;
            if (is_direct) {
                kept[kept_count] = kept[kept_count - 1];
                kept_count++;
            }
            kept[kept_count - 1].dot =
                1; /* where the usual size is not multiplied with codes, nothing says otherwise */
        }
    }
    row_tactics_add(t, kept, kept_count, sizeof *kept, out);
}

static bool codes_check(const problem *p, const tactic *t)
{
    const gemm_shape s = shape_of(p, AT_OPT, GEMM_F32);
    gemm_tactic own = tactic_of(t);
    if (!row_tactic_check(t, sizeof own) || own.direct > GEMM_DIRECT_MAX || !own.vectors) return false;
    codes_form f;
    if (own.dot && (own.dot > 1 || codes_form_of(p, &f) || !codes_dot_of(row_isa(t), &f))) return false;
    own.direct = own.dot = 0;
    return CODES_VECTORS % own.vectors == 0 && !gemm_tactic_check(row_isa(t), &s, own);
}

static void codes_print(const tactic *t, text *out)
{
    print(t, out);
    text_printf(out, " direct%u%s", tactic_of(t).direct, tactic_of(t).dot ? " dot" : "");
}

/* As gemm_cost: on a core of no particular machine. */
static double codes_cost_ns(const problem *p, const tactic *t, const kernel_target *target)
{
    static const double vector_ns = 0.15, expand_steps = 3, direct_steps = 1.2, dot_steps = 0.3;
    const gemm_shape s = shape_of(p, AT_OPT, GEMM_F32);
    const gemm_tactic own = tactic_of(t);
    const int32_t lanes = level_of(row_isa(t))->gemm->lanes;
    const double vectors = (double)((s.n + lanes - 1) / lanes) * (double)s.k;
    gemm_shape packed = s;
    packed.b_raw = false;
    const double ns = s.m <= own.direct ? vector_ns * vectors * ((double)s.m + (own.dot ? dot_steps : direct_steps))
                                        : gemm_cost(row_isa(t), &packed, own) + vector_ns * vectors * expand_steps;
    return (ns * (double)batch_of(p) + row_epilogue_ns(p)) / (target->threads ? target->threads : 1) + 500;
}

static size_t codes_pack_bytes(const problem *p, const tactic *t, uint32_t input)
{
    codes_form f;
    return codes_form_of(p, &f) ? 0 : codes_pack_size(p, &f, row_isa(t), input);
}

static void codes_pack_input(const problem *p, const tactic *t, uint32_t input, const view *src, void *dst)
{
    codes_form f;
    if (!codes_form_of(p, &f)) codes_pack(p, &f, row_isa(t), input, src, dst);
}

const kernel cpu_gemm_codes = {
    .name = "cpu_gemm_codes",
    .abi = 1,
    .out_strides = STRIDES_ROWS,
    .reject = codes_reject,
    .tactics = codes_tactics,
    .check = codes_check,
    .print = codes_print,
    .cost_ns = codes_cost_ns,
    .workspace = workspace,
    .pack_size = codes_pack_bytes,
    .pack = codes_pack_input,
    .record = sizeof(record),
    .record_size = row_record_room,
    .bind = bind,
    .run = run,
};
