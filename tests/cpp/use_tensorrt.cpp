/* SPDX-License-Identifier: Apache-2.0 */
/* use_tensorrt.cpp - a program for TensorRT's C++ interface on sinter/compat: parser, profiles, contexts, refit,
 * graphs, calibrators, plugins of both versions, networks by calls. test_cpp.py compiles and runs it: use_tensorrt
 * DIGITS.onnx SEVEN.npy PLUGIN.onnx, the last a model with a node Scaled(x, factor). */
#include "cpp_check.h"

#include <NvInfer.h>
#include <NvInferPlugin.h>
#include <NvOnnxParser.h>
#include <cuda_runtime_api.h>

#include <cmath>
#include <fstream>
#include <iterator>
#include <memory>

using namespace nvinfer1;

class Logger : public ILogger {
  public:
    void log(Severity severity, const char *msg) noexcept override
    {
        if (severity <= Severity::kWARNING) said += std::string(msg) + "\n";
        count++;
    }
    bool has(const char *text)
    {
        const bool found = said.find(text) != std::string::npos;
        said.clear();
        return found;
    }
    std::string said;
    int count = 0;
} logger;

class Recorder : public IErrorRecorder {
  public:
    int32_t getNbErrors() const noexcept override
    {
        return static_cast<int32_t>(list.size());
    }
    ErrorCode getErrorCode(int32_t i) const noexcept override
    {
        return list[static_cast<size_t>(i)].first;
    }
    ErrorDesc getErrorDesc(int32_t i) const noexcept override
    {
        return list[static_cast<size_t>(i)].second.c_str();
    }
    bool hasOverflowed() const noexcept override
    {
        return false;
    }
    void clear() noexcept override
    {
        list.clear();
    }
    bool reportError(ErrorCode code, ErrorDesc desc) noexcept override
    {
        list.emplace_back(code, desc);
        return true;
    }
    RefCount incRefCount() noexcept override
    {
        return 1;
    }
    RefCount decRefCount() noexcept override
    {
        return 1;
    }
    std::vector<std::pair<ErrorCode, std::string>> list;
};

template <class T> using owned = std::unique_ptr<T>;

static std::vector<char> read_file(const std::string &path)
{
    std::ifstream f(path, std::ios::binary);
    return { std::istreambuf_iterator<char>(f), std::istreambuf_iterator<char>() };
}
static int best(const float *v)
{
    int at = 0;
    for (int i = 1; i < 10; i++)
        if (v[i] > v[at]) at = i;
    return at;
}

class Profiler : public IProfiler {
  public:
    void reportLayerTime(const char *, float ms) noexcept override
    {
        times.push_back(ms);
    }
    std::vector<float> times;
};
class Monitor : public IProgressMonitor {
  public:
    void phaseStart(const char *, const char *, int32_t) noexcept override
    {
        open++;
        seen++;
    }
    bool stepComplete(const char *, int32_t) noexcept override
    {
        return goes_on;
    }
    void phaseFinish(const char *) noexcept override
    {
        open--;
    }
    int open = 0, seen = 0;
    bool goes_on = true;
};
class Allocator : public IOutputAllocator {
  public:
    void *reallocateOutput(const char *, void *, uint64_t size, uint64_t) noexcept override
    {
        memory.resize(size);
        return memory.data();
    }
    void notifyShape(const char *, const Dims &d) noexcept override
    {
        dims = d;
    }
    std::vector<char> memory;
    Dims dims;
};
/* One batch, three times. */
template <class Base> class Batches : public Base {
  public:
    explicit Batches(const std::vector<float> &image) : image_(image)
    {
        cudaMalloc(&device_, image.size() * 4);
    }
    ~Batches() override
    {
        cudaFree(device_);
    }
    int32_t getBatchSize() const noexcept override
    {
        return 1;
    }
    bool getBatch(void *bindings[], const char *names[], int32_t count) noexcept override
    {
        if (given == 3 || count != 1 || std::string(names[0]) != "image") return false;
        cudaMemcpy(device_, image_.data(), image_.size() * 4, cudaMemcpyHostToDevice);
        bindings[0] = device_;
        given++;
        return true;
    }
    const void *readCalibrationCache(std::size_t &length) noexcept override
    {
        length = cache.size();
        return cache.data();
    }
    void writeCalibrationCache(const void *data, std::size_t length) noexcept override
    {
        cache.assign(static_cast<const char *>(data), length);
    }
    std::string cache;
    int given = 0;

  private:
    std::vector<float> image_;
    void *device_ = nullptr;
};
using Calibrator = Batches<IInt8EntropyCalibrator2>;
class Legacy : public Batches<IInt8LegacyCalibrator> {
  public:
    using Batches::Batches;
    double getQuantile() const noexcept override
    {
        return quantile;
    }
    double getRegressionCutoff() const noexcept override
    {
        return cutoff;
    }
    const void *readHistogramCache(std::size_t &length) noexcept override
    {
        length = 0;
        return nullptr;
    }
    void writeHistogramCache(const void *, std::size_t) noexcept override {}
    double quantile = 1, cutoff = 1;
};

/* The scale of a tensor in a calibration cache: the bits of a float in hexadecimal digits. */
static float cached_scale(const std::string &cache, const std::string &name)
{
    const std::size_t at = cache.find("\n" + name + ": ");
    if (at == std::string::npos) return -1;
    const uint32_t bits = static_cast<uint32_t>(std::stoul(cache.substr(at + name.size() + 3, 8), nullptr, 16));
    float scale;
    std::memcpy(&scale, &bits, sizeof scale);
    return scale;
}

