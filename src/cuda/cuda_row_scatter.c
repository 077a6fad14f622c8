/* SPDX-License-Identifier: Apache-2.0 */
/* cuda_row_scatter.c - scatter_elements, scatter_nd, tensor_scatter: a copy of the data, then the updates.
 *
 * Updates that meet in one place count in their order, always. Where order can matter a thread does all updates of a
 * line itself; or each place first gets a list of its updates; or, where values are only set, the last update of each
 * place is found first. Where it cannot (integers that are added, smallest and largest) words are exchanged. */
#include "cuda/copy.h"
#include "cuda/cuda_kernels.h"
#include "cuda/space.h"

#include "cuda/device/scatter_args.h"

typedef enum scatter_mode { MODE_LINES, MODE_WINNERS, MODE_EXCHANGE, MODE_APART, MODE_LISTS, MODE_COUNT } scatter_mode;
enum { COUNT_MOST = 1 << 28 };
typedef struct scatter_tactic {
    uint8_t mode, trigger, zero[TACTIC_SIZE - 2];
} scatter_tactic;
_Static_assert(sizeof(scatter_tactic) == TACTIC_SIZE, "a tactic is overlaid");
static const tactic_field fields[] = {
    FIELD(scatter_tactic, mode, 0, MODE_COUNT - 1),
    FIELD(scatter_tactic, trigger, 1, 2),
};

static int64_t kind_of(const problem *p)
{
    if (p->op == OP_scatter_elements) return ((const attrs_scatter_elements *)p->attrs)->kind;
    if (p->op == OP_scatter_nd) return ((const attrs_scatter_nd *)p->attrs)->kind;
    return scatter_kind_set;
}

/* Operands by name: tensor_scatter has its update before its indices. */
static uint32_t updates_of(const problem *p)
{
    if (p->op == OP_max_unpool) return 0;
    return p->op == OP_tensor_scatter ? 1 : 2;
}
static bool is_in_place(const problem *p)
{
    return p->op == OP_tensor_scatter && ((const attrs_tensor_scatter *)p->attrs)->in_place;
}
static uint32_t indices_of(const problem *p)
{
    return p->op == OP_tensor_scatter ? 2 : 1;
}

/* The product of the first axes. INT64_MAX: no bound. */
static int64_t count_of(const problem_operand *o, uint32_t axes, bool at_most)
{
    int64_t count = 1;
    for (uint32_t i = 0; i < axes; i++)
        if (!i64_mul(count, at_most ? o->dim[i].max : o->dim[i].opt, &count)) return INT64_MAX;
    return count;
}
static uint32_t lead_of(const problem *p)
{
    return p->in[1].rank - 1u;
}
/* Places that updates name: elements, or slices of scatter_nd. */
static int64_t places_of(const problem *p, bool at_most)
{
    const bool is_nd = p->op == OP_scatter_nd;
    return count_of(&p->out[0], is_nd ? (uint32_t)p->in[1].dim[lead_of(p)].max : p->out[0].rank, at_most);
}
/* Updates of elements, or of slices. */
static int64_t updates_count(const problem *p, bool at_most)
{
    const problem_operand *u = &p->in[updates_of(p)];
    return count_of(u, p->op == OP_scatter_nd ? lead_of(p) : u->rank, at_most);
}

static const char *reject(const problem *p, const kernel_target *t)
{
    (void)t;
    REJECT_UNLESS(p->op == OP_scatter_elements || p->op == OP_scatter_nd || p->op == OP_tensor_scatter ||
                      p->op == OP_max_unpool,
                  "no scatter");
    REJECT_UNLESS(p->op != OP_max_unpool || places_of(p, true) <= COUNT_MOST, "a result of too many elements");
    REJECT_UNLESS(!p->prologue && !p->epilogue, "a scatter with a program");
    const sinter_dtype dtype = p->out[0].dtype;
    REJECT_UNLESS(sinter_dtype_bits(dtype) >= 8, "a type under a byte");
    REJECT_UNLESS(dtype <= SINTER_DTYPE_BOOL || kind_of(p) == scatter_kind_set, "arithmetic on 8-bit floats");
    const uint32_t indices = indices_of(p);
    if (cuda_has_in(p, indices)) {
        const sinter_dtype own = p->in[indices].dtype;
        REJECT_UNLESS(dtype_is_int(own) && sinter_dtype_bits(own) >= 8, "indices of another type");
    }
    if (p->op == OP_scatter_nd) {
        const problem_operand *x = &p->in[1];
        REJECT_UNLESS(x->rank > 0 && problem_dim_is_static(x->dim[x->rank - 1]), "tuples of a length that varies");
        REJECT_UNLESS(x->dim[x->rank - 1].max <= (int64_t)p->out[0].rank, "tuples longer than the rank");
    }
    REJECT_UNLESS(p->in[updates_of(p)].rank > 0, "a scalar");
    REJECT_UNLESS(p->out[0].rank > 0, "a scalar");
    int64_t axis = 0;
    if (p->op == OP_scatter_elements) axis = ((const attrs_scatter_elements *)p->attrs)->axis;
    if (p->op == OP_tensor_scatter) axis = ((const attrs_tensor_scatter *)p->attrs)->axis;
    REJECT_UNLESS(axis >= 0 && axis < (int64_t)p->out[0].rank && axis < (int64_t)p->in[updates_of(p)].rank,
                  "an axis that is not there");
    return NULL;
}

