"""OpenTelemetry's environment variables that select the signals; its SDK reads the others.

https://opentelemetry.io/docs/specs/otel/configuration/sdk-environment-variables/
"""

import importlib.util
import logging
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from storage.core.tracer import Tracer

logger = logging.getLogger(__name__)

PROTOCOL: Final = "http/protobuf"
_ENDPOINT: Final = "OTEL_EXPORTER_OTLP_ENDPOINT"


@dataclass(frozen=True, slots=True)
class Signals:
    """The kinds of telemetry to send to a collector."""

    traces: bool
    metrics: bool

    def __bool__(self) -> bool:
        return self.traces or self.metrics


_NONE: Final = Signals(traces=False, metrics=False)


def read(environ: Mapping[str, str]) -> Signals:
    """Return the signals to send, none without an endpoint or the exporter otlp; log a missing dependency."""
    if environ.get("OTEL_SDK_DISABLED", "").strip().lower() == "true":
        return _NONE
    signals = Signals(traces=_is_wanted(environ, "TRACES"), metrics=_is_wanted(environ, "METRICS"))
    if signals and importlib.util.find_spec("opentelemetry") is None:
        logger.warning(
            "No traces and metrics are sent: install tablero-server[otel], or unset %s.", _ENDPOINT
        )
        return _NONE
    return signals


def _is_wanted(environ: Mapping[str, str], signal: str) -> bool:
    endpoint = f"OTEL_EXPORTER_OTLP_{signal}_ENDPOINT"
    has_endpoint = any(environ.get(name, "").strip() for name in (_ENDPOINT, endpoint))
    name = f"OTEL_{signal}_EXPORTER"
    exporters = {it.strip() for it in environ.get(name, "otlp" if has_endpoint else "none").split(",")}
    if "otlp" not in exporters:
        if exporters - {"none", ""}:
            logger.warning("%s is %s; only otlp and none are supported.", name, environ[name])
        return False
    variables = (f"OTEL_EXPORTER_OTLP_{signal}_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL")
    for variable in variables:
        protocol = environ.get(variable, "").strip()
        if protocol and protocol != PROTOCOL:
            logger.warning(
                "%s is %s; only %s is supported, so nothing is sent.", variable, protocol, PROTOCOL
            )
            return False
        if protocol:
            break  # the signal's own variable comes first
    return True


def start(environ: Mapping[str, str]) -> "Tracer | None":
    """Return the tracer that the variables request, importing the SDK only then; None without one."""
    signals = read(environ)
    if not signals:
        return None
    from storage.tracing.exporting import Telemetry
    from storage.tracing.tracer import TelemetryTracer

    return TelemetryTracer(Telemetry(signals))
