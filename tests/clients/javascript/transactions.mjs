// Transactions: every operation, all or nothing, and the code of what failed.

import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";

import { check } from "./checks.mjs";
import { RestError, TableTransaction, all, newTable, refusal } from "./sdk.mjs";

const STALE = "W/\"datetime'2012-06-15T22%3A51%3A44.9662825Z'\"";

const person = (rowKey, values = {}) => ({ partitionKey: "se", rowKey, ...values });

async function crowd() {
  const table = await newTable();
  await table.submitTransaction(
    [..."abcde"].map((rowKey) => ["create", person(rowKey, { age: 1, city: "London" })]),
  );
  return table;
}

async function stored(table) {
  const entities = await all(table.listEntities());
  return Object.fromEntries(
    entities.map(({ partitionKey, rowKey, etag, timestamp, ...values }) => [rowKey, values]),
  );
}

check("writes all kinds of operations in a transaction", async () => {
  const table = await crowd();
  const transaction = new TableTransaction();
  transaction.createEntity(person("f", { age: 2 }));
  transaction.deleteEntity("se", "a");
  transaction.updateEntity(person("b", { age: 2 }), "Merge");
  transaction.updateEntity(person("c", { age: 2 }), "Replace");
  transaction.upsertEntity(person("d", { age: 2 }), "Merge");
  transaction.upsertEntity(person("e", { age: 2 }), "Replace");
  transaction.upsertEntity(person("g", { age: 2 }), "Merge");
  transaction.upsertEntity(person("h", { age: 2 }), "Replace");

  const result = await table.submitTransaction(transaction.actions);

  assert.equal(result.status, 202);
  assert.deepEqual(
    result.subResponses.map((answer) => answer.status),
    Array(8).fill(204),
  );
  assert.deepEqual(
    result.subResponses.map((answer) => Boolean(answer.etag)),
    [true, false, ...Array(6).fill(true)],
  );
  assert.deepEqual(await stored(table), {
    b: { age: 2, city: "London" },
    c: { age: 2 },
    d: { age: 2, city: "London" },
    e: { age: 2 },
    f: { age: 2 },
    g: { age: 2 },
    h: { age: 2 },
  });
});

check("undoes a transaction that fails", async () => {
  const table = await crowd();
  const before = await stored(table);
  const failures = [
    [409, "EntityAlreadyExists", ["create", person("a")]],
    [404, "ResourceNotFound", ["update", person("nobody")]],
    [404, "ResourceNotFound", ["delete", person("nobody")]],
    [412, "UpdateConditionNotSatisfied", ["update", person("a"), "Merge", { etag: STALE }]],
    [400, "InvalidDuplicateRow", ["upsert", person("b")]],
    [400, "PropertyNameInvalid", ["upsert", person("d", { "a-b": 1 })]],
    [400, "PropertyValueTooLarge", ["upsert", person("d", { text: "x".repeat(32769) })]],
  ];
  for (const [status, code, action] of failures) {
    const error = await refusal(
      table.submitTransaction([["upsert", person("b", { age: 9 })], ["delete", person("c")], action]),
    );
    assert.ok(error instanceof RestError);
    assert.equal(error.statusCode, status);
    assert.equal(error.code, code);
    assert.match(error.message, /^2:/);
    assert.deepEqual(await stored(table), before);
  }
});

check("refuses a transaction of more than 4 MiB", async () => {
  const table = await newTable();
  const block = new Uint8Array(randomBytes(65536));

  const actions = Array.from({ length: 30 }, (_, number) => [
    "create",
    person(`${number}`, { a: block, b: block }),
  ]);
  const error = await refusal(table.submitTransaction(actions));

  assert.equal(error.statusCode, 413);
  assert.equal(error.code, "RequestBodyTooLarge");
});

check("serves special keys in a transaction", async () => {
  const table = await newTable();
  const keys = [
    "'",
    '"',
    "{}",
    "[]",
    "()",
    ":",
    "@",
    "&",
    "=",
    "+",
    ",",
    "$",
    "<>",
    ";",
    "~",
    "^",
    "!",
    "%",
    "*",
    " ",
    "é",
    "😀",
    "",
  ];
  const entities = keys.map((key) => ({ partitionKey: "foo'", rowKey: `${key}`, value: `test${key}` }));
  for (const [name, ...rest] of [
    ["create"],
    ["upsert", "Merge"],
    ["upsert", "Replace"],
    ["update", "Merge"],
    ["update", "Replace"],
  ]) {
    const result = await table.submitTransaction(entities.map((entity) => [name, entity, ...rest]));
    assert.deepEqual(
      result.subResponses.map((answer) => answer.status),
      Array(keys.length).fill(204),
    );
  }
  for (const { rowKey, value } of entities)
    assert.equal((await table.getEntity("foo'", rowKey)).value, value);

  await table.submitTransaction(entities.map((entity) => ["delete", entity]));

  assert.deepEqual(await all(table.listEntities()), []);
});

check("serves values of every type in a transaction", async () => {
  const table = await newTable();
  const values = {
    text: "--changeset_x\r\n\r\n\0\ud800é😀{}",
    big: 2n ** 63n - 1n,
    ratio: 0.5,
    flag: true,
    count: 3,
    moment: new Date(0),
  };

  await table.submitTransaction([["create", person("a", values)]]);

  assert.deepEqual((await stored(table)).a, values);
});
