/* SPDX-License-Identifier: Apache-2.0 */
/* graph_grow.c - random graphs: values, sizes and nodes. What the operators want is said in graph_ops_*.c. */
#include "graph_ops.h"

#include "test.h"

#include <math.h>

/* ---- rows ---- */

static const gop *const tables[] = { gops_elementwise, gops_move,     gops_index,   gops_compute, gops_layers,
                                     gops_quant,       gops_fused,    gops_contrib, gops_small,   gops_decoders,
                                     gops_control,     gops_sequence, gops_old,     gops_chains,  gops_values,
                                     gops_qdq,         gops_blocks };

const gop *gop_at(uint32_t i)
{
    for (uint32_t t = 0; t < COUNT_OF(tables); t++)
        for (const gop *op = tables[t]; op->name; op++)
            if (i-- == 0) return op;
    return NULL;
}

const gop *gop_find(const char *name)
{
    for (uint32_t t = 0; t < COUNT_OF(tables); t++)
        for (const gop *op = tables[t]; op->name; op++)
            if (!strcmp(op->name, name)) return op;
    return NULL;
}

bool gop_is_param(const char *name, uint32_t input)
{
    const gop *op = gop_find(name);
    return op && op->params >> input & 1;
}

bool gop_is_chain(const char *name)
{
    const gop *const list[] = { gops_chains, gops_qdq, gops_blocks };
    for (uint32_t i = 0; i < COUNT_OF(list); i++)
        for (const gop *op = list[i]; op->name; op++)
            if (!strcmp(op->name, name)) return true;
    return false;
}

bool gop_moves(const char *name)
{
    const gop *const list[] = { gops_move, gops_index };
    for (uint32_t t = 0; t < COUNT_OF(list); t++)
        for (const gop *op = list[t]; op->name; op++)
            if (!strcmp(op->name, name)) return true;
    return false;
}

/* ---- chance and sizes ---- */

uint32_t grow_below(grow *g, uint32_t count)
{
    return count ? (uint32_t)((test_random(&g->seed) >> 32) * count >> 32) : 0;
}

static uint32_t pick_below(grow *g, uint32_t count)
{
    return count ? (uint32_t)((test_random(&g->pick_seed) >> 32) * count >> 32) : 0;
}

int64_t grow_between(grow *g, int64_t low, int64_t high)
{
    return high <= low ? low : low + grow_below(g, (uint32_t)(high - low + 1));
}

gsize gsize_of(int64_t size)
{
    gsize s;
    for (uint32_t k = 0; k < G_ENVS; k++) s.at[k] = size;
    return s;
}

gsize grow_dim(const grow *g, uint32_t v, uint32_t axis)
{
    gsize s = { { 0 } };
    for (uint32_t k = 0; k < G_ENVS; k++) s.at[k] = grow_data(g, v, k < g->m->envs ? k : 0)->dim[axis];
    return s;
}

bool gsize_same(const grow *g, gsize a, gsize b)
{
    return !memcmp(a.at, b.at, g->m->envs * sizeof a.at[0]);
}

bool gsize_is(const grow *g, gsize s, int64_t size)
{
    return gsize_same(g, s, gsize_of(size));
}

bool gsize_is_const(const grow *g, gsize s)
{
    return gsize_is(g, s, s.at[0]);
}

int64_t gsize_min(const grow *g, gsize s)
{
    int64_t least = s.at[0];
    for (uint32_t k = 1; k < g->m->envs; k++) least = s.at[k] < least ? s.at[k] : least;
    return least;
}

gsize grow_size(grow *g)
{
    static const int64_t odd[] = { 1, 2, 3, 4, 5, 7, 8, 9, 16, 17, 31, 33, 64, 65 };
    if (g->size) return gsize_of(g->size);
    if (g->has_symbols && g->m->symbols && grow_one_in(g, 3)) {
        gsize s;
        memcpy(s.at, g->m->symbol[grow_below(g, g->m->symbols)].at, sizeof s.at);
        return s;
    }
    if (g->palette.row_count) return gsize_of(g->palette.size[grow_below(g, PALETTE_SIZES)]);
    if (g->has_zeros && grow_one_in(g, 12)) return gsize_of(0);
    if (grow_one_in(g, 6)) return gsize_of(1);
    for (;;) {
        const int64_t size = grow_one_in(g, 2) ? odd[grow_below(g, COUNT_OF(odd))] : grow_between(g, 1, g->size_max);
        if (size <= g->size_max) return gsize_of(size);
    }
}

/* ---- leaves ---- */

