/* SPDX-License-Identifier: Apache-2.0 */
/* NvInferRuntime.h - IRuntime, ICudaEngine, IExecutionContext, IRefitter, IEngineInspector. */
#ifndef NV_INFER_RUNTIME_H
#define NV_INFER_RUNTIME_H

#include "NvInferBindings.h"
#include "NvInferFormats.h"
#include "NvInferPluginAdapter.h"

#include <mutex>
#include <set>

namespace nvinfer1 {

enum class EngineCapability : int32_t {
    kSTANDARD = 0, kDEFAULT = 0, kSAFETY = 1, kSAFE_GPU = 1, kDLA_STANDALONE = 2, kSAFE_DLA = 2
};
enum class ProfilingVerbosity : int32_t { kLAYER_NAMES_ONLY = 0, kDEFAULT = 0, kNONE = 1, kDETAILED = 2, kVERBOSE = 2 };
enum class LayerInformationFormat : int32_t { kONELINE = 0, kJSON = 1 };
enum class OptProfileSelector : int32_t { kMIN = 0, kOPT = 1, kMAX = 2 };
enum class ExecutionContextAllocationStrategy : int32_t { kSTATIC = 0, kON_PROFILE_CHANGE = 1, kUSER_MANAGED = 2 };
enum class HardwareCompatibilityLevel : int32_t { kNONE = 0, kAMPERE_PLUS = 1, kSAME_COMPUTE_CAPABILITY = 2 };
enum class SerializationFlag : int32_t { kEXCLUDE_WEIGHTS = 0, kEXCLUDE_LEAN_RUNTIME = 1, kINCLUDE_REFIT = 2 };
enum class EngineStat : int32_t { kTOTAL_WEIGHTS_SIZE = 0, kSTRIPPED_WEIGHTS_SIZE = 1 };
enum class WeightsRole : int32_t { kKERNEL = 0, kBIAS = 1, kSHIFT = 2, kSCALE = 3, kCONSTANT = 4, kANY = 5 };
using SerializationFlags = uint32_t;
enum class TempfileControlFlag : int32_t { kALLOW_IN_MEMORY_FILES = 0, kALLOW_TEMPORARY_FILES = 1 };
using TempfileControlFlags = uint32_t;
template <> constexpr int32_t EnumMax<EngineCapability>() noexcept { return 3; }
template <> constexpr int32_t EnumMax<ProfilingVerbosity>() noexcept { return 3; }
template <> constexpr int32_t EnumMax<LayerInformationFormat>() noexcept { return 2; }
template <> constexpr int32_t EnumMax<OptProfileSelector>() noexcept { return 3; }
template <> constexpr int32_t EnumMax<ExecutionContextAllocationStrategy>() noexcept { return 3; }
template <> constexpr int32_t EnumMax<HardwareCompatibilityLevel>() noexcept { return 3; }
template <> constexpr int32_t EnumMax<SerializationFlag>() noexcept { return 3; }
template <> constexpr int32_t EnumMax<EngineStat>() noexcept { return 2; }
template <> constexpr int32_t EnumMax<WeightsRole>() noexcept { return 6; }
template <> constexpr int32_t EnumMax<TempfileControlFlag>() noexcept { return 2; }

/* Receives the time of each step, once a run. */
class IProfiler {
  public:
    virtual ~IProfiler() = default;
    virtual InterfaceInfo getInterfaceInfo() const { return InterfaceInfo{ "IProfiler", 1, 0 }; }
    virtual void reportLayerTime(char const *layerName, float ms) = 0;
};

/* Gives memory to outputs whose size the run decides. */
class IOutputAllocator : public IVersionedInterface {
  public:
    virtual int32_t getInterfaceVersion() const { return 1; }
    virtual void *reallocateOutput(char const *, void *, uint64_t, uint64_t) { return nullptr; }
    virtual void *reallocateOutputAsync(char const *tensorName, void *currentMemory, uint64_t size, uint64_t alignment,
                                        cudaStream_t)
    {
        return reallocateOutput(tensorName, currentMemory, size, alignment);
    }
    virtual void notifyShape(char const *tensorName, Dims const &dims) = 0;
};
class IDebugListener : public IVersionedInterface {
  public:
    virtual bool processDebugTensor(void const *addr, TensorLocation location, DataType type, Dims const &shape,
                                    char const *name, cudaStream_t stream) = 0;
};

class ISerializationConfig {
  public:
    bool setFlags(SerializationFlags flags) noexcept
    {
        flags_ = flags;
        return true;
    }
    SerializationFlags getFlags() const noexcept { return flags_; }
    bool setFlag(SerializationFlag f) noexcept
    {
        flags_ |= 1u << static_cast<int>(f);
        return true;
    }
    bool clearFlag(SerializationFlag f) noexcept
    {
        flags_ &= ~(1u << static_cast<int>(f));
        return true;
    }
    bool getFlag(SerializationFlag f) const noexcept { return flags_ >> static_cast<int>(f) & 1; }

