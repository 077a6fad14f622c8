/* SPDX-License-Identifier: Apache-2.0 */
/* NvInferLayers.h - tensors and layers of a network: what INetworkDefinition (NvInfer.h) gives. Values of enums are
 * those of sinter/network.h, and parameters of layers go by its names (docs/network.md). */
#ifndef NV_INFER_LAYERS_H
#define NV_INFER_LAYERS_H

#include "NvInferRuntime.h"

#include <cmath>

namespace nvinfer1 {

/* clang-format off */
#define SINTER_TRT_VALUE(name, value, word) k##name = value,
#define SINTER_TRT_ONE(name, value, word) +1
#define SINTER_TRT_ENUM(Name, MAP)                         \
    enum class Name : int32_t { MAP(SINTER_TRT_VALUE) };   \
    template <> constexpr int32_t EnumMax<Name>() noexcept \
    {                                                      \
        return 0 MAP(SINTER_TRT_ONE);                      \
    }
SINTER_TRT_ENUM(ActivationType, SINTER_ACTIVATION_MAP)
SINTER_TRT_ENUM(PoolingType, SINTER_POOLING_MAP)
SINTER_TRT_ENUM(ElementWiseOperation, SINTER_ELEMENTWISE_MAP)
SINTER_TRT_ENUM(UnaryOperation, SINTER_UNARY_MAP)
/* kNONE: of collective operations that reduce nothing. */
#define SINTER_TRT_REDUCTION_MAP(X) SINTER_REDUCTION_MAP(X) X(NONE, 5, "none")
SINTER_TRT_ENUM(ReduceOperation, SINTER_TRT_REDUCTION_MAP)
#undef SINTER_TRT_REDUCTION_MAP
SINTER_TRT_ENUM(ScaleMode, SINTER_SCALE_MODE_MAP)
SINTER_TRT_ENUM(MatrixOperation, SINTER_MATRIX_MAP)
SINTER_TRT_ENUM(TopKOperation, SINTER_TOPK_MAP)
SINTER_TRT_ENUM(GatherMode, SINTER_GATHER_MAP)
SINTER_TRT_ENUM(ScatterMode, SINTER_SCATTER_MAP)
enum class SampleMode : int32_t { SINTER_SAMPLE_MAP(SINTER_TRT_VALUE) kDEFAULT = 0 }; /* kDEFAULT: of TensorRT 8 */
template <> constexpr int32_t EnumMax<SampleMode>() noexcept { return 0 SINTER_SAMPLE_MAP(SINTER_TRT_ONE); }
SINTER_TRT_ENUM(InterpolationMode, SINTER_INTERPOLATION_MAP)
SINTER_TRT_ENUM(ResizeCoordinateTransformation, SINTER_COORDINATE_MAP)
SINTER_TRT_ENUM(ResizeSelector, SINTER_SELECTOR_MAP)
SINTER_TRT_ENUM(ResizeRoundMode, SINTER_ROUNDING_MAP)
SINTER_TRT_ENUM(PaddingMode, SINTER_PADDING_MODE_MAP)
SINTER_TRT_ENUM(FillOperation, SINTER_FILL_MAP)
SINTER_TRT_ENUM(TripLimit, SINTER_TRIP_LIMIT_MAP)
SINTER_TRT_ENUM(LoopOutput, SINTER_LOOP_OUTPUT_MAP)
SINTER_TRT_ENUM(BoundingBoxFormat, SINTER_BOX_MAP)
SINTER_TRT_ENUM(CumulativeOperation, SINTER_CUMULATIVE_MAP)
SINTER_TRT_ENUM(AttentionNormalizationOp, SINTER_NORM_OP_MAP)
SINTER_TRT_ENUM(CausalMaskKind, SINTER_CAUSAL_MAP)
SINTER_TRT_ENUM(KVCacheMode, SINTER_CACHE_MODE_MAP)
SINTER_TRT_ENUM(MoEActType, SINTER_MOE_MAP)
SINTER_TRT_ENUM(AttentionIOForm, SINTER_FORM_MAP)
enum class LayerType : int32_t {
    kPLUGIN = 10, /* of plugins before version 2 */
#define kPLUGIN kPLUGIN_V3
    SINTER_LAYER_KIND_MAP(SINTER_TRT_VALUE)
#undef kPLUGIN
    kPLUGIN_V2 = 21, kATTENTION_INPUT = 51,
    kATTENTION_OUTPUT = 52, kKVCACHE_UPDATE = 54, kRNN_V2 = 140, /* of TensorRT 8, whose numbers are others' now */
    kFULLY_CONNECTED = 141
};
#undef SINTER_TRT_ENUM
#undef SINTER_TRT_ONE
#undef SINTER_TRT_VALUE
using ResizeMode = InterpolationMode;
using SliceMode = SampleMode;
enum class CollectiveOperation : int32_t {
    kALL_REDUCE = 0, kALL_GATHER = 1, kBROADCAST = 2, kREDUCE = 3, kREDUCE_SCATTER = 4, kALL_TO_ALL = 5, kGATHER = 6,
    kSCATTER = 7
};
template <> constexpr int32_t EnumMax<CollectiveOperation>() noexcept { return 8; }
/* clang-format on */

class INetworkDefinition;
class ILayer;
class ILoop;
class IIfConditional;

/* A tensor of a network. */
class ITensor : public detail::reporter {
  public:
    /* hidden: 1 where the network has an implicit batch, which is axis 0 of the tensor. */
    ITensor(INetworkDefinition *network, sinter_network_tensor *c, ILogger *logger, int32_t hidden,
            bool is_strongly_typed)
        : reporter(logger), network_(network), c_(c), hidden_(hidden), is_strongly_typed_(is_strongly_typed)
    {
    }
    void setName(char const *name) noexcept
    {
        (void)attempt([&] { sinter::edge(c_).set_name(name); });
    }
    char const *getName() const noexcept { return sinter_network_tensor_name(c_); }
    void setDimensions(Dims const &dims) noexcept
    {
        (void)attempt([&] {
            const sinter::dims d = detail::from(detail::show_batch(dims, hidden_, -1));
            sinter::call(sinter_network_tensor_set_shape, c_, static_cast<uint32_t>(d.size()), d.data());
        });
    }
    Dims getDimensions() const noexcept
    {
        return guard(ICudaEngine::none(), [&] {
            const sinter_network_shape s = sinter::edge(c_).shape();
            return detail::hide_batch(detail::to_dims(s.dim, s.rank), hidden_);
        });
    }
    /* Of an input its type; of another tensor the type behind its layer. In a network that is not strongly typed, kINT8
     * of a tensor of floats says how the program's memory has it: quantised with the scale of its dynamic range. */
    void setType(DataType type) noexcept
    {
        (void)attempt([&] {
            const sinter_dtype own = sinter::edge(c_).shape().dtype;
            is_quantized_ = type == DataType::kINT8 && !is_strongly_typed_ &&
                            (own == SINTER_DTYPE_F32 || own == SINTER_DTYPE_F16 || own == SINTER_DTYPE_BF16);
            if (is_quantized_) return;
            if (isNetworkInput()) return sinter::call(sinter_network_tensor_set_type, c_, detail::from(type));
            sinter_layer *producer = sinter_network_tensor_producer(c_);
            for (uint32_t i = 0; i < sinter_layer_output_count(producer); i++)
                if (sinter_layer_output(producer, i) == c_)
                    sinter::call(sinter_layer_set_output_type, producer, i, detail::from(type));
        });
    }
    DataType getType() const noexcept
    {
        if (is_quantized_) return DataType::kINT8;
        return guard(DataType::kFLOAT, [&] { return detail::from(sinter::edge(c_).shape().dtype); });
    }
    bool isNetworkInput() const noexcept { return sinter_network_tensor_is_input(c_); }
    bool isNetworkOutput() const noexcept { return sinter_network_tensor_is_output(c_); }
    /* Are sizes computed from its values? It has integers, and no axis or one. */
    inline bool isShapeTensor() const noexcept;
    bool isExecutionTensor() const noexcept { return true; }
    void setDimensionName(int32_t axis, char const *name) noexcept
    {
        (void)attempt([&] {
            sinter::call(sinter_network_tensor_set_dim_name, c_, static_cast<uint32_t>(axis + hidden_), name);
        });
    }
    char const *getDimensionName(int32_t axis) const noexcept
    {
        return guard(static_cast<char const *>(nullptr), [&]() -> char const * {
            const sinter_network_shape s = sinter::edge(c_).shape();
            const auto at = static_cast<uint32_t>(axis + hidden_);
            return axis >= 0 && at < s.rank ? s.dim_name[at] : nullptr;
        });
    }
    /* The range of the values, for builds with BuilderFlag::kINT8. It is symmetric: the larger magnitude counts. */
    bool setDynamicRange(float low, float high) noexcept
    {
        if (!(low <= high)) return fail(SINTER_INVALID_ARG, "the dynamic range is not low <= high"), false;
        low_ = low;
        high_ = high;
        has_range_ = true;
        return true;
    }
    bool dynamicRangeIsSet() const noexcept { return has_range_; }
    void resetDynamicRange() noexcept { has_range_ = false; }
    float getDynamicRangeMin() const noexcept { return low_; }
    float getDynamicRangeMax() const noexcept { return high_; }
    float getDynamicRange() const noexcept { return std::max(std::fabs(low_), std::fabs(high_)); }
    void setBroadcastAcrossBatch(bool) noexcept {}
    bool getBroadcastAcrossBatch() const noexcept { return false; }
    void setLocation(TensorLocation) noexcept {}
    TensorLocation getLocation() const noexcept { return TensorLocation::kDEVICE; }
    /* Of inputs and outputs. A build takes kLINEAR where it is among them, else the first one that it has. */
    void setAllowedFormats(TensorFormats formats) noexcept { formats_ = formats; }
    TensorFormats getAllowedFormats() const noexcept { return formats_; }
    sinter_network_tensor *get() const { return c_; }
    /* The network turned out to have an implicit batch. */
    void hide_batch() noexcept
    {
        const Dims shown = getDimensions();
        hidden_ = 1;
        if (!isNetworkInput()) return;
        setDimensions(shown);
        setDimensionName(0 - hidden_, "batch");
    }
    /* Are the floats of this tensor 8-bit numbers in the program's memory? */
    bool is_quantized() const { return is_quantized_; }

