/* SPDX-License-Identifier: Apache-2.0 */
/* NvCaffeParser.h - TensorRT 8's parser of Caffe models. Programs that offer it beside ONNX compile; it refuses every
 * model, with a message. */
#ifndef NV_CAFFE_PARSER_H
#define NV_CAFFE_PARSER_H

#include "NvInfer.h"

namespace nvcaffeparser1 {

class IBlobNameToTensor {
  public:
    virtual nvinfer1::ITensor *find(char const *name) const noexcept = 0;

  protected:
    virtual ~IBlobNameToTensor() = default;
};
class IBinaryProtoBlob {
  public:
    virtual void const *getData() noexcept = 0;
    virtual nvinfer1::Dims4 getDimensions() noexcept = 0;
    virtual nvinfer1::DataType getDataType() noexcept = 0;
    virtual void destroy() noexcept { delete this; }
    virtual ~IBinaryProtoBlob() noexcept = default;
};
class IPluginFactoryV2 {
  public:
    virtual ~IPluginFactoryV2() noexcept = default;
    virtual bool isPluginV2(char const *layerName) noexcept = 0;
    virtual nvinfer1::IPluginV2 *createPlugin(char const *layerName, nvinfer1::Weights const *weights,
                                              int32_t nbWeights, char const *libNamespace = "") noexcept = 0;
};
class ICaffeParser : public nvinfer1::detail::reporter {
  public:
    ICaffeParser() : reporter(::getLogger()) {}
    IBlobNameToTensor const *parse(char const *deploy, char const *, nvinfer1::INetworkDefinition &,
                                   nvinfer1::DataType) noexcept
    {
        return refuse(deploy), nullptr;
    }
    IBlobNameToTensor const *parseBuffers(uint8_t const *, std::size_t, uint8_t const *, std::size_t,
                                          nvinfer1::INetworkDefinition &, nvinfer1::DataType) noexcept
    {
        return refuse("(in memory)"), nullptr;
    }
    IBinaryProtoBlob *parseBinaryProto(char const *file) noexcept { return refuse(file), nullptr; }
    void setProtobufBufferSize(std::size_t) noexcept {}
    void setPluginFactoryV2(IPluginFactoryV2 *) noexcept {}
    void setPluginNamespace(char const *) noexcept {}
    void destroy() noexcept { delete this; }

  private:
    void refuse(char const *file) const noexcept
    {
        fail(SINTER_UNSUPPORTED, std::string("Caffe model '") + (file ? file : "") +
                                     "' is not read, an ONNX model is: convert it, and use nvonnxparser::IParser");
    }
};
inline ICaffeParser *createCaffeParser() noexcept { return new (std::nothrow) ICaffeParser(); }
inline void shutdownProtobufLibrary() noexcept {}

} // namespace nvcaffeparser1

#endif
