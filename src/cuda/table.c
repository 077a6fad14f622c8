/* SPDX-License-Identifier: Apache-2.0 */
/* table.c - the code of a device: asking rows for it, compiling what is missing, loading what runs. */
#include "cuda/table.h"

#include "base/hash.h"
#include "cuda/cuda_device.h"

#include <string.h>

/* What somebody asked for and nobody has. */
typedef struct wanted_code {
    struct wanted_code *next;  /* in the order of asking */
    struct wanted_code *other; /* whose key begins alike */
    cuda_code code;
    text generated;
    uint8_t key[CUDA_KEY];
    const kernel_use *use;
    loaded_code *made;
} wanted_code;

typedef struct wanted_list {
    wanted_code *first, *last, *at[TABLE_BUCKETS];
    uint32_t count;
} wanted_list;

/* Codes of a use that are not in the table yet are known by what was asked for. */
typedef struct asked_code {
    loaded_code *found;
    wanted_code *wanted;
} asked_code;

/* ---- the table ---- */

static loaded_code *find(const code_table *t, const uint8_t key[CUDA_KEY])
{
    loaded_code *x = t->at[key[0] % TABLE_BUCKETS];
    while (x && memcmp(x->key, key, CUDA_KEY) != 0) x = x->next;
    return x;
}

/* Compiled by whichever NVRTC. */
static const carried_code *find_carried(const code_table *t, const uint8_t key[CUDA_KEY])
{
    const carried_code *x = t->carried[key[0] % TABLE_BUCKETS];
    while (x && memcmp(x->key, key, CUDA_KEY_CODE) != 0) x = x->next;
    return x;
}

/* Under the lock. The image is the table's from here on, unless it is borrowed. */
static loaded_code *insert(device *d, const uint8_t key[CUDA_KEY], const char *entry, const void *image, size_t size,
                           bool is_borrowed)
{
    loaded_code *x = mem_zalloc(&d->own, sizeof *x, _Alignof(loaded_code));
    if (!x) return NULL;
    memcpy(x->key, key, CUDA_KEY);
    strncpy(x->entry, entry, sizeof x->entry - 1);
    x->image = image;
    x->size = size;
    x->is_borrowed = is_borrowed;
    x->shared = SHARED_ALLOWED;
    x->next = d->table.at[key[0] % TABLE_BUCKETS];
    d->table.at[key[0] % TABLE_BUCKETS] = x;
    return x;
}

/* Under the lock: what is there, or what an engine brought. */
static loaded_code *look_up(device *d, const cuda_code *code, const uint8_t key[CUDA_KEY])
{
    loaded_code *x = find(&d->table, key);
    const carried_code *c = x ? NULL : find_carried(&d->table, key);
    return c ? insert(d, key, code->entry, c->image, c->size, true) : x;
}

void code_table_deinit(device *d)
{
    code_table *t = &d->table;
    for (uint32_t i = 0; i < TABLE_BUCKETS; i++) {
        while (t->at[i]) {
            loaded_code *x = t->at[i];
            t->at[i] = x->next;
            if (x->library) (void)d->driver.cuLibraryUnload(x->library);
            /* mem_free wants what mem_alloc gave. */
            cuda_binary b = { .image = (void *)(uintptr_t)x->image, .size = x->size };
            if (!x->is_borrowed) cuda_binary_free(&d->own, &b);
            mem_free(&d->own, x, sizeof *x, _Alignof(loaded_code));
        }
        while (t->carried[i]) {
            carried_code *x = t->carried[i];
            t->carried[i] = x->next;
            mem_free(&d->own, x, sizeof *x, _Alignof(carried_code));
        }
    }
    while (t->failed) {
        failed_code *x = t->failed;
        t->failed = x->next;
        mem_free(&d->own, x, sizeof *x, _Alignof(failed_code));
    }
}

/* ---- asking ---- */

static sinter_status ask_one(env *e, device *d, const kernel_use *use, uint32_t index, arena *a, wanted_list *wanted,
                             asked_code *out, bool *is_there)
{
    const cuda_kernel *k = (const cuda_kernel *)use->kernel;
    wanted_code *w = ARENA_NEW(a, wanted_code, 1);
    if (!w) return FAIL_MEMORY(e, "kernels");
    text_init(&w->generated, e);
    w->code.generated = &w->generated;
    w->use = use;
    *is_there = k->code && k->code(use->problem, use->tactic, &d->target, index, &w->code);
    if (!*is_there || w->generated.failed) {
        text_deinit(&w->generated);
        return *is_there ? FAIL_MEMORY(e, "a kernel's text") : SINTER_OK;
    }
    cuda_code_key(&d->compiler, &w->code, w->key);
    cuda_lock_take(&d->lock);
    *out = (asked_code){ .found = look_up(d, &w->code, w->key) };
    cuda_lock_give(&d->lock);
    wanted_code **bucket = &wanted->at[w->key[0] % TABLE_BUCKETS];
    for (wanted_code *o = *bucket; o && !out->found && !out->wanted; o = o->other)
        if (memcmp(o->key, w->key, CUDA_KEY) == 0) out->wanted = o;
    if (out->found || out->wanted) {
        text_deinit(&w->generated);
        return SINTER_OK;
    }
    out->wanted = w;
    w->other = *bucket;
    *bucket = w;
    if (wanted->last) wanted->last->next = w;
    else wanted->first = w;
    wanted->last = w;
    wanted->count++;
    return SINTER_OK;
}

