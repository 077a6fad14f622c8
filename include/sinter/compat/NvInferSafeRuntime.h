/* SPDX-License-Identifier: Apache-2.0 */
/* NvInferSafeRuntime.h - the names of TensorRT 8's safety runtime, for programs that can do without one. There is none
 * here, so no object of these types is ever made. */
#ifndef NV_INFER_SAFE_RUNTIME_H
#define NV_INFER_SAFE_RUNTIME_H

#include "NvInfer.h"

namespace nvinfer1 {
namespace safe {

class IExecutionContext : public nvinfer1::IExecutionContext {
    IExecutionContext() = delete;
};
class ICudaEngine : public nvinfer1::ICudaEngine {
    ICudaEngine() = delete;

  public:
    IExecutionContext *createExecutionContext() noexcept { return nullptr; }
};
class IRuntime {
  public:
    virtual ~IRuntime() noexcept = default;
    virtual ICudaEngine *deserializeCudaEngine(void const *blob, size_t size) noexcept = 0;
    virtual void setErrorRecorder(IErrorRecorder *recorder) noexcept = 0;
    virtual IErrorRecorder *getErrorRecorder() const noexcept = 0;
};
inline IRuntime *createInferRuntime(ILogger &logger) noexcept
{
    logger.log(ILogger::Severity::kERROR, "there is no safety runtime");
    return nullptr;
}

} // namespace safe

namespace consistency {

class IConsistencyChecker {
  public:
    virtual ~IConsistencyChecker() = default;
    virtual bool validate() const noexcept = 0;
};
inline IConsistencyChecker *createConsistencyChecker(ILogger &logger, void const *, size_t) noexcept
{
    logger.log(ILogger::Severity::kERROR, "there is no consistency checker, which belongs to the safety runtime");
    return nullptr;
}

} // namespace consistency
} // namespace nvinfer1

#endif
