/* SPDX-License-Identifier: Apache-2.0 */
/* network.h - a network made by calls: layers and tensors that can be listed, renamed, rewired and removed; then
 * built.
 *
 *     sinter_network *net;
 *     sinter_network_create(NULL, &net, &error);
 *     sinter_network_tensor *x = sinter_network_add_input(net, "x", SINTER_DTYPE_F32, 4, dims, NULL, &error);
 *     sinter_layer *conv = sinter_add_convolution(net, x, 64, 2, kernel_size, &kernel, &bias, &error);
 *     sinter_layer_set_ints(conv, "stride", (int64_t[]){ 2, 2 }, 2, &error);
 *     sinter_network_mark_output(net, sinter_layer_output(conv, 0), &error);
 *     sinter_network_build(net, NULL, &engine, &error);
 *
 * There is one typed call for each kind of layer. A typed call sets the most common parameters. Every parameter
 * has a name, and the sinter_layer_set_… and sinter_layer_get_… calls reach all of them by name (docs/network.md
 * lists the names). Parameters can change at any time before the build.
 *
 * Handles: a network owns its layers, tensors, loops and conditionals. Their handles stay valid until the network
 * is destroyed. A removed layer or tensor keeps its handle, but every call except the getters refuses the handle.
 *
 * Errors: a call that makes something returns NULL on failure. All other calls return a status. `error` receives
 * the reason; it may be NULL. A failed call changes nothing. A call with a NULL tensor fails and names the input,
 * so several calls can be chained and the last result checked. Every call refuses handles of another network
 * (INVALID_ARG).
 *
 * Threads: a network and all of its handles belong to one thread at a time.
 *
 * Cost: calls that make or change a layer take constant time, and time for copies of weights. Questions about
 * types and shapes convert the layers that the tensor depends on. A change makes the next question convert them
 * again. */
#ifndef SINTER_NETWORK_H
#define SINTER_NETWORK_H

#include "build.h"
#include "plugin.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct sinter_network sinter_network;
typedef struct sinter_layer sinter_layer;
typedef struct sinter_network_tensor sinter_network_tensor;     /* an edge of the network; it holds no data */
typedef struct sinter_loop sinter_loop;
typedef struct sinter_conditional sinter_conditional;

/* ---- kinds and choices. X(name, value, word); values never change ---- */

/* What a layer is. The comment of its typed call describes each kind. */
#define SINTER_LAYER_KIND_MAP(X)                                                                                     \
    X(CONVOLUTION, 0, "convolution") X(CAST, 1, "cast") X(ACTIVATION, 2, "activation") X(POOLING, 3, "pooling")      \
    X(LRN, 4, "lrn") X(SCALE, 5, "scale") X(SOFTMAX, 6, "softmax") X(DECONVOLUTION, 7, "deconvolution")              \
    X(CONCATENATION, 8, "concatenation") X(ELEMENTWISE, 9, "elementwise") X(UNARY, 11, "unary")                      \
    X(PADDING, 12, "padding") X(SHUFFLE, 13, "shuffle") X(REDUCE, 14, "reduce") X(TOPK, 15, "topk")                  \
    X(GATHER, 16, "gather") X(MATRIX_MULTIPLY, 17, "matrix_multiply") X(RAGGED_SOFTMAX, 18, "ragged_softmax")        \
    X(CONSTANT, 19, "constant") X(IDENTITY, 20, "identity") X(SLICE, 22, "slice") X(SHAPE, 23, "shape")              \
    X(PARAMETRIC_RELU, 24, "parametric_relu") X(RESIZE, 25, "resize") X(TRIP_LIMIT, 26, "trip_limit")                \
    X(RECURRENCE, 27, "recurrence") X(ITERATOR, 28, "iterator") X(LOOP_OUTPUT, 29, "loop_output")                    \
    X(SELECT, 30, "select") X(FILL, 31, "fill") X(QUANTIZE, 32, "quantize") X(DEQUANTIZE, 33, "dequantize")          \
    X(CONDITION, 34, "condition") X(CONDITIONAL_INPUT, 35, "conditional_input")                                      \
    X(CONDITIONAL_OUTPUT, 36, "conditional_output") X(SCATTER, 37, "scatter") X(EINSUM, 38, "einsum")                \
    X(ASSERTION, 39, "assertion") X(ONE_HOT, 40, "one_hot") X(NON_ZERO, 41, "non_zero")                              \
    X(GRID_SAMPLE, 42, "grid_sample") X(NMS, 43, "nms") X(REVERSE_SEQUENCE, 44, "reverse_sequence")                  \
    X(NORMALIZATION, 45, "normalization") X(PLUGIN, 46, "plugin") X(SQUEEZE, 47, "squeeze")                          \
    X(UNSQUEEZE, 48, "unsqueeze")                                                                                    \
    X(CUMULATIVE, 49, "cumulative") X(DYNAMIC_QUANTIZE, 50, "dynamic_quantize") X(ATTENTION, 51, "attention")        \
    X(ROTARY_EMBEDDING, 53, "rotary_embedding") X(KV_CACHE_UPDATE, 54, "kv_cache_update") X(MOE, 55, "moe")          \
    X(DIST_COLLECTIVE, 56, "dist_collective") X(OP, 100, "op")

#define SINTER_ACTIVATION_MAP(X)                                                                                     \
    X(RELU, 0, "relu") X(SIGMOID, 1, "sigmoid") X(TANH, 2, "tanh") X(LEAKY_RELU, 3, "leaky_relu") X(ELU, 4, "elu")   \
    X(SELU, 5, "selu") X(SOFTSIGN, 6, "softsign") X(SOFTPLUS, 7, "softplus") X(CLIP, 8, "clip")                      \
    X(HARD_SIGMOID, 9, "hard_sigmoid") X(SCALED_TANH, 10, "scaled_tanh")                                             \
    X(THRESHOLDED_RELU, 11, "thresholded_relu") X(GELU_ERF, 12, "gelu_erf") X(GELU_TANH, 13, "gelu_tanh")
#define SINTER_POOLING_MAP(X) \
    X(MAX, 0, "max") X(AVERAGE, 1, "average") X(MAX_AVERAGE_BLEND, 2, "max_average_blend")
#define SINTER_ELEMENTWISE_MAP(X)                                                                                    \
    X(SUM, 0, "sum") X(PROD, 1, "prod") X(MAX, 2, "max") X(MIN, 3, "min") X(SUB, 4, "sub") X(DIV, 5, "div")          \
    X(POW, 6, "pow") X(FLOOR_DIV, 7, "floor_div") X(AND, 8, "and") X(OR, 9, "or") X(XOR, 10, "xor")                  \
    X(EQUAL, 11, "equal") X(GREATER, 12, "greater") X(LESS, 13, "less")
#define SINTER_UNARY_MAP(X)                                                                                          \
    X(EXP, 0, "exp") X(LOG, 1, "log") X(SQRT, 2, "sqrt") X(RECIP, 3, "recip") X(ABS, 4, "abs") X(NEG, 5, "neg")      \
    X(SIN, 6, "sin") X(COS, 7, "cos") X(TAN, 8, "tan") X(SINH, 9, "sinh") X(COSH, 10, "cosh") X(ASIN, 11, "asin")    \
    X(ACOS, 12, "acos") X(ATAN, 13, "atan") X(ASINH, 14, "asinh") X(ACOSH, 15, "acosh") X(ATANH, 16, "atanh")        \
    X(CEIL, 17, "ceil") X(FLOOR, 18, "floor") X(ERF, 19, "erf") X(NOT, 20, "not") X(SIGN, 21, "sign")                \
    X(ROUND, 22, "round") X(ISINF, 23, "isinf") X(ISNAN, 24, "isnan")
