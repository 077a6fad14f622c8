/* SPDX-License-Identifier: Apache-2.0 */
/* binding.c - from numbers to views, and the checks that the verifier left to real numbers.
 *
 * Every value must lie inside its storage, every operand inside the interval and order that its problem states, and
 * every result must follow from the inputs. After that kernels may trust what they are given. */
#include "run/context.h"

#include <string.h>

/* ---- memory ---- */

/* Values that were prepared before their storage moved go with it. */
static void move_values(context *c, uint32_t storage, const buffer *from, uint8_t *to)
{
    const uint32_t end = c->moving_first[storage + 1];
    for (uint32_t i = c->moving_first[storage]; i < end && c->now && c->now->value; i++) {
        const uint32_t v = c->moving[i];
        const uintptr_t at = (uintptr_t)c->address[v] - (uintptr_t)from->at;
        if (c->address[v] && at <= from->size) c->now->value[v].data = c->address[v] = to + at;
    }
}

/* What a buffer holds goes to a larger one, before the old one is freed. */
static sinter_status keep_bytes(context *c, storage_place place, void *to, const buffer *from)
{
    if (context_has_places(c) && place != PLACE_HOST) {
        TRY(context_copy(c, COPY_ON_DEVICE, to, from->at, from->size));
        return context_settle(c);
    }
    memcpy(to, from->at, from->size);
    return SINTER_OK;
}

sinter_status context_ensure(context *c, uint32_t storage, size_t size, bool keep)
{
    buffer *b = &c->own[storage];
    const storage_place place = (storage_place)context_storage(c, storage)->place;
    if (size <= b->size && b->at) return SINTER_OK;
    TRY(context_settle(c));
    /* What grows again, as a carried value that takes up a row each turn, grows by more than is asked. */
    size_t wanted = keep || b->at ? size_add(size, size / 2) : size;
    wanted = size_align(wanted ? wanted : 1, 4096);
    void *at = b->at ? context_grow(c, place, b->at, b->size, wanted) : NULL;
    const bool has_grown = at != NULL;
    if (!at) at = context_alloc_growing(c, place, wanted);
    if (!at) return NOTE(&c->e, c->e.error->status, "making room for a result of %zu bytes", wanted);
    if (has_grown) {
        move_values(c, storage, b, at);
    } else if (b->at) {
        const sinter_status s = keep ? keep_bytes(c, place, at, b) : SINTER_OK;
        if (s != SINTER_OK) context_free(c, place, at, wanted);
        TRY(s);
        move_values(c, storage, b, at);
        context_free(c, place, b->at, b->size);
    }
    *b = (buffer){ .at = at, .size = wanted };
    c->base[storage] = at;
    return SINTER_OK;
}

/* How many bytes the storage of `v` has, and where; makes room in those that grow. */
static sinter_status storage_room(context *c, uint32_t v, uint64_t *size)
{
    const engine_value *x = context_value(c, v);
    const engine_storage *s = context_storage(c, x->storage);
    *size = s->bound;
    if (s->kind == STORAGE_WEIGHT || s->kind == STORAGE_STATE || s->kind == STORAGE_ROWS) return SINTER_OK;
    if (s->kind == STORAGE_SLAB) {
        /* Behind what was written for these sizes lies what another shape, or another value, has left. */
        const int64_t real = c->now->dim[s->size_dim];
        if (real >= 0 && (uint64_t)real < s->bound) *size = (uint64_t)real;
        return SINTER_OK;
    }
    if (s->kind == STORAGE_GROWN) {
        const int64_t wanted = c->now->dim[s->size_dim];
        if (wanted < 0) return FAIL(&c->e, INVALID_MODEL, "a result has no valid size");
        TRY(context_ensure(c, x->storage, (size_t)wanted, false));
        *size = (uint64_t)wanted;
        return SINTER_OK;
    }
    const engine_io *io = &c->g->io[s->at];
    sinter_tensor t = { .dtype = (sinter_dtype)io->dtype, .rank = io->rank };
    for (uint32_t i = 0; i < io->rank; i++) {
        t.dim[i] = s->kind == STORAGE_INPUT ? c->input[s->at].dim[i] : c->now->dim[io->dim[i]];
        if (t.dim[i] < 0) return FAIL(&c->e, INVALID_MODEL, "'%s' has no valid shape", engine_text(c->g, io->name));
    }
    const size_t bytes = sinter_tensor_size(&t);
    if (bytes > c->e.limits.memory_max)
        return FAIL(&c->e, NO_MEMORY, "'%s' would have %zu bytes, the limit memory_max is %llu",
                    engine_text(c->g, io->name), bytes, (unsigned long long)c->e.limits.memory_max);
    *size = bytes;
    return s->kind == STORAGE_INPUT ? SINTER_OK : context_place_output(c, x->storage, bytes);
}

