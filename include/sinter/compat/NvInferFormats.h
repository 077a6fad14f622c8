/* SPDX-License-Identifier: Apache-2.0 */
/* NvInferFormats.h - formats of inputs and outputs that are not row-major: the channels lie behind the other axes
 * (HWC), or in groups (CHW4). The engine's input or output has the shape of its memory. One more output of the engine,
 * whose name begins with a mark, says which format it is. Engines of the Python package have the same marks. */
#ifndef NV_INFER_FORMATS_H
#define NV_INFER_FORMATS_H

/* With C++14, what these headers have of C++17's language is an extension that needs no warning. */
#if __cplusplus < 201703L && defined __GNUC__
#pragma GCC system_header
#endif

#include "NvInferRuntimeBase.h"

namespace nvinfer1 {
namespace detail {

/* Begins the name of an engine's output that says the format of another input or output. */
inline constexpr char FORMAT_MARK[] = "[format] ";

struct format_row {
    TensorFormat format;
    char const *name;
    int64_t lanes;      /* channels that lie side by side */
    int32_t behind;     /* axes behind the channels in the shape */
    bool is_last;       /* all channels lie behind the other axes */
};
inline constexpr format_row FORMATS[] = {
#define SINTER_X(name, value, word, ...) { TensorFormat::k##name, #name, __VA_ARGS__ },
    SINTER_FORMAT_MAP(SINTER_X)
#undef SINTER_X
};

/* A format, and the channels of the tensor that has it. */
struct layout {
    format_row const *row;
    int64_t channels;

    int64_t padded() const { return (channels + row->lanes - 1) / row->lanes * row->lanes; }
    /* The sizes in memory of a tensor of this shape. */
    sinter::dims stored(sinter::dims const &shape) const
    {
        const size_t channel = at(shape.size());
        if (shape[channel] != channels)
            throw sinter::error(SINTER_INVALID_ARG, "axis " + std::to_string(channel) + " has size " +
                                                        std::to_string(shape[channel]) + ", the format k" + row->name +
                                                        " was built for " + std::to_string(channels) + " channels");
        sinter::dims made(shape.begin(), shape.begin() + static_cast<int64_t>(channel));
        if (!row->is_last) made.push_back(padded() / row->lanes);
        made.insert(made.end(), shape.begin() + static_cast<int64_t>(channel) + 1, shape.end());
        made.push_back(row->is_last ? padded() : row->lanes);
        return made;
    }
    /* The shape of a tensor that has these sizes in memory. */
    sinter::dims shown(sinter::dims const &stored_) const
    {
        sinter::dims made = stored_;
        made.pop_back();
        const auto channel = static_cast<int64_t>(at(stored_.size() - (row->is_last ? 0 : 1)));
        if (row->is_last) made.insert(made.begin() + channel, channels);
        else made[static_cast<size_t>(channel)] = channels;
        return made;
    }
    /* The strides of the shape's axes, in elements; in groups of channels where the format has groups. */
    sinter::dims strides(sinter::dims const &stored_) const
    {
        sinter::dims made(stored_.size());
        int64_t stride = 1;
        for (size_t i = stored_.size(); i-- > 0; stride *= stored_[i] > 0 ? stored_[i] : 1) made[i] = stride;
        const int64_t last = made.back();
        made.pop_back();
        if (row->is_last) made.insert(made.begin() + static_cast<int64_t>(at(stored_.size())), last);
        else
            for (int64_t &s : made) s /= row->lanes;
        return made;
    }
    /* The channels' axis of a shape of this rank. */
    size_t at(size_t rank) const { return rank - static_cast<size_t>(row->behind) - 1; }

    std::string mark(std::string const &name) const
    {
        return std::string(FORMAT_MARK) + row->name + " " + std::to_string(channels) + " " + name;
    }
};

/* The input or output that a mark speaks of, and its layout. */
inline std::pair<std::string, layout> read_mark(std::string const &mark)
{
    const size_t first = sizeof FORMAT_MARK - 1, second = mark.find(' ', first), third = mark.find(' ', second + 1);
    if (second != std::string::npos && third != std::string::npos)
        for (format_row const &row : FORMATS)
            if (mark.compare(first, second - first, row.name) == 0)
                return { mark.substr(third + 1), { &row, std::strtoll(mark.c_str() + second, nullptr, 10) } };
    throw sinter::error(SINTER_INCOMPATIBLE, "'" + mark + "' names no format that this header knows");
}

/* The layout of a tensor that may have one of these formats; nullptr as its row: the tensor is row-major. */
inline layout layout_of(std::string const &name, sinter::dims const &shape, TensorFormats formats)
{
    if (formats & 1u << static_cast<int>(TensorFormat::kLINEAR)) return { nullptr, 0 };
    for (format_row const &row : FORMATS) {
        const size_t behind = static_cast<size_t>(row.behind);
        if (!(formats >> static_cast<int>(row.format) & 1) || shape.size() <= behind) continue;
        const int64_t channels = shape[shape.size() - behind - 1];
        if (channels > 0) return { &row, channels };
    }
    std::string text;
    for (const int64_t size : shape) text += (text.empty() ? "" : ", ") + std::to_string(size);
    throw sinter::error(SINTER_UNSUPPORTED,
                        "tensor '" + name + "' of shape [" + text + "] has the allowed formats " +
                            std::to_string(formats) +
                            ", where kLINEAR is wanted, or a format with a known number of channels before its axes");
}

} // namespace detail
} // namespace nvinfer1

#endif
