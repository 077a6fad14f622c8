# SPDX-License-Identifier: Apache-2.0
"""The networks of bench/gpu/run in PyTorch: fp16, images channels last, one CUDA graph. Weights are those of the
modules' own initialisation: times do not depend on them."""
import torch
from torch import nn

from run_clock import clock, replay_of


def image(batch, size):
    return (torch.randn(batch, 3, size, size, device="cuda", dtype=torch.half).to(memory_format=torch.channels_last),)


def vision(model, batch, size):
    import torchvision.models
    return getattr(torchvision.models, model)(weights=None), image(batch, size)


def bert(length, batch=1):
    from transformers import BertConfig, BertModel
    ids = torch.randint(0, 30000, (batch, length), device="cuda")
    return BertModel(BertConfig(attn_implementation="sdpa")), (ids, torch.ones_like(ids))


def distilbert(length, batch):
    from transformers import DistilBertConfig, DistilBertForSequenceClassification
    ids = torch.randint(0, 30000, (batch, length), device="cuda")
    net = DistilBertForSequenceClassification(DistilBertConfig(attn_implementation="sdpa"))
    return Fields(net, "logits"), (ids, torch.ones_like(ids))


class Fields(nn.Module):
    """`module` with one field of its result."""

    def __init__(self, module, field, **fixed):
        super().__init__()
        self.module, self.field, self.fixed = module, field, fixed

    def forward(self, *inputs):
        out = self.module(*inputs, **self.fixed)
        return out[self.field] if isinstance(out, dict) or isinstance(self.field, int) else getattr(out, self.field)


def deeplab(size):
    from torchvision.models.segmentation import deeplabv3_resnet50
    return Fields(deeplabv3_resnet50(weights=None, weights_backbone=None, num_classes=21), "out"), image(1, size)


def inception(batch):
    from torchvision.models import inception_v3
    return inception_v3(weights=None, aux_logits=False, init_weights=False), image(batch, 299)


class Clip(nn.Module):
    def __init__(self):
        from transformers import CLIPConfig, CLIPModel
        super().__init__()
        self.net = CLIPModel(CLIPConfig(attn_implementation="sdpa"))

    def forward(self, pixels, ids, mask):
        return self.net(input_ids=ids, pixel_values=pixels, attention_mask=mask).logits_per_image


def clip():
    ids = torch.randint(0, 49000, (2, 16), device="cuda")
    return Clip(), (*image(1, 224), ids, torch.ones_like(ids))


class Llama(nn.Module):
    def __init__(self, past):
        from transformers import LlamaConfig, LlamaForCausalLM
        super().__init__()
        self.past = past
        self.net = LlamaForCausalLM(LlamaConfig(
            vocab_size=8000, hidden_size=512, intermediate_size=1376, num_hidden_layers=8, num_attention_heads=8,
            num_key_value_heads=4, attn_implementation="sdpa"))

    def forward(self, ids, positions, *keys_and_values):
        from transformers import DynamicCache
        cache = DynamicCache()
        if self.past:
            for layer in range(8):
                cache.update(keys_and_values[2 * layer], keys_and_values[2 * layer + 1], layer)
        return self.net(ids, position_ids=positions, past_key_values=cache, use_cache=True).logits


def llama(tokens, past):
    ids = torch.randint(0, 8000, (1, tokens), device="cuda")
    positions = torch.arange(past, past + tokens, device="cuda")[None]
    kept = [torch.randn(1, 4, past, 64, device="cuda", dtype=torch.half) for _ in range(16)] if past else []
    return Llama(past), (ids, positions, *kept)


def t5_encoder(batch, length):
    from transformers import T5Config, T5EncoderModel
    ids = torch.randint(0, 32000, (batch, length), device="cuda")
    return Fields(T5EncoderModel(T5Config()), "last_hidden_state"), (ids, torch.ones_like(ids))


def wav2vec2():
    from transformers import Wav2Vec2Config, Wav2Vec2ForCTC
    net = Wav2Vec2ForCTC(Wav2Vec2Config(num_hidden_layers=4, attn_implementation="sdpa"))
    return Fields(net, "logits"), (torch.randn(1, 16000, device="cuda", dtype=torch.half),)


