/* SPDX-License-Identifier: Apache-2.0 */
/* row_gemv.c - products of at most eight rows with constant weights (device/gemv.cu): classifier heads and squeezed
 * convolutions at batch 1, and decoders, at the speed of memory. Weights are packed with depth innermost. A row may be
 * normalised before; every warp does that again, so there are not many columns then. */
#include "cuda/contract.h"
#include "cuda/device/simt_args.h"
#include "cuda/cuda_emit.h"
#include "cuda/cuda_kernels.h"
#include "cuda/ranking.h"

#include <stddef.h>

/* NORM_COLUMNS: a multiprocessor. */
enum { ROWS_MOST = 8, HELD = 16, SPLIT_MOST = 8, NORM_COLUMNS = 64 };
typedef struct gemv_tactic {
    uint8_t cols, groups, split, pre, trigger, zero[TACTIC_SIZE - 5];
} gemv_tactic;
_Static_assert(sizeof(gemv_tactic) == TACTIC_SIZE, "a tactic is overlaid");
static const tactic_field fields[] = {
    FIELD(gemv_tactic, cols, 1, 4, true, "cols ", 1),
    FIELD(gemv_tactic, groups, 1, 4, true, " groups ", 1),
    FIELD(gemv_tactic, split, 1, SPLIT_MOST, true, " split ", 1),
    FIELD(gemv_tactic, pre, 1, HELD, false, " held ", 1),
    FIELD(gemv_tactic, trigger, 1, 3, false, " trigger ", 1),
};

typedef struct gemv {
    contract c;
    uint32_t w, x; /* inputs */
    contract_role w_lines, x_lines;
    uint32_t rows;  /* at most */
    uint32_t unit;  /* elements of 16 bytes */
    bool is_vector; /* x is read so, too */
    bool is_normed;
    attrs_matmul matmul; /* of normalised rows */
} gemv;

static int64_t align_to(int64_t n, int64_t unit)
{
    return (n + unit - 1) / unit * unit;
}

static bool has_in(const problem *p, uint32_t input)
{
    return input < p->count_anchor && p->in[input].dtype != SINTER_DTYPE_NONE;
}

static const char *norm_of(const problem *p, const gemv *g)
{
    if (!g->w || !g->is_vector || g->c.count[CONTRACT_DEPTH] != 1) return "rows to be normalised are not in vectors";
    const int64_t depth = contract_size(&g->c, CONTRACT_DEPTH);
    for (uint32_t i = 2; i < p->count_anchor; i++) {
        const problem_operand *v = &p->in[i];
        if (!has_in(p, i)) continue;
        if (v->dtype != p->in[0].dtype || !v->is_const || v->is_strided) return "a scale or bias is no dense constant";
        if (v->rank != 1 || v->dim[0].min != depth || v->dim[0].max != depth) return "a scale or bias of other rows";
    }
    if (g->rows != 1) return "several rows to be normalised";
    return depth > (int64_t)HELD * 32 * SPLIT_MOST * g->unit ? "a row of more than a block holds" : NULL;
}

/* The one position of a filter that covers the image, without padding. */
static bool is_one_place(const problem *p)
{
    const attrs_conv *a = p->attrs;
    const uint32_t spatial = p->in[0].rank - 2u;
    for (uint32_t i = 0; i < spatial; i++) {
        const dim_range d = p->out[0].dim[2 + i];
        if (d.min != 1 || d.max != 1 || a->pad.at[i] || a->pad.at[spatial + i]) return false;
    }
    return true;
}

