"""The command `doctor`: what is where, and what is wrong."""

import argparse
import json
from typing import Any

from django.core.management.base import BaseCommand

from storage.operations import doctor
from storage.operations.doctor import Severity
from storage.server import migration


class Command(BaseCommand):
    help = "Examine the database and what belongs to it; the exit status is 1 if something does not work."
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument(
            "--data", metavar="DIR", help="folder of the database and the secret (TABLERO_DATA)"
        )
        parser.add_argument("--json", action="store_true", help="print a JSON object per finding")

    def handle(self, *args: Any, json: bool, **options: Any) -> None:
        migration.migrate(self.stderr.write)
        is_broken = False
        for part, finding in doctor.examine():
            is_broken |= finding.severity is Severity.ERROR
            self.stdout.write(
                _in_json(part, finding) if json else f"{part}: {finding.severity}: {finding.text}"
            )
        if is_broken:
            raise SystemExit(1)


def _in_json(part: str, finding: doctor.Finding) -> str:
    return json.dumps({"part": part, "severity": finding.severity, "text": finding.text})
