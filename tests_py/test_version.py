"""zinc-rt --version: what was built in."""

import json
import re
import subprocess

import zinc_rt
from server_process import PROGRAM


def output(*arguments):
    return subprocess.run([*PROGRAM, *arguments], capture_output=True, text=True, check=True, timeout=60).stdout


def test_version_says_what_was_built_in():
    first, *lines = output("--version").splitlines()
    assert first == f"zinc-rt {zinc_rt.__version__}"
    assert re.fullmatch(r"commit ([0-9a-f]{7,40}(-dirty)?|unknown)", lines[0])
    assert re.fullmatch(r"(g\+\+|clang) \d+\.\d+.*, (not )?optimized", lines[1])
    assert re.search(r"OpenSSL 3\.\d+.*SQLite 3\.\d+", lines[-1])

    # Each tier, whether it runs here or not; and why one is left out.
    tiers = json.loads(output("tiers", "--json"))["tiers"]
    said = dict(line.split(": ", 1) for line in lines if ": " in line)
    for tier in tiers:
        assert said[tier["name"]]
    assert re.fullmatch(r"kernels (\w+, )*ref", said["t_cpu"])
    if "t_cuda" in said:
        assert "sm_90a" in said["t_cuda"] or "no device code" in said["t_cuda"]
    else:
        assert said["without t_cuda"]
