"""/v1/messages, /v1/responses and Ollama's API: streams and whole answers of a model that recites, and refusals."""

import hashlib
import json

import pytest

import scripted_model
from server_process import serving
from test_tool_calls import CHOOSE, SCRIPTS

PARAMETERS = {"type": "object", "properties": {"city": {"type": "string"}}}
MESSAGES_TOOLS = [{"name": "get_weather", "description": "d", "input_schema": PARAMETERS}]
RESPONSES_TOOLS = [{"type": "function", "name": "get_weather", "parameters": PARAMETERS}, {"type": "web_search"}]
OLLAMA_TOOLS = [{"type": "function", "function": {"name": "get_weather", "parameters": PARAMETERS}}]


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    path = tmp_path_factory.mktemp("models") / "scripted.gguf"
    scripted_model.write(path, SCRIPTS, CHOOSE)
    with serving(path, "--id", "m") as server:
        yield server


def post(server, path, body, wanted=200):
    status, _, answer = server.request("POST", path, body)
    assert status == wanted, answer
    return answer


def events(text):
    """(name, data) of server-sent events."""
    out = []
    for event in text.decode().split("\n\n"):
        lines = dict(line.split(": ", 1) for line in event.splitlines() if ": " in line)
        if "data" in lines:
            out.append((lines.get("event"), json.loads(lines["data"])))
    return out


# /v1/messages


def messages_body(script="look", **fields):
    content = [{"role": "user", "content": script}]
    return {"model": "m", "max_tokens": 500, "messages": content, "tools": MESSAGES_TOOLS, **fields}


def blocks_of(stream):
    blocks = []
    for name, data in stream:
        if name == "content_block_start":
            assert data["index"] == len(blocks)
            blocks.append({**data["content_block"], "json": ""})
        elif name == "content_block_delta":
            block, delta = blocks[data["index"]], data["delta"]
            for field in ("text", "thinking", "signature"):
                if field in delta:
                    block[field] += delta[field]
            block["json"] += delta.get("partial_json", "")
    for block in blocks:
        text = block.pop("json")
        if block["type"] == "tool_use":
            block["input"] = json.loads(text)
    return blocks


@pytest.mark.parametrize("script", SCRIPTS)
def test_messages_streamed_are_those_that_are_whole(server, script):
    whole = post(server, "/v1/messages", messages_body(script))
    stream = events(post(server, "/v1/messages", messages_body(script, stream=True)))
    names = [name for name, _ in stream]
    assert names[:2] == ["message_start", "ping"]
    assert names[-2:] == ["message_delta", "message_stop"]
    assert all(name == data["type"] for name, data in stream)
    without_ids = [[{**b, "id": 0} for b in blocks] for blocks in (blocks_of(stream), whole["content"])]
    assert without_ids[0] == without_ids[1]
    assert stream[-2][1]["delta"]["stop_reason"] == whole["stop_reason"]
    assert stream[-2][1]["usage"]["output_tokens"] == whole["usage"]["output_tokens"]


def test_messages_go_on_behind_results(server):
    first = post(server, "/v1/messages", messages_body(thinking={"type": "enabled", "budget_tokens": 1024}))
    assert first["stop_reason"] == "tool_use"
    assert [b["type"] for b in first["content"]] == ["thinking", "text", "tool_use", "tool_use"]
    results = [
        {"type": "tool_result", "tool_use_id": b["id"], "content": [{"type": "text", "text": "sunny"}]}
        for b in first["content"]
        if b["type"] == "tool_use"
    ]
    history = [
        {"role": "user", "content": "look"},
        {"role": "assistant", "content": first["content"]},
        {"role": "user", "content": results},
    ]
    system = [{"type": "text", "text": "Be kind.", "cache_control": {"type": "ephemeral"}}]
    second = post(server, "/v1/messages", messages_body(messages=history, system=system))
    assert second["content"] == [{"type": "text", "text": SCRIPTS["answer"]}]
    assert second["stop_reason"] == "end_turn"


