/* SPDX-License-Identifier: Apache-2.0 */
/* use_plugins.cpp - plugins of every class of version 2 and one of version 3, in a network whose batch is free. test_cpp.py
 * compiles and runs it. nvcc -x cu compiles it for a GPU, where the plugins launch kernels:
 *
 *     nvcc -x cu -std=c++17 -Iinclude -Iinclude/sinter/compat tests/cpp/use_plugins.cpp -Lbuild -lsinter -lcuda */
#include "cpp_check.h"

#include <NvInfer.h>
#include <cuda_runtime_api.h>

#include <cstring>
#include <memory>
#include <string>
#include <vector>

using namespace nvinfer1;

class Logger : public ILogger {
  public:
    void log(Severity severity, const char *msg) noexcept override
    {
        if (severity <= Severity::kERROR) errors += std::string(msg) + "\n";
    }
    bool has(const char *words) const { return errors.find(words) != std::string::npos; }
    std::string errors;
} logger;

/* y[i] = factor * x[i] + more */
#ifdef __CUDACC__
static __global__ void scale_kernel(float factor, float more, float const *x, float *y, int64_t count)
{
    const int64_t i = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
    if (i < count) y[i] = factor * x[i] + more;
}
static int32_t scale(float factor, float more, float const *x, float *y, int64_t count, cudaStream_t stream)
{
    scale_kernel<<<static_cast<unsigned>((count + 63) / 64), 64, 0, stream>>>(factor, more, x, y, count);
    return cudaGetLastError() == cudaSuccess ? 0 : 1;
}
#else
static int32_t scale(float factor, float more, float const *x, float *y, int64_t count, cudaStream_t stream)
{
    const size_t size = static_cast<size_t>(count) * sizeof *x;
    if (cudaMemcpyAsync(y, x, size + 1, cudaMemcpyDeviceToDevice, stream) == cudaSuccess) return 2; /* too many */
    if (cudaMemcpyAsync(y, x, size, cudaMemcpyDeviceToDevice, stream) != cudaSuccess) return 1;
    for (int64_t i = 0; i < count; i++) y[i] = factor * y[i] + more;
    return 0;
}
#endif

