/* SPDX-License-Identifier: Apache-2.0 */
/* test_graph_build.c - the graph builder does not trust its caller: random calls are done right or refused.
 *
 * Inputs, counts, attributes and regions are random, and often wrong. A call that succeeds gives a value with a type
 * and leaves a graph that the verifier passes. A call that fails says why, names its op, and changes nothing. */
#include "ir/build.h"
#include "plugin_set.h"
#include "test.h"

typedef struct rig {
    sinter_error error;
    env e;
    ir_graph *g;
    ir_builder b;
    uint64_t seed;
    dim n, m;
    uint32_t size, axes; /* what sizes and lists mostly are in this graph */
    uint32_t added, refused[OP_COUNT], taken[OP_COUNT], folded[OP_COUNT];
} rig;

static uint32_t below(rig *r, uint32_t limit)
{
    return (uint32_t)test_below(&r->seed, limit);
}

static dim some_dim(rig *r)
{
    if (below(r, 3)) return dim_const(r->g->dims, r->size);
    switch (below(r, 8)) {
    case 0: return r->n;
    case 1: return r->m;
    case 2: return dim_add(r->g->dims, r->n, dim_const(r->g->dims, 1));
    default: return dim_const(r->g->dims, below(r, 5));
    }
}

static sinter_dtype some_type(rig *r)
{
    static const sinter_dtype usual[] = { SINTER_DTYPE_F32, SINTER_DTYPE_I64, SINTER_DTYPE_BOOL, SINTER_DTYPE_U8,
                                          SINTER_DTYPE_I8,  SINTER_DTYPE_F16, SINTER_DTYPE_I32 };
    return below(r, 10) ? usual[below(r, 2) ? 0 : below(r, COUNT_OF(usual))] : (sinter_dtype)(1 + below(r, 18));
}

static void add_input(rig *r)
{
    dim d[SINTER_RANK_MAX];
    const uint32_t rank = below(r, 2) ? r->axes + 2 : below(r, 5);
    sinter_dtype type = some_type(r);
    if (!dtype_is_valid((int)type)) type = SINTER_DTYPE_F32;
    for (uint32_t i = 0; i < rank; i++) d[i] = some_dim(r);
    (void)ir_param(r->g, IR_MAIN, "x", type, rank, d);
}

static void add_const(rig *r)
{
    int64_t d[SINTER_RANK_MAX], count = 1;
    const uint32_t rank = below(r, 5);
    for (uint32_t i = 0; i < rank; i++) count *= d[i] = below(r, 3) ? r->size : below(r, 4);
    sinter_dtype type = some_type(r);
    if (!dtype_is_valid((int)type)) type = SINTER_DTYPE_I64;
    view v;
    uint8_t *data = arena_alloc(&r->g->a, (size_t)count * 16 + 16, 16);
    if (!CHECK(data && view_init(&v, type, rank, d, data))) return;
    for (int64_t i = 0; i < count; i++) view_store_i64(&v, i, (int64_t)below(r, 5) - 1);
    (void)build_const(&r->b, "c", &v);
}

static ir_value_id some_value(rig *r)
{
    if (!below(r, 40)) return below(r, 2) ? 0 : r->g->value.count + below(r, 3);
    return 1 + below(r, r->g->value.count - 1);
}

static int64_t some_number(rig *r)
{
    static const int64_t extreme[] = { INT64_MIN, INT64_MAX, INT32_MAX, INT32_MIN, -1, 1 << 30, 4096 };
    return below(r, 20) ? (int64_t)below(r, 4) : extreme[below(r, COUNT_OF(extreme))];
}

static void *plugin_attrs_new(rig *r)
{
    static const char *const fields[] = { "", "scale=2 bias=1", "k=3", "k=1 mode=\"a\" table=x", "k=", "bias=[1", "x" };
    const sinter_plugin *p = &plugin_set[below(r, PLUGIN_SET_COUNT)];
    attrs_plugin *attrs = op_attrs_new(&r->g->a, OP_plugin);
    if (!attrs) return NULL;
    *attrs = (attrs_plugin){ .name = below(r, 20) ? p->name : "Custom",
                             .version = p->version && below(r, 20) ? p->version : "1",
                             .space = p->space && below(r, 20) ? p->space : "",
                             .fields = below(r, 2) ? "" : fields[below(r, COUNT_OF(fields))] };
    return attrs;
}

