/* SPDX-License-Identifier: Apache-2.0 */
/* quirks_product.c - matrix products: MatMul, Gemm, Einsum and com.microsoft's fused forms. */
#include "onnx/quirks.h"
#include "ops/einsum.h"
#include <float.h>
#include <string.h>

void convert_matmul(onnx_call *c)
{
    c->out[0] = build_matmul(&c->b, call_in(c, 0), call_in(c, 1), NULL);
}

/* The activation that a fused operator names, with the parameters p. Parameters that are not given have the defaults of
 * the activation's own operator. */
static ir_value_id activated(onnx_call *c, ir_value_id y, const char *what, const attr_reals *p)
{
    static const struct {
        const char *name;
        op_id op;
        uint32_t count;
        double initial[2];
    } table[] = {
        { "Relu", OP_relu, 0, { 0 } },
        { "Sigmoid", OP_sigmoid, 0, { 0 } },
        { "Tanh", OP_tanh, 0, { 0 } },
        { "Softplus", OP_softplus, 0, { 0 } },
        { "Softsign", OP_softsign, 0, { 0 } },
        { "HardSwish", OP_hardswish, 0, { 0 } },
        { "LeakyRelu", OP_prelu, 1, { (double)0.01f } },
        { "Elu", OP_elu, 1, { 1 } },
        { "Celu", OP_celu, 1, { 1 } },
        { "ThresholdedRelu", OP_thresholded_relu, 1, { 1 } },
        { "Selu", OP_selu, 2, { 1.67326319217681884765625, 1.05070102214813232421875 } },
        { "Clip", OP_clip, 2, { -(double)FLT_MAX, (double)FLT_MAX } },
        { "HardSigmoid", OP_hard_sigmoid, 2, { (double)0.2f, 0.5 } },
    };
    ir_value_id in[3] = { y };
    if (!*what) return y;
    for (uint32_t i = 0; i < COUNT_OF(table); i++) {
        if (strcmp(table[i].name, what) != 0) continue;
        for (uint32_t k = 0; k < table[i].count; k++)
            in[1 + k] = build_scalar_like(&c->b, y, k < p->count ? p->at[k] : table[i].initial[k]);
        return build_emit(&c->b, table[i].op, NULL, in, 1 + table[i].count);
    }
    REJECT(c, UNSUPPORTED, "attribute activation is '%s'", what);
    return 0;
}

/* The activation that attributes name, with its parameters; Selu's second one is gamma. */
static ir_value_id activated_by_name(onnx_call *c, ir_value_id y)
{
    const char *what = call_text(c, "activation", "");
    const char *const second = strcmp(what, "Selu") == 0 ? "activation_gamma" : "activation_beta";
    attr_reals p = { 0 };
    if (call_attr(c, "activation_alpha")) p.at[p.count++] = call_real(c, "activation_alpha", 0);
    if (p.count && call_attr(c, second)) p.at[p.count++] = call_real(c, second, 0);
    if (!p.count && call_attr(c, second)) REJECT(c, UNSUPPORTED, "%s without activation_alpha", second);
    return activated(c, y, what, &p);
}

void convert_gemm(onnx_call *c) /* arg 1: com.microsoft's FusedGemm, with an activation behind it */
{
    ir_value_id y = build_matmul(
        &c->b, call_in(c, 0), call_in(c, 1),
        &(attrs_matmul){ .trans_a = call_int(c, "transA", 0) != 0, .trans_b = call_int(c, "transB", 0) != 0 });
    const double alpha = call_real(c, "alpha", 1), beta = call_real(c, "beta", 1);
    ir_value_id bias = call_in(c, 2);
    if (call_rank(c, call_in(c, 0)) != 2 || call_rank(c, call_in(c, 1)) != 2)
        REJECT(c, INVALID_MODEL, "an operand is no matrix");
    if (alpha != 1) y = build_mul(&c->b, y, build_scalar_like(&c->b, y, alpha));
    if (bias && beta != 0) {
        if (beta != 1) bias = build_mul(&c->b, bias, build_scalar_like(&c->b, bias, beta));
        y = build_add(&c->b, y, bias);
    }
    c->out[0] = c->arg ? activated_by_name(c, y) : y;
}

