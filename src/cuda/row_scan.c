/* SPDX-License-Identifier: Apache-2.0 */
/* row_scan.c - cumulate: sums and products along lines. */
#include "cuda/cuda_kernels.h"
#include "cuda/line_order.h"
#include "cuda/ranking.h"

#include <math.h>

typedef struct scan_tactic {
    uint16_t block;
    uint16_t lanes; /* threads of a line, or of a part */
    uint32_t part;  /* elements of a part of a line; 0: it is taken whole */
    uint32_t each;  /* elements that a thread takes at once */
    uint8_t rest[TACTIC_SIZE - 12];
} scan_tactic;
_Static_assert(sizeof(scan_tactic) == TACTIC_SIZE, "a tactic is overlaid");

/* Of a thread at once; of a part; parts of a line; threads of a line across memory. */
enum { EACH_LEAST = 4, EACH_MOST = 16, PART_MOST = 1 << 24, PARTS_MOST = 4096, ACROSS_MOST = 64 };
static const tactic_field scan_fields[] = {
    FIELD(scan_tactic, block, 32, 1024, true),
    FIELD(scan_tactic, lanes, 1, 1024, true),
    FIELD(scan_tactic, part, 0, PART_MOST),
    FIELD(scan_tactic, each, EACH_LEAST, EACH_MOST, true),
};

static const char *scan_reject(const problem *p, const kernel_target *t)
{
    (void)t;
    REJECT_UNLESS(p->op == OP_cumulate, "not a cumulative sum");
    lines l;
    return order_reject(p, &l);
}

/* The most parts of all lines; INT64_MAX: no bound. */
static int64_t scan_parts(const lines *l, int64_t part)
{
    int64_t count = cuda_ceil_div(order_range(l, &l->in[0]).max, part);
    for (uint32_t i = 0; i < l->kept_count; i++)
        if (!i64_mul(count, l->in[0].dim[l->kept[i]].max, &count)) return INT64_MAX;
    return count;
}

static bool scan_is_sound(const lines *l, const scan_tactic *t)
{
    if (t->lanes > t->block || (!l->is_rows && t->lanes > ACROSS_MOST)) return false;
    return !t->part || (t->part % (t->lanes * t->each) == 0 && scan_parts(l, t->part) <= INT32_MAX / 8 &&
                        cuda_range_most(order_range(l, &l->in[0])) / t->part < PARTS_MOST);
}

/* Elements that a thread reads and writes at once. */
static uint32_t scan_vector(const problem *p, const lines *l, const scan_tactic *t)
{
    const uint32_t most = 16 / (sinter_dtype_bits(p->in[0].dtype) / 8), x = cuda_operand_vector(&l->in[0], most);
    const uint32_t y = cuda_operand_vector(&l->out[0], x), v = y < t->each ? y : t->each;
    const dim_range n = order_range(l, &l->in[0]);
    if (!l->is_rows || cuda_operand_inner(&l->out[0]) != l->gone[0]) return 1;
    return !((const attrs_cumulate *)p->attrs)->reverse || (n.min == n.max && n.max % v == 0) ? v : 1;
}

static size_t scan_workspace(const problem *p, const tactic *t, uint32_t threads)
{
    (void)threads;
    const scan_tactic x = TACTIC_AS(scan_tactic, t);
    lines l;
    return x.part && !lines_of(p, false, &l) ? size_mul((size_t)scan_parts(&l, x.part), 8) : 0;
}

static double scan_cost_of(const problem *p, scan_tactic x, const kernel_target *target)
{
    lines l;
    if (lines_of(p, false, &l)) return 1e12;
    const double n = (double)order_range(&l, &l.in[0]).opt, rows = order_lines(&l), each = x.each, lanes = x.lanes;
    const double units = target->units ? target->units : 100, ghz = machine_of(target).ghz;
    const double size = sinter_dtype_bits(p->in[0].dtype) / 8, line = x.block / lanes, warps = x.block / 32;
    const double parts = x.part ? ceil(n / x.part) : 1, tiles = ceil((x.part ? fmin(x.part, n) : n) / (lanes * each));
    const double blocks = ceil(rows / line) * parts, at_once = units * floor(fmin(32, 48 / warps));
    const double vectors = scan_vector(p, &l, &x);
    /* Bytes that a warp reads for one that it wants, and what a thread does for a tile. */
    const double apart = l.is_rows ? 1 : fmax(1, fmin(32, n * size) / (fmin(line, 32) * size));
    const double meeting = lanes < 2 ? 0 : l.is_rows ? log2(lanes) * 10 + lanes / 8 : 40 + lanes * 4;
    const double reads = l.is_rows ? each / vectors * fmin(32, each * size / 4) : each * apart;
    const double issue = ceil(blocks / units) * warps * tiles * fmax((each * 14 + meeting) / 2.4, 2 * reads) / ghz;
    const double serial = tiles * (800 + each * 12 + meeting * 3) * ceil(blocks / at_once);
    const double bytes = cuda_operand_bytes(&p->in[0]) + cuda_operand_bytes(&p->out[0]);
    const double memory = cuda_cost_ns(target, bytes * apart, 0);
    const double total = 2000 + fmax(issue, serial) + ceil(blocks / units) * 30;
    return fmax(memory, total) + (x.part ? 2000 + 0.6 * fmax(issue, serial) + parts / lanes * 50 : 0);
}

