/* SPDX-License-Identifier: Apache-2.0 */
/* NvInfer.h - networks and the builder, in the shape of TensorRT's header of this name (NvInferRuntimeBase.h). */
#ifndef NV_INFER_H
#define NV_INFER_H

#include "NvInferLayers.h"

#include <algorithm>

namespace nvinfer1 {

enum class NetworkDefinitionCreationFlag : int32_t {
    kEXPLICIT_BATCH = 0, kSTRONGLY_TYPED = 1, kPREFER_JIT_PYTHON_PLUGINS = 2, kPREFER_AOT_PYTHON_PLUGINS = 3,
    kEXPLICIT_PRECISION = 31 /* of TensorRT 7 and 8, which changes nothing: layers are as their inputs' types say */
};
using NetworkDefinitionCreationFlags = uint32_t;
template <> constexpr int32_t EnumMax<NetworkDefinitionCreationFlag>() noexcept { return 4; }

class INetworkDefinition;
class IBuilder;
class IRNNv2Layer;
enum class RNNOperation : int32_t;

class ILoop : public detail::reporter {
  public:
    ILoop(INetworkDefinition *network, sinter_loop *c, ILogger *logger) : reporter(logger), network_(network), c_(c) {}
    inline ITripLimitLayer *addTripLimit(ITensor &tensor, TripLimit limit) noexcept;
    inline IRecurrenceLayer *addRecurrence(ITensor &initial) noexcept;
    inline IIteratorLayer *addIterator(ITensor &tensor, int32_t axis = 0, bool reverse = false) noexcept;
    inline ILoopOutputLayer *addLoopOutput(ITensor &tensor, LoopOutput output, int32_t axis = 0) noexcept;
    void setName(char const *name) noexcept
    {
        (void)attempt([&] { sinter::call(sinter_loop_set_name, c_, name); });
    }
    char const *getName() const noexcept { return sinter_loop_name(c_); }

  private:
    INetworkDefinition *network_;
    sinter_loop *c_;
};
class IIfConditional : public detail::reporter {
  public:
    IIfConditional(INetworkDefinition *network, sinter_conditional *c, ILogger *logger)
        : reporter(logger), network_(network), c_(c)
    {
    }
    inline IConditionLayer *setCondition(ITensor &condition) noexcept;
    inline IIfConditionalInputLayer *addInput(ITensor &input) noexcept;
    inline IIfConditionalOutputLayer *addOutput(ITensor &then_value, ITensor &else_value) noexcept;
    void setName(char const *name) noexcept
    {
        (void)attempt([&] { sinter::call(sinter_conditional_set_name, c_, name); });
    }
    char const *getName() const noexcept { return sinter_conditional_name(c_); }

  private:
    INetworkDefinition *network_;
    sinter_conditional *c_;
};

/* A network: its layers and tensors live as long as it does. */
class INetworkDefinition : public detail::reporter {
  public:
    INetworkDefinition(IBuilder &builder, ILogger *logger, NetworkDefinitionCreationFlags flags, bool hides_batch)
        : reporter(logger), builder_(builder), flags_(flags), net_(sinter::environment().use(plugins_)),
          hidden_(hides_batch)
    {
        bring_plugins();
        if (getFlag(NetworkDefinitionCreationFlag::kSTRONGLY_TYPED))
            sinter::call(sinter_network_set_strongly_typed, net_.get(), 1u);
        else sinter::call(sinter_network_set_precision_mode, net_.get(), SINTER_PRECISION_IGNORE);
    }

