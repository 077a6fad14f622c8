/* SPDX-License-Identifier: Apache-2.0 */
/* NvInferPluginInstances.h - plugins of version 2 and of version 3 behind one interface, for NvInferPluginAdapter.h. */
#ifndef NV_INFER_PLUGIN_INSTANCES_H
#define NV_INFER_PLUGIN_INSTANCES_H

#include "NvInferRuntimePlugin.h"

#include <algorithm>

namespace nvinfer1 {
namespace detail {

/* One plugin of either version. */
class plugin_instance {
  public:
    virtual ~plugin_instance() = default;
    virtual uint32_t outputs() = 0;
    virtual void shapes(DimsExprs const *in, uint32_t count_in, DataType const *types, DimsExprs *out,
                        DataType *out_types, uint32_t count_out, IExprBuilder &e) = 0;
    virtual bool supports(std::vector<DynamicPluginTensorDesc> const &io, uint32_t count_in) = 0;
    virtual size_t workspace(std::vector<DynamicPluginTensorDesc> const &io, uint32_t count_in) = 0;
    virtual std::vector<uint32_t> tactics() { return {}; }
    /* The input whose memory an output shares; -1: none. */
    virtual int32_t aliased_input(uint32_t) { return -1; }
    /* For the sizes of a run. */
    virtual void prepare(std::vector<DynamicPluginTensorDesc> const &io, uint32_t count_in) = 0;
    virtual int enqueue(PluginTensorDesc const *in, PluginTensorDesc const *out, void const *const *inputs,
                        void *const *outputs, void *workspace, uint32_t tactic, cudaStream_t stream) = 0;
};
inline std::vector<PluginTensorDesc> plain(std::vector<DynamicPluginTensorDesc> const &io)
{
    std::vector<PluginTensorDesc> made;
    for (DynamicPluginTensorDesc const &d : io) {
        made.push_back(d.desc);
        made.back().dims = d.max;
    }
    return made;
}
inline int32_t count_of(size_t n) { return static_cast<int32_t>(n); }

/* What plugins of version 2 share. */
class instance_v2 : public plugin_instance {
  public:
    ~instance_v2() override
    {
        if (is_initialized_) base_->terminate();
        base_->destroy();
    }
    uint32_t outputs() override { return static_cast<uint32_t>(base_->getNbOutputs()); }
    void prepare(std::vector<DynamicPluginTensorDesc> const &io, uint32_t count_in) override
    {
        configure(io, count_in);
        if (base_->initialize() != 0) throw sinter::error(SINTER_DEVICE, "initialize() failed");
        is_initialized_ = true;
    }

  protected:
    explicit instance_v2(IPluginV2 *made) : base_(made) {}
    virtual void configure(std::vector<DynamicPluginTensorDesc> const &io, uint32_t count_in) = 0;

  private:
    IPluginV2 *base_;
    bool is_initialized_ = false;
};

/* IPluginV2DynamicExt. */
class instance_of_shapes : public instance_v2 {
  public:
    explicit instance_of_shapes(IPluginV2DynamicExt *made) : instance_v2(made), p_(made) {}
    void shapes(DimsExprs const *in, uint32_t count_in, DataType const *types, DimsExprs *out, DataType *out_types,
                uint32_t count_out, IExprBuilder &e) override
    {
        for (uint32_t i = 0; i < count_out; i++) {
            out[i] = p_->getOutputDimensions(count_of(i), in, count_of(count_in), e);
            out_types[i] = p_->getOutputDataType(count_of(i), types, count_of(count_in));
        }
    }
    bool supports(std::vector<DynamicPluginTensorDesc> const &io, uint32_t count_in) override
    {
        const std::vector<PluginTensorDesc> d = plain(io);
        for (size_t i = 0; i < d.size(); i++)
            if (!p_->supportsFormatCombination(count_of(i), d.data(), count_of(count_in),
                                               count_of(d.size() - count_in)))
                return false;
        return true;
    }
    size_t workspace(std::vector<DynamicPluginTensorDesc> const &io, uint32_t count_in) override
    {
        const std::vector<PluginTensorDesc> d = plain(io);
        configure(io, count_in);
        return p_->getWorkspaceSize(d.data(), count_of(count_in), d.data() + count_in, count_of(d.size() - count_in));
    }
    int enqueue(PluginTensorDesc const *in, PluginTensorDesc const *out, void const *const *inputs,
                void *const *outputs, void *workspace, uint32_t, cudaStream_t stream) override
    {
        return p_->enqueue(in, out, inputs, outputs, workspace, stream);
    }

