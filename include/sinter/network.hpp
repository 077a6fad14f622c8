/* SPDX-License-Identifier: Apache-2.0 */
/* network.hpp - networks made by calls, and the parser, of sinter.hpp, which includes this file.
 *
 *     sinter::network net;
 *     auto x = net.add_input("x", SINTER_DTYPE_F32, { -1, 3, 8, 8 });
 *     auto conv = net.add_convolution(x, 4, sinter::dims{ 3, 3 }, sinter::weights(kernel), nullptr);
 *     conv.set("pre_padding", sinter::dims{ 1, 1 });
 *     net.mark_output(net.add_activation(conv, SINTER_ACTIVATION_RELU));
 *     sinter::buffer plan = net.build();
 *
 * add_NAME takes the arguments of sinter_add_NAME: dims stand for a count and its numbers, a list of edges for the
 * edges and their count, and a layer for its first output. */
#ifndef SINTER_NETWORK_HPP
#define SINTER_NETWORK_HPP

/* With C++14, what these headers have of C++17's language is an extension that needs no warning. */
#if __cplusplus < 201703L && defined __GNUC__
#pragma GCC system_header
#endif

#include "sinter.hpp"

#include <tuple>

namespace sinter {

/* Elements of a weight; the memory is borrowed until the call that takes them returns. */
struct weights {
    sinter_weights c;
    weights(sinter_dtype dtype, const void *data, std::int64_t count) : c{ dtype, 0, count, data } {}
    template <class T> explicit weights(const std::vector<T> &v)
        : weights(dtype_of<T>(), v.data(), static_cast<std::int64_t>(v.size()))
    {
    }
};

/* A tensor of a network: it holds no data. Handles are plain pointers into the network. */
class edge {
public:
    edge() = default;
    edge(sinter_network_tensor *c) : c_(c) {}
    std::string name() const { return sinter_network_tensor_name(c_); }
    void set_name(const std::string &name) const { call(sinter_network_tensor_set_name, c_, name.c_str()); }
    sinter_network_shape shape() const
    {
        sinter_network_shape made;
        call(sinter_network_tensor_shape, c_, &made);
        return made;
    }
    sinter_network_tensor *get() const { return c_; }
    explicit operator bool() const { return c_ != nullptr; }

private:
    sinter_network_tensor *c_ = nullptr;
};

class layer {
public:
    layer(sinter_layer *c) : c_(c) {}
    operator edge() const { return output(0); }
    edge output(std::uint32_t index) const { return sinter_layer_output(c_, index); }
    edge input(std::uint32_t index) const { return sinter_layer_input(c_, index); }
    void set_input(std::uint32_t index, const edge &e) const { call(sinter_layer_set_input, c_, index, e.get()); }
    sinter_layer_kind kind() const { return sinter_layer_get_kind(c_); }
    sinter_layer_kind nearest_kind() const { return sinter_layer_nearest_kind(c_); }
    std::string name() const { return sinter_layer_name(c_); }
    layer &set_name(const std::string &name) { call(sinter_layer_set_name, c_, name.c_str()); return *this; }
    layer &set_precision(sinter_dtype type) { call(sinter_layer_set_precision, c_, type); return *this; }
    layer &set_output_type(std::uint32_t index, sinter_dtype type)
    {
        call(sinter_layer_set_output_type, c_, index, type);
        return *this;
    }

