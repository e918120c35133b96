"""The change feed and the past, against what clients did and saw: each change once, in order, whole, for good."""

import threading
import time
from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any

import requests

from tests.tools.checker.clients import PATIENCE, Endpoint, read_entity, read_time
from tests.tools.checker.history import ABSENT, Change, History, Key, Kind, Restored, Seen
from tests.tools.checker.levels import Violation


def read_change(item: Mapping[str, Any], key: Key | None = None) -> Change:
    before, after = (ABSENT if it is None else read_entity(it) for it in (item["before"], item["after"]))
    key = key or (item["partition_key"], item["row_key"])
    return Change(item["sequence"], key, read_time(item["timestamp"]), before, after, item["request_id"])


class Api:
    """The management API of a server, for a table of an account."""

    def __init__(self, endpoint: Endpoint, table: str, token: str) -> None:
        self._url = f"http://127.0.0.1:{endpoint.port}/ui/api/v1/accounts/{endpoint.account}"
        self._headers = {"Authorization": f"Bearer {token}"}
        self._table = table

    def get(self, path: str, **parameters: Any) -> Any:
        """Get a resource of the API; raises requests.RequestException for temporary failures."""
        url = path if path.startswith("http") else f"{self._url}/{path}"
        answer = requests.get(url, params=parameters, headers=self._headers, timeout=PATIENCE)
        if answer.status_code in (429, 500, 503):
            raise requests.ConnectionError(answer.text)
        assert answer.status_code == 200, answer.text
        return answer.json()

    def changes(self, **start: Any) -> Any:
        return self.get("changes", table=self._table, **start)

    def versions(self, key: Key) -> list[Change]:
        """Return the versions of an entity from the oldest to the newest."""
        page = self.get(f"tables/{self._table}/history", pk=key[0], rk=key[1])
        result = page["items"]
        while page["next"]:
            page = self.get(page["next"])
            result += page["items"]
        return [read_change(item, key) for item in reversed(result)]


class FeedReader:
    """A consumer that keeps each token with the changes up to there, and resumes from it after a failure."""

    def __init__(self, api: Api) -> None:
        self.changes: list[Change] = []
        self._api = api
        self._token = ""
        self._failures: list[BaseException] = []
        self._stop = threading.Event()
        self._is_idle = threading.Event()
        self._thread = threading.Thread(target=self._run)

    def __enter__(self) -> "FeedReader":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join(PATIENCE)
        if self._failures:
            raise self._failures[0]

    def catch_up(self) -> None:
        """Read until two reads after each other have found nothing."""
        for _ in range(2):
            self._is_idle.clear()
            assert self._is_idle.wait(PATIENCE), f"the feed does not answer: {self._failures}"

    def _run(self) -> None:
        sizes = (1, 7, 1000)
        while not self._stop.is_set():
            try:
                self._read(sizes[len(self.changes) % 3])
            except requests.RequestException:  # also a part of an answer
                time.sleep(0.2)
            except BaseException as error:
                self._failures.append(error)
                return

    def _read(self, top: int) -> None:
        start = {"after": self._token} if self._token else {"from": "oldest"}
        page = self._api.changes(top=top, **start)
        self.changes += [read_change(item) for item in page["items"]]
        self._token = page["token"]
        if not page["items"] and not page["has_more"]:
            self._is_idle.set()
        self._stop.wait(0.15)


# laws


def by_key(changes: Sequence[Change]) -> dict[Key, list[Change]]:
    result: dict[Key, list[Change]] = defaultdict(list)
    for it in changes:
        result[it.key].append(it)
    return result


