"""Declaration of the subject "help": see storage.core.registry."""

from storage.core.subject import Page, Place, Section, StyleSheet, Subject
from storage.domain.translation import mark as _

SUBJECT = Subject(
    name="help",
    pages=(
        Page(Place.SERVER, 90, "help:index", _("Documentation"), "book-open", section=Section.HELP),
        Page(Place.SERVER, 100, "help:about", _("About"), "info", section=Section.HELP),
        Page(Place.SERVER_SEARCH, 70, "help:api", _("Management API"), "code"),
        Page(Place.SERVER_SEARCH, 80, "help:shortcuts", _("Keyboard shortcuts"), "keyboard"),
        Page(Place.SERVER_SEARCH, 90, "help:limits", _("Service limits"), "book-open"),
    ),
    style_sheet=StyleSheet.ACCESS,
    urls=("console.help.urls",),
)
