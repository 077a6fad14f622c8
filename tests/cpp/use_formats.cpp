/* SPDX-License-Identifier: Apache-2.0 */
/* use_formats.cpp - inputs and outputs that are not row-major floats: ITensor::setAllowedFormats and setType(kINT8).
 * Then what programs in the shape of TensorRT's samples use beside: plugins registered after their network was made,
 * small floats of CUDA, NvUtils.h, and what is refused: algorithm selectors, Caffe and UFF models. test_cpp.py runs it.
 */
#include "cpp_device.h"

#include <NvCaffeParser.h>
#include <NvInfer.h>
#include <NvOnnxParser.h>
#include <NvUffParser.h>
#include <NvUtils.h>
#include <cuda_fp4.h>
#include <cuda_fp8.h>

#include <cmath>
#include <memory>
#include <string>

using namespace nvinfer1;

class Logger : public ILogger {
  public:
    void log(Severity severity, const char *msg) noexcept override
    {
        if (severity <= Severity::kWARNING) last = msg;
    }
    std::string last;
    bool has(const char *text) const
    {
        return last.find(text) != std::string::npos;
    }
} logger;

static bool is(Dims const &d, std::vector<int64_t> const &wanted)
{
    return d.nbDims == static_cast<int32_t>(wanted.size()) && std::equal(wanted.begin(), wanted.end(), d.d);
}
static Dims dims(std::vector<int64_t> const &sizes)
{
    Dims made;
    made.nbDims = static_cast<int32_t>(sizes.size());
    std::copy(sizes.begin(), sizes.end(), made.d);
    return made;
}

/* y = x + x for [-1, 3, (2,) 2, 5], and z = x, which is row-major. */
struct Model {
    owned<IBuilder> builder{ createInferBuilder(logger) };
    owned<INetworkDefinition> network{ builder->createNetworkV2(0) };
    owned<IBuilderConfig> config{ builder->createBuilderConfig() };
    owned<IRuntime> runtime{ createInferRuntime(logger) };
    ITensor *x, *y, *z;
    std::vector<int64_t> shape;
    explicit Model(int behind)
    {
        shape = behind == 3 ? std::vector<int64_t>{ -1, 3, 2, 2, 5 } : std::vector<int64_t>{ -1, 3, 2, 5 };
        x = network->addInput("x", DataType::kFLOAT, dims(shape));
        x->setDimensionName(0, "batch");
        y = network->addElementWise(*x, *x, ElementWiseOperation::kSUM)->getOutput(0);
        z = network->addIdentity(*x)->getOutput(0);
        y->setName("y");
        z->setName("z");
        network->markOutput(*y);
        network->markOutput(*z);
        config->setBuilderOptimizationLevel(0);
        IOptimizationProfile *const p = builder->createOptimizationProfile();
        for (int select = 0; select < 3; select++) {
            shape[0] = select + 1;
            p->setDimensions("x", static_cast<OptProfileSelector>(select), dims(shape));
        }
        config->addOptimizationProfile(p);
        shape[0] = -1;
    }
    owned<ICudaEngine> build()
    {
        const owned<IHostMemory> plan(builder->buildSerializedNetwork(*network, *config));
        return owned<ICudaEngine>(plan ? runtime->deserializeCudaEngine(plan->data(), plan->size()) : nullptr);
    }
    /* The network is as it was before the build. */
    void check_unchanged() const
    {
        CHECK(network->getNbLayers() == 2 && network->getNbInputs() == 1 && network->getNbOutputs() == 2);
        CHECK(network->getOutput(0) == y && network->getOutput(1) == z);
        CHECK(!std::strcmp(x->getName(), "x") && !std::strcmp(y->getName(), "y") && !std::strcmp(z->getName(), "z"));
        CHECK(is(x->getDimensions(), shape) && is(y->getDimensions(), shape));
        CHECK(x->getDimensionName(0) && !std::strcmp(x->getDimensionName(0), "batch"));
        CHECK(network->getLayer(0)->getInput(0) == x && network->getLayer(0)->getInput(1) == x);
        CHECK(network->getLayer(0)->getOutput(0)->getType() == y->getType());
    }
};