/* Attributes near their defaults, some of them nonsense. */
static void *some_attrs(rig *r, op_id op)
{
    if (op == OP_plugin) return plugin_attrs_new(r);
    char *attrs = op_attrs_new(&r->g->a, op);
    const bool is_window = below(r, 2); /* lists as windows want them, the rest as it is */
    for (const attr_info *a = op_at(op)->attr; attrs && a->name; a++) {
        char *at = attrs + a->at;
        if (is_window && a->kind == ATTR_INTS) {
            attr_ints ones = { .count = strcmp(a->name, "pad") ? r->axes : 2 * r->axes };
            for (uint32_t i = 0; i < ones.count; i++) ones.at[i] = strcmp(a->name, "pad") ? 1 : 0;
            memcpy(at, &ones, sizeof ones);
        }
        if (is_window || !below(r, 3)) continue;
        const uint32_t usual[] = { 0, r->axes, r->axes, 2 * r->axes, 1, r->axes + 2 };
        const uint32_t count = below(r, 30) ? usual[below(r, COUNT_OF(usual))] : below(r, 40);
        int64_t number = some_number(r);
        const double real = below(r, 10) ? (double)number / 2 : (double)number * 1e300 * 1e300;
        attr_ints ints = { .count = count };
        attr_reals reals = { .count = count };
        int64_t *list = arena_alloc(&r->g->a, sizeof *list * 40, 8);
        if (!list) return NULL;
        for (uint32_t i = 0; i < ATTR_INTS_MAX && i < count; i++) ints.at[i] = some_number(r);
        for (uint32_t i = 0; i < ATTR_REALS_MAX && i < count; i++) reals.at[i] = (double)some_number(r);
        for (uint32_t i = 0; i < count; i++) list[i] = below(r, 40) ? some_dim(r) : some_number(r);
        static const char *const words[] = { "ij,jk->ik", "Tanh", "", "ij->", "Sigmoid,Tanh,Tanh", "->->" };
        const attr_dims dims = { .count = count, .at = below(r, 60) ? list : NULL };
        const char *word = below(r, 60) ? words[below(r, COUNT_OF(words))] : NULL;
        switch (a->kind) {
        case ATTR_INT:
        case ATTR_NAME: memcpy(at, &number, sizeof number); break;
        case ATTR_TYPE:
            number = below(r, 10) ? (int64_t)some_type(r) : number;
            memcpy(at, &number, sizeof number);
            break;
        case ATTR_REAL: memcpy(at, &real, sizeof real); break;
        case ATTR_INTS: memcpy(at, &ints, sizeof ints); break;
        case ATTR_REALS: memcpy(at, &reals, sizeof reals); break;
        case ATTR_DIMS: memcpy(at, &dims, sizeof dims); break;
        case ATTR_TEXT: memcpy(at, &word, sizeof(word)); break;
        }
    }
    return attrs;
}

static uint32_t live_nodes(const ir_graph *g)
{
    uint32_t count = 0;
    for (ir_node_id n = 1; n < g->node.count; n++) count += !g->node.at[n].is_dead;
    return count;
}

static bool is_good(rig *r, op_id op)
{
    if (CHECK(ir_verify(r->g, IR_STAGE_IMPORTED) == SINTER_OK)) return true;
    printf("  after %s: %s\n", op_at(op)->name, r->error.text);
    return false;
}

