"""zinc-rt bench serve, against this server and one that keeps to OpenAI's API in its own way."""

import hashlib
import json
import re
import signal
import subprocess
import xml.etree.ElementTree

import pytest

from other_server import other_server
from server_process import PROGRAM, serving

KEYS = {"a": "key-a", "b": "key-b"}


@pytest.fixture(scope="module")
def server(tiny_model, tmp_path_factory):
    config = tmp_path_factory.mktemp("bench") / "zinc.toml"
    digests = {name: hashlib.sha256(key.encode()).hexdigest() for name, key in {**KEYS, "admin": "key-admin"}.items()}
    config.write_text(
        f'admin_keys = ["sha256:{digests["admin"]}"]\n[[models]]\npath = "{tiny_model}"\nid = "tiny"\nmax_slots = 8\n'
        + "".join(f'[[tenants]]\nname = "{name}"\nkeys = ["sha256:{digests[name]}"]\n' for name in KEYS)
    )
    with serving("--config", config) as server:
        yield server


def bench(url, *arguments, timeout=120):
    return subprocess.run(
        [*PROGRAM, "bench", "serve", "--url", url, *map(str, arguments)],
        capture_output=True,
        text=True,
        timeout=timeout,
    )


def report(folder, url, *arguments):
    """The JSON of a run that works, with its other files looked at."""
    files = [folder / name for name in ("load.json", "load.md", "load.svg")]
    result = bench(url, *arguments, "--json", files[0], "--markdown", files[1], "--plot", files[2])
    assert result.returncode == 0, result.stderr
    assert "| tenant | requests | ok |" in files[1].read_text()
    picture = xml.etree.ElementTree.parse(files[2]).getroot()
    assert picture.tag.endswith("}svg") and not re.search(r"nan|inf", files[2].read_text())
    return json.loads(files[0].read_text())


def usage(server, tenant):
    return server.request("GET", f"/v1/tenants/{tenant}/usage", key="key-admin")[2]


def test_the_closed_loop_counts_what_the_ledger_counts(server, tmp_path):
    before = {name: usage(server, name) for name in KEYS}
    out = report(
        tmp_path, server.url, "--tenant", "a,key=key-a,clients=3", "--tenant", "b,key=key-b,clients=1,output=2-5",
        "--requests", 9, "--prompt", "60-90", "--output", 6, "--ignore-eos", "--shared-prefix", 32,
    )  # fmt: skip
    assert [t["name"] for t in out["tenants"]] == ["a", "b"] and out["ran"]["model"] == "tiny"
    for tenant in out["tenants"]:
        name = tenant["name"]
        assert (tenant["requests"], tenant["ok"], tenant["failed"]) == (9, 9, 0)
        after = usage(server, name)
        learned = 2 if name == "a" else 0  # the requests that told how many tokens a word has
        assert after["requests"] - before[name]["requests"] == 9 + learned
        assert after["completion_tokens"] - before[name]["completion_tokens"] == tenant["output_tokens"] + learned
        assert tenant["ttft_ms"]["n"] == 9 and 0 < tenant["ttft_ms"]["p50"] <= tenant["ttft_ms"]["max"]
        mean = tenant["prompt_tokens"] / 9
        assert 75 < mean < 150, "prompts are 92 to 122 tokens and a word more or less"
    assert out["tenants"][0]["output_tokens"] == 54 and out["tenants"][0]["cached_tokens"] > 0
    x, y = (t["output_tokens"] for t in out["tenants"])
    assert out["fairness"] == pytest.approx((x + y) ** 2 / (2 * (x**2 + y**2)))
    assert out["total"]["output_tokens"] == x + y
    assert len(out["requests"]) == 18 and {r["status"] for r in out["requests"]} == {"200"}


def test_a_seed_is_a_load(server, tmp_path):
    load = ("--api-key", "key-a", "--requests", 5, "--clients", 2, "--prompt", "10-90", "--api", "completions")
    sums = [
        sorted((r["prompt_tokens"], r["output_tokens"]) for r in report(tmp_path, server.url, *load, *more)["requests"])
        for more in (["--seed", 3], ["--seed", 3], ["--seed", 4])
    ]
    assert sums[0] == sums[1] != sums[2]