static bool mode_fits(const problem *p, uint32_t mode)
{
    const int64_t kind = kind_of(p);
    const sinter_dtype dtype = p->out[0].dtype;
    const uint32_t bits = sinter_dtype_bits(dtype);
    if (p->op == OP_max_unpool) return mode == MODE_WINNERS;
    switch (mode) {
    case MODE_LINES: return p->op != OP_tensor_scatter;
    case MODE_WINNERS:
        return p->op != OP_tensor_scatter && kind == scatter_kind_set && places_of(p, true) <= COUNT_MOST;
    case MODE_EXCHANGE:
        if (p->op == OP_tensor_scatter || kind == scatter_kind_set || p->out[0].is_gapped || bits < 32) return false;
        return !dtype_is_float(dtype) || kind == scatter_kind_max || kind == scatter_kind_min;
    case MODE_APART: return p->op == OP_tensor_scatter;
    case MODE_LISTS:
        return p->op != OP_tensor_scatter && kind != scatter_kind_set && !mode_fits(p, MODE_EXCHANGE) &&
               places_of(p, true) <= COUNT_MOST && updates_count(p, true) <= COUNT_MOST;
    default: return false;
    }
}

static void tactics(const problem *p, const kernel_target *t, tactic_sink *out)
{
    static const scatter_mode order[] = { MODE_APART, MODE_EXCHANGE, MODE_WINNERS, MODE_LISTS, MODE_LINES };
    (void)t;
    for (uint32_t i = 0; i < COUNT_OF(order); i++) {
        const scatter_tactic x = { .mode = (uint8_t)order[i], .trigger = 2 };
        if (mode_fits(p, order[i])) tactic_put(out, &x);
    }
}

static bool check(const problem *p, const tactic *t)
{
    return FIELDS_HOLD(fields, t) && mode_fits(p, t->at[0]);
}

static void print(const tactic *t, text *out)
{
    static const char *const name[] = { "lines", "winners", "exchange", "apart", "lists" };
    text_printf(out, "%s t%u", t->at[0] < MODE_COUNT ? name[t->at[0]] : "?", t->at[1]);
}

FIELDS_LET_IN(lets_in, scatter_tactic, 2)

/* Code 0 is a copy of the data, where there is one. Then come the mode's phases: SCATTER_WRITE and those that follow.
 */
static uint32_t copies_of(const problem *p)
{
    return p->op == OP_max_unpool || is_in_place(p) ? 0 : 1;
}
static uint32_t phases_of(uint32_t mode)
{
    return mode == MODE_LISTS ? SCATTER_RANK + 1 : mode == MODE_WINNERS ? SCATTER_CLEAR + 1 : SCATTER_WRITE + 1;
}

static double cost_ns(const problem *p, const tactic *t, const kernel_target *target)
{
    const uint32_t mode = t->at[0];
    const problem_operand *u = &p->in[updates_of(p)];
    const double updates = (double)cuda_operand_count(u), places = (double)places_of(p, false);
    if (is_in_place(p)) return cuda_cost_ns(target, 2 * cuda_operand_bytes(u), updates * 40);
    double walk = 1, bytes = 2 * cuda_operand_bytes(&p->out[0]) + 3 * cuda_operand_bytes(u);
    if (mode == MODE_LINES) {
        if (p->op == OP_scatter_elements) walk = (double)u->dim[((const attrs_scatter_elements *)p->attrs)->axis].opt;
        else walk = (double)updates_count(p, false);
    }
    if (mode == MODE_WINNERS) bytes += 8 * places;
    if (mode == MODE_LISTS) {
        const double listed = (double)updates_count(p, false);
        bytes += 32 * listed + 24 * places;
        walk = places > 0 ? listed / places / 4 : 0; /* a thread loads several updates at once */
    }
    return cuda_cost_ns(target, bytes, updates * 40) + phases_of(mode) * 1000 + walk * 300;
}

