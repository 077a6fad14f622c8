/* SPDX-License-Identifier: Apache-2.0 */
/* test_plan.c - random plans: no two storages that live together share a byte, and the slab is close to the least that
 * any plan could have. */
#include "plan/plan.h"
#include "test.h"

typedef struct rig {
    env e;
    arena a;
    sinter_error error;
    plan *p;
    uint64_t random;
    VEC(uint32_t) value; /* made so far, and readable where the next step stands */
} rig;

static uint64_t below(rig *r, uint64_t limit)
{
    return test_random(&r->random) % limit;
}

static uint32_t new_value(rig *r)
{
    static const uint64_t most[] = { 4, 300, 5000, 100000 };
    const dim d = dim_const(r->p->dims, (int64_t)below(r, most[below(r, COUNT_OF(most))]));
    return plan_value_dense(r->p, STORAGE_SLAB, NULL, below(r, 4) ? SINTER_DTYPE_F32 : SINTER_DTYPE_U8, 1, &d, NULL);
}

static void new_region(rig *r, uint32_t region, uint32_t steps, uint32_t depth)
{
    const uint32_t visible = r->value.count;
    for (uint32_t i = 0; i < steps; i++) {
        const bool is_call = depth < 3 && below(r, 12) == 0;
        plan_step s = { .kind = is_call ? (step_kind)(STEP_IF + below(r, 3)) : STEP_KERNEL,
                        .in_place_from = below(r, 2) ? 0 : UINT32_MAX };
        uint32_t *in = ARENA_NEW(&r->a, uint32_t, 3), *out = ARENA_NEW(&r->a, uint32_t, 2);
        s.count_in = (uint32_t)below(r, 4);
        /* Mostly recent values, as in a network, and now and then an old one. */
        for (uint32_t k = 0; k < s.count_in && r->value.count; k++) {
            const uint64_t back = below(r, below(r, 4) ? 4 : r->value.count);
            in[k] = r->value.at[back < r->value.count ? r->value.count - 1 - back : 0];
        }
        for (uint32_t k = 0; is_call && k < (s.kind == STEP_IF ? 2u : 1u); k++) {
            (void)VEC_PUSH(&r->a, &r->p->region);
            s.region[k] = r->p->region.count - 1;
            uint32_t *param = ARENA_NEW(&r->a, uint32_t, 2), *result = ARENA_NEW(&r->a, uint32_t, 2);
            const uint32_t before = r->value.count;
            const uint32_t params = s.kind == STEP_IF ? 0 : 2;
            for (uint32_t j = 0; j < params; j++) {
                param[j] = new_value(r);
                *VEC_PUSH(&r->a, &r->value) = param[j];
            }
            new_region(r, s.region[k], 1 + (uint32_t)below(r, 5), depth + 1);
            result[0] = new_value(r);
            plan_step last = { .kind = STEP_KERNEL, .count_out = 1, .out = &result[0], .in_place_from = UINT32_MAX };
            *VEC_PUSH(&r->a, &r->p->step) = last;
            plan_region *body = &r->p->region.at[s.region[k]];
            *VEC_PUSH(&r->a, &body->step) = r->p->step.count - 1;
            body->param = param;
            body->count_param = params;
            body->result = result;
            body->count_result = 1;
            r->value.count = before;
        }
        s.count_out = 1 + (below(r, 6) == 0);
        for (uint32_t k = 0; k < s.count_out; k++) out[k] = new_value(r);
        s.in = in;
        s.out = out;
        *VEC_PUSH(&r->a, &r->p->step) = s;
        *VEC_PUSH(&r->a, &r->p->region.at[region].step) = r->p->step.count - 1;
        for (uint32_t k = 0; k < s.count_out; k++) *VEC_PUSH(&r->a, &r->value) = out[k];
    }
    if (depth) r->value.count = visible;
}

