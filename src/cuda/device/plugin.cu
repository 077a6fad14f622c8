/* SPDX-License-Identifier: Apache-2.0 */
/* plugin.cu - the kernel of a plugin, from the plugin's own text: generated.cuh holds the text, and names its __global__
 * function PLUGIN_KERNEL.
 *
 * That function becomes a device function, which this kernel calls with its parameters once the grids before it have
 * ended: a plugin's author need not know of the order of grids. Its names live in a namespace. */
#include "prelude.cuh"
#include "plugin_args.h"

#ifndef __CUDACC_RTC__
#pragma push_macro("__global__")
#endif
#undef __global__
#undef __launch_bounds__
#define __global__ __device__
#define __launch_bounds__(...)
namespace plugin_source {
#include "generated.cuh"
}
#undef __launch_bounds__
#undef __global__
#ifdef __CUDACC_RTC__
#define __global__ __attribute__((global))  /* NVRTC defines it so, and does not bring it back by pop_macro */
#else
#pragma pop_macro("__global__")
#endif

/* A word as a parameter of type T: addresses, integers, floats. */
template <class T> struct plugin_word { static __device__ __forceinline__ T of(u64 x) { return (T)x; } };
template <> struct plugin_word<float> { static __device__ __forceinline__ float of(u64 x) { return float_of_bits((u32)x); } };
template <> struct plugin_word<double> { static __device__ __forceinline__ double of(u64 x) { return double_of_bits(x); } };

template <int... I> struct plugin_places {};
template <int N, int... I> struct plugin_list { typedef typename plugin_list<N - 1, N - 1, I...>::type type; };
template <int... I> struct plugin_list<0, I...> { typedef plugin_places<I...> type; };

template <class... P, int... I>
DEVICE void plugin_call(void (*)(P...), const plugin_args &a, plugin_places<I...>)
{
    plugin_source::PLUGIN_KERNEL(plugin_word<P>::of(a.at[I])...);
}
template <class... P> DEVICE void plugin_begin(void (*f)(P...), const plugin_args &a)
{
    static_assert(sizeof...(P) <= PLUGIN_ARGS, "a plugin's kernel has too many parameters");
    plugin_call(f, a, typename plugin_list<sizeof...(P)>::type());
}

KERNEL void plugin(const __grid_constant__ plugin_args a)
{
    grid_wait();
    plugin_begin(&plugin_source::PLUGIN_KERNEL, a);
}