static bool call_once(rig *r)
{
    /* Ops with regions are built in pieces, a program is more than a call: see the other tests. */
    op_id op = (op_id)below(r, OP_COUNT);
    if (op_at(op)->regions || op == OP_pointwise) return true;
    const op_info *row = op_at(op);
    ir_value_id in[12];
    uint32_t count =
        row->in_min + below(r, (row->in_max < 8 ? row->in_max : 8) - (row->in_min < 8 ? row->in_min : 8) + 1);
    if (!below(r, 40)) count = below(r, 12);
    const ir_value_id first = some_value(r);
    for (uint32_t i = 0; i < count; i++) in[i] = below(r, 3) ? first : some_value(r);
    const uint32_t out_max = row->out_max < OP_OUT_MAX ? row->out_max : 2; /* a plugin has as many as it says */
    const uint32_t outs = below(r, 40) ? row->out_min + below(r, out_max - row->out_min + 1) : below(r, 6);
    const uint32_t before = live_nodes(r->g);
    const ir_node_id n = build_node(&r->b, op, some_attrs(r, op), in, count, outs);
    if (!r->b.status) {
        r->taken[op]++;
        r->added++;
        if (!CHECK(n && live_nodes(r->g) == before + 1)) return false;
        for (uint32_t i = 0; i < outs; i++)
            if (!CHECK(ir_value_at(r->g, build_result(&r->b, n, i))->dtype != SINTER_DTYPE_NONE)) return false;
        /* What is known of it can be computed. */
        bool folded = false;
        if (!CHECK(ir_fold(r->g, n, 1 << 16, &folded) == SINTER_OK)) return false;
        r->folded[op] += folded;
        return is_good(r, op);
    }
    r->refused[op]++;
    bool ok = CHECK(!n) && CHECK(r->error.status == r->b.status) && CHECK(strstr(r->error.text, row->name) != NULL) &&
              CHECK(live_nodes(r->g) == before) && CHECK(r->b.status != SINTER_INTERNAL);
    if (!ok) printf("  %s: %s\n", row->name, r->error.text);
    /* Sticky: nothing more until the caller takes note. */
    ok = CHECK(!build_relu(&r->b, 1)) && CHECK(live_nodes(r->g) == before) && ok;
    r->b.status = SINTER_OK;
    r->error.status = SINTER_OK;
    r->error.length = 0;
    r->error.text[0] = 0;
    return ok && is_good(r, op);
}

static void calls_are_right_or_refused(void)
{
    static uint32_t refused[OP_COUNT], taken[OP_COUNT], folded[OP_COUNT];
    const long graphs = test_scale(1500, 50000);
    sinter_plugins *plugins = plugin_set_new();
    for (long k = 0; k < graphs; k++) {
        rig r = { .seed = (uint64_t)k };
        env_init(&r.e, NULL, &r.error);
        r.e.plugins = plugins;
        if (!CHECK(ir_graph_create(&r.e, &r.g) == SINTER_OK)) return;
        r.b = (ir_builder){ .g = r.g, .region = IR_MAIN };
        r.n = dim_symbol_named(r.g->dims, "N");
        r.m = dim_symbol_named(r.g->dims, "M");
        r.size = 1 + below(&r, 4);
        r.axes = 1 + below(&r, 3);
        for (uint32_t i = 0; i < 4; i++) add_input(&r);
        for (uint32_t i = 0; i < 6; i++) add_const(&r);
        bool ok = true;
        for (uint32_t i = 0; i < 400 && ok && r.added < 60; i++) ok = call_once(&r);
        for (uint32_t op = 0; op < OP_COUNT; op++) {
            refused[op] += r.refused[op];
            taken[op] += r.taken[op];
            folded[op] += r.folded[op];
        }
        ir_graph_destroy(r.g);
        if (!ok) {
            printf("  graph %ld\n", k);
            return;
        }
    }
    sinter_plugins_destroy(plugins);
    /* The generator reaches both outcomes of (nearly) every op. */
    uint32_t ops = 0, both = 0, computed = 0;
    for (uint32_t op = 0; op < OP_COUNT; op++) {
        if (op_at((op_id)op)->regions || op == OP_pointwise) continue;
        ops++;
        both += refused[op] && taken[op];
        computed += folded[op] > 0;
        if (!taken[op]) printf("note: %s was never built\n", op_at((op_id)op)->name);
    }
    CHECK(both * 10 >= ops * 9);
    CHECK(computed * 10 >= ops * 8);
}

