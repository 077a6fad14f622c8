/* SPDX-License-Identifier: Apache-2.0 */
/* use_samples.cpp - what programs in the shape of samples and of well-known repositories use of sinter/compat beside
 * use_tensorrt.cpp: layers by their old names, names of weights, debug listeners, plugins whose output sizes the data
 * decide or that change an input in place, questions about a model, and CUDA's smaller headers. test_cpp.py compiles
 * and runs it: use_samples DIGITS.onnx SEVEN.npy PLUGIN.onnx. */
#include "cpp_device.h"

#include <NvInfer.h>
#include <NvInferPlugin.h>
#include <NvOnnxParser.h>
#include <cuda.h>
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_profiler_api.h>

#include <cmath>
#include <fstream>
#include <iterator>
#include <memory>

using namespace nvinfer1;

class Logger : public ILogger {
  public:
    void log(Severity severity, const char *msg) noexcept override
    {
        if (severity <= Severity::kERROR) std::printf("%s\n", msg);
    }
} logger;

static owned<ICudaEngine> build(IBuilder &builder, INetworkDefinition &network, BuilderFlag flag = BuilderFlag::kTF32)
{
    const owned<IBuilderConfig> config(builder.createBuilderConfig());
    config->setFlag(flag);
    config->setBuilderOptimizationLevel(0);
    const owned<IHostMemory> plan(builder.buildSerializedNetwork(network, *config));
    const owned<IRuntime> runtime(createInferRuntime(logger));
    CHECK(plan != nullptr);
    return owned<ICudaEngine>(plan ? runtime->deserializeCudaEngine(plan->data(), plan->size()) : nullptr);
}

/* ---- layers under the names of TensorRT 7 and 8; weights with names of their own ---- */
static void old_names()
{
    const owned<IBuilder> builder(createInferBuilder(logger));
    const owned<INetworkDefinition> network(builder->createNetworkV2(0));
    builder->setMaxBatchSize(4);
    CHECK(builder->getMaxBatchSize() == 4);
    ITensor *x = network->addInput("x", DataType::kFLOAT, Dims4(1, 1, 4, 4));
    std::vector<float> kernel(9, 1), zero(1, 0), full{ 1, 2, 3, 4, 5, 6, 7, 8 }, bias{ 10, 20 };
    const Weights w{ DataType::kFLOAT, kernel.data(), 9 }, none{ DataType::kFLOAT, nullptr, 0 };
    IConvolutionLayer *conv =
        network->addConvolution(*x, 1, DimsHW{ 3, 3 }, w, Weights{ DataType::kFLOAT, zero.data(), 1 });
    conv->setPadding(DimsHW{ 1, 1 });
    conv->setStride(DimsHW{ 1, 1 });
    CHECK(conv->getPadding().h() == 1 && conv->getKernelSize().w() == 3 && conv->getStride().w() == 1);
    IPoolingLayer *pool = network->addPooling(*conv->getOutput(0), PoolingType::kMAX, DimsHW{ 2, 2 });
    pool->setStride(DimsHW{ 2, 2 });
    IFullyConnectedLayer *fc = network->addFullyConnected(*pool->getOutput(0), 2, { DataType::kFLOAT, full.data(), 8 },
                                                          { DataType::kFLOAT, bias.data(), 2 });
    CHECK(fc->getNbOutputChannels() == 2);
    IEinsumLayer *last = nullptr;
    ITensor *y = fc->getOutput(0);
    last = network->addEinsum(&y, 1, "nchw->nc");
    CHECK(!std::strcmp(last->getEquation(), "nchw->nc"));
    last->getOutput(0)->setName("y");
    network->markOutput(*last->getOutput(0));
    CHECK(network->setWeightsName(w, "stem"));
    CHECK(!network->setWeightsName(none, "nothing"));
    fc->setName("head");

    const owned<ICudaEngine> engine = build(*builder, *network, BuilderFlag::kREFIT);
    const Device<float> in(std::vector<float>(16, 1)), out({ 0, 0 });
    const owned<IRuntimeConfig> config(engine->createRuntimeConfig());
    config->setExecutionContextAllocationStrategy(ExecutionContextAllocationStrategy::kON_PROFILE_CHANGE);
    const owned<IExecutionContext> context(engine->createExecutionContext(config.get()));
    context->setTensorAddress("x", in.get());
    context->setTensorAddress("y", out.get());
    CHECK(context->enqueueV3(nullptr));
    CHECK(out.read()[0] == 9 * 10 + 10 && out.read()[1] == 9 * 26 + 20); /* a window inside sees nine ones */

    const owned<IRefitter> refitter(createInferRefitter(*engine, logger));
    char const *layers[8] = {};
    WeightsRole roles[8] = {};
    const int32_t count = refitter->getAll(8, layers, roles);
    bool has_head = false, has_stem = false;
    for (int32_t i = 0; i < count; i++) {
        has_head = has_head || (!std::strcmp(layers[i], "head") && roles[i] == WeightsRole::kBIAS);
        has_stem = has_stem || (!std::strcmp(layers[i], "stem") && roles[i] == WeightsRole::kANY);
    }
    CHECK(has_head && has_stem);
    std::vector<float> two(9, 2), other{ 1, 2 };
    CHECK(refitter->setWeights("stem", WeightsRole::kANY, { DataType::kFLOAT, two.data(), 9 }));
    CHECK(refitter->setWeights("head", WeightsRole::kBIAS, { DataType::kFLOAT, other.data(), 2 }));
    CHECK(refitter->getNamedWeights("stem").count == 9 && !refitter->getNamedWeights("head.kernel").values);
    CHECK(refitter->refitCudaEngine());
    CHECK(context->enqueueV3(nullptr));
    CHECK(out.read()[0] == 18 * 10 + 1 && out.read()[1] == 18 * 26 + 2);
}

