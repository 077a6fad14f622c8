# SPDX-License-Identifier: Apache-2.0
"""The plugins that TensorRT ships and that are operators here: random data against NumPy, from the registry, and as nodes of models."""
import rig

import numpy as np
import sinter
import sinter.tensorrt as trt
from onnx_bytes import data, num
from random_models import model, value

QUIET = trt.Logger(trt.Logger.ERROR)
RNG = np.random.default_rng()


def corners(boxes):
    """Areas are those of boxes whose corners are in any order."""
    a, b = boxes[..., :2], boxes[..., 2:]
    return np.concatenate([np.minimum(a, b), np.maximum(a, b)], -1).astype("f8")


def overlap(a, b):
    a, b = corners(a), corners(b)
    both = np.clip(np.minimum(a[2:], b[2:]) - np.maximum(a[:2], b[:2]), 0, None).prod()
    return both / max((a[2:] - a[:2]).prod() + (b[2:] - b[:2]).prod() - both, 1e-300)


def suppressed(boxes, scores, most, is_kept, overlaps, agnostic, background, best=None):
    """[(score, box, class)] of one image, the best first. boxes: [N, C, 4]."""
    count, classes = scores.shape
    rows = [(scores[i, c], i, c) for i in range(count) for c in range(classes) if c != background and is_kept(scores[i, c])]
    if best is not None:
        rows = [r for c in range(classes) for r in sorted((r for r in rows if r[2] == c), key=lambda r: -r[0])[:best]]
    kept = []
    for row in sorted(rows, key=lambda r: (-r[0], r[1] * classes + r[2])):
        if all(not (agnostic or k[2] == row[2]) or not overlaps(overlap(boxes[row[1], row[2]], boxes[k[1], k[2]])) for k in kept):
            kept.append(row)
    return kept[:most]


def run(network, feeds, ranges=None):
    config = network.builder.create_builder_config()
    config.builder_optimization_level = 0
    if ranges:
        profile = network.builder.create_optimization_profile()
        for name, shapes in ranges.items():
            profile.set_shape(name, *shapes)
        config.add_optimization_profile(profile)
    engine = trt.Runtime(QUIET).deserialize_cuda_engine(network.builder.build_serialized_network(network, config))
    context, found = engine.create_execution_context(), {}
    for i in range(engine.num_io_tensors):
        name = engine.get_tensor_name(i)
        if engine.get_tensor_mode(name) == trt.TensorIOMode.INPUT:
            assert context.set_input_shape(name, feeds[name].shape)
            context.set_tensor_address(name, feeds[name].ctypes.data)
        else:
            found[name] = np.empty(tuple(context.get_tensor_shape(name)), trt.nptype(engine.get_tensor_dtype(name)))
            context.set_tensor_address(name, found[name].ctypes.data)
    assert context.execute_async_v3(0)
    return list(found.values())


def fields(**values):
    kinds = {int: ("i4", trt.PluginFieldType.INT32), float: ("f4", trt.PluginFieldType.FLOAT32)}
    return trt.PluginFieldCollection([trt.PluginField(n, np.array([v], kinds[type(v)][0]), kinds[type(v)][1]) for n, v in values.items()])


def network_with(kind, given, inputs, version="1"):
    """A network that is one plugin. inputs: name -> shape."""
    network = trt.Builder(QUIET).create_network(0)
    creator = trt.get_plugin_registry().get_plugin_creator(kind, version, "")
    plugin = creator.create_plugin("layer", given)
    tensors = [network.add_input(name, trt.float32, shape) for name, shape in inputs.items()]
    layer = network.add_plugin_v2(tensors, plugin)
    assert layer.num_outputs == plugin.num_outputs and layer.plugin is plugin
    for i in range(layer.num_outputs):
        layer.get_output(i).name = f"out{i}"
        network.mark_output(layer.get_output(i))
    return network


