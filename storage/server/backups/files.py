"""Files of a backup: written from pg_basebackup's stream, verified, and extracted."""

import hashlib
import json
import os
import tarfile
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import Any, Final, NamedTuple

from storage.backups.last_backup import Kind
from storage.server.backups.description import CONTENTS, Backup, creating, damaged
from storage.server.backups.sealing import Key
from storage.server.backups.stores import DESCRIPTION, SEALED_SUFFIX, Draft, FolderDraft, Reader, Writer
from storage.server.refusal import Refusal

DATABASE: Final = "database"
ARCHIVE: Final = "database.tar"
DUMP: Final = "database.dump"
MANIFEST: Final = "backup_manifest"
SETTINGS: Final = "custom.conf"
_PIECE: Final = 1 << 20


class Member(NamedTuple):
    """File or folder of a database, by its relative name; a folder has no reader."""

    name: str
    reader: Reader | None


class Written(NamedTuple):
    """Files written for a new backup: checksums and manifest."""

    digests: dict[str, str]
    manifest: bytes


def write_database(stream: Reader, draft: Draft, key: Key | None, expected: int) -> Written:
    """Store the output of pg_basebackup, which is complete when ``complete_database`` has checked it."""
    if isinstance(draft, FolderDraft) and key is None:
        return _unpack(stream, draft)
    with creating(draft, ARCHIVE, key, expected) as sink:
        return _pack(stream, sink)


def complete_database(written: Written, draft: Draft, key: Key | None) -> Written:
    """Return the files that the manifest does not list; raises Refusal unless those that it lists match."""
    listed = read_manifest(written.manifest, draft.name)
    for name, digest in listed.items():
        if written.digests.get(f"{DATABASE}/{name}") != digest:
            raise Refusal(f"The database sent {name} with an error; run the backup again.")
    digests = {it: digest for it, digest in written.digests.items() if it.partition("/")[2] not in listed}
    if ARCHIVE in draft.written or ARCHIVE + SEALED_SUFFIX in draft.written:
        digests |= write_file(draft, MANIFEST, written.manifest, key)  # incremental backups begin with it
    return Written(digests, written.manifest)


def write_file(draft: Draft, file: str, content: bytes, key: Key | None) -> dict[str, str]:
    with creating(draft, file, key) as sink:
        sink.write(content)
    return {file: hashlib.sha256(content).hexdigest()}


def write_stream(draft: Draft, file: str, stream: Reader, key: Key | None) -> dict[str, str]:
    with creating(draft, file, key) as sink:
        return {file: _copy(stream, sink)}


def _unpack(stream: Reader, draft: FolderDraft) -> Written:
    digests: dict[str, str] = {}
    manifest = b""
    for member in _members(stream, draft.name):
        path = f"{DATABASE}/{member.name}"
        if member.reader is None:
            draft.make_folder(path)
            continue
        if member.name == MANIFEST:
            manifest = member.reader.read()
            digests |= write_file(draft, path, manifest, None)
        else:
            digests |= write_stream(draft, path, member.reader, None)
    return Written(digests, manifest)


def _pack(stream: Reader, sink: Writer) -> Written:
    digests: dict[str, str] = {}
    manifest = b""
    source = _Tee(stream, sink)
    for member in _members(source, ARCHIVE):
        if member.reader is None:
            continue
        if member.name == MANIFEST:
            manifest = member.reader.read()
            digests[f"{DATABASE}/{MANIFEST}"] = hashlib.sha256(manifest).hexdigest()
        else:
            digests[f"{DATABASE}/{member.name}"] = _copy(member.reader, None)
    while source.read(_PIECE):
        pass
    return Written(digests, manifest)


class _Tee:
    """Reader that copies what it reads into a buffer."""

    def __init__(self, source: Reader, sink: Writer) -> None:
        self._source = source
        self._sink = sink

    def read(self, size: int = -1) -> bytes:
        data = self._source.read(size)
        self._sink.write(data)
        return data


def _members(source: Reader, where: str) -> Iterator[Member]:
    """Yield the members of a tar archive; raises Refusal for a member that could escape the folder."""
    with tarfile.open(fileobj=source, mode="r|", bufsize=_PIECE) as archive:  # type: ignore[call-overload]
        for it in archive:
            name = PurePosixPath(it.name)
            if name.is_absolute() or ".." in name.parts or not (it.isfile() or it.isdir()):
                raise damaged(where, it.name, "which is no file of a database")
            yield Member(str(name), archive.extractfile(it) if it.isfile() else None)


