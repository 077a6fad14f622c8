/* SPDX-License-Identifier: Apache-2.0 */
/* verify_step.c - do the steps mean what they say: problems parse, the kernels that the file names take them with these
 * tactics, operands agree in type, rank and constness, packed weights are as large as the kernel says, and results have
 * the shapes that the op's shape function gives. Where that last point cannot be seen for all shapes at once, the
 * executor checks each. */
#include "engine/verify.h"

#include "backend/reference.h"

#include <string.h>

#define BAD(e, ...) FAIL(e, INVALID_MODEL, __VA_ARGS__)

/* Equal lines are one string of the file and become one problem. */
typedef struct parsed {
    uint32_t text; /* 0: free */
    problem *p;
} parsed;

typedef struct check {
    env *e;
    engine *g;
    const engine_profile *p;
    const dim *canonical; /* the file's expression -> the same in g->dims */
    uint32_t id;          /* of the step, in the file */
    const engine_step *s;
    engine_code *code;
    uint32_t *mark; /* by storage: 1 + the call that reads it last */
    parsed *parsed; /* by hash of the text; a power of two, more than there are steps */
    uint32_t parsed_count;
} check;

static const engine_value *value_at(const check *c, uint32_t v)
{
    return &c->g->value[c->p->value_first + v];
}
static const engine_storage *storage_of(const check *c, uint32_t v)
{
    return &c->g->storage[c->p->storage_first + value_at(c, v)->storage];
}

/* Rebuilds the shape program in a table of ours: names are unique, and equal expressions get equal ids. */
static sinter_status read_dims(env *e, engine *g, arena *a, dim **canonical)
{
    dim *map = ARENA_NEW(a, dim, g->dim_count);
    dim *symbol = ARENA_NEW(a, dim, g->symbol_count);
    g->symbol_late = ARENA_NEW(&g->a, uint8_t, g->dim_count);
    g->dims = dim_table_create(&g->a);
    if (!map || !symbol || !g->dims || !g->symbol_late) return FAIL_MEMORY(e, "the shape program");
    for (uint32_t i = 0; i < g->symbol_count; i++) {
        symbol[i] = dim_symbol_named(g->dims, engine_text(g, g->symbol[i].name));
        if (!symbol[i]) return FAIL_MEMORY(e, "a symbol");
        if (dim_symbol_count(g->dims) != i + 1)
            return BAD(e, "two symbols are called '%s'", engine_text(g, g->symbol[i].name));
        /* The range of all profiles together; opt is the first one's and serves printing alone. */
        dim_symbol s = {
            .is_late = g->symbol[i].is_late, .min = INT64_MAX, .max = INT64_MIN, .opt = g->range[i].opt, .divisor = 1
        };
        for (uint32_t k = 0; k < g->profile_count; k++) {
            const engine_range *r = &g->range[(size_t)k * g->symbol_count + i];
            if (r->min < s.min) s.min = r->min;
            if (r->max > s.max) s.max = r->max;
        }
        dim_symbol_set(g->dims, i, &s);
    }
    for (uint32_t i = 1; i < g->dim_count; i++) {
        const dim_node *d = &g->dim[i];
        const dim x = d->a < i ? map[d->a] : 0, y = d->b < i ? map[d->b] : 0;
        switch (d->kind) {
        case DIM_CONST: map[i] = dim_const(g->dims, d->value); break;
        case DIM_SYMBOL: map[i] = symbol[d->value]; break;
        case DIM_ADD: map[i] = dim_add(g->dims, x, y); break;
        case DIM_MUL: map[i] = dim_mul(g->dims, x, y); break;
        case DIM_FLOORDIV: map[i] = dim_floordiv(g->dims, x, y); break;
        case DIM_CEILDIV: map[i] = dim_ceildiv(g->dims, x, y); break;
        case DIM_MOD: map[i] = dim_mod(g->dims, x, y); break;
        case DIM_MIN: map[i] = dim_min(g->dims, x, y); break;
        case DIM_MAX: map[i] = dim_max(g->dims, x, y); break;
        default: map[i] = dim_broadcast(g->dims, x, y); break;
        }
        g->symbol_late[i] = d->kind == DIM_SYMBOL ? (uint8_t)g->symbol[d->value].is_late
                            : d->kind >= DIM_ADD  ? g->symbol_late[d->a] | g->symbol_late[d->b]
                                                  : 0;
    }
    if (dim_table_failed(g->dims)) return FAIL_MEMORY(e, "the shape program");
    *canonical = map;
    return SINTER_OK;
}

