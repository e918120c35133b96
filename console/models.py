"""The people of the console, what they may do where, and the first of them."""

from enum import StrEnum
from typing import ClassVar

from django.contrib.auth.base_user import AbstractBaseUser, BaseUserManager
from django.core.validators import RegexValidator
from django.db import models
from django.utils.translation import check_for_language
from django.utils.translation import gettext_lazy as _

from storage.domain.access.roles import Role
from storage.models import Account, Table


class Theme(StrEnum):
    SYSTEM = "system"
    LIGHT = "light"
    DARK = "dark"


class Density(StrEnum):
    COMFORTABLE = "comfortable"
    DEFAULT = "default"
    COMPACT = "compact"


class EditMode(models.TextChoices):
    """When a changed cell of a grid is saved."""

    DIRECT = "direct", _("Immediately, with undo")
    STAGED = "staged", _("Together, when you save")


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
                _("Use only the letters a to z, digits and . _ @ + -"),
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
    role = models.PositiveSmallIntegerField(default=Role.EDITOR.value)
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


class SavedQuery(models.Model):
    """A query with a name, of one user or shared with all who may read the account."""

    account = models.ForeignKey(Account, on_delete=models.CASCADE, related_name="+")
    table_name = models.CharField(max_length=63)  # folded; a table that is made anew finds its queries again
    slug = models.CharField(max_length=64)
    name = models.CharField(max_length=64)
    description = models.TextField(max_length=2000, blank=True, default="")
    content = models.JSONField()  # what of a grid's address it keeps, by name
    # None: somebody who is gone; what they shared stays
    owner = models.ForeignKey(User, on_delete=models.SET_NULL, null=True, related_name="saved_queries")
    is_shared = models.BooleanField(default=False)
    created_at = models.DateTimeField(auto_now_add=True)
    updated_at = models.DateTimeField(auto_now=True)
    deleted_at = models.DateTimeField(null=True, default=None)  # kept for a while, to be brought back

    class Meta:
        constraints = (
            models.UniqueConstraint(
                fields=("account", "table_name", "slug"),
                condition=models.Q(deleted_at=None),
                name="one_query_of_an_address",
            ),
        )

    def __str__(self) -> str:
        return self.name


class SavedQueryVersion(models.Model):
    """What a query was; the newest is what it is."""

    query = models.ForeignKey(SavedQuery, on_delete=models.CASCADE, related_name="versions")
    number = models.PositiveIntegerField()  # from 1
    content = models.JSONField()
    author = models.CharField(max_length=150)
    saved_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints = (models.UniqueConstraint(fields=("query", "number"), name="one_version_of_a_number"),)

    def __str__(self) -> str:
        return f"{self.query} {self.number}"


class RecentQuery(models.Model):
    """A filter that a user ran."""

    user = models.ForeignKey(User, on_delete=models.CASCADE, related_name="+")
    # a row of storage's: no constraint, so that deleting a table waits for nobody
    table = models.ForeignKey(Table, on_delete=models.CASCADE, db_constraint=False, related_name="+")
    digest = models.BinaryField(max_length=16)  # of the text, which may be too long for an index
    text = models.TextField()
    used_at = models.DateTimeField()

    class Meta:
        constraints = (models.UniqueConstraint(fields=("user", "table", "digest"), name="one_recent_query"),)
        indexes = (models.Index(fields=("user", "-used_at"), name="recent_queries_of_a_user"),)

    def __str__(self) -> str:
        return self.text[:64]


class SavedUrl(models.Model):
    """The query string of an address that would be too long; reading it still needs the permission for the table."""

    key = models.CharField(max_length=24, primary_key=True)
    state = models.TextField()  # the id of the table, a question mark, the query string
    created_at = models.DateTimeField(auto_now_add=True)
    used_at = models.DateTimeField()

    class Meta:
        indexes = (models.Index(fields=("used_at",), name="saved_urls_by_use"),)

    def __str__(self) -> str:
        return self.key

    @property
    def query(self) -> str:
        return self.state.partition("?")[2]