def compare(outputs, wanted, boxes, fill=0, tolerance=1e-5):
    """wanted: the kept rows of each image; boxes: [B, N, C, 4] as the result has them."""
    count, found_boxes, scores, classes = outputs
    for b, rows in enumerate(wanted):
        n = len(rows)
        assert count[b, 0] == n, (count[b], n)
        assert np.allclose(scores[b, :n], [r[0] for r in rows], rtol=1e-5) and not scores[b, n:].any()
        assert [int(c) for c in classes[b, :n]] == [r[2] for r in rows] and (classes[b, n:] == fill).all()
        if n:
            assert np.allclose(found_boxes[b, :n], [boxes[b, r[1], r[2]] for r in rows], rtol=tolerance, atol=tolerance)
        assert not found_boxes[b, n:].any()


def efficient_case(case, batch, count, classes, own, coding, agnostic, background, activation, anchors, most):
    """The plugin's fields, its inputs, and what it gives."""
    boxes = RNG.random((batch, count, classes if own else 1, 4)) * 4
    if coding:
        boxes[..., 2:] = boxes[..., 2:] / 4 + 0.3
    scores = RNG.random((batch, count, classes)) if not activation else RNG.normal(size=(batch, count, classes))
    boxes, scores = boxes.astype("f4"), scores.astype("f4")
    feeds = {"boxes": boxes if own else boxes[:, :, 0], "scores": scores}
    real = boxes.astype("f8")
    if anchors:
        feeds["anchors"] = (RNG.random((1, count, 4)) + 0.2).astype("f4")
        if coding:
            boxes[..., :] = RNG.normal(size=boxes.shape) / 2
            feeds["boxes"] = boxes if own else boxes[:, :, 0]
            a, x = feeds["anchors"][:, :, None].astype("f8"), boxes.astype("f8")
            real = np.concatenate([x[..., :2] * a[..., 2:] + a[..., :2], a[..., 2:] * np.exp(x[..., 2:])], -1)
        else:
            real = boxes.astype("f8") + feeds["anchors"][:, :, None]
    if coding:
        real = np.concatenate([real[..., :2] - real[..., 2:] / 2, real[..., :2] + real[..., 2:] / 2], -1)
    seen = 1 / (1 + np.exp(-scores.astype("f8"))) if activation else scores
    real = np.broadcast_to(real, (batch, count, classes, 4))
    wanted = [suppressed(real[b], seen[b], most, lambda s: s >= np.float32(0.3), lambda o: o >= np.float32(0.4), agnostic, background)
              for b in range(batch)]
    given = dict(score_threshold=0.3, iou_threshold=0.4, max_output_boxes=most, background_class=background,
                 score_activation=int(activation), class_agnostic=int(agnostic), box_coding=int(coding))
    return given, feeds, wanted, real


def test_efficient_nms():
    for case in range(40):
        own, coding, agnostic, activation, anchors = (bool(case >> k & 1) for k in range(5))
        agnostic = agnostic and not own
        classes, count, batch = int(RNG.integers(1, 5)), int(RNG.integers(1, 30)), int(RNG.integers(1, 4))
        given, feeds, wanted, real = efficient_case(case, batch, count, classes, own, coding, agnostic,
                                                    int(RNG.integers(-1, classes)), activation, anchors, int(RNG.choice([1, 5, 200])))
        shapes = {name: (-1,) + x.shape[1:] if name != "anchors" else x.shape for name, x in feeds.items()}
        network = network_with("EfficientNMS_TRT", fields(**given), shapes)
        assert tuple(network.get_output(1).shape) == (-1, given["max_output_boxes"], 4) and network.get_output(3).dtype == trt.int32
        ranges = {n: tuple((b,) + x.shape[1:] for b in (1, 2, 4)) for n, x in feeds.items() if n != "anchors"}
        compare(run(network, feeds, ranges), wanted, real)


def node(kind, domain, count_in, outputs, attributes):
    """A node as bytes."""
    made = b"".join(data(1, n) for n in ("boxes", "scores", "anchors")[:count_in]) + b"".join(data(2, n) for n in outputs)
    made += data(4, kind) + data(7, domain)
    for name, v in attributes.items():
        made += data(5, data(1, name) + (num(3, v) + num(20, 2) if isinstance(v, int) else data_float(2, v) + num(20, 1) if
                                         isinstance(v, float) else data(4, v) + num(20, 3)))
    return data(1, made)


