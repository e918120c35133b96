"""Comments in the console: threads of an entity, a table and a saved query, and who may do what."""

import re
from dataclasses import replace
from html import unescape

import pytest
from django.utils import timezone

from console.comments import presentation
from console.comments.presentation import draw_text
from console.grid.tokens import encode_key
from console.models import SavedQuery
from console.queries import saved, saved_changes
from console.queries.saved import Definition
from storage.comments import comments, threads
from storage.comments.content import Subject
from storage.comments.subject import CommentNotice
from storage.comments.threads import SHOWN
from storage.domain.access.actor import Actor, ActorKind
from storage.domain.entities.entity import EntityKey
from storage.models import Comment, CommentThread
from storage.notices import evaluation, readers
from storage.tables import tables
from tests.comments.test_operations import write_many

pytestmark = pytest.mark.django_db
TABLE = "/ui/a/acme/t/people/"
ENTITY = f"{TABLE}entity/comments/?pk=se&rk=ada"
KEY = EntityKey("se", "ada")


def text(answer):
    return " ".join(unescape(re.sub("<[^>]+>", " ", answer.content.decode())).split())


@pytest.fixture
def add(add_entity, visit):
    add_entity("se", "ada", Name="Ada")

    def add(name, words, **fields):
        token = re.search(r'name="key" value="([^"]+)"', visit(name).get(ENTITY).content.decode())[1]
        answer = visit(name).post(f"{TABLE}comments/add/", {"text": words, "key": token, **fields})
        assert answer.status_code == 303
        return answer["Location"]

    return add


def test_a_viewer_comments_and_others_reply_resolve_and_reopen(visit, add):
    assert add("victor", "Is this right?").startswith(ENTITY)
    thread = CommentThread.objects.get()
    eve = visit("eve")
    assert "Comments (1)" in text(eve.get(f"{TABLE}entity/?pk=se&rk=ada"))
    assert "Is this right?" in text(eve.get(ENTITY))
    assert 'aria-label="Comments: 1 open thread"' in eve.get(TABLE).content.decode()
    where = f"/ui/a/acme/comments/{thread.pk}/"
    eve.post(f"{where}reply/", {"text": "Yes, https://example.com/a?b=1."})
    shown = eve.get(ENTITY).content.decode()
    assert '<a href="https://example.com/a?b=1" rel="nofollow noopener noreferrer">' in shown
    assert visit("victor").post(f"{where}resolve/", {"resolved": "1"}).status_code == 303
    assert 'aria-label="Comments"' in eve.get(TABLE).content.decode()
    assert "Resolved by victor" in text(eve.get(ENTITY))
    assert "Comments (" not in text(eve.get(f"{TABLE}entity/?pk=se&rk=ada"))
    answer = eve.post(f"{where}resolve/", {"resolved": "0"}, follow=True)
    assert "Reopened the thread" in text(answer)
    sam = visit("sam")
    assert sam.post(f"{where}reply/", {"text": "x"}).status_code == 404
    assert sam.get(where).status_code == 404
    assert eve.get(where)["Location"] == f"{ENTITY}#thread-{thread.pk}"


def test_earlier_comments_are_shown_on_request(visit, add):
    add("victor", "0")
    first = Comment.objects.get()
    write_many(first, SHOWN + 5)
    victor, eve = visit("victor"), visit("eve")
    for page, back in ((ENTITY, ""), (f"{TABLE}comments/", "table")):
        shown = eve.get(page).content.decode()
        assert shown.count('<div class="comment"') == SHOWN
        [address] = re.findall(r'href="([^"]+)" hx-get="[^"]+"[^>]*\s*>Show earlier comments', shown)
        part = eve.get(unescape(address), headers={"HX-Request": "true"}).content.decode()
        assert part.count('<div class="comment"') == 5 and "<html" not in part
        assert "Show earlier" not in part
        own = victor.get(unescape(address)).content.decode()  # a page, without scripts
        assert own.count('<div class="comment"') == 5 and "<html" in own
        assert f'name="back" value="{back}"' in own
    assert visit("sam").get(unescape(address)).status_code == 404
    assert eve.get(f"{TABLE}comments/{first.thread_id}/?before=x").status_code == 404


