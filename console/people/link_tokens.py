"""Tokens of addresses that are handed out: whoever has one may follow it, and only its hash is kept."""

import hashlib
import secrets


def new() -> str:
    return secrets.token_urlsafe(32)


def hash_of(token: str) -> str:
    # a plain hash: the token is random, nobody can guess what gives it
    return hashlib.sha256(token.encode()).hexdigest()
