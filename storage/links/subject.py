"""Declaration of the subject "links": see storage.core.registry."""

from storage.core.subject import Key, Part, Slot, StyleSheet, Subject
from storage.domain.translation import mark as _

SUBJECT = Subject(
    name="links",
    stands_on=("accounts",),
    is_optional=True,
    tidying={"links": "storage.links.links.tidy"},
    parts=(Part(Slot.TABLE_HEAD, 20, "console/links/_copy.html"),),
    keys=(Key("link.copy", "Alt+L", _("Copy a short link to this page"), "EVERYWHERE", 2, "link"),),
    documents=("collaboration",),
    style_sheet=StyleSheet.DATA,
    scripts={"main.js": "links/links.js"},
    urls=("console.links.urls",),
)