/* ---- what refusals say ---- */

static void begin(rig *r)
{
    *r = (rig){ .seed = 1 };
    env_init(&r->e, NULL, &r->error);
    (void)CHECK(ir_graph_create(&r->e, &r->g) == SINTER_OK);
    r->b = (ir_builder){ .g = r->g, .region = IR_MAIN };
}

static ir_value_id input_of(rig *r, uint32_t rank, int64_t size)
{
    dim d[SINTER_RANK_MAX];
    for (uint32_t i = 0; i < rank; i++) d[i] = dim_const(r->g->dims, size);
    return ir_param(r->g, IR_MAIN, "x", SINTER_DTYPE_F32, rank, d);
}

static void refused_with(rig *r, const char *what)
{
    CHECK(r->b.status != SINTER_OK);
    CHECK_HAS(r->error.text, what);
    ir_graph_destroy(r->g);
    begin(r);
}

static void refusals_name_things(void)
{
    rig r;
    begin(&r);
    ir_value_id x = input_of(&r, 2, 4);
    (void)build_add(&r.b, x, 77);
    refused_with(&r, "input 1 of add is value 77, but the graph has 1 values");
    x = input_of(&r, 2, 4);
    (void)build_add(&r.b, 0, x);
    refused_with(&r, "input 0 of add is missing");
    x = input_of(&r, 2, 4);
    (void)build_reduce(&r.b, x, &(attrs_reduce){ .kind = 99 });
    refused_with(&r, "attribute kind of reduce is 99");
    x = input_of(&r, 2, 4);
    (void)build_reshape(&r.b, x, &(attrs_reshape){ .shape = { .count = 1, .at = (const int64_t[]){ 1 << 20 } } });
    refused_with(&r, "attribute shape of reshape has the size 1048576 at 0");
    x = input_of(&r, 2, 4);
    (void)build_node(&r.b, OP_top_k, NULL, &x, 1, 5);
    refused_with(&r, "top_k has 5 outputs, wanted are 2 to 2");
    x = input_of(&r, 2, 4);
    const ir_value_id y = build_relu(&r.b, x);
    ir_node_kill(r.g, ir_value_at(r.g, y)->producer);
    (void)build_neg(&r.b, y);
    refused_with(&r, "which was removed");
    (void)build_typed(&r.b, input_of(&r, 1, 3), (sinter_dtype)1000);
    refused_with(&r, "attribute type of cast is 1000");
    (void)build_matmul(&r.b, input_of(&r, 2, 3), input_of(&r, 2, 4), NULL);
    refused_with(&r, "matmul");
    view v;
    int64_t data[4] = { 0 };
    (void)view_init(&v, SINTER_DTYPE_I64, 1, (const int64_t[]){ 2 }, data);
    v.stride[0] = 2;
    (void)build_const(&r.b, "c", &v);
    refused_with(&r, "constant 'c' is not dense");
    (void)view_init(&v, SINTER_DTYPE_I64, 1, (const int64_t[]){ 2 }, NULL);
    (void)build_const(&r.b, "c", &v);
    refused_with(&r, "constant 'c' has no data");
    v.dim[0] = -5;
    (void)build_const(&r.b, "c", &v);
    refused_with(&r, "constant 'c' has rank 1, or sizes");
    v.dtype = (sinter_dtype)77;
    (void)build_const(&r.b, "c", &v);
    refused_with(&r, "constant 'c' has no type");
    (void)build_scalar(&r.b, (sinter_dtype)-3, 1);
    refused_with(&r, "type -3, which is no type");
    (void)build_unsqueezed(&r.b, input_of(&r, 2, 3), 4);
    refused_with(&r, "axis 4 of a tensor of rank 3");
    ir_graph_destroy(r.g);
}

