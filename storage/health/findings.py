"""Findings of `doctor`."""

from enum import StrEnum
from typing import NamedTuple


class Severity(StrEnum):
    OK = "ok"
    WARNING = "warning"  # something costs more than it should, or needs attention soon
    ERROR = "error"  # something does not work


class NotExamined(Exception):
    """A part of the examination got no response from a service; the message names it."""


class Finding(NamedTuple):
    """Finding of doctor; ``text`` states the fact and, if it is a problem, the fix."""

    severity: Severity
    text: str


def fine(text: str) -> Finding:
    return Finding(Severity.OK, text)


def warning(text: str) -> Finding:
    return Finding(Severity.WARNING, text)


def error(text: str) -> Finding:
    return Finding(Severity.ERROR, text)
