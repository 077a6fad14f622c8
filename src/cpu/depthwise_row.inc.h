/* SPDX-License-Identifier: Apache-2.0 */
/* depthwise_row.inc.h - the text of the depthwise row kernels, included once by each instruction set's file.
 *
 * For the usual kernels (3, 5, 7 wide) a block of outputs is computed at once, one or two rows high and four or seven
 * pixels wide: an input is loaded once and meets every output of the block that it belongs to. At the borders of the
 * image and of the result the block is the same, with inputs left out and outputs not stored. Other kernels take seven
 * outputs at a time, and one at a time at the borders. Inputs of bf16 are widened when they are loaded, and results
 * narrowed when they are stored: blocks of the usual kernels only. Where a channel has several results, lanes are
 * results, and an input is loaded to all lanes that it belongs to. */

/* How inputs are loaded. */
enum { DW_F32, DW_BF16, DW_REPEATED };

/* The widest window has 19 columns. */
#if defined(__clang__)
#define UNROLL_WINDOW UNROLL
#else
#define UNROLL_WINDOW _Pragma("GCC unroll 19")
#endif

/* Blocks beside each other, for one or more vectors of channels. */
typedef struct dw_block {
    const char *x;  /* row 0 of the window, column 0: may lie outside the image           */
    const float *w; /* [vector][tap][lanes]                                               */
    char *y;
    int64_t x_size, y_size; /* bytes of an element: 2 is bf16                                     */
    const float *residual, *bias;
    const gemm_epilogue *e;
    int64_t x_row, x_col; /* distance of window rows and columns                                */
    int64_t y_row, y_col; /* distance of outputs in pixels                                      */
    int64_t ldy;
    int64_t height;             /* taps of a column                                                   */
    int64_t shift;              /* window rows from the first output row's window to the second's     */
    /* Prefetching: window rows from the first inside to those that the next tile adds, and how many those are. */
    int64_t ahead, ahead_rows;
    int64_t row_begin, row_end; /* window rows inside the image                                       */
    uint32_t cols;              /* bit i: window column i lies inside the image and has an output     */
    int32_t rows_out, cols_out; /* outputs of a block that there are                                  */
    int64_t blocks, vectors;    /* how many of both                                                   */
    int32_t lanes;              /* channels of each vector: all lanes where there are several         */
    int64_t multiplier, first;  /* results of a channel; the first result, counted from those of x    */
} dw_block;

/* Where the lanes of a vector find their inputs: lane i at x[at[i]], all of them below x[count]. */
typedef struct dw_lanes {
    veci at;
    int count;
} dw_lanes;

/* The lanes of results from `result` on. */
static inline dw_lanes dw_lanes_of(int64_t result, int64_t multiplier, int lanes)
{
    int32_t at[VEC_LANES];
    int64_t rest = result % multiplier;
    for (int i = 0, channel = 0; i < VEC_LANES; i++) {
        at[i] = channel;
        if (i + 1 < lanes && ++rest == multiplier) {
            rest = 0;
            channel++;
        }
    }
    return (dw_lanes){ .at = vi_load(at), .count = at[VEC_LANES - 1] + 1 };
}

static inline vec dw_load_repeated(const float *x, const dw_lanes *l)
{
#if VEC_LANES > 4
    return v_permute(v_load_n(x, l->count), l->at);
#else
    return v_lookup(x, l->at);
#endif
}

static inline vec dw_load_bf16(const char *p)
{
    return v_load_bf16((const uint16_t *)(const void *)p);
}
static inline vec dw_load_bf16_n(const char *p, int n)
{
    uint16_t part[VEC_LANES] = { 0 };
    memcpy(part, p, (size_t)n * sizeof *part);
    return v_load_bf16(part);
}
static inline void dw_store_bf16(char *p, vec v, int lanes, const int masked)
{
    uint16_t part[VEC_LANES];
    if (!masked) {
        v_store_bf16((uint16_t *)(void *)p, v);
        return;
    }
    v_store_bf16(part, v);
    memcpy(p, part, (size_t)lanes * sizeof *part);
}

