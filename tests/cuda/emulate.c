/* SPDX-License-Identifier: Apache-2.0 */
/* emulate.c - from a row's code to a shared object, and from its record to launches of the runtime. */
#include "emulate.h"

#include "base/hash.h"
#include "emulator/emulator.h"
#include "places.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { PATH = 1200, FOLDER = 1000, SOURCES = 64, STEP = 7, REGIONS_MAX = 64, FILE_MAX = 1 << 22 };

static const char *const flags_fixed =
    "-std=c++17 -O1 -g1 -w -x c++ -fPIC -shared -fvisibility=hidden -fno-exceptions -fno-rtti "
    "-fno-strict-aliasing -fwrapv -ffp-contract=off -fsanitize=alignment,bounds "
    "-fsanitize-undefined-trap-on-error -nostdlib -fno-use-linker-plugin";
/* Kernels need neither the libraries of C++ nor the linker's plugin, whose loading takes a quarter of a compilation. */
static const char *const libraries = "-lm -lgcc";

static void stop(const char *what, const char *path)
{
    (void)fprintf(stderr, "emulate: cannot %s %s: %s\n", what, path, strerror(errno));
    exit(2);
}

/* ---- sources ---- */

static const char *source_folder(char at[FOLDER], const char *below)
{
    if (!at[0]) (void)snprintf(at, FOLDER, "%.900s/%s", PLACE_SOURCE_DIR, below);
    return at;
}

static const char *device_folder(void)
{
    static char at[FOLDER];
    return source_folder(at, "src/cuda/device");
}

static const char *emulator_folder(void)
{
    static char at[FOLDER];
    return source_folder(at, "tests/cuda/emulator");
}

static char *read_file(const char *path)
{
    FILE *f = fopen(path, "rb");
    if (!f) return NULL;
    char *at = malloc(FILE_MAX);
    if (!at) stop("hold", path);
    const size_t size = fread(at, 1, FILE_MAX - 1, f);
    at[size] = 0;
    (void)fclose(f);
    return at;
}

/* Whole or not at all, whoever else writes it. */
static void write_file(const char *path, const char *contents)
{
    char temporary[PATH + 32];
    (void)snprintf(temporary, sizeof temporary, "%s.%d", path, (int)getpid());
    FILE *f = fopen(temporary, "wb");
    if (!f || fputs(contents, f) < 0 || fclose(f) != 0 || rename(temporary, path) != 0) stop("write", path);
}

/* Sources are read once: they do not change while a test runs. */
static const char *source_text(const char *path)
{
    static struct {
        char path[PATH];
        char *text_at;
    } known[2 * SOURCES];
    uint32_t i = 0;
    while (i < COUNT_OF(known) && known[i].text_at && strcmp(known[i].path, path) != 0) i++;
    if (i == COUNT_OF(known)) stop("keep so many sources as", path);
    if (known[i].text_at) return known[i].text_at;
    char *all = read_file(path);
    if (!all) return NULL;
    known[i].text_at = strdup(all);
    free(all);
    (void)snprintf(known[i].path, sizeof known[i].path, "%s", path);
    return known[i].text_at;
}

/* Adds a file and all that it includes, found as the compiler finds them. */
typedef struct closure {
    sha256 sum;
    char name[SOURCES][64];
    uint32_t count;
} closure;
static void add_includes(closure *c, const char *at, int depth);
static void add_source(closure *c, const char *path, int depth)
{
    const char *at = source_text(path);
    if (!at || depth > 8) return;
    sha256_update(&c->sum, at, strlen(at) + 1);
    add_includes(c, at, depth);
}

static void add_includes(closure *c, const char *at, int depth)
{
    for (const char *line = at; (line = strstr(line, "#include \"")) != NULL; line++) {
        char name[64], found[PATH];
        if (sscanf(line, "#include \"%63[^\"]\"", name) != 1) continue;
        bool is_known = false;
        for (uint32_t i = 0; i < c->count; i++) is_known = is_known || !strcmp(c->name[i], name);
        if (is_known || c->count == SOURCES) continue;
        memcpy(c->name[c->count++], name, sizeof name);
        (void)snprintf(found, sizeof found, "%s/%s", emulator_folder(), name);
        if (access(found, R_OK) != 0) (void)snprintf(found, sizeof found, "%s/%s", device_folder(), name);
        add_source(c, found, depth + 1);
    }
}

const char *emulate_folder(void)
{
    static char folder[PATH];
    if (folder[0]) return folder;
    const char *bin = PLACE_BIN, *slash = strrchr(bin, '/');
    (void)snprintf(folder, sizeof folder, "%.*s/emulated", (int)(slash ? slash - bin : 0), bin);
    (void)mkdir(folder, 0777);
    return folder;
}

static const char *compiler_name(void)
{
    const char *named = getenv("SINTER_CXX");
    return named ? named : "g++";
}

