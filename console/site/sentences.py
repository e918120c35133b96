"""Translated sentences that explain a refusal."""

from typing import Final

from django.utils.html import conditional_escape, format_html, format_html_join
from django.utils.safestring import SafeString, mark_safe
from django.utils.translation import gettext, ngettext

from storage.inspector.sentences import Details, Sentence

_OURS: Final = {"number", "seconds"}  # not what others have written


def translate(sentence: Sentence) -> SafeString:
    """Fill the placeholders of translated texts with escaped texts."""
    values = Details((name, _draw(name, value)) for name, value in sentence.details.items())
    if "seconds" in values:
        values["seconds"] = describe_duration(int(sentence.details["seconds"]))
    text = mark_safe(conditional_escape(gettext(sentence.text)) % values)  # noqa: S308
    return format_html_join(" ", "{}", ((it,) for it in (text, *map(translate, sentence.more))))


def _draw(name: str, value: str) -> SafeString:
    if name in _OURS:
        return conditional_escape(value)
    if name == "source":  # the address of a page, in a text of ours
        return format_html('<a href="{0}" rel="noreferrer">{0}</a>', value)
    return format_html('<bdi class="mono">{}</bdi>', value)


def describe_duration(seconds: int) -> str:
    minutes = seconds // 60
    if minutes < 2 * 60:
        return ngettext("%(number)s minute", "%(number)s minutes", minutes) % {"number": minutes}
    hours = minutes // 60
    if hours < 2 * 24:
        return ngettext("%(number)s hour", "%(number)s hours", hours) % {"number": hours}
    return ngettext("%(number)s day", "%(number)s days", hours // 24) % {"number": hours // 24}
