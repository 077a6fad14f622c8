/* SPDX-License-Identifier: Apache-2.0 */
/* info.c - include/sinter/info.h: the operators that are taken, from the importer's rows and the op table. */
#include "sinter/info.h"

#include "base/text.h"
#include "onnx/import.h"
#include "ops/ops.h"

#include <stdio.h>
#include <string.h>

enum { FORMAT_PLAIN, FORMAT_MARKDOWN, FORMAT_JSON };

static sinter_status give(text *t, sinter_write_fn write, void *user)
{
    const sinter_status s = t->failed ? SINTER_NO_MEMORY : SINTER_OK;
    if (s == SINTER_OK) write(user, t->at, t->length);
    text_deinit(t);
    return s;
}

/* ---- operators ---- */

static const char *domain_name(const char *domain)
{
    return *domain ? domain : "ai.onnx";
}

static void onnx_row(text *t, int format, const onnx_op_row *row, bool is_first)
{
    char versions[64];
    if (row->until)
        (void)snprintf(versions, sizeof versions, "%lld to %lld", (long long)row->since, (long long)row->until);
    else (void)snprintf(versions, sizeof versions, "%lld on", (long long)row->since);
    if (format == FORMAT_MARKDOWN) {
        text_printf(t, "| %s | %s | %s |\n", domain_name(row->domain), row->name, versions);
    } else if (format == FORMAT_JSON) {
        text_printf(t, "%s\n  {\"domain\": \"%s\", \"name\": \"%s\", \"since\": %lld, \"until\": %lld}",
                    is_first ? "" : ",", domain_name(row->domain), row->name, (long long)row->since,
                    (long long)row->until);
    } else {
        text_printf(t, "%-14s %-30s %s\n", domain_name(row->domain), row->name, versions);
    }
}

static void count_text(text *t, uint32_t min, uint32_t max)
{
    if (min == max) text_printf(t, "%u", min);
    else if (max >= OP_IN_MAX) text_printf(t, "%u or more", min);
    else text_printf(t, "%u to %u", min, max);
}

static void traits_text(text *t, uint32_t traits)
{
#define X(bit, trait, name) [bit] = (name),
    static const char *const names[] = { OP_TRAITS(X) };
#undef X
    bool is_first = true;
    for (size_t i = 0; i < COUNT_OF(names); i++) {
        if (!(traits >> i & 1u)) continue;
        text_printf(t, "%s%s", is_first ? "" : ", ", names[i]);
        is_first = false;
    }
}

static void op_row_print(text *t, int format, op_id id, bool is_first)
{
    const op_info *op = op_at(id);
    if (format == FORMAT_JSON) {
        text_printf(t, "%s\n  {\"name\": \"%s\", \"attributes\": [", is_first ? "" : ",", op->name);
        for (const attr_info *a = op->attr; a->name; a++)
            text_printf(t, "%s\"%s\"", a == op->attr ? "" : ", ", a->name);
        text_printf(t, "]}");
        return;
    }
    text_printf(t, format == FORMAT_MARKDOWN ? "| %s | " : "%-18s ", op->name);
    count_text(t, op->in_min, op->in_max);
    text_printf(t, format == FORMAT_MARKDOWN ? " | " : " in, ");
    count_text(t, op->out_min, op->out_max);
    text_printf(t, format == FORMAT_MARKDOWN ? " | " : " out; ");
    for (const attr_info *a = op->attr; a->name; a++) text_printf(t, "%s%s", a == op->attr ? "" : ", ", a->name);
    text_printf(t, format == FORMAT_MARKDOWN ? " | " : "; ");
    traits_text(t, op->traits);
    text_printf(t, format == FORMAT_MARKDOWN ? " |\n" : "\n");
}

static void scalar_row_print(text *t, int format, op_id id)
{
    const scalar_info *s = scalar_at(id);
    text_printf(t, format == FORMAT_MARKDOWN ? "| %s | %u | %.3s | %.5s |\n" : "%-18s %u arguments, %.3s to %.5s\n",
                s->name, s->arity, s->types, s->result);
}

static void operators_print(text *t, int format)
{
    const bool is_page = format == FORMAT_MARKDOWN, is_json = format == FORMAT_JSON;
    onnx_op_row row, last = { 0 };
    uint32_t count = 0;
    for (uint32_t i = 0; onnx_op_at(i, &row); i++) {
        count += !last.name || strcmp(last.name, row.name) || strcmp(last.domain, row.domain);
        last = row;
    }
    if (is_page)
        text_printf(t,
                    "# Operators\n\nWhat `sinter ops --markdown` prints.\n\n## ONNX operators that are imported: %u\n\n"
                    "| domain | operator | opset versions |\n|---|---|---|\n",
                    count);
    if (is_json) text_printf(t, "{\"onnx\": [");
    for (uint32_t i = 0; onnx_op_at(i, &row); i++) onnx_row(t, format, &row, i == 0);
    if (is_json) text_printf(t, "],\n \"ops\": [");
    else if (is_page)
        text_printf(
            t,
            "\n## Canonical ops\n\nWhat a graph consists of after import; attributes are as the graph's text has them."
            "\n\n| op | inputs | outputs | attributes | traits |\n|---|---|---|---|---|\n");
    else text_printf(t, "%u ONNX operators\n\ncanonical ops:\n", count);
    for (int id = OP_SCALAR_COUNT; id < OP_COUNT; id++) op_row_print(t, format, (op_id)id, id == OP_SCALAR_COUNT);
    if (is_json) {
        text_printf(t, "],\n \"scalar\": [");
        for (int id = 0; id < OP_SCALAR_COUNT; id++)
            text_printf(t, "%s\"%s\"", id ? ", " : "", scalar_at((op_id)id)->name);
        text_printf(t, "]}\n");
        return;
    }
    if (is_page)
        text_printf(
            t, "\n## Scalar functions\n\nElementwise ops, and the vocabulary of expression programs. Types: NUM any "
               "number, FLT "
               "floats, INT integers,\nBIT integers, LOG bool, ALL everything; the result has the argument's type "
               "(SAME), is BOOL, "
               "or is as the node says (TYPED).\n\n| function | arguments | types | result |\n|---|---|---|---|\n");
    else text_printf(t, "\nscalar functions:\n");
    for (int id = 0; id < OP_SCALAR_COUNT; id++) scalar_row_print(t, format, (op_id)id);
}

sinter_status sinter_print_operators(int format, sinter_write_fn write, void *user)
{
    env e;
    env_init(&e, NULL, NULL);
    if (!write || format < FORMAT_PLAIN || format > FORMAT_JSON)
        return FAIL(&e, INVALID_ARG, "no writer, or no such format");
    text t;
    text_init(&t, &e);
    operators_print(&t, format);
    return give(&t, write, user);
}