gfill grow_fill(grow *g, sinter_dtype dtype)
{
    gfill f = { .seed = test_random(&g->seed) >> 44 };
    static const gfill floats[] = {
        { -4, 4, 1, 0 }, { -2, 2, 0.25, 0 }, { -1, 1, 0, 0 }, { -3, 3, 0, 0 }, { 0.25, 2, 0, 0 }
    };
    if (dtype == SINTER_DTYPE_BOOL) return (gfill){ 0, 1, 1, f.seed };
    if (!dtype_is_float(dtype)) return (gfill){ dtype_is_signed(dtype) && grow_one_in(g, 2) ? -5 : 0, 6, 1, f.seed };
    const uint64_t seed = f.seed;
    f = floats[grow_below(g, COUNT_OF(floats))];
    f.seed = seed;
    if (g->has_specials && grow_one_in(g, 2)) f.seed |= G_SPECIAL;
    return f;
}

static void see(grow *g, uint32_t v)
{
    *(uint32_t *)VEC_PUSH(g->m->a, &g->seen) = v;
}

/* A symbol of these sizes: one that exists, mostly. */
static uint32_t symbol_of(grow *g, gsize s)
{
    uint32_t found = G_NONE;
    for (uint32_t i = 0; i < g->m->symbols; i++)
        if (i != g->m->past && !memcmp(g->m->symbol[i].at, s.at, g->m->envs * sizeof s.at[0]) &&
            (found == G_NONE || grow_one_in(g, 2)))
            found = i;
    if (found != G_NONE && !grow_one_in(g, 6)) return found;
    const uint32_t made = gmodel_symbol(g->m, s.at);
    if (made != G_NONE) g->m->symbol[made].is_free = grow_one_in(g, 6);
    return made == G_NONE ? found : made;
}

bool grow_fits(const grow *g, const gsize *d, uint32_t rank)
{
    for (uint32_t k = 0; k < g->m->envs; k++) {
        int64_t count = 1, strides = 1; /* strides count an axis of size 0 as one of size 1 */
        for (uint32_t i = 0; i < rank && strides < (int64_t)1 << 40; i++) {
            count *= d[i].at[k];
            strides *= d[i].at[k] ? d[i].at[k] : 1;
        }
        if (count > g->count_max || strides >= (int64_t)1 << 40) return false;
    }
    return rank <= SINTER_RANK_MAX;
}

uint32_t grow_leaf(grow *g, sinter_dtype dtype, const gsize *d, uint32_t rank, bool is_const, gfill fill)
{
    gmodel *m = g->m;
    gdim dims[SINTER_RANK_MAX] = { { 0, 0 } };
    if (!grow_fits(g, d, rank)) return G_NONE;
    if (!is_const && m->scope.at[0].param.count >= G_IO / 2) return G_NONE; /* the rest is for lists of integers */
    for (uint32_t i = 0; i < rank; i++) {
        dims[i] = (gdim){ G_NONE, d[i].at[0] };
        if (gsize_is_const(g, d[i])) continue;
        if (m->past != G_NONE && gsize_same(g, d[i], g->rows)) return G_NONE;
        dims[i].symbol = symbol_of(g, d[i]);
        if (dims[i].symbol == G_NONE || is_const) return G_NONE;
    }
    const uint32_t scope = is_const && grow_one_in(g, 2) ? g->scope : 0;
    const uint32_t id = gmodel_value(m, is_const ? G_CONST : G_INPUT, scope, dtype);
    gvalue *v = &m->value.at[id];
    v->rank = rank;
    v->fill = fill;
    memcpy(v->dim, dims, sizeof dims);
    if (!is_const) *(uint32_t *)VEC_PUSH(m->a, &m->scope.at[0].param) = id;
    judge_leaf(m, id);
    see(g, id);
    return id;
}

static uint32_t explicit_leaf(grow *g, sinter_dtype dtype, const gsize *at, uint32_t count, bool is_scalar,
                              bool is_const)
{
    gmodel *m = g->m;
    const uint32_t id = gmodel_value(m, is_const ? G_CONST : G_INPUT, is_const ? g->scope : 0, dtype);
    gvalue *v = &m->value.at[id];
    v->rank = is_scalar ? 0 : 1;
    v->dim[0] = (gdim){ G_NONE, count };
    v->is_explicit = true;
    for (uint32_t k = 0; k < m->envs; k++) {
        v->data[k] = gtensor_new(m->a, dtype, v->rank, (const int64_t[]){ count });
        for (uint32_t i = 0; i < count; i++) dtype_store_i64(dtype, v->data[k]->data, i, at[i].at[k]);
    }
    if (!is_const) *(uint32_t *)VEC_PUSH(m->a, &m->scope.at[0].param) = id;
    judge_leaf(m, id);
    return id;
}