/* ---- debug tensors ---- */
class Listener : public IDebugListener {
  public:
    bool processDebugTensor(void const *addr, TensorLocation location, DataType type, Dims const &shape, char const *name,
                            cudaStream_t stream) noexcept override
    {
        seen += std::string(name) + " ";
        CHECK(type == DataType::kFLOAT && shape.nbDims == 1 && shape.d[0] == 2);
        float values[3];
        const cudaMemcpyKind way =
            location == TensorLocation::kDEVICE ? cudaMemcpyDeviceToHost : cudaMemcpyHostToHost;
        CHECK(cudaMemcpyAsync(values, addr, 8, way, stream) == cudaSuccess && cudaStreamSynchronize(stream) == cudaSuccess);
        CHECK(way == cudaMemcpyHostToHost || cudaMemcpy(values, addr, 12, way) != cudaSuccess);
        first = values[0];
        return is_pleased;
    }
    std::string seen;
    float first = 0;
    bool is_pleased = true;
};
class Names : public IDebugListener {
  public:
    bool processDebugTensor(void const *, TensorLocation, DataType, Dims const &, char const *name, cudaStream_t) noexcept override
    {
        names += std::string(name) + " ";
        return true;
    }
    std::string names;
};
static void debug_tensors()
{
    const owned<IBuilder> builder(createInferBuilder(logger));
    const owned<INetworkDefinition> network(builder->createNetworkV2(0));
    ITensor *x = network->addInput("x", DataType::kFLOAT, Dims{ 1, { 2 } });
    ITensor *square = network->addElementWise(*x, *x, ElementWiseOperation::kPROD)->getOutput(0);
    square->setName("square");
    CHECK(network->markDebug(*square) && network->isDebugTensor(*square));
    ITensor *y = network->addUnary(*square, UnaryOperation::kNEG)->getOutput(0);
    y->setName("y");
    network->markOutput(*y);
    network->setName("squares");
    const owned<ICudaEngine> engine = build(*builder, *network);
    CHECK(std::string(engine->getName()) == "squares");
    CHECK(engine->getNbIOTensors() == 2 && engine->isDebugTensor("square") && !engine->isDebugTensor("y"));
    const owned<IExecutionContext> context(engine->createExecutionContext());
    const Device<float> in({ 3, 4 }), out({ 0, 0 });
    void *bindings[] = { in.get(), out.get() };
    Listener listener;
    CHECK(context->setDebugListener(&listener) && context->getDebugListener() == &listener);
    CHECK(context->executeV2(bindings));
    CHECK(listener.seen.empty() && !context->getDebugState("square"));
    CHECK(context->setTensorDebugState("square", true) && context->getDebugState("square"));
    CHECK(context->executeV2(bindings));
    CHECK(listener.seen == "square " && listener.first == 9 && out.read()[1] == -16);
    CHECK(context->setAllTensorsDebugState(false) && !context->getDebugState("square"));
    CHECK(context->setUnfusedTensorsDebugState(true) && context->getUnfusedTensorsDebugState());
    CHECK(context->setUnfusedTensorsDebugState(false));
    CHECK(context->setAllTensorsDebugState(true));
    listener.is_pleased = false;
    CHECK(!context->executeV2(bindings));
    /* A sum that is used for each element is in memory. */
    ITensor *sum = network->addReduce(*square, ReduceOperation::kSUM, 1, true)->getOutput(0);
    sum->setName("sum");
    network->unmarkOutput(*y);
    ITensor *z = network->addElementWise(*sum, *x, ElementWiseOperation::kPROD)->getOutput(0);
    network->markOutput(*z);
    CHECK(network->markUnfusedTensorsAsDebugTensors());
    const owned<ICudaEngine> kept = build(*builder, *network);
    const owned<IExecutionContext> other(kept->createExecutionContext());
    CHECK(kept->getNbIOTensors() == 2 && !kept->isDebugTensor("sum") && !other->getUnfusedTensorsDebugState());
    Names seen;
    CHECK(other->setDebugListener(&seen) && other->executeV2(bindings) && seen.names.empty());
    CHECK(other->setUnfusedTensorsDebugState(true) && other->executeV2(bindings) && seen.names == "sum ");
    CHECK(out.read()[0] == 3 * 25 && network->unmarkUnfusedTensorsAsDebugTensors());
}