/* The epilogue, read once: stores to y could otherwise be taken to change it. */
typedef struct dw_end {
    bool scale, clip;
    float alpha, lo, hi;
} dw_end;

static inline dw_end dw_end_of(const gemm_epilogue *e)
{
    return (dw_end){ .scale = e->scale, .clip = e->clip, .alpha = e->alpha, .lo = e->lo, .hi = e->hi };
}

/* What becomes of the sums of the first `live` of a row of outputs. */
static inline __attribute__((always_inline)) void dw_finish_row(const dw_end *e, vec *acc, const int outputs, int live,
                                                                vec bias, char *y, int64_t y_step,
                                                                const float *residual, int64_t r_step, int lanes,
                                                                const int masked, const int narrow)
{
    if (e->scale) {
        UNROLL for (int u = 0; u < outputs; u++) acc[u] = v_mul(v_set(e->alpha), acc[u]);
    }
    UNROLL for (int u = 0; u < outputs; u++) acc[u] = v_add(acc[u], bias);
    if (residual) {
        UNROLL for (int u = 0; u < outputs; u++)
        {
            if (u >= live) break;
            const float *from = residual + u * r_step;
            acc[u] = v_add(acc[u], masked ? v_load_n(from, lanes) : v_load(from));
        }
    }
    if (e->clip) {
        UNROLL for (int u = 0; u < outputs; u++) acc[u] = v_min(v_set(e->hi), v_max(v_set(e->lo), acc[u]));
    }
    UNROLL for (int u = 0; u < outputs; u++, y += y_step)
    {
        if (u >= live) break;
        if (narrow) dw_store_bf16(y, acc[u], lanes, masked);
        else if (masked) v_store_n((float *)(void *)y, acc[u], lanes);
        else v_store((float *)(void *)y, acc[u]);
    }
}

/* One row of the window. first, second: the output rows that it belongs to, with their rows of weights. Where sums and
 * weights together need more registers than there are, weights are operands in memory. */
static inline __attribute__((always_inline)) void dw_line(const dw_block *b, const char *x, const float *w0,
                                                          const float *w1, vec *acc0, vec *acc1, const int kernel,
                                                          const int stride, const int rows, const int outputs,
                                                          const int first, const int second, const int masked,
                                                          const int kind, const dw_lanes *repeated)
{
    const uint32_t inside = b->cols;
    const int64_t x_col = b->x_col * (kind == DW_BF16 ? 2 : 4);
    const int lanes = b->lanes;
    const int in_memory = rows * outputs + (first + second) * kernel + 1 > VEC_REGISTERS;
    vec wv0[7], wv1[7];
    UNROLL for (int i = 0; i < kernel && !in_memory; i++)
    {
        if (first) wv0[i] = v_load(w0 + i * VEC_LANES);
        if (second) wv1[i] = v_load(w1 + i * VEC_LANES);
    }
    UNROLL_WINDOW for (int col = 0; col < (outputs - 1) * stride + kernel; col++, x += x_col)
    {
        if (!(inside >> col & 1u)) continue;
        const float *wide = (const float *)(const void *)x;
        const vec in = kind == DW_REPEATED ? dw_load_repeated(wide, repeated)
                       : kind == DW_BF16   ? masked ? dw_load_bf16_n(x, lanes) : dw_load_bf16(x)
                       : masked            ? v_load_n(wide, lanes)
                                           : v_load(wide);
        UNROLL for (int u = 0; u < outputs; u++)
        {
            const int tap = col - u * stride;
            if (tap < 0 || tap >= kernel) continue;
            if (first && in_memory) acc0[u] = v_fma_from(in, w0 + tap * VEC_LANES, acc0[u]);
            if (second && in_memory) acc1[u] = v_fma_from(in, w1 + tap * VEC_LANES, acc1[u]);
            if (first && !in_memory) acc0[u] = v_fma_into(in, wv0[tap], acc0[u]);
            if (second && !in_memory) acc1[u] = v_fma_into(in, wv1[tap], acc1[u]);
        }
    }
}

