"""The program zinc-rt, run as `python -m zinc_rt` (the same code)."""

import fcntl
import json
import os
import re
import select
import signal
import subprocess
import sys

import numpy as np
import pytest

import gguf_file
import synth_gguf
import zinc_rt
from model_shapes import shape_metadata, tiny
from server_process import PROGRAM

COMMANDS = [
    "run",
    "chat",
    "run-batch",
    "serve",
    "key",
    "info",
    "plan",
    "ir",
    "tiers",
    "tokenize",
    "convert",
    "validate",
    "trace",
    "bench",
    "pm4-test",
    "mem-test",
    "asm",
    "replay",
]


def zinc(*arguments, stdin="", env=None):
    return subprocess.run(
        [sys.executable, "-m", "zinc_rt", *map(str, arguments)],
        input=stdin,
        capture_output=True,
        text=True,
        env={**os.environ, **(env or {})},
        timeout=120,
    )


@pytest.mark.parametrize("command", COMMANDS)
def test_help_shows_an_example(command):
    result = zinc(command, "--help")
    assert result.returncode == 0
    assert f"Example: zinc-rt {command}" in result.stdout


@pytest.mark.parametrize(
    "arguments",
    [[], ["fly"], ["run"], ["info", "--nonsense", "x"], ["run", "x", "-n", "many", "-p", "a"]],
)
def test_bad_usage_is_2(arguments):
    assert zinc(*arguments).returncode == 2


def test_refused_input_is_3(tmp_path):
    bad = tmp_path / "bad.gguf"
    bad.write_bytes(b"GGUF\x03\0\0\0")
    for path in (bad, tmp_path / "none.gguf"):
        result = zinc("info", path)
        assert result.returncode == 3
        assert str(path) in result.stderr


def test_absent_tier_is_1_with_the_fix(tiny_model):
    result = zinc("info", tiny_model, env={"ZINC_RT_TIER": "t_metal"})
    assert result.returncode == 1
    assert re.search(
        "t_metal was asked for but this build does not have it; "
        r"it has: auto, (t_cuda, )?t_cpu, (t1, )?null(, t2)?(, vulkan)?",
        result.stderr,
    )


def test_a_backend_is_that_backend_or_an_error(tiny_model):
    run = ("run", tiny_model, "-p", "the thin", "-n", 3, "--ignore-eos", "--json")
    wanted = json.loads(zinc(*run).stdout)["token_ids"]
    peer = zinc(*run, "--backend", "vulkan", env={"ZINC_RT_VULKAN_DEVICE": "llvmpipe"})
    if peer.returncode == 0:
        assert json.loads(peer.stdout)["token_ids"] == wanted
        assert "llvmpipe" in zinc("tiers", env={"ZINC_RT_VULKAN_DEVICE": "llvmpipe"}).stdout
    else:
        assert peer.returncode == 1 and "vulkan was asked for but " in peer.stderr
    refused = zinc(*run, "--tier", "t_cpu", env={"ZINC_RT_BACKEND": "vulkan"})
    assert refused.returncode != 0
    assert "t_cpu is of backend zinc_rt, but backend vulkan was asked for" in refused.stderr


def test_run_is_python(tiny_model):
    result = zinc("run", tiny_model, "-p", "the thin", "-n", 12, "--ignore-eos", "--json")
    assert result.returncode == 0, result.stderr
    out = json.loads(result.stdout)
    with zinc_rt.Engine(tiny_model) as engine:
        wanted = engine.tenant("t").session().generate("the thin", max_tokens=12, ignore_eos=True)
    assert out["token_ids"] == wanted.token_ids
    assert out["text"] == wanted.text
    assert out["usage"]["total_tokens"] == wanted.usage.total_tokens


def test_run_streams_text(tiny_model):
    result = zinc("run", tiny_model, "--chat", "hello", "--system", "be short", "-n", 4, "--ignore-eos", "--progress")
    assert result.returncode == 0, result.stderr
    with zinc_rt.Engine(tiny_model) as engine:
        session = engine.tenant("t").session(system="be short")
        wanted = session.generate(messages=[{"role": "user", "content": "hello"}], max_tokens=4, ignore_eos=True)
    assert result.stdout == wanted.text + "\n"
    assert "100%" in result.stderr and "4 generated" in result.stderr and "arithmetic exact" in result.stderr


