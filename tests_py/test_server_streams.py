"""Streams that outlive their connection, and requests that come from other sites or as part of a trace."""

import http.client
import json
import re
import shutil
import signal
import subprocess
import time

import pytest

from server_process import PROGRAM, serving


@pytest.fixture(scope="module")
def server(tiny_model):
    with serving(tiny_model, "--max-slots", "4", "--cors-origin", "https://chat.example") as server:
        yield server


class Reader:
    """One stream of events: (number, data) pairs."""

    def __init__(self, server, method, path, body=None, headers=None):
        self.connection = http.client.HTTPConnection(server.host, server.port, timeout=60)
        self.connection.request(method, path, json.dumps(body) if body else None, dict(headers or {}))
        self.response = self.connection.getresponse()

    def __iter__(self):
        number = None
        for line in self.response:
            if line.startswith(b"id: "):
                number = int(line[4:])
            elif line.startswith(b"data: "):
                yield number, line[6:].strip().decode()

    def close(self):
        # Abruptly: whatever comes after is answered by a reset.
        self.response.close()
        self.connection.close()


def body(n_tokens, **more):
    return {
        "prompt": "some words",
        "max_tokens": n_tokens,
        "seed": 5,
        "temperature": 1,
        "ignore_eos": True,
        "stream": True,
        "stream_options": {"resumable": True, "include_usage": True},
        **more,
    }


def text_of(events):
    return "".join(
        choice["text"] for _, data in events if data != "[DONE]" for choice in json.loads(data).get("choices", [])
    )


def id_of(events):
    return json.loads(events[0][1])["id"]


def test_events_have_numbers_only_when_asked_for(server):
    events = list(Reader(server, "POST", "/v1/completions", body(8)))
    assert [number for number, _ in events] == list(range(1, len(events) + 1))
    assert events[-1][1] == "[DONE]"
    plain = list(Reader(server, "POST", "/v1/completions", body(8, stream_options={"include_usage": True})))
    assert {number for number, _ in plain} == {None}
    assert text_of(plain) == text_of(events)


@pytest.mark.parametrize("cuts", [[0], [1], [3, 40, 41], [200]])
def test_a_client_that_was_cut_off_gets_the_rest(server, cuts):
    whole = list(Reader(server, "POST", "/v1/completions", body(250)))
    reader = Reader(server, "POST", "/v1/completions", body(250))
    events, name = [], None
    for cut in cuts:
        for event in reader:
            events.append(event)
            if len(events) > cut:
                break
        name = name or id_of(events)
        reader.close()
        reader = Reader(server, "GET", f"/v1/streams/{name}", headers={"Last-Event-ID": str(len(events))})
        assert reader.response.status == 200
        assert reader.response.getheader("Content-Type") == "text/event-stream"
    events += list(reader)
    assert [number for number, _ in events] == list(range(1, len(events) + 1))
    assert events[-1][1] == "[DONE]"
    assert text_of(events) == text_of(whole)
    usage = [json.loads(data)["usage"] for _, data in events[:-1] if json.loads(data).get("usage")]
    assert [u["completion_tokens"] for u in usage] == [250]


def test_an_ended_stream_can_be_read_again(server):
    events = list(Reader(server, "POST", "/v1/completions", body(20)))
    again = list(Reader(server, "GET", f"/v1/streams/{id_of(events)}"))
    assert again == events
    assert list(Reader(server, "GET", f"/v1/streams/{id_of(events)}?after={len(events) - 1}")) == events[-1:]


def test_a_second_reader_takes_the_stream_over(server):
    first = Reader(server, "POST", "/v1/completions", body(400))
    head = next(iter(first))
    second = Reader(server, "GET", f"/v1/streams/{id_of([head])}")
    assert next(iter(second)) == head
    with pytest.raises((http.client.IncompleteRead, ConnectionResetError)):
        first.response.read()
    assert list(second)[-1][1] == "[DONE]"


def test_head_leaves_the_reader_alone(server):
    first = Reader(server, "POST", "/v1/completions", body(400))
    name = id_of([next(iter(first))])
    for asked, status in ((name, 200), ("none", 404)):
        answer = server.raw(
            f"HEAD /v1/streams/{asked} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n".encode()
        )
        assert answer.startswith(f"HTTP/1.1 {status} ".encode())
        assert answer.endswith(b"\r\n\r\n") and answer.count(b"\r\n\r\n") == 1
    assert list(first)[-1][1] == "[DONE]"


