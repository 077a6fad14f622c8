# SPDX-License-Identifier: Apache-2.0
"""Several streams and threads over one engine: a context each, copies and runs captured into a graph that is launched again with
other data, a second stream that joins the capture by events, mistakes that are reported."""
import sys
import threading

import numpy as np
import tensorrt as trt
from cuda import cuda, cudart

H2D, D2H = cudart.cudaMemcpyKind.cudaMemcpyHostToDevice, cudart.cudaMemcpyKind.cudaMemcpyDeviceToHost
MODE = cudart.cudaStreamCaptureMode.cudaStreamCaptureModeThreadLocal
NONE, ACTIVE = (cudart.cudaStreamCaptureStatus(i) for i in range(2))


def check(result):
    error, *rest = result
    if int(error) != 0:
        raise RuntimeError(cudart.cudaGetErrorString(error)[1] if isinstance(error, cudart.cudaError_t) else error)
    return rest[0] if len(rest) == 1 else tuple(rest)


class Worker:
    def __init__(self, engine, batch):
        self.context, self.batch = engine.create_execution_context(), batch
        self.stream = check(cudart.cudaStreamCreateWithFlags(cudart.cudaStreamNonBlocking))
        assert self.context.set_input_shape("image", (batch, 1, 28, 28))
        self.image, self.scores = np.zeros((batch, 1, 28, 28), np.float32), np.zeros((batch, 10), np.float32)
        self.device = {"image": check(cudart.cudaMallocAsync(self.image.nbytes, self.stream)),
                       "scores": check(cudart.cudaMallocAsync(self.scores.nbytes, self.stream))}
        for name, address in self.device.items():
            assert self.context.set_tensor_address(name, address)

    def enqueue(self):
        check(cudart.cudaMemcpyAsync(self.device["image"], self.image.ctypes.data, self.image.nbytes, H2D, self.stream))
        assert self.context.execute_async_v3(self.stream)
        check(cudart.cudaMemcpyAsync(self.scores.ctypes.data, self.device["scores"], self.scores.nbytes, D2H, self.stream))

    def capture(self):
        self.enqueue()                                   # the first run sets sizes up
        check(cudart.cudaStreamSynchronize(self.stream))
        before = self.scores.copy()
        self.scores[:] = -1
        check(cudart.cudaStreamBeginCapture(self.stream, MODE))
        assert check(cudart.cudaStreamIsCapturing(self.stream)) == ACTIVE
        self.enqueue()
        graph = check(cudart.cudaStreamEndCapture(self.stream))
        assert check(cudart.cudaStreamIsCapturing(self.stream)) == NONE
        assert (self.scores == -1).all()                 # nothing ran while the stream was captured
        self.exec = check(cudart.cudaGraphInstantiate(graph, 0))
        check(cudart.cudaGraphDestroy(graph))
        return before

    def launch(self):
        check(cudart.cudaGraphLaunch(self.exec, self.stream))
        check(cudart.cudaStreamSynchronize(self.stream))

    def free(self):
        for address in self.device.values():
            check(cudart.cudaFreeAsync(address, self.stream))
        check(cudart.cudaGraphExecDestroy(self.exec))
        assert cudart.cudaGraphLaunch(self.exec, self.stream)[0] != cudart.cudaError_t.cudaSuccess
        check(cudart.cudaStreamDestroy(self.stream))


def work(engine, image, batch, failures):
    try:
        worker = Worker(engine, batch)
        worker.image[:] = image
        before = worker.capture()
        worker.launch()
        assert np.array_equal(worker.scores, before) and (before.argmax(1) == 7).all()
        # Shapes and addresses are those of the capture, whatever is set later; the data are those of the launch.
        worker.context.set_input_shape("image", (1, 1, 28, 28))
        worker.context.set_tensor_address("scores", 0)
        worker.image *= np.float32(0.5)
        worker.launch()
        assert not np.array_equal(worker.scores, before) and tuple(worker.context.get_tensor_shape("scores")) == (1, 10)
        worker.free()
    except BaseException as e:
        failures.append(e)