static bool are_distinct(const char *labels, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (labels[i] == '.' || memchr(labels, labels[i], i)) return false;
    return true;
}

/* "bik,bkj->bij" and the like: matrices whose other axes are the same, in the same order. Returns their rank, or 0. */
static uint32_t einsum_matmul(const char *equation, bool *trans_a, bool *trans_b)
{
    const size_t length = strlen(equation), n = length >= 9 && length % 3 == 0 ? length / 3 - 1 : 0;
    const char *a = equation, *b = a + n + 1, *y = b + n + 2;
    if (n < 2 || a[n] != ',' || b[n] != '-' || b[n + 1] != '>' || memchr(a, ',', n) || memchr(b, ',', n)) return 0;
    if (!are_distinct(a, n) || !are_distinct(b, n) || !are_distinct(y, n)) return 0;
    if (memcmp(a, b, n - 2) != 0 || memcmp(a, y, n - 2) != 0) return 0;
    a += n - 2, b += n - 2, y += n - 2;
    *trans_a = y[0] == a[1];
    *trans_b = y[1] == b[0];
    const char summed_a = a[*trans_a ? 0 : 1], summed_b = b[*trans_b ? 1 : 0];
    const bool fits = y[0] == a[*trans_a ? 1 : 0] && y[1] == b[*trans_b ? 0 : 1] && summed_a == summed_b;
    return fits ? (uint32_t)n : 0;
}

/* An operand repeated along `axis` to the size that the other one has there; a product does not broadcast what it sums.
 */
static ir_value_id repeated(onnx_call *c, ir_value_id v, uint32_t axis, dim size)
{
    dim d[SINTER_RANK_MAX];
    const uint32_t rank = call_shape(c, v, d);
    if (d[axis] == size) return v;
    d[axis] = size;
    return build_expanded(&c->b, v, d, rank);
}

static void einsum_as_matmul(onnx_call *c, uint32_t rank, bool trans_a, bool trans_b)
{
    dim a[SINTER_RANK_MAX], b[SINTER_RANK_MAX], size;
    const uint32_t k_a = rank - (trans_a ? 2 : 1), k_b = rank - (trans_b ? 1 : 2);
    (void)call_shape(c, c->in[0], a);
    (void)call_shape(c, c->in[1], b);
    if (!infer_broadcast(c->b.g->dims, a[k_a], b[k_b], &size))
        REJECT(c, INVALID_MODEL, "the label that is summed has different sizes in the two operands");
    const ir_value_id second = repeated(c, c->in[1], k_b, size), first = repeated(c, c->in[0], k_a, size);
    c->out[0] = build_matmul(&c->b, first, second, &(attrs_matmul){ .trans_a = trans_a, .trans_b = trans_b });
}

static bool is_letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

/* What an axis of a product of two operands is: in both and the result, in the first or the second and the result, or
 * summed. */
enum { BOTH, FIRST, SECOND, SUMMED, ROLES };
typedef struct axes {
    uint32_t count[ROLES];
    int64_t at[2][ROLES][SINTER_RANK_MAX]; /* places in each operand */
    char label[ROLES][SINTER_RANK_MAX];
} axes;

static bool axes_find(const char *a, size_t n_a, const char *b, size_t n_b, const char *y, size_t n_y, axes *x)
{
    memset(x, 0, sizeof *x);
    if (n_a > SINTER_RANK_MAX || n_b > SINTER_RANK_MAX || n_y > SINTER_RANK_MAX) return false;
    if (!are_distinct(a, n_a) || !are_distinct(b, n_b) || !are_distinct(y, n_y)) return false;
    size_t seen = 0;
    for (size_t i = 0; i < n_a + n_b; i++) {
        const bool is_first = i < n_a;
        const char label = is_first ? a[i] : b[i - n_a];
        if (!is_letter(label)) return false;
        const char *in_a = memchr(a, label, n_a), *in_b = memchr(b, label, n_b), *in_y = memchr(y, label, n_y);
        if (in_a && in_b && !is_first) continue;
        if (!in_y && !(in_a && in_b)) return false; /* an operand's own sum */
        const int role = in_a && in_b ? (in_y ? BOTH : SUMMED) : in_a ? FIRST : SECOND;
        const uint32_t k = x->count[role]++;
        x->label[role][k] = label;
        if (in_a) x->at[0][role][k] = in_a - a;
        if (in_b) x->at[1][role][k] = in_b - b;
        seen += in_y != NULL;
    }
    return seen == n_y;
}

