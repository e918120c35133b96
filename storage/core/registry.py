"""Registry of all subjects and of their combined contributions; code that needs a list of all reads it from here.

Optional subjects can be left out of a server. They then contribute only what stored values need: the
sentences of activities and the texts of notices.

To add a subject: ``manage.py newsubject NAME SENTENCE`` makes its folders and adds it to SUBJECTS; declare
its contributions in ``storage/NAME/subject.py``.
"""

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import replace
from functools import cache
from importlib import import_module
from typing import Any, Final, TypeVar

from storage.core.notices import Condition, NoticeKind, Severity
from storage.core.relation_forms import LOCAL, RelationForm
from storage.core.subject import (
    AccountSection,
    Command,
    Examination,
    Hook,
    JobTitle,
    Key,
    Page,
    Part,
    Periodic,
    Place,
    Slot,
    Subject,
    Word,
)
from storage.core.verbs import Act, Undo, Verb
from storage.domain.refusals import AnyReason, Reason, Refusal
from storage.domain.values.stored import make_stand_in

T = TypeVar("T")

# from the bottom: each may stand on those before it
SUBJECTS: Final = (
    "activity",
    "health",
    "jobs",
    "accounts",
    "people",
    "metrics",
    "tables",
    "notices",
    "access",
    "links",
    "presence",
    "history",
    "requests",
    "rehearsal",
    "entities",
    "design",
    "comments",
    "queries",
    "bulk_edit",
    "transfer",
    "snapshots",
    "undo",
    "compare",
    "account_files",
    "branches",
    "copies",
    "cluster",
    "replicas",
    "tracing",
    "backups",
    "manifest",
    "help",
    "home",
)


@cache
def subjects() -> tuple[Subject, ...]:
    """Return the declarations of all subjects, in order."""
    return tuple(import_module(f"storage.{name}.subject").SUBJECT for name in SUBJECTS)


_left_out: frozenset[str] = frozenset()


def optional_names() -> list[str]:
    """Return the names of optional subjects."""
    return [subject.name for subject in subjects() if subject.is_optional]


def leave_out(names: Collection[str]) -> None:
    """Leave optional subjects out of this process; must be called at its start, before any other function here."""
    global _left_out
    _left_out = frozenset(names)
    for cached in (present, notice_kinds, hooks, words, pages, parts, keys, missing_documents):
        cached.cache_clear()


@cache
def present() -> tuple[Subject, ...]:
    """Return the declarations of the subjects enabled in this process."""
    return tuple(subject for subject in subjects() if subject.name not in _left_out)


def left_out() -> frozenset[str]:
    """Return the names of the subjects disabled in this process."""
    return _left_out


def _has(path: str) -> bool:
    """Return whether a dotted path is outside the left-out subjects."""
    return path.split(".")[1] not in _left_out


@cache
def verbs() -> Mapping[str, Verb]:
    """Return the verbs of the activity log by stored value."""
    return {str(verb): verb for subject in subjects() if subject.verbs for verb in subject.verbs}


@cache
def verbs_of_entities() -> tuple[Verb, ...]:
    """Return the verbs whose activities list their entities."""
    return tuple(verb for verb in verbs().values() if verb.act.has_entities)


@cache
def marked_verbs() -> tuple[Verb, ...]:
    """Return the verbs that charts mark, as they may explain a change in the figures."""
    return tuple(verb for verb in verbs().values() if verb.act.is_marked)


def find_verb(value: str) -> Verb:
    """Return the verb of a stored value; for one from a newer version, a stand-in that equals no verb."""
    return verbs().get(value) or make_stand_in(Verb, value, Act(value))


def undo_of(verb: Verb) -> Undo | None:
    """Return how an activity is undone; None if it cannot be, or if the subject of its undo is left out."""
    undo = verb.act.undo
    return undo if undo is not None and _has(undo.do or undo.request) else None


@cache
def _declared_notice_kinds() -> Mapping[str, NoticeKind]:
    return {str(kind): kind for subject in subjects() if subject.notices for kind in subject.notices}


@cache
def notice_kinds() -> Mapping[str, NoticeKind]:
    """Return the kinds of notices by value."""
    kept = {subject.notices for subject in present()}
    return {value: kind for value, kind in _declared_notice_kinds().items() if type(kind) in kept}


def find_notice_kind(value: str) -> NoticeKind:
    """Return the notice kind of a stored value; for one from a newer version, a stand-in that equals no kind."""
    condition = Condition(value, "", "", Severity.WARNING, "", "")
    return _declared_notice_kinds().get(value) or make_stand_in(NoticeKind, value, condition)


def jobs() -> list[str]:
    """Return the dotted paths of all job kinds."""
    return [path for subject in present() for path in subject.jobs]


@cache
def job_titles() -> Mapping[str, JobTitle]:
    """Return the titles of job kinds by stored kind."""
    return {kind: title for subject in subjects() for kind, title in subject.job_titles.items()}