/* The rows that the next tile adds are still far away, and so are its results. A call, so that blocks without
 * prefetching keep their registers. */
static __attribute__((noinline)) void dw_prefetch(const dw_block *b, const char *line, const char *y, int outputs,
                                                  int stride)
{
    const int64_t columns = (int64_t)outputs * stride, y_col = b->y_col * b->ldy * b->y_size;
    __asm__ volatile("" : : "r"(line)); /* a function that only prefetches is taken for one without effect */
    for (int64_t i = 0; i < b->ahead_rows; i++) {
        const char *x = line + (b->ahead + i) * b->x_row * b->x_size;
        for (int64_t u = 0; u < columns; u++, x += b->x_col * b->x_size) __builtin_prefetch(x, 0, 2);
    }
    for (int64_t r = 0; r < b->rows_out; r++) {
        const char *result = y + (r + b->rows_out) * b->y_row * b->ldy * b->y_size;
        for (int64_t u = 0; u < outputs; u++, result += y_col) __builtin_prefetch(result, 1, 2);
    }
}

static inline __attribute__((always_inline)) void dw_run(const dw_block *b, const int kernel, const int stride,
                                                         const int rows, const int outputs, const int masked,
                                                         const int kind)
{
    const int narrow = kind == DW_BF16;
    const dw_end e = dw_end_of(b->e);
    const int lanes = b->lanes;
    const int64_t x_size = narrow ? 2 : 4, y_size = narrow ? b->y_size : 4;
    const bool is_narrow = narrow && y_size == 2;
    const int64_t x_row = b->x_row * x_size, taps = b->height * kernel, shift = b->shift, height = b->height;
    const int64_t row_end = b->row_end, ldy = b->ldy, ldr = b->e->ldr;
    const int64_t y_step = b->y_col * ldy * y_size, r_step = b->y_col * ldr;
    const int32_t rows_out = b->rows_out, cols_out = b->cols_out; /* stores to y could be taken to change them */
    const float *weights = b->w;
    const int64_t vectors_of_line = VEC_LANES * x_size < 64 ? 64 / (VEC_LANES * x_size) : 1; /* a cache line */
    dw_lanes repeated = { .count = 0 };
    for (int64_t v = 0; v < b->vectors; v++, weights += taps * VEC_LANES) {
        const int64_t result = b->first + v * VEC_LANES;
        const int64_t channel = kind == DW_REPEATED ? result / b->multiplier : v * VEC_LANES;
        if (kind == DW_REPEATED && (v == 0 || VEC_LANES % b->multiplier))
            repeated = dw_lanes_of(result, b->multiplier, lanes);
        for (int64_t block = 0; block < b->blocks; block++) {
            const int64_t at = v * VEC_LANES, pixel = block * outputs * b->y_col;
            const char *line = b->x + (block * outputs * stride * b->x_col + channel) * x_size + b->row_begin * x_row;
            if (b->ahead_rows && v % vectors_of_line == 0)
                dw_prefetch(b, line, b->y + (pixel * ldy + at) * y_size, outputs, stride);
            vec acc0[7], acc1[7];
            UNROLL for (int u = 0; u < outputs; u++) acc0[u] = acc1[u] = v_zero();
            for (int64_t i = b->row_begin; i < row_end; i++, line += x_row) {
                const float *w0 = weights + i * kernel * VEC_LANES, *w1 = w0 - shift * kernel * VEC_LANES;
                const int first = i < height, second = rows > 1 && rows_out > 1 && i >= shift;
                if (first && second)
                    dw_line(b, line, w0, w1, acc0, acc1, kernel, stride, rows, outputs, 1, 1, masked, kind, &repeated);
                else if (first)
                    dw_line(b, line, w0, w1, acc0, acc1, kernel, stride, rows, outputs, 1, 0, masked, kind, &repeated);
                else if (second)
                    dw_line(b, line, w0, w1, acc0, acc1, kernel, stride, rows, outputs, 0, 1, masked, kind, &repeated);
            }
            const float *bias_at = b->bias ? b->bias + at : NULL;
            const vec bias = !bias_at ? v_zero() : masked ? v_load_n(bias_at, lanes) : v_load(bias_at);
            UNROLL for (int r = 0; r < rows; r++)
            {
                if (r >= rows_out) break;
                char *y = b->y + ((pixel + r * b->y_row) * ldy + at) * y_size;
                const float *residual = b->residual ? b->residual + (pixel + r * b->y_row) * ldr + at : NULL;
                dw_finish_row(&e, r ? acc1 : acc0, outputs, cols_out, bias, y, y_step, residual, r_step, lanes, masked,
                              is_narrow);
            }
        }
    }
}

