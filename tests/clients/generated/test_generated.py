"""A client in TypeScript, generated from the OpenAPI document of a live server: its types hold, and so does the API."""

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest
import requests
from platformdirs import user_cache_path

from tests.clients.javascript import installation

pytestmark = pytest.mark.long

HERE = Path(__file__).parent
PACKAGE = HERE / "package.json"
VERSIONS = "-".join(f"{name}-{it}" for name, it in json.loads(PACKAGE.read_text())["dependencies"].items())


def run(*command, folder, **environment):
    done = subprocess.run(
        command,
        cwd=folder,
        env={"PATH": os.environ["PATH"], **environment},
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_a_generated_client_manages_an_account(server, require, tmp_path):
    node = require("node", "the generated client")
    packages = user_cache_path("tablero") / "npm" / VERSIONS
    if not packages.exists():
        installation.install(packages, require("npm", "the generated client"), PACKAGE)
    for name in ("package.json", "tsconfig.json", "journey.ts", "node.d.ts"):
        shutil.copy(HERE / name, tmp_path)
    modules = packages / "node_modules"
    (tmp_path / "node_modules").symlink_to(modules)
    schema = requests.get(f"{server.url}/ui/api/v1/schema", timeout=60)
    (tmp_path / "openapi.json").write_text(schema.text)
    generator = modules / "openapi-typescript" / "bin" / "cli.js"
    # members with a default may be left out of requests
    options = ("--default-non-nullable", "false")
    run(node, str(generator), "openapi.json", "--output", "api.d.ts", *options, folder=tmp_path)
    run(node, str(modules / "typescript" / "bin" / "tsc"), "--project", ".", folder=tmp_path)

    server.manage("user", "add", "generator", "--admin")
    server.manage("user", "add", "colleague")
    token = server.add_token("generator", "journey")
    printed = run(node, "journey.js", folder=tmp_path, TABLERO_URL=server.url, TABLERO_TOKEN=token)
    assert printed == "done\n"
