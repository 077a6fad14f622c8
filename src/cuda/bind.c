/* SPDX-License-Identifier: Apache-2.0 */
/* bind.c - from steps with known shapes to launches: records are taken apart, checked, and their patches tied to slots.
 *
 * A slot is one address that a run gives: of a value, of the workspace, of the stream's record of faults. A launch's
 * parameters are kept as bytes; running again writes only the addresses that are not there already. */
#include "cuda/program.h"

#include <string.h>

enum { ADDRESS_UNKNOWN = -1 }; /* no address: patched before the first launch */

typedef struct binding {
    env *e;
    device *d;
    program *p;
    arena t; /* until all is bound */
    cuda_record *r;
    uint32_t *slot_of, id_count; /* by id in program_run.address; 0: none yet */
    struct {
        program_node *at;
        uint32_t count, capacity;
    } node;
    struct {
        program_slot *at;
        uint32_t count, capacity;
    } slot;
    struct {
        program_extent *at;
        uint32_t count, capacity;
    } extent;
} binding;

static CUtensorMapDataType map_type(sinter_dtype t)
{
    switch (t) {
    case SINTER_DTYPE_F16: return CU_TENSOR_MAP_DATA_TYPE_FLOAT16;
    case SINTER_DTYPE_BF16: return CU_TENSOR_MAP_DATA_TYPE_BFLOAT16;
    case SINTER_DTYPE_F32: return CU_TENSOR_MAP_DATA_TYPE_FLOAT32;
    case SINTER_DTYPE_F64: return CU_TENSOR_MAP_DATA_TYPE_FLOAT64;
    default: break;
    }
    /* Elements are moved, not computed with. */
    const uint32_t bits = sinter_dtype_bits(t);
    return bits <= 8    ? CU_TENSOR_MAP_DATA_TYPE_UINT8
           : bits == 16 ? CU_TENSOR_MAP_DATA_TYPE_UINT16
           : bits == 32 ? CU_TENSOR_MAP_DATA_TYPE_UINT32
                        : CU_TENSOR_MAP_DATA_TYPE_UINT64;
}

static sinter_status encode(env *e, device *d, const cuda_map *m, uint64_t at, uint8_t *to)
{
    CUtensorMap map = { 0 };
    void *base = (void *)(uintptr_t)at;
    uint32_t step[5];
    for (uint32_t i = 0; i < 5; i++) step[i] = m->step[i] ? m->step[i] : 1;
    const CUtensorMapDataType type = map_type((sinter_dtype)m->dtype);
    const CUtensorMapSwizzle swizzle = (CUtensorMapSwizzle)m->swizzle;
    if (m->is_im2col) {
        const int low[3] = { m->low[0], m->low[1], m->low[2] }, high[3] = { m->high[0], m->high[1], m->high[2] };
        DEVICE_TRY(e, d,
                   cuTensorMapEncodeIm2col(&map, type, m->rank, base, m->dim, m->stride + 1, low, high, m->channels,
                                           m->pixels, step, CU_TENSOR_MAP_INTERLEAVE_NONE, swizzle,
                                           CU_TENSOR_MAP_L2_PROMOTION_L2_256B, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE),
                   "encoding a tensor map of image patches");
    } else {
        DEVICE_TRY(e, d,
                   cuTensorMapEncodeTiled(&map, type, m->rank, base, m->dim, m->stride + 1, m->box, step,
                                          CU_TENSOR_MAP_INTERLEAVE_NONE, swizzle, CU_TENSOR_MAP_L2_PROMOTION_L2_256B,
                                          CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE),
                   "encoding a tensor map");
    }
    memcpy(to, &map, sizeof map);
    return SINTER_OK;
}

sinter_status program_patch_node(env *e, device *d, const program *p, const program_node *n, bool *is_changed)
{
    *is_changed = false;
    for (uint32_t i = 0; i < n->patch_count; i++) {
        program_patch *x = &n->patch[i];
        const uint64_t at = p->slot[x->slot].now;
        if (x->now == at) continue;
        if (x->map) {
            TRY(NOTE(e, encode(e, d, x->map, at, x->to), "launching kernel '%s'", p->name[n->step]));
        } else {
            const uint64_t whole = at + (uint64_t)(int64_t)x->offset;
            memcpy(x->to, &whole, sizeof whole);
        }
        x->now = at;
        *is_changed = true;
    }
    return SINTER_OK;
}

/* ---- binding ---- */

static bool add_slot(binding *b, uint32_t id)
{
    program_slot *s = VEC_PUSH(&b->p->a, &b->slot);
    if (!s || !VEC_PUSH(&b->p->a, &b->extent)) return false;
    *s = (program_slot){ .id = id, .now = (uint64_t)ADDRESS_UNKNOWN };
    return true;
}

