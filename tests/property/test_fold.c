/* SPDX-License-Identifier: Apache-2.0 */
/* test_fold.c - weights that are computed along rows while a graph is built have the bits that the reference gives.
 *
 * Random shapes, types and scales, one for all or one along an axis; numbers that are infinite, no numbers, -0,
 * denormal, ties between two codes, or beyond all of them. */
#include "ir/build.h"
#include "test.h"

#include <math.h>

enum { GRAPHS = 3000, RANK = 3, SIZE = 9, ROOM = SIZE * SIZE * SIZE };

typedef struct rig {
    ir_graph *g;
    ir_builder b;
    uint64_t seed;
    int64_t dim[RANK];
    uint32_t rank;
} rig;

static uint32_t below(rig *r, uint32_t limit)
{
    return (uint32_t)test_below(&r->seed, limit);
}

static double number(rig *r)
{
    static const double special[] = { 0,     -0.0,  INFINITY, -INFINITY, NAN,   1e-40,
                                      -6e-8, 65520, 3e38,     -3.4e38,   127.5, -128.5 };
    if (!below(r, 6)) return special[below(r, COUNT_OF(special))];
    const double unit = below(r, 2) ? 0.5 : 1.0 / 4096;
    return ((double)below(r, 4096) - 2048) * unit * (below(r, 4) ? 1 : 1 + 1.0 / 2048);
}

/* A constant of the shape, or of one of its axes, or of one number. */
static ir_value_id constant(rig *r, sinter_dtype type, bool is_whole, bool is_scale)
{
    const uint32_t axis = below(r, r->rank + 1);
    int64_t d[RANK];
    for (uint32_t i = 0; i < r->rank; i++) d[i] = is_whole || i == axis ? r->dim[i] : 1;
    view v;
    void *data = arena_alloc(&r->g->a, ROOM * 4, 16);
    if (!CHECK(data && view_init(&v, type, r->rank, d, data))) return 0;
    const bool is_float = type == SINTER_DTYPE_F32 || type == SINTER_DTYPE_F16 || type == SINTER_DTYPE_BF16;
    for (int64_t i = 0; i < view_count(&v); i++) {
        if (is_scale) view_store_f64(&v, i, ldexp(1 + below(r, 7), (int)below(r, 6) - 5));
        else if (is_float) view_store_f64(&v, i, number(r));
        else view_store_i64(&v, i, (int64_t)below(r, 256) - 128);
    }
    return build_const(&r->b, "c", &v);
}

static ir_value_id computed(rig *r)
{
    static const sinter_dtype codes[] = {
        SINTER_DTYPE_I8, SINTER_DTYPE_U8, SINTER_DTYPE_I4,       SINTER_DTYPE_U4,
        SINTER_DTYPE_I2, SINTER_DTYPE_U2, SINTER_DTYPE_F8E4M3FN, SINTER_DTYPE_F8E5M2
    };
    static const sinter_dtype wide[] = { SINTER_DTYPE_F32, SINTER_DTYPE_F16, SINTER_DTYPE_BF16 };
    const uint32_t kind = below(r, 5);
    if (kind == 4) {
        const sinter_dtype type = codes[below(r, COUNT_OF(codes))], to = wide[below(r, 3)];
        const ir_value_id x = constant(r, type, true, false), scale = constant(r, to, false, true);
        return build_dequantize(&r->b, x, scale, constant(r, type, false, false), to);
    }
    const ir_value_id x = constant(r, SINTER_DTYPE_F32, true, false);
    if (kind == 0) return build_abs(&r->b, x);
    if (kind == 1) return build_mul(&r->b, x, constant(r, SINTER_DTYPE_F32, below(r, 2), false));
    if (kind == 2) return build_cast(&r->b, x, wide[1 + below(r, 2)]);
    const sinter_dtype type = codes[below(r, 2)];
    const ir_value_id scale = constant(r, SINTER_DTYPE_F32, false, true);
    return build_quantize(&r->b, x, scale, constant(r, type, false, false), type);
}

/* The result of a node as its reference computes it. */
static bool reference(rig *r, env *e, ir_value_id v, view *out)
{
    const ir_node *n = ir_node_at(r->g, ir_value_at(r->g, v)->producer);
    view in[3];
    for (uint32_t i = 0; i < n->count_in; i++)
        if (!ir_const_view(r->g, n->in[i], &in[i])) return false;
    ref_call c = { .e = e,
                   .op = n->op,
                   .attrs = n->attrs,
                   .count_in = n->count_in,
                   .count_out = 1,
                   .in = in,
                   .out = out,
                   .scratch = &r->g->a };
    return op_reference(&c) == SINTER_OK;
}

static void rows_equal_the_reference(void)
{
    uint32_t compared = 0;
    uint64_t seed = 1;
    for (uint32_t graph = 0; graph < GRAPHS; graph++) {
        sinter_error error;
        env e;
        rig r = { .seed = seed += 77 };
        env_init(&e, NULL, &error);
        if (!CHECK(ir_graph_create(&e, &r.g) == SINTER_OK)) return;
        r.b = (ir_builder){ .g = r.g, .region = IR_MAIN };
        r.rank = below(&r, RANK + 1);
        for (uint32_t i = 0; i < r.rank; i++) r.dim[i] = below(&r, 20) ? 1 + below(&r, SIZE) : 0;
        const ir_value_id v = computed(&r);
        view want, got;
        uint8_t room[ROOM * 4] = { 0 };
        const ir_value *x = ir_value_at(r.g, v);
        if (CHECK(v) && view_init(&want, x->dtype, r.rank, r.dim, room) && CHECK(reference(&r, &e, v, &want)) &&
            CHECK(build_folded(&r.b, v) == v) && CHECK(ir_const_view(r.g, v, &got))) {
            for (int64_t i = 0; i < view_count(&want); i++, compared++) {
                const double a = view_load_f64(&got, i), b = view_load_f64(&want, i);
                if (!CHECK(isnan(a) ? isnan(b) : a == b && signbit(a) == signbit(b)))
                    (void)printf("graph %u, element %lld: %a, wanted %a\n", graph, (long long)i, a, b);
            }
        }
        ir_graph_destroy(r.g);
    }
    CHECK(compared > GRAPHS);
}

static const test tests[] = { T(rows_equal_the_reference), { 0 } };
TEST_MAIN(tests)