static sinter_status ask_all(env *e, device *d, const kernel_use *use, uint32_t count, arena *a, wanted_list *wanted,
                             asked_code *asked, use_code *out)
{
    for (uint32_t i = 0; i < count; i++) {
        if (use[i].kernel->where != KERNEL_ON_DEVICE) continue;
        asked_code *mine = asked + (size_t)i * CODE_INDEX_MAX;
        for (bool is_there = true; out[i].count < CODE_INDEX_MAX; out[i].count++) {
            TRY(ask_one(e, d, &use[i], out[i].count, a, wanted, &mine[out[i].count], &is_there));
            if (!is_there) break;
        }
        if (!out[i].count) return FAIL(e, INTERNAL, "kernel '%s' names no code", use[i].kernel->name);
    }
    return SINTER_OK;
}

/* ---- making ---- */

/* One more line of a failure: whose code it was. */
static sinter_status note_use(env *e, sinter_status s, const kernel_use *use)
{
    text line;
    text_init(&line, e);
    problem_print(use->problem, &line);
    const sinter_status noted = NOTE(e, s, "making kernel '%s' for %s", use->kernel->name, line.at ? line.at : "");
    text_deinit(&line);
    return noted;
}

static sinter_status keep(env *e, device *d, wanted_code *w, cuda_binary *b)
{
    cuda_lock_take(&d->lock);
    w->made = find(&d->table, w->key);
    if (!w->made) {
        w->made = insert(d, w->key, w->code.entry, b->image, b->size, false);
        if (w->made) *b = (cuda_binary){ 0 };
    }
    cuda_lock_give(&d->lock);
    return w->made ? SINTER_OK : FAIL_MEMORY(e, "a kernel");
}

/* Why the code does not compile, where that is known from before. */
static sinter_status failed_before(env *e, device *d, const wanted_code *w)
{
    sinter_status s = SINTER_OK;
    cuda_lock_take(&d->lock);
    const failed_code *x = d->table.failed;
    while (x && memcmp(x->key, w->key, CUDA_KEY) != 0) x = x->next;
    if (x) s = x->status;
    if (x) *e->error = x->why;
    cuda_lock_give(&d->lock);
    if (s == SINTER_OK || e->error->length) return s;
    return env_fail(e, s, __FILE__, __LINE__, "kernel '%s' did not compile before", w->code.source);
}

/* No memory for the note: it will be compiled once more. */
static void note_failure(device *d, const wanted_code *w, sinter_status status, const sinter_error *why)
{
    if (status == SINTER_NO_MEMORY || !d->driver.nvrtc) return;
    cuda_lock_take(&d->lock);
    failed_code *x = mem_zalloc(&d->own, sizeof *x, _Alignof(failed_code));
    if (x) {
        memcpy(x->key, w->key, CUDA_KEY);
        x->status = status;
        if (why) x->why = *why;
        x->next = d->table.failed;
        d->table.failed = x;
    }
    cuda_lock_give(&d->lock);
}

/* Keeps the codes that compiled, and notes those that did not. *culprit: whose the first of these was. */
static sinter_status keep_made(env *e, device *d, wanted_code *const *w, cuda_binary *made, uint32_t count,
                               sinter_status status, const kernel_use **culprit)
{
    sinter_status kept = SINTER_OK;
    for (uint32_t i = 0; i < count; i++) {
        if (made[i].image) {
            if (kept == SINTER_OK) kept = keep(e, d, w[i], &made[i]);
        } else if (status != SINTER_OK) {
            note_failure(d, w[i], status, *culprit ? NULL : e->error);
            if (!*culprit) *culprit = w[i]->use;
        }
    }
    return kept;
}

