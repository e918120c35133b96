"""The command `serve`: run the Table service, the console and the management API."""

import argparse
import contextlib
import os
from pathlib import Path
from typing import Any

from django.conf import settings

from storage.management.command import TableroCommand
from storage.server import logs, options, serve


class Command(TableroCommand):
    help = "Run the server. Each option can also be set by the environment variable in brackets."

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        options.add_arguments(parser)

    def handle(self, *args: Any, **arguments: Any) -> None:
        # the options were already turned into environment variables, from which the settings were read
        serve.run(settings.OPTIONS, self._write_line)

    def _write_line(self, line: str) -> None:
        try:
            self.stdout.write(logs.announcement(settings.OPTIONS, line))
            self.stdout.flush()
        except OSError:
            # the server keeps running when its output is closed; what stays in the buffer would make its end a failure
            with contextlib.suppress(OSError), Path(os.devnull).open("w") as nowhere:
                os.dup2(nowhere.fileno(), self.stdout.fileno())
