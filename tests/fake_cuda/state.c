/* SPDX-License-Identifier: Apache-2.0 */
/* state.c - counting, failing, handles, memory. */
#include "fake_state.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAGIC = 0x0b1ec7ed };
static const char *const kind_names[FAKE_KINDS] = {
    "streams",  "events",      "libraries",          "kernels",         "graphs",  "nodes", "instantiated graphs",
    "contexts", "allocations", "pinned allocations", "pushed contexts", "programs"
};

typedef struct block {
    struct block *next;
    uint64_t at;
    size_t size;
    int device;
    bool is_host;
} block;
typedef struct call {
    const char *name;
    long count;
} call;
typedef struct context {
    fake_object o;
    long retained;
} context;

static struct {
    pthread_mutex_t lock;
    bool is_set;
    int devices, sm, units;
    size_t memory, used[DEVICES_MAX];
    bool launch_needs_context;
    uint32_t order;
    long calls, fail_at, misuse;
    CUresult fail_with;
    const char *failed, *fail_name;
    CUresult fail_name_with;
    call call[CALL_NAMES];
    long live[FAKE_KINDS];
    char misuse_text[256], live_text[256];
    block *blocks;
    context context[DEVICES_MAX];
    double clock_ns;
} state = { .lock = PTHREAD_MUTEX_INITIALIZER };

static _Thread_local struct {
    CUcontext at[16];
    int count;
} current;

static int from_env(const char *name, int otherwise)
{
    const char *value = getenv(name);
    return value && atoi(value) > 0 ? atoi(value) : otherwise;
}

/* Under the lock. */
static void set_up(void)
{
    if (state.is_set) return;
    state.is_set = true;
    state.devices = from_env("SINTER_FAKE_DEVICES", 2);
    if (state.devices > DEVICES_MAX) state.devices = DEVICES_MAX;
    state.sm = from_env("SINTER_FAKE_SM", 90);
    state.units = from_env("SINTER_FAKE_UNITS", 132);
    state.memory = (size_t)8 << 30;
    state.order = (uint32_t)from_env("SINTER_FAKE_ORDER", 1);
    for (int i = 0; i < DEVICES_MAX; i++) state.context[i].o = (fake_object){ MAGIC, FAKE_CONTEXT, i };
}

static void lock(void)
{
    pthread_mutex_lock(&state.lock);
    set_up();
}

static void unlock(void)
{
    pthread_mutex_unlock(&state.lock);
}

/* ---- counting and failing ---- */

static call *call_of(const char *name)
{
    for (int i = 0; i < CALL_NAMES; i++) {
        if (!state.call[i].name) state.call[i].name = name;
        if (!strcmp(state.call[i].name, name)) return &state.call[i];
    }
    abort();
}

CUresult fake_enter(const char *name)
{
    CUresult r = CUDA_SUCCESS;
    lock();
    state.calls++;
    call_of(name)->count++;
    if (state.fail_at && --state.fail_at == 0) r = state.fail_with;
    if (state.fail_name && !strcmp(state.fail_name, name)) r = state.fail_name_with;
    if (r != CUDA_SUCCESS) state.failed = name;
    unlock();
    return r;
}

CUresult fake_wrong(CUresult r, const char *format, ...)
{
    char line[256];
    va_list args;
    va_start(args, format);
    (void)vsnprintf(line, sizeof line, format, args);
    va_end(args);
    lock();
    if (!state.misuse++) memcpy(state.misuse_text, line, sizeof line);
    unlock();
    (void)fprintf(stderr, "fake cuda: %s\n", line);
    return r;
}

void fake_set_devices(int count, int sm)
{
    lock();
    state.devices = count;
    state.sm = sm;
    unlock();
}

void fake_set_memory(size_t bytes)
{
    lock();
    state.memory = bytes;
    unlock();
}

void fake_set_launch_needs_context(bool needs)
{
    lock();
    state.launch_needs_context = needs;
    unlock();
}

bool fake_wants_context(void)
{
    return state.launch_needs_context;
}

void fake_set_order(uint32_t seed)
{
    lock();
    state.order = seed;
    unlock();
}

uint32_t fake_order(void)
{
    return state.order;
}

long fake_calls(const char *name)
{
    lock();
    const long count = name ? call_of(name)->count : state.calls;
    unlock();
    return count;
}

