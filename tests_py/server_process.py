"""A zinc-rt server in a process of its own, for tests."""

import contextlib
import http.client
import json
import os
import re
import shlex
import signal
import socket
import subprocess
import sys
import time

# ZRT_PROGRAM: another build's program, such as build/asan/bin/zinc-rt.
PROGRAM = shlex.split(os.environ.get("ZRT_PROGRAM", "")) or [sys.executable, "-m", "zinc_rt"]


class Server:
    def __init__(self, process, log):
        self.process, self.log = process, log
        self.host = self.port = None

    @property
    def url(self):
        return f"http://{self.host}:{self.port}"

    def request(self, method, path, body=None, key=None, headers=None, timeout=60):
        """Status, headers and body (JSON where it is) of one request on a connection of its own."""
        connection = http.client.HTTPConnection(self.host, self.port, timeout=timeout)
        headers = dict(headers or {})
        if key:
            headers["Authorization"] = f"Bearer {key}"
        if body is not None and not isinstance(body, bytes | str):
            body = json.dumps(body)
        if body is not None:
            headers.setdefault("Content-Type", "application/json")
        connection.request(method, path, body=body, headers=headers)
        response = connection.getresponse()
        data = response.read()
        connection.close()
        if response.getheader("Content-Type", "").startswith("application/json"):
            data = json.loads(data)
        return response.status, dict(response.getheaders()), data

    def raw(self, data, timeout=20, pieces=None):
        """What the server sends until it closes, or until `timeout`, for bytes that need not be HTTP."""
        with socket.create_connection((self.host, self.port), timeout=timeout) as s:
            for piece in pieces or [data]:
                s.sendall(piece)
            out = b""
            with contextlib.suppress(TimeoutError, ConnectionResetError):
                while chunk := s.recv(65536):
                    out += chunk
            return out

    def wait(self, condition, seconds=30):
        end = time.monotonic() + seconds
        while not condition():
            assert self.process.poll() is None, "the server ended"
            assert time.monotonic() < end, "it did not happen in time"
            time.sleep(0.02)

    def gauge(self, name, key=None):
        """The sum over labels of a metric; 0 when it is not there."""
        _, _, text = self.request("GET", "/metrics", key=key)
        return sum(
            float(line.rsplit(" ", 1)[1])
            for line in text.decode().splitlines()
            if line == name or line.startswith((name + " ", name + "{"))
        )

    def stop(self, signal_number=signal.SIGTERM, timeout=30):
        if self.process.poll() is None:
            self.process.send_signal(signal_number)
        return self.process.wait(timeout)


@contextlib.contextmanager
def serving(*arguments, port=0, state="none", env=None, log_path=os.devnull):
    with open(log_path, "ab") as log:
        process = subprocess.Popen(
            [*PROGRAM, "serve", "--port", str(port), "--state", str(state), *map(str, arguments)],
            stdout=subprocess.PIPE,
            stderr=log,
            env={**os.environ, **(env or {})},
        )
        server = Server(process, log)
        try:
            line = process.stdout.readline().decode()
            found = re.match(r"https?://(\[.*\]|[^:]+):(\d+) serves ", line)
            assert found, f"the server did not start: {line!r}, exit {process.wait(10)}"
            server.host, server.port = found[1].strip("[]"), int(found[2])
            yield server
        finally:
            if process.poll() is None:
                process.kill()
            process.wait()
            process.stdout.close()