bool emulate_is_possible(void)
{
    char command[PATH];
    (void)snprintf(command, sizeof command, "%.900s --version > /dev/null 2>&1", compiler_name());
    return system(command) == 0;
}

/* Variables that nobody set begin as a pattern, where the compiler can do that. */
static const char *flags_always(void)
{
    static char flags[PATH];
    if (flags[0]) return flags;
    const char *pattern = "-ftrivial-auto-var-init=pattern";
    char command[PATH];
    (void)snprintf(command, sizeof command, "%.900s %s -E -x c++ /dev/null > /dev/null 2>&1", compiler_name(), pattern);
    (void)snprintf(flags, sizeof flags, "%s %s", flags_fixed, system(command) == 0 ? pattern : "");
    return flags;
}

/* A file of a code's folder; the folder itself where name is "". */
static const char *key_path(char *out, const char *key, const char *name)
{
    (void)snprintf(out, PATH, "%.900s/%.64s/%.64s", emulate_folder(), key, name);
    return out;
}

static bool is_emulators(const char *name)
{
    char path[PATH];
    (void)snprintf(path, sizeof path, "%s/%s", emulator_folder(), name);
    return access(path, R_OK) == 0;
}

void emulate_source(const emulated_source *from, bool is_written, char key[EMULATED_KEY])
{
    closure c = { .count = 0 };
    sha256_init(&c.sum);
    if (!from->file_count) add_source(&c, from->path, 0);
    for (uint32_t i = 0; i < from->file_count; i++) {
        sha256_update(&c.sum, from->file_name[i], strlen(from->file_name[i]) + 1);
        sha256_update(&c.sum, from->file[i], strlen(from->file[i]) + 1);
    }
    char path[PATH];
    (void)snprintf(path, sizeof path, "%s/prelude.cuh", emulator_folder());
    add_source(&c, path, 0);
    (void)snprintf(path, sizeof path, "%s/hopper.cuh", emulator_folder());
    add_source(&c, path, 0);
    add_includes(&c, from->generated, 0);
    text main = { 0 };
    env e;
    env_init(&e, NULL, NULL);
    text_init(&main, &e);
    text_printf(&main, "#include \"hopper.cuh\"\n#include \"%s\"\n", from->path);
    for (uint32_t i = 0; i < from->entry_count; i++) text_printf(&main, "EMULATED_ENTRY(%s)\n", from->entry[i]);
    text_printf(&main, "EMULATED_OBJECT\n");
    const char *const parts[] = { flags_always(), from->flags, from->generated, main.at };
    for (size_t i = 0; i < COUNT_OF(parts); i++) sha256_update(&c.sum, parts[i], strlen(parts[i]) + 1);
    uint8_t digest[32];
    sha256_final(&c.sum, digest);
    for (uint32_t i = 0; i < 16; i++) (void)snprintf(key + 2 * i, 3, "%02x", digest[i]);
    if (is_written && access(key_path(path, key, "flags"), R_OK) != 0) {
        (void)mkdir(key_path(path, key, ""), 0777);
        for (uint32_t i = 0; i < from->file_count; i++)
            if (!is_emulators(from->file_name[i])) write_file(key_path(path, key, from->file_name[i]), from->file[i]);
        write_file(key_path(path, key, "generated.cuh"), from->generated);
        write_file(key_path(path, key, "main.cpp"), main.at);
        write_file(key_path(path, key, "flags"), from->flags);
    }
    text_deinit(&main);
}

bool emulate_code(env *e, const cuda_kernel *k, const problem *p, const tactic *t, const kernel_target *target,
                  uint32_t index, bool is_written, emulated_code *out)
{
    text generated, flags;
    text_init(&generated, e);
    text_init(&flags, e);
    cuda_code code = { .generated = &generated };
    const bool is_there = k->code(p, t, target, index, &code);
    if (is_there) {
        text_printf(&flags, "-DSM=%u", target->isa);
        for (uint32_t i = 0; i < code.define_count; i++)
            text_printf(&flags, " -D%s=%lld", code.define[i].name, (long long)code.define[i].value);
        char path[PATH];
        (void)snprintf(path, sizeof path, "%s/%s", emulator_folder(), code.source);
        if (access(path, R_OK) != 0) (void)snprintf(path, sizeof path, "%s/%s", device_folder(), code.source);
        (void)snprintf(out->entry, sizeof out->entry, "%s", code.entry);
        const emulated_source source = { .path = path,
                                         .flags = flags.at,
                                         .generated = generated.at ? generated.at : "",
                                         .entry = &code.entry,
                                         .entry_count = 1 };
        emulate_source(&source, is_written, out->key);
    }
    text_deinit(&generated);
    text_deinit(&flags);
    return is_there;
}

/* ---- compiling ---- */

