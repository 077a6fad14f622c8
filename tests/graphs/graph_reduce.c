/* SPDX-License-Identifier: Apache-2.0 */
/* graph_reduce.c - tries smaller models, each in a process of its own, and keeps what still fails in the same way. */
#include "graph_reduce.h"

#include "graph_ops.h"
#include "test.h"

#include <sys/mman.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

typedef struct reducer {
    const grun *o;
    char class[200];
    gverdict *found; /* shared with the processes that try */
    uint32_t tries;
    gmodel best;
} reducer;

enum { TRIES_MAX = 600 };

static void judge_and_run(gmodel *m, const grun *o, gverdict *v)
{
    for (uint32_t k = 0; k < m->envs; k++) {
        if (judge_model(m, k)) continue;
        (void)snprintf(v->stage, sizeof v->stage, "judge");
        (void)snprintf(v->text, sizeof v->text, "%s", m->error);
        return;
    }
    const gscope *main_scope = &m->scope.at[0];
    for (uint32_t i = 0; i < main_scope->result.count; i++)
        if (m->value.at[main_scope->result.at[i]].is_list || m->value.at[main_scope->result.at[i]].is_text) return;
    if (main_scope->result.count) (void)grun_model(m, o, v);
}

/* Does the model fail in the same way? */
static bool fails(reducer *r, gmodel *m)
{
    if (r->tries++ > TRIES_MAX || !m->scope.at[0].result.count) return false;
    gverdict *v = r->found;
    *v = (gverdict){ .stage = "crash" };
    (void)fflush(stdout);
    const pid_t p = fork();
    if (p == 0) {
        gverdict own = { .stage = "" };
        (void)freopen("/dev/null", "w", stderr);
        (void)alarm(60);
        judge_and_run(m, r->o, &own);
        *v = own;
        _exit(0);
    }
    int status = 0;
    (void)waitpid(p, &status, 0);
    if (WIFSIGNALED(status) || WEXITSTATUS(status)) (void)snprintf(v->stage, sizeof v->stage, "crash");
    char class[200];
    gverdict_class(v, class, sizeof class);
    if (!strcmp(v->stage, "crash")) return !strncmp(r->class, "crash", 5);
    return !strcmp(class, r->class);
}

static bool keep(reducer *r, gmodel *m)
{
    gmodel_sweep(m, false);
    gmodel copy;
    gmodel_copy(&copy, m);
    if (!fails(r, &copy)) return false;
    gmodel_copy(&r->best, m);
    return true;
}

static bool drop_outputs(reducer *r)
{
    bool any = false;
    for (uint32_t i = r->best.scope.at[0].result.count; i-- > 0;) {
        gmodel m;
        gmodel_copy(&m, &r->best);
        gscope *s = &m.scope.at[0];
        if (i >= s->result.count || s->result.count < 2) continue;
        for (uint32_t k = i; k + 1 < s->result.count; k++) s->result.at[k] = s->result.at[k + 1];
        s->result.count--;
        any |= keep(r, &m);
    }
    return any;
}

/* A node's output becomes an output of the model, and the others go: finds the first that is wrong. */
static bool cut_after(reducer *r)
{
    for (uint32_t i = 0; i < r->best.node.count; i++) {
        if (r->best.node.at[i].scope || r->best.node.at[i].out[0] == G_NONE) continue;
        gmodel m;
        gmodel_copy(&m, &r->best);
        gscope *s = &m.scope.at[0];
        if (s->result.count == 1 && s->result.at[0] == m.node.at[i].out[0]) continue;
        s->result.count = 1;
        s->result.at[0] = m.node.at[i].out[0];
        if (keep(r, &m)) return true;
    }
    return false;
}

static void replace(gmodel *m, uint32_t from, uint32_t to)
{
    for (uint32_t i = 0; i < m->node.count; i++)
        for (uint32_t k = 0; k < m->node.at[i].count_in; k++)
            if (m->node.at[i].in[k] == from) m->node.at[i].in[k] = to;
    for (uint32_t i = 0; i < m->scope.count; i++)
        for (uint32_t k = 0; k < m->scope.at[i].result.count; k++)
            if (m->scope.at[i].result.at[k] == from) m->scope.at[i].result.at[k] = to;
}