static const char *gemv_of(const problem *p, const void *attrs, const view *in, const view *out, gemv *g)
{
    problem plain = *p;
    g->is_normed = p->op == OP_norm_matmul;
    if (g->is_normed) {
        g->matmul = (attrs_matmul){ .trans_b = ((const attrs_norm_matmul *)attrs)->trans_b, .type = SINTER_DTYPE_NONE };
        plain.op = OP_matmul;
        plain.attrs = attrs = &g->matmul;
    }
    const char *why = contract_of(&plain, attrs, in, out, &g->c);
    if (why) return why;
    const contract *c = &g->c;
    g->w = p->in[1].is_const ? 1 : 0;
    g->x = 1 - g->w;
    g->w_lines = g->w ? CONTRACT_RIGHT : CONTRACT_LEFT;
    g->x_lines = g->w ? CONTRACT_LEFT : CONTRACT_RIGHT;
    const problem_operand *w = &p->in[g->w], *x = &p->in[g->x];
    if (!w->is_const || w->is_strided) return "no operand is a dense constant";
    for (uint32_t i = 0; i < w->rank; i++)
        if (!problem_dim_is_static(w->dim[i])) return "the weights' size is not fixed";
    for (uint32_t i = 0; i < c->count[CONTRACT_BATCH]; i++)
        if (c->axis[CONTRACT_BATCH][i].range.max != 1) return "has a batch of weights";
    if (p->op == OP_conv && c->is_window && !is_one_place(p)) return "a filter at more than one place, or padded";
    int64_t rows = 1;
    for (uint32_t i = 0; i < c->count[g->x_lines]; i++)
        if (!i64_mul(rows, c->axis[g->x_lines][i].range.max, &rows) || rows > ROWS_MOST) return "more than 8 rows";
    if (rows < 1) return "has no rows";
    g->rows = (uint32_t)rows;
    if (p->prologue && g->x) return "a prologue of constants";
    g->unit = 128 / sinter_dtype_bits(w->dtype);
    const contract_axis *k = &c->axis[CONTRACT_DEPTH][c->count[CONTRACT_DEPTH] - 1];
    const int64_t known = k->range.min == k->range.max ? k->range.min : k->range.divisor;
    g->is_vector = k->of[g->x] >= 0 && (uint32_t)k->of[g->x] == cuda_operand_inner(x) && known % g->unit == 0 &&
                   (p->prologue || cuda_operand_vector(x, g->unit) == g->unit);
    return g->is_normed ? norm_of(p, g) : NULL;
}

static const char *gemv_at(const problem *p, gemv *g)
{
    view in[4], out;
    contract_views(p, CONTRACT_OPT, in, &out);
    return gemv_of(p, p->attrs, in, &out, g);
}

static void space_of(const problem *p, emit_space *space)
{
    emit_space_of(p, space);
    space->width = 1;
}

static void prologue_space(const problem *p, const gemv *g, emit_space *space)
{
    const contract_axis *k = &g->c.axis[CONTRACT_DEPTH][g->c.count[CONTRACT_DEPTH] - 1];
    emit_space_of_prologue(p, (uint8_t)k->axis0, g->is_vector ? g->unit : 1, SINTER_DTYPE_F32, space);
}

static const char *reject(const problem *p, const kernel_target *t)
{
    REJECT_UNLESS(p->op == OP_matmul || p->op == OP_conv || p->op == OP_norm_matmul, "no product of matrices");
    const sinter_dtype d = emit_input_type(p);
    REJECT_UNLESS(d == p->in[1].dtype, "the factors differ in type");
    REJECT_UNLESS(d == SINTER_DTYPE_F32 || d == SINTER_DTYPE_F16 || d == SINTER_DTYPE_BF16, "not in f32, f16 or bf16");
    gemv g;
    const char *why = gemv_at(p, &g);
    if (why) return why;
    REJECT_UNLESS(!g.is_normed || contract_size(&g.c, g.w_lines) <= NORM_COLUMNS * (int64_t)(t->units ? t->units : 100),
                  "many columns, whose blocks would all normalise");
    emit_space space;
    if (p->prologue) {
        prologue_space(p, &g, &space);
        why = emit_reject_prologue(&space);
        if (why) return why;
    }
    space_of(p, &space);
    return emit_reject(&space);
}

static int64_t chunks_of(const gemv *g)
{
    return align_to(contract_size(&g->c, CONTRACT_DEPTH), g->unit) / g->unit;
}

/* Are the tactic's registers enough where a row has to be held as a whole? */
static bool holds(const gemv *g, gemv_tactic x)
{
    return !g->is_normed || x.pre * x.split * 32 >= chunks_of(g);
}

static double cost_of(const problem *p, const gemv *g, gemv_tactic x, const kernel_target *t)
{
    const double cols = (double)contract_size(&g->c, g->w_lines), units = t->units ? t->units : 100;
    const double bytes = cuda_problem_bytes(p);
    const double warps = cols / x.cols * x.split, runs = (double)chunks_of(g) / (32.0 * x.split),
                 rounds = runs > x.pre ? (runs - x.pre) / 2 : 0;
    /* A multiprocessor needs about 32 KiB under way; a round of loads waits about 0.7 us for memory. */
    double under_way = warps / units * 512.0 * x.cols * (runs < x.pre ? runs : x.pre) / 32768;
    under_way = under_way > 1 ? 1 : under_way < 0.02 ? 0.02 : under_way;
    const double waves = warps * x.cols / (units * 32) > 1 ? warps * x.cols / (units * 32) : 1;
    const double memory = bytes / (t->bandwidth > 0 ? t->bandwidth : 1e12) * 1e9 / (0.3 + 0.7 * under_way),
                 chain = rounds * 700 * waves, idle = g->is_vector ? 0 : runs * g->rows * 100;
    /* Multiplied one element at a time, with a conversion of each. */
    double work = 2e9 * g->rows * cols * (double)chunks_of(g) * g->unit / ((t->flops > 0 ? t->flops : 1e13) * 0.3);
    /* A program runs again for every warp. */
    if (p->prologue) work *= 1 + (p->prologue->count + 3.0) / x.cols;
    double most = memory > chain ? memory : chain;
    if (work > most) most = work;
    if (g->is_normed) most += 200;
    return 1500 + most + idle + 30.0 * runs + 40.0 * x.split + 20.0 * x.cols;
}

