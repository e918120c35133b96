"""Django's settings; everything that differs between machines comes from the environment, read once."""

import os
import secrets
from pathlib import Path

from storage.server import database, options, secret

OPTIONS = options.read(os.environ)
BASE_DIR = Path(__file__).resolve().parent.parent

SERVER_SECRET = secret.read(OPTIONS)
SECRET_KEY = secret.derive(SERVER_SECRET, "django") if SERVER_SECRET else secrets.token_hex()
DEBUG = False
ALLOWED_HOSTS = ["*"]  # any name may point to this server; no link is ever built from it

INSTALLED_APPS = ["storage"]
MIDDLEWARE: list[str] = []
ROOT_URLCONF = "console.urls"
ASGI_APPLICATION = "console.asgi.application"
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
DATABASES = {"default": database.django_settings(OPTIONS)}
USE_TZ = True
TIME_ZONE = "UTC"
LANGUAGE_CODE = "en-us"

LOGGING = {
    "version": 1,
    "disable_existing_loggers": False,
    "formatters": {"plain": {"format": "{asctime} {levelname} {name}: {message}", "style": "{"}},
    "handlers": {"stderr": {"class": "logging.StreamHandler", "formatter": "plain"}},
    "root": {"handlers": ["stderr"], "level": "WARNING"},
    "loggers": {"django": {"level": "ERROR"}},
}

LANES_CONNINFO = database.conninfo(OPTIONS)
HOST_SUFFIXES = OPTIONS.host_suffixes
DEVELOPMENT_ACCOUNT_ALLOWED = OPTIONS.development_account_allowed
BEARER = OPTIONS.bearer
TABLERO_KEY_LENGTH_LIMIT = OPTIONS.key_length_limit
