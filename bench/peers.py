# SPDX-License-Identifier: Apache-2.0
"""Who is timed: sinter, and the runtimes that it is compared with.

A contender is made from (model, settings); `run()` computes once from the inputs that it was given when it was made,
and `outputs()` returns the last run's results as numpy arrays in the model's order. A new peer is a class in PEERS."""
import time


class Settings:
    def __init__(self, threads=1, device="cpu", tune="fast", timing_cache=None, library=None):
        self.threads, self.device, self.tune = threads, device, tune
        self.timing_cache, self.library = timing_cache, library


class Sinter:
    name = "sinter"

    def __init__(self, model, settings, timing=False):
        start = time.perf_counter()
        data = settings.library.build(model.path, model.shapes(), settings.device, settings.threads, settings.tune,
                                      settings.timing_cache)
        built = time.perf_counter()
        self.engine = settings.library.load(data, settings.threads)
        self.context = self.engine.context(timing)
        ready = time.perf_counter()
        self.facts = {"build_s": built - start, "ready_ms": 1e3 * (ready - built), "engine_bytes": len(data)}
        for name, array in model.inputs.items():
            self.context.set_input(name, array)
        self.run, self.outputs, self.steps = self.context.run, self.context.outputs, self.context.steps

    @staticmethod
    def version(settings):
        return settings.library.version()


class OnnxRuntime:
    name = "onnxruntime"

    def __init__(self, model, settings):
        import onnxruntime
        start = time.perf_counter()
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = settings.threads
        options.inter_op_num_threads = 1
        options.log_severity_level = 3
        self.session = onnxruntime.InferenceSession(str(model.path), options, providers=["CPUExecutionProvider"])
        self.facts = {"build_s": time.perf_counter() - start}
        # Bound once, so that no run pays for Python's copies.
        self.binding = self.session.io_binding()
        self.kept = [onnxruntime.OrtValue.ortvalue_from_numpy(array) for array in model.inputs.values()]
        for name, value in zip(model.inputs, self.kept):
            self.binding.bind_ortvalue_input(name, value)
        for output in self.session.get_outputs():
            self.binding.bind_output(output.name, "cpu")

    def run(self):
        self.session.run_with_iobinding(self.binding)

    def outputs(self):
        return self.binding.copy_outputs_to_cpu()

    @staticmethod
    def version(_):
        import onnxruntime
        return onnxruntime.__version__


class OpenVino:
    name = "openvino"

    def __init__(self, model, settings):
        import openvino
        start = time.perf_counter()
        core = openvino.Core()
        network = core.read_model(str(model.path))
        network.reshape({port: list(array.shape) for port, array in zip(network.inputs, model.inputs.values())})
        compiled = core.compile_model(network, "CPU", {
            "INFERENCE_NUM_THREADS": settings.threads, "PERFORMANCE_HINT": "LATENCY", "NUM_STREAMS": 1,
            "INFERENCE_PRECISION_HINT": "f32", "ENABLE_CPU_PINNING": False})
        self.facts = {"build_s": time.perf_counter() - start}
        self.request, self.ports = compiled.create_infer_request(), list(compiled.outputs)
        for i, array in enumerate(model.inputs.values()):
            self.request.set_input_tensor(i, openvino.Tensor(array, shared_memory=False))
        self.run = self.request.infer

    def outputs(self):
        return [self.request.get_tensor(port).data.copy() for port in self.ports]

    @staticmethod
    def version(_):
        import openvino
        return openvino.__version__.split("-")[0]


PEERS = {peer.name: peer for peer in (OnnxRuntime, OpenVino)}
