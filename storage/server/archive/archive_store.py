"""Files of an archive, in a folder or a bucket, sealed or not: its description, and what it has of the log.

archive.json     format, the system identifier of the database, and the parameters of the seal
base/NAME        base backups, each with NAME.json beside it
timelines/       an empty file for each time at which a server began to use another timeline
wal/             segments and timeline histories, each compressed by gzip; the header has the time of its last record

In a sealed archive, each file but archive.json is sealed, and has the suffix of sealed files. The archiver imports
this module, and with it the libraries of seals and buckets only if it needs them.
"""

import gzip
import io
import json
import struct
import zlib
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from storage.server.backups.stores import SEALED_SUFFIX, Store, open_store
from storage.server.refusal import Refusal

if TYPE_CHECKING:
    from storage.server.backups.description import Backup
    from storage.server.backups.sealing import Key

DESCRIPTION: Final = "archive.json"
PLAIN: Final = 1  # format
SEALED: Final = 2
SUFFIX: Final = ".gz"
SEGMENT: Final = 16 << 20  # bytes
LOG, TIMELINES, BASES = "wal", "timelines", "base"
_LEVEL: Final = 1  # higher levels cost twice the time for a tenth of the size
_HEADER: Final = 64  # bytes, of a compressed file
_SEALED_HEADER: Final = 600 << 10  # bytes, with two chunks of a sealed file


class NotAnArchive(Refusal):
    """There is no readable archive; the text is a sentence."""


class Identity(NamedTuple):
    system: str
    sealing: dict[str, Any] | None