static double cost_ns(const problem *p, const tactic *t, const kernel_target *target)
{
    gemv g;
    return gemv_at(p, &g) ? 1e15 : cost_of(p, &g, TACTIC_AS(gemv_tactic, t), target);
}

static void tactics(const problem *p, const kernel_target *t, tactic_sink *out)
{
    gemv g;
    if (gemv_at(p, &g)) return;
    ranking best = { .most = 6 };
    const int64_t cols = contract_size(&g.c, g.w_lines), chunks = chunks_of(&g);
    for (uint8_t c = 1; c <= 4; c = (uint8_t)(c * 2))
        for (uint8_t split = 1; split <= SPLIT_MOST; split = (uint8_t)(split * 2)) {
            if (split > 1 && chunks < 32 * split / 2) break;
            const int64_t runs = (chunks + 32 * split - 1) / (32 * split), most = HELD / c;
            gemv_tactic x = {
                .cols = c, .split = split, .groups = (uint8_t)(split >= 4 ? 1 : 4 / split), .trigger = 3
            };
            x.pre = (uint8_t)(runs < 1 ? 1 : runs < most ? runs : most);
            if (cols / (c * x.groups) <= 2 * (int64_t)(t->units ? t->units : 100)) x.trigger = 1;
            if (holds(&g, x)) ranking_add(&best, cost_of(p, &g, x, t), &x);
        }
    ranking_take(&best, out);
}

static bool check(const problem *p, const tactic *t)
{
    const gemv_tactic x = TACTIC_AS(gemv_tactic, t);
    gemv g;
    return FIELDS_HOLD(fields, t) && x.pre * x.cols <= HELD && x.trigger != 2 && !gemv_at(p, &g) && holds(&g, x);
}

FIELDS_PRINT(print, fields)
FIELDS_LET_IN(lets_in, gemv_tactic, 3)

static size_t pack_size(const problem *p, const tactic *t, uint32_t input)
{
    (void)t;
    gemv g;
    if (input > 1 || gemv_at(p, &g) || input != g.w) return 0;
    const size_t pitch = (size_t)align_to(contract_size(&g.c, CONTRACT_DEPTH), g.unit) * (16 / g.unit);
    const size_t size = size_mul(pitch, (size_t)contract_size(&g.c, g.w_lines));
    return size ? size : 16;
}

static void pack(const problem *p, const tactic *t, uint32_t input, const view *src, void *dst)
{
    (void)t;
    view in[4], out;
    gemv g;
    contract_views(p, CONTRACT_OPT, in, &out);
    in[input] = *src;
    if (gemv_of(p, p->attrs, in, &out, &g)) return;
    const int64_t depth = contract_size(&g.c, CONTRACT_DEPTH), pitch = align_to(depth, g.unit),
                  lines = contract_size(&g.c, g.w_lines);
    const size_t size = 16 / g.unit;
    int64_t index[CONTRACT_AXES];
    memset(dst, 0, pack_size(p, t, input));
    for (int64_t l = 0; l < lines; l++) {
        const int64_t base = contract_offset(&g.c, g.w_lines, input, false, l, index);
        for (int64_t k = 0; k < depth; k++) {
            const int64_t from = base + contract_offset(&g.c, CONTRACT_DEPTH, input, false, k, index);
            memcpy((char *)dst + (size_t)(l * pitch + k) * size, (const char *)src->data + from * (int64_t)size, size);
        }
    }
}

