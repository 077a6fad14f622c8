# SPDX-License-Identifier: Apache-2.0
"""The networks of bench/gpu/run in PyTorch: fp16, images channels last, one CUDA graph. Weights are those of the
modules' own initialisation: times do not depend on them."""
import torch
from torch import nn

from run_clock import clock


def image(batch, size):
    return (torch.randn(batch, 3, size, size, device="cuda", dtype=torch.half).to(memory_format=torch.channels_last),)


def vision(model, batch, size):
    import torchvision.models
    return getattr(torchvision.models, model)(weights=None), image(batch, size)


def bert(length):
    from transformers import BertConfig, BertModel
    ids = torch.randint(0, 30000, (1, length), device="cuda")
    return BertModel(BertConfig(attn_implementation="sdpa")), (ids, torch.ones_like(ids))


class Gpt2(nn.Module):
    """GPT-2 as its ONNX graph has it: past keys and values in, the present ones out."""

    def __init__(self, past):
        from transformers import GPT2Config, GPT2LMHeadModel
        super().__init__()
        self.net, self.past = GPT2LMHeadModel(GPT2Config(attn_implementation="sdpa")), past

    def forward(self, ids, positions, *keys_and_values):
        from transformers import DynamicCache
        cache = DynamicCache()
        if self.past:
            for layer in range(12):
                cache.update(keys_and_values[2 * layer], keys_and_values[2 * layer + 1], layer)
        out = self.net(ids, position_ids=positions, past_key_values=cache, use_cache=True)
        return out.logits


def gpt2(tokens, past):
    ids = torch.randint(0, 50257, (1, tokens), device="cuda")
    positions = torch.arange(past, past + tokens, device="cuda")[None]
    kept = [torch.randn(1, 12, past, 64, device="cuda", dtype=torch.half) for _ in range(24)] if past else []
    return Gpt2(past), (ids, positions, *kept)


# ---- YOLOv5s, after Ultralytics' description of version 6 ----