/* A loop in pieces; what is of one region is not taken in another. */
static void regions_are_apart(void)
{
    rig r;
    begin(&r);
    const ir_value_id x = input_of(&r, 1, 4), trip = build_scalar_i64(&r.b, SINTER_DTYPE_I64, 3),
                      outer = build_relu(&r.b, x), in[3] = { trip, 0, outer };
    const ir_node_id loop = build_loop(&r.b, in, 3, &(attrs_loop){ .carried = 1 }, 1);
    if (!CHECK(loop)) return;
    ir_builder body = { .g = r.g, .region = ir_region_new(r.g, loop) };
    const dim four = dim_const(r.g->dims, 4);
    (void)ir_param(r.g, body.region, "i", SINTER_DTYPE_I64, 0, NULL);
    const ir_value_id go = ir_param(r.g, body.region, "go", SINTER_DTYPE_BOOL, 0, NULL),
                      carried = ir_param(r.g, body.region, "c", SINTER_DTYPE_F32, 1, &four);
    CHECK(!build_add(&body, carried, outer));
    CHECK_HAS(r.error.text, "is of region 1; wanted is one of region 2");
    body.status = SINTER_OK;
    ir_result(r.g, body.region, go);
    ir_result(r.g, body.region, build_exp(&body, carried));
    CHECK_EQ(body.status, SINTER_OK);
    /* Its outputs have no type before it is closed. */
    CHECK(!build_neg(&r.b, build_result(&r.b, loop, 0)));
    CHECK_HAS(r.error.text, "has no type yet");
    r.b.status = SINTER_OK;
    build_close(&r.b, loop);
    ir_result(r.g, IR_MAIN, build_neg(&r.b, build_result(&r.b, loop, 0)));
    CHECK_EQ(r.b.status, SINTER_OK);
    CHECK_EQ(ir_verify(r.g, IR_STAGE_IMPORTED), SINTER_OK);
    ir_graph_destroy(r.g);
}

/* Calls with participles give v itself where nothing changes. */
static void nothing_is_added_for_nothing(void)
{
    rig r;
    begin(&r);
    const ir_value_id x = input_of(&r, 2, 4);
    const dim four = dim_const(r.g->dims, 4), d[2] = { four, four };
    CHECK_EQ(build_typed(&r.b, x, SINTER_DTYPE_F32), x);
    CHECK_EQ(build_shaped(&r.b, x, d, 2), x);
    CHECK_EQ(build_expanded(&r.b, x, d, 2), x);
    CHECK_EQ(build_permuted(&r.b, x, (const int64_t[]){ 0, 1 }, 2), x);
    CHECK_EQ(r.g->node.count, 1);
    const float data[4] = { 1, 2, 3, 4 };
    view v;
    (void)view_init(&v, SINTER_DTYPE_F32, 1, (const int64_t[]){ 4 }, (void *)(uintptr_t)data);
    const ir_value_id c = build_const(&r.b, "c", &v), column = build_along(&r.b, c, 0, 2);
    CHECK_EQ(r.g->node.count, 1);
    CHECK(ir_value_at(r.g, column)->data == data);
    CHECK_EQ(ir_value_at(r.g, column)->rank, 2);
    CHECK_EQ(r.b.status, SINTER_OK);
    /* Defaults are those of attrs.def. */
    const ir_value_id w = input_of(&r, 4, 4);
    const attrs_conv *a = DEFAULTS(conv);
    CHECK(op_attrs_equal(OP_conv, a, op_attrs_new(&r.g->a, OP_conv)));
    CHECK(op_attrs_equal(OP_lstm, DEFAULTS(lstm), op_attrs_new(&r.g->a, OP_lstm)));
    CHECK(build_conv(&r.b, w, w, a) != 0 || r.b.status);
    ir_graph_destroy(r.g);
}

static const test tests[] = {
    T(calls_are_right_or_refused), T(refusals_name_things), T(regions_are_apart), T(nothing_is_added_for_nothing), { 0 }
};
TEST_MAIN(tests)
