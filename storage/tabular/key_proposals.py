"""Proposals of key columns from the first rows, with reasons for and against."""

import re
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import combinations, islice, pairwise
from typing import Any, Final

from storage.domain.errors import StorageError
from storage.domain.values.edm import Edm
from storage.domain.values.names import check_key
from storage.tabular.mapping import (
    GUID,
    ROW_NUMBER,
    Template,
    can_be_in_template,
)
from storage.tabular.rows import text_of

_MOST: Final = 4  # proposals
_CANDIDATES: Final = 8  # columns that are tried as keys
_LONG_TEXT: Final = 80  # characters on average, from which on a text is rather a description
_MANY: Final = 10  # rows; as many different values are no accident
_MOST_PAIRS: Final = 20  # that are tried
_ROWS_PER_ACCIDENT: Final = 50  # one of them may be in a file twice
_ONE_PARTITION: Final = "all"


class NoteKind(StrEnum):
    """Reason for or against a key; the value is an English sentence."""

    DIFFERENT = "{number} in {rows}"
    UNIQUE = "unique in {rows}"
    UNIQUE_WITHIN = "unique within each partition in {rows}"
    ONE_PARTITION = "all entities are in one partition"
    OWN_PARTITIONS = "each entity is a partition of its own"
    REPEATED = "the keys of an earlier row in {number} of {rows}"
    MISSING = "no value in {number} of {rows}"
    FORBIDDEN = "too long for a key, or with one of the characters / \\ # ?, in {number} of {rows}"
    SORTED_AS_TEXT = "numbers are sorted as text: 10 comes before 9"
    ROW_NUMBERS = "the rows of another file have the same numbers"
    RANDOM = "importing the file again makes new entities"


_FOR: Final = (NoteKind.DIFFERENT, NoteKind.UNIQUE, NoteKind.UNIQUE_WITHIN)
# with these, some rows would be rejected or would overwrite others
_SERIOUS: Final = (NoteKind.REPEATED, NoteKind.MISSING, NoteKind.FORBIDDEN)


@dataclass(frozen=True, slots=True)
class KeyNote:
    """Note on a key; ``rows`` is the number of rows examined."""

    kind: NoteKind
    number: int = 0
    rows: int = 0

    @property
    def is_against(self) -> bool:
        return self.kind not in _FOR

    @property
    def is_serious(self) -> bool:
        is_accident = self.kind is NoteKind.REPEATED and self.number <= _accidents(self.rows)
        return self.kind in _SERIOUS and not is_accident

    @property
    def sentence(self) -> str:
        number = f"{self.number:,}"
        if self.kind is NoteKind.DIFFERENT:
            number += " different values"
        return self.kind.value.format(
            number=number, rows=f"{self.rows:,} {'row' if self.rows == 1 else 'rows'}"
        )


