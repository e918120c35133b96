"""All subjects, and what they contribute together. Code that needs a list of all asks here; there is no other list.

To add a subject: ``manage.py newsubject NAME SENTENCE`` makes its rooms and names it in SUBJECTS; declare in
``storage/NAME/subject.py`` what it contributes.
"""

from collections.abc import Iterator, Mapping
from functools import cache
from importlib import import_module
from typing import Any, Final

from storage.core.notices import Condition, NoticeKind, Severity
from storage.core.subject import Page, Periodic, Place, Subject
from storage.core.verbs import Act, Verb
from storage.domain.values.stored import make_stand_in

# from the bottom: each may stand on those before it
SUBJECTS: Final = (
    "activity",
    "accounts",
    "jobs",
    "people",
    "notices",
    "tables",
    "access",
    "links",
    "comments",
    "metrics",
    "requests",
    "entities",
    "queries",
    "history",
    "bulk_edit",
    "transfer",
    "snapshots",
    "compare",
    "account_files",
    "branches",
    "copies",
    "cluster",
    "replicas",
    "backups",
    "health",
    "undo",
    "manifest",
    "help",
    "home",
)


@cache
def subjects() -> tuple[Subject, ...]:
    """Return the declarations of all subjects, in their order."""
    return tuple(import_module(f"storage.{name}.subject").SUBJECT for name in SUBJECTS)


@cache
def verbs() -> Mapping[str, Verb]:
    """Return the verbs of the activity log by value."""
    return {str(verb): verb for subject in subjects() if subject.verbs for verb in subject.verbs}


def find_verb(value: str) -> Verb:
    """Return the verb of a stored value, or a stand-in, equal to none, for one that only a newer version knows."""
    return verbs().get(value) or make_stand_in(Verb, value, Act(value))


@cache
def notice_kinds() -> Mapping[str, NoticeKind]:
    """Return the kinds of notices by value."""
    return {str(kind): kind for subject in subjects() if subject.notices for kind in subject.notices}


def find_notice_kind(value: str) -> NoticeKind:
    """Return the kind of a stored value, or a stand-in, equal to none, for one that only a newer version knows."""
    condition = Condition(value, "", "", Severity.WARNING, "", "")
    return notice_kinds().get(value) or make_stand_in(NoticeKind, value, condition)


def jobs() -> list[str]:
    """Return the paths of all kinds of jobs."""
    return [path for subject in subjects() for path in subject.jobs]


def periodic() -> Iterator[Periodic]:
    for subject in subjects():
        yield from subject.periodic


def tidying() -> dict[str, str]:
    """Return the paths of functions that delete old records, by the name of what they delete."""
    return {name: path for subject in subjects() for name, path in subject.tidying.items()}


def api_modules() -> Iterator[Any]:
    """Import the modules with the views and paths of the management API that rooms have."""
    return _modules("api")


def key_followers() -> Iterator[Any]:
    """Import the modules that move what belongs to entities whose keys are changed."""
    return _modules("key_follower")


def _modules(field: str) -> Iterator[Any]:
    for subject in subjects():
        if path := getattr(subject, field):
            yield import_module(path)


def daily() -> list[str]:
    """Return the paths of functions that delete old records once a day."""
    return [path for subject in subjects() for path in subject.daily]


@cache
def pages(place: Place) -> tuple[Page, ...]:
    """Return the pages of a place in their order."""
    wanted = (page for subject in subjects() for page in subject.pages if page.place is place)
    return tuple(sorted(wanted, key=lambda page: page.position))