  private:
    INetworkDefinition *network_;
    sinter_network_tensor *c_;
    int32_t hidden_;
    bool is_strongly_typed_, is_quantized_ = false;
    TensorFormats formats_ = 1u << static_cast<int>(TensorFormat::kLINEAR);
    float low_ = 0, high_ = 0;
    bool has_range_ = false;
};

/* A layer. Its parameters are those of docs/network.md. */
class ILayer : public detail::reporter {
  public:
    ILayer(INetworkDefinition *network, sinter_layer *c, ILogger *logger) : reporter(logger), network_(network), c_(c)
    {
    }
    virtual LayerType getType() const noexcept { return static_cast<LayerType>(sinter_layer_nearest_kind(c_)); }
    void setName(char const *name) noexcept
    {
        (void)attempt([&] { sinter::call(sinter_layer_set_name, c_, name); });
    }
    char const *getName() const noexcept { return sinter_layer_name(c_); }
    virtual int32_t getNbInputs() const noexcept { return static_cast<int32_t>(sinter_layer_input_count(c_)); }
    virtual int32_t getNbOutputs() const noexcept { return static_cast<int32_t>(sinter_layer_output_count(c_)); }
    virtual inline ITensor *getInput(int32_t index) const noexcept;
    virtual inline ITensor *getOutput(int32_t index) const noexcept;
    void setInput(int32_t index, ITensor &tensor) noexcept
    {
        (void)attempt([&] { sinter::call(sinter_layer_set_input, c_, static_cast<uint32_t>(index), tensor.get()); });
    }
    /* kFLOAT, kHALF and kBF16, and kINT8 of convolutions and matrix products, are what the layer is computed in, as far
     * as the flags of the configuration say. kINT8 of other layers is kept, and says nothing: 8 bits come of a
     * calibrator, of dynamic ranges, or of Q/DQ layers. */
    void setPrecision(DataType type) noexcept
    {
        const sinter_layer_kind kind = sinter_layer_get_kind(c_);
        const bool is_product = kind == SINTER_LAYER_CONVOLUTION || kind == SINTER_LAYER_MATRIX_MULTIPLY;
        if ((type != DataType::kINT8 || is_product) &&
            !attempt([&] { sinter::call(sinter_layer_set_precision, c_, detail::from(type)); }))
            return;
        precision_ = type;
        has_precision_ = true;
    }
    DataType getPrecision() const noexcept { return precision_; }
    bool precisionIsSet() const noexcept { return has_precision_; }
    void resetPrecision() noexcept
    {
        has_precision_ = false;
        (void)attempt([&] { sinter::call(sinter_layer_set_precision, c_, SINTER_DTYPE_NONE); });
    }
    /* kINT8 of a layer that computes with floats is kept, as a precision is. */
    void setOutputType(int32_t index, DataType type) noexcept
    {
        if (type == DataType::kINT8 && getType() != LayerType::kQUANTIZE && getType() != LayerType::kCAST) {
            kept_types_[index] = type;
            return;
        }
        (void)attempt(
            [&] { sinter::call(sinter_layer_set_output_type, c_, static_cast<uint32_t>(index), detail::from(type)); });
    }
    DataType getOutputType(int32_t index) const noexcept
    {
        const auto kept = kept_types_.find(index);
        if (kept != kept_types_.end()) return kept->second;
        return guard(DataType::kFLOAT, [&] {
            const sinter_dtype set = sinter_layer_output_type(c_, static_cast<uint32_t>(index));
            return detail::from(
                set != SINTER_DTYPE_NONE ? set : sinter::layer(c_).output(static_cast<uint32_t>(index)).shape().dtype);
        });
    }
    bool outputTypeIsSet(int32_t index) const noexcept
    {
        return kept_types_.count(index) ||
               sinter_layer_output_type(c_, static_cast<uint32_t>(index)) != SINTER_DTYPE_NONE;
    }
    void resetOutputType(int32_t index) noexcept
    {
        kept_types_.erase(index);
        (void)attempt(
            [&] { sinter::call(sinter_layer_set_output_type, c_, static_cast<uint32_t>(index), SINTER_DTYPE_NONE); });
    }
    void setMetadata(char const *text) noexcept
    {
        (void)attempt([&] { sinter::call(sinter_layer_set_metadata, c_, text); });
    }
    char const *getMetadata() const noexcept { return sinter_layer_metadata(c_); }
    /* An engine runs on one device. */
    bool setNbRanks(int32_t ranks) noexcept
    {
        if (ranks != 1) fail(SINTER_UNSUPPORTED, "a layer has 1 rank, not " + std::to_string(ranks));
        return ranks == 1;
    }
    int32_t getNbRanks() const noexcept { return 1; }
    sinter_layer *get() const { return c_; }

