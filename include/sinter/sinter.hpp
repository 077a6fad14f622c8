/* SPDX-License-Identifier: Apache-2.0 */
/* sinter.hpp - the C API for C++14 and later: handles that free themselves, exceptions, futures, spans. Header only.
 *
 *     sinter::engine digits = sinter::engine::build("digits.onnx");
 *     sinter::context context(digits);
 *     auto out = context({ { "image", sinter::tensor::read("seven.npy") } });
 *     for (float score : out["scores"].as<float>()) ...
 *
 * Errors: what fails throws sinter::error, which has the status and the chain of causes. sinter::attempt(f) calls f and
 * gives a result that holds the value or the error, for code without exceptions of its own. sinter::call(function, …)
 * calls any function of the C API that ends with a sinter_error, and throws; so all of the C API can be used beside the
 * classes, whose get() gives the handle.
 *
 * Ownership: engines, tensors, registries and environments are shared by their copies; contexts, networks and buffers
 * move. Threads: as the C API has it. Cost: a call costs what its C function costs; strings and dims are copied. */
#ifndef SINTER_SINTER_HPP
#define SINTER_SINTER_HPP

/* With C++14, what these headers have of C++17's language is an extension that needs no warning. */
#if __cplusplus < 201703L && defined __GNUC__
#pragma GCC system_header
#endif

#include "cxx14.hpp"
#include "sinter.h"

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <future>
#include <initializer_list>
#include <list>
#include <map>
#include <memory>
#include <new>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>
#if __cplusplus >= 202002L && __has_include(<span>)
#include <span>
#endif

namespace sinter {

/* ---- errors ---- */

namespace detail {
inline std::string &last_text()
{
    static thread_local std::string text;
    return text;
}
}

/* What the last sinter::error of this thread said; "" before the first. It stays after an attempt() that failed. */
inline const std::string &last_error() { return detail::last_text(); }

class error : public std::runtime_error {
public:
    explicit error(const sinter_error &e)
        : error(e.status, e.length ? std::string(e.text, e.length) : std::string(sinter_status_text(e.status)))
    {
    }
    error(sinter_status status, const std::string &text) : std::runtime_error(text), status_(status)
    {
        detail::last_text() = text;
    }
    sinter_status status() const noexcept { return status_; }

private:
    sinter_status status_;
};

/* Throws unless the status is OK: for functions without a sinter_error. */
inline void check(sinter_status status, const char *what)
{
    if (status != SINTER_OK) throw error(status, std::string(what) + ": " + sinter_status_text(status));
}

/* Calls a function of the C API whose last parameter is a sinter_error, without this argument. A status that is not OK,
 * and NULL where a pointer is returned, become an exception. */
template <class R, class... P, class... A>
auto call(R (*function)(P...), A &&...arguments)
{
    sinter_error e;
    e.status = SINTER_OK;
    e.length = 0;
    e.text[0] = 0;
    const R made = function(std::forward<A>(arguments)..., &e);
    if constexpr (std::is_same<R, sinter_status>::value) {
        if (made != SINTER_OK) {
            e.status = made;
            throw error(e);
        }
    } else {
        if (!made) throw error(e);
        return made;
    }
}

/* A value, or why there is none. */
template <class T> class result {
public:
    standard::optional<T> value;
    sinter_status    status = SINTER_OK;
    std::string      message;
    explicit operator bool() const noexcept { return value.has_value(); }
    T &operator*() { return *value; }
    T *operator->() { return &*value; }
};

/* Calls f(), and never throws. result<standard::monostate> where f returns nothing. */
template <class F> auto attempt(F &&f) noexcept
{
    using R = decltype(f());
    using T = std::conditional_t<std::is_void<R>::value, standard::monostate, R>;
    result<T> made;
    try {
        if constexpr (std::is_void<R>::value) {
            f();
            made.value.emplace();
        } else {
            made.value.emplace(f());
        }
    } catch (const error &e) {
        made.status = e.status();
        made.message = e.what();
    } catch (const std::bad_alloc &) {
        made.status = SINTER_NO_MEMORY;
    } catch (const std::exception &e) {
        made.status = SINTER_INTERNAL;
        made.message = e.what();
    }
    return made;
}

/* ---- spans, dims, types ---- */

#if __cplusplus >= 202002L && __has_include(<span>)
template <class T> using span = std::span<T>;
#else
template <class T> class span {
public:
    span() = default;
    span(T *data, std::size_t size) : data_(data), size_(size) {}
    template <class C, class = decltype(std::declval<C &>().data())>
    span(C &&from) : data_(from.data()), size_(from.size())
    {
    }
    T          *data() const { return data_; }
    std::size_t size() const { return size_; }
    std::size_t size_bytes() const { return size_ * sizeof(T); }
    bool        empty() const { return size_ == 0; }
    T          &operator[](std::size_t i) const { return data_[i]; }
    T          *begin() const { return data_; }
    T          *end() const { return data_ + size_; }

private:
    T          *data_ = nullptr;
    std::size_t size_ = 0;
};
#endif

using dims = std::vector<std::int64_t>;

template <class T> constexpr sinter_dtype dtype_of()
{
    using U = std::remove_cv_t<T>;
    if constexpr (std::is_same<U, bool>::value) return SINTER_DTYPE_BOOL;
    else if constexpr (std::is_same<U, float>::value) return SINTER_DTYPE_F32;
    else if constexpr (std::is_same<U, double>::value) return SINTER_DTYPE_F64;
    else if constexpr (std::is_integral<U>::value && std::is_signed<U>::value)
        return sizeof(U) == 1 ? SINTER_DTYPE_I8 : sizeof(U) == 2 ? SINTER_DTYPE_I16
             : sizeof(U) == 4 ? SINTER_DTYPE_I32 : SINTER_DTYPE_I64;
    else if constexpr (std::is_integral<U>::value)
        return sizeof(U) == 1 ? SINTER_DTYPE_U8 : sizeof(U) == 2 ? SINTER_DTYPE_U16
             : sizeof(U) == 4 ? SINTER_DTYPE_U32 : SINTER_DTYPE_U64;
    else return SINTER_DTYPE_NONE;
}

/* ---- tensors ---- */

/* A dense tensor in memory of somebody else. */
class view {
public:
    view() : c_() {}
    explicit view(const sinter_tensor &c) : c_(c) {}
    view(sinter_dtype dtype, const void *data, const dims &shape, sinter_place place = SINTER_PLACE_HOST) : c_()
    {
        if (shape.size() > SINTER_RANK_MAX)
            throw error(SINTER_INVALID_ARG, "a tensor of rank " + std::to_string(shape.size()) + ": at most " +
                                                std::to_string(+SINTER_RANK_MAX));
        c_.dtype = dtype;
        c_.rank = static_cast<std::uint32_t>(shape.size());
        for (std::size_t i = 0; i < shape.size(); i++) c_.dim[i] = shape[i];
        c_.data = const_cast<void *>(data);
        c_.place = place;
    }
    template <class T, class = std::enable_if_t<dtype_of<T>() != SINTER_DTYPE_NONE>>
    view(const T *data, const dims &shape) : view(dtype_of<T>(), data, shape)
    {
    }

