/* SPDX-License-Identifier: Apache-2.0 */
/* debug_precision.c - `sinter debug precision`: which layers have to stay f32 so that the outputs stay within the
 * tolerances when all others are computed in a narrower type. Every trial is a build and a run; what is right is the
 * model in f32. */
#include "cli_debug.h"

#include "difference.h"
#include "shrink.h"
#include "sides.h"
#include <stdlib.h>
#include <string.h>

typedef struct search {
    const args *a;
    side want;           /* the model in f32 */
    model_inputs inputs; /* what it was run on; borrowed */
    model_setup setup;
    sinter_network *net;
    sinter_layer **layer; /* those that have a choice */
    uint32_t layers, trials;
    sinter_dtype narrow;
    bool had_error;
} search;

static bool is_f32(sinter_network_tensor *t)
{
    sinter_network_shape shape;
    return t && sinter_network_tensor_shape(t, &shape, NULL) == SINTER_OK && shape.dtype == SINTER_DTYPE_F32;
}

/* Layers that compute in f32. Loops and branches keep their types. */
static bool layers_find(search *s)
{
    const uint32_t count = sinter_network_layer_count(s->net);
    s->layer = cli_alloc(count, sizeof(sinter_layer *));
    for (uint32_t i = 0; i < count; i++) {
        sinter_layer *l = sinter_network_layer(s->net, i);
        bool has_f32 = false;
        for (uint32_t k = 0; k < sinter_layer_input_count(l); k++) has_f32 |= is_f32(sinter_layer_input(l, k));
        if (has_f32 && !sinter_layer_loop(l) && !sinter_layer_conditional(l)) s->layer[s->layers++] = l;
    }
    return s->layers || cli_fail("'%s' has no layer that computes in f32", s->a->file.at[0]) == 0;
}

static bool network_make(search *s)
{
    sinter_error error = { 0 };
    sinter_parser *parser = NULL;
    sinter_status status = sinter_network_create(&s->setup.env, &s->net, &error);
    if (status == SINTER_OK) status = sinter_parser_create(s->net, &parser, &error);
    if (status == SINTER_OK) status = sinter_parser_parse_file(parser, s->a->file.at[0], &error);
    sinter_parser_destroy(parser);
    return status == SINTER_OK ? layers_find(s) : cli_error(&error) == 0;
}

/* ---- one trial ---- */

static bool outputs_agree(search *s, sinter_context *c)
{
    side *want = &s->want;
    for (uint32_t i = 0; i < want->names; i++) {
        sinter_tensor got;
        difference d;
        sinter_error error = { 0 };
        if (sinter_context_output(c, want->name[i], &got, &error) != SINTER_OK) {
            s->had_error = true;
            return cli_error(&error) == 0;
        }
        difference_make(s->a, want->name[i], &got, side_result(want, want->name[i], i), &d);
        if (!d.is_good) return false;
    }
    return true;
}

static bool precisions_set(search *s, const bool *is_kept)
{
    sinter_error error = { 0 };
    for (uint32_t i = 0; i < s->layers; i++) {
        const sinter_dtype type = is_kept[i] ? SINTER_DTYPE_F32 : s->narrow;
        if (sinter_layer_set_precision(s->layer[i], type, &error) != SINTER_OK) return cli_error(&error) == 0;
    }
    return true;
}

static bool run(search *s, model_engine *m, model_inputs *made, sinter_context **c)
{
    sinter_error error = { 0 };
    if (!model_engine_open_given(s->a, &s->setup, &s->inputs, m) || !model_choose(s->a, m)) return false;
    sinter_status status = model_context(m, s->a->seed, MODEL_ONCE, made, c, &error);
    if (status == SINTER_OK) status = sinter_context_run(*c, &error);
    return status == SINTER_OK || cli_error(&error) == 0;
}

