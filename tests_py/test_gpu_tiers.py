"""Tiers share code by cpp/ring and cpp/ring/gpu: no tier has again what another one has."""

import itertools
import pathlib
import re

import pytest

ROOT = pathlib.Path(__file__).resolve().parent.parent
MOST = 5  # lines
# A tier's name in other names: what differs by it alone is the same.
NAMES = re.compile(r"(?:t_)?cuda_?|amd_?|rdna", re.IGNORECASE)
PASSED_OVER = re.compile(r"#|namespace\b|using namespace\b|(public|private|protected):")

# Operands, symbols and constants have names (kernels/common/operands.h, cpp/ring/gpu/symbols.h).
BY_NUMBER = re.compile(r"\b(?:buffers|symbols|push)\[\d|\b(?:dim|buffer<[^<>]*>)\((?:args, )?\d")


def lines_of(path):
    """Pairs of a line's number and what it says. Comments, includes and lines of punctuation alone say nothing."""
    for number, line in enumerate(path.read_text().splitlines(), 1):
        said = " ".join(NAMES.sub("", re.sub(r"//.*", "", line)).split())
        if re.search(r"\w", said) and not PASSED_OVER.match(said):
            yield number, said


def runs_of(folder):
    """Where each run of more lines than MOST begins, by what it says."""
    runs = {}
    for path in sorted(folder.rglob("*")):
        if path.suffix not in {".h", ".cpp"}:
            continue
        lines = list(lines_of(path))
        for i in range(len(lines) - MOST):
            runs.setdefault(tuple(said for _, said in lines[i : i + MOST + 1]), f"{path}:{lines[i][0]}")
    return runs


def shared(folders):
    for one, other in itertools.combinations([runs_of(folder) for folder in folders], 2):
        yield from (f"{one[run]} ~ {other[run]}" for run in one.keys() & other.keys())


def test_no_six_lines_stand_in_two_tiers():
    folders = [folder for folder in (ROOT / "cpp/ring").iterdir() if folder.is_dir()]
    assert {"amd", "cuda", "gpu"} <= {folder.name for folder in folders}
    assert sorted(shared(folders)) == []


ONE = "\n".join(f"  AmdThing a{i} = amd_made({i});  // of AMD" for i in range(6))
OTHER = "\n\n".join(f"  CudaThing a{i} = cuda_made({i});" for i in range(6))


@pytest.mark.parametrize(
    "other, n",
    [
        (OTHER, 1),
        (OTHER.replace("a3", "b3"), 0),
        (OTHER.replace("\n\n", "\n  }\n#include <a>\n"), 1),
        (OTHER.rsplit("\n", 1)[0], 0),
    ],
)
def test_what_is_shared_is_found(tmp_path, other, n):
    for tier, text in {"amd": ONE, "cuda": other}.items():
        (tmp_path / tier).mkdir()
        (tmp_path / tier / "a.cpp").write_text(text + "\n")
    assert len(list(shared([tmp_path / "amd", tmp_path / "cuda"]))) == n


def test_no_operand_and_no_symbol_has_a_number():
    found = [
        f"{path}:{number}: {line.strip()}"
        for folder in ("cpp/ring", "kernels/cuda", "kernels/rdna")
        for path in sorted((ROOT / folder).rglob("*"))
        if path.is_file()
        for number, line in enumerate(path.read_text().splitlines(), 1)
        if BY_NUMBER.search(line)
    ]
    assert found == []


@pytest.mark.parametrize(
    "line",
    [
        "args.symbols[0] = sum.d, args.symbols[1] = sum.k;",
        "args.push[4] = inverse;",
        "const Place x = call.buffers[2];",
        "const uint32_t d = dim(args, 0);",
        "const uint32_t d = args.dim(0);",
        "const float* x = rdna::buffer<const float>(args, 1);",
    ],
)
def test_a_number_is_found(line):
    assert BY_NUMBER.search(line)
