"""Two replicas of the demo model behind Ray Serve."""

import asyncio
import concurrent.futures
import contextlib
import http.client
import importlib.util
import json
import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time

import pytest

pytestmark = [
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.slow,
    pytest.mark.skipif(
        importlib.util.find_spec("ray") is None or importlib.util.find_spec("starlette") is None,
        reason='Ray Serve is not installed (pip install "ray[serve]")',
    ),
]
# Nobody else reaches these clusters, and a token would be written into the user's folder.
ENVIRONMENT = {"RAY_AUTH_MODE": "disabled", "RAY_USAGE_STATS_ENABLED": "0", "RAY_DEDUP_LOGS": "0"}
LONG = "You are a helper of a library. Answer shortly, name the shelf, never recommend a book that is lent out. " * 6


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


class Address:
    def __init__(self, port):
        self.port = port

    def send(self, method, path, body=None, headers=None):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=120)
        if body is not None and not isinstance(body, bytes):
            body = json.dumps(body).encode()
        connection.request(method, path, body, {"Content-Type": "application/json", **(headers or {})})
        return connection

    def open(self, method, path, body=None, headers=None):
        connection = self.send(method, path, body, headers)
        return connection, connection.getresponse()

    def request(self, method, path, body=None, headers=None):
        connection, response = self.open(method, path, body, headers)
        with contextlib.closing(connection):
            return response.status, dict(response.getheaders()), response.read()

    def complete(self, prompt, **more):
        status, _, body = self.request("POST", "/v1/completions", {"prompt": prompt, "temperature": 0, **more})
        assert status == 200, body
        return json.loads(body)["choices"][0]

    def load(self):
        return json.loads(self.request("GET", "/load")[2])

    def answered(self):
        """How many requests ended well."""
        text = self.request("GET", "/metrics")[2].decode()
        return sum(float(n) for n in re.findall(r"^vllm:request_success_total\{.*\} (\S+)$", text, re.M))


def wait(condition, seconds=60):
    end = time.monotonic() + seconds
    while not (found := condition()):
        assert time.monotonic() < end, "it did not happen in time"
        time.sleep(0.1)
    return found


def events(data):
    return [event.removeprefix(b"data: ") for event in data.split(b"\n\n") if event]


class Fleet(Address):
    def __init__(self, port, serve, model):
        super().__init__(port)
        self.serve, self.model = serve, model

    def run(self, max_slots):
        from zinc_rt.ray import app

        arguments = ["-c", "2048", "--max-slots", max_slots, "--threads", "1"]
        options = {"health_check_period_s": 1.0, "stats_period_s": 0.5, "may_be_open": True}
        self.serve.run(app(self.model, replicas=2, arguments=arguments, **options), name="zinc_rt")

    def servers(self):
        """The replicas' servers, as (process, its address, the one for metrics)."""
        handle = self.serve.get_deployment_handle("Replica", "zinc_rt")
        found = sorted(handle.broadcast("where").results(timeout_s=60), key=lambda each: each["pid"])
        return [(each["pid"], Address(each["port"]), Address(each["metrics_port"])) for each in found]

    def has(self, n):
        with contextlib.suppress(Exception):
            return self.servers() if len(self.servers()) == n else None


@pytest.fixture(scope="module")
def fleet(demo_model):
    # Ray reads its environment when it is imported.
    before = {name: os.environ.get(name) for name in ENVIRONMENT}
    os.environ.update(ENVIRONMENT)
    import ray
    from ray import serve

    ray.init(num_cpus=2, include_dashboard=False, object_store_memory=100 << 20, log_to_driver=False)
    fleet = Fleet(free_port(), serve, demo_model)
    serve.start(http_options={"host": "127.0.0.1", "port": fleet.port})
    fleet.run(16)
    assert len(fleet.servers()) == 2
    yield fleet
    serve.shutdown()
    ray.shutdown()
    for name, value in before.items():
        os.environ.pop(name) if value is None else os.environ.__setitem__(name, value)


@contextlib.contextmanager
def running(command, ready, **options):
    """The command from the line that says it is ready on; a signal ends it well."""
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, **options)
    try:
        assert any(line == ready for line in process.stdout)
        yield
        process.send_signal(signal.SIGTERM)
        process.stdout.read()
        assert process.wait(60) == 0
    finally:
        process.kill()
        process.wait()
        process.stdout.close()


def test_the_command(tiny_model):
    port = free_port()
    command = [sys.executable, "-m", "zinc_rt.ray", str(tiny_model), "--replicas", "2", "--port", str(port)]
    command += ["--", "--max-slots", "3"]
    with running(command, f"http://127.0.0.1:{port} has 2 replicas\n", env={**os.environ, **ENVIRONMENT}):
        fleet = Address(port)
        (model,) = json.loads(fleet.request("GET", "/v1/models")[2])["data"]
        assert model["max_slots"] == 3
        assert len(fleet.complete([5, 6, 7], max_tokens=4)["text"]) > 0


