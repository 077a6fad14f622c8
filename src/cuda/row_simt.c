/* SPDX-License-Identifier: Apache-2.0 */
/* row_simt.c - contractions without tensor cores (device/simt.cu): every type, every layout, any strides.
 *
 * f32 with constant filters and channels-last images is the fast case: operands are copied asynchronously as they lie.
 * Constants are packed as [batch][depth][line] in the type of sums. Where tiles are too few for the chip, depth is
 * split over the blocks of a cluster, or through the workspace with a second launch that adds and finishes. */
#include "cuda/row_simt.h"
#include "cuda/cuda_emit.h"
#include "cuda/cuda_kernels.h"

#include <stddef.h>

_Static_assert((int)SIMT_AXES == (int)CONTRACT_AXES && (int)SIMT_PHASES == (int)CONTRACT_PHASES &&
                   (int)SIMT_SPATIAL == (int)CONTRACT_SPATIAL,
               "axes of contractions and of their kernel");

static bool has_zero(const problem *p)
{
    return (p->op == OP_matmul_integer || p->op == OP_conv_integer) && (product_zero_of(p, 2) || product_zero_of(p, 3));
}

static sinter_dtype sum_of(const problem *p)
{
    const sinter_dtype t = emit_input_type(p);
    if (t == SINTER_DTYPE_F64) return t;
    if (dtype_is_float(t)) return SINTER_DTYPE_F32;
    const bool is_narrow = p->op == OP_matmul_integer || p->op == OP_conv_integer || t == SINTER_DTYPE_I32;
    return is_narrow ? SINTER_DTYPE_I32 : SINTER_DTYPE_I64;
}

static bool is_multiple(dim_range d, int64_t v)
{
    return d.min == d.max ? d.min % v == 0 : d.divisor % v == 0;
}

/* How an operand is read: its adjacent elements are of the last axis of depth, or of its last line axis. */
static void side_set(const problem *p, const simt_shape *s, simt_side *x)
{
    const problem_operand *o = &p->in[x->input];
    const contract *c = &s->c;
    x->is_made = p->prologue && x->input == 0;
    x->is_const = o->is_const && !x->is_made;
    x->is_window = c->is_window && x->input == 0;
    x->is_packed = x->is_const && !o->is_strided && !s->has_zero;
    for (uint32_t i = 0; i < o->rank; i++) x->is_packed = x->is_packed && problem_dim_is_static(o->dim[i]);
    for (uint32_t i = 0; i < c->count[CONTRACT_DEPTH]; i++)
        x->is_packed = x->is_packed && c->axis[CONTRACT_DEPTH][i].has[x->input];
    x->is_packed = x->is_packed && !x->is_window;
    x->mode = MODE_ELEMENT;
    if (x->is_packed) {
        x->mode = MODE_ASYNC;
        return;
    }
    int inner = -1;
    for (uint32_t k = o->rank; k-- > 0 && inner < 0;)
        if (o->dim[o->order[k]].min != 1 || o->dim[o->order[k]].max != 1) inner = o->order[k];
    const contract_axis *depth = &c->axis[CONTRACT_DEPTH][c->count[CONTRACT_DEPTH] - 1],
                        *line = &c->axis[x->role][c->count[x->role] - 1];
    if (inner < 0) return;
    x->is_along = depth->of[x->input] == inner;
    const contract_axis *along = x->is_along ? depth : line;
    if (along->of[x->input] != inner || (!x->is_along && x->is_window) || s->has_zero) return;
    if (x->is_made) {
        if (!o->is_gapped && is_multiple(along->range, 4)) x->mode = MODE_VECTOR;
        return;
    }
    const uint32_t width = 128 / sinter_dtype_bits(o->dtype);
    if (width > 8 || o->is_gapped || cuda_operand_vector(o, width) != width || !is_multiple(along->range, width))
        return;
    const bool is_rows = x == &s->side[0];
    x->mode = o->dtype == s->sum && (is_rows || !x->is_along) ? MODE_ASYNC : MODE_VECTOR;
}

