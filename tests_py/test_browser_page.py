"""The page with an engine in it (docs/browser.md) in Chromium: choosing a model, talking, checking, what goes wrong.

`.ci/run platforms` builds the engine's module and names it in ZRT_BROWSER_MODULE; without that, or without Chromium,
these tests are skipped by name.
"""

import contextlib
import hashlib
import http.server
import os
import pathlib
import threading

import pytest

import browser
import tiny_model as tiny
from chat_page import IS_DONE, click, click_button, is_within_width, send, set_value, texts, violations
from server_process import serving

MODULE = pathlib.Path(os.environ.get("ZRT_BROWSER_MODULE", ""))
SITE = MODULE.parent.parent / "site"  # of the target zinc_rt_site
pytestmark = [
    pytest.mark.skipif(not (SITE / "index.html").is_file(), reason="ZRT_BROWSER_MODULE names no module with a page"),
    pytest.mark.skipif(not browser.find(), reason="no Chromium"),
]
PIECE = 1 << 14  # of what a model's host writes at once
PAGE = b"<!DOCTYPE html><p>tiny.gguf, 1 MB"
TYPES = {".wasm": "application/wasm", ".js": "text/javascript", ".css": "text/css", ".html": "text/html"}
TEXT = "document.getElementById('{}').textContent"
IS_OPEN = "!document.getElementById('engine-strip').hidden && document.getElementById('model').value"
PROBLEM = TEXT.format("engine-problem")


class Site(http.server.BaseHTTPRequestHandler):
    """The folder of the target zinc_rt_site, and models that come slowly, break off, or are none."""

    protocol_version = "HTTP/1.1"

    def do_GET(self):
        name = self.path.split("?")[0].lstrip("/") or "index.html"
        self.server.asked.append((self.path, self.headers.get("Range")))
        if name.startswith("models/"):
            return self.give_model(name)
        path = SITE / name
        data = path.read_bytes()
        self.head(200, len(data), {"Content-Type": TYPES.get(path.suffix, "application/octet-stream")})
        self.wfile.write(data)

    def head(self, status, size, more):
        self.send_response(status)
        for key, value in {"Content-Length": str(size), **more}.items():
            self.send_header(key, value)
        self.end_headers()

    def give_model(self, name):
        others = {"models/text.gguf": b"This is a text." * 100, "models/page": PAGE, "models/nothing": b""}
        data = PAGE if self.server.is_limited else others.get(name, self.server.model.read_bytes())
        if name == "models/none.gguf":
            return self.head(404, 0, {})
        if name == "models/huge.gguf":
            return self.head(200, 5 << 30, {})
        begin = 0
        asked = self.headers.get("Range") if self.server.has_ranges else None
        if asked:
            begin = int(asked.removeprefix("bytes=").removesuffix("-"))
        # As hosts of files have them that let pages of other sites read: these do not see the range and the ETag.
        more = {"ETag": self.server.tag, "Last-Modified": self.server.tag, "Access-Control-Allow-Origin": "*"}
        if asked:
            more["Content-Range"] = f"bytes {begin}-{len(data) - 1}/{len(data)}"
        self.head(206 if asked else 200, len(data) - begin, more)
        with contextlib.suppress(ConnectionError):  # the page may have left
            for at in range(begin, len(data), PIECE):
                if name == "models/slow.gguf":
                    self.server.gate.acquire(timeout=60)
                self.wfile.write(data[at : at + (PIECE)])

    def log_message(self, *_):
        pass


