"""Preferences of users."""

from console.models import User
from tests.fixtures import PASSWORD

CHOICES = {
    "language": "zh-hans",
    "time_zone": "Europe/Istanbul",
    "theme": "dark",
    "density": "compact",
    "edit_mode": "staged",
}
NEW = {"current": PASSWORD, "password": "battery staple", "repeated": "battery staple"}


def test_saves_preferences(visit, cast):
    client = visit("alice")
    client.post("/ui/me/", {**CHOICES, "shortcuts": "on"})
    assert b"data-shortcuts" not in client.get("/ui/").content
    assert client.post("/ui/me/", CHOICES)["Location"] == "/ui/me/"
    cast["alice"].refresh_from_db()
    assert {name: getattr(cast["alice"], name) for name in CHOICES} == CHOICES
    page = client.get("/ui/me/")
    assert page["Content-Language"] == "zh-hans"
    assert b'data-theme="dark" data-density="compact"' in page.content
    assert b'data-shortcuts="off"' in page.content
    client.post("/ui/appearance/", {"theme": "light", "next": "/ui/me/"})  # the menu's is remembered too
    cast["alice"].refresh_from_db()
    assert (cast["alice"].theme, cast["alice"].density) == ("light", "compact")


def test_refuses_an_unknown_choice(visit):
    client = visit("alice")
    for name in CHOICES:
        answer = client.post("/ui/me/", {**CHOICES, name: "nothing"})
        assert answer.status_code == 422, name
        assert list(answer.context["preferences"].errors) == [name], name


def test_times_are_in_the_zone_of_the_reader(visit, cast):
    client = visit("alice")
    assert b' UTC">just now</time>' in client.get("/ui/me/sessions/").content
    client.cookies["tablero_zone"] = "Asia/Tokyo"  # the browser's zone, until another is chosen
    assert b' JST">just now</time>' in client.get("/ui/me/sessions/").content
    client.post("/ui/me/", {**CHOICES, "language": "en"})
    assert b' +03">just now</time>' in client.get("/ui/me/sessions/").content
    # the zone of the page that asks for a part wins
    for zone, shown in (
        ("Asia/Tokyo", b" JST"),
        ("Mars/Olympus", b" +03"),
        ("../etc", b" +03"),
        ("", b" +03"),
    ):
        assert shown in client.get("/ui/me/sessions/", headers={"X-Tablero-Zone": zone}).content
    type(cast["alice"]).objects.update(time_zone="Mars/Olympus")  # this machine does not know the zone
    assert client.get("/ui/").status_code == 200


def test_changes_the_password_and_signs_others_out(visit, cast):
    here, elsewhere = visit("alice"), visit("alice")
    assert here.post("/ui/me/password/", NEW)["Location"] == "/ui/me/security/"
    cast["alice"].refresh_from_db()
    assert cast["alice"].check_password("battery staple")
    assert here.get("/ui/").status_code == 200
    assert elsewhere.get("/ui/").status_code == 302


def test_keeps_the_password(visit, cast):
    client = visit("alice")
    for change, field in [
        ({"current": "wrong horse"}, "current"),
        ({"password": "short", "repeated": "short"}, "password"),
        ({"repeated": "battery stable"}, "repeated"),
    ]:
        answer = client.post("/ui/me/password/", {**NEW, **change})
        assert answer.status_code == 422, (change, field)
        assert list(answer.context["form"].errors) == [field], (change, field)
        cast["alice"].refresh_from_db()
        assert cast["alice"].check_password(PASSWORD), (change, field)


def test_offers_the_zone_of_the_browser_once_to_users_of_the_former_default(visit, cast):
    def offered(client, path="/ui/"):
        return [
            button
            for button in ("Use Europe/Istanbul", "Keep UTC")
            if button in client.get(path).content.decode()
        ]

    client = visit("alice")
    client.cookies["tablero_zone"] = "Europe/Istanbul"
    assert offered(client) == []  # her times are in that zone already
    for answer, kept in (("utc", "Etc/UTC"), ("browser", "")):
        User.objects.filter(username="alice").update(time_zone="UTC")
        assert len(offered(client)) == len(offered(client, "/ui/a/acme/activity/")) == 2
        said = client.post("/ui/me/time-zone/", {"zone": answer, "next": "/ui/help/"})
        assert said["Location"] == "/ui/help/"
        assert User.objects.get(username="alice").time_zone == kept
        page = client.get("/ui/")
        assert "/ui/me/#id_time_zone" in page.content.decode()  # in the toast, to change it again
        assert offered(client) == []
    assert "offsite" not in client.post("/ui/me/time-zone/", {"next": "//offsite.example/"})["Location"]


def test_saving_preferences_chooses_utc(visit, cast):
    User.objects.filter(username="alice").update(time_zone="UTC")
    client = visit("alice")
    form = client.get("/ui/me/").context["preferences"]
    assert form["time_zone"].value() == "Etc/UTC"
    client.post("/ui/me/", {name: form[name].value() for name in form.fields})
    assert User.objects.get(username="alice").time_zone == "Etc/UTC"
