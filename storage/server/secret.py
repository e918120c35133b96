"""Server secret, from which the keys for account keys at rest and for Django's signatures are derived."""

import hashlib
import hmac
import os
import secrets
import tempfile
from pathlib import Path

from storage.server.data_folder import DataFolder
from storage.server.options import Options
from storage.server.refusal import Refusal

SHORTEST = 16


def read(options: Options) -> bytes | None:
    """Return the configured secret, or the one in the data folder; None if there is no secret yet."""
    if options.secret:
        if len(options.secret) < SHORTEST:
            raise Refusal(f"TABLERO_SECRET is too short; give at least {SHORTEST} random characters.")
        return options.secret.encode()
    path = path_of(options)
    try:
        text = path.read_text("ascii", errors="replace").strip()
    except FileNotFoundError:
        return None
    except NotADirectoryError:
        raise Refusal(f"{options.data} is a file; choose a folder with --data DIR.") from None
    except OSError as error:
        raise Refusal(f"The secret in {path} cannot be read: {error.strerror}.") from None
    if len(text) < SHORTEST or not text.isascii():
        raise Refusal(
            f"The secret in {path} is damaged. Move that file away, and bring the secret back from a backup: tablero"
            f" restore BACKUP --secret-only {DataFolder(options.data).option}"
        )
    return text.encode()


def read_former(options: Options) -> bytes | None:
    """Return the secret that the present one has replaced, which still opens what it sealed; None without one."""
    return options.former_secret.encode() or None


def check(options: Options) -> None:
    """Raise Refusal if the embedded database was encrypted with a secret that is missing."""
    folder = DataFolder(options.data)
    if read(options) is None and folder.database.exists() and not options.database_url:
        raise Refusal(
            f"The secret of {folder.path} is missing, and without it the account keys in its database cannot be read;"
            f" bring back the file {path_of(options)}, also from a backup (tablero restore BACKUP --secret-only --data"
            f" {folder.path}), or give TABLERO_SECRET."
        )


def ensure(options: Options) -> None:
    """Generate the secret of this data folder if it has none."""
    check(options)
    if read(options) is not None:
        return
    folder = DataFolder(options.data)
    folder.create()
    path = path_of(options)
    descriptor, draft = tempfile.mkstemp(dir=path.parent, prefix="secret.")  # mode 0600
    with os.fdopen(descriptor, "w") as file:
        file.write(secrets.token_urlsafe(48) + "\n")
        file.flush()
        os.fsync(descriptor)
    try:
        os.link(draft, path)  # not rename: of two servers that start at once, the second must not replace it
    except FileExistsError:
        pass
    finally:
        Path(draft).unlink()


def path_of(options: Options) -> Path:
    return options.data / "secret"


def derive(secret: bytes, purpose: str) -> str:
    """Derive a key for one purpose, one-way."""
    return hmac.digest(secret, purpose.encode(), hashlib.sha256).hex()
