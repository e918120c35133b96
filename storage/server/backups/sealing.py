"""Encryption of backups with a passphrase, for storage that others can read.

The key of a backup is derived from the passphrase by scrypt with a random salt. Each file has a key derived
from that one and from its name, and consists of numbered chunks in AES-256-GCM; the last one is marked (the
STREAM construction). So exchanged files, and missing, moved or truncated chunks, are detected.
"""

import base64
import hmac
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from cryptography.hazmat.primitives.kdf.scrypt import Scrypt

from storage.server.backups.stores import Reader, Writer
from storage.server.refusal import Refusal

SHORTEST: Final = 8
_COST: Final = 1 << 17  # 128 MiB and about half a second for a guess, as OWASP recommends
_LARGEST_COST: Final = 1 << 19  # a description that was forged must not exhaust the memory
_PURPOSE: Final = b"tablero backup secret"
_MAGIC: Final = b"tablero sealed 1\n"
_NONCE: Final = 16
_CHUNK: Final = 256 << 10
_TAG: Final = 16


@dataclass(frozen=True, slots=True)
class Sealing:
    """Encryption parameters of a backup; ``check`` verifies the passphrase."""

    salt: str
    cost: int
    check: str

    def in_json(self) -> dict[str, Any]:
        return asdict(self)


class Key:
    """Encryption key of one backup."""

    def __init__(self, passphrase: bytes, salt: bytes, cost: int) -> None:
        self._key = Scrypt(salt=salt, length=32, n=cost, r=8, p=1).derive(passphrase)
        self._salt, self._cost = salt, cost

    @classmethod
    def new(cls, passphrase: bytes) -> "Key":
        return cls(passphrase, os.urandom(16), _COST)

    @classmethod
    def open(cls, sealing: Sealing, passphrase: bytes, what: str = "backup") -> "Key":
        """Derive the key of a backup or archive; raises Refusal for a wrong passphrase."""
        cost = sealing.cost
        try:
            if not 2 <= cost <= _LARGEST_COST or cost & (cost - 1):
                raise ValueError(cost)
            key = cls(passphrase, base64.b64decode(sealing.salt), cost)
            is_right = hmac.compare_digest(key.sealing.check, sealing.check)
        except (TypeError, ValueError):
            raise Refusal(f"The description of the {what} is damaged: its key cannot be derived.") from None
        if not is_right:
            raise Refusal(f"The passphrase is wrong: it does not open this {what}.")
        return key

    @property
    def sealing(self) -> Sealing:
        check = self._derive(b"", b"tablero backup check")
        return Sealing(base64.b64encode(self._salt).decode(), self._cost, base64.b64encode(check).decode())

    def cipher(self, nonce: bytes, file: str) -> AESGCM:
        return AESGCM(self._derive(nonce, b"tablero backup file\0" + file.encode()))

    def _derive(self, salt: bytes, info: bytes) -> bytes:
        return HKDF(SHA256(), 32, salt, info).derive(self._key)


class SealingWriter:
    """Writer that encrypts a file; the file is incomplete until ``finish``."""

    def __init__(self, sink: Writer, key: Key, file: str) -> None:
        nonce = os.urandom(_NONCE)
        self._sink = sink
        self._cipher = key.cipher(nonce, file)
        self._number = 0
        self._pending = bytearray()
        sink.write(_MAGIC + nonce)

    def write(self, data: bytes) -> None:
        self._pending += data
        complete = (len(self._pending) - 1) // _CHUNK  # the last one waits: it may be the end
        if complete > 0:
            content = bytes(self._pending[: complete * _CHUNK])
            del self._pending[: complete * _CHUNK]
            for start in range(0, len(content), _CHUNK):
                self._seal(content[start : start + _CHUNK], is_last=False)

    def finish(self) -> None:
        self._seal(bytes(self._pending), is_last=True)

    def _seal(self, chunk: bytes, *, is_last: bool) -> None:
        self._sink.write(self._cipher.encrypt(_nonce(self._number, is_last=is_last), chunk, None))
        self._number += 1


class UnsealingReader:
    """Reader that decrypts a file; raises ValueError for altered content."""

    def __init__(self, source: Reader, key: Key, file: str) -> None:
        header = source.read(len(_MAGIC) + _NONCE)
        if len(header) != len(_MAGIC) + _NONCE or not header.startswith(_MAGIC):
            raise ValueError(file)
        self._source = source
        self._file = file
        self._cipher = key.cipher(header[len(_MAGIC) :], file)
        self._number = 0
        self._sealed = source.read(_CHUNK + _TAG)
        self._content = b""
        self._start = 0
        self._is_over = False

    def read(self, size: int = -1) -> bytes:
        pieces = []
        while size != 0:
            if self._start == len(self._content):
                if self._is_over:
                    break
                self._open_next()
                continue
            end = len(self._content) if size < 0 else self._start + size
            piece = self._content[self._start : end]
            self._start += len(piece)
            size -= len(piece) if size > 0 else 0
            pieces.append(piece)
        return pieces[0] if len(pieces) == 1 else b"".join(pieces)

    def _open_next(self) -> None:
        following = self._source.read(_CHUNK + _TAG)
        nonce = _nonce(self._number, is_last=not following)
        try:
            self._content, self._start = self._cipher.decrypt(nonce, self._sealed, None), 0
        except InvalidTag:
            raise ValueError(self._file) from None
        self._number += 1
        self._is_over = not following
        self._sealed = following


@contextmanager
def sealing_into(sink: Writer, key: Key, file: str) -> Iterator[SealingWriter]:
    """Yield a writer that encrypts into the sink, and complete the file unless the block raises."""
    writer = SealingWriter(sink, key, file)
    yield writer
    writer.finish()


def _nonce(number: int, *, is_last: bool) -> bytes:
    return number.to_bytes(11, "big") + bytes([is_last])


def read_passphrase(path: Path) -> bytes:
    """Read the passphrase from the first line of a file; raises Refusal if it is missing or too short."""
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


def seal_secret(secret: bytes, passphrase: bytes) -> bytes:
    """Encrypt only the secret of an unencrypted backup; return JSON with all parameters."""
    salt, nonce = os.urandom(16), os.urandom(12)
    sealed = _secret_cipher(passphrase, salt).encrypt(nonce, secret, _PURPOSE)
    parts = {"salt": salt, "nonce": nonce, "sealed": sealed}
    return json.dumps({name: base64.b64encode(part).decode() for name, part in parts.items()}).encode()


def unseal_secret(text: bytes, passphrase: bytes) -> bytes:
    """Decrypt a separately encrypted secret; raises Refusal for a wrong passphrase."""
    try:
        parts = {name: base64.b64decode(part) for name, part in json.loads(text).items()}
        return _secret_cipher(passphrase, parts["salt"]).decrypt(parts["nonce"], parts["sealed"], _PURPOSE)
    except (ValueError, KeyError, AttributeError, TypeError):
        raise Refusal("The secret of this backup is damaged. Use another backup.") from None
    except InvalidTag:
        raise Refusal("The passphrase is wrong: it does not open the secret of this backup.") from None


def _secret_cipher(passphrase: bytes, salt: bytes) -> AESGCM:
    return AESGCM(Scrypt(salt=salt, length=32, n=_COST, r=8, p=1).derive(passphrase))
