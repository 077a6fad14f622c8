# SPDX-License-Identifier: Apache-2.0
"""sinter.torch against eager PyTorch: random modules, dynamic sizes, weights that change, files, options, threads.

    python3 tests/python/torch/test_torch.py [TEST...]          SINTER_TEST_SCALE=full: more seeds

Without PyTorch it says so and ends with 77."""
import copy
import os
import pathlib
import sys
import threading
import warnings

sys.path[:0] = [str(pathlib.Path(__file__).resolve().parents[1])]
import rig                                                          # noqa: E402
from rig import FOLDER, raises                                      # noqa: E402

try:
    import torch
except ImportError:
    print("PyTorch is not installed")
    sys.exit(77)

import models                                                       # noqa: E402
import numpy as np                                                  # noqa: E402
from random_modules import TOLERANCE, RandomModule                  # noqa: E402

import sinter                                                       # noqa: E402
import sinter.torch                                                 # noqa: E402
from sinter.torch import Input, _backend, _partition                  # noqa: E402

MANY = 10 if os.environ.get("SINTER_TEST_SCALE") == "full" else 1
warnings.filterwarnings("ignore")


def same(expected, found, note=""):
    """Equal structure, element types, shapes and strides of dense tensors; close numbers."""
    assert type(expected) is type(found) or isinstance(expected, (list, tuple)), f"{note}: {type(found)}"
    if isinstance(expected, (list, tuple)):
        assert len(expected) == len(found), note
        for e, f in zip(expected, found):
            same(e, f, note)
    elif isinstance(expected, dict):
        assert list(expected) == list(found), note
        for key in expected:
            same(expected[key], found[key], note)
    elif isinstance(expected, torch.Tensor):
        assert expected.dtype == found.dtype, f"{note}: {found.dtype}, wanted {expected.dtype}"
        assert expected.shape == found.shape, f"{note}: {found.shape}, wanted {expected.shape}"
        tolerance = TOLERANCE.get(expected.dtype, 0)
        finite = expected[torch.isfinite(expected)].double() if expected.is_floating_point() else expected.new_zeros(0)
        scale = max(1.0, float(finite.abs().max())) if finite.numel() else 1.0
        torch.testing.assert_close(found, expected, rtol=tolerance, atol=tolerance * scale, equal_nan=True,
                                   msg=lambda m: f"{note}: {m}")
    else:
        assert expected == found, f"{note}: {found}, wanted {expected}"


def fast(**options):
    return dict({"tune": "off", "min_block_size": 1}, **options)


def compile_fast(module, **options):
    return torch.compile(module, backend="sinter", options=fast(**options))


def small_net():
    torch.manual_seed(1)
    return torch.nn.Sequential(torch.nn.Conv2d(3, 8, 3, padding=1), torch.nn.BatchNorm2d(8), torch.nn.ReLU(),
                               torch.nn.AdaptiveAvgPool2d(1), torch.nn.Flatten(), torch.nn.Linear(8, 10)).eval()


def test_random_modules():
    engines = 0
    for seed in range(40 * MANY):
        torch._dynamo.reset()
        _backend.compiled.clear()
        module = RandomModule(seed)
        inputs = module.inputs()
        theirs, ours = copy.deepcopy(inputs), copy.deepcopy(inputs)
        compiled = compile_fast(module)
        with torch.no_grad():
            expected = module(*theirs)
            for _ in range(2):
                found = compiled(*ours)
                same(expected, found, f"seed {seed}")
                same(theirs, ours, f"inputs of seed {seed}")
                theirs, ours = copy.deepcopy(inputs), copy.deepcopy(inputs)
                expected = module(*theirs)
        engines += sum(len(c.partitions) for c in _backend.compiled)
    assert engines > 20 * MANY, f"only {engines} engines were built"


