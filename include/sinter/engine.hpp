/* SPDX-License-Identifier: Apache-2.0 */
/* engine.hpp - engines and contexts of sinter.hpp, which includes this file. */
#ifndef SINTER_ENGINE_HPP
#define SINTER_ENGINE_HPP

#include "sinter.hpp"

namespace sinter {

class engine_options : public options<engine_options, sinter_engine_options, sinter_engine_option> {
public:
    engine_options() : options(SINTER_ENGINE_OPTIONS) {}
};

/* An input, an output or a state. */
struct io {
    std::string  name;
    bool         is_input;
    sinter_dtype dtype;
    dims         shape, min, opt, max;      /* shape: -1 where runs choose the size */
    std::vector<std::string> text;          /* sizes as expressions */
    std::int64_t value_min, value_max;      /* integers that are safe as indices */
};

/* An initializer that weights of an engine are made of. */
struct weight {
    std::string   name;
    sinter_dtype  dtype;
    std::uint64_t size;                     /* bytes */
    bool          is_fixed;                 /* it cannot be replaced */
};

/* A loaded engine. Copies are references to one engine; any number of threads may use it. */
class engine {
public:
    engine() = default;
    static engine load(const std::string &path, const engine_options &o = engine_options())
    {
        sinter_engine *made = nullptr;
        call(sinter_engine_load, path.c_str(), o.get(), &made);
        return engine(made, o);
    }
    static engine load(const void *bytes, std::size_t size, const engine_options &o = engine_options())
    {
        sinter_engine *made = nullptr;
        call(sinter_engine_load_memory, bytes, size, o.get(), &made);
        return engine(made, o);
    }
    static engine load(const buffer &bytes, const engine_options &o = engine_options())
    {
        return load(bytes.data(), bytes.size(), o);
    }
    /* Builds an ONNX file and loads the engine. */
    static engine build(const std::string &path, const build_options &b = build_options(),
                        const engine_options &o = engine_options())
    {
        return load(sinter::build(path, b), o);
    }

    std::string   name() const { return sinter_engine_name(get()); }
    std::string   device() const { return sinter_engine_device(get()); }
    std::uint32_t profile_count() const { return sinter_engine_profile_count(get()); }
    std::vector<io> values(std::uint32_t profile = 0) const
    {
        std::vector<io> made;
        for (std::uint32_t i = 0; i < sinter_engine_io_count(get()); i++)
            made.push_back(one(sinter_engine_io, i, profile));
        return made;
    }
    std::vector<io> inputs(std::uint32_t profile = 0) const { return some(profile, true); }
    std::vector<io> outputs(std::uint32_t profile = 0) const { return some(profile, false); }
    std::vector<io> states(std::uint32_t profile = 0) const
    {
        std::vector<io> made;
        for (std::uint32_t i = 0; i < sinter_engine_state_count(get()); i++)
            made.push_back(one(sinter_engine_state, i, profile));
        return made;
    }
    sinter_engine_info info() const
    {
        sinter_engine_info made = SINTER_ENGINE_INFO;
        call(sinter_engine_describe, get(), &made);
        return made;
    }
    sinter_profile_info info(std::uint32_t profile) const
    {
        sinter_profile_info made = SINTER_PROFILE_INFO;
        call(sinter_engine_describe_profile, get(), profile, &made);
        return made;
    }
    sinter_memory_info memory() const
    {
        sinter_memory_info made = SINTER_MEMORY_INFO;
        call(sinter_engine_memory, get(), &made);
        return made;
    }
    /* Bytes of activation memory for any shape of a profile. */
    std::size_t memory_size(std::uint32_t profile = SINTER_ALL_PROFILES) const
    {
        return sinter_engine_memory_size(get(), profile);
    }
    /* The report of `sinter inspect`. */
    std::string print(sinter_print format = SINTER_PRINT_TEXT) const
    {
        std::string text;
        call(sinter_engine_print, get(), format, append, &text);
        return text;
    }

    /* The steps as TensorRT's inspector has layers: all, or one. */
    std::string print_layers(sinter_print format, std::uint32_t index = SINTER_ALL_LAYERS) const
    {
        std::string text;
        call(sinter_engine_print_layers, get(), index, format, append, &text);
        return text;
    }
    bool is_stripped() const { return sinter_engine_is_stripped(get()) != 0; }
    sinter_detail detail() const { return sinter_engine_detail(get()); }