/* 0: no memory. */
static uint32_t slot_of(binding *b, uint32_t id)
{
    if (b->slot_of[id]) return b->slot_of[id];
    return add_slot(b, id) ? b->slot_of[id] = b->slot.count - 1 : 0;
}

/* The launch reads or writes what lies at the slot, seen as `v`; NULL: the workspace, whose bytes are not told apart.
 */
static void add_touch(binding *b, program_node *n, uint32_t slot, const view *v, bool is_written)
{
    program_extent *x = &b->extent.at[slot];
    uintptr_t begin = 0, end = 1;
    view seen = v ? *v : (view){ 0 };
    seen.data = NULL;
    if (v && !view_span(&seen, &begin, &end)) return;
    if (!x->is_touched) {
        *x = (program_extent){ .v = seen, .is_touched = true, .is_vague = !v, .begin = begin, .end = end };
    } else if (!view_is_same(&x->v, &seen)) {
        x->is_vague = true;
        if ((intptr_t)begin < (intptr_t)x->begin) x->begin = begin;
        if ((intptr_t)end > (intptr_t)x->end) x->end = end;
    }
    x->is_written |= is_written;
    for (uint32_t i = 0; i < n->touch_count; i++) {
        if (n->touch[i].slot != slot) continue;
        n->touch[i].is_written |= is_written;
        return;
    }
    n->touch[n->touch_count++] = (program_touch){ .slot = slot, .is_written = is_written };
}

/* The id of an operand; false where the record names one that the step has not. */
static bool operand_id(const program_step *s, bool is_out, uint32_t operand, uint32_t *id)
{
    if (operand >= (is_out ? s->count_out : s->count_in)) return false;
    *id = (is_out ? s->out_id : s->in_id)[operand];
    return true;
}

static bool is_constant(const program_step *s, bool is_out, uint32_t operand)
{
    return !is_out && operand < s->problem->count_in && s->problem->in[operand].is_const;
}

static sinter_status bind_patch(binding *b, const program_step *s, const cuda_patch *from, uint8_t *args,
                                const cuda_map *map, program_node *n)
{
    env *e = b->e;
    const bool is_map = from->kind == PATCH_MAP;
    bool is_out = from->kind == PATCH_OUT;
    uint32_t operand = from->index;
    const size_t size = is_map ? sizeof(CUtensorMap) : from->kind == PATCH_STEP ? 4 : 8;
    uint32_t id = 0;
    if (from->at + size > b->r->args_size || (is_map && from->index >= b->r->map_count))
        return FAIL(e, INTERNAL, "a patch lies outside the parameters");
    program_patch x = { .to = args + from->at, .now = (uint64_t)ADDRESS_UNKNOWN, .offset = from->offset };
    switch ((patch_kind)from->kind) {
    case PATCH_STEP: memcpy(x.to, &s->index, sizeof s->index); return SINTER_OK;
    case PATCH_WORKSPACE: x.slot = SLOT_WORKSPACE; break;
    case PATCH_FAULT:
        x.slot = SLOT_FAULT;
        b->p->has_fault = true;
        break;
    case PATCH_IN:
    case PATCH_OUT:
        if (!operand_id(s, is_out, operand, &id))
            return FAIL(e, INTERNAL, "a patch names operand %u, which the step lacks", from->index);
        if (!id) return SINTER_OK; /* absent: the address stays 0 */
        break;
    case PATCH_MAP:
        x.map = &map[from->index];
        is_out = x.map->is_out;
        operand = x.map->operand;
        if (!operand_id(s, is_out, operand, &id) || !id)
            return FAIL(e, INTERNAL, "a tensor map is over operand %u, which the step lacks", operand);
        break;
    }
    if (id && !(x.slot = slot_of(b, id))) return FAIL_MEMORY(e, "a program");
    n->patch[n->patch_count++] = x;
    if (x.slot == SLOT_WORKSPACE) add_touch(b, n, x.slot, NULL, true);
    else if (id && !is_constant(s, is_out, operand))
        add_touch(b, n, x.slot, is_out ? &s->out[operand] : &s->in[operand], is_out);
    return SINTER_OK;
}

/* What the driver would refuse, said with the numbers. */
static sinter_status check(env *e, const cuda_launch *l, const use_code *code, const kernel_target *t)
{
    if (l->code >= code->count) return FAIL(e, INTERNAL, "a launch of code %u of %u", l->code, code->count);
    if (!l->block || l->block > 1024)
        return FAIL(e, INTERNAL, "a block of %u threads, possible are 1 to 1024", l->block);
    if (l->shared > t->shared)
        return FAIL(e, INTERNAL, "a block wants %u bytes of shared memory, it can have %u", l->shared, t->shared);
    if (l->cluster > 1 && (t->isa < 90 || l->cluster > 16 || l->grid[0] % l->cluster))
        return FAIL(e, INTERNAL, "clusters of %u blocks in a grid of %u on sm_%u", l->cluster, l->grid[0], t->isa);
    if (l->cluster > 1 && l->cluster > t->cluster)
        return FAIL(e, UNSUPPORTED, "a cluster of %u blocks is wanted, this GPU has room for %u at most", l->cluster,
                    t->cluster);
    return SINTER_OK;
}