def test_random_modules_of_dynamic_sizes():
    for seed in range(1000, 1000 + 15 * MANY):
        torch._dynamo.reset()
        module = RandomModule(seed, is_dynamic=True)
        module.writes_input = False
        compiled = torch.compile(module, backend="sinter", dynamic=True, options=fast())
        with torch.no_grad():
            for scale in (2, 3, 5):
                torch.manual_seed(seed)
                inputs = module.inputs(scale)
                same(module(*inputs), compiled(*inputs), f"seed {seed}, scale {scale}")


def test_exported_modules():
    for seed in range(2000, 2000 + 15 * MANY):
        module = RandomModule(seed)
        inputs = module.inputs()
        with torch.no_grad():
            expected = module(*copy.deepcopy(inputs))
        compiled = sinter.torch.compile(module, inputs=copy.deepcopy(inputs), **fast())
        same(expected, compiled(*copy.deepcopy(inputs)), f"seed {seed}")


def test_recurrent_layers():
    """Each stack of layers is an engine, for any batch; a projection stays in PyTorch. torch exports fixed lengths."""
    for seed in range(8 * MANY):
        torch.manual_seed(seed)
        pick = np.random.default_rng(seed)
        kind, free = (torch.nn.LSTM, torch.nn.GRU, torch.nn.RNN)[seed % 3], bool(seed & 1)
        options = dict(num_layers=int(pick.integers(1, 4)), bias=bool(pick.integers(4)), bidirectional=bool(pick.integers(2)),
                       batch_first=bool(pick.integers(2)))
        if kind is torch.nn.RNN:
            options["nonlinearity"] = ("tanh", "relu")[int(pick.integers(2))]
        module = kind(5, 6, **options).eval()
        axes = (0, 1) if options["batch_first"] else (1, 0)
        example, given = torch.randn(*[(3, 4)[a] for a in axes], 5), ()
        if pick.integers(2) and not free:
            state = torch.randn(options["num_layers"] * (1 + options["bidirectional"]), 3, 6)
            given = ((state, torch.randn_like(state)) if kind is torch.nn.LSTM else state,)
        dynamic = [{0 if options["batch_first"] else 1: torch.export.Dim("batch", min=1, max=64)}] if free else None
        program = torch.export.export(module, (example, *given), dynamic_shapes=dynamic)
        compiled = sinter.torch.compile(program, **fast(require_full_compilation=True))
        for sizes in ((3, 4), (1, 4), (9, 4)) if free else ((3, 4),):
            x = torch.randn(*[sizes[a] for a in axes], 5)
            with torch.no_grad():
                expected = module(x, *given)
                same(expected, compiled(x, *given), f"seed {seed}, {module}")
            assert torch.utils._pytree.tree_leaves(expected)[0].any()
    compiled = sinter.torch.compile(torch.nn.LSTM(5, 6, proj_size=2).eval(), inputs=[torch.randn(4, 3, 5)], **fast())
    assert "projections" in str(compiled.report)


def test_layers_of_attention():
    """In eval mode torch calls one operator for a whole layer."""
    nn, count = torch.nn, 5
    causal = nn.Transformer.generate_square_subsequent_mask(count)
    padding = torch.tensor([[False] * count, [False, False, True, True, True], [True] * count])
    x = torch.randn(3, count, 16)
    for options in ({}, {"norm_first": True}, {"activation": "gelu"}):
        encoder = nn.TransformerEncoder(nn.TransformerEncoderLayer(16, 2, 32, batch_first=True, **options), 2, enable_nested_tensor=False).eval()
        for keywords in ({}, {"mask": causal}, {"src_key_padding_mask": padding}, {"mask": causal, "src_key_padding_mask": padding}):
            torch._dynamo.reset()
            _backend.compiled.clear()
            with torch.no_grad():
                same(encoder(x, **keywords), compile_fast(encoder)(x, **keywords), f"{options} {list(keywords)}")
            assert all(not c.report.fallback for c in _backend.compiled), [str(c.report) for c in _backend.compiled]
    attention = nn.MultiheadAttention(16, 2, batch_first=True).eval()
    for keywords in ({}, {"need_weights": False}, {"average_attn_weights": False}, {"attn_mask": causal}, {"key_padding_mask": padding}):
        torch._dynamo.reset()
        with torch.no_grad():
            same(attention(x, x, x, **keywords), compile_fast(attention)(x, x, x, **keywords), str(list(keywords)))


