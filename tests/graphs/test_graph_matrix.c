/* SPDX-License-Identifier: Apache-2.0 */
/* test_graph_matrix.c - each operator in the places where shapes meet: one tensor as several operands, axes of size 0,
 * operands turned in memory with axes of size 1, and symbols that are k or 1.
 *
 *     graphs_test_graph_matrix [--device cpu|reference|cuda] [--only OPERATOR] [--seeds N] [--save DIR] [--written N]
 *
 * --written: one model of so many (4) is also written as ONNX, as it is or simplified, and
 * run on the reference kernels. The operators are the rows of graph_ops_*.c: a row grows a model of one node, which is
 * changed in each way. A change that the operator does not allow is one that the judge refuses. */
#define _DEFAULT_SOURCE
#include "graph_ops.h"
#include "graph_reduce.h"
#include "graph_run.h"
#include "test.h"

#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum { WRITTEN = 4 };

typedef struct matrix {
    const char *device;
    const char *only, *save;
    long seeds, written;
    /* of one operator */
    const gop *op;
    env e;
    arena a;
    uint64_t seed;
} matrix;

typedef struct counts {
    volatile long tried, refused, failed;
} counts;
static counts *total;

static uint32_t below(matrix *x, uint32_t count)
{
    return (uint32_t)(test_random(&x->seed) % count);
}

/* Judges a changed model and runs it. */
static void try_model(matrix *x, gmodel *m, const char *what)
{
    gverdict v = { .stage = "" };
    for (uint32_t k = 0; k < m->envs; k++) {
        if (judge_model(m, k)) continue;
        total->refused++;
        return;
    }
    total->tried++;
    grun o = grun_random(test_random(&x->seed), x->device);
    bool is_fine = grun_model(m, &o, &v);
    if (is_fine && total->tried % x->written == 0) {
        o.device = "reference";
        o.rewrite = total->tried / x->written % 2 ? G_EXPORTED : G_SIMPLIFIED;
        is_fine = grun_model(m, &o, &v);
    }
    if (is_fine) return;
    total->failed++;
    char about[128];
    grun_print(&o, about, sizeof about);
    (void)printf("FAIL %s %s (%s): %s: %s\n", x->op->name, what, about, v.stage, v.text);
    const greport r = {
        .o = &o, .flags = x->op->name, .folder = x->save, .seed = (unsigned long long)x->seed, .graph = 0
    };
    if (x->save) greport_reduced(m, &r, &v);
}

static bool same_leaf(const gvalue *a, const gvalue *b)
{
    if (a->dtype != b->dtype || a->rank != b->rank || a->is_explicit || b->is_explicit) return false;
    for (uint32_t i = 0; i < a->rank; i++)
        if (a->dim[i].size != b->dim[i].size) return false;
    return true;
}

/* Every way to give operands of one shape the same tensor: digit i of `code` says which operand stands for operand i.
 */
static void tie_operands(matrix *x, const gmodel *from)
{
    const uint32_t last = from->node.count - 1, count = from->node.at[last].count_in;
    uint32_t codes = 1;
    for (uint32_t i = 1; i < count && i < 5; i++) codes *= i + 1;
    for (uint32_t code = 1; code < codes; code++) {
        gmodel m;
        gmodel_copy(&m, from);
        gnode *n = &m.node.at[last];
        bool changed = false;
        for (uint32_t i = 1, rest = code; i < count && i < 5; rest /= ++i) {
            const uint32_t with = rest % (i + 1);
            if (with == i || n->in[with] == G_NONE || n->in[i] == G_NONE || n->in[i] == n->in[with]) continue;
            if (gop_is_param(n->op, i) || !same_leaf(&m.value.at[n->in[i]], &m.value.at[n->in[with]])) continue;
            n->in[i] = n->in[with];
            changed = true;
        }
        gmodel_sweep(&m, false);
        if (changed) try_model(x, &m, "with tied operands");
    }
}

/* All axes of a size get another, or a symbol. */
static bool resize_axes(gmodel *m, int64_t size, gdim to)
{
    bool changed = false;
    for (uint32_t i = 0; i < m->value.count; i++) {
        gvalue *v = &m->value.at[i];
        if ((v->kind != G_INPUT && v->kind != G_CONST) || v->is_explicit) continue;
        bool mine = false;
        for (uint32_t d = 0; d < v->rank; d++) {
            if (v->dim[d].symbol != G_NONE || v->dim[d].size != size) continue;
            v->dim[d] = to;
            mine = true;
        }
        changed |= mine;
        if (!mine || v->kind != G_CONST || to.symbol == G_NONE) continue;
        v->kind = G_INPUT;
        v->scope = 0;
        *(uint32_t *)VEC_PUSH(m->a, &m->scope.at[0].param) = i;
    }
    return changed;
}

