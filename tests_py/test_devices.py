"""A model on several devices: the same tokens as on one, tenants over all of them, what program and server say of it.

The devices are those of t_cpu, which are parts of the same processor.
"""

import concurrent.futures
import json

import pytest

import zinc_rt
from server_process import serving
from test_cli import zinc
from zinc_rt import errors

PROMPTS = [[(i * n) % 300 for i in range(1, 30 + n)] for n in range(3, 11)]


@pytest.fixture(scope="module")
def alone(tiny_model):
    with zinc_rt.Engine(tiny_model, tier="t_cpu", max_slots=1) as engine:
        session = engine.tenant("a").session()
        return [session.generate(token_ids=p, max_tokens=12, return_logits_hash=True) for p in PROMPTS]


def test_requests_have_the_tokens_and_hashes_of_one_device(tiny_model, alone):
    with zinc_rt.Engine(tiny_model, tier="t_cpu", devices=[0, 1], max_slots=2) as engine:
        session = engine.tenant("a").session()
        streams = [session.stream(token_ids=p, max_tokens=12, return_logits_hash=True) for p in PROMPTS]
        for stream, wanted in zip(streams, alone, strict=True):
            for _ in stream:
                pass
            assert stream.completion.token_ids == wanted.token_ids
            assert stream.completion.logits_hashes == wanted.logits_hashes
        stats = engine.stats()["models"][0]
        assert [d["device"] for d in stats["devices"]] == [0, 1]
        assert all(d["generated_tokens"] > 0 and d["slots"] == 2 for d in stats["devices"])
        for key in ("steps", "generated_tokens", "pages", "slots", "allocated_bytes", "prompt_tokens"):
            assert stats[key] == sum(d[key] for d in stats["devices"])
        ledger = engine.tenant("a").ledger()
        assert ledger.tokens_generated == 12 * len(PROMPTS) and ledger.requests_finished == len(PROMPTS)


def test_a_quota_holds_over_all_devices(tiny_model):
    quota = zinc_rt.TenantQuota(max_concurrent_slots=3)
    with zinc_rt.Engine(tiny_model, tier="t_cpu", devices=[2, 0], max_slots=4) as engine:
        tenant = engine.tenant("three", quota)
        session, seen = tenant.session(), set()
        streams = [session.stream(token_ids=p, max_tokens=6) for p in PROMPTS * 2]
        for stream in streams:
            for _ in stream:
                seen.add(tenant.ledger().slots_now)
        assert max(seen) <= 3
        assert [d["device"] for d in engine.memory_plan()["devices"]] == [2, 0]
        assert engine.model_card()["devices"] == [2, 0]


def test_a_conversation_finds_its_prefix(tiny_model):
    with zinc_rt.Engine(tiny_model, tier="t_cpu", devices=[0, 1, 2], max_slots=2) as engine:
        session = engine.tenant("a").session()
        for prompt in PROMPTS:
            session.generate(token_ids=prompt, max_tokens=1)
        for prompt in PROMPTS:
            assert session.cached(token_ids=prompt) == (len(prompt), len(prompt) - 1)
            assert session.generate(token_ids=prompt, max_tokens=1).usage.cached_tokens == len(prompt) - 1


@pytest.mark.parametrize(
    ("devices", "says"),
    [
        ([], "devices is empty, at least 1 wanted"),
        ([1, 0, 1], "devices 1,0,1 has 1 twice"),
        ([0, 64], "devices: 64 of tier t_cpu, which has 64 here"),
        ([-1], "devices"),
        (["0"], "devices"),
    ],
)
def test_what_is_no_list_of_devices_is_refused(tiny_model, devices, says):
    with pytest.raises((errors.InvalidArgument, TypeError, ValueError), match=says):
        zinc_rt.Engine(tiny_model, tier="t_cpu", devices=devices)


