/* SPDX-License-Identifier: Apache-2.0 */
/* test_cuda_measure.c - how kernels are timed: which operands the launches see, what is made once a problem, and what a
 * clock that varies does. */
#include "cuda_rig.h"
#include "tune/tune.h"

typedef struct sums_args {
    address in, weight, out;
} sums_args;

static bool sums_code(const problem *p, const tactic *t, const kernel_target *target, uint32_t index, cuda_code *c)
{
    if (!test_code(p, t, target, index, c)) return false;
    c->define_count = 0;
    cuda_code_define(c, "FAKE_PARAM0", sizeof(sums_args));
    return true;
}

static sinter_status sums_bind(env *e, const problem *p, const tactic *t, const void *attrs, const view *in,
                               const view *out, void *record)
{
    (void)e, (void)t, (void)attrs, (void)in, (void)out;
    cuda_record *r = record;
    (void)cuda_launch_add(r, 0, 32, 1, 1, 64, 0);
    sums_args *a = cuda_param_add(r, sizeof *a);
    CUDA_PATCH(r, a, in, PATCH_IN, 0);
    CUDA_PATCH(r, a, weight, PATCH_IN, p->count_in > 1);
    CUDA_PATCH(r, a, out, PATCH_OUT, 0);
    return SINTER_OK;
}

static const cuda_kernel sums = {
    .base = { .name = "sums", .abi = 1, .record_size = cuda_record_size, .bind = sums_bind },
    .code = sums_code,
};

/* Packed: twice as many bytes, all of them 7. */
static size_t packed_size(const problem *p, const tactic *t, uint32_t input)
{
    (void)p, (void)t;
    return input == 1 ? 1 << 14 : 0;
}
static void pack_sevens(const problem *p, const tactic *t, uint32_t input, const view *src, void *dst)
{
    CHECK(src->data != NULL);
    memset(dst, 7, packed_size(p, t, input));
}
static const cuda_kernel packed_sums = {
    .base = { .name = "packed_sums",
              .abi = 1,
              .record_size = cuda_record_size,
              .bind = sums_bind,
              .pack_size = packed_size,
              .pack = pack_sevens },
    .code = sums_code,
};

enum { SEEN_MAX = 256 };
typedef struct watch {
    uint64_t in[SEEN_MAX], weight[SEEN_MAX];
    uint32_t ins, weights;
    long launches;
    uint8_t first; /* byte of the weights */
} watch;

static void note(uint64_t *list, uint32_t *count, uint64_t at)
{
    uint32_t i = 0;
    while (i < *count && list[i] != at) i++;
    if (i == *count && *count < SEEN_MAX) list[(*count)++] = at;
}

static CUresult watch_run(void *user, const fake_launch *l)
{
    watch *w = user;
    sums_args a;
    memcpy(&a, l->param[0], sizeof a);
    note(w->in, &w->ins, a.in);
    note(w->weight, &w->weights, a.weight);
    w->launches++;
    w->first = *(const uint8_t *)(uintptr_t)a.weight;
    return CUDA_SUCCESS;
}

typedef struct trial {
    rig r;
    watch w;
    tune_stats stats;
    tune_options o;
    tune_bench *bench;
} trial;

static bool start_line(trial *x, const char *line, uint64_t weights, double estimate_ns)
{
    const char *why = NULL;
    scan s = scan_of(line, strlen(line));
    memset(x, 0, sizeof *x);
    rig_init(&x->r, -1);
    arena_init(&x->r.a, &x->r.e);
    fake->set_launch(watch_run, &x->w);
    x->o = (tune_options){ .backend = b, .threads = 1, .weights = weights, .stats = &x->stats };
    if (!CHECK_EQ(rig_open(&x->r, NULL), SINTER_OK) || !CHECK(problem_parse(&x->r.a, &s, &x->r.p, &why))) return false;
    x->o.device = x->r.d;
    x->stats.measured = 1; /* else the first keeps the device busy for a while */
    return CHECK_EQ(tune_bench_create(&x->r.e, x->r.p, &x->o, estimate_ns, &x->bench), SINTER_OK);
}

static bool start(trial *x, uint64_t weights, double estimate_ns)
{
    return start_line(x, "matmul:f16[4096,64] w:f16[64,64] -> f16[4096,64]", weights, estimate_ns);
}

static bool finish(trial *x)
{
    tune_bench_destroy(x->bench);
    return CHECK(rig_close(&x->r));
}

static double time_of(trial *x, const cuda_kernel *k, double best_ns)
{
    const tactic t = { 0 };
    tune_time time = { 0 };
    CHECK_EQ(tune_bench_time(x->bench, &k->base, &t, best_ns, &time), SINTER_OK);
    return time.ns;
}

