/* SPDX-License-Identifier: Apache-2.0 */
/* row_attention_few.c - attention of few queries over many keys, as decoders have it for each token. The keys of a head
 * are split among the warps of a block, and from sm_90 on among a cluster of blocks.
 *
 * cuda_attention_append also puts the new rows of keys and values into the cache, in place. */
#include "cuda/cuda_kernels.h"
#include "cuda/cuda_row_attention.h"
#include "cuda/ranking.h"

enum { ROWS_USUAL = 64, ROWS_APPENDED = 16, TURNS = 4 };
typedef struct few_tactic {
    uint8_t warps, cluster, rows, trigger, zero[TACTIC_SIZE - 4];
} few_tactic;
_Static_assert(sizeof(few_tactic) == TACTIC_SIZE, "a tactic is overlaid");
static const tactic_field fields[] = {
    FIELD(few_tactic, warps, 1, 16, true, "warps ", 1),
    FIELD(few_tactic, cluster, 1, 8, true, " cluster ", 1),
    FIELD(few_tactic, rows, 1, 8, true, " rows ", 1),
    FIELD(few_tactic, trigger, 1, 3, false, " t", 1),
};

static uint32_t each_of(const problem *p)
{
    return p->in[0].dtype == SINTER_DTYPE_F32 ? 4 : 8;
}

/* Lanes that share a key: a power of two. */
static uint32_t lanes_of(const problem *p)
{
    const int64_t depth = attention_depth(p), width = attention_width(p), most = depth > width ? depth : width;
    uint32_t lanes = 1;
    while (lanes * each_of(p) < (uint32_t)most) lanes *= 2;
    return lanes;
}

/* Rows that share a key head, at opt. */
static int64_t rows_of(const problem *p)
{
    const int64_t heads = p->in[1].dim[1].opt, group = heads > 0 ? p->in[0].dim[1].opt / heads : 1;
    return (group > 0 ? group : 1) * p->in[0].dim[2].opt;
}

static const char *reject_head(const problem_operand *o)
{
    REJECT_UNLESS(!o->is_gapped && o->order[3] == 3, "heads do not lie innermost");
    REJECT_UNLESS(problem_dim_is_static(o->dim[3]) && o->dim[3].max % 8 == 0, "head size is no multiple of 8");
    return NULL;
}

static const char *reject_any(const problem *p)
{
    const char *why = attention_reject_any(p);
    for (uint32_t i = 0; i < 4 && !why; i++) why = reject_head(i < 3 ? &p->in[i] : &p->out[0]);
    if (why) return why;
    REJECT_UNLESS(lanes_of(p) <= 32, "heads of more than 32 lanes");
    REJECT_UNLESS(rows_of(p) <= ROWS_USUAL, "many queries");
    return NULL;
}

static const char *reject(const problem *p, const kernel_target *t)
{
    (void)t;
    const char *why = reject_any(p);
    if (why) return why;
    REJECT_UNLESS(!attention_appends(p), "appends rows to keys and values");
    return NULL;
}

/* The most queries count, not those at opt: a graph is joined for all of its profiles. */
static const char *append_reject(const problem *p, const kernel_target *t)
{
    (void)t;
    const char *why = reject_any(p);
    if (why) return why;
    REJECT_UNLESS(attention_appends(p), "appends no rows");
    const int64_t heads = p->in[1].dim[1].min, group = heads > 0 ? p->in[0].dim[1].max / heads : 1;
    REJECT_UNLESS(p->in[0].dim[2].max <= ROWS_APPENDED / (group > 0 ? group : 1), "many queries");
    for (uint32_t i = 1; i < 3; i++) {
        const problem_operand *cache = &p->in[i], *rows = &p->in[4 + i], *to = &p->out[i];
        REJECT_UNLESS(rows->rank == 4 && rows->dtype == cache->dtype && to->dtype == cache->dtype,
                      "new rows are not like keys and values");
        why = reject_head(rows);
        if (!why) why = reject_head(to);
        if (why) return why;
    }
    REJECT_UNLESS(p->in[7].dtype == SINTER_DTYPE_I64 && p->in[7].rank == 1, "the place of new rows is no list of i64");
    return NULL;
}

static uint32_t line_of(const problem *p)
{
    return lanes_of(p) * each_of(p);
}

static uint32_t shared_of(const problem *p, few_tactic x)
{
    return (uint32_t)x.warps * x.rows * (line_of(p) + 2) * 4;
}

static double cost_ns(const problem *p, const tactic *t, const kernel_target *target)
{
    const few_tactic x = TACTIC_AS(few_tactic, t);
    const problem_operand *k = &p->in[1];
    const double units = target->units ? target->units : 100, keys = (double)k->dim[2].opt;
    const double blocks =
        (double)k->dim[0].opt * (double)k->dim[1].opt * x.cluster * (double)((rows_of(p) + x.rows - 1) / x.rows);
    const double at_once = 32.0 / lanes_of(p) * TURNS * x.warps * x.cluster,
                 rounds = keys / at_once < 1 ? 1 : keys / at_once;
    double waves = blocks * x.warps / (units * 32);
    if (waves < 1) waves = 1;
    return 2200 + waves * rounds * (700 + 60.0 * x.rows) + (x.cluster > 1 ? 500 + 60.0 * x.cluster : 0) +
           20.0 * x.warps;
}

