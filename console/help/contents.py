"""Table of contents of the documentation, by task, translated."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from django.urls import reverse
from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _
from django.utils.translation import override, pgettext_lazy

from console.help import documents
from storage.core import registry


@dataclass(frozen=True, slots=True)
class Entry:
    """Document by file name without .md; docs/README.md has the same list for code hosts."""

    name: str
    title: Promise
    description: Promise

    @property
    def original_title(self) -> str:
        """Return the untranslated title of the document."""
        with override("en"):
            return str(self.title)


@dataclass(frozen=True, slots=True)
class Group:
    title: Promise
    icon: str
    entries: Sequence[Entry]


_OWN: Final = (
    Group(
        _("First steps"),
        "rocket",
        (
            Entry(
                "getting-started", _("Getting started"), _("Run a server, connect an SDK, open the console.")
            ),
            Entry("console", _("Console guide"), _("Tables, queries, editing, conflicts, undo and people.")),
            Entry(
                "testing",
                _("In your tests"),
                _("Fixtures for pytest, a server for Node, fresh data for each test."),
            ),
        ),
    ),
    Group(
        _("Work with data"),
        "table-2",
        (
            Entry(
                "migration",
                _("Coming from Azurite and Azure"),
                _("Copy tables from another service, keep them in step, and copy back."),
            ),
            Entry(
                "transfer",
                _("Import and export"),
                _("Move files into and out of tables; types and rejected rows."),
            ),
            Entry("bulk-edit", _("Bulk edit"), _("Change, move or delete every entity that a query finds.")),
            Entry(
                "history",
                _("History"),
                _("Review and undo changes; how long they are kept and what they cost."),
            ),
            Entry(
                "snapshots",
                _("Snapshots and branches"),
                _("Keep, restore and branch an account; mask personal data."),
            ),
            Entry("change-feed", _("Change feed"), _("Follow changes as they happen, from any language.")),
        ),
    ),
    Group(
        _("Access and people"),
        "users",
        (
            Entry(
                "access", _("Access"), _("Accounts, keys, shared access signatures, bearer tokens and roles.")
            ),
            Entry("security", _("Security"), _("Threats, sessions, cryptography, records, and OWASP ASVS.")),
            Entry(
                "collaboration", _("Working together"), _("Presence, live changes, short links and comments.")
            ),
            Entry(
                "notices", _("Notices"), _("What needs attention, in the console, by webhook and by e-mail.")
            ),
        ),
    ),
    Group(
        _("Run a server"),
        "settings",
        (
            Entry(
                "service",
                _("As a service"),
                _("Under systemd, in containers and Kubernetes, behind nginx and Caddy."),
            ),
            Entry(
                "operations",
                pgettext_lazy("document", "Operations"),
                _("Data folder, backups, upgrades, workers, external PostgreSQL."),
            ),
            Entry("options", _("Options"), _("Every option of the server and every environment variable.")),
            Entry("request-log", _("Request log"), _("Why a request was refused, failed or slow.")),
            Entry(
                "metrics",
                _("Metrics"),
                _("Traffic, errors, latency and sizes over time; dashboard and alerts."),
            ),
            Entry("tracing", _("OpenTelemetry"), _("Send traces and metrics to a collector.")),
            Entry(
                "releases",
                _("Releases"),
                _("What stays stable and for how long, upgrades, verified downloads."),
            ),
            Entry(
                "reliability",
                _("Reliability"),
                _("What is promised, and the command that proves each promise."),
            ),
        ),
    ),
    Group(
        _("Reference"),
        "book-open",
        (
            Entry(
                "infrastructure",
                _("Infrastructure as code"),
                _("Declare accounts, tables, policies and members in a file; plan and apply it."),
            ),
            Entry(
                "management-api",
                _("Management API"),
                _("Manage accounts, tables and tokens from scripts; recipes for CI."),
            ),
            Entry(
                "compatibility",
                _("Compatibility"),
                _("What the service supports, its limits, and how it differs from Azure."),
            ),
            Entry("comparison", _("Comparison"), _("Tablero, Azurite, Azure and the emulator of Cosmos DB.")),
            Entry("performance", _("Performance"), _("Measurements, and how to repeat them.")),
            Entry("architecture", _("Architecture"), _("Layers, flows and a code map, for contributors.")),
            Entry("glossary", _("Glossary"), _("Terms used in the code, the console and the documents.")),
        ),
    ),
)


def _with_declared(entries: Sequence[Entry]) -> Iterator[Entry]:
    """Yield entries, each followed by the entries that subjects declare after it."""
    for entry in entries:
        yield entry
        following = [
            Entry(it.name, _(it.title), _(it.description))
            for subject in registry.subjects()
            for it in subject.help_entries
            if it.after == entry.name
        ]
        yield from _with_declared(following)


GROUPS: Final = tuple(replace(group, entries=tuple(_with_declared(group.entries))) for group in _OWN)


@dataclass(frozen=True, slots=True)
class Place:
    """Document or section; a section has an anchor and the document's title."""

    title: str
    name: str
    anchor: str = ""
    within: str = ""

    @property
    def address(self) -> str:
        return reverse("help:document", args=(self.name,), fragment=self.anchor or None)


def groups() -> list[Group]:
    """Return the documents by task, without those of left-out subjects."""
    left_out = registry.missing_documents()
    all_groups = (
        replace(group, entries=[entry for entry in group.entries if entry.name not in left_out])
        for group in GROUPS
    )
    return [group for group in all_groups if group.entries]


def entries() -> Mapping[str, Entry]:
    """Return the documents by name, in order."""
    return {entry.name: entry for group in groups() for entry in group.entries}


def places() -> Iterator[Place]:
    """Yield the searchable places: all documents, then their sections."""
    for name, entry in entries().items():
        original = entry.original_title
        yield Place(str(entry.title), name, within=original if original != str(entry.title) else "")
    for name, entry in entries().items():
        for section in documents.sections(name):
            yield Place(section.title, name, section.anchor, str(entry.title))
