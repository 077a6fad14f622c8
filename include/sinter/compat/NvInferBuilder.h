/* SPDX-License-Identifier: Apache-2.0 */
/* NvInferBuilder.h - IBuilder, its configuration, calibrators. Included by NvInfer.h. */
#ifndef NV_INFER_BUILDER_H
#define NV_INFER_BUILDER_H

#include "NvInfer.h"
#include "NvInferAlgorithm.h"
#include "NvInferTables.h"
#include "NvInferTimingCache.h"

#include <cmath>
#include <cstdio>
#include <set>

namespace nvinfer1 {

enum class BuilderFlag : int32_t {
    kFP16 = 0, kINT8 = 1, kDEBUG = 2, kGPU_FALLBACK = 3, kREFIT = 4, kDISABLE_TIMING_CACHE = 5, kTF32 = 6,
    kSPARSE_WEIGHTS = 7, kSAFETY_SCOPE = 8, kOBEY_PRECISION_CONSTRAINTS = 9, kPREFER_PRECISION_CONSTRAINTS = 10,
    kDIRECT_IO = 11, kREJECT_EMPTY_ALGORITHMS = 12, kVERSION_COMPATIBLE = 13, kEXCLUDE_LEAN_RUNTIME = 14, kFP8 = 15,
    kERROR_ON_TIMING_CACHE_MISS = 16, kBF16 = 17, kDISABLE_COMPILATION_CACHE = 18, kSTRIP_PLAN = 19, kWEIGHTLESS = 19,
    kREFIT_IDENTICAL = 20, kWEIGHT_STREAMING = 21, kINT4 = 22, kREFIT_INDIVIDUAL = 23, kSTRICT_NANS = 24,
    kMONITOR_MEMORY = 25, kFP4 = 26, kEDITABLE_TIMING_CACHE = 27, kDISTRIBUTIVE_INDEPENDENCE = 28, kSTRICT_TYPES = 40,
    kENABLE_TACTIC_HEURISTIC = 41
};
using BuilderFlags = uint32_t;
enum class MemoryPoolType : int32_t {
    kWORKSPACE = 0, kDLA_MANAGED_SRAM = 1, kDLA_LOCAL_DRAM = 2, kDLA_GLOBAL_DRAM = 3, kTACTIC_DRAM = 4,
    kTACTIC_SHARED_MEMORY = 5
};
enum class DeviceType : int32_t { kGPU = 0, kDLA = 1 };
enum class QuantizationFlag : int32_t { kCALIBRATE_BEFORE_FUSION = 0 };
using QuantizationFlags = uint32_t;
enum class PreviewFeature : int32_t {
    kPROFILE_SHARING_0806 = 0, kALIASED_PLUGIN_IO_10_03 = 1, kRUNTIME_ACTIVATION_RESIZE_10_10 = 2,
    kMULTIDEVICE_RUNTIME_10_16 = 3, kFASTER_DYNAMIC_SHAPES_0805 = 40,
    kDISABLE_EXTERNAL_TACTIC_SOURCES_FOR_CORE_0805 = 41
};
enum class TilingOptimizationLevel : int32_t { kNONE = 0, kFAST = 1, kMODERATE = 2, kFULL = 3 };
enum class RuntimePlatform : int32_t { kSAME_AS_BUILD = 0, kWINDOWS_AMD64 = 1 };
enum class TacticSource : int32_t {
    kCUBLAS = 0, kCUBLAS_LT = 1, kCUDNN = 2, kEDGE_MASK_CONVOLUTIONS = 3, kJIT_CONVOLUTIONS = 4
};
using TacticSources = uint32_t;
template <> constexpr int32_t EnumMax<BuilderFlag>() noexcept { return 29; }
template <> constexpr int32_t EnumMax<MemoryPoolType>() noexcept { return 6; }
template <> constexpr int32_t EnumMax<DeviceType>() noexcept { return 2; }
template <> constexpr int32_t EnumMax<QuantizationFlag>() noexcept { return 1; }
template <> constexpr int32_t EnumMax<PreviewFeature>() noexcept { return 4; }
template <> constexpr int32_t EnumMax<TilingOptimizationLevel>() noexcept { return 4; }
template <> constexpr int32_t EnumMax<RuntimePlatform>() noexcept { return 2; }
template <> constexpr int32_t EnumMax<TacticSource>() noexcept { return 5; }
enum class CalibrationAlgoType : int32_t {
    kLEGACY_CALIBRATION = 0, kENTROPY_CALIBRATION = 1, kENTROPY_CALIBRATION_2 = 2, kMINMAX_CALIBRATION = 3
};
template <> constexpr int32_t EnumMax<CalibrationAlgoType>() noexcept { return 4; }

/* Data on which ranges of 8-bit numbers are found: getBatch gives a device pointer for each input, until it is false.
 */
class IInt8Calibrator : public IVersionedInterface {
  public:
    virtual int32_t getBatchSize() const = 0;
    virtual bool getBatch(void *bindings[], char const *names[], int32_t nbBindings) = 0;
    virtual void const *readCalibrationCache(std::size_t &length) = 0;
    virtual void writeCalibrationCache(void const *data, std::size_t length) = 0;
    virtual CalibrationAlgoType getAlgorithm() = 0;
};
class IInt8EntropyCalibrator2 : public IInt8Calibrator {
  public:
    CalibrationAlgoType getAlgorithm() override { return CalibrationAlgoType::kENTROPY_CALIBRATION_2; }
};
class IInt8EntropyCalibrator : public IInt8Calibrator {
  public:
    CalibrationAlgoType getAlgorithm() override { return CalibrationAlgoType::kENTROPY_CALIBRATION; }
};
class IInt8MinMaxCalibrator : public IInt8Calibrator {
  public:
    CalibrationAlgoType getAlgorithm() override { return CalibrationAlgoType::kMINMAX_CALIBRATION; }
};
/* The histogram cache is neither read nor written: ranges are cached. */
class IInt8LegacyCalibrator : public IInt8Calibrator {
  public:
    CalibrationAlgoType getAlgorithm() override { return CalibrationAlgoType::kLEGACY_CALIBRATION; }
    virtual double getQuantile() const = 0;         /* the part of numbers inside the range */
    virtual double getRegressionCutoff() const = 0; /* magnitudes above this part of the largest do not count */
    virtual void const *readHistogramCache(std::size_t &length) = 0;
    virtual void writeHistogramCache(void const *data, std::size_t length) = 0;
};

class IProgressMonitor : public IVersionedInterface {
  public:
    virtual void phaseStart(char const *phaseName, char const *parentPhase, int32_t nbSteps) = 0;
    virtual bool stepComplete(char const *phaseName, int32_t step) = 0; /* false: the build is cancelled */
    virtual void phaseFinish(char const *phaseName) = 0;
};

class IOptimizationProfile {
  public:
    bool setDimensions(char const *input, OptProfileSelector select, Dims const &dims) noexcept
    {
        shapes_[input][static_cast<int>(select)] = dims;
        return true;
    }
    Dims getDimensions(char const *input, OptProfileSelector select) const noexcept
    {
        const auto found = shapes_.find(input);
        return found == shapes_.end() ? ICudaEngine::none() : found->second[static_cast<int>(select)];
    }
    /* Values from which shapes are computed: any serve here. The engine tells them again. */
    int32_t getNbShapeValues(char const *input) const noexcept
    {
        const auto found = values_.find(input);
        return found == values_.end() ? -1 : static_cast<int32_t>(found->second.wide[0].size());
    }
    int32_t const *getShapeValues(char const *input, OptProfileSelector select) const noexcept
    {
        const auto found = values_.find(input);
        return found == values_.end() ? nullptr : found->second.narrow[static_cast<int>(select)].data();
    }
    int64_t const *getShapeValuesV2(char const *input, OptProfileSelector select) const noexcept
    {
        const auto found = values_.find(input);
        return found == values_.end() ? nullptr : found->second.wide[static_cast<int>(select)].data();
    }
    bool setShapeValues(char const *input, OptProfileSelector select, int32_t const *at, int32_t count) noexcept
    {
        return put_values(input, select, at, count);
    }
    bool setShapeValuesV2(char const *input, OptProfileSelector select, int64_t const *at, int32_t count) noexcept
    {
        return put_values(input, select, at, count);
    }
    bool setExtraMemoryTarget(float) noexcept { return true; }
    float getExtraMemoryTarget() const noexcept { return 1; }
    bool isValid() const noexcept
    {
        for (auto const &s : shapes_)
            for (int k = 0; k < 2; k++) {
                if (s.second[k].nbDims != s.second[k + 1].nbDims) return false;
                for (int32_t i = 0; i < s.second[k].nbDims; i++)
                    if (s.second[k].d[i] > s.second[k + 1].d[i]) return false;
            }
        return true;
    }
    std::map<std::string, Dims[3]> const &shapes() const { return shapes_; }
    std::map<std::string, detail::shape_values> const &values() const { return values_; }