static void digits(const std::string &path, const std::vector<float> &image)
{
    owned<IBuilder> builder(createInferBuilder(logger));
    owned<INetworkDefinition> network(builder->createNetworkV2(0));
    owned<nvonnxparser::IParser> parser(nvonnxparser::createParser(*network, logger));
    CHECK(parser->parseFromFile(path.c_str(), static_cast<int>(ILogger::Severity::kWARNING)));
    CHECK(network->getNbInputs() == 1 && std::string(network->getInput(0)->getName()) == "image");
    CHECK(network->getInput(0)->getDimensions().nbDims == 4 && network->getInput(0)->getDimensions().d[0] == -1);
    bool has_convolution = false;
    for (int32_t i = 0; i < network->getNbLayers(); i++)
        if (auto *conv = dynamic_cast<IConvolutionLayer *>(network->getLayer(i)))
            has_convolution = conv->getKernelWeights().count > 0 && conv->getStrideNd().nbDims == 2;
    CHECK(has_convolution);

    owned<IBuilderConfig> config(builder->createBuilderConfig());
    CHECK(config->getFlag(BuilderFlag::kTF32) && !config->getFlag(BuilderFlag::kFP16));
    IOptimizationProfile *profile = builder->createOptimizationProfile();
    profile->setDimensions("image", OptProfileSelector::kMIN, Dims4(1, 1, 28, 28));
    profile->setDimensions("image", OptProfileSelector::kOPT, Dims4(2, 1, 28, 28));
    CHECK(config->addOptimizationProfile(profile) == -1);
    profile->setDimensions("image", OptProfileSelector::kMAX, Dims4(4, 1, 28, 28));
    CHECK(config->addOptimizationProfile(profile) == 0);
    config->setFlag(BuilderFlag::kREFIT);
    config->setMemoryPoolLimit(MemoryPoolType::kWORKSPACE, 1 << 28);
    config->setBuilderOptimizationLevel(0);
    owned<ITimingCache> cache(config->createTimingCache(nullptr, 0));
    config->setTimingCache(*cache, false);
    Monitor monitor;
    config->setProgressMonitor(&monitor);
    config->setProfilingVerbosity(ProfilingVerbosity::kDETAILED);
    owned<IHostMemory> plan(builder->buildSerializedNetwork(*network, *config));
    CHECK(plan && plan->size() > 1000 && monitor.open == 0 && monitor.seen > 1);
    monitor.goes_on = false;
    CHECK(!builder->buildSerializedNetwork(*network, *config) && logger.has("cancel"));
    config->setProgressMonitor(nullptr);

    owned<IRuntime> runtime(createInferRuntime(logger));
    CHECK(!runtime->deserializeCudaEngine("no engine", 9) && logger.has("9"));
    owned<ICudaEngine> engine(runtime->deserializeCudaEngine(plan->data(), plan->size()));
    CHECK(engine && engine->getNbIOTensors() == 2 && engine->getTensorIOMode("image") == TensorIOMode::kINPUT);
    CHECK(engine->getProfileShape("image", 0, OptProfileSelector::kMAX).d[0] == 4 && engine->isRefittable());
    CHECK(engine->getTensorDataType("scores") == DataType::kFLOAT &&
          engine->getTensorIOMode("other") == TensorIOMode::kNONE);
    owned<IHostMemory> again(engine->serialize());
    CHECK(again->size() == plan->size() && !std::memcmp(again->data(), plan->data(), plan->size()));
    owned<IEngineInspector> inspector(engine->createEngineInspector());
    CHECK(std::string(inspector->getEngineInformation(LayerInformationFormat::kJSON)).find("{\"Layers\": [") == 0 &&
          engine->getProfilingVerbosity() == ProfilingVerbosity::kDETAILED);
    const std::string one_line = inspector->getLayerInformation(0, LayerInformationFormat::kONELINE);
    const std::string object = inspector->getLayerInformation(1, LayerInformationFormat::kJSON);
    CHECK(one_line.find("Name: ") == 0 && one_line.find("relu1") != std::string::npos);
    CHECK(object.find("{ \"Name\": ") == 0 && object.find("\"LayerType\": \"") != std::string::npos);
    CHECK(object.find("\"Dimensions\": [-1,") != std::string::npos);
    CHECK(!inspector->getLayerInformation(99, LayerInformationFormat::kJSON) && logger.has("layer 99"));

    owned<IExecutionContext> context(engine->createExecutionContext());
    void *in = nullptr, *out = nullptr;
    float scores[40];
    cudaStream_t stream;
    CHECK(cudaStreamCreate(&stream) == cudaSuccess && cudaMalloc(&in, image.size() * 4 * 4) == cudaSuccess);
    CHECK(cudaMalloc(&out, sizeof scores) == cudaSuccess);
    CHECK(!context->enqueueV3(stream) && logger.has("image"));
    CHECK(!context->setInputShape("image", Dims4(5, 1, 28, 28)) && logger.has("image"));
    CHECK(context->inferShapes(0, nullptr) == 1 && context->setInputShape("image", Dims4(1, 1, 28, 28)));
    CHECK(context->allInputDimensionsSpecified() && context->getTensorShape("scores").d[1] == 10);
    CHECK(context->setTensorAddress("image", in) && context->setTensorAddress("scores", out));
    CHECK(!context->setTensorAddress("score", out) && logger.has("'score'"));
    CHECK(cudaMemcpyAsync(in, image.data(), image.size() * 4, cudaMemcpyHostToDevice, stream) == cudaSuccess);
    CHECK(context->enqueueV3(stream));
    CHECK(cudaMemcpyAsync(scores, out, 40, cudaMemcpyDeviceToHost, stream) == cudaSuccess);
    CHECK(cudaStreamSynchronize(stream) == cudaSuccess && best(scores) == 7);
    CHECK(cudaMemcpy(in, image.data(), image.size() * 4 * 4 + 1, cudaMemcpyHostToDevice) == cudaErrorInvalidValue);

    /* A graph runs with what the memory holds when it is launched. */
    cudaGraph_t graph = nullptr;
    cudaGraphExec_t instance = nullptr;
    CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal) == cudaSuccess && context->enqueueV3(stream));
    CHECK(cudaStreamEndCapture(stream, &graph) == cudaSuccess &&
          cudaGraphInstantiate(&instance, graph, 0) == cudaSuccess);
    cudaMemset(in, 0, image.size() * 4);
    CHECK(cudaGraphLaunch(instance, stream) == cudaSuccess);
    const float first = static_cast<float *>(out)[7];
    cudaMemcpy(in, image.data(), image.size() * 4, cudaMemcpyHostToDevice);
    CHECK(cudaGraphLaunch(instance, stream) == cudaSuccess && static_cast<float *>(out)[7] != first);
    cudaGraphExecDestroy(instance);
    cudaGraphDestroy(graph);

    Profiler profiler;
    context->setProfiler(&profiler);
    CHECK(context->enqueueV3(stream) && !profiler.times.empty());
    Allocator allocator;
    CHECK(context->setInputShape("image", Dims4(3, 1, 28, 28)) && context->setOutputAllocator("scores", &allocator));
    CHECK(context->enqueueV3(stream) && allocator.dims.d[0] == 3 && allocator.memory.size() >= 120);
    CHECK(context->setOutputAllocator("scores", nullptr) && context->setInputShape("image", Dims4(1, 1, 28, 28)));
    void *bindings[] = { in, out };
    CHECK(context->executeV2(bindings) && best(static_cast<float *>(out)) == 7);

    /* Weights of zeros: all scores are equal. */
    owned<IRefitter> refitter(createInferRefitter(*engine, logger));
    using parser_refitter = nvonnxparser::IParserRefitter;
    ILogger *const log = &logger;
    CHECK(std::unique_ptr<parser_refitter>(static_cast<parser_refitter *>(
              createNvOnnxParserRefitter_INTERNAL(refitter.get(), log, NV_ONNX_PARSER_VERSION))) != nullptr);
    const int32_t count = refitter->getAllWeights(0, nullptr);
    std::vector<const char *> names(static_cast<size_t>(count));
    refitter->getAllWeights(count, names.data());
    CHECK(count > 1 && refitter->getMissingWeights(0, nullptr) == 0);
    const std::vector<float> zeros(1 << 20);
    CHECK(!refitter->setNamedWeights("none", Weights{ DataType::kFLOAT, zeros.data(), 1 }) && logger.has("none"));
    CHECK(refitter->setNamedWeights("norm1.gamma", Weights{ DataType::kFLOAT, zeros.data(), 1 }));
    CHECK(!refitter->refitCudaEngine() && logger.has("norm1.gamma"));
    for (const char *name : names) {
        Weights w = refitter->getWeightsPrototype(name);
        w.values = zeros.data();
        CHECK(w.count > 0 && refitter->setNamedWeights(name, w));
    }
    CHECK(refitter->refitCudaEngine());
    CHECK(context->executeV2(bindings) && static_cast<float *>(out)[7] == static_cast<float *>(out)[1]);
    cudaFree(in);
    cudaFree(out);
    cudaStreamDestroy(stream);

    Calibrator calibrator(image);
    config->setFlag(BuilderFlag::kINT8);
    config->setInt8Calibrator(&calibrator);
    CHECK(!builder->buildEngineWithConfig(*network, *config) && logger.has("6272 bytes"));
    IOptimizationProfile *one = builder->createOptimizationProfile();
    for (const auto select : { OptProfileSelector::kMIN, OptProfileSelector::kOPT, OptProfileSelector::kMAX })
        one->setDimensions("image", select, Dims4(1, 1, 28, 28));
    config->setCalibrationProfile(one);
    calibrator.given = 0;
    owned<ICudaEngine> quantized(builder->buildEngineWithConfig(*network, *config));
    CHECK(quantized && calibrator.given == 3 &&
          calibrator.cache.find("EntropyCalibration2\nimage: ") != std::string::npos);
    /* The legacy calibrator's range: up to the quantile of what lies below the cutoff. The image reaches 1. */
    float scale[3];
    const double asked[3][2] = { { 1, 1 }, { 0.5, 1 }, { 1, 0.25 } };
    for (int i = 0; i < 3; i++) {
        Legacy legacy(image);
        legacy.quantile = asked[i][0];
        legacy.cutoff = asked[i][1];
        config->setInt8Calibrator(&legacy);
        owned<IHostMemory> made(builder->buildSerializedNetwork(*network, *config));
        CHECK(made && legacy.given == 3 && legacy.cache.find("LegacyCalibration\n") != std::string::npos);
        scale[i] = cached_scale(legacy.cache, "image") * 127;
    }
    CHECK(scale[0] > 0.99f && scale[0] < 1.01f && scale[1] < scale[0] && scale[1] > 0 && scale[2] < 0.3f);
    Legacy wrong(image);
    wrong.quantile = 2;
    config->setInt8Calibrator(&wrong);
    CHECK(!builder->buildEngineWithConfig(*network, *config) && logger.has("quantile"));
    config->setInt8Calibrator(&calibrator);
    calibrator.given = 0;
    owned<ICudaEngine> cached(builder->buildEngineWithConfig(*network, *config));
    CHECK(cached && calibrator.given == 0);
    config->setInt8Calibrator(nullptr);
    CHECK(network->getInput(0)->setDynamicRange(-1, 1));
    owned<ICudaEngine> ranged(builder->buildEngineWithConfig(*network, *config));
    CHECK(ranged != nullptr);
    config->setFlag(BuilderFlag::kSPARSE_WEIGHTS);
    Recorder recorder;
    builder->setErrorRecorder(&recorder);
    config->setMemoryPoolLimit(MemoryPoolType::kWORKSPACE, 1 << 20);
    owned<IHostMemory> third(builder->buildSerializedNetwork(*network, *config));
    CHECK(third && logger.has("2:4 sparse") && recorder.list.empty());
    const owned<INetworkDefinition> watched(builder->createNetworkV2(0));
    const owned<ICudaEngine> heir(builder->buildEngineWithConfig(*network, *config));
    const owned<IExecutionContext> grandchild(heir->createExecutionContext());
    CHECK(watched->getErrorRecorder() == &recorder && grandchild->getErrorRecorder() == &recorder);
    CHECK(!grandchild->setInputShape("none", Dims4(1, 1, 28, 28)) && recorder.list.size() == 1);
    CHECK(!parser->parse("rubbish", 7) && parser->getNbErrors() >= 1 && *parser->getError(0)->desc());
}

