// Values of every type come back as they were sent, converted by the SDK or not.

import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";

import { check } from "./checks.mjs";
import { all, newTable } from "./sdk.mjs";

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

check("returns guids", async () => {
  assert.deepEqual(await returned({ Id: { type: "Guid", value: GUID.toUpperCase() } }), {
    Id: { type: "Guid", value: GUID },
  });
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
