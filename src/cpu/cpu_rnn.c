/* SPDX-License-Identifier: Apache-2.0 */
/* cpu_rnn.c - recurrent layers: packing, memory, and the walk over chunks of steps. */
#include "cpu/cpu_rnn.h"
#include "cpu/level.h"

#include "base/env.h"

#include <string.h>

int64_t rnn_gates(rnn_kind kind)
{
    return kind == RNN_LSTM ? 4 : kind == RNN_GRU || kind == RNN_GRU_LINEAR ? 3 : 1;
}

int64_t rnn_columns(rnn_kind kind, int64_t hidden)
{
    return (kind == RNN_GRU ? 2 : rnn_gates(kind)) * hidden;
}

/* ---- packing: one matrix after another, by direction ---- */

static size_t w_size(const rnn_params *p)
{
    return gemm_pack_size(p->isa, p->x_tactic, 1, p->depth, rnn_gates(p->kind) * p->hidden);
}
static size_t h_size(const rnn_params *p)
{
    return gemm_pack_size(p->isa, p->h_tactic, 1, p->hidden, rnn_columns(p->kind, p->hidden));
}
static size_t reset_size(const rnn_params *p)
{
    return p->kind == RNN_GRU ? gemm_pack_size(p->isa, p->reset_tactic, 1, p->hidden, p->hidden) : 0;
}

size_t rnn_pack_w_size(const rnn_params *p)
{
    return size_mul(w_size(p), (size_t)p->directions);
}

size_t rnn_pack_r_size(const rnn_params *p)
{
    return size_mul(size_add(h_size(p), reset_size(p)), (size_t)p->directions);
}

void rnn_pack_w(const rnn_params *p, const float *src, const int64_t *stride, float *dst)
{
    for (int64_t d = 0; d < p->directions; d++, dst += w_size(p) / sizeof(float))
        gemm_pack(p->isa, p->x_tactic, 1, p->depth, rnn_gates(p->kind) * p->hidden, src + d * stride[0], 0, stride[2],
                  stride[1], dst);
}

void rnn_pack_r(const rnn_params *p, const float *src, const int64_t *stride, float *dst)
{
    const int64_t cols = rnn_columns(p->kind, p->hidden);
    for (int64_t d = 0; d < p->directions; d++) {
        const float *at = src + d * stride[0];
        gemm_pack(p->isa, p->h_tactic, 1, p->hidden, cols, at, 0, stride[2], stride[1], dst);
        dst += h_size(p) / sizeof(float);
        if (p->kind != RNN_GRU) continue;
        gemm_pack(p->isa, p->reset_tactic, 1, p->hidden, p->hidden, at + cols * stride[1], 0, stride[2], stride[1],
                  dst);
        dst += reset_size(p) / sizeof(float);
    }
}

/* ---- memory ---- */

typedef struct layout {
    size_t from_x, h, c, each, gate, reset, gemm; /* where each begins; the last three within a worker's part */
    size_t part, total;
} layout;

static size_t floats(int64_t a, int64_t b)
{
    return size_align(size_mul(size_mul((size_t)a, (size_t)b), sizeof(float)), 64);
}

/* Rows of input products that are kept of each direction. */
static int64_t chunk_rows(const rnn_params *p)
{
    int64_t all;
    if (!i64_mul(p->steps, p->batch, &all)) all = INT64_MAX;
    const int64_t most = p->batch > RNN_CHUNK ? p->batch : RNN_CHUNK;
    return all < most ? all : most;
}

static int64_t tile_rows(const rnn_params *p)
{
    return p->batch < RNN_ROWS ? p->batch : RNN_ROWS;
}

static gemm_params x_product(const rnn_params *p)
{
    return (gemm_params){ .isa = p->isa,
                          .tactic = p->x_tactic,
                          .m = chunk_rows(p),
                          .n = rnn_gates(p->kind) * p->hidden,
                          .k = p->depth,
                          .a_col = p->x_stride[2],
                          .ldc = rnn_gates(p->kind) * p->hidden };
}

static gemm_params h_product(const rnn_params *p, gemm_tactic tactic, int64_t cols)
{
    return (gemm_params){ .isa = p->isa,
                          .tactic = tactic,
                          .m = tile_rows(p),
                          .n = cols,
                          .k = p->hidden,
                          .a_row = p->hidden,
                          .a_col = 1,
                          .ldc = rnn_gates(p->kind) * p->hidden,
                          .epilogue.ldr = rnn_gates(p->kind) * p->hidden };
}

