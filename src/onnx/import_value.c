/* SPDX-License-Identifier: Apache-2.0 */
/* import_value.c - inputs and outputs that are sequences or optionals: lists of the importer from the tensors that
 * stand for them (faces.c), and back.
 *
 * How many tensors a sequence has is known while the engine is built; the sizes of each are not, unless the caller
 * promises x.shapes: the run reads them. */
#include "onnx/importer.h"

#include <string.h>

enum { ITEMS_MAX = 4096 };

static onnx_call call_of(importer *im, onnx_scope *s)
{
    return (
        onnx_call){ .im = im, .scope = s, .e = im->e, .b = { .g = im->g, .region = IR_MAIN, .fold_max = FOLD_MAX } };
}

/* The tensors of a sequence: each begins where the one before ends. */
static ir_value_id sequence_of(onnx_call *c, const onnx_value_info *v, ir_value_id values, ir_value_id shapes)
{
    int64_t count = 0, rank = 0;
    if (!call_size(c, shapes, 0, &count) || !call_size(c, shapes, 1, &rank) || count > ITEMS_MAX ||
        rank > SINTER_RANK_MAX)
        REJECT(c, UNSUPPORTED,
               "how many tensors it has, and of which rank, must be fixed (at most %d): as in %s=3x2 for 3 of rank 2",
               (int)ITEMS_MAX, v->name);
    ir_value_id *item = c->b.status ? NULL : ARENA_NEW(&c->im->a, ir_value_id, (size_t)count + 1);
    dim at = call_k(c, 0);
    if (!item && !c->b.status) REJECT(c, NO_MEMORY, "out of memory for a sequence");
    for (int64_t i = 0; i < count && !c->b.status; i++) {
        dim d[SINTER_RANK_MAX];
        uint32_t sizes = 0;
        const ir_value_id row = build_squeezed(&c->b, build_part(&c->b, shapes, 0, call_k(c, i), 1, call_k(c, 1)), 0);
        if (rank && !call_sizes(c, row, v->name, DIM_NONE, d, (uint32_t)rank, &sizes)) break;
        const dim size = dim_product(c->b.g->dims, d, (uint32_t)rank);
        item[i] = build_shaped(&c->b, build_part(&c->b, values, 0, at, 1, size), d, (uint32_t)rank);
        at = dim_add(c->b.g->dims, at, size);
    }
    return call_list_new(c, item, c->b.status ? 0 : (uint32_t)count, false);
}

sinter_status importer_part(importer *im, onnx_scope *s, const onnx_value_info *v, ir_value_id value)
{
    onnx_call c = call_of(im, s);
    const bool is_map = v->key_type != 0;
    if (is_map && v->part == ONNX_KEYS && !v->dim[0].param[0])
        return FAIL(im->e, UNSUPPORTED, "'%s' is a sequence of maps", v->of);
    if (v->part == ONNX_KEYS) im->part[1] = value;
    else if (is_map) im->part[0] = call_maps_new(&c, value, im->part[1]);
    else if (v->part == ONNX_SHAPES) im->part[0] = im->part[0] ? sequence_of(&c, v, im->part[0], value) : 0;
    else if (v->part == ONNX_HAS) im->part[1] = value;
    else im->part[0] = value;
    TRY(c.b.status);
    if (!v->is_last) return SINTER_OK;
    const ir_value_id inner = im->part[0], has = is_map ? 0 : im->part[1];
    im->part[0] = im->part[1] = 0;
    if (!inner) return FAIL(im->e, INVALID_MODEL, "another part of '%s' is missing", v->of);
    const ir_value_id id = has ? call_optional_new(&c, inner, has) : inner;
    TRY(c.b.status);
    return scope_set(im, s, v->of, id);
}

/* ---- outputs ---- */
static ir_value_id empty_of(onnx_call *c, sinter_dtype type, const int64_t *d, uint32_t rank)
{
    view v;
    void *at = ir_blob(c->b.g, 16);
    if (!at || !view_init(&v, type, rank, d, at)) REJECT(c, NO_MEMORY, "out of memory for an output");
    return c->b.status ? 0 : build_const(&c->b, NULL, &v);
}

static void items_check(onnx_call *c, const call_list *l)
{
    for (uint32_t i = 0; i < l->count && !c->b.status; i++) {
        if (name_is_list(l->item[i])) REJECT(c, UNSUPPORTED, "a sequence of what are no tensors of numbers");
        else if (call_rank(c, l->item[i]) != call_rank(c, l->item[0]) ||
                 call_type(c, l->item[i]) != call_type(c, l->item[0]))
            REJECT(c, UNSUPPORTED, "a sequence of tensors that differ in rank or type");
    }
}

