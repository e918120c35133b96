"""Description of a backup, and the backups of a store with their chains and retention."""

import hashlib
import json
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from datetime import datetime
from enum import StrEnum
from pathlib import Path
from typing import Any, Final

from storage.backups.last_backup import Kind
from storage.server.backups.contents import Relation
from storage.server.backups.sealing import Key, Sealing, UnsealingReader, sealing_into
from storage.server.backups.stores import (
    DESCRIPTION,
    SEALED_SUFFIX,
    Draft,
    Reader,
    Store,
    Writer,
    is_name,
    split_backup,
)
from storage.server.refusal import Refusal

CONTENTS: Final = "contents.json"  # facts that the description of a sealed backup does not have
PLAIN: Final = 1  # format: the database is a folder of files
PACKED: Final = 2  # format: the database is one file, and all files may be sealed


class SecretIn(StrEnum):
    """Form in which a backup contains the server secret."""

    PLAIN = "secret"
    SEALED = "secret.sealed"
    ABSENT = "absent"


@dataclass(frozen=True, slots=True)
class Backup:
    """Backup; if encrypted, ``relations`` and ``files`` are empty until it is opened."""

    store: Store
    name: str
    format: int
    kind: Kind
    version: str
    postgresql: str
    started_at: datetime
    finished_at: datetime
    size: int  # bytes
    wal: str  # the position up to which it has the log
    parent: str  # the backup that an incremental one continues
    secret: SecretIn
    sealing: Sealing | None
    relations: dict[str, Relation]
    files: dict[str, str]  # SHA-256 of files that no manifest has
    key: Key | None = None

    @property
    def location(self) -> str:
        return self.store.locate(self.name)

    @property
    def folder(self) -> Path | None:
        """Return the folder with its original files; None if they are encrypted, packed or remote."""
        return self.store.folder_of(self.name) if self.format == PLAIN else None

    def publish(self, draft: Draft) -> None:
        """Describe the files of a draft and publish it as a backup."""
        content = self._facts()
        if self.key is not None:
            with creating(draft, CONTENTS, self.key) as sink:
                sink.write(json.dumps(content).encode())
            del content["relations"], content["files"]
        content["sha256"] = _digest_of(content)
        draft.publish(json.dumps(content, indent=1).encode())

    def _facts(self) -> dict[str, Any]:
        facts = {
            name: getattr(self, name)
            for name in self.__dataclass_fields__
            if name not in {"store", "name", "key", "sealing"}
        }
        facts |= {
            "relations": {name: it.in_json() for name, it in self.relations.items()},
            "started_at": self.started_at.isoformat(),
            "finished_at": self.finished_at.isoformat(),
        }
        return facts if self.sealing is None else facts | {"sealing": self.sealing.in_json()}

    @classmethod
    def read(cls, store: Store, name: str) -> "Backup":
        """Read the unencrypted description of a backup; raises Refusal if it is missing, damaged or too new."""
        where = store.locate(name)
        try:
            with store.open(name, DESCRIPTION) as reader:
                content = json.loads(reader.read())
            digest = content.pop("sha256")
        except FileNotFoundError:
            raise Refusal(f"{where} is not a backup: it has no {DESCRIPTION}.") from None
        except OSError as error:
            raise Refusal(f"The backup {where} cannot be read: {error.strerror}.") from None
        except (ValueError, KeyError, AttributeError, TypeError, RecursionError):
            raise damaged(where, DESCRIPTION) from None
        if digest != _digest_of(content):
            raise damaged(where, DESCRIPTION)
        if (made_in := content.get("format")) not in (PLAIN, PACKED):
            raise Refusal(
                f"The backup {where} has the format {made_in}; use the version of Tablero that made it."
            )
        try:
            return cls._from(content, store, name)
        except (
            ArithmeticError,
            AttributeError,
            LookupError,
            TypeError,
            ValueError,
        ):  # its checksum is no proof: anyone can make one
            raise damaged(where, DESCRIPTION) from None

    @classmethod
    def _from(cls, content: dict[str, Any], store: Store, name: str) -> "Backup":
        sealing = content.pop("sealing", None)
        texts = {field: content.pop(field) for field in ("version", "postgresql", "wal", "parent")}
        if not all(isinstance(text, str) for text in texts.values()) or (
            texts["parent"] and (not is_name(texts["parent"]) or texts["parent"] == name)
        ):
            raise ValueError(name)
        return cls(
            store=store,
            name=name,
            kind=Kind(content.pop("kind")),
            secret=SecretIn(content.pop("secret")),
            sealing=sealing and Sealing(**sealing),
            started_at=datetime.fromisoformat(content.pop("started_at")),
            finished_at=datetime.fromisoformat(content.pop("finished_at")),
            relations=_relations(content.pop("relations", {})),
            files=dict(content.pop("files", {})),
            size=int(content.pop("size")),
            format=int(content.pop("format")),
            **texts,
        )

    def opened(self, passphrase: bytes | None) -> "Backup":
        """Return the backup with all contents; raises Refusal for an encrypted one without the right passphrase."""
        if self.sealing is None or self.key is not None:
            return self
        if passphrase is None:
            raise Refusal(
                f"The backup {self.location} is sealed; give the passphrase with --passphrase-file FILE."
            )
        backup = replace(self, key=Key.open(self.sealing, passphrase))
        content = json.loads(backup.content_of(CONTENTS))
        relations, files = _relations(content["relations"]), content["files"]
        backup = replace(backup, relations=relations, files=files)
        if json.loads(json.dumps(backup._facts())) != content:
            raise damaged(self.location, DESCRIPTION)
        return backup

    @contextmanager
    def reading(self, file: str) -> Iterator[Reader]:
        """Yield a reader of a file, decrypted if the backup is encrypted; raises Refusal if it is damaged."""
        try:
            with self.store.open(self.name, file if self.sealing is None else file + SEALED_SUFFIX) as source:
                yield source if self.key is None else UnsealingReader(source, self.key, file)
        except ValueError:
            raise damaged(self.location, file) from None
        except FileNotFoundError:
            raise damaged(self.location, file, "which is missing") from None

    def content_of(self, file: str) -> bytes:
        with self.reading(file) as reader:
            return reader.read()


