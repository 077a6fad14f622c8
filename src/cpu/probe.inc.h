/* SPDX-License-Identifier: Apache-2.0 */
/* probe.inc.h - the loops of probe.h. Sums that do not wait for each other: as many as keep two units of a latency of
 * four busy, within the registers. */
#include "cpu/probe.h"

enum { PROBE_SUMS = VEC_REGISTERS >= 32 ? 16 : 10, PROBE_READS = 8 };

static float probe_sum(vec v)
{
    float lane[L], sum = 0;
    v_store(lane, v);
    for (int i = 0; i < L; i++) sum += lane[i];
    return sum;
}

static float probe_multiply(uint64_t turns)
{
    vec sum[PROBE_SUMS];
    const vec x = v_set(0.5f), y = v_set(0.25f);
    UNROLL for (int i = 0; i < PROBE_SUMS; i++) sum[i] = v_set((float)i);
    for (uint64_t t = 0; t < turns; t++) {
        UNROLL for (int i = 0; i < PROBE_SUMS; i++) sum[i] = v_fma(sum[i], x, y);
    }
    for (int i = 1; i < PROBE_SUMS; i++) sum[0] = v_add(sum[0], sum[i]);
    return probe_sum(sum[0]);
}

static float probe_read(const float *at, size_t count)
{
    vec sum[PROBE_READS];
    UNROLL for (int i = 0; i < PROBE_READS; i++) sum[i] = v_zero();
    for (const float *end = at + count; at < end; at += PROBE_READS * L) {
        UNROLL for (int i = 0; i < PROBE_READS; i++) sum[i] = v_add(sum[i], v_load(at + i * L));
    }
    for (int i = 1; i < PROBE_READS; i++) sum[0] = v_add(sum[0], sum[i]);
    return probe_sum(sum[0]);
}

static const probe_set probe_loops = {
    .multiply = probe_multiply, .read = probe_read, .width = PROBE_SUMS * L, .unit = PROBE_READS * L
};
