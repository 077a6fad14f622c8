/* SPDX-License-Identifier: Apache-2.0 */
/* graph_text.c - the text form of a test's model: what reports print and the corpus holds.
 *
 *     opset 18                                   then "constants" where constants are nodes, or nothing
 *     allow bf16                                 the narrower type that f32 work uses; or no such line
 *     envs 2 profiles 0 1                        the profile of each environment
 *     symbol N 3 1 range 1 3 3 range 1 1 3       its size in each environment; min, opt, max of each profile
 *     input x f32 [N,4] fill -2 2 0.25 7         lo, hi, step, seed; then "special", or nothing
 *     input i i64 [2] data 0 1 | 1 0             one list for each environment
 *     const c f32 [4] data 1 2 3 4
 *     y = Softmax(x) axis=1                      texts: activations=~"Relu Tanh"
 *     z = If(b)
 *     graph then_branch of z
 *     ...
 *     result v
 *     end
 *     output y z
 *     rows N                                     states grow, and had N rows before a run
 *     state x y                                  input x and output y stay in the context */
#include "graph_model.h"

#include <math.h>

/* By the bits of SINTER_ALLOW_…. */
static const char *const permitted[] = { "fp16", "bf16", "tf32", "int8" };

/* ---- print ---- */

static void print_number(text *o, sinter_dtype dtype, const gtensor *t, int64_t i)
{
    if (dtype_is_float(dtype)) text_f64(o, gtensor_at(t, i));
    else text_printf(o, "%lld", (long long)dtype_load_i64(dtype, t->data, i));
}

static void print_leaf(const gmodel *m, const gvalue *v, text *o)
{
    static const char *const word[] = { "input", "const", "param", "" };
    text_printf(o, "%s %s %s ", word[v->kind], v->name, sinter_dtype_name(v->dtype));
    if (v->has_no_shape) text_printf(o, "?");
    for (uint32_t i = 0; i <= v->rank && !v->has_no_shape; i++) {
        const gdim d = v->dim[i < v->rank ? i : 0];
        text_printf(o, "%s", i == 0 ? "[" : i < v->rank ? "," : "");
        if (i == v->rank) text_printf(o, "]");
        else if (d.symbol != G_NONE) text_printf(o, "%s", m->symbol[d.symbol].name);
        else if (d.size < 0) text_printf(o, "?");
        else text_printf(o, "%lld", (long long)d.size);
    }
    if (v->kind == G_PARAM) {
        text_printf(o, "\n");
        return;
    }
    if (!v->is_explicit) {
        text_printf(o, " fill ");
        text_f64(o, v->fill.lo);
        text_printf(o, " ");
        text_f64(o, v->fill.hi);
        text_printf(o, " ");
        text_f64(o, v->fill.step);
        text_printf(o, " %llu%s\n", (unsigned long long)(v->fill.seed & ~G_SPECIAL),
                    v->fill.seed & G_SPECIAL ? " special" : "");
        return;
    }
    text_printf(o, " data");
    for (uint32_t k = 0; k < (v->kind == G_CONST ? 1 : m->envs); k++) {
        if (k) text_printf(o, " |");
        for (int64_t i = 0; i < v->data[k]->count; i++) {
            text_printf(o, " ");
            print_number(o, v->dtype, v->data[k], i);
        }
    }
    text_printf(o, "\n");
}

static void print_attr(const gattr *a, text *o)
{
    text_printf(o, " %s=", a->name);
    switch (a->kind) {
    case GA_INT: text_printf(o, "%lld", (long long)a->i); return;
    case GA_REAL:
        text_printf(o, "~");
        text_f64(o, a->f);
        return;
    case GA_TEXT: text_printf(o, "\"%s\"", a->text); return;
    case GA_TEXTS: text_printf(o, "~\"%s\"", a->text); return;
    case GA_TENSOR:
        text_printf(o, "%s:", sinter_dtype_name(a->dtype));
        if (a->count) break;
        text_f64(o, a->f);
        return;
    case GA_GRAPH: text_printf(o, "graph"); return;
    default: break;
    }
    const bool is_real = a->kind == GA_REALS || a->kind == GA_TENSOR;
    text_printf(o, a->kind == GA_REALS ? "~[" : "[");
    for (uint32_t i = 0; i < a->count; i++) {
        if (i) text_printf(o, ",");
        if (is_real) text_f64(o, a->reals[i]);
        else text_printf(o, "%lld", (long long)a->ints[i]);
    }
    text_printf(o, "]");
}

static void print_scope(const gmodel *m, uint32_t scope, text *o);