def periodic() -> Iterator[Periodic]:
    for subject in present():
        yield from subject.periodic


def tidying() -> dict[str, str]:
    """Return the dotted paths of clean-up functions by the name of the records."""
    return {name: path for subject in present() for name, path in subject.tidying.items()}


def api_modules() -> Iterator[Any]:
    """Import the management API modules of all subjects."""
    return _modules("api")


def key_followers() -> Iterator[Any]:
    """Import the modules that follow changes of entity keys."""
    return _modules("key_follower")


def _modules(field: str) -> Iterator[Any]:
    for subject in present():
        if path := getattr(subject, field):
            yield import_module(path)


def daily() -> list[str]:
    """Return the dotted paths of daily clean-up functions."""
    return [path for subject in present() for path in subject.daily]


def urls() -> list[str]:
    """Return the paths of the URL modules of pages."""
    return [path for subject in present() for path in subject.urls]


def scripts(name: str) -> list[str]:
    """Return the scripts that other subjects add to a script, by their names in static/console."""
    return [subject.scripts[name] for subject in present() if name in subject.scripts]


@cache
def pages(place: Place) -> tuple[Page, ...]:
    """Return the pages of a navigation place, in order."""
    wanted = (page for subject in present() for page in subject.pages if page.place is place)
    return tuple(sorted(wanted, key=lambda page: page.position))


@cache
def parts(slot: Slot) -> tuple[Part, ...]:
    """Return the templates of subjects for a slot of a page, in order."""
    filling = (part for subject in present() for part in subject.parts if part.slot is slot)
    return tuple(sorted(filling, key=lambda part: part.position))


@cache
def hooks(hook: Hook) -> tuple[Callable[..., Any], ...]:
    """Import the functions of subjects for a hook."""
    paths = (subject.hooks[hook] for subject in present() if hook in subject.hooks)
    parted = (path.rpartition(".") for path in paths)
    return tuple(getattr(import_module(module), name) for module, _, name in parted)


def first_answer(hook: Hook, *arguments: object) -> Any:
    """Return what the first subject answers that has an answer for a hook; None without one."""
    answers = (answer(*arguments) for answer in hooks(hook))
    return next((it for it in answers if it is not None), None)


@cache
def words() -> Mapping[str, Word]:
    """Return the declared words in sentences of activities; words of left-out subjects have no link."""
    kept = present()
    return {
        word.name: word if subject in kept else replace(word, url="")
        for subject in subjects()
        for word in subject.words
    }


@cache
def keys() -> tuple[Key, ...]:
    """Return the console's keyboard commands declared by subjects."""
    return tuple(key for subject in present() for key in subject.keys)


@cache
def reasons() -> Mapping[str, AnyReason]:
    """Return all refusal reasons by their stored names."""
    declared = (reason for subject in subjects() for reason in subject.reasons or ())
    return {reason.name: reason for reason in (*Reason, *declared)}


def read_refusal(text: str) -> Refusal:
    """Parse a stored refusal; other text counts as a sentence of an older version."""
    return Refusal.load(text, reasons())


@cache
def relation_forms() -> tuple[RelationForm, ...]:
    """Return all relation forms except the local one, including those of left-out subjects."""
    return tuple(form for subject in subjects() for form in subject.relation_forms)


def new_form_of(account: object) -> RelationForm:
    """Return the relation form for new tables of an account, by its columns."""
    for form in relation_forms():
        if getattr(account, form.account_column):
            return form
    return LOCAL


def form_of(table: object) -> RelationForm:
    """Return the relation form of a table, by its columns."""
    for form in relation_forms():
        if getattr(table, form.column):
            return form
    return LOCAL


def examinations() -> list[Examination]:
    """Return the `doctor` examinations of subjects."""
    return [part for subject in present() for part in subject.examinations]


def account_sections() -> Mapping[str, AccountSection]:
    """Return the subjects' sections of the account settings page by name."""
    return {section.name: section for subject in present() for section in subject.account_sections}


def commands() -> list[Command]:
    """Return the management commands of subjects."""
    return [command for subject in present() for command in subject.commands]


def insert_after(after: str, name: str, value: T, values: Mapping[str, T]) -> dict[str, T]:
    """Insert a named value, which a subject declares, behind another one."""
    items = list(values.items())
    items.insert(list(values).index(after) + 1, (name, value))
    return dict(items)


def options_of(names: Collection[str]) -> dict[str, str]:
    """Return the subjects that own these environment variables, by variable."""
    return {
        option: subject.name
        for subject in subjects()
        if subject.name in names
        for option in (*subject.options, *(variable.name for variable in subject.variables))
    }


@cache
def missing_documents() -> frozenset[str]:
    """Return the documents whose subjects are all left out."""
    declared = {name for subject in subjects() for name in subject.documents}
    return frozenset(declared - {name for subject in present() for name in subject.documents})
