"""Every reason to refuse has words in each door, and operations have none."""

import ast
import re

import pytest
from django.utils import translation

from console.site.refusals import OWN_TEXTS, describe_refusal
from storage.cluster.subject import ClusterReason
from storage.core import registry
from storage.domain.refusals import Reason, Refused
from tests.live_server import ROOT

# reasons for exports and for mappings that scripts send
OF_SCRIPTS = {"FILE_ROWS_CHANGED", "FILE_ROWS_HALF_CHARACTER", "FILE_MAPPING_MALFORMED"}


def _is_of_rows(reason):
    is_of_rows = reason.name.startswith(("FILE_ROWS_", "FILE_MAPPING_")) and reason.name not in OF_SCRIPTS
    return is_of_rows or reason.name in ("FILE_NOT_AZURITE", "FILE_NOT_READ", "FILE_TOO_LARGE")


# reasons that only commands, the start of a server and readers of the change feed receive
NOT_IN_CONSOLE = {
    Reason.ACCOUNT_HAS_TABLES,
    Reason.ACCOUNT_KIND_IS_FIXED,
    Reason.COPY_FILTER_OF_FILE,
    Reason.DECLARATION_MALFORMED,
    ClusterReason.DISTRIBUTED_HAS_NO_FEED,
    *(it for it in Reason if it.name.startswith("FILE_") and not _is_of_rows(it)),
    Reason.KEYS_SEALED_OTHERWISE,
    Reason.KEY_NOT_BASE64,
    Reason.LABEL_NAME,
    Reason.LABEL_TWICE,
    Reason.LABEL_VALUE,
    Reason.LAST_OWNER,
    Reason.LIFETIME,
    Reason.LIFETIME_MALFORMED,
    Reason.MASKING_RULE_MALFORMED,
    Reason.METRICS_RANGE,
    Reason.METRICS_STEP,
    Reason.METRICS_TOO_OLD,
    Reason.MUTES_NOTHING,
    Reason.NOTICE_THRESHOLD,
    Reason.NO_BRANCH,
    Reason.NO_FEED,
    Reason.NO_NOTICE_KIND,
    Reason.NO_NOTICE_THRESHOLD,
    Reason.NO_SECRET,
    Reason.NO_USER,
    Reason.OTHER,
    Reason.PUBLIC_KEY,
    Reason.TABLE_GONE,
    Reason.TOKEN_AHEAD,
    Reason.TOKEN_EXPIRED,
    Reason.TOKEN_INVALID,
    Reason.TOKEN_OF_ANOTHER_DATABASE,
    Reason.TOKEN_OF_ANOTHER_FEED,
    Reason.TOO_MANY_LABELS,
    Reason.UNKNOWN_CONSISTENCY,
    Reason.UNKNOWN_KIND,
    Reason.UNKNOWN_STRICTNESS,
}
# for the log, and what other programs' libraries raise
LOGGED = {"ExceptionGroup", "ValueError"}
# the management API and commands, whose problems are sentences
OF_DOORS = {"api.py", "serializers.py", "management"}
# errors in the protocol of bearer tokens
BEARER = {"_malformed"}


KINDS = [Reason, *(subject.reasons for subject in registry.subjects() if subject.reasons)]


def test_names_of_reasons_are_unique():
    """They are stored."""
    assert len(registry.reasons()) == sum(map(len, KINDS))


def facts_of(text):
    return set(re.findall(r"%\((\w+)\)s", str(text)))


def marked_reasons():
    """Return the reasons whose sentence the console translates."""
    marked = set()
    for kind in KINDS:
        path = ROOT / f"{kind.__module__.replace('.', '/')}.py"
        tree = ast.parse(path.read_text())
        reasons = next(it for it in tree.body if isinstance(it, ast.ClassDef) and it.name == kind.__name__)
        calls = [it for it in reasons.body if isinstance(it, ast.Assign) and isinstance(it.value, ast.Call)]
        marked |= {kind[it.targets[0].id] for it in calls}
    return marked


def test_the_console_translates_or_replaces_what_it_shows():
    assert marked_reasons() & OWN_TEXTS.keys() == set()
    assert marked_reasons() | OWN_TEXTS.keys() == set(registry.reasons().values()) - NOT_IN_CONSOLE


