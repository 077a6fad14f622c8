/* SPDX-License-Identifier: Apache-2.0 */
/* NvInferRuntimeBase.h - what all headers of this folder share: types, sizes, loggers, errors.
 *
 * The headers of this folder have the shape of TensorRT's, written anew over sinter's C API, so that programs for
 * TensorRT's C++ interface compile and run with sinter: put this folder on the include path and link sinter. They need
 * C++17. What is built for is SINTER_TENSORRT_DEVICE ("cpu", "cuda", "cuda:1"); without it a GPU where there is one,
 * and the CPU where host/cuda_runtime_api.h stands in for the CUDA runtime. docs/from-tensorrt.md says what differs.
 *
 * Errors: calls do not throw. They tell the object's ILogger and IErrorRecorder, and return false or nullptr. */
#ifndef NV_INFER_RUNTIME_BASE_H
#define NV_INFER_RUNTIME_BASE_H

/* With C++14, what these headers have of C++17's language is an extension that needs no warning. */
#if __cplusplus < 201703L && defined __GNUC__
#pragma GCC system_header
#endif

#include "../sinter.hpp"
#include "NvInferVersion.h"

#include <algorithm>

#if __has_include(<cuda_runtime_api.h>)
#include <cuda_runtime_api.h>
#else
#include "host/cuda_runtime_api.h"
#endif

#define TENSORRTAPI
#define TRT_DEPRECATED
#define TRT_DEPRECATED_BECAUSE(reason)
#if __cplusplus >= 201703L
#define TRT_NODISCARD [[nodiscard]]
#define TRT_NODISCARD_BECAUSE(reason) [[nodiscard]]
#else
#define TRT_NODISCARD
#define TRT_NODISCARD_BECAUSE(reason)
#endif
#define TRT_DEPRECATED_ENUM
#define TRT_DEPRECATED_API
#define TRTNOEXCEPT noexcept