static void check_plan(rig *r)
{
    for (uint32_t i = 1; i < r->p->storage.count; i++) {
        const plan_storage *x = &r->p->storage.at[i];
        if (x->kind != STORAGE_SLAB) continue;
        CHECK_EQ(x->at % PLAN_ALIGN, 0);
        CHECK(x->at + x->bound <= r->p->slab_size[PLACE_DEVICE]);
        for (uint32_t k = 1; k < i; k++) {
            const plan_storage *y = &r->p->storage.at[k];
            if (y->kind != STORAGE_SLAB || x->last < y->first || y->last < x->first || !x->bound || !y->bound) continue;
            if (!CHECK(x->at + x->bound <= y->at || y->at + y->bound <= x->at)) return;
        }
    }
    /* Every step lies in the lives of what it touches. */
    for (uint32_t i = 1; i < r->p->step.count; i++) {
        const plan_step *s = &r->p->step.at[i];
        for (uint32_t k = 0; k < s->count_in + s->count_out; k++) {
            const uint32_t v = k < s->count_in ? s->in[k] : s->out[k - s->count_in];
            if (!v) continue;
            const plan_storage *x = &r->p->storage.at[r->p->value.at[v].storage];
            CHECK(x->first <= s->first && s->last <= x->last);
        }
    }
}

static void random_plans(void)
{
    const long rounds = test_scale(300, 10000);
    double sum = 0, worst = 1;
    long counted = 0;
    for (long round = 0; round < rounds; round++) {
        rig r = { .random = (uint64_t)round };
        env_init(&r.e, NULL, &r.error);
        arena_init(&r.a, &r.e);
        dim_table *dims = dim_table_create(&r.a);
        CHECK_EQ(plan_create(&r.e, &r.a, dims, &r.p), SINTER_OK);
        (void)VEC_PUSH(&r.a, &r.p->region);
        new_region(&r, 1, 1 + (uint32_t)below(&r, 60), 0);
        CHECK_EQ(plan_lifetimes(&r.e, r.p), SINTER_OK);
        plan_in_place(r.p);
        const uint64_t limit = below(&r, 5) ? UINT64_MAX : 50000;
        CHECK_EQ(plan_offsets_apart(&r.e, r.p, limit), SINTER_OK);
        check_plan(&r);
        CHECK_EQ(plan_offsets(&r.e, r.p, limit), SINTER_OK);
        const int before = test_failures;
        check_plan(&r);
        const uint64_t least = plan_lower_bound(r.p, &r.a);
        CHECK(r.p->slab_size[PLACE_DEVICE] >= least);
        if (least > 10000) {
            const double ratio = (double)r.p->slab_size[PLACE_DEVICE] / (double)least;
            sum += ratio;
            counted++;
            if (ratio > worst) worst = ratio;
        }
        if (test_failures != before) printf("round %ld\n", round);
        arena_deinit(&r.a);
    }
    printf("slab over the lower bound: mean %.3f, worst %.3f, over %ld plans\n", sum / (double)counted, worst, counted);
    CHECK(sum / (double)counted < 1.1);
}

/* ---- in place ---- */

static uint32_t dense(rig *r, dim d)
{
    const dim both[2] = { d, d };
    return plan_value_dense(r->p, STORAGE_SLAB, NULL, SINTER_DTYPE_F32, 2, both, NULL);
}

static void add_step(rig *r, uint32_t a, uint32_t b, uint32_t out, uint32_t in_place_from)
{
    uint32_t *in = ARENA_NEW(&r->a, uint32_t, 2), *o = ARENA_NEW(&r->a, uint32_t, 1);
    in[0] = a;
    in[1] = b;
    *o = out;
    *VEC_PUSH(&r->a, &r->p->step) = (plan_step){
        .kind = STEP_KERNEL, .count_in = 2, .count_out = 1, .in = in, .out = o, .in_place_from = in_place_from
    };
    *VEC_PUSH(&r->a, &r->p->region.at[1].step) = r->p->step.count - 1;
}