/* An operand with its axes in the order both, left, right, of which the last two are joined to one each. */
static ir_value_id joined(onnx_call *c, uint32_t input, const axes *x, int left, int right)
{
    const int roles[3] = { BOTH, left, right };
    dim d[SINTER_RANK_MAX], to[SINTER_RANK_MAX];
    int64_t perm[SINTER_RANK_MAX];
    (void)call_shape(c, c->in[input], d);
    uint32_t rank = 0, kept = 0;
    for (int i = 0; i < 3; i++) {
        dim all = dim_const(c->b.g->dims, 1);
        for (uint32_t k = 0; k < x->count[roles[i]]; k++) {
            const int64_t at = x->at[input][roles[i]][k];
            perm[rank++] = at;
            if (!i) to[kept++] = d[at];
            else all = dim_mul(c->b.g->dims, all, d[at]);
        }
        if (i) to[kept++] = all;
    }
    return build_shaped(&c->b, build_permuted(&c->b, c->in[input], perm, rank), to, kept);
}

/* An operand with its axes in the order of the result, and 1 where the result has an axis that the operand has not. */
static ir_value_id spread(onnx_call *c, uint32_t input, const char *labels, size_t count, const char *result)
{
    dim d[SINTER_RANK_MAX], to[SINTER_RANK_MAX];
    int64_t perm[SINTER_RANK_MAX];
    uint32_t rank = 0, kept = 0;
    (void)call_shape(c, c->in[input], d);
    for (const char *y = result; *y; y++) {
        const char *at = memchr(labels, *y, count);
        if (at) perm[kept++] = at - labels;
        to[rank++] = at ? d[at - labels] : dim_const(c->b.g->dims, 1);
    }
    return build_shaped(&c->b, build_permuted(&c->b, c->in[input], perm, kept), to, rank);
}

/* One operand of letters alone: a transpose, behind a sum over what the result has not. */
static bool einsum_as_transpose(onnx_call *c, const char *equation)
{
    const char *arrow = strchr(equation, '-');
    const size_t n_a = (size_t)(arrow - equation), n_y = strlen(arrow + 2);
    if (c->count_in != 1 || n_a > SINTER_RANK_MAX || call_rank(c, c->in[0]) != n_a) return false;
    if (!are_distinct(equation, n_a) || !are_distinct(arrow + 2, n_y)) return false;
    int64_t summed[SINTER_RANK_MAX], perm[SINTER_RANK_MAX];
    uint32_t gone = 0, kept = 0;
    for (size_t i = 0; i < n_a; i++) {
        const char *y = strchr(arrow + 2, equation[i]);
        if (!y) summed[gone++] = (int64_t)i;
        else perm[y - (arrow + 2)] = kept++;
    }
    if (kept != n_y) return false;
    ir_value_id v = c->in[0];
    if (gone) v = build_reduced(&c->b, reduce_kind_sum, v, summed, gone, false);
    c->out[0] = build_permuted(&c->b, v, perm, kept);
    return true;
}

/* Two operands of letters alone whose sizes agree: a product of matrices with views around it. Where nothing is summed,
 * elements are multiplied. */
