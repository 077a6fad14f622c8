/* SPDX-License-Identifier: Apache-2.0 */
/* use_implicit_batch.cpp - programs for TensorRT 7 and 8 whose networks have an implicit batch: layers see sizes without
 * it, and execute() says how many items a run has. Also names that only these versions had. */
#define NV_TENSORRT_MAJOR 7
#include "cpp_check.h"

#include <NvInfer.h>
#include <cuda_runtime_api.h>

#include <cmath>
#include <functional>
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
    std::string errors;
} logger;

struct Deleter {
    template <typename T> void operator()(T *object) const
    {
        if (object) object->destroy();
    }
};
template <typename T> using Unique = std::unique_ptr<T, Deleter>;

static bool has_dims(Dims const &d, std::vector<int64_t> const &wanted)
{
    return std::vector<int64_t>(d.d, d.d + d.nbDims) == wanted;
}
static const std::vector<float> &numbers(size_t count, float first, float step)
{
    static std::vector<std::unique_ptr<std::vector<float>>> kept;
    kept.push_back(std::make_unique<std::vector<float>>());
    for (size_t i = 0; i < count; i++) kept.back()->push_back(first + step * static_cast<float>(i));
    return *kept.back();
}
static Weights weights(std::vector<float> const &of) { return { DataType::kFLOAT, of.data(), int64_t(of.size()) }; }

constexpr int32_t MOST = 4;
constexpr size_t IN = 2 * 3 * 4;
using Item = std::vector<float>;
using Make = std::function<ITensor *(INetworkDefinition &, ITensor &)>;
using Want = std::function<Item(Item const &)>;

/* What `want` says of each item, for every size of a batch up to MOST, of a network of one input [2, 3, 4]. */
static void compare(char const *name, std::vector<int64_t> const &dims, Make const &make, Want const &want)
{
    Unique<IBuilder> builder(createInferBuilder(logger));
    Unique<INetworkDefinition> network(builder->createNetworkV2(0U));
    CHECK(network->hasImplicitBatchDimension());
    ITensor *const x = network->addInput("x", DataType::kFLOAT, Dims3{ 2, 3, 4 });
    CHECK(x && has_dims(x->getDimensions(), { 2, 3, 4 }));
    ITensor *const y = make(*network, *x);
    if (!y) return std::printf("%s: %s", name, logger.errors.c_str()), void(failures++);
    y->setName("y");
    network->markOutput(*y);
    if (!has_dims(y->getDimensions(), dims)) {
        const Dims d = y->getDimensions();
        std::printf("%s: sizes of the output:", name);
        for (int i = 0; i < d.nbDims; i++) std::printf(" %d", int(d.d[i]));
        std::printf("\n");
        failures++;
    }
    Unique<IBuilderConfig> config(builder->createBuilderConfig());
    builder->setMaxBatchSize(MOST);
    config->setMaxWorkspaceSize(1 << 20);
    config->setBuilderOptimizationLevel(0);
    Unique<ICudaEngine> made(builder->buildEngineWithConfig(*network, *config));
    if (!made) return std::printf("%s: %s", name, logger.errors.c_str()), void(failures++);
    Unique<IHostMemory> plan(made->serialize());
    Unique<IRuntime> runtime(createInferRuntime(logger));
    Unique<ICudaEngine> engine(runtime->deserializeCudaEngine(plan->data(), plan->size(), nullptr));
    CHECK(engine->hasImplicitBatchDimension() && engine->getMaxBatchSize() == MOST && engine->getNbBindings() == 2);
    CHECK(has_dims(engine->getBindingDimensions(0), { 2, 3, 4 }) && has_dims(engine->getBindingDimensions(1), dims));
    Unique<IExecutionContext> context(engine->createExecutionContext());
    CHECK(!engine->isDebugTensor("y"));
    size_t each = 1;
    for (const int64_t d : dims) each *= static_cast<size_t>(d);
    for (int32_t batch = 1; batch <= MOST; batch++) {
        std::vector<float> in, wanted;
        for (size_t i = 0; i < size_t(batch) * IN; i++) in.push_back(static_cast<float>(std::sin(0.7 * double(i + 1))));
        for (int32_t b = 0; b < batch; b++) {
            const Item item = want(Item(in.begin() + b * int(IN), in.begin() + (b + 1) * int(IN)));
            wanted.insert(wanted.end(), item.begin(), item.end());
        }
        void *bindings[2];
        std::vector<float> out(size_t(batch) * each);
        CHECK(wanted.size() == out.size());
        cudaMalloc(&bindings[0], in.size() * 4);
        cudaMalloc(&bindings[1], out.size() * 4);
        cudaMemcpy(bindings[0], in.data(), in.size() * 4, cudaMemcpyHostToDevice);
        CHECK(batch % 2 ? context->execute(batch, bindings) : context->enqueue(batch, bindings, nullptr, nullptr));
        cudaDeviceSynchronize();
        cudaMemcpy(out.data(), bindings[1], out.size() * 4, cudaMemcpyDeviceToHost);
        for (size_t i = 0; i < out.size() && i < wanted.size(); i++) {
            if (std::fabs(out[i] - wanted[i]) <= 1e-4f * (1 + std::fabs(wanted[i]))) continue;
            std::printf("%s: batch %d, element %zu is %g, not %g\n", name, batch, i, double(out[i]), double(wanted[i]));
            failures++;
            break;
        }
        cudaFree(bindings[0]);
        cudaFree(bindings[1]);
    }
    CHECK(logger.errors.empty());
    void *none[2] = {};
    CHECK(!context->execute(MOST + 1, none));
    logger.errors.clear();
}
static float at(Item const &x, size_t c, size_t h, size_t w) { return x[(c * 3 + h) * 4 + w]; }
static ITensor *first(ILayer *layer) { return layer ? layer->getOutput(0) : nullptr; }

