"""ORM models of users, invitations, and users' bookmarks, layouts and queries."""

from collections.abc import Sequence
from typing import ClassVar

from django.contrib.auth.base_user import AbstractBaseUser, BaseUserManager
from django.core.exceptions import ValidationError
from django.core.validators import RegexValidator
from django.db import models
from django.utils import timezone
from django.utils.translation import check_for_language
from django.utils.translation import gettext_lazy as _

from storage.domain.access.roles import Role
from storage.models import Account, Table


class Theme(models.TextChoices):
    SYSTEM = "system", _("Match system")
    LIGHT = "light", _("Light")
    DARK = "dark", _("Dark")


class Density(models.TextChoices):
    COMFORTABLE = "comfortable", _("Comfortable")
    DEFAULT = "default", _("Default")
    COMPACT = "compact", _("Compact")


class EditMode(models.TextChoices):
    """Time at which changed cells are saved: immediately or after staging."""

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
    """A user of the console; an admin of the server owns every account."""

    # ASCII and lower case, so that names are case-insensitive in every language
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
    # the sign-in provider whose groups made the user an admin; empty: a person did
    admin_given_by = models.CharField(max_length=200, blank=True, default="", db_default="")
    is_active = models.BooleanField(default=True)
    # until when a generated password works: the user chooses another one before anything else; null: their own
    temporary_password_until = models.DateTimeField(null=True, default=None)
    created_at = models.DateTimeField(auto_now_add=True)

    language = models.CharField(max_length=16, blank=True, default="")  # empty: the language of the browser
    time_zone = models.CharField(max_length=64, blank=True, default="")  # empty for the browser's zone
    theme = models.CharField(max_length=16, default=Theme.SYSTEM.value)
    density = models.CharField(max_length=16, default=Density.DEFAULT.value)

    shortcuts = models.BooleanField(default=True)  # single-key shortcuts
    edit_mode = models.CharField(max_length=8, default=EditMode.DIRECT.value)
    hides_presence = models.BooleanField(default=False, db_default=False)  # hides the open tables from others

    objects: ClassVar[UserManager] = UserManager()

    USERNAME_FIELD = "username"
    REQUIRED_FIELDS: ClassVar[list[str]] = []

    def __str__(self) -> str:
        return self.username

    def clean(self) -> None:
        super().clean()
        # addresses of pages and of the management API end with it, and . and .. would lead elsewhere
        if not any(it.isalnum() for it in self.username):
            raise ValidationError({"username": _("A user name needs a letter or digit.")})

    def unique_error_message(
        self, model_class: type[models.Model], unique_check: Sequence[str]
    ) -> ValidationError:
        """Return the error of a value that another user has."""
        if tuple(unique_check) == ("username",):
            return ValidationError(_("A user with this name already exists."), code="unique")
        return super().unique_error_message(model_class, unique_check)

    def remember(self, *, language: str, theme: str, density: str) -> None:
        """Store these preferences for other browsers, ignoring empty and unknown values."""
        if language and check_for_language(language):
            self.language = language
        if theme in list(Theme):
            self.theme = theme
        if density in list(Density):
            self.density = density
        self.save(update_fields=("language", "theme", "density"))

    @property
    def has_temporary_password(self) -> bool:
        return self.temporary_password_until is not None

    @property
    def has_expired_password(self) -> bool:
        return self.temporary_password_until is not None and self.temporary_password_until <= timezone.now()

    @classmethod
    def normalize_username(cls, username: str) -> str:
        return username.strip().lower()


class Setup(models.Model):
    """Single row that records whether the first admin exists; its creation locks the row."""

    ONLY: ClassVar[int] = 1

    token_hashes = models.JSONField(default=list)  # hashes of the tokens in printed setup links
    done_at = models.DateTimeField(null=True, default=None)

    def __str__(self) -> str:
        return "done" if self.done_at else "open"


