// Tokens made by the SDK, for a table and for the account: what they allow, and what they refuse.

import assert from "node:assert/strict";

import { check } from "./checks.mjs";
import {
  AzureSASCredential,
  TableClient,
  TableServiceClient,
  account,
  all,
  codeOf,
  credential,
  endpoint,
  generateAccountSas,
  generateTableSas,
  newName,
  newTable,
  options,
  refusal,
  secureEndpoint,
} from "./sdk.mjs";

const ADA = { partitionKey: "se", rowKey: "ada" };
const NAMES = { r: "query", a: "add", u: "update", d: "delete", w: "write", l: "list" };
/** Permissions as the SDK takes them, from their letters. */
const permitting = (letters) => Object.fromEntries([...letters].map((letter) => [NAMES[letter], true]));
const ALL = permitting("raud");
const hours = (count) => new Date(Date.now() + count * 3600_000);

/** A table that holds one entity. */
async function stored() {
  const table = await newTable();
  await table.createEntity({ ...ADA, age: 36 });
  return table;
}

const opened = (name, token, place = endpoint) =>
  new TableClient(place, name, new AzureSASCredential(token), options);

/** The table by a token of these values. */
const byToken = ({ tableName }, values) =>
  opened(tableName, generateTableSas(tableName, credential, { permissions: ALL, ...values }));

const serviceByToken = (values) =>
  new TableServiceClient(endpoint, new AzureSASCredential(generateAccountSas(credential, values)), options);

/** The code of its refusal, or null. */
async function outcome(operation) {
  try {
    await operation();
    return null;
  } catch (error) {
    assert.equal(error.statusCode, codeOf(error) === "ResourceNotFound" ? 404 : 403);
    return codeOf(error);
  }
}

// the entity "old" is there, the entity "new" is not
const person = (rowKey) => ({ partitionKey: "se", rowKey });
const NEEDS = {
  getEntity: ["r", (table) => table.getEntity("se", "old")],
  listEntities: ["r", (table) => all(table.listEntities())],
  createEntity: ["a", (table) => table.createEntity(person("new"))],
  updateEntity: ["u", (table) => table.updateEntity(person("old"))],
  replaceEntity: ["u", (table) => table.updateEntity(person("old"), "Replace")],
  upsertEntity: ["au", (table) => table.upsertEntity(person("old"))],
  deleteEntity: ["d", (table) => table.deleteEntity("se", "old")],
  transaction: [
    "ad",
    (table) =>
      table.submitTransaction([
        ["create", person("new")],
        ["delete", person("old")],
      ]),
  ],
};

check("allows what the letters of a token for a table say", async () => {
  const table = await newTable();
  for (const letters of ["r", "a", "u", "d", "ra", "au", "ad", "rau", "raud"]) {
    const limited = byToken(table, { permissions: permitting(letters) });
    const allowed = [];
    for (const [name, [, operation]] of Object.entries(NEEDS)) {
      await table.upsertEntity(person("old"));
      await table.deleteEntity("se", "new").catch(() => {});
      const code = await outcome(() => operation(limited));
      assert.ok(code === null || code === "AuthorizationPermissionMismatch", `${name}: ${code}`);
      if (code === null) allowed.push(name);
    }
    const expected = Object.keys(NEEDS).filter((name) =>
      [...NEEDS[name][0]].every((letter) => letters.includes(letter)),
    );
    assert.deepEqual(allowed, expected, letters);
  }
});

check("takes a token in a URL and in a connection string", async () => {
  const table = await stored();
  const token = generateTableSas(table.tableName, credential, { permissions: ALL });
  for (const client of [
    new TableClient(`${endpoint}?${token}`, table.tableName, options),
    TableClient.fromConnectionString(
      `TableEndpoint=${endpoint};SharedAccessSignature=${token}`,
      table.tableName,
      options,
    ),
  ]) {
    assert.equal((await client.getEntity("se", "ada")).age, 36);
    await client.submitTransaction([["upsert", ADA]]);
  }
});

