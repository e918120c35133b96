"""The migration after which the history is the only record of a change, applied backwards and forwards with stored
data.
"""

from importlib import import_module

import pytest
from django.core.management import call_command
from django.db.migrations.loader import MigrationLoader
from django.utils import timezone

from storage import migrations
from storage.accounts import account_settings, accounts
from storage.activity import activity
from storage.activity.activity import ActivityFilter
from storage.domain.access.actor import Actor, ActorKind
from storage.domain.entities.changes import Delete, Insert, Update
from storage.domain.entities.entity import Entity, EntityKey, read_stored
from storage.domain.values.edm import Edm, EdmValue
from storage.domain.values.etag import ANY
from storage.entities import edits, entities
from storage.entities.subject import EntityVerb
from storage.history import changes, retention
from storage.models import Activity
from storage.sql.django import execute, fetch
from storage.tables import tables
from storage.undo.undo import undo

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.long]

ADA = Actor(ActorKind.USER, "ada")
BEFORE = "0014_squashed_0035_branch_is_whole"
TEXT = "\0\ud800 '\"\\"


def migrate(target=None):
    """Migrate the storage to a migration; without one everything, since a way back takes what depends on it along."""
    where = () if target is None else ("storage", target)
    call_command("migrate", *where, verbosity=0, interactive=False)


LATER = """
from django.db import migrations, models
from storage.models import EntityChange

stored = []

class Migration(migrations.Migration):
    dependencies = [("storage", "{last}")]
    operations = [
        migrations.AddField("account", "strict", models.BooleanField(default=False, db_default=False)),
        migrations.RunPython(migrations.RunPython.noop, lambda *_: stored.append(EntityChange.objects.count())),
    ]
"""


@pytest.fixture
def later(tmp_path, monkeypatch, settings):
    """Add a migration after all others, which notes the stored rows when it is reversed."""
    last = MigrationLoader(None).graph.leaf_nodes("storage")[0][1]
    package = tmp_path / "with_later"
    package.mkdir()
    (package / "__init__.py").write_text(f"__path__ = {[*migrations.__path__, str(package)]}")
    (package / "later.py").write_text(LATER.format(last=last))
    monkeypatch.syspath_prepend(tmp_path)
    settings.MIGRATION_MODULES = {"storage": "with_later"}
    migrate()
    yield import_module("with_later.later")
    migrate(last)


@pytest.fixture
def older(later):
    """Run a block in the database of the version before."""
    yield lambda: migrate(BEFORE)
    migrate()


def entity(row_key, text):
    return Entity(EntityKey("p", row_key), {"T": EdmValue(Edm.STRING, text)})


def stored():
    columns = "row_key, before, after, ticks_before, ticks_after"
    return fetch(f"SELECT {columns} FROM storage_entitychange ORDER BY activity_id, place")


def test_changes_stay_readable_through_the_migration_back_and_forth(older, later):
    account = accounts.add("acme")
    people = tables.create(account, "people")
    inserted = edits.apply(people, [Insert(entity(name, TEXT)) for name in "ba"], by=ADA)
    edits.apply(
        people, [Update(entity("a", "2"), ANY, merge=False), Delete(EntityKey("p", "b"), ANY)], by=ADA
    )
    ids = list(Activity.objects.filter(entities__gt=0).order_by("pk").values_list("pk", flat=True))
    now = entities.get(people, EntityKey("p", "a"))
    content = inserted.after[EntityKey("p", "a")].content.decode()
    assert stored() == []

    older()  # the older version finds the entities where it looks for them
    assert later.stored == [4]  # before the first step back, when all columns are there
    times = [edit.timestamp for edit in inserted.edits.values()]
    assert stored() == [
        ("b", None, content, None, times[0]),
        ("a", None, content, None, times[1]),
        ("a", content, now.content.decode(), times[1], now.timestamp),
        ("b", content, None, times[0], None),
    ]
    with pytest.raises(Exception, match="only added to"):
        execute("UPDATE storage_entitychange SET place = 9")
    migrate()

    # changes stored by an older version are shown, found and undone, with the history and without
    shown = activity.page(ActivityFilter(account_ids=[account.pk], verbs=[EntityVerb.CHANGE])).activities
    assert [(it.pk, it.changed, it.first_key["row_key"], it.entities) for it in shown] == [
        (ids[1], 2, "a", 0)
    ]
    assert [it.pk for it in activity.page(ActivityFilter(key="b")).activities] == ids[::-1]
    assert [(it.key.row_key, it.kind) for it in changes.made_by(shown[0])] == [
        ("a", "update"),
        ("b", "delete"),
    ]
    account_settings.change(account, history_days=0)
    retention.tidy(timezone.now())
    undone = undo(shown[0], ADA)
    for name in "ab":
        assert read_stored(entities.get(people, EntityKey("p", name))).properties["T"].value == TEXT
    assert undone.effective_verb is EntityVerb.CHANGE
    assert [it.key.row_key for it in changes.made_by(Activity.objects.get(pk=ids[0]))] == ["b", "a"]
