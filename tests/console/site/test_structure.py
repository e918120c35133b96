"""Every page, in every language and before any script runs: its title, heading, language and landmarks."""

import pytest
from django.urls import reverse

from tests.console.addresses import ANSWERS, ARGUMENTS, PAGES
from tests.console.markup import MAIN_NAVIGATION, find_faults


@pytest.mark.parametrize("language", MAIN_NAVIGATION)
def test_structure(proven, add_entity, language):
    """Check all pages in English, and pages behind a proof in each language.

    tests/console/site/test_access.py checks the others in other languages.
    """
    add_entity("se", "", Name="Ada")
    client = proven("ada")
    client.cookies["tablero_language"] = language
    faults = []
    for name in PAGES:
        if language == "en" or ANSWERS[name]["GET"]["ada"] == 302:
            answer = client.get(reverse(name, args=ARGUMENTS[name]), follow=True)
            faults += [(name, fault) for fault in find_faults(answer, language)]
    assert faults == []
