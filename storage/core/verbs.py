"""Verbs of the activity log, as subjects declare them: the action, its sentence, and its undo.

An operation records its verb in the same transaction, without secrets, and passes the data for an undo as
``before`` and ``after``. Changes of entities are in the history; their activity has the count, the first
keys, and a reference to them.
"""

from dataclasses import dataclass
from enum import StrEnum
from typing import Self

from storage.domain.access.roles import Capability
from storage.domain.translation import Plural


class Group(StrEnum):
    """Group of the activity filter; the values appear in URLs."""

    ENTITIES = "entities"
    TABLES = "tables"
    QUERIES = "queries"
    COMMENTS = "comments"
    ACCESS = "access"
    SNAPSHOTS = "snapshots"
    SETTINGS = "settings"
    PEOPLE = "people"


@dataclass(frozen=True, slots=True)
class Undo:
    """Undo of an activity."""

    # the path of a function that takes the activity and the actor who undoes it, and returns the new activity, or
    # None if something else has had the same effect
    do: str = ""
    capability: Capability | None = None  # that a member needs in the account; None: only admins may
    changes_catalog: bool = False  # every process has to learn of it
    # instead, the path of a function that takes the activity and returns the job that undoes it
    request: str = ""
    is_alone: bool = False  # in the console only, one at a time


@dataclass(frozen=True, slots=True)
class Act:
    """Declaration of a verb; ``value`` is ``subject.action``."""

    value: str
    group: Group = Group.SETTINGS
    icon: str = ""
    sentence: str = ""
    several: Plural | None = None  # replaces the sentence if several entities were changed
    undone: Plural | str = ""  # reports an undo that had this effect; without it, the report is a general one
    undo: Undo | None = None  # None: it cannot be undone
    has_entities: bool = False  # the log of an account lists its entities with it
    is_marked: bool = False  # charts mark it


class Verb(StrEnum):
    """Kind of activity; each subject has an enumeration of its own. The values are stored and never change."""

    act: Act

    def __new__(cls, act: Act) -> Self:
        verb = str.__new__(cls, act.value)
        verb._value_ = act.value
        verb.act = act
        return verb

    @property
    def subject(self) -> str:
        """Return the type of the changed object, such as account, table, entity or sas."""
        return self.partition(".")[0]
