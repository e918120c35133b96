"""Sets of rules as manifests declare them."""

from collections.abc import Mapping
from typing import Any

from storage.core.rehearsal_sets import Fields, RehearsalSets
from storage.domain.access.actor import Actor
from storage.models import Account, RehearsalSet
from storage.rehearsal import rehearsals
from storage.rehearsal.rules import dump_rules, read_rules


class DeclaredSets(RehearsalSets):
    def read_rules(self, written: object) -> list[dict[str, Any]]:
        return dump_rules(read_rules(written))

    def stored(self, account: Account) -> Mapping[str, Fields]:
        rows = RehearsalSet.objects.filter(account=account).order_by("name")
        return {row.name: {"description": row.description, "rules": row.rules} for row in rows}

    def check_name(self, name: str) -> None:
        rehearsals.check_name(name)

    def save(self, account: Account, name: str, fields: Fields, *, by: Actor) -> None:
        rehearsals.save_set(account, name, fields["rules"], text=fields.get("description", ""), by=by)

    def delete(self, account: Account, name: str, *, by: Actor) -> None:
        rehearsals.delete_set(account, name, by=by)
