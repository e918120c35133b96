"""The command `doctor`: what is where, and what is wrong."""

import argparse
import json
from typing import Any

from storage.management.command import DatabaseCommand
from storage.runtime import doctor
from storage.runtime.doctor import Severity


class Command(DatabaseCommand):
    help = "Examine the database and what belongs to it; the exit status is 1 if something does not work."

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        super().add_arguments(parser)
        parser.add_argument("--json", action="store_true", help="print a JSON object per finding")

    def handle(self, *args: Any, json: bool, **options: Any) -> None:
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
