/* SPDX-License-Identifier: Apache-2.0 */
/* calls.c - what kernels ask the runtime for (emulator.h): meeting each other, and work that is done later.
 *
 * Asynchronous work leaves NaN where its result will be and is done when somebody waits for it, or, for what arrives at
 * a barrier, when no thread can run. */
#include "runtime_state.h"

#include <stdlib.h>
#include <string.h>

/* ---- waiting ---- */

static void wait_as(fiber_state state, const char *file, int line)
{
    rt.current->state = state;
    rt.current->file = file;
    rt.current->line = line;
    runtime_give_way();
}

static void call_give_way(const char *file, int line)
{
    wait_as(FIBER_READY, file, line);
}

static void call_grid_wait(const char *file, int line)
{
    if (rt.current->has_waited) THREAD_FAIL("%s:%d: grid_wait() twice", runtime_base_name(file), line);
    rt.current->has_waited = true;
    wait_as(FIBER_IN_GRID_WAIT, file, line);
}

void runtime_open_named(block *b, uint32_t id)
{
    b->named[id].come = 0;
    const uint32_t first = b->rank * rt.threads;
    for (uint32_t i = first; i < first + rt.threads; i++)
        if (rt.fibers[i].state == FIBER_IN_SYNC && rt.fibers[i].named == id) rt.fibers[i].state = FIBER_READY;
}

static bool come_to(uint32_t id, uint32_t threads, const char *file, int line)
{
    fiber *f = rt.current;
    block *b = f->block;
    if (id >= NAMED) THREAD_FAIL("%s:%d: there are 16 barriers, this is %u", runtime_base_name(file), line, id);
    if (threads % 32 || threads > rt.threads)
        THREAD_FAIL("%s:%d: barrier %u for %u threads of %u", runtime_base_name(file), line, id, threads, rt.threads);
    const uint32_t wanted = threads ? threads : b->alive;
    if (b->named[id].come && threads && b->named[id].wanted != wanted)
        THREAD_FAIL("%s:%d: barrier %u for %u threads, others came for %u", runtime_base_name(file), line, id, wanted,
                    b->named[id].wanted);
    b->named[id].wanted = wanted;
    if (++b->named[id].come < wanted) return false;
    runtime_open_named(b, id);
    return true;
}

static void call_sync(unsigned id, unsigned threads, const char *file, int line)
{
    if (come_to(id, threads, file, line)) return;
    rt.current->named = id;
    wait_as(FIBER_IN_SYNC, file, line);
}

static void call_arrive(unsigned id, unsigned threads, const char *file, int line)
{
    (void)come_to(id, threads, file, line);
}

static unsigned char *shared_pointer(unsigned at, unsigned bytes, unsigned align)
{
    const uint32_t rank = at >> RANK_SHIFT, offset = (at & ((1u << RANK_SHIFT) - 1)) - SHARED_FROM;
    if (rank >= rt.cluster || offset > rt.l->shared || bytes > rt.l->shared - offset) {
        THREAD_FAIL("%u bytes of shared memory at 0x%x, %d from its start, which has %u", bytes, at, (int)offset,
                    rt.l->shared);
        return rt.blocks[0].shared;
    }
    if (offset % align) THREAD_FAIL("shared memory at offset %u is not aligned to %u bytes", offset, align);
    return rt.blocks[rank].shared + offset;
}

/* Descriptors do not say whose block they are of: their own. */
static unsigned char *own_pointer(unsigned at, unsigned bytes, unsigned align)
{
    return shared_pointer(rt.current->block->rank << RANK_SHIFT | at, bytes, align);
}

static bool is_due(const fiber *f, const product *x)
{
    return x->group + f->product_left < f->product_groups;
}

/* The products of a lane in all groups but the last that it leaves under way. A row of factors in registers is spread
 * over four lanes, which have issued the same products. */
static void do_products(const warp *w, uint32_t lane)
{
    const fiber *f = w->lane[lane];
    for (uint32_t i = 0; i < f->product_count; i++) {
        const product *x = &f->products[i];
        if (!is_due(f, x)) continue;
        warp_factors factors = { .a = x->a, .b = x->b };
        for (uint32_t k = 0; k < 4 && x->registers; k++) {
            const fiber *other = w->lane[(lane & ~3u) + k];
            if (i >= other->product_count || !other->products[i].registers) {
                THREAD_FAIL("lanes %u and %u have issued different products", lane, (lane & ~3u) + k);
                return;
            }
            factors.registers[k] = other->products[i].registers;
        }
        warp_product(x->kind, x->c, x->n, &factors, x->adds, f->seen.thread.x / 32, f->seen.thread.x % 32, own_pointer);
    }
}

