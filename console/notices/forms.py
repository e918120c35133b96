"""Forms of notices: an account's rules, a webhook, and a user's e-mail address."""

from collections.abc import Iterable, Sequence
from typing import Any, Final

from django import forms
from django.utils.functional import Promise
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from console.notices.presentation import title_of
from console.site.forms import changed_values, include_initial_values
from storage.core.notices import NoticeKind
from storage.models import Account, Webhook
from storage.notices import webhooks
from storage.notices.formats import WebhookFormat
from storage.notices.rules import Rule
from storage.notices.webhooks import WebhookFields

_DIGITS: Final = 8
FORMATS: Final[Sequence[tuple[str, str | Promise]]] = (
    (WebhookFormat.JSON, _("Tablero (signed JSON)")),
    (WebhookFormat.SLACK, "Slack"),
    (WebhookFormat.TEAMS, "Microsoft Teams"),
)


class RulesForm(forms.Form):
    """Form of notice rules: a switch for each kind, and its threshold if any."""

    def __init__(self, *args: Any, rules: Sequence[Rule], **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._rules = rules
        for rule in rules:
            title, bounds = title_of(rule.kind), rule.kind.condition.threshold
            self.fields[rule.kind] = forms.BooleanField(label=title, required=False, initial=rule.is_on)
            if bounds is not None:
                self.fields[_threshold(rule.kind)] = forms.FloatField(
                    label=_("Threshold of “%(title)s”") % {"title": title},
                    required=False,
                    initial=f"{rule.threshold:g}",
                    min_value=bounds.least,
                    max_value=bounds.most,
                    widget=forms.NumberInput(attrs={"placeholder": f"{bounds.default:g}"}),
                )
        include_initial_values(self)

    @property
    def has_thresholds(self) -> bool:
        return any(rule.kind.condition.threshold is not None for rule in self._rules)

    @property
    def rows(self) -> Iterable[dict[str, Any]]:
        """Return the rows of the table: switch, threshold and unit."""
        for rule in self._rules:
            bounds = rule.kind.condition.threshold
            yield {
                "title": title_of(rule.kind),
                "switch": self[rule.kind],
                "threshold": None if bounds is None else self[_threshold(rule.kind)],
                "unit": "" if bounds is None else gettext(bounds.unit),
            }

    def wanted(self) -> Iterable[tuple[NoticeKind, bool, float | None]]:
        """Yield each kind with the values that were changed, and else those it has."""
        changed = changed_values(self)
        for rule in self._rules:
            threshold = changed.get(_threshold(rule.kind), rule.threshold)
            yield rule.kind, changed.get(rule.kind, rule.is_on), threshold


def _threshold(kind: NoticeKind) -> str:
    return f"{kind}-threshold"


class WebhookForm(forms.Form):
    name = forms.CharField(
        label=_("Name"), max_length=64, widget=forms.TextInput(attrs={"autocomplete": "off"})
    )
    url = forms.CharField(
        label=_("URL"),
        max_length=2000,
        help_text=_(
            "Begins with https://. Hosts in private networks are refused unless the server allows them."
        ),
        widget=forms.URLInput(attrs={"autocomplete": "off", "placeholder": "https://"}),
    )
    format = forms.ChoiceField(
        label=_("Format"),
        required=False,
        choices=[("", _("By the host of the URL")), *FORMATS],
        help_text=_("Slack and Teams show the messages as they are, without a program in between."),
    )
    kinds = forms.MultipleChoiceField(
        label=_("Notices"),
        required=False,
        help_text=_("Select none to send all."),
        widget=forms.CheckboxSelectMultiple,
    )
    enabled = forms.BooleanField(label=_("On"), required=False, initial=True)

    def __init__(
        self, *args: Any, account: Account | None, webhook: Webhook | None = None, **kwargs: Any
    ) -> None:
        if webhook is not None:
            names = ("name", "url", "format", "kinds", "enabled")
            kwargs["initial"] = {name: getattr(webhook, name) for name in names}
        super().__init__(*args, **kwargs)
        kinds = [(kind, title_of(kind)) for kind in webhooks.kinds_for(account)]
        self.fields["kinds"].choices = kinds  # type: ignore[attr-defined]
        if webhook is not None:
            include_initial_values(self)

    def wanted(self) -> WebhookFields:
        """Return the values that were changed, and else those of the webhook."""
        return WebhookFields(**{**self.initial, **changed_values(self)})


class AddressForm(forms.Form):
    address = forms.EmailField(
        label=_("E-mail address"),
        max_length=254,
        help_text=_("You get a code at this address, and enter it here."),
        widget=forms.EmailInput(attrs={"autocomplete": "email"}),
    )


class CodeForm(forms.Form):
    code = forms.CharField(
        label=_("Code"),
        max_length=_DIGITS + 8,
        help_text=_("It is valid for an hour."),
        widget=forms.TextInput(attrs={"autocomplete": "one-time-code", "inputmode": "numeric"}),
    )
