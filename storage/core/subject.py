"""Declarations of subjects: see registry, which collects them."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from enum import Enum, StrEnum

from storage.core.notices import NoticeKind
from storage.core.relation_forms import RelationForm
from storage.core.setting import Setting
from storage.core.variables import Variable
from storage.core.verbs import Verb
from storage.domain.access.roles import Capability
from storage.domain.refusals import AnyReason
from storage.domain.translation import mark as _


@dataclass(frozen=True, slots=True)
class Periodic:
    """Work that one of all processes repeats at an interval."""

    name: str
    do: str  # the path of a function that takes the time
    every: float  # seconds
    failure: str  # is logged when it raises
    is_exclusive: bool = True  # False: each process does it
    deletes: bool = False  # deletes expired things: it waits if the clock jumped
    looks_every: float = 0.0  # seconds; 0: as ``every``
    is_wanted: str = ""  # the path of a function that tells, without the database, whether there is any
    late_after: timedelta | None = None  # since it was last done, from when on that is a problem
    takes_time: bool = True  # False: the function takes nothing


class Place(Enum):
    """Place in the console's navigation that lists pages."""

    ACCOUNT = "the sidebar of an account"
    SERVER = "the sidebar outside of accounts"
    TABLE = "the tabs of a table"
    ACCOUNT_SEARCH = "the search, for an account"
    TABLE_SEARCH = "the search, for a table"
    SERVER_SEARCH = "the search, everywhere"


class Section(Enum):
    """Item of a sidebar whose pages are its tabs; each value is its label and its icon."""

    ACCESS = (_("Access"), "key-round")
    HISTORY = (_("History"), "history")
    TRAFFIC = (_("Traffic"), "chart-line")
    SETTINGS = (_("Settings"), "settings")
    SERVER = (_("Server"), "database")
    HELP = (_("Help"), "book-open")


@dataclass(frozen=True, slots=True)
class Page:
    """Navigation link to a page, shown to users who may open it."""

    place: Place
    position: int  # in its place, from the top
    url: str  # the name of a URL, which takes the account
    label: str
    icon: str
    capability: Capability = Capability.READ
    section: Section | None = None  # that has it as a tab; without one, it has its own item in the sidebar
    is_for_admins: bool = False  # among the pages of the server
    letter: str = ""  # that opens it, after G
    arguments: tuple[object, ...] = ()  # arguments of the URL, after the account
    only_storage: bool = False  # accounts of other kinds do not have it
    is_wanted: str = ""  # the path of a function that tells whether this server has anything to show there


class Slot(Enum):
    """Slot in a page for templates of other subjects; values document the variables available."""

    HOME_ALARMS = "above the first page: nothing but what every page has"
    ACCOUNT_STATE = "above every page of an account: account, role"
    TABLE_HEAD = "beside the name of a table: account, frame"
    TABLE_ACTIONS = "what one can do with the entities that a query finds: account, table, state, may"
    SELECTION_ACTIONS = "what one can do with selected entities: account, table, state, may"
    TABLE_SETTINGS = "cards of the settings of a table: account, table, may"
    TABLE_SOURCES = "ways to get tables: account, may, look (a class)"
    FIRST_TABLE_SOURCES = "ways to get tables, where an account has none: account, may"
    OVERVIEW_SOURCES = "ways to get tables, below the overview of an account that has none: account, may"
    TABLE_PEOPLE = "between the tabs of a table and what one can do with it: account, frame"
    ENTITY_PEOPLE = "above what an entity has now: nothing but what every page has"
    QUERY_ADVICE = "below the explanation of a query's access path: account, table, state, explanation"
    REQUEST_QUERY = "below how a logged query ran: account, shown"
    OVERVIEW_CARDS = "cards beside the overview of an account: account"
    REQUEST_FACTS = "among the details of a request in the log, in a list of terms: account, shown"
    QUERY_HEAD = "beside the saved query that a grid shows: account, table, query"


class StyleSheet(StrEnum):
    """Style sheet that pages load, joined from the style sheets of several subjects."""

    COMMON = "console.css"  # for every page
    DATA = "data.css"  # for pages about a table
    ACCESS = "access.css"


@dataclass(frozen=True, slots=True)
class Part:
    """Template that a page of another subject includes in a slot."""

    slot: Slot
    position: int  # in the slot, from the left or the top
    template: str
    values: str = (
        ""  # the path of a function that takes the variables of the page, and returns more for the template
    )


@dataclass(frozen=True, slots=True)
class AccountSection:
    """Section of the account settings page; while its subject is left out, only the form remains."""

    name: str
    template: str
    values: str = ""  # the path of a function that returns more for the template


