"""The version of Tablero."""

import tomllib
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import Final

_CHECKOUT: Final = Path(__file__).resolve().parents[2] / "pyproject.toml"


@cache
def version() -> str:
    """Return the version of this code, from the checkout if there is one, otherwise from the installed package."""
    if _CHECKOUT.exists():
        return str(tomllib.loads(_CHECKOUT.read_text("utf-8"))["project"]["version"])
    return metadata.version("tablero-server")
