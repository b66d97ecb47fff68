"""The chat page in a browser: talking, mending what went wrong, files, widths and colours."""

import json
import shutil
import time

import pytest

import browser
from chat_page import (
    IS_DONE,
    IS_IDLE,
    KEY,
    click,
    click_button,
    give_key,
    is_within_width,
    keep_chat,
    send,
    set_value,
    texts,
    unlock,
    violations,
)
from server_process import serving

SIZES = {"wide": (1440, 900), "phone": (390, 844)}
ANSWER = r"""Text with $x^2$ and \(\sqrt{y}\), for $5 or $6.

$$\overbrace{\frac{a}{b}}^{n} = \sum_i \left(\begin{matrix} 1 \\ 2 \\ 3 \\ 4 \end{matrix}\right)$$

| a | b |
|:--|--:|
| 1 | 2 |

- [x] done
- [ ] not yet

```python
print(1)
```

<img src=x> <input type=text> [link](javascript:alert(1))
"""

QUESTION = {"role": "user", "content": "why?"}

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def server(tiny_model):
    with serving(tiny_model, "--id", "tiny", "--api-key", KEY) as server:
        yield server


@pytest.fixture
def page(server, tmp_path):
    if not browser.find():
        pytest.skip("no Chromium")
    with browser.chromium(tmp_path / "profile") as page:
        page.look()
        page.open(server.url + "/")
        yield page


def test_chat(server, page):
    unlock(page)
    set_value(page, "max_tokens", 12)
    set_value(page, "temperature", 0)
    page.evaluate("document.getElementById('text').focus()")
    page.type("first line")
    page.press_enter(shift=True)
    page.type("second line")
    assert texts(page, ".user") == []
    page.press_enter()
    page.wait(IS_DONE)
    assert texts(page, ".user .body") == ["first line\nsecond line"]
    assert "tokens/s" in texts(page, ".assistant .stats")[0]
    (answer,) = texts(page, ".assistant .body")
    assert answer.strip()
    assert page.evaluate("document.activeElement.id") == "text"
    assert "of" in texts(page, "#meter-text")[0] and page.evaluate("document.getElementById('meter').value") > 12

    click_button(page, "Regenerate")
    page.wait(IS_DONE)
    assert texts(page, ".assistant .body") == [answer]
    assert page.evaluate("document.activeElement.id") == "text"

    click(page, "#chat-list .tool")  # renames
    assert texts(page, "#chat-list .title") == ["renamed"]
    click(page, "#new-chat")
    page.open(server.url + "/")
    page.wait("document.querySelector('.assistant .body')")  # kept
    click(page, "#chat-list li.open .tool:last-child")  # deletes
    page.wait("document.querySelectorAll('.assistant').length === 0")
    assert not page.problems
    assert all(url.startswith((server.url, "data:")) for url in page.requests), page.requests


def test_continue_and_edit(page):
    unlock(page)
    set_value(page, "max_tokens", 4)
    set_value(page, "temperature", 0)
    send(page, "hello")
    page.wait(IS_DONE)
    (first,) = texts(page, ".assistant .body")
    click_button(page, "Continue")
    page.wait(f"{IS_IDLE} && document.querySelector('.assistant .stats').textContent.startsWith('8 ')")
    (longer,) = texts(page, ".assistant .body")
    assert longer.strip().startswith(first.strip()) and len(longer) > len(first)

    page.evaluate("document.getElementById('text').focus()")
    page.press("ArrowUp")
    page.wait("document.activeElement.className === 'edit'")
    page.press("Escape")
    assert texts(page, ".user .body") == ["hello"]
    click_button(page, "Edit")
    page.evaluate("document.querySelector('.edit').select()")
    page.type("another")
    page.press_enter()
    page.wait("document.querySelector('.user .body')?.textContent === 'another'")
    page.wait(IS_DONE)
    assert len(texts(page, ".assistant")) == 1
    assert not page.problems


def test_answers_are_bounded_and_escape_stops_them(page):
    unlock(page)
    page.evaluate(
        "window.bodies = []; window.real = fetch; window.fetch = (url, options) => {"
        "if (options?.body) window.bodies.push(JSON.parse(options.body)); return window.real(url, options); }"
    )
    send(page, "hello")
    page.wait("window.bodies.length === 1")
    assert 1 <= page.evaluate("window.bodies[0].max_tokens") <= 1024
    page.wait("document.querySelector('.assistant .body').textContent || !document.getElementById('send').hidden")
    page.press("Escape")
    page.wait(IS_DONE)
    assert page.evaluate("document.activeElement.id") == "text"


