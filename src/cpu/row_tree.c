/* SPDX-License-Identifier: Apache-2.0 */
/* row_tree.c - tree_ensemble of dense operands in f32 or f64, whose table of nodes is a constant.
 *
 * A tile is some rows. Its rows go through a block of trees that stays in a cache, then through the next one. Few rows
 * and many trees: tiles are parts of the trees, and their sums are added in order. The table is the model's own: bind
 * checks it, so that no walk leaves it. */
#include "cpu/cpu_kernels.h"
#include "cpu/level.h"
#include "cpu/row.h"
#include "cpu/trees.h"

#include <math.h>

/* SUMS_MAX: results of a tile, and of all rows where there are parts. */
enum { TARGETS_MAX = 1 << 14, SUMS_MAX = 1 << 14, PARTS_MAX = 64, ROWS_MAX = 4096 };
/* Elements of a tile that are spread; one group of rows may have more. */
enum { SPREAD_MAX = 1 << 18 };
/* The fewest trees of a part, and the most rows that parts of the trees are for. */
enum { PART_TREES = 32, PART_ROWS = 64 };

/* Of the tactic: rows of a tile; bytes of a block of trees, in units of 1 KiB (0: all trees); parts of the trees. */
typedef struct ways {
    uint16_t rows, block, parts;
} ways;

typedef struct record {
    const trees_set *set;
    trees_walk walk;
    bool is_f64, is_spread;
    int64_t rows, trees, size;  /* size: bytes of a feature */
    size_t scratch;             /* bytes of a worker: sums, then rows that are spread */
    int64_t tile, block, parts; /* rows of a tile, trees of a block, parts of the trees */
    double divisor;
    row_after after;
} record;

static const char *reject(const problem *p, const kernel_target *t)
{
    (void)t;
    REJECT_UNLESS(p->op == OP_tree_ensemble, "no tree_ensemble");
    const problem_operand *x = &p->in[0], *nodes = &p->in[1], *y = &p->out[0];
    REJECT_UNLESS(x->dtype == SINTER_DTYPE_F32 || x->dtype == SINTER_DTYPE_F64, "features of another type");
    REJECT_UNLESS(x->rank == 2 && nodes->rank == 2 && y->rank == 2, "an operand has another rank");
    REJECT_UNLESS(nodes->is_const && nodes->dtype == SINTER_DTYPE_U32, "the table of nodes is no constant");
    REJECT_UNLESS(problem_operand_is_row_major(x) && problem_operand_is_row_major(nodes) &&
                      problem_operand_is_row_major(y),
                  "an operand is not dense");
    const int64_t targets = ((const attrs_tree_ensemble *)p->attrs)->targets;
    REJECT_UNLESS(targets >= 1 && targets <= TARGETS_MAX, "no targets, or too many");
    REJECT_UNLESS(!p->prologue && p->count_out == 1, "takes no prologue");
    if (!p->epilogue) return NULL;
    REJECT_UNLESS(x->dtype == SINTER_DTYPE_F32, "an epilogue, and not f32");
    return row_after_reject(p);
}

static ways ways_of(const tactic *t)
{
    ways w;
    row_tactic_own(t, &w, sizeof w);
    return w;
}

/* Each part has sums of all rows, and all rows spread. */
static bool takes_parts(const problem *p)
{
    const attrs_tree_ensemble *a = p->attrs;
    const int64_t rows = p->in[0].dim[0].max;
    return rows <= PART_ROWS && rows <= SUMS_MAX / a->targets && a->trees >= 2 * PART_TREES;
}

static bool check(const problem *p, const tactic *t)
{
    const ways w = ways_of(t);
    return row_tactic_check(t, sizeof w) && w.rows >= 1 && w.rows <= ROWS_MAX && w.parts >= 1 && w.parts <= PARTS_MAX &&
           (w.parts == 1 || takes_parts(p));
}

static void tactics(const problem *p, const kernel_target *t, tactic_sink *out)
{
    static const ways all[] = { { 16, 0, 1 },   { 64, 0, 1 },    { 64, 32, 1 },   { 256, 32, 1 },
                                { 256, 16, 1 }, { 256, 256, 1 }, { 1024, 16, 1 }, { 1024, 256, 1 } };
    const int64_t rows = p->in[0].dim[0].opt, trees = ((const attrs_tree_ensemble *)p->attrs)->trees;
    for (uint32_t i = 0; i < COUNT_OF(all); i++) {
        const bool is_small = row_operand_bytes(&p->in[1]) <= 1024.0 * all[i].block; /* all trees are one block */
        if (i == 0 || (rows > all[i].rows / 4 && !is_small)) row_tactics_add(t, &all[i], 1, sizeof *all, out);
    }
    if (!takes_parts(p) || t->threads < 2) return;
    for (int64_t parts = 2; parts <= PARTS_MAX && trees / parts >= PART_TREES; parts *= 4)
        row_tactics_add(t, &(ways){ 64, 0, (uint16_t)parts }, 1, sizeof *all, out);
}

