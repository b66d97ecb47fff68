"""ZincServer behind ray.serve.llm. vLLM and SGLang are not here: the classes of requests are those of ray_llm_shim."""

import asyncio
import concurrent.futures
import contextlib
import json
import os
import sys
from pathlib import Path

import pytest

from test_ray import ENVIRONMENT, Address, events, free_port, wait
from zinc_rt import errors

SHIM = str(Path(__file__).parent / "ray_llm_shim")


def missing():
    sys.path.append(SHIM)
    try:
        import fastapi
        import python_multipart  # noqa: F401
        import ray.serve.llm  # noqa: F401
    except ImportError as error:
        sys.path.remove(SHIM)
        return f"ray.serve.llm cannot be imported: {error}"
    # Ray 2.60 makes routes of a class, of which FastAPI 0.165 takes `self` for a field of the query; 0.136 does not.
    if tuple(map(int, fastapi.__version__.split(".")[:2])) > (0, 136):
        return f"Ray's ingress works with FastAPI 0.136, and not with {fastapi.__version__}"
    return None


WHY = missing()
pytestmark = [
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.slow,
    pytest.mark.skipif(WHY is not None, reason=str(WHY)),
]
MESSAGES = [{"role": "user", "content": "What is gravity?"}]


def config(model, **more):
    from ray.serve.llm import LLMConfig

    options = {"engine_kwargs": {"max_slots": 7, "threads": 1, "max_context": 2048, "may_be_open": True}, **more}
    return LLMConfig(
        server_cls="zinc_rt.ray.llm:ZincServer",
        model_loading_config={"model_id": "chat", "model_source": str(model)},
        **options,
    )


@pytest.fixture(scope="module")
def fleet(demo_model):
    added = {**ENVIRONMENT, "PYTHONPATH": os.pathsep.join([SHIM, os.environ.get("PYTHONPATH", "")])}
    before = {name: os.environ.get(name) for name in added}
    os.environ.update(added)
    import ray
    from ray import serve
    from ray.serve.llm import build_openai_app

    ray.init(num_cpus=2, include_dashboard=False, object_store_memory=100 << 20, log_to_driver=False)
    address = Address(free_port())
    serve.start(http_options={"host": "127.0.0.1", "port": address.port})
    cpus = {"ray_actor_options": {"num_cpus": 0.1}}
    llm = config(demo_model, deployment_config={"num_replicas": 2, "health_check_period_s": 1.0, **cpus})
    ingress = {"num_replicas": 1, "autoscaling_config": None, **cpus}
    serve.run(build_openai_app({"llm_configs": [llm], "ingress_deployment_config": ingress}), name="zinc_rt")
    handle = serve.get_deployment_handle("ZincServer:chat", "zinc_rt")
    address.servers = lambda: [
        (each["pid"], Address(each["port"]), Address(each["metrics_port"]))
        for each in sorted(handle.broadcast("where").results(timeout_s=60), key=lambda each: each["pid"])
    ]
    yield address
    serve.shutdown()
    ray.shutdown()
    for name, value in before.items():
        os.environ.pop(name) if value is None else os.environ.__setitem__(name, value)


def test_answers_are_those_of_the_server(fleet):
    (_, first, _), _ = fleet.servers()
    for path, body in [
        ("/v1/chat/completions", {"messages": MESSAGES, "temperature": 0, "max_tokens": 8, "logprobs": True}),
        ("/v1/completions", {"prompt": "The capital of France is", "temperature": 0, "max_tokens": 8}),
        ("/tokenize", {"prompt": "a b c"}),
        ("/detokenize", {"tokens": [5, 6, 7]}),
    ]:
        body = {"model": "chat", **body}
        status, _, data = fleet.request("POST", path, body)
        wanted = first.request("POST", path, body)
        assert (status, wanted[0]) == (200, 200), (data, wanted[2])
        got, wanted = json.loads(data), json.loads(wanted[2])
        for changes in ("id", "created", "timings"):
            got.pop(changes, None), wanted.pop(changes, None)
        assert got == wanted
    assert json.loads(fleet.request("GET", "/v1/models")[2])["data"][0]["id"] == "chat"
    assert json.loads(first.request("GET", "/v1/models")[2])["data"][0]["max_slots"] == 7


def test_streams_are_whole(fleet):
    def stream(i):
        body = {
            "model": "chat",
            "prompt": f"{i} Once upon a time",
            "max_tokens": 24,
            "ignore_eos": True,
            "stream": True,
        }
        status, headers, data = fleet.request("POST", "/v1/completions", body)
        assert status == 200 and headers["content-type"].startswith("text/event-stream")
        *parts, done = events(data)
        assert done == b"[DONE]"
        return [json.loads(part)["choices"][0]["finish_reason"] for part in parts][-1]

    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        assert list(pool.map(stream, range(16))) == ["length"] * 16