    const sinter_tensor *get() const { return &c_; }
    sinter_dtype  dtype() const { return c_.dtype; }
    sinter_place  place() const { return c_.place; }
    dims          shape() const { return dims(c_.dim, c_.dim + c_.rank); }
    std::size_t   size_bytes() const { return sinter_tensor_size(&c_); }
    void         *data() const { return c_.data; }
    std::int64_t  count() const
    {
        std::int64_t n = 1;
        for (std::uint32_t i = 0; i < c_.rank; i++) n *= c_.dim[i];
        return n;
    }
    /* Element `index` as a number; host memory. */
    double value(std::int64_t index) const { return sinter_tensor_value(&c_, index); }

    /* The elements. T is the tensor's type; of types that C++ lacks (f16, bf16, f8…) the unsigned integer as wide.
     * Throws INVALID_ARG where the type is another, or the memory is a device's. */
    template <class T> span<T> as() const
    {
        const bool is_raw = std::is_unsigned<T>::value && sizeof(T) * 8 == sinter_dtype_bits(c_.dtype) &&
                            (c_.dtype == SINTER_DTYPE_F16 || c_.dtype == SINTER_DTYPE_BF16 ||
                             (sizeof(T) == 1 && c_.dtype != SINTER_DTYPE_I8 && c_.dtype != SINTER_DTYPE_BOOL));
        if (dtype_of<T>() != c_.dtype && !is_raw)
            throw error(SINTER_INVALID_ARG, std::string("the tensor is ") + sinter_dtype_name(c_.dtype) + ", read as " +
                                                sinter_dtype_name(dtype_of<T>()));
        if (c_.place == SINTER_PLACE_DEVICE)
            throw error(SINTER_INVALID_ARG, "the tensor is in device memory: copy it with engine::copy");
        return span<T>(static_cast<T *>(c_.data), static_cast<std::size_t>(count()));
    }

protected:
    sinter_tensor c_;
};

/* A tensor with memory of its own, on the host. Copies share the memory. */
class tensor : public view {
public:
    tensor() = default;
    tensor(sinter_dtype dtype, const dims &shape) : view(dtype, nullptr, shape)
    {
        const std::size_t size = size_bytes();
        if (size == SIZE_MAX) throw error(SINTER_INVALID_ARG, "the size of the tensor does not fit");
        memory_ = std::shared_ptr<void>(::operator new(size ? size : 1), [](void *p) { ::operator delete(p); });
        std::memset(memory_.get(), 0, size);
        c_.data = memory_.get();
    }
    template <class T, class = std::enable_if_t<dtype_of<T>() != SINTER_DTYPE_NONE>>
    tensor(const std::vector<T> &values, const dims &shape) : tensor(dtype_of<T>(), shape)
    {
        if (static_cast<std::size_t>(count()) != values.size())
            throw error(SINTER_INVALID_ARG, std::to_string(values.size()) + " values for a tensor of " +
                                                std::to_string(count()));
        if (!values.empty()) std::memcpy(c_.data, values.data(), size_bytes());
    }
    /* Of a .npy or .pb file. */
    static tensor read(const std::string &path)
    {
        auto held = std::shared_ptr<sinter_buffer>(new sinter_buffer(), [](sinter_buffer *b) {
            sinter_buffer_free(b);
            delete b;
        });
        tensor made;
        call(sinter_tensor_read, path.c_str(), nullptr, &made.c_, held.get());
        made.memory_ = std::shared_ptr<void>(held, held->data);
        return made;
    }
    std::shared_ptr<void> memory() const { return memory_; }

private:
    std::shared_ptr<void> memory_;
};

/* Writes a .npy file. */
inline void write(const view &tensor, const std::string &path)
{
    call(sinter_tensor_write, path.c_str(), tensor.get());
}

/* ---- environments and options ---- */

/* A registry of plugins. */
class plugins {
public:
    plugins()
    {
        sinter_plugins *made = nullptr;
        call(sinter_plugins_create, nullptr, &made);
        c_ = std::shared_ptr<sinter_plugins>(made, sinter_plugins_destroy);
    }
    void add(const sinter_plugin &plugin) { call(sinter_plugins_add, c_.get(), &plugin); }
    void load(const std::string &path) { call(sinter_plugins_load, c_.get(), path.c_str()); }
    void check(bool is_on) { sinter_plugins_check(c_.get(), is_on); }
    std::uint32_t        count() const { return sinter_plugins_count(c_.get()); }
    const sinter_plugin *at(std::uint32_t index) const { return sinter_plugins_at(c_.get(), index); }
    std::shared_ptr<sinter_plugins> share() const { return c_; }
    sinter_plugins      *get() const { return c_.get(); }

private:
    std::shared_ptr<sinter_plugins> c_;
};

/* Log, limits and plugins of whatever is made with it. Set it up first: objects read it as long as they live. */
class environment {
public:
    using log_function = std::function<void(standard::string_view topic, standard::string_view line)>;
    environment() : s_(std::make_shared<state>()) {}
    environment &log(log_function f, const std::string &topics = "all")
    {
        s_->log = std::move(f);
        s_->topics = topics;
        s_->c.log = [](void *user, const char *topic, const char *line) {
            try {
                static_cast<state *>(user)->log(topic, line);
            } catch (...) {
                /* No exception may pass through C; a line of log is lost. */
            }
        };
        s_->c.log_user = s_.get();
        s_->c.log_topics = s_->topics.c_str();
        return *this;
    }
    environment &limit(std::uint64_t sinter_limits::*field, std::uint64_t value)
    {
        s_->limits.*field = value;
        s_->c.limits = &s_->limits;
        return *this;
    }
    environment &use(const plugins &registry)
    {
        s_->registry = registry.share();
        s_->c.plugins = s_->registry.get();
        return *this;
    }
    const sinter_env_options *get() const { return &s_->c; }
    std::shared_ptr<const void> share() const { return s_; }

private:
    struct state {
        sinter_env_options c = SINTER_ENV_OPTIONS;
        log_function       log;
        std::string        topics;
        sinter_limits      limits = {};
        std::shared_ptr<sinter_plugins> registry;
    };
    std::shared_ptr<state> s_;
};

/* The environment of all options and networks that are given none. Set it before they are made, and before other
 * threads use the library. */
inline standard::optional<environment> &process_environment()
{
    static standard::optional<environment> e;
    return e;
}

/* A log for the whole process: that of everything which has no environment of its own. */
inline void log_to(environment::log_function f, const std::string &topics = "all")
{
    process_environment().emplace();
    process_environment()->log(std::move(f), topics);
}

/* Options of one call: C is the C struct, whose fields `options->field` reaches; Row lists the options that have a
 * name. Strings that set() gives are kept. */
template <class Self, class C, const sinter_option *(*Row)(std::uint32_t)> class options {
public:
    /* set("tune", "off"), set("allow", "fp16,bf16"). Throws INVALID_ARG: no such option, no such value. */
    Self &set(const std::string &name, const std::string &value)
    {
        for (std::uint32_t i = 0; const sinter_option *row = Row(i); i++) {
            if (name != row->name) continue;
            kept_.push_back(std::make_shared<std::string>(value));
            call(sinter_option_set, row, &c_, kept_.back()->c_str());
            return static_cast<Self &>(*this);
        }
        throw error(SINTER_INVALID_ARG, "there is no option '" + name + "'");
    }
    Self &use(const environment &e)
    {
        env_ = e;
        if constexpr (has_environment<C>::value) c_.env = env_->get();
        return static_cast<Self &>(*this);
    }
    C       *operator->() { return &c_; }
    const C *get() const { return &c_; }
    std::shared_ptr<const void> environment_share() const { return env_ ? env_->share() : nullptr; }

protected:
    explicit options(const C &initial) : c_(initial)
    {
        if (has_environment<C>::value && process_environment()) use(*process_environment());
    }
    /* Has T a field `env` of this type? Without std::void_t, for C++14. */
    template <class T, class = const sinter_env_options *> struct has_environment : std::false_type {};
    template <class T> struct has_environment<T, decltype(T::env)> : std::true_type {};
    C c_;
    standard::optional<environment> env_;
    std::list<std::shared_ptr<std::string>> kept_;
};

struct range {
    std::string input;
    dims        min, opt, max;
};
using ranges = std::vector<range>;        /* a profile */
using inputs = std::map<std::string, tensor>;

class build_options : public options<build_options, sinter_build_options, sinter_build_option> {
public:
    build_options() : options(SINTER_BUILD_OPTIONS) {}
    build_options &add(const ranges &p) { profiles.push_back(p); return *this; }

