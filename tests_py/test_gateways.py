"""What gateways, routers and clusters ask of a server: metrics, probes, headers, an end without a lost request."""

import contextlib
import http.client
import json
import pathlib
import random
import re
import signal
import subprocess
import threading
import time

import pytest

from server_process import PROGRAM, serving
from server_tenants import ADMIN, KEYS, ask, config

ROOT = pathlib.Path(__file__).resolve().parent.parent
# Names, types and labels that llm-d's endpoint picker, production-stack's router and Prometheus' rules for vLLM read.
GAUGES = {
    "vllm:num_requests_waiting": {"model_name", "engine"},
    "vllm:num_requests_running": {"model_name", "engine"},
    "vllm:kv_cache_usage_perc": {"model_name", "engine"},
    "vllm:cache_config_info": {"model_name", "engine", "block_size", "num_gpu_blocks"},
    "vllm:gpu_cache_usage_perc": {"model_name", "engine"},
    "vllm:gpu_prefix_cache_hit_rate": {"model_name", "engine"},
}
COUNTERS = {
    "vllm:prefix_cache_queries_total": {"model_name", "engine"},
    "vllm:prefix_cache_hits_total": {"model_name", "engine"},
    "vllm:gpu_prefix_cache_queries_total": {"model_name", "engine"},
    "vllm:gpu_prefix_cache_hits_total": {"model_name", "engine"},
}


class Elsewhere:
    """The server's other address."""

    def __init__(self, server, port):
        self.host, self.port, self.server = "127.0.0.1", port, server

    def get(self, path):
        connection = http.client.HTTPConnection(self.host, self.port, timeout=30)
        connection.request("GET", path)
        response = connection.getresponse()
        data = response.read().decode()
        connection.close()
        return response.status, data


@contextlib.contextmanager
def with_metrics(*arguments, **more):
    with serving(*arguments, "--metrics-listen", "127.0.0.1:0", **more) as server:
        found = re.search(r"port (\d+)", server.process.stdout.readline().decode())
        yield server, Elsewhere(server, int(found[1]))


def types_of(text):
    return dict(re.findall(r"^# TYPE (\S+) (\S+)$", text, re.M))


def labels_of(text, name):
    return [set(re.findall(r"(\w+)=\"", line)) for line in re.findall(rf"^{name}\{{(.*)\}} ", text, re.M)]


def test_metrics_have_the_names_types_and_labels_that_gateways_read(tiny_model, tmp_path):
    with with_metrics("--config", config(tmp_path / "zinc.toml", tiny_model)) as (server, other):
        assert ask(server, KEYS["alice"])[0] == 200
        status, text = other.get("/metrics")
        assert status == 200
        types = types_of(text)
        for wanted, kind in [(GAUGES, "gauge"), (COUNTERS, "counter")]:
            for name, labels in wanted.items():
                assert types.get(name) == kind, name
                assert all(labels <= found for found in labels_of(text, name)) and labels_of(text, name), name
        assert 'block_size="16"' in text
        # No tenant is named here, and an admin sees them with a key.
        assert "tenant=" not in text and "alice" not in text
        assert 'tenant="alice"' in server.request("GET", "/metrics", key=ADMIN)[2].decode()
        assert server.request("GET", "/metrics")[0] == 401


def test_tenants_are_named_on_the_open_port_only_where_the_configuration_says_so(tiny_model, tmp_path):
    file = config(tmp_path / "zinc.toml", tiny_model)
    file.write_text(file.read_text().replace("[[models]]", "[server]\nmetrics_tenants = true\n[[models]]", 1))
    with with_metrics("--config", file) as (server, other):
        assert ask(server, KEYS["alice"])[0] == 200
        assert 'tenant="alice"' in other.get("/metrics")[1]


def test_the_open_port_has_probes_metrics_and_load_and_nothing_else(tiny_model):
    with with_metrics(tiny_model, "--api-key", "secret") as (server, other):
        for path in ("/livez", "/readyz", "/health", "/v1/health", "/ping", "/metrics", "/load"):
            assert other.get(path)[0] == 200, path
        for path in ("/v1/models", "/v1/tenants", "/props", "/"):
            assert other.get(path)[0] == 404, path
        load = json.loads(other.get("/load")[1])
        assert load["running"] == load["waiting"] == load["backlog_tokens"] == load["server_load"] == 0
        assert load["free_pages"] == load["pages"] > 0 and set(load["models"]) == {"tiny"}
        assert server.request("GET", "/load", key="secret")[0] == 403
        assert server.request("GET", "/is_sleeping")[2] == {"is_sleeping": False}