  private:
    SerializationFlags flags_ = 0;
};

/* How a context is made. */
class IRuntimeConfig {
  public:
    void setExecutionContextAllocationStrategy(ExecutionContextAllocationStrategy strategy) noexcept
    {
        strategy_ = strategy;
    }
    ExecutionContextAllocationStrategy getExecutionContextAllocationStrategy() const noexcept { return strategy_; }

  private:
    ExecutionContextAllocationStrategy strategy_ = ExecutionContextAllocationStrategy::kSTATIC;
};

/* For libraries that log through the application's logger. Nothing here asks for one: builders and runtimes are given
 * theirs. */
class ILoggerFinder : public IVersionedInterface {
  public:
    virtual ILogger *findLogger() = 0;
};

/* Upstream has these interfaces in namespaces of their versions, too. */
namespace v_1_0 {
using ILogger = nvinfer1::ILogger;
using ILoggerFinder = nvinfer1::ILoggerFinder;
using IErrorRecorder = nvinfer1::IErrorRecorder;
using IGpuAllocator = nvinfer1::IGpuAllocator;
using IGpuAsyncAllocator = nvinfer1::IGpuAsyncAllocator;
using IStreamReader = nvinfer1::IStreamReader;
using IStreamReaderV2 = nvinfer1::IStreamReaderV2;
using IStreamWriter = nvinfer1::IStreamWriter;
using IProfiler = nvinfer1::IProfiler;
using IOutputAllocator = nvinfer1::IOutputAllocator;
using IDebugListener = nvinfer1::IDebugListener;
} // namespace v_1_0

class IExecutionContext;
class IEngineInspector;

/* A loaded engine. Any number of threads may make contexts of it. */
class ICudaEngine : public detail::reporter, public detail::engine_bindings<ICudaEngine> {
  public:
    ICudaEngine(sinter::engine engine, ILogger *logger, IErrorRecorder *recorder = nullptr)
        : reporter(logger, recorder), engine_(std::move(engine))
    {
        read();
    }