/* ---- plugins ---- */
class Resource : public IPluginResource {
  public:
    int32_t release() noexcept override { return 0; }
    IPluginResource *clone() noexcept override { return new Resource(*this); }
};
static int outer; /* 0: results have one axis */
/* Positive(x): the positive numbers of x, and how many there are. With `in_place`, Halve(x) in x's own memory. */
class Plugin : public IPluginV3, public IPluginV3OneCore, public IPluginV3OneBuildV2, public IPluginV3OneRuntime {
  public:
    explicit Plugin(bool in_place) : in_place_(in_place) {}
    IPluginCapability *getCapabilityInterface(PluginCapabilityType type) noexcept override
    {
        if (type == PluginCapabilityType::kBUILD) return static_cast<IPluginV3OneBuildV2 *>(this);
        if (type == PluginCapabilityType::kRUNTIME) return static_cast<IPluginV3OneRuntime *>(this);
        return static_cast<IPluginV3OneCore *>(this);
    }
    IPluginV3 *clone() noexcept override { return new Plugin(in_place_); }
    AsciiChar const *getPluginName() const noexcept override { return in_place_ ? "Halve" : "Positive"; }
    AsciiChar const *getPluginVersion() const noexcept override { return "1"; }
    AsciiChar const *getPluginNamespace() const noexcept override { return ""; }
    int32_t getNbOutputs() const noexcept override { return in_place_ ? 1 : 2; }
    int32_t getAliasedInput(int32_t) noexcept override { return in_place_ ? 0 : -1; }
    int32_t configurePlugin(DynamicPluginTensorDesc const *, int32_t, DynamicPluginTensorDesc const *,
                            int32_t) noexcept override
    {
        return 0;
    }
    bool supportsFormatCombination(int32_t pos, DynamicPluginTensorDesc const *io, int32_t, int32_t) noexcept override
    {
        return io[pos].desc.type == (pos == 2 ? DataType::kINT32 : DataType::kFLOAT);
    }
    int32_t getOutputDataTypes(DataType *types, int32_t, DataType const *in, int32_t) const noexcept override
    {
        types[0] = in[0];
        if (!in_place_) types[1] = DataType::kINT32;
        return 0;
    }
    int32_t getOutputShapes(DimsExprs const *in, int32_t, DimsExprs const *, int32_t, DimsExprs *out, int32_t,
                            IExprBuilder &e) noexcept override
    {
        out[0] = in[0];
        if (in_place_) return 0;
        IDimensionExpr const *most = in[0].d[0];
        IDimensionExpr const *usual = e.operation(DimensionOperation::kFLOOR_DIV, *most, *e.constant(2));
        if (outer) { /* [outer, N] */
            out[0].nbDims = 2;
            out[0].d[0] = e.constant(outer);
            out[0].d[1] = e.declareSizeTensor(1, *usual, *most);
            out[1].nbDims = 0;
            return 0;
        }
        out[0].d[0] = e.declareSizeTensor(1, *usual, *most);
        CHECK(out[0].d[0]->isSizeTensor() && !usual->isSizeTensor() && !out[0].d[0]->isConstant());
        out[1].nbDims = 0;
        return 0;
    }
    int32_t onShapeChange(PluginTensorDesc const *, int32_t, PluginTensorDesc const *, int32_t) noexcept override
    {
        return 0;
    }
    IPluginV3 *attachToContext(IPluginResourceContext *) noexcept override { return clone(); }
    PluginFieldCollection const *getFieldsToSerialize() noexcept override { return &none_; }
    int32_t enqueue(PluginTensorDesc const *in, PluginTensorDesc const *, void const *const *inputs,
                    void *const *outputs, void *, cudaStream_t) noexcept override
    {
        auto const *x = static_cast<float const *>(inputs[0]);
        auto *y = static_cast<float *>(outputs[0]);
        int32_t count = 0;
        if (in_place_) CHECK(inputs[0] == outputs[0]);
        for (int64_t i = 0; i < in[0].dims.d[0]; i++) {
            if (in_place_) y[i] /= 2;
            else if (x[i] > 0) y[count++] = x[i];
        }
        if (!in_place_) *static_cast<int32_t *>(outputs[1]) = count;
        return 0;
    }

