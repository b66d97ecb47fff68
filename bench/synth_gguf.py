"""Writes GGUF files of random weights: true shapes of known models for speed and memory, tiny ones of every family.

Example: python bench/synth_gguf.py qwen3-4b --types Q4_K_M -o qwen3-4b-random.gguf

Such a file has the size, the tensors and the arithmetic of the real one, and talks nonsense. Weights are streamed to
disk; the same arguments give the same bytes.
"""

import argparse
import re
import sys
import time
import zlib

import numpy as np

import gguf_file
from gguf_file import TYPES
from model_shapes import SIZES, TINY, Shape, Tensor, shape_metadata, shape_tensors, tiny
from random_blocks import stream

# What quantizers put where a row is no multiple of 256.
FALLBACK = {"q2_k": "q4_0", "q3_k": "q4_0", "q4_k": "q5_0", "q5_k": "q5_1", "q6_k": "q8_0", "iq4_xs": "iq4_nl"}
FALLBACK |= dict.fromkeys(("iq3_s", "iq3_xxs", "iq2_s", "iq2_xs", "iq2_xxs", "iq1_s", "iq1_m"), "iq4_nl")
FALLBACK |= {"tq1_0": "q4_0", "tq2_0": "q4_0", "nvfp4": "mxfp4"}


def layer_of(name: str) -> int:
    found = re.match(r"blk\.(\d+)\.", name)
    return int(found[1]) if found else -1


def _gets_more_bits(layer: int, n_layers: int) -> bool:
    """The first and the last eighth of the layers, and every third between."""
    eighth = n_layers // 8
    return layer < eighth or layer >= 7 * n_layers // 8 or (layer - eighth) % 3 == 2


def _k_m(base: str, fused: str):
    """Q4_K_M and Q5_K_M: `base`, with Q6_K for the output matrix and for half of attn_v and ffn_down."""

    def kind(name: str, s: Shape) -> str:
        if name == "output.weight" or (name == "token_embd.weight" and s.tied):
            return "q6_k"
        if "attn_qkv" in name:
            return fused
        if ("attn_v" in name or "ffn_down" in name) and _gets_more_bits(layer_of(name), s.n_layers):
            return "q6_k"
        return base

    return kind


def _k_xl(name: str, s: Shape) -> str:
    """As files whose makers choose a type a tensor: attention and shared experts finer than experts; q, k and v, and
    gate and up, of types that want different activations."""
    rules = (
        (r"token_embd|^output", "q8_0"),
        (r"attn_v", "q8_0"),
        (r"attn_k", "q6_k"),
        (r"attn_q", "q5_k"),
        (r"attn_output|ssm_out", "q6_k"),
        (r"ssm_(ba|alpha|beta)|per_layer_model_proj", "bf16"),
        (r"inp_gate|\.proj\.", "f16"),
        (r"shexp", "q8_0"),
        (r"ffn_gate_exps", "mxfp4"),
        (r"ffn_down_exps", "q5_k" if _gets_more_bits(layer_of(name), s.n_layers) else "iq4_nl"),
        (r"ffn_down", "q6_k" if _gets_more_bits(layer_of(name), s.n_layers) else "iq4_xs"),
        (r"ffn_up\.", "q5_0"),
    )
    return next((kind for pattern, kind in rules if re.search(pattern, name)), "q4_k")


PRESETS = {
    "BF16": lambda name, s: "bf16",
    "F16": lambda name, s: "f16",
    "Q8_0": lambda name, s: "q8_0",
    "Q4_K_M": _k_m("q4_k", "q5_k"),
    "Q5_K_M": _k_m("q5_k", "q6_k"),
    "Q4_K_XL": _k_xl,
    "MXFP4_MOE": lambda name, s: "mxfp4" if "_exps" in name else "q8_0",
}


def fitting(kind: str, row: int) -> str:
    """The format, or what takes its place in rows of this length."""
    if row % TYPES[kind].block_elems:
        kind = FALLBACK.get(kind, kind)
    if row % TYPES[kind].block_elems:
        raise ValueError(f"[synth_gguf] {kind} needs rows of a multiple of {TYPES[kind].block_elems}, {row} there")
    return kind


