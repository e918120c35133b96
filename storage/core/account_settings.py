"""The settings of an account, each declared once: see storage.core.setting for the parts of a declaration.

Forms, the management API, the command `account`, manifests, exports and the activity log are made of them. To add
one: its column in storage.models with a migration, and its declaration here or in ``Subject.account_settings``.
"""

from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Final

from storage.core import registry
from storage.core.quotas import (
    SAS,
    SAVED_QUERIES,
    SNAPSHOTS,
    Quota,
)
from storage.core.setting import Setting as Setting
from storage.core.setting import Switch as Switch
from storage.domain.refusals import Reason
from storage.domain.requests.consistency import STALENESS_LIMIT, Consistency
from storage.domain.requests.strictness import Strictness
from storage.domain.translation import mark as _

HISTORY_DAYS_LIMIT: Final = 366
LEAST_HISTORY: Final = 16 << 20  # bytes
MOST_HISTORY: Final = 1 << 50  # bytes; the column has room for more


# label, and what the activity log calls it
_QUOTA_TEXTS: Final = {
    SNAPSHOTS: (_("Snapshots"), _("Quota of snapshots")),
    SAVED_QUERIES: (_("Saved queries"), _("Quota of saved queries")),
    SAS: (_("SAS tokens"), _("Quota of SAS tokens")),
}


def _quota_setting(quota: Quota) -> Setting:
    text = f"A quota of the account, if it is lower than that of the server, `TABLERO_{quota.option}`; null: that one."
    label, logged_as = _QUOTA_TEXTS[quota]
    return Setting(
        quota.setting,
        int,
        text,
        least=0,
        most=quota.most,
        is_nullable=True,
        label=label,
        logged_as=logged_as,
        section="quotas",
    )


