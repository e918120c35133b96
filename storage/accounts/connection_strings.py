"""Connection strings, and snippets that contain them."""

import json
from enum import StrEnum
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit


class ConnectionFormat(StrEnum):
    """Configuration file or program into which a connection string is inserted."""

    STRING = "string"
    ENV = "env"
    COMPOSE = "compose"
    APPSETTINGS = "appsettings"
    FUNCTIONS = "functions"
    PYTHON = "python"
    JAVASCRIPT = "javascript"
    CSHARP = "csharp"
    GO = "go"


def connection_string(account: str, endpoint: str, key: str) -> str:
    """Build a connection string; ``key`` is base64 or a placeholder.

    It ends without a semicolon, like those of Azure's portal: programs that split it by hand die of an empty part.
    """
    scheme = urlsplit(endpoint).scheme
    return (
        f"DefaultEndpointsProtocol={scheme};AccountName={account};AccountKey={key};TableEndpoint={endpoint}"
    )


def write_connection(form: ConnectionFormat, text: str) -> str:
    """Insert a connection string into a snippet."""
    match form:
        case ConnectionFormat.APPSETTINGS:
            document: object = {"ConnectionStrings": {"Tables": text}}
        case ConnectionFormat.FUNCTIONS:
            document = {"IsEncrypted": False, "Values": {"AzureWebJobsStorage": text, "Tables": text}}
        case _:
            return _TEMPLATES[form] % text
    return json.dumps(document, indent=2, ensure_ascii=False)


def read_sample(name: str) -> str:
    """Read a sample program, with ``%s`` in place of the connection string and no other percent sign."""
    return (Path(__file__).with_name("samples") / f"{name}.txt").read_text("utf-8")


_TEMPLATES: Final = {
    ConnectionFormat.STRING: "%s",
    ConnectionFormat.ENV: 'TABLES_CONNECTION_STRING="%s"',
    ConnectionFormat.COMPOSE: read_sample("compose"),
    ConnectionFormat.PYTHON: read_sample("python"),
    ConnectionFormat.JAVASCRIPT: read_sample("javascript"),
    ConnectionFormat.CSHARP: read_sample("csharp"),
    ConnectionFormat.GO: read_sample("go"),
}


def read_host(text: str) -> str:
    """Return a valid host name with optional scheme and port; otherwise an empty string."""
    text = text.strip()
    try:
        parts = urlsplit(text if "://" in text else f"//{text}")
        is_good = parts.hostname is not None and (parts.port or True)
    except ValueError:
        return ""
    is_plain = text.isascii() and not set(text) & set(" ;'\"\\<>{}$`\n\r\t?#@%")
    return text if is_good and is_plain and parts.scheme in {"", "http", "https"} else ""
