"""Backups and archives in a bucket of S3 or a compatible store, or in an Azure Blob container."""

import json
import os
import re
import socket
from collections.abc import Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from datetime import UTC, datetime, timedelta
from typing import Any, Final
from urllib.parse import urlsplit

from storage.server.backups.stores import DESCRIPTION, Writer, is_alive, is_name, name_of
from storage.server.refusal import Refusal

try:
    import obstore
    from obstore import exceptions
    from obstore.store import AzureStore, S3Store
except ModuleNotFoundError:
    raise Refusal(
        "Backups in S3 and Azure Blob Storage need another library;"
        " install it with: pip install 'tablero-server[cloud]'."
    ) from None

_CLAIM: Final = "in-progress"  # reserves the name of a backup that is being made
_ABANDONED: Final = timedelta(days=7)  # after which a backup without a description is one no more
_PART: Final = 8 << 20  # bytes of a part of an upload, with four parts under way, and of a range that is read
_PARTS: Final = 5000  # S3 takes 10,000, and the size of a file is an estimate
_CLIENT: Final = {"timeout": "300s", "connect_timeout": "10s"}  # for a part over a slow line
_ENDPOINTS: Final = (
    "AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL", "AWS_ENDPOINT", "AZURE_STORAGE_ENDPOINT", "AZURE_ENDPOINT",
)  # fmt: skip
_METADATA: Final = "169.254.169.254"  # where machines in a cloud find their credentials
_EXAMPLES: Final = {
    "s3": "AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, for example",
    "az": "AZURE_STORAGE_ACCOUNT_NAME and AZURE_STORAGE_ACCOUNT_KEY, for example",
}


def open_bucket(location: str) -> "Bucket":
    """Return the bucket or container at a URL; raises Refusal for an invalid one."""
    parts = urlsplit(location)
    if parts.username or parts.password or parts.query or parts.fragment:
        raise Refusal(
            f"Leave credentials and options out of the URL {parts.scheme}://...; set the environment variables instead"
            f" ({_EXAMPLES.get(parts.scheme, _EXAMPLES['s3'])})."
        )
    if parts.scheme not in _EXAMPLES or not parts.netloc:
        raise Refusal(
            f"{location} is not a place for backups; give a folder, s3://BUCKET/PREFIX or az://CONTAINER/PREFIX."
        )
    prefix = parts.path.strip("/")
    with _explaining(location):
        return Bucket(location.rstrip("/"), _store(parts.scheme, parts.netloc, prefix or None))


def _store(scheme: str, bucket: str, prefix: str | None) -> Any:
    client: Any = dict(_CLIENT)
    given: Any = _azure_connection() if scheme == "az" else {}
    endpoints = [given.get("endpoint", ""), *(os.environ.get(name, "") for name in _ENDPOINTS)]
    client["allow_http"] = any(it.startswith("http://") for it in endpoints)
    retry: Any = {"max_retries": 6, "retry_timeout": timedelta(minutes=3)}
    if scheme == "s3":
        return S3Store(bucket, prefix=prefix, client_options=client, retry_config=retry)
    return AzureStore(bucket, prefix=prefix, client_options=client, retry_config=retry, **given)


def _azure_connection() -> dict[str, str]:
    """Parse AZURE_STORAGE_CONNECTION_STRING, which obstore does not support."""
    text = os.environ.get("AZURE_STORAGE_CONNECTION_STRING", "")
    parts = dict(part.split("=", 1) for part in text.split(";") if "=" in part)
    names = {
        "AccountName": "account_name",
        "AccountKey": "account_key",
        "SharedAccessSignature": "sas_key",
        "BlobEndpoint": "endpoint",
    }
    return {names[name]: value for name, value in parts.items() if name in names}