struct Format {
    TensorFormat format;
    const char *name;
    int64_t lanes;
    int behind;
    bool is_last;
};
static const Format formats[] = {
    { TensorFormat::kCHW2, "kCHW2", 2, 2, false },      { TensorFormat::kHWC8, "kHWC8", 8, 2, true },
    { TensorFormat::kCHW4, "kCHW4", 4, 2, false },      { TensorFormat::kCHW16, "kCHW16", 16, 2, false },
    { TensorFormat::kCHW32, "kCHW32", 32, 2, false },   { TensorFormat::kDHWC8, "kDHWC8", 8, 3, true },
    { TensorFormat::kCDHW32, "kCDHW32", 32, 3, false }, { TensorFormat::kHWC, "kHWC", 1, 2, true },
    { TensorFormat::kHWC16, "kHWC16", 16, 2, true },    { TensorFormat::kDHWC, "kDHWC", 1, 3, true },
};

/* Where element (n, c, i) of [n, 3, places] lies. */
static size_t place(Format const &f, int64_t n, int64_t c, int64_t i, int64_t places)
{
    const int64_t padded = (3 + f.lanes - 1) / f.lanes * f.lanes;
    if (f.is_last) return static_cast<size_t>((n * places + i) * padded + c);
    return static_cast<size_t>(((n * (padded / f.lanes) + c / f.lanes) * places + i) * f.lanes + c % f.lanes);
}

class Allocator : public IOutputAllocator {
  public:
    void *reallocateOutputAsync(char const *, void *, uint64_t size, uint64_t, cudaStream_t) override
    {
        memory = std::make_unique<Device<char>>(std::vector<char>(size));
        return memory->get();
    }
    void notifyShape(char const *, Dims const &d) override
    {
        shape = d;
    }
    std::unique_ptr<Device<char>> memory;
    Dims shape;
};

static void one_format(Format const &f)
{
    Model m(f.behind);
    const TensorFormats bit = 1u << static_cast<int>(f.format);
    m.x->setAllowedFormats(bit);
    m.y->setAllowedFormats(bit);
    m.z->setAllowedFormats(bit | 1u);
    CHECK(m.x->getAllowedFormats() == bit);
    const owned<ICudaEngine> engine = m.build();
    CHECK(engine != nullptr);
    if (!engine) return (void)std::printf("%s: %s\n", f.name, logger.last.c_str());
    m.check_unchanged();
    CHECK(engine->getNbIOTensors() == 3);
    for (const char *name : { "x", "y" }) {
        CHECK(engine->getTensorFormat(name) == f.format);
        CHECK(std::string(engine->getTensorFormatDesc(name)).find(f.name) != std::string::npos);
        CHECK(is(engine->getTensorShape(name), m.shape));
        CHECK(engine->getTensorVectorizedDim(name) == (f.lanes == 1 ? -1 : 1));
        CHECK(engine->getTensorComponentsPerElement(name) == (f.lanes == 1 ? -1 : f.lanes));
        CHECK(engine->getTensorBytesPerComponent(name) == (f.lanes == 1 ? -1 : 4));
    }
    CHECK(engine->getTensorFormat("z") == TensorFormat::kLINEAR && engine->getTensorVectorizedDim("z") == -1);
    CHECK(std::string(engine->getTensorFormatDesc("z")).find("kLINEAR") != std::string::npos);
    CHECK(engine->getBindingFormat(0) == f.format && engine->getBindingFormat(2) == TensorFormat::kLINEAR);
    std::vector<int64_t> shape = m.shape;
    shape[0] = 3;
    CHECK(is(engine->getProfileShape("x", 0, OptProfileSelector::kMAX), shape));

    const owned<IExecutionContext> context(engine->createExecutionContext());
    shape[0] = 2;
    CHECK(context->setInputShape("x", dims(shape)));
    CHECK(is(context->getTensorShape("x"), shape) && is(context->getTensorShape("y"), shape));
    std::vector<int64_t> wrong = shape;
    wrong[1] = 4;
    CHECK(!context->setInputShape("x", dims(wrong)) && logger.has("built for 3 channels"));
    const int64_t places = f.behind == 3 ? 20 : 10, padded = (3 + f.lanes - 1) / f.lanes * f.lanes;
    const Dims strides = context->getTensorStrides("y");
    CHECK(strides.nbDims == static_cast<int32_t>(shape.size()));
    CHECK(strides.d[0] == (f.is_last ? places * padded : padded / f.lanes * places));
    CHECK(strides.d[1] == (f.is_last ? 1 : places) && strides.d[strides.nbDims - 1] == (f.is_last ? padded : 1));

    std::vector<float> in(static_cast<size_t>(2 * padded * places), 99.0F), plain(static_cast<size_t>(2 * 3 * places));
    for (int64_t n = 0, k = 0; n < 2; n++)
        for (int64_t c = 0; c < 3; c++)
            for (int64_t i = 0; i < places; i++, k++)
                in[place(f, n, c, i, places)] = plain[static_cast<size_t>(k)] = static_cast<float>(k) - 17;
    const Device<float> x(in), z(plain);
    Allocator y;
    CHECK(context->setTensorAddress("x", x.get()) && context->setTensorAddress("z", z.get()));
    CHECK(context->setOutputAllocator("y", &y));
    CHECK(context->enqueueV3(nullptr));
    CHECK(cudaDeviceSynchronize() == cudaSuccess);
    CHECK(is(y.shape, shape) && y.memory);
    if (!y.memory) return;
    std::vector<float> wanted(in.size(), 0.0F); /* padding is zeros */
    for (int64_t n = 0; n < 2; n++)
        for (int64_t c = 0; c < 3; c++)
            for (int64_t i = 0; i < places; i++) {
                const size_t at = place(f, n, c, i, places);
                wanted[at] = 2 * in[at];
            }
    const std::vector<char> bytes = y.memory->read();
    CHECK(bytes.size() == wanted.size() * sizeof(float));
    if (bytes.size() == wanted.size() * sizeof(float)) CHECK(!std::memcmp(bytes.data(), wanted.data(), bytes.size()));
    CHECK(z.read() == plain);
}

