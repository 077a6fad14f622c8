/* SPDX-License-Identifier: Apache-2.0 */
/* use_shipped.cpp - the plugins that upstream ships, from the registry; allocators with a stream; weights that a refit
 * lacks; sizes that contradict each other; inputs whose values are sizes; pinned memory. test_cpp.py compiles and runs
 * it: use_shipped DIGITS.onnx SEVEN.npy DIGITS.onnx. */
#include "cpp_device.h"

#include <NvInfer.h>
#include <NvInferPlugin.h>
#include <NvOnnxParser.h>

#include <cstring>
#include <set>
#include <string>

using namespace nvinfer1;

class Logger : public ILogger {
  public:
    void log(Severity severity, const char *msg) noexcept override
    {
        if (severity <= Severity::kERROR) errors += std::string(msg) + "\n";
        if (severity == Severity::kVERBOSE) details += std::string(msg) + "\n";
    }
    bool said(const char *words)
    {
        const bool has = errors.find(words) != std::string::npos;
        errors.clear();
        return has;
    }
    std::string errors, details;
} logger;

static owned<ICudaEngine> build(IBuilder &builder, INetworkDefinition &network, IBuilderConfig &config)
{
    config.setBuilderOptimizationLevel(0);
    const owned<IHostMemory> plan(builder.buildSerializedNetwork(network, config));
    const owned<IRuntime> runtime(createInferRuntime(logger));
    CHECK(plan != nullptr);
    return owned<ICudaEngine>(plan ? runtime->deserializeCudaEngine(plan->data(), plan->size()) : nullptr);
}

/* Three boxes, of which the first two overlap: two are left. */
static void suppression()
{
    CHECK(initLibNvInferPlugins(&logger, "mine"));
    CHECK(logger.details.find("mine::EfficientNMS_TRT version 1") != std::string::npos);
    IPluginRegistry &registry = *getPluginRegistry();
    int32_t count = 0;
    std::set<std::string> names;
    IPluginCreator *const *const list = registry.getPluginCreatorList(&count);
    for (int32_t i = 0; i < count; i++) names.insert(list[i]->getPluginName());
    CHECK(names.count("EfficientNMS_TRT") && names.count("BatchedNMSDynamic_TRT") && !names.count("GridAnchor_TRT"));
    CHECK(registry.getPluginCreator("EfficientNMS_TRT", "1", "mine") != nullptr);
    CHECK(registry.getPluginCreator("EfficientNMS_TRT", "7") == nullptr);
    IPluginCreator *const creator = registry.getPluginCreator("EfficientNMS_TRT", "1");
    if (!creator) return CHECK(creator != nullptr);
    CHECK(creator->getFieldNames()->nbFields == 7);

    float score = 0.25f, iou = 0.5f;
    int32_t most = 3, background = -1;
    const PluginField fields[] = { { "score_threshold", &score, PluginFieldType::kFLOAT32, 1 },
                                   { "iou_threshold", &iou, PluginFieldType::kFLOAT32, 1 },
                                   { "max_output_boxes", &most, PluginFieldType::kINT32, 1 },
                                   { "background_class", &background, PluginFieldType::kINT32, 1 } };
    const PluginField wrong[] = { { "threshold", &score, PluginFieldType::kFLOAT32, 1 },
                                  { "iou_threshold", &iou, PluginFieldType::kFLOAT32, 2 },
                                  { "iou_threshold", nullptr, PluginFieldType::kFLOAT32, 1 },
                                  { "iou_threshold", &iou, PluginFieldType::kCHAR, 1 } };
    const char *const says[] = { "no field 'threshold'", "has 2 elements, 1 is wanted", "has no data",
                                 "the PluginFieldType 6" };
    for (int32_t i = 0; i < 4; i++) {
        const PluginFieldCollection one = { 1, &wrong[i] };
        CHECK(creator->createPlugin("nms", &one) == nullptr && logger.said(says[i]));
    }
    const PluginFieldCollection all = { 4, fields };
    IPluginV2 *const made = creator->createPlugin("nms", &all);
    std::string bytes(made->getSerializationSize(), '\0');
    made->serialize(&bytes[0]);
    IPluginV2 *const plugin = creator->deserializePlugin("nms", bytes.data(), bytes.size());
    made->destroy();

    const owned<IBuilder> builder(createInferBuilder(logger));
    const owned<INetworkDefinition> network(builder->createNetworkV2(0));
    const owned<IBuilderConfig> config(builder->createBuilderConfig());
    ITensor *const in[] = { network->addInput("boxes", DataType::kFLOAT, Dims3(1, 3, 4)),
                            network->addInput("scores", DataType::kFLOAT, Dims3(1, 3, 2)) };
    IPluginV2Layer *const layer = network->addPluginV2(in, 2, *plugin);
    plugin->destroy();
    CHECK(layer->getType() == LayerType::kPLUGIN_V2 && !std::strcmp(layer->getPlugin().getPluginType(), creator->getPluginName()));
    const char *const outputs[] = { "num", "found", "best", "classes" };
    for (int32_t i = 0; i < 4; i++) {
        layer->getOutput(i)->setName(outputs[i]);
        network->markOutput(*layer->getOutput(i));
    }
    const owned<ICudaEngine> engine = build(*builder, *network, *config);
    const owned<IExecutionContext> context(engine ? engine->createExecutionContext() : nullptr);
    if (!context) return;
    const Device<float> boxes({ 0, 0, 4, 4, 0, 0, 4, 5, 8, 8, 9, 9 }), scores({ 0.5f, 0, 0.75f, 0, 0, 0.375f });
    const Device<float> found(std::vector<float>(12)), best(std::vector<float>(3));
    const Device<int32_t> num({ 0 }), classes({ 7, 7, 7 });
    context->setTensorAddress("boxes", boxes.get());
    context->setTensorAddress("scores", scores.get());
    context->setTensorAddress("num", num.get());
    context->setTensorAddress("found", found.get());
    context->setTensorAddress("best", best.get());
    context->setTensorAddress("classes", classes.get());
    CHECK(context->enqueueV3(nullptr) && cudaDeviceSynchronize() == cudaSuccess);
    CHECK(num.read()[0] == 2 && best.read()[0] == 0.75f && best.read()[1] == 0.375f && classes.read()[1] == 1);
    CHECK(found.read()[3] == 5 && found.read()[4] == 8);
}

