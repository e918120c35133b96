"""Django settings; machine-specific ones come from the environment."""

import os
import secrets
from pathlib import Path

from csp.constants import NONCE, NONE, SELF
from django.utils.functional import lazy

from console.site import static_files
from storage.core import registry
from storage.server import database, logs, options, secret

OPTIONS = options.read(os.environ)
registry.leave_out(OPTIONS.without)
ROOT = Path(__file__).parents[1]  # the root of a checkout; a wheel has the same folders beside each other

SERVER_SECRET = secret.read(OPTIONS)
FORMER_SECRET = secret.read_former(OPTIONS)
SECRET_KEY = secret.derive(SERVER_SECRET, "django") if SERVER_SECRET else secrets.token_hex()
SECRET_KEY_FALLBACKS = [secret.derive(FORMER_SECRET, "django")] if FORMER_SECRET else []
DEBUG = False
ALLOWED_HOSTS = ["*"]  # any name may point to this server; no link is ever built from it

DEVELOPMENT = OPTIONS.debug

INSTALLED_APPS = [
    "django.contrib.contenttypes",
    "django.contrib.auth",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.forms",
    "django_htmx",
    "allauth",
    "allauth.account",
    "allauth.mfa",
    "allauth.usersessions",
    "allauth.socialaccount",
    # imports the client library of all its providers, which takes a tenth of a start
    *(["allauth.socialaccount.providers.openid_connect"] if OPTIONS.sign_in else []),
    "storage",
    *(f"storage.{subject.name}" for subject in registry.present() if subject.has_commands),
    "console",
]
MIDDLEWARE = [
    "django.middleware.security.SecurityMiddleware",
    "console.site.middleware.CompressionMiddleware",  # with padding of random length, so that sizes betray nothing
    "console.site.middleware.response_headers",
    "console.site.middleware.cookie_names",
    "storage.rest.middleware.problem_details",
    "csp.middleware.CSPMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.locale.LocaleMiddleware",
    "django.middleware.common.CommonMiddleware",
    "console.site.middleware.refuse_outdated",
    "console.site.middleware.script_redirects",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.auth.middleware.LoginRequiredMiddleware",
    "console.people.sessions.track_sessions",
    "console.people.passwords.TemporaryPasswordMiddleware",
    "console.people.mfa.SecondFactorMiddleware",
    "console.site.middleware.time_zone",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django_htmx.middleware.HtmxMiddleware",
    "allauth.account.middleware.AccountMiddleware",
    "console.site.middleware.lead_from_forms",
    "console.site.middleware.ConcurrentDeletionMiddleware",
]
LOADERS = ["django.template.loaders.filesystem.Loader", "django.template.loaders.app_directories.Loader"]
TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [ROOT / "templates"],
        "OPTIONS": {
            "loaders": LOADERS if DEVELOPMENT else [("django.template.loaders.cached.Loader", LOADERS)],
            "libraries": {
                subject: f"console.{subject}.tags"
                for subject in ("site", "activity", "grid", "help", "queries", "tables")
            },
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
                "console.site.layout.context",
                "console.queries.frame.context",
                "console.jobs.tray.context",
                "console.notices.bell.context",
            ],
        },
    }
]
FORM_RENDERER = "console.site.forms.FormRenderer"
# only servers ask for it: the hash of all files, a thirtieth of the start of a command
STATIC_URL = lazy(lambda: f"/ui/static/{static_files.version()}/", str)()
ROOT_URLCONF = "console.urls"
ASGI_APPLICATION = "console.asgi.application"
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
DATABASES = database.databases(OPTIONS)
READ_SOURCES = database.read_sources(OPTIONS)
DATABASE_ROUTERS = ["storage.sql.django.StandbyRouter"] if READ_SOURCES else []
# the form of an entity; console.asgi limits what any other page takes
DATA_UPLOAD_MAX_MEMORY_SIZE = 8 * 1024 * 1024
DATA_UPLOAD_MAX_NUMBER_FIELDS = 13_000  # an import of 4,000 columns, each of three fields
USE_TZ = True
TIME_ZONE = "UTC"
LANGUAGE_CODE = "en"
LANGUAGES = [("en", "English"), ("tr", "Türkçe"), ("zh-hans", "简体中文")]
LOCALE_PATHS = [ROOT / "console" / "locale"]
FORMAT_MODULE_PATH = "console.formats"