    std::vector<weight> weights() const
    {
        std::vector<weight> made;
        call(sinter_engine_weights, get(), note_weight, &made);
        return made;
    }
    /* What refit() with weights of these names would want, too. */
    std::vector<weight> missing_weights(const std::vector<const char *> &names) const
    {
        std::vector<weight> made;
        call(sinter_engine_weights_missing, get(), names.data(), static_cast<std::uint32_t>(names.size()), note_weight,
             &made);
        return made;
    }
    /* The bytes of the engine with other weights, or without any. */
    buffer refit(const std::map<std::string, tensor> &weights) const
    {
        std::vector<sinter_weight> list;
        for (const auto &w : weights) list.push_back({ w.first.c_str(), w.second.get() });
        buffer made;
        call(sinter_engine_refit, get(), list.data(), static_cast<std::uint32_t>(list.size()), made.get());
        return made;
    }
    buffer refit(const std::string &onnx) const
    {
        buffer made;
        call(sinter_engine_refit_file, get(), onnx.c_str(), made.get());
        return made;
    }
    buffer strip() const
    {
        buffer made;
        call(sinter_engine_strip, get(), made.get());
        return made;
    }

    /* `size` bytes on the host, pinned, or on the device; freed with the last copy of the pointer. */
    std::shared_ptr<void> alloc(sinter_place place, std::size_t size) const
    {
        void *made = nullptr;
        call(sinter_engine_alloc, get(), place, size, &made);
        return std::shared_ptr<void>(made, [e = *this, place, size](void *p) {
            sinter_engine_free(e.get(), place, p, size);
        });
    }
    void copy(void *to, sinter_place to_place, const void *from, sinter_place from_place, std::size_t size) const
    {
        call(sinter_engine_copy, get(), to, to_place, from, from_place, size);
    }
    void set_weight_budget(std::uint64_t bytes) const { call(sinter_engine_set_weight_budget, get(), bytes); }

    sinter_engine *get() const { return c_.get(); }
    explicit operator bool() const { return c_ != nullptr; }

private:
    static int note_weight(void *user, const sinter_weight_info *w)
    {
        static_cast<std::vector<weight> *>(user)->push_back({ w->name, w->dtype, w->size, w->is_fixed != 0 });
        return 0;
    }
    friend class context;
    engine(sinter_engine *made, const engine_options &o)
        : c_(made, [env = o.environment_share()](sinter_engine *e) { sinter_engine_release(e); })
    {
    }
    static void append(void *user, const char *text, std::size_t length)
    {
        static_cast<std::string *>(user)->append(text, length);
    }
    template <class F> io one(F function, std::uint32_t index, std::uint32_t profile) const
    {
        sinter_io c;
        check(function(get(), index, profile, &c), "there is no such profile");
        io made{ c.name, c.is_input != 0, c.dtype, {}, {}, {}, {}, {}, c.value_min, c.value_max };
        for (std::uint32_t i = 0; i < c.rank; i++) {
            made.shape.push_back(c.dim[i]);
            made.min.push_back(c.min[i]);
            made.opt.push_back(c.opt[i]);
            made.max.push_back(c.max[i]);
            made.text.emplace_back(c.dim_text[i]);
        }
        return made;
    }
    std::vector<io> some(std::uint32_t profile, bool is_input) const
    {
        std::vector<io> made;
        for (io &v : values(profile))
            if (v.is_input == is_input) made.push_back(std::move(v));
        return made;
    }
    std::shared_ptr<sinter_engine> c_;
};

class context_options {
public:
    sinter_context_options *operator->() { return &c_; }
    const sinter_context_options *get() const { return &c_; }
    context_options &profile(std::uint32_t index) { c_.profile = index; return *this; }

private:
    sinter_context_options c_ = SINTER_CONTEXT_OPTIONS;
};

/* What one caller needs to run an engine. One thread at a time. It moves, and keeps its engine. */
class context {
public:
    explicit context(const engine &e, const context_options &o = context_options()) : engine_(e)
    {
        sinter_context *made = nullptr;
        call(sinter_context_create, e.get(), o.get(), &made);
        c_ = std::shared_ptr<sinter_context>(made, [e](sinter_context *c) { sinter_context_destroy(c); });
    }
    context(context &&) = default;
    context &operator=(context &&) = default;