uint32_t grow_input_ints(grow *g, sinter_dtype dtype, const gsize *at, uint32_t count, bool is_scalar)
{
    return explicit_leaf(g, dtype, at, count, is_scalar, false);
}

uint32_t grow_const_ints(grow *g, const int64_t *at, uint32_t count)
{
    gsize s[64];
    for (uint32_t i = 0; i < count; i++) s[i] = gsize_of(at[i]);
    return explicit_leaf(g, SINTER_DTYPE_I64, s, count, false, true);
}

uint32_t grow_const_scalar(grow *g, sinter_dtype dtype, double x)
{
    const uint32_t id = explicit_leaf(g, dtype, (const gsize[]){ gsize_of(0) }, 1, true, true);
    gvalue *v = &g->m->value.at[id];
    if (dtype_is_float(dtype)) dtype_store_f64(dtype, v->data[0]->data, 0, x);
    else dtype_store_i64(dtype, v->data[0]->data, 0, (int64_t)x);
    judge_leaf(g->m, id);
    return id;
}

uint32_t grow_weight(grow *g, sinter_dtype dtype, const int64_t *d, uint32_t rank, double scale)
{
    gsize s[SINTER_RANK_MAX];
    for (uint32_t i = 0; i < rank; i++) s[i] = gsize_of(d[i]);
    gfill f = { -scale, scale, grow_one_in(g, 2) ? scale / 4 : 0, test_random(&g->seed) >> 44 };
    if (!dtype_is_float(dtype)) f = (gfill){ dtype_is_signed(dtype) ? -3 : 0, 4, 1, f.seed };
    return grow_leaf(g, dtype, s, rank, !grow_one_in(g, 5), f);
}

/* ---- finding values ---- */

uint32_t grow_find(grow *g, uint64_t types, uint32_t rank_min, uint32_t rank_max)
{
    uint32_t found = G_NONE, count = 0;
    for (uint32_t i = 0; i < g->seen.count; i++) {
        const uint32_t v = g->seen.at[i];
        if (!(types >> grow_type(g, v) & 1) || grow_rank(g, v) < rank_min || grow_rank(g, v) > rank_max) continue;
        /* Newer ones are likelier. */
        const uint32_t weight = 1 + 4 * i / g->seen.count;
        count += weight;
        if (pick_below(g, count) < weight) found = v;
    }
    return found;
}

static sinter_dtype type_among(grow *g, uint64_t types)
{
    if (types & g->types) types &= g->types;
    sinter_dtype found = SINTER_DTYPE_NONE;
    for (uint32_t i = 1, count = 0; i < SINTER_DTYPE_COUNT; i++)
        if (types >> i & 1 && grow_below(g, ++count) == 0) found = (sinter_dtype)i;
    if (types & T_F32 && grow_one_in(g, 2)) return SINTER_DTYPE_F32;
    return found;
}

uint32_t grow_pick(grow *g, uint64_t types, uint32_t rank_min, uint32_t rank_max)
{
    if (rank_max > SINTER_RANK_MAX) rank_max = SINTER_RANK_MAX;
    const uint32_t found = grow_find(g, types, rank_min, rank_max);
    if (found != G_NONE && pick_below(g, 8)) return found;
    gsize d[SINTER_RANK_MAX];
    if (g->palette.row_count && rank_min <= 4 && rank_max > 4) rank_max = 4;
    const uint32_t usual = rank_max > 5 && !grow_one_in(g, 10) ? (rank_min > 5 ? rank_min : 5) : rank_max,
                   rank = (uint32_t)grow_between(g, rank_min, usual);
    for (uint32_t i = 0; i < rank; i++) d[i] = grow_size(g);
    const sinter_dtype dtype = type_among(g, types);
    const uint32_t made = grow_leaf(g, dtype, d, rank, false, grow_fill(g, dtype));
    return made == G_NONE ? found : made;
}

static bool has_shape(const grow *g, uint32_t v, const gsize *d, uint32_t rank)
{
    if (grow_rank(g, v) != rank) return false;
    for (uint32_t i = 0; i < rank; i++)
        if (!gsize_same(g, grow_dim(g, v, i), d[i])) return false;
    return true;
}

