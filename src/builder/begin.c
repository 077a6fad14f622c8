/* SPDX-License-Identifier: Apache-2.0 */
/* begin.c - imports a model and runs the passes that all of its builds have in common: begin.h has the contract. */
#include "builder/begin.h"

#include "base/os.h"
#include "builder/profiles.h"
#include "builder/states.h"
#include "network/network.h"

#include <string.h>

static void dump_stage(void *user, const char *stage, const ir_graph *g)
{
    const build_base *b = user;
    text t;
    text_init(&t, b->e);
    ir_print(g, &t);
    if (!t.failed) b->o->stage(b->o->user, stage, t.at, t.length);
    text_deinit(&t);
}

static sinter_status promises(build_base *b, onnx_import_options *options)
{
    onnx_input_value *list = ARENA_NEW(&b->a, onnx_input_value, b->o->value_count);
    if (!list) return FAIL_MEMORY(b->e, "the inputs' values");
    for (uint32_t i = 0; i < b->o->value_count; i++) {
        const sinter_input_value *v = &b->o->value[i];
        if (!v->input || !v->value || !v->value->data)
            return FAIL(b->e, INVALID_ARG, "value %u of an input is NULL", i);
        if (v->value->place == SINTER_PLACE_DEVICE)
            return FAIL(b->e, INVALID_ARG, "the value given for input '%s' lies on the device, wanted on the host",
                        v->input);
        list[i].name = v->input;
        if (!dtype_is_valid((int)v->value->dtype) || v->value->rank > SINTER_RANK_MAX ||
            !view_init(&list[i].data, v->value->dtype, v->value->rank, v->value->dim, v->value->data))
            return FAIL(b->e, INVALID_ARG, "the value given for input '%s' is no tensor", v->input);
    }
    options->value = b->promise = list;
    options->count_value = b->o->value_count;
    return SINTER_OK;
}

/* Finds the range of values of each integer input that indexes a table. Runs before rewrites, when the graph shows most
 * of the tables. */
static sinter_status input_values(build_base *b)
{
    const ir_region *main = ir_region_at(b->g, IR_MAIN);
    bool has_integers = false;
    for (uint32_t i = 0; i < main->param.count; i++)
        has_integers = has_integers || !dtype_is_float(ir_value_at(b->g, main->param.at[i])->dtype);
    return has_integers ? ir_input_values(b->g, &b->a, &b->values) : SINTER_OK;
}

/* May a weight be replaced, as far as the caller says? */
static bool is_replaceable(const sinter_build_options *o, const char *name)
{
    for (uint32_t i = 0; i < o->replaceable_count; i++)
        if (name && !strcmp(o->replaceable[i], name)) return true;
    return !o->replaceable_count;
}

/* Marks the weights that may be replaced later, so that no pass uses their values: initializers of several elements
 * that the import did not have to read, and constants folded from them. Lists of integers are sizes and axes and are
 * not marked. A weight that cannot be replaced is an ordinary constant. */
static sinter_status open_weights(ir_graph *g, const sinter_build_options *o)
{
    TRY(ir_look_back(g));
    for (ir_value_id v = 1; v < g->value.count; v++) {
        ir_value *x = ir_value_at(g, v);
        view data;
        if (x->initializer && !is_replaceable(o, x->name)) x->initializer = SINTER_DTYPE_NONE;
        if (!x->initializer || x->is_read || !ir_const_view(g, v, &data)) continue;
        x->is_open = view_count(&data) > 1 && x->dtype != SINTER_DTYPE_I64 && x->dtype != SINTER_DTYPE_BOOL;
    }
    for (bool more = true; more;) {
        more = false;
        for (ir_value_id v = 1; v < g->value.count; v++) {
            ir_value *x = ir_value_at(g, v);
            const ir_node *n = ir_node_at(g, x->recipe);
            for (uint32_t i = 0; x->recipe && !x->is_open && !x->is_read && i < n->count_in; i++)
                if (ir_value_at(g, n->in[i])->is_open) more = x->is_open = true;
        }
    }
    return SINTER_OK;
}

