"""Users, members and invitations, as people use them."""

import re

from tests.browser.page import check, check_axe, check_reflow

MEMBERS = "/ui/a/devstoreaccount1/members/"
PASSWORD = "a password of many words"


def invite(page, who, role):
    """The link that an owner gets for somebody."""
    page.goto(MEMBERS)
    form = page.get_by_role("region", name="Invite by link")
    form.get_by_label("Recipient").fill(who)
    form.get_by_label("Role").select_option(label=role)
    form.get_by_role("button", name="Create link").click()
    return re.search(
        r"\S+/ui/join/\?token=\S+", page.get_by_role("status", name=f"Invitation link for {who}").inner_text()
    )[0]


def join(open_page, link, name):
    page = open_page(link)
    check(page)
    page.get_by_label("User name").fill(name)
    page.get_by_label("Password", exact=True).fill(PASSWORD)
    page.get_by_label("Confirm password").fill(PASSWORD)
    page.get_by_role("button", name="Create user and join").click()
    page.wait_for_url("**/ui/a/devstoreaccount1/")
    return page


def test_u1_somebody_invited_becomes_what_the_link_says(open_page, admin, tables):
    owner = open_page(MEMBERS, state=admin)
    link = invite(owner, "Vera", "Viewer")
    check_axe(owner)
    vera = join(open_page, link, "vera")
    assert open_page(link, expect=404).get_by_role("heading", level=1).count() == 1

    vera.goto(MEMBERS)
    assert vera.get_by_role("button", name="Remove").count() == 0
    assert vera.get_by_role("combobox").count() == 0
    vera.goto("/ui/")
    assert vera.get_by_role("link", name="Users").count() == 0
    assert vera.request.get("/ui/u/").status == 403

    owner.goto(MEMBERS)
    owner.get_by_label("Role of vera").select_option(label="Owner")
    owner.get_by_text("vera is now Owner of devstoreaccount1.").wait_for()
    vera.goto(MEMBERS)
    # u2: the last owner stays
    vera.get_by_role("button", name="Remove vera").click()
    vera.get_by_text("vera is the last owner.").wait_for()
    check(vera)
    vera.set_viewport_size({"width": 320, "height": 640})
    check_reflow(vera)


def test_an_admin_and_users(open_page, admin, tables):
    owner = open_page(MEMBERS, state=admin)
    nils = join(open_page, invite(owner, "Nils", "Editor"), "nils")

    # removing a member can be undone where it is said
    owner.goto(MEMBERS)
    owner.get_by_role("button", name="Remove nils").click()
    owner.get_by_text("Removed nils from devstoreaccount1.").wait_for()
    assert nils.request.get("/ui/a/devstoreaccount1/").status == 404
    owner.get_by_role("button", name="Undo").click()
    owner.get_by_label("Role of nils").wait_for()
    assert nils.request.get("/ui/a/devstoreaccount1/").status == 200

    owner.goto("/ui/u/")
    check(owner)
    owner.get_by_role("link", name="nils").click()
    check(owner)
    owner.get_by_role("button", name="Disable user").click()
    owner.get_by_text("Disabled nils. They are signed out and cannot sign in.").wait_for()
    nils.goto("/ui/")
    assert "/ui/login/" in nils.url