def test_messages_hide_the_billing_line(server):
    """It changes with each request, and no prefix behind it could be found again."""
    usages = []
    for cch in ("11111", "22222"):
        system = [
            {"type": "text", "text": f"x-anthropic-billing-header: cc_version=2.1; cch={cch};"},
            {"type": "text", "text": "Be kind. " * 40},
        ]
        usages.append(post(server, "/v1/messages", messages_body("plain", system=system))["usage"])
    assert usages[1]["cache_read_input_tokens"] > 300
    n_prompt = [usage["input_tokens"] + usage["cache_read_input_tokens"] for usage in usages]
    assert n_prompt[0] == n_prompt[1]


def test_messages_stop_reasons(server):
    stopped = post(server, "/v1/messages", messages_body("plain", stop_sequences=["has to"]))
    assert (stopped["stop_reason"], stopped["stop_sequence"]) == ("stop_sequence", "has to")
    cut = post(server, "/v1/messages", messages_body("plain", max_tokens=2))
    assert (cut["stop_reason"], cut["stop_sequence"]) == ("max_tokens", None)
    hidden = post(server, "/v1/messages", messages_body(thinking={"type": "adaptive", "display": "omitted"}))
    assert hidden["content"][0] == {"type": "thinking", "thinking": "", "signature": "zinc_rt"}


def test_count_tokens_is_the_usage_of_the_same_request(server):
    body = messages_body("plain", system="Be kind.")
    usage = post(server, "/v1/messages", body)["usage"]
    del body["max_tokens"]
    count = post(server, "/v1/messages/count_tokens", body)
    assert count == {"input_tokens": usage["input_tokens"] + usage["cache_read_input_tokens"]}


@pytest.mark.parametrize(
    ("fields", "field"),
    [
        ({"max_tokens": None}, "max_tokens"),
        ({"messages": []}, "messages"),
        ({"messages": [{"role": "user", "content": [{"type": "image", "source": {}}]}]}, "messages[0].content[0].type"),
        ({"messages": [{"role": "robot", "content": "a"}]}, "messages[0].role"),
        ({"tools": [{"type": "web_search_20250305", "name": "web_search"}]}, "tools[0].type"),
        ({"tool_choice": {"type": "any"}, "tools": []}, "tool_choice.type"),
        ({"tool_choice": {"type": "tool"}}, "tool_choice.name"),
        ({"output_config": {"format": {"type": "xml"}}}, "output_config.format.type"),
        ({"thinking": {"type": "hard"}}, "thinking.type"),
        ({"mcp_servers": [{}]}, "mcp_servers"),
        ({"colour": 1}, "colour"),
    ],
)
def test_messages_refuse_by_name(server, fields, field):
    answer = post(server, "/v1/messages", messages_body(**fields), 400)
    assert answer["type"] == "error"
    assert answer["error"]["type"] == "invalid_request_error"
    assert field in answer["error"]["message"]


def test_messages_of_no_model(server):
    answer = post(server, "/v1/messages", messages_body(model="other"), 404)
    assert answer["error"]["type"] == "not_found_error"


# /v1/responses


def responses_body(script="look", **fields):
    return {"model": "m", "input": script, "tools": RESPONSES_TOOLS, "seed": 3, "store": False, **fields}


def without_ids(items):
    return [{k: v for k, v in item.items() if k not in ("id", "call_id")} for item in items]


