"""Copy an account, optionally to the other kind, after reporting what does not fit."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from django.db import transaction

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
from storage.operations.counting import totals
from storage.operations.entities import entities
from storage.operations.snapshots import account_building
from storage.operations.tables import tables
from storage.sql import copying
from storage.sql import django as sql
from storage.sql import entities as statements
from storage.sql.distribution import capabilities_of
from storage.sql.relations import relation_of


@dataclass(frozen=True, slots=True)
class Finding:
    """What does not fit: ``number`` entities of a table with ``example`` among them, or the table itself (0)."""

    misfit: Misfit
    table: str
    number: int = 0
    example: EntityKey | None = None


@dataclass(frozen=True, slots=True)
class Copied:
    account: Account
    tables: int
    entities: int


class CopyRefused(AccountError):
    """Not everything fits, and nothing was copied."""

    def __init__(self, findings: Sequence[Finding]) -> None:
        super().__init__(Reason.COPY_DOES_NOT_FIT)
        self.findings = findings


def check(source: Account, kind: AccountKind) -> list[Finding]:
    """Find what would not fit, or be left out, in a copy of this kind; reads all entities if that is another one."""
    if kind == source.kind:
        return []
    found = _check_tables(source, kind)
    for table in _tables(source):
        numbers: Counter[Misfit] = Counter()
        examples: dict[Misfit, EntityKey] = {}
        for page in _pages(table):
            for entity in page:
                misfit = find_misfit(entity, kind)
                if misfit is not None:
                    numbers[misfit] += 1
                    examples.setdefault(misfit, entity.key)
        found += [Finding(it, table.name, number, examples[it]) for it, number in numbers.items()]
    return found


def copy(
    source: Account,
    name: str,
    kind: AccountKind,
    *,
    skip: bool = False,
    by: Actor = SERVER,
    request_digest: str = "",
) -> Copied:
    """Copy the tables of an account to a new one, which refuses requests until all are there.

    What does not fit is left out if ``skip``; else raises CopyRefused. In a copy of the same kind, Timestamps stay;
    in another they are those of the copy. What is written to the source meanwhile may or may not be copied.
    """
    # entities that do not fit are found again while they are copied
    findings = _check_tables(source, kind) if skip else check(source, kind)
    findings = [it for it in findings if it.misfit is not Misfit.POLICIES]
    if findings and not skip:
        raise CopyRefused(findings)
    refused = {it.table for it in findings if not it.number}
    with account_building.building(
        Verb.ACCOUNT_CREATE,
        name,
        replace(NewAccount.like(source), kind=kind, request_digest=request_digest),
        by=by,
    ) as operation:
        account = operation.account
        copied = [_copy_table(table, account, by) for table in _tables(source) if table.name not in refused]
        account_building.release(operation, enabled=True)
    return Copied(account, len(copied), sum(copied))


def describe(account: Account) -> Copied:
    """Return a copy as ``copy`` does, with estimates of what it has now."""
    found = totals.contents([account.pk]).get(account.pk)
    return Copied(account, found.tables if found else 0, found.entities if found else 0)


def _copy_table(source: Table, account: Account, by: Actor) -> int:
    kind = AccountKind(account.kind)
    if kind == source.account.kind and capabilities_of(source).joins_partitions:
        with transaction.atomic():
            _, count = tables.create_filled(
                account,
                source,
                lambda target: sql.walk(copying.fill(relation_of(source), target, EntityQuery())),
            )
        return count
    table = tables.create(account.pk, source.name, by=by, description=source.description, tags=source.tags)
    count = 0
    for page in _pages(source):
        fitting = [entity for entity in page if find_misfit(entity, kind) is None]
        for statement in statements.insert_all(relation_of(table), fitting):
            sql.run(statement)
        count += len(fitting)
    return count


def _check_tables(source: Account, kind: AccountKind) -> list[Finding]:
    found, seen = [], set()
    for table in _tables(source):
        try:
            folded = fold_table_name(table.name, kind)
        except StorageError:
            found.append(Finding(Misfit.TABLE_NAME, table.name))
            continue
        if folded in seen:
            found.append(Finding(Misfit.TABLE_CASE, table.name))
        seen.add(folded)
        if kind is AccountKind.COSMOS and table.policies.exists():
            found.append(Finding(Misfit.POLICIES, table.name))
    return found


def _tables(account: Account) -> list[Table]:
    return list(Table.objects.own().filter(account=account).select_related("account").order_by("folded_name"))


def _pages(table: Table) -> Iterator[list[Entity]]:
    for page in entities.all_pages(table, EntityQuery()):
        yield [read_stored(stored) for stored in page]
