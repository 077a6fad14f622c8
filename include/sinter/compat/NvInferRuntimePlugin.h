/* SPDX-License-Identifier: Apache-2.0 */
/* NvInferRuntimePlugin.h - plugins: IPluginV2 and its subclasses, IPluginV3, their creators, the registry.
 *
 * Each creator of the registry becomes a sinter_plugin (NvInferPluginAdapter.h). A node of a model
 * is given to createPlugin as fields; a plugin that is added by calls as its serialised bytes. Operands are row-major.
 * In an engine for a GPU `enqueue` gets device memory and the stream; in one for the CPU host memory and nullptr.
 * Functions of plugins may be declared noexcept or not. */
#ifndef NV_INFER_RUNTIME_PLUGIN_H
#define NV_INFER_RUNTIME_PLUGIN_H

#include "NvInferRuntimeBase.h"

struct cudnnContext;
struct cublasContext;

namespace nvinfer1 {

class IGpuAllocator;
using ICudnnContext = cudnnContext;
using ICublasContext = cublasContext;

enum class DimensionOperation : int32_t {
    kSUM = 0, kPROD = 1, kMAX = 2, kMIN = 3, kSUB = 4, kEQUAL = 5, kLESS = 6, kFLOOR_DIV = 7, kCEIL_DIV = 8
};
template <> constexpr int32_t EnumMax<DimensionOperation>() noexcept { return 9; }
/* A size as an expression over the sizes of the inputs. It lives as long as the call that it is given to. */
class IDimensionExpr {
  public:
    virtual ~IDimensionExpr() = default;
    virtual bool isConstant() const = 0;
    virtual int64_t getConstantValue() const = 0;
    virtual bool isSizeTensor() const { return false; }
};
class IExprBuilder {
  public:
    virtual ~IExprBuilder() = default;
    virtual IDimensionExpr const *constant(int64_t value) = 0;
    virtual IDimensionExpr const *operation(DimensionOperation op, IDimensionExpr const &a,
                                            IDimensionExpr const &b) = 0;
    /* A size that the run decides: output `outputIndex` is a scalar of type INT32 or INT64, to which `enqueue` writes
     * the size. It is at most `upper`. */
    virtual IDimensionExpr const *declareSizeTensor(int32_t outputIndex, IDimensionExpr const &opt,
                                                    IDimensionExpr const &upper) = 0;
};
class DimsExprs {
  public:
    int32_t nbDims = 0;
    IDimensionExpr const *d[Dims::MAX_DIMS] = {};
};

struct PluginTensorDesc {
    Dims dims;
    DataType type = DataType::kFLOAT;
    TensorFormat format = TensorFormat::kLINEAR;
    float scale = 1;
};
struct DynamicPluginTensorDesc {
    PluginTensorDesc desc;
    Dims min, max, opt;
};

enum class PluginFieldType : int32_t {
    kFLOAT16 = 0, kFLOAT32 = 1, kFLOAT64 = 2, kINT8 = 3, kINT16 = 4, kINT32 = 5, kCHAR = 6, kDIMS = 7, kUNKNOWN = 8,
    kBF16 = 9, kINT64 = 10, kFP8 = 11, kINT4 = 12, kFP4 = 13
};
class PluginField {
  public:
    AsciiChar const *name = nullptr;
    void const *data = nullptr;
    PluginFieldType type = PluginFieldType::kUNKNOWN;
    int32_t length = 0;
    PluginField(AsciiChar const *name_ = nullptr, void const *data_ = nullptr,
                PluginFieldType type_ = PluginFieldType::kUNKNOWN, int32_t length_ = 0)
        : name(name_), data(data_), type(type_), length(length_)
    {
    }
};
struct PluginFieldCollection {
    int32_t nbFields = 0;
    PluginField const *fields = nullptr;
};

/* ---- version 2 ---- */

/* IPluginV2, IPluginV2Ext and IPluginV2IOExt see sizes without the batch, which is axis 0 of each input and output. The
 * other sizes of their inputs have to be known when the engine is built. */
static constexpr int32_t kPLUGIN_VERSION_PYTHON_BIT = 0x40;
enum class PluginVersion : uint8_t {
    kV2 = 0, kV2_EXT = 1, kV2_IOEXT = 2, kV2_DYNAMICEXT = 3, kV2_DYNAMICEXT_PYTHON = kPLUGIN_VERSION_PYTHON_BIT | 3
};
enum class PluginCreatorVersion : int32_t { kV1 = 0, kV1_PYTHON = kPLUGIN_VERSION_PYTHON_BIT };

class IPluginV2 {
  public:
    virtual ~IPluginV2() = default;
    virtual int32_t getTensorRTVersion() const noexcept { return NV_TENSORRT_VERSION; }
    virtual AsciiChar const *getPluginType() const = 0;
    virtual AsciiChar const *getPluginVersion() const = 0;
    virtual int32_t getNbOutputs() const = 0;
    virtual Dims getOutputDimensions(int32_t index, Dims const *inputs, int32_t nbInputDims) = 0;
    virtual bool supportsFormat(DataType type, PluginFormat format) const = 0;
    virtual void configureWithFormat(Dims const *inputDims, int32_t nbInputs, Dims const *outputDims, int32_t nbOutputs,
                                     DataType type, PluginFormat format, int32_t maxBatchSize) = 0;
    virtual int32_t initialize() = 0;
    virtual void terminate() = 0;
    virtual size_t getWorkspaceSize(int32_t maxBatchSize) const = 0;
#if NV_TENSORRT_MAJOR >= 8
    virtual int32_t enqueue(int32_t batchSize, void const *const *inputs, void *const *outputs, void *workspace,
                            cudaStream_t stream) = 0;
#else
    virtual int32_t enqueue(int32_t batchSize, void const *const *inputs, void **outputs, void *workspace,
                            cudaStream_t stream) = 0;
    int32_t enqueue(int32_t batchSize, void const *const *inputs, void *const *outputs, void *workspace,
                    cudaStream_t stream)
    {
        return enqueue(batchSize, inputs, const_cast<void **>(outputs), workspace, stream);
    }
#endif
    virtual size_t getSerializationSize() const = 0;
    virtual void serialize(void *buffer) const = 0;
    virtual void destroy() = 0;
    virtual IPluginV2 *clone() const = 0;
    virtual void setPluginNamespace(AsciiChar const *space) = 0;
    virtual AsciiChar const *getPluginNamespace() const = 0;
};
class IPluginV2Ext : public IPluginV2 {
  public:
    virtual DataType getOutputDataType(int32_t index, DataType const *inputTypes, int32_t nbInputs) const = 0;
    virtual void configurePlugin(Dims const *inputDims, int32_t nbInputs, Dims const *outputDims, int32_t nbOutputs,
                                 DataType const *inputTypes, DataType const *outputTypes, bool const *inputIsBroadcast,
                                 bool const *outputIsBroadcast, PluginFormat floatFormat, int32_t maxBatchSize) = 0;
    virtual void attachToContext(ICudnnContext *, ICublasContext *, IGpuAllocator *) {}
    virtual void detachFromContext() {}
    /* Of TensorRT 8; nothing is broadcast here. */
    virtual bool isOutputBroadcastAcrossBatch(int32_t, bool const *, int32_t) const { return false; }
    virtual bool canBroadcastInputAcrossBatch(int32_t) const { return false; }
    IPluginV2Ext *clone() const override = 0;

