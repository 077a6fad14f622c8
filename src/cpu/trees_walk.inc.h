/* SPDX-License-Identifier: Apache-2.0 */
/* trees_walk.inc.h - the walks of trees.h for one type of features: included once for each, with TREES_T and
 * TREES_NAME(name) defined. */

INLINE TREES_T TREES_NAME(tree_number)(const tree_row *r)
{
    TREES_T x;
    memcpy(&x, r->value, sizeof x);
    return x;
}

/* A node of any kind. */
INLINE bool TREES_NAME(tree_holds)(const tree_row *row, const tree_row *r, TREES_T v)
{
    if (v != v && r->how & TREE_NAN) return true;
    if (!(r->how & (TREE_EQ | TREE_MEMBER))) return v <= TREES_NAME(tree_number)(r);
    if (!(r->how & TREE_MEMBER)) return v == TREES_NAME(tree_number)(r);
    bool is_in = false;
    for (uint32_t i = 0; i < r->value[1]; i++) is_in |= v == TREES_NAME(tree_number)(&row[r->value[0] + i]);
    return is_in;
}

/* A step from a place of the table, in units of 8 bytes. A leaf goes on to itself. x: of the lane: its row, or its
 * column of rows that are spread. */
INLINE uint32_t TREES_NAME(tree_step)(const tree_row *row, const TREES_T *x, uint32_t at, trees_way way)
{
    const tree_row *r = (const tree_row *)((const char *)row + (size_t)at * 8);
    if (way == TREES_ANY) {
        if (!(r->how & TREE_NODE)) return at;
        return r->next + (TREES_NAME(tree_holds)(row, r, x[tree_feature(r)]) ? 0 : 2);
    }
    const TREES_T v = x[(size_t)(uint16_t)r->how * (TREES_LANES / 4)];
    uint32_t second = (uint32_t) !(v <= TREES_NAME(tree_number)(r)) & r->how >> 24;
    if (way == TREES_NAN) second &= ~((uint32_t)(v != v) & r->how >> 27);
    return r->next + 2 * second;
}
_Static_assert(TREE_NODE == 1 << 24 && TREE_NAN == 1 << 27, "a step shifts the flags");

/* To the leaves. Two steps between questions whether all are there. */
INLINE void TREES_NAME(tree_lanes)(const tree_row *row, const TREES_T *x, int64_t pitch, uint32_t *at, trees_way way)
{
    uint32_t is_on;
    do {
        is_on = 0;
        UNROLL for (int turn = 0; turn < 2; turn++)
        {
            UNROLL for (int k = 0; k < TREES_LANES; k++)
                at[k] = TREES_NAME(tree_step)(row, x + k * pitch, at[k], way);
        }
        UNROLL for (int k = 0; k < TREES_LANES; k++)
            is_on |= ((const tree_row *)((const char *)row + (size_t)at[k] * 8))->how;
    } while (is_on & TREE_NODE);
}

INLINE void TREES_NAME(tree_take)(const trees_walk *w, double *sum, uint32_t at)
{
    const tree_row *leaf = &w->row[at / 2];
    if (!(leaf->how & TREE_LIST)) tree_fold(w->fold, sum, (double)TREES_NAME(tree_number)(leaf));
    for (uint32_t i = 0; leaf->how & TREE_LIST && i < leaf->value[1]; i++) {
        const tree_row *entry = &w->row[leaf->value[0] + i];
        tree_fold(w->fold, &sum[entry->next], (double)TREES_NAME(tree_number)(entry));
    }
}