static void forget_products(fiber *f)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < f->product_count; i++)
        if (!is_due(f, &f->products[i])) f->products[kept++] = f->products[i];
    f->product_count = kept;
    if (!kept) f->has_begun = false;
}

void runtime_run_collective(warp *w)
{
    if (warp_collective_is_whole(w->kind) && w->alive < 32) {
        THREAD_FAIL("%s:%d: %s needs 32 lanes, %u are left", runtime_base_name(w->file), w->line,
                    warp_collective_name(w->kind), w->alive);
        return;
    }
    for (uint32_t i = 0; i < 32 && w->kind == EMULATOR_PRODUCT_WAIT; i++) do_products(w, i);
    for (uint32_t i = 0; i < 32 && w->kind == EMULATOR_PRODUCT_WAIT; i++) forget_products(w->lane[i]);
    warp_collective_run(w->kind, w->lane, shared_pointer);
    w->come = 0;
    memset(w->lane, 0, sizeof w->lane);
}

void runtime_wake_warp(const warp *w)
{
    const uint32_t index = (uint32_t)(w - rt.warps), per = (rt.threads + 31) / 32;
    const uint32_t first = index / per * rt.threads + index % per * 32;
    for (uint32_t i = first; i < first + 32 && i < rt.fiber_count; i++)
        if (rt.fibers[i].warp == w && rt.fibers[i].state == FIBER_IN_COLLECTIVE) rt.fibers[i].state = FIBER_READY;
}

static void call_collective(enum emulator_collective kind, void *lane, const char *file, int line)
{
    fiber *f = rt.current;
    warp *w = f->warp;
    if (w->come && w->kind != kind) {
        THREAD_FAIL("%s:%d: a lane is in %s, others of its warp are in %s at %s:%d", runtime_base_name(file), line,
                    warp_collective_name(kind), warp_collective_name(w->kind), runtime_base_name(w->file), w->line);
    }
    w->kind = kind;
    w->file = file;
    w->line = line;
    static char nothing[1];
    w->lane[f->seen.thread.x & 31] = lane ? lane : nothing;
    if (++w->come < w->alive) {
        wait_as(FIBER_IN_COLLECTIVE, file, line);
        return;
    }
    runtime_run_collective(w);
    runtime_wake_warp(w);
}

/* ---- asynchronous copies ---- */

static void do_copies(fiber *f, uint32_t groups)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < f->copy_count; i++) {
        const copy c = f->copies[i];
        if (c.group >= groups) f->copies[kept++] = c;
        else if (c.is_valid) memcpy(c.dst, c.src, c.bytes);
        else memset(c.dst, 0, c.bytes);
    }
    f->copy_count = kept;
}

static void call_copy_async(unsigned dst, const void *src, unsigned bytes, unsigned valid)
{
    fiber *f = rt.current;
    unsigned char *to = shared_pointer(dst, bytes, bytes);
    if (valid && (uintptr_t)src % bytes) THREAD_FAIL("copy_async of %u bytes from %p is not aligned", bytes, src);
    if (valid) {
        /* Out of reach is out of reach now, not when the copy is done. */
        const volatile unsigned char *probe = src;
        (void)probe[0];
        (void)probe[bytes - 1];
    }
    if (f->copy_count == f->copy_room) {
        f->copy_room = f->copy_room ? 2 * f->copy_room : 64;
        f->copies = realloc(f->copies, f->copy_room * sizeof *f->copies);
        if (!f->copies) abort();
    }
    f->copies[f->copy_count++] =
        (copy){ .dst = to, .src = src, .bytes = bytes, .group = f->groups, .is_valid = valid != 0 };
    memset(to, 0xFF, bytes);
    if (rt.l->is_synchronous) do_copies(f, UINT32_MAX);
}

static void call_copy_commit(void)
{
    rt.current->groups++;
}

static void call_copy_wait(unsigned groups)
{
    fiber *f = rt.current;
    if (f->groups > groups) do_copies(f, f->groups - groups);
}

