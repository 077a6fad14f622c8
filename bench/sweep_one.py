# SPDX-License-Identifier: Apache-2.0
"""One network of bench/sweep, in a process of its own: sweep_one.py SPEC FOLDER prints one line of JSON behind '@@'.

SPEC is SOURCE|NAME|EXPORTER|FORM. The line's `stage` says how far it came: export, onnxruntime or torch, sinter, shape or
done. Forms with gpu in their names run on a GPU, beside PyTorch (sweep_gpu.py)."""
import contextlib
import hashlib
import io
import json
import os
import pathlib
import random
import sys
import time
import warnings

os.environ.setdefault("OMP_NUM_THREADS", "1")
warnings.filterwarnings("ignore")
import numpy as np  # noqa: E402 (after the number of threads)

LARGEST = 150e6  # parameters
LAYERS = ("num_hidden_layers", "n_layer", "num_layers", "encoder_layers", "decoder_layers", "n_layers",
          "num_encoder_layers", "num_decoder_layers")
WIDTHS = {"hidden_size": 512, "d_model": 512, "n_embd": 512, "intermediate_size": 1024, "ffn_dim": 1024,
          "num_attention_heads": 8, "n_head": 8, "num_key_value_heads": 2, "head_dim": 64, "num_experts": 4,
          "num_local_experts": 4, "moe_intermediate_size": 256}


class Stopped(Exception):
    """Why there is nothing to compare: a stage and a reason."""


def number_of(text):
    return int(hashlib.sha1(text.encode()).hexdigest()[:8], 16)


def from_timm(name):
    import timm
    import torch
    net = timm.create_model(name, pretrained=False).eval()
    size = net.default_cfg.get("input_size", (3, 224, 224))
    if size[1] > 288 and not net.default_cfg.get("fixed_input_size"):
        size = (3, 256, 256)
    return net, (torch.randn(1, *size),), {}


def from_torchvision(name):
    import torch
    import torchvision
    has_backbone = any(part in name for part in ("rcnn", "ssd", "retina", "fcos", "deeplab", "fcn", "lraspp"))
    net = torchvision.models.get_model(name, weights=None, **({"weights_backbone": None} if has_backbone else {})).eval()
    if any(part in name for part in ("rcnn", "retina", "fcos", "ssd")):
        return net, ([torch.rand(3, 300, 300)],), {}
    if "raft" in name:
        return net, (torch.randn(1, 3, 128, 128), torch.randn(1, 3, 128, 128)), {}
    if any(part in name for part in ("r3d", "mc3", "r2plus1d", "s3d", "mvit", "swin3d")):
        return net, (torch.randn(1, 3, 16, 224, 224),), {}
    return net, (torch.randn(1, 3, 224, 224),), {}


def shrink(config):
    """Two layers, few tokens, and the widths of a small network where they are those of a large one."""
    is_wide = max((getattr(config, key, 0) or 0 for key in ("hidden_size", "d_model", "n_embd")
                   if isinstance(getattr(config, key, 0), int)), default=0) > 1024
    for key in LAYERS:
        if isinstance(getattr(config, key, None), int) and getattr(config, key) > 2:
            with contextlib.suppress(Exception):
                setattr(config, key, 2)
    for key, most in WIDTHS.items():
        if is_wide and isinstance(getattr(config, key, None), int) and getattr(config, key) > most:
            with contextlib.suppress(Exception):
                setattr(config, key, most)
    if isinstance(getattr(config, "vocab_size", None), int) and config.vocab_size > 4000:
        config.vocab_size = 4000
    for key in ("pad_token_id", "bos_token_id", "eos_token_id", "decoder_start_token_id"):
        if isinstance(getattr(config, key, None), int) and getattr(config, key) >= 4000:
            setattr(config, key, 1)
    if getattr(config, "layer_types", None):
        config.layer_types = list(config.layer_types)[:2]
    for key in ("text_config", "vision_config", "audio_config", "encoder", "decoder"):
        part = getattr(config, key, None)
        if part is not None and hasattr(part, "to_dict"):
            shrink(part)


