"""Signed requests as the bytes that go on the wire, with the headers that the official clients send."""

from base64 import b64decode, b64encode
from datetime import UTC, datetime
from email.utils import format_datetime
from hmac import digest
from urllib.parse import quote, urlsplit

VERSION = "2019-02-02"
MINIMAL = "application/json;odata=minimalmetadata"
NONE = "application/json;odata=nometadata"
JSON = "application/json"
BATCH = "multipart/mixed; boundary=batch_7f3c"


class Client:
    """Signs requests to one endpoint, dated when it was made: they are good for 15 minutes."""

    def __init__(self, endpoint: str, key: str) -> None:
        parts = urlsplit(endpoint)
        self.address = (parts.hostname or "127.0.0.1", parts.port or 80)
        self.endpoint = endpoint.rstrip("/")
        self._host = parts.netloc
        self._base = parts.path.rstrip("/")
        self._account = self._base.strip("/")
        self._key = b64decode(key)
        self._date = format_datetime(datetime.now(UTC), usegmt=True)

    def head(
        self,
        verb: str,
        path: str,
        *,
        options: str = "",
        accept: str = MINIMAL,
        content: str = "",
        extra: str = "",
    ) -> str:
        """Request line and headers, all but Content-Length; `extra` is whole header lines."""
        target = self._base + path
        signed = f"{verb}\n\n{content}\n{self._date}\n/{self._account}{target}"
        signature = b64encode(digest(self._key, signed.encode(), "sha256")).decode()
        return (
            f"{verb} {target}{'?' if options else ''}{quote(options, safe=OPTION_SAFE)} HTTP/1.1\r\n"
            f"Host: {self._host}\r\nx-ms-date: {self._date}\r\nx-ms-version: {VERSION}\r\n"
            f"DataServiceVersion: 3.0\r\nAccept: {accept}\r\n"
            f"Authorization: SharedKey {self._account}:{signature}\r\n"
            + (f"Content-Type: {content}\r\n" if content else "")
            + extra
        )


OPTION_SAFE = "$=&'(),:"


def with_body(head: str, body: str) -> bytes:
    return f"{head}Content-Length: {len(body)}\r\n\r\n{body}".encode()


def without_body(head: str) -> bytes:
    return f"{head}\r\n".encode()


def entity_path(table: str, partition_key: str, row_key: str) -> str:
    return f"/{table}(PartitionKey='{partition_key}',RowKey='{row_key}')"


def insert_batch(endpoint: str, table: str, entities: list[str]) -> str:
    """Return the body of a change set that inserts the given entities."""
    part = (
        "--changeset_7f3c\r\nContent-Type: application/http\r\nContent-Transfer-Encoding: binary\r\n\r\n"
        f"POST {endpoint}/{table} HTTP/1.1\r\nContent-Type: {JSON}\r\nAccept: {MINIMAL}\r\n"
        "Prefer: return-no-content\r\nDataServiceVersion: 3.0\r\n\r\n"
    )
    return (
        "--batch_7f3c\r\nContent-Type: multipart/mixed; boundary=changeset_7f3c\r\n\r\n"
        + "".join(f"{part}{entity}\r\n" for entity in entities)
        + "--changeset_7f3c--\r\n--batch_7f3c--\r\n"
    )
