"""File format of an account: JSON lines compressed with gzip, described in docs/operations.md.

Both reading and writing stream: a table, however large, is never in memory as a whole.
"""

import gzip
import hashlib
import json
import re
import zlib
from collections import Counter, defaultdict, deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from json import JSONDecoder
from typing import Any, BinaryIO, Final, NoReturn, Protocol, TypeVar

from storage.access import policies
from storage.accounts import account_settings, sealed_keys, service_properties
from storage.core import registry
from storage.core.account_settings import SETTINGS
from storage.core.subject import Hook
from storage.domain.access.policies import check_policies
from storage.domain.entities.annotations import annotation_name, described_name
from storage.domain.entities.entity import (
    Entity,
    EntityKey,
    StoredEntity,
    read_value,
    write_document,
)
from storage.domain.errors import StorageError
from storage.domain.refusals import Reason, Refusal, Refused
from storage.domain.service_properties.properties import check_properties
from storage.domain.values import dialects
from storage.domain.values.edm import EdmValue
from storage.domain.values.kinds import AccountKind
from storage.domain.values.names import check_entity_key, is_account_name
from storage.health import release
from storage.models import Table
from storage.sql.django import storable_text

T = TypeVar("T")

FORMAT: Final = "tablero account"
VERSION: Final = 1
SETTINGS_IN_FILE: Final = tuple(name for name, setting in SETTINGS.items() if setting.is_in_files)
_LEVEL: Final = 3  # compression level: the next ones take much longer for a few percent
_LONGEST_LINE: Final = 64 << 20  # bytes, more than any entity takes
_LONGEST_TEXT: Final = 2000  # characters of a text without a limit of its own
_LONGEST_SHOWN: Final = 100  # characters of an unexpected value
_LARGEST: Final = 2**63  # no number is, in PostgreSQL
_COLOUR: Final = re.compile("(#[0-9a-f]{6})?")


class FileRefused(Refused):
    """A file is not a complete export of an account."""


@dataclass(frozen=True, slots=True)
class Header:
    """First line of the file, which describes the account; ``keys`` is empty unless keys were exported."""

    account: str
    kind: AccountKind
    settings: Mapping[str, Any]
    service_properties: Mapping[str, Any] | None
    keys: Sequence[bytes]
    time: str


@dataclass(frozen=True, slots=True)
class TableInFile:
    """A table without its entities."""

    name: str
    description: str
    tags: Sequence[str]
    throughput: int
    policies: Sequence[Mapping[str, Any]]  # as storage.access.policies writes them
    # lines of other subjects, by the names of their TableLines
    lines: Mapping[str, Sequence[Any]] = field(default_factory=dict)


class TableLines(Protocol):
    """Lines before a table's entities, written and read by another subject."""

    name: str  # the only member of a line
    most: int  # that may be in a file
    too_many: Refusal

    def write(self, table: Table) -> Iterator[Mapping[str, Any]]:
        """Yield the JSON members of each line."""

    def read(self, found: Mapping[str, Any]) -> Any:
        """Parse the JSON written for a table; raises ValueError, LookupError or TypeError if it is invalid."""

    def count(self, item: Any) -> int:
        """Return the number of items in a parsed line."""

    def add(self, table: Table, items: Sequence[Any]) -> None:
        """Store parsed items, in the caller's transaction."""


def table_lines() -> list[TableLines]:
    return [make_lines() for make_lines in registry.hooks(Hook.ACCOUNT_FILE)]


# writing


class FileWriter:
    """Writer of an account to a stream: the header, each table followed by its entities, and the end line."""

    def __init__(self, stream: BinaryIO, header: Header) -> None:
        # the time is in the header
        self._file = gzip.GzipFile("", "wb", _LEVEL, stream, mtime=0)
        self._digest = hashlib.sha256()
        self.tables = self.entities = 0
        keys = {"keys": [sealed_keys.encode_key(key) for key in header.keys]} if header.keys else {}
        self._write_line(
            {
                "format": FORMAT,
                "version": VERSION,
                "tablero": release.version(),
                "time": header.time,
                "account": header.account,
                "kind": header.kind.value,
                "settings": header.settings,
                "service_properties": header.service_properties,
                **keys,
            }
        )

    def write_table(self, table: TableInFile) -> None:
        members = asdict(table)
        del members["lines"]
        self._write_line({"table": members})
        self.tables += 1

    def write_lines(self, table: Table) -> None:
        """Write other subjects' lines about the current table, before its entities."""
        for lines in table_lines():
            for found in lines.write(table):
                self._write_line({lines.name: found})

    def write_entities(self, page: Sequence[StoredEntity]) -> None:
        self._write(b"".join(write_document(stored) + b"\n" for stored in page))
        self.entities += len(page)

    def close(self) -> None:
        end = {"tables": self.tables, "entities": self.entities, "sha256": self._digest.hexdigest()}
        self._write_line({"end": end})
        self._file.close()

    def _write_line(self, found: Mapping[str, Any]) -> None:
        self._write(json.dumps(found).encode() + b"\n")

    def _write(self, lines: bytes) -> None:
        self._digest.update(lines)
        self._file.write(lines)


