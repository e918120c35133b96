"""Request statistics by code and by credential."""

from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, Final

from django.db.models import Count, F, QuerySet, Sum
from django.utils import timezone

from storage.domain.requests.observed import Authentication
from storage.domain.requests.outcomes import Outcome
from storage.domain.values.stored import read_member
from storage.metrics import series
from storage.models import Account, RecordedRequest
from storage.requests.requests import SAS_LABEL

_SHOWN: Final = 50  # credentials and codes


@dataclass(frozen=True, slots=True)
class CodeCount:
    status: int
    code: str  # empty without an error
    requests: int


@dataclass(frozen=True, slots=True)
class CredentialCount:
    code: str
    requests: int
    authentication: str
    credential: str
    label: Annotated[str, "Of a SAS token."]


@dataclass(frozen=True, slots=True)
class RequestStatistics:
    requests: Annotated[int, "All, also those that are not in the log."]
    kept: Annotated[int, "Those in the log."]
    codes: list[CodeCount]
    credentials: Annotated[list[CredentialCount], "Of refused and failed requests."]


def statistics(account: Account, since: datetime, until: datetime) -> RequestStatistics:
    """Return the statistics of a period, precise to the minute for the last day: see series.KEPT."""
    counts = series.read_span(account.pk, since, until, timezone.now())
    codes = [CodeCount(*kind, number) for kind, number in counts.by_code().items()][:_SHOWN]
    kept = RecordedRequest.objects.filter(account=account, at__gte=since, at__lt=until)
    return RequestStatistics(
        sum(it.requests for it in codes),
        kept.count(),
        codes,
        count_credentials(kept),
    )


def count_credentials(kept: QuerySet[RecordedRequest]) -> list[CredentialCount]:
    """Count refused and failed requests of the log by credential and code, most frequent first."""
    counted = (
        kept.exclude(outcome=Outcome.DONE)
        .annotate(label=SAS_LABEL)
        .values("authentication", "credential", "label", "error")
        .annotate(number=Count("pk") + Sum(F("alike")))
        .order_by("-number", "authentication", "credential", "error")
    )
    return [
        CredentialCount(
            row["error"],
            row["number"],
            read_member(Authentication, row["authentication"]),
            row["credential"],
            row["label"] or "",
        )
        for row in counted[:_SHOWN]
    ]