/* Codes that compile are kept even where others do not. */
static sinter_status compile_wanted(env *e, device *d, const wanted_list *wanted, arena *a)
{
    if (!wanted->count) return SINTER_OK;
    cuda_code *code = ARENA_NEW(a, cuda_code, wanted->count);
    cuda_binary *made = ARENA_NEW(a, cuda_binary, wanted->count);
    wanted_code **of = ARENA_NEW(a, wanted_code *, wanted->count);
    if (!code || !made || !of) return FAIL_MEMORY(e, "kernels");
    /* Images stay with the device: they come from its allocator, and errors go where the caller wants them. */
    env own = *e;
    own.alloc = d->own.alloc;
    const kernel_use *culprit = NULL;
    sinter_status s = SINTER_OK;
    uint32_t count = 0;
    for (wanted_code *w = wanted->first; w; w = w->next) {
        sinter_error quiet = { 0 };
        own.error = s == SINTER_OK ? e->error : &quiet;
        const sinter_status before = failed_before(&own, d, w);
        if (before == SINTER_OK) {
            of[count] = w;
            code[count++] = w->code;
        } else if (s == SINTER_OK) {
            s = before;
            culprit = w->use;
        }
    }
    sinter_error unread = { 0 };
    own.error = s == SINTER_OK ? e->error : &unread;
    const sinter_status now = count == 1 ? cuda_compile(&own, &d->compiler, code, made)
                                         : cuda_compile_all(&own, &d->compiler, code, count, made);
    const kernel_use *first = NULL;
    const sinter_status kept = keep_made(&own, d, of, made, count, now, &first);
    for (uint32_t i = 0; i < count; i++) cuda_binary_free(&own, &made[i]);
    if (s == SINTER_OK && now != SINTER_OK) {
        s = now;
        culprit = first ? first : wanted->first->use;
    }
    return s == SINTER_OK ? kept : note_use(e, s, culprit);
}

/* ---- loading ---- */

static sinter_status load(env *e, device *d, loaded_code *x)
{
    CUlibraryOption option = CU_LIBRARY_BINARY_IS_PRESERVED;
    void *value = (void *)(uintptr_t)1;
    DEVICE_TRY(e, d, cuLibraryLoadData(&x->library, x->image, NULL, NULL, 0, &option, &value, 1), "loading code");
    DEVICE_TRY(e, d, cuLibraryGetKernel(&x->kernel, x->library, x->entry), "looking for a kernel's entry");
    /* From here on nothing is left to be loaded by the first launch. */
    DEVICE_TRY(e, d, cuKernelGetFunction(&x->function, x->kernel), "loading a kernel");
    /* A multiprocessor drains before it divides its memory anew: with one division for all kernels the next grid's
     * blocks start beside the last of the one before (5 % of ResNet-50 at batch 1). */
    DEVICE_TRY(e, d,
               cuKernelSetAttribute(CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT, 100, x->kernel, d->handle),
               "dividing a multiprocessor's memory");
    return SINTER_OK;
}

/* Loading happens outside the lock, as compiling does: whoever is first is kept. */
static sinter_status load_once(env *e, device *d, loaded_code *x)
{
    cuda_lock_take(&d->lock);
    const bool is_loaded = x->function != NULL;
    cuda_lock_give(&d->lock);
    if (is_loaded) return SINTER_OK;
    loaded_code mine = { .image = x->image };
    memcpy(mine.entry, x->entry, sizeof mine.entry);
    const sinter_status s = load(e, d, &mine);
    cuda_lock_take(&d->lock);
    if (s == SINTER_OK && !x->function) {
        x->library = mine.library;
        x->kernel = mine.kernel;
        x->function = mine.function;
        mine.library = NULL;
    }
    cuda_lock_give(&d->lock);
    if (mine.library) (void)d->driver.cuLibraryUnload(mine.library);
    return s;
}

sinter_status code_table_allow(env *e, device *d, loaded_code *x, uint32_t shared, uint32_t cluster)
{
    cuda_lock_take(&d->lock);
    const bool more_shared = shared > x->shared, wider = cluster > 8 && !x->has_wide_clusters;
    CUresult r = CUDA_SUCCESS;
    if (more_shared)
        r = d->driver.cuKernelSetAttribute(CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, (int)shared, x->kernel,
                                           d->handle);
    if (r == CUDA_SUCCESS && more_shared) x->shared = shared;
    if (r == CUDA_SUCCESS && wider)
        r = d->driver.cuKernelSetAttribute(CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED, 1, x->kernel,
                                           d->handle);
    if (r == CUDA_SUCCESS && wider) x->has_wide_clusters = true;
    cuda_lock_give(&d->lock);
    return r == CUDA_SUCCESS ? SINTER_OK
                             : cuda_device_fail(e, d, r, "allowing a kernel its shared memory and clusters");
}

/* ---- the whole ---- */