def test_the_open_loop_asks_at_its_rate_and_hangs_up(server, tmp_path):
    out = report(
        tmp_path, server.url, "--api-key", "key-a", "--rate", 20, "--duration", 3, "--output", 40, "--drop", 0.5,
        "--prompt", 40, "--ignore-eos",
    )  # fmt: skip
    (tenant,) = out["tenants"]
    assert 25 < tenant["requests"] < 110  # Poisson of 60: five times the deviation
    assert tenant["failed"] == 0 and tenant["ok"] > 0 and tenant["hung_up"] > 0
    assert all(0 <= r["asked_s"] < 3 for r in out["requests"])
    server.wait(lambda: server.gauge("zinc:slots_free", key="key-admin") == 8)


def test_further_fields_go_into_each_request(server, tmp_path):
    load = ("--api-key", "key-a", "--requests", 3, "--prompt", 40, "--output", 40, "--ignore-eos")
    out = report(tmp_path, server.url, *load, "--extra-body", '{"max_tokens": 5}')
    assert out["ran"]["extra_body"] == {"max_tokens": 5} and out["total"]["output_tokens"] == 15
    refused = bench(server.url, *load, "--extra-body", '{"top_p": 7}')
    assert refused.returncode == 1 and "top_p" in refused.stderr


def test_failures_are_counted_by_kind_in_the_servers_words(server, tmp_path):
    out = report(
        tmp_path, server.url, "--tenant", "a,key=key-a", "--tenant", "thief,key=wrong,clients=1,requests=2",
        "--tenant", "long,key=key-b,clients=1,requests=1,prompt=5000", "--requests", 3, "--output", 4, "--prompt", 40,
    )  # fmt: skip
    a, thief, long = out["tenants"]
    assert a["failures"] == {} and thief["failures"] == {"401": 2} and long["failures"] == {"400": 1}
    assert "context" in long["errors"]["400"] and thief["ttft_ms"] is None


def test_what_cannot_be_measured_is_said(server):
    wrong = bench(server.url, "--api-key", "wrong")
    assert wrong.returncode == 1 and "key" in wrong.stderr
    nobody = bench("http://127.0.0.1:1")
    assert nobody.returncode == 1 and "127.0.0.1:1" in nobody.stderr


@pytest.mark.parametrize(
    "arguments",
    [
        ("--prompt", "0"),
        ("--output", "9-3"),
        ("--tenant", "key=k"),
        ("--tenant", "a,clients=0"),
        ("--tenant", "a,colour=red"),
        ("--drop", "2"),
        ("--rate", "-1"),
        ("--api", "images"),
        ("--extra-body", "[1]"),
        ("--extra-body", "{"),
    ],
)
def test_bad_usage_is_2(arguments):
    assert bench("http://127.0.0.1:1", *arguments).returncode == 2


def test_ctrl_c_reports_what_there_is(server, tmp_path):
    file, log = tmp_path / "load.json", tmp_path / "log"
    with open(log, "wb") as stderr:
        process = subprocess.Popen(
            [*PROGRAM, "bench", "serve", "--url", server.url, "--api-key", "key-a", "--json", file, "--duration", "100",
             "--prompt", "40", "--progress"], stderr=stderr, stdout=subprocess.DEVNULL,
        )  # fmt: skip
    server.wait(lambda: re.search(rb" [1-9]\d* ended", log.read_bytes()))
    process.send_signal(signal.SIGINT)
    assert process.wait(30) == 0
    out = json.loads(file.read_text())
    assert out["ran"]["is_cut_short"] and out["total"]["ok"] > 0


def test_servers_that_count_nothing_are_measured_too(tmp_path):
    with other_server() as server:
        out = report(tmp_path, server.url, "--requests", 6, "--clients", 3)
    assert out["ran"]["tokens_per_word"] == 0 and out["total"]["ok"] == 6
    assert out["total"]["output_tokens"] == 18 and out["total"]["gap_ms"]["n"] == 12
    assert out["total"]["gap_ms"]["p50"] > 5
