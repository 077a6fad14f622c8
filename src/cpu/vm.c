/* SPDX-License-Identifier: Apache-2.0 */
/* vm.c - running expression programs: the walk over the space in tiles, and the tile loop. Compiling: vm_bind.c.
 *
 * A tile is some whole rows, or a piece of one row. A table of addresses, one a value, says where each value of the
 * tile lies: in a slot of the stack buffer, or straight in an operand's memory. */
#include "cpu/vm_chain.h"

#include "core/dtype.h"
#include <string.h>

enum { ACC_SIZE = 4 }; /* sums are f32 or i32 */

typedef struct walk {
    const vm_program *p;
    char *base[EXPR_MAX];       /* element (row 0, column 0) of each operand */
    vm_corner corner[EXPR_MAX]; /* of the rows along the last axis but one that are being worked on */
    char *at[EXPR_MAX];         /* the tile's corner in each operand */
    const char *acc;            /* of the tile */
    int64_t acc_ld;
    void *value[EXPR_MAX];
    vm_chunk chunk;
    _Alignas(64) unsigned char slot[VM_SLOT_BYTES];
} walk;

static void gather(void *dst, const char *src, int64_t n, int64_t stride, uint32_t size)
{
    switch (size) {
    case 1:
        for (int64_t i = 0; i < n; i++, src += stride) ((uint8_t *)dst)[i] = *(const uint8_t *)src;
        break;
    case 2:
        for (int64_t i = 0; i < n; i++, src += stride) ((uint16_t *)dst)[i] = *(const uint16_t *)(const void *)src;
        break;
    case 4:
        for (int64_t i = 0; i < n; i++, src += stride) ((uint32_t *)dst)[i] = *(const uint32_t *)(const void *)src;
        break;
    default:
        for (int64_t i = 0; i < n; i++, src += stride) ((uint64_t *)dst)[i] = *(const uint64_t *)(const void *)src;
        break;
    }
}

static void scatter(char *dst, const void *src, int64_t n, int64_t stride, uint32_t size)
{
    switch (size) {
    case 1:
        for (int64_t i = 0; i < n; i++, dst += stride) *(uint8_t *)dst = ((const uint8_t *)src)[i];
        break;
    case 2:
        for (int64_t i = 0; i < n; i++, dst += stride) *(uint16_t *)(void *)dst = ((const uint16_t *)src)[i];
        break;
    case 4:
        for (int64_t i = 0; i < n; i++, dst += stride) *(uint32_t *)(void *)dst = ((const uint32_t *)src)[i];
        break;
    default:
        for (int64_t i = 0; i < n; i++, dst += stride) *(uint64_t *)(void *)dst = ((const uint64_t *)src)[i];
        break;
    }
}

static uint32_t register_size(uint32_t cls)
{
    if (cls == VM_BYTE) return 1;
    return cls == VM_F64 || cls == VM_I64 ? 8 : 4;
}

/* True where memory holds exactly what a register does. */
static bool is_raw(const vm_operand *o)
{
    if (o->cls == VM_BYTE) return true;
    switch (o->dtype) {
    case SINTER_DTYPE_F32:
    case SINTER_DTYPE_F64:
    case SINTER_DTYPE_I32:
    case SINTER_DTYPE_I64:
    case SINTER_DTYPE_U64: return true;
    default: return false;
    }
}

static void load_run(const vm_set *set, const vm_operand *o, void *dst, const void *src, int64_t n)
{
    const sinter_dtype type = (sinter_dtype)o->dtype;
    if (is_raw(o)) {
        memcpy(dst, src, (size_t)n * o->size);
    } else if (set->load[type]) {
        set->load[type](dst, src, n);
    } else if (o->cls == VM_F32) {
        for (int64_t i = 0; i < n; i++) ((float *)dst)[i] = (float)dtype_load_f64(type, src, i);
    } else if (type == SINTER_DTYPE_I16) {
        for (int64_t i = 0; i < n; i++) ((int32_t *)dst)[i] = ((const int16_t *)src)[i];
    } else if (o->cls == VM_I32) {
        for (int64_t i = 0; i < n; i++) ((int32_t *)dst)[i] = (int32_t)dtype_load_i64(type, src, i);
    } else if (type == SINTER_DTYPE_U32) {
        for (int64_t i = 0; i < n; i++) ((int64_t *)dst)[i] = ((const uint32_t *)src)[i];
    } else {
        for (int64_t i = 0; i < n; i++) ((int64_t *)dst)[i] = dtype_load_i64(type, src, i);
    }
}