static event *event_add(void)
{
    if (rt.event_first + rt.event_count == rt.event_room) {
        if (rt.event_count) memmove(rt.events, rt.events + rt.event_first, rt.event_count * sizeof *rt.events);
        rt.event_first = 0;
        if (rt.event_count == rt.event_room) {
            rt.event_room = rt.event_room ? 2 * rt.event_room : 256;
            rt.events = realloc(rt.events, rt.event_room * sizeof *rt.events);
            if (!rt.events) abort();
        }
    }
    event *v = &rt.events[rt.event_first + rt.event_count++];
    *v = (event){ 0 };
    return v;
}

/* ---- barriers in shared memory ---- */

static phase_barrier *phase_of(unsigned bar)
{
    (void)shared_pointer(bar, 8, 8);
    block *b = &rt.blocks[bar >> RANK_SHIFT];
    for (uint32_t i = 0; i < b->phase_count; i++)
        if (b->phase[i].at == bar) return &b->phase[i];
    THREAD_FAIL("there is no barrier at offset %u of shared memory",
                (bar & ((1u << RANK_SHIFT) - 1)) - (uint32_t)SHARED_FROM);
    return &b->phase[0];
}

static void call_barrier_init(unsigned bar, unsigned count)
{
    (void)shared_pointer(bar, 8, 8);
    block *b = &rt.blocks[bar >> RANK_SHIFT];
    uint32_t i = 0;
    while (i < b->phase_count && b->phase[i].at != bar) i++;
    if (i == PHASES || !count) THREAD_FAIL("a barrier for %u arrivals, or more than %d barriers", count, PHASES);
    if (i == b->phase_count) b->phase_count++;
    b->phase[i] = (phase_barrier){ .at = bar, .count = count, .pending = count };
}

static void phase_check(phase_barrier *p)
{
    if (p->pending < 0) THREAD_FAIL("more than %u arrivals at a barrier in one phase", p->count);
    if (p->pending || p->bytes) return;
    p->phase++;
    p->pending = p->count;
}

static void call_barrier_arrive(unsigned bar, unsigned count, unsigned bytes)
{
    phase_barrier *p = phase_of(bar);
    p->bytes += bytes;
    p->pending -= count;
    phase_check(p);
}

static void call_barrier_expect(unsigned bar, unsigned bytes)
{
    phase_of(bar)->bytes += bytes;
}

bool runtime_has_passed(const phase_barrier *p, uint32_t parity)
{
    return (p->phase & 1) != parity;
}

static void call_barrier_wait(unsigned bar, unsigned parity, const char *file, int line)
{
    phase_barrier *p = phase_of(bar);
    if (parity > 1) THREAD_FAIL("%s:%d: a parity of %u", runtime_base_name(file), line, parity);
    if (runtime_has_passed(p, parity)) return;
    rt.current->phase = p;
    rt.current->parity = parity;
    wait_as(FIBER_IN_BARRIER, file, line);
}

static void call_barrier_arrive_copies(unsigned bar)
{
    (void)phase_of(bar);
    event *v = event_add();
    v->of = rt.current;
    v->block = rt.current->block;
    v->bar = bar;
    /* What follows belongs to later groups. */
    v->bytes = ++rt.current->groups;
}

static void call_copy_bulk(unsigned dst, const void *src, unsigned bytes, unsigned bar)
{
    (void)phase_of(bar);
    unsigned char *to = shared_pointer(dst, bytes, 16);
    if (bytes % 16 || (uintptr_t)src % 16)
        THREAD_FAIL("copy_bulk of %u bytes from %p: not in units of 16 bytes", bytes, src);
    const volatile unsigned char *probe = src;
    for (uint32_t i = 0; i < bytes; i += i + 16 < bytes && i + PAGE >= bytes ? bytes - 1 - i : PAGE) (void)probe[i];
    event *v = event_add();
    *v = (event){ .block = rt.current->block, .bar = bar, .bytes = bytes, .dst = to, .src = src };
    memset(to, 0xFF, bytes);
}

