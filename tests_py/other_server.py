"""A server that keeps to OpenAI's API in its own way, for what must work with any: no usage, events by CRLF, several
words in an event, the connection's end as the body's."""

import contextlib
import http.server
import json
import threading
import time


class _Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        body = b'{"data": [{"id": "other"}]}'
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        assert body["model"] == "other"
        self.server.bodies.append(body)
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream; charset=utf-8")
        self.end_headers()
        with contextlib.suppress(ConnectionError):
            for i in range(self.server.n_events):
                event = {"choices": [{"index": 0, "delta": {"content": "two words "}, "finish_reason": None}]}
                self.wfile.write(f"id: {i}\r\ndata: {json.dumps(event)}\r\n\r\n".encode())
                time.sleep(0.01)
            self.wfile.write(b"data: [DONE]\r\n\r\n")

    def log_message(self, *_):
        pass


@contextlib.contextmanager
def other_server(n_events=3):
    """Has `url`, and `bodies`, what was asked."""
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), _Handler) as server:
        server.n_events, server.bodies = n_events, []
        server.url = f"http://127.0.0.1:{server.server_address[1]}/v1"
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()