#define SINTER_REDUCTION_MAP(X) \
    X(SUM, 0, "sum") X(PROD, 1, "prod") X(MAX, 2, "max") X(MIN, 3, "min") X(AVG, 4, "avg")
#define SINTER_SCALE_MODE_MAP(X) X(UNIFORM, 0, "uniform") X(CHANNEL, 1, "channel") X(ELEMENTWISE, 2, "elementwise")
#define SINTER_MATRIX_MAP(X) X(NONE, 0, "none") X(TRANSPOSE, 1, "transpose") X(VECTOR, 2, "vector")
#define SINTER_TOPK_MAP(X) X(MAX, 0, "max") X(MIN, 1, "min")
#define SINTER_GATHER_MAP(X) X(DEFAULT, 0, "default") X(ELEMENT, 1, "element") X(ND, 2, "nd")
#define SINTER_SCATTER_MAP(X) X(ELEMENT, 0, "element") X(ND, 1, "nd")
#define SINTER_SAMPLE_MAP(X)                                                                                         \
    X(STRICT_BOUNDS, 0, "strict_bounds") X(WRAP, 1, "wrap") X(CLAMP, 2, "clamp") X(FILL, 3, "fill")                  \
    X(REFLECT, 4, "reflect")
#define SINTER_INTERPOLATION_MAP(X) X(NEAREST, 0, "nearest") X(LINEAR, 1, "linear") X(CUBIC, 2, "cubic")
#define SINTER_COORDINATE_MAP(X) \
    X(ALIGN_CORNERS, 0, "align_corners") X(ASYMMETRIC, 1, "asymmetric") X(HALF_PIXEL, 2, "half_pixel")
#define SINTER_SELECTOR_MAP(X) X(FORMULA, 0, "formula") X(UPPER, 1, "upper")
#define SINTER_ROUNDING_MAP(X) \
    X(HALF_UP, 0, "half_up") X(HALF_DOWN, 1, "half_down") X(FLOOR, 2, "floor") X(CEIL, 3, "ceil")
#define SINTER_PADDING_MODE_MAP(X)                                                                                   \
    X(EXPLICIT_ROUND_DOWN, 0, "explicit_round_down") X(EXPLICIT_ROUND_UP, 1, "explicit_round_up")                    \
    X(SAME_UPPER, 2, "same_upper") X(SAME_LOWER, 3, "same_lower") X(CAFFE_ROUND_DOWN, 4, "caffe_round_down")         \
    X(CAFFE_ROUND_UP, 5, "caffe_round_up")
#define SINTER_FILL_MAP(X) \
    X(LINSPACE, 0, "linspace") X(RANDOM_UNIFORM, 1, "random_uniform") X(RANDOM_NORMAL, 2, "random_normal")
#define SINTER_TRIP_LIMIT_MAP(X) X(COUNT, 0, "count") X(WHILE, 1, "while")
#define SINTER_LOOP_OUTPUT_MAP(X) \
    X(LAST_VALUE, 0, "last_value") X(CONCATENATE, 1, "concatenate") X(REVERSE, 2, "reverse")
#define SINTER_BOX_MAP(X) X(CORNER_PAIRS, 0, "corner_pairs") X(CENTER_SIZES, 1, "center_sizes")
#define SINTER_CUMULATIVE_MAP(X) X(SUM, 0, "sum") X(PROD, 1, "prod")
#define SINTER_NORM_OP_MAP(X) X(NONE, 0, "none") X(SOFTMAX, 1, "softmax")
#define SINTER_CAUSAL_MAP(X) X(NONE, 0, "none") X(UPPER_LEFT, 1, "upper_left") X(LOWER_RIGHT, 2, "lower_right")
#define SINTER_FORM_MAP(X) X(PADDED_BHND, 0, "padded_bhnd") X(PACKED_NHD, 1, "packed_nhd")
#define SINTER_CACHE_MODE_MAP(X) X(LINEAR, 0, "linear")
#define SINTER_MOE_MAP(X) X(NONE, 0, "none") X(SILU, 1, "silu")

/* Memory formats of tensors whose channels lie behind the other axes, or in groups.
 * X(name, value, word, lanes, behind, is_last)
 *   lanes     how many channels lie side by side; the number of channels is rounded up to a multiple of lanes
 *   behind    how many axes the tensor's shape has behind the channels
 *   is_last   1: all channels lie behind these axes; 0: one group of channels does */
#define SINTER_FORMAT_MAP(X)                                                                                         \
    X(CHW2, 1, "chw2", 2, 2, 0) X(HWC8, 2, "hwc8", 8, 2, 1) X(CHW4, 3, "chw4", 4, 2, 0)                              \
    X(CHW16, 4, "chw16", 16, 2, 0) X(CHW32, 5, "chw32", 32, 2, 0) X(DHWC8, 6, "dhwc8", 8, 3, 1)                      \
    X(CDHW32, 7, "cdhw32", 32, 3, 0) X(HWC, 8, "hwc", 1, 2, 1) X(HWC16, 11, "hwc16", 16, 2, 1)                       \
    X(DHWC, 12, "dhwc", 1, 3, 1)

#define SINTER_ENUM_MAP(E)                                                                                           \
    E(layer_kind, LAYER_KIND) E(activation, ACTIVATION) E(pooling, POOLING) E(elementwise, ELEMENTWISE)              \
    E(unary, UNARY) E(reduction, REDUCTION) E(scale_mode, SCALE_MODE) E(matrix, MATRIX) E(topk, TOPK)                \
    E(gather, GATHER) E(scatter, SCATTER) E(sample, SAMPLE) E(interpolation, INTERPOLATION)                          \
    E(coordinate, COORDINATE) E(selector, SELECTOR) E(rounding, ROUNDING) E(padding_mode, PADDING_MODE)              \
    E(fill, FILL) E(trip_limit, TRIP_LIMIT) E(loop_output, LOOP_OUTPUT) E(box, BOX) E(cumulative, CUMULATIVE)        \
    E(norm_op, NORM_OP) E(causal, CAUSAL) E(form, FORM) E(cache_mode, CACHE_MODE) E(moe, MOE)

