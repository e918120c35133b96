"""Identity provider for the console, and the roles of its groups."""

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Final
from urllib.parse import urlsplit

from storage.domain.access.roles import Role

SCOPES: Final = ("openid", "profile", "email")

AccountRoles = Mapping[str, Mapping[str, Role]]


@dataclass(frozen=True, slots=True)
class Provider:
    """OpenID Connect provider with which users sign in to the console."""

    issuer: str
    client_id: str
    client_secret: str = field(repr=False)
    name: str
    admits_everyone: bool  # anyone who signs in there becomes a user, without an invitation
    given_id: str = ""
    scopes: tuple[str, ...] = SCOPES
    groups_claim: str = "groups"
    admin_groups: frozenset[str] = frozenset()
    roles: AccountRoles = field(default_factory=dict)  # roles in accounts, by the names of group and account
    allowed_groups: frozenset[str] = frozenset()  # if set, only people in one of these groups sign in
    allowed_domains: frozenset[str] = frozenset()  # if set, only people with e-mail there sign in
    # the first sign-in with a verified e-mail address that is a user name becomes the sign-in of that user
    links_by_email: bool = False
    signs_out: bool = False  # signing out here also signs out there

    @property
    def id(self) -> str:
        """Return an id unique to this issuer, as another issuer may use the same subject for another person."""
        derived = re.sub(r"[^a-z0-9.]+", "-", self.issuer.partition("://")[2].lower()).strip("-")
        return self.given_id or derived

    @property
    def origin(self) -> str:
        return _origin(self.issuer)

    def is_of_origin(self, url: str) -> bool:
        return _origin(url) == self.origin

    def is_admin(self, groups: Collection[str]) -> bool:
        return not self.admin_groups.isdisjoint(groups)

    def roles_of(self, groups: Collection[str]) -> dict[str, Role]:
        """Return the highest role of these groups, by account."""
        roles: dict[str, Role] = {}
        for group in groups:
            for account, role in self.roles.get(group, {}).items():
                roles[account] = max(role, roles.get(account, role))
        return roles

    def admits(self, groups: Collection[str], verified_email: str) -> bool:
        """Return whether a user may sign in, by the groups and the domain of the e-mail address."""
        _, at, domain = verified_email.lower().rpartition("@")
        is_in_group = not self.allowed_groups or not self.allowed_groups.isdisjoint(groups)
        return is_in_group and (not self.allowed_domains or (at != "" and domain in self.allowed_domains))


def _origin(url: str) -> str:
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc}"
