/* SPDX-License-Identifier: Apache-2.0 */
/* vm_chain_run.c - the walk of a chain over rows and columns. */
#include "cpu/vm_chain.h"

#include <string.h>

/* Columns' operands that are repeated; the bytes of a repeat; the rows from which on it pays. */
enum { REPEATS_MAX = 4, REPEAT_BYTES = 1024, ROWS_LEAST = 8 };

/* The last of `count` vectors again where there are fewer than eight. */
static void rows_set(vm_chunk *k, int64_t count)
{
    for (int64_t j = 0; j < VM_CHAIN_VECTORS; j++) k->row[j] = j < count ? j : count - 1;
}

void vm_chain_begin(const vm_program *p, vm_chunk *k, unsigned char *slots, void *const *value)
{
    const int64_t size = p->chain_set->lanes * VM_CHAIN_VECTORS * (int64_t)sizeof(float);
    k->program = p;
    k->operands = p->operand_count;
    rows_set(k, VM_CHAIN_VECTORS);
    for (uint32_t i = k->operands; i < VM_AT_ONCE; i++) {
        k->at[i] = (char *)slots;
        k->bump[i] = 0;
    }
    for (uint32_t s = 0; s < p->chain_slot_count; s++) k->at[SLOT_REF + s] = (char *)slots + p->chain_slots + s * size;
    for (uint32_t i = 0; p->chain_once && i < p->once_count; i++) {
        const uint16_t v = p->op[i].dst;
        k->at[SCALAR_REF + v] = value[v];
        k->stride[SCALAR_REF + v] = 0;
    }
}

static void run(const vm_program *p, vm_chunk *k, vm_lie lie, int64_t chunks)
{
    k->left = chunks;
    p->chain_set->run(p->chain[lie], k);
}

static void run_line(const vm_program *p, const vm_chunk *k, const vm_corner *c, int64_t n)
{
    const vm_line *l = &p->line;
    const char *from[3];
    if (l->convert) {
        l->convert(c[l->to].at, c[l->at[0]].at, n);
        return;
    }
    for (uint32_t i = 0; i < 3; i++)
        from[i] = l->at[i] < VM_LINE_SCALAR ? c[l->at[i]].at : k->at[SCALAR_REF + l->at[i] - VM_LINE_SCALAR];
    l->fn(l->op, c[l->to].at, from[0], from[1], from[2], n);
}

/* n columns of one row, or of rows that lie behind each other. */
static void run_along(const vm_program *p, vm_chunk *k, const vm_corner *c, int64_t n)
{
    if (p->line.op) {
        run_line(p, k, c, n);
        return;
    }
    const int32_t shift = p->chain_set->shift;
    const int64_t lanes = p->chain_set->lanes, size = lanes * VM_CHAIN_VECTORS;
    for (uint32_t i = 0; i < p->operand_count; i++) {
        k->at[i] = c[i].at;
        k->bump[i] = size * c[i].col;
        k->stride[i] = 0;
    }
    const int64_t done = n & -size;
    if (done) run(p, k, VM_DENSE, n >> (shift + 3));
    n -= done;
    if (!n) return;
    for (uint32_t i = 0; i < p->operand_count; i++) {
        k->at[i] = c[i].at + done * c[i].col;
        k->stride[i] = lanes * c[i].col;
    }
    const int64_t vectors = (n + lanes - 1) >> shift, last = n - ((vectors - 1) << shift);
    rows_set(k, vectors);
    for (int64_t j = 0; j < VM_CHAIN_VECTORS; j++) k->count[j] = (uint8_t)(j < vectors - 1 ? lanes : last);
    run(p, k, last < lanes ? VM_PART : VM_ROWS, 1);
    rows_set(k, VM_CHAIN_VECTORS);
}

/* A column of vectors, eight rows at a time. */
static void run_down(const vm_program *p, vm_chunk *k, const vm_corner *c, int64_t rows, int64_t col, int64_t n)
{
    const vm_lie lie = n < p->chain_set->lanes ? VM_PART : VM_ROWS;
    for (uint32_t i = 0; i < p->operand_count; i++) {
        k->at[i] = c[i].at + col * c[i].col;
        k->stride[i] = c[i].row;
        k->bump[i] = VM_CHAIN_VECTORS * c[i].row;
    }
    memset(k->count, (int)n, sizeof k->count);
    const int64_t done = rows & -VM_CHAIN_VECTORS;
    if (done) run(p, k, lie, rows / VM_CHAIN_VECTORS);
    if (done == rows) return;
    for (uint32_t i = 0; i < p->operand_count; i++) k->at[i] = c[i].at + col * c[i].col + done * c[i].row;
    rows_set(k, rows - done);
    run(p, k, lie, 1);
    rows_set(k, VM_CHAIN_VECTORS);
}

/* Operands of columns, which are the same for every row, written behind themselves for rows that are dense. */
typedef struct repeats {
    uint32_t count;
    uint32_t operand[REPEATS_MAX];
    char copy[REPEATS_MAX][REPEAT_BYTES];
} repeats;

/* Whether rows x columns are one run, but for operands of columns, which `r` then has. Runs are whole chunks and a
 * rest, so a copy holds a row and a chunk. */