@pytest.mark.parametrize("reason", registry.reasons().values(), ids=lambda it: it.name)
def test_sentences_have_their_facts(reason):
    """A percent sign that is neither that of a fact nor doubled would fail."""
    facts = facts_of(reason.value)
    assert "%(" not in str(reason.of(**dict.fromkeys(facts, "x")))
    if reason in OWN_TEXTS:
        assert facts_of(OWN_TEXTS[reason]) == facts
        assert str(OWN_TEXTS[reason]) % dict.fromkeys(facts, "x")


@pytest.mark.parametrize(
    ("refused", "english", "turkish"),
    [
        (
            Refused(Reason.NO_ACCOUNT, account="50%"),
            "The account 50% does not exist.",
            "50% hesabı yok.",
        ),
        (Refused(Reason.COMMENT_EMPTY), "Enter a comment.", "Bir yorum girin."),
        (Refused(Reason.KEY_NOT_BASE64), "An account key must be base64.", "An account key must be base64."),
        (Refused(Reason.OTHER, text="%(no)s"), "%(no)s", "%(no)s"),
    ],
)
def test_the_console_speaks_the_language_of_its_reader(refused, english, turkish):
    with translation.override("en"):
        assert describe_refusal(refused) == english
    with translation.override("tr"):
        assert describe_refusal(refused) == turkish


def test_operations_raise_reasons_and_no_sentences():
    results = []
    rooms = [
        ROOT / "storage" / name for name in ("runtime", "relations", *(it.name for it in registry.subjects()))
    ]
    modules = [
        path for room in rooms for path in sorted(room.glob("**/*.py")) if not OF_DOORS & set(path.parts)
    ]
    assert len(modules) > 200
    for path in modules:
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Raise) and isinstance(node.exc, ast.Call) and node.exc.args:
                said, name = node.exc.args[0], ast.unparse(node.exc.func)
                is_text = isinstance(said, ast.JoinedStr) or (
                    isinstance(said, ast.Constant) and isinstance(said.value, str)
                )
                if is_text and name not in LOGGED | BEARER:
                    results.append(f"{path.relative_to(ROOT)}:{node.lineno}")
    assert not results, f"give these a Reason of storage/domain/refusals.py or subject.py: {results}"


def test_every_reason_is_raised_with_its_facts():
    raised = {}
    for folder in ("storage", "console"):
        for path in (ROOT / folder).glob("**/*.py"):
            for node in ast.walk(ast.parse(path.read_text())):
                if isinstance(node, ast.Call):
                    given = {it.arg for it in node.keywords}
                    for reason in named_by(node):
                        raised.setdefault(reason, []).append(given)
    for form in registry.relation_forms():  # the missing features raise them
        raised |= {reason.name: [{"table"}] for reason in form.lacks.values()}
        raised |= {form.unavailable.name: [set()]}
    for name, reason in registry.reasons().items():
        several = raised[name]
        # a helper adds those of a failure; an error that is passed on has them by a mapping
        assert name.endswith("_FAILED") or all(given == facts_of(reason.value) for given in several), name


def test_a_stored_refusal_is_read_again_and_a_sentence_of_an_older_version_as_it_is():
    refusal = ClusterReason.DISTRIBUTION_FAILED.of(table="people", why=ValueError("{no} node"))
    assert (
        str(registry.read_refusal(refusal.dump())) == "The table people could not be distributed: {no} node"
    )
    assert registry.read_refusal(refusal.dump()).reason is ClusterReason.DISTRIBUTION_FAILED
    for sentence in ("A node does not answer.", "3", '{"reason": "OF_A_NEWER_VERSION"}', '"{"'):
        assert str(registry.read_refusal(sentence)) == sentence


def named_by(call):
    """Return the reasons that a call names: `Refused(Reason.A, ...)` or `Reason.A.of(...)`."""
    names = {kind.__name__ for kind in KINDS}
    candidates = [*call.args[:1], *([call.func.value] if isinstance(call.func, ast.Attribute) else [])]
    return [it.attr for it in candidates if isinstance(it, ast.Attribute) and ast.unparse(it.value) in names]
