"""Connections of applications to an account: endpoints and connection strings in the formats of their platforms."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final
from urllib.parse import urlencode, urlsplit

from django.conf import settings
from django.http import HttpRequest
from django.urls import reverse
from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

from console.snippets import Target
from storage.accounts import sealed_keys
from storage.accounts.connection_strings import ConnectionFormat, connection_string, read_host
from storage.accounts.connection_strings import write_connection as write_form
from storage.models import Account, Table

MASK: Final = "•" * 12


def endpoint(request: HttpRequest, account: Account) -> str:
    """Return the account's endpoint on the host that the browser uses."""
    return f"{request.scheme}://{request.get_host()}/{account.name}"


def api_address(request: HttpRequest, operation: str, *arguments: str) -> str:
    """Return the address of an operation of the management API on the host that the browser uses."""
    return request.build_absolute_uri(reverse(f"api-{operation}", args=arguments))


def snippet_target(request: HttpRequest, table: Table) -> Target:
    return Target(endpoint(request, table.account), table.account.name, table.name)


def masked_connection_string(account: Account, endpoint: str) -> str:
    """Return a connection string that is safe to display, with the key only if it is public."""
    is_public = sealed_keys.is_public(account)
    key = sealed_keys.encode_key(sealed_keys.DEVELOPMENT_KEY) if is_public else MASK
    return connection_string(account.name, endpoint, key)


@dataclass(frozen=True, slots=True)
class Host:
    """Host name of this server as seen by an application."""

    slug: str
    label: str | Promise
    is_named: bool = False  # whether the user types it


HERE: Final = Host("here", _("This address"))
LOCAL: Final = Host("localhost", _("Same machine"))
CONTAINER: Final = Host("container", _("Another container"), is_named=True)
PUBLIC: Final = Host("public", _("Custom host name"), is_named=True)
BY_NAME: Final = Host("account", _("Account host name"))


def hosts() -> tuple[Host, ...]:
    return (HERE, LOCAL, CONTAINER, PUBLIC, *((BY_NAME,) if settings.OPTIONS.host_suffixes else ()))


def endpoint_at(request: HttpRequest, account: Account, host: Host, name: str) -> str:
    """Return the endpoint on a host; ``name`` is typed, such as `tables:10002` or `https://tables.example.org`."""
    here = urlsplit(f"{request.scheme}://{request.get_host()}")
    match host:
        case Host("localhost"):
            return f"{here.scheme}://127.0.0.1:{settings.OPTIONS.port}/{account.name}"
        case Host("container"):
            return f"{here.scheme}://{_with_port(name or 'tablero')}/{account.name}"
        case Host("public"):
            base = name if "://" in name else f"https://{name or here.netloc}"
            return f"{base.rstrip('/')}/{account.name}"
        case Host("account"):
            port = f":{here.port}" if here.port else ""
            return f"{here.scheme}://{account.name}.{settings.OPTIONS.host_suffixes[0]}{port}"
        case _:
            return endpoint(request, account)


def _with_port(name: str) -> str:
    return name if ":" in name else f"{name}:{settings.OPTIONS.port}"


@dataclass(frozen=True, slots=True)
class Format:
    """Format of a connection string."""

    form: ConnectionFormat
    label: str | Promise

    @property
    def slug(self) -> str:
        return self.form.value

    def write(self, text: str) -> str:
        return write_form(self.form, text)


FORMATS: Final = (
    Format(ConnectionFormat.STRING, _("Connection string")),
    Format(ConnectionFormat.ENV, _(".env file")),
    Format(ConnectionFormat.COMPOSE, "docker-compose.yml"),
    Format(ConnectionFormat.APPSETTINGS, "appsettings.json"),
    Format(ConnectionFormat.FUNCTIONS, "local.settings.json"),
    Format(ConnectionFormat.PYTHON, "Python"),
    Format(ConnectionFormat.JAVASCRIPT, "JavaScript"),
    Format(ConnectionFormat.CSHARP, "C#"),
    Format(ConnectionFormat.GO, "Go"),
)


@dataclass(frozen=True, slots=True)
class Choice:
    """Displayed connection, as in the address."""

    host: Host
    name: str
    format: Format
    key: int  # 1 or 2

    @property
    def query(self) -> str:
        chosen = {"format": self.format.slug, "host": self.host.slug, "name": self.name, "key": str(self.key)}
        return urlencode(chosen)

    def write(self, request: HttpRequest, account: Account, key: str) -> str:
        """Build the connection string; ``key`` is base64 or a mask."""
        where = endpoint_at(request, account, self.host, self.name)
        return self.format.write(connection_string(account.name, where, key))


def read_choice(data: Mapping[str, str]) -> Choice:
    """Parse the choice, replacing unknown values by the first."""
    known = {host.slug: host for host in hosts()}
    formats = {offered.slug: offered for offered in FORMATS}
    return Choice(
        known.get(data.get("host", ""), HERE),
        read_host(data.get("name", "")[:253]),
        formats.get(data.get("format", ""), FORMATS[0]),
        2 if data.get("key") == "2" else 1,
    )