/* An input whose values are the sizes of the output: they lie on the host, and say the shape before a run. */
static void shape_inputs()
{
    const owned<IBuilder> builder(createInferBuilder(logger));
    const owned<INetworkDefinition> network(builder->createNetworkV2(0));
    ITensor *const x = network->addInput("x", DataType::kFLOAT, Dims{ 1, { -1 } });
    IShuffleLayer *const shuffle = network->addShuffle(*x);
    shuffle->setInput(1, *network->addInput("sizes", DataType::kINT32, Dims{ 1, { 2 } }));
    shuffle->getOutput(0)->setName("y");
    network->markOutput(*shuffle->getOutput(0));
    const owned<IBuilderConfig> config(builder->createBuilderConfig());
    IOptimizationProfile *const profile = builder->createOptimizationProfile();
    const OptProfileSelector all[] = { OptProfileSelector::kMIN, OptProfileSelector::kOPT, OptProfileSelector::kMAX };
    const int32_t sizes[3][2] = { { 1, 1 }, { 2, 3 }, { 4, 5 } };
    for (int i = 0; i < 3; i++) {
        profile->setDimensions("x", all[i], Dims{ 1, { sizes[i][0] * sizes[i][1] } });
        CHECK(profile->setShapeValues("sizes", all[i], sizes[i], 2));
    }
    config->addOptimizationProfile(profile);
    CHECK(profile->getNbShapeValues("sizes") == 2 && profile->getNbShapeValues("x") == -1 && !profile->getShapeValues("x", all[0]));
    const owned<IHostMemory> plan(builder->buildSerializedNetwork(*network, *config));
    const owned<IRuntime> runtime(createInferRuntime(logger));
    const owned<ICudaEngine> engine(runtime->deserializeCudaEngine(plan->data(), plan->size()));
    CHECK(engine->getNbIOTensors() == 3 && !engine->getProfileTensorValues("x", 0, all[0]));
    for (int i = 0; i < 3; i++) {
        CHECK(profile->getShapeValuesV2("sizes", all[i])[1] == sizes[i][1]);
        CHECK(engine->getProfileTensorValues("sizes", 0, all[i])[0] == sizes[i][0]);
        CHECK(engine->getProfileTensorValuesV2("sizes", 0, all[i])[1] == sizes[i][1]);
    }
    for (char const *text : { "[values] ", "[values] 0 abc", "[values] 0 1;,,;- x", "[values] 9 1 x" }) {
        IIdentityLayer *const mark = network->addIdentity(*network->getInput(0));
        mark->getOutput(0)->setName(text);
        network->markOutput(*mark->getOutput(0));
    }
    const owned<IHostMemory> strange(builder->buildSerializedNetwork(*network, *config));
    const owned<ICudaEngine> other(runtime->deserializeCudaEngine(strange->data(), strange->size()));
    CHECK(other->getProfileTensorValues("sizes", 0, all[2])[1] == 5);
    CHECK(engine->isShapeInferenceIO("sizes") && !engine->isShapeInferenceIO("x"));
    CHECK(engine->getTensorLocation("sizes") == TensorLocation::kHOST &&
          engine->getTensorLocation("x") == TensorLocation::kDEVICE);
    const owned<IExecutionContext> context(engine->createExecutionContext());
    CHECK(context->inferShapes(0, nullptr) == 2 && context->setInputShape("x", Dims{ 1, { 6 } }));
    CHECK(context->allInputDimensionsSpecified() && !context->allInputShapesSpecified());
    const int32_t wanted[2] = { 3, 2 };
    float in[6] = { 1, 2, 3, 4, 5, 6 }, out[6] = {};
    CHECK(context->setInputTensorAddress("sizes", wanted) && context->inferShapes(0, nullptr) == 0);
    const Dims shape = context->getTensorShape("y");
    CHECK(shape.nbDims == 2 && shape.d[0] == 3 && shape.d[1] == 2);
    CHECK(context->setTensorAddress("x", in) && context->setTensorAddress("y", out) && context->enqueueV3(nullptr));
    CHECK(out[0] == 1 && out[5] == 6);
}

