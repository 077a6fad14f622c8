/* SPDX-License-Identifier: Apache-2.0 */
/* winograd_tactic.c - which tactics are worth measuring for a Winograd convolution, and a rough order among them.
 *
 * Counted in the unit of gemm_cost: the products, the transforms' vector operations, and what has to come from beyond
 * the L2 cache: filters once for each block of tiles, and data and products where a block is too big for it. */
#include "cpu/gemm_core.h"
#include "cpu/level.h"
#include "cpu/winograd.h"

enum { NEAR_BYTES = 512 << 10, FAR_BYTES = 2 << 20, PHASED_BYTES = 16 << 20, PHASED_BYTES_MOST = 64 << 20 };

/* Filters beyond CACHED_BYTES have left every cache by the next inference. */
enum { CACHED_BYTES = 8 << 20 };
static const double ns_per_byte = 0.02, ns_per_far_byte = 0.06, ns_per_vector = 0.15;

static int64_t tiles_count(const winograd_shape *s, int out)
{
    return s->images * winograd_step(s, 0) * winograd_tiles_along(s, 0, out) * winograd_step(s, 1) *
           winograd_tiles_along(s, 1, out);
}

/* Bytes of a tile's data and products. */
static double tile_bytes(const winograd_shape *s, int out)
{
    const double channels = (double)(winograd_row_size(s->c_in) + winograd_row_size(s->c_out));
    return (double)winograd_points(s, out) * channels * (double)sizeof(float);
}

double winograd_cost(isa_level isa, const winograd_shape *s, winograd_tactic t, uint32_t threads)
{
    const int64_t tiles = tiles_count(s, t.out), points = winograd_points(s, t.out), lanes = level_of(isa)->gemm->lanes;
    if (tiles == 0) return 0.0;
    const int64_t blocks = t.phased ? 1 : (tiles + t.tiles - 1) / t.tiles, held = (tiles + blocks - 1) / blocks;
    const gemm_shape g = {
        .m = held, .n = s->c_out, .k = s->c_in, .taps = 1, .a_row = winograd_row_size(s->c_in), .a_col = 1
    };
    gemm_tactic product = t.gemm;
    product.block_m = 0;
    const double vectors_in = (double)((s->c_in + lanes - 1) / lanes);
    const double vectors_out = (double)((s->c_out + lanes - 1) / lanes);
    /* Operations on vectors of a tile, by squares and by lines. */
    static const double in_ops[2][2] = { { 64, 220 }, { 12, 25 } }, out_ops[2][2] = { { 50, 200 }, { 10, 22 } };
    const bool is_line = winograd_is_line(s);
    const double transform = in_ops[is_line][t.out == 4] * vectors_in + out_ops[is_line][t.out == 4] * vectors_out;
    const double filters = (double)points * (double)s->c_in * (double)s->c_out * (double)sizeof(float);
    const double stages = (double)held * tile_bytes(s, t.out);
    double block = (double)points * gemm_cost(isa, &g, product) + (double)held * transform * ns_per_vector;
    if (stages > NEAR_BYTES) block += 2 * stages * ns_per_byte;
    if (filters + stages > 2 * NEAR_BYTES) block += filters * ns_per_byte;
    const int64_t workers = threads ? threads : 1;
    const double once = filters > CACHED_BYTES ? filters * (ns_per_far_byte - ns_per_byte) : 0.0;
    if (t.phased) return (block + once) / (double)workers;
    return block * (double)((blocks + workers - 1) / workers) + once;
}

static int add(isa_level isa, const winograd_shape *s, winograd_tactic *out, int count, winograd_tactic t)
{
    for (int i = 0; i < count; i++) {
        if (out[i].out == t.out && out[i].tiles == t.tiles && out[i].phased == t.phased) return count;
    }
    const double cost = winograd_cost(isa, s, t, 1);
    int at = count;
    for (; at > 0 && winograd_cost(isa, s, out[at - 1], 1) > cost; at--) out[at] = out[at - 1];
    out[at] = t;
    return count + 1;
}

/* The same with as many blocks as threads share evenly, a few more or a few less. Blocks are of one size: one too many
 * keeps all threads but one waiting. */
static int add_even(isa_level isa, const winograd_shape *s, winograd_tactic *out, int count, winograd_tactic t,
                    uint32_t threads)
{
    const int64_t tiles = tiles_count(s, t.out), workers = threads;
    const int64_t blocks = t.tiles ? (tiles + t.tiles - 1) / t.tiles : 0, low = blocks / workers * workers;
    if (workers < 2 || !blocks || blocks == low || blocks > 8 * workers) return count;
    for (int64_t even = low; even <= low + workers; even += workers) {
        if (even < 1 || even > tiles || count == WINOGRAD_TACTICS_MAX) continue;
        const int64_t block = (tiles + even - 1) / even;
        if (block > UINT16_MAX / 2) continue;
        t.tiles = (uint16_t)block;
        count = add(isa, s, out, count, t);
    }
    return count;
}

int winograd_tactics(isa_level isa, const winograd_shape *s, const winograd_shape *most, uint32_t threads,
                     winograd_tactic out[WINOGRAD_TACTICS_MAX])
{
    int count = 0;
    for (int size = winograd_taps(s) == 5 ? 4 : 2; size <= 4; size += 2) {
        const int64_t tiles = tiles_count(s, size);
        const double bytes = tile_bytes(s, size);
        /* All tiles at once where that is not much memory; blocks for the L2 cache; in place of the former, larger
         * ones. */
        const bool phased =
            (double)tiles * bytes <= PHASED_BYTES && (double)tiles_count(most, size) * bytes <= PHASED_BYTES_MOST;
        for (int cut = 0; cut < 2; cut++) {
            winograd_tactic t = { .out = (uint8_t)size, .phased = cut == 1 && phased };
            double held = t.phased ? (double)tiles : (cut == 0 ? NEAR_BYTES : FAR_BYTES) / bytes;
            if (held > (double)tiles) held = (double)tiles;
            if (held < 1) held = 1;
            const gemm_shape g = { .m = (int64_t)held,
                                   .n = s->c_out,
                                   .k = s->c_in,
                                   .taps = 1,
                                   .a_row = winograd_row_size(s->c_in),
                                   .a_col = 1 };
            gemm_tactic list[GEMM_TACTICS_MAX];
            (void)gemm_tactics(isa, &g, list);
            t.gemm = list[0];
            t.gemm.copy_a = 0;
            t.gemm.block_m = 0;
            if (!t.phased) {
                const int64_t rows = t.gemm.rows;
                int64_t block = (int64_t)held / rows * rows;
                if (block < rows) block = rows;
                if (block >= tiles && phased) continue; /* the phases do the same, and give every thread work */
                t.tiles = (uint16_t)(block > UINT16_MAX / 2 ? UINT16_MAX / 2 : block);
            }
            count = add(isa, s, out, count, t);
            count = add_even(isa, s, out, count, t, threads);
        }
    }
    return count;
}
