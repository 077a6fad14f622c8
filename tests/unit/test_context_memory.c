/* SPDX-License-Identifier: Apache-2.0 */
/* test_context_memory.c - memory that callers give to contexts, outputs that they allocate during a run, sizes before a
 * run, and changes of profile. What all of it does in any order, fuzz/test_call_orders.c looks at. */
#include "base/env.h"
#include "model_text.h"
#include "samples.h"
#include "test.h"

typedef struct rig {
    sinter_engine *g;
    sinter_context *c;
} rig;

/* `text` with one profile for each of `profiles` values of all symbols: [1, 2], [3, 4] … ; 0: the text's ranges. */
static sinter_engine *engine_of(const char *text, uint32_t profiles, const sinter_state *state)
{
    model_text m;
    sinter_buffer file = { 0 };
    sinter_engine *g = NULL;
    sinter_error error = { 0 };
    sinter_shape_range range[4][MODEL_INPUTS];
    sinter_profile list[4];
    model_read(text, &m);
    for (uint32_t p = 0; p < (profiles ? profiles : 1); p++) {
        for (uint32_t i = 0; i < m.count_input; i++) {
            range[p][i] = m.range[i];
            for (uint32_t k = 0; k < m.range[i].rank && profiles; k++) {
                if (!m.axis[i][k]) continue;
                range[p][i].min[k] = 2 * p + 1;
                range[p][i].opt[k] = range[p][i].max[k] = 2 * p + 2;
            }
        }
        list[p] = (sinter_profile){ .shape = range[p], .count = m.count_input - (state ? 1 : 0) };
    }
    sinter_build_options o = SINTER_BUILD_OPTIONS;
    o.tune = SINTER_TUNE_OFF;
    o.threads = 1;
    o.profile = list;
    o.profile_count = profiles ? profiles : 1;
    o.state = state;
    o.state_count = state != NULL;
    if (!CHECK_EQ(sinter_build_memory(m.model.at, m.model.size, &o, &file, &error), SINTER_OK))
        printf("%s\n  %s\n", text, error.text);
    else CHECK_EQ(sinter_engine_load_memory(file.data, file.size, NULL, &g, NULL), SINTER_OK);
    free(m.model.at);
    sinter_buffer_free(&file);
    return g;
}

static sinter_context *context_of(sinter_engine *g, sinter_memory memory)
{
    sinter_context_options o = SINTER_CONTEXT_OPTIONS;
    sinter_context *c = NULL;
    o.memory = memory;
    CHECK_EQ(sinter_context_create(g, &o, &c, NULL), SINTER_OK);
    return c;
}

static sinter_status set(sinter_context *c, const char *name, float *at, int64_t rows, int64_t columns)
{
    const sinter_tensor t = { .dtype = SINTER_DTYPE_F32, .rank = 2, .dim = { rows, columns }, .data = at };
    return sinter_context_set_input(c, name, &t, NULL);
}

/* ---- memory of the caller ---- */

static const char *const chain = "sym N 1 8 64; in x f32 N,32; a = MatMul x %32,48; b = Sigmoid a; d = MatMul b %48,32;"
                                 "e = Softmax d axis=1; y = Add e d; out y; out b";