static void print(const tactic *t, text *out)
{
    const ways w = ways_of(t);
    text_printf(out, "%s %u rows", isa_level_name(row_isa(t)), w.rows);
    if (w.block) text_printf(out, " %u KiB", w.block);
    if (w.parts > 1) text_printf(out, " %u parts", w.parts);
}

/* A step takes about 0.7 ns where nodes are in the L1 cache, and a balanced tree has log2(leaves) of them. */
static double cost_ns(const problem *p, const tactic *t, const kernel_target *target)
{
    const ways w = ways_of(t);
    const attrs_tree_ensemble *a = p->attrs;
    const double rows = (double)p->in[0].dim[0].opt, trees = (double)(a->trees > 0 ? a->trees : 1),
                 steps = log2((double)p->in[1].dim[0].opt / trees + 2), tiles = fmax(ceil(rows / w.rows) * w.parts, 1);
    const double threads = fmin(target->threads ? target->threads : 1, tiles);
    const double all = row_operand_bytes(&p->in[1]) * fmin(1, rows / w.rows * 8);
    const double reach = w.block ? 1024.0 * w.block : all, far = reach > (double)target->cache_l2 ? 2 : 1;
    return 300 + rows * ((double)p->in[0].dim[1].opt * 0.5 + trees * (steps * 0.7 * far + 2)) / threads +
           (w.parts > 1 ? 2000 : 0);
}

/* The most features that rows may have which are spread. */
static int64_t features_max(const problem *p)
{
    const int64_t most = p->in[0].dim[1].max;
    return most < TREES_FAST_MAX ? most : TREES_FAST_MAX;
}

/* Rows of a tile whose sums and features are not too many. */
static int64_t tile_rows(const problem *p, const ways *w)
{
    const int64_t features = features_max(p), sums = SUMS_MAX / ((const attrs_tree_ensemble *)p->attrs)->targets,
                  some = features ? SPREAD_MAX / features / TREES_LANES * TREES_LANES : sums;
    const int64_t most = sums < some ? sums : some < TREES_LANES ? TREES_LANES : some;
    return w->rows < most ? w->rows : most > 0 ? most : 1;
}

/* Rows that a worker has at a time. */
static int64_t worker_rows(const problem *p, const ways *w)
{
    return w->parts > 1 ? p->in[0].dim[0].max : tile_rows(p, w);
}

static size_t sums_size(const problem *p, int64_t rows)
{
    return size_align(8 * (size_t)(rows * ((const attrs_tree_ensemble *)p->attrs)->targets), 64);
}

static size_t spread_size(const problem *p, int64_t rows)
{
    const size_t one = size_mul(TREES_LANES * (p->in[0].dtype == SINTER_DTYPE_F64 ? 8 : 4), (size_t)features_max(p));
    return size_align(size_mul(one, (size_t)trees_groups(rows)), 64);
}

static size_t workspace(const problem *p, const tactic *t, uint32_t threads)
{
    const ways w = ways_of(t);
    const int64_t rows = worker_rows(p, &w);
    const size_t workers = w.parts > 1 ? w.parts : threads ? threads : 1;
    return size_mul(workers, size_add(sums_size(p, rows), spread_size(p, rows)));
}

static sinter_status bind(env *e, const problem *p, const tactic *t, const void *attrs, const view *in, const view *out,
                          void *to)
{
    record *r = to;
    isa_level isa;
    tree_facts facts;
    TRY(row_isa_bind(e, p, t, &isa));
    const attrs_tree_ensemble *a = attrs;
    const ways w = ways_of(t);
    if (in[1].dim[1] != 4 || out[0].dim[0] != in[0].dim[0] || out[0].dim[1] != a->targets)
        return FAIL(e, INVALID_ARG, "tree_ensemble: the shapes of input, table and result do not go together");
    const char *why = tree_check(in[1].data, in[1].dim[0], a->trees, a->targets, in[0].dim[1], &facts);
    if (why) return FAIL(e, INVALID_MODEL, "tree_ensemble: %s", why);
    const bool is_f64 = in[0].dtype == SINTER_DTYPE_F64;
    const int64_t bytes = 16 * in[1].dim[0], block = 1024 * w.block;
    *r = (record){
        .set = is_f64 ? level_of(isa)->trees_f64 : level_of(isa)->trees_f32,
        .walk = { .targets = a->targets,
                  .features = in[0].dim[1],
                  .fold = a->kind == reduce_kind_min   ? TREES_MIN
                          : a->kind == reduce_kind_max ? TREES_MAX
                                                       : TREES_SUM,
                  .has_lists = facts.has_lists },
        .is_f64 = is_f64,
        .is_spread = !facts.has_equal && in[0].dim[1] <= features_max(p) && in[0].dim[1] > 0,
        .rows = in[0].dim[0],
        .trees = a->trees,
        .size = is_f64 ? 8 : 4,
        .scratch = size_add(sums_size(p, worker_rows(p, &w)), spread_size(p, worker_rows(p, &w))),
        .tile = tile_rows(p, &w),
        .block = block && block < bytes ? a->trees * block / bytes + 1 : a->trees,
        .parts = w.parts,
        .divisor = a->kind == reduce_kind_mean ? (double)a->trees : 1,
    };
    return row_after_bind(e, p, isa, in, out, &r->after, r + 1);
}

