"""One law for all forms of a write: in whatever form changes come, they do to a table what they do to a dict.

A state machine writes in every form: single statements, statements of several requests, change sets, the functions
of local and of distributed relations, edits of people, many entities at once, images, requests of the protocol, and
writes that meet on several connections. After each step the answers, the rows, their reading by filters and the
history are those of the model.
"""

import asyncio
import itertools
import json
import random
import re
import uuid
from collections import defaultdict
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from types import SimpleNamespace
from urllib.parse import quote, unquote

import pytest
from django.conf import settings
from django.db import transaction
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, rule, run_state_machine_as_test
from psycopg import AsyncConnection

from storage.accounts import account_settings, accounts
from storage.accounts.accounts import NewAccount
from storage.cluster import ddl
from storage.domain.access.actor import Actor, ActorKind
from storage.domain.entities.changes import Delete, Insert, Update, Upsert
from storage.domain.entities.entity import Entity, EntityKey, write_fragments
from storage.domain.entities.restoring import Skip, Skipped
from storage.domain.errors import (
    ChangeSetError,
    EntityAlreadyExists,
    EntityTooLarge,
    InvalidDuplicateRow,
    KeyValueTooLarge,
    ResourceNotFound,
    StorageError,
    TooManyProperties,
    UpdateConditionNotSatisfied,
)
from storage.domain.values import encoding
from storage.domain.values.edm import Edm, EdmValue, read, read_datetime
from storage.domain.values.etag import ANY, NEVER, Precondition, write_etag
from storage.domain.values.kinds import AccountKind
from storage.entities import edits, entities
from storage.entities.writing import WriteMode, write_images, write_many
from storage.relations import history
from storage.sql import arrays, batch, change_function, restoring
from storage.sql import entities as statements
from storage.sql.change_rows import change_row
from storage.sql.django import execute, fetch, run, run_in_lane
from storage.sql.failures import RolledBack
from storage.sql.history import Recorder
from storage.sql.lanes import COUNTS, Lanes
from storage.sql.restoring import Image, Images
from storage.sql.statement import Lane
from storage.tables import tables
from storage.undo.reverting import apply_images
from tests import strategies
from tests.examples import of_usual
from tests.protocol.test_table_service import JSON, KEY, running, sender

pytestmark = pytest.mark.django_db(transaction=True)

FUTURE = 4_102_444_800 * 10_000_000  # 2100-01-01, where a clock that was wrong has been
HOUR = 3600 * 10_000_000
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

# keys: those at the limit of an index entry, which holds 2,600 bytes of both, and beyond
CJK = "".join(random.Random(7).choices([chr(code) for code in range(0x4E00, 0x9FA0)], k=866))
PARTITIONS = ("", CJK[:-2])  # after a number of five digits: 2,597 bytes
ROWS = ("a", "b", "abc", "é", "B𐐷", CJK)

# properties: a name that is a prefix of another, and names that sort elsewhere when they are escaped
NAMES = ["A", "AB", "a", "_", "Z9", "é", "u00e9", "名", "𐐷"]
SIZES = {
    Edm.BOOLEAN: 1, Edm.INT32: 4, Edm.INT64: 8, Edm.DOUBLE: 8, Edm.DATETIME: 8, Edm.GUID: 16,
}  # fmt: skip


def units(text):
    return len(text.encode("utf-16-le", "surrogatepass")) // 2


def size(key, properties):
    """Bytes of an entity by the formula that Azure has published."""
    total = 4 + 2 * (units(key.partition_key) + units(key.row_key))
    for name, value in properties.items():
        match value:
            case (Edm.STRING, text):
                total += 4 + 2 * units(text)
            case (Edm.BINARY, data):
                total += 4 + len(data)
            case (type_, _):
                total += SIZES[type_]
        total += 8 + 2 * units(name)
    return total


