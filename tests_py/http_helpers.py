"""Requests as bytes, for tests that send them by hand, and streams that are read for a while."""

import json
import socket

GOOD = {"messages": [{"role": "user", "content": "hi"}], "max_tokens": 3}
HEAD = b"POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
BODY = json.dumps(GOOD).encode()
SIZE = str(len(BODY)).encode()


def status(answer):
    return int(answer.split(b" ", 2)[1]) if answer.startswith(b"HTTP/1.1 ") else None


def stream(server, body, read=1):
    """An open stream that has sent `read` events."""
    s = socket.create_connection((server.host, server.port), timeout=30)
    data = json.dumps({**body, "stream": True}).encode()
    s.sendall(HEAD + b"Content-Length: %d\r\n\r\n" % len(data) + data)
    got = b""
    while got.count(b"data: ") < read:
        piece = s.recv(4096)
        assert piece
        got += piece
    return s


def idle(server):
    return server.gauge("zinc:slots_free") == 4 and server.gauge("vllm:num_requests_waiting") == 0
