"""The vendored packages, as listed in their manifest."""

import tomllib
from dataclasses import dataclass
from functools import cache

from console.site.static_files import ROOT

MANIFEST = "vendor.toml"


@dataclass(frozen=True, slots=True)
class Package:
    name: str
    version: str
    license: str  # SPDX
    source: str  # as in npm:htmx.org@4.0.1
    text: str  # the text of the license

    @property
    def address(self) -> str:
        kind, _, name = self.source.partition(":")
        package, _, version = name.rpartition("@")
        return f"https://www.npmjs.com/package/{package}/v/{version}" if kind == "npm" else ""


@cache
def packages() -> list[Package]:
    root = ROOT / "vendor"
    listed = tomllib.loads((root / MANIFEST).read_text("utf-8"))["package"]
    return [
        Package(
            package["name"],
            package["version"],
            package["license"],
            package["source"],
            (root / package["name"] / package["version"] / "LICENSE").read_text("utf-8"),
        )
        for package in listed
    ]
