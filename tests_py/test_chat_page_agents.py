"""The chat page with tools, formats of answers and several models, of a model that recites its calls."""

import json
import shutil
import time

import pytest

import browser
import scripted_model
from chat_page import IS_DONE, IS_IDLE, click, click_button, is_within_width, keep_chat, send, texts, violations
from server_process import serving

CODE = 'print("<b>")\n'
SCRIPTS = {
    "look": "<think>\nThe weather is wanted.\n</think>\n\nLet me look.\n"
    + scripted_model.call("get_weather", '{"city":"Bern","days":[1,2]}')
    + "\n"
    + scripted_model.call("run", json.dumps({"code": CODE})),
    "fine": "It is sunny, and the code ran.",
    "plain": "There is nothing to call here.",
}
CHOOSE = "'fine' if messages[-1].role == 'tool' else 'look' if messages[-1].content == 'look' else 'plain'"
TOOLS = [
    {"type": "function", "function": {"name": name, "parameters": {"type": "object", "properties": properties}}}
    for name, properties in [
        ("get_weather", {"city": {"type": "string"}, "days": {"type": "array"}}),
        ("run", {"code": {"type": "string"}}),
    ]
]
WEATHER = '{"sky": "<i>sunny</i>"}'
SCHEMA = {
    "type": "object",
    "properties": {"ok": {"type": "boolean"}, "n": {"enum": [1, 2]}},
    "required": ["ok", "n"],
    "additionalProperties": False,
}
PRETTY_WEATHER = '{\n  "city": "Bern",\n  "days": [\n    1,\n    2\n  ]\n}'
HAS_ERROR = f"{IS_IDLE} && document.querySelector('.assistant:last-child .error button')"
CALL = {"id": "c1", "type": "function", "function": {"name": "get_weather", "arguments": '{"city": "Bern"}'}}
ASKED = [
    {"role": "user", "content": "look"},
    {"role": "assistant", "content": "", "stats": {"finish": "tool_calls"}, "tool_calls": [CALL]},
]

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def folder(tiny_model, tmp_path_factory):
    folder = tmp_path_factory.mktemp("models")
    scripted_model.write(folder / "scripted.gguf", SCRIPTS, CHOOSE)
    shutil.copy(tiny_model, folder / "tiny.gguf")
    return folder


@pytest.fixture(scope="module")
def server(folder):
    with serving(env={"ZINC_RT_MODELS": str(folder)}) as server:
        yield server


@pytest.fixture
def page(server, tmp_path):
    if not browser.find():
        pytest.skip("no Chromium")
    with browser.chromium(tmp_path / "profile") as page:
        page.look()
        page.open(server.url + "/")
        page.wait("document.getElementById('model').value === 'scripted'")
        yield page


def fill(page, name, value):
    """A field as a user fills it."""
    page.evaluate(
        f"(field => {{ field.value = {json.dumps(value)}; field.dispatchEvent(new Event('input'));"
        f" field.dispatchEvent(new Event('change')); }})(document.getElementById('{name}'))"
    )


def record(page):
    """The bodies of requests from here on, in window.bodies."""
    page.evaluate(
        "window.bodies = []; window.real = fetch; window.fetch = (url, options) => {"
        "if (options?.body) window.bodies.push(JSON.parse(options.body)); return window.real(url, options); }; 0"
    )


def ask(page, text, done=IS_DONE):
    send(page, text)
    page.wait(f"document.querySelector('.user:nth-last-child(2) .body')?.textContent === {json.dumps(text)}")
    page.wait(done)


def call_tools(page):
    fill(page, "tools", json.dumps(TOOLS))
    ask(page, "look")


def write_results(page, *results):
    page.evaluate(
        f"document.querySelectorAll('.result textarea').forEach((f, i) => f.value = {json.dumps(results)}[i])"
    )
    click_button(page, "Send results")
    page.wait(f"{IS_DONE} && !document.querySelector('.assistant:last-child .call')")


def model(page):
    return page.evaluate("document.getElementById('model').value")


