/* SPDX-License-Identifier: Apache-2.0 */
/* NvInferPluginShipped.h - the plugins that upstream ships and that are operators of sinter: their creators, and
 * plugins that hold the fields which a program gave. INetworkDefinition::addPluginV2 and addPluginV3 make an operator
 * of such a plugin, so an engine does not need the creator. Included by NvInferPluginAdapter.h. */
#ifndef NV_INFER_PLUGIN_SHIPPED_H
#define NV_INFER_PLUGIN_SHIPPED_H

#include "NvInferPluginFields.h"
#include "NvInferTables.h"

#include <map>

namespace nvinfer1 {
namespace detail {

struct shipped_field {
    char const *name;
    PluginFieldType type;
    uint32_t count; /* elements; 0: weights of any number */
};
struct shipped_kind {
    char const *name, *versions_v2, *versions_v3; /* each character is a version */
    int32_t outputs;
    std::vector<shipped_field> fields;
};
inline std::vector<shipped_kind> const &shipped_kinds()
{
#define SHIPPED_INT(name, count) { #name, PluginFieldType::kINT32, count },
#define SHIPPED_FLOAT(name, count) { #name, PluginFieldType::kFLOAT32, count },
#define SHIPPED_KIND(name, v2, v3, outputs, fields) { #name, v2, v3, outputs, { fields } },
    static const std::vector<shipped_kind> kinds = { SINTER_SHIPPED_PLUGINS(SHIPPED_KIND, SHIPPED_INT, SHIPPED_FLOAT) };
#undef SHIPPED_INT
#undef SHIPPED_FLOAT
#undef SHIPPED_KIND
    return kinds;
}

/* The elements of a field as numbers. */
inline std::vector<double> numbers_of(PluginField const &f, std::string const &kind)
{
    const auto read = [&](auto sample) {
        using T = decltype(sample);
        const auto *at = static_cast<T const *>(f.data);
        return std::vector<double>(at, at + std::max(f.length, 1));
    };
    if (!f.data || f.length < 0)
        throw sinter::error(SINTER_INVALID_ARG, "field '" + std::string(f.name) + "' of " + kind + " has no data");
    switch (f.type) {
    case PluginFieldType::kFLOAT32: return read(float());
    case PluginFieldType::kFLOAT64: return read(double());
    case PluginFieldType::kINT8: return read(int8_t());
    case PluginFieldType::kINT16: return read(int16_t());
    case PluginFieldType::kINT32: return read(int32_t());
    case PluginFieldType::kINT64: return read(int64_t());
    default:
        throw sinter::error(SINTER_INVALID_ARG,
                            "field '" + std::string(f.name) + "' of " + kind + " has the PluginFieldType " +
                                std::to_string(static_cast<int>(f.type)) + ", kFLOAT32 or kINT32 is wanted");
    }
}

/* The fields that a program gave to a plugin, in the types that the kind has. */
class shipped_plugin {
  public:
    shipped_plugin(shipped_kind const &kind, std::string version, std::string space, PluginFieldCollection const *fc)
        : kind_(kind), version_(std::move(version)), space_(std::move(space))
    {
        std::map<std::string, std::vector<double>> given;
        for (int32_t i = 0; fc && i < fc->nbFields; i++) take(fc->fields[i], given);
        for (shipped_field const &f : kind.fields) {
            auto const found = given.find(f.name);
            if (found == given.end()) continue;
            if (f.type == PluginFieldType::kFLOAT32) store<float>(f, found->second);
            else store<int32_t>(f, found->second);
        }
        listed_ = values_.get();
        bytes_ = to_bytes(&listed_);
    }
    shipped_plugin(shipped_plugin const &) = delete;
    shipped_plugin &operator=(shipped_plugin const &) = delete;
    virtual ~shipped_plugin() = default;
    shipped_kind const &kind() const { return kind_; }
    /* In the order of kind().fields. */
    PluginFieldCollection const &values() const { return listed_; }

  protected:
    shipped_kind const &kind_;
    std::string version_, space_;
    field_list values_;
    PluginFieldCollection listed_;
    std::string bytes_;