  private:
    template <class Integer>
    bool put_values(char const *input, OptProfileSelector select, Integer const *at, int32_t count) noexcept
    {
        if (!input || !at || count < 0) return false;
        values_[input].put(static_cast<int>(select), std::vector<int64_t>(at, at + count));
        return true;
    }
    std::map<std::string, Dims[3]> shapes_;
    std::map<std::string, detail::shape_values> values_;
};

/* How an engine is built. kTF32 is on, as upstream has it. */
class IBuilderConfig {
  public:
    /* A selector is not asked: a kernel is chosen by its time, which a timing cache keeps. */
    void setAlgorithmSelector(IAlgorithmSelector *selector) noexcept { selector_ = selector; }
    IAlgorithmSelector *getAlgorithmSelector() const noexcept { return selector_; }
    void setFlag(BuilderFlag f) noexcept { flags_ |= uint64_t(1) << static_cast<int>(f); }
    void clearFlag(BuilderFlag f) noexcept { flags_ &= ~(uint64_t(1) << static_cast<int>(f)); }
    bool getFlag(BuilderFlag f) const noexcept { return flags_ >> static_cast<int>(f) & 1; }
    void setFlags(BuilderFlags flags) noexcept { flags_ = flags; }
    BuilderFlags getFlags() const noexcept { return static_cast<BuilderFlags>(flags_); }
    /* Kept: calibration sees the values of the model's tensors, whatever is fused. */
    void setQuantizationFlag(QuantizationFlag f) noexcept { quantization_ |= 1U << static_cast<int>(f); }
    void clearQuantizationFlag(QuantizationFlag f) noexcept { quantization_ &= ~(1U << static_cast<int>(f)); }
    bool getQuantizationFlag(QuantizationFlag f) const noexcept { return quantization_ >> static_cast<int>(f) & 1; }
    void setQuantizationFlags(QuantizationFlags flags) noexcept { quantization_ = flags; }
    QuantizationFlags getQuantizationFlags() const noexcept { return quantization_; }
    /* Kept: no feature has to be switched on. */
    void setPreviewFeature(PreviewFeature f, bool is_on) noexcept { previews_[f] = is_on; }
    bool getPreviewFeature(PreviewFeature f) const noexcept
    {
        const auto found = previews_.find(f);
        return found != previews_.end() && found->second;
    }
    int32_t addOptimizationProfile(IOptimizationProfile const *profile) noexcept
    {
        if (!profile || !profile->isValid()) return -1;
        profiles_.push_back(profile);
        return static_cast<int32_t>(profiles_.size()) - 1;
    }
    int32_t getNbOptimizationProfiles() const noexcept { return static_cast<int32_t>(profiles_.size()); }
    bool setCalibrationProfile(IOptimizationProfile const *profile) noexcept
    {
        calibration_profile_ = profile;
        return true;
    }
    IOptimizationProfile const *getCalibrationProfile() noexcept { return calibration_profile_; }
    void setInt8Calibrator(IInt8Calibrator *c) noexcept { calibrator_ = c; }
    IInt8Calibrator *getInt8Calibrator() const noexcept { return calibrator_; }
    void setMemoryPoolLimit(MemoryPoolType pool, std::size_t size) noexcept { pools_[pool] = size; }
    std::size_t getMemoryPoolLimit(MemoryPoolType pool) const noexcept
    {
        const auto found = pools_.find(pool);
        return found == pools_.end() ? std::size_t(1) << 40 : found->second;
    }
    void setMaxWorkspaceSize(std::size_t size) noexcept { setMemoryPoolLimit(MemoryPoolType::kWORKSPACE, size); }
    std::size_t getMaxWorkspaceSize() const noexcept { return getMemoryPoolLimit(MemoryPoolType::kWORKSPACE); }
    ITimingCache *createTimingCache(void const *blob, std::size_t size) const noexcept
    {
        return new (std::nothrow) ITimingCache(std::string(static_cast<char const *>(blob), blob ? size : 0));
    }
    bool setTimingCache(ITimingCache const &cache, bool) noexcept
    {
        cache_ = const_cast<ITimingCache *>(&cache);
        return true;
    }
    ITimingCache const *getTimingCache() const noexcept { return cache_; }
    void setProgressMonitor(IProgressMonitor *monitor) noexcept { monitor_ = monitor; }
    IProgressMonitor *getProgressMonitor() const noexcept { return monitor_; }
    /* 0: the cost model chooses; 1 to 3: the best few kernels are measured; 4 and 5: all. */
    void setBuilderOptimizationLevel(int32_t level) noexcept { level_ = level; }
    int32_t getBuilderOptimizationLevel() noexcept { return level_; }
    /* 0: steps run one after the other. Other numbers: branches of a GPU's engine run beside each other where that
     * pays. */
    bool setMaxAuxStreams(int32_t count) noexcept
    {
        aux_streams_ = count;
        return true;
    }
    int32_t getMaxAuxStreams() const noexcept { return aux_streams_; }
    /* Kept: how often a kernel is timed follows from the spread of its times. */
    void setAvgTimingIterations(int32_t count) noexcept { average_ = count; }
    int32_t getAvgTimingIterations() const noexcept { return average_; }
    void setMinTimingIterations(int32_t count) noexcept { least_ = count; }
    void setProfilingVerbosity(ProfilingVerbosity v) noexcept { verbosity_ = v; }
    ProfilingVerbosity getProfilingVerbosity() const noexcept { return verbosity_; }
    void setProfileStream(cudaStream_t stream) noexcept { stream_ = stream; }
    cudaStream_t getProfileStream() const noexcept { return stream_; }
    void setHardwareCompatibilityLevel(HardwareCompatibilityLevel level) noexcept { compatibility_ = level; }
    bool setTilingOptimizationLevel(TilingOptimizationLevel level) noexcept
    {
        tiling_ = level;
        return true;
    }
    /* A build for another system, or for the safety runtime or a DLA, is refused. */
    void setRuntimePlatform(RuntimePlatform platform) noexcept { platform_ = platform; }
    void setEngineCapability(EngineCapability capability) noexcept { capability_ = capability; }
    EngineCapability getEngineCapability() const noexcept { return capability_; }
    bool setTacticSources(TacticSources sources) noexcept
    {
        sources_ = sources;
        return true;
    }
    TacticSources getTacticSources() const noexcept { return sources_; }
    int32_t getMinTimingIterations() const noexcept { return least_; }
    /* Kept, as the two limits of tiling: builds choose how much they measure by their optimisation level. */
    void setMaxNbTactics(int32_t count) noexcept { tactics_ = count; }
    int32_t getMaxNbTactics() const noexcept { return tactics_; }
    bool setL2LimitForTiling(int64_t size) noexcept
    {
        l2_limit_ = size;
        return true;
    }
    int64_t getL2LimitForTiling() const noexcept { return l2_limit_; }
    /* Kernels are timed where the build runs, and there is one way through it: nothing but "" is taken. */
    bool setRemoteAutoTuningConfig(char const *config) noexcept { return !config || !*config; }
    char const *getRemoteAutoTuningConfig() const noexcept { return ""; }
    bool setBuildRoute(char const *route) noexcept { return !route || !*route; }
    char const *getBuildRoute() const noexcept { return ""; }
    char const *getAllBuildRoutes() const noexcept { return "{}"; }
    TilingOptimizationLevel getTilingOptimizationLevel() const noexcept { return tiling_; }
    RuntimePlatform getRuntimePlatform() const noexcept { return platform_; }
    HardwareCompatibilityLevel getHardwareCompatibilityLevel() const noexcept { return compatibility_; }
    /* Kept; an engine carries no libraries, which a build says. */
    void setPluginsToSerialize(char const *const *paths, int32_t count) noexcept
    {
        libraries_.assign(paths, paths + std::max(count, 0));
    }
    int32_t getNbPluginsToSerialize() const noexcept { return static_cast<int32_t>(libraries_.size()); }
    char const *getPluginToSerialize(int32_t index) const noexcept
    {
        return index >= 0 && index < getNbPluginsToSerialize() ? libraries_[static_cast<size_t>(index)].c_str()
                                                              : nullptr;
    }
    /* There is no DLA: a build refuses it, unless kGPU_FALLBACK permits the GPU. */
    void setDeviceType(ILayer const *, DeviceType type) noexcept { uses_dla_ = uses_dla_ || type == DeviceType::kDLA; }
    DeviceType getDeviceType(ILayer const *) const noexcept { return getDefaultDeviceType(); }
    bool isDeviceTypeSet(ILayer const *) const noexcept { return false; }
    void resetDeviceType(ILayer const *) noexcept {}
    bool canRunOnDLA(ILayer const *) const noexcept { return false; }
    void setDefaultDeviceType(DeviceType type) noexcept { uses_dla_ = type == DeviceType::kDLA; }
    DeviceType getDefaultDeviceType() const noexcept { return uses_dla_ ? DeviceType::kDLA : DeviceType::kGPU; }
    void setDLACore(int32_t) noexcept {}
    int32_t getDLACore() const noexcept { return -1; }
    void reset() noexcept { *this = IBuilderConfig(); }
    void destroy() noexcept { delete this; }