uint32_t grow_shaped(grow *g, sinter_dtype dtype, const gsize *d, uint32_t rank)
{
    uint32_t found = G_NONE, count = 0;
    bool is_const = true;
    for (uint32_t i = 0; i < g->seen.count; i++)
        if (grow_type(g, g->seen.at[i]) == dtype && has_shape(g, g->seen.at[i], d, rank) && pick_below(g, ++count) == 0)
            found = g->seen.at[i];
    if (found != G_NONE && pick_below(g, 4)) return found;
    for (uint32_t i = 0; i < rank; i++) is_const &= gsize_is_const(g, d[i]);
    const uint32_t made = grow_leaf(g, dtype, d, rank, is_const && grow_one_in(g, 2), grow_fill(g, dtype));
    return made == G_NONE ? found : made;
}

bool grow_broadcasts(const grow *g, uint32_t a, uint32_t b)
{
    const uint32_t ra = grow_rank(g, a), rb = grow_rank(g, b), rank = ra > rb ? ra : rb;
    gsize d[SINTER_RANK_MAX];
    for (uint32_t i = 0; i < rank; i++) {
        const gsize x = i < ra ? grow_dim(g, a, ra - 1 - i) : gsize_of(1),
                    y = i < rb ? grow_dim(g, b, rb - 1 - i) : gsize_of(1);
        d[i] = x;
        for (uint32_t k = 0; k < g->m->envs; k++) {
            if (x.at[k] != y.at[k] && x.at[k] != 1 && y.at[k] != 1) return false;
            if (x.at[k] == 1) d[i].at[k] = y.at[k];
        }
    }
    return grow_fits(g, d, rank);
}

uint32_t grow_fellow(grow *g, uint32_t v, sinter_dtype dtype)
{
    if (v == G_NONE) return G_NONE;
    uint32_t found = G_NONE, count = 0;
    if (grow_type(g, v) == dtype && !pick_below(g, 8)) return v;
    for (uint32_t i = 0; i < g->seen.count; i++)
        if (grow_type(g, g->seen.at[i]) == dtype && grow_broadcasts(g, v, g->seen.at[i]) && pick_below(g, ++count) == 0)
            found = g->seen.at[i];
    if (found != G_NONE && pick_below(g, 2)) return found;
    gsize d[SINTER_RANK_MAX];
    const uint32_t rank = grow_rank(g, v), from = grow_one_in(g, 3) ? grow_below(g, rank + 1) : 0;
    bool is_const = true;
    for (uint32_t i = from; i < rank; i++) {
        d[i - from] = grow_one_in(g, 4) ? gsize_of(1) : grow_dim(g, v, i);
        is_const &= gsize_is_const(g, d[i - from]);
    }
    const uint32_t made = grow_leaf(g, dtype, d, rank - from, is_const && grow_one_in(g, 2), grow_fill(g, dtype));
    return made == G_NONE ? found : made;
}

/* ---- integers ---- */

/* One element as an I64 of rank 1 from the shape of a value that has such an axis. */
static uint32_t from_shape(grow *g, gsize s)
{
    uint32_t value = G_NONE, axis = 0, count = 0;
    for (uint32_t i = 0; i < g->seen.count; i++)
        for (uint32_t k = 0; k < grow_rank(g, g->seen.at[i]); k++)
            if (gsize_same(g, grow_dim(g, g->seen.at[i], k), s) && grow_below(g, ++count) == 0) {
                value = g->seen.at[i];
                axis = k;
            }
    if (value == G_NONE) return G_NONE;
    if (grow_one_in(g, 3)) {
        const uint32_t n = grow_begin(g, "Shape");
        grow_in(g, n, value);
        grow_int(g, n, "start", axis);
        grow_int(g, n, "end", axis + 1);
        return grow_end(g, n, 1);
    }
    const uint32_t shape = grow_1(g, "Shape", value);
    if (shape == G_NONE) return G_NONE;
    return grow_2(g, "Gather", shape, grow_const_ints(g, (const int64_t[]){ axis }, 1));
}

static uint32_t of_shapes(grow *g, const gsize *at, uint32_t count, bool is_scalar)
{
    uint32_t part[G_IN];
    if (!count || count > G_IN) return G_NONE;
    for (uint32_t i = 0; i < count; i++) {
        part[i] = gsize_is_const(g, at[i]) ? grow_const_ints(g, &at[i].at[0], 1) : from_shape(g, at[i]);
        if (part[i] == G_NONE) return G_NONE;
    }
    if (is_scalar) {
        const uint32_t n = grow_begin(g, "Squeeze");
        grow_in(g, n, part[0]);
        return grow_end(g, n, 1);
    }
    if (count == 1) return part[0];
    const uint32_t n = grow_begin(g, "Concat");
    for (uint32_t i = 0; i < count; i++) grow_in(g, n, part[i]);
    grow_int(g, n, "axis", 0);
    return grow_end(g, n, 1);
}