def test_forty_streams_are_whole(fleet):
    def stream(i):
        body = {"prompt": f"Story number {i}: once upon a time", "max_tokens": 24, "ignore_eos": True, "stream": True}
        body["stream_options"] = {"include_usage": True}
        status, headers, data = fleet.request("POST", "/v1/completions", body)
        assert status == 200 and headers["content-type"].startswith("text/event-stream")
        *parts, done = events(data)
        assert done == b"[DONE]"
        return json.loads(parts[-1])["usage"]["completion_tokens"]

    with concurrent.futures.ThreadPoolExecutor(40) as pool:
        assert list(pool.map(stream, range(40))) == [24] * 40


def test_a_stream_comes_piece_by_piece(fleet):
    servers = fleet.servers()
    body = {"prompt": "Once", "max_tokens": 500, "ignore_eos": True, "stream": True}
    connection, response = fleet.open("POST", "/v1/completions", body)
    with contextlib.closing(connection):
        assert b"data: " in response.read1()
        # The rest is still to come: some server is at work.
        assert sum(metrics.load()["running"] for _, _, metrics in servers) == 1


def test_everything_is_passed_on(fleet):
    _, first, _ = fleet.servers()[0]
    for method, path, body in [
        ("GET", "/v1/models/smollm2-135m-instruct", None),
        ("GET", "/nowhere?a=%20b", None),
        ("POST", "/v1/completions", {"prompt": 3.5}),
        ("POST", "/v1/chat/completions", b"{"),
        ("POST", "/tokenize", {"prompt": "ä€𝄞" * 5000}),
        ("POST", "/v1/completions", b"[" + b"1," * (9 << 20) + b"1]"),  # more than a server takes
        ("GET", "/", None),
    ]:
        headers = {"Accept": "text/html"} if path == "/" else {}
        status, fields, data = fleet.request(method, path, body, headers)
        direct = first.request(method, path, body, headers)
        assert (status, fields["content-type"]) == (direct[0], direct[1]["Content-Type"]), path
        if path != "/v1/models/smollm2-135m-instruct":  # which says when it was loaded
            assert data == direct[2]
    status, fields, data = fleet.request("HEAD", "/v1/models")
    assert status == 200 and data == b"" and int(fields["content-length"]) > 100
    connection, response = fleet.open("GET", "/v1/models", headers={"x-request-id": "mine"})
    with contextlib.closing(connection):
        assert [value for name, value in response.getheaders() if name.lower() == "x-request-id"] == ["mine"]
        assert sum(name.lower() == "date" for name, _ in response.getheaders()) == 1


def test_a_client_that_goes_ends_its_request(fleet):
    body = {"prompt": "Once", "max_tokens": 1800, "ignore_eos": True, "stream": True}
    connections = [fleet.open("POST", "/v1/completions", {**body, "prompt": f"{i} Once"}) for i in range(4)]
    servers = fleet.servers()
    wait(lambda: sum(metrics.load()["running"] for _, _, metrics in servers) == 4)
    for connection, response in connections:
        response.close()
        connection.close()
    wait(lambda: all(metrics.load()["running"] == 0 for _, _, metrics in servers), 20)


def counted(fleet, bodies, at_once):
    """How many of the requests each replica has answered."""
    servers = fleet.servers()
    before = [metrics.answered() for _, _, metrics in servers]
    with concurrent.futures.ThreadPoolExecutor(at_once) as pool:
        answers = list(pool.map(lambda body: fleet.request("POST", "/v1/chat/completions", body)[0], bodies))
    assert answers == [200] * len(bodies)
    return [metrics.answered() - n for (_, _, metrics), n in zip(servers, before, strict=True)]


def asked(text, system):
    messages = [{"role": "system", "content": system}, {"role": "user", "content": text}]
    return {"messages": messages, "max_tokens": 4, "temperature": 0}


def test_equal_prefixes_go_to_one_replica_and_others_spread(fleet):
    # One comes first: two at once would be two replicas that hold the prefix, and then the load decides.
    before = counted(fleet, [asked("Where is book 0?", LONG)], 1)
    counts = counted(fleet, [asked(f"Where is book {i}?", LONG) for i in range(40)], 2)
    assert sum(counts) == 40 and counts[before.index(1)] >= 36, counts
    counts = counted(fleet, [asked(f"Where is book {i}?", f"{i} " * 40 + LONG) for i in range(40)], 2)
    assert sum(counts) == 40 and min(counts) >= 10, counts


def test_the_replicas_give_the_same(fleet):
    servers = fleet.servers()
    for prompt in ("The capital of France is", "def add(a, b):", LONG):
        options = {"max_tokens": 24, "return_logits_hash": True}
        answers = [address.complete(prompt, **options) for _, address, _ in servers]
        answers += [fleet.complete(prompt, **options) for _ in range(2)]
        assert len({answer["text"] for answer in answers}) == 1
        # Every logit of every row, to the last bit.
        hashes = answers[0]["logits_hash"]
        assert [answer["logits_hash"] for answer in answers] == [hashes] * 4 and len(set(hashes)) == 24


