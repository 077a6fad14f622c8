/* SPDX-License-Identifier: Apache-2.0 */
/* row_lines.c - reductions, softmax and normalisations: rows.cu where the axis that is innermost in memory goes,
 * columns.cu where it stays, and a second launch where lines are few and long.
 *
 * All rows of this file share their tactics (row_lines_tactic.c). */
#include "cuda/cuda_kernels.h"
#include "cuda/row_lines.h"

typedef struct line_args line_args;
/* PREFETCH_MOST: words that a block holds of a row and of the operands of its epilogue. */
enum { PREFETCH_MOST = 28 * 1024, JOIN_ACROSS = 32, JOIN_DOWN = 8 };

static const tactic_field fields[] = {
    FIELD(line_tactic, form, FORM_ROWS, FORM_GROUPS), FIELD(line_tactic, vector, 1, 8),
    FIELD(line_tactic, items, 0, UINT8_MAX),          FIELD(line_tactic, cluster, 0, 1),
    FIELD(line_tactic, across, 1, 1024, true),        FIELD(line_tactic, block, 32, 1024, true),
    FIELD(line_tactic, splits, 1, LINE_SPLITS_MOST),  FIELD(line_tactic, trigger, 1, 3),
    FIELD(line_tactic, ahead, 0, UINT8_MAX),          FIELD(line_tactic, resident, 0, UINT8_MAX),
    FIELD(line_tactic, grid, 0, UINT16_MAX),
};

static uint32_t launches_of(const line_tactic *t)
{
    return t->splits > 1 && !t->cluster ? 2 : 1;
}

bool line_is_reduction(const problem *p)
{
    return p->op == OP_reduce || p->op == OP_arg_reduce;
}

/* The type that the anchor works on. */
sinter_dtype line_input_type(const problem *p)
{
    for (uint32_t i = 0; p->prologue && i < p->prologue->count; i++)
        if (p->prologue->at[i].op == EXPR_STORE) return (sinter_dtype)p->prologue->at[i].dtype;
    return p->in[0].dtype;
}

enum line_op line_op_of(const problem *p)
{
    switch (p->op) {
    case OP_reduce: return (enum line_op)((const attrs_reduce *)p->attrs)->kind;
    case OP_arg_reduce: return ((const attrs_arg_reduce *)p->attrs)->is_max ? LINE_ARG_MAX : LINE_ARG_MIN;
    case OP_softmax: return LINE_SOFTMAX;
    case OP_log_softmax: return LINE_LOG_SOFTMAX;
    case OP_rms_norm: return LINE_RMS;
    case OP_lp_norm: return LINE_LP;
    default: return LINE_LAYER;
    }
}

enum line_acc line_acc_of(const problem *p)
{
    const sinter_dtype t = line_input_type(p);
    return t == SINTER_DTYPE_F64 ? LINE_ACC_F64 : dtype_is_float(t) ? LINE_ACC_F32 : LINE_ACC_I64;
}

static void size_times(line_size *s, dim_range d)
{
    if (!i64_mul(s->max, d.max, &s->max)) s->max = INT64_MAX;
    if (!i64_mul(s->most, cuda_range_most(d), &s->most)) s->most = INT64_MAX;
    if (!i64_mul(s->opt, d.opt, &s->opt)) s->opt = INT64_MAX;
}

void line_shape_of(const lines *l, line_shape *s)
{
    const problem_operand *x = &l->in[0];
    const line_size one = { 1, 1, 1 };
    s->inner = s->length = s->lines = s->rows = one;
    s->bytes = sinter_dtype_bits(x->dtype) / 8;
    size_times(&s->inner, x->dim[l->inner]);
    for (uint32_t i = 0; i < l->gone_count; i++) size_times(&s->length, x->dim[l->gone[i]]);
    for (uint32_t i = 0; i < l->kept_count; i++) {
        size_times(&s->lines, x->dim[l->kept[i]]);
        if (l->is_rows || l->kept[i] != l->inner) size_times(&s->rows, x->dim[l->kept[i]]);
    }
}

/* ---- spaces of the programs ---- */

static sinter_dtype acc_type(const problem *p)
{
    const enum line_acc a = line_acc_of(p);
    return a == LINE_ACC_F32 ? SINTER_DTYPE_F32 : a == LINE_ACC_F64 ? SINTER_DTYPE_F64 : SINTER_DTYPE_I64;
}