  private:
    void take(PluginField const &f, std::map<std::string, std::vector<double>> &to) const
    {
        const std::string name = f.name ? f.name : "", kind = kind_.name;
        if (name == "plugin_version" || name == "plugin_namespace") return;
        const auto at = std::find_if(kind_.fields.begin(), kind_.fields.end(),
                                     [&](shipped_field const &one) { return name == one.name; });
        if (at == kind_.fields.end()) {
            std::string known;
            for (shipped_field const &one : kind_.fields) known += (known.empty() ? "" : ", ") + std::string(one.name);
            throw sinter::error(SINTER_INVALID_ARG,
                                kind + " has no field '" + name + "': " + (known.empty() ? "it has none" : known));
        }
        std::vector<double> given = numbers_of(f, kind);
        if (at->count && given.size() != at->count)
            throw sinter::error(SINTER_INVALID_ARG, "field '" + name + "' of " + kind + " has " +
                                                        std::to_string(given.size()) + " elements, " +
                                                        std::to_string(at->count) + " is wanted");
        to[name] = std::move(given);
    }
    template <class T> void store(shipped_field const &to, std::vector<double> const &given)
    {
        std::vector<T> kept;
        for (const double v : given) kept.push_back(static_cast<T>(v));
        values_.add(to.name, to.type, kept.data(), kept.size() * sizeof(T), static_cast<int32_t>(kept.size()));
    }
};

/* A network never asks such a plugin for shapes or results: the operator has its own. A program that asks gets none. */
class shipped_plugin_v2 : public shipped_plugin, public IPluginV2DynamicExt {
  public:
    using shipped_plugin::shipped_plugin;
    AsciiChar const *getPluginType() const noexcept override { return kind_.name; }
    AsciiChar const *getPluginVersion() const noexcept override { return version_.c_str(); }
    int32_t getNbOutputs() const noexcept override { return kind_.outputs; }
    int32_t initialize() noexcept override { return 0; }
    void terminate() noexcept override {}
    size_t getSerializationSize() const noexcept override { return bytes_.size(); }
    void serialize(void *to) const noexcept override { std::memcpy(to, bytes_.data(), bytes_.size()); }
    void destroy() noexcept override { delete this; }
    void setPluginNamespace(AsciiChar const *space) noexcept override { space_ = space ? space : ""; }
    AsciiChar const *getPluginNamespace() const noexcept override { return space_.c_str(); }
    IPluginV2DynamicExt *clone() const noexcept override
    {
        return new shipped_plugin_v2(kind_, version_, space_, &listed_);
    }
    DataType getOutputDataType(int32_t, DataType const *types, int32_t count) const noexcept override
    {
        return count > 0 ? types[0] : DataType::kFLOAT;
    }
    DimsExprs getOutputDimensions(int32_t, DimsExprs const *, int32_t, IExprBuilder &) noexcept override { return {}; }
    bool supportsFormatCombination(int32_t pos, PluginTensorDesc const *io, int32_t, int32_t) noexcept override
    {
        return io[pos].format == TensorFormat::kLINEAR;
    }
    void configurePlugin(DynamicPluginTensorDesc const *, int32_t, DynamicPluginTensorDesc const *,
                         int32_t) noexcept override
    {
    }
    size_t getWorkspaceSize(PluginTensorDesc const *, int32_t, PluginTensorDesc const *,
                            int32_t) const noexcept override
    {
        return 0;
    }
    int32_t enqueue(PluginTensorDesc const *, PluginTensorDesc const *, void const *const *, void *const *, void *,
                    cudaStream_t) noexcept override
    {
        return -1;
    }
};

class shipped_plugin_v3 : public shipped_plugin,
                          public IPluginV3,
                          public IPluginV3OneCore,
                          public IPluginV3OneBuild,
                          public IPluginV3OneRuntime {
  public:
    using shipped_plugin::shipped_plugin;
    InterfaceInfo getInterfaceInfo() const noexcept override { return InterfaceInfo{ "PLUGIN_V3ONE", 1, 0 }; }
    IPluginCapability *getCapabilityInterface(PluginCapabilityType type) noexcept override
    {
        switch (type) {
        case PluginCapabilityType::kCORE: return static_cast<IPluginV3OneCore *>(this);
        case PluginCapabilityType::kBUILD: return static_cast<IPluginV3OneBuild *>(this);
        case PluginCapabilityType::kRUNTIME: return static_cast<IPluginV3OneRuntime *>(this);
        }
        return nullptr;
    }
    IPluginV3 *clone() noexcept override { return new shipped_plugin_v3(kind_, version_, space_, &listed_); }
    AsciiChar const *getPluginName() const noexcept override { return kind_.name; }
    AsciiChar const *getPluginVersion() const noexcept override { return version_.c_str(); }
    AsciiChar const *getPluginNamespace() const noexcept override { return space_.c_str(); }
    int32_t getNbOutputs() const noexcept override { return kind_.outputs; }
    int32_t configurePlugin(DynamicPluginTensorDesc const *, int32_t, DynamicPluginTensorDesc const *,
                            int32_t) noexcept override
    {
        return 0;
    }
    int32_t getOutputDataTypes(DataType *, int32_t, DataType const *, int32_t) const noexcept override { return -1; }
    int32_t getOutputShapes(DimsExprs const *, int32_t, DimsExprs const *, int32_t, DimsExprs *, int32_t,
                            IExprBuilder &) noexcept override
    {
        return -1;
    }
    bool supportsFormatCombination(int32_t pos, DynamicPluginTensorDesc const *io, int32_t, int32_t) noexcept override
    {
        return io[pos].desc.format == TensorFormat::kLINEAR;
    }
    int32_t onShapeChange(PluginTensorDesc const *, int32_t, PluginTensorDesc const *, int32_t) noexcept override
    {
        return 0;
    }
    int32_t enqueue(PluginTensorDesc const *, PluginTensorDesc const *, void const *const *, void *const *, void *,
                    cudaStream_t) noexcept override
    {
        return -1;
    }
    IPluginV3 *attachToContext(IPluginResourceContext *) noexcept override { return clone(); }
    PluginFieldCollection const *getFieldsToSerialize() noexcept override { return &listed_; }
};

/* What the creators of both versions share. A field that the kind does not have makes no plugin, with a message. */
template <class Base, class Plugin> class shipped_creator_of : public Base {
  public:
    shipped_creator_of(shipped_kind const &kind, char version, std::string space)
        : kind_(kind), version_(1, version), space_(std::move(space))
    {
        for (shipped_field const &f : kind.fields) fields_.emplace_back(f.name, nullptr, f.type, int32_t(f.count));
        names_.nbFields = static_cast<int32_t>(fields_.size());
        names_.fields = fields_.data();
    }
    InterfaceInfo getInterfaceInfo() const noexcept override
    {
        const bool is_v2 = std::is_same<Base, IPluginCreator>::value;
        return InterfaceInfo{ is_v2 ? "PLUGIN CREATOR_V1" : "PLUGIN CREATOR_V3ONE", 1, 0 };
    }
    AsciiChar const *getPluginName() const noexcept override { return kind_.name; }
    AsciiChar const *getPluginVersion() const noexcept override { return version_.c_str(); }
    AsciiChar const *getPluginNamespace() const noexcept override { return space_.c_str(); }
    PluginFieldCollection const *getFieldNames() noexcept override { return &names_; }

  protected:
    Plugin *create(PluginFieldCollection const *fc) const noexcept
    {
        return made([&] { return new Plugin(kind_, version_, space_, fc); });
    }
    template <class F> Plugin *made(F &&f) const noexcept
    {
        Plugin *plugin = nullptr;
        const auto done = sinter::attempt([&] { plugin = f(); });
        if (!done && ::getLogger()) ::getLogger()->log(ILogger::Severity::kERROR, done.message.c_str());
        return plugin;
    }
    shipped_kind const &kind_;
    std::string version_, space_;
    std::vector<PluginField> fields_;
    PluginFieldCollection names_;
};
class shipped_creator_v2 : public shipped_creator_of<IPluginCreator, shipped_plugin_v2> {
  public:
    using shipped_creator_of::shipped_creator_of;
    IPluginV2 *createPlugin(AsciiChar const *, PluginFieldCollection const *fc) noexcept override { return create(fc); }
    IPluginV2 *deserializePlugin(AsciiChar const *, void const *data, size_t length) noexcept override
    {
        return made([&] {
            field_list list;
            if (length) from_bytes(static_cast<char const *>(data), length, list);
            const PluginFieldCollection fc = list.get();
            return new shipped_plugin_v2(kind_, version_, space_, &fc);
        });
    }
    void setPluginNamespace(AsciiChar const *space) noexcept override { space_ = space ? space : ""; }
};
class shipped_creator_v3 : public shipped_creator_of<IPluginCreatorV3One, shipped_plugin_v3> {
  public:
    using shipped_creator_of::shipped_creator_of;
    IPluginV3 *createPlugin(AsciiChar const *, PluginFieldCollection const *fc, TensorRTPhase) noexcept override
    {
        return create(fc);
    }
};

/* A creator and what the registry finds it by. */
struct shipped_creator {
    std::string name, version, space;
    std::unique_ptr<IPluginCreatorInterface> creator;
};
inline void ship(std::vector<shipped_creator> &to, std::string const &space)
{
    for (shipped_kind const &kind : shipped_kinds()) {
        for (char const *v = kind.versions_v2; *v; v++)
            to.push_back({ kind.name, { *v }, space, std::make_unique<shipped_creator_v2>(kind, *v, space) });
        for (char const *v = kind.versions_v3; *v; v++)
            to.push_back({ kind.name, { *v }, space, std::make_unique<shipped_creator_v3>(kind, *v, space) });
    }
}

} // namespace detail
} // namespace nvinfer1

#endif