/* x * factor + 1, in version 2. */
class Scaled : public IPluginV2DynamicExt {
  public:
    explicit Scaled(float factor) : factor_(factor)
    {
    }
    const char *getPluginType() const noexcept override
    {
        return "Scaled";
    }
    const char *getPluginVersion() const noexcept override
    {
        return "1";
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
        return sizeof factor_;
    }
    void serialize(void *to) const noexcept override
    {
        std::memcpy(to, &factor_, sizeof factor_);
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
    IPluginV2DynamicExt *clone() const noexcept override
    {
        return new Scaled(factor_);
    }
    DimsExprs getOutputDimensions(int32_t, const DimsExprs *in, int32_t, IExprBuilder &e) noexcept override
    {
        DimsExprs out = in[0]; /* the first axis once more, as (n + n) / 2 */
        out.d[0] = e.operation(DimensionOperation::kFLOOR_DIV,
                               *e.operation(DimensionOperation::kSUM, *in[0].d[0], *in[0].d[0]), *e.constant(2));
        return out;
    }
    bool supportsFormatCombination(int32_t pos, const PluginTensorDesc *io, int32_t, int32_t) noexcept override
    {
        return io[pos].type == DataType::kFLOAT && io[pos].format == TensorFormat::kLINEAR;
    }
    void configurePlugin(const DynamicPluginTensorDesc *, int32_t, const DynamicPluginTensorDesc *,
                         int32_t) noexcept override
    {
    }
    size_t getWorkspaceSize(const PluginTensorDesc *in, int32_t, const PluginTensorDesc *,
                            int32_t) const noexcept override
    {
        return static_cast<size_t>(in[0].dims.d[0] * in[0].dims.d[1]) * sizeof(float);
    }
    int32_t enqueue(const PluginTensorDesc *in, const PluginTensorDesc *, const void *const *inputs,
                    void *const *outputs, void *workspace, cudaStream_t) noexcept override
    {
        const int64_t n = in[0].dims.d[0] * in[0].dims.d[1];
        float *scratch = static_cast<float *>(workspace);
        for (int64_t i = 0; i < n; i++) scratch[i] = static_cast<const float *>(inputs[0])[i] * factor_;
        for (int64_t i = 0; i < n; i++) static_cast<float *>(outputs[0])[i] = scratch[i] + 1;
        return factor_ == 13 ? 1 : 0;
    }

  private:
    float factor_;
};
class ScaledCreator : public IPluginCreator {
  public:
    const char *getPluginName() const noexcept override
    {
        return "Scaled";
    }
    const char *getPluginVersion() const noexcept override
    {
        return "1";
    }
    const PluginFieldCollection *getFieldNames() noexcept override
    {
        return &fields_;
    }
    IPluginV2 *createPlugin(const char *, const PluginFieldCollection *fc) noexcept override
    {
        float factor = 2;
        for (int32_t i = 0; i < fc->nbFields; i++)
            if (std::string(fc->fields[i].name) == "factor") factor = *static_cast<const float *>(fc->fields[i].data);
        return new Scaled(factor);
    }
    IPluginV2 *deserializePlugin(const char *, const void *data, size_t size) noexcept override
    {
        float factor;
        if (size != sizeof factor) return nullptr;
        std::memcpy(&factor, data, sizeof factor);
        return new Scaled(factor);
    }
    void setPluginNamespace(const char *) noexcept override
    {
    }
    const char *getPluginNamespace() const noexcept override
    {
        return "";
    }

