"""Keys: how clients send them, and how they are listed and revoked."""

import json
import signal
import time

import pytest

from server_process import serving
from server_tenants import ADMIN, KEYS, ask, config, hashed


@pytest.fixture(scope="module")
def server(tiny_model, tmp_path_factory):
    folder = tmp_path_factory.mktemp("server")
    with serving("--config", config(folder / "zinc.toml", tiny_model), state=folder / "state.db") as server:
        yield server


@pytest.mark.parametrize("path", ["/v1/models", "/v1/tenants", "/v1/tenants/alice/usage", "/metrics"])
def test_without_a_key_nothing_is_told(server, path):
    for key in (None, "wrong", KEYS["alice"] + "x", ""):
        code, headers, answer = server.request("GET", path, key=key)
        assert code == 401 and answer["error"]["code"] == "invalid_api_key"
        assert headers["WWW-Authenticate"] == "Bearer"
    assert server.request("GET", "/health")[0] == 200


@pytest.mark.parametrize("form", ["Bearer {}", "bearer {}", "BEARER {}", "Bearer   {}"])
def test_the_word_before_a_key_is_of_any_case(server, form):
    headers = {"Authorization": form.format(KEYS["alice"])}
    assert server.request("GET", "/v1/tenants/me", headers=headers)[2]["id"] == "alice"


def test_a_key_may_come_as_other_clients_send_it_but_not_two(server):
    def who(**headers):
        headers = {name.replace("_", "-"): value for name, value in headers.items()}
        code, _, answer = server.request("GET", "/v1/tenants/me", headers=headers)
        return answer["id"] if code == 200 else code

    alice, bob = KEYS["alice"], KEYS["bob"]
    assert who(api_key=alice) == who(x_api_key=alice) == who(Authorization="Basic eA==", api_key=alice) == "alice"
    assert who(Authorization=f"Bearer {alice}", api_key=alice) == "alice"
    assert who(Authorization=f"Bearer {alice}", api_key=bob) == who(api_key=alice, x_api_key=bob) == 400
    assert who(Authorization="Bearer") == who(Authorization="Basic eA==") == who(api_key="x") == 401


def test_keys_are_listed_and_revoked(tiny_model, tmp_path):
    state, file = tmp_path / "state.db", config(tmp_path / "zinc.toml", tiny_model)
    begin = int(time.time())

    def listed(server, tenant="carol", key=ADMIN):
        return server.request("GET", f"/v1/tenants/{tenant}/keys", key=key)[2]["data"]

    with serving("--config", file, state=state) as server:
        first = server.request("POST", "/v1/tenants", {"id": "carol"}, key=ADMIN)[2]["api_key"]
        made = server.request("POST", "/v1/tenants/carol/keys", key=ADMIN)[2]
        second = made["api_key"]
        keys = listed(server)
        assert [key["hash"] for key in keys] == [hashed(first)[:23], hashed(second)[:23]]
        assert made["hash"] == keys[1]["hash"] and first not in json.dumps(keys)
        assert all(begin <= key["created"] <= time.time() and not key["configured"] for key in keys)
        assert listed(server, "me", first) == keys
        assert server.request("GET", "/v1/tenants/carol/keys", key=KEYS["alice"])[0] == 403
        path = f"/v1/tenants/carol/keys/{keys[0]['hash']}"
        assert server.request("DELETE", path, key=first)[0] == 403
        assert server.request("DELETE", path, {"x": 1}, key=ADMIN)[0] == 400
        assert ask(server, first)[0] == 200
        code, _, answer = server.request("DELETE", path, key=ADMIN)
        assert code == 200 and answer == {"id": "carol", "hash": keys[0]["hash"], "revoked": True}
        assert ask(server, first)[0] == 401 and ask(server, second)[0] == 200
        assert server.request("DELETE", path, key=ADMIN)[0] == 404
        for wrong in ("sha256:", "abc", "ABCDEF0123", "zzzzzzzz"):
            assert server.request("DELETE", f"/v1/tenants/carol/keys/{wrong}", key=ADMIN)[0] == 400
        # Those of the file are the file's to take away.
        [alice] = listed(server, "alice")
        assert alice["configured"] and alice["created"] is None and alice["hash"] == hashed(KEYS["alice"])[:23]
        code, _, answer = server.request("DELETE", f"/v1/tenants/alice/keys/{alice['hash']}", key=ADMIN)
        assert code == 409 and "configuration" in answer["error"]["message"]
        assert ask(server, KEYS["alice"])[0] == 200
        server.stop(signal.SIGKILL)
    with serving("--config", file, state=state) as server:
        assert ask(server, first)[0] == 401 and ask(server, second)[0] == 200
        assert listed(server) == keys[1:]