@pytest.mark.parametrize("address", ["9090", "127.0.0.1:", "127.0.0.1:x", "127.0.0.1:99999"])
def test_an_address_for_metrics_that_is_none_is_refused(tiny_model, address):
    done = subprocess.run(
        [*PROGRAM, "serve", str(tiny_model), "--port", "0", "--state", "none", "--metrics-listen", address],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode != 0 and f'metrics_listen "{address}": host:port wanted' in done.stderr


def test_load_counts_what_is_not_computed_yet(tiny_model):
    with with_metrics(tiny_model, "--max-slots", "1") as (server, other):
        body = {"prompt": [5] * 40, "max_tokens": 2000, "ignore_eos": True, "stream": True}
        # Many, so that some still wait when a slow client comes to look.
        connections = [http.client.HTTPConnection(server.host, server.port, timeout=60) for _ in range(20)]
        for connection in connections:
            connection.request("POST", "/v1/completions", json.dumps(body), {"Content-Type": "application/json"})
        seen = []

        def is_crowded():
            seen.append(json.loads(other.get("/load")[1]))
            return seen[-1]["running"] == 1 and seen[-1]["waiting"] >= 2

        server.wait(is_crowded)
        load = seen[-1]
        assert load["server_load"] == load["waiting"] + 1
        assert load["backlog_tokens"] >= 40 * load["waiting"]
        for connection in connections:
            connection.close()


def test_a_model_has_several_names(tiny_model):
    with serving(tiny_model, "--id", "tiny", "--served-name", "default", "--served-name", "team/tiny") as server:
        models = server.request("GET", "/v1/models")[2]["data"]
        assert [m["id"] for m in models] == ["tiny", "default", "team/tiny"]
        assert [m.get("root") for m in models] == [None, "tiny", "tiny"]
        for name in ("tiny", "default", "team/tiny"):
            status, _, answer = ask(server, None, model=name)
            assert status == 200 and answer["model"] == "tiny"
        assert server.request("GET", "/v1/models/team/tiny")[2]["id"] == "tiny"
        assert ask(server, None, model="another")[0] == 404


def test_a_name_that_another_model_has_is_refused(tiny_model, tmp_path):
    model = f'[[models]]\npath = "{tiny_model}"\n'
    (tmp_path / "zinc.toml").write_text(model + 'id = "one"\nserved_names = ["two"]\n' + model + 'id = "two"\n')
    with pytest.raises(AssertionError, match="did not start"), serving("--config", tmp_path / "zinc.toml"):
        pass


def test_headers_of_gateways_are_believed_from_proxies(tiny_model, tmp_path):
    file = config(tmp_path / "zinc.toml", tiny_model)
    file.write_text(file.read_text() + '[objectives]\nnightly = "batch"\nchat = "interactive"\n')
    with serving("--config", file, log_path=tmp_path / "log") as server:
        wanted = {"x-slo-ttft-ms": "60000", "x-llm-d-slo-tpot-ms": "60000"}
        for headers in (
            {"x-llm-d-inference-fairness-id": "alice"},
            {"x-gateway-inference-objective": "nightly"},
            {"x-llm-d-inference-objective": "of-nobody"},
            {"x-slo-ttft-ms": "soon"},
        ):
            assert ask(server, KEYS["gate"], headers={**wanted, **headers})[0] == 200
        assert ask(server, KEYS["bob"], headers=wanted)[0] == 200  # no proxy: passed over
        assert server.request("GET", "/v1/tenants/alice/usage", key=ADMIN)[2]["requests"] == 1
        text = server.request("GET", "/metrics", key=ADMIN)[2].decode()
        met = dict(re.findall(r'^zinc:wanted_latencies_total\{latency="(\w+)",met="true"\} (\d+)', text, re.M))
        assert met == {"ttft": "3", "tpot": "4"}
        twice = b"POST /v1/completions HTTP/1.1\r\nHost: x\r\n" + 2 * b"x-llm-d-inference-objective: chat\r\n" + b"\r\n"
        assert b" 400 " in server.raw(twice).split(b"\r\n")[0]


def test_an_objective_that_is_no_class_is_refused(tiny_model, tmp_path):
    file = tmp_path / "zinc.toml"
    file.write_text(f'[[models]]\npath = "{tiny_model}"\n[objectives]\nchat = "first"\n')
    done = subprocess.run(
        [*PROGRAM, "serve", "--config", str(file)], capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode != 0 and "line 4: objectives.chat: interactive, standard or batch wanted" in done.stderr


def test_requests_are_taken_for_a_while_after_sigterm(tiny_model):
    with with_metrics(tiny_model, "--shutdown-delay", "3") as (server, other):
        assert other.get("/readyz")[0] == 200
        server.process.send_signal(signal.SIGTERM)
        server.wait(lambda: other.get("/readyz")[0] == 503)
        assert "about to shut down" in other.get("/readyz")[1]
        assert server.request("GET", "/readyz")[0] == 503 and server.request("GET", "/livez")[0] == 200
        assert ask(server, None)[0] == 200
        assert server.process.wait(30) == 0


class Proxy:
    """Looks for servers that are ready each 0.2 s, and sends requests to these by turns."""

    def __init__(self, servers):
        self.servers, self.ready, self.turn = servers, list(servers), 0
        self.lock, self.is_over = threading.Lock(), threading.Event()
        self.thread = threading.Thread(target=self.poll)
        self.thread.start()

    def poll(self):
        while not self.is_over.wait(0.2):
            ready = []
            for server in self.servers:
                with contextlib.suppress(OSError, http.client.HTTPException):
                    if server.request("GET", "/readyz", timeout=1)[0] == 200:
                        ready.append(server)
            with self.lock:
                self.ready = ready

    def pass_on(self, body):
        with self.lock:
            self.turn += 1
            server = self.ready[self.turn % len(self.ready)]
        return server.request("POST", "/v1/completions", body)

    def stop(self):
        self.is_over.set()
        self.thread.join()


def test_no_request_is_lost_when_a_server_behind_a_polling_proxy_ends(tiny_model):
    options = ("--shutdown-delay", "4", "--max-slots", "8")
    with serving(tiny_model, *options) as first, serving(tiny_model, *options) as second:
        proxy = Proxy([first, second])
        results, draw = [], random.Random(5)
        moments = sorted(draw.uniform(0, 6) for _ in range(200))

        def send(moment, seed, begin):
            time.sleep(max(0.0, begin + moment - time.monotonic()))
            body = {"prompt": [5, 6, 7 + seed % 90], "max_tokens": 20 + seed % 60, "ignore_eos": True}
            try:
                results.append(proxy.pass_on(body)[0])
            except (OSError, http.client.HTTPException) as error:
                results.append(repr(error))

        begin = time.monotonic()
        threads = [threading.Thread(target=send, args=(m, i, begin)) for i, m in enumerate(moments)]
        for thread in threads:
            thread.start()
        time.sleep(2)
        first.process.send_signal(signal.SIGTERM)
        for thread in threads:
            thread.join()
        proxy.stop()
        assert results == [200] * 200
        assert first.process.wait(60) == 0


yaml = pytest.importorskip("yaml", reason="PyYAML, which reads the manifests, is not installed")


def documents(name):
    return list(yaml.safe_load_all((ROOT / "deploy" / name).read_text()))


def of_kind(name, kind):
    return next(d for d in documents(name) if d["kind"] == kind)


def test_the_manifest_of_kubernetes_is_the_real_servers(tiny_model, tmp_path):
    container = of_kind("kubernetes.yaml", "Deployment")["spec"]["template"]["spec"]["containers"][0]
    toml = of_kind("kubernetes.yaml", "Secret")["stringData"]["zinc.toml"]
    toml = toml.replace("/models/model.gguf", str(tiny_model)).replace("/var/lib/zinc_rt", str(tmp_path))
    ports = {p["name"]: p["containerPort"] for p in container["ports"]}
    assert f"port = {ports['http']}" in toml and f'metrics_listen = "0.0.0.0:{ports["metrics"]}"' in toml
    toml = toml.replace(f"0.0.0.0:{ports['metrics']}", "127.0.0.1:0").replace('"0.0.0.0"', '"127.0.0.1"')
    (tmp_path / "zinc.toml").write_text(toml)
    assert container["command"][:3] == ["zinc-rt", "serve", "--config"]
    with serving("--config", tmp_path / "zinc.toml", state=tmp_path / "state.db") as server:
        other = Elsewhere(server, int(re.search(r"port (\d+)", server.process.stdout.readline().decode())[1]))
        for probe in ("startupProbe", "readinessProbe", "livenessProbe"):
            assert container[probe]["httpGet"]["port"] == "metrics"
            assert other.get(container[probe]["httpGet"]["path"])[0] == 200
        metric = of_kind("kubernetes.yaml", "HorizontalPodAutoscaler")["spec"]["metrics"][0]["pods"]["metric"]["name"]
        assert f"\n{metric}{{" in other.get("/metrics")[1]
    service = of_kind("kubernetes.yaml", "Service")["spec"]
    assert [p["targetPort"] for p in service["ports"]] == ["http"]


def test_the_manifest_of_kserve_is_the_real_servers(tiny_model):
    container = documents("kserve.yaml")[0]["spec"]["template"]["containers"][0]
    arguments = [str(tiny_model) if a == "/mnt/models/model.gguf" else a for a in container["command"][2:]]
    arguments += [{"8000": "0", "0.0.0.0": "127.0.0.1"}.get(a, a) for a in container["args"]]
    at = arguments.index("--port")
    del arguments[at : at + 2]
    at = arguments.index("--state")
    del arguments[at : at + 2]
    with serving(*arguments) as server:
        assert server.request("GET", "/health")[0] == 200
        assert [m["id"] for m in server.request("GET", "/v1/models")[2]["data"]] == [
            "model",
            "publishers/default/models/model",
        ]


def test_the_scrape_configuration_names_the_open_port():
    jobs = documents("prometheus.yaml")[0]["scrape_configs"]
    assert [j["job_name"] for j in jobs] == ["zinc-rt-pods", "zinc-rt"]
    pod = of_kind("kubernetes.yaml", "Deployment")["spec"]["template"]
    assert pod["metadata"]["annotations"]["prometheus.io/port"] == "9090"