@pytest.mark.parametrize("script", SCRIPTS)
def test_responses_streamed_are_those_that_are_whole(server, script):
    whole = post(server, "/v1/responses", responses_body(script))
    stream = events(post(server, "/v1/responses", responses_body(script, stream=True)))
    assert [data["sequence_number"] for _, data in stream] == list(range(len(stream)))
    assert all(name == data["type"] for name, data in stream)
    assert [name for name, _ in stream[:2]] == ["response.created", "response.in_progress"]
    name, last = stream[-1]
    assert name == "response.completed"
    assert without_ids(last["response"]["output"]) == without_ids(whole["output"])
    done = [data["item"] for name, data in stream if name == "response.output_item.done"]
    assert done == last["response"]["output"]
    text = "".join(data["delta"] for name, data in stream if name == "response.output_text.delta")
    parts = [part["text"] for item in whole["output"] if item["type"] == "message" for part in item["content"]]
    assert text == "".join(parts)
    arguments = {}
    for name, data in stream:
        if name == "response.function_call_arguments.delta":
            arguments[data["item_id"]] = arguments.get(data["item_id"], "") + data["delta"]
    assert list(arguments.values()) == [i["arguments"] for i in whole["output"] if i["type"] == "function_call"]


def test_responses_go_on_behind_results(server):
    first = post(server, "/v1/responses", responses_body(include=["reasoning.encrypted_content"]))
    assert [item["type"] for item in first["output"]] == ["reasoning", "message", "function_call", "function_call"]
    assert [tool["type"] for tool in first["tools"]] == ["function"]  # those that the model was shown
    items = [{"role": "user", "content": [{"type": "input_text", "text": "look"}]}, *first["output"]]
    items += [
        {"type": "function_call_output", "call_id": item["call_id"], "output": "sunny"}
        for item in first["output"]
        if item["type"] == "function_call"
    ]
    second = post(server, "/v1/responses", responses_body(items, instructions="Be kind."))
    assert second["output"][0]["content"][0]["text"] == SCRIPTS["answer"]
    # The reasoning comes back from what was sealed alone.
    items[1] = {"type": "reasoning", "summary": [], "encrypted_content": first["output"][0]["encrypted_content"]}
    third = post(server, "/v1/responses", responses_body(items, instructions="Be kind."))
    assert third["usage"]["input_tokens"] == second["usage"]["input_tokens"]


def test_responses_that_are_cut_are_incomplete(server):
    answer = post(server, "/v1/responses", responses_body("plain", max_output_tokens=2))
    assert answer["status"] == "incomplete"
    assert answer["incomplete_details"] == {"reason": "max_output_tokens"}


@pytest.mark.parametrize(
    ("fields", "field"),
    [
        ({"input": None}, "input"),
        ({"input": [{"type": "item_reference", "id": "x"}]}, "input[0].type"),
        ({"input": [{"role": "user", "content": [{"type": "input_image"}]}]}, "input[0].content[0].type"),
        ({"store": True}, "store"),
        ({"conversation": "conv_1"}, "conversation"),
        ({"background": True}, "background"),
        ({"tool_choice": "required", "tools": []}, "tool_choice"),
        ({"tool_choice": {"type": "function", "name": "other"}}, "other"),
        ({"include": ["file_search_call.results"]}, "include"),
        ({"text": {"format": {"type": "json_schema"}}}, "text.format.schema"),
        ({"text": {"format": {"type": "json_schema", "schema": {"not": {"type": "null"}}}}}, "/not"),
        ({"colour": 1}, "colour"),
    ],
)
def test_responses_refuse_by_name(server, fields, field):
    answer = post(server, "/v1/responses", responses_body(**fields), 400)
    assert field in answer["error"]["message"]


KEY, OTHER_KEY = "sk-keeps", "sk-other"


@pytest.fixture
def keeping(server, tmp_path):
    """A server with a tenant that may store and one that may not, and how to start it again."""
    model = tmp_path / "m.gguf"
    scripted_model.write(model, SCRIPTS, CHOOSE)
    keys = {"keeps": KEY, "other": OTHER_KEY}
    config = f'[[models]]\npath = "{model}"\nid = "m"\n'
    for name, key in keys.items():
        digest = hashlib.sha256(key.encode()).hexdigest()
        config += (
            f'[[tenants]]\nname = "{name}"\nkeys = ["sha256:{digest}"]\nmay_store = {str(name == "keeps").lower()}\n'
        )
    (tmp_path / "config.toml").write_text(config)
    return lambda: serving("--config", tmp_path / "config.toml", state=tmp_path / "state.db")