static void store_run(const vm_set *set, const vm_operand *o, void *dst, const void *src, int64_t n)
{
    const sinter_dtype type = (sinter_dtype)o->dtype;
    if (is_raw(o)) {
        memmove(dst, src, (size_t)n * o->size);
    } else if (set->store[type]) {
        set->store[type](dst, src, n);
    } else if (o->cls == VM_F32) {
        /* Saturation belongs to the cast before this; an infinity that the type can hold is kept. */
        for (int64_t i = 0; i < n; i++) dtype_store_f8(type, dst, i, (double)((const float *)src)[i], false);
    } else if (o->cls == VM_I32) {
        for (int64_t i = 0; i < n; i++) dtype_store_i64(type, dst, i, ((const int32_t *)src)[i]);
    } else if (type == SINTER_DTYPE_U32) {
        for (int64_t i = 0; i < n; i++) ((uint32_t *)dst)[i] = (uint32_t)((const int64_t *)src)[i];
    } else {
        for (int64_t i = 0; i < n; i++) dtype_store_i64(type, dst, i, ((const int64_t *)src)[i]);
    }
}

static void fill(void *dst, int64_t from, int64_t n, uint32_t size)
{
    if (size == 1) {
        memset((char *)dst + from, *(const char *)dst, (size_t)(n - from));
    } else if (size == 4) {
        const uint32_t v = *(const uint32_t *)dst;
        for (int64_t i = from; i < n; i++) ((uint32_t *)dst)[i] = v;
    } else {
        const uint64_t v = *(const uint64_t *)dst;
        for (int64_t i = from; i < n; i++) ((uint64_t *)dst)[i] = v;
    }
}

/* Row and column strides of an operand in bytes. */
static void strides_of(const walk *w, const vm_operand *o, int64_t *row, int64_t *col)
{
    const uint32_t last = w->p->axes - 1;
    *col = o->index == VM_ACC ? ACC_SIZE : o->stride[last] * o->size;
    *row = o->index == VM_ACC ? w->acc_ld * ACC_SIZE : last ? o->stride[last - 1] * o->size : 0;
}

/* Rows of a few 4-byte elements, for which a call each would be most of the work; columns from which on a row of one
 * number is filled by a call. */
enum { SHORT_COLS = 8, FILL_COLS = 16 };
static void copy_short(char *dst, int64_t dst_row, const char *src, int64_t src_row, int64_t rows, int64_t cols)
{
    if (cols == 2) {
        for (int64_t r = 0; r < rows; r++, dst += dst_row, src += src_row) memcpy(dst, src, 8);
    } else if (cols == 4) {
        for (int64_t r = 0; r < rows; r++, dst += dst_row, src += src_row) memcpy(dst, src, 16);
    } else {
        for (int64_t r = 0; r < rows; r++, dst += dst_row, src += src_row)
            for (int64_t c = 0; c < cols; c++) memcpy(dst + 4 * c, src + 4 * c, 4);
    }
}

/* Each of n elements of 4 or 8 bytes `cols` times. */
static void spread(void *dst, const void *src, int64_t n, int64_t cols, uint32_t size)
{
    typedef uint32_t four __attribute__((vector_size(16)));
    typedef uint64_t two __attribute__((vector_size(16)));
    char *d = dst;
    const int64_t row = cols * size;
    for (int64_t i = 0; i < n; i++, d += row) {
        const four v =
            size == 4 ? (four){ 0 } + ((const uint32_t *)src)[i] : (four)((two){ 0 } + ((const uint64_t *)src)[i]);
        int64_t at = 0;
        for (; at + 16 <= row; at += 16) memcpy(d + at, &v, 16);
        if (at < row && row >= 16) memcpy(d + row - 16, &v, 16);
        for (; at < row && row < 16; at += 4) memcpy(d + at, (const char *)&v + at % 8, 4);
    }
}

