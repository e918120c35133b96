"""Declaration of the subject "access": see storage.core.registry."""

from storage.core.notices import Condition, NoticeKind, Severity, Threshold, Unit
from storage.core.subject import Hook, Page, Place, Section, StyleSheet, Subject
from storage.core.verbs import Act, Group, Undo, Verb
from storage.domain.access.roles import Capability
from storage.domain.translation import mark as _


class AccessVerb(Verb):
    POLICIES_SET = Act(
        "policies.set",
        Group.ACCESS,
        "shield",
        _("%(who)s changed the access policies of %(table)s"),
        undo=Undo("storage.access.undo.undo_policies", Capability.MANAGE_ACCESS, changes_catalog=True),
        is_marked=True,
    )
    SAS_ISSUE = Act("sas.issue", Group.ACCESS, "ticket", _("%(who)s created the SAS token %(sas)s"))
    # label, purpose, owner
    SAS_CHANGE = Act(
        "sas.change",
        Group.ACCESS,
        "ticket",
        _("%(who)s changed the notes for the SAS token %(sas)s"),
        undo=Undo("storage.access.undo.undo_description", Capability.MANAGE_ACCESS),
    )
    SAS_BLOCK = Act(
        "sas.block",
        Group.ACCESS,
        "ban",
        _("%(who)s blocked the SAS token %(sas)s"),
        undo=Undo("storage.access.undo.undo_block", Capability.MANAGE_ACCESS, changes_catalog=True),
        is_marked=True,
    )
    SAS_UNBLOCK = Act(
        "sas.unblock",
        Group.ACCESS,
        "ticket",
        _("%(who)s unblocked the SAS token %(sas)s"),
        undo=Undo("storage.access.undo.undo_block", Capability.MANAGE_ACCESS, changes_catalog=True),
        is_marked=True,
    )


class AccessNotice(NoticeKind):
    SAS_EXPIRING = Condition(
        "sas.expiring",
        _("SAS token expires"),
        _("The SAS token “%(label)s” expires on %(expires_at)s."),
        Severity.WARNING,
        "a/{account}/sas/{subject}/",
        "storage.access.conditions.find_expiring_sas",
        capability=Capability.MANAGE_ACCESS,
    )
    SAS_QUOTA = Condition(
        "quota.sas",
        _("SAS tokens near quota"),
        _("The account %(account)s has %(used)s of %(most)s SAS tokens."),
        Severity.WARNING,
        "a/{account}/sas/",
        "storage.access.conditions.find_quota",
        capability=Capability.MANAGE_ACCESS,
        threshold=Threshold(Unit.PERCENT, 90, 1, 100),
    )


SUBJECT = Subject(
    name="access",
    stands_on=("activity", "accounts", "metrics", "tables"),
    api="storage.access.api",
    verbs=AccessVerb,
    notices=AccessNotice,
    tidying={"keys": "storage.access.retired_keys.tidy"},
    hooks={Hook.RESEAL: "storage.access.retired_keys.reseal"},
    pages=(
        Page(
            Place.ACCOUNT,
            40,
            "sas:index",
            _("Policies & SAS"),
            "ticket",
            Capability.MANAGE_ACCESS,
            Section.ACCESS,
            letter="P",
        ),
        Page(Place.SERVER, 40, "sas:inspector", _("Inspector"), "scroll-text"),
        Page(Place.TABLE, 50, "policies:show", _("Policies"), "shield", only_storage=True),
    ),
    style_sheet=StyleSheet.ACCESS,
    urls=("console.access.policies.urls", "console.access.sas.urls"),
)
