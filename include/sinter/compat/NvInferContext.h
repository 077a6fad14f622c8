/* SPDX-License-Identifier: Apache-2.0 */
/* NvInferContext.h - IExecutionContext. Included by NvInferRuntime.h. */
#ifndef NV_INFER_CONTEXT_H
#define NV_INFER_CONTEXT_H

#include "NvInferRuntime.h"

#include <set>

namespace nvinfer1 {

/* What one caller runs an engine with. On the CPU device pointers are host pointers, and runs end before calls return.
 */
class IExecutionContext : public detail::reporter, public detail::context_bindings<IExecutionContext> {
  public:
    IExecutionContext(ICudaEngine *engine, sinter_memory memory)
        : reporter(engine->getLogger(), engine->getErrorRecorder()), engine_(engine), memory_(memory)
    {
        place_ = engine->engine().device() == "cuda" ? SINTER_PLACE_DEVICE : SINTER_PLACE_HOST;
        set_batch(1);
        context(nullptr); /* memory is there from the start */
    }
    /* For the next runs of an engine with an implicit batch. */
    void set_batch(int32_t batch)
    {
        if (!engine_->hasImplicitBatchDimension()) return;
        for (sinter::io const &io : engine_->io()) {
            if (!io.is_input) continue;
            sinter::dims &shape = shapes_[io.name] = io.shape;
            shape[0] = batch;
        }
    }

    ICudaEngine const &getEngine() const noexcept { return *engine_; }
    void setName(char const *name) noexcept { name_ = name; }
    char const *getName() const noexcept { return name_.c_str(); }
    /* A new object, which the caller deletes. */
    IRuntimeConfig *getRuntimeConfig() const noexcept
    {
        auto *made = new (std::nothrow) IRuntimeConfig();
        if (made)
            made->setExecutionContextAllocationStrategy(
                memory_ == SINTER_MEMORY_USER     ? ExecutionContextAllocationStrategy::kUSER_MANAGED
                : memory_ == SINTER_MEMORY_STATIC ? ExecutionContextAllocationStrategy::kSTATIC
                                                  : ExecutionContextAllocationStrategy::kON_PROFILE_CHANGE);
        return made;
    }
    /* An engine runs on one device. */
    bool setCommunicator(void *communicator) noexcept
    {
        if (communicator) fail(SINTER_UNSUPPORTED, "an engine runs on one device, so it takes no communicator");
        return !communicator;
    }
    void setDebugSync(bool) noexcept {}
    bool getDebugSync() const noexcept { return false; }

