"""The server as LiteLLM, which many gateways are made of, sees it."""

import asyncio
import hashlib

import pytest

from server_process import serving

litellm = pytest.importorskip("litellm")
pytestmark = pytest.mark.slow  # its import takes seconds


@pytest.fixture(scope="module")
def server(tiny_model):
    with serving(tiny_model, "--id", "tiny", "--max-slots", 8) as server:
        yield server


def arguments(server, **more):
    return {
        "model": "openai/tiny",
        "api_base": server.url + "/v1",
        "api_key": "any",
        "messages": [{"role": "user", "content": "hello"}],
        "max_tokens": 8,
        "seed": 3,
        "num_retries": 0,
        **more,
    }


def test_whole_and_streamed_answers_agree(server):
    whole = litellm.completion(**arguments(server))
    text, usage = "", None
    for chunk in litellm.completion(**arguments(server, stream=True, stream_options={"include_usage": True})):
        text += chunk.choices[0].delta.content or "" if chunk.choices else ""
        usage = getattr(chunk, "usage", None) or usage
    assert text == whole.choices[0].message.content
    assert usage.completion_tokens == whole.usage.completion_tokens == 8
    assert whole.usage.prompt_tokens > 0 and whole.choices[0].finish_reason == "length"


def test_many_at_once(server):
    async def ask():
        return await asyncio.gather(*(litellm.acompletion(**arguments(server, seed=i)) for i in range(6)))

    alone = [litellm.completion(**arguments(server, seed=i)).choices[0].message.content for i in range(6)]
    assert [answer.choices[0].message.content for answer in asyncio.run(ask())] == alone


def test_choices_and_logprobs(server):
    answer = litellm.completion(**arguments(server, n=2, logprobs=True, top_logprobs=2, temperature=1))
    assert len(answer.choices) == 2
    assert len(answer.choices[0].logprobs.content) == 8 and len(answer.choices[0].logprobs.content[0].top_logprobs) == 2


def test_text_completion_with_echo(server):
    answer = litellm.text_completion(
        model="text-completion-openai/tiny",
        api_base=server.url + "/v1",
        api_key="any",
        prompt="the hat",
        max_tokens=2,
        echo=True,
    )
    assert answer.choices[0].text.startswith("the hat")


def test_errors_are_typed(server):
    with pytest.raises(litellm.NotFoundError):
        litellm.completion(**arguments(server, model="openai/nobody"))
    with pytest.raises(litellm.BadRequestError):
        litellm.completion(**arguments(server, temperature=9))
    with pytest.raises(litellm.BadRequestError):
        litellm.completion(**arguments(server, messages=[{"role": "user", "content": "a " * 2000}]))


def test_a_wrong_key_and_a_rate_are_typed(tiny_model, tmp_path):
    config = tmp_path / "zinc.toml"
    digest = hashlib.sha256(b"the-key").hexdigest()
    config.write_text(f'[[tenants]]\nname = "a"\nkeys = ["sha256:{digest}"]\nrequests_per_minute = 1\n')
    with serving(tiny_model, "--id", "tiny", "--config", config) as server:
        with pytest.raises(litellm.AuthenticationError):
            litellm.completion(**arguments(server))
        litellm.completion(**arguments(server, api_key="the-key"))
        with pytest.raises(litellm.RateLimitError):
            litellm.completion(**arguments(server, api_key="the-key"))