/* Where the arrays of the workspace begin, and what they take; `winners` are at its start. */
typedef struct scatter_room {
    size_t offsets, list, order, bytes;
} scatter_room;
static scatter_room room_of(const problem *p, uint32_t mode)
{
    scatter_room r = { 0 };
    if (mode != MODE_WINNERS && mode != MODE_LISTS) return r;
    r.offsets = r.bytes = (size_t)places_of(p, true) * 4;
    if (mode == MODE_WINNERS) return r;
    r.offsets += 4; /* behind the counts lies how much of the list has an owner */
    r.list = r.offsets + r.bytes;
    r.order = r.list + (size_t)updates_count(p, true) * 4;
    r.bytes = r.order + (size_t)updates_count(p, true) * 4;
    return r;
}
static size_t workspace(const problem *p, const tactic *t, uint32_t threads)
{
    (void)threads;
    return room_of(p, t->at[0]).bytes;
}

static bool code(const problem *p, const tactic *t, const kernel_target *target, uint32_t index, cuda_code *c)
{
    (void)target;
    const uint32_t copies = copies_of(p);
    if (index >= copies + phases_of(t->at[0])) return false;
    if (index < copies) {
        copy_code(c);
        return true;
    }
    const sinter_dtype own = p->out[0].dtype, value = kind_of(p) == scatter_kind_set ? space_bits(own) : own;
    const uint32_t indices = indices_of(p);
    sinter_dtype pick = SINTER_DTYPE_I64;
    if (cuda_has_in(p, indices)) pick = p->in[indices].dtype;
    c->source = "scatter.cu";
    c->entry = "scatter";
    cuda_code_define(c, "PHASE", (int64_t)index - copies);
    cuda_code_define(c, "MODE", t->at[0]);
    cuda_code_define(c, "KIND", kind_of(p));
    cuda_code_define(c, "RANK", p->out[0].rank);
    cuda_code_define(c, "URANK", p->in[updates_of(p)].rank);
    cuda_code_define(c, "IS_BOOL", own == SINTER_DTYPE_BOOL);
    if (p->op == OP_scatter_elements) {
        cuda_code_define(c, "OP", 0);
        cuda_code_define(c, "AXIS", ((const attrs_scatter_elements *)p->attrs)->axis);
    } else if (p->op == OP_scatter_nd) {
        cuda_code_define(c, "OP", 1);
        cuda_code_define(c, "LEAD", lead_of(p));
        cuda_code_define(c, "TUPLE", p->in[1].dim[lead_of(p)].max);
    } else if (p->op == OP_max_unpool) {
        cuda_code_define(c, "OP", 3);
    } else {
        cuda_code_define(c, "OP", 2);
        cuda_code_define(c, "AXIS", ((const attrs_tensor_scatter *)p->attrs)->axis);
        cuda_code_define(c, "CIRCULAR", ((const attrs_tensor_scatter *)p->attrs)->circular != 0);
    }
    text_printf(c->generated,
                "#define VALUE_SIZE %u\n"
                "#define VALUE_GET emit_get_%s\n"
                "#define VALUE_PACK emit_pack_%s\n"
                "typedef %s value_t;\n"
                "#define INDEX_SIZE %u\n"
                "#define INDEX_GET emit_get_%s\n",
                sinter_dtype_bits(value) / 8, sinter_dtype_name(value), sinter_dtype_name(value), emit_carrier(value),
                sinter_dtype_bits(pick) / 8, sinter_dtype_name(pick));
    return true;
}

/* The launch of one phase (SCATTER_WRITE …): threads go over the updates, whose axes in [first, last) are one thread's
 * own walk; or `places` threads, where that is not -1. */
