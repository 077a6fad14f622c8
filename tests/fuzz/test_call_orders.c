/* SPDX-License-Identifier: Apache-2.0 */
/* test_call_orders.c - a caller may set inputs and outputs, take them back and run in any order.
 *
 * Each round makes a random sequence of calls on one engine. All memory of the caller lies at pages without access, and
 * nobody may touch it any more once it was replaced. Each run is judged by a fresh context that gets the same inputs
 * and has all outputs in its own memory. CALL_ORDERS=round repeats a round alone. */
#include "caller.h"
#include "campaign.h"
#include "base/hash.h"
#include "cuda_fake.h"
#include "device_hook.h"
#include "guarded.h"
#include "places.h"
#include "seeds.h"
#include "sinter/sinter.h"
#include "test.h"

enum { CALLS = 40, SLACK = 64 };

typedef struct subjects {
    image file[SEED_MAX];
    sinter_engine *g[SEED_MAX];
    device_hook hook[SEED_MAX]; /* where there is memory of a device: all that the engine has */
    uint32_t count;
    bool has_places, has_kernels;
} subjects;

/* ---- inputs ---- */

static uint64_t sum_of(caller *x, const sinter_tensor *t)
{
    uint8_t *bytes_at = caller_read(x, t);
    const uint64_t sum = hash64(bytes_at, sinter_tensor_size(t), 0);
    free(bytes_at);
    return sum;
}

static void fill(caller *x, const sinter_tensor *t)
{
    uint8_t *bytes_at = caller_read(x, t);
    rig_fill(bytes_at, sinter_tensor_size(t), t->dtype, &x->random);
    caller_copy(x, t->data, t->place, bytes_at, SINTER_PLACE_HOST, sinter_tensor_size(t));
    free(bytes_at);
}

static void forget_input(caller *x, uint32_t i)
{
    if (x->input[i].data) caller_give(x, x->input[i].data, sinter_tensor_size(&x->input[i]), x->input[i].place);
    x->input[i] = (sinter_tensor){ 0 };
    x->is_set[i] = false;
}

/* which: 0 to 3, the same for all inputs of one shape. */
static void give_input(caller *x, uint32_t i, uint32_t which)
{
    const sinter_io *io = &x->io[i];
    sinter_tensor t = { .dtype = io->dtype, .rank = io->rank, .place = caller_any_place(x) };
    for (uint32_t k = 0; k < io->rank; k++) {
        const int64_t list[] = { io->opt[k], io->min[k], io->max[k], io->min[k] + (io->max[k] > io->min[k]) };
        t.dim[k] = io->dim[k] >= 0 ? io->dim[k] : list[which % (sizeof list / sizeof *list)];
    }
    t.data = caller_take(x, sinter_tensor_size(&t), t.place);
    if (!t.data) return;
    fill(x, &t);
    const bool is_wrong = io->rank && test_below(&x->random, 10) == 0;
    sinter_tensor given = t;
    if (is_wrong) given.dim[test_below(&x->random, io->rank)] = -1;
    const sinter_status s = sinter_context_set_input(x->c, io->name, &given, NULL);
    caller_expect(x, s == (is_wrong ? SINTER_INVALID_ARG : SINTER_OK), "an input was taken or refused wrongly",
                  io->name);
    forget_input(x, i);
    x->input[i] = t;
    if (s != SINTER_OK) {
        forget_input(x, i);
        return;
    }
    x->is_set[i] = true;
    x->sum[i] = sum_of(x, &t);
}

/* Other numbers where an input lies, of which no call tells. */
static void change_input(caller *x, uint32_t i)
{
    if (!x->is_set[i]) return;
    fill(x, &x->input[i]);
    x->sum[i] = sum_of(x, &x->input[i]);
}

static void give_shape(caller *x)
{
    const uint32_t which = (uint32_t)test_below(&x->random, 4);
    for (uint32_t i = 0; i < x->ios; i++)
        if (x->io[i].is_input) give_input(x, i, which);
}

/* ---- outputs ---- */

