"""Models of the models folder: loaded when a request names them, unloaded when nobody uses them."""

import concurrent.futures
import contextlib
import http.client
import json
import shutil
import signal
import socket
import time

import pytest

from batch_helpers import create, line
from server_process import serving
from server_tenants import hashed

COMPLETIONS = "/v1/completions"
SHORT = {"prompt": "a", "max_tokens": 2, "temperature": 0, "ignore_eos": True}


@pytest.fixture
def folder(tiny_model, tmp_path):
    models = tmp_path / "models"
    models.mkdir()
    for name in ("alpha", "beta", "gamma"):
        shutil.copy(tiny_model, models / f"{name}.gguf")
    (models / "aliases.json").write_text('{"first": "alpha"}')
    return models


def on_demand(folder, *arguments, **more):
    env = {"ZINC_RT_MODELS": str(folder), "ZINC_RT_LOG": "info"}
    return serving("--max-slots", 2, *arguments, env=env, **more)


def ask(server, model=None, path="/v1/completions", **more):
    body = {**SHORT, **({} if model is None else {"model": model}), **more}
    code, _, answer = server.request("POST", path, body)
    return code, answer.get("model") if code == 200 else answer["error"]


def states(server):
    return {model["id"]: model["state"] for model in server.request("GET", "/v1/models")[2]["data"]}


def loaded(server):
    return {name for name, state in states(server).items() if state == "loaded"}


@contextlib.contextmanager
def long_answer(server, model):
    """Answers that run until the block ends: so many that a slow client has looked before a fast model is through."""
    connection = http.client.HTTPConnection(server.host, server.port, timeout=60)
    body = {**SHORT, "model": model, "prompt": ["a"] * 64, "max_tokens": 450, "stream": True}
    connection.request("POST", "/v1/completions", json.dumps(body), {"Content-Type": "application/json"})
    response = connection.getresponse()
    assert response.status == 200 and response.readline().startswith(b"data: ")
    try:
        yield response
    finally:
        connection.close()


def test_without_a_model_the_folder_is_served(folder):
    with on_demand(folder) as server:
        assert states(server) == {"alpha": "not_loaded", "beta": "not_loaded", "gamma": "not_loaded"}
        assert server.request("GET", "/readyz")[0] == server.request("GET", "/health_generate")[0] == 200
        assert server.request("GET", "/version")[2]["tier"] is None
        shown = server.request("GET", "/v1/models/FIRST")[2]
        assert (shown["id"], shown["state"], shown["aliases"]) == ("alpha", "not_loaded", ["first"])
        assert shown["file_bytes"] == (folder / "alpha.gguf").stat().st_size and shown["created"] > 1e9
        assert loaded(server) == set()  # to be shown loads nothing

        assert ask(server, "alpha") == (200, "alpha")
        assert states(server) == {"alpha": "loaded", "beta": "not_loaded", "gamma": "not_loaded"}
        assert server.request("GET", "/v1/models/first")[2]["max_slots"] == 2
        assert ask(server, "first") == ask(server, "ALPHA") == (200, "alpha")
        # The other paths that take a model load it too.
        ids = server.request("POST", "/tokenize", {"model": "beta", "content": "the"})[2]["tokens"]
        assert server.request("POST", "/detokenize", {"model": "beta", "tokens": ids})[2]["content"] == "the"
        assert loaded(server) == {"alpha", "beta"}


def test_a_name_that_is_not_there_is_refused_with_those_that_are(folder):
    with on_demand(folder) as server:
        code, error = ask(server, "alpah")
        assert (code, error["param"], error["code"]) == (404, "model", "model_not_found")
        assert "did you mean alpha?" in error["message"] and "alpha, beta, gamma" in error["message"]
        code, error = ask(server)
        assert code == 404 and "no model is named" in error["message"]
        assert ask(server, "../models/alpha")[0] == ask(server, str(folder / "alpha.gguf"))[0] == 404
        assert server.request("GET", "/v1/models/delta")[0] == server.request("GET", "/props")[0] == 404
        # What is put into the folder later is found; the only one needs no name.
        (folder / "alpha.gguf").rename(folder / "delta.gguf")
        for name in ("beta", "gamma"):
            (folder / f"{name}.gguf").unlink()
        assert ask(server) == (200, "delta")