/* clang-format off */
#define SINTER_X(name, value, word) SINTER_LAYER_##name = value,
typedef enum sinter_layer_kind { SINTER_LAYER_KIND_MAP(SINTER_X) } sinter_layer_kind;
#undef SINTER_X
#define SINTER_X(name, value, word) SINTER_ACTIVATION_##name = value,
typedef enum sinter_activation { SINTER_ACTIVATION_MAP(SINTER_X) } sinter_activation;
#undef SINTER_X
#define SINTER_X(name, value, word) SINTER_POOLING_##name = value,
typedef enum sinter_pooling { SINTER_POOLING_MAP(SINTER_X) } sinter_pooling;
#undef SINTER_X
#define SINTER_X(name, value, word) SINTER_ELEMENTWISE_##name = value,
typedef enum sinter_elementwise { SINTER_ELEMENTWISE_MAP(SINTER_X) } sinter_elementwise;
#undef SINTER_X
#define SINTER_X(name, value, word) SINTER_UNARY_##name = value,
typedef enum sinter_unary { SINTER_UNARY_MAP(SINTER_X) } sinter_unary;
#undef SINTER_X
#define SINTER_X(name, value, word) SINTER_REDUCTION_##name = value,
typedef enum sinter_reduction { SINTER_REDUCTION_MAP(SINTER_X) } sinter_reduction;
#undef SINTER_X
#define SINTER_X(name, value, word) SINTER_SCALE_##name = value,
typedef enum sinter_scale_mode { SINTER_SCALE_MODE_MAP(SINTER_X) } sinter_scale_mode;
#undef SINTER_X
#define SINTER_X(name, value, word) SINTER_MATRIX_##name = value,
typedef enum sinter_matrix { SINTER_MATRIX_MAP(SINTER_X) } sinter_matrix;
#undef SINTER_X
#define SINTER_X(name, value, word) SINTER_TOPK_##name = value,
typedef enum sinter_topk { SINTER_TOPK_MAP(SINTER_X) } sinter_topk;
#undef SINTER_X
#define SINTER_X(name, value, word) SINTER_GATHER_##name = value,
typedef enum sinter_gather { SINTER_GATHER_MAP(SINTER_X) } sinter_gather;
#undef SINTER_X
#define SINTER_X(name, value, word) SINTER_SCATTER_##name = value,
typedef enum sinter_scatter { SINTER_SCATTER_MAP(SINTER_X) } sinter_scatter;
#undef SINTER_X
#define SINTER_X(name, value, word) SINTER_SAMPLE_##name = value,
typedef enum sinter_sample_mode { SINTER_SAMPLE_MAP(SINTER_X) } sinter_sample_mode;
#undef SINTER_X
#define SINTER_X(name, value, word) SINTER_INTERPOLATION_##name = value,
typedef enum sinter_interpolation { SINTER_INTERPOLATION_MAP(SINTER_X) } sinter_interpolation;
#undef SINTER_X
#define SINTER_X(name, value, word) SINTER_COORDINATE_##name = value,
typedef enum sinter_coordinate { SINTER_COORDINATE_MAP(SINTER_X) } sinter_coordinate;
#undef SINTER_X
#define SINTER_X(name, value, word) SINTER_SELECTOR_##name = value,
typedef enum sinter_selector { SINTER_SELECTOR_MAP(SINTER_X) } sinter_selector;
#undef SINTER_X
#define SINTER_X(name, value, word) SINTER_ROUNDING_##name = value,
typedef enum sinter_rounding { SINTER_ROUNDING_MAP(SINTER_X) } sinter_rounding;
#undef SINTER_X
#define SINTER_X(name, value, word) SINTER_PADDING_##name = value,
typedef enum sinter_padding_mode { SINTER_PADDING_MODE_MAP(SINTER_X) } sinter_padding_mode;
#undef SINTER_X
#define SINTER_X(name, value, word) SINTER_FILL_##name = value,
typedef enum sinter_fill { SINTER_FILL_MAP(SINTER_X) } sinter_fill;
#undef SINTER_X
#define SINTER_X(name, value, word) SINTER_TRIP_LIMIT_##name = value,
typedef enum sinter_trip_limit { SINTER_TRIP_LIMIT_MAP(SINTER_X) } sinter_trip_limit;
#undef SINTER_X
#define SINTER_X(name, value, word) SINTER_LOOP_OUTPUT_##name = value,
typedef enum sinter_loop_output { SINTER_LOOP_OUTPUT_MAP(SINTER_X) } sinter_loop_output;
#undef SINTER_X
#define SINTER_X(name, value, word) SINTER_BOX_##name = value,
typedef enum sinter_box { SINTER_BOX_MAP(SINTER_X) } sinter_box;
#undef SINTER_X
#define SINTER_X(name, value, word) SINTER_CUMULATIVE_##name = value,
typedef enum sinter_cumulative { SINTER_CUMULATIVE_MAP(SINTER_X) } sinter_cumulative;
#undef SINTER_X
#define SINTER_X(name, value, word) SINTER_NORM_OP_##name = value,
typedef enum sinter_norm_op { SINTER_NORM_OP_MAP(SINTER_X) } sinter_norm_op;
#undef SINTER_X
#define SINTER_X(name, value, word) SINTER_CAUSAL_##name = value,
typedef enum sinter_causal { SINTER_CAUSAL_MAP(SINTER_X) } sinter_causal;
#undef SINTER_X
#define SINTER_X(name, value, word) SINTER_FORM_##name = value,
typedef enum sinter_form { SINTER_FORM_MAP(SINTER_X) } sinter_form;
#undef SINTER_X
#define SINTER_X(name, value, word) SINTER_CACHE_MODE_##name = value,
typedef enum sinter_cache_mode { SINTER_CACHE_MODE_MAP(SINTER_X) } sinter_cache_mode;
#undef SINTER_X
#define SINTER_X(name, value, word) SINTER_MOE_##name = value,
typedef enum sinter_moe { SINTER_MOE_MAP(SINTER_X) } sinter_moe;
#undef SINTER_X
#define SINTER_X(name, value, word, lanes, behind, is_last) SINTER_FORMAT_##name = value,
typedef enum sinter_format { SINTER_FORMAT_MAP(SINTER_X) } sinter_format;
#undef SINTER_X
/* clang-format on */

/* Elements of a weight: a list without a shape; the layer knows the shape. `data` is copied by the call that takes
 * the weights, or borrowed until the network is destroyed if is_borrowed is not 0. Host memory, dense. Count 0: no
 * weights. */
typedef struct sinter_weights {
    sinter_dtype dtype;
    uint32_t     is_borrowed;
    int64_t      count;             /* elements */
    const void  *data;
} sinter_weights;

/* ---- the network ---- */

/* Makes an empty network. options NULL: defaults; the network's memory comes from its allocator.
 * Errors: NO_MEMORY, INVALID_ARG. */
SINTER_API sinter_status sinter_network_create(const sinter_env_options *options, sinter_network **out,
                                               sinter_error *error) SINTER_MUST_USE;
/* Frees the network and everything in it. All handles become invalid. NULL is fine. */
SINTER_API void sinter_network_destroy(sinter_network *network);

/* The network's name, "" at first. Copied. It becomes the engine's name. */
SINTER_API sinter_status sinter_network_set_name(sinter_network *network, const char *name, sinter_error *error);
SINTER_API const char   *sinter_network_name(const sinter_network *network);

/* Adds an input. `dim` has `rank` sizes; -1 is a free size, for which the build's profiles give ranges. `dim_name` is
 * NULL, or has a name or NULL for each axis: free axes of one name have the same size in every run. A name that other
 * inputs or outputs have is refused. */
SINTER_API sinter_network_tensor *sinter_network_add_input(sinter_network *network, const char *name,
                                                           sinter_dtype dtype, uint32_t rank, const int64_t *dim,
                                                           const char *const *dim_name, sinter_error *error);

/* Makes the tensor an output of the engine, after the outputs that are marked already; or takes that back. The
 * tensor's name is the output's name. Marking twice is refused. */
SINTER_API sinter_status sinter_network_mark_output(sinter_network *network, sinter_network_tensor *tensor,
                                                    sinter_error *error);
SINTER_API sinter_status sinter_network_unmark_output(sinter_network *network, sinter_network_tensor *tensor,
                                                      sinter_error *error);
