/* SPDX-License-Identifier: Apache-2.0 */
/* test_plan_faults.c - faults planted in the plans of good engines. The verifier names them; where it says nothing of
 * steps or storages that changed places, the results are those of the good engine, bit by bit. */
#include "core/dim.h"
#include "core/storage.h"
#include "engine_parts.h"
#include "samples.h"
#include "seeds.h"
#include "test.h"

/* What a fault may be called, and how often it was. */
enum { NOT_WRITTEN, NOT_ALL_WRITTEN, NOT_YET, WROTE_AT, WROTE_OVER, NEXT_ITERATION, NOT_KNOWN, BOUND_TWICE, FAULTS };
static const char *const words[FAULTS] = { "is read, and no step has written it",
                                           "no step has written all of it",
                                           "is read before the step that writes it",
                                           "wrote at its place",
                                           "wrote over it",
                                           "what the next iteration reads",
                                           "has a size that is not known there",
                                           "is bound by steps" };

typedef struct tally {
    long tried, same, refused, named[FAULTS];
    uint64_t good; /* the results of the engine as it was built */
    bool has_good;
} tally;

/* Loads and runs it on data that are always the same. 0: refused. */
static uint64_t results_of(image file, sinter_error *error)
{
    const sinter_engine_options o = { .struct_size = sizeof o, .threads = 1 };
    sinter_engine *g = NULL;
    sinter_context *c = NULL;
    uint64_t sum = 0;
    if (sinter_engine_load_memory(file.at, file.size, &o, &g, error) == SINTER_OK &&
        sinter_context_create(g, NULL, &c, error) == SINTER_OK) {
        sum = 1;
        for (int i = 0; i < 3 && sum; i++) {
            sample_data d;
            if (!CHECK(sample_data_make(g, 0, (sample_size)i, (uint64_t)i, 1u << 16, &d))) break;
            sinter_status s = sample_data_set(&d, c, error);
            if (s == SINTER_OK) s = sinter_context_run(c, error);
            sum = s == SINTER_OK ? sum * 31 + sample_results(g, c) : 0;
            sample_data_free(&d);
        }
    }
    sinter_context_destroy(c);
    sinter_engine_release(g);
    return sum;
}

/* is_other: what the steps say may be another sensible program. */
static void try_fault(parts *p, const char *what, bool is_other, tally *t)
{
    sinter_error error = { 0 };
    image file = parts_together(p);
    parts_seal(file.at, file.size);
    const uint64_t sum = results_of(file, &error);
    t->tried++;
    t->same += sum == t->good;
    t->refused += sum == 0;
    for (uint32_t i = 0; i < FAULTS; i++) t->named[i] += strstr(error.text, words[i]) != NULL;
    if (!is_other && !CHECK(sum == 0 || sum == t->good)) printf("%s\n", what);
    free(file.at);
}

static engine_profile profile_of(const parts *p)
{
    engine_profile first;
    memcpy(&first, parts_record(p, SECTION_PROFILES, 0), sizeof first);
    return first;
}

/* One storage lies where another does. */
static void overlay_storages(image seed, uint32_t limit, tally *t)
{
    parts whole = parts_of(seed);
    const engine_profile of = profile_of(&whole);
    for (uint32_t i = 1; i < of.storage_count && i < limit; i++)
        for (uint32_t k = 1; k < of.storage_count && k < limit; k++) {
            const engine_storage *a = parts_record(&whole, SECTION_STORAGES, of.storage_first + i),
                                 *b = parts_record(&whole, SECTION_STORAGES, of.storage_first + k);
            if (i == k || a->kind != STORAGE_SLAB || b->kind != STORAGE_SLAB || a->at == b->at ||
                b->at + a->bound > of.slab_size)
                continue;
            parts p = parts_of(seed);
            ((engine_storage *)parts_record(&p, SECTION_STORAGES, of.storage_first + i))->at = b->at;
            try_fault(&p, "two storages at one place", false, t);
        }
    parts_free(&whole);
}

/* Two steps that follow each other change places. */
static void swap_steps(image seed, tally *t)
{
    parts whole = parts_of(seed);
    const engine_profile of = profile_of(&whole);
    for (uint32_t i = 0; i + 1 < of.step_count; i++) {
        parts p = parts_of(seed);
        engine_step *a = parts_record(&p, SECTION_STEPS, of.step_first + i), first = a[0];
        a[0] = a[1];
        a[1] = first;
        try_fault(&p, "two steps changed places", false, t);
    }
    parts_free(&whole);
}