GREEDY = ["--temperature", 0, "--repetition-penalty", 1]


def test_conversation_keeps_the_history(tiny_model):
    result = zinc("chat", tiny_model, "-n", 3, *GREEDY, stdin="one\ntwo\n/reset\n/exit\n")
    assert result.returncode == 0, result.stderr
    with zinc_rt.Engine(tiny_model) as engine:
        session = engine.tenant("t").session()
        first = session.generate(messages=[{"role": "user", "content": "one"}], max_tokens=3).text
        history = [
            {"role": "user", "content": "one"},
            {"role": "assistant", "content": first},
            {"role": "user", "content": "two"},
        ]
        second = session.generate(messages=history, max_tokens=3).text
    assert result.stdout == f"{first}\n{second}\n"


def test_a_conversation_from_a_pipe_whose_last_turn_failed_is_1(tiny_model):
    too_long = "x" * 2000
    assert zinc("chat", tiny_model, "-n", 3, stdin=f"one\n{too_long}\n").returncode == 1
    assert zinc("chat", tiny_model, "-n", 3, stdin=f"{too_long}\n/exit\n").returncode == 1
    assert zinc("chat", tiny_model, "-n", 3, stdin=f"{too_long}\none\n").returncode == 0


def wanted_of(tiny_model, n=3, **request):
    with zinc_rt.Engine(tiny_model) as engine:
        return engine.tenant("t").session().generate(max_tokens=n, ignore_eos=True, **request).text


def test_a_pipe_to_run_is_one_message(tiny_model):
    text = "one\ntwo\n/exit\n"
    result = zinc("run", tiny_model, "-n", 3, "--ignore-eos", stdin=text)
    assert result.stdout == wanted_of(tiny_model, messages=[{"role": "user", "content": text}]) + "\n"
    assert "3 generated" in result.stderr and "[" not in result.stdout


def test_prompts_come_from_files_and_standard_input(tiny_model, tmp_path):
    file = tmp_path / "story.txt"
    file.write_text("the thin\n man")
    run = ["run", "-m", tiny_model, "-c", 256, "-t", 1, "-n", 3, "--ignore-eos"]
    wanted = wanted_of(tiny_model, prompt="the thin\n man") + "\n"
    assert zinc(*run, "-f", file).stdout == wanted
    assert zinc(*run, "-f", "-", stdin="the thin\n man").stdout == wanted
    both = wanted_of(tiny_model, messages=[{"role": "user", "content": "Go on:\n\nthe thin\n man"}]) + "\n"
    assert zinc(*run, "--chat", "Go on:", "-f", file).stdout == both
    missing = zinc(*run, "-f", tmp_path / "none.txt")
    assert missing.returncode == 3 and "none.txt" in missing.stderr
    assert zinc(*run, "-f", tmp_path).returncode == 3
    assert zinc(*run, "-f", file, "-p", "x").returncode == 2


def test_commands_of_a_conversation(tiny_model):
    lines = ["/help", "/rest", "/set temprature 1", "/set temperature x", "/set max_tokens 2", "/set", "one", "/retry",
             "/undo", "/system be short", "/etc/passwd is a path", "/bye"]  # fmt: skip
    result = zinc("chat", tiny_model, *GREEDY, stdin="\n".join(lines) + "\n")
    assert result.returncode == 0
    for words in ("/undo", "did you mean /reset?", "did you mean temperature?", "a number wanted", "max_tokens 2"):
        assert words in result.stderr, words
    one = wanted_of(tiny_model, 2, messages=[{"role": "user", "content": "one"}])
    path = wanted_of(
        tiny_model, 2, messages=[{"role": "system", "content": "be short"}, {"role": "user", "content": lines[-2]}]
    )
    assert result.stdout == f"{one}\n{one}\n{path}\n"