static void small_shapes_need_less(void)
{
    sinter_engine *g = engine_of(chain, 0, NULL);
    sinter_context *c = context_of(g, SINTER_MEMORY_USER), *own = context_of(g, SINTER_MEMORY_PROFILE);
    static float x[64 * 32];
    size_t size[3] = { 0 };
    static const int64_t rows[3] = { 1, 8, 64 };
    sinter_error error;
    uint64_t seed = 4;
    sample_fill(x, sizeof x, SINTER_DTYPE_F32, &seed);
    for (int i = 0; i < 3; i++) {
        const int64_t dim_at[] = { rows[i], 32 };
        CHECK_EQ(sinter_context_set_input_shape(c, "x", dim_at, 2, NULL), SINTER_OK);
        CHECK_EQ(sinter_context_memory_size(c, &size[i], NULL), SINTER_OK);
        CHECK_EQ(sinter_context_run(c, &error), SINTER_INVALID_ARG);
        CHECK_HAS(error.text, "input 'x' has a shape and no data");
    }
    CHECK(size[0] < size[1] && size[1] < size[2]);
    CHECK(size[2] <= sinter_engine_memory_size(g, 0));
    CHECK_EQ(sinter_engine_memory_size(g, SINTER_ALL_PROFILES), sinter_engine_memory_size(g, 0));
    CHECK_EQ(sinter_engine_memory_size(g, 1), 0);
    CHECK_EQ(set(c, "x", x, 1, 32), SINTER_OK);
    CHECK_EQ(sinter_context_run(c, &error), SINTER_INVALID_ARG);
    CHECK_HAS(error.text, "sinter_context_set_memory");
    void *memory = aligned_alloc(64, size[1]);
    memset(memory, 0xff, size[1]);
    CHECK_EQ(sinter_context_set_memory(c, memory, size[1], NULL), SINTER_OK);
    for (int i = 0; i < 3; i++) {
        CHECK_EQ(set(c, "x", x, rows[i], 32), SINTER_OK);
        CHECK_EQ(set(own, "x", x, rows[i], 32), SINTER_OK);
        CHECK_EQ(sinter_context_run(own, NULL), SINTER_OK);
        const sinter_status s = sinter_context_run(c, &error);
        if (i < 2 && CHECK_EQ(s, SINTER_OK)) CHECK_EQ(sample_results(g, c), sample_results(g, own));
        char wanted[32];
        (void)snprintf(wanted, sizeof wanted, "need %zu", size[2]);
        if (i == 2 && CHECK_EQ(s, SINTER_INVALID_ARG)) CHECK_HAS(error.text, wanted);
    }
    CHECK_EQ(sinter_context_set_memory(own, memory, size[1], &error), SINTER_INVALID_ARG);
    CHECK_HAS(error.text, "memory of its own");
    CHECK_EQ(sinter_context_set_memory(c, (char *)memory + 4, size[1], &error), SINTER_INVALID_ARG);
    CHECK_HAS(error.text, "multiple of 64");
    CHECK_EQ(sinter_context_set_memory(c, memory, 64, &error), SINTER_INVALID_ARG);
    CHECK_HAS(error.text, "the least is");
    CHECK(sinter_context_memory(c) < sinter_context_memory(own));
    sinter_context_destroy(c);
    sinter_context_destroy(own);
    sinter_engine_release(g);
    free(memory);
}

/* Another context in the same memory: between two runs that is fine, during a run it is found. */
typedef struct intruder {
    sinter_context *c;
    sinter_status status;
    sinter_error error;
    float y[64 * 32];
} intruder;

static void *intrude(void *user, const char *name, void *memory, size_t size, size_t align, void *stream)
{
    intruder *x = user;
    (void)name, (void)memory, (void)align, (void)stream;
    x->status = sinter_context_run(x->c, &x->error);
    return size <= sizeof x->y ? x->y : NULL;
}

static void shared_memory_is_watched(void)
{
    sinter_engine *g = engine_of(chain, 0, NULL);
    sinter_context *c = context_of(g, SINTER_MEMORY_USER);
    static intruder x;
    x.c = context_of(g, SINTER_MEMORY_USER);
    const size_t size = sinter_engine_memory_size(g, 0);
    char *memory = aligned_alloc(64, 2 * size);
    static float in[64 * 32];
    for (int apart = 0; apart < 2; apart++) {
        const sinter_output_allocator a = { .user = &x, .resize = intrude };
        CHECK_EQ(sinter_context_set_memory(c, memory, size, NULL), SINTER_OK);
        CHECK_EQ(sinter_context_set_memory(x.c, memory + (apart ? size : size / 2 / 64 * 64), size - 64, NULL),
                 SINTER_OK);
        CHECK_EQ(set(c, "x", in, 64, 32), SINTER_OK);
        CHECK_EQ(set(x.c, "x", in, 1, 32), SINTER_OK);
        CHECK_EQ(sinter_context_run(x.c, NULL), SINTER_OK);
        CHECK_EQ(sinter_context_set_output_allocator(c, "y", &a, SINTER_PLACE_HOST, NULL), SINTER_OK);
        CHECK_EQ(sinter_context_run(c, NULL), SINTER_OK);
        CHECK_EQ(x.status, apart ? SINTER_OK : SINTER_INVALID_ARG);
        if (!apart) CHECK_HAS(x.error.text, "overlaps that of another context");
        CHECK_EQ(sinter_context_run(x.c, NULL), SINTER_OK);
    }
    sinter_context_destroy(c);
    sinter_context_destroy(x.c);
    sinter_engine_release(g);
    free(memory);
}

