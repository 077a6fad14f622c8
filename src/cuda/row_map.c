/* SPDX-License-Identifier: Apache-2.0 */
/* row_map.c - ops whose result elements are computed one by one: padding, gathers, pools, resizing and the like.
 *
 * Each op is a plan: the loader of device/map.cu, its constants, and whether the innermost axis of the result is one
 * that the op leaves alone ("straight"), so that a thread may take a vector of it. Where the op only moves elements
 * they are bits, whatever their type is. What depends on shapes is filled in bind. */
#include "cuda/cuda_kernels.h"
#include "cuda/map.h"

#include "cuda/device/map_args.h"

#include <inttypes.h>
#include <string.h>

typedef struct map_tactic {
    uint8_t width, trigger; /* when the next grid may start: 1 at once, 2 when the elements are read */
    uint8_t zero[TACTIC_SIZE - 2];
} map_tactic;
_Static_assert(sizeof(map_tactic) == TACTIC_SIZE, "a tactic");
static const tactic_field fields[] = {
    FIELD(map_tactic, width, 1, 16, true, "", 1),
    FIELD(map_tactic, trigger, 1, 2, false, " t", 1),
};
enum { MAP_BLOCK = 128 };

/* Are a few instructions enough for an element? */
static bool is_light(map_kind map)
{
    return (map >= MAP_PAD && map <= MAP_MAKE) || map == MAP_RESIZE;
}

static const char *plan_of(const problem *p, map_plan *m)
{
    if (p->prologue) return "it has a prologue";
    if (p->epilogue && p->count_out > 1) return "an epilogue with several results";
    if (p->count_anchor > MAP_IN) return "more operands than the kernel has";
    memset(m, 0, sizeof *m);
    m->inner_in = UINT8_MAX;
    const char *why = map_plan_move(p, m);
    if (m->map == MAP_NONE && !why) why = map_plan_image(p, m);
    if (m->map == MAP_NONE && !why) return "not an op whose elements are computed one by one";
    if (why) return why;
    const bool as_bits = m->is_bits_out && !p->epilogue;
    if (!as_bits) m->bits_in = 0;
    for (uint32_t i = 0; i < p->count_anchor; i++) {
        const sinter_dtype own = p->in[i].dtype;
        if (sinter_dtype_bits(own) < 8 && own != SINTER_DTYPE_NONE) return "a type under a byte";
        if (!(m->bits_in >> i & 1) && own > SINTER_DTYPE_BOOL) return "arithmetic on 8-bit floats";
    }
    why = space_init(p, p->epilogue, false, as_bits, &m->s);
    if (why) return why;
    if (m->s.rank == 0 && m->map != MAP_GATHER && m->map != MAP_PAD && m->map != MAP_GATHER_ND) return "a scalar";
    const problem_operand *x = &p->in[0];
    uint32_t widest, narrowest;
    space_sizes(&m->s, &widest, &narrowest);
    m->is_straight = m->inner_in != UINT8_MAX && cuda_operand_inner(x) == m->inner_in;
    m->width = m->vector = 1;
    if (m->is_straight) {
        /* As wide as the results, the operands of the program and operand 0 allow. */
        const uint32_t own = sinter_dtype_bits(x->dtype) / 8;
        m->width = m->vector = (uint8_t)cuda_operand_vector(x, space_vector(&m->s, 16 / (own > widest ? own : widest)));
    } else if (m->s.rank && is_light(m->map)) {
        /* Elements one by one, but what they share is computed once, and they are stored together. */
        m->width = (uint8_t)(widest > 2 ? 16 / widest : 8);
        m->vector = (uint8_t)space_vector(&m->s, m->width);
    }
    return NULL;
}

uint32_t map_inner(const problem *p)
{
    const problem_operand *o = &p->out[0];
    for (uint32_t i = o->rank; i-- > 0;)
        if (o->dim[o->order[i]].max != 1) return o->order[i];
    return o->rank ? o->order[o->rank - 1] : 0;
}

void map_define(map_plan *m, const char *name, int64_t value)
{
    if (m->define_count < MAP_DEFINES) m->define[m->define_count++] = (cuda_define){ name, value };
}

