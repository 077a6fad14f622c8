/* SPDX-License-Identifier: Apache-2.0 */
/* strassen_pack.c - the right factors of Strassen's products. */
#include "cpu/gemm_core.h"
#include "cpu/level.h"
#include "cpu/strassen.h"

#include "base/env.h"
#include <string.h>

size_t strassen_pack_size(isa_level isa, gemm_tactic t, int64_t n, int64_t k)
{
    return size_mul(gemm_pack_size(isa, t, 1, k / 2, n / 2), STRASSEN_FACTORS);
}

void strassen_pack(isa_level isa, gemm_tactic t, int64_t n, int64_t k, const float *src, int64_t row_stride,
                   int64_t col_stride, float *dst)
{
    const int64_t n2 = n / 2, k2 = k / 2, right = n2 * col_stride, below = k2 * row_stride;
    const gemm_grid g = gemm_grid_of(level_of(isa)->gemm, t, 1, n2);
    const size_t each = gemm_pack_size(isa, t, 1, k2, n2) / sizeof(float);
    memset(dst, 0, each * STRASSEN_FACTORS * sizeof(float));
    for (int64_t panel = 0; panel < g.panels; panel++) {
        const int64_t col = panel * g.width, cols = n2 - col < g.width ? n2 - col : g.width;
        const int64_t width = (cols + g.lanes - 1) / g.lanes * g.lanes;
        float *to = dst + gemm_panel_at(&g, 1, k2, n2, panel);
        for (int64_t i = 0; i < k2; i++, to += width) {
            const float *from = src + i * row_stride + col * col_stride;
            for (int64_t j = 0; j < cols; j++, from += col_stride) {
                const double b11 = (double)from[0], b12 = (double)from[right], b21 = (double)from[below],
                             b22 = (double)from[below + right], t1 = b12 - b11, t2 = b22 - t1;
                const double factor[STRASSEN_FACTORS] = {
                    [F_B11] = b11, [F_B21] = b21, [F_T2] = t2,       [F_T3] = b22 - b12,
                    [F_T1] = t1,   [F_B22] = b22, [F_T4] = b21 - t2,
                };
                for (size_t f = 0; f < STRASSEN_FACTORS; f++) to[f * each + (size_t)j] = (float)factor[f];
            }
        }
    }
}