static bool value_is_late(const check *c, uint32_t v)
{
    return v && c->g->value_late[c->p->value_first + v];
}

/* What may change while a shape stays: where it lies in its storage, and how much room there is. */
static void find_late_values(const check *c)
{
    const engine *g = c->g;
    for (uint32_t v = 1; v < c->p->value_count; v++) {
        const engine_value *x = value_at(c, v);
        const engine_storage *s = storage_of(c, v);
        bool late = g->symbol_late[x->offset] || g->symbol_late[s->size_dim];
        for (uint32_t i = 0; i < x->rank; i++) late = late || g->symbol_late[x->dim[i]] || g->symbol_late[x->stride[i]];
        const engine_io *io = s->kind == STORAGE_OUTPUT ? &g->io[s->at] : NULL;
        for (uint32_t i = 0; io && i < io->rank; i++) late = late || g->symbol_late[io->dim[i]];
        g->value_late[c->p->value_first + v] = late;
    }
}

static bool step_is_late(const check *c)
{
    bool late = false;
    for (uint32_t i = 0; i < c->s->in_count; i++) late = late || value_is_late(c, c->g->arg[c->s->in_at + i]);
    for (uint32_t i = 0; i < c->s->out_count; i++) late = late || value_is_late(c, c->g->arg[c->s->out_at + i]);
    for (uint32_t i = 0; i < c->s->dim_count; i++) late = late || c->g->symbol_late[c->g->arg[c->s->dim_at + i]];
    return late;
}

/* All its dims are numbers, so that one look is enough. */
static bool step_is_static(const check *c)
{
    for (uint32_t i = 0; i < c->s->in_count + c->s->out_count; i++) {
        const uint32_t v = c->g->arg[i < c->s->in_count ? c->s->in_at + i : c->s->out_at + i - c->s->in_count];
        for (uint32_t k = 0; v && k < value_at(c, v)->rank; k++)
            if (c->g->dim[value_at(c, v)->dim[k]].kind != DIM_CONST) return false;
    }
    for (uint32_t i = 0; i < c->s->dim_count; i++)
        if (c->g->dim[c->g->arg[c->s->dim_at + i]].kind != DIM_CONST) return false;
    return true;
}

static sinter_status check_operand(const check *c, const problem_operand *o, uint32_t v, const char *what, uint32_t i)
{
    if ((o->dtype == SINTER_DTYPE_NONE) != (v == 0))
        return BAD(c->e, "%s %u is %s", what, i, v ? "not in the problem" : "missing");
    if (!v) return SINTER_OK;
    const engine_value *x = value_at(c, v);
    if (x->dtype != (uint32_t)o->dtype || x->rank != o->rank)
        return BAD(c->e, "%s %u is %s of rank %u, the problem says %s of rank %u", what, i,
                   sinter_dtype_name((sinter_dtype)x->dtype), x->rank, sinter_dtype_name(o->dtype), o->rank);
    if (o->is_const && storage_of(c, v)->kind != STORAGE_WEIGHT) return BAD(c->e, "%s %u is no weight", what, i);
    return SINTER_OK;
}

