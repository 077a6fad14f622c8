/* SPDX-License-Identifier: Apache-2.0 */
/* compile.c - NVRTC, given everything in memory: the source, what it includes, and the generated text.
 *
 * What is compiled and what is hashed are the same list, the closure of the source's includes among the embedded files:
 * an edit of one kernel's file is a miss for that kernel alone. */
#include "cuda/compile.h"

#include "base/hash.h"
#include "base/os.h"
#include "cuda/cache.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

enum { SOURCES_MAX = 256, OPTION_SIZE = 96, OPTIONS_MAX = CODE_DEFINES + 8, THREADS_MAX = 64, LOG_SHOWN = 1200 };

/* Options that do not depend on the code, apart from architecture and SM. */
static const char *const fixed_options[] = { "-std=c++17", "-default-device", "-Xptxas", "-v" };
static const char generated_name[] = "generated.cuh";

/* ---- what a code is made of ---- */

typedef struct closure {
    const cuda_source *at[SOURCES_MAX]; /* the source itself first */
    uint32_t count;
    bool has[SOURCES_MAX]; /* by index in cuda_sources */
} closure;

static void closure_add(closure *c, const char *name, size_t length)
{
    for (uint32_t i = 0; i < cuda_sources_count && i < SOURCES_MAX; i++) {
        const cuda_source *s = &cuda_sources[i];
        if (c->has[i] || strlen(s->name) != length || memcmp(s->name, name, length) != 0) continue;
        c->has[i] = true;
        c->at[c->count++] = s;
        return;
    }
}

/* The names that lines #include "..." of the text mention, under whatever condition. */
static void closure_scan(closure *c, const char *text_at, size_t size)
{
    const char *at = text_at, *const end = text_at + size;
    while (at < end) {
        const char *line_end = memchr(at, '\n', (size_t)(end - at));
        if (!line_end) line_end = end;
        scan s = scan_of(at, (size_t)(line_end - at));
        scan_space(&s);
        if (scan_char(&s, '#')) {
            scan_space(&s);
            if (scan_word(&s, "include")) {
                scan_space(&s);
                const char *quote = scan_char(&s, '"') ? memchr(s.at, '"', (size_t)(line_end - s.at)) : NULL;
                if (quote) closure_add(c, s.at, (size_t)(quote - s.at));
            }
        }
        at = line_end + 1;
    }
}

static const char *generated_of(const cuda_code *code)
{
    return code->generated && code->generated->at ? code->generated->at : "";
}

/* False: there is no such source. */
static bool closure_of(const cuda_code *code, closure *c)
{
    c->count = 0;
    memset(c->has, 0, sizeof c->has);
    closure_add(c, code->source, strlen(code->source));
    if (!c->count) return false;
    const char *generated = generated_of(code);
    closure_scan(c, generated, strlen(generated));
    for (uint32_t i = 0; i < c->count; i++) closure_scan(c, c->at[i]->text_at, c->at[i]->size);
    return true;
}

typedef struct option_list {
    uint32_t count;
    char at[OPTIONS_MAX][OPTION_SIZE];
} option_list;

static void option_add(option_list *o, const char *format, const char *name, int64_t value, const char *tail)
{
    char *to = o->at[o->count++];
    const int length = snprintf(to, OPTION_SIZE, format, name, value, tail);
    assert(length > 0 && length < OPTION_SIZE);
    (void)length;
}

static int define_compare(const void *a, const void *b)
{
    const cuda_define *x = a, *y = b;
    const int order = strcmp(x->name, y->name);
    return order ? order : (x->value > y->value) - (x->value < y->value);
}

