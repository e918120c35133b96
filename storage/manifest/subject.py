"""Declaration of the subject "manifest": see storage.core.registry."""

from storage.core.subject import Command, CommandGroup, Subject

SUBJECT = Subject(
    name="manifest",
    stands_on=("activity", "accounts", "people", "tables", "notices", "access", "snapshots"),
    is_optional=True,
    commands=(
        Command(
            "apply",
            CommandGroup.PEOPLE,
            "account",
            "Make accounts what a file declares, or show what differs.",
        ),
    ),
    documents=("infrastructure",),
    api="storage.manifest.api",
)
