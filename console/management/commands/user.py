"""The command `user`: add, list and remove users, assign roles, and reset passwords."""

import argparse
from typing import Any

from django.core.exceptions import ValidationError
from django.core.management.base import CommandError

from console.management.users import find_user
from console.models import User
from console.people import users
from storage.activity.activity import command_actor
from storage.domain.access.roles import Role, name_role
from storage.management.command import DatabaseCommand, find_account
from storage.people import members

NONE = "none"


class Command(DatabaseCommand):
    help = "Add, list and remove users of the console. Works while the server runs."

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        super().add_arguments(parser)
        actions = parser.add_subparsers(dest="action", required=True)
        add = actions.add_parser(
            "add",
            help="add a user with a generated password, to change at the first sign-in, within seven days",
        )
        add.add_argument("name")
        add.add_argument("--admin", action="store_true", help="give full access to this server")
        actions.add_parser("list", help="list all users with their roles")
        role = actions.add_parser("role", help="set the role of a user in an account")
        role.add_argument("name")
        role.add_argument("account")
        role.add_argument("role", choices=[*(role.name.lower() for role in Role), NONE])
        actions.add_parser(
            "password", help="generate a new password, to change at the next sign-in, within seven days"
        ).add_argument("name")
        actions.add_parser("remove", help="remove a user").add_argument("name")

    def handle(self, *args: Any, action: str, **arguments: Any) -> None:
        getattr(self, f"_{action}")(**arguments)

    def _add(self, name: str, *, admin: bool, **_: Any) -> None:
        password, until = users.generate_password()
        user = User(username=User.normalize_username(name), is_admin=admin, temporary_password_until=until)
        user.set_password(password)
        try:
            user.full_clean()
        except ValidationError as error:
            raise CommandError(" ".join(error.messages)) from None
        users.add(user, by=command_actor())
        self._write(user, password)

    def _list(self, **_: Any) -> None:
        memberships = members.all_memberships()
        for user in User.objects.order_by("username"):
            roles = [f"{it.account}={name_role(it.role)}" for it in memberships.get(user.pk, ())]
            self.stdout.write("  ".join([str(user), *(["admin"] if user.is_admin else []), *sorted(roles)]))

    def _role(self, name: str, account: str, role: str, **_: Any) -> None:
        user = find_user(name)
        storage_account = find_account(account)
        if role == NONE:
            members.remove(storage_account, user, by=command_actor(), keeps_owner=False)
            self.stdout.write(f"Removed {user} from {account}.")
        else:
            given = Role[role.upper()]
            members.set_role(storage_account, user, given, by=command_actor(), keeps_owner=False)
            self.stdout.write(f"{user} is now {role} of {account}.")

    def _password(self, name: str, **_: Any) -> None:
        user = find_user(name)
        password, until = users.generate_password()
        users.set_password(user, password, until=until, by=command_actor())
        self._write(user, password)

    def _write(self, user: User, password: str) -> None:
        self.stdout.write(f"{user}  until={user.temporary_password_until:%Y-%m-%d}  password={password}")

    def _remove(self, name: str, **_: Any) -> None:
        user = find_user(name)
        users.remove(user, by=command_actor())
        self.stdout.write(f"Removed {user}.")
