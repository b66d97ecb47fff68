"""The server as OpenAI's own Python client sees it."""

import asyncio
import re

import numpy as np
import pytest

import tiny_model as tiny
from server_process import serving

openai = pytest.importorskip("openai")

MODEL = "tiny"


@pytest.fixture(scope="module")
def server(tiny_model):
    with serving(tiny_model, "--id", MODEL, "--max-slots", 8) as server:
        yield server


@pytest.fixture(scope="module")
def client(server):
    return openai.OpenAI(base_url=server.url + "/v1", api_key="any", max_retries=0)


def chat(client, **more):
    arguments = {
        "model": MODEL,
        "messages": [{"role": "user", "content": "hello"}],
        "max_tokens": 12,
        "seed": 7,
        **more,
    }
    return client.chat.completions.create(**arguments)


def test_a_chat_is_answered_with_its_usage(client):
    answer = chat(client)
    assert answer.object == "chat.completion" and answer.id.startswith("chatcmpl-") and answer.model == MODEL
    assert answer.choices[0].message.role == "assistant"
    assert answer.choices[0].finish_reason in ("stop", "length")
    usage = answer.usage
    assert usage.total_tokens == usage.prompt_tokens + usage.completion_tokens
    assert 0 < usage.completion_tokens <= 12


def test_the_same_seed_gives_the_same_text(client):
    assert chat(client).choices[0].message.content == chat(client).choices[0].message.content
    texts = {chat(client, seed=seed, temperature=1.5).choices[0].message.content for seed in range(6)}
    assert len(texts) > 1


def test_a_stream_says_what_the_whole_answer_says(client):
    whole = chat(client)
    role, text, reasons, usage = None, "", [], None
    for chunk in chat(client, stream=True, stream_options={"include_usage": True}):
        assert chunk.object == "chat.completion.chunk"
        if chunk.usage:
            assert not chunk.choices
            usage = chunk.usage
        for choice in chunk.choices:
            role = choice.delta.role or role
            text += choice.delta.content or ""
            reasons += [choice.finish_reason] if choice.finish_reason else []
    assert role == "assistant"
    assert text == whole.choices[0].message.content
    assert reasons == [whole.choices[0].finish_reason]
    assert usage.completion_tokens == whole.usage.completion_tokens


def test_n_choices_have_their_own_texts(client):
    answer = chat(client, n=3, temperature=1.2)
    assert [choice.index for choice in answer.choices] == [0, 1, 2]
    assert len({choice.message.content for choice in answer.choices}) > 1
    streamed = ["", "", ""]
    for chunk in chat(client, n=3, temperature=1.2, stream=True):
        for choice in chunk.choices:
            streamed[choice.index] += choice.delta.content or ""
    assert streamed == [choice.message.content for choice in answer.choices]


@pytest.mark.parametrize("stream", [False, True])
def test_logprobs_of_a_chat(client, stream):
    answer = chat(client, logprobs=True, top_logprobs=3, temperature=0, stream=stream)
    if stream:
        entries = [e for chunk in answer for c in chunk.choices if c.logprobs for e in c.logprobs.content]
    else:
        entries = answer.choices[0].logprobs.content
        assert len(entries) == answer.usage.completion_tokens
    for entry in entries:
        assert entry.logprob <= 0 and len(entry.top_logprobs) == 3
        assert entry.logprob == pytest.approx(entry.top_logprobs[0].logprob)  # greedy
        if not entry.token.startswith("bytes:"):
            assert bytes(entry.bytes).decode() == entry.token


def test_likely_tokens_are_shown_when_asked_for(client):
    entries = chat(client, logprobs=True).choices[0].logprobs.content
    assert entries and all(entry.top_logprobs == [] for entry in entries)


