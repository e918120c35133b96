"""What an account wants of the service: logs, metrics, CORS rules.

https://learn.microsoft.com/rest/api/storageservices/set-table-service-properties
"""

from dataclasses import dataclass
from typing import Final

CORS_RULE_LIMIT: Final = 5
CORS_SIZE_LIMIT: Final = 2048  # bytes of the Cors element
RETENTION_DAYS: Final = range(1, 366)


@dataclass(frozen=True, slots=True)
class Logging:
    """Which requests are logged; ``retention`` in days, None keeps the logs."""

    read: bool = False
    write: bool = False
    delete: bool = False
    retention: int | None = None


@dataclass(frozen=True, slots=True)
class Metrics:
    """``include_apis`` adds a row per operation to the one of all; ``retention`` in days, None keeps them."""

    enabled: bool = False
    include_apis: bool = False
    retention: int | None = None


@dataclass(frozen=True, slots=True)
class CorsRule:
    """Origins compare by case, ``*`` is any; headers do not, and may end in ``*``. ``max_age`` in seconds."""

    origins: tuple[str, ...]
    methods: tuple[str, ...]
    allowed_headers: tuple[str, ...]
    exposed_headers: tuple[str, ...]
    max_age: int


@dataclass(frozen=True, slots=True)
class ServiceProperties:
    """A new account has its hours measured for a week, as the service has it."""

    logging: Logging = Logging()
    hour_metrics: Metrics = Metrics(enabled=True, include_apis=True, retention=7)
    minute_metrics: Metrics = Metrics()
    cors: tuple[CorsRule, ...] = ()


DEFAULT: Final = ServiceProperties()