# for the console alone: the Table service shares the host, and cookies know no ports, so the names are ours;
# over TLS, console.site.middleware.cookie_names gives them a prefix
COOKIE_PATH = "/ui/"
LANGUAGE_COOKIE_NAME = "tablero_language"
LANGUAGE_COOKIE_PATH = SESSION_COOKIE_PATH = CSRF_COOKIE_PATH = COOKIE_PATH
SESSION_COOKIE_NAME = "tablero_session"
CSRF_COOKIE_NAME = "tablero_csrf"
CSRF_COOKIE_HTTPONLY = True  # pages hand the token to htmx themselves
MESSAGE_STORAGE = (
    "django.contrib.messages.storage.session.SessionStorage"  # the other cookie's path is not settable
)

STRICT_TRANSPORT_SECURITY = f"max-age={OPTIONS.hsts}"
SECURE_CONTENT_TYPE_NOSNIFF = True
SECURE_REFERRER_POLICY = "same-origin"
SECURE_CROSS_ORIGIN_OPENER_POLICY = "same-origin"
CONTENT_SECURITY_POLICY = {
    "DIRECTIVES": {
        "default-src": [NONE],
        "script-src": [SELF],
        "style-src": [SELF, NONCE],  # on pages that use it: those with an editor
        "img-src": [SELF, "data:"],
        "font-src": [SELF],
        "connect-src": [SELF],
        "form-action": [SELF, *(provider.origin for provider in OPTIONS.sign_in)],
        "frame-ancestors": [NONE],
        "base-uri": [NONE],
        "object-src": [NONE],
    }
}

LOGGING = logs.configuration(OPTIONS)

LANES_CONNINFO = database.conninfo(OPTIONS)
DECLARED_OPTIONS = OPTIONS.declared
# names below localhost are this machine's: Azurite serves these, too
HOST_SUFFIXES = tuple(dict.fromkeys((*OPTIONS.host_suffixes, "table.localhost")))
DEVELOPMENT_ACCOUNT_ALLOWED = OPTIONS.development_account_allowed
BEARER = OPTIONS.bearer
TABLERO_KEY_LENGTH_LIMIT = OPTIONS.key_length_limit
ACTIVITY_DAYS = OPTIONS.activity_days
REQUEST_LOG = OPTIONS.request_log
QUOTAS = OPTIONS.quotas
SNAPSHOT_BYTES = OPTIONS.snapshot_bytes

# notices
CONSOLE_URL = OPTIONS.messages.console_url
WEBHOOK_NETWORKS = OPTIONS.messages.webhook_networks
COPY_NETWORKS = OPTIONS.messages.copy_networks
SMTP = OPTIONS.messages.smtp
if SMTP is None:
    EMAIL_BACKEND = "django.core.mail.backends.dummy.EmailBackend"
else:
    EMAIL_HOST, EMAIL_PORT = SMTP.host, SMTP.port
    EMAIL_HOST_USER, EMAIL_HOST_PASSWORD = SMTP.user, SMTP.password
    EMAIL_USE_TLS, EMAIL_USE_SSL = SMTP.starts_tls, SMTP.is_tls
    DEFAULT_FROM_EMAIL = SMTP.sender
EMAIL_TIMEOUT = 10  # seconds
NOTICE_MAIL = "console.notices.mail.write"  # it knows the languages of users