  protected:
    /* An input that a layer can do without: nullptr is none. */
    bool put_input(int32_t index, ITensor *tensor) noexcept
    {
        return attempt([&] {
            sinter::call(sinter_layer_set_input, c_, static_cast<uint32_t>(index), tensor ? tensor->get() : nullptr);
        });
    }
    INetworkDefinition *network() const { return network_; }
    /* 1 where axis 0 of each tensor is the implicit batch. */
    inline int32_t hidden() const noexcept;
    ITensor *get_input(int32_t index) const noexcept { return index < getNbInputs() ? getInput(index) : nullptr; }
    template <class T> bool put(char const *name, T const &value) const noexcept
    {
        return attempt([&] { sinter::layer(c_).set(name, value); });
    }
    int64_t integer(char const *name) const noexcept
    {
        return guard(int64_t(0), [&] { return sinter::layer(c_).get_int(name); });
    }
    double real(char const *name) const noexcept
    {
        return guard(0.0, [&] { return sinter::layer(c_).get_real(name); });
    }
    char const *text(char const *name) const noexcept
    {
        return guard("", [&] {
            const char *value = nullptr;
            sinter::call(sinter_layer_get_text, c_, name, &value);
            return value;
        });
    }
    bool put_dims(char const *name, Dims const &dims) const noexcept
    {
        return attempt([&] { sinter::layer(c_).set(name, detail::from(dims)); });
    }
    Dims get_dims(char const *name) const noexcept
    {
        return guard(ICudaEngine::none(), [&] { return detail::to_dims(sinter::layer(c_).get_ints(name)); });
    }
    /* A list for the spatial axes, whose default is the same number for each. */
    Dims spatial(char const *name, char const *window, int64_t initial) const noexcept
    {
        Dims made = get_dims(name);
        if (made.nbDims != 0) return made;
        made.nbDims = get_dims(window).nbDims;
        for (int32_t i = 0; i < made.nbDims; i++) made.d[i] = static_cast<dim_size>(initial);
        return made;
    }
    void put_weights(char const *name, Weights const &w) const noexcept
    {
        (void)attempt([&] { sinter::layer(c_).set(name, sinter::weights(detail::from(w.type), w.values, w.count)); });
    }
    Weights get_weights(char const *name) const noexcept
    {
        return guard(Weights(), [&] {
            sinter_weights w;
            sinter::call(sinter_layer_get_weights, c_, name, &w);
            Weights made;
            if (w.count == 0) return made;
            made.type = detail::from(w.dtype);
            made.values = w.data;
            made.count = w.count;
            return made;
        });
    }