/* Twice its input, with the enqueue of TensorRT 7. */
class Twice : public IPluginV2IOExt {
  public:
    char const *getPluginType() const noexcept override { return "Twice"; }
    char const *getPluginVersion() const noexcept override { return "1"; }
    int32_t getNbOutputs() const noexcept override { return 1; }
    Dims getOutputDimensions(int32_t, Dims const *in, int32_t) noexcept override
    {
        CHECK(has_dims(in[0], { 2, 3, 4 }));
        return in[0];
    }
    int32_t initialize() noexcept override { return 0; }
    void terminate() noexcept override {}
    size_t getWorkspaceSize(int32_t) const noexcept override { return 0; }
    int32_t enqueue(int32_t batch, void const *const *in, void **out, void *, cudaStream_t) noexcept override
    {
        for (size_t i = 0; i < size_t(batch) * IN; i++)
            static_cast<float *>(out[0])[i] = 2 * static_cast<float const *>(in[0])[i];
        return 0;
    }
    size_t getSerializationSize() const noexcept override { return 0; }
    void serialize(void *) const noexcept override {}
    void destroy() noexcept override { delete this; }
    IPluginV2Ext *clone() const noexcept override { return new Twice; }
    void setPluginNamespace(char const *) noexcept override {}
    char const *getPluginNamespace() const noexcept override { return ""; }
    DataType getOutputDataType(int32_t, DataType const *types, int32_t) const noexcept override { return types[0]; }
    void configurePlugin(PluginTensorDesc const *in, int32_t, PluginTensorDesc const *, int32_t) noexcept override
    {
        CHECK(has_dims(in[0].dims, { 2, 3, 4 }));
    }
    bool supportsFormatCombination(int32_t at, PluginTensorDesc const *io, int32_t, int32_t) const noexcept override
    {
        return io[at].format == PluginFormat::kNCHW && io[at].type == DataType::kFLOAT;
    }
};
class TwiceCreator : public IPluginCreator {
  public:
    char const *getPluginName() const noexcept override { return "Twice"; }
    char const *getPluginVersion() const noexcept override { return "1"; }
    PluginFieldCollection const *getFieldNames() noexcept override { return &none_; }
    IPluginV2 *createPlugin(char const *, PluginFieldCollection const *) noexcept override { return new Twice; }
    IPluginV2 *deserializePlugin(char const *, void const *, size_t) noexcept override { return new Twice; }
    void setPluginNamespace(char const *) noexcept override {}
    char const *getPluginNamespace() const noexcept override { return ""; }

