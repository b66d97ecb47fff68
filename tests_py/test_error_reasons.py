"""What programs read of an error: its class, reason and field; of a server's answer, status, code and param."""

import asyncio

import pytest

import tiny_model as tiny
import zinc_rt
from server_process import serving
from zinc_rt import errors


@pytest.fixture(scope="module")
def session(tiny_model):
    with zinc_rt.Engine(tiny_model, tier="t_cpu") as engine:
        yield engine.tenant("t").session()


TOO_COMPLEX = {"kind": "regex", "regex": "a{99999999}"}


@pytest.mark.parametrize(
    ("parameters", "reason", "field"),
    [
        ({"prompt": "word " * 50000}, "context_length_exceeded", "prompt"),
        ({"token_ids": [5] * (tiny.CONTEXT + 1)}, "context_length_exceeded", "token_ids"),
        ({"token_ids": [10**6]}, "", "token_ids"),
        ({"prompt": "a", "n": 1000}, "", "n"),
        ({"prompt": "a", "max_tokens": 2, "min_tokens": 3}, "", "min_tokens"),
        ({"prompt": "a", "logit_bias": {10**6: 1.0}}, "", "logit_bias"),
        ({"prompt": "a", "regex": "("}, "", "output_format"),
        ({"prompt": "a", "regex": "a{99999999}"}, "grammar_too_complex", "output_format"),
        # Found before the engine is asked.
        ({"prompt": "a", "max_tokens": "b"}, "", "max_tokens"),
        ({"prompt": "a", "max_token": 3}, "", "max_token"),
    ],
)
def test_an_exception_has_a_reason_and_a_field(session, parameters, reason, field):
    with pytest.raises(errors.InvalidArgument) as caught:
        session.generate(**parameters)
    assert (caught.value.reason, caught.value.field) == (reason, field), caught.value


def test_a_quota_that_is_wrong_names_its_member(tiny_model):
    with zinc_rt.Engine(tiny_model, tier="t_cpu") as engine:
        with pytest.raises(errors.InvalidArgument) as caught:
            engine.tenant("t", zinc_rt.TenantQuota(max_kv_pages=2, reserved_kv_pages=3))
        assert caught.value.field == "reserved_kv_pages"
        with pytest.raises(errors.Exhausted) as caught:
            engine.tenant("t", zinc_rt.TenantQuota(max_kv_pages=2 * 10**6, reserved_kv_pages=10**6))
        assert caught.value.field == "reserved_kv_pages"


def test_other_errors_have_neither():
    with pytest.raises(errors.NotFound) as caught:
        zinc_rt.Engine("/no/such/file.gguf")
    assert (caught.value.reason, caught.value.field) == ("", "")


def test_the_client_has_those_of_the_answer(tiny_model):
    async def ask(url):
        async with zinc_rt.AsyncClient(url) as client:
            await client.generate("word " * 50000, max_tokens=1)

    with serving(tiny_model) as server, pytest.raises(errors.InvalidArgument) as caught:
        asyncio.run(ask(server.url))
    assert (caught.value.reason, caught.value.field) == ("context_length_exceeded", "prompt")