static const char *simt_shape_of(const problem *p, const void *attrs, const view *in, const view *out, simt_shape *s)
{
    const char *why = contract_of(p, attrs, in, out, &s->c);
    if (why) return why;
    s->has_zero = has_zero(p);
    s->sum = sum_of(p);
    s->sum_size = sinter_dtype_bits(s->sum) / 8;
    s->acc = s->sum;
    s->rank_made = p->prologue ? p->in[0].rank : 0;
    for (uint32_t i = 0; p->epilogue && i < p->epilogue->count; i++)
        if (p->epilogue->at[i].op == EXPR_ACC && dtype_is_int(s->sum)) s->acc = (sinter_dtype)p->epilogue->at[i].dtype;
    const contract *c = &s->c;
    for (uint32_t k = 0; k < 2; k++) {
        s->side[k] = (simt_side){ .input = k ^ !c->is_swapped ^ 1u };
        s->side[k].role = s->side[k].input ? CONTRACT_RIGHT : CONTRACT_LEFT;
    }
    for (uint32_t k = 0; k < 2; k++) side_set(p, s, &s->side[k]);
    const contract_role role = s->side[1].role;
    const contract_axis *last = &c->axis[role][c->count[role] - 1];
    s->is_quad = c->inner >= 0 && last->out == c->inner && last->out_step == 1 &&
                 (c->count[role] == 1 || is_multiple(last->range, 4));
    for (uint32_t i = 0; i < c->count[CONTRACT_BATCH]; i++) {
        const contract_axis *b = &c->axis[CONTRACT_BATCH][i];
        if (b->out == c->inner && b->out >= 0 && b->out_step % 4) s->is_quad = false;
    }
    return NULL;
}

const char *simt_shape_at(const problem *p, contract_at at, simt_shape *s)
{
    view in[4], out;
    contract_views(p, at, in, &out);
    return simt_shape_of(p, p->attrs, in, &out, s);
}

static void space_of(const problem *p, const simt_shape *s, emit_space *space)
{
    emit_space_of(p, space);
    space->prefix = "epi";
    if (s->c.inner >= 0) space->inner = (uint8_t)s->c.inner;
    space->width = s->is_quad ? 4 : 1;
}

static const simt_side *made_side(const simt_shape *s)
{
    return s->side[0].is_made ? &s->side[0] : s->side[1].is_made ? &s->side[1] : NULL;
}

static void prologue_space(const problem *p, const simt_shape *s, emit_space *space)
{
    uint8_t inner = 0;
    for (uint32_t k = 0; k < p->in[0].rank; k++)
        if (p->in[0].dim[p->in[0].order[k]].max != 1) inner = p->in[0].order[k];
    emit_space_of_prologue(p, inner, made_side(s)->mode == MODE_VECTOR ? 4 : 1, s->sum, space);
}

static bool is_served(sinter_dtype t)
{
    return t == SINTER_DTYPE_NONE || t == SINTER_DTYPE_F64 || t == SINTER_DTYPE_F32 || t == SINTER_DTYPE_F16 ||
           t == SINTER_DTYPE_BF16 || (dtype_is_int(t) && sinter_dtype_bits(t) >= 8);
}

static const char *reject(const problem *p, const kernel_target *t)
{
    (void)t;
    REJECT_UNLESS(p->op == OP_matmul || p->op == OP_matmul_integer || p->op == OP_conv || p->op == OP_conv_integer ||
                      p->op == OP_conv_transpose || p->op == OP_einsum,
                  "no contraction");
    REJECT_UNLESS(!p->prologue || (p->op != OP_conv_transpose && p->op != OP_einsum), "has a prologue");
    for (uint32_t i = 0; i < p->count_anchor; i++)
        REJECT_UNLESS(is_served(i ? p->in[i].dtype : emit_input_type(p)), "a type that the kernel has no word for");
    simt_shape s;
    const char *why = simt_shape_at(p, CONTRACT_OPT, &s);
    if (why) return why;
    REJECT_UNLESS(p->op != OP_conv_transpose || s.side[0].is_packed || s.side[1].is_packed, "the filter is not packed");
    emit_space space;
    if (p->prologue) {
        prologue_space(p, &s, &space);
        why = emit_reject_prologue(&space);
        if (why) return why;
    }
    space_of(p, &s, &space);
    return emit_reject(&space);
}

/* ---- packing: [batch][depth][lines rounded up to 4] ---- */

static const simt_side *side_of(const simt_shape *s, uint32_t input)
{
    return input > 1 ? NULL : s->side[0].input == input ? &s->side[0] : &s->side[1];
}