/* The axis along which results of rows are adjacent: the last kept one. */
static uint8_t outer_axis(const lines *l)
{
    return l->kept_count ? l->kept[l->kept_count - 1] : 0;
}

emit_space line_space(const lines *l, bool is_prologue, uint32_t vector)
{
    const problem *p = &l->p;
    emit_space s = { .p = p,
                     .program = is_prologue ? p->prologue : p->epilogue,
                     .prefix = is_prologue ? "pro" : "epi",
                     .rank = l->rank,
                     .inner = l->inner,
                     .width = vector,
                     .acc = acc_type(p) };
    for (uint32_t m = 0; m < l->rank; m++) s.dim[m] = p->in[0].dim[m];
    if (!is_prologue && !line_is_reduction(p)) s.turns = ((1u << l->rank) - 1) & ~l->gone_mask;
    if (is_prologue || !line_is_reduction(p)) return s;
    for (uint32_t m = 0; m < l->rank; m++)
        if (l->gone_mask >> m & 1u) s.dim[m] = (dim_range){ 1, 1, 1, 1 };
    if (l->is_rows) s.inner = outer_axis(l);
    return s;
}

static const char *reject_lines(const problem *p, const lines *l)
{
    const int type = lines_type_of(line_input_type(p));
    REJECT_UNLESS(type >= 0 && lines_type_of(p->in[0].dtype) >= 0, "a type of 8-bit floats or under a byte");
    if (!dtype_is_float(line_input_type(p))) {
        const enum line_op op = line_op_of(p);
        REJECT_UNLESS(line_is_reduction(p), "not of floats");
        REJECT_UNLESS(op != LINE_L2 && op != LINE_LOG_SUM && op != LINE_LOG_SUM_EXP, "a norm or logarithm of integers");
    }
    const emit_space after = line_space(l, false, 8), before = line_space(l, true, 8);
    const char *why = emit_reject(&after);
    if (!why && p->prologue) why = emit_reject(&before);
    if (why) return why;
    if (p->op == OP_layer_norm && !p->epilogue)
        for (uint32_t i = 1; i < p->count_out; i++)
            REJECT_UNLESS(p->out[i].dtype == SINTER_DTYPE_NONE || p->out[i].dtype == acc_type(p),
                          "statistics of another type");
    line_shape s;
    line_shape_of(l, &s);
    REJECT_UNLESS(s.length.most < INT32_MAX && s.lines.most < INT32_MAX, "more than 2^31 elements or lines");
    return NULL;
}

static const char *reject(const problem *p)
{
    lines l;
    const char *why = lines_of(p, false, &l);
    return why ? why : reject_lines(p, &l);
}

const char *line_problem(const problem *p, const line_tactic *t, lines *l)
{
    return lines_of(p, t->form == FORM_GROUPS, l);
}

static bool line_check(const problem *p, const tactic *t)
{
    const line_tactic x = TACTIC_AS(line_tactic, t);
    lines l;
    return FIELDS_HOLD(fields, t) && !line_problem(p, &x, &l) && !reject_lines(p, &l) && line_is_sound(p, &l, &x);
}

static size_t workspace(const problem *p, const tactic *t, uint32_t threads)
{
    (void)threads;
    const line_tactic x = TACTIC_AS(line_tactic, t);
    lines l;
    if (launches_of(&x) < 2 || line_problem(p, &x, &l)) return 0;
    line_shape s;
    line_shape_of(&l, &s);
    return size_mul(size_mul((size_t)s.lines.max, x.splits), line_state_size(p));
}

/* ---- code ---- */

static int64_t axes_word(const uint8_t *axis, uint32_t count)
{
    int64_t word = 0;
    for (uint32_t i = 0; i < count; i++) word |= (int64_t)axis[i] << (4 * i);
    return word;
}

static int64_t norm_power(const problem *p)
{
    if (p->op != OP_lp_norm) return 0;
    const int64_t power = ((const attrs_lp_norm *)p->attrs)->p;
    return power == 1 || power == 2 ? power : 0;
}

static uint32_t count_loads(const expr *x)
{
    uint32_t n = 0;
    for (uint32_t i = 0; x && i < x->count; i++) n += x->at[i].op == EXPR_LOAD;
    return n;
}

