"""When the last backup was made, as a file in the data folder says."""

import json
import os
from datetime import datetime, timedelta
from pathlib import Path
from typing import Final, NamedTuple

NAME: Final = "last-backup.json"
OLD: Final = timedelta(days=7)


class LastBackup(NamedTuple):
    made_at: datetime
    path: str


def record(folder: Path, made: LastBackup) -> None:
    """Remember a backup that is complete; only its owner may read where it is."""
    draft = folder / f"{NAME}.new"
    draft.unlink(missing_ok=True)
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "w") as file:
        json.dump({"made_at": made.made_at.isoformat(), "path": made.path}, file)
    draft.replace(folder / NAME)


def read(folder: Path) -> LastBackup | None:
    """Return None without a backup, also if the file cannot be read."""
    try:
        found = json.loads((folder / NAME).read_text())
        return LastBackup(datetime.fromisoformat(found["made_at"]), found["path"])
    except (OSError, ValueError, KeyError, TypeError):
        return None