    std::vector<ranges>  profiles;
    std::vector<inputs>  samples;       /* data of several runs, on which narrower types are measured */
    inputs               values;        /* inputs that never change */
    std::vector<std::pair<std::string, std::string>> states;    /* input and output that stay in the context */
    std::vector<std::pair<std::string, std::string>> equal;     /* { "T", "P+S" } */
    std::vector<std::string> replaceable;   /* with refittable: initializers that can be replaced; none: all */
    std::function<bool(standard::string_view phase, double done)> progress;  /* false: the build is cancelled */
    sinter_build_report *report = nullptr;
};

/* What the C API reads of build_options, while one call lasts. */
class lowered_options {
public:
    explicit lowered_options(const build_options &o) : c(*o.get()), progress_(o.progress)
    {
        ranges_.reserve(o.profiles.size());
        for (const ranges &p : o.profiles) {
            ranges_.emplace_back();
            for (const range &r : p) ranges_.back().push_back(lower(r));
            profiles_.push_back({ ranges_.back().data(), static_cast<std::uint32_t>(ranges_.back().size()) });
        }
        samples_of_.reserve(o.samples.size());
        for (const inputs &s : o.samples) {
            samples_of_.push_back(lower(s));
            samples_.push_back({ samples_of_.back().data(), static_cast<std::uint32_t>(s.size()) });
        }
        values_ = lower(o.values);
        for (const auto &s : o.states) states_.push_back({ s.first.c_str(), s.second.c_str() });
        for (const auto &e : o.equal) equal_.push_back({ e.first.c_str(), e.second.c_str() });
        for (const std::string &name : o.replaceable) replaceable_.push_back(name.c_str());
        if (!replaceable_.empty()) put(replaceable_, c.replaceable, c.replaceable_count);
        if (!profiles_.empty()) put(profiles_, c.profile, c.profile_count);
        if (!samples_.empty()) put(samples_, c.sample, c.sample_count);
        if (!values_.empty()) put(values_, c.value, c.value_count);
        if (!states_.empty()) put(states_, c.state, c.state_count);
        if (!equal_.empty()) put(equal_, c.equal, c.equal_count);
        if (o.report) c.report = o.report;
        if (!progress_) return;
        c.user = this;
        c.progress = [](void *user, const char *phase, double done) -> int {
            try {
                return !static_cast<lowered_options *>(user)->progress_(phase, done);
            } catch (...) {
                return 1;
            }
        };
    }
    lowered_options(const lowered_options &) = delete;
    lowered_options &operator=(const lowered_options &) = delete;
    sinter_build_options c;

private:
    static sinter_shape_range lower(const range &r)
    {
        const std::size_t rank = r.min.size();
        if (rank > SINTER_RANK_MAX || r.opt.size() != rank || r.max.size() != rank)
            throw error(SINTER_INVALID_ARG, "the shapes of '" + r.input + "' differ in rank, or it is above " +
                                                std::to_string(+SINTER_RANK_MAX));
        sinter_shape_range made = {};
        made.input = r.input.c_str();
        made.rank = static_cast<std::uint32_t>(rank);
        for (std::size_t i = 0; i < rank; i++) {
            made.min[i] = r.min[i];
            made.opt[i] = r.opt[i];
            made.max[i] = r.max[i];
        }
        return made;
    }
    static std::vector<sinter_input_value> lower(const inputs &from)
    {
        std::vector<sinter_input_value> made;
        for (const auto &v : from) made.push_back({ v.first.c_str(), v.second.get() });
        return made;
    }
    template <class T> static void put(const std::vector<T> &from, const T *&to, std::uint32_t &count)
    {
        to = from.data();
        count = static_cast<std::uint32_t>(from.size());
    }
    std::function<bool(standard::string_view, double)> progress_;
    std::vector<std::vector<sinter_shape_range>>  ranges_;
    std::vector<std::vector<sinter_input_value>>  samples_of_;
    std::vector<sinter_profile>     profiles_;
    std::vector<sinter_sample>      samples_;
    std::vector<sinter_input_value> values_;
    std::vector<sinter_state>       states_;
    std::vector<sinter_dim_equal>   equal_;
    std::vector<const char *>       replaceable_;
};

/* ---- bytes of an engine ---- */

class buffer {
public:
    buffer() : c_() {}
    buffer(buffer &&from) noexcept : c_(from.c_) { from.c_ = sinter_buffer(); }
    buffer &operator=(buffer &&from) noexcept
    {
        std::swap(c_, from.c_);
        return *this;
    }
    ~buffer() { sinter_buffer_free(&c_); }
    const void *data() const { return c_.data; }
    std::size_t size() const { return c_.size; }
    span<const unsigned char> bytes() const { return { static_cast<const unsigned char *>(c_.data), c_.size }; }
    void save(const std::string &path) const { call(sinter_buffer_save, &c_, path.c_str()); }
    sinter_buffer *get() { return &c_; }

private:
    sinter_buffer c_;
};

/* From an ONNX file, or its bytes, to the bytes of an engine. */
inline buffer build(const std::string &path, const build_options &o = build_options())
{
    buffer made;
    const lowered_options l(o);
    call(sinter_build_file, path.c_str(), &l.c, made.get());
    return made;
}
inline buffer build(const void *model, std::size_t size, const build_options &o = build_options())
{
    buffer made;
    const lowered_options l(o);
    call(sinter_build_memory, model, size, &l.c, made.get());
    return made;
}
/* From file to file: the engine is never in memory as a whole. The result is its size in bytes. */
inline std::uint64_t build_to(const std::string &path, const std::string &engine,
                              const build_options &o = build_options())
{
    std::uint64_t size = 0;
    const lowered_options l(o);
    call(sinter_build_save, path.c_str(), &l.c, engine.c_str(), &size);
    return size;
}

class simplify_options : public options<simplify_options, sinter_simplify_options, sinter_simplify_option> {
public:
    simplify_options() : options(SINTER_SIMPLIFY_OPTIONS) {}
};
inline void simplify(const std::string &path, const std::string &to, const simplify_options &o = simplify_options())
{
    call(sinter_simplify_file, path.c_str(), o.get(), to.c_str());
}

} // namespace sinter

#include "engine.hpp"
#include "network.hpp"

#endif
