"""Account keys: generation, encryption with the server's secret, and their form in connection strings."""

import base64
import binascii
import os
from collections.abc import Callable, Iterable
from contextlib import suppress
from functools import lru_cache
from typing import Any, Final

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from django.conf import settings

from storage.accounts import connection_strings
from storage.accounts.refusals import AccountError, SealedOtherwise
from storage.domain.refusals import Reason
from storage.models import Account

# published by Microsoft for the emulator: no secret
DEVELOPMENT_KEY: Final = base64.b64decode(
    "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="
)
KEY_LENGTH: Final = 64
NONCE_LENGTH: Final = 12


def keys_of(account: Account) -> tuple[bytes, bytes]:
    """Return the two keys of an account; raises AccountError if they were encrypted with another secret."""
    return (
        _unseal(account.name, bytes(account.primary_key_sealed)),
        _unseal(account.name, bytes(account.secondary_key_sealed)),
    )


def key_of(account: Account, which: int) -> bytes:
    """Return key 1 or 2; raises AccountError if it was encrypted with another secret."""
    return unseal(account, account.primary_key_sealed if which == 1 else account.secondary_key_sealed)


def unseal(account: Account, sealed: bytes | memoryview) -> bytes:
    """Decrypt a key of this account; raises SealedOtherwise if it was encrypted with another secret."""
    return _unseal(account.name, bytes(sealed))


def unseal_as(name: str, sealed: bytes | memoryview) -> bytes:
    """Decrypt bytes that were sealed under a name; raises SealedOtherwise if they were sealed with another secret."""
    return _unseal(name, bytes(sealed))


def encode_key(key: bytes) -> str:
    return base64.b64encode(key).decode()


def decode_key(text: str) -> bytes:
    try:
        key = base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        key = b""
    if not key:
        raise AccountError(Reason.KEY_NOT_BASE64)
    return key


def generate_key() -> bytes:
    return os.urandom(KEY_LENGTH)


def is_public(account: Account) -> bool:
    """Return whether one of its keys is the published development key; unreadable keys are ignored."""
    try:
        return DEVELOPMENT_KEY in keys_of(account)
    except SealedOtherwise:
        return False


def connection_string(account: Account, endpoint: str) -> str:
    """Return a connection string that is safe to print, with a placeholder for a key that is not public."""
    key = encode_key(DEVELOPMENT_KEY) if is_public(account) else "(see: account list --keys)"
    return connection_strings.connection_string(account.name, endpoint, key)


def check_secret() -> None:
    """Check that stored keys were encrypted with this server's secret; raises AccountError."""
    unreadable = [account.name for account in Account.objects.order_by("name") if not _is_readable(account)]
    if unreadable:
        some = ", ".join(unreadable[:3]) + (", ..." if len(unreadable) > 3 else "")
        raise SealedOtherwise(Reason.KEYS_SEALED_OTHERWISE, accounts=some, first=unreadable[0])


def _is_readable(account: Account) -> bool:
    try:
        keys_of(account)
    except SealedOtherwise:
        return False
    return True


def seal(name: str, key: bytes) -> bytes:
    # authenticated with the name, so that the keys of one row do not open in another
    nonce = os.urandom(NONCE_LENGTH)
    return nonce + _cipher().encrypt(nonce, key, name.encode())


def reseal(rows: Iterable[Any], name_of: Callable[[Any], str], *fields: str) -> None:
    """Seal fields of rows with the present secret; what a lost secret has sealed stays as it is."""
    for row in rows:
        with suppress(SealedOtherwise):
            for field in fields:
                setattr(row, field, seal(name_of(row), unseal_as(name_of(row), getattr(row, field))))
            row.save(update_fields=fields)


def reseal_accounts() -> None:
    reseal(Account.objects.all(), lambda account: account.name, "primary_key_sealed", "secondary_key_sealed")


def _unseal(name: str, sealed: bytes) -> bytes:
    for cipher in (_cipher(), *([_cipher_of(settings.FORMER_SECRET)] if settings.FORMER_SECRET else [])):
        with suppress(InvalidTag):
            return cipher.decrypt(sealed[:NONCE_LENGTH], sealed[NONCE_LENGTH:], name.encode())
    raise SealedOtherwise(Reason.ACCOUNT_SEALED_OTHERWISE, account=name)


def _cipher() -> AESGCM:
    if settings.SERVER_SECRET is None:
        raise AccountError(Reason.NO_SECRET)
    return _cipher_of(settings.SERVER_SECRET)


@lru_cache(maxsize=2)
def _cipher_of(secret: bytes) -> AESGCM:
    return AESGCM(HKDF(SHA256(), 32, salt=None, info=b"tablero account keys").derive(secret))