static void options_of(const cuda_compiler *c, const cuda_code *code, option_list *o)
{
    cuda_define define[CODE_DEFINES];
    assert(code->define_count <= CODE_DEFINES);
    memcpy(define, code->define, code->define_count * sizeof define[0]);
    qsort(define, code->define_count, sizeof define[0], define_compare);
    o->count = 0;
    /* From Hopper on, the instructions that matter are the chip's own. */
    option_add(o, "%s%" PRId64 "%s", "-arch=sm_", c->sm, c->sm >= 90 ? "a" : "");
    for (uint32_t i = 0; i < COUNT_OF(fixed_options); i++)
        (void)snprintf(o->at[o->count++], OPTION_SIZE, "%s", fixed_options[i]);
    option_add(o, "-D%s=%" PRId64 "%s", "SM", c->sm, "");
    for (uint32_t i = 0; i < code->define_count; i++)
        option_add(o, "-D%s=%" PRId64 "%s", define[i].name, define[i].value, "");
}

/* Lengths stand before texts, so that no two lists of parts read the same. */
static void hash_part(sha256 *s, const char *text_at, size_t size)
{
    uint8_t length[8];
    for (uint32_t i = 0; i < sizeof length; i++) length[i] = (uint8_t)((uint64_t)size >> 8 * i);
    sha256_update(s, length, sizeof length);
    sha256_update(s, text_at, size);
}

static void key_make(const cuda_compiler *c, const cuda_code *code, const closure *files, const option_list *options,
                     uint8_t key[CUDA_KEY])
{
    sha256 s;
    sha256_init(&s);
    hash_part(&s, "sinter cuda code 1", 18);
    hash_part(&s, code->entry, strlen(code->entry));
    for (uint32_t i = 0; i < options->count; i++) hash_part(&s, options->at[i], strlen(options->at[i]));
    for (uint32_t i = 0; i < files->count; i++) {
        hash_part(&s, files->at[i]->name, strlen(files->at[i]->name));
        hash_part(&s, files->at[i]->sum, strlen(files->at[i]->sum));
    }
    const char *generated = generated_of(code);
    hash_part(&s, generated, strlen(generated));
    sha256_final(&s, key);
    cuda_key_set_version(key, c->driver ? c->driver->nvrtc_version : 0);
}

void cuda_code_key(const cuda_compiler *c, const cuda_code *code, uint8_t key[CUDA_KEY])
{
    closure files;
    option_list options;
    (void)closure_of(code, &files);
    options_of(c, code, &options);
    key_make(c, code, &files, &options, key);
}

/* ---- failures ---- */

/* "'gemm.cu' for sm_90a with -DA=1 -DB=2" */
static void code_name(const option_list *options, const cuda_code *code, char *out, size_t size)
{
    int used = snprintf(out, size, "'%s' for %s with", code->source, options->at[0] + strlen("-arch="));
    for (uint32_t i = 1 + COUNT_OF(fixed_options); used > 0 && (size_t)used < size && i < options->count; i++)
        used += snprintf(out + used, size - (size_t)used, " %s", options->at[i]);
}

/* The log from its first error on where it has one, else its end: as one line, since errors are lines. */
static void log_show(const char *log, char out[LOG_SHOWN])
{
    const size_t length = strlen(log);
    const char *from = strstr(log, "error");
    while (from && from > log && from[-1] != '\n') from--;
    if (!from) from = length > LOG_SHOWN / 2 ? log + length - LOG_SHOWN / 2 : log;
    size_t used = 0;
    for (; *from && used + 4 < LOG_SHOWN; from++) {
        if (*from != '\n') out[used++] = *from == '\t' ? ' ' : *from;
        else if (from[1] && from[1] != '\n') used += (size_t)snprintf(out + used, LOG_SHOWN - used, " | ");
    }
    out[used] = '\0';
}

/* ---- one compilation ---- */

/* Sums what ptxas says of each function, of which all but the entry are device functions that were not inlined. */
static void log_read(const char *log, cuda_binary *out)
{
    out->registers = 0;
    out->spill_bytes = 0;
    for (const char *at = strstr(log, "Used "); at; at = strstr(at + 5, "Used ")) {
        const unsigned long used = strtoul(at + 5, NULL, 10);
        if (used < 256 && used > out->registers) out->registers = (uint32_t)used;
    }
    for (const char *at = strstr(log, " bytes spill "); at; at = strstr(at + 6, " bytes spill ")) {
        const char *digits = at;
        while (digits > log && digits[-1] >= '0' && digits[-1] <= '9') digits--;
        out->spill_bytes += (uint32_t)strtoul(digits, NULL, 10);
    }
}