@pytest.fixture
def site(tiny_model):
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Site) as server:
        server.daemon_threads = True
        server.asked, server.tag, server.has_ranges, server.gate = [], '"one"', True, threading.Semaphore(0)
        server.is_limited = False
        server.model, server.hash = tiny_model, hashlib.sha256(tiny_model.read_bytes()).hexdigest()
        server.pieces = -(-tiny_model.stat().st_size // PIECE)
        assert server.pieces > 3, "the tests of a slow download want more"
        server.url = f"http://127.0.0.1:{server.server_address[1]}"
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server
        server.shutdown()


@pytest.fixture
def page(site, tmp_path):
    with browser.chromium(tmp_path / "profile") as page:
        page.look()
        page.open(site.url + "/")
        yield page


def fetch(page, url):
    set_value(page, "engine-url", url)
    click(page, "#engine-download")


def download(page, site, name="tiny.gguf"):
    fetch(page, f"{site.url}/models/{name}")
    page.wait(IS_OPEN)


def download_half(page, site, url):
    """Of slow.gguf, which waits for its other half."""
    fetch(page, url)
    site.gate.release(site.pieces // 2)
    page.wait(f"{TEXT.format('engine-words')}.includes(' of ')")


def open_file(page, path):
    """As a user does who chooses a file of this computer."""
    root = page.call("DOM.getDocument")["root"]["nodeId"]
    node = page.call("DOM.querySelector", nodeId=root, selector="#engine-file")["nodeId"]
    page.call("DOM.setFileInputFiles", nodeId=node, files=[str(path)])
    page.wait(IS_OPEN)


def ask(page, text="Once upon", tokens=6):
    for name, value in {"max_tokens": tokens, "temperature": 0}.items():
        set_value(page, name, value)
    send(page, text)
    page.wait(IS_DONE)


def test_a_model_by_url_is_kept_and_answers(page, site):
    download(page, site)
    ask(page)
    assert "6 tokens" in texts(page, ".assistant .stats")[0]
    state = page.evaluate(TEXT.format("engine-state"))
    assert state.startswith("tiny · t_cpu, exact arithmetic") and state.endswith("MB of memory"), state
    page.wait(f"{TEXT.format('engine-state')}.includes('tokens/s')")
    # Kept: the page opens it again without a request.
    page.open(site.url + "/")
    page.wait("document.querySelector('#engine-list .name')")
    before = len(site.asked)
    kept = page.evaluate(TEXT.format("engine-list"))
    assert f"tiny.gguf{site.model.stat().st_size / 1e6:.1f} MB, sha256 {site.hash[:12]}" in kept
    click_button(page, "Open")
    page.wait(IS_OPEN)
    ask(page, "and then")
    assert [path for path, _ in site.asked[before:] if "models" in path] == []
    click(page, "#engine-change")
    page.wait("document.querySelector('#engine-list .name')")
    page.wait(f"{TEXT.format('engine-list')}.endsWith('open')")  # and so it has no buttons
    page.open(site.url + "/")
    page.wait("document.querySelector('#engine-list .name')")
    click_button(page, "Delete")  # which asks, and browser.py says yes
    page.wait("document.getElementById('engine-kept').hidden")
    assert page.problems == []


def test_an_answer_is_checked_with_a_server(page, site, axe, tmp_path):
    other = tmp_path / "other.gguf"
    tiny.write(other, seed=1)
    download(page, site)
    ask(page)
    with serving(site.model, "--id", "theirs", "--cors-origin", site.url) as server:
        click_button(page, "Check")
        set_value(page, "check-url", server.url)
        click(page, "#check-start")
        page.wait(f"{TEXT.format('check-result')}.startsWith('Equal')")
        assert "6 of 6 tokens" in page.evaluate(TEXT.format("check-result"))
        assert violations(page, axe) == []
    with serving(other, "--cors-origin", site.url) as server:
        set_value(page, "check-url", server.url)
        click(page, "#check-start")
        page.wait(f"{TEXT.format('check-result')}.startsWith('Different from token 1')")
    page.problems.clear()  # of the request that the next line makes fail
    with serving(site.model) as server:  # which lets no other page read
        set_value(page, "check-url", server.url)
        click(page, "#check-start")
        page.wait(f"{TEXT.format('check-result')}.includes('--cors-origin {site.url}')")


@pytest.mark.parametrize("how", ["pause", "close the page", "another site"])
def test_a_download_that_stops_goes_on(page, site, how):
    host = site.url if how != "another site" else site.url.replace("127.0.0.1", "localhost")
    download_half(page, site, f"{host}/models/slow.gguf")
    if how == "pause":
        click(page, "#engine-pause")
        page.wait("document.querySelector('#engine-list .hint')")
        assert "have come" in page.evaluate(TEXT.format("engine-list"))
    page.open(site.url + "/")  # another day
    page.wait("document.querySelector('#engine-list .hint')")
    assert "have come" in page.evaluate(TEXT.format("engine-list"))
    site.gate.release(site.pieces)
    click_button(page, "Resume")
    page.wait(IS_OPEN)
    ranges = [asked for path, asked in site.asked if "slow" in path]
    assert ranges[0] == "bytes=0-" and int(ranges[1].removeprefix("bytes=")[:-1]) > 0 and len(ranges) == 2, ranges
    click(page, "#engine-change")
    page.wait(f"{TEXT.format('engine-list')}.includes('{site.hash[:12]}')")


@pytest.mark.parametrize("change", ["another file", "no ranges", "a page"])
def test_a_rest_of_something_else_is_not_taken(page, site, change):
    download_half(page, site, f"{site.url}/models/slow.gguf")
    click(page, "#engine-pause")
    page.wait("document.querySelector('#engine-list .hint')")
    if change == "another file":
        site.tag = '"two"'
    else:
        site.has_ranges = False
    if change == "a page":  # once, as hosts do that are asked too much
        had = page.evaluate(TEXT.format("engine-list"))
        site.is_limited = True
        site.gate.release(2 * site.pieces)  # also for the request that was left
        click_button(page, "Resume")
        page.wait(f"{PROBLEM}.includes('It is a page')")
        assert page.evaluate(TEXT.format("engine-list")) == had
        site.is_limited, site.has_ranges = False, True
    site.gate.release(3 * site.pieces)
    click_button(page, "Resume")
    page.wait(IS_OPEN)
    click(page, "#engine-change")
    page.wait(f"{TEXT.format('engine-list')}.includes('{site.hash[:12]}')")


def test_what_cannot_be_is_said(page, site):
    cases = {
        f"{site.url}/models/none.gguf": "answered 404",
        f"{site.url}/models/text.gguf": 'no GGUF file: it begins with "This"',
        f"{site.url}/models/page": 'it begins with "<!DO", "GGUF" wanted. It is a page',
        f"{site.url}/models/huge.gguf": "The file has 5.37 GB, and a page's engine has room for 3.00 GB",
        f"{site.url}/models/nothing": "sent an empty file",
        f"{site.url}/models/50%.gguf#sha256={'1' * 64}": "It was removed",
        f"{site.url}/models/tiny.gguf#sha256={'0' * 64}": f"sha256 is {site.hash}, {'0' * 64} wanted",
        f"{site.url}/models/tiny.gguf#main": "only sha256= and 64 digits",
        "http://127.0.0.1:1/model.gguf": "does not answer",
    }
    for url, words in cases.items():
        fetch(page, url)
        page.wait(f"{PROBLEM}.includes({words!r})")
        page.wait("document.getElementById('engine-kept').hidden")  # nothing of it stays
    set_value(page, "engine-context", 1 << 20)  # more than the model's
    page.problems.clear()
    fetch(page, f"{site.url}/models/tiny.gguf#sha256={site.hash}")
    page.wait(f"{PROBLEM}.includes('max_context')")
    set_value(page, "engine-context", 128)
    page.wait("document.querySelector('#engine-list .primary')")  # the list comes after the problem
    click_button(page, "Open")
    page.wait(IS_OPEN)
    ask(page)


def test_a_file_of_this_computer(page, tiny_model, axe):
    assert violations(page, axe) == []
    open_file(page, tiny_model)
    ask(page)
    assert page.evaluate("document.getElementById('model').value") == tiny_model.stem
    for width in (1440, 390):
        page.call(
            "Emulation.setDeviceMetricsOverride", width=width, height=844, deviceScaleFactor=1, mobile=width < 500
        )
        click(page, "#engine-change")
        assert is_within_width(page)
        click(page, "#engine-change")
    assert page.problems == []


def test_a_server_carries_the_page(tiny_model, tmp_path):
    with serving(tiny_model, "--page-engine", str(MODULE)) as server, browser.chromium(tmp_path / "profile") as page:
        page.look()
        page.open(server.url + "/local")
        open_file(page, tiny_model)
        ask(page)
        click_button(page, "Check")  # with the page's own server
        click(page, "#check-start")
        page.wait(f"{TEXT.format('check-result')}.startsWith('Equal')")
        assert page.problems == []


def test_the_hash_that_was_asked_for_is_kept(page, site):
    """Also when a download goes on, which knows the URL alone."""
    download_half(page, site, f"{site.url}/models/slow.gguf#sha256={'0' * 64}")
    click(page, "#engine-pause")
    page.wait("document.querySelector('#engine-list .hint')")
    site.gate.release(2 * site.pieces)
    click_button(page, "Resume")
    page.wait(f"{PROBLEM}.includes('{'0' * 64} wanted. It was removed')")
    page.wait("document.getElementById('engine-kept').hidden")
    download(page, site)
    click(page, "#engine-change")
    fetch(page, f"{site.url}/models/tiny.gguf#sha256={'0' * 64}")
    page.wait(f"{PROBLEM}.includes('kept here with the sha256 {site.hash}')")


def test_a_download_does_not_break_off_an_answer(page, site):
    download(page, site)
    click(page, "#engine-change")
    fetch(page, f"{site.url}/models/other.gguf")
    page.wait(f"{TEXT.format('engine-list')}.includes('other.gguf')")
    assert page.evaluate("document.getElementById('model').value") == "tiny"
    set_value(page, "max_tokens", 400)
    set_value(page, "engine-context", 1 << 20)
    send(page, "Once upon")
    page.wait("document.querySelector('.assistant .body')?.textContent")
    click_button(page, "Open")  # the other one, which fails: more context than it has
    page.wait(f"{PROBLEM}.includes('max_context')")
    assert page.evaluate(TEXT.format("engine-state")) == "No model is open."
    set_value(page, "engine-context", "")
    click_button(page, "Open")
    page.wait("document.getElementById('engine-pick').hidden")
    click(page, "#new-chat")
    ask(page, "and then")
    assert page.problems == []
