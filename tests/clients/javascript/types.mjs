// Values of every type come back as they were sent, converted by the SDK or not.

import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";

import { check } from "./checks.mjs";
import { all, newTable, refusal } from "./sdk.mjs";

const KEYS = { partitionKey: "se", rowKey: "ada" };
const GUID = "cf8ef051-1b7d-4e93-a1e5-a3944d7e441c";

/** What comes back for values, by the names they were given: of an insert, a merge and a replacement alike. */
async function returned(values, options = {}) {
  const table = await newTable();
  await table.createEntity({ ...KEYS, ...values });
  await table.upsertEntity({ ...KEYS, rowKey: "merged", ...values }, "Merge");
  await table.upsertEntity({ ...KEYS, rowKey: "replaced", ...values }, "Replace");
  const point = content(await table.getEntity("se", "ada", options));
  for (const entity of await all(table.listEntities(options))) assert.deepEqual(content(entity), point);
  return point;
}

function content({ partitionKey, rowKey, etag, timestamp, "odata.metadata": _, ...values }) {
  assert.equal(partitionKey, "se");
  assert.match(etag, /^W\/"datetime'.+Z'"$/);
  assert.match(timestamp, /^\d{4}-.+Z$/);
  return values;
}

const numbered = (values) => Object.fromEntries(values.map((value, index) => [`P${index}`, value]));

/** That values come back as they are. */
async function same(values) {
  const sent = numbered(values);
  assert.deepEqual(await returned(sent), sent);
}

check("returns booleans", () => same([true, false]));

check("returns integers", () => same([0, 1, -1, 3, 2147483647, -2147483648]));

check("returns fractions", () => same([3.14, 0.1, 1 / 3, 1e-7, 5e-324, 1.7976931348623157e308, -2.5]));

check("returns whole numbers beyond Int32 without loss", async () => {
  await same([2147483648, -2147483649, 2 ** 53, 1e21, 1e300]);
});

check("returns bigints", () => same([0n, 1n, -1n, 2n ** 53n + 1n, 2n ** 63n - 1n, -(2n ** 63n)]));

check("returns dates", () =>
  same(
    [
      "2020-09-17T00:00:00.111Z",
      "1601-01-01T00:00:00.000Z",
      "1969-12-31T23:59:59.999Z",
      "9999-12-31T23:59:59.999Z",
    ].map((text) => new Date(text)),
  ),
);

check("returns bytes", async () => {
  const sent = [
    new Uint8Array(),
    new Uint8Array([66, 97, 114]),
    Uint8Array.from({ length: 256 }, (_, byte) => byte),
    randomBytes(65536),
  ];

  const found = Object.values(await returned(numbered(sent)));

  assert.deepEqual(
    found.map((bytes) => Buffer.from(bytes)),
    sent.map((bytes) => Buffer.from(bytes)),
  );
});

check("returns strings", () =>
  same([
    "",
    " ",
    "   Text   ",
    "'",
    "''",
    '"',
    "100%",
    "a+b",
    "\\ / # ?",
    "\n\r\t",
    "\0",
    "a\0b",
    "ꀕ",
    "😀👩\u200d👧",
    "\u2028\u2029",
    "\ufeff",
    "\ufffe\uffff",
    "\ud800",
    "\udfff",
    "a\ud83d",
    "\udc00\ud800",
    "<a>&amp;",
    '{"a":[1]}',
    "2020-01-01T00:00:00Z",
    "12",
    "null",
  ]),
);

check("returns long strings", () =>
  same(["x".repeat(32768), "é".repeat(32768), "😀".repeat(16384), "\0".repeat(32768)]),
);

check("returns guids", async () => {
  assert.deepEqual(await returned({ Id: { type: "Guid", value: GUID.toUpperCase() } }), {
    Id: { type: "Guid", value: GUID },
  });
});