static sinter_status check_place(const check *c, uint32_t v, storage_place wanted, const char *what, uint32_t i)
{
    if (!v || storage_of(c, v)->place == (uint32_t)wanted) return SINTER_OK;
    const bool is_host = storage_of(c, v)->place == PLACE_HOST;
    return BAD(c->e, "%s %u lies on the %s, the step runs on the %s", what, i, is_host ? "host" : "device",
               is_host ? "device" : "host");
}

/* Programs of the backend see its memory, everything else sees the host's. */
static sinter_status check_operand_places(const check *c, storage_place wanted)
{
    const uint32_t *in = c->g->arg + c->s->in_at, *out = c->g->arg + c->s->out_at;
    for (uint32_t i = 0; i < c->s->in_count; i++) TRY(check_place(c, in[i], wanted, "input", i));
    for (uint32_t i = 0; i < c->s->out_count; i++) TRY(check_place(c, out[i], wanted, "output", i));
    return SINTER_OK;
}

/* The bytes of one dense value go to the other place as they are. */
static sinter_status check_transfer(const check *c, const problem *p)
{
    const uint32_t in = c->g->arg[c->s->in_at], out = c->g->arg[c->s->out_at];
    const problem_operand *a = &p->in[0], *b = &p->out[0];
    if (p->op != OP_copy || p->prologue || p->epilogue || !in || !out || a->is_strided || b->is_strided ||
        a->dtype != b->dtype || a->rank != b->rank || memcmp(a->order, b->order, a->rank) != 0)
        return BAD(c->e, "a transfer is no plain copy");
    if (storage_of(c, in)->place == storage_of(c, out)->place)
        return BAD(c->e, "a transfer has both ends on the %s",
                   storage_of(c, in)->place == PLACE_HOST ? "host" : "device");
    return SINTER_OK;
}

static uint32_t count_dims(const problem *p)
{
    uint32_t count = 0;
    for (const attr_info *info = op_at(p->op)->attr; info->name; info++)
        if (info->kind == ATTR_DIMS) count += ((const attr_dims *)((const char *)p->attrs + info->at))->count;
    return count;
}

/* ---- shapes ---- */

static void infer_value_of(const check *c, uint32_t v, infer_value *out)
{
    if (!v) return;
    const engine_value *x = value_at(c, v);
    out->dtype = (sinter_dtype)x->dtype;
    out->rank = x->rank;
    for (uint32_t i = 0; i < x->rank; i++) out->dim[i] = c->canonical[x->dim[i]];
}

/* Does the shape function give the recorded dims for every shape? */
static bool infers(const check *c, const problem *p, arena *scratch)
{
    infer_value *in = ARENA_NEW(scratch, infer_value, p->count_in),
                *out = ARENA_NEW(scratch, infer_value, p->count_out);
    void *attrs = op_attrs_copy(scratch, p->op, p->attrs);
    if (!in || !out || (op_at(p->op)->attrs_size && !attrs)) return false;
    uint32_t at = c->s->dim_at;
    for (const attr_info *info = op_at(p->op)->attr; info->name; info++) {
        if (info->kind != ATTR_DIMS) continue;
        attr_dims *d = (attr_dims *)((char *)attrs + info->at);
        int64_t *list = ARENA_NEW(scratch, int64_t, d->count);
        if (!list) return false;
        for (uint32_t i = 0; i < d->count; i++) list[i] = c->canonical[c->g->arg[at++]];
        d->at = list;
    }
    for (uint32_t i = 0; i < p->count_in; i++) infer_value_of(c, c->g->arg[c->s->in_at + i], &in[i]);
    for (uint32_t i = 0; i < p->count_out; i++) infer_value_of(c, c->g->arg[c->s->out_at + i], &out[i]);
    return problem_shape_follows(c->e, scratch, c->g->dims, p, attrs, in, out);
}

/* ---- steps ---- */

/* Reference code of late ops reads its input twice: to count, then to write. A result in the same bytes would change
 * the count. */