    /* A parameter by name: an integer, flag or enum, a number, a list, a word, weights. */
    template <class T> layer &set(const char *name, const T &value)
    {
        if constexpr (std::is_floating_point<T>::value)
            call(sinter_layer_set_real, c_, name, static_cast<double>(value));
        else if constexpr (std::is_integral<T>::value || std::is_enum<T>::value)
            call(sinter_layer_set_int, c_, name, static_cast<std::int64_t>(value));
        else if constexpr (std::is_same<T, dims>::value)
            call(sinter_layer_set_ints, c_, name, value.data(), static_cast<std::uint32_t>(value.size()));
        else if constexpr (std::is_same<T, std::vector<double>>::value)
            call(sinter_layer_set_reals, c_, name, value.data(), static_cast<std::uint32_t>(value.size()));
        else if constexpr (std::is_same<T, weights>::value) call(sinter_layer_set_weights, c_, name, &value.c);
        else call(sinter_layer_set_text, c_, name, std::string(value).c_str());
        return *this;
    }
    std::int64_t get_int(const char *name) const
    {
        std::int64_t made = 0;
        call(sinter_layer_get_int, c_, name, &made);
        return made;
    }
    double get_real(const char *name) const
    {
        double made = 0;
        call(sinter_layer_get_real, c_, name, &made);
        return made;
    }
    dims get_ints(const char *name) const
    {
        dims made(SINTER_PARAM_INTS_MAX);
        std::uint32_t count = 0;
        call(sinter_layer_get_ints, c_, name, made.data(), static_cast<std::uint32_t>(made.size()), &count);
        made.resize(count);
        return made;
    }
    sinter_layer *get() const { return c_; }

private:
    sinter_layer *c_;
};

/* The arguments of a C function that one argument stands for. */
namespace flat {
inline auto of(const edge &e) { return std::make_tuple(e.get()); }
inline auto of(const layer &l) { return std::make_tuple(edge(l).get()); }
inline auto of(const weights &w) { return std::make_tuple(&w.c); }
inline auto of(const dims &d) { return std::make_tuple(static_cast<std::uint32_t>(d.size()), d.data()); }
inline auto of(const tensor &t) { return std::make_tuple(t.get()); }
inline auto of(const std::string &s) { return std::make_tuple(s.c_str()); }
inline auto of(const std::vector<edge> &list)
{
    static_assert(sizeof(edge) == sizeof(sinter_network_tensor *), "a list of edges is a list of pointers");
    return std::make_tuple(reinterpret_cast<sinter_network_tensor *const *>(list.data()),
                           static_cast<std::uint32_t>(list.size()));
}
/* A number becomes the integer or real type that the function takes. */
template <class T> struct number {
    T value;
    template <class To> operator To() const { return static_cast<To>(value); }
};
template <class T, class = std::enable_if_t<std::is_scalar<T>::value>> auto of(const T &value)
{
    if constexpr (std::is_arithmetic<T>::value) return std::make_tuple(number<T>{ value });
    else return std::make_tuple(value);
}
} // namespace flat

class loop {
public:
    explicit loop(sinter_loop *c) : c_(c) {}
    layer trip_limit(const edge &e, sinter_trip_limit kind) const
    {
        return call(sinter_loop_add_trip_limit, c_, e.get(), kind);
    }
    layer recurrence(const edge &initial) const { return call(sinter_loop_add_recurrence, c_, initial.get()); }
    layer iterator(const edge &e, std::int64_t axis = 0, bool reverse = false) const
    {
        return call(sinter_loop_add_iterator, c_, e.get(), axis, static_cast<std::uint32_t>(reverse));
    }
    layer output(const edge &e, sinter_loop_output kind, std::int64_t axis = 0) const
    {
        return call(sinter_loop_add_output, c_, e.get(), kind, axis);
    }
    sinter_loop *get() const { return c_; }

private:
    sinter_loop *c_;
};

class conditional {
public:
    explicit conditional(sinter_conditional *c) : c_(c) {}
    layer condition(const edge &e) const { return call(sinter_conditional_set_condition, c_, e.get()); }
    layer input(const edge &e) const { return call(sinter_conditional_add_input, c_, e.get()); }
    layer output(const edge &then_value, const edge &else_value) const
    {
        return call(sinter_conditional_add_output, c_, then_value.get(), else_value.get());
    }
    sinter_conditional *get() const { return c_; }

private:
    sinter_conditional *c_;
};

#define SINTER_HPP_LAYERS(X)                                                                                        \
    X(constant) X(convolution) X(deconvolution) X(pooling) X(activation) X(parametric_relu) X(lrn) X(scale)         \
    X(softmax) X(ragged_softmax) X(normalization) X(elementwise) X(unary) X(reduce) X(cumulative)                   \
    X(matrix_multiply) X(einsum) X(concatenation) X(slice) X(padding) X(shuffle) X(squeeze) X(unsqueeze) X(shape)   \
    X(gather) X(scatter) X(one_hot) X(non_zero) X(topk) X(nms) X(reverse_sequence) X(resize) X(grid_sample) X(fill) \
    X(identity) X(cast) X(select) X(assertion) X(quantize) X(dequantize) X(dynamic_quantize) X(attention)           \
    X(rotary_embedding) X(kv_cache_update) X(moe) X(op)

/* A network made by calls. It moves; its edges and layers stay valid as long as it lives. */
class network {
public:
    network() { create(process_environment() ? &*process_environment() : nullptr); }
    explicit network(const environment &e) { create(&e); }
    edge add_input(const std::string &name, sinter_dtype dtype, const dims &shape,
                   const std::vector<const char *> &dim_names = {})
    {
        if (!dim_names.empty() && dim_names.size() != shape.size())
            throw error(SINTER_INVALID_ARG, "input '" + name + "': " + std::to_string(dim_names.size()) +
                                                " names for " + std::to_string(shape.size()) + " axes");
        return call(sinter_network_add_input, get(), name.c_str(), dtype, static_cast<std::uint32_t>(shape.size()),
                    shape.data(), dim_names.empty() ? nullptr : dim_names.data());
    }
    void mark_output(const edge &e) { call(sinter_network_mark_output, get(), e.get()); }
    void mark_output(const edge &e, const std::string &name)
    {
        e.set_name(name);
        mark_output(e);
    }

#define SINTER_X(kind)                                                                                              \
    template <class... A> layer add_##kind(const A &...arguments)                                                   \
    {                                                                                                               \
        return made(sinter_add_##kind, arguments...);                                                               \
    }
    SINTER_HPP_LAYERS(SINTER_X)
#undef SINTER_X

    loop        add_loop() { return loop(call(sinter_network_add_loop, get())); }
    conditional add_conditional() { return conditional(call(sinter_network_add_conditional, get())); }

    /* Adds a model of a file to the network, and marks its outputs. The error lists all that is wrong. */
    void parse(const std::string &path)
    {
        sinter_parser *made = nullptr;
        call(sinter_parser_create, get(), &made);
        parsers_.emplace_back(made);
        const auto done = attempt([&] { call(sinter_parser_parse_file, made, path.c_str()); });
        if (done) return;
        std::string text = done.message;
        for (std::uint32_t i = 0; i < sinter_parser_error_count(made); i++) {
            sinter_parser_error e;
            check(sinter_parser_error_at(made, i, &e), "parser");
            text += std::string("\n  ") + e.op_type + " '" + e.node_name + "': " + e.message;
        }
        throw error(done.status, text);
    }

    std::vector<layer> layers() const
    {
        std::vector<layer> made;
        for (std::uint32_t i = 0; i < sinter_network_layer_count(get()); i++)
            made.push_back(sinter_network_layer(get(), i));
        return made;
    }
    std::vector<edge> inputs() const
    {
        std::vector<edge> made;
        for (std::uint32_t i = 0; i < sinter_network_input_count(get()); i++)
            made.push_back(sinter_network_input(get(), i));
        return made;
    }
    std::vector<edge> outputs() const
    {
        std::vector<edge> made;
        for (std::uint32_t i = 0; i < sinter_network_output_count(get()); i++)
            made.push_back(sinter_network_output(get(), i));
        return made;
    }
    edge find(const std::string &tensor) const { return sinter_network_find_tensor(get(), tensor.c_str()); }

    buffer build(const build_options &o = build_options())
    {
        buffer made;
        const lowered_options l(o);
        call(sinter_network_build, get(), &l.c, made.get());
        return made;
    }
    void write_onnx(const std::string &path) { call(sinter_network_write_onnx, get(), path.c_str()); }
    sinter_network *get() const { return c_.get(); }

private:
    void create(const environment *e)
    {
        sinter_network *made = nullptr;
        if (e) env_ = e->share();
        call(sinter_network_create, e ? e->get() : nullptr, &made);
        c_.reset(made);
    }
    template <class F, class... A> layer made(F function, const A &...arguments)
    {
        return standard::apply([function](auto... a) { return call(function, a...); },
                          std::tuple_cat(std::make_tuple(get()), flat::of(arguments)...));
    }
    struct network_end {
        void operator()(sinter_network *n) const { sinter_network_destroy(n); }
    };
    struct parser_end {
        void operator()(sinter_parser *p) const { sinter_parser_destroy(p); }
    };
    std::shared_ptr<const void> env_;
    std::unique_ptr<sinter_network, network_end> c_;
    std::vector<std::unique_ptr<sinter_parser, parser_end>> parsers_;
};

#undef SINTER_HPP_LAYERS

} // namespace sinter

#endif