def test_calls_are_shown_and_their_results_sent(page):
    record(page)
    call_tools(page)
    assert texts(page, ".assistant .body") == ["Let me look.\n"]
    assert texts(page, ".call strong") == ["get_weather", "run"]
    assert texts(page, ".call > pre") == [PRETTY_WEATHER, f'{{\n  "code": {json.dumps(CODE)}\n}}']
    assert texts(page, ".call-state") == ["waits for its result"] * 2
    assert page.evaluate("document.activeElement.dataset.call") == page.evaluate(
        "document.querySelector('.result textarea').dataset.call"
    )
    click_button(page, "Send results")  # none is written
    assert page.evaluate("window.bodies.length") == 1 and page.evaluate("window.bodies[0].tools.length") == 2

    write_results(page, WEATHER, "exit 0")
    assert texts(page, ".assistant:last-child .body p") == [SCRIPTS["fine"]]
    assert texts(page, ".call-state") == ["answered"] * 2
    assert texts(page, ".result pre") == ['{\n  "sky": "<i>sunny</i>"\n}', "exit 0"]
    sent = page.evaluate("window.bodies[1].messages")
    assert [m["role"] for m in sent] == ["user", "assistant", "tool", "tool"]
    assert sent[1]["reasoning_content"].strip() == "The weather is wanted."
    assert [c["function"]["name"] for c in sent[1]["tool_calls"]] == ["get_weather", "run"]
    assert [m["tool_call_id"] for m in sent[2:]] == [c["id"] for c in sent[1]["tool_calls"]]
    assert [m["content"] for m in sent[2:]] == [WEATHER, "exit 0"]

    ask(page, "more")  # the history has it all
    assert page.evaluate("window.bodies[2].messages")[:4] == sent
    assert [m["role"] for m in page.evaluate("window.bodies[2].messages")[4:]] == ["assistant", "user"]
    assert not page.problems, page.problems


def test_calls_come_back_and_results_can_be_changed(server, page):
    call_tools(page)
    write_results(page, WEATHER, "exit 0")
    page.open(server.url + "/")
    page.wait("document.querySelector('.assistant:last-child .body p')")
    assert texts(page, ".call-state") == ["answered"] * 2 and len(texts(page, ".result pre")) == 2
    assert texts(page, "#tools-note") == ["2 tools: get_weather, run"]

    record(page)
    click_button(page, "Edit results")
    assert page.evaluate("document.querySelector('.result textarea').value") == WEATHER
    page.press("Escape")
    assert texts(page, ".result textarea") == []
    click_button(page, "Edit results")
    write_results(page, "rain", "exit 1")
    assert [m["content"] for m in page.evaluate("window.bodies[0].messages")[2:]] == ["rain", "exit 1"]
    assert len(texts(page, ".assistant")) == 2

    page.evaluate(
        "Object.defineProperty(navigator, 'clipboard', {value: {writeText: async (text) => (window.copied = text)}})"
    )
    click(page, ".assistant .actions .copy")
    page.wait("window.copied")
    copied = page.evaluate("window.copied")
    assert f"Call of `get_weather`:\n\n```json\n{PRETTY_WEATHER}\n```\n\nResult:\n\n```\nrain\n```" in copied


def test_calls_are_exported_and_imported(page):
    keep_chat(page, *ASKED, {"role": "tool", "tool_call_id": "c1", "content": "sunny"})
    page.evaluate(
        "window.saved = []; URL.createObjectURL = (blob) => (window.saved.push(blob), 'blob:none');"
        " HTMLAnchorElement.prototype.click = () => {}; window.give = (text) => { const files = new DataTransfer();"
        " files.items.add(new File([text], 'a.json')); const field = document.getElementById('import-file');"
        " field.files = files.files; field.dispatchEvent(new Event('change')); }"
    )
    click(page, "#export-markdown")
    click(page, "#export-json")
    markdown = page.evaluate("window.saved[0].text()")
    assert "Call of `get_weather`" in markdown and "```\nsunny\n```" in markdown and markdown.count("## Answer") == 1
    exported = json.loads(page.evaluate("window.saved[1].text()"))
    page.evaluate(f"window.give({json.dumps(json.dumps(exported))})")
    page.wait("document.getElementById('chats-note').textContent === '1 chat imported.'")
    assert texts(page, ".call-state") == ["answered"] and texts(page, ".result pre") == ["sunny"]
    for change, why in (
        (lambda messages: messages.pop(1), "the result of no call"),
        (lambda messages: messages[1].update(tool_calls=[{"id": "c1"}]), "calls without id, name or arguments"),
    ):
        bad = json.loads(json.dumps(exported))
        change(bad["chats"][0]["messages"])
        page.evaluate(f"window.give({json.dumps(json.dumps(bad))})")
        page.wait(f"document.getElementById('chats-note').textContent.includes('{why}')")


