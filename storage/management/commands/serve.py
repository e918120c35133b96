"""The command `serve`: run the Table service, the console and the management API."""

import argparse
import contextlib
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
        with contextlib.suppress(OSError):  # the server keeps running when its output is closed
            self.stdout.write(logs.announcement(settings.OPTIONS, line))
            self.stdout.flush()