/* One more compilation of this key may be under way, in another process or thread: each has a name of its own. */
static pid_t start_compiler(const char *key)
{
    static uint32_t count;
    char own[48];
    (void)snprintf(own, sizeof own, "%d.%u", (int)getpid(), __atomic_add_fetch(&count, 1, __ATOMIC_RELAXED));
    char command[6 * PATH], folder[PATH], file[PATH];
    (void)key_path(folder, key, "");
    char *flags = read_file(key_path(file, key, "flags"));
    (void)snprintf(command, sizeof command,
                   "cd '%s' && if %s %s %s -I'%s' -I. -I'%s' main.cpp %s -o kernel.%s 2> log.%s; then "
                   "mv kernel.%s kernel.so; rm -f log.%s; else mv log.%s log; fi",
                   folder, compiler_name(), flags_always(), flags ? flags : "", emulator_folder(), device_folder(),
                   libraries, own, own, own, own, own);
    free(flags);
    const pid_t child = fork();
    if (child == 0) {
        (void)execl("/bin/sh", "sh", "-c", command, (char *)NULL);
        _exit(127);
    }
    if (child < 0) stop("start a compiler for", key);
    return child;
}

static bool is_compiled(const char *key)
{
    char file[PATH];
    return access(key_path(file, key, "kernel.so"), R_OK) == 0;
}

uint32_t emulate_compile(const char (*key)[EMULATED_KEY], uint32_t count, uint32_t jobs)
{
    enum { JOBS_MAX = 64 };
    pid_t running[JOBS_MAX];
    uint32_t first = 0, next = 0, failed = 0;
    if (jobs > JOBS_MAX) jobs = JOBS_MAX;
    for (uint32_t i = 0; i < count; i++) {
        if (is_compiled(key[i])) continue;
        if (next - first >= jobs) (void)waitpid(running[first++ % JOBS_MAX], NULL, 0);
        running[next++ % JOBS_MAX] = start_compiler(key[i]);
    }
    while (first < next) (void)waitpid(running[first++ % JOBS_MAX], NULL, 0);
    for (uint32_t i = 0; i < count; i++) failed += !is_compiled(key[i]);
    return failed;
}

const char *emulate_log(const char *key, char *why, size_t size)
{
    if (is_compiled(key)) return NULL;
    char file[PATH];
    char *log = read_file(key_path(file, key, "log"));
    const char *error = log ? strstr(log, "error") : NULL;
    while (error && error > log && error[-1] != '\n') error--;
    (void)snprintf(why, size, "does not compile: %.*s\n     (%s)", 400,
                   error ? error
                   : log ? log
                         : "no compiler",
                   file);
    free(log);
    return why;
}

void *emulate_open(const char *key, char *path, size_t size)
{
    static struct {
        char key[EMULATED_KEY];
        void *handle;
    } opened[1024];
    char file[PATH];
    (void)snprintf(path, size, "%s", key_path(file, key, "kernel.so"));
    uint32_t i = 0;
    while (i < COUNT_OF(opened) && opened[i].handle && strcmp(opened[i].key, key) != 0) i++;
    if (i == COUNT_OF(opened)) return dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (opened[i].handle) return opened[i].handle;
    memcpy(opened[i].key, key, sizeof opened[i].key);
    return opened[i].handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
}

/* ---- running ---- */

static void make_map(const cuda_map *m, const emulate_job *j, struct emulator_map *out)
{
    const void *base = m->is_out ? j->out_at[m->operand] : j->in_at[m->operand];
    *out = (struct emulator_map){ .magic = EMULATOR_MAP_MAGIC,
                                  .type = m->dtype,
                                  .rank = m->rank,
                                  .swizzle = m->swizzle,
                                  .is_im2col = m->is_im2col,
                                  .at = (uintptr_t)base,
                                  .pixels = m->pixels,
                                  .channels = m->channels };
    for (uint32_t i = 0; i < 5; i++) {
        out->dim[i] = (unsigned)m->dim[i];
        out->stride[i] = m->stride[i];
        out->box[i] = (unsigned short)m->box[i];
        out->step[i] = (unsigned short)m->step[i];
    }
    out->stride[0] = sinter_dtype_bits((sinter_dtype)m->dtype) / 8;
    memcpy(out->low, m->low, sizeof out->low);
    memcpy(out->high, m->high, sizeof out->high);
}
_Static_assert(sizeof(struct emulator_map) <= 128, "a tensor map has 128 bytes");

