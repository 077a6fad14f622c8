# SPDX-License-Identifier: Apache-2.0
"""Models with random weights for tests and measurements: name -> function that gives (module, example inputs). Nothing is
downloaded. `small` models are for tests; the others have the sizes that people use."""
import torch


def image(size=224, batch=1):
    return (torch.randn(batch, 3, size, size),)


def vision(name, size=224):
    def make(batch=1):
        import torchvision
        return getattr(torchvision.models, name)(weights=None).eval(), image(size, batch)
    return make


def deeplab(batch=1):
    from torchvision.models import segmentation
    return segmentation.deeplabv3_resnet50(weights=None, weights_backbone=None).eval(), image(256, batch)


class Unet(torch.nn.Module):
    """Two levels of the usual network for segmentation."""

    def __init__(self, width=32):
        super().__init__()
        def block(a, b):
            return torch.nn.Sequential(torch.nn.Conv2d(a, b, 3, padding=1), torch.nn.BatchNorm2d(b), torch.nn.ReLU(),
                                       torch.nn.Conv2d(b, b, 3, padding=1), torch.nn.BatchNorm2d(b), torch.nn.ReLU())
        self.down1, self.down2, self.bottom = block(3, width), block(width, width * 2), block(width * 2, width * 4)
        self.up2 = torch.nn.ConvTranspose2d(width * 4, width * 2, 2, stride=2)
        self.up1 = torch.nn.ConvTranspose2d(width * 2, width, 2, stride=2)
        self.join2, self.join1 = block(width * 4, width * 2), block(width * 2, width)
        self.head = torch.nn.Conv2d(width, 2, 1)

    def forward(self, x):
        pool = torch.nn.functional.max_pool2d
        a = self.down1(x)
        b = self.down2(pool(a, 2))
        c = self.bottom(pool(b, 2))
        b = self.join2(torch.cat([self.up2(c), b], 1))
        return self.head(self.join1(torch.cat([self.up1(b), a], 1)))


def unet(batch=1):
    return Unet().eval(), image(256, batch)


class Tensors(torch.nn.Module):
    """A transformers model that takes and gives tensors."""

    def __init__(self, model, name):
        super().__init__()
        self.model, self.name = model, name

    def forward(self, *inputs):
        return getattr(self.model(*inputs), self.name)


def text(class_name, config_name, length=128, field="last_hidden_state", **config):
    def make(batch=1):
        import transformers
        settings = getattr(transformers, config_name)(**config)
        model = getattr(transformers, class_name)(settings).eval()
        tokens = torch.randint(0, min(settings.vocab_size, 1000), (batch, length))
        return Tensors(model, field), (tokens,)
    return make


def gpt2(batch=1):
    return text("GPT2LMHeadModel", "GPT2Config", field="logits", use_cache=False)(batch)


def whisper(batch=1):
    import transformers
    from transformers.models.whisper.modeling_whisper import WhisperEncoder
    model = WhisperEncoder(transformers.WhisperConfig()).eval()
    return Tensors(model, "last_hidden_state"), (torch.randn(batch, 80, 3000),)


def vit(batch=1):
    import transformers
    return Tensors(transformers.ViTModel(transformers.ViTConfig(), add_pooling_layer=False).eval(), "last_hidden_state"), image(224, batch)


MODELS = {"resnet18": vision("resnet18"), "resnet50": vision("resnet50"), "mobilenet_v2": vision("mobilenet_v2"),
          "mobilenet_v3_large": vision("mobilenet_v3_large"), "efficientnet_b0": vision("efficientnet_b0"),
          "convnext_tiny": vision("convnext_tiny"), "swin_t": vision("swin_t"), "vit_b_16": vision("vit_b_16"),
          "densenet121": vision("densenet121"), "deeplabv3": deeplab, "unet": unet,
          "bert": text("BertModel", "BertConfig"), "distilbert": text("DistilBertModel", "DistilBertConfig"),
          "gpt2": gpt2, "t5_encoder": text("T5EncoderModel", "T5Config"), "whisper_encoder": whisper, "vit_hf": vit}
