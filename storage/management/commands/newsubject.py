"""The command `newsubject`: create the folders and the declaration of a subject."""

import argparse
from pathlib import Path
from typing import Any, Final

from django.core.management.base import CommandError

from storage.core import registry
from storage.management.command import TableroCommand
from storage.management.new_subject import NotMade, make_subject

_ROOT: Final = Path(__file__).parents[3]


class Command(TableroCommand):
    help = "Make the rooms of a new subject, with its declaration. For those who work on Tablero."

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument("name", metavar="NAME", help="of the subject, such as bulk_edit")
        parser.add_argument("about", metavar="SENTENCE", help="what it is about, for the code map")
        parser.add_argument(
            "--above",
            metavar="SUBJECT",
            default=registry.SUBJECTS[-1],
            help="the subject above which it stands; without this option, above all others",
        )
        parser.add_argument("--pages", action="store_true", help="it has pages in the console")

    def handle(self, *args: Any, name: str, about: str, above: str, pages: bool, **options: Any) -> None:
        try:
            files = make_subject(_ROOT, name, about, above=above, has_pages=pages)
        except NotMade as error:
            raise CommandError(str(error)) from None
        for path in files:
            self.stdout.write(str(path.relative_to(_ROOT)))
        self.stdout.write(
            f"Tests go to tests/{name}/, templates and styles to console/{name}/ below templates/ and static/."
        )
        self.stdout.write("Then write the code map: python3 -m tests.code_map")
