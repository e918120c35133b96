"""Forms of a new table and of a table's notes."""

import re
from typing import Any, Final

from django import forms
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from console.site.forms import MONO, NameRule, include_initial_values
from storage.domain.errors import StorageError
from storage.domain.values.kinds import AccountKind
from storage.domain.values.names import RESERVED_TABLE_NAME, fold_new_table_name
from storage.models import Account, Table
from storage.tables import tables

TAG_LENGTH: Final = 32
TAG_LIMIT: Final = 12

_CHARACTERS = re.compile(r"[A-Za-z][A-Za-z0-9]*")
_NOT_IN_COSMOS = re.compile(r"^\$|[/\\#?]")


def name_rules(account: Account, name: str) -> list[NameRule]:
    """Check a name against each rule; None if it cannot be checked yet."""
    if account.kind == AccountKind.COSMOS:
        return _cosmos_name_rules(account, name)
    folded = name.lower()
    is_known = bool(name)
    owner = tables.find(account, folded) if _is_valid_name(name) else None
    if folded == RESERVED_TABLE_NAME:
        own = NameRule(_("“tables” is a reserved name"), is_kept=False)
    elif owner is not None:
        own = NameRule(
            _("%(name)s already exists (names are case-insensitive)") % {"name": owner.name}, is_kept=False
        )
    else:
        own = NameRule(_("not already used in this account (case-insensitive)"), _is_valid_name(name) or None)
    return [
        NameRule(_("3 to 63 characters"), 3 <= len(name) <= 63 if is_known else None),
        NameRule(
            _("letters A to Z and digits, starting with a letter"),
            bool(_CHARACTERS.fullmatch(name)) if is_known else None,
        ),
        own,
    ]


def _cosmos_name_rules(account: Account, name: str) -> list[NameRule]:
    is_known = bool(name)
    is_free = tables.find(account, name) is None if _is_valid_name(name, AccountKind.COSMOS) else None
    has_only_allowed = not _NOT_IN_COSMOS.search(name) and name.lower() != RESERVED_TABLE_NAME
    return [
        NameRule(_("1 to 254 characters"), len(name) <= 254 if is_known else None),
        NameRule(_("no / \\ # ? and no $ at the start"), has_only_allowed if is_known else None),
        NameRule(_("not already used in this account (case-sensitive)"), is_free),
    ]


def _is_valid_name(name: str, kind: AccountKind = AccountKind.STORAGE) -> bool:
    try:
        fold_new_table_name(name, kind)
    except StorageError:
        return False
    return True


class TagsField(forms.CharField):
    """Field for comma-separated tags, rendered as chips."""

    def __init__(self, **kwargs: Any) -> None:
        attributes = {
            "autocomplete": "off",
            "spellcheck": "false",
            "list": "tags-in-use",
            "data-chips": "",
            "data-remove": gettext_lazy("Remove {}"),
        }
        super().__init__(
            label=gettext_lazy("Tags"),
            help_text=gettext_lazy("Separate tags with commas."),
            required=False,
            max_length=1000,
            widget=forms.TextInput(attrs=attributes),
            **kwargs,
        )

    def prepare_value(self, value: Any) -> Any:
        return ", ".join(value) if isinstance(value, list) else value

    def to_python(self, value: Any) -> list[str]:  # type: ignore[override]
        """Remove duplicates, ignoring letter case."""
        texts = (" ".join(part.split()) for part in str(value or "").split(","))
        return list({text.casefold(): text for text in texts if text}.values())

    def validate(self, value: Any) -> None:
        if any(len(tag) > TAG_LENGTH for tag in value):
            raise forms.ValidationError(_("A tag can have up to %(most)s characters.") % {"most": TAG_LENGTH})
        if len(value) > TAG_LIMIT:
            raise forms.ValidationError(_("A table can have up to %(most)s tags.") % {"most": TAG_LIMIT})

    def run_validators(self, value: Any) -> None:
        super().run_validators(", ".join(value))


class NotesForm(forms.ModelForm):  # type: ignore[type-arg]
    description = forms.CharField(
        label=gettext_lazy("Description"),
        required=False,
        max_length=2000,
        widget=forms.Textarea(attrs={"rows": 3}),
    )
    tags = TagsField()
    throughput = forms.IntegerField(
        label=gettext_lazy("Throughput"),
        required=False,
        min_value=0,
        max_value=1_000_000,
        help_text=gettext_lazy(
            "Request units per second; 0 for no limit. A point read takes one, a write five. Beyond the limit"
            " requests are answered with 429."
        ),
    )

    class Meta:
        model = Table
        fields = ("description", "tags", "throughput")

    def __init__(self, *args: Any, kind: str, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if kind != AccountKind.COSMOS:
            del self.fields["throughput"]
        include_initial_values(self)

    def clean_throughput(self) -> int:
        return self.cleaned_data["throughput"] or 0


class NewTableForm(forms.Form):
    name = forms.CharField(
        label=gettext_lazy("Name"),
        strip=True,
        widget=forms.TextInput(attrs={**MONO, "autofocus": True, "aria-describedby": "name-rules"}),
    )
    description = NotesForm.base_fields["description"]
    tags = NotesForm.base_fields["tags"]

    def __init__(self, *args: Any, account: Account, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.account = account

    @property
    def rules(self) -> list[NameRule]:
        name = self.data.get("name", "") if self.is_bound else ""
        return name_rules(self.account, name.strip())

    def clean_name(self) -> str:
        name: str = self.cleaned_data["name"]
        if not all(rule.is_kept for rule in name_rules(self.account, name)):
            raise forms.ValidationError(_("This name is not available."))
        return name
