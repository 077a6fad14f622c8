/* SPDX-License-Identifier: Apache-2.0 */
/* NvOnnxConfig.h - IOnnxConfig, which programs in the style of upstream's samples implement to keep their own settings.
 * Nothing here takes one. */
#ifndef NV_ONNX_CONFIG_H
#define NV_ONNX_CONFIG_H

#include "NvInfer.h"

/* Classes for TensorRT 7 override these without it. */
#define SINTER_NOEXCEPT noexcept(NV_TENSORRT_MAJOR >= 8)

namespace nvonnxparser {

class IOnnxConfig {
  public:
    using Verbosity = int32_t;
    virtual ~IOnnxConfig() noexcept = default;
    virtual void setModelDtype(const nvinfer1::DataType) SINTER_NOEXCEPT = 0;
    virtual nvinfer1::DataType getModelDtype() const SINTER_NOEXCEPT = 0;
    virtual char const *getModelFileName() const SINTER_NOEXCEPT = 0;
    virtual void setModelFileName(char const *name) SINTER_NOEXCEPT = 0;
    virtual Verbosity getVerbosityLevel() const SINTER_NOEXCEPT = 0;
    virtual void addVerbosity() SINTER_NOEXCEPT = 0;
    virtual void reduceVerbosity() SINTER_NOEXCEPT = 0;
    virtual void setVerbosityLevel(Verbosity) SINTER_NOEXCEPT = 0;
    virtual char const *getTextFileName() const SINTER_NOEXCEPT = 0;
    virtual void setTextFileName(char const *name) SINTER_NOEXCEPT = 0;
    virtual char const *getFullTextFileName() const SINTER_NOEXCEPT = 0;
    virtual void setFullTextFileName(char const *name) SINTER_NOEXCEPT = 0;
    virtual bool getPrintLayerInfo() const SINTER_NOEXCEPT = 0;
    virtual void setPrintLayerInfo(bool) SINTER_NOEXCEPT = 0;
    virtual void destroy() SINTER_NOEXCEPT { delete this; }
};

} // namespace nvonnxparser
#undef SINTER_NOEXCEPT

#endif