static void give_output(caller *x, uint32_t i)
{
    const size_t last = x->last[i], list[] = { last, last, last + SLACK, last / 2, 4096 };
    const size_t size = list[test_below(&x->random, (sizeof list / sizeof *list))];
    const sinter_place place = caller_any_place(x);
    void *at = test_below(&x->random, 3) ? caller_take(x, size, place) : NULL;
    const sinter_status s = sinter_context_set_output(x->c, x->io[i].name, at, at ? size : 0, place, NULL);
    caller_forget_output(x, i);
    x->output[i] = at;
    x->room[i] = size;
    x->place[i] = place;
    if (s == SINTER_OK) return;
    /* A block that ends at a guard page may begin at any byte. */
    caller_expect(x, (uintptr_t)at % (sinter_dtype_bits(x->io[i].dtype) / 8) != 0, "an output was refused",
                  x->io[i].name);
    caller_forget_output(x, i);
}

/* ---- contexts ---- */

static void leave(caller *x)
{
    sinter_context_destroy(x->c);
    x->c = NULL;
    caller_forget_memory(x);
    for (uint32_t i = 0; i < x->ios; i++) {
        forget_input(x, i);
        caller_forget_output(x, i);
    }
}

static bool enter(caller *x)
{
    x->profile = (uint32_t)test_below(&x->random, sinter_engine_profile_count(x->g));
    for (uint32_t i = 0; i < x->ios; i++)
        if (sinter_engine_io(x->g, i, x->profile, &x->io[i]) != SINTER_OK) return false;
    sinter_context_options o = SINTER_CONTEXT_OPTIONS;
    sinter_error error = { 0 };
    o.profile = x->profile;
    o.memory = x->strategy = (sinter_memory)test_below(&x->random, SINTER_MEMORY_USER + 1);
    x->count->contexts++;
    const sinter_status s = sinter_context_create(x->g, &o, &x->c, &error);
    if (!caller_expect(x, s == SINTER_OK, "no context", error.text)) return false;
    if (x->strategy == SINTER_MEMORY_USER) caller_give_memory(x);
    return true;
}

/* ---- runs ---- */

static bool all_set(const caller *x)
{
    for (uint32_t i = 0; i < x->ios; i++)
        if (x->io[i].is_input && !x->is_set[i]) return false;
    return true;
}

/* Now and then in the memory of the other context, which rests. */
static sinter_status run_fresh(caller *x, sinter_context **c)
{
    sinter_context_options o = SINTER_CONTEXT_OPTIONS;
    o.profile = x->profile;
    o.lazy = 1;
    const bool is_shared = x->memory && all_set(x) && caller_has_memory(x) && test_below(&x->random, 2);
    if (is_shared) o.memory = SINTER_MEMORY_USER;
    sinter_status s = sinter_context_create(x->g, &o, c, NULL);
    if (s == SINTER_OK && is_shared) s = sinter_context_set_memory(*c, x->memory, x->memory_size, NULL);
    for (uint32_t i = 0; i < x->ios && s == SINTER_OK; i++)
        if (x->is_set[i]) s = sinter_context_set_input(*c, x->io[i].name, &x->input[i], NULL);
    return s == SINTER_OK ? sinter_context_run(*c, NULL) : s;
}

static void compare(caller *x, sinter_context *fresh, const caller_sizes *told, uint32_t i)
{
    const char *name = x->io[i].name;
    sinter_tensor t, want;
    if (!caller_expect(x,
                       sinter_context_output(fresh, name, &want, NULL) == SINTER_OK &&
                           sinter_context_output(x->c, name, &t, NULL) == SINTER_OK,
                       "no result", name))
        return;
    const size_t size = sinter_tensor_size(&want);
    uint8_t *bytes_at = caller_read(x, &t);
    x->last[i] = size;
    caller_expect(x, !x->output[i] || t.data == x->output[i], "the result lies elsewhere", name);
    caller_expect(x, sinter_tensor_size(&t) == size && !memcmp(t.dim, want.dim, sizeof *t.dim * t.rank), "another size",
                  name);
    if (sinter_tensor_size(&t) == size)
        caller_expect(x, !memcmp(bytes_at, want.data, size), "another result than that of a fresh context", name);
    free(bytes_at);
    caller_check_request(x, i, &t);
    caller_check_sizes(x, told, i, &t);
}