  private:
    PluginFieldCollection none_{ 0, nullptr };
};
REGISTER_TENSORRT_PLUGIN(TwiceCreator);

static void compare_layers()
{
    static const std::vector<float> &kernel = numbers(2 * 3, 0.5f, -0.25f), &bias = numbers(3, 1, 1);
    compare("convolution and channel scale", { 3, 3, 4 },
            [](INetworkDefinition &n, ITensor &x) {
                auto *c = n.addConvolution(x, 3, DimsHW{ 1, 1 }, weights(kernel), weights(bias));
                return first(n.addScale(*first(c), ScaleMode::kCHANNEL, weights(bias), weights(bias), Weights{}));
            },
            [](Item const &x) {
                Item y;
                for (size_t m = 0; m < 3; m++)
                    for (size_t i = 0; i < 12; i++)
                        y.push_back((x[i] * kernel[m * 2] + x[12 + i] * kernel[m * 2 + 1] + bias[m]) * bias[m] + bias[m]);
                return y;
            });
    static const std::vector<float> &full = numbers(2 * IN, -1, 0.1f);
    compare("fully connected", { 2, 1, 1 },
            [](INetworkDefinition &n, ITensor &x) {
                return first(n.addFullyConnected(x, 2, weights(full), weights(numbers(2, 0, 1))));
            },
            [](Item const &x) {
                Item y{ 0, 1 };
                for (size_t m = 0; m < 2; m++)
                    for (size_t i = 0; i < IN; i++) y[m] += full[m * IN + i] * x[i];
                return y;
            });
    compare("fully connected, of each row", { 6, 2, 1, 1 },
            [](INetworkDefinition &n, ITensor &x) {
                auto *s = n.addShuffle(x);
                s->setReshapeDimensions(Dims4{ 6, 4, 1, 1 });
                return first(n.addFullyConnected(*first(s), 2, weights(numbers(8, -1, 0.1f)), Weights{}));
            },
            [](Item const &x) {
                Item y;
                for (size_t r = 0; r < 6; r++)
                    for (size_t m = 0; m < 2; m++) {
                        float sum = 0;
                        for (size_t i = 0; i < 4; i++) sum += x[r * 4 + i] * (-1 + 0.1f * static_cast<float>(m * 4 + i));
                        y.push_back(sum);
                    }
                return y;
            });
    compare("softmax of channels", { 2, 3, 4 }, [](INetworkDefinition &n, ITensor &x) { return first(n.addSoftMax(x)); },
            [](Item const &x) {
                Item y(IN);
                for (size_t i = 0; i < 12; i++) {
                    const float a = std::exp(x[i]), b = std::exp(x[12 + i]);
                    y[i] = a / (a + b);
                    y[12 + i] = b / (a + b);
                }
                return y;
            });
    compare("softmax of rows", { 2, 3, 4 },
            [](INetworkDefinition &n, ITensor &x) {
                auto *s = n.addSoftMax(x);
                s->setAxes(1U << 2);
                CHECK(s->getAxes() == 4);
                return first(s);
            },
            [](Item const &x) {
                Item y;
                for (size_t i = 0; i < IN; i++) {
                    float sum = 0;
                    for (size_t k = i / 4 * 4; k < i / 4 * 4 + 4; k++) sum += std::exp(x[k]);
                    y.push_back(std::exp(x[i]) / sum);
                }
                return y;
            });
    compare("concatenation", { 4, 3, 4 },
            [](INetworkDefinition &n, ITensor &x) {
                ITensor *list[] = { &x, &x };
                auto *c = n.addConcatenation(list, 2);
                CHECK(c->getAxis() == 0);
                return first(c);
            },
            [](Item x) {
                const Item copy = x;
                x.insert(x.end(), copy.begin(), copy.end());
                return x;
            });
    compare("concatenation of rows, a slice of it", { 2, 2, 3 },
            [](INetworkDefinition &n, ITensor &x) {
                ITensor *list[] = { &x, &x };
                auto *c = n.addConcatenation(list, 2);
                c->setAxis(2);
                CHECK(c->getAxis() == 2 && has_dims(first(c)->getDimensions(), { 2, 3, 8 }));
                return first(n.addSlice(*first(c), Dims3{ 0, 1, 3 }, Dims3{ 2, 2, 3 }, Dims3{ 1, 1, 2 }));
            },
            [](Item const &x) {
                Item y;
                for (size_t c = 0; c < 2; c++)
                    for (size_t h = 1; h < 3; h++)
                        for (const size_t w : { 3u, 1u, 3u }) y.push_back(at(x, c, h, w));
                return y;
            });
    compare("shuffle", { 4, 2, 3 },
            [](INetworkDefinition &n, ITensor &x) {
                auto *s = n.addShuffle(x);
                s->setFirstTranspose(Permutation{ 2, 0, 1 });
                s->setReshapeDimensions(Dims3{ 4, -1, 3 });
                CHECK(s->getFirstTranspose().order[0] == 2 && has_dims(s->getReshapeDimensions(), { 4, -1, 3 }));
                return first(s);
            },
            [](Item const &x) {
                Item y;
                for (size_t w = 0; w < 4; w++)
                    for (size_t c = 0; c < 2; c++)
                        for (size_t h = 0; h < 3; h++) y.push_back(at(x, c, h, w));
                return y;
            });
    for (const bool is_before : { false, true })
        compare("second transpose of another rank", { 3, 2, 2, 2 },
                [is_before](INetworkDefinition &n, ITensor &x) {
                    auto *s = n.addShuffle(x);
                    if (is_before) s->setSecondTranspose(Permutation{ 1, 3, 0, 2 });
                    s->setReshapeDimensions(Dims4{ 2, 3, 2, 2 });
                    if (!is_before) s->setSecondTranspose(Permutation{ 1, 3, 0, 2 });
                    CHECK(s->getSecondTranspose().order[1] == 3);
                    return first(s);
                },
                [](Item const &x) {
                    Item y;
                    for (size_t h = 0; h < 3; h++)
                        for (size_t l = 0; l < 2; l++)
                            for (size_t c = 0; c < 2; c++)
                                for (size_t k = 0; k < 2; k++) y.push_back(at(x, c, h, k * 2 + l));
                    return y;
                });
    compare("reduce, and a constant", { 2, 1, 4 },
            [](INetworkDefinition &n, ITensor &x) {
                auto *r = n.addReduce(x, ReduceOperation::kSUM, 1U << 1, true);
                CHECK(r->getReduceAxes() == 2);
                auto *c = n.addConstant(Dims3{ 1, 1, 4 }, weights(numbers(4, 1, 1)));
                CHECK(has_dims(c->getDimensions(), { 1, 1, 4 }) && has_dims(first(c)->getDimensions(), { 1, 1, 4 }));
                return first(n.addElementWise(*first(r), *first(c), ElementWiseOperation::kPROD));
            },
            [](Item const &x) {
                Item y;
                for (size_t c = 0; c < 2; c++)
                    for (size_t w = 0; w < 4; w++)
                        y.push_back((at(x, c, 0, w) + at(x, c, 1, w) + at(x, c, 2, w)) * static_cast<float>(w + 1));
                return y;
            });
    compare("top k", { 2, 3, 1 },
            [](INetworkDefinition &n, ITensor &x) { return first(n.addTopK(x, TopKOperation::kMAX, 1, 1U << 2)); },
            [](Item const &x) {
                Item y;
                for (size_t i = 0; i < IN; i += 4)
                    y.push_back(std::max(std::max(x[i], x[i + 1]), std::max(x[i + 2], x[i + 3])));
                return y;
            });
    for (const bool is_scaled : { false, true })
        compare("resize", { 2, 6, 4 },
                [is_scaled](INetworkDefinition &n, ITensor &x) {
                    auto *r = n.addResize(x);
                    const float scales[] = { 1, 2, 1 };
                    float got[3] = {};
                    if (!is_scaled) r->setOutputDimensions(Dims3{ 2, 6, 4 });
                    else r->setScales(scales, 3), CHECK(r->getScales(3, got) == 3 && got[1] == 2);
                    r->setResizeMode(ResizeMode::kNEAREST);
                    return first(r);
                },
                [](Item const &x) {
                    Item y;
                    for (size_t c = 0; c < 2; c++)
                        for (size_t h = 0; h < 6; h++)
                            for (size_t w = 0; w < 4; w++) y.push_back(at(x, c, h / 2, w));
                    return y;
                });
    compare("product of matrices", { 2, 3, 2 },
            [](INetworkDefinition &n, ITensor &x) {
                auto *c = n.addConstant(Dims3{ 1, 2, 4 }, weights(numbers(8, -3, 1)));
                return first(n.addMatrixMultiply(x, MatrixOperation::kNONE, *first(c), MatrixOperation::kTRANSPOSE));
            },
            [](Item const &x) {
                Item y;
                for (size_t r = 0; r < 6; r++)
                    for (size_t k = 0; k < 2; k++) {
                        float sum = 0;
                        for (size_t i = 0; i < 4; i++) sum += x[r * 4 + i] * (-3 + static_cast<float>(k * 4 + i));
                        y.push_back(sum);
                    }
                return y;
            });
    compare("plugin", { 2, 3, 4 },
            [](INetworkDefinition &n, ITensor &x) {
                ITensor *in = &x;
                Twice twice;
                return first(n.addPluginV2(&in, 1, twice));
            },
            [](Item x) {
                for (float &v : x) v *= 2;
                return x;
            });
}

