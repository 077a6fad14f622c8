/* SPDX-License-Identifier: Apache-2.0 */
/* os_cpu.c - which CPUs this process may use: affinity, cores, the limits of containers, NUMA nodes; and what their
 * caches hold.
 *
 * Two logical CPUs of one core share its arithmetic units, so one worker a core is as fast as two. The kernel says in
 * /sys which CPUs share a core. Where /sys says nothing each CPU counts as a core. */
#include "base/os.h"
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>
#if defined(__x86_64__)
#include <cpuid.h>
#endif

enum { CPUS_MOST = 8192 };

/* A short file of the kernel's, NUL-terminated; false where there is none. */
static bool small_read(const char *path, char *buffer, size_t size)
{
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) return false;
    const ssize_t got = read(fd, buffer, size - 1);
    (void)close(fd);
    if (got < 0) return false;
    buffer[got] = 0;
    return true;
}

/* CPUs' worth of time that "quota period" grants, rounded up; UINT_MAX where it grants all. */
static unsigned quota_cpus(long long quota, long long period)
{
    if (quota <= 0 || period <= 0) return UINT_MAX;
    const long long cpus = quota / period + (quota % period != 0);
    return cpus < 1 ? 1u : cpus > 65536 ? UINT_MAX : (unsigned)cpus;
}

static unsigned cgroup_cpus(void)
{
    char buffer[4096];
    char path[4096 + 64];
    long long quota = 0;
    long long period = 0;
    unsigned cpus = UINT_MAX;
    /* Version 1 has one place as containers see it; version 2 may limit at every level up to the root. */
    if (small_read("/sys/fs/cgroup/cpu/cpu.cfs_quota_us", buffer, sizeof buffer)) {
        quota = strtoll(buffer, NULL, 10);
        if (small_read("/sys/fs/cgroup/cpu/cpu.cfs_period_us", buffer, sizeof buffer))
            period = strtoll(buffer, NULL, 10);
        cpus = quota_cpus(quota, period);
    }
    char group[4096] = "";
    if (small_read("/proc/self/cgroup", buffer, sizeof buffer)) {
        const char *line = strstr(buffer, "0::/");
        if (line) (void)snprintf(group, sizeof group, "%.*s", (int)strcspn(line + 3, "\n"), line + 3);
    }
    for (;;) {
        (void)snprintf(path, sizeof path, "/sys/fs/cgroup%s/cpu.max", group);
        if (small_read(path, buffer, sizeof buffer) && sscanf(buffer, "%lld %lld", &quota, &period) == 2) {
            const unsigned here = quota_cpus(quota, period);
            if (here < cpus) cpus = here;
        }
        char *slash = strrchr(group, '/');
        if (!slash) return cpus;
        *slash = 0;
    }
}

/* The smallest number of a list such as "0-3,8,10-11" that is a member of `sets`; CPUS_MOST: none. */
static unsigned first_usable(const char *list, const cpu_set_t *sets, size_t size)
{
    unsigned first = CPUS_MOST;
    while (*list >= '0' && *list <= '9') {
        char *end = NULL;
        const unsigned long begin = strtoul(list, &end, 10), last = *end == '-' ? strtoul(end + 1, &end, 10) : begin;
        for (unsigned long i = begin; i <= last && i < first; i++)
            if (CPU_ISSET_S(i, size, sets)) first = (unsigned)i;
        list = *end == ',' ? end + 1 : end;
    }
    return first;
}

/* Is the CPU the first of its core that the process may use? */
static bool is_first_of_core(unsigned cpu, const cpu_set_t *sets, size_t size)
{
    char path[96], list[1024];
    (void)snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu%u/topology/thread_siblings_list", cpu);
    if (!small_read(path, list, sizeof list)) return true;
    const unsigned first = first_usable(list, sets, size);
    return first == cpu || first == CPUS_MOST;
}

