"""Findings in plain English, for scripts and the command line; the console has its own words in each language."""

from collections.abc import Mapping
from typing import Final

from storage.inspector.reports import Finding, Mistake

_SENTENCES: Final[Mapping[Mistake, str]] = {
    Mistake.RETIRED_KEY: "It was signed with {key}, which was rotated.",
    Mistake.DEVELOPMENT_KEY: "It was signed with the well-known key of devstoreaccount1.",
    Mistake.KEY_NOT_DECODED: "It was signed with the key as text; the key is base64 and has to be decoded first.",
    Mistake.UNKNOWN_KEY: "No key of the account produces this signature, even allowing for common mistakes.",
    Mistake.OTHER_ACCOUNT: "The account in the string to sign is {account}.",
    Mistake.ACCOUNT_DOUBLED: "The account {account} was signed twice.",
    Mistake.ACCOUNT_NOT_DOUBLED: "The account was signed only once; in the path of this address it is there twice.",
    Mistake.PARAMETER_CHANGED: "{name} was changed after signing.",
    Mistake.PARAMETER_ADDED: "{name} was added after signing.",
    Mistake.OTHER_SCHEME: "The string to sign is for {signed}, but the header says {sent}.",
    Mistake.CONTENT_TYPE_ADDED: "No Content-Type was signed, but {sent} was sent.",
    Mistake.CONTENT_TYPE_OTHER: "The Content-Type {signed} was signed, but {sent} was sent.",
    Mistake.QUERY_SIGNED: "The query string was signed; only its comp parameter is.",
    Mistake.NO_AUTHORIZATION: "The request is not signed: it has neither an Authorization header nor a sig parameter.",
    Mistake.TWO_AUTHORIZATIONS: "The request has both an Authorization header and a SAS token.",
    Mistake.MALFORMED_AUTHORIZATION: "The Authorization header is not of the form “SharedKey account:signature”.",
    Mistake.BEARER: "The bearer token was refused.",
    Mistake.ACCOUNT_DIFFERS: "The Authorization header names the account {signed}, the address {addressed}.",
    Mistake.NO_DATE: "The request has no valid date.",
    Mistake.CLOCK_SKEW: "The date of the request is {duration} off this server's clock; 15 minutes are allowed.",
    Mistake.EXPIRED: "The token expired at {moment}, {duration} before.",
    Mistake.NOT_YET_VALID: "The token is not valid before {moment}.",
    Mistake.POLICY_MISSING: "The table {table} has no stored access policy {policy}.",
    Mistake.POLICY_RENAMED: "The table {table} has no stored access policy {policy}, but it has {similar}.",
    Mistake.POLICY_CONFLICT: "The token and its policy {policy} both set {names}.",
    Mistake.POLICY_INCOMPLETE: "Neither the token nor its policy {policy} sets {names}.",
    Mistake.TABLE_MISSING: "The account has no table {table}.",
    Mistake.HTTPS_ONLY: "The token allows HTTPS only.",
    Mistake.ADDRESS_OUTSIDE: "The token allows requests from {allowed} only, not from {address}.",
    Mistake.NO_TABLE_SERVICE: "The token is for other services: ss={services}.",
    Mistake.RESOURCE_TYPE: "srt={types} does not include what {operation} needs.",
    Mistake.PERMISSION: "{operation} needs {needed}; the permissions are {permissions}.",
    Mistake.NOT_BY_TOKEN: "{operation} is not available with this type of token.",
    Mistake.OTHER_TABLE: "The token is for the table {allowed}, not for {table}.",
    Mistake.OUTSIDE_RANGE: "The entity is outside the token's key range.",
    Mistake.SECONDARY_WRITE: "The secondary is read-only.",
    Mistake.READ_ONLY: "The account {account} is read-only.",
    Mistake.BLOCKED: "The token is blocked.",
    Mistake.ACCOUNT_DISABLED: "The account {account} is disabled.",
    Mistake.KEYS_NOT_ACCEPTED: "The account {account} accepts bearer tokens only.",
    Mistake.NETWORK: "The account accepts requests from {allowed} only, not from {address}.",
}

_POLICY_PERMISSION: Final = (
    "The policy {policy} has no {needed}, which {operation} needs; it has {permissions}."
)


def describe(found: Finding) -> str:
    details = dict(found.details)
    if "seconds" in details:
        details["duration"] = describe_duration(int(details["seconds"]))
    is_by_policy = found.mistake is Mistake.PERMISSION and "policy" in details
    sentence = _POLICY_PERMISSION if is_by_policy else _SENTENCES.get(found.mistake)
    try:
        return found.mistake.value.capitalize() + "." if sentence is None else sentence.format_map(details)
    except KeyError:  # kept by another version of the server
        return f"{found.mistake.value.capitalize()}."


def describe_duration(seconds: int) -> str:
    """Return a duration in its largest unit, of minutes, hours and days, that it has two of."""
    for unit, length in (("day", 86_400), ("hour", 3600), ("minute", 60)):
        if seconds >= 2 * length:
            return f"{seconds // length} {unit}s"
    return f"{seconds} seconds" if seconds != 1 else "1 second"
