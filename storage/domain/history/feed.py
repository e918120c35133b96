"""Change feed: positions, the tokens that clients keep, and the delivered form of changes."""

import base64
import binascii
import hashlib
import hmac
import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final, NamedTuple

from storage.domain.entities.entity import StoredEntity, read_members, write_document
from storage.domain.history.recorded import Op, RecordedChange
from storage.domain.refusals import Reason, Refused
from storage.domain.values.edm import write_datetime

NOTHING: Final = "3:3:"  # the snapshot that sees no transaction
_MAC_LENGTH: Final = 16  # bytes


class InvalidToken(Refused):
    """The token was not issued by this server, or belongs to another feed."""


class ExpiredToken(Refused):
    """The changes after this position are no longer kept."""


@dataclass(frozen=True, slots=True)
class FeedPosition:
    """Position of a reader that has received every change visible in the snapshot ``seen`` (a pg_snapshot).

    With a ``target``, it is reading what else is visible in that one, and has read it up to ``seq``. ``segment``
    is the first segment of the history that may contain unseen changes, ``next_segment`` the same for ``target``.

    With ``ticks``, it is in the own histories of tables: the reader has received all changes before that Timestamp,
    and ``seq`` changes of it.
    """

    segment: int
    seen: str = NOTHING
    target: str = ""
    next_segment: int = 0
    seq: int = 0
    ticks: int = 0


class FeedToken(NamedTuple):
    """Position in the change feed of an account and a selection of its tables."""

    cluster: str  # the database of the position
    feed: str  # the account and the tables of the feed
    position: FeedPosition


def write_token(token: FeedToken, secret: bytes) -> str:
    """Encode a token for URLs, headers and command lines, so it never begins with a hyphen."""
    position = token.position
    parts = (
        token.cluster,
        token.feed,
        position.segment,
        position.seen,
        position.target,
        position.next_segment,
        position.seq,
        *([position.ticks] if position.ticks else []),
    )
    content = "|".join(map(str, parts)).encode()
    # the content begins with a digit, the MAC with anything
    return base64.urlsafe_b64encode(content + _mac(content, secret)).decode().rstrip("=")


def read_token(text: str, secret: bytes) -> FeedToken:
    """Decode a token, also in the old form with the MAC first; raises InvalidToken."""
    try:
        decoded = base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True)
    except (binascii.Error, ValueError):
        decoded = b""
    for content, mac in (
        (decoded[:-_MAC_LENGTH], decoded[-_MAC_LENGTH:]),
        (decoded[_MAC_LENGTH:], decoded[:_MAC_LENGTH]),
    ):
        if hmac.compare_digest(mac, _mac(content, secret)):
            return _read_content(content.decode())
    raise InvalidToken(Reason.TOKEN_INVALID)


def _read_content(content: str) -> FeedToken:
    cluster, feed, segment, seen, target, next_segment, seq, *ticks = content.split("|")
    position = FeedPosition(int(segment), seen, target, int(next_segment), int(seq), *map(int, ticks))
    return FeedToken(cluster, feed, position)


def _mac(content: bytes, secret: bytes) -> bytes:
    return hmac.digest(secret, content, hashlib.sha256)[:_MAC_LENGTH]


class FeedPage(NamedTuple):
    """Page of changes in order, with the start of the next page."""

    changes: Sequence[RecordedChange]
    position: FeedPosition
    has_more: bool  # there may be a next page already
    # the position of the page once it has a target, so that each change has a position too
    window: FeedPosition
    positions: Sequence[FeedPosition] = ()  # after each change, unless they follow from the window

    def positions_after(self) -> Sequence[FeedPosition]:
        """Return the positions from which a reader continues after each change of the page."""
        positions = self.positions or [replace(self.window, seq=it.sequence) for it in self.changes]
        return [*positions[:-1], self.position] if self.changes else []


def write_change(change: RecordedChange) -> bytes:
    """Serialize a change as one line of JSON; entities are in the Table service's format."""
    head = {
        "sequence": change.sequence,
        "operation": change.op.word,
        "table": change.table,
        "partition_key": change.key.partition_key,
        "row_key": change.key.row_key,
        "timestamp": write_datetime(change.ticks),
        "request_id": change.actor.request_id,
        "actor": {
            "kind": change.actor.kind,
            "name": change.actor.name,
            "token": change.actor.token,
            "label": change.actor.label,
        },
    }
    return b'%b,"before":%b,"after":%b}' % (
        json.dumps(head, ensure_ascii=False, separators=(",", ":"))[:-1].encode(),
        _write_entity(change.before),
        _write_entity(change.after),
    )


def describe_change(change: RecordedChange) -> str:
    """Describe a change in one readable line: time, operation, key, actor and changed properties."""
    by = f"{change.actor.kind} {change.actor.short_name}".rstrip()
    key = f"{change.table}({change.key.partition_key!r}, {change.key.row_key!r})"
    line = f"{write_datetime(change.ticks)}  {change.op.word}  {key}  by {by}"
    if change.op is not Op.UPDATE or change.after is None:
        return line
    before, after = _properties(change.before), _properties(change.after)
    names = [name for name in {**before, **after} if before.get(name) != after.get(name)]
    return f"{line}: " + ", ".join(
        f"{name} {before.get(name, 'nothing')} → {after.get(name, 'nothing')}" for name in names
    )


def _properties(entity: StoredEntity | None) -> dict[str, str]:
    """Return the values of an entity as abbreviated JSON."""
    if entity is None:
        return {}
    texts = {
        name: json.dumps(value, ensure_ascii=False)
        for name, value in read_members(entity).items()
        if "@" not in name
    }
    return {name: text if len(text) <= _SHORT else f"{text[:_SHORT]}…" for name, text in texts.items()}


_SHORT: Final = 60  # characters of a value


def _write_entity(entity: StoredEntity | None) -> bytes:
    return b"null" if entity is None else write_document(entity)


_COSMOS_OPERATIONS: Final = {Op.INSERT: "create", Op.UPDATE: "replace", Op.DELETE: "delete"}


def write_cosmos_change(change: RecordedChange) -> bytes:
    """Serialize a change in the format of Cosmos DB's "all versions and deletes" feed."""
    metadata: dict[str, object] = {
        "operationType": _COSMOS_OPERATIONS[change.op],
        "lsn": change.sequence,
        "crts": change.ticks // 10_000_000,
        "table": change.table,
    }
    if change.op is Op.DELETE:
        metadata["id"] = {
            "PartitionKey": change.key.partition_key,
            "RowKey": change.key.row_key,
        }
    return b'{"current":%b,"previous":%b,"metadata":%b}' % (
        _write_entity(change.after) if change.after is not None else b"{}",
        _write_entity(change.before),
        json.dumps(metadata, ensure_ascii=False, separators=(",", ":")).encode(),
    )
