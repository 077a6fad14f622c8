/* SPDX-License-Identifier: Apache-2.0 */
/* row_pad_mirror.c - pads that repeat elements of the input: reflected, the edge, or wrapped; any type of whole bytes.
 *
 * A row along the innermost axis is a copy of a row of the input, with a few elements on either side. */
#include "cpu/cpu_kernels.h"
#include "cpu/row.h"
#include "ops/move.h"

/* FEW: so many elements on a side of a row, or less, have their sources found once. */
enum { TILE_BYTES = 16384, FEW = 16 };

typedef uint32_t words __attribute__((vector_size(16)));

/* One axis: low elements of the input are cut off, `left` are kept, `begin` results lie before them. */
typedef struct axis {
    int64_t low, left, begin, out, x, y; /* x, y: strides in bytes */
} axis;

typedef struct record {
    int64_t mode, size, rows, unit; /* unit: rows of a tile */
    uint32_t outer;
    axis axis[SINTER_RANK_MAX]; /* in the order of the result; the innermost is axis[outer] */
    int64_t few[2][FEW];        /* of the elements before and behind the copied ones: the element of the input */
} record;

static int64_t source(const axis *a, int64_t mode, int64_t k)
{
    return a->low + pad_source(mode, k - a->begin, a->left);
}

static const char *reject(const problem *p, const kernel_target *t)
{
    (void)t;
    REJECT_UNLESS(p->op == OP_pad, "not a padding");
    const attrs_pad *a = p->attrs;
    const problem_operand *x = &p->in[0], *y = &p->out[0];
    REJECT_UNLESS(a->mode != pad_mode_constant, "pads with a constant");
    REJECT_UNLESS(!p->prologue && !p->epilogue && p->count_out == 1, "takes no programs");
    REJECT_UNLESS(sinter_dtype_bits(y->dtype) >= 8 && x->dtype == y->dtype, "a type under a byte");
    REJECT_UNLESS(x->rank > 0 && y->rank == x->rank && a->begin.count == x->rank && a->end.count == x->rank,
                  "the ranks do not go together");
    const uint32_t last = x->rank - 1u;
    REJECT_UNLESS(x->order[last] == y->order[last] && !x->is_gapped && !y->is_gapped,
                  "no axis is innermost in both operands");
    return NULL;
}

static double cost_ns(const problem *p, const tactic *t, const kernel_target *target)
{
    (void)t;
    return row_memory_ns(p, target, 1.5);
}

static sinter_status bind(env *e, const problem *p, const tactic *t, const void *attrs, const view *in, const view *out,
                          void *to)
{
    record *r = to;
    isa_level isa;
    TRY(row_isa_bind(e, p, t, &isa));
    const attrs_pad *a = attrs;
    const view *x = &in[0], *y = &out[0];
    *r = (record){ .mode = a->mode, .size = sinter_dtype_bits(y->dtype) / 8, .rows = 1, .outer = y->rank - 1u };
    for (uint32_t i = 0; i < y->rank; i++) {
        const uint32_t from = p->out[0].order[i];
        const int64_t begin = a->begin.at[from], end = a->end.at[from], had = x->dim[from];
        int64_t size = 0;
        if (!i64_add(had, begin, &size) || !i64_add(size, end, &size) || size != y->dim[from])
            return FAIL(e, INVALID_ARG, "pad: axis %u of %lld with %lld and %lld does not become %lld", from,
                        (long long)had, (long long)begin, (long long)end, (long long)y->dim[from]);
        const int64_t low = begin < 0 ? -begin : 0, left = had - low + (end < 0 ? end : 0);
        if (left <= 0) return FAIL(e, INVALID_ARG, "pad: axis %u is empty: nothing can be repeated", from);
        r->axis[i] = (axis){
            low, left, begin > 0 ? begin : 0, y->dim[from], x->stride[from] * r->size, y->stride[from] * r->size
        };
        if (i < r->outer) r->rows *= y->dim[from];
    }
    const axis *inner = &r->axis[r->outer];
    const int64_t after = inner->begin + inner->left;
    for (int64_t k = 0; k < FEW; k++) {
        if (k < inner->begin) r->few[0][k] = source(inner, r->mode, k);
        if (after + k < inner->out) r->few[1][k] = source(inner, r->mode, after + k);
    }
    const int64_t row = inner->out * r->size;
    r->unit = row > 0 && row < TILE_BYTES ? TILE_BYTES / row : 1;
    return SINTER_OK;
}

