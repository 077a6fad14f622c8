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
    compare("concatenation with a constant", { 2, 5, 4 },
            [](INetworkDefinition &n, ITensor &x) {
                auto *c = n.addConstant(Dims3{ 2, 2, 4 }, weights(numbers(16, 0, 1)));
                ITensor *all[] = { &x, first(c) };
                auto *joined = n.addConcatenation(all, 2);
                joined->setAxis(1);
                return first(joined);
            },
            [](Item const &x) {
                Item y;
                for (size_t c = 0; c < 2; c++) {
                    for (size_t i = 0; i < 12; i++) y.push_back(x[c * 12 + i]);
                    for (size_t i = 0; i < 8; i++) y.push_back(static_cast<float>(c * 8 + i));
                }
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

/* ---- recurrent layers: [2, 3, 4] are two sequences of three steps ---- */

struct Recurrent {
    RNNOperation op;
    int layers, directions, size;
    bool skips;
};
static std::vector<RNNGateType> gates_of(RNNOperation op)
{
    using G = RNNGateType;
    if (op == RNNOperation::kLSTM) return { G::kINPUT, G::kFORGET, G::kCELL, G::kOUTPUT };
    if (op == RNNOperation::kGRU) return { G::kUPDATE, G::kRESET, G::kHIDDEN };
    return { G::kINPUT };
}
/* The weights of a gate [size, width] and its bias [size], which follow from where they are. */
static std::vector<float> const &gate_weights(int layer, RNNGateType gate, bool is_w, size_t count)
{
    const auto g = static_cast<float>(gate);
    return numbers(count, 0.3f - 0.05f * g - (is_w ? 0.1f : 0.2f) * static_cast<float>(layer), is_w ? -0.013f : 0.011f);
}
static size_t width_of(Recurrent const &r, int layer, bool is_w)
{
    return !is_w ? size_t(r.size) : layer < r.directions ? 4 : size_t(r.size * r.directions);
}
static IRNNv2Layer *recurrent(INetworkDefinition &n, ITensor &x, Recurrent const &r)
{
    IRNNv2Layer *const layer = n.addRNNv2(x, r.layers, r.size, 3, RNNOperation::kTANH);
    if (!layer) return nullptr;
    layer->setOperation(r.op);
    if (r.directions == 2) layer->setDirection(RNNDirection::kBIDIRECTION);
    if (r.skips) layer->setInputMode(RNNInputMode::kSKIP);
    for (int l = 0; l < r.layers * r.directions; l++)
        for (RNNGateType const gate : gates_of(r.op))
            for (const bool is_w : { true, false }) {
                if (is_w && r.skips && l < r.directions) continue;
                const size_t size = size_t(r.size);
                layer->setWeightsForGate(l, gate, is_w, weights(gate_weights(l, gate, is_w, size * width_of(r, l, is_w))));
                layer->setBiasForGate(l, gate, is_w, weights(gate_weights(l + 1, gate, !is_w, size)));
            }
    CHECK(layer->getType() == LayerType::kRNN_V2 && layer->getLayerCount() == r.layers);
    CHECK(layer->getHiddenSize() == r.size && layer->getDataLength() == 4 && layer->getMaxSeqLength() == 3);
    CHECK(layer->getNbOutputs() == (r.op == RNNOperation::kLSTM ? 3 : 2) && layer->getOperation() == r.op);
    return layer;
}
/* One layer in one direction over [steps, width]; last: its last state, of an LSTM its last cell. */
static std::vector<Item> run_layer(Recurrent const &r, int l, std::vector<Item> const &in, Item &state, Item &cell)
{
    const auto size = size_t(r.size);
    std::vector<Item> made(in.size(), Item(size));
    const bool is_backward = r.directions == 2 && l % 2;
    for (size_t i = 0; i < in.size(); i++) {
        const size_t t = is_backward ? in.size() - 1 - i : i;
        Item next(size);
        for (size_t u = 0; u < size; u++) {
            float of_input[7], of_state[7];
            for (RNNGateType const gate : gates_of(r.op))
                for (const bool is_w : { true, false }) {
                    Item const &x = is_w ? in[t] : state;
                    const bool is_skipped = is_w && r.skips && l < r.directions;
                    float sum = is_skipped ? x[u] : gate_weights(l + 1, gate, !is_w, size)[u];
                    for (size_t k = 0; k < x.size() && !is_skipped; k++)
                        sum += gate_weights(l, gate, is_w, size * x.size())[u * x.size() + k] * x[k];
                    (is_w ? of_input : of_state)[static_cast<int>(gate)] = sum;
                }
            const auto gate = [&](RNNGateType g) { return of_input[int(g)] + of_state[int(g)]; };
            const auto part = [&](RNNGateType g) { return 1 / (1 + std::exp(-gate(g))); };
            using G = RNNGateType;
            if (r.op == RNNOperation::kLSTM) {
                cell[u] = part(G::kFORGET) * cell[u] + part(G::kINPUT) * std::tanh(gate(G::kCELL));
                next[u] = part(G::kOUTPUT) * std::tanh(cell[u]);
            } else if (r.op == RNNOperation::kGRU) {
                const float h = std::tanh(of_input[int(G::kHIDDEN)] + part(G::kRESET) * of_state[int(G::kHIDDEN)]);
                next[u] = (1 - part(G::kUPDATE)) * h + part(G::kUPDATE) * state[u];
            } else next[u] = r.op == RNNOperation::kRELU ? std::max(gate(G::kINPUT), 0.f) : std::tanh(gate(G::kINPUT));
        }
        made[t] = state = next;
    }
    return made;
}
static Item recurrent_values(Recurrent const &r, Item const &x, int output)
{
    Item made;
    for (size_t row = 0; row < 2; row++) {
        std::vector<Item> data;
        for (size_t t = 0; t < 3; t++)
            data.emplace_back(x.begin() + int64_t(row * 12 + t * 4), x.begin() + int64_t(row * 12 + t * 4 + 4));
        Item last;
        for (int l = 0; l < r.layers; l++) {
            std::vector<Item> joined(3);
            for (int d = 0; d < r.directions; d++) {
                Item state(size_t(r.size), 0.f), cell(size_t(r.size), 0.f);
                const std::vector<Item> y = run_layer(r, l * r.directions + d, data, state, cell);
                for (size_t t = 0; t < 3; t++) joined[t].insert(joined[t].end(), y[t].begin(), y[t].end());
                Item const &kept = output == 2 ? cell : state;
                last.insert(last.end(), kept.begin(), kept.end());
            }
            data = joined;
        }
        if (output) made.insert(made.end(), last.begin(), last.end());
        else
            for (Item const &y : data) made.insert(made.end(), y.begin(), y.end());
    }
    return made;
}
static void compare_recurrent()
{
    const Recurrent all[] = { { RNNOperation::kLSTM, 1, 2, 3, false }, { RNNOperation::kLSTM, 2, 1, 4, true },
                              { RNNOperation::kGRU, 2, 2, 2, false },  { RNNOperation::kRELU, 2, 2, 4, true },
                              { RNNOperation::kRELU, 3, 1, 2, false }, { RNNOperation::kTANH, 2, 2, 3, false } };
    for (Recurrent const &r : all)
        for (int output = 0; output < (r.op == RNNOperation::kLSTM ? 3 : 2); output++) {
            const int64_t layers = r.layers * r.directions;
            const std::vector<int64_t> dims = output ? std::vector<int64_t>{ 2, layers, r.size }
                                                     : std::vector<int64_t>{ 2, 3, r.size * r.directions };
            compare("recurrent", dims,
                    [&](INetworkDefinition &n, ITensor &x) {
                        IRNNv2Layer *const layer = recurrent(n, x, r);
                        return layer ? layer->getOutput(output) : nullptr;
                    },
                    [&](Item const &x) { return recurrent_values(r, x, output); });
        }
    compare("recurrent with a wrong gate", { 2, 3, 4 },
            [](INetworkDefinition &n, ITensor &x) {
                IRNNv2Layer *const layer = n.addRNNv2(x, 1, 4, 3, RNNOperation::kRELU);
                layer->setWeightsForGate(0, RNNGateType::kCELL, true, weights(numbers(16, 0, 1)));
                layer->setWeightsForGate(0, RNNGateType::kINPUT, true, weights(numbers(15, 0, 1)));
                CHECK(logger.errors.find("no such gate") != std::string::npos);
                CHECK(logger.errors.find("takes 16 weights of kFLOAT, not 15") != std::string::npos);
                logger.errors.clear();
                return layer->getOutput(0);
            },
            [](Item x) {
                for (float &v : x) v = 0;
                return x;
            });
}

static void compare_gathers()
{
    static const int32_t which[] = { 2, 0 };
    compare("gather with indices of all items", { 2, 2, 4 },
            [](INetworkDefinition &n, ITensor &x) {
                auto *c = n.addConstant(Dims{ 1, { 2 }, {} }, Weights{ DataType::kINT32, which, 2 });
                return first(n.addGather(x, *first(c), 1));
            },
            [](Item const &x) {
                Item y;
                for (size_t c = 0; c < 2; c++)
                    for (const size_t h : { 2u, 0u })
                        for (size_t w = 0; w < 4; w++) y.push_back(at(x, c, h, w));
                return y;
            });
    /* The position of the largest element of each row picks a column of x. */
    const auto largest = [](Item const &x, size_t c, size_t h) {
        size_t best = 0;
        for (size_t w = 1; w < 4; w++) best = at(x, c, h, w) > at(x, c, h, best) ? w : best;
        return best;
    };
    compare("gather with indices of each item", { 2, 3, 2, 3, 1 },
            [](INetworkDefinition &n, ITensor &x) {
                auto *top = n.addTopK(x, TopKOperation::kMAX, 1, 4);
                return first(n.addGather(x, *top->getOutput(1), 2));
            },
            [&](Item const &x) {
                Item y;
                for (size_t c = 0; c < 2; c++)
                    for (size_t h = 0; h < 3; h++)
                        for (size_t i = 0; i < 6; i++) y.push_back(at(x, c, h, largest(x, i / 3, i % 3)));
                return y;
            });
    compare("gather from a table", { 2, 3, 1, 2 },
            [](INetworkDefinition &n, ITensor &x) {
                auto *top = n.addTopK(x, TopKOperation::kMAX, 1, 4);
                auto *table = n.addConstant(Dims2{ 4, 2 }, weights(numbers(8, 10, 1)));
                CHECK(!n.addGather(*first(table), *top->getOutput(1), 1));
                CHECK(logger.errors.find("from a constant along an axis") != std::string::npos);
                logger.errors.clear();
                return first(n.addGather(*first(table), *top->getOutput(1), 0));
            },
            [&](Item const &x) {
                Item y;
                for (size_t i = 0; i < 6; i++)
                    for (size_t k = 0; k < 2; k++) y.push_back(10 + float(largest(x, i / 3, i % 3) * 2 + k));
                return y;
            });
}

/* Names that TensorRT 7 and 8 had. */
static void use_old_names()
{
    const Dims typed{ 2, { 3, 4 }, { DimensionType::kCHANNEL, DimensionType::kSPATIAL } };
    CHECK(has_dims(typed, { 3, 4 }) && typed.type[1] == DimensionType::kSPATIAL);
    DimsNCHW whole{ 1, 2, 3, 4 };
    whole.h() = 5;
    CHECK(whole.n() == 1 && has_dims(whole, { 1, 2, 5, 4 }) && SliceMode::kDEFAULT == SampleMode::kSTRICT_BOUNDS);
    CHECK(EnumMax<SampleMode>() == 5 && EnumMax<PaddingMode>() == 6 && TensorFormat::kNC2HW2 == TensorFormat::kCHW2);
    Unique<IBuilder> builder(createInferBuilder(logger));
    builder->setRefittable(true);
    builder->setStrictTypeConstraints(true);
    CHECK(builder->getRefittable() && builder->getStrictTypeConstraints() && !builder->getInt8Mode());
    Unique<IBuilderConfig> config(builder->createBuilderConfig());
    config->setQuantizationFlag(QuantizationFlag::kCALIBRATE_BEFORE_FUSION);
    CHECK(config->getQuantizationFlag(QuantizationFlag::kCALIBRATE_BEFORE_FUSION) && config->getQuantizationFlags() == 1);
    Unique<INetworkDefinition> network(builder->createNetworkV2(0U));
    ITensor *const x = network->addInput("x", DataType::kFLOAT, Dims3{ 1, 4, 4 });
    CHECK(x->setDynamicRange(-2, 1) && x->getDynamicRange() == 2);
    auto *full = network->addFullyConnected(*x, 2, weights(numbers(32, 0, 1)), Weights{ DataType::kFLOAT, nullptr, 0 });
    ILayer *const base = full;
    CHECK(base->getType() == LayerType::kFULLY_CONNECTED && network->getLayer(0) == base);
    auto *product = network->addMatrixMultiply(*x, MatrixOperation::kNONE, *x, MatrixOperation::kNONE);
    product->setTranspose(1, true);
    CHECK(product->getTranspose(1) && !product->getTranspose(0) && !network->hasExplicitPrecision());
    CHECK(logger.errors.empty());
}

/* Windows of Caffe: the same zeros on both sides, and no window that begins behind the front zeros and the data. */
static void compare_paddings_of_caffe()
{
    const auto pool = [](PaddingMode mode, int stride) {
        return [=](INetworkDefinition &n, ITensor &x) {
            auto *p = n.addPoolingNd(x, PoolingType::kMAX, DimsHW{ 2, 2 });
            p->setStrideNd(DimsHW{ stride, stride });
            p->setPrePadding(DimsHW{ 1, 1 });
            p->setPostPadding(DimsHW{ 0, 0 });
            p->setPaddingMode(mode);
            CHECK(p->getPaddingMode() == mode);
            return first(p);
        };
    };
    compare("caffe, down", { 2, 1, 1 }, pool(PaddingMode::kCAFFE_ROUND_DOWN, 5),
            [](Item const &x) { return Item{ at(x, 0, 0, 0), at(x, 1, 0, 0) }; });
    compare("caffe, up", { 2, 2, 2 }, pool(PaddingMode::kCAFFE_ROUND_UP, 3), [](Item const &x) {
        Item y;
        for (size_t c = 0; c < 2; c++)
            for (size_t i = 0; i < 4; i++) {
                float most = -1e30f;
                for (size_t h = i < 2 ? 0 : 2; h < (i < 2 ? 1u : 3u); h++)
                    for (size_t w = i % 2 ? 2 : 0; w < (i % 2 ? 4u : 1u); w++) most = std::max(most, at(x, c, h, w));
                y.push_back(most);
            }
        return y;
    });
}

int main()
{
    compare_layers();
    compare_recurrent();
    compare_gathers();
    compare_paddings_of_caffe();
    use_old_names();

    /* Layers whose axes would count the batch are refused, and a flag makes it an axis. */
    Unique<IBuilder> builder(createInferBuilder(logger));
    Unique<INetworkDefinition> network(builder->createNetworkV2(0U));
    ITensor *const x = network->addInput("x", DataType::kFLOAT, DimsCHW{ 2, 3, 4 });
    static_assert(sizeof(Dims().d[0]) == 4, "sizes are as wide as they were");
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