def from_transformers(name):
    import inspect
    import torch
    import transformers
    config = transformers.AutoConfig.for_model(name)
    shrink(config)
    config.use_cache = config.return_dict = False
    try:
        net = transformers.AutoModel.from_config(config).eval()
    except (ValueError, ImportError):  # of networks without the usual attention
        net = transformers.AutoModel.from_config(config, attn_implementation="eager").eval()
    if sum(p.numel() for p in net.parameters()) > LARGEST:
        raise Stopped("export", "too large")
    main, named = net.main_input_name, {}
    if main == "input_ids":
        ids = torch.randint(3, min(1000, getattr(config, "vocab_size", 1000)), (1, 48))
        named = {"input_ids": ids, "attention_mask": torch.ones_like(ids)}
        if config.is_encoder_decoder:
            named["decoder_input_ids"] = ids[:, :16]
    elif main == "pixel_values":
        size = getattr(config, "image_size", 224) or 224
        size = size[0] if isinstance(size, (list, tuple)) else size
        named = {"pixel_values": torch.randn(1, getattr(config, "num_channels", 3) or 3, size, size)}
    elif main == "input_values":
        named = {"input_values": torch.randn(1, 8000)}
    elif main == "input_features":
        named = {"input_features": torch.randn(1, getattr(config, "num_mel_bins", 80), 3000)}
        if config.is_encoder_decoder:
            named["decoder_input_ids"] = torch.randint(3, 100, (1, 8))
    else:
        raise Stopped("export", f"the main input is {main}")
    taken = inspect.signature(net.forward).parameters
    return net, (), {key: value for key, value in named.items() if key in taken}


SOURCES = {"timm": from_timm, "torchvision": from_torchvision, "transformers": from_transformers}


def export(spec, path, batch=1):
    """Writes the network; returns the module and the inputs that it was traced with."""
    import torch
    source, name, exporter, _ = spec.split("|")
    torch.set_num_threads(1)
    torch.manual_seed(0)
    net, args, named = SOURCES[source](name)
    with torch.no_grad():
        for weight in net.parameters():  # a head of zeros would hide every difference
            if weight.dim() > 1 and not weight.any():
                weight.normal_(std=0.02)
    if batch > 1:
        args = tuple(value.repeat(batch, *[1] * (value.dim() - 1)) for value in args)
        named = {key: value.repeat(batch, *[1] * (value.dim() - 1)) for key, value in named.items()}

    class ByPlace(torch.nn.Module):  # TorchScript's exporter gives inputs by place
        def __init__(self):
            super().__init__()
            self.net = net

        def forward(self, *values):
            return self.net(**dict(zip(named, values)))

    with torch.no_grad():
        if exporter == "dynamo":
            torch.onnx.export(net, args, path, kwargs=named or None, dynamo=True, external_data=False, verbose=False,
                              optimize=number_of(spec) % 2 == 0)
        elif named:
            torch.onnx.export(ByPlace(), tuple(named.values()), path, dynamo=False, opset_version=17,
                              input_names=list(named))
        else:
            torch.onnx.export(net, args, path, dynamo=False, opset_version=17)
    return net, args, named


def quantise(form, path, to, feeds):
    """Writes the model's other form, as ONNX Runtime's own tools make it."""
    import onnx
    from onnxruntime import quantization as q
    types = [q.QuantType.QInt8, q.QuantType.QUInt8]
    if form == "dyn":
        q.quantize_dynamic(path, to, weight_type=random.choice(types), per_channel=random.random() < 0.5)
    elif form in ("qdq", "qop"):
        class Samples(q.CalibrationDataReader):
            def __init__(self):
                self.left = iter(feeds)

            def get_next(self):
                return next(self.left, None)
        kind = random.choice(types) if form == "qdq" else q.QuantType.QUInt8
        q.quantize_static(path, to, Samples(), per_channel=random.random() < 0.5, activation_type=kind,
                          quant_format=q.QuantFormat.QDQ if form == "qdq" else q.QuantFormat.QOperator,
                          weight_type=q.QuantType.QInt8,
                          extra_options={"ActivationSymmetric": kind == q.QuantType.QInt8 and random.random() < 0.6})
    elif form == "f16":
        from onnxruntime.transformers.float16 import convert_float_to_float16
        onnx.save(convert_float_to_float16(onnx.load(path), keep_io_types=random.random() < 0.5), to)
    else:
        from onnxruntime.quantization.matmul_nbits_quantizer import MatMulNBitsQuantizer
        made = MatMulNBitsQuantizer(onnx.load(path), block_size=random.choice([32, 64, 128]),
                                    is_symmetric=random.random() < 0.5)
        made.process()
        made.model.save_model_to_file(to)


