/* SPDX-License-Identifier: Apache-2.0 */
/* network_param.c - parameters of layers, by name. */
#include "network/network.h"

#include <math.h>
#include <string.h>

/* The parameter of that name; NULL, and a failure, where the layer has none, or where its kind is not in `kinds`. */
static network_param *find(env *e, const sinter_layer *layer, const char *name, uint32_t kinds, const char *wanted,
                           const sinter_param **row)
{
    if (!name) return (void)FAIL(e, INVALID_ARG, "the name of a parameter is NULL"), NULL;
    for (uint32_t i = 0; i < layer->count_param; i++) {
        if (strcmp(layer->param_row[i].name, name) != 0) continue;
        *row = &layer->param_row[i];
        if (kinds >> (*row)->kind & 1) return &layer->param[i];
        return (void)FAIL(e, INVALID_ARG, "parameter %s of layer '%s' is no %s", name, layer->name, wanted), NULL;
    }
    return (void)FAIL(e, INVALID_ARG, "layer '%s' (%s) has no parameter '%s'", layer->name, layer->row->name, name),
           NULL;
}

/* A parameter that a layer of kind OP gets: an attribute of its operator. */
static sinter_status param_add(sinter_layer *layer, env *e, const char *name, sinter_param_kind kind)
{
    sinter_network *net = layer->net;
    if (layer->kind != SINTER_LAYER_OP || !name || !*name) return SINTER_OK;
    for (uint32_t i = 0; i < layer->count_param; i++)
        if (strcmp(layer->param_row[i].name, name) == 0) return SINTER_OK;
    sinter_param *row = ARENA_NEW(&net->a, sinter_param, layer->count_param + 2u);
    network_param *value = ARENA_NEW(&net->a, network_param, layer->count_param + 1u);
    const char *own = network_text(net, name);
    if (!row || !value || !own) return FAIL_MEMORY(e, "a parameter");
    if (layer->count_param) {
        memcpy(row, layer->param_row, layer->count_param * sizeof *row);
        memcpy(value, layer->param, layer->count_param * sizeof *value);
    }
    row[layer->count_param] = (sinter_param){ .name = own, .kind = kind, .text = "An attribute of the operator." };
    value[layer->count_param].text = "";
    layer->param_row = row;
    layer->param = value;
    layer->count_param++;
    return SINTER_OK;
}

#define BIT(kind) (UINT32_C(1) << SINTER_PARAM_##kind)
enum { INTEGERS = 1 << SINTER_PARAM_INT | 1 << SINTER_PARAM_FLAG | 1 << SINTER_PARAM_CHOICE | 1 << SINTER_PARAM_TYPE };

/* How many words "a|b|c" has; the word at `index`, or the index of a word. */
static int64_t word_index(const char *words, const char *word)
{
    const size_t length = strlen(word);
    for (int64_t i = 0;; i++) {
        const size_t n = strcspn(words, "|");
        if (n == length && memcmp(words, word, n) == 0) return i;
        if (!words[n]) return -1;
        words += n + 1;
    }
}

static int64_t word_count(const char *words)
{
    int64_t count = 1;
    for (; *words; words++) count += *words == '|';
    return count;
}

static sinter_status changed(sinter_layer *layer, network_param *p)
{
    p->is_set = true;
    network_layer_changed(layer);
    return SINTER_OK;
}

sinter_status network_set_int(sinter_layer *layer, env *e, const char *name, int64_t value)
{
    const sinter_param *row = NULL;
    TRY(network_layer_check(e, layer));
    TRY(param_add(layer, e, name, SINTER_PARAM_INT));
    network_param *p = find(e, layer, name, INTEGERS | BIT(REAL), "number", &row);
    if (!p) return SINTER_INVALID_ARG;
    if (row->kind == SINTER_PARAM_FLAG && value != 0 && value != 1)
        return FAIL(e, INVALID_ARG, "parameter %s of layer '%s' is %lld, wanted is 0 or 1", name, layer->name,
                    (long long)value);
    if (row->kind == SINTER_PARAM_CHOICE && (value < 0 || value >= word_count(row->words)))
        return FAIL(e, INVALID_ARG, "parameter %s of layer '%s' is %lld, wanted is one of %s, from 0 on", name,
                    layer->name, (long long)value, row->words);
    if (row->kind == SINTER_PARAM_TYPE && (value < 0 || value > INT32_MAX || !dtype_is_valid((int)value)))
        return FAIL(e, INVALID_ARG, "parameter %s of layer '%s' is %lld, which is no type", name, layer->name,
                    (long long)value);
    if (row->kind == SINTER_PARAM_REAL) p->r = (double)value;
    p->i = value;
    return changed(layer, p);
}

