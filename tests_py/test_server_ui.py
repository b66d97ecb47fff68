"""The chat page that the server carries: its files, and what it does in a browser."""

import filecmp
import pathlib
import re
import shutil
import subprocess

import pytest

import browser
from server_process import serving

UI = pathlib.Path(__file__).resolve().parent.parent / "cpp" / "server" / "ui"
FILES = {
    "/": ("index.html", "text/html; charset=utf-8"),
    "/ui/style.css": ("style.css", "text/css; charset=utf-8"),
    "/ui/app.js": ("app.js", "text/javascript; charset=utf-8"),
    "/ui/NOTICE.txt": ("NOTICE.txt", "text/plain; charset=utf-8"),
}
KEY = "the-key"


@pytest.fixture(scope="module")
def server(tiny_model):
    with serving(tiny_model, "--api-key", KEY) as server:
        yield server


@pytest.mark.parametrize("path", FILES)
def test_a_file_and_its_headers(server, path):
    name, content_type = FILES[path]
    status, headers, body = server.request("GET", path)  # without a key
    assert (status, headers["Content-Type"], body) == (200, content_type, (UI / "dist" / name).read_bytes())
    policy = headers["Content-Security-Policy"]
    assert policy.startswith("default-src 'self';")
    assert "unsafe" not in policy and "http" not in policy
    assert headers["X-Content-Type-Options"] == "nosniff"
    assert headers["X-Frame-Options"] == "DENY"
    assert headers["Referrer-Policy"] == "no-referrer"
    assert headers["Cache-Control"] == "no-cache"

    status, head, body = server.request("HEAD", path)
    assert (status, body, head["Content-Length"]) == (200, b"", headers["Content-Length"])
    status, again, body = server.request("GET", path, headers={"If-None-Match": headers["ETag"]})
    assert (status, body, again["ETag"]) == (304, b"", headers["ETag"])
    assert "Content-Length" not in again
    assert server.request("POST", path, {})[0] == 405


def test_only_these_files(server):
    for path in ("/ui", "/ui/", "/ui/index.js", "/ui/../ui/app.js", "/ui/%2e%2e/NOTICE.txt"):
        assert server.request("GET", path)[0] == 404, path


def test_page_has_nothing_inline_or_from_elsewhere():
    page = (UI / "dist" / "index.html").read_text()
    assert not re.search(r"<style|\sstyle=|\son\w+=|https?://|<script(?![^>]* src=)", page)


@pytest.mark.slow
def test_dist_is_what_the_sources_build(tmp_path):
    if not shutil.which("npm"):
        pytest.skip("no npm")
    for name in ("src", "build.mjs", "package.json", "package-lock.json"):
        copy = shutil.copytree if (UI / name).is_dir() else shutil.copy
        copy(UI / name, tmp_path / name)
    subprocess.run(["npm", "ci", "--no-audit", "--no-fund"], cwd=tmp_path, check=True, capture_output=True)
    subprocess.run(["npm", "run", "build"], cwd=tmp_path, check=True, capture_output=True)
    names = [name for name, _ in FILES.values()]
    assert sorted(path.name for path in (tmp_path / "dist").iterdir()) == sorted(names)
    _, different, missing = filecmp.cmpfiles(tmp_path / "dist", UI / "dist", names, shallow=False)
    assert not different and not missing


@pytest.fixture
def page(server, tmp_path):
    if not browser.find():
        pytest.skip("no Chromium")
    with browser.chromium(tmp_path / "profile") as page:
        page.look()
        page.open(server.url + "/")
        yield page


def unlock(page):
    page.wait("!document.getElementById('key-panel').hidden")
    page.evaluate("document.getElementById('key').focus()")
    page.type(KEY)
    page.press_enter()
    page.wait("document.getElementById('model').value")


def set_value(page, name, value):
    page.evaluate(f"document.getElementById('{name}').value = '{value}'")


def send(page, text):
    page.evaluate("document.getElementById('text').focus()")
    page.type(text)
    page.press_enter()


IS_DONE = "document.getElementById('stop').hidden && document.querySelector('.assistant .stats')"


@pytest.mark.slow
def test_chat_in_a_browser(server, page):
    unlock(page)
    page.problems.clear()  # the 401 above is one
    set_value(page, "max_tokens", 12)
    set_value(page, "temperature", 0)
    page.evaluate("document.getElementById('text').focus()")
    page.type("first line")
    page.press_enter(shift=True)
    page.type("second line")
    assert page.evaluate("document.querySelectorAll('.user').length") == 0
    page.press_enter()
    page.wait(IS_DONE)
    assert page.evaluate("document.querySelector('.user .body').textContent") == "first line\nsecond line"
    assert "tokens/s" in page.evaluate("document.querySelector('.assistant .stats').textContent")
    answer = page.evaluate("document.querySelector('.assistant .body').textContent")
    assert answer.strip()

    page.evaluate("document.querySelector('.assistant .actions button').click()")
    page.wait(IS_DONE)
    assert page.evaluate("document.querySelector('.assistant .body').textContent") == answer
    assert page.evaluate("document.querySelectorAll('.assistant').length") == 1

    page.evaluate("document.querySelector('#chat-list .tool').click()")  # renames
    assert page.evaluate("document.querySelector('#chat-list .title').textContent") == "renamed"
    page.evaluate("document.getElementById('new-chat').click()")
    page.open(server.url + "/")
    page.wait("document.querySelector('.assistant .body')")  # kept
    page.evaluate("document.querySelectorAll('#chat-list .tool')[1].click()")  # deletes
    page.wait("document.querySelectorAll('.assistant').length === 0")

    assert not page.problems
    assert all(url.startswith((server.url, "data:")) for url in page.requests), page.requests


@pytest.mark.slow
def test_stop_and_errors_in_a_browser(server, page):
    unlock(page)
    page.evaluate("document.getElementById('model').replaceChildren(new Option('nobody'))")
    send(page, "hello")
    page.wait("!document.querySelector('.assistant .error')?.hidden && document.querySelector('.assistant .error')")
    assert "nobody" in page.evaluate("document.querySelector('.assistant .error').textContent")

    page.evaluate("document.getElementById('new-chat').click()")
    page.evaluate("document.getElementById('model').replaceChildren(new Option(''))")
    send(page, "hello")
    page.wait("!document.getElementById('stop').hidden")
    page.evaluate("document.getElementById('stop').click()")
    page.wait(IS_DONE)


@pytest.mark.slow
def test_usage_in_a_browser(server, page):
    unlock(page)
    page.evaluate("location.hash = '#usage'")
    page.wait("document.querySelectorAll('#plots figure').length === 5")
    page.wait("document.querySelector('#totals dd')")
    page.wait("document.querySelector('#plots .now').textContent.includes('top')")
    assert page.evaluate("document.getElementById('usage-error').hidden")
