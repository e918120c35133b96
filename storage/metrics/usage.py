"""Usage of keys and tokens by client: each process writes its own counts, and readers sum them."""

from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from django.db.models import Count, Max, Sum

from storage.domain.requests.metrics import CredentialClient, UseCount
from storage.domain.requests.observed import Authentication
from storage.domain.values.stored import read_member
from storage.metrics.ledger import LATE, Ledger
from storage.metrics.series import DAY, HOUR
from storage.models import BlockedSas, CredentialUse, SeenCredential

_CROWD: Final = 2000  # clients, and then credentials, that one process counts separately per account and hour
_USES_KEPT: Final = timedelta(days=8)  # clients of seven days are shown before a key is rotated
_CREDENTIALS_KEPT: Final = timedelta(days=90)
_CREDENTIALS_LIMIT: Final = 5000  # per account: those used last
_ROWS: Final = 1000  # per statement
_KEY: Final = ("account", "authentication", "name")

Parameters = tuple[tuple[str, str], ...]
Use = tuple[datetime, CredentialClient]  # in an hour


class Uses(Ledger[Use, UseCount]):
    """Unwritten counts of uses by one process, by hour and client."""

    is_whole, settled, late = True, HOUR + timedelta(minutes=2), HOUR + LATE

    def __init__(self, process: str) -> None:
        super().__init__()
        self._process = process
        self._crowds: Counter[tuple[datetime, int, str]] = Counter()
        self._parameters: dict[CredentialClient, Parameters] = {}

    def add(self, hour: datetime, client: CredentialClient, use: UseCount, parameters: Parameters) -> None:
        key = self._place(hour, client)
        before = self._counted.get(key, UseCount(0, use.last))
        self._count(key, UseCount(before.count + use.count, max(before.last, use.last)))
        self._parameters[key[1]] = parameters

    def _place(self, hour: datetime, client: CredentialClient) -> Use:
        """Return the client to count for: the actual one, or a shared one beyond the limit."""
        if (hour, client) in self._counted:
            return hour, client
        if self._has_room(hour, client, "clients"):
            return hour, client
        # inventing user agents must not hide which credential is used
        anywhere = CredentialClient(client.account_id, client.authentication, client.credential)
        if (hour, anywhere) in self._counted or self._has_room(hour, client, "credentials"):
            return hour, anywhere
        # making a token for each request must not fill the database; keys are always counted separately
        is_key = client.authentication is Authentication.KEY
        return hour, anywhere if is_key else anywhere._replace(credential="")

    def _has_room(self, hour: datetime, client: CredentialClient, kind: str) -> bool:
        crowd = (hour, client.account_id, kind)
        self._crowds[crowd] += 1
        return self._crowds[crowd] <= _CROWD

    def forget(self, now: datetime) -> None:
        super().forget(now)
        for crowd in [crowd for crowd in self._crowds if crowd[0] + HOUR + LATE < now]:
            del self._crowds[crowd]
        if not self._unwritten:
            self._parameters.clear()

    def _clear(self) -> None:
        super()._clear()
        self._parameters.clear()

    def _order(self, key: Use) -> tuple[CredentialClient, datetime]:
        return key[1], key[0]

    def _store(self, counted: Mapping[Use, UseCount]) -> None:
        self._store_credentials(counted)
        rows = [
            CredentialUse(
                account_id=client.account_id,
                authentication=client.authentication,
                name=client.credential,
                hour=hour,
                address=client.address,
                agent=client.agent,
                process=self._process,
                count=use.count,
                last_used_at=use.last,
            )
            for (hour, client), use in counted.items()
        ]
        CredentialUse.objects.bulk_create(
            rows,
            batch_size=_ROWS,
            update_conflicts=True,
            unique_fields=(*_KEY, "hour", "address", "agent", "process"),
            update_fields=("count", "last_used_at"),
        )

    def _store_credentials(self, counted: Mapping[Use, UseCount]) -> None:
        rows = {
            client[:3]: SeenCredential(
                account_id=client.account_id,
                authentication=client.authentication,
                name=client.credential,
                parameters=self._parameters[client],
                first_used_at=use.last,
                last_used_at=use.last,
                address=client.address,
                agent=client.agent,
            )
            for (_, client), use in sorted(counted.items(), key=lambda counted: counted[1].last)
            if client.credential
        }
        SeenCredential.objects.bulk_create(
            [rows[credential] for credential in sorted(rows)],
            batch_size=_ROWS,
            update_conflicts=True,
            unique_fields=_KEY,
            update_fields=("last_used_at", "address", "agent"),
        )