static ir_value_id values_of(onnx_call *c, const call_list *l, sinter_dtype type)
{
    ir_value_id *flat = ARENA_NEW(&c->im->a, ir_value_id, (size_t)l->count + 1);
    if (!flat) REJECT(c, NO_MEMORY, "out of memory for an output");
    if (!l->count && !c->b.status) return empty_of(c, type, (const int64_t[]){ 0 }, 1);
    for (uint32_t i = 0; i < l->count && !c->b.status; i++) {
        dim d[SINTER_RANK_MAX];
        const dim size = dim_product(c->b.g->dims, d, call_shape(c, l->item[i], d));
        flat[i] = build_shaped(&c->b, l->item[i], &size, 1);
    }
    return c->b.status     ? 0
           : l->count == 1 ? flat[0]
                           : build_concat(&c->b, flat, l->count, &(attrs_concat){ .axis = 0 });
}

static ir_value_id shapes_of(onnx_call *c, const call_list *l, uint32_t declared)
{
    const uint32_t rank = l->count ? call_rank(c, l->item[0]) : declared;
    ir_value_id *row = ARENA_NEW(&c->im->a, ir_value_id, (size_t)l->count + 1);
    if (!row) REJECT(c, NO_MEMORY, "out of memory for an output");
    if (c->b.status) return 0;
    if (!rank || !l->count) return empty_of(c, SINTER_DTYPE_I64, (const int64_t[]){ l->count, rank }, 2);
    for (uint32_t i = 0; i < l->count && !c->b.status; i++) {
        dim d[SINTER_RANK_MAX];
        row[i] = build_unsqueezed(&c->b, build_sizes(&c->b, d, call_shape(c, l->item[i], d), false), 0);
    }
    return c->b.status ? 0 : l->count == 1 ? row[0] : build_concat(&c->b, row, l->count, &(attrs_concat){ .axis = 0 });
}

/* An optional without a value has a tensor without elements, or of zeros where the model declares its sizes. */
static ir_value_id nothing_of(onnx_call *c, const onnx_value_info *o, sinter_dtype type)
{
    dim d[SINTER_RANK_MAX];
    for (uint32_t i = 0; i < o->rank && i < SINTER_RANK_MAX; i++)
        d[i] = call_k(c, o->dim[i].has_value ? o->dim[i].value : 0);
    return build_expanded(&c->b, build_scalar(&c->b, type, 0), d, o->rank);
}

sinter_status importer_output_part(importer *im, onnx_scope *s, const onnx_value_info *o, ir_value_id *v)
{
    onnx_call c = call_of(im, s);
    const call_list *l = call_list_at(&c, *v), none = { .is_none = true };
    sinter_dtype type;
    const ir_value_id has = l && l->has ? l->has : build_scalar_i64(&c.b, SINTER_DTYPE_BOOL, !(l && l->is_none));
    if (l && l->has) {
        *v = l->inner;
        l = call_list_at(&c, *v);
    }
    if (!onnx_dtype_of(o->type, &type)) return FAIL(im->e, UNSUPPORTED, "elements of type %d", o->type);
    const bool is_maps = l && l->keys;
    if (is_maps != (o->key_type != 0))
        return FAIL(im->e, INVALID_MODEL, "it is %s sequence of maps, and the model says otherwise",
                    is_maps ? "a" : "no");
    if (o->part == ONNX_HAS) {
        *v = has;
    } else if (is_maps) {
        *v = o->part == ONNX_KEYS ? l->keys : l->item[0];
        if (call_type(&c, *v) != type)
            return FAIL(im->e, INVALID_MODEL, "it has %s, the model says %s", sinter_dtype_name(call_type(&c, *v)),
                        sinter_dtype_name(type));
    } else if (o->part == ONNX_VALUES || o->part == ONNX_SHAPES) {
        if (!l) return FAIL(im->e, INVALID_MODEL, "it is no sequence, and the model says that it is");
        if (l->is_none) l = &none;
        items_check(&c, l);
        *v = o->part == ONNX_VALUES ? values_of(&c, l, type)
                                    : shapes_of(&c, l, o->dim[1].has_value ? (uint32_t)o->dim[1].value : 0);
    } else if (l && l->is_none) {
        *v = nothing_of(&c, o, type);
    }
    return c.b.status;
}
