"""Service properties in XML, whole, in part, and in the form of old versions."""

from dataclasses import replace

import pytest

from storage.domain.errors import (
    InvalidXmlDocument,
    InvalidXmlNodeValue,
    MissingRequiredXmlNode,
    UnsupportedXmlNode,
)
from storage.domain.service.service_properties import (
    DEFAULT_PROPERTIES,
    CorsRule,
    Logging,
    Metrics,
    PropertiesUpdate,
    ServiceProperties,
)
from storage.domain.service.service_properties_xml import read_properties, write_properties
from storage.protocol.xml_operations import write_stats

NEW, OLD = "2019-02-02", "2012-02-12"
START = b'\xef\xbb\xbf<?xml version="1.0" encoding="utf-8"?>'
LOGGING = (
    "<Logging><Version>1.0</Version><Read>true</Read><Write>false</Write><Delete>true</Delete>"
    "<RetentionPolicy><Enabled>true</Enabled><Days>7</Days></RetentionPolicy></Logging>"
)
METRICS = (
    "<HourMetrics><Version>1.0</Version><Enabled>true</Enabled><IncludeAPIs>false</IncludeAPIs>"
    "<RetentionPolicy><Enabled>false</Enabled></RetentionPolicy></HourMetrics>"
)
RULE = (
    "<CorsRule><AllowedMethods>GET,PUT</AllowedMethods><AllowedOrigins>*</AllowedOrigins><AllowedHeaders />"
    "<ExposedHeaders>x-ms-*</ExposedHeaders><MaxAgeInSeconds>60</MaxAgeInSeconds></CorsRule>"
)


def read(inner, version=NEW):
    return read_properties(f"<StorageServiceProperties>{inner}</StorageServiceProperties>".encode(), version)


def old(text):
    return text.replace("HourMetrics", "Metrics")


def test_the_properties_of_a_new_account():
    assert write_properties(DEFAULT_PROPERTIES, NEW) == START + (
        b"<StorageServiceProperties>"
        b"<Logging><Version>1.0</Version><Read>false</Read><Write>false</Write><Delete>false</Delete>"
        b"<RetentionPolicy><Enabled>false</Enabled></RetentionPolicy></Logging>"
        b"<HourMetrics><Version>1.0</Version><Enabled>true</Enabled><IncludeAPIs>true</IncludeAPIs>"
        b"<RetentionPolicy><Enabled>true</Enabled><Days>7</Days></RetentionPolicy></HourMetrics>"
        b"<MinuteMetrics><Version>1.0</Version><Enabled>false</Enabled>"
        b"<RetentionPolicy><Enabled>false</Enabled></RetentionPolicy></MinuteMetrics>"
        b"<Cors /></StorageServiceProperties>"
    )


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


@pytest.mark.parametrize(
    ("inner", "update"),
    [
        ("", PropertiesUpdate()),
        (LOGGING, PropertiesUpdate(Logging(True, False, True, 7))),
        (METRICS, PropertiesUpdate(hour_metrics=Metrics(True, False))),
        (METRICS.replace("Hour", "Minute"), PropertiesUpdate(minute_metrics=Metrics(True, False))),
        ("<Cors/>", PropertiesUpdate(cors=())),
        ("<Cors>\n</Cors>", PropertiesUpdate(cors=())),
        (
            f"<Cors>{RULE}</Cors>",
            PropertiesUpdate(cors=(CorsRule(("*",), ("GET", "PUT"), (), ("x-ms-*",), 60),)),
        ),
        (
            f"<Cors>{RULE}</Cors>".replace("GET,PUT", " GET , PUT "),
            PropertiesUpdate(cors=(CorsRule(("*",), ("GET", "PUT"), (), ("x-ms-*",), 60),)),
        ),
        (METRICS + LOGGING, PropertiesUpdate(Logging(True, False, True, 7), Metrics(True, False))),
        # switched off: neither APIs nor days matter
        (
            METRICS.replace(">true<", ">false<").replace("<IncludeAPIs>false</IncludeAPIs>", ""),
            PropertiesUpdate(hour_metrics=Metrics()),
        ),
        (
            METRICS.replace(">true<", ">false<").replace("APIs>false", "APIs>true"),
            PropertiesUpdate(hour_metrics=Metrics()),
        ),
        (
            METRICS.replace("</Enabled></R", "</Enabled><Days>0</Days></R"),
            PropertiesUpdate(hour_metrics=Metrics(True, False)),
        ),
        (METRICS.replace(">true<", "> True\n<"), PropertiesUpdate(hour_metrics=Metrics(True, False))),
    ],
)
def test_reads_any_part(inner, update):
    assert read(inner) == update


