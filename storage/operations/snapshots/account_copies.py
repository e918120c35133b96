"""Copy an account, optionally to the other kind, after reporting what does not fit."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from storage.domain.access.actor import SERVER, Actor
from storage.domain.entities.entity import Entity, EntityKey, read_stored
from storage.domain.entities.fits import Misfit, find_misfit
from storage.domain.errors import StorageError
from storage.domain.filters.query import EntityQuery
from storage.domain.refusals import Reason
from storage.domain.service.activity import Verb
from storage.domain.values.kinds import AccountKind
from storage.domain.values.names import fold_table_name
from storage.models import Account, Table
from storage.operations.accounts.accounts import NewAccount
from storage.operations.accounts.refusals import AccountError
from storage.operations.entities import entities
from storage.operations.snapshots import account_building, sides
from storage.operations.snapshots.account_building import BuiltAccount
from storage.operations.snapshots.sides import Side, SideTable
from storage.operations.tables import tables
from storage.sql import django as sql
from storage.sql import entities as statements
from storage.sql.relations import relation_of


@dataclass(frozen=True, slots=True)
class Finding:
    """What does not fit: ``number`` entities of a table with ``example`` among them, or the table itself (0)."""

    misfit: Misfit
    table: str
    number: int = 0
    example: EntityKey | None = None


class CopyRefused(AccountError):
    """Not everything fits, and nothing was copied."""

    def __init__(self, findings: Sequence[Finding]) -> None:
        super().__init__(Reason.COPY_DOES_NOT_FIT)
        self.findings = findings


def check(source: Account, kind: AccountKind) -> list[Finding]:
    """Find what would not fit, or be left out, in a copy of this kind; reads all entities if that is another one."""
    if kind == source.kind:
        return []
    side = sides.live(source)
    return [*_check_tables(side, kind), *(it for table in side.tables.values() for it in _check(table, kind))]


def copy(
    source: Account,
    name: str,
    kind: AccountKind,
    *,
    skip: bool = False,
    by: Actor = SERVER,
    request_digest: str = "",
) -> BuiltAccount:
    """Copy the tables of an account to a new one, which refuses requests until all are there.

    What does not fit is left out if ``skip``; else raises CopyRefused. In a copy of the same kind, Timestamps stay;
    in another they are those of the copy. What is written to the source meanwhile may or may not be copied.
    """
    side = sides.live(source)
    # entities that do not fit are found again while they are copied
    findings = _check_tables(side, kind) if skip else check(source, kind)
    findings = [it for it in findings if it.misfit is not Misfit.POLICIES]
    if findings and not skip:
        raise CopyRefused(findings)
    refused = {it.table for it in findings if not it.number}
    found = [it for it in side.tables.values() if it.name not in refused]
    new = replace(NewAccount.like(source), kind=kind, request_digest=request_digest)
    with account_building.building(Verb.ACCOUNT_CREATE, name, new, by=by) as operation:
        account = operation.account
        is_same = side.kind is kind
        counts = [
            account_building.copy_table(it, account, EntityQuery())[1]
            if is_same and it.capabilities.joins_partitions
            else _convert(it, account, by)
            for it in found
        ]
        account_building.release(operation, enabled=True)
    return BuiltAccount(account, len(counts), sum(counts))


def _convert(source: SideTable, account: Account, by: Actor) -> int:
    """Copy a table entity by entity, those that fit."""
    made = tables.create(account.pk, source.name, by=by, description=source.description, tags=source.tags)
    count = 0
    for page in _pages(source):
        fitting = [entity for entity in page if find_misfit(entity, AccountKind(account.kind)) is None]
        for statement in statements.insert_all(relation_of(made), fitting):
            sql.run(statement)
        count += len(fitting)
    return count


def _check(table: SideTable, kind: AccountKind) -> list[Finding]:
    numbers: Counter[Misfit] = Counter()
    examples: dict[Misfit, EntityKey] = {}
    for page in _pages(table):
        for entity in page:
            misfit = find_misfit(entity, kind)
            if misfit is not None:
                numbers[misfit] += 1
                examples.setdefault(misfit, entity.key)
    return [Finding(it, table.name, number, examples[it]) for it, number in numbers.items()]


def _check_tables(side: Side, kind: AccountKind) -> list[Finding]:
    found, seen = [], set()
    for table in side.tables.values():
        try:
            folded = fold_table_name(table.name, kind)
        except StorageError:
            found.append(Finding(Misfit.TABLE_NAME, table.name))
            continue
        if folded in seen:
            found.append(Finding(Misfit.TABLE_CASE, table.name))
        seen.add(folded)
        if kind is AccountKind.COSMOS and table.policies:
            found.append(Finding(Misfit.POLICIES, table.name))
    return found


def _pages(source: SideTable) -> Iterator[list[Entity]]:
    assert isinstance(source.table, Table)
    for page in entities.all_pages(source.table, EntityQuery()):
        yield [read_stored(stored) for stored in page]
