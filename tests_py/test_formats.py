"""Every weight format in every family, and files that mix formats, from file to logits.

A file is written twice: in its formats, and with the same values as F32, widened by numpy (quant_formats.py). With f32
activations the engine widens weights and uses one dot for all, so the logits must agree to the last bit: any misread
block, row, expert or type shows. In the normal arithmetic, bits must not depend on chunks or fusion, and the logits may
be as far from those of f32 activations as rounding activations to int8 moves them.
"""

import dataclasses
import re

import numpy as np
import pytest

import gguf_file
import zinc_rt
from gguf_file import TYPES
from model_shapes import TINY, shape_metadata, shape_tensors, tiny
from quant_formats import BLOCKS_OF_32, BLOCKS_OF_64, BLOCKS_OF_256, FLOATS, FORMATS, dequantize
from random_blocks import random_blocks
from synth_gguf import PRESETS, contents, fitting, preset

WIDE, ODD = 256, 288  # row lengths; 288 is nine blocks of 32: a whole group of 256 and a rest
NAMES = {row.number: name for name, row in TYPES.items()}
IDS = [int(i) for i in np.random.default_rng(1).integers(0, 256, 24)]

# Mean |logit - logit with f32 activations| of a row, as a part of the logits' standard deviation; the median over rows.
# One expert chosen otherwise moves its row by more than all rounding, and through attention those that follow, so with
# experts it is the lowest tenth of the rows: those that no such choice moved. int8 activations are off by half a step
# of amax / 127, which is 0.5% (a scale per 32) or 0.7% (per 256) of a vector; the projections in a row of these models
# add that up to 0.01 to 0.03, with recurrent states to 0.04 (found; seeds and bits are fixed). What an error in a dot
# does is larger: see test_the_bound_sees_small_errors.
BOUND = 0.05
# Float weights in arithmetic fast: 0.003 to 0.008 found without experts. With them an early choice may be another one,
# also after routers of 16 bits, and recurrent states keep it: BOUND.
BOUND_FAST = 0.015
BOUND_FLOAT = 0.002  # f32 activations in either case; the cache is f16 in one


def run(path, chunks=(None,), **options):
    with zinc_rt.Engine(path, max_slots=1, max_context=64, threads=1, **options) as engine:
        return [engine.logits(IDS, chunk=chunk) for chunk in chunks]


def assert_same(logits, wanted, what):
    differing = (logits != wanted).any(axis=1)
    largest = np.abs(logits - wanted).max()
    assert not differing.any(), f"{what}: rows {np.flatnonzero(differing).tolist()} differ, by up to {largest}"


def whole(entry):
    shape, number, data = entry
    return shape, number, data if isinstance(data, bytes) else b"".join(data)


def widened(entry):
    shape, number, data = entry
    return shape, gguf_file.F32, dequantize(NAMES[number], data, shape).tobytes()


def noise(logits, exact, has_experts):
    rows = np.abs(logits - exact).mean(axis=1)
    return float(np.quantile(rows, 0.1 if has_experts else 0.5) / exact.std())


def check(folder, shape, kind_of):
    """Writes the two files and holds the engine to what the head of this file says."""
    metadata = shape_metadata(shape, "random weights")
    tensors = {name: whole(entry) for name, entry in contents(shape, kind_of).items()}
    path, twin = folder / "formats.gguf", folder / "f32.gguf"
    gguf_file.write(path, metadata, tensors)
    gguf_file.write(twin, metadata, {name: widened(entry) for name, entry in tensors.items()})

    (exact,) = run(path, activations="f32", kv_dtype="f32")
    (wanted,) = run(twin, activations="f32", kv_dtype="f32")
    assert np.isfinite(exact).all() and exact.std() > 0.1
    assert_same(exact, wanted, "the same values as F32")

    logits, by_one, by_seven = run(path, chunks=(None, 1, 7))
    assert np.isfinite(logits).all()
    assert_same(by_one, logits, "chunks of 1")
    assert_same(by_seven, logits, "chunks of 7")
    (unfused,) = run(path, fusion="0")
    assert_same(unfused, logits, "without fusion")

    kinds = {NAMES[number] for _, number, _ in tensors.values()}
    bound = BOUND_FLOAT if kinds <= {"f32", *FLOATS} else BOUND
    assert noise(logits, exact, shape.n_experts > 0) <= bound