/* The program's log in memory of our own; NULL: none to be had. `size` is to be given back with it. */
static char *log_get(env *e, const cuda_driver *d, nvrtcProgram program, size_t *size)
{
    *size = 0;
    size_t length = 0;
    if (d->nvrtcGetProgramLogSize(program, &length) != NVRTC_SUCCESS || length == 0) return NULL;
    char *log = mem_zalloc(e, size_add(length, 1), 1);
    if (!log) return NULL;
    *size = length + 1;
    if (d->nvrtcGetProgramLog(program, log) != NVRTC_SUCCESS) log[0] = '\0';
    return log;
}

static sinter_status image_get(env *e, const cuda_driver *d, nvrtcProgram program, const char *name, cuda_binary *out)
{
    size_t size = 0;
    nvrtcResult r = d->nvrtcGetCUBINSize(program, &size);
    if (r != NVRTC_SUCCESS || size == 0)
        return FAIL(e, INTERNAL, "NVRTC has no machine code of %s: %s", name, d->nvrtcGetErrorString(r));
    void *image = mem_alloc(e, size, BINARY_ALIGN);
    if (!image) return FAIL(e, NO_MEMORY, "out of memory for the %zu bytes of kernel %s", size, name);
    r = d->nvrtcGetCUBIN(program, image);
    if (r != NVRTC_SUCCESS) {
        mem_free(e, image, size, BINARY_ALIGN);
        return FAIL(e, INTERNAL, "NVRTC gives no machine code of %s: %s", name, d->nvrtcGetErrorString(r));
    }
    out->image = image;
    out->size = size;
    return SINTER_OK;
}

static sinter_status compile_now(env *e, const cuda_compiler *c, const cuda_code *code, const closure *files,
                                 const option_list *options, cuda_binary *out)
{
    const cuda_driver *d = c->driver;
    char name[400];
    code_name(options, code, name, sizeof name);
    const char *texts[SOURCES_MAX], *names[SOURCES_MAX], *arguments[OPTIONS_MAX];
    uint32_t count = 0;
    for (uint32_t i = 1; i < files->count; i++) {
        texts[count] = files->at[i]->text_at;
        names[count++] = files->at[i]->name;
    }
    texts[count] = generated_of(code);
    names[count++] = generated_name;
    for (uint32_t i = 0; i < options->count; i++) arguments[i] = options->at[i];

    nvrtcProgram program = NULL;
    nvrtcResult r =
        d->nvrtcCreateProgram(&program, files->at[0]->text_at, files->at[0]->name, (int)count, texts, names);
    if (r != NVRTC_SUCCESS) {
        const sinter_status status = r == NVRTC_ERROR_OUT_OF_MEMORY ? SINTER_NO_MEMORY : SINTER_INTERNAL;
        return env_fail(e, status, __FILE__, __LINE__, "NVRTC makes no program of %s: %s", name,
                        d->nvrtcGetErrorString(r));
    }
    r = d->nvrtcCompileProgram(program, (int)options->count, arguments);
    size_t log_size = 0;
    char *log = log_get(e, d, program, &log_size);
    sinter_status status = SINTER_OK;
    if (r != NVRTC_SUCCESS) {
        char shown[LOG_SHOWN];
        log_show(log ? log : "", shown);
        const sinter_status kind = r == NVRTC_ERROR_OUT_OF_MEMORY ? SINTER_NO_MEMORY : SINTER_INTERNAL;
        status = env_fail(e, kind, __FILE__, __LINE__, "kernel %s does not compile: %s: %s", name,
                          d->nvrtcGetErrorString(r), shown);
    } else {
        log_read(log ? log : "", out);
        status = image_get(e, d, program, name, out);
    }
    mem_free(e, log, log_size, 1);
    (void)d->nvrtcDestroyProgram(&program);
    return status;
}

