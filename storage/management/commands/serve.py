"""Serve the Table service and the console."""

import argparse
import contextlib
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand

from storage.server import options, serve


class Command(BaseCommand):
    help = "Serve the Table service; every option has an environment variable, given in brackets."
    requires_system_checks: list[str] = []
    requires_migrations_checks = False

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        options.add_arguments(parser)

    def handle(self, *args: Any, **arguments: Any) -> None:
        # the command line has already become environment, which the settings were read from
        serve.run(settings.OPTIONS, self._say)

    def _say(self, line: str) -> None:
        with contextlib.suppress(BrokenPipeError):  # a reader that has read enough is no reason to end
            self.stdout.write(line)
            self.stdout.flush()