check("reads values given with their type", async () => {
  const found = await returned({
    Flag: { type: "Boolean", value: true },
    Text: { type: "String", value: "12" },
    Int: { type: "Int32", value: 123 },
    IntText: { type: "Int32", value: "-7" },
    Big: { type: "Int64", value: "12345543221" },
    Double: { type: "Double", value: 1 },
    DoubleText: { type: "Double", value: "1.5" },
    Moment: { type: "DateTime", value: "2020-09-17T00:00:00.99999Z" },
    Data: { type: "Binary", value: "QmFy" },
  });

  assert.deepEqual(found, {
    Flag: true,
    Text: "12",
    Int: 123,
    IntText: -7,
    Big: 12345543221n,
    Double: 1,
    DoubleText: 1.5,
    Moment: new Date("2020-09-17T00:00:00.999Z"),
    Data: found.Data,
  });
  assert.equal(Buffer.from(found.Data).toString(), "Bar");
});

check("returns values with their type unless they are converted", async () => {
  const sent = {
    Flag: { type: "Boolean", value: "true" },
    Text: { type: "String", value: "text" },
    Int: { type: "Int32", value: "123" },
    Big: { type: "Int64", value: "9223372036854775807" },
    Double: { type: "Double", value: "1.5" },
    Moment: { type: "DateTime", value: "2020-09-17T00:00:00.9999999Z" },
    Data: { type: "Binary", value: "QmFy" },
    Id: { type: "Guid", value: GUID },
  };

  assert.deepEqual(await returned(sent, { disableTypeConversion: true }), sent);
});

check("returns special doubles", async () => {
  const sent = numbered(["NaN", "Infinity", "-Infinity"].map((value) => ({ type: "Double", value })));

  assert.deepEqual(await returned(sent, { disableTypeConversion: true }), sent);
  assert.deepEqual(await returned(sent), numbered(["NaN", "Infinity", "-Infinity"]));
});

check("returns dates to 100 nanoseconds", async () => {
  for (const value of [
    "1601-01-01T00:00:00.0000001Z",
    "1969-12-31T23:59:59.9999999Z",
    "9999-12-31T23:59:59.9999999Z",
  ]) {
    const found = await returned({ Moment: { type: "DateTime", value } }, { disableTypeConversion: true });
    assert.deepEqual(found, { Moment: { type: "DateTime", value } });
  }
});

check("leaves out what has no value", async () => {
  assert.deepEqual(await returned({ Nothing: null, Undefined: undefined, Text: "x" }), { Text: "x" });
});

check("refuses values that are not of their type", async () => {
  const table = await newTable();
  const wrong = [
    { type: "Boolean", value: "maybe" },
    { type: "Int32", value: "2147483648" },
    { type: "Int64", value: "9223372036854775808" },
    { type: "Double", value: "abc" },
    { type: "Double", value: "13e7705" },
    { type: "DateTime", value: "0001-01-01T00:00:00Z" },
    { type: "DateTime", value: "yesterday" },
    { type: "Guid", value: "no guid" },
    { type: "Binary", value: "####" },
  ];
  for (const value of wrong) {
    const error = await refusal(table.createEntity({ ...KEYS, Value: value }));
    assert.equal(error.statusCode, 400, JSON.stringify(value));
    assert.match(error.details.odataError.code, /^(InvalidInput|OutOfRangeInput|InvalidValueType)$/);
  }
  assert.deepEqual(await all(table.listEntities()), []);
});

check("refuses what exceeds a limit", async () => {
  const table = await newTable();
  const many = (count, value) =>
    Object.fromEntries(Array.from({ length: count }, (_, index) => [`P${index}`, value]));
  const excesses = {
    TooManyProperties: many(253, 1),
    PropertyNameTooLong: { ["a".repeat(256)]: 1 },
    PropertyNameInvalid: { "a-b": 1 },
    PropertyValueTooLarge: { Text: "x".repeat(32769) },
    EntityTooLarge: many(17, "x".repeat(32768)),
  };
  for (const [code, values] of Object.entries(excesses)) {
    const error = await refusal(table.createEntity({ ...KEYS, ...values }));
    assert.equal(error.statusCode, 400);
    assert.equal(error.details.odataError.code, code);
  }
  await table.createEntity({ ...KEYS, ...many(252, 1) });
});
