"""Where what is no Python lies: beside the packages in a checkout, inside of this one when installed."""

from pathlib import Path

PACKAGE = Path(__file__).parent.parent


def folder(name: str) -> Path:
    installed = PACKAGE / name
    return installed if installed.is_dir() else PACKAGE.parent / name