static void tactics(const problem *p, const kernel_target *t, tactic_sink *out)
{
    static const uint8_t shapes[][2] = {
        { 8, 1 }, { 8, 4 }, { 8, 8 }, { 16, 1 }, { 8, 2 }, { 4, 8 }, { 4, 4 }, { 4, 1 }
    };
    const int64_t rows = rows_of(p);
    uint8_t of_rows = rows <= 1 ? 1 : rows <= 2 ? 2 : rows <= 4 ? 4 : 8;
    while (of_rows > 1 && of_rows * line_of(p) > 1024) of_rows /= 2;
    for (uint32_t i = 0; i < COUNT_OF(shapes) && out->count < COUNT_OF(out->at); i++) {
        const few_tactic x = { .warps = shapes[i][0], .cluster = shapes[i][1], .rows = of_rows, .trigger = 3 };
        if ((x.cluster > 1 && t->isa < 90) || shared_of(p, x) > 48 * 1024) continue;
        tactic_put(out, &x);
    }
}

static bool check(const problem *p, const tactic *t)
{
    const few_tactic x = TACTIC_AS(few_tactic, t);
    return FIELDS_HOLD(fields, t) && x.trigger != 2 && shared_of(p, x) <= 48 * 1024;
}

FIELDS_PRINT(print, fields)
FIELDS_LET_IN(lets_in, few_tactic, 3)

static bool code(const problem *p, const tactic *t, const kernel_target *target, uint32_t index, cuda_code *c)
{
    const few_tactic x = TACTIC_AS(few_tactic, t);
    if (index || (x.cluster > 1 && target->isa < 90)) return false;
    c->source = "attention_few.cu";
    c->entry = "attention_few";
    c->may_spill = target->isa != 90 || x.rows > 4;
    attention_define(p, c);
    cuda_code_define(c, "TYPE", p->in[0].dtype == SINTER_DTYPE_F16 ? 1 : p->in[0].dtype == SINTER_DTYPE_BF16 ? 2 : 0);
    cuda_code_define(c, "LANES", lanes_of(p));
    cuda_code_define(c, "ROWS", x.rows);
    cuda_code_define(c, "WARPS", x.warps);
    cuda_code_define(c, "CLUSTER", x.cluster);
    cuda_code_define(c, "APPEND", attention_appends(p));
    return true;
}

static sinter_status fill_appended(env *e, const view *in, const view *out, cuda_record *r, struct attention_args *a)
{
    const view *k = &in[5], *v = &in[6], *start = &in[7];
    for (uint32_t i = 1; i < 3; i++) {
        const view *cache = &in[i], *rows = &in[4 + i], *to = &out[i];
        bool fits = rows->dim[2] == in[5].dim[2] && rows->dim[2] <= cache->dim[2] && start->dim[0] == cache->dim[0];
        for (uint32_t n = 0; n < 4; n++)
            fits = fits && to->dim[n] == cache->dim[n] && (n == 2 || rows->dim[n] == cache->dim[n]) &&
                   to->stride[n] == cache->stride[n];
        if (!fits) return FAIL(e, INTERNAL, "the new rows of attention do not fit its keys and values");
    }
    for (uint32_t i = 0; i < 4; i++) {
        a->new_k_stride[i] = k->stride[i];
        a->new_v_stride[i] = v->stride[i];
    }
    a->start_stride = start->stride[0];
    a->added = (small)k->dim[2];
    CUDA_PATCH(r, a, new_k, PATCH_IN, 5);
    CUDA_PATCH(r, a, new_v, PATCH_IN, 6);
    CUDA_PATCH(r, a, start, PATCH_IN, 7);
    CUDA_PATCH(r, a, k_to, PATCH_OUT, 1);
    CUDA_PATCH(r, a, v_to, PATCH_OUT, 2);
    CUDA_PATCH(r, a, fault, PATCH_FAULT, 0);
    CUDA_PATCH(r, a, step, PATCH_STEP, 0);
    return SINTER_OK;
}

static sinter_status bind(env *e, const problem *p, const tactic *t, const void *attrs, const view *in, const view *out,
                          void *to)
{
    const few_tactic x = TACTIC_AS(few_tactic, t);
    const int64_t heads = in[1].dim[1], rows = heads ? in[0].dim[1] / heads * in[0].dim[2] : 0;
    struct attention_args *a;
    TRY(cuda_launch_begin(e, to, 0, (uint64_t)((rows + x.rows - 1) / x.rows) * x.cluster, (uint64_t)heads,
                          (uint64_t)in[0].dim[0], 32u * x.warps, shared_of(p, x), sizeof *a, &a));
    cuda_launch_last(to)->cluster = x.cluster;
    a->trigger = x.trigger;
    if (attention_appends(p)) TRY(fill_appended(e, in, out, to, a));
    return attention_fill(e, p, attrs, in, out, to, a);
}

CUDA_ROW(cuda_attention_few, 2, reject, , .out_strides = STRIDES_ROWS, .lets_in = lets_in);
CUDA_ROW(cuda_attention_append, 1, append_reject, , .out_strides = STRIDES_NONE, .updates_in_place = true,
         .lets_in = lets_in);
