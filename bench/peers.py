# SPDX-License-Identifier: Apache-2.0
"""Who is timed: sinter, and the runtimes that it is compared with.

A contender is made from (model, settings). Making it loads the model and no more; `run()` computes once from the inputs
that it was given then; `outputs()` returns the last run's results as numpy arrays in the model's order. Each lives in a
process of its own (worker.py), which imports that runtime alone. A new peer is a class in PEERS."""
import time


class Settings:
    """`allow`: lower precisions that are permitted, of ALLOW in sinter_c.py. `engine`: the file that sinter loads."""

    def __init__(self, threads=1, device="cpu", tune="fast", timing_cache=None, library=None, allow=(), engine=None):
        self.threads, self.device, self.tune, self.timing_cache = threads, device, tune, timing_cache
        self.library, self.allow, self.engine = library, tuple(allow), engine


class Sinter:
    name = "sinter"

    def __init__(self, model, settings, timing=False):
        from sinter_c import Library
        self.engine = Library(settings.library).load_file(settings.engine, settings.threads)
        self.context = self.engine.context(timing)
        for name, array in model.inputs.items():
            self.context.set_input(name, array)
        self.run, self.outputs, self.steps = self.context.run, self.context.outputs, self.context.steps

    @staticmethod
    def build(model, settings):
        """Writes settings.engine; returns the seconds that the build took."""
        from sinter_c import Library
        start = time.perf_counter()
        data = Library(settings.library).build(model.path, model.shapes(), settings.device, settings.threads,
                                               settings.tune, settings.timing_cache, allow=settings.allow,
                                               sample=model.inputs if settings.allow else None)
        seconds = time.perf_counter() - start
        with open(settings.engine, "wb") as file:
            file.write(data)
        return seconds

    @staticmethod
    def version(settings):
        from sinter_c import Library
        return Library(settings.library).version()


class OnnxRuntime:
    name = "onnxruntime"

    def __init__(self, model, settings):
        import onnxruntime
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = settings.threads
        options.inter_op_num_threads = 1
        options.log_severity_level = 3
        self.session = onnxruntime.InferenceSession(str(model.path), options, providers=["CPUExecutionProvider"])
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
        core = openvino.Core()
        network = core.read_model(str(model.path))
        network.reshape({port: list(array.shape) for port, array in zip(network.inputs, model.inputs.values())})
        precision = "bf16" if "bf16" in settings.allow else "f16" if "fp16" in settings.allow else "f32"
        compiled = core.compile_model(network, "CPU", {
            "INFERENCE_NUM_THREADS": settings.threads, "PERFORMANCE_HINT": "LATENCY", "NUM_STREAMS": 1,
            "INFERENCE_PRECISION_HINT": precision, "ENABLE_CPU_PINNING": False})
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
SIDES = {Sinter.name: Sinter, **PEERS}
