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
    /* A tensor's name; of profiles after the first with the profile behind it: "image [profile 1]". */
    char const *getBindingName(int32_t index) const noexcept
    {
        if (index < 0 || index >= getNbBindings()) return nullptr;
        return self().binding_names()[static_cast<size_t>(index)].c_str();
    }
    int32_t getBindingIndex(char const *name) const noexcept
    {
        std::vector<std::string> const &names = self().binding_names();
        for (size_t i = 0; name && i < names.size(); i++)
            if (names[i] == name) return static_cast<int32_t>(i);
        return -1;
    }
    /* The name of the tensor that a binding is; nullptr: there is no such binding. */
    char const *tensor_of(int32_t index) const noexcept
    {
        const int32_t count = self().getNbIOTensors();
        return index < 0 || index >= getNbBindings() || !count ? nullptr : self().getIOTensorName(index % count);
    }
    bool bindingIsInput(int32_t index) const noexcept
    {
        return self().getTensorIOMode(tensor_of(index)) == TensorIOMode::kINPUT;
    }
    Dims getBindingDimensions(int32_t index) const noexcept { return self().getTensorShape(tensor_of(index)); }
    DataType getBindingDataType(int32_t index) const noexcept
    {
        return self().getTensorDataType(tensor_of(index));
    }
    TensorLocation getLocation(int32_t index) const noexcept { return self().getTensorLocation(tensor_of(index)); }
    TensorFormat getBindingFormat(int32_t index) const noexcept
    {
        return self().getTensorFormat(tensor_of(index));
    }
    char const *getBindingFormatDesc(int32_t index) const noexcept
    {
        return self().getTensorFormatDesc(tensor_of(index));
    }
    int32_t getBindingComponentsPerElement(int32_t index) const noexcept
    {
        return std::max(self().getTensorComponentsPerElement(tensor_of(index)), 1);
    }
    int32_t getBindingBytesPerComponent(int32_t index) const noexcept
    {
        return static_cast<int32_t>(sinter_dtype_bits(detail::from(getBindingDataType(index))) / 8);
    }
    /* Values of shape tensors have no ranges. */
    template <class Selector>
    int32_t const *getProfileShapeValues(int32_t profile, int32_t index, Selector select) const noexcept
    {
        return self().getProfileTensorValues(tensor_of(index), profile, select);
    }
    std::size_t getWorkspaceSize() const noexcept { return static_cast<std::size_t>(self().getDeviceMemorySize()); }
    int32_t getBindingVectorizedDim(int32_t index) const noexcept
    {
        return self().getTensorVectorizedDim(tensor_of(index));
    }
    bool isShapeBinding(int32_t index) const noexcept { return self().isShapeInferenceIO(tensor_of(index)); }
    bool isExecutionBinding(int32_t) const noexcept { return true; }
    int32_t getMaxBatchSize() const noexcept { return self().max_batch(); }
    /* Selector is OptProfileSelector, which is declared later. */
    template <class Selector> Dims getProfileDimensions(int32_t index, int32_t profile, Selector select) const noexcept
    {
        return self().getProfileShape(tensor_of(index), profile, select);
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
        return self().setInputShape(self().getEngine().tensor_of(index), dims);
    }
    Dims getBindingDimensions(int32_t index) const noexcept
    {
        return static_cast<Context const &>(*this).getTensorShape(
            static_cast<Context const &>(*this).getEngine().tensor_of(index));
    }
    Dims getStrides(int32_t index) const noexcept
    {
        return static_cast<Context const &>(*this).getTensorStrides(
            static_cast<Context const &>(*this).getEngine().tensor_of(index));
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
