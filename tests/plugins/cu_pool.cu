// SPDX-License-Identifier: Apache-2.0
/* sinter plugin
 *   name   CuPool
 *   kernel cu_pool
 *   field  k int
 *   input  x f32 [N, C]
 *   input  w f32 [C]
 *   output y f32 [N, ceildiv(C, k)]
 *   output n f32 [min(N, C) + 1]
 *   block  32
 *   grid   ceildiv(ceildiv(C, k), 32), N
 *   args   x, w, y, n, N, C, k
 *
 * A test's plugin that is a CUDA source alone: sums of k weighted columns, and 0, 1, 2 ... */
extern "C" __global__ void cu_pool(const float *x, const float *w, float *y, float *n, int rows, int columns, int k)
{
    const int sums = (columns + k - 1) / k, j = (int)(blockIdx.x * blockDim.x + threadIdx.x), row = (int)blockIdx.y;
    if (row == 0 && blockIdx.x == 0)
        for (int i = (int)threadIdx.x; i < (rows < columns ? rows : columns) + 1; i += (int)blockDim.x) n[i] = (float)i;
    if (j >= sums) return;
    float sum = 0;
    for (int i = j * k; i < j * k + k && i < columns; i++) sum += x[row * columns + i] * w[i];
    y[row * sums + j] = sum;
}
