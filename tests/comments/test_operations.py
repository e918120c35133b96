"""Comments: threads, mentions that become notices, undo, and what becomes of them with their entity and account."""

from datetime import UTC, datetime, timedelta

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from console.models import User
from storage.accounts import accounts, removal
from storage.activity.activity import ChangedSince
from storage.activity.undoing import CannotUndo
from storage.comments import comments, threads
from storage.comments.comments import CommentRefused
from storage.comments.content import LONGEST, MOST_AT_ONCE, Subject, mentioned_names
from storage.comments.subject import CommentNotice
from storage.comments.threads import SHOWN
from storage.core.quotas import COMMENTS
from storage.domain.access.actor import Actor, ActorKind
from storage.domain.access.roles import Role
from storage.domain.entities.changes import Delete, Insert
from storage.domain.entities.entity import Entity, EntityKey
from storage.domain.errors import ServerBusy, TableNotFound
from storage.domain.values.edm import Edm, EdmValue
from storage.domain.values.etag import ANY
from storage.entities import edits
from storage.models import Activity, Comment, CommentMention, CommentThread, Membership, Notice, Table
from storage.notices import evaluation, readers
from storage.people import members
from storage.tables import tables
from storage.undo import undo

pytestmark = pytest.mark.django_db
KEY = EntityKey("se", "ada")
ABOUT = Subject(KEY)
START = datetime(2026, 1, 1, tzinfo=UTC)


@pytest.fixture
def account():
    return accounts.add("acme")


@pytest.fixture
def table(account):
    return tables.create(account, "people", by=Actor(ActorKind.SERVER))


@pytest.fixture
def ada(account):
    return person("ada", account)


@pytest.fixture
def bob(account):
    return person("bob", account)


def person(name, account=None, role=Role.VIEWER):
    user = User.objects.create(username=name)
    if account is not None:
        Membership.objects.create(user=user, account=account, role=role)
    return user


def acting(user):
    return Actor(ActorKind.USER, user.username)


def say(table, user, text, subject=ABOUT):
    return comments.begin(table, subject, text, author=user, by=acting(user))


def shown(table, subject=ABOUT):
    return [[it.text for it in thread.shown] for thread in threads.of_subject(table, subject)]


def insert(table, user, key=KEY):
    return edits.apply(table, [Insert(Entity(key, {"Name": EdmValue(Edm.STRING, "Ada")}))], by=acting(user))


def mentions_of(user):
    evaluation.evaluate_kind(CommentNotice.MENTION, timezone.now())
    return [it.facts["author"] for it in readers.current(user).filter(kind=CommentNotice.MENTION)]


def test_threads_of_an_entity_a_table_and_a_query(table, ada, bob):
    first, _ = say(table, ada, " Is this right?\r\nI doubt it. ")
    comments.reply(first.thread, "Yes", author=bob, by=acting(bob))
    say(table, bob, "Another matter")
    say(table, ada, "Of the table", Subject())
    say(table, ada, "Of a query", Subject(query=7))
    assert shown(table) == [["Is this right?\nI doubt it.", "Yes"], ["Another matter"]]
    assert shown(table, Subject()) == [["Of the table"]]
    assert shown(table, Subject(query=7)) == [["Of a query"]]
    assert shown(table, Subject(EntityKey("s", "eada"))) == []
    assert threads.count_many(table, [ABOUT, Subject(EntityKey("x", "y"))]) == {ABOUT: 3}
    assert threads.count_open(table) == 3
    assert threads.count_open(table, [7]) == 4
    assert {it.subject for it in threads.of_account(table.account)} == {"entity", "table"}


def test_a_page_of_entities_takes_one_query(table, ada, django_assert_num_queries):
    say(table, ada, "x")
    with django_assert_num_queries(1):
        assert (
            len(threads.count_many(table, [Subject(EntityKey("p", str(it))) for it in range(200)] + [ABOUT]))
            == 1
        )


@pytest.mark.parametrize("text", ["", " \n ", "x" * (LONGEST + 1)])
def test_a_comment_has_a_text_of_limited_length(table, ada, text):
    with pytest.raises(CommentRefused):
        say(table, ada, text)
    assert not CommentThread.objects.exists()


def test_quotas(table, ada, bob, settings):
    for number in range(MOST_AT_ONCE):
        say(table, ada, str(number))
    with pytest.raises(CommentRefused, match="in a minute"):
        say(table, ada, "one more")
    say(table, bob, "of another user")
    for later in (timedelta(minutes=2), timedelta(hours=-3)):  # the clock may be set back
        Comment.objects.update(created_at=timezone.now() - later)
        say(table, ada, "later")
    settings.QUOTAS = {**settings.QUOTAS, COMMENTS.name: MOST_AT_ONCE + 3}
    with pytest.raises(CommentRefused, match="the most it can have"):
        say(table, bob, "too many")