def _accidents(rows: int) -> int:
    """Return how many rows of a file may repeat the keys of others by accident."""
    return max(1, rows // _ROWS_PER_ACCIDENT) if rows >= 2 * _MANY else 0


@dataclass(frozen=True, slots=True)
class KeyProposal:
    """Proposed templates of both keys, with notes for and against them."""

    partition_key: str
    row_key: str
    partition_notes: tuple[KeyNote, ...]
    row_notes: tuple[KeyNote, ...]

    @property
    def is_flawless(self) -> bool:
        return not any(note.is_serious for note in (*self.partition_notes, *self.row_notes))

    @property
    def reason(self) -> str:
        """Return the notes as English text."""
        keys = (("PartitionKey", self.partition_notes), ("RowKey", self.row_notes))
        return "; ".join(f"{name}: {_join(notes)}" for name, notes in keys if notes) or "their names say so"

    def describe(self) -> dict[str, Any]:
        """Return the proposal as JSON, for the API and scripts."""
        return {"partition_key": self.partition_key, "row_key": self.row_key, "reason": self.reason}


def _join(notes: Sequence[KeyNote]) -> str:
    text = notes[0].sentence
    for before, note in pairwise(notes):
        text += f", {'but' if note.is_against and not before.is_against else 'and'} {note.sentence}"
    return text


@dataclass(frozen=True, slots=True)
class KeyProposals:
    """Proposed keys, best first."""

    proposals: tuple[KeyProposal, ...] = ()
    # the first is so much better than the others that it can be taken without a question
    is_clear: bool = False


NO_KEYS: Final = KeyProposals()


class KeySample:
    """First rows of a file, for trying out keys."""

    def __init__(self, rows: Sequence[Mapping[str, Any]]) -> None:
        self._rows = rows

    def __len__(self) -> int:
        return len(self._rows)

    def texts(self, column: str) -> list[str | None]:
        """Return a column's values as used in keys; None for missing or composite values."""
        return [_key_text(row.get(column)) for row in self._rows]

    def keys(self, template: str) -> list[str | None]:
        """Return the keys that a template forms from the rows; None where a value is missing. Raises MappingRefused."""
        parts = Template.read(template).parts
        columns = [self._texts_of(part) if is_column else [part] * len(self) for is_column, part in parts]
        rows = zip(*columns, strict=True) if columns else [()] * len(self)
        return [None if None in texts else "".join(filter(None, texts)) for texts in rows]

    def _texts_of(self, part: str) -> Sequence[str | None]:
        if part in (ROW_NUMBER, GUID):
            return [f"{number:010}" for number in range(1, len(self) + 1)]
        return self.texts(part)


NO_SAMPLE: Final = KeySample(())


def _key_text(value: Any) -> str | None:
    if value is None or value == "" or isinstance(value, dict | list):
        return None
    return text_of(value)


def assess(partition_key: str, row_key: str, sample: KeySample) -> KeyProposal:
    """Assess keys that a user has chosen; raises MappingRefused for invalid templates."""
    partitions, rows = sample.keys(partition_key), sample.keys(row_key)
    both = [(one, other) for one, other in zip(partitions, rows, strict=True) if None not in (one, other)]
    different, repeated = len(set(partitions) - {None}), len(both) - len(set(both))
    partition_notes, row_notes = list[KeyNote](), list[KeyNote]()
    if len(both) > 1:
        partition_notes.append(_note_partitions(partition_key, different, len(sample)))
    if len(both) > 1 and not repeated:
        is_unique = len({row for _, row in both}) == len(both)
        row_notes.append(KeyNote(NoteKind.UNIQUE if is_unique else NoteKind.UNIQUE_WITHIN, rows=len(both)))
    elif repeated:
        row_notes.append(KeyNote(NoteKind.REPEATED, repeated, len(sample)))
    partition_notes += _find_flaws("PartitionKey", partitions)
    row_notes += (*_find_flaws("RowKey", rows), *_find_habits(row_key, rows))
    return KeyProposal(partition_key, row_key, tuple(partition_notes), tuple(row_notes))


def _note_partitions(template: str, different: int, rows: int) -> KeyNote:
    if not Template.read(template).columns and not _is_generated(template):
        return KeyNote(NoteKind.ONE_PARTITION)
    if different == rows >= _MANY or _is_generated(template):
        return KeyNote(NoteKind.OWN_PARTITIONS)
    if different == 1 < rows:
        return KeyNote(NoteKind.ONE_PARTITION)
    return KeyNote(NoteKind.DIFFERENT, different, rows)


def _is_generated(template: str) -> bool:
    return any(is_column and part in (ROW_NUMBER, GUID) for is_column, part in Template.read(template).parts)


def _find_flaws(name: str, keys: Sequence[str | None]) -> Iterator[KeyNote]:
    missing = keys.count(None)
    forbidden = sum(key is not None and not _is_key(name, key) for key in keys)
    if missing:
        yield KeyNote(NoteKind.MISSING, missing, len(keys))
    if forbidden:
        yield KeyNote(NoteKind.FORBIDDEN, forbidden, len(keys))


def _is_key(name: str, text: str) -> bool:
    try:
        check_key(name, text)
    except StorageError:
        return False
    return True


def _find_habits(template: str, keys: Sequence[str | None]) -> Iterator[KeyNote]:
    """Yield notes on an otherwise suitable RowKey: row numbers, random GUIDs, or numbers that sort as text."""
    generated = {part for is_column, part in Template.read(template).parts if is_column}
    if ROW_NUMBER in generated:
        yield KeyNote(NoteKind.ROW_NUMBERS)
    elif GUID in generated:
        yield KeyNote(NoteKind.RANDOM)
    elif len({len(key) for key in keys if key}) > 1 and all(key is None or key.isdecimal() for key in keys):
        yield KeyNote(NoteKind.SORTED_AS_TEXT)


# candidates

# Names of columns that often are keys, in the languages of the console and some others: whole names, without
# separators, and words in them.
_PARTITION_NAMES: Final = frozenset(
    (
        "pk",
        "partition",
        "partitionkey",
        "partitionid",
        "shard",
        "tenant",
        "tenantid",
        "mandant",
        "kiraci",
        "租户",
    )
)
_PARTITION_WORDS: Final = frozenset(
    word
    for words in (
        "org organization organisation account customer client company vendor supplier merchant country region state",
        "city site store shop branch warehouse department division team project workspace device sensor machine user",
        "owner category group type kind class source channel tenant partition",
        "land stadt ort filiale mandant kunde firma lager abteilung kategorie gruppe konto gerat",
        "pays ville client societe magasin departement categorie groupe",
        "pais ciudad cliente empresa tienda departamento categoria grupo tipo",
        "ulke sehir il ilce bolge sube musteri firma depo bolum kategori grup",
        "国家 地区 城市 省份 客户 公司 部门 类别 类型 门店",
    )
    for word in words.split()
)
_ROW_NAMES: Final = frozenset(("rk", "rowkey", "rowid", "id", "key", "guid", "uuid", "uid", "编号", "主键"))
_ROW_WORDS: Final = frozenset(
    word
    for words in (
        "id key guid uuid uid sku ean isbn upc gtin vin iban email mail login username slug code number no num nr",
        "serial reference ref hash ticket invoice",
        "nummer kennung schlussel beleg",
        "numero identifiant identificador codigo clave",
        "numara numarasi no kimlik kod kodu anahtar 编码 代码 邮箱 单号 号码",
    )
    for word in words.split()
)
_JOINED: Final = re.compile(r"(?:id|nr|key|code|number|nummer)$")  # as in customerid
_WORD: Final = re.compile(r"[^\W\d_]+")
_HUMP: Final = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_NOT_OF_KEYS: Final = (Edm.DOUBLE, Edm.DATETIME, Edm.BOOLEAN, Edm.BINARY)


@dataclass(frozen=True, slots=True)
class KeyColumn:
    """Column with the actual or apparent type of its values."""

    name: str
    type: Edm


@dataclass(frozen=True, slots=True)
class _Candidate:
    """Candidate column for a key; its ranks, from 0 to 3, tell how much its name suggests each key."""

    name: str
    type: Edm
    place: int
    texts: Sequence[str | None]
    different: int
    partition_rank: int
    row_rank: int

    @property
    def template(self) -> str:
        return "{" + self.name + "}"

    @property
    def is_unique(self) -> bool:
        return self.different == len(self.texts)

    @property
    def accidents(self) -> int:
        """Return how many rows may repeat a value, if the name of the column says that it identifies rows."""
        return _accidents(len(self.texts)) if self.row_rank >= _NAMED else 0

    @property
    def is_identifier(self) -> bool:
        return None not in self.texts and self.different >= len(self.texts) - self.accidents

    @property
    def repeats(self) -> bool:
        return 1 < self.different <= max(2, len(self.texts) * _SHARE) < len(self.texts)

    @property
    def is_partition(self) -> bool:
        """Return whether the column suits a PartitionKey, by its name or its few distinct texts."""
        if self.partition_rank == _SURE:
            return True
        if self.type in _NOT_OF_KEYS:
            return False
        if self.partition_rank:
            return self.repeats or len(self.texts) < _MANY
        return self.repeats and self.type is Edm.STRING


_SURE: Final = 3
_NAMED: Final = 2
_SHARE: Final = 0.7  # share of the rows; a column with more different values divides nothing


def propose_keys(
    columns: Sequence[KeyColumn], sample: KeySample, partition_key: str = "", row_key: str = ""
) -> KeyProposals:
    """Propose keys for a file; a key that is given is kept."""
    if not len(sample) or (partition_key and row_key):
        return NO_KEYS
    weighed = (_weigh(column, place, sample) for place, column in enumerate(columns))
    candidates = [it for it in weighed if it is not None]
    pairs = dict.fromkeys(islice(_pair(candidates, sample, partition_key, row_key), _MOST_PAIRS))
    proposals = [assess(*pair, sample) for pair in pairs]
    flawless = [it for it in proposals if it.is_flawless]
    # columns with a flaw are named where there is nothing better than numbers of rows
    others = [] if any(_names_columns(it.row_key) for it in flawless) else proposals
    shown = tuple(dict.fromkeys((*flawless, *others)))[:_MOST]
    return KeyProposals(shown, bool(flawless) and _is_clear(flawless, candidates, partition_key, row_key))


def _names_columns(template: str) -> bool:
    return bool(Template.read(template).columns)


def _weigh(column: KeyColumn, place: int, sample: KeySample) -> _Candidate | None:
    """Return a column as a key candidate; None for long texts, no values, or names unusable in a template."""
    if not can_be_in_template(column.name):
        return None
    texts = sample.texts(column.name)
    values = [text for text in texts if text is not None]
    if not values or sum(map(len, values)) > _LONG_TEXT * len(values):
        return None
    words = [_fold(word) for word in _WORD.findall(_HUMP.sub(" ", column.name))]
    name = "".join(words)
    partition_rank = _SURE if name in _PARTITION_NAMES else 2 if _PARTITION_WORDS & set(words) else 0
    row_rank = _SURE if name in _ROW_NAMES else 2 if _ROW_WORDS & set(words) or _JOINED.search(name) else 0
    if column.type is Edm.GUID:
        row_rank = max(row_rank, 1)
    return _Candidate(column.name, column.type, place, texts, len(set(values)), partition_rank, row_rank)


def _fold(word: str) -> str:
    plain = unicodedata.normalize("NFKD", word.lower().replace("ı", "i"))
    return "".join(letter for letter in plain if not unicodedata.combining(letter))


def _pair(
    candidates: Sequence[_Candidate], sample: KeySample, partition_key: str, row_key: str
) -> Iterator[tuple[str, str]]:
    """Yield templates of both keys, more probable ones first."""
    partitions = sorted((it for it in candidates if it.is_partition), key=_partition_order)[:_CANDIDATES]
    rows = sorted(candidates, key=_row_order)[:_CANDIDATES]
    if row_key:
        yield from ((it.template, row_key) for it in partitions)
        yield _ONE_PARTITION, row_key
        return
    first = [partition_key] if partition_key else [it.template for it in partitions] or [_ONE_PARTITION]
    for partition in first:
        yield from ((partition, template) for template in _rows_within(partition, rows, sample))
    identifier = next((it for it in rows if it.is_unique and it.type not in _NOT_OF_KEYS), None)
    if not partition_key and identifier is not None and all(it.partition_rank < _NAMED for it in partitions):
        yield identifier.template, identifier.template
    yield first[0], "{" + ROW_NUMBER + "}"


def _rows_within(partition: str, rows: Sequence[_Candidate], sample: KeySample) -> Iterator[str]:
    """Yield the columns that are unique within each partition, or else pairs of columns."""
    partitions = sample.keys(partition)
    in_partition = set(Template.read(partition).columns)
    usable = [it for it in rows if it.name not in in_partition]
    single = [it for it in usable if _is_unique(partitions, it.texts, it.accidents)]
    fitting = [it for it in single if it.type not in _NOT_OF_KEYS]
    yield from (it.template for place, it in enumerate(fitting[:2]) if not place or it.row_rank)
    if fitting:
        return
    for one, other in combinations([it for it in usable if it.different > 1], 2):
        both = [f"{a}-{b}" if a and b else None for a, b in zip(one.texts, other.texts, strict=True)]
        if _is_unique(partitions, both):
            yield "-".join(it.template for it in sorted((one, other), key=lambda it: it.place))
            return
    # columns with forbidden characters, or missing in some rows
    yield from (it.template for it in usable[:1] if it.row_rank >= 2)


def _is_unique(partitions: Sequence[str | None], rows: Sequence[str | None], accidents: int = 0) -> bool:
    both = list(zip(partitions, rows, strict=True))
    return None not in rows and len(set(both)) >= len(both) - accidents


def _partition_order(candidate: _Candidate) -> tuple[int, int]:
    return -candidate.partition_rank, candidate.place


def _row_order(candidate: _Candidate) -> tuple[bool, bool, int, int]:
    return (
        candidate.type in _NOT_OF_KEYS,
        not candidate.is_identifier,
        -candidate.row_rank,
        candidate.place,
    )


def _is_clear(
    proposals: Sequence[KeyProposal], candidates: Sequence[_Candidate], partition_key: str, row_key: str
) -> bool:
    """Return whether only the first proposal is named like keys."""
    by_template = {it.template: it for it in candidates}

    def rank(proposal: KeyProposal) -> tuple[int, int]:
        partition, row = by_template.get(proposal.partition_key), by_template.get(proposal.row_key)
        return (
            _SURE if partition_key else 0 if partition is None else partition.partition_rank,
            _SURE if row_key else 0 if row is None else row.row_rank,
        )

    best = rank(proposals[0])
    return min(best) >= _NAMED and all(rank(it) != best for it in proposals[1:])