int main()
{
    compare_layers();

    /* Layers whose axes would count the batch are refused, and a flag makes it an axis. */
    Unique<IBuilder> builder(createInferBuilder(logger));
    Unique<INetworkDefinition> network(builder->createNetworkV2(0U));
    ITensor *const x = network->addInput("x", DataType::kFLOAT, DimsCHW{ 2, 3, 4 });
    CHECK(DimsCHW(2, 3, 4).c() == 2 && DimsCHW(2, 3, 4).w() == 4);
    CHECK(!network->addShape(*x) && logger.errors.find("addShape") != std::string::npos);
    logger.errors.clear();
    Unique<INetworkDefinition> other(
        builder->createNetworkV2(1U << static_cast<uint32_t>(NetworkDefinitionCreationFlag::kEXPLICIT_BATCH)));
    CHECK(!other->hasImplicitBatchDimension());
    CHECK(has_dims(other->addInput("x", DataType::kFLOAT, Dims3{ 2, 3, 4 })->getDimensions(), { 2, 3, 4 }));

    /* The builder's own configuration. */
    Unique<INetworkDefinition> oldest(builder->createNetwork());
    ITensor *const in = oldest->addInput("x", DataType::kFLOAT, DimsCHW{ 1, 1, 4 });
    ITensor *const out = first(oldest->addActivation(*in, ActivationType::kRELU));
    out->setName("y");
    oldest->markOutput(*out);
    builder->setMaxWorkspaceSize(1 << 20);
    builder->setFp16Mode(false);
    Unique<ICudaEngine> engine(builder->buildCudaEngine(*oldest));
    CHECK(engine && engine->getMaxBatchSize() == 1 && engine->hasImplicitBatchDimension());
    CHECK(engine->getNbBindings() == 2 && has_dims(engine->getBindingDimensions(1), { 1, 1, 4 }));

    if (failures) std::printf("%s", logger.errors.c_str());
    return failures != 0;
}