unsigned os_core_list(uint32_t *cpu, unsigned most)
{
    cpu_set_t sets[CPUS_MOST / CPU_SETSIZE];
    unsigned count = 0;
    if (sched_getaffinity(0, sizeof sets, sets) != 0) return 0;
    for (unsigned i = 0; i < CPUS_MOST; i++) {
        if (!CPU_ISSET_S(i, sizeof sets, sets) || !is_first_of_core(i, sets, sizeof sets)) continue;
        if (count < most) cpu[count] = i;
        count++;
    }
    return count;
}

unsigned os_cpu_count(void)
{
    unsigned count = os_core_list(NULL, 0);
    if (!count) {
        const long online = sysconf(_SC_NPROCESSORS_ONLN);
        count = online > 0 ? (unsigned)online : 1;
    }
    const unsigned granted = cgroup_cpus();
    return granted < count ? granted : count;
}

void os_thread_pin(uint32_t cpu)
{
    cpu_set_t sets[CPUS_MOST / CPU_SETSIZE];
    if (cpu >= CPUS_MOST) return;
    CPU_ZERO_S(sizeof sets, sets);
    CPU_SET_S(cpu, sizeof sets, sets);
    (void)sched_setaffinity(0, sizeof sets, sets);
}

/* Bit i: node i has memory; nodes from 64 on are left out. */
static unsigned long long nodes_with_memory(void)
{
    char list[1024];
    unsigned long long nodes = 0;
    if (!small_read("/sys/devices/system/node/has_memory", list, sizeof list)) return 1;
    for (const char *at = list; *at >= '0' && *at <= '9';) {
        char *end = NULL;
        const unsigned long begin = strtoul(at, &end, 10), last = *end == '-' ? strtoul(end + 1, &end, 10) : begin;
        for (unsigned long i = begin; i <= last && i < 64; i++) nodes |= 1ull << i;
        at = *end == ',' ? end + 1 : end;
    }
    return nodes ? nodes : 1;
}

unsigned os_node_count(void)
{
    return (unsigned)__builtin_popcountll(nodes_with_memory());
}

void os_memory_spread(void *data, size_t size)
{
#ifdef SYS_mbind
    enum { INTERLEAVE = 3 }; /* MPOL_INTERLEAVE of linux/mempolicy.h, which not every system has */
    const unsigned long long nodes = size < (size_t)1 << 22 ? 1 : nodes_with_memory();
    const uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
    const uintptr_t first = ((uintptr_t)data + page - 1) / page * page, end = ((uintptr_t)data + size) / page * page;
    if (data && end > first && __builtin_popcountll(nodes) > 1)
        (void)syscall(SYS_mbind, first, end - first, INTERLEAVE, &nodes, 65, 0); /* 64 bits are read */
#else
    (void)data;
    (void)size;
#endif
}

uint32_t os_process_id(void)
{
    return (uint32_t)getpid();
}

/* ---- caches ---- */

enum { CACHE_LINE = 64 };

#if defined(__x86_64__)
/* CLFLUSHOPT, of 2015 and later, does not wait for the line before; CLFLUSH does. */
static bool evicts_in_any_order(void)
{
    const unsigned clflushopt = 1u << 23;
    unsigned a, b, c, d;
    return __get_cpuid_count(7, 0, &a, &b, &c, &d) && (b & clflushopt);
}

void os_memory_evict(const void *data, size_t size)
{
    const char *from = data, *line = from - (uintptr_t)from % CACHE_LINE;
    const bool is_free = evicts_in_any_order();
    for (; line < from + size; line += CACHE_LINE) {
        if (is_free) __asm__ volatile("clflushopt (%0)" ::"r"(line) : "memory");
        else __asm__ volatile("clflush (%0)" ::"r"(line) : "memory");
    }
    __asm__ volatile("mfence" ::: "memory");
}
#elif defined(__aarch64__)
void os_memory_evict(const void *data, size_t size)
{
    const char *from = data, *line = from - (uintptr_t)from % CACHE_LINE;
    for (; line < from + size; line += CACHE_LINE) __asm__ volatile("dc civac, %0" ::"r"(line) : "memory");
    __asm__ volatile("dsb ish" ::: "memory");
}
#else
void os_memory_evict(const void *data, size_t size)
{
    (void)data;
    (void)size;
}
#endif
