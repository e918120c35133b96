"""Declaration of the subject "home": see storage.core.registry."""

from storage.core.subject import Page, Place, Subject
from storage.domain.translation import mark as _

SUBJECT = Subject(
    name="home",
    pages=(Page(Place.SERVER, 10, "home:index", _("Home"), "house", letter="H"),),
    urls=("console.home.urls",),
)
