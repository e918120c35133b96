"""A form as a browser sends it: what its fields hold, and the button that was pressed."""

from html.parser import HTMLParser


class _Fields(HTMLParser):
    def __init__(self, form_id):
        super().__init__()
        self.fields = []
        self._wanted = form_id
        self._inside = False
        self._textarea = None
        self._select = None
        self._hidden = 0  # depth in templates

    def handle_starttag(self, tag, attributes):
        results = dict(attributes)
        if tag == "form":
            self._inside = results.get("id") == self._wanted
        if tag == "template":
            self._hidden += 1
        if not self._inside or self._hidden:
            return
        name, kind = results.get("name"), results.get("type")
        if tag == "textarea":
            self._textarea = [name, ""]
        elif tag == "select":
            self._select = name
        elif tag == "option" and self._select and "selected" in results:
            self.fields.append((self._select, results["value"]))
        elif (
            tag == "input"
            and name
            and kind != "file"
            and ("checked" in results or kind not in ("checkbox", "radio"))
        ):
            self.fields.append((name, results.get("value", "on" if kind == "checkbox" else "")))

    def handle_endtag(self, tag):
        if tag == "form":
            self._inside = False
        elif tag == "template":
            self._hidden -= 1
        elif tag == "select":
            self._select = None
        elif tag == "textarea" and self._textarea is not None:
            name, text = self._textarea
            # the first line end after the tag is none, and a browser sends every other as two characters
            self.fields.append((name, text.removeprefix("\n").replace("\n", "\r\n")))
            self._textarea = None

    def handle_data(self, data):
        if self._textarea is not None:
            self._textarea[1] += data


def fields_of(answer, form_id="entity-form", **changes):
    """Return the fields of a form; ``changes`` replace their values, and None removes a field."""
    parser = _Fields(form_id)
    parser.feed(answer.content.decode())
    result = dict(parser.fields) | changes
    return {name: value for name, value in result.items() if value is not None}


def lists_of(answer, form_id, **changes):
    """Return lists of values by name, for a form in which several fields share a name.

    Fields of one line hold no line ends.
    """
    parser = _Fields(form_id)
    parser.feed(answer.content.decode())
    results = {}
    for name, value in parser.fields:
        results.setdefault(name, []).append(
            value.replace("\r", "").replace("\n", "\r\n" if name == "xml" else "")
        )
    results |= {name: value if isinstance(value, list) else [value] for name, value in changes.items()}
    return {name: values for name, values in results.items() if values != [None]}
