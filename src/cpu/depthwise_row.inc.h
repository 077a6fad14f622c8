/* SPDX-License-Identifier: Apache-2.0 */
/* depthwise_row.inc.h - the text of the depthwise row kernels, included once by each instruction set's file.
 *
 * For the usual kernels (3, 5, 7 wide, stride 1 or 2) up to four output pixels are computed at once: a column of the
 * window is loaded once and meets every output that it belongs to. Blocks at the borders and the last, partial vector
 * of channels take the same body with each load guarded. Everything else takes one pixel at a time. */

/* What blocks of outputs beside each other need, for one or more vectors of channels. */
typedef struct dw_block {
    const float *x; /* row 0 of the window, column 0: may lie outside the image         */
    const float *w; /* tap (0, 0)                                                       */
    float *y;
    const float *residual, *bias;
    const gemm_epilogue *e;
    int64_t x_row, x_col; /* distance of window rows and columns                              */
    int64_t w_row, w_col;
    int64_t ldy;
    int64_t row_begin, row_end; /* window rows inside the image                                     */
    int64_t col_begin, col_end; /* window columns inside the image, counted from this block's first  */
    int64_t blocks, vectors;    /* how many of both                                                 */
    int lanes;                  /* channels of each vector: all lanes where there are several       */
} dw_block;

/* The epilogue, read once: stores to y could otherwise be taken to change it. */
typedef struct dw_end {
    bool scale, clip;
    float alpha, lo, hi;
    int64_t ldr;
} dw_end;

static inline dw_end dw_end_of(const gemm_epilogue *e)
{
    return (dw_end){ .scale = e->scale, .clip = e->clip, .alpha = e->alpha, .lo = e->lo, .hi = e->hi, .ldr = e->ldr };
}

static inline __attribute__((always_inline)) void dw_finish(const dw_end *e, vec acc, vec bias, float *y,
                                                            const float *residual, int lanes, const int masked)
{
    if (e->scale) acc = v_mul(v_set(e->alpha), acc);
    acc = v_add(acc, bias);
    if (residual) acc = v_add(acc, masked ? v_load_n(residual, lanes) : v_load(residual));
    if (e->clip) acc = v_min(v_set(e->hi), v_max(v_set(e->lo), acc));
    if (masked) {
        v_store_n(y, acc, lanes);
    } else {
        v_store(y, acc);
    }
}

/* How a block lies: inside the image; the same with all rows of the window; with columns or rows outside; and with a
 * partial vector of channels. */
enum { DW_INSIDE, DW_WHOLE, DW_EDGE, DW_PARTIAL, DW_KINDS };

/* `rows` is the number of window rows where it is the whole window and its weights are to stay in registers, else 0. */
static inline __attribute__((always_inline)) void dw_run(const dw_block *b, const int kernel, const int stride,
                                                         const int outputs, const int rows, const int kind)
{
    const int guarded = kind == DW_EDGE || kind == DW_PARTIAL, masked = kind == DW_PARTIAL;
    const dw_end e = dw_end_of(b->e);
    const int lanes = b->lanes;
    const int64_t x_row = b->x_row, x_col = b->x_col, w_row = b->w_row, w_col = b->w_col, ldy = b->ldy;
    const int64_t row_begin = b->row_begin, row_end = b->row_end, col_begin = b->col_begin, col_end = b->col_end;
    for (int64_t v = 0; v < b->vectors; v++) {
        const int64_t at = v * VEC_LANES;
        const float *bias_at = b->bias ? b->bias + at : NULL, *weights = b->w + at;
        const vec bias = !bias_at ? v_zero() : masked ? v_load_n(bias_at, lanes) : v_load(bias_at);
        const float *x = b->x + at, *residual = b->residual ? b->residual + at : NULL;
        float *y = b->y + at;
        vec held[25];
        UNROLL for (int i = 0; i < rows; i++)
        {
            UNROLL for (int j = 0; j < kernel; j++) held[i * kernel + j] = v_load(weights + i * w_row + j * w_col);
        }
        for (int64_t block = b->blocks; block > 0; block--) {
            vec acc[4];
            UNROLL for (int u = 0; u < outputs; u++) acc[u] = v_zero();
            if (rows > 0) {
                const float *line = x;
                UNROLL for (int row = 0; row < rows; row++, line += x_row)
                {
                    UNROLL for (int col = 0; col < (outputs - 1) * stride + kernel; col++)
                    {
                        const vec in = v_load(line + col * x_col);
                        UNROLL for (int u = 0; u < outputs; u++)
                        {
                            const int tap = col - u * stride;
                            if (tap >= 0 && tap < kernel) acc[u] = v_fma(in, held[row * kernel + tap], acc[u]);
                        }
                    }
                }
            } else {
                const float *line = x + row_begin * x_row, *w = weights + row_begin * w_row;
                for (int64_t row = row_begin; row < row_end; row++, line += x_row, w += w_row) {
                    vec wv[7];
                    UNROLL for (int i = 0; i < kernel; i++)
                    {
                        wv[i] = masked ? v_load_n(w + i * w_col, lanes) : v_load(w + i * w_col);
                    }
                    UNROLL for (int col = 0; col < (outputs - 1) * stride + kernel; col++)
                    {
                        if (guarded && (col < col_begin || col >= col_end)) continue;
                        const vec in = masked ? v_load_n(line + col * x_col, lanes) : v_load(line + col * x_col);
                        UNROLL for (int u = 0; u < outputs; u++)
                        {
                            const int tap = col - u * stride;
                            if (tap >= 0 && tap < kernel) acc[u] = v_fma(in, wv[tap], acc[u]);
                        }
                    }
                }
            }
            UNROLL for (int u = 0; u < outputs; u++)
            {
                dw_finish(&e, acc[u], bias, y + u * ldy, residual ? residual + u * e.ldr : NULL, lanes, masked);
            }
            x += outputs * stride * x_col;
            y += outputs * ldy;
            if (residual) residual += outputs * e.ldr;
        }
    }
}