def test_prompt_logprobs_have_a_field_of_their_own(client):
    for logprobs in (None, 1):
        answer = client.completions.create(
            model=MODEL, prompt=[5, 6, 7], max_tokens=2, logprobs=logprobs, extra_body={"prompt_logprobs": 2}
        )
        choice = answer.choices[0]
        prompt = choice.model_extra["prompt_logprobs"]
        assert prompt["token_logprobs"][0] is None and [v <= 0 for v in prompt["token_logprobs"][1:]] == [True, True]
        assert [len(top) for top in prompt["top_logprobs"][1:]] == [2, 2]
        assert (len(choice.logprobs.tokens) == 2) if logprobs else (choice.logprobs is None)
    with pytest.raises(openai.BadRequestError) as caught:
        chat(client, stream=True, extra_body={"prompt_logprobs": 1})
    assert caught.value.body["param"] == "prompt_logprobs"


def test_hashes_of_logits_are_hexadecimal_digits(client):
    asked = {"extra_body": {"return_logits_hash": True}}
    answer = client.completions.create(model=MODEL, prompt=[[5, 6], [7]], max_tokens=3, **asked)
    for choice in answer.choices:
        hashes = choice.model_extra["logits_hash"]
        assert len(hashes) == 3 and all(re.fullmatch("[0-9a-f]{16}", digits) for digits in hashes)
    whole = chat(client, **asked).choices[0].model_extra["logits_hash"]
    deltas = [c.model_extra.get("logits_hash") for chunk in chat(client, stream=True, **asked) for c in chunk.choices]
    assert [digits for hashes in deltas for digits in hashes or []] == whole
    assert "logits_hash" not in chat(client).choices[0].model_extra


@pytest.mark.parametrize("content", ["hello hello", [{"type": "text", "text": "hel"}, {"type": "text", "text": "lo"}]])
def test_a_prediction_changes_no_token(client, content):
    asked = {"return_logits_hash": True, "timings": True, "speculate": "8"}
    plain = chat(client, extra_body={**asked, "speculate": "off"})
    assert plain.model_extra["timings"]["draft_tokens"] == 0
    answer = chat(client, prediction={"type": "content", "content": content}, extra_body=asked)
    assert answer.choices[0].message == plain.choices[0].message
    assert answer.choices[0].model_extra["logits_hash"] == plain.choices[0].model_extra["logits_hash"]
    details, timings = answer.usage.completion_tokens_details, answer.model_extra["timings"]
    assert details.accepted_prediction_tokens == timings["accepted_draft_tokens"]
    assert details.accepted_prediction_tokens + details.rejected_prediction_tokens == timings["draft_tokens"] > 0
    assert plain.usage.completion_tokens_details.rejected_prediction_tokens == 0


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/v1/messages", {"messages": [{"role": "user", "content": "hello"}], "max_tokens": 2}),
        ("/v1/responses", {"input": "hello"}),
        ("/api/chat", {"messages": [{"role": "user", "content": "hello"}]}),
        ("/v1/embeddings", {"input": "hello"}),
    ],
)
def test_apis_without_hashes_refuse_them_by_name(server, path, body):
    status, _, answer = server.request("POST", path, {"model": MODEL, "return_logits_hash": True, **body})
    assert status == 400 and "return_logits_hash" in str(answer["error"])


def test_completions_take_texts_ids_and_lists_of_them(client):
    ids = [5, 6, 7]
    one = client.completions.create(model=MODEL, prompt=ids, max_tokens=4, temperature=0)
    many = client.completions.create(model=MODEL, prompt=[ids, [9, 8]], max_tokens=4, temperature=0, n=2)
    assert one.object == "text_completion"
    assert [choice.index for choice in many.choices] == [0, 1, 2, 3]
    assert many.choices[0].text == many.choices[1].text == one.choices[0].text
    assert many.usage.prompt_tokens == 5 and many.usage.completion_tokens == 16
    text = client.completions.create(model=MODEL, prompt=["the", "than"], max_tokens=3)
    assert len(text.choices) == 2


def test_echo_with_logprobs_scores_the_prompt(client):
    answer = client.completions.create(
        model=MODEL, prompt="the hat", max_tokens=1, temperature=0, echo=True, logprobs=2
    )
    choice = answer.choices[0]
    scored = choice.logprobs
    assert len(scored.tokens) == answer.usage.total_tokens
    assert choice.text.startswith("the hat")
    assert scored.token_logprobs[0] is None and all(value <= 0 for value in scored.token_logprobs[1:])
    assert scored.text_offset == sorted(scored.text_offset) and scored.text_offset[0] == 0
    assert all(len(top) in (1, 2) for top in scored.top_logprobs[1:])