/* The node goes; who reads it, reads one of its inputs. */
static bool bypass_nodes(reducer *r)
{
    bool any = false;
    for (uint32_t i = r->best.node.count; i-- > 0;) {
        for (uint32_t k = 0; i < r->best.node.count && k < r->best.node.at[i].count_in; k++) {
            gmodel m;
            gmodel_copy(&m, &r->best);
            gnode *n = &m.node.at[i];
            if (n->in[k] == G_NONE) continue;
            if (n->scope && m.value.at[n->in[k]].scope != n->scope) continue;
            for (uint32_t o = 0; o < n->count_out; o++)
                if (n->out[o] != G_NONE) replace(&m, n->out[o], n->in[k]);
            n->is_dead = true;
            if (keep(r, &m)) {
                any = true;
                break;
            }
        }
    }
    return any;
}

static bool judged(gmodel *m)
{
    for (uint32_t k = 0; k < m->envs; k++)
        if (!judge_model(m, k)) return false;
    return true;
}

/* A result becomes an input, or a constant, with the data that it had. */
static bool feed(gmodel *m, gvalue *v)
{
    bool is_same = true;
    for (uint32_t k = 0; k < m->envs; k++) {
        const gtensor *t = v->data[k] = v->at[k][0], *first = v->data[0];
        if (!t || t->count > 512) return false;
        is_same &= !memcmp(t->dim, first->dim, sizeof t->dim) && (!t->size || !memcmp(t->data, first->data, t->size));
    }
    for (uint32_t d = 0; d < v->rank; d++) {
        int64_t at[G_ENVS] = { 0 };
        bool is_const = true;
        for (uint32_t k = 0; k < m->envs; k++) is_const &= (at[k] = v->data[k]->dim[d]) == v->data[0]->dim[d];
        v->dim[d] = (gdim){ G_NONE, at[0] };
        uint32_t s = 0;
        while (s < m->symbols && memcmp(m->symbol[s].at, at, m->envs * sizeof at[0])) s++;
        if (!is_const) v->dim[d].symbol = s < m->symbols ? s : gmodel_symbol(m, at);
        if (!is_const && v->dim[d].symbol == G_NONE) return false;
    }
    v->is_explicit = true;
    v->kind = is_same && v->dtype == SINTER_DTYPE_I64 ? G_CONST : G_INPUT;
    return true;
}

static bool feed_nodes(reducer *r)
{
    bool any = false;
    for (uint32_t i = 0; i < r->best.node.count; i++) {
        gmodel m;
        gmodel_copy(&m, &r->best);
        gnode *n = &m.node.at[i];
        if (n->scope) continue;
        if (!judged(&m)) return any;
        bool can = true;
        for (uint32_t o = 0; o < n->count_out && can; o++) {
            if (n->out[o] == G_NONE) continue;
            gvalue *v = &m.value.at[n->out[o]];
            can = feed(&m, v);
            if (v->kind == G_INPUT) *(uint32_t *)VEC_PUSH(m.a, &m.scope.at[0].param) = n->out[o];
        }
        n->is_dead = true;
        if (can && keep(r, &m)) {
            any = true;
            i--;
        }
    }
    return any;
}

