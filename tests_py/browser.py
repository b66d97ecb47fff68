"""Headless Chromium over its DevTools pipe, for tests of pages."""

import base64
import contextlib
import json
import os
import select
import shutil
import subprocess
import time


def find():
    return next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)


class Page:
    def __init__(self, send, receive):
        self._write, self._read = send, receive
        self._pending, self._next_id, self._session = b"", 0, None
        self.requests = []  # urls
        self.problems = []  # what the console complains of: exceptions, breaches of the policy
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Network", "Log"):
            self.call(f"{domain}.enable")

    def _message(self, end):
        while b"\0" not in self._pending:
            ready, _, _ = select.select([self._read], [], [], max(0, end - time.monotonic()))
            assert ready, "the browser says nothing"
            data = os.read(self._read, 1 << 16)
            assert data, "the browser ended"
            self._pending += data
        message, self._pending = self._pending.split(b"\0", 1)
        return json.loads(message)

    def call(self, method, seconds=150, **params):
        self._next_id += 1
        mine = self._next_id
        message = {"id": mine, "method": method, "params": params}
        if self._session:
            message["sessionId"] = self._session
        os.write(self._write, json.dumps(message).encode() + b"\0")
        end = time.monotonic() + seconds
        while True:
            reply = self._message(end)
            if reply.get("id") == mine:
                assert "error" not in reply, reply["error"]
                return reply["result"]
            self._note(reply)

    def _note(self, event):
        name, params = event.get("method"), event.get("params", {})
        if name == "Network.requestWillBeSent":
            self.requests.append(params["request"]["url"])
        elif name == "Runtime.exceptionThrown":
            self.problems.append(json.dumps(params["exceptionDetails"]))
        elif name == "Log.entryAdded" and params["entry"]["level"] == "error":
            self.problems.append(params["entry"]["text"])
        elif name == "Page.javascriptDialogOpening":
            self._next_id += 1
            message = {"id": self._next_id, "method": "Page.handleJavaScriptDialog", "sessionId": self._session}
            message["params"] = {"accept": True, "promptText": "renamed"}
            os.write(self._write, json.dumps(message).encode() + b"\0")

    def open(self, url):
        self.call("Page.navigate", url=url)
        self.wait("document.readyState === 'complete'")

    def evaluate(self, expression):
        result = self.call("Runtime.evaluate", expression=expression, awaitPromise=True, returnByValue=True)
        assert "exceptionDetails" not in result, result["exceptionDetails"]
        return result["result"].get("value")

    def wait(self, condition, seconds=60):
        end = time.monotonic() + seconds
        while not self.evaluate(f"Boolean({condition})"):
            if time.monotonic() >= end:
                shown = self.evaluate("document.body.innerText")
                raise AssertionError(f"never: {condition}; {self.problems}; the page says: {shown[:2000]}")
            time.sleep(0.05)

    def type(self, text):
        self.call("Input.insertText", text=text)

    def press_enter(self, shift=False):
        key = {
            "key": "Enter",
            "code": "Enter",
            "windowsVirtualKeyCode": 13,
            "text": "\r",
            "modifiers": 8 if shift else 0,
        }
        self.call("Input.dispatchKeyEvent", type="keyDown", **key)
        self.call("Input.dispatchKeyEvent", type="keyUp", **key)

    def press(self, key, text=""):
        codes = {"Escape": 27, "ArrowUp": 38}
        event = {"key": key, "code": key, "windowsVirtualKeyCode": codes.get(key, 0)}
        self.call("Input.dispatchKeyEvent", type="keyDown", **event, **({"text": text} if text else {}))
        self.call("Input.dispatchKeyEvent", type="keyUp", **event)

    def click_at(self, x, y):
        for kind in ("mousePressed", "mouseReleased"):
            self.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=1)

    def look(self, width=1200, height=800, scheme="light"):
        self.call(
            "Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=width < 600
        )
        self.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])

    def screenshot(self, path):
        path.write_bytes(base64.b64decode(self.call("Page.captureScreenshot", format="png")["data"]))


@contextlib.contextmanager
def chromium(profile):
    theirs, our_write = os.pipe()
    our_read, theirs_write = os.pipe()
    flags = (
        "--headless --no-sandbox --disable-gpu --no-first-run --disable-background-networking --disable-sync"
        " --disable-component-update --disable-quic --remote-debugging-pipe"
    )

    # Chromium reads commands from descriptor 3 and writes to 4.
    script = f'exec "$0" "$@" 3<&{theirs} 4>&{theirs_write}'
    process = subprocess.Popen(
        ["bash", "-c", script, find(), *flags.split(), f"--user-data-dir={profile}"],
        pass_fds=(theirs, theirs_write),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    os.close(theirs)
    os.close(theirs_write)
    try:
        yield Page(our_write, our_read)
    finally:
        process.terminate()
        process.wait(20)
        os.close(our_write)
        os.close(our_read)
