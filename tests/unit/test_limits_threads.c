/* SPDX-License-Identifier: Apache-2.0 */
/* test_limits_threads.c - memory_max holds for all that a build or a context has together, what builds also loads, and
 * a run that would not end is ended from another thread. */
#include "faulty.h"
#include "samples.h"
#include "test.h"

#include <pthread.h>
#include <time.h>

/* Whatever the limit is, no build passes it, and it says what stood in its way. What it built loads and runs. */
static void builds_stay_below(void)
{
    for (int i = 0; i < SAMPLE_COUNT; i++) {
        bool is_built = false;
        for (uint64_t limit = 1 << 16; limit < (1 << 28) && !is_built; limit += limit / 4) {
            faulty f = { .budget = -1 };
            const sinter_allocator allocator = { &f, faulty_resize };
            const sinter_limits limits = { .memory_max = limit };
            const sinter_env_options env = { .struct_size = sizeof env, .allocator = &allocator, .limits = &limits };
            sinter_error error = { 0 };
            sinter_buffer b = { 0 };
            const sinter_status s = sample_build((sample)i, &env, &b, &error);
            is_built = s == SINTER_OK;
            const bool is_named = s == SINTER_OK || strstr(error.text, "memory_max");
            if (!CHECK(s == SINTER_OK || s == SINTER_NO_MEMORY) || !CHECK(is_named))
                printf("%s: %s\n", sample_name((sample)i), error.text);
            if (!CHECK(f.peak_bytes <= (long)limit)) printf("%ld of %ld\n", f.peak_bytes, (long)limit);
            sinter_buffer_free(&b);
            CHECK_EQ(f.live, 0);
        }
        CHECK(is_built);
    }
}

/* The same for contexts: the least limit with which each shape runs is what the context says that it has. */
static void contexts_stay_below(void)
{
    for (int i = 0; i < SAMPLE_COUNT; i++) {
        sinter_buffer b = { 0 };
        if (!CHECK_EQ(sample_build((sample)i, NULL, &b, NULL), SINTER_OK)) continue;
        bool is_done = false;
        for (uint64_t limit = 1 << 16; limit < (1 << 28) && !is_done; limit += limit / 4) {
            faulty f = { .budget = -1 };
            const sinter_allocator allocator = { &f, faulty_resize };
            const sinter_limits limits = { .memory_max = limit };
            const sinter_env_options env = { .struct_size = sizeof env, .allocator = &allocator, .limits = &limits };
            const sinter_engine_options o = { .struct_size = sizeof o, .env = &env, .threads = 1 };
            sinter_error error = { 0 };
            sinter_engine *g = NULL;
            sinter_context *c = NULL;
            sinter_status s = sinter_engine_load_memory(b.data, b.size, &o, &g, &error);
            const long engine = f.live_bytes;
            CHECK(engine <= (long)limit);
            if (s == SINTER_OK) s = sinter_context_create(g, NULL, &c, &error);
            for (int k = 0; k < 3 && s == SINTER_OK; k++) {
                sample_data d;
                if (!CHECK(sample_data_make(g, 0, (sample_size)k, 1, 1u << 20, &d))) break;
                CHECK_EQ(sample_data_set(&d, c, NULL), SINTER_OK);
                s = sinter_context_run(c, &error);
                sample_data_free(&d);
            }
            is_done = s == SINTER_OK;
            CHECK(s == SINTER_OK || s == SINTER_NO_MEMORY);
            if (s == SINTER_NO_MEMORY && !CHECK_HAS(error.text, "memory_max")) printf("%s\n", error.text);
            CHECK(f.live_bytes - engine <= (long)limit);
            sinter_context_destroy(c);
            sinter_engine_release(g);
            CHECK_EQ(f.live, 0);
        }
        CHECK(is_done);
        sinter_buffer_free(&b);
    }
}