def data_float(number, v):
    import struct
    return bytes([number << 3 | 5]) + struct.pack("<f", v)


def test_nodes_of_models():
    for domain in ("", "TRT", "nvidia.plugins"):
        given, feeds, wanted, real = efficient_case(0, 2, 25, 3, False, True, False, -1, False, False, 10)
        names = ["num", "det_boxes", "det_scores", "det_classes"]
        graph = data(2, "g") + b"".join(data(11, value(n, "f32", list(x.shape))) for n, x in feeds.items())
        graph += b"".join(data(12, value(n, "f32" if 0 < i < 3 else "i32", [])) for i, n in enumerate(names))
        proto = model(graph + node("EfficientNMS_TRT", domain, 2, names, dict(given, plugin_version="1")))
        network = trt.Builder(QUIET).create_network(0)
        parser = trt.OnnxParser(network, QUIET)
        assert parser.parse(proto), [str(parser.get_error(i)) for i in range(parser.num_errors)]
        compare(run(network, feeds), wanted, real)
        compare(list(sinter.build(proto, tune="off").load().context().run(feeds).values()), wanted, real)


def test_batched_nms():
    for case in range(20):
        own, clip, dynamic = bool(case & 1), bool(case & 2), bool(case & 4)
        batch, count, classes = int(RNG.integers(1, 3)), int(RNG.integers(12, 40)), int(RNG.integers(1, 4))
        boxes = corners(RNG.random((batch, count, classes if own else 1, 4)) * 1.5 - 0.2).astype("f4")
        scores = RNG.random((batch, count, classes)).astype("f4")
        background, best, most = int(RNG.integers(-1, classes)), int(RNG.integers(6, 50)), int(RNG.integers(1, 7))
        given = fields(shareLocation=int(not own), backgroundLabelId=background, numClasses=classes, topK=best, keepTopK=most,
                       scoreThreshold=0.2, iouThreshold=0.3, isNormalized=1, clipBoxes=int(clip), scoreBits=16, caffeSemantics=1)
        real = np.broadcast_to(boxes, (batch, count, classes, 4))
        wanted = [suppressed(real[b], scores[b], most, lambda s: s > np.float32(0.2), lambda o: o > np.float32(0.3), False, background, best)
                  for b in range(batch)]
        network = network_with("BatchedNMSDynamic_TRT" if dynamic else "BatchedNMS_TRT", given, {"boxes": boxes.shape, "scores": scores.shape})
        found = run(network, {"boxes": boxes, "scores": scores})
        assert found[3].dtype == np.float32
        compare(found, wanted, np.clip(real, 0, 1) if clip else real, fill=-1)


def test_instance_norm():
    x = RNG.normal(size=(2, 5, 6, 7)).astype("f4")
    scale, bias = RNG.normal(size=(2, 5)).astype("f4")
    for relu in (0, 1):
        given = fields(epsilon=1e-3, relu=relu, alpha=0.25)
        given += [trt.PluginField("scales", scale, trt.PluginFieldType.FLOAT32), trt.PluginField("bias", bias, trt.PluginFieldType.FLOAT32)]
        found, = run(network_with("InstanceNormalization_TRT", given, {"x": x.shape}, "3"), {"x": x})
        y = x.astype("f8")
        y = (y - y.mean((2, 3), keepdims=True)) / np.sqrt(y.var((2, 3), keepdims=True) + 1e-3) * scale[:, None, None] + bias[:, None, None]
        assert np.allclose(found, np.where(y < 0, y * 0.25, y) if relu else y, rtol=1e-4, atol=1e-5)


