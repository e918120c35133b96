"""The people of the console, what they may do where, and the first of them."""

from typing import ClassVar

from django.contrib.auth.base_user import AbstractBaseUser, BaseUserManager
from django.core.validators import RegexValidator
from django.db import models
from django.utils.translation import check_for_language
from django.utils.translation import gettext_lazy as _

from console.appearance import Density, Theme
from storage.models import Account


class Role(models.IntegerChoices):
    """What somebody is in an account; each may what those before may."""

    VIEWER = 1, _("Viewer")
    EDITOR = 2, _("Editor")
    MAINTAINER = 3, _("Maintainer")
    OWNER = 4, _("Owner")


class UserManager(BaseUserManager["User"]):
    def create_user(
        self, username: str, password: str, *, is_admin: bool = False, language: str = ""
    ) -> "User":
        user = self.model(
            username=self.model.normalize_username(username), is_admin=is_admin, language=language
        )
        user.set_password(password)
        user.save(using=self._db)
        return user


class User(AbstractBaseUser):
    """Somebody who may sign in; an admin of the server is an owner of every account."""

    # ASCII and lower case: in what letters a name is typed decides nothing, in no language
    username = models.CharField(
        _("user name"),
        max_length=150,
        unique=True,
        validators=[
            RegexValidator(
                r"^[A-Za-z0-9._@+-]+\Z",
                _("A user name is made of letters of the English alphabet, digits and . _ @ + -"),
            )
        ],
    )
    is_admin = models.BooleanField(default=False)
    is_active = models.BooleanField(default=True)
    created_at = models.DateTimeField(auto_now_add=True)

    language = models.CharField(max_length=16, blank=True, default="")  # empty: as the browser asks
    time_zone = models.CharField(max_length=64, default="UTC")
    theme = models.CharField(max_length=16, default=Theme.SYSTEM.value)
    density = models.CharField(max_length=16, default=Density.DEFAULT.value)

    objects: ClassVar[UserManager] = UserManager()

    USERNAME_FIELD = "username"
    REQUIRED_FIELDS: ClassVar[list[str]] = []

    def __str__(self) -> str:
        return self.username

    def remember(self, *, language: str, theme: str, density: str) -> None:
        """Keep these choices for other browsers; what is empty or unknown stays as it is."""
        if language and check_for_language(language):
            self.language = language
        if theme in list(Theme):
            self.theme = theme
        if density in list(Density):
            self.density = density
        self.save(update_fields=("language", "theme", "density"))

    @classmethod
    def normalize_username(cls, username: str) -> str:
        return username.strip().lower()


class Membership(models.Model):
    """The role of a user in an account."""

    user = models.ForeignKey(User, on_delete=models.CASCADE, related_name="memberships")
    account = models.ForeignKey(Account, on_delete=models.CASCADE, related_name="+")
    role = models.PositiveSmallIntegerField(choices=Role, default=Role.EDITOR)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints = (models.UniqueConstraint(fields=("user", "account"), name="one_role_in_an_account"),)

    def __str__(self) -> str:
        return f"{self.user} in {self.account}: {self.get_role_display()}"


class Setup(models.Model):
    """The one row that says whether the first admin was made; whoever makes one holds its lock."""

    ONLY: ClassVar[int] = 1

    token_hashes = models.JSONField(default=list)  # of the addresses that servers have printed
    done_at = models.DateTimeField(null=True, default=None)

    def __str__(self) -> str:
        return "done" if self.done_at else "open"
