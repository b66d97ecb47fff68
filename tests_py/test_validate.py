"""zinc_rt.validate and `zinc-rt validate`: two runs of a prompt, compared layer by layer."""

import json
import subprocess
import sys
import zipfile

import numpy as np
import pytest

import tiny_model as tiny
import zinc_rt
from fixture_models import model_path, reference
from zinc_rt.errors import Corrupt, InvalidArgument, NotFound

IDS = [3, 17, 200, 4, 4, 99, 300, 12, 5, 7, 8, 90, 91, 92, 93, 94, 95, 96, 97]


def cli(*arguments):
    return subprocess.run(
        [sys.executable, "-m", "zinc_rt", "validate", *map(str, arguments)], capture_output=True, text=True, timeout=120
    )


@pytest.mark.parametrize("option", ["fusion=0", "fusion=qkv/gate_up", "chunk_cap=7", "threads=1", "mmap=0"])
def test_what_must_not_change_a_bit_does_not(tiny_model, option):
    report = zinc_rt.validate(tiny_model, IDS, tiers=("t_cpu", f"t_cpu+{option}"))
    assert report.equal
    assert [row.name for row in report.layers] == ["embed", "0", "1"]
    for row in [*report.layers, report.logits]:
        assert row.equal and row.n_different == 0 and row.max_abs == 0 and row.histogram == {}
    assert report.logits.n_values == len(IDS) * tiny.VOCAB
    assert report.n_same_top == report.n_rows == len(IDS)
    assert "EQUAL (bit by bit)" in repr(report)


def test_differences_are_those_of_the_arrays(tiny_model):
    report = zinc_rt.validate(tiny_model, IDS, tiers=["t_cpu", "t_cpu+activations=f32"], layers=[0, 1])
    with zinc_rt.Engine(tiny_model) as a, zinc_rt.Engine(tiny_model, activations="f32") as b:
        pairs = [(a.hidden(IDS, layer), b.hidden(IDS, layer)) for layer in (0, 1)] + [(a.logits(IDS), b.logits(IDS))]
        same_top = int((a.logits(IDS).argmax(-1) == b.logits(IDS).argmax(-1)).sum())
    assert not report.equal and report.n_same_top == same_top
    for row, (x, y) in zip([*report.layers, report.logits], pairs, strict=True):
        difference = np.abs(x.astype(np.float64) - y)
        assert row.n_different == np.count_nonzero(x.view(np.int32) != y.view(np.int32)) > 0
        assert row.max_abs == difference.max() > 0
        assert row.mean_abs == pytest.approx(difference.mean(), rel=1e-12)
        powers, counts = np.unique(np.floor(np.log10(difference[difference > 0])), return_counts=True)
        assert row.histogram == {int(p): int(n) for p, n in zip(powers, counts, strict=True)}
    largest = max(row.max_abs for row in [*report.layers, report.logits])
    sides = ["t_cpu", "t_cpu+activations=f32"]
    assert zinc_rt.validate(tiny_model, IDS, tiers=sides, tolerance=largest).equal
    assert not zinc_rt.validate(tiny_model, IDS, tiers=sides, tolerance=largest * 0.99).equal


def test_cli_exit_codes_and_json(tiny_model):
    same = cli("--model", tiny_model, "--prompt", "the thin", "--tiers", "t_cpu,t_cpu+fusion=0")
    assert same.returncode == 0, same.stderr
    assert "EQUAL (bit by bit)" in same.stdout
    ids = ",".join(map(str, IDS))
    other = cli("--model", tiny_model, "--ids", ids, "--tiers", "t_cpu,t_cpu+kv_dtype=f32", "--layers", "0-1", "--json")
    assert other.returncode == 1, other.stderr
    found = json.loads(other.stdout)
    assert found == zinc_rt.validate(tiny_model, IDS, ("t_cpu", "t_cpu+kv_dtype=f32"), layers="0-1").to_json()
    assert found["token_ids"] == IDS and not found["equal"] and found["layers"][1]["max_abs"] > 0
    assert sum(found["logits"]["histogram"].values()) == found["logits"]["n_different"]