def test_three_quotes_hold_several_lines(tiny_model):
    result = zinc("chat", tiny_model, "-n", 2, *GREEDY, stdin='"""one\n\n/exit\ntwo"""\n')
    assert result.stdout == wanted_of(tiny_model, 2, messages=[{"role": "user", "content": "one\n\n/exit\ntwo"}]) + "\n"


def test_a_conversation_does_not_loop_greedily(tiny_model):
    words = zinc("chat", tiny_model, stdin="").stderr
    assert "temperature 0.7, min_p 0.05, repetition_penalty 1.05" in words
    assert "temperature 0.2" in zinc("chat", tiny_model, "--temperature", 0.2, stdin="").stderr


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["rnu"], "did you mean run?"),
        (["modles"], "did you mean models?"),
        (["run", "x", "--temprature", "1"], "did you mean --temperature?"),
        (["serve", "x", "--apikey=1"], "did you mean --api-key?"),
        (["bench", "serve", "--clints", "3"], "did you mean --clients?"),
    ],
)
def test_a_near_name_is_suggested(arguments, words):
    result = zinc(*arguments)
    assert result.returncode == 2 and words in result.stderr


def test_progress_in_a_pipe_has_lines_and_no_frames(tiny_model):
    words = zinc("run", tiny_model, "-p", "a", "-n", 1, "--progress").stderr
    assert "100%" in words and "\r" not in words


def test_help_is_in_groups_with_defaults():
    words = zinc("--help").stdout
    assert words.index("Use a model:") < words.index("Models by name:") < words.index("Compare and measure:")
    words = zinc("run", "--help").stdout
    assert words.index("Memory and speed:") < words.index("Sampling:") and "f16, f32, q8_0, k8v4, k4v4, i16" in words
    for option, default in (("--max-slots UINT", "64"), ("--tier TEXT", "auto")):  # CLI11 writes =64, from 2.4 on [64]
        assert re.search(rf"{option}(={default}\b| *\[{default}\])", words), words


def test_tensors_of_a_family_that_is_refused_are_shown(tiny_model, tmp_path):
    other = tmp_path / "other.gguf"
    other.write_bytes(tiny_model.read_bytes().replace(b"llama", b"lemma"))
    assert zinc("info", other).returncode != 0
    result = zinc("info", other, "--tensors")
    assert result.returncode == 0 and "blk.0.attn_q.weight" in result.stdout
    listed = json.loads(zinc("info", other, "--tensors", "--json").stdout)
    assert listed["tensors"][0]["bytes"] > 0


def test_tensors_come_with_what_hinders_the_file_by_its_name(tmp_path):
    shape = tiny("llama")
    odd = "blk.0.attn_wings.weight"

    def said(change_keys, change_tensors=lambda tensors: None):
        keys = shape_metadata(shape, "odd")
        tensors = synth_gguf.contents(shape, synth_gguf.preset("Q8_0"))
        change_tensors(tensors)
        path = tmp_path / "odd.gguf"
        gguf_file.write(path, change_keys(keys), tensors)
        result = zinc("info", path, "--tensors", "--tier", "t_cpu", "--json")
        assert result.returncode == 0, result.stderr
        listed = json.loads(result.stdout)
        assert len(listed["tensors"]) == len(tensors)
        shown = zinc("info", path, "--tensors", "--tier", "t_cpu").stdout
        assert ("This file does not run:" in shown) == bool(listed["hindrances"])
        assert all(f"\n  {one}\n" in shown for one in listed["hindrances"])
        return listed["hindrances"]

    assert said(lambda keys: keys) == []
    other = {"general.architecture": "martian"}
    (one,) = said(lambda keys: {key.replace("llama.", "martian."): value for key, value in keys.items()} | other)
    assert 'architecture "martian" is not supported' in one
    (one,) = said(lambda keys: keys, lambda tensors: tensors.update({odd: np.ones((4, 4), np.float32)}))
    assert f'tensor "{odd}" is not one that this family knows; 22 tensors are used of 23' in one
    (one,) = said(lambda keys: keys, lambda tensors: tensors.pop("blk.1.attn_q.weight"))
    assert 'tensor "blk.1.attn_q.weight" is missing' in one
    (one,) = said(lambda keys: {key: value for key, value in keys.items() if key != "llama.attention.head_count"})
    assert 'key "llama.attention.head_count": needed' in one
    both = {"llama.attention.warp_scale": 2.0, "tokenizer.ggml.pre": "klingon"}
    key, pre = said(lambda keys: keys | both)
    assert 'key "llama.attention.warp_scale" (2) is not known' in key
    assert 'tokenizer.ggml.pre "klingon" is not supported' in pre