static const char *reject(const problem *p, const kernel_target *t)
{
    (void)t;
    map_plan m;
    return plan_of(p, &m);
}

static void tactics(const problem *p, const kernel_target *t, tactic_sink *out)
{
    map_plan m;
    if (plan_of(p, &m)) return;
    const double count = (double)space_count(&m.s), lanes = (double)(t->units ? t->units : 1) * 512;
    const uint32_t bytes = sinter_dtype_bits(p->count_in ? p->in[0].dtype : p->out[0].dtype) / 8;
    uint32_t width = m.vector, seen = 0;
    /* Narrower where a few threads would do it all. */
    while (width > 1 && count / width < lanes && bytes * width > 4) width /= 2;
    const uint32_t widths[] = { width, m.vector, m.width, m.is_straight ? width : 1 };
    for (uint32_t i = 0; i < COUNT_OF(widths); i++) {
        const map_tactic own = { .width = (uint8_t)widths[i], .trigger = 2 };
        if (seen & widths[i]) continue;
        seen |= widths[i];
        tactic_put(out, &own);
    }
    const map_tactic at_once = { .width = (uint8_t)width, .trigger = 1 };
    tactic_put(out, &at_once);
}

static bool check(const problem *p, const tactic *t)
{
    const map_tactic own = TACTIC_AS(map_tactic, t);
    map_plan m;
    return FIELDS_HOLD(fields, t) && !plan_of(p, &m) && own.width <= m.width;
}

FIELDS_PRINT(print, fields)
FIELDS_LET_IN(lets_in, map_tactic, 2)

static double cost_ns(const problem *p, const tactic *t, const kernel_target *target)
{
    map_plan m;
    double bytes = 0;
    if (plan_of(p, &m)) return 1e12;
    const double count = (double)space_count(&m.s), each = m.work > 1 ? m.work : 1;
    for (uint32_t i = 0; i < p->count_out; i++) bytes += cuda_operand_bytes(&p->out[i]);
    /* What is read: no more than the operand, no more than the elements that are looked at. */
    for (uint32_t i = 0; i < p->count_in; i++) {
        const double own = cuda_operand_bytes(&p->in[i]),
                     seen = i == 0 ? count * each * sinter_dtype_bits(p->in[i].dtype) / 8 : own;
        bytes += own < seen ? own : seen;
    }
    const double threads = count / t->at[0], lanes = (double)(target->units ? target->units : 1) * 512;
    /* Several narrow elements are read as one. */
    const double words = p->count_in ? t->at[0] * sinter_dtype_bits(p->in[0].dtype) / 32.0 : 1;
    const double serial = each * 8 * (threads < lanes && words > 1 ? words : 1);
    const double shared = m.is_straight ? 1 : 0.5 + 0.5 / t->at[0]; /* of the work on an element */
    return cuda_cost_ns(target, bytes * 1.2, count * each * 12 * shared) + serial +
           (t->at[0] > m.vector ? cuda_cost_ns(target, bytes * 0.5, 0) : 0);
}

static bool code(const problem *p, const tactic *t, const kernel_target *target, uint32_t index, cuda_code *c)
{
    (void)target;
    map_plan m;
    if (index || plan_of(p, &m)) return false;
    c->source = "map.cu";
    c->entry = "map";
    cuda_code_define(c, "MAP", m.map);
    cuda_code_define(c, "WIDTH", t->at[0]);
    cuda_code_define(c, "STRAIGHT", m.is_straight);
    cuda_code_define(c, "TRIGGER", t->at[1]);
    cuda_code_define(c, "EVEN", space_is_even(&m.s, t->at[0]));
    cuda_code_define(c, "WIDE", space_is_wide(&m.s, t->at[0]));
    for (uint32_t i = 0; i < m.define_count; i++) cuda_code_define(c, m.define[i].name, m.define[i].value);
    m.s.emit.width = t->at[0];
    emit_text(&m.s.emit, c->generated);
    text_printf(c->generated, "#define MAP_ORDER { {");
    for (uint32_t i = 0; i < m.s.count; i++)
        text_printf(c->generated, "%s%u", i ? ", " : " ", m.s.rank ? m.s.axis[m.s.first[i]] : 0);
    text_printf(c->generated, " } }\n");
    for (uint32_t i = 0; i < p->count_anchor; i++) {
        sinter_dtype own = p->in[i].dtype;
        if (own == SINTER_DTYPE_NONE) continue;
        if (m.bits_in >> i & 1) own = space_bits(own);
        text_printf(c->generated,
                    "#define IN%u_SIZE %u\n"
                    "#define IN%u_GET emit_get_%s\n"
                    "#define IN%u_VECTOR %u\n"
                    "typedef %s in%u_t;\n",
                    i, sinter_dtype_bits(own) / 8, i, sinter_dtype_name(own), i, i == 0 && m.is_straight ? t->at[0] : 1,
                    emit_carrier(own), i);
    }
    map_text(p, &m, c->generated);
    return true;
}

