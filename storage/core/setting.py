"""Declaration of an account setting: its values, their texts, and where it is shown."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from storage.core.labels import check_labels
from storage.domain.access.addresses import read_network
from storage.domain.refusals import Reason, Refusal, Refused


@dataclass(frozen=True, slots=True)
class Switch:
    """Option of the command `account` that turns a setting on or off."""

    action: str
    help: str
    on: str  # sentence when done, with the name of the account
    off: str
    shown_on: str = ""  # mark in the list of accounts
    shown_off: str = ""


@dataclass(frozen=True, slots=True)
class Setting:
    """Account setting; its CLI switch, form field, serializer and log label derive from it."""

    name: str  # its column's name
    type: type
    help: str = ""  # in the management API
    least: int | None = None  # if it is a number
    most: int | None = None  # if it is a number, or the greatest length of a text or list
    unit: int = 1  # in which people enter a number
    choices: tuple[str, ...] = ()
    is_nullable: bool = False
    is_in_catalog: bool = False  # processes cache it
    refusal: Refusal | None = None  # for numbers and choices that doors may let through
    label: str = ""  # in the console
    explanation: str = ""  # there, below the field
    logged_as: str = ""  # name in the activity log, if not its label
    section: str = ""  # section of the page of settings: see console.site.account_settings
    switch: Switch | None = None  # switch of a Boolean, in the command
    is_in_files: bool = True  # files of accounts have it
    after: str = ""  # the setting that it follows, if a subject declares it

    def check(self, value: Any) -> None:
        """Validate a value; raises Refused."""
        match value:
            case None if self.is_nullable:
                return
            case Mapping():
                check_labels(value)
            case list():
                for text in value:
                    if read_network(text) is None:
                        raise Refused(Reason.NETWORK_MALFORMED, text=text)
            case other if self.refusal is not None and not self._includes(other):
                raise Refused(self.refusal)

    def _includes(self, value: Any) -> bool:
        if self.choices:
            return value in self.choices
        return (self.least is None or value >= self.least) and (self.most is None or value <= self.most)