  private:
    void configure(std::vector<DynamicPluginTensorDesc> const &io, uint32_t count_in) override
    {
        p_->configurePlugin(io.data(), count_of(count_in), io.data() + count_in, count_of(io.size() - count_in));
    }
    IPluginV2DynamicExt *p_;
};

/* IPluginV2, IPluginV2Ext, IPluginV2IOExt: all sizes but the batch are fixed. */
class instance_of_items : public instance_v2 {
  public:
    explicit instance_of_items(IPluginV2 *made)
        : instance_v2(made), p_(made), ext_(dynamic_cast<IPluginV2Ext *>(made)),
          io_(dynamic_cast<IPluginV2IOExt *>(made))
    {
    }
    void shapes(DimsExprs const *in, uint32_t count_in, DataType const *types, DimsExprs *out, DataType *out_types,
                uint32_t count_out, IExprBuilder &e) override
    {
        std::vector<Dims> item;
        for (uint32_t i = 0; i < count_in; i++) item.push_back(item_of(in[i], i));
        if (item.empty()) throw sinter::error(SINTER_INVALID_MODEL, "the plugin has no input that knows the batch");
        for (uint32_t i = 0; i < count_out; i++) {
            const Dims d = p_->getOutputDimensions(count_of(i), item.data(), count_of(count_in));
            if (d.nbDims < 0 || d.nbDims >= Dims::MAX_DIMS)
                throw sinter::error(SINTER_UNSUPPORTED, "getOutputDimensions() returned " + std::to_string(d.nbDims) +
                                                            " axes, a batch has at most 7 more");
            out[i].nbDims = d.nbDims + 1;
            out[i].d[0] = in[0].d[0];
            for (int32_t k = 0; k < d.nbDims; k++) out[i].d[k + 1] = e.constant(d.d[k]);
            out_types[i] = ext_ ? ext_->getOutputDataType(count_of(i), types, count_of(count_in)) : types[0];
        }
    }
    bool supports(std::vector<DynamicPluginTensorDesc> const &io, uint32_t count_in) override
    {
        const std::vector<PluginTensorDesc> d = items(io);
        for (size_t i = 0; i < d.size(); i++) {
            const bool is_good = io_ ? io_->supportsFormatCombination(count_of(i), d.data(), count_of(count_in),
                                                                      count_of(d.size() - count_in))
                                     : p_->supportsFormat(d[i].type, PluginFormat::kLINEAR);
            if (!is_good) return false;
        }
        return true;
    }
    size_t workspace(std::vector<DynamicPluginTensorDesc> const &io, uint32_t count_in) override
    {
        configure(io, count_in);
        return p_->getWorkspaceSize(batch(io));
    }
    int enqueue(PluginTensorDesc const *in, PluginTensorDesc const *, void const *const *inputs, void *const *outputs,
                void *workspace, uint32_t, cudaStream_t stream) override
    {
        return p_->enqueue(static_cast<int32_t>(in[0].dims.d[0]), inputs, outputs, workspace, stream);
    }