static bool shares_bytes(const check *c, uint32_t a, uint32_t b)
{
    if (!a || !b) return false;
    const engine_storage *x = storage_of(c, a), *y = storage_of(c, b);
    if (x == y) return true;
    if (x->kind != y->kind || x->place != y->place) return false;
    if (x->kind == STORAGE_OUTPUT) return x->at == y->at;
    return x->kind == STORAGE_SLAB && x->at < y->at + y->bound && y->at < x->at + x->bound;
}

static sinter_status check_late(const check *c, const problem *p)
{
    for (uint32_t i = 0; i < p->count_out; i++) {
        if (p->out[i].is_strided) return BAD(c->e, "a late result is strided");
        for (uint32_t k = 0; k < p->count_in; k++)
            if (shares_bytes(c, c->g->arg[c->s->out_at + i], c->g->arg[c->s->in_at + k]))
                return BAD(c->e, "late result %u lies where input %u does", i, k);
        for (uint32_t k = 0; k < i; k++)
            if (shares_bytes(c, c->g->arg[c->s->out_at + i], c->g->arg[c->s->out_at + k]))
                return BAD(c->e, "late results %u and %u lie in one place", k, i);
    }
    return SINTER_OK;
}

static const kernel *find_kernel(const engine *g, const engine_kernel *ref)
{
    uint32_t count;
    const kernel *const *list = g->backend->kernels(&count);
    for (uint32_t i = 0; i < count; i++)
        if (strcmp(list[i]->name, engine_text(g, ref->name)) == 0) return list[i];
    return NULL;
}

/* What is updated in place is one thing, seen twice. */
static sinter_status check_update(const check *c, const kernel *k, const problem *p)
{
    for (uint32_t i = 0; i < p->count_out; i++) {
        if (!kernel_updates(k, p, i)) continue;
        const uint32_t in = c->g->arg[c->s->in_at + i], out = c->g->arg[c->s->out_at + i];
        const engine_value *a = value_at(c, in), *b = value_at(c, out);
        if (!in || !out || a->storage != b->storage || a->offset != b->offset || a->rank != b->rank ||
            memcmp(a->dim, b->dim, sizeof a->dim) != 0 || memcmp(a->stride, b->stride, sizeof a->stride) != 0)
            return BAD(c->e, "what is updated in place lies in two places");
    }
    return SINTER_OK;
}