static bool drop_envs(reducer *r)
{
    bool any = false;
    for (uint32_t k = r->best.envs; k-- > 0 && r->best.envs > 1;) {
        gmodel m;
        gmodel_copy(&m, &r->best);
        for (uint32_t i = k; i + 1 < m.envs; i++) {
            m.profile_of[i] = m.profile_of[i + 1];
            for (uint32_t s = 0; s < m.symbols; s++) m.symbol[s].at[i] = m.symbol[s].at[i + 1];
            for (uint32_t v = 0; v < m.value.count; v++)
                if (m.value.at[v].is_explicit && m.value.at[v].kind == G_INPUT)
                    m.value.at[v].data[i] = m.value.at[v].data[i + 1];
        }
        m.envs--;
        /* What fills give in an environment depends on its number: tried all the same. */
        any |= keep(r, &m);
    }
    if (r->best.profiles > 1) {
        for (uint32_t p = 0; p < r->best.profiles; p++) {
            gmodel m;
            gmodel_copy(&m, &r->best);
            for (uint32_t s = 0; s < m.symbols; s++) {
                gsymbol *y = &m.symbol[s];
                y->min[0] = y->min[p];
                y->opt[0] = y->opt[p];
                y->max[0] = y->max[p];
            }
            m.profiles = 1;
            memset(m.profile_of, 0, sizeof m.profile_of);
            if (keep(r, &m)) return true;
        }
    }
    return any;
}

/* Symbols become sizes; ranges become tight; axes become small. */
static bool simplify_sizes(reducer *r)
{
    bool any = false;
    for (uint32_t s = 0; s < r->best.symbols; s++) {
        gmodel m;
        gmodel_copy(&m, &r->best);
        bool used = false;
        for (uint32_t v = 0; v < m.value.count; v++)
            for (uint32_t d = 0; d < m.value.at[v].rank; d++) {
                gdim *at = &m.value.at[v].dim[d];
                if ((m.value.at[v].kind != G_INPUT && m.value.at[v].kind != G_CONST) || at->symbol != s) continue;
                used = true;
                *at = (gdim){ G_NONE, m.symbol[s].at[0] };
            }
        bool is_const = true;
        for (uint32_t k = 0; k < m.envs; k++) is_const &= m.symbol[s].at[k] == m.symbol[s].at[0];
        if (used && is_const) any |= keep(r, &m);
    }
    for (int64_t size = 70; size > 1; size--) {
        for (int64_t to = 1; to <= 2 && to < size; to++) {
            gmodel m;
            gmodel_copy(&m, &r->best);
            bool used = false;
            for (uint32_t v = 0; v < m.value.count; v++) {
                gvalue *x = &m.value.at[v];
                if ((x->kind != G_INPUT && x->kind != G_CONST) || x->is_explicit) continue;
                for (uint32_t d = 0; d < x->rank; d++)
                    if (x->dim[d].symbol == G_NONE && x->dim[d].size == size) {
                        x->dim[d].size = to;
                        used = true;
                    }
            }
            if (used && keep(r, &m)) {
                any = true;
                break;
            }
        }
    }
    return any;
}

static bool drop_attrs(reducer *r)
{
    bool any = false;
    for (uint32_t i = 0; i < r->best.node.count; i++)
        for (uint32_t k = r->best.node.at[i].count_attr; k-- > 0;) {
            gmodel m;
            gmodel_copy(&m, &r->best);
            gnode *n = &m.node.at[i];
            if (i >= m.node.count || k >= n->count_attr || n->attr[k].kind == GA_GRAPH) continue;
            for (uint32_t j = k; j + 1 < n->count_attr; j++) n->attr[j] = n->attr[j + 1];
            n->count_attr--;
            any |= keep(r, &m);
        }
    return any;
}

/* What the judge refused is one node, the last: its operands become inputs. */
static void keep_refused(gmodel *m)
{
    if (!m->node.count) return;
    const uint32_t last = m->node.count - 1;
    gnode *n = &m->node.at[last];
    if (n->scope || gnode_find(n, "body") || gnode_find(n, "then_branch")) return;
    for (uint32_t i = 0; i < last; i++) m->node.at[i].is_dead = true;
    for (uint32_t i = 0; i < n->count_in; i++) {
        gvalue *v = n->in[i] == G_NONE ? NULL : &m->value.at[n->in[i]];
        if (!v || v->kind != G_RESULT || !v->at[0][0] || !feed(m, v)) continue;
        if (v->kind == G_INPUT) *(uint32_t *)VEC_PUSH(m->a, &m->scope.at[0].param) = n->in[i];
    }
    gmodel_sweep(m, false);
}