static bool einsum_as_product(onnx_call *c, const char *equation)
{
    const char *comma = strchr(equation, ','), *arrow = strchr(equation, '-');
    if (c->count_in != 2 || !comma || !arrow || strchr(equation, '.') || strchr(comma + 1, ',')) return false;
    const size_t n_a = (size_t)(comma - equation), n_b = (size_t)(arrow - comma) - 1, n_y = strlen(arrow + 2);
    dim a[SINTER_RANK_MAX], b[SINTER_RANK_MAX], to[SINTER_RANK_MAX];
    axes x;
    if (!axes_find(equation, n_a, comma + 1, n_b, arrow + 2, n_y, &x)) return false;
    if (call_shape(c, c->in[0], a) != n_a || call_shape(c, c->in[1], b) != n_b) return false;
    if (x.count[BOTH] > SINTER_RANK_MAX - 2) return false;
    const dim one = dim_const(c->b.g->dims, 1);
    for (uint32_t k = 0; k < x.count[SUMMED]; k++)
        if (a[x.at[0][SUMMED][k]] != b[x.at[1][SUMMED][k]]) return false; /* one may broadcast */
    for (uint32_t k = 0; k < x.count[BOTH]; k++) {
        dim *of_a = &a[x.at[0][BOTH][k]], of_b = b[x.at[1][BOTH][k]];
        if (*of_a != of_b && *of_a != one && of_b != one) return false;
        if (*of_a == one) *of_a = of_b; /* what the result has */
    }
    if (!x.count[SUMMED]) {
        const ir_value_id first = spread(c, 0, equation, n_a, arrow + 2);
        const ir_value_id second = spread(c, 1, comma + 1, n_b, arrow + 2);
        c->out[0] = build_mul(&c->b, first, second);
        return true;
    }
    const ir_value_id left = joined(c, 0, &x, FIRST, SUMMED), right = joined(c, 1, &x, SUMMED, SECOND);
    const ir_value_id y = build_matmul(&c->b, left, right, &(attrs_matmul){ 0 });
    uint32_t rank = 0;
    int64_t perm[SINTER_RANK_MAX] = { 0 };
    for (int role = BOTH; role <= SECOND; role++)
        for (uint32_t k = 0; k < x.count[role]; k++, rank++) {
            const uint32_t input = role == SECOND;
            to[rank] = (input ? b : a)[x.at[input][role][k]];
            perm[strchr(arrow + 2, x.label[role][k]) - (arrow + 2)] = rank;
        }
    c->out[0] = build_permuted(&c->b, build_shaped(&c->b, y, to, rank), perm, rank);
    return true;
}

/* The equation with letters for the axes of its ellipses, which line up from the right; the equation itself where the
 * result has no ellipsis or letters do not suffice. `seen` counts the letters that it has. */
static const char *einsum_spelled(onnx_call *c, const char *equation, const uint32_t *seen)
{
    char letters[SINTER_RANK_MAX],
        *to = arena_alloc(&c->b.g->a, strlen(equation) + (c->count_in + 1) * SINTER_RANK_MAX, 1);
    uint32_t free_letters = 0, rank[EINSUM_IN_MAX], most = 0, term = 0;
    const char *arrow = strchr(equation, '-');
    for (unsigned ch = 'A'; ch <= 'z' && free_letters < SINTER_RANK_MAX; ch++)
        if (is_letter((char)ch) && !seen[ch]) letters[free_letters++] = (char)ch;
    if (!to || !strchr(arrow, '.') || c->count_in > EINSUM_IN_MAX) return equation;
    for (const char *p = equation; term < c->count_in; term++, p++) {
        uint32_t own = 0;
        for (; p < arrow && *p != ','; p++) own += is_letter(*p);
        const uint32_t all = call_rank(c, c->in[term]);
        if (all < own || (p == arrow) != (term + 1 == c->count_in)) return equation;
        rank[term] = all - own;
        if (rank[term] > most) most = rank[term];
    }
    if (most > free_letters) return equation;
    size_t n = 0;
    term = 0;
    for (const char *p = equation; *p; p++) {
        if (*p == ',') term++;
        if (*p == '.') {
            const uint32_t count = p > arrow ? most : rank[term];
            if (p[1] != '.' || p[2] != '.') return equation;
            memcpy(to + n, letters + (most - count), count);
            n += count;
            p += 2;
        } else {
            to[n++] = *p;
        }
    }
    to[n] = 0;
    return to;
}