/* Is the innermost axis whole vectors, whatever its size? */
bool line_is_exact(const lines *l, uint32_t vector)
{
    const dim_range d = l->in[0].dim[l->inner];
    return (problem_dim_is_static(d) ? d.max : d.divisor) % vector == 0;
}

bool line_is_full(const lines *l, const line_tactic *t)
{
    line_shape s;
    line_shape_of(l, &s);
    if (t->form != FORM_ROWS || !t->items || !line_is_exact(l, t->vector)) return false;
    for (uint32_t i = 0; i < l->gone_count; i++)
        if (!problem_dim_is_static(l->in[0].dim[l->gone[i]])) return false;
    const int64_t each = (int64_t)t->across * (t->cluster ? t->splits : 1);
    return line_vectors(s.length.max, s.inner.max, t->vector) == each * t->items;
}

static bool line_code(const problem *p, const tactic *t, const kernel_target *target, uint32_t index, cuda_code *c)
{
    (void)target;
    const line_tactic x = TACTIC_AS(line_tactic, t);
    lines l;
    if (index >= launches_of(&x) || line_problem(p, &x, &l)) return false;
    const bool joins = index == 1 && line_is_reduction(p), is_rows = x.form == FORM_ROWS;
    c->source = joins ? "combine.cu" : is_rows ? "rows.cu" : "columns.cu";
    c->entry = joins ? "combine" : is_rows ? "rows" : "columns";
    uint8_t gone_count = l.gone_count, kept_count = l.kept_count;
    if (is_rows) gone_count -= 1;
    else if (!joins) kept_count -= 1;
    const uint32_t loads = count_loads(l.p.epilogue);
    cuda_code_define(c, "OP", line_op_of(p));
    cuda_code_define(c, "ACC", line_acc_of(p));
    cuda_code_define(c, "X_TYPE", lines_type_of(line_input_type(p)));
    cuda_code_define(c, "X_DENSE", !p->in[0].is_gapped);
    cuda_code_define(c, "EXACT", line_is_exact(&l, x.vector));
    cuda_code_define(c, "RANK", l.rank);
    cuda_code_define(c, "KEPT", kept_count);
    cuda_code_define(c, "KEPT_AXES", axes_word(l.kept, kept_count));
    cuda_code_define(c, "GONE", gone_count);
    cuda_code_define(c, "GONE_AXES", axes_word(l.gone, gone_count));
    cuda_code_define(c, "INNER", joins ? outer_axis(&l) : l.inner);
    cuda_code_define(c, "OUTER", outer_axis(&l));
    cuda_code_define(c, "VECTOR", x.vector);
    cuda_code_define(c, is_rows && !joins ? "LANES" : "TX", joins ? JOIN_ACROSS : x.across);
    cuda_code_define(c, "BLOCK", joins ? JOIN_ACROSS * JOIN_DOWN : x.block);
    cuda_code_define(c, "ITEMS", x.items);
    cuda_code_define(c, "CLUSTER", x.cluster ? x.splits : 1);
    cuda_code_define(c, "MODE", launches_of(&x) < 2 ? LINE_WHOLE : index ? LINE_APPLY : LINE_PARTIAL);
    cuda_code_define(c, "PRO", p->prologue && !joins);
    cuda_code_define(c, "NORM_P", norm_power(p));
    cuda_code_define(c, "LAST", p->op == OP_arg_reduce && ((const attrs_arg_reduce *)p->attrs)->last);
    cuda_code_define(c, "STATS", p->op == OP_layer_norm && !p->epilogue && p->count_out > 1);
    cuda_code_define(c, "GROUPED", x.form == FORM_GROUPS);
    const emit_space vectors = line_space(&l, false, x.vector);
    const uint32_t words =
        x.items * (x.vector + emit_operand_words(&vectors, true) + emit_operand_words(&vectors, false));
    cuda_code_define(c, "PREFETCH",
                     x.items && !x.ahead && loads && loads <= 3 && x.items * x.vector <= 16 &&
                         words * x.block <= PREFETCH_MOST);
    cuda_code_define(c, "TRIGGER", x.trigger);
    if (is_rows) {
        cuda_code_define(c, "FULL", line_is_full(&l, &x));
        cuda_code_define(c, "AHEAD", x.ahead);
        cuda_code_define(c, "RESIDENT", x.resident ? x.resident : 1);
    }
    const bool is_scalar = line_is_reduction(p) && (is_rows || joins);
    const emit_space after = line_space(&l, false, is_scalar ? 1 : x.vector), before = line_space(&l, true, x.vector);
    emit_text(&after, c->generated);
    if (p->prologue && !joins) emit_text(&before, c->generated);
    return true;
}

