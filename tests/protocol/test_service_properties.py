"""Service properties in XML, whole, in part, and in the form of old versions."""

from dataclasses import replace

import pytest

from storage.domain.service.service_properties import (
    DEFAULT_PROPERTIES,
    CorsRule,
    Logging,
    Metrics,
    PropertiesUpdate,
    ServiceProperties,
)
from storage.domain.service.service_properties_xml import read_properties, write_properties

NEW, OLD = "2019-02-02", "2012-02-12"


@pytest.mark.parametrize("version", ["2009-04-14", "2011-08-18", OLD, "2013-08-14"])
def test_old_versions_have_one_sort_of_metrics_and_no_rules(version):
    written = write_properties(
        replace(DEFAULT_PROPERTIES, cors=(CorsRule(("*",), ("GET",), (), (), 1),)), version
    )

    assert b"<Metrics><Version>1.0</Version><Enabled>true</Enabled>" in written
    for newer in (b"HourMetrics", b"MinuteMetrics", b"Cors"):
        assert newer not in written
    assert read_properties(written, version) == PropertiesUpdate(
        DEFAULT_PROPERTIES.logging, DEFAULT_PROPERTIES.hour_metrics
    )


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
def test_setting_what_was_got_changes_nothing(properties):
    written = write_properties(properties, NEW)

    assert read_properties(written, NEW).apply(ServiceProperties()) == properties
    assert write_properties(read_properties(written, NEW).apply(DEFAULT_PROPERTIES), NEW) == written
