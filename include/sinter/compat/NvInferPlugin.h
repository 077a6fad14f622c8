/* SPDX-License-Identifier: Apache-2.0 */
/* NvInferPlugin.h - the plugins that upstream ships: NvInferPluginShipped.h has those that are operators here. */
#ifndef NV_INFER_PLUGIN_H
#define NV_INFER_PLUGIN_H

#include "NvInferPluginUtils.h"

/* The registry has these plugins in the namespace "" from the beginning. */
inline bool initLibNvInferPlugins(void *logger, char const *space)
{
    if (!nvinfer1::detail::last_logger()) nvinfer1::detail::last_logger() = static_cast<nvinfer1::ILogger *>(logger);
    getPluginRegistry()->ship(space ? space : "");
    int32_t count = 0;
    nvinfer1::IPluginCreatorInterface *const *const list = getPluginRegistry()->getAllCreators(&count);
    for (int32_t i = 0; logger && i < count; i++) {
        auto *const v2 = dynamic_cast<nvinfer1::IPluginCreator *>(list[i]);
        auto *const v3 = dynamic_cast<nvinfer1::IPluginCreatorV3One *>(list[i]);
        const std::string name = v2 ? v2->getPluginName() : v3->getPluginName();
        const std::string version = v2 ? v2->getPluginVersion() : v3->getPluginVersion();
        const std::string at = v2 ? v2->getPluginNamespace() : v3->getPluginNamespace();
        const std::string text = "Registered plugin creator - " + at + "::" + name + " version " + version;
        static_cast<nvinfer1::ILogger *>(logger)->log(nvinfer1::ILogger::Severity::kVERBOSE, text.c_str());
    }
    return true;
}

#endif
