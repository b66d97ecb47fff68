"""Which replica a request goes to, and what a router knows of replicas. The rule's cases are the engine's own."""

import json
import pickle
import struct

import pytest

from zinc_rt._placement import ReplicaLoad, choose_replica, placement_key
from zinc_rt.ray.call import Call
from zinc_rt.ray.replicas import MOST_SENT, PAGES_UNTIL_TOLD, ReplicaViews


def choose(*loads, key=7):
    return choose_replica([ReplicaLoad(*each) for each in loads], key)


def ids(first, n):
    return struct.pack(f"<{n}i", *range(first, first + n))


def test_the_longest_cached_prefix_wins_until_the_backlog_is_more_than_it_saves():
    assert choose((0, 0), (400, 0)) == 1
    assert choose((0, 100), (400, 300)) == 1
    assert choose((0, 100), (400, 500)) == 1  # as much as it saves is not more
    assert choose((0, 100), (400, 501)) == 0
    assert choose((150, 100), (400, 351)) == 0  # the other has a part of it, so the hit saves less
    assert choose((150, 100), (400, 350)) == 1


def test_the_next_best_of_several_is_taken_where_the_best_is_behind():
    assert choose((1000, 5000), (500, 200), (0, 0)) == 1
    assert choose((1000, 5000), (500, 600), (0, 0)) == 2


def test_without_any_prefix_the_least_backlog_wins_and_one_replica_takes_all():
    assert choose((0, 9), (0, 8), (0, 10)) == 1
    assert choose((0, 2**32 - 1)) == 0


def test_ties_go_by_the_key_and_stay_when_a_replica_is_added():
    counts, moved = [0] * 4, 0
    for key in range(4000):
        of_four, of_three = choose(*[(0, 0)] * 4, key=key), choose(*[(0, 0)] * 3, key=key)
        assert of_four == choose(*[(12, 90)] * 4, key=key)
        counts[of_four] += 1
        if of_four != of_three:
            moved += 1
            assert of_four == 3  # only to the new replica
    assert all(880 <= n <= 1120 for n in counts)
    assert moved == counts[3]


def test_the_key_is_of_the_tenant_the_salt_and_the_first_four_pages():
    prompt = ids(0, 100)
    key = placement_key(b"a", b"s", prompt)

    def changed(at):
        return placement_key(b"a", b"s", prompt[: 4 * at] + ids(999, 1) + prompt[4 * at + 4 :])

    assert changed(64) == key != changed(63)
    assert key not in (placement_key(b"b", b"s", prompt), placement_key(b"a", b"t", prompt))
    assert placement_key(b"as", b"", prompt) != key
    # The engine's own number: routers and engines agree.
    assert placement_key(b"a", b"s", ids(1, 3)) == 0x069827E06A8A4316


def call(body, key="k", path="/v1/completions", **headers):
    fields = [(b"authorization", f"Bearer {key}".encode())] + [(n.encode(), v.encode()) for n, v in headers.items()]
    return Call("POST", path, fields, body if isinstance(body, bytes) else json.dumps(body).encode())


def pages_in_common(first, second):
    n = 0
    for a, b in zip(first.prompt.pages, second.prompt.pages, strict=False):
        if a != b:
            break
        n += 1
    return n


def chat(*texts, **more):
    return {"messages": [{"role": "user", "content": text} for text in texts], **more}


def test_a_longer_conversation_begins_with_the_shorter_one():
    short, long = call(chat("first " * 100)), call(chat("first " * 100, "second " * 100))
    assert pages_in_common(short, long) == len(short.prompt.pages) >= 9
    assert short.prompt.key == long.prompt.key


@pytest.mark.parametrize(
    "other",
    [
        call(chat("first " * 100), key="another"),
        call(chat("first " * 100, cache_salt="s")),
        call(chat("first " * 100, model="m")),
        call(chat("first " * 100, tools=[{"type": "function"}])),
        call(chat("First " * 100)),
    ],
    ids=["tenant", "salt", "model", "tools", "text"],
)
def test_prompts_that_share_no_cache_share_no_page(other):
    assert pages_in_common(call(chat("first " * 100)), other) == 0
    assert call(chat("first " * 100)).prompt.key != other.prompt.key


@pytest.mark.parametrize("name", ["prompt", "input_ids"])
def test_token_ids_are_counted_as_they_are(name):
    one, two = call({name: list(range(100))}), call({name: [*range(40), 1, 2, 3]})
    assert one.prompt.n_tokens == 100 and len(one.prompt.pages) == 6
    assert pages_in_common(one, two) == 2


@pytest.mark.parametrize(
    "body",
    [b"", b"{", b"[1]", b"\xff\xfe", b"[" * 100000, {"prompt": None}, {"prompt": {}}, {"prompt": [1, "a"]}],
    ids=str,
)
def test_any_body_can_be_routed(body):
    assert call(body).prompt.n_tokens <= 2


def test_what_was_found_out_about_a_call_is_not_sent_with_it():
    one = call({"prompt": "a" * 5000})
    size = len(pickle.dumps(one))
    assert len(one.prompt.pages) == 78
    assert len(pickle.dumps(one)) == size and pickle.loads(pickle.dumps(one)) == one


class Clock:
    now = 0.0

    def __call__(self):
        return self.now


@pytest.fixture
def fleet():
    clock = Clock()
    views = ReplicaViews(clock)
    views.update("ab")
    views.clock = clock
    return views


def told(backlog=0, pages=1000, number=1):
    return {"number": number, "load": {"backlog_tokens": backlog, "pages": pages}}


IDLE = {"a": {}, "b": {}}


def send(views, prompt, request, stats=IDLE):
    best = views.ranked(stats, prompt)[0]
    views.send(best, request, stats[best], prompt)
    return best


