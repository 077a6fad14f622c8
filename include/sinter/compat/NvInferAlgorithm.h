/* SPDX-License-Identifier: Apache-2.0 */
/* NvInferAlgorithm.h - IAlgorithmSelector, of TensorRT 7 to 10. Included by NvInferBuilder.h: builds do not ask one. */
#ifndef NV_INFER_ALGORITHM_H
#define NV_INFER_ALGORITHM_H

#include "NvInferRuntime.h"

namespace nvinfer1 {

/* What an IAlgorithmSelector is told and chooses from. A build never makes one. */
class IAlgorithmIOInfo {
  public:
    virtual ~IAlgorithmIOInfo() = default;
    virtual DataType getDataType() const noexcept = 0;
    virtual Dims getStrides() const noexcept = 0;
    virtual TensorFormat getTensorFormat() const noexcept = 0;
    virtual int64_t getVectorizedDim() const noexcept = 0;
    virtual int64_t getComponentsPerElement() const noexcept = 0;
};
class IAlgorithmVariant {
  public:
    virtual ~IAlgorithmVariant() = default;
    virtual int64_t getImplementation() const noexcept = 0;
    virtual int64_t getTactic() const noexcept = 0;
};
class IAlgorithmContext {
  public:
    virtual ~IAlgorithmContext() = default;
    virtual char const *getName() const noexcept = 0;
    virtual Dims getDimensions(int32_t index, OptProfileSelector select) const noexcept = 0;
    virtual int32_t getNbInputs() const noexcept = 0;
    virtual int32_t getNbOutputs() const noexcept = 0;
};
class IAlgorithm {
  public:
    virtual ~IAlgorithm() = default;
    virtual IAlgorithmVariant const &getAlgorithmVariant() const noexcept = 0;
    virtual float getTimingMSec() const noexcept = 0;
    virtual std::size_t getWorkspaceSize() const noexcept = 0;
    virtual IAlgorithmIOInfo const &getAlgorithmIOInfo(int32_t index) const noexcept = 0; /* until 8 */
    virtual IAlgorithmIOInfo const *getAlgorithmIOInfoByIndex(int32_t index) const noexcept = 0;
};
class IAlgorithmSelector : public IVersionedInterface {
  public:
    virtual int32_t selectAlgorithms(IAlgorithmContext const &context, IAlgorithm const *const *choices,
                                     int32_t nbChoices, int32_t *selection) = 0;
    virtual void reportAlgorithms(IAlgorithmContext const *const *contexts, IAlgorithm const *const *choices,
                                  int32_t nbAlgorithms) = 0;
};

} // namespace nvinfer1

#endif
