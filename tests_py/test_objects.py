"""Code for one instruction set must not serve another: what the units of kernels/cpu_simd define is theirs alone.

A function that several units may define is kept once by the linker, in whichever form came first; one that was
compiled for AVX-512 would then end programs on processors without it.
"""

import pathlib
import shutil
import subprocess

import pytest

ROOT = pathlib.Path(__file__).resolve().parent.parent
OBJECTS = sorted(
    path for preset in ("release", "aarch64") for path in (ROOT / f"build/{preset}/kernels/cpu_simd").rglob("*.o")
)


@pytest.mark.skipif(not OBJECTS, reason="build/ has no objects of kernels/cpu_simd")
@pytest.mark.skipif(shutil.which("nm") is None, reason="nm of binutils is not installed")
@pytest.mark.parametrize("path", OBJECTS, ids=lambda p: p.name)
def test_no_shared_definition(path):
    lines = subprocess.run(["nm", "-C", "--defined-only", path], capture_output=True, text=True, check=True).stdout
    found = [line.split(maxsplit=2)[1:] for line in lines.splitlines()]
    assert any(kind in "TRD" for kind, _ in found)
    assert [name for kind, name in found if kind in "WVu"] == []