def test_a_wrong_key_keeps_the_text(page):
    unlock(page)
    page.evaluate("sessionStorage.setItem('zinc_rt.key', 'wrong')")
    send(page, "precious words")
    page.wait("!document.getElementById('key-panel').hidden && document.getElementById('stop').hidden")
    assert "does not know this key" in texts(page, "#key-label")[0]
    assert page.evaluate("document.getElementById('text').value") == "precious words"
    assert texts(page, ".user") == []
    give_key(page)
    page.wait("document.activeElement.id === 'text'")
    page.press_enter()
    page.wait(IS_DONE)
    assert texts(page, ".user .body") == ["precious words"]


def test_a_full_context_offers_to_drop_turns(page):
    unlock(page)
    long = "word " * 120
    turns = [{"role": role, "content": long, "stats": {}} for _ in range(6) for role in ("user", "assistant")]
    keep_chat(page, *turns)
    set_value(page, "max_tokens", 4)
    for _ in range(3):
        if offers := texts(page, ".error button"):
            click_button(page, offers[-1])
        else:
            send(page, "and now?")
        page.wait(f"{IS_IDLE} && (({IS_DONE}) || document.querySelector('.assistant .error button'))")
        if not texts(page, ".error button"):
            break
        said = texts(page, ".assistant .error")[-1]
        assert texts(page, ".error button") == ["Drop the oldest turns and try again"], said
    assert "tokens" in texts(page, ".assistant:last-child .stats")[0]
    assert texts(page, ".user.dropped .stats")[0] == "no longer sent"
    assert texts(page, ".user:not(.dropped) .body")[-1] == "and now?"

    click(page, "#new-chat")
    send(page, "word " * 4000)  # no turn to drop
    page.wait("document.querySelector('.assistant .error button')")
    assert texts(page, ".error button") == ["Edit the message"]
    click_button(page, "Edit the message")
    assert page.evaluate("document.activeElement.className") == "edit"


def test_a_server_that_is_gone_is_tried_again(tiny_model, tmp_path):
    if not browser.find():
        pytest.skip("no Chromium")
    with browser.chromium(tmp_path / "profile") as page:
        page.look()
        with serving(tiny_model) as server:
            page.open(server.url + "/")
            page.wait("document.getElementById('model').value")
            port = server.port
        set_value(page, "max_tokens", 4)
        send(page, "hello")
        page.wait("document.querySelector('.assistant .error')?.textContent.includes('Trying again in')")
        with serving(tiny_model, port=port):
            page.wait(IS_DONE)
            assert "tokens" in texts(page, ".assistant .stats")[0]
            assert page.evaluate("document.querySelector('.assistant .error').hidden")


def test_a_model_of_the_folder_is_loaded_by_the_first_message(tiny_model, tmp_path):
    if not browser.find():
        pytest.skip("no Chromium")
    for name in ("alpha", "beta"):
        shutil.copy(tiny_model, tmp_path / f"{name}.gguf")
    folder = serving(env={"ZINC_RT_MODELS": str(tmp_path)})
    with folder as server, browser.chromium(tmp_path / "profile") as page:
        page.look()
        page.open(server.url + "/")
        page.wait("document.getElementById('model').value === 'alpha'")
        assert texts(page, "#model option") == ["alpha", "beta"]
        assert page.evaluate("document.getElementById('meter-box').hidden")
        click(page, "#show-card")
        page.wait("document.getElementById('card').open")
        assert "is loaded with the first message" in texts(page, "#card-body")[0]
        page.press("Escape")
        set_value(page, "max_tokens", 4)
        send(page, "hello")
        page.wait(IS_DONE)
        page.wait("!document.getElementById('meter-box').hidden")
        click(page, "#show-card")
        page.wait("document.getElementById('card-body').textContent.includes('t_cpu')")


def test_other_errors_say_why(page):
    unlock(page)
    page.evaluate(
        "window.real = fetch; window.fetch = (url, options) =>"
        " window.real(url, options?.body ? {...options, body: options.body.replace('tiny', 'nobody')} : options)"
    )
    send(page, "hello")
    page.wait("document.querySelector('.assistant .error button')")
    assert "nobody" in texts(page, ".assistant .error")[0] and texts(page, ".error button") == ["Try again"]