static sinter_status read_model(build_base *b, const build_model *m, arena *a)
{
    onnx_model model;
    if (m->network) TRY(network_face(m->network, b->e, a, &model));
    else TRY(onnx_model_read(b->e, a, m->bytes, m->size, &model));
    b->node_count = m->network ? m->network->layer.count : model.graph.node.count;
    onnx_import_options options = {
        .model = &model, .folder = m->folder, .is_mapped = m->is_mapped, .files = &b->source.files
    };
    unranged_axis unranged;
    TRY(profiles_union(b->e, a, &model, b->o, &options, &unranged));
    TRY(promises(b, &options));
    onnx_dim_equal *equal = ARENA_NEW(a, onnx_dim_equal, b->o->equal_count);
    if (!equal) return FAIL_MEMORY(b->e, "sizes");
    for (uint32_t i = 0; i < b->o->equal_count; i++)
        equal[i] = (onnx_dim_equal){ b->o->equal[i].dim, b->o->equal[i].equals };
    options.equal = equal;
    options.count_equal = b->o->equal_count;
    const sinter_status s = m->network ? network_lower(m->network, b->e, &options, &b->g)
                                       : onnx_import(b->e, &options, m->bytes, m->size, &b->g);
    if (s != SINTER_OK && unranged.input)
        return NOTE(
            b->e, s,
            "taking free sizes without a range as 1, such as axis %u of '%s' (--shape and --profile give ranges)",
            unranged.axis, unranged.input);
    TRY(s);
    return states_find(b->e, b->g, b->o);
}

static sinter_status import_model(build_base *b, const build_model *m)
{
    TRY(build_progress(b->e, b->o, "import", 0));
    arena reading;
    arena_init(&reading, b->e);
    const sinter_status s = read_model(b, m, &reading);
    arena_deinit(&reading);
    TRY(s);
    TRY(input_values(b));
    if (b->o->refittable) TRY(open_weights(b->g, b->o));
    if (b->o->stage) dump_stage(b, "import", b->g);
    return b->o->verify ? ir_verify(b->g, IR_STAGE_IMPORTED) : SINTER_OK;
}

opt_options build_passes(build_base *b)
{
    return (opt_options){ .math = b->o->math == SINTER_MATH_EXACT ? OPT_MATH_EXACT : OPT_MATH_FP32,
                          .disabled = b->o->rules,
                          .rule_limit = b->o->rule_limit,
                          .fired_before = b->fired,
                          .verify = b->o->verify != 0,
                          .dump = b->o->stage ? dump_stage : NULL,
                          .dump_user = b };
}

static sinter_status optimize(build_base *b)
{
    TRY(build_progress(b->e, b->o, "optimise", 0));
    opt_options options = build_passes(b);
    if (build_is_reference(b->o)) { /* nothing is optimised, but a state has to have one size */
        options.after = "strength";
        options.stop_after = "state";
        if (b->g->states.count) TRY(NOTE(b->e, opt_run(b->e, b->g, &options), "optimising the graph"));
        return ir_sweep(b->g);
    }
    options.stop_after = opt_common_end;
    options.fired_count = &b->fired;
    return NOTE(b->e, opt_run(b->e, b->g, &options), "optimising the graph");
}

sinter_status build_begin(env *e, const build_model *m, const sinter_build_options *o, build_base **out)
{
    *out = NULL;
    build_base *b = mem_zalloc(e, sizeof *b, _Alignof(build_base));
    if (!b) return FAIL_MEMORY(e, "a build");
    b->e = e;
    b->o = o;
    b->source.model = m;
    arena_init(&b->a, e);
    uint64_t start = os_time_ns();
    source_digest(&b->source, b->digest);
    sinter_status s = import_model(b, m);
    if (o->report) build_time_add(&start, &o->report->import_s);
    if (s == SINTER_OK) s = optimize(b);
    if (o->report) build_time_add(&start, &o->report->optimise_s);
    if (s == SINTER_OK) *out = b;
    else build_base_end(b);
    return s;
}

void build_base_end(build_base *b)
{
    if (!b) return;
    ir_graph_destroy(b->g);
    arena_deinit(&b->a);
    onnx_files_close(b->e, &b->source.files);
    mem_free(b->e, b, sizeof *b, _Alignof(build_base));
}

sinter_status build_base_graph(build_base *b, bool is_last, ir_graph **out)
{
    if (!is_last) return ir_graph_clone(b->g, out);
    *out = b->g;
    b->g = NULL;
    return SINTER_OK;
}
