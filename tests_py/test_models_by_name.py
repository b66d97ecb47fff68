"""Models by name: zinc-rt models, pull, alias, rm, and names where a path may stand. The sites are stand-ins."""

import contextlib
import hashlib
import http.server
import json
import os
import shutil
import subprocess
import sys
import threading

import pytest

from hub_server import hub_server
from server_process import PROGRAM


@pytest.fixture
def hub():
    with hub_server() as hub:
        yield hub


@pytest.fixture
def zinc(hub, tmp_path):
    folder = tmp_path / "models"
    env = {k: v for k, v in os.environ.items() if not k.lower().endswith("_proxy") and k != "HF_TOKEN"}
    env |= {"ZINC_RT_MODELS": str(folder), "HF_ENDPOINT": hub.url + "/", "ZINC_RT_OLLAMA_REGISTRY": hub.url}

    def run(*arguments, code=0, more_env=None, **options):
        command = [*PROGRAM, *map(str, arguments)]
        result = subprocess.run(
            command, capture_output=True, text=True, env=env | (more_env or {}), timeout=120, **options
        )
        assert result.returncode == code, result.stderr
        return result

    run.folder = folder
    return run


def names(zinc):
    return [model["name"] for model in json.loads(zinc("models", "--json").stdout)["models"]]


@pytest.fixture
def weights(tiny_model):
    return tiny_model.read_bytes()


def test_an_empty_folder_says_what_to_do(zinc):
    words = zinc("models").stdout
    assert str(zinc.folder) in words and "zinc-rt pull" in words
    assert "smollm2" in zinc("models", "--catalogue").stdout


def test_a_repository_is_pulled_once_with_its_hash(zinc, hub, weights):
    hub.repositories["a/Tiny-GGUF"] = {"README.md": b"x", "Tiny-Q4_K_M.gguf": weights, "Tiny-Q8_0.gguf": b"GGUFother",
                                       "mmproj-Tiny-F16.gguf": b"GGUFx"}  # fmt: skip
    first = zinc("pull", "a/Tiny-GGUF")
    stored = zinc.folder / "Tiny-Q4_K_M.gguf"
    assert stored.read_bytes() == weights and "sha256 as the site says" in first.stdout
    assert "zinc-rt chat Tiny-Q4_K_M" in first.stdout and "\r" not in first.stderr
    beside = json.loads((zinc.folder / "Tiny-Q4_K_M.gguf.json").read_text())
    assert beside["source"] == "hf:a/Tiny-GGUF" and beside["sha256"] == hashlib.sha256(weights).hexdigest()
    n_requests = len(hub.requests)
    assert "already" in zinc("pull", "hf.co/a/Tiny-GGUF").stdout
    assert len(hub.requests) == n_requests + 1  # the list alone
    (model,) = json.loads(zinc("models", "--json").stdout)["models"]
    assert model["family"] == "llama" and model["source"] == "hf:a/Tiny-GGUF" and model["memory_bytes"] > 0
    assert zinc("run", "tiny-q4_k_m", "-p", "a", "-n", "2", "--ignore-eos", "--json").returncode == 0


def test_quants_and_files_are_chosen_by_name(zinc, hub, weights):
    hub.repositories["a/b"] = {f"m-{q}.gguf": weights + q.encode() for q in ("Q4_K_S", "Q4_K_M", "Q8_0", "IQ4_XS")}
    for tag, wanted in (("q8_0", "m-Q8_0"), ("Q4_K_S", "m-Q4_K_S"), ("m-IQ4_XS.gguf", "m-IQ4_XS")):
        assert json.loads(zinc("pull", f"a/b:{tag}", "--json").stdout)["name"] == wanted
    words = zinc("pull", "a/b:Q6_K", code=3).stderr
    assert "Q6_K" in words and "m-Q4_K_M.gguf" in words
    assert "Q4_K" in zinc("pull", "a/b:Q4_K", code=3).stderr  # not Q4_K_M


def test_a_split_model_is_one(zinc, hub, weights):
    parts = {f"big/M-Q4_0-0000{i}-of-00003.gguf": weights + bytes([i]) * 100 for i in (1, 2, 3)}
    hub.repositories["a/b"] = parts
    out = json.loads(zinc("pull", "a/b", "--json").stdout)
    assert len(out["files"]) == 3 and out["name"] == "M-Q4_0" and names(zinc) == ["M-Q4_0"]
    zinc("rm", "M-Q4_0")
    assert names(zinc) == [] and not list(zinc.folder.glob("*.gguf"))