def test_edits_are_limited_too(table, ada):
    comment, _ = say(table, ada, "x")
    for number in range(MOST_AT_ONCE):
        comments.edit(comment, str(number), by=acting(ada))
    with pytest.raises(CommentRefused, match="in a minute"):
        comments.edit(comment, "one more", by=acting(ada))
    assert shown(table) == [[str(MOST_AT_ONCE - 1)]]


def test_a_long_thread_comes_with_its_latest_comments(table, ada, django_assert_num_queries):
    comment, _ = say(table, ada, "0")
    write_many(comment, 2 * SHOWN + 5)
    say(table, ada, "another")
    with django_assert_num_queries(2):
        thread, other = threads.of_subject(table, ABOUT)
    assert [int(it.text) for it in thread.shown] == list(range(SHOWN + 5, 2 * SHOWN + 5))
    assert (threads.count_earlier(thread), threads.count_earlier(other)) == (SHOWN + 5, 0)
    page, has_more = threads.earlier(thread, thread.shown[0].pk)
    assert ([int(it.text) for it in page], has_more) == (list(range(5, SHOWN + 5)), True)
    page, has_more = threads.earlier(thread, page[0].pk)
    assert ([int(it.text) for it in page], has_more) == (list(range(5)), False)
    comments.delete(comment, by=acting(ada))
    assert threads.comments_of(thread).count() == 2 * SHOWN + 4


def write_many(comment, number):
    """Fill the thread of a comment up to so many."""
    made = (
        Comment(
            thread=comment.thread, author_id=comment.author_id, author_name="ada", text=it, created_at=START
        )
        for it in map(str, range(1, number))
    )
    Comment.objects.bulk_create(made)


def test_comments_on_a_deleted_table_are_refused(table, ada):
    tables.delete(table.account, "people", by=acting(ada), keep=tables.DELETED_TABLE_RETENTION)
    with pytest.raises(TableNotFound):
        say(table, ada, "x")
    Table.objects.filter(pk=table.pk).update(kept_until=None)
    tables.drop_expired_tables()
    with pytest.raises(TableNotFound):
        say(table, ada, "x")
    assert not CommentThread.objects.exists()


def test_replies_in_a_deleted_thread_are_refused(table, ada):
    comment, _ = say(table, ada, "x")
    CommentThread.objects.all().delete()
    with pytest.raises(ChangedSince):
        comments.reply(comment.thread, "y", author=ada, by=acting(ada))


def test_a_user_is_locked_before_the_account_as_by_saved_queries(table, ada):
    with CaptureQueriesContext(connection) as ran:
        say(table, ada, "x")
    locked = [it["sql"] for it in ran if "FOR NO KEY UPDATE" in it["sql"]]
    assert ["console_user" in sql for sql in locked] == [True, False]


def test_notices_are_read_before_what_is_so_now(table, ada, bob):
    say(table, ada, "@bob look")
    with CaptureQueriesContext(connection) as ran:
        assert mentions_of(bob) == ["ada"]
    read = [
        it["sql"] for it in ran if "FOR UPDATE" in it["sql"] or 'FROM "storage_commentmention"' in it["sql"]
    ]
    assert ["FOR UPDATE" in sql for sql in read][:2] == [True, False]


def test_a_mention_that_was_seen_is_not_told_again_when_it_is_taken_back_and_repeated(table, ada, bob):
    comment, _ = say(table, ada, "@bob look")
    assert mentions_of(bob) == ["ada"]
    assert comments.mark_seen(bob, [comment.thread])
    for text in ("look", "@bob look"):
        comments.edit(comment, text, by=acting(ada))
    assert mentions_of(bob) == []


def test_edit_delete_resolve_and_their_undo(table, ada):
    comment, created = say(table, ada, "first")
    edited = comments.edit(comment, "second", by=acting(ada))
    assert comments.edit(comment, "second", by=acting(ada)) is None
    assert shown(table) == [["second"]]
    undo.undo(edited, acting(ada))
    assert shown(table) == [["first"]]
    with pytest.raises(CannotUndo):
        undo.undo(edited, acting(ada))
    deleted = comments.delete(comment, by=acting(ada))
    assert shown(table) == []
    assert threads.count(table, ABOUT) == 0
    with pytest.raises(CannotUndo):
        undo.undo(created, acting(ada))
    restored = undo.undo(deleted, acting(ada))
    assert shown(table) == [["first"]]
    undo.undo(restored, acting(ada))
    assert shown(table) == []
    undo.undo(Activity.objects.latest("pk"), acting(ada))

    resolved = comments.resolve(comment.thread, is_resolved=True, by=acting(ada))
    assert comments.resolve(comment.thread, is_resolved=True, by=acting(ada)) is None
    assert threads.count(table, ABOUT) == 0
    assert threads.of_subject(table, ABOUT)[0].resolved_by == "ada"
    undo.undo(resolved, acting(ada))
    assert threads.count(table, ABOUT) == 1
    comments.resolve(comment.thread, is_resolved=True, by=acting(ada))
    comments.reply(comment.thread, "not yet", author=ada, by=acting(ada))
    assert threads.of_subject(table, ABOUT)[0].resolved_at is None
    assert not Activity.objects.filter(detail__icontains="first").exists()