/* ---- values ---- */

/* The smallest and largest element offsets that the view reaches, from its storage's start. */
static bool extent(const view *v, int64_t offset, int64_t *low, int64_t *high)
{
    *low = *high = offset;
    for (uint32_t i = 0; i < v->rank; i++) {
        int64_t span;
        if (!i64_mul(v->dim[i] - 1, v->stride[i], &span)) return false;
        if (!(span < 0 ? i64_add(*low, span, low) : i64_add(*high, span, high))) return false;
    }
    return true;
}

bool context_view_fits(const view *v, int64_t offset, uint64_t size)
{
    const int64_t bits = sinter_dtype_bits(v->dtype);
    int64_t low, high, first_bit, last_bit;
    if (view_count(v) == 0) return true;
    return extent(v, offset, &low, &high) && low >= 0 && i64_add(high, 1, &last_bit) &&
           i64_mul(last_bit, bits, &last_bit) && ((uint64_t)last_bit + 7) / 8 <= size && offset >= 0 &&
           i64_mul(offset, bits, &first_bit) && first_bit % 8 == 0;
}

/* A stride that is never taken may be any number, or none. Kernels add it all the same, and it must not overflow. */
static void calm_strides(view *v, bool is_empty)
{
    static const int64_t most = (int64_t)1 << 31;
    for (uint32_t i = 0; i < v->rank; i++)
        if ((is_empty || v->dim[i] <= 1) && (v->stride[i] > most || v->stride[i] < -most)) v->stride[i] = 0;
}

sinter_status context_prepare_value(context *c, uint32_t v)
{
    const engine_value *x = context_value(c, v);
    view *out = &c->now->value[v];
    const char *name = engine_text(c->g, x->name);
    *out = (view){ .dtype = (sinter_dtype)x->dtype, .rank = x->rank };
    int64_t count = 1;
    for (uint32_t i = 0; i < x->rank; i++) {
        out->dim[i] = c->now->dim[x->dim[i]];
        out->stride[i] = c->now->dim[x->stride[i]];
        if (out->dim[i] < 0 || (out->dim[i] > 1 && out->stride[i] == INT64_MIN) ||
            !i64_mul(count, out->dim[i] ? out->dim[i] : 1, &count))
            return FAIL(&c->e, INVALID_MODEL, "value '%s' would have size %lld on axis %u", name,
                        (long long)out->dim[i], i);
    }
    const int64_t offset = c->now->dim[x->offset], bits = sinter_dtype_bits(out->dtype);
    if (!i64_mul(count, bits, &count)) /* also where an axis is empty: kernels multiply the others */
        return FAIL(&c->e, INVALID_MODEL, "value '%s' would have too many elements", name);
    const bool is_empty = view_count(out) == 0;
    calm_strides(out, is_empty);
    uint64_t size;
    TRY(NOTE(&c->e, storage_room(c, v, &size), "making room for '%s'", name));
    const bool ok = context_view_fits(out, offset, size);
    const int64_t first_bit = ok && !is_empty ? offset * bits : 0;
    c->now->is_bounded[v] = ok;
    uint8_t *base = c->base[x->storage];
    static const uint64_t nothing = 0; /* what has no elements has an address all the same */
    if (!base && is_empty && !c->g->backend->copy) base = (uint8_t *)(uintptr_t)&nothing;
    c->address[v] = base ? base + first_bit / 8 : NULL;
    out->data = c->address[v];
    return SINTER_OK;
}

/* ---- steps ---- */

static bool dense_in(const view *v, const uint8_t *order)
{
    int64_t run = 1;
    bool is_dense = true;
    for (uint32_t i = v->rank; i-- > 0;) {
        if (v->dim[order[i]] == 0) return true;
        if (v->dim[order[i]] != 1 && v->stride[order[i]] != run) is_dense = false;
        if (is_dense) run *= v->dim[order[i]];
    }
    return is_dense;
}

