"""Settings from environment variables, and the options of `serve` that set them."""

import argparse
import difflib
import os
import re
import sys
from collections.abc import Iterable, Iterator, Mapping, MutableMapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any, NoReturn

import platformdirs

from storage.core import registry
from storage.core.quotas import QUOTAS
from storage.core.variables import PREFIX as PREFIX
from storage.core.variables import Variable as Variable
from storage.domain.access.identity import Trust, is_loopback
from storage.domain.access.sign_in import Provider
from storage.domain.requests.recorded import RequestLogSettings
from storage.server import bearer, memory, messages, sign_in
from storage.server.messages import MessageOptions
from storage.server.refusal import Refusal

DEFAULT_LISTEN = "127.0.0.1:10002"  # where UseDevelopmentStorage=true looks


LOG_LEVELS = ("debug", "info", "warning", "error")
_OWN = (
    Variable("CONFIG", "", "read settings from a file in TOML, too", "FILE"),
    Variable("LISTEN", DEFAULT_LISTEN, "address and port to serve on", "HOST:PORT"),
    Variable("WORKERS", "1", "processes that share the port", "N"),
    Variable("HOST_SUFFIX", "", "serve ACCOUNT.SUFFIX as well (several: comma)", "SUFFIX", separator=","),
    Variable("DATA", "", "folder of database and secret", "DIR"),
    Variable("DURABILITY", "on", "relaxed: the last 0.6 s may be lost in a crash", None, ("on", "relaxed")),
    Variable("SMALL", "", "less memory for the database, for laptops and CI", is_flag=True),
    Variable("TLS_CERT", "", "certificate chain in PEM: serve https", "FILE"),
    Variable("TLS_KEY", "", "private key of the certificate in PEM", "FILE"),
    Variable("HSTS", "31536000", "for how long browsers use https only; 0: no longer", "SECONDS"),
    Variable(
        "ALLOW_DEVELOPMENT_ACCOUNT",
        "",
        "serve devstoreaccount1, whose key everybody knows, on any address",
        is_flag=True,
    ),
    Variable("PG_USER", "", "as root: user the embedded PostgreSQL runs as", "NAME"),
    Variable(
        "TRUSTED_PROXIES",
        "",
        "whose X-Forwarded-For and -Proto are believed (several: comma)",
        "ADDRESS",
        separator=",",
    ),
    Variable("POOLER_URL", "", "the database through a pooler in transaction mode, for the console", "URL"),
    Variable("OAUTH", "", "accept any access token that has not expired; on loopback only", None, ("basic",)),
    Variable(
        "REQUEST_MEMORY",
        "",
        "memory for bodies and answers in flight, as 512M or 2G (a quarter of it)",
        "SIZE",
    ),
    Variable("METRICS_LISTEN", "", "serve Prometheus, without a token, on this address", "HOST:PORT"),
    Variable("METRICS_ACCOUNTS", "100", "accounts with metrics of their own; the rest counts as one", "N"),
    Variable(
        "LOG_FORMAT", "text", "json: an object per line, for collectors of logs", None, ("text", "json")
    ),
    Variable("LOG_LEVEL", "warning", "least severity that is logged", None, LOG_LEVELS),
    Variable("BACKUP_TO", "", "make backups by itself, in a folder, s3://... or az://...", "DIR|URL"),
    Variable("BACKUP_EVERY", "1d", "time from one backup to the next, as 30m, 6h or 1d", "TIME"),
    Variable("BACKUP_FULL_EVERY", "1", "every how many backups one is full; the others are incremental", "N"),
    Variable(
        "BACKUP_KEEP", "14", "how many of the newest full backups are kept, each with its incremental", "N"
    ),
    Variable("BACKUP_DRILL", "", "restore the last backup that often into a temporary folder, as 7d", "TIME"),
    Variable(
        "BACKUP_PASSPHRASE_FILE", "", "seal backups and the archive with the first line of a file", "FILE"
    ),
    Variable(
        "REQUIRE_SECOND_FACTOR",
        "",
        "the console asks people with a password for a second factor",
        is_flag=True,
    ),
    Variable("LOGIN_PROVIDERS", "", "sign-in providers of the console, as JSON", "FILE"),
    Variable("ARCHIVE", "", "archive the log, to restore the database to any moment", "DIR|URL"),
    Variable("ARCHIVE_KEEP", "7d", "how far back the database can be restored, as 12h or 7d", "TIME"),
    Variable("ARCHIVE_SIZE", "", "largest size of the archive, as 50G; shortens the time kept", "SIZE"),
    Variable("ARCHIVE_BACKLOG", "8G", "how much may wait while the archive fails, before a gap", "SIZE"),
    Variable(
        "WITHOUT",
        "",
        "leave optional parts out, as copies or cluster (several: comma)",
        "NAME",
        separator=",",
    ),
    Variable("UPGRADE_BACKUP", "on", "off: upgrade the database without a backup", None, ("on", "off")),
    Variable("OLD_POSTGRESQL", "", "programs of the PostgreSQL of the data folder, if that is older", "DIR"),
    Variable("METRICS_TOKEN"),
    Variable("OIDC_ISSUER"),
    Variable("OIDC_AUDIENCE"),
    Variable("OIDC_JWKS"),
    Variable("OIDC_ROLES_CLAIM"),
    Variable("OIDC_AUTHORIZATION_URI"),
    Variable("LOGIN_OIDC_ISSUER"),
    Variable("LOGIN_OIDC_CLIENT_ID"),
    Variable("LOGIN_OIDC_CLIENT_SECRET"),
    Variable("LOGIN_OIDC_NAME"),
    Variable("LOGIN_OIDC_ADMITS", "invited", choices=("invited", "everyone")),
    Variable("SECRET"),
    Variable("FORMER_SECRET"),
    Variable("ACCOUNTS"),
    Variable("KEY_LENGTH_LIMIT", "1024"),
    Variable("ACTIVITY_DAYS", "90"),
    Variable("REQUEST_LOG_SLOW", "500"),
    Variable("REQUEST_LOG_DAYS", "7"),
    Variable("REQUEST_LOG_ROWS", "50000"),
    Variable("REQUEST_LOG_SAMPLE", "5"),
    *(Variable(quota.option, str(quota.default)) for quota in QUOTAS),
    Variable("SNAPSHOT_MEGABYTES"),
    Variable("CONSOLE_URL"),
    Variable("WEBHOOK_NETWORKS"),
    Variable("COPY_NETWORKS"),
    Variable("SMTP_URL"),
    Variable("MAIL_FROM"),
    Variable("DEBUG", is_flag=True),
)