def session(path, is_plain=False):
    import onnxruntime
    onnxruntime.set_default_logger_severity(4)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    if is_plain:
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    return onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])


def inputs_of(path, rng):
    import models
    made = models.Model(path).inputs
    for name, array in made.items():
        if array.dtype.kind == "f":
            made[name] = rng.standard_normal(array.shape).astype(array.dtype)
        elif "mask" in name or array.dtype.kind == "b":
            made[name] = np.ones_like(array)
        else:
            made[name] = rng.integers(3, 100, array.shape).astype(array.dtype)
    return made


def distance(got, want):
    """The root mean square of the difference over that of what is wanted; infinite where only one is NaN or infinite."""
    a, b = np.asarray(got, np.float64), np.asarray(want, np.float64)
    if (np.isfinite(a) != np.isfinite(b)).any():
        return float("inf")
    there = np.isfinite(b)
    if not there.any():
        return 0.0
    return float(np.sqrt(((a - b)[there] ** 2).mean()) / (np.sqrt((b[there] ** 2).mean()) + 1e-12))


def clock(call):
    call()
    times, end = [], time.time() + 0.35
    while len(times) < 3 or (time.time() < end and len(times) < 400):
        start = time.process_time()
        call()
        times.append(time.process_time() - start)
    return float(np.median(times))


def stage_of(name, found, call):
    try:
        with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
            return call()
    except Stopped as e:
        found.update(stage=e.args[0], error=e.args[1])
    except BaseException as e:  # whatever the exporters raise
        found.update(stage=name, error=f"{type(e).__name__}: {e}"[:1500])
    return None


def compare(spec, folder, found):
    form, rng = spec.split("|")[3], np.random.default_rng(number_of(spec))
    random.seed(number_of(spec))
    path = str(folder / "model.onnx")
    stage_of("export", found, lambda: export(spec, path))
    if "stage" in found:
        return

    def prepare():
        feed, model = inputs_of(path, rng), path
        if form != "f32":
            model = str(folder / f"{form}.onnx")
            quantise(form, path, model, [feed, inputs_of(path, rng)])
            types = inputs_of(model, rng)
            feed = {name: feed[name].astype(types[name].dtype) for name in types}
        peer = session(model)
        want = peer.run(None, feed)
        # What the peer makes of the same model as it is written: how much of a difference is the model's own.
        own = max((distance(a, b) for a, b in zip(session(model, True).run(None, feed), want)), default=0.0)
        return feed, model, peer, want, own
    ready = stage_of("onnxruntime", found, prepare)
    if not ready:
        return
    feed, model, peer, want, found["peer_error"] = ready

    def build():
        import sinter
        start = time.time()
        plan = sinter.build(model, tune="fast", threads=1)
        found["build_s"] = round(time.time() - start, 1)
        context = plan.load().context()
        return context, context.run(feed)
    built = stage_of("sinter", found, build)
    if not built:
        return
    context, got = built
    worst = 0.0
    for name, b in zip((o.name for o in peer.get_outputs()), want):
        if np.shape(got[name]) != np.shape(b):
            found.update(stage="shape", error=f"{name}: {np.shape(got[name])} instead of {np.shape(b)}")
            return
        worst = max(worst, distance(got[name], b))
    theirs = ours = float("inf")
    for _ in range(3):
        theirs, ours = min(theirs, clock(lambda: peer.run(None, feed))), min(ours, clock(lambda: context.run(feed)))
    found.update(stage="done", error_rms=worst, peer_ms=1e3 * theirs, ms=1e3 * ours, ratio=theirs / ours)


def main():
    spec, folder = sys.argv[1], pathlib.Path(sys.argv[2])
    sys.path.insert(0, str(pathlib.Path(__file__).parent))
    sys.path.insert(0, str(pathlib.Path(__file__).parent.parent / "python"))
    found = {"spec": spec}
    if "gpu" in spec.split("|")[3]:
        sys.path.insert(0, str(pathlib.Path(__file__).parent / "gpu"))
        import sweep_gpu
        sweep_gpu.compare(spec, folder, found)
    else:
        compare(spec, folder, found)
    print("\n@@" + json.dumps(found), flush=True)


if __name__ == "__main__":
    main()