/* Elements along the innermost axis that can have more than one follow each other. */
static bool is_adjacent(const view *v, const problem_operand *o)
{
    for (uint32_t i = v->rank; i-- > 0;) {
        const uint32_t axis = o->order[i];
        if (o->dim[axis].max > 1) return v->stride[axis] == 1 || v->dim[axis] <= 1 || view_count(v) == 0;
    }
    return true;
}

/* A device's kernels load several elements at once; what cannot promise that is stated as gapped. */
static bool is_aligned(const view *v, const problem_operand *o, uint32_t align)
{
    if (o->is_gapped || view_count(v) == 0) return true;
    if ((uintptr_t)v->data % align) return false;
    bool is_inner = true; /* until the innermost axis that can have more than one is passed */
    for (uint32_t i = v->rank; i-- > 0 && o->is_strided;) {
        const uint32_t axis = o->order[i];
        if (is_inner) is_inner = o->dim[axis].max <= 1;
        else if (v->dim[axis] > 1 && v->stride[axis] % (align * 8 / (int64_t)sinter_dtype_bits(v->dtype))) return false;
    }
    return true;
}

/* A packed weight is what the kernel's packing wrote, whatever its value's strides say: the verifier saw its size. */
static sinter_status take_packed(context *c, uint32_t v)
{
    const uint32_t storage = context_value(c, v)->storage;
    c->now->value[v].data = c->address[v] = c->base[storage];
    return c->base[storage] ? SINTER_OK : FAIL(&c->e, INTERNAL, "a packed weight has no place");
}

static sinter_status check_operand(context *c, const problem_operand *o, uint32_t v, bool is_packed, bool is_on_device)
{
    const uint32_t align = is_on_device ? c->g->backend->alignment : 0;
    const view *x = &c->now->value[v];
    const char *name = engine_text(c->g, context_value(c, v)->name);
    for (uint32_t i = 0; i < x->rank; i++)
        if (x->dim[i] < o->dim[i].min || x->dim[i] > o->dim[i].max || x->dim[i] % o->dim[i].divisor)
            return FAIL(&c->e, INVALID_MODEL, "axis %u of '%s' is %lld, its kernel was built for %lld to %lld", i, name,
                        (long long)x->dim[i], (long long)o->dim[i].min, (long long)o->dim[i].max);
    if (is_packed) return take_packed(c, v);
    if (!c->now->is_bounded[v]) TRY(context_prepare_value(c, v)); /* says what is wrong with it, if it knows */
    if (!c->now->is_bounded[v]) return FAIL(&c->e, INVALID_MODEL, "value '%s' reaches outside its storage", name);
    if (o->is_strided && !o->is_gapped && !is_adjacent(x, o))
        return FAIL(&c->e, INVALID_MODEL, "value '%s' has gaps that its kernel does not expect", name);
    if (!o->is_strided && !dense_in(x, o->order))
        return FAIL(&c->e, INVALID_MODEL, "value '%s' is not dense as its kernel expects", name);
    if (align && !is_aligned(x, o, align))
        return FAIL(&c->e, INVALID_MODEL,
                    "value '%s' does not begin, or has rows that do not, at a multiple of %u bytes", name, align);
    return SINTER_OK;
}

static void print_shapes(const view *v, uint32_t count, text *out)
{
    for (uint32_t i = 0; i < count; i++) {
        text_printf(out, "%s[", i ? ", " : "");
        for (uint32_t k = 0; k < v[i].rank; k++) text_printf(out, "%s%lld", k ? "," : "", (long long)v[i].dim[k]);
        text_printf(out, "]");
    }
}

