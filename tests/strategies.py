"""Hypothesis strategies for the parts of entities; every value they make is a legal one."""

import math
import re

from hypothesis import strategies as st

from storage.domain.values.edm import INT32, INT64, Edm, EdmValue

FIRST_TICK = -116_444_736_000_000_000  # 1601-01-01
LAST_TICK = 2_534_023_007_999_999_999  # 9999-12-31T23:59:59.9999999

# characters that are hard for storage and JSON, among any others
characters = st.sampled_from(
    "\x00\x01\x02\n\r\t\"\\'/%+$@:,{}[]s5.\x7f\x80\x9f"
    "\u2028\ud7ff\ue000\ue001\uffff\ufeff\ud800\udbff\udc00\udfff😀\U0010ffff"
) | st.characters(exclude_categories=())
texts = st.text(characters, max_size=12)
storable = st.text(st.characters(exclude_characters="\x00"), max_size=12)

doubles = st.floats() | st.sampled_from(
    [0.0, -0.0, 1.0, 5e-324, 1.7976931348623157e308, 1e22, 1e16, 1e-7, 100.0, math.inf, -math.inf, math.nan]
)
ticks = st.integers(FIRST_TICK, LAST_TICK) | st.sampled_from([0, 1, -1, FIRST_TICK, LAST_TICK])

values = st.one_of(
    st.builds(EdmValue, st.just(Edm.STRING), texts),
    st.builds(EdmValue, st.just(Edm.BOOLEAN), st.booleans()),
    st.builds(EdmValue, st.just(Edm.INT32), st.integers(INT32.start, INT32.stop - 1)),
    st.builds(EdmValue, st.just(Edm.INT64), st.integers(INT64.start, INT64.stop - 1)),
    st.builds(EdmValue, st.just(Edm.DOUBLE), doubles),
    st.builds(EdmValue, st.just(Edm.DATETIME), ticks),
    st.builds(EdmValue, st.just(Edm.GUID), st.uuids().map(str)),
    st.builds(EdmValue, st.just(Edm.BINARY), st.binary(max_size=40)),
)

names = st.from_regex(r"[A-Za-z_][A-Za-z0-9_]{0,12}", fullmatch=True) | st.text(
    st.sampled_from("aZ_9éßЖ名ﬁ٣𝐀𐐷·"), min_size=1, max_size=8
).filter(str.isidentifier)
SYSTEM = {"PartitionKey", "RowKey", "Timestamp"}
properties = st.dictionaries(names.filter(lambda name: name not in SYSTEM), values, max_size=8)

DISALLOWED_IN_KEYS = re.compile(r"[/\\#?\x00-\x1f\x7f-\x9f]")
keys = st.text(st.characters(exclude_categories=("Cs",)), max_size=12).filter(
    lambda key: not DISALLOWED_IN_KEYS.search(key)
)