@pytest.mark.parametrize("stream", [False, True])
def test_logprobs_of_0_are_those_of_the_text_alone(client, stream):
    got = {}
    for n in (0, 1):
        answer = client.completions.create(
            model=MODEL, prompt=[5, 6, 7], max_tokens=3, temperature=0, logprobs=n, stream=stream
        )
        parts = [choice.logprobs for chunk in (answer if stream else [answer]) for choice in chunk.choices]
        got[n] = ([value for part in parts if part for value in part.token_logprobs],
                  [top for part in parts if part for top in part.top_logprobs])  # fmt: skip
    assert got[0][0] == got[1][0] and len(got[0][0]) == 3
    assert got[0][1] == [None] * 3 and [len(top) for top in got[1][1]] == [1] * 3
    if not stream:
        echoed = client.completions.create(model=MODEL, prompt=[5, 6, 7], max_tokens=1, logprobs=0, echo=True)
        assert echoed.choices[0].logprobs.top_logprobs == [None] * 4


def test_the_scores_are_those_of_the_logits(client, tiny_engine):
    """What evaluation harnesses read: echo, logprobs, one token."""
    ids = tiny_engine.tokenize("the hat in the then than ant")
    scored = client.completions.create(model=MODEL, prompt=ids, max_tokens=1, temperature=0, echo=True, logprobs=1)
    logits = tiny_engine.logits(ids).astype(np.float64)
    logs = (
        logits
        - np.log(np.exp(logits - logits.max(-1, keepdims=True)).sum(-1, keepdims=True))
        - logits.max(-1, keepdims=True)
    )
    wanted = [logs[i, ids[i + 1]] for i in range(len(ids) - 1)]
    got = scored.choices[0].logprobs.token_logprobs
    assert got[0] is None and got[1:-1] == pytest.approx(wanted, abs=1e-5)
    assert got[-1] == pytest.approx(logs[-1].max(), abs=1e-5)


def test_an_answer_that_goes_on_from_a_message_is_reasoning_only_where_that_left_it_open(tmp_path):
    path = tmp_path / "thinker.gguf"
    tiny.write(path, template=tiny.CHAT_TEMPLATE.replace("assistant: ", "assistant: <think>"))
    with serving(path, "--id", MODEL) as server:
        client = openai.OpenAI(base_url=server.url + "/v1", api_key="any", max_retries=0)

        def parts(last, role="assistant", **extra):
            messages = [{"role": "user", "content": "hello"}, {"role": role, "content": last}]
            extra |= {"ignore_eos": True, "logit_bias": {33: 100}}
            answers = [chat(client, messages=messages, stream=stream, extra_body=extra) for stream in (False, True)]
            whole = answers[0].choices[0].message
            deltas = [chunk.choices[0].delta for chunk in answers[1]]
            said = (whole.content or "", getattr(whole, "reasoning_content", None) or "")
            streamed = ("".join(getattr(delta, name, None) or "" for delta in deltas)
                        for name in ("content", "reasoning_content"))  # fmt: skip
            assert tuple(streamed) == said
            return {(True, False): "content", (False, True): "reasoning"}[bool(said[0]), bool(said[1])]

        go_on, bare = {"continue_final_message": True}, {"add_generation_prompt": False}
        for extra in (go_on, bare):
            assert parts("It is", **extra) == "content"
            assert parts("<think>a</think>It is", **extra) == "content"
            assert parts("<think>It is", **extra) == "reasoning"
            assert parts("a</think><think>It is", **extra) == "reasoning"
            assert parts("what is <think>", role="user", **extra) == "content"
        assert parts("It is") == parts("It is", add_generation_prompt=True) == "reasoning"

        def prompt(path="/apply-template", **extra):
            messages = [{"role": "assistant", "content": "It is"}]
            return server.request("POST", path, {"messages": messages, **extra})

        assert prompt(**bare)[2]["prompt"] == "<|start|>assistant: It is<|end|>"
        assert prompt(**go_on)[2]["prompt"] == prompt(**go_on, **bare)[2]["prompt"] == "<|start|>assistant: It is"
        whole, part = (prompt("/tokenize", **extra)[2]["tokens"] for extra in (bare, go_on))
        assert part == whole[:-1]
        code, _, answer = prompt(add_generation_prompt=True, **go_on)
        assert code == 400 and answer["error"]["param"] == "continue_final_message"


