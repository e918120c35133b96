"""Declaration of the subject "snapshots": see storage.core.registry."""

from datetime import timedelta

from storage.core.notices import Condition, NoticeKind, Severity, Threshold, Unit
from storage.core.subject import Page, Periodic, Place, Section, StyleSheet, Subject
from storage.core.verbs import Act, Group, Undo, Verb
from storage.domain.access.roles import Capability
from storage.domain.translation import mark as _


class SnapshotVerb(Verb):
    TAKE = Act(
        "snapshot.take", Group.SNAPSHOTS, "camera", _("%(who)s took the snapshot %(snapshot)s of %(account)s")
    )
    # name, expiry
    CHANGE = Act(
        "snapshot.change",
        Group.SNAPSHOTS,
        "camera",
        _("%(who)s changed the snapshot %(snapshot)s of %(account)s"),
    )
    DELETE = Act(
        "snapshot.delete",
        Group.SNAPSHOTS,
        "trash-2",
        _("%(who)s deleted the snapshot %(snapshot)s of %(account)s"),
    )
    SCHEDULE = Act(
        "snapshot.schedule",
        Group.SNAPSHOTS,
        "calendar",
        _("%(who)s changed the schedule of snapshots of %(account)s"),
    )
    RESTORE = Act(
        "snapshot.restore",
        Group.SNAPSHOTS,
        "rotate-ccw",
        _("%(who)s restored the snapshot %(snapshot)s of %(account)s"),
        undone=_("Restored the state before it."),
        undo=Undo(
            request="storage.branches.undo.request_restore",
            capability=Capability.MANAGE_TABLES,
            changes_catalog=True,
        ),
        is_marked=True,
    )
    BRANCH_CREATE = Act(
        "branch.create",
        Group.SNAPSHOTS,
        "git-branch",
        _("%(who)s created branch %(branch)s from %(account)s"),
    )


class SnapshotNotice(NoticeKind):
    QUOTA = Condition(
        "quota.snapshots",
        _("Snapshots near quota"),
        _("The account %(account)s has %(used)s of %(most)s snapshots."),
        Severity.WARNING,
        "a/{account}/snapshots/",
        "storage.snapshots.conditions.find_quota",
        threshold=Threshold(Unit.PERCENT, 90, 1, 100),
    )


SUBJECT = Subject(
    name="snapshots",
    stands_on=("activity", "accounts", "access", "history"),
    api="storage.snapshots.api",
    verbs=SnapshotVerb,
    notices=SnapshotNotice,
    periodic=(
        Periodic(
            "snapshots",
            "storage.snapshots.snapshots.tidy",
            60.0,
            "Snapshots could not be taken or deleted",
            deletes=True,
            late_after=timedelta(minutes=20),
        ),
    ),
    pages=(
        Page(
            Place.ACCOUNT,
            80,
            "snapshots:index",
            _("Snapshots"),
            "camera",
            section=Section.HISTORY,
            letter="S",
        ),
        Page(
            Place.ACCOUNT_SEARCH, 40, "snapshots:new", _("Take snapshot"), "camera", Capability.MANAGE_TABLES
        ),
        Page(
            Place.ACCOUNT_SEARCH,
            50,
            "snapshots:new_branch",
            _("New branch"),
            "git-branch",
            Capability.GRANT,
        ),
    ),
    style_sheet=StyleSheet.ACCESS,
    urls=("console.snapshots.urls",),
)
