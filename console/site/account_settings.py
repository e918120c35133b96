"""Account settings in the console: labels, and the sections of the page."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from django.utils.translation import gettext_lazy as _

from storage.core import registry
from storage.core.account_settings import SETTINGS

if TYPE_CHECKING:
    from django.utils.functional import _StrPromise as LazyText


LABELS: Final["Mapping[str, LazyText]"] = {name: _(setting.label) for name, setting in SETTINGS.items()}
# names of the settings in the activity log
NAMES: Final["Mapping[str, LazyText]"] = {
    name: _(setting.logged_as or setting.label) for name, setting in SETTINGS.items()
}


@dataclass(frozen=True, slots=True)
class Section:
    """Section of the settings page; fields come from the settings that name it, or from its own form."""

    name: str
    title: "LazyText"
    own_template: str = "components/form.html"  # that shows it, if it is more than its fields

    @property
    def template(self) -> str:
        """Return the template of the section: the subject's, or the default."""
        declared = registry.account_sections().get(self.name)
        return self.own_template if declared is None else declared.template

    @property
    def settings(self) -> tuple[str, ...]:
        return tuple(setting.name for setting in SETTINGS.values() if setting.section == self.name)


SECTIONS: Final[Mapping[str, Section]] = {
    section.name: section
    for section in (
        Section("description", _("General"), "console/accounts/settings/_description.html"),
        Section("lifetime", _("Expiration"), "console/accounts/settings/_lifetime.html"),
        Section("history", _("History"), "console/accounts/settings/_history.html"),
        Section("consistency", _("Consistency")),
        Section("strictness", _("Strictness"), "console/accounts/settings/_strictness.html"),
        Section("indexes", _("Indexes")),
        Section("cluster", _("Cluster")),
        Section("quotas", _("Quotas"), "console/accounts/settings/_quotas.html"),
        Section("guard", _("Protection")),
        Section("access", _("Network access")),
    )
}