check("keeps to the range of a token", async () => {
  const table = await newTable();
  for (const partitionKey of "abc")
    await table.submitTransaction([..."12"].map((rowKey) => ["create", { partitionKey, rowKey }]));
  const keys = (entities) => entities.map((entity) => entity.partitionKey + entity.rowKey).join(" ");
  const ranges = [
    [{ startPartitionKey: "b" }, "b1 b2 c1 c2"],
    [{ endPartitionKey: "b" }, "a1 a2 b1 b2"],
    [{ startPartitionKey: "a", startRowKey: "2" }, "a2 b1 b2 c1 c2"],
    [{ endPartitionKey: "b", endRowKey: "1" }, "a1 a2 b1"],
    [{ startPartitionKey: "a", startRowKey: "2", endPartitionKey: "b", endRowKey: "1" }, "a2 b1"],
  ];
  for (const [range, inside] of ranges) {
    const limited = byToken(table, range);

    assert.equal(keys(await all(limited.listEntities())), inside);
    const pages = await all(limited.listEntities().byPage({ maxPageSize: 1 }));
    assert.equal(keys(pages.flat()), inside);
    for (const [partitionKey, rowKey] of ["a1", "a2", "b1", "b2", "c1", "c2"]) {
      const isInside = inside.includes(partitionKey + rowKey);
      const expected = isInside ? null : "AuthorizationFailure";
      const entity = { partitionKey, rowKey };
      assert.equal(await outcome(() => limited.getEntity(partitionKey, rowKey)), isInside ? null : "ResourceNotFound");
      assert.equal(await outcome(() => limited.upsertEntity(entity)), expected);
      assert.equal(await outcome(() => limited.submitTransaction([["upsert", entity]])), expected);
    }
  }
});

check("heeds the policy of a token, and its end", async () => {
  const table = await stored();
  const read = { permission: "r", start: hours(-1), expiry: hours(1) };
  const reader = opened(
    table.tableName,
    generateTableSas(table.tableName, credential, { identifier: "reader" }),
  );
  const get = (client) => outcome(() => client.getEntity("se", "ada"));

  assert.equal(await get(reader), "AuthenticationFailed");
  await table.setAccessPolicy([{ id: "reader", accessPolicy: read }]);
  assert.equal(await get(reader), null);
  assert.equal(await outcome(() => reader.deleteEntity("se", "ada")), "AuthorizationPermissionMismatch");
  assert.equal(await get(byToken(table, { identifier: "reader" })), "AuthenticationFailed");

  await table.setAccessPolicy([{ id: "reader", accessPolicy: { ...read, permission: "a" } }]);
  assert.equal(await get(reader), "AuthorizationPermissionMismatch");

  await table.setAccessPolicy([]);
  assert.equal(await get(reader), "AuthenticationFailed");
});

check("allows what a token for the account says", async () => {
  const { tableName } = await stored();
  const operations = {
    listTables: ["c", "l", (service) => service.listTables().byPage({ maxPageSize: 1 }).next()],
    getProperties: ["s", "r", (service) => service.getProperties()],
    setProperties: ["s", "w", (service) => service.setProperties({})],
    createTable: ["c", "w", (service) => service.createTable(newName())],
    deleteTable: ["c", "d", (service) => service.deleteTable(newName())],
    getEntity: ["o", "r", (_, table) => table.getEntity("se", "ada")],
    listEntities: ["o", "r", (_, table) => all(table.listEntities())],
    createEntity: ["o", "a", (_, table) => table.createEntity({ partitionKey: "x", rowKey: newName() })],
    upsertEntity: ["o", "au", (_, table) => table.upsertEntity(ADA)],
    transaction: ["o", "u", (_, table) => table.submitTransaction([["update", ADA]])],
  };
  for (const resourceTypes of ["s", "c", "o"])
    for (const letters of ["r", "w", "d", "l", "au", "rwdlau"]) {
      const values = { resourceTypes, permissions: permitting(letters) };
      const service = serviceByToken(values);
      const table = opened(tableName, generateAccountSas(credential, values));
      for (const [name, [types, needed, operation]] of Object.entries(operations)) {
        const code = await outcome(() => operation(service, table));
        if (!types.includes(resourceTypes)) assert.equal(code, "AuthorizationResourceTypeMismatch", name);
        else if (![...needed].every((letter) => letters.includes(letter)))
          assert.equal(code, "AuthorizationPermissionMismatch", name);
        else assert.equal(code, null, name);
      }
    }
});

check("takes tokens over https", async () => {
  const tableName = newName();
  const secure = new TableClient(secureEndpoint, tableName, credential, options);
  await secure.createTable();
  await secure.createEntity({ ...ADA, age: 36 });
  for (const token of [
    generateTableSas(tableName, credential, { permissions: ALL, protocol: "https" }),
    generateAccountSas(credential, {
      permissions: permitting("rau"),
      protocol: "https",
    }),
  ]) {
    const client = opened(tableName, token, secureEndpoint);
    assert.equal((await client.getEntity("se", "ada")).age, 36);
    await client.submitTransaction([["upsert", ADA]]);
    assert.equal((await all(client.listEntities())).length, 1);
  }
});