/* ---- bind ---- */

static void set_axis(struct line_axis *a, const view *x, const view *mean, const view *inverse, uint8_t axis)
{
    a->div = cuda_fast_div(x->dim[axis] > 1 ? x->dim[axis] : 1);
    a->x = x->stride[axis];
    a->mean = mean->dtype != SINTER_DTYPE_NONE ? mean->stride[axis] : 0;
    a->inverse = inverse->dtype != SINTER_DTYPE_NONE ? inverse->stride[axis] : 0;
}

/* Does layer_norm hand out its mean (1) or inverse deviation (2)? */
static bool has_stat(const problem *p, uint32_t i)
{
    return p->op == OP_layer_norm && !p->epilogue && i < p->count_out && p->out[i].dtype != SINTER_DTYPE_NONE;
}

static sinter_status bind_launch(env *e, const problem *p, const lines *l, const line_tactic *t, uint32_t index,
                                 const line_args *args, const view *in, const view *out, cuda_record *r)
{
    const bool joins = index == 1 && line_is_reduction(p), is_rows = t->form == FORM_ROWS;
    const int64_t blocks = joins ? cuda_ceil_div(args->outputs, JOIN_ACROSS) : line_blocks(t, args->inner, args->rows);
    const uint32_t shared = joins ? JOIN_ACROSS * JOIN_DOWN * line_state_size(p) : line_shared_bytes(p, t);
    const uint32_t block = joins ? JOIN_ACROSS * JOIN_DOWN : t->block;
    line_args *a;
    TRY(cuda_launch_begin(e, r, index, (uint64_t)blocks, 1, 1, block, shared, sizeof *a, &a));
    *a = *args;
    if (t->cluster) r->at[r->count - 1].cluster = t->splits;
    if (joins) a->rows = (small)args->outputs;
    CUDA_PATCH(r, a, x, PATCH_IN, 0);
    if (launches_of(t) > 1) CUDA_PATCH(r, a, part, PATCH_WORKSPACE, 0);
    if (has_stat(p, 1) && !joins) CUDA_PATCH(r, a, mean, PATCH_OUT, 1);
    if (has_stat(p, 2) && !joins) CUDA_PATCH(r, a, inverse, PATCH_OUT, 2);
    const bool is_scalar = line_is_reduction(p) && (is_rows || joins);
    const emit_space after = line_space(l, false, is_scalar ? 1 : t->vector), before = line_space(l, true, t->vector);
    TRY(emit_bind(e, &after, in, out, r));
    return p->prologue && !joins ? emit_bind(e, &before, in, out, r) : SINTER_OK;
}