void fake_fail_at(long n, CUresult r)
{
    lock();
    state.fail_at = n;
    state.fail_with = r;
    state.failed = NULL;
    unlock();
}

void fake_fail_calls(const char *name, CUresult r)
{
    lock();
    state.fail_name = name;
    state.fail_name_with = r;
    state.failed = NULL;
    unlock();
}

const char *fake_failed(void)
{
    return state.failed;
}

long fake_misuse(void)
{
    return state.misuse;
}

const char *fake_misuse_text(void)
{
    return state.misuse ? state.misuse_text : "";
}

int fake_sm(void)
{
    return state.sm;
}

int fake_units(void)
{
    return state.units;
}

void fake_clock_add(double ns)
{
    lock();
    state.clock_ns += ns;
    unlock();
}

double fake_clock(void)
{
    return state.clock_ns;
}

void fake_reset(void)
{
    lock();
    state.is_set = false;
    set_up();
    state.launch_needs_context = false;
    state.calls = state.fail_at = state.misuse = 0;
    state.failed = state.fail_name = NULL;
    memset(state.call, 0, sizeof state.call);
    state.clock_ns = 0;
    unlock();
    fake_code_reset();
    fake_graph_reset();
}

/* ---- objects ---- */

void fake_count(fake_kind kind, int by)
{
    lock();
    state.live[kind] += by;
    unlock();
}

long fake_live(void)
{
    long sum = 0;
    lock();
    for (int i = 0; i < FAKE_KINDS; i++) sum += state.live[i];
    unlock();
    return sum;
}

const char *fake_live_text(void)
{
    lock();
    size_t length = 0;
    state.live_text[0] = 0;
    for (int i = 0; i < FAKE_KINDS; i++)
        if (state.live[i] && length < sizeof state.live_text)
            length += (size_t)snprintf(state.live_text + length, sizeof state.live_text - length, "%s%ld %s",
                                       length ? ", " : "", state.live[i], kind_names[i]);
    unlock();
    return state.live_text;
}

void *fake_make(fake_kind kind, size_t size)
{
    fake_object *o = calloc(1, size);
    if (!o) abort();
    *o = (fake_object){ MAGIC, kind, fake_current() };
    fake_count(kind, 1);
    return o;
}

void fake_drop(void *object)
{
    fake_object *o = object;
    fake_count(o->kind, -1);
    o->magic = 0;
    free(o);
}

bool fake_is(const void *object, fake_kind kind)
{
    const fake_object *o = object;
    return o && o->magic == MAGIC && o->kind == kind;
}

/* ---- contexts ---- */

bool fake_is_device(int device)
{
    return device >= 0 && device < state.devices;
}

/* Other threads may retain and release it now. */
static bool is_retained(const context *c)
{
    return __atomic_load_n(&c->retained, __ATOMIC_RELAXED) != 0;
}

int fake_current(void)
{
    return current.count ? ((const context *)(const void *)current.at[current.count - 1])->o.device : -1;
}

CUresult fake_cuDevicePrimaryCtxRetain(CUcontext *out, CUdevice device);
CUresult fake_cuDevicePrimaryCtxRelease(CUdevice device);
CUresult fake_cuCtxPushCurrent(CUcontext c);
CUresult fake_cuCtxPopCurrent(CUcontext *out);
CUresult fake_cuCtxSetCurrent(CUcontext c);
CUresult fake_cuCtxGetCurrent(CUcontext *out);

CUresult fake_cuDevicePrimaryCtxRetain(CUcontext *out, CUdevice device)
{
    CALL("cuDevicePrimaryCtxRetain");
    if (!fake_is_device(device)) return fake_wrong(CUDA_ERROR_INVALID_DEVICE, "device %d is retained", device);
    fake_count(FAKE_CONTEXT, 1);
    __atomic_fetch_add(&state.context[device].retained, 1, __ATOMIC_RELAXED);
    *out = (CUcontext)(void *)&state.context[device];
    return CUDA_SUCCESS;
}

CUresult fake_cuDevicePrimaryCtxRelease(CUdevice device)
{
    const CUresult injected = fake_enter("cuDevicePrimaryCtxRelease");
    if (!fake_is_device(device) || !is_retained(&state.context[device]))
        return fake_wrong(CUDA_ERROR_INVALID_CONTEXT, "device %d is released and was not retained", device);
    __atomic_fetch_sub(&state.context[device].retained, 1, __ATOMIC_RELAXED);
    fake_count(FAKE_CONTEXT, -1);
    return injected;
}