def test_one_engine_serves_all_sizes():
    net = small_net()
    compiled = sinter.torch.compile(net, inputs=[Input(min_shape=(1, 3, 8, 8), opt_shape=(4, 3, 16, 16), max_shape=(8, 3, 32, 32))],
                                    **fast())
    before = _partition.builds
    with torch.no_grad():
        for batch, size in ((1, 8), (8, 32), (3, 17), (1, 8)):
            x = torch.randn(batch, 3, size, size + (size < 32))
            same(net(x), compiled(x), f"{x.shape}")
    assert _partition.builds == before
    raises(ValueError, compiled, torch.randn(9, 3, 8, 8), says="1 to 8")
    raises(ValueError, compiled, torch.randn(1, 4, 8, 8), says="is wanted")
    raises(TypeError, compiled, torch.randn(1, 3, 8, 8).double(), says="float32")


def test_free_sizes_grow():
    net = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.ReLU(), torch.nn.Linear(4, 2))
    torch._dynamo.reset()
    compiled = torch.compile(net, backend="sinter", dynamic=True, options=fast(growth=2))
    before = _partition.builds
    with torch.no_grad():
        for rows in (8, 16, 5, 17, 33, 300, 2):
            x = torch.randn(rows, 4)
            same(net(x), compiled(x), f"{rows} rows")
    assert _partition.builds - before == 3, _partition.builds - before         # 8 (to 16), 17 (to 34), 300


def test_same_sizes_build_once():
    net, x = small_net(), torch.randn(2, 3, 16, 16)
    torch._dynamo.reset()
    compiled = compile_fast(net)
    with torch.no_grad():
        compiled(x)
        before = _partition.builds
        for _ in range(3):
            same(net(x), compiled(torch.randn(2, 3, 16, 16).copy_(x)))
    assert _partition.builds == before


def change_weights(options, is_export):
    net, x = small_net(), torch.randn(2, 3, 16, 16)
    torch._dynamo.reset()
    compiled = sinter.torch.compile(net, inputs=[x], **options) if is_export else \
        torch.compile(net, backend="sinter", options=options)
    with torch.no_grad():
        same(net(x), compiled(x), "before")
        net[0].weight.mul_(3)
        same(net(x), compiled(x), "in place")
        net[5].bias.data = torch.randn(10)
        same(net(x), compiled(x), "new memory")
        net[1].running_mean.add_(1)
        same(net(x), compiled(x), "a buffer")
        net.load_state_dict({k: v * 2 for k, v in net.state_dict().items()})
        same(net(x), compiled(x), "load_state_dict")
        if not is_export:
            net[5].weight = torch.nn.Parameter(torch.randn(10, 8))
            same(net(x), compiled(x), "another parameter")
    optimizer = torch.optim.SGD(net.parameters(), 0.1)
    net(x).square().mean().backward()
    optimizer.step()
    with torch.no_grad():
        same(net(x), compiled(x), "a step of an optimiser")


def test_changed_weights_are_seen():
    for is_export in (False, True):
        change_weights(fast(), is_export)
    before = _partition.builds
    change_weights(fast(immutable_weights=False), True)
    assert _partition.builds - before == 1, "engines are refitted, not built again"
    change_weights(fast(immutable_weights=False), False)


