"""The accounts, and the tables of one."""

from console.models import Membership, Role
from storage.operations import accounts


def test_redirects_to_the_console(client):
    for path in ("/", "/ui"):
        assert client.get(path)["Location"] == "/ui/"


def test_home_shows_the_accounts_of_a_user(visit, cast, people):
    other = accounts.add("other")
    accounts.set_enabled("other", enabled=False)
    Membership.objects.create(user=cast["victor"], account=other, role=Role.OWNER)
    cards = visit("victor").get("/ui/").context["cards"]
    assert [(card.account.name, card.role, card.tables) for card in cards] == [
        ("acme", Role.VIEWER, 1),
        ("other", Role.OWNER, 0),
    ]
    assert b"disabled" in visit("victor").get("/ui/").content
    assert [card.role for card in visit("ada").get("/ui/").context["cards"]] == [Role.OWNER, Role.OWNER]


def test_home_shows_no_key_that_is_a_secret(visit, account):
    page = visit("alice").get("/ui/").content.decode()
    assert "TableEndpoint=http://testserver/acme;" in page
    assert "AccountKey=(see: account list --keys);" in page
    for key in accounts.keys_of(account):
        assert accounts.write_key(key) not in page


def test_home_without_an_account(visit):
    assert b"You are in no account yet" in visit("sam").get("/ui/").content


def test_home_of_an_empty_server(visit, account):
    accounts.remove("acme")
    assert b"account add NAME" in visit("ada").get("/ui/").content