@contextmanager
def creating(draft: Draft, file: str, key: Key | None, expected: int = 0) -> Iterator[Writer]:
    """Yield a writer to a file of a draft, encrypting if there is a key."""
    if key is None:
        with draft.create(file, expected) as sink:
            yield sink
    else:
        with draft.create(file + SEALED_SUFFIX, expected) as sink, sealing_into(sink, key, file) as writer:
            yield writer


def find(location: str, store: Store) -> Backup:
    """Return the backup at a location, or the latest of a store."""
    if (found := split_backup(location)) is not None:
        return Backup.read(*found)
    return last(store)


def backups(store: Store) -> list[Backup]:
    """Return the readable backups, oldest first."""
    backups = []
    for name in sorted(store.names()):
        with suppress(Refusal):
            backups.append(Backup.read(store, name))
    return sorted(backups, key=lambda it: it.started_at)


def last(store: Store) -> Backup:
    found = backups(store)
    if not found:
        raise Refusal(f"There is no backup in {store.location}.")
    return found[-1]


def chain_of(backup: Backup, passphrase: bytes | None) -> list[Backup]:
    """Return the chain that ends in a backup, all opened."""
    chain = [backup.opened(passphrase)]
    while parent := chain[0].parent:
        if any(parent == it.name for it in chain):
            raise damaged(backup.location, DESCRIPTION, "which continues itself")
        chain.insert(0, Backup.read(backup.store, parent).opened(passphrase))
    return chain


def chains(backups: list[Backup]) -> list[list[Backup]]:
    """Group backups into chains, each a full backup or dump with its incremental ones; latest chain last."""
    root: dict[str, str] = {}
    grouped: dict[str, list[Backup]] = {}
    for it in backups:
        root[it.name] = root.get(it.parent, it.parent) if it.parent else it.name
        grouped.setdefault(root[it.name], []).append(it)
    return sorted(grouped.values(), key=lambda chain: chain[-1].started_at)


def delete_older(store: Store, keep: int) -> list[str]:
    """Delete all but the newest chains, each from its end; return the deleted names."""
    deleted = [it.name for chain in chains(backups(store))[:-keep] for it in reversed(chain)]
    for name in deleted:
        store.delete(name)
    return deleted


def damaged(where: str, file: str, what: str = "which has changed since") -> Refusal:
    return Refusal(f"The backup {where} is damaged: {file}, {what}. Use another backup.")


def _relations(found: dict[str, Any]) -> dict[str, Relation]:
    return {name: Relation.from_json(it) for name, it in found.items()}


def _digest_of(content: dict[str, Any]) -> str:
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()
