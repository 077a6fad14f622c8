/* SPDX-License-Identifier: Apache-2.0 */
/* NvUffParser.h - TensorRT 8's parser of UFF models. Programs that offer it beside ONNX compile; it refuses every
 * model, with a message. */
#ifndef NV_UFF_PARSER_H
#define NV_UFF_PARSER_H

#include "NvInfer.h"

namespace nvuffparser {

enum class UffInputOrder : int32_t { kNCHW = 0, kNHWC = 1, kNC = 2 };

class IUffParser : public nvinfer1::detail::reporter {
  public:
    IUffParser() : reporter(::getLogger()) {}
    int32_t getUffRequiredVersionMajor() noexcept { return 0; }
    int32_t getUffRequiredVersionMinor() noexcept { return 0; }
    int32_t getUffRequiredVersionPatch() noexcept { return 0; }
    bool registerInput(char const *, nvinfer1::Dims, UffInputOrder) noexcept { return true; }
    bool registerOutput(char const *) noexcept { return true; }
    bool parse(char const *file, nvinfer1::INetworkDefinition &,
               nvinfer1::DataType = nvinfer1::DataType::kFLOAT) noexcept
    {
        return refuse(file);
    }
    bool parseBuffer(char const *, std::size_t, nvinfer1::INetworkDefinition &,
                     nvinfer1::DataType = nvinfer1::DataType::kFLOAT) noexcept
    {
        return refuse("(in memory)");
    }
    void setPluginNamespace(char const *) noexcept {}
    void destroy() noexcept { delete this; }

  private:
    bool refuse(char const *file) const noexcept
    {
        fail(SINTER_UNSUPPORTED, std::string("UFF model '") + (file ? file : "") +
                                     "' is not read, an ONNX model is: convert it, and use nvonnxparser::IParser");
        return false;
    }
};
inline IUffParser *createUffParser() noexcept { return new (std::nothrow) IUffParser(); }
inline void shutdownProtobufLibrary() noexcept {}

} // namespace nvuffparser

#endif
