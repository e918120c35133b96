"""The people of the console, what they may do where, and the first of them."""

from typing import ClassVar

from django.contrib.auth.base_user import AbstractBaseUser, BaseUserManager
from django.core.validators import RegexValidator
from django.db import models
from django.utils.translation import check_for_language
from django.utils.translation import gettext_lazy as _

from console.appearance import Density, Theme
from storage.models import Account, Table


class Role(models.IntegerChoices):
    """What somebody is in an account; each may what those before may."""

    VIEWER = 1, _("Viewer")
    EDITOR = 2, _("Editor")
    MAINTAINER = 3, _("Maintainer")
    OWNER = 4, _("Owner")


class EditMode(models.TextChoices):
    """When a changed cell of a grid is saved."""

    DIRECT = "direct", _("At once, with undo")
    STAGED = "staged", _("When I save all of them")


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

    shortcuts = models.BooleanField(default=True)  # keys of one letter
    edit_mode = models.CharField(max_length=8, default=EditMode.DIRECT.value)

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


class Invitation(models.Model):
    """A link by which somebody becomes a user; only the hash of its token is kept."""

    token_hash = models.CharField(max_length=64, unique=True)
    note = models.CharField(max_length=150, blank=True, default="")  # for whom
    is_admin = models.BooleanField(default=False)
    account = models.ForeignKey(Account, on_delete=models.CASCADE, null=True, related_name="+")
    role = models.PositiveSmallIntegerField(choices=Role, default=Role.EDITOR)
    invited_by = models.ForeignKey(User, on_delete=models.CASCADE, related_name="+")
    created_at = models.DateTimeField(auto_now_add=True)
    expires_at = models.DateTimeField()
    used_at = models.DateTimeField(null=True, default=None)
    user = models.ForeignKey(User, on_delete=models.SET_NULL, null=True, default=None, related_name="+")

    def __str__(self) -> str:
        return self.note


class Bookmark(models.Model):
    """A table that a user opened, and whether they starred it."""

    user = models.ForeignKey(User, on_delete=models.CASCADE, related_name="bookmarks")
    # a row of storage's: no constraint, so that deleting a table waits for nobody
    table = models.ForeignKey(Table, on_delete=models.CASCADE, db_constraint=False, related_name="+")
    is_starred = models.BooleanField(default=False)
    opened_at = models.DateTimeField(null=True, default=None)

    class Meta:
        constraints = (models.UniqueConstraint(fields=("user", "table"), name="one_bookmark_of_a_table"),)

    def __str__(self) -> str:
        return f"{self.user}: {self.table_id}"


class ColumnLayout(models.Model):
    """Which columns of a grid stand where and how wide; of one user, or of all when there is none."""

    account = models.ForeignKey(Account, on_delete=models.CASCADE, related_name="+")
    user = models.ForeignKey(User, on_delete=models.CASCADE, null=True, related_name="+")
    name = models.CharField(max_length=64)
    tables = models.CharField(max_length=64)  # a name of a table, or a pattern such as logs*
    columns = models.JSONField(default=list)
    updated_at = models.DateTimeField(auto_now=True)

    class Meta:
        constraints = (
            models.UniqueConstraint(
                fields=("account", "user", "name", "tables"),
                name="one_layout_of_a_name",
                nulls_distinct=False,
            ),
        )

    def __str__(self) -> str:
        return self.name
