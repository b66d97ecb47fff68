#!/usr/bin/env python3
"""Computed speed of a step on an AMD GPU, without a card: what the emulator counts, put into a model of time.

A file of random weights with a model's true shapes, but of few layers and a small vocabulary, is run in the emulator of
the tests, its packets are recorded and counted (amd_sim_count), and layers and vocabulary are scaled to the model's. Of
a dispatch of many workgroups some are executed, spread over it (--groups), and their counts are scaled.

An op takes max(bytes / (0.95 * bandwidth), issue cycles of the vector ALU with those of WMMA, cycles of the LDS), each
over the whole device, and 2.5 us more where a barrier follows (docs/notes/amd-computed.md). So it knows nothing of
latency, of caches, and of waves that wait. A second figure gives ops of few waves no more SIMDs than these waves. Both
are bounds, no measurements.

Example: python bench/amd_computed.py qwen3-8b --build build/release --libllvm /usr/lib/x86_64-linux-gnu/libLLVM.so.22.1
A prompt: python bench/amd_computed.py qwen3-8b --prompt 2048 ...
"""

import argparse
import collections
import dataclasses
import itertools
import json
import os
import pathlib
import subprocess
import sys
import tempfile

import gguf_file
from model_shapes import SIZES, at, shape_metadata, shape_tensors
from synth_gguf import contents, layer_of, preset

# An R9700: 64 units of two SIMDs; GDDR6's peak.
BANDWIDTH, EFFICIENCY, UNITS, SIMDS, CLOCK, BARRIER = 640e9, 0.95, 64, 128, 2.3e9, 2.5e-6
LINE = 128
# Fixed16 is what F16 and BF16 become when a model is loaded.
BYTES_OF = {name: t.block_bytes / t.block_elems for name, t in gguf_file.TYPES.items()} | {"fixed16": 514 / 256}
ACTIVATION = 33 / 32  # bytes a value of what products take
# Of the file. A token chooses among experts, so their number counts in the router alone; a prompt has them all.
SMALL_VOCAB, FEW_EXPERTS = 2048, 64
ROUTER = ("product_f32_", "moe_gate_topk")
# The kernels by which a layer is found, by whether it is recurrent.
MIXERS = {False: "flash_attn", True: "ssm_delta_net"}


@dataclasses.dataclass
class Sum:
    n: float = 0
    bytes: float = 0
    weights: float = 0
    cycles: float = 0
    wmma: float = 0
    seconds: float = 0
    of_waves: float = 0  # seconds, where an op has no more SIMDs than waves
    barriers: float = 0


class FewLayers:
    """Layers of a model that differ from each other by kind or types, each kind's side by side and two at least."""

    def __init__(self, whole, types, prompt):
        self.whole, self.kind_of, self.prompt = whole, preset(types), prompt
        self.n_experts = whole.n_experts if prompt else min(whole.n_experts, FEW_EXPERTS)
        alike = collections.defaultdict(list)
        for layer in range(whole.n_layers):
            own = [t for t in shape_tensors(whole) if layer_of(t.name) == layer]
            formats = tuple(self.kind_of(t, whole) if t.values is None else "" for t in own)
            alike[self.is_recurrent(layer), tuple(t.shape for t in own), formats].append(layer)
        self.layers, self.times, self.kinds = [], [], []  # of the whole model; how many each stands for
        for kind in (True, False):
            groups = [layers for (recurrent, *_), layers in alike.items() if recurrent == kind]
            for layers in groups * 2 if len(groups) == 1 else groups:
                self.layers.append(layers[0])
                self.times.append(len(layers) / (2 if len(groups) == 1 else 1))
                self.kinds.append(kind)

    def is_recurrent(self, layer):
        return bool(self.whole.is_recurrent and self.whole.is_recurrent[layer])

    def shape(self):
        s, picked, context = self.whole, self.layers, max(512, 2 * self.prompt)
        by_layer = {
            name: tuple(at(getattr(s, name), layer) for layer in picked)
            for name in ("n_kv_heads", "ffn_dim", "is_recurrent", "is_sliding")
            if isinstance(getattr(s, name), tuple) and getattr(s, name)
        }
        sizes = dict(n_layers=len(picked), vocab_size=SMALL_VOCAB, context=context, n_experts=self.n_experts)
        return dataclasses.replace(s, **sizes, **by_layer)

    def format_of(self, tensor, _):
        """As in the whole model."""
        layer = layer_of(tensor.name)
        if layer >= 0:
            tensor = tensor._replace(name=tensor.name.replace(f".{layer}.", f".{self.layers[layer]}.", 1))
        return self.kind_of(tensor, self.whole)

    def parts_of(self, dispatches):
        """(those before the layers, [a layer's], those behind them). A layer begins with a norm, and layers of a kind
        have as many norms each as lie between their mixers."""
        norms = [i for i, d in enumerate(dispatches) if "norm" in d["kernel"]]
        mixers = [i for i, d in enumerate(dispatches) if d["kernel"].startswith(tuple(MIXERS.values()))]
        kinds = [dispatches[i]["kernel"].startswith(MIXERS[True]) for i in mixers]
        if kinds != self.kinds:
            raise ValueError(f"[amd_computed] layers are {kinds} by their dispatches, {self.kinds} by their tensors")
        begins = [0]
        for kind in kinds:
            first, second = [at for at, own in zip(mixers, kinds, strict=True) if own == kind][:2]
            begins.append(begins[-1] + sum(first < at < second for at in norms))
        begins = [norms[i] for i in begins]
        begins[-1] -= dispatches[begins[-1] - 1]["kernel"] == "gather_rows"  # of the rows whose logits are wanted
        layers = [dispatches[begin:end] for begin, end in itertools.pairwise(begins)]
        if not all(begin < at < end for at, (begin, end) in zip(mixers, itertools.pairwise(begins), strict=True)):
            raise ValueError(f"[amd_computed] layers begin at {begins}, their mixers are at {mixers}")
        return dispatches[: begins[0]], layers, dispatches[begins[-1] :]


def record(few, options, folder):
    """Counts of each dispatch of a step: of the second token, or of a prompt."""
    model, log = folder / "model.gguf", folder / "steps.log"
    shape = few.shape()
    gguf_file.write(model, shape_metadata(shape, "computed"), contents(shape, few.format_of))
    build = pathlib.Path(options.build)
    env = {**os.environ, "LIBLLVM": options.libllvm, "ZINC_RT_DEVICE_LIMIT": "36000"}
    # What is recorded is executed for what it leaves behind: the numbers of a step that packets and arguments have.
    preload = {
        **env,
        "LD_PRELOAD": str(build / "tests_cpp/amd_sim/libamd_sim.so"),
        "ZRT_AMD_SIM_TARGET": options.target,
        "ZRT_AMD_SIM_GROUPS": "8",
        "ZRT_AMD_SIM_VRAM": "12288",
    }
    command = [build / "bin/zinc-rt", "trace", model, "--tier", "t1", "--packets", log, "--out", folder / "trace.json"]
    command += ["--tenants", "1", "--requests", "1", "--max-slots", "1", "--max-context", shape.context]
    # A request's prompt begins with three tokens: its number.
    command += ["-n", "1", "-p", "." * (options.prompt - 3), "--chunk-cap", options.prompt] if options.prompt else []
    command += [] if options.prompt else ["-n", "2", "-p", "."]
    subprocess.run(list(map(str, command)), env=preload, check=True, stdout=subprocess.DEVNULL)
    count = [str(build / "tests_cpp/amd_sim/amd_sim_count"), str(log), str(options.groups)]
    lines = subprocess.run(count, env=env, check=True, capture_output=True, text=True).stdout.splitlines()
    return [json.loads(line) for line in lines]


def format_of(dispatch):
    """Of the weights of a product; None: it is no product."""
    if not dispatch["rows"]:
        return None
    return next(kind for kind in BYTES_OF if f"_{kind}_" in dispatch["kernel"] + "_")


def moved_by(dispatch, shape, n_tokens):
    """Bytes between memory and caches, of what is no product. A line that workgroups share comes once; where some were
    not executed, one cannot tell which they share, so of attention and writes of cells each operand counts once."""
    kv = max(shape.n_kv_heads) if isinstance(shape.n_kv_heads, tuple) else shape.n_kv_heads
    q, cells = 4 * shape.n_heads * shape.head_dim, 2 * kv * (2 * shape.head_dim + 2)
    by_operands = {
        "flash_attn": n_tokens * (2 * q + cells),
        "rope_kv_write": n_tokens * (2 * q + 2 * 4 * kv * shape.head_dim + cells),
    }
    by_lanes = dispatch["load_bytes"] + dispatch["store_bytes"] + dispatch["smem_bytes"]
    by_lines = LINE * (dispatch["own_lines"] + dispatch["shared_lines"])
    known = [moved for prefix, moved in by_operands.items() if n_tokens > 1 and dispatch["kernel"].startswith(prefix)]
    return min(by_lanes, by_lines, *known)


def add(sums, dispatch, times, shape, n_tokens, scale=1.0):
    """`scale`: how much larger the op is in the whole model."""
    kind, k, rows, n = format_of(dispatch), dispatch["k"], dispatch["rows"], dispatch["n"]
    weights = k * rows * dispatch["matrices"] * BYTES_OF[kind] * scale if kind else 0
    # Of a product each operand comes once.
    moved = weights + n * (k * ACTIVATION + 4 * rows * scale) if kind else moved_by(dispatch, shape, n_tokens) * scale
    cycles, wmma = dispatch["issue_cycles"] * scale, dispatch["wmma_cycles"] * scale
    by_memory = max(moved / (EFFICIENCY * BANDWIDTH), dispatch["lds_cycles"] * scale / (UNITS * CLOCK))
    s = sums.setdefault(dispatch["kernel"], Sum())
    s.n += times
    s.bytes += times * moved
    s.weights += times * weights
    s.cycles += times * cycles
    s.wmma += times * wmma
    s.seconds += times * max(by_memory, (cycles + wmma) / (SIMDS * CLOCK))
    s.of_waves += times * max(by_memory, (cycles + wmma) / (min(SIMDS, dispatch["waves"] * scale) * CLOCK))
    s.barriers += times * dispatch["barrier"]