/* One element of a tensor into its place in the box, or out of it; zero where the tensor ends. */
static void copy_element(const event *v, const int64_t *at, uint32_t to)
{
    bool is_in = true;
    const struct emulator_map *m = &v->map;
    unsigned char *from = (unsigned char *)(uintptr_t)m->at;
    for (uint32_t i = 0; i < m->rank; i++) {
        is_in = is_in && at[i] >= 0 && at[i] < (int64_t)m->dim[i];
        if (is_in) from += (uint64_t)at[i] * m->stride[i];
    }
    /* CU_TENSOR_MAP_SWIZZLE_32B, 64B, 128B: units of 16 bytes exchanged by the bits above the line of 128 bytes. */
    const uint32_t mask = m->swizzle ? (1u << m->swizzle) - 1 : 0;
    unsigned char *dst = shared_pointer(to ^ (to >> 7 & mask) << 4, (uint32_t)m->stride[0], 1);
    if (v->is_out && is_in) memcpy(from, dst, (uint32_t)m->stride[0]);
    else if (v->is_out) return;
    else if (is_in) memcpy(dst, from, (uint32_t)m->stride[0]);
    else memset(dst, 0, (uint32_t)m->stride[0]);
}

static void copy_tile(const event *v)
{
    const struct emulator_map *m = &v->map;
    uint64_t count = 1;
    for (uint32_t i = 0; i < m->rank; i++) count *= m->box[i];
    for (uint64_t k = 0; k < count; k++) {
        int64_t at[5];
        uint64_t rest = k;
        for (uint32_t i = 0; i < m->rank; i++) {
            at[i] = v->at[i] + (int64_t)(rest % m->box[i]) * (m->step[i] ? m->step[i] : 1);
            rest /= m->box[i];
        }
        copy_element(v, at, v->to + (uint32_t)k * (uint32_t)m->stride[0]);
    }
}

/* Pixels run through the bounding box, innermost axis first, from where the copy begins. */
static void copy_pixels(const event *v)
{
    const struct emulator_map *m = &v->map;
    const uint32_t axes = m->rank - 2u;
    int64_t pixel[4];
    for (uint32_t i = 0; i <= axes; i++) pixel[i] = v->at[i + 1];
    for (uint32_t k = 0; k < m->pixels; k++) {
        int64_t at[5];
        for (uint32_t i = 0; i < axes; i++) at[i + 1] = pixel[i] + v->offset[i];
        at[axes + 1] = pixel[axes];
        for (uint32_t c = 0; c < m->channels; c++) {
            at[0] = v->at[0] + (int64_t)c;
            copy_element(v, at, v->to + (k * m->channels + c) * (uint32_t)m->stride[0]);
        }
        uint32_t i = 0;
        for (; i < axes; i++) {
            pixel[i] += m->step[i + 1] ? m->step[i + 1] : 1;
            if (pixel[i] < (int64_t)m->dim[i + 1] + m->high[i]) break;
            pixel[i] = m->low[i];
        }
        if (i == axes) pixel[axes]++;
    }
}

/* The map at `map`, and how many bytes a copy by it moves, in *bytes. */
static struct emulator_map map_of(const void *map, const unsigned short *offset, uint64_t *moved)
{
    struct emulator_map m;
    memcpy(&m, map, sizeof m);
    if (m.magic != EMULATOR_MAP_MAGIC || (uintptr_t)map % 64) THREAD_FAIL("there is no tensor map at %p", map);
    if (m.is_im2col != (offset != NULL)) THREAD_FAIL("a tensor map for the other kind of copy");
    uint64_t bytes = (uint32_t)m.stride[0];
    if (offset) bytes *= (uint64_t)m.pixels * m.channels;
    else
        for (uint32_t i = 0; i < m.rank; i++) bytes *= m.box[i];
    const uint32_t inner = offset ? m.channels : m.box[0];
    if (m.swizzle && inner * (uint32_t)m.stride[0] > 16u << m.swizzle)
        THREAD_FAIL("a box wider than its swizzled line");
    for (uint32_t i = 0; i < m.rank; i++)
        if (!offset && (!m.box[i] || m.box[i] > 256 || m.step[i] > 8))
            THREAD_FAIL("a tensor map with a box of %u in steps of %u", m.box[i], m.step[i]);
    if (inner * (uint32_t)m.stride[0] % 16) THREAD_FAIL("a box whose rows are no multiple of 16 bytes");
    if (m.at % 16) THREAD_FAIL("a tensor map over an address that is not 16-byte aligned");
    for (uint32_t i = 1; i < m.rank; i++)
        if (m.stride[i] % 16) THREAD_FAIL("a tensor map with a pitch of %llu bytes", m.stride[i]);
    *moved = bytes;
    return m;
}