/* One output with any kernel; x_col is the distance of taps here. */
static void dw_any(const dw_block *b)
{
    const dw_end e = dw_end_of(b->e);
    for (int64_t v = 0; v < b->vectors; v++) {
        const int64_t at = v * VEC_LANES;
        vec acc = v_zero();
        for (int64_t row = b->row_begin; row < b->row_end; row++) {
            const float *x = b->x + row * b->x_row + at, *w = b->w + row * b->w_row + at;
            for (int64_t col = b->col_begin; col < b->col_end; col++) {
                acc = v_fma(v_load_n(x + col * b->x_col, b->lanes), v_load_n(w + col * b->w_col, b->lanes), acc);
            }
        }
        dw_finish(&e, acc, b->bias ? v_load_n(b->bias + at, b->lanes) : v_zero(), b->y + at,
                  b->residual ? b->residual + at : NULL, b->lanes, 1);
    }
}

typedef void dw_block_fn(const dw_block *b);
/* The weights of a whole window stay in registers where they fit beside four sums and an input. */
#define DW_HELD(k) ((k) * (k) + 5 <= VEC_REGISTERS ? (k) : 0)
#define DW(k, s, u)                                                                                                    \
    static void dw_##k##_##s##_##u(const dw_block *b)                                                                  \
    {                                                                                                                  \
        dw_run(b, k, s, u, 0, DW_INSIDE);                                                                              \
    }                                                                                                                  \
    static void dw_##k##_##s##_##u##_edge(const dw_block *b)                                                           \
    {                                                                                                                  \
        dw_run(b, k, s, u, 0, DW_EDGE);                                                                                \
    }                                                                                                                  \
    static void dw_##k##_##s##_##u##_partial(const dw_block *b)                                                        \
    {                                                                                                                  \
        dw_run(b, k, s, u, 0, DW_PARTIAL);                                                                             \
    }
#define DW_OUTPUTS(k, s)                                                                                               \
    DW(k, s, 1)                                                                                                        \
    DW(k, s, 2)                                                                                                        \
    DW(k, s, 4) static void dw_##k##_##s##_4_whole(const dw_block *b)                                                  \
    {                                                                                                                  \
        dw_run(b, k, s, 4, DW_HELD(k), DW_WHOLE);                                                                      \
    }
DW_OUTPUTS(3, 1)
DW_OUTPUTS(3, 2)
DW_OUTPUTS(5, 1)
DW_OUTPUTS(5, 2)
DW_OUTPUTS(7, 1)
DW_OUTPUTS(7, 2)

