"""Options, filters and headers as the request log stores them."""

from functools import partial

import pytest

from storage.domain.errors import StorageError
from storage.domain.filters.parser import parse
from storage.domain.requests.cleaning import (
    LEFT_OUT,
    clean_date,
    clean_filter,
    clean_label,
    clean_md5,
    clean_media_type,
    clean_method,
    clean_options,
    clean_property,
    clean_sas_value,
    clean_table,
    clean_version,
    clean_words,
    holds_secret,
    redact_signatures,
)
from storage.domain.values.kinds import AccountKind


@pytest.mark.parametrize(
    ("sent", "kept"),
    [
        ("Name eq 'O''Brien' and (Age gt 5 or not (Born lt datetime'2026-01-01T00:00:00Z'))", None),
        ("Name eq 'O'Brien'", "Name eq ……[']"),
        ("Name eq O Brien", "Name eq … …"),
        ("Name = 'Ada'", "… [=] …"),
        ("Name eq 'Ada' && Age gt 5", "Name eq … [&]& … gt …"),
        ("Name eq 'Ada' UND Age gt 5", "Name eq … [UND] Age gt …"),
        ('Name eq "Ada Lovelace"', 'Name eq ["]… …"'),
        ("Name eq 'Ada", "Name eq […]"),
        ("Name eq (Ada", "Name eq (…[]"),
        ("Name eq 'Ada' and", "Name eq … and[]"),
        ("Born gt datetime'Ada'", "Born gt […]"),
        ("Total gt 12abc", "Total gt […]"),
    ],
)
def test_filters_are_kept_without_values(sent, kept):
    try:
        parse(sent)
    except StorageError as error:
        text, span = clean_filter(sent, error.span)
        start, end = span
        if kept is not None and "[" in kept:
            text = f"{text[:start]}[{text[start:end]}]{text[end:]}"
        assert text == kept
    else:
        assert clean_filter(sent) == ("Name eq … and (Age gt … or not (Born lt …))", None)


@pytest.mark.parametrize(
    ("sent", "kept"),
    [
        ("Ada", "…"),  # a Boolean property, or a value without anything around it
        ("not Ada and Age gt 5", "not … and Age gt …"),
        ("Age gt 5 or Ada", "Age gt … or …"),
        ("Active eq true and 5 lt Age", "Active eq … and Age gt …"),
        ("Name eq “Ada”", "Name eq …"),
        ("PartitionKey eq Ada", "PartitionKey eq …"),
    ],
)
def test_possible_values_are_redacted_in_filters(sent, kept):
    assert clean_filter(sent)[0] == kept


def test_options_are_kept_with_values_of_their_kind():
    query = (
        b"%24select=Name,a-b,*&$top=5&sig=secret&SV=2019&NextRowKey=1!8!QWRh&odd=Ada&$filter=Age%20gt+5&$Top=many"
        b"&$format=application/json;odata=Ada&comp=list%26sig=x&restype=service&timeout=30&api-version=2019-02-02x"
    )
    assert list(clean_options(query)) == [
        ("$select", "Name,…,*"),
        ("$top", "5"),
        ("NextRowKey", "…"),
        ("$filter", "Age gt …"),
        ("$Top", "…"),
        ("$format", "application/json;…"),
        ("comp", "…"),
        ("restype", "service"),
        ("timeout", "30"),
        ("api-version", "…"),
        ("…", "…"),
    ]


@pytest.mark.parametrize(
    ("clean", "kept", "left_out"),
    [
        (clean_method, "MERGE", "Ada"),
        (clean_version, "2019-02-02", "2019-02-02 Ada"),
        (clean_date, "Sat, 28 Nov 2026 20:00:00 GMT", "Sat, 28 Nov 2026 Ada"),
        (clean_md5, "CY9rzUYh03PK3k6DJie09g==", "CY9rzUYh03PK3k6DJie09g==x"),
        (clean_media_type, "application/json; odata=nometadata; charset=utf-8", "Ada"),
        (clean_label, "read-only 2", "sig=Ada"),
        (clean_property, "größe_1", "a-b"),
        (partial(clean_sas_value, "sp"), "raud", "Ada"),
        (partial(clean_sas_value, "se"), "2026-11-28T20:00Z", "2026-11-28&sig=x"),
        (partial(clean_sas_value, "sip"), "10.0.0.1-10.0.0.9", "Ada"),
        (partial(clean_sas_value, "tn"), "people", "people/Ada"),
        (partial(clean_sas_value, "spk"), "", "Ada"),
        (partial(clean_sas_value, "sig"), "", "Ada"),
    ],
)
def test_values_are_kept_only_in_the_form_of_their_kind(clean, kept, left_out):
    assert (clean(kept), clean(left_out)) == (kept, LEFT_OUT)


SIGNATURE = "c2VjcmV0" * 5 + "c2V="


@pytest.mark.parametrize(
    "text",
    [
        f"sv=1&sig={SIGNATURE}",
        f"peoplesig={SIGNATURE}",
        f"SIG%3D{SIGNATURE}",
        f"s%2569g%253D{SIGNATURE}",
        f"sig: {SIGNATURE}",
        f'{{"sig":"{SIGNATURE}"}}',
        f"%73%69%67%3d{SIGNATURE}",
    ],
)
def test_no_signature_is_in_a_message_or_the_name_of_a_client(text):
    assert "c2VjcmV0" not in redact_signatures(text)
    assert holds_secret(text)
    assert "c2VjcmV0" not in clean_words(f"client/1.0 {text}")


@pytest.mark.parametrize(
    "text",
    [
        SIGNATURE,
        f"SharedKey acme:{SIGNATURE}",
        "Bearer abcdefghijklmnop",
        "eyJhbGciOiJIUzI1.eyJ.x",
        f"{SIGNATURE[:-1]}%3D",
    ],
)
def test_no_credentials_are_in_the_name_of_a_client(text):
    assert LEFT_OUT in clean_words(f"client/1.0 {text}")


@pytest.mark.parametrize(
    "text",
    [
        "azsdk-python-data-tables/12.7.0 Python/3.11.7 (Linux-6.1-x86_64-with-glibc2.36)",
        "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/138.0 Safari/537.36",
        "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
        "6f9619ff-8b86-d011-b42d-00c04fc964ff",
        "design=modern configuration: 100%",
    ],
)
def test_names_of_clients_are_kept(text):
    assert clean_words(text) == text


@pytest.mark.parametrize(
    ("name", "kind", "kept"),
    [
        ("People2", AccountKind.STORAGE, "People2"),
        ("$MetricsHourPrimaryTransactionsTable", AccountKind.STORAGE, "$MetricsHourPrimaryTransactionsTable"),
        ("a-b", AccountKind.STORAGE, ""),
        ("ab", AccountKind.STORAGE, ""),
        ("a-b_2", AccountKind.COSMOS, "a-b_2"),
        ("people('Ada')", AccountKind.COSMOS, ""),
        ("people Ada", AccountKind.COSMOS, ""),
        ("sig=Ada", AccountKind.COSMOS, ""),
    ],
)
def test_valid_table_names_are_kept(name, kind, kept):
    assert clean_table(name, kind) == kept
