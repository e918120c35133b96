"""Declaration of the subject "accounts": see storage.core.registry."""

from datetime import timedelta

from storage.core.notices import Condition, NoticeKind, Severity, Threshold, Unit
from storage.core.subject import Hook, Page, Periodic, Place, Section, StyleSheet, Subject
from storage.core.verbs import Act, Group, Undo, Verb
from storage.domain.access.roles import Capability
from storage.domain.translation import mark as _


class AccountVerb(Verb):
    CREATE = Act("account.create", Group.SETTINGS, "database", _("%(who)s created the account %(account)s"))
    # label, description, color, flags, networks
    CHANGE = Act(
        "account.change",
        Group.SETTINGS,
        "database",
        _("%(who)s changed settings of the account %(account)s"),
        undo=Undo("storage.accounts.undo.undo_account_change", Capability.OWN, changes_catalog=True),
        is_marked=True,
    )
    # frozen at the end of its lifetime
    EXPIRE = Act(
        "account.expire", Group.SETTINGS, "clock", _("%(who)s froze the expired account %(account)s")
    )
    DELETE = Act("account.delete", Group.SETTINGS, "trash-2", _("%(who)s deleted the account %(account)s"))
    KEY_REVEAL = Act("key.reveal", Group.ACCESS, "eye", _("%(who)s revealed %(key)s"))
    KEY_COPY = Act("key.copy", Group.ACCESS, "copy", _("%(who)s copied %(key)s"))
    KEY_ROTATE = Act(
        "key.rotate",
        Group.ACCESS,
        "rotate-ccw-key",
        _("%(who)s rotated %(key)s"),
        is_marked=True,
    )
    # a replaced key is no longer accepted
    KEY_END = Act(
        "key.end",
        Group.ACCESS,
        "key-round",
        _("%(who)s ended the grace period of %(key)s"),
        is_marked=True,
    )
    PROPERTIES_SET = Act(
        "properties.set",
        Group.SETTINGS,
        "sliders-horizontal",
        _("%(who)s changed the service properties"),
        undo=Undo("storage.accounts.undo.undo_properties", Capability.CONFIGURE, changes_catalog=True),
        is_marked=True,
    )


class AccountNotice(NoticeKind):
    KEY_OLD = Condition(
        "key.old",
        _("Key older than its limit"),
        _("%(key)s has not been rotated for %(days)s days."),
        Severity.WARNING,
        "a/{account}/keys/",
        "storage.accounts.conditions.find_old_keys",
        capability=Capability.MANAGE_ACCESS,
        threshold=Threshold(Unit.DAYS, 365, 1, 3650),
    )
    EXPIRING = Condition(
        "account.expiring",
        _("Account expires"),
        _("The account %(account)s expires on %(expires_at)s. It is frozen then, and deleted a day later."),
        Severity.WARNING,
        "a/{account}/overview/",
        "storage.accounts.conditions.find_expiring",
        threshold=Threshold(Unit.DAYS, 1, 1, 90),
    )
    DELETION = Condition(
        "account.deletion",
        _("Account is about to be deleted"),
        _("The account %(account)s has expired. It is deleted on %(deleted_at)s with all its tables."),
        Severity.ERROR,
        "a/{account}/overview/",
        "storage.accounts.conditions.find_expired",
    )


SUBJECT = Subject(
    name="accounts",
    stands_on=("activity", "jobs"),
    api="storage.accounts.api",
    verbs=AccountVerb,
    notices=AccountNotice,
    periodic=(
        Periodic(
            "accounts",
            "storage.accounts.expiry.expire",
            10.0,
            "Expired accounts could not be frozen or deleted",
            deletes=True,
            late_after=timedelta(minutes=10),
        ),
    ),
    hooks={Hook.RESEAL: "storage.accounts.sealed_keys.reseal_accounts"},
    pages=(
        Page(Place.ACCOUNT, 10, "accounts:overview", _("Overview"), "activity", letter="O"),
        Page(
            Place.ACCOUNT,
            50,
            "accounts:keys",
            _("Keys"),
            "key-round",
            Capability.MANAGE_ACCESS,
            Section.ACCESS,
            letter="K",
        ),
        Page(
            Place.ACCOUNT,
            130,
            "accounts:settings",
            _("Account settings"),
            "settings",
            Capability.OWN,
            Section.SETTINGS,
        ),
        Page(
            Place.ACCOUNT,
            140,
            "accounts:service",
            _("Service"),
            "sliders-horizontal",
            section=Section.SETTINGS,
            only_storage=True,
        ),
        Page(
            Place.ACCOUNT_SEARCH,
            60,
            "accounts:key_rotate",
            _("Rotate key1"),
            "rotate-ccw-key",
            Capability.MANAGE_ACCESS,
            arguments=(1,),
        ),
        Page(
            Place.ACCOUNT_SEARCH,
            70,
            "accounts:key_rotate",
            _("Rotate key2"),
            "rotate-ccw-key",
            Capability.MANAGE_ACCESS,
            arguments=(2,),
        ),
        Page(Place.SERVER_SEARCH, 10, "accounts:new", _("New account"), "plus", is_for_admins=True),
    ),
    jobs=("storage.accounts.removal.DELETION_JOB",),
    style_sheet=StyleSheet.ACCESS,
    urls=("console.accounts.urls",),
)