def _with_declared(variables: Iterable[Variable]) -> Iterator[Variable]:
    """Yield variables, each followed by the variables that subjects declare after it."""
    declared = [variable for subject in registry.subjects() for variable in subject.variables]
    for variable in variables:
        yield variable
        yield from _with_declared(it for it in declared if it.after == variable.name)


VARIABLES = tuple(_with_declared(_OWN))
# variables of clients of the management API, and of Kubernetes in each container for services named tablero...
_FOR_OTHERS = re.compile(
    r"TABLERO_(URL|TOKEN|(\w+_)?SERVICE_HOST|(\w+_)?SERVICE_PORT(_\w+)?|(\w+_)?PORT_\d+_(TCP|UDP|SCTP)(_\w+)?)"
)
_SERVICE_PORT = re.compile(r"TABLERO_(\w+_)?PORT")
_SERVICE_ADDRESS = re.compile(r"(tcp|udp|sctp)://")
KEYS = {variable.key: variable for variable in VARIABLES}
LEAST_REQUEST_MEMORY = 32 << 20  # bytes; a body of 4 MiB takes most of that
_LEAST_ARCHIVE = 32 << 20  # bytes: two segments
_SHIFTS = {"K": 10, "M": 20, "G": 30, "T": 40}
COMMANDS = {"serve", "upgrade"}  # commands whose options are variables
_OF_UPGRADE = {
    "CONFIG",
    "DATA",
    "PG_USER",
    "BACKUP_TO",
    "BACKUP_PASSPHRASE_FILE",
    "UPGRADE_BACKUP",
    "OLD_POSTGRESQL",
}
_UNITS = {
    "s": timedelta(seconds=1), "m": timedelta(minutes=1), "h": timedelta(hours=1), "d": timedelta(days=1),
}  # fmt: skip