  private:
    friend class IBuilder;
    void put_flag(BuilderFlag f, bool is_on) noexcept { is_on ? setFlag(f) : clearFlag(f); }
    QuantizationFlags quantization_ = 0;
    uint64_t flags_ = uint64_t(1) << static_cast<int>(BuilderFlag::kTF32);
    std::vector<IOptimizationProfile const *> profiles_;
    IOptimizationProfile const *calibration_profile_ = nullptr;
    IInt8Calibrator *calibrator_ = nullptr;
    ITimingCache *cache_ = nullptr;
    IProgressMonitor *monitor_ = nullptr;
    std::map<MemoryPoolType, std::size_t> pools_;
    std::map<PreviewFeature, bool> previews_;
    IAlgorithmSelector *selector_ = nullptr;
    int32_t level_ = 3, aux_streams_ = -1, average_ = 1;
    ProfilingVerbosity verbosity_ = ProfilingVerbosity::kLAYER_NAMES_ONLY;
    cudaStream_t stream_ = nullptr;
    TacticSources sources_ = 24;
    HardwareCompatibilityLevel compatibility_ = HardwareCompatibilityLevel::kNONE;
    TilingOptimizationLevel tiling_ = TilingOptimizationLevel::kNONE;
    RuntimePlatform platform_ = RuntimePlatform::kSAME_AS_BUILD;
    EngineCapability capability_ = EngineCapability::kSTANDARD;
    int32_t least_ = 1, tactics_ = -1;
    int64_t l2_limit_ = 0;
    std::vector<std::string> libraries_;
    bool uses_dla_ = false;
};

namespace detail {
#define SINTER_TEXT(name, text) constexpr char const *said_##name = text;
SINTER_UNUSED_SETTINGS(SINTER_TEXT)
SINTER_REFUSED_SETTINGS(SINTER_TEXT)
#undef SINTER_TEXT
} // namespace detail

class IBuilder : public detail::reporter, public detail::threaded {
  public:
    explicit IBuilder(ILogger &logger) : reporter(&logger) { detail::last_logger() = &logger; }
    /* version is TensorRT's of which the program is: before 10, a network has an implicit batch unless a flag says
     * otherwise. */
    INetworkDefinition *createNetworkV2(NetworkDefinitionCreationFlags flags,
                                        int32_t version = NV_TENSORRT_MAJOR) noexcept
    {
        const bool is_explicit = version >= 10 || flags >> int(NetworkDefinitionCreationFlag::kEXPLICIT_BATCH) & 1;
        return guard(static_cast<INetworkDefinition *>(nullptr), [&] {
            auto *const made = new INetworkDefinition(*this, logger_, flags, !is_explicit);
            made->setErrorRecorder(recorder_);
            return made;
        });
    }
    INetworkDefinition *createNetwork() noexcept { return createNetworkV2(0, 7); }
    IBuilderConfig *createBuilderConfig() noexcept { return new (std::nothrow) IBuilderConfig(); }
    /* Owned by the builder. */
    IOptimizationProfile *createOptimizationProfile() noexcept
    {
        return guard(static_cast<IOptimizationProfile *>(nullptr), [&] {
            profiles_.push_back(std::make_unique<IOptimizationProfile>());
            return profiles_.back().get();
        });
    }
    bool platformHasFastFp16() const noexcept { return true; }
    bool platformHasFastInt8() const noexcept { return true; }
    bool platformHasTf32() const noexcept { return detail::device() != "cpu"; }
    int32_t getMaxDLABatchSize() const noexcept { return 0; }
    /* The largest batch of an engine whose network has an implicit one. Elsewhere the number is kept. */
    void setMaxBatchSize(int32_t size) noexcept { batch_ = size; }
    int32_t getMaxBatchSize() const noexcept { return batch_; }
    int32_t getNbDLACores() const noexcept { return 0; }
    void setGpuAllocator(IGpuAllocator *) noexcept
    {
        say(ILogger::Severity::kWARNING, "setGpuAllocator changes nothing while building: memory is the library's");
    }
    void reset() noexcept {}
    IPluginRegistry &getPluginRegistry() noexcept { return *::getPluginRegistry(); }
    bool isNetworkSupported(INetworkDefinition const &network, IBuilderConfig const &config) const noexcept
    {
        return guard(false, [&] {
            sinter::build_options o;
            o.use(::getPluginRegistry()->environment());
            o->tune = SINTER_TUNE_OFF;
            fill(const_cast<INetworkDefinition &>(network), config, o);
            const_cast<INetworkDefinition &>(network).net().build(o);
            return true;
        });
    }
    /* nullptr after a failure, which the logger has. */
    IHostMemory *buildSerializedNetwork(INetworkDefinition &network, IBuilderConfig &config) noexcept
    {
        return guard(static_cast<IHostMemory *>(nullptr), [&]() -> IHostMemory * {
            sinter::buffer made = build(network, config);
            if (!config.getFlag(BuilderFlag::kSTRIP_PLAN)) return new detail::plan(std::move(made));
            return new detail::plan(offline(made).strip());
        });
    }
    /* Kernels have no text to show. */
    IHostMemory *buildSerializedNetwork(INetworkDefinition &network, IBuilderConfig &config,
                                        IHostMemory *&kernelText) noexcept
    {
        kernelText = nullptr;
        return buildSerializedNetwork(network, config);
    }
    bool buildSerializedNetworkToStream(INetworkDefinition &network, IBuilderConfig &config,
                                        IStreamWriter &writer) noexcept
    {
        const std::unique_ptr<IHostMemory> made(buildSerializedNetwork(network, config));
        if (!made) return false;
        int64_t at = 0, size = static_cast<int64_t>(made->size());
        while (at < size) {
            const int64_t written = writer.write(static_cast<char const *>(made->data()) + at, size - at);
            if (written <= 0) return fail(SINTER_IO, "the stream takes no more bytes"), false;
            at += written;
        }
        return true;
    }
    ICudaEngine *buildEngineWithConfig(INetworkDefinition &network, IBuilderConfig &config) noexcept
    {
        const std::unique_ptr<IHostMemory> made(buildSerializedNetwork(network, config));
        if (!made) return nullptr;
        IRuntime runtime(*logger_);
        runtime.setErrorRecorder(recorder_);
        return runtime.deserializeCudaEngine(made->data(), made->size());
    }
    /* The configuration that the builder had itself, of TensorRT 5 to 7. */
    void setMaxWorkspaceSize(std::size_t size) noexcept { own_.setMaxWorkspaceSize(size); }
    void setFp16Mode(bool is_on) noexcept { own_.put_flag(BuilderFlag::kFP16, is_on); }
    void setInt8Mode(bool is_on) noexcept { own_.put_flag(BuilderFlag::kINT8, is_on); }
    void setInt8Calibrator(IInt8Calibrator *c) noexcept { own_.setInt8Calibrator(c); }
    void setHalf2Mode(bool is_on) noexcept { setFp16Mode(is_on); }
    void setStrictTypeConstraints(bool is_on) noexcept { own_.put_flag(BuilderFlag::kSTRICT_TYPES, is_on); }
    void setRefittable(bool is_on) noexcept { own_.put_flag(BuilderFlag::kREFIT, is_on); }
    void setDebugSync(bool is_on) noexcept { own_.put_flag(BuilderFlag::kDEBUG, is_on); }
    void allowGPUFallback(bool is_on) noexcept { own_.put_flag(BuilderFlag::kGPU_FALLBACK, is_on); }
    void setAverageFindIterations(int32_t count) noexcept { own_.setAvgTimingIterations(count); }
    void setMinFindIterations(int32_t count) noexcept { own_.setMinTimingIterations(count); }
    void setEngineCapability(EngineCapability c) noexcept { own_.setEngineCapability(c); }
    void setDeviceType(ILayer const *layer, DeviceType type) noexcept { own_.setDeviceType(layer, type); }
    void setDefaultDeviceType(DeviceType type) noexcept { own_.setDefaultDeviceType(type); }
    void setDLACore(int32_t core) noexcept { own_.setDLACore(core); }
    void resetDeviceType(ILayer const *layer) noexcept { own_.resetDeviceType(layer); }
    std::size_t getMaxWorkspaceSize() const noexcept { return own_.getMaxWorkspaceSize(); }
    bool getFp16Mode() const noexcept { return own_.getFlag(BuilderFlag::kFP16); }
    bool getHalf2Mode() const noexcept { return getFp16Mode(); }
    bool getInt8Mode() const noexcept { return own_.getFlag(BuilderFlag::kINT8); }
    bool getStrictTypeConstraints() const noexcept { return own_.getFlag(BuilderFlag::kSTRICT_TYPES); }
    bool getRefittable() const noexcept { return own_.getFlag(BuilderFlag::kREFIT); }
    bool getDebugSync() const noexcept { return own_.getFlag(BuilderFlag::kDEBUG); }
    int32_t getAverageFindIterations() const noexcept { return own_.getAvgTimingIterations(); }
    int32_t getMinFindIterations() const noexcept { return own_.getMinTimingIterations(); }
    EngineCapability getEngineCapability() const noexcept { return own_.getEngineCapability(); }
    DeviceType getDeviceType(ILayer const *layer) const noexcept { return own_.getDeviceType(layer); }
    DeviceType getDefaultDeviceType() const noexcept { return own_.getDefaultDeviceType(); }
    int32_t getDLACore() const noexcept { return own_.getDLACore(); }
    bool isDeviceTypeSet(ILayer const *layer) const noexcept { return own_.isDeviceTypeSet(layer); }
    bool canRunOnDLA(ILayer const *layer) const noexcept { return own_.canRunOnDLA(layer); }
    ICudaEngine *buildCudaEngine(INetworkDefinition &network) noexcept { return buildEngineWithConfig(network, own_); }
    void destroy() noexcept { delete this; }

