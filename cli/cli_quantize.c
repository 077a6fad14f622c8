/* SPDX-License-Identifier: Apache-2.0 */
/* cli_quantize.c - `sinter quantize`: a model with QuantizeLinear and DequantizeLinear, with the flags of NVIDIA's
 * Model Optimizer. */
#include "cli_model.h"

#include <regex.h>
#include <stdlib.h>
#include <string.h>

/* ---- what is quantised ---- */

typedef struct choice {
    const args *a;
    regex_t *node[2]; /* of --nodes-to-quantize, of --nodes-to-exclude */
    uint32_t count[2];
    uint32_t taken, all;
    json j;
} choice;

/* Gemm and MatMul are one op here. */
static bool is_op(const char *word, size_t length, const char *op)
{
    if (length == 4 && !strncmp(word, "Gemm", 4)) return !strcmp(op, "matmul");
    if (strlen(op) != length) return false;
    for (size_t i = 0; i < length; i++)
        if ((word[i] | 32) != op[i]) return false;
    return true;
}

static bool has_op(const char *list, const char *op)
{
    for (const char *at = list; *at; at += *at == ',') {
        const size_t n = strcspn(at, ",");
        if (is_op(at, n, op)) return true;
        at += n;
    }
    return false;
}

static bool matches(const choice *c, uint32_t which, const char *node)
{
    for (uint32_t i = 0; i < c->count[which]; i++)
        if (regexec(&c->node[which][i], node, 0, NULL, 0) == 0) return true;
    return false;
}

static int chosen(void *user, const char *op, const char *node)
{
    const choice *c = user;
    const args *a = c->a;
    if (a->op_types_to_quantize && !has_op(a->op_types_to_quantize, op)) return 0;
    if (a->op_types_to_exclude && has_op(a->op_types_to_exclude, op)) return 0;
    if (c->count[0] && !matches(c, 0, node)) return 0;
    return !matches(c, 1, node);
}

static void told(void *user, const char *op, const char *node, const char *why)
{
    choice *c = user;
    c->all++;
    c->taken += !why;
    if (c->a->json) {
        json_open(&c->j, NULL, '{');
        json_text(&c->j, "node", node);
        json_text(&c->j, "op", op);
        json_text(&c->j, "why_not", why ? why : "");
        json_close(&c->j, '}');
    } else if (why) {
        cli_say(LOG_INFO, "'%s' (%s) stays in f32: %s", node, op, why);
    }
}

/* Words that name no op, and regular expressions that are none. */
static bool choice_make(const args *a, choice *c)
{
    const arg_list *list[] = { &a->nodes_to_quantize, &a->nodes_to_exclude };
    const char *ops[] = { a->op_types_to_quantize, a->op_types_to_exclude };
    *c = (choice){ .a = a };
    for (uint32_t i = 0; i < 2; i++) {
        for (const char *at = ops[i] ? ops[i] : ""; *at; at += *at == ',') {
            const size_t n = strcspn(at, ",");
            if (!is_op(at, n, "conv") && !is_op(at, n, "matmul"))
                return cli_fail("'%.*s' is no operator that is quantised: Conv, MatMul and Gemm are", (int)n, at) == 0;
            at += n;
        }
        c->node[i] = cli_alloc(list[i]->count, sizeof **c->node);
        for (uint32_t k = 0; k < list[i]->count; k++, c->count[i]++)
            if (regcomp(&c->node[i][k], list[i]->at[k], REG_EXTENDED | REG_NOSUB) != 0)
                return cli_fail("'%s' is no regular expression", list[i]->at[k]) == 0;
    }
    return true;
}

static void choice_free(choice *c)
{
    for (uint32_t i = 0; i < 2; i++) {
        for (uint32_t k = 0; k < c->count[i]; k++) regfree(&c->node[i][k]);
        free(c->node[i]);
    }
}

/* ---- ranges ---- */

/* --calibration-method is a word of --method or of --weight-method. */
static bool method_read(args *a)
{
    static const char *const of_weights[] = { "rtn_dq", "awq_clip", "awq_lite", "awq_full" };
    const bool is_int4 = a->quantize.quantize_mode == SINTER_QUANTIZE_INT4;
    if (!a->calibration_method) return true;
    for (int i = 0; i < 4; i++) {
        if (strcmp(a->calibration_method, of_weights[i]) != 0) continue;
        a->quantize.weight_method = (sinter_weight_method)(SINTER_WEIGHT_RTN + i);
        if (is_int4) return true;
        return cli_fail("--calibration-method %s is a method of --quantize-mode int4", a->calibration_method) == 0;
    }
    if (!is_int4) return true;
    return cli_fail(
               "--calibration-method %s is a method of int8 and fp8; int4 has rtn_dq, awq_clip, awq_lite, awq_full",
               a->calibration_method) == 0;
}