sinter_status context_check_follows(context *c, const problem *p, const program_step *s)
{
    const arena_mark mark = arena_save(&c->scratch);
    dim_table *t = dim_table_create(&c->scratch);
    infer_value *in = ARENA_NEW(&c->scratch, infer_value, p->count_in),
                *out = ARENA_NEW(&c->scratch, infer_value, p->count_out);
    void *attrs = op_attrs_copy(&c->scratch, p->op, s->attrs);
    bool ok = t && in && out && (attrs || !op_at(p->op)->attrs_size);
    for (uint32_t i = 0; ok && i < p->count_in + p->count_out; i++) {
        const view *v = i < p->count_in ? &s->in[i] : &s->out[i - p->count_in];
        infer_value *x = i < p->count_in ? &in[i] : &out[i - p->count_in];
        x->dtype = v->dtype;
        x->rank = v->rank;
        for (uint32_t k = 0; k < v->rank; k++) x->dim[k] = dim_const(t, v->dim[k]);
    }
    for (const attr_info *info = op_at(p->op)->attr; ok && info->name; info++) {
        if (info->kind != ATTR_DIMS) continue;
        attr_dims *d = (attr_dims *)((char *)attrs + info->at);
        int64_t *list = ARENA_NEW(&c->scratch, int64_t, d->count);
        ok = list != NULL;
        for (uint32_t i = 0; ok && i < d->count; i++) list[i] = dim_const(t, d->at[i]);
        d->at = list;
    }
    ok = ok && problem_shape_follows(&c->e, &c->scratch, t, p, attrs, in, out);
    const bool failed = c->scratch.failed;
    arena_rewind(&c->scratch, mark);
    if (failed) return FAIL_MEMORY(&c->e, "checking shapes");
    if (ok) return SINTER_OK;
    text line;
    text_init(&line, &c->e);
    print_shapes(s->in, p->count_in, &line);
    text_printf(&line, " do not give ");
    print_shapes(s->out, p->count_out, &line);
    const sinter_status status = FAIL(&c->e, INVALID_MODEL, "%s'%s': %.*s", p->plugin ? "plugin " : "",
                                      p->plugin ? ((const attrs_plugin *)s->attrs)->name : op_at(p->op)->name,
                                      (int)line.length, line.at ? line.at : "");
    text_deinit(&line);
    return status;
}

static sinter_status prepare_attrs(context *c, uint32_t step, program_step *s)
{
    const problem *p = context_code(c, step)->problem;
    const engine_step *from = context_step(c, step);
    const uint32_t *list = context_args(c, from->dim_at);
    for (const attr_info *info = op_at(p->op)->attr; info->name; info++) {
        if (info->kind != ATTR_DIMS) continue;
        const attr_dims *d = (const attr_dims *)((const char *)s->attrs + info->at);
        int64_t *at = (int64_t *)(uintptr_t)d->at; /* ours: made writable in make_step */
        for (uint32_t i = 0; i < d->count; i++) {
            at[i] = c->now->dim[*list++];
            if (at[i] == INT64_MIN && context_code(c, step)->kernel && from->kind != STEP_LATE)
                return FAIL(&c->e, INVALID_MODEL, "a size that '%s' needs is not known", info->name);
        }
    }
    return SINTER_OK;
}

/* No kernel may write where it or a thread beside it still reads: operands lie apart, or exactly where the result does
 * where the kernel works in place. Storages that cannot share bytes are not looked at. */
static sinter_status check_apart(context *c, uint32_t step, uint32_t v, uint32_t other, bool is_in_place)
{
    const engine_storage *x = context_storage(c, context_value(c, v)->storage),
                         *y = context_storage(c, context_value(c, other)->storage);
    const view *a = &c->now->value[v], *b = &c->now->value[other];
    if (x != y && (x->kind != STORAGE_SLAB || y->kind != STORAGE_SLAB || x->place != y->place)) return SINTER_OK;
    if (!view_overlaps(a, b) || (is_in_place && view_is_same(a, b))) return SINTER_OK;
    return FAIL(&c->e, INVALID_MODEL, "'%s' writes value '%s' where value '%s' lies",
                engine_text(c->g, context_step(c, step)->name), engine_text(c->g, context_value(c, v)->name),
                engine_text(c->g, context_value(c, other)->name));
}

static sinter_status check_places(context *c, uint32_t step)
{
    const program_step *s = &c->now->step[step];
    const problem *p = s->problem;
    if (s->kernel->where == KERNEL_TRANSFER) return SINTER_OK; /* the verifier saw that its ends lie apart */
    const bool is_scalar = p->op == OP_pointwise || op_is_scalar(p->op);
    const uint32_t first = !s->kernel->is_in_place || s->count_out != 1 ? UINT32_MAX : is_scalar ? 0 : p->count_anchor;
    for (uint32_t i = 0; i < s->count_out; i++) {
        if (!s->out_id[i]) continue;
        const bool updates = s->kernel->updates_in_place && op_updates(p->op, i);
        for (uint32_t k = 0; k < s->count_in; k++)
            if (s->in_id[k]) TRY(check_apart(c, step, s->out_id[i], s->in_id[k], k >= first || (updates && k == i)));
        for (uint32_t k = 0; k < i; k++)
            if (s->out_id[k]) TRY(check_apart(c, step, s->out_id[i], s->out_id[k], false));
    }
    return SINTER_OK;
}