def test_equal_prefixes_go_where_the_first_went(fleet):
    shared = list(range(3200))
    first = send(fleet, call({"prompt": [*shared, 1]}).prompt, "0")
    fleet.completed(first, "0")
    assert {send(fleet, call({"prompt": [*shared, 1, i]}).prompt, str(i)) for i in range(1, 30)} == {first}


def test_other_prompts_spread(fleet):
    gone_to = []
    for i in range(200):
        gone_to.append(send(fleet, call({"prompt": list(range(i * 1000, i * 1000 + 100))}).prompt, str(i)))
        fleet.completed(gone_to[-1], str(i))
    assert 70 <= gone_to.count("a") <= 130


def backlog(views, replica, stats=None):
    return views.load(replica, stats or {}, call({}).prompt).backlog_tokens


def test_what_was_just_sent_is_a_backlog_until_it_is_done_or_told_of(fleet):
    prompts = [call({"prompt": [i] * 1600}).prompt for i in range(3)]
    first = send(fleet, prompts[0], "0")
    other = "ab".replace(first, "")
    assert send(fleet, prompts[1], "1") == other
    fleet.completed(first, "0")
    assert send(fleet, prompts[2], "2") == first
    assert backlog(fleet, other) == 1600
    fleet.clock.now = 1
    assert backlog(fleet, other, told(200)) == 200
    fleet.clock.now = 2
    assert backlog(fleet, other, told(200)) == 200
    assert backlog(fleet, other, told(0, number=2)) == 0


def test_what_was_told_is_less_when_what_was_sent_before_is_done(fleet):
    prompts = [call({"prompt": [i] * 1600}).prompt for i in range(3)]
    for i in range(2):
        fleet.send("a", str(i), {}, prompts[i])
    fleet.clock.now = 1
    assert backlog(fleet, "a", told(2500)) == 2500
    fleet.completed("a", "0")
    assert backlog(fleet, "a", told(2500)) == 900
    fleet.send("a", "2", {}, prompts[2])
    fleet.completed("a", "1")
    assert backlog(fleet, "a", told(2500)) == 1600
    fleet.completed("a", "2")
    fleet.completed("a", "2")
    assert backlog(fleet, "a", told(2500)) == 0


def test_requests_that_never_end_are_forgotten(fleet):
    one = call({"prompt": [1] * 16}).prompt
    for i in range(MOST_SENT + 10):
        fleet.send("a", str(i), {}, one)
    fleet.load("a", {}, one)
    assert len(fleet.views["a"].sent) == MOST_SENT


def test_a_place_that_told_of_a_long_backlog_loses_its_prefix(fleet):
    prompt = call({"prompt": list(range(800))}).prompt
    first = send(fleet, prompt, "0")
    other = "ab".replace(first, "")
    fleet.completed(first, "0")
    assert fleet.ranked({first: told(800), other: told(0)}, prompt) == [first, other]
    assert fleet.ranked({first: told(801, number=2), other: told(0)}, prompt) == [other, first]
    assert fleet.ranked({other: {}}, prompt) == [other]


def test_a_request_that_goes_elsewhere_is_counted_there_alone(fleet):
    prompt = call({"prompt": list(range(800))}).prompt
    first = send(fleet, prompt, "0")
    other = "ab".replace(first, "")
    fleet.send(first, "0", {}, prompt)
    assert fleet.load(first, {}, prompt) == (800, 800)
    fleet.send(other, "0", {}, prompt)
    assert fleet.load(first, {}, prompt).backlog_tokens == 0
    assert fleet.load(other, {}, prompt).backlog_tokens == 800


def test_a_place_is_believed_to_hold_no_more_than_its_cache(fleet):
    old, new = call({"prompt": [1] * 800}).prompt, call({"prompt": [2] * 800}).prompt
    fleet.send("a", "0", told(pages=60), old)
    fleet.send("a", "1", told(pages=60), new)
    assert fleet.views["a"].cached_tokens(new) == 800
    assert fleet.views["a"].cached_tokens(old) == 160  # its first pages go last
    fleet.send("b", "2", {}, call({"prompt": list(range(16 * PAGES_UNTIL_TOLD + 160))}).prompt)
    assert len(fleet.views["b"].pages) == PAGES_UNTIL_TOLD


def test_a_place_that_comes_anew_has_an_empty_cache_and_the_keys_of_the_one_that_went(fleet):
    prompts = [call({"prompt": list(range(i * 1000, i * 1000 + 100))}).prompt for i in range(50)]
    before = [fleet.ranked(IDLE, prompt)[0] for prompt in prompts]
    gone = [prompt for prompt, replica in zip(prompts, before, strict=True) if replica == "a"]
    fleet.send("a", "0", {}, gone[0])
    fleet.update("bc")
    after = [fleet.ranked({"b": {}, "c": {}}, prompt)[0] for prompt in prompts]
    assert after == [{"a": "c", "b": "b"}[replica] for replica in before]
    assert fleet.load("c", {}, gone[0]) == (0, 0)
    fleet.completed("a", "0")  # of a replica that is gone: nothing
    fleet.send("a", "1", {}, gone[0])


def test_a_place_more_moves_keys_to_it_alone(fleet):
    prompts = [call({"prompt": list(range(i * 1000, i * 1000 + 100))}).prompt for i in range(90)]
    before = [fleet.ranked(IDLE, prompt)[0] for prompt in prompts]
    fleet.update("abc")
    after = [fleet.ranked({**IDLE, "c": {}}, prompt)[0] for prompt in prompts]
    assert {new for old, new in zip(before, after, strict=True) if old != new} == {"c"}
    assert 15 <= after.count("c") <= 45
