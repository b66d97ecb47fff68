"""A request on its way to a replica, and what of it decides where it goes."""

from __future__ import annotations

import functools
import hashlib
import json
from dataclasses import dataclass

from .._placement import PAGE_TOKENS, placement_key

# A token counts as four bytes. In a prompt of token ids, these are the id; in a text, a token has about four bytes.
TOKEN_BYTES = 4
PAGE_BYTES = TOKEN_BYTES * PAGE_TOKENS
# In all APIs, these fields of a body make up the prompt. Templates show them in this order.
PROMPT_FIELDS = ("tools", "system", "instructions", "messages", "prompt", "input", "input_ids", "suffix")
KEY_HEADERS = (b"authorization", b"api-key", b"x-api-key")
TENANT_HEADERS = (b"x-gateway-inference-fairness-id", b"x-llm-d-inference-fairness-id")


@dataclass
class Prompt:
    """What is looked up: pages of a prompt, each under a hash of all that stands before its end."""

    key: int  # hash of the tenant, the salt and the first pages
    pages: list[bytes]
    n_tokens: int


@dataclass
class Call:
    method: str
    target: str  # path and query
    headers: list[tuple[bytes, bytes]]
    body: bytes

    @functools.cached_property
    def prompt(self) -> Prompt:
        tenant = b"\0".join(value for name, value in self.headers if name in KEY_HEADERS + TENANT_HEADERS)
        fields = _fields(self.body) if self.method == "POST" else {}
        salt = f"{fields.get('model', '')}\0{fields.get('cache_salt', '')}".encode()
        data = b"".join(_bytes(fields[name]) for name in PROMPT_FIELDS if fields.get(name) is not None)
        pages, before = [], hashlib.blake2b(len(tenant).to_bytes(8, "little") + tenant + salt, digest_size=16).digest()
        for end in range(PAGE_BYTES, len(data) + 1, PAGE_BYTES):
            before = hashlib.blake2b(before + data[end - PAGE_BYTES : end], digest_size=16).digest()
            pages.append(before)
        return Prompt(placement_key(tenant, salt, data), pages, len(data) // TOKEN_BYTES)

    def __getstate__(self):
        return {name: value for name, value in vars(self).items() if name != "prompt"}


def _fields(body: bytes) -> dict:
    try:
        fields = json.loads(body)
    except (ValueError, RecursionError):
        return {}
    return fields if isinstance(fields, dict) else {}


def _bytes(value) -> bytes:
    if isinstance(value, str):
        return value.encode("utf-8", "surrogatepass")
    if isinstance(value, list) and value and all(type(each) is int and 0 <= each < 1 << 31 for each in value):
        return b"".join(each.to_bytes(4, "little") for each in value)
    # Lists are written without their closing brackets, so that a conversation's text is a prefix of the text after more
    # turns.
    if isinstance(value, list):
        return b"".join(json.dumps(each).encode() for each in value)
    return json.dumps(value).encode()