static int64_t packed_batch(const simt_shape *s, uint32_t input)
{
    int64_t n = 1;
    for (uint32_t i = 0; i < s->c.count[CONTRACT_BATCH]; i++)
        if (s->c.axis[CONTRACT_BATCH][i].has[input]) n *= s->c.axis[CONTRACT_BATCH][i].size;
    return n;
}

static size_t pack_size(const problem *p, const tactic *t, uint32_t input)
{
    (void)t;
    simt_shape s;
    if (input > 1 || simt_shape_at(p, CONTRACT_OPT, &s)) return 0;
    const simt_side *x = side_of(&s, input);
    if (!x->is_packed) return 0;
    size_t size = size_mul(s.sum_size, (size_t)packed_batch(&s, input));
    size = size_mul(size, (size_t)contract_size(&s.c, CONTRACT_DEPTH));
    size = size_mul(size, (size_t)simt_pitch(contract_size(&s.c, x->role)));
    return size ? size : 16;
}

/* The tap of a transposed filter that a step of depth stands for in a phase; false: there is none. */
static bool tap_offset(const contract *c, const int64_t *phase, const int64_t *step, const view *src, int64_t *offset)
{
    for (uint32_t i = 0; i < c->phases; i++) {
        const int64_t first = c->tap_first[i][phase[i]], tap = first + step[i] * c->tap_by[i];
        if (first < 0 || tap >= c->taps[i]) return false;
        *offset += tap * src->stride[2 + i];
    }
    return true;
}

static void pack(const problem *p, const tactic *t, uint32_t input, const view *src, void *dst)
{
    (void)t;
    view in[4], out;
    simt_shape s;
    contract_views(p, CONTRACT_OPT, in, &out);
    in[input] = *src;
    if (simt_shape_of(p, p->attrs, in, &out, &s)) return;
    const contract *c = &s.c;
    const simt_side *x = side_of(&s, input);
    const int64_t depth = contract_size(c, CONTRACT_DEPTH), lines = contract_size(c, x->role),
                  pitch = simt_pitch(lines), batches = packed_batch(&s, input);
    view to = { .dtype = s.sum, .rank = 1, .dim = { batches * depth * pitch }, .stride = { 1 }, .data = dst };
    memset(dst, 0, pack_size(p, t, input));
    for (int64_t b = 0; b < batches; b++)
        for (int64_t l = 0; l < lines; l++) {
            int64_t at_b[CONTRACT_AXES], at_k[CONTRACT_AXES], at_l[CONTRACT_AXES];
            const int64_t base = contract_offset(c, CONTRACT_BATCH, input, true, b, at_b) +
                                 contract_offset(c, x->role, input, false, l, at_l);
            for (int64_t k = 0; k < depth; k++) {
                int64_t from = base + contract_offset(c, CONTRACT_DEPTH, input, false, k, at_k);
                if (c->phases && !tap_offset(c, at_b, at_k, src, &from)) continue;
                const int64_t at = (b * depth + k) * pitch + l;
                if (dtype_is_float(s.sum)) view_store_f64(&to, at, view_load_f64(src, from));
                else view_store_i64(&to, at, view_load_i64(src, from));
            }
        }
}

/* ---- code ---- */

enum { REDUCE_THREADS = 128 };

