"""A place where people sign in, on loopback: OpenID Connect's code flow with PKCE, for one client."""

import base64
import hashlib
import json
import secrets
import threading
import time
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlencode, urlsplit

import jwt

from tests.issuer import RSA_KEY, jwk

CLIENT_ID, CLIENT_SECRET = "tablero", "what only the two of us know"


class IdentityProvider:
    """An identity provider that signs in `person`, by these claims, without asking.

    If `refuses` is set, the user declines. `signed` replaces claims of the ID token, which `key` signs; `told`
    replaces members of the configuration.
    """

    def __init__(self):
        self.person = {"sub": "248289761001", "preferred_username": "Jane.Doe", "email": "jane@example.org"}
        self.refuses = self.without_token = False
        self.url = ""
        self.key, self.algorithm = RSA_KEY, "RS256"
        self.signed, self.told = {}, {}
        self.asked = {}  # the query of the last browser
        self._asked = {}  # by the code that was given for it

    def configuration(self):
        return {**self._configuration(), **self.told}

    def _configuration(self):
        return {
            "issuer": self.url,
            "authorization_endpoint": f"{self.url}/authorize",
            "token_endpoint": f"{self.url}/token",
            "userinfo_endpoint": f"{self.url}/userinfo",
            "jwks_uri": f"{self.url}/keys",
            "end_session_endpoint": f"{self.url}/logout",
            "token_endpoint_auth_methods_supported": ["client_secret_post"],
        }

    def authorize(self, query):
        """Return the address to which the browser is redirected."""
        assert query["client_id"] == CLIENT_ID
        assert query["code_challenge_method"] == "S256"
        assert len(query["nonce"]) == 64
        code = secrets.token_urlsafe()
        self._asked[code] = self.asked = query
        answer = {"error": "access_denied"} if self.refuses else {"code": code}
        return f"{query['redirect_uri']}?{urlencode({**answer, 'state': query['state']})}"

    def token(self, sent):
        asked = self._asked.pop(sent["code"])
        challenge = hashlib.sha256(sent["code_verifier"].encode()).digest()
        assert base64.urlsafe_b64encode(challenge).decode().rstrip("=") == asked["code_challenge"]
        assert (sent["client_id"], sent["client_secret"]) == (CLIENT_ID, CLIENT_SECRET)
        assert sent["redirect_uri"] == asked["redirect_uri"]
        now = int(time.time())
        claims = {"iss": self.url, "aud": CLIENT_ID, "iat": now, "exp": now + 600, "nonce": asked["nonce"]}
        claims |= {**self.person, **self.signed}
        claims = {name: value for name, value in claims.items() if value is not None}
        id_token = jwt.encode(claims, self.key, algorithm=self.algorithm, headers={"kid": "one"})
        named = {} if self.without_token else {"id_token": id_token}
        return {"access_token": "the access token", "token_type": "Bearer", **named}


@contextmanager
def serving():
    provider = IdentityProvider()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            address = urlsplit(self.path)
            match address.path:
                case "/.well-known/openid-configuration":
                    self.answer(provider.configuration())
                case "/authorize":
                    self.send_response(302)
                    self.send_header("Location", provider.authorize(flat(address.query)))
                    self.end_headers()
                case "/moved":
                    self.send_response(302)
                    self.send_header("Location", "/userinfo")
                    self.end_headers()
                case "/endless":
                    self.answer("x" * (2 << 20))
                case "/userinfo":
                    assert self.headers["Authorization"] == "Bearer the access token"
                    self.answer(provider.person)
                case "/keys":
                    self.answer({"keys": [jwk(RSA_KEY, "one")]})

        def do_POST(self):
            body = self.rfile.read(int(self.headers["Content-Length"])).decode()
            self.answer(provider.token(flat(body)))

        def answer(self, document):
            body = json.dumps(document).encode()
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *args):
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        provider.url = f"http://127.0.0.1:{server.server_port}"
        try:
            yield provider
        finally:
            server.shutdown()


def flat(query):
    return {name: values[0] for name, values in parse_qs(query).items()}