/* A step's result, or an operand, is on a storage of its own, or is another value that is seen alike. */
static void redirect_values(image seed, tally *t)
{
    parts whole = parts_of(seed);
    const engine_profile of = profile_of(&whole);
    for (uint32_t i = 0; i < of.step_count; i++) {
        const engine_step s = *(engine_step *)parts_record(&whole, SECTION_STEPS, of.step_first + i);
        for (uint32_t k = 0; k < s.in_count + s.out_count; k++) {
            parts p = parts_of(seed);
            const uint32_t at = k < s.in_count ? s.in_at + k : s.out_at + k - s.in_count;
            uint32_t *arg = parts_record(&p, SECTION_ARGS, at);
            engine_value v = *(engine_value *)parts_record(&p, SECTION_VALUES, of.value_first + *arg);
            engine_storage x = *(engine_storage *)parts_record(&p, SECTION_STORAGES, of.storage_first + v.storage);
            if (!*arg || x.kind == STORAGE_WEIGHT) {
                parts_free(&p);
                continue;
            }
            x.kind = STORAGE_SLAB;
            x.at = (of.slab_size + 63) / 64 * 64;
            x.bound = 4096;
            ((engine_profile *)parts_record(&p, SECTION_PROFILES, 0))->slab_size = x.at + x.bound;
            v.storage = of.storage_count;
            *arg = of.value_count;
            parts_insert_in(&p, SECTION_STORAGES, 0, &x);
            parts_insert_in(&p, SECTION_VALUES, 0, &v);
            try_fault(&p, "a value is elsewhere", true, t);
        }
    }
    parts_free(&whole);
}

/* A step writes where its operand lies. */
static void write_in_place(image seed, tally *t)
{
    parts whole = parts_of(seed);
    const engine_profile of = profile_of(&whole);
    for (uint32_t i = 0; i < of.step_count; i++) {
        const engine_step s = *(engine_step *)parts_record(&whole, SECTION_STEPS, of.step_first + i);
        for (uint32_t k = 0; k < s.in_count && s.out_count == 1; k++) {
            const uint32_t in = *(uint32_t *)parts_record(&whole, SECTION_ARGS, s.in_at + k),
                           out = *(uint32_t *)parts_record(&whole, SECTION_ARGS, s.out_at);
            const engine_value *x = parts_record(&whole, SECTION_VALUES, of.value_first + in);
            const engine_storage *at = parts_record(&whole, SECTION_STORAGES, of.storage_first + x->storage);
            if (!in || !out || at->kind != STORAGE_SLAB) continue;
            parts p = parts_of(seed);
            engine_value *y = parts_record(&p, SECTION_VALUES, of.value_first + out);
            y->storage = x->storage;
            y->offset = x->offset;
            memcpy(y->stride, x->stride, sizeof y->stride);
            try_fault(&p, "a result lies where an operand does", true, t);
        }
    }
    parts_free(&whole);
}

/* A step binds the symbols of another, too. The list of a kernel's step has values of attributes: with others it does
 * something else. */
static void bind_twice(image seed, tally *t)
{
    parts whole = parts_of(seed);
    const engine_profile of = profile_of(&whole);
    for (uint32_t i = 0; i + 1 < of.step_count; i++) {
        const engine_step *a = parts_record(&whole, SECTION_STEPS, of.step_first + i);
        for (uint32_t k = i + 1; k < of.step_count; k++) {
            const engine_step *b = parts_record(&whole, SECTION_STEPS, of.step_first + k);
            if (!a->dim_count || !b->dim_count) continue;
            parts p = parts_of(seed);
            memcpy(parts_record(&p, SECTION_ARGS, b->dim_at), parts_record(&whole, SECTION_ARGS, a->dim_at), 4);
            const bool is_other = a->kind == STEP_KERNEL || b->kind == STEP_KERNEL;
            try_fault(&p, "a symbol is bound twice", is_other, t);
        }
    }
    parts_free(&whole);
}

static void planted_faults(void)
{
    image seed[SEED_MAX];
    const uint32_t count = seed_engines(seed);
    tally t = { 0 };
    for (uint32_t i = 0; i < count; i++) {
        sinter_error error = { 0 };
        t.good = results_of(seed[i], &error);
        if (!CHECK(t.good != 0)) printf("seed %u: %s\n", i, error.text);
        overlay_storages(seed[i], test_is_full() ? 1000 : 12, &t);
        swap_steps(seed[i], &t);
        redirect_values(seed[i], &t);
        write_in_place(seed[i], &t);
        bind_twice(seed[i], &t);
        free(seed[i].at);
    }
    printf("%ld faults: %ld refused, %ld made no difference\n", t.tried, t.refused, t.same);
    for (uint32_t i = 0; i < FAULTS; i++)
        if (!CHECK(t.named[i] > 0)) printf("never: %s\n", words[i]);
        else printf("%5ld %s\n", t.named[i], words[i]);
}

static const test tests[] = { T(planted_faults), { 0 } };
TEST_MAIN(tests)
