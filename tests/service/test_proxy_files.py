"""The configurations of proxies, as nginx and Caddy read them; test_proxies.py has servers behind them."""

import os
import subprocess

import pytest

from tests.certificates import make_certificate
from tests.service.proxies import CONFIGURE


@pytest.mark.parametrize(("name", "check"), [("nginx", ["-t"]), ("caddy", ["validate"])])
def test_a_proxy_accepts_its_configuration(require, tmp_path, name, check):
    program = require(name, "its configuration")
    arguments = CONFIGURE[name](tmp_path, 8443, 10002, *make_certificate(tmp_path))
    command = [program, *check, *(it for it in arguments if it != "run")]
    environment = {**os.environ, "HOME": str(tmp_path)}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
