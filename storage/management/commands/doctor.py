"""The command `doctor`: print locations and problems of a server."""

import argparse
from itertools import chain
from typing import Any

from django.conf import settings

from storage.health.findings import Severity
from storage.management.command import DatabaseCommand
from storage.runtime import doctor
from storage.server import examination
from storage.server import pages as damage


class Command(DatabaseCommand):
    help = (
        "Examine the installation, the settings, the database and what belongs to it; the exit status is 1 if"
        " something does not work."
    )

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        super().add_arguments(parser)
        parser.add_argument("--json", action="store_true", help="print a JSON object per finding")
        parser.add_argument("--pages", action="store_true", help="also read all pages, and find damaged ones")

    def handle(self, *args: Any, json: bool, pages: bool, **options: Any) -> None:
        is_broken = False
        findings = doctor.examine()
        if pages:
            of_pages = ((damage.PART, finding) for finding in damage.examine(settings.OPTIONS))
            findings = chain(findings, of_pages)
        for part, finding in findings:
            is_broken |= finding.severity is Severity.ERROR
            self.stdout.write(examination.describe(part, finding, in_json=json))
        if is_broken:
            raise SystemExit(1)