  private:
    PluginField field_{ "factor", nullptr, PluginFieldType::kFLOAT32, 1 };
    PluginFieldCollection fields_{ 1, &field_ };
};
REGISTER_TENSORRT_PLUGIN(ScaledCreator);

/* x shifted by a list of numbers, in version 3. */
class Shifted : public IPluginV3, public IPluginV3OneCore, public IPluginV3OneBuild, public IPluginV3OneRuntime {
  public:
    explicit Shifted(std::vector<float> by) : by_(std::move(by))
    {
    }
    IPluginCapability *getCapabilityInterface(PluginCapabilityType type) noexcept override
    {
        if (type == PluginCapabilityType::kBUILD) return static_cast<IPluginV3OneBuild *>(this);
        if (type == PluginCapabilityType::kRUNTIME) return static_cast<IPluginV3OneRuntime *>(this);
        return static_cast<IPluginV3OneCore *>(this);
    }
    IPluginV3 *clone() noexcept override
    {
        return new Shifted(by_);
    }
    const char *getPluginName() const noexcept override
    {
        return "Shifted";
    }
    const char *getPluginVersion() const noexcept override
    {
        return "2";
    }
    const char *getPluginNamespace() const noexcept override
    {
        return "";
    }
    int32_t configurePlugin(const DynamicPluginTensorDesc *, int32_t, const DynamicPluginTensorDesc *,
                            int32_t) noexcept override
    {
        return 0;
    }
    int32_t getOutputDataTypes(DataType *out, int32_t, const DataType *in, int32_t) const noexcept override
    {
        out[0] = in[0];
        return 0;
    }
    int32_t getOutputShapes(const DimsExprs *in, int32_t, const DimsExprs *, int32_t, DimsExprs *out, int32_t,
                            IExprBuilder &) noexcept override
    {
        out[0] = in[0];
        return 0;
    }
    bool supportsFormatCombination(int32_t pos, const DynamicPluginTensorDesc *io, int32_t, int32_t) noexcept override
    {
        return io[pos].desc.type == DataType::kFLOAT;
    }
    int32_t getNbOutputs() const noexcept override
    {
        return 1;
    }
    int32_t onShapeChange(const PluginTensorDesc *in, int32_t, const PluginTensorDesc *, int32_t) noexcept override
    {
        return in[0].dims.d[1] == static_cast<int64_t>(by_.size()) ? 0 : 1;
    }
    int32_t enqueue(const PluginTensorDesc *in, const PluginTensorDesc *, const void *const *inputs,
                    void *const *outputs, void *, cudaStream_t) noexcept override
    {
        const int64_t n = in[0].dims.d[0] * in[0].dims.d[1];
        for (int64_t i = 0; i < n; i++)
            static_cast<float *>(outputs[0])[i] =
                static_cast<const float *>(inputs[0])[i] + by_[static_cast<size_t>(i) % by_.size()];
        return 0;
    }
    IPluginV3 *attachToContext(IPluginResourceContext *) noexcept override
    {
        return clone();
    }
    const PluginFieldCollection *getFieldsToSerialize() noexcept override
    {
        field_ = PluginField("by", by_.data(), PluginFieldType::kFLOAT32, static_cast<int32_t>(by_.size()));
        return &fields_;
    }

  private:
    std::vector<float> by_;
    PluginField field_;
    PluginFieldCollection fields_{ 1, &field_ };
};
class ShiftedCreator : public IPluginCreatorV3One {
  public:
    IPluginV3 *createPlugin(const char *, const PluginFieldCollection *fc, TensorRTPhase) noexcept override
    {
        std::vector<float> by;
        for (int32_t i = 0; i < fc->nbFields; i++) {
            const float *data = static_cast<const float *>(fc->fields[i].data);
            by.assign(data, data + fc->fields[i].length);
        }
        return new Shifted(by);
    }
    const PluginFieldCollection *getFieldNames() noexcept override
    {
        return &fields_;
    }
    const char *getPluginName() const noexcept override
    {
        return "Shifted";
    }
    const char *getPluginVersion() const noexcept override
    {
        return "2";
    }
    const char *getPluginNamespace() const noexcept override
    {
        return "";
    }