sinter_status network_set_real(sinter_layer *layer, env *e, const char *name, double value)
{
    const sinter_param *row = NULL;
    TRY(network_layer_check(e, layer));
    TRY(param_add(layer, e, name, SINTER_PARAM_REAL));
    network_param *p = find(e, layer, name, BIT(REAL), "real number", &row);
    if (!p) return SINTER_INVALID_ARG;
    if (isnan(value)) return FAIL(e, INVALID_ARG, "parameter %s of layer '%s' is no number", name, layer->name);
    p->r = value;
    return changed(layer, p);
}

sinter_status network_set_ints(sinter_layer *layer, env *e, const char *name, const int64_t *value, uint32_t count)
{
    const sinter_param *row = NULL;
    TRY(network_layer_check(e, layer));
    TRY(param_add(layer, e, name, SINTER_PARAM_INTS));
    network_param *p = find(e, layer, name, BIT(INTS), "list of integers", &row);
    if (!p) return SINTER_INVALID_ARG;
    if (count > SINTER_PARAM_INTS_MAX || (count && !value))
        return FAIL(e, INVALID_ARG, "parameter %s of layer '%s' has %u values%s, the most is %d", name, layer->name,
                    count, count && !value ? " at NULL" : "", SINTER_PARAM_INTS_MAX);
    if (!p->ints) p->ints = ARENA_NEW(&layer->net->a, int64_t, SINTER_PARAM_INTS_MAX);
    if (!p->ints) return FAIL_MEMORY(e, "a parameter");
    if (count) memcpy(p->ints, value, count * sizeof *value);
    p->count = count;
    return changed(layer, p);
}

sinter_status network_set_reals(sinter_layer *layer, env *e, const char *name, const double *value, uint32_t count)
{
    const sinter_param *row = NULL;
    TRY(network_layer_check(e, layer));
    TRY(param_add(layer, e, name, SINTER_PARAM_REALS));
    network_param *p = find(e, layer, name, BIT(REALS), "list of numbers", &row);
    if (!p) return SINTER_INVALID_ARG;
    if (count > SINTER_PARAM_INTS_MAX || (count && !value))
        return FAIL(e, INVALID_ARG, "parameter %s of layer '%s' has %u values%s, the most is %d", name, layer->name,
                    count, count && !value ? " at NULL" : "", SINTER_PARAM_INTS_MAX);
    if (!p->reals) p->reals = ARENA_NEW(&layer->net->a, double, SINTER_PARAM_INTS_MAX);
    if (!p->reals) return FAIL_MEMORY(e, "a parameter");
    if (count) memcpy(p->reals, value, count * sizeof *value);
    p->count = count;
    return changed(layer, p);
}

static sinter_dtype type_of(const char *word)
{
    for (int i = 1; i < SINTER_DTYPE_COUNT; i++)
        if (strcmp(sinter_dtype_name((sinter_dtype)i), word) == 0) return (sinter_dtype)i;
    return SINTER_DTYPE_NONE;
}