static void print_node(const gmodel *m, const gnode *n, text *o)
{
    for (uint32_t i = 0; i < n->count_out; i++)
        text_printf(o, "%s%s", i ? ", " : "", n->out[i] == G_NONE ? "_" : m->value.at[n->out[i]].name);
    text_printf(o, " = %s(", n->op);
    for (uint32_t i = 0; i < n->count_in; i++)
        text_printf(o, "%s%s", i ? ", " : "", n->in[i] == G_NONE ? "_" : m->value.at[n->in[i]].name);
    text_printf(o, ")");
    for (uint32_t i = 0; i < n->count_attr; i++) print_attr(&n->attr[i], o);
    text_printf(o, "\n");
    for (uint32_t i = 0; i < n->count_attr; i++) {
        if (n->attr[i].kind != GA_GRAPH) continue;
        text_printf(o, "graph %s\n", n->attr[i].name);
        print_scope(m, (uint32_t)n->attr[i].i, o);
        text_printf(o, "end\n");
    }
}

static void print_scope(const gmodel *m, uint32_t scope, text *o)
{
    const gscope *s = &m->scope.at[scope];
    for (uint32_t i = 0; i < s->param.count; i++) print_leaf(m, &m->value.at[s->param.at[i]], o);
    for (uint32_t i = 0; i < m->value.count; i++)
        if (m->value.at[i].kind == G_CONST && m->value.at[i].scope == scope && gvalue_is_used(m, i))
            print_leaf(m, &m->value.at[i], o);
    for (uint32_t i = 0; i < m->node.count; i++)
        if (m->node.at[i].scope == scope && !m->node.at[i].is_dead) print_node(m, &m->node.at[i], o);
    text_printf(o, scope ? "result" : "output");
    for (uint32_t i = 0; i < s->result.count; i++) text_printf(o, " %s", m->value.at[s->result.at[i]].name);
    text_printf(o, "\n");
}

void gmodel_print(const gmodel *m, text *o)
{
    text_printf(o, "opset %lld%s\n", (long long)m->opset, m->has_constant_nodes ? " constants" : "");
    for (uint32_t i = 0; i < COUNT_OF(permitted); i++)
        if (m->allow == 1u << i) text_printf(o, "allow %s\n", permitted[i]);
    text_printf(o, "envs %u profiles", m->envs);
    for (uint32_t k = 0; k < m->envs; k++) text_printf(o, " %u", m->profile_of[k]);
    text_printf(o, "\n");
    for (uint32_t i = 0; i < m->symbols; i++) {
        const gsymbol *s = &m->symbol[i];
        text_printf(o, "symbol %s%s", s->name, s->is_free ? " free" : "");
        for (uint32_t k = 0; k < m->envs; k++) text_printf(o, " %lld", (long long)s->at[k]);
        for (uint32_t p = 0; p < m->profiles; p++)
            text_printf(o, " range %lld %lld %lld", (long long)s->min[p], (long long)s->opt[p], (long long)s->max[p]);
        text_printf(o, "\n");
    }
    print_scope(m, 0, o);
    if (m->states && m->past != G_NONE) text_printf(o, "rows %s\n", m->symbol[m->past].name);
    for (uint32_t i = 0; i < m->states; i++)
        text_printf(o, "state %s %s\n", m->value.at[m->state[i].in].name, m->value.at[m->state[i].out].name);
}

/* ---- parse ---- */

typedef struct reader {
    gmodel *m;
    scan at;
    uint32_t line;
    uint32_t scope;
} reader;

static bool bad(reader *r, const char *why)
{
    if (!r->m->error[0]) (void)snprintf(r->m->error, sizeof r->m->error, "line %u: %s", r->line, why);
    return false;
}

static bool word_of(reader *r, char *out, size_t size)
{
    scan_space(&r->at);
    size_t n = 0;
    while (r->at.at < r->at.end && !strchr(" ,()[]=|\n\"", *r->at.at) && n + 1 < size) out[n++] = *r->at.at++;
    out[n] = 0;
    return n > 0;
}

static bool is_next(reader *r, char c)
{
    scan_space(&r->at);
    return scan_char(&r->at, c);
}

static bool whole(reader *r, int64_t *out)
{
    scan_space(&r->at);
    return scan_i64(&r->at, out);
}

static bool number(reader *r, double *out)
{
    scan_space(&r->at);
    return scan_f64(&r->at, out);
}

static bool at_end(reader *r)
{
    scan_space(&r->at);
    return r->at.at == r->at.end;
}