static void load(walk *w, const vm_op *op, int64_t rows, int64_t cols)
{
    const vm_program *p = w->p;
    const vm_operand *o = &p->operand[op->operand];
    int64_t row, col;
    strides_of(w, o, &row, &col);
    char *src = o->index == VM_ACC ? (char *)(uintptr_t)w->acc : w->at[op->operand];
    if (op->is_one) {
        w->value[op->dst] = src;
        return;
    }
    const uint32_t size = register_size(o->cls);
    const bool is_dense = col == o->size && (rows == 1 || row == cols * o->size);
    if (is_dense && is_raw(o)) {
        w->value[op->dst] = src;
        return;
    }
    unsigned char *slot = w->slot + (size_t)p->slot[op->dst] * p->slot_size, *dst = slot;
    w->value[op->dst] = slot;
    if (is_dense) {
        load_run(p->set, o, dst, src, rows * cols);
        return;
    }
    unsigned char raw[VM_TILE * 8];
    if (!col && row && rows > 1 && cols < FILL_COLS && size != 1) {
        unsigned char one[VM_TILE * 8];
        const bool is_run = row == o->size;
        if (!is_run) gather(raw, src, rows, row, o->size);
        load_run(p->set, o, one, is_run ? (const char *)src : (const char *)raw, rows);
        spread(dst, one, rows, cols, size);
        return;
    }
    /* Across: whole columns share lines. */
    if (row == o->size && rows > 1 && size == o->size && col && col != o->size) {
        for (int64_t c = 0; c < cols; c++, src += col) scatter((char *)dst + c * size, src, rows, cols * size, size);
        return;
    }
    if (col == 4 && o->size == 4 && cols <= SHORT_COLS && is_raw(o)) {
        copy_short((char *)dst, cols * 4, src, row, rows, cols);
        return;
    }
    for (int64_t r = 0; r < rows; r++, src += row, dst += cols * size) {
        if (r && !row) {
            memcpy(dst, slot, (size_t)cols * size);
        } else if (col == o->size) {
            load_run(p->set, o, dst, src, cols);
        } else if (!col) {
            load_run(p->set, o, dst, src, 1);
            fill(dst, 1, cols, size);
        } else if (is_raw(o)) {
            gather(dst, src, cols, col, o->size);
        } else {
            gather(raw, src, cols, col, o->size);
            load_run(p->set, o, dst, raw, cols);
        }
    }
}

/* Where a compute instruction may write straight into result `operand`: the tile's elements in memory, or NULL. */
static void *direct(const walk *w, uint32_t operand, int64_t rows, int64_t cols)
{
    const vm_operand *o = &w->p->operand[operand];
    int64_t row, col;
    strides_of(w, o, &row, &col);
    return is_raw(o) && col == o->size && (rows == 1 || row == cols * o->size) ? w->at[operand] : NULL;
}

static void store(walk *w, const vm_op *op, int64_t rows, int64_t cols)
{
    const vm_program *p = w->p;
    const vm_operand *o = &p->operand[op->operand];
    const unsigned char *src = w->value[op->arg[0]];
    char *dst = w->at[op->operand];
    if (src == (unsigned char *)dst && direct(w, op->operand, rows, cols)) return;
    int64_t row, col;
    strides_of(w, o, &row, &col);
    const uint32_t size = register_size(o->cls);
    if (col == o->size && (rows == 1 || row == cols * o->size)) {
        store_run(p->set, o, dst, src, rows * cols);
        return;
    }
    if (col == 4 && o->size == 4 && cols <= SHORT_COLS && is_raw(o)) {
        copy_short(dst, row, (const char *)src, cols * 4, rows, cols);
        return;
    }
    unsigned char raw[VM_TILE * 8];
    for (int64_t r = 0; r < rows; r++, dst += row, src += cols * size) {
        if (col == o->size) {
            store_run(p->set, o, dst, src, cols);
        } else {
            store_run(p->set, o, raw, src, cols);
            scatter(dst, raw, cols, col, o->size);
        }
    }
}

