/* SPDX-License-Identifier: Apache-2.0 */
/* ref_top_k.c - top_k: the k first elements of each line in order; of equal ones the lower index comes first.
 *
 * Every value becomes an unsigned key that sorts as the value does (floats by their bits, -0 as 0, NaN above infinity),
 * turned over where the largest are wanted. Then one merge sort serves all types; the result is always sorted. */
#include "ops/ref_loops.h"
#include <math.h>

typedef struct entry {
    uint64_t key;
    int64_t index;
} entry;

static uint64_t key_of(const view *x, int64_t at)
{
    const uint64_t sign = UINT64_C(1) << 63;
    if (!dtype_is_float(x->dtype)) {
        const uint64_t u = (uint64_t)view_load_i64(x, at);
        return x->dtype == SINTER_DTYPE_U64 ? u : u ^ sign;
    }
    const double v = view_load_f64(x, at) + 0.0; /* -0 becomes 0 */
    uint64_t bits;
    memcpy(&bits, &v, sizeof(bits));
    if (isnan(v)) return UINT64_MAX;
    return bits & sign ? ~bits : bits | sign;
}

/* Stable, ascending by key. */
static void sort(entry *at, entry *spare, int64_t count)
{
    for (int64_t width = 1; width < count; width *= 2) {
        for (int64_t start = 0; start < count; start += 2 * width) {
            const int64_t middle = start + width < count ? start + width : count;
            const int64_t end = middle + width < count ? middle + width : count;
            int64_t a = start;
            int64_t b = middle;
            for (int64_t i = start; i < end; i++) {
                const bool takes_a = a < middle && (b == end || at[a].key <= at[b].key);
                spare[i] = takes_a ? at[a++] : at[b++];
            }
        }
        memcpy(at, spare, (size_t)count * sizeof(*at));
    }
}

sinter_status reference_top_k(ref_call *c)
{
    const attrs_top_k *a = c->attrs;
    TRY(ref_check(c));
    const view *x = &c->in[0];
    const uint32_t axis = 1u << a->axis;
    const int64_t count = x->dim[a->axis];
    const int64_t k = a->k.at[0];
    const bool is_float = dtype_is_float(x->dtype);
    entry *entries = ARENA_NEW(c->scratch, entry, (size_t)count);
    entry *spare = ARENA_NEW(c->scratch, entry, (size_t)count);
    if (!entries || !spare) return FAIL_MEMORY(c->e, "a line of top_k");
    const view *values = ref_has_out(c, 0) ? &c->out[0] : NULL;
    const view *indices = ref_has_out(c, 1) ? &c->out[1] : NULL;
    ref_walk from = ref_walk_axes(x, ~axis, 0);
    ref_walk to = ref_walk_axes(values ? values : x, ~axis, 0);
    ref_walk to_index = ref_walk_axes(indices ? indices : x, ~axis, 0);
    for (int64_t i = 0; i < from.count; i++, ref_walk_next(&from), ref_walk_next(&to), ref_walk_next(&to_index)) {
        for (int64_t j = 0; j < count; j++) {
            const uint64_t key = key_of(x, from.at + j * x->stride[a->axis]);
            entries[j] = (entry){ a->largest ? ~key : key, j };
        }
        sort(entries, spare, count);
        for (int64_t j = 0; j < k; j++) {
            const int64_t at = from.at + entries[j].index * x->stride[a->axis];
            if (indices) view_store_i64(indices, to_index.at + j * indices->stride[a->axis], entries[j].index);
            if (!values) continue;
            if (is_float) view_store_f64(values, to.at + j * values->stride[a->axis], view_load_f64(x, at));
            else view_store_i64(values, to.at + j * values->stride[a->axis], view_load_i64(x, at));
        }
    }
    return SINTER_OK;
}
