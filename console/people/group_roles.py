"""Roles by the groups that a sign-in provider names: given and taken back at each sign-in."""

import logging
from collections.abc import Collection

from django.db import transaction

from console.models import User
from console.people import users
from storage.domain.access.actor import SERVER
from storage.domain.access.sign_in import Provider
from storage.people import members

logger = logging.getLogger(__name__)


@transaction.atomic
def apply(user: User, provider: Provider, groups: Collection[str]) -> None:
    """Give a user what these groups give, and take back what others gave; what a person gave stays."""
    try:
        users.set_given_admin(user, is_admin=provider.is_admin(groups), given_by=provider.id, by=SERVER)
    except users.LastAdmin:
        logger.warning(
            "The groups of %s take admin rights from %s, the only admin, who keeps them.", provider.id, user
        )
    members.set_given_roles(user, provider.roles_of(groups), given_by=provider.id, by=SERVER)
