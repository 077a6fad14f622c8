// SPDX-License-Identifier: Apache-2.0
/* sinter plugin
 *   name    CuScale
 *   version 2
 *   kernel  cu_scale
 *   field   scale real 1
 *   input   x f32 [*]
 *   output  y f32 [*x]
 *   block   64
 *   grid    ceildiv(#x, 64)
 *   args    x, y, #x, scale:f32
 *
 * A test's plugin that is a CUDA source alone: y = x * scale. */
extern "C" __global__ void __launch_bounds__(64) cu_scale(const float *x, float *y, long long count, float scale)
{
    const long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count) y[i] = x[i] * scale;
}