class Invitation(models.Model):
    """An invitation link; only the hash of its token is stored."""

    token_hash = models.CharField(max_length=64, unique=True)
    note = models.CharField(max_length=150, blank=True, default="")  # the recipient
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
    """A table that a user opened or starred."""

    user = models.ForeignKey(User, on_delete=models.CASCADE, related_name="bookmarks")
    # without a constraint, so that deleting a table does not wait for locks
    table = models.ForeignKey(Table, on_delete=models.CASCADE, db_constraint=False, related_name="+")
    is_starred = models.BooleanField(default=False)
    opened_at = models.DateTimeField(null=True, default=None)

    class Meta:
        constraints = (models.UniqueConstraint(fields=("user", "table"), name="one_bookmark_of_a_table"),)

    def __str__(self) -> str:
        return f"{self.user}: {self.table_id}"


class ColumnLayout(models.Model):
    """Order, widths and visibility of a grid's columns, for one user or shared."""

    account = models.ForeignKey(Account, on_delete=models.CASCADE, related_name="+")
    user = models.ForeignKey(User, on_delete=models.CASCADE, null=True, related_name="+")
    name = models.CharField(max_length=64)
    tables = models.CharField(max_length=64)  # the name of a table, or a pattern such as logs*
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


class PropertyOrder(models.Model):
    """Properties of a table in order of first display."""

    table = models.OneToOneField(Table, on_delete=models.CASCADE, primary_key=True, related_name="+")
    names = models.JSONField(default=list)
    # not read: version 1.0, which may still run on the database, keeps pixels here
    widths = models.JSONField(default=dict)

    def __str__(self) -> str:
        return ", ".join(self.names)


class SavedQuery(models.Model):
    """Saved query, private to one user or shared in the account."""

    account = models.ForeignKey(Account, on_delete=models.CASCADE, related_name="+")
    table_name = models.CharField(max_length=255)  # folded; a table that is created again keeps its queries
    slug = models.CharField(max_length=64)
    name = models.CharField(max_length=64)
    description = models.TextField(max_length=2000, blank=True, default="")
    content = models.JSONField()  # the parameters of a grid's URL, by name
    # null if the owner was deleted; shared queries stay
    owner = models.ForeignKey(User, on_delete=models.SET_NULL, null=True, related_name="saved_queries")
    is_shared = models.BooleanField(default=False)
    created_at = models.DateTimeField(auto_now_add=True)
    updated_at = models.DateTimeField(auto_now=True)
    deleted_at = models.DateTimeField(null=True, default=None)  # soft delete

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
    """Earlier version of a saved query, kept by 1.0 only."""

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
    """A filter that a user ran recently."""

    user = models.ForeignKey(User, on_delete=models.CASCADE, related_name="+")
    # without a constraint, so that deleting a table does not wait for locks
    table = models.ForeignKey(Table, on_delete=models.CASCADE, db_constraint=False, related_name="+")
    digest = models.BinaryField(max_length=16)  # digest of the text, which may be too long for an index
    text = models.TextField()
    used_at = models.DateTimeField()

    class Meta:
        constraints = (models.UniqueConstraint(fields=("user", "table", "digest"), name="one_recent_query"),)
        indexes = (models.Index(fields=("user", "-used_at"), name="recent_queries_of_a_user"),)

    def __str__(self) -> str:
        return self.text[:64]


class SavedUrl(models.Model):
    """Saved query string that is too long for an address; the table's permissions still apply."""

    key = models.CharField(max_length=24, primary_key=True)
    account = models.ForeignKey(  # null: saved by an older version
        Account, on_delete=models.CASCADE, null=True, related_name="+", db_index=False
    )
    state = models.TextField()  # the id of the table, a question mark, the query string
    created_at = models.DateTimeField(auto_now_add=True)
    used_at = models.DateTimeField()

    class Meta:
        indexes = (
            models.Index(fields=("used_at",), name="saved_urls_by_use"),
            models.Index(fields=("account", "-used_at"), name="saved_urls_of_an_account"),
        )

    def __str__(self) -> str:
        return self.key

    @property
    def query(self) -> str:
        return self.state.partition("?")[2]