  private:
    bool in_place_;
    PluginFieldCollection none_;
};
template <bool IN_PLACE> class Creator : public IPluginCreatorV3One {
  public:
    IPluginV3 *createPlugin(AsciiChar const *, PluginFieldCollection const *, TensorRTPhase) noexcept override
    {
        return new Plugin(IN_PLACE);
    }
    PluginFieldCollection const *getFieldNames() noexcept override { return &none_; }
    AsciiChar const *getPluginName() const noexcept override { return IN_PLACE ? "Halve" : "Positive"; }
    AsciiChar const *getPluginVersion() const noexcept override { return "1"; }
    AsciiChar const *getPluginNamespace() const noexcept override { return ""; }

  private:
    PluginFieldCollection none_;
};
using PositiveCreator = Creator<false>;
using HalveCreator = Creator<true>;
REGISTER_TENSORRT_PLUGIN(PositiveCreator);
REGISTER_TENSORRT_PLUGIN(HalveCreator);

class Sized : public IOutputAllocator {
  public:
    void *reallocateOutput(char const *, void *, uint64_t size, uint64_t) noexcept override
    {
        memory.resize(static_cast<size_t>(size));
        return memory.data();
    }
    void notifyShape(char const *, Dims const &d) noexcept override { dims = d; }
    std::vector<char> memory;
    Dims dims;
};
static void plugins()
{
    const owned<IBuilder> builder(createInferBuilder(logger));
    const owned<INetworkDefinition> network(builder->createNetworkV2(0));
    ITensor *x = network->addInput("x", DataType::kFLOAT, Dims{ 1, { 4 } });
    Plugin halve(true), positive(false);
    ITensor *h = network->addPluginV3(&x, 1, nullptr, 0, halve)->getOutput(0);
    ITensor *sum = network->addElementWise(*h, *x, ElementWiseOperation::kSUM)->getOutput(0);
    IPluginV3Layer *last = network->addPluginV3(&sum, 1, nullptr, 0, positive);
    last->getOutput(0)->setName("y");
    last->getOutput(1)->setName("count");
    network->markOutput(*last->getOutput(0));
    network->markOutput(*last->getOutput(1));
    const owned<ICudaEngine> engine = build(*builder, *network);
    CHECK(engine->getTensorShape("y").d[0] == -1);
    const owned<IExecutionContext> context(engine->createExecutionContext());
    const Device<float> in({ 2, -4, 6, 8 });
    const Device<int32_t> count({ 0 });
    Sized y;
    context->setTensorAddress("x", in.get());
    context->setTensorAddress("count", count.get());
    context->setOutputAllocator("y", &y);
    CHECK(context->enqueueV3(nullptr));
    CHECK(count.read()[0] == 3 && y.dims.d[0] == 3);
    float const *numbers = reinterpret_cast<float const *>(y.memory.data());
    CHECK(y.memory.size() >= 12 && numbers[0] == 3 && numbers[1] == 9 && numbers[2] == 12);

    /* Such a plugin writes its rows without gaps: they would be read at wrong places. */
    for (outer = 1; outer <= 2; outer++) {
        const owned<INetworkDefinition> across(builder->createNetworkV2(0));
        ITensor *given = across->addInput("x", DataType::kFLOAT, Dims{ 1, { 4 } });
        IPluginV3Layer *wide = across->addPluginV3(&given, 1, nullptr, 0, positive);
        if (wide) across->markOutput(*wide->getOutput(0));
        const owned<IBuilderConfig> config(builder->createBuilderConfig());
        const owned<IHostMemory> plan(wide ? builder->buildSerializedNetwork(*across, *config) : nullptr);
        CHECK(!plan == (outer == 2));
    }
    outer = 0;

    Resource resource;
    IPluginRegistry &registry = *getPluginRegistry();
    IPluginResource *shared = registry.acquirePluginResource("pool", &resource);
    CHECK(shared && shared != &resource && registry.acquirePluginResource("pool", &resource) == shared);
    CHECK(registry.releasePluginResource("pool") == 0 && registry.releasePluginResource("pool") == 0);
    CHECK(registry.releasePluginResource("pool") == -1);
    int32_t creators = 0;
    CHECK(registry.getAllCreatorsRecursive(&creators) && creators == 2 + 12);
}