/* Outputs beside each other with any kernel, `width` taps wide: b->blocks blocks of `outputs`, whose windows have taps
 * [col_begin, col_end) of each row inside the image. The windows of two adjacent outputs start x_step floats apart.
 * Each tap loads its weights once for all outputs of a block. */
static inline __attribute__((always_inline)) void dw_any(const dw_block *b, int64_t width, int64_t col_begin,
                                                         int64_t col_end, int64_t x_step, const int outputs,
                                                         const int masked, const int kind)
{
    const dw_end e = dw_end_of(b->e);
    const int lanes = b->lanes;
    const int64_t taps = b->height * width, x_col = b->x_col, ldy = b->ldy, ldr = b->e->ldr;
    dw_lanes repeated = { .count = 0 };
    for (int64_t v = 0; v < b->vectors; v++) {
        const int64_t at = v * VEC_LANES, result = b->first + at;
        const int64_t channel = kind == DW_REPEATED ? result / b->multiplier : at;
        if (kind == DW_REPEATED && (v == 0 || VEC_LANES % b->multiplier))
            repeated = dw_lanes_of(result, b->multiplier, lanes);
        const float *bias_at = b->bias ? b->bias + at : NULL;
        const vec bias = !bias_at ? v_zero() : masked ? v_load_n(bias_at, lanes) : v_load(bias_at);
        for (int64_t block = 0; block < b->blocks; block++) {
            const float *first = (const float *)(const void *)b->x + block * outputs * x_step + channel;
            vec acc[7];
            UNROLL for (int u = 0; u < outputs; u++) acc[u] = v_zero();
            for (int64_t row = b->row_begin; row < b->row_end; row++) {
                const float *x = first + row * b->x_row + col_begin * x_col;
                const float *w = b->w + (v * taps + row * width + col_begin) * VEC_LANES;
                for (int64_t col = col_begin; col < col_end; col++, x += x_col, w += VEC_LANES) {
                    const vec weight = v_load(w);
                    UNROLL for (int u = 0; u < outputs; u++)
                    {
                        const float *from = x + u * x_step;
                        const vec in = kind == DW_REPEATED ? dw_load_repeated(from, &repeated)
                                       : masked            ? v_load_n(from, lanes)
                                                           : v_load(from);
                        acc[u] = v_fma(in, weight, acc[u]);
                    }
                }
            }
            char *y = b->y + (block * outputs * ldy + at) * 4;
            const float *residual = b->residual ? b->residual + block * outputs * ldr + at : NULL;
            dw_finish_row(&e, acc, outputs, outputs, bias, y, ldy * 4, residual, ldr, lanes, masked, 0);
        }
    }
}

typedef void dw_block_fn(const dw_block *b);
#define DW(name, k, s, r, u, masked)                                                                                   \
    static void name(const dw_block *b)                                                                                \
    {                                                                                                                  \
        dw_run(b, k, s, r, u, masked, DW_F32);                                                                         \
    }                                                                                                                  \
    static void name##_narrow(const dw_block *b)                                                                       \
    {                                                                                                                  \
        dw_run(b, k, s, r, u, masked, DW_BF16);                                                                        \
    }
#define DW_EACH(name, k, s, r, u, masked)                                                                              \
    static void name##_repeated(const dw_block *b)                                                                     \
    {                                                                                                                  \
        dw_run(b, k, s, r, u, masked, DW_REPEATED);                                                                    \
    }