static bool shares(uint32_t in_place_from, bool is_turned, bool reads_twice)
{
    rig r = { 0 };
    env_init(&r.e, NULL, NULL);
    arena_init(&r.a, &r.e);
    (void)plan_create(&r.e, &r.a, dim_table_create(&r.a), &r.p);
    (void)VEC_PUSH(&r.a, &r.p->region);
    const dim d = dim_const(r.p->dims, 64);
    const uint32_t x = dense(&r, d), y = dense(&r, d), z = dense(&r, d);
    uint32_t second = x;
    if (is_turned) {
        *VEC_PUSH(&r.a, &r.p->value) = r.p->value.at[x];
        second = r.p->value.count - 1;
        plan_value *v = &r.p->value.at[second];
        const dim s = v->stride[0];
        v->stride[0] = v->stride[1];
        v->stride[1] = s;
    }
    add_step(&r, 0, 0, x, UINT32_MAX);
    add_step(&r, x, reads_twice ? second : 0, y, in_place_from);
    add_step(&r, y, 0, z, UINT32_MAX);
    CHECK_EQ(plan_lifetimes(&r.e, r.p), SINTER_OK);
    plan_in_place(r.p);
    const bool is_shared = r.p->value.at[y].storage == r.p->value.at[x].storage;
    arena_deinit(&r.a);
    return is_shared;
}

static void results_in_place(void)
{
    CHECK(shares(0, false, false));
    CHECK(shares(0, false, true));  /* x + x */
    CHECK(!shares(0, true, true));  /* x + transpose(x) */
    CHECK(!shares(1, false, true)); /* anchor(x) + x: the anchor reads on after the first results are there */
    CHECK(!shares(UINT32_MAX, false, false));
}

/* Two branches of three steps each from one value into one: in a chain the second branch would take the memory of the
 * first, and with it wait. Inside a branch memory is used again. */
static void branches_keep_their_memory(void)
{
    rig r = { 0 };
    env_init(&r.e, NULL, NULL);
    arena_init(&r.a, &r.e);
    (void)plan_create(&r.e, &r.a, dim_table_create(&r.a), &r.p);
    (void)VEC_PUSH(&r.a, &r.p->region);
    const dim d = dim_const(r.p->dims, 64);
    uint32_t v[9];
    for (uint32_t i = 0; i < 9; i++) v[i] = dense(&r, d);
    add_step(&r, 0, 0, v[0], UINT32_MAX);
    for (uint32_t i = 0; i < 2; i++)
        for (uint32_t k = 0; k < 3; k++) add_step(&r, k ? v[1 + 3 * i + k - 1] : v[0], 0, v[1 + 3 * i + k], UINT32_MAX);
    add_step(&r, v[3], v[6], v[7], UINT32_MAX);
    add_step(&r, v[7], 0, v[8], UINT32_MAX);
    CHECK_EQ(plan_lifetimes(&r.e, r.p), SINTER_OK);
    CHECK_EQ(plan_offsets(&r.e, r.p, UINT64_MAX), SINTER_OK);
    const uint64_t chain = r.p->slab_size[PLACE_DEVICE];
    CHECK_EQ(plan_offsets_apart(&r.e, r.p, UINT64_MAX), SINTER_OK);
    CHECK(r.p->has_branches);
    check_plan(&r);
    for (uint32_t i = 1; i <= 3; i++)
        for (uint32_t k = 4; k <= 6; k++)
            CHECK(r.p->storage.at[r.p->value.at[v[i]].storage].at != r.p->storage.at[r.p->value.at[v[k]].storage].at);
    CHECK(r.p->slab_size[PLACE_DEVICE] > chain);
    CHECK(r.p->slab_size[PLACE_DEVICE] < 9 * 64 * 64 * 4);
    arena_deinit(&r.a);
}

static const test tests[] = { T(random_plans), T(branches_keep_their_memory), T(results_in_place), { 0 } };
TEST_MAIN(tests)
