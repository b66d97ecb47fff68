"""Lines of batches, and what came of them, for tests."""

import json

CHAT = "/v1/chat/completions"
MODEL = "tiny"
LAST = ("completed", "failed", "cancelled", "expired")


def chat_body(i, **more):
    return {
        "model": MODEL,
        "messages": [{"role": "user", "content": f"number {i}"}],
        "max_tokens": 8,
        "seed": i,
        "ignore_eos": True,
        **more,
    }


def line(custom_id, body, url=CHAT):
    return json.dumps({"custom_id": custom_id, "method": "POST", "url": url, "body": body})


def chats(n, /, **more):
    """A file of n chats, which are named 0, 1, ..."""
    return "".join(line(str(i), chat_body(i, **more)) + "\n" for i in range(n)).encode()


def by_id(content):
    """The lines of an output by custom_id, of which none is there twice."""
    lines = [json.loads(text) for text in content.splitlines()]
    found = {one["custom_id"]: one for one in lines}
    assert len(found) == len(lines)
    return found


def usage_of(output):
    """The sum that a batch shows, of its output by custom_id."""
    sums = {"input": 0, "cached": 0, "output": 0, "reasoning": 0}
    for one in output.values():
        usage = one["response"]["body"]["usage"]
        for name, old in (("input", "prompt"), ("output", "completion")):
            sums[name] += usage.get(f"{name}_tokens", 0) + usage.get(f"{old}_tokens", 0)
            details = usage.get(f"{name}_tokens_details") or usage.get(f"{old}_tokens_details") or {}
            part = "cached" if name == "input" else "reasoning"
            sums[part] += details.get(f"{part}_tokens", 0)
    return {
        "input_tokens": sums["input"],
        "input_tokens_details": {"cached_tokens": sums["cached"]},
        "output_tokens": sums["output"],
        "output_tokens_details": {"reasoning_tokens": sums["reasoning"]},
        "total_tokens": sums["input"] + sums["output"],
    }


def text_of(body):
    return body["choices"][0]["message"]["content"]


def form(content, purpose="batch", name="in.jsonl", boundary="XyZ"):
    """Content-Type and body of an upload."""
    head = f'--{boundary}\r\nContent-Disposition: form-data; name="purpose"\r\n\r\n{purpose}\r\n--{boundary}\r\n'
    head += f'Content-Disposition: form-data; name="file"; filename="{name}"\r\n\r\n'
    return f"multipart/form-data; boundary={boundary}", head.encode() + content + f"\r\n--{boundary}--\r\n".encode()


def upload(server, content, key=None, **headers):
    kind, body = form(content)
    return server.request("POST", "/v1/files", body, key=key, headers={"Content-Type": kind, **headers})


def create(server, content, key=None, endpoint=CHAT):
    code, _, file = upload(server, content, key)
    assert code == 200, file
    body = {"input_file_id": file["id"], "endpoint": endpoint, "completion_window": "24h"}
    code, _, batch = server.request("POST", "/v1/batches", body, key=key)
    assert code == 200, batch
    return batch


def batch_now(server, batch, key=None):
    code, _, now = server.request("GET", f"/v1/batches/{batch['id']}", key=key)
    assert code == 200, now
    return now


def ended(server, batch, key=None, seconds=120):
    """The batch once it has ended."""
    server.wait(lambda: batch_now(server, batch, key)["status"] in LAST, seconds)
    return batch_now(server, batch, key)


def content(server, file_id, key=None):
    if file_id is None:
        return b""
    code, headers, data = server.request("GET", f"/v1/files/{file_id}/content", key=key)
    assert code == 200 and headers["Content-Type"] == "application/octet-stream", data
    return data