/* The same for the shape of the tensor: the output is i64[rank] and is named "NAME.shape". */
SINTER_API sinter_status sinter_network_mark_shape_output(sinter_network *network, sinter_network_tensor *tensor,
                                                          uint32_t is_marked, sinter_error *error);
/* Debug tensors are outputs, too, behind all other outputs. is_marked 0 takes the mark back. */
SINTER_API sinter_status sinter_network_mark_debug(sinter_network *network, sinter_network_tensor *tensor,
                                                   uint32_t is_marked, sinter_error *error);
/* Lists the tensors that no kernel of `engine` fuses away: the steps write them to memory between each other. `engine`
 * is a build of this network; tensors are found by their names. Inputs, outputs, debug tensors and
 * tensors inside loops and conditionals are not listed. The first `capacity` tensors are written to `out`, `*count` is
 * how many there are. A build with these tensors marked keeps them, and may fuse other tensors. Errors: INVALID_ARG,
 * NO_MEMORY. Cost: linear in layers, twice for each nested loop. */
SINTER_API sinter_status sinter_network_unfused(sinter_network *network, const sinter_engine *engine,
                                                sinter_network_tensor **out, uint32_t capacity, uint32_t *count,
                                                sinter_error *error);

/* Layers in the order in which they were added, inputs and outputs. Index out of range, or NULL: NULL. */
SINTER_API uint32_t               sinter_network_layer_count(const sinter_network *network);
SINTER_API sinter_layer          *sinter_network_layer(const sinter_network *network, uint32_t index);
SINTER_API uint32_t               sinter_network_input_count(const sinter_network *network);
SINTER_API sinter_network_tensor *sinter_network_input(const sinter_network *network, uint32_t index);
SINTER_API uint32_t               sinter_network_output_count(const sinter_network *network);
SINTER_API sinter_network_tensor *sinter_network_output(const sinter_network *network, uint32_t index);
/* The first layer or tensor of that name; NULL: there is none. Cost: linear. */
SINTER_API sinter_layer          *sinter_network_find_layer(const sinter_network *network, const char *name);
SINTER_API sinter_network_tensor *sinter_network_find_tensor(const sinter_network *network, const char *name);

/* Removes a layer with its outputs; or an input. Refused while another layer reads them or they are marked. */
SINTER_API sinter_status sinter_network_remove_layer(sinter_network *network, sinter_layer *layer,
                                                     sinter_error *error);
SINTER_API sinter_status sinter_network_remove_input(sinter_network *network, sinter_network_tensor *input,
                                                     sinter_error *error);

/* Builds an engine as sinter_build_memory (build.h) does. Profiles, samples, states and values name the network's
 * inputs. The network does not change, and is borrowed for the call. Layers that no output needs are built into
 * nothing, but must be valid. Errors list all layers that cannot be built. Cost: seconds. */
SINTER_API sinter_status sinter_network_build(sinter_network *network, const sinter_build_options *options,
                                              sinter_buffer *out, sinter_error *error) SINTER_MUST_USE;

/* Writes the network as the ONNX model `path`, which is replaced as a whole; nothing is optimised. Layers become
 * operators of ONNX's own. Weights of more than 2 GiB go to "<path>.data" beside it. Precisions of layers are not
 * expressed. Cost: that of reading and writing the weights.
 * Errors: those of a build; UNSUPPORTED for a layer without a form in ONNX; IO. */
SINTER_API sinter_status sinter_network_write_onnx(sinter_network *network, const char *path,
                                                   sinter_error *error) SINTER_MUST_USE;

/* ---- tensors ---- */

/* Getters of a NULL handle return "", 0 or NULL. Strings stay valid until the name changes or the network is
 * destroyed. */
SINTER_API const char   *sinter_network_tensor_name(const sinter_network_tensor *tensor);
SINTER_API sinter_layer *sinter_network_tensor_producer(const sinter_network_tensor *tensor);   /* NULL: an input */
SINTER_API uint32_t      sinter_network_tensor_is_input(const sinter_network_tensor *tensor);
SINTER_API uint32_t      sinter_network_tensor_is_output(const sinter_network_tensor *tensor);
SINTER_API uint32_t      sinter_network_tensor_is_shape_output(const sinter_network_tensor *tensor);
SINTER_API uint32_t      sinter_network_tensor_is_debug(const sinter_network_tensor *tensor);
SINTER_API uint32_t      sinter_network_tensor_is_removed(const sinter_network_tensor *tensor);

/* A new name, copied. Names of inputs and of outputs must differ from each other; that is checked here and when the
 * tensor is marked. */
SINTER_API sinter_status sinter_network_tensor_set_name(sinter_network_tensor *tensor, const char *name,
                                                        sinter_error *error);
/* Changes an input: its type, its shape (as in sinter_network_add_input), the name of one axis (NULL: none). */
SINTER_API sinter_status sinter_network_tensor_set_type(sinter_network_tensor *tensor, sinter_dtype dtype,
                                                        sinter_error *error);
SINTER_API sinter_status sinter_network_tensor_set_shape(sinter_network_tensor *tensor, uint32_t rank,
                                                         const int64_t *dim, sinter_error *error);
SINTER_API sinter_status sinter_network_tensor_set_dim_name(sinter_network_tensor *tensor, uint32_t axis,
                                                            const char *name, sinter_error *error);

/* What a tensor is. dim[i] is -1 where the size is not known before the run; dim_name[i] is then the expression of
 * named sizes that the size follows ("N*2"), else NULL. */
typedef struct sinter_network_shape {
    sinter_dtype dtype;
    uint32_t     rank;
    int64_t      dim[SINTER_RANK_MAX];
    const char  *dim_name[SINTER_RANK_MAX];     /* valid until the network changes or is destroyed */
} sinter_network_shape;
/* Converts the layers that the tensor depends on, where that has not been done. Errors: those of these layers. */
SINTER_API sinter_status sinter_network_tensor_shape(sinter_network_tensor *tensor, sinter_network_shape *out,
                                                     sinter_error *error) SINTER_MUST_USE;
/* The values of a tensor that are known while building: constants, shapes and what is computed from them. Writes at
 * most `count` integers; -1 where a value is a free size. Errors: INVALID_ARG where the values are not known. */
SINTER_API sinter_status sinter_network_tensor_values(sinter_network_tensor *tensor, int64_t *out, uint32_t count,
                                                      sinter_error *error) SINTER_MUST_USE;

/* ---- layers ---- */

SINTER_API sinter_layer_kind      sinter_layer_get_kind(const sinter_layer *layer);       /* NULL: OP */
/* Of a layer of kind OP: the kind of which TensorRT's parser makes most of that operator; OP: there is none. Of other
 * layers the kind. */
SINTER_API sinter_layer_kind      sinter_layer_nearest_kind(const sinter_layer *layer);
SINTER_API const char            *sinter_layer_kind_name(sinter_layer_kind kind);  /* "convolution"; no kind: "" */
SINTER_API const char            *sinter_layer_name(const sinter_layer *layer);
SINTER_API const char            *sinter_layer_metadata(const sinter_layer *layer);
SINTER_API uint32_t               sinter_layer_input_count(const sinter_layer *layer);
SINTER_API sinter_network_tensor *sinter_layer_input(const sinter_layer *layer, uint32_t index);  /* NULL: absent */
SINTER_API uint32_t               sinter_layer_output_count(const sinter_layer *layer);
SINTER_API sinter_network_tensor *sinter_layer_output(const sinter_layer *layer, uint32_t index);
SINTER_API uint32_t               sinter_layer_is_removed(const sinter_layer *layer);
/* The loop or the conditional that a layer is a part of; NULL: none. */
SINTER_API sinter_loop           *sinter_layer_loop(const sinter_layer *layer);
SINTER_API sinter_conditional    *sinter_layer_conditional(const sinter_layer *layer);