/* What all plugins of version 2 here share: two outputs, factor * x in the shape of x, and x + 1 as one row. */
template <class Base> class Common : public Base {
  public:
    explicit Common(float factor) : factor_(factor) {}
    AsciiChar const *getPluginVersion() const noexcept override { return "1"; }
    int32_t getNbOutputs() const noexcept override { return 2; }
    int32_t initialize() noexcept override { return 0; }
    void terminate() noexcept override {}
    size_t getSerializationSize() const noexcept override { return sizeof factor_; }
    void serialize(void *to) const noexcept override { std::memcpy(to, &factor_, sizeof factor_); }
    void destroy() noexcept override { delete this; }
    void setPluginNamespace(AsciiChar const *) noexcept override {}
    AsciiChar const *getPluginNamespace() const noexcept override { return ""; }

  protected:
    int32_t run(int64_t count, void const *const *in, void *const *out, void *workspace, cudaStream_t stream) const
    {
        auto const *x = static_cast<float const *>(in[0]);
        if (!workspace || scale(factor_, 0, x, static_cast<float *>(workspace), count, stream) != 0) return 1;
        if (scale(1, 1, x, static_cast<float *>(out[1]), count, stream) != 0) return 1;
        return scale(1, 0, static_cast<float const *>(workspace), static_cast<float *>(out[0]), count, stream);
    }
    float factor_;
};
template <class Base> class OfItems : public Common<Base> {
  public:
    using Common<Base>::Common;
    Dims getOutputDimensions(int32_t index, Dims const *in, int32_t count) noexcept override
    {
        CHECK(count == 1 && in[0].nbDims == 2 && in[0].d[0] == 2 && in[0].d[1] == 3);
        return index == 0 ? in[0] : Dims{ 1, { in[0].d[0] * in[0].d[1] } };
    }
    size_t getWorkspaceSize(int32_t most) const noexcept override { return static_cast<size_t>(most) * 6 * 4; }
    int32_t enqueue(int32_t batch, void const *const *in, void *const *out, void *workspace,
                    cudaStream_t stream) noexcept override
    {
        return is_configured_ ? this->run(batch * 6, in, out, workspace, stream) : 1;
    }

  protected:
    bool is_configured_ = false;
};
class Plain : public OfItems<IPluginV2> {
  public:
    using OfItems<IPluginV2>::OfItems;
    AsciiChar const *getPluginType() const noexcept override { return "Plain"; }
    IPluginV2 *clone() const noexcept override { return new Plain(factor_); }
    bool supportsFormat(DataType type, PluginFormat format) const noexcept override
    {
        return type == DataType::kFLOAT && format == PluginFormat::kLINEAR;
    }
    void configureWithFormat(Dims const *in, int32_t count, Dims const *out, int32_t outs, DataType type, PluginFormat,
                             int32_t most) noexcept override
    {
        is_configured_ = count == 1 && outs == 2 && type == DataType::kFLOAT && most >= 1 && in[0].d[1] == 3 &&
                         out[1].nbDims == 1;
    }
};
class Extended : public OfItems<IPluginV2Ext> {
  public:
    using OfItems<IPluginV2Ext>::OfItems;
    AsciiChar const *getPluginType() const noexcept override { return "Extended"; }
    IPluginV2Ext *clone() const noexcept override { return new Extended(factor_); }
    DataType getOutputDataType(int32_t, DataType const *in, int32_t) const noexcept override { return in[0]; }
    bool supportsFormat(DataType type, PluginFormat) const noexcept override { return type == DataType::kFLOAT; }
    bool isOutputBroadcastAcrossBatch(int32_t, bool const *, int32_t) const noexcept override { return false; }
    bool canBroadcastInputAcrossBatch(int32_t) const noexcept override { return false; }
    void configurePlugin(Dims const *, int32_t count, Dims const *out, int32_t outs, DataType const *types,
                         DataType const *, bool const *is_broadcast, bool const *, PluginFormat,
                         int32_t most) noexcept override
    {
        is_configured_ = count == 1 && outs == 2 && types[0] == DataType::kFLOAT && !is_broadcast[0] && most >= 1 &&
                         out[0].nbDims == 2;
    }
};
class Described : public OfItems<IPluginV2IOExt> {
  public:
    using OfItems<IPluginV2IOExt>::OfItems;
    AsciiChar const *getPluginType() const noexcept override { return "Described"; }
    IPluginV2Ext *clone() const noexcept override { return new Described(factor_); }
    DataType getOutputDataType(int32_t, DataType const *, int32_t) const noexcept override { return DataType::kFLOAT; }
    void configurePlugin(PluginTensorDesc const *in, int32_t count, PluginTensorDesc const *,
                         int32_t outs) noexcept override
    {
        is_configured_ = count == 1 && outs == 2 && in[0].dims.nbDims == 2;
    }
    bool supportsFormatCombination(int32_t pos, PluginTensorDesc const *io, int32_t, int32_t) const noexcept override
    {
        return io[pos].type == DataType::kFLOAT && io[pos].format == TensorFormat::kLINEAR;
    }
};
class Dynamic : public Common<IPluginV2DynamicExt> {
  public:
    using Common<IPluginV2DynamicExt>::Common;
    AsciiChar const *getPluginType() const noexcept override { return "Dynamic"; }
    IPluginV2DynamicExt *clone() const noexcept override { return new Dynamic(factor_); }
    DataType getOutputDataType(int32_t, DataType const *in, int32_t) const noexcept override { return in[0]; }
    DimsExprs getOutputDimensions(int32_t index, DimsExprs const *in, int32_t, IExprBuilder &e) noexcept override
    {
        DimsExprs made = in[0];
        if (index == 0) return made;
        made.nbDims = 2;
        made.d[1] = e.operation(DimensionOperation::kPROD, *in[0].d[1], *in[0].d[2]);
        return made;
    }
    bool supportsFormatCombination(int32_t pos, PluginTensorDesc const *io, int32_t, int32_t) noexcept override
    {
        return io[pos].type == DataType::kFLOAT;
    }
    void configurePlugin(DynamicPluginTensorDesc const *, int32_t, DynamicPluginTensorDesc const *,
                         int32_t) noexcept override
    {
    }
    size_t getWorkspaceSize(PluginTensorDesc const *in, int32_t, PluginTensorDesc const *,
                            int32_t) const noexcept override
    {
        return static_cast<size_t>(in[0].dims.d[0]) * 6 * 4;
    }
    int32_t enqueue(PluginTensorDesc const *in, PluginTensorDesc const *, void const *const *inputs,
                    void *const *outputs, void *workspace, cudaStream_t stream) noexcept override
    {
        return run(in[0].dims.d[0] * 6, inputs, outputs, workspace, stream);
    }
};
static std::string named; /* of the layer that a creator was last asked for */
template <class Made> class Creator : public IPluginCreator {
  public:
    AsciiChar const *getPluginName() const noexcept override
    {
        static const Made one(1);
        return one.getPluginType();
    }
    AsciiChar const *getPluginVersion() const noexcept override { return "1"; }
    PluginFieldCollection const *getFieldNames() noexcept override { return &none_; }
    IPluginV2 *createPlugin(AsciiChar const *, PluginFieldCollection const *) noexcept override { return new Made(1); }
    IPluginV2 *deserializePlugin(AsciiChar const *layer, void const *data, size_t size) noexcept override
    {
        float factor = 0;
        named = layer;
        if (size != sizeof factor) return nullptr;
        std::memcpy(&factor, data, size);
        return new Made(factor);
    }
    void setPluginNamespace(AsciiChar const *) noexcept override {}
    AsciiChar const *getPluginNamespace() const noexcept override { return ""; }

  private:
    PluginFieldCollection none_;
};
using PlainCreator = Creator<Plain>;
using ExtendedCreator = Creator<Extended>;
using DescribedCreator = Creator<Described>;
using DynamicCreator = Creator<Dynamic>;
REGISTER_TENSORRT_PLUGIN(PlainCreator);
REGISTER_TENSORRT_PLUGIN(ExtendedCreator);
REGISTER_TENSORRT_PLUGIN(DescribedCreator);
REGISTER_TENSORRT_PLUGIN(DynamicCreator);

