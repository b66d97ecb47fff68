#!/usr/bin/env python3
"""Computed speed of a decode step on an AMD GPU, without a card: what the emulator counts, put into a model of time.

A file of random weights with a model's true shapes, but of two layers and a small vocabulary, is run in the emulator of
the tests, its packets are recorded and counted (amd_sim_count), and layers and vocabulary are scaled to the model's.

An op takes max(bytes / (0.95 * bandwidth), issue cycles of the vector ALU, cycles of WMMA), each over the whole device,
and 2.5 us more where a barrier follows (docs/notes/amd-computed.md). So it knows nothing of latency, of caches, and of
waves that wait: ops of few waves take longer on a card. It is a bound, no measurement.

Example: python bench/amd_computed.py qwen3-8b --build build/release --libllvm /usr/lib/x86_64-linux-gnu/libLLVM.so.22.1
"""

import argparse
import dataclasses
import json
import os
import pathlib
import subprocess
import sys
import tempfile

import gguf_file
from model_shapes import SIZES, shape_metadata
from synth_gguf import contents, preset

# An R9700: 64 units of two SIMDs; GDDR6's peak.
BANDWIDTH, EFFICIENCY, SIMDS, CLOCK, BARRIER = 640e9, 0.95, 128, 2.3e9, 2.5e-6
BYTES_OF = {
    "q4_0": 18 / 32,
    "q8_0": 34 / 32,
    "q4_k": 144 / 256,
    "q5_k": 176 / 256,
    "q6_k": 210 / 256,
    "f16": 2,
    "bf16": 2,
}
SMALL_VOCAB, LAYERS = 2048, 2


@dataclasses.dataclass
class Sum:
    n: float = 0
    bytes: float = 0
    weights: float = 0
    cycles: float = 0
    wmma: float = 0
    seconds: float = 0
    barriers: float = 0


def record(shape, options, folder):
    """Counts of each dispatch of a decode step."""
    model, log = folder / "model.gguf", folder / "steps.log"
    gguf_file.write(model, shape_metadata(shape, "computed"), contents(shape, preset(options.types)))
    build = pathlib.Path(options.build)
    env = {**os.environ, "LIBLLVM": options.libllvm, "ZINC_RT_DEVICE_LIMIT": "36000"}
    preload = {
        **env,
        "LD_PRELOAD": str(build / "tests_cpp/amd_sim/libamd_sim.so"),
        "ZRT_AMD_SIM_TARGET": options.target,
    }
    command = [build / "bin/zinc-rt", "trace", model, "--tier", "t1", "--packets", log, "--out", folder / "trace.json"]
    command += ["--tenants", "1", "--requests", "1", "-n", "2", "-p", ".", "--max-slots", "1", "--max-context", "512"]
    subprocess.run(list(map(str, command)), env=preload, check=True, stdout=subprocess.DEVNULL)
    count = [str(build / "tests_cpp/amd_sim/amd_sim_count"), str(log)]
    lines = subprocess.run(count, env=env, check=True, capture_output=True, text=True).stdout.splitlines()
    return [json.loads(line) for line in lines]


def format_of(dispatch):
    """Of the weights of a product; None: it is no product."""
    if not dispatch["rows"]:
        return None
    return next(kind for kind in BYTES_OF if f"_{kind}_" in dispatch["kernel"] + "_")


def parts_of(dispatches):
    """(before the layers, [a layer's], behind them), by where attention stands."""
    attention = [i for i, d in enumerate(dispatches) if d["kernel"].startswith("flash_attn")]
    if len(attention) != LAYERS:
        raise ValueError(f"[amd_computed] {len(attention)} dispatches of attention, {LAYERS} wanted")
    begin, length = 1, attention[1] - attention[0]
    layers = [dispatches[begin + i * length : begin + (i + 1) * length] for i in range(LAYERS)]
    return dispatches[:begin], layers, dispatches[begin + LAYERS * length :]


