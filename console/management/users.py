"""Look-up of users by commands."""

from django.core.management.base import CommandError

from console.models import User


def find_user(name: str) -> User:
    """Return a user by name; raises CommandError."""
    user = User.objects.filter(username=User.normalize_username(name)).first()
    if user is None:
        raise CommandError(f"There is no user {name}.")
    return user
