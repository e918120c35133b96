"""The service properties of an account in XML, whole or in part.

https://learn.microsoft.com/rest/api/storageservices/set-table-service-properties
"""

import re
from collections.abc import Mapping, Sequence
from typing import Final
from xml.etree.ElementTree import Element

from storage.domain.errors import (
    InvalidXmlDocument,
    InvalidXmlNodeValue,
    MissingRequiredXmlNode,
    UnsupportedXmlNode,
)
from storage.domain.service_properties.properties import (
    CORS_RULE_LIMIT,
    CorsRule,
    Logging,
    Metrics,
    PropertiesUpdate,
    ServiceProperties,
)
from storage.domain.values.xml import (
    START,
    read_children,
    read_items,
    read_text,
    read_xml,
    write_element,
    write_text,
)

FIRST_PARTIAL_VERSION: Final = (
    "2013-08-15"  # older versions have no partial updates, no CORS and one kind of metrics
)

_ROOT: Final = "StorageServiceProperties"
_OF_BLOBS: Final = "DefaultServiceVersion"
_LOGGING: Final = ("Version", "Delete", "Read", "Write", "RetentionPolicy")
_METRICS: Final = ("Version", "Enabled", "RetentionPolicy")
_RULE: Final = ("AllowedMethods", "AllowedOrigins", "AllowedHeaders", "ExposedHeaders", "MaxAgeInSeconds")
_VERSION: Final = "1.0"  # version of logging and metrics
_NUMBER = re.compile(r"[0-9]{1,10}")


def read_properties(body: bytes, version: str) -> PropertiesUpdate:
    root = read_xml(body)
    if root.tag != _ROOT:
        raise UnsupportedXmlNode
    if version < FIRST_PARTIAL_VERSION:
        parts = _required(root, ("Logging", "Metrics"))
        return PropertiesUpdate(_read_logging(parts["Logging"]), _read_metrics(parts["Metrics"]))
    if root.find(_OF_BLOBS) is not None:
        raise InvalidXmlDocument  # as an own client's test shows; other services' parts are unsupported
    parts = read_children(root, ("Logging", "HourMetrics", "MinuteMetrics", "Cors"))
    return PropertiesUpdate(
        _read_logging(parts["Logging"]) if "Logging" in parts else None,
        _read_metrics(parts["HourMetrics"]) if "HourMetrics" in parts else None,
        _read_metrics(parts["MinuteMetrics"]) if "MinuteMetrics" in parts else None,
        _read_cors(parts["Cors"]) if "Cors" in parts else None,
    )


def _read_logging(element: Element) -> Logging:
    nodes = _required(element, _LOGGING)
    _check_version(nodes["Version"])
    return Logging(
        read=_read_boolean(nodes["Read"]),
        write=_read_boolean(nodes["Write"]),
        delete=_read_boolean(nodes["Delete"]),
        retention=_read_retention(nodes["RetentionPolicy"]),
    )


def _read_metrics(element: Element) -> Metrics:
    nodes = _required(element, _METRICS, "IncludeAPIs")
    _check_version(nodes["Version"])
    enabled = _read_boolean(nodes["Enabled"])
    apis = nodes.get("IncludeAPIs")
    if enabled and apis is None:
        raise MissingRequiredXmlNode
    include_apis = apis is not None and _read_boolean(apis)
    return Metrics(enabled, enabled and include_apis, _read_retention(nodes["RetentionPolicy"]))


def _read_retention(element: Element) -> int | None:
    """Parse the retention in days.

    None means unlimited. Days of a disabled policy are ignored, as some clients send them.
    """
    nodes = _required(element, ("Enabled",), "Days")
    if not _read_boolean(nodes["Enabled"]):
        return None
    if "Days" not in nodes:
        raise MissingRequiredXmlNode
    return _read_number(nodes["Days"])


def _read_cors(element: Element) -> tuple[CorsRule, ...]:
    items = read_items(element, ("CorsRule",))
    if len(items) > CORS_RULE_LIMIT:
        raise InvalidXmlDocument
    return tuple(_read_rule(item) for item in items)


def _read_rule(element: Element) -> CorsRule:
    nodes = _required(element, _RULE)
    return CorsRule(
        _read_list(nodes["AllowedOrigins"]),
        _read_list(nodes["AllowedMethods"]),
        _read_list(nodes["AllowedHeaders"]),
        _read_list(nodes["ExposedHeaders"]),
        _read_number(nodes["MaxAgeInSeconds"]),
    )


def _required(element: Element, names: Sequence[str], optional: str = "") -> Mapping[str, Element]:
    nodes = read_children(element, (*names, optional))
    if not nodes.keys() >= set(names):
        raise MissingRequiredXmlNode
    return nodes


def _check_version(element: Element) -> None:
    if read_text(element).strip() != _VERSION:
        raise InvalidXmlNodeValue


def _read_boolean(element: Element) -> bool:
    text = read_text(element).strip().lower()
    if text not in ("true", "false"):
        raise InvalidXmlNodeValue
    return text == "true"


def _read_number(element: Element) -> int:
    text = read_text(element).strip()
    if not _NUMBER.fullmatch(text):
        raise InvalidXmlNodeValue
    return int(text)


def _read_list(element: Element) -> tuple[str, ...]:
    text = read_text(element).strip()
    return tuple(part.strip() for part in text.split(",")) if text else ()


# value → XML


def write_properties(properties: ServiceProperties, version: str) -> bytes:
    logging = _write_logging(properties.logging)
    if version < FIRST_PARTIAL_VERSION:
        parts = logging + _write_metrics("Metrics", properties.hour_metrics)
    else:
        parts = (
            logging
            + _write_metrics("HourMetrics", properties.hour_metrics)
            + _write_metrics("MinuteMetrics", properties.minute_metrics)
            + write_element("Cors", "".join(map(_write_rule, properties.cors)))
        )
    return START + f"<{_ROOT}>{parts}</{_ROOT}>".encode()


def _write_logging(logging: Logging) -> str:
    return (
        f"<Logging><Version>{_VERSION}</Version><Read>{_write_boolean(logging.read)}</Read>"
        f"<Write>{_write_boolean(logging.write)}</Write><Delete>{_write_boolean(logging.delete)}</Delete>"
        f"{_write_retention(logging.retention)}</Logging>"
    )


def _write_metrics(name: str, metrics: Metrics) -> str:
    apis = f"<IncludeAPIs>{_write_boolean(metrics.include_apis)}</IncludeAPIs>" if metrics.enabled else ""
    return (
        f"<{name}><Version>{_VERSION}</Version><Enabled>{_write_boolean(metrics.enabled)}</Enabled>"
        f"{apis}{_write_retention(metrics.retention)}</{name}>"
    )


def _write_retention(days: int | None) -> str:
    text = "" if days is None else f"<Days>{days}</Days>"
    enabled = _write_boolean(days is not None)
    return f"<RetentionPolicy><Enabled>{enabled}</Enabled>{text}</RetentionPolicy>"


def _write_rule(rule: CorsRule) -> str:
    values = (
        ",".join(rule.methods),
        ",".join(rule.origins),
        ",".join(rule.allowed_headers),
        ",".join(rule.exposed_headers),
        str(rule.max_age),
    )
    nodes = (write_element(name, write_text(value)) for name, value in zip(_RULE, values, strict=True))
    return write_element("CorsRule", "".join(nodes))


def _write_boolean(value: bool) -> str:
    return "true" if value else "false"
