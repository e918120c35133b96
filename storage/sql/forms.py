"""Relation forms in SQL: names of relations, and their capabilities.

A relation of a form other than the local one has a different name, so that a process that still takes its
table for a local one does not find it: it would record changes where no reader looks. Everything else follows
from the name, the ``Capabilities`` of the relation.
"""

import re
from typing import Final, Protocol

from storage.core import registry
from storage.core.relation_forms import LOCAL, Ability, Capabilities, RelationForm

DELETED: Final = "deleted_"  # the beginning of the name of a soft-deleted relation
OWN: Final = "_history"  # the end of the name of a relation's own history
_LOCAL_PREFIX: Final = LOCAL.prefix
_LOCAL_CAPABILITIES: Final = LOCAL.capabilities
OTHERS: Final = registry.relation_forms()  # than the local one
EXTENSIONS: Final = tuple(form.extension for form in OTHERS if form.extension is not None)


class HasRelation(Protocol):
    """Table with its id and relation form."""

    @property
    def pk(self) -> int: ...

    @property
    def form(self) -> RelationForm: ...


def relation_name(table_id: int) -> str:
    """Return the relation name of a local table."""
    return LOCAL.relation(table_id)


def relation_of_row(table: str) -> str:
    """Return SQL for the relation name of a storage_table row."""
    prefix = by_form(table, "prefix", f"'{LOCAL.prefix}'", is_quoted=True)
    return f"{prefix} || {table}.id"


def by_form(table: str, member: str, otherwise: str, *, is_quoted: bool = False) -> str:
    """Return SQL for a form's member, a text or column name, of a storage_table row."""
    cases = ""
    for form in OTHERS:
        value = getattr(form, member)
        cases += f" WHEN {table}.{form.column} THEN " + (f"'{value}'" if is_quoted else f"{table}.{value}")
    return f"CASE{cases} ELSE {otherwise} END" if cases else otherwise


def has_other_form(table: str) -> str:
    """Return the condition that a storage_table row's relation is not local."""
    return f"({' OR '.join(f'{table}.{form.column}' for form in OTHERS) or 'false'})"


def lacking(table: str, ability: Ability) -> str:
    """Return SQL for the index in OTHERS of a table's form if it lacks an ability; else null."""
    forms = [(place, form) for place, form in enumerate(OTHERS) if ability in form.lacks]
    cases = "".join(f" WHEN {table}.{form.column} THEN {place}" for place, form in forms)
    return f"CASE{cases} END" if cases else "null"


def form_of_relation(relation: str) -> RelationForm:
    """Return the form of a relation by its name, also after its deletion."""
    relation = relation.removeprefix(DELETED)
    if not relation.startswith(LOCAL.prefix):
        for form in OTHERS:
            if relation.startswith(form.prefix):
                return form
    return LOCAL


def capabilities(relation: str) -> Capabilities:
    if relation.startswith(_LOCAL_PREFIX):  # each statement asks
        return _LOCAL_CAPABILITIES
    return form_of_relation(relation).capabilities


def table_id_of(relation: str) -> str:
    """Return the table id in a relation name, as text."""
    for form in OTHERS:
        relation = relation.removeprefix(form.prefix)
    return relation.removeprefix(LOCAL.prefix)


_ELSEWHERE: Final = [
    # begins with letters, which are found ten times as fast as a word boundary
    (form.prefix, re.compile(rf"{form.prefix}[0-9]"))
    for form in OTHERS
    if form.watch
]


def waits_elsewhere(text: str) -> bool:
    """Return whether a statement accesses relations on other servers, so that it may have to wait for them."""
    for prefix, named in _ELSEWHERE:  # noqa: SIM110  each statement asks, and any() would take twice as long
        if prefix in text and named.search(text) is not None:
            return True
    return False


def history_of(relation: str) -> str:
    """Return the name of a relation's own history, which is colocated with it."""
    return relation + OWN


def locally(ddl: str) -> str:
    """Wrap DDL of functions or views so that extensions do not propagate it."""
    for extension in EXTENSIONS:
        settings = extension.ddl_settings
        before = "".join(f"SET LOCAL {name} = {value}; " for name, value in settings.items())
        ddl = before + ddl + "".join(f"; SET LOCAL {name} TO DEFAULT" for name in settings)
    return ddl
