/* SPDX-License-Identifier: Apache-2.0 */
/* lanes.cuh - values of whole words, of any type, between the lanes of a warp; and exponentials of either precision. */
#ifndef LANES_CUH
#define LANES_CUH

#include "prelude.cuh"

template <class S> union lane_words {
    S value;
    u32 at[sizeof(S) / 4];
};

/* The value of the lane whose number differs in `mask`. */
template <class S> DEVICE S exchange(const S &value, u32 mask)
{
    lane_words<S> x;
    x.value = value;
#pragma unroll
    for (int k = 0; k < (int)(sizeof(S) / 4); k++) x.at[k] = shuffle_xor(x.at[k], mask);
    return x.value;
}

/* The value of lane `lane`. */
template <class S> DEVICE S from_lane(const S &value, u32 lane)
{
    lane_words<S> x;
    x.value = value;
#pragma unroll
    for (int k = 0; k < (int)(sizeof(S) / 4); k++) x.at[k] = shuffle(x.at[k], lane);
    return x.value;
}

DEVICE float exp_of(float x) { return expf(x); }
DEVICE double exp_of(double x) { return exp(x); }

#endif