  private:
    PluginField field_{ "by", nullptr, PluginFieldType::kFLOAT32, 0 };
    PluginFieldCollection fields_{ 1, &field_ };
};

/* Builds, loads and runs a network with one input [n, 2] and one output. Empty: something failed. */
static std::vector<float> run(INetworkDefinition &network, IBuilder &builder, std::vector<float> x)
{
    owned<IBuilderConfig> config(builder.createBuilderConfig());
    config->setBuilderOptimizationLevel(0);
    IOptimizationProfile *profile = builder.createOptimizationProfile();
    const char *name = network.getInput(0)->getName();
    const int64_t n = static_cast<int64_t>(x.size()) / 2;
    profile->setDimensions(name, OptProfileSelector::kMIN, Dims2(1, 2));
    profile->setDimensions(name, OptProfileSelector::kOPT, Dims2(n, 2));
    profile->setDimensions(name, OptProfileSelector::kMAX, Dims2(8, 2));
    config->addOptimizationProfile(profile);
    owned<IHostMemory> plan(builder.buildSerializedNetwork(network, *config));
    owned<IRuntime> runtime(createInferRuntime(logger));
    owned<ICudaEngine> engine(plan ? runtime->deserializeCudaEngine(plan->data(), plan->size()) : nullptr);
    owned<IExecutionContext> context(engine ? engine->createExecutionContext() : nullptr);
    std::vector<float> y(64, -99);
    if (!context || !context->setInputShape(name, Dims2(n, 2)) || !context->setTensorAddress(name, x.data()) ||
        !context->setTensorAddress(engine->getIOTensorName(1), y.data()) || !context->enqueueV3(nullptr))
        return {};
    const Dims d = context->getTensorShape(engine->getIOTensorName(1));
    int64_t count = 1;
    for (int32_t i = 0; i < d.nbDims; i++) count *= d.d[i];
    y.resize(static_cast<size_t>(count));
    return y;
}

static void plugins(const std::string &model)
{
    CHECK(getPluginRegistry()->getPluginCreator("Scaled", "1") &&
          !getPluginRegistry()->getPluginCreator("Scaled", "2"));
    static ShiftedCreator creator;
    CHECK(getPluginRegistry()->registerCreator(creator, "") && !getPluginRegistry()->registerCreator(creator, ""));
    CHECK(logger.has("registered already"));
    int32_t count = 0;
    IPluginCreatorInterface *const *const all = getPluginRegistry()->getAllCreators(&count);
    CHECK(count == 2 + 12 && all[1] == &creator); /* behind them those that upstream ships */
    owned<IBuilder> builder(createInferBuilder(logger));

    owned<INetworkDefinition> parsed(builder->createNetworkV2(0));
    owned<nvonnxparser::IParser> parser(nvonnxparser::createParser(*parsed, logger));
    CHECK(parser->parseFromFile(model.c_str(), 0));
    CHECK((run(*parsed, *builder, { 1, 2, 3, 4 }) == std::vector<float>{ 3.5, 6, 8.5, 11 }));

    owned<INetworkDefinition> made(builder->createNetworkV2(0));
    ITensor *x = made->addInput("x", DataType::kFLOAT, Dims2(-1, 2));
    Scaled *scaled =
        static_cast<Scaled *>(ScaledCreator().createPlugin("s", std::make_unique<PluginFieldCollection>().get()));
    IPluginV2Layer *layer = made->addPluginV2(&x, 1, *scaled);
    scaled->destroy();
    CHECK(layer && layer->getOutput(0)->getDimensions().d[0] == -1);
    CHECK(layer->getPlugin().getPluginType() == std::string("Scaled") && layer->getPlugin().getNbOutputs() == 1);
    const owned<Shifted> shifted(new Shifted({ 10, 20 }));
    ITensor *y = layer->getOutput(0);
    IPluginV3Layer *last = made->addPluginV3(&y, 1, nullptr, 0, *shifted);
    CHECK(last && last->getPlugin().getCapabilityInterface(PluginCapabilityType::kCORE) && &last->getPlugin() != shifted.get());
    made->markOutput(*last->getOutput(0));
    CHECK((run(*made, *builder, { 1, 2, 3, 4, 5, 6 }) == std::vector<float>{ 13, 25, 17, 29, 21, 33 }));

    /* What a plugin reports fails the run. */
    owned<INetworkDefinition> bad(builder->createNetworkV2(0));
    ITensor *z = bad->addInput("x", DataType::kFLOAT, Dims2(-1, 2));
    Scaled failing(13);
    bad->markOutput(*bad->addPluginV2(&z, 1, failing)->getOutput(0));
    CHECK(run(*bad, *builder, { 1, 2 }).empty() && logger.has("enqueue() returned 1"));
    const owned<Shifted> wrong(new Shifted({ 10 }));
    owned<INetworkDefinition> refused(builder->createNetworkV2(0));
    ITensor *w = refused->addInput("x", DataType::kFLOAT, Dims2(-1, 2));
    refused->markOutput(*refused->addPluginV3(&w, 1, nullptr, 0, *wrong)->getOutput(0));
    CHECK(run(*refused, *builder, { 1, 2 }).empty() && logger.has("onShapeChange"));
}

static void networks()
{
    owned<IBuilder> builder(createInferBuilder(logger));
    owned<INetworkDefinition> network(builder->createNetworkV2(0));
    ITensor *x = network->addInput("x", DataType::kFLOAT, Dims2(-1, 2));
    CHECK(!network->addInput("x", DataType::kFLOAT, Dims2(-1, 2)) && logger.has("x"));
    const float w[] = { 1, 2, 3, 4 };
    IConstantLayer *c = network->addConstant(Dims2(2, 2), Weights{ DataType::kFLOAT, w, 4 });
    IMatrixMultiplyLayer *m =
        network->addMatrixMultiply(*x, MatrixOperation::kNONE, *c->getOutput(0), MatrixOperation::kTRANSPOSE);
    CHECK(m->getOperation(1) == MatrixOperation::kTRANSPOSE && m->getType() == LayerType::kMATRIX_MULTIPLY);
    IActivationLayer *a = network->addActivation(*m->getOutput(0), ActivationType::kLEAKY_RELU);
    a->setAlpha(0.5f);
    a->setName("leaky");
    CHECK(a->getAlpha() == 0.5f && std::string(a->getName()) == "leaky" && network->getNbLayers() == 3);
    IShuffleLayer *s = network->addShuffle(*a->getOutput(0));
    s->setFirstTranspose(Permutation{ { 1, 0 } });
    CHECK(s->getFirstTranspose().order[0] == 1);
    ITensor *both[] = { s->getOutput(0), s->getOutput(0) };
    IConcatenationLayer *k = network->addConcatenation(both, 2);
    CHECK(k->getAxis() == 0);
    k->setAxis(0);
    IReduceLayer *r = network->addReduce(*k->getOutput(0), ReduceOperation::kSUM, 2, false);
    r->getOutput(0)->setName("y");
    a->setPrecision(DataType::kINT8);
    CHECK(a->precisionIsSet() && a->getPrecision() == DataType::kINT8);
    CHECK(x->setDynamicRange(-4, 4) && !x->setDynamicRange(2, 1) && x->getDynamicRangeMin() == -4);
    network->markOutput(*r->getOutput(0));
    /* x = [1 2; -3 0]: x * w^T = [5 11; -3 -9], leaky [5 11; -1.5 -4.5], sums of columns 3.5 and 6.5 */
    CHECK((run(*network, *builder, { 1, 2, -3, 0 }) == std::vector<float>{ 3.5f, 6.5f, 3.5f, 6.5f }));
    ITensor *images[] = { network->addInput("images", DataType::kFLOAT, Dims4(1, 2, 4, 4)) };
    CHECK(network->addConcatenation(images, 1)->getAxis() == 1);
    Dims bad;
    bad.nbDims = 9;
    CHECK(!network->addInput("bad", DataType::kFLOAT, bad) && logger.has("9 axes"));
    CHECK(!network->addSlice(*x, Dims2(0, 0), Dims2(1, 1), Dims2(1, 1))->getOutput(1));

    owned<INetworkDefinition> typed(
        builder->createNetworkV2(1u << static_cast<int>(NetworkDefinitionCreationFlag::kSTRONGLY_TYPED)));
    ITensor *h = typed->addInput("x", DataType::kFLOAT, Dims2(-1, 2));
    ILayer *relu = typed->addActivation(*h, ActivationType::kRELU);
    relu->setPrecision(DataType::kHALF);
    CHECK(!relu->precisionIsSet() && logger.has("typed"));
    typed->markOutput(*relu->getOutput(0));
    CHECK((run(*typed, *builder, { -1, 2 }) == std::vector<float>{ 0, 2 }));
}

/* x as one of the shape [1, 1, rows, 2]. */
static ITensor *as_heads(INetworkDefinition &network, ITensor &x, int64_t rows)
{
    IShuffleLayer *s = network.addShuffle(x);
    s->setReshapeDimensions(Dims4(1, 1, rows, 2));
    return s->getOutput(0);
}

static bool are_close(const std::vector<float> &a, const std::vector<float> &b)
{
    if (a.size() != b.size()) return false;
    for (size_t i = 0; i < a.size(); i++)
        if (!(a[i] - b[i] < 1e-5f && b[i] - a[i] < 1e-5f)) return false;
    return true;
}

static void attention()
{
    static const int32_t one_key[] = { 1 };
    owned<IBuilder> builder(createInferBuilder(logger));
    for (int has_lengths = 0; has_lengths < 2; has_lengths++) {
        owned<INetworkDefinition> network(builder->createNetworkV2(0));
        ITensor *h = as_heads(*network, *network->addInput("x", DataType::kFLOAT, Dims2(-1, 2)), 2);
        IAttention *a =
            network->addAttentionV2(*h, *h, *h, AttentionNormalizationOp::kSOFTMAX, CausalMaskKind::kLOWER_RIGHT);
        CHECK(a->getCausal() && a->setCausalKind(CausalMaskKind::kUPPER_LEFT) && a->setName("attention"));
        CHECK(a->setQueryForm(AttentionIOForm::kPADDED_BHND) && !a->getMask() && !a->getKeyValueLengths());
        CHECK(a->setNbRanks(1) && !a->setNbRanks(2) && logger.has("1 rank"));
        Dims d = Dims2(1, 1);
        d.nbDims = 1;
        if (has_lengths)
            CHECK(a->setKeyValueLengths(
                network->addConstant(d, Weights{ DataType::kINT32, one_key, 1 })->getOutput(0)));
        network->markOutput(*a->getOutput(0));
        const std::vector<float> y = run(*network, *builder, { 1, 0, 0, 1 });
        /* Row 1 meets keys with the products 0 and 1; of one key it takes that. */
        if (has_lengths) CHECK((y == std::vector<float>{ 1, 0, 1, 0 }));
        else CHECK(are_close(y, { 1, 0, 0.26894142f, 0.73105858f }));
    }
}

static void experts()
{
    static const int32_t which[] = { 1 };
    static const float score[] = { 0.5f }, gate[] = { 9, 9, 9, 9, 1, 0, 0, 1 }, up[] = { 9, 9, 9, 9, 2, 0, 0, 2 };
    static const float none[] = { 0, 0, 0, 0 }, bias[] = { 9, 9, 1, 1 };
    owned<IBuilder> builder(createInferBuilder(logger));
    owned<INetworkDefinition> network(builder->createNetworkV2(0));
    const auto given = [&](Dims const &d, float const *w, int64_t count) -> ITensor & {
        return *network->addConstant(d, Weights{ DataType::kFLOAT, w, count })->getOutput(0);
    };
    IShuffleLayer *h = network->addShuffle(*network->addInput("x", DataType::kFLOAT, Dims2(-1, 2)));
    h->setReshapeDimensions(Dims3(1, 1, 2));
    ITensor *expert = network->addConstant(Dims3(1, 1, 1), Weights{ DataType::kINT32, which, 1 })->getOutput(0);
    IMoELayer *m = network->addMoE(*h->getOutput(0), *expert, given(Dims3(1, 1, 1), score, 1));
    m->setGatedWeights(given(Dims3(2, 2, 2), gate, 8), given(Dims3(2, 2, 2), up, 8), given(Dims3(2, 2, 2), gate, 8),
                       MoEActType::kSILU);
    m->setActivationType(MoEActType::kNONE);
    m->setGatedBiases(given(Dims2(2, 2), none, 4), given(Dims2(2, 2), none, 4), given(Dims2(2, 2), bias, 4));
    CHECK(m->getActivationType() == MoEActType::kNONE && m->getNbInputs() == 9);
    m->setQuantizationBlockShape(Dims2(1, 16));
    CHECK(logger.has("setQuantizationStatic"));
    network->markOutput(*m->getOutput(0));
    /* Expert 1: gate (1, 2) times up (2, 4), and 1 more; half of it. */
    CHECK((run(*network, *builder, { 1, 2 }) == std::vector<float>{ 1.5f, 4.5f }));
}

/* What is made and asked about, and not run. */
static void newer_calls()
{
    owned<IBuilder> builder(createInferBuilder(logger));
    owned<INetworkDefinition> network(builder->createNetworkV2(0));
    ITensor *x = network->addInput("x", DataType::kFLOAT, Dims2(4, 32));
    IDynamicQuantizeLayer *q = network->addDynamicQuantizeV2(*x, Dims2(1, 16), DataType::kFP4, DataType::kFP8);
    CHECK(q->getAxis() == 1 && q->getBlockSize() == 16);
    CHECK(q->getBlockShape().d[1] == 16 && q->getBlockShape().d[0] == 1);
    q->setBlockShape(Dims2(2, 16));
    CHECK(logger.has("2 sizes that are not 1") && q->getBlockSize() == 16);
    ITensor &scale = *network->addConstant(Dims2(1, 32), Weights{ DataType::kFLOAT, std::vector<float>(32).data(), 32 })
                          ->getOutput(0);
    CHECK(network->addNormalizationV2(*x, scale, scale, 2)->isV2());
    CHECK(!network->addNormalization(*x, scale, scale, 2)->isV2());
    CHECK(!network->addDistCollective(*x, CollectiveOperation::kALL_REDUCE, ReduceOperation::kSUM, 0, nullptr, 0) &&
          logger.has("one device"));
    CHECK(network->markUnfusedTensorsAsDebugTensors() && network->unmarkUnfusedTensorsAsDebugTensors());
    static const int32_t turns[] = { 2 };
    Dims scalar;
    scalar.nbDims = 0;
    ILoop *loop = network->addLoop();
    ITripLimitLayer *limit = loop->addTripLimit(
        *network->addConstant(scalar, Weights{ DataType::kINT32, turns, 1 })->getOutput(0), TripLimit::kCOUNT);
    IRecurrenceLayer *carried = loop->addRecurrence(*x);
    carried->setInput(1, *network->addUnary(*carried->getOutput(0), UnaryOperation::kNEG)->getOutput(0));
    CHECK(limit->getLoop() == loop && carried->getLoop() == loop);
    owned<IBuilderConfig> config(builder->createBuilderConfig());
    CHECK(config->setBuildRoute("") && !config->setBuildRoute("other") && !config->setRemoteAutoTuningConfig("ssh://"));
    const std::unique_ptr<ITimingCache> cache(config->createTimingCache(nullptr, 0)),
        foreign(config->createTimingCache("\001\377ptrt", 6));
    CHECK(foreign->is_foreign() && !cache->is_foreign() && foreign->text().empty());
    v_1_0::TimingCacheKey key = {};
    CHECK(cache->queryKeys(&key, 1) == 0 && cache->query(key).tacticHash == TimingCacheValue::kINVALID_TACTIC_HASH);
    CHECK(!cache->update(key, TimingCacheValue{ 1, 1 }));
}

/* Each key of a timing cache takes each of its other tactics; one that is removed is measured again. */
static void edited_cache()
{
    const owned<IBuilder> builder(createInferBuilder(logger));
    const owned<INetworkDefinition> network(builder->createNetworkV2(0));
    ITensor *const x = network->addInput("x", DataType::kFLOAT, Dims2(512, 256));
    network->markOutput(*network->addMatrixMultiply(*x, MatrixOperation::kNONE, *x, MatrixOperation::kTRANSPOSE)->getOutput(0));
    const owned<IBuilderConfig> config(builder->createBuilderConfig());
    config->setFlag(BuilderFlag::kEDITABLE_TIMING_CACHE);
    config->setBuilderOptimizationLevel(5);
    const std::unique_ptr<ITimingCache> cache(config->createTimingCache(nullptr, 0));
    config->setTimingCache(*cache, false);
    const owned<IHostMemory> plan(builder->buildSerializedNetwork(*network, *config));
    const int64_t count = cache->queryKeys(nullptr, 0);
    CHECK(plan && count > 0);
    std::vector<TimingCacheKey> keys(static_cast<size_t>(count));
    CHECK(cache->queryKeys(keys.data(), count) == count);
    const TimingCacheValue best = cache->query(keys[0]);
    uint64_t other = best.tacticHash;
    bool is_first = true;
    for (std::string const &line : cache->described()) {
        char kernel[128], tactic[128];
        if (line.rfind("Autotuning op ", 0) == 0) is_first = line == cache->described()[0];
        if (is_first && std::sscanf(line.c_str(), "%*d, %*f, %*f, %*f, %127[^,], %127[^,]", kernel, tactic) == 2)
            other = std::stoull(tactic, nullptr, 16);
    }
    CHECK(best.timingMSec > 0 && !cache->update(keys[0], TimingCacheValue{ best.tacticHash + 1, 1 }));
    CHECK(cache->update(keys[0], TimingCacheValue{ other, best.timingMSec }));
    CHECK(cache->query(keys[0]).tacticHash == other &&
          std::fabs(cache->query(keys[0]).timingMSec / best.timingMSec - 1) < 1e-5f);
    const owned<IHostMemory> bytes(cache->serialize());
    const std::unique_ptr<ITimingCache> again(config->createTimingCache(bytes->data(), bytes->size()));
    CHECK(again->queryKeys(nullptr, 0) == count && again->combine(*cache, false) && again->text() == cache->text());
    CHECK(cache->update(keys[0], TimingCacheValue{ other, std::nanf("") }) && cache->queryKeys(nullptr, 0) == count - 1);
    CHECK(again->combine(*cache, false) && again->queryKeys(nullptr, 0) == count && again->reset());
}

int main(int argc, char **argv)
{
    if (argc != 4) return 2;
    CHECK(initLibNvInferPlugins(&logger, "") && getInferLibVersion() == NV_TENSORRT_VERSION);
    const std::vector<char> npy = read_file(argv[2]);
    std::vector<float> image(28 * 28);
    std::memcpy(image.data(), npy.data() + npy.size() - image.size() * 4, image.size() * 4);
    digits(argv[1], image);
    plugins(argv[3]);
    networks();
    shape_inputs();
    attention();
    experts();
    newer_calls();
    edited_cache();
    if (!logger.said.empty()) std::printf("last words: %s", logger.said.c_str());
    std::printf("%d failures\n", failures);
    return failures != 0;
}