@pytest.mark.parametrize("takes_ranges", [True, False])
def test_a_transfer_that_is_cut_off_goes_on(zinc, hub, weights, takes_ranges):
    hub.repositories["a/b"] = {"m.gguf": weights}
    hub.cut_after, hub.takes_ranges = 100_000, takes_ranges
    words = zinc("pull", "a/b", code=1).stderr
    assert "same command goes on" in words
    part = zinc.folder / "m.gguf.part"
    assert part.read_bytes() == weights[: part.stat().st_size] and names(zinc) == []
    out = json.loads(zinc("pull", "a/b", "--json").stdout)
    assert out["files"][0]["resumed_bytes"] == (100_000 if takes_ranges else 0)
    assert (zinc.folder / "m.gguf").read_bytes() == weights and not part.exists()


def test_another_hash_size_or_content_is_refused(zinc, hub, weights):
    hub.repositories["a/b"] = {"m.gguf": weights}
    hub.wrong_hash = True
    assert "0" * 64 in zinc("pull", "a/b", code=3).stderr
    hub.repositories["plain/files"] = {"page.gguf": b"<!doctype html>" * 100}
    assert "no GGUF file" in zinc("pull", f"{hub.url}/files/page.gguf", code=3).stderr
    assert names(zinc) == [] and not list(zinc.folder.glob("*"))


def test_what_is_no_model_gets_no_name(zinc, hub, weights):
    empty = b"GGUF" + (3).to_bytes(4, "little") + bytes(16)  # version 3, neither tensors nor keys
    for data, words in ((empty, "without tensors"), (weights[:-1000], "m.gguf"), (empty[:20], "m.gguf")):
        hub.repositories["plain/files"] = {"m.gguf": data}
        assert words in zinc("pull", f"{hub.url}/files/m.gguf", code=3).stderr
        assert names(zinc) == [] and not list(zinc.folder.glob("*"))


@pytest.mark.parametrize("length, words", [(str(10**15), "GB are free"), (None, "does not say how long it is")])
def test_a_length_is_neither_reserved_nor_guessed(zinc, length, words):
    """A length beyond memory and disk, and a body in chunks that does not end."""

    class Endless(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, *_):
            pass

        def do_GET(self):
            self.send_response(200)
            self.send_header(*(("Content-Length", length) if length else ("Transfer-Encoding", "chunked")))
            self.end_headers()
            block = b"GGUF" + bytes(65532)
            chunk = block if length else b"%x\r\n%s\r\n" % (len(block), block)
            with contextlib.suppress(OSError):
                while True:
                    self.wfile.write(chunk)

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Endless) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        url = f"http://127.0.0.1:{server.server_port}/m.gguf"
        result = zinc("pull", url, code=1)
        server.shutdown()
    assert words in result.stderr


def test_urls_and_ollama_names(zinc, hub, weights):
    hub.repositories["plain/files"] = {"m.gguf": weights}
    words = zinc("pull", f"{hub.url}/files/m.gguf", "--as", "mine").stdout
    assert hashlib.sha256(weights).hexdigest() in words and names(zinc) == ["mine"]
    hub.repositories["library/tiny"] = {"latest": weights, "1b": weights + b"1"}
    assert json.loads(zinc("pull", "ollama:tiny:1b", "--json").stdout)["name"] == "tiny-1b"
    assert json.loads(zinc("pull", "ollama.com/library/tiny", "--json").stdout)["name"] == "tiny-latest"
    assert "404" in zinc("pull", "ollama:tiny:2b", code=3).stderr


def test_another_model_of_that_name_is_not_overwritten(zinc, hub, weights):
    hub.repositories |= {"a/b": {"m.gguf": weights + b"1"}, "c/d": {"m.gguf": weights + b"2"}}
    zinc("pull", "a/b")
    assert "--as" in zinc("pull", "c/d", code=3).stderr
    zinc("pull", "c/d", "--as", "other")
    assert names(zinc) == ["m", "other"]


