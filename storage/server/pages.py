"""Check of page checksums by pg_basebackup, while clients work."""

import re
import subprocess
from collections.abc import Iterator
from typing import Final

from storage.health.findings import Finding, Severity
from storage.relations import table_relations
from storage.server import installation
from storage.server.backups import programs
from storage.server.options import Options
from storage.sql import diagnosis

PART: Final = "pages"  # among those of the doctor
_DAMAGE: Final = re.compile(r'checksum verification failed in file "\./(.+?)/([0-9]+)[^/"]*", block ([0-9]+)')
_MORE: Final = re.compile(r"([0-9]+) total checksum verification failures")


def examine(options: Options) -> Iterator[Finding]:
    """Read all pages and yield findings about damaged ones."""
    if options.database_url:
        yield Finding(
            Severity.OK, "The database is not the embedded one. Examine its pages with pg_checksums."
        )
        return
    if not diagnosis.has_checksums():
        yield Finding(
            Severity.WARNING,
            "The pages have no checksums, so that damage is not noticed. Stop the server and add them:"
            f" pg_checksums --enable -D {options.data / 'database'}",
        )
        return
    lines = _read_all(options)
    damages = [match.groups() for line in lines if (match := _DAMAGE.search(line))]
    for folder, filenode, block in damages:
        yield _describe(folder, int(filenode), int(block))
    total = next((int(match[1]) for line in lines if (match := _MORE.search(line))), len(damages))
    if total > len(damages):
        yield Finding(Severity.ERROR, f"{total - len(damages)} more pages of these are damaged.")
    if not damages:
        reason = next((line for line in lines if "error:" in line), "")
        yield (
            Finding(Severity.ERROR, f"The pages could not be read: {reason}")
            if reason
            else Finding(Severity.OK, "All pages are as they were written.")
        )


def _read_all(options: Options) -> list[str]:
    """Read the whole database by a discarded base backup; return the program's messages."""
    program = installation.packaged_programs() / "pg_basebackup"
    done = subprocess.run(
        [program, "--pgdata=-", "--format=tar", "--wal-method=none", "--no-manifest", "--checkpoint=fast"],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        stdin=subprocess.DEVNULL,
        text=True,
        errors="replace",
        env=programs.environment(options),
    )
    return done.stderr.splitlines()


def _describe(folder: str, filenode: int, block: int) -> Finding:
    relation = None
    if folder == diagnosis.database_folder():
        relation = diagnosis.relation_of_file(filenode)
    if relation is None:
        return Finding(
            Severity.ERROR, f"Page {block} of the file {folder}/{filenode} is damaged. Restore a backup."
        )
    owner = table_relations.describe(relation.table)
    if relation.is_index:
        return Finding(
            Severity.ERROR,
            f"Page {block} of the index {relation.name} of {owner} is damaged: requests that use it answer 500. The"
            f' entities are intact. Make the index again: tablero pg psql -c "REINDEX INDEX {relation.name}"',
        )
    return Finding(
        Severity.ERROR,
        f"Page {block} of {owner} ({relation.table}) is damaged: requests that read it answer 500, and nothing else is"
        " affected. Restore the last backup into another folder, and take what is missing from there: see Damaged pages"
        " in docs/operations.md.",
    )
