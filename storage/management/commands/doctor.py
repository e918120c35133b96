"""The command `doctor`: what is where, and what is wrong."""

import argparse
import json
from itertools import chain
from typing import Any

from django.conf import settings

from storage.management.command import DatabaseCommand
from storage.runtime import doctor
from storage.runtime.doctor import Severity
from storage.server import pages as damage


class Command(DatabaseCommand):
    help = "Examine the database and what belongs to it; the exit status is 1 if something does not work."

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        super().add_arguments(parser)
        parser.add_argument("--json", action="store_true", help="print a JSON object per finding")
        parser.add_argument("--pages", action="store_true", help="also read all pages, and find damaged ones")

    def handle(self, *args: Any, json: bool, pages: bool, **options: Any) -> None:
        is_broken = False
        found = doctor.examine()
        if pages:
            of_pages = ((damage.PART, finding) for finding in damage.examine(settings.OPTIONS))
            found = chain(found, of_pages)
        for part, finding in found:
            is_broken |= finding.severity is Severity.ERROR
            self.stdout.write(
                _in_json(part, finding) if json else f"{part}: {finding.severity}: {finding.text}"
            )
        if is_broken:
            raise SystemExit(1)


def _in_json(part: str, finding: doctor.Finding) -> str:
    return json.dumps({"part": part, "severity": finding.severity, "text": finding.text})
