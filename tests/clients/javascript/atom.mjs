// The oldest SDK, `azure` of 2013, which speaks Atom in x-ms-version 2011-08-18.

import assert from "node:assert/strict";

import { check } from "./checks.mjs";
import {
  TableClient,
  account,
  all,
  credential,
  hostEndpoint,
  key,
  newName,
  oldRefusal,
  oldest,
  options,
  promising,
} from "./sdk.mjs";

const BATCHED = [
  "beginBatch",
  "insertEntity",
  "updateEntity",
  "mergeEntity",
  "insertOrReplaceEntity",
  "deleteEntity",
];
const client = oldest.createTableService(account, key, hostEndpoint);
const service = promising(client);
const { TableQuery } = oldest;

const person = (row, values = {}) => ({ PartitionKey: "se é", RowKey: row, ...values });
const people = (table) => TableQuery.select().from(table);

async function newTable() {
  const name = newName();
  await service.createTable(name);
  return name;
}

async function stored(table) {
  const found = await service.queryEntities(people(table));
  return Object.fromEntries(found.map(({ RowKey, age }) => [RowKey, age]));
}

check("serves tables in Atom", async () => {
  const name = newName();

  assert.equal((await service.createTable(name)).TableName, name);
  assert.equal(await service.createTableIfNotExists(name), false);
  assert.equal((await service.getTable(name)).TableName, name);
  assert.ok((await service.queryTables()).some(({ TableName }) => TableName === name));
  assert.deepEqual(await oldRefusal(service.createTable(name)), [409, "TableAlreadyExists"]);
  assert.equal(await service.deleteTable(name), true);
  assert.equal((await oldRefusal(service.getTable(name)))[0], 404);
});

check("keeps entities in Atom, as other clients see them", async () => {
  const table = await newTable();
  const moment = new Date("2026-02-03T12:00:00.123Z");
  const values = { age: 36, ratio: 1.5, flag: true, text: "Grüße <&> \"'", moment };

  const { _: inserted } = await service.insertEntity(table, person("ada", values));

  const { age, ratio, flag, text, moment: when, _: found } = await service.queryEntity(table, "se é", "ada");
  assert.deepEqual(
    { age, ratio, flag, text, when },
    { age: 36, ratio: 1.5, flag: true, text: values.text, when: moment },
  );
  assert.equal(found.etag, inserted.etag);
  assert.ok(found.id.endsWith(`/${table}(PartitionKey='se%20%C3%A9',RowKey='ada')`));

  const today = new TableClient(hostEndpoint, table, credential, options);
  const [entity] = await all(today.listEntities());
  assert.equal(entity.etag, inserted.etag);
  assert.deepEqual(
    { age: entity.age, ratio: entity.ratio, text: entity.text },
    { age: 36, ratio: 1.5, text: values.text },
  );
});

check("finds entities in Atom, page by page", async () => {
  const table = await newTable();
  for (const row of "abc") await service.insertEntity(table, person(row, { age: row.charCodeAt() }));

  const some = await service.queryEntities(people(table).where("age gt ?", 97));
  const rows = (entities) => entities.map(({ RowKey }) => RowKey).join("");
  assert.equal(rows(some), "bc");

  const [first, rest] = await new Promise((resolve, reject) =>
    client.queryEntities(people(table).top(2), (error, page, continuation) => {
      if (error || !continuation.hasNextPage()) reject(error ?? new Error("there is no next page"));
      else continuation.getNextPage((failure, next) => (failure ? reject(failure) : resolve([page, next])));
    }),
  );
  assert.deepEqual([rows(first), rows(rest)], ["ab", "c"]);
});

// a batch that fails ends this client itself: it misses a function of its own
check("writes a batch in Atom", async () => {
  const table = await newTable();
  for (const row of "abc") await service.insertEntity(table, person(row, { age: 1 }));
  const batch = promising(oldest.createTableService(account, key, hostEndpoint), ...BATCHED);

  batch.beginBatch();
  batch.insertEntity(table, person("d", { age: 2 }));
  batch.updateEntity(table, person("a", { age: 2 }));
  batch.mergeEntity(table, person("b", { age: 2 }));
  batch.deleteEntity(table, person("c"));
  batch.insertOrReplaceEntity(table, person("e", { age: 2 }));
  await batch.commitBatch();
  assert.deepEqual(await stored(table), { a: 2, b: 2, d: 2, e: 2 });
});

check("refuses in Atom", async () => {
  const table = await newTable();
  await service.insertEntity(table, person("a"));

  assert.deepEqual(await oldRefusal(service.insertEntity(table, person("a"))), [409, "EntityAlreadyExists"]);
  assert.deepEqual(await oldRefusal(service.queryEntity(table, "se é", "z")), [404, "ResourceNotFound"]);
  assert.deepEqual(await oldRefusal(service.insertEntity(newName(), person("a"))), [404, "TableNotFound"]);
  const stranger = promising(oldest.createTableService(account, "d3Jvbmc=", hostEndpoint));
  assert.equal((await oldRefusal(stranger.queryTables()))[0], 403);
});

check("keeps the properties of the service for the oldest SDK", async () => {
  const before = await service.getServiceProperties();
  assert.equal(before.Metrics.Enabled, true);
  const changed = structuredClone(before);
  changed.Logging = { ...changed.Logging, Read: true, RetentionPolicy: { Enabled: true, Days: 3 } };
  try {
    await service.setServiceProperties(changed);
    assert.deepEqual(await service.getServiceProperties(), changed);
  } finally {
    await service.setServiceProperties(before);
  }
});