def join():
    """Two streams, one graph: b adds its copy between a's two."""
    a, b = (check(cudart.cudaStreamCreate()) for _ in range(2))
    assert int(a) != int(b)
    check(cudart.cudaStreamDestroy(a))
    a = check(cudart.cudaStreamCreate())
    assert int(a) != int(b)                              # a handle is not given twice
    begun, ended = (check(cudart.cudaEventCreateWithFlags(cudart.cudaEventDisableTiming)) for _ in range(2))
    source, target = np.arange(4, dtype=np.int32), np.zeros(4, np.int32)
    device = check(cudart.cudaMalloc(32))
    check(cudart.cudaStreamBeginCapture(a, MODE))
    assert cudart.cudaStreamBeginCapture(a, MODE)[0] != 0
    check(cudart.cudaMemcpyAsync(device, source, 16, H2D, a))
    check(cudart.cudaEventRecord(begun, a))
    check(cudart.cudaStreamWaitEvent(b, begun, 0))
    check(cudart.cudaMemcpyAsync(device + 16, device, 16, cudart.cudaMemcpyKind.cudaMemcpyDeviceToDevice, b))
    check(cudart.cudaEventRecord(ended, b))
    check(cudart.cudaStreamWaitEvent(a, ended, 0))
    check(cudart.cudaMemcpyAsync(target, device + 16, 16, D2H, a))
    graph = check(cudart.cudaStreamEndCapture(a))
    assert not target.any() and cudart.cudaStreamEndCapture(a)[0] != 0
    assert check(cudart.cudaStreamIsCapturing(b)) == NONE
    runs, _ = check(cudart.cudaGraphInstantiate(graph, b"", 0))     # as versions before 12 have it
    for k in range(3):
        source += k
        check(cudart.cudaGraphLaunch(runs, b))
        assert np.array_equal(target, source)
    # A copy that leaves its memory fails, here when it is launched.
    check(cudart.cudaStreamBeginCapture(a, MODE))
    check(cudart.cudaMemcpyAsync(device, source, 64, H2D, a))
    graph = check(cudart.cudaStreamEndCapture(a))
    assert cudart.cudaGraphLaunch(check(cudart.cudaGraphInstantiate(graph, 0)), a)[0] != cudart.cudaError_t.cudaSuccess
    # The driver's functions.
    stream = check(cuda.cuStreamCreate(0))
    check(cuda.cuStreamBeginCapture(stream, 0))
    check(cuda.cuMemsetD8Async(device, 3, 16, stream))
    check(cuda.cuMemcpyDtoHAsync(target.ctypes.data, device, 16, stream))
    graph = check(cuda.cuStreamEndCapture(stream))
    check(cuda.cuGraphLaunch(check(cuda.cuGraphInstantiate(graph, 0)), stream))
    assert (target == 0x03030303).all()
    try:
        cudart.cudaCreateTextureObject
        raise AssertionError("there are no textures on the host")
    except AttributeError as e:
        assert "run on the CPU" in str(e)


def memories():
    """Memory with pitches, fills of wide elements, copies between devices and of any kind, and what is asked of contexts and limits."""
    rng = np.random.default_rng(3)
    for width, height in (12, 3), (256, 2), (300, 5):
        rows, pitch = check(cudart.cudaMallocPitch(width, height))
        assert pitch >= width and pitch % 256 == 0
        check(cudart.cudaMemset(rows, 0, pitch * height))
        check(cudart.cudaMemset2D(rows, pitch, 9, width, height))
        found = np.empty((height, pitch), np.uint8)
        check(cudart.cudaMemcpy(found.ctypes.data, rows, found.nbytes, D2H))
        assert (found[:, :width] == 9).all() and not found[:, width:].any()
        assert int(cudart.cudaMemset2D(rows, pitch, 9, width, height + 1)[0]) != 0
        check(cudart.cudaMemPrefetchAsync(rows, pitch * height, 0, 0))
        check(cudart.cudaFree(rows))
    a = rng.integers(0, 99, 16).astype(np.int32)
    check(cuda.cuInit(0))
    context = check(cuda.cuCtxCreate(0, check(cuda.cuDeviceGet(0))))
    one, two = (check(cuda.cuMemAlloc(a.nbytes)) for _ in range(2))
    stream = check(cuda.cuStreamCreateWithPriority(0, check(cuda.cuCtxGetStreamPriorityRange())[0]))
    check(cuda.cuMemcpyHtoD(one, a.ctypes.data, a.nbytes))
    check(cuda.cuMemcpyAsync(two, one, a.nbytes, stream))
    check(cudart.cudaMemcpyPeer(one, 0, two, 0, a.nbytes))
    check(cuda.cuMemsetD32(two, 77, 4))
    check(cuda.cuMemsetD16Async(two, 1, 2, stream))
    found = np.empty_like(a)
    check(cuda.cuMemcpyDtoH(found.ctypes.data, two, a.nbytes))
    assert list(found[:4]) == [65537, 77, 77, 77] and np.array_equal(found[4:], a[4:])
    assert int(cuda.cuMemsetD32(two, 77, 17)[0]) != 0 and check(cuda.cuCtxGetDevice()) == 0 and check(cuda.cuStreamGetFlags(stream)) == 0
    check(cudart.cudaDeviceSetLimit(cudart.cudaLimit.cudaLimitMallocHeapSize, 1 << 20))
    assert check(cudart.cudaDeviceGetLimit(cudart.cudaLimit.cudaLimitMallocHeapSize)) == 1 << 20
    assert check(cudart.cudaDeviceCanAccessPeer(0, 0)) == 0 and check(cudart.cudaInitDevice(0, 0, 0)) == ()
    check(cuda.cuCtxDestroy(context))


def main():
    logger = trt.Logger(trt.Logger.INTERNAL_ERROR)
    builder = trt.Builder(logger)
    network = builder.create_network(0)
    assert trt.OnnxParser(network, logger).parse_from_file(sys.argv[1])
    config = builder.create_builder_config()
    profile = builder.create_optimization_profile()
    profile.set_shape("image", (1, 1, 28, 28), (2, 1, 28, 28), (8, 1, 28, 28))
    config.add_optimization_profile(profile)
    engine = builder.build_engine_with_config(network, config)
    failures, image = [], np.load(sys.argv[2])
    threads = [threading.Thread(target=work, args=(engine, image, 1 + i, failures)) for i in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures, failures
    join()
    memories()
    print("done")


if __name__ == "__main__":
    main()