static sinter_status check_kernel(check *c, arena *scratch)
{
    const engine_kernel *ref = &c->g->kernel_ref[c->s->kernel - 1];
    const kernel *k = find_kernel(c->g, ref);
    const problem *p = c->code->problem;
    if (!k)
        return FAIL(c->e, INCOMPATIBLE, "the engine needs kernel '%s', which this library does not have",
                    engine_text(c->g, ref->name));
    if (k->abi != ref->abi)
        return FAIL(c->e, INCOMPATIBLE,
                    "the engine was built for version %u of kernel '%s', this library has version %u: build it again",
                    ref->abi, k->name, k->abi);
    /* Only sizes that a run binds are steps without results, and kernels ask for the first result. */
    if (!p->count_out && k->reject != reference_row_reject)
        return BAD(c->e, "kernel '%s' takes no problem without results", k->name);
    const char *why = k->reject && k->where != KERNEL_TRANSFER ? k->reject(p, &c->g->target) : NULL;
    if (why && c->g->notes->isa != c->g->target.isa)
        return FAIL(c->e, INCOMPATIBLE, "the engine was built for another device: %s", why);
    if (why) return BAD(c->e, "kernel '%s' does not take the problem: %s", k->name, why);
    tactic t;
    memcpy(t.at, c->s->tactic, sizeof t.at);
    if (k->check && !k->check(p, &t)) return BAD(c->e, "kernel '%s' has no such tactic for the problem", k->name);
    sinter_error error;
    why = c->g->backend->fit && k->where == KERNEL_ON_DEVICE ? c->g->backend->fit(k, p, &t, &error) : NULL;
    if (why) return BAD(c->e, "kernel '%s' does not take all sizes in range: %s", k->name, why);
    const bool is_late_op = op_at(p->op)->traits & LATE;
    if (is_late_op != (c->s->kind == STEP_LATE))
        return BAD(c->e, "op '%s' in a step of the wrong kind", op_at(p->op)->name);
    if (c->s->in_count != p->count_in || c->s->out_count != p->count_out)
        return BAD(c->e, "%u inputs and %u outputs, the problem has %u and %u", c->s->in_count, c->s->out_count,
                   p->count_in, p->count_out);
    for (uint32_t i = 0; i < p->count_in; i++) {
        const uint32_t v = c->g->arg[c->s->in_at + i];
        TRY(check_operand(c, &p->in[i], v, "input", i));
        if (!v || !p->in[i].is_const || !k->pack_size) continue;
        const size_t size = k->pack_size(p, &t, i);
        if (size && (storage_of(c, v)->bound != size || c->g->dim[value_at(c, v)->offset].kind != DIM_CONST ||
                     c->g->dim[value_at(c, v)->offset].value != 0))
            return BAD(c->e, "packed weight %u has %llu bytes, kernel '%s' wants %zu", i,
                       (unsigned long long)storage_of(c, v)->bound, k->name, size);
    }
    for (uint32_t i = 0; i < p->count_out; i++)
        TRY(check_operand(c, &p->out[i], c->g->arg[c->s->out_at + i], "output", i));
    const bool is_on_host = c->s->kind == STEP_LATE || k->where == KERNEL_ON_HOST;
    if (k->where != KERNEL_TRANSFER) TRY(check_operand_places(c, is_on_host ? engine_host_place(c->g) : PLACE_DEVICE));
    else if (c->s->kind == STEP_LATE || c->s->in_count != 1 || c->s->out_count != 1)
        return BAD(c->e, "a transfer of %u values into %u", c->s->in_count, c->s->out_count);
    else TRY(check_transfer(c, p));
    if (c->s->kind == STEP_LATE) TRY(check_late(c, p));
    TRY(check_update(c, k, p));
    c->code->kernel = k;
    c->code->is_inferred = c->s->kind == STEP_LATE || (step_is_static(c) && infers(c, p, scratch));
    const size_t workspace = k->workspace ? k->workspace(p, &t, c->g->threads) : 0;
    size_t *most = &(is_on_host && c->g->backend->copy ? c->g->host_workspace : c->g->workspace)[c->p - c->g->profile];
    if (workspace > c->e->limits.memory_max)
        return FAIL(c->e, NO_MEMORY, "kernel '%s' wants a workspace of %zu bytes, the limit memory_max is %llu",
                    k->name, workspace, (unsigned long long)c->e->limits.memory_max);
    if (workspace > *most) *most = workspace;
    return SINTER_OK;
}

static bool same_kind(const check *c, uint32_t a, uint32_t b)
{
    if (!a || !b) return a == b;
    return value_at(c, a)->dtype == value_at(c, b)->dtype;
}

static void mark_storages(const check *c, const uint32_t *value, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        if (value[i]) c->mark[value_at(c, value[i])->storage] = c->id + 1;
}

static bool is_marked(const check *c, const uint32_t *value, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        if (value[i] && c->mark[value_at(c, value[i])->storage] == c->id + 1) return true;
    return false;
}

/* The executor copies inputs and results into parameters, and those into outputs. No copy may lie where it comes from:
 * making room for it could move what is being read. */
static sinter_status check_places(const check *c)
{
    const engine_step *s = c->s;
    const uint32_t *arg = c->g->arg;
    const engine_region *r = c->g->region + c->p->region_first;
    mark_storages(c, arg + s->in_at, s->in_count);
    for (uint32_t k = 0; k < 2 && s->region[k]; k++)
        mark_storages(c, arg + r[s->region[k]].result_at, r[s->region[k]].result_count);
    for (uint32_t k = 0; k < 2 && s->region[k]; k++)
        if (is_marked(c, arg + r[s->region[k]].param_at, r[s->region[k]].param_count))
            return BAD(c->e, "a parameter of a body lies where it is copied from");
    for (uint32_t k = 0; k < 2 && s->region[k]; k++)
        mark_storages(c, arg + r[s->region[k]].param_at, r[s->region[k]].param_count);
    return is_marked(c, arg + s->out_at, s->out_count) ? BAD(c->e, "a result of a call lies where it is copied from")
                                                       : SINTER_OK;
}