sinter_status network_set_text(sinter_layer *layer, env *e, const char *name, const char *value)
{
    const sinter_param *row = NULL;
    TRY(network_layer_check(e, layer));
    TRY(param_add(layer, e, name, SINTER_PARAM_TEXT));
    network_param *p = find(e, layer, name, BIT(TEXT) | BIT(CHOICE) | BIT(TYPE), "text or word", &row);
    if (!p) return SINTER_INVALID_ARG;
    if (!value) return FAIL(e, INVALID_ARG, "the value of parameter %s is NULL", name);
    if (row->kind == SINTER_PARAM_CHOICE) {
        const int64_t index = word_index(row->words, value);
        if (index < 0)
            return FAIL(e, INVALID_ARG, "parameter %s of layer '%s' is '%s', wanted is one of %s", name, layer->name,
                        value, row->words);
        p->i = index;
        return changed(layer, p);
    }
    if (row->kind == SINTER_PARAM_TYPE) {
        if (!type_of(value))
            return FAIL(e, INVALID_ARG, "parameter %s of layer '%s' is '%s', which is no type", name, layer->name,
                        value);
        p->i = type_of(value);
        return changed(layer, p);
    }
    const char *own = network_text(layer->net, value);
    if (!own) return FAIL_MEMORY(e, "a parameter");
    p->text = own;
    return changed(layer, p);
}

sinter_status network_weights_copy(sinter_network *net, env *e, const sinter_weights *from, sinter_weights *out)
{
    *out = (sinter_weights){ .is_borrowed = 0 };
    if (!from || (!from->count && !from->dtype)) return SINTER_OK;
    out->dtype = from->dtype; /* that of a constant without elements */
    if (!from->count) return dtype_is_valid((int)from->dtype) ? SINTER_OK : FAIL(e, INVALID_ARG, "weights of no type");
    if (!dtype_is_valid((int)from->dtype))
        return FAIL(e, INVALID_ARG, "weights of type %d, which is no type", (int)from->dtype);
    const sinter_tensor shape = { .dtype = from->dtype, .rank = 1, .dim = { from->count } };
    if (from->count < 0 || sinter_tensor_size(&shape) == SIZE_MAX)
        return FAIL(e, INVALID_ARG, "weights of %lld elements", (long long)from->count);
    if (!from->data) return FAIL(e, INVALID_ARG, "%lld weights at NULL", (long long)from->count);
    *out = *from;
    if (from->is_borrowed) return SINTER_OK;
    void *copy = arena_alloc(&net->a, sinter_tensor_size(&shape), 64);
    if (!copy) return FAIL_MEMORY(e, "weights");
    memcpy(copy, from->data, sinter_tensor_size(&shape));
    out->data = copy;
    return SINTER_OK;
}

sinter_status network_set_weights_name(sinter_layer *layer, env *e, const char *name, const char *value)
{
    const sinter_param *row = NULL;
    TRY(network_layer_check(e, layer));
    network_param *p = find(e, layer, name, BIT(WEIGHTS), "weights", &row);
    if (!p) return SINTER_INVALID_ARG;
    if (!value || !*value) return FAIL(e, INVALID_ARG, "the name of the weights is NULL or empty");
    const char *own = network_text(layer->net, value);
    if (!own) return FAIL_MEMORY(e, "a name");
    p->name = own;
    return SINTER_OK;
}

sinter_status network_set_weights(sinter_layer *layer, env *e, const char *name, const sinter_weights *value)
{
    const sinter_param *row = NULL;
    TRY(network_layer_check(e, layer));
    network_param *p = find(e, layer, name, BIT(WEIGHTS), "weights", &row);
    if (!p) return SINTER_INVALID_ARG;
    sinter_weights own;
    TRY(NOTE(e, network_weights_copy(layer->net, e, value, &own), "while setting parameter %s of layer '%s'", name,
             layer->name));
    p->weights = own;
    return changed(layer, p);
}

/* ---- reading ---- */

sinter_status network_get_int(const sinter_layer *layer, env *e, const char *name, int64_t *out)
{
    const sinter_param *row = NULL;
    const network_param *p = find(e, layer, name, INTEGERS, "integer", &row);
    if (!p) return SINTER_INVALID_ARG;
    *out = p->i;
    return SINTER_OK;
}