def test_a_type_that_no_file_has_is_named_with_its_tensor(tmp_path):
    path = tmp_path / "odd.gguf"
    raw = bytes(4 * 34)
    gguf_file.write(path, {"general.architecture": "llama"}, {"blk.0.attn_q.weight": ((4, 32), 77, raw)})
    result = zinc("info", path, "--tensors")
    assert result.returncode != 0
    assert 'tensor "blk.0.attn_q.weight": unknown tensor type 77' in result.stderr


def test_tensors_say_what_they_are_computed_as(tmp_path):
    model = tmp_path / "bf16.gguf"
    assert synth_gguf.main(["tiny-llama", "-o", str(model), "--types", "BF16", "--width", "256"]) == 0
    listed = {t["name"]: t for t in json.loads(zinc("info", model, "--tensors", "--json").stdout)["tensors"]}
    assert listed["blk.0.attn_q.weight"]["type"] == "bf16" and listed["blk.0.attn_q.weight"]["computed"] == "fixed16"
    assert listed["output_norm.weight"]["type"] == listed["output_norm.weight"]["computed"] == "f32"
    assert re.search(r"blk\.0\.attn_q\.weight +bf16 +fixed16 ", zinc("info", model, "--tensors").stdout)
    with zinc_rt.Engine(model) as engine:
        card = engine.model_card()
    fixed = sum(t["bytes"] for t in listed.values() if t["computed"] == "fixed16")
    assert card["weight_bytes_by_format"]["bf16"] >= fixed
    assert card["computed_bytes_by_format"]["fixed16"] == fixed * 514 // 512
    with zinc_rt.Engine(model, activations="f32") as engine:
        assert engine.model_card()["computed_bytes_by_format"] == card["weight_bytes_by_format"]


def test_sizes_are_readable(tiny_model):
    assert re.search(r"file_bytes +[0-9.]+ [kM]B \([0-9]+ bytes\)", zinc("info", tiny_model).stdout)
    plan = zinc("plan", tiny_model).stdout
    assert "when used" in plan and "take memory only as requests fill them" in plan


def test_the_example_of_validate_ends_equal(tiny_model):
    example = re.search(r"--tiers (t_cpu\S+)", zinc("validate", "--help").stdout)[1]
    result = zinc("validate", tiny_model, "--prompt", "Hello", "--tiers", example, "--layers", "all")
    assert result.returncode == 0 and result.stdout.rstrip().splitlines()[-1].startswith("EQUAL")


@pytest.mark.parametrize("to", ["gguf", "mlc"])
@pytest.mark.parametrize("by", [signal.SIGINT, signal.SIGTERM])
def test_a_conversion_that_is_stopped_leaves_nothing(tiny_model, tmp_path, to, by):
    out, into = os.pipe()
    n = fcntl.fcntl(into, fcntl.F_SETPIPE_SZ, 4096)
    os.write(into, b" " * n)  # its first word on how far it is waits for a reader
    process = subprocess.Popen(
        [*PROGRAM, "convert", tiny_model, tmp_path / "out", "--to", to, "--progress"], stderr=into
    )
    os.close(into)
    while not list(tmp_path.glob("*.part")):
        assert process.poll() is None
    process.send_signal(by)
    with open(out, "rb") as words:
        assert b"stopped" in words.read()
    assert process.wait(60) == -by
    assert list(tmp_path.iterdir()) == []