    /* A view's memory must stay until it is replaced; a tensor's memory is kept. */
    void set_input(const std::string &name, const view &value)
    {
        call(sinter_context_set_input, get(), name.c_str(), value.get());
        kept_.erase(name);
    }
    void set_input(const std::string &name, const tensor &value)
    {
        set_input(name, static_cast<const view &>(value));
        kept_[name] = value.memory();
    }
    void set_input_shape(const std::string &name, const dims &shape)
    {
        call(sinter_context_set_input_shape, get(), name.c_str(), shape.data(),
             static_cast<std::uint32_t>(shape.size()));
    }
    void set_output(const std::string &name, void *data, std::size_t size, sinter_place place = SINTER_PLACE_HOST)
    {
        call(sinter_context_set_output, get(), name.c_str(), data, size, place);
    }
    void set_output_allocator(const std::string &name, const sinter_output_allocator *a,
                              sinter_place place = SINTER_PLACE_HOST)
    {
        call(sinter_context_set_output_allocator, get(), name.c_str(), a, place);
    }
    void set_profile(std::uint32_t profile) { call(sinter_context_set_profile, get(), profile); }
    void set_memory(void *data, std::size_t size) { call(sinter_context_set_memory, get(), data, size); }

    void run() { call(sinter_context_run, get()); }
    /* Starts a run. The future's get() waits and throws what the run throws. Inputs and outputs must stay as they are
     * until then, and the context must not be used. On a GPU the work is on the stream when the call returns; on the
     * CPU, and for engines with steps on the host, another thread runs. */
    std::future<void> run_async()
    {
        const std::shared_ptr<sinter_context> c = c_;
        if (engine_.device() != "cuda")
            return std::async(std::launch::async, [c] { call(sinter_context_run, c.get()); });
        const auto started = attempt([&] { call(sinter_context_run_async, c.get()); });
        if (started.status == SINTER_UNSUPPORTED)
            return std::async(std::launch::async, [c] { call(sinter_context_run, c.get()); });
        if (!started) throw error(started.status, started.message);
        return std::async(std::launch::deferred, [c] { call(sinter_context_wait, c.get()); });
    }
    void wait() { call(sinter_context_wait, get()); }
    bool is_done() { return sinter_context_is_done(get()) != 0; }
    /* Any thread may call it. */
    void cancel() { sinter_context_cancel(get()); }

    /* The result of the last run, in memory of the context or of set_output: valid until the next run. */
    view output(const std::string &name) const
    {
        sinter_tensor made;
        call(sinter_context_output, c_.get(), name.c_str(), &made);
        return view(made);
    }
    /* Sets the inputs, runs, and gives all outputs. */
    std::map<std::string, view> operator()(const inputs &in)
    {
        for (const auto &i : in) set_input(i.first, i.second);
        run();
        std::map<std::string, view> made;
        for (const io &o : engine_.outputs()) made.emplace(o.name, output(o.name));
        return made;
    }

    /* Shapes without a run: -1 where only the run can know. */
    dims output_shape(const std::string &name)
    {
        sinter_tensor made;
        call(sinter_context_output_shape, get(), name.c_str(), &made);
        return view(made).shape();
    }
    std::size_t max_output_size(const std::string &name)
    {
        std::size_t made = 0;
        call(sinter_context_max_output_size, get(), name.c_str(), &made);
        return made;
    }
    std::size_t memory_size()
    {
        std::size_t made = 0;
        call(sinter_context_memory_size, get(), &made);
        return made;
    }

    sinter_state_info state() const
    {
        sinter_state_info made;
        check(sinter_context_state(get(), &made), "state");
        return made;
    }
    void reset_state() { call(sinter_context_reset_state, get()); }
    void set_rows(std::int64_t rows) { call(sinter_context_set_rows, get(), rows); }

    /* engine::print_layers, with the sizes that the shapes of the inputs decide. */
    std::string print_layers(sinter_print format, std::uint32_t index = SINTER_ALL_LAYERS)
    {
        std::string text;
        call(sinter_context_print_layers, get(), index, format, engine::append, &text);
        return text;
    }
    /* Times of steps (options->timing). */
    std::vector<sinter_step_time> steps() const
    {
        std::vector<sinter_step_time> made(sinter_context_step_count(get()));
        for (std::uint32_t i = 0; i < made.size(); i++) check(sinter_context_step(get(), i, &made[i]), "step");
        return made;
    }
    sinter_run_time run_time() const
    {
        sinter_run_time made;
        check(sinter_context_run_time(get(), &made), "no run has ended, or its phases were not measured");
        return made;
    }

    const sinter::engine &engine() const { return engine_; }
    sinter_context *get() const { return c_.get(); }

private:
    sinter::engine engine_;
    std::shared_ptr<sinter_context> c_;
    std::map<std::string, std::shared_ptr<void>> kept_;
};

} // namespace sinter

#endif