/* Version 3: x * 2 in x's own memory. */
class Doubled : public IPluginV3, public IPluginV3OneCore, public IPluginV3OneBuildV2, public IPluginV3OneRuntime {
  public:
    IPluginCapability *getCapabilityInterface(PluginCapabilityType type) noexcept override
    {
        if (type == PluginCapabilityType::kBUILD) return static_cast<IPluginV3OneBuildV2 *>(this);
        if (type == PluginCapabilityType::kRUNTIME) return static_cast<IPluginV3OneRuntime *>(this);
        return static_cast<IPluginV3OneCore *>(this);
    }
    IPluginV3 *clone() noexcept override { return new Doubled(); }
    AsciiChar const *getPluginName() const noexcept override { return "Doubled"; }
    AsciiChar const *getPluginVersion() const noexcept override { return "1"; }
    AsciiChar const *getPluginNamespace() const noexcept override { return ""; }
    int32_t getNbOutputs() const noexcept override { return 1; }
    int32_t getAliasedInput(int32_t) noexcept override { return 0; }
    int32_t configurePlugin(DynamicPluginTensorDesc const *, int32_t, DynamicPluginTensorDesc const *,
                            int32_t) noexcept override
    {
        return 0;
    }
    bool supportsFormatCombination(int32_t pos, DynamicPluginTensorDesc const *io, int32_t, int32_t) noexcept override
    {
        return io[pos].desc.type == DataType::kFLOAT;
    }
    int32_t getOutputDataTypes(DataType *types, int32_t, DataType const *in, int32_t) const noexcept override
    {
        types[0] = in[0];
        return 0;
    }
    int32_t getOutputShapes(DimsExprs const *in, int32_t, DimsExprs const *, int32_t, DimsExprs *out, int32_t,
                            IExprBuilder &) noexcept override
    {
        out[0] = in[0];
        return 0;
    }
    int32_t onShapeChange(PluginTensorDesc const *, int32_t, PluginTensorDesc const *, int32_t) noexcept override
    {
        return 0;
    }
    IPluginV3 *attachToContext(IPluginResourceContext *) noexcept override { return clone(); }
    PluginFieldCollection const *getFieldsToSerialize() noexcept override { return &none_; }
    int32_t enqueue(PluginTensorDesc const *in, PluginTensorDesc const *, void const *const *, void *const *outputs,
                    void *, cudaStream_t stream) noexcept override
    {
        auto *x = static_cast<float *>(outputs[0]);
        return scale(2, 0, x, x, in[0].dims.d[0] * 6, stream);
    }

  private:
    PluginFieldCollection none_;
};
class DoubledCreator : public IPluginCreatorV3One {
  public:
    IPluginV3 *createPlugin(AsciiChar const *, PluginFieldCollection const *, TensorRTPhase) noexcept override
    {
        return new Doubled();
    }
    PluginFieldCollection const *getFieldNames() noexcept override { return &none_; }
    AsciiChar const *getPluginName() const noexcept override { return "Doubled"; }
    AsciiChar const *getPluginVersion() const noexcept override { return "1"; }
    AsciiChar const *getPluginNamespace() const noexcept override { return ""; }

  private:
    PluginFieldCollection none_;
};
REGISTER_TENSORRT_PLUGIN(DoubledCreator);