  private:
    INetworkDefinition *network_;
    sinter_layer *c_;
    DataType precision_ = DataType::kFLOAT;
    bool has_precision_ = false;
    std::map<int32_t, DataType> kept_types_;
};

/* clang-format off */
/* Rows of the classes below: setNAME and getNAME of one parameter. */
#define INTEGER(Type, Name, param)                                                                   \
    void set##Name(Type value) noexcept { (void)put(param, static_cast<int64_t>(value)); }           \
    Type get##Name() const noexcept { return static_cast<Type>(integer(param)); }
/* The same, where upstream says whether the value was taken. */
#define CHOICE(Type, Name, param)                                                                    \
    bool set##Name(Type value) noexcept { return put(param, static_cast<int64_t>(value)); }          \
    Type get##Name() const noexcept { return static_cast<Type>(integer(param)); }
#define OPTIONAL_INPUT(Name, index)                                                                  \
    bool     set##Name(ITensor *tensor) noexcept { return put_input(index, tensor); }                \
    ITensor *get##Name() const noexcept { return get_input(index); }
/* An axis, and a mask of axes: from behind an implicit batch. */
#define AXIS(Name, param)                                                                            \
    void set##Name(int32_t axis) noexcept { (void)put(param, int64_t(axis < 0 ? axis : axis + hidden())); } \
    int32_t get##Name() const noexcept                                                               \
    {                                                                                                \
        const auto axis = static_cast<int32_t>(integer(param));                                      \
        return axis < hidden() ? axis : axis - hidden();                                             \
    }
#define MASK(Name, param)                                                                            \
    void set##Name(uint32_t axes) noexcept { (void)put(param, int64_t(axes) << hidden()); }          \
    uint32_t get##Name() const noexcept { return static_cast<uint32_t>(integer(param) >> hidden()); }
#define REAL(Name, param)                                                                            \
    void  set##Name(float value) noexcept { (void)put(param, static_cast<double>(value)); }          \
    float get##Name() const noexcept { return static_cast<float>(real(param)); }
#define SIZES(Name, param)                                                                           \
    void set##Name(Dims const &value) noexcept { (void)put_dims(param, value); }                     \
    Dims get##Name() const noexcept { return get_dims(param); }
#define SPATIAL(Name, param, window, initial)                                                        \
    void set##Name(Dims const &value) noexcept { (void)put_dims(param, value); }                     \
    Dims get##Name() const noexcept { return spatial(param, window, initial); }
#define WEIGHTS(Name, param)                                                                         \
    void    set##Name(Weights value) noexcept { put_weights(param, value); }                         \
    Weights get##Name() const noexcept { return get_weights(param); }
#define TYPE(Name, param)                                                                            \
    void     set##Name(DataType value) noexcept                                                      \
    {                                                                                                \
        (void)attempt([&] { sinter::layer(get()).set(param, detail::from(value)); });                \
    }                                                                                                \
    DataType get##Name() const noexcept                                                              \
    {                                                                                                \
        return guard(DataType::kFLOAT, [&] { return detail::from(static_cast<sinter_dtype>(integer(param))); }); \
    }
/* The same for what upstream says whether it was taken. */
#define INDICES_TYPE                                                                                 \
    bool setIndicesType(DataType value) noexcept                                                     \
    {                                                                                                \
        return attempt([&] { sinter::layer(get()).set("indices_type", detail::from(value)); });      \
    }                                                                                                \
    DataType getIndicesType() const noexcept                                                         \
    {                                                                                                \
        return guard(DataType::kINT32,                                                               \
                     [&] { return detail::from(static_cast<sinter_dtype>(integer("indices_type"))); }); \
    }
#define BLOCK_SHAPE                                                                                  \
    bool setBlockShape(Dims const &value) noexcept { return put_dims("block_shape", value); }        \
    Dims getBlockShape() const noexcept { return get_dims("block_shape"); }
#define TEXT(Result, Name, param)                                                                    \
    Result set##Name(char const *text) noexcept { return static_cast<Result>(put(param, text)); }    \
    char const *get##Name() const noexcept { return text(param); }
#define PADDING(window)                                                                              \
    SPATIAL(PrePadding, "pre_padding", window, 0)                                                    \
    SPATIAL(PostPadding, "post_padding", window, 0)                                                  \
    INTEGER(PaddingMode, PaddingMode, "padding_mode")                                                \
    void setPaddingNd(Dims const &value) noexcept                                                    \
    {                                                                                                \
        setPrePadding(value);                                                                        \
        setPostPadding(value);                                                                       \
    }                                                                                                \
    Dims getPaddingNd() const noexcept { return getPrePadding(); }
#define DERIVED_CLASS(Name, Base, ...)                                                              \
    class Name : public Base {                                                                       \
    public:                                                                                          \
        using Base::Base;                                                                            \
        __VA_ARGS__                                                                                  \
    };
#define LAYER_CLASS(Name, ...) DERIVED_CLASS(Name, ILayer, __VA_ARGS__)
/* Names of TensorRT 8 and before for the same, of two axes. */
#define OLD_NAME(Name, Now)                                                                          \
    void   set##Name(DimsHW value) noexcept { set##Now(value); }                                     \
    DimsHW get##Name() const noexcept                                                                \
    {                                                                                                \
        const Dims now = get##Now();                                                                 \
        return now.nbDims == 2 ? DimsHW(now.d[0], now.d[1]) : DimsHW();                              \
    }
#define CONVOLVES                                                                                    \
    OLD_NAME(KernelSize, KernelSizeNd) OLD_NAME(Stride, StrideNd) OLD_NAME(Padding, PaddingNd)       \
    OLD_NAME(Dilation, DilationNd)                                                                   \
    INTEGER(int64_t, NbOutputMaps, "maps") INTEGER(int64_t, NbGroups, "groups")                      \
    SIZES(KernelSizeNd, "kernel_size") SPATIAL(StrideNd, "stride", "kernel_size", 1)                 \
    SPATIAL(DilationNd, "dilation", "kernel_size", 1) PADDING("kernel_size")                         \
    WEIGHTS(KernelWeights, "kernel") WEIGHTS(BiasWeights, "bias")

LAYER_CLASS(IConvolutionLayer, CONVOLVES)
LAYER_CLASS(IDeconvolutionLayer, CONVOLVES)
LAYER_CLASS(IActivationLayer, INTEGER(ActivationType, ActivationType, "type") REAL(Alpha, "alpha") REAL(Beta, "beta"))
LAYER_CLASS(IPoolingLayer, INTEGER(PoolingType, PoolingType, "type") SIZES(WindowSizeNd, "window_size")
    SPATIAL(StrideNd, "stride", "window_size", 1) PADDING("window_size")
    OLD_NAME(WindowSize, WindowSizeNd) OLD_NAME(Stride, StrideNd) OLD_NAME(Padding, PaddingNd)
    REAL(BlendFactor, "blend_factor")
    INTEGER(bool, AverageCountExcludesPadding, "average_count_excludes_padding"))
LAYER_CLASS(ILRNLayer, INTEGER(int64_t, WindowSize, "window_size") REAL(Alpha, "alpha") REAL(Beta, "beta") REAL(K, "k"))
LAYER_CLASS(IScaleLayer, INTEGER(ScaleMode, Mode, "mode") AXIS(ChannelAxis, "channel_axis")
    WEIGHTS(Shift, "shift") WEIGHTS(Scale, "scale") WEIGHTS(Power, "power"))
LAYER_CLASS(ISoftMaxLayer, MASK(Axes, "axes"))
LAYER_CLASS(IRaggedSoftMaxLayer, )
LAYER_CLASS(IConcatenationLayer, AXIS(Axis, "axis"))
LAYER_CLASS(IElementWiseLayer, INTEGER(ElementWiseOperation, Operation, "op"))
LAYER_CLASS(IUnaryLayer, INTEGER(UnaryOperation, Operation, "op"))
LAYER_CLASS(IPaddingLayer, SIZES(PrePaddingNd, "pre_padding") SIZES(PostPaddingNd, "post_padding")
    OLD_NAME(PrePadding, PrePaddingNd) OLD_NAME(PostPadding, PostPaddingNd))
/* A convolution whose kernel is as large as its input. */
LAYER_CLASS(IFullyConnectedLayer, LayerType getType() const noexcept override { return LayerType::kFULLY_CONNECTED; }
    INTEGER(int64_t, NbOutputChannels, "maps") WEIGHTS(KernelWeights, "kernel")
    WEIGHTS(BiasWeights, "bias"))
LAYER_CLASS(IReduceLayer, INTEGER(ReduceOperation, Operation, "op") MASK(ReduceAxes, "axes")
    INTEGER(bool, KeepDimensions, "keep_dims"))
LAYER_CLASS(ITopKLayer, INTEGER(TopKOperation, Operation, "op") INTEGER(int32_t, K, "k")
    MASK(ReduceAxes, "axes") INDICES_TYPE)
LAYER_CLASS(IGatherLayer, INTEGER(GatherMode, Mode, "mode") INTEGER(int32_t, GatherAxis, "axis")
    INTEGER(int32_t, NbElementWiseDims, "num_elementwise_dims"))
LAYER_CLASS(IMatrixMultiplyLayer,
    void setOperation(int32_t index, MatrixOperation op) noexcept { (void)put(index ? "op1" : "op0", op); }
    MatrixOperation getOperation(int32_t index) const noexcept
    {
        return static_cast<MatrixOperation>(integer(index ? "op1" : "op0"));
    }
    void setTranspose(int32_t index, bool is_transposed) noexcept
    {
        setOperation(index, is_transposed ? MatrixOperation::kTRANSPOSE : MatrixOperation::kNONE);
    }
    bool getTranspose(int32_t index) const noexcept { return getOperation(index) == MatrixOperation::kTRANSPOSE; })
LAYER_CLASS(IConstantLayer, WEIGHTS(Weights, "weights")
    void setDimensions(Dims const &dims) noexcept
    {
        (void)attempt([&] { (void)put_dims("shape", detail::show_batch(dims, hidden(), 1)); });
    }
    Dims getDimensions() const noexcept { return detail::hide_batch(get_dims("shape"), hidden()); })
LAYER_CLASS(ISliceLayer, SIZES(Start, "start") SIZES(Size, "size") SIZES(Stride, "stride") SIZES(Axes, "axes")
    INTEGER(SampleMode, Mode, "mode"))
LAYER_CLASS(IShapeLayer, )
LAYER_CLASS(IIdentityLayer, )
LAYER_CLASS(ICastLayer, TYPE(ToType, "to_type"))
LAYER_CLASS(IParametricReLULayer, )
LAYER_CLASS(ISelectLayer, )
LAYER_CLASS(ISqueezeLayer, )
LAYER_CLASS(IUnsqueezeLayer, )
LAYER_CLASS(IResizeLayer, INTEGER(InterpolationMode, ResizeMode, "mode")
    INTEGER(ResizeCoordinateTransformation, CoordinateTransformation, "coordinate_transformation")
    INTEGER(ResizeSelector, SelectorForSinglePixel, "selector_for_single_pixel")
    INTEGER(ResizeRoundMode, NearestRounding, "nearest_rounding") REAL(CubicCoeff, "cubic_coeff")
    INTEGER(bool, ExcludeOutside, "exclude_outside")
    void setScales(float const *scales, int32_t count) noexcept
    {
        std::vector<double> all(static_cast<size_t>(hidden()), 1.0);
        all.insert(all.end(), scales, scales + count);
        (void)put("scales", all);
    }
    inline void setOutputDimensions(Dims const &dims) noexcept;
    Dims getOutputDimensions() const noexcept { return hidden() ? getOutput(0)->getDimensions() : get_dims("size"); }
    /* How many scales there are; they are written where there is room for all. */
    int32_t getScales(int32_t room, float *scales) const noexcept
    {
        return guard(-1, [&] {
            uint32_t count = 0;
            double all[Dims::MAX_DIMS];
            sinter::call(sinter_layer_get_reals, get(), "scales", all, uint32_t(Dims::MAX_DIMS), &count);
            const int32_t given = static_cast<int32_t>(count) - hidden();
            for (int32_t i = 0; scales && given <= room && i < given; i++)
                scales[i] = static_cast<float>(all[i + hidden()]);
            return given > 0 ? given : -1;
        });
    }
    void setAlignCorners(bool is_aligned) noexcept
    {
        setCoordinateTransformation(is_aligned ? ResizeCoordinateTransformation::kALIGN_CORNERS
                                               : ResizeCoordinateTransformation::kASYMMETRIC);
    }
    bool getAlignCorners() const noexcept
    {
        return getCoordinateTransformation() == ResizeCoordinateTransformation::kALIGN_CORNERS;
    })
LAYER_CLASS(IFillLayer, SIZES(Dimensions, "dim") INTEGER(FillOperation, Operation, "op") TYPE(ToType, "to_type")
    void setAlpha(double value) noexcept { (void)put("alpha", value); }
    double getAlpha() const noexcept { return real("alpha"); }
    void setBeta(double value) noexcept { (void)put("beta", value); }
    double getBeta() const noexcept { return real("beta"); }
    void setAlphaInt64(int64_t value) noexcept { setAlpha(static_cast<double>(value)); }
    int64_t getAlphaInt64() const noexcept { return static_cast<int64_t>(getAlpha()); }
    void setBetaInt64(int64_t value) noexcept { setBeta(static_cast<double>(value)); }
    int64_t getBetaInt64() const noexcept { return static_cast<int64_t>(getBeta()); }
    bool isAlphaBetaInt64() const noexcept { return false; })
LAYER_CLASS(IAssertionLayer, TEXT(void, Message, "message"))
LAYER_CLASS(IQuantizeLayer, INTEGER(int32_t, Axis, "axis") BLOCK_SHAPE TYPE(ToType, "to_type"))
LAYER_CLASS(IDequantizeLayer, INTEGER(int32_t, Axis, "axis") BLOCK_SHAPE TYPE(ToType, "to_type"))
LAYER_CLASS(IDynamicQuantizeLayer, INTEGER(int32_t, Axis, "axis") INTEGER(int32_t, BlockSize, "block_size")
    TYPE(ToType, "to_type") TYPE(ScaleType, "scale_type")
    /* Blocks lie along one axis: the other sizes are 1. */
    void setBlockShape(Dims const &shape) noexcept
    {
        int32_t wide = 0;
        for (int32_t i = 0; i < shape.nbDims; i++) wide += shape.d[i] != 1;
        if (wide != 1)
            return fail(SINTER_UNSUPPORTED, "blocks lie along one axis, and this shape has " + std::to_string(wide) +
                                                " sizes that are not 1");
        for (int32_t i = 0; i < shape.nbDims; i++) {
            if (shape.d[i] == 1) continue;
            setAxis(i);
            setBlockSize(static_cast<int32_t>(shape.d[i]));
        }
    }
    Dims getBlockShape() const noexcept
    {
        Dims made = getInput(0)->getDimensions();
        const int32_t axis = getAxis();
        for (int32_t i = 0; i < made.nbDims; i++)
            made.d[i] = i == (axis < 0 ? axis + made.nbDims : axis) ? getBlockSize() : 1;
        return made;
    })
LAYER_CLASS(IScatterLayer, INTEGER(ScatterMode, Mode, "mode") INTEGER(int32_t, Axis, "axis"))
LAYER_CLASS(IEinsumLayer, TEXT(bool, Equation, "equation"))
LAYER_CLASS(IOneHotLayer, INTEGER(int32_t, Axis, "axis"))
LAYER_CLASS(INonZeroLayer, INDICES_TYPE)
LAYER_CLASS(IGridSampleLayer, INTEGER(InterpolationMode, InterpolationMode, "interpolation_mode")
    CHOICE(SampleMode, SampleMode, "sample_mode") INTEGER(bool, AlignCorners, "align_corners"))
LAYER_CLASS(INMSLayer, INTEGER(BoundingBoxFormat, BoundingBoxFormat, "bounding_box_format")
    INTEGER(int32_t, TopKBoxLimit, "topk_box_limit") INDICES_TYPE)
LAYER_CLASS(IReverseSequenceLayer, INTEGER(int32_t, BatchAxis, "batch_axis")
    INTEGER(int32_t, SequenceAxis, "sequence_axis"))
LAYER_CLASS(INormalizationLayer, INTEGER(uint32_t, Axes, "axes") REAL(Epsilon, "epsilon")
    INTEGER(int64_t, NbGroups, "groups")
    /* kFLOAT: sums are in f32 whatever the type of the data, so another type changes nothing. */
    void setComputePrecision(DataType type) noexcept { computes_in_ = type; }
    DataType getComputePrecision() const noexcept { return computes_in_; }
    bool isV2() const noexcept { return is_v2_; }
    void set_v2() { is_v2_ = true; }
private:
    bool is_v2_ = false;
    DataType computes_in_ = DataType::kFLOAT;)
LAYER_CLASS(ICumulativeLayer, CHOICE(CumulativeOperation, Operation, "op") INTEGER(bool, Exclusive, "exclusive")
    INTEGER(bool, Reverse, "reverse"))
LAYER_CLASS(IAttention, CHOICE(AttentionNormalizationOp, NormalizationOperation, "norm_op")
    CHOICE(CausalMaskKind, CausalKind, "causal_kind") CHOICE(bool, Decomposable, "decomposable")
    CHOICE(AttentionIOForm, QueryForm, "query_form") CHOICE(AttentionIOForm, KeyValueForm, "key_value_form")
    OPTIONAL_INPUT(QueryLengths, 5) OPTIONAL_INPUT(KeyValueLengths, 6)
    bool setCausal(bool is_causal) noexcept
    {
        return setCausalKind(is_causal ? CausalMaskKind::kUPPER_LEFT : CausalMaskKind::kNONE);
    }
    bool getCausal() const noexcept { return getCausalKind() != CausalMaskKind::kNONE; }
    bool setMask(ITensor &mask) noexcept { return put_input(3, &mask); }
    ITensor *getMask() const noexcept { return get_input(3); }
    bool setNormalizationQuantizeScale(ITensor &scale) noexcept { return put_input(4, &scale); }
    ITensor *getNormalizationQuantizeScale() const noexcept { return get_input(4); }
    bool setNormalizationQuantizeToType(DataType type) noexcept
    {
        return attempt([&] { sinter::layer(get()).set("normalization_quantize_to_type", detail::from(type)); });
    }
    DataType getNormalizationQuantizeToType() const noexcept
    {
        return guard(DataType::kFLOAT, [&] {
            return detail::from(static_cast<sinter_dtype>(integer("normalization_quantize_to_type")));
        });
    }
    bool setInput(int32_t index, ITensor &tensor) noexcept { return put_input(index, &tensor); }
    bool setName(char const *name) noexcept
    {
        return attempt([&] { sinter::call(sinter_layer_set_name, get(), name); });
    }
    bool setMetadata(char const *text) noexcept
    {
        return attempt([&] { sinter::call(sinter_layer_set_metadata, get(), text); });
    })
/* Kinds that hold attention's boundary upstream. Here attention is one layer, and no layer is of these classes. */
LAYER_CLASS(IAttentionBoundaryLayer, IAttention *getAttention() const noexcept { return nullptr; })
DERIVED_CLASS(IAttentionInputLayer, IAttentionBoundaryLayer, )
DERIVED_CLASS(IAttentionOutputLayer, IAttentionBoundaryLayer, )
LAYER_CLASS(IRotaryEmbeddingLayer, INTEGER(bool, Interleaved, "interleaved")
    CHOICE(int32_t, RotaryEmbeddingDim, "rotary_embedding_dim"))
LAYER_CLASS(IKVCacheUpdateLayer, CHOICE(KVCacheMode, CacheMode, "cache_mode")
    /* Updates are padded, and whole. */
    bool setUpdateForm(AttentionIOForm form) noexcept
    {
        const bool is_padded = form == AttentionIOForm::kPADDED_BHND;
        if (!is_padded) fail(SINTER_UNSUPPORTED, "an update of a cache is kPADDED_BHND");
        return is_padded;
    }
    AttentionIOForm getUpdateForm() const noexcept { return AttentionIOForm::kPADDED_BHND; }
    bool setUpdateLengths(ITensor *lengths) noexcept
    {
        if (lengths) fail(SINTER_UNSUPPORTED, "an update of a cache has no lengths: slice it before");
        return !lengths;
    }
    ITensor *getUpdateLengths() const noexcept { return nullptr; })
/* Inputs: hidden states, experts, scores; weights of gate, up and down; their biases; a scale. */
LAYER_CLASS(IMoELayer,
    void setGatedWeights(ITensor &gate, ITensor &up, ITensor &down, MoEActType type) noexcept
    {
        put_inputs(3, gate, up, down);
        setActivationType(type);
    }
    void setGatedBiases(ITensor &gate, ITensor &up, ITensor &down) noexcept { put_inputs(6, gate, up, down); }
    INTEGER(MoEActType, ActivationType, "activation_type") TYPE(QuantizationToType, "quantization_to_type")
    void setQuantizationStatic(ITensor &scale, DataType type) noexcept
    {
        (void)put_input(9, &scale);
        setQuantizationToType(type);
    }
    void setQuantizationDynamicDblQ(ITensor &, DataType, Dims const &, DataType) noexcept { refuse_blocks(); }
    void setQuantizationBlockShape(Dims const &) noexcept { refuse_blocks(); }
    Dims getQuantizationBlockShape() const noexcept { return Dims(); }
    void setDynQOutputScaleType(DataType) noexcept { refuse_blocks(); }
    DataType getDynQOutputScaleType() const noexcept { return DataType::kFLOAT; }
    REAL(SwigluParamLimit, "swiglu_limit") REAL(SwigluParamAlpha, "swiglu_alpha") REAL(SwigluParamBeta, "swiglu_beta")
    void setSwigluParams(float limit, float alpha, float beta) noexcept
    {
        setSwigluParamLimit(limit);
        setSwigluParamAlpha(alpha);
        setSwigluParamBeta(beta);
    }
private:
    void put_inputs(int32_t first, ITensor &a, ITensor &b, ITensor &c) noexcept
    {
        (void)put_input(first, &a);
        (void)put_input(first + 1, &b);
        (void)put_input(first + 2, &c);
    }
    void refuse_blocks() noexcept
    {
        fail(SINTER_UNSUPPORTED, "activations of experts are quantised by one scale: setQuantizationStatic");
    })
LAYER_CLASS(IDistCollectiveLayer, )
LAYER_CLASS(IShuffleLayer, INTEGER(bool, ZeroIsPlaceholder, "zero_is_placeholder")
    void setReshapeDimensions(Dims const &dims) noexcept
    {
        (void)attempt([&] { (void)put_dims("reshape", detail::show_batch(dims, hidden(), 0)); });
        if (has_second_) setSecondTranspose(second_);
    }
    Dims getReshapeDimensions() const noexcept { return detail::hide_batch(get_dims("reshape"), hidden()); }
    void setInput(int32_t index, ITensor &tensor) noexcept
    {
        ILayer::setInput(index, tensor);
        if (has_second_) setSecondTranspose(second_);
    }
    void setFirstTranspose(Permutation p) noexcept
    {
        (void)attempt([&] { transpose("first_transpose", p, sinter::layer(get()).input(0).shape().rank); });
    }
    /* Of what the reshaping gives, whose rank may be said later. */
    void setSecondTranspose(Permutation p) noexcept
    {
        second_ = p;
        has_second_ = true;
        (void)attempt([&] { transpose("second_transpose", p, rank_between()); });
    }
    Permutation getFirstTranspose() const noexcept { return transposed("first_transpose"); }
    Permutation getSecondTranspose() const noexcept { return transposed("second_transpose"); }
private:
    uint32_t rank_between() const
    {
        const sinter::layer layer(get());
        if (getNbInputs() > 1 && getInput(1)) return static_cast<uint32_t>(layer.input(1).shape().dim[0]);
        const size_t given = layer.get_ints("reshape").size();
        return given ? static_cast<uint32_t>(given) : layer.input(0).shape().rank;
    }
    void transpose(char const *name, Permutation const &p, uint32_t rank)
    {
        sinter::dims order;
        for (int32_t i = 0; i < hidden(); i++) order.push_back(i);
        for (uint32_t i = 0; order.size() < rank && i < uint32_t(Dims::MAX_DIMS); i++)
            order.push_back(p.order[i] + hidden());
        sinter::layer(get()).set(name, order);
    }
    Permutation transposed(char const *name) const noexcept
    {
        const Dims d = get_dims(name);
        Permutation made;
        for (int32_t i = hidden(); i < d.nbDims; i++)
            made.order[i - hidden()] = static_cast<int32_t>(d.d[i]) - hidden();
        return made;
    }
    Permutation second_;
    bool has_second_ = false;)
/* With a clone of the plugin that the network was given. */
#define PLUGIN_CLASS(Name, Plugin, Type)                                                             \
    LAYER_CLASS(Name,                                                                                \
        LayerType getType() const noexcept override { return LayerType::Type; }                      \
        Plugin &getPlugin() noexcept { return *plugin_; }                                            \
        void keep(std::shared_ptr<Plugin> plugin) { plugin_ = std::move(plugin); }                   \
        private: std::shared_ptr<Plugin> plugin_;)
PLUGIN_CLASS(IPluginV2Layer, IPluginV2, kPLUGIN_V2)
PLUGIN_CLASS(IPluginV3Layer, IPluginV3, kPLUGIN_V3)
LAYER_CLASS(ILoopBoundaryLayer, inline ILoop *getLoop() const noexcept;)
LAYER_CLASS(IIfConditionalBoundaryLayer, inline IIfConditional *getConditional() const noexcept;)
DERIVED_CLASS(ITripLimitLayer, ILoopBoundaryLayer,
    TripLimit getTripLimit() const noexcept { return static_cast<TripLimit>(integer("kind")); })
DERIVED_CLASS(IRecurrenceLayer, ILoopBoundaryLayer, )
DERIVED_CLASS(IIteratorLayer, ILoopBoundaryLayer, INTEGER(int32_t, Axis, "axis") INTEGER(bool, Reverse, "reverse"))
DERIVED_CLASS(ILoopOutputLayer, ILoopBoundaryLayer, INTEGER(int32_t, Axis, "axis")
    LoopOutput getLoopOutput() const noexcept { return static_cast<LoopOutput>(integer("kind")); })
DERIVED_CLASS(IConditionLayer, IIfConditionalBoundaryLayer, )
DERIVED_CLASS(IIfConditionalInputLayer, IIfConditionalBoundaryLayer, )
DERIVED_CLASS(IIfConditionalOutputLayer, IIfConditionalBoundaryLayer, )

#undef INTEGER
#undef AXIS
#undef MASK
#undef CHOICE
#undef OPTIONAL_INPUT
#undef REAL
#undef SIZES
#undef SPATIAL
#undef WEIGHTS
#undef TYPE
#undef INDICES_TYPE
#undef BLOCK_SHAPE
#undef PADDING
#undef TEXT
#undef OLD_NAME
#undef LAYER_CLASS
#undef DERIVED_CLASS
#undef CONVOLVES
/* clang-format on */

} // namespace nvinfer1

#endif
