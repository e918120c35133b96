"""A proxy of a server that refuses or holds some of the requests."""

import threading
import urllib.error
import urllib.request
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


@contextmanager
def proxy(server, refuse):
    """Yield the connection string of a proxy of the server.

    ``refuse`` takes the number of a request, may wait, and returns an answer, or None for the server's own answer.
    """
    numbers, lock = iter(range(10**6)), threading.Lock()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def handle_any(self):
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            with lock:
                number = next(numbers)
            result = refuse(number)
            status, headers, content = result or self.forward(body)
            self.send_response(status)
            for name, value in headers:
                if name.lower() not in (
                    "transfer-encoding",
                    "content-length",
                    "connection",
                    "date",
                    "server",
                ):
                    self.send_header(name, value)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        do_GET = do_POST = do_PUT = handle_any  # noqa: N815

        def forward(self, body):
            headers = {name: value for name, value in self.headers.items() if name != "Host"}
            outgoing = urllib.request.Request(
                server.url + self.path, body or None, headers, method=self.command
            )
            try:
                with urllib.request.urlopen(outgoing) as answer:
                    return answer.status, answer.getheaders(), answer.read()
            except urllib.error.HTTPError as answer:
                return answer.code, list(answer.headers.items()), answer.read()

        def log_message(self, *arguments):
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as listening:
        thread = threading.Thread(target=listening.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield server.connection_string.replace(server.url, f"http://127.0.0.1:{listening.server_port}")
        finally:
            listening.shutdown()
            thread.join()