# reading


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(name)


_decode: Final = JSONDecoder(parse_constant=_refuse_constant).decode


class FileReader:
    """Reader of an account from a stream; refuses everything that ``FileWriter`` would not write.

    ``line`` is the number of the last line read.
    """

    def __init__(self, stream: BinaryIO) -> None:
        self._file = gzip.GzipFile(fileobj=stream, mode="rb")
        self._digest = hashlib.sha256()
        self._lines = {lines.name: lines for lines in table_lines()}
        self._counts = Counter[str]()
        self.line = self.tables = self.entities = 0
        self.header = self._read_header()
        self._ahead = self._read_line()

    def read_tables(self) -> Iterator[tuple[TableInFile, Iterator[Entity]]]:
        """Yield tables with lazily read entities, which must be consumed before the next; finally verify the end."""
        while "table" in self._ahead:
            table = self._valid(_read_table, self._ahead["table"])
            self.tables += 1
            table = replace(table, lines=self._read_lines())
            table_entities = self._read_entities()
            yield table, table_entities
            deque(table_entities, maxlen=0)
        self._check_end(self._ahead.get("end"))

    def _read_header(self) -> Header:
        members = self._read_line()
        if members.get("format") != FORMAT:
            raise FileRefused(Reason.FILE_UNKNOWN)
        if members.get("version") != VERSION:
            raise FileRefused(Reason.FILE_VERSION, version=_shown(members.get("version")), known=VERSION)
        return self._valid(_read_header, members)

    def _read_lines(self) -> Mapping[str, Sequence[Any]]:
        items = defaultdict[str, list[Any]](list)
        while "PartitionKey" not in (members := self._read_line()):
            name = next((name for name in self._lines if name in members), None)
            if name is None:
                break
            lines = self._lines[name]
            item = self._valid(partial(_read, name, read=lines.read), members)
            self._counts[name] += lines.count(item)
            if self._counts[name] > lines.most:
                raise FileRefused(lines.too_many)
            items[name].append(item)
        self._ahead = members
        return items

    def _read_entities(self) -> Iterator[Entity]:
        last, members = None, self._ahead
        while "PartitionKey" in members:
            entity = self._valid(_read_entity, members)
            if entity.key == last:
                raise FileRefused(Reason.FILE_KEY_TWICE, line=self.line)
            if last is not None and entity.key < last:
                raise FileRefused(Reason.FILE_DISORDER, line=self.line)
            last = entity.key
            self.entities += 1
            yield entity
            members = self._read_line()
        self._ahead = members

    def _check_end(self, ending: object) -> None:
        if ending is None:
            raise FileRefused(Reason.FILE_LINE, line=self.line)
        digest = self._digest.hexdigest()
        if ending != {"tables": self.tables, "entities": self.entities, "sha256": digest}:
            raise FileRefused(Reason.FILE_CHECKSUM, line=self.line)
        if self._read_raw():
            raise FileRefused(Reason.FILE_LINE, line=self.line)

    def _read_line(self) -> dict[str, Any]:
        raw = self._read_raw()
        if not raw.endswith(b"\n"):
            self._refuse_incomplete()
        try:
            members = _decode(raw.decode())
        except (ValueError, RecursionError):
            raise FileRefused(Reason.FILE_NOT_JSON, line=self.line) from None
        if not isinstance(members, dict):
            raise FileRefused(Reason.FILE_LINE, line=self.line)
        if "end" not in members or "PartitionKey" in members:
            self._digest.update(raw)
        return members

    def _read_raw(self) -> bytes:
        try:
            raw = self._file.readline(_LONGEST_LINE)
        except EOFError:
            self._refuse_incomplete()
        except (gzip.BadGzipFile, zlib.error):
            if not self.line:
                raise FileRefused(Reason.FILE_UNKNOWN) from None
            raise FileRefused(Reason.FILE_DAMAGED, line=self.line) from None
        if raw:
            self.line += 1
        if len(raw) == _LONGEST_LINE:
            raise FileRefused(Reason.FILE_LINE, line=self.line)
        return raw

    def _refuse_incomplete(self) -> NoReturn:
        if not self.line:
            raise FileRefused(Reason.FILE_UNKNOWN) from None
        raise FileRefused(Reason.FILE_INCOMPLETE, line=self.line) from None

    def _valid(self, read: Callable[[dict[str, Any]], T], found: Any) -> T:
        try:
            return read(found)
        except _InvalidField as error:
            raise FileRefused(Reason.FILE_FIELD, line=self.line, field=_shown(error.name)) from None