/* Plugins of version 3, one of them with weights. */
static void version_3()
{
    const owned<IBuilder> builder(createInferBuilder(logger));
    const owned<INetworkDefinition> network(builder->createNetworkV2(0));
    const owned<IBuilderConfig> config(builder->createBuilderConfig());
    IPluginRegistry &registry = *getPluginRegistry();
    auto *const norm = static_cast<IPluginCreatorV3One *>(registry.getCreator("InstanceNormalization_TRT", "3"));
    auto *const align = static_cast<IPluginCreatorV3One *>(registry.getCreator("ROIAlign_TRT", "2", ""));
    if (!norm || !align) return CHECK(norm && align);
    /* The operator wants the scales first, whatever comes first here. */
    const float scales[] = { 2, 3 }, bias[] = { 10, 20 };
    const PluginField fields[] = { { "bias", bias, PluginFieldType::kFLOAT32, 2 },
                                   { "scales", scales, PluginFieldType::kFLOAT32, 2 } };
    const PluginFieldCollection all = { 2, fields }, none = { 0, nullptr };
    const owned<IPluginV3> plugin(norm->createPlugin("norm", &all, TensorRTPhase::kBUILD));
    ITensor *const x = network->addInput("x", DataType::kFLOAT, Dims4(1, 2, 1, 2));
    IPluginV3Layer *const layer = network->addPluginV3(&x, 1, nullptr, 0, *plugin);
    CHECK(layer->getType() == LayerType::kPLUGIN_V3);
    layer->getOutput(0)->setName("y");
    network->markOutput(*layer->getOutput(0));
    const owned<ICudaEngine> engine = build(*builder, *network, *config);
    const owned<IExecutionContext> context(engine ? engine->createExecutionContext() : nullptr);
    const Device<float> in({ -1, 1, -4, 4 }), out({ 0, 0, 0, 0 });
    context->setTensorAddress("x", in.get());
    context->setTensorAddress("y", out.get());
    CHECK(context->enqueueV3(nullptr) && cudaDeviceSynchronize() == cudaSuccess);
    const std::vector<float> y = out.read(), wanted = { 8, 12, 17, 23 };
    for (size_t i = 0; i < 4; i++) CHECK(std::fabs(y[i] - wanted[i]) < 1e-3f);

    const owned<IPluginV3> rois(align->createPlugin("align", &none, TensorRTPhase::kBUILD));
    ITensor *const three[] = { x, network->addInput("r", DataType::kFLOAT, Dims2(5, 4)),
                               network->addInput("i", DataType::kINT32, Dims{ 1, { 5 } }) };
    const IPluginV3Layer *const aligned = network->addPluginV3(three, 3, nullptr, 0, *rois);
    CHECK(aligned && aligned->getOutput(0)->getDimensions().d[0] == 5);
}

class Streamed : public IGpuAsyncAllocator {
  public:
    void *allocateAsync(uint64_t size, uint64_t, AllocatorFlags, cudaStream_t) noexcept override
    {
        void *made = nullptr;
        return cudaMalloc(&made, size) == cudaSuccess ? made : nullptr;
    }
    bool deallocateAsync(void *memory, cudaStream_t) noexcept override { return cudaFree(memory) == cudaSuccess; }
};