static void empty_axes(matrix *x, const gmodel *from)
{
    for (int64_t size = 1; size < 70; size++) {
        gmodel m;
        gmodel_copy(&m, from);
        if (resize_axes(&m, size, (gdim){ G_NONE, 0 })) try_model(x, &m, "with an axis of size 0");
    }
    /* One axis of one operand alone. */
    for (uint32_t i = 0; i < from->value.count; i++) {
        for (uint32_t d = 0; d < from->value.at[i].rank; d++) {
            gmodel m;
            gmodel_copy(&m, from);
            gvalue *v = &m.value.at[i];
            if ((v->kind != G_INPUT && v->kind != G_CONST) || v->is_explicit) continue;
            v->dim[d].size = 0;
            try_model(x, &m, "with an operand's axis of size 0");
        }
    }
}

/* The operand `v` comes turned in memory: a new input, transposed. */
static void turn(matrix *x, gmodel *m, uint32_t operand, uint32_t code)
{
    const uint32_t last = m->node.count - 1, old = m->node.at[last].in[operand];
    const gvalue from = m->value.at[old];
    int64_t perm[SINTER_RANK_MAX];
    for (uint32_t i = 0; i < from.rank; i++) {
        const uint32_t at = code % (i + 1);
        code /= i + 1;
        perm[i] = perm[at];
        perm[at] = i;
    }
    const uint32_t id = gmodel_value(m, G_INPUT, 0, from.dtype), turned = gmodel_value(m, G_RESULT, 0, from.dtype);
    gvalue *v = &m->value.at[id];
    v->rank = from.rank;
    v->fill = from.fill;
    for (uint32_t i = 0; i < from.rank; i++) v->dim[perm[i]] = from.dim[i];
    *(uint32_t *)VEC_PUSH(m->a, &m->scope.at[0].param) = id;
    const gnode user = m->node.at[last];
    const uint32_t again = gmodel_node(m, "", 0);
    gnode *t = &m->node.at[last], *n = &m->node.at[again];
    *n = user;
    n->in[operand] = turned;
    *t = (gnode){ .count_in = 1, .count_out = 1, .in = { id }, .out = { turned } };
    (void)snprintf(t->op, sizeof t->op, "Transpose");
    gattr *a = gnode_attr(t, "perm", GA_INTS);
    a->count = from.rank;
    memcpy(a->ints, perm, from.rank * sizeof *perm);
    (void)x;
}

static uint32_t factorial(uint32_t n)
{
    return n < 2 ? 1 : n * factorial(n - 1);
}

/* Each operand in each order, with each axis of size 1 in turn, where there are few; else some. */
static void turn_operands(matrix *x, const gmodel *from)
{
    const gnode *n = &from->node.at[from->node.count - 1];
    for (uint32_t i = 0; i < n->count_in; i++) {
        if (n->in[i] == G_NONE || gop_is_param(n->op, i)) continue;
        const gvalue *v = &from->value.at[n->in[i]];
        if ((v->kind != G_INPUT && v->kind != G_CONST) || v->is_explicit || v->rank < 2) continue;
        const uint32_t orders = factorial(v->rank), tried = orders < 24 ? orders : test_is_full() ? 48 : 8;
        for (uint32_t k = 0; k < tried; k++) {
            gmodel m;
            gmodel_copy(&m, from);
            /* A size of some axis is 1 everywhere. */
            const uint32_t axis = below(x, v->rank + 1);
            if (axis < v->rank) (void)resize_axes(&m, v->dim[axis].size, (gdim){ G_NONE, 1 });
            turn(x, &m, i, orders <= tried ? k : below(x, orders));
            if (n->count_in > 1 && below(x, 2)) {
                const uint32_t other = (i + 1) % n->count_in;
                const gvalue *w = n->in[other] == G_NONE ? NULL : &m.value.at[n->in[other]];
                if (w && w->rank > 1 && !w->is_explicit && w->kind != G_RESULT && !gop_is_param(n->op, other))
                    turn(x, &m, other, below(x, factorial(w->rank)));
            }
            gmodel_sweep(&m, false);
            try_model(x, &m, "with operands turned");
        }
    }
}