def test_who_writes_on_leaves_the_call_without_a_result(page):
    keep_chat(page, *ASKED)
    fill(page, "tools", json.dumps(TOOLS))
    record(page)
    ask(page, "never mind")
    assert [m["role"] for m in page.evaluate("window.bodies[0].messages")] == ["user", "assistant", "tool", "user"]
    assert texts(page, ".result pre") == ["No result was given."]
    click(page, ".user .edit-button")
    page.evaluate("document.querySelector('.edit').select()")
    page.type("look")
    page.press_enter()
    page.wait(f"{IS_DONE} && document.querySelectorAll('.user').length === 1")
    assert texts(page, ".call-state") == ["waits for its result"] * 2


def test_results_that_were_not_taken_go_back_into_their_fields(page):
    keep_chat(page, *ASKED)
    page.evaluate(
        "window.real = fetch; window.fetch = (url, options) => !options?.body ? window.real(url, options) :"
        " Promise.resolve(new Response('{}', {status: 401})); 0"
    )
    page.evaluate("document.querySelector('.result textarea').focus()")
    page.type("sunny")
    click_button(page, "Send result")
    page.wait("!document.getElementById('key-panel').hidden")
    page.wait("document.querySelector('.result textarea')?.value === 'sunny'")
    assert len(texts(page, ".assistant")) == 1 and texts(page, ".call-state") == ["waits for its result"]


def test_arguments_are_shown_as_they_come(page):
    fill(page, "tools", json.dumps(TOOLS))
    page.evaluate(
        "window.real = fetch; window.fetch = (url, options) => !options?.body ? window.real(url, options) :"
        " Promise.resolve(new Response(new ReadableStream({start(c) { window.stream = c; }})));"
        " window.put = (delta, finish_reason = null) => window.stream.enqueue(new TextEncoder().encode("
        " 'data: ' + JSON.stringify({choices: [{index: 0, delta, finish_reason}]}) + '\\n\\n')); 0"
    )
    send(page, "look")
    page.wait("window.stream")
    first = {"index": 0, "id": "c9", "type": "function", "function": {"name": "run", "arguments": ""}}
    page.evaluate(f"window.put({json.dumps({'content': None, 'tool_calls': [first]})})")
    page.wait("document.querySelector('.call strong')?.textContent === 'run'")
    for piece, shown in (
        ('{"co', '{\n  "co'),
        ('de": "a\\', '{\n  "code": "a\\'),
        ('n{", "n": [', '{\n  "code": "a\\n{",\n  "n": ['),
        ("]", '{\n  "code": "a\\n{",\n  "n": []'),
    ):
        page.evaluate(f"window.put({json.dumps({'tool_calls': [{'index': 0, 'function': {'arguments': piece}}]})})")
        page.wait(f"document.querySelector('.call > pre').textContent === {json.dumps(shown)}")
        assert texts(page, ".call-state") == ["being written…"] and not texts(page, ".result textarea")
    page.press("Escape")  # stops it
    page.evaluate("window.stream.error(new DOMException('', 'AbortError')); 0")
    page.wait(IS_DONE)
    assert texts(page, ".call-state") == ["not written to its end"] and not texts(page, ".result textarea")


def test_tools_are_checked_as_they_are_typed(page):
    for text, words in (
        ("[", "This is no JSON"),
        ("{}", "This is no list"),
        ('[{"type": "function", "function": {}}, 5]', 'Tool 1 has no "name"'),
        (json.dumps([TOOLS[0], TOOLS[0]]), 'Two tools are called "get_weather"'),
    ):
        fill(page, "tools", text)
        assert words in texts(page, "#tools-problem")[0], text
        assert page.evaluate("document.getElementById('tools').ariaInvalid") == "true"
    send(page, "look")  # not sent: the field is shown
    page.wait("document.activeElement.id === 'tools'")
    assert texts(page, ".user") == [] and page.evaluate("document.getElementById('text').value") == "look"
    fill(page, "tools", json.dumps(TOOLS))
    assert page.evaluate("document.getElementById('tools-problem').hidden")
    assert texts(page, "#tools-note") == ["2 tools: get_weather, run"]
    record(page)
    fill(page, "tool_choice", "required")
    page.evaluate("document.getElementById('text').focus()")
    page.press_enter()
    page.wait(f"window.bodies.length === 1 && ({IS_IDLE})")
    assert page.evaluate("window.bodies[0].tool_choice") == "required"
    assert "parallel_tool_calls" not in page.evaluate("window.bodies[0]")
    click(page, "#new-chat")
    fill(page, "tool_choice", "one")
    ask(page, "look")
    assert page.evaluate("window.bodies[1].parallel_tool_calls") is False and len(texts(page, ".call")) == 1
    click(page, "#new-chat")
    fill(page, "tool_choice", "none")
    ask(page, "plain")
    assert "tools" not in page.evaluate("Object.keys(window.bodies[2])")


