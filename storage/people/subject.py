"""Declaration of the subject "people": see storage.core.registry."""

from storage.core.notices import Condition, NoticeKind, Severity
from storage.core.subject import Hook, Page, Place, Section, Subject
from storage.core.verbs import Act, Group, Undo, Verb
from storage.domain.access.roles import Capability
from storage.domain.translation import mark as _


class PeopleVerb(Verb):
    SIGN_IN = Act("user.sign-in", Group.PEOPLE, "log-in", _("%(who)s signed in"))
    SIGN_OUT = Act("user.sign-out", Group.PEOPLE, "log-out", _("%(who)s signed out"))
    SIGN_IN_FAILED = Act(
        "user.sign-in-failed", Group.PEOPLE, "shield-alert", _("Someone failed to sign in as %(who)s")
    )
    USER_INVITE = Act("user.invite", Group.PEOPLE, "mail-plus", _("%(who)s invited someone"))
    USER_CREATE = Act("user.create", Group.PEOPLE, "user-plus", _("%(who)s created the user %(user)s"))
    # only an admin can undo it
    USER_CHANGE = Act(
        "user.change",
        Group.PEOPLE,
        "user",
        _("%(who)s changed the user %(user)s"),
        undo=Undo("console.people.users.undo", is_alone=True),
    )
    USER_REMOVE = Act("user.remove", Group.PEOPLE, "user-x", _("%(who)s deleted the user %(user)s"))
    MEMBER_SET = Act(
        "member.set",
        Group.PEOPLE,
        "users",
        _("%(who)s gave %(user)s the role %(role)s"),
        undo=Undo("storage.people.members.undo", Capability.GRANT, is_alone=True),
    )
    MEMBER_REMOVE = Act(
        "member.remove",
        Group.PEOPLE,
        "user-minus",
        _("%(who)s removed %(user)s from the account"),
        undo=Undo("storage.people.members.undo", Capability.GRANT, is_alone=True),
    )
    API_TOKEN_ISSUE = Act(
        "api-token.issue", Group.ACCESS, "plug", _("%(who)s created the API token %(token)s for %(user)s")
    )
    API_TOKEN_REVOKE = Act(
        "api-token.revoke", Group.ACCESS, "plug", _("%(who)s revoked the API token %(token)s of %(user)s")
    )


class PeopleNotice(NoticeKind):
    API_TOKEN_EXPIRING = Condition(
        "api-token.expiring",
        _("API token expires"),
        _("Your API token “%(token)s” expires on %(expires_at)s."),
        Severity.WARNING,
        "me/tokens/",
        "storage.people.conditions.find_expiring_api_tokens",
        is_personal=True,
    )


SUBJECT = Subject(
    name="people",
    stands_on=("activity", "accounts"),
    api="storage.people.api",
    verbs=PeopleVerb,
    notices=PeopleNotice,
    tidying={"api tokens": "storage.people.api_tokens.tidy"},
    daily=(
        "console.people.sessions.delete_expired",
        "console.people.invitations.tidy",
    ),
    hooks={Hook.RESEAL: "console.people.mfa.reseal"},
    pages=(
        Page(
            Place.ACCOUNT, 60, "accounts:members", _("Members"), "users", section=Section.ACCESS, letter="U"
        ),
        Page(
            Place.SERVER, 50, "people:users", _("Users"), "users", section=Section.SERVER, is_for_admins=True
        ),
        Page(Place.SERVER_SEARCH, 20, "people:profile", _("Profile"), "user"),
        Page(Place.SERVER_SEARCH, 30, "people:security", _("Security"), "shield"),
        Page(Place.SERVER_SEARCH, 40, "people:api_tokens", _("API tokens"), "plug"),
        Page(Place.SERVER_SEARCH, 50, "people:api_token_new", _("New API token"), "plus"),
    ),
    urls=("console.people.urls",),
)
