// Lists and queries: filters by the odata tag, projection and pages.

import assert from "node:assert/strict";

import { check } from "./checks.mjs";
import { all, newTable, odata } from "./sdk.mjs";

const NOON = new Date("2026-02-03T12:00:00.123Z");
const GUID = "cf8ef051-1b7d-4e93-a1e5-a3944d7e441c";
const LOW = {
  partitionKey: "se",
  rowKey: "low",
  text: "o'hara",
  flag: false,
  count: -5,
  big: 2n ** 33n,
  ratio: 0.5,
  moment: NOON,
  id: { type: "Guid", value: GUID },
  data: new Uint8Array([0, 1]),
};
const HIGH = {
  partitionKey: "se",
  rowKey: "high",
  text: "zebra",
  flag: true,
  count: 40,
  big: 2n ** 60n,
  ratio: 1.5,
  moment: new Date(NOON.getTime() + 1),
  id: { type: "Guid", value: GUID.replace("cf", "df") },
  data: new Uint8Array([0, 2]),
};

async function zoo() {
  const table = await newTable();
  for (const entity of [LOW, HIGH, { partitionKey: "zz", rowKey: "bare" }]) await table.createEntity(entity);
  return table;
}

async function tableOf(count) {
  const table = await newTable();
  for (let start = 0; start < count; start += 100) {
    const numbers = Array.from({ length: Math.min(100, count - start) }, (_, index) => start + index);
    await table.submitTransaction(
      numbers.map((number) => ["create", { partitionKey: "se", rowKey: `${number}`.padStart(4, "0") }]),
    );
  }
  return table;
}

const found = async (table, filter) =>
  (await all(table.listEntities({ queryOptions: { filter } }))).map((entity) => entity.rowKey);

const rows = (page) => page.map((entity) => entity.rowKey);

check("filters by values of every type", async () => {
  const table = await zoo();
  const filters = [
    odata`text eq ${LOW.text}`,
    odata`flag eq ${false}`,
    odata`count eq ${LOW.count}`,
    odata`count lt ${0}`,
    odata`ratio eq ${LOW.ratio}`,
    odata`ratio lt ${1}`,
    odata`moment eq ${NOON}`,
    odata`moment lt ${HIGH.moment}`,
    `big eq ${LOW.big}L`,
    `id eq guid'${GUID}'`,
    "data eq X'0001'",
    "data lt binary'0002'",
    "not (flag eq true) and PartitionKey eq 'se'",
    odata`text ge ${"o"} and text lt ${"p"}`,
  ];
  for (const filter of filters) assert.deepEqual(await found(table, filter), ["low"], filter);
});

check("lists entities in pages of any size", async () => {
  const table = await tableOf(7);
  const expected = await found(table);
  for (const maxPageSize of [1, 2, 3, 6, 7, 8, 1000]) {
    const pages = await all(table.listEntities().byPage({ maxPageSize }));
    const chunks = Array.from({ length: Math.ceil(7 / maxPageSize) }, (_, index) =>
      expected.slice(index * maxPageSize, (index + 1) * maxPageSize),
    );
    assert.deepEqual(pages.map(rows), chunks);
    assert.equal(pages.at(-1).continuationToken, undefined);
  }
});

check("continues a filtered list with special keys", async () => {
  const table = await newTable();
  const keys = ["", "'", "+ %", "é", "😀"];
  for (const partitionKey of keys)
    for (const rowKey of keys) await table.createEntity({ partitionKey, rowKey, flag: true });
  const list = () =>
    table.listEntities({ queryOptions: { filter: "flag eq true", select: ["partitionKey", "rowKey"] } });

  const walked = [];
  let continuationToken;
  do {
    const { value: page } = await list().byPage({ maxPageSize: 2, continuationToken }).next();
    walked.push(...page.map(({ partitionKey, rowKey }) => [partitionKey, rowKey]));
    ({ continuationToken } = page);
  } while (continuationToken);

  assert.deepEqual(
    walked,
    keys.flatMap((partitionKey) => keys.map((rowKey) => [partitionKey, rowKey])),
  );
});

check("lists more than 1000 entities", async () => {
  const table = await tableOf(1050);

  assert.equal((await all(table.listEntities())).length, 1050);
  assert.deepEqual(
    (await all(table.listEntities().byPage())).map((page) => page.length),
    [1000, 50],
  );
  assert.deepEqual(
    (await all(table.listEntities().byPage({ maxPageSize: 500 }))).map((page) => page.length),
    [500, 500, 50],
  );
});
