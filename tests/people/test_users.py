"""Administration of users."""

import uuid

import pytest

from console.models import User
from console.people import users
from console.people.users import LastAdmin
from storage.activity.activity import ChangedSince
from storage.domain.access.actor import SERVER, Actor, ActorKind, dump_actor
from storage.domain.access.roles import Scope
from storage.jobs import jobs
from storage.jobs.jobs import JobFilter
from storage.jobs.states import JobStatus
from storage.models import Activity, Job
from storage.people import api_tokens
from storage.people.api_tokens import TokenRequest
from storage.people.subject import PeopleVerb
from storage.transfer import import_drafts, uploads


@pytest.fixture
def act(proven, cast):
    """Return `act("ada", "deactivate", "eve")`, which returns the page afterwards."""

    def act(who, action, whom):
        address = f"/ui/u/{cast[whom].pk}/change/"
        return proven(who).post(address, {"action": action}, follow=True)

    return act


def test_u4_disabled_users_are_signed_out_at_once(visit, act):
    client = visit("eve")
    assert "Disabled eve." in act("ada", "deactivate", "eve").content.decode()
    assert client.get("/ui/").status_code == 302
    assert not client.login(username="eve", password="correct horse")
    act("ada", "activate", "eve")
    assert visit("eve").get("/ui/a/acme/").status_code == 200
    assert set(Activity.objects.filter(actor="ada").values_list("verb", flat=True)) == {
        PeopleVerb.USER_CHANGE
    }


def test_signs_out_everywhere(visit, act):
    eve = visit("eve")
    clients = [eve, eve]
    assert [client.get("/ui/").status_code for client in clients] == [200, 200]
    act("ada", "sign-out", "eve")
    assert [client.get("/ui/").status_code for client in clients] == [302, 302]
    assert visit("ada").get("/ui/").status_code == 200


def test_makes_and_unmakes_admins(visit, act):
    act("ada", "promote", "eve")
    assert "victor" in visit("eve").get("/ui/u/").content.decode()
    act("eve", "demote", "ada")
    assert visit("ada").get("/ui/u/").status_code == 403
    assert act("eve", "delete", "ada").status_code == 404


def test_the_last_admin_stays(act):
    for action in ["demote", "deactivate"]:
        assert "ada is the last active admin" in act("ada", action, "ada").content.decode(), action
        result = User.objects.get(username="ada")
        assert result.is_admin, action
        assert result.is_active, action


def test_undo(cast):
    done = users.set_active(cast["eve"], is_active=False, by=SERVER)
    users.undo(done, by=SERVER)
    assert User.objects.get(username="eve").is_active
    with pytest.raises(ChangedSince):
        users.undo(done, by=SERVER)


def test_users_disabled_by_an_undo_are_signed_out_at_once(cast, visit):
    users.set_active(cast["eve"], is_active=False, by=SERVER)
    done = users.set_active(cast["eve"], is_active=True, by=SERVER)
    client = visit("eve")
    assert client.get("/ui/").status_code == 200
    _, token = api_tokens.issue(cast["eve"], TokenRequest("ci", Scope.READ), by=SERVER)
    users.undo(done, by=SERVER)
    users.set_active(cast["eve"], is_active=True, by=SERVER)
    token.refresh_from_db()
    assert client.get("/ui/").status_code == 302
    assert token.revoked_at is not None


def test_undo_keeps_the_last_admin(cast):
    done = users.set_admin(cast["eve"], is_admin=True, by=SERVER)
    users.set_admin(cast["ada"], is_admin=False, by=SERVER)
    with pytest.raises(LastAdmin):
        users.undo(done, by=SERVER)


def test_another_user_of_the_same_name_gets_no_files_drafts_and_jobs(cast, account):
    by = Actor(ActorKind.USER, "eve")
    draft = import_drafts.create(account, "people", "people.csv", 3, by=by)
    import_drafts.receive(draft, 0, b"abc", by=by)
    job = Job.objects.create(
        kind="account.copy", actor=dump_actor(by), request_id=uuid.uuid4(), status=JobStatus.RUNNING
    )
    of_command = Job.objects.create(
        kind="account.copy", actor=dump_actor(Actor(ActorKind.COMMAND, "eve")), request_id=uuid.uuid4()
    )
    mine = JobFilter(account_ids=[], reader=cast["eve"])
    assert not jobs.is_started_by(of_command, cast["eve"])
    assert (jobs.is_started_by(job, cast["eve"]), list(jobs.find(mine))) == (True, [job])
    assert uploads.get(account, draft.file.pk, by=by)

    users.remove(cast["eve"], by=SERVER)
    eve = User.objects.create_user("eve", "correct horse")
    assert import_drafts.get(account, draft.pk, by=by) is None
    assert uploads.get(account, draft.file.pk, by=by) is None
    assert not jobs.is_started_by(job, eve)
    assert not jobs.for_tray(eve)
    assert not jobs.find(JobFilter(account_ids=[], reader=eve))