/* Symbols that nothing mentions are not printed. */
static void drop_symbols(gmodel *m)
{
    for (uint32_t s = m->symbols; s-- > 0;) {
        bool used = false;
        for (uint32_t v = 0; v < m->value.count && !used; v++)
            for (uint32_t d = 0; d < m->value.at[v].rank; d++)
                used |= (m->value.at[v].kind == G_INPUT) && m->value.at[v].dim[d].symbol == s;
        if (used) continue;
        for (uint32_t i = s; i + 1 < m->symbols; i++) m->symbol[i] = m->symbol[i + 1];
        for (uint32_t v = 0; v < m->value.count; v++)
            for (uint32_t d = 0; d < m->value.at[v].rank; d++) {
                gdim *at = &m->value.at[v].dim[d];
                if (at->symbol != G_NONE && at->symbol > s) at->symbol--;
            }
        m->symbols--;
        if (m->past == s) m->past = G_NONE;
        else if (m->past != G_NONE && m->past > s) m->past--;
    }
}

/* "PATH.graph" and "PATH.onnx", with the verdict in front of the text. */
static void save(const gmodel *m, const greport *r, const gverdict *v, const char *end, bool prints)
{
    char about[128], path[600];
    grun_print(r->o, about, sizeof about);
    text t;
    text_init(&t, m->e);
    text_printf(&t, "# %s (%s)\n# %s: ", r->flags, about, v->stage);
    for (const char *p = v->text; *p; p++) text_printf(&t, *p == '\n' ? "%c#" : "%c", *p);
    text_printf(&t, "\n");
    gmodel_print(m, &t);
    if (prints) (void)printf("%s", t.at);
    (void)snprintf(path, sizeof path, "%s/%llu-%ld%s.graph", r->folder, r->seed, r->graph, end);
    FILE *f = r->folder ? fopen(path, "wb") : NULL;
    if (f) {
        (void)fputs(t.at, f);
        (void)fclose(f);
    }
    (void)snprintf(path, sizeof path, "%s/%llu-%ld%s.onnx", r->folder, r->seed, r->graph, end);
    f = r->folder ? fopen(path, "wb") : NULL;
    text_deinit(&t);
    if (!f) return;
    const bytes model = gmodel_onnx(m);
    (void)fwrite(model.at, 1, model.size, f);
    (void)fclose(f);
    free(model.at);
}

void greport_save(const gmodel *m, const greport *r, const gverdict *v)
{
    if (r->folder) save(m, r, v, "", false);
}

void greport_reduced(const gmodel *m, const greport *report, const gverdict *v)
{
    reducer r = { .o = report->o };
    r.found = mmap(NULL, sizeof *r.found, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (r.found == MAP_FAILED) return;
    (void)alarm(0);
    (void)setitimer(ITIMER_PROF, &(struct itimerval){ 0 }, NULL);
    gverdict_class(v, r.class, sizeof r.class);
    gmodel_copy(&r.best, m);
    gmodel first;
    gmodel_copy(&first, m);
    gverdict last = *v;
    if (!strcmp(v->stage, "judge")) {
        for (uint32_t i = 0; i < m->value.count; i++)
            memcpy(r.best.value.at[i].at, m->value.at[i].at, sizeof m->value.at[i].at);
        keep_refused(&r.best);
    } else if (!keep(&r, &first)) (void)printf("(the failure does not come again by itself)\n");
    else {
        for (bool changed = true; changed && r.tries < TRIES_MAX;) {
            changed = cut_after(&r);
            changed |= drop_outputs(&r);
            changed |= drop_envs(&r);
            changed |= bypass_nodes(&r);
            changed |= feed_nodes(&r);
            changed |= drop_attrs(&r);
            changed |= simplify_sizes(&r);
        }
        gmodel copy;
        r.tries = 0;
        gmodel_copy(&copy, &r.best);
        if (fails(&r, &copy)) last = *r.found;
    }
    drop_symbols(&r.best);
    save(&r.best, report, &last, ".small", true);
    (void)munmap(r.found, sizeof *r.found);
}
