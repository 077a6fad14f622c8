/* SPDX-License-Identifier: Apache-2.0 */
#include "cpu/cpu_lines.h"

static int64_t magnitude(int64_t v)
{
    return v < 0 ? -v : v;
}

/* Whether axis `inner` and the next one outside, `outer`, are one axis in every view. */
static bool follows(const lines *l, uint32_t outer, uint32_t inner, uint32_t count)
{
    for (uint32_t v = 0; v < count; v++)
        if (l->stride[v][outer] != l->stride[v][inner] * l->dim[inner]) return false;
    return true;
}

void lines_init(lines *l, const view *const *views, uint32_t count, uint32_t along)
{
    const view *x = views[0];
    *l = (lines){ .count = 1 };
    uint32_t without = 0; /* axes so far that a view without `along` has */
    for (uint32_t i = 0; i < x->rank; i++) {
        if (along >> i & 1) continue;
        const uint32_t other = without++;
        l->count *= x->dim[i];
        if (x->dim[i] == 1) continue;
        uint32_t at = l->rank++;
        for (; at > 0 && magnitude(l->stride[0][at - 1]) < magnitude(x->stride[i]); at--) {
            l->dim[at] = l->dim[at - 1];
            for (uint32_t v = 0; v < count; v++) l->stride[v][at] = l->stride[v][at - 1];
        }
        l->dim[at] = x->dim[i];
        for (uint32_t v = 0; v < count; v++)
            l->stride[v][at] = views[v] ? views[v]->stride[views[v]->rank == x->rank ? i : other] : 0;
    }
    uint32_t rank = 0;
    for (uint32_t i = 0; i < l->rank; i++) {
        const bool is_inside = rank > 0 && follows(l, rank - 1, i, count);
        const int64_t outer = is_inside ? l->dim[--rank] : 1;
        l->dim[rank] = outer * l->dim[i];
        for (uint32_t v = 0; v < count; v++) l->stride[v][rank] = l->stride[v][i];
        rank++;
    }
    l->rank = rank;
    if (!l->rank) l->dim[l->rank++] = 1;
}

void lines_at(const lines *l, int64_t i, int64_t offset[LINES_VIEWS])
{
    for (uint32_t v = 0; v < LINES_VIEWS; v++) offset[v] = 0;
    for (uint32_t a = l->rank; a-- > 0; i /= l->dim[a])
        for (uint32_t v = 0; v < LINES_VIEWS; v++) offset[v] += i % l->dim[a] * l->stride[v][a];
}
