"""A query while it is written: what the server says of it, its rows, and what cells and properties add to it."""

import re
from html import unescape

import pytest

from console.queries.drafts import CONDITION_LIMIT
from console.site import static_files
from storage.domain.values.edm import Edm, EdmValue
from storage.entities import facets
from storage.models import Account

PEOPLE = "/ui/a/acme/t/people/"
PART = {"HX-Request": "true"}


@pytest.fixture
def ask(visit):
    """Return `ask("check", f="Age ge 30")`, which requests a part of the query of the table."""
    client = visit("victor")

    def ask(what, status=200, **fields):
        answer = client.post(f"{PEOPLE}query/{what}/", fields, headers=PART)
        assert answer.status_code == status
        return answer.content.decode()

    return ask


@pytest.fixture
def folk(add_entity):
    for number in range(3):
        add_entity(
            "se", f"{number}", Age=36 + number, Name=f"Ada {number}", Big=EdmValue(Edm.INT64, 7), Ok=True
        )
    add_entity("se", "none")


def texts(page):
    """Return the filters that the offers would produce."""
    return [unescape(text) for text in re.findall(r'data-offer="([^"]*)"', page)]


def value(page, name):
    result = re.search(rf'name="{name}" value="([^"]*)"', page)
    return unescape(result[1]) if result else None


def text_of(page):
    result = re.search(r'data-text="([^"]*)"', page)
    return unescape(result[1]) if result else None


# the check


def test_says_how_entities_are_reached(ask, folk):
    for text, told in [
        ("PartitionKey eq 'se' and RowKey eq '1'", "Point: explanation"),
        ("", "Browse: explanation"),
        ("Age ge 3", "Table scan: explanation"),
        ("PartitionKey eq 'se' and (RowKey eq '0' or RowKey eq '1')", "code that reads by key"),
        ("contains(Name,'da')", "not on Azure"),
    ]:
        page = ask("check", f=text)
        assert told in page, (text, told)
        assert "On Azure" in page, (text, told)
        assert re.search(r"reads about \d", page), (text, told)


def test_says_how_many_comparisons_azure_allows(ask, folk):
    for number, kind in [(15, "storage"), (16, "storage"), (16, "cosmos")]:
        Account.objects.filter(name="acme").update(kind=kind)
        page = ask("check", f=" or ".join(f"Age eq {age}" for age in range(number)))
        is_beyond = number > 15 and kind == "storage"
        assert ("16 comparisons; Azure allows 15" in page) == ("not on Azure" in page) == is_beyond, (
            number,
            kind,
        )


def test_offers_what_is_better(ask, folk):
    for text, offered in [
        ("Nam eq 'Ada'", "Name eq 'Ada'"),
        ("Big eq '7'", "Big eq 7L"),
        ("Age ge 30 or Ok", "(Age ge 30 or Ok) and PartitionKey eq ''"),
    ]:
        assert offered in texts(ask("check", f=text)), (text, offered)


def test_a_fault_has_its_place(ask, folk):
    page = ask("check", f="Name eq '🦊' and Age eq )")
    # as browsers count, for whom the fox is two
    assert re.search(r'data-from="24" data-to="25"', page)
    assert "Syntax error" in page
    assert "explanation" not in page


def test_a_fault_is_told_once_and_in_every_language(visit, folk):
    client = visit("victor")
    for language, told in [
        ("en", "Unknown operator “eqq”. Did you mean eq?"),
        ("tr", "Bilinmeyen işleç: “eqq”. eq mi demek istediniz?"),
        ("zh-hans", "未知运算符“eqq”。你是不是想用 eq？"),
    ]:
        client.cookies["tablero_language"] = language
        page = client.get(PEOPLE, {"f": "Age eqq 1"}).content.decode()
        assert page.count(f">{told}<") == 1, (language, told)
        assert "Syntax error" not in page, (language, told)
        assert 'data-offer="Age eq 1"' in page, (language, told)
        assert told in client.get(PEOPLE + "facets/", {"f": "Age eqq 1"}).content.decode(), (language, told)


def test_checks_without_scripts(visit, add_entity):
    answer = visit("victor").post(PEOPLE + "query/check/", {"f": "Age ge 30", "by": "rows"})
    assert answer.status_code == 302
    assert answer.url == PEOPLE + "?f=Age+ge+30&by=rows"