/* The innermost value of that name that a scope sees; G_NONE for "_" and where there is none. */
static uint32_t find(const gmodel *m, const char *name, uint32_t scope)
{
    for (uint32_t i = m->value.count; i-- > 0;)
        if (!strcmp(m->value.at[i].name, name) && gscope_is_in(m, scope, m->value.at[i].scope)) return i;
    return G_NONE;
}

static bool symbol_line(reader *r)
{
    gmodel *m = r->m;
    if (m->symbols == G_SYMBOLS) return bad(r, "too many symbols");
    gsymbol *s = &m->symbol[m->symbols++];
    *s = (gsymbol){ 0 };
    if (!word_of(r, s->name, sizeof s->name)) return bad(r, "a symbol without a name");
    scan_space(&r->at);
    s->is_free = scan_word(&r->at, "free");
    for (uint32_t i = 0; i < m->envs; i++)
        if (!whole(r, &s->at[i])) return bad(r, "a symbol needs a size for each environment");
    for (uint32_t p = 0; p < G_PROFILES && !at_end(r); p++) {
        if (!scan_word(&r->at, "range") || !whole(r, &s->min[p]) || !whole(r, &s->opt[p]) || !whole(r, &s->max[p]))
            return bad(r, "a range is min, opt, max");
        if (p + 1 > m->profiles) m->profiles = p + 1;
    }
    return at_end(r) || bad(r, "text behind a symbol");
}

static bool shape_of(reader *r, gvalue *v)
{
    gmodel *m = r->m;
    if (is_next(r, '?')) {
        v->has_no_shape = true;
        return true;
    }
    if (!is_next(r, '[')) return bad(r, "a shape begins with [");
    while (!is_next(r, ']')) {
        char name[16];
        if (v->rank == SINTER_RANK_MAX) return bad(r, "too many axes");
        gdim *d = &v->dim[v->rank++];
        *d = (gdim){ G_NONE, -1 };
        if (whole(r, &d->size) || is_next(r, '?')) {
        } else if (word_of(r, name, sizeof name)) {
            for (uint32_t i = 0; i < m->symbols; i++)
                if (!strcmp(m->symbol[i].name, name)) d->symbol = i;
            if (d->symbol == G_NONE) return bad(r, "an unknown symbol");
        } else return bad(r, "a size or a symbol was expected");
        (void)is_next(r, ',');
    }
    return true;
}

static bool data_of(reader *r, gvalue *v)
{
    gmodel *m = r->m;
    v->is_explicit = true;
    for (uint32_t k = 0; k < (v->kind == G_CONST ? 1 : m->envs); k++) {
        int64_t d[SINTER_RANK_MAX] = { 0 };
        for (uint32_t i = 0; i < v->rank; i++)
            d[i] = v->dim[i].symbol == G_NONE ? v->dim[i].size : m->symbol[v->dim[i].symbol].at[k];
        v->data[k] = gtensor_new(m->a, v->dtype, v->rank, d);
        for (int64_t i = 0; i < v->data[k]->count; i++) {
            double f;
            int64_t n;
            if (dtype_is_float(v->dtype) ? !number(r, &f) : !whole(r, &n)) return bad(r, "too few numbers");
            if (dtype_is_float(v->dtype)) dtype_store_f64(v->dtype, v->data[k]->data, i, f);
            else dtype_store_i64(v->dtype, v->data[k]->data, i, n);
        }
        (void)is_next(r, '|');
    }
    return at_end(r) || bad(r, "too many numbers");
}

static bool leaf_line(reader *r, gkind kind)
{
    gmodel *m = r->m;
    char name[16], type[16];
    sinter_dtype dtype = SINTER_DTYPE_NONE;
    if (!word_of(r, name, sizeof name) || !word_of(r, type, sizeof type)) return bad(r, "a name was expected");
    const bool is_list = kind == G_PARAM && !strcmp(type, "none");
    if (!is_list && !dtype_parse(type, strlen(type), &dtype)) return bad(r, "a type was expected");
    const uint32_t id = gmodel_value(m, kind, r->scope, dtype);
    gvalue *v = &m->value.at[id];
    memcpy(v->name, name, sizeof name);
    if (!shape_of(r, v)) return false;
    if (kind != G_CONST) *(uint32_t *)VEC_PUSH(m->a, &m->scope.at[r->scope].param) = id;
    if (kind == G_PARAM) return at_end(r) || bad(r, "text behind a parameter");
    scan_space(&r->at);
    if (scan_word(&r->at, "data")) return data_of(r, v);
    int64_t seed = 0;
    if (!scan_word(&r->at, "fill") || !number(r, &v->fill.lo) || !number(r, &v->fill.hi) || !number(r, &v->fill.step) ||
        !whole(r, &seed))
        return bad(r, "data, or fill with lo, hi, step and seed was expected");
    v->fill.seed = (uint64_t)seed;
    scan_space(&r->at);
    if (scan_word(&r->at, "special")) v->fill.seed |= G_SPECIAL;
    return at_end(r) || bad(r, "text behind a fill");
}

