/* SPDX-License-Identifier: Apache-2.0 */
/* caller_memory.c - the calls about memory and sizes: activation memory of the caller, outputs that the caller
 * allocates during a run, changes of profile, and sizes told before a run. */
#include "caller.h"

#include "test.h"

enum { ALIGN = 64, EXPERIENCE = 96 };

/* ---- activation memory ---- */

static sinter_place place_of(const caller *x)
{
    return x->has_places ? SINTER_PLACE_DEVICE : SINTER_PLACE_HOST;
}

void caller_forget_memory(caller *x)
{
    if (x->memory) caller_give(x, x->memory, x->memory_size, place_of(x));
    x->memory = NULL;
    x->memory_size = 0;
}

static bool all_have_shapes(const caller *x)
{
    for (uint32_t i = 0; i < x->ios; i++)
        if (x->io[i].is_input && !x->is_set[i]) return false;
    return true;
}

/* The least that any shape needs: the workspace, slots for streamed weights, and what is behind blocks. */
static size_t least_of(const caller *x)
{
    sinter_profile_info p = SINTER_PROFILE_INFO;
    if (sinter_engine_describe_profile(x->g, x->profile, &p, NULL) != SINTER_OK) return 0;
    return ((size_t)p.workspace_size + ALIGN + ALIGN - 1) / ALIGN * ALIGN + (size_t)p.weight_scratch_size + ALIGN;
}

void caller_give_memory(caller *x)
{
    const size_t most = sinter_engine_memory_size(x->g, x->profile);
    size_t now = most;
    const sinter_status told = sinter_context_memory_size(x->c, &now, NULL);
    if (told == SINTER_OK) caller_expect(x, all_have_shapes(x), "memory without shapes", "");
    else now = most;
    caller_expect(x, now <= most || x->strategy == SINTER_MEMORY_STATIC, "one shape needs more than all", "");
    const size_t list[] = { now, now, now, most, now / 2 / ALIGN * ALIGN, ALIGN };
    const size_t size = list[test_below(&x->random, sizeof list / sizeof *list)];
    const bool is_wrong = test_below(&x->random, 8) == 0, is_none = test_below(&x->random, 12) == 0;
    char *at = is_none ? NULL : caller_take(x, size, place_of(x));
    const bool is_good = x->strategy == SINTER_MEMORY_USER && (!at || (!is_wrong && size >= least_of(x)));
    const sinter_status s = sinter_context_set_memory(x->c, at && is_wrong ? at + 1 : at, size, NULL);
    caller_expect(x, s == (is_good ? SINTER_OK : SINTER_INVALID_ARG), "memory was taken or refused wrongly", "");
    caller_forget_memory(x);
    if (at && s == SINTER_OK) {
        x->memory = at;
        x->memory_size = size;
    } else if (at) {
        caller_give(x, at, size, place_of(x));
    }
}

void caller_poison(caller *x)
{
    if (!x->memory) return;
    uint8_t *bytes_at = malloc(x->memory_size);
    if (!bytes_at) abort();
    memset(bytes_at, (int)test_below(&x->random, 256), x->memory_size);
    caller_copy(x, x->memory, place_of(x), bytes_at, SINTER_PLACE_HOST, x->memory_size);
    free(bytes_at);
}

bool caller_has_memory(caller *x)
{
    size_t now = 0;
    if (x->strategy != SINTER_MEMORY_USER) return true;
    if (!x->memory) return false;
    return sinter_context_memory_size(x->c, &now, NULL) != SINTER_OK || now <= x->memory_size;
}

/* ---- outputs that the caller allocates ---- */

static void *grow(caller *x, uint32_t i, size_t size)
{
    if (x->output[i] && x->room[i] >= size) return x->output[i];
    if (x->output[i]) caller_give(x, x->output[i], x->room[i], x->place[i]);
    x->output[i] = caller_take(x, size, x->place[i]);
    x->room[i] = x->output[i] ? size : 0;
    return x->output[i];
}

static void *answer(void *user, const char *name, void *memory, size_t size, size_t align, void *stream)
{
    caller_request *r = user;
    caller *x = r->x;
    (void)stream;
    r->requests++;
    r->asked = size;
    caller_expect(x, !memory || memory == x->output[r->io], "the memory before is another", name);
    caller_expect(x, size > 0 && align >= 16, "a request for nothing", name);
    if (r->how == ANSWER_EXACT && x->output[r->io]) {
        caller_give(x, x->output[r->io], x->room[r->io], x->place[r->io]);
        x->output[r->io] = NULL;
    }
    const bool is_fixed = r->how == ANSWER_BOUND || r->how == ANSWER_EXPERIENCE;
    void *at = !is_fixed ? grow(x, r->io, size) : x->room[r->io] >= size ? x->output[r->io] : NULL;
    /* A block that ends at a guard page may begin at any byte. */
    const uint32_t element = sinter_dtype_bits(x->io[r->io].dtype) / 8;
    if (at && element > 1 && (uintptr_t)at % element) r->refused = true;
    r->refused = r->refused || !at;
    return at;
}

static void note(void *user, const char *name, const int64_t *dim, uint32_t rank)
{
    caller_request *r = user;
    r->notes++;
    caller_expect(r->x, rank == r->x->io[r->io].rank, "another rank is told", name);
    memcpy(r->dim, dim, rank * sizeof *dim);
}

