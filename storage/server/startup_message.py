"""Startup message of a ready server."""

from collections.abc import Iterator

from django.conf import settings
from django.utils.module_loading import import_string

from storage.accounts.accounts import usable
from storage.accounts.sealed_keys import connection_string, is_public
from storage.domain.values.names import DEVELOPMENT_ACCOUNT
from storage.health import release
from storage.models import Account
from storage.server.options import Options
from storage.server.risks import risks

ANY_ADDRESS = {"0.0.0.0", "::"}  # noqa: S104


def lines(options: Options, port: int) -> Iterator[str]:
    authority = f"{_host(options)}:{port}"
    known = usable().filter(enabled=True)
    development = known.filter(name=DEVELOPMENT_ACCOUNT).first()
    shown = development or known.order_by("pk").first()
    yield f"Tablero serves on {options.scheme}://{authority}"
    yield f"Version:           {release.version()}"
    if shown is None:
        yield "No account exists yet. Create one with: account add NAME"
    else:
        yield from _account_lines(options, authority, shown)
    for announced in settings.ANNOUNCED:
        yield from import_string(announced)(f"{options.scheme}://{authority}")
    yield f"Health:            {options.scheme}://{authority}/ui/healthz"
    yield from _warnings(options, has_development_account=development is not None)
    yield "Ready. Stop with Ctrl-C."


def _account_lines(options: Options, authority: str, account: Account) -> Iterator[str]:
    url = f"{options.scheme}://{authority}/{account.name}"
    yield f"Endpoint:          {url}"
    for suffix in options.host_suffixes:
        yield f"Host style:        {options.scheme}://{account.name}.{suffix}:{authority.rpartition(':')[2]}"
    yield f"Connection string: {connection_string(account, url)}"
    if (
        account.name == DEVELOPMENT_ACCOUNT
        and is_public(account)
        and authority == "127.0.0.1:10002"
        and options.scheme == "http"
    ):
        yield "                   or, for Python, JavaScript, .NET and Java: UseDevelopmentStorage=true"


def _warnings(options: Options, *, has_development_account: bool) -> Iterator[str]:
    yield from (f"Warning: {risk}" for risk in risks(options))
    if not options.is_loopback and options.allow_development_account and has_development_account:
        yield f"Warning: {DEVELOPMENT_ACCOUNT} is served on {options.host}, and its key is public."


def _host(options: Options) -> str:
    if options.host in ANY_ADDRESS:
        return "127.0.0.1"
    return f"[{options.host}]" if ":" in options.host else options.host