@pytest.mark.parametrize(
    ("arguments", "part"),
    [
        (["--tiers", "t_cpu,t_cpu+speed=9"], "activations, chunk_cap"),
        (["--tiers", "t_cpu,t_cpu+chunk_cap=many"], "chunk_cap=many: 0 to 1048576 wanted"),
        (["--tiers", "t_cpu,+fusion=0"], "names no tier"),
        (["--tiers", "t_cpu"], "1 sides, 2 wanted"),
        (["--tiers", "t_cpu,t_cpu", "--against", "x.npz"], "2 sides, 1 wanted"),
        (["--tiers", "t_cpu,t_cpu", "--layers", "0,x"], '"x" is no layer'),
        (["--tiers", "t_cpu,t_cpu", "--layers", "5-3"], '"5-3" is no layer'),
        (["--tiers", "t_cpu,t_cpu", "--tolerance", "-1"], "--tolerance"),
    ],
)
def test_bad_usage_is_2(tiny_model, arguments, part):
    result = cli("--model", tiny_model, "--prompt", "a", *arguments)
    assert result.returncode == 2
    assert part in result.stderr


@pytest.mark.parametrize(
    ("arguments", "part"),
    [
        (["--tiers", "t_cpu,t_cuda", "--prompt", "a"], "t_cuda"),
        (["--tiers", "t_cpu,t_cpu", "--prompt", "a", "--layers", "2"], "layer 2, the model has 0 to 1"),
        (["--tiers", "t_cpu,t_cpu"], "needs a prompt"),
        (["--tiers", "t_cpu,t_cpu", "--ids", "1,99999"], "99999"),
        (["--tiers", "t_cpu", "--prompt", "a", "--against", "none.npz"], "none.npz"),
    ],
)
def test_what_cannot_run_is_3(tiny_model, arguments, part):
    result = cli("--model", tiny_model, *arguments)
    assert result.returncode == 3
    assert part in result.stderr


@pytest.fixture
def stored(tiny_model, tmp_path):
    """A file of arrays as the engine gives them, and the arrays."""
    with zinc_rt.Engine(tiny_model) as engine:
        arrays = {"prompt": np.array(IDS, np.int64), "logits": engine.logits(IDS), "hidden.0": engine.hidden(IDS, 0)}
        arrays["hidden.embed"] = engine.hidden(IDS, -1)
    path = tmp_path / "stored.npz"
    np.savez(path, **arrays)
    return path, arrays


def test_against_stored_arrays(tiny_model, stored, tmp_path):
    path, arrays = stored
    report = zinc_rt.validate(tiny_model, tiers=["t_cpu"], against=path)
    assert report.equal and [row.name for row in report.layers] == ["embed", "0"]
    assert report.token_ids == IDS and report.n_rows == len(IDS)

    changed = tmp_path / "changed.npz"
    rows = np.array([4, 2], np.int32)
    logits = arrays["logits"][rows].astype(np.float64)
    logits[1, 7] += 0.25
    np.savez(changed, prompt=np.array(IDS, np.int32), logits=logits, pos=rows)
    report = zinc_rt.validate(tiny_model, IDS, tiers=["t_cpu"], against=changed)
    assert not report.equal and report.layers == [] and report.n_rows == 2
    assert report.logits.n_different == 1 and report.logits.max_abs == pytest.approx(0.25, rel=1e-5)
    assert cli("--model", tiny_model, "--tiers", "t_cpu", "--against", changed).returncode == 1
    assert cli("--model", tiny_model, "--tiers", "t_cpu", "--against", changed, "--tolerance", 0.3).returncode == 0


def test_halves_and_one_row(tiny_model, stored, tmp_path):
    path = tmp_path / "half.npz"
    half = stored[1]["logits"][-1].astype(np.float16)
    half[:3] = [np.float16(6e-8), np.inf, np.nan]
    np.savez(path, logits=half)
    report = zinc_rt.validate(tiny_model, IDS, tiers=["t_cpu"], against=path)
    expected = np.abs(stored[1]["logits"][-1].astype(np.float64) - half.astype(np.float32))
    assert report.n_rows == 1 and report.logits.max_abs == np.inf
    assert report.logits.histogram[12] == 2
    powers = np.floor(np.log10(expected[np.isfinite(expected) & (expected > 0)]))
    assert {p: n for p, n in report.logits.histogram.items() if p < 12} == {
        int(p): int(n) for p, n in zip(*np.unique(powers, return_counts=True), strict=True)
    }