  protected:
    void configureWithFormat(Dims const *, int32_t, Dims const *, int32_t, DataType, PluginFormat, int32_t) override {}
};
class IPluginV2IOExt : public IPluginV2Ext {
  public:
    virtual void configurePlugin(PluginTensorDesc const *in, int32_t nbInput, PluginTensorDesc const *out,
                                 int32_t nbOutput) = 0;
    virtual bool supportsFormatCombination(int32_t pos, PluginTensorDesc const *inOut, int32_t nbInputs,
                                           int32_t nbOutputs) const = 0;

  private:
    void configurePlugin(Dims const *, int32_t, Dims const *, int32_t, DataType const *, DataType const *, bool const *,
                         bool const *, PluginFormat, int32_t) final
    {
    }
    bool supportsFormat(DataType, PluginFormat) const final { return false; }
};
class IPluginV2DynamicExt : public IPluginV2Ext {
  public:
    IPluginV2DynamicExt *clone() const override = 0;
    virtual DimsExprs getOutputDimensions(int32_t outputIndex, DimsExprs const *inputs, int32_t nbInputs,
                                          IExprBuilder &exprBuilder) = 0;
    virtual bool supportsFormatCombination(int32_t pos, PluginTensorDesc const *inOut, int32_t nbInputs,
                                           int32_t nbOutputs) = 0;
    virtual void configurePlugin(DynamicPluginTensorDesc const *in, int32_t nbInputs,
                                 DynamicPluginTensorDesc const *out, int32_t nbOutputs) = 0;
    virtual size_t getWorkspaceSize(PluginTensorDesc const *inputs, int32_t nbInputs, PluginTensorDesc const *outputs,
                                    int32_t nbOutputs) const = 0;
    virtual int32_t enqueue(PluginTensorDesc const *inputDesc, PluginTensorDesc const *outputDesc,
                            void const *const *inputs, void *const *outputs, void *workspace, cudaStream_t stream) = 0;