static void formats_that_do_not_fit()
{
    Model m(2);
    m.y->setAllowedFormats(1u << static_cast<int>(TensorFormat::kDLA_HWC4));
    CHECK(m.build() == nullptr && logger.has("'y'") && logger.has("kLINEAR is wanted"));
    m.check_unchanged();
    /* The input was changed before the output was refused. */
    m.x->setAllowedFormats(1u << static_cast<int>(TensorFormat::kCHW4));
    CHECK(m.build() == nullptr);
    m.check_unchanged();
    m.y->setAllowedFormats(1);
    CHECK(m.build() != nullptr);
}

/* 8-bit numbers in the program's memory, with the scales of dynamic ranges. */
static void quantized(TensorFormat format)
{
    Model m(2);
    const Format f = format == TensorFormat::kCHW4 ? formats[2] : Format{ format, "kLINEAR", 1, 2, false };
    m.x->setAllowedFormats(1u << static_cast<int>(format));
    m.y->setAllowedFormats(1u << static_cast<int>(format));
    m.x->setType(DataType::kINT8);
    m.y->setType(DataType::kINT8);
    CHECK(m.x->getType() == DataType::kINT8 && m.y->getType() == DataType::kINT8);
    CHECK(m.z->getType() == DataType::kFLOAT);
    m.config->setFlag(BuilderFlag::kINT8);
    CHECK(m.x->setDynamicRange(-12.7F, 12.7F));
    CHECK(m.build() == nullptr && logger.has("'y'") && logger.has("no dynamic range"));
    CHECK(m.y->setDynamicRange(-25.4F, 25.4F));
    const owned<ICudaEngine> engine = m.build();
    CHECK(engine != nullptr);
    if (!engine) return (void)std::printf("%s: %s\n", f.name, logger.last.c_str());
    m.check_unchanged();
    CHECK(engine->getTensorDataType("x") == DataType::kINT8 && engine->getTensorDataType("y") == DataType::kINT8);
    CHECK(engine->getTensorDataType("z") == DataType::kFLOAT && engine->getTensorFormat("x") == format);
    const owned<IExecutionContext> context(engine->createExecutionContext());
    CHECK(context->setInputShape("x", Dims4(1, 3, 2, 5)));
    std::vector<int8_t> in(format == TensorFormat::kCHW4 ? 40 : 30);
    std::vector<float> out(30);
    for (int64_t c = 0, k = 0; c < 3; c++)
        for (int64_t i = 0; i < 10; i++, k++) in[place(f, 0, c, i, 10)] = static_cast<int8_t>(k * 8 - 120);
    const Device<int8_t> x(in), y(in);
    const Device<float> z(out);
    CHECK(context->setTensorAddress("x", x.get()) && context->setTensorAddress("y", y.get()));
    CHECK(context->setTensorAddress("z", z.get()));
    CHECK(context->enqueueV3(nullptr) && cudaDeviceSynchronize() == cudaSuccess);
    /* x = 0.1 q, y = 2 x = 0.2 q', so q' = q. */
    CHECK(y.read() == in);
    const std::vector<float> got = z.read();
    for (size_t k = 0; k < 30; k++) CHECK(std::fabs(got[k] - 0.1F * (static_cast<float>(k) * 8 - 120)) < 1e-5F);
    m.y->setType(DataType::kFLOAT);
    CHECK(m.y->getType() == DataType::kFLOAT);
}