/* ---- outputs whose size data decides: five ways to give them memory ---- */

typedef enum way { DEFER, BOUND, EXPERIENCE, GROW, RECYCLE, WAYS } way;

typedef struct output {
    way how;
    void *at;
    size_t room, asked;
    uint32_t requests, grown, notes;
    int64_t dim[SINTER_RANK_MAX];
} output;

static void *answer(void *user, const char *name, void *memory, size_t size, size_t align, void *stream)
{
    output *o = user;
    (void)name, (void)align, (void)stream;
    o->requests++;
    o->asked = size;
    CHECK(!memory || memory == o->at);
    if ((o->how == BOUND || o->how == EXPERIENCE) && size > o->room) return NULL;
    if (o->how == DEFER || size > o->room) {
        free(o->at);
        o->at = malloc(size);
        o->room = size;
        o->grown++;
    }
    return o->at;
}

static void note(void *user, const char *name, const int64_t *dim, uint32_t rank)
{
    output *o = user;
    (void)name;
    o->notes++;
    memcpy(o->dim, dim, rank * sizeof *dim);
}

/* How many rows of x choose something, in the order in which runs have them. */
static const int64_t chosen[] = { 3, 0, 12, 5, 12, 1 };

static void run_each(sinter_engine *g, way how, size_t element)
{
    sinter_context *c = context_of(g, SINTER_MEMORY_PROFILE);
    output o = { .how = how };
    const sinter_output_allocator a = { .user = &o, .resize = answer, .notify = note };
    float x[12];
    sinter_tensor t = { .dtype = SINTER_DTYPE_F32, .rank = 1, .dim = { 12 }, .data = x };
    CHECK_EQ(sinter_context_set_input(c, "x", &t, NULL), SINTER_OK);
    if (how == BOUND) CHECK_EQ(sinter_context_max_output_size(c, "y", &o.room, NULL), SINTER_OK);
    if (how == EXPERIENCE) o.room = 6 * element;
    if (how == GROW) o.room = element;
    if (o.room) o.at = malloc(o.room);
    if (how == BOUND) CHECK(o.room >= 12 * element && o.room <= 64 * element);
    CHECK_EQ(sinter_context_set_output_allocator(c, "y", &a, SINTER_PLACE_HOST, NULL), SINTER_OK);
    for (uint32_t i = 0; i < COUNT_OF(chosen); i++) {
        for (int k = 0; k < 12; k++) x[k] = k < chosen[i] ? (float)k + 1 : 0;
        o.requests = o.notes = 0;
        sinter_error error = { 0 };
        sinter_tensor y;
        const sinter_status s = sinter_context_run(c, &error);
        CHECK_EQ(o.requests, 1);
        if (how == EXPERIENCE && chosen[i] > 6) {
            CHECK_EQ(s, SINTER_NO_MEMORY);
            CHECK_HAS(error.text, "the allocator of output 'y' gives no");
            continue;
        }
        if (!CHECK_EQ(s, SINTER_OK)) printf("%s\n", error.text);
        CHECK_EQ(sinter_context_output(c, "y", &y, NULL), SINTER_OK);
        CHECK(y.data == o.at);
        const size_t size = sinter_tensor_size(&y);
        CHECK_EQ(size, (size_t)chosen[i] * element);
        CHECK_EQ(o.asked, size ? size : 1);
        CHECK_EQ(o.notes, 1);
        CHECK(!memcmp(o.dim, y.dim, y.rank * sizeof *y.dim));
    }
    CHECK_EQ(o.grown, how == DEFER ? COUNT_OF(chosen) : how == GROW || how == RECYCLE ? 2 : 0);
    sinter_context_destroy(c);
    free(o.at);
}