    /* Outputs that are debug tensors are not among them: they go to the IDebugListener of a context. */
    int32_t getNbIOTensors() const noexcept { return static_cast<int32_t>(io_->size()); }
    bool isDebugTensor(char const *name) const noexcept
    {
        for (sinter::io const &io : *debug_)
            if (name && io.name.compare(sizeof detail::DEBUG_MARK - 1, std::string::npos, name) == 0) return true;
        return false;
    }
    char const *getIOTensorName(int32_t index) const noexcept
    {
        return index < 0 || index >= getNbIOTensors() ? nullptr : (*io_)[static_cast<size_t>(index)].name.c_str();
    }
    TensorIOMode getTensorIOMode(char const *name) const noexcept
    {
        sinter::io const *io = find(name);
        return !io ? TensorIOMode::kNONE : io->is_input ? TensorIOMode::kINPUT : TensorIOMode::kOUTPUT;
    }
    Dims getTensorShape(char const *name) const noexcept
    {
        return guard(none(), [&] { return shown(name, known(name).shape); });
    }
    DataType getTensorDataType(char const *name) const noexcept
    {
        return guard(DataType::kFLOAT, [&] { return detail::from(known(name).dtype); });
    }
    TensorLocation getTensorLocation(char const *name) const noexcept
    {
        return isShapeInferenceIO(name) ? TensorLocation::kHOST : TensorLocation::kDEVICE;
    }
    /* Do an input's values decide sizes of outputs? Its data then lie on the host. */
    bool isShapeInferenceIO(char const *name) const noexcept
    {
        return guard(false, [&] {
            std::call_once(are_shapes_found_, [&] { find_shape_inputs(); });
            return name && shape_inputs_.count(name) != 0;
        });
    }
    TensorFormat getTensorFormat(char const *name, int32_t = 0) const noexcept
    {
        detail::layout const *l = layout_of(name);
        return l ? l->row->format : TensorFormat::kLINEAR;
    }
    char const *getTensorFormatDesc(char const *name, int32_t = 0) const noexcept
    {
        const auto found = layouts_->find(name ? name : "");
        return found == layouts_->end() ? linear(getTensorDataType(name)) : found->second.second.c_str();
    }
    /* -1 of a tensor whose format has no groups of channels, as the two below. */
    int32_t getTensorBytesPerComponent(char const *name, int32_t = 0) const noexcept
    {
        return lanes(name) == 1 ? -1 : static_cast<int32_t>(sinter_dtype_bits(find(name)->dtype) / 8);
    }
    int32_t getTensorComponentsPerElement(char const *name, int32_t = 0) const noexcept
    {
        return lanes(name) == 1 ? -1 : lanes(name);
    }
    int32_t getTensorVectorizedDim(char const *name, int32_t = 0) const noexcept
    {
        return lanes(name) == 1 ? -1 : getTensorShape(name).nbDims - layout_of(name)->row->behind - 1;
    }
    Dims getProfileShape(char const *name, int32_t profile, OptProfileSelector select) const noexcept
    {
        return guard(none(), [&] {
            for (sinter::io const &io : engine_.inputs(static_cast<uint32_t>(profile)))
                if (io.name == name)
                    return shown(name, select == OptProfileSelector::kMIN   ? io.min
                                       : select == OptProfileSelector::kOPT ? io.opt
                                                                            : io.max);
            throw sinter::error(SINTER_INVALID_ARG, std::string("the engine has no input '") + name + "'");
        });
    }
    int32_t getNbOptimizationProfiles() const noexcept { return static_cast<int32_t>(engine_.profile_count()); }
    int32_t getNbLayers() const noexcept
    {
        return guard(0, [&] { return static_cast<int32_t>(engine_.info().step_count); });
    }
    char const *getName() const noexcept { return sinter_engine_name(engine_.get()); }
    bool isRefittable() const noexcept
    {
        return guard(false, [&] {
            if (!engine_.info().is_refittable) return false;
            for (auto const &w : engine_.weights())
                if (!w.is_fixed) return true;
            return false;
        });
    }
    EngineCapability getEngineCapability() const noexcept { return EngineCapability::kSTANDARD; }
    bool hasImplicitBatchDimension() const noexcept { return hidden_ != 0; }
    ProfilingVerbosity getProfilingVerbosity() const noexcept
    {
        const sinter_detail detail = engine_.detail();
        return detail == SINTER_DETAIL_ALL     ? ProfilingVerbosity::kDETAILED
               : detail == SINTER_DETAIL_NAMES ? ProfilingVerbosity::kLAYER_NAMES_ONLY
                                               : ProfilingVerbosity::kNONE;
    }
    HardwareCompatibilityLevel getHardwareCompatibilityLevel() const noexcept
    {
        return HardwareCompatibilityLevel::kNONE;
    }
    int32_t getNbAuxStreams() const noexcept { return 0; }
    size_t getDeviceMemorySize() const noexcept { return engine_.memory_size(); }
    int64_t getDeviceMemorySizeV2() const noexcept { return static_cast<int64_t>(engine_.memory_size()); }
    size_t getDeviceMemorySizeForProfile(int32_t p) const noexcept
    {
        return engine_.memory_size(static_cast<uint32_t>(p));
    }
    int64_t getDeviceMemorySizeForProfileV2(int32_t p) const noexcept
    {
        return static_cast<int64_t>(getDeviceMemorySizeForProfile(p));
    }
    int64_t getStreamableWeightsSize() const noexcept { return stat(&sinter_engine_info::streamable_size); }
    /* The older pair of functions: 0 lets all weights stay on the device. */
    int64_t getWeightStreamingBudget() const noexcept { return getWeightStreamingBudgetV2(); }
    bool setWeightStreamingBudget(int64_t bytes) noexcept
    {
        return setWeightStreamingBudgetV2(bytes < 0    ? getWeightStreamingAutomaticBudget()
                                          : bytes == 0 ? getStreamableWeightsSize()
                                                       : bytes);
    }
    int64_t getMinimumWeightStreamingBudget() const noexcept { return 0; }
    int64_t getWeightStreamingScratchMemorySize() const noexcept
    {
        return stat(&sinter_engine_info::weight_scratch_size);
    }
    int64_t getWeightStreamingBudgetV2() const noexcept { return stat(&sinter_engine_info::weight_budget); }
    int64_t getWeightStreamingAutomaticBudget() const noexcept
    {
        return guard(int64_t(0), [&] {
            uint64_t made = 0;
            sinter::call(sinter_engine_automatic_weight_budget, engine_.get(), &made);
            return static_cast<int64_t>(made);
        });
    }
    bool setWeightStreamingBudgetV2(int64_t bytes) noexcept
    {
        return attempt([&] { engine_.set_weight_budget(static_cast<uint64_t>(bytes)); });
    }
    int64_t getEngineStat(EngineStat s) const noexcept
    {
        return stat(s == EngineStat::kTOTAL_WEIGHTS_SIZE ? &sinter_engine_info::weights_size
                                                         : &sinter_engine_info::stripped_size);
    }