static bool ends_well(const caller *x, sinter_status want, sinter_status s, bool fits, bool has_memory)
{
    bool is_refused = false;
    for (uint32_t i = 0; i < x->ios; i++) is_refused = is_refused || x->request[i].refused;
    /* Memory that is too small may be met before what else is wrong. */
    if (want != SINTER_OK) return s == want || s == SINTER_INVALID_ARG || (is_refused && s == SINTER_NO_MEMORY);
    if (is_refused && s == SINTER_NO_MEMORY) return true;
    return s == (fits && has_memory && !is_refused ? SINTER_OK : SINTER_INVALID_ARG);
}

static void run(caller *x)
{
    sinter_context *fresh = NULL;
    sinter_error error = { 0 };
    caller_sizes told[CALLER_IO_MAX];
    caller_foretell(x, told);
    const sinter_status want = run_fresh(x, &fresh);
    bool fits = true;
    for (uint32_t i = 0; i < x->ios && want == SINTER_OK; i++) {
        sinter_tensor t;
        if (x->io[i].is_input || sinter_context_output(fresh, x->io[i].name, &t, NULL) != SINTER_OK) continue;
        fits = fits && (x->request[i].is_used || !x->output[i] || sinter_tensor_size(&t) <= x->room[i]);
        x->last[i] = sinter_tensor_size(&t);
    }
    /* The fresh context has a state without rows. */
    caller_expect(x, sinter_context_reset_state(x->c, &error) == SINTER_OK, "a state is not reset", error.text);
    const bool has_memory = caller_has_memory(x);
    caller_poison(x);
    caller_begin_run(x);
    const sinter_status s = sinter_context_run(x->c, &error);
    x->count->ran += s == SINTER_OK;
    x->count->refused_runs += s != SINTER_OK;
    const bool ok = ends_well(x, want, s, fits, has_memory);
    if (x->has_kernels && !caller_expect(x, ok, "a run ends otherwise than in a fresh context", error.text))
        printf("status %d, that of a fresh context %d\n", s, want);
    for (uint32_t i = 0; i < x->ios; i++) {
        if (!x->io[i].is_input && s == SINTER_OK && want == SINTER_OK && x->has_kernels) compare(x, fresh, told, i);
        if (x->is_set[i])
            caller_expect(x, sum_of(x, &x->input[i]) == x->sum[i], "a run changed an input", x->io[i].name);
    }
    sinter_context_destroy(fresh);
}

static void try_round(void *user, long round, rig_count *count)
{
    const subjects *s = user;
    caller x = { .g = s->g[round % s->count],
                 .random = (uint64_t)round * 0x2545F491u + 11,
                 .has_places = s->has_places,
                 .has_kernels = s->has_kernels,
                 .count = count };
    x.ios = sinter_engine_io_count(x.g);
    if (!CHECK(x.ios <= CALLER_IO_MAX) || !enter(&x)) return;
    for (uint32_t i = 0; i < CALLS && x.c; i++) {
        const uint32_t io = (uint32_t)test_below(&x.random, x.ios);
        const uint64_t what = i ? test_below(&x.random, 20) : 15;
        if (what < 6) run(&x);
        else if (what < 12 && !x.io[io].is_input) give_output(&x, io);
        else if (what < 9) give_input(&x, io, (uint32_t)test_below(&x.random, 4));
        else if (what < 12) change_input(&x, io);
        else if (what == 16) caller_give_memory(&x);
        else if (what == 17 && i % 2 == 0) caller_change_profile(&x);
        else if (what >= 18 && !x.io[io].is_input) caller_answer_requests(&x, io);
        else if (what == 12 && i % 4 == 0) leave(&x), enter(&x);
        else give_shape(&x);
    }
    leave(&x);
    if (!s->has_places) return;
    caller_expect(&x, device_hook_agrees(&s->hook[round % s->count], x.g), "device memory is counted otherwise", "");
    count->failed += !CHECK_EQ(cuda_fake()->misuse(), 0);
    if (cuda_fake()->misuse()) printf("%s\n", cuda_fake()->misuse_text());
}

