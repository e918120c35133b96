"""The command `messages`: update the translation catalogues from the source."""

import argparse
import os
from typing import Any, Final

from django.core.management.base import CommandError

from console.management import catalogues
from console.management.catalogues import CatalogueError, Update
from storage.management.command import TableroCommand

_SHOWN: Final = 100  # characters of a message


class Command(TableroCommand):
    help = (
        "Add texts of the console that are new to the catalogues in console/locale, list what is to be translated, and"
        " compile them. For those who work on Tablero; needs GNU gettext."
    )

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument(
            "--check",
            action="store_true",
            help="change nothing; fail if a text is missing, not translated, or not compiled",
        )

    def handle(self, *args: Any, check: bool, **options: Any) -> None:
        try:
            extracted = catalogues.extract(os.environ)
            are_complete = [self._update(name, extracted, check=check) for name in catalogues.locales()]
        except CatalogueError as error:
            raise CommandError(str(error)) from None
        if check and not all(are_complete):
            raise CommandError("The catalogues are not complete. Run: python3 manage.py messages")

    def _update(self, locale: str, extracted: list[catalogues.Entry], *, check: bool) -> bool:
        """Update or check a catalogue; return whether it was complete."""
        path = catalogues.compiled(locale)
        try:
            before = catalogues.load(locale)
            updated = catalogues.update(before, extracted)
            content = catalogues.compile_text(updated.text)
        except CatalogueError as error:
            raise CatalogueError(f"{locale}: {error}") from None
        is_compiled = path.exists() and path.read_bytes() == content
        if not check:
            if updated.text != before:
                catalogues.save(locale, updated.text)
            if not is_compiled:
                path.write_bytes(content)
        self._report(locale, updated, is_compiled=is_compiled or not check)
        return is_compiled and updated.text == before and not updated.untranslated

    def _report(self, locale: str, update: Update, *, is_compiled: bool) -> None:
        self.stdout.write(
            f"{locale}: {len(update.added)} new, {len(update.untranslated)} to translate,"
            f" {len(update.unused)} no longer in the source{'' if is_compiled else ', not compiled'}"
        )
        for title, entries in (("to translate", update.untranslated), ("no longer used", update.unused)):
            for entry in entries:
                text = entry.message.text
                shown = text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"
                self.stdout.write(f"  line {entry.number}, {title}: {shown}")