static bool code(const problem *p, const tactic *t, const kernel_target *target, uint32_t index, cuda_code *c)
{
    (void)target;
    const gemv_tactic x = TACTIC_AS(gemv_tactic, t);
    gemv g;
    if (index || gemv_at(p, &g)) return false;
    c->source = "gemv.cu";
    c->entry = "gemv";
    c->may_spill = p->epilogue && p->epilogue->count > 16;
    cuda_code_define(c, "ROWS", g.rows);
    cuda_code_define(c, "COLS", x.cols);
    cuda_code_define(c, "GROUPS", x.groups);
    cuda_code_define(c, "SPLIT", x.split);
    cuda_code_define(c, "PRE", x.pre);
    cuda_code_define(c, "X_VECTOR", g.is_vector);
    cuda_code_define(c, "DEPTH_AXES", g.c.count[CONTRACT_DEPTH]);
    cuda_code_define(c, "BATCH_AXES", g.c.count[CONTRACT_BATCH]);
    cuda_code_define(c, "ROW_AXES", g.c.count[g.x_lines]);
    cuda_code_define(c, "COL_AXES", g.c.count[g.w_lines]);
    cuda_code_define(c, "SPATIAL", 0);
    cuda_code_define(c, "PHASES", 0);
    cuda_code_define(c, "EPI_V", 1);
    cuda_code_define(c, "PROLOGUE", p->prologue != NULL);
    cuda_code_define(c, "NORM", !g.is_normed ? 0 : ((const attrs_norm_matmul *)p->attrs)->centred ? 2 : 1);
    if (g.is_normed) cuda_code_define(c, "DEPTH", contract_size(&g.c, CONTRACT_DEPTH));
    cuda_code_define(c, "NORM_SCALE", g.is_normed && has_in(p, 2));
    cuda_code_define(c, "NORM_BIAS", g.is_normed && has_in(p, 3));
    emit_space space;
    space_of(p, &space);
    emit_text(&space, c->generated);
    text *to = c->generated;
    if (p->prologue) {
        prologue_space(p, &g, &space);
        emit_text(&space, to);
        contract_text_prologue(to, &g.c, g.x_lines);
        c->may_spill = c->may_spill || p->prologue->count > 8;
    }
    text_printf(to, "typedef float sum;\ntypedef float acc_type;\ntypedef %s type_w;\nenum { INNER = 0 };\n",
                emit_stored(p->in[g.w].dtype));
    contract_text_outs(to, &g.c, g.x_lines, g.w_lines);
    return true;
}

static sinter_status bind(env *e, const problem *p, const tactic *t, const void *attrs, const view *in, const view *out,
                          void *record)
{
    const gemv_tactic x = TACTIC_AS(gemv_tactic, t);
    cuda_record *r = record;
    gemv g;
    const char *why = gemv_of(p, attrs, in, out, &g);
    if (why) return FAIL(e, UNSUPPORTED, "a product cannot be launched: %s", why);
    struct simt_args a = { 0 };
    TRY(contract_sizes(e, &g.c, g.x_lines, g.w_lines, &a));
    contract_steps(&g.c, g.x_lines, g.x, &a.p);
    a.q.depth_flat = align_to(a.depth, g.unit);
    const uint32_t each = x.cols * x.groups, warps = (uint32_t)x.groups * x.split;
    const uint64_t blocks = a.row.count ? ((uint64_t)a.col.count + each - 1) / each : 0;
    struct simt_args *to;
    const uint32_t floats = g.is_normed ? 3u * x.cols + 2 : g.rows * x.cols;
    TRY(cuda_launch_begin(e, r, 0, blocks, 1, 1, warps * 32, warps * floats * 4, sizeof *to, &to));
    *to = a;
    to->trigger = x.trigger;
    if (g.is_normed) {
        to->norm.epsilon = (float)((const attrs_norm_matmul *)attrs)->epsilon;
        if (has_in(p, 2)) CUDA_PATCH(r, to, norm.scale, PATCH_IN, 2);
        if (has_in(p, 3)) CUDA_PATCH(r, to, norm.bias, PATCH_IN, 3);
    }
    if (p->prologue) contract_prologue(&g.c, g.x_lines, &to->pro);
    else CUDA_PATCH(r, to, p.data, PATCH_IN, g.x);
    CUDA_PATCH(r, to, q.data, PATCH_IN, g.w);
    emit_space space;
    space_of(p, &space);
    TRY(emit_bind(e, &space, in, out, r));
    if (!p->prologue) return SINTER_OK;
    prologue_space(p, &g, &space);
    return emit_bind(e, &space, in, out, r);
}

CUDA_ROW(cuda_gemv, 1, reject, , .out_strides = STRIDES_ROWS, .pack_size = pack_size, .pack = pack, .lets_in = lets_in);