namespace nvinfer1 {

using char_t = char;
using AsciiChar = char;

/* The number of values of an enum: one behind the last. */
template <class T> constexpr int32_t EnumMax() noexcept;

enum class DataType : int32_t {
    kFLOAT = 0, kHALF = 1, kINT8 = 2, kINT32 = 3, kBOOL = 4, kUINT8 = 5, kFP8 = 6, kBF16 = 7, kINT64 = 8, kINT4 = 9,
    kFP4 = 10, kE8M0 = 11
};
template <> constexpr int32_t EnumMax<DataType>() noexcept { return 12; }
enum class TensorFormat : int32_t {
    kLINEAR = 0, kCHW2 = 1, kHWC8 = 2, kCHW4 = 3, kCHW16 = 4, kCHW32 = 5, kDHWC8 = 6, kCDHW32 = 7, kHWC = 8,
    kDLA_LINEAR = 9, kDLA_HWC4 = 10, kHWC16 = 11, kDHWC = 12, kNCHW = 0, kNC2HW2 = 1, kNHWC8 = 2
};
using PluginFormat = TensorFormat;
using TensorFormats = uint32_t;
enum class TensorIOMode : int32_t { kNONE = 0, kINPUT = 1, kOUTPUT = 2 };
enum class TensorLocation : int32_t { kDEVICE = 0, kHOST = 1 };
enum class ErrorCode : int32_t {
    kSUCCESS = 0, kUNSPECIFIED_ERROR = 1, kINTERNAL_ERROR = 2, kINVALID_ARGUMENT = 3, kINVALID_CONFIG = 4,
    kFAILED_ALLOCATION = 5, kFAILED_INITIALIZATION = 6, kFAILED_EXECUTION = 7, kFAILED_COMPUTATION = 8,
    kINVALID_STATE = 9, kUNSUPPORTED_STATE = 10
};
enum class ILoggerSeverity : int32_t { kINTERNAL_ERROR = 0, kERROR = 1, kWARNING = 2, kINFO = 3, kVERBOSE = 4 };
enum class APILanguage : int32_t { kCPP = 0, kPYTHON = 1 };
enum class AllocatorFlag : int32_t { kRESIZABLE = 0 };
using AllocatorFlags = uint32_t;
template <> constexpr int32_t EnumMax<TensorFormat>() noexcept { return 13; }
template <> constexpr int32_t EnumMax<TensorIOMode>() noexcept { return 3; }
template <> constexpr int32_t EnumMax<TensorLocation>() noexcept { return 2; }
template <> constexpr int32_t EnumMax<ErrorCode>() noexcept { return 11; }
template <> constexpr int32_t EnumMax<ILoggerSeverity>() noexcept { return 5; }

struct InterfaceInfo {
    char const *kind;
    int32_t major, minor;
};
class IVersionedInterface {
  public:
    virtual ~IVersionedInterface() = default;
    virtual APILanguage getAPILanguage() const { return APILanguage::kCPP; }
    virtual InterfaceInfo getInterfaceInfo() const { return InterfaceInfo{ "", 1, 0 }; }
};

/* What TensorRT 7 said of each axis. Nothing follows from it. */
enum class DimensionType : int32_t { kSPATIAL = 0, kCHANNEL = 1, kINDEX = 2, kSEQUENCE = 3 };
/* As wide as in the version that the program is for. */
#if NV_TENSORRT_MAJOR < 10
using dim_size = int32_t;
#else
using dim_size = int64_t;
#endif
/* Sizes; -1 where a size is not known. */
class Dims64 {
  public:
    static constexpr int32_t MAX_DIMS = 8;
    int32_t nbDims = 0;
    dim_size d[MAX_DIMS] = {};
#if NV_TENSORRT_MAJOR < 8
    DimensionType type[MAX_DIMS] = {};
#endif
};
using Dims = Dims64;
class Dims2 : public Dims {
  public:
    Dims2() : Dims2(0, 0) {}
    Dims2(dim_size a, dim_size b)
    {
        nbDims = 2;
        d[0] = a;
        d[1] = b;
    }
};
class DimsHW : public Dims2 {
  public:
    DimsHW() = default;
    DimsHW(dim_size height, dim_size width) : Dims2(height, width) {}
    dim_size &h() { return d[0]; }
    dim_size &w() { return d[1]; }
    dim_size h() const { return d[0]; }
    dim_size w() const { return d[1]; }
};
class Dims3 : public Dims2 {
  public:
    Dims3() : Dims3(0, 0, 0) {}
    Dims3(dim_size a, dim_size b, dim_size c) : Dims2(a, b)
    {
        nbDims = 3;
        d[2] = c;
    }
};
class DimsCHW : public Dims3 {
  public:
    using Dims3::Dims3;
    dim_size &c() { return d[0]; }
    dim_size &h() { return d[1]; }
    dim_size &w() { return d[2]; }
    dim_size c() const { return d[0]; }
    dim_size h() const { return d[1]; }
    dim_size w() const { return d[2]; }
};
class Dims4 : public Dims3 {
  public:
    Dims4() : Dims4(0, 0, 0, 0) {}
    Dims4(dim_size a, dim_size b, dim_size c, dim_size e) : Dims3(a, b, c)
    {
        nbDims = 4;
        d[3] = e;
    }
};
class DimsNCHW : public Dims4 {
  public:
    using Dims4::Dims4;
    dim_size &n() { return d[0]; }
    dim_size &c() { return d[1]; }
    dim_size &h() { return d[2]; }
    dim_size &w() { return d[3]; }
    dim_size n() const { return d[0]; }
    dim_size c() const { return d[1]; }
    dim_size h() const { return d[2]; }
    dim_size w() const { return d[3]; }
};
struct Permutation {
    int32_t order[Dims::MAX_DIMS] = {};
};

/* Elements of weights. The memory is borrowed until the network has been built. */
class Weights {
  public:
    DataType type = DataType::kFLOAT;
    void const *values = nullptr;
    int64_t count = 0;
};

class ILogger {
  public:
    using Severity = ILoggerSeverity;
    virtual InterfaceInfo getInterfaceInfo() const { return InterfaceInfo{ "Logger", 1, 0 }; }
    virtual void log(Severity severity, AsciiChar const *msg) = 0;
    virtual ~ILogger() = default;
};

class IErrorRecorder : public IVersionedInterface {
  public:
    using ErrorDesc = char const *;
    using RefCount = int32_t;
    static constexpr size_t kMAX_DESC_LENGTH = 127;
    virtual int32_t getNbErrors() const = 0;
    virtual ErrorCode getErrorCode(int32_t index) const = 0;
    virtual ErrorDesc getErrorDesc(int32_t index) const = 0;
    virtual bool hasOverflowed() const = 0;
    virtual void clear() = 0;
    virtual bool reportError(ErrorCode code, ErrorDesc desc) = 0;
    virtual RefCount incRefCount() = 0;
    virtual RefCount decRefCount() = 0;
};

/* ---- how sinter's things are called here ---- */
namespace detail {

struct type_row {
    DataType type;
    sinter_dtype dtype;
};
inline constexpr type_row TYPES[] = {
    { DataType::kFLOAT, SINTER_DTYPE_F32 },    { DataType::kHALF, SINTER_DTYPE_F16 },
    { DataType::kINT8, SINTER_DTYPE_I8 },      { DataType::kINT32, SINTER_DTYPE_I32 },
    { DataType::kBOOL, SINTER_DTYPE_BOOL },    { DataType::kUINT8, SINTER_DTYPE_U8 },
    { DataType::kFP8, SINTER_DTYPE_F8E4M3FN }, { DataType::kBF16, SINTER_DTYPE_BF16 },
    { DataType::kINT64, SINTER_DTYPE_I64 },    { DataType::kINT4, SINTER_DTYPE_I4 },
    { DataType::kFP4, SINTER_DTYPE_F4E2M1 },   { DataType::kE8M0, SINTER_DTYPE_F8E8M0 },
};
inline sinter_dtype from(DataType type)
{
    for (const type_row &row : TYPES)
        if (row.type == type) return row.dtype;
    throw sinter::error(SINTER_INVALID_ARG, "DataType " + std::to_string(static_cast<int>(type)) + " is none");
}
inline DataType from(sinter_dtype dtype)
{
    for (const type_row &row : TYPES)
        if (row.dtype == dtype) return row.type;
    throw sinter::error(SINTER_UNSUPPORTED, std::string("TensorRT has no type for ") + sinter_dtype_name(dtype) +
                                                ": use sinter.hpp, or cast the tensor in the model");
}
inline sinter::dims from(Dims const &dims)
{
    if (dims.nbDims < 0 || dims.nbDims > Dims::MAX_DIMS)
        throw sinter::error(SINTER_INVALID_ARG, "Dims of " + std::to_string(dims.nbDims) + " axes: 0 to 8");
    return sinter::dims(dims.d, dims.d + dims.nbDims);
}
inline Dims to_dims(int64_t const *dim, uint32_t rank)
{
    if (rank > static_cast<uint32_t>(Dims::MAX_DIMS))
        throw sinter::error(SINTER_UNSUPPORTED, "a tensor of rank " + std::to_string(rank) + ": Dims have 8 axes");
    Dims made;
    made.nbDims = static_cast<int32_t>(rank);
    for (uint32_t i = 0; i < rank; i++) made.d[i] = static_cast<dim_size>(dim[i]);
    return made;
}
inline Dims to_dims(sinter::dims const &dims) { return to_dims(dims.data(), static_cast<uint32_t>(dims.size())); }

/* The values of an input that a profile has, as numbers of both sizes. An output of the engine, whose name begins with
 * the mark, tells them: "[values] PROFILE MIN;OPT;MAX NAME", where lists have commas. */
inline constexpr char VALUES_MARK[] = "[values] ";
struct shape_values {
    std::vector<int64_t> wide[3];
    std::vector<int32_t> narrow[3];

