"""Commands of manage.py, as an operator runs them on a data folder."""

import io
import os
import subprocess
import sys
from unittest import mock

from django.conf import settings
from django.core.management import CommandError, call_command

from storage.server import options
from storage.server.command_line import ALONE
from storage.server.refusal import Refusal
from tests.live_server import ROOT, clean_environment


def command(*arguments):
    return [sys.executable, str(ROOT / "manage.py"), *map(str, arguments)]


def manage(name, *arguments, status=0, **environment):
    """Run a command that ends with a status, and return what it says.

    One that uses no database of Django's runs in this process, since most of the time of a command is its start.
    """
    run = _run_here if name in ALONE - {"config", "pg"} else run_process
    ended_with, said = run(name, *map(str, arguments), **environment)
    assert ended_with == status, said
    assert "Traceback" not in said
    return said


def run_process(*arguments, **environment):
    """Return the status and the output of a process."""
    done = subprocess.run(
        command(*arguments),
        env={**clean_environment(), **environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=180,
        check=False,
    )
    return done.returncode, done.stdout


def _run_here(name, *arguments, **environment):
    given = {**clean_environment(), **environment}
    if "--data" in arguments:
        given["TABLERO_DATA"] = arguments[arguments.index("--data") + 1]
    said, status, before = io.StringIO(), 0, settings.OPTIONS
    try:
        settings.OPTIONS = options.read(given)
        with mock.patch.dict(os.environ, given, clear=True):
            call_command(name, *arguments, stdout=said, stderr=said)
    except (CommandError, Refusal) as error:
        status = 1
        said.write(str(error))
    except SystemExit as ended:
        status = ended.code
    finally:
        settings.OPTIONS = before
    return status, said.getvalue()
