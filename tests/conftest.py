"""The worlds tests run in: a database for the session, a live server, tools of the machine."""

import asyncio
import itertools
import os
import re
import shutil
import signal
import sys
import tempfile
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

import hypothesis
import pytest
from django.conf import settings
from django.db import connections
from django.utils import timezone, translation
from psycopg.conninfo import make_conninfo

from storage.server import garbage
from storage.server.database import POOL, close_pools
from storage.sql.lanes import SETTINGS
from tests import distribution, emptying, examples, prepared, programs
from tests.cluster.real import site
from tests.distribution import Tier
from tests.durations import Meter
from tests.live_server import LiveServer, start_server
from tests.seeds import SHARED, seeded, shared_folder

# also where pytest was started directly, as manage.py test does it
sys.dont_write_bytecode = False
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)

examples.register()

TIER = pytest.StashKey[Tier]()
METER = Meter()

pytest_plugins = ["tests.fixtures"]

FINISHED = itertools.count(1)  # tests of this process
LIFE = 30  # tests that one connection serves


def pytest_addoption(parser):
    parser.addoption(
        "--fast",
        action="store_true",
        help="every layer in a minute: no browser, no SDK, few variants and examples",
    )
    parser.addoption(
        "--share", type=int, default=1, metavar="N", help="one of so many tests of the fast tier"
    )
    parser.addoption("--all", action="store_true", help="the long tier, too")
    parser.addoption("--long", action="store_true", help="the long tier alone")


def pytest_configure(config):
    config.addinivalue_line("markers", "slow: not in the fast tier")
    config.addinivalue_line("markers", "long: not in the default tier")
    config.stash[TIER] = distribution.tier(config)
    METER.install()
    hypothesis.settings.load_profile("fast" if config.getoption("fast") else "suite")
    if SHARED not in os.environ:
        stack = ExitStack()
        stack.enter_context(shared_folder())
        config.add_cleanup(stack.close)
    if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
        # a shell that starts the tests in the background ignores it, and the servers of the tests would inherit that
        signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_report_header(config):
    return f"tier: {distribution.SENTENCES[config.stash[TIER]]}"


def pytest_ignore_collect(collection_path, config):
    tier = config.stash[TIER]
    if tier is Tier.FAST and distribution.is_slow(collection_path):
        return True
    if tier is Tier.DEFAULT and distribution.is_whole_long(collection_path):
        return True
    return None


def pytest_xdist_auto_num_workers(config):
    return distribution.workers(config.args, distribution.tier(config))


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node):
    node.workerinput["is_named"] = distribution.is_named(node.config)


def pytest_xdist_make_scheduler(config, log):
    return distribution.Portions(config, log)


@pytest.hookimpl(wrapper=True)
def pytest_collection():
    """Collect without the garbage collector, which would search all tests again and again in vain.

    Objects that exist then stay until the end. Later collections are as rare as in a server, also in workers of
    xdist.
    """
    garbage.pause()
    try:
        return (yield)
    finally:
        garbage.keep()


def pytest_make_parametrize_id(val, argname):
    return distribution.name_of_parameter(val, argname)


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config, items):
    if config.getoption("fast"):
        items[:] = distribution.fast_tier(items)[:: config.getoption("share")]
    if (tier := config.stash[TIER]) in {Tier.DEFAULT, Tier.LONG}:
        default, long = distribution.split_tiers(items)
        items[:], left_out = (default, long) if tier is Tier.DEFAULT else (long, default)
        config.hook.pytest_deselected(items=left_out)
    items.sort(key=lambda item: distribution.place(item.nodeid))


def pytest_runtest_logfinish(nodeid):
    """Replace the connection of this process now and then: it gets slow with every relation that it has seen."""
    connection = connections["default"]
    if next(FINISHED) % LIFE or connection.in_atomic_block or is_in_event_loop():
        return
    connection.close()  # into the pool
    connection.close_pool()


