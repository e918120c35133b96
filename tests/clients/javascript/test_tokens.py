"""Tokens made by the JavaScript SDKs are signed over the text that the server signs."""

import base64
import json
import os
import subprocess
from collections.abc import Callable
from pathlib import Path
from urllib.parse import parse_qsl

import pytest

from storage.domain import sas
from tests.live_server import ACCOUNT, KEY

pytestmark = pytest.mark.long

KEYS = [b"another key", base64.b64decode(KEY)]


@pytest.fixture(scope="module")
def tokens(sdk_folder: Path, require: Callable[[str, str], str]) -> list[dict[str, str]]:
    """Return the parameters of each token."""
    environment = {
        "PATH": os.environ.get("PATH", ""),
        "SDK_FOLDER": str(sdk_folder),
        "TABLE_ENDPOINT": f"http://127.0.0.1:10002/{ACCOUNT}",
        "TABLE_ACCOUNT": ACCOUNT,
        "TABLE_KEY": KEY,
    }
    printed = subprocess.check_output(
        [require("node", "the JavaScript SDK"), str(Path(__file__).parent / "tokens.mjs")],
        env=environment,
        text=True,
        timeout=180,
    )
    return [
        dict(parse_qsl(token, keep_blank_values=True, strict_parsing=True)) for token in json.loads(printed)
    ]


def test_every_token_is_signed_by_its_key(tokens):
    assert len(tokens) > 1000
    for parameters in tokens:
        assert sas.find_signing_key(sas.read(parameters), ACCOUNT, KEYS) == 1, parameters


def test_no_token_is_signed_for_another_account_or_by_another_key(tokens):
    for parameters in tokens:
        token = sas.read(parameters)
        assert sas.find_signing_key(token, "stranger", KEYS) is None
        assert sas.find_signing_key(token, ACCOUNT, KEYS[:1]) is None


def test_tokens_round_trip(tokens):
    for parameters in tokens:
        written = dict(parse_qsl(sas.write(sas.read(parameters)), strict_parsing=True))
        assert written == {name: value for name, value in parameters.items() if value}
