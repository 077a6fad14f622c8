/* SPDX-License-Identifier: Apache-2.0 */
/* group_conv.inc.h - group_conv.h, included once by each instruction set's file. Levels that cannot permute a vector
 * have no such loop. */
#ifdef SIMD_TABLE_BITS
enum { GROUP_BLOCK = 7, GROUP_COLUMNS = (GROUP_BLOCK - 1) * GROUP_STRIDE_MAX + GROUP_WIDTH, GROUP_LINE = 64 };

INLINE void group_store(const group_conv *g, float *y, const float *residual, int64_t c, vec a, int lanes)
{
    const gemm_epilogue *e = g->epilogue;
    if (e->scale) a = v_mul(a, v_set(e->alpha));
    if (e->bias) a = v_add(a, lanes == L ? v_load(e->bias + c) : v_load_n(e->bias + c, lanes));
    if (residual) a = v_add(a, lanes == L ? v_load(residual) : v_load_n(residual, lanes));
    if (e->clip) a = v_min(v_set(e->hi), v_max(v_set(e->lo), a));
    if (lanes == L) v_store(y, a);
    else v_store_n(y, a, lanes);
}

/* `count` results from pixel `first` on, of `lanes` channels from c on. */
INLINE void group_block(const group_conv *g, const float *w, int64_t c, int64_t first, int count, int stride, int lanes)
{
    const int columns = (count - 1) * stride + GROUP_WIDTH;
    const float *const *x = g->x + first * stride;
    vec a[GROUP_BLOCK], in[GROUP_COLUMNS];
    UNROLL for (int j = 0; j < count; j++) a[j] = v_zero();
    for (int64_t r = 0; r < g->rows; r++, x += g->columns) {
        UNROLL for (int u = 0; u < columns; u++) in[u] = lanes == L ? v_load(x[u] + c) : v_load_n(x[u] + c, lanes);
        for (int64_t i = 0; i < g->group; i++, w += GROUP_WIDTH * L) {
            const veci lane = vi_load(g->spread + i * GROUP_MOST);
            const vec k[GROUP_WIDTH] = { v_load(w), v_load(w + L), v_load(w + 2 * L) };
            UNROLL for (int u = 0; u < columns; u++) {
                const vec one = v_permute(in[u], lane);
                UNROLL for (int t = 0; t < GROUP_WIDTH; t++) {
                    const int j = (u - t) / stride;
                    if (u >= t && (u - t) % stride == 0 && j < count) a[j] = v_fma_into(one, k[t], a[j]);
                }
            }
        }
    }
    UNROLL for (int j = 0; j < count; j++)
        group_store(g, g->y + (first + j) * g->ldy + c, g->residual ? g->residual + (first + j) * g->ldr + c : NULL, c,
                    a[j], lanes);
}

INLINE void group_vector(const group_conv *g, const float *w, int64_t c, int stride, int lanes)
{
    int64_t at = 0;
    for (; at + 7 <= g->pixels; at += 7) group_block(g, w, c, at, 7, stride, lanes);
    if (at + 4 <= g->pixels) {
        group_block(g, w, c, at, 4, stride, lanes);
        at += 4;
    }
    if (at + 2 <= g->pixels) {
        group_block(g, w, c, at, 2, stride, lanes);
        at += 2;
    }
    if (at < g->pixels) group_block(g, w, c, at, 1, stride, lanes);
}

static void group_conv_row(const group_conv *g)
{
    const float *w = g->w;
    const int64_t vectors = (g->channels - 1) / L + 1;
    const int64_t x_each = g->next_x_size / vectors + GROUP_LINE, y_each = g->next_y_size / vectors + GROUP_LINE;
    int64_t x_at = 0, y_at = 0;
    for (int64_t c = 0; c < g->channels; c += L, w += g->w_vector) {
        const int64_t x_end = x_at + x_each < g->next_x_size ? x_at + x_each : g->next_x_size;
        const int64_t y_end = y_at + y_each < g->next_y_size ? y_at + y_each : g->next_y_size;
        for (; x_at < x_end; x_at += GROUP_LINE) __builtin_prefetch(g->next_x + x_at, 0, 2);
        for (; y_at < y_end; y_at += GROUP_LINE) __builtin_prefetch(g->next_y + y_at, 1, 2);
        const int lanes = g->channels - c < L ? (int)(g->channels - c) : L;
        if (g->stride == 1 && lanes == L) group_vector(g, w, c, 1, L);
        else if (g->stride == 1) group_vector(g, w, c, 1, lanes);
        else if (lanes == L) group_vector(g, w, c, 2, L);
        else group_vector(g, w, c, 2, lanes);
    }
}
#else
enum { GROUP_NONE };
#define group_conv_row NULL
#endif