static void callers_allocate_outputs(void)
{
    static const struct {
        const char *text;
        size_t element;
    } models[] = {
        { "in x f32 12; y = NonZero x; out y", 8 },
        { "in x f32 12; c = Greater x #0; y = Compress x c axis=0; out y", 4 },
        /* boxes that do not overlap: as many are kept as have a score */
        { "in x f32 12; b = Reshape %12,4 {1,12,4}; i = Range #0 #12 #1; u = Unsqueeze i {1}; z = Mul b #0; v = Add z "
          "u;"
          "w = Mul b #0; q = Add w #0.25; e = Concat v v axis=2; f = Slice e {0} {4} {2}; s = Reshape x {1,1,12};"
          "k = Slice f {0} {2} {2}; l = Add k #0.5; m = Concat k l axis=2;"
          "y = NonMaxSuppression m s {100} #0.5 #0.5; out y",
          24 },
    };
    for (size_t m = 0; m < COUNT_OF(models); m++) {
        sinter_engine *g = engine_of(models[m].text, 0, NULL);
        for (int how = 0; g && how < WAYS; how++) run_each(g, (way)how, models[m].element);
        sinter_engine_release(g);
    }
}

/* ---- sizes before a run ---- */

static void sizes_are_told(void)
{
    sinter_engine *g = engine_of(
        "sym N 1 2 6; in x f32 N,12; in s i64 2; r = Reshape x s; y = Relu r; z = NonZero x; out y; out z", 0, NULL);
    sinter_context *c = context_of(g, SINTER_MEMORY_PROFILE);
    const char *missing[4] = { 0 };
    uint32_t count = 9;
    size_t bound = 0;
    sinter_tensor t;
    CHECK_EQ(sinter_context_infer_shapes(c, missing, 4, &count, NULL), SINTER_OK);
    CHECK(count == 2 && !strcmp(missing[0], "x") && !strcmp(missing[1], "s"));
    const int64_t dim_x[] = { 3, 12 }, dim_s[] = { 2 };
    CHECK_EQ(sinter_context_set_input_shape(c, "x", dim_x, 2, NULL), SINTER_OK);
    CHECK_EQ(sinter_context_set_input_shape(c, "s", dim_s, 1, NULL), SINTER_OK);
    CHECK_EQ(sinter_context_infer_shapes(c, missing, 4, &count, NULL), SINTER_OK);
    CHECK(count == 1 && !strcmp(missing[0], "s")); /* its value is missing */
    CHECK_EQ(sinter_context_output_shape(c, "y", &t, NULL), SINTER_OK);
    CHECK(t.rank == 2 && t.dim[0] == -1 && t.dim[1] == -1 && t.dtype == SINTER_DTYPE_F32 && !t.data);
    int64_t sizes[2] = { 9, -1 };
    const sinter_tensor s = { .dtype = SINTER_DTYPE_I64, .rank = 1, .dim = { 2 }, .data = sizes };
    CHECK_EQ(sinter_context_set_input(c, "s", &s, NULL), SINTER_OK);
    CHECK_EQ(sinter_context_infer_shapes(c, NULL, 0, &count, NULL), SINTER_OK);
    CHECK_EQ(count, 0);
    CHECK_EQ(sinter_context_output_shape(c, "y", &t, NULL), SINTER_OK);
    if (!CHECK(t.dim[0] == 9 && t.dim[1] == 4)) printf("%lld %lld\n", (long long)t.dim[0], (long long)t.dim[1]);
    CHECK_EQ(sinter_context_output_shape(c, "z", &t, NULL), SINTER_OK);
    CHECK(t.dim[0] == 2 && t.dim[1] == -1);
    CHECK_EQ(sinter_context_max_output_size(c, "y", &bound, NULL), SINTER_OK);
    CHECK_EQ(bound, 36 * sizeof(float));
    CHECK_EQ(sinter_context_max_output_size(c, "z", &bound, NULL), SINTER_OK);
    CHECK(bound >= 2 * 36 * sizeof(int64_t) && bound <= 2 * 72 * sizeof(int64_t));
    sinter_error error;
    CHECK_EQ(sinter_context_output_shape(c, "w", &t, &error), SINTER_INVALID_ARG);
    CHECK_HAS(error.text, "no output 'w'");
    const int64_t wide[] = { 7, 12 };
    CHECK_EQ(sinter_context_set_input_shape(c, "x", wide, 2, &error), SINTER_INVALID_ARG);
    CHECK_HAS(error.text, "profile 0 permits 1 to 6");
    sinter_context_destroy(c);
    sinter_engine_release(g);
}