/* ---- questions about a model ---- */
static void models(char const *digits, char const *plugin)
{
    const owned<IBuilder> builder(createInferBuilder(logger));
    const owned<INetworkDefinition> network(builder->createNetworkV2(0));
    const owned<nvonnxparser::IParser> parser(nvonnxparser::createParser(*network, logger));
    for (char const *path : { digits, plugin }) {
        std::ifstream f(path, std::ios::binary);
        const std::vector<char> bytes{ std::istreambuf_iterator<char>(f), std::istreambuf_iterator<char>() };
        const bool is_digits = path == digits;
        CHECK(parser->supportsModelV2(bytes.data(), bytes.size(), path) == is_digits);
        CHECK(network->getNbLayers() == 0);
        CHECK((parser->getNbErrors() == 0) == is_digits);
        nvonnxparser::SubGraphCollection_t graphs;
        CHECK(parser->supportsModel(bytes.data(), bytes.size(), graphs) == is_digits);
        if (is_digits) CHECK(graphs.size() == 1 && graphs[0].second && graphs[0].first.size() > 5);
    }
    CHECK(parser->parseFromFile(digits, static_cast<int>(ILogger::Severity::kWARNING)));
    CHECK(network->getNbLayers() > 0);
    ILayer *first = network->getLayer(0);
    CHECK(parser->getLayerOutputTensor(first->getName(), 0) == first->getOutput(0));
    CHECK(!parser->getLayerOutputTensor("nowhere", 0) && !parser->getLayerOutputTensor(first->getName(), 9));
}