def test_a_stop_text_ends_it_and_is_left_out(client):
    whole = chat(client, temperature=0, max_tokens=20).choices[0].message.content
    printable = [i for i in range(2, len(whole)) if whole[i].isascii() and whole[i] not in whole[:i]]
    if not printable:
        pytest.skip("the random model said nothing to stop at")
    stop = whole[printable[0]]
    answer = chat(client, temperature=0, max_tokens=20, stop=[stop])
    assert answer.choices[0].finish_reason == "stop"
    assert answer.choices[0].message.content == whole[: printable[0]]


def test_models_are_listed(client):
    models = client.models.list().data
    assert [model.id for model in models] == [MODEL]
    assert client.models.retrieve(MODEL).arithmetic == "exact"
    with pytest.raises(openai.NotFoundError):
        client.models.retrieve("nobody")


BAD = {
    "temperature": [3, -1, "hot", True, [], {}],
    "top_p": [1.5, -0.1, "x"],
    "top_k": [-2, 1.5, "x"],
    "min_p": [2, -1],
    "n": [0, 129, 1.5, "two"],
    "max_tokens": [0, -1, 1.5, "many", 10**12],
    "max_completion_tokens": [0, "x"],
    "presence_penalty": [3, "x"],
    "frequency_penalty": [-3, "x"],
    "repetition_penalty": [0, "x"],
    "seed": [1.5, "x", -(2**63) - 1, 2**63, 1e18],
    "stop": [5, [""], ["a"] * 17, {"a": 1}, ""],
    "stop_token_ids": [5, ["x"], [-1], [10**6]],
    "logit_bias": [[], {"x": 1}, {"1": 101}, {"1": "x"}, 5, {"1000000": 1}, {"5": 1, "05": 2}, {"": 1}],
    "logprobs": ["x", 2],
    "top_logprobs": [5, -1, 21, "x"],
    "stream": ["yes", 1],
    "stream_options": [5, {"include_usage": True}],
    "messages": [
        [],
        5,
        "hi",
        [5],
        [{}],
        [{"role": "user"}],
        [{"role": "king", "content": "x"}],
        [{"role": "user", "content": 5}],
        *(
            [{"role": "assistant", "tool_calls": [call]}]
            for call in (
                5,
                {},
                {"function": {"name": ""}},
                {"function": {"name": 5}},
                {"function": {"name": "f", "arguments": 5}},
                {"function": {"name": "f"}, "id": 5},
                {"function": {"name": "f"}, "type": "x"},
            )
        ),
    ],
    "tools": [
        5,
        [5],
        [{}],
        [{"type": "function"}],
        {},
        *(
            [{"type": "function", "function": function}]
            for function in (
                {},
                {"name": "f"},  # the template of this model ignores tools
                {"name": ""},
                {"name": "a\nb"},
                {"name": 5},
                {"name": "f" * 257},
                {"name": "f", "description": 5},
                {"name": "f", "parameters": 5},
                {"name": "f", "parameters": []},
                {"name": "f", "strict": "x"},
            )
        ),
    ],
    "tool_choice": ["required", {"type": "function", "function": {"name": "f"}}, 5],
    "response_format": [
        {"type": "xml"},
        {"type": "json_schema", "json_schema": {}},
        {"type": "json_schema", "json_schema": {"schema": {"not": {"type": "null"}}}},
        {"type": "json_schema", "json_schema": {"schema": 5}},
        {"json_schema": {"schema": {}}},
        5,
    ],
    "guided_regex": [5, "(", "a{99999999}"],
    "guided_choice": [[], [5], "a"],
    "grammar": [5, "root := x"],
    "reasoning_effort": ["extreme", 5],
    "reasoning": [5, {"effort": "extreme"}, {"enabled": 3}, {"max_tokens": 20}, {"strength": 1}],
    "service_tier": ["gold", 5],
    "functions": [[{"name": "f"}]],
    "function_call": ["f", {"name": "f"}],
    "parallel_tool_calls": ["x"],
    "modalities": [["audio"], "text"],
    "audio": [{"voice": "x", "format": "wav"}],
    "prediction": [
        "x",
        {"type": "content"},
        {"type": "text", "content": "x"},
        {"type": "content", "content": 5},
        {"type": "content", "content": [{"type": "image_url", "image_url": {"url": "x"}}]},
        {"type": "content", "content": "x", "weight": 1},
        {"type": "content", "content": "x" * 5000},
    ],
    "speculate": ["no", "33", "0", 4],
    "web_search_options": [{}],
    "store": [True],
    "metadata": [5],
    "min_tokens": [-1, "x", 13],
    "deadline_ms": [-1, "x"],
    "cache_salt": [5],
    "chat_template_kwargs": [5, []],
    "echo": [True],
    "guided_json": [5, "{", {"type": "shape"}],
    "no_such_field": [1],
}


