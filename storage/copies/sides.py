"""Sides of a copy: an account of this server, another service, or an Azurite file."""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import UTC, datetime
from http import HTTPStatus
from itertools import groupby, islice
from typing import Any, Final, NamedTuple, Protocol, TypeVar

from django.utils import timezone

from storage.access import policies
from storage.accounts import accounts, service_properties
from storage.domain.access.actor import Actor
from storage.domain.access.policies import SignedIdentifier
from storage.domain.entities.entity import (
    Entity,
    EntityKey,
    StoredEntity,
    check_size,
    encode_entity_key,
    read_stored,
)
from storage.domain.entities.members import read_properties
from storage.domain.errors import (
    EntityAlreadyExists,
    InvalidInput,
    PropertiesNeedValue,
    ResourceNotFound,
    StorageError,
)
from storage.domain.filters.parser import parse
from storage.domain.filters.query import EntityQuery, Position
from storage.domain.service_properties.properties import ServiceProperties
from storage.domain.values.dialects import Dialect
from storage.domain.values.edm import write_datetime
from storage.domain.values.kinds import AccountKind
from storage.domain.values.names import check_entity_key
from storage.domain.values.ticks import to_ticks
from storage.entities import entities
from storage.entities.writing import WriteMode, WriteResult, write_images, write_many
from storage.jobs.kinds import Failure
from storage.models import Account, Table
from storage.relations import history
from storage.remote.azurite import AzuriteFile
from storage.remote.client import (
    TRANSACTION_BYTES,
    TRANSACTION_ENTITIES,
    FeedEnded,
    RemoteRefused,
    TableClient,
)
from storage.sql.relations import relation_of
from storage.sql.restoring import Image
from storage.tables import tables

T = TypeVar("T")

_PAGE: Final = 1000  # entities
_SHOWN: Final = 1024  # characters of a key that does not fit
_WRITERS: Final = 8  # transactions that are sent at the same time
_NO_SUCH_OPERATION: Final = frozenset(
    {400, 403, 404, 405, 501}
)  # Cosmos DB, or a SAS, which reaches no settings

Start = Sequence[str]  # where a page begins; empty: at the first one


class Item(NamedTuple):
    """Entity to copy, with its stored form."""

    key: EntityKey
    content: bytes
    entity: Entity | None = None  # the entity that a source outside has, from which the row was made


@dataclass(slots=True)
class SourcePage:
    """A page of entities that a copy reads."""

    items: list[Item] = field(default_factory=list)
    failures: list[Failure] = field(default_factory=list)
    next: Start | None = None  # None at the end
    at: float = 0  # the clock of the source when the page was read; 0 if it is not known
    deleted: list[EntityKey] = field(default_factory=list)  # deletions, if the page is from a change feed
    feed: str = ""  # the token after the page, if it is from a change feed


@dataclass(slots=True)
class Written:
    inserted: int = 0
    changed: int = 0
    failures: list[tuple[EntityKey, Failure]] = field(default_factory=list)


class Side(Protocol):
    """One end of a copy."""

    lanes: int  # number of its tables that threads can read at the same time

    def tables(self) -> list[str]: ...

    def pages(
        self, table: str, filter_: str, *, start: Start = (), since: float = 0
    ) -> Iterator[SourcePage]: ...

    def keys(self, table: str, filter_: str) -> Iterator[list[EntityKey]]: ...

    def policies(self, table: str) -> list[SignedIdentifier] | None:
        """Return the policies of a table; None if this side cannot list them."""

    def service_properties(self) -> ServiceProperties | None: ...


class Target(Side, Protocol):
    """Writable side of a copy."""

    compares: bool  # whether it is cheap to find what is different before it is written

    def find_table(self, table: str) -> int | None:
        """Return an identifier unique among tables of this name; 0 if unknown, None if the table does not exist."""

    def create_table(self, table: str) -> int: ...

    def present(self, table: str, keys: Sequence[EntityKey]) -> Mapping[EntityKey, bytes]:
        """Return the contents of the existing entities among these keys."""

    def write(self, table: str, items: Sequence[Item], existing: Collection[EntityKey]) -> Written:
        """Insert or replace entities; ``existing`` are the keys of entities that are known to exist."""

    def delete(self, table: str, keys: Sequence[EntityKey]) -> int: ...

    def replace_policies(self, table: str, wanted: Sequence[SignedIdentifier]) -> bool:
        """Replace the policies of a table; return whether this side supports that."""

    def replace_service_properties(self, wanted: ServiceProperties) -> bool: ...