def test_an_empty_folder_is_served_and_says_so(tmp_path):
    with on_demand(tmp_path / "none") as server:
        assert states(server) == {}
        code, error = ask(server, "alpha")
        assert code == 404 and "zinc-rt pull" in error["message"]
        assert server.request("GET", "/metrics")[0] == 200
        assert server.stop() == 0


def test_many_requests_at_once_load_a_model_once(folder, tmp_path):
    with on_demand(folder, log_path=tmp_path / "log") as server:
        with concurrent.futures.ThreadPoolExecutor(24) as pool:
            got = list(pool.map(lambda i: ask(server, ("alpha", "beta", "gamma")[i % 3]), range(24)))
        assert got == [(200, ("alpha", "beta", "gamma")[i % 3]) for i in range(24)]
    assert (tmp_path / "log").read_text().count("since a request named it") == 3


def test_the_one_that_is_idle_longest_makes_room(folder):
    with on_demand(folder, "--max-loaded", 2) as server:
        assert ask(server, "alpha")[0] == ask(server, "beta")[0] == ask(server, "alpha")[0] == 200
        assert ask(server, "gamma") == (200, "gamma") and loaded(server) == {"alpha", "gamma"}
        with long_answer(server, "alpha"), long_answer(server, "gamma"):
            code, error = ask(server, "beta")
            assert code == 503 and "2 models that may be loaded on demand are in use (max_loaded)" in error["message"]
            assert loaded(server) == {"alpha", "gamma"}
        server.wait(lambda: ask(server, "beta")[0] == 200)


def test_an_idle_model_is_unloaded_and_comes_back_with_the_same_bits(folder):
    body = {**SHORT, "model": "alpha", "max_tokens": 20}
    with on_demand(folder, "--keep-alive", 0.2) as server:
        first = server.request("POST", "/v1/completions", body)[2]["choices"]
        server.wait(lambda: loaded(server) == set())
        with long_answer(server, "alpha") as answer:  # longer than the model may be idle
            for _ in range(40):
                assert answer.readline()
            assert loaded(server) == {"alpha"}
        server.wait(lambda: loaded(server) == set())
        assert server.request("POST", "/v1/completions", body)[2]["choices"] == first


def test_a_configured_model_stays_beside_those_of_the_folder(folder, tiny_model, tmp_path):
    config = tmp_path / "zinc.toml"
    config.write_text(
        "[server]\non_demand = true\nmax_loaded = 1\nkeep_alive_s = 0.2\n"
        f'[[models]]\npath = "{tiny_model}"\nid = "own"\nmax_slots = 2\n'
    )
    with on_demand(folder, "--config", config) as server:
        assert ask(server, "alpha") == (200, "alpha") and ask(server) == (200, "own")
        server.wait(lambda: loaded(server) == {"own"})


@pytest.mark.parametrize("keep_alive", [300, -1])
def test_a_reload_that_ends_loading_on_demand_unloads_what_was_loaded_so(folder, tiny_model, tmp_path, keep_alive):
    config = tmp_path / "zinc.toml"
    config.write_text(
        f"[server]\non_demand = true\nkeep_alive_s = {keep_alive}\n"
        f'[[models]]\npath = "{tiny_model}"\nid = "own"\nmax_slots = 2\n'
    )
    with on_demand(folder, "--config", config) as server:
        with long_answer(server, "alpha") as answer:
            config.write_text(config.read_text().replace("on_demand = true", "on_demand = false"))
            server.process.send_signal(signal.SIGHUP)
            server.wait(lambda: "beta" not in states(server))
            assert ask(server, "beta")[0] == 404
            # An answer under way goes on to its end.
            assert answer.read().count(b'"finish_reason":"length"') == 64
        server.wait(lambda: states(server) == {"own": "loaded"})
        assert ask(server, "alpha")[0] == 404 and ask(server) == (200, "own")


def test_an_admin_may_unload_what_a_request_loaded(folder):
    with on_demand(folder, "--max-loaded", 1) as server:
        for _ in range(3):
            assert ask(server, "first") == (200, "alpha")
            assert server.request("POST", "/v1/models/unload", {"id": "alpha"})[0] == 200
            assert loaded(server) == set()
        assert ask(server, "beta")[0] == 200  # what was unloaded does not count


