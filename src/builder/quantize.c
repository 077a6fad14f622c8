/* SPDX-License-Identifier: Apache-2.0 */
/* quantize.c - quantize.h has the contract: a model is simplified, and its products are quantised before it is written.
 */
#include "builder/quantize.h"

#include "builder/calibration.h"
#include "builder/simplify.h"
#include "tune/tune.h"

/* Why a product is not quantised; NULL: it is. */
static const char *refusal(const sinter_quantize_options *o, const tune_product *p, double range)
{
    if (o->chosen && !o->chosen(o->user, p->op, p->node)) return "it was not chosen";
    return range > 0 ? NULL : "the calibration has no range of its data";
}

/* The ranges of all tensors, by value. */
static sinter_status value_ranges(env *e, arena *a, ir_graph *g, const sinter_quantize_options *o, double **out,
                                  uint32_t *count)
{
    tune_tensor *tensor;
    uint32_t tensors;
    TRY(tune_tensors(e, a, g, &tensor, &tensors));
    *count = g->value.count;
    *out = ARENA_NEW(a, double, *count);
    if (!*out) return FAIL_MEMORY(e, "ranges");
    for (uint32_t i = 0; i < tensors; i++) (*out)[tensor[i].value] = calibration_range(o->calibration, tensor[i].name);
    return SINTER_OK;
}

static sinter_status quantize(void *user, env *e, ir_graph *g)
{
    static const tune_codes codes[] = { TUNE_CODES_I8, TUNE_CODES_F8 };
    const sinter_quantize_options *o = user;
    tune_product *product = NULL;
    uint32_t count = 0, taken = 0;
    arena a;
    arena_init(&a, e);
    sinter_status s = tune_products(e, &a, g, &product, &count);
    double *range = s == SINTER_OK ? ARENA_NEW(&a, double, count) : NULL;
    if (s == SINTER_OK && !range) s = FAIL_MEMORY(e, "ranges");
    for (uint32_t i = 0; s == SINTER_OK && i < count; i++) {
        const double found = calibration_range(o->calibration, product[i].data);
        const char *why = refusal(o, &product[i], found);
        range[i] = why ? 0 : found;
        taken += !why;
        if (o->told) o->told(o->user, product[i].op, product[i].node, why);
    }
    if (s == SINTER_OK && !taken)
        s = FAIL(e, INVALID_ARG, "of %u products with constant weights none is quantised: %s", count,
                 !count ? "there are none in f32" : "none was chosen that has a range in the calibration");
    uint32_t values = 0;
    double *by_value = NULL;
    if (s == SINTER_OK) s = value_ranges(e, &a, g, o, &by_value, &values);
    if (s == SINTER_OK) s = tune_quantize(e, g, codes[o->quantize_mode], range, NULL, &count);
    if (s == SINTER_OK) s = tune_quantize_sums(e, g, codes[o->quantize_mode], by_value, values);
    if (s == SINTER_OK) s = ir_sweep(g);
    arena_deinit(&a);
    return NOTE(e, s, "quantising the model");
}

sinter_status quantize_model(env *e, const build_model *m, const sinter_quantize_options *o, const char *path)
{
    sinter_simplify_options how = SINTER_SIMPLIFY_OPTIONS;
    how.shape = o->shape;
    how.shape_count = o->shape_count;
    how.external_data = o->use_external_data_format;
    quantize_weights_job weights = { m, o };
    const bool is_weights = o->quantize_mode == SINTER_QUANTIZE_INT4;
    const simplify_change change = { is_weights ? quantize_weights : quantize,
                                     is_weights ? (void *)&weights : (void *)(uintptr_t)o };
    return simplify_model(e, m, &how, &change, path, NULL);
}

/* ---- rules ---- */

typedef struct checking {
    tune_told told;
    void *user;
} checking;

static sinter_status check(void *user, env *e, ir_graph *g)
{
    const checking *c = user;
    return tune_placement(e, g, c->told, c->user);
}

static sinter_status forget(void *user, const void *data, size_t size)
{
    (void)user, (void)data, (void)size;
    return SINTER_OK;
}

sinter_status quantize_check(env *e, const build_model *m, tune_told told, void *user)
{
    sinter_simplify_options how = SINTER_SIMPLIFY_OPTIONS;
    how.skip_optimization = 1;
    checking c = { told, user };
    const simplify_change change = { check, &c };
    const onnx_sink nowhere = { forget, NULL };
    return simplify_model(e, m, &how, &change, NULL, &nowhere);
}