    /* The engine's bytes, as they were loaded. */
    IHostMemory *serialize() const noexcept
    {
        return guard(static_cast<IHostMemory *>(nullptr),
                     [&]() -> IHostMemory * { return new detail::text_memory(*bytes_); });
    }
    ISerializationConfig *createSerializationConfig() const noexcept { return new ISerializationConfig(); }
    IHostMemory *serializeWithConfig(ISerializationConfig &config) const noexcept
    {
        if (!config.getFlag(SerializationFlag::kEXCLUDE_WEIGHTS)) return serialize();
        return guard(static_cast<IHostMemory *>(nullptr),
                     [&]() -> IHostMemory * { return new detail::plan(engine_.strip()); });
    }
    inline IExecutionContext *createExecutionContext(
        ExecutionContextAllocationStrategy strategy = ExecutionContextAllocationStrategy::kSTATIC) noexcept;
    inline IExecutionContext *createExecutionContextWithoutDeviceMemory() noexcept;
    IRuntimeConfig *createRuntimeConfig() noexcept { return new (std::nothrow) IRuntimeConfig(); }
    inline IExecutionContext *createExecutionContext(IRuntimeConfig *config) noexcept;
    /* Outputs have memory of their own. */
    char const *getAliasedInputTensor(char const *) const noexcept { return nullptr; }
    /* What IOptimizationProfile::setShapeValues gave; nullptr: nothing. */
    int64_t const *getProfileTensorValuesV2(char const *name, int32_t profile, OptProfileSelector select) const noexcept
    {
        detail::shape_values const *const found = values_of(name, profile);
        return found ? found->wide[static_cast<int>(select)].data() : nullptr;
    }
    int32_t const *getProfileTensorValues(char const *name, int32_t profile, OptProfileSelector select) const noexcept
    {
        detail::shape_values const *const found = values_of(name, profile);
        return found ? found->narrow[static_cast<int>(select)].data() : nullptr;
    }
    uint32_t getTacticSources() const noexcept { return 0; }
    inline IEngineInspector *createEngineInspector() const noexcept;
    void destroy() noexcept { delete this; }