#define DW_NAMES(k, s)                                                                                                 \
    {                                                                                                                  \
        { dw_##k##_##s##_1, dw_##k##_##s##_1, dw_##k##_##s##_1_edge, dw_##k##_##s##_1_partial },                       \
            { dw_##k##_##s##_2, dw_##k##_##s##_2, dw_##k##_##s##_2_edge, dw_##k##_##s##_2_partial },                   \
        {                                                                                                              \
            dw_##k##_##s##_4, dw_##k##_##s##_4_whole, dw_##k##_##s##_4_edge, dw_##k##_##s##_4_partial                  \
        }                                                                                                              \
    }
/* [(kernel - 3) / 2][stride - 1][log2 outputs][kind] */
static dw_block_fn *const dw_blocks[3][2][3][DW_KINDS] = {
    { DW_NAMES(3, 1), DW_NAMES(3, 2) },
    { DW_NAMES(5, 1), DW_NAMES(5, 2) },
    { DW_NAMES(7, 1), DW_NAMES(7, 2) },
};

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

/* Several outputs a channel: a scalar loop, since no network that matters for speed has them. */
static void dw_multiplied(const depthwise_row *r, const dw_block *rows)
{
    const depthwise_shape *s = &r->p->shape;
    const gemm_epilogue *e = &r->p->epilogue;
    const int64_t cols = s->channels * s->multiplier;
    for (int64_t i = 0; i < r->pixels; i++) {
        int64_t col_begin = 0, col_end = 0;
        const int64_t at = (r->out_x + i) * s->stride[1] - s->pad[1];
        dw_clip(at, s->kernel[1], s->dilation[1], s->in[1], &col_begin, &col_end);
        for (int64_t c = 0; c < cols; c++) {
            float sum = 0.0f;
            for (int64_t h = rows->row_begin; h < rows->row_end; h++) {
                const float *x = rows->x + h * rows->x_row + at * s->x_dim[1] + c / s->multiplier;
                for (int64_t w = col_begin; w < col_end; w++) {
                    sum += x[w * s->dilation[1] * s->x_dim[1]] * r->p->w[(h * s->kernel[1] + w) * cols + c];
                }
            }
            if (e->scale) sum *= e->alpha;
            if (e->bias) sum += e->bias[c];
            if (r->residual) sum += r->residual[i * e->ldr + c];
            if (e->clip) {
                sum = e->lo > sum ? e->lo : sum;
                sum = e->hi < sum ? e->hi : sum;
            }
            r->y[i * r->p->ldy + c] = sum;
        }
    }
}

static void depthwise_row_run(const depthwise_row *r)
{
    const depthwise_params *p = r->p;
    const depthwise_shape *s = &p->shape;
    const int64_t cols = s->channels * s->multiplier;
    const int64_t at_y = r->out_y * s->stride[0] - s->pad[0];
    dw_block b = {
        .x = r->x + at_y * s->x_dim[0],
        .e = &p->epilogue,
        .x_row = s->dilation[0] * s->x_dim[0],
        .w_row = s->kernel[1] * cols,
        .w_col = cols,
        .ldy = p->ldy,
    };
    dw_clip(at_y, s->kernel[0], s->dilation[0], s->in[0], &b.row_begin, &b.row_end);
    if (s->multiplier != 1) {
        dw_multiplied(r, &b);
        return;
    }
    const float *x = b.x;
    const bool whole = s->kernel[0] == s->kernel[1] && b.row_begin == 0 && b.row_end == s->kernel[0];
    const bool usual = (s->kernel[1] == 3 || s->kernel[1] == 5 || s->kernel[1] == 7) && s->dilation[1] == 1 &&
                       (s->stride[1] == 1 || s->stride[1] == 2);
    b.x_col = s->dilation[1] * s->x_dim[1];
    /* All whole vectors of channels first, then what is left. */
    for (int64_t c = 0, whole_cols = cols / VEC_LANES * VEC_LANES; c < cols; c = whole_cols) {
        const bool partial = c == whole_cols;
        b.lanes = partial ? (int)(cols - c) : VEC_LANES;
        b.vectors = partial ? 1 : whole_cols / VEC_LANES;
        b.w = p->w + c;
        b.bias = p->epilogue.bias ? p->epilogue.bias + c : NULL;
        for (int64_t i = 0; i < r->pixels;) {
            const int64_t at = (r->out_x + i) * s->stride[1] - s->pad[1], left = r->pixels - i;
            b.x = x + at * s->x_dim[1] + c;
            b.y = r->y + i * p->ldy + c;
            b.residual = r->residual ? r->residual + i * p->epilogue.ldr + c : NULL;
            if (!usual) {
                dw_clip(at, s->kernel[1], s->dilation[1], s->in[1], &b.col_begin, &b.col_end);
                dw_any(&b);
                i++;
                continue;
            }
            const int log = left >= 4 ? 2 : left >= 2 ? 1 : 0;
            const int64_t outputs = (int64_t)1 << log, window = (outputs - 1) * s->stride[1] + s->kernel[1];
            dw_clip(at, window, 1, s->in[1], &b.col_begin, &b.col_end);
            const bool edge = b.col_begin > 0 || b.col_end < window;
            b.blocks = 1;
            if (!edge) { /* and as many more as lie inside */
                const int64_t inside = (s->in[1] - at - window) / (outputs * s->stride[1]) + 1;
                b.blocks = left / outputs < inside ? left / outputs : inside;
            }
            const int kind = partial ? DW_PARTIAL : edge ? DW_EDGE : whole ? DW_WHOLE : DW_INSIDE;
            dw_blocks[(s->kernel[1] - 3) / 2][s->stride[1] - 1][log][kind](&b);
            i += outputs * b.blocks;
        }
        if (partial) break;
    }
}