/* The explicit form without spaces: without "->", the labels that occur once, in alphabetic order, after the ellipsis.
 */
void convert_einsum(onnx_call *c)
{
    const char *given = call_text(c, "equation", "");
    const size_t length = strlen(given);
    char *clean = arena_alloc(&c->b.g->a, size_add(length, 64), 1);
    uint32_t seen[128] = { 0 };
    size_t n = 0;
    bool has_arrow = false, has_dots = false;
    if (!clean) {
        c->b.status = FAIL_MEMORY(c->e, "an equation");
        return;
    }
    for (size_t i = 0; i < length; i++) {
        const char ch = given[i];
        if (ch == ' ') continue;
        if (!is_letter(ch) && ch != ',' && ch != '.' && ch != '-' && ch != '>')
            REJECT(c, INVALID_MODEL, "equation '%s'", given);
        if (is_letter(ch)) seen[(unsigned char)ch]++;
        has_arrow = has_arrow || ch == '>';
        has_dots = has_dots || ch == '.';
        clean[n++] = ch;
    }
    if (!has_arrow) {
        memcpy(clean + n, "->", 2);
        n += 2;
        if (has_dots) {
            memcpy(clean + n, "...", 3);
            n += 3;
        }
        for (unsigned ch = 'A'; ch <= 'z'; ch++)
            if (seen[ch] == 1) clean[n++] = (char)ch;
    }
    clean[n] = 0;
    attrs_einsum *a = DEFAULTS(einsum);
    a->equation = clean;
    if (!c->count_in) REJECT(c, INVALID_MODEL, "no inputs");
    bool trans_a, trans_b;
    const char *spelled = has_dots ? einsum_spelled(c, clean, seen) : clean;
    const uint32_t rank = c->count_in == 2 ? einsum_matmul(spelled, &trans_a, &trans_b) : 0;
    if (rank && call_rank(c, c->in[0]) == rank && call_rank(c, c->in[1]) == rank) {
        einsum_as_matmul(c, rank, trans_a, trans_b);
        return;
    }
    if (!einsum_as_transpose(c, spelled) && !einsum_as_product(c, spelled))
        c->out[0] = build_einsum(&c->b, c->in, c->count_in, a);
}

/* The first axis behind those of the batch. */
static ir_value_id batch_turned(onnx_call *c, ir_value_id x)
{
    int64_t perm[SINTER_RANK_MAX];
    const uint32_t rank = call_rank(c, x);
    if (rank < 3) return x;
    for (uint32_t i = 0; i < rank; i++) perm[i] = i + 2 < rank ? i + 1 : i + 2 == rank ? 0 : i;
    return build_permuted(&c->b, x, perm, rank);
}

void convert_fused_matmul(onnx_call *c) /* arg 1: FusedMatMulActivation */
{
    ir_value_id in[2] = { call_in(c, 0), call_in(c, 1) };
    if (call_int(c, "transBatchA", 0) && in[0]) in[0] = batch_turned(c, in[0]);
    if (call_int(c, "transBatchB", 0) && in[1]) in[1] = batch_turned(c, in[1]);
    ir_value_id y = build_matmul(
        &c->b, in[0], in[1],
        &(attrs_matmul){ .trans_a = call_int(c, "transA", 0) != 0, .trans_b = call_int(c, "transB", 0) != 0 });
    const double alpha = call_real(c, "alpha", 1);
    if (alpha != 1) y = build_mul(&c->b, y, build_scalar_like(&c->b, y, alpha));
    c->out[0] = c->arg ? activated_by_name(c, y) : y;
}

void convert_fused_conv(onnx_call *c)
{
    ir_value_id y = quirk_bias(c, quirk_conv(c, call_in(c, 0), call_in(c, 1)), call_in(c, 2));
    if (call_in(c, 3)) y = build_add(&c->b, y, call_in(c, 3));
    attr_reals p;
    call_reals(c, "activation_params", &p);
    c->out[0] = activated(c, y, call_text(c, "activation", ""), &p);
}

