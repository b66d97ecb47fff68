"""The chat page that the server carries: its files, and what it does in a browser."""

import filecmp
import pathlib
import re
import shutil
import subprocess

import pytest

from server_process import serving

UI = pathlib.Path(__file__).resolve().parent.parent / "cpp" / "server" / "ui"
FILES = {
    "/": ("index.html", "text/html; charset=utf-8"),
    "/ui/style.css": ("style.css", "text/css; charset=utf-8"),
    "/ui/app.js": ("app.js", "text/javascript; charset=utf-8"),
    "/ui/NOTICE.txt": ("NOTICE.txt", "text/plain; charset=utf-8"),
    **{f"/ui/{font.name}": (font.name, "font/woff2") for font in sorted((UI / "dist").glob("*.woff2"))},
}
# They are served where the server has an engine for pages (docs/browser.md).
LOCAL = ("local.html", "worker.js")
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
    for path in (
        "/local",
        "/ui/worker.js",
        "/ui/zinc_rt.wasm",
        "/ui",
        "/ui/",
        "/ui/index.js",
        "/ui/../ui/app.js",
        "/ui/%2e%2e/NOTICE.txt",
    ):
        assert server.request("GET", path)[0] == 404, path


def test_fonts_are_those_that_the_styles_name():
    styles = (UI / "dist" / "style.css").read_text()
    named = set(re.findall(r"url\(([^)]*)\)", styles))
    assert named == {path.name for path in (UI / "dist").glob("*.woff2")} and len(named) > 10
    assert sum(path.stat().st_size for path in (UI / "dist").iterdir()) < 850_000


def test_notice_has_every_library_that_is_bundled():
    notice = (UI / "dist" / "NOTICE.txt").read_text()
    for name in ("@noble/hashes", "marked", "dompurify", "highlight.js", "katex"):
        assert re.search(rf"^==== {re.escape(name)} [\d.]+ \(", notice, re.MULTILINE), name


@pytest.mark.parametrize("name", ["index.html", "local.html"])
def test_page_has_nothing_inline_or_from_elsewhere(name):
    page = (UI / "dist" / name).read_text().replace('placeholder="http', "")
    assert not re.search(r"<style|\sstyle=|\son\w+=|https?://|<script(?![^>]* src=)", page)


@pytest.mark.slow
def test_dist_is_what_the_sources_build(tmp_path):
    if not shutil.which("npm"):
        pytest.skip("no npm")
    ui = tmp_path / "server" / "ui"
    for name in ("src", "build.mjs", "package.json", "package-lock.json"):
        ui.mkdir(parents=True, exist_ok=True)
        copy = shutil.copytree if (UI / name).is_dir() else shutil.copy
        copy(UI / name, ui / name)
    shutil.copytree(UI.parent.parent / "browser" / "js", tmp_path / "browser" / "js")  # its worker has the engine
    subprocess.run(["npm", "ci", "--no-audit", "--no-fund"], cwd=ui, check=True, capture_output=True)
    subprocess.run(["npm", "run", "build"], cwd=ui, check=True, capture_output=True)
    names = [name for name, _ in FILES.values()] + list(LOCAL)
    assert sorted(path.name for path in (ui / "dist").iterdir()) == sorted(names)
    _, different, missing = filecmp.cmpfiles(ui / "dist", UI / "dist", names, shallow=False)
    assert not different and not missing