/* A file that is larger than the limit is not read; neither are bytes copied that are. */
static void engines_are_counted_whole(void)
{
    const char *const path = "limits_engine.sinter";
    sinter_buffer b = { 0 };
    if (!CHECK_EQ(sample_build(SAMPLE_CONV, NULL, &b, NULL), SINTER_OK)) return;
    FILE *file = fopen(path, "wb");
    const size_t size = (size_t)1 << 20;
    if (CHECK(file && b.size < size)) {
        CHECK(fwrite(b.data, 1, b.size, file) == b.size);
        CHECK(fseek(file, (long)size - 1, SEEK_SET) == 0 && fputc(0, file) == 0);
        (void)fclose(file);
        uint8_t *large = calloc(1, size);
        for (int is_file = 0; is_file < 2 && large; is_file++) {
            faulty f = { .budget = -1 };
            const sinter_allocator allocator = { &f, faulty_resize };
            const sinter_limits limits = { .memory_max = size - 1 };
            const sinter_env_options env = { .struct_size = sizeof env, .allocator = &allocator, .limits = &limits };
            const sinter_engine_options o = { .struct_size = sizeof o, .env = &env };
            sinter_error error = { 0 };
            sinter_engine *g = NULL;
            CHECK_EQ(is_file ? sinter_engine_load(path, &o, &g, &error)
                             : sinter_engine_load_memory(large, size, &o, &g, &error),
                     SINTER_NO_MEMORY);
            CHECK_HAS(error.text, "memory_max");
            CHECK_EQ(f.requests, 0);
        }
        free(large);
    }
    (void)remove(path);
    sinter_buffer_free(&b);
}

/* A tensor of more elements than any has is a matter of the model, and said before there is an engine. */
static void sizes_that_nothing_has(void)
{
    bytes g = { 0 };
    const int64_t pads[4] = { 0, 1, 0, (int64_t)1 << 62 };
    bytes_put(&g, 11, onnx_value("x", 1, (int64_t[]){ 2, 3 }, 2, ""));
    bytes_put(&g, 5, onnx_tensor_bytes("pads", 7, (int64_t[]){ 4 }, 1, pads, sizeof pads));
    bytes_put(&g, 1, onnx_node_bytes("Pad", "far", "x,pads", "p"));
    bytes_put(&g, 1, onnx_node_bytes("ReduceSum", "sum", "p", "y"));
    bytes_put(&g, 12, onnx_value("y", 1, (int64_t[]){ 1, 1 }, 2, ""));
    const bytes model = onnx_model_bytes(g, 17);
    const sinter_build_options o = { .struct_size = sizeof o, .threads = 1, .tune = SINTER_TUNE_OFF };
    sinter_error error = { 0 };
    sinter_buffer b = { 0 };
    const sinter_status s = sinter_build_memory(model.at, model.size, &o, &b, &error);
    if (!CHECK(s == SINTER_UNSUPPORTED || s == SINTER_NO_MEMORY)) printf("%s\n", error.text);
    sinter_buffer_free(&b);
    free(model.at);
}

/* ---- loops without end ---- */

/* Carries x, adds to it, and goes on for ever. */
static bytes endless(void)
{
    bytes g = { 0 }, body = { 0 };
    bytes_put(&g, 11, onnx_value("x", 1, (int64_t[]){ 2 }, 1, ""));
    bytes_put(&g, 11, onnx_value("c", 9, NULL, 0, ""));
    bytes_put(&body, 11, onnx_value("i", 7, NULL, 0, ""));
    bytes_put(&body, 11, onnx_value("go", 9, NULL, 0, ""));
    bytes_put(&body, 11, onnx_value("s", 1, (int64_t[]){ 2 }, 1, ""));
    bytes_put(&body, 1, onnx_node_bytes("Identity", "again", "go", "go1"));
    bytes_put(&body, 1, onnx_node_bytes("Sin", "sin", "s", "s1"));
    bytes_put(&body, 12, onnx_value("go1", 9, NULL, 0, ""));
    bytes_put(&body, 12, onnx_value("s1", 1, (int64_t[]){ 2 }, 1, ""));
    bytes n = onnx_node_bytes("Loop", "for ever", ",c,x", "y");
    bytes_put(&n, 5, onnx_attr_graph("body", body));
    bytes_put(&g, 1, n);
    bytes_put(&g, 12, onnx_value("y", 1, (int64_t[]){ 2 }, 1, ""));
    return onnx_model_bytes(g, 17);
}

typedef struct canceller {
    sinter_context *c;
    uint32_t is_over; /* atomic */
} canceller;

static void *cancel(void *user)
{
    canceller *x = user;
    while (!__atomic_load_n(&x->is_over, __ATOMIC_ACQUIRE)) {
        const struct timespec wait = { .tv_nsec = 5000000 };
        (void)nanosleep(&wait, NULL);
        sinter_context_cancel(x->c);
    }
    return NULL;
}