/* The bytes of a weight where the host can read them, whichever place kernels find it in. */
static void *const_data(const context *c, uint32_t v)
{
    const uint32_t storage = context_value(c, v)->storage;
    const size_t offset = (size_t)((uint8_t *)c->now->value[v].data - (uint8_t *)c->base[storage]);
    return (uint8_t *)(uintptr_t)(c->g->weights + context_storage(c, storage)->at + offset);
}

sinter_status context_prepare_step(context *c, uint32_t step)
{
    const engine_step *from = context_step(c, step);
    const engine_code *code = context_code(c, step);
    program_step *s = &c->now->step[step];
    view *in = (view *)(uintptr_t)s->in, *out = (view *)(uintptr_t)s->out;
    TRY(prepare_attrs(c, step, s));
    const bool prepares = code->is_late,
               is_on_device = from->kind == STEP_KERNEL &&
                              (code->kernel->where == KERNEL_ON_DEVICE || code->kernel->where == KERNEL_ON_STREAM);
    for (uint32_t i = 0; i < from->in_count; i++) {
        const uint32_t v = s->in_id[i];
        if (!v) continue;
        if (prepares && context_is_late_value(c, v)) TRY(context_prepare_value(c, v));
        const bool is_const = i < code->problem->count_in && code->problem->in[i].is_const;
        const bool is_packed =
            is_const && code->kernel->pack_size && code->kernel->pack_size(code->problem, s->tactic, i);
        if (code->kernel) TRY(check_operand(c, &code->problem->in[i], v, is_packed, is_on_device));
        in[i] = c->now->value[v];
        in[i].data = is_packed || !is_const ? NULL : const_data(c, v);
    }
    if (from->kind != STEP_KERNEL) return SINTER_OK;
    for (uint32_t i = 0; i < from->out_count; i++) {
        const uint32_t v = s->out_id[i];
        if (!v) continue;
        if (prepares && context_is_late_value(c, v)) TRY(context_prepare_value(c, v));
        TRY(check_operand(c, &code->problem->out[i], v, false, is_on_device));
        out[i] = c->now->value[v];
        out[i].data = NULL;
    }
    TRY(check_places(c, step));
    return code->is_inferred ? SINTER_OK : context_check_follows(c, code->problem, s);
}

/* ---- symbols ---- */

sinter_status context_bind_symbol(context *c, uint32_t step, dim d, int64_t value, const char *what)
{
    const dim_node *n = &c->g->dim[d];
    const size_t first = (size_t)c->profile * c->g->symbol_count;
    const bool is_bound =
        n->kind == DIM_SYMBOL && c->g->symbol[n->value].is_late && c->g->binder[first + (size_t)n->value] == step + 1;
    if (!is_bound) { /* somebody else has said it */
        if (c->now->dim[d] == value) return SINTER_OK;
        return FAIL(&c->e, INVALID_MODEL, "%s is %lld, the engine was built for %lld", what, (long long)value,
                    (long long)c->now->dim[d]);
    }
    const engine_range *r = &c->g->range[first + (size_t)n->value];
    if (value < r->min || value > r->max)
        return FAIL(&c->e, INVALID_MODEL, "%s is %lld, it can be %lld to %lld", what, (long long)value,
                    (long long)r->min, (long long)r->max);
    context_symbol_set(c, (uint32_t)n->value, value);
    return SINTER_OK;
}

sinter_status context_bind_dims(context *c, uint32_t step, uint32_t v, const int64_t *dim_at, uint32_t rank,
                                const char *what)
{
    const engine_value *x = context_value(c, v);
    if (rank != x->rank) return FAIL(&c->e, INVALID_MODEL, "%s has rank %u, expected %u", what, rank, x->rank);
    for (uint32_t i = 0; i < rank; i++)
        if (c->g->dim[x->dim[i]].kind == DIM_SYMBOL) TRY(context_bind_symbol(c, step, x->dim[i], dim_at[i], what));
    context_evaluate(c);
    for (uint32_t i = 0; i < rank; i++)
        if (c->now->dim[x->dim[i]] != dim_at[i])
            return FAIL(&c->e, INVALID_MODEL, "%s has size %lld on axis %u, expected %lld", what, (long long)dim_at[i],
                        i, (long long)c->now->dim[x->dim[i]]);
    return SINTER_OK;
}
