"""Runs the checks of the JavaScript SDKs: each is a test here, all run in one process of Node."""

import json
import os
import re
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.clients.accounts import REHEARSAL, add_account
from tests.clients.conftest import HOST_SUFFIX
from tests.live_server import LiveServer

pytestmark = pytest.mark.long

HERE = Path(__file__).parent
NAMES = [
    name
    for file in sorted(HERE.glob("*.mjs"))
    for name in re.findall(r'^check\("(.+)",', file.read_text(), re.MULTILINE)
]
RUN_TIMEOUT = 3000 if REHEARSAL else 180


@pytest.fixture(scope="module")
def outcomes(
    sdk_folder: Path,
    server: LiveServer,
    secure_server: LiveServer,
    certificate: Path,
    cosmos_endpoint: str,
    require: Callable[[str, str], str],
    request: pytest.FixtureRequest,
) -> dict[str, str | None]:
    """Return the outcome of each check: None, or the failure. Rehearsals make them slow: only the chosen ones run."""
    own_items = [item for item in request.session.items if item.path == request.path]
    chosen = [item.callspec.params["name"] for item in own_items if hasattr(item, "callspec")]
    own = add_account(server)
    secure = add_account(secure_server, own.account)
    environment = {
        "PATH": os.environ.get("PATH", ""),
        "SDK_FOLDER": str(sdk_folder),
        "NODE_EXTRA_CA_CERTS": str(certificate),
        "TABLE_ENDPOINT": own.endpoint,
        "COSMOS_ENDPOINT": cosmos_endpoint,
        "SECURE_ENDPOINT": secure.endpoint,
        "HOST_ENDPOINT": f"https://{secure.account}.{HOST_SUFFIX}:{secure.port}",
        "TABLE_ACCOUNT": own.account,
        "TABLE_KEY": server.key,
        "REHEARSAL": REHEARSAL,
        **({"CHECKS": json.dumps(chosen)} if REHEARSAL else {}),
    }
    finished = subprocess.run(
        [require("node", "the JavaScript SDK"), str(HERE / "main.mjs")],
        env=environment,
        capture_output=True,
        text=True,
        timeout=RUN_TIMEOUT,
    )
    assert finished.returncode == 0, finished.stderr
    reports = [json.loads(line) for line in finished.stdout.splitlines()]
    return {report["name"]: report["failure"] for report in reports}


@pytest.mark.parametrize("name", NAMES)
def test_check(outcomes: dict[str, str | None], name: str) -> None:
    failure = outcomes[name]

    assert failure is None, failure


def test_every_check_is_known(outcomes: dict[str, str | None]) -> None:
    assert set(outcomes) == set(NAMES) or REHEARSAL
    assert len(NAMES) == len(set(NAMES))