/* Eight rows, one tree after the other. */
INLINE void TREES_NAME(tree_rows)(const trees_walk *w, const TREES_T *x, int64_t pitch, double *sum, trees_way way)
{
    const bool is_simple = w->fold == TREES_SUM && !w->has_lists && w->targets == 1;
    double s[TREES_LANES] = { 0 };
    for (int k = 0; is_simple && k < TREES_LANES; k++) s[k] = sum[k];
    for (int64_t t = w->first; t < w->stop; t++) {
        uint32_t at[TREES_LANES];
        UNROLL for (int k = 0; k < TREES_LANES; k++) at[k] = 2 * (uint32_t)t;
        TREES_NAME(tree_lanes)(w->row, x, pitch, at, way);
        if (is_simple) {
            UNROLL for (int k = 0; k < TREES_LANES; k++) s[k] += (double)TREES_NAME(tree_number)(&w->row[at[k] / 2]);
        } else {
            for (int k = 0; k < TREES_LANES; k++) TREES_NAME(tree_take)(w, sum + k * w->targets, at[k]);
        }
    }
    for (int k = 0; is_simple && k < TREES_LANES; k++) sum[k] = s[k];
}

/* One row, eight trees after eight trees. */
INLINE void TREES_NAME(tree_row)(const trees_walk *w, const TREES_T *x, int64_t pitch, double *sum, trees_way way)
{
    for (int64_t t = w->first; t < w->stop; t += TREES_LANES) {
        const int n = w->stop - t < TREES_LANES ? (int)(w->stop - t) : TREES_LANES;
        uint32_t at[TREES_LANES];
        for (int k = 0; k < TREES_LANES; k++) at[k] = 2 * (uint32_t)(t + (k < n ? k : 0));
        TREES_NAME(tree_lanes)(w->row, x, pitch, at, way);
        for (int k = 0; k < n; k++) TREES_NAME(tree_take)(w, sum, at[k]);
    }
}

INLINE void TREES_NAME(tree_walk)(const trees_walk *w, int64_t rows, trees_way way)
{
    const bool is_spread = way != TREES_ANY;
    const int64_t pitch = is_spread ? 1 : w->features, group = TREES_LANES * w->features;
    const TREES_T *x = w->x;
    int64_t i = 0;
    for (; i + TREES_LANES <= rows; i += TREES_LANES, x += group)
        TREES_NAME(tree_rows)(w, x, pitch, w->sum + i * w->targets, way);
    for (; i < rows; i++, x += is_spread ? group : w->features)
        TREES_NAME(tree_row)(w, x, is_spread ? 1 : 0, w->sum + i * w->targets, way);
}

static void TREES_NAME(tree_walk_plain)(const trees_walk *w, int64_t rows)
{
    TREES_NAME(tree_walk)(w, rows, TREES_PLAIN);
}
static void TREES_NAME(tree_walk_nan)(const trees_walk *w, int64_t rows)
{
    TREES_NAME(tree_walk)(w, rows, TREES_NAN);
}
static void TREES_NAME(tree_walk_any)(const trees_walk *w, int64_t rows)
{
    TREES_NAME(tree_walk)(w, rows, TREES_ANY);
}

static bool TREES_NAME(tree_spread)(const void *from, int64_t features, int64_t rows, void *to)
{
    const TREES_T *x = from;
    TREES_T *y = to;
    int has_nan = 0;
    int64_t i = 0;
    for (; i + TREES_LANES <= rows; i += TREES_LANES, x += TREES_LANES * features) {
        for (int64_t f = 0; f < features; f++, y += TREES_LANES)
            UNROLL for (int k = 0; k < TREES_LANES; k++)
            {
                const TREES_T v = x[k * features + f];
                has_nan |= v != v;
                y[k] = v;
            }
    }
    for (; i < rows; i++, x += features) {
        for (int64_t f = 0; f < features; f++, y += TREES_LANES) {
            has_nan |= x[f] != x[f];
            for (int k = 0; k < TREES_LANES; k++) y[k] = x[f];
        }
    }
    return has_nan != 0;
}

static const trees_set TREES_NAME(trees_loops) = {
    .walk = { TREES_NAME(tree_walk_plain), TREES_NAME(tree_walk_nan), TREES_NAME(tree_walk_any) },
    .spread = TREES_NAME(tree_spread),
};
