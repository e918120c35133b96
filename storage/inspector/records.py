"""Reports as they are kept: without secrets, and without keys of entities."""

import re
from collections.abc import Callable, Container, Iterator, Mapping
from functools import partial
from typing import Any, Final

from storage.domain import errors
from storage.domain.errors import StorageError
from storage.domain.requests.cleaning import (
    LEFT_OUT,
    clean_date,
    clean_label,
    clean_md5,
    clean_media_type,
    clean_method,
    clean_option,
    clean_option_name,
    clean_sas_value,
    clean_table,
    clean_version,
)
from storage.domain.requests.routes import SECONDARY
from storage.domain.sas import SAS_NAMES
from storage.domain.sas.explain import Meaning, explain
from storage.domain.values.names import is_account_name
from storage.inspector.facts import ManagedAccount
from storage.inspector.mistakes import Mistake
from storage.inspector.reports import (
    FieldKind,
    Finding,
    Report,
    ReportKind,
    RequestField,
    SignedLine,
    Verdict,
)

_MOST: Final = 40  # of each kind
_SCHEMES: Final = frozenset({"SharedKey", "SharedKeyLite"})
_RESOURCE: Final = re.compile(r"(?:/?table)?/([a-z0-9]{3,24})/([A-Za-z0-9]{3,63})")
# what the inspector computes itself, or reads from the account
_OWN: Final = frozenset(
    {"key", "seconds", "now", "moment", "operation", "needed", "permissions", "types", "address"}
)


def dump_report(report: Report, path: str, account: ManagedAccount | None) -> dict[str, Any]:
    """Write a report of a request as JSON, so that it can be shown later; ``path`` is what is kept of the address."""
    error = report.verdict.error if report.verdict is not None else None
    cleaner = _Cleaner(path, account)
    return {
        "findings": [
            {"mistake": it.mistake.name, **dict(cleaner.details(it))} for it in report.findings[:_MOST]
        ],
        "parameters": [
            [it.name, cleaner.sas_value(it.name, it.value)]
            for it in report.parameters[:_MOST]
            if it.meaning is not Meaning.UNKNOWN
        ],
        "fields": [
            [cleaner.field_name(it), cleaner.field(it), it.part.value, it.is_signed]
            for it in report.fields[:_MOST]
            if it.part is not FieldKind.OPTION or it.name not in SAS_NAMES
        ],
        "lines": [[it.name, cleaner.line(it, report)] for it in report.lines[:_MOST]],
        "account": report.account,
        "key": report.key,
        "error": error.code if error is not None else "",
    }