static sinter_status phase(env *e, const problem *p, scatter_tactic x, cuda_record *r, uint32_t number, const view *in,
                           const view *out, uint32_t first, uint32_t last, int64_t places)
{
    const uint32_t u = updates_of(p), index = indices_of(p);
    const view *updates = &in[u];
    const bool has_indices = cuda_has_in(p, index);
    int64_t total = 1, walk = 1;
    struct scatter_args *a;
    TRY(cuda_launch_begin(e, r, copies_of(p) + number, 1, 1, 1, SCATTER_BLOCK, 0, sizeof *a, &a));
    for (uint32_t i = 0; i < updates->rank; i++) {
        const bool is_walked = i >= first && i < last;
        if (!i64_mul(total, is_walked ? 1 : updates->dim[i], &total) ||
            !i64_mul(walk, is_walked ? updates->dim[i] : 1, &walk) || updates->dim[i] > INT32_MAX)
            return FAIL(e, UNSUPPORTED, "more than 2^31 updates");
        a->dim[i] = cuda_fast_div(is_walked ? 1 : updates->dim[i]);
        a->update_dim[i] = (small)updates->dim[i];
        a->update_step[i] = updates->stride[i];
    }
    for (uint32_t i = 0; i < out->rank; i++) {
        if (out->dim[i] > INT32_MAX) return FAIL(e, UNSUPPORTED, "an axis of more than 2^31 elements");
        a->out_dim[i] = (small)out->dim[i];
        a->out_step[i] = out->stride[i];
    }
    for (uint32_t i = 0; has_indices && i < in[index].rank; i++) a->index_step[i] = in[index].stride[i];
    if (view_count(updates) == 0) total = 0;
    if (places >= 0) total = places;
    if (total > INT32_MAX || walk > INT32_MAX) return FAIL(e, UNSUPPORTED, "more than 2^31 updates");
    a->total = (natural)total;
    a->walk = (natural)walk;
    a->trigger = x.trigger;
    cuda_launch_last(r)->grid[0] = (uint32_t)((total + SCATTER_BLOCK - 1) / SCATTER_BLOCK);
    CUDA_PATCH(r, a, out, PATCH_OUT, 0);
    CUDA_PATCH(r, a, updates, PATCH_IN, u);
    if (has_indices) CUDA_PATCH(r, a, indices, PATCH_IN, index);
    CUDA_PATCH(r, a, fault, PATCH_FAULT, 0);
    CUDA_PATCH(r, a, step, PATCH_STEP, 0);
    if (x.mode == MODE_WINNERS || x.mode == MODE_LISTS) CUDA_PATCH(r, a, winners, PATCH_WORKSPACE, 0);
    if (x.mode != MODE_LISTS) return SINTER_OK;
    const scatter_room room = room_of(p, x.mode);
    cuda_patch_add(r, a, offsetof(struct scatter_args, offsets), PATCH_WORKSPACE, 0, (int64_t)room.offsets);
    cuda_patch_add(r, a, offsetof(struct scatter_args, list), PATCH_WORKSPACE, 0, (int64_t)room.list);
    cuda_patch_add(r, a, offsetof(struct scatter_args, order), PATCH_WORKSPACE, 0, (int64_t)room.order);
    return SINTER_OK;
}
/* The launch begun last goes over the result, not over the updates. */
static void over_result(cuda_record *r, const view *out)
{
    struct scatter_args *a = (struct scatter_args *)(r->args + cuda_launch_last(r)->param[0].at);
    for (uint32_t i = 0; i < out->rank; i++) a->dim[i] = cuda_fast_div(out->dim[i]);
}