uint32_t grow_ints(grow *g, const gsize *at, uint32_t count, bool is_scalar)
{
    bool is_const = true;
    for (uint32_t i = 0; i < count; i++) is_const &= gsize_is_const(g, at[i]);
    if (grow_one_in(g, is_const ? 8 : 3)) {
        const uint32_t made = grow_computed(g, at, count, is_scalar);
        if (made != G_NONE || g->is_refused) return made;
    }
    const uint32_t way = grow_below(g, 10);
    if (is_const && way < 7) return explicit_leaf(g, SINTER_DTYPE_I64, at, count, is_scalar, true);
    if (way != 9) {
        const uint32_t made = of_shapes(g, at, count, is_scalar);
        if (made != G_NONE) return made;
    }
    return explicit_leaf(g, SINTER_DTYPE_I64, at, count, is_scalar, false);
}

uint32_t grow_axes(grow *g, const int64_t *at, uint32_t count)
{
    gsize s[SINTER_RANK_MAX];
    for (uint32_t i = 0; i < count; i++) s[i] = gsize_of(at[i]);
    if (!count && grow_one_in(g, 3)) { /* an input of no elements */
        s[0] = gsize_of(0);
        return grow_leaf(g, SINTER_DTYPE_I64, s, 1, false, (gfill){ 0, 0, 1, grow_below(g, 999) });
    }
    return count && grow_one_in(g, 3) ? grow_ints(g, s, count, false) : grow_const_ints(g, at, count);
}

/* ---- nodes ---- */

void grow_since(grow *g, int64_t version)
{
    if (version <= g->m->opset) return;
    if (g->keeps_opset) g->is_unfit = true;
    else g->m->opset = version;
}

void grow_since_type(grow *g, sinter_dtype dtype)
{
    const uint64_t set = (uint64_t)1 << dtype;
    grow_since(g, set & T_I2 ? 25 : set & T_F4 ? 23 : set & T_I4 ? 21 : set & T_F8 ? 19 : 1);
}

uint32_t grow_begin(grow *g, const char *op)
{
    const gop *row = gop_find(op);
    if (row && !strchr(op, '.') && !(g->keeps_opset && gop_has_old(op, g->m->opset))) grow_since(g, row->since);
    return gmodel_node(g->m, op, g->scope);
}

void grow_in(grow *g, uint32_t node, uint32_t value)
{
    gnode *n = &g->m->node.at[node];
    if (n->count_in == G_IN) abort();
    if (value < G_ABSENT && (((uint64_t)1 << grow_type(g, value)) & T_SMALL)) {
        grow_since_type(g, grow_type(g, value));
        if (gop_moves(n->op)) grow_since(g, 21);
    }
    n->in[n->count_in++] = value;
}

void grow_int(grow *g, uint32_t node, const char *name, int64_t x)
{
    gnode_attr(&g->m->node.at[node], name, GA_INT)->i = x;
}

void grow_real(grow *g, uint32_t node, const char *name, double x)
{
    gnode_attr(&g->m->node.at[node], name, GA_REAL)->f = x;
}

void grow_text(grow *g, uint32_t node, const char *name, const char *s)
{
    gattr *a = gnode_attr(&g->m->node.at[node], name, GA_TEXT);
    (void)snprintf(a->text, sizeof a->text, "%s", s);
}

void grow_list(grow *g, uint32_t node, const char *name, const int64_t *at, uint32_t count)
{
    gattr *a = gnode_attr(&g->m->node.at[node], name, GA_INTS);
    a->count = count;
    for (uint32_t i = 0; i < count; i++) a->ints[i] = at[i];
}

static bool is_useful(grow *g, const gvalue *v)
{
    for (uint32_t k = 0; k < g->m->envs; k++) {
        const gtensor *t = v->at[k][0];
        const bool is_half = judge_type(g->m, t->dtype) == SINTER_DTYPE_F16;
        const double most = is_half ? 400 : 20000, least = is_half && t->dtype == SINTER_DTYPE_F32 ? 0x1p-14 : 0;
        if (t->count > g->count_max) return false;
        for (int64_t i = 0; i < t->count; i++)
            if ((!(fabs(gtensor_at(t, i)) <= most) && !(g->has_specials && !isfinite(gtensor_at(t, i)))) ||
                (gtensor_at(t, i) != 0 && fabs(gtensor_at(t, i)) < least))
                return false;
        if (judge_is_doubtful(g->m, v, k)) return false;
    }
    return true;
}

