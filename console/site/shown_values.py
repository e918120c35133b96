"""Forms that know what they showed, so that what somebody left alone does not undo what others changed since."""

from typing import Any

from django.forms import BaseForm


def keep_seen(form: BaseForm) -> None:
    """Have each field send along what it was when the page was drawn."""
    for field in form.fields.values():
        field.show_hidden_initial = True


def meant(form: BaseForm) -> dict[str, Any]:
    """What a valid form holds, without what is as it was shown."""
    changed = set(form.changed_data)
    sent = {name for name in form.fields if form[name].html_initial_name in form.data}
    return {name: value for name, value in form.cleaned_data.items() if name in changed or name not in sent}
