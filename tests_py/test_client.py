"""zinc_rt.AsyncClient against a server that runs."""

import asyncio
import contextlib
import gc
import socket
import threading

import pytest

import zinc_rt
from server_process import serving

MESSAGES = [{"role": "user", "content": "hello"}]


@pytest.fixture(scope="module")
def server(tiny_model):
    with serving(tiny_model, "--id", "tiny", "--api-key", "k", "--admin-key", "a", "--max-slots", 4) as server:
        yield server


def run(server, work, key="k", **more):
    """Runs work(client) in a loop of its own."""

    async def inside():
        async with zinc_rt.AsyncClient(server.url, key, **more) as client:
            return await work(client)

    return asyncio.run(asyncio.wait_for(inside(), 60))


@pytest.mark.parametrize("suffix", ["", "/", "/v1"])
def test_answers_are_the_engines(server, tiny_engine, suffix):
    session = tiny_engine.tenant("t").session()
    ids = tiny_engine.tokenize("the thin")

    async def work(_):
        async with zinc_rt.AsyncClient(server.url + suffix, "k") as client:
            return (
                await client.chat(MESSAGES, max_tokens=9, temperature=0, timings=True),
                await client.generate("the thin", max_tokens=9, temperature=0, n=2, seed=1, return_token_ids=True),
                await client.generate(ids, max_tokens=9, temperature=0),
            )

    chat, text, by_ids = run(server, work)
    wanted = session.generate(messages=MESSAGES, max_tokens=9)
    assert (chat.text, chat.choices[0].finish_reason) == (wanted.text, wanted.finish_reason)
    assert chat.usage.total_tokens == wanted.usage.total_tokens and chat.timings["prefill_ms"] >= 0
    wanted = session.generate("the thin", max_tokens=9)
    assert [choice.text for choice in text.choices] == [wanted.text] * 2 and by_ids.text == wanted.text
    assert text.choices[0].token_ids == wanted.token_ids and text.id.startswith("cmpl-") and text.model == "tiny"


def test_a_stream_says_what_the_whole_answer_says(server):
    async def work(client):
        parameters = {"max_tokens": 20, "temperature": 1, "seed": 5, "n": 2}
        whole = await client.chat(MESSAGES, **parameters)
        texts, reasons = ["", ""], [None, None]
        async with client.stream_chat(MESSAGES, **parameters) as stream:
            async for piece in stream:
                texts[piece.index] += piece.text
                reasons[piece.index] = piece.finish_reason or reasons[piece.index]
        assert texts == [choice.text for choice in whole.choices]
        assert reasons == [choice.finish_reason for choice in whole.choices]
        assert stream.usage.completion_tokens == whole.usage.completion_tokens and stream.id != whole.id
        ids = []
        async for piece in client.stream_generate("the", max_tokens=5, ignore_eos=True, return_token_ids=True):
            ids += piece.token_ids
        assert len(ids) == 5

    run(server, work)


def test_hashes_of_logits_are_the_engines(server, tiny_engine):
    session = tiny_engine.tenant("t").session()
    sampled = {"max_tokens": 12, "ignore_eos": True, "return_logits_hash": True, "temperature": 0.8, "seed": 3}

    async def streamed(stream, n):
        hashes = [[] for _ in range(n)]
        async for piece in stream:
            assert len(piece.logits_hashes) <= 1
            hashes[piece.index] += piece.logits_hashes
        return hashes

    async def work(client):
        return (
            await client.chat(MESSAGES, **sampled),
            await client.generate("the thin", n=2, echo=True, **sampled),
            await streamed(client.stream_chat(MESSAGES, **sampled), 1),
            await streamed(client.stream_generate("the thin", n=2, **sampled), 2),
            await client.generate("the thin", **{**sampled, "return_logits_hash": False}),
        )

    chat, text, streamed_chat, streamed_text, unasked = run(server, work)
    wanted = session.generate(messages=MESSAGES, **sampled)
    assert chat.choices[0].logits_hashes == wanted.logits_hashes and len(set(wanted.logits_hashes)) == 12
    assert streamed_chat == [wanted.logits_hashes]
    wanted = [choice.logits_hashes for choice in session.generate("the thin", n=2, **sampled).choices]
    assert [choice.logits_hashes for choice in text.choices] == wanted and wanted[0] != wanted[1]
    assert streamed_text == wanted
    assert unasked.choices[0].logits_hashes == []
    events = list(session.stream("the thin", **sampled))
    assert [event.logits_hash for event in events if event.token_id is not None] == wanted[0]


def test_the_other_calls(server):
    async def work(client):
        ids = await client.tokenize("the thin")
        assert await client.detokenize(ids) == "the thin"
        assert "hello" in await client.apply_template(MESSAGES)
        assert [model["id"] for model in await client.models()] == ["tiny"]
        before = await client.usage()
        answer = await client.generate(ids, max_tokens=3)
        after = await client.usage()
        for name in ("prompt_tokens", "completion_tokens"):
            assert after[name] - before[name] == getattr(answer.usage, name)

    run(server, work)