    ITensor *addInput(char const *name, DataType type, Dims const &dims) noexcept
    {
        return guard(static_cast<ITensor *>(nullptr), [&] {
            const sinter::dims shape = detail::from(detail::show_batch(dims, hidden_, -1));
            sinter_network_tensor *const made = net_.add_input(name, detail::from(type), shape).get();
            if (hidden_) sinter::call(sinter_network_tensor_set_dim_name, made, 0u, "batch");
            return wrap(made);
        });
    }
    void markOutput(ITensor &t) noexcept
    {
        (void)attempt([&] { net_.mark_output(t.get()); });
    }
    void unmarkOutput(ITensor &t) noexcept
    {
        (void)attempt([&] { sinter::call(sinter_network_unmark_output, net_.get(), t.get()); });
    }
    bool markOutputForShapes(ITensor &t) noexcept { return mark(sinter_network_mark_shape_output, t, 1); }
    bool unmarkOutputForShapes(ITensor &t) noexcept { return mark(sinter_network_mark_shape_output, t, 0); }
    /* Hands the tensor to the debug listener of a context, after each run for which its state is on. */
    bool markDebug(ITensor &t) noexcept
    {
        return attempt([&] {
            if (!isDebugTensor(t)) debug_.push_back(&t);
        });
    }
    bool unmarkDebug(ITensor &t) noexcept
    {
        const auto found = std::find(debug_.begin(), debug_.end(), &t);
        if (found == debug_.end()) return false;
        debug_.erase(found);
        return true;
    }
    /* The name under which a refit finds weights that were given to a layer, or that a layer shows. */
    bool setWeightsName(Weights weights, char const *name) noexcept
    {
        return guard(false, [&] {
            const auto given = given_to_.find(weights.values);
            for (int32_t i = 0; i < getNbLayers(); i++) {
                sinter_layer *const layer = sinter_network_layer(net_.get(), static_cast<uint32_t>(i));
                const bool is_given = given != given_to_.end() && given->second == layer;
                for (char const *parameter : { "kernel", "bias", "shift", "scale", "power", "weights" }) {
                    sinter_weights w;
                    if (sinter_layer_get_weights(layer, parameter, &w, nullptr) != SINTER_OK || !w.count) continue;
                    const bool is_shown = w.data == weights.values;
                    if (!is_shown && !(is_given && w.count == weights.count && is_same(w, weights))) continue;
                    sinter::call(sinter_layer_set_weights_name, layer, parameter, name);
                    return true;
                }
            }
            return false;
        });
    }
    /* With BuilderFlag::kREFIT_INDIVIDUAL the weights that are marked can be replaced, and no others. */
    bool markWeightsRefittable(char const *name) noexcept { return marked_.insert(name ? name : "").second || name; }
    bool unmarkWeightsRefittable(char const *name) noexcept { return marked_.erase(name ? name : "") != 0; }
    bool areWeightsMarkedRefittable(char const *name) const noexcept { return marked_.count(name ? name : "") != 0; }
    std::set<std::string> const &marked_weights() const { return marked_; }
    bool isDebugTensor(ITensor const &t) const noexcept
    {
        return std::find(debug_.begin(), debug_.end(), &t) != debug_.end();
    }

/* clang-format off */
#define ADD(Class, Name, parameters, kind, ...) \
    Class *add##Name parameters noexcept { return add<Class>([&] { return net_.add_##kind(__VA_ARGS__); }); }
/* Layers whose axes count the batch: of networks where it is an axis. */
#define ADD_EXPLICIT(Class, Name, parameters, kind, ...)                                                 \
    Class *add##Name parameters noexcept                                                                 \
    {                                                                                                    \
        return add<Class>([&] { return needs_batch_axis("add" #Name), net_.add_##kind(__VA_ARGS__); });   \
    }
    ADD(IConvolutionLayer, ConvolutionNd, (ITensor &x, int64_t maps, Dims const &kernel, Weights w, Weights bias),
        convolution,
        windowed(x, kernel.nbDims), maps, detail::from(kernel), weights(w), weights(bias))
    ADD(IDeconvolutionLayer, DeconvolutionNd, (ITensor &x, int64_t maps, Dims const &kernel, Weights w, Weights bias),
        deconvolution, windowed(x, kernel.nbDims), maps, detail::from(kernel), weights(w), weights(bias))
    ADD(IActivationLayer, Activation, (ITensor &x, ActivationType type), activation, edge(x),
        to<sinter_activation>(type))
    ADD(IPoolingLayer, PoolingNd, (ITensor &x, PoolingType type, Dims const &window), pooling,
        windowed(x, window.nbDims),
        to<sinter_pooling>(type), detail::from(window))
    ADD(IConvolutionLayer, Convolution, (ITensor &x, int64_t maps, DimsHW kernel, Weights w, Weights bias), convolution,
        windowed(x, 2), maps, detail::from(kernel), weights(w), weights(bias))
    ADD(IDeconvolutionLayer, Deconvolution, (ITensor &x, int64_t maps, DimsHW kernel, Weights w, Weights bias),
        deconvolution, windowed(x, 2), maps, detail::from(kernel), weights(w), weights(bias))
    ADD(IPoolingLayer, Pooling, (ITensor &x, PoolingType type, DimsHW window), pooling, windowed(x, 2),
        to<sinter_pooling>(type), detail::from(window))
    ADD(IPaddingLayer, Padding, (ITensor &x, DimsHW pre, DimsHW post), padding, edge(x), detail::from(pre),
        detail::from(post).data())
    ADD(IFullyConnectedLayer, FullyConnected, (ITensor &x, int64_t maps, Weights w, Weights bias), convolution,
        edge(x), maps, plane(x), weights(w), weights(bias))
    ADD(ILRNLayer, LRN, (ITensor &x, int64_t window, float alpha, float beta, float k), lrn, edge(x), window, alpha,
        beta, k)
    ADD(IScaleLayer, Scale, (ITensor &x, ScaleMode mode, Weights shift, Weights scale, Weights power), scale, edge(x),
        to<sinter_scale_mode>(mode), weights(shift), weights(scale), weights(power),
        hidden_ ? std::max(x.getDimensions().nbDims - 3, 0) + 1 : 1)
    ADD(IScaleLayer, ScaleNd, (ITensor &x, ScaleMode mode, Weights shift, Weights scale, Weights power, int32_t axis),
        scale,
        edge(x), to<sinter_scale_mode>(mode), weights(shift), weights(scale), weights(power), axis + hidden_)
    ADD(ISoftMaxLayer, SoftMax, (ITensor &x), softmax, edge(x),
        hidden_ ? 2u << std::max(x.getDimensions().nbDims - 3, 0) : 0)
    ADD_EXPLICIT(IRaggedSoftMaxLayer, RaggedSoftMax, (ITensor &x, ITensor &bounds), ragged_softmax, edge(x),
        edge(bounds))
    ADD(IConcatenationLayer, Concatenation, (ITensor *const *x, int32_t count), concatenation,
        of_one_batch(edges(x, count)),
        (count > 0 ? std::max(x[0]->getDimensions().nbDims - 3, 0) : 0) + hidden_)
    ADD(IElementWiseLayer, ElementWise, (ITensor &a, ITensor &b, ElementWiseOperation op), elementwise, edge(a),
        edge(b),
        to<sinter_elementwise>(op))
    ADD(IUnaryLayer, Unary, (ITensor &x, UnaryOperation op), unary, edge(x), to<sinter_unary>(op))
    ADD(IPaddingLayer, PaddingNd, (ITensor &x, Dims const &pre, Dims const &post), padding, edge(x), detail::from(pre),
        detail::from(post).data())
    ADD(IShuffleLayer, Shuffle, (ITensor &x), shuffle, edge(x))
    ADD(IReduceLayer, Reduce, (ITensor &x, ReduceOperation op, uint32_t axes, bool keep), reduce, edge(x),
        to<sinter_reduction>(op), axes << hidden_, keep)
    ADD(ITopKLayer, TopK, (ITensor &x, TopKOperation op, int32_t k, uint32_t axes,
        DataType indices = DataType::kINT32), topk,
        edge(x), to<sinter_topk>(op), k, axes << hidden_, detail::from(indices))
    ADD_EXPLICIT(IGatherLayer, GatherV2, (ITensor &data, ITensor &indices, GatherMode mode), gather, edge(data),
        edge(indices),
        to<sinter_gather>(mode), 0)
    ADD(IMatrixMultiplyLayer, MatrixMultiply, (ITensor &a, MatrixOperation op_a, ITensor &b, MatrixOperation op_b),
        matrix_multiply, edge(a), to<sinter_matrix>(op_a), edge(b), to<sinter_matrix>(op_b))
    /* Of TensorRT 5 to 7: true is a transpose. */
    IMatrixMultiplyLayer *addMatrixMultiply(ITensor &a, bool is_a_turned, ITensor &b, bool is_b_turned) noexcept
    {
        const auto op = [](bool is_turned) { return is_turned ? MatrixOperation::kTRANSPOSE : MatrixOperation::kNONE; };
        return addMatrixMultiply(a, op(is_a_turned), b, op(is_b_turned));
    }
    ADD(IConstantLayer, Constant, (Dims const &dims, Weights w), constant,
        constant(detail::show_batch(dims, hidden_, 1), w), 0)
    ADD_EXPLICIT(IShapeLayer, Shape, (ITensor &x), shape, edge(x))
    ADD(IIdentityLayer, Identity, (ITensor &x), identity, edge(x))
    ADD(ICastLayer, Cast, (ITensor &x, DataType type), cast, edge(x), detail::from(type))
    ADD(IParametricReLULayer, ParametricReLU, (ITensor &x, ITensor &slopes), parametric_relu, edge(x), edge(slopes))
    ADD(ISelectLayer, Select, (ITensor &condition, ITensor &a, ITensor &b), select, edge(condition), edge(a), edge(b))
    ADD_EXPLICIT(ISqueezeLayer, Squeeze, (ITensor &x, ITensor &axes), squeeze, edge(x), edge(axes))
    ADD_EXPLICIT(IUnsqueezeLayer, Unsqueeze, (ITensor &x, ITensor &axes), unsqueeze, edge(x), edge(axes))
    ADD(IResizeLayer, Resize, (ITensor &x), resize, edge(x))
    ADD_EXPLICIT(IFillLayer, Fill, (Dims const &dims, FillOperation op, DataType type = DataType::kFLOAT), fill,
        detail::from(dims),
        to<sinter_fill>(op), detail::from(type))
    ADD(IAssertionLayer, Assertion, (ITensor &condition, char const *message), assertion, edge(condition),
        std::string(message))
    ADD_EXPLICIT(IQuantizeLayer, Quantize, (ITensor &x, ITensor &scale, DataType type = DataType::kINT8),
        quantize, edge(x),
        edge(scale),
        detail::from(type))
    ADD_EXPLICIT(IDequantizeLayer, Dequantize, (ITensor &x, ITensor &scale, DataType type = DataType::kFLOAT),
        dequantize,
        edge(x),
        edge(scale), detail::from(type))
    ADD_EXPLICIT(IDynamicQuantizeLayer, DynamicQuantize, (ITensor &x, int32_t axis, int32_t block, DataType type,
        DataType scale),
        dynamic_quantize, edge(x), sinter::edge(), axis, block, detail::from(type), detail::from(scale))
    ADD_EXPLICIT(IScatterLayer, Scatter, (ITensor &data, ITensor &indices, ITensor &updates, ScatterMode mode), scatter,
        edge(data),
        edge(indices), edge(updates), to<sinter_scatter>(mode))
    ADD_EXPLICIT(IEinsumLayer, Einsum, (ITensor *const *x, int32_t count, char const *equation),
        einsum, edges(x, count),
        std::string(equation))
    ADD_EXPLICIT(IOneHotLayer, OneHot, (ITensor &indices, ITensor &values, ITensor &depth, int32_t axis),
        one_hot, edge(indices),
        edge(values), edge(depth), axis)
    ADD_EXPLICIT(INonZeroLayer, NonZero, (ITensor &x, DataType indices = DataType::kINT32), non_zero, edge(x),
        detail::from(indices))
    ADD_EXPLICIT(IGridSampleLayer, GridSample, (ITensor &x, ITensor &grid), grid_sample, edge(x), edge(grid))
    ADD_EXPLICIT(INMSLayer, NMS, (ITensor &boxes, ITensor &scores, ITensor &most,
        DataType indices = DataType::kINT32), nms,
        edge(boxes),
        edge(scores), edge(most), detail::from(indices))
    ADD_EXPLICIT(IReverseSequenceLayer, ReverseSequence, (ITensor &x, ITensor &lengths), reverse_sequence, edge(x),
        edge(lengths))
    ADD_EXPLICIT(INormalizationLayer, Normalization, (ITensor &x, ITensor &scale, ITensor &bias, uint32_t axes),
        normalization,
        edge(x),
        edge(scale), edge(bias), axes)
    ADD_EXPLICIT(ICumulativeLayer, Cumulative, (ITensor &x, ITensor &axis, CumulativeOperation op, bool exclusive,
        bool reverse),
        cumulative, edge(x), edge(axis), to<sinter_cumulative>(op), exclusive, reverse)
    ADD_EXPLICIT(IAttention, Attention, (ITensor &q, ITensor &k, ITensor &v, AttentionNormalizationOp op,
        bool is_causal),
        attention,
        edge(q), edge(k), edge(v), to<sinter_norm_op>(op), is_causal ? SINTER_CAUSAL_UPPER_LEFT : SINTER_CAUSAL_NONE)
    ADD_EXPLICIT(IAttention, AttentionV2, (ITensor &q, ITensor &k, ITensor &v, AttentionNormalizationOp op,
        CausalMaskKind kind),
        attention, edge(q), edge(k), edge(v), to<sinter_norm_op>(op), to<sinter_causal>(kind))
    ADD_EXPLICIT(IMoELayer, MoE, (ITensor &hidden, ITensor &experts, ITensor &scores), moe, edge(hidden), edge(experts),
        edge(scores))
    ADD_EXPLICIT(IRotaryEmbeddingLayer, RotaryEmbedding, (ITensor &x, ITensor &cos, ITensor &sin, bool interleaved,
        int32_t dim),
        rotary_embedding, edge(x), edge(cos), edge(sin), interleaved, dim)
    ADD_EXPLICIT(IKVCacheUpdateLayer, KVCacheUpdate, (ITensor &cache, ITensor &update, ITensor &rows, KVCacheMode mode),
        kv_cache_update, edge(cache), edge(update), edge(rows), to<sinter_cache_mode>(mode))
#undef ADD
#undef ADD_EXPLICIT
    /* clang-format on */
    ISliceLayer *addSlice(ITensor &x, Dims const &start, Dims const &size, Dims const &stride) noexcept
    {
        ISliceLayer *const made = add<ISliceLayer>([&] {
            return net_.add_slice(edge(x), detail::from(start), detail::from(size).data(),
                                  detail::from(stride).data());
        });
        if (!made || !hidden_) return made;
        sinter::dims axes;
        for (int64_t i = 0; i < start.nbDims; i++) axes.push_back(i + 1);
        (void)attempt([&] { sinter::layer(made->get()).set("axes", axes); });
        return made;
    }
    /* Indices are of each item of an implicit batch its own, unless they are a constant. */
    IGatherLayer *addGather(ITensor &data, ITensor &indices, int32_t axis) noexcept
    {
        return add<IGatherLayer>([&] {
            if (!hidden_) return net_.add_gather(edge(data), edge(indices), SINTER_GATHER_DEFAULT, axis);
            const bool is_one = is_constant(data);
            if (is_one && axis)
                throw sinter::error(SINTER_UNSUPPORTED, "addGather from a constant along an axis that is not 0, in a "
                                                        "network with an implicit batch");
            const sinter::edge from = is_one ? without_batch(data) : edge(data);
            const sinter::edge which = !is_one && is_constant(indices) ? without_batch(indices) : edge(indices);
            sinter::layer made = net_.add_gather(from, which, SINTER_GATHER_DEFAULT, is_one ? 0 : axis + 1);
            if (!is_one && !is_constant(indices)) made.set("num_elementwise_dims", 1);
            return made;
        });
    }
    /* A stack of recurrent layers, of TensorRT 5 to 9 (NvInferRecurrent.h). */
    inline IRNNv2Layer *addRNNv2(ITensor &x, int32_t layers, int32_t size, int32_t longest, RNNOperation op) noexcept;
    INormalizationLayer *addNormalizationV2(ITensor &x, ITensor &scale, ITensor &bias, uint32_t axes) noexcept
    {
        INormalizationLayer *const made = addNormalization(x, scale, bias, axes);
        if (made) made->set_v2();
        return made;
    }
    IDynamicQuantizeLayer *addDynamicQuantizeV2(ITensor &x, Dims const &block, DataType type, DataType scale) noexcept
    {
        IDynamicQuantizeLayer *const made = addDynamicQuantize(x, -1, 16, type, scale);
        if (made) made->setBlockShape(block);
        return made;
    }
    /* An engine runs on one device. */
    IDistCollectiveLayer *addDistCollective(ITensor &, CollectiveOperation, ReduceOperation, int64_t, int64_t *,
                                            int64_t) noexcept
    {
        fail(SINTER_UNSUPPORTED, "an engine runs on one device, so it has no collective operations");
        return nullptr;
    }
    /* Hands the tensors between the steps of the engine to the debug listener, while
     * IExecutionContext::setUnfusedTensorsDebugState is on. A first build finds these tensors, a second build keeps
     * them. */
    bool markUnfusedTensorsAsDebugTensors() noexcept
    {
        marks_unfused_ = true;
        return true;
    }
    bool unmarkUnfusedTensorsAsDebugTensors() noexcept
    {
        marks_unfused_ = false;
        return true;
    }
    /* The plugin's creator has to be registered. The engine gets its serialised state, the layer keeps a clone. */
    IPluginV2Layer *addPluginV2(ITensor *const *inputs, int32_t count, IPluginV2 &plugin) noexcept
    {
        IPluginV2Layer *const layer = add<IPluginV2Layer>([&] {
            auto *const shipped = dynamic_cast<detail::shipped_plugin *>(&plugin);
            if (shipped) return call_shipped(*shipped, inputs, count);
            std::string bytes(plugin.getSerializationSize(), '\0');
            plugin.serialize(&bytes[0]);
            return call_plugin(plugin.getPluginType(), plugin.getPluginVersion(), plugin.getPluginNamespace(), inputs,
                               count, plugin.getNbOutputs(), bytes);
        });
        if (layer) layer->keep({ plugin.clone(), [](IPluginV2 *p) { p->destroy(); } });
        return layer;
    }
    IPluginV3Layer *addPluginV3(ITensor *const *inputs, int32_t count, ITensor *const *, int32_t shapes,
                                IPluginV3 &plugin) noexcept
    {
        IPluginV3Layer *const layer = add<IPluginV3Layer>([&] {
            needs_batch_axis("addPluginV3");
            if (shapes) throw sinter::error(SINTER_UNSUPPORTED, "plugins take no shape inputs: give them as inputs");
            auto *const shipped = dynamic_cast<detail::shipped_plugin *>(&plugin);
            if (shipped) return call_shipped(*shipped, inputs, count);
            auto *core = static_cast<IPluginV3OneCore *>(plugin.getCapabilityInterface(PluginCapabilityType::kCORE));
            auto *build = static_cast<IPluginV3OneBuild *>(plugin.getCapabilityInterface(PluginCapabilityType::kBUILD));
            if (!core || !build)
                throw sinter::error(SINTER_INVALID_ARG, "the plugin has no capability kCORE or kBUILD");
            const std::string bytes =
                detail::to_bytes(detail::instance_v3::runtime_of(&plugin)->getFieldsToSerialize());
            return call_plugin(core->getPluginName(), core->getPluginVersion(), core->getPluginNamespace(), inputs,
                               count, build->getNbOutputs(), bytes);
        });
        if (layer) layer->keep(std::shared_ptr<IPluginV3>(plugin.clone()));
        return layer;
    }
    ILoop *addLoop() noexcept
    {
        return guard(static_cast<ILoop *>(nullptr),
                     [&] { return needs_batch_axis("addLoop"), wrap(net_.add_loop().get()); });
    }
    IIfConditional *addIfConditional() noexcept
    {
        return guard(static_cast<IIfConditional *>(nullptr), [&] { return wrap(net_.add_conditional().get()); });
    }

    /* A network that is const hands out tensors and layers that are not, as upstream's does. */
    INetworkDefinition &self() const { return const_cast<INetworkDefinition &>(*this); }
    int32_t getNbLayers() const noexcept { return static_cast<int32_t>(sinter_network_layer_count(net_.get())); }
    ILayer *getLayer(int32_t i) const noexcept
    {
        return self().wrap(sinter_network_layer(net_.get(), static_cast<uint32_t>(i)));
    }
    /* ITensor::isShapeTensor(). */
    bool is_shape_tensor(sinter_network_tensor *t) const noexcept
    {
        return guard(false, [&] { return shape_tensors().count(t) != 0; });
    }
    int32_t getNbInputs() const noexcept { return static_cast<int32_t>(sinter_network_input_count(net_.get())); }
    ITensor *getInput(int32_t i) const noexcept
    {
        return self().wrap(sinter_network_input(net_.get(), static_cast<uint32_t>(i)));
    }
    int32_t getNbOutputs() const noexcept { return static_cast<int32_t>(sinter_network_output_count(net_.get())); }
    ITensor *getOutput(int32_t i) const noexcept
    {
        return self().wrap(sinter_network_output(net_.get(), static_cast<uint32_t>(i)));
    }
    void removeTensor(ITensor &t) noexcept
    {
        (void)attempt([&] { sinter::call(sinter_network_remove_input, net_.get(), t.get()); });
    }
    void setName(char const *name) noexcept
    {
        (void)attempt([&] { sinter::call(sinter_network_set_name, net_.get(), name); });
    }
    char const *getName() const noexcept { return sinter_network_name(net_.get()); }
    bool hasImplicitBatchDimension() const noexcept { return hidden_ != 0; }
    bool hasExplicitPrecision() const noexcept { return getFlag(NetworkDefinitionCreationFlag::kEXPLICIT_PRECISION); }
    NetworkDefinitionCreationFlags getFlags() const noexcept { return flags_; }
    bool getFlag(NetworkDefinitionCreationFlag f) const noexcept { return flags_ >> static_cast<int>(f) & 1; }
    IBuilder &getBuilder() const noexcept { return builder_; }
    void destroy() noexcept { delete this; }

    /* ---- for the other classes ---- */
    sinter::network &net() { return net_; }
    /* Plugins may be registered after the network was made, before it uses them. */
    void bring_plugins() { ::getPluginRegistry()->bring(plugins_, libraries_); }
    int32_t hidden() const { return hidden_; }
    /* Sizes of a resized tensor as a tensor, whose first is the batch of x. */
    sinter::edge sizes_behind_batch(sinter::edge const &x, Dims const &dims)
    {
        const sinter::dims size = detail::from(dims);
        const sinter::edge shape = net_.add_shape(x).output(0);
        const sinter::dims zero{ 0 }, one{ 1 };
        const sinter::edge batch = net_.add_slice(shape, zero, one.data(), one.data()).output(0);
        sinter::tensor rest(SINTER_DTYPE_I64, { static_cast<int64_t>(size.size()) });
        std::memcpy(rest.data(), size.data(), rest.size_bytes());
        const std::vector<sinter::edge> parts{ batch, net_.add_constant(rest, 0).output(0) };
        return net_.add_concatenation(parts, 0).output(0);
    }
    /* Constants among tensors with an implicit batch are the same for each item. */
    std::vector<sinter::edge> of_one_batch(std::vector<sinter::edge> all)
    {
        const auto has_batch = [](sinter::edge const &e) { return e.get() && e.shape().dim[0] != 1; };
        const auto whole = std::find_if(all.begin(), all.end(), has_batch);
        if (!hidden_ || whole == all.end()) return all;
        for (sinter::edge &e : all) {
            if (!e.get() || has_batch(e)) continue;
            const sinter_network_shape s = e.shape();
            const Dims rest = detail::hide_batch(detail::to_dims(s.dim, s.rank), hidden_);
            sinter_network_tensor *const in[] = { e.get(), sizes_behind_batch(*whole, rest).get() };
            e = sinter::layer(sinter::call(sinter_add_op, net_.get(), "", "Expand", int64_t(0), in, 2u, 1u));
        }
        return all;
    }
    /* Recurrent layers have many weights: what these become is made anew before a build alone. */
    void make_later(IRNNv2Layer *layer) { stale_.insert(layer); }
    inline void make_stale();
    bool marks_unfused() const { return marks_unfused_; }
    /* The tensors that no kernel of an engine of this network fuses away, without debug tensors. */
    std::vector<sinter_network_tensor *> unfused(sinter::engine const &engine)
    {
        uint32_t count = 0;
        sinter::call(sinter_network_unfused, net_.get(), engine.get(), nullptr, 0u, &count);
        std::vector<sinter_network_tensor *> found(count);
        sinter::call(sinter_network_unfused, net_.get(), engine.get(), found.data(), count, &count);
        for (ITensor const *t : debug_)
            found.erase(std::remove(found.begin(), found.end(), edge(*t).get()), found.end());
        return found;
    }
    /* f(), with the debug tensors, the unfused ones, what is said of profiles and the mark of an implicit batch as
     * outputs, whose names say what they are. */
    template <class F>
    sinter::buffer with_marked_outputs(std::vector<std::string> said,
                                       std::vector<sinter_network_tensor *> const &unfused, F f)
    {
        struct outputs {
            sinter_network *network;
            std::vector<sinter_layer *> made;
            ~outputs()
            {
                for (sinter_layer *layer : made) {
                    (void)sinter_network_unmark_output(network, sinter_layer_output(layer, 0), nullptr);
                    (void)sinter_network_remove_layer(network, layer, nullptr);
                }
            }
        } added{ net_.get(), {} };
        const auto keep = [&](sinter::edge const &t, char const *mark) {
            const sinter::layer copy = net_.add_identity(t);
            added.made.push_back(copy.get());
            sinter::edge(copy.output(0)).set_name(std::string(mark) + sinter_network_tensor_name(t.get()));
            net_.mark_output(copy.output(0));
        };
        for (ITensor const *t : debug_) keep(edge(*t), detail::DEBUG_MARK);
        for (sinter_network_tensor *t : unfused) keep(sinter::edge(t), detail::UNFUSED_MARK);
        if (hidden_) said.push_back(detail::IMPLICIT_BATCH);
        for (std::string const &text : said) {
            const sinter::layer mark = net_.add_constant(sinter::tensor(SINTER_DTYPE_I64, { 1 }), 0);
            added.made.push_back(mark.get());
            sinter::edge(mark.output(0)).set_name(text);
            net_.mark_output(mark.output(0));
        }
        return f();
    }
    ILoop *wrap(sinter_loop *c) { return wrap(loops_, c); }
    IIfConditional *wrap(sinter_conditional *c) { return wrap(conditionals_, c); }
    ITensor *wrap(sinter_network_tensor *c)
    {
        if (!c) return nullptr;
        auto &made = tensors_[c];
        const bool is_strong = getFlag(NetworkDefinitionCreationFlag::kSTRONGLY_TYPED);
        if (!made) made = std::make_unique<ITensor>(this, c, logger_, hidden_, is_strong);
        return made.get();
    }
    ILayer *wrap(sinter_layer *c);
    /* The object of a new layer; nullptr after a failure. */
    template <class Class, class F> Class *add(F f) noexcept
    {
        return guard(static_cast<Class *>(nullptr), [&] {
            given_.clear();
            const sinter::layer made = f();
            for (void const *data : given_) given_to_[data] = made.get();
            auto object = std::make_unique<Class>(this, made.get(), logger_);
            Class *const p = object.get();
            layers_[made.get()] = std::move(object);
            return p;
        });
    }
    std::map<sinter_network_tensor *, std::unique_ptr<ITensor>> const &tensors() const { return tensors_; }
    std::map<sinter_layer *, std::unique_ptr<ILayer>> const &layers() const { return layers_; }

  private:
    std::set<IRNNv2Layer *> stale_;
    template <class Object, class C> Object *wrap(std::map<C *, std::unique_ptr<Object>> &all, C *c)
    {
        if (!c) return nullptr;
        auto &made = all[c];
        if (!made) made = std::make_unique<Object>(this, c, logger_);
        return made.get();
    }
    static sinter::edge edge(ITensor const &t) { return t.get(); }
    static std::vector<sinter::edge> edges(ITensor *const *t, int32_t count)
    {
        std::vector<sinter::edge> made;
        for (int32_t i = 0; i < count; i++) made.emplace_back(t[i] ? t[i]->get() : nullptr);
        return made;
    }
    /* If the first window of two axes gets [C, H, W], in a network that no flag gives a batch axis, the batch is
     * implicit, as before TensorRT 10. Layers before it may not be of a kind that has axes. */
    sinter::edge windowed(ITensor &x, int32_t axes)
    {
        const bool is_first = !has_window_;
        has_window_ = true;
        if (!is_first || hidden_ || flags_ >> int(NetworkDefinitionCreationFlag::kEXPLICIT_BATCH) & 1 ||
            x.getDimensions().nbDims != axes + 1)
            return edge(x);
        for (int32_t i = 0; i < getNbLayers(); i++) {
            sinter_layer *const layer = sinter_network_layer(net_.get(), static_cast<uint32_t>(i));
            const sinter_layer_kind kind = sinter_layer_get_kind(layer);
            if (kind != SINTER_LAYER_ACTIVATION && kind != SINTER_LAYER_UNARY && kind != SINTER_LAYER_SCALE)
                return edge(x);
        }
        hidden_ = 1;
        for (auto const &t : tensors_) t.second->hide_batch();
        return edge(x);
    }
    static bool is_same(sinter_weights const &a, Weights const &b)
    {
        const size_t bits = sinter_dtype_bits(a.dtype) * static_cast<size_t>(a.count);
        return a.dtype == detail::from(b.type) && !std::memcmp(a.data, b.values, (bits + 7) / 8);
    }
    sinter::weights weights(Weights const &w)
    {
        given_.push_back(w.values);
        return sinter::weights(detail::from(w.type), w.values, w.count);
    }
    sinter::tensor constant(Dims const &dims, Weights const &w)
    {
        given_.push_back(w.values);
        sinter::tensor made(detail::from(w.type), detail::from(dims));
        if (made.count() != w.count)
            throw sinter::error(SINTER_INVALID_ARG, "a constant of " + std::to_string(made.count()) +
                                                        " elements, weights of " + std::to_string(w.count));
        if (w.count) std::memcpy(made.data(), w.values, made.size_bytes());
        return made;
    }
    /* The last two sizes of a tensor that a fully connected layer reads. */
    sinter::dims plane(ITensor &x)
    {
        (void)windowed(x, 2);
        const sinter_network_shape s = edge(x).shape();
        if (s.rank < 4 || s.dim[s.rank - 2] < 1 || s.dim[s.rank - 1] < 1)
            throw sinter::error(SINTER_UNSUPPORTED,
                                "addFullyConnected takes tensors [..., C, H, W] of known H and W: addMatrixMultiply");
        return { s.dim[s.rank - 2], s.dim[s.rank - 1] };
    }
    static bool is_constant(ITensor const &t)
    {
        sinter_layer *const producer = sinter_network_tensor_producer(t.get());
        return producer && sinter_layer_get_kind(producer) == SINTER_LAYER_CONSTANT;
    }
    /* A constant without its batch, which is 1. */
    sinter::edge without_batch(ITensor const &t)
    {
        sinter::layer made = net_.add_shuffle(edge(t));
        made.set("reshape", detail::from(t.getDimensions()));
        return made;
    }
    void needs_batch_axis(char const *call) const
    {
        if (hidden_)
            throw sinter::error(SINTER_UNSUPPORTED, std::string(call) + " in a network with an implicit batch: make it "
                                                                        "with NetworkDefinitionCreationFlag::"
                                                                        "kEXPLICIT_BATCH");
    }
    template <class To, class From> static To to(From value) { return static_cast<To>(value); }
    template <class F> bool mark(F function, ITensor &t, uint32_t is_marked) noexcept
    {
        return attempt([&] { sinter::call(function, net_.get(), t.get(), is_marked); });
    }
    sinter::layer call_plugin(char const *name, char const *version, char const *space, ITensor *const *inputs,
                              int32_t count, int32_t outputs, std::string const &bytes)
    {
        bring_plugins();
        if (!::getPluginRegistry()->getCreator(name, version, space))
            throw sinter::error(SINTER_INVALID_ARG, std::string("plugin '") + name + "' version '" + version +
                                                        "' has no registered creator: REGISTER_TENSORRT_PLUGIN");
        const std::string kept = "S" + bytes; /* never empty: detail::adapter::make */
        const sinter_plugin_field field = { detail::SERIALIZED, SINTER_PLUGIN_BYTES, kept.size(), kept.data() };
        const std::vector<sinter::edge> in = edges(inputs, count);
        std::vector<sinter_network_tensor *> list;
        for (sinter::edge const &e : in) list.push_back(e.get());
        return sinter::call(sinter_add_plugin, net_.get(), name, version, space, list.data(),
                            static_cast<uint32_t>(count), static_cast<uint32_t>(outputs), &field, 1u);
    }
    /* A plugin that upstream ships is an operator of sinter, whose attributes are the fields. Weights are inputs. */
    sinter::layer call_shipped(detail::shipped_plugin const &plugin, ITensor *const *inputs, int32_t count)
    {
        const auto is_weights = [&](PluginField const &f) {
            for (detail::shipped_field const &known : plugin.kind().fields)
                if (!std::strcmp(known.name, f.name)) return known.count == 0;
            return false;
        };
        PluginFieldCollection const &all = plugin.values();
        std::vector<PluginField> const fields(all.fields, all.fields + all.nbFields);
        std::vector<sinter_network_tensor *> list;
        for (sinter::edge const &e : edges(inputs, count)) list.push_back(e.get());
        for (PluginField const &f : fields) {
            if (!is_weights(f)) continue;
            sinter::tensor w(SINTER_DTYPE_F32, { f.length });
            std::memcpy(w.data(), f.data, w.size_bytes());
            list.push_back(net_.add_constant(w, 0u).output(0).get());
        }
        sinter::layer made =
            sinter::call(sinter_add_op, net_.get(), "TRT", plugin.kind().name, int64_t(0), list.data(),
                         static_cast<uint32_t>(list.size()), static_cast<uint32_t>(plugin.kind().outputs));
        for (PluginField const &f : fields) {
            auto const *const ints = static_cast<int32_t const *>(f.data);
            if (is_weights(f)) continue;
            if (f.type == PluginFieldType::kFLOAT32) made.set(f.name, *static_cast<float const *>(f.data));
            else if (f.length == 1) made.set(f.name, *ints);
            else made.set(f.name, sinter::dims(ints, ints + f.length));
        }
        return made;
    }
    /* The inputs of a layer, or of ONNX's operator, whose values are sizes. */
    static std::vector<uint32_t> places_of_sizes(sinter_layer *layer, bool &ends)
    {
        char const *domain = "", *type = "";
        const sinter_layer_kind kind = sinter_layer_get_kind(layer);
        int64_t version = 0;
        if (kind == SINTER_LAYER_OP) (void)sinter_layer_operator(layer, &domain, &type, &version);
        const std::string word = type;
        ends = kind == SINTER_LAYER_SHAPE || kind == SINTER_LAYER_CONSTANT || word == "Shape" || word == "Size";
        switch (kind) {
        case SINTER_LAYER_SHUFFLE:
        case SINTER_LAYER_RESIZE:
        case SINTER_LAYER_LOOP_OUTPUT: return { 1 };
        case SINTER_LAYER_SLICE: return { 1, 2, 3 };
        case SINTER_LAYER_FILL:
        case SINTER_LAYER_TRIP_LIMIT: return { 0 };
        default: break;
        }
        if (word == "Reshape" || word == "Expand" || word == "Tile" || word == "Pad") return { 1 };
        if (word == "Resize") return { 3 };
        if (word == "Slice") return { 1, 2, 4 };
        if (word == "ConstantOfShape") return { 0 };
        if (word == "Range") return { 0, 1, 2 };
        return {};
    }
    std::set<sinter_network_tensor *> shape_tensors() const
    {
        std::set<sinter_network_tensor *> found;
        for (uint32_t i = sinter_network_layer_count(net_.get()); i--;) {
            sinter_layer *const layer = sinter_network_layer(net_.get(), i);
            bool ends, is_sized = false;
            std::vector<uint32_t> places = places_of_sizes(layer, ends);
            if (ends) continue;
            for (uint32_t k = 0; k < sinter_layer_output_count(layer); k++)
                is_sized |= found.count(sinter_layer_output(layer, k)) != 0;
            if (is_sized) {
                places.clear();
                for (uint32_t k = 0; k < sinter_layer_input_count(layer); k++) places.push_back(k);
            }
            for (const uint32_t k : places) {
                sinter_network_tensor *const in = sinter_layer_input(layer, k);
                if (!in) continue;
                const sinter_network_shape s = sinter::edge(in).shape();
                if (s.rank < 2 && (s.dtype == SINTER_DTYPE_I32 || s.dtype == SINTER_DTYPE_I64)) found.insert(in);
            }
        }
        return found;
    }
    IBuilder &builder_;
    NetworkDefinitionCreationFlags flags_;
    sinter::plugins plugins_;
    size_t libraries_ = 0;
    sinter::network net_;
    int32_t hidden_; /* 1: the batch is axis 0 of all tensors, and not shown */
    bool has_window_ = false;
    std::map<sinter_network_tensor *, std::unique_ptr<ITensor>> tensors_;
    std::map<sinter_layer *, std::unique_ptr<ILayer>> layers_;
    std::vector<void const *> given_;               /* weights of the layer that is being made */
    std::map<void const *, sinter_layer *> given_to_;
    std::set<std::string> marked_;
    std::vector<ITensor const *> debug_;
    bool marks_unfused_ = false;
    std::map<sinter_loop *, std::unique_ptr<ILoop>> loops_;
    std::map<sinter_conditional *, std::unique_ptr<IIfConditional>> conditionals_;
};

inline bool ITensor::isShapeTensor() const noexcept { return network_->is_shape_tensor(c_); }
inline int32_t ILayer::hidden() const noexcept { return network_->hidden(); }
inline void IResizeLayer::setOutputDimensions(Dims const &dims) noexcept
{
    if (!hidden()) return (void)put_dims("size", dims);
    (void)attempt([&] {
        const sinter::edge sizes = network()->sizes_behind_batch(getInput(0)->get(), dims);
        sinter::call(sinter_layer_set_input, get(), 1u, sizes.get());
    });
}

inline ITensor *ILayer::getInput(int32_t i) const noexcept
{
    return network_->wrap(sinter_layer_input(c_, static_cast<uint32_t>(i)));
}
inline ITensor *ILayer::getOutput(int32_t i) const noexcept
{
    return network_->wrap(sinter_layer_output(c_, static_cast<uint32_t>(i)));
}

inline ILoop *ILoopBoundaryLayer::getLoop() const noexcept
{
    return network()->wrap(sinter_layer_loop(get()));
}
inline IIfConditional *IIfConditionalBoundaryLayer::getConditional() const noexcept
{
    return network()->wrap(sinter_layer_conditional(get()));
}

/* Layers that the parser made become objects of their class when they are asked for. */
inline ILayer *INetworkDefinition::wrap(sinter_layer *c)
{
    if (!c) return nullptr;
    auto &made = layers_[c];
    if (made) return made.get();
    switch (static_cast<LayerType>(sinter_layer_get_kind(c))) {
/* clang-format off */
#define CLASS_OF(kind, Class) case LayerType::kind: made = std::make_unique<Class>(this, c, logger_); break;
    CLASS_OF(kCONVOLUTION, IConvolutionLayer) CLASS_OF(kDECONVOLUTION, IDeconvolutionLayer)
    CLASS_OF(kPOOLING, IPoolingLayer)
    CLASS_OF(kACTIVATION, IActivationLayer) CLASS_OF(kLRN, ILRNLayer) CLASS_OF(kSCALE, IScaleLayer)
    CLASS_OF(kTOPK, ITopKLayer)
    CLASS_OF(kSOFTMAX, ISoftMaxLayer) CLASS_OF(kCONCATENATION, IConcatenationLayer) CLASS_OF(kSELECT, ISelectLayer)
    CLASS_OF(kELEMENTWISE, IElementWiseLayer) CLASS_OF(kUNARY, IUnaryLayer) CLASS_OF(kPADDING, IPaddingLayer)
    CLASS_OF(kSHUFFLE, IShuffleLayer) CLASS_OF(kREDUCE, IReduceLayer) CLASS_OF(kGATHER, IGatherLayer)
    CLASS_OF(kMATRIX_MULTIPLY, IMatrixMultiplyLayer) CLASS_OF(kCONSTANT, IConstantLayer) CLASS_OF(kSLICE, ISliceLayer)
    CLASS_OF(kCAST, ICastLayer) CLASS_OF(kSHAPE, IShapeLayer) CLASS_OF(kRESIZE, IResizeLayer)
    CLASS_OF(kFILL, IFillLayer)
    CLASS_OF(kIDENTITY, IIdentityLayer) CLASS_OF(kPARAMETRIC_RELU, IParametricReLULayer) CLASS_OF(kEINSUM, IEinsumLayer)
    CLASS_OF(kQUANTIZE, IQuantizeLayer) CLASS_OF(kDEQUANTIZE, IDequantizeLayer) CLASS_OF(kSCATTER, IScatterLayer)
    CLASS_OF(kNORMALIZATION, INormalizationLayer) CLASS_OF(kONE_HOT, IOneHotLayer) CLASS_OF(kNON_ZERO, INonZeroLayer)
    CLASS_OF(kGRID_SAMPLE, IGridSampleLayer) CLASS_OF(kNMS, INMSLayer)
    CLASS_OF(kREVERSE_SEQUENCE, IReverseSequenceLayer)
    CLASS_OF(kASSERTION, IAssertionLayer) CLASS_OF(kRAGGED_SOFTMAX, IRaggedSoftMaxLayer)
    CLASS_OF(kDYNAMIC_QUANTIZE, IDynamicQuantizeLayer) CLASS_OF(kATTENTION_INPUT, IAttention)
    CLASS_OF(kROTARY_EMBEDDING, IRotaryEmbeddingLayer) CLASS_OF(kKV_CACHE_UPDATE, IKVCacheUpdateLayer)
    CLASS_OF(kMOE, IMoELayer) CLASS_OF(kTRIP_LIMIT, ITripLimitLayer) CLASS_OF(kRECURRENCE, IRecurrenceLayer)
    CLASS_OF(kITERATOR, IIteratorLayer) CLASS_OF(kLOOP_OUTPUT, ILoopOutputLayer)
    CLASS_OF(kCONDITION, IConditionLayer) CLASS_OF(kCONDITIONAL_INPUT, IIfConditionalInputLayer)
    CLASS_OF(kCONDITIONAL_OUTPUT, IIfConditionalOutputLayer)
    CLASS_OF(kSQUEEZE, ISqueezeLayer) CLASS_OF(kUNSQUEEZE, IUnsqueezeLayer) CLASS_OF(kCUMULATIVE, ICumulativeLayer)
#undef CLASS_OF
            /* clang-format on */
            default : made = std::make_unique<ILayer>(this, c, logger_);
        break;
    }
    return made.get();
}

inline ITripLimitLayer *ILoop::addTripLimit(ITensor &t, TripLimit limit) noexcept
{
    return network_->add<ITripLimitLayer>(
        [&] { return sinter::loop(c_).trip_limit(t.get(), static_cast<sinter_trip_limit>(limit)); });
}
inline IRecurrenceLayer *ILoop::addRecurrence(ITensor &initial) noexcept
{
    return network_->add<IRecurrenceLayer>([&] { return sinter::loop(c_).recurrence(initial.get()); });
}
inline IIteratorLayer *ILoop::addIterator(ITensor &t, int32_t axis, bool reverse) noexcept
{
    return network_->add<IIteratorLayer>([&] { return sinter::loop(c_).iterator(t.get(), axis, reverse); });
}
inline ILoopOutputLayer *ILoop::addLoopOutput(ITensor &t, LoopOutput output, int32_t axis) noexcept
{
    return network_->add<ILoopOutputLayer>(
        [&] { return sinter::loop(c_).output(t.get(), static_cast<sinter_loop_output>(output), axis); });
}
inline IConditionLayer *IIfConditional::setCondition(ITensor &t) noexcept
{
    return network_->add<IConditionLayer>([&] { return sinter::conditional(c_).condition(t.get()); });
}
inline IIfConditionalInputLayer *IIfConditional::addInput(ITensor &t) noexcept
{
    return network_->add<IIfConditionalInputLayer>([&] { return sinter::conditional(c_).input(t.get()); });
}
inline IIfConditionalOutputLayer *IIfConditional::addOutput(ITensor &a, ITensor &b) noexcept
{
    return network_->add<IIfConditionalOutputLayer>([&] { return sinter::conditional(c_).output(a.get(), b.get()); });
}

} // namespace nvinfer1

#include "NvInferBoundary.h"
#include "NvInferBuilder.h"
#include "NvInferRecurrent.h"

#endif