def test_the_comments_of_a_table_are_in_no_tab(visit, add_entity):
    add_entity("se", "ada")
    page = visit("eve").get(f"{TABLE}comments/").text
    tabs = page.partition('<ul class="tabs">')[2].partition("</ul>")[0]
    assert "Entities" in tabs and "aria-current" not in tabs
    assert re.search(r'comments/"\s+aria-current="page"\s+aria-label="Comments"', page)


def test_many_threads_are_pages(visit, add, monkeypatch):
    monkeypatch.setattr(presentation, "MOST_LISTED", 2)
    for words in ("x-first", "x-second", "x-third"):
        add("victor", words)
    eve = visit("eve")
    for page in (ENTITY, f"{TABLE}comments/"):
        newest = eve.get(page)
        assert "x-second" in text(newest) and "x-third" in text(newest) and "x-first" not in text(newest)
        [older] = re.findall(r'href="([^"]+)" rel="next"', newest.content.decode())
        assert "x-first" in text(eve.get(unescape(older))) and "x-third" not in text(eve.get(unescape(older)))


def test_only_the_author_edits_and_deletes_and_can_undo_that(visit, add):
    add("victor", "first")
    comment = Comment.objects.get()
    where = f"/ui/a/acme/comments/{comment.pk}/"
    alice = visit("alice")
    assert f'action="{where}edit/"' not in alice.get(ENTITY).content.decode()
    for action in ("edit", "delete"):
        assert alice.post(f"{where}{action}/", {"text": "mine"}).status_code == 404
    victor = visit("victor")
    assert "edited" in text(victor.post(f"{where}edit/", {"text": "second"}, follow=True))
    deleted = victor.post(f"{where}delete/", follow=True)
    assert "No comments yet." in text(deleted)
    [undo] = re.findall(r'action="(/ui/undo/[^"]+|/ui/activity/[^"]+undo[^"]*)"', deleted.content.decode())[
        :1
    ]
    assert alice.post(undo).status_code == 403
    assert "Restored the comment." in text(victor.post(undo, {"next": ENTITY}, follow=True))
    assert "second" in text(victor.get(ENTITY))


def test_texts_are_shown_as_they_are(add, visit):
    add("victor", "<script>alert(1)</script>\n@eve & http://x/<b>")
    page = visit("eve").get(ENTITY).content.decode()
    assert "&lt;script&gt;alert(1)&lt;/script&gt;\n" in page
    assert '<b class="mention">@eve</b> &amp; <a href="http://x/"' in page


@pytest.mark.parametrize(
    ("words", "drawn"),
    [
        (
            "(see https://a.example/b).",
            '(see <a href="https://a.example/b" rel="nofollow noopener noreferrer">',
        ),
        ("javascript:alert(1)", "javascript:alert(1)"),
        ('https://a.example/"onclick=x', "&quot;onclick=x"),
    ],
)
def test_links(words, drawn):
    assert drawn in draw_text(words)


def test_refusals_are_said(visit, add_entity):
    add_entity("se", "ada")
    victor = visit("victor")

    def answer(words):
        return victor.post(f"{TABLE}comments/add/", {"text": words, "key": encode_key(KEY)}, follow=True)

    assert "Enter a comment." in text(answer(" "))
    shown = answer("x" * 4001)
    assert "Use at most 4000 characters." in text(shown)
    assert "x" * 4000 in shown.content.decode()  # typed text is not lost
    assert victor.post(f"{TABLE}comments/add/", {"text": "x", "key": "nonsense"}).status_code == 404
    assert victor.post(f"{TABLE}comments/add/", {"text": "x", "q": "none"}).status_code == 404
    assert not Comment.objects.exists()


def test_comments_on_the_table_and_on_shared_queries(visit, add, cast, account):
    query = SavedQuery.objects.create(
        account=account,
        table_name="people",
        slug="old",
        name="Old",
        content={"f": "Age gt 60"},
        owner=cast["eve"],
        is_shared=True,
    )
    victor, page = visit("victor"), f"{TABLE}comments/"
    assert victor.post(f"{page}add/", {"text": "table remark"})["Location"] == page
    assert victor.post(f"{page}add/", {"text": "query remark", "q": "old"})["Location"] == f"{page}?q=old"
    add("victor", "entity remark")
    max_ = visit("max")
    shown = text(max_.get(page))
    assert all(f"{it} remark" in shown for it in ("table", "query", "entity"))
    assert "table remark" not in text(victor.get(f"{page}?q=old"))
    assert 'id="applied-comments"' in victor.get(f"{TABLE}?f=Age+gt+60&q=old").content.decode()
    thread = CommentThread.objects.get(query=query.pk)
    SavedQuery.objects.update(is_shared=False)
    assert "query remark" not in text(max_.get(page))
    assert victor.get(f"{page}?q=old").status_code == 404
    assert victor.get(f"/ui/a/acme/comments/{thread.pk}/").status_code == 404
    assert victor.post(f"/ui/a/acme/comments/{thread.pk}/reply/", {"text": "x"}).status_code == 404