# reading


@dataclass(frozen=True, slots=True)
class Usage:
    """Usage of a key or token."""

    authentication: Authentication
    name: str
    parameters: Parameters
    first: datetime
    last: datetime
    address: str
    agent: str
    uses: int  # requests in the last 24 hours, to the hour


@dataclass(frozen=True, slots=True)
class ClientUsage:
    """Usage of a key or token by a client; address and agent are empty for clients counted together."""

    address: str
    agent: str
    uses: int
    last: datetime


def credentials(
    account_id: int,
    now: datetime,
    authentication: Authentication | None = None,
    *,
    names: Collection[str] | None = None,
    limit: int = 1000,
) -> list[Usage]:
    """Return the keys and tokens of an account that were used within 90 days, last used first."""
    seen = SeenCredential.objects.filter(account_id=account_id).order_by("-last_used_at", "name")
    if names is not None:
        seen = seen.filter(name__in=names)
    uses = CredentialUse.objects.filter(account_id=account_id, hour__gt=now - DAY)
    if authentication is not None:
        seen, uses = seen.filter(authentication=authentication), uses.filter(authentication=authentication)
    counted = uses.values_list("authentication", "name").annotate(total=Sum("count"))
    totals = {(kind, name): total for kind, name, total in counted}
    return [_usage(row, totals.get((row.authentication, row.name), 0)) for row in seen[:limit]]


def credential(account_id: int, authentication: Authentication, name: str, now: datetime) -> Usage | None:
    """Return the usage of a key or token; None if it was not used."""
    row = SeenCredential.objects.filter(
        account_id=account_id, authentication=authentication, name=name
    ).first()
    if row is None:
        return None
    uses = CredentialUse.objects.filter(account_id=account_id, authentication=authentication, name=name)
    total = uses.filter(hour__gt=now - DAY).aggregate(total=Sum("count"))["total"]
    return _usage(row, total or 0)


def parameters(account_id: int, fingerprint: str) -> Parameters | None:
    """Return the parameters of a SAS seen in requests; None if it was not used."""
    seen = SeenCredential.objects.filter(
        account_id=account_id, authentication=Authentication.SAS, name=fingerprint
    )
    stored = seen.values_list("parameters", flat=True).first()
    return None if stored is None else tuple((name, value) for name, value in stored)


def clients(account_id: int, authentication: Authentication, name: str, since: datetime) -> list[ClientUsage]:
    """Return the clients of a key or token since a time, latest first; precise to the hour, at most eight days."""
    uses = CredentialUse.objects.filter(
        account_id=account_id, authentication=authentication, name=name, hour__gt=since - HOUR
    )
    rows = uses.values_list("address", "agent").annotate(total=Sum("count"), last=Max("last_used_at"))
    return [ClientUsage(*row) for row in rows.order_by("-last")]


def _usage(row: SeenCredential, uses: int) -> Usage:
    return Usage(
        read_member(Authentication, row.authentication),
        row.name,
        tuple((name, value) for name, value in row.parameters),
        row.first_used_at,
        row.last_used_at,
        row.address,
        row.agent,
        uses,
    )


def tidy(now: datetime) -> None:
    """Delete expired usage records."""
    CredentialUse.objects.filter(hour__lt=now - _USES_KEPT).delete()
    # a blocked token is not used, but must be found to be unblocked
    kept = BlockedSas.objects.values("fingerprint")
    SeenCredential.objects.filter(last_used_at__lt=now - _CREDENTIALS_KEPT).exclude(name__in=kept).delete()
    numbers = SeenCredential.objects.values_list("account_id").annotate(number=Count("pk"))
    for account_id, _ in numbers.filter(number__gt=_CREDENTIALS_LIMIT):
        mine = SeenCredential.objects.filter(account_id=account_id).order_by("-last_used_at", "pk")
        mine.exclude(pk__in=mine.values("pk")[:_CREDENTIALS_LIMIT]).exclude(name__in=kept).delete()