/* What a call copies may lie in either place. A weight is copied from the host: on the device it may be streamed. */
static sinter_status check_copied(const check *c, uint32_t v, const char *what, uint32_t i)
{
    if (!v || storage_of(c, v)->kind != STORAGE_WEIGHT) return SINTER_OK;
    return check_place(c, v, engine_host_place(c->g), what, i);
}

/* Counts and types around a region; dims are checked as they are copied. */
static sinter_status check_call(const check *c)
{
    const engine_step *s = c->s;
    const op_id op = c->code->problem->op;
    const op_id wanted[] = { [STEP_IF] = OP_if, [STEP_LOOP] = OP_loop, [STEP_SCAN] = OP_scan };
    if (op != wanted[s->kind]) return BAD(c->e, "a call of the wrong kind");
    uint64_t carried = 0, own = 0; /* inputs with storages of their own inside */
    const uint32_t *in = c->g->arg + s->in_at, *out = c->g->arg + s->out_at;
    if (s->kind == STEP_LOOP)
        carried = (uint64_t)((const attrs_loop *)c->code->problem->attrs)->carried, own = carried + 2;
    if (s->kind == STEP_SCAN) {
        const attrs_scan *x = c->code->problem->attrs;
        carried = (uint64_t)x->carried;
        own = carried + (uint64_t)x->scanned;
        if (x->in_axis.count > x->scanned || x->in_reverse.count > (uint64_t)x->scanned)
            return BAD(c->e, "a scan with too many axes");
    }
    if (carried > s->in_count || own > s->in_count || own < carried || carried > s->out_count)
        return BAD(c->e, "a call with %u inputs and %llu carried values", s->in_count, (unsigned long long)carried);
    if (s->in_count == 0 || (s->kind == STEP_IF && !in[0])) return BAD(c->e, "a call without a condition");
    /* The executor reads conditions and counts on the host. Captures may lie anywhere. */
    const storage_place host = engine_host_place(c->g);
    const uint32_t read = s->kind == STEP_IF ? 1 : s->kind == STEP_LOOP ? 2 : 0;
    for (uint32_t i = 0; i < read; i++) TRY(check_place(c, in[i], host, "input", i));
    for (uint32_t i = read; i < own; i++) TRY(check_copied(c, in[i], "input", i));
    for (uint32_t k = 0; k < 2 && s->region[k]; k++) {
        const engine_region *r = &c->g->region[c->p->region_first + s->region[k]];
        const uint32_t *param = c->g->arg + r->param_at, *result = c->g->arg + r->result_at;
        const uint32_t skip = s->kind == STEP_IF, extra = s->kind == STEP_LOOP;
        if (r->param_count + skip != s->in_count || r->result_count != s->out_count + extra)
            return BAD(c->e, "a body with %u parameters and %u results", r->param_count, r->result_count);
        for (uint32_t i = 0; i < r->param_count; i++) {
            if ((param[i] != 0) != (i < own)) return BAD(c->e, "parameter %u of a body is of the wrong kind", i);
            const bool is_own_kind = s->kind == STEP_LOOP && i < 2;
            if (is_own_kind) TRY(check_place(c, param[i], host, "parameter", i));
            if (param[i] && is_own_kind && value_at(c, param[i])->dtype != (i ? SINTER_DTYPE_BOOL : SINTER_DTYPE_I64))
                return BAD(c->e, "parameter %u of a loop has the wrong type", i);
            if (param[i] && !is_own_kind && !same_kind(c, param[i], in[i]))
                return BAD(c->e, "parameter %u of a body has another type than what is passed", i);
        }
        for (uint32_t i = 0; i < r->result_count; i++) {
            if (!result[i]) return BAD(c->e, "result %u of a body is missing", i);
            const bool is_condition = extra && i == 0;
            if (is_condition) TRY(check_place(c, result[i], host, "result", i));
            else TRY(check_copied(c, result[i], "result", i));
            if (is_condition ? value_at(c, result[i])->dtype != SINTER_DTYPE_BOOL
                             : !same_kind(c, result[i], out[i - extra]))
                return BAD(c->e, "result %u of a body has the wrong type", i);
        }
    }
    if (s->kind == STEP_LOOP) {
        if (in[0] && value_at(c, in[0])->dtype != SINTER_DTYPE_I64) return BAD(c->e, "a trip count that is not i64");
        if (in[1] && value_at(c, in[1])->dtype != SINTER_DTYPE_BOOL) return BAD(c->e, "a condition that is not bool");
    }
    return check_places(c);
}

