"""Connection strings, and the snippets that put them to use."""

import json
from enum import StrEnum
from typing import Final, assert_never
from urllib.parse import urlsplit

from storage.domain.service import connection_samples as samples


class ConnectionFormat(StrEnum):
    """A file or program that a connection string is inserted into."""

    STRING = "string"
    ENV = "env"
    COMPOSE = "compose"
    APPSETTINGS = "appsettings"
    FUNCTIONS = "functions"
    PYTHON = "python"
    JAVASCRIPT = "javascript"
    CSHARP = "csharp"
    GO = "go"


PROGRAMS: Final = frozenset(
    {ConnectionFormat.PYTHON, ConnectionFormat.JAVASCRIPT, ConnectionFormat.CSHARP, ConnectionFormat.GO}
)


def connection_string(account: str, endpoint: str, key: str) -> str:
    """Build a connection string; ``key`` is base64 or a placeholder."""
    scheme = urlsplit(endpoint).scheme
    return (
        f"DefaultEndpointsProtocol={scheme};AccountName={account};AccountKey={key};TableEndpoint={endpoint};"
    )


def write_connection(form: ConnectionFormat, text: str) -> str:
    """Insert a connection string into a snippet."""
    match form:
        case ConnectionFormat.STRING:
            return text
        case ConnectionFormat.ENV:
            return f'TABLES_CONNECTION_STRING="{text}"'
        case ConnectionFormat.COMPOSE:
            return samples.COMPOSE % text
        case ConnectionFormat.APPSETTINGS:
            return _json({"ConnectionStrings": {"Tables": text}})
        case ConnectionFormat.FUNCTIONS:
            return _json({"IsEncrypted": False, "Values": {"AzureWebJobsStorage": text, "Tables": text}})
        case ConnectionFormat.PYTHON:
            return samples.PYTHON % text
        case ConnectionFormat.JAVASCRIPT:
            return samples.JAVASCRIPT % text
        case ConnectionFormat.CSHARP:
            return samples.CSHARP % text
        case ConnectionFormat.GO:
            return samples.GO % text
    assert_never(form)


def _json(document: object) -> str:
    return json.dumps(document, indent=2, ensure_ascii=False)


def read_host(text: str) -> str:
    """Return a host name, possibly with a port or a scheme; an empty string if it is not valid."""
    text = text.strip()
    try:
        parts = urlsplit(text if "://" in text else f"//{text}")
        is_good = parts.hostname is not None and (parts.port or True)
    except ValueError:
        return ""
    is_plain = text.isascii() and not set(text) & set(" ;'\"\\<>{}$`\n\r\t?#@%")
    return text if is_good and is_plain and parts.scheme in {"", "http", "https"} else ""
