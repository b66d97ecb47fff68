"""A server with tenants, keys and an admin, for tests of them."""

import hashlib

KEYS = {"alice": "key-of-alice", "bob": "key-of-bob", "gate": "key-of-the-gate"}


ADMIN = "key-of-the-admin"


def hashed(key):
    return "sha256:" + hashlib.sha256(key.encode()).hexdigest()


def config(path, model, more="", extra_tenants=""):
    tenants = "".join(
        f'[[tenants]]\nname = "{name}"\nkeys = ["{hashed(key)}"]\n{"proxy = true" if name == "gate" else ""}\n{more}\n'
        for name, key in KEYS.items()
    )
    path.write_text(
        f'admin_keys = ["{hashed(ADMIN)}"]\n[[models]]\npath = "{model}"\nid = "tiny"\nmax_slots = 8\n'
        f"{tenants}{extra_tenants}"
    )
    return path


def ask(server, key, n_tokens=4, **more):
    body = {"prompt": [5, 6, 7, 8], "max_tokens": n_tokens, "ignore_eos": True, **more}
    headers = body.pop("headers", None)
    return server.request("POST", "/v1/completions", body, key=key, headers=headers)


def usage(server, tenant):
    return server.request("GET", f"/v1/tenants/{tenant}/usage", key=ADMIN)[2]
