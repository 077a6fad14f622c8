/* SPDX-License-Identifier: Apache-2.0 */
/* use_tensorrt8.cpp - a program in the style of TensorRT 8: C++14, bindings by number, unique pointers with destroy(),
 * a progress monitor, the parser's refitter. test_cpp.py compiles and runs it: use_tensorrt8 DIGITS.onnx SEVEN.npy
 * FOLDER. */
#include "cpp_check.h"

#include <NvInfer.h>
#include <NvInferConsistency.h>
#include <NvInferLegacyDims.h>
#include <NvInferPluginUtils.h>
#include <NvInferSafeRuntime.h>
#include <NvOnnxConfig.h>
#include <NvOnnxParser.h>
#include <cuda_runtime_api.h>

#include <array>
#include <fstream>
#include <iterator>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

using namespace nvinfer1;

class Logger : public ILogger {
  public:
    void log(Severity severity, const char *msg) noexcept override
    {
        if (severity <= Severity::kERROR) errors += std::string(msg) + "\n";
    }
    std::string errors;
} logger;

class TRT_DEPRECATED_BECAUSE("there is a layer for it") OldPlugin : public IVersionedInterface {
  public:
    TRT_NODISCARD bool isOld() const { return true; }
    TRT_NODISCARD_BECAUSE("it says nothing else") bool isNew() const { return false; }
};

static_assert(NV_TENSORRT_VERSION_INT(10, 13, 0) == NV_TENSORRT_VERSION, "the version as one number");

static_assert(LayerType::kPLUGIN != LayerType::kPLUGIN_V3 && static_cast<int>(LayerType::kPLUGIN_V3) == 46, "two kinds");