def check_feed(changes: Sequence[Change], final: Mapping[Key, Seen]) -> Iterator[Violation]:
    """Yield violations of promises that a feed keeps whatever clients did; ``final`` is the final state."""
    for sequence, number in Counter(it.sequence for it in changes).items():
        if number > 1:
            yield Violation("no duplicates in the feed", f"{sequence}: {number} times")
    ordered = by_key(changes)
    for own in ordered.values():
        if own[0].before != ABSENT:
            yield Violation("a chain of images", "it does not begin with nothing", own[0])
        for earlier, later in pairwise(own):
            if earlier.after != later.before:
                yield Violation("a chain of images", f"before it was {earlier}", later)
            if (earlier.sequence, earlier.version) >= (later.sequence, later.version):
                yield Violation("the order of an entity", f"after {earlier}", later)
            if earlier.version >= later.version:
                yield Violation("growing versions", f"after {earlier}", later)
    for key, seen in final.items():
        last = ordered[key][-1].after if key in ordered else ABSENT
        if last != seen:
            yield Violation("the feed ends with what is there", f"{key}: {last}, not {seen}")


def check_feed_of(history: History, changes: Sequence[Change]) -> Iterator[Violation]:
    """Check that the feed has all observed operations, nothing else, and change sets as a whole."""
    images = {(it.key, it.after) for it in changes}
    by_value = {(it.key, it.after.value): it for it in changes if it.after != ABSENT}
    deletions = Counter(it.key for it in changes if it.after == ABSENT)
    deleted: Counter[tuple[Key, bool]] = Counter()
    writes = {(it.key, it.value): it for it in history.writes}
    change_sets: dict[int, list[Change | None]] = defaultdict(list)
    for place, write in writes.items():
        change = by_value.get(place)
        if write.kind is Kind.DELETE:
            deleted[write.key, write.ended is not None] += 1
        elif write.version is not None and (change is None or change.version != write.version):
            yield Violation("no gaps in the feed", f"it has {change}", write)
        if write.change_set is not None:
            change_sets[write.change_set].append(change)
    for its in change_sets.values():
        if len({it and it.request for it in its}) > 1:
            yield Violation("change sets are whole in the feed", str(its))
    for place, change in by_value.items():
        if place not in writes:
            yield Violation("nothing is invented in the feed", str(place), change)
    for key in {it.key for it in history.writes}:
        sure, unknown = deleted[key, True], deleted[key, False]
        if not sure <= deletions[key] <= sure + unknown:
            yield Violation(
                "deletions in the feed", f"{key}: {deletions[key]}, acknowledged {sure}, or not {unknown}"
            )
    for read in history.reads:
        for key, seen in read.seen.items():
            if seen != ABSENT and (key, seen) not in images:
                yield Violation("the feed has all that was seen", f"{key}: {seen}", read)


def check_past(history: History, changes: Sequence[Change]) -> Iterator[Violation]:
    """Check that reads of a moment, whenever they are made, see the last changes up to it."""
    ordered = by_key(changes)
    versions = {key: [it.version for it in own] for key, own in ordered.items()}
    for read in history.past:
        assert read.moment is not None
        for key, seen in read.seen.items():
            place = bisect_right(versions.get(key, []), read.moment)
            then = ordered[key][place - 1].after if place else ABSENT
            if seen != then:
                yield Violation("the past is what it was", f"{key}: {seen}, the feed has {then}", read)


def check_restored(history: History, changes: Sequence[Change], restored: Restored) -> Iterator[Violation]:
    """Check that a restored database has what was acknowledged before, and of each entity its first changes."""
    ordered = by_key(changes)
    for key, own in by_key(restored.changes).items():
        if own != ordered.get(key, [])[: len(own)]:
            yield Violation("a restored database has no changes of its own", f"{key}: {own[-1]}")
    values = {(it.key, it.after.value) for it in restored.changes}
    for write in history.writes:
        is_old = write.ended is not None and write.ended < restored.began and write.kind is not Kind.DELETE
        if is_old and (write.key, write.value) not in values:
            yield Violation("a restored database has what was acknowledged", "", write)


def check_versions(
    versions: Mapping[Key, Sequence[Change]], changes: Sequence[Change]
) -> Iterator[Violation]:
    """Check that the lists of versions have the same changes."""
    ordered = by_key(changes)
    for key, listed in versions.items():
        if list(listed) != ordered.get(key, []):
            yield Violation("versions are the changes", f"{key}: {len(listed)}, {len(ordered.get(key, []))}")