/* Four environments; what was said of the first holds in all. */
static void four_environments(gmodel *m)
{
    m->envs = 4;
    memset(m->profile_of, 0, sizeof m->profile_of);
    for (uint32_t i = 0; i < m->value.count; i++)
        for (uint32_t k = 1; k < m->envs && m->value.at[i].is_explicit; k++)
            m->value.at[i].data[k] = m->value.at[i].data[0];
}

/* Symbols for sizes: first one for each size, k or 1; then one for each axis of each operand, in all combinations. */
static void symbol_values(matrix *x, const gmodel *from)
{
    gmodel m;
    gmodel_copy(&m, from);
    four_environments(&m);
    for (int64_t size = 2; size < 70 && m.symbols < 2; size++) {
        const int64_t at[2][G_ENVS] = { { size, 1, size, 1 }, { size, size, 1, 1 } };
        gmodel before;
        gmodel_copy(&before, &m);
        const uint32_t s = gmodel_symbol(&m, at[m.symbols]);
        if (!resize_axes(&m, size, (gdim){ s, 0 })) gmodel_copy(&m, &before);
    }
    if (m.symbols) try_model(x, &m, "with symbols that are k or 1");
    gmodel_copy(&m, from);
    four_environments(&m);
    for (uint32_t i = 0, made = 0; i < m.value.count; i++) {
        gvalue *v = &m.value.at[i];
        if (v->kind != G_INPUT || v->is_explicit) continue;
        for (uint32_t d = 0; d < v->rank && m.symbols < G_SYMBOLS; d++) {
            const int64_t size = v->dim[d].size, at[2][G_ENVS] = { { size, 1, size, 1 }, { size, size, 1, 1 } };
            if (size < 2) continue;
            v->dim[d].symbol = gmodel_symbol(&m, at[made % 2]);
        }
        made++;
    }
    if (m.symbols) try_model(x, &m, "with a symbol for each axis, k or 1");
}

static void run_op(matrix *x)
{
    for (long seed = 1; seed <= x->seeds; seed++) {
        env_init(&x->e, NULL, NULL);
        arena_init(&x->a, &x->e);
        gmodel m;
        gmodel_init(&m, &x->e, &x->a);
        x->seed = (uint64_t)seed * 7919;
        const grow_options o = { .only = x->op->name, .is_static = true, .size = seed % 3 == 0 ? 3 : 0 };
        if (grow_model(&m, (uint64_t)seed, &o) && m.node.count &&
            !strcmp(m.node.at[m.node.count - 1].op, x->op->name)) {
            tie_operands(x, &m);
            empty_axes(x, &m);
            turn_operands(x, &m);
            symbol_values(x, &m);
        }
        arena_deinit(&x->a);
    }
    judge_close();
}

int main(int argc, char **argv)
{
    matrix x = { .seeds = test_scale(3, 60), .written = WRITTEN };
    for (int i = 1; i + 1 < argc; i += 2) {
        if (!strcmp(argv[i], "--only")) x.only = argv[i + 1];
        else if (!strcmp(argv[i], "--save")) x.save = argv[i + 1];
        else if (!strcmp(argv[i], "--seeds")) x.seeds = atol(argv[i + 1]);
        else if (!strcmp(argv[i], "--written") && atol(argv[i + 1]) > 0) x.written = atol(argv[i + 1]);
        else if (!strcmp(argv[i], "--device")) x.device = argv[i + 1];
    }
    total = mmap(NULL, sizeof *total, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (total == MAP_FAILED) return 2;
    for (uint32_t i = 0; gop_at(i); i++) {
        x.op = gop_at(i);
        if (!x.op->add || (x.only && strcmp(x.only, x.op->name) != 0) || gop_is_chain(x.op->name)) continue;
        (void)fflush(stdout);
        const pid_t p = fork();
        if (p == 0) {
            (void)alarm(600);
            run_op(&x);
            (void)fflush(stdout);
            _exit(0);
        }
        int status = 0;
        (void)waitpid(p, &status, 0);
        if (!WIFSIGNALED(status)) continue;
        total->failed++;
        (void)printf("FAIL %s: killed by signal %d\n", x.op->name, WTERMSIG(status));
    }
    (void)printf("%ld models, %ld that the operators do not allow, %ld failed\n", total->tried, total->refused,
                 total->failed);
    return total->failed || !total->tried;
}
