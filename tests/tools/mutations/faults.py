"""The faults of `faults.toml`: each replaces one text of a file by another."""

import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Final


@dataclass(frozen=True)
class Fault:
    """A fault in the source: a text that replaces another one."""

    name: str
    file: str
    before: str
    after: str
    place: int | None = None  # the occurrence to replace, from 0; None if there is only one

    def apply(self, text: str) -> str:
        """Return the text of the file with the fault; raises ValueError if there is no such text."""
        parts = text.split(self.before)
        if self.place is None and len(parts) != 2:
            raise ValueError(f"{self.name}: its text is {len(parts) - 1} times in {self.file}")
        first = (self.place or 0) + 1
        if first >= len(parts):
            raise ValueError(f"{self.name}: its text is only {len(parts) - 1} times in {self.file}")
        return self.after.join((self.before.join(parts[:first]), self.before.join(parts[first:])))


FAULTS: Final = tuple(
    Fault(name, **values)
    for name, values in tomllib.loads(Path(__file__).with_suffix(".toml").read_text("utf-8")).items()
)
