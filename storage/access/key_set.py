"""JSON Web Key Set of a token issuer: fetched on demand and cached.

https://datatracker.ietf.org/doc/html/rfc7517 and https://openid.net/specs/openid-connect-discovery-1_0.html
"""

import asyncio
import json
import logging
import math
from collections.abc import Iterable
from http.client import HTTPException
from pathlib import Path
from typing import Any, Final, NamedTuple
from urllib import request

from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey
from jwt import PyJWK, PyJWTError

from storage.domain.access.identity import Trust, is_safe_url
from storage.domain.errors import ServerBusy

logger = logging.getLogger(__name__)

FRESH: Final = 150  # seconds; older keys are fetched again in the background
QUIET: Final = 300  # seconds without an attempt, after which the next request waits for one
STALE: Final = 3600  # seconds after which keys are not used any more
PAUSE: Final = 10  # seconds between two attempts, even for unknown key ids
TIMEOUT: Final = 5  # seconds to wait for the issuer
SIZE_LIMIT: Final = 1024 * 1024  # bytes
RSA_LENGTH: Final = 2048  # bits, the least that RFC 7518 allows

_RSA: Final = ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512")
# no HS256: a public key must never be used as a shared secret
_ALGORITHMS: Final = frozenset({*_RSA, "ES256", "ES384", "ES512", "EdDSA"})


class Key(NamedTuple):
    public: Any  # one of cryptography's public keys
    algorithms: tuple[str, ...]


Keys = dict[str | None, Key]


class KeySet:
    """The keys of an issuer; ``generation`` counts their changes. Times are seconds since 1970."""

    def __init__(self, trust: Trust) -> None:
        self.generation = 0
        self._trust = trust
        self._keys: Keys = {}
        self._loaded_at = -math.inf
        self._tried_at = -math.inf
        self._failed = False
        self._waited_for = False
        self._loading: asyncio.Task[None] | None = None

    async def find(self, identifier: str | None, now: float) -> Key | None:
        """Return the key with a ``kid``, reloading the set if needed; raises ServerBusy if the issuer is down."""
        if self.are_stale(now):
            await self._renew(now)
        key = self._get(identifier)
        if key is None:
            await self._renew(now)  # the issuer may have added it
            key = self._get(identifier)
        return key

    async def keep_fresh(self, now: float) -> None:
        """Refresh old keys in the background; after a long pause, wait for them."""
        if now - self._loaded_at > FRESH:
            self._begin(now)
            if self._loading is not None and self._waited_for:
                await asyncio.shield(self._loading)

    def are_stale(self, now: float) -> bool:
        """Return whether tokens verified by these keys must be verified again."""
        return now - self._loaded_at > STALE

    def _get(self, identifier: str | None) -> Key | None:
        if identifier is None and len(self._keys) == 1:
            return next(iter(self._keys.values()))
        return self._keys.get(identifier)

    async def _renew(self, now: float) -> None:
        self._begin(now)
        if self._loading is not None:
            # shielded, because other requests wait for the same task
            await asyncio.shield(self._loading)
        if self._failed:
            raise ServerBusy

    def _begin(self, now: float) -> None:
        if self._loading is None and not 0 <= now - self._tried_at < PAUSE:
            self._waited_for = now - self._tried_at > QUIET
            self._tried_at = now
            self._loading = asyncio.create_task(self._load(now))

    async def _load(self, now: float) -> None:
        try:
            keys = await asyncio.to_thread(fetch, self._trust)
        except (OSError, ValueError, RecursionError, HTTPException) as error:
            self._failed = True
            logger.warning("The keys of %s cannot be fetched: %s", self._trust.issuer, error)
        else:
            self._failed = False
            self._loaded_at = now
            if keys != self._keys:
                self._keys = keys
                self.generation += 1
        finally:
            self._loading = None


def fetch(trust: Trust) -> Keys:
    """Fetch the keys of an issuer; raises OSError, HTTPException, or ValueError for an invalid answer."""
    where = trust.keys or _discover(trust.issuer)
    document = _read_url(where) if "://" in where else json.loads(Path(where).read_bytes())
    listed = document.get("keys") if isinstance(document, dict) else None
    keys = read_keys(listed if isinstance(listed, list) else ())
    if not keys:
        raise ValueError(f"{where} contains no usable signing key")
    return keys


def read_keys(jwks: Iterable[object]) -> Keys:
    """Return the signing keys of a JSON Web Key Set by ``kid``."""
    keys: Keys = {}
    for jwk in jwks:
        if isinstance(jwk, dict) and jwk.get("use", "sig") == "sig":
            key = _read_key(jwk)
            if key is not None:
                keys[jwk.get("kid")] = key
    return keys


def _read_key(jwk: dict[str, Any]) -> Key | None:
    try:
        read = PyJWK(jwk)
    except (PyJWTError, ValueError, TypeError):
        return None  # unsupported kind; other keys of the set may be usable
    name = read.algorithm_name
    public = read.key.public_key() if hasattr(read.key, "public_key") else read.key
    weak = isinstance(public, RSAPublicKey) and public.key_size < RSA_LENGTH
    if name not in _ALGORITHMS or weak or not isinstance(jwk.get("kid", ""), str):
        return None
    return Key(public, _RSA if name == "RS256" and "alg" not in jwk else (name,))


def _discover(issuer: str) -> str:
    configuration = _read_url(issuer.rstrip("/") + "/.well-known/openid-configuration")
    if not isinstance(configuration, dict) or configuration.get("issuer") != issuer:
        raise ValueError("its configuration belongs to another issuer")
    where = configuration.get("jwks_uri")
    if not isinstance(where, str) or not is_safe_url(where):
        raise ValueError("its configuration has no safe jwks_uri")
    return where


def _read_url(url: str) -> Any:
    # no redirects: they could lead to an unsafe URL; plain http is for this machine only, so no proxy either
    proxies = request.ProxyHandler({} if url.startswith("http:") else None)
    opener = request.build_opener(_NoRedirect(), proxies)
    with opener.open(url, timeout=TIMEOUT) as response:
        body = response.read(SIZE_LIMIT + 1)
    if len(body) > SIZE_LIMIT:
        raise ValueError(f"{url} returns more than {SIZE_LIMIT} bytes")
    return json.loads(body)


class _NoRedirect(request.HTTPRedirectHandler):
    def redirect_request(self, *_: Any) -> None:
        return None