def test_refusals_keep_their_status_and_their_words(fleet):
    for path, body, wanted in [
        ("/v1/completions", {"prompt": "x", "max_tokens": -1}, "max_tokens"),
        ("/v1/embeddings", {"input": "x"}, "pooling"),
    ]:
        status, _, data = fleet.request("POST", path, {"model": "chat", **body})
        assert status in (400, 404, 501) and wanted in data.decode(), (status, data)
    assert fleet.request("POST", "/v1/completions", {"model": "other", "prompt": "x"})[0] == 404


def test_equal_prefixes_go_to_one_replica(fleet):
    system = {"role": "system", "content": "Answer shortly, name the shelf, never recommend what is lent out. " * 8}

    def ask(i):
        messages = [system, {"role": "user", "content": f"Where is book {i}?"}]
        status, _, data = fleet.request("POST", "/v1/chat/completions", {"messages": messages, "max_tokens": 2})
        assert status == 200, data

    ask(-1)
    before = [metrics.answered() for _, _, metrics in fleet.servers()]
    for i in range(20):
        ask(i)
    counts = [metrics.answered() - n for (_, _, metrics), n in zip(fleet.servers(), before, strict=True)]
    assert sum(counts) == 20 and max(counts) >= 18, counts


def test_a_client_that_goes_ends_its_request(fleet):
    body = {"model": "chat", "prompt": "Once", "max_tokens": 1800, "ignore_eos": True, "stream": True}
    connection, response = fleet.open("POST", "/v1/completions", body)
    response.read1()
    servers = fleet.servers()
    wait(lambda: sum(metrics.load()["running"] for _, _, metrics in servers) == 1)
    response.close()
    connection.close()
    wait(lambda: all(metrics.load()["running"] == 0 for _, _, metrics in servers), 20)


def test_directly_everything_is_passed_on(tiny_model):
    from starlette.testclient import TestClient

    from zinc_rt.ray.llm import ZincServer

    replica = ZincServer(config(tiny_model, engine_kwargs={"may_be_open": True}))
    try:
        client = TestClient(asyncio.run(replica.__serve_build_asgi_app__()), "http://127.0.0.1")
        assert client.get("/v1/models").json()["data"][0]["id"] == "chat"
        assert client.get("/nowhere?x=1").status_code == 404
        body = {"input": "hi", "max_output_tokens": 3}
        assert client.post("/v1/responses", json=body).json()["usage"]["output_tokens"] == 3
        asyncio.run(replica.check_health())
        assert asyncio.run(replica.record_routing_stats())["load"]["pages"] > 0
    finally:
        replica.server.stop()


def test_options_of_a_config(tiny_model, capfd):
    from zinc_rt.ray.llm import ZincServer, arguments_of

    kwargs = {"max_slots": 32, "progress": True, "served_name": ["a", "b"], "tier": None, "on_demand": False}
    assert arguments_of(config(tiny_model, engine_kwargs=kwargs)) == [
        *(str(tiny_model), "--id", "chat", "--max-slots", "32", "--progress"),
        *("--served-name", "a", "--served-name", "b"),
    ]
    options = ZincServer.get_deployment_options(config(tiny_model, accelerator_type="H100"))
    assert options["ray_actor_options"] == {"num_gpus": 1, "accelerator_type": "H100"}
    with pytest.raises(errors.InvalidArgument, match="--port: a replica's server is given it"):
        ZincServer(config(tiny_model, engine_kwargs={"port": 1}))
    with pytest.raises(errors.InvalidArgument, match="there is no key"):
        ZincServer(config(tiny_model, engine_kwargs={}))
    with pytest.raises(errors.Unavailable, match="did not start"):
        ZincServer(config(tiny_model, engine_kwargs={"tensor_parallel_size": 2, "may_be_open": True}))
    assert "there is no option --tensor-parallel-size" in capfd.readouterr().err
    with pytest.raises(errors.InvalidArgument, match="lora_config"):
        arguments_of(config(tiny_model, lora_config={"max_num_adapters_per_replica": 2}))
    with contextlib.suppress(errors.InvalidArgument):
        ZincServer.get_deployment_options(config(tiny_model, placement_group_config={"bundles": [{"CPU": 1}]}))
        pytest.fail("a placement group was taken")