  private:
    void warn(std::string const &text) const { say(ILogger::Severity::kWARNING, text); }
    [[noreturn]] static void refuse(char const *text) { throw sinter::error(SINTER_UNSUPPORTED, text); }
    /* Says what of a configuration changes nothing, and refuses what is not there. */
    void explain(INetworkDefinition const &network, IBuilderConfig const &config) const
    {
#define SINTER_FLAG(name, text) { BuilderFlag::k##name, #name " changes nothing: " text },
        static const std::pair<BuilderFlag, char const *> unused[] = { SINTER_UNUSED_FLAGS(SINTER_FLAG) };
#undef SINTER_FLAG
        for (auto const &f : unused)
            if (config.getFlag(f.first)) warn(f.second);
        if (config.capability_ != EngineCapability::kSTANDARD) refuse(detail::said_CAPABILITY);
        if (config.platform_ != RuntimePlatform::kSAME_AS_BUILD) refuse(detail::said_PLATFORM);
        if (config.uses_dla_ && !config.getFlag(BuilderFlag::kGPU_FALLBACK)) refuse(detail::said_DLA);
        if (config.compatibility_ != HardwareCompatibilityLevel::kNONE) warn(detail::said_HARDWARE);
        if (!config.libraries_.empty()) warn(detail::said_PLUGINS);
        if (config.selector_) warn(detail::said_SELECTOR);
        if (config.getFlag(BuilderFlag::kINT8) && !config.calibrator_ && ranges(network).empty())
            warn(detail::said_INT8);
    }
    /* Dynamic ranges that were set, by tensor. */
    static std::map<std::string, float> ranges(INetworkDefinition const &network)
    {
        std::map<std::string, float> made;
        for (auto const &t : network.tensors())
            if (t.second->dynamicRangeIsSet())
                made[t.second->getName()] =
                    std::max(std::fabs(t.second->getDynamicRangeMin()), std::fabs(t.second->getDynamicRangeMax()));
        return made;
    }
    void fill(INetworkDefinition &network, IBuilderConfig const &config, sinter::build_options &o) const
    {
        o.set("device", detail::device());
        uint32_t allow = 0;
        if (config.getFlag(BuilderFlag::kFP16)) allow |= SINTER_ALLOW_FP16;
        if (config.getFlag(BuilderFlag::kBF16)) allow |= SINTER_ALLOW_BF16;
        if (config.getFlag(BuilderFlag::kTF32) && detail::device() != "cpu") allow |= SINTER_ALLOW_TF32;
        if (config.getFlag(BuilderFlag::kINT8) && (config.calibrator_ || !ranges(network).empty()))
            allow |= SINTER_ALLOW_INT8;
        if (network.getFlag(NetworkDefinitionCreationFlag::kSTRONGLY_TYPED)) allow = 0;
        else
            sinter::call(sinter_network_set_precision_mode, network.net().get(),
                         config.getFlag(BuilderFlag::kOBEY_PRECISION_CONSTRAINTS) ||
                                 config.getFlag(BuilderFlag::kSTRICT_TYPES)
                             ? SINTER_PRECISION_OBEY
                         : config.getFlag(BuilderFlag::kPREFER_PRECISION_CONSTRAINTS) ? SINTER_PRECISION_PREFER
                                                                                      : SINTER_PRECISION_IGNORE);
        o->allow = allow;
        for (const BuilderFlag f : { BuilderFlag::kREFIT, BuilderFlag::kREFIT_IDENTICAL, BuilderFlag::kSTRIP_PLAN })
            if (config.getFlag(f)) o->refittable = 1;
        if (config.getFlag(BuilderFlag::kREFIT_INDIVIDUAL) && !network.marked_weights().empty()) {
            o->refittable = 1;
            o.replaceable.assign(network.marked_weights().begin(), network.marked_weights().end());
        }
        o->detail = config.verbosity_ == ProfilingVerbosity::kDETAILED ? SINTER_DETAIL_ALL
                    : config.verbosity_ == ProfilingVerbosity::kNONE   ? SINTER_DETAIL_NONE
                                                                       : SINTER_DETAIL_NAMES;
        if (config.aux_streams_ == 0) o->branches = SINTER_BRANCHES_OFF;
        const auto workspace = config.pools_.find(MemoryPoolType::kWORKSPACE);
        if (workspace != config.pools_.end()) o->workspace = workspace->second;
        if (network.hidden()) {
            o.profiles.emplace_back();
            for (int32_t i = 0; i < network.getNbInputs(); i++) {
                ITensor const &t = *network.getInput(i);
                const auto shape = [&](int64_t n) { return detail::from(detail::show_batch(t.getDimensions(), 1, n)); };
                o.profiles.back().push_back({ t.getName(), shape(1), shape(batch_), shape(batch_) });
            }
            return;
        }
        for (IOptimizationProfile const *p : config.profiles_) {
            o.profiles.emplace_back();
            for (auto const &s : p->shapes())
                o.profiles.back().push_back(
                    { s.first, detail::from(s.second[0]), detail::from(s.second[1]), detail::from(s.second[2]) });
        }
    }
    /* The shapes in which a calibrator's batches are. */
    sinter::dims batch_shape(ITensor const &input, IBuilderConfig const &config) const
    {
        const sinter_network_shape given = sinter::edge(input.get()).shape();
        sinter::dims shape(given.dim, given.dim + given.rank);
        IOptimizationProfile const *p = config.calibration_profile_ ? config.calibration_profile_
                                        : config.profiles_.empty()  ? nullptr
                                                                    : config.profiles_[0];
        const Dims usual = p ? p->getDimensions(input.getName(), OptProfileSelector::kOPT) : ICudaEngine::none();
        for (size_t i = 0; i < shape.size(); i++)
            if (shape[i] < 0)
                shape[i] = static_cast<int32_t>(i) < usual.nbDims ? usual.d[i]
                           : i == 0                               ? config.calibrator_->getBatchSize()
                                                                  : 1;
        return shape;
    }
    struct calibration_end {
        void operator()(sinter_calibration *c) const { sinter_calibration_destroy(c); }
    };
    using calibration = std::unique_ptr<sinter_calibration, calibration_end>;
    /* Batches of a calibrator as samples of a build. */
    void batches(INetworkDefinition &network, IBuilderConfig const &config, sinter::build_options &o) const
    {
        const int32_t count = network.getNbInputs();
        std::vector<char const *> names;
        for (int32_t i = 0; i < count; i++) names.push_back(network.getInput(i)->getName());
        std::vector<void *> at(static_cast<size_t>(count));
        while (config.calibrator_->getBatch(at.data(), names.data(), count)) {
            sinter::inputs sample;
            for (int32_t i = 0; i < count; i++) {
                ITensor const &input = *network.getInput(i);
                const sinter::tensor t(detail::from(input.getType()), batch_shape(input, config));
                if (cudaMemcpy(t.data(), at[static_cast<size_t>(i)], t.size_bytes(), cudaMemcpyDeviceToHost) !=
                    cudaSuccess)
                    throw sinter::error(SINTER_INVALID_ARG, "the calibrator's batch of '" +
                                                                std::string(input.getName()) + "' is not " +
                                                                std::to_string(t.size_bytes()) + " bytes");
                sample.emplace(input.getName(), t);
            }
            o.samples.push_back(sample);
        }
    }
    /* The ranges of 8-bit numbers: of the calibrator's cache, else of its batches; and dynamic ranges over them. */
    calibration calibrate(INetworkDefinition &network, IBuilderConfig const &config,
                          sinter::build_options const &o) const
    {
        sinter_calibration *made = nullptr;
        std::size_t length = 0;
        void const *cache = config.calibrator_ ? config.calibrator_->readCalibrationCache(length) : nullptr;
        if (!config.calibrator_) {
            sinter::call(sinter_calibration_create, nullptr, &made);
        } else if (cache && length) {
            sinter::call(sinter_calibration_read, cache, length, nullptr, &made);
        } else {
            static const sinter_calibration_method methods[] = {
                SINTER_CALIBRATION_LEGACY, SINTER_CALIBRATION_ENTROPY, SINTER_CALIBRATION_ENTROPY_2,
                SINTER_CALIBRATION_MINMAX
            };
            sinter::build_options data = o;
            batches(network, config, data);
            const sinter::lowered_options lowered(data);
            sinter_calibrate_options options = SINTER_CALIBRATE_OPTIONS;
            options.method = methods[static_cast<int>(config.calibrator_->getAlgorithm())];
            options.build = &lowered.c;
            if (auto *legacy = dynamic_cast<IInt8LegacyCalibrator *>(config.calibrator_)) {
                options.quantile = legacy->getQuantile();
                options.cutoff = legacy->getRegressionCutoff();
            }
            sinter::call(sinter_calibrate_network, network.net().get(), &options, &made);
            calibration held(made);
            sinter::buffer text;
            sinter::call(sinter_calibration_write, made, text.get());
            config.calibrator_->writeCalibrationCache(text.data(), text.size());
            say(ILogger::Severity::kINFO, "Calibrated with " + std::to_string(data.samples.size()) + " batches.");
            made = held.release();
        }
        calibration held(made);
        for (auto const &r : ranges(network))
            sinter::call(sinter_calibration_set, made, r.first.c_str(), static_cast<double>(r.second));
        return held;
    }
    /* The scale of a tensor's 8-bit numbers; 0: it has none. */
    static double scale_of(sinter_calibration *ranges, std::string const &tensor)
    {
        for (uint32_t i = 0; ranges && i < sinter_calibration_count(ranges); i++) {
            char const *name = nullptr;
            float scale = 0;
            sinter::call(sinter_calibration_get, ranges, i, &name, &scale);
            if (tensor == name) return static_cast<double>(scale);
        }
        return 0;
    }
    sinter::buffer build(INetworkDefinition &network, IBuilderConfig &config)
    {
        explain(network, config);
        network.make_stale();
        sinter::environment env = ::getPluginRegistry()->environment();
        sinter::build_options o;
        o.use(env);
        fill(network, config, o);
        o->tune = config.level_ == 0 ? SINTER_TUNE_OFF : config.level_ < 4 ? SINTER_TUNE_FAST : SINTER_TUNE_FULL;
        calibration ranges_of_8_bits;
        if (o->allow & SINTER_ALLOW_INT8) {
            ranges_of_8_bits = calibrate(network, config, o);
            o->calibration = ranges_of_8_bits.get();
        }
        const detail::boundary memory(network, [&](std::string const &name) {
            return scale_of(ranges_of_8_bits.get(), name);
        });
        for (auto &profile : o.profiles)
            for (auto &input : profile)
                for (sinter::dims *shape : { &input.min, &input.opt, &input.max })
                    *shape = memory.stored(input.input, *shape);
        for (auto const &inner : memory.inner_names()) {
            const double scale = scale_of(ranges_of_8_bits.get(), inner.first);
            if (scale > 0)
                sinter::call(sinter_calibration_set, ranges_of_8_bits.get(), inner.second.c_str(), scale * 127);
        }
        phases progress{ config.monitor_, {}, -1 };
        if (config.monitor_)
            o.progress = [&](sinter::standard::string_view name, double done) {
                return progress.at(std::string(name), done);
            };
        if (config.cache_ && config.cache_->is_foreign())
            warn("the bytes that the timing cache was created from are no timing cache of sinter, and one of TensorRT "
                 "cannot be read: the cache begins empty");
        cache_file cache(config, o);
        std::vector<std::string> said;
        for (size_t i = 0; i < config.profiles_.size(); i++)
            for (auto const &v : config.profiles_[i]->values()) said.push_back(v.second.text(i, v.first));
        const auto build = [&] { return network.net().build(o); };
        sinter::buffer made = network.with_marked_outputs(said, {}, build);
        if (network.marks_unfused()) {
            const auto unfused = network.unfused(offline(made));
            made = network.with_marked_outputs(said, unfused, build);
        }
        cache.read();
        cache.say(*this, config, made);
        say(ILogger::Severity::kINFO, "Engine generation completed: " + std::to_string(made.size()) + " bytes.");
        return made;
    }
    /* An engine to look at. */
    static sinter::engine offline(sinter::buffer const &made)
    {
        sinter::engine_options o;
        o.use(::getPluginRegistry()->environment());
        o->no_device = 1;
        return sinter::engine::load(made, o);
    }
    /* Phases of a build for an IProgressMonitor. A phase has 100 steps. It ends where a build fails or is cancelled,
     * too. */
    struct phases {
        IProgressMonitor *monitor;
        std::string name;
        int32_t step;
        static constexpr int32_t STEPS = 100;
        bool at(std::string const &phase, double done)
        {
            if (phase != name) {
                finish();
                name = phase;
                step = -1;
                monitor->phaseStart(name.c_str(), nullptr, STEPS);
            }
            while (step < static_cast<int32_t>(done * STEPS) && step < STEPS - 1)
                if (!monitor->stepComplete(name.c_str(), ++step)) return false;
            return true;
        }
        void finish()
        {
            if (!name.empty()) monitor->phaseFinish(name.c_str());
            name.clear();
        }
        ~phases() { finish(); }
    };
    /* The timing cache as a file, while a build lasts. */
    class cache_file {
      public:
        cache_file(IBuilderConfig &config, sinter::build_options &o) : cache_(config.cache_)
        {
            if (!cache_ || config.getFlag(BuilderFlag::kDISABLE_TIMING_CACHE)) return;
            char const *folder = std::getenv("TMPDIR");
            path_ = std::string(folder && *folder ? folder : "/tmp") + "/sinter-timings-XXXXXX";
            const int file = mkstemp(&path_[0]);
            if (file < 0) throw sinter::error(SINTER_IO, "no file can be made for the timing cache: " + path_);
            FILE *f = fdopen(file, "wb");
            std::fwrite(cache_->text().data(), 1, cache_->text().size(), f);
            std::fclose(f);
            o.set("timing_cache", path_);
            o->cache_only = config.getFlag(BuilderFlag::kERROR_ON_TIMING_CACHE_MISS);
        }
        /* What is known of each key, for programs that edit the cache. */
        void say(IBuilder const &builder, IBuilderConfig const &config, sinter::buffer const &made) const
        {
            if (path_.empty() || !config.getFlag(BuilderFlag::kEDITABLE_TIMING_CACHE)) return;
            std::vector<std::string> layers;
            std::string all = offline(made).print_layers(SINTER_PRINT_TEXT);
            for (size_t at = 0, end; at < all.size(); at = end + 1) {
                end = std::min(all.find('\n', at), all.size());
                layers.push_back(all.substr(at, end - at));
            }
            for (std::string const &line : cache_->described(layers)) builder.say(ILogger::Severity::kVERBOSE, line);
        }
        void read()
        {
            if (path_.empty()) return;
            if (FILE *f = std::fopen(path_.c_str(), "rb")) {
                cache_->text().clear();
                char part[4096];
                for (size_t n; (n = std::fread(part, 1, sizeof part, f)) > 0;) cache_->text().append(part, n);
                std::fclose(f);
            }
        }
        ~cache_file()
        {
            read();
            if (!path_.empty()) std::remove(path_.c_str());
        }