/* Operators of several steps whose results may be any others in a narrower type: what is rounded is an output, numbers
 * inside are too small for f16, experts are chosen inside. */
static bool is_open_narrow(const char *op)
{
    return strstr(op, "DynamicQuantize") || strstr(op, "SVM") || strstr(op, "MoE");
}

/* Lists and text are for the rows that make them. */
static bool is_of_its_own(const gmodel *m, uint32_t v)
{
    return m->value.at[v].is_list || m->value.at[v].is_text;
}

uint32_t grow_end(grow *g, uint32_t node, uint32_t outputs)
{
    gmodel *m = g->m;
    const bool is_unfit = g->is_unfit || (m->allow && is_open_narrow(m->node.at[node].op));
    g->is_unfit = false;
    for (uint32_t i = 0; i < m->node.at[node].count_in; i++) {
        if (m->node.at[node].in[i] == G_NONE) {
            m->node.count = node;
            return G_NONE;
        }
        if (m->node.at[node].in[i] == G_ABSENT) m->node.at[node].in[i] = G_NONE;
    }
    const bool is_taken = !is_unfit || !(g->keeps_opset || m->allow);
    if (!is_taken || (g->keeps_opset && !gop_old_form(m, &m->node.at[node]))) {
        m->node.count = node;
        return G_NONE;
    }
    grow_extras(g, node, &outputs);
    for (uint32_t i = 0; i < outputs; i++) {
        const bool is_named = grow_names(m->node.at[node].op, i);
        m->node.at[node].out[i] = is_named ? gmodel_value(m, G_RESULT, g->scope, SINTER_DTYPE_NONE) : G_NONE;
    }
    m->node.at[node].count_out = outputs;
    bool is_good = true;
    for (uint32_t k = 0; k < m->envs && is_good; k++) {
        if (judge_node(m, node, k)) continue;
        if (m->is_unfit) m->node.count = node;
        else g->is_refused = true;
        return G_NONE;
    }
    for (uint32_t i = 0; i < outputs && is_good; i++) {
        const uint32_t v = m->node.at[node].out[i];
        is_good = v == G_NONE || is_of_its_own(m, v) || is_useful(g, &m->value.at[v]);
    }
    if (!is_good) {
        m->node.count = node;
        return G_NONE;
    }
    for (uint32_t i = 0; i < outputs; i++)
        if (m->node.at[node].out[i] != G_NONE && !is_of_its_own(m, m->node.at[node].out[i]))
            see(g, m->node.at[node].out[i]);
    return m->node.at[node].out[0];
}

uint32_t grow_1(grow *g, const char *op, uint32_t x)
{
    return grow_3(g, op, x, G_ABSENT, G_ABSENT);
}

uint32_t grow_2(grow *g, const char *op, uint32_t x, uint32_t y)
{
    return grow_3(g, op, x, y, G_ABSENT);
}

uint32_t grow_3(grow *g, const char *op, uint32_t x, uint32_t y, uint32_t z)
{
    if (g->is_refused) return G_NONE;
    const uint32_t n = grow_begin(g, op);
    grow_in(g, n, x);
    if (y != G_ABSENT) grow_in(g, n, y);
    if (z != G_ABSENT) grow_in(g, n, z);
    return grow_end(g, n, 1);
}

uint32_t grow_cast(grow *g, uint32_t x, sinter_dtype to)
{
    if (x == G_NONE || grow_type(g, x) == to) return x;
    const uint32_t n = grow_begin(g, "Cast");
    grow_in(g, n, x);
    grow_int(g, n, "to", onnx_type_of(to));
    return grow_end(g, n, 1);
}

uint32_t grow_transpose(grow *g, uint32_t x, const int64_t *perm)
{
    if (x == G_NONE) return G_NONE;
    const uint32_t n = grow_begin(g, "Transpose");
    grow_in(g, n, x);
    grow_list(g, n, "perm", perm, grow_rank(g, x));
    return grow_end(g, n, 1);
}

uint32_t grow_reshape(grow *g, uint32_t x, const gsize *d, uint32_t rank)
{
    if (x == G_NONE) return G_NONE;
    const uint32_t shape = grow_ints(g, d, rank, false), n = grow_begin(g, "Reshape");
    grow_in(g, n, x);
    grow_in(g, n, shape);
    for (uint32_t i = 0; i < rank; i++) {
        if (gsize_min(g, d[i]) > 0) continue;
        grow_int(g, n, "allowzero", 1);
        break;
    }
    return grow_end(g, n, 1);
}

/* ---- graphs ---- */