def describe_key(table: str, key: EntityKey) -> str:
    """Format keys for a list of failures, shortened, as a hostile source may have keys of any length."""
    return f"{table} {key.partition_key[:_SHOWN]} {key.row_key[:_SHOWN]}"


def read_item(members: Mapping[str, Any], kind: AccountKind) -> Item:
    """Parse an entity from its OData members; raises StorageError if an account of this kind cannot store it."""
    partition_key, row_key = members.get("PartitionKey"), members.get("RowKey")
    if not isinstance(partition_key, str) or not isinstance(row_key, str):
        raise PropertiesNeedValue
    key = EntityKey(partition_key, row_key)
    check_entity_key(*key, Dialect(kind))
    entity = Entity(key, read_properties(members, kind), kind)
    check_size(entity, entity.fragments)
    return Item(key, entity.fragments.content.encode(), entity)


def read_page(table: str, raw_entities: Sequence[Mapping[str, Any]], kind: AccountKind) -> SourcePage:
    """Convert the entities of a page; those that do not fit become its failures."""
    page = SourcePage()
    for members in raw_entities:
        try:
            page.items.append(read_item(members, kind))
        except (StorageError, UnicodeEncodeError) as error:
            refusal = error.refusal if isinstance(error, StorageError) else InvalidInput().refusal
            names = (str(members.get(name, "")) for name in ("PartitionKey", "RowKey"))
            page.failures.append(Failure(describe_key(table, EntityKey(*names)), refusal))
    return page


class RemoteSide:
    """Another service as a side of a copy; the limits of the local account's kind apply both ways."""

    lanes, compares = 4, False

    def __init__(self, client: TableClient, kind: AccountKind) -> None:
        self.client = client
        self._kind = kind
        self._names: set[str] | None = None  # names of the tables that exist
        self._writers = ThreadPoolExecutor(_WRITERS, thread_name_prefix="copy")

    def close(self) -> None:
        self._writers.shutdown(cancel_futures=True)
        self.client.close()

    def tables(self) -> list[str]:
        if self.client.endpoint.table:
            return [self.client.endpoint.table]
        return [name for name in self.client.tables() if not name.startswith("$")]  # metrics tables

    def pages(self, table: str, filter_: str, *, start: Start = (), since: float = 0) -> Iterator[SourcePage]:
        if since:
            later = f"Timestamp ge datetime'{_write_time(since)}'"
            filter_ = f"({filter_}) and {later}" if filter_ else later
        following: tuple[str, str] | None = (start[0], start[1]) if start else None
        while True:
            remote_page = self.client.page(table, following, filter_=filter_)
            page = read_page(table, remote_page.entities, self._kind)
            page.next, page.at = remote_page.next, remote_page.at
            yield page
            following = remote_page.next
            if following is None:
                return

    def keys(self, table: str, filter_: str) -> Iterator[list[EntityKey]]:
        following = None
        while True:
            remote_page = self.client.page(
                table, following, filter_=filter_, select=("PartitionKey", "RowKey")
            )
            yield [
                EntityKey(str(it.get("PartitionKey")), str(it.get("RowKey"))) for it in remote_page.entities
            ]
            following = remote_page.next
            if following is None:
                return

    @property
    def has_feed(self) -> bool:
        return bool(self.client.endpoint.feed_token)

    def begin_feed(self, table: str) -> str:
        """Return a token for changes from now on; empty if the account has no history."""
        try:
            return self.client.changes(table).token
        except FeedEnded:
            return ""

    def changes(self, table: str, token: str) -> Iterator[SourcePage]:
        """Yield the entities changed after a token, with their state; raises FeedEnded."""
        has_more = True
        while has_more:
            feed_page = self.client.changes(table, token)
            # the changes of an entity are in their order
            latest = {EntityKey(it["partition_key"], it["row_key"]): it for it in feed_page.changes}
            deleted = [key for key, it in latest.items() if it["operation"] == "delete"]
            left = [it["after"] for it in latest.values() if it["operation"] != "delete"]
            if None in left:  # the history was turned off meanwhile
                raise FeedEnded
            page = read_page(table, left, self._kind)
            page.deleted, page.feed, page.at = deleted, feed_page.token, feed_page.at
            page.next = () if feed_page.has_more else None
            yield page
            token, has_more = feed_page.token, feed_page.has_more

    def policies(self, table: str) -> list[SignedIdentifier] | None:
        return self._unless_missing(lambda: self.client.policies(table))

    def service_properties(self) -> ServiceProperties | None:
        return self._unless_missing(self.client.service_properties)

    def find_table(self, table: str) -> int | None:
        if self._names is None:
            try:
                self._names = {name.lower() for name in self.tables()}
            except RemoteRefused as error:
                if error.status != HTTPStatus.FORBIDDEN:
                    raise
                return 0  # a SAS that does not list tables creates none
        return 0 if table.lower() in self._names else None

    def create_table(self, table: str) -> int:
        self.client.create_table(table)
        return 0

    def present(self, table: str, keys: Sequence[EntityKey]) -> Mapping[EntityKey, bytes]:
        return {}

    def write(self, table: str, items: Sequence[Item], existing: Collection[EntityKey]) -> Written:
        """Write one transaction per partition, several in parallel."""
        written = Written()
        writing = [self._writers.submit(self._write, table, several) for several in _transactions(items)]
        for result in map(self.client.await_result, writing):
            written.changed += result.changed
            written.failures += result.failures
        return written

    def _write(self, table: str, items: Sequence[Item]) -> Written:
        rows = [StoredEntity(encode_entity_key(it.key), b"0", it.content) for it in items]
        try:
            self.client.write(table, rows)
        except RemoteRefused as error:
            if error.status in (401, 403) or (error.status == 404 and error.code == "TableNotFound"):
                raise
            if len(items) == 1:
                key = items[0].key
                return Written(failures=[(key, Failure(describe_key(table, key), error.refusal))])
            # one of them does not fit
            alone = [self._write(table, [it]) for it in items]
            failures = [failure for it in alone for failure in it.failures]
            return Written(changed=len(items) - len(failures), failures=failures)
        return Written(changed=len(items))

    def delete(self, table: str, keys: Sequence[EntityKey]) -> int:
        deleted = 0
        for _, several in groupby(sorted(keys), lambda key: key.partition_key):
            while some := list(islice(several, TRANSACTION_ENTITIES)):
                deleted += self.client.delete(table, some)
        return deleted

    def replace_policies(self, table: str, wanted: Sequence[SignedIdentifier]) -> bool:
        return self._could(lambda: self.client.replace_policies(table, wanted))

    def replace_service_properties(self, wanted: ServiceProperties) -> bool:
        return self._could(lambda: self.client.replace_service_properties(wanted))

    def _unless_missing(self, read: Callable[[], T]) -> T | None:
        try:
            return read()
        except RemoteRefused as error:
            if not self._has_no(error):
                raise
            return None

    def _could(self, write: Callable[[], None]) -> bool:
        try:
            write()
        except RemoteRefused as error:
            if not self._has_no(error):
                raise
            return False
        return True

    def _has_no(self, error: RemoteRefused) -> bool:
        """Return whether an operation is refused because it is missing, and not a key that was regenerated."""
        is_former_key = bool(self.client.endpoint.key) and error.code == "AuthenticationFailed"
        return error.status in _NO_SUCH_OPERATION and not is_former_key