    /* ---- profiles and shapes ---- */
    bool setOptimizationProfileAsync(int32_t profile, cudaStream_t) noexcept
    {
        return attempt([&] {
            if (profile < 0 || profile >= engine_->getNbOptimizationProfiles())
                throw sinter::error(SINTER_INVALID_ARG, "the engine has no optimization profile " +
                                                            std::to_string(profile) + ": " +
                                                            std::to_string(engine_->getNbOptimizationProfiles()) +
                                                            " profiles are counted from 0");
            if (profile == profile_) return;
            profile_ = profile;
            forget();
            shapes_.clear();
            context(nullptr);
        });
    }
    int32_t getOptimizationProfile() const noexcept { return profile_; }
    bool setInputShape(char const *name, Dims const &dims) noexcept
    {
        return attempt([&] {
            const std::string known = name ? name : "";
            detail::layout const *l = engine_->layout_of(name);
            if (l && dims.nbDims <= l->row->behind)
                throw sinter::error(SINTER_INVALID_ARG, "input '" + known + "' of " + std::to_string(dims.nbDims) +
                                                            " axes, the format k" + l->row->name + " has at least " +
                                                            std::to_string(l->row->behind + 1));
            const sinter::dims shape = l ? l->stored(detail::from(dims)) : detail::from(dims);
            context(nullptr).set_input_shape(name, shape);
            shapes_[name] = shape;
        });
    }
    Dims getTensorShape(char const *name) const noexcept
    {
        return guard(ICudaEngine::none(), [&] {
            sinter::io const &io = engine_->known(name);
            return engine_->shown(io.name, stored_shape(io));
        });
    }
    Dims getTensorStrides(char const *name) const noexcept
    {
        if (detail::layout const *l = engine_->layout_of(name))
            return guard(ICudaEngine::none(), [&] {
                const Dims made = detail::to_dims(l->strides(stored_shape(engine_->known(name))));
                return detail::hide_batch(made, engine_->hasImplicitBatchDimension());
            });
        Dims made = getTensorShape(name);
        int64_t stride = 1;
        for (int32_t i = made.nbDims - 1; i >= 0; i--) {
            const int64_t size = made.d[i];
            made.d[i] = static_cast<dim_size>(stride);
            stride *= size > 0 ? size : 1;
        }
        return made;
    }
    /* How many inputs have no shape, or lack values that decide one; their names. -1: sizes contradict each other. */
    int32_t inferShapes(int32_t room, char const **names) const noexcept
    {
        return guard(-1, [&] {
            int32_t count = 0;
            for (sinter::io const &io : engine_->io()) {
                if (!io.is_input || (has_shape(io) && has_values(io))) continue;
                if (count < room && names) names[count] = io.name.c_str();
                count++;
            }
            for (sinter::io const &io : engine_->io())
                if (count == 0 && !io.is_input) (void)shaped().output_shape(io.name);
            return count;
        });
    }
    bool allInputDimensionsSpecified() const noexcept
    {
        return guard(false, [&] { return every_input([&](sinter::io const &io) { return has_shape(io); }); });
    }
    bool allInputShapesSpecified() const noexcept
    {
        return guard(false, [&] { return every_input([&](sinter::io const &io) { return has_values(io); }); });
    }
    int64_t getMaxOutputSize(char const *name) const noexcept
    {
        return guard(int64_t(-1), [&] { return static_cast<int64_t>(shaped().max_output_size(name)); });
    }

    /* ---- addresses ---- */
    bool setTensorAddress(char const *name, void *data) noexcept
    {
        return attempt([&] { addresses_[engine_->known(name).name] = data; });
    }
    /* Values of a shape tensor, as programs for TensorRT 6 to 9 give them: they are copied, and go before the bindings
     * of a run. */
    bool setInputShapeBinding(int32_t index, int32_t const *data) noexcept
    {
        return attempt([&] {
            sinter::io const &io = engine_->known(engine_->tensor_of(index));
            const Dims dims = getTensorShape(io.name.c_str());
            int64_t count = 1;
            for (int32_t i = 0; i < dims.nbDims; i++) count *= dims.d[i];
            if (!io.is_input || !data || count < 0)
                throw sinter::error(SINTER_INVALID_ARG,
                                    "'" + io.name + "' is no input of a known shape, or has no values");
            std::vector<int64_t> &to = shape_values_[io.name];
            to.assign(data, data + count);
            if (io.dtype != SINTER_DTYPE_I64)
                for (int64_t i = 0; i < count; i++) reinterpret_cast<int32_t *>(to.data())[i] = data[i];
            addresses_[io.name] = to.data();
        });
    }
    bool getShapeBinding(int32_t index, int32_t *data) const noexcept
    {
        char const *const name = engine_->tensor_of(index);
        const auto found = name ? shape_values_.find(name) : shape_values_.end();
        if (found == shape_values_.end()) return false;
        const bool is_wide = engine_->getTensorDataType(name) == DataType::kINT64;
        for (size_t i = 0; i < found->second.size(); i++)
            data[i] = is_wide ? static_cast<int32_t>(found->second[i])
                              : reinterpret_cast<int32_t const *>(found->second.data())[i];
        return true;
    }
    bool setInputTensorAddress(char const *name, void const *data) noexcept
    {
        return setTensorAddress(name, const_cast<void *>(data));
    }
    bool setOutputTensorAddress(char const *name, void *data) noexcept { return setTensorAddress(name, data); }
    void const *getTensorAddress(char const *name) const noexcept
    {
        const auto set = addresses_.find(name);
        return set == addresses_.end() ? nullptr : set->second;
    }
    void *getOutputTensorAddress(char const *name) const noexcept { return const_cast<void *>(getTensorAddress(name)); }
    bool setOutputAllocator(char const *name, IOutputAllocator *allocator) noexcept
    {
        return attempt([&] { allocators_[engine_->known(name).name] = allocator; });
    }
    IOutputAllocator *getOutputAllocator(char const *name) const noexcept
    {
        const auto set = allocators_.find(name);
        return set == allocators_.end() ? nullptr : set->second;
    }