def test_a_relative_time_is_run_as_it_stands(visit, add_entity):
    add_entity("se", "ada", Since=EdmValue(Edm.DATETIME, 0))
    victor = visit("victor")
    page = victor.get(PEOPLE, {"f": "Timestamp ge datetime'{{now-1h}}'"})
    assert b"1 row in" in page.content
    assert b"{{now-1h}}" in page.content
    page = victor.get(PEOPLE, {"f": "Since ge datetime'{{now-1h}}'"})
    assert b"0 rows in" in page.content


# rows


def test_rows_that_are_not_edited_keep_the_text(ask, folk):
    for text in [
        "Age   ge\t30",
        "PartitionKey eq 'se' and (Age ge 30 or Name eq 'o''reilly')",
        "Since ge datetime'{{now-24h}}' and not isset(Name)",
    ]:
        page = ask("check", f=text, by="rows")
        assert text_of(page) is None, text
        # the form as a browser would send it
        assert text_of(ask("rows", **sent(page), f=text)) == text, text
        # and once more for rows alone: what they mean is the filter
        again = text_of(ask("rows", **sent(page), f=""))
        assert sent(ask("check", f=again, by="rows")) == sent(page), text


def sent(page):
    """Return the fields of the form of rows."""
    form = page.partition('id="query-builder"')[2].partition("<form")[2].partition("</form>")[0]
    fields = {}

    def add(name, text):
        fields.setdefault(unescape(name), []).append(unescape(text))

    for tag in re.findall(r"<input[^>]*>|<select[^>]*>.*?</select>", form, re.DOTALL):
        name = re.search(r' name="([^"]+)"', tag)
        if name is None or name[1] in ("csrfmiddlewaretoken", "f"):
            continue
        if tag.startswith("<select"):
            chosen = re.search(r'<option(?: value="([^"]*)")? selected>([^<]*)', tag)
            add(name[1], chosen[1] if chosen[1] is not None else chosen[2])
        elif 'type="checkbox"' not in tag or " checked" in tag:
            add(name[1], (re.search(r' value="([^"]*)"', tag) or [None, "on"])[1])
    return fields


def test_says_why_rows_cannot_be_drawn(ask, folk):
    for text, why in [("true", "Text only"), ("Age eq", "has an error")]:
        page = ask("check", f=text, by="rows")
        assert why in page, (text, why)
        assert text_of(page) is None, (text, why)
        assert "<form" not in page, (text, why)


def condition(name, operator="eq", type_="Edm.String", *values, place="r-0", **more):
    """Return the fields of a condition as a browser sends them."""
    fields = {"property": name, "operator": operator, "type": type_, "value": list(values), **more}
    return {"row": place} | {f"{place}:{field}": text for field, text in fields.items()}


def test_conditions_become_a_filter(ask, folk):
    for fields, text in [
        (condition("Age", "ge", "Edm.Int32", "30"), "Age ge 30"),
        (condition("Name", "one-of", "Edm.String", "a", "b'"), "Name eq 'a' or Name eq 'b'''"),
        (condition("Name", "is-not-set"), "not (isset(Name))"),
        (
            condition("Timestamp", "in-the-last", "Edm.DateTime", "3", unit="d"),
            "Timestamp ge datetime'{{now-3d}}'",
        ),
        # a filter may have the times of a Cosmos DB account, in all accounts
        (
            condition("Since", "lt", "Edm.DateTime", "0001-06-01T00:00:00Z"),
            "Since lt datetime'0001-06-01T00:00:00Z'",
        ),
        # another property brings its own type, which has other operators
        (condition("Big", "starts-with", "Edm.String", "5", was=""), "Big eq 5L"),
        # input that our forms never send
        ({"row": ["r-9-9", "x", ""], "do": "remove:r"}, ""),
        ({"row": ["r-0"], "do": "drop:r-0:99"}, ""),
        ({"row": ["r-0"], "do": f"drop:r-0:{'0' * 5000}"}, ""),
    ]:
        assert text_of(ask("rows", **fields)) == text, (fields, text)


def test_an_added_condition_has_the_focus_and_changes_nothing(ask, folk):
    page = ask("rows", **condition("Age", "ge", "Edm.Int32", "30"), do="add:r")
    assert re.search(r'id="r-1:property"[^>]*data-focus', page)
    assert text_of(page) == "Age ge 30"