def test_responses_are_kept_for_who_may_have_them_kept(keeping):
    def ask(server, key=KEY, **fields):
        body = {"model": "m", "tools": RESPONSES_TOOLS, **fields}
        return server.request("POST", "/v1/responses", body, key=key)

    with keeping() as server:
        status, _, first = ask(server, input="look")
        assert status == 200, first
        assert first["store"] is True
        id = first["id"]
        assert server.request("GET", f"/v1/responses/{id}", key=KEY)[2] == first
        assert server.request("GET", f"/v1/responses/{id}", key=OTHER_KEY)[0] == 404
        assert ask(server, key=OTHER_KEY, input="a", previous_response_id=id)[0] == 404
        status, _, answer = ask(server, key=OTHER_KEY, input="look", store=True)
        assert (status, answer["error"]["param"]) == (400, "store")
        assert ask(server, key=OTHER_KEY, input="look")[2]["store"] is False
        server.process.kill()
        server.process.wait()
    with keeping() as server:  # it was killed: what was answered is there
        results = [
            {"type": "function_call_output", "call_id": item["call_id"], "output": "sunny"}
            for item in first["output"]
            if item["type"] == "function_call"
        ]
        status, _, second = ask(server, input=results, previous_response_id=id, stream=False)
        assert status == 200, second
        assert second["output"][0]["content"][0]["text"] == SCRIPTS["answer"]
        assert second["previous_response_id"] == id
        items = server.request("GET", f"/v1/responses/{second['id']}/input_items", key=KEY)[2]["data"]
        assert items == [{"role": "user", "content": "look"}, *first["output"], *results]
        stream = events(ask(server, input="plain", previous_response_id=second["id"], stream=True)[2])
        third = stream[-1][1]["response"]
        assert server.request("GET", f"/v1/responses/{third['id']}", key=KEY)[2] == third
        assert server.request("POST", f"/v1/responses/{id}/cancel", key=KEY)[0] == 400
        assert server.request("DELETE", f"/v1/responses/{id}", key=KEY)[2]["deleted"] is True
        assert server.request("DELETE", f"/v1/responses/{id}", key=KEY)[0] == 404
        assert ask(server, input="look", store=False)[2]["store"] is False


# Ollama's


def ollama_body(script="look", **fields):
    return {"model": "m:latest", "messages": [{"role": "user", "content": script}], "tools": OLLAMA_TOOLS, **fields}


@pytest.mark.parametrize("script", SCRIPTS)
def test_ollama_streamed_is_whole(server, script):
    whole = post(server, "/api/chat", ollama_body(script, stream=False))
    lines = [json.loads(line) for line in post(server, "/api/chat", ollama_body(script)).decode().splitlines()]
    assert [line["done"] for line in lines] == [False] * (len(lines) - 1) + [True]
    joined = {"content": "", "thinking": ""}
    calls = []
    for line in lines:
        for name in joined:
            joined[name] += line["message"].get(name, "")
        calls += line["message"].get("tool_calls", [])
    assert joined["content"] == whole["message"]["content"]
    assert joined["thinking"] == whole["message"].get("thinking", "")
    assert calls == whole["message"].get("tool_calls", [])
    assert all(isinstance(call["function"]["arguments"], dict) for call in calls)
    for name in ("done_reason", "prompt_eval_count", "eval_count"):
        assert lines[-1][name] == whole[name]


