"""The command `config`: print all settings with their sources."""

import argparse
import json
import os
from typing import Any

from storage.management.command import TableroCommand, add_common_arguments
from storage.server import configuration


class Command(TableroCommand):
    help = "Print all settings as they are, and where each comes from. Secrets are left out."

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        add_common_arguments(parser)
        parser.add_argument("--changed", action="store_true", help="only what is not the default")
        parser.add_argument("--json", action="store_true", help="an object by names, with value and origin")

    def handle(self, *args: Any, changed: bool, json: bool, **_: Any) -> None:
        shown = [it for it in configuration.settings(os.environ) if not changed or it.origin != "default"]
        if json:
            self._write_json(shown)
            return
        names = max((len(it.name) for it in shown), default=0)
        values = max((len(it.value) for it in shown), default=0)
        for it in shown:
            self.stdout.write(f"{it.name:{names}}  {it.value:{min(values, 40)}}  {it.origin}")

    def _write_json(self, found: list[configuration.Setting]) -> None:
        self.stdout.write(
            json.dumps({it.name: {"value": it.value, "origin": it.origin} for it in found}, indent=2)
        )
