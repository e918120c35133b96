"""Agreement of docs/compatibility.md with the tests of clients."""

import re
import tomllib

import pytest
from packaging.requirements import Requirement

from tests.clients import report
from tests.live_server import ROOT

CLIENTS = report.load_clients()


@pytest.mark.long
def test_the_table_is_current():
    names = report.collect_tests()
    assert all(sum(client.count_cases(names)) for client in CLIENTS)
    table = report.write_table(CLIENTS, names)
    assert report.current_table() == table, "python3 -m tests.clients.report writes it"


def test_no_language_is_both_tested_and_not():
    untested = re.search(
        r"^Not at all: (.*?)\.", report.DOCUMENT.read_text("utf-8"), re.MULTILINE | re.DOTALL
    )
    assert not {client.language for client in CLIENTS} & {*re.split(r",? and |, ", untested[1])}


@pytest.mark.parametrize("client", [client for client in CLIENTS if client.manifest], ids=lambda it: it.name)
def test_reported_versions_match_the_tested_ones(client):
    lines = (report.HERE / client.manifest).read_text("utf-8").splitlines()
    version = rf"(?<![\d.]){re.escape(client.version)}(?![\d.])"
    assert any(client.name in line and re.search(version, line) for line in lines)


@pytest.mark.parametrize("client", [it for it in CLIENTS if it.language == "Python"], ids=lambda it: it.name)
def test_python_versions_are_supported_by_the_tests(client):
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    wanted = {it.name: it for it in map(Requirement, project["optional-dependencies"]["test"])}
    assert wanted[client.name].specifier.contains(client.version)