/* Adds a number. */
class AddOne : public IPluginV3, public IPluginV3OneCore, public IPluginV3OneBuild, public IPluginV3OneRuntime {
  public:
    IPluginCapability *getCapabilityInterface(PluginCapabilityType type) noexcept override
    {
        if (type == PluginCapabilityType::kBUILD) return static_cast<IPluginV3OneBuild *>(this);
        if (type == PluginCapabilityType::kRUNTIME) return static_cast<IPluginV3OneRuntime *>(this);
        return static_cast<IPluginV3OneCore *>(this);
    }
    IPluginV3 *clone() noexcept override
    {
        return new AddOne();
    }
    char const *getPluginName() const noexcept override
    {
        return "AddOne";
    }
    char const *getPluginVersion() const noexcept override
    {
        return "1";
    }
    char const *getPluginNamespace() const noexcept override
    {
        return "";
    }
    int32_t getNbOutputs() const noexcept override
    {
        return 1;
    }
    int32_t configurePlugin(DynamicPluginTensorDesc const *, int32_t, DynamicPluginTensorDesc const *,
                            int32_t) noexcept override
    {
        return 0;
    }
    bool supportsFormatCombination(int32_t pos, DynamicPluginTensorDesc const *io, int32_t, int32_t) noexcept override
    {
        return io[pos].desc.type == DataType::kFLOAT && io[pos].desc.format == PluginFormat::kLINEAR;
    }
    int32_t getOutputDataTypes(DataType *out, int32_t, DataType const *in, int32_t) const noexcept override
    {
        return out[0] = in[0], 0;
    }
    int32_t getOutputShapes(DimsExprs const *in, int32_t, DimsExprs const *, int32_t, DimsExprs *out, int32_t,
                            IExprBuilder &) noexcept override
    {
        return out[0] = in[0], 0;
    }
    int32_t onShapeChange(PluginTensorDesc const *, int32_t, PluginTensorDesc const *, int32_t) noexcept override
    {
        return 0;
    }
    IPluginV3 *attachToContext(IPluginResourceContext *) noexcept override
    {
        return clone();
    }
    PluginFieldCollection const *getFieldsToSerialize() noexcept override
    {
        return &none_;
    }
    int32_t enqueue(PluginTensorDesc const *in, PluginTensorDesc const *, void const *const *x, void *const *y, void *,
                    cudaStream_t) noexcept override
    {
        for (int64_t i = 0; i < in[0].dims.d[0]; i++)
            static_cast<float *>(y[0])[i] = static_cast<float const *>(x[0])[i] + 1;
        return 0;
    }

  private:
    PluginFieldCollection none_{};
};
class AddOneCreator : public IPluginCreatorV3One {
  public:
    char const *getPluginName() const noexcept override
    {
        return "AddOne";
    }
    char const *getPluginVersion() const noexcept override
    {
        return "1";
    }
    char const *getPluginNamespace() const noexcept override
    {
        return "";
    }
    PluginFieldCollection const *getFieldNames() noexcept override
    {
        return &none_;
    }
    IPluginV3 *createPlugin(char const *, PluginFieldCollection const *, TensorRTPhase) noexcept override
    {
        return new AddOne();
    }

  private:
    PluginFieldCollection none_{};
};

