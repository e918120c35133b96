"""Labels of an account: names and values by which scripts find the accounts they created."""

import re
from collections.abc import Mapping
from typing import Final

from storage.domain.refusals import Reason, Refused

NAME_LIMIT: Final = 63
VALUE_LIMIT: Final = 255

_NAME = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9._/-]{0,61}[A-Za-z0-9])?")
# one line of characters that can be stored and shown
_VALUE = re.compile(f"[^\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]{{0,{VALUE_LIMIT}}}")


class LabelError(Refused, ValueError):
    """Reason why labels are invalid."""


def check_labels(labels: Mapping[str, str]) -> None:
    """Validate the names and values of labels; raises LabelError."""
    for name, value in labels.items():
        if not is_label_name(name):
            raise LabelError(Reason.LABEL_NAME, most=NAME_LIMIT)
        if not _VALUE.fullmatch(value):
            raise LabelError(Reason.LABEL_VALUE, label=name, most=VALUE_LIMIT)


def is_label_name(text: str) -> bool:
    return _NAME.fullmatch(text) is not None


def read_lines(text: str) -> dict[str, str]:
    """Parse labels typed as `branch=main`, one per line; raises LabelError."""
    labels: dict[str, str] = {}
    for line in filter(None, (line.strip() for line in text.splitlines())):
        name, _, value = (part.strip() for part in line.partition("="))
        if name in labels:
            raise LabelError(Reason.LABEL_TWICE, label=name)
        labels[name] = value
    check_labels(labels)
    return labels


def write_lines(labels: Mapping[str, str]) -> str:
    return "\n".join(f"{name}={value}" for name, value in labels.items())
