"""Sample programs with ``%s`` where the connection string goes, and no other percent sign."""

from pathlib import Path
from typing import Final


def _read(name: str) -> str:
    return (Path(__file__).with_name("samples") / f"{name}.txt").read_text("utf-8")


COMPOSE: Final = _read("compose")
PYTHON: Final = _read("python")
JAVASCRIPT: Final = _read("javascript")
CSHARP: Final = _read("csharp")
GO: Final = _read("go")
