"""Engine.generate, chat and conversation: what a researcher types first."""

import inspect
import threading

import pytest

import zinc_rt

PROMPTS = [f"the {i}" for i in range(12)]


def test_one_prompt_is_a_completion(tiny_engine):
    wanted = tiny_engine.tenant("t").session().generate("the", max_tokens=5, ignore_eos=True)
    got = tiny_engine.generate("the", max_tokens=5, ignore_eos=True)
    assert got.token_ids == wanted.token_ids and got.text == wanted.text
    assert tiny_engine.generate(tiny_engine.tokenize("the"), max_tokens=5, ignore_eos=True).token_ids == got.token_ids


def test_a_list_is_a_batch_in_order(tiny_engine):
    alone = [tiny_engine.generate(p, max_tokens=6, ignore_eos=True).token_ids for p in PROMPTS]
    batch = tiny_engine.generate(PROMPTS, max_tokens=6, ignore_eos=True)
    assert [completion.token_ids for completion in batch] == alone
    ids = [tiny_engine.tokenize(p) for p in PROMPTS]
    assert [c.token_ids for c in tiny_engine.generate(ids, max_tokens=6, ignore_eos=True)] == alone
    assert tiny_engine.generate([]) == []


def test_a_batch_uses_the_slots_of_the_engine(tiny_model):
    with zinc_rt.Engine(tiny_model, max_slots=8) as engine:
        engine.generate(["the"] * 16, max_tokens=200, ignore_eos=True)
        assert engine.tenant("default").quota.max_concurrent_slots == 8
        assert engine.tenant("default").ledger().requests_finished == 16


def test_a_bar_is_shown_where_it_is_asked_for(tiny_engine, capfd):
    tiny_engine.generate(PROMPTS[:3], max_tokens=2, progress=True)
    assert "] 3/3, " in capfd.readouterr().err
    tiny_engine.generate(PROMPTS[:3], max_tokens=2)
    assert capfd.readouterr().err == ""


@pytest.mark.parametrize(
    "prompt, words",
    [
        (3, "prompt is int"),
        (None, "prompt is None"),
        (b"the", "prompt is bytes"),
        (["the", 4.5], r"prompt\[1\] is float"),
        (["the", None], r"prompt\[1\] is None"),
        (["the", []], r"prompt\[1\] is an empty list"),
        ({"the": 1}, "prompt is dict"),
    ],
)
def test_what_is_no_prompt_is_named(tiny_engine, prompt, words):
    with pytest.raises(zinc_rt.errors.InvalidArgument, match=words):
        tiny_engine.generate(prompt)


def test_a_prompt_that_fails_ends_the_batch(tiny_engine):
    before = threading.active_count()
    with pytest.raises(zinc_rt.errors.InvalidArgument, match="context"):
        tiny_engine.generate(["the", "the " * 2000, "the"] * 4, max_tokens=100)
    assert threading.active_count() <= before + 1
    assert tiny_engine.generate("the", max_tokens=2).usage.completion_tokens == 2


def test_wrong_parameters_are_named(tiny_engine):
    for prompt in ("the", ["the", "an"]):
        with pytest.raises((TypeError, zinc_rt.errors.ZincError), match="max_token"):
            tiny_engine.generate(prompt, max_token=3)


def test_chat_is_the_template(tiny_engine):
    messages = [{"role": "user", "content": "the"}]
    text = tiny_engine.apply_template(messages)
    by_hand = tiny_engine.tenant("t").session().generate(text, max_tokens=5, ignore_eos=True)
    assert tiny_engine.chat(messages, max_tokens=5, ignore_eos=True).token_ids == by_hand.token_ids


def test_a_conversation_keeps_its_history(tiny_engine):
    talk = tiny_engine.conversation("be brief", max_tokens=4, ignore_eos=True)
    first = talk.say("the")
    assert [m["role"] for m in talk.messages] == ["system", "user", "assistant"]
    assert talk.messages[-1]["content"] == first.text
    second = talk.say("an", max_tokens=3)
    assert second.usage.completion_tokens == 3
    again = tiny_engine.chat(talk.messages[:-1], max_tokens=3, ignore_eos=True)
    assert again.token_ids == second.token_ids
    assert repr(talk) == "<zinc_rt.Conversation of 2 turns>"
    assert talk.undo() and len(talk.messages) == 3
    assert talk.undo() and not talk.undo() and len(talk.messages) == 1


def test_a_conversation_that_streams_keeps_what_was_said(tiny_engine):
    talk = tiny_engine.conversation(max_tokens=6, ignore_eos=True)
    text = "".join(event.text for event in talk.stream("the"))
    assert talk.messages[-1] == {"role": "assistant", "content": text}
    events = talk.stream("an", max_tokens=200)
    next(events)
    events.close()
    assert [m["role"] for m in talk.messages] == ["user", "assistant"] * 2


def test_a_turn_that_fails_leaves_the_history(tiny_engine):
    talk = tiny_engine.conversation(max_tokens=4)
    with pytest.raises(zinc_rt.errors.InvalidArgument):
        talk.say("the " * 2000)
    with pytest.raises(zinc_rt.errors.InvalidArgument, match="text is int"):
        talk.say(4)
    assert talk.messages == []


def test_signatures_can_be_read():
    for call in (zinc_rt.Engine.generate, zinc_rt.Engine.chat, zinc_rt.Engine.conversation, zinc_rt.Conversation.say):
        assert "max_tokens" in inspect.signature(call).parameters and call.__doc__