/* ---- profiles ---- */

static void profiles_change(void)
{
    sinter_engine *g = engine_of(chain, 3, NULL);
    static float x[64 * 32];
    uint64_t seed = 9;
    sample_fill(x, sizeof x, SINTER_DTYPE_F32, &seed);
    for (int strategy = 0; g && strategy <= SINTER_MEMORY_USER; strategy++) {
        sinter_context *c = context_of(g, (sinter_memory)strategy);
        const size_t size = sinter_engine_memory_size(g, SINTER_ALL_PROFILES);
        void *memory = aligned_alloc(64, size);
        if (strategy == SINTER_MEMORY_USER) CHECK_EQ(sinter_context_set_memory(c, memory, size, NULL), SINTER_OK);
        size_t told[3] = { 0 };
        for (uint32_t i = 0; i < 12; i++) {
            const uint32_t p = i * 5 % 3;
            sinter_error error = { 0 };
            CHECK_EQ(sinter_context_set_profile(c, p, NULL), SINTER_OK);
            CHECK_EQ(sinter_context_profile(c), p);
            CHECK_EQ(set(c, "x", x, 2 * p + 1, 32), SINTER_OK);
            CHECK_EQ(sinter_context_memory_size(c, &told[p], NULL), SINTER_OK);
            if (!CHECK_EQ(sinter_context_run(c, &error), SINTER_OK)) printf("%s\n", error.text);
            sinter_context_options o = SINTER_CONTEXT_OPTIONS;
            sinter_context *own = NULL;
            o.profile = p;
            CHECK_EQ(sinter_context_create(g, &o, &own, NULL), SINTER_OK);
            CHECK_EQ(set(own, "x", x, 2 * p + 1, 32), SINTER_OK);
            CHECK_EQ(sinter_context_run(own, NULL), SINTER_OK);
            CHECK_EQ(sample_results(g, c), sample_results(g, own));
            sinter_context_destroy(own);
        }
        /* An input of the profile before stays, and is refused by its range. */
        sinter_error error;
        sinter_tensor y;
        CHECK_EQ(sinter_context_set_profile(c, 0, NULL), SINTER_OK);
        CHECK_EQ(sinter_context_set_profile(c, 2, NULL), SINTER_OK);
        CHECK_EQ(set(c, "x", x, 5, 32), SINTER_OK);
        CHECK_EQ(sinter_context_set_profile(c, 0, NULL), SINTER_OK);
        CHECK_EQ(sinter_context_output(c, "y", &y, NULL), SINTER_INVALID_ARG);
        CHECK_EQ(sinter_context_run(c, &error), SINTER_INVALID_ARG);
        CHECK_HAS(error.text, "profile 0 permits 1 to 2");
        CHECK_EQ(sinter_context_set_profile(c, 3, &error), SINTER_INVALID_ARG);
        CHECK_HAS(error.text, "profile 3, the engine has 3");
        if (strategy == SINTER_MEMORY_STATIC) CHECK(told[0] == size && told[2] == size);
        else CHECK(told[0] < told[1] && told[1] < told[2]);
        sinter_context_destroy(c);
        free(memory);
    }
    sinter_engine_release(g);
}

