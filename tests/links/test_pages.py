"""Short links: one for each page of an account, which gives no access and leads nowhere else."""

import pytest

from storage.models import Membership, ShortLink

pytestmark = pytest.mark.django_db
NEW = "/ui/links/new/"
ADDRESS = "/ui/a/acme/t/people/?f=Name+eq+%27Ada%27&cols=Name&open=abc&asof=2026-01-01T00%3A00%3A00Z"
FETCH = {"X-Requested-With": "fetch"}


def make(client, address=ADDRESS):
    return client.post(NEW, {"address": address}, headers=FETCH)


def test_a_link_opens_the_exact_address(visit, add_entity):
    eve = visit("eve")
    link = make(eve).json()["link"]
    assert link.startswith("http://testserver/ui/s/")
    assert make(visit("alice")).json()["link"] == link
    assert make(eve, f"http://testserver{ADDRESS}").json()["link"] == link
    path = link.removeprefix("http://testserver")
    victor = visit("victor")
    answer = victor.get(path)
    assert (answer.status_code, answer["Location"]) == (302, ADDRESS)
    assert victor.get(f"{path}/")["Location"] == ADDRESS
    assert visit(None).get(path)["Location"] == f"/ui/login/?next={path}"


def test_users_without_access_are_told(visit, add_entity, cast):
    path = make(visit("eve")).json()["link"].removeprefix("http://testserver")
    answer = visit("sam").get(path)
    assert answer.status_code == 403
    assert "You have no access to the account" in answer.content.decode()
    assert "acme" not in answer.content.decode()
    victor = visit("victor")
    Membership.objects.filter(user=cast["victor"]).delete()
    assert victor.get(path).status_code == 403
    assert "expired or never existed" in victor.get("/ui/s/222222222222").content.decode()


def test_other_addresses_get_no_link(visit, add_entity):
    client = visit("eve")
    for address in [
        "",
        "/ui/",
        "/ui/me/",
        "//evil.example/ui/a/acme/",
        "https://evil.example/ui/a/acme/t/people/",
        "/ui/a/acme/../../../evil",
        "/ui/a/acme/%2e%2e/other/",
        "/ui/a/other/",
        "/ui/a/acme/no/such/page/",
        "javascript:alert(1)",
        "http://[",
        "/ui/a/acme/t/people/\r\nSet-Cookie: x",
        "/ui/a/acme/t/people/?sig=abc",
    ]:
        answer = make(client, address)
        assert answer.status_code == 422, answer.content
        assert answer.json()["error"], address
        assert not ShortLink.objects.exists(), address


def test_strangers_get_no_links_and_forms_work_without_scripts(visit, add_entity):
    assert make(visit("sam")).status_code == 422
    eve = visit("eve")
    page = eve.post(NEW, {"address": ADDRESS}).content.decode()
    assert f"/ui/s/{ShortLink.objects.get().pk}" in page
    assert 'value="/ui/a/acme/"' in eve.get(NEW, {"address": "/ui/a/acme/"}).content.decode()
