/* SPDX-License-Identifier: Apache-2.0 */
/* cover.c - see cover.h. */
#include "core/cover.h"

#include <stdlib.h>
#include <string.h>

enum { JOIN_FIRST = 8, RUNS_MAX = 1 << 16, PAIRS_MAX = 1 << 22 };

/* ---- boxes ---- */

int64_t cover_end(const cover_box *b)
{
    int64_t end = b->at + b->run;
    for (uint32_t i = 0; i < b->levels; i++) end += (b->level[i].count - 1) * b->level[i].stride;
    return end;
}

static void drop_level(cover_box *b, uint32_t at)
{
    b->levels--;
    for (uint32_t i = at; i < b->levels; i++) b->level[i] = b->level[i + 1];
}

/* Levels that follow each other without a gap become one. */
static void simplify(cover_box *b)
{
    for (uint32_t i = 0; i < b->levels;) {
        if (b->level[i].count == 1) {
            drop_level(b, i);
        } else if (i == 0 && b->level[0].stride == b->run) {
            b->run *= b->level[0].count;
            drop_level(b, 0);
        } else if (i && b->level[i].stride == b->level[i - 1].count * b->level[i - 1].stride) {
            b->level[i - 1].count *= b->level[i].count;
            drop_level(b, i);
        } else {
            i++;
        }
    }
}

bool cover_box_of(uint32_t bits, uint32_t rank, const int64_t *dim, const int64_t *stride, int64_t offset,
                  cover_box *out)
{
    *out = (cover_box){ .at = offset * bits, .run = bits };
    for (uint32_t i = 0; i < rank; i++) {
        if (dim[i] == 0) return false;
        if (dim[i] == 1 || stride[i] == 0) continue;
        int64_t step = stride[i] * bits;
        if (step < 0) {
            out->at += (dim[i] - 1) * step;
            step = -step;
        }
        uint32_t k = out->levels++;
        for (; k && out->level[k - 1].stride > step; k--) out->level[k] = out->level[k - 1];
        out->level[k].count = dim[i];
        out->level[k].stride = step;
    }
    simplify(out);
    return true;
}

/* Is all of `b` in `w`? Where `w` repeats, those levels of `b` that go from repetition to repetition are taken off. */
static bool contains(const cover_box *w, uint32_t levels, int64_t w_at, cover_box b)
{
    while (levels) {
        const int64_t stride = w->level[levels - 1].stride, count = w->level[levels - 1].count;
        int64_t first = b.at - w_at, last;
        if (first < 0) return false;
        first = last = first / stride;
        for (uint32_t i = 0; i < b.levels;) {
            if (b.level[i].stride % stride) {
                i++;
                continue;
            }
            last += (b.level[i].count - 1) * (b.level[i].stride / stride);
            drop_level(&b, i);
        }
        if (last >= count) return false;
        b.at -= first * stride;
        levels--;
    }
    return b.at >= w_at && cover_end(&b) <= w_at + w->run;
}

/* Does a run meet the box? Repetitions that it can meet are looked at one by one. */
static bool run_touches(int64_t from, int64_t to, const cover_box *b, uint32_t levels, int64_t at)
{
    enum { LOOKED_AT = 16 };
    int64_t size = b->run;
    if (!levels) return from < at + size && at < to;
    for (uint32_t i = 0; i + 1 < levels; i++) size += (b->level[i].count - 1) * b->level[i].stride;
    const int64_t stride = b->level[levels - 1].stride, count = b->level[levels - 1].count;
    int64_t first = from < at + size ? 0 : (from - at - size) / stride + 1,
            last = to <= at ? -1 : (to - 1 - at) / stride;
    if (last >= count) last = count - 1;
    for (int64_t i = first, n = 0; i <= last && n < LOOKED_AT; i++, n++)
        if (run_touches(from, to, b, levels - 1, at + i * stride)) return true;
    return false;
}

