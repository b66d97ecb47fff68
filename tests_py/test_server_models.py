"""Files that the API may load as models, and models whose weights are broken."""

import os
import signal
import subprocess

import numpy as np
import pytest

import tiny_model as tiny
from server_process import PROGRAM, serving


def load(server, path, **more):
    return server.request("POST", "/v1/models/load", {"path": str(path), **more})


@pytest.fixture(scope="module")
def folders(tiny_model, tmp_path_factory):
    root = tmp_path_factory.mktemp("folders")
    inside, outside = root / "inside", root / "outside"
    for folder in (inside, outside, inside / "hollow", inside / "leading", root / "inside2"):
        folder.mkdir()
    whole = tiny_model.read_bytes()
    for path in (inside / "good.gguf", outside / "good.gguf", root / "inside2" / "good.gguf"):
        path.write_bytes(whole)
    (inside / "empty.gguf").touch()
    (inside / "random.gguf").write_bytes(np.random.default_rng(1).bytes(4096))
    (inside / "cut.gguf").write_bytes(whole[: len(whole) // 2])
    (inside / "version.gguf").write_bytes(whole[:4] + bytes(4) + whole[8:])
    (inside / "link.gguf").symlink_to(inside / "good.gguf")
    (inside / "out.gguf").symlink_to(outside / "good.gguf")
    (inside / "nowhere.gguf").symlink_to(inside / "absent.gguf")
    (inside / "loop.gguf").symlink_to(inside / "loop.gguf")
    (inside / "leading" / "mlc-chat-config.json").symlink_to("/etc/passwd")
    os.mkfifo(inside / "fifo.gguf")
    return root


@pytest.fixture(scope="module")
def server(tiny_model, folders):
    with serving(tiny_model, "--id", "tiny", "--max-slots", 2, "--models-dir", folders / "inside") as server:
        yield server


def test_a_model_is_loaded_on_the_devices_that_are_named(tiny_model):
    with serving(tiny_model, "--id", "tiny", "--max-slots", 2) as server:
        status, _, answer = load(server, tiny_model, id="two", devices=[0, 1])
        assert status == 200, answer
        assert answer["devices"] == [0, 1]
        for devices, why in [([0, 0], "devices"), ([], "devices"), ("0", "numbers of devices"), ([-1], "numbers of")]:
            status, _, answer = load(server, tiny_model, id="three", devices=devices)
            assert status == 400 and why in answer["error"]["message"], answer


REFUSED = {
    "inside/absent.gguf": 404,
    "inside/good.gguf/x": 404,
    "inside/nowhere.gguf": 404,
    "inside/loop.gguf": 400,
    "inside/fifo.gguf": 400,
    "inside/empty.gguf": 422,
    "inside/random.gguf": 422,
    "inside/cut.gguf": 422,
    "inside/version.gguf": 422,
    "inside/hollow": 422,
    "inside/leading": 403,
    "inside/out.gguf": 403,
    "inside/../outside/good.gguf": 403,
    "inside2/good.gguf": 403,
    "outside/good.gguf": 403,
    "outside/absent.gguf": 403,
    "/etc/passwd": 403,
    "/proc/self/mem": 403,
    "/dev/zero": 403,
    "": 400,
    "inside/good.gguf\0.txt": 400,
    "inside/good\n.gguf": 400,
}


@pytest.mark.parametrize("path", REFUSED)
def test_what_is_no_model_of_the_folders_is_refused_by_its_cause(server, folders, path):
    code, headers, body = load(server, f"{folders}/{path}" if path and path[0] != "/" else path)
    assert (code, body["error"]["param"]) == (REFUSED[path], "path"), body
    assert "Retry-After" not in headers
    assert [model["id"] for model in server.request("GET", "/v1/models")[2]["data"]] == ["tiny"]


@pytest.mark.parametrize("name", ["good", "link"])
def test_a_file_of_the_folders_is_loaded(server, folders, name):
    code, _, body = load(server, folders / "inside" / f"{name}.gguf", max_slots=1)
    assert (code, body["id"]) == (200, name)
    assert server.request("POST", "/v1/models/unload", {"id": name})[0] == 200


def test_a_draft_model_is_a_file_of_the_folders_too(server, folders):
    good = folders / "inside" / "good.gguf"
    for draft, status in ((folders / "outside" / "good.gguf", 403), (folders / "inside" / "absent.gguf", 404)):
        code, _, body = load(server, good, id="drafted", max_slots=1, draft_model=str(draft))
        assert (code, body["error"]["param"]) == (status, "draft_model"), body
    code, _, body = load(server, good, id="drafted", max_slots=1, draft_model=str(good))
    assert code == 200 and sorted(body["draft_model"]) == ["architecture", "n_parameters", "name"], body
    assert server.request("POST", "/v1/models/unload", {"id": "drafted"})[0] == 200


@pytest.mark.parametrize("name", ["", "two\nlines", "a\u0085b", "a\u2028b", "x" * 257])
def test_a_name_that_would_break_a_log_line_is_refused(server, folders, name):
    code, _, body = load(server, folders / "inside" / "good.gguf", id=name)
    assert (code, body["error"]["param"]) == (400, "id")


def test_folders_are_those_of_the_models_unless_they_are_named(tiny_model, folders, tmp_path):
    with serving(folders / "inside" / "good.gguf", "--id", "tiny", "--max-slots", 2) as server:
        assert load(server, folders / "inside" / "link.gguf", max_slots=1)[0] == 200
        assert load(server, folders / "outside" / "good.gguf", id="other")[0] == 403
    (tmp_path / "zinc.toml").write_text(
        f'[server]\nmodel_dirs = []\n[[models]]\npath = "{folders}/inside/good.gguf"\nmax_slots = 2\n'
    )
    with serving("--config", tmp_path / "zinc.toml", log_path=tmp_path / "log", env={"ZINC_RT_LOG": "info"}) as server:
        assert load(server, folders / "inside" / "link.gguf")[0] == 403
        text = (tmp_path / "zinc.toml").read_text()
        for dirs, code in (("/nowhere", 403), (folders / "inside", 200)):
            (tmp_path / "zinc.toml").write_text(text.replace("[]", f'["{dirs}"]'))
            server.process.send_signal(signal.SIGHUP)
            n = {403: "nothing was changed: [models] /nowhere is no folder", 200: "read again"}[code]
            server.wait(lambda words=n: words in (tmp_path / "log").read_text())
            assert load(server, folders / "inside" / "link.gguf", max_slots=1)[0] == code


def test_what_is_changed_in_the_file_is_taken_over_or_wants_a_restart(tiny_model, tmp_path):
    """Each key of a model has another model made of it (tests_cpp/server/config_test.cpp goes through all)."""
    path, log = tmp_path / "zinc.toml", tmp_path / "log"
    text = f'[server]\ncors_origins = []\n[[models]]\npath = "{tiny_model}"\nid = "tiny"\nmax_slots = 2\n'
    path.write_text(text)
    with serving("--config", path, log_path=log, env={"ZINC_RT_LOG": "info"}) as server:
        path.write_text(text + "standard_gap_ms = 20\n")
        server.process.send_signal(signal.SIGHUP)
        server.wait(lambda: "model tiny was replaced" in log.read_text())
        path.write_text(text.replace("[]", '["https://a.example"]') + "standard_gap_ms = 20\n")
        server.process.send_signal(signal.SIGHUP)
        server.wait(lambda: "server.cors_origins was changed, which only a restart takes over" in log.read_text())
    assert log.read_text().count("was replaced") == 1


def breaking(tensor, value):
    def change(name, values):
        if name == tensor:
            values.flat[:] = value
        return values

    return change


BROKEN = {
    "nan": breaking("output_norm.weight", np.nan),
    "infinite": breaking("output_norm.weight", np.inf),
    "layer": breaking("blk.1.ffn_down.weight", np.inf),
}
WAYS = {
    "greedy": {"temperature": 0},
    "drawn": {"temperature": 1},
    "typical": {"typical_p": 0.5},
    "penalties": {"temperature": 0, "presence_penalty": 1},
    "bias": {"temperature": 0, "logit_bias": {"5": 10}},
    "logprobs": {"logprobs": 3},
    "scores": {"prompt_logprobs": 2, "max_tokens": 0},
    "scores and a token": {"prompt_logprobs": 2, "max_tokens": 1},
    "choices": {"n": 3},
    "echo": {"echo": True, "logprobs": 1},
}


@pytest.fixture(scope="module", params=BROKEN)
def broken(request, tmp_path_factory):
    path = tmp_path_factory.mktemp("broken") / "broken.gguf"
    tiny.write(path, change=BROKEN[request.param])
    return path


def test_a_model_with_broken_weights_answers_with_an_error(broken, tiny_model, tmp_path):
    (tmp_path / "zinc.toml").write_text(
        "".join(f'[[models]]\npath = "{path}"\nmax_slots = 4\n' for path in (tiny_model, broken))
    )
    good = {"model": "tiny", "prompt": [5, 6, 7, 8] * 5, "max_tokens": 8, "temperature": 0, "ignore_eos": True}
    with serving("--config", tmp_path / "zinc.toml") as server:
        before = server.request("POST", "/v1/completions", good)[2]["choices"][0]["text"]
        for way, fields in WAYS.items():
            body = {"model": "broken", "prompt": [5, 6, 7, 8] * 20, "max_tokens": 4, **fields}
            code, headers, answer = server.request("POST", "/v1/completions", body)
            assert (code, answer["error"]["code"]) == (500, "bad_logits"), way
            assert headers["x-should-retry"] == "false" and "finite" in answer["error"]["message"]
        code, _, answer = server.request(
            "POST", "/v1/completions", {**body, "logprobs": None, "echo": None, "stream": True}
        )
        assert code == 200 and b'"code":"bad_logits"' in answer and b"[DONE]" not in answer

        def health(model):
            return server.request("GET", f"/v1/models/{model}")[2]["health"]

        server.wait(lambda: health("broken")["bad_logits"] > 0)
        assert health("broken")["status"] == "bad_logits" and health("tiny") == {"status": "ok", "bad_logits": 0}
        code, _, ready = server.request("GET", "/readyz")
        assert code == 200 and ready["models_with_bad_logits"] == ["broken"]
        assert server.request("POST", "/v1/completions", good)[2]["choices"][0]["text"] == before


def test_run_says_that_a_model_is_broken(broken):
    done = subprocess.run(
        [*PROGRAM, "run", broken, "-p", "hello", "-n", "4"], capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 1 and "finite" in done.stderr and "!" not in done.stdout


def test_one_token_that_breaks_is_its_prompts_alone(tmp_path):
    def change(name, values):
        if name == "token_embd.weight":
            values[300] = np.nan
        return values

    tiny.write(tmp_path / "one.gguf", change=change)
    with serving(tmp_path / "one.gguf", "--max-slots", 4) as server:
        body = {"prompt": [5, 6, 7] * 9, "max_tokens": 6, "temperature": 0, "ignore_eos": True}
        code, _, before = server.request("POST", "/v1/completions", body)
        assert code == 200  # its logit is never the largest
        for _ in range(3):
            assert server.request("POST", "/v1/completions", {**body, "prompt": [5, 300] * 30})[0] == 500
            scored = {**body, "prompt": [300] + [5] * 30, "prompt_logprobs": 0, "max_tokens": 0}
            assert server.request("POST", "/v1/completions", scored)[0] == 500
            assert server.request("POST", "/v1/completions", body)[2]["choices"] == before["choices"]


def test_a_reload_that_cannot_load_a_model_removes_none(tiny_model, tmp_path):
    """A file that was mistyped in the configuration, or is not there yet: what is served stays."""
    path, log = tmp_path / "zinc.toml", tmp_path / "log"
    other = tmp_path / "other.gguf"
    text = f'[[models]]\npath = "{tiny_model}"\nmax_slots = 2\n'
    path.write_text(text)
    ask = {"prompt": "a", "max_tokens": 2}
    with serving("--config", path, log_path=log, env={"ZINC_RT_LOG": "info"}) as server:
        own = server.request("GET", "/v1/models")[2]["data"][0]["id"]
        path.write_text(text.replace(str(tiny_model), str(other)))
        server.process.send_signal(signal.SIGHUP)
        server.wait(lambda: f"model {own} stays" in log.read_text())
        assert server.request("POST", "/v1/completions", {**ask, "model": own})[0] == 200
        other.write_bytes(tiny_model.read_bytes())
        server.process.send_signal(signal.SIGHUP)
        server.wait(lambda: f"model {own} was unloaded" in log.read_text())
        assert [m["id"] for m in server.request("GET", "/v1/models")[2]["data"]] == ["other"]
        assert server.request("POST", "/v1/completions", ask)[0] == 200
