/* SPDX-License-Identifier: Apache-2.0 */
/* cpp_device.h - device memory for the programs of tests/cpp that are in the shape of TensorRT's samples. */
#ifndef CPP_DEVICE_H
#define CPP_DEVICE_H

#include "cpp_check.h"

#include <cuda_runtime_api.h>

#include <memory>
#include <vector>

template <class T> using owned = std::unique_ptr<T>;

/* Device memory that holds `values`. */
template <class T> class Device {
  public:
    explicit Device(std::vector<T> const &values) : count_(values.size())
    {
        CHECK(cudaMalloc(&at_, count_ * sizeof(T)) == cudaSuccess);
        CHECK(cudaMemcpy(at_, values.data(), count_ * sizeof(T), cudaMemcpyHostToDevice) == cudaSuccess);
    }
    ~Device() { cudaFree(at_); }
    Device(Device const &) = delete;
    void *get() const { return at_; }
    std::vector<T> read() const
    {
        std::vector<T> made(count_);
        CHECK(cudaMemcpy(made.data(), at_, count_ * sizeof(T), cudaMemcpyDeviceToHost) == cudaSuccess);
        return made;
    }

  private:
    T *at_ = nullptr;
    size_t count_;
};

#endif
