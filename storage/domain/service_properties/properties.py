"""Service properties of an account: logging, metrics and CORS rules.

Logging and metrics are of Storage Analytics, which Azure retired on 2024-01-09: they are only stored and returned.

https://learn.microsoft.com/rest/api/storageservices/set-table-service-properties
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final

from storage.domain.errors import InvalidXmlDocument, InvalidXmlNodeValue, StorageError

RETENTION_DAYS: Final = range(1, 366)
CORS_RULE_LIMIT: Final = 5
CORS_SIZE_LIMIT: Final = 2048  # bytes of the values in the rules, without tags
# the service's documents do not list the last two, but it takes them, as its own client's test shows
CORS_METHODS: Final = frozenset(
    {"DELETE", "GET", "HEAD", "MERGE", "POST", "OPTIONS", "PUT", "PATCH", "TRACE", "CONNECT"}
)
ORIGIN_LIMIT: Final = 64
HEADER_LIMIT: Final = 64
PREFIX_LIMIT: Final = 2  # headers that end in *
MAX_AGE: Final = range(2**31)  # seconds

# no white space and no comma, since each may become a part of a header
_ORIGIN = re.compile(r"[!-+\--~]{1,256}")
_HEADER = re.compile(r"(?=.{1,256}\Z)[A-Za-z0-9!#$%&'+.^_`|~-]*\*?")


@dataclass(frozen=True, slots=True)
class Logging:
    """Logging settings by operation; ``retention`` in days, None is forever."""

    read: bool = False
    write: bool = False
    delete: bool = False
    retention: int | None = None


@dataclass(frozen=True, slots=True)
class Metrics:
    """Metrics settings, with ``include_apis`` by operation; ``retention`` as in Logging."""

    enabled: bool = False
    include_apis: bool = False
    retention: int | None = None


@dataclass(frozen=True, slots=True)
class CorsRule:
    """CORS rule. Origins are case-sensitive, ``*`` is any; headers are not and may end in ``*``.

    ``max_age`` is in seconds.
    """

    origins: tuple[str, ...]
    methods: tuple[str, ...]
    allowed_headers: tuple[str, ...]
    exposed_headers: tuple[str, ...]
    max_age: int


@dataclass(frozen=True, slots=True)
class ServiceProperties:
    """The properties of an account, with the defaults of Azure."""

    logging: Logging = Logging()
    hour_metrics: Metrics = Metrics(enabled=True, include_apis=True, retention=7)
    minute_metrics: Metrics = Metrics()
    cors: tuple[CorsRule, ...] = ()


DEFAULT_PROPERTIES: Final = ServiceProperties()


@dataclass(frozen=True, slots=True)
class PropertiesUpdate:
    """Partial change of service properties; None keeps the current value."""

    logging: Logging | None = None
    hour_metrics: Metrics | None = None
    minute_metrics: Metrics | None = None
    cors: tuple[CorsRule, ...] | None = None

    def apply(self, properties: ServiceProperties) -> ServiceProperties:
        wanted = {name: getattr(self, name) for name in self.__slots__}
        return replace(properties, **{name: value for name, value in wanted.items() if value is not None})


@dataclass(frozen=True, slots=True)
class PropertiesFault:
    """Invalid value; ``where`` is its path from the outermost field, for example cors, 0, origins."""

    where: tuple[str | int, ...]
    error: StorageError


def check_properties(properties: ServiceProperties) -> None:
    """Validate properties; raises InvalidXmlDocument or InvalidXmlNodeValue for the first invalid value."""
    for fault in find_faults(properties):
        raise fault.error


def find_faults(properties: ServiceProperties) -> Iterator[PropertiesFault]:
    """Yield all invalid values; the service reports the first."""
    for name in ("logging", "hour_metrics", "minute_metrics"):
        days = getattr(properties, name).retention
        if days is not None and days not in RETENTION_DAYS:
            yield PropertiesFault((name, "retention"), InvalidXmlDocument())
    if len(properties.cors) > CORS_RULE_LIMIT:
        yield PropertiesFault(("cors",), InvalidXmlDocument())
    for place, rule in enumerate(properties.cors):
        for field in _bad_fields(rule):
            yield PropertiesFault(("cors", place, field), InvalidXmlNodeValue())
    if cors_size(properties.cors) > CORS_SIZE_LIMIT:
        yield PropertiesFault(("cors",), InvalidXmlDocument())


def _bad_fields(rule: CorsRule) -> Iterator[str]:
    if not 1 <= len(rule.origins) <= ORIGIN_LIMIT or not all(map(_ORIGIN.fullmatch, rule.origins)):
        yield "origins"
    if not rule.methods or not CORS_METHODS.issuperset(rule.methods):
        yield "methods"
    if not _are_headers(rule.allowed_headers):
        yield "allowed_headers"
    if not _are_headers(rule.exposed_headers):
        yield "exposed_headers"
    if not isinstance(rule.max_age, int) or rule.max_age not in MAX_AGE:  # a range is searched for a float
        yield "max_age"


def _are_headers(names: Sequence[str]) -> bool:
    prefixes = sum(name.endswith("*") for name in names)
    if prefixes > PREFIX_LIMIT or len(names) - prefixes > HEADER_LIMIT:
        return False
    return all(map(_HEADER.fullmatch, names))


def cors_size(rules: Sequence[CorsRule]) -> int:
    """Compute the size that counts towards the limit, in bytes."""
    size = 0
    for rule in rules:
        lists = (rule.origins, rule.methods, rule.allowed_headers, rule.exposed_headers)
        size += sum(len(",".join(values)) for values in lists) + len(str(rule.max_age))
    return size
