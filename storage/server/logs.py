"""Server log on standard error: formats, level, and suppression of repeated messages."""

import json
import logging
import re
import time
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any, Final

from storage.domain.requests.cleaning import redact_signatures
from storage.server.options import Options

REPEAT_AFTER: Final = 60.0  # seconds in which a message that is repeated is only counted
_REMEMBERED: Final = 1000  # different messages
REQUEST_FIELDS: Final = ("request_id", "user", "account", "operation")  # fields of a message about a request
# a signature in a URL ends with its word; one of SharedKey follows the name of the account
_WORD: Final = re.compile(r"\S+")
_SHARED_KEY: Final = re.compile(r"\b(SharedKey(?:Lite)?\s+[^\s:]*:)\S+")
_CONTROL: Final = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")  # with which terminals are told what to do
_LIBRARIES: Final = ("asyncio", "django", "httptools", "psycopg", "urllib3", "uvicorn")


class RepetitionFilter(logging.Filter):
    """Log filter that passes a message once a minute, with its number of repetitions."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__()
        self._clock = clock
        self._passed: dict[tuple[object, ...], tuple[float, int]] = {}  # when, and how often not since

    def filter(self, record: logging.LogRecord) -> bool:
        error = record.exc_info[1] if record.exc_info else None
        # the pool names the connection, which is another each time
        text = record.msg if record.name.startswith("psycopg") else record.getMessage()
        key = (record.name, record.levelno, text, type(error), str(error))
        now = self._clock()
        at, number = self._passed.get(key, (-REPEAT_AFTER, 0))
        if now - at < REPEAT_AFTER:
            self._passed[key] = (at, number + 1)
            return False
        if len(self._passed) >= _REMEMBERED:
            self._passed.clear()
        self._passed[key] = (now, 0)
        record.repeated = number
        return True


class TextFormatter(logging.Formatter):
    """Formatter with a line per message; only tracebacks take more."""

    def format(self, record: logging.LogRecord) -> str:
        line = f"{_time(record)} {record.levelname} {record.name}: {_message(record)}"
        if number := getattr(record, "repeated", 0):
            line += f" (repeated {number} times)"
        return f"{line}\n{_traceback(self, record)}" if record.exc_info else line


class JsonFormatter(logging.Formatter):
    """Formatter with one JSON object per line."""

    def format(self, record: logging.LogRecord) -> str:
        entry: dict[str, Any] = {
            "time": _time(record),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": _message(record),
            "pid": record.process,
        }
        if number := getattr(record, "repeated", 0):
            entry["repeated"] = number
        entry |= {name: _clean(value) for name in REQUEST_FIELDS if (value := getattr(record, name, ""))}
        if record.exc_info:
            entry["exception"] = _traceback(self, record)
        return json.dumps(entry, ensure_ascii=False)


def configuration(options: Options) -> dict[str, Any]:
    """Return the configuration for `logging.config.dictConfig`."""
    formatter = JsonFormatter if options.log_format == "json" else TextFormatter
    level = options.log_level.upper()
    quiet = level if level in {"ERROR", "WARNING"} else "WARNING"
    return {
        "version": 1,
        "disable_existing_loggers": False,
        "formatters": {"line": {"()": formatter}},
        "filters": {"repetitions": {"()": RepetitionFilter}},
        "handlers": {
            "stderr": {
                "class": "logging.StreamHandler",
                "formatter": "line",
                "filters": ["repetitions"],
            }
        },
        "root": {"handlers": ["stderr"], "level": level},
        "loggers": {
            **{name: {"level": quiet} for name in _LIBRARIES},
            "django": {"level": "ERROR"},
            # malformed requests are the client's mistake: each would write a traceback
            "django.security": {"level": "CRITICAL"},
        },
    }


def announcement(options: Options, line: str) -> str:
    """Format a start or stop message like the log."""
    if options.log_format != "json":
        return line
    return JsonFormatter().format(logging.LogRecord("tablero", logging.INFO, "", 0, line, (), None))


def _time(record: logging.LogRecord) -> str:
    return datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds")


def _message(record: logging.LogRecord) -> str:
    return _clean(" ".join(record.getMessage().split()))


def _traceback(formatter: logging.Formatter, record: logging.LogRecord) -> str:
    assert record.exc_info is not None
    return _clean(formatter.formatException(record.exc_info))


def _clean(text: str) -> str:
    """Redact signatures, which grant access, and escape control characters in a log message."""
    text = _CONTROL.sub(lambda character: f"\\x{ord(character[0]):02x}", text)
    return _SHARED_KEY.sub(r"\1XXXXX", _WORD.sub(lambda word: redact_signatures(word[0]), text))
