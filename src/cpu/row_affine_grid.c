/* SPDX-License-Identifier: Apache-2.0 */
/* row_affine_grid.c - affine_grid of f32 and f64 into a dense row-major result.
 *
 * A block of columns shares its places; the rows of a batch follow each other. Sums are double, in the order of the
 * reference. */
#include "cpu/cpu_kernels.h"
#include "cpu/row.h"

#include <string.h>

/* PERIOD: 2 and 3 axes fill it, and vectors, too. */
enum { COLS = 64, AXES = 3, TILE_ROWS = 64, PERIOD = 12 };

typedef struct record {
    int64_t batches, rows, cols; /* rows: of all axes but the last */
    int64_t height;              /* rows of one step of depth */
    int64_t size[AXES];          /* along x, y, z */
    int64_t step[3];             /* of theta */
    uint32_t spatial;
    sinter_dtype type;
    bool align;
} record;

static const char *reject(const problem *p, const kernel_target *t)
{
    (void)t;
    REJECT_UNLESS(p->op == OP_affine_grid, "not an affine_grid");
    REJECT_UNLESS(p->in[0].dtype == SINTER_DTYPE_F32 || p->in[0].dtype == SINTER_DTYPE_F64, "not in f32 or f64");
    REJECT_UNLESS(p->out[0].dtype == p->in[0].dtype, "the result is of another type");
    REJECT_UNLESS(problem_operand_is_row_major(&p->out[0]), "the result is not dense and row-major");
    REJECT_UNLESS(!p->prologue && !p->epilogue, "takes no programs");
    return NULL;
}

static double cost_ns(const problem *p, const tactic *t, const kernel_target *target)
{
    (void)t;
    return row_memory_ns(p, target, 2);
}

static sinter_status bind(env *e, const problem *p, const tactic *t, const void *attrs, const view *in, const view *out,
                          void *to)
{
    record *r = to;
    isa_level isa;
    TRY(row_isa_bind(e, p, t, &isa));
    const view *theta = &in[0], *y = &out[0];
    const uint32_t spatial = y->rank < 3 ? 0 : y->rank - 2;
    if ((spatial != 2 && spatial != 3) || theta->rank != 3 || theta->dim[0] != y->dim[0] ||
        theta->dim[1] != (int64_t)spatial || theta->dim[2] != (int64_t)spatial + 1 ||
        y->dim[spatial + 1] != (int64_t)spatial)
        return FAIL(e, INVALID_ARG, "affine_grid: theta and output do not have shapes that go together");
    *r = (record){ .batches = y->dim[0],
                   .spatial = spatial,
                   .type = theta->dtype,
                   .align = ((const attrs_affine_grid *)attrs)->align_corners != 0 };
    for (uint32_t i = 0; i < AXES; i++) {
        r->size[i] = i < spatial ? y->dim[spatial - i] : 1;
        r->step[i] = theta->stride[i];
    }
    r->cols = r->size[0];
    r->height = r->size[1];
    r->rows = r->size[1] * r->size[2];
    return SINTER_OK;
}

static double place_of(const record *r, uint32_t axis, int64_t i)
{
    const double n = (double)r->size[axis], at = (double)i;
    return !r->align ? (2 * at + 1) / n - 1 : n > 1 ? 2 * at / (n - 1) - 1 : -1;
}

/* Elements of a row of y: the sums begin as `base`, and what the row adds to them, in turn, repeats after PERIOD. */
#define ROW(type)                                                                                                      \
    static void row_##type(type *y, const double *base, double more[2][PERIOD], int64_t n)                             \
    {                                                                                                                  \
        int64_t i = 0;                                                                                                 \
        for (; i + PERIOD <= n; i += PERIOD)                                                                           \
            for (int k = 0; k < PERIOD; k++) y[i + k] = (type)(base[i + k] + more[0][k] + more[1][k]);                 \
        for (int k = 0; i + k < n; k++) y[i + k] = (type)(base[i + k] + more[0][k] + more[1][k]);                      \
    }
ROW(float)
ROW(double)

typedef struct job {
    const record *r;
    const void *theta;
    char *y;
} job;

static int64_t tiles_of(const record *r)
{
    return (r->rows + TILE_ROWS - 1) / TILE_ROWS;
}

static void body(void *arg, uint32_t begin, uint32_t end, uint32_t worker)
{
    (void)worker;
    const job *j = arg;
    const record *r = j->r;
    const int64_t tiles = tiles_of(r), size = sinter_dtype_bits(r->type) / 8, n = r->spatial;
    for (int64_t tile = begin; tile < end; tile++) {
        const int64_t batch = tile / tiles, first = tile % tiles * TILE_ROWS;
        const int64_t stop = first + TILE_ROWS < r->rows ? first + TILE_ROWS : r->rows;
        double theta[AXES][AXES + 1], base[COLS * AXES], more[2][PERIOD];
        for (int64_t k = 0; k < n; k++)
            for (int64_t i = 0; i <= n; i++)
                theta[k][i] = dtype_load_f64(r->type, j->theta, batch * r->step[0] + k * r->step[1] + i * r->step[2]);
        for (int64_t c = 0; c < r->cols; c += COLS) {
            const int64_t cols = r->cols - c < COLS ? r->cols - c : COLS;
            for (int64_t i = 0; i < cols; i++) {
                const double place = place_of(r, 0, c + i);
                for (int64_t k = 0; k < n; k++) base[i * n + k] = theta[k][n] + place * theta[k][0];
            }
            for (int64_t row = first; row < stop; row++) {
                const double down = place_of(r, 1, row % r->height), in = place_of(r, 2, row / r->height);
                for (int64_t i = 0, k = 0; i < PERIOD; i++, k = k + 1 < n ? k + 1 : 0) {
                    more[0][i] = down * theta[k][1];
                    more[1][i] = n > 2 ? in * theta[k][2] : -0.0;
                }
                void *y = j->y + ((batch * r->rows + row) * r->cols + c) * n * size;
                if (r->type == SINTER_DTYPE_F32) row_float(y, base, more, cols * n);
                else row_double(y, base, more, cols * n);
            }
        }
    }
}

static sinter_status run(const kernel_run *k)
{
    const record *r = k->record;
    job j = { r, k->in[0], k->out[0] };
    if (r->cols) row_parallel(k, r->batches * tiles_of(r), body, &j);
    return SINTER_OK;
}

const kernel cpu_affine_grid = {
    .name = "cpu_affine_grid",
    .abi = 1,
    .reject = reject,
    .tactics = row_tactics_isa,
    .check = row_check_isa,
    .print = row_print_isa,
    .cost_ns = cost_ns,
    .record = sizeof(record),
    .bind = bind,
    .run = run,
};