static sinter_status settle(env *e, device *d, const asked_code *asked, bool loads, const kernel_use *use,
                            loaded_code **out)
{
    *out = asked->found ? asked->found : asked->wanted->made;
    return loads ? NOTE(e, load_once(e, d, *out), "loading kernel '%s'", use->kernel->name) : SINTER_OK;
}

static sinter_status resolve(env *e, device *d, const kernel_use *use, uint32_t count, bool loads, arena *a, arena *t,
                             wanted_list *wanted, use_code *out)
{
    asked_code *asked = ARENA_NEW(t, asked_code, size_mul(count, CODE_INDEX_MAX));
    if (!asked) return FAIL_MEMORY(e, "kernels");
    TRY(ask_all(e, d, use, count, t, wanted, asked, out));
    TRY(compile_wanted(e, d, wanted, t));
    for (uint32_t i = 0; i < count; i++) {
        out[i].at = ARENA_NEW(a, loaded_code *, out[i].count);
        if (!out[i].at) return FAIL_MEMORY(e, "kernels");
        for (uint32_t k = 0; k < out[i].count; k++)
            TRY(settle(e, d, &asked[(size_t)i * CODE_INDEX_MAX + k], loads, &use[i], &out[i].at[k]));
    }
    return SINTER_OK;
}

sinter_status code_table_resolve(env *e, device *d, const kernel_use *use, uint32_t count, bool loads, arena *a,
                                 use_code *out)
{
    arena t;
    wanted_list wanted = { 0 };
    arena_init(&t, e);
    memset(out, 0, count * sizeof *out);
    const sinter_status s = count ? resolve(e, d, use, count, loads, a, &t, &wanted, out) : SINTER_OK;
    for (wanted_code *w = wanted.first; w; w = w->next) text_deinit(&w->generated);
    arena_deinit(&t);
    return s;
}

void code_table_describe(const device *d, const kernel_use *use, text *out)
{
    const cuda_kernel *k = (const cuda_kernel *)use->kernel;
    sha256 sum;
    uint8_t digest[32];
    text generated;
    if (use->kernel->where != KERNEL_ON_DEVICE || !k->code) return;
    sha256_init(&sum);
    text_init(&generated, out->e);
    for (uint32_t i = 0; i < CODE_INDEX_MAX; i++) {
        uint8_t key[CUDA_KEY];
        cuda_code code = { .generated = &generated };
        text_clear(&generated);
        if (!k->code(use->problem, use->tactic, &d->target, i, &code)) break;
        cuda_code_key(&d->compiler, &code, key);
        sha256_update(&sum, key, sizeof key);
    }
    sha256_final(&sum, digest);
    text_printf(out, "code=");
    for (uint32_t i = 0; i < 8; i++) text_printf(out, "%02x", digest[i]);
    if (generated.failed) out->failed = true;
    text_deinit(&generated);
}

/* ---- engines ---- */

static bool is_exported(const use_code *code, uint32_t use, uint32_t index)
{
    for (uint32_t i = 0; i <= use; i++)
        for (uint32_t k = 0; k < (i < use ? code[i].count : index); k++)
            if (code[i].at[k] == code[use].at[index]) return true;
    return false;
}

sinter_status code_table_export(env *e, device *d, const kernel_use *use, uint32_t count,
                                sinter_status (*add)(void *user, const uint8_t key[CUDA_KEY], const void *bytes,
                                                     size_t size),
                                void *user)
{
    arena a;
    arena_init(&a, e);
    use_code *code = ARENA_NEW(&a, use_code, count);
    sinter_status s = code ? code_table_resolve(e, d, use, count, false, &a, code) : FAIL_MEMORY(e, "kernels");
    for (uint32_t i = 0; i < count && s == SINTER_OK; i++)
        for (uint32_t k = 0; k < code[i].count && s == SINTER_OK; k++)
            if (!is_exported(code, i, k)) s = add(user, code[i].at[k]->key, code[i].at[k]->image, code[i].at[k]->size);
    arena_deinit(&a);
    return s;
}

sinter_status code_table_import(env *e, device *d, const uint8_t key[CUDA_KEY], const void *bytes, size_t size)
{
    if (!d->trusts_code || !size) return SINTER_OK;
    cuda_lock_take(&d->lock);
    const bool is_known = find_carried(&d->table, key) != NULL;
    carried_code *x = is_known ? NULL : mem_zalloc(&d->own, sizeof *x, _Alignof(carried_code));
    if (x) {
        memcpy(x->key, key, CUDA_KEY);
        x->image = bytes;
        x->size = size;
        x->next = d->table.carried[key[0] % TABLE_BUCKETS];
        d->table.carried[key[0] % TABLE_BUCKETS] = x;
    }
    cuda_lock_give(&d->lock);
    return is_known || x ? SINTER_OK : FAIL_MEMORY(e, "an engine's code");
}
