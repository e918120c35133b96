"""Inspection of the filter of a query, by the diagnosis that the console's filter line shows."""

from collections.abc import Iterator
from contextlib import suppress
from typing import NamedTuple

from storage.domain.errors import StorageError
from storage.domain.filters.parser import parse
from storage.domain.requests.options import read_options
from storage.domain.values import dialects
from storage.domain.values.dialects import Dialect
from storage.domain.values.kinds import AccountKind
from storage.editing.filters.diagnosis import diagnose
from storage.editing.filters.diagnostics import NO_SCHEMA, Diagnostic
from storage.inspector.mistakes import Mistake
from storage.inspector.reports import Finding, finding


class RefusedFilter(NamedTuple):
    """A filter that the service refuses, with its error."""

    text: str
    error: StorageError
    diagnostic: Diagnostic
    dialect: Dialect

    @property
    def span(self) -> tuple[int, int]:
        return self.diagnostic.start, self.diagnostic.end

    @property
    def finding(self) -> Finding:
        refusal = self.diagnostic.refusal
        facts = {name: str(value) for name, value in refusal.facts.items()}
        corrected = next(self._corrections(), None)
        return finding(
            Mistake.FILTER,
            number=str(self.diagnostic.start + 1),
            reason=refusal.reason.name,
            **facts,
            **({"filter": corrected} if corrected else {}),
        )

    def _corrections(self) -> Iterator[str]:
        """Yield the texts of quick fixes that the service accepts."""
        for fix in self.diagnostic.fixes:
            corrected = fix.apply(self.text)
            with suppress(StorageError):
                if parse(corrected, self.dialect) is not None:
                    yield corrected


def inspect_filter(query: bytes, kind: AccountKind) -> RefusedFilter | None:
    """Return the refused filter of a query string; None if it has none or a valid one."""
    dialect = dialects.COSMOS if kind is AccountKind.COSMOS else dialects.STORAGE
    try:
        text = read_options(query).get("$filter", "")
    except StorageError:
        return None  # the service refuses it before it reads the filter
    try:
        parse(text, dialect)
    except StorageError as error:
        return RefusedFilter(text, error, diagnose(text, NO_SCHEMA, None, dialect)[0], dialect)
    return None