static sinter_engine *load(const image *file, const sinter_device_allocator *allocator, uint64_t weight_budget)
{
    const sinter_limits limits = { .memory_max = 4u << 20, .loop_max = 16 };
    const sinter_env_options given = { .struct_size = sizeof given, .limits = &limits };
    const sinter_engine_options o = { .struct_size = sizeof o,
                                      .env = &given,
                                      .threads = 1,
                                      .kernel_cache = "",
                                      .weight_budget = weight_budget,
                                      .device_allocator = allocator };
    sinter_engine *g = NULL;
    CHECK_EQ(sinter_engine_load_memory(file->at, file->size, &o, &g, NULL), SINTER_OK);
    return g;
}

static void in_any_order(subjects s, const char *name, long rounds)
{
    sinter_engine *plain = load(&s.file[0], NULL, 0);
    for (uint32_t i = 0; i < s.count; i++) {
        s.hook[i] = (device_hook){ .from = plain, .budget = -1, .random = i };
        const sinter_device_allocator a = device_hook_of(&s.hook[i], i % 2);
        s.g[i] = load(&s.file[i], s.has_places ? &a : NULL, (uint64_t[]){ 0, 1, 700 }[i % 3]);
    }
    if (test_failures) return;
    campaign c = { .name = name, .rounds = rounds, .round = try_round, .user = &s };
    campaign_run(&c);
    CHECK_EQ(c.died, 0);
    CHECK_EQ(c.count.failed, 0);
    if (!getenv(c.name) && s.has_kernels) CHECK(c.count.ran > c.count.rounds);
    for (uint32_t i = 0; i < s.count; i++) {
        sinter_engine_release(s.g[i]);
        CHECK_EQ(s.hook[i].live, 0);
        CHECK_EQ(s.hook[i].misuse, 0);
        free(s.file[i].at);
    }
    sinter_engine_release(plain);
}

static void calls_in_any_order(void)
{
    subjects s = { .has_kernels = true };
    s.count = seed_engines(s.file);
    in_any_order(s, "CALL_ORDERS", test_scale(800, 100000));
}

/* The driver that is none checks what it is asked. Its kernels do nothing: results are judged where SINTER_FAKE_CUDA
 * names the emulator. */
static void calls_in_any_order_cuda(void)
{
    subjects s = { .has_places = true, .has_kernels = strstr(PLACE_FAKE_CUDA, "emulated") != NULL };
    s.count = seed_engines_cuda(s.file);
    in_any_order(s, "CALL_ORDERS_CUDA", test_scale(200, 10000));
}

/* Callers mean an input or output by its name: no engine has two of one name. */
static void names_differ(void)
{
    image s[SEED_MAX];
    const uint32_t count = seed_engines(s);
    long tried = 0;
    for (uint32_t i = 0; i < count; i++) {
        parts p = parts_of(s[i]);
        const uint32_t ios = parts_count(&p, SECTION_IOS);
        engine_io *last = parts_record(&p, SECTION_IOS, ios - 1), *before = parts_record(&p, SECTION_IOS, ios - 2);
        const bool is_pair = ios > 1 && last->is_input == before->is_input;
        if (is_pair) last->name = before->name;
        const image f = parts_together(&p);
        parts_seal(f.at, f.size);
        sinter_engine *g = NULL;
        sinter_error error = { 0 };
        const sinter_status status = sinter_engine_load_memory(f.at, f.size, NULL, &g, &error);
        CHECK_EQ(status, is_pair ? SINTER_INVALID_MODEL : SINTER_OK);
        if (is_pair) CHECK_HAS(error.text, "have the name");
        tried += is_pair;
        sinter_engine_release(g);
        free(f.at);
        free(s[i].at);
    }
    CHECK(tried > 0);
}

static const test tests[] = { T(names_differ), T(calls_in_any_order), T(calls_in_any_order_cuda), { 0 } };
TEST_MAIN(tests)
