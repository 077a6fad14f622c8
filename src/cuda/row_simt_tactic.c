/* SPDX-License-Identifier: Apache-2.0 */
/* row_simt_tactic.c - tiles and splits of depth for simt.cu, by an estimate of what each costs: the multiplications at
 * the rate that a tile's inner loop reaches with the warps that there are, or the chain of its loads, or memory. */
#include "cuda/row_simt.h"
#include "cuda/ranking.h"

/* clang-format off */
static const simt_tile tiles[] = {
    { 128, 128, 8, 8,  8, 4, 0.85 },
    { 128,  64, 8, 8, 16, 4, 0.80 },
    {  64,  64, 8, 4, 16, 5, 0.70 },
    { 128,  32, 8, 4, 16, 4, 0.68 },
    {  64,  32, 4, 4, 16, 6, 0.55 },
    {  32,  32, 4, 4, 32, 5, 0.50 },
    {  32,  64, 4, 4, 16, 6, 0.55 },
    {  16,  64, 4, 4, 32, 5, 0.50 },
};
/* clang-format on */
static const tactic_field fields[] = {
    FIELD(simt_tactic, tile, 0, COUNT_OF(tiles) - 1),
    FIELD(simt_tactic, mode, 0, SPLIT_MODES - 1),
    FIELD(simt_tactic, split, 1, 16, true),
    FIELD(simt_tactic, trigger, 0, 3),
};

const simt_tile *simt_tile_at(uint32_t index)
{
    return &tiles[index];
}

uint32_t simt_threads(const simt_tile *e)
{
    return (uint32_t)(e->m / e->per_m * (e->n / e->per_n));
}

int64_t simt_pitch(int64_t lines)
{
    return lines > INT64_MAX - 3 ? INT64_MAX : (lines + 3) / 4 * 4;
}

/* What passes through registers gains nothing from more stages. */
uint32_t simt_stages(const simt_shape *s, const simt_tile *e)
{
    const bool is_async = s->side[0].mode == MODE_ASYNC && s->side[1].mode == MODE_ASYNC;
    return is_async && s->sum_size == 4 ? e->stages : e->stages < 3 ? e->stages : 3;
}

static double rate_of(sinter_dtype sum, const kernel_target *t)
{
    const double flops = t->flops > 0 ? t->flops : 1e13;
    if (sum == SINTER_DTYPE_F64) return flops / (t->isa == 80 || t->isa == 90 || t->isa == 100 ? 2 : 32);
    if (sum == SINTER_DTYPE_I64) return flops / 8;
    return sum == SINTER_DTYPE_I32 ? flops / 2 : flops;
}

static double cost_of(const problem *p, const simt_shape *s, simt_tactic x, const kernel_target *t)
{
    const simt_tile *e = simt_tile_at(x.tile);
    const double rows = (double)contract_size(&s->c, s->side[0].role),
                 cols = (double)contract_size(&s->c, s->side[1].role),
                 batch = (double)contract_size(&s->c, CONTRACT_BATCH);
    const int64_t depth = contract_size(&s->c, CONTRACT_DEPTH);
    const double units = t->units ? t->units : 100;
    const double blocks =
        batch * (double)cuda_ceil_div((int64_t)rows, e->m) * (double)cuda_ceil_div((int64_t)cols, e->n) * x.split;
    const double slices = (double)cuda_ceil_div(cuda_ceil_div(depth, e->k), x.split);
    const int threads = e->m / e->per_m * (e->n / e->per_n);
    const double waves = blocks / units > 1 ? blocks / units : 1;
    const double a_unit = (double)(int64_t)(waves + 0.999);
    const double most = threads >= 256 ? 2 : threads >= 128 ? 4 : 8;
    const double warps = (a_unit < most ? a_unit : most) * threads / 32;
    /* Four warps keep each part of a multiprocessor busy, but for their own waits; eight hide those. */
    double share = e->share * (warps < 4 ? warps / 4 * 0.75 : warps < 8 ? 0.5 + warps / 16 : 1);
    for (uint32_t k = 0; k < 2; k++)
        share *= s->side[k].mode == MODE_ELEMENT ? 0.6 : s->side[k].mode == MODE_VECTOR ? 0.85 : 1;
    if (!dtype_is_float(s->sum)) share *= 0.8;
    if (!s->is_quad) share *= 0.93; /* results are stored one at a time */
    /* A program runs once for each tile of the other side, beside the multiplications. */
    if (p->prologue) share /= 1 + (p->prologue->count + 3.0) / (s->side[0].is_made ? e->n : e->m);
    const double work = a_unit * 2 * e->m * e->n * slices * e->k / (rate_of(s->sum, t) / units * share),
                 chain = a_unit / (a_unit < most ? a_unit : most) * slices * (700e-9 / (simt_stages(s, e) - 1));
    double bytes = cuda_problem_bytes(p), split = 0;
    if (!s->is_quad) bytes += 0.5 * cuda_operand_bytes(&p->out[0]);
    if (x.mode == SPLIT_CLUSTER) split = 700;
    if (x.mode == SPLIT_WORKSPACE) {
        split = 2500;
        bytes += 2 * batch * rows * cols * s->sum_size * x.split;
    }
    const double main = (work > chain ? work : chain) * 1e9, memory = cuda_cost_ns(t, bytes, 0);
    return (main + 2000 > memory ? main + 2000 : memory) + 0.15 * (main < memory ? main : memory) + split;
}