def test_export_and_import(page):
    unlock(page)
    keep_chat(page, QUESTION, {"role": "assistant", "content": ANSWER, "stats": {"finish": "stop"}})
    page.evaluate(
        "window.saved = []; URL.createObjectURL = (blob) => (window.saved.push(blob), 'blob:none');"
        " HTMLAnchorElement.prototype.click = () => {}"
    )
    click(page, "#export-markdown")
    click(page, "#export-all")
    markdown = page.evaluate("window.saved[0].text()")
    assert markdown.startswith("# kept\n\n## You\n\nwhy?\n") and ANSWER in markdown
    exported = page.evaluate("window.saved[1].text()")
    page.evaluate(
        "window.give = (text) => { const files = new DataTransfer(); files.items.add(new File([text], 'a.json'));"
        " const field = document.getElementById('import-file'); field.files = files.files;"
        " field.dispatchEvent(new Event('change')); }"
    )
    page.evaluate(f"window.give({json.dumps(exported)})")
    page.wait("document.getElementById('chats-note').textContent === '1 chat imported.'")
    assert texts(page, "#chat-list .title").count("kept") == 2
    evil = json.loads(exported)
    evil["chats"][0]["messages"][1]["content"] = 5
    for text, why in (("{", "not JSON"), ("{}", "not exported by this page"), (json.dumps(evil), "chat 1")):
        page.evaluate(f"window.give({json.dumps(text)})")
        page.wait(f"document.getElementById('chats-note').textContent.includes('{why}')")
    assert texts(page, "#chat-list .title").count("kept") == 2


def test_markdown(page):
    unlock(page)
    keep_chat(page, QUESTION, {"role": "assistant", "content": ANSWER, "stats": {}})
    assert len(texts(page, ".katex")) == 3 and len(texts(page, ".formula .katex-display")) == 1
    assert "for $5 or $6" in texts(page, ".assistant .body p")[0]
    page.evaluate("document.fonts.ready.then(() => 0)")
    assert page.evaluate("[...document.fonts].filter(f => f.status === 'loaded').length") >= 3
    assert page.evaluate("getComputedStyle(document.querySelector('td:last-child')).textAlign") == "right"
    boxes = "[...document.querySelectorAll('.task input')].map(b => [b.checked, b.disabled, b.ariaLabel])"
    assert page.evaluate(boxes) == [[True, True, "done"], [False, True, "to do"]]
    assert page.evaluate("document.querySelectorAll('.body img, .body input[type=text], .body a[href]').length") == 0
    page.evaluate(
        "Object.defineProperty(navigator, 'clipboard', {value: {writeText: async (text) => (window.copied = text)}})"
    )
    click(page, ".code .copy")
    page.wait("window.copied === 'print(1)\\n'")
    click(page, ".assistant .actions .copy")
    page.wait(f"window.copied === {json.dumps(ANSWER)}")
    assert not page.problems, page.problems  # among these are breaches of the policy


def test_usage(page):
    unlock(page)
    page.evaluate("location.hash = '#usage'")
    page.wait("document.querySelector('#plots .now').textContent", seconds=1.5)  # at once, not after an interval
    assert len(texts(page, "#plots figure")) == 5
    assert set(texts(page, "#plots .x-axis")) == {"5 min agonow"}
    assert all(text.endswith("0") for text in texts(page, "#plots .y-axis"))
    page.wait("document.querySelector('#totals dd')")
    assert page.evaluate("document.getElementById('usage-error').hidden")


def open_card(page):
    click(page, "#show-card")
    assert {"Tier", "Arithmetic", "Slots", "KV cache", "Context here"} <= set(texts(page, "#card dt"))


def open_panel(name):
    def open_it(page):
        click(page, f"#show-{name}")

    return open_it


STATES = {
    "chat": lambda page: None,
    "card": open_card,
    "help": lambda page: page.press("?", text="?"),
    "settings": open_panel("settings"),
    "chats": open_panel("chats"),
    "usage": lambda page: page.evaluate("location.hash = '#usage'"),
}


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("size", SIZES)
def test_widths_and_accessibility(page, axe, size, scheme):
    """axe-core finds nothing in any state, nothing is wider than the page, and all that opens closes."""
    unlock(page)
    long = {"role": "user", "content": "a" * 300}
    keep_chat(page, long, {"role": "assistant", "content": ANSWER, "stats": {"finish": "length"}}, title="t" * 100)
    page.look(*SIZES[size], scheme)
    for name, open_state in STATES.items():
        if name == "chats" and size == "wide":
            continue
        open_state(page)
        time.sleep(0.1)
        assert is_within_width(page), name
        assert violations(page, axe) == [], name
        if name == "usage":
            break
        page.press("Escape")
        page.wait("!document.querySelector('dialog[open]') && document.getElementById('shade').hidden")
        shown = page.evaluate("getComputedStyle(document.getElementById('settings')).display")
        assert shown == "none", name
    page.evaluate("location.hash = '#chat'")
    if size == "phone":
        click(page, "#show-settings")
        assert not page.evaluate("document.getElementById('shade').hidden")
        page.click_at(5, 400)  # beside it
        page.wait("document.getElementById('shade').hidden")