static sinter_status read_problem(const check *c, problem **out)
{
    uint32_t i = (uint32_t)((uint64_t)(c->s->problem * UINT32_C(2654435761)) * c->parsed_count >> 32);
    while (c->parsed[i].text && c->parsed[i].text != c->s->problem) i = (i + 1) & (c->parsed_count - 1);
    parsed *known = &c->parsed[i];
    if (known->text) return *out = known->p, SINTER_OK;
    const char *line = engine_text(c->g, c->s->problem);
    scan at = scan_of(line, strlen(line));
    const char *why = "trailing text";
    if (!problem_parse(&c->g->a, &at, out, &why) || at.at != at.end)
        return c->g->a.failed ? FAIL_MEMORY(c->e, "a problem") : BAD(c->e, "'%.200s' is no problem: %s", line, why);
    TRY(problem_need(c->e, &c->g->a, *out));
    *known = (parsed){ .text = c->s->problem, .p = *out };
    return SINTER_OK;
}

static sinter_status check_step(check *c, arena *scratch)
{
    problem *p = NULL;
    TRY(read_problem(c, &p));
    c->code->problem = p;
    if (count_dims(p) != c->s->dim_count)
        return BAD(c->e, "%u sizes, the problem's attributes have %u", c->s->dim_count, count_dims(p));
    c->code->is_late = c->s->kind != STEP_KERNEL || step_is_late(c);
    return c->s->kind >= STEP_IF ? check_call(c) : check_kernel(c, scratch);
}

/* Every storage of the caller's is that of an input, once for each place, or of an output: nobody would give another
 * an address. */
static sinter_status check_io_storages(const check *c, arena *scratch)
{
    uint8_t *seen = ARENA_NEW(scratch, uint8_t, c->g->io_count);
    if (!seen) return FAIL_MEMORY(c->e, "checking an engine");
    for (uint32_t i = 1; i < c->p->storage_count; i++) {
        const engine_storage *s = &c->g->storage[c->p->storage_first + i];
        if (s->kind != STORAGE_INPUT && s->kind != STORAGE_OUTPUT) continue;
        const uint8_t place = (uint8_t)(1u << s->place);
        if (s->kind == STORAGE_OUTPUT ? seen[s->at] : seen[s->at] & place)
            return BAD(c->e, "'%s' has two storages in one place", engine_text(c->g, c->g->io[s->at].name));
        seen[s->at] |= place;
    }
    return SINTER_OK;
}