def read_manifest(text: bytes, where: str) -> dict[str, str]:
    """Parse a backup manifest; return PostgreSQL's checksums by file name."""
    # the last line of the manifest is its own checksum, over everything before that line
    try:
        content: dict[str, Any] = json.loads(text)
        before = text[: text.rindex(b'"Manifest-Checksum"')]
        if hashlib.sha256(before).hexdigest() != content["Manifest-Checksum"]:
            raise ValueError(where)
        return {_listed_name(it): it["Checksum"] for it in content["Files"]}
    except (ValueError, KeyError):
        raise damaged(where, f"{DATABASE}/{MANIFEST}") from None


def wal_end(manifest: bytes) -> str:
    """Return the WAL position up to which a base backup needs the log."""
    return str(json.loads(manifest)["WAL-Ranges"][-1]["End-LSN"])


def manifest_of(backup: Backup) -> bytes:
    return backup.content_of(MANIFEST if backup.folder is None else f"{DATABASE}/{MANIFEST}")


def verify(backup: Backup) -> None:
    """Verify all files of a backup; raises Refusal for a missing or changed file."""
    take(backup, None)


def take(backup: Backup, target: Path | None) -> None:
    """Verify an opened backup, extracting its database or dump to ``target`` if given."""
    where = backup.location
    expected = dict(backup.files)
    stored = _stored(backup)
    digests: dict[str, str] = {}
    if backup.kind is not Kind.DUMP:
        listed = read_manifest(manifest_of(backup), where)
        expected |= {f"{DATABASE}/{name}": digest for name, digest in listed.items()}
        digests |= _take_database(backup, stored, target)
        stored.discard(ARCHIVE)
    elif target is not None:
        target.mkdir(mode=0o700, exist_ok=True)
    for file in stored - digests.keys():
        with backup.reading(file) as reader:
            if target is not None and file == DUMP:
                with (target / DUMP).open("wb") as sink:
                    digests[file] = _copy(reader, sink)
            else:
                digests[file] = _copy(reader, None)
    if extra := digests.keys() - expected.keys():
        raise damaged(where, min(extra), "which does not belong to it")
    for file, digest in expected.items():
        if file not in digests:
            raise damaged(where, file, "which is missing")
        if digests[file] != digest:
            raise damaged(where, file)


def read_verified(backup: Backup, file: str) -> bytes:
    """Return the verified content of a small file in an opened backup."""
    content = backup.content_of(file)
    if hashlib.sha256(content).hexdigest() != backup.files.get(file):
        raise damaged(backup.location, file)
    return content


def _stored(backup: Backup) -> set[str]:
    files = set(backup.store.files(backup.name)) - {DESCRIPTION}
    if backup.sealing is not None:
        if plain := [file for file in files if not file.endswith(SEALED_SUFFIX)]:
            raise damaged(backup.location, min(plain), "which does not belong to it")
        files = {file.removesuffix(SEALED_SUFFIX) for file in files} - {CONTENTS}
    return files


def _take_database(backup: Backup, stored: set[str], target: Path | None) -> dict[str, str]:
    """Return the checksums of the database files, extracting them to ``target`` if given."""
    digests = {}
    if target is not None:
        target.mkdir(mode=0o700)
    for member in _database_members(backup, stored):
        path = None if target is None else target / member.name
        if member.reader is None:
            if path is not None:
                path.mkdir(mode=0o700, parents=True, exist_ok=True)
            continue
        if path is None:
            digests[f"{DATABASE}/{member.name}"] = _copy(member.reader, None)
            continue
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with path.open("xb") as sink:
            digests[f"{DATABASE}/{member.name}"] = _copy(member.reader, sink)
    return digests


def _database_members(backup: Backup, stored: set[str]) -> Iterator[Member]:
    if backup.folder is None:
        with backup.reading(ARCHIVE) as source:
            try:
                yield from _members(source, backup.location)
            except (tarfile.TarError, EOFError):
                raise damaged(backup.location, ARCHIVE) from None
            while source.read(_PIECE):  # also what is behind the archive must be as it was sealed
                pass
        return
    root = backup.folder / DATABASE
    for folder, folders, files in os.walk(root):
        inside = Path(folder).relative_to(root)
        for name in folders:
            yield Member((inside / name).as_posix(), None)
        for name in files:
            with backup.reading(f"{DATABASE}/{(inside / name).as_posix()}") as reader:
                yield Member((inside / name).as_posix(), reader)


def _copy(source: Reader, sink: Writer | None) -> str:
    """Read a stream to its end and return its SHA-256, copying it to ``sink`` if given."""
    digest = hashlib.sha256()
    while data := source.read(_PIECE):
        digest.update(data)
        if sink is not None:
            sink.write(data)
    return digest.hexdigest()


def _listed_name(listed: dict[str, str]) -> str:
    encoded = listed.get("Encoded-Path")
    return listed["Path"] if encoded is None else os.fsdecode(bytes.fromhex(encoded))
