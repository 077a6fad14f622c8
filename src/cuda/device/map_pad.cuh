/* SPDX-License-Identifier: Apache-2.0 */
/* map_pad.cuh - pad. MODE: 0 constant, 1 reflect, 2 edge, 3 wrap. k[axis]: what comes before, k[MAP_AXES + axis]: cropped
 * before, k[2 * MAP_AXES + axis]: elements that are left of the axis. Operand 1: the value, or absent: zero. */

template <int V> DEVICE void map_value(const map_args &p, const i32 (&c)[RANK], i32 n, epi_acc (&v)[V])
{
    i64 from = 0;
    bool is_inside = true;
#pragma unroll
    for (int axis = 0; axis < RANK; axis++) {
        const i32 left = (i32)p.k[2 * MAP_AXES + axis];
        i32 at = c[axis] - (i32)p.k[axis];
        if (MODE == 0) {
            is_inside = is_inside && at >= 0 && at < left;
        } else if (MODE == 2 || left == 1) {
            at = at < 0 ? 0 : at >= left ? left - 1 : at;
        } else if (at < 0 || at >= left) {
            const i32 period = MODE == 3 ? left : 2 * (left - 1);
            at %= period;
            if (at < 0) at += period;
            if (at >= left) at = period - at;
        }
        from += (at + (i32)p.k[MAP_AXES + axis]) * p.in_step[0][axis];
    }
    in0_t x[V] = {};
    if (is_inside) {
        in0_vector<V>(p, from, n, x);
    } else {
#ifdef IN1_SIZE
        const in1_t fill = in1_at(p, 0);
#pragma unroll
        for (int k = 0; k < V; k++) x[k] = fill;
#endif
    }
#pragma unroll
    for (int k = 0; k < V; k++) v[k] = (epi_acc)x[k];
}