static void cold_weights_take_turns(void)
{
    trial x;
    if (!start(&x, (uint64_t)1 << 40, 5000)) return;
    CHECK(time_of(&x, &sums, 0) > 0);
    CHECK_EQ(x.w.ins, 1);
    CHECK_EQ(x.w.weights, 64); /* 8 KiB each: the longest chain does not fill a cache */
    CHECK(finish(&x));
    if (!start(&x, (uint64_t)1 << 40, 5000)) return;
    CHECK(time_of(&x, &packed_sums, 0) > 0);
    CHECK_EQ(x.w.weights, 64);
    CHECK_EQ(x.w.first, 7);
    CHECK(finish(&x));
}

static void warm_weights_stay(void)
{
    trial x;
    if (!start(&x, 1 << 16, 5000)) return;
    CHECK(time_of(&x, &sums, 0) > 0);
    CHECK_EQ(x.w.ins, 1);
    CHECK_EQ(x.w.weights, 1);
    CHECK_EQ(x.w.launches % 16, 0);
    CHECK(finish(&x));
    /* What takes a millisecond is launched alone. */
    if (!start(&x, (uint64_t)1 << 40, 1e6)) return;
    CHECK(time_of(&x, &sums, 0) > 0);
    CHECK_EQ(x.w.weights, 1);
    CHECK(finish(&x));
}

static void operands_are_made_once(void)
{
    trial x;
    if (!start(&x, 1 << 16, 5000)) return;
    (void)time_of(&x, &sums, 0);
    const long allocations = fake->calls("cuMemAlloc"), copies = fake->calls("cuMemcpyHtoDAsync");
    CHECK_EQ(copies, 2);
    (void)time_of(&x, &sums, 0);
    CHECK_EQ(fake->calls("cuMemAlloc"), allocations);
    CHECK_EQ(fake->calls("cuMemcpyHtoDAsync"), copies);
    (void)time_of(&x, &packed_sums, 0);
    CHECK_EQ(fake->calls("cuMemAlloc"), allocations + 1);
    CHECK_EQ(fake->calls("cuMemcpyHtoDAsync"), copies + 1);
    CHECK_EQ(x.w.first, 7);
    CHECK_EQ(x.stats.measured, 4);
    CHECK(x.stats.measure_ns > 0);
    CHECK_EQ(x.stats.clock_high, 0); /* nobody says */
    const long before = x.w.launches;
    (void)time_of(&x, &sums, 0);
    const long usual = x.w.launches - before;
    x.stats.measured = 0; /* as if nothing had been measured yet: the device is kept busy until it is awake */
    (void)time_of(&x, &sums, 0);
    CHECK(x.w.launches - before > 3 * usual);
    CHECK(finish(&x));
}

/* Do elements along the innermost axis lie side by side, and all other lines at the distances that kernels may assume?
 */
static bool lies_as_stated(const problem_operand *o, const view *v)
{
    const int64_t unit = 16 * 8 / sinter_dtype_bits(o->dtype);
    int64_t dense = 1;
    bool is_inner = true, holds = true;
    for (uint32_t i = v->rank; i-- > 0;) {
        const uint32_t axis = o->order[i];
        if (!o->is_strided || o->dim[axis].max <= 1) holds = holds && (o->is_strided || v->stride[axis] == dense);
        else if (is_inner) holds = holds && v->stride[axis] == 1;
        else holds = holds && v->stride[axis] >= dense && v->stride[axis] % unit == 0;
        is_inner = is_inner && o->dim[axis].max <= 1;
        if (v->dim[axis] > 1) dense = v->stride[axis] * v->dim[axis];
    }
    return holds;
}

static sinter_status strict_bind(env *e, const problem *p, const tactic *t, const void *attrs, const view *in,
                                 const view *out, void *record)
{
    for (uint32_t i = 0; i < p->count_in + p->count_out; i++) {
        const bool is_in = i < p->count_in;
        const problem_operand *o = is_in ? &p->in[i] : &p->out[i - p->count_in];
        CHECK(lies_as_stated(o, is_in ? &in[i] : &out[i - p->count_in]));
    }
    return sums_bind(e, p, t, attrs, in, out, record);
}

static const cuda_kernel strict = {
    .base = { .name = "strict", .abi = 1, .record_size = cuda_record_size, .bind = strict_bind },
    .code = sums_code,
};

/* Of random order, dense or strided. The digits of `sizes` are sizes. */
static void print_operand(char *to, uint64_t *seed, const char *type, const char *sizes)
{
    const size_t rank = strlen(sizes);
    char order[8] = { 0 };
    for (size_t i = 0; i < rank; i++) {
        const size_t j = (size_t)test_below(seed, i + 1);
        order[i] = order[j];
        order[j] = (char)('0' + i);
    }
    to += sprintf(to, "%s[", type);
    for (size_t i = 0; i < rank; i++) to += sprintf(to, "%s%c", i ? "," : "", sizes[i]);
    to += sprintf(to, "]{");
    for (size_t i = 0; i < rank; i++) to += sprintf(to, "%s%c", i ? "," : "", order[i]);
    (void)sprintf(to, "}%s", test_random(seed) % 3 ? "*" : "");
}