def test_the_grid_marks_entities_with_comments(visit, add, add_entity):
    add_entity("se", "alan")
    add("victor", "one")
    page = visit("eve").get(TABLE).content.decode()
    assert page.count("data-mark=") == 1
    assert re.search(r'data-mark="1" aria-label="[^"]*ada · 1 comment"', page)


def test_comments_on_an_entity_that_is_gone(visit, add, account):
    add("victor", "stays")
    eve = visit("eve")
    opened = eve.get(f"{TABLE}entity/?pk=se&rk=ada").content.decode()
    etag = unescape(re.search(r'data-etag="([^"]+)"', opened)[1])
    eve.post(f"{TABLE}entity/?pk=se&rk=ada", {"action": "delete", "etag": etag})
    shown = text(eve.get(ENTITY))
    assert "Its comments stay" in shown and "stays" in shown
    assert visit("eve").get(f"{TABLE}entity/comments/?pk=no&rk=such").status_code == 404
    assert threads.count_many(CommentThread.objects.get().table, [Subject(KEY)]) == {Subject(KEY): 1}


def test_a_mention_is_in_the_bell_of_the_other_until_it_is_seen(visit, add, cast):
    add("victor", "@eve @sam look")
    eve = visit("eve")
    assert "Notices: 1 new" in eve.get("/ui/").content.decode()
    bell = text(eve.get("/ui/"))
    assert "victor mentioned you in a comment on people: se, ada." in bell
    assert "Notices: 0 new" in visit("sam").get("/ui/").content.decode()
    thread = CommentThread.objects.get()
    assert f'href="/ui/a/acme/comments/{thread.pk}/"' in eve.get("/ui/").content.decode()
    eve.get(f"/ui/a/acme/comments/{thread.pk}/", follow=True)
    assert "mentioned you" not in text(eve.get("/ui/"))


def test_people_to_mention(visit, account):
    victor = visit("victor")
    assert text(victor.get("/ui/a/acme/comments/people/?q=A")) == "ada alice"
    assert "sam" not in text(victor.get("/ui/a/acme/comments/people/"))


def test_activity_says_who_commented_and_not_what(visit, add):
    add("victor", "a secret word")
    shown = text(visit("alice").get("/ui/a/acme/activity/?group=comments"))
    assert "victor wrote a comment in people" in shown
    assert "secret word" not in shown
    assert comments.mentionable(CommentThread.objects.get().account, top=1) == ["ada"]


@pytest.mark.parametrize("end", ["deleted", "unshared"])
def test_a_mention_about_a_query_that_is_gone_has_no_notice(
    add_entity, visit, cast, account, django_capture_on_commit_callbacks, end
):
    add_entity("se", "ada")
    table, by = tables.get(account, "people"), Actor(ActorKind.USER, "eve")
    shared = Definition("Old", "", {"f": "Age gt 60"}, is_shared=True)
    query = saved_changes.create_query(table, shared, owner=cast["eve"], by=by)
    eve = visit("eve")
    eve.post(f"{TABLE}comments/add/", {"text": "@victor look", "q": query.slug})
    eve.post(f"{TABLE}comments/add/", {"text": "@victor and here"})
    evaluation.evaluate_kind(CommentNotice.MENTION, timezone.now())
    assert readers.current(cast["victor"]).count() == 2
    with django_capture_on_commit_callbacks(execute=True):
        if end == "deleted":
            saved_changes.delete_query(query, by=by)
        else:
            private = replace(shared, is_shared=False)
            saved_changes.change_query(query, private, seen=saved.revision(query), by=by)
    [left] = readers.current(cast["victor"])
    assert left.subject == str(CommentThread.objects.get(query=None).pk)