/* x + skip (+ bias), then a norm: LayerNormalization, or RMS where arg says so. The sum is output 3. */
void convert_skip_norm(onnx_call *c)
{
    const bool rms = c->arg != 0;
    const ir_value_id bias = call_in(c, rms ? 3 : 4);
    ir_value_id sum = build_add(&c->b, call_in(c, 0), call_in(c, 1)), out[1] = { 0 };
    if (bias) sum = build_add(&c->b, sum, bias);
    if (c->b.status || !call_rank(c, sum)) return;
    const int64_t axis = (int64_t)call_rank(c, sum) - 1;
    const double epsilon = call_real(c, "epsilon", (double)1e-12f);
    if (rms) out[0] = quirk_rms_norm(c, sum, call_in(c, 2), axis, epsilon);
    else quirk_layer_norm(c, sum, call_in(c, 2), call_in(c, 3), axis, epsilon, 1, out);
    c->out[0] = out[0];
    if (c->count_out > 3) c->out[3] = sum;
}

/* Input i, which arg 1 has as numbers of 8 bits: their scales are inputs 8 on, their zero points inputs 13 on. index:
 * the rows that are taken, before they are dequantised; 0: all. */
static ir_value_id embedding(onnx_call *c, uint32_t i, ir_value_id index)
{
    ir_value_id v = call_in(c, i);
    if (index) v = build_gather(&c->b, v, index, NULL);
    if (!c->arg || c->b.status) return v;
    const ir_value_id zero = quirk_scalar_in(c, call_in(c, i + 11)), scale = quirk_scalar_in(c, call_in(c, i + 6));
    return quirk_dequantize(c, v, scale, zero);
}

/* com.microsoft's: words, positions and segments looked up, summed and normalised. The second output counts the words
 * of each of the batch, by the mask. */
void convert_embed_layer_norm(onnx_call *c) /* arg 1: QEmbedLayerNormalization */
{
    static const int64_t words = 1;
    for (uint32_t i = 0; i < 7; i++)
        if (!call_in(c, i) && i != 1 && i != 4) REJECT(c, INVALID_MODEL, "input %u is missing", i);
    for (uint32_t i = 2; i < 7 && c->arg; i++)
        if (call_in(c, i) && (!call_in(c, i + 6) || !call_in(c, i + 11)))
            REJECT(c, INVALID_MODEL, "the scale or the zero point of input %u is missing", i);
    if (!call_in(c, 1) != !call_in(c, 4)) REJECT(c, INVALID_MODEL, "segments and their embedding do not come together");
    if (c->b.status) return;
    if (call_rank(c, call_in(c, 0)) != 2) REJECT(c, INVALID_MODEL, "words of rank %u", call_rank(c, call_in(c, 0)));
    const dim batch = call_dim(c, call_in(c, 0), 0), length = call_dim(c, call_in(c, 0), 1);
    const ir_value_id place = call_in(c, 8) && !c->arg ? call_in(c, 8) : build_iota(&c->b, length);
    ir_value_id sum = embedding(c, 3, place);
    sum = build_add(&c->b, embedding(c, 2, call_in(c, 0)), sum);
    if (call_in(c, 1)) sum = build_add(&c->b, sum, embedding(c, 4, call_in(c, 1)));
    if (c->b.status) return;
    ir_value_id out[3] = { 0 };
    const ir_value_id scale = embedding(c, 5, 0), bias = embedding(c, 6, 0);
    if (c->b.status) return;
    quirk_layer_norm(c, sum, scale, bias, 2, call_real(c, "epsilon", (double)1e-12f), 1, out);
    c->out[0] = out[0];
    if (c->count_out > 1)
        c->out[1] = call_in(c, 7) ? build_reduced(&c->b, reduce_kind_sum, call_in(c, 7), &words, 1, false)
                                  : build_expanded(&c->b, build_scalar(&c->b, SINTER_DTYPE_I32, 0), &batch, 1);
    if (c->count_out > 2) c->out[2] = sum;
}
