"""Parameters of a comparison in its address, such as ``left``, ``right``, ``table``, ``kind`` and ``after``."""

from dataclasses import dataclass, replace
from typing import Final
from urllib.parse import urlencode

from django.http import QueryDict

from console.grid import tokens
from console.models import User
from storage.accounts import accounts
from storage.branches import branches
from storage.compare import sides
from storage.compare.comparing import ALL_KINDS
from storage.compare.side_names import SideName
from storage.compare.sides import Side, SideNotFound
from storage.domain.access.roles import Capability, Role, may
from storage.domain.entities.differences import DifferenceKind
from storage.domain.entities.entity import EntityKey
from storage.domain.refusals import Reason
from storage.models import Account
from storage.people.members import role_in
from storage.snapshots import snapshots

LEFT, RIGHT = "left", "right"
SIDES = (LEFT, RIGHT)
POLICIES = "policies"  # in place of a kind: the settings that differ


@dataclass(frozen=True, slots=True)
class CompareRequest:
    """Two sides to compare, and the part of their differences to show."""

    left: SideName
    right: SideName
    table: str = ""
    kind: DifferenceKind | None = None
    settings: bool = False
    timestamps: bool = False
    after: EntityKey | None = None
    is_all: bool = False  # whether all entities that differ are selected, not only those on the page

    @property
    def kinds(self) -> frozenset[DifferenceKind]:
        return ALL_KINDS if self.kind is None else frozenset({self.kind})

    def query(self, **changes: object) -> str:
        """Return the query string of the comparison with some parameters changed."""
        it = replace(self, **changes)  # type: ignore[arg-type]
        given = {
            "left": str(it.left),
            "right": str(it.right),
            "table": it.table,
            "kind": it.kind or "",
            "settings": "1" if it.settings else "",
            "timestamps": "1" if it.timestamps else "",
            "after": "" if it.after is None else tokens.encode_key(it.after),
            "all": "1" if it.is_all else "",
        }
        return "?" + urlencode({name: value for name, value in given.items() if value})


_FIELDS: Final = ("account", "table", "moment", "time")  # fields of a side
PARAMETERS: Final = {
    *SIDES,
    *(f"{side}-{field}" for side in SIDES for field in _FIELDS),
    *("table", "kind", "settings", "timestamps", "after", "all"),
}


def with_short_names(given: QueryDict) -> QueryDict:
    """Expand the short parameters ``l`` and ``r``."""
    fields = given.copy()
    for short, side in (("l", LEFT), ("r", RIGHT)):
        fields.setdefault(side, given.get(short, ""))
    return fields


def read_request(given: QueryDict, account: Account) -> CompareRequest:
    left, right = (SideName.read(given.get(side, "")) for side in SIDES)
    default_left, default_right = _defaults(account)
    kind = given.get("kind", "")
    return CompareRequest(
        left or default_left,
        right or default_right,
        given.get("table", ""),
        DifferenceKind(kind) if kind in set(DifferenceKind) else None,
        given.get("settings") == "1",
        given.get("timestamps") == "1",
        tokens.decode_key(given.get("after", "")),
        given.get("all") == "1",
    )


def _defaults(account: Account) -> tuple[SideName, SideName]:
    """Return the default sides: a branch and its account, or an account at its latest snapshot and now."""
    here = SideName(account.name)
    branch = branches.find(account)
    if branch is not None and branch.source is not None:
        return here, SideName(branch.source.name)
    latest = snapshots.latest(account)
    return (here if latest is None else replace(here, at=latest.name)), here


def read_choice(given: QueryDict, side: str) -> SideName | None:
    """Parse the fields of a side picker, if present."""
    account = given.get(f"{side}-account", "")
    if not account:
        return None
    moment = given.get(f"{side}-moment", "")
    at = given.get(f"{side}-time", "").strip() if moment == "@" else moment
    return SideName(account, given.get(f"{side}-table", ""), at)


@dataclass(frozen=True, slots=True)
class FoundSide:
    """Side with the user's role in its account."""

    side: Side
    role: Role

    def allows(self, capability: Capability) -> bool:
        account = self.side.account
        return self.side.is_live and not account.read_only and may(self.role, capability)


def find_side(name: SideName, user: User) -> FoundSide:
    """Return the side with a name.

    Raises SideNotFound, in the same words for an account that the user does not know and for one that does
    not exist.
    """
    account = accounts.find(name.account)
    role = None if account is None else role_in(user, account)
    if account is None or role is None:
        raise SideNotFound(Reason.NO_ACCESS, account=name.account)
    return FoundSide(sides.find(name, account), role)
