"""Four tenants that mean harm, each in a way of its own, against a server on this machine, for a bounded time.

python hostile_clients.py HOST PORT SECONDS ROUND; the last line of the output is a JSON object of what they did. Round
"texts" attacks what takes requests in, round "work" what requests can have the server do: compile grammars, make masks,
read back what it stored, run batches, load models.
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


def call(address, method, path, tenant, body, type_="application/json"):
    """The status and the JSON of an answer."""
    with connect(address) as s:
        start = f"{method} {path} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {key_of(tenant)}\r\n"
        start += f"Connection: close\r\nContent-Type: {type_}\r\nContent-Length: {len(body)}\r\n\r\n"
        s.sendall(start.encode() + body)
        got = b""
        while piece := s.recv(1 << 20):
            got += piece
    counts[f"{tenant} {got[9:12].decode()}"] += 1
    text = got.partition(b"\r\n\r\n")[2]
    return got[9:12].decode(), json.loads(text) if text.startswith(b"{") else {}


def deep_enums(rng):
    """A schema that is compared deeply: two enums of long lists that differ in their last number, and many branches."""
    same = [rng.randrange(10**6)] * 1500
    one, other = ([same + [n + i] for i in range(16)] for n in (0, 15))
    branches = [{"$ref": "#/$defs/other"}] * 400
    return {"$defs": {"one": {"enum": one}, "other": {"enum": other}}, "$ref": "#/$defs/one", "anyOf": branches}


def wide(rng):
    """A schema that is allowed, and takes a while."""
    names = [f"{rng.random()}" for _ in range(600)]
    return {"type": "object", "properties": {n: {"enum": [n, n + "x"]} for n in names}, "required": names[:1]}


def tags(rng):
    begins = [f"<{i} {rng.random()}>" for i in range(8)]
    parts = [{"begin": b, "schema": deep_enums(rng), "end": "</end>"} for b in begins[:2]]
    return {"type": "structural_tag", "structures": parts, "triggers": ["<"]}


SLOW_PATTERNS = [".*a.{200}", "([a-z ]{0,200}[0-9]{0,200}){0,200}", "(.*[aeiou]){300}", "(a|b|.)*c{500}"]


def grammars(address, rng):
    """Grammars of which each is new, and answers whose masks take long."""
    kind = rng.choice([deep_enums, wide, tags, None])
    fields = {"max_tokens": 64}
    if kind is None:
        fields["structured_outputs"] = {"regex": rng.choice(SLOW_PATTERNS) + f"{rng.randrange(10**6)}"}
    elif kind is tags:
        fields["response_format"] = tags(rng)
    else:
        fields["response_format"] = {"type": "json_schema", "json_schema": {"name": "s", "schema": kind(rng)}}
    body = json.dumps({"model": "good", "messages": [{"role": "user", "content": "Go on."}], **fields}).encode()
    if rng.random() < 0.3:  # it leaves while the grammar is compiled
        with connect(address) as s:
            s.sendall(head("grammars", len(body)) + body)
            time.sleep(0.1)
            counts["grammars left"] += 1
        return
    call(address, "POST", "/v1/chat/completions", "grammars", body)


def chains(address, rng):
    """Responses that go on from earlier ones, with as much text as is taken."""
    earlier = None
    for _ in range(6):
        parts = [{"role": "user", "content": "a " * 40, "type": "message"}] * rng.choice([4, 2000])
        body = {"model": "good", "input": parts, "max_output_tokens": 16, "metadata": {"k": "v" * 500}}
        if rng.random() < 0.3:
            body["metadata"] = {"k": "v" * (14 * MB)}
        if earlier is not None:
            body["previous_response_id"] = earlier
        status, answer = call(address, "POST", "/v1/responses", "chains", json.dumps(body).encode())
        if status != "200":
            time.sleep(0.05)
            return
        earlier = answer["id"]


def batches(address, rng):
    """Batches that fail with long errors, and lists of them."""
    line = json.dumps({"custom_id": "x" * 300, "method": "POST", "url": "/v1/" + "y" * 900, "body": {}})
    data = (line + "\n") * 300
    field = '--b\r\nContent-Disposition: form-data; name="{}"\r\n\r\n{}\r\n'
    form = field.format("purpose", "batch") + field.format('file"; filename="f.jsonl', data) + "--b--\r\n"
    kind = "multipart/form-data; boundary=b"
    status, file = call(address, "POST", "/v1/files", "batches", form.encode(), kind)
    if status == "200":
        batch = {"input_file_id": file["id"], "endpoint": "/v1/chat/completions", "completion_window": "24h"}
        for _ in range(20):
            call(address, "POST", "/v1/batches", "batches", json.dumps(batch).encode())
    for _ in range(20):
        call(address, "GET", "/v1/batches?limit=100", "batches", b"")
        call(address, "GET", "/v1/files?limit=10000", "batches", b"")


def loads(address, rng):
    """Another model each time, by what costs no request of the rate."""
    body = json.dumps({"model": rng.choice(["small-a", "small-b", "small-c"]), "content": "a"}).encode()
    call(address, "POST", "/tokenize", "loads", body)
    time.sleep(0.05)


ROUNDS = {
    "texts": {"texts": (texts, 4), "resets": (resets, 4), "stalls": (stalls, 40), "streams": (streams, 4)},
    "work": {"grammars": (grammars, 16), "chains": (chains, 4), "batches": (batches, 2), "loads": (loads, 2)},
}
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
        for name, (one, n) in ROUNDS[sys.argv[4]].items()
        for i in range(n)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(max(0.0, end - time.monotonic()) + 35)
    print(json.dumps(counts))


if __name__ == "__main__":
    main()