static sinter_status bind(env *e, const problem *p, const tactic *t, const void *attrs, const view *in, const view *out,
                          void *record)
{
    map_plan m;
    cuda_record *r = record;
    int64_t size_at[SINTER_RANK_MAX];
    const char *why = plan_of(p, &m);
    if (why) return FAIL(e, INTERNAL, "an op of which the kernel says: %s", why);
    m.s.emit.width = t->at[0];
    space_dims(&m.s, out, size_at);
    const uint32_t last = m.s.count - 1;
    const int64_t row = (size_at[last] + t->at[0] - 1) / t->at[0];
    int64_t total = row;
    for (uint32_t i = 0; i < last; i++)
        if (!i64_mul(total, size_at[i], &total)) total = INT64_MAX;
    const int64_t blocks = cuda_ceil_div(total, MAP_BLOCK);
    if (blocks > INT32_MAX || (total > INT32_MAX && !space_is_wide(&m.s, t->at[0])))
        return FAIL(e, UNSUPPORTED, "a result of %lld vectors of %u elements, more than a launch makes",
                    (long long)total, t->at[0]);
    struct map_args *a;
    TRY(cuda_launch_begin(e, r, 0, (uint64_t)blocks, 1, 1, MAP_BLOCK, 0, sizeof *a, &a));
    a->total = total;
    a->inner = (small)size_at[last];
    a->row = cuda_fast_div(row);
    for (uint32_t i = 0; i < m.s.count; i++) {
        if (size_at[i] > INT32_MAX) return FAIL(e, UNSUPPORTED, "an axis of more than 2^31 elements");
        a->dim[i] = cuda_fast_div(size_at[i]);
    }
    for (uint32_t i = 0; i < p->count_anchor; i++) {
        if (p->in[i].dtype == SINTER_DTYPE_NONE) continue;
        for (uint32_t k = 0; k < in[i].rank; k++) {
            if (in[i].dim[k] > INT32_MAX) return FAIL(e, UNSUPPORTED, "an axis of more than 2^31 elements");
            a->in_step[i][k] = in[i].stride[k];
            a->in_dim[i][k] = (small)in[i].dim[k];
        }
        cuda_patch_add(r, a, offsetof(struct map_args, in) + 8 * (size_t)i, PATCH_IN, i, 0);
    }
    for (uint32_t k = 0; k < out[0].rank; k++) a->out_dim[k] = (small)out[0].dim[k];
    if (p->count_out > 1 && p->out[1].dtype != SINTER_DTYPE_NONE) {
        for (uint32_t k = 0; k < out[1].rank; k++) a->extra_step[k] = out[1].stride[k];
        CUDA_PATCH(r, a, extra, PATCH_OUT, 1);
    }
    /* A run that can find no fault in the data does not look for one. */
    if (m.map == MAP_GATHER || m.map == MAP_GATHER_ELEMENTS || m.map == MAP_GATHER_ND || m.map == MAP_REVERSE ||
        m.map == MAP_ROI) {
        CUDA_PATCH(r, a, fault, PATCH_FAULT, 0);
        CUDA_PATCH(r, a, step, PATCH_STEP, 0);
    }
    TRY(map_fill(e, p, &m, attrs, in, out, a));
    return space_bind(e, &m.s, in, out, r);
}

CUDA_ROW(cuda_each, 2, reject, , .out_strides = STRIDES_ANY, .lets_in = lets_in);