sinter_status network_get_real(const sinter_layer *layer, env *e, const char *name, double *out)
{
    const sinter_param *row = NULL;
    const network_param *p = find(e, layer, name, BIT(REAL), "real number", &row);
    if (!p) return SINTER_INVALID_ARG;
    *out = p->r;
    return SINTER_OK;
}

static sinter_status get_list(const sinter_layer *layer, env *e, const char *name, sinter_param_kind kind, void *out,
                              uint32_t capacity, uint32_t *count)
{
    const sinter_param *row = NULL;
    const network_param *p = find(e, layer, name, UINT32_C(1) << kind, "list of these", &row);
    if (!p) return SINTER_INVALID_ARG;
    if (count) *count = p->count;
    const uint32_t n = p->count < capacity ? p->count : capacity;
    if (n && !out) return FAIL(e, INVALID_ARG, "out is NULL");
    const void *from = kind == SINTER_PARAM_INTS ? (const void *)p->ints : (const void *)p->reals;
    if (n) memcpy(out, from, n * sizeof(int64_t));
    return SINTER_OK;
}

sinter_status network_get_ints(const sinter_layer *layer, env *e, const char *name, int64_t *out, uint32_t capacity,
                               uint32_t *count)
{
    return get_list(layer, e, name, SINTER_PARAM_INTS, out, capacity, count);
}

sinter_status network_get_reals(const sinter_layer *layer, env *e, const char *name, double *out, uint32_t capacity,
                                uint32_t *count)
{
    return get_list(layer, e, name, SINTER_PARAM_REALS, out, capacity, count);
}

sinter_status network_get_text(const sinter_layer *layer, env *e, const char *name, const char **out)
{
    const sinter_param *row = NULL;
    const network_param *p = find(e, layer, name, BIT(TEXT) | BIT(CHOICE) | BIT(TYPE), "text or word", &row);
    if (!p) return SINTER_INVALID_ARG;
    if (row->kind == SINTER_PARAM_TYPE) *out = sinter_dtype_name((sinter_dtype)p->i);
    else if (row->kind == SINTER_PARAM_TEXT) *out = p->text;
    else {
        const char *word = row->words;
        for (int64_t i = 0; i < p->i; i++) word += strcspn(word, "|") + 1;
        *out = arena_text(&layer->net->answers, word, strcspn(word, "|"));
        if (!*out) return FAIL_MEMORY(e, "a word");
    }
    return SINTER_OK;
}

sinter_status network_get_weights(const sinter_layer *layer, env *e, const char *name, sinter_weights *out)
{
    const sinter_param *row = NULL;
    const network_param *p = find(e, layer, name, BIT(WEIGHTS), "weights", &row);
    if (!p) return SINTER_INVALID_ARG;
    *out = p->weights;
    return SINTER_OK;
}

/* ---- for lowering ---- */

const network_param *network_param_of(const sinter_layer *layer, const char *name)
{
    static const network_param none = { .text = "" };
    for (uint32_t i = 0; i < layer->count_param; i++)
        if (strcmp(layer->param_row[i].name, name) == 0) return &layer->param[i];
    return &none;
}

int64_t network_int(network_call *n, const char *name)
{
    return network_param_of(n->layer, name)->i;
}

double network_real(network_call *n, const char *name, double unset)
{
    const network_param *p = network_param_of(n->layer, name);
    return p->is_set ? p->r : unset;
}

bool network_ints(network_call *n, const char *name, attr_ints *out)
{
    const network_param *p = network_param_of(n->layer, name);
    *out = (attr_ints){ .count = p->count };
    if (p->count) memcpy(out->at, p->ints, p->count * sizeof *p->ints);
    return p->count != 0;
}

void network_mask(network_call *n, const char *name, uint32_t rank, attr_ints *out)
{
    const int64_t mask = network_int(n, name);
    *out = (attr_ints){ 0 };
    for (uint32_t i = 0; i < rank; i++)
        if (mask >> i & 1) out->at[out->count++] = i;
    if (mask < 0 || mask >> rank)
        REJECT(&n->c, INVALID_ARG, "parameter %s is 0x%llx, and the input has rank %u", name, (unsigned long long)mask,
               rank);
}