def _transactions(items: Sequence[Item]) -> Iterator[list[Item]]:
    for _, several in groupby(sorted(items, key=lambda it: it.key), lambda it: it.key.partition_key):
        batch: list[Item] = []
        size = 0
        for it in several:
            if batch and (len(batch) == TRANSACTION_ENTITIES or size + len(it.content) > TRANSACTION_BYTES):
                yield batch
                batch, size = [], 0
            batch.append(it)
            size += len(it.content)
        yield batch


def _write_time(seconds: float) -> str:
    return write_datetime(to_ticks(datetime.fromtimestamp(seconds, UTC)))


class FileSide:
    """Azurite file as a side of a copy; it is read completely each time, and unchanged entities are not written."""

    lanes = 0

    def __init__(self, file: AzuriteFile, account: str, kind: AccountKind) -> None:
        self._file = file
        self._account = account
        self._kind = kind

    def tables(self) -> list[str]:
        return self._file.tables(self._account)

    def pages(self, table: str, filter_: str, *, start: Start = (), since: float = 0) -> Iterator[SourcePage]:
        number = int(start[0]) if start else 0
        file_entities = islice(self._file.entities(self._account, table), number, None)
        while members := list(islice(file_entities, _PAGE)):
            number += len(members)
            page = read_page(table, members, self._kind)
            page.next = (str(number),)
            yield page
        yield SourcePage()

    def keys(self, table: str, filter_: str) -> Iterator[list[EntityKey]]:
        file_entities = self._file.entities(self._account, table)
        while members := list(islice(file_entities, _PAGE)):
            pairs = ((it.get("PartitionKey"), it.get("RowKey")) for it in members)
            yield [
                EntityKey(partition_key, row_key)
                for partition_key, row_key in pairs
                if isinstance(partition_key, str) and isinstance(row_key, str)
            ]

    def policies(self, table: str) -> list[SignedIdentifier] | None:
        return self._file.policies(self._account, table)

    def service_properties(self) -> ServiceProperties | None:
        return self._file.service_properties(self._account)