/* n elements, each `by` bytes of the input behind the one before. */
static void run_of(int64_t size, char *y, const char *x, int64_t by, int64_t n)
{
    if (by == size) {
        memcpy(y, x, (size_t)(n * size));
        return;
    }
    for (; size == 4 && by == -4 && n >= 4; n -= 4, y += 16, x -= 16) {
        words v;
        memcpy(&v, x - 12, sizeof v);
        v = __builtin_shufflevector(v, v, 3, 2, 1, 0);
        memcpy(y, &v, sizeof v);
    }
    for (int64_t k = 0; k < n; k++, y += size, x += by) {
        if (size == 4) memcpy(y, x, 4); /* not a call */
        else memcpy(y, x, (size_t)size);
    }
}

/* Elements [begin, end) of a row; few: where these are. Many are runs in one direction or the other, or one element
 * again and again. */
static void elements(const record *r, char *y, const char *x, int64_t begin, int64_t end, const int64_t *few)
{
    const axis *a = &r->axis[r->outer];
    if (end - begin <= FEW) {
        for (int64_t k = begin; k < end; k++) run_of(r->size, y + k * r->size, x + few[k - begin] * r->size, 0, 1);
        return;
    }
    for (int64_t k = begin, n; k < end; k += n) {
        const int64_t from = source(a, r->mode, k), step = source(a, r->mode, k + 1) - from;
        n = step == 0 ? end - k : step == 1 ? a->low + a->left - from : step == -1 ? from - a->low + 1 : 1;
        if (n > end - k) n = end - k;
        run_of(r->size, y + k * r->size, x + from * r->size, step * r->size, n);
    }
}

typedef struct job {
    const record *r;
    const char *x;
    char *y;
} job;

static void body(void *arg, uint32_t begin, uint32_t end, uint32_t worker)
{
    (void)worker;
    const job *j = arg;
    const record *r = j->r;
    const axis *inner = &r->axis[r->outer];
    const int64_t stop = end * r->unit < r->rows ? end * r->unit : r->rows;
    const int64_t after = inner->begin + inner->left < inner->out ? inner->begin + inner->left : inner->out;
    int64_t at[SINTER_RANK_MAX] = { 0 }, from[SINTER_RANK_MAX] = { 0 }; /* place of the row, and of its source */
    int64_t i = begin * r->unit, rest = i;
    for (uint32_t k = r->outer; k-- > 0; rest /= r->axis[k].out) {
        at[k] = rest % r->axis[k].out;
        from[k] = source(&r->axis[k], r->mode, at[k]);
    }
    for (; i < stop; i++) {
        const char *x = j->x;
        char *y = j->y;
        for (uint32_t k = 0; k < r->outer; k++) {
            x += from[k] * r->axis[k].x;
            y += at[k] * r->axis[k].y;
        }
        elements(r, y, x, 0, inner->begin, r->few[0]);
        memcpy(y + inner->begin * r->size, x + inner->low * r->size, (size_t)((after - inner->begin) * r->size));
        elements(r, y, x, after, inner->out, r->few[1]);
        for (uint32_t k = r->outer; k-- > 0;) {
            at[k] = at[k] + 1 < r->axis[k].out ? at[k] + 1 : 0;
            from[k] = source(&r->axis[k], r->mode, at[k]);
            if (at[k]) break;
        }
    }
}

static sinter_status run(const kernel_run *k)
{
    const record *r = k->record;
    job j = { r, k->in[0], k->out[0] };
    row_parallel(k, (r->rows + r->unit - 1) / r->unit, body, &j);
    return SINTER_OK;
}

const kernel cpu_pad_mirror = {
    .name = "cpu_pad_mirror",
    .abi = 1,
    .out_strides = STRIDES_ROWS,
    .reject = reject,
    .tactics = row_tactics_isa,
    .check = row_check_isa,
    .print = row_print_isa,
    .cost_ns = cost_ns,
    .record = sizeof(record),
    .bind = bind,
    .run = run,
};
