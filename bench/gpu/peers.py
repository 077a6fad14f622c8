# SPDX-License-Identifier: Apache-2.0
"""The same networks in PyTorch: fp16, channels-last images, one CUDA graph."""
import torch

from run_clock import clock


def network(name):
    import torchvision.models as vision
    name, _, tail = name.partition("_b") if "_b32" in name or "_b128" in name else (name, "", "")
    batch = int(tail) if tail else 1

    def image(size):
        return (torch.randn(batch, 3, size, size, device="cuda", dtype=torch.half)
                .to(memory_format=torch.channels_last),)
    if name == "resnet50":
        return vision.resnet50(), image(224)
    if name == "vit_b_16":
        return vision.vit_b_16(), image(224)
    if name == "efficientnet_b4":
        return vision.efficientnet_b4(), image(380)
    if name == "mobilenet_v3_large":
        return vision.mobilenet_v3_large(), image(224)
    if name.startswith("bert_s"):
        from transformers import BertConfig, BertModel
        config, length = BertConfig(), int(name[6:])
        config._attn_implementation = "sdpa"
        ids = torch.randint(0, 30000, (1, length), device="cuda")
        return BertModel(config), (ids, torch.ones_like(ids))
    return None, ()


def graph_ms(name):
    """Milliseconds of a replay; NaN where PyTorch's packages have no such network."""
    module, inputs = network(name)
    if module is None:
        return float("nan")
    torch.backends.cudnn.benchmark = True
    module = module.cuda().eval().half()
    if inputs[0].dim() == 4:
        module = module.to(memory_format=torch.channels_last)
    with torch.inference_mode():
        stream = torch.cuda.Stream()
        with torch.cuda.stream(stream):
            for _ in range(3):
                module(*inputs)
        torch.cuda.synchronize()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            module(*inputs)
        return clock(graph.replay)