/* Is it said what the operator makes of numbers that are none? SwiGLU multiplies three: whether infinity meets what is
 * nearly 0 or 0 is up to the order. */
static bool takes_specials(const gop *op)
{
    if (!strcmp(op->name, "SwiGLU")) return false;
    const gop *const list[] = { gops_elementwise, gops_move, gops_control };
    for (uint32_t t = 0; t < COUNT_OF(list); t++)
        for (const gop *row = list[t]; row->name; row++)
            if (row == op) return true;
    if (!strcmp(op->name, "QuantizeLinear") || !strcmp(op->name, "DequantizeLinear")) return true;
    return !strcmp(op->name, "MatMul") || !strcmp(op->name, "views");
}

static const gop *any_row(grow *g)
{
    uint32_t total = 0;
    const gop *chosen = NULL;
    for (uint32_t i = 0; gop_at(i); i++) {
        const gop *op = gop_at(i);
        if (!op->add || !op->weight || (g->depth && op->weight == 1)) continue;
        if (g->has_specials && !takes_specials(op)) continue;
        total += op->weight;
        if (grow_below(g, total) < op->weight) chosen = op;
    }
    return chosen;
}

static bool add_row(grow *g, const gop *op)
{
    const uint32_t first = g->m->node.count;
    const bool did = op->add(g, op) && !g->is_refused;
    /* A node that was begun and found no operand. */
    for (uint32_t i = first; i < g->m->node.count; i++) g->m->node.at[i].is_dead |= !g->m->node.at[i].count_out;
    return did;
}

bool grow_some(grow *g)
{
    const palette *p = &g->palette;
    if (!p->row_count) {
        const gop *chosen = any_row(g);
        return chosen && add_row(g, chosen);
    }
    const uint32_t i = pick_below(g, p->row_count);
    const uint64_t before = g->seed;
    g->seed = p->seed[i];
    const bool did = add_row(g, p->row[i]);
    g->seed = before;
    return did;
}

static void choose_palette(grow *g, uint64_t seed)
{
    static const int64_t sizes[] = { 2, 3, 4, 5, 6, 7, 8, 9, 12, 16, 17 };
    static const uint64_t types[] = { T_F32, T_F32, T_F32 | T_OF(I64), T_F32 | T_OF(F16), T_F32 | T_B, T_F };
    grow chance = { .seed = seed };
    palette p = { .size = { 1, 0, 0 } };
    for (uint32_t i = 1; i < PALETTE_SIZES; i++) p.size[i] = sizes[grow_below(&chance, COUNT_OF(sizes))];
    p.types = types[grow_below(&chance, COUNT_OF(types))];
    for (uint32_t i = 0; i < PALETTE_ROWS; i++) {
        p.row[i] = any_row(&chance);
        p.seed[i] = test_random(&chance.seed);
    }
    p.row_count = PALETTE_ROWS;
    g->palette = p;
    g->types = p.types;
}

static void choose_symbols(grow *g)
{
    static const int64_t usual[] = { 1, 2, 3, 4, 5, 6, 7, 8, 9, 12, 16, 17, 20 };
    gmodel *m = g->m;
    const uint32_t count = 1 + grow_below(g, 3);
    for (uint32_t i = 0; i < count; i++) {
        int64_t at[G_ENVS];
        const uint32_t kind = grow_below(g, 4);
        bool is_same = true;
        for (uint32_t k = 0; k < G_ENVS; k++) {
            at[k] = usual[grow_below(g, COUNT_OF(usual))];
            if (kind == 0) at[k] = 1 + grow_below(g, 3);
            if (g->has_zeros && kind <= 1) at[k] = grow_below(g, 3);
            while (at[k] > g->size_max) at[k] /= 2;
            is_same &= at[k] == at[0];
        }
        if (is_same) at[1] = at[0] + 1;
        const uint32_t s = gmodel_symbol(m, at);
        m->symbol[s].is_free = grow_one_in(g, 5);
    }
}

static void choose_profiles(grow *g)
{
    gmodel *m = g->m;
    m->profiles = m->symbols && m->envs > 1 && grow_one_in(g, 3) ? 2 : 1;
    for (uint32_t k = 0; k < m->envs; k++) m->profile_of[k] = k % m->profiles;
    for (uint32_t i = 0; i < m->symbols; i++) {
        gsymbol *s = &m->symbol[i];
        for (uint32_t p = 0; p < m->profiles; p++) {
            s->min[p] = s->max[p] = s->opt[p] = s->at[p];
            for (uint32_t k = p; k < m->envs; k += m->profiles) {
                s->min[p] = s->at[k] < s->min[p] ? s->at[k] : s->min[p];
                s->max[p] = s->at[k] > s->max[p] ? s->at[k] : s->max[p];
            }
            if (grow_one_in(g, 3)) s->max[p] += grow_below(g, 4);
            if (grow_one_in(g, 3) && s->min[p] > 1) s->min[p] -= 1;
        }
    }
}

