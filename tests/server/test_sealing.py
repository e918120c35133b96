"""Sealed backups: what was changed in one is noticed."""

import io
import tarfile
from datetime import UTC, datetime

import pytest

from storage.backups.last_backup import Kind
from storage.server.backups import description, files, sealing
from storage.server.backups.description import PACKED, Backup, SecretIn
from storage.server.backups.sealing import Key, SealingWriter, UnsealingReader
from storage.server.backups.stores import FolderStore
from storage.server.refusal import Refusal

PASSPHRASE = b"correct horse battery staple"
KEY = Key(PASSPHRASE, bytes(16), 2)
NOW = datetime(2026, 11, 25, 12, tzinfo=UTC)
CHUNK = 256 << 10
OVERHEAD = len(b"tablero sealed 1\n") + 16


@pytest.fixture(autouse=True)
def _cheap(monkeypatch):
    """Keys that take no half second each."""
    monkeypatch.setattr(sealing, "_COST", 2)


def sealed(content, file="file", pieces=100_000):
    sink = io.BytesIO()
    writer = SealingWriter(sink, KEY, file)
    for start in range(0, len(content), pieces):
        writer.write(content[start : start + pieces])
    writer.finish()
    return sink.getvalue()


def unsealed(data, file="file", key=KEY):
    return UnsealingReader(io.BytesIO(data), key, file).read()


@pytest.mark.parametrize("size", [0, 1, CHUNK - 1, CHUNK, CHUNK + 1, 3 * CHUNK, 3 * CHUNK + 7])
def test_sealed_content_can_be_read_in_pieces_of_any_size(size):
    content = bytes(range(256)) * (size // 256) + bytes(size % 256)
    data = sealed(content)
    assert unsealed(data) == content
    reader = UnsealingReader(io.BytesIO(data), KEY, "file")
    assert b"".join(iter(lambda: reader.read(70_001), b"")) == content
    assert content[:300] not in data or size < 2


def test_chunks_cannot_be_cut_off_exchanged_repeated_or_changed():
    data = sealed(bytes(3 * CHUNK))
    whole = CHUNK + 16
    head, chunks = data[:OVERHEAD], [data[OVERHEAD + i * whole :][:whole] for i in range(3)]
    other = sealed(bytes(3 * CHUNK))
    flipped = bytearray(data)
    flipped[-1] ^= 1
    for changed in (
        head + chunks[0] + chunks[1],
        data[:-1],
        head,
        data[:10],
        b"",
        data + b"x",
        head + chunks[1] + chunks[0] + chunks[2],
        head + chunks[0] + chunks[0] + chunks[2],
        data + chunks[2],
        head + other[OVERHEAD:],
        bytes(flipped),
    ):
        with pytest.raises(ValueError, match="file"):
            unsealed(changed)
    for name, key in (("other", KEY), ("file", Key.new(PASSPHRASE))):
        with pytest.raises(ValueError, match=name):
            unsealed(data, name, key)


@pytest.fixture
def store(tmp_path):
    return FolderStore(tmp_path / "backups")


def backed_up(store, started_at=NOW, content=b"dump"):
    key = Key.new(PASSPHRASE)
    with store.held(), store.draft(started_at) as draft:
        digests = files.write_stream(draft, files.DUMP, io.BytesIO(content), key)
        digests |= files.write_file(draft, "secret", b"the secret", key)
        Backup(
            store, draft.name, PACKED, Kind.DUMP, "1", "18.1", started_at, NOW, 4, "", "", SecretIn.SEALED,
            key.sealing, {}, digests, key,
        ).publish(draft)  # fmt: skip
    return Backup.read(store, draft.name)


def test_a_sealed_backup_says_only_what_a_list_needs(store, tmp_path):
    made = backed_up(store)
    assert (made.relations, made.files, made.key) == ({}, {}, None)
    files.take(made.opened(PASSPHRASE), tmp_path / "target")
    assert (tmp_path / "target" / files.DUMP).read_bytes() == b"dump"
    assert files.read_verified(made.opened(PASSPHRASE), "secret") == b"the secret"
    with pytest.raises(Refusal, match="is sealed; give the passphrase"):
        made.opened(None)
    with pytest.raises(Refusal, match="The passphrase is wrong"):
        made.opened(b"another passphrase")


def test_files_of_a_sealed_backup_cannot_be_exchanged_or_left_out(store):
    made, later = backed_up(store), backed_up(store, NOW.replace(day=26), b"other")
    folder, other = store.path / made.name, store.path / later.name

    def exchange(file, content):
        before = (folder / file).read_bytes() if (folder / file).exists() else None
        (folder / file).write_bytes(content)
        with pytest.raises(Refusal, match="is damaged"):
            files.verify(Backup.read(store, made.name).opened(PASSPHRASE))
        (folder / file).unlink() if before is None else (folder / file).write_bytes(before)

    exchange("database.dump.sealed", (other / "database.dump.sealed").read_bytes())
    exchange("database.dump.sealed", (folder / "secret.sealed").read_bytes())
    exchange("contents.json.sealed", (other / "contents.json.sealed").read_bytes())
    exchange("more.sealed", (folder / "secret.sealed").read_bytes())
    exchange("more", b"more")
    (folder / "secret.sealed").unlink()
    with pytest.raises(Refusal, match="secret, which is missing"):
        files.verify(Backup.read(store, made.name).opened(PASSPHRASE))


def test_the_description_is_as_it_was_sealed(store):
    made = backed_up(store)
    path = store.path / made.name / "backup.json"
    content = description.json.loads(path.read_bytes())
    content["postgresql"] = "17.1"
    del content["sha256"]
    content["sha256"] = description._digest_of(content)
    path.write_text(description.json.dumps(content))
    with pytest.raises(Refusal, match=r"backup\.json, which has changed since"):
        Backup.read(store, made.name).opened(PASSPHRASE)


@pytest.mark.parametrize("name", ["../outside", "/outside", "link"])
def test_an_archive_cannot_lead_out_of_its_folder(store, name):
    archive = io.BytesIO()
    with tarfile.open(fileobj=archive, mode="w") as tar:
        member = tarfile.TarInfo(name)
        if name == "link":
            member.type, member.linkname = tarfile.SYMTYPE, "/etc"
        tar.addfile(member)
    archive.seek(0)
    with (
        store.held(),
        store.draft(NOW) as draft,
        pytest.raises(Refusal, match="which is no file of a database"),
    ):
        files.write_database(archive, draft, None, 0)
    assert not (store.path / "outside").exists()


def test_a_secret_that_is_sealed_alone_opens_with_its_passphrase_only():
    text = sealing.seal_secret(b"the secret", PASSPHRASE)
    assert b"the secret" not in text
    assert sealing.unseal_secret(text, PASSPHRASE) == b"the secret"
    with pytest.raises(Refusal, match="wrong"):
        sealing.unseal_secret(text, b"another passphrase")
