"""Imports of a server before its first request; each process pays for them in time and memory."""

import os
import subprocess
import sys

from storage.server.workers import environment

# modules for pages, for an issuer or provider, and for extras
LATER = {"jwt", "markdown_it", "obstore", "openpyxl", "pyarrow", "qrcode", "requests", "rest_framework"}


def test_optional_modules_are_not_imported_at_start(tmp_path):
    result = subprocess.run(
        [sys.executable, "-c", "import sys, console.asgi; print(*sys.modules)"],
        env={**environment(), "TABLERO_DATA": os.fspath(tmp_path)},
        capture_output=True,
        text=True,
        check=True,
    )
    modules = set(result.stdout.split())
    assert "django" in modules
    assert modules & LATER == set()
