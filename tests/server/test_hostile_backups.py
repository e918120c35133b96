"""Backups that an attacker has put where others are: refused in a sentence, and nothing beside them is touched.

Their checksums are right, since anyone can make those; only sealed backups prove who made them.
"""

import hashlib
import io
import json
import tarfile
from datetime import UTC, datetime

import pytest

from storage.server.backups import description, files, restore, sealing
from storage.server.backups.description import PACKED, PLAIN, Backup
from storage.server.backups.sealing import Key, Sealing
from storage.server.backups.stores import DESCRIPTION, FolderStore
from storage.server.refusal import Refusal

ONE, OTHER = "2026-11-25T12-00-00Z", "2026-11-25T13-00-00Z"
CONTENT = {
    "format": PLAIN,
    "kind": "files",
    "version": "0.5",
    "postgresql": "18.0",
    "started_at": datetime(2026, 11, 25, 12, tzinfo=UTC).isoformat(),
    "finished_at": datetime(2026, 11, 25, 12, tzinfo=UTC).isoformat(),
    "size": 1,
    "wal": "0/1",
    "parent": "",
    "secret": "absent",
    "relations": {},
    "files": {},
}


@pytest.fixture
def forge(tmp_path):
    """Return `forge(name, parent=...)`, which makes a backup with this description; None leaves out a member."""
    store = FolderStore(tmp_path / "backups")

    def make(name=ONE, **changes):
        content = {key: value for key, value in {**CONTENT, **changes}.items() if value is not None}
        digest = hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()
        folder = store.path / name
        folder.mkdir(parents=True)
        (folder / DESCRIPTION).write_text(json.dumps({**content, "sha256": digest}))
        return store, folder

    return make


def test_a_well_formed_forgery_is_read(forge):
    store, _ = forge()
    assert Backup.read(store, ONE).name == ONE


ODD = [None, 1, -1.5, True, "x", [], ["x"], {}, {"x": 1}, "2026", 1e999, "../other", "\ud800"]


@pytest.mark.parametrize("member", sorted(CONTENT))
def test_odd_members_are_refused_or_harmless(forge, member):
    for number, value in enumerate(ODD):
        name = f"2026-11-25T12-00-{number:02}Z"
        store, _ = forge(name, **{member: value})
        try:
            result = Backup.read(store, name)
        except Refusal:
            continue
        assert isinstance(
            getattr(result, member), type(getattr(Backup.read(forge(f"a{name}")[0], f"a{name}"), member))
        )


def test_additional_members_set_nothing(forge):
    store, _ = forge(key="mine", store="elsewhere", folder="/etc")
    result = Backup.read(store, ONE)
    assert (result.key, result.store, result.folder) == (None, store, store.path / ONE)


@pytest.mark.parametrize(
    "change", [{"cost": 1 << 40}, {"cost": 3}, {"cost": "x"}, {"salt": "A"}, {"salt": 1}, {"check": 1}]
)
def test_the_parameters_of_a_key_are_bounded(change):
    said = {"salt": "AAAA", "cost": 2, "check": "AAAA", **change}
    with pytest.raises(Refusal, match="damaged"):
        Key.open(Sealing(**said), b"what we know")


@pytest.mark.parametrize("parent", [ONE, "../elsewhere", "/etc", ".", "2026-11-25T12-00-00Z/../x"])
def test_a_parent_is_another_backup_beside_it(forge, parent):
    store, _ = forge(kind="incremental", parent=parent)
    with pytest.raises(Refusal, match="damaged"):
        Backup.read(store, ONE)


def test_backups_that_continue_each_other_have_no_beginning(forge):
    store, _ = forge(ONE, kind="incremental", parent=OTHER)
    forge(OTHER, kind="incremental", parent=ONE)
    with pytest.raises(Refusal, match="continues itself"):
        description.chain_of(Backup.read(store, ONE), None)
    assert len(description.chains(description.backups(store))) <= 2


def member(name, kind=tarfile.REGTYPE, link=""):
    result = tarfile.TarInfo(name)
    result.type, result.linkname, result.size = kind, link, 4 if kind == tarfile.REGTYPE else 0
    return result


@pytest.mark.parametrize(
    "evil",
    [
        member("../beside"),
        member("/absolute"),
        member("base/../../beside"),
        member("base", tarfile.SYMTYPE, "/etc"),
        member("base/1", tarfile.LNKTYPE, "../../beside"),
        member("base/2", tarfile.CHRTYPE),
        member("base/3", tarfile.FIFOTYPE),
    ],
    ids=lambda it: f"{it.name}-{it.type.decode()}",
)
def test_an_archive_stays_in_its_folder(forge, tmp_path, evil):
    before = b'{"Files": [],\n'
    manifest = before + b'"Manifest-Checksum": "%b"}\n' % hashlib.sha256(before).hexdigest().encode()
    store, folder = forge(format=PACKED, files={"backup_manifest": hashlib.sha256(manifest).hexdigest()})
    (folder / files.MANIFEST).write_bytes(manifest)
    with tarfile.open(folder / files.ARCHIVE, "w") as archive:
        archive.addfile(evil, io.BytesIO(b"evil"))
    target = tmp_path / "target"
    with pytest.raises(Refusal, match="no file of a database"):
        files.take(Backup.read(store, ONE), target)
    assert [path for path in tmp_path.rglob("*") if path.name in ("beside", "absolute")] == []
    assert not any(path.is_symlink() for path in target.rglob("*"))


def test_the_lock_does_not_follow_a_link_to_another_file(tmp_path):
    precious = tmp_path / "precious"
    precious.write_text("content")
    folder = tmp_path / "backups"
    folder.mkdir()
    (folder / ".lock").symlink_to(precious)
    with pytest.raises(Refusal, match="not possible to write"), FolderStore(folder).held():
        pass
    assert precious.read_text() == "content"


def test_a_backup_that_is_not_sealed_takes_no_passphrase(forge, settings):
    store, _ = forge()
    with pytest.raises(Refusal, match="is not sealed"):
        restore.restore(settings.OPTIONS, Backup.read(store, ONE), print, passphrase=b"what we know")


@pytest.mark.parametrize(
    "text", [b"", b"[]", b"{}", b"1", b'{"salt": 1}', b'{"salt": "\xff"}', b'{"salt": "AA=="}']
)
def test_a_damaged_secret_is_told_in_a_sentence(text):
    with pytest.raises(Refusal, match="damaged"):
        sealing.unseal_secret(text, b"what we know")