def bilinear(image, y, x, is_clamped):
    """Of [..., H, W] at a point: 0 more than one element outside; from the border on the last element, or half of it and a 0."""
    high, wide = image.shape[-2:]
    if not (-1 <= y <= high and -1 <= x <= wide if is_clamped else -1 < y < high and -1 < x < wide):
        return 0
    if is_clamped:
        y, x = min(max(y, 0), high - 1), min(max(x, 0), wide - 1)
    total = 0
    for i in (int(np.floor(y)), int(np.floor(y)) + 1):
        for j in (int(np.floor(x)), int(np.floor(x)) + 1):
            if 0 <= i < high and 0 <= j < wide:
                total = total + image[..., i, j] * (1 - abs(y - i)) * (1 - abs(x - j))
    return total


def list_fields(**lists):
    return [trt.PluginField(n, np.array(v, "i4"), trt.PluginFieldType.INT32) for n, v in lists.items()]


def test_roi_align():
    for case in range(12):
        shift, average, ratio = case & 1, case >> 1 & 1, int(RNG.integers(1, 3))
        high, wide, scale = int(RNG.integers(1, 4)), int(RNG.integers(1, 4)), float(RNG.choice([1.0, 0.5]))
        x, rois = RNG.normal(size=(2, 3, 9, 8)).astype("f4"), (RNG.random((5, 4)) * 6).astype("f4")
        rois[:, 2:] += rois[:, :2]
        at = RNG.integers(0, 2, 5).astype("i4")
        given = fields(coordinate_transformation_mode=shift, mode=average, output_height=high, output_width=wide, sampling_ratio=ratio,
                       spatial_scale=scale)
        network = trt.Builder(QUIET).create_network(0)
        tensors = [network.add_input(n, t, (-1,) + s) for n, t, s in (("x", trt.float32, (3, 9, 8)), ("rois", trt.float32, (4,)), ("at", trt.int32, ()))]
        plugin = trt.get_plugin_registry().get_creator("ROIAlign_TRT", str(1 + case % 2), "").create_plugin("x", given)
        layer = network.add_plugin_v3(tensors, [], plugin) if case % 2 else network.add_plugin_v2(tensors, plugin)
        network.mark_output(layer.get_output(0))
        feeds = {"x": x, "rois": rois, "at": at}
        found, = run(network, feeds, {n: ((1,) + v.shape[1:], v.shape, (8,) + v.shape[1:]) for n, v in feeds.items()})
        wanted = np.zeros((5, 3, high, wide))
        for r, (roi, b) in enumerate(zip(rois.astype("f8") * scale - 0.5 * shift, at)):
            size = [roi[3] - roi[1], roi[2] - roi[0]]
            size = size if shift else [max(s, 1) for s in size]
            step = size[0] / high, size[1] / wide
            for i in range(high):
                for j in range(wide):
                    seen = [bilinear(x[b], roi[1] + (i + (k + 0.5) / ratio) * step[0], roi[0] + (j + (m + 0.5) / ratio) * step[1], True)
                            * np.ones(3) for k in range(ratio) for m in range(ratio)]
                    wanted[r, :, i, j] = np.mean(seen, 0) if average else np.inf
        if average:
            assert np.allclose(found, wanted, rtol=1e-4, atol=1e-4), case
        else:                                   # max pooling: ONNX's operator
            text = {"mode": "max", "coordinate_transformation_mode": "half_pixel" if shift else "output_half_pixel"}
            other = sinter.Network()
            y = other.add_op("RoiAlign", *(other.add_input(n, t, v.shape) for (n, v), t in zip(feeds.items(), ("f32", "f32", "i32"))),
                             output_height=high, output_width=wide, sampling_ratio=ratio, spatial_scale=scale, **text).output
            other.mark_output(y)
            same, = sinter.build(other, tune="off").load().context().run(feeds).values()
            assert np.allclose(found, same, rtol=1e-5, atol=1e-6)


def deformed(x, offset, mask, w, bias, stride, pad, dilation, group, parts):
    batch, channels, kernel = len(x), x.shape[1], w.shape[2:]
    size = offset.shape[2:]
    y = np.zeros((batch, len(w)) + size)
    for b, i, j in np.ndindex(batch, *size):
        columns = np.zeros((channels,) + kernel)
        for c, k, m in np.ndindex(channels, *kernel):
            part = c // (channels // parts)
            at = (part * kernel[0] + k) * kernel[1] + m
            columns[c, k, m] = mask[b, at, i, j] * bilinear(x[b, c], i * stride[0] - pad[0] + k * dilation[0] + offset[b, 2 * at, i, j],
                                                            j * stride[1] - pad[1] + m * dilation[1] + offset[b, 2 * at + 1, i, j], False)
        for o in range(len(w)):
            first = o // (len(w) // group) * w.shape[1]
            y[b, o, i, j] = (columns[first:first + w.shape[1]] * w[o]).sum() + (bias[o] if bias is not None else 0)
    return y


def test_deformed_convolution():
    for case in range(8):
        group, parts, kernel = int(RNG.choice([1, 2])), int(RNG.choice([1, 2])), RNG.integers(1, 4, 2)
        stride, pad, dilation = RNG.integers(1, 3, 2), RNG.integers(0, 2, 2), RNG.integers(1, 3, 2)
        size = [int((n + 2 * p - d * (k - 1) - 1) // s + 1) for n, p, d, k, s in zip((7, 6), pad, dilation, kernel, stride)]
        made = {"x": RNG.normal(size=(2, 4, 7, 6)), "offset": RNG.normal(size=(2, 2 * parts * kernel.prod(), *size)),
                "mask": RNG.random((2, parts * kernel.prod(), *size)), "w": RNG.normal(size=(6, 4 // group, *kernel)), "bias": RNG.normal(size=6)}
        feeds = {n: v.astype("f4") for n, v in made.items() if n != "bias" or case & 1}
        given = fields(group=group, deformable_group=parts)
        given += list_fields(stride=stride, padding=pad, dilation=dilation)
        found, = run(network_with("ModulatedDeformConv2d", given, {n: v.shape for n, v in feeds.items()}), feeds)
        wanted = deformed(*(feeds.get(n) for n in made), stride, pad, dilation, group, parts)
        assert found.shape == wanted.shape and np.allclose(found, wanted, rtol=1e-3, atol=1e-3), case
    graph = data(2, "g") + b"".join(data(11, value(n, "f32", list(x.shape))) for n, x in feeds.items()) + data(12, value("y", "f32", []))
    lists = {"stride": stride, "padding": pad, "dilation": dilation}
    made = b"".join(data(1, n) for n in feeds) + data(2, "y") + data(4, "MMCVModulatedDeformConv2d") + data(7, "mmdeploy")
    made += b"".join(data(5, data(1, n) + b"".join(num(8, int(k)) for k in v) + num(20, 7)) for n, v in lists.items())
    made += b"".join(data(5, data(1, n) + num(3, v) + num(20, 2)) for n, v in (("groups", group), ("deform_groups", parts)))
    same, = sinter.build(model(graph + data(1, made)), tune="off").load().context().run(feeds).values()
    assert np.allclose(same, wanted, rtol=1e-3, atol=1e-3)


def test_multiscale_attention():
    for case in range(8):
        levels = [tuple(int(n) for n in RNG.integers(1, 6, 2)) for _ in range(int(RNG.integers(1, 4)))]
        n, heads, wide, queries, points = (int(RNG.integers(1, k)) for k in (3, 4, 5, 7, 4))
        start = np.cumsum([0] + [h * w for h, w in levels])
        feeds = {"value": RNG.normal(size=(n, start[-1], heads, wide)).astype("f4"), "shapes": np.array(levels, "i4"),
                 "start": start[:-1].astype("i4"), "places": (RNG.random((n, queries, heads, len(levels), points, 2)) * 1.4 - 0.2).astype("f4"),
                 "weights": RNG.random((n, queries, heads, len(levels), points)).astype("f4")}
        wanted = np.zeros((n, queries, heads, wide))
        for b, q, m, k, p in np.ndindex(n, queries, heads, len(levels), points):
            high, across = levels[k]
            image = feeds["value"][b, start[k]:start[k + 1], m].astype("f8").reshape(high, across, wide).transpose(2, 0, 1)
            x, y = feeds["places"][b, q, m, k, p]
            wanted[b, q, m] += feeds["weights"][b, q, m, k, p] * bilinear(image, y * high - 0.5, x * across - 0.5, False)
        network = trt.Builder(QUIET).create_network(0)
        late = case & 1                         # the maps' sizes: an input that a run gives, or constants
        tensors = [network.add_input(k, trt.int32 if v.dtype == "i4" else trt.float32, v.shape) if late or v.dtype != "i4" else
                   network.add_constant(v.shape, v).get_output(0) for k, v in feeds.items()]
        plugin = trt.get_plugin_registry().get_creator("MultiscaleDeformableAttnPlugin_TRT", "1", "").create_plugin("x", None)
        network.mark_output(network.add_plugin_v2(tensors, plugin).get_output(0))
        found, = run(network, feeds)
        assert np.allclose(found, wanted, rtol=1e-3, atol=1e-4), case


class Mine(trt.IPluginCreator):
    name, plugin_version, plugin_namespace, field_names = "Mine", "1", "", trt.PluginFieldCollection([])


def test_library_of_shipped_plugins():
    registry = trt.get_plugin_registry()
    registry.deregister_library(registry.load_library("/usr/lib/libnvinfer_plugin.so.10"))


def test_refusals():
    registry = trt.get_plugin_registry()
    names = {c.name for c in registry.plugin_creator_list}
    assert {"EfficientNMS_TRT", "BatchedNMSDynamic_TRT"} <= names and registry.get_plugin_creator("GridAnchor_TRT", "1", "") is None
    assert registry.register_creator(Mine(), "") and "Mine" in [c.name for c in registry.plugin_creator_list]
    creator = registry.get_creator("EfficientNMS_TRT", "1", "")
    assert [f.name for f in creator.field_names][:2] == ["score_threshold", "iou_threshold"]
    rig.raises(ValueError, creator.create_plugin, "x", fields(threshold=0.5), says="'threshold'")
    assert registry.get_creator("EfficientNMS_TRT", "1", "mine") is None and trt.init_libnvinfer_plugins(QUIET, "mine")
    assert registry.get_creator("EfficientNMS_TRT", "1", "mine").create_plugin("x", None).plugin_namespace == "mine"
    boxes, scores = (2, 9, 4), (2, 9, 3)

    def refused(kind, says, shapes=(boxes, scores), output=1, **given):
        class Log(trt.ILogger):
            text = ""

            def log(self, severity, msg):
                self.text += msg
        log = Log()
        network = trt.Builder(log).create_network(0)
        layer = network.add_plugin_v2([network.add_input(n, trt.float32, s) for n, s in zip(("boxes", "scores"), shapes)],
                                      registry.get_creator(kind, "1", "").create_plugin("x", fields(**given)))
        network.mark_output(layer.get_output(output))
        assert network.builder.build_serialized_network(network, network.builder.create_builder_config()) is None and says in log.text, log.text

    rig.raises(ValueError, registry.get_creator("ModulatedDeformConv2d", "1", "").create_plugin, "x", list_fields(stride=[1, 1, 1]), says="2 is wanted")
    refused("ModulatedDeformConv2d", "an input is missing", output=0, group=1)
    refused("MultiscaleDeformableAttnPlugin_TRT", "input 0 is of rank 3, 4 is wanted", output=0)
    refused("ROIAlign_TRT", "mode 2", output=0, mode=2)
    refused("EfficientNMS_TRT", "max_output_boxes is 0", max_output_boxes=0)
    refused("EfficientNMS_TRT", "box_coding is 2", box_coding=2)
    refused("EfficientNMS_TRT", "class_agnostic", shapes=((2, 9, 3, 4), scores), class_agnostic=1)
    refused("EfficientNMS_TRT", "rank 2", shapes=((9, 4), scores))
    refused("BatchedNMS_TRT", "isNormalized=0", topK=9, keepTopK=3, isNormalized=0)
    refused("BatchedNMS_TRT", "topK is 2", topK=2, keepTopK=3)
    refused("BatchedNMS_TRT", "shareLocation is 0", topK=9, keepTopK=3, shareLocation=0)


rig.main(__name__)