def test_connections_are_used_again(server):
    async def work(client):
        accepted = server.gauge("zinc:http_connections_total", key="a")
        for _ in range(3):
            await client.tokenize("a")
            async for _ in client.stream_generate("the", max_tokens=2):
                pass
        return server.gauge("zinc:http_connections_total", key="a") - accepted

    # One connection of this client; each look at the metrics is one as well.
    assert run(server, work) <= 2


def test_errors_are_those_of_the_package(server):
    async def work(client):
        with pytest.raises(zinc_rt.errors.InvalidArgument, match="temperature"):
            await client.chat(MESSAGES, temperature=9)
        with pytest.raises(zinc_rt.errors.InvalidArgument, match="colour"):
            async for _ in client.stream_chat(MESSAGES, colour="red"):
                pass
        with pytest.raises(zinc_rt.errors.NotFound, match="other"):
            await client.chat(MESSAGES, model="other")
        assert (await client.chat(MESSAGES, max_tokens=1)).text is not None  # the same connections go on

    run(server, work)

    async def without_key(client):
        with pytest.raises(zinc_rt.errors.InvalidArgument, match="401"):
            await client.models()

    run(server, without_key, key=None)
    _, _, made = server.request("POST", "/v1/tenants", {"id": "slow", "requests_per_minute": 1}, key="a")

    async def too_fast(client):
        await client.generate("a", max_tokens=1)
        with pytest.raises(zinc_rt.errors.Exhausted) as raised:
            await client.generate("a", max_tokens=1)
        assert 0 < raised.value.retry_after <= 60

    run(server, too_fast, key=made["api_key"])


@pytest.mark.parametrize("url", ["localhost:8080", "ftp://a", "http://", "http://a/?x=1"])
def test_a_url_that_is_none_is_refused(url):
    with pytest.raises(zinc_rt.errors.InvalidArgument):
        zinc_rt.AsyncClient(url)


def test_leaving_a_stream_frees_its_slot(server):
    long = {"max_tokens": 400, "ignore_eos": True}

    async def work(client):
        async with client.stream_chat(MESSAGES, **long) as stream:
            async for _ in stream:
                break
        task = asyncio.create_task(client.chat(MESSAGES, **long))
        await asyncio.sleep(0.05)
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task
        async for _ in client.stream_chat(MESSAGES, **long):  # left without a word
            break
        gc.collect()
        await asyncio.sleep(0)
        await asyncio.to_thread(server.wait, lambda: server.gauge("zinc:slots_free", key="a") == 4)

    run(server, work)


def test_many_at_once(server):
    async def work(client):
        parameters = {"max_tokens": 8, "temperature": 1}
        alone = [(await client.chat(MESSAGES, seed=seed, **parameters)).text for seed in range(20)]
        together = await asyncio.gather(*(client.chat(MESSAGES, seed=seed, **parameters) for seed in range(20)))
        assert [answer.text for answer in together] == alone

    run(server, work)


@contextlib.contextmanager
def canned(answer):
    """A server that answers one connection with these bytes, and then says nothing until it is left."""
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def serve():
            connection, _ = listener.accept()
            with connection:
                connection.recv(65536)
                connection.sendall(answer)
                if not answer.endswith(b"LEAVE"):
                    connection.recv(1)

        thread = threading.Thread(target=serve)
        thread.start()
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
        thread.join()


@pytest.mark.parametrize(
    ("answer", "complaint"),
    [
        (b"", "nothing came"),
        (b"nonsense\r\n\r\n", "no HTTP"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\n{LEAVE", "cut off"),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\nLEAVE", "chunk size"),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n9\r\nLEAVE", "cut off"),
    ],
)
def test_what_is_no_answer_is_said(answer, complaint):
    async def work(url):
        async with zinc_rt.AsyncClient(url, timeout=0.5) as client:
            with pytest.raises(zinc_rt.errors.Unavailable, match=complaint):
                await client.models()

    with canned(answer) as url:
        asyncio.run(work(url))


def test_a_stream_that_stops_before_its_end_is_an_error():
    event = b'data: {"choices":[{"index":0,"text":"a","finish_reason":null}]}\n\n'

    async def work(url):
        got = []
        async with zinc_rt.AsyncClient(url) as client:
            with pytest.raises(zinc_rt.errors.Unavailable, match="ended before"):
                async for piece in client.stream_generate("a"):
                    got.append(piece.text)
        assert got == ["a"]

    with canned(b"HTTP/1.1 200 OK\r\n\r\n" + event + b": LEAVE") as url:
        asyncio.run(work(url))


def test_nobody_there_is_unavailable():
    async def work():
        async with zinc_rt.AsyncClient("http://127.0.0.1:1") as client:
            with pytest.raises(zinc_rt.errors.Unavailable, match="127.0.0.1:1"):
                await client.models()

    asyncio.run(work())
