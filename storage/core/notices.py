"""Kinds of notices that subjects declare: a condition worth a warning, and its texts."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Self

from storage.domain.access.roles import Capability
from storage.domain.translation import mark as _


class Severity(StrEnum):
    """Severity of a notice. The values are stored."""

    INFO = "info"  # nothing is wrong
    WARNING = "warning"  # it needs attention soon
    ERROR = "error"  # something does not work, or will be lost


class Unit(StrEnum):
    """Unit of a threshold. The values are those of the management API, and words of the console."""

    DAYS = _("days")
    PERCENT = _("percent")
    MILLISECONDS = _("milliseconds")


@dataclass(frozen=True, slots=True)
class Threshold:
    """Threshold of a condition, which accounts may change."""

    unit: Unit
    default: float
    least: float
    most: float


@dataclass(frozen=True, slots=True)
class Found:
    """Occurrence of a condition, as of now."""

    account_id: int | None = None
    subject: str = ""
    facts: Mapping[str, object] = field(default_factory=dict)
    news: str = ""  # when it changes, people are told again
    severity: Severity | None = None  # None: the kind's severity
    user_id: int | None = None


@dataclass(frozen=True, slots=True)
class Look:
    """Context of one evaluation: its time, and the thresholds by account."""

    now: datetime
    default: float
    thresholds: Mapping[int | None, float] = field(default_factory=dict)

    def threshold(self, account_id: int | None) -> float:
        return self.thresholds.get(account_id, self.default)

    @property
    def least_threshold(self) -> float:
        return min([self.default, *self.thresholds.values()])

    @property
    def most_threshold(self) -> float:
        return max([self.default, *self.thresholds.values()])


Finder = Callable[[Look], Iterable[Found]]


@dataclass(frozen=True, slots=True)
class Condition:
    """Declaration of a notice kind; ``find`` is the path of a Finder."""

    value: str
    title: str
    text: str
    severity: Severity
    path: str
    find: str
    query: str = ""  # the page's query
    # that its readers need in the account; notices of the server are for admins
    capability: Capability = Capability.READ
    threshold: Threshold | None = None
    calm: timedelta = timedelta()  # how long it must not be found before it is resolved
    is_local: bool = False  # about the machine of the process that looks
    is_of_server: bool = False
    is_personal: bool = False

    @property
    def is_of_accounts(self) -> bool:
        return not self.is_of_server and not self.is_personal


class NoticeKind(StrEnum):
    """Kind of notice; each subject has an enumeration of its own. The values are stored."""

    condition: Condition

    def __new__(cls, condition: Condition) -> Self:
        kind = str.__new__(cls, condition.value)
        kind._value_ = condition.value
        kind.condition = condition
        return kind