static bool holds(void *user, const bool *is_kept)
{
    search *s = user;
    model_engine m = { 0 };
    model_inputs made = { 0 };
    sinter_context *c = NULL;
    if (s->had_error) return false;
    s->trials++;
    s->had_error = !precisions_set(s, is_kept) || !run(s, &m, &made, &c);
    const bool is_good = !s->had_error && outputs_agree(s, c);
    sinter_context_destroy(c);
    model_engine_close(&m);
    model_inputs_free(&made);
    return is_good;
}

/* ---- the report ---- */

static void report(const search *s, const bool *is_kept, uint32_t kept)
{
    static const char *const title[] = { "stays f32", "kind" };
    const char *narrow = sinter_dtype_name(s->narrow);
    json j = { .to = stdout };
    table t;
    if (s->a->json) {
        json_open(&j, NULL, '{');
        json_text(&j, "precision", narrow);
        json_count(&j, "layers", s->layers);
        json_count(&j, "trials", s->trials);
        json_open(&j, "f32", '[');
    } else if (kept) table_begin(&t, title, 2);
    for (uint32_t i = 0; i < s->layers; i++) {
        if (!is_kept[i]) continue;
        const char *name = sinter_layer_name(s->layer[i]);
        if (s->a->json) {
            json_text(&j, NULL, name);
            continue;
        }
        table_cell(&t, 0, "%s", name);
        table_cell(&t, 1, "%s", sinter_layer_kind_name(sinter_layer_get_kind(s->layer[i])));
        table_row(&t);
    }
    if (s->a->json) {
        json_close(&j, ']');
        json_close(&j, '}');
        return;
    }
    if (kept) table_end(&t, stdout);
    (void)printf("%u of %u layers have to stay f32; with the others in %s the outputs are within the tolerances (%u "
                 "builds)\n",
                 kept, s->layers, narrow, s->trials);
}

static bool find(search *s)
{
    bool *is_kept = cli_alloc(s->layers, sizeof *is_kept);
    const shrink_plan plan = { .count = s->layers,
                               .is_linear = s->a->mode && !strcmp(s->a->mode, "linear"),
                               .is_reverse = s->a->dir && !strcmp(s->a->dir, "reverse"),
                               .holds = holds,
                               .user = s };
    bool is_good = true;
    uint32_t kept = 0;
    if (!holds(s, is_kept)) {
        for (uint32_t i = 0; i < s->layers; i++) is_kept[i] = true;
        is_good = holds(s, is_kept);
        if (!is_good && !s->had_error)
            (void)cli_fail("with every layer in f32 the outputs are outside the tolerances, too");
        if (is_good) kept = shrink(&plan, is_kept);
    }
    is_good = is_good && !s->had_error;
    if (is_good && s->a->output) {
        sinter_buffer bytes = { 0 };
        double seconds = 0;
        is_good =
            precisions_set(s, is_kept) && model_build(s->a, &s->setup, &s->inputs, s->a->output, &bytes, &seconds);
    }
    if (is_good) report(s, is_kept, kept);
    free(is_kept);
    return is_good;
}

int debug_precision(const args *a)
{
    args own = *a;
    own.verb_bit = V_RUN;
    search s = { .a = &own,
                 .narrow = a->precision && !strcmp(a->precision, "bf16") ? SINTER_DTYPE_BF16 : SINTER_DTYPE_F16 };
    if (model_is_engine(a->file.at[0]))
        return cli_fail("'%s' is an engine: precisions are those of a model", a->file.at[0]);
    if (own.build.allow) return cli_fail("--allow: debug precision says itself which layers are narrower");
    if (!model_setup_make(&own, &s.setup)) return STATUS_USAGE;
    bool is_good = !a->output || outputs_check_engine(a);
    is_good = is_good && side_alone(&own, a->file.at[0], true, false, &s.want);
    if (is_good) {
        side_inputs(&s.want, &s.inputs);
        is_good = network_make(&s);
        s.setup.network = s.net;
    }
    is_good = is_good && find(&s);
    sinter_network_destroy(s.net);
    free(s.layer);
    free(s.inputs.at);
    side_close(&s.want);
    return is_good ? STATUS_OK : STATUS_FAILED;
}