    /* ---- for the other classes ---- */
    /* The shape that programs see, of the sizes in memory. */
    Dims shown(std::string const &name, sinter::dims const &stored) const
    {
        detail::layout const *l = layout_of(name.c_str());
        return detail::hide_batch(detail::to_dims(l ? l->shown(stored) : stored), hidden_);
    }
    /* nullptr: the tensor is row-major. */
    detail::layout const *layout_of(char const *name) const
    {
        const auto found = layouts_->find(name ? name : "");
        return found == layouts_->end() ? nullptr : &found->second.first;
    }
    std::vector<std::string> const &binding_names() const { return *bindings_; }
    /* The largest batch where it is implicit, else 1. */
    int32_t max_batch() const { return max_batch_; }
    sinter::engine const &engine() const { return engine_; }
    sinter::io const *find(char const *name) const
    {
        for (sinter::io const &io : *io_)
            if (name && io.name == name) return &io;
        return nullptr;
    }
    sinter::io const &known(char const *name) const
    {
        sinter::io const *io = find(name);
        if (io) return *io;
        std::string names;
        for (sinter::io const &i : *io_) names += (names.empty() ? "" : ", ") + i.name;
        throw sinter::error(SINTER_INVALID_ARG,
                            std::string("the engine has no tensor '") + (name ? name : "") + "': it has " + names);
    }
    std::vector<sinter::io> const &io() const { return *io_; }
    std::vector<sinter::io> const &debug() const { return *debug_; }
    std::vector<sinter::io> const &unfused() const { return *unfused_; }
    uint64_t generation() const { return generation_; }
    void replace(sinter::engine engine)
    {
        engine_ = std::move(engine);
        generation_++;
        read();
    }
    void keep(void const *bytes, size_t size)
    {
        bytes_ = std::make_shared<std::string>(static_cast<char const *>(bytes), size);
    }
    static Dims none()
    {
        Dims made;
        made.nbDims = -1;
        return made;
    }

  private:
    detail::shape_values const *values_of(char const *name, int32_t profile) const noexcept
    {
        const auto found = values_->find({ name ? name : "", profile });
        return found == values_->end() ? nullptr : &found->second;
    }
    void find_shape_inputs() const
    {
        if (engine_.is_stripped()) return;
        bool may_be = false;
        for (sinter::io const &io : *io_) {
            const bool is_list = io.dtype == SINTER_DTYPE_I32 || io.dtype == SINTER_DTYPE_I64;
            may_be = may_be || (io.is_input && io.opt.size() < 2 && is_list);
        }
        if (!may_be) return;
        sinter::context_options o;
        o->memory = SINTER_MEMORY_USER;
        sinter::context c(engine_, o);
        for (sinter::io const &io : *io_)
            if (io.is_input) c.set_input_shape(io.name, io.opt);
        std::vector<char const *> names(io_->size());
        uint32_t count = 0;
        sinter::call(sinter_context_infer_shapes, c.get(), names.data(), static_cast<uint32_t>(names.size()), &count);
        names.resize(count);
        shape_inputs_.insert(names.begin(), names.end());
    }
    void read()
    {
        io_ = std::make_shared<std::vector<sinter::io>>();
        debug_ = std::make_shared<std::vector<sinter::io>>();
        unfused_ = std::make_shared<std::vector<sinter::io>>();
        values_ = std::make_shared<std::map<std::pair<std::string, int32_t>, detail::shape_values>>();
        layouts_ = std::make_shared<std::map<std::string, std::pair<detail::layout, std::string>>>();
        for (sinter::io const &io : engine_.values())
            if (!io.is_input && io.name == detail::IMPLICIT_BATCH) hidden_ = 1;
            else if (!io.is_input && io.name.rfind(detail::VALUES_MARK, 0) == 0) {
                detail::shape_values made;
                std::string name;
                const size_t profile = made.read(io.name, &name);
                (*values_)[{ name, static_cast<int32_t>(profile) }] = std::move(made);
            }
            else if (!io.is_input && io.name.rfind(detail::FORMAT_MARK, 0) == 0) {
                const std::pair<std::string, detail::layout> made = detail::read_mark(io.name);
                (*layouts_)[made.first] = { made.second, describe(*made.second.row) };
            } else if (!io.is_input && io.name.rfind(detail::DEBUG_MARK, 0) == 0) {
                debug_->push_back(io);
            } else {
                (!io.is_input && io.name.rfind(detail::UNFUSED_MARK, 0) == 0 ? unfused_ : io_)->push_back(io);
            }
        for (sinter::io const &io : *io_)
            if (hidden_ && io.is_input) max_batch_ = static_cast<int32_t>(io.max[0]);
        bindings_ = std::make_shared<std::vector<std::string>>();
        for (int32_t p = 0; p < getNbOptimizationProfiles(); p++)
            for (sinter::io const &io : *io_)
                bindings_->push_back(p ? io.name + " [profile " + std::to_string(p) + "]" : io.name);
    }
    static char const *linear(DataType type) noexcept
    {
        switch (type) {
        case DataType::kFLOAT: return "Row major linear FP32 format (kLINEAR)";
        case DataType::kHALF: return "Row major linear FP16 format (kLINEAR)";
        case DataType::kBF16: return "Row major linear BF16 format (kLINEAR)";
        case DataType::kINT8: return "Row major linear INT8 format (kLINEAR)";
        case DataType::kINT32: return "Row major linear INT32 format (kLINEAR)";
        case DataType::kINT64: return "Row major linear INT64 format (kLINEAR)";
        case DataType::kBOOL: return "Row major linear BOOL format (kLINEAR)";
        case DataType::kUINT8: return "Row major linear UINT8 format (kLINEAR)";
        case DataType::kFP8: return "Row major linear FP8 format (kLINEAR)";
        default: return "Row major linear format (kLINEAR)";
        }
    }
    int64_t stat(uint64_t sinter_engine_info::*field) const noexcept
    {
        return guard(int64_t(0), [&] { return static_cast<int64_t>(engine_.info().*field); });
    }
    sinter::engine engine_;
    int32_t lanes(char const *name) const
    {
        detail::layout const *l = layout_of(name);
        return l ? static_cast<int32_t>(l->row->lanes) : 1;
    }
    static std::string describe(detail::format_row const &row)
    {
        const std::string lanes = std::to_string(row.lanes);
        return (row.lanes == 1  ? std::string("Channel major format")
                : row.is_last ? "Channel major format whose channels are a multiple of " + lanes
                                : lanes + "-wide channel vectorized row major format") +
               " (k" + row.name + ")";
    }
    std::shared_ptr<std::vector<sinter::io>> io_, debug_, unfused_;
    /* Of tensors that are not row-major: the layout and its description. */
    std::shared_ptr<std::map<std::string, std::pair<detail::layout, std::string>>> layouts_;
    std::shared_ptr<std::vector<std::string>> bindings_;
    std::shared_ptr<std::string> bytes_ = std::make_shared<std::string>();
    uint64_t generation_ = 0;
    int32_t hidden_ = 0, max_batch_ = 1;
    mutable std::once_flag are_shapes_found_;
    mutable std::set<std::string> shape_inputs_;
    std::shared_ptr<std::map<std::pair<std::string, int32_t>, detail::shape_values>> values_;
};

} // namespace nvinfer1