static void loops_end(void)
{
    const bytes model = endless();
    sinter_build_options o = { .struct_size = sizeof o, .threads = 1, .tune = SINTER_TUNE_OFF };
    sinter_error error = { 0 };
    sinter_buffer b = { 0 };
    if (!CHECK_EQ(sinter_build_memory(model.at, model.size, &o, &b, &error), SINTER_OK)) printf("%s\n", error.text);
    free(model.at);
    for (int with_limit = 0; with_limit < 2; with_limit++) {
        const sinter_limits limits = { .loop_max = with_limit ? 1000 : 0 };
        const sinter_env_options env = { .struct_size = sizeof env, .limits = &limits };
        const sinter_engine_options lo = { .struct_size = sizeof lo, .env = &env, .threads = 1 };
        float x[2] = { 1, 2 };
        bool go = true;
        sinter_engine *g = NULL;
        canceller a = { 0 };
        pthread_t thread;
        error = (sinter_error){ 0 };
        if (!CHECK_EQ(sinter_engine_load_memory(b.data, b.size, &lo, &g, &error), SINTER_OK)) continue;
        CHECK_EQ(sinter_context_create(g, NULL, &a.c, NULL), SINTER_OK);
        const sinter_tensor in = { .dtype = SINTER_DTYPE_F32, .rank = 1, .dim = { 2 }, .data = x },
                            condition = { .dtype = SINTER_DTYPE_BOOL, .data = &go };
        CHECK_EQ(sinter_context_set_input(a.c, "x", &in, NULL), SINTER_OK);
        CHECK_EQ(sinter_context_set_input(a.c, "c", &condition, NULL), SINTER_OK);
        sinter_context_cancel(a.c); /* of a run that has not begun: nothing */
        if (!with_limit) CHECK_EQ(pthread_create(&thread, NULL, cancel, &a), 0);
        CHECK_EQ(sinter_context_run(a.c, &error), with_limit ? SINTER_UNSUPPORTED : SINTER_CANCELLED);
        CHECK_HAS(error.text, with_limit ? "loop_max, 1000 iterations" : "cancelled");
        CHECK_HAS(error.text, "'for ever'");
        __atomic_store_n(&a.is_over, 1, __ATOMIC_RELEASE);
        if (!with_limit) CHECK_EQ(pthread_join(thread, NULL), 0);
        go = false; /* and it runs again */
        CHECK_EQ(sinter_context_run(a.c, &error), SINTER_OK);
        sinter_context_destroy(a.c);
        sinter_engine_release(g);
    }
    sinter_buffer_free(&b);
}

/* Slices without elements take no memory: a scan over any number of them ends all the same. */
static void scans_end(void)
{
    bytes g = { 0 }, body = { 0 };
    bytes_put(&g, 11, onnx_value("x", 1, (int64_t[]){ -1, 0 }, 2, ""));
    bytes_put(&body, 11, onnx_value("s", 1, (int64_t[]){ 0 }, 1, ""));
    bytes_put(&body, 1, onnx_node_bytes("Sin", "sin", "s", "s1"));
    bytes_put(&body, 12, onnx_value("s1", 1, (int64_t[]){ 0 }, 1, ""));
    bytes n = onnx_node_bytes("Scan", "slices", "x", "y");
    bytes_put(&n, 5, onnx_attr_int("num_scan_inputs", 1));
    bytes_put(&n, 5, onnx_attr_graph("body", body));
    bytes_put(&g, 1, n);
    bytes_put(&g, 12, onnx_value("y", 1, (int64_t[]){ -1, 0 }, 2, ""));
    const bytes model = onnx_model_bytes(g, 17);
    const sinter_build_options o = { .struct_size = sizeof o, .threads = 1, .tune = SINTER_TUNE_OFF };
    const sinter_limits limits = { .loop_max = 1000 };
    const sinter_env_options env = { .struct_size = sizeof env, .limits = &limits };
    const sinter_engine_options lo = { .struct_size = sizeof lo, .env = &env, .threads = 1 };
    sinter_error error = { 0 };
    sinter_buffer b = { 0 };
    sinter_engine *e = NULL;
    sinter_context *c = NULL;
    float x = 0;
    if (!CHECK_EQ(sinter_build_memory(model.at, model.size, &o, &b, &error), SINTER_OK)) printf("%s\n", error.text);
    free(model.at);
    if (CHECK_EQ(sinter_engine_load_memory(b.data, b.size, &lo, &e, &error), SINTER_OK)) {
        CHECK_EQ(sinter_context_create(e, NULL, &c, NULL), SINTER_OK);
        for (int64_t slices = 1000; slices <= 1001; slices++) {
            const sinter_tensor in = { .dtype = SINTER_DTYPE_F32, .rank = 2, .dim = { slices, 0 }, .data = &x };
            CHECK_EQ(sinter_context_set_input(c, "x", &in, NULL), SINTER_OK);
            error = (sinter_error){ 0 };
            CHECK_EQ(sinter_context_run(c, &error), slices == 1000 ? SINTER_OK : SINTER_UNSUPPORTED);
            if (slices > 1000) CHECK_HAS(error.text, "loop_max, 1000 iterations");
        }
    }
    sinter_context_destroy(c);
    sinter_engine_release(e);
    sinter_buffer_free(&b);
}