/* Run by run of `a`, where there are few. */
static bool runs_touch(const cover_box *a, const cover_box *b)
{
    enum { FEW = 4096 };
    int64_t runs = 1, index[SINTER_RANK_MAX] = { 0 };
    for (uint32_t i = 0; i < a->levels; i++) {
        if (a->level[i].count > FEW || runs * a->level[i].count > FEW) return false;
        runs *= a->level[i].count;
    }
    for (int64_t at = a->at, n = 0; n < runs; n++) {
        if (run_touches(at, at + a->run, b, b->levels, b->at)) return true;
        for (uint32_t i = 0; i < a->levels; i++) {
            at += a->level[i].stride;
            if (++index[i] < a->level[i].count) break;
            at -= a->level[i].count * a->level[i].stride;
            index[i] = 0;
        }
    }
    return false;
}

bool cover_boxes_touch(const cover_box *a, const cover_box *b)
{
    if (a->at >= cover_end(b) || b->at >= cover_end(a)) return false;
    if (!a->levels) return run_touches(a->at, a->at + a->run, b, b->levels, b->at);
    if (!b->levels) return run_touches(b->at, b->at + b->run, a, a->levels, a->at);
    const uint32_t i = a->levels - 1, k = b->levels - 1;
    const int64_t stride = a->level[i].stride;
    cover_box x = *a, y = *b;
    x.levels--, y.levels--;
    if (stride != b->level[k].stride || cover_end(&x) - x.at > stride || cover_end(&y) - y.at > stride)
        return runs_touch(a, b) || runs_touch(b, a);
    /* Both repeat alike: those of y lie `gap` behind those of x, and may reach into the next. */
    int64_t gap = (y.at - x.at) % stride;
    if (gap < 0) gap += stride;
    const int64_t behind = (y.at - x.at - gap) / stride, x_count = a->level[i].count, y_count = b->level[k].count;
    for (int64_t n = 0; n < 2; n++) {
        if (behind + n >= x_count || behind + n + y_count <= 0) continue;
        y.at = x.at + gap - n * stride;
        if (cover_boxes_touch(&x, &y)) return true;
    }
    return false;
}

/* ---- sets ---- */

/* What is compared when neighbours along `axis` are sought: 0 the run, then the levels. */
static int compare_along(const cover_box *a, const cover_box *b, uint32_t axis)
{
    const int64_t skip = axis ? 1 : 0;
    if (a->levels != b->levels) return a->levels < b->levels ? -1 : 1;
    if (skip && a->run != b->run) return a->run < b->run ? -1 : 1;
    for (uint32_t i = 0; i < a->levels; i++) {
        if (a->level[i].stride != b->level[i].stride) return a->level[i].stride < b->level[i].stride ? -1 : 1;
        if (i + 1 != axis && a->level[i].count != b->level[i].count)
            return a->level[i].count < b->level[i].count ? -1 : 1;
    }
    if (axis && axis <= a->levels) {
        const int64_t stride = a->level[axis - 1].stride, x = a->at % stride, y = b->at % stride;
        if (x != y) return x < y ? -1 : 1;
    }
    return 0;
}

/* Joins `b` to `a` where it follows along `axis`. */
static bool join(cover_box *a, const cover_box *b, uint32_t axis)
{
    if (axis > a->levels || compare_along(a, b, axis) != 0) return false;
    const int64_t end = axis ? a->at + a->level[axis - 1].count * a->level[axis - 1].stride : a->at + a->run;
    if (b->at < a->at || b->at > end) return false; /* it may also lie over its end */
    if (axis) {
        const int64_t steps = (b->at - a->at) / a->level[axis - 1].stride + b->level[axis - 1].count;
        if (steps > a->level[axis - 1].count) a->level[axis - 1].count = steps;
    } else {
        const int64_t run = b->at - a->at + b->run;
        if (run > a->run) a->run = run;
    }
    simplify(a);
    return true;
}