/* Setters that say whether the value was taken. */
#define SAYS(Class, ...) \
    static_assert(std::is_same<decltype(std::declval<Class &>().__VA_ARGS__), bool>::value, #Class "::" #__VA_ARGS__)
SAYS(IBuilderConfig, setMaxAuxStreams(0));
SAYS(IBuilderConfig, setTilingOptimizationLevel(TilingOptimizationLevel::kNONE));
SAYS(ITopKLayer, setIndicesType(DataType::kINT32));
SAYS(INonZeroLayer, setIndicesType(DataType::kINT32));
SAYS(INMSLayer, setIndicesType(DataType::kINT32));
SAYS(IQuantizeLayer, setBlockShape(Dims2(1, 16)));
SAYS(IDequantizeLayer, setBlockShape(Dims2(1, 16)));
SAYS(ICumulativeLayer, setOperation(CumulativeOperation::kSUM));
SAYS(IGridSampleLayer, setSampleMode(SampleMode::kFILL));
SAYS(IRotaryEmbeddingLayer, setRotaryEmbeddingDim(8));

struct Deleter {
    template <typename T> void operator()(T *object) const
    {
        if (object) object->destroy();
    }
};
template <typename T> using Unique = std::unique_ptr<T, Deleter>;

static std::string read(const std::string &path)
{
    std::ifstream file(path, std::ios::binary);
    return std::string(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>());
}

/* Counts phases, and ends the build where it is told to. */
class Monitor : public IProgressMonitor {
  public:
    void phaseStart(char const *phase, char const *, int32_t steps) noexcept override
    {
        open++;
        started.push_back(phase);
        CHECK(steps > 0);
        most = steps;
    }
    bool stepComplete(char const *phase, int32_t step) noexcept override
    {
        CHECK(step >= 0 && step < most && phase == started.back());
        return started.back() != cancel_in;
    }
    void phaseFinish(char const *phase) noexcept override
    {
        CHECK(phase == started.back());
        open--;
    }
    int open = 0;
    int32_t most = 0;
    std::string cancel_in;
    std::vector<std::string> started;
};

static Unique<ICudaEngine> build(const std::string &model, const std::string &path, Monitor *monitor, bool refit)
{
    Unique<IBuilder> builder(createInferBuilder(logger));
    const auto flag = 1U << static_cast<uint32_t>(NetworkDefinitionCreationFlag::kEXPLICIT_BATCH);
    Unique<INetworkDefinition> network(builder->createNetworkV2(flag));
    Unique<nvonnxparser::IParser> parser(nvonnxparser::createParser(*network, logger));
    CHECK(parser->supportsOperator("Conv") && !parser->supportsOperator("Convolution") &&
          !parser->supportsOperator("matmul"));
    CHECK(parser->parse(model.data(), model.size(), path.c_str()));
    INetworkDefinition const &seen = *network;
    CHECK(seen.getNbLayers() > 0 && seen.getLayer(0)->getNbOutputs() == 1 &&
          std::string(seen.getInput(0)->getName()) == "image");
    Unique<IBuilderConfig> config(builder->createBuilderConfig());
    config->setMaxWorkspaceSize(size_t(1) << 28);
    config->setTacticSources(1U << static_cast<uint32_t>(TacticSource::kCUBLAS));
    CHECK(config->getTacticSources() == 1 && config->getMinTimingIterations() == 1 &&
          !config->canRunOnDLA(seen.getLayer(0)));
    config->setBuilderOptimizationLevel(0);
    if (refit) config->setFlag(BuilderFlag::kREFIT);
    config->setProgressMonitor(monitor);
    for (const int32_t most : { 2, 8 }) {
        IOptimizationProfile *profile = builder->createOptimizationProfile();
        profile->setDimensions("image", OptProfileSelector::kMIN, Dims4(1, 1, 28, 28));
        profile->setDimensions("image", OptProfileSelector::kOPT, Dims4(most, 1, 28, 28));
        profile->setDimensions("image", OptProfileSelector::kMAX, Dims4(most, 1, 28, 28));
        CHECK(config->addOptimizationProfile(profile) >= 0);
        if (refit) break;
    }
    IHostMemory *text = nullptr;
    Unique<IHostMemory> plan(builder->buildSerializedNetwork(*network, *config, text));
    CHECK(!text);
    if (!plan) return nullptr;
    Unique<IRuntime> runtime(createInferRuntime(logger));
    runtime->setTemporaryDirectory("elsewhere");
    CHECK(std::string(runtime->getTemporaryDirectory()) == "elsewhere");
    return Unique<ICudaEngine>(runtime->deserializeCudaEngine(plan->data(), plan->size(), nullptr));
}

/* The class of each image of a batch, by bindings. */
static std::vector<int> classify(ICudaEngine &engine, const std::vector<float> &image, int32_t profile, int32_t batch)
{
    Unique<IExecutionContext> context(engine.createExecutionContext());
    const int32_t each = engine.getNbBindings() / engine.getNbOptimizationProfiles(), first = profile * each;
    CHECK(each == 2 && engine.bindingIsInput(first) && !engine.bindingIsInput(first + 1));
    CHECK(engine.getBindingIndex("scores") == 1 && engine.getBindingIndex("none") == -1 && !engine.getBindingName(99));
    const std::string name = profile ? "image [profile " + std::to_string(profile) + "]" : "image";
    CHECK(engine.getBindingName(first) == name && engine.getBindingIndex(name.c_str()) == first);
    CHECK(engine.getBindingDataType(first) == DataType::kFLOAT);
    CHECK(engine.getBindingDimensions(first).d[0] == -1);
    CHECK(engine.getBindingBytesPerComponent(first) == 4 && engine.getWorkspaceSize() == engine.getDeviceMemorySize());
    CHECK(!engine.getProfileShapeValues(first, 0, OptProfileSelector::kMIN));
    CHECK(engine.getProfileDimensions(first, profile, OptProfileSelector::kMAX).d[0] == (profile ? 8 : 2));
    CHECK(context->setOptimizationProfile(profile));
    CHECK(!context->allInputDimensionsSpecified() && context->setBindingDimensions(first, Dims4(batch, 1, 28, 28)));
    CHECK(context->allInputDimensionsSpecified() && context->getBindingDimensions(first + 1).d[0] == batch);
    CHECK(context->getStrides(first + 1).d[0] == 10 && context->getStrides(first + 1).d[1] == 1);
    std::vector<float> images, scores(static_cast<size_t>(batch) * 10);
    for (int32_t i = 0; i < batch; i++) images.insert(images.end(), image.begin(), image.end());
    std::vector<void *> bindings(static_cast<size_t>(engine.getNbBindings()), nullptr);
    const size_t in = static_cast<size_t>(first), out = in + 1;
    CHECK(cudaMalloc(&bindings[in], images.size() * 4) == cudaSuccess &&
          cudaMalloc(&bindings[out], scores.size() * 4) == cudaSuccess);
    cudaStream_t stream;
    cudaStreamCreate(&stream);
    cudaMemcpyAsync(bindings[in], images.data(), images.size() * 4, cudaMemcpyHostToDevice, stream);
    CHECK(context->enqueueV2(bindings.data(), stream, nullptr));
    cudaMemcpyAsync(scores.data(), bindings[out], scores.size() * 4, cudaMemcpyDeviceToHost, stream);
    cudaStreamSynchronize(stream);
    CHECK(context->execute(1, bindings.data()));
    cudaFree(bindings[in]);
    cudaFree(bindings[out]);
    cudaStreamDestroy(stream);
    std::vector<int> found;
    for (size_t i = 0; i < scores.size(); i += 10) {
        int best = 0;
        for (int k = 1; k < 10; k++)
            if (scores[i + static_cast<size_t>(k)] > scores[i + static_cast<size_t>(best)]) best = k;
        found.push_back(best);
    }
    return found;
}

/* A network of an older program, which no macro says: the first window has an input without a batch. */
static void implicit_batch()
{
    Unique<IBuilder> builder(createInferBuilder(logger));
    Unique<INetworkDefinition> network(builder->createNetworkV2(0U));
    Unique<IBuilderConfig> config(builder->createBuilderConfig());
    ITensor *const x = network->addInput("x", DataType::kFLOAT, Dims3(2, 2, 2));
    ITensor *const positive = network->addActivation(*x, ActivationType::kRELU)->getOutput(0);
    CHECK(!network->hasImplicitBatchDimension());
    ITensor *const y = network->addPoolingNd(*positive, PoolingType::kMAX, DimsHW(2, 2))->getOutput(0);
    CHECK(network->hasImplicitBatchDimension() && x->getDimensions().nbDims == 3 && y->getDimensions().nbDims == 3 &&
          positive->getDimensions().d[0] == 2);
    const float one[2] = { 1, 2 };
    const Weights kernel{ DataType::kFLOAT, one, 2 };
    ITensor *const sum = network->addFullyConnected(*y, 1, kernel, Weights{ DataType::kFLOAT, nullptr, 0 })->getOutput(0);
    network->markOutput(*sum);
    builder->setMaxBatchSize(3);
    Unique<ICudaEngine> engine(builder->buildEngineWithConfig(*network, *config));
    CHECK(engine && engine->getMaxBatchSize() == 3 && engine->getNbBindings() == 2);
    if (!engine) return;
    Unique<IExecutionContext> context(engine->createExecutionContext());
    float in[16] = { 1, 2, 3, 4, 5, 6, 7, 8, -1, -2, -3, -4, 0, 9, 0, 0 }, out[2] = {};
    void *bindings[2] = { in, out };
    CHECK(context->execute(2, bindings) && out[0] == 4 + 2 * 8 && out[1] == 18);

    Unique<INetworkDefinition> whole(
        builder->createNetworkV2(1U << static_cast<uint32_t>(NetworkDefinitionCreationFlag::kEXPLICIT_BATCH)));
    ITensor *const z = whole->addInput("z", DataType::kFLOAT, Dims3(2, 2, 2));
    (void)whole->addPoolingNd(*z, PoolingType::kMAX, DimsHW(2, 2));
    CHECK(!whole->hasImplicitBatchDimension());
}

/* Weights that a program keeps as upstream's samples do, and parameters of plugins; both were there before version 8. */
class Kept : public IHostMemory {
  public:
    void *data() const noexcept override { return const_cast<float *>(&value_); }
    size_t size() const noexcept override { return sizeof value_; }
    DataType type() const noexcept override { return DataType::kFLOAT; }
    void destroy() noexcept override { delete this; }

  private:
    float value_ = 1;
};

static void names_of_before()
{
    Unique<IHostMemory> kept(new Kept);
    plugin::DetectionOutputParameters detection{};
    detection.codeType = plugin::CodeTypeSSD::TF_CENTER;
    const plugin::NMSParameters nms{ true, 0, 80, 100, 10, 0.5f, 0.5f, true };
    CHECK(kept->size() == 4 && nms.numClasses == 80 && static_cast<int>(detection.codeType) == 3);
    CHECK(!safe::createInferRuntime(logger) && !consistency::createConsistencyChecker(logger, nullptr, 0));
    logger.errors.clear();
}

/* Sizes as values of an input, which the bindings of a run do not have. */
static void shape_bindings()
{
    Unique<IBuilder> builder(createInferBuilder(logger));
    Unique<INetworkDefinition> network(builder->createNetworkV2(1));
    ITensor *const x = network->addInput("x", DataType::kFLOAT, Dims2(2, 6));
    ITensor *const sizes = network->addInput("sizes", DataType::kINT32, Dims{ 1, { 2 } });
    IShuffleLayer *const shuffle = network->addShuffle(*x);
    shuffle->setInput(1, *sizes);
    network->markOutput(*shuffle->getOutput(0));
    Unique<IBuilderConfig> config(builder->createBuilderConfig());
    IOptimizationProfile *const profile = builder->createOptimizationProfile();
    const int32_t least[] = { 1, 1 }, most[] = { 12, 12 };
    CHECK(profile->setShapeValues("sizes", OptProfileSelector::kMIN, least, 2));
    CHECK(profile->setShapeValues("sizes", OptProfileSelector::kOPT, least, 2));
    CHECK(profile->setShapeValues("sizes", OptProfileSelector::kMAX, most, 2));
    config->addOptimizationProfile(profile);
    Unique<IHostMemory> plan(builder->buildSerializedNetwork(*network, *config));
    CHECK(plan != nullptr);
    if (!plan) return;
    Unique<IRuntime> runtime(createInferRuntime(logger));
    Unique<ICudaEngine> engine(runtime->deserializeCudaEngine(plan->data(), plan->size()));
    Unique<IExecutionContext> context(engine->createExecutionContext());
    int32_t wanted[] = { 4, 3 }, told[2] = {};
    CHECK(engine->isShapeBinding(1) && context->setInputShapeBinding(1, wanted));
    wanted[0] = wanted[1] = 0;
    CHECK(context->getShapeBinding(1, told) && told[0] == 4 && told[1] == 3);
    float in[12] = {}, out[144] = {};
    in[11] = 5;
    void *bindings[] = { in, nullptr, out };
    CHECK(context->executeV2(bindings) && out[11] == 5);
    CHECK(context->getBindingDimensions(2).d[0] == 4 && context->getBindingDimensions(2).d[1] == 3);
}

int main(int argc, char **argv)
{
    if (argc < 4) return 2;
    names_of_before();
    shape_bindings();
    const std::string model = read(argv[1]), seven = read(argv[2]);
    std::vector<float> image(784);
    std::memcpy(image.data(), seven.data() + seven.size() - 784 * 4, 784 * 4);

    Monitor monitor;
    Unique<ICudaEngine> engine = build(model, argv[1], &monitor, false);
    CHECK(engine && monitor.open == 0 && monitor.started.size() >= 3);
    if (!engine) return 1;
    CHECK(classify(*engine, image, 0, 2) == std::vector<int>(2, 7));
    CHECK(classify(*engine, image, 1, 8) == std::vector<int>(8, 7));

    /* A build that is cancelled ends its phases, too. */
    Monitor stops;
    stops.cancel_in = monitor.started.back();
    CHECK(!build(model, "", &stops, false) && stops.open == 0);

    Unique<ICudaEngine> other = build(model, "elsewhere.onnx", nullptr, true);
    Unique<IRefitter> refitter(createInferRefitter(*other, logger));
    std::unique_ptr<nvonnxparser::IParserRefitter> weights(nvonnxparser::createParserRefitter(*refitter, logger));
    CHECK(!weights->refitFromFile("missing.onnx") && weights->refitFromBytes(model.data(), model.size()));
    CHECK(refitter->refitCudaEngine() && weights->refitFromFile(argv[1]) && refitter->refitCudaEngine());
    CHECK(refitter->getMissingWeights(0, nullptr) == 0 && !refitter->unsetNamedWeights("none"));
    CHECK(classify(*other, image, 0, 1) == std::vector<int>(1, 7));

    implicit_batch();
    CHECK(OldPlugin().isOld() && !OldPlugin().isNew());
    std::array<int, EnumMax<OptProfileSelector>()> selectors{};
    CHECK(selectors.size() == 3 && EnumMax<TensorFormat>() == 13 && EnumMax<BuilderFlag>() == 29 &&
          EnumMax<WeightsRole>() == 6);
    int major = -1;
    CHECK(cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, 0) == cudaSuccess && major == 0);
    CHECK(cudaDeviceGetAttribute(&major, cudaDevAttrWarpSize, 0) == cudaSuccess && major == 32);
    if (failures) std::printf("%s", logger.errors.c_str());
    return failures != 0;
}