def test_a_model_that_reads_no_tools_says_so(page):
    fill(page, "model", "tiny")
    fill(page, "max_tokens", "4")
    ask(page, "hello")  # loads it
    page.wait("document.getElementById('tools-model').textContent.includes('tiny reads no tools')")
    fill(page, "tools", json.dumps(TOOLS))
    ask(page, "again", done=HAS_ERROR)
    assert texts(page, ".error button") == ["Show it in the settings", "Try again"]
    click_button(page, "Show it in the settings")
    assert page.evaluate("document.activeElement.id") == "tools"
    assert "knows none" in texts(page, "#tools-problem")[0]
    fill(page, "tools", "")
    assert page.evaluate("document.getElementById('tools-problem').hidden")
    click_button(page, "Try again")
    page.wait(IS_DONE)
    assert "4 tokens" in texts(page, ".assistant:last-child .stats")[0]


def test_an_answer_bound_to_a_schema_is_shown_as_json(page):
    record(page)
    fill(page, "format", "json_schema")
    fill(page, "format_schema", json.dumps(SCHEMA))
    ask(page, "hello")
    (shown,) = texts(page, ".json pre")
    value = json.loads(shown)
    assert list(value) == ["ok", "n"] and shown == json.dumps(value, indent=2)
    assert texts(page, ".json .hljs-attr")[:1] == ['"ok"']
    assert page.evaluate("window.bodies[0].response_format.json_schema.schema") == SCHEMA
    click_button(page, "Raw")
    (raw,) = texts(page, ".json pre")
    assert json.loads(raw) == value
    kept = "Object.entries(localStorage).find(([key]) => key.includes('.chat.'))[1]"
    assert raw == json.loads(page.evaluate(kept))["messages"][1]["content"]
    click_button(page, "Raw")
    assert texts(page, ".json pre") == [shown]
    assert page.evaluate("document.querySelector('.json .copy').ariaPressed") == "false"

    for kind, field, text, wanted in (
        ("regex", "format_regex", "[0-9]{4}", {"structured_outputs": {"regex": "[0-9]{4}"}}),
        ("grammar", "format_grammar", 'root ::= "yes"', {"structured_outputs": {"grammar": 'root ::= "yes"'}}),
    ):
        fill(page, "format", kind)
        fill(page, field, text)
        ask(page, kind)
        body = page.evaluate("window.bodies.at(-1)")
        assert wanted.items() <= body.items() and "response_format" not in body
    assert texts(page, ".assistant:last-child .body p") == ["yes"]
    fill(page, "format", "json_object")
    fill(page, "max_tokens", "1")
    ask(page, "object")
    assert page.evaluate("window.bodies.at(-1).response_format") == {"type": "json_object"}
    assert "Continue" not in texts(page, ".assistant:last-child button")  # a format would begin anew
    assert not page.problems, page.problems


def test_a_refused_schema_is_said_where_it_stands(page):
    fill(page, "format", "json_schema")
    assert page.evaluate("document.getElementById('format-problem').hidden")  # empty: nothing to say yet
    send(page, "hello")
    page.wait("document.activeElement.id === 'format_schema'")
    assert texts(page, "#format-problem") == ["It is empty."]
    fill(page, "format_schema", "{")
    assert "This is no JSON" in texts(page, "#format-problem")[0]
    fill(page, "format_schema", '{"type": "object", "properties": {"a": {"not": {"type": "null"}}}}')
    assert page.evaluate("document.getElementById('format-problem').hidden")
    page.evaluate("document.getElementById('text').focus()")
    page.press_enter()
    page.wait(HAS_ERROR)
    assert texts(page, "#format-problem") == ["[schema] /properties/a/not: this keyword is not enforced"]
    click_button(page, "Show it in the settings")
    field = "document.getElementById('format_schema')"
    assert page.evaluate(f"{field}.value.slice({field}.selectionStart, {field}.selectionEnd)") == '"not"'
    fill(page, "format_schema", json.dumps(SCHEMA))
    assert page.evaluate("document.getElementById('format-problem').hidden")
    click_button(page, "Try again")
    page.wait(f"{IS_DONE} && document.querySelector('.json')")