#include "NvInferContext.h"
#include "NvInferRefitter.h"

namespace nvinfer1 {

/* Describes an engine, as its profiling verbosity permits. With an execution context, sizes are those of its shapes. */
class IEngineInspector : public detail::reporter {
  public:
    explicit IEngineInspector(ICudaEngine const *engine)
        : reporter(engine->getLogger(), engine->getErrorRecorder()), engine_(engine)
    {
    }
    bool setExecutionContext(IExecutionContext const *context) noexcept
    {
        context_ = context;
        return true;
    }
    IExecutionContext const *getExecutionContext() const noexcept { return context_; }
    char const *getEngineInformation(LayerInformationFormat format) const noexcept
    {
        return print(SINTER_ALL_LAYERS, format);
    }
    /* One layer, counted over all profiles. */
    char const *getLayerInformation(int32_t index, LayerInformationFormat format) const noexcept
    {
        return print(static_cast<uint32_t>(index < 0 ? INT32_MAX : index), format);
    }
    void destroy() noexcept { delete this; }

  private:
    char const *print(uint32_t index, LayerInformationFormat format) const noexcept
    {
        return guard(static_cast<char const *>(nullptr), [&] {
            const sinter_print form = format == LayerInformationFormat::kJSON ? SINTER_PRINT_JSON : SINTER_PRINT_TEXT;
            text_ = context_ ? context_->layers(form, index) : engine_->engine().print_layers(form, index);
            return text_.c_str();
        });
    }
    ICudaEngine const *engine_;
    IExecutionContext const *context_ = nullptr;
    mutable std::string text_;
};
inline IEngineInspector *ICudaEngine::createEngineInspector() const noexcept { return new IEngineInspector(this); }

class IRuntime : public detail::reporter, public detail::threaded {
  public:
    explicit IRuntime(ILogger &logger) : reporter(&logger) { detail::last_logger() = &logger; }
    ICudaEngine *deserializeCudaEngine(void const *blob, size_t size) noexcept
    {
        return guard(static_cast<ICudaEngine *>(nullptr), [&] {
            sinter::engine_options o;
            o.use(::getPluginRegistry()->environment());
            o->trust_code = is_trusted_;
            auto made = std::make_unique<ICudaEngine>(sinter::engine::load(blob, size, o), logger_, recorder_);
            made->keep(blob, size);
            return made.release();
        });
    }
    ICudaEngine *deserializeCudaEngine(void const *blob, size_t size, void *) noexcept
    {
        return deserializeCudaEngine(blob, size);
    }
    ICudaEngine *deserializeCudaEngine(IStreamReader &reader) noexcept
    {
        return from_stream([&](void *to, int64_t n) { return reader.read(to, n); });
    }
    ICudaEngine *deserializeCudaEngine(IStreamReaderV2 &reader) noexcept
    {
        return from_stream([&](void *to, int64_t n) { return reader.read(to, n, nullptr); });
    }
    /* Runs GPU kernels that an engine carries: for files of those whose programs you would run. */
    void setEngineHostCodeAllowed(bool is_allowed) noexcept { is_trusted_ = is_allowed; }
    bool getEngineHostCodeAllowed() const noexcept { return is_trusted_; }
    void setDLACore(int32_t) noexcept {}
    int32_t getDLACore() const noexcept { return -1; }
    int32_t getNbDLACores() const noexcept { return 0; }
    void setGpuAllocator(IGpuAllocator *) noexcept
    {
        say(ILogger::Severity::kWARNING, "setGpuAllocator changes nothing on the CPU: memory is the library's");
    }
    IPluginRegistry &getPluginRegistry() noexcept { return *::getPluginRegistry(); }
    /* Loading an engine writes no files. */
    void setTemporaryDirectory(char const *path) noexcept { folder_ = path ? path : ""; }
    char const *getTemporaryDirectory() const noexcept { return folder_.c_str(); }
    void setTempfileControlFlags(TempfileControlFlags flags) noexcept { files_ = flags; }
    TempfileControlFlags getTempfileControlFlags() const noexcept { return files_; }
    /* There is one runtime. */
    IRuntime *loadRuntime(char const *) noexcept { return new (std::nothrow) IRuntime(*logger_); }
    void destroy() noexcept { delete this; }