static sinter_status bind_launch(binding *b, const program_step *s, uint32_t step, const cuda_launch *l, uint8_t *args,
                                 const cuda_map *map)
{
    env *e = b->e;
    if (!l->grid[0] || !l->grid[1] || !l->grid[2]) return SINTER_OK;
    const use_code *code = &b->p->code[step];
    TRY(check(e, l, code, &b->d->target));
    loaded_code *c = code->at[l->code];
    if (l->shared > SHARED_ALLOWED || l->cluster > 8) TRY(code_table_allow(e, b->d, c, l->shared, l->cluster));
    program_node *n = VEC_PUSH(&b->t, &b->node);
    if (!n) return FAIL_MEMORY(e, "a program");
    *n = (program_node){ .code = c,
                         .grid = { l->grid[0], l->grid[1], l->grid[2] },
                         .block = l->block,
                         .cluster = l->cluster > 1 ? l->cluster : 1,
                         .shared = l->shared,
                         .step = step,
                         .param_count = l->param_count,
                         .patch = ARENA_NEW(&b->p->a, program_patch, l->patch_count),
                         .touch = ARENA_NEW(&b->p->a, program_touch, l->patch_count) };
    if (l->patch_count && (!n->patch || !n->touch)) return FAIL_MEMORY(e, "a program");
    for (uint32_t i = 0; i < l->param_count; i++) n->param[i] = args + l->param[i].at;
    for (uint32_t i = 0; i < l->patch_count; i++) TRY(bind_patch(b, s, &b->r->patch[l->patch_first + i], args, map, n));
    return SINTER_OK;
}

static sinter_status bind_step(binding *b, const program_step *s, uint32_t step)
{
    env *e = b->e;
    cuda_record *r = b->r;
    arena *a = &b->p->a;
    r->count = r->args_size = r->patch_count = r->map_count = 0;
    if (!program_step_has_results(s)) return SINTER_OK;
    TRY(s->kernel->bind(e, s->problem, s->tactic, s->attrs, s->in, s->out, r));
    uint8_t *args = arena_alloc(a, r->args_size, 64);
    cuda_map *map = ARENA_NEW(a, cuda_map, r->map_count);
    if ((r->args_size && !args) || (r->map_count && !map)) return FAIL_MEMORY(e, "a program");
    if (r->args_size) memcpy(args, r->args, r->args_size);
    if (r->map_count) memcpy(map, r->map, r->map_count * sizeof *map);
    for (uint32_t i = 0; i < r->count; i++) TRY(bind_launch(b, s, step, &r->at[i], args, map));
    return SINTER_OK;
}

static sinter_status bind_all(binding *b, const program_step *step)
{
    env *e = b->e;
    program *p = b->p;
    for (uint32_t i = 0; i < p->step_count; i++) {
        for (uint32_t k = 0; k < step[i].count_in; k++)
            if (step[i].in_id[k] >= b->id_count) b->id_count = step[i].in_id[k] + 1;
        for (uint32_t k = 0; k < step[i].count_out; k++)
            if (step[i].out_id[k] >= b->id_count) b->id_count = step[i].out_id[k] + 1;
    }
    b->r = ARENA_NEW(&b->t, cuda_record, 1);
    b->slot_of = ARENA_NEW(&b->t, uint32_t, b->id_count);
    if (!b->r || (b->id_count && !b->slot_of)) return FAIL_MEMORY(e, "a program");
    for (uint32_t i = 0; i < SLOT_FIRST; i++)
        if (!add_slot(b, 0)) return FAIL_MEMORY(e, "a program");
    for (uint32_t i = 0; i < p->step_count; i++)
        TRY(NOTE(e, bind_step(b, &step[i], i), "binding kernel '%s'", step[i].kernel->name));
    program_node *node = ARENA_NEW(&p->a, program_node, b->node.count);
    p->next = ARENA_NEW(&p->a, uint64_t, b->slot.count);
    if ((b->node.count && !node) || !p->next) return FAIL_MEMORY(e, "a program");
    if (b->node.count) memcpy(node, b->node.at, b->node.count * sizeof *node);
    p->node = node;
    p->node_count = b->node.count;
    p->slot = b->slot.at;
    p->slot_count = b->slot.count;
    p->extent = b->extent.at;
    return SINTER_OK;
}

sinter_status program_bind(env *e, device *d, const program_step *step, program *p)
{
    binding b = { .e = e, .d = d, .p = p };
    p->has_fault = false;
    p->node_count = p->slot_count = 0;
    arena_init(&b.t, e);
    const sinter_status s = bind_all(&b, step);
    arena_deinit(&b.t);
    return s;
}
