"""Groups at a provider of sign-ins give roles, take them back, and leave alone what people gave."""

import pytest
from allauth.socialaccount.models import SocialAccount
from django.utils import timezone

from console.models import User
from storage.accounts import accounts
from storage.domain.access.actor import SERVER
from storage.domain.access.roles import Role
from storage.models import Activity, Branch, Membership
from storage.people import members
from tests.people.test_providers import sign_in

ROLES = {"dev": {"acme": Role.EDITOR}, "leads": {"acme": Role.MAINTAINER, "none": Role.OWNER}}


@pytest.fixture
def come(visit, elsewhere):
    """Return `come("dev")`, which signs Jane in as a member of these groups and returns her and the answer."""

    def come(*groups, **claims):
        elsewhere.person |= {"groups": list(groups), **claims}
        answer = sign_in(visit(None), elsewhere)
        return User.objects.filter(username="jane.doe").first(), answer

    return come


def role_of(user):
    return Membership.objects.filter(user=user).values_list("role", flat=True).first()


def test_roles_follow_the_groups(come, configure):
    configure(roles=ROLES)
    for groups, role in (
        (["dev"], Role.EDITOR),
        (["dev", "leads", "others"], Role.MAINTAINER),
        (["leads"], Role.MAINTAINER),
        (["dev"], Role.EDITOR),
        ([], None),
    ):
        jane, _ = come(*groups)
        assert role_of(jane) == role
    done = Activity.objects.filter(verb__startswith="member.").order_by("pk")
    assert [(it.verb, it.actor_kind) for it in done] == [("member.set", "server")] * 3 + [
        ("member.remove", "server")
    ]


def test_a_missing_claim_means_no_groups(come, configure, elsewhere):
    configure(roles=ROLES, groups_claim="realm_access.roles")
    jane, _ = come(realm_access={"roles": ["dev"]})
    assert role_of(jane) == Role.EDITOR
    del elsewhere.person["realm_access"]
    assert role_of(come("dev")[0]) is None


def test_manually_given_roles_stay(come, configure, account):
    configure(roles=ROLES)
    jane, _ = come()
    members.set_role(account, jane, Role.VIEWER, by=SERVER)
    for groups in (["leads"], []):
        come(*groups)
        assert role_of(jane) == Role.VIEWER
    members.remove(account, jane, by=SERVER)
    come("dev")
    members.set_role(account, jane, Role.EDITOR, by=SERVER)  # the same, by a person
    come()
    assert role_of(jane) == Role.EDITOR


def test_the_last_owner_goes_with_the_group(come, configure, account, cast):
    configure(roles={"own": {"acme": Role.OWNER}})
    jane, _ = come("own")
    members.remove(account, cast["alice"], by=SERVER)
    come()
    assert role_of(jane) is None


def test_admins_follow_the_groups(come, configure, cast, caplog):
    configure(admin_groups=frozenset({"admins"}))
    jane, _ = come("admins")
    assert jane.is_admin
    assert not come("dev")[0].is_admin
    assert come("admins")[0].is_admin
    User.objects.filter(pk=cast["ada"].pk).update(is_admin=False)
    assert come()[0].is_admin
    assert "the only admin" in caplog.text
    User.objects.filter(pk=cast["ada"].pk).update(is_admin=True)
    User.objects.filter(username="jane.doe").update(admin_given_by="")  # a person made her an admin
    assert come()[0].is_admin


def test_people_refused_at_sign_in_lose_roles_of_groups(come, configure):
    configure(roles=ROLES, allowed_groups=frozenset({"dev", "staff"}))
    jane, answer = come("dev")
    assert (role_of(jane), answer["Location"]) == (Role.EDITOR, "/ui/")
    _, answer = come("leads")
    assert (role_of(jane), answer["Location"]) == (None, "/ui/login/")
    assert Activity.objects.get(verb="user.sign-in-failed").actor == "jane.doe"


def test_a_domain_counts_when_it_is_verified(come, configure):
    configure(allowed_domains=frozenset({"example.org"}))
    for claims, is_admitted in [
        ({"email": "jane@example.org", "email_verified": False}, False),
        ({"email": "jane@example.org", "email_verified": "true"}, False),
        ({"email": "jane@example.org.evil.example", "email_verified": True}, False),
        ({"email": "example.org", "email_verified": True}, False),
        ({"email": None}, False),
        ({"email": "jane@Example.org", "email_verified": True}, True),
    ]:
        jane, _ = come(**claims)
        assert (jane is not None) is is_admitted, (claims, is_admitted)


@pytest.mark.parametrize(
    ("allowed", "verified", "name", "is_linked"),
    [
        (True, True, "jane@example.org", True),
        (True, False, "jane@example.org", False),
        (False, True, "jane@example.org", False),
        (True, True, "ada@example.org", False),
    ],
)
def test_links_by_a_verified_address_only_if_told_to(
    come, configure, cast, allowed, verified, name, is_linked
):
    configure(links_by_email=allowed, admits_everyone=False)
    User.objects.create(username="jane@example.org")
    User.objects.filter(username="ada").update(username="ada@example.org")  # an admin
    _, answer = come(email=name, email_verified=verified)
    assert (answer.status_code == 302) is is_linked
    linked = SocialAccount.objects.filter(user__username="jane@example.org")
    assert linked.exists() is is_linked
    assert not SocialAccount.objects.exclude(pk__in=linked).exists()


def test_a_branch_follows_the_account_that_it_was_made_of(come, configure, account):
    configure(roles=ROLES)
    jane, _ = come("dev")
    branch = accounts.add("branch")
    Branch.objects.create(account=branch, source=account, source_name="acme", at=timezone.now())
    Membership.objects.create(
        account=branch, user=jane, role=Role.EDITOR, given_by=SocialAccount.objects.get().provider
    )
    come("dev")
    assert Membership.objects.filter(user=jane).count() == 2
    come()
    assert not Membership.objects.filter(user=jane).exists()


def test_the_higher_role_of_two_providers_counts(account, cast):
    def give(provider, role):
        members.set_given_roles(cast["sam"], {"acme": role} if role else {}, given_by=provider, by=SERVER)
        return members.given_role(cast["sam"], account)

    assert give("one", Role.MAINTAINER) == Role.MAINTAINER
    assert give("other", Role.EDITOR) == Role.MAINTAINER
    assert give("other", Role.OWNER) == Role.OWNER
    assert give("one", None) == Role.OWNER
    assert give("other", None) is None
