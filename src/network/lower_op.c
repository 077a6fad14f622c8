/* SPDX-License-Identifier: Apache-2.0 */
/* lower_op.c - layers that are an operator of ONNX: the node is put together again, and the importer converts it.
 *
 * The node's inputs have names of its own making, in a scope of its own. A subgraph in it reads names of the model that
 * it comes from; these stand for the inputs behind the operator's own. */
#include "network/lowering.h"

#include <string.h>

static bool attr_of(network_call *n, const sinter_param *row, const network_param *p, onnx_attr *out)
{
    *out = (onnx_attr){ .name = row->name, .ref = "" };
    switch (row->kind) {
    case SINTER_PARAM_REAL:
        out->type = ONNX_FLOAT;
        out->f = (float)p->r;
        return true;
    case SINTER_PARAM_TEXT:
        out->type = ONNX_STRING;
        out->s = (onnx_text){ p->text, strlen(p->text) };
        return true;
    case SINTER_PARAM_INTS:
        out->type = ONNX_INTS;
        out->ints.at = p->ints;
        out->ints.count = out->ints.capacity = p->count;
        return true;
    case SINTER_PARAM_REALS: {
        float *at = ARENA_NEW(&n->c.im->a, float, p->count + 1u);
        for (uint32_t i = 0; at && i < p->count; i++) at[i] = (float)p->reals[i];
        out->type = ONNX_FLOATS;
        out->floats.at = at;
        out->floats.count = out->floats.capacity = p->count;
        return at != NULL;
    }
    default:
        out->type = ONNX_INT;
        out->i = p->i;
        return true;
    }
}

static bool node_attrs(network_call *n, onnx_node *node)
{
    const sinter_layer *layer = n->layer;
    for (uint32_t i = 0; i < layer->count_param + layer->op.count_attr; i++) {
        onnx_attr *a = VEC_PUSH(&n->c.im->a, &node->attr);
        if (!a) return false;
        if (i >= layer->count_param) *a = layer->op.attr[i - layer->count_param];
        else if (!attr_of(n, &layer->param_row[i], &layer->param[i], a)) return false;
    }
    return true;
}

static const char *name_push(network_call *n, onnx_names *list, const char *name)
{
    const char **slot = VEC_PUSH(&n->c.im->a, list);
    if (slot) *slot = name;
    return slot ? name : NULL;
}

/* The names of inputs and outputs, and the scope in which they stand for values. */
static sinter_status node_names(network_call *n, onnx_node *node, onnx_scope *scope)
{
    importer *im = n->c.im;
    const sinter_layer *layer = n->layer;
    for (uint32_t i = 0; i < n->c.count_in; i++) {
        const bool is_read = i >= layer->op.count_in && layer->op.reads;
        const char *name = is_read ? layer->op.reads[i - layer->op.count_in] : arena_printf(&im->a, "input %u", i);
        if (!is_read && !name_push(n, &node->in, n->c.in[i] ? name : "")) return FAIL_MEMORY(n->c.e, "a node");
        if (n->c.in[i]) TRY(scope_set(im, scope, name, n->c.in[i]));
    }
    for (uint32_t i = 0; i < layer->count_out; i++) {
        const char *name = layer->op.out ? layer->op.out[i] : arena_printf(&im->a, "output %u", i);
        if (!name || !name_push(n, &node->out, name)) return FAIL_MEMORY(n->c.e, "a node");
    }
    return SINTER_OK;
}

void lower_op(network_call *n)
{
    const network_op_info *op = &n->layer->op;
    onnx_opset own = { op->domain, op->version };
    onnx_function version = { .name = "", .domain = "", .overload = "" };
    version.opset = op->opset ? *op->opset : (onnx_opsets){ .at = &own, .count = 1, .capacity = 1 };
    const onnx_frame frame = { .function = &version, .path = "" };
    onnx_scope scope = {
        .frame = &frame, .region = n->x->region, .depth = n->x->scope.depth, .names = { .a = &n->c.im->a }
    };
    onnx_node node = { .name = n->layer->name, .type = op->type, .domain = op->domain, .overload = "" };
    if (!node_attrs(n, &node)) REJECT(&n->c, NO_MEMORY, "out of memory for a node");
    if (!n->c.b.status) n->c.b.status = node_names(n, &node, &scope);
    scope.wanted = node.out;
    if (!n->c.b.status) n->c.b.status = importer_convert(n->c.im, &scope, &node, n->c.out);
    for (uint32_t i = 0; i < n->layer->count_out && !n->c.b.status; i++) {
        if (n->c.out[i] == NAME_MISSING || n->c.out[i] == NAME_POISONED) n->c.out[i] = 0;
        if (!n->c.out[i] && node.out.at[i][0]) REJECT(&n->c, UNSUPPORTED, "output %u is not supported", i);
    }
}
