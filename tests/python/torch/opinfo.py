# SPDX-License-Identifier: Apache-2.0
"""Operators one by one, with the samples of torch's own tests (OpInfo), against eager. Each sample is traced, and what has a
conversion runs in engines.

    python3 tests/python/torch/opinfo.py [OPERATOR...] [--dtypes float32,int64] [--samples N] [--verbose]

Prints for each operator how many samples were right, wrong, refused or without an engine; the exit code says whether any
was wrong."""
import argparse
import collections
import pathlib
import sys
import warnings

sys.path[:0] = [str(pathlib.Path(__file__).resolve().parents[1])]
import rig                                                          # noqa: E402,F401  the library of this build
import torch                                                        # noqa: E402
from torch._functorch.aot_autograd import aot_function, make_boxed_func  # noqa: E402
from torch.testing._internal.common_methods_invocations import op_db  # noqa: E402
from torch.utils import _pytree as pytree                           # noqa: E402

from sinter.torch._backend import decompositions                    # noqa: E402
from sinter.torch._graph import CompiledGraph                       # noqa: E402
from sinter.torch._settings import Settings                         # noqa: E402

warnings.filterwarnings("ignore")
TOLERANCE = {torch.float16: (4e-3, 4e-3), torch.bfloat16: (3e-2, 3e-2), torch.float32: (2e-5, 2e-5), torch.float64: (1e-9, 1e-9)}
# The values of these are not defined, or random.
SKIPPED = ("empty", "new_empty", "empty_like", "empty_strided", "empty_permuted", "new_empty_strided", "rand", "dropout", "normal",
           "bernoulli", "multinomial", "uniform", "exponential", "geometric", "cauchy", "log_normal", "poisson", "rrelu",
           "random_", "linalg", "svd", "eig", "lobpcg", "pca_lowrank", "fft", "sparse", "nested", "triton", "jiterator")


def compiled_by_aot(function, name, made):
    """The function as torch.compile has it compiled: functional, without views of inputs."""
    def inference(module, inputs):
        made.append(CompiledGraph(module, (), Settings(min_block_size=1, tune="off"), name))
        return make_boxed_func(made[-1])

    return aot_function(function, fw_compiler=inference, inference_compiler=inference, decompositions=decompositions())


def close(expected, found):
    expected, found = pytree.tree_leaves(expected), pytree.tree_leaves(found)
    assert len(expected) == len(found), f"{len(found)} results, {len(expected)} wanted"
    for e, f in zip(expected, found):
        if not isinstance(e, torch.Tensor):
            assert e == f, f"{f}, wanted {e}"
            continue
        rtol, atol = TOLERANCE.get(e.dtype, (0, 0))
        # Sums of many elements, and functions near zero: the tolerance is relative to the largest element, too.
        finite = e[torch.isfinite(e)].double() if e.dtype.is_floating_point else e.new_zeros(0)
        scale = float(finite.abs().max()) if finite.numel() else 0
        torch.testing.assert_close(f, e, rtol=rtol, atol=atol * max(1, scale), equal_nan=True)


UNORDERED = {"sort": lambda given, result: result[0], "topk": lambda given, result: result[0],
             "argsort": lambda given, result: result.sort()[0]}


def is_more_exact(function, tensors, found):
    """Whether results of 16 bits are those of the same computation in f32, which eager rounds after each operator."""
    if not any(t.dtype in (torch.float16, torch.bfloat16) for t in tensors):
        return False
    wide = [t.float() if t.dtype in (torch.float16, torch.bfloat16) else t.clone() for t in tensors]
    narrow = [f.dtype for f in pytree.tree_leaves(found)]
    try:
        expected = [e.to(dtype) for e, dtype in zip(pytree.tree_leaves(function(*wide)), narrow)]
        close(expected, found)
        return True
    except Exception:
        return False


def try_sample(op, sample, counts, notes):
    leaves, spec = pytree.tree_flatten((sample.input, sample.args, sample.kwargs))
    places = [i for i, v in enumerate(leaves) if isinstance(v, torch.Tensor)]
    tensors = [leaves[i].detach() for i in places]

    def function(*given):
        filled = list(leaves)
        for i, v in zip(places, given):
            filled[i] = v
        input_, args, keywords = pytree.tree_unflatten(filled, spec)
        return op(input_, *args, **keywords)

    made = []
    try:
        expected = function(*[t.clone() for t in tensors])
    except Exception:
        return
    compiled = compiled_by_aot(function, op.name, made)
    try:
        found = compiled(*[t.clone() for t in tensors])
    except Exception as e:
        if not made:
            counts["not traced"] += 1
            return
        counts["wrong"] += 1
        notes.append(("wrong", f"{type(e).__name__}: {str(e)[:300]}"))
        return
    compiled = made[-1]
    for node, (name, reason) in compiled.report.fallback.items():
        notes.append(("fallback", f"{name}: {reason[:160]}"))
    try:
        if op.name in UNORDERED:                    # the order of equal elements is anybody's
            expected, found = UNORDERED[op.name](tensors, expected), UNORDERED[op.name](tensors, found)
        close(expected, found)
    except AssertionError as e:
        if is_more_exact(function, tensors, found):
            counts["more exact"] += 1
            return
        text = " ".join(str(e).split())[:200]
        counts["wrong"] += 1
        shapes = [(tuple(t.shape), str(t.dtype)[6:]) for t in tensors]
        notes.append(("wrong", f"{text} | {shapes} {sample.args!r:.100} {sample.kwargs!r:.100}"))
        return
    counts["right" if compiled.partitions else "no engine"] += 1
    if compiled.partitions and compiled.report.fallback:
        counts["mixed"] += 1


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("operators", nargs="*")
    parser.add_argument("--dtypes", default="float32,int64,bool,float16")
    parser.add_argument("--samples", type=int, default=6)
    parser.add_argument("--verbose", action="store_true")
    parser.add_argument("--part", default="0/1", help="I/N: every N-th operator")
    options = parser.parse_args()
    part, parts = map(int, options.part.split("/"))
    torch.manual_seed(0)
    total, why = collections.Counter(), collections.Counter()
    wrong = []
    for number, op in enumerate(sorted(op_db, key=lambda o: o.name)):
        if options.operators and op.name not in options.operators or number % parts != part:
            continue
        if not options.operators and any(s in op.name for s in SKIPPED):
            continue
        counts, notes = collections.Counter(), []
        for text in options.dtypes.split(","):
            dtype = getattr(torch, text)
            if dtype not in op.supported_dtypes("cpu"):
                continue
            try:
                samples = list(op.sample_inputs("cpu", dtype, requires_grad=False))
            except Exception:
                continue
            step = max(1, len(samples) // options.samples)
            for sample in samples[::step][:options.samples]:
                if sample.kwargs.get("dropout_p"):
                    continue
                with torch.no_grad():
                    try_sample(op, sample, counts, notes)
        total.update(counts)
        why.update(text for kind, text in notes if kind == "fallback")
        if counts["wrong"] or options.verbose or options.operators:
            print(op.name, dict(counts), flush=True)
            seen = set()
            for kind, text in notes:
                if (kind == "wrong" or options.operators or options.verbose) and text not in seen:
                    seen.add(text)
                    print(f"    {kind}: {text}", flush=True)
        if counts["wrong"]:
            wrong.append(op.name)
    for text, count in why.most_common(60):
        print(f"{count:5} {text}")
    print("summary:", dict(total), "wrong:", wrong)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