def test_streams_are_counted_as_responses(server):
    before = server.gauge("zinc:http_responses_total")
    name = id_of(list(Reader(server, "POST", "/v1/completions", body(2))))
    list(Reader(server, "GET", f"/v1/streams/{name}"))
    assert server.gauge("zinc:http_responses_total") == before + 3  # with the first look at the metrics


def test_a_stream_that_is_not_wanted_any_more_frees_its_slot(server):
    reader = Reader(server, "POST", "/v1/completions", body(1500))
    name = id_of([next(iter(reader))])
    reader.close()
    assert server.gauge("vllm:num_requests_running") == 1
    status, _, answer = server.request("DELETE", f"/v1/streams/{name}")
    assert (status, answer["cancelled"]) == (200, True)
    server.wait(lambda: server.gauge("vllm:num_requests_running") == 0)


def test_without_resumable_a_dropped_stream_ends(server):
    reader = Reader(server, "POST", "/v1/completions", body(1500, stream_options={}))
    name = id_of([next(iter(reader))])
    reader.close()
    server.wait(lambda: server.gauge("vllm:num_requests_running") == 0)
    assert server.request("GET", f"/v1/streams/{name}")[0] == 404


@pytest.mark.parametrize("seen", ["x", "-1", "1x", "99999999999999999999", "1000000"])
def test_a_bad_number_is_refused(server, seen):
    events = list(Reader(server, "POST", "/v1/completions", body(2)))
    status, _, answer = server.request("GET", f"/v1/streams/{id_of(events)}", headers={"Last-Event-ID": seen})
    assert (status, answer["error"]["param"]) == (400, "Last-Event-ID")


def test_a_stream_is_its_tenants_alone(tiny_model, tmp_path):
    import hashlib

    keys = {name: f"key-{name}" for name in ("a", "b")}
    file = tmp_path / "zinc.toml"
    file.write_text(
        f'[[models]]\npath = "{tiny_model}"\n'
        + "".join(
            f'[[tenants]]\nname = "{name}"\nkeys = ["sha256:{hashlib.sha256(key.encode()).hexdigest()}"]\n'
            for name, key in keys.items()
        )
    )
    with serving("--config", file) as server:
        headers = {name: {"Authorization": f"Bearer {key}"} for name, key in keys.items()}
        events = list(Reader(server, "POST", "/v1/completions", body(4), headers["a"]))
        path = f"/v1/streams/{id_of(events)}"
        assert server.request("GET", path, headers=headers["b"])[0] == 404
        assert server.request("DELETE", path, headers=headers["b"])[0] == 404
        assert list(Reader(server, "GET", path, headers=headers["a"])) == events


def test_pages_of_named_sites_may_call(server):
    origin = {"Origin": "https://chat.example"}
    status, headers, _ = server.request(
        "OPTIONS", "/v1/chat/completions", headers={**origin, "Access-Control-Request-Method": "POST"}
    )
    assert status == 204
    assert headers["Access-Control-Allow-Origin"] == origin["Origin"]
    assert "authorization" in headers["Access-Control-Allow-Headers"]
    for method, path, sent in (
        ("POST", "/tokenize", {"prompt": "a"}),
        ("GET", "/nothing", None),
        ("POST", "/v1/completions", {"prompt": "a", "max_tokens": 1}),
        ("POST", "/v1/completions", body(1)),
    ):
        _, headers, _ = server.request(method, path, sent, headers=origin)
        assert headers["Access-Control-Allow-Origin"] == origin["Origin"], path
        assert headers["Vary"] == "Origin"
    wanted = {"Access-Control-Request-Headers": "x-api-key,x-stainless-os"}
    _, headers, _ = server.request("OPTIONS", "/v1/chat/completions", headers={**origin, **wanted})
    assert headers["Access-Control-Allow-Headers"] == "x-api-key,x-stainless-os"
    other = {"Origin": "https://other.example", "Access-Control-Request-Method": "POST"}
    status, headers, _ = server.request("OPTIONS", "/v1/chat/completions", headers=other)
    assert status != 204
    assert "Access-Control-Allow-Origin" not in headers


