"""Declaration of the subject "design": see storage.core.registry."""

from storage.core.subject import HelpEntry, Subject
from storage.domain.translation import mark as _

SUBJECT = Subject(
    name="design",
    stands_on=("entities", "metrics", "tables"),
    is_optional=True,
    documents=("design",),
    help_entries=(
        HelpEntry(
            "design",
            _("Table design"),
            _("Choose keys for the queries: patterns, their costs, and examples."),
            after="bulk-edit",
        ),
    ),
    urls=("console.design.urls",),
)