static void allocators()
{
    Streamed streamed;
    IGpuAllocator &plain = streamed;
    void *const memory = plain.allocate(64, 1, 0);
    CHECK(memory && plain.deallocate(memory));
    const owned<IBuilder> builder(createInferBuilder(logger));
    CHECK(builder->setMaxThreads(3) && builder->getMaxThreads() == 3 && !builder->setMaxThreads(0));
    void *pinned = nullptr;
    cudaPointerAttributes of = {};
    CHECK(cudaMallocHost(&pinned, 100) == cudaSuccess && cudaPointerGetAttributes(&of, pinned) == cudaSuccess);
    CHECK(of.type == cudaMemoryTypeHost && cudaFreeHost(pinned) == cudaSuccess);
    size_t pitch = 0;
    CHECK(cudaMallocPitch(&pinned, &pitch, 10, 3) == cudaSuccess && pitch >= 10);
    CHECK(cudaMemset2DAsync(pinned, pitch, 0, 10, 3, cudaStreamPerThread) == cudaSuccess);
    CHECK(cudaDeviceSynchronize() == cudaSuccess && cudaFree(pinned) == cudaSuccess);
}

/* A convolution and the norm behind it are one weight of the engine: new values of one want those of the others. */
static void missing_weights(const char *digits)
{
    const owned<IBuilder> builder(createInferBuilder(logger));
    const owned<INetworkDefinition> network(builder->createNetworkV2(0));
    const owned<IBuilderConfig> config(builder->createBuilderConfig());
    const owned<nvonnxparser::IParser> parser(nvonnxparser::createParser(*network, logger));
    CHECK(parser->parseFromFile(digits, 0));
    config->setFlag(BuilderFlag::kREFIT);
    IOptimizationProfile *profile = builder->createOptimizationProfile();
    for (auto s : { OptProfileSelector::kMIN, OptProfileSelector::kOPT, OptProfileSelector::kMAX })
        profile->setDimensions("image", s, Dims4(1, 1, 28, 28));
    config->addOptimizationProfile(profile);
    const owned<ICudaEngine> engine = build(*builder, *network, *config);
    if (!engine) return;
    const owned<IRefitter> refitter(createInferRefitter(*engine, logger));
    CHECK(refitter->getMissingWeights(0, nullptr) == 0);
    const int64_t count = refitter->getWeightsPrototype("conv1.weight").count;
    const std::vector<float> zeros(static_cast<size_t>(count));
    CHECK(refitter->setNamedWeights("conv1.weight", Weights{ DataType::kFLOAT, zeros.data(), count }));
    char const *names[16];
    const int32_t missing = refitter->getMissingWeights(16, names);
    CHECK(missing > 0 && !refitter->refitCudaEngine() && logger.said("is wanted"));
    for (int32_t i = 0; i < missing && i < 16; i++) {
        const int64_t size = refitter->getWeightsPrototype(names[i]).count;
        CHECK(size <= count);
        CHECK(refitter->setNamedWeights(names[i], Weights{ DataType::kFLOAT, zeros.data(), size }));
    }
    CHECK(refitter->getMissingWeights(0, nullptr) == 0 && refitter->refitCudaEngine());
}

static void sizes()
{
    const owned<IBuilder> builder(createInferBuilder(logger));
    const owned<INetworkDefinition> network(builder->createNetworkV2(0));
    const owned<IBuilderConfig> config(builder->createBuilderConfig());
    ITensor *const a = network->addInput("a", DataType::kFLOAT, Dims2(-1, 2));
    ITensor *const b = network->addInput("b", DataType::kFLOAT, Dims2(-1, 2));
    ITensor *const shape = network->addInput("shape", DataType::kINT32, Dims{ 1, { 2 } });
    for (ITensor *t : { a, b }) t->setDimensionName(0, "rows");
    IShuffleLayer *const shuffle = network->addShuffle(*a);
    CHECK(!shape->isShapeTensor());
    shuffle->setInput(1, *shape);
    CHECK(shape->isShapeTensor() && !a->isShapeTensor());
    ITensor *const sum = network->addElementWise(*a, *b, ElementWiseOperation::kSUM)->getOutput(0);
    network->markOutput(*sum);
    IOptimizationProfile *profile = builder->createOptimizationProfile();
    for (char const *name : { "a", "b" }) {
        profile->setDimensions(name, OptProfileSelector::kMIN, Dims2(1, 2));
        profile->setDimensions(name, OptProfileSelector::kOPT, Dims2(2, 2));
        profile->setDimensions(name, OptProfileSelector::kMAX, Dims2(4, 2));
    }
    config->addOptimizationProfile(profile);
    const owned<ICudaEngine> engine = build(*builder, *network, *config);
    const owned<IExecutionContext> context(engine ? engine->createExecutionContext() : nullptr);
    char const *missing[3];
    CHECK(context && context->inferShapes(3, missing) == 2 && !std::strcmp(missing[0], "a"));
    CHECK(context->setInputShape("a", Dims2(2, 2)) && context->setInputShape("b", Dims2(3, 2)));
    CHECK(context->inferShapes(3, missing) == -1 && logger.said("is 3, expected 2"));
    CHECK(context->setInputShape("b", Dims2(2, 2)) && context->inferShapes(3, missing) == 0);
}

int main(int argc, char **argv)
{
    if (argc < 2) return 2;
    logger.errors.clear();
    suppression();
    version_3();
    allocators();
    missing_weights(argv[1]);
    sizes();
    if (!logger.errors.empty()) std::printf("%s", logger.errors.c_str());
    std::printf("%d failures\n", failures);
    return failures != 0;
}
