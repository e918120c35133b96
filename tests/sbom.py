"""The software bill of materials, as CycloneDX 1.6: third-party components of Tablero.

`python3 -m tests.sbom` writes docs/sbom.cdx.json from the lock of the packages and the manifest of the vendored
files. Packages that only tests use are left out.

https://cyclonedx.org/docs/1.6/json/
"""

import base64
import json
import re
import subprocess
import tomllib
from importlib import metadata
from typing import Any
from urllib.parse import quote
from uuid import NAMESPACE_URL, uuid5

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from storage.server import installation
from tests.live_server import ROOT

FILE = ROOT / "docs" / "sbom.cdx.json"
VENDOR = ROOT / "static" / "vendor"
_SPDX = re.compile(r"[A-Za-z0-9.+-]+(?: (?:AND|OR|WITH) \(?[A-Za-z0-9.+-]+\)?)*")

Component = dict[str, Any]


def describe() -> dict[str, Any]:
    """Return the whole document."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    locked = read_lock()
    product = {
        "type": "application",
        **_identify("pypi", "tablero-server", project["version"]),
        "licenses": _licenses(project["license"]),
    }
    vendored = [
        _describe_vendored(it) for it in tomllib.loads((VENDOR / "vendor.toml").read_text())["package"]
    ]
    components = [*(_describe_locked(name, *it) for name, it in locked.items()), *vendored]
    direct = _requirements(project["dependencies"], locked)
    edges = {
        product["bom-ref"]: sorted(
            [_ref(name, locked) for name in direct] + [it["bom-ref"] for it in vendored]
        ),
        **{
            _ref(name, locked): sorted(_ref(it, locked) for it in _required_by(name, direct, locked))
            for name in locked
        },
    }
    document = {
        "$schema": "http://cyclonedx.org/schema/bom-1.6.schema.json",
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {"component": product},
        "components": components,
        "dependencies": [{"ref": ref, "dependsOn": targets} for ref, targets in edges.items()],
    }
    # no time and no random number: the same content is the same document
    document["serialNumber"] = f"urn:uuid:{uuid5(NAMESPACE_URL, json.dumps(document))}"
    return document


def read_lock() -> dict[str, tuple[str, list[str]]]:
    """Return version and SHA-256 of all files of each locked package."""
    results: dict[str, tuple[str, list[str]]] = {}
    for line in (ROOT / ".lock" / "run.txt").read_text().splitlines():
        if match := re.match(r"([a-z0-9.-]+)==([^ ;]+)", line):
            hashes = results.setdefault(match[1], (match[2], []))[1]
        elif match := re.search("--hash=sha256:([0-9a-f]{64})", line):
            hashes.append(match[1])
    return results


def _describe_locked(name: str, version: str, hashes: list[str]) -> Component:
    results = {
        "type": "library",
        **_identify("pypi", name, version),
        "licenses": _licenses_of(name),
        "externalReferences": [
            {
                "type": "distribution",
                "url": f"https://pypi.org/project/{name}/{version}/",
                "hashes": [_hash("SHA-256", it) for it in hashes],
            }
        ],
    }
    if name == installation.PACKAGE.replace("_", "-"):
        results["components"] = [_describe_postgresql()]
    return results


def _describe_postgresql() -> Component:
    command = [installation.packaged_programs() / "postgres", "--version"]
    text = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    version = text.split()[2]
    return {
        "type": "application",
        "bom-ref": f"postgresql@{version}",
        "name": "postgresql",
        "version": version,
        "licenses": _licenses("PostgreSQL"),
        "cpe": f"cpe:2.3:a:postgresql:postgresql:{version}:*:*:*:*:*:*:*",
    }


def _describe_vendored(package: dict[str, Any]) -> Component:
    npm, _, version = package["source"].removeprefix("npm:").rpartition("@")
    files: list[Component] = [
        {
            "type": "file",
            "bom-ref": f"static/vendor/{package['name']}/{version}/{name}",
            "name": name,
            "hashes": [_hash("SHA-256", digest)],
        }
        for name, digest in package["files"].items()
    ]
    parts = _parts_of_codemirror() if package["name"] == "codemirror" else []
    return {
        "type": "library",
        # codemirror.js consists of several packages; `source` names only the first
        **({"bom-ref": f"codemirror@{version}", "name": "codemirror", "version": version} if parts else {}),
        **({} if parts else _identify("npm", npm, version)),
        "licenses": _licenses(package["license"]),
        "components": files + parts,
    }


def _parts_of_codemirror() -> list[Component]:
    locked = json.loads((VENDOR / "codemirror-lock.json").read_text())["packages"]
    return [
        {
            "type": "library",
            **_identify("npm", path.removeprefix("node_modules/"), it["version"]),
            "licenses": _licenses(it["license"]),
            "hashes": [_hash("SHA-512", base64.b64decode(it["integrity"].partition("-")[2]).hex())],
        }
        for path, it in locked.items()
        if path and not it.get("dev")
    ]


def _required_by(name: str, direct: dict[str, set[str]], locked: dict[str, Any]) -> set[str]:
    try:
        result = metadata.requires(name) or []
    except metadata.PackageNotFoundError:  # it is for another system
        return set()
    return set(_requirements(result, locked, direct.get(name, set()))) - {name}


def _requirements(
    texts: list[str], locked: dict[str, Any], extras: set[str] = frozenset()
) -> dict[str, set[str]]:
    """Return the extras of the locked packages that are required, on any system, with these extras."""
    results: dict[str, set[str]] = {}
    for requirement in map(Requirement, texts):
        name = canonicalize_name(requirement.name)
        of_extra = re.findall(r"extra == [\"']([^\"']+)", str(requirement.marker or ""))
        if name in locked and (not of_extra or extras.intersection(of_extra)):
            results.setdefault(name, set()).update(requirement.extras)
    return results


def _licenses_of(name: str) -> list[dict[str, Any]]:
    try:
        about = metadata.metadata(name)
    except metadata.PackageNotFoundError:  # it is for another system: as another one has found it
        known = json.loads(FILE.read_text())["components"] if FILE.exists() else []
        return next((it["licenses"] for it in known if it["name"] == name), [])
    classified = [
        it.rpartition(" :: ")[2] for it in about.get_all("Classifier") or [] if it.startswith("License ::")
    ]
    return _licenses(about["License-Expression"] or (classified or [about["License"] or "unknown"])[0])


def _licenses(text: str) -> list[dict[str, Any]]:
    return [{"expression": text}] if _SPDX.fullmatch(text) else [{"license": {"name": text}}]


def _identify(kind: str, name: str, version: str) -> dict[str, str]:
    purl = f"pkg:{kind}/{quote(name)}@{version}"
    return {"bom-ref": purl, "name": name, "version": version, "purl": purl}


def _ref(name: str, locked: dict[str, Any]) -> str:
    return _identify("pypi", name, locked[name][0])["bom-ref"]


def _hash(algorithm: str, content: str) -> dict[str, str]:
    return {"alg": algorithm, "content": content}


def write() -> str:
    return json.dumps(describe(), indent=1) + "\n"


if __name__ == "__main__":
    FILE.write_text(write())