static const char *patch(const emulate_job *j, const cuda_record *r, uint8_t *args, const struct device_fault *fault)
{
    for (uint32_t i = 0; i < r->patch_count; i++) {
        const cuda_patch *p = &r->patch[i];
        uint64_t at = 0;
        const void *from = &at;
        size_t size = sizeof at;
        struct emulator_map map;
        uint8_t whole[128] = { 0 };
        const uint32_t step = STEP;
        switch (p->kind) {
        case PATCH_IN:
        case PATCH_OUT: {
            const bool is_in = p->kind == PATCH_IN;
            if (p->index >= (is_in ? j->problem->count_in : j->problem->count_out)) return "a patch names no operand";
            at = (uintptr_t)(is_in ? j->in_at[p->index] : j->out_at[p->index]);
            if (at) at += (uint64_t)(int64_t)p->offset;
            break;
        }
        case PATCH_WORKSPACE: at = (uintptr_t)j->workspace + (uint64_t)(int64_t)p->offset; break;
        case PATCH_FAULT: at = (uintptr_t)fault; break;
        case PATCH_STEP:
            from = &step;
            size = sizeof step;
            break;
        case PATCH_MAP:
            if (p->index >= r->map_count) return "a patch names no map";
            make_map(&r->map[p->index], j, &map);
            memcpy(whole, &map, sizeof map);
            from = whole;
            size = sizeof whole;
            break;
        default: return "a patch of no kind";
        }
        if (p->at + size > r->args_size) return "a patch lies beyond the arguments";
        memcpy(args + p->at, from, size);
    }
    return NULL;
}

static const char *run_launch(env *e, const emulate_job *j, const cuda_record *r, uint32_t index, uint8_t *args,
                              const runtime_region *region, uint32_t regions, char *why, size_t size)
{
    const cuda_launch *l = &r->at[index];
    if (!l->grid[0] || !l->grid[1] || !l->grid[2]) return NULL;
    emulated_code code;
    if (!emulate_code(e, j->kernel, j->problem, j->tactic, j->target, l->code, true, &code))
        return "a launch of no code";
    char path[PATH];
    if (!emulate_compile((const char(*)[EMULATED_KEY])code.key, 1, 1)) {
        void *object = emulate_open(code.key, path, sizeof path);
        if (!object) {
            (void)snprintf(why, size, "%s", dlerror());
            return why;
        }
        char name[96];
        (void)snprintf(name, sizeof name, "launch %u, %s", index, code.entry);
        runtime_launch x = { .name = name,
                             .object = object,
                             .object_path = path,
                             .entry = code.entry,
                             .grid = { l->grid[0], l->grid[1], l->grid[2] },
                             .block = l->block,
                             .cluster = l->cluster,
                             .shared = l->shared,
                             .param_count = l->param_count,
                             .region = region,
                             .region_count = regions,
                             .is_reversed = j->is_reversed,
                             .is_synchronous = j->target->isa < 80,
                             .seconds = j->seconds };
        if (l->shared > j->target->shared) return "more shared memory than the machine has";
        for (uint32_t i = 0; i < l->param_count; i++) {
            x.param[i] = args + l->param[i].at;
            x.param_size[i] = l->param[i].size;
        }
        return runtime_run(&x, why, size) ? NULL : why;
    }
    return emulate_log(code.key, why, size);
}

const char *emulate_run(env *e, emulate_job *j, char *why, size_t size)
{
    enum { CANARY = 64 };
    if (j->region_count >= REGIONS_MAX) return "more regions than there is room for";
    const size_t record_size = kernel_record_size(&j->kernel->base, j->problem, j->tactic);
    if (record_size != sizeof(cuda_record)) return "record_size is not that of a cuda_record";
    uint8_t *memory = aligned_alloc(64, record_size + CANARY);
    struct device_fault *fault = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (!memory || fault == MAP_FAILED) stop("hold", "a record");
    memset(memory, 0, record_size);
    memset(memory + record_size, 0xAB, CANARY);
    cuda_record *r = (cuda_record *)memory;
    const char *wrong = NULL;
    if (j->kernel->base.bind(e, j->problem, j->tactic, j->problem->attrs, j->in, j->out, r) != SINTER_OK) {
        (void)snprintf(why, size, "%s", e->error->text);
        wrong = why;
    }
    for (uint32_t i = 0; i < CANARY && !wrong; i++)
        if (memory[record_size + i] != 0xAB) wrong = "bind wrote beyond the record";
    if (!wrong && !r->count) wrong = "bind made no launch";
    runtime_region region[REGIONS_MAX] = { { "the fault", fault, 4096, false } };
    for (uint32_t i = 0; i < j->region_count; i++) region[i + 1] = j->region[i];
    _Alignas(64) uint8_t args[RECORD_ARGS];
    memcpy(args, r->args, sizeof args);
    if (!wrong) wrong = patch(j, r, args, fault);
    for (uint32_t i = 0; i < r->count && !wrong; i++)
        wrong = run_launch(e, j, r, i, args, region, j->region_count + 1, why, size);
    j->fault = *fault;
    (void)munmap(fault, 4096);
    free(memory);
    return wrong;
}