double simt_cost_ns(const problem *p, const tactic *t, const kernel_target *target)
{
    simt_shape s;
    if (simt_shape_at(p, CONTRACT_OPT, &s)) return 1e15;
    return cost_of(p, &s, TACTIC_AS(simt_tactic, t), target);
}

static size_t part_bytes(const problem *p, simt_tactic x)
{
    simt_shape s;
    if (x.mode != SPLIT_WORKSPACE || simt_shape_at(p, CONTRACT_MAX, &s)) return 0;
    size_t size = size_mul(s.sum_size, x.split);
    size = size_mul(size, (size_t)contract_size(&s.c, CONTRACT_BATCH));
    size = size_mul(size, (size_t)contract_size(&s.c, s.side[0].role));
    return size_mul(size, (size_t)simt_pitch(contract_size(&s.c, s.side[1].role)));
}

uint32_t simt_shared(const simt_shape *s, simt_tactic x)
{
    const simt_tile *e = simt_tile_at(x.tile);
    const uint32_t size = s->sum_size, lines[2] = { e->m, e->n };
    uint32_t elements = 0;
    for (uint32_t i = 0; i < 2; i++) {
        const bool is_inner = s->side[i].mode == MODE_ASYNC && s->side[i].is_along;
        elements += simt_stages(s, e) * (is_inner ? lines[i] * (e->k + 16 / size) : e->k * (lines[i] + 4u));
    }
    const uint32_t line = 24 + (s->rank_made + 1u) / 2 * 8;
    uint32_t bytes = elements * size + (e->m + e->n) * line;
    if (x.mode == SPLIT_CLUSTER) bytes += e->m * (e->n + 4u) * size;
    return bytes;
}

static bool fits(const simt_shape *s, simt_tactic x)
{
    const simt_tile *e = simt_tile_at(x.tile);
    if (s->sum_size == 8 && (x.tile < 2 || x.tile == 3)) return false;
    return x.mode != SPLIT_CLUSTER || (e->m % x.split == 0 && s->sum_size == 4);
}

void simt_tactics(const problem *p, const kernel_target *t, tactic_sink *out)
{
    simt_shape s;
    if (simt_shape_at(p, CONTRACT_OPT, &s)) return;
    ranking best = { .most = 10 };
    const double units = t->units ? t->units : 100;
    const int64_t depth = contract_size(&s.c, CONTRACT_DEPTH);
    for (uint8_t i = 0; i < COUNT_OF(tiles); i++)
        for (uint8_t mode = SPLIT_NONE; mode < SPLIT_MODES; mode++)
            for (uint8_t split = mode == SPLIT_NONE ? 1 : 2; split <= (mode == SPLIT_CLUSTER ? 8 : 16);
                 split = (uint8_t)(split * 2)) {
                if (mode == SPLIT_NONE && split > 1) break;
                if (mode == SPLIT_CLUSTER && t->isa < 90) break;
                if (split > 1 && cuda_ceil_div(depth, tiles[i].k) < split * 2) break;
                simt_tactic x = { .tile = i, .mode = mode, .split = split, .trigger = 2 };
                const double blocks = (double)contract_size(&s.c, CONTRACT_BATCH) *
                                      (double)cuda_ceil_div(contract_size(&s.c, s.side[0].role), tiles[i].m) *
                                      (double)cuda_ceil_div(contract_size(&s.c, s.side[1].role), tiles[i].n) * split;
                if (split > 1 && blocks > 4 * units) break;
                if (!fits(&s, x) || (t->shared && simt_shared(&s, x) > t->shared)) continue;
                if (mode == SPLIT_WORKSPACE && part_bytes(p, x) > (size_t)256 << 20) continue;
                const double cost = cost_of(p, &s, x, t);
                ranking_add(&best, cost, &x);
            }
    ranking_take(&best, out);
    /* Where the next grid may start depends on what it holds while it waits: the clock decides for the best. */
    if (!best.count || out->count == COUNT_OF(out->at)) return;
    simt_tactic again = TACTIC_AS(simt_tactic, &best.at[0]);
    again.trigger = 3;
    tactic_put(out, &again);
}

bool simt_check(const problem *p, const tactic *t)
{
    const simt_tactic x = TACTIC_AS(simt_tactic, t);
    simt_shape s;
    if (!FIELDS_HOLD(fields, t) || (x.mode == SPLIT_NONE) != (x.split == 1)) return false;
    if (x.mode == SPLIT_CLUSTER && x.split > 8) return false;
    return !simt_shape_at(p, CONTRACT_OPT, &s) && fits(&s, x);
}

void simt_print(const tactic *t, text *out)
{
    const simt_tactic x = TACTIC_AS(simt_tactic, t);
    static const char *const mode[] = { "", " cluster", " workspace" };
    if (x.tile >= COUNT_OF(tiles) || x.mode >= SPLIT_MODES) return;
    const simt_tile *e = simt_tile_at(x.tile);
    text_printf(out, "%ux%ux%u split %u%s trigger %u", e->m, e->n, e->k, x.split, mode[x.mode], x.trigger);
}

size_t simt_workspace(const problem *p, const tactic *t, uint32_t threads)
{
    (void)threads;
    return part_bytes(p, TACTIC_AS(simt_tactic, t));
}