static sinter_status check_shapes(env *e, const problem *p, const view *in, const view *out)
{
    const view *u = &in[updates_of(p)];
    if (p->op == OP_max_unpool) {
        bool is_same = in[0].rank == in[1].rank && in[0].rank == out->rank;
        for (uint32_t i = 0; is_same && i < out->rank; i++) is_same = in[0].dim[i] == in[1].dim[i];
        return is_same ? SINTER_OK : FAIL(e, INVALID_ARG, "max_unpool: the shapes of input and indices differ");
    }
    bool fits = in[0].rank == out->rank;
    for (uint32_t i = 0; fits && i < out->rank; i++) fits = in[0].dim[i] == out->dim[i];
    if (p->op == OP_scatter_elements) {
        const int64_t axis = ((const attrs_scatter_elements *)p->attrs)->axis;
        fits = fits && axis >= 0 && axis < (int64_t)out->rank && in[1].rank == out->rank && u->rank == out->rank;
        for (uint32_t i = 0; fits && i < out->rank; i++)
            fits = in[1].dim[i] == u->dim[i] && (i == (uint32_t)axis || u->dim[i] <= out->dim[i]);
    } else if (p->op == OP_scatter_nd) {
        const uint32_t lead = lead_of(p), tuple = (uint32_t)p->in[1].dim[lead].max;
        fits = fits && in[1].dim[lead] == tuple && u->rank == lead + out->rank - tuple;
        for (uint32_t i = 0; fits && i < u->rank; i++)
            fits = u->dim[i] == (i < lead ? in[1].dim[i] : out->dim[i - lead + tuple]);
    } else {
        const int64_t axis = ((const attrs_tensor_scatter *)p->attrs)->axis;
        fits = fits && axis >= 1 && axis < (int64_t)out->rank && u->rank == out->rank;
        for (uint32_t i = 0; fits && i < out->rank; i++)
            fits = i == (uint32_t)axis ? u->dim[i] <= out->dim[i] : u->dim[i] == out->dim[i];
        if (fits && cuda_has_in(p, 2)) fits = in[2].rank == 1 && in[2].dim[0] == out->dim[0];
    }
    return fits ? SINTER_OK : FAIL(e, INVALID_ARG, "the shapes of data, indices and updates do not go together");
}

static sinter_status bind(env *e, const problem *p, const tactic *t, const void *attrs, const view *in, const view *out,
                          void *record)
{
    (void)attrs;
    cuda_record *r = record;
    const scatter_tactic x = TACTIC_AS(scatter_tactic, t);
    TRY(check_shapes(e, p, in, out));
    if (p->op == OP_max_unpool) {
        const int64_t count = view_count(out);
        TRY(phase(e, p, x, r, SCATTER_CLEAR, in, out, 0, 0, count));
        TRY(phase(e, p, x, r, SCATTER_FIND, in, out, 0, 0, -1));
        TRY(phase(e, p, x, r, SCATTER_WRITE, in, out, 0, 0, count));
        over_result(r, out);
        return SINTER_OK;
    }
    if (is_in_place(p)) return phase(e, p, x, r, SCATTER_WRITE, in, out, 0, 0, -1);
    TRY(copy_launch(e, r, 0, 0, p->out[0].dtype, &in[0], &out[0]));
    uint32_t first = 0, last = 0;
    if (p->op == OP_scatter_elements) {
        first = (uint32_t)((const attrs_scatter_elements *)p->attrs)->axis;
        last = first + 1;
    } else if (p->op == OP_scatter_nd) {
        last = lead_of(p);
    }
    if (x.mode == MODE_LINES) return phase(e, p, x, r, SCATTER_WRITE, in, out, first, last, -1);
    if (x.mode != MODE_WINNERS && x.mode != MODE_LISTS) return phase(e, p, x, r, SCATTER_WRITE, in, out, 0, 0, -1);
    int64_t places = 1;
    const uint32_t rank = p->op == OP_scatter_nd ? (uint32_t)p->in[1].dim[lead_of(p)].max : out->rank;
    for (uint32_t i = 0; i < rank; i++) places *= out->dim[i];
    /* One thread for each place that is named: not for the elements of a slice. */
    first = p->op == OP_scatter_nd ? lead_of(p) : 0;
    last = p->op == OP_scatter_nd ? in[2].rank : 0;
    TRY(phase(e, p, x, r, SCATTER_CLEAR, in, out, 0, 0, x.mode == MODE_LISTS ? places + 1 : places));
    TRY(phase(e, p, x, r, SCATTER_FIND, in, out, first, last, -1));
    if (x.mode == MODE_WINNERS) return phase(e, p, x, r, SCATTER_WRITE, in, out, 0, 0, -1);
    TRY(phase(e, p, x, r, SCATTER_OFFSETS, in, out, 0, 0, places));
    TRY(phase(e, p, x, r, SCATTER_LIST, in, out, first, last, -1));
    TRY(phase(e, p, x, r, SCATTER_RANK, in, out, first, last, -1));
    TRY(phase(e, p, x, r, SCATTER_WRITE, in, out, 0, 0, view_count(out)));
    over_result(r, out);
    return SINTER_OK;
}

CUDA_ROW(cuda_scatter, 3, reject, , .out_strides = STRIDES_ROWS, .updates_in_place = true, .workspace = workspace,
         .lets_in = lets_in);