def preset(types: str):
    """(tensor, shape of the model) -> format, of a preset's name or of a format's, which then all matrices have."""
    if types not in PRESETS and types not in TYPES:
        raise ValueError(f"[synth_gguf] no types {types!r}; there are {', '.join([*PRESETS, *TYPES])}")

    def kind(tensor: Tensor, s: Shape) -> str:
        if tensor.name.endswith("ffn_gate_inp.weight"):
            return "f32"  # routers are not quantized
        return fitting(PRESETS[types](tensor.name, s) if types in PRESETS else types, tensor.shape[-1])

    return kind


def contents(s: Shape, kind_of, seed: int = 0) -> dict:
    """name -> (shape, GGUF type, chunks of bytes), as gguf_file.write takes them. kind_of(tensor, shape) -> format.
    Each tensor has a random stream of its own, so its bytes depend on seed, name, shape and format alone."""

    def entry(tensor: Tensor):
        rng = np.random.default_rng([seed, zlib.crc32(tensor.name.encode())])
        if tensor.values:
            return tensor.shape, gguf_file.F32, np.asarray(tensor.values(rng), np.float32).tobytes()
        kind = kind_of(tensor, s)
        n, std = int(np.prod(tensor.shape, dtype=np.int64)), tensor.shape[-1] ** -0.5
        return tensor.shape, TYPES[kind].number, stream(kind, n, std, rng)

    return {tensor.name: entry(tensor) for tensor in shape_tensors(s)}


def n_parameters(s: Shape) -> int:
    """Of all weights that are learned: without RoPE's tables."""
    return sum(int(np.prod(t.shape, dtype=np.int64)) for t in shape_tensors(s) if not t.name.startswith("rope_"))


class Progress:
    """A bar on stderr; a line every tenth where that is no terminal."""

    def __init__(self):
        self.start, self.shown = time.monotonic(), -1

    def __call__(self, done: int, total: int) -> None:
        terminal = sys.stderr.isatty()
        step = done * (100 if terminal else 10) // total
        if step == self.shown:
            return
        self.shown = step
        rate = done / max(time.monotonic() - self.start, 1e-9)
        bar = "#" * (40 * done // total)
        line = f"[{bar:<40}] {100 * done // total:3}%  {done / 1e6:.1f} of {total / 1e6:.1f} MB, {rate / 1e6:.0f} MB/s"
        print(line, end="\r" if terminal and done < total else "\n", file=sys.stderr, flush=True)


def main(arguments=None) -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter, allow_abbrev=False
    )
    parser.add_argument("model", help=f"{', '.join(SIZES)}; or tiny-FAMILY of {', '.join(TINY)}")
    parser.add_argument("-o", "--output", required=True)
    parser.add_argument(
        "--types", default="Q4_K_M", help=f"{', '.join(PRESETS)}; or one format for all matrices: {', '.join(TYPES)}"
    )
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--width", type=int, default=256, help="of a tiny model: row lengths are multiples of it")
    parser.add_argument("--vocab", type=int, default=320, help="of a tiny model")
    options = parser.parse_args(arguments)
    try:
        if options.model in SIZES:
            shape = SIZES[options.model]
        elif options.model.startswith("tiny-"):
            shape = tiny(options.model.removeprefix("tiny-"), options.width, options.vocab)
        else:
            raise ValueError(f"[synth_gguf] no model {options.model!r}; there are {', '.join(SIZES)} and tiny-FAMILY")
        tensors = contents(shape, preset(options.types), options.seed)
        name = f"{options.model} {options.types} (random weights, seed {options.seed})"
        gguf_file.write(options.output, shape_metadata(shape, name), tensors, Progress())
    except (ValueError, OSError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    print(f"{options.output}: {name}, {n_parameters(shape) / 1e6:.1f} million parameters")
    return 0


if __name__ == "__main__":
    sys.exit(main())
