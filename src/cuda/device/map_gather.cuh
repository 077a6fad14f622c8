/* SPDX-License-Identifier: Apache-2.0 */
/* map_gather.cuh - results that are elements of operand 0 at places that operand 1 names. An index that is out of range
 * gives zero. */

/* map_place: where in operand 0 the result at c is; `position` counts the indices in row-major order, for faults alone. */
#if MAP == MAP_GATHER
/* AXIS of the data; the indices have INDEX_RANK axes, which stand there in the result. */
DEVICE bool map_place(const map_args &p, const i32 (&c)[RANK], i64 &from)
{
    i64 at = 0, position = 0, index;
    from = 0;
#pragma unroll
    for (int axis = 0; axis < RANK; axis++) {
        if (axis < AXIS) {
            from += c[axis] * p.in_step[0][axis];
        } else if (axis < AXIS + INDEX_RANK) {
            at += c[axis] * p.in_step[1][axis - AXIS];
            position = position * p.in_dim[1][axis - AXIS] + c[axis];
        } else {
            from += c[axis] * p.in_step[0][axis - INDEX_RANK + 1];
        }
    }
    if (!map_index(p, (i64)in1_at(p, at), position, p.in_dim[0][AXIS], index)) return false;
    from += index * p.in_step[0][AXIS];
    return true;
}
#elif MAP == MAP_GATHER_ELEMENTS
DEVICE bool map_place(const map_args &p, const i32 (&c)[RANK], i64 &from)
{
    i64 at = 0, position = 0, index;
    from = 0;
#pragma unroll
    for (int axis = 0; axis < RANK; axis++) {
        at += c[axis] * p.in_step[1][axis];
        position = position * p.in_dim[1][axis] + c[axis];
        if (axis != AXIS) from += c[axis] * p.in_step[0][axis];
    }
    if (!map_index(p, (i64)in1_at(p, at), position, p.in_dim[0][AXIS], index)) return false;
    from += index * p.in_step[0][AXIS];
    return true;
}
#elif MAP == MAP_GATHER_ND
/* Tuples of TUPLE numbers for the axes from BATCH on; LEAD axes of the result are those of the tuples. */
DEVICE bool map_place(const map_args &p, const i32 (&c)[RANK], i64 &from)
{
    i64 at = 0, position = 0;
    from = 0;
#pragma unroll
    for (int axis = 0; axis < RANK; axis++) {
        if (axis < LEAD) {
            at += c[axis] * p.in_step[1][axis];
            position = position * p.in_dim[1][axis] + c[axis];
            if (axis < BATCH) from += c[axis] * p.in_step[0][axis];
        } else if (axis - LEAD + BATCH + TUPLE < MAP_AXES) {
            from += c[axis] * p.in_step[0][axis - LEAD + BATCH + TUPLE];
        }
    }
#pragma unroll
    for (int k = 0; k < TUPLE; k++) {
        i64 index;
        if (!map_index(p, (i64)in1_at(p, at + k * p.in_step[1][LEAD]), position * TUPLE + k, p.in_dim[0][BATCH + k],
                       index))
            return false;
        from += index * p.in_step[0][BATCH + k];
    }
    return true;
}
#else
/* Reversed along TIME up to a length that depends on BATCH. */
DEVICE bool map_place(const map_args &p, const i32 (&c)[RANK], i64 &from)
{
    i64 length = (i64)in1_at(p, c[BATCH] * p.in_step[1][0]);
    if (length < 0 || length > p.in_dim[0][TIME]) {
        report_fault(p.fault, p.step, c[BATCH], length, p.in_dim[0][TIME] + 1);
        length = 0;
    }
    from = 0;
#pragma unroll
    for (int axis = 0; axis < RANK; axis++) {
        const i64 at = axis == TIME && c[axis] < length ? length - 1 - c[axis] : c[axis];
        from += at * p.in_step[0][axis];
    }
    return true;
}
#endif

template <int V> DEVICE void map_value(const map_args &p, const i32 (&c)[RANK], i32 n, epi_acc (&v)[V])
{
    in0_t x[V] = {};
    i64 from;
    if (map_place(p, c, from)) in0_vector<V>(p, from, n, x);
#pragma unroll
    for (int k = 0; k < V; k++) v[k] = (epi_acc)x[k];
}