static layout layout_of(const rnn_params *p, uint32_t threads)
{
    const int64_t sums = rnn_gates(p->kind) * p->hidden, sequences = p->directions * p->batch;
    const gemm_params gx = x_product(p), gh = h_product(p, p->h_tactic, rnn_columns(p->kind, p->hidden)),
                      gr = h_product(p, p->reset_tactic, p->hidden);
    size_t gemm = gemm_scratch_size(&gx);
    if (gemm_scratch_size(&gh) > gemm) gemm = gemm_scratch_size(&gh);
    if (p->kind == RNN_GRU && gemm_scratch_size(&gr) > gemm) gemm = gemm_scratch_size(&gr);
    layout l = { .from_x = 0 };
    l.h = floats(p->directions * chunk_rows(p), sums);
    l.c = size_add(l.h, floats(sequences, p->hidden));
    l.each = size_add(l.c, p->kind == RNN_LSTM ? floats(sequences, p->hidden) : 0);
    l.gate = 0;
    l.reset = floats(tile_rows(p), sums);
    l.gemm = size_add(l.reset, p->kind == RNN_GRU ? floats(tile_rows(p), p->hidden) : 0);
    l.part = size_add(l.gemm, size_align(gemm, 64));
    l.total = size_add(l.each, size_mul(l.part, threads));
    return l;
}

size_t rnn_workspace_size(const rnn_params *p, uint32_t threads)
{
    return layout_of(p, threads).total;
}

/* ---- the walk ---- */

typedef struct job {
    const rnn_params *p;
    const rnn_set *loop;
    layout at;
    char *base;
    int64_t done, steps; /* steps before this chunk, and of it, in the order of each direction */
    int64_t tiles;       /* of the batch */
    gemm_params gx[2];
} job;

static bool is_backward(const rnn_params *p, int64_t d)
{
    return d == 1 || p->is_reverse;
}

static float *from_x_of(const job *j, int64_t d)
{
    return (float *)(void *)(j->base + j->at.from_x) +
           d * j->steps * j->p->batch * rnn_gates(j->p->kind) * j->p->hidden;
}

static int64_t first_step(const job *j, int64_t d)
{
    return is_backward(j->p, d) ? j->p->steps - j->done - j->steps : j->done;
}

/* The product of this chunk's inputs: rows of equal distance are one matrix, others one for each step. */
static gemm_params x_product_of(const job *j, int64_t d)
{
    const rnn_params *p = j->p;
    gemm_params g = x_product(p);
    g.a = p->x + first_step(j, d) * p->x_stride[0];
    g.b = p->w + (size_t)d * (w_size(p) / sizeof(float));
    g.c = from_x_of(j, d);
    if (p->bias) g.epilogue.bias = p->bias + d * p->bias_stride;
    if (p->batch == 1 || p->x_stride[0] == p->batch * p->x_stride[1]) {
        g.m = j->steps * p->batch;
        g.a_row = p->batch == 1 ? p->x_stride[0] : p->x_stride[1];
    } else {
        g.m = p->batch;
        g.a_row = p->x_stride[1];
        g.batch[0] = g.batch[1] = 1;
        g.batch[2] = j->steps;
        g.a_batch[2] = p->x_stride[0];
        g.c_batch[2] = p->batch * g.ldc;
    }
    if (g.k <= 1) g.a_col = 1;
    return g;
}

static void x_body(void *arg, uint32_t begin, uint32_t end, uint32_t worker)
{
    const job *j = arg;
    char *scratch = j->base + j->at.each + worker * j->at.part + j->at.gemm;
    int64_t first = 0;
    for (int64_t d = 0; d < j->p->directions; d++) {
        const int64_t count = gemm_tile_count(&j->gx[d]);
        const int64_t lo = (int64_t)begin - first, hi = (int64_t)end - first;
        if (lo < count && hi > 0) gemm_run(&j->gx[d], lo > 0 ? lo : 0, hi < count ? hi : count, scratch, NULL);
        first += count;
    }
}

static void product_all(const gemm_params *g, void *scratch)
{
    gemm_run(g, 0, gemm_tile_count(g), scratch, NULL);
}

