"""zinc-rt trace --steps and zinc-rt replay: a log of steps is played again, and what differs is named."""

import json
import os
import stat
import subprocess

import pytest

from server_process import PROGRAM


def zinc(*arguments, **environment):
    command = [*PROGRAM, *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, env={**os.environ, **environment})


@pytest.fixture(scope="module")
def log(tiny_model, tmp_path_factory):
    folder = tmp_path_factory.mktemp("steps")
    path = folder / "steps.log"
    traced = zinc(
        *("trace", tiny_model, "--steps", path, "--logits", "--out", folder / "trace.json", "--tier", "t_cpu"),
        *("--requests", 2, "-n", 12),
    )
    assert traced.returncode == 0, traced.stderr
    assert f"`zinc-rt replay {path}` runs it again" in traced.stdout
    return path


def test_a_log_is_played_with_the_same_results(log):
    result = zinc("replay", log, "--tier", "t_cpu", "--json")
    assert result.returncode == 0, result.stderr
    report = json.loads(result.stdout)
    assert report["differences"] == 0
    assert report["picks"] == report["hashes"] >= 6 * 12
    assert report["tier"] == report["recorded_on"] == "t_cpu"
    assert "played on t_cpu: all equal" in zinc("replay", log, "--tier", "t_cpu", "-t", 1).stdout


def test_what_differs_is_named(log, tmp_path):
    content = bytearray(log.read_bytes())
    content[-4] ^= 1  # the last pick
    path = tmp_path / "changed.log"
    path.write_bytes(content)
    result = zinc("replay", path, "--tier", "t_cpu")
    assert result.returncode == 1
    assert "1 differ, first step " in result.stdout
    assert ": the pick is " in result.stdout


def test_the_file_is_its_owners(log):
    assert stat.S_IMODE(log.stat().st_mode) == 0o600


def test_text_needs_no_model(log, tmp_path):
    content = log.read_bytes()
    path = tmp_path / "moved.log"
    path.write_bytes(content.replace(b'.gguf"', b'.none"', 1))
    lines = zinc("replay", path, "--text").stdout.splitlines()
    assert json.loads(lines[0])["has_all_logits"] is True
    assert lines[1].startswith("step 1 begins, ")
    assert lines[2].startswith("step 1 ends: picks ")
    assert zinc("replay", path, "--tier", "t_cpu").returncode == 3


def test_a_cut_log_is_played_to_its_last_whole_record(log, tmp_path):
    path = tmp_path / "cut.log"
    path.write_bytes(log.read_bytes()[:-1])
    result = zinc("replay", path, "--tier", "t_cpu")
    assert result.returncode == 0, result.stderr
    assert "of an incomplete record at the end are left out" in result.stdout
    assert "1 steps have no results in the log" in result.stdout


def test_another_model_and_other_files_are_refused(log, hybrid_model, tmp_path):
    result = zinc("replay", log, "--tier", "t_cpu", "--model", hybrid_model)
    assert result.returncode == 3
    assert "is another one" in result.stderr
    path = tmp_path / "none.log"
    path.write_bytes(b"something")
    assert "neither a log of steps nor one of packets: it has 9 bytes" in zinc("replay", path).stderr
    assert "--logits is for --steps" in zinc("trace", hybrid_model, "--logits").stderr


def test_any_command_records(tiny_model, tmp_path):
    path = tmp_path / "run.log"
    result = zinc("run", tiny_model, "-p", "Once", "-n", 5, "--tier", "t_cpu", ZINC_RT_STEP_LOG=str(path))
    assert result.returncode == 0, result.stderr
    assert "5 picks and 0 hashes compared" in zinc("replay", path, "--tier", "t_cpu").stdout