  private:
    template <class F> ICudaEngine *from_stream(F read) noexcept
    {
        std::string bytes;
        const bool is_read = attempt([&] {
            std::vector<char> part(1 << 20);
            for (;;) {
                const int64_t got = read(part.data(), static_cast<int64_t>(part.size()));
                if (got <= 0) return;
                bytes.append(part.data(), static_cast<size_t>(got));
            }
        });
        return is_read ? deserializeCudaEngine(bytes.data(), bytes.size()) : nullptr;
    }
    bool is_trusted_ = false;
    std::string folder_;
    TempfileControlFlags files_ = 3;
};

inline IRuntime *createInferRuntime(ILogger &logger) noexcept { return new (std::nothrow) IRuntime(logger); }
/* nullptr where the engine is not refittable, which the logger is told. */
inline IRefitter *createInferRefitter(ICudaEngine &engine, ILogger &logger) noexcept
{
    if (!engine.isRefittable()) {
        logger.log(ILogger::Severity::kERROR, "the engine is not refittable: BuilderFlag::kREFIT makes it so");
        return nullptr;
    }
    return new (std::nothrow) IRefitter(engine, logger);
}

} // namespace nvinfer1

/* The functions under the names by which a program finds them in a library. */
extern "C" inline void *createInferRuntime_INTERNAL(void *logger, int32_t) noexcept
{
    return nvinfer1::createInferRuntime(*static_cast<nvinfer1::ILogger *>(logger));
}
extern "C" inline void *createInferRefitter_INTERNAL(void *engine, void *logger, int32_t) noexcept
{
    return nvinfer1::createInferRefitter(*static_cast<nvinfer1::ICudaEngine *>(engine),
                                         *static_cast<nvinfer1::ILogger *>(logger));
}

#endif
