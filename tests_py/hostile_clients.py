"""Four tenants that mean harm, each in a way of its own, against a server on this machine, for a bounded time.

python hostile_clients.py HOST PORT SECONDS; the last line of the output is a JSON object of what they did.
"""

import collections
import contextlib
import json
import os
import random
import socket
import struct
import sys
import threading
import time

GOOD, ADMIN = "good", "key-of-the-admin"
MB = 1 << 20
# Texts that are short in tokens, or hard to cut into them.
LONG_TEXTS = [" " * (4 * MB), "a" * (4 * MB), "\N{GRINNING FACE}" * MB, "ab1 !\n" * (MB // 2)]
counts = collections.Counter()


def key_of(tenant):
    return f"key-of-{tenant}"


def head(tenant, length):
    return (
        f"POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {key_of(tenant)}\r\n"
        f"Content-Type: application/json\r\nContent-Length: {length}\r\n\r\n"
    ).encode()


def request(tenant, content, **fields):
    body = json.dumps({"messages": [{"role": "user", "content": content}], **fields}, ensure_ascii=False).encode()
    return head(tenant, len(body)) + body


def connect(address):
    counts["attempts"] += 1
    return socket.create_connection(address, timeout=30)


def texts(address, rng):
    """Long texts, whole: the server parses and measures each."""
    with connect(address) as s:
        s.sendall(request("texts", rng.choice(LONG_TEXTS), max_tokens=1))
        counts["texts " + s.recv(65536)[9:12].decode()] += 1


def resets(address, rng):
    """A stream that is asked for, and reset within 50 ms."""
    with connect(address) as s:
        s.sendall(request("resets", "Count to a thousand.", max_tokens=4000, ignore_eos=True, stream=True))
        time.sleep(rng.uniform(0, 0.05))
        s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        counts["resets"] += 1


def stalls(address, rng):
    """A body of 15 MB that never ends: with a key, with a wrong one, or a head that never ends."""
    with connect(address) as s:
        tenant = rng.choice(["stalls", "nobody"])
        s.sendall(head(tenant, 15_000_100)[: rng.choice([None, 60])])
        with contextlib.suppress(OSError):
            s.sendall(b" " * rng.choice([1, 1000, MB]))
        with contextlib.suppress(TimeoutError):
            counts["stalls " + s.recv(65536)[9:12].decode()] += 1


def streams(address, rng):
    """As many long streams as the tenant may have, one after the other."""
    with connect(address) as s:
        s.sendall(request("streams", f"Story {rng.random()}:", max_tokens=8000, ignore_eos=True, stream=True))
        while s.recv(65536):
            if time.monotonic() > end:
                break
        counts["streams"] += 1


ATTACKS = {"texts": (texts, 4), "resets": (resets, 4), "stalls": (stalls, 40), "streams": (streams, 4)}
end = 0.0


def main():
    global end
    host, port, seconds = sys.argv[1], int(sys.argv[2]), float(sys.argv[3])
    end = time.monotonic() + seconds
    os.nice(15)  # attackers have machines of their own: here they may not take the server's

    def attack(one, seed):
        rng = random.Random(seed)
        while time.monotonic() < end:
            try:
                one((host, port), rng)
            except OSError as error:  # refused or cut off, as it should be
                counts[type(error).__name__] += 1
                time.sleep(0.05)

    threads = [
        threading.Thread(target=attack, args=(one, f"{name} {i}"), daemon=True)
        for name, (one, n) in ATTACKS.items()
        for i in range(n)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(max(0.0, end - time.monotonic()) + 35)
    print(json.dumps(counts))


if __name__ == "__main__":
    main()