static bool simt_code(const problem *p, const tactic *t, const kernel_target *target, uint32_t index, cuda_code *c)
{
    const simt_tactic x = TACTIC_AS(simt_tactic, t);
    simt_shape s;
    if (index > (x.mode == SPLIT_WORKSPACE ? 1u : 0u) || simt_shape_at(p, CONTRACT_OPT, &s)) return false;
    if (x.mode == SPLIT_CLUSTER && target->isa < 90) return false;
    const simt_tile *e = simt_tile_at(x.tile);
    const contract *k = &s.c;
    c->source = index ? "simt_reduce.cu" : "simt.cu";
    c->entry = index ? "simt_reduce" : "simt";
    const uint32_t instructions = p->epilogue ? p->epilogue->count : 0;
    c->may_spill = instructions > 8;
    cuda_code_define(c, "BATCH_AXES", k->count[CONTRACT_BATCH]);
    cuda_code_define(c, "ROW_AXES", k->count[s.side[0].role]);
    cuda_code_define(c, "COL_AXES", k->count[s.side[1].role]);
    cuda_code_define(c, "SPATIAL", k->spatial);
    cuda_code_define(c, "PHASES", k->phases);
    cuda_code_define(c, "EPI_V", s.is_quad ? 4 : 1);
    if (index) {
        cuda_code_define(c, "THREADS", REDUCE_THREADS);
    } else {
        cuda_code_define(c, "TILE_M", e->m);
        cuda_code_define(c, "TILE_N", e->n);
        cuda_code_define(c, "TILE_K", e->k);
        cuda_code_define(c, "PER_M", e->per_m);
        cuda_code_define(c, "PER_N", e->per_n);
        cuda_code_define(c, "STAGES", simt_stages(&s, e));
        cuda_code_define(c, "SPLIT", x.mode);
        cuda_code_define(c, "TRIGGER", x.trigger);
        /* Phases along three axes take registers of their own. */
        const bool is_light = s.sum_size == 4 && instructions <= 8 && !p->prologue && k->phases < 3;
        cuda_code_define(c, "MIN_BLOCKS", is_light ? 2 : 1);
        cuda_code_define(c, "PRO_SIDE", s.side[0].is_made ? 1 : s.side[1].is_made ? 2 : 0);
        cuda_code_define(c, "DEPTH_AXES", k->count[CONTRACT_DEPTH]);
        cuda_code_define(c, "HAS_ZERO", s.has_zero);
        static const char *const name[2][5] = { { "P_MODE", "P_ALONG", "P_WINDOW", "P_FLAT", "P_CONST" },
                                                { "Q_MODE", "Q_ALONG", "Q_WINDOW", "Q_FLAT", "Q_CONST" } };
        for (uint32_t i = 0; i < 2; i++) {
            const simt_side *d = &s.side[i];
            cuda_code_define(c, name[i][0], d->mode);
            cuda_code_define(c, name[i][1], d->is_along);
            cuda_code_define(c, name[i][2], d->is_window);
            cuda_code_define(c, name[i][3], d->is_packed);
            cuda_code_define(c, name[i][4], d->is_const && !s.has_zero);
        }
    }
    emit_space space;
    space_of(p, &s, &space);
    emit_text(&space, c->generated);
    text *to = c->generated;
    text_printf(to, "typedef %s sum;\ntypedef %s acc_type;\n", emit_stored(s.sum), emit_stored(s.acc));
    for (uint32_t i = 0; i < 2; i++) {
        const simt_side *d = &s.side[i];
        const sinter_dtype type = d->is_packed ? s.sum : d->input ? p->in[d->input].dtype : emit_input_type(p);
        text_printf(to, "typedef %s type_%s;\n", emit_stored(type), i ? "q" : "p");
    }
    if (p->prologue && !index) {
        emit_space before;
        prologue_space(p, &s, &before);
        emit_text(&before, to);
        contract_text_prologue(to, k, made_side(&s)->role);
        c->may_spill = c->may_spill || p->prologue->count > 8;
    }
    text_printf(to, "enum { INNER = %u };\n", space.inner);
    contract_text_outs(to, k, s.side[0].role, s.side[1].role);
    return true;
}

/* ---- binding ---- */

static void operand_bind(const simt_shape *s, uint32_t k, struct simt_operand *to)
{
    const contract *c = &s->c;
    const simt_side *x = &s->side[k];
    const uint32_t i = x->input;
    int64_t packed = 0;
    if (x->is_packed) {
        to->depth_flat = simt_pitch(contract_size(c, x->role));
        packed = to->depth_flat * contract_size(c, CONTRACT_DEPTH);
    }
    for (uint32_t a = c->count[CONTRACT_BATCH]; a-- > 0;) {
        const contract_axis *b = &c->axis[CONTRACT_BATCH][a];
        to->batch[a] = b->stride[i];
        to->zero_batch[a] = b->zero[i];
        if (!x->is_packed) continue;
        to->batch[a] = b->has[i] ? packed : 0;
        if (b->has[i]) packed *= b->size;
    }
    contract_steps(c, x->role, i, to);
    for (uint32_t a = 0; a < c->count[x->role]; a++) to->zero_line[a] = c->axis[x->role][a].zero[i];
}

static void window_bind(const contract *c, struct simt_args *a)
{
    for (uint32_t i = 0; i < c->spatial; i++) {
        a->in_size[i] = (small)c->in[i];
        a->out_size[i] = (small)c->out[i];
        a->line_step[i] = (small)c->line_step[i];
        a->tap_step[i] = (small)c->tap_step[i];
        a->in_stride[i] = c->in_stride[i];
        for (uint32_t q = 0; q < CONTRACT_PHASES; q++) a->start[i][q] = (small)c->start[i][q];
    }
}

