"""Atomic replacement of a data folder by another one."""

import ctypes
import os
import sys
from pathlib import Path
from typing import Final

from storage.server.backups.stores import synchronize
from storage.server.data_folder import DataFolder
from storage.server.refusal import Refusal

_AT_FDCWD: Final = -100
_EXCHANGE: Final = 2  # RENAME_EXCHANGE of Linux, RENAME_SWAP of macOS


def refuse_running(folder: DataFolder) -> None:
    if (pid := folder.server()) is not None:
        raise Refusal(
            f"A server runs on {folder.path} (process {pid}); stop it, or choose another folder with --data."
        )


def put_in_place(target: Path, new: Path, kept: Path) -> None:
    """Exchange two folders without running databases, and keep the former one under a third name."""
    try:
        with DataFolder(target).held("restore"), DataFolder(new).held("restore"):
            exchange(target, new)
            synchronize(target.parent)
            new.rename(kept)
            synchronize(target.parent)
    except OSError as error:
        raise Refusal(
            f"{target} cannot be replaced ({error.strerror}); the restored folder is {new}: start the server with"
            f" {DataFolder(new).option}, or move the folders by hand."
        ) from None


def exchange(one: Path, other: Path) -> None:
    """Exchange two paths atomically, so that a crash leaves either the old or the new state."""
    library = ctypes.CDLL(None, use_errno=True)
    first, second = os.fsencode(one), os.fsencode(other)
    if sys.platform == "darwin":
        failed = library.renamex_np(first, second, _EXCHANGE)
    else:
        failed = library.renameat2(_AT_FDCWD, first, _AT_FDCWD, second, _EXCHANGE)
    if failed:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