class Conv(nn.Module):
    def __init__(self, inputs, outputs, size=1, stride=1, pad=None):
        super().__init__()
        self.conv = nn.Conv2d(inputs, outputs, size, stride, size // 2 if pad is None else pad)  # batch norm folded
        self.act = nn.SiLU(inplace=True)

    def forward(self, x):
        return self.act(self.conv(x))


class Bottleneck(nn.Module):
    def __init__(self, channels, adds):
        super().__init__()
        self.first, self.second, self.adds = Conv(channels, channels), Conv(channels, channels, 3), adds

    def forward(self, x):
        y = self.second(self.first(x))
        return x + y if self.adds else y


class C3(nn.Module):
    def __init__(self, inputs, outputs, count, adds=True):
        super().__init__()
        half = outputs // 2
        self.left, self.right, self.join = Conv(inputs, half), Conv(inputs, half), Conv(outputs, outputs)
        self.chain = nn.Sequential(*(Bottleneck(half, adds) for _ in range(count)))

    def forward(self, x):
        return self.join(torch.cat((self.chain(self.left(x)), self.right(x)), 1))


class Sppf(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.enter, self.leave = Conv(channels, channels // 2), Conv(channels * 2, channels)
        self.pool = nn.MaxPool2d(5, 1, 2)

    def forward(self, x):
        x = self.enter(x)
        y = self.pool(x)
        z = self.pool(y)
        return self.leave(torch.cat((x, y, z, self.pool(z)), 1))


class Yolo(nn.Module):
    def __init__(self, size, classes=80):
        super().__init__()
        self.p3 = nn.Sequential(Conv(3, 32, 6, 2, 2), Conv(32, 64, 3, 2), C3(64, 64, 1), Conv(64, 128, 3, 2),
                                C3(128, 128, 2))
        self.p4 = nn.Sequential(Conv(128, 256, 3, 2), C3(256, 256, 3))
        self.p5 = nn.Sequential(Conv(256, 512, 3, 2), C3(512, 512, 1), Sppf(512))
        self.up = nn.Upsample(scale_factor=2, mode="nearest")
        self.top5, self.mid4, self.top4 = Conv(512, 256), C3(512, 256, 1, False), Conv(256, 128)
        self.out3, self.down3 = C3(256, 128, 1, False), Conv(128, 128, 3, 2)
        self.out4, self.down4 = C3(256, 256, 1, False), Conv(256, 256, 3, 2)
        self.out5 = C3(512, 512, 1, False)
        self.heads = nn.ModuleList(nn.Conv2d(c, 3 * (5 + classes), 1) for c in (128, 256, 512))
        for i, stride in enumerate((8, 16, 32)):
            n = size // stride
            y, x = torch.meshgrid(torch.arange(n), torch.arange(n), indexing="ij")
            self.register_buffer(f"grid{i}", torch.stack((x, y), 2)[None].expand(3, n, n, 2) - 0.5)
            self.register_buffer(f"anchor{i}", torch.full((3, 1, 1, 2), 4.0 * stride))

    def forward(self, x):
        p3 = self.p3(x)
        p4 = self.p4(p3)
        t5 = self.top5(self.p5(p4))
        t4 = self.top4(self.mid4(torch.cat((self.up(t5), p4), 1)))
        o3 = self.out3(torch.cat((self.up(t4), p3), 1))
        o4 = self.out4(torch.cat((self.down3(o3), t4), 1))
        o5 = self.out5(torch.cat((self.down4(o4), t5), 1))
        rows = []
        for i, (head, o) in enumerate(zip(self.heads, (o3, o4, o5))):
            y = head(o)
            n, _, h, w = y.shape
            xy, wh, rest = y.view(n, 3, -1, h, w).permute(0, 1, 3, 4, 2).sigmoid().split((2, 2, 81), 4)
            xy = (xy * 2 + getattr(self, f"grid{i}")) * (8 << i)
            wh = (wh * 2) ** 2 * getattr(self, f"anchor{i}")
            rows.append(torch.cat((xy, wh, rest), 4).reshape(n, -1, 85))
        return torch.cat(rows, 1)


NETWORKS = {
    "resnet50": lambda: vision("resnet50", 1, 224),
    "resnet50_b32": lambda: vision("resnet50", 32, 224),
    "resnet50_b128": lambda: vision("resnet50", 128, 224),
    "mobilenet_v3_large": lambda: vision("mobilenet_v3_large", 1, 224),
    "efficientnet_b4": lambda: vision("efficientnet_b4", 1, 380),
    "vit_b_16": lambda: vision("vit_b_16", 1, 224),
    "bert_s128": lambda: bert(128),
    "bert_s384": lambda: bert(384),
    "yolov5s": lambda: (Yolo(640), image(1, 640)),
    "gpt2_s128": lambda: gpt2(128, 0),
    "gpt2_decode": lambda: gpt2(1, 127),
}


def has(name):
    return name in NETWORKS


def graph(name, compiled=False):
    """Milliseconds of a replay, and the replay; `compiled`: of the graph that torch.compile's kernels make."""
    torch.backends.cudnn.benchmark = True
    module, inputs = NETWORKS[name]()
    module = module.cuda().eval().half()
    if inputs[0].dim() == 4:
        module = module.to(memory_format=torch.channels_last)
    with torch.inference_mode():
        run = torch.compile(module, mode="max-autotune-no-cudagraphs") if compiled else module
        stream = torch.cuda.Stream()
        with torch.cuda.stream(stream):
            for _ in range(3):
                run(*inputs)
        torch.cuda.synchronize()
        made = torch.cuda.CUDAGraph()
        with torch.cuda.graph(made):
            outputs = run(*inputs)

        def replay(_alive=(module, inputs, outputs)):
            """The graph holds addresses alone: what lies there must live as long as somebody can replay it."""
            made.replay()
        return clock(replay), replay