  private:
    static Dims item_of(DimsExprs const &d, uint32_t input)
    {
        Dims made;
        if (d.nbDims < 1) throw sinter::error(SINTER_UNSUPPORTED, "input " + std::to_string(input) + " has no axis 0");
        made.nbDims = d.nbDims - 1;
        for (int32_t k = 0; k < made.nbDims; k++) {
            if (!d.d[k + 1]->isConstant())
                throw sinter::error(SINTER_UNSUPPORTED,
                                    "axis " + std::to_string(k + 1) + " of input " + std::to_string(input) +
                                        " is free: only IPluginV2DynamicExt and IPluginV3 take that");
            made.d[k] = static_cast<dim_size>(d.d[k + 1]->getConstantValue());
        }
        return made;
    }
    static int32_t batch(std::vector<DynamicPluginTensorDesc> const &io)
    {
        return static_cast<int32_t>(io[0].max.d[0]);
    }
    static std::vector<PluginTensorDesc> items(std::vector<DynamicPluginTensorDesc> const &io)
    {
        std::vector<PluginTensorDesc> made = plain(io);
        for (PluginTensorDesc &d : made) {
            std::copy(d.dims.d + 1, d.dims.d + d.dims.nbDims, d.dims.d);
            d.dims.nbDims--;
        }
        return made;
    }
    void configure(std::vector<DynamicPluginTensorDesc> const &io, uint32_t count_in) override
    {
        const std::vector<PluginTensorDesc> d = items(io);
        const int32_t in = count_of(count_in), out = count_of(d.size() - count_in);
        if (io_) return io_->configurePlugin(d.data(), in, d.data() + in, out);
        std::vector<Dims> dims;
        std::vector<DataType> types;
        for (PluginTensorDesc const &one : d) {
            dims.push_back(one.dims);
            types.push_back(one.type);
        }
        constexpr bool is_broadcast[64] = {};
        if (ext_)
            ext_->configurePlugin(dims.data(), in, dims.data() + in, out, types.data(), types.data() + in, is_broadcast,
                                  is_broadcast, PluginFormat::kLINEAR, batch(io));
        else
            p_->configureWithFormat(dims.data(), in, dims.data() + in, out, types[0], PluginFormat::kLINEAR, batch(io));
    }
    IPluginV2 *p_;
    IPluginV2Ext *ext_;
    IPluginV2IOExt *io_;
};
inline std::unique_ptr<plugin_instance> instance_of(IPluginV2 *made)
{
    if (!made) throw sinter::error(SINTER_INVALID_MODEL, "the creator made no plugin");
    auto *const sized = dynamic_cast<IPluginV2DynamicExt *>(made);
    if (sized) return std::make_unique<instance_of_shapes>(sized);
    return std::make_unique<instance_of_items>(made);
}

class instance_v3 : public plugin_instance {
  public:
    explicit instance_v3(IPluginV3 *made) : p_(made)
    {
        if (!made) throw sinter::error(SINTER_INVALID_MODEL, "the creator made no plugin");
    }
    uint32_t outputs() override { return static_cast<uint32_t>(build()->getNbOutputs()); }
    void shapes(DimsExprs const *in, uint32_t count_in, DataType const *types, DimsExprs *out, DataType *out_types,
                uint32_t count_out, IExprBuilder &e) override
    {
        IPluginV3OneBuild *b = build();
        if (b->getOutputDataTypes(out_types, count_of(count_out), types, count_of(count_in)) != 0 ||
            b->getOutputShapes(in, count_of(count_in), nullptr, 0, out, count_of(count_out), e) != 0)
            throw sinter::error(SINTER_UNSUPPORTED, "the plugin gives no types or shapes for these inputs");
    }
    bool supports(std::vector<DynamicPluginTensorDesc> const &io, uint32_t count_in) override
    {
        for (size_t i = 0; i < io.size(); i++)
            if (!build()->supportsFormatCombination(count_of(i), io.data(), count_of(count_in),
                                                    count_of(io.size() - count_in)))
                return false;
        return true;
    }
    size_t workspace(std::vector<DynamicPluginTensorDesc> const &io, uint32_t count_in) override
    {
        configure(io, count_in);
        return build()->getWorkspaceSize(io.data(), count_of(count_in), io.data() + count_in,
                                         count_of(io.size() - count_in));
    }
    std::vector<uint32_t> tactics() override
    {
        std::vector<int32_t> made(static_cast<size_t>(std::max(build()->getNbTactics(), 0)));
        if (!made.empty() && build()->getValidTactics(made.data(), count_of(made.size())) != 0) made.clear();
        return std::vector<uint32_t>(made.begin(), made.end());
    }
    void prepare(std::vector<DynamicPluginTensorDesc> const &io, uint32_t count_in) override
    {
        configure(io, count_in);
        attached_.reset(runtime_of(p_.get())->attachToContext(nullptr));
        run_ = runtime_of(attached_ ? attached_.get() : p_.get());
        const std::vector<PluginTensorDesc> d = plain(io);
        if (run_->onShapeChange(d.data(), count_of(count_in), d.data() + count_in, count_of(d.size() - count_in)) != 0)
            throw sinter::error(SINTER_DEVICE, "onShapeChange() failed");
    }
    int enqueue(PluginTensorDesc const *in, PluginTensorDesc const *out, void const *const *inputs,
                void *const *outputs, void *workspace, uint32_t tactic, cudaStream_t stream) override
    {
        if (tactic != 0 && run_->setTactic(static_cast<int32_t>(tactic)) != 0) return -1;
        return run_->enqueue(in, out, inputs, outputs, workspace, stream);
    }
    int32_t aliased_input(uint32_t output) override
    {
        auto *const second = dynamic_cast<IPluginV3OneBuildV2 *>(build());
        return second ? second->getAliasedInput(count_of(output)) : -1;
    }
    static IPluginV3OneRuntime *runtime_of(IPluginV3 *p)
    {
        auto *made = static_cast<IPluginV3OneRuntime *>(p->getCapabilityInterface(PluginCapabilityType::kRUNTIME));
        if (!made) throw sinter::error(SINTER_UNSUPPORTED, "the plugin has no capability kRUNTIME");
        return made;
    }

  private:
    IPluginV3OneBuild *build()
    {
        auto *made = static_cast<IPluginV3OneBuild *>(p_->getCapabilityInterface(PluginCapabilityType::kBUILD));
        if (!made) throw sinter::error(SINTER_UNSUPPORTED, "the plugin has no capability kBUILD");
        return made;
    }
    void configure(std::vector<DynamicPluginTensorDesc> const &io, uint32_t count_in)
    {
        if (build()->configurePlugin(io.data(), count_of(count_in), io.data() + count_in,
                                     count_of(io.size() - count_in)) != 0)
            throw sinter::error(SINTER_UNSUPPORTED, "configurePlugin() failed");
    }
    std::unique_ptr<IPluginV3> p_, attached_;
    IPluginV3OneRuntime *run_ = nullptr;
};

} // namespace detail
} // namespace nvinfer1

#endif
