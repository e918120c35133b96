"""Meaning of a SAS token as codes, per parameter and in total; callers provide the texts."""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from storage.domain.access.grants import Operation
from storage.domain.access.policies import AccessPolicy
from storage.domain.errors import AuthorizationServiceMismatch
from storage.domain.sas.terms import derive_grant, validity_period
from storage.domain.sas.tokens import PARAMETERS, AccountSas, TableSas, is_well_formed


class Meaning(StrEnum):
    """Meaning of a SAS parameter; values are the parameter names."""

    VERSION = "sv"
    TABLE = "tn"
    SERVICES = "ss"
    RESOURCE_TYPES = "srt"
    PERMISSIONS = "sp"
    START = "st"
    EXPIRY = "se"
    ADDRESS = "sip"
    PROTOCOL = "spr"
    IDENTIFIER = "si"
    START_PARTITION = "spk"
    START_ROW = "srk"
    END_PARTITION = "epk"
    END_ROW = "erk"
    ENCRYPTION_SCOPE = "ses"
    SIGNATURE = "sig"
    UNKNOWN = ""  # not covered by the signature


_MEANINGS: Final = {meaning.value: meaning for meaning in Meaning if meaning is not Meaning.UNKNOWN}
# parameters whose value is a set of letters
_LETTERS: Final = frozenset({"ss", "srt", "sp"})


@dataclass(frozen=True, slots=True)
class ExplainedParameter:
    """SAS parameter with the letters of its value; a malformed one invalidates the token."""

    name: str
    value: str
    meaning: Meaning
    letters: tuple[str, ...] = ()
    is_well_formed: bool = True


def explain(pairs: Iterable[tuple[str, str]]) -> list[ExplainedParameter]:
    """Explain the decoded parameters of a URL in order, even if they do not form a token."""
    sent = list(pairs)
    names = {name for name, value in sent if value}
    kind = AccountSas if {"ss", "srt"} <= names else TableSas
    return [_explain(kind, name, value) for name, value in sent]


def _explain(kind: type[TableSas] | type[AccountSas], name: str, value: str) -> ExplainedParameter:
    if name == "sig":
        return ExplainedParameter(name, value, Meaning.SIGNATURE)
    if name not in PARAMETERS[kind]:
        # a parameter of the other kind is refused, an unknown one is ignored
        return ExplainedParameter(
            name, value, _MEANINGS.get(name, Meaning.UNKNOWN), is_well_formed=name not in _MEANINGS
        )
    letters = tuple(value) if name in _LETTERS else ()
    return ExplainedParameter(name, value, _MEANINGS[name], letters, is_well_formed(kind, name, value))


# operations that together need every permission, in display order
ABILITIES: Final = (
    Operation.QUERY_ENTITIES,
    Operation.INSERT_ENTITY,
    Operation.UPDATE_ENTITY,
    Operation.INSERT_OR_REPLACE_ENTITY,
    Operation.DELETE_ENTITY,
    Operation.QUERY_TABLES,
    Operation.CREATE_TABLE,
    Operation.DELETE_TABLE,
    Operation.GET_SERVICE_PROPERTIES,
    Operation.SET_SERVICE_PROPERTIES,
)


@dataclass(frozen=True, slots=True)
class KeyLimits:
    """First and last key within reach of a token, as in its fields; empty means unbounded."""

    start_partition: str = ""
    start_row: str = ""
    end_partition: str = ""
    end_row: str = ""


@dataclass(frozen=True, slots=True)
class TokenSummary:
    """Summary of a token combined with its policy."""

    abilities: tuple[Operation, ...]
    table: str
    keys: KeyLimits
    start: int | None
    expiry: int | None
    is_https_only: bool
    address: str


def summarize(token: TableSas | AccountSas, terms: AccessPolicy) -> TokenSummary:
    """Summarize a token; ``terms`` combines the token's fields with its policy, as far as that is known."""
    start, expiry = validity_period(terms)
    of_table = token if isinstance(token, TableSas) else None
    return TokenSummary(
        list_abilities(token, terms),
        of_table.table if of_table else "",
        KeyLimits(of_table.start_partition, of_table.start_row, of_table.end_partition, of_table.end_row)
        if of_table
        else KeyLimits(),
        start,
        expiry,
        token.protocol == "https",
        token.address,
    )


def list_abilities(token: TableSas | AccountSas, terms: AccessPolicy) -> tuple[Operation, ...]:
    """List the permitted actions of a token, by the rules for its requests."""
    try:
        grant = derive_grant(token, terms)
    except AuthorizationServiceMismatch:
        return ()
    return tuple(operation for operation in ABILITIES if grant.allows(operation, grant.table))