    /* ---- runs ---- */
    bool enqueueV3(cudaStream_t stream) noexcept
    {
#ifdef SINTER_HOST_CUDA
        if (stream && stream->capture) {
            const std::map<std::string, void *> addresses = addresses_;
            stream->capture->steps.push_back(
                [this, addresses] { return run(addresses, nullptr, true) ? cudaSuccess : cudaErrorUnknown; });
            return true;
        }
#endif
        return run(addresses_, stream, false);
    }
    /* An address for each input and output, in the engine's order. */
    bool executeV2(void *const *bindings) noexcept { return run(bound(bindings), nullptr, true); }
    bool enqueueV2(void *const *bindings, cudaStream_t stream, cudaEvent_t *) noexcept
    {
        return run(bound(bindings), stream, false);
    }

    /* ---- debug tensors: the listener gets those whose state is on, after each run ---- */
    bool setDebugListener(IDebugListener *listener) noexcept
    {
        listener_ = listener;
        return true;
    }
    IDebugListener *getDebugListener() const noexcept { return listener_; }
    bool setTensorDebugState(char const *name, bool is_on) noexcept
    {
        return attempt([&] {
            if (!engine_->isDebugTensor(name))
                throw sinter::error(SINTER_INVALID_ARG, std::string("the engine has no debug tensor '") +
                                                            (name ? name : "") + "': INetworkDefinition::markDebug");
            if (is_on) debugged_.insert(name);
            else debugged_.erase(name);
        });
    }
    bool setAllTensorsDebugState(bool is_on) noexcept
    {
        debugged_.clear();
        for (sinter::io const &io : engine_->debug())
            if (is_on) debugged_.insert(io.name.substr(sizeof detail::DEBUG_MARK - 1));
        return true;
    }
    bool getDebugState(char const *name) const noexcept { return name && debugged_.count(name) != 0; }
    /* Of the tensors that INetworkDefinition::markUnfusedTensorsAsDebugTensors has found, all at once. */
    bool setUnfusedTensorsDebugState(bool is_on) noexcept
    {
        hands_unfused_ = is_on;
        return true;
    }
    bool getUnfusedTensorsDebugState() const noexcept { return hands_unfused_; }

    /* ---- profiling ---- */
    void setProfiler(IProfiler *profiler) noexcept
    {
        profiler_ = profiler;
        forget();
        (void)attempt([&] { context(nullptr); });
    }
    IProfiler *getProfiler() const noexcept { return profiler_; }
    void setEnqueueEmitsProfile(bool is_on) noexcept { emits_ = is_on; }
    bool getEnqueueEmitsProfile() const noexcept { return emits_; }
    bool reportToProfiler() const noexcept
    {
        if (!profiler_ || !last_) return false;
        return attempt([&] {
            std::vector<std::pair<uint64_t, uint64_t>> &before = reported_;
            const std::vector<sinter_step_time> steps = last_->steps();
            before.resize(steps.size());
            std::set<std::string> taken;
            for (size_t i = 0; i < steps.size(); i++) {
                const std::string name = layer_name(*steps[i].name ? steps[i].name : steps[i].kernel, taken);
                if (steps[i].runs > before[i].first)
                    profiler_->reportLayerTime(
                        name.c_str(),
                        static_cast<float>(static_cast<double>(steps[i].total_ns - before[i].second) / 1e6));
                before[i] = { steps[i].runs, steps[i].total_ns };
            }
        });
    }