/* ---- CUDA's smaller headers ---- */
#ifdef SINTER_HOST_CUDA
static void cuda_headers()
{
    for (uint32_t i = 0; i < 0x10000; i++) { /* every half is itself again */
        const __half h(__half_raw{ static_cast<unsigned short>(i) });
        const float value = __half2float(h);
        CHECK(std::isnan(value) || __float2half(value).__x == i);
    }
    CHECK(float(half(65504.0f)) == 65504.0f && std::isinf(float(half(65520.0f))));
    CHECK(float(half(1.0f + 0x1p-11f)) == 1 && float(half(1.0f + 3 * 0x1p-11f)) == 1 + 2 * 0x1p-10f);
    CHECK(float(half(0x1p-25f)) == 0 && float(half(3 * 0x1p-26f)) == 0x1p-24f);
    CHECK(std::isnan(float(half(NAN))) && std::isnan(__bfloat162float(__float2bfloat16(NAN))));
    CHECK(__bfloat162float(__float2bfloat16(1.0f + 0x1p-8f)) == 1);

    CUdevice device = -1;
    CUcontext context = nullptr, now = nullptr;
    CHECK(cuInit(0) == CUDA_SUCCESS && cuDeviceGet(&device, 0) == CUDA_SUCCESS);
    CHECK(cuCtxCreate(&context, 0, device) == CUDA_SUCCESS && cuCtxGetCurrent(&now) == CUDA_SUCCESS && now == context);
    CUdeviceptr memory = 0;
    int numbers[6] = { 1, 2, 3, 4, 5, 6 }, read[6] = {};
    CHECK(cuMemAlloc(&memory, sizeof numbers) == CUDA_SUCCESS);
    CHECK(cuMemcpyHtoD(memory, numbers, sizeof numbers) == CUDA_SUCCESS);
    CHECK(cuMemcpyHtoD(memory, numbers, sizeof numbers + 1) == CUDA_ERROR_INVALID_VALUE);
    cudaPointerAttributes place;
    CHECK(cudaPointerGetAttributes(&place, reinterpret_cast<void *>(memory)) == cudaSuccess &&
          place.type == cudaMemoryTypeDevice);
    CHECK(cudaPointerGetAttributes(&place, numbers) == cudaSuccess && place.type == cudaMemoryTypeUnregistered);
    /* Two columns of three. */
    CHECK(cudaMemcpy2D(read, 8, reinterpret_cast<void *>(memory), 12, 8, 2, cudaMemcpyDeviceToHost) == cudaSuccess);
    CHECK(read[0] == 1 && read[1] == 2 && read[2] == 4 && read[3] == 5 && read[4] == 0);
    CHECK(cudaMemcpy2D(read, 4, numbers, 12, 8, 2, cudaMemcpyHostToHost) == cudaErrorInvalidValue);
    cudaGetLastError();
    CHECK(cuMemsetD32(memory, 9, 6) == CUDA_SUCCESS && cuMemcpyDtoH(read, memory, sizeof read) == CUDA_SUCCESS);
    CHECK(read[0] == 9 && read[5] == 9 && cuMemsetD32(memory, 9, 7) == CUDA_ERROR_INVALID_VALUE);
    void *const words = reinterpret_cast<void *>(memory);
    CHECK(cudaMemcpy(words, numbers, 12, cudaMemcpyHostToDevice) == cudaSuccess);
    CHECK(cudaMemcpyPeerAsync(static_cast<int *>(words) + 3, 0, words, 0, 12) == cudaSuccess &&
          cuMemcpyDtoH(read, memory, sizeof read) == CUDA_SUCCESS && read[0] == 1 && read[3] == 1 && read[5] == 3);
    CHECK(cudaMemcpyPeer(static_cast<int *>(words) + 4, 0, words, 0, 12) == cudaErrorInvalidValue);
    cudaGetLastError();
    CHECK(cuMemFree(memory) == CUDA_SUCCESS && cudaProfilerStart() == cudaSuccess);

    cudaStream_t stream;
    cudaGraph_t graph;
    cudaGraphExec_t exec;
    int calls = 0;
    auto *const count = +[](void *user) { ++*static_cast<int *>(user); };
    CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking) == cudaSuccess);
    for (int turn = 1; turn <= 2; turn++) {
        cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal);
        for (int i = 0; i < turn; i++) cudaLaunchHostFunc(stream, count, &calls);
        cudaStreamEndCapture(stream, &graph);
        cudaGraphExecUpdateResultInfo info;
        if (turn == 1) CHECK(cudaGraphInstantiateWithFlags(&exec, graph, 0) == cudaSuccess);
        else CHECK(cudaGraphExecUpdate(exec, graph, &info) == cudaSuccess && info.result == cudaGraphExecUpdateSuccess);
        CHECK(cudaGraphLaunch(exec, stream) == cudaSuccess);
        cudaGraphDestroy(graph);
    }
    CHECK(calls == 1 + 2);
    cudaGraphExecDestroy(exec);
    cudaStreamDestroy(stream);
}
#endif

int main(int argc, char **argv)
{
    if (argc < 4) return 2;
    old_names();
    debug_tensors();
    plugins();
    models(argv[1], argv[3]);
#ifdef SINTER_HOST_CUDA
    cuda_headers();
#endif
    return failures != 0;
}