/* Two runs of one length become a box that repeats: rows of a part that were written one by one. */
static bool pair(cover_box *a, const cover_box *b)
{
    if (a->levels || b->levels || a->run != b->run || b->at < a->at + a->run) return false;
    a->levels = 1;
    a->level[0].count = 2;
    a->level[0].stride = b->at - a->at;
    simplify(a);
    return true;
}

/* The next run of a box that repeats. */
static bool extend(cover_box *a, const cover_box *b)
{
    if (a->levels != 1 || b->levels || a->run != b->run) return false;
    if (b->at != a->at + a->level[0].count * a->level[0].stride) return false;
    a->level[0].count++;
    return true;
}

typedef struct sorted {
    cover_box box;
    uint32_t axis;
} sorted;

static int by_axis(const void *x, const void *y)
{
    const cover_box *a = &((const sorted *)x)->box, *b = &((const sorted *)y)->box;
    const int order = compare_along(a, b, ((const sorted *)x)->axis);
    return order ? order : a->at < b->at ? -1 : a->at > b->at;
}

/* One pass over all boxes, sorted along `axis`; past the levels, pairs of runs. */
static bool join_along(cover_set *s, sorted *list, uint32_t axis)
{
    const uint32_t before = s->box.count;
    const bool is_pairs = axis > SINTER_RANK_MAX;
    for (uint32_t i = 0; i < before; i++) list[i] = (sorted){ .box = s->box.at[i], .axis = is_pairs ? 0 : axis };
    qsort(list, before, sizeof *list, by_axis);
    uint32_t count = 0;
    for (uint32_t i = 0; i < before; i++) {
        cover_box *last = count ? &s->box.at[count - 1] : NULL;
        if (last &&
            (is_pairs ? extend(last, &list[i].box) || pair(last, &list[i].box) : join(last, &list[i].box, axis)))
            continue;
        s->box.at[count++] = list[i].box;
    }
    s->box.count = count;
    return count < before;
}

static void join_all(cover_set *s, bool with_pairs)
{
    const arena_mark mark = arena_save(s->a);
    sorted *list = s->box.count > 1 ? ARENA_NEW(s->a, sorted, s->box.count) : NULL;
    for (bool again = list != NULL; again && s->box.count > 1;) {
        again = false;
        for (uint32_t axis = 0; axis <= SINTER_RANK_MAX; axis++) again |= join_along(s, list, axis);
        again |= with_pairs && join_along(s, list, SINTER_RANK_MAX + 1);
    }
    arena_rewind(s->a, mark);
    s->join_at = s->box.count * 2 > JOIN_FIRST ? s->box.count * 2 : JOIN_FIRST;
    s->is_joined = true;
}

bool cover_add(cover_set *s, const cover_box *b)
{
    if (s->box.count) {
        cover_box *last = &s->box.at[s->box.count - 1];
        for (uint32_t axis = 0; axis <= last->levels; axis++)
            if (join(last, b, axis)) return s->is_joined = false, true;
    }
    cover_box *x = VEC_PUSH(s->a, &s->box);
    s->is_joined = false;
    if (!x) return false;
    *x = *b;
    if (s->box.count > s->join_at && s->box.count > JOIN_FIRST) join_all(s, false);
    return true;
}

static bool one_has(const cover_set *s, const cover_box *b, uint64_t *work)
{
    const int64_t end = cover_end(b);
    for (uint32_t i = s->box.count; i-- > 0;) {
        const cover_box *w = &s->box.at[i];
        ++*work;
        if (b->at >= w->at && end <= cover_end(w) && contains(w, w->levels, w->at, *b)) return true;
    }
    return false;
}

