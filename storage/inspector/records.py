"""Stored reports, without secrets and keys of entities."""

from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Final
from urllib.parse import quote

from storage.domain import errors
from storage.domain.errors import StorageError
from storage.domain.requests.cleaning import (
    LEFT_OUT,
    clean_date,
    clean_filter_text,
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
from storage.domain.sas.explain import ExplainedParameter, Meaning, explain
from storage.domain.values.names import is_account_name
from storage.inspector.facts import Facts, IncomingRequest, ManagedAccount
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
from storage.inspector.requests import authorization_of, request_fields, request_lines
from storage.inspector.tokens import inspect_token, read_pairs

_MOST: Final = 40  # entries of each kind
_SCHEMES: Final = frozenset({"SharedKey", "SharedKeyLite"})
# others are left out
_HEADERS: Final[Mapping[bytes, Callable[[str], str]]] = {
    b"x-ms-date": clean_date,
    b"date": clean_date,
    b"content-type": clean_media_type,
    b"content-md5": clean_md5,
    b"x-ms-version": clean_version,
}
# facts that the inspector computes itself, or reads from the account
_OWN: Final = frozenset(
    {"key", "seconds", "now", "moment", "operation", "needed", "permissions", "types", "address"}
)


def dump_report(
    report: Report, sent: IncomingRequest, path: str, account: ManagedAccount | None
) -> dict[str, Any]:
    """Serialize the report of a request to JSON without secrets; ``path`` is the part of the address to keep.

    Everything but the findings is recomputed from the stored request when it is loaded.
    """
    error = report.verdict.error if report.verdict is not None else None
    cleaner = _Cleaner(account)
    cleaned = cleaner.clean_request(sent, path)
    authorization = authorization_of(sent)
    if authorization is not None:
        authorization = authorization._replace(account=_clean_account(authorization.account), mac=b"")
    parameters: Sequence[ExplainedParameter] = ()
    lines: Sequence[SignedLine] = request_lines(cleaned, authorization)
    if report.parameters:
        token = inspect_token(cleaned.query.decode(), None, Facts({}, 0.0, "", ""), report.account)
        parameters, lines = token.parameters, token.lines
    return {
        "findings": [
            {"mistake": it.mistake.name, **dict(cleaner.details(it))} for it in report.findings[:_MOST]
        ],
        "parameters": [[it.name, it.value] for it in parameters[:_MOST] if it.meaning is not Meaning.UNKNOWN],
        "fields": [
            [it.name, it.value, it.part.value, it.is_signed]
            for it in request_fields(cleaned, authorization)[:_MOST]
            if it.part is not FieldKind.OPTION or it.name not in SAS_NAMES
        ],
        "lines": [[it.name, it.text] for it in lines[:_MOST]],
        "account": report.account,
        "key": report.key,
        "error": error.code if error is not None else "",
    }


class _Cleaner:
    """Redaction of stored requests: keeps well-formed values, and names of the account's own tables and policies."""

    def __init__(self, account: ManagedAccount | None) -> None:
        known = account.policies if account is not None else {}
        self._policies = {name for table in known for name in known[table]}

    def clean_request(self, sent: IncomingRequest, path: str) -> IncomingRequest:
        return replace(
            sent,
            address=sent.address._replace(account=_clean_account(sent.address.account), base=LEFT_OUT),
            method=clean_method(sent.method),
            path=path.encode(),
            query="&".join(self._clean_options(sent.query)).encode(),
            headers={
                name: clean(sent.headers[name].decode("latin-1")).encode()
                for name, clean in _HEADERS.items()
                if name in sent.headers
            },
        )

    def _clean_options(self, query: bytes) -> Iterator[str]:
        for name, value in read_pairs(query.decode("latin-1")):
            if name in SAS_NAMES:
                yield f"{name}={quote(self.sas_value(name, value))}"
            elif name.lower() == "comp":  # signed as it was sent
                yield f"{name}={clean_option(name, value)}"
            else:
                yield f"{clean_option_name(name)}={quote(clean_option(name, value))}"

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
            case Mistake.FILTER, _:
                return clean_filter_detail(name, value)
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


def clean_filter_detail(name: str, value: str) -> str:
    """Redact a detail of a refused filter: the filter, and what its sentence quotes."""
    return clean_filter_text(value) if name in ("filter", "name", "instead") else value


def _keep_one_of(text: str, texts: Container[str]) -> str:
    return text if text in texts else LEFT_OUT


def _clean_account(text: str) -> str:
    return text if is_account_name(text.removesuffix(SECONDARY)) else LEFT_OUT


def _clean_names(text: str) -> str:
    """Return a list of parameter names if all are known, otherwise a placeholder."""
    return text if all(it in SAS_NAMES for it in text.split(", ")) else LEFT_OUT


def _clean_addressed_table(text: str) -> str:
    """Keep a valid table name, also with the parentheses of an address."""
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
    """Load a report from dump_report; it contains no token."""
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
    )


def load_findings(kept: Mapping[str, Any]) -> list[Finding]:
    """Load the findings of a stored report, skipping those of other versions."""
    return [
        Finding(
            Mistake[it["mistake"]], tuple((name, value) for name, value in it.items() if name != "mistake")
        )
        for it in kept["findings"]
        if it["mistake"] in Mistake.__members__
    ]