def test_comments_survive_the_deletion_of_their_entity_and_of_their_table(table, ada):
    insert(table, ada)
    say(table, ada, "stays")
    deleted = edits.apply(table, [Delete(KEY, ANY)], by=acting(ada)).activity
    assert shown(table) == [["stays"]]
    undo.undo(deleted, acting(ada))
    assert shown(table) == [["stays"]]
    gone = tables.delete(table.account, "people", by=acting(ada), keep=tables.DELETED_TABLE_RETENTION)
    assert threads.of_account(table.account).count() == 0
    undo.undo(gone, acting(ada))
    assert shown(table) == [["stays"]]


def test_comments_follow_a_change_of_the_key_and_its_undo(table, ada):
    insert(table, ada)
    say(table, ada, "mine")
    new = EntityKey("uk", "lovelace")
    moved = edits.change_key(table, KEY, new, ANY, by=acting(ada)).activity
    assert (shown(table), shown(table, Subject(new))) == ([], [["mine"]])
    assert threads.subject_of(CommentThread.objects.get()) == Subject(new)
    undo.undo(moved, acting(ada))
    assert (shown(table), shown(table, Subject(new))) == ([["mine"]], [])


def test_comments_go_with_their_account(table, ada, bob):
    say(table, ada, "of @bob")
    removal.remove("acme", with_tables=True)
    assert not any(it.objects.exists() for it in (CommentThread, Comment, CommentMention))
    with pytest.raises(ServerBusy):
        say(table, ada, "too late")


def test_names_after_an_at_sign():
    text = "@Ada, @bob.b. (@carl) me@example.com https://x/@dora @@eve @ada @x@y.z"
    assert mentioned_names(text) == ["ada", "bob.b", "carl", "x@y.z"]


def test_mentions_become_notices_until_they_are_seen(table, ada, bob):
    stranger = person("sam")
    comment, _ = say(table, ada, "@bob @ada @sam @none look")
    assert set(CommentMention.objects.values_list("user__username", flat=True)) == {"bob"}
    assert (mentions_of(bob), mentions_of(ada), mentions_of(stranger)) == (["ada"], [], [])
    notice = Notice.objects.get(kind=CommentNotice.MENTION)
    assert notice.facts["about"] == "people: se, ada"
    assert comments.mark_seen(bob, [comment.thread])
    assert not comments.mark_seen(bob, [comment.thread])
    assert mentions_of(bob) == []
    comments.edit(comment, "@bob look again", by=acting(ada))
    assert mentions_of(bob) == []
    comments.reply(comment.thread, "@bob please", author=ada, by=acting(ada))
    assert mentions_of(bob) == ["ada"]


@pytest.mark.parametrize("end", ["deleted", "edited", "no access", "old"])
def test_a_mention_is_over_with_its_comment_and_with_access(table, ada, bob, end):
    comment, _ = say(table, ada, "@bob look")
    assert mentions_of(bob) == ["ada"]
    match end:
        case "deleted":
            comments.delete(comment, by=acting(ada))
        case "edited":
            comments.edit(comment, "look", by=acting(ada))
        case "no access":
            members.remove(table.account, bob, by=acting(ada))
        case "old":
            Comment.objects.update(created_at=timezone.now() - timedelta(days=31))
    assert mentions_of(bob) == []


def test_a_user_who_is_deleted_leaves_the_comments(table, ada):
    say(table, ada, "stays")
    ada.delete()
    assert [it.author_name for it in threads.of_subject(table, ABOUT)[0].shown] == ["ada"]


def test_deleted_comments_are_kept_for_a_month(table, ada):
    comment, _ = say(table, ada, "gone")
    comments.delete(comment, by=acting(ada))
    now = timezone.now()
    comments.tidy(now + timedelta(days=29))
    assert Comment.objects.exists()
    comments.tidy(now + timedelta(days=31))
    assert not CommentThread.objects.exists()
