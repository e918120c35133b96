"""Declaration of the subject "requests": see storage.core.registry."""

from datetime import timedelta

from storage.core.subject import Page, Periodic, Place, Section, StyleSheet, Subject
from storage.domain.translation import mark as _

SUBJECT = Subject(
    name="requests",
    stands_on=("metrics", "tables", "access", "history"),
    periodic=(
        Periodic(
            "requests",
            "storage.requests.recording.tidy",
            30.0,
            "The request log could not be tidied",
            deletes=True,
            late_after=timedelta(minutes=10),
        ),
    ),
    pages=(
        Page(
            Place.ACCOUNT,
            100,
            "requests:index",
            _("Requests"),
            "scroll-text",
            section=Section.TRAFFIC,
            letter="R",
        ),
    ),
    api="storage.requests.api",
    style_sheet=StyleSheet.ACCESS,
    urls=("console.requests.urls",),
)
