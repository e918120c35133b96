"""The settings of an account: what each accepts and means. Forms, the management API and commands are made of them."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from storage.domain.access.addresses import read_network
from storage.domain.refusals import Reason, Refusal, Refused
from storage.domain.service.consistency import STALENESS_LIMIT, Consistency
from storage.domain.service.labels import check_labels
from storage.domain.service.quotas import QUOTAS, Quota

HISTORY_DAYS_LIMIT: Final = 366
LEAST_HISTORY: Final = 16 << 20  # bytes


@dataclass(frozen=True, slots=True)
class Setting:
    """A setting by the name of its column.

    ``least`` and ``most`` bound a number, and ``most`` the length of a text or list; people enter a number in ``unit``.
    ``refusal`` is for numbers and choices that doors may let through. ``is_in_catalog``: processes cache it.
    """

    name: str
    type: type
    help: str = ""
    least: int | None = None
    most: int | None = None
    unit: int = 1
    choices: tuple[str, ...] = ()
    is_nullable: bool = False
    is_in_catalog: bool = False
    refusal: Refusal | None = None

    def check(self, value: Any) -> None:
        """Raise Refused for a value that is not accepted."""
        match value:
            case None if self.is_nullable:
                return
            case Mapping():
                check_labels(value)
            case list():
                for text in value:
                    if read_network(text) is None:
                        raise Refused(Reason.NETWORK_MALFORMED, text=text)
            case _ if self.refusal is not None and not self._includes(value):
                raise Refused(self.refusal)

    def _includes(self, value: Any) -> bool:
        if self.choices:
            return value in self.choices
        return (self.least is None or value >= self.least) and (self.most is None or value <= self.most)


def _quota_setting(quota: Quota) -> Setting:
    text = f"A quota of the account, if it is lower than that of the server, `TABLERO_{quota.option}`; null: that one."
    return Setting(quota.setting, int, text, least=0, most=quota.most, is_nullable=True)


_ALL: Final = (
    Setting("label", str, "Shown beside the name in the console.", most=64),
    Setting("description", str, most=2000),
    Setting("colour", str, "`#rrggbb`, shown as a band on the pages of the account; empty for none.", most=7),
    Setting(
        "labels",
        dict,
        "Up to 32 labels to find accounts by. A name consists of letters, digits and `. _ / -`.",
    ),
    Setting(
        "expires_at",
        datetime,
        "When the account is frozen: the end of its lifetime, which `ttl` sets from now. null: it does not expire.",
        is_nullable=True,
        is_in_catalog=True,
    ),
    Setting("protected", bool, "The account cannot be deleted, not even after its lifetime."),
    Setting("read_only", bool, "Writes through any interface are refused.", is_in_catalog=True),
    Setting(
        "adaptive_indexes",
        bool,
        "The server adds indexes of properties whose ranges are queried, and drops unused ones.",
    ),
    Setting(
        "distributes",
        bool,
        "New tables are distributed over the nodes of the Citus cluster; 409 if there is none.",
    ),
    Setting(
        "history_days",
        int,
        "How long changes of entities are kept; 0 turns history off and deletes it.",
        least=0,
        most=HISTORY_DAYS_LIMIT,
        is_in_catalog=True,
        refusal=Reason.HISTORY_DAYS.of(most=HISTORY_DAYS_LIMIT),
    ),
    Setting(
        "history_bytes",
        int,
        "What they may take on disk; null: a share of it.",
        least=LEAST_HISTORY,
        unit=1 << 20,
        is_nullable=True,
        refusal=Reason.HISTORY_BYTES.of(least=LEAST_HISTORY >> 20),
    ),
    Setting(
        "consistency",
        str,
        "Level of consistency of reads that do not ask for less: see the page *Consistency*.",
        choices=tuple(level.value for level in Consistency),
        is_in_catalog=True,
        refusal=Reason.UNKNOWN_CONSISTENCY.of(levels=", ".join(Consistency)),
    ),
    Setting(
        "max_staleness",
        int,
        "Seconds by which reads may be behind at the level `BoundedStaleness`.",
        least=1,
        most=STALENESS_LIMIT,
        is_in_catalog=True,
        refusal=Reason.STALENESS.of(most=STALENESS_LIMIT),
    ),
    Setting("enabled", bool, is_in_catalog=True),
    Setting(
        "shared_key_access",
        bool,
        "Requests signed with an account key, and tokens signed with one, are accepted.",
        is_in_catalog=True,
    ),
    Setting(
        "networks",
        list,
        "IP addresses and networks that may send requests; empty: all.",
        most=100,
        is_in_catalog=True,
    ),
    *(_quota_setting(quota) for quota in QUOTAS if quota.has_setting),
)
SETTINGS: Final[Mapping[str, Setting]] = {setting.name: setting for setting in _ALL}