    void put(int which, std::vector<int64_t> values)
    {
        narrow[which].clear();
        for (const int64_t v : values) narrow[which].push_back(static_cast<int32_t>(v));
        wide[which] = std::move(values);
    }
    std::string text(size_t profile, std::string const &name) const
    {
        std::string made = VALUES_MARK + std::to_string(profile) + " ";
        for (int k = 0; k < 3; k++) {
            if (k) made += ";";
            for (size_t i = 0; i < wide[k].size(); i++) made += (i ? "," : "") + std::to_string(wide[k][i]);
        }
        return made + " " + name;
    }
    /* Reads a text; *name: of the input. */
    size_t read(std::string const &mark, std::string *name)
    {
        char *at = nullptr;
        const size_t profile = std::strtoul(mark.c_str() + sizeof VALUES_MARK - 1, &at, 10);
        for (int k = 0; k < 3 && *at; k++) {
            std::vector<int64_t> list;
            at++;
            while (*at && *at != ';' && *at != ' ') {
                char *const from = at;
                list.push_back(std::strtoll(from, &at, 10));
                if (*at == ',' || at == from) at++; /* what is no number is skipped */
            }
            put(k, std::move(list));
        }
        *name = *at ? at + 1 : "";
        return profile;
    }
};

/* A network with an implicit batch has it as axis 0 of every tensor, which is not shown. An output of this name is how
 * its engine tells. */
inline constexpr char IMPLICIT_BATCH[] = "[implicit batch]";
inline Dims hide_batch(Dims const &dims, int32_t hidden)
{
    Dims made;
    made.nbDims = std::max(dims.nbDims - hidden, std::min(dims.nbDims, 0));
    for (int32_t i = 0; i < made.nbDims; i++) made.d[i] = dims.d[i + hidden];
    return made;
}
inline Dims show_batch(Dims const &dims, int32_t hidden, int64_t batch)
{
    if (!hidden) return dims;
    if (dims.nbDims < 0 || dims.nbDims >= Dims::MAX_DIMS)
        throw sinter::error(SINTER_INVALID_ARG,
                            "Dims of " + std::to_string(dims.nbDims) + " axes beside the batch: 0 to 7");
    Dims made;
    made.nbDims = dims.nbDims + 1;
    made.d[0] = static_cast<dim_size>(batch);
    for (int32_t i = 0; i < dims.nbDims; i++) made.d[i + 1] = dims.d[i];
    return made;
}

/* Begins the name of an engine's output that is a debug tensor. */
inline constexpr char DEBUG_MARK[] = "[debug] ";
/* The same of a tensor that INetworkDefinition::markUnfusedTensorsAsDebugTensors has found. */
inline constexpr char UNFUSED_MARK[] = "[unfused] ";

/* The logger of the object that was made last: what getLogger() gives. */
inline ILogger *&last_logger()
{
    static ILogger *logger = nullptr;
    return logger;
}

inline ErrorCode code_of(sinter_status status)
{
    switch (status) {
    case SINTER_INVALID_ARG:
    case SINTER_INVALID_MODEL:
    case SINTER_IO: return ErrorCode::kINVALID_ARGUMENT;
    case SINTER_UNSUPPORTED: return ErrorCode::kUNSUPPORTED_STATE;
    case SINTER_NO_MEMORY: return ErrorCode::kFAILED_ALLOCATION;
    case SINTER_DEVICE: return ErrorCode::kFAILED_EXECUTION;
    case SINTER_INCOMPATIBLE:
    case SINTER_CANCELLED: return ErrorCode::kINVALID_STATE;
    default: return ErrorCode::kINTERNAL_ERROR;
    }
}

/* A logger and an error recorder, and calls that never throw. */
class reporter {
  public:
    virtual ~reporter() = default;
    void setErrorRecorder(IErrorRecorder *recorder) noexcept { recorder_ = recorder; }
    IErrorRecorder *getErrorRecorder() const noexcept { return recorder_; }
    ILogger *getLogger() const noexcept { return logger_; }

