"""The software bill of materials is that of the lock and of the vendored files."""

import tomllib
from collections import Counter
from hashlib import sha256

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tests import sbom
from tests.live_server import ROOT


def test_it_is_up_to_date():
    assert sbom.FILE.read_text() == sbom.write(), "run: python3 -m tests.sbom"


def test_everything_is_named_once_and_nothing_else():
    document = sbom.describe()
    refs = [document["metadata"]["component"]["bom-ref"], *references(document["components"])]
    assert Counter(refs).most_common(1)[0][1] == 1
    used = {it["ref"] for it in document["dependencies"]}
    used |= {ref for it in document["dependencies"] for ref in it["dependsOn"]}
    assert used <= set(refs)
    reached = {ref for it in document["dependencies"] for ref in it["dependsOn"]}
    unreached = {it["bom-ref"] for it in document["components"]} - reached
    # packages for other systems, and requirements of pgserver, which are looser than its needs
    assert {ref.partition("@")[0] for ref in unreached} <= {"pkg:pypi/colorama", "pkg:pypi/tzdata"}


def references(components):
    for it in components:
        yield it["bom-ref"]
        yield from references(it.get("components", []))


def test_the_files_that_are_served_are_in_it():
    folder = sbom.VENDOR
    listed = {
        it["bom-ref"]: it["hashes"][0]["content"]
        for package in sbom.describe()["components"]
        for it in package.get("components", [])
        if it["type"] == "file"
    }
    served = {path for path in folder.rglob("*") if path.is_file() and path.parent != folder}
    assert len(listed) == len(served)
    assert sorted(listed.values()) == sorted(sha256(path.read_bytes()).hexdigest() for path in served)


def test_every_package_is_locked_with_its_hashes():
    """The hashes keep out a package that a stranger publishes under a name that we use."""
    locked = sbom.read_lock()
    assert all(hashes for _, hashes in locked.values())
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    for requirement in map(Requirement, project["dependencies"]):
        assert locked[canonicalize_name(requirement.name)][0] in requirement.specifier
