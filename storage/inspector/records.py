"""Reports as they are kept: without secrets, and without keys of entities."""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from storage.domain import errors
from storage.domain.errors import StorageError
from storage.domain.requests.cleaning import LEFT_OUT, clean_option, clean_text
from storage.domain.sas import SAS_NAMES
from storage.domain.sas.explain import Meaning, explain
from storage.inspector.reports import (
    FieldKind,
    Finding,
    Mistake,
    Report,
    ReportKind,
    RequestField,
    SignedLine,
    Verdict,
)

_LIMIT: Final = 512  # characters of a text
_MOST: Final = 40  # of each kind
_KEYS: Final = frozenset({Meaning.START_PARTITION, Meaning.START_ROW, Meaning.END_PARTITION, Meaning.END_ROW})
_KEY_DETAILS: Final = ("partition_key", "row_key")


def dump_report(report: Report) -> dict[str, Any]:
    """Write a report of a request as JSON, so that it can be shown later."""
    error = report.verdict.error if report.verdict is not None else None
    return {
        "findings": [
            {"mistake": it.mistake.name, **dict(_clean_details(it))} for it in report.findings[:_MOST]
        ],
        "parameters": [
            [
                it.name,
                LEFT_OUT if it.meaning is Meaning.SIGNATURE or it.meaning in _KEYS else _clean(it.value),
            ]
            for it in report.parameters[:_MOST]
            if it.meaning is not Meaning.UNKNOWN
        ],
        "fields": [
            [_clean(it.name), _clean_field(it), it.part.value, it.is_signed]
            for it in report.fields[:_MOST]
            if it.part is not FieldKind.OPTION or it.name not in SAS_NAMES
        ],
        "lines": [
            [it.name, LEFT_OUT if it.name in _KEYS and it.text else _clean(it.text)]
            for it in report.lines[:_MOST]
        ],
        "account": report.account,
        "key": report.key,
        "error": error.code if error is not None else "",
    }


def _clean(text: str) -> str:
    return clean_text(text)[:_LIMIT]


def _clean_details(found: Finding) -> Iterator[tuple[str, str]]:
    for name, value in found.details:
        yield name, LEFT_OUT if name in _KEY_DETAILS else _clean(value)


def _clean_field(field: RequestField) -> str:
    if field.part is FieldKind.SIGNATURE:
        return LEFT_OUT
    if field.part is FieldKind.OPTION:
        return clean_option(field.name, field.value)[:_LIMIT]
    return _clean(field.value)


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
