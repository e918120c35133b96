"""Configuration file and the origin of settings: options override variables, which override the file."""

import re
import tomllib
from collections.abc import Iterator, Mapping, MutableMapping
from pathlib import Path
from typing import Any, Final, NamedTuple

from storage.server.options import PREFIX, VARIABLES, Variable, nearest
from storage.server.refusal import Refusal

FILE: Final = PREFIX + "CONFIG"
# variables of other programs, without our prefix
_FOREIGN: Final = {"database-url": "DATABASE_URL", "azurite-accounts": "AZURITE_ACCOUNTS"}
_VARIABLES: Final = {it.option.removeprefix("--"): it for it in VARIABLES}
_KEYS: Final = {**{name: it.key for name, it in _VARIABLES.items() if it.key != FILE}, **_FOREIGN}
_SECRETS: Final = {
    "AZURITE_ACCOUNTS",
    *(
        PREFIX + name
        for name in ("ACCOUNTS", "LOGIN_OIDC_CLIENT_SECRET", "METRICS_TOKEN", "SECRET", "FORMER_SECRET")
    ),
}
_PATHS: Final = {"DIR", "FILE", "DIR|URL"}
# the password in a URL, also with an @ that should be encoded, and as a parameter of it or of a connection string
_PASSWORD: Final = re.compile(r"(?<=://)([^:/@\s]*):\S*@")
_PARAMETER: Final = re.compile(r"\b(password|sslpassword)\s*=\s*('(?:\\.|[^'])*'|[^&\s]*)", re.IGNORECASE)

origins: Final[dict[str, str]] = {}
"""Where the variables that are set come from, in words."""


class Setting(NamedTuple):
    """Setting with its origin; ``value`` contains no secrets."""

    name: str
    value: str
    origin: str


def apply(environ: MutableMapping[str, str], before: Mapping[str, str]) -> None:
    """Apply settings of the configuration file that are not set otherwise; ``before`` lacks command-line options.

    An empty variable counts as unset, as a unit or compose file may pass on empty variables. An empty option
    was typed by the user, and overrides the file.
    """
    origins.clear()
    for key in (FILE, *_KEYS.values()):
        if key in environ and environ[key] != before.get(key):
            origins[key] = "option"
        elif environ.get(key):
            origins[key] = "environment"
    path = environ.get(FILE)
    if path:
        for key, value in _read(Path(path).expanduser()).items():
            if key not in origins:
                environ[key] = value
                origins[key] = path


def settings(environ: Mapping[str, str]) -> Iterator[Setting]:
    """Yield all effective settings."""
    for name, key in (("config", FILE), *_KEYS.items()):
        default = _VARIABLES[name].default if name in _VARIABLES else ""
        value = environ.get(key) or default
        if key in _SECRETS and value:
            value = "(secret)"
        yield Setting(name, _without_passwords(value), origins.get(key, "default"))


def has_secrets(path: str, environ: Mapping[str, str]) -> bool:
    """Return whether a setting from this file is or contains a secret."""
    return any(
        origins.get(key) == path and (key in _SECRETS or _without_passwords(value) != value)
        for key, value in environ.items()
    )


def _without_passwords(value: str) -> str:
    return _PARAMETER.sub(r"\1=***", _PASSWORD.sub(r"\1:***@", value))


def _without_secrets(value: Any) -> Any:
    """Return an invalid value for a message, without secrets."""
    match value:
        case str():
            return _without_passwords(value)
        case list():
            return [_without_secrets(it) for it in value]
        case dict():
            return dict.fromkeys(value, ...)
    return value


def _read(path: Path) -> dict[str, str]:
    """Parse the file to values by variable; raises Refusal for an unknown setting or invalid value."""
    try:
        with path.open("rb") as file:
            document = tomllib.load(file)
    except OSError as error:
        raise Refusal(f"The configuration file {path} cannot be read: {error.strerror}.") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise Refusal(f"The configuration file {path} is not TOML: {error}.") from None
    values = {}
    for written, value in document.items():
        name = written.replace("_", "-")
        if name not in _KEYS:
            raise Refusal(f"{path} has an unknown setting {written}{nearest(name, list(_KEYS))}.")
        text = _text(value, _VARIABLES.get(name))
        if text is None:
            shown = "(secret)" if _KEYS[name] in _SECRETS else repr(_without_secrets(value))
            raise Refusal(f"{path} sets {written} to {shown}, which is not {_form(_VARIABLES.get(name))}.")
        values[_KEYS[name]] = _absolute(text, _VARIABLES.get(name), path.absolute().parent)
    return values


def _text(value: Any, variable: Variable | None) -> str | None:
    """Convert a value to the text of its variable; None if it has the wrong type."""
    match value:
        case bool() if variable is not None and variable.is_flag:
            return "1" if value else ""
        case bool() if variable is not None and variable.choices == ("on", "off"):
            return "on" if value else "off"
        case bool():
            return None
        case int() | str() if variable is None or not variable.is_flag:
            return str(value)
        case list() if (
            variable is not None and variable.separator and all(isinstance(it, str) for it in value)
        ):
            return variable.separator.join(value)
    return None


def _form(variable: Variable | None) -> str:
    if variable is not None and variable.is_flag:
        return "true or false"
    return (
        "a text, a number or a list of texts"
        if variable is not None and variable.separator
        else "a text or a number"
    )


def _absolute(text: str, variable: Variable | None, folder: Path) -> str:
    """Resolve relative paths against the folder of the file."""
    is_path = variable is not None and variable.metavar in _PATHS and text and "://" not in text
    return str(folder / Path(text).expanduser()) if is_path else text