static sinter_status check_io_values(const check *c)
{
    for (uint32_t i = 0; i < c->g->io_count; i++) {
        const uint32_t v = c->g->arg[c->p->io_first + i];
        const engine_io *io = &c->g->io[i];
        if (!v) return BAD(c->e, "'%s' has no value", engine_text(c->g, io->name));
        const engine_storage *s = storage_of(c, v);
        const engine_value *x = value_at(c, v);
        bool ok = s->kind == (io->is_input ? STORAGE_INPUT : STORAGE_OUTPUT) && s->at == i && x->dtype == io->dtype &&
                  x->rank == io->rank;
        for (uint32_t k = 0; ok && k < io->rank; k++) ok = c->canonical[x->dim[k]] == c->canonical[io->dim[k]];
        /* What the caller gives is as large as he says, whatever steps find out later. */
        for (uint32_t k = 0; ok && io->is_input && k < io->rank; k++) ok = !c->g->symbol_late[io->dim[k]];
        if (!ok) return BAD(c->e, "the value of '%s' does not fit it", engine_text(c->g, io->name));
    }
    return SINTER_OK;
}

/* The interface's dims as text, once: callers keep pointers to it. */
static sinter_status print_io(env *e, engine *g, const dim *canonical)
{
    g->io_text = ARENA_NEW(&g->a, const char *, (size_t)g->io_count *SINTER_RANK_MAX);
    if (!g->io_text) return FAIL_MEMORY(e, "an engine");
    text t;
    text_init(&t, e);
    for (uint32_t i = 0; i < g->io_count; i++)
        for (uint32_t k = 0; k < g->io[i].rank; k++) {
            text_clear(&t);
            dim_print(g->dims, canonical[g->io[i].dim[k]], &t);
            g->io_text[i * SINTER_RANK_MAX + k] = t.failed ? "" : arena_text(&g->a, t.at, t.length);
        }
    const bool failed = t.failed || g->a.failed;
    text_deinit(&t);
    return failed ? FAIL_MEMORY(e, "an engine") : SINTER_OK;
}

sinter_status engine_verify_steps(env *e, engine *g)
{
    arena scratch;
    arena_init(&scratch, e);
    dim *canonical = NULL;
    g->code = ARENA_NEW(&g->a, engine_code, g->step_count);
    g->workspace = ARENA_NEW(&g->a, size_t, g->profile_count);
    g->host_workspace = ARENA_NEW(&g->a, size_t, g->profile_count);
    g->value_late = ARENA_NEW(&g->a, uint8_t, g->value_count);
    sinter_status s = g->code && g->workspace && g->host_workspace && g->value_late
                          ? read_dims(e, g, &scratch, &canonical)
                          : FAIL_MEMORY(e, "an engine");
    if (s == SINTER_OK) s = print_io(e, g, canonical);
    if (s == SINTER_OK) s = engine_list_states(e, g, canonical);
    uint32_t parsed_count = 2;
    while (parsed_count <= g->step_count) parsed_count *= 2;
    parsed *problems = ARENA_NEW(&scratch, parsed, parsed_count);
    if (s == SINTER_OK && !problems) s = FAIL_MEMORY(e, "checking an engine");
    for (uint32_t i = 0; s == SINTER_OK && i < g->profile_count; i++) {
        check c = { .e = e,
                    .g = g,
                    .p = &g->profile[i],
                    .canonical = canonical,
                    .parsed = problems,
                    .parsed_count = parsed_count };
        c.mark = ARENA_NEW(&scratch, uint32_t, c.p->storage_count);
        s = c.mark ? check_io_storages(&c, &scratch) : FAIL_MEMORY(e, "checking an engine");
        if (s == SINTER_OK) s = check_io_values(&c);
        if (s == SINTER_OK) find_late_values(&c);
        for (uint32_t k = 0; s == SINTER_OK && k < c.p->step_count; k++) {
            c.id = c.p->step_first + k;
            c.s = &g->step[c.id];
            c.code = &g->code[c.id];
            const arena_mark mark = arena_save(&scratch);
            s = check_step(&c, &scratch);
            arena_rewind(&scratch, mark);
            s = NOTE(e, s, "checking step %u '%s'", k, engine_text(g, c.s->name));
        }
    }
    arena_deinit(&scratch);
    return s;
}