def answer_that_is_stopped_at_once(model):
    process = subprocess.Popen(
        [*PROGRAM, "chat", model, "-n", "4", "--chunk-cap", "1", "--threads", "1", "--kernels", "ref"],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    process.stderr.readline()  # from its first words on it takes signals
    process.stdin.write("x" * 470 + "\n")
    process.stdin.flush()
    while not select.select([process.stdout], [], [], 0.001)[0]:
        process.send_signal(signal.SIGINT)
    answer = process.communicate(timeout=60)[0]
    assert process.returncode == 0
    return answer


def test_ctrl_c_stops_an_answer_before_its_first_token(tiny_model):
    # On a busy machine the signal may come late; then another answer is stopped.
    assert any(answer_that_is_stopped_at_once(tiny_model) == "\n" for _ in range(60))


@pytest.mark.parametrize(
    "command", [["ir"], ["info"], ["run", "-p", "a", "-n", "2"], ["tokenize", "a"], ["chat", "-n", "2"]]
)
def test_an_output_that_is_full_is_an_error(tiny_model, command):
    name, *arguments = command
    with open("/dev/full", "w") as full:
        result = subprocess.run(
            [*PROGRAM, name, tiny_model, *arguments], input="a\n", stdout=full, stderr=subprocess.PIPE, text=True
        )
    assert result.returncode == 1
    assert "cannot write to standard output: No space left on device" in result.stderr


def test_an_output_that_nobody_reads_is_no_news(tiny_model):
    process = subprocess.Popen([*PROGRAM, "ir", tiny_model], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    process.stdout.close()
    assert process.wait(60) != 0 and process.stderr.read() == b""


def test_options_that_may_be_repeated_leave_the_model_alone(tiny_model):
    result = zinc("run", "--stop", "qqq", "--stop", "zzz", tiny_model, "-p", "the", "-n", 2)
    assert result.returncode == 0, result.stderr
    missing = tiny_model.with_name("none.gguf")
    assert str(missing) in zinc("serve", "--cors-origin", "https://a", missing, "--port", 0, "--state", "none").stderr


def test_an_empty_chat_message_is_a_chat(tiny_model):
    result = zinc("run", tiny_model, "--chat", "", "-n", 2, "--ignore-eos", "--json")
    assert json.loads(result.stdout)["usage"]["prompt_tokens"] > 5  # the template's
    assert zinc("run", tiny_model, "-p", "a", "--system", "be short").returncode == 2


@pytest.mark.parametrize("seed", ["-1", "99999999999999999999", "1e3"])
def test_a_seed_has_64_bits(tiny_model, seed):
    result = zinc("run", tiny_model, "-p", "a", "--seed", seed)
    assert result.returncode == 2 and "0 to 18446744073709551615" in result.stderr
    assert zinc("run", tiny_model, "-p", "a", "-n", 1, "--seed", 2**64 - 1).returncode == 0


def test_a_folder_is_no_scenario(tmp_path):
    result = zinc("sched-test", "--scenario", tmp_path)
    assert result.returncode == 3 and str(tmp_path) in result.stderr


def test_info_and_plan(tiny_model):
    card = json.loads(zinc("info", tiny_model, "--json").stdout)
    with zinc_rt.Engine(tiny_model) as engine:
        assert card == json.loads(json.dumps(engine.model_card()))
    assert "model_dim" in zinc("info", tiny_model).stdout
    plan = json.loads(zinc("plan", tiny_model, "--json", "--max-slots", 2).stdout)
    assert plan["allocated_bytes"] == sum(r["bytes"] for r in plan["regions"] if not r["mapped"])
    assert "kv_pages" in zinc("plan", tiny_model).stdout


def test_ir(tiny_model):
    text = zinc("ir", tiny_model, "--stage", "prefill").stdout
    assert text.startswith('graph "llama" stage prefill') and "RMS_NORM(" in text
    lowered = zinc("ir", tiny_model, "--lowered").stdout
    assert "RMS_NORM_FUSED_QKV(" in lowered and "RMS_NORM(act.hidden" not in lowered


def test_tiers():
    out = json.loads(zinc("tiers", "--json").stdout)
    names = {t["name"] for t in out["tiers"]}
    # t_cuda: where a CUDA compiler was; t1, t2: where clang-22 was; vulkan: where glslc was
    assert {"t_cpu", "null"} <= names <= {"t_cuda", "t_cpu", "t1", "t2", "null", "vulkan"}
    assert [e["name"] for e in out["executors"]] == ["ring", "vulkan"]
    assert {t["executor"] for t in out["tiers"] if t["name"] != "vulkan"} == {"ring"}
    has_gpu = any(t["name"] == "t_cuda" and t["available"] for t in out["tiers"])
    assert out["chosen"] == ("t_cuda" if has_gpu else "t_cpu")
    threads = out["threads"]
    assert 1 <= threads["default"] <= threads["cores"] <= threads["processors"]
    assert f"t_cpu takes {threads['default']} thread" in zinc("tiers").stdout
    (details,) = [t["details"] for t in out["tiers"] if t["name"] == "t_cpu"]
    assert details.startswith("kernels ") and "ref" in details
    if not has_gpu:
        (line,) = [line for line in out["rejected"] if line.startswith("t_cuda: ")]
        assert line != "t_cuda: not in this build", "the reason is missing"
    names = {v["name"] for v in json.loads(zinc("tiers", "--env", "--json").stdout)}
    assert {"ZINC_RT_TIER", "ZINC_RT_ARITH", "ZINC_RT_CPU_KERNELS", "ZINC_RT_CPU_WORKERS", "ZINC_RT_CHUNK_CAP"} <= names
    assert {"ZINC_RT_BATCHED_PREFILL", "ZINC_RT_FUSION", "ZINC_RT_LOG"} <= names


def test_tokenize(tiny_model):
    out = json.loads(zinc("tokenize", tiny_model, "the <|end|>", "--json").stdout)
    assert out == zinc_rt.Tokenizer(str(tiny_model)).encode("the <|end|>")
    plain = json.loads(zinc("tokenize", tiny_model, "the <|end|>", "--json", "--no-parse-special").stdout)
    assert len(plain) > len(out)


def test_trace(tiny_model, tmp_path):
    path = tmp_path / "trace.json"
    load = ("--tenants", 3, "--requests", 3, "-n", 8, "--max-slots", 2)
    result = zinc("trace", tiny_model, "--out", path, *load, "--json")
    assert result.returncode == 0, result.stderr
    out = json.loads(result.stdout)
    assert [t["qos_class"] for t in out["tenants"]] == ["batch", "standard", "interactive"]
    assert [(t["requests_finished"], t["tokens_generated"]) for t in out["tenants"]] == [(3, 24)] * 3
    assert any(event["name"] == "execute" for event in json.loads(path.read_text())["traceEvents"])
    table = zinc("trace", tiny_model, "--out", path, *load)
    assert table.returncode == 0 and "tenant-3     interactive" in table.stdout
    assert zinc("trace", tiny_model, "--out", tmp_path / "nowhere" / "a.json", *load).returncode in (1, 3)
    assert zinc("trace", tiny_model, "--tenants", 0).returncode == 2


@pytest.mark.parametrize("name", ["/dev/stdout", "/dev/fd/1", "/proc/self/fd/1", "link"])
def test_an_output_may_be_a_descriptor(tiny_model, tmp_path, name):
    (tmp_path / "link").symlink_to("/dev/stdout")
    file = tmp_path / "file"
    with file.open("wb") as out:
        out.write(b"before\n")
        out.flush()
        load = ["--tenants", "1", "--requests", "1", "-n", "2"]
        command = [*PROGRAM, "trace", tiny_model, "--out", tmp_path / name, *load]
        assert subprocess.run(command, stdout=out, timeout=60).returncode == 0
        os.write(out.fileno(), b"behind\n")
    text = file.read_text()
    assert text.startswith("before\n") and text.endswith("behind\n") and '"traceEvents"' in text
    assert sorted(path.name for path in tmp_path.iterdir()) == ["file", "link"]


def positive(samples, n):
    return len(samples["values"]) == n and 0 < samples["min"] <= samples["median"] <= samples["max"]


def test_bench(tiny_model, tmp_path):
    out, page = tmp_path / "speed.json", tmp_path / "speed.md"
    load = ("--prompt", 40, "--gen", 6, "--batch", "1,3", "--context", "24,100000", "--reps", 2, "--threads", 1)
    result = zinc("bench", tiny_model, *load, "--kernels", "ref", "--roofline", "--json", out, "--markdown", page)
    assert result.returncode == 0, result.stderr
    report = json.loads(out.read_text())
    ran = report["ran"]
    assert (ran["tier"], ran["arithmetic"], ran["threads"], ran["kv_dtype"]) == ("t_cpu", "exact", 1, "i16")
    assert "kernels ref" in ran["device"] and ran["file_bytes"] == tiny_model.stat().st_size
    assert (ran["clamps"], ran["reps"]) == ([], 2)
    # The model holds 512 tokens, of which 2 * 6 + 1 are decoded.
    wanted = [("prefill", 1, 0), ("decode", 1, 16), ("batch", 1, 16), ("batch", 3, 16)]
    wanted += [("context", 1, 24), ("context", 1, 495)]
    assert [(r["phase"], r["streams"], r["context"]) for r in report["rows"]] == wanted
    assert all(positive(r["tokens_per_s"], 2) for r in report["rows"])
    roof = report["roofline"]
    assert "int8_peak" not in roof  # the reference has no such instructions
    assert [r["threads"] for r in roof["read_rates"]] == [1, 1]
    assert all(positive(r["gb_per_s"], 2) for r in roof["read_rates"])
    assert [r["row"] for r in roof["rows"]] == list(range(len(wanted)))
    card = json.loads(zinc("info", tiny_model, "--json").stdout)
    for r, row in zip(report["rows"], roof["rows"], strict=True):
        assert row["step_ms"] > 0 and row["gop_per_s"] > 0
        if r["phase"] == "prefill":
            continue
        assert row["weight_bytes"] == card["weight_bytes_read_per_token"] and row["of_large"] > 0
        assert row["kv_bytes"] == card["kv_bytes_per_token"] * r["streams"] * (r["context"] + r["tokens"] // 2)
    for text in (result.stdout, page.read_text()):
        assert "kernels ref" in text and "clamps: none" in text and "6 tokens at a context of 495" in text


def test_bench_int8_peak(tiny_model, tmp_path):
    out = tmp_path / "speed.json"
    load = ("--only", "prefill", "--prompt", 40, "--reps", 2, "--threads", 1)
    result = zinc("bench", tiny_model, *load, "--roofline", "--json", out)
    assert result.returncode == 0, result.stderr
    report = json.loads(out.read_text())
    if "kernels ref" in report["ran"]["device"]:
        pytest.skip("this processor runs the reference only")
    peak, row = report["roofline"]["int8_peak"], report["roofline"]["rows"][0]
    assert f"kernels {peak['kernels']}" in report["ran"]["device"] and peak["threads"] == 1
    assert positive(peak["gop_per_s"], 2) and 0 < row["matrix_gop"] < row["gop"]
    part = row["matrix_gop"] / row["step_ms"] * 1e3 / peak["gop_per_s"]["median"]
    assert row["of_int8_peak"] == pytest.approx(part)


def test_bench_refuses_what_it_cannot_measure(tiny_model, tmp_path):
    assert zinc("bench", tiny_model, "--only", "sampling").returncode == 2
    assert zinc("bench", tiny_model, "--batch", 0).returncode == 2
    too_long = zinc("bench", tiny_model, "--only", "prefill", "--prompt", 4000)
    assert too_long.returncode == 3 and "4000" in too_long.stderr
    assert zinc("bench", tmp_path / "none.gguf").returncode == 3


def test_keys_are_not_shown(tiny_model):
    for more in ([], ["--json"]):
        words = zinc("tiers", "--env", *more, env={"ZINC_RT_API_KEY": "sesame", "HF_TOKEN": "open"}).stdout
        assert "sesame" not in words and "HF_TOKEN" in words and "(set)" in words