def test_the_command_in_a_cluster_that_runs(fleet, tiny_model):
    import ray

    address = ray.get_runtime_context().gcs_address
    command = [sys.executable, "-m", "zinc_rt.ray", str(tiny_model), "--address", address, "--name", "second"]
    command += ["--route-prefix", "/a/b", "--", "--api-key", "k"]
    key = {"Authorization": "Bearer k"}
    with running(command, "Serve, at /a/b, has 1 replicas\n"):
        (model,) = json.loads(fleet.request("GET", "/a/b/v1/models?x=1", headers=key)[2])["data"]
        assert model["id"] == "tiny"
        assert fleet.request("GET", "/a/b/v1/models")[0] == 401
    wait(lambda: fleet.request("GET", "/a/b/v1/models")[0] == 404)
    assert json.loads(fleet.request("GET", "/v1/models")[2])["data"][0]["id"] != "tiny"


def test_no_request_fails_while_replicas_are_replaced(fleet):
    before = {pid for pid, _, _ in fleet.servers()}
    over, results = threading.Event(), []

    def ask():
        while not over.is_set():
            try:
                body = {"prompt": f"{len(results)} times", "max_tokens": 12, "ignore_eos": True, "stream": True}
                status, _, data = fleet.request("POST", "/v1/completions", body)
                results.append(status if data.endswith(b"data: [DONE]\n\n") else data)
            except (OSError, http.client.HTTPException) as error:
                results.append(repr(error))

    threads = [threading.Thread(target=ask) for _ in range(3)]
    for thread in threads:
        thread.start()
    try:
        fleet.run(12)
        # The old ones end after the new ones are there.
        servers = wait(lambda: (s := fleet.has(2)) and not before & {pid for pid, _, _ in s} and s)
        time.sleep(2)
    finally:
        over.set()
        for thread in threads:
            thread.join()
    assert len(results) > 20 and set(results) == {200}, [r for r in results if r != 200][:3]
    for _, address, _ in servers:
        assert json.loads(address.request("GET", "/v1/models")[2])["data"][0]["max_slots"] == 12


def test_a_replica_that_is_killed_in_a_stream(fleet):
    servers = fleet.servers()
    body = {"max_tokens": 1000, "ignore_eos": True, "stream": True}
    streams = {}
    # A stream on each replica.
    for i in range(20):
        before = [metrics.load()["running"] for _, _, metrics in servers]
        stream = fleet.open("POST", "/v1/completions", {**body, "prompt": f"{i} Once upon a time"})

        def place(before=before):
            now = [metrics.load()["running"] for _, _, metrics in servers]
            return [k for k in range(2) if now[k] > before[k]]

        (at,) = wait(place)
        streams.setdefault(at, stream)
        if len(streams) == 2:
            break
    # Of some length, so that they spread.
    asked_whole = [{**body, "prompt": f"{i} " * 100, "stream": False} for i in range(8)]
    whole = [fleet.send("POST", "/v1/completions", each) for each in asked_whole]
    wait(lambda: sum(metrics.load()["running"] + metrics.load()["waiting"] for _, _, metrics in servers) >= 10)
    os.kill(servers[0][0], signal.SIGKILL)
    broken = streams[0][1].read()
    assert b"data: [DONE]" not in broken
    assert events(broken)[-1].startswith(b"event: error\n") and b"the answer is cut off" in events(broken)[-1]
    # What is asked now goes to the other.
    assert [fleet.complete(f"{k} is", max_tokens=2)["finish_reason"] for k in range(10)] == ["length"] * 10
    answers = [connection.getresponse() for connection in whole]
    assert {(r.status, r.headers.get("Retry-After")) for r in answers} == {(200, None), (503, "1")}
    assert streams[1][1].read().endswith(b"data: [DONE]\n\n")
    back = wait(lambda: fleet.has(2))
    assert servers[1][0] in [pid for pid, _, _ in back] and servers[0][0] not in [pid for pid, _, _ in back]
    spread = counted(fleet, [asked("Where is it?", f"{k} " * 60) for k in range(30)], 2)
    assert sum(spread) == 30 and min(spread) > 0


def test_a_body_that_is_too_long_is_refused_before_it_is_all_there():
    from starlette.requests import Request

    from zinc_rt.ray import Ingress

    class Handle:
        def options(self, **_):
            return self

    read = 0

    async def receive():
        nonlocal read
        read += 1
        return {"type": "http.request", "body": bytes(100), "more_body": True}

    request = Request({"type": "http", "method": "POST", "path": "/", "headers": []}, receive)
    assert asyncio.run(Ingress(Handle(), 250)(request)).status_code == 413
    assert read == 3
