"""Order-independent checksums of entities, whose sums can be updated one entity at a time."""

from hashlib import blake2b
from typing import Final

from storage.domain.entities.entity import EntityKey, split_members

_MODULUS: Final = 1 << 128


def key_checksum(key: EntityKey) -> int:
    """Return a 64-bit checksum of a key."""
    return int.from_bytes(blake2b(_write_key(key), digest_size=8).digest())


def entity_checksum(key: EntityKey, content: bytes) -> int:
    """Return a 128-bit checksum of an entity, independent of the order of its properties in ``content``."""
    members = _members(content)
    return int.from_bytes(blake2b(b"\n".join((_write_key(key), *members)), digest_size=16).digest())


def is_same_content(one: bytes, other: bytes) -> bool:
    """Return whether two row contents have the same properties, in any order."""
    return one == other or (len(one) == len(other) and _members(one) == _members(other))


def _members(content: bytes) -> list[bytes]:
    """Return the values and annotations sorted, with the leading empty item of older versions."""
    return [b"", *sorted(split_members(content))]


def add_checksums(total: int, *checksums: int) -> int:
    return (total + sum(checksums)) % _MODULUS


def _write_key(key: EntityKey) -> bytes:
    return f"{len(key.partition_key)}:{key.partition_key}{key.row_key}".encode("utf-8", "surrogatepass")