SINTER_API sinter_status sinter_layer_set_name(sinter_layer *layer, const char *name, sinter_error *error);
/* Any text. The engine's description of the layer's steps does not contain it. */
SINTER_API sinter_status sinter_layer_set_metadata(sinter_layer *layer, const char *text, sinter_error *error);
/* Replaces an input, or gives an optional one. NULL takes an optional input away. Kinds with a list of inputs grow
 * by one with index == count. A cycle of layers is refused when shapes are asked for, or at the build. */
SINTER_API sinter_status sinter_layer_set_input(sinter_layer *layer, uint32_t index, sinter_network_tensor *tensor,
                                                sinter_error *error);

/* Converts output `index` to the type behind the layer; NONE: the layer's own type. */
SINTER_API sinter_status sinter_layer_set_output_type(sinter_layer *layer, uint32_t index, sinter_dtype dtype,
                                                      sinter_error *error);
SINTER_API sinter_dtype  sinter_layer_output_type(const sinter_layer *layer, uint32_t index);  /* NONE: its own */

/* The type that a layer is to be computed in: F32, F16, BF16; NONE: not said. The network's mode says what that
 * means. I8, of a convolution or a matrix_multiply with constant weights: with the mode OBEY it is a product of 8
 * bits, whatever is faster and whatever the budget is. The build has to allow int8, and fails where the layer has no
 * such form or its data has no range. */
SINTER_API sinter_status sinter_layer_set_precision(sinter_layer *layer, sinter_dtype dtype, sinter_error *error);
SINTER_API sinter_dtype  sinter_layer_precision(const sinter_layer *layer);

/* What precisions of layers mean. A layer of F32 is never lowered to a narrower type, whatever the build allows
 * (OBEY and PREFER). With OBEY, a layer of F16 or BF16 is computed in that type: its f32 inputs and weights are
 * converted to it, and its results back to f32. With PREFER, such layers are lowered as far as the build's option
 * `allow` and its budget permit. */
typedef enum sinter_precision_mode {
    SINTER_PRECISION_OBEY = 0,      /* default */
    SINTER_PRECISION_PREFER = 1,
    SINTER_PRECISION_IGNORE = 2
} sinter_precision_mode;
SINTER_API sinter_status sinter_network_set_precision_mode(sinter_network *network, sinter_precision_mode mode,
                                                           sinter_error *error);

/* A strongly typed network has the types that its inputs, constants and casts say: precisions and output types of
 * layers are refused, and so are builds that allow narrower types; tf32 is no type of a tensor, and is permitted.
 * Refused while a layer has one of these. Floats of several types in one layer are refused there; in other networks the
 * layer computes in the widest of f16, bf16 and f32 that an input or weights of it have (f16 beside bf16: f32). */
SINTER_API sinter_status sinter_network_set_strongly_typed(sinter_network *network, uint32_t is_strongly_typed,
                                                           sinter_error *error);
SINTER_API uint32_t      sinter_network_is_strongly_typed(const sinter_network *network);

/* ---- parameters by name ---- */

typedef enum sinter_param_kind {
    SINTER_PARAM_INT = 0,           /* one integer */
    SINTER_PARAM_FLAG = 1,          /* 0 or 1, by the int calls */
    SINTER_PARAM_REAL = 2,
    SINTER_PARAM_INTS = 3,          /* a list of up to SINTER_PARAM_INTS_MAX integers */
    SINTER_PARAM_REALS = 4,         /* a list of numbers, as long */
    SINTER_PARAM_CHOICE = 5,        /* an enum, as integer or as word */
    SINTER_PARAM_TYPE = 6,          /* a sinter_dtype, as integer or as word ("f16") */
    SINTER_PARAM_TEXT = 7,
    SINTER_PARAM_WEIGHTS = 8
} sinter_param_kind;
enum { SINTER_PARAM_INTS_MAX = 32 };

/* One parameter of a kind of layer. The library's own memory. */
typedef struct sinter_param {
    const char       *name;
    sinter_param_kind kind;
    double            initial;      /* of INT, FLAG, REAL, CHOICE and TYPE */
    const char       *words;        /* CHOICE: "a|b|c", the value is the index */
    const char       *text;         /* what the parameter means */
} sinter_param;
/* Parameter `index` of a kind; NULL behind the last. Layers of kind OP have their own (sinter_layer_param). */
SINTER_API const sinter_param *sinter_layer_kind_param(sinter_layer_kind kind, uint32_t index);
SINTER_API const sinter_param *sinter_layer_param(const sinter_layer *layer, uint32_t index);

/* Set a parameter. Values are copied (weights: see sinter_weights). Refused: no such parameter, another kind, a
 * value out of range. Lists may be empty, which is their default. */
SINTER_API sinter_status sinter_layer_set_int(sinter_layer *layer, const char *name, int64_t value,
                                              sinter_error *error);
SINTER_API sinter_status sinter_layer_set_real(sinter_layer *layer, const char *name, double value,
                                               sinter_error *error);
SINTER_API sinter_status sinter_layer_set_ints(sinter_layer *layer, const char *name, const int64_t *value,
                                               uint32_t count, sinter_error *error);
SINTER_API sinter_status sinter_layer_set_reals(sinter_layer *layer, const char *name, const double *value,
                                                uint32_t count, sinter_error *error);
SINTER_API sinter_status sinter_layer_set_text(sinter_layer *layer, const char *name, const char *value,
                                               sinter_error *error);
SINTER_API sinter_status sinter_layer_set_weights(sinter_layer *layer, const char *name, const sinter_weights *value,
                                                  sinter_error *error);
/* The name under which a refit finds the weights of parameter `name`. Without this call: LAYER.PARAMETER. */
SINTER_API sinter_status sinter_layer_set_weights_name(sinter_layer *layer, const char *name, const char *value,
                                                       sinter_error *error);
/* Read a parameter. Lists: writes at most `capacity` values, and the list's length to *count. Text and weights stay
 * valid until the parameter changes. */
SINTER_API sinter_status sinter_layer_get_int(const sinter_layer *layer, const char *name, int64_t *out,
                                              sinter_error *error);
SINTER_API sinter_status sinter_layer_get_real(const sinter_layer *layer, const char *name, double *out,
                                               sinter_error *error);
SINTER_API sinter_status sinter_layer_get_ints(const sinter_layer *layer, const char *name, int64_t *out,
                                               uint32_t capacity, uint32_t *count, sinter_error *error);
SINTER_API sinter_status sinter_layer_get_reals(const sinter_layer *layer, const char *name, double *out,
                                                uint32_t capacity, uint32_t *count, sinter_error *error);
SINTER_API sinter_status sinter_layer_get_text(const sinter_layer *layer, const char *name, const char **out,
                                               sinter_error *error);
SINTER_API sinter_status sinter_layer_get_weights(const sinter_layer *layer, const char *name, sinter_weights *out,
                                                  sinter_error *error);

/* ---- any layer ---- */