      private:
        ITimingCache *cache_;
        std::string path_;
    };
    std::vector<std::unique_ptr<IOptimizationProfile>> profiles_;
    int32_t batch_ = 1;
    IBuilderConfig own_;
};

inline IBuilder *createInferBuilder(ILogger &logger) noexcept { return new (std::nothrow) IBuilder(logger); }

namespace v_1_0 {
using IProgressMonitor = nvinfer1::IProgressMonitor;
using TimingCacheKey = nvinfer1::TimingCacheKey;
using TimingCacheValue = nvinfer1::TimingCacheValue;
} // namespace v_1_0

} // namespace nvinfer1

/* The functions under the names by which a program finds them in a library. */
extern "C" inline void *createInferBuilder_INTERNAL(void *logger, int32_t) noexcept
{
    return nvinfer1::createInferBuilder(*static_cast<nvinfer1::ILogger *>(logger));
}

/* There is one registry, for every capability but that of the safety runtime, which is not there. */
extern "C" inline nvinfer1::IPluginRegistry *getBuilderPluginRegistry(nvinfer1::EngineCapability capability) noexcept
{
    return capability == nvinfer1::EngineCapability::kSTANDARD ? getPluginRegistry() : nullptr;
}
/* Upstream's builder loads its kernels from libraries in that folder; this one has no library to load: false. */
extern "C" inline bool setInternalLibraryPath(char const *) noexcept
{
    return false;
}

#endif