CUresult fake_cuCtxPushCurrent(CUcontext c)
{
    CALL("cuCtxPushCurrent");
    if (!fake_is(c, FAKE_CONTEXT) || !is_retained((const context *)(const void *)c) || current.count == 16)
        return fake_wrong(CUDA_ERROR_INVALID_CONTEXT, "a context is pushed that is none, or too many are");
    current.at[current.count++] = c;
    fake_count(FAKE_PUSH, 1);
    return CUDA_SUCCESS;
}

CUresult fake_cuCtxPopCurrent(CUcontext *out)
{
    const CUresult injected = fake_enter("cuCtxPopCurrent");
    if (!current.count) return fake_wrong(CUDA_ERROR_INVALID_CONTEXT, "a context is popped where there is none");
    *out = current.at[--current.count];
    fake_count(FAKE_PUSH, -1);
    return injected;
}

CUresult fake_cuCtxSetCurrent(CUcontext c)
{
    CALL("cuCtxSetCurrent");
    if (c && !fake_is(c, FAKE_CONTEXT)) return fake_wrong(CUDA_ERROR_INVALID_CONTEXT, "what is no context is set");
    if (current.count) fake_count(FAKE_PUSH, -1), current.count--;
    if (c) current.at[current.count++] = c, fake_count(FAKE_PUSH, 1);
    return CUDA_SUCCESS;
}

CUresult fake_cuCtxGetCurrent(CUcontext *out)
{
    CALL("cuCtxGetCurrent");
    *out = current.count ? current.at[current.count - 1] : NULL;
    return CUDA_SUCCESS;
}

/* ---- profilers ---- */

static int is_recorded;

/* SINTER_FAKE_PROFILE names a file that says what was launched inside. */
static CUresult record(bool is_on)
{
    static long before;
    const char *path = getenv("SINTER_FAKE_PROFILE");
    if (fake_current() < 0) return fake_wrong(CUDA_ERROR_INVALID_CONTEXT, "a profiler is told without a context");
    if (is_on == (__atomic_exchange_n(&is_recorded, is_on, __ATOMIC_RELAXED) != 0))
        return fake_wrong(CUDA_ERROR_INVALID_VALUE, "a profiler is %s twice", is_on ? "started" : "stopped");
    const long now = fake_calls("cuGraphLaunch");
    FILE *to = path && !is_on ? fopen(path, "ae") : NULL;
    if (to) (void)fprintf(to, "%ld launches\n", now - before), (void)fclose(to);
    before = now;
    return CUDA_SUCCESS;
}

CUresult fake_cuProfilerStart(void);
CUresult fake_cuProfilerStop(void);

CUresult fake_cuProfilerStart(void)
{
    CALL("cuProfilerStart");
    return record(true);
}

CUresult fake_cuProfilerStop(void)
{
    CALL("cuProfilerStop");
    return record(false);
}

/* ---- memory ---- */