def _shown(value: object) -> str:
    """Escape part of a file for a message in a terminal."""
    text = str(value)[:_LONGEST_SHOWN]
    return text if text.isprintable() else ascii(text)


class _InvalidField(Exception):
    """A field is missing or invalid."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.name = name


def _read_entity(members: dict[str, Any]) -> Entity:
    key = EntityKey(members.pop("PartitionKey"), members.pop("RowKey", None))
    name = "key"
    properties: dict[str, EdmValue] = {}
    try:
        check_entity_key(*key, dialects.WIDEST)
        members.pop("Timestamp", None)
        for name, value in members.items():
            annotation = annotation_name(name)
            if annotation is not None:
                properties[name] = read_value(value, members.get(annotation))
            elif described_name(name) not in members:
                raise _InvalidField(name)
    except (StorageError, TypeError):
        raise _InvalidField(name) from None
    return Entity(key, properties)


def _read_header(members: dict[str, Any]) -> Header:
    return Header(
        _read("account", members, _read_name),
        _read("kind", members, AccountKind),
        {
            name: _read(name, members["settings"], _setting_reader(name))
            for name in _read("settings", members, dict)
        },
        _read("service_properties", members, _read_service_properties),
        _read("keys", {"keys": [], **members}, _read_keys),
        _read("time", members, _read_text),
    )


def _read_table(members: dict[str, Any]) -> TableInFile:
    return TableInFile(
        _read("name", members, _read_table_name),
        _read("description", members, _read_text),
        _read("tags", members, lambda value: [_read_text(tag) for tag in value]),
        _read("throughput", members, _read_throughput),
        _read("policies", members, _read_policies),
    )


def _read(name: str, found: Mapping[str, Any], read: Callable[[Any], T]) -> T:
    try:
        return read(found[name])
    except (Refused, StorageError, LookupError, TypeError, ValueError, AttributeError):
        raise _InvalidField(name) from None


def _read_text(value: Any, most: int = _LONGEST_TEXT) -> str:
    if storable_text(value, most) != value:
        raise ValueError
    return str(value)


def _read_name(value: Any) -> str:
    if not is_account_name(value):
        raise ValueError
    return str(value)


def _read_table_name(value: Any) -> str:
    if not _read_text(value).isprintable():  # findings show it
        raise ValueError
    return str(value)


def _setting_reader(name: str) -> Callable[[Any], Any]:
    setting = SETTINGS[name] if name in SETTINGS_IN_FILE else None

    def read(value: Any) -> Any:
        if setting is None or not (
            isinstance(value, setting.type) or (value is None and setting.is_nullable)
        ):
            raise ValueError
        if isinstance(value, bool) is not (setting.type is bool):
            raise ValueError
        match value:
            case int() if value >= _LARGEST:
                raise ValueError
            case str():
                _read_text(value, setting.most or _LONGEST_TEXT)
                if name == "colour" and not _COLOUR.fullmatch(value):
                    raise ValueError
            case list():
                if setting.most is not None and len(value) > setting.most:
                    raise ValueError
                for text in value:
                    _read_text(text)
        account_settings.check({name: value})
        return value

    return read


def _read_service_properties(value: Any) -> Mapping[str, Any] | None:
    if value is None:
        return None
    properties = service_properties.read(value)
    parts = [asdict(it) for it in (properties.logging, properties.hour_metrics, properties.minute_metrics)]
    numbers = [part.pop("retention") or 0 for part in parts] + [rule.max_age for rule in properties.cors]
    flags = [flag for part in parts for flag in part.values()]
    if any(type(it) is not int for it in numbers) or any(type(it) is not bool for it in flags):
        raise ValueError
    check_properties(properties)
    return service_properties.write(properties)


def _read_keys(value: Any) -> Sequence[bytes]:
    if len(value) not in (0, 2):
        raise ValueError
    return [sealed_keys.decode_key(key) for key in value]


def _read_throughput(value: Any) -> int:
    if type(value) is not int or not 0 <= value < 2**31:
        raise ValueError
    return value


def _read_policies(value: Any) -> Sequence[Mapping[str, Any]]:
    identifiers = policies.read(value)
    for policy in (it.policy for it in identifiers if it.policy is not None):
        for text in asdict(policy).values():
            _read_text(text or "")
    check_policies(identifiers)
    return policies.write(identifiers)