/* Adds a layer of a kind with all parameters at their defaults. Inputs that are optional may be NULL. Layers of
 * loops and conditionals are added by the calls below only. */
SINTER_API sinter_layer *sinter_network_add(sinter_network *network, sinter_layer_kind kind,
                                            sinter_network_tensor *const *input, uint32_t count, sinter_error *error);
/* Adds a layer that is an ONNX operator: `domain` "" is ONNX's own, version 0 the newest. Attributes are set by name
 * with the set calls, which add them; docs/ops.md lists the operators. */
SINTER_API sinter_layer *sinter_add_op(sinter_network *network, const char *domain, const char *type, int64_t version,
                                       sinter_network_tensor *const *input, uint32_t count, uint32_t count_out,
                                       sinter_error *error);

/* Adds a call of a plugin (plugin.h) with `count_out` outputs. version, space NULL: any, where only one plugin fits.
 * `field` has values of the plugin's fields in any order; they are copied, and those that are not given have the
 * plugin's defaults. The plugin is looked up when shapes are asked for, in the registry of sinter_network_create, and
 * at the build, in the registry of the build's env, or the network's where that names none. A plugin that is not
 * there, and fields that it does not take, are errors then. */
SINTER_API sinter_layer *sinter_add_plugin(sinter_network *network, const char *name, const char *version,
                                           const char *space, sinter_network_tensor *const *input, uint32_t count,
                                           uint32_t count_out, const sinter_plugin_field *field,
                                           uint32_t count_field, sinter_error *error);
/* Gives a field of a layer of kind PLUGIN another value, or adds it. Copied. Errors: INVALID_ARG, NO_MEMORY. */
SINTER_API sinter_status sinter_layer_set_field(sinter_layer *layer, const sinter_plugin_field *field,
                                                sinter_error *error);
/* Field `index` of those that were given; valid until it is set again. NULL: past the last, or no PLUGIN. */
SINTER_API const sinter_plugin_field *sinter_layer_field(const sinter_layer *layer, uint32_t index);
/* What a layer of kind PLUGIN calls, as it was given. Errors: INVALID_ARG where the layer is of another kind. */
SINTER_API sinter_status sinter_layer_plugin(const sinter_layer *layer, const char **name, const char **version,
                                             const char **space);

/* What a layer of kind OP is. Errors: INVALID_ARG where the layer is of another kind. */
SINTER_API sinter_status sinter_layer_operator(const sinter_layer *layer, const char **domain, const char **type,
                                               int64_t *version);

/* ---- layers with one typed call each. Axis masks: bit i is axis i ---- */

/* value: a dense tensor on the host, copied, or borrowed until the network is destroyed if is_borrowed is not 0. */
SINTER_API sinter_layer *sinter_add_constant(sinter_network *network, const sinter_tensor *value, uint32_t is_borrowed,
                                             sinter_error *error);
/* input [N, C, spatial…]; kernel [maps, C / groups, kernel_size…]; bias [maps], or NULL. kernel NULL: input 1 is
 * the kernel, set with sinter_layer_set_input (input 2 the bias). `spatial` is 1, 2 or 3 and the length of
 * kernel_size. */
SINTER_API sinter_layer *sinter_add_convolution(sinter_network *network, sinter_network_tensor *input, int64_t maps,
                                                uint32_t spatial, const int64_t *kernel_size,
                                                const sinter_weights *kernel, const sinter_weights *bias,
                                                sinter_error *error);
/* The same, transposed; kernel [C, maps / groups, kernel_size…]. */
SINTER_API sinter_layer *sinter_add_deconvolution(sinter_network *network, sinter_network_tensor *input, int64_t maps,
                                                  uint32_t spatial, const int64_t *kernel_size,
                                                  const sinter_weights *kernel, const sinter_weights *bias,
                                                  sinter_error *error);
SINTER_API sinter_layer *sinter_add_pooling(sinter_network *network, sinter_network_tensor *input, sinter_pooling type,
                                            uint32_t spatial, const int64_t *window, sinter_error *error);
SINTER_API sinter_layer *sinter_add_activation(sinter_network *network, sinter_network_tensor *input,
                                               sinter_activation type, sinter_error *error);
SINTER_API sinter_layer *sinter_add_parametric_relu(sinter_network *network, sinter_network_tensor *input,
                                                    sinter_network_tensor *slopes, sinter_error *error);
/* Local response normalisation over channels: x / (k + alpha * mean of squares in the window) ^ beta. */
SINTER_API sinter_layer *sinter_add_lrn(sinter_network *network, sinter_network_tensor *input, int64_t window,
                                        double alpha, double beta, double k, sinter_error *error);
/* (x * scale + shift) ^ power. Weights of one element, of the size of the channel axis, or of the input's shape
 * without its first axis. NULL: 0 for shift, 1 for scale and power. */
SINTER_API sinter_layer *sinter_add_scale(sinter_network *network, sinter_network_tensor *input,
                                          sinter_scale_mode mode, const sinter_weights *shift,
                                          const sinter_weights *scale, const sinter_weights *power,
                                          int64_t channel_axis, sinter_error *error);
/* Over the axes of the mask; mask 0: axis max(0, rank - 3). */
SINTER_API sinter_layer *sinter_add_softmax(sinter_network *network, sinter_network_tensor *input, uint32_t axes,
                                            sinter_error *error);
/* Over the first bounds[row] elements of each row of the last axis; 0 behind them. bounds: the input's shape with
 * a last axis of 1. */
SINTER_API sinter_layer *sinter_add_ragged_softmax(sinter_network *network, sinter_network_tensor *input,
                                                   sinter_network_tensor *bounds, sinter_error *error);
/* (x - mean) / sqrt(variance + epsilon) * scale + bias, mean and variance over the axes of the mask. Parameter
 * groups > 1: group normalisation. scale and bias broadcast to the input. */
SINTER_API sinter_layer *sinter_add_normalization(sinter_network *network, sinter_network_tensor *input,
                                                  sinter_network_tensor *scale, sinter_network_tensor *bias,
                                                  uint32_t axes, sinter_error *error);
SINTER_API sinter_layer *sinter_add_elementwise(sinter_network *network, sinter_network_tensor *a,
                                                sinter_network_tensor *b, sinter_elementwise op, sinter_error *error);
SINTER_API sinter_layer *sinter_add_unary(sinter_network *network, sinter_network_tensor *input, sinter_unary op,
                                          sinter_error *error);
SINTER_API sinter_layer *sinter_add_reduce(sinter_network *network, sinter_network_tensor *input, sinter_reduction op,
                                           uint32_t axes, uint32_t keeps_axes, sinter_error *error);
/* axis: a scalar tensor that is known while building. */
SINTER_API sinter_layer *sinter_add_cumulative(sinter_network *network, sinter_network_tensor *input,
                                               sinter_network_tensor *axis, sinter_cumulative op, uint32_t exclusive,
                                               uint32_t reverse, sinter_error *error);
SINTER_API sinter_layer *sinter_add_matrix_multiply(sinter_network *network, sinter_network_tensor *a,
                                                    sinter_matrix op_a, sinter_network_tensor *b, sinter_matrix op_b,
                                                    sinter_error *error);
SINTER_API sinter_layer *sinter_add_einsum(sinter_network *network, sinter_network_tensor *const *input,
                                           uint32_t count, const char *equation, sinter_error *error);
