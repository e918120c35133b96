"""Server certificate: validation, and detection of replaced files."""

import ssl
from pathlib import Path

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
        reason = error.strerror or str(error)
        raise Refusal(
            f"The certificate {options.tls_cert} with {options.tls_key} cannot be used: {reason}."
        ) from None


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