static bool attr_of(reader *r, gnode *n)
{
    char name[32], word[48];
    if (!word_of(r, name, sizeof name) || !is_next(r, '=')) return bad(r, "an attribute was expected");
    gattr *a = gnode_attr(n, name, GA_INT);
    const bool is_real = is_next(r, '~');
    if (is_next(r, '"')) {
        a->kind = is_real ? GA_TEXTS : GA_TEXT;
        size_t k = 0;
        while (r->at.at < r->at.end && *r->at.at != '"' && k + 1 < sizeof a->text) a->text[k++] = *r->at.at++;
        return is_next(r, '"') || bad(r, "a text without its end");
    }
    if (is_next(r, '[')) {
        a->kind = is_real ? GA_REALS : GA_INTS;
        while (!is_next(r, ']')) {
            if (is_real ? a->count == COUNT_OF(a->reals) || !number(r, &a->reals[a->count])
                        : a->count == COUNT_OF(a->ints) || !whole(r, &a->ints[a->count]))
                return bad(r, "a number was expected");
            a->count++;
            (void)is_next(r, ',');
        }
        return true;
    }
    if (is_real) {
        a->kind = GA_REAL;
        return number(r, &a->f) || bad(r, "a number was expected");
    }
    if (whole(r, &a->i)) return true;
    if (!word_of(r, word, sizeof word)) return bad(r, "an attribute without a value");
    if (!strcmp(word, "graph")) {
        a->kind = GA_GRAPH;
        a->i = G_NONE;
        return true;
    }
    char *colon = strchr(word, ':');
    scan value = scan_of(colon ? colon + 1 : "", colon ? strlen(colon + 1) : 0);
    a->kind = GA_TENSOR;
    if (colon && !colon[1] && is_next(r, '[')) {
        while (!is_next(r, ']')) {
            if (a->count == COUNT_OF(a->reals) || !number(r, &a->reals[a->count]))
                return bad(r, "a number was expected");
            a->count++;
            (void)is_next(r, ',');
        }
        return dtype_parse(word, (size_t)(colon - word), &a->dtype) || bad(r, "an unknown type");
    }
    return (colon && dtype_parse(word, (size_t)(colon - word), &a->dtype) && scan_f64(&value, &a->f)) ||
           bad(r, "an unknown kind of attribute");
}

static bool node_line(reader *r)
{
    gmodel *m = r->m;
    char out[G_OUT][16] = { 0 }, name[48];
    uint32_t count_out = 0;
    do {
        if (count_out == G_OUT || !word_of(r, out[count_out++], sizeof out[0])) return bad(r, "a node has outputs");
    } while (is_next(r, ','));
    if (!is_next(r, '=') || !word_of(r, name, sizeof name) || !is_next(r, '(')) return bad(r, "a node was expected");
    const uint32_t id = gmodel_node(m, name, r->scope);
    gnode *n = &m->node.at[id];
    while (!is_next(r, ')')) {
        if (n->count_in == G_IN || !word_of(r, name, sizeof name)) return bad(r, "an input was expected");
        n->in[n->count_in] = find(m, name, r->scope);
        if (n->in[n->count_in++] == G_NONE && strcmp(name, "_") != 0) return bad(r, "an unknown input");
        (void)is_next(r, ',');
    }
    while (!at_end(r))
        if (!attr_of(r, n)) return false;
    n->count_out = count_out;
    for (uint32_t i = 0; i < count_out; i++) {
        n->out[i] = strcmp(out[i], "_") ? gmodel_value(m, G_RESULT, r->scope, SINTER_DTYPE_NONE) : G_NONE;
        if (n->out[i] != G_NONE) memcpy(m->value.at[n->out[i]].name, out[i], sizeof out[i]);
    }
    return true;
}

static bool scope_line(reader *r)
{
    gmodel *m = r->m;
    char name[32];
    if (!word_of(r, name, sizeof name)) return bad(r, "a graph needs a name");
    for (uint32_t i = m->node.count; i-- > 0;) {
        gnode *n = &m->node.at[i];
        if (n->scope != r->scope) continue;
        for (uint32_t k = 0; k < n->count_attr; k++) {
            if (strcmp(n->attr[k].name, name) != 0 || n->attr[k].kind != GA_GRAPH) continue;
            n->attr[k].i = r->scope = gmodel_scope(m, r->scope);
            return true;
        }
        break;
    }
    return bad(r, "the node before has no such graph");
}

static bool results_line(reader *r)
{
    char name[16];
    while (!at_end(r)) {
        if (!word_of(r, name, sizeof name)) return bad(r, "a name was expected");
        const uint32_t v = find(r->m, name, r->scope);
        if (v == G_NONE) return bad(r, "an unknown result");
        *(uint32_t *)VEC_PUSH(r->m->a, &r->m->scope.at[r->scope].result) = v;
    }
    return true;
}

static bool envs_line(reader *r)
{
    int64_t n;
    if (!whole(r, &n) || n < 1 || n > G_ENVS) return bad(r, "a number of environments was expected");
    r->m->envs = (uint32_t)n;
    scan_space(&r->at);
    if (!scan_word(&r->at, "profiles")) return at_end(r) || bad(r, "profiles were expected");
    for (uint32_t k = 0; k < r->m->envs; k++) {
        if (!whole(r, &n) || n < 0 || n >= G_PROFILES) return bad(r, "a profile was expected");
        r->m->profile_of[k] = (uint32_t)n;
    }
    return true;
}

static bool allow_line(reader *r)
{
    char name[16];
    if (word_of(r, name, sizeof name))
        for (uint32_t i = 0; i < COUNT_OF(permitted); i++)
            if (!strcmp(name, permitted[i])) r->m->allow = 1u << i;
    return r->m->allow ? at_end(r) || bad(r, "text behind a type") : bad(r, "fp16, bf16, tf32 or int8 was expected");
}

static bool rows_line(reader *r)
{
    char name[16];
    if (!word_of(r, name, sizeof name)) return bad(r, "a symbol was expected");
    for (uint32_t i = 0; i < r->m->symbols; i++)
        if (!strcmp(r->m->symbol[i].name, name)) r->m->past = i;
    return r->m->past != G_NONE ? at_end(r) || bad(r, "text behind a symbol") : bad(r, "an unknown symbol");
}

static bool state_line(reader *r)
{
    gmodel *m = r->m;
    char in[16], out[16];
    if (m->states == G_STATES) return bad(r, "too many states");
    if (!word_of(r, in, sizeof in) || !word_of(r, out, sizeof out))
        return bad(r, "an input and an output were expected");
    const gstate s = { find(m, in, 0), find(m, out, 0) };
    if (s.in == G_NONE || m->value.at[s.in].kind != G_INPUT || s.out == G_NONE)
        return bad(r, "an unknown input or output");
    m->state[m->states++] = s;
    return at_end(r) || bad(r, "text behind a state");
}

static bool one_line(reader *r)
{
    int64_t n;
    if (at_end(r) || *r->at.at == '#') return true;
    if (scan_word(&r->at, "opset")) {
        if (!whole(r, &n)) return bad(r, "a version was expected");
        r->m->opset = n;
        scan_space(&r->at);
        r->m->has_constant_nodes = scan_word(&r->at, "constants");
        return true;
    }
    if (scan_word(&r->at, "allow")) return allow_line(r);
    if (scan_word(&r->at, "envs")) return envs_line(r);
    if (scan_word(&r->at, "symbol")) return symbol_line(r);
    if (scan_word(&r->at, "input")) return leaf_line(r, G_INPUT);
    if (scan_word(&r->at, "const")) return leaf_line(r, G_CONST);
    if (scan_word(&r->at, "param")) return leaf_line(r, G_PARAM);
    if (scan_word(&r->at, "graph")) return scope_line(r);
    if (scan_word(&r->at, "result") || scan_word(&r->at, "output")) return results_line(r);
    if (scan_word(&r->at, "rows")) return rows_line(r);
    if (scan_word(&r->at, "state")) return state_line(r);
    if (scan_word(&r->at, "end")) {
        if (!r->scope) return bad(r, "an end without a graph");
        r->scope = r->m->scope.at[r->scope].parent;
        return true;
    }
    return node_line(r);
}

bool gmodel_parse(gmodel *m, const char *at, size_t size)
{
    reader r = { .m = m };
    for (const char *end = at + size; at < end;) {
        const char *stop = memchr(at, '\n', (size_t)(end - at));
        if (!stop) stop = end;
        r.at = scan_of(at, (size_t)(stop - at));
        r.line++;
        if (!one_line(&r)) return false;
        at = stop + 1;
    }
    return !r.scope || bad(&r, "a graph without its end");
}