SINTER_API sinter_layer *sinter_add_concatenation(sinter_network *network, sinter_network_tensor *const *input,
                                                  uint32_t count, int64_t axis, sinter_error *error);
/* start, size and stride have `rank` numbers, one for each axis of the input, or of the parameter `axes`. Inputs 1
 * to 5 replace them: start, size, stride, the value for mode FILL, axes. Stride 0 repeats the element at `start`. */
SINTER_API sinter_layer *sinter_add_slice(sinter_network *network, sinter_network_tensor *input, uint32_t rank,
                                          const int64_t *start, const int64_t *size, const int64_t *stride,
                                          sinter_error *error);
/* Zeros around the last `count` axes, or elements cut off where the number is negative. */
SINTER_API sinter_layer *sinter_add_padding(sinter_network *network, sinter_network_tensor *input, uint32_t count,
                                            const int64_t *pre, const int64_t *post, sinter_error *error);
/* Transposes, reshapes, transposes: parameters first_transpose, reshape, second_transpose. */
SINTER_API sinter_layer *sinter_add_shuffle(sinter_network *network, sinter_network_tensor *input,
                                            sinter_error *error);
/* axes: a tensor that is known while building; NULL (squeeze): all axes of size 1. */
SINTER_API sinter_layer *sinter_add_squeeze(sinter_network *network, sinter_network_tensor *input,
                                            sinter_network_tensor *axes, sinter_error *error);
SINTER_API sinter_layer *sinter_add_unsqueeze(sinter_network *network, sinter_network_tensor *input,
                                              sinter_network_tensor *axes, sinter_error *error);
SINTER_API sinter_layer *sinter_add_shape(sinter_network *network, sinter_network_tensor *input, sinter_error *error);
SINTER_API sinter_layer *sinter_add_gather(sinter_network *network, sinter_network_tensor *data,
                                           sinter_network_tensor *indices, sinter_gather mode, int64_t axis,
                                           sinter_error *error);
SINTER_API sinter_layer *sinter_add_scatter(sinter_network *network, sinter_network_tensor *data,
                                            sinter_network_tensor *indices, sinter_network_tensor *updates,
                                            sinter_scatter mode, sinter_error *error);
/* values: [off, on]; depth: a scalar. */
SINTER_API sinter_layer *sinter_add_one_hot(sinter_network *network, sinter_network_tensor *indices,
                                            sinter_network_tensor *values, sinter_network_tensor *depth, int64_t axis,
                                            sinter_error *error);
/* indices_type: I32 or I64. The output is [rank, count]. */
SINTER_API sinter_layer *sinter_add_non_zero(sinter_network *network, sinter_network_tensor *input,
                                             sinter_dtype indices_type, sinter_error *error);
/* Outputs: values and indices. axes: a mask of one axis. Input 1 replaces k. */
SINTER_API sinter_layer *sinter_add_topk(sinter_network *network, sinter_network_tensor *input, sinter_topk op,
                                         int64_t k, uint32_t axes, sinter_dtype indices_type, sinter_error *error);
/* boxes [batch, count, 4] or [batch, count, classes, 4], scores [batch, count, classes]. Outputs: indices [found, 3]
 * (batch, class, box) and their number. Inputs 3 and 4: thresholds of overlap and of score. */
SINTER_API sinter_layer *sinter_add_nms(sinter_network *network, sinter_network_tensor *boxes,
                                        sinter_network_tensor *scores, sinter_network_tensor *most_per_class,
                                        sinter_dtype indices_type, sinter_error *error);
SINTER_API sinter_layer *sinter_add_reverse_sequence(sinter_network *network, sinter_network_tensor *input,
                                                     sinter_network_tensor *lengths, sinter_error *error);
/* Parameters `size` or `scales`, or input 1 for the size. */
SINTER_API sinter_layer *sinter_add_resize(sinter_network *network, sinter_network_tensor *input,
                                           sinter_error *error);
SINTER_API sinter_layer *sinter_add_grid_sample(sinter_network *network, sinter_network_tensor *input,
                                                sinter_network_tensor *grid, sinter_error *error);
/* A tensor of the shape `dim` (or input 0). LINSPACE: alpha + beta * index; several axes: beta has one number for
 * each (input 2). RANDOM_UNIFORM: between alpha and beta; RANDOM_NORMAL: mean alpha, deviation beta. Inputs 1 and
 * 2 replace alpha and beta. */
SINTER_API sinter_layer *sinter_add_fill(sinter_network *network, uint32_t rank, const int64_t *dim, sinter_fill op,
                                         sinter_dtype dtype, sinter_error *error);
SINTER_API sinter_layer *sinter_add_identity(sinter_network *network, sinter_network_tensor *input,
                                             sinter_error *error);
SINTER_API sinter_layer *sinter_add_cast(sinter_network *network, sinter_network_tensor *input, sinter_dtype dtype,
                                         sinter_error *error);
SINTER_API sinter_layer *sinter_add_select(sinter_network *network, sinter_network_tensor *condition,
                                           sinter_network_tensor *then_value, sinter_network_tensor *else_value,
                                           sinter_error *error);
/* The build fails with the message where the condition is known to be false; a run fails where it is false. */
SINTER_API sinter_layer *sinter_add_assertion(sinter_network *network, sinter_network_tensor *condition,
                                              const char *message, sinter_error *error);
/* Symmetric: round(x / scale), and back. scale: a scalar, one number for each index of `axis`, or one for each block
 * (its shape is the input's divided by the blocks). Input 2: zero points. */
SINTER_API sinter_layer *sinter_add_quantize(sinter_network *network, sinter_network_tensor *input,
                                             sinter_network_tensor *scale, sinter_dtype dtype, sinter_error *error);
SINTER_API sinter_layer *sinter_add_dequantize(sinter_network *network, sinter_network_tensor *input,
                                               sinter_network_tensor *scale, sinter_dtype dtype, sinter_error *error);
/* Outputs: blocks of the axis quantised to `dtype` by the largest magnitude of each block, and the blocks' scales.
 * double_scale: a scalar that the scales are divided by; NULL: none. */
SINTER_API sinter_layer *sinter_add_dynamic_quantize(sinter_network *network, sinter_network_tensor *input,
                                                     sinter_network_tensor *double_scale, int64_t axis,
                                                     int64_t block_size, sinter_dtype dtype, sinter_dtype scale_type,
                                                     sinter_error *error);
/* query [B, H, N, D], key and value [B, H or fewer, S, D]: op(query * key^T) * value. No scale is applied. Input
 * 3: a mask (bool: where true; else added); input 4: the scale of the normalised weights where they are quantised;
 * inputs 5 and 6: lengths of queries and of keys. */
SINTER_API sinter_layer *sinter_add_attention(sinter_network *network, sinter_network_tensor *query,
                                              sinter_network_tensor *key, sinter_network_tensor *value,
                                              sinter_norm_op op, sinter_causal causal, sinter_error *error);
/* input [B, H, N, D]; caches [positions, dim / 2] with input 3 = position ids [B, N], or [B, N, dim / 2] without. */
SINTER_API sinter_layer *sinter_add_rotary_embedding(sinter_network *network, sinter_network_tensor *input,
                                                     sinter_network_tensor *cos_cache,
                                                     sinter_network_tensor *sin_cache, uint32_t interleaved,
                                                     int64_t rotary_dim, sinter_error *error);
