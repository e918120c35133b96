"""Encrypt the server secret with a passphrase, for a backup that others store."""

import base64
import json
import os
from pathlib import Path
from typing import Final

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.kdf.scrypt import Scrypt

from storage.server.refusal import Refusal

SHORTEST: Final = 8
_COST: Final = 1 << 15  # 32 MiB and about a tenth of a second for a guess
_PURPOSE: Final = b"tablero backup secret"


def read_passphrase(path: Path) -> bytes:
    """Return the first line of a file; raises Refusal if it is no passphrase."""
    try:
        lines = path.read_bytes().splitlines()
    except OSError as error:
        raise Refusal(f"The passphrase in {path} cannot be read: {error.strerror}.") from None
    passphrase = lines[0].strip() if lines else b""
    if len(passphrase) < SHORTEST:
        raise Refusal(
            f"The passphrase in the first line of {path} is too short; use at least {SHORTEST} characters."
        )
    return passphrase


def seal(secret: bytes, passphrase: bytes) -> bytes:
    """Return the secret encrypted with AES-256-GCM, as JSON that has everything but the passphrase."""
    salt, nonce = os.urandom(16), os.urandom(12)
    sealed = AESGCM(_key(passphrase, salt)).encrypt(nonce, secret, _PURPOSE)
    parts = {"salt": salt, "nonce": nonce, "sealed": sealed}
    return json.dumps({name: base64.b64encode(part).decode() for name, part in parts.items()}).encode()


def unseal(text: bytes, passphrase: bytes) -> bytes:
    """Return the secret; raises Refusal if the passphrase is wrong."""
    parts = {name: base64.b64decode(part) for name, part in json.loads(text).items()}
    try:
        return AESGCM(_key(passphrase, parts["salt"])).decrypt(parts["nonce"], parts["sealed"], _PURPOSE)
    except InvalidTag:
        raise Refusal("The passphrase is wrong: it does not open the secret of this backup.") from None


def _key(passphrase: bytes, salt: bytes) -> bytes:
    return Scrypt(salt=salt, length=32, n=_COST, r=8, p=1).derive(passphrase)