static void operands_lie_as_stated(void)
{
    static const char *const types[] = { "f16", "f32", "f64", "u8" };
    uint64_t seed = 1;
    for (uint32_t n = 0; n < 300; n++) {
        char sizes[7] = { 0 }, in[64], out[64], line[160];
        const char *type = types[test_below(&seed, 4)];
        for (uint64_t i = 0, rank = 2 + test_below(&seed, 5); i < rank; i++)
            sizes[i] = (char)(test_random(&seed) % 3 ? '1' + test_random(&seed) % 9 : '1');
        print_operand(in, &seed, type, sizes);
        print_operand(out, &seed, type, sizes);
        (void)snprintf(line, sizeof line, "copy:%s -> %s", in, out);
        trial x;
        if (!start_line(&x, line, 1 << 16, 5000)) return;
        CHECK(time_of(&x, &strict, 0) > 0);
        CHECK(finish(&x));
    }
}

static void the_hopeless_get_one_look(void)
{
    trial x;
    if (!start(&x, 1 << 16, 5000)) return;
    const double ns = time_of(&x, &sums, 0);
    const long whole = x.w.launches;
    const double again = time_of(&x, &sums, ns / 3);
    CHECK(again > 0.99 * ns && again < 1.01 * ns);
    CHECK(x.w.launches - whole < whole / 4);
    CHECK(finish(&x));
}

static void a_low_clock_is_waited_out(void)
{
    static const unsigned once[] = { 1980, 1980, 1200, 1965, 1980 }, always[] = { 1980, 900 },
                          little[] = { 1980, 1900 };
    trial x;
    fake = cuda_fake();
    fake->set_clock(once, 5, 0);
    if (!start(&x, 1 << 16, 5000)) return;
    CHECK(time_of(&x, &sums, 0) > 0);
    CHECK_EQ(x.stats.repeated, 1);
    CHECK_EQ(x.stats.doubtful, 0);
    CHECK_EQ(x.stats.clock_low, 1200);
    CHECK_EQ(x.stats.clock_high, 1980);
    CHECK(!x.stats.was_throttled);
    CHECK_EQ(fake->clock_opened(), 1);
    CHECK(finish(&x));
    CHECK_EQ(fake->clock_opened(), 0);

    fake->set_clock(always, 2, 0);
    if (!start(&x, 1 << 16, 5000)) return;
    CHECK(time_of(&x, &sums, 0) > 0);
    CHECK_EQ(x.stats.doubtful, 4);
    CHECK_EQ(x.stats.repeated, 12);
    CHECK(finish(&x));

    /* A little lower counts only where there is a reason. */
    fake->set_clock(little, 2, NVML_REASON_IDLE);
    if (!start(&x, 1 << 16, 5000)) return;
    CHECK(time_of(&x, &sums, 0) > 0);
    CHECK_EQ(x.stats.repeated, 0);
    CHECK(finish(&x));
    fake->set_clock(little, 2, NVML_REASON_THERMAL);
    if (!start(&x, 1 << 16, 5000)) return;
    CHECK(time_of(&x, &sums, 0) > 0);
    CHECK_EQ(x.stats.doubtful, 4);
    CHECK(x.stats.was_throttled);
    CHECK(finish(&x));
    fake->set_clock(NULL, 0, 0);
}

/* Whichever call of the driver fails, all is given back. */
static void every_call_may_fail(void)
{
    bool is_done = false;
    for (long n = 1; n < 2000 && !is_done; n++) {
        trial x;
        memset(&x, 0, sizeof x);
        if (!start(&x, (uint64_t)1 << 40, 5000)) return;
        const tactic t = { 0 };
        tune_time time = { 0 };
        fake->fail_at(n, n % 2 ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_ERROR_INVALID_VALUE);
        tune_bench *other = NULL;
        sinter_status s = tune_bench_create(&x.r.e, x.r.p, &x.o, 5000, &other);
        if (s == SINTER_OK) s = tune_bench_time(other, &packed_sums.base, &t, 0, &time);
        is_done = fake->failed() == NULL;
        CHECK(!is_done || s == SINTER_OK); /* what releases something may fail unseen */
        CHECK((s == SINTER_OK) == (x.r.error.length == 0));
        fake->fail_at(0, CUDA_SUCCESS);
        tune_bench_destroy(other);
        CHECK(finish(&x));
    }
    CHECK(is_done);
}

static const test tests[] = {
    T(cold_weights_take_turns),   T(warm_weights_stay),         T(operands_are_made_once), T(operands_lie_as_stated),
    T(the_hopeless_get_one_look), T(a_low_clock_is_waited_out), T(every_call_may_fail),    { 0 },
};

TEST_MAIN(tests)