_ALL: Final = (
    Setting(
        "label",
        str,
        "Shown beside the name in the console.",
        most=64,
        label=_("Label"),
        explanation=_("Shown next to the name, e.g. “Test” or “Shop, production”."),
        section="description",
    ),
    Setting(
        "colour",
        str,
        "`#rrggbb`, shown as a band on the pages of the account; empty for none.",
        most=7,
        label=_("Color"),
        explanation=_("Shown as a band on every page of the account, so you can tell accounts apart."),
        section="description",
    ),
    Setting(
        "description",
        str,
        most=2000,
        label=_("Description"),
        section="description",
    ),
    Setting(
        "labels",
        dict,
        "Up to 32 labels to find accounts by. A name consists of letters, digits and `. _ / -`.",
        label=_("Labels"),
        explanation=_("Key=value labels for scripts, one per line, e.g. branch=main"),
        section="description",
    ),
    Setting(
        "expires_at",
        datetime,
        "When the account is frozen: the end of its lifetime, which `ttl` sets from now. null: it does not expire.",
        is_nullable=True,
        is_in_catalog=True,
        label=_("Expires"),
        is_in_files=False,
    ),
    Setting(
        "protected",
        bool,
        "The account cannot be deleted, not even after its lifetime.",
        label=_("Protected"),
        explanation=_("The account cannot be deleted, and deleting a table requires typing its name."),
        section="guard",
        switch=Switch(
            "protected",
            "prevent an account from being removed (on) or allow it (off)",
            "{name} is protected.",
            "{name} is no longer protected.",
            shown_on="protected",
        ),
    ),
    Setting(
        "read_only",
        bool,
        "Writes through any interface are refused.",
        is_in_catalog=True,
        label=_("Read-only"),
        explanation=_(
            "Rejects every write, in the console and from applications (403 "
            "InsufficientAccountPermissions): creating and deleting tables, and changing entities, access "
            "policies and service properties."
        ),
        section="guard",
        switch=Switch(
            "read-only",
            "refuse all writes to an account (on) or allow them (off)",
            "{name} is read-only.",
            "{name} accepts writes.",
            shown_on="read-only",
        ),
    ),
    Setting(
        "adaptive_indexes",
        bool,
        "The server adds indexes of properties whose ranges are queried, and drops unused ones.",
        label=_("Adaptive indexes"),
        explanation=_(
            "The server adds an index to a property when queries by its range scan large tables again and "
            "again, and drops it after four weeks without use. The activity log lists each one."
        ),
        section="indexes",
        switch=Switch(
            "adaptive-indexes",
            "add indexes of properties whose ranges are queried and drop unused ones (on), or not",
            "{name} has adaptive indexes.",
            "{name} has no adaptive indexes.",
        ),
    ),
    Setting(
        "history_days",
        int,
        "How long changes of entities are kept; 0 turns history off and deletes it.",
        least=0,
        most=HISTORY_DAYS_LIMIT,
        is_in_catalog=True,
        refusal=Reason.HISTORY_DAYS.of(most=HISTORY_DAYS_LIMIT),
        label=_("Days to keep"),
        explanation=_(
            "All changes are recorded so you can review and undo them. Enter 0 to turn history off and "
            "delete it."
        ),
        section="history",
    ),
    Setting(
        "history_bytes",
        int,
        "What they may take on disk; null: a share of it.",
        least=LEAST_HISTORY,
        most=MOST_HISTORY,
        unit=1 << 20,
        is_nullable=True,
        refusal=Reason.HISTORY_BYTES.of(least=LEAST_HISTORY >> 20, most=MOST_HISTORY >> 20),
        label=_("Limit in MB"),
        explanation=_("The oldest changes are deleted first. Leave blank for automatic."),
        section="history",
    ),
    Setting(
        "consistency",
        str,
        "Level of consistency of reads that do not ask for less: see the page *Consistency*.",
        choices=tuple(level.value for level in Consistency),
        is_in_catalog=True,
        refusal=Reason.UNKNOWN_CONSISTENCY.of(levels=", ".join(Consistency)),
        label=_("Level"),
        logged_as=_("Consistency"),
        section="consistency",
    ),
    Setting(
        "max_staleness",
        int,
        "Seconds by which reads may be behind at the level `BoundedStaleness`.",
        least=1,
        most=STALENESS_LIMIT,
        is_in_catalog=True,
        refusal=Reason.STALENESS.of(most=STALENESS_LIMIT),
        label=_("Bound in seconds"),
        explanation=_("Applies to Bounded staleness."),
        section="consistency",
    ),
    Setting(
        "strictness",
        str,
        "`azure`: requests are refused that Azure is known to refuse; `friendly`: they are served, and the request log"
        " notes the rule. Without effect in accounts compatible with Cosmos DB.",
        choices=tuple(Strictness),
        is_in_catalog=True,
        refusal=Reason.UNKNOWN_STRICTNESS.of(values=", ".join(Strictness)),
        label=_("Strictness"),
        explanation=_("Takes effect on the next request."),
        section="strictness",
    ),
    Setting(
        "enabled",
        bool,
        is_in_catalog=True,
        label=_("Enabled"),
        explanation=_("A disabled account rejects all requests from applications. No data is lost."),
        section="access",
    ),
    Setting(
        "shared_key_access",
        bool,
        "Requests signed with an account key, and tokens signed with one, are accepted.",
        is_in_catalog=True,
        label=_("Allow storage account key access"),
        explanation=_(
            "Includes SAS tokens, which are signed with a key. If turned off, only bearer tokens are "
            "accepted."
        ),
        logged_as=_("Shared key access"),
        section="access",
        switch=Switch(
            "shared-key",
            "accept account keys and tokens signed with them (on), or only bearer tokens (off)",
            "{name} accepts its keys.",
            "{name} accepts only bearer tokens.",
            shown_off="no keys",
        ),
    ),
    Setting(
        "networks",
        list,
        "IP addresses and networks that may send requests; empty: all.",
        most=100,
        is_in_catalog=True,
        label=_("Allowed IP addresses"),
        explanation=_(
            "IP addresses or ranges that may connect, one per line, e.g. 192.0.2.1 or 192.0.2.0/24. Leave "
            "empty to allow all."
        ),
        logged_as=_("Networks"),
        section="access",
    ),
    *map(_quota_setting, _QUOTA_TEXTS),
)


def _with_those_of_subjects() -> Iterator[Setting]:
    """Yield all settings, with the settings of subjects inserted after the one they name."""
    declared = [setting for subject in registry.subjects() for setting in subject.account_settings]
    for own in _ALL:
        yield own
        yield from (setting for setting in declared if setting.after == own.name)


SETTINGS: Final[Mapping[str, Setting]] = {setting.name: setting for setting in _with_those_of_subjects()}
