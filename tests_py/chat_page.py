"""What tests of the chat page do with it."""

import json
import time

KEY = "the-key"
IS_IDLE = "document.getElementById('stop').hidden"
IS_DONE = f"{IS_IDLE} && document.querySelector('.assistant:last-child .stats')?.textContent"


def click(page, selector):
    page.evaluate(f"document.querySelector({json.dumps(selector)}).click()")


def click_button(page, text):
    buttons = "[...document.querySelectorAll('button')]"
    page.evaluate(f"{buttons}.findLast(b => b.textContent === {json.dumps(text)}).click()")


def give_key(page, key=KEY):
    page.wait("!document.getElementById('key-panel').hidden")
    page.evaluate("document.getElementById('key').focus()")
    page.type(key)
    page.press_enter()


def unlock(page):
    give_key(page)
    page.wait("document.getElementById('model').value")
    page.problems.clear()  # the 401 before it is one


def set_value(page, name, value):
    page.evaluate(f"document.getElementById('{name}').value = '{value}'")


def send(page, text):
    page.evaluate("document.getElementById('text').focus()")
    page.type(text)
    page.press_enter()


def texts(page, selector):
    return page.evaluate(f"[...document.querySelectorAll({json.dumps(selector)})].map(e => e.textContent)")


def keep_chat(page, *messages, title="kept"):
    """A chat in the browser's store, shown."""
    chat = {"id": "kept", "title": title, "changed": int(time.time() * 1000) + 1000, "messages": messages}
    page.evaluate(f"localStorage.setItem('zinc_rt.chat.kept', {json.dumps(json.dumps(chat))})")
    page.call("Page.reload")
    page.wait("document.querySelector('#chat-list .title')?.textContent && document.getElementById('model').value")


def violations(page, axe):
    """What axe-core finds: [[rule, elements]]."""
    page.evaluate(axe + ";0")
    found = "r.violations.map(v => [v.id, v.nodes.map(n => n.html)])"
    return json.loads(page.evaluate(f"axe.run().then(r => JSON.stringify({found}))"))


def is_within_width(page):
    return page.evaluate("document.documentElement.scrollWidth <= innerWidth")
