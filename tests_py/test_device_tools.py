"""zinc-rt pm4-test, mem-test, asm and replay on a machine without an AMD GPU; with one, tests_cpp/amd_sim runs them."""

import json
import struct
import subprocess

from server_process import PROGRAM


def zinc(*arguments):
    return subprocess.run([*PROGRAM, *map(str, arguments)], capture_output=True, text=True, timeout=120)


def zrt_file(symbols):
    """A kernel `add` for the cpu whose code is a slot a symbol."""
    code = struct.pack("<I", 0xCAFEBABE) * len(symbols)
    names = b"add\0" + b"".join(name.encode() + b"\0" + struct.pack("<I", 4 * i) for i, name in enumerate(symbols))
    workgroup, resources = (1, 1, 1), (0, 0, 0, 0)
    head = struct.pack("<IHHIIIII", 0x005A5254, 1, 0xFF, len(code), 0, 3, 0, 0)
    head += struct.pack("<3I4III", *workgroup, *resources, 64 + len(code), len(names))
    return head + code + names


def test_mem_test_on_the_host():
    result = zinc("mem-test", "--rounds", 50, "--json")
    assert result.returncode == 0, result.stderr
    checks = json.loads(result.stdout)
    assert len(checks) == 23
    assert all(check["error"] == "" for check in checks)
    assert zinc("mem-test", "--tier", "t_nothing").returncode != 0


def test_pm4_test_says_what_is_missing():
    result = zinc("pm4-test")
    assert result.returncode == 1
    assert "no tier is here whose device can be asked about" in result.stderr
    assert "t1" in result.stderr
    assert "t_cpu has nothing to ask its device with" in zinc("pm4-test", "--tier", "t_cpu").stderr


def test_asm_shows_and_patches_symbols(tmp_path):
    path, out = tmp_path / "add.zrt", tmp_path / "add64.zrt"
    path.write_bytes(zrt_file(["dim:N", "pitch:x"]))
    shown = zinc("asm", path)
    assert shown.returncode == 0, shown.stderr
    assert "kernel add for cpu: 8 bytes of code, 3 buffers" in shown.stdout
    assert "not patched" in shown.stdout
    patched = zinc("asm", path, "--patch", "dim:N=64", "--patch", "pitch:x=0x100", "-o", out, "--json")
    assert json.loads(patched.stdout)["symbols"] == {"dim:N": 64, "pitch:x": 256}
    assert json.loads(zinc("asm", out, "--json").stdout)["symbols"] == {"dim:N": 64, "pitch:x": 256}
    assert "SYMBOL=NUMBER is wanted" in zinc("asm", path, "--patch", "dim:N=x").stderr
    assert zinc("asm", path, "--patch", "dim:M=1").returncode != 0
    assert "none is named" in zinc("asm", "--patch", "dim:N=64").stderr
    path.write_bytes(b"something else")
    assert zinc("asm", path).returncode == 3


def test_replay_refuses_what_is_no_log(tmp_path):
    path = tmp_path / "steps.log"
    path.write_bytes(b"ZRTPKT1\0")
    assert "the log has no start" in zinc("replay", path, "--text").stderr
    assert zinc("replay", tmp_path / "none.log").returncode == 3


def test_trace_says_which_tiers_record_packets(tiny_model, tmp_path):
    result = zinc("trace", tiny_model, "--packets", tmp_path / "steps.log", "--out", tmp_path / "trace.json")
    assert result.returncode != 0
    assert "--packets is for tiers t1 and t2; this engine runs on t_cpu" in result.stderr