void caller_forget_output(caller *x, uint32_t i)
{
    if (x->output[i]) caller_give(x, x->output[i], x->room[i], x->place[i]);
    x->output[i] = NULL;
    x->room[i] = 0;
    x->request[i].is_used = false;
}

void caller_answer_requests(caller *x, uint32_t i)
{
    caller_request *r = &x->request[i];
    const sinter_output_allocator a = { .user = r,
                                        .resize = answer,
                                        .notify = test_below(&x->random, 4) ? note : NULL };
    const sinter_place place = caller_any_place(x);
    size_t bound = 0;
    caller_expect(x, sinter_context_set_output_allocator(x->c, x->io[i].name, &a, place, NULL) == SINTER_OK,
                  "an allocator was refused", x->io[i].name);
    caller_forget_output(x, i);
    *r = (caller_request){ .x = x, .io = i, .is_used = true };
    r->how = (caller_answer)test_below(&x->random, ANSWER_COUNT);
    x->place[i] = place;
    if (r->how == ANSWER_BOUND && sinter_context_max_output_size(x->c, x->io[i].name, &bound, NULL) != SINTER_OK)
        r->how = ANSWER_GROW;
    if (r->how == ANSWER_BOUND) (void)grow(x, i, bound ? bound : 1);
    if (r->how == ANSWER_EXPERIENCE) (void)grow(x, i, EXPERIENCE);
    if (r->how == ANSWER_GROW) (void)grow(x, i, 1);
}

void caller_begin_run(caller *x)
{
    for (uint32_t i = 0; i < x->ios; i++) {
        x->request[i].requests = x->request[i].notes = 0;
        x->request[i].refused = false;
    }
}

void caller_check_request(caller *x, uint32_t i, const sinter_tensor *result)
{
    const caller_request *r = &x->request[i];
    const char *name = x->io[i].name;
    const size_t size = sinter_tensor_size(result);
    if (!r->is_used) return;
    caller_expect(x, r->requests == 1, "memory is not asked for once", name);
    caller_expect(x, r->asked == (size ? size : 1), "memory is asked for of another size", name);
    caller_expect(x, r->notes <= 1, "dims are told again", name);
    caller_expect(x, !r->notes || !memcmp(r->dim, result->dim, result->rank * sizeof *r->dim), "other dims are told",
                  name);
    caller_expect(x, result->data == x->output[i], "a result is not in the memory that was given", name);
}

/* ---- profiles ---- */

void caller_change_profile(caller *x)
{
    const uint32_t to = (uint32_t)test_below(&x->random, sinter_engine_profile_count(x->g) + 1);
    sinter_error error = { 0 };
    const sinter_status s = sinter_context_set_profile(x->c, to, &error);
    if (to == sinter_engine_profile_count(x->g)) {
        caller_expect(x, s == SINTER_INVALID_ARG, "a profile that is not there", "");
        return;
    }
    caller_expect(x, s == SINTER_OK, "a profile was refused", error.text);
    caller_expect(x, sinter_context_profile(x->c) == to, "another profile", "");
    x->profile = to;
    for (uint32_t i = 0; i < x->ios; i++)
        caller_expect(x, sinter_engine_io(x->g, i, to, &x->io[i]) == SINTER_OK, "no description", "");
}

/* ---- sizes before a run ---- */

void caller_foretell(caller *x, caller_sizes out[CALLER_IO_MAX])
{
    const char *missing[CALLER_IO_MAX];
    uint32_t count = 0, unset = 0;
    memset(out, 0, sizeof *out * CALLER_IO_MAX);
    const sinter_status s = sinter_context_infer_shapes(x->c, missing, CALLER_IO_MAX, &count, NULL);
    for (uint32_t i = 0; i < x->ios; i++) unset += x->io[i].is_input && !x->is_set[i];
    if (s == SINTER_OK) caller_expect(x, count == unset, "another number of inputs is missing", "");
    for (uint32_t i = 0; i < x->ios; i++) {
        const char *name = x->io[i].name;
        if (x->io[i].is_input) continue;
        out[i].is_known = sinter_context_output_shape(x->c, name, &out[i].shape, NULL) == SINTER_OK;
        caller_expect(x, out[i].is_known == (s == SINTER_OK), "shapes are known, or not", name);
        if (sinter_context_max_output_size(x->c, name, &out[i].bound, NULL) != SINTER_OK) out[i].bound = SIZE_MAX;
    }
}

void caller_check_sizes(caller *x, const caller_sizes *told, uint32_t i, const sinter_tensor *result)
{
    const char *name = x->io[i].name;
    if (!caller_expect(x, told[i].is_known, "a run with shapes that disagree", name)) return;
    caller_expect(x, told[i].shape.rank == result->rank && told[i].shape.dtype == result->dtype,
                  "another type was told", name);
    for (uint32_t k = 0; k < result->rank; k++)
        caller_expect(x, told[i].shape.dim[k] == -1 || told[i].shape.dim[k] == result->dim[k], "another size was told",
                      name);
    caller_expect(x, sinter_tensor_size(result) <= told[i].bound, "a result is larger than its bound", name);
}
