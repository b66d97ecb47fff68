"""A site with models, as Hugging Face and Ollama's registry have them: lists of files, redirects, ranges, faults."""

import contextlib
import hashlib
import http.server
import json
import threading
import urllib.parse


class Hub:
    def __init__(self):
        self.repositories = {}  # "OWNER/REPO" -> {file name: bytes}
        self.requests = []  # (method, path, headers)
        self.cut_after = None  # bytes of a body, once
        self.takes_ranges = True
        self.wrong_hash = False
        self.wants_token = None
        self.url = ""

    def served(self, sha):
        for files in self.repositories.values():
            for data in files.values():
                if hashlib.sha256(data).hexdigest() == sha:
                    return data
        return None


def handler(hub):
    class Handler(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, *_):
            pass

        def say(self, status, body=b"", headers=()):
            self.send_response(status)
            for name, value in headers:
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def say_json(self, value):
            self.say(200, json.dumps(value).encode(), [("Content-Type", "application/json")])

        def do_GET(self):
            path = urllib.parse.urlsplit(self.path).path
            hub.requests.append(("GET", self.path, dict(self.headers)))
            if (
                hub.wants_token
                and self.headers.get("Authorization") != f"Bearer {hub.wants_token}"
                and "/blob" not in path
            ):
                return self.say(401, b"who are you?")
            parts = path.strip("/").split("/")
            if parts[:2] == ["api", "models"]:
                return self.tree("/".join(parts[2:4]))
            if "resolve" in parts:
                data = hub.repositories.get("/".join(parts[:2]), {}).get("/".join(parts[4:]))
                if data is None:
                    return self.say(404, b"no such file")
                sha = hashlib.sha256(data).hexdigest()
                # As sites do: to another host, with a query that has all kinds of characters.
                other = hub.url.replace("127.0.0.1", "localhost")
                return self.say(302, b"elsewhere", [("Location", f"{other}/blob/{sha}?sig=a%2Fb+c&x=1")])
            if parts[0] == "blob":
                return self.blob(hub.served(parts[1]))
            if parts[0] == "v2" and parts[3] == "manifests":
                return self.manifest("/".join(parts[1:3]), parts[4])
            if parts[0] == "v2" and parts[3] == "blobs":
                return self.say(307, b"", [("Location", f"/blob/{parts[4].removeprefix('sha256:')}")])
            if parts[0] == "files":
                return self.blob(hub.repositories.get("plain/files", {}).get(parts[1]))
            return self.say(404, b"nothing here")

        def tree(self, name):
            if name not in hub.repositories:
                return self.say(404, b'{"error":"Repository not found"}')
            files = []
            for path, data in hub.repositories[name].items():
                sha = "0" * 64 if hub.wrong_hash else hashlib.sha256(data).hexdigest()
                lfs = {"oid": sha, "size": len(data), "pointerSize": 135}
                files.append({"type": "file", "oid": "x", "size": len(data), "path": path, "lfs": lfs})
            files.append({"type": "directory", "oid": "x", "size": 0, "path": "folder"})
            return self.say_json(files)

        def manifest(self, name, tag):
            data = hub.repositories.get(name, {}).get(tag)
            if data is None:
                return self.say(404, b'{"errors":[{"code":"MANIFEST_UNKNOWN"}]}')
            layers = [
                {"mediaType": "application/vnd.ollama.image.model", "size": len(data),
                 "digest": "sha256:" + hashlib.sha256(data).hexdigest()},
                {"mediaType": "application/vnd.ollama.image.template", "digest": "sha256:" + "1" * 64, "size": 3},
            ]  # fmt: skip
            return self.say_json({"schemaVersion": 2, "layers": layers})

        def blob(self, data):
            if data is None:
                return self.say(404, b"no such blob")
            wanted = self.headers.get("Range")
            first = int(wanted.removeprefix("bytes=").rstrip("-")) if wanted and hub.takes_ranges else 0
            if first >= len(data):
                return self.say(416, b"", [("Content-Range", f"bytes */{len(data)}")])
            body = data[first:]
            self.send_response(206 if first else 200)
            if first:
                self.send_header("Content-Range", f"bytes {first}-{len(data) - 1}/{len(data)}")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            cut, hub.cut_after = hub.cut_after, None
            if cut is not None:
                self.wfile.write(body[:cut])
                self.wfile.flush()
                self.close_connection = True
                self.connection.shutdown(2)
                return None
            self.wfile.write(body)
            return None

    return Handler


@contextlib.contextmanager
def hub_server():
    hub = Hub()
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler(hub))
    hub.url = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield hub
    finally:
        server.shutdown()
        server.server_close()
