/* SPDX-License-Identifier: Apache-2.0 */
/* seeds.cpp - what the C++ blocks of the seeds stand among. test_seeds.py writes each block to NUMBER.inc, compiles
 * this file and runs it in a folder with model.onnx (input [1, 3, 224, 224], output [1, 4]) and model.engine. Launches
 * of kernels, name<<<...>>>(...), are written as calls: there is no compiler for CUDA. */
#include <NvInfer.h>
#include <NvOnnxParser.h>
#include <cuda_runtime_api.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdio>
#include <fstream>
#include <iterator>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

using namespace nvinfer1;

static std::map<std::string, bool> passed;
#define CHECK(block, x)                                                                                                \
    do {                                                                                                               \
        const bool is_true = static_cast<bool>(x);                                                                     \
        if (!is_true) std::printf("%s: seeds.cpp:%d: %s\n", block, __LINE__, #x);                                      \
        passed[block] = (passed.count(block) ? passed[block] : true) && is_true;                                       \
    } while (0)

class Quiet : public ILogger {
  public:
    void log(Severity severity, const char *msg) noexcept override
    {
        if (severity <= Severity::kERROR) std::printf("%s\n", msg);
    }
} logger;

/* A network of the file, a configuration, and what is built from them. */
struct Rig {
    explicit Rig(const char *path = nullptr)
    {
        builder.reset(createInferBuilder(logger));
        network.reset(builder->createNetworkV2(0));
        config.reset(builder->createBuilderConfig());
        config->setBuilderOptimizationLevel(0);
        config->setProfilingVerbosity(ProfilingVerbosity::kDETAILED);
        if (!path) return;
        parser.reset(nvonnxparser::createParser(*network, logger));
        CHECK("rig", parser->parseFromFile(path, 0));
    }
    void build()
    {
        const std::unique_ptr<IHostMemory> plan(builder->buildSerializedNetwork(*network, *config));
        runtime.reset(createInferRuntime(logger));
        engine.reset(plan ? runtime->deserializeCudaEngine(plan->data(), plan->size()) : nullptr);
        context.reset(engine ? engine->createExecutionContext() : nullptr);
    }
    std::unique_ptr<IBuilder> builder;
    std::unique_ptr<INetworkDefinition> network;
    std::unique_ptr<IBuilderConfig> config;
    std::unique_ptr<nvonnxparser::IParser> parser;
    std::unique_ptr<IRuntime> runtime;
    std::unique_ptr<ICudaEngine> engine;
    std::unique_ptr<IExecutionContext> context;
};
static const int IMAGE = 3 * 224 * 224;

/* ---- 0_01: one step instead of three. Images of 1 x 4, kernel of one weight, norm of a factor and a shift ---- */
static void block_0_01()
{
    const float input[4] = { 1, -2, 3, -4 }, weights[1] = { 2 }, bn_params[2] = { 3, 1 };
    float conv_output[4], bn_output[4], final_output[4], three[4];
    int runs = 0;
    const auto conv2d_kernel = [&](const float *x, const float *w, float *y) {
        for (int i = 0; i < 4; i++) y[i] = x[i] * w[0];
        runs++;
    };
    const auto batch_norm_kernel = [&](const float *x, const float *p, float *y) {
        for (int i = 0; i < 4; i++) y[i] = x[i] * p[0] + p[1];
        runs++;
    };
    const auto relu_kernel = [&](const float *x, float *y) {
        for (int i = 0; i < 4; i++) three[i] = y[i] = std::max(x[i], 0.0f);
        runs++;
    };
    const auto fused_conv_bn_relu_kernel = [&](const float *x, const float *w, const float *p, float *y) {
        for (int i = 0; i < 4; i++) y[i] = std::max(x[i] * w[0] * p[0] + p[1], 0.0f);
        runs++;
    };
#include "0_01.inc"
    CHECK("0_01", runs == 4 && !std::memcmp(three, final_output, sizeof three));
    /* The same in sinter: no step beside the convolution computes, and these numbers. */
    Rig r;
    ITensor *x = r.network->addInput("x", DataType::kFLOAT, Dims4(1, 1, 1, 4));
    ILayer *conv = r.network->addConvolutionNd(*x, 1, Dims2(1, 1), Weights{ DataType::kFLOAT, weights, 1 }, Weights());
    ILayer *norm =
        r.network->addScale(*conv->getOutput(0), ScaleMode::kCHANNEL, Weights{ DataType::kFLOAT, bn_params + 1, 1 },
                            Weights{ DataType::kFLOAT, bn_params, 1 }, Weights());
    r.network->markOutput(*r.network->addActivation(*norm->getOutput(0), ActivationType::kRELU)->getOutput(0));
    r.build();
    float y[4];
    void *bindings[] = { const_cast<float *>(input), y };
    const std::unique_ptr<IEngineInspector> inspector(r.engine->createEngineInspector());
    const std::string steps = inspector->getEngineInformation(LayerInformationFormat::kJSON);
    CHECK("0_01", steps.find("conv:") != std::string::npos && steps.find("pointwise:") == std::string::npos);
    CHECK("0_01", r.context && r.context->executeV2(bindings));
    CHECK("0_01", !std::memcmp(y, final_output, sizeof y));
}

static void block_0_05()
{
    Rig r("model.onnx");
    r.config->setFlag(BuilderFlag::kINT8);
    ILayer *layer = nullptr;
    for (int32_t i = 0; i < r.network->getNbLayers() && !layer; i++)
        if (r.network->getLayer(i)->getType() == LayerType::kCONVOLUTION) layer = r.network->getLayer(i);
    ITensor *tensor = r.network->getInput(0);
#include "0_05.inc"
    CHECK("0_05", layer->getPrecision() == DataType::kINT8 && layer->getOutputType(0) == DataType::kINT8);
    CHECK("0_05", tensor->getDynamicRangeMin() == -128 && tensor->getDynamicRangeMax() == 127);
    r.build();
    CHECK("0_05", r.engine != nullptr);
}

/* ---- 0_06, 0_07: listings; their functions are private, so the classes become structs ---- */
namespace selection {
using namespace std;
/* The block makes a vector of a list of unique_ptr, which would have to be copied. */
template <class T> using unique_ptr = std::shared_ptr<T>;
template <class T> unique_ptr<T> make_unique()
{
    return std::make_shared<T>();
}
#define class struct
struct LayerConfig {
    int kernel;
};
class IKernel {
    virtual ~IKernel() = default;
    virtual bool supports(const LayerConfig &config) const = 0;
    virtual float profile(const LayerConfig &config) const = 0;
};
template <int FROM, int TO, int TIME> class Kernel : IKernel {
    bool supports(const LayerConfig &c) const override
    {
        return c.kernel >= FROM && c.kernel <= TO;
    }
    float profile(const LayerConfig &c) const override
    {
        return static_cast<float>(TIME * c.kernel);
    }
};
class GemmKernel : Kernel<1, 99, 4> {};
class WinogradKernel : Kernel<3, 3, 1> {};
class FFTKernel : Kernel<6, 99, 2> {};
class ImplicitGemmKernel : Kernel<1, 7, 3> {};
#include "0_06.inc"
#undef class
} // namespace selection
static void block_0_06()
{
    selection::ConvolutionLayer layer;
    CHECK("0_06", dynamic_cast<selection::WinogradKernel *>(layer.selectBestKernel({ 3 })));
    CHECK("0_06", dynamic_cast<selection::FFTKernel *>(layer.selectBestKernel({ 9 })));
    CHECK("0_06", dynamic_cast<selection::ImplicitGemmKernel *>(layer.selectBestKernel({ 1 })));
    /* What sinter chose for each step is in its report. */
    Rig r("model.onnx");
    r.build();
    const std::unique_ptr<IEngineInspector> inspector(r.engine->createEngineInspector());
    CHECK("0_06", std::strstr(inspector->getEngineInformation(LayerInformationFormat::kJSON), "\"TacticName\""));
}
namespace planning {
using namespace std;
static size_t getSize(size_t)
{
    return 100;
}
#define class struct
#include "0_07.inc"
#undef class
} // namespace planning
static void block_0_07()
{
    std::vector<planning::MemoryPlanner::Allocation> tensors(3);
    for (int i = 0; i < 3; i++) tensors[static_cast<size_t>(i)] = { 0, 100, i, i + 2 };
    planning::MemoryPlanner planner;
    CHECK("0_07", planner.planMemory(tensors) == 200 && tensors[0].offset == tensors[2].offset);
    /* sinter's own plan: less than all results together. */
    Rig r("model.onnx");
    r.build();
    sinter_profile_info info = r.engine->engine().info(0);
    CHECK("0_07", info.slab_size > 0 && info.slab_size <= info.memory_size);
}

/* ---- plugins: the blocks leave functions out, a subclass has them ---- */
template <class Base> class Whole : public Base {
  public:
    const char *getPluginType() const noexcept override
    {
        return "CustomPlugin";
    }
    const char *getPluginVersion() const noexcept override
    {
        return version;
    }
    int32_t getNbOutputs() const noexcept override
    {
        return 1;
    }
    int32_t initialize() noexcept override
    {
        return 0;
    }
    void terminate() noexcept override
    {
    }
    size_t getSerializationSize() const noexcept override
    {
        return 0;
    }
    void serialize(void *) const noexcept override
    {
    }
    void destroy() noexcept override
    {
        delete this;
    }
    void setPluginNamespace(const char *) noexcept override
    {
    }
    const char *getPluginNamespace() const noexcept override
    {
        return "";
    }
    DataType getOutputDataType(int32_t, const DataType *types, int32_t) const noexcept override
    {
        return types[0];
    }
    bool supportsFormatCombination(int32_t pos, const PluginTensorDesc *io, int32_t, int32_t) noexcept override
    {
        return io[pos].type == DataType::kFLOAT;
    }
    size_t getWorkspaceSize(const PluginTensorDesc *, int32_t, const PluginTensorDesc *,
                            int32_t) const noexcept override
    {
        return 0;
    }
    static const char *version;
};
template <class Base> const char *Whole<Base>::version = "1";
class AnyCreator : public IPluginCreator {
  public:
    const char *getPluginName() const noexcept override
    {
        return "CustomPlugin";
    }
    const PluginFieldCollection *getFieldNames() noexcept override
    {
        return &fields_;
    }
    IPluginV2 *deserializePlugin(const char *name, const void *, size_t) noexcept override
    {
        return createPlugin(name, &fields_);
    }
    void setPluginNamespace(const char *) noexcept override
    {
    }
    const char *getPluginNamespace() const noexcept override
    {
        return "";
    }

  private:
    PluginFieldCollection fields_;
};
/* Runs a network of the plugin alone. */
static std::vector<float> run_plugin(IPluginV2 &plugin, std::vector<float> x)
{
    Rig r;
    ITensor *in = r.network->addInput("x", DataType::kFLOAT, Dims2(1, static_cast<int64_t>(x.size())));
    r.network->markOutput(*r.network->addPluginV2(&in, 1, plugin)->getOutput(0));
    r.build();
    std::vector<float> y(x.size());
    void *bindings[] = { x.data(), y.data() };
    return r.context && r.context->executeV2(bindings) ? y : std::vector<float>();
}

namespace first {
static const float mParams[] = { 3 };
static int64_t volume;
static void myCustomKernel(const void *x, void *y, const float *params)
{
    for (int64_t i = 0; i < volume; i++) static_cast<float *>(y)[i] = static_cast<const float *>(x)[i] * params[0];
}
#include "0_16.inc"
class Complete : public Whole<CustomPlugin> {
  public:
    IPluginV2DynamicExt *clone() const noexcept override
    {
        return new Complete();
    }
    DimsExprs getOutputDimensions(int32_t, const DimsExprs *in, int32_t, IExprBuilder &) noexcept override
    {
        return in[0];
    }
};
class Creator : public AnyCreator {
  public:
    const char *getPluginVersion() const noexcept override
    {
        return "1";
    }
    IPluginV2 *createPlugin(const char *, const PluginFieldCollection *) noexcept override
    {
        return new Complete();
    }
};
REGISTER_TENSORRT_PLUGIN(Creator);
} // namespace first
static void block_0_16()
{
    first::volume = 3;
    first::Complete plugin;
    CHECK("0_16", (run_plugin(plugin, { 1, 2, -3 }) == std::vector<float>{ 3, 6, -9 }));
}

namespace second {
static void customKernel(const void *x, void *y, const Dims &dims)
{
    for (int64_t i = 0; i < dims.d[0] * dims.d[1]; i++) static_cast<float *>(y)[i] = -static_cast<const float *>(x)[i];
}
class CustomPluginCreator : public AnyCreator {
  public:
    const char *getPluginVersion() const noexcept override
    {
        return "2";
    }
    IPluginV2 *createPlugin(const char *, const PluginFieldCollection *) noexcept override;
};
#include "4_05.inc"
class Complete : public Whole<CustomPlugin> {
  public:
    const char *getPluginVersion() const noexcept override
    {
        return "2";
    }
    IPluginV2DynamicExt *clone() const noexcept override
    {
        return new Complete();
    }
    void configurePlugin(const DynamicPluginTensorDesc *, int32_t, const DynamicPluginTensorDesc *,
                         int32_t) noexcept override
    {
    }
};
IPluginV2 *CustomPluginCreator::createPlugin(const char *, const PluginFieldCollection *) noexcept
{
    return new Complete();
}
} // namespace second
static void block_4_05()
{
    second::Complete plugin;
    CHECK("4_05", getPluginRegistry()->getPluginCreator("CustomPlugin", "2"));
    CHECK("4_05", (run_plugin(plugin, { 1, 2, -3 }) == std::vector<float>{ -1, -2, 3 }));
}

/* ---- fragments ---- */
static void block_1_01()
{
    void *hostPtr = nullptr;
    const size_t size = 1 << 20;
#include "1_01.inc"
    CHECK("1_01", hostPtr != nullptr);
    std::memset(hostPtr, 7, size);
    cudaFreeHost(hostPtr);
}
static void block_1_03()
{
    Rig r("model.onnx");
    r.build();
    IExecutionContext *context = r.context.get();
    cudaStream_t stream;
    cudaGraph_t graph;
    cudaGraphExec_t instance;
    cudaStreamCreate(&stream);
    std::vector<float> image(IMAGE, 0.5f), out(4, -1.0f), before;
    context->setTensorAddress("input", image.data());
    context->setTensorAddress("output", out.data());
#include "1_03.inc"
    before = out;
    std::fill(image.begin(), image.end(), -0.5f);
    CHECK("1_03", cudaGraphLaunch(instance, stream) == cudaSuccess && out != before);
    std::vector<float> graphed = out;
    CHECK("1_03", context->enqueueV3(stream) && out == graphed);
    cudaGraphExecDestroy(instance);
    cudaGraphDestroy(graph);
    cudaStreamDestroy(stream);
}
static void block_streams()
{
    Rig r("model.onnx");
    IBuilderConfig *config = r.config.get(), *builderConfig = config;
    {
#include "1_04.inc"
#include "1_09.inc"
    } CHECK("1_04", config->getMaxAuxStreams() == 7);
    CHECK("1_09", config->getAvgTimingIterations() == 8);
    r.build();
    CHECK("1_04", r.engine != nullptr);
    CHECK("1_09", r.engine != nullptr);
    IExecutionContext *context = r.context.get();
    std::vector<cudaStream_t> streams(2);
    const int32_t nbAuxStreams = 2;
    for (auto &s : streams) cudaStreamCreate(&s);
#include "1_06.inc"
    std::vector<float> image(IMAGE, 0.5f), out(4, -1.0f);
    context->setTensorAddress("input", image.data());
    context->setTensorAddress("output", out.data());
    CHECK("1_06", context->enqueueV3(streams[0]) && out[0] != -1.0f);
    for (auto &s : streams) cudaStreamDestroy(s);
}
static void block_1_11()
{
    /* An engine of the same shapes, for the last line. */
    Rig ready, r;
    for (Rig *each : { &ready, &r }) {
        INetworkDefinition &networkDefinition = *each->network;
        IOptimizationProfile *profile = each->builder->createOptimizationProfile();
        IExecutionContext *context = ready.context.get();
        if (each == &ready) {
            networkDefinition.addInput("input", DataType::kFLOAT, Dims4(-1, 3, -1, -1));
            for (auto select : { OptProfileSelector::kMIN, OptProfileSelector::kOPT, OptProfileSelector::kMAX })
                profile->setDimensions("input", select, Dims4(8, 3, 224, 224));
        } else {
#include "1_11.inc"
            CHECK("1_11", context->getTensorShape("output").d[0] == 8);
            CHECK("1_11", profile->getDimensions("input", OptProfileSelector::kMAX).d[0] == 16);
        }
        ITensor *out =
            networkDefinition.addActivation(*networkDefinition.getInput(0), ActivationType::kRELU)->getOutput(0);
        out->setName("output");
        networkDefinition.markOutput(*out);
        each->config->addOptimizationProfile(profile);
        each->build();
    }
    CHECK("1_11", r.context && r.context->setInputShape("input", Dims4(8, 3, 224, 224)));
    CHECK("1_11", r.context && !r.context->setInputShape("input", Dims4(17, 3, 224, 224)));
}

#include "seed_engine.hpp"

int main()
{
    block_0_01();
    block_0_05();
    block_0_06();
    block_0_07();
    block_0_16();
    block_4_05();
    block_1_01();
    block_1_03();
    block_streams();
    block_1_11();
    block_3();
    for (const auto &p : passed) std::printf("%s %s\n", p.second ? "ok" : "FAIL", p.first.c_str());
    return 0;
}
