/* SPDX-License-Identifier: Apache-2.0 */
/* NvInferPluginFields.h - the fields of a plugin with memory of their own, and as bytes. */
#ifndef NV_INFER_PLUGIN_FIELDS_H
#define NV_INFER_PLUGIN_FIELDS_H

/* With C++14, what these headers have of C++17's language is an extension that needs no warning. */
#if __cplusplus < 201703L && defined __GNUC__
#pragma GCC system_header
#endif

#include "NvInferRuntimePlugin.h"

#include <algorithm>
#include <deque>

namespace nvinfer1 {
namespace detail {

/* Fields as a creator takes them, with memory of their own. */
class field_list {
  public:
    void add(std::string const &name, PluginFieldType type, void const *data, size_t size, int32_t length)
    {
        names_.push_back(name);
        bytes_.emplace_back(static_cast<char const *>(data), size);
        fields_.emplace_back(names_.back().c_str(), bytes_.back().data(), type, length);
    }
    template <class T> void numbers(std::string const &name, PluginFieldType type, sinter_plugin_field const &f)
    {
        const bool is_real = f.type == SINTER_PLUGIN_REAL || f.type == SINTER_PLUGIN_REALS;
        std::vector<T> values;
        for (uint64_t i = 0; i < f.count; i++)
            values.push_back(is_real ? static_cast<T>(static_cast<double const *>(f.data)[i])
                                     : static_cast<T>(static_cast<int64_t const *>(f.data)[i]));
        add(name, type, values.data(), values.size() * sizeof(T), static_cast<int32_t>(f.count));
    }
    PluginFieldCollection get()
    {
        PluginFieldCollection made;
        made.nbFields = static_cast<int32_t>(fields_.size());
        made.fields = fields_.data();
        return made;
    }

  private:
    std::deque<std::string> names_, bytes_;
    std::vector<PluginField> fields_;
};

inline size_t size_of(PluginFieldType type)
{
    switch (type) {
    case PluginFieldType::kFLOAT64:
    case PluginFieldType::kINT64: return 8;
    case PluginFieldType::kFLOAT32:
    case PluginFieldType::kINT32: return 4;
    case PluginFieldType::kFLOAT16:
    case PluginFieldType::kINT16:
    case PluginFieldType::kBF16: return 2;
    case PluginFieldType::kDIMS: return sizeof(Dims);
    default: return 1;
    }
}
inline void put(std::string &to, void const *data, size_t size) { to.append(static_cast<char const *>(data), size); }
/* Fields of a plugin of version 3 as bytes: for each its type, its length, its name and its data. */
inline std::string to_bytes(PluginFieldCollection const *fc)
{
    std::string made;
    for (int32_t i = 0; fc && i < fc->nbFields; i++) {
        PluginField const &f = fc->fields[i];
        const std::string name = f.name ? f.name : "";
        const uint32_t head[3] = { static_cast<uint32_t>(f.type), static_cast<uint32_t>(f.length),
                                   static_cast<uint32_t>(name.size()) };
        put(made, head, sizeof head);
        made += name;
        put(made, f.data, static_cast<size_t>(f.length) * size_of(f.type));
    }
    return made;
}
inline void from_bytes(char const *at, size_t size, field_list &to)
{
    const char *const end = at + size;
    while (at != end) {
        uint32_t head[3];
        if (static_cast<size_t>(end - at) < sizeof head)
            throw sinter::error(SINTER_INVALID_MODEL, "fields are cut off");
        std::memcpy(head, at, sizeof head);
        at += sizeof head;
        const auto type = static_cast<PluginFieldType>(head[0]);
        const uint64_t data = static_cast<uint64_t>(head[1]) * size_of(type);
        if (head[2] > static_cast<uint64_t>(end - at) || data > static_cast<uint64_t>(end - at) - head[2])
            throw sinter::error(SINTER_INVALID_MODEL, "fields are cut off");
        to.add(std::string(at, head[2]), type, at + head[2], static_cast<size_t>(data), static_cast<int32_t>(head[1]));
        at += head[2] + data;
    }
}

} // namespace detail
} // namespace nvinfer1

#endif