static void plugins_registered_late()
{
    auto creator = std::make_unique<AddOneCreator>();
    const owned<IBuilder> builder(createInferBuilder(logger));
    const owned<INetworkDefinition> network(builder->createNetworkV2(0));
    const owned<IBuilderConfig> config(builder->createBuilderConfig());
    CHECK(getPluginRegistry()->registerCreator(*creator, ""));
    ITensor *const x = network->addInput("x", DataType::kFLOAT, dims({ 3 }));
    AddOne plugin;
    IPluginV3Layer *const layer = network->addPluginV3(&x, 1, nullptr, 0, plugin);
    CHECK(layer != nullptr);
    if (!layer) return;
    CHECK(is(layer->getOutput(0)->getDimensions(), { 3 }));
    layer->getOutput(0)->setName("y");
    network->markOutput(*layer->getOutput(0));
    CHECK(builder->isNetworkSupported(*network, *config));
    const owned<IHostMemory> plan(builder->buildSerializedNetwork(*network, *config));
    const owned<IRuntime> runtime(createInferRuntime(logger));
    const owned<ICudaEngine> engine(plan ? runtime->deserializeCudaEngine(plan->data(), plan->size()) : nullptr);
    CHECK(engine != nullptr);
    if (!engine) return;
    creator.reset(); /* an engine that is loaded does not need it */
    const owned<IExecutionContext> context(engine->createExecutionContext());
    const Device<float> in({ 1, 2, 3 }), out({ 0, 0, 0 });
    void *const bindings[] = { in.get(), out.get() };
    CHECK(context->executeV2(bindings));
    CHECK(out.read() == std::vector<float>({ 2, 3, 4 }));
}

class Selector : public IAlgorithmSelector {
  public:
    int32_t selectAlgorithms(IAlgorithmContext const &, IAlgorithm const *const *, int32_t, int32_t *) override
    {
        return 0;
    }
    void reportAlgorithms(IAlgorithmContext const *const *, IAlgorithm const *const *, int32_t) override
    {
    }
};

/* As a program does that found the functions with dlsym. */
static void functions_of_a_library()
{
    ILogger *const log = &logger;
    const owned<IBuilder> builder(static_cast<IBuilder *>(createInferBuilder_INTERNAL(log, NV_TENSORRT_VERSION)));
    const owned<INetworkDefinition> network(builder->createNetworkV2(0));
    const owned<nvonnxparser::IParser> parser(
        static_cast<nvonnxparser::IParser *>(createNvOnnxParser_INTERNAL(network.get(), log, NV_ONNX_PARSER_VERSION)));
    const owned<IRuntime> runtime(static_cast<IRuntime *>(createInferRuntime_INTERNAL(log, NV_TENSORRT_VERSION)));
    CHECK(!parser->parseFromFile("no such file", 0) && parser->getNbErrors() == 1 && runtime->getLogger() == log);
    const owned<ICudaEngine> engine = Model(2).build();
    CHECK(!engine->isRefittable() && !createInferRefitter_INTERNAL(engine.get(), log, NV_TENSORRT_VERSION));
    CHECK(logger.has("not refittable"));
    CHECK(getBuilderPluginRegistry(EngineCapability::kSTANDARD) == getPluginRegistry() && !setInternalLibraryPath("lib"));
    CHECK(getNvOnnxParserVersion() == NV_ONNX_PARSER_VERSION);
}

