"""Forms for a snapshot, for the schedule of an account, and for a new branch."""

from datetime import timedelta
from typing import Any, Final

from django import forms
from django.utils import timezone
from django.utils.dates import WEEKDAYS
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from console.site.forms import MONO
from storage.accounts import accounts
from storage.domain.values.names import is_account_name
from storage.models import Account, Snapshot
from storage.snapshots import snapshots
from storage.snapshots.schedule import NAME_LIMIT, Schedule, is_snapshot_name

NOW: Final = ":now"  # no name of a snapshot
_KEPT: Final = (
    ("always", gettext_lazy("Until deleted")),
    ("1", gettext_lazy("1 day")),
    ("7", gettext_lazy("1 week")),
    ("30", gettext_lazy("30 days")),
)
_LIFETIMES: Final = (
    ("8", gettext_lazy("8 hours")),
    ("48", gettext_lazy("2 days")),
    ("168", gettext_lazy("A week")),
    ("720", gettext_lazy("30 days")),
    ("never", gettext_lazy("No expiry")),
)
_EVERY: Final = (
    ("never", gettext_lazy("On request only")),
    ("day", gettext_lazy("Every day")),
    *((str(number), day) for number, day in WEEKDAYS.items()),
)


class SnapshotForm(forms.Form):
    """Form for the name and retention of a snapshot."""

    name = forms.CharField(
        label=gettext_lazy("Name"),
        max_length=NAME_LIMIT,
        widget=forms.TextInput(attrs=MONO),
        help_text=gettext_lazy("Letters, digits, periods, hyphens and underscores."),
    )
    days = forms.ChoiceField(label=gettext_lazy("Keep"), choices=_KEPT)

    def __init__(
        self, *args: Any, account: Account, snapshot: Snapshot | None = None, **options: Any
    ) -> None:
        super().__init__(*args, **options)
        self._account = account
        self._snapshot = snapshot
        if snapshot is not None and snapshot.expires_at is not None:
            choices = [("as-it-is", _("As it is now")), *_KEPT]
            self.fields["days"] = forms.ChoiceField(label=_("Keep"), choices=choices)

    def clean_name(self) -> str:
        name: str = self.cleaned_data["name"]
        if not is_snapshot_name(name):
            raise forms.ValidationError(
                _("Use letters, digits, periods, hyphens and underscores, and begin with a letter or digit.")
            )
        named = snapshots.find(self._account, name)
        if named is not None and named != self._snapshot:
            raise forms.ValidationError(_("A snapshot with this name already exists."))
        return name

    @property
    def changes_expiry(self) -> bool:
        return bool(self.cleaned_data["days"] != "as-it-is")

    @property
    def expires_at(self) -> Any:
        days: str = self.cleaned_data["days"]
        return timezone.now() + timedelta(days=int(days)) if days.isdigit() else None


class ScheduleForm(forms.Form):
    every = forms.ChoiceField(label=gettext_lazy("Take a snapshot"), choices=_EVERY)
    hour = forms.TypedChoiceField(
        label=gettext_lazy("At (UTC)"), coerce=int, choices=[(hour, f"{hour:02}:00") for hour in range(24)]
    )
    keep = forms.IntegerField(label=gettext_lazy("Keep the last"), min_value=1, max_value=366)

    @staticmethod
    def initial_of(found: Schedule | None) -> dict[str, Any]:
        if found is None:
            return {"every": "never", "hour": 3, "keep": 7}
        every = "day" if found.weekday is None else str(found.weekday)
        return {"every": every, "hour": found.hour, "keep": found.keep}

    def schedule(self) -> Schedule | None:
        data = self.cleaned_data
        if data["every"] == "never":
            return None
        weekday = None if data["every"] == "day" else int(data["every"])
        return Schedule(data["hour"], weekday, data["keep"])


class BranchForm(forms.Form):
    """Form of a new branch; its tables and masking rules are fields of the page itself."""

    name = forms.CharField(
        label=gettext_lazy("Name"),
        max_length=64,
        widget=forms.TextInput(attrs=MONO),
        help_text=gettext_lazy("3 to 24 lowercase letters and digits. You cannot change it later."),
    )
    snapshot = forms.ChoiceField(label=gettext_lazy("Source"))
    hours = forms.ChoiceField(
        label=gettext_lazy("Lifetime"),
        choices=_LIFETIMES,
        initial="48",
        help_text=gettext_lazy("It then rejects requests and is deleted a day later."),
    )
    policies = forms.BooleanField(label=gettext_lazy("Copy access policies"), required=False, initial=True)
    settings = forms.BooleanField(label=gettext_lazy("Copy service properties"), required=False, initial=True)

    def __init__(self, *args: Any, account: Account, **options: Any) -> None:
        super().__init__(*args, **options)
        choices = [(NOW, _("Current data")), *((it.name, it.name) for it in snapshots.listed(account))]
        self.fields["snapshot"] = forms.ChoiceField(label=_("Source"), choices=choices)
        self.order_fields(["name", "snapshot", "hours", "policies", "settings"])

    def clean_name(self) -> str:
        name: str = self.cleaned_data["name"]
        if not is_account_name(name):
            raise forms.ValidationError(_("Use 3 to 24 lowercase letters and digits."))
        if accounts.exists(name):
            raise forms.ValidationError(_("This name is not available."))
        return name

    @property
    def expires_at(self) -> Any:
        hours: str = self.cleaned_data["hours"]
        return timezone.now() + timedelta(hours=int(hours)) if hours.isdigit() else None