    void say(ILogger::Severity severity, std::string const &text) const noexcept
    {
        try {
            if (logger_) logger_->log(severity, text.c_str());
        } catch (...) {
            /* A logger that throws loses its message. */
        }
    }
    void fail(sinter_status status, std::string const &text) const noexcept
    {
        if (recorder_) recorder_->reportError(code_of(status), text.c_str());
        say(ILogger::Severity::kERROR, text);
    }
    /* f(), or `otherwise` after a failure, which has been reported. */
    template <class F, class T> T guard(T otherwise, F &&f) const noexcept
    {
        try {
            return f();
        } catch (sinter::error const &e) {
            fail(e.status(), e.what());
        } catch (std::exception const &e) {
            fail(SINTER_INTERNAL, e.what());
        } catch (...) {
            fail(SINTER_INTERNAL, "a callback threw");
        }
        return otherwise;
    }
    template <class F> bool attempt(F &&f) const noexcept
    {
        return guard(false, [&] {
            f();
            return true;
        });
    }

  protected:
    explicit reporter(ILogger *logger, IErrorRecorder *recorder = nullptr) : logger_(logger), recorder_(recorder) {}
    reporter(reporter const &) = delete;
    reporter &operator=(reporter const &) = delete;
    ILogger *logger_;
    IErrorRecorder *recorder_;
};

/* Memory of the library that a callback gets, which the functions that stand in for the CUDA runtime's have to know. */
#ifdef SINTER_HOST_CUDA
using lent = sinter_host_cuda::lent;
#else
struct lent {
    void add(void const *, size_t) {}
};
#endif

/* What is built for, and where the memory of callers is. */
inline std::string device()
{
    const char *named = std::getenv("SINTER_TENSORRT_DEVICE");
    if (named && *named) return named;
#ifndef SINTER_HOST_CUDA
    int count = 0;
    if (cudaGetDeviceCount(&count) == cudaSuccess && count > 0) return "cuda";
#endif
    return "cpu";
}

} // namespace detail

/* Bytes on the host. */
class IHostMemory {
  public:
    virtual ~IHostMemory() = default;
    virtual void *data() const noexcept = 0;
    virtual std::size_t size() const noexcept = 0;
    virtual DataType type() const noexcept { return DataType::kINT8; }
    virtual void destroy() noexcept { delete this; }
};

namespace detail {
/* How many threads a program permits is kept: how many work is the library's choice. */
class threaded {
  public:
    bool setMaxThreads(int32_t count) noexcept
    {
        if (count >= 1) threads_ = count;
        return count >= 1;
    }
    int32_t getMaxThreads() const noexcept { return threads_; }

