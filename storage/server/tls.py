"""Server certificate: validation, and detection of replaced files."""

import ssl
from pathlib import Path
from typing import Final

from storage.server.options import Options
from storage.server.refusal import Refusal


def check(options: Options) -> None:
    """Raise Refusal if the certificate of these options cannot be used."""
    if not options.tls_cert:
        return
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)

    def ask_nobody() -> str:
        raise Refusal(f"The private key in {options.tls_key} needs a password; give one without.")

    try:
        context.load_cert_chain(options.tls_cert, options.tls_key, ask_nobody)
    except OSError as error:  # ssl.SSLError is one
        reason = _explain(error, options)
        raise Refusal(
            f"The certificate {options.tls_cert} with {options.tls_key} cannot be used: {reason}."
        ) from None


# by OpenSSL's name of the error
_REASONS: Final = {
    "KEY_VALUES_MISMATCH": "the private key belongs to another certificate",
    "EE_KEY_TOO_SMALL": "its key is too short",
    "CA_KEY_TOO_SMALL": "the key of its issuer is too short",
    "CA_MD_TOO_WEAK": "it is signed with a hash function that is too weak",
}


def _explain(error: OSError, options: Options) -> str:
    """Return why the files cannot be used; OpenSSL says neither that a file is not PEM nor which one."""
    if not isinstance(error, ssl.SSLError):
        return error.strerror or str(error)
    if error.reason in _REASONS:
        return _REASONS[error.reason]
    for path, content in ((options.tls_cert, "CERTIFICATE"), (options.tls_key, "PRIVATE KEY")):
        text, mark = Path(path).read_bytes(), f"{content}-----".encode()
        if mark not in text:
            return f"{path} has no {content.lower()} in PEM"
        if text.rfind(b"-----BEGIN ") > text.rfind(b"-----END "):
            return f"{path} ends within a {content.lower()}"
    return error.strerror or str(error)


class FileWatch:
    """Watch for replaced files, individually or by a relinked folder."""

    def __init__(self, *paths: str) -> None:
        self._paths = [Path(path) for path in paths if path]
        self.accept()

    def accept(self) -> None:
        """Accept the current state of the files as known."""
        self._known = self._seen = self._look()

    def has_changed(self) -> bool:
        """Return True once per change, when the files have settled, as they are written one after the other."""
        before, self._seen = self._seen, self._look()
        if self._seen != before or self._seen == self._known:
            return False
        self._known = self._seen
        return True

    def _look(self) -> list[tuple[int, int, int, int] | None]:
        return [_identity(path) for path in self._paths]


def _identity(path: Path) -> tuple[int, int, int, int] | None:
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns
