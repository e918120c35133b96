// The SDK of before, `azure-storage`, which applications still use.

import assert from "node:assert/strict";

import { check } from "./checks.mjs";
import { account, endpoint, key, legacy, newName, oldRefusal as refusal, promising } from "./sdk.mjs";

const { AccountSasConstants } = legacy.Constants;
const { TableBatch, TableQuery, TableUtilities } = legacy;
const entity = TableUtilities.entityGenerator;
const HOSTS = { primaryHost: endpoint, secondaryHost: `${endpoint}-secondary` };
const SECONDARY = { locationMode: legacy.StorageUtilities.LocationMode.SECONDARY_ONLY };
const IN_AN_HOUR = new Date(Date.now() + 3600_000);
const { QUERY, ADD, UPDATE, DELETE } = TableUtilities.SharedAccessPermissions;

// of these the SDK tells no type
const PLAIN = ["Edm.String", "Edm.Boolean", "Edm.Int32", "Edm.Double"];
const service = promising(legacy.createTableService(account, key, HOSTS), "generateSharedAccessSignature");
const byToken = (token) => promising(legacy.createTableServiceWithSas(HOSTS, token));

const person = (row, values = {}) => ({
  PartitionKey: entity.String("se"),
  RowKey: entity.String(row),
  ...values,
});

async function newTable() {
  const name = newName();
  await service.createTable(name);
  return name;
}

async function stored(table, client = service) {
  const { entries } = await client.queryEntities(table, new TableQuery(), null);
  return Object.fromEntries(entries.map((found) => [found.RowKey._, found.age?._]));
}

check("lists tables in pages to the SDK of before", async () => {
  const prefix = newName();
  for (const letter of "abc") await service.createTable(prefix + letter);

  const first = await service.listTablesSegmentedWithPrefix(prefix, null, { maxResults: 2 });
  const rest = await service.listTablesSegmentedWithPrefix(prefix, first.continuationToken, {
    maxResults: 2,
  });

  assert.deepEqual([first.entries, rest.entries], [[prefix + "a", prefix + "b"], [prefix + "c"]]);
});

check("keeps every type for the SDK of before", async () => {
  const table = await newTable();
  const moment = new Date("2026-02-03T12:00:00.123Z");
  const values = {
    text: entity.String("Grüße €😀 'quoted'"),
    flag: entity.Boolean(true),
    count: entity.Int32(36),
    big: entity.Int64("9007199254740993"),
    ratio: entity.Double(0.5),
    whole: entity.Double(1),
    infinite: entity.Double(Infinity),
    moment: entity.DateTime(moment),
    id: entity.Guid("c9da6455-213d-42c9-9a79-3e9149a57833"),
    data: entity.Binary(Buffer.from([0, 255])),
  };

  await service.insertEntity(table, person("a", values));

  const found = await service.retrieveEntity(table, "se", "a");
  for (const [name, { $, _ }] of Object.entries(values)) {
    assert.deepEqual(found[name]._, _, name);
    if (!PLAIN.includes($)) assert.equal(found[name].$, $, name);
  }
  assert.match(found[".metadata"].etag, /^W\/"datetime'20/);
});

check("changes entities for the SDK of before", async () => {
  const table = await newTable();
  await service.insertEntity(table, person("a", { age: entity.Int32(1), city: "London" }));

  await service.mergeEntity(table, person("a", { age: entity.Int32(2) }));
  assert.equal((await service.retrieveEntity(table, "se", "a")).city._, "London");
  await service.replaceEntity(table, person("a", { age: entity.Int32(3) }));
  assert.equal((await service.retrieveEntity(table, "se", "a")).city, undefined);
  await service.insertOrMergeEntity(table, person("b", { age: entity.Int32(4) }));
  await service.insertOrReplaceEntity(table, person("c", { age: entity.Int32(5) }));
  assert.deepEqual(await stored(table), { a: 3, b: 4, c: 5 });

  await service.deleteEntity(table, person("a"));
  assert.deepEqual(await stored(table), { b: 4, c: 5 });
});

check("refuses as the SDK of before expects", async () => {
  const table = await newTable();
  const old = await service.insertEntity(table, person("a"), { echoContent: true });
  await service.mergeEntity(table, person("a", { age: entity.Int32(1) }));

  const stale = { ...person("a"), ".metadata": old[".metadata"] };
  assert.deepEqual(await refusal(service.replaceEntity(table, stale)), [412, "UpdateConditionNotSatisfied"]);
  assert.deepEqual(await refusal(service.insertEntity(table, person("a"))), [409, "EntityAlreadyExists"]);
  assert.deepEqual(await refusal(service.mergeEntity(table, person("z"))), [404, "ResourceNotFound"]);
  assert.deepEqual(await refusal(service.retrieveEntity(table, "se", "z")), [404, "ResourceNotFound"]);
  const stranger = promising(legacy.createTableService(account, "d3Jvbmc=", HOSTS));
  assert.deepEqual(await refusal(stranger.retrieveEntity(table, "se", "a")), [403, "AuthenticationFailed"]);
});

check("finds entities for the SDK of before", async () => {
  const table = await newTable();
  const batch = new TableBatch();
  for (let row = 0; row < 5; row++)
    batch.insertEntity(person(`${row}`, { age: entity.Int64(`${row}`), name: `o'${row}` }));
  await service.executeBatch(table, batch);

  const query = new TableQuery()
    .where("age ge ?int64? and name ne ?", "1", "o'4")
    .select("RowKey", "age")
    .top(2);
  const first = await service.queryEntities(table, query, null);
  const rest = await service.queryEntities(table, query, first.continuationToken);

  const rows = ({ entries }) => entries.map((found) => found.RowKey._);
  assert.deepEqual([rows(first), rows(rest)], [["1", "2"], ["3"]]);
  assert.equal(rest.continuationToken, null);
  assert.deepEqual(rows(await service.queryEntities(table, query, null, SECONDARY)), ["1", "2"]);
  for (const payloadFormat of Object.values(TableUtilities.PayloadFormat))
    assert.equal((await service.queryEntities(table, query, null, { payloadFormat })).entries.length, 2);
});

check("writes all of a batch of the SDK of before, or nothing", async () => {
  const table = await newTable();
  for (const row of "abcd") await service.insertEntity(table, person(row, { age: entity.Int32(1) }));
  const batch = new TableBatch();
  const two = { age: entity.Int32(2) };
  batch.insertEntity(person("e", two), { echoContent: true });
  batch.replaceEntity(person("a", two));
  batch.mergeEntity(person("b", two));
  batch.insertOrMergeEntity(person("c", two));
  batch.insertOrReplaceEntity(person("f", two));
  batch.deleteEntity(person("d"));

  const results = await service.executeBatch(table, batch);

  assert.deepEqual(
    results.map(({ response }) => response.statusCode),
    [201, 204, 204, 204, 204, 204],
  );
  assert.equal(results[0].entity.age._, 2);
  assert.deepEqual(await stored(table), { a: 2, b: 2, c: 2, e: 2, f: 2 });

  const failing = new TableBatch();
  failing.insertEntity(person("g", two));
  failing.insertEntity(person("a", two));
  assert.deepEqual(await refusal(service.executeBatch(table, failing)), [409, "EntityAlreadyExists"]);
  assert.equal((await stored(table)).g, undefined);
});

check("takes tokens for a table by the SDK of before", async () => {
  const table = await newTable();
  await service.insertEntity(table, person("a"));
  await service.insertEntity(table, person("b"));
  const token = (AccessPolicy, Id) =>
    service.generateSharedAccessSignature(table, {
      AccessPolicy: { Expiry: IN_AN_HOUR, ...AccessPolicy },
      Id,
    });
  const reader = byToken(token({ Permissions: QUERY }));
  const owner = byToken(token({ Permissions: QUERY + ADD + UPDATE + DELETE, Protocols: "https,http" }));
  const ranged = byToken(token({ Permissions: QUERY, StartPk: "se", StartRk: "b", EndPk: "se", EndRk: "b" }));
  const late = byToken(token({ Permissions: QUERY, Expiry: new Date(Date.now() - 1000) }));
  const away = byToken(token({ Permissions: QUERY, IPAddressOrRange: "10.0.0.1" }));

  assert.deepEqual(Object.keys(await stored(table, reader)), ["a", "b"]);
  const mismatch = [403, "AuthorizationPermissionMismatch"];
  assert.deepEqual(await refusal(reader.deleteEntity(table, person("a"))), mismatch);
  assert.deepEqual(Object.keys(await stored(table, ranged)), ["b"]);
  assert.deepEqual(await refusal(ranged.retrieveEntity(table, "se", "a")), [404, "ResourceNotFound"]);
  assert.deepEqual(await refusal(late.retrieveEntity(table, "se", "a")), [403, "AuthenticationFailed"]);
  assert.deepEqual(await refusal(away.retrieveEntity(table, "se", "a")), [
    403,
    "AuthorizationSourceIPMismatch",
  ]);

  const batch = new TableBatch();
  batch.insertEntity(person("c"));
  batch.deleteEntity(person("a"));
  await owner.executeBatch(table, batch);
  assert.deepEqual(Object.keys(await stored(table, owner)), ["b", "c"]);
});
