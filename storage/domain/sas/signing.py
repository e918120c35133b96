"""Signing of SAS tokens, search for the signing key, and errors for refused tokens."""

import base64
import hmac
from collections.abc import Sequence
from dataclasses import replace
from hashlib import sha256
from typing import TypeVar

from storage.domain.errors import AuthenticationFailed
from storage.domain.sas.tokens import NAMED_SERVICE, RESTRICTED, SCOPED, AccountSas, TableSas, check

Token = TypeVar("Token", TableSas, AccountSas)


def string_to_sign(token: TableSas | AccountSas, account: str) -> str:
    """Build the string to sign; ``account`` is the primary name."""
    return "\n".join(
        _of_table(token, account) if isinstance(token, TableSas) else _of_account(token, account)
    )


def _of_table(token: TableSas, account: str) -> tuple[str, ...]:
    service = "/table" if token.version >= NAMED_SERVICE else ""
    return (
        token.permissions,
        token.start,
        token.expiry,
        f"{service}/{account}/{token.folded}",
        token.identifier,
        *((token.address, token.protocol) if token.version >= RESTRICTED else ()),
        token.version,
        token.start_partition,
        token.start_row,
        token.end_partition,
        token.end_row,
    )


def _of_account(token: AccountSas, account: str) -> tuple[str, ...]:
    return (
        account,
        token.permissions,
        token.services,
        token.resource_types,
        token.start,
        token.expiry,
        token.address,
        token.protocol,
        token.version,
        *((token.encryption_scope,) if token.version >= SCOPED else ()),
        "",  # unlike that of a table SAS, this text ends with a newline
    )


def sign(token: Token, account: str, key: bytes) -> Token:
    """Sign a token; raises AuthenticationFailed if it is malformed."""
    check(token)
    return replace(token, signature=_signature(string_to_sign(token, account), key).decode())


def find_signing_key(token: TableSas | AccountSas, account: str, keys: Sequence[bytes]) -> int | None:
    """Return the index of the key that signed the token; None if none did.

    Texts are compared, not bytes: base64 can spell the same bytes in several ways, and each spelling would count as
    another token and escape a block.
    """
    text, signature = string_to_sign(token, account), token.signature.encode()
    for index, key in enumerate(keys):
        if hmac.compare_digest(_signature(text, key), signature):
            return index
    return None


def find_key_by_fingerprint(
    token: TableSas | AccountSas, fingerprint: str, account: str, keys: Sequence[bytes]
) -> int | None:
    """Return the index of the key that signed a token with this fingerprint; None if none did."""
    text = string_to_sign(token, account)
    fingerprints = (sha256(_signature(text, key)).hexdigest() for key in keys)
    return next((index for index, it in enumerate(fingerprints) if it == fingerprint), None)


def _signature(text: str, key: bytes) -> bytes:
    return base64.b64encode(hmac.digest(key, text.encode(), "sha256"))


def signature_mismatch(token: TableSas | AccountSas, account: str) -> AuthenticationFailed:
    """Build the error for a token not signed by a key of the account."""
    text = string_to_sign(token, account)
    return AuthenticationFailed(
        AuthenticationErrorDetail=f"Signature did not match. String to sign used was {text}"
    )


def policy_not_found() -> AuthenticationFailed:
    """Build the error for a token whose policy does not exist."""
    return AuthenticationFailed(
        AuthenticationErrorDetail="There is no stored access policy of this identifier."
    )


def signature_blocked() -> AuthenticationFailed:
    """Build the error for a blocked token, which Azure does not have."""
    return AuthenticationFailed(AuthenticationErrorDetail="The signature has been blocked.")