/* The last channels, where they fill no vector, have one block of outputs, and those of several results two: each block
 * takes long to compile. */
#define DW_SHAPES(k, s)                                                                                                \
    DW(dw_##k##_##s##_1_4, k, s, 1, 4, 0)                                                                              \
    DW(dw_##k##_##s##_1_7, k, s, 1, 7, 0)                                                                              \
    DW(dw_##k##_##s##_2_4, k, s, 2, 4, 0)                                                                              \
    DW(dw_##k##_##s##_2_7, k, s, 2, 7, 0)                                                                              \
    DW(dw_##k##_##s##_partial, k, s, 1, PARTIAL_OUTPUTS, 1)                                                            \
    DW_EACH(dw_##k##_##s##_1_7, k, s, 1, 7, 0)                                                                         \
    DW_EACH(dw_##k##_##s##_2_7, k, s, 2, 7, 0)                                                                         \
    DW_EACH(dw_##k##_##s##_partial, k, s, 1, PARTIAL_OUTPUTS, 1)
enum { PARTIAL_OUTPUTS = 4 };
DW_SHAPES(3, 1)
DW_SHAPES(3, 2)
DW_SHAPES(5, 1)
DW_SHAPES(5, 2)
DW_SHAPES(7, 1)
DW_SHAPES(7, 2)

/* clang-format off */
#define DW_BOTH(name) { name, name##_narrow }
#define DW_NAMES(k, s) { { DW_BOTH(dw_##k##_##s##_1_4), DW_BOTH(dw_##k##_##s##_1_7) }, \
                         { DW_BOTH(dw_##k##_##s##_2_4), DW_BOTH(dw_##k##_##s##_2_7) } }
#define DW_REPEATED_NAMES(k, s) { dw_##k##_##s##_1_7_repeated, dw_##k##_##s##_2_7_repeated, \
                                  dw_##k##_##s##_partial_repeated }
#define DW_PARTS(k) { DW_BOTH(dw_##k##_1_partial), DW_BOTH(dw_##k##_2_partial) }
/* [(kernel - 3) / 2][stride - 1][rows - 1][seven pixels][narrow] */
static dw_block_fn *const dw_blocks[3][2][2][2][2] = {
    { DW_NAMES(3, 1), DW_NAMES(3, 2) },
    { DW_NAMES(5, 1), DW_NAMES(5, 2) },
    { DW_NAMES(7, 1), DW_NAMES(7, 2) },
};
/* [(kernel - 3) / 2][stride - 1][narrow] */
static dw_block_fn *const dw_parts[3][2][2] = { DW_PARTS(3), DW_PARTS(5), DW_PARTS(7) };
/* [(kernel - 3) / 2][stride - 1][rows - 1, or the last channels] */
static dw_block_fn *const dw_repeated[3][2][3] = {
    { DW_REPEATED_NAMES(3, 1), DW_REPEATED_NAMES(3, 2) },
    { DW_REPEATED_NAMES(5, 1), DW_REPEATED_NAMES(5, 2) },
    { DW_REPEATED_NAMES(7, 1), DW_REPEATED_NAMES(7, 2) },
};
/* clang-format on */

static int64_t dw_ceil_div(int64_t a, int64_t b)
{
    return a > 0 ? (a + b - 1) / b : 0;
}

/* Taps [begin, end) of a window that starts at `at` and lie inside [0, size). */
static void dw_clip(int64_t at, int64_t kernel, int64_t dilation, int64_t size, int64_t *begin, int64_t *end)
{
    *begin = dw_ceil_div(-at, dilation);
    const int64_t fit = dw_ceil_div(size - at, dilation);
    *end = fit < kernel ? fit : kernel;
    if (*end < *begin) *end = *begin;
}

/* Moves b from result 0 of a pixel to result `whole`, from which `left` results are a part of a vector. */
static void dw_last_channels(dw_block *b, int64_t whole, int64_t left, int64_t taps)
{
    b->w += whole * taps;
    if (b->multiplier == 1) b->x += whole * b->x_size;
    else b->first = whole;
    b->y += whole * b->y_size;
    if (b->residual) b->residual += whole;
    if (b->bias) b->bias += whole;
    b->vectors = 1;
    b->lanes = (int32_t)left;
}

/* The outputs of b, all channels: blocks of seven outputs, or one output. */
static void dw_any_channels(const dw_block *b, int64_t width, int64_t col_begin, int64_t col_end, int64_t x_step,
                            int64_t cols, bool is_seven)
{
    const int64_t whole = cols / VEC_LANES * VEC_LANES;
    dw_block part = *b;
    part.vectors = cols / VEC_LANES;
    part.lanes = VEC_LANES;
    const bool is_repeated = b->multiplier != 1;
    if (is_repeated && is_seven) dw_any(&part, width, col_begin, col_end, x_step, 7, 0, DW_REPEATED);
    else if (is_repeated) dw_any(&part, width, col_begin, col_end, x_step, 1, 0, DW_REPEATED);
    else if (is_seven) dw_any(&part, width, col_begin, col_end, x_step, 7, 0, DW_F32);
    else dw_any(&part, width, col_begin, col_end, x_step, 1, 0, DW_F32);
    if (whole == cols) return;
    dw_last_channels(&part, whole, cols - whole, b->height * width);
    if (is_repeated && is_seven) dw_any(&part, width, col_begin, col_end, x_step, 7, 1, DW_REPEATED);
    else if (is_repeated) dw_any(&part, width, col_begin, col_end, x_step, 1, 1, DW_REPEATED);
    else if (is_seven) dw_any(&part, width, col_begin, col_end, x_step, 7, 1, DW_F32);
    else dw_any(&part, width, col_begin, col_end, x_step, 1, 1, DW_F32);
}

/* Outputs of kernels that have no block of their own. Outputs whose windows lie inside the image are computed in blocks
 * of seven, the others one by one. */
static void dw_pixels(const depthwise_rows *r, const dw_block *all)
{
    const depthwise_shape *s = &r->p->shape;
    const int64_t cols = s->channels * s->multiplier, width = s->kernel[1], x_step = s->stride[1] * s->x_dim[1];
    for (int64_t i = 0; i < r->pixels;) {
        const int64_t at = (r->out_x + i) * s->stride[1] - s->pad[1];
        dw_block b = *all;
        b.x += at * s->x_dim[1] * b.x_size;
        b.y += i * b.ldy * b.y_size;
        if (b.residual) b.residual += i * b.e->ldr;
        int64_t begin, end, inside = 0; /* outputs from this one on whose windows lie inside the image */
        dw_clip(at, width, s->dilation[1], s->in[1], &begin, &end);
        if (begin == 0 && end == width) inside = (s->in[1] - 1 - at - (width - 1) * s->dilation[1]) / s->stride[1] + 1;
        if (inside > r->pixels - i) inside = r->pixels - i;
        b.blocks = inside >= 7 ? inside / 7 : 1;
        dw_any_channels(&b, width, begin, end, x_step, cols, inside >= 7);
        i += inside >= 7 ? b.blocks * 7 : 1;
    }
}

/* Rows [first, first + rows) of the outputs, all whole vectors of channels. Its x is column 0 of the image. */
static dw_block dw_block_of(const depthwise_rows *r, int64_t first, int64_t rows)
{
    const depthwise_params *p = r->p;
    const depthwise_shape *s = &p->shape;
    const int64_t shift = s->stride[0] * depthwise_step(s, 0) / s->dilation[0];
    const int64_t at_y = r->out_y * s->stride[0] - s->pad[0] + first * shift * s->dilation[0];
    dw_block b = {
        .x = (const char *)r->x + at_y * s->x_dim[0] * (p->is_narrow ? 2 : 4),
        .w = p->w,
        .y = (char *)r->y + first * r->y_row * p->ldy * (r->narrow_y ? 2 : 4),
        .x_size = p->is_narrow ? 2 : 4,
        .y_size = r->narrow_y ? 2 : 4,
        .residual = r->residual ? r->residual + first * r->y_row * p->epilogue.ldr : NULL,
        .bias = p->epilogue.bias,
        .e = &p->epilogue,
        .x_row = s->dilation[0] * s->x_dim[0],
        .x_col = s->dilation[1] * s->x_dim[1],
        .y_row = r->y_row,
        .y_col = depthwise_step(s, 1),
        .ldy = p->ldy,
        .height = s->kernel[0],
        .shift = shift,
        .rows_out = (int32_t)rows,
        .vectors = s->channels * s->multiplier / VEC_LANES,
        .lanes = VEC_LANES,
        .multiplier = s->multiplier,
    };
    dw_clip(at_y, (rows - 1) * shift + s->kernel[0], s->dilation[0], s->in[0], &b.row_begin, &b.row_end);
    b.ahead = b.row_end - b.row_begin;
    b.ahead_rows = p->tactic.ahead ? shift * rows : 0;
    return b;
}

/* The channels of `all`, in blocks of so many outputs. */
static void dw_run_blocks(const depthwise_rows *r, const dw_block *all, dw_block_fn *fn, int64_t outputs)
{
    const depthwise_shape *s = &r->p->shape;
    const int64_t step = all->y_col, stride = s->stride[1] * step / s->dilation[1];
    const int64_t window = (outputs - 1) * stride + s->kernel[1];
    for (int64_t phase = 0; phase < step && phase < r->pixels; phase++) {
        /* Outputs phase, phase + step, … of this run. */
        const int64_t count = (r->pixels - phase - 1) / step + 1;
        for (int64_t i = 0; i < count;) {
            const int64_t pixel = phase + i * step, at = (r->out_x + pixel) * s->stride[1] - s->pad[1];
            const int64_t there = count - i < outputs ? count - i : outputs;
            int64_t begin, end;
            dw_block b = *all;
            b.x += at * s->x_dim[1] * b.x_size;
            b.y += pixel * b.ldy * b.y_size;
            if (b.residual) b.residual += pixel * b.e->ldr;
            dw_clip(at, (there - 1) * stride + s->kernel[1], s->dilation[1], s->in[1], &begin, &end);
            b.cols = (uint32_t)(((uint64_t)1 << end) - ((uint64_t)1 << begin));
            b.cols_out = (int32_t)there;
            b.blocks = 1;
            if (begin == 0 && end == window) { /* and as many more as lie inside */
                const int64_t left = (s->in[1] - 1 - at) / s->dilation[1] + 1 - window;
                const int64_t inside = left / (outputs * stride) + 1;
                b.blocks = (count - i) / outputs < inside ? (count - i) / outputs : inside;
            }
            fn(&b);
            i += there * b.blocks;
        }
    }
}

static void depthwise_rows_run(const depthwise_rows *r)
{
    const depthwise_params *p = r->p;
    const depthwise_shape *s = &p->shape;
    const dw_block all = dw_block_of(r, 0, r->rows);
    if (!depthwise_has_blocks(s)) {
        dw_pixels(r, &all);
        return;
    }
    const int64_t kind = (s->kernel[1] - 3) / 2, stride = s->stride[1] * all.y_col / s->dilation[1];
    const int64_t outputs = p->tactic.cols, cols = s->channels * s->multiplier, whole = cols / VEC_LANES * VEC_LANES;
    dw_block_fn *const *repeated = s->multiplier == 1 ? NULL : dw_repeated[kind][stride - 1];
    dw_block_fn *block = repeated ? repeated[p->tactic.rows - 1]
                                  : dw_blocks[kind][stride - 1][p->tactic.rows - 1][outputs == 7][p->is_narrow];
    dw_block_fn *last = repeated ? repeated[2] : dw_parts[kind][stride - 1][p->is_narrow];
    if (whole) dw_run_blocks(r, &all, block, outputs);
    if (whole == cols) return;
    for (int64_t row = 0; row < r->rows; row++) {
        dw_block part = dw_block_of(r, row, 1);
        dw_last_channels(&part, whole, cols - whole, s->kernel[0] * s->kernel[1]);
        dw_run_blocks(r, &part, last, PARTIAL_OUTPUTS);
    }
}