def cases(fast, every):
    """All of `every`, those that are not in `fast` marked slow."""
    assert set(fast) <= set(every)
    return [pytest.param(*case, marks=[] if case in fast else pytest.mark.slow) for case in every]


def allowed(width):
    return FORMATS if width % 256 == 0 else FLOATS + BLOCKS_OF_32


def rotated(width):
    """Each family and each format that the width allows occurs."""
    n = max(len(TINY), len(allowed(width)))
    return [(width, TINY[i % len(TINY)], allowed(width)[i % len(allowed(width))]) for i in range(n)]


@pytest.mark.parametrize(
    ("width", "family", "kind"),
    cases(rotated(WIDE) + rotated(ODD), [(w, f, k) for w in (WIDE, ODD) for f in TINY for k in allowed(w)]),
)
def test_one_format(tmp_path, width, family, kind):
    """All matrices, embeddings and routers among them, in one format."""
    check(tmp_path, tiny(family, width), lambda tensor, shape: kind)


# Mixed files


def uneven(family):
    """Rows of 256, and of 288 in what reads the feed-forward's inside, where K-quants give way to blocks of 32."""
    s = tiny(family, WIDE)
    ffn_dim = tuple(n * ODD // WIDE for n in s.ffn_dim) if isinstance(s.ffn_dim, tuple) else ODD
    return dataclasses.replace(
        s, ffn_dim=ffn_dim, expert_ffn_dim=ODD if s.n_experts else 0, shared_ffn_dim=ODD if s.shared_ffn_dim else 0
    )


def cycle(start):
    """Tensor after tensor the next format but three, so that neighbours want different activations."""

    def kind_of(tensor, shape):
        matrices = [t.name for t in shape_tensors(shape) if t.values is None]
        return fitting(FORMATS[(start + 4 * matrices.index(tensor.name)) % len(FORMATS)], tensor.shape[-1])

    return kind_of


SPLIT_RULES = (
    (r"token_embd", "f16"),
    (r"attn_qkv", "iq4_xs"),
    (r"attn_q", "q4_k"),
    (r"attn_k", "q8_0"),
    (r"attn_v", "bf16"),
    (r"attn_gate|ssm_alpha", "q5_0"),
    (r"ffn_gate_inp", "f32"),
    (r"ffn_gate_exps", "mxfp4"),
    (r"ffn_(up|gate_up)_exps", "q4_k"),
    (r"ffn_gate_shexp", "q8_0"),
    (r"ffn_up_shexp", "q3_k"),
    (r"down", "mxfp4"),
    (r"ffn_gate", "q6_k"),
    (r"ffn_up", "q5_1"),
    (r".", "q2_k"),
)


def split(tensor, shape):
    """Projections of one input, each with weights of another kind: q, k and v; gate and up; the experts'."""
    return fitting(next(kind for pattern, kind in SPLIT_RULES if re.search(pattern, tensor.name)), tensor.shape[-1])


MIXTURES = {
    "Q4_K_M": preset("Q4_K_M"),
    "Q5_K_M": preset("Q5_K_M"),
    "Q4_K_XL": preset("Q4_K_XL"),
    "MXFP4_MOE": preset("MXFP4_MOE"),
    "split": split,
    "cycle": cycle(0),
    "cycle from 5": cycle(5),
    "cycle from 11": cycle(11),
}
FAST_MIXTURES = [(family, list(MIXTURES)[i % len(MIXTURES)]) for i, family in enumerate(TINY)]
FAST_MIXTURES += [("qwen3moe", "split"), ("qwen3next", "MXFP4_MOE"), ("gemma4_moe", "Q4_K_XL")]


def activations_of(kind):
    return {1: "f32", 32: "per 32", 64: "per 32", 256: "per 256"}[TYPES[kind].block_elems]


@pytest.mark.parametrize("mixture", MIXTURES)
@pytest.mark.parametrize("family", TINY)
def test_mixtures_mix(family, mixture):
    """What the next test claims to run: matrices of one file that want different activations."""
    shape = uneven(family)
    kinds = {t.name: MIXTURES[mixture](t, shape) for t in shape_tensors(shape) if t.values is None}
    wanted = {activations_of(kind) for kind in kinds.values()}
    if mixture == "MXFP4_MOE":
        assert {"mxfp4", "q8_0"} == set(kinds.values()) - {"f32"} or not shape.n_experts
    else:
        assert {"per 32", "per 256"} <= wanted
    if mixture == "split" and "blk.0.attn_q.weight" in kinds and "blk.0.attn_v.weight" in kinds:
        assert len({activations_of(kinds[f"blk.0.attn_{x}.weight"]) for x in "qkv"}) == 3
    if mixture == "split" and "blk.0.ffn_gate_exps.weight" in kinds:
        assert activations_of(kinds["blk.0.ffn_gate_exps.weight"]) != activations_of(kinds["blk.0.ffn_up_exps.weight"])


@pytest.mark.parametrize(
    ("family", "mixture"), cases(FAST_MIXTURES, [(family, mixture) for family in TINY for mixture in MIXTURES])
)
def test_mixed_formats(tmp_path, family, mixture):
    check(tmp_path, uneven(family), MIXTURES[mixture])


@pytest.mark.parametrize("family", ["llama", "qwen3moe", "gemma4_moe"])
def test_scales_beside_a_matrix_multiply_its_products(tmp_path, family):
    """With powers of two the twin, whose weights are multiplied by the scales, has the same bits."""
    shape = tiny(family, WIDE)
    metadata = shape_metadata(shape, "random weights")
    tensors = {name: whole(entry) for name, entry in contents(shape, preset("nvfp4")).items()}
    twin = {name: widened(entry) for name, entry in tensors.items()}
    rng, n_scales = np.random.default_rng(5), 0
    for name, ((*dims, _), number, _) in list(tensors.items()):
        base = name.removesuffix(".weight")
        if NAMES[number] != "nvfp4" or not re.match(r"blk\.\d+\.(attn|ffn)_", name) or f"{base}.scale" in tensors:
            continue
        scales = np.exp2(rng.integers(-2, 2, dims[0] if len(dims) > 1 else 1)).astype(np.float32)
        tensors[f"{base}.scale"] = tensors[f"{base}.input_scale"] = (scales.shape, gguf_file.F32, scales.tobytes())
        values = np.frombuffer(twin[name][2], np.float32).reshape(len(scales), -1) * scales[:, None]
        twin[name] = (*twin[name][:2], values.tobytes())
        n_scales += 1
    assert n_scales >= 6 * shape.n_layers
    paths = tmp_path / "scales.gguf", tmp_path / "multiplied.gguf"
    for path, entries in zip(paths, (tensors, twin), strict=True):
        gguf_file.write(path, metadata, entries)
    (got,), (wanted,) = (run(path, activations="f32", kv_dtype="f32") for path in paths)
    assert_same(got, wanted, "scales in the weights")
    logits, by_one = run(paths[0], chunks=(None, 1))
    assert_same(by_one, logits, "chunks of 1")
    assert noise(logits, got, shape.n_experts > 0) <= BOUND


@pytest.mark.parametrize("kind", BLOCKS_OF_64 + BLOCKS_OF_256)
def test_rows_that_are_no_whole_blocks_and_short_tensors_are_refused(tmp_path, kind):
    shape, path, name = tiny("llama", WIDE), tmp_path / "model.gguf", "blk.0.ffn_down.weight"
    metadata, block = shape_metadata(shape, "random weights"), TYPES[kind].block_elems
    tensors = {name: whole(entry) for name, entry in contents(shape, preset(kind)).items()}
    (rows, row), number, data = tensors[name]
    gguf_file.write(path, metadata, tensors | {name: ((rows, row + 32), number, data)})
    with pytest.raises(zinc_rt.errors.Corrupt, match=f"{name}.*{kind} need a multiple of {block} .*, {row + 32} there"):
        run(path)
    # The tensor is last in the file, which ends before it does.
    last = tensors.pop(name)
    gguf_file.write(path, metadata, tensors | {name: last})
    whole_file = path.read_bytes()
    path.write_bytes(whole_file[: -len(data) // 2])
    with pytest.raises(zinc_rt.errors.Corrupt, match=rf"{name}\D.*\d+.*\d+"):
        run(path)


# Arithmetic fast


@pytest.mark.parametrize("kind", FLOATS)
@pytest.mark.parametrize("family", TINY)
def test_arithmetic_fast(tmp_path, family, kind):
    """Rounding to bf16 moves logits less than int8 activations do. A token alone has the bits of exact with f16
    weights, with bf16 weights those that it has among others."""
    path, shape = tmp_path / "model.gguf", tiny(family, ODD)
    gguf_file.write(path, shape_metadata(shape, "random weights"), contents(shape, lambda tensor, shape: kind))
    with zinc_rt.Engine(path, max_slots=1, max_context=64, threads=2, tier="t_cpu", arithmetic="fast") as engine:
        if engine.arithmetic != "fast":
            pytest.skip("T-CPU has no kernels of arithmetic fast on this processor")
        fast, alone = engine.logits(IDS), engine.logits(IDS, chunk=1)
    (exact,) = run(path, tier="t_cpu")
    assert_same(alone, exact if kind == "f16" else fast, "token by token")
    assert (fast != exact).any(), "no other arithmetic was used"
    assert noise(fast, exact, shape.n_experts > 0) <= (BOUND if shape.n_experts else BOUND_FAST)


# The tests' own tools


@pytest.mark.parametrize("kind", FORMATS)
def test_random_blocks_have_the_wanted_spread(kind):
    values = dequantize(kind, random_blocks(kind, 1 << 14, 0.05, np.random.default_rng(0)).tobytes(), (-1,))
    assert abs(values.std() / 0.05 - 1) < 0.03
    assert abs(values.mean()) < 0.03 * 0.05


def test_every_family_is_covered(tmp_path):
    path = tmp_path / "x.gguf"
    shape = dataclasses.replace(tiny("llama"), arch="nonsense")
    gguf_file.write(path, shape_metadata(shape, "x"), contents(shape, preset("F16")))
    with pytest.raises(zinc_rt.errors.Unavailable, match="nonsense.* supported: ") as refusal:
        run(path)
    supported = re.search("supported: (.*)", str(refusal.value))[1]
    encoders = {"bert", "nomic-bert"}  # tests_py/test_bert.py
    assert {tiny(family).arch for family in TINY} | encoders == set(re.findall(r"[\w-]+", supported))


def test_every_preset_and_format_is_covered():
    assert set(FORMATS) == set(TYPES) - {"f32"}
    assert set(PRESETS) - set(MIXTURES) == {"BF16", "F16", "Q8_0"}  # those have one format
    assert set(BLOCKS_OF_256) == {name for name, row in TYPES.items() if row.block_elems == 256}


@pytest.mark.parametrize("kind", BLOCKS_OF_32 + BLOCKS_OF_64 + BLOCKS_OF_256)
def test_the_bound_sees_small_errors(tmp_path, kind):
    """If one sub-block of 16 in every 64 is read backwards, the logits are off by more than twice the bound."""
    shape = tiny("llama", WIDE)
    metadata = shape_metadata(shape, "random weights")
    tensors = {name: whole(entry) for name, entry in contents(shape, lambda tensor, shape: kind).items()}

    def misread(entry):
        shape, f32, data = widened(entry)
        if NAMES[entry[1]] == "f32":
            return shape, f32, data
        values = np.frombuffer(data, np.float32).reshape(-1, 16).copy()
        values[::64] = values[::64, ::-1]
        return shape, f32, values.tobytes()

    paths = tmp_path / "right.gguf", tmp_path / "wrong.gguf"
    gguf_file.write(paths[0], metadata, tensors)
    gguf_file.write(paths[1], metadata, {name: misread(entry) for name, entry in tensors.items()})
    (right,), (wrong,) = (run(path, activations="f32", kv_dtype="f32") for path in paths)
    assert noise(wrong, right, False) > 2 * BOUND