static void refusals()
{
    Model m(2);
    Selector selector;
    m.config->setAlgorithmSelector(&selector);
    CHECK(m.config->getAlgorithmSelector() == &selector);
    CHECK(m.build() != nullptr && logger.has("the algorithm selector changes nothing"));
    m.config->setAlgorithmSelector(nullptr);
    char const *const libraries[] = { "a.so", "b.so" };
    m.config->setPluginsToSerialize(libraries, 2);
    m.config->setMaxNbTactics(7);
    CHECK(m.config->setL2LimitForTiling(4096) && m.config->getL2LimitForTiling() == 4096);
    CHECK(m.config->getNbPluginsToSerialize() == 2 && !std::strcmp(m.config->getPluginToSerialize(1), "b.so"));
    CHECK(m.config->getPluginToSerialize(2) == nullptr && m.config->getMaxNbTactics() == 7);
    CHECK(m.build() != nullptr && logger.has("plugins to serialize change nothing"));
    m.config->setPluginsToSerialize(nullptr, 0);
    m.config->setRuntimePlatform(RuntimePlatform::kWINDOWS_AMD64);
    CHECK(m.build() == nullptr && logger.has("runtime platform"));
    m.config->setRuntimePlatform(RuntimePlatform::kSAME_AS_BUILD);
    m.config->setDefaultDeviceType(DeviceType::kDLA);
    CHECK(m.build() == nullptr && logger.has("there is no DLA"));
    m.config->setFlag(BuilderFlag::kGPU_FALLBACK);
    CHECK(m.build() != nullptr);
    m.config->setDefaultDeviceType(DeviceType::kGPU);
    m.config->setEngineCapability(EngineCapability::kSAFETY);
    CHECK(m.config->getEngineCapability() == EngineCapability::kSAFETY);
    CHECK(m.build() == nullptr && logger.has("engine capability"));
    m.config->setEngineCapability(EngineCapability::kSTANDARD);
    CHECK(m.build() != nullptr);
    CHECK(m.build() != nullptr);
    const owned<nvcaffeparser1::ICaffeParser> caffe(nvcaffeparser1::createCaffeParser());
    CHECK(!caffe->parse("lenet.prototxt", "lenet.caffemodel", *m.network, DataType::kFLOAT));
    CHECK(logger.has("lenet.prototxt") && logger.has("ONNX"));
    const owned<nvuffparser::IUffParser> uff(nvuffparser::createUffParser());
    CHECK(!uff->parse("lenet.uff", *m.network) && logger.has("lenet.uff"));
    m.check_unchanged();
}

/* The bit of the sign, of this many codes that are not negative. */
static int codes_sign(int codes)
{
    return codes > 8 ? 0x80 : 8;
}

/* Every code of a small float is the nearest one of its own value; a value between two codes goes to the even one. */
template <class Small> static void small_floats(int codes, float most)
{
    float before = 0;
    for (int code = 0; code < codes; code++) {
        Small s;
        s.__x = static_cast<unsigned char>(code);
        const auto value = static_cast<float>(s);
        CHECK(Small(value).__x == code);
        if (code == 0) continue;
        CHECK(value > before);
        CHECK(Small((value + before) / 2).__x == (code % 2 ? code - 1 : code));
        CHECK(Small(-value).__x == (code | codes_sign(codes)));
        before = value;
    }
    CHECK(before == most && static_cast<float>(Small(1e30F)) == most && static_cast<float>(Small(-HUGE_VALF)) == -most);
}

int main()
{
    for (Format const &f : formats) one_format(f);
    formats_that_do_not_fit();
    quantized(TensorFormat::kLINEAR);
    quantized(TensorFormat::kCHW4);
    plugins_registered_late();
    functions_of_a_library();
    refusals();
    small_floats<__nv_fp8_e4m3>(127, 448);
    small_floats<__nv_fp8_e5m2>(124, 57344);
    small_floats<__nv_fp4_e2m1>(8, 6);
    CHECK(std::isnan(static_cast<float>(__nv_fp8_e4m3(NAN))) && std::isnan(static_cast<float>(__nv_fp8_e5m2(NAN))));

    const float stored[] = { 0, 1, 2, 3, 4, 5 };
    float moved[6];
    const int32_t shape[] = { 1, 3, 2 }, order[] = { 2, 0, 1 };
    Weights w;
    w.values = stored;
    w.count = 6;
    CHECK(utils::reshapeWeights(w, shape, order, moved, 3));
    CHECK(std::vector<float>(moved, moved + 6) == std::vector<float>({ 0, 2, 4, 1, 3, 5 }));
    CHECK(utils::transposeSubBuffers(moved, DataType::kFLOAT, 1, 2, 3) && !std::memcmp(moved, stored, sizeof stored));
    const int32_t swapped[] = { 2, 0, 1 };
    CHECK(utils::reorderSubBuffers(moved, swapped, 3, 8) && moved[0] == 4 && moved[2] == 0 && moved[5] == 3);
    CHECK(!utils::reorderSubBuffers(moved, shape, 3, 8));
    w.count = 5;
    CHECK(!utils::reshapeWeights(w, shape, order, moved, 3));
    return failures != 0;
}
