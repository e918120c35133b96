"""The members of an account: who they are, and who may change that."""

import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

import pytest
from django.db import connection

from console.models import User
from storage.accounts import accounts, removal
from storage.activity import activity
from storage.activity.activity import ChangedSince
from storage.domain.access.actor import SERVER
from storage.domain.access.roles import Role
from storage.domain.errors import ServerBusy
from storage.models import Account, Activity, Membership
from storage.people import members
from storage.people.members import LastOwner
from storage.people.subject import PeopleVerb

MEMBERS = "/ui/a/acme/members/"


def role_of(name):
    return (
        Membership.objects.filter(user__username=name, account__name="acme")
        .values_list("role", flat=True)
        .first()
    )


def test_members_are_shown_with_their_roles(visit):
    page = visit("victor").get(MEMBERS).content.decode()
    for name in ("alice", "max", "eve", "victor", "Maintainer"):
        assert name in page
    assert "<form" not in page.partition('<table class="table people"')[2].partition("</table>")[0]


def test_gives_another_role(visit, cast):
    answer = visit("alice").post(f"{MEMBERS}{cast['eve'].pk}/", {"role": "3"}, follow=True)
    assert answer.redirect_chain == [(MEMBERS, 302)]
    assert "eve is now Maintainer of acme." in answer.content.decode()
    assert role_of("eve") == Role.MAINTAINER
    done = Activity.objects.get(verb=PeopleVerb.MEMBER_SET)
    assert (done.actor, done.before, done.after) == ("alice", 2, 3)
    assert done.detail == {"user": "eve"}


def test_adds_and_removes_users(visit, cast):
    client, sam = visit("alice"), visit("sam")
    for username in ("nobody", "", "a\0b", "x" * 200):
        assert client.post(f"{MEMBERS}add/", {"username": username, "role": "1"}).status_code == 422
    assert Membership.objects.count() == 4
    # the role of a user who is not a member cannot be changed
    members.set_role(accounts.add("other"), cast["sam"], Role.VIEWER, by=SERVER)
    assert client.post(f"{MEMBERS}{cast['sam'].pk}/", {"role": "3"}).status_code == 404
    client.post(f"{MEMBERS}add/", {"username": " SAM ", "role": "1"})
    assert role_of("sam") == Role.VIEWER
    assert sam.get(MEMBERS).status_code == 200
    client.post(f"{MEMBERS}{cast['sam'].pk}/remove/")
    assert role_of("sam") is None
    assert sam.get(MEMBERS).status_code == 404


def test_refuses_invalid_roles(visit, cast):
    client = visit("alice")
    for role in ["0", "5", "owner", ""]:
        assert client.post(f"{MEMBERS}{cast['eve'].pk}/", {"role": role}).status_code == 404, role
        assert role_of("eve") == Role.EDITOR, role


def test_the_last_owner_stays(visit, cast):
    pk = cast["alice"].pk
    for who in ("alice", "ada"):
        for address, data in ((f"{MEMBERS}{pk}/", {"role": "1"}), (f"{MEMBERS}{pk}/remove/", {})):
            page = visit(who).post(address, data, follow=True).content.decode()
            assert "alice is the last owner." in page
            assert role_of("alice") == Role.OWNER
    assert not Activity.objects.filter(verb__startswith="member").exists()


def test_a_disabled_owner_does_not_count_as_an_owner(account, cast):
    members.set_role(account, cast["max"], Role.OWNER, by=SERVER)
    cast["max"].is_active = False
    cast["max"].save()
    with pytest.raises(LastOwner):
        members.remove(account, cast["alice"], by=SERVER)


@pytest.mark.django_db(transaction=True)
def test_two_owners_cannot_remove_each_other():
    account = accounts.add("acme")
    users = [User.objects.create_user(name, "x") for name in ("ann", "bob")]
    for user in users:
        members.set_role(account, user, Role.OWNER, by=SERVER)
    start = threading.Barrier(2)

    def leave(user):
        start.wait()
        try:
            with suppress(LastOwner):
                members.remove(account, user, by=SERVER)
        finally:
            connection.close()

    with ThreadPoolExecutor(2) as pool:
        list(pool.map(leave, users))
    assert Membership.objects.filter(role=Role.OWNER).count() == 1


def test_undo(account, cast):
    done = members.set_role(account, cast["eve"], Role.VIEWER, by=SERVER)
    undone = members.undo(done, by=SERVER)
    assert role_of("eve") == Role.EDITOR
    members.undo(undone, by=SERVER)
    assert role_of("eve") == Role.VIEWER
    gone = members.remove(account, cast["eve"], by=SERVER)
    members.undo(gone, by=SERVER)
    assert role_of("eve") == Role.VIEWER
    members.set_role(account, cast["eve"], Role.OWNER, by=SERVER)
    with pytest.raises(ChangedSince):
        members.undo(done, by=SERVER)
    assert role_of("eve") == Role.OWNER


def test_removed_members_are_recognized_by_id(account, cast):
    given = members.set_role(account, cast["eve"], Role.VIEWER, by=SERVER)
    removed = members.remove(account, cast["eve"], by=SERVER)
    assert members.was_removed(cast["eve"], account)
    assert not members.was_removed(cast["sam"], account)
    # as older servers have recorded it
    activity.record(PeopleVerb.MEMBER_REMOVE, SERVER, account=account, detail={"user": "sam"})
    assert members.was_removed(cast["sam"], account)
    activity.record(PeopleVerb.MEMBER_REMOVE, SERVER, account=account, detail={"user": "eve"})
    cast["eve"].username = "eva"
    cast["eve"].save()
    another = User.objects.create_user("eve", "x")
    assert members.was_removed(cast["eve"], account)
    assert not members.was_removed(another, account)
    for done in (removed, given):
        with pytest.raises(ChangedSince):
            members.undo(done, by=SERVER)
    assert role_of("eve") is None


def test_a_removal_by_undo_is_a_removal(account, cast):
    members.undo(members.set_role(account, cast["sam"], Role.VIEWER, by=SERVER), by=SERVER)
    assert members.was_removed(cast["sam"], account)


def test_members_cannot_be_added_to_a_deleted_account(account, cast):
    gone = Account.objects.get(pk=account.pk)
    removal.remove("acme")
    with pytest.raises(ServerBusy):
        members.set_role(gone, cast["sam"], Role.VIEWER, by=SERVER)
    with pytest.raises(ServerBusy):
        members.remove(gone, cast["eve"], by=SERVER)