def whisper_encoder():
    from transformers import WhisperConfig, WhisperModel
    net = WhisperModel(WhisperConfig(num_mel_bins=80, encoder_layers=4, decoder_layers=4, d_model=384,
                                     encoder_attention_heads=6, decoder_attention_heads=6, encoder_ffn_dim=1536,
                                     decoder_ffn_dim=1536, attn_implementation="sdpa"))
    features = torch.randn(1, 80, 3000, device="cuda", dtype=torch.half)
    return Fields(net.encoder, "last_hidden_state"), (features,)


class Unet(nn.Module):
    """The classic U-Net, 64 to 1024 channels."""

    def __init__(self):
        super().__init__()
        def pair(inputs, outputs):
            return nn.Sequential(nn.Conv2d(inputs, outputs, 3, padding=1), nn.ReLU(inplace=True),
                                 nn.Conv2d(outputs, outputs, 3, padding=1), nn.ReLU(inplace=True))
        sizes = (64, 128, 256, 512, 1024)
        self.down = nn.ModuleList(pair(a, b) for a, b in zip((3, *sizes), sizes))
        self.up = nn.ModuleList(nn.ConvTranspose2d(2 * c, c, 2, 2) for c in sizes[-2::-1])
        self.join = nn.ModuleList(pair(2 * c, c) for c in sizes[-2::-1])
        self.pool, self.last = nn.MaxPool2d(2), nn.Conv2d(64, 2, 1)

    def forward(self, x):
        kept = []
        for i, down in enumerate(self.down):
            x = down(self.pool(x) if i else x)
            kept.append(x)
        for up, join, skip in zip(self.up, self.join, kept[-2::-1]):
            x = join(torch.cat((skip, up(x)), 1))
        return self.last(x)


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
    "bert_s128_b32": lambda: bert(128, 32),
    "vit_b_16_b32": lambda: vision("vit_b_16", 32, 224),
    "swin_t": lambda: vision("swin_t", 1, 224),
    "convnext_tiny": lambda: vision("convnext_tiny", 1, 224),
    "deeplabv3_resnet50": lambda: deeplab(256),
    "resnet50_qdq": lambda: vision("resnet50", 1, 224),
    "resnet50_qdq_b32": lambda: vision("resnet50", 32, 224),
    "resnet50_qdq_b128": lambda: vision("resnet50", 128, 224),
    "bert_qdq_s128": lambda: bert(128),
    "bert_qdq_s128_b32": lambda: bert(128, 32),
    "bert_base_fp16": lambda: bert(128),
    "clip_vit_b32": clip,
    "densenet121": lambda: vision("densenet121", 1, 224),
    "distilbert": lambda: distilbert(128, 1),
    "distilbert_b32": lambda: distilbert(128, 32),
    "efficientnet_b0": lambda: vision("efficientnet_b0", 1, 224),
    "efficientnet_b0_b32": lambda: vision("efficientnet_b0", 32, 224),
    "inception_v3": lambda: inception(1),
    "inception_v3_b32": lambda: inception(32),
    "llama_s128": lambda: llama(128, 0),
    "llama_decode": lambda: llama(1, 127),
    "mobilenet_v2": lambda: vision("mobilenet_v2", 1, 224),
    "mobilenet_v2_b32": lambda: vision("mobilenet_v2", 32, 224),
    "mobilenet_v2_qdq": lambda: vision("mobilenet_v2", 1, 224),
    "shufflenet_v2": lambda: vision("shufflenet_v2_x1_0", 1, 224),
    "shufflenet_v2_b32": lambda: vision("shufflenet_v2_x1_0", 32, 224),
    "t5_small_encoder": lambda: t5_encoder(1, 70),
    "unet": lambda: (Unet(), image(1, 256)),
    "vgg16": lambda: vision("vgg16", 1, 224),
    "wav2vec2": wav2vec2,
    "whisper_tiny_encoder": whisper_encoder,
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
        replay = replay_of(lambda: run(*inputs))
        return clock(replay), replay
