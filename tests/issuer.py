"""An OpenID Connect issuer on loopback: keys, tokens signed with them, and the server that tells the keys."""

import base64
import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import jwt
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa

AUDIENCE = "https://storage.azure.com"
ISSUER = "https://issuer.example/tenant/v2.0"
READER, CONTRIBUTOR = "Storage Table Data Reader", "Storage Table Data Contributor"
RSA_KEY = rsa.generate_private_key(65537, 2048)
OTHER_KEY = rsa.generate_private_key(65537, 2048)
EC_KEY = ec.generate_private_key(ec.SECP256R1())
ED_KEY = ed25519.Ed25519PrivateKey.generate()
CONFIGURATION = "/.well-known/openid-configuration"


def jwk(key: Any, kid: Any, **members: Any) -> dict[str, Any]:
    """Return a member of a set of keys."""
    algorithm = {rsa.RSAPrivateKey: "RS256", ec.EllipticCurvePrivateKey: "ES256"}
    name = next((name for kind, name in algorithm.items() if isinstance(key, kind)), "EdDSA")
    result: Any = jwt.get_algorithm_by_name(name).to_jwk(key.public_key(), as_dict=True)
    return {**result, "use": "sig", "kid": kid, **members}


def claims(**changes: Any) -> dict[str, Any]:
    """Good ones but for the changes; None leaves one out."""
    now = int(time.time())
    made = {
        "iss": ISSUER,
        "aud": AUDIENCE,
        "exp": now + 600,
        "nbf": now - 5,
        "iat": now - 5,
        "sub": "ada",
        "roles": [READER],
        **changes,
    }
    return {name: value for name, value in made.items() if value is not None}


def token(
    key: Any = RSA_KEY, kid: Any = "one", algorithm: str = "RS256", headers: Any = None, **changes: Any
) -> str:
    named = {} if kid is None else {"kid": kid}
    return jwt.encode(claims(**changes), key, algorithm=algorithm, headers={**named, **(headers or {})})


def segment(value: Any) -> str:
    """Return a part of a token."""
    text = value if isinstance(value, bytes) else json.dumps(value).encode()
    return base64.urlsafe_b64encode(text).rstrip(b"=").decode()


class Issuer:
    """Answers paths as it is told to, and remembers what it was asked for."""

    def __init__(self) -> None:
        self.answers: dict[str, tuple[int, dict[str, str], bytes]] = {}
        self.asked: list[str] = []
        self.url = ""
        self.released = threading.Event()  # requests wait until it is set
        self.released.set()

    def has(self, path: str, body: Any, status: int = 200, **headers: str) -> None:
        self.answers[path] = (status, headers, body if isinstance(body, bytes) else json.dumps(body).encode())

    def has_keys(self, *found: Any) -> None:
        self.has("/keys", {"keys": found})

    def token(self, **changes: Any) -> str:
        return token(**{"iss": self.url, **changes})

    def handle(self, request: BaseHTTPRequestHandler) -> None:
        self.asked.append(request.path)
        self.released.wait(60)
        status, headers, body = self.answers.get(request.path, (404, {}, b""))
        request.send_response(status)
        for name, value in {**headers, "Content-Length": str(len(body))}.items():
            request.send_header(name, value)
        request.end_headers()
        request.wfile.write(body)


@contextmanager
def serving() -> Iterator[Issuer]:
    issuer = Issuer()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            issuer.handle(self)

        def log_message(self, *args: Any) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        issuer.url = f"http://127.0.0.1:{server.server_port}"
        issuer.has_keys(jwk(RSA_KEY, "one"))
        issuer.has(CONFIGURATION, {"issuer": issuer.url, "jwks_uri": f"{issuer.url}/keys"})
        try:
            yield issuer
        finally:
            issuer.released.set()
            server.shutdown()