    /* Activation memory of the program, where the context was made without device memory. */
    void setDeviceMemory(void *memory) noexcept
    {
        setDeviceMemoryV2(memory, static_cast<int64_t>(engine_->getDeviceMemorySize()));
    }
    void setDeviceMemoryV2(void *memory, int64_t size) noexcept
    {
        (void)attempt([&] { context(nullptr).set_memory(memory, static_cast<size_t>(size)); });
        given_ = { memory, static_cast<size_t>(size) };
    }
    size_t updateDeviceMemorySizeForShapes() noexcept
    {
        return guard(size_t(0), [&] { return shaped().memory_size(); });
    }
    /* A GPU's engine uses branches of its own streams; streams of the program are not needed, and stay as they are. */
    void setAuxStreams(cudaStream_t *, int32_t) noexcept {}
    bool setInputConsumedEvent(cudaEvent_t event) noexcept
    {
        consumed_ = event;
        return true;
    }
    cudaEvent_t getInputConsumedEvent() const noexcept { return consumed_; }
    /* Kept: activation memory is the library's, or what setDeviceMemory() gives. */
    bool setTemporaryStorageAllocator(IGpuAllocator *allocator) noexcept
    {
        scratch_ = allocator;
        return true;
    }
    IGpuAllocator *getTemporaryStorageAllocator() const noexcept { return scratch_; }
    void setPersistentCacheLimit(size_t) noexcept {}
    size_t getPersistentCacheLimit() const noexcept { return 0; }
    bool setNvtxVerbosity(ProfilingVerbosity) noexcept { return true; }
    ProfilingVerbosity getNvtxVerbosity() const noexcept { return ProfilingVerbosity::kLAYER_NAMES_ONLY; }
    void destroy() noexcept { delete this; }

    /* ---- for IEngineInspector ---- */
    std::string layers(sinter_print format, uint32_t index) const { return shaped().print_layers(format, index); }