/* ---- indices of any value ---- */

/* An index may be any number: it is refused by name, and nothing is computed from it. */
static void indices_of_any_value(void)
{
    static const struct {
        const char *op, *inputs;
        int64_t index[2], y[3];
        uint32_t rank;
    } list[] = {
        { "Gather", "x,i", { 2, 2 }, { 2, 2, 4 }, 3 },         { "GatherND", "x,i", { 2, 2 }, { 2 }, 1 },
        { "GatherElements", "x,i", { 2, 2 }, { 2, 2 }, 2 },    { "ScatterND", "x,i,u", { 2, 2 }, { 3, 4 }, 2 },
        { "ScatterElements", "x,i,u", { 2, 2 }, { 3, 4 }, 2 },
    };
    static const int64_t hostile[] = { INT64_MAX, INT64_MIN, INT64_MAX - 3, INT64_MIN + 4, (int64_t)1 << 61, -5, 4 };
    for (size_t k = 0; k < sizeof list / sizeof *list; k++) {
        bytes g = { 0 };
        bytes_put(&g, 11, onnx_value("x", 1, (int64_t[]){ 3, 4 }, 2, ""));
        bytes_put(&g, 11, onnx_value("i", 7, list[k].index, 2, ""));
        const uint32_t u_rank = k == 3 ? 1 : 2;
        if (strchr(list[k].inputs, 'u')) bytes_put(&g, 11, onnx_value("u", 1, (int64_t[]){ 2, 2 }, u_rank, ""));
        bytes_put(&g, 1, onnx_node_bytes(list[k].op, "by index", list[k].inputs, "y"));
        bytes_put(&g, 12, onnx_value("y", 1, list[k].y, list[k].rank, ""));
        const bytes model = onnx_model_bytes(g, 17);
        const sinter_build_options o = { .struct_size = sizeof o, .threads = 1, .tune = SINTER_TUNE_OFF };
        const sinter_engine_options lo = { .struct_size = sizeof lo, .threads = 1 };
        sinter_error error = { 0 };
        sinter_buffer b = { 0 };
        sinter_engine *e = NULL;
        sinter_context *c = NULL;
        if (!CHECK_EQ(sinter_build_memory(model.at, model.size, &o, &b, &error), SINTER_OK))
            printf("%s: %s\n", list[k].op, error.text);
        free(model.at);
        if (!CHECK_EQ(sinter_engine_load_memory(b.data, b.size, &lo, &e, &error), SINTER_OK)) continue;
        CHECK_EQ(sinter_context_create(e, NULL, &c, NULL), SINTER_OK);
        float x[12] = { 0 }, u[4] = { 0 };
        int64_t index[4] = { 0, 1, 1, 2 };
        const sinter_tensor tx = { .dtype = SINTER_DTYPE_F32, .rank = 2, .dim = { 3, 4 }, .data = x },
                            ti = { .dtype = SINTER_DTYPE_I64, .rank = 2, .dim = { 2, 2 }, .data = index },
                            tu = { .dtype = SINTER_DTYPE_F32, .rank = u_rank, .dim = { 2, 2 }, .data = u };
        CHECK_EQ(sinter_context_set_input(c, "x", &tx, NULL), SINTER_OK);
        CHECK_EQ(sinter_context_set_input(c, "i", &ti, NULL), SINTER_OK);
        if (strchr(list[k].inputs, 'u')) CHECK_EQ(sinter_context_set_input(c, "u", &tu, NULL), SINTER_OK);
        for (size_t at = 0; at < 4; at++) {
            for (size_t n = 0; n < sizeof hostile / sizeof *hostile; n++) {
                const int64_t kept = index[at];
                index[at] = hostile[n];
                error = (sinter_error){ 0 };
                CHECK_EQ(sinter_context_run(c, &error), SINTER_INVALID_MODEL);
                CHECK_HAS(error.text, "'by index'");
                index[at] = kept;
            }
        }
        CHECK_EQ(sinter_context_run(c, &error), SINTER_OK);
        sinter_context_destroy(c);
        sinter_engine_release(e);
        sinter_buffer_free(&b);
    }
}

static const test tests[] = {
    T(builds_stay_below), T(contexts_stay_below), T(engines_are_counted_whole), T(sizes_that_nothing_has),
    T(loops_end),         T(scans_end),           T(indices_of_any_value),      { 0 }
};
TEST_MAIN(tests)