def add(sums, dispatch, times, scale=1.0):
    """`scale`: how much larger the op is in the whole model."""
    kind = format_of(dispatch)
    weights = dispatch["k"] * dispatch["rows"] * BYTES_OF[kind] * scale if kind else 0
    moved = weights or (dispatch["load_bytes"] + dispatch["store_bytes"] + dispatch["smem_bytes"]) * scale
    cycles, wmma = dispatch["issue_cycles"] * scale, dispatch["wmma_cycles"] * scale
    seconds = max(moved / (EFFICIENCY * BANDWIDTH), (cycles + wmma) / (SIMDS * CLOCK))
    s = sums.setdefault(dispatch["kernel"], Sum())
    s.n += times
    s.bytes += times * moved
    s.weights += times * weights
    s.cycles += times * cycles
    s.wmma += times * wmma
    s.seconds += times * seconds
    s.barriers += times * dispatch["barrier"]


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", choices=[name for name, shape in SIZES.items() if not shape.n_experts])
    parser.add_argument("--types", default="Q4_K_M")
    parser.add_argument("--target", default="gfx1201", choices=["gfx1201", "gfx1100"])
    parser.add_argument("--build", default="build/release", help="with zinc-rt, libamd_sim.so and amd_sim_count")
    parser.add_argument("--libllvm", default=os.environ.get("LIBLLVM", "libLLVM.so.22.1"))
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--least", type=float, default=0, help="tokens a second, computed; below them it fails")
    parser.add_argument("--most-valu", type=float, default=9, help="vector instructions a weight byte of any product")
    options = parser.parse_args(arguments)
    whole = SIZES[options.model]
    small = dataclasses.replace(whole, n_layers=LAYERS, vocab_size=SMALL_VOCAB, context=512)
    with tempfile.TemporaryDirectory() as folder:
        dispatches = record(small, options, pathlib.Path(folder))
    before, layers, behind = parts_of(dispatches)
    sums = {}
    for dispatch in before:
        add(sums, dispatch, 1)
    for layer in layers:  # one has products of more bits, as half of the layers of Q4_K_M have
        for dispatch in layer:
            add(sums, dispatch, whole.n_layers / LAYERS)
    for dispatch in behind:
        is_wide = SMALL_VOCAB in (dispatch["rows"], *dispatch["symbols"])
        add(sums, dispatch, 1, whole.vocab_size / SMALL_VOCAB if is_wide else 1.0)
    total = sum(s.seconds + s.barriers * BARRIER for s in sums.values())
    weights = sum(s.weights for s in sums.values())
    valu = max((s.cycles + s.wmma) / s.weights for s in sums.values() if s.weights)
    if 1 / total < options.least or valu > options.most_valu:
        print(
            f"[amd_computed] {1 / total:.1f} tokens/s, at least {options.least} wanted; {valu:.3f} vector "
            f"instructions a weight byte, at most {options.most_valu} wanted (computed, no card)",
            file=sys.stderr,
        )
        return 1
    if options.json:
        rows = {name: dataclasses.asdict(s) for name, s in sums.items()}
        print(json.dumps({"model": options.model, "types": options.types, "tokens_per_s": 1 / total, "ops": rows}))
        return 0
    print("computed, no card: counted in the emulator, put into a model of time that knows no latency\n")
    print(f"{'kernel':28} {'a token':>8} {'MB':>9} {'VALU a weight byte':>19} {'op ms':>8} {'barriers ms':>12}")
    for name, s in sorted(sums.items(), key=lambda item: -item[1].seconds - item[1].barriers * BARRIER):
        ratio = f"{s.cycles / s.weights:.3f}" if s.weights else "-"
        print(
            f"{name:28} {s.n:8.0f} {s.bytes / 1e6:9.1f} {ratio:>19} {1e3 * s.seconds:8.3f} "
            f"{1e3 * s.barriers * BARRIER:12.3f}"
        )
    n, barriers = sum(s.n for s in sums.values()), sum(s.barriers for s in sums.values())
    print(f"\n{options.model} {options.types} on {options.target}: {n:.0f} dispatches, {barriers:.0f} barriers a token")
    print(f"weights {weights / 1e9:.2f} GB, a step {1e3 * total:.2f} ms: {1 / total:.1f} tokens/s computed, no card")
    return 0


if __name__ == "__main__":
    sys.exit(main())