static void call_copy_tensor(unsigned dst, const void *map, unsigned bar, const int *at, const unsigned short *offset)
{
    uint64_t bytes;
    (void)phase_of(bar);
    const struct emulator_map m = map_of(map, offset, &bytes);
    unsigned char *to = shared_pointer(dst, (unsigned)bytes, 128);
    const volatile unsigned char *probe = (const unsigned char *)(uintptr_t)m.at;
    (void)*probe;
    event *v = event_add();
    v->block = rt.current->block;
    v->bar = bar;
    v->bytes = (uint32_t)bytes;
    v->is_tensor = true;
    v->map = m;
    v->to = dst;
    memcpy(v->at, at, sizeof v->at);
    if (offset) memcpy(v->offset, offset, sizeof v->offset);
    memset(to, 0xFF, bytes);
}

/* ---- tensor copies out ---- */

static void call_copy_out(unsigned src, const void *map, const int *at)
{
    fiber *f = rt.current;
    uint64_t bytes;
    const struct emulator_map m = map_of(map, NULL, &bytes);
    (void)shared_pointer(src, (unsigned)bytes, 128);
    if (f->out_count == f->out_room) {
        f->out_room = f->out_room ? 2 * f->out_room : 16;
        f->outs = realloc(f->outs, f->out_room * sizeof *f->outs);
        if (!f->outs) abort();
    }
    event *v = &f->outs[f->out_count++];
    *v = (event){ .block = f->block, .bytes = f->out_groups, .map = m, .to = src, .is_out = true };
    memcpy(v->at, at, sizeof v->at);
}

static void call_copies_out_commit(void)
{
    rt.current->out_groups++;
}

static void call_copies_out_wait(unsigned groups)
{
    fiber *f = rt.current;
    uint32_t kept = 0;
    for (uint32_t i = 0; i < f->out_count; i++) {
        const event v = f->outs[i];
        if (v.bytes + groups >= f->out_groups) f->outs[kept++] = v;
        else copy_tile(&v);
    }
    f->out_count = kept;
}

void runtime_run_event(void)
{
    const event v = rt.events[rt.event_first++];
    rt.event_count--;
    phase_barrier *p = phase_of(v.bar);
    if (v.of) {
        do_copies(v.of, v.bytes);
        p->pending--;
    } else {
        runtime_set_open(true);
        if (!v.is_tensor) memcpy(v.dst, v.src ? v.src : v.value, v.bytes);
        else if (v.map.is_im2col) copy_pixels(&v);
        else copy_tile(&v);
        p->bytes -= v.bytes;
    }
    phase_check(p);
}

/* ---- products of warpgroups ---- */

static void call_product_begin(void)
{
    rt.current->has_begun = true;
}

static void add_product(product x)
{
    fiber *f = rt.current;
    if (!f->has_begun) THREAD_FAIL("a product without product_begin(), which orders the registers before it");
    if (f->product_count == f->product_room) {
        f->product_room = f->product_room ? 2 * f->product_room : 16;
        f->products = realloc(f->products, f->product_room * sizeof *f->products);
        if (!f->products) abort();
    }
    x.group = f->product_groups;
    f->products[f->product_count++] = x;
    if (!x.adds) memset(x.c, 0xFF, x.n / 2 * sizeof(float));
}

static void call_product(enum emulator_collective kind, void *c, unsigned n, unsigned long long a, unsigned long long b,
                         int adds)
{
    add_product((product){ .kind = kind, .c = c, .n = n, .a = a, .b = b, .adds = adds });
}

static void call_product_turned(enum emulator_collective kind, float *c, unsigned n, const unsigned *a,
                                unsigned long long b, int adds)
{
    const uint64_t unused = ~(0x3fffull | 0x3fffull << 16 | 0x3fffull << 32 | 3ull << 62);
    const uint32_t mode = (uint32_t)(b >> 62), start = (uint32_t)(b & 0x3fff) << 4;
    if (!mode) THREAD_FAIL("a turned operand that is not swizzled");
    if (b & unused) THREAD_FAIL("a descriptor with 0x%llx where it has nothing", (unsigned long long)(b & unused));
    if (start % (8 * (256u >> mode))) THREAD_FAIL("a turned operand at %u, inside a swizzle's pattern", start);
    if (n * 2 % (256u >> mode)) THREAD_FAIL("a turned operand of %u columns: no whole lines of its swizzle", n);
    add_product((product){ .kind = kind, .c = c, .n = n, .registers = a, .b = b, .adds = adds });
}

static void call_product_commit(void)
{
    rt.current->product_groups++;
}