class _Cleaner:
    """Keeps values that have the form of their kind, and names of the account's own tables and policies."""

    def __init__(self, path: str, account: ManagedAccount | None) -> None:
        self._path = path
        known = account.policies if account is not None else {}
        self._policies = {name for table in known for name in known[table]}

    def field_name(self, field: RequestField) -> str:
        return clean_option_name(field.name) if field.part is FieldKind.OPTION else field.name

    def field(self, field: RequestField) -> str:
        match field.part:
            case FieldKind.METHOD:
                return clean_method(field.value)
            case FieldKind.ACCOUNT | FieldKind.SIGNER:
                return _clean_account(field.value)
            case FieldKind.RESOURCE:
                return self._path
            case FieldKind.OPTION | FieldKind.COMP:
                return clean_option(field.name, field.value)
            case FieldKind.DATE | FieldKind.OTHER_DATE:
                return clean_date(field.value)
            case FieldKind.CONTENT_TYPE:
                return clean_media_type(field.value)
            case FieldKind.CONTENT_MD5:
                return clean_md5(field.value)
            case FieldKind.VERSION:
                return clean_version(field.value)
            case FieldKind.SCHEME:
                return _keep_one_of(field.value, _SCHEMES)
            case _:
                return LEFT_OUT

    def line(self, line: SignedLine, report: Report) -> str:
        match line.name:
            case "":
                return LEFT_OUT if line.text else ""
            case "Method":
                return clean_method(line.text)
            case "Content-MD5":
                return clean_md5(line.text)
            case "Content-Type":
                return clean_media_type(line.text)
            case "Date":
                return clean_date(line.text)
            case "account" | "…" if report.parameters:
                return _clean_account(line.text)
            case "/…" | "/table/…" if report.parameters:
                return _clean_resource(line.text)
            case "/…":
                component = (it for it in report.fields if it.part is FieldKind.COMP)
                query = "".join(f"?comp={clean_option('comp', it.value)}" for it in component)
                return f"/{report.account}{self._path}{query}"
            case _:
                return self.sas_value(line.name, line.text)

    def sas_value(self, name: str, value: str) -> str:
        return (
            value if name == Meaning.IDENTIFIER and value in self._policies else clean_sas_value(name, value)
        )

    def details(self, found: Finding) -> Iterator[tuple[str, str]]:
        details = dict(found.details)
        for name, value in found.details:
            yield name, self._detail(found.mistake, name, value, details.get("name", ""))

    def _detail(self, mistake: Mistake, name: str, value: str, parameter: str) -> str:
        match mistake, name:
            case _ if name in _OWN or (mistake, name) == (Mistake.NETWORK, "allowed"):
                return value
            case _, "policy" | "similar":
                return value if value in self._policies else clean_label(value)
            case (Mistake.MALFORMED_PARAMETER, "value") | (Mistake.PARAMETER_CHANGED, "signed"):
                return self.sas_value(parameter, value)
            case Mistake.OTHER_TABLE, "allowed":
                return clean_table(value)
            case Mistake.OTHER_SCHEME, _:
                return _keep_one_of(value, _SCHEMES)
            case Mistake.ACCOUNT_DIFFERS, _:
                return _clean_account(value)
            case _:
                clean = _DETAILS.get(name)
                return LEFT_OUT if clean is None else clean(value)


def _keep_one_of(text: str, texts: Container[str]) -> str:
    return text if text in texts else LEFT_OUT


def _clean_account(text: str) -> str:
    """Keep the name of an account, once or twice as a wrong path has it."""
    names = text.removesuffix(SECONDARY).split("/")
    return text if len(names) <= len(("once", "twice")) and all(map(is_account_name, names)) else LEFT_OUT


def _clean_names(text: str) -> str:
    """Keep names of parameters."""
    return text if all(it in SAS_NAMES for it in text.split(", ")) else LEFT_OUT


def _clean_resource(text: str) -> str:
    return text if _RESOURCE.fullmatch(text) else LEFT_OUT


def _clean_addressed_table(text: str) -> str:
    """Keep the name of a table, also as an address has it."""
    return text if not text or clean_table(text.removesuffix("()")) else LEFT_OUT


# by the name of a detail, whatever the mistake
_DETAILS: Final[Mapping[str, Callable[[str], str]]] = {
    "account": _clean_account,
    "name": _clean_names,
    "names": _clean_names,
    "table": _clean_addressed_table,
    "services": partial(clean_sas_value, "ss"),
    "allowed": partial(clean_sas_value, "sip"),
    "date": clean_date,
    "signed": clean_media_type,
    "sent": clean_media_type,
}


def load_report(kept: Mapping[str, Any]) -> Report:
    """Read a report that dump_report has written; it has no token."""
    error = getattr(errors, kept["error"], None)
    refusal = error() if isinstance(error, type) and issubclass(error, StorageError) else None
    return Report(
        ReportKind.REQUEST,
        kept["account"],
        is_managed=True,
        parameters=explain((name, value) for name, value in kept["parameters"]),
        fields=[
            RequestField(name, value, FieldKind(part), is_signed)
            for name, value, part, is_signed in kept["fields"]
            if part in set(FieldKind)
        ],
        lines=[SignedLine(name, text) for name, text in kept["lines"]],
        verdict=Verdict(kept["key"], refusal),
        findings=load_findings(kept),
        key=kept["key"],
    )


def load_findings(kept: Mapping[str, Any]) -> list[Finding]:
    """Read the findings of a kept report; those of another version of the server are left out."""
    return [
        Finding(
            Mistake[it["mistake"]], tuple((name, value) for name, value in it.items() if name != "mistake")
        )
        for it in kept["findings"]
        if it["mistake"] in Mistake.__members__
    ]