def test_a_text_that_is_no_value_is_explained(ask, folk):
    page = ask("rows", **condition("Age", "eq", "Edm.Int32", "x7"))
    assert "Enter a whole number." in page
    assert text_of(page) == ""


def test_groups_are_added_and_removed(ask, folk):
    page = ask("rows", **condition("Age", "eq", "Edm.Int32", "1"), do="group:r")
    added = {"r-1-0:property": "Name", "r-1-0:value": "x", "do": "add:r-1"}
    page = ask("rows", **sent(page) | added)
    page = ask("rows", **sent(page) | {"r-1-1:property": "Name", "r-1-1:value": "y"})
    assert text_of(page) == "Age eq 1 and (Name eq 'x' or Name eq 'y')"
    for text in ("Name eq 'x' or Name eq 'y'", ""):
        page = ask("rows", **sent(page) | {"do": "remove:r-0"})
        assert text_of(page) == text


def test_reads_a_limited_number_of_conditions(ask, folk):
    many = {"row": [f"r-{number}" for number in range(CONDITION_LIMIT * 2)]}
    assert ask("rows", **many).count('name="row"') == CONDITION_LIMIT


def test_rows_without_scripts(visit, folk):
    client = visit("victor")
    page = client.get(PEOPLE, {"f": "Age ge 30", "by": "rows"}).content.decode()
    assert value(page, "r-0:property") == "Age"
    page = client.post(PEOPLE + "query/rows/", sent(page) | {"r-0:value": "37"}).content.decode()
    assert "?f=Age+ge+37" in page
    answer = client.post(PEOPLE + "query/rows/", sent(page) | {"do": "run"})
    assert (answer.status_code, answer.url) == (302, PEOPLE + "?f=Age+ge+37&by=rows")


# cells, properties, values


def key_of(client, row_key):
    page = client.get(PEOPLE, {"f": f"RowKey eq '{row_key}'"}).content.decode()
    return re.search(r'<tr data-key="([^"]+)"', page)[1]


def test_a_cell_narrows_the_filter(ask, visit, folk):
    for name, how, before, after in [
        ("Name", "is", "", "Name eq 'Ada 1'"),
        ("Age", "greater", "Age eq 1 or Ok", "(Age eq 1 or Ok) and Age gt 37"),
        ("PartitionKey", "less", "", "PartitionKey lt 'se'"),
        ("Rare", "is", "", "not (isset(Rare))"),
        ("Rare", "is-not", "", "isset(Rare)"),
        ("Name", "is", "no filter", "Name eq 'Ada 1'"),
    ]:
        key = key_of(visit("victor"), "1")
        assert text_of(ask("cell", key=key, name=name, how=how, f=before)) == after, (name, how)


def test_five_minutes_around_a_time_and_no_half_a_character(ask, visit, add_entity):
    add_entity("se", "ada", Since=EdmValue(Edm.DATETIME, 0), Name="Ada \ud800")
    key = key_of(visit("victor"), "ada")
    text = text_of(ask("cell", key=key, name="Since", how="around", f=""))
    assert text == "Since ge datetime'1969-12-31T23:55:00Z' and Since le datetime'1970-01-01T00:05:00Z'"
    ask("cell", 404, key=key, name="Name", how="is", f="")


def test_refuses_conditions_that_a_cell_does_not_allow(ask, visit, folk):
    for name, how in [("Ok", "greater"), ("Rare", "less"), ("not a name", "is"), ("Age", "nonsense")]:
        ask("cell", 404, key=key_of(visit("victor"), "1"), name=name, how=how, f="")
        ask("cell", 404, key="nonsense", name=name, how=how, f="")


def test_knows_what_may_be_typed(visit, folk, monkeypatch):
    client = visit("victor")
    known = client.get(PEOPLE + "query/known/").json()
    properties = {it["name"]: it["types"] for it in known["properties"]}
    assert properties.items() >= {"PartitionKey": "String", "Timestamp": "DateTime", "Big": "Int64"}.items()
    values = client.get(PEOPLE + "query/values/", {"name": "Ok"}).json()["values"]
    assert {it["text"]: it["detail"] for it in values} == {"true": "3", "false": ""}
    assert client.get(PEOPLE + "query/values/", {"name": "Nothing"}).json() == {"values": []}
    monkeypatch.setattr(facets, "_SAMPLE", 2)
    values = client.get(PEOPLE + "query/values/", {"name": "Big"}).json()["values"]
    assert values[0]["detail"] == "about 100%"