static void call_product_wait(unsigned groups, const char *file, int line)
{
    rt.current->product_left = groups;
    call_collective(EMULATOR_PRODUCT_WAIT, rt.current, file, line);
}

/* ---- clusters ---- */

static void *call_cluster_map(const void *p, unsigned rank)
{
    const block *b = rt.current->block;
    const size_t offset = (size_t)((const unsigned char *)p - b->shared);
    if (rank >= rt.cluster || offset > rt.l->shared)
        THREAD_FAIL("cluster_map of offset %zu in block %u of %u", offset, rank, rt.cluster);
    return rt.blocks[rank].shared + offset;
}

static unsigned call_cluster_address(unsigned at, unsigned rank)
{
    if (rank >= rt.cluster) THREAD_FAIL("cluster_address of block %u of %u", rank, rt.cluster);
    return rank << RANK_SHIFT | (at & ((1u << RANK_SHIFT) - 1));
}

static void call_send_async(unsigned dst, const void *value, unsigned bytes, unsigned bar)
{
    (void)phase_of(bar);
    if (dst >> RANK_SHIFT != bar >> RANK_SHIFT) THREAD_FAIL("send_async to a block whose barrier is another block's");
    unsigned char *to = shared_pointer(dst, bytes, bytes);
    event *v = event_add();
    *v = (event){ .block = &rt.blocks[dst >> RANK_SHIFT], .bar = bar, .bytes = bytes, .dst = to };
    memcpy(v->value, value, bytes);
    memset(to, 0xFF, bytes);
}

void runtime_cluster_check(void)
{
    if (!rt.alive || rt.cluster_come < rt.alive) return;
    rt.cluster_come = 0;
    rt.cluster_phase++;
    for (uint32_t i = 0; i < rt.fiber_count; i++)
        if (rt.fibers[i].state == FIBER_IN_CLUSTER) rt.fibers[i].state = FIBER_READY;
}

static void call_cluster_arrive(void)
{
    rt.current->cluster_phase = rt.cluster_phase;
    rt.cluster_come++;
    runtime_cluster_check();
}

static void call_cluster_wait(const char *file, int line)
{
    if (rt.cluster_phase == rt.current->cluster_phase) wait_as(FIBER_IN_CLUSTER, file, line);
}

static unsigned call_shared_address(const void *p)
{
    for (uint32_t i = 0; i < rt.cluster; i++) {
        const size_t offset = (size_t)((const unsigned char *)p - rt.blocks[i].shared);
        if (offset <= rt.l->shared) return i << RANK_SHIFT | (unsigned)(offset + SHARED_FROM);
    }
    THREAD_FAIL("shared_address of %p, which is not in shared memory", p);
    return 0;
}

static void call_registers(unsigned count)
{
    if (count % 8 || count < 24 || count > 256)
        THREAD_FAIL("setmaxnreg of %u: 24 to 256 in steps of 8 are possible", count);
    rt.current->block->registers += (int64_t)count - runtime_registers();
}

static void call_fail(const char *why, const char *file, int line)
{
    THREAD_FAIL("%s:%d: %s", runtime_base_name(file), line, why);
}

const struct emulator_calls runtime_calls = {
    .collective = call_collective,
    .sync = call_sync,
    .arrive = call_arrive,
    .grid_wait = call_grid_wait,
    .give_way = call_give_way,
    .copy_async = call_copy_async,
    .copy_commit = call_copy_commit,
    .copy_wait = call_copy_wait,
    .shared_pointer = shared_pointer,
    .shared_address = call_shared_address,
    .cluster_map = call_cluster_map,
    .cluster_arrive = call_cluster_arrive,
    .cluster_wait = call_cluster_wait,
    .barrier_init = call_barrier_init,
    .barrier_arrive = call_barrier_arrive,
    .barrier_expect = call_barrier_expect,
    .barrier_wait = call_barrier_wait,
    .barrier_arrive_copies = call_barrier_arrive_copies,
    .copy_bulk = call_copy_bulk,
    .send_async = call_send_async,
    .cluster_address = call_cluster_address,
    .copy_tensor = call_copy_tensor,
    .copy_out = call_copy_out,
    .copies_out_commit = call_copies_out_commit,
    .copies_out_wait = call_copies_out_wait,
    .product_begin = call_product_begin,
    .product = call_product,
    .product_turned = call_product_turned,
    .product_commit = call_product_commit,
    .product_wait = call_product_wait,
    .registers = call_registers,
    .fail = call_fail,
};
