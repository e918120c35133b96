"""Settings for bearer tokens: trusted issuers, and proxies trusted to report https."""

import ipaddress
import re
from collections.abc import Mapping
from pathlib import Path

from storage.domain.access.identity import Trust, is_safe_url
from storage.server.refusal import Refusal

_ONLY_WITH_ISSUER = ("OIDC_AUDIENCE", "OIDC_JWKS", "OIDC_ROLES_CLAIM")


def read_trust(value: Mapping[str, str], *, is_loopback: bool) -> Trust | None:
    """Parse the trusted issuer of bearer tokens, None if there is none; ``value`` holds settings by name."""
    if value["OAUTH"]:
        return _read_basic(value, is_loopback=is_loopback)
    if value["OIDC_ISSUER"]:
        return _read_issuer(value)
    for name in (*_ONLY_WITH_ISSUER, "OIDC_AUTHORIZATION_URI"):
        if value[name]:
            raise Refusal(f"TABLERO_{name} means nothing without TABLERO_OIDC_ISSUER; give that too.")
    return None


def read_proxies(text: str, *, is_v6: bool) -> tuple[str, ...]:
    """Parse trusted proxy addresses and networks; an IPv6 listener also needs IPv4 ones in mapped form."""
    networks = [_read_network(part.strip()) for part in text.split(",") if part.strip()]
    mapped = [
        f"::ffff:{network.network_address}/{96 + network.prefixlen}"
        for network in networks
        if is_v6 and network.version == 4
    ]
    return (*map(str, networks), *mapped)


def _read_basic(value: Mapping[str, str], *, is_loopback: bool) -> Trust:
    if value["OAUTH"] != "basic":
        raise Refusal(f"TABLERO_OAUTH is {value['OAUTH']!r}; it must be basic.")
    for name in ("OIDC_ISSUER", *_ONLY_WITH_ISSUER):
        if value[name]:
            raise Refusal(
                f"--oauth basic accepts the tokens of anybody, so TABLERO_{name} would mean nothing;"
                " leave one of the two out."
            )
    if not is_loopback:
        raise Refusal(
            "--oauth basic accepts the tokens of anybody, so it is for a loopback address only; listen on 127.0.0.1,"
            " or name whom you trust with TABLERO_OIDC_ISSUER and TABLERO_OIDC_AUDIENCE."
        )
    uri = value["OIDC_AUTHORIZATION_URI"]
    return Trust(authorization_uri=_check_parameter("OIDC_AUTHORIZATION_URI", uri)) if uri else Trust()


def _read_issuer(value: Mapping[str, str]) -> Trust:
    issuer = value["OIDC_ISSUER"]
    check_url("OIDC_ISSUER", issuer)
    audiences = tuple(part.strip() for part in value["OIDC_AUDIENCE"].split(",") if part.strip())
    if not audiences:
        raise Refusal("TABLERO_OIDC_ISSUER needs TABLERO_OIDC_AUDIENCE: for whom its tokens must be made.")
    for audience in audiences:
        _check_parameter("OIDC_AUDIENCE", audience)
    uri = value["OIDC_AUTHORIZATION_URI"] or f"{_without_version(issuer)}/oauth2/authorize"
    return Trust(
        issuer=issuer,
        audiences=audiences,
        keys=_check_keys(value["OIDC_JWKS"]),
        roles_claim=value["OIDC_ROLES_CLAIM"] or "roles",
        authorization_uri=_check_parameter("OIDC_AUTHORIZATION_URI", uri),
    )


def _without_version(issuer: str) -> str:
    return issuer.rstrip("/").removesuffix("/v2.0")


def _check_keys(where: str) -> str:
    if "://" in where:
        check_url("OIDC_JWKS", where)
        return where
    if where and not Path(where).is_file():
        raise Refusal(f"TABLERO_OIDC_JWKS is {where!r}; there is no such file.")
    return where


def check_url(name: str, url: str) -> None:
    if not is_safe_url(url):
        raise Refusal(
            f"TABLERO_{name} is {url!r}; it must be a URL that begins with https:// (http:// only on loopback)."
        )


def _check_parameter(name: str, text: str) -> str:
    """Refuse characters that are invalid in an unquoted header parameter."""
    if not re.fullmatch(r'[^\s,="\x7f-\U0010ffff]+', text):
        raise Refusal(f"TABLERO_{name} holds {text!r}, which has a character that the challenge cannot hold.")
    return text


def _read_network(text: str) -> ipaddress.IPv4Network | ipaddress.IPv6Network:
    try:
        return ipaddress.ip_network(text, strict=False)
    except ValueError:
        raise Refusal(
            f"{text!r} is not the address of a proxy; write addresses and networks,"
            " for example 10.0.0.5,192.168.0.0/16."
        ) from None