def is_in_event_loop():
    """Return whether an event loop runs in this thread, such as Playwright's; Django then refuses to close a
    connection.
    """
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item):
    METER.begin()
    return (yield)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_teardown(item):
    try:
        return (yield)
    finally:
        is_long = distribution.is_long(item.nodeid, is_marked=item.get_closest_marker("long") is not None)
        item.user_properties += [("nodeid", item.nodeid), *METER.end(is_long=is_long)]


@pytest.hookimpl(wrapper=True)
def pytest_fixture_setup(fixturedef):
    """Charge no folder with fixtures that a worker makes once for several, nor with their end."""
    if fixturedef.scope not in {"session", "package"}:
        return (yield)
    fixturedef.addfinalizer(METER.leave_shared)  # runs after the fixture's own, the other one before it
    METER.enter_shared()
    try:
        return (yield)
    finally:
        METER.leave_shared()
        fixturedef.addfinalizer(METER.enter_shared)


@pytest.fixture(scope="session")
def scratch():
    """Make a temporary folder that PostgreSQL may enter.

    Under root, it runs as an unprivileged user, who cannot enter pytest's own folder.
    """
    folder = Path(tempfile.mkdtemp(prefix="tablero-"))
    folder.chmod(0o711)
    yield folder
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(scope="session", autouse=True)
def data_folder(scratch):
    """Keep the tests out of the user's data folder; like that of a new machine, theirs does not exist yet."""
    settings.OPTIONS = replace(settings.OPTIONS, data=scratch / "data")
    settings.PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]  # quick ones


@pytest.fixture(autouse=True)
def _speaks_english():
    """Take back the language and the zone of the last request, which the process would keep."""
    translation.deactivate()
    timezone.deactivate()


@pytest.fixture(scope="session")
def postgres(scratch):
    """Start an embedded PostgreSQL with the database of the tests and yield its connection parameters.

    It is fast and not durable. TEST_POSTGRESQL names the folder with the programs of another version: see
    tests/sql/test_older_postgresql.py. TEST_SOCKETS names the folder with the socket of a running server, which
    several runs may share, and TEST_DATABASE its database.
    """
    if folder := os.environ.get("TEST_SOCKETS"):
        yield {"host": folder, "port": "5432", "user": "tablero", "dbname": "tablero"}
        return
    prepared.copy_prepared(scratch / "unit")
    with prepared.running(scratch / "unit") as parameters:
        yield parameters


@pytest.fixture(scope="session")
def django_db_setup(django_test_environment, django_db_blocker, postgres):
    """Point Django, and the lanes, to the database of the session, in place of making one."""
    database = connections["default"].settings_dict
    for place in (database, settings.DATABASES["default"]):
        place["HOST"], place["NAME"] = postgres["host"], prepared.DATABASE
    database["OPTIONS"]["pool"] = {**POOL, "timeout": 60}  # seconds: a busy machine makes connections slowly
    settings.LANES_CONNINFO = make_conninfo("", **{**postgres, "dbname": prepared.DATABASE})
    settings.SERVER_SECRET = b"the secret of the tests"
    emptying.install()
    yield
    with django_db_blocker.unblock():
        connections["default"].close()
        close_pools()  # also the pool of the Table service, which Django does not know


@pytest.fixture
def patient_lanes(request, monkeypatch):
    """Let statements take as long as a busy machine needs; the tests of their time limits are slow ones."""
    if request.node.get_closest_marker("slow") is None:
        for lane, text in SETTINGS.items():
            patient = re.sub(r"statement_timeout = '\w+'", "statement_timeout = '60s'", text)
            monkeypatch.setitem(SETTINGS, lane, patient)


@pytest.fixture(scope="session")
def server(scratch) -> LiveServer:
    """Start a server with `manage.py serve`, as a user would, with durable defaults.

    With TEST_CITUS, the tables of all its accounts are distributed: see tests/cluster/real.
    """
    is_distributing = site.URL in os.environ
    started = site.distributing_server if is_distributing else start_server
    with started(scratch / "server" if is_distributing else seeded(scratch / "server")) as live:
        yield live


@pytest.fixture(scope="session")
def require():
    """Return `require("node", "the JavaScript SDK")`, which finds a program; without it the test is skipped, and
    fails in CI.
    """
    return programs.require
