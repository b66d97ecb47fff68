"""POST /v1/prefix and Session.cached say how many tokens of a prompt the cache would give, and change nothing."""

import pytest

import zinc_rt
from server_process import serving
from zinc_rt import errors

PROMPT = [(7 * i) % 300 for i in range(70)]


def test_it_says_what_a_request_would_have(any_model):
    with zinc_rt.Engine(any_model, max_slots=2) as engine:
        session = engine.tenant("a").session()
        assert session.cached(token_ids=PROMPT) == (70, 0)
        session.generate(token_ids=PROMPT, max_tokens=1)
        for prompt in (PROMPT, PROMPT[:40] + [1, 2, 3], PROMPT[:16], PROMPT[:1], [5] + PROMPT):
            n, cached = session.cached(token_ids=prompt)
            assert n == len(prompt) and cached < n
            assert session.cached(token_ids=prompt) == (n, cached)
            assert session.generate(token_ids=prompt, max_tokens=1).usage.cached_tokens == cached
        assert engine.tenant("b").session().cached(token_ids=PROMPT) == (70, 0)
        assert session.cached(token_ids=PROMPT, cache_salt="s") == (70, 0)
        with pytest.raises(errors.InvalidArgument):
            session.cached(token_ids=[10**6])


def test_the_server_says_it(tiny_model):
    with serving(tiny_model, "--max-slots", "2") as server:

        def ask(status=200, **body):
            found, _, answer = server.request("POST", "/v1/prefix", body)
            assert found == status
            return answer

        said = ask(prompt=PROMPT, max_tokens=5, temperature=0.5)
        assert said["n_tokens"] == 70 and said["cached_tokens"] == 0 and said["model"]
        usage = server.request("POST", "/v1/completions", {"prompt": PROMPT, "max_tokens": 1})[2]["usage"]
        assert usage["prompt_tokens"] == 70
        assert ask(prompt=PROMPT)["cached_tokens"] >= 64
        assert ask(prompt=PROMPT, cache_salt="s")["cached_tokens"] == 0
        assert ask(prompt="the thin")["n_tokens"] > 0
        assert "2 prompts" in ask(400, prompt=["a", "b"])["error"]["message"]
        assert ask(400, prompt=[10**6])["error"]["param"] == "prompt"
        assert ask(404, prompt="a", model="another")["error"]
        assert ask(400)["error"]["param"] == "prompt"
