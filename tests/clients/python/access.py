"""Words of the tests about access: an entity, a time, and how an operation ended."""

from collections.abc import Callable, Iterable
from datetime import UTC, datetime, timedelta
from typing import Any

from azure.core.exceptions import HttpResponseError

ADA = {"PartitionKey": "se", "RowKey": "ada", "Age": 36}
HOUR = timedelta(hours=1)
ALL = "raud"


def now() -> datetime:
    return datetime.now(UTC)


def person(row: str, **properties: Any) -> dict[str, Any]:
    return {"PartitionKey": "se", "RowKey": row, **properties}


def keys(entities: Iterable[Any]) -> list[tuple[str, str]]:
    return [(entity["PartitionKey"], entity["RowKey"]) for entity in entities]


def outcome_of(operation: Callable[..., Any], *arguments: Any) -> Any:
    """Return None, or status and code of the refusal."""
    try:
        operation(*arguments)
    except HttpResponseError as refusal:
        # the SDK does not read the code of some refusals
        code = getattr(refusal, "error_code", None) or refusal.response.headers.get("x-ms-error-code")
        return refusal.status_code, code
    return None


def refusal_of(operation: Callable[..., Any], *arguments: Any) -> Any:
    """Status and code of the refusal, which there must be."""
    refusal = outcome_of(operation, *arguments)
    assert refusal is not None, "was not refused"
    return refusal
