"""Settings of identity providers for the console."""

import difflib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

from storage.domain.access.identity import is_safe_url
from storage.domain.access.roles import Role
from storage.domain.access.sign_in import SCOPES, AccountRoles, Provider
from storage.server.bearer import check_url
from storage.server.refusal import Refusal

_NEEDED = ("LOGIN_OIDC_ISSUER", "LOGIN_OIDC_CLIENT_ID", "LOGIN_OIDC_CLIENT_SECRET")
_ID = re.compile(r"[a-z0-9][a-z0-9.-]{0,99}")
_ADMITS = ("invited", "everyone")


def read(value: Mapping[str, str], environ: Mapping[str, str]) -> tuple[Provider, ...]:
    """Parse the providers in the order of their buttons; ``value`` holds settings by name."""
    one = _read_single(value)
    listed = _read_file(Path(value["LOGIN_PROVIDERS"]), environ) if value["LOGIN_PROVIDERS"] else ()
    providers = (*([one] if one else []), *listed)
    for names, what in (
        ([it.id for it in providers], "id"),
        ([it.issuer for it in providers], "issuer"),
        ([it.name for it in providers], "name"),
    ):
        for name in names:
            if names.count(name) > 1:
                raise Refusal(f"Two sign-in providers have the {what} {name!r}; each needs one of its own.")
    return providers


def _read_single(value: Mapping[str, str]) -> Provider | None:
    given = [name for name in (*_NEEDED, "LOGIN_OIDC_NAME") if value[name]]
    missing = [name for name in _NEEDED if not value[name]]
    if not given:
        return None
    if missing:
        raise Refusal(f"TABLERO_{given[0]} needs TABLERO_{missing[0]} too.")
    issuer = value["LOGIN_OIDC_ISSUER"].rstrip("/")
    check_url("LOGIN_OIDC_ISSUER", issuer)
    return Provider(
        issuer=issuer,
        client_id=value["LOGIN_OIDC_CLIENT_ID"],
        client_secret=value["LOGIN_OIDC_CLIENT_SECRET"],
        name=value["LOGIN_OIDC_NAME"] or urlsplit(issuer).netloc,
        admits_everyone=value["LOGIN_OIDC_ADMITS"] == "everyone",
    )


def _read_file(path: Path, environ: Mapping[str, str]) -> tuple[Provider, ...]:
    try:
        content = json.loads(path.read_bytes())
    except OSError as error:
        raise Refusal(f"The sign-in providers in {path} cannot be read: {error.strerror}.") from None
    except ValueError:
        raise Refusal(f"The sign-in providers in {path} are not JSON.") from None
    if not isinstance(content, list):
        raise Refusal(f"The sign-in providers in {path} must be a list of objects.")
    return tuple(
        _Entry(given, f"The sign-in provider {number} in {path}", path.parent, environ).read()
        for number, given in enumerate(content, start=1)
    )


@dataclass(frozen=True, slots=True)
class _Entry:
    """Provider entry of the configuration file."""

    given: Any
    where: str
    folder: Path
    environ: Mapping[str, str]

    def read(self) -> Provider:
        self._check_keys()
        issuer = self._text("issuer", needed=True).rstrip("/")
        if not is_safe_url(issuer):
            raise self._refusal(
                "issuer", "must be a URL that begins with https:// (http:// only on loopback)"
            )
        given_id = self._text("id")
        if given_id and not _ID.fullmatch(given_id):
            raise self._refusal("id", "must be of the letters a to z, digits, dots and hyphens")
        admits = self._text("admits") or _ADMITS[0]
        if admits not in _ADMITS:
            raise self._refusal("admits", f"must be {' or '.join(_ADMITS)}")
        scopes = self._texts("scopes") or SCOPES
        if "openid" not in scopes:
            raise self._refusal("scopes", "must include openid")
        return Provider(
            issuer=issuer,
            client_id=self._text("client_id", needed=True),
            client_secret=self._secret(),
            name=self._text("name") or urlsplit(issuer).netloc,
            admits_everyone=admits == "everyone",
            given_id=given_id,
            scopes=scopes,
            groups_claim=self._text("groups_claim") or "groups",
            admin_groups=frozenset(self._texts("admin_groups")),
            roles=self._roles(),
            allowed_groups=frozenset(self._texts("allowed_groups")),
            allowed_domains=frozenset(domain.lower() for domain in self._texts("allowed_domains")),
            links_by_email=self._flag("links_by_email"),
            signs_out=self._flag("signs_out"),
        )

    def _check_keys(self) -> None:
        if not isinstance(self.given, dict):
            raise Refusal(f"{self.where} must be an object.")
        for key in self.given:
            if key not in _KEYS:
                near = difflib.get_close_matches(key, _KEYS, n=1)
                hint = f" (did you mean {near[0]}?)" if near else ""
                raise Refusal(f"{self.where} has the unknown setting {key!r}{hint}.")

    def _refusal(self, key: str, sentence: str) -> Refusal:
        return Refusal(f"{self.where}: {key} {sentence}.")

    def _text(self, key: str, *, needed: bool = False) -> str:
        value = self.given.get(key, "")
        if not isinstance(value, str):
            raise self._refusal(key, "must be a string")
        if needed and not value:
            raise self._refusal(key, "is missing")
        return value

    def _texts(self, key: str) -> tuple[str, ...]:
        found = self.given.get(key, [])
        if not isinstance(found, list) or not all(isinstance(it, str) and it for it in found):
            raise self._refusal(key, "must be a list of strings")
        return tuple(found)

    def _flag(self, key: str) -> bool:
        found = self.given.get(key, False)
        if not isinstance(found, bool):
            raise self._refusal(key, "must be true or false")
        return found

    def _secret(self) -> str:
        """Return the client secret, which is never in the file itself."""
        file, variable = self._text("client_secret_file"), self._text("client_secret_env")
        if bool(file) == bool(variable):
            raise Refusal(f"{self.where} needs client_secret_file or client_secret_env, and not both.")
        try:
            value = (self.folder / file).read_text() if file else self.environ.get(variable, "")
        except (OSError, ValueError) as error:
            reason = error.strerror if isinstance(error, OSError) else "it is not text"
            raise self._refusal("client_secret_file", f"{file} cannot be read: {reason}") from None
        if not value.strip():
            raise self._refusal("client_secret_file" if file else "client_secret_env", "names no secret")
        return value.strip()

    def _roles(self) -> AccountRoles:
        given = self.given.get("roles", {})
        names = {role.name.lower(): role for role in Role}
        try:
            return {
                group: {account: names[role] for account, role in by_account.items()}
                for group, by_account in given.items()
            }
        except (AttributeError, KeyError, TypeError):
            raise self._refusal(
                "roles", f'must be as {{"GROUP": {{"ACCOUNT": "ROLE"}}}}, with a role of {", ".join(names)}'
            ) from None


_KEYS: Final = (
    "id", "name", "issuer", "client_id", "client_secret_file", "client_secret_env", "scopes", "admits",
    "groups_claim", "admin_groups", "roles", "allowed_groups", "allowed_domains", "links_by_email", "signs_out",
)  # fmt: skip