/* The ranges of --calib, or those that the data give. */
static bool ranges_make(const args *a, model_setup *setup, model_given *g, sinter_calibration **found)
{
    sinter_error error = { 0 };
    if (!model_given_make(a, setup, NULL, g)) return false;
    if (a->quantize.quantize_mode == SINTER_QUANTIZE_INT4) {
        if (a->calib) return cli_fail("--calib has ranges of data; int4 is of weights alone, and looks at --data") == 0;
        if (a->quantize.weight_method < SINTER_WEIGHT_AWQ_CLIP || a->data.count) return true;
        return cli_fail("this method looks at data: --data NAME=FILE is missing; rtn_dq needs none") == 0;
    }
    if (g->calibration) return true;
    if (!a->data.count) return cli_fail("which ranges? --calib CACHE or --data NAME=FILE is missing") == 0;
    sinter_calibrate_options how = a->calibrate;
    how.build = &setup->build;
    /* As Model Optimizer has it: the largest magnitude for fp8. */
    if (a->quantize.quantize_mode == SINTER_QUANTIZE_FP8 && how.method == SINTER_CALIBRATION_ENTROPY_2)
        how.method = SINTER_CALIBRATION_MINMAX;
    if (a->calibration_method)
        how.method = !strcmp(a->calibration_method, "max") ? SINTER_CALIBRATION_MINMAX : SINTER_CALIBRATION_ENTROPY_2;
    const sinter_status s = sinter_calibrate_file(a->file.at[0], &how, found, &error);
    progress_end(&setup->bar);
    return s == SINTER_OK || cli_error(&error) == 0;
}

static bool quantize(const args *a, model_setup *setup, const model_given *g, const sinter_calibration *ranges,
                     choice *c)
{
    sinter_error error = { 0 };
    sinter_quantize_options o = a->quantize;
    o.env = &setup->env;
    o.calibration = ranges;
    o.build = &setup->build;
    o.shape = g->shapes.count ? g->shapes.profile[0].shape : NULL;
    o.shape_count = g->shapes.count && a->shape.count ? g->shapes.profile[0].count : 0;
    o.chosen = chosen;
    o.told = told;
    o.user = c;
    const sinter_status s = sinter_quantize_file(a->file.at[0], &o, a->output, &error);
    progress_end(&setup->bar);
    return s == SINTER_OK || cli_error(&error) == 0;
}

/* ---- --lint ---- */

typedef struct lint {
    uint32_t count;
    bool is_json;
    json j;
} lint;

static void on_broken(void *user, const char *rule, const char *node, const char *text)
{
    lint *l = user;
    l->count++;
    if (!l->is_json) {
        (void)printf("%s: '%s': %s\n", rule, node, text);
        return;
    }
    json_open(&l->j, NULL, '{');
    json_text(&l->j, "rule", rule);
    json_text(&l->j, "node", node);
    json_text(&l->j, "text", text);
    json_close(&l->j, '}');
}

static int check(const args *a)
{
    model_setup setup;
    sinter_error error = { 0 };
    lint l = { .is_json = a->json, .j.to = stdout };
    if (!model_setup_make(a, &setup)) return STATUS_USAGE;
    if (l.is_json) json_open(&l.j, NULL, '{'), json_open(&l.j, "broken", '[');
    const sinter_status s = sinter_quantize_check_file(a->file.at[0], &setup.env, on_broken, &l, &error);
    if (l.is_json) json_close(&l.j, ']'), json_close(&l.j, '}');
    if (s != SINTER_OK) return cli_error(&error);
    if (!l.is_json) (void)printf("%s: %u broken rules\n", a->file.at[0], l.count);
    return l.count ? STATUS_FAILED : STATUS_OK;
}

int verb_quantize(const args *given)
{
    args a = *given;
    if (a.onnx_path) a.file.at[a.file.count++] = a.onnx_path;
    if (a.output_path) a.output = a.output_path;
    if (a.calibration_cache_path) a.calib = a.calibration_cache_path;
    if (a.calibration_data_path && !args_is_npz(a.calibration_data_path))
        return cli_fail(
            "--calibration-data-path is '%s', an archive .npz is wanted; --data NAME=FILE takes other files",
            a.calibration_data_path);
    if (a.calibration_data_path && a.data.count < ARG_LIST_MAX) a.data.at[a.data.count++] = a.calibration_data_path;
    if (a.lint && a.file.count == 1) return check(&a);
    if (!a.file.count || !a.output) {
        (void)cli_fail(a.output ? "which model? MODEL.onnx is missing" : "where to? -o OUT.onnx is missing");
        return STATUS_USAGE;
    }
    if (a.file.count > 1) return cli_fail("two models: '%s' and --onnx-path %s", a.file.at[0], a.file.at[1]);
    model_setup setup;
    choice c = { 0 };
    if (!model_setup_make(&a, &setup)) return STATUS_USAGE;
    if (!outputs_check_model(&a, a.output)) return STATUS_FAILED;
    FILE *to = outputs_is_stdout(a.output) ? stderr : stdout;
    model_given g = { 0 };
    sinter_calibration *found = NULL;
    bool is_good = method_read(&a) && choice_make(&a, &c);
    c.j.to = to;
    is_good = is_good && ranges_make(&a, &setup, &g, &found);
    if (is_good && a.json) {
        json_open(&c.j, NULL, '{');
        json_text(&c.j, "model", a.output);
        json_open(&c.j, "products", '[');
    }
    is_good = is_good && quantize(&a, &setup, &g, found ? found : g.calibration, &c);
    if (is_good && a.json) {
        json_close(&c.j, ']');
        json_count(&c.j, "quantized", c.taken);
        json_close(&c.j, '}');
    } else if (is_good) {
        static const char *const modes[] = { "int8", "fp8", "int4" };
        (void)fprintf(to, "wrote %s: %u of %u products with constant weights in %s\n", a.output, c.taken, c.all,
                      modes[a.quantize.quantize_mode]);
    }
    sinter_calibration_destroy(found);
    model_given_free(&g, &setup);
    choice_free(&c);
    return is_good ? STATUS_OK : STATUS_FAILED;
}