static void once(walk *w)
{
    const vm_program *p = w->p;
    for (uint32_t i = 0; i < p->once_count; i++) {
        const vm_op *op = &p->op[i];
        unsigned char *slot = w->slot + (size_t)p->slot[op->dst] * p->slot_size;
        w->value[op->dst] = slot;
        if (op->kind == VM_COMPUTE) {
            op->fn(op, slot, w->value[op->arg[0]], w->value[op->arg[1]], w->value[op->arg[2]], p->tile);
            continue;
        }
        const vm_class cls = vm_class_of((sinter_dtype)op->to);
        if (op->kind == VM_LOAD) {
            load_run(p->set, &p->operand[op->operand], slot, w->base[op->operand], 1);
        } else if (cls == VM_F32) {
            *(float *)(void *)slot = (float)op->imm.f;
        } else if (cls == VM_I32) {
            *(int32_t *)(void *)slot = (int32_t)op->imm.i;
        } else {
            memcpy(slot, &op->imm, sizeof op->imm);
        }
        if (op->is_full) fill(slot, 1, p->tile, register_size(cls));
    }
}

static void by_row(walk *w, const vm_op *op, char *d, int64_t rows, int64_t cols)
{
    const vm_program *p = w->p;
    const char *arg[2] = { w->value[op->arg[0]], w->value[op->arg[1]] };
    const uint32_t size = register_size(vm_class_of((sinter_dtype)op->to));
    int64_t step[2] = { cols * 8, cols * 8 };
    int64_t col;
    strides_of(w, &p->operand[op->one_operand], &step[op->one_at], &col);
    for (int64_t r = 0; r < rows; r++)
        op->by_row(op, d + r * cols * size, arg[0] + r * step[0], arg[1] + r * step[1], NULL, cols);
}

static void tile(walk *w, int64_t rows, int64_t cols)
{
    const vm_program *p = w->p;
    const int64_t n = rows * cols;
    for (uint32_t i = p->once_count; i < p->op_count; i++) {
        const vm_op *op = &p->op[i];
        switch (op->kind) {
        case VM_COMPUTE: {
            void *d = op->operand ? direct(w, op->operand - 1u, rows, cols) : NULL;
            if (!d) d = w->slot + (size_t)p->slot[op->dst] * p->slot_size;
            w->value[op->dst] = d;
            if (op->by_row) by_row(w, op, d, rows, cols);
            else op->fn(op, d, w->value[op->arg[0]], w->value[op->arg[1]], w->value[op->arg[2]], n);
            break;
        }
        case VM_LOAD: load(w, op, rows, cols); break;
        default: store(w, op, rows, cols); break;
        }
    }
}

static void walk_init(walk *w, const vm_program *p, const vm_io *io)
{
    w->p = p;
    for (uint32_t i = 0; i < p->op_count; i++) {
        const vm_op *op = &p->op[i];
        if (op->kind != VM_LOAD && op->kind != VM_STORE) continue;
        const vm_operand *o = &p->operand[op->operand];
        w->base[op->operand] = o->index == VM_ACC ? NULL : op->kind == VM_LOAD ? io->in[o->index] : io->out[o->index];
        w->base[op->operand] -= o->swap * o->size;
    }
    for (uint32_t k = 0; k < p->operand_count; k++) {
        strides_of(w, &p->operand[k], &w->corner[k].row, &w->corner[k].col);
        if (p->has_chain && p->cols == 1 && !p->operand[k].is_scalar) w->corner[k].col = p->operand[k].size;
    }
    if (!p->has_chain || p->chain_once) once(w);
    if (p->has_chain) vm_chain_begin(p, &w->chunk, w->slot, w->value);
}

/* From the end of the last axis but one to the next rows: index is that of the first row that was done. */
static void advance(walk *w, int64_t *index)
{
    const vm_program *p = w->p;
    const uint32_t inner = p->axes - 2;
    int64_t step[EXPR_MAX], left = index[inner];
    for (uint32_t k = 0; k < p->operand_count; k++) step[k] = -left * p->operand[k].stride[inner];
    index[inner] = 0;
    for (uint32_t a = inner; a-- > 0;) {
        const bool is_end = ++index[a] == p->dim[a];
        for (uint32_t k = 0; k < p->operand_count; k++)
            step[k] += p->operand[k].stride[a] * (is_end ? 1 - p->dim[a] : 1);
        if (!is_end) break;
        index[a] = 0;
    }
    for (uint32_t k = 0; k < p->operand_count; k++)
        if (p->operand[k].index != VM_ACC) w->corner[k].at += step[k] * p->operand[k].size;
}