  private:
    /* As the inspector names a layer: a name that is taken gets " #2" behind it. */
    std::string layer_name(std::string const &first, std::set<std::string> &taken) const
    {
        const std::string suffix = profile_ ? " [profile " + std::to_string(profile_) + "]" : "";
        std::string name = first + suffix;
        for (int k = 2; !taken.insert(name).second; k++) name = first + " #" + std::to_string(k) + suffix;
        return name;
    }
    /* The sizes in memory of an input or output. */
    sinter::dims stored_shape(sinter::io const &io) const
    {
        if (!io.is_input) return shaped().output_shape(io.name);
        const auto set = shapes_.find(io.name);
        return set == shapes_.end() ? io.shape : set->second;
    }
    bool has_shape(sinter::io const &io) const { return is_fixed(io) || shapes_.count(io.name); }
    bool has_values(sinter::io const &io) const
    {
        return !engine_->isShapeInferenceIO(io.name.c_str()) || getTensorAddress(io.name.c_str());
    }
    template <class F> bool every_input(F f) const
    {
        for (sinter::io const &io : engine_->io())
            if (io.is_input && !f(io)) return false;
        return true;
    }
    /* What is at an input's address. */
    sinter::view data_of(sinter::io const &io, void *data) const
    {
        const auto set = shapes_.find(io.name);
        const bool is_host = engine_->getTensorLocation(io.name.c_str()) == TensorLocation::kHOST;
        return sinter::view(io.dtype, data, set == shapes_.end() ? io.shape : set->second,
                            is_host ? SINTER_PLACE_HOST : place_);
    }
    void forget() const
    {
        contexts_.clear();
        last_ = nullptr;
    }
    static bool is_fixed(sinter::io const &io)
    {
        for (const int64_t d : io.shape)
            if (d < 0) return false;
        return true;
    }
    /* The context of a stream: on the CPU, and where everything waits, there is one. */
    sinter::context &context(cudaStream_t stream) const
    {
        if (generation_ != engine_->generation()) forget();
        generation_ = engine_->generation();
        if (place_ == SINTER_PLACE_HOST) stream = nullptr;
        const auto found = contexts_.find(stream);
        if (found != contexts_.end()) return found->second;
        sinter::context_options o;
        o->profile = static_cast<uint32_t>(profile_);
        o->timing = profiler_ != nullptr;
        o->stream = stream;
        o->memory = memory_;
        sinter::context &made = contexts_.emplace(stream, sinter::context(engine_->engine(), o)).first->second;
        for (auto const &s : shapes_) made.set_input_shape(s.first, s.second);
        if (given_.first) made.set_memory(given_.first, given_.second);
        reported_.clear();
        return made;
    }
    /* The context with the shapes of all inputs that have one. */
    sinter::context &shaped() const
    {
        sinter::context &c = context(nullptr);
        for (sinter::io const &io : engine_->io())
            if (io.is_input && is_fixed(io)) c.set_input_shape(io.name, io.shape);
        for (auto const &s : shapes_) c.set_input_shape(s.first, s.second);
        for (sinter::io const &io : engine_->io())
            if (io.is_input && has_shape(io) && engine_->isShapeInferenceIO(io.name.c_str()) && has_values(io))
                c.set_input(io.name, data_of(io, addresses_.at(io.name)));
        return c;
    }
    std::map<std::string, void *> bound(void *const *bindings) const
    {
        std::map<std::string, void *> made;
        size_t i = engine_->has_bindings_of_profiles() ? engine_->io().size() * static_cast<size_t>(profile_) : 0;
        for (sinter::io const &io : engine_->io()) made[io.name] = bindings[i++];
        for (auto const &set : shape_values_) made[set.first] = const_cast<int64_t *>(set.second.data());
        return made;
    }
    bool run(std::map<std::string, void *> const &addresses, cudaStream_t stream, bool waits) noexcept
    {
        return attempt([&] {
            sinter::context &c = context(stream);
            for (sinter::io const &io : engine_->io()) {
                const auto at = addresses.find(io.name);
                void *const data = at == addresses.end() ? nullptr : at->second;
                if (io.is_input) {
                    if (!has_shape(io))
                        throw sinter::error(SINTER_INVALID_ARG,
                                            "the shape of '" + io.name + "' is not set: setInputShape");
                    const sinter::view v = data_of(io, data);
                    if (!data && v.size_bytes())
                        throw sinter::error(SINTER_INVALID_ARG,
                                            "input '" + io.name + "' has no address: setTensorAddress");
                    c.set_input(io.name, v);
                    continue;
                }
                IOutputAllocator *const allocator = getOutputAllocator(io.name.c_str());
                if (allocator) {
                    sink &to = sinks_[io.name] = { allocator, engine_ };
                    const sinter_output_allocator a = { &to, resize, notify };
                    c.set_output_allocator(io.name, &a, place_);
                } else if (!data) {
                    throw sinter::error(SINTER_INVALID_ARG,
                                        "output '" + io.name + "' has no address: setTensorAddress");
                }
            }
            for (sinter::io const &io : engine_->io()) {
                if (io.is_input || getOutputAllocator(io.name.c_str())) continue;
                const size_t size = c.max_output_size(io.name);
                c.set_output(io.name, size ? addresses.at(io.name) : nullptr, size, place_);
            }
            const bool hands_over = listener_ && (!debugged_.empty() || hands_unfused_);
            if (waits || place_ == SINTER_PLACE_HOST || profiler_ || hands_over) {
                c.run();
            } else {
                const auto started = sinter::attempt([&] { sinter::call(sinter_context_run_async, c.get()); });
                if (started.status == SINTER_UNSUPPORTED) c.run();
                else if (!started) throw sinter::error(started.status, started.message);
            }
            last_ = &c;
            if (hands_over) hand_debugged(c, stream);
            if (profiler_ && emits_) reportToProfiler();
        });
    }
    void hand_debugged(sinter::context &c, cudaStream_t stream) const
    {
        for (sinter::io const &io : engine_->debug()) {
            const std::string name = io.name.substr(sizeof detail::DEBUG_MARK - 1);
            if (debugged_.count(name)) hand_over(c, io, name, stream);
        }
        if (!hands_unfused_) return;
        for (sinter::io const &io : engine_->unfused())
            hand_over(c, io, io.name.substr(sizeof detail::UNFUSED_MARK - 1), stream);
    }
    void hand_over(sinter::context &c, sinter::io const &io, std::string const &name, cudaStream_t stream) const
    {
        const sinter::view v = c.output(io.name);
        const TensorLocation place = v.place() == SINTER_PLACE_DEVICE || place_ == SINTER_PLACE_HOST
                                         ? TensorLocation::kDEVICE
                                         : TensorLocation::kHOST;
        detail::lent memory;
        memory.add(v.data(), v.size_bytes());
        if (!listener_->processDebugTensor(v.data(), place, detail::from(io.dtype), detail::to_dims(v.shape()),
                                           name.c_str(), stream))
            throw sinter::error(SINTER_CANCELLED, "the debug listener refused tensor '" + name + "'");
    }
    /* What an output allocator is told, and through what. */
    struct sink {
        IOutputAllocator *allocator;
        ICudaEngine *engine;
    };
    static void *resize(void *user, const char *name, void *memory, size_t size, size_t align, void *stream)
    {
        return static_cast<sink *>(user)->allocator->reallocateOutputAsync(name, memory, size, align,
                                                                            static_cast<cudaStream_t>(stream));
    }
    static void notify(void *user, const char *name, const int64_t *dim, uint32_t rank)
    {
        sink const &to = *static_cast<sink *>(user);
        to.allocator->notifyShape(name, to.engine->shown(name, sinter::dims(dim, dim + rank)));
    }
    ICudaEngine *engine_;
    sinter_memory memory_;
    sinter_place place_;
    std::string name_;
    int32_t profile_ = 0;
    mutable uint64_t generation_ = 0;
    mutable std::map<cudaStream_t, sinter::context> contexts_;
    std::map<std::string, sinter::dims> shapes_;
    std::map<std::string, void *> addresses_;
    std::map<std::string, std::vector<int64_t>> shape_values_;
    std::map<std::string, IOutputAllocator *> allocators_;
    std::map<std::string, sink> sinks_;
    std::pair<void *, size_t> given_{ nullptr, 0 };
    IDebugListener *listener_ = nullptr;
    std::set<std::string> debugged_;
    bool hands_unfused_ = false;
    IGpuAllocator *scratch_ = nullptr;
    IProfiler *profiler_ = nullptr;
    bool emits_ = true;
    cudaEvent_t consumed_ = nullptr;
    mutable sinter::context *last_ = nullptr;
    mutable std::vector<std::pair<uint64_t, uint64_t>> reported_;
};

inline IExecutionContext *ICudaEngine::createExecutionContext(ExecutionContextAllocationStrategy strategy) noexcept
{
    const sinter_memory memory = strategy == ExecutionContextAllocationStrategy::kUSER_MANAGED ? SINTER_MEMORY_USER
                                 : strategy == ExecutionContextAllocationStrategy::kSTATIC     ? SINTER_MEMORY_STATIC
                                                                                               : SINTER_MEMORY_PROFILE;
    return guard(static_cast<IExecutionContext *>(nullptr), [&] { return new IExecutionContext(this, memory); });
}
inline IExecutionContext *ICudaEngine::createExecutionContext(IRuntimeConfig *config) noexcept
{
    return config ? createExecutionContext(config->getExecutionContextAllocationStrategy()) : nullptr;
}
inline IExecutionContext *ICudaEngine::createExecutionContextWithoutDeviceMemory() noexcept
{
    return createExecutionContext(ExecutionContextAllocationStrategy::kUSER_MANAGED);
}

} // namespace nvinfer1

#endif