def test_models_on_devices_of_their_own(tiny_model, alone):
    with zinc_rt.Engine(tiny_model, tier="t_cpu", devices=[0], max_slots=2) as engine:
        engine.add_model(tiny_model, "second", tier="t_cpu", devices=[1], max_slots=2)
        session = engine.tenant("a").session()
        with concurrent.futures.ThreadPoolExecutor() as pool:
            asked = [
                pool.submit(session.generate, token_ids=p, max_tokens=12, model=model)
                for p in PROMPTS
                for model in (None, "second")
            ]
            for i, one in enumerate(asked):
                assert one.result().token_ids == alone[i // 2].token_ids
        assert [m["devices"][0]["device"] for m in engine.stats()["models"]] == [0, 1]
        engine.remove_model("second")


def test_the_program_says_what_each_device_holds(tiny_model):
    run = ["--model", tiny_model, "--tier", "t_cpu", "--devices", "0,1", "--max-slots", "2"]
    plan = json.loads(zinc("plan", *run, "--json").stdout)
    assert [d["device"] for d in plan["devices"]] == [0, 1]
    assert all(d["allocated_bytes"] == plan["allocated_bytes"] > 0 for d in plan["devices"])
    assert "DEVICE" in zinc("plan", *run).stdout
    card = zinc("info", *run)
    assert card.returncode == 0 and "[0,1]" in card.stdout
    prompt = ["-p", "The", "-n", "8", "--seed", "1"]
    one, two = (zinc("run", *options, *prompt).stdout for options in (run[:4], run))
    assert one == two
    for devices, says in (("0,0", "has 0 twice"), ("99", "which has 64 here"), ("x", "--devices")):
        refused = zinc("run", *run[:4], "--devices", devices, "-p", "The", "-n", "1")
        assert refused.returncode != 0 and says in refused.stderr


def test_the_server_has_devices_in_its_configuration(tiny_model, tmp_path):
    config = tmp_path / "zinc.toml"
    models = f'[[models]]\npath = "{tiny_model}"\ntier = "t_cpu"\nmax_slots = 2\n'
    config.write_text(models + 'id = "both"\ndevices = [0, 1]\n' + models + 'id = "other"\ndevices = [1]\n')
    with serving("--config", config) as server:
        listed = {m["id"]: m for m in server.request("GET", "/v1/models")[2]["data"]}
        assert listed["both"]["devices"] == [0, 1] and listed["other"]["devices"] == [1]

        def complete(i):
            body = {"model": "both", "prompt": PROMPTS[i % len(PROMPTS)], "max_tokens": 8, "temperature": 0}
            status, _, answer = server.request("POST", "/v1/completions", body)
            assert status == 200
            return answer["choices"][0]["text"]

        with concurrent.futures.ThreadPoolExecutor(8) as pool:
            texts = list(pool.map(complete, range(4 * len(PROMPTS))))
        assert texts == texts[: len(PROMPTS)] * 4
        load = server.request("GET", "/load")[2]
        assert [d["device"] for d in load["models"]["both"]["devices"]] == [0, 1]
        assert load["models"]["both"]["slots"] == 4 and load["slots"] == 6
        said = server.request("POST", "/v1/prefix", {"model": "both", "prompt": PROMPTS[0]})[2]
        assert said["cached_tokens"] == len(PROMPTS[0]) - 1 and said["device"] in (0, 1)
        assert server.gauge("zinc:device_allocated_bytes") == server.gauge("zinc:allocated_bytes") > 0
        metrics = server.request("GET", "/metrics")[2].decode()
        assert 'zinc:device_requests_running{device="1",model_name="both"}' in metrics
        assert server.request("GET", "/props")[2]["total_slots"] == 4


@pytest.mark.parametrize("devices", ["[]", "[0, 0]", "[64]", "[-1]", '["0"]', "0"])
def test_the_server_refuses_what_is_no_list_of_devices(tiny_model, tmp_path, devices):
    config = tmp_path / "zinc.toml"
    config.write_text(f'[[models]]\npath = "{tiny_model}"\ntier = "t_cpu"\ndevices = {devices}\n')
    log = tmp_path / "log"
    with pytest.raises(AssertionError, match="did not start"), serving("--config", config, log_path=log):
        pass
    assert "devices" in log.read_text()