def whole_step(few, dispatches):
    """Sums by kernel, of the whole model."""
    before, layers, behind = few.parts_of(dispatches)
    sums, shape, n_tokens = {}, few.whole, few.prompt or 1
    for dispatch in before:
        add(sums, dispatch, 1, shape, n_tokens)
    for layer, times in zip(layers, few.times, strict=True):
        for dispatch in layer:
            is_router = few.n_experts and dispatch["kernel"].startswith(ROUTER)
            add(sums, dispatch, times, shape, n_tokens, shape.n_experts / few.n_experts if is_router else 1.0)
    for dispatch in behind:
        is_wide = SMALL_VOCAB in (dispatch["rows"], *dispatch["symbols"])
        add(sums, dispatch, 1, shape, 1, shape.vocab_size / SMALL_VOCAB if is_wide else 1.0)
    return sums


def show(sums, step):
    print("computed, no card: counted in the emulator, put into a model of time that knows no latency\n")
    print(
        f"{'kernel':28} {'a step':>7} {'MB':>9} {'VALU a weight byte':>19} {'WMMA share':>11} {'op ms':>9} "
        f"{'by waves':>9} {'barriers ms':>12}"
    )
    for name, s in sorted(sums.items(), key=lambda item: -item[1].seconds - item[1].barriers * BARRIER):
        ratio = f"{s.cycles / s.weights:.3f}" if s.weights else "-"
        share = f"{s.wmma / (s.wmma + s.cycles):.2f}" if s.wmma else "-"
        print(
            f"{name:28} {s.n:7.0f} {s.bytes / 1e6:9.1f} {ratio:>19} {share:>11} {1e3 * s.seconds:9.3f} "
            f"{1e3 * s.of_waves:9.3f} {1e3 * s.barriers * BARRIER:12.3f}"
        )
    n, barriers = sum(s.n for s in sums.values()), sum(s.barriers for s in sums.values())
    weights = sum(s.weights for s in sums.values())
    print(f"\n{step}: {n:.0f} dispatches, {barriers:.0f} barriers, weights {weights / 1e9:.2f} GB")


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", choices=list(SIZES))
    parser.add_argument("--types", default="Q4_K_M")
    parser.add_argument("--prompt", type=int, default=0, help="a step of so many tokens, 64 or more; else of one")
    parser.add_argument("--groups", type=int, default=32, help="workgroups of a dispatch that are executed; 0: all")
    parser.add_argument("--target", default="gfx1201", choices=["gfx1201", "gfx1100"])
    parser.add_argument("--build", default="build/release", help="with zinc-rt, libamd_sim.so and amd_sim_count")
    parser.add_argument("--libllvm", default=os.environ.get("LIBLLVM", "libLLVM.so.22.1"))
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--least", type=float, default=0, help="tokens a second, computed; below them it fails")
    parser.add_argument("--most-valu", type=float, default=9, help="vector instructions a weight byte of any product")
    options = parser.parse_args(arguments)
    if 0 < options.prompt < 64:
        parser.error(f"a prompt has 64 tokens or more, {options.prompt} asked for")
    if options.prompt and options.groups and SIZES[options.model].n_experts:
        parser.error("which experts the tokens of a prompt choose takes all workgroups: --groups 0")
    few = FewLayers(SIZES[options.model], options.types, options.prompt)
    with tempfile.TemporaryDirectory() as folder:
        dispatches = record(few, options, pathlib.Path(folder))
    n_tokens = options.prompt or 1
    sums = whole_step(few, dispatches)
    barriers = sum(s.barriers for s in sums.values()) * BARRIER
    rate = n_tokens / (sum(s.seconds for s in sums.values()) + barriers)
    by_waves = n_tokens / (sum(s.of_waves for s in sums.values()) + barriers)
    valu = max((s.cycles + s.wmma) / s.weights / n_tokens for s in sums.values() if s.weights)
    step = f"{options.model} {options.types} on {options.target}, " + (
        f"a prompt of {options.prompt} tokens" if options.prompt else "a token"
    )
    if options.json:
        ops = {name: dataclasses.asdict(s) for name, s in sums.items()}
        print(json.dumps({"step": step, "tokens_per_s": rate, "tokens_per_s_by_waves": by_waves, "ops": ops}))
    else:
        show(sums, step)
        print(
            f"{1e3 * n_tokens / rate:.2f} ms: {rate:.1f} tokens/s computed, no card; {by_waves:.1f} where an op has no "
            "more SIMDs than waves"
        )
    if rate < options.least or valu > options.most_valu:
        print(
            f"[amd_computed] {rate:.1f} tokens/s, at least {options.least} wanted; {valu:.3f} vector "
            f"instructions a weight byte, at most {options.most_valu} wanted (computed, no card)",
            file=sys.stderr,
        )
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