def test_ollama_goes_on_behind_results(server):
    first = post(server, "/api/chat", ollama_body(stream=False))["message"]
    results = [{"role": "tool", "tool_name": "get_weather", "content": "sunny"} for _ in first["tool_calls"]]
    history = [{"role": "user", "content": "look"}, first, *results]
    assert post(server, "/api/chat", ollama_body(messages=history, stream=False))["message"] == {
        "role": "assistant",
        "content": SCRIPTS["answer"],
    }


def test_ollama_generates_loads_and_lists(server):
    body = {"model": "m", "prompt": "plain", "stream": False, "options": {"num_predict": 3, "temperature": 0}}
    answer = post(server, "/api/generate", body)
    assert SCRIPTS["plain"].startswith(answer["response"])
    assert (answer["done_reason"], answer["eval_count"]) == ("length", 3)
    assert post(server, "/api/generate", {"model": "m"})["done_reason"] == "load"
    (model,) = server.request("GET", "/api/tags")[2]["models"]
    assert model["name"] == "m"
    assert model["details"]["family"] == "llama"
    shown = post(server, "/api/show", {"model": "m"})
    assert {"completion", "tools"} <= set(shown["capabilities"])
    assert shown["model_info"]["llama.context_length"] > 0
    status, headers, refused = server.request("POST", "/api/show", {"model": "none"}, headers={"x-request-id": "r1"})
    assert (status, list(refused)) == (404, ["error"])
    assert headers["x-request-id"] == "r1"
    assert server.request("GET", "/api/ps")[2]["models"][0]["name"] == "m"
    assert server.request("GET", "/api/version")[2]["version"].replace(".", "").isdigit()
    assert server.request("GET", "/", headers={"Accept": "*/*"})[2] == b"Ollama is running"


@pytest.mark.parametrize("script", SCRIPTS)
def test_ollama_gives_logprobs_of_each_token(server, script):
    """Also of those whose text is held back: as many as tokens, and the same in lines, for chats and prompts."""
    options = {"num_predict": 12, "temperature": 0}
    asked = ollama_body(script, logprobs=True, top_logprobs=2, options=options)
    whole = post(server, "/api/chat", {**asked, "stream": False})
    lines = [json.loads(line) for line in post(server, "/api/chat", asked).decode().splitlines()]
    assert len(whole["logprobs"]) == whole["eval_count"]
    assert [entry for line in lines for entry in line.get("logprobs", [])] == whole["logprobs"]
    for entry in whole["logprobs"]:
        assert entry["logprob"] == entry["top_logprobs"][0]["logprob"] <= 0  # greedy
        assert len(entry["top_logprobs"]) == 2 and bytes(entry["bytes"]).decode("utf-8", "replace")
    plain = {"model": "m", "prompt": script, "stream": False, "logprobs": True, "options": options}
    (first, *_) = post(server, "/api/generate", plain)["logprobs"]
    assert first["top_logprobs"] == [] and first["token"] == whole["logprobs"][0]["token"]
    assert "logprobs" not in post(server, "/api/generate", {**plain, "logprobs": False})


@pytest.mark.parametrize(
    ("fields", "status", "field"),
    [
        ({"options": {"num_ctx": 1 << 24}}, 400, "num_ctx"),
        ({"options": {"colour": 1}}, 400, "options.colour"),
        ({"format": "xml"}, 400, "format"),
        ({"think": "hard"}, 400, "think"),
        ({"truncate": True}, 400, "truncate: true is not served"),
        ({"shift": True}, 400, "shift: true is not served"),
        ({"top_logprobs": 3}, 400, "top_logprobs: only with"),
        ({"logprobs": True, "top_logprobs": 21}, 400, "top_logprobs"),
        ({"messages": [{"role": "user", "content": "a", "images": ["x"]}]}, 400, "images"),
        ({"model": "other"}, 404, "other"),
    ],
)
def test_ollama_refuses_by_name(server, fields, status, field):
    answer = post(server, "/api/chat", ollama_body(**fields), status)
    assert field in answer["error"]
    assert answer.keys() == {"error"}