typedef struct job {
    const record *r;
    const kernel_run *k;
} job;

/* Scratch of a tile: sums first. */
static double *sums_of(const job *j, int64_t i)
{
    return (double *)(void *)((char *)j->k->workspace + (size_t)i * j->r->scratch);
}

/* Rows [from, from + rows) through trees [first, stop), in scratch number i. */
static double *walk(const job *j, int64_t i, int64_t from, int64_t rows, int64_t first, int64_t stop)
{
    const record *r = j->r;
    trees_walk w = r->walk;
    double *sum = sums_of(j, i);
    trees_way way = TREES_ANY;
    w.row = j->k->in[1];
    w.x = (const char *)j->k->in[0] + from * w.features * r->size;
    w.sum = sum;
    for (int64_t k = 0; k < rows * w.targets; k++) sum[k] = w.fold == TREES_SUM ? 0 : (double)NAN;
    if (r->is_spread) {
        void *to = (char *)sum + size_align(8 * (size_t)(rows * w.targets), 64);
        way = r->set->spread(w.x, w.features, rows, to) ? TREES_NAN : TREES_PLAIN;
        w.x = to;
    }
    for (w.first = first; w.first < stop; w.first = w.stop) {
        w.stop = stop - w.first < r->block ? stop : w.first + r->block;
        r->set->walk[way](&w, rows);
    }
    return sum;
}

static void finish(const job *j, int64_t from, int64_t rows, const double *sum)
{
    const record *r = j->r;
    const int64_t first = from * r->walk.targets, n = rows * r->walk.targets;
    for (int64_t i = 0; i < n; i++) {
        const double y = r->walk.fold == TREES_SUM ? sum[i] / r->divisor : isnan(sum[i]) ? 0 : sum[i];
        if (r->is_f64) ((double *)j->k->out[0])[first + i] = y;
        else ((float *)j->k->out[0])[first + i] = (float)y;
    }
    if (!r->is_f64) row_after_part(&r->after, j->k, j->k->out[0], first, first + n);
}

static void tiles(void *arg, uint32_t begin, uint32_t end, uint32_t worker)
{
    const job *j = arg;
    const record *r = j->r;
    for (int64_t i = begin; i < end; i++) {
        const int64_t from = i * r->tile, rows = r->rows - from < r->tile ? r->rows - from : r->tile;
        finish(j, from, rows, walk(j, worker, from, rows, 0, r->trees));
    }
}

static void parts(void *arg, uint32_t begin, uint32_t end, uint32_t worker)
{
    (void)worker;
    const job *j = arg;
    const record *r = j->r;
    for (int64_t i = begin; i < end; i++)
        (void)walk(j, i, 0, r->rows, r->trees * i / r->parts, r->trees * (i + 1) / r->parts);
}

static sinter_status run(const kernel_run *k)
{
    const record *r = k->record;
    job j = { r, k };
    if (r->parts == 1) {
        row_parallel(k, (r->rows + r->tile - 1) / r->tile, tiles, &j);
        return SINTER_OK;
    }
    const int64_t n = r->rows * r->walk.targets;
    double *sum = sums_of(&j, 0);
    row_parallel(k, r->parts, parts, &j);
    for (int64_t i = 1; i < r->parts; i++) {
        const double *more = sums_of(&j, i);
        for (int64_t m = 0; m < n; m++) {
            if (r->walk.fold == TREES_SUM) sum[m] += more[m];
            else if (isnan(sum[m]) || (r->walk.fold == TREES_MIN ? more[m] < sum[m] : more[m] > sum[m]))
                sum[m] = more[m];
        }
    }
    finish(&j, 0, r->rows, sum);
    return SINTER_OK;
}

const kernel cpu_tree_ensemble = {
    .name = "cpu_tree_ensemble",
    .abi = 1,
    .reject = reject,
    .tactics = tactics,
    .check = check,
    .print = print,
    .cost_ns = cost_ns,
    .workspace = workspace,
    .record = sizeof(record),
    .record_size = row_record_room,
    .bind = bind,
    .run = run,
};