class Archive:
    """Archive at a location; ``passphrase_file`` opens it if it is sealed, or seals a new one."""

    def __init__(self, location: str, passphrase_file: Path | None = None) -> None:
        self.store: Store = open_store(location)
        self.passphrase_file = passphrase_file
        self._opened: tuple[dict[str, Any], Key] | None = None
        self._times: dict[str, datetime] = {}  # by name of the segment
        self._texts: dict[tuple[str, str], bytes] = {}  # small files

    @property
    def location(self) -> str:
        return self.store.location

    def identity(self) -> Identity:
        """Read whose archive it is; raises NotAnArchive."""
        try:
            with self.store.open("", DESCRIPTION) as reader:
                content = json.loads(reader.read())
            if content["format"] not in {PLAIN, SEALED}:
                raise NotAnArchive(f"The archive {self.location} was made by another version of Tablero.")
            sealing = content["sealing"] if content["format"] == SEALED else None
            return Identity(str(content["system"]), sealing)
        except FileNotFoundError:
            raise NotAnArchive(f"{self.location} is not an archive: it has no {DESCRIPTION}.") from None
        except Refusal as refusal:
            raise NotAnArchive(str(refusal)) from None
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise NotAnArchive(f"The archive {self.location} cannot be read: {error}.") from None

    def exists(self) -> bool:
        try:
            self.identity()
        except NotAnArchive:
            return False
        return True

    def open(self) -> Identity:
        """Derive the key of a sealed archive; raises NotAnArchive, or Refusal without the right passphrase."""
        identity = self.identity()
        if identity.sealing is None:
            self._opened = None
        elif self._opened is None or self._opened[0] != identity.sealing:
            from storage.server.backups import sealing

            passphrase = self.passphrase()
            if passphrase is None:
                raise Refusal(
                    f"The archive {self.location} is sealed; give the passphrase with --passphrase-file FILE."
                )
            try:
                parameters = sealing.Sealing(**identity.sealing)
            except TypeError:
                raise Refusal(f"{self.location}/{DESCRIPTION} is damaged.") from None
            self._opened = identity.sealing, sealing.Key.open(parameters, passphrase, "archive")
        return identity

    def create(self, system: str) -> None:
        """Make an archive for a database, sealed if there is a passphrase; raises Refusal."""
        content: dict[str, Any] = {"format": PLAIN, "system": system}
        if (passphrase := self.passphrase()) is not None:
            from storage.server.backups import sealing

            key = sealing.Key.new(passphrase)
            content |= {"format": SEALED, "sealing": key.sealing.in_json()}
        with suppress(FileExistsError):  # another process was faster
            self.store.put("", DESCRIPTION, json.dumps(content).encode())

    def passphrase(self) -> bytes | None:
        if self.passphrase_file is None:
            return None
        from storage.server.backups import sealing

        return sealing.read_passphrase(self.passphrase_file)

    @property
    def is_sealed(self) -> bool:
        return self._opened is not None

    def names(self, folder: str) -> dict[str, int]:
        """Return the files of a folder with their sizes, by their names without the suffix of sealed files."""
        sizes = self.store.files(folder)
        if not self.is_sealed:
            return sizes
        sealed = {name: size for name, size in sizes.items() if name.endswith(SEALED_SUFFIX)}
        return {name.removesuffix(SEALED_SUFFIX): size for name, size in sealed.items()}

    def read(self, folder: str, name: str) -> bytes:
        """Read a file; raises Refusal if it is missing or damaged."""
        where = f"{self.location}/{folder}/{name}"
        try:
            with self.store.open(folder, self._file(name)) as reader:
                if self._opened is None:
                    return reader.read()
                from storage.server.backups.sealing import UnsealingReader

                return UnsealingReader(reader, self._opened[1], f"{folder}/{name}").read()
        except FileNotFoundError:
            raise Refusal(f"{where} is missing.") from None
        except ValueError:
            raise Refusal(f"{where} is damaged.") from None
        except OSError as error:
            raise Refusal(f"{where} cannot be read: {error.strerror}.") from None

    def write(self, folder: str, name: str, content: bytes) -> None:
        """Store a file durably and as a whole; raises FileExistsError if there is one."""
        if self._opened is not None:
            from storage.server.backups.sealing import sealing_into

            sealed = io.BytesIO()
            with sealing_into(sealed, self._opened[1], f"{folder}/{name}") as writer:
                writer.write(content)
            content = sealed.getvalue()
        self.store.put(folder, self._file(name), content)

    def remove(self, folder: str, name: str) -> None:
        self.store.remove(folder, self._file(name))

    def read_once(self, folder: str, name: str) -> bytes:
        """Read a small file, which never changes, and keep it in memory."""
        if (folder, name) not in self._texts:
            self._texts[folder, name] = self.read(folder, name)
        return self._texts[folder, name]

    def bases(self) -> set[str]:
        """Return the names of the base backups."""
        entries = self.store.sub(BASES).entries()
        return {name for name in entries if self._file(f"{name}.json") in entries}

    def base(self, name: str) -> "Backup":
        """Return an opened base backup; raises Refusal if it is damaged."""
        from storage.server.backups import description

        base = description.Backup.read(self.store.sub(BASES), name)
        if self.is_sealed and base.sealing is None:
            raise description.damaged(base.location, DESCRIPTION, "which is not sealed")
        return base.opened(self.passphrase())

    def read_history(self, name: str) -> bytes:
        """Read the history of a timeline; raises Refusal if it is missing or damaged."""
        return self._unpack(name, self.read_once(LOG, f"{name}{SUFFIX}"))

    def read_segment(self, name: str) -> bytes:
        """Read a segment; raises Refusal if it is missing or damaged."""
        if len(content := self._unpack(name, self.read(LOG, f"{name}{SUFFIX}"))) != SEGMENT:
            raise Refusal(f"{self.location}/{LOG}/{name}{SUFFIX} is not a complete segment.")
        return content

    def _unpack(self, name: str, content: bytes) -> bytes:
        try:
            return gzip.decompress(content)
        except (EOFError, zlib.error, gzip.BadGzipFile):
            raise Refusal(f"{self.location}/{LOG}/{name}{SUFFIX} is damaged.") from None

    def write_log(self, name: str, content: bytes, modified: int) -> bool:
        """Store a file of the log; return False if there is one with other content."""
        try:
            self.write(LOG, f"{name}{SUFFIX}", compress(content, modified))
        except FileExistsError:
            try:
                return self._unpack(name, self.read(LOG, f"{name}{SUFFIX}")) == content
            except Refusal:
                return False
        return True

    def time_of(self, name: str) -> datetime:
        """Return the time of the last record of a segment, from the header of the file; raises Refusal."""
        if name not in self._times:
            self._times[name] = self._read_time(name)
        return self._times[name]

    def _read_time(self, name: str) -> datetime:
        file = f"{name}{SUFFIX}"
        size = _HEADER if self._opened is None else _SEALED_HEADER
        header = self.store.start(LOG, self._file(file), size)
        try:
            if self._opened is not None:
                from storage.server.backups.sealing import UnsealingReader

                header = UnsealingReader(io.BytesIO(header), self._opened[1], f"{LOG}/{file}").read(_HEADER)
            return datetime.fromisoformat(header[10:].partition(b"\0")[0].decode())
        except ValueError:
            raise Refusal(f"{self.location}/{LOG}/{file} is damaged.") from None

    def _file(self, name: str) -> str:
        return f"{name}{SEALED_SUFFIX}" if self.is_sealed else name


def compress(content: bytes, modified: int) -> bytes:
    """Compress with gzip, storing the time of the last change in the comment, which survives copying."""
    when = datetime.fromtimestamp(modified // 1_000_000_000, UTC).replace(
        microsecond=modified // 1000 % 1_000_000
    )
    header = b"\x1f\x8b\x08\x10" + struct.pack("<IBB", modified // 1_000_000_000 & 0xFFFFFFFF, 4, 3)
    deflate = zlib.compressobj(_LEVEL, zlib.DEFLATED, -15)
    body = deflate.compress(content) + deflate.flush()
    end = struct.pack("<II", zlib.crc32(content), len(content))
    return b"".join((header, when.isoformat().encode() + b"\0", body, end))
