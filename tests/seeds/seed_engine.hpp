/* SPDX-License-Identifier: Apache-2.0 */
/* seed_engine.hpp - the classes that the blocks of document 3 belong to: an inference library over the TensorRT
 * interface. Included by seeds.cpp. */
#include <future>
#include <stdexcept>

namespace trt_engine {

class Logger : public ILogger {
  public:
    static Logger &instance();
    void log(Severity, const char *) noexcept override
    {
    }
    void error(const char *)
    {
        errors++;
    }
    std::atomic<int> errors{ 0 };
};
#include "3_04.inc"
static Logger &get_logger()
{
    return Logger::instance();
}

#define TRT_CHECK(expression)                                                                                          \
    do {                                                                                                               \
        if (!(expression)) {                                                                                           \
            get_logger().error(#expression);                                                                           \
            throw std::runtime_error(std::string(#expression " failed"));                                              \
        }                                                                                                              \
    } while (0)
#define CUDA_CHECK(call) TRT_CHECK((call) == cudaSuccess)

class CudaStream {
  public:
    CudaStream()
    {
        CUDA_CHECK(cudaStreamCreate(&stream_));
    }
    ~CudaStream();
    CudaStream(const CudaStream &) = delete;
    CudaStream &operator=(const CudaStream &) = delete;
    cudaStream_t get() const
    {
        return stream_;
    }

  private:
    cudaStream_t stream_ = nullptr;
};
#include "3_07.inc"

static void copy_to_device(void *to, const void *from, size_t size)
{
    CUDA_CHECK(cudaMemcpy(to, from, size, cudaMemcpyHostToDevice));
}
static void async_memcpy_h2d(void *to, const void *from, size_t size, cudaStream_t stream)
{
    CUDA_CHECK(cudaMemcpyAsync(to, from, size, cudaMemcpyHostToDevice, stream));
}
static void async_memcpy_d2h(void *to, const void *from, size_t size, cudaStream_t stream)
{
    CUDA_CHECK(cudaMemcpyAsync(to, from, size, cudaMemcpyDeviceToHost, stream));
}

struct InferenceResult {
    std::vector<std::vector<float>> outputs;
    bool success = false;
    std::string error_msg;
};
class InferenceEngine {
  public:
    static std::unique_ptr<InferenceEngine> create(const std::string &path)
    {
        std::ifstream file(path, std::ios::binary);
        const std::string bytes{ std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>() };
        std::unique_ptr<InferenceEngine> made(new InferenceEngine());
        made->runtime_.reset(createInferRuntime(get_logger()));
        made->engine_.reset(made->runtime_->deserializeCudaEngine(bytes.data(), bytes.size()));
        TRT_CHECK(made->engine_ != nullptr);
        return made;
    }
    std::future<InferenceResult> infer_async(const std::vector<std::vector<float>> &inputs)
    {
        return std::async(std::launch::async, [this, inputs] { return infer(inputs); });
    }
    InferenceResult infer(const std::vector<std::vector<float>> &inputs)
    {
        InferenceResult made;
        const std::unique_ptr<IExecutionContext> context(engine_->createExecutionContext());
        CudaStream stream;
        std::vector<void *> memory;
        std::vector<size_t> sizes;
        for (int32_t i = 0; i < engine_->getNbIOTensors(); i++) {
            const char *name = engine_->getIOTensorName(i);
            const Dims d = context->getTensorShape(name);
            size_t size = sizeof(float);
            for (int32_t k = 0; k < d.nbDims; k++) size *= static_cast<size_t>(d.d[k]);
            memory.push_back(nullptr);
            sizes.push_back(size);
            CUDA_CHECK(cudaMalloc(&memory.back(), size));
            context->setTensorAddress(name, memory.back());
            if (static_cast<size_t>(i) < inputs.size())
                async_memcpy_h2d(memory.back(), inputs[static_cast<size_t>(i)].data(), size, stream.get());
        }
        made.success = context->enqueueV3(stream.get());
        for (size_t i = inputs.size(); i < memory.size(); i++) {
            made.outputs.emplace_back(sizes[i] / sizeof(float));
            async_memcpy_d2h(made.outputs.back().data(), memory[i], sizes[i], stream.get());
        }
        CUDA_CHECK(cudaStreamSynchronize(stream.get()));
        for (void *m : memory) CUDA_CHECK(cudaFree(m));
        return made;
    }

  private:
    InferenceEngine() = default;
    std::unique_ptr<IRuntime> runtime_;
    std::unique_ptr<ICudaEngine> engine_;
};

static void blocks()
{
    const std::vector<std::vector<float>> inputs{ std::vector<float>(IMAGE, 0.25f) };
#include "3_02.inc"
    CHECK("3_02", engine->infer(inputs).success);
#include "3_03.inc"
    CHECK("3_03", result.success && result.outputs.size() == 1 && result.outputs == engine->infer(inputs).outputs);
    bool has_thrown = false;
    try {
        InferenceEngine::create("missing.engine");
    } catch (const std::runtime_error &) {
        has_thrown = true;
    }
    CHECK("3_02", has_thrown);
    CHECK("3_04", &Logger::instance() == &get_logger() && get_logger().errors > 0);
    {
        const size_t size_bytes = 64;
        float from[16], to[16] = {};
        for (int i = 0; i < 16; i++) from[i] = static_cast<float>(i);
        const float *src_host = from, *src_pinned = from;
        float *dst_pinned = to;
        void *dst_gpu = nullptr, *src_gpu = nullptr;
        CudaStream s;
        cudaStream_t stream = s.get();
        cudaMalloc(&dst_gpu, size_bytes);
        src_gpu = dst_gpu;
#include "3_05.inc"
        CHECK("3_05", !std::memcmp(from, to, size_bytes));
        cudaFree(src_gpu);
    }
    {
        void *ptr = nullptr;
        const size_t size = 128;
        std::unique_ptr<IBuilder> builder(createInferBuilder(get_logger()));
#include "3_06.inc"
        CHECK("3_06", ptr != nullptr);
        bool has_failed = false;
        try {
            CUDA_CHECK(cudaMemcpy(ptr, ptr, 129, cudaMemcpyDeviceToDevice));
        } catch (const std::runtime_error &) {
            has_failed = true;
        }
        CHECK("3_06", has_failed);
        cudaFree(ptr);
    }
    const int before = get_logger().errors;
    {
        CudaStream stream;
    }
    CHECK("3_07", get_logger().errors == before);
}
} // namespace trt_engine

static void block_3()
{
    trt_engine::blocks();
}