static void choose_outputs(grow *g)
{
    gmodel *m = g->m;
    bool *is_read = ARENA_NEW(m->a, bool, m->value.count + 1);
    for (uint32_t i = 0; i < m->node.count; i++)
        for (uint32_t k = 0; k < m->node.at[i].count_in; k++)
            if (m->node.at[i].in[k] != G_NONE) is_read[m->node.at[i].in[k]] = true;
    for (uint32_t i = 0; i < m->scope.count; i++)
        for (uint32_t k = 0; k < m->scope.at[i].result.count; k++) is_read[m->scope.at[i].result.at[k]] = true;
    for (uint32_t i = 0; i < g->seen.count; i++) {
        const uint32_t v = g->seen.at[i];
        const gkind kind = m->value.at[v].kind;
        const bool wanted = kind != G_RESULT ? grow_one_in(g, 40)
                            : is_read[v]     ? grow_one_in(g, 8)
                                             : !grow_one_in(g, 12);
        if (wanted && m->value.at[v].scope == 0 && m->scope.at[0].result.count < 24)
            *(uint32_t *)VEC_PUSH(m->a, &m->scope.at[0].result) = v;
    }
}

bool grow_model(gmodel *m, uint64_t seed, const grow_options *o)
{
    static const int64_t opsets[] = { 18, 18, 19, 20, 21, 22, 23 };
    static const uint64_t types[] = {
        T_F32, T_F32, T_F32 | T_OF(I64), T_F32 | T_OF(I32) | T_B, T_F32 | T_OF(F16), T_F32 | T_I, T_F, T_ALL
    };
    grow g = { .m = m, .seed = seed, .pick_seed = ~seed, .size = o->size, .count_max = 2048, .size_max = 9 };
    (void)test_random(&g.seed);
    m->allow = o->allow;
    m->opset = opsets[grow_below(&g, COUNT_OF(opsets))];
    const gop *only = o->only ? gop_find(o->only) : NULL;
    if (grow_one_in(&g, 8) && (!only || gop_has_old(only->name, 13))) {
        g.keeps_opset = true;
        m->opset = grow_between(&g, 7, 17);
    }
    for (const gop *old = gops_old; only && old->name; old++)
        if (old == only) {
            g.keeps_opset = true;
            m->opset = old->since;
        }
    m->envs = 2 + grow_below(&g, G_ENVS - 1);
    g.types = types[grow_below(&g, COUNT_OF(types))];
    g.has_zeros = !o->is_static && grow_one_in(&g, 4);
    g.has_symbols = !o->is_static && grow_one_in(&g, 2);
    g.has_specials = (!only || takes_specials(only)) && !o->palette && !o->allow && grow_one_in(&g, 10);
    if (grow_one_in(&g, 4)) {
        g.size_max = 70;
        g.count_max = 16384;
    }
    if (o->palette) choose_palette(&g, o->palette);
    if (g.has_symbols) choose_symbols(&g);
    if (o->has_states) grow_rows(&g);
    if (o->palette) g.seed = o->palette;
    for (uint32_t i = 1 + pick_below(&g, 3); i-- > 0;) (void)grow_pick(&g, T_ALL, 1, 5);
    g.seed = ~seed * 3;
    for (uint32_t tries = 0; only && only->add && tries < 20 && !g.is_refused && !add_row(&g, only); tries++) {}
    g.nodes_left = o->nodes ? 1 + grow_below(&g, o->nodes) : 0;
    for (uint32_t tries = 0; g.nodes_left && tries < 4 * o->nodes && !g.is_refused; tries++)
        g.nodes_left -= grow_some(&g);
    if (g.is_refused) {
        const gnode *last = &m->node.at[m->node.count - 1];
        if (last->scope == 0)
            for (uint32_t i = 0; i < last->count_out; i++)
                *(uint32_t *)VEC_PUSH(m->a, &m->scope.at[0].result) = last->out[i];
        choose_profiles(&g);
        return false;
    }
    choose_outputs(&g);
    if (o->has_states) grow_states(&g);
    choose_profiles(&g);
    m->has_constant_nodes = grow_one_in(&g, 4);
    gmodel_sweep(m, grow_one_in(&g, 10));
    return true;
}
