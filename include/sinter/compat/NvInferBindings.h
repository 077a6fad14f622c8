/* SPDX-License-Identifier: Apache-2.0 */
/* NvInferBindings.h - engines and contexts by bindings, as programs for TensorRT 8 use them: a binding is the number of
 * an input or output; those of profile p begin at p * getNbIOTensors(). Included by NvInferRuntime.h. */
#ifndef NV_INFER_BINDINGS_H
#define NV_INFER_BINDINGS_H

#include "NvInferRuntimeBase.h"

#include <atomic>

namespace nvinfer1 {
namespace detail {

/* What ICudaEngine has of it. */
template <class Engine> class engine_bindings {
  public:
    int32_t getNbBindings() const noexcept
    {
        is_asked_ = true;
        return self().getNbIOTensors() * self().getNbOptimizationProfiles();
    }
    /* Whether arrays of bindings have entries for all profiles: a program that never asked for their number does not
     * know of them. */
    bool has_bindings_of_profiles() const noexcept { return is_asked_; }
    char const *getBindingName(int32_t index) const noexcept
    {
        const int32_t count = self().getNbIOTensors();
        return index < 0 || index >= getNbBindings() || !count ? nullptr : self().getIOTensorName(index % count);
    }
    int32_t getBindingIndex(char const *name) const noexcept
    {
        for (int32_t i = 0; name && i < self().getNbIOTensors(); i++)
            if (!std::strcmp(self().getIOTensorName(i), name)) return i;
        return -1;
    }
    bool bindingIsInput(int32_t index) const noexcept
    {
        return self().getTensorIOMode(getBindingName(index)) == TensorIOMode::kINPUT;
    }
    Dims getBindingDimensions(int32_t index) const noexcept { return self().getTensorShape(getBindingName(index)); }
    DataType getBindingDataType(int32_t index) const noexcept
    {
        return self().getTensorDataType(getBindingName(index));
    }
    TensorLocation getLocation(int32_t index) const noexcept { return self().getTensorLocation(getBindingName(index)); }
    TensorFormat getBindingFormat(int32_t index) const noexcept
    {
        return self().getTensorFormat(getBindingName(index));
    }
    char const *getBindingFormatDesc(int32_t index) const noexcept
    {
        return self().getTensorFormatDesc(getBindingName(index));
    }
    int32_t getBindingComponentsPerElement(int32_t index) const noexcept
    {
        return std::max(self().getTensorComponentsPerElement(getBindingName(index)), 1);
    }
    int32_t getBindingBytesPerComponent(int32_t index) const noexcept
    {
        return static_cast<int32_t>(sinter_dtype_bits(detail::from(getBindingDataType(index))) / 8);
    }
    /* Values of shape tensors have no ranges. */
    template <class Selector> int32_t const *getProfileShapeValues(int32_t, int32_t, Selector) const noexcept
    {
        return nullptr;
    }
    std::size_t getWorkspaceSize() const noexcept { return static_cast<std::size_t>(self().getDeviceMemorySize()); }
    int32_t getBindingVectorizedDim(int32_t index) const noexcept
    {
        return self().getTensorVectorizedDim(getBindingName(index));
    }
    bool isShapeBinding(int32_t index) const noexcept { return self().isShapeInferenceIO(getBindingName(index)); }
    bool isExecutionBinding(int32_t) const noexcept { return true; }
    int32_t getMaxBatchSize() const noexcept { return self().max_batch(); }
    /* Selector is OptProfileSelector, which is declared later. */
    template <class Selector> Dims getProfileDimensions(int32_t index, int32_t profile, Selector select) const noexcept
    {
        return self().getProfileShape(getBindingName(index), profile, select);
    }

  private:
    mutable std::atomic<bool> is_asked_{ false };
    Engine const &self() const { return static_cast<Engine const &>(*this); }
};

/* What IExecutionContext has of it. */
template <class Context> class context_bindings {
  public:
    bool setBindingDimensions(int32_t index, Dims const &dims) noexcept
    {
        return self().setInputShape(self().getEngine().getBindingName(index), dims);
    }
    Dims getBindingDimensions(int32_t index) const noexcept
    {
        return static_cast<Context const &>(*this).getTensorShape(
            static_cast<Context const &>(*this).getEngine().getBindingName(index));
    }
    Dims getStrides(int32_t index) const noexcept
    {
        return static_cast<Context const &>(*this).getTensorStrides(
            static_cast<Context const &>(*this).getEngine().getBindingName(index));
    }
    bool setOptimizationProfile(int32_t profile) noexcept
    {
        return self().setOptimizationProfileAsync(profile, nullptr);
    }
    /* The batch counts where it is implicit; else it is an axis of the model. */
    bool execute(int32_t batch, void *const *bindings) noexcept
    {
        self().set_batch(batch);
        return self().executeV2(bindings);
    }
    bool enqueue(int32_t batch, void *const *bindings, cudaStream_t stream, cudaEvent_t *consumed) noexcept
    {
        self().set_batch(batch);
        return self().enqueueV2(bindings, stream, consumed);
    }

  private:
    Context &self() { return static_cast<Context &>(*this); }
};

} // namespace detail
} // namespace nvinfer1

#endif