/* Rows [row, row + rows) x columns [col, col + cols); acc is at (row, col). */
static void block(walk *w, int64_t row, int64_t rows, int64_t col, int64_t cols, const char *acc)
{
    const vm_program *p = w->p;
    const uint32_t last = p->axes - 1, inner = last ? last - 1 : 0;
    const int64_t inner_dim = last ? p->dim[inner] : 1;
    int64_t index[VM_AXES_MAX] = { 0 }, rest = row;
    for (uint32_t a = last; a-- > 1;) {
        index[a] = rest % p->dim[a];
        rest /= p->dim[a];
    }
    if (last) index[0] = rest;
    for (uint32_t k = 0; k < p->operand_count; k++) {
        const vm_operand *o = &p->operand[k];
        if (o->index == VM_ACC) continue;
        int64_t at = col * o->stride[last];
        for (uint32_t a = 0; a < last; a++) at += index[a] * o->stride[a];
        w->corner[k].at = w->base[k] + at * o->size;
    }
    for (;;) {
        const int64_t left = inner_dim - (last ? index[inner] : 0), run = rows < left ? rows : left;
        if (p->has_chain) {
            vm_corner c[EXPR_MAX];
            memcpy(c, w->corner, p->operand_count * sizeof *c);
            for (uint32_t k = 0; acc && k < p->operand_count; k++)
                if (p->operand[k].index == VM_ACC) c[k].at = (char *)(uintptr_t)acc;
            vm_chain_block(p, &w->chunk, c, run, cols);
        } else {
            const int64_t c_step = cols < p->tile_cols ? cols : p->tile_cols, r_step = p->tile / c_step;
            for (int64_t r = 0; r < run; r += r_step) {
                const int64_t r_count = run - r < r_step ? run - r : r_step;
                for (int64_t at = 0; at < cols; at += c_step) {
                    const int64_t c_count = cols - at < c_step ? cols - at : c_step;
                    for (uint32_t k = 0; k < p->operand_count; k++) {
                        const vm_operand *o = &p->operand[k];
                        if (o->index == VM_ACC) continue;
                        const int64_t rows_on = last ? r * o->stride[inner] : 0;
                        w->at[k] = w->corner[k].at + (rows_on + at * o->stride[last]) * o->size;
                    }
                    if (acc) w->acc = acc + (r * w->acc_ld + at) * ACC_SIZE;
                    tile(w, r_count, c_count);
                }
            }
        }
        rows -= run;
        if (!rows) return;
        if (acc) acc += run * w->acc_ld * ACC_SIZE;
        advance(w, index);
    }
}

void vm_block(const vm_program *p, const vm_io *io, int64_t row, int64_t rows, int64_t col, int64_t cols,
              const void *acc, int64_t ld)
{
    if (rows <= 0 || cols <= 0) return;
    walk w;
    w.acc_ld = ld;
    walk_init(&w, p, io);
    block(&w, row, rows, col, cols, acc);
}

int64_t vm_tile_count(const vm_program *p)
{
    if (!p->rows || !p->cols) return 0;
    return (p->rows + p->unit_rows - 1) / p->unit_rows * ((p->cols + p->unit_cols - 1) / p->unit_cols);
}

void vm_run(const vm_program *p, const vm_io *io, int64_t begin, int64_t end)
{
    if (begin >= end) return;
    walk w;
    w.acc_ld = 0;
    walk_init(&w, p, io);
    const int64_t across = (p->cols + p->unit_cols - 1) / p->unit_cols;
    for (int64_t i = begin; i < end; i++) {
        const int64_t row = i / across * p->unit_rows, col = i % across * p->unit_cols;
        const int64_t rows = p->rows - row < p->unit_rows ? p->rows - row : p->unit_rows;
        const int64_t cols = p->cols - col < p->unit_cols ? p->cols - col : p->unit_cols;
        block(&w, row, rows, col, cols, NULL);
    }
}
