/* SPDX-License-Identifier: Apache-2.0 */
/* NvUtils.h - functions of TensorRT 8 that move elements of weights. They give false where an argument is wrong. */
#ifndef NV_UTILS_H
#define NV_UTILS_H

#include "NvInfer.h"

namespace nvinfer1 {
namespace utils {

/* Weights of this shape with their axes in another order: axis i of `data` is axis order[i] of the weights. */
inline bool reshapeWeights(Weights const &input, int32_t const *shape, int32_t const *order, void *data,
                           int32_t nbDims) noexcept
{
    if (!input.values || !shape || !order || !data || nbDims < 1 || nbDims > Dims::MAX_DIMS) return false;
    const size_t bytes = sinter_dtype_bits(detail::from(input.type)) / 8;
    int64_t stride[Dims::MAX_DIMS], count = 1, size[Dims::MAX_DIMS], step[Dims::MAX_DIMS];
    uint32_t seen = 0;
    for (int32_t i = nbDims; i-- > 0; count *= shape[i]) {
        if (shape[i] < 0) return false;
        stride[i] = count;
    }
    for (int32_t i = 0; i < nbDims; i++) {
        if (order[i] < 0 || order[i] >= nbDims || seen >> order[i] & 1) return false;
        seen |= 1u << order[i];
        size[i] = shape[order[i]];
        step[i] = stride[order[i]];
    }
    if (count != input.count || bytes == 0) return false;
    for (int64_t at = 0; at < count; at++) {
        int64_t rest = at, from = 0;
        for (int32_t i = nbDims; i-- > 0; rest /= size[i]) from += rest % size[i] * step[i];
        std::memcpy(static_cast<char *>(data) + static_cast<size_t>(at) * bytes,
                    static_cast<char const *>(input.values) + static_cast<size_t>(from) * bytes, bytes);
    }
    return true;
}
/* `num` blocks of `size` bytes in another order: block i becomes what block order[i] was. */
inline bool reorderSubBuffers(void *input, int32_t const *order, int32_t num, int32_t size) noexcept
{
    if (!input || !order || num < 0 || size < 0) return false;
    for (int32_t i = 0; i < num; i++)
        if (order[i] < 0 || order[i] >= num) return false;
    const auto length = static_cast<size_t>(size);
    char *const first = static_cast<char *>(input);
    const std::vector<char> was(first, first + static_cast<size_t>(num) * length);
    for (int32_t i = 0; i < num; i++)
        std::memcpy(static_cast<char *>(input) + static_cast<size_t>(i) * length,
                    was.data() + static_cast<size_t>(order[i]) * length, length);
    return true;
}
/* Transposes `num` matrices of height * width elements, one behind the other. */
inline bool transposeSubBuffers(void *input, DataType type, int32_t num, int32_t height, int32_t width) noexcept
{
    if (!input || num < 0 || height < 0 || width < 0) return false;
    const int64_t count = static_cast<int64_t>(num) * height * width;
    const std::vector<char> was(static_cast<char *>(input),
                                static_cast<char *>(input) +
                                    static_cast<size_t>(count) * (sinter_dtype_bits(detail::from(type)) / 8));
    Weights all;
    all.type = type;
    all.values = was.data();
    all.count = count;
    const int32_t shape[] = { num, height, width }, order[] = { 0, 2, 1 };
    return count == 0 || reshapeWeights(all, shape, order, input, 3);
}

} // namespace utils
} // namespace nvinfer1

#endif