static double scan_cost_ns(const problem *p, const tactic *t, const kernel_target *target)
{
    return scan_cost_of(p, TACTIC_AS(scan_tactic, t), target);
}

static void scan_tactics(const problem *p, const kernel_target *target, tactic_sink *out)
{
    lines l;
    if (order_reject(p, &l)) return;
    const int64_t n = order_range(&l, &l.in[0]).opt;
    ranking best = { .most = 4 };
    for (uint32_t each = EACH_LEAST; each <= EACH_MOST; each *= 2)
        for (uint32_t lanes = 1; lanes <= 1024; lanes *= 2) {
            ranking own = { .most = 1 };
            for (uint32_t block = lanes < 32 ? 32 : lanes; block <= 1024; block *= 2)
                for (uint32_t part = 0; part <= PART_MOST && (!part || part < n);
                     part = part ? part * 2 : lanes * each) {
                    const scan_tactic x = {
                        .block = (uint16_t)block, .lanes = (uint16_t)lanes, .part = part, .each = each
                    };
                    if (scan_is_sound(&l, &x)) ranking_add(&own, scan_cost_of(p, x, target), &x);
                }
            if (own.count) ranking_add(&best, own.cost[0], &own.at[0]);
        }
    ranking_take(&best, out);
}

static bool scan_check(const problem *p, const tactic *t)
{
    const scan_tactic x = TACTIC_AS(scan_tactic, t);
    lines l;
    return p->op == OP_cumulate && FIELDS_HOLD(scan_fields, t) && !order_reject(p, &l) && scan_is_sound(&l, &x);
}

static void scan_print(const tactic *t, text *out)
{
    const scan_tactic x = TACTIC_AS(scan_tactic, t);
    text_printf(out, "%u of %u each %u", x.lanes, x.block, x.each);
    if (x.part) text_printf(out, " parts of %u", x.part);
}

static bool scan_code(const problem *p, const tactic *t, const kernel_target *target, uint32_t index, cuda_code *c)
{
    (void)target;
    const scan_tactic x = TACTIC_AS(scan_tactic, t);
    const attrs_cumulate *a = p->attrs;
    lines l;
    if (index > (x.part > 0) || lines_of(p, false, &l)) return false;
    c->source = "scan.cu";
    c->entry = "scan";
    cuda_code_define(c, "X_TYPE", lines_type_of(p->in[0].dtype));
    cuda_code_define(c, "KEPT", l.kept_count);
    cuda_code_define(c, "PRODUCT", a->is_product != 0);
    cuda_code_define(c, "REVERSE", a->reverse != 0);
    cuda_code_define(c, "EXCLUSIVE", a->exclusive != 0);
    cuda_code_define(c, "ACROSS", !l.is_rows);
    cuda_code_define(c, "PARTS", x.part ? 1 + index : 0);
    cuda_code_define(c, "BLOCK", x.block);
    cuda_code_define(c, "LANES", x.lanes);
    cuda_code_define(c, "EACH", x.each);
    cuda_code_define(c, "VECTOR", scan_vector(p, &l, &x));
    cuda_code_define(c, "TRIGGER", 1);
    return true;
}

static sinter_status scan_bind(env *e, const problem *p, const tactic *t, const void *attrs, const view *in,
                               const view *out, void *record)
{
    (void)attrs;
    const scan_tactic x = TACTIC_AS(scan_tactic, t);
    cuda_record *r = record;
    lines l;
    const char *why = lines_of(p, false, &l);
    if (why) return FAIL(e, UNSUPPORTED, "cumulate: %s", why);
    view from, to;
    lines_view(&l, false, 0, &in[0], &from);
    lines_view(&l, true, 0, &out[0], &to);
    order_args a = { 0 };
    if (!order_set(&l, &from, &to, NULL, &a))
        return FAIL(e, UNSUPPORTED, "cumulate: more than 2^31 lines, or elements of one");
    const bool has_parts = x.part > 0;
    const int64_t parts = has_parts ? cuda_ceil_div(a.n > 0 ? a.n : 1, x.part) : 1;
    const uint32_t shared = x.lanes == 1 ? 0 : x.block * 8u;
    int64_t blocks = 0;
    if (!i64_mul(cuda_ceil_div(a.rows, x.block / x.lanes), parts, &blocks) || blocks > INT32_MAX / 8)
        return FAIL(e, UNSUPPORTED, "cumulate: too many parts of lines");
    a.size = has_parts ? (small)x.part : a.n;
    a.parts = cuda_fast_div(parts);
    for (uint32_t i = 0; i <= has_parts; i++) {
        order_args *args;
        TRY(cuda_launch_begin(e, r, i, (uint64_t)blocks, 1, 1, x.block, shared, sizeof *args, &args));
        *args = a;
        CUDA_PATCH(r, args, x, PATCH_IN, 0);
        if (has_parts) CUDA_PATCH(r, args, sums, PATCH_WORKSPACE, 0);
        if (i == has_parts) CUDA_PATCH(r, args, values, PATCH_OUT, 0);
    }
    return SINTER_OK;
}

CUDA_ROW(cuda_scan, 2, scan_reject, scan_, .out_strides = STRIDES_ROWS, .workspace = scan_workspace);