def test_files_that_do_not_fit_are_refused(tiny_model, stored, tmp_path):
    _, arrays = stored

    def against(error, match, save=np.savez, layers="none", **changes):
        path = tmp_path / "odd.npz"
        save(path, **{name: array for name, array in {**arrays, **changes}.items() if array is not None})
        with pytest.raises(error, match=match):
            zinc_rt.validate(tiny_model, IDS, tiers=["t_cpu"], against=path, layers=layers)

    against(InvalidArgument, "numpy.savez instead of numpy.savez_compressed", save=np.savez_compressed)
    against(NotFound, 'no array "logits"; it has: hidden.0, hidden.embed, prompt', logits=None)
    against(NotFound, 'no array "hidden.1"', layers="1")
    against(InvalidArgument, "18 rows, 19 positions", logits=arrays["logits"][:18])
    against(InvalidArgument, "19 x 448 values wanted, 19 x 447 there", logits=arrays["logits"][:, :447].copy())
    against(InvalidArgument, "tokens that are not", prompt=np.array([1, 2], np.int32))
    against(InvalidArgument, "Fortran order", logits=np.asfortranarray(arrays["logits"]))
    against(InvalidArgument, "type <i4; float16", logits=arrays["logits"].astype(np.int32))
    against(InvalidArgument, "type <f4; int32", pos=np.zeros(19, np.float32))
    against(InvalidArgument, "position 19 of a prompt of 19", pos=np.arange(1, 20))


def test_broken_files_are_refused(tiny_model, stored, tmp_path):
    """Every cut and every changed byte of an archive gives an answer or an error of its own, never a crash."""
    path, _ = stored
    small = tmp_path / "small.npz"
    np.savez(small, logits=np.zeros((1, tiny.VOCAB), np.float32), pos=np.array([0]))
    whole = small.read_bytes()
    broken = tmp_path / "broken.npz"
    with zipfile.ZipFile(small) as archive:
        directory = archive.start_dir
    with pytest.raises(Corrupt, match="no zip archive"):
        zinc_rt.validate(tiny_model, [1], tiers=["t_cpu"], against=tiny_model, layers="none")
    positions = [*range(0, 140), *range(directory, len(whole))]
    for at in positions[::3]:
        for data in (whole[:at], whole[:at] + bytes([whole[at] ^ 0xFF]) + whole[at + 1 :]):
            broken.write_bytes(data)
            try:
                zinc_rt.validate(tiny_model, [1], tiers=["t_cpu"], against=broken, layers="none")
            except zinc_rt.errors.ZincError as error:
                assert not isinstance(error, zinc_rt.errors.Internal), error


@pytest.mark.parametrize(
    "name", ["tiny_llama-f32", "tiny_qwen3-f16", "tiny_phi3-f16", "llama_k-f16", "qwen3-f16", "phi3-f32"]
)
def test_reference_logits(tmp_path, name):
    """The stored logits of an independent implementation, prompt and its continuation."""
    model, stored = model_path(name), reference(name)
    ids = np.concatenate([stored["p7/prompt"], stored["p7/greedy"]]).astype(np.int32)
    positions = stored["p7/pos"]
    ids = ids[: positions.max() + 1]
    path = tmp_path / "reference.npz"
    np.savez(path, prompt=ids, logits=stored["p7/hf_logits"], pos=positions)
    exact = ["t_cpu+activations=f32+kv_dtype=f32"]
    report = zinc_rt.validate(model, tiers=exact, against=path, tolerance=1e-3)
    assert report.equal and 0 < report.logits.max_abs <= 1e-3
    assert report.n_same_top == report.n_rows == len(positions)
    assert not zinc_rt.validate(model, tiers=exact, against=path).equal