def large(key, difference):
    """Properties that make an entity so many bytes larger than it may be, an even number."""
    properties = {f"S{n:02}": EdmValue(Edm.STRING, "é\n" * 16_384) for n in range(15)}
    rest = 1024 * 1024 + difference - size(key, {**properties, "R": EdmValue(Edm.STRING, "")})
    return {**properties, "R": EdmValue(Edm.STRING, "x" * (rest // 2))}


@dataclass
class Stored:
    """An entity of the model."""

    properties: dict
    ticks: int


@dataclass
class Recorded:
    """A change in the history; ``at`` and ``was`` are None where they are not known."""

    op: str
    at: int | None
    was: int | None
    image: list | None
    request: str


def refusal_of_size(key, properties, kind):
    if kind is AccountKind.COSMOS:
        return None
    if len(properties) > 252:
        return TooManyProperties
    return EntityTooLarge if size(key, properties) > 1024 * 1024 else None


def become(change, before, kind):
    """Return what a change makes of an entity, None if it deletes it, or the class of the error."""
    if isinstance(change, Insert):
        return EntityAlreadyExists if before is not None else dict(change.entity.properties)
    if isinstance(change, Update | Delete):
        if before is None:
            return ResourceNotFound
        if change.condition.expected not in (None, before.ticks):
            return UpdateConditionNotSatisfied
    if isinstance(change, Delete):
        return None
    properties = dict(change.entity.properties)
    if change.merge and before is not None:
        properties = {**before.properties, **properties}
    if kind is AccountKind.STORAGE:
        properties = dict(sorted(properties.items(), key=lambda it: it[0].encode("utf-16-be")))
    return refusal_of_size(change.key, properties, kind) or properties


def comparable(properties):
    """Properties in a form that tells -0.0 from 0.0, finds NaN equal to itself and keeps the order."""
    return [(name, value.type, encoding.write(value)) for name, value in properties.items()]


def read_text(text, kind):
    members = json.loads(f'{{"":0{text}}}'.replace("\t", ""))
    del members[""]
    return {
        name: read(member, members.get(f"{name}@odata.type"), kind)
        for name, member in members.items()
        if not name.endswith("@odata.type")
    }


TEXT = "CASE WHEN anns = '' THEN vals ELSE entity_content(anns, vals) END"
VERBS = ("insert", "replace", "merge", "upsert", "upsert merge", "delete")
few = st.dictionaries(st.sampled_from(NAMES), strategies.values, max_size=4)
many = st.builds(
    lambda letter, number: {f"{letter}{n:03}": EdmValue(Edm.INT64, n) for n in range(number)},
    st.sampled_from("PQ"),
    st.sampled_from([1, 125, 251, 252, 253]),
)
properties = st.one_of(few, few, few, few, few, many)
keys = st.tuples(st.sampled_from([0, 0, 0, 1]), st.sampled_from([0, 0, 0, 1, 1, 2, 3, 4, 5]))
short_keys = st.tuples(st.just(0), st.integers(0, 4))
conditions = st.sampled_from(["any", "any", "current", "current", "other", "never"])


@dataclass(frozen=True)
class Spec:
    """A change without its key and Timestamp, which the machine adds."""

    verb: str
    key: tuple
    properties: object  # a dict, or the difference of the size from the limit
    condition: str


def specs(verbs=VERBS, keys=keys, properties=properties):
    return st.builds(Spec, st.sampled_from(verbs), keys, properties, conditions)


several = st.lists(specs(), min_size=1, max_size=5, unique_by=lambda it: it.key)
of_one_verb = st.sampled_from(VERBS).flatmap(
    lambda verb: st.lists(specs([verb], properties=few), min_size=2, max_size=6, unique_by=lambda it: it.key)
)
sets = (
    several
    | of_one_verb
    | st.lists(specs(["insert"], short_keys, few), min_size=2, max_size=5, unique_by=lambda it: it.key)
)


class WriteLaw(RuleBasedStateMachine):
    """The machine; ``world`` is the table that it writes to."""

    world = None
    numbers = itertools.count()

    def __init__(self):
        super().__init__()
        self.number = f"{next(self.numbers):05}"
        self.kind = self.world.kind
        bases = PARTITIONS if self.kind is AccountKind.STORAGE else "01"
        self.partitions = [self.number + base for base in bases]
        self.entities = {}
        self.recorded = defaultdict(list)  # additions of this step to the history, by key
        self.latest = {}  # the Timestamps that the history has last
        self.future = set()  # keys that have had a Timestamp of the clock that was wrong
        self.read = 0  # how far the history was checked
        self.requests = itertools.count(1)
        self.has_been_large = False

    # conversion of drawn values to changes

    def key(self, places):
        partition, row = places
        if self.kind is AccountKind.COSMOS:  # its keys have at most 2 KiB
            return EntityKey(f"{self.number}{partition}", f"{row}")
        is_empty = partition == 1 and row == 0
        return EntityKey(self.partitions[partition], "" if is_empty else ROWS[row])

    def condition(self, key, name):
        ticks = self.entities[key].ticks if key in self.entities else 5
        return {
            "any": ANY,
            "current": Precondition(ticks),
            "other": Precondition(ticks + 1),
            "never": Precondition(NEVER),
        }[name]

    def change(self, spec):
        key = self.key(spec.key)
        if spec.verb == "delete":
            return Delete(key, self.condition(key, spec.condition))
        entity = Entity(key, spec.properties, self.kind)
        match spec.verb:
            case "insert":
                return Insert(entity)
            case "upsert" | "upsert merge":
                return Upsert(entity, merge=spec.verb == "upsert merge")
        return Update(entity, self.condition(key, spec.condition), merge=spec.verb == "merge")

    def changes(self, several):
        return [self.change(spec) for spec in several]

    def changes_of_partition(self, several):
        """Return the changes in the partition of the first one."""
        changes = self.changes(several)
        partition_key = changes[0].key.partition_key
        return [change for change in changes if change.key.partition_key == partition_key]

    def recorder(self):
        """Return a recorder with a request of its own, or None without history."""
        self.request = str(uuid.UUID(int=(int(self.number) << 64) + next(self.requests)))
        actor = self.world.actor
        return None if actor is None else Recorder(*actor, self.request)

    @property
    def by(self):
        self.recorder()
        return Actor(ActorKind.USER, "ada", request_id=self.request)

    # the model

    def refusal(self, change):
        """Why a change is refused before the database sees it."""
        if isinstance(change, Delete):
            return None
        refused = refusal_of_size(change.key, change.entity.properties, self.kind)
        if refused is None and self.world.is_distributed and not isinstance(change, Update):
            partition_key, row_key = change.key
            if len((partition_key + row_key).encode()) > 2600:
                return KeyValueTooLarge
        return refused

    def expect(self, changes, before=None):
        """Return what a change set makes of its entities, or the place and class of its failure."""
        state = self.entities if before is None else before
        for place, change in enumerate(changes):
            if error := self.refusal(change):
                return place, error
        made = []
        for place, change in enumerate(changes):
            after = become(change, state.get(change.key), self.kind)
            if isinstance(after, type):
                return place, after
            made.append(after)
        return made

    def note(self, key, after, ticks, recorded_at=None):
        """Take a change that was made into the model."""
        before = self.entities.get(key)
        if after is None:
            assert ticks == before.ticks
            del self.entities[key]
            op = "d"
        else:
            op = "i" if before is None else "u"
            assert before is None or ticks > before.ticks
            assert ticks >= FUTURE or abs(ticks - self.now()) < HOUR
            self.entities[key] = Stored(after, ticks)
        image = None if before is None else comparable(before.properties)
        expected_at = recorded_at if after is None else ticks
        was = None if before is None else before.ticks
        self.recorded[key].append(Recorded(op, expected_at, was, image, self.request))
        if ticks >= FUTURE:
            self.future.add(key)

    @staticmethod
    def now():
        return int((datetime.now(UTC) - EPOCH).total_seconds() * 10_000_000)

    def note_alone(self, change, after, ticks):
        before = self.entities.get(change.key)
        if after is not None and before is not None and before.ticks >= FUTURE:
            assert ticks == before.ticks + 1
        self.note(change.key, after, ticks)

    def note_set(self, changes, made, ticks):
        former = [self.entities[it.key].ticks for it in changes if it.key in self.entities]
        written = {it for it, after in zip(ticks, made, strict=True) if after is not None}
        if not self.world.is_distributed:
            assert len(written) <= 1  # one moment for all
            assert not written or not former or max(written) > max(former)
        at = max(written, default=None) if not self.world.is_distributed else None
        for change, after, its in zip(changes, made, ticks, strict=True):
            self.note(change.key, after, its, at)

    # the forms

    def do_alone(self, change, write):
        """Make a change in a form of single changes."""
        self.note_outcome(change, outcome_of(write, change))
        self.check()

    def note_outcome(self, change, outcome):
        """Take the outcome of a single change into the model."""
        expected = self.expect([change])
        if isinstance(expected, tuple) or isinstance(outcome, tuple):
            assert outcome == expected
        else:
            self.note_alone(change, expected[0], outcome)

    def do_together(self, changes, write):
        """Make changes in a form of change sets."""
        expected, outcome = self.expect(changes), outcome_of(write, changes)
        if isinstance(expected, tuple) or isinstance(outcome, tuple):
            assert outcome == expected
        else:
            self.note_set(changes, expected, outcome)
        self.check()

    def statement(self, change):
        return statements.change(self.world.relation, change, self.recorder())

    def by_function(self, change):
        return run(change_function.apply_one(self.world.relation, change_row(change), self.recorder()))

    def as_set(self, changes):
        return batch.apply(self.world.relation, changes, self.recorder())

    def wait(self, awaitable):
        return self.world.runner.run(awaitable)

    def in_lane(self, statement):
        async def run_it():
            return await self.world.lanes.run(statement)

        return self.wait(run_it())

    # stored rows

    def rows(self):
        """Keys, Timestamps and texts of all entities, whether filters read the same of them, and their relation."""
        relation = self.world.relation
        return [
            (EntityKey(*row[:2]), *row[2:])
            for row in fetch(
                "SELECT pk, rk, ts, text, props = entity_projection(text), place FROM ("
                f"SELECT *, {TEXT} AS text, tableoid::regclass::text AS place FROM {relation}"
                " WHERE pk = ANY (%s)) AS e",
                self.partitions,
            )
        ]

    def check(self):
        """Compare the table and its history with the model."""
        rows = self.rows()
        assert {key: (ticks, comparable(read_text(text, self.kind))) for key, ticks, text, *_ in rows} == {
            key: (it.ticks, comparable(it.properties)) for key, it in self.entities.items()
        }
        for key, _, text, agrees, place in rows:
            assert agrees, text
            assert place.endswith("_long") == (len("".join(key).encode()) > 2600)
        result = defaultdict(list)
        for partition_key, row_key, *row in self.new_history():
            result[EntityKey(partition_key, row_key)].append(row)
        if self.world.actor is None:
            assert not result
        else:
            assert {key: len(rows) for key, rows in result.items()} == {
                key: len(rows) for key, rows in self.recorded.items()
            }
        for key, rows in result.items():
            for row, expected in zip(rows, self.recorded[key], strict=True):
                self.compare(key, row, expected)
        self.recorded.clear()

    def new_history(self):
        columns = f"pk, rk, op, ts, was, CASE WHEN vals IS NOT NULL THEN {TEXT} END, request::text"
        place, condition = "seq", "tbl = %s AND pk = ANY (%s)"
        relation, parameters = self.world.history, [self.world.table.pk, self.partitions]
        if self.world.is_distributed:
            place, condition = "xmin::text::bigint", "pk = ANY (%s)"
            relation, parameters = f"{self.world.relation}_history", [self.partitions]
        text = f"SELECT {place}, {columns} FROM {relation} WHERE {condition} AND {place} > %s ORDER BY 1"
        rows = fetch(text, *parameters, self.read)
        self.read = rows[-1][0] if rows else self.read
        return [row[1:] for row in rows]

    def compare(self, key, row, expected):
        op, at, was, image, request = row
        assert (op, request) == (expected.op, expected.request)
        assert (None if image is None else comparable(read_text(image, self.kind))) == expected.image
        if expected.at is not None:
            assert at == expected.at
        if expected.was is not None or op == "i":
            assert was == expected.was
        latest = self.latest.get(key, 0)
        assert at > latest or latest >= FUTURE
        assert was is None or at > was
        self.latest[key] = at

    @rule(spec=specs(), form=st.sampled_from(["single", "lane", "function", "set"]))
    def change_alone(self, spec, form):
        write = {
            "single": lambda change: run(self.statement(change)),
            "lane": lambda change: self.in_lane(self.statement(change)),
            "function": self.by_function,
            "set": lambda change: run(self.as_set([change]))[0],
        }[form]
        self.do_alone(self.change(spec), write)

    @rule(changes=sets, in_lane=st.booleans())
    def change_set(self, changes, in_lane):
        runner = self.in_lane if in_lane else run
        self.do_together(self.changes_of_partition(changes), lambda changes: runner(self.as_set(changes)))

    @rule(
        verb=st.sampled_from(VERBS[:5]),
        difference=st.sampled_from([-16, 0, 2]),
        form=st.sampled_from(["single", "set"]),
    )
    def large_entity(self, verb, difference, form):
        """Insert or change an entity that is nearly as large as it may be, and delete it soon after."""
        if self.kind is AccountKind.COSMOS or self.has_been_large:
            return
        self.has_been_large = True  # once takes as long as all other steps
        key = (0, 2)
        spec = Spec(verb, key, large(self.key(key), difference), "any")
        forms = {"single": lambda it: run(self.statement(it)), "set": lambda it: run(self.as_set([it]))[0]}
        self.do_alone(self.change(spec), forms[form])
        value = EdmValue(Edm.BINARY, b"x" * 3)
        for properties in ({"B": value}, {"R": EdmValue(Edm.STRING, ""), "B": value}):
            for condition in ("never", "any"):
                self.do_alone(self.change(Spec("merge", key, properties, condition)), forms[form])
        self.do_alone(self.change(Spec("delete", key, {}, "any")), forms[form])

    @rule(form=st.sampled_from(["single", "set"]))
    def entity_of_many_properties(self, form):
        """Merge into an entity that has nearly as many properties as it may have, and delete it soon after."""
        key, number = (0, 3), EdmValue(Edm.INT64, 1)
        forms = {"single": lambda it: run(self.statement(it)), "set": lambda it: run(self.as_set([it]))[0]}
        full = {f"P{n:03}": number for n in range(251)}
        for verb, properties in (
            ("upsert", full),
            ("merge", {"A": number, "B": number}),
            ("upsert merge", {"A": number, "B": number}),
            ("merge", {"A": number, "P000": number}),
            ("delete", {}),
        ):
            self.do_alone(self.change(Spec(verb, key, properties, "any")), forms[form])

    @rule(places=keys)
    def clock_that_was_ahead(self, places):
        key = self.key(places)
        if key in self.entities and self.entities[key].ticks < FUTURE:
            self.entities[key].ticks = FUTURE + len(self.future)
            self.future.add(key)
            execute(
                f"UPDATE {self.world.relation} SET ts = %s WHERE (pk, rk) = (%s, %s)",
                *(self.entities[key].ticks, *key),
            )

    @rule(verb=st.sampled_from(VERBS), condition=conditions)
    def set_of_one_verb(self, verb, condition):
        """Change one entity that exists and one that does not."""
        self.apply_as_set([Spec("upsert", (0, 0), {}, "any"), Spec("upsert", (0, 2), {}, "any")])
        self.apply_as_set([Spec("delete", (0, 2), {}, "any")])
        value = {"A": EdmValue(Edm.INT32, 1)}
        self.apply_as_set([Spec(verb, (0, 0), value, condition), Spec(verb, (0, 2), value, "any")])

    @rule()
    def deletion_beside_a_later_entity(self):
        self.apply_as_set([Spec("upsert", (0, 0), {}, "any"), Spec("upsert", (0, 1), {}, "any")])
        self.clock_that_was_ahead((0, 0))
        self.apply_as_set([Spec("upsert", (0, 0), {}, "any"), Spec("delete", (0, 1), {}, "current")])

    def apply_as_set(self, several):
        self.do_together(self.changes(several), lambda changes: run(self.as_set(changes)))


class LocalLaw(WriteLaw):
    """The forms that relations have which are not distributed."""

    @rule(several=of_one_verb)
    def several_requests_in_one_statement(self, several):
        changes, outcomes = self.changes(several), {}
        expected = [self.expect([change]) for change in changes]
        requests, together, done = {}, {}, {}
        for change in changes:
            if self.refusal(change):
                continue
            statement = self.statement(change)
            requests[change.key] = self.request
            if statement.combination is None:
                done[change.key] = statement
            else:
                together[change.key] = statement
        # as storage.sql.combining does it: statements without a combination run alone
        for combination in {it.combination: None for it in together.values()}:
            names = sorted(key for key, it in together.items() if it.combination is combination)
            outcomes |= run_in_lane(combination.statement([together[key].parameters for key in names]))
        made = {it.key for it, after in zip(changes, expected, strict=True) if isinstance(after, list)}
        assert set(outcomes) == made & set(together)
        for change in changes:
            if change.key in requests:
                self.request = requests[change.key]
                alone = done.get(change.key) or together[change.key]
                self.note_outcome(change, outcomes.get(change.key) or outcome_of(run, alone))
        self.check()

    @rule(
        several=st.sampled_from(VERBS).flatmap(
            lambda verb: st.lists(
                specs([verb], properties=few), min_size=4, max_size=9, unique_by=lambda it: it.key
            )
        )
    )
    def requests_at_once(self, several):
        """Enough of a kind that the lanes combine them; each is recorded as its own request."""
        changes = [it for it in self.changes(several) if not self.refusal(it)]
        asked = [(self.statement(change), self.request) for change in changes]
        for change, outcome, (_, request) in zip(changes, self.gather(asked), asked, strict=True):
            self.request = request
            self.note_outcome(change, outcome)
        self.check()

    def gather(self, asked):
        async def run_all():
            each = (self.world.lanes.run(statement) for statement, _ in asked)
            return await asyncio.gather(*each, return_exceptions=True)

        return [outcome_of(result_of, outcome) for outcome in self.wait(run_all())]

    @rule(
        several=st.lists(
            specs(keys=st.sampled_from([(0, 0), (0, 1), (1, 1)]), properties=few), min_size=2, max_size=4
        )
    )
    def requests_that_race(self, several):
        """Change the same entities at once: what happens is what happens in some order."""
        changes = self.changes(several)
        asked = [(self.statement(change), self.request) for change in changes]
        outcomes = self.gather(asked)
        for order in itertools.permutations(range(len(changes))):
            if self.is_explained(order, changes, outcomes):
                break
        else:
            raise AssertionError(f"no order explains {outcomes} of {changes} on {self.entities}")
        for place in order:
            if not isinstance(outcomes[place], tuple):
                self.request = asked[place][1]
                [after] = self.expect([changes[place]])
                self.note(changes[place].key, after, outcomes[place])
        self.check()

    def is_explained(self, order, changes, outcomes):
        state, latest = dict(self.entities), {}
        for place in order:
            change, outcome = changes[place], outcomes[place]
            expected = self.expect([change], state)
            if isinstance(outcome, tuple) or isinstance(expected, tuple):
                if expected != outcome:
                    return False
                continue
            before = state.get(change.key)
            if expected[0] is None:
                if outcome != before.ticks:
                    return False
                del state[change.key]
            else:
                last = before.ticks if before else latest.get(change.key, 0)
                if outcome <= last and (before or last < FUTURE):
                    return False
                state[change.key] = Stored(expected[0], outcome)
            latest[change.key] = outcome
        return True

    @rule(
        first=st.lists(specs(properties=few), min_size=1, max_size=2, unique_by=lambda it: it.key),
        second=st.lists(specs(properties=few), min_size=1, max_size=2, unique_by=lambda it: it.key),
        is_kept=st.booleans(),
    )
    def write_that_waits(self, first, second, is_kept):
        """Write on one connection what another has written but not committed: it waits, and sees the outcome."""
        first, second = self.changes_of_partition(first), self.changes_of_partition(second)
        if isinstance(self.expect(first), tuple) or any(map(self.refusal, second)):
            return
        made = self.expect(first)
        kept = dict(self.entities)
        with transaction.atomic():
            ticks = run(self.as_set(first))
            self.note_set(first, made, ticks)
            statement = self.statement(second[0]) if len(second) == 1 else self.as_set(second)
            request = self.request
            task = self.wait(self.begin(statement))
            transaction.set_rollback(not is_kept)
        if not is_kept:
            self.entities, self.recorded = kept, defaultdict(list)
        self.request = request
        if len(second) == 1:
            self.do_alone(second[0], lambda _: self.wait(ended(task)))
        else:
            self.do_together(second, lambda _: self.wait(ended(task)))

    async def begin(self, statement):
        """Begin a statement, up to where it ends or waits for a lock."""
        task = asyncio.ensure_future(asyncio.gather(self.world.lanes.run(statement), return_exceptions=True))
        waiting = "SELECT count(*) FROM pg_locks WHERE NOT granted"
        while not task.done():
            cursor = await self.world.observer.execute(waiting)
            if await cursor.fetchone() != (0,):
                break
            await asyncio.wait([task], timeout=0.001)
        return task

    @rule(
        changes=st.lists(
            specs(["insert"], short_keys, few), min_size=2, max_size=5, unique_by=lambda it: it.key
        ),
        data=st.data(),
    )
    def halves(self, changes, data):
        """Insert in two statements of one transaction; the second is made while the first runs."""
        changes = sorted(self.changes(changes), key=lambda it: it.key)
        cut = data.draw(st.integers(1, len(changes) - 1))

        def write(changes):
            recorder = self.recorder()
            made = batch.Halves(self.world.relation, changes[:cut], recorder)

            async def run_both():
                return await self.world.lanes.run_halves(made.first, lambda: made.second(changes[cut:]))

            try:
                return self.wait(run_both())
            except RolledBack:  # the halves have different Timestamps; the service does the same
                whole = batch.apply(self.world.relation, changes, recorder)
                return self.wait(self.world.lanes.run(whole))

        # else they take the Timestamp of a deletion, which the first half does not know
        if self.future.isdisjoint(it.key for it in changes):
            self.do_together(changes, write)

    # many entities, and what people edit

    @rule(spec=specs(properties=few | many), is_known=st.booleans())
    def edit(self, spec, is_known):
        change = self.change(spec)
        known = entities.get(self.world.table, change.key) if is_known else None

        def write(change):
            done = edits.apply_one(self.world.table, change, by=self.by, known=known)
            stored = entities.get(self.world.table, change.key)
            after = [(it.key, *it[1:]) for it in done.after.values()]
            assert after == ([] if stored is None else [(stored.key, *stored[1:])])
            return done.edits[change.key].timestamp

        self.do_alone(self.limits_first(change), write)

    def expect_edits(self, changes):
        """Return the same as ``expect``, but merges are made before: beyond the limits they are refused first."""
        for place, change in enumerate(changes):
            error = self.refusal(change)
            if error is None and getattr(change, "merge", False) and change.key in self.entities:
                error = become(Upsert(change.entity, merge=True), self.entities[change.key], self.kind)
            if isinstance(error, type):
                return place, error
        return self.expect(changes)

    def limits_first(self, change):
        """Drop the condition of a merge beyond the limits: it is made before the condition is looked at."""
        if not isinstance(change, Update) or not change.merge:
            return change
        unconditional = replace(change, condition=ANY)
        [outcome] = [self.expect([unconditional])]
        is_beyond = isinstance(outcome, tuple) and outcome[1] is not ResourceNotFound
        return unconditional if is_beyond else change

    @rule(several=several)
    def edits(self, several):
        """Edit entities of several partitions together."""
        changes = [self.limits_first(change) for change in self.changes(several)]
        partitions = sorted({it.key.partition_key for it in changes})
        parts = {name: [it for it in changes if it.key.partition_key == name] for name in partitions}
        expected = {name: self.expect_edits(part) for name, part in parts.items()}
        failed = next((name for name, made in expected.items() if isinstance(made, tuple)), None)
        outcome = outcome_of(partial(edits.apply, self.world.table, by=self.by), changes)
        if isinstance(outcome, tuple) or failed is not None:
            place, error = expected[failed]
            assert (changes[outcome[0]], outcome[1]) == (parts[failed][place], error)
        else:
            for name, part in parts.items():
                self.note_set(part, expected[name], [outcome.edits[it.key].timestamp for it in part])
        self.check()

    @rule(
        several=st.lists(st.tuples(keys, few), min_size=1, max_size=6), mode=st.sampled_from(list(WriteMode))
    )
    def many_entities(self, several, mode):
        """Write entities one after the other, also under the same keys."""
        written = [Entity(self.key(places), values, self.kind) for places, values in several]
        by, counts, refused = self.by, dict.fromkeys(("inserted", "changed", "skipped"), 0), []
        result = write_many(self.world.table, written, mode, by=by)
        stored = {key: ticks for key, ticks, *_ in self.rows()}
        for place, entity in enumerate(written):
            change = Insert(entity) if mode.is_insertion else Upsert(entity, merge=mode is WriteMode.MERGE)
            made = self.expect([change])
            if isinstance(made, list):
                counts["changed" if entity.key in self.entities else "inserted"] += 1
                following = sum(it.key == entity.key for it in written[place + 1 :])
                self.note(entity.key, made[0], stored[entity.key] - (0 if mode.is_insertion else following))
            elif mode is WriteMode.SKIP and made[1] is EntityAlreadyExists:
                counts["skipped"] += 1
            else:
                refused.append((place, made[1]))
        for rows in self.recorded.values():  # the Timestamps between are not answered
            for row, following in itertools.pairwise(rows):
                row.at = following.was = None
        assert {name: getattr(result, name) for name in counts} == counts
        assert {place: type(error) for place, error in result.refused} == dict(refused)
        self.check()

    # images

    images = st.lists(
        st.tuples(keys, st.sampled_from(["absent", "current", "current", "other"]), st.none() | few, st.booleans()),
        min_size=1, max_size=6, unique_by=lambda it: it[0],
    )  # fmt: skip

    @rule(several=images, is_collected=st.booleans())
    def images_of_entities(self, several, is_collected):
        """Make entities equal to images, those that are in the expected version."""
        listed = sorted((self.image(*it) for it in several), key=lambda it: it[:2])
        counts, skipped = dict.fromkeys(("inserted", "changed", "deleted", "unchanged"), 0), []
        after = {}
        for partition_key, row_key, expected, text, _ in listed:
            key = EntityKey(partition_key, row_key)
            before = self.entities.get(key)
            new = None if text is None else read_text(text, self.kind)
            if expected is None and before is not None:
                skipped.append(Skipped(key, Skip.EXISTS))
            elif expected is not None and (before is None or before.ticks != expected):
                skipped.append(Skipped(key, Skip.GONE if before is None else Skip.CHANGED))
            elif (before and comparable(before.properties)) == (None if new is None else comparable(new)):
                counts["unchanged"] += 1
            else:
                after[key] = new
                counts["inserted" if before is None else "deleted" if new is None else "changed"] += 1
        by = self.by
        if is_collected:
            rows = [(*it[:2], None if it[2] is None else str(it[2]), it[3]) for it in listed]
            text = "SELECT pk, rk, expected::bigint, vals FROM unnest($1::text[], $2::text[], $3::text[], $4::text[])"
            source = Images(f"{text} AS images (pk, rk, expected, vals)", arrays.columns(rows))
            done = apply_images(self.world.table, source, by=by)
        else:
            recorder = self.recorder()
            with transaction.atomic():
                has_long = restoring.inserts_long(listed)
                done = write_images(self.world.relation, listed, recorder, has_long=has_long)
        assert {name: getattr(done, name) for name in counts} == counts
        assert (done.skipped, sorted(done.examples, key=lambda it: it.key)) == (len(skipped), skipped)
        stored = {key: ticks for key, ticks, *_ in self.rows()}
        for key, new in after.items():
            self.note(key, new, self.entities[key].ticks if new is None else stored[key])
        self.check()

    def image(self, places, expected, values, has_patch):
        key = self.key(places)
        before = self.entities.get(key)
        ticks = {"absent": None, "current": before and before.ticks, "other": 5}[expected]
        if values is None:
            return Image(*key, ticks, None)
        written = write_fragments(values, self.kind)
        patch = None
        if has_patch and before is not None and ticks == before.ticks:
            removed = json.dumps(dict.fromkeys(before.properties))
            # the later of two values of a name counts; read and written again, infinity would be no JSON
            patch = f"{{{','.join(filter(None, (removed[1:-1], written.projection[1:-1])))}}}"
        return Image(*key, ticks, written.content, patch)

    # data of older versions

    @rule(places=keys)
    def row_of_an_older_version(self, places):
        """Give a row the form of versions before 1.1, whose annotations have a column of their own."""
        key = self.key(places)
        if key in self.entities:
            pieces = write_fragments(self.entities[key].properties, self.kind).content.split("\t")
            annotations = "".join(f"\n{it}" for it in pieces[1::2])
            execute(
                f"UPDATE {self.world.relation} SET anns = %s, vals = %s WHERE (pk, rk) = (%s, %s)",
                *(annotations, "".join(pieces[::2]), *key),
            )
            self.check()


class ProtocolLaw(LocalLaw):
    """Requests of the protocol too."""

    @rule(spec=specs(keys=short_keys))
    def request_alone(self, spec):
        self.do_alone(self.change(spec), self.send)

    def send(self, change):
        method, path, headers, body = self.written(change)
        reply = self.wait(self.world.send(method, path, body, headers))
        self.request = reply.headers["x-ms-request-id"]
        if reply.status >= 400:
            error = ERRORS[reply.error]
            assert reply.status == error.status
            raise error
        assert reply.status == (201 if method == "POST" else 204)
        assert ("ETag" in reply.headers) == (method != "DELETE")
        return self.ticks_of(reply.headers.get("ETag"), change)

    def ticks_of(self, etag, change):
        if isinstance(change, Delete):
            return self.entities[change.key].ticks
        return read_datetime(re.fullmatch(r"W/\"datetime'(.*)'\"", unquote(etag))[1])

    def written(self, change):
        partition_key, row_key = (quote(it, safe="") for it in change.key)
        path = f"/people(PartitionKey='{partition_key}',RowKey='{row_key}')"
        headers = dict(JSON)
        if isinstance(change, Update | Delete):
            ticks = change.condition.expected
            headers["If-Match"] = "*" if ticks is None else 'W/"x"' if ticks == NEVER else write_etag(ticks)
        if isinstance(change, Delete):
            return "DELETE", path, headers, b""
        # one by one, because more may be sent than fit
        lines = [write_fragments({name: value}).content for name, value in change.entity.properties.items()]
        content = "".join(lines).replace("\t", "")
        if isinstance(change, Insert):
            keys = ",".join(
                f"{json.dumps(name)}:{json.dumps(text)}"
                for name, text in zip(("PartitionKey", "RowKey"), change.key, strict=True)
            )
            return "POST", "/people", headers, f"{{{keys}{content}}}".encode()
        return "MERGE" if change.merge else "PUT", path, headers, f"{{{content.lstrip()[1:]}}}".encode()

    @rule(several=st.lists(specs(keys=short_keys), min_size=1, max_size=5, unique_by=lambda it: it.key))
    def batch_request(self, several):
        self.do_together(self.changes(several), self.send_batch)

    def send_batch(self, changes):
        parts = []
        for change in changes:
            method, path, headers, body = self.written(change)
            lines = [
                f"{method} http://127.0.0.1:10002/account1{path} HTTP/1.1",
                *(f"{n}: {v}" for n, v in headers.items()),
            ]
            head = "Content-Type: application/http\r\nContent-Transfer-Encoding: binary"
            parts.append(
                f"--changeset_1\r\n{head}\r\n\r\n{CRLF.join(lines)}\r\n\r\n".encode() + body + b"\r\n"
            )
        start = b"--batch_1\r\nContent-Type: multipart/mixed; boundary=changeset_1\r\n\r\n"
        body = b"".join((start, *parts, b"--changeset_1--\r\n--batch_1--\r\n"))
        headers = {"Content-Type": "multipart/mixed; boundary=batch_1"}
        reply = self.wait(self.world.send("POST", "/$batch", body, headers))
        self.request = reply.headers["x-ms-request-id"]
        assert reply.status == 202
        answers = [answer.decode() for answer in reply.body.split(b"HTTP/1.1 ")[1:]]
        if len(answers) == 1 and int(answers[0][:3]) >= 400:
            error = ERRORS[re.search(r'"code":"(\w+)"', answers[0])[1]]
            assert int(answers[0][:3]) == error.status
            place = re.search(r'"value":"(\d+):', answers[0])
            assert place or len(changes) == 1  # some errors of a single change have no place
            raise ChangeSetError(int(place[1]) if place else 0, error())
        etags = [re.search(r"ETag: (\S+)", answer) for answer in answers]
        return [self.ticks_of(etag and etag[1], change) for etag, change in zip(etags, changes, strict=True)]


CRLF = "\r\n"
ERRORS = {
    it.__name__: it
    for it in (
        EntityAlreadyExists, EntityTooLarge, ResourceNotFound, TooManyProperties, UpdateConditionNotSatisfied,
    )
}  # fmt: skip


def outcome_of(write, argument):
    """Return what a write returns, or the place and class of its error."""
    try:
        return write(argument)
    except ChangeSetError as failure:
        return failure.index, type(failure.error)
    except StorageError as error:
        return 0, type(error)


def result_of(outcome):
    if isinstance(outcome, Exception):
        raise outcome
    return outcome


async def ended(task):
    [outcome] = await task
    return result_of(outcome)


@pytest.fixture
def world(patient_lanes, monkeypatch):
    """Return `world(kind=..., has_history=..., is_distributed=...)`, which makes a table and its writers."""
    monkeypatch.setitem(COUNTS, Lane.KEY, 3)
    monkeypatch.setitem(COUNTS, Lane.FILTER, 1)
    with asyncio.Runner() as runner:
        lanes = Lanes(settings.LANES_CONNINFO)
        runner.run(lanes.open())
        observer = runner.run(AsyncConnection.connect(settings.LANES_CONNINFO, autocommit=True))

        def make(kind=AccountKind.STORAGE, *, has_history=True, is_distributed=False):
            account = accounts.add("account1", NewAccount(KEY, kind=kind))
            if not has_history:
                account_settings.change(account, history_days=0)
            table = tables.create(account, "people")
            relation = f"entity_{table.pk}"
            if is_distributed:
                for command in ddl.create(table.pk, kind):
                    execute(command)
                relation = f"distributed_{table.pk}"
            recorder = history.recorder(table.account, Actor(ActorKind.USER, "ada"))
            return SimpleNamespace(
                kind=kind,
                table=table,
                relation=relation,
                history=f"history_{account.pk}",
                actor=None if recorder is None else (recorder.relation, recorder.actor),
                is_distributed=is_distributed,
                runner=runner,
                lanes=lanes,
                observer=observer,
            )

        yield make
        runner.run(observer.close())
        lanes.close()


def obeys(machine, world, examples):
    """Run a machine against a table."""
    machine = type(machine.__name__, (machine,), {"world": world, "numbers": itertools.count()})
    run_state_machine_as_test(
        machine, settings=hypothesis_settings(max_examples=of_usual(examples), stateful_step_count=25)
    )


def test_forms_in_all_combinations(world):
    """Write each verb and condition in each form with a way of its own, which few random examples meet."""
    law = type("Law", (LocalLaw,), {"world": world(), "numbers": itertools.count()})()
    number, text = EdmValue(Edm.INT64, 1), EdmValue(Edm.STRING, "2")
    one, two = {"b": number, "A": number}, {"A": text}
    both, third = [(0, 0), (0, 2)], (0, 3)

    def each(verb, properties, condition="any", keys=both):
        """Return changes that meet the condition but for the first of them."""
        conditions = [condition, *["any"] * (len(keys) - 1)]
        return [Spec(verb, *it) for it in zip(keys, [properties] * len(keys), conditions, strict=True)]

    def store(*keys):
        law.apply_as_set(each("upsert", one, keys=keys or both))

    for verb, condition in itertools.product(VERBS, ("any", "current", "other", "never")):
        store()
        law.apply_as_set(each(verb, two, condition)[::-1])
        store()
        law.several_requests_in_one_statement(each(verb, two, condition))
        for is_known in (True, False):
            store()
            law.edit(each(verb, two, condition)[0], is_known)
            law.edit(each(verb, {"b": text, "A": text})[1], is_known)
    for verb, form in itertools.product(VERBS, ("single", "lane", "function", "set")):
        store()
        law.row_of_an_older_version(both[0])
        law.change_alone(each(verb, two)[0], form)
    for verb in VERBS:
        store()
        for key in both:
            law.row_of_an_older_version(key)
        law.apply_as_set(each(verb, two))
        law.apply_as_set([Spec(verb, both[1], {"b": text}, "any"), Spec(verb, both[0], two, "any")])
        law.requests_that_race(each(verb, two) + each(verb, one) + each(verb, two))
    # limits that the last of several changes passes
    for verb in ("merge", "upsert merge"):
        store()
        law.apply_as_set([Spec("upsert", third, {f"P{n:03}": number for n in range(251)}, "any")])
        law.apply_as_set([*each(verb, two), Spec(verb, third, {"A": number, "B": number}, "any")])
        law.apply_as_set(each("delete", {}, keys=[third]))
    for verb, difference in itertools.product(("insert", "merge"), (0, 2)):
        law.has_been_large = False
        law.large_entity(verb, difference, "single")
    beyond = large(law.key(third), -14) | {"Z": EdmValue(Edm.BINARY, b"x")}  # by one byte
    law.change_alone(Spec("insert", third, beyond, "any"), "single")
    for is_collected in (True, False):
        store()
        law.images_of_entities([(both[0], "current", two, True), (both[1], "other", two, True)], is_collected)
    for key in both:
        law.apply_as_set(each("delete", {}, keys=[key]))
    inserts = each("insert", one)
    law.halves(inserts, SimpleNamespace(draw=lambda _: 1))
    with pytest.raises(ChangeSetError) as failure:
        edits.apply(law.world.table, law.changes(each("upsert", two, keys=[third, third])), by=law.by)
    assert (failure.value.index, type(failure.value.error)) == (1, InvalidDuplicateRow)


def test_writes_and_requests_with_history(world):
    made = world()
    with asyncio_service(made) as made.send:
        obeys(ProtocolLaw, made, 12)


@contextmanager
def asyncio_service(world):
    """Run the Table service in the loop of a world; yields what sends requests to it."""
    service = running()
    yield sender(world.runner.run(service.__aenter__()))
    world.runner.run(service.__aexit__(None, None, None))


@pytest.mark.long
def test_writes_without_history(world):
    obeys(LocalLaw, world(has_history=False), 8)


@pytest.mark.long
def test_writes_of_a_cosmos_account(world):
    obeys(LocalLaw, world(AccountKind.COSMOS), 8)


@pytest.mark.long
def test_writes_to_a_distributed_relation(world):
    made = world(is_distributed=True)
    obeys(WriteLaw, made, 8)
    execute(f"DROP TABLE {made.relation}, {made.relation}_history; {batch.drop_function(made.relation)}")
