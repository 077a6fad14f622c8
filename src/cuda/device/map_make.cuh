/* SPDX-License-Identifier: Apache-2.0 */
/* map_make.cuh - results of little or nothing. KIND: 0 trilu, 1 one_hot, 2 range, 3 eye_like. */

template <int V> DEVICE void map_value(const map_args &p, const i32 (&c)[RANK], i32 n, epi_acc (&v)[V])
{
#if KIND == 0
    /* k[0]: the diagonal; UPPER keeps columns from it on, else those up to it. */
    i64 from = 0;
#pragma unroll
    for (int axis = 0; axis < RANK; axis++) from += c[axis] * p.in_step[0][axis];
    const i64 cut = c[RANK - 2] + p.k[0];
    const bool is_kept = UPPER ? c[RANK - 1] >= cut : c[RANK - 1] <= cut;
    v[0] = is_kept ? (epi_acc)in0_at(p, from) : (epi_acc)0;
#elif KIND == 1
    i64 at = 0;
#pragma unroll
    for (int axis = 0; axis < RANK; axis++)
        if (axis != AXIS) at += c[axis] * p.in_step[0][axis < AXIS ? axis : axis - 1];
    const i64 depth = p.out_dim[AXIS];
    i64 pick = (i64)in0_at(p, at);
    if (pick < 0 && pick >= -depth) pick += depth;
    v[0] = (epi_acc)in1_at(p, pick == c[AXIS] ? p.in_step[1][0] : 0);
#elif KIND == 2
    if (IS_FLOAT) v[0] = (epi_acc)((double)in0_at(p, 0) + (double)c[0] * (double)in1_at(p, 0));
    else v[0] = (epi_acc)((u64)(i64)in0_at(p, 0) + (u64)c[0] * (u64)(i64)in1_at(p, 0));
#else
    v[0] = (epi_acc)(c[1] == c[0] + p.k[0]);
#endif
}