static sinter_status line_bind(env *e, const problem *p, const tactic *t, const void *attrs, const view *in,
                               const view *out, void *record)
{
    const line_tactic x = TACTIC_AS(line_tactic, t);
    cuda_record *r = record;
    lines l;
    const char *why = line_problem(p, &x, &l);
    if (why) return FAIL(e, UNSUPPORTED, "%s: %s", op_at(p->op)->name, why);
    view own_in[LINES_OPERANDS], own_out[LINES_OPERANDS];
    for (uint32_t i = 0; i < p->count_in; i++) lines_view(&l, false, i, &in[i], &own_in[i]);
    for (uint32_t i = 0; i < p->count_out; i++) lines_view(&l, true, i, &out[i], &own_out[i]);
    const view *v = &own_in[0], none = { .dtype = SINTER_DTYPE_NONE };
    const view *mean = has_stat(p, 1) ? &own_out[1] : &none, *inverse = has_stat(p, 2) ? &own_out[2] : &none;
    line_args a = { .step = v->stride[l.inner] };
    int64_t length = 1, rows = 1, outputs = 1, outer = 1;
    uint32_t kept = 0, gone = 0;
    for (uint32_t i = 0; i < l.gone_count; i++) {
        (void)i64_mul(length, v->dim[l.gone[i]], &length);
        if (x.form == FORM_ROWS && l.gone[i] == l.inner) continue;
        (void)i64_mul(outer, v->dim[l.gone[i]], &outer);
        set_axis(&a.gone[gone++], v, mean, inverse, l.gone[i]);
    }
    for (uint32_t i = 0; i < l.kept_count; i++) {
        (void)i64_mul(outputs, v->dim[l.kept[i]], &outputs);
        set_axis(&a.kept[kept++], v, mean, inverse, l.kept[i]);
        if (x.form != FORM_ROWS && l.kept[i] == l.inner) continue;
        (void)i64_mul(rows, v->dim[l.kept[i]], &rows);
    }
    const int64_t inner = v->dim[l.inner];
    const int64_t count = x.form == FORM_ROWS ? outer * cuda_ceil_div(inner, x.vector) : length;
    if (length > INT32_MAX || outputs > INT32_MAX || count > INT32_MAX)
        return FAIL(e, UNSUPPORTED, "%s over %lld lines of %lld elements, more than 2^31 of one", op_at(p->op)->name,
                    (long long)outputs, (long long)length);
    const int64_t tiles =
        x.form == FORM_ROWS ? cuda_ceil_div(inner, x.vector) : cuda_ceil_div(inner, (int64_t)x.across * x.vector);
    a.runs = cuda_fast_div(tiles > 1 ? tiles : 1);
    a.splits = cuda_fast_div(x.splits);
    a.outputs = outputs;
    a.inner = (small)inner;
    a.count = (small)count;
    a.per = (small)cuda_ceil_div(count, x.splits);
    a.rows = (small)rows;
    a.elements = (small)length;
    a.each = cuda_fast_div(1);
    if (x.form == FORM_GROUPS) {
        const int64_t groups = ((const attrs_group_norm *)attrs)->groups, members = groups ? inner / groups : 0;
        if (members < 1 || length * members > INT32_MAX)
            return FAIL(e, UNSUPPORTED, "group_norm of %lld channels in %lld groups", (long long)inner,
                        (long long)groups);
        a.each = cuda_fast_div(members);
        a.elements = (small)(length * members);
    }
    if (p->op == OP_layer_norm) a.epsilon = ((const attrs_layer_norm *)attrs)->epsilon;
    if (p->op == OP_rms_norm) a.epsilon = ((const attrs_rms_norm *)attrs)->epsilon;
    if (p->op == OP_group_norm) a.epsilon = ((const attrs_group_norm *)attrs)->epsilon;
    if (p->op == OP_lp_norm) a.power = (double)((const attrs_lp_norm *)attrs)->p;
    for (uint32_t i = 0; i < launches_of(&x); i++) TRY(bind_launch(e, p, &l, &x, i, &a, own_in, own_out, r));
    return SINTER_OK;
}

/* ---- rows ---- */

static const char *reject_reduce(const problem *p, const kernel_target *t)
{
    (void)t;
    REJECT_UNLESS(line_is_reduction(p), "not a reduction");
    return reject(p);
}

static const char *reject_softmax(const problem *p, const kernel_target *t)
{
    (void)t;
    REJECT_UNLESS(p->op == OP_softmax || p->op == OP_log_softmax, "not a softmax");
    return reject(p);
}

static const char *reject_norm(const problem *p, const kernel_target *t)
{
    (void)t;
    REJECT_UNLESS(p->op == OP_layer_norm || p->op == OP_rms_norm || p->op == OP_group_norm || p->op == OP_lp_norm,
                  "not a normalisation");
    REJECT_UNLESS(p->op != OP_lp_norm || ((const attrs_lp_norm *)p->attrs)->p >= 1, "p is less than 1");
    return reject(p);
}

/* Statistics are taken about a line's first element, which all its blocks read: none may have written there. */
#define LINES_ROW(id, rejects, in_place)                                                                               \
    CUDA_ROW(id, 2, rejects, line_, .out_strides = STRIDES_ROWS, .is_in_place = in_place, .workspace = workspace,      \
             .lets_in = line_lets_in)
LINES_ROW(cuda_reduce, reject_reduce, true);
LINES_ROW(cuda_softmax, reject_softmax, true);
LINES_ROW(cuda_norm, reject_norm, false);