static CUresult take(uint64_t *at, size_t size, bool is_host)
{
    const int device = fake_current();
    if (device < 0) return fake_wrong(CUDA_ERROR_INVALID_CONTEXT, "memory is allocated without a current context");
    if (!size) return fake_wrong(CUDA_ERROR_INVALID_VALUE, "0 bytes are allocated");
    lock();
    const bool has_room = is_host || (size <= state.memory && state.used[device] <= state.memory - size);
    unlock();
    if (!has_room) return CUDA_ERROR_OUT_OF_MEMORY;
    block *b = malloc(sizeof *b);
    void *bytes = aligned_alloc(256, (size + 255) / 256 * 256);
    if (!b || !bytes) {
        free(b);
        free(bytes);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    memset(bytes, 0xa5, size); /* nobody may count on zeros */
    *at = (uint64_t)(uintptr_t)bytes;
    lock();
    *b = (block){ state.blocks, *at, size, device, is_host };
    state.blocks = b;
    if (!is_host) state.used[device] += size;
    unlock();
    fake_count(is_host ? FAKE_HOST : FAKE_MEMORY, 1);
    return CUDA_SUCCESS;
}

static CUresult give(uint64_t at, bool is_host)
{
    lock();
    block **b = &state.blocks;
    while (*b && ((*b)->at != at || (*b)->is_host != is_host)) b = &(*b)->next;
    block *found = *b;
    if (found) {
        *b = found->next;
        if (!is_host) state.used[found->device] -= found->size;
    }
    unlock();
    if (!found) return fake_wrong(CUDA_ERROR_INVALID_VALUE, "memory is freed that was not allocated");
    free((void *)(uintptr_t)at);
    free(found);
    fake_count(is_host ? FAKE_HOST : FAKE_MEMORY, -1);
    return CUDA_SUCCESS;
}

bool fake_in_memory(uint64_t at, size_t size)
{
    lock();
    const block *b = state.blocks;
    while (b && (at < b->at || at + size > b->at + b->size)) b = b->next;
    const bool is_in = b && !b->is_host;
    unlock();
    return is_in;
}

CUresult fake_cuMemAlloc(CUdeviceptr *at, size_t size);
CUresult fake_cuMemFree(CUdeviceptr at);
CUresult fake_cuMemAllocHost(void **at, size_t size);
CUresult fake_cuMemHostAlloc(void **at, size_t size, unsigned flags);
CUresult fake_cuMemFreeHost(void *at);
CUresult fake_cuMemGetInfo(size_t *free_size, size_t *total);
CUresult fake_cuPointerGetAttribute(void *value, CUpointer_attribute which, CUdeviceptr at);

CUresult fake_cuMemAlloc(CUdeviceptr *at, size_t size)
{
    CALL("cuMemAlloc");
    uint64_t found = 0;
    const CUresult r = take(&found, size, false);
    if (r == CUDA_SUCCESS) *at = found;
    return r;
}

CUresult fake_cuMemFree(CUdeviceptr at)
{
    const CUresult injected = fake_enter("cuMemFree"), r = give(at, false);
    return r == CUDA_SUCCESS ? injected : r;
}

static CUresult take_host(void **at, size_t size)
{
    uint64_t found = 0;
    const CUresult r = take(&found, size, true);
    if (r == CUDA_SUCCESS) *at = (void *)(uintptr_t)found;
    return r;
}

CUresult fake_cuMemAllocHost(void **at, size_t size)
{
    CALL("cuMemAllocHost");
    return take_host(at, size);
}

CUresult fake_cuMemHostAlloc(void **at, size_t size, unsigned flags)
{
    CALL("cuMemHostAlloc");
    if (flags > 7) return fake_wrong(CUDA_ERROR_INVALID_VALUE, "host memory with flags %u", flags);
    return take_host(at, size);
}

CUresult fake_cuMemFreeHost(void *at)
{
    const CUresult injected = fake_enter("cuMemFreeHost"), r = give((uint64_t)(uintptr_t)at, true);
    return r == CUDA_SUCCESS ? injected : r;
}

CUresult fake_cuMemGetInfo(size_t *free_size, size_t *total)
{
    CALL("cuMemGetInfo");
    const int device = fake_current();
    if (device < 0) return fake_wrong(CUDA_ERROR_INVALID_CONTEXT, "memory is asked for without a current context");
    lock();
    *total = state.memory;
    *free_size = state.memory - state.used[device];
    unlock();
    return CUDA_SUCCESS;
}

CUresult fake_cuPointerGetAttribute(void *value, CUpointer_attribute which, CUdeviceptr at)
{
    CALL("cuPointerGetAttribute");
    lock();
    const block *b = state.blocks;
    while (b && (at < b->at || at >= b->at + b->size)) b = b->next;
    const block found = b ? *b : (block){ 0 };
    unlock();
    if (!b) return CUDA_ERROR_INVALID_VALUE;
    switch (which) {
    case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
        *(unsigned *)value = found.is_host ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE;
        return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL: *(int *)value = found.device; return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_IS_MANAGED: *(unsigned *)value = 0; return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR: *(CUdeviceptr *)value = found.at; return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_RANGE_SIZE: *(size_t *)value = found.size; return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_CONTEXT:
        *(CUcontext *)value = (CUcontext)(void *)&state.context[found.device];
        return CUDA_SUCCESS;
    }
    return CUDA_ERROR_INVALID_VALUE;
}