/* The steps of this chunk for one block of sequences of direction d. */
static void steps_run(const job *j, int64_t d, int64_t tile, char *scratch)
{
    const rnn_params *p = j->p;
    const int64_t n = p->hidden, sums = rnn_gates(p->kind) * n, b0 = tile * RNN_ROWS,
                  rows = p->batch - b0 < RNN_ROWS ? p->batch - b0 : RNN_ROWS;
    float *gate = (float *)(void *)(scratch + j->at.gate), *reset = (float *)(void *)(scratch + j->at.reset);
    float *h = (float *)(void *)(j->base + j->at.h) + (d * p->batch + b0) * n,
          *c = (float *)(void *)(j->base + j->at.c) + (d * p->batch + b0) * n;
    const float *r = p->r + (size_t)d * ((h_size(p) + reset_size(p)) / sizeof(float));
    const float *bias = p->bias ? p->bias + d * p->bias_stride + sums : NULL;
    const float *peep = p->peep ? p->peep + d * p->peep_stride : NULL;
    const int64_t cols = rnn_columns(p->kind, n), first = first_step(j, d);
    gemm_params gh = h_product(p, p->h_tactic, cols), gr = h_product(p, p->reset_tactic, n);
    gh.m = gr.m = rows;
    gh.a = h;
    gh.b = r;
    gh.c = gate;
    gh.epilogue.bias = bias;
    gr.a = reset;
    gr.b = r + h_size(p) / sizeof(float);
    gr.c = gate + cols;
    gr.epilogue.bias = bias ? bias + cols : NULL;
    for (int64_t i = 0; i < j->steps; i++) {
        const int64_t at = is_backward(p, d) ? j->steps - 1 - i : i;
        const float *from_x = from_x_of(j, d) + (at * p->batch + b0) * sums;
        if (p->kind != RNN_GRU_LINEAR) gh.epilogue.residual = from_x;
        product_all(&gh, scratch + j->at.gemm);
        if (p->kind == RNN_GRU) {
            for (int64_t b = 0; b < rows; b++) j->loop->gru_reset(gate + b * sums + n, h + b * n, reset + b * n, n);
            gr.epilogue.residual = from_x + cols;
            product_all(&gr, scratch + j->at.gemm);
        }
        for (int64_t b = 0; b < rows; b++) {
            const float *sum = gate + b * sums;
            switch (p->kind) {
            case RNN_LSTM: j->loop->lstm(sum, peep, c + b * n, h + b * n, n); break;
            case RNN_GRU: j->loop->gru_mix(sum, sum + 2 * n, h + b * n, n); break;
            case RNN_GRU_LINEAR: j->loop->gru_linear(from_x + b * sums, sum, h + b * n, n); break;
            case RNN_RELU: j->loop->relu(sum, h + b * n, n); break;
            default: j->loop->tanh(sum, h + b * n, n); break;
            }
            if (!p->y) continue;
            float *y = p->y + (first + at) * p->y_stride[0] + d * p->y_stride[1] + (b0 + b) * p->y_stride[2];
            if (p->y_stride[3] == 1) memcpy(y, h + b * n, (size_t)n * sizeof *y);
            else
                for (int64_t k = 0; k < n; k++) y[k * p->y_stride[3]] = h[b * n + k];
        }
    }
}

static void step_body(void *arg, uint32_t begin, uint32_t end, uint32_t worker)
{
    const job *j = arg;
    for (int64_t i = begin; i < end; i++)
        steps_run(j, i / j->tiles, i % j->tiles, j->base + j->at.each + worker * j->at.part);
}

static void state_load(const rnn_params *p, const float *src, const int64_t *stride, float *dst)
{
    for (int64_t d = 0; d < p->directions; d++)
        for (int64_t b = 0; b < p->batch; b++, dst += p->hidden)
            for (int64_t k = 0; k < p->hidden; k++)
                dst[k] = src ? src[d * stride[0] + b * stride[1] + k * stride[2]] : 0;
}

static void state_store(const rnn_params *p, const float *src, const int64_t *stride, float *dst)
{
    if (!dst) return;
    for (int64_t d = 0; d < p->directions; d++)
        for (int64_t b = 0; b < p->batch; b++, src += p->hidden)
            for (int64_t k = 0; k < p->hidden; k++) dst[d * stride[0] + b * stride[1] + k * stride[2]] = src[k];
}

void rnn_run(const rnn_params *p, const rnn_params *bound, void *workspace, uint32_t threads, rnn_parallel_fn *parallel,
             const void *how)
{
    if (!p->batch || !p->hidden) return;
    job j = { .p = p, .loop = level_of(p->isa)->rnn, .at = layout_of(bound, threads), .base = workspace };
    float *h = (float *)(void *)(j.base + j.at.h), *c = (float *)(void *)(j.base + j.at.c);
    state_load(p, p->h_in, p->h_in_stride, h);
    if (p->kind == RNN_LSTM) state_load(p, p->c_in, p->c_in_stride, c);
    j.tiles = (p->batch + RNN_ROWS - 1) / RNN_ROWS;
    const int64_t most = p->batch < RNN_CHUNK ? RNN_CHUNK / p->batch : 1;
    for (; j.done < p->steps; j.done += j.steps) {
        j.steps = p->steps - j.done < most ? p->steps - j.done : most;
        int64_t count = 0;
        for (int64_t d = 0; d < p->directions; d++) {
            j.gx[d] = x_product_of(&j, d);
            count += gemm_tile_count(&j.gx[d]);
        }
        parallel(how, count, x_body, &j);
        parallel(how, p->directions * j.tiles, step_body, &j);
    }
    state_store(p, h, p->h_out_stride, p->h_out);
    if (p->kind == RNN_LSTM) state_store(p, c, p->c_out_stride, p->c_out);
}