# people
AUTH_USER_MODEL = "console.User"
AUTHENTICATION_BACKENDS = ["allauth.account.auth_backends.AuthenticationBackend"]
AUTH_PASSWORD_VALIDATORS = [
    {"NAME": "django.contrib.auth.password_validation.UserAttributeSimilarityValidator"},
    {"NAME": "django.contrib.auth.password_validation.MinimumLengthValidator"},
    {"NAME": "console.people.passwords.PasswordValidator"},
]
LOGIN_URL = "account_login"
LOGIN_REDIRECT_URL = "home:index"
ACCOUNT_ADAPTER = "console.people.adapter.AccountAdapter"
ACCOUNT_FORMS = {"login": "console.people.forms.sessions.SignInForm"}
ACCOUNT_LOGIN_METHODS = {"username"}
ACCOUNT_SIGNUP_FIELDS = ["username*", "password1*", "password2*"]
ACCOUNT_USER_MODEL_EMAIL_FIELD = None
ACCOUNT_EMAIL_VERIFICATION = "none"
ACCOUNT_PRESERVE_USERNAME_CASING = False  # they are kept in lower case
ACCOUNT_LOGOUT_REDIRECT_URL = LOGIN_URL
ACCOUNT_SESSION_REMEMBER = True
SESSION_ENGINE = "console.people.session_store"
SESSION_COOKIE_AGE = 14 * 24 * 3600
CSRF_FAILURE_VIEW = "console.site.errors.untrusted"
SECOND_FACTOR_REQUIRED = OPTIONS.second_factor_required
MFA_ADAPTER = "console.people.mfa.MfaAdapter"
MFA_KEYS = tuple(secret.derive(it, "mfa") for it in (SERVER_SECRET, FORMER_SECRET) if it) or (
    secrets.token_hex(32),
)
MFA_SUPPORTED_TYPES = ["totp", "recovery_codes", "webauthn"]
MFA_PASSKEY_LOGIN_ENABLED = True
MFA_RATE_LIMITS = {"webauthn_login": "30/m/ip"}
MFA_WEBAUTHN_USER_VERIFICATION = "required"
MFA_RECOVERY_CODES_SHOW_ONCE = True
MFA_TOTP_ISSUER = "Tablero"
MFA_TOTP_TOLERANCE = 1  # clocks differ
SIGN_IN_PROVIDERS = OPTIONS.sign_in
SOCIALACCOUNT_ADAPTER = "console.people.providers.SocialAdapter"
# shared by all processes, for it counts attempts to sign in
CACHES = {
    "default": {
        "BACKEND": "django.core.cache.backends.db.DatabaseCache",
        "LOCATION": "console_cache",
        # so many that no client can push out the counts of others
        "OPTIONS": {"MAX_ENTRIES": 100_000},
    },
}
# the management API; what its views have in common is in storage.rest.views
REST_FRAMEWORK: dict[str, object] = {
    "DEFAULT_AUTHENTICATION_CLASSES": [],
    "DEFAULT_PERMISSION_CLASSES": [],
    "DEFAULT_SCHEMA_CLASS": "storage.rest.documentation.Schema",
    "EXCEPTION_HANDLER": "storage.rest.exceptions.handle_exception",
    "UNAUTHENTICATED_USER": None,
    "URL_FORMAT_OVERRIDE": None,
}
SPECTACULAR_SETTINGS = {
    "TITLE": "Tablero management API",
    "VERSION": "1",
    "DESCRIPTION": "Manage accounts and everything in them except entities, from scripts and CI. Send a token from the"
    " profile page in the `Authorization` header of every request. It has the user's permissions, limited to its scope"
    " and account. Errors are problem details (RFC 9457).",
    "SCHEMA_PATH_PREFIX": "/ui/api/v1",
    "SERVERS": [{"url": "/", "description": "The server that this document comes from."}],
    "SERVE_INCLUDE_SCHEMA": False,
    "COMPONENT_SPLIT_REQUEST": True,
    "POSTPROCESSING_HOOKS": [],
    "ENUM_GENERATE_CHOICE_DESCRIPTION": False,
    "SORT_OPERATIONS": False,
    "TAGS": [
        {"name": "Token"},
        {"name": "Accounts"},
        {"name": "Keys"},
        {"name": "Tables"},
        {"name": "Indexes"},
        {"name": "History"},
        {"name": "Snapshots"},
        {"name": "Branches"},
        {"name": "Metrics"},
        {"name": "Jobs"},
        {"name": "Changes"},
        {"name": "Compare"},
        {"name": "Bulk edit"},
        {"name": "Import and export"},
        {"name": "Policies"},
        {"name": "Shared access signatures"},
        {"name": "Service properties"},
        {"name": "Members"},
        {"name": "Comments"},
        {"name": "Undo"},
        {"name": "Activity"},
        {"name": "Requests"},
        {"name": "Notices"},
        {"name": "Webhooks"},
        {"name": "Manifests"},
        {"name": "Users"},
        {"name": "Invitations"},
        {"name": "Saved queries"},
        *({"name": tag} for subject in registry.present() for tag in subject.api_tags),
        {"name": "Backups"},
    ],
}
ANNOUNCED = ["console.people.setup.announcement"]  # additional announcements when the server is ready