@pytest.mark.parametrize(("field", "value"), [(field, value) for field, values in BAD.items() for value in values])
def test_a_bad_field_is_refused_by_its_name(client, field, value):
    body = {"messages": [{"role": "user", "content": "hi"}], "max_tokens": 12, field: value}
    with pytest.raises(openai.BadRequestError) as caught:
        client.post("/chat/completions", cast_to=object, body=body)
    error = caught.value.body
    assert error["type"] == "invalid_request_error"
    assert (error["param"] or "").split(".")[0].split("[")[0] == field
    assert field in error["message"]


def test_errors_are_typed(client):
    with pytest.raises(openai.NotFoundError) as caught:
        chat(client, model="nobody")
    assert caught.value.body["code"] == "model_not_found" and MODEL in caught.value.body["message"]
    with pytest.raises(openai.BadRequestError) as caught:
        client.completions.create(model=MODEL, prompt=[1] * 600, max_tokens=4)
    assert caught.value.body["code"] == "context_length_exceeded"
    assert "600" in caught.value.body["message"] and "512" in caught.value.body["message"]


def test_what_is_not_served_says_so_by_name(client):
    with pytest.raises(openai.APIStatusError) as caught:
        client.moderations.create(input="x")
    assert caught.value.status_code == 501 and "moderation" in caught.value.body["message"]


def test_many_at_once_each_get_their_own(server, client):
    alone = [chat(client, seed=seed, temperature=1).choices[0].message.content for seed in range(12)]

    async def together():
        async with openai.AsyncOpenAI(base_url=server.url + "/v1", api_key="any", max_retries=0) as many:
            answers = await asyncio.gather(
                *(
                    many.chat.completions.create(
                        model=MODEL,
                        messages=[{"role": "user", "content": "hello"}],
                        max_tokens=12,
                        seed=seed,
                        temperature=1,
                    )
                    for seed in range(12)
                )
            )
            return [answer.choices[0].message.content for answer in answers]

    assert asyncio.run(together()) == alone


def test_azures_client_is_answered_under_its_own_paths(server):
    azure = openai.AzureOpenAI(azure_endpoint=server.url, api_key="any", api_version="2024-10-21", max_retries=0)
    answer = chat(azure)
    assert answer.model == MODEL and answer.choices[0].message.role == "assistant"
    assert azure.completions.create(model=MODEL, prompt="a", max_tokens=2).usage.completion_tokens <= 2
    with pytest.raises(openai.NotFoundError):
        chat(azure, model="nobody")


def test_what_fails_again_is_not_sent_again(server):
    """The client sends a 501 again unless it is told not to."""
    sent = []
    hooks = {"request": [sent.append]}
    with openai.DefaultHttpxClient(event_hooks=hooks) as http:
        client = openai.OpenAI(base_url=server.url + "/v1", api_key="any", max_retries=2, http_client=http)
        with pytest.raises(openai.APIStatusError):
            client.moderations.create(input="x")
    assert len(sent) == 1
