"""Secret tokens in links; only their hashes are stored."""

import hashlib
import secrets


def new() -> str:
    return secrets.token_urlsafe(32)


def hash_of(token: str) -> str:
    # a plain hash is enough, because the token is random
    return hashlib.sha256(token.encode()).hexdigest()