def test_reads_the_old_form():
    expected = PropertiesUpdate(Logging(True, False, True, 7), Metrics(True, False))

    assert read(LOGGING + old(METRICS), OLD) == expected


@pytest.mark.parametrize(
    ("inner", "error"),
    [
        ("<Metrics/>", UnsupportedXmlNode),
        ("<DefaultServiceVersion>2019-02-02</DefaultServiceVersion>", UnsupportedXmlNode),
        ("text", InvalidXmlDocument),
        (LOGGING + LOGGING, InvalidXmlDocument),
        ("<Cors/><Cors/>", InvalidXmlDocument),
        ("<Logging/>", MissingRequiredXmlNode),
        (LOGGING.replace("<Version>1.0</Version>", ""), MissingRequiredXmlNode),
        (LOGGING.replace("1.0", "1.1"), InvalidXmlNodeValue),
        (LOGGING.replace("1.0", ""), InvalidXmlNodeValue),
        (LOGGING.replace("<Write>false</Write>", ""), MissingRequiredXmlNode),
        (LOGGING.replace("<Write>false</Write>", "<Write>maybe</Write>"), InvalidXmlNodeValue),
        (LOGGING.replace("<Write>false</Write>", "<Write/>"), InvalidXmlNodeValue),
        (LOGGING.replace("<Days>7</Days>", ""), MissingRequiredXmlNode),
        (LOGGING.replace("<Days>7</Days>", "<Days/>"), InvalidXmlNodeValue),
        (LOGGING.replace("<Days>7</Days>", "<Days>seven</Days>"), InvalidXmlNodeValue),
        (LOGGING.replace("<Days>7</Days>", "<Days>-7</Days>"), InvalidXmlNodeValue),
        (LOGGING.replace("<Days>7</Days>", "<Days>٧</Days>"), InvalidXmlNodeValue),
        (LOGGING.replace("<Enabled>true</Enabled>", ""), MissingRequiredXmlNode),
        (METRICS.replace("<IncludeAPIs>false</IncludeAPIs>", ""), MissingRequiredXmlNode),
        (METRICS.replace("IncludeAPIs>", "IncludeApis>"), UnsupportedXmlNode),
        (METRICS.replace("1.0", "2.0"), InvalidXmlNodeValue),
        ("<HourMetrics><Version>1.0</Version></HourMetrics>", MissingRequiredXmlNode),
        ("<Cors><Rule/></Cors>", UnsupportedXmlNode),
        ("<Cors><CorsRule/></Cors>", MissingRequiredXmlNode),
        (f"<Cors>{RULE.replace('<AllowedHeaders />', '')}</Cors>", MissingRequiredXmlNode),
        (f"<Cors>{RULE.replace('60', '-1')}</Cors>", InvalidXmlNodeValue),
        (f"<Cors>{RULE.replace('60', '1.5')}</Cors>", InvalidXmlNodeValue),
        (f"<Cors>{RULE.replace('60', '')}</Cors>", InvalidXmlNodeValue),
        (f"<Cors>{RULE.replace('</CorsRule>', '<a/></CorsRule>')}</Cors>", UnsupportedXmlNode),
        (f"<Cors>{RULE * 6}</Cors>", InvalidXmlDocument),
    ],
)
def test_refuses(inner, error):
    with pytest.raises(error):
        read(inner)


@pytest.mark.parametrize(
    ("inner", "error"),
    [
        ("", MissingRequiredXmlNode),
        (LOGGING, MissingRequiredXmlNode),
        (old(METRICS), MissingRequiredXmlNode),
        (LOGGING + METRICS, UnsupportedXmlNode),
        (LOGGING + old(METRICS) + "<Cors/>", UnsupportedXmlNode),
    ],
)
def test_old_versions_have_no_parts(inner, error):
    with pytest.raises(error):
        read(inner, OLD)


@pytest.mark.parametrize(
    ("body", "error"),
    [
        (b"", InvalidXmlDocument),
        (b"{}", InvalidXmlDocument),
        (b"<!DOCTYPE a><StorageServiceProperties/>", InvalidXmlDocument),
        (b"<SignedIdentifiers/>", UnsupportedXmlNode),
    ],
)
def test_refuses_another_document(body, error):
    with pytest.raises(error):
        read_properties(body, NEW)


def test_statistics():
    assert write_stats(1632179210.9) == START + (
        b"<StorageServiceStats><GeoReplication><Status>live</Status>"
        b"<LastSyncTime>Mon, 20 Sep 2021 23:06:50 GMT</LastSyncTime></GeoReplication></StorageServiceStats>"
    )