def test_a_trace_of_the_caller_reaches_the_step_timeline(server):
    good = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
    bad = ["00-" + "0" * 32 + "-00f067aa0ba902b7-01", good.upper(), good[:-1], "ff" + good[2:], good + "-x", "-"]
    assert server.request("POST", "/v1/trace/start", {})[0] == 200
    for parent in [good, "01" + good[2:] + "-more", *bad]:
        sent = {"prompt": "a", "max_tokens": 1}
        assert server.request("POST", "/v1/completions", sent, headers={"traceparent": parent})[0] == 200
    _, _, trace = server.request("POST", "/v1/trace/stop", {})
    assert set(re.findall(r'"traceparent":"([^"]*)"', json.dumps(trace, separators=(",", ":")))) == {
        good,
        "01" + good[2:],
    }


def test_options_beside_a_configuration_go_before_it(tiny_model, tmp_path):
    file = tmp_path / "zinc.toml"

    def write(*ids):
        file.write_text("".join(f'[[models]]\npath = "{tiny_model}"\nid = "{i}"\nmax_slots = 2\n' for i in ids))

    def slots(server):
        return {model["id"]: model["max_slots"] for model in server.request("GET", "/v1/models")[2]["data"]}

    write("one")
    with serving("--config", file, "--max-slots", 5, "--id", "mine") as server:
        assert slots(server) == {"mine": 5}
    write("one", "two")
    with serving("--config", file, "--max-slots", 5, "--max-context", 64) as server:
        assert slots(server) == {"one": 5, "two": 5}
        write("one", "two", "three")
        server.process.send_signal(signal.SIGHUP)
        server.wait(lambda: slots(server) == {"one": 5, "two": 5, "three": 5})
    with serving(tiny_model, "--config", file, "--max-slots", 5, "--id", "mine") as server:
        assert slots(server) == {"mine": 5, "one": 2, "two": 2, "three": 2}
    refused = subprocess.run([*PROGRAM, "serve", "--port", "0", "--config", file, "--id", "mine"], capture_output=True,
                             text=True, timeout=60)  # fmt: skip
    assert refused.returncode == 3 and "--id mine" in refused.stderr and "[[models]]" in refused.stderr


def test_sighup_loads_replaces_and_unloads_models(tiny_model, tmp_path):
    file = tmp_path / "zinc.toml"
    (tmp_path / "models").mkdir()

    def configure(**models):
        lines = ""
        for name, more in models.items():
            path = tmp_path / "models" / f"{name}.gguf"
            if not path.exists():
                shutil.copy(tiny_model, path)
            lines += f'[[models]]\npath = "{path}"\n{more}\n'
        file.write_text(lines)

    def served():
        return {m["id"]: m["max_slots"] for m in server.request("GET", "/v1/models")[2]["data"]}

    configure(one="max_slots = 2", two="max_slots = 2")
    with serving("--config", file) as server:
        path = tmp_path / "models" / "two.gguf"
        assert server.request("POST", "/v1/models/load", {"path": str(path), "id": "by-hand", "max_slots": 3})[0] == 200
        running = Reader(server, "POST", "/v1/completions", body(300, model="one", stream_options={}))
        events = [next(iter(running))]
        configure(one="max_slots = 5", three="max_slots = 1")
        server.process.send_signal(signal.SIGHUP)
        events += list(running)  # of the one that is replaced
        assert events[-1][1] == "[DONE]"
        assert len(events) > 100
        server.wait(lambda: served() == {"one": 5, "three": 1, "by-hand": 3})
        for name in ("one", "three", "by-hand"):
            assert server.request("POST", "/v1/completions", {"prompt": "a", "max_tokens": 1, "model": name})[0] == 200
        assert server.request("POST", "/v1/completions", {"prompt": "a", "model": "two"})[0] == 404
        # A file that is broken: the model that is there stays.
        time.sleep(0.02)
        (tmp_path / "models" / "one.gguf").write_bytes(b"GGUF" + bytes(100))
        server.process.send_signal(signal.SIGHUP)
        time.sleep(1)
        assert served()["one"] == 5
        assert server.request("POST", "/v1/completions", {"prompt": "a", "max_tokens": 1, "model": "one"})[0] == 200
