"""The settings of an account as the console shows them: their names and texts, and the sections of their page."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from django.utils.translation import gettext_lazy as _

if TYPE_CHECKING:
    from django.utils.functional import _StrPromise as LazyText


@dataclass(frozen=True, slots=True)
class SettingText:
    """``name``: what the activity log calls it, if not by its label."""

    label: "LazyText"
    help: "LazyText | str" = ""
    name: "LazyText | None" = None


TEXTS: Final[Mapping[str, SettingText]] = {
    "label": SettingText(_("Label"), _("Shown next to the name, e.g. “Test” or “Shop, production”.")),
    "description": SettingText(_("Description")),
    "colour": SettingText(
        _("Color"), _("Shown as a band on every page of the account, so you can tell accounts apart.")
    ),
    "labels": SettingText(_("Labels"), _("Key=value labels for scripts, one per line, e.g. branch=main")),
    "expires_at": SettingText(_("Expires")),
    "protected": SettingText(
        _("Protected"), _("The account cannot be deleted, and deleting a table requires typing its name.")
    ),
    "read_only": SettingText(
        _("Read-only"),
        _(
            "Rejects every write, in the console and from applications (403 InsufficientAccountPermissions):"
            " creating and deleting tables, and changing entities, access policies and service properties."
        ),
    ),
    "adaptive_indexes": SettingText(
        _("Adaptive indexes"),
        _(
            "The server adds an index to a property when queries by its range scan large tables again and again,"
            " and drops it after four weeks without use. The activity log lists each one."
        ),
    ),
    "distributes": SettingText(
        _("Distribute new tables"),
        _(
            "Distributes new tables over the nodes of the cluster. To distribute an existing table, open its Settings"
            " page, which lists the costs and limitations."
        ),
    ),
    "history_days": SettingText(
        _("Days to keep"),
        _(
            "All changes are recorded so you can review and undo them. Enter 0 to turn history off and delete it."
        ),
    ),
    "history_bytes": SettingText(
        _("Limit in MB"), _("The oldest changes are deleted first. Leave blank for automatic.")
    ),
    "consistency": SettingText(_("Level"), name=_("Consistency")),
    "max_staleness": SettingText(_("Bound in seconds"), _("Applies to Bounded staleness.")),
    "enabled": SettingText(
        _("Enabled"), _("A disabled account rejects all requests from applications. No data is lost.")
    ),
    "shared_key_access": SettingText(
        _("Allow storage account key access"),
        _(
            "Includes SAS tokens, which are signed with a key. If turned off, only bearer tokens are accepted."
        ),
        name=_("Shared key access"),
    ),
    "networks": SettingText(
        _("Allowed IP addresses"),
        _(
            "IP addresses or ranges that may connect, one per line, e.g. 192.0.2.1 or 192.0.2.0/24."
            " Leave empty to allow all."
        ),
        name=_("Networks"),
    ),
    "snapshot_limit": SettingText(_("Snapshots"), name=_("Quota of snapshots")),
    "saved_query_limit": SettingText(_("Saved queries"), name=_("Quota of saved queries")),
    "sas_limit": SettingText(_("SAS tokens"), name=_("Quota of SAS tokens")),
}
NAMES: Final["Mapping[str, LazyText]"] = {name: text.name or text.label for name, text in TEXTS.items()}


@dataclass(frozen=True, slots=True)
class Section:
    """A part of the page of settings; ``template`` shows it if it is more than its fields."""

    title: "LazyText"
    settings: tuple[str, ...]
    template: str = "components/form.html"


SECTIONS: Final[Mapping[str, Section]] = {
    "description": Section(
        _("General"),
        ("label", "colour", "description", "labels"),
        "console/accounts/settings/_description.html",
    ),
    # with fields of its own
    "lifetime": Section(_("Expiration"), (), "console/accounts/settings/_lifetime.html"),
    "history": Section(
        _("History"),
        ("history_days", "history_bytes"),
        "console/accounts/settings/_history.html",
    ),
    "consistency": Section(
        _("Consistency"),
        ("consistency", "max_staleness"),
        "console/accounts/settings/_consistency.html",
    ),
    "indexes": Section(_("Indexes"), ("adaptive_indexes",)),
    "cluster": Section(_("Cluster"), ("distributes",), "console/accounts/settings/_cluster.html"),
    "quotas": Section(
        _("Quotas"),
        ("snapshot_limit", "saved_query_limit", "sas_limit"),
        "console/accounts/settings/_quotas.html",
    ),
    "guard": Section(_("Protection"), ("protected", "read_only")),
    "access": Section(_("Network access"), ("enabled", "shared_key_access", "networks")),
}