def test_refit_module_weights():
    """Engines take the weights of another export, and are built again where that export is of another model."""
    from sinter.torch._upstream import refit_module_weights
    first, second, x = small_net(), small_net(), torch.randn(2, 3, 8, 8)
    with torch.no_grad():
        for parameter in second.parameters():
            parameter.uniform_(-1, 1)
    third = torch.nn.Sequential(*list(second.children())[:-1]).eval()
    for options, model, built in (({"immutable_weights": False}, second, 0), ({}, second, 1), ({"immutable_weights": False}, third, 1)):
        compiled, before = sinter.torch.compile(first, inputs=[x], **fast(**options)), _partition.builds
        refitted = refit_module_weights(compiled, torch.export.export(model, (x,)), arg_inputs=(x,), verify_output=True)
        assert _partition.builds - before == built
        with torch.no_grad():
            same(model(x), refitted(x), f"{options}")
            same(first(x), compiled(x), "the compiled model stays as it was")


def test_a_buffer_that_changes_with_each_call_is_an_input():
    net, x = torch.nn.Linear(4, 4), torch.randn(2, 4)
    net.register_buffer("shift", torch.zeros(4))
    net.forward = lambda x: torch.relu(torch.nn.functional.linear(x, net.weight, net.bias) + net.shift)
    compiled = sinter.torch.compile(net, inputs=[x], **fast())
    before = _partition.builds
    with torch.no_grad():
        for _ in range(8):
            net.shift.add_(1)
            same(net(x), compiled(x))
    assert _partition.builds - before == 2, _partition.builds - before


def test_parameters_of_inference_mode():
    """Their changes cannot be counted, so engines take them as inputs."""
    with torch.inference_mode():
        net, x = small_net(), torch.randn(2, 3, 16, 16)
        torch._dynamo.reset()
        compiled = compile_fast(net)
        same(net(x), compiled(x))
        net[0].weight.mul_(3)
        same(net(x), compiled(x))


def test_gradients():
    net, x = small_net(), torch.randn(2, 3, 16, 16)
    torch._dynamo.reset()
    compiled = compile_fast(net)
    compiled(x).sum().backward()
    wanted = [p.grad.clone() for p in net.parameters()]
    net.zero_grad()
    net(x).sum().backward()
    same([p.grad for p in net.parameters()], wanted)
    torch._dynamo.reset()
    assert not compile_fast(net, inference=True)(x).requires_grad
    exported = sinter.torch.compile(net, inputs=[x], **fast())
    raises(RuntimeError, exported, x.clone().requires_grad_(), says="requires gradients")


class Odd(torch.nn.Module):
    """What is left to PyTorch, between what engines compute; state; odd outputs."""

    def __init__(self):
        super().__init__()
        self.a, self.b = torch.nn.Linear(4, 4), torch.nn.Linear(4, 4)
        self.register_buffer("calls", torch.zeros((), dtype=torch.int64))

    def forward(self, x, scale=1.0):
        self.calls += 1
        y = torch.relu(self.a(x)) * scale + 1
        y = torch.special.bessel_j1(y)
        y = torch.sigmoid(self.b(y) - 1)
        return {"y": y, "same": y, "view": y.t(), "none": None, "rows": x.shape[0], "calls": self.calls.clone(), "input": x}


def test_fallback_and_report():
    odd, x = Odd().eval(), torch.randn(3, 4)
    compiled = sinter.torch.compile(odd, inputs=[x], **fast())
    assert len(compiled.report.partitions) == 2, str(compiled.report)
    assert "bessel_j1" in str(compiled.report)
    found = compiled(x)
    odd.calls.fill_(0)
    with torch.no_grad():
        same(odd(x), found)
    assert found["view"].stride() == (1, 4)
    torch._dynamo.reset()
    compiled = compile_fast(odd)
    with torch.no_grad():
        odd.calls.fill_(0)
        expected = odd(x, 2.0)
        odd.calls.fill_(0)
        same(expected, compiled(x, 2.0))
    executed = sinter.torch.compile(odd, inputs=[x], torch_executed_ops={torch.ops.aten.relu.default, "aten.sigmoid"}, **fast())
    assert any("torch_executed_ops" in r for _, r in executed.report.fallback.values())
    raises(Exception, sinter.torch.compile, odd, inputs=[x], require_full_compilation=True, says="bessel_j1", **fast())
    assert not sinter.torch.compile(odd, inputs=[x], dryrun=True).graph.partitions