/* Writes update [B, H, n, D] into cache [B, H, S, D] at row write_indices[b]. */
SINTER_API sinter_layer *sinter_add_kv_cache_update(sinter_network *network, sinter_network_tensor *cache,
                                                    sinter_network_tensor *update,
                                                    sinter_network_tensor *write_indices, sinter_cache_mode mode,
                                                    sinter_error *error);
/* Mixture of experts: hidden [B, N, D], experts [B, N, K] (indices), scores [B, N, K]. Inputs 3 to 5: weights of
 * gate and up [E, D, F] and down [E, F, D]; inputs 6 to 8: their biases [E, F], [E, F], [E, D]. */
SINTER_API sinter_layer *sinter_add_moe(sinter_network *network, sinter_network_tensor *hidden,
                                        sinter_network_tensor *experts, sinter_network_tensor *scores,
                                        sinter_error *error);

/* An engine runs on one device: SINTER_LAYER_DIST_COLLECTIVE is refused (UNSUPPORTED). */

/* ---- loops ----
 *
 * A loop repeats the layers that depend on its recurrences and iterators; nobody has to say which these are. Layers
 * that do not depend on them are outside, and the loop reads their outputs. Every loop needs a trip limit. */

SINTER_API sinter_loop *sinter_network_add_loop(sinter_network *network, sinter_error *error);
SINTER_API const char  *sinter_loop_name(const sinter_loop *loop);
SINTER_API sinter_status sinter_loop_set_name(sinter_loop *loop, const char *name, sinter_error *error);
/* COUNT: a scalar integer from outside, the number of turns. WHILE: a scalar bool that depends on recurrences; the
 * loop ends before the first turn for which it is false. A loop can have one limit of each kind. */
SINTER_API sinter_layer *sinter_loop_add_trip_limit(sinter_loop *loop, sinter_network_tensor *tensor,
                                                    sinter_trip_limit kind, sinter_error *error);
/* A value that goes from turn to turn: `initial` in the first one, then what sinter_layer_set_input(layer, 1, …)
 * gives, of the same type and shape. */
SINTER_API sinter_layer *sinter_loop_add_recurrence(sinter_loop *loop, sinter_network_tensor *initial,
                                                    sinter_error *error);
/* One slice of the tensor along the axis in each turn, from the end if reverse is not 0. */
SINTER_API sinter_layer *sinter_loop_add_iterator(sinter_loop *loop, sinter_network_tensor *tensor, int64_t axis,
                                                  uint32_t reverse, sinter_error *error);
/* A result of the loop. LAST_VALUE: the tensor after the last turn. CONCATENATE and REVERSE: the values of all
 * turns along a new axis, `axis`. Input 1 can say the length of that axis: zeros fill it up where the loop has
 * fewer turns. */
SINTER_API sinter_layer *sinter_loop_add_output(sinter_loop *loop, sinter_network_tensor *tensor,
                                                sinter_loop_output kind, int64_t axis, sinter_error *error);

/* ---- conditionals ----
 *
 * Only the chosen branch runs. A layer belongs to a branch if it depends on an input of the conditional. */

SINTER_API sinter_conditional *sinter_network_add_conditional(sinter_network *network, sinter_error *error);
SINTER_API const char  *sinter_conditional_name(const sinter_conditional *conditional);
SINTER_API sinter_status sinter_conditional_set_name(sinter_conditional *conditional, const char *name,
                                                     sinter_error *error);
/* A scalar bool from outside. Once for each conditional. */
SINTER_API sinter_layer *sinter_conditional_set_condition(sinter_conditional *conditional,
                                                          sinter_network_tensor *condition, sinter_error *error);
/* Makes a tensor an input of both branches; the branches read the layer's output. */
SINTER_API sinter_layer *sinter_conditional_add_input(sinter_conditional *conditional, sinter_network_tensor *input,
                                                      sinter_error *error);
/* A result: then_value where the condition is true, else else_value; of one type and rank. */
SINTER_API sinter_layer *sinter_conditional_add_output(sinter_conditional *conditional,
                                                       sinter_network_tensor *then_value,
                                                       sinter_network_tensor *else_value, sinter_error *error);

/* ---- memory formats ---- */

/* Adds the layers that convert between a tensor and its memory in a format; returns the result. The layers are the
 * network's last ones.
 *   input      the memory; the tensor if to_memory is not 0
 *   rank       of the tensor, whose shape is [..., channels, axes behind]. The shape of its memory is
 *              [..., axes behind, padded channels], or [..., groups, axes behind, lanes] of a format with groups
 *   channels   of the tensor. Channels that fill the memory up are zeros.
 * Errors: INVALID_ARG, NO_MEMORY. */
SINTER_API sinter_network_tensor *sinter_network_add_format(sinter_network *network, sinter_network_tensor *input,
                                                            sinter_format format, uint32_t rank, int64_t channels,
                                                            uint32_t to_memory, sinter_error *error);

/* ---- the parser: an ONNX model becomes layers ----
 *
 * Nodes that a kind of layer stands for become layers of this kind. All others become layers of kind OP, whose
 * parameters are the node's attributes. Layers have the names of the nodes, tensors the names of the model. */

typedef struct sinter_parser sinter_parser;

/* One thing that is wrong with a model. Strings live as long as the parser. */
typedef struct sinter_parser_error {
    sinter_status status;
    uint32_t      node;             /* index in the model's graph; UINT32_MAX: it is no node */
    const char   *node_name, *op_type, *message;
} sinter_parser_error;

/* A parser adds models to one network, which must outlive it. The network's thread uses the parser, too. */
SINTER_API sinter_status sinter_parser_create(sinter_network *network, sinter_parser **out,
                                              sinter_error *error) SINTER_MUST_USE;
SINTER_API void          sinter_parser_destroy(sinter_parser *parser);          /* NULL is fine */

/* Adds a model to the network and marks its outputs. The network keeps what it needs of the bytes: of memory a
 * copy, of a file a mapping, so the file must not change while the network lives. External data is read from the
 * file's folder. Nodes that cannot be taken are left out, and the rest is added; the call then fails, and the
 * parser's errors say everything that is wrong. Errors: UNSUPPORTED, INVALID_MODEL, INVALID_ARG, IO, NO_MEMORY.
 * Cost: that of an import. */
SINTER_API sinter_status sinter_parser_parse_file(sinter_parser *parser, const char *path,
                                                  sinter_error *error) SINTER_MUST_USE;
SINTER_API sinter_status sinter_parser_parse_memory(sinter_parser *parser, const void *model, size_t size,
                                                    sinter_error *error) SINTER_MUST_USE;

/* The errors of all calls, in order. INVALID_ARG: there is no such error. */
SINTER_API uint32_t      sinter_parser_error_count(const sinter_parser *parser);
SINTER_API sinter_status sinter_parser_error_at(const sinter_parser *parser, uint32_t index, sinter_parser_error *out);
SINTER_API void          sinter_parser_clear_errors(sinter_parser *parser);

/* The last model's nodes, in the order in which they run, split where supported nodes and others meet. Writes at most
 * `capacity` indices of nodes, and their number to *count. INVALID_ARG: there is no such subgraph. */
SINTER_API uint32_t      sinter_parser_subgraph_count(const sinter_parser *parser);
SINTER_API sinter_status sinter_parser_subgraph(const sinter_parser *parser, uint32_t index, uint32_t *node,
                                                uint32_t capacity, uint32_t *count, uint32_t *is_supported);

#ifdef __cplusplus
}
#endif
#endif
