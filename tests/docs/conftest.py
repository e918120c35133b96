"""The examples need the JavaScript SDK, which the tests of the clients install."""

from tests.clients.conftest import sdk_folder

__all__ = ["sdk_folder"]