/* The furthest end of a run of the box that `from` lies in; `from`: there is none. */
static int64_t reach_of(const cover_box *b, uint32_t levels, int64_t at, int64_t from)
{
    if (!levels) return from >= at && from < at + b->run ? at + b->run : from;
    enum { LOOKED_AT = 16 };
    int64_t size = b->run, reach = from;
    for (uint32_t i = 0; i + 1 < levels; i++) size += (b->level[i].count - 1) * b->level[i].stride;
    const int64_t stride = b->level[levels - 1].stride, count = b->level[levels - 1].count;
    if (from < at) return from;
    const int64_t first = from < at + size ? 0 : (from - at - size) / stride + 1;
    int64_t last = (from - at) / stride;
    if (last >= count) last = count - 1;
    for (int64_t i = last, n = 0; i >= first && n < LOOKED_AT; i--, n++) {
        const int64_t end = reach_of(b, levels - 1, at + i * stride, from);
        if (end > reach) reach = end;
    }
    return reach;
}

/* Is [from, to) in the union? Boxes are asked in turn for the run that has `from`. False also where *work passes
 * `work_max`: many short runs may cover a long one. */
static bool run_is_covered(const cover_set *s, int64_t from, int64_t to, uint64_t *work, uint64_t work_max)
{
    while (from < to) {
        int64_t reach = from;
        *work += s->box.count;
        if (*work > work_max) return false;
        for (uint32_t i = 0; i < s->box.count; i++) {
            const cover_box *w = &s->box.at[i];
            const int64_t end = reach_of(w, w->levels, w->at, from);
            if (end > reach) reach = end;
        }
        if (reach == from) return false;
        from = reach;
    }
    return true;
}

/* Run by run, where there are few. */
static bool all_are_covered(const cover_set *s, const cover_box *b, uint64_t *work)
{
    int64_t runs = 1, index[SINTER_RANK_MAX] = { 0 };
    for (uint32_t i = 0; i < b->levels; i++) {
        if (b->level[i].count > RUNS_MAX) return false;
        runs *= b->level[i].count;
        if (runs > RUNS_MAX) return false;
    }
    if (runs * s->box.count > PAIRS_MAX) return false;
    const uint64_t work_max = *work + 4 * (uint64_t)PAIRS_MAX;
    for (int64_t at = b->at, n = 0; n < runs; n++) {
        if (!run_is_covered(s, at, at + b->run, work, work_max)) return false;
        for (uint32_t i = 0; i < b->levels; i++) {
            at += b->level[i].stride;
            if (++index[i] < b->level[i].count) break;
            at -= b->level[i].count * b->level[i].stride;
            index[i] = 0;
        }
    }
    return true;
}

/* Rows that were written one by one, in a copy: there they may become a box that repeats. In the set itself, rows that
 * come later would not find their neighbours any more. */
static bool pairs_have(const cover_set *s, const cover_box *b, uint64_t *work)
{
    const arena_mark mark = arena_save(s->a);
    cover_set copy = *s;
    copy.box.at = ARENA_NEW(s->a, cover_box, s->box.count);
    if (copy.box.at) {
        memcpy(copy.box.at, s->box.at, s->box.count * sizeof *copy.box.at);
        join_all(&copy, true);
    }
    *work += 8 * (uint64_t)s->box.count;
    const bool has = copy.box.at && one_has(&copy, b, work);
    arena_rewind(s->a, mark);
    return has;
}

bool cover_has(cover_set *s, const cover_box *b, uint64_t *work)
{
    if (one_has(s, b, work)) return true;
    if (s->box.count > 1 && !s->is_joined) {
        join_all(s, false);
        if (one_has(s, b, work)) return true;
    }
    return all_are_covered(s, b, work) || (s->box.count > 1 && pairs_have(s, b, work));
}

bool cover_touches(const cover_set *s, const cover_box *b, uint64_t *work)
{
    for (uint32_t i = s->box.count; i-- > 0;) {
        ++*work;
        if (cover_boxes_touch(&s->box.at[i], b)) return true;
    }
    return false;
}