def test_attention_of_gpus():
    """What torch makes of attention on a GPU, traced without one."""
    from sinter.torch._lowering import why_not
    from torch.fx.experimental.proxy_tensor import make_fx
    aten, q = torch.ops.aten, torch.empty(1, 4, 8, 16, device="meta", dtype=torch.float16)
    for op, more in ((aten._scaled_dot_product_cudnn_attention, (None, False)), (aten._scaled_dot_product_flash_attention, ()),
                     (aten._scaled_dot_product_efficient_attention, (None, False))):
        graph = make_fx(lambda q, k, v: op(q, k, v, *more)[0])(q, q, q).graph
        graph.eliminate_dead_code()
        reasons = [why_not(n) for n in graph.nodes if n.op == "call_function"]
        assert len(reasons) == 2 and not any(reasons), (op, reasons)
        graph = make_fx(lambda q, k, v: op(q, k, v, *more)[1])(q, q, q).graph
        graph.eliminate_dead_code()
        assert any("output 1" in (why_not(n) or "") for n in graph.nodes if n.op == "call_function"), op


def test_constants_of_another_device():
    """Numbers that a model for a GPU makes on the CPU, traced without a GPU: the engine has them, unless PyTorch wants them, too."""
    from sinter.torch._graph import device_of, reasons_of
    from sinter.torch._settings import Settings
    from torch._subclasses.fake_tensor import FakeTensorMode
    from torch.fx.experimental.proxy_tensor import make_fx
    aten = torch.ops.aten

    def masked(x):
        mask = aten.zeros(x.shape, device=x.device)
        three = aten.lift_fresh_copy(torch.tensor(3.0))
        mask = aten.slice_scatter(mask, aten.copy(aten.slice(mask, 0, 0, 2), three), 0, 0, 2)
        return x + mask + aten.arange.start_step(0, x.shape[1], 1, device="cpu").to(x.device)

    def given(x):
        rows = aten.arange.start_step(0, x.shape[1], 1, device="cpu") * 2
        return x * 2 + rows.to(x.device), rows

    def odd(x):
        rows = aten.arange.start_step(0, x.shape[1], 1, device="cpu") + 1
        return x * 2 + rows.to(x.device) + aten.special_bessel_j1(rows).to(x.device)

    for function, stays in ((masked, []), (given, ["_to_copy", "arange", "mul"]),
                            (odd, ["_to_copy", "_to_copy", "add", "arange", "special_bessel_j1"])):
        with FakeTensorMode(allow_non_fake_inputs=True):
            graph = make_fx(function)(torch.empty(4, 4, device="cuda")).graph
        reasons = reasons_of(graph, Settings(), device_of(graph))
        found = sorted(n.target._opname for n in graph.nodes if n.name in reasons)
        assert found == stays, (function.__name__, reasons)
        assert all("on cpu" in r or "no conversion" in r for r in reasons.values()), reasons


def test_save_and_load():
    odd, x = Odd().eval(), torch.randn(3, 4)
    compiled = sinter.torch.compile(odd, inputs=[Input(min_shape=(1, 4), opt_shape=(3, 4), max_shape=(9, 4))], **fast())
    path = FOLDER / "odd.sinter_torch"
    sinter.torch.save(compiled, path)
    before = _partition.builds
    loaded = sinter.torch.load(path)
    assert _partition.builds == before and len(loaded.graph.partitions) == 2
    for rows in (1, 3, 9):
        x = torch.randn(rows, 4)
        odd.calls.fill_(0)
        loaded.names["calls"].fill_(0)
        with torch.no_grad():
            same(odd(x), loaded(x), f"{rows} rows")
    raises(ValueError, sinter.torch.save, compiled, path, output_format="torchscript", says="exported_program")
    raises(TypeError, sinter.torch.save, odd, path, says="no compiled model")


