"""Mappings by an enumeration have each member, so that a new member is missed where it needs words or a function."""

import ast
import importlib
from collections.abc import Mapping
from enum import Enum, Flag

from tests.live_server import ROOT

SPARSE = 3  # members that a mapping lacks, from which on it is one of a few members
# members that a mapping lacks on purpose: they are written otherwise, or need nothing
PARTIAL = {
    "console.access.policies.forms._FIELDS": {"NUMBER"},
    "console.activity.views.revert._LABELS": {"UNCHANGED"},
    "console.bulk_edit.preview._OBSTACLES": {"LOSS"},
    "console.grid.tabular._NOT_OF_TYPE": {"STRING"},
    "console.jobs.presentation._WISHES": {"NONE"},
    "console.notices.presentation.EVENTS": {"TEST"},
    "console.people.users._KINDS": {"RECOVERY_CODES"},
    "console.queries.builder.PLACEHOLDERS": {"BOOLEAN", "STRING"},
    "console.tables.tags._DRAWERS": {"NAME"},
    "console.transfer.formats._PLAIN": {"BINARY", "STRING"},
    "console.transfer.presentation._VALUES_NOT_OF_TYPE": {"BINARY", "STRING"},
    "storage.accounts.connection_strings._TEMPLATES": {"APPSETTINGS", "FUNCTIONS"},
    "storage.domain.access.grants._ROLE_NEEDS": {"PREFLIGHT"},
    "storage.domain.entities.entity.FIXED_SIZES": {"BINARY", "STRING"},
    "storage.domain.filters.ast._MIRRORED": {"EQ", "NE"},
    "storage.domain.requests.observed.ACTORS": {"ANONYMOUS"},
    "storage.editing.filters.narrowing._OPERATORS": {"AROUND"},
    "storage.editing.formats.counted_times._TICKS": {"EXCEL_DAYS"},
    "storage.editing.typed_bytes._BYTES": {"ESCAPED", "PLAIN"},
    "storage.entities.empty_results._BOUNDS": {"NE"},
    "storage.entities.images._OPERATIONS": {"SKIPPED", "UNCHANGED"},
    "storage.manifest.api._SECTIONS": {"ACCOUNT"},
    "storage.notices.formats._COLOURS": {"INFO"},
    "storage.notices.formats._HOSTS": {"JSON"},
    "storage.notices.formats._SIGNS": {"INFO"},
    "storage.protocol.cosmos.CONTENT_TYPES": {"ATOM"},
    "storage.protocol.errors._ODATA_FORMATS": {"ATOM"},
    "storage.rehearsal.findings._RETRIES": {"OTHER"},
    "storage.sql.filters._INDEXED_SPANS": {"BOOLEAN"},
    "storage.sql.filters._SPANS": {"BOOLEAN"},
    "storage.tabular.format_proposals._PLAIN": {"BINARY", "STRING"},
}


def module_mappings():
    """Yield the name, the enumeration and the members of each mapping, or tuple of pairs, at the top of a module."""
    for path in sorted(path for package in ("storage", "console") for path in (ROOT / package).rglob("*.py")):
        name = path.relative_to(ROOT).with_suffix("").as_posix().replace("/", ".").removesuffix(".__init__")
        if "migrations" in path.parts or "commands" in path.parts:
            continue
        body = ast.parse(path.read_text()).body
        targets = [it.target for it in body if isinstance(it, ast.AnnAssign)]
        targets += [target for it in body if isinstance(it, ast.Assign) for target in it.targets]
        for target in targets:
            value = getattr(importlib.import_module(name), ast.unparse(target), None)
            keys = set(keys_of(value))
            kinds = {type(key) for key in keys}
            if len(kinds) == 1 and issubclass(kind := kinds.pop(), Enum) and not issubclass(kind, Flag):
                yield f"{name}.{ast.unparse(target)}", kind, keys


def keys_of(value):
    if isinstance(value, Mapping):
        return value
    is_pairs = isinstance(value, tuple) and all(isinstance(it, tuple) and len(it) > 1 for it in value)
    return [it[0] for it in value if isinstance(it[0], Enum)] if is_pairs else []


def test_mappings_have_each_member():
    incomplete, mappings = [], set()
    for name, kind, keys in module_mappings():
        mappings.add(name)
        missing = {member.name for member in set(kind) - keys}
        intended = PARTIAL.get(name, set())
        if missing != intended and len(missing - intended) < SPARSE:
            incomplete.append(f"{name} lacks {', '.join(sorted(missing))} of {kind.__name__}")
    assert not incomplete, "\n".join(["add these members, or name them in PARTIAL:", *incomplete])
    assert len(mappings) > 150
    assert not PARTIAL.keys() - mappings, "remove from PARTIAL what does not exist"