static sinter_status launch_bind(env *e, const problem *p, const simt_shape *s, const struct simt_args *args,
                                 bool has_part, uint64_t blocks, uint32_t block, uint32_t shared, const view *in,
                                 const view *out, cuda_record *r)
{
    struct simt_args *a;
    TRY(cuda_launch_begin(e, r, r->count, blocks, 1, 1, block, shared, sizeof *a, &a));
    *a = *args;
    if (!s->side[0].is_made) CUDA_PATCH(r, a, p.data, PATCH_IN, s->side[0].input);
    if (!s->side[1].is_made) CUDA_PATCH(r, a, q.data, PATCH_IN, s->side[1].input);
    for (uint32_t k = 0; k < 2 && s->has_zero; k++) {
        const uint32_t zero = 2 + s->side[k].input;
        if (zero >= p->count_anchor || p->in[zero].dtype == SINTER_DTYPE_NONE) continue;
        if (k) CUDA_PATCH(r, a, q.zero, PATCH_IN, zero);
        else CUDA_PATCH(r, a, p.zero, PATCH_IN, zero);
    }
    if (has_part) CUDA_PATCH(r, a, part, PATCH_WORKSPACE, 0);
    emit_space space;
    space_of(p, s, &space);
    TRY(emit_bind(e, &space, in, out, r));
    if (!p->prologue || r->count > 1) return SINTER_OK; /* a second launch adds what the first made */
    prologue_space(p, s, &space);
    return emit_bind(e, &space, in, out, r);
}

static sinter_status simt_bind(env *e, const problem *p, const tactic *t, const void *attrs, const view *in,
                               const view *out, void *record)
{
    const simt_tactic x = TACTIC_AS(simt_tactic, t);
    cuda_record *r = record;
    simt_shape s;
    const char *why = simt_shape_of(p, attrs, in, out, &s);
    if (why) return FAIL(e, UNSUPPORTED, "a contraction cannot be launched: %s", why);
    const contract *c = &s.c;
    const simt_tile *tl = simt_tile_at(x.tile);
    struct simt_args a = { .split = cuda_fast_div(x.split) };
    TRY(contract_sizes(e, c, s.side[0].role, s.side[1].role, &a));
    operand_bind(&s, 0, &a.p);
    operand_bind(&s, 1, &a.q);
    if (c->is_window) window_bind(c, &a);
    if (p->prologue) contract_prologue(c, made_side(&s)->role, &a.pro);
    const int64_t row_tiles = cuda_ceil_div(a.row.count, tl->m), col_tiles = cuda_ceil_div(a.col.count, tl->n);
    a.row_tiles = cuda_fast_div(row_tiles);
    a.col_tiles = cuda_fast_div(col_tiles);
    a.col_pitch = (small)simt_pitch(a.col.count);
    a.quads = cuda_fast_div(a.col_pitch / 4);
    a.rows = cuda_fast_div(a.row.count);
    int64_t blocks = row_tiles, quads = a.col_pitch / 4;
    const bool is_small = i64_mul(blocks, col_tiles, &blocks) && i64_mul(blocks, a.batch.count, &blocks) &&
                          i64_mul(blocks, x.split, &blocks) && blocks <= INT32_MAX &&
                          i64_mul(quads, a.row.count, &quads) && i64_mul(quads, a.batch.count, &quads) &&
                          (x.mode != SPLIT_WORKSPACE || quads <= INT32_MAX - REDUCE_THREADS);
    if (!is_small) return FAIL(e, UNSUPPORTED, "a contraction of more than 2147483647 blocks");
    const bool has_part = x.mode == SPLIT_WORKSPACE;
    TRY(launch_bind(e, p, &s, &a, has_part, (uint64_t)blocks, simt_threads(tl), simt_shared(&s, x), in, out, r));
    if (x.mode == SPLIT_CLUSTER) r->at[0].cluster = x.split;
    if (!has_part) return SINTER_OK;
    return launch_bind(e, p, &s, &a, true, (uint64_t)cuda_ceil_div(quads, REDUCE_THREADS), REDUCE_THREADS, 0, in, out,
                       r);
}

CUDA_ROW(cuda_simt, 1, reject, simt_, .out_strides = STRIDES_ROWS, .workspace = simt_workspace, .pack_size = pack_size,
         .pack = pack);