def test_engine_files():
    net, x = small_net(), torch.randn(2, 3, 16, 16)
    data = sinter.torch.convert_method_to_trt_engine(net, inputs=[Input((2, 3, 16, 16))], tune="off")
    path = FOLDER / "net.sinter"
    path.write_bytes(data)
    assert "conv" in rig.command("inspect", path)
    engine = sinter.load(path)
    assert {"0.weight", "5.bias"} <= {w.name for w in engine.weights()}
    with engine.context() as context:
        found = list(context.run([x.numpy()]).values())[0]
    assert np.allclose(found, net(x).detach().numpy(), atol=1e-5)
    program = torch.export.export(net, (x,))
    assert sinter.torch.convert_exported_program_to_engine(program, tune="off") == \
        sinter.torch.convert_exported_program_to_engine(program, tune="off")
    raises(Exception, sinter.torch.convert_method_to_trt_engine, torch.special.bessel_j1, inputs=[torch.randn(3, 4)],
           says="bessel_j1")
    raises(NotImplementedError, sinter.torch.convert_method_to_trt_engine, Odd().eval(), inputs=[torch.randn(3, 4)], says="writes")


def test_threads():
    net = small_net()
    inputs = [torch.randn(2, 3, 16, 16) for _ in range(4)]
    compiled = sinter.torch.compile(net, inputs=[inputs[0]], **fast())
    with torch.no_grad():
        expected = [net(x) for x in inputs]
    failures = []

    def run(k):
        try:
            for _ in range(30):
                same(expected[k], compiled(inputs[k]))
        except Exception as e:
            failures.append(e)

    threads = [threading.Thread(target=run, args=(k,)) for k in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not failures, failures[0]


def test_names_and_options():
    from torch._dynamo.backends import registry
    assert "tensorrt" not in registry._COMPILER_FNS
    sinter.torch.install_as_tensorrt()
    net, x = small_net(), torch.randn(1, 3, 16, 16)
    for name in ("tensorrt", "torch_tensorrt"):
        torch._dynamo.reset()
        found = torch.compile(net, backend=name, options={"truncate_long_and_double": True, "precision": torch.float32,
                                                          "min_block_size": 1, "optimization_level": 0})(x)
        assert not found.requires_grad
        same(net(x).detach(), found)
    raises(ValueError, sinter.torch.Settings.make, {"no_such_option": 1}, says="no_such_option")
    raises(ValueError, sinter.torch.Settings.make, enabled_precisions={torch.int32}, says="int32")
    raises(ValueError, sinter.torch.compile, net, ir="fx", inputs=[x], says="'fx'")
    raises(ValueError, Input, (1, 2), min_shape=(1, 2), says="min_shape")
    raises(ValueError, Input, min_shape=(3,), opt_shape=(2,), max_shape=(4,), says="does not hold")


class Branching(torch.nn.Module):
    """Scripting keeps the branch, which tracing does not."""

    def __init__(self):
        super().__init__()
        self.first, self.second = torch.nn.Linear(6, 6), torch.nn.Linear(6, 6)

    def forward(self, x, flag: bool):
        x = torch.relu(self.first(x))
        for _ in range(3):
            x = x + 0.5
        return (self.second(x) if flag else x * 2), x.sum(1)


def test_torchscript():
    """Scripted and traced modules, of fixed sizes, against what they give themselves."""
    made = 0
    for seed in range(25 * MANY):
        module = RandomModule(seed)
        inputs = module.inputs()
        try:
            with torch.no_grad():
                script = torch.jit.trace(module, copy.deepcopy(inputs), check_trace=False)
                expected = script(*copy.deepcopy(inputs))
        except (RuntimeError, TypeError, ValueError):
            continue                                                # what TorchScript does not trace
        try:
            compiled = sinter.torch.compile(script, ir="ts", inputs=list(copy.deepcopy(inputs)), **fast())
        except NotImplementedError as e:
            assert "TorchScript" in str(e), e                       # what PyTorch cannot convert
            continue
        same(expected, compiled(*copy.deepcopy(inputs)), f"seed {seed}")
        made += 1
    assert made >= 5 * MANY, made
    net, x = small_net(), torch.randn(2, 3, 16, 16)
    for script in (torch.jit.script(net), torch.jit.trace(net, x), net):
        for ir in ("ts", "torchscript", "default"):
            compiled = sinter.torch.compile(script, ir=ir, inputs=[x], tune="off")
            assert len(compiled.report.partitions) == 1
            same(net(x).detach(), compiled(x))
            if script is not net:
                raises(ValueError, compiled, torch.randn(3, 3, 16, 16), says="(2, 3, 16, 16) is wanted")
    net, x = Branching().eval(), torch.randn(4, 6)
    for flag in (True, False):
        compiled = sinter.torch.compile(torch.jit.script(net), ir="ts", inputs=[x, flag], **fast())
        same([v.detach() for v in net(x, flag)], list(compiled(x, flag)))
    raises(ValueError, sinter.torch.compile, torch.jit.script(small_net()), ir="ts",
           inputs=[Input(min_shape=(1, 3, 16, 16), opt_shape=(2, 3, 16, 16), max_shape=(4, 3, 16, 16))], says="fixed")
    raises(ValueError, sinter.torch.compile, torch.jit.script(small_net()), ir="torch_compile", says="ScriptModule")
    raises(ValueError, sinter.torch.save, compiled, FOLDER / "x.ts", output_format="torchscript", says="exported_program")


def test_benchmark():
    """Both times are there, in turns; the difference is that of the outputs; what is compiled already is not compiled again."""
    import contextlib
    import io
    net, x = small_net(), torch.randn(2, 3, 16, 16)
    said = io.StringIO()
    with contextlib.redirect_stdout(said):
        result = sinter.torch.benchmark(net, [x], rounds=3, seconds=0.01, tune="off")
    lines = said.getvalue()
    assert "PyTorch" in lines and "sinter" in lines and f"{result.ratio:.2f}x" in lines and str(result) + "\n" == lines
    assert len(result.torch.times) == len(result.sinter.times) == 3 and result.torch.median > 0 and result.sinter.median > 0
    assert result.ratio == result.torch.median / result.sinter.median and result.engines == 1 and not result.fallback
    with torch.no_grad():
        compiled = sinter.torch.compile(net, inputs=[x], tune="off")
        want, got = net(x).double(), compiled(x).double()
    assert abs(result.difference - float((want - got).norm() / want.norm())) < 1e-9 and result.difference < 1e-5
    again = sinter.torch.benchmark(net, (x,), compiled=compiled, rounds=2, seconds=0.01, quiet=True)
    assert again.compile_seconds == 0 and again.engines == 1
    words = sinter.torch.benchmark(lambda x, scale: x * scale + 1, [x], kwarg_inputs={"scale": torch.tensor(2.0)}, rounds=1, seconds=0.01,
                                   quiet=True, **fast())
    assert words.difference < 1e-6
    wrong = sinter.torch.benchmark(net, (x,), compiled=lambda x: net(x) + 1, rounds=1, seconds=0.01, quiet=True)
    assert wrong.difference > 0.01 and wrong.engines is None
    raises(ValueError, sinter.torch.benchmark, net, [x], rounds=0, says="rounds")


def test_models():
    """One convolutional net and one transformer of the usual sizes: all of each in one engine."""
    for name, make in (("unet", models.unet), ("gpt2", lambda: models.text(
            "GPT2LMHeadModel", "GPT2Config", 12, "logits", use_cache=False, n_layer=2, n_embd=64, n_head=4, vocab_size=99)())):
        try:
            model, inputs = make()
        except ImportError as e:
            print(f"     {name}: {e}")
            continue
        compiled = sinter.torch.compile(model, inputs=list(inputs), tune="off")
        assert len(compiled.report.partitions) == 1 and not compiled.report.fallback, f"{name}: {compiled.report}"
        with torch.no_grad():
            same(model(*inputs), compiled(*inputs), name)


if __name__ == "__main__":
    rig.main(__name__)