class AccountSide:
    """Account of this server as a side of a copy; writes to it are recorded as changes by ``by``."""

    lanes, compares = 0, True

    def __init__(self, account: Account, by: Actor) -> None:
        self._account = account
        self._by = by
        self._tables: dict[str, Table] = {}

    def tables(self) -> list[str]:
        return tables.names(self._account)

    def pages(self, table: str, filter_: str, *, start: Start = (), since: float = 0) -> Iterator[SourcePage]:
        if since:
            later = f"Timestamp ge datetime'{_write_time(since)}'"
            filter_ = f"({filter_}) and {later}" if filter_ else later
        position = Position(start[0], start[1]) if start else None
        query = EntityQuery(filter=parse(filter_), start=position)
        while True:
            at = timezone.now().timestamp()
            stored_page = entities.page(self._table(table), query)
            items = [Item(it.key, it.content) for it in stored_page.entities]
            yield SourcePage(items, next=stored_page.next, at=at)
            if stored_page.next is None:
                return
            query = EntityQuery(filter=query.filter, start=stored_page.next)

    def keys(self, table: str, filter_: str) -> Iterator[list[EntityKey]]:
        query = EntityQuery(filter=parse(filter_), select=())
        for page in entities.all_pages(self._table(table), query):
            yield [it.key for it in page]

    def policies(self, table: str) -> list[SignedIdentifier] | None:
        return policies.stored(self._table(table))

    def service_properties(self) -> ServiceProperties | None:
        return service_properties.get(self._account)

    def find_table(self, table: str) -> int | None:
        try:
            return self._table(table).pk
        except ResourceNotFound:
            return None

    def create_table(self, table: str) -> int:
        return tables.create(self._account, table, by=self._by).pk

    def present(self, table: str, keys: Sequence[EntityKey]) -> Mapping[EntityKey, bytes]:
        found = entities.get_many(self._table(table), keys)
        return {it.key: it.content for it in found}

    def write(self, table: str, items: Sequence[Item], existing: Collection[EntityKey]) -> Written:
        """Write in the caller's transaction; new entities are inserted, which is twice as fast."""
        old = [it for it in items if it.key in existing]
        new = [it for it in items if it.key not in existing]
        inserted = self._write_many(table, new, WriteMode.INSERT)
        refused = list[tuple[Item, StorageError]]()
        for place, error in inserted.refused:
            if isinstance(error, EntityAlreadyExists):  # others have inserted it meanwhile
                old.append(new[place])
            else:
                refused.append((new[place], error))
        replaced = self._write_many(table, old, WriteMode.REPLACE)
        refused += [(old[place], error) for place, error in replaced.refused]
        return Written(
            inserted.inserted + replaced.inserted,
            replaced.changed,
            [(it.key, Failure(describe_key(table, it.key), error.refusal)) for it, error in refused],
        )

    def _write_many(self, table: str, items: Sequence[Item], mode: WriteMode) -> WriteResult:
        if not items:
            return WriteResult()
        entities = [it.entity or _read_entity(it) for it in items]
        return write_many(self._table(table), entities, mode, by=self._by)

    def delete(self, table: str, keys: Sequence[EntityKey]) -> int:
        """Delete entities, in the caller's transaction."""
        table_row = self._table(table)
        accounts.writable(self._account)
        recorder = history.recorder(self._account, self._by)
        images = [Image(*it.key, it.timestamp, None) for it in entities.get_many(table_row, keys)]
        if not images:
            return 0
        return write_images(relation_of(table_row), images, recorder, has_long=False).deleted

    def replace_policies(self, table: str, wanted: Sequence[SignedIdentifier]) -> bool:
        if self._account.kind == AccountKind.COSMOS:
            return False
        policies.replace(self._table(table), wanted, by=self._by)
        return True

    def replace_service_properties(self, wanted: ServiceProperties) -> bool:
        if self._account.kind == AccountKind.COSMOS:
            return False
        service_properties.replace(self._account, lambda _: wanted, by=self._by)
        return True

    def _table(self, name: str) -> Table:
        table_row = self._tables.get(name)
        if table_row is None:
            table_row = self._tables[name] = tables.get(self._account, name)
            table_row.account = self._account
        return table_row


def _read_entity(item: Item) -> Entity:
    return read_stored(StoredEntity(encode_entity_key(item.key), b"0", item.content))