  private:
    int32_t threads_ = 1;
};
class plan : public IHostMemory {
  public:
    explicit plan(sinter::buffer &&bytes) : bytes_(std::move(bytes)) {}
    void *data() const noexcept override { return const_cast<void *>(bytes_.data()); }
    std::size_t size() const noexcept override { return bytes_.size(); }

  private:
    sinter::buffer bytes_;
};
class text_memory : public IHostMemory {
  public:
    explicit text_memory(std::string text) : text_(std::move(text)) {}
    void *data() const noexcept override { return const_cast<char *>(text_.data()); }
    std::size_t size() const noexcept override { return text_.size(); }

  private:
    std::string text_;
};
} // namespace detail

/* Memory of a GPU from the program. Engines take it on a GPU; on the CPU memory is the library's. */
class IGpuAllocator : public IVersionedInterface {
  public:
    virtual void *allocate(uint64_t size, uint64_t alignment, AllocatorFlags flags) = 0;
    virtual void *reallocate(void *, uint64_t, uint64_t) { return nullptr; }
    virtual bool deallocate(void *memory)
    {
        free(memory);
        return true;
    }
    virtual void free(void *) {} /* the name of deallocate in TensorRT 8 */
    virtual void *allocateAsync(uint64_t size, uint64_t alignment, AllocatorFlags flags, cudaStream_t)
    {
        return allocate(size, alignment, flags);
    }
    virtual bool deallocateAsync(void *memory, cudaStream_t) { return deallocate(memory); }
};
/* A program gives the calls with a stream; those without one are made of them. */
class IGpuAsyncAllocator : public IGpuAllocator {
  public:
    void *allocateAsync(uint64_t size, uint64_t alignment, AllocatorFlags flags, cudaStream_t stream) override = 0;
    bool deallocateAsync(void *memory, cudaStream_t stream) override = 0;
    void *allocate(uint64_t size, uint64_t alignment, AllocatorFlags flags) override
    {
        return allocateAsync(size, alignment, flags, nullptr);
    }
    bool deallocate(void *memory) override { return deallocateAsync(memory, nullptr); }
};

/* Bytes of an engine from the program. */
class IStreamReader : public IVersionedInterface {
  public:
    virtual int64_t read(void *destination, int64_t nbBytes) = 0;
};
enum class SeekPosition : int32_t { kSET = 0, kCUR = 1, kEND = 2 };
class IStreamReaderV2 : public IVersionedInterface {
  public:
    virtual int64_t read(void *destination, int64_t nbBytes, cudaStream_t stream) = 0;
    virtual bool seek(int64_t offset, SeekPosition where) = 0;
};
class IStreamWriter : public IVersionedInterface {
  public:
    virtual int64_t write(void const *data, int64_t nbBytes) = 0;
};

} // namespace nvinfer1

/* The logger of the builder, runtime or refitter that was made last. */
inline nvinfer1::ILogger *getLogger() noexcept { return nvinfer1::detail::last_logger(); }
inline int32_t getInferLibVersion() noexcept { return NV_TENSORRT_VERSION; }
inline int32_t getInferLibMajorVersion() noexcept { return NV_TENSORRT_MAJOR; }
inline int32_t getInferLibMinorVersion() noexcept { return NV_TENSORRT_MINOR; }
inline int32_t getInferLibPatchVersion() noexcept { return NV_TENSORRT_PATCH; }
inline int32_t getInferLibBuildVersion() noexcept { return NV_TENSORRT_BUILD; }

#endif