def test_a_file_that_is_no_model_is_the_answer_to_those_who_named_it(folder):
    (folder / "broken.gguf").write_bytes(b"GGUF" + bytes(60))
    with on_demand(folder) as server:
        with concurrent.futures.ThreadPoolExecutor(6) as pool:
            got = list(pool.map(lambda _: ask(server, "broken"), range(6)))
        assert {code for code, _ in got} == {422} and {error["param"] for _, error in got} == {"model"}
        assert ask(server, "alpha") == (200, "alpha")


def test_who_leaves_does_not_have_a_model_loaded(folder, tmp_path):
    """Clients that leave while another model is loaded: theirs is not."""
    with on_demand(folder) as server:
        body = json.dumps({**SHORT, "model": "beta"}).encode()
        head = b"POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n" % len(body)
        for _ in range(50):
            with socket.create_connection((server.host, server.port)) as s:
                s.sendall(head + body)
        assert ask(server, "alpha") == (200, "alpha")
        time.sleep(0.2)
        assert server.request("GET", "/readyz")[0] == 200
        assert server.stop() == 0


def test_what_waits_at_the_end_hears_of_it(folder):
    """SIGTERM while requests wait for their models: each is answered, whole or refused, and the process ends."""
    with on_demand(folder) as server, concurrent.futures.ThreadPoolExecutor(12) as pool:
        got = [pool.submit(ask, server, ("alpha", "beta", "gamma")[i % 3]) for i in range(12)]
        server.process.send_signal(signal.SIGTERM)
        codes = set()
        for one in got:
            with contextlib.suppress(ConnectionError, http.client.HTTPException, OSError):
                codes.add(one.result()[0])  # those that came too late find nobody listening
        assert codes <= {200, 503}
        assert server.process.wait(30) == 0


def test_an_id_needs_a_model(folder):
    with pytest.raises(AssertionError, match="exit 3|exit 1"), on_demand(folder, "--id", "x"):
        pass


def give_back(server, model, key=None, **body):
    path, nothing = ("/api/chat", {"messages": []}) if body.pop("chat", False) else ("/api/generate", {})
    return server.request("POST", path, {"model": model, **nothing, **body}, key=key)[::2]


@pytest.mark.parametrize("chat", [False, True])
def test_ollamas_clients_load_models_and_give_them_back(folder, chat):
    with on_demand(folder, "--keep-alive", -1) as server:
        code, answer = give_back(server, "alpha", chat=chat)
        assert (code, answer["done_reason"], answer["done"]) == (200, "load", True) and loaded(server) == {"alpha"}
        for keep_alive in (0, "0", "0s", 0.0, "-0m0.0s"):
            code, answer = give_back(server, "alpha", chat=chat, keep_alive=keep_alive)
            assert (code, answer["done_reason"], answer["model"]) == (200, "unload", "alpha")
            assert ("message" in answer) == chat and ("response" in answer) != chat
            server.wait(lambda: loaded(server) == set())
        # What is not loaded is not loaded for it; what is not there is an error.
        assert give_back(server, "beta", chat=chat, keep_alive=0)[1]["done_reason"] == "unload"
        assert loaded(server) == set()
        assert give_back(server, "other", chat=chat, keep_alive=0)[0] == 404
        for other in (-1, "5m", "-1h", 300, "1h2m3.5s"):
            assert give_back(server, "alpha", chat=chat, keep_alive=other)[1]["done_reason"] == "load"
        assert loaded(server) == {"alpha"}
        for wrong in ("5", "soon", "5 m", "m", "", True, [0]):
            code, answer = give_back(server, "alpha", chat=chat, keep_alive=wrong)
            assert code == 400 and "keep_alive" in answer["error"], wrong


def test_a_model_in_use_and_one_of_others_are_not_unloaded(folder):
    with on_demand(folder, "--api-key", "key", "--admin-key", "admin") as server:
        assert give_back(server, "alpha", key="key")[1]["done_reason"] == "load"
        assert give_back(server, "alpha", key="key", keep_alive=0)[1]["done_reason"] == "unload"
        listed = server.request("GET", "/v1/models", key="admin")[2]["data"]
        assert {model["id"] for model in listed if model.get("state") == "loaded"} == {"alpha"}
    with on_demand(folder) as server, long_answer(server, "alpha") as answer:
        assert answer.readline()
        assert give_back(server, "alpha", keep_alive=0)[1]["done_reason"] == "unload"
        assert give_back(server, "beta")[1]["done_reason"] == "load"  # unloads and loads take turns
        assert loaded(server) == {"alpha", "beta"} and answer.readline()