def heads(page):
    return re.findall(r'<th scope="col"[^>]*data-property="([^"]+)"', page)


def test_only_what_is_selected_is_shown(visit, folk):
    victor = visit("victor")
    page = victor.get(PEOPLE, {"s": "Name,Rare"}).content.decode()
    assert heads(page) == ["PartitionKey", "RowKey", "Name", "Rare"]
    assert ">36<" not in page
    assert 'name="s" value="Name,Rare"' in page
    page = victor.get(PEOPLE, {"s": ["Name", "Age"], "view": "json"}).content.decode()
    assert "Ada 1" in page
    assert "Big" not in page.partition('id="results"')[2]
    page = victor.get(PEOPLE, {"s": ["Name", "*"]}).content.decode()
    assert "Age" in heads(page)


# figures and addresses of a run


def test_a_run_has_figures_and_a_short_address(visit, folk):
    asked = {"f": "Age ge 37", "by": "", "s": "", "sort": "", "top": "50"}
    answer = visit("victor").get(PEOPLE, asked, headers=PART)
    assert answer["HX-Push-Url"] == PEOPLE + "?f=Age+ge+37"
    assert re.search(r"2 rows in [\d,]+ ms", answer.content.decode())
    assert re.search(r"1 page\s+· ", answer.content.decode())
    assert f'data-copy="{answer["X-Request-Id"]}"' in answer.content.decode()


def test_only_a_page_with_an_editor_has_a_nonce(visit, folk):
    client = visit("victor")
    page = client.get(PEOPLE)
    nonce = re.search(r'data-nonce="([^"]+)"', page.content.decode())[1]
    assert f"style-src 'self' 'nonce-{nonce}';" in page.headers["Content-Security-Policy"] + ";"
    for path in ("/ui/a/acme/", PEOPLE + "export/"):
        assert "nonce" not in client.get(path).headers["Content-Security-Policy"]


def test_weight_of_the_editor():
    files = static_files.files()
    [bundle] = [name for name in files if name.endswith("codemirror.js")]
    assert len(files[bundle].compressed) < 130_000
    scripts = {path.name: path.read_text() for path in (static_files.ROOT / "console").rglob("*.js")}
    importing = {name for name, text in scripts.items() if "codemirror.js" in text}
    assert importing == {"editor.js"}
    # the editor is loaded on demand only
    assert [name for name, text in scripts.items() if re.search(r'from "[./a-z]*/editor\.js', text)] == []
    assert [name for name, text in scripts.items() if 'import("./editor.js")' in text] == ["query.js"]


def keys(page):
    return re.findall(r'<td aria-colindex="3"[^>]*>([^<]*)</td>', page)


def test_sorted_by_a_property(visit, folk, add_entity):
    for number in range(40):
        add_entity("zz", f"{number:02}", Age=100 - number)
    client = visit("victor")
    page = client.get(PEOPLE, {"sort": "-Age", "top": "25", "f": "PartitionKey eq 'zz'"}).content.decode()
    assert keys(page) == [f"{number:02}" for number in range(25)]
    assert re.search(r'data-property="Age"[^>]*aria-sort="descending"', page)
    assert "Sorted by Age" in page
    following = unescape(re.search(r'id="page-next" href="([^"]+)"', page)[1])
    page = client.get(following).content.decode()
    assert keys(page) == [f"{number:02}" for number in range(25, 40)]
    page = client.get(PEOPLE, {"sort": "Age", "f": "PartitionKey eq 'se'"}).content.decode()
    assert keys(page) == ["0", "1", "2", "none"]  # those without it come last


def test_a_place_in_another_order_is_none(visit, folk):
    client = visit("victor")
    plain = client.get(PEOPLE, {"after": "WyJzZSIsIjEiLDFd"}).content.decode()
    assert keys(plain) == ["1", "2", "none"]
    page = client.get(PEOPLE, {"after": "WyJzZSIsIjEiLDFd", "sort": "Age"}).content.decode()
    assert keys(page) == ["0", "1", "2", "none"]
    assert len(keys(client.get(PEOPLE, {"sort": "<script>"}).content.decode())) == 4