/* Runs y, r and z for a batch; false: something failed. */
static bool run(IExecutionContext &context, int64_t batch, float factor)
{
    const size_t count = static_cast<size_t>(batch) * 6;
    std::vector<float> x(count), got[3];
    void *at[4];
    cudaStream_t stream = nullptr;
    bool is_good = cudaStreamCreate(&stream) == cudaSuccess;
    for (size_t i = 0; i < count; i++) x[i] = static_cast<float>(i) - 7;
    for (void *&one : at) is_good = is_good && cudaMalloc(&one, count * 4) == cudaSuccess;
    is_good = is_good && cudaMemcpyAsync(at[3], x.data(), count * 4, cudaMemcpyHostToDevice, stream) == cudaSuccess;
    static const char *const name[] = { "y", "r", "z", "x" };
    for (int i = 0; i < 4; i++) is_good = is_good && context.setTensorAddress(name[i], at[i]);
    is_good = is_good && context.setInputShape("x", Dims3(batch, 2, 3)) && context.enqueueV3(stream);
    for (int i = 0; i < 3; i++) {
        got[i].resize(count);
        is_good = is_good &&
                  cudaMemcpyAsync(got[i].data(), at[i], count * 4, cudaMemcpyDeviceToHost, stream) == cudaSuccess;
    }
    is_good = is_good && cudaStreamSynchronize(stream) == cudaSuccess;
    for (size_t i = 0; i < count && is_good; i++)
        is_good = got[0][i] == factor * x[i] && got[1][i] == x[i] + 1 && got[2][i] == 2 * factor * x[i] + x[i];
    for (void *one : at) (void)cudaFree(one);
    (void)cudaStreamDestroy(stream);
    return is_good && context.getTensorShape("r").d[1] == 6;
}

/* y, r = plugin(x); z = doubled(y) + x. */
template <class Made> static void use(float factor, bool is_dynamic)
{
    const std::unique_ptr<IBuilder> builder(createInferBuilder(logger));
    const std::unique_ptr<INetworkDefinition> network(builder->createNetworkV2(0));
    const std::unique_ptr<IBuilderConfig> config(builder->createBuilderConfig());
    ITensor *x = network->addInput("x", DataType::kFLOAT, Dims3(-1, 2, 3));
    Made plugin(factor);
    Doubled doubled;
    ILayer *layer = network->addPluginV2(&x, 1, plugin);
    layer->setName("first");
    ITensor *y = layer->getOutput(0);
    ITensor *twice = network->addPluginV3(&y, 1, nullptr, 0, doubled)->getOutput(0);
    ITensor *z = network->addElementWise(*twice, *x, ElementWiseOperation::kSUM)->getOutput(0);
    y->setName("y");
    layer->getOutput(1)->setName("r");
    z->setName("z");
    for (ITensor *t : { y, layer->getOutput(1), z }) network->markOutput(*t);
    IOptimizationProfile *profile = builder->createOptimizationProfile();
    profile->setDimensions("x", OptProfileSelector::kMIN, Dims3(1, 2, 3));
    profile->setDimensions("x", OptProfileSelector::kOPT, Dims3(2, 2, 3));
    profile->setDimensions("x", OptProfileSelector::kMAX, Dims3(5, 2, 3));
    config->addOptimizationProfile(profile);
    const std::unique_ptr<IHostMemory> plan(builder->buildSerializedNetwork(*network, *config));
    const std::unique_ptr<IRuntime> runtime(createInferRuntime(logger));
    const std::unique_ptr<ICudaEngine> engine(plan ? runtime->deserializeCudaEngine(plan->data(), plan->size())
                                                   : nullptr);
    const std::unique_ptr<IExecutionContext> context(engine ? engine->createExecutionContext() : nullptr);
    CHECK(context != nullptr && named == "first");
    for (int64_t batch : { 1, 5, 2 }) CHECK(context && run(*context, batch, factor));

    /* Sizes of an item have to be known to all but the last class. */
    const std::unique_ptr<INetworkDefinition> loose(builder->createNetworkV2(0));
    ITensor *free = loose->addInput("x", DataType::kFLOAT, Dims3(-1, 2, -1));
    logger.errors.clear();
    ITensor *made = loose->addPluginV2(&free, 1, plugin)->getOutput(0);
    CHECK(made && (made->getDimensions().nbDims == 3) == is_dynamic);
    CHECK(is_dynamic || logger.has("axis 2 of input 0 is free"));
    logger.errors.clear();
}

int main()
{
    use<Plain>(3, false);
    use<Extended>(-2, false);
    use<Described>(0.5f, false);
    use<Dynamic>(4, true);
    if (!logger.errors.empty()) std::printf("%s", logger.errors.c_str());
    std::printf("%d failures\n", failures);
    return failures != 0;
}