def test_a_token_goes_to_its_own_site_alone(zinc, hub, weights):
    hub.repositories["a/b"] = {"m.gguf": weights}
    hub.wants_token = "secret"
    assert "HF_TOKEN" in zinc("pull", "a/b", code=3).stderr
    hub.requests.clear()
    zinc("pull", "a/b", more_env={"HF_TOKEN": "secret"})
    asked = [(path, headers.get("Authorization")) for _, path, headers in hub.requests]
    assert all(token == "Bearer secret" for path, token in asked if not path.startswith("/blob"))
    assert [token for path, token in asked if path.startswith("/blob")] == [None]


def test_a_proxy_is_asked(zinc, hub, weights):
    hub.repositories["plain/files"] = {"m.gguf": weights}
    # The stand-in answers absolute targets as a proxy of HTTP does.
    zinc("pull", "http://models.invalid/files/m.gguf", more_env={"http_proxy": hub.url})
    assert hub.requests[-1][1] == "http://models.invalid/files/m.gguf" and names(zinc) == ["m"]
    words = zinc("pull", "https://models.invalid/m2.gguf", code=1, more_env={"https_proxy": "http://127.0.0.1:1"})
    assert "127.0.0.1:1" in words.stderr


def test_without_a_network_the_error_says_so(zinc):
    words = zinc("pull", "a/b", code=1, more_env={"HF_ENDPOINT": "http://127.0.0.1:1"}).stderr
    assert "127.0.0.1:1" in words and "network" in words


@pytest.mark.parametrize(
    ("name", "words"),
    [("smolm2", "did you mean smollm2?"), ("no such thing", "no model's name"), ("a/b/c", "no model's name"),
     ("../x", "no model's name"), ("a/..", "no model's name"), ("http://x/y.txt", "model.gguf")],
)  # fmt: skip
def test_wrong_names_are_refused(zinc, name, words):
    assert words in zinc("pull", name, code=3).stderr


def test_files_that_are_put_there_have_names_and_aliases(zinc, tiny_model):
    (zinc.folder / "sub").mkdir(parents=True)
    shutil.copy(tiny_model, zinc.folder / "sub" / "one.gguf")
    shutil.copy(tiny_model, zinc.folder / "two.gguf")
    (zinc.folder / "broken.gguf").write_bytes(b"GGUF\x03")
    assert names(zinc) == ["broken", "one", "two"]
    assert "! broken" in zinc("models").stdout
    zinc("alias", "best", "one")
    assert zinc("run", "BEST", "-p", "a", "-n", "1", "--ignore-eos").returncode == 0
    assert "a model has the name" in zinc("alias", "two", "one", code=3).stderr
    assert "did you mean two?" in zinc("run", "twi", "-p", "a", code=3).stderr
    zinc("rm", "best")
    assert names(zinc) == ["broken", "one", "two"]
    zinc("rm", "one", "broken")
    assert names(zinc) == ["two"] and "one" in zinc("rm", "one", code=3).stderr
    shutil.copy(tiny_model, zinc.folder / "sub" / "two.gguf")
    assert names(zinc) == ["sub/two", "two"]


def test_a_catalogue_name_that_is_not_here_says_how_to_get_it(zinc):
    assert "zinc-rt pull smollm2:135m" in zinc("run", "smollm2:135m", "-p", "a", code=3).stderr


def test_a_catalogue_name_becomes_an_alias(zinc, hub, weights):
    hub.repositories["bartowski/SmolLM2-135M-Instruct-GGUF"] = {"SmolLM2-135M-Instruct-Q8_0.gguf": weights}
    assert "zinc-rt chat smollm2:135m" in zinc("pull", "smollm2:135m").stdout
    assert zinc("run", "smollm2:135m", "-p", "a", "-n", "1", "--ignore-eos").returncode == 0


def test_python_finds_names_too(zinc, tiny_model):
    zinc.folder.mkdir()
    shutil.copy(tiny_model, zinc.folder / "one.gguf")
    script = "import sys, zinc_rt\nwith zinc_rt.Engine(sys.argv[1]) as e: print(e.generate('a', max_tokens=2).usage)"
    env = os.environ | {"ZINC_RT_MODELS": str(zinc.folder)}
    run = [sys.executable, "-c", script]
    assert subprocess.run([*run, "ONE"], env=env, timeout=120).returncode == 0
    near = subprocess.run([*run, "onee"], env=env, capture_output=True, text=True, timeout=120)
    assert "NotFound" in near.stderr and "did you mean one?" in near.stderr