sinter_status cuda_compile(env *e, const cuda_compiler *c, const cuda_code *code, cuda_binary *out)
{
    *out = (cuda_binary){ 0 };
    closure files;
    option_list options;
    if (code->generated && code->generated->failed) return FAIL_MEMORY(e, "the text of a kernel");
    if (!closure_of(code, &files)) return FAIL(e, INTERNAL, "there is no kernel source '%s'", code->source);
    options_of(c, code, &options);
    key_make(c, code, &files, &options, out->key);
    if (snprintf(out->entry, sizeof out->entry, "%s", code->entry) >= (int)sizeof out->entry)
        return FAIL(e, INTERNAL, "'%s' is too long for a kernel's name", code->entry);
    if (cuda_cache_find(e, c->cache, out->key, out)) return SINTER_OK;
    if (!c->driver || !c->driver->nvrtc) {
        if (cuda_cache_find_any(e, c->cache, out->key, out)) return SINTER_OK;
        char name[400];
        code_name(&options, code, name, sizeof name);
        return FAIL(e, INCOMPATIBLE,
                    "kernel %s is not in the kernel cache (%s), and there is no NVRTC to compile it: %s", name,
                    c->cache[0] ? c->cache : "none is used", c->driver ? c->driver->why_nvrtc : "not opened");
    }
    TRY(compile_now(e, c, code, &files, &options, out));
    cuda_cache_store(e, c->cache, out);
    return SINTER_OK;
}

void cuda_binary_free(env *e, cuda_binary *b)
{
    mem_free(e, b->image, b->size, BINARY_ALIGN);
    *b = (cuda_binary){ 0 };
}

/* ---- many ---- */

typedef struct compile_job {
    const cuda_compiler *compiler;
    const cuda_code *code;
    cuda_binary *out;
    const uint32_t *first;      /* index of the first code with this one's key */
    uint32_t count, next, stop; /* next, stop: shared by the workers */
} compile_job;

typedef struct compile_worker {
    compile_job *job;
    env e;
    sinter_error error; /* of the first code that it could not compile */
    sinter_status status;
    uint32_t failed; /* which code that is */
    os_thread *thread;
} compile_worker;

static void worker_run(void *arg)
{
    compile_worker *w = arg;
    compile_job *job = w->job;
    while (!__atomic_load_n(&job->stop, __ATOMIC_ACQUIRE)) {
        const uint32_t i = __atomic_fetch_add(&job->next, 1, __ATOMIC_RELAXED);
        if (i >= job->count) return;
        if (job->first[i] != i) continue;
        sinter_error error = { 0 };
        w->e.error = &error;
        const sinter_status s = cuda_compile(&w->e, job->compiler, &job->code[i], &job->out[i]);
        if (s == SINTER_OK) continue;
        if (w->status == SINTER_OK || s == SINTER_NO_MEMORY) {
            w->status = s;
            w->error = error;
            w->failed = i;
        }
        if (s == SINTER_NO_MEMORY) __atomic_store_n(&job->stop, 1, __ATOMIC_RELEASE);
    }
}

typedef struct keyed {
    uint8_t key[CUDA_KEY];
    uint32_t index;
} keyed;

static int keyed_compare(const void *a, const void *b)
{
    const keyed *x = a, *y = b;
    const int order = memcmp(x->key, y->key, CUDA_KEY);
    return order ? order : (x->index > y->index) - (x->index < y->index);
}

/* Equal codes are compiled once. */
static void find_first(const cuda_compiler *c, const cuda_code *code, uint32_t count, keyed *keys, uint32_t *first)
{
    for (uint32_t i = 0; i < count; i++) {
        cuda_code_key(c, &code[i], keys[i].key);
        keys[i].index = i;
    }
    qsort(keys, count, sizeof *keys, keyed_compare);
    for (uint32_t i = 0, start = 0; i < count; i++) {
        if (memcmp(keys[i].key, keys[start].key, CUDA_KEY) != 0) start = i;
        first[keys[i].index] = keys[start].index;
    }
}