_HOST = ("--host", "--tableHost")
_PORT = ("--port", "--tablePort")
_ADDRESS = re.compile(r"\d{1,5}|[\w.-]*:\d{1,5}|\[[0-9a-fA-F:]+\]:\d{1,5}")
_METAVARS = {
    "--data": "DIR",
    "--listen": "HOST:PORT",
    "--port": "PORT",
    "--tls-cert": "FILE",
    "--tls-key": "FILE",
}
# options of other servers
_OTHER_NAMES = {
    **dict.fromkeys(("-b", "-H", "--addr", "--address", "--bind", "--ip"), "--listen"),
    **dict.fromkeys(("-l", "--location", "--data-dir", "--datadir", "--dir", "--workspace"), "--data"),
    "-p": "--port",
    "--cert": "--tls-cert",
    "--key": "--tls-key",
}
_OF_AZURITE = {
    "-L", "-d", "-s", "--debug", "--disableProductStyleUrl", "--disableTelemetry", "--inMemoryPersistence", "--loose",
    "--pwd", "--silent", "--skipApiVersionCheck", "--tableKeepAliveTimeout",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class ListenOptions:
    """Options --host and --port; each changes one half of the listen address."""

    host: str | None = None
    port: str | None = None

    def apply(self, environ: MutableMapping[str, str]) -> None:
        """Apply the options to the listen address from a variable or file."""
        if self == ListenOptions():
            return
        host, port = read_address(environ.get(f"{PREFIX}LISTEN") or DEFAULT_LISTEN)
        if self.port is not None:
            if not re.fullmatch(r"[0-9]{1,5}", self.port) or int(self.port) > 65535:
                raise Refusal(f"--port is {self.port!r}; it must be a number from 0 to 65535.")
            port = int(self.port)
        if self.host is not None:
            host = self.host.strip("[]")
            if not host or re.fullmatch(r"[^:]*:[0-9]*", host):
                raise Refusal(
                    f"--host is {self.host!r}; say --listen HOST:PORT for an address with its port."
                )
        environ[f"{PREFIX}LISTEN"] = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


@dataclass(frozen=True, slots=True)
class BackupSchedule:
    """Schedule of automatic backups."""

    folder: Path | str  # a URL
    every: timedelta
    keep: int
    passphrase_file: Path | None
    full_every: int = 1  # the others are incremental


@dataclass(frozen=True, slots=True)
class ArchiveOptions:
    """Settings of the embedded database's WAL archive."""

    folder: Path | str  # a URL
    keep: timedelta
    size: int | None  # bytes
    backlog: int  # bytes
    every: timedelta  # from one base backup to the next
    passphrase_file: Path | None


@dataclass(frozen=True, slots=True)
class Options:
    """Validated settings of this process."""

    host: str
    port: int
    workers: int
    host_suffixes: tuple[str, ...]
    data: Path
    relaxed: bool
    small: bool
    tls_cert: str
    tls_key: str
    hsts: int  # seconds
    allow_development_account: bool
    trusted_proxies: tuple[str, ...]
    bearer: Trust | None
    sign_in: tuple[Provider, ...]
    second_factor_required: bool
    metrics_listen: tuple[str, int] | None
    metrics_token: str
    metrics_accounts: int
    log_format: str
    log_level: str
    pg_user: str
    secret: str
    former_secret: str
    accounts: str
    azurite_accounts: str
    key_length_limit: int
    activity_days: int
    request_log: RequestLogSettings
    quotas: Mapping[str, int]  # storage.core.quotas, by name
    snapshot_bytes: int | None  # None: a share of the disk
    debug: bool
    database_url: str
    pooler_url: str
    declared: Mapping[
        str, Any
    ]  # values of the variables that subjects declare: texts, tuples of texts, or numbers
    backups: BackupSchedule | None
    drill_every: timedelta | None
    request_memory: int  # bytes, of a worker
    archive: ArchiveOptions | None
    upgrade_backup: bool
    old_postgresql: Path | None  # the folder of its programs
    messages: MessageOptions
    without: tuple[str, ...]  # optional subjects: storage.core.registry

    @property
    def is_loopback(self) -> bool:
        return is_loopback(self.host)

    @property
    def development_account_allowed(self) -> bool:
        return self.is_loopback or self.allow_development_account

    @property
    def scheme(self) -> str:
        return "https" if self.tls_cert else "http"


def _read_declared(variable: Variable, value: str) -> Any:
    if variable.separator:
        return tuple(value.split(None if variable.separator == " " else variable.separator))
    return _read_number(variable.name, value, variable.least, variable.most) if variable.most else value


def read(environ: Mapping[str, str]) -> Options:
    """Parse the settings in environment variables.

    Raises Refusal for one that is unknown or makes no sense.
    """
    _refuse_unknown(environ)
    without = read_without(environ)
    value = {
        name: environ.get(key) or variable.default
        for key, variable in KEYS.items()
        for name in (variable.name,)
    }
    host, port = read_address(value["LISTEN"])
    workers = _read_number("WORKERS", value["WORKERS"], 1, 64)
    if bool(value["TLS_CERT"]) != bool(value["TLS_KEY"]):
        raise Refusal("TLS needs both --tls-cert and --tls-key; only one of them was given.")
    return Options(
        host=host,
        port=port,
        workers=workers,
        host_suffixes=_read_suffixes(value["HOST_SUFFIX"]),
        data=Path(value["DATA"]).expanduser().absolute() if value["DATA"] else default_data(),
        relaxed=_read_choice("DURABILITY", value["DURABILITY"]) == "relaxed",
        small=_read_flag("SMALL", value["SMALL"]),
        tls_cert=value["TLS_CERT"],
        tls_key=value["TLS_KEY"],
        hsts=_read_number("HSTS", value["HSTS"], 0, 63_072_000),
        allow_development_account=_read_flag("ALLOW_DEVELOPMENT_ACCOUNT", value["ALLOW_DEVELOPMENT_ACCOUNT"]),
        trusted_proxies=bearer.read_proxies(value["TRUSTED_PROXIES"], is_v6=":" in host),
        bearer=bearer.read_trust(value, is_loopback=is_loopback(host)),
        sign_in=_read_sign_in(value, environ),
        second_factor_required=_read_flag("REQUIRE_SECOND_FACTOR", value["REQUIRE_SECOND_FACTOR"]),
        metrics_listen=_read_metrics_address(value["METRICS_LISTEN"], (host, port)),
        metrics_token=_read_token("METRICS_TOKEN", value["METRICS_TOKEN"]),
        metrics_accounts=_read_number("METRICS_ACCOUNTS", value["METRICS_ACCOUNTS"], 0, 10_000),
        log_format=_read_choice("LOG_FORMAT", value["LOG_FORMAT"]),
        log_level=_read_choice("LOG_LEVEL", value["LOG_LEVEL"]),
        pg_user=value["PG_USER"],
        secret=value["SECRET"],
        former_secret=value["FORMER_SECRET"],
        accounts=value["ACCOUNTS"],
        azurite_accounts=environ.get("AZURITE_ACCOUNTS", ""),
        key_length_limit=int(_read_choice("KEY_LENGTH_LIMIT", value["KEY_LENGTH_LIMIT"], ("512", "1024"))),
        activity_days=_read_number("ACTIVITY_DAYS", value["ACTIVITY_DAYS"], 1, 3650),
        request_log=RequestLogSettings(
            slow=_read_number("REQUEST_LOG_SLOW", value["REQUEST_LOG_SLOW"], 1, 3_600_000) / 1000,
            keep=timedelta(days=_read_number("REQUEST_LOG_DAYS", value["REQUEST_LOG_DAYS"], 1, 365)),
            rows=_read_number("REQUEST_LOG_ROWS", value["REQUEST_LOG_ROWS"], 100, 10_000_000),
            sample=_read_number("REQUEST_LOG_SAMPLE", value["REQUEST_LOG_SAMPLE"], 0, 1000),
        ),
        quotas={it.name: _read_number(it.option, value[it.option], 1, it.most) for it in QUOTAS},
        snapshot_bytes=_read_megabytes("SNAPSHOT_MEGABYTES", value["SNAPSHOT_MEGABYTES"]),
        debug=_read_flag("DEBUG", value["DEBUG"]),
        database_url=environ.get("DATABASE_URL", ""),
        pooler_url=value["POOLER_URL"],
        declared={
            variable.name: _read_declared(variable, value[variable.name])
            for subject in registry.subjects()
            for variable in subject.variables
        },
        backups=_read_backups(value, environ),
        drill_every=_read_drill(value),
        request_memory=_read_request_memory(value["REQUEST_MEMORY"]) // workers,
        archive=_read_archive(value, environ),
        upgrade_backup=_read_choice("UPGRADE_BACKUP", value["UPGRADE_BACKUP"]) == "on",
        old_postgresql=Path(value["OLD_POSTGRESQL"]).expanduser().absolute()
        if value["OLD_POSTGRESQL"]
        else None,
        messages=messages.read(value),
        without=without,
    )


def read_without(environ: Mapping[str, str]) -> tuple[str, ...]:
    """Return the subjects to leave out; raises Refusal for an unknown or required one."""
    names = tuple(dict.fromkeys(filter(None, re.split(r"[\s,]+", environ.get(PREFIX + "WITHOUT", "")))))
    optional = registry.optional_names() if names else []
    for name in names:
        if name not in optional:
            raise Refusal(
                f"{PREFIX}WITHOUT has {name!r}{nearest(name, optional)}; these can be left out:"
                f" {', '.join(sorted(optional))}."
            )
    for option, name in registry.options_of(names).items():
        if environ.get(PREFIX + option):
            raise Refusal(f"{PREFIX}{option} needs {name}, which {PREFIX}WITHOUT leaves out.")
    return names


def is_on(environ: Mapping[str, str], name: str) -> bool:
    """Return whether a Boolean variable is on, without validating others."""
    return _read_flag(name, environ.get(PREFIX + name, ""))


def add_arguments(parser: argparse.ArgumentParser, command: str = "serve") -> None:
    """Declare the options of `serve` or `upgrade`."""
    if command == "serve":
        parser.add_argument(*_HOST, dest="listen_host", metavar="HOST", help="the address of --listen alone")
        parser.add_argument(*_PORT, dest="listen_port", metavar="PORT", help="the port of --listen alone")
    for variable in _of(command):
        default = str(default_data()) if variable.name == "DATA" else variable.default
        help_text = f"{variable.help} ({variable.key}{f'; {default}' if default else ''})"
        if variable.is_flag:
            parser.add_argument(variable.option, action="store_const", const="1", help=help_text)
        else:
            parser.add_argument(
                variable.option, metavar=variable.metavar, choices=variable.choices, help=help_text
            )


def export(
    arguments: Sequence[str], environ: MutableMapping[str, str], command: str = "serve"
) -> ListenOptions:
    """Write the options of a command to the environment variables of the same name."""
    parser = _Parser(prog=command, allow_abbrev=False)
    add_arguments(parser, command)
    known, unknown = parser.parse_known_args(arguments)
    if unknown:
        raise Refusal(_explain_unknown(unknown, command))
    parts = ListenOptions(getattr(known, "listen_host", None), getattr(known, "listen_port", None))
    if known.__dict__.get("listen") is not None and parts != ListenOptions():
        raise Refusal("Give the address either by --listen HOST:PORT, or by --host and --port.")
    for variable in VARIABLES:
        value = getattr(known, variable.name.lower(), None)
        if value is not None:
            environ[variable.key] = value
    return parts


def _explain_unknown(unknown: Sequence[str], command: str) -> str:
    """Explain an unknown option: the name used here for an option of another program, or a misspelling."""
    option, _, value = unknown[0].partition("=")
    value = value or (unknown[1] if len(unknown) > 1 and not unknown[1].startswith("-") else "")
    if command == "serve":
        if _ADDRESS.fullmatch(option):
            return f"Unknown argument {option}; say --{'port' if option.isdecimal() else 'listen'} {option}."
        if option in _OTHER_NAMES:
            mine = _OTHER_NAMES[option]
            return f"Unknown option {option}; say {mine} {value or _METAVARS[mine]}."
        if option in _OF_AZURITE:
            return f"{option} is an option of Azurite that Tablero does not have; leave it out."
        if option.startswith(("--blob", "--queue")):
            return f"Tablero serves tables only, so it has no {option}."
    names = [variable.option for variable in _of(command)]
    return f"Unknown option {option}{nearest(option, names)}; see: {command} --help."


def _of(command: str) -> list[Variable]:
    """Return the variables that are options of a command."""
    return [it for it in VARIABLES if it.help and (command == "serve" or it.name in _OF_UPGRADE)]


def read_address(text: str) -> tuple[str, int]:
    """Parse host and port from `HOST:PORT`, `[V6]:PORT`, `HOST` or `:PORT`; raises Refusal."""
    match = re.fullmatch(r"(?:\[([^\]]+)\]|([^:\[\]]*))(?::(\d{1,5}))?", text)
    is_number = text.isdecimal()  # meant as a port
    if match is None or not text or is_number or int(match[3] or 0) > 65535:
        raise Refusal(
            f"{text!r} is not an address to listen on; write it as HOST:PORT, for example {DEFAULT_LISTEN}."
        )
    host = match[1] or match[2] or "127.0.0.1"
    return host, int(match[3]) if match[3] else 10002


def _read_metrics_address(text: str, service: tuple[str, int]) -> tuple[str, int] | None:
    if not text:
        return None
    address = read_address(text)
    if address == service and address[1] != 0:
        raise Refusal(
            f"{PREFIX}METRICS_LISTEN is {text!r}, where the service itself listens; give metrics another port."
        )
    return address


def default_data() -> Path:
    """Return the default data folder; for root outside its home, which PostgreSQL's user cannot enter."""
    if os.getuid() != 0:
        return platformdirs.user_data_path("tablero")
    return platformdirs.site_data_path("tablero") if sys.platform == "darwin" else Path("/var/lib/tablero")


def _refuse_unknown(environ: Mapping[str, str]) -> None:
    for name, value in environ.items():
        if name.startswith(PREFIX) and name not in KEYS and not _is_for_others(name, value):
            raise Refusal(
                f"The environment variable {name} means nothing to Tablero{nearest(name, list(KEYS))}."
            )


def _is_for_others(name: str, value: str) -> bool:
    # a port without an address is what a person sets who means TABLERO_LISTEN
    is_service = _SERVICE_PORT.fullmatch(name) is not None and _SERVICE_ADDRESS.match(value) is not None
    return is_service or _FOR_OTHERS.fullmatch(name) is not None


def nearest(name: str, known: list[str]) -> str:
    """Return a hint with the most similar known name, or an empty string."""
    near = difflib.get_close_matches(name, known, n=1)
    return f" (did you mean {near[0]}?)" if near else ""


def _read_number(name: str, text: str, low: int, high: int) -> int:
    if not text.isdecimal() or not low <= int(text) <= high:
        raise Refusal(f"{PREFIX}{name} is {text!r}; it must be a number from {low} to {high}.")
    return int(text)


def _read_megabytes(name: str, text: str) -> int | None:
    return _read_number(name, text, 1, 1 << 30) << 20 if text else None


def _read_request_memory(text: str) -> int:
    return _read_size("REQUEST_MEMORY", text, LEAST_REQUEST_MEMORY) if text else memory.available() // 4


def _read_size(name: str, text: str, least: int) -> int:
    match = re.fullmatch(r"([1-9][0-9]{0,8})([KMGT])", text)
    size = int(match[1]) << _SHIFTS[match[2]] if match else 0
    if size < least:
        raise Refusal(
            f"{PREFIX}{name} is {text!r}; it must be a number with K, M, G or T, for example 512M or 2G, and"
            f" at least {least >> 20}M."
        )
    return size


def _read_choice(name: str, text: str, choices: tuple[str, ...] | None = None) -> str:
    allowed = choices or KEYS[PREFIX + name].choices or ()
    if text not in allowed:
        raise Refusal(f"{PREFIX}{name} is {text!r}; it must be {' or '.join(allowed)}.")
    return text


def _read_flag(name: str, text: str) -> bool:
    if text.lower() not in {"", "0", "1", "false", "true", "no", "yes", "off", "on"}:
        raise Refusal(f"{PREFIX}{name} is {text!r}; it must be 1 or 0.")
    return text.lower() in {"1", "true", "yes", "on"}


def _read_backups(value: Mapping[str, str], environ: Mapping[str, str]) -> BackupSchedule | None:
    if not value["BACKUP_TO"]:
        for name in ("BACKUP_EVERY", "BACKUP_FULL_EVERY", "BACKUP_KEEP", "BACKUP_PASSPHRASE_FILE"):
            is_for_archive = value["ARCHIVE"] and name in {"BACKUP_EVERY", "BACKUP_PASSPHRASE_FILE"}
            if environ.get(PREFIX + name) and not is_for_archive:
                raise Refusal(f"{PREFIX}{name} needs {PREFIX}BACKUP_TO too: the folder of the backups.")
        return None
    passphrase = value["BACKUP_PASSPHRASE_FILE"]
    return BackupSchedule(
        folder=_read_location(value["BACKUP_TO"]),
        every=_read_time("BACKUP_EVERY", value["BACKUP_EVERY"]),
        keep=_read_number("BACKUP_KEEP", value["BACKUP_KEEP"], 1, 10_000),
        passphrase_file=Path(passphrase).expanduser().absolute() if passphrase else None,
        full_every=_read_number("BACKUP_FULL_EVERY", value["BACKUP_FULL_EVERY"], 1, 10_000),
    )


def _read_drill(value: Mapping[str, str]) -> timedelta | None:
    if not value["BACKUP_DRILL"]:
        return None
    if not value["BACKUP_TO"] and not value["ARCHIVE"]:
        raise Refusal(
            f"{PREFIX}BACKUP_DRILL needs {PREFIX}BACKUP_TO or {PREFIX}ARCHIVE too: what is to be restored."
        )
    return _read_time("BACKUP_DRILL", value["BACKUP_DRILL"])


def _read_location(text: str) -> Path | str:
    return text.rstrip("/") if "://" in text else Path(text).expanduser().absolute()


def _read_archive(value: Mapping[str, str], environ: Mapping[str, str]) -> ArchiveOptions | None:
    if not value["ARCHIVE"]:
        for name in ("ARCHIVE_KEEP", "ARCHIVE_SIZE", "ARCHIVE_BACKLOG"):
            if environ.get(PREFIX + name):
                raise Refusal(f"{PREFIX}{name} needs {PREFIX}ARCHIVE too: the folder of the archive.")
        return None
    passphrase = value["BACKUP_PASSPHRASE_FILE"]
    return ArchiveOptions(
        folder=_read_location(value["ARCHIVE"]),
        keep=_read_time("ARCHIVE_KEEP", value["ARCHIVE_KEEP"]),
        size=_read_size("ARCHIVE_SIZE", value["ARCHIVE_SIZE"], _LEAST_ARCHIVE)
        if value["ARCHIVE_SIZE"]
        else None,
        backlog=_read_size("ARCHIVE_BACKLOG", value["ARCHIVE_BACKLOG"], _LEAST_ARCHIVE),
        every=_read_time("BACKUP_EVERY", value["BACKUP_EVERY"]),
        passphrase_file=Path(passphrase).expanduser().absolute() if passphrase else None,
    )


def _read_time(name: str, text: str) -> timedelta:
    match = re.fullmatch(r"([1-9][0-9]{0,4})([smhd])", text)
    if match is None:
        raise Refusal(
            f"{PREFIX}{name} is {text!r}; it must be a number with s, m, h or d, for example 6h or 1d."
        )
    return int(match[1]) * _UNITS[match[2]]


def _read_sign_in(value: Mapping[str, str], environ: Mapping[str, str]) -> tuple[Provider, ...]:
    _read_choice("LOGIN_OIDC_ADMITS", value["LOGIN_OIDC_ADMITS"])
    return sign_in.read(value, environ)


def _read_token(name: str, text: str) -> str:
    if not re.fullmatch("[!-~]*", text):
        raise Refusal(f"{PREFIX}{name} must be of ASCII letters, digits and signs, without spaces.")
    return text


def _read_suffixes(text: str) -> tuple[str, ...]:
    suffixes = tuple(part.strip().strip(".").lower() for part in text.split(",") if part.strip())
    for suffix in suffixes:
        if not re.fullmatch(r"[a-z0-9]([a-z0-9.-]*[a-z0-9])?", suffix):
            raise Refusal(
                f"{suffix!r} is not a host name suffix; write it as table.localhost, without a port."
            )
    return suffixes


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise Refusal(f"{message[:1].upper()}{message[1:]}; see: {self.prog} --help.")