/* What a run leaves goes on in another profile. */
static void states_go_on(void)
{
    const sinter_state state = { "s", "t" };
    sinter_engine *g = engine_of("sym N 1 2 8; in x f32 N,4; in s f32 1,4; a = ReduceSum x {0} keepdims=1; t = Add s a;"
                                 "y = Mul t #2; out y; out t",
                                 2, &state);
    if (!g) return;
    sinter_context *c = context_of(g, SINTER_MEMORY_PROFILE);
    float x[16], sum = 0;
    sinter_io io;
    CHECK_EQ(sinter_engine_state_count(g), 1);
    CHECK_EQ(sinter_engine_state(g, 0, 1, &io), SINTER_OK);
    CHECK(!strcmp(io.name, "s") && io.rank == 2 && io.dim[1] == 4 && !strcmp(io.dim_text[1], "4"));
    CHECK_EQ(sinter_engine_state(g, 1, 0, &io), SINTER_INVALID_ARG);
    for (int i = 0; i < 16; i++) x[i] = 1;
    for (uint32_t i = 0; i < 8; i++) {
        const uint32_t p = i / 2 % 2;
        const int64_t rows = 2 * p + 1 + i % 2;
        sinter_tensor y;
        if (i == 5) CHECK_EQ(sinter_context_reset_state(c, NULL), SINTER_OK), sum = 0;
        CHECK_EQ(sinter_context_set_profile(c, p, NULL), SINTER_OK);
        CHECK_EQ(set(c, "x", x, rows, 4), SINTER_OK);
        CHECK_EQ(sinter_context_run(c, NULL), SINTER_OK);
        CHECK_EQ(sinter_context_output(c, "y", &y, NULL), SINTER_OK);
        sum += (float)rows;
        CHECK(((float *)y.data)[3] == 2 * sum);
    }
    sinter_context_destroy(c);
    sinter_engine_release(g);
}

/* ---- counts ---- */

static void memory_is_counted(void)
{
    sinter_engine *g = engine_of(chain, 3, NULL);
    sinter_memory_info none = SINTER_MEMORY_INFO, one = SINTER_MEMORY_INFO, two = SINTER_MEMORY_INFO;
    CHECK_EQ(sinter_engine_memory(g, &none, NULL), SINTER_OK);
    CHECK_EQ(none.live, 0);
    sinter_context *c = context_of(g, SINTER_MEMORY_STATIC);
    CHECK_EQ(sinter_engine_memory(g, &one, NULL), SINTER_OK);
    CHECK_EQ(one.live, sinter_engine_memory_size(g, SINTER_ALL_PROFILES));
    sinter_context *user = context_of(g, SINTER_MEMORY_USER);
    CHECK_EQ(sinter_engine_memory(g, &two, NULL), SINTER_OK);
    CHECK_EQ(two.live, one.live); /* it has none of its own */
    CHECK_EQ(sinter_context_set_profile(c, 2, NULL), SINTER_OK);
    CHECK_EQ(sinter_engine_memory(g, &two, NULL), SINTER_OK);
    CHECK_EQ(two.live, one.live);
    CHECK_EQ(two.allocations, one.allocations);
    sinter_context_destroy(c);
    sinter_context_destroy(user);
    CHECK_EQ(sinter_engine_memory(g, &two, NULL), SINTER_OK);
    CHECK_EQ(two.live, 0);
    CHECK_EQ(two.peak, one.peak);
    CHECK_EQ(two.frees, two.allocations);
    sinter_engine_release(g);
}

static const test tests[] = { T(small_shapes_need_less),   T(shared_memory_is_watched),
                              T(callers_allocate_outputs), T(sizes_are_told),
                              T(profiles_change),          T(states_go_on),
                              T(memory_is_counted),        { 0 } };
TEST_MAIN(tests)