static bool repeats_find(const vm_program *p, const vm_corner *c, int64_t rows, int64_t cols, repeats *r)
{
    const int64_t size = p->chain_set->lanes * VM_CHAIN_VECTORS;
    r->count = 0;
    if (rows < ROWS_LEAST) return false;
    for (uint32_t i = 0; i < p->operand_count; i++) {
        if (c[i].row == c[i].col * cols) continue;
        if (c[i].row || c[i].col != p->operand[i].size || r->count == REPEATS_MAX) return false;
        if ((cols + size) * c[i].col > REPEAT_BYTES) return false;
        r->operand[r->count++] = i;
    }
    return true;
}

static void repeats_fill(const vm_program *p, const vm_corner *c, int64_t cols, repeats *r)
{
    const int64_t size = p->chain_set->lanes * VM_CHAIN_VECTORS;
    for (uint32_t i = 0; i < r->count; i++) {
        const vm_corner *from = &c[r->operand[i]];
        const int64_t bytes = (cols + size) * from->col;
        memcpy(r->copy[i], from->at, (size_t)(cols * from->col));
        for (int64_t done = cols * from->col; done < bytes; done *= 2)
            memcpy(r->copy[i] + done, r->copy[i], (size_t)(done < bytes - done ? done : bytes - done));
    }
}

/* Dense rows as one run, a chunk at a time: each chunk begins in another column. */
static void run_repeated(const vm_program *p, vm_chunk *k, vm_corner *c, int64_t n, int64_t cols, repeats *r)
{
    const int64_t size = p->chain_set->lanes * VM_CHAIN_VECTORS;
    repeats_fill(p, c, cols, r);
    for (int64_t at = 0, col = 0; at < n; at += size, col = (col + size) % cols) {
        for (uint32_t i = 0; i < r->count; i++) c[r->operand[i]].at = r->copy[i] + col * c[r->operand[i]].col;
        run_along(p, k, c, n - at < size ? n - at : size);
        for (uint32_t i = 0; i < p->operand_count; i++) c[i].at += size * c[i].col;
    }
}

/* False: rows are too short. */
static bool run_rows(const vm_program *p, const vm_corner *c, int64_t rows, int64_t cols)
{
    const vm_line *l = &p->line;
    vm_rows r = { .y = c[l->to].at,
                  .y_row = c[l->to].row,
                  .x = c[l->x].at,
                  .x_row = c[l->x].row,
                  .rows = rows,
                  .cols = cols,
                  .zero = l->zero,
                  .run = l->run };
    const char **const at[3] = { &r.a, &r.b, &r.c };
    int64_t *const stride[3] = { &r.a_row, &r.b_row, &r.c_row };
    bool is_one = r.x_row == c[l->x].col * cols && r.y_row == c[l->to].col * cols;
    for (uint32_t i = 0; i < 3; i++) {
        if (l->of[i] == VM_NO_OPERAND) continue;
        *at[i] = c[l->of[i]].at;
        *stride[i] = c[l->of[i]].row;
        is_one = is_one && *stride[i] == (l->is_products ? r.y_row : 0);
    }
    if (is_one) {
        r.cols *= rows;
        r.rows = 1;
    }
    if (r.cols < p->chain_set->lanes && !l->is_products) return false;
    l->rows(&r);
    return true;
}

void vm_chain_block(const vm_program *p, vm_chunk *k, vm_corner *c, int64_t rows, int64_t cols)
{
    if (p->line.rows && run_rows(p, c, rows, cols)) return;
    const int64_t lanes = p->chain_set->lanes, size = lanes * VM_CHAIN_VECTORS;
    bool is_one = true;
    for (uint32_t i = 0; i < p->operand_count; i++)
        if (rows > 1 && c[i].row != c[i].col * cols) is_one = false;
    if (is_one) {
        run_along(p, k, c, rows * cols);
        return;
    }
    repeats r;
    if (cols < size && repeats_find(p, c, rows, cols, &r)) {
        run_repeated(p, k, c, rows * cols, cols, &r);
        return;
    }
    /* A loop over two vectors or more of a row costs less than eight rows at a time, the last of which are computed
     * again. */
    if (p->line.is_uneven && cols > lanes) {
        for (int64_t row = 0; row < rows; row++) {
            run_line(p, k, c, cols);
            for (uint32_t i = 0; i < p->operand_count; i++) c[i].at += c[i].row;
        }
        return;
    }
    /* What is left of a row beside whole chunks: along each row, or down the columns, in fewer chunks. Of long rows it
     * is a small part, and is taken while the row is being fetched. */
    enum { LONG = 8 };
    const int64_t rest = cols & (size - 1), vectors = (rest + lanes - 1) >> p->chain_set->shift;
    const bool is_down =
        rest && cols < LONG * size && vectors * ((rows + VM_CHAIN_VECTORS - 1) / VM_CHAIN_VECTORS) <= rows;
    const int64_t wide = is_down ? cols - rest : cols;
    for (int64_t col = wide; col < cols; col += lanes)
        run_down(p, k, c, rows, col, cols - col < lanes ? cols - col : lanes);
    for (int64_t row = 0; row < rows && wide; row++) {
        run_along(p, k, c, wide);
        for (uint32_t i = 0; i < p->operand_count; i++) c[i].at += c[i].row;
    }
}
