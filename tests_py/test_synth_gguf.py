"""bench/synth_gguf.py: the command, and the shapes that it says are those of known models."""

import pathlib
import subprocess
import sys

import pytest

import gguf_file
import zinc_rt
from gguf_file import TYPES, n_bytes
from model_shapes import SIZES, TINY, shape_tensors, tiny
from synth_gguf import contents, n_parameters, preset

PROGRAM = pathlib.Path(__file__).resolve().parent.parent / "bench" / "synth_gguf.py"


def synth(*arguments):
    return subprocess.run(
        [sys.executable, str(PROGRAM), *map(str, arguments)], capture_output=True, text=True, timeout=120
    )


def test_the_command_writes_a_model_and_says_that_it_is_random(tmp_path):
    path = tmp_path / "a.gguf"
    result = synth("tiny-qwen3moe", "--types", "Q4_K_M", "--width", 512, "--vocab", 400, "-o", path)
    assert result.returncode == 0, result.stderr
    assert "random weights" in result.stdout and str(path) in result.stdout
    assert "100%" in result.stderr
    with zinc_rt.Engine(path) as engine:
        assert "random weights" in engine.model_card()["name"]
        assert (engine.model_dim, engine.vocab_size) == (512, 400)
        got = engine.tenant("t").session().generate("the thin", max_tokens=4, ignore_eos=True)
        assert len(got.token_ids) == 4


def test_bytes_depend_on_the_arguments_alone(tmp_path):
    files = {}
    for name, seed in (("a", 1), ("b", 1), ("c", 2)):
        assert synth("tiny-phi3", "--types", "Q8_0", "--seed", seed, "-o", tmp_path / name).returncode == 0
        files[name] = (tmp_path / name).read_bytes()
    assert files["a"] == files["b"]
    assert len(files["a"]) == len(files["c"]) and files["a"][-1024:] != files["c"][-1024:]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["qwen9-1t"], "no model 'qwen9-1t'; there are qwen3-0.6b"),
        (["tiny-qwen9"], "no family 'qwen9'; there are llama"),
        (["tiny-llama", "--types", "Q9"], "no types 'Q9'; there are BF16"),
        (["tiny-llama", "--width", 260], "260 asked for"),
        (["tiny-llama", "--width", 288, "--types", "mxfp4", "--vocab", 20], "263 tokens or more, 20 asked for"),
    ],
)
def test_bad_arguments_are_2_and_leave_no_file(tmp_path, arguments, said):
    result = synth(*arguments, "-o", tmp_path / "x.gguf")
    assert result.returncode == 2
    assert said in result.stderr
    assert not list(tmp_path.iterdir())


# What the makers of these models publish.
PARAMETERS = {
    "qwen3-0.6b": 596_049_920,
    "qwen3-1.7b": 1_720_574_976,
    "qwen3-4b": 4_022_468_096,
    "qwen3-8b": 8_190_735_360,
    "qwen3-30b-a3b": 30_532_122_624,
    "qwen3.5-35b-a3b": 34_660_610_688,
    "llama-3.2-1b": 1_235_814_400,
    "smollm2-135m": 134_515_008,
}
# Of other models the size of a published file is known, in GB, by its type.
FILES = {
    "command-r7b": ("Q4_K_M", 5.1),
    "ministral-3-3b": ("Q4_K_M", 2.1),
    "hunyuan-0.5b": ("Q8_0", 0.6),
    "exaone-4.0-1.2b": ("Q4_K_M", 0.81),
    "olmo-2-1b": ("Q4_K_M", 0.94),
    "olmo-3-7b": ("Q4_K_M", 4.5),
    "glm-4-9b": ("Q4_K_M", 6.2),
    "ernie-4.5-0.3b": ("Q8_0", 0.39),
    "seed-oss-36b": ("Q4_K_M", 21.8),
    "gpt-oss-20b": ("MXFP4_MOE", 12.11),
    "granite-4.0-h-micro": ("Q4_K_M", 1.94),
    "granite-4.0-h-tiny": ("Q4_K_M", 4.23),
    "nemotron-3-nano-4b": ("Q4_K_M", 2.84),
    "lfm2-1.2b": ("Q4_K_M", 0.731),
}


@pytest.mark.parametrize("name", PARAMETERS)
def test_true_shapes_have_the_parameters_of_the_real_models(name):
    assert n_parameters(SIZES[name]) == PARAMETERS[name]


@pytest.mark.parametrize("name", FILES)
def test_true_shapes_make_files_of_the_published_size(name):
    types, published = FILES[name]
    n = sum(n_bytes(shape, number) for shape, number, _ in contents(SIZES[name], preset(types)).values())
    assert abs(n / 1e9 / published - 1) < 0.05


def test_the_size_of_every_true_shape_is_known():
    assert set(SIZES) == {*PARAMETERS, *FILES}


@pytest.mark.parametrize("types", ["Q4_K_M", "Q8_0", "BF16"])
@pytest.mark.parametrize("name", SIZES)
def test_every_tensor_of_a_true_shape_has_whole_blocks(name, types):
    size = sum(n_bytes(shape, number) for shape, number, _ in contents(SIZES[name], preset(types)).values())
    bits = 8 * size / n_parameters(SIZES[name])
    # Q4_K_M with the large embeddings of small models in Q6_K; rows of 576 fall back to five and eight bits.
    least, most = {"Q4_K_M": (4.7, 6.3), "Q8_0": (8.49, 8.53), "BF16": (15.99, 16.02)}[types]
    assert least < bits < most


@pytest.mark.parametrize("width", [256, 288, 512])
@pytest.mark.parametrize("family", TINY)
def test_rows_of_tiny_models_are_multiples_of_the_width(family, width):
    rows = {t.shape[-1] for t in shape_tensors(tiny(family, width)) if t.values is None}
    assert all(row % width == 0 for row in rows), rows
    assert all(row % TYPES["q8_0"].block_elems == 0 for row in rows)


def test_a_tensor_of_another_size_than_its_shape_leaves_no_file(tmp_path):
    for chunks in ([b"\0" * 34], [b"\0" * 34] * 3):
        with pytest.raises(ValueError, match=rf"\[gguf_file\] x: 68 bytes wanted, {34 * len(chunks)} given"):
            gguf_file.write(tmp_path / "x.gguf", {}, {"x": ((2, 32), TYPES["q8_0"].number, iter(chunks))})
    with pytest.raises(ValueError, match="a multiple of 256, 288 there"):
        gguf_file.write(tmp_path / "x.gguf", {}, {"x": ((2, 288), TYPES["q4_k"].number, iter([]))})
    assert not list(tmp_path.iterdir())