def tenants(path, names, limits=""):
    """A configuration with a key for each tenant, and an admin's."""
    text = f'admin_keys = ["{hashed("admin")}"]\n[server]\non_demand = true\n'
    path.write_text(
        text + "".join(f'[[tenants]]\nname = "{n}"\nkeys = ["{hashed(n)}"]\n{limits}\n' for n in names),
        encoding="utf-8",
    )
    return path


def ask_as(server, tenant, model, path="/v1/completions", **more):
    body = {"model": model, **(SHORT if path == "/v1/completions" else {}), **more}
    code, headers, answer = server.request("POST", path, body, key=tenant)
    return code, "" if code == 200 else answer["error"]["message"], headers


def is_loaded(server):
    models = server.request("GET", "/v1/models", key="admin")[2]["data"]
    return {model["id"] for model in models if model["state"] == "loaded"}


def test_a_model_that_another_tenant_uses_does_not_make_room(folder, tmp_path):
    config = tenants(tmp_path / "zinc.toml", ("ann", "bob", "eve"))
    with on_demand(folder, "--config", config, "--max-loaded", 2) as server:
        assert ask_as(server, "ann", "alpha")[0] == ask_as(server, "eve", "beta")[0] == 200
        # Her own model makes room for her next one, though it was used last.
        assert ask_as(server, "eve", "gamma")[0] == 200 and is_loaded(server) == {"alpha", "gamma"}
        for path in ("/v1/completions", "/tokenize"):
            code, why, headers = ask_as(
                server, "bob", "beta", path, **({"content": "a"} if path == "/tokenize" else {})
            )
            assert code == 503 and "used by others in the last 30 s" in why and int(headers["Retry-After"]) > 0
        assert is_loaded(server) == {"alpha", "gamma"}
        assert ask_as(server, "bob", "alpha")[0] == 200  # what is there is there for all


def test_who_holds_several_models_makes_room_for_who_holds_none(folder, tmp_path):
    config = tenants(tmp_path / "zinc.toml", ("ann", "bob"))
    with on_demand(folder, "--config", config, "--max-loaded", 2) as server:
        assert ask_as(server, "ann", "alpha")[0] == ask_as(server, "ann", "beta")[0] == 200
        assert ask_as(server, "bob", "gamma")[0] == 200 and is_loaded(server) == {"beta", "gamma"}
        assert ask_as(server, "ann", "alpha")[0] == 200 and is_loaded(server) == {"alpha", "gamma"}


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/tokenize", {"content": "a"}),
        ("/v1/completions", {}),
        ("/apply-template", {"messages": [{"role": "user", "content": "a"}]}),
        ("/v1/embeddings", {"input": "a"}),
    ],
)
def test_a_tenant_has_as_many_models_loaded_as_its_rate_allows(folder, tmp_path, path, body):
    limits = "requests_per_minute = 2"
    config = tenants(tmp_path / "zinc.toml", ("ann", "bob"), limits)
    with on_demand(folder, "--config", config, "--max-loaded", 1) as server:
        first = [ask_as(server, "ann", model, path, **body)[0] for model in ("alpha", "beta")]
        assert 429 not in first and 503 not in first
        code, why, headers = ask_as(server, "ann", "gamma", "/tokenize", content="a")
        assert code == 429 and "more models loaded than it may, 2 a minute" in why, why
        assert int(headers["Retry-After"]) > 0
        assert "gamma" not in is_loaded(server)
        assert ask_as(server, "ann", "beta", "/tokenize", content="a")[0] == 200  # that is loaded


def test_a_batch_unloads_nothing_that_was_used_lately(folder, tmp_path):
    config = tenants(tmp_path / "zinc.toml", ("ann", "bob"))
    with on_demand(folder, "--config", config, "--max-loaded", 2, state=tmp_path / "state.db") as server:
        assert ask_as(server, "ann", "alpha")[0] == ask_as(server, "ann", "beta")[0] == 200
        create(server, line("1", {**SHORT, "model": "gamma"}, COMPLETIONS).encode(), "bob", COMPLETIONS)
        refused = 'zinc:http_responses_total{status="503"}'
        server.wait(lambda: server.gauge(refused, "admin") >= 1)  # the line was asked for, and will be again
        assert is_loaded(server) == {"alpha", "beta"}
        assert ask_as(server, "bob", "gamma")[0] == 200  # bob himself may