  private:
    void configurePlugin(Dims const *, int32_t, Dims const *, int32_t, DataType const *, DataType const *, bool const *,
                         bool const *, PluginFormat, int32_t) final
    {
    }
    bool supportsFormat(DataType, PluginFormat) const final { return false; }
    Dims getOutputDimensions(int32_t, Dims const *, int32_t) final { return {}; }
    size_t getWorkspaceSize(int32_t) const final { return 0; }
#if NV_TENSORRT_MAJOR >= 8
    int32_t enqueue(int32_t, void const *const *, void *const *, void *, cudaStream_t) final { return 1; }
#else
    int32_t enqueue(int32_t, void const *const *, void **, void *, cudaStream_t) final { return 1; }
#endif
};

/* ---- version 3 ---- */

enum class PluginCapabilityType : int32_t { kCORE = 0, kBUILD = 1, kRUNTIME = 2 };
enum class TensorRTPhase : int32_t { kBUILD = 0, kRUNTIME = 1 };
class IPluginCapability : public IVersionedInterface {};
class IPluginResource : public IVersionedInterface {
  public:
    virtual int32_t release() = 0;
    virtual IPluginResource *clone() = 0;
};
class IPluginResourceContext {
  public:
    virtual ~IPluginResourceContext() = default;
    virtual IGpuAllocator *getGpuAllocator() const = 0;
    virtual IErrorRecorder *getErrorRecorder() const = 0;
};
class IPluginV3 : public IVersionedInterface {
  public:
    virtual IPluginCapability *getCapabilityInterface(PluginCapabilityType type) = 0;
    virtual IPluginV3 *clone() = 0;
};
class IPluginV3OneCore : public IPluginCapability {
  public:
    virtual AsciiChar const *getPluginName() const = 0;
    virtual AsciiChar const *getPluginVersion() const = 0;
    virtual AsciiChar const *getPluginNamespace() const = 0;
};
class IPluginV3OneBuild : public IPluginCapability {
  public:
    static constexpr int32_t kDEFAULT_FORMAT_COMBINATION_LIMIT = 100;
    virtual int32_t configurePlugin(DynamicPluginTensorDesc const *in, int32_t nbInputs,
                                    DynamicPluginTensorDesc const *out, int32_t nbOutputs) = 0;
    virtual int32_t getOutputDataTypes(DataType *outputTypes, int32_t nbOutputs, DataType const *inputTypes,
                                       int32_t nbInputs) const = 0;
    virtual int32_t getOutputShapes(DimsExprs const *inputs, int32_t nbInputs, DimsExprs const *shapeInputs,
                                    int32_t nbShapeInputs, DimsExprs *outputs, int32_t nbOutputs,
                                    IExprBuilder &exprBuilder) = 0;
    virtual bool supportsFormatCombination(int32_t pos, DynamicPluginTensorDesc const *inOut, int32_t nbInputs,
                                           int32_t nbOutputs) = 0;
    virtual int32_t getNbOutputs() const = 0;
    virtual size_t getWorkspaceSize(DynamicPluginTensorDesc const *, int32_t, DynamicPluginTensorDesc const *,
                                    int32_t) const
    {
        return 0;
    }
    virtual int32_t getValidTactics(int32_t *, int32_t) { return 0; }
    virtual int32_t getNbTactics() { return 0; }
    virtual char const *getTimingCacheID() { return nullptr; }
    virtual int32_t getFormatCombinationLimit() { return kDEFAULT_FORMAT_COMBINATION_LIMIT; }
    virtual char const *getMetadataString() { return nullptr; }
};
/* Outputs that share the memory of an input: the number of the input, or -1. */
class IPluginV3OneBuildV2 : public IPluginV3OneBuild {
  public:
    virtual int32_t getAliasedInput(int32_t) { return -1; }
};
class IPluginV3OneRuntime : public IPluginCapability {
  public:
    virtual int32_t setTactic(int32_t) { return 0; }
    virtual int32_t onShapeChange(PluginTensorDesc const *in, int32_t nbInputs, PluginTensorDesc const *out,
                                  int32_t nbOutputs) = 0;
    virtual int32_t enqueue(PluginTensorDesc const *inputDesc, PluginTensorDesc const *outputDesc,
                            void const *const *inputs, void *const *outputs, void *workspace, cudaStream_t stream) = 0;
    virtual IPluginV3 *attachToContext(IPluginResourceContext *context) = 0;
    virtual PluginFieldCollection const *getFieldsToSerialize() = 0;
};

/* ---- creators ---- */

class IPluginCreatorInterface : public IVersionedInterface {};
class IPluginCreator : public IPluginCreatorInterface {
  public:
    virtual int32_t getTensorRTVersion() const { return NV_TENSORRT_VERSION; }
    virtual AsciiChar const *getPluginName() const = 0;
    virtual AsciiChar const *getPluginVersion() const = 0;
    virtual PluginFieldCollection const *getFieldNames() = 0;
    virtual IPluginV2 *createPlugin(AsciiChar const *name, PluginFieldCollection const *fc) = 0;
    virtual IPluginV2 *deserializePlugin(AsciiChar const *name, void const *data, size_t length) = 0;
    virtual void setPluginNamespace(AsciiChar const *space) = 0;
    virtual AsciiChar const *getPluginNamespace() const = 0;
};
class IPluginCreatorV3One : public IPluginCreatorInterface {
  public:
    virtual IPluginV3 *createPlugin(AsciiChar const *name, PluginFieldCollection const *fc, TensorRTPhase phase) = 0;
    virtual PluginFieldCollection const *getFieldNames() = 0;
    virtual AsciiChar const *getPluginName() const = 0;
    virtual AsciiChar const *getPluginVersion() const = 0;
    virtual AsciiChar const *getPluginNamespace() const = 0;
};

/* Upstream has these interfaces in namespaces of their versions, too. */
namespace v_1_0 {
using IPluginV3 = nvinfer1::IPluginV3;
using IPluginV3OneCore = nvinfer1::IPluginV3OneCore;
using IPluginV3OneBuild = nvinfer1::IPluginV3OneBuild;
using IPluginV3OneRuntime = nvinfer1::IPluginV3OneRuntime;
using IPluginCreatorV3One = nvinfer1::IPluginCreatorV3One;
using IPluginCapability = nvinfer1::IPluginCapability;
using IPluginResource = nvinfer1::IPluginResource;
using IPluginCreatorInterface = nvinfer1::IPluginCreatorInterface;
using IPluginCreator = nvinfer1::IPluginCreator;
} // namespace v_1_0
namespace v_2_0 {
using IPluginV3OneBuild = nvinfer1::IPluginV3OneBuildV2;
} // namespace v_2_0

} // namespace nvinfer1

#endif
