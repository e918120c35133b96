"""Service properties in XML, whole, in part, and in the form of old versions."""

import pytest

from storage.domain.service_properties.properties import (
    DEFAULT_PROPERTIES,
    CorsRule,
    Logging,
    Metrics,
    ServiceProperties,
)
from storage.domain.service_properties.xml import read_properties, write_properties

NEW, OLD = "2019-02-02", "2012-02-12"


@pytest.mark.parametrize(
    "properties",
    [
        DEFAULT_PROPERTIES,
        ServiceProperties(hour_metrics=Metrics()),
        ServiceProperties(
            Logging(True, True, True, 365),
            Metrics(True, False, None),
            Metrics(True, True, 1),
            (
                CorsRule(("http://a", "b&<>'\""), ("GET", "MERGE"), ("a*", "b"), (), 0),
                CorsRule(("*",), ("PATCH",), (), ("*",), 2**31 - 1),
            ),
        ),
    ],
)
def test_setting_the_read_properties_changes_nothing(properties):
    written = write_properties(properties, NEW)

    assert read_properties(written, NEW).apply(ServiceProperties()) == properties
    assert write_properties(read_properties(written, NEW).apply(DEFAULT_PROPERTIES), NEW) == written