class Bucket:
    """Bucket, or a prefix in it."""

    def __init__(self, location: str, store: Any) -> None:
        self.location = location
        self._store = store

    def names(self) -> list[str]:
        return [name for name in self.entries() if is_name(name)]

    def sub(self, name: str) -> "Bucket":
        return open_bucket(f"{self.location}/{name}")

    def entries(self) -> set[str]:
        with _explaining(self.location):
            found = obstore.list_with_delimiter(self._store)
        paths = [*found["common_prefixes"], *(it["path"] for it in found["objects"])]
        return {it.rstrip("/").rpartition("/")[2] for it in paths}

    def locate(self, name: str) -> str:
        return f"{self.location}/{name}"

    def folder_of(self, name: str) -> None:
        return None

    def files(self, name: str) -> dict[str, int]:
        return {file: it["size"] for file, it in self._objects(name).items() if file != _CLAIM}

    def _objects(self, name: str) -> dict[str, Any]:
        with _explaining(self.location):
            found = [it for page in obstore.list(self._store, prefix=f"{name}/") for it in page]
        return {it["path"].partition(f"{name}/")[2]: it for it in found}

    @contextmanager
    def open(self, name: str, file: str) -> Iterator["_Ranges"]:
        path = _path(name, file)
        with _explaining(self.location):
            size = obstore.head(self._store, path)["size"]
        with ThreadPoolExecutor(1) as ahead:
            ranges = _Ranges(self, path, size, ahead)
            yield ranges
            ranges.close()

    def read_range(self, path: str, start: int, length: int) -> bytes:
        with _explaining(self.location):
            return bytes(obstore.get_range(self._store, path, start=start, length=length))

    @contextmanager
    def held(self) -> Iterator[None]:
        """Remove abandoned backups; concurrent backups are allowed."""
        for name in self.names():
            objects = self._objects(name)
            if objects and DESCRIPTION not in objects and self._is_abandoned(name, objects):
                self.remove(name)
        yield

    def _is_abandoned(self, name: str, objects: Mapping[str, Any]) -> bool:
        newest: datetime = max(it["last_modified"] for it in objects.values())
        if datetime.now(UTC) - newest > _ABANDONED:
            return True
        try:
            with self.open(name, _CLAIM) as reader:
                claim = json.loads(reader.read())
            return claim["host"] == socket.gethostname() and not is_alive(str(claim["pid"]))
        except (FileNotFoundError, ValueError, KeyError):
            return False

    @contextmanager
    def draft(self, started_at: datetime) -> Iterator["_BucketDraft"]:
        name = self._claim(started_at)
        draft = _BucketDraft(self, name)
        try:
            yield draft
        finally:
            if not draft.is_published:
                with suppress(Refusal):  # the next backup removes it
                    self.remove(name)

    def _claim(self, started_at: datetime) -> str:
        content = json.dumps({"host": socket.gethostname(), "pid": os.getpid()}).encode()
        for seconds in range(60):
            name = name_of(started_at + timedelta(seconds=seconds))
            try:
                self.put(name, _CLAIM, content)
            except FileExistsError:
                continue
            if not self._objects(name).keys() - {_CLAIM}:
                return name
            obstore.delete(self._store, f"{name}/{_CLAIM}")
        raise Refusal(f"Too many backups are being made in {self.location}; try again in a minute.")

    @contextmanager
    def upload(self, path: str, expected: int) -> Iterator[Writer]:
        """Yield a writer to an object, which is created at the end of the block unless that raises."""
        part = max(_PART, expected // _PARTS)
        with (
            _explaining(self.location),
            obstore.open_writer(self._store, path, buffer_size=part, max_concurrency=4) as writer,
        ):
            yield writer

    def start(self, name: str, file: str, size: int) -> bytes:
        return self.read_range(_path(name, file), 0, size)

    def put(self, name: str, file: str, content: bytes) -> None:
        with _explaining(self.location):
            obstore.put(self._store, _path(name, file), content, mode="create")

    def free(self) -> None:
        return None

    def delete(self, name: str) -> None:
        with _explaining(self.location):
            obstore.delete(self._store, f"{name}/{DESCRIPTION}")  # first: the rest is no backup
        self.remove(name)

    def remove(self, name: str, file: str = "") -> None:
        """Delete a file, or all files of a backup."""
        paths = [_path(name, it) for it in ([file] if file else self._objects(name))]
        with _explaining(self.location):
            obstore.delete(self._store, paths)


def _path(name: str, file: str) -> str:
    return f"{name}/{file}" if name else file


class _BucketDraft:
    def __init__(self, bucket: Bucket, name: str) -> None:
        self.name = name
        self.written: dict[str, int] = {}
        self.is_published = False
        self._bucket = bucket

    @contextmanager
    def create(self, file: str, expected: int = 0) -> Iterator[Writer]:
        counter = _Counter()
        with self._bucket.upload(f"{self.name}/{file}", expected) as sink:
            counter.sink = sink
            yield counter
        self.written[file] = counter.size

    def publish(self, description: bytes) -> None:
        kept = self._bucket.files(self.name)
        for file, size in self.written.items():
            if kept.get(file) != size:
                raise Refusal(
                    f"{self._bucket.location} has not kept what was written: {file} has {kept.get(file, 0):,} bytes"
                    f" instead of {size:,}."
                )
        self._bucket.put(self.name, DESCRIPTION, description)
        self.is_published = True
        self._bucket.remove(self.name, _CLAIM)


class _Counter:
    """Writer that counts the bytes written."""

    def __init__(self) -> None:
        self.sink: Writer
        self.size = 0

    def write(self, data: bytes) -> None:
        self.size += len(data)
        self.sink.write(data)


class _Ranges:
    """Reader of an object in ranges, one range ahead; each range is retried on its own."""

    def __init__(self, bucket: Bucket, path: str, size: int, ahead: ThreadPoolExecutor) -> None:
        self._bucket = bucket
        self._path = path
        self._left = size
        self._position = 0
        self._ahead = ahead
        self._buffer = b""
        self._start = 0
        self._next = self._fetch()

    def read(self, size: int = -1) -> bytes:
        pieces = []
        missing = size if size >= 0 else self._left + len(self._buffer) - self._start + _PART
        while missing > 0:
            if self._start == len(self._buffer):
                if self._next is None:
                    break
                self._buffer, self._start = self._next.result(), 0
                self._next = self._fetch()
            piece = self._buffer[self._start : self._start + missing]
            self._start += len(piece)
            missing -= len(piece)
            pieces.append(piece)
        return pieces[0] if len(pieces) == 1 else b"".join(pieces)

    def _fetch(self) -> "Future[bytes] | None":
        if not self._left:
            return None
        start, length = self._position, min(_PART, self._left)
        self._position += length
        self._left -= length
        return self._ahead.submit(self._bucket.read_range, self._path, start, length)

    def close(self) -> None:
        if self._next is not None:
            self._next.cancel()


@contextmanager
def _explaining(location: str) -> Iterator[None]:
    """Convert service errors to Refusal, without URLs, which may contain a signature."""
    try:
        yield
    except (FileNotFoundError, exceptions.BaseError) as error:
        text = str(error)
        if re.search("NoSuchBucket|ContainerNotFound", text):
            scheme, _, rest = location.partition("://")
            what = "bucket" if scheme == "s3" else "container"
            raise Refusal(
                f"There is no {what} {rest.partition('/')[0]}; create it, or name another."
            ) from None
        if isinstance(error, FileNotFoundError):
            raise
        if isinstance(error, exceptions.AlreadyExistsError | exceptions.PreconditionError):
            raise FileExistsError(location) from None
        raise Refusal(_explain(location, error, text)) from None


def _explain(location: str, error: exceptions.BaseError, text: str) -> str:
    check = (
        f"check the environment variables ({_EXAMPLES[location.partition('://')[0]]}) and what they allow."
    )
    is_refused = isinstance(error, exceptions.PermissionDeniedError | exceptions.UnauthenticatedError)
    if is_refused or re.search("40[13] (Unauthorized|Forbidden)", text):
        return f"{location} refuses access: {check}"
    if _METADATA in text:
        return f"There are no credentials for {location}: {check}"
    if "error sending request" in text:
        return f"{location} cannot be reached: check the network, and the endpoint if you have set one."
    reason = text.partition("\n")[0].rpartition(" - ")[2].partition(": <?xml")[0].strip().rstrip(".")
    return f"{location} cannot be used ({reason or 'no reason given'})."
