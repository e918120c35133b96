"""What the subject of the request log contributes: see storage.core.registry."""

from datetime import timedelta

from storage.core.subject import Periodic, Subject

SUBJECT = Subject(
    name="requests",
    periodic=(
        Periodic(
            "requests",
            "storage.operations.requests.recording.tidy",
            30.0,
            "The request log could not be tidied",
            deletes=True,
            late_after=timedelta(minutes=10),
        ),
    ),
)