static sinter_status copy_equal(env *e, const uint32_t *first, uint32_t count, cuda_binary *out)
{
    for (uint32_t i = 0; i < count; i++) {
        if (first[i] == i) continue;
        const cuda_binary *same = &out[first[i]];
        if (!same->image) continue;
        void *image = mem_alloc(e, same->size, BINARY_ALIGN);
        if (!image) return FAIL_MEMORY(e, "a kernel's machine code");
        out[i] = *same;
        out[i].image = memcpy(image, same->image, same->size);
    }
    return SINTER_OK;
}

static sinter_status run_workers(env *e, compile_job *job, compile_worker *workers, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        workers[i].job = job;
        workers[i].e = (env){ .alloc = e->alloc, .limits = e->limits };
        workers[i].e.error = &workers[i].error;
    }
    /* A thread that does not start is work for the others. */
    for (uint32_t i = 1; i < count; i++) {
        if (os_thread_start(&workers[i].e, worker_run, &workers[i], &workers[i].thread) == SINTER_OK) continue;
        workers[i].error = (sinter_error){ 0 };
        workers[i].thread = NULL;
        break;
    }
    worker_run(&workers[0]);
    for (uint32_t i = 1; i < count; i++) os_thread_join(&workers[i].e, workers[i].thread);
    const compile_worker *worst = NULL;
    for (uint32_t i = 0; i < count; i++) {
        const compile_worker *w = &workers[i];
        if (w->status == SINTER_OK) continue;
        const bool is_memory = w->status == SINTER_NO_MEMORY, was_memory = worst && worst->status == SINTER_NO_MEMORY;
        if (!worst || (is_memory && !was_memory) || (is_memory == was_memory && w->failed < worst->failed)) worst = w;
    }
    if (!worst) return SINTER_OK;
    *e->error = worst->error;
    return worst->status;
}

sinter_status cuda_compile_all(env *e, const cuda_compiler *c, const cuda_code *code, uint32_t count, cuda_binary *out)
{
    if (!count) return SINTER_OK;
    for (uint32_t i = 0; i < count; i++) out[i] = (cuda_binary){ 0 };
    const uint64_t start = os_time_ns();
    uint32_t threads = c->threads ? c->threads : os_cpu_count();
    if (threads > count) threads = count;
    if (threads > THREADS_MAX) threads = THREADS_MAX;
    const size_t keys_size = size_mul(count, sizeof(keyed)), first_size = size_mul(count, sizeof(uint32_t)),
                 workers_size = threads * sizeof(compile_worker);
    keyed *keys = mem_zalloc(e, keys_size, _Alignof(keyed));
    uint32_t *first = mem_zalloc(e, first_size, _Alignof(uint32_t));
    compile_worker *workers = mem_zalloc(e, workers_size, _Alignof(compile_worker));
    sinter_status status = SINTER_OK;
    if (keys && first && workers) {
        find_first(c, code, count, keys, first);
        compile_job job = { .compiler = c, .code = code, .out = out, .first = first, .count = count };
        status = run_workers(e, &job, workers, threads);
        const sinter_status copied = status == SINTER_NO_MEMORY ? status : copy_equal(e, first, count, out);
        if (copied != SINTER_OK) status = copied;
    } else {
        status = FAIL_MEMORY(e, "the list of kernels to compile");
    }
    mem_free(e, keys, keys_size, _Alignof(keyed));
    mem_free(e, first, first_size, _Alignof(uint32_t));
    mem_free(e, workers, workers_size, _Alignof(compile_worker));
    uint32_t cached = 0;
    for (uint32_t i = 0; i < count; i++) {
        cached += out[i].was_cached;
        if (status == SINTER_NO_MEMORY) cuda_binary_free(e, &out[i]);
    }
    if (status == SINTER_OK)
        env_log(e, LOG_JIT, "%" PRIu32 " kernels, %" PRIu32 " of them cached, %" PRIu32 " threads, %.0f ms", count,
                cached, threads, (double)(os_time_ns() - start) / 1e6);
    return status;
}
