"""A receiver of webhooks and an SMTP server, both on loopback."""

import socketserver
import threading
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from ipaddress import ip_network

import pytest

from storage.server.messages import Smtp

LOOPBACK = (ip_network("127.0.0.0/8"),)


@dataclass
class Receiver:
    """A receiver of webhooks."""

    url: str = ""
    requests: list = field(default_factory=list)  # headers and body of each
    answers: list = field(default_factory=list)  # statuses of the next answers, then 204


@contextmanager
def serving(server):
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    try:
        yield server.server_address
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


@pytest.fixture
def receiver(settings):
    result = Receiver()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self):
            body = self.rfile.read(int(self.headers["Content-Length"]))
            result.requests.append((dict(self.headers.items()), body))
            self.send_response(result.answers.pop(0) if result.answers else 204)
            self.send_header("Location", f"{result.url}redirected")
            self.end_headers()

        def log_message(self, *arguments):
            pass

    settings.WEBHOOK_NETWORKS = LOOPBACK
    with serving(ThreadingHTTPServer(("127.0.0.1", 0), Handler)) as (host, port):
        result.url = f"http://{host}:{port}/hook"
        yield result


@dataclass
class MailServer:
    """A mail server that keeps its mail."""

    mails: list = field(default_factory=list)  # recipients and lines of each
    refuses: bool = False  # whether it refuses the next recipients


@pytest.fixture
def mail_server(settings):
    result = MailServer()

    class Handler(socketserver.StreamRequestHandler):
        def answer(self, line):
            self.wfile.write(line.encode() + b"\r\n")

        def handle(self):
            recipients = []
            self.answer("220 ready")
            for raw in self.rfile:
                line = raw.decode().rstrip("\r\n")
                match line.partition(":")[0].split(" ")[0].upper():
                    case "RCPT":
                        recipients.append(line.partition(":")[2].strip("<> "))
                        self.answer("550 no such person" if result.refuses else "250 OK")
                    case "DATA":
                        self.answer("354 go on")
                        lines = []
                        while (part := self.rfile.readline().decode().rstrip("\r\n")) != ".":
                            lines.append(part)
                        result.mails.append((recipients, lines))
                        self.answer("250 OK")
                    case "QUIT":
                        self.answer("221 bye")
                        return
                    case _:
                        self.answer("250 OK")

    with serving(socketserver.ThreadingTCPServer(("127.0.0.1", 0), Handler)) as (host, port):
        settings.SMTP = Smtp(host, port, "", "", is_tls=False, starts_tls=False, sender="server@example.com")
        settings.EMAIL_BACKEND = "django.core.mail.backends.smtp.EmailBackend"
        settings.EMAIL_HOST, settings.EMAIL_PORT = host, port
        settings.DEFAULT_FROM_EMAIL = "server@example.com"
        settings.EMAIL_TIMEOUT = 60
        yield result
