/* SPDX-License-Identifier: Apache-2.0 */
/* NvOnnxConfig.h - IOnnxConfig, which programs in the style of upstream's samples implement to keep their own settings.
 * Nothing here takes one. */
#ifndef NV_ONNX_CONFIG_H
#define NV_ONNX_CONFIG_H

#include "NvInfer.h"

namespace nvonnxparser {

class IOnnxConfig {
  public:
    using Verbosity = int32_t;
    virtual ~IOnnxConfig() noexcept = default;
    virtual void setModelDtype(const nvinfer1::DataType) noexcept = 0;
    virtual nvinfer1::DataType getModelDtype() const noexcept = 0;
    virtual char const *getModelFileName() const noexcept = 0;
    virtual void setModelFileName(char const *name) noexcept = 0;
    virtual Verbosity getVerbosityLevel() const noexcept = 0;
    virtual void addVerbosity() noexcept = 0;
    virtual void reduceVerbosity() noexcept = 0;
    virtual void setVerbosityLevel(Verbosity) noexcept = 0;
    virtual char const *getTextFileName() const noexcept = 0;
    virtual void setTextFileName(char const *name) noexcept = 0;
    virtual char const *getFullTextFileName() const noexcept = 0;
    virtual void setFullTextFileName(char const *name) noexcept = 0;
    virtual bool getPrintLayerInfo() const noexcept = 0;
    virtual void setPrintLayerInfo(bool) noexcept = 0;
    void destroy() noexcept { delete this; }
};

} // namespace nvonnxparser

#endif