def chats_keep_their_models(page, server):
    page.open(server.url + "/")
    page.wait("document.getElementById('model').value === 'alpha'")
    groups = "[...document.querySelectorAll('#model optgroup')].map(g => [g.label, g.children.length])"
    assert page.evaluate(groups) == [["Loaded by the first message", 2]]
    fill(page, "max_tokens", "4")
    page.evaluate(
        "window.loading = new Set(); new MutationObserver(() => { const box = document.querySelector('.loading');"
        " if (box && !box.hidden) window.loading.add(box.textContent); })"
        ".observe(document.getElementById('messages'), {subtree: true, childList: true, attributes: true}); 0"
    )
    ask(page, "to alpha")
    assert page.evaluate("[...window.loading]") == ["Loading alpha…"]
    page.wait("document.querySelector('#model optgroup')?.label === 'Loaded'")
    assert page.evaluate(groups) == [["Loaded", 1], ["Loaded by the first message", 1]]
    click(page, "#new-chat")
    assert model(page) == "alpha"  # as the last one
    fill(page, "model", "beta")
    ask(page, "to beta")
    assert "beta" in texts(page, ".assistant .stats")[0]
    click(page, "#chat-list li:last-child .title")
    assert model(page) == "alpha"
    click(page, "#chat-list li:first-child .title")
    assert model(page) == "beta"
    page.open(server.url + "/")
    page.wait("document.getElementById('model').value === 'beta'")


def a_model_is_gone(page, server):
    page.open(server.url + "/")
    page.wait("document.getElementById('model').value")
    assert model(page) == "beta" and "beta, is not served any more" in texts(page, "#model-note")[0]
    assert texts(page, "#model optgroup:last-child option") == ["beta"]
    fill(page, "max_tokens", "4")
    ask(page, "are you there?", done=HAS_ERROR)
    assert "404" in texts(page, ".assistant:last-child .error")[0]
    assert texts(page, ".error button") == ["Choose another model", "Try again"]
    click_button(page, "Choose another model")
    page.wait("document.activeElement.id === 'model'")
    click_button(page, "Go on with alpha")
    assert model(page) == "alpha" and page.evaluate("document.getElementById('model-note').hidden")
    click_button(page, "Try again")
    page.wait(f"{IS_DONE} && document.querySelector('.assistant:last-child .stats').textContent.includes('alpha')")


def test_the_model_is_the_chats(tiny_model, tmp_path):
    if not browser.find():
        pytest.skip("no Chromium")
    models = tmp_path / "models"
    models.mkdir()
    for name in ("alpha", "beta"):
        shutil.copy(tiny_model, models / f"{name}.gguf")
    env = {"ZINC_RT_MODELS": str(models)}
    with browser.chromium(tmp_path / "profile") as page:
        page.look()
        with serving(env=env) as server:
            chats_keep_their_models(page, server)
        (models / "beta.gguf").rename(models / "gamma.gguf")
        with serving(env=env, port=server.port):
            a_model_is_gone(page, server)


def show_calls(page):
    page.evaluate("localStorage.clear()")
    result = {"role": "tool", "tool_call_id": "c1", "content": WEATHER}
    answer = {"role": "assistant", "content": json.dumps({"a": "y" * 200}), "stats": {}}
    long = {**CALL, "id": "c2", "function": {"name": "n" * 80, "arguments": json.dumps({"text": "x" * 300})}}
    keep_chat(page, *ASKED, result, answer, ASKED[0], {**ASKED[1], "tool_calls": [CALL, long]})


def show_settings(page):
    click(page, "#show-settings")
    fill(page, "format", "json_schema")
    fill(page, "format_schema", "{")
    fill(page, "tools", '[{"type": "function"}]')
    assert all(texts(page, "#settings .error"))


def show_gone(page):
    page.press("Escape")
    page.evaluate(
        "(chat => localStorage.setItem('zinc_rt.chat.kept', JSON.stringify({...chat, model: 'm'.repeat(90)})))"
        "(JSON.parse(localStorage.getItem('zinc_rt.chat.kept')))"
    )
    page.call("Page.reload")
    page.wait("document.getElementById('model-note')?.hidden === false")


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("size", [(1280, 900), (390, 844)])
def test_widths_and_accessibility(page, axe, size, scheme):
    page.look(*size, scheme)
    for show in (show_calls, show_settings, show_gone):
        show(page)
        time.sleep(0.1)
        assert is_within_width(page), show.__name__
        assert violations(page, axe) == [], show.__name__