class Hook(Enum):
    """Extension point at which code calls functions of other subjects; values document arguments and results."""

    ENTITY_TABS = (
        "takes an EntityTarget, returns the names of tabs beside an entity with their labels and addresses"
    )
    ENTITY_MARKS = "takes a table and keys, returns by key an EntityMark that a grid shows"
    QUERY_HIDDEN = "takes the id of a saved query that others can no longer read, in the transaction"
    DELETION_PAGE = "takes a table and a filter, returns the address of a page that deletes all that it finds"
    EDIT_PAGE = (
        "takes a table, a filter and operations in the form of the management API, returns the address of a page that"
        " edits all that it finds"
    )
    TABLE_RENAMED = "takes a table and its former name, folded, in the transaction that renames it"
    ACTIVITY_PAGE = (
        "takes an activity, returns the address and label of a page that goes on from it; None for others"
    )
    JOB_DETAILS = "takes a job, returns the JobDetails of those of its kinds; None for others"
    READ_ROUTER = (
        "takes the connection string of the primary, and what to call when another server has become it, with when the"
        " former one answered last; returns a ReadRouter, None without other databases"
    )
    ACCOUNT_WARNINGS = (
        "takes whether the reader is an admin, returns texts with the address and label of a page, or empty"
    )
    SPREADS_TABLES = "is called with nothing, returns whether new tables can be spread over several nodes"
    REHEARSER = "takes an account, returns its storage.core.rehearsals.Rehearser; None without one"
    REHEARSAL_SETS = "is called with nothing, returns the storage.core.rehearsal_sets.RehearsalSets"
    TRACER = "takes the environment, returns a Tracer of requests and pages; None if nothing is to be sent"
    MEASURES = (
        "is called with nothing, returns values of gauges by their names: see storage.runtime.prometheus"
    )
    TABLE_EVENTS = (
        "takes a request and a table, returns what yields events of its stream beside changes, or None"
    )
    PRESENCE_NEWS = (
        "takes the id of a table, on the event loop: a tab of another process has come to it or gone"
    )
    VISIBILITY_CHANGED = "takes a user who wishes to be seen by others, or not any more"
    RESEAL = "is called with nothing, seals secrets with the present secret of the server"
    SERVICE_END = "is awaited, takes nothing: the Table service of this process ends"
    ACCOUNT_FILE = "is called with nothing, returns the TableLines that files of accounts have"


@dataclass(frozen=True, slots=True)
class Word:
    """Placeholder in sentences of activities: a link to a page, or plain text while the page's subject is left out."""

    name: str
    text: str  # or, if it is empty, the part of the activity's detail named by ``label``
    url: str  # takes the account, and
    detail: str  # this part of the activity's detail
    label: str = ""


@dataclass(frozen=True, slots=True)
class JobTitle:
    """Title of a job kind, with ``table`` and the job's arguments as placeholders."""

    text: str
    other: str = ""  # the title of jobs for which the argument below is true
    other_if: tuple[str, ...] = ()  # the path to an argument of the job


@dataclass(frozen=True, slots=True)
class HelpEntry:
    """Document in the help's table of contents, after the named one."""

    name: str  # the name of its file in docs/, without .md
    title: str
    description: str
    after: str


@dataclass(frozen=True, slots=True)
class Examination:
    """Part of the database examination of `doctor`."""

    name: str
    after: str  # the name of the part that it follows
    do: str  # the path of a function that returns findings


class CommandGroup(Enum):
    """Group of management commands, in the order of ``tablero help``."""

    SERVER = "Server"
    PEOPLE = "Accounts and people"
    TABLES = "Tables"


@dataclass(frozen=True, slots=True)
class Command:
    """Management command, in storage.management.commands or in its subject's folder: see has_commands."""

    name: str
    group: CommandGroup
    after: str  # the name of the command that it follows
    summary: str


@dataclass(frozen=True, slots=True)
class Key:
    """Keyboard command of the console; console.site.commands has the groups of the help sheet."""

    name: str
    keys: str
    label: str
    group: str  # the name of a Where
    position: int  # in the group, from the top
    icon: str = ""


@dataclass(frozen=True)
class Subject:
    """Declaration of a subject: everything that it contributes to the server, the console and the commands."""

    name: str  # the name of its rooms on every floor
    stands_on: tuple[str, ...] = ()  # the subjects whose operations its own import
    is_optional: bool = False  # TABLERO_WITHOUT may leave it out, so that no other subject imports its code
    verbs: type[Verb] | None = None
    notices: type[NoticeKind] | None = None
    jobs: tuple[str, ...] = ()  # paths of its kinds of jobs
    job_titles: Mapping[str, JobTitle] = field(default_factory=dict)  # by kind
    periodic: tuple[Periodic, ...] = ()
    # name → path of a function that deletes old records
    tidying: Mapping[str, str] = field(default_factory=dict)
    daily: tuple[str, ...] = ()  # paths of functions that do so once a day
    pages: tuple[Page, ...] = ()
    style_sheet: StyleSheet = StyleSheet.COMMON  # that its styles are in
    # script of another room, in static/console → one of its own, which comes with that
    scripts: Mapping[str, str] = field(default_factory=dict)
    parts: tuple[Part, ...] = ()  # parts of other subjects' pages
    hooks: Mapping[Hook, str] = field(default_factory=dict)  # paths of functions
    words: tuple[Word, ...] = ()
    reasons: type[AnyReason] | None = None  # to refuse, beside those of storage.domain.refusals
    account_settings: tuple[Setting, ...] = ()  # also while it is left out, as they are stored
    relation_forms: tuple[RelationForm, ...] = ()  # forms of tables, also while it is left out
    keys: tuple[Key, ...] = ()
    commands: tuple[Command, ...] = ()
    has_commands: bool = False  # they are in its room: storage.NAME.management.commands
    options: tuple[str, ...] = ()  # names of variables that only it reads
    variables: tuple[Variable, ...] = ()  # other variables that only it reads, with their meaning
    documents: tuple[str, ...] = ()  # names in docs/, about it alone, or about other optional subjects too
    help_entries: tuple[HelpEntry, ...] = ()  # documents in the help, also shared ones
    urls: tuple[str, ...] = ()  # paths of modules with the addresses of its pages
    api_tags: tuple[str, ...] = ()  # groups of the documentation of the management API
    account_sections: tuple[AccountSection, ...] = ()
    api: str = ""  # the path of a module with views of the management API, and their ``urlpatterns``
    examinations: tuple[Examination, ...] = ()
    key_follower: str = (
        ""  # the path of a module that moves what belongs to entities: its functions move and move_one
    )
