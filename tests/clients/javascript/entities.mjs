// Single entities: insert, get, update, upsert and delete, with every condition and any key.

import assert from "node:assert/strict";

import { check } from "./checks.mjs";
import { all, newTable, odata, refusals } from "./sdk.mjs";

const KEYS = { partitionKey: "se", rowKey: "ada" };
const ADA = { ...KEYS, age: 36, city: "London" };
const MODES = ["Merge", "Replace"];
const SPECIAL = [
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
  "-",
  "_",
  "<>",
  ";",
  "~",
  "^",
  "!",
  "%",
  "*",
  "%2F",
  " ",
  "|",
  "`",
  "é",
  "你好",
  "😀",
];

async function tableOfAda() {
  const table = await newTable();
  const { etag } = await table.createEntity(ADA);
  return { table, etag };
}

const stored = async (table, rowKey = "ada") => {
  const { etag, timestamp, "odata.metadata": _, ...entity } = await table.getEntity("se", rowKey);
  return entity;
};

check("inserts an entity and tells its etag", async () => {
  const table = await newTable();

  const answer = await table.createEntity(ADA);

  const found = await table.getEntity("se", "ada");
  assert.match(answer.etag, /^W\/"datetime'\d{4}-\d\d-\d\dT\d\d%3A\d\d%3A\d\d(\.\d+)?Z'"$/);
  assert.equal(answer.preferenceApplied, "return-no-content");
  assert.ok(answer.date instanceof Date);
  assert.equal(answer.version, "2019-02-02");
  assert.equal(found.etag, answer.etag);
  assert.equal(encodeURIComponent(found.timestamp), answer.etag.slice(12, -2));
  assert.deepEqual(await stored(table), ADA);
});

check("updates an entity by merging", async () => {
  const { table } = await tableOfAda();

  const { etag } = await table.updateEntity({ ...KEYS, age: 37, title: "Countess" }, "Merge");

  assert.deepEqual(await stored(table), { ...ADA, age: 37, title: "Countess" });
  assert.equal((await table.getEntity("se", "ada")).etag, etag);
});

check("updates an entity by replacing", async () => {
  const { table } = await tableOfAda();

  const { etag } = await table.updateEntity({ ...KEYS, title: "Countess" }, "Replace");

  assert.deepEqual(await stored(table), { ...KEYS, title: "Countess" });
  assert.equal((await table.getEntity("se", "ada")).etag, etag);
});

check("refuses to overwrite or delete a change", async () => {
  const { table, etag } = await tableOfAda();
  await table.updateEntity({ ...KEYS, age: 40 }, "Merge");
  const operations = [
    ...MODES.map((mode) => table.updateEntity(KEYS, mode, { etag })),
    table.deleteEntity("se", "ada", { etag }),
  ];
  for (const error of await refusals(operations)) {
    assert.equal(error.statusCode, 412);
    assert.equal(error.details.odataError.code, "UpdateConditionNotSatisfied");
  }
  assert.deepEqual(await stored(table), { ...ADA, age: 40 });
});

check("upserts an entity", async () => {
  const table = await newTable();
  for (const mode of MODES) {
    const entity = { ...ADA, rowKey: mode };
    const inserted = await table.upsertEntity(entity, mode);
    assert.deepEqual(await stored(table, mode), entity);
    const changed = await table.upsertEntity({ partitionKey: "se", rowKey: mode, title: "Countess" }, mode);
    assert.notEqual(changed.etag, inserted.etag);
  }
  assert.deepEqual(await stored(table, "Merge"), { ...ADA, rowKey: "Merge", title: "Countess" });
  assert.deepEqual(await stored(table, "Replace"), {
    partitionKey: "se",
    rowKey: "Replace",
    title: "Countess",
  });
});

check("selects a missing property as null", async () => {
  const { table } = await tableOfAda();

  assert.equal((await table.getEntity("se", "ada", { queryOptions: { select: ["missing"] } })).missing, null);
});

check("serves keys with special characters", async () => {
  const table = await newTable();
  for (const characters of SPECIAL) {
    const keys = { partitionKey: `foo${characters}`, rowKey: `${characters}bar` };
    await table.createEntity({ ...keys, step: 1 });
    for (const mode of MODES) {
      await table.upsertEntity({ ...keys, value: characters }, mode);
      await table.updateEntity({ ...keys, value: characters }, mode);
    }
    const { partitionKey, rowKey, value } = await table.getEntity(keys.partitionKey, keys.rowKey);
    assert.deepEqual({ partitionKey, rowKey, value }, { ...keys, value: characters });
    for (const filter of [
      odata`PartitionKey eq ${keys.partitionKey}`,
      odata`RowKey eq ${keys.rowKey}`,
      odata`value eq ${characters}`,
    ]) {
      const found = await all(table.listEntities({ queryOptions: { filter } }));
      assert.deepEqual(
        found.map((entity) => entity.rowKey),
        [keys.rowKey],
        filter,
      );
    }
    await table.deleteEntity(keys.partitionKey, keys.rowKey);
  }
  assert.deepEqual(await all(table.listEntities()), []);
});
