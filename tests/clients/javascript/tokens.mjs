// Tokens of both SDKs, printed: each with what made it, for the server's own code to read and to sign again.

import { account, generateAccountSas, generateTableSas, key, credential, legacy } from "./sdk.mjs";

const START = new Date("2026-01-01T00:00:00Z");
const EXPIRY = new Date("2999-12-31T23:59:59.999Z");
const NAMES = ["People", "PEOPLE42", "abc"];
const KEYS = ["", "a", "p-ô &=+%27'€😀/?", "x".repeat(512)];
const RANGES = [
  {},
  ...KEYS.map((bound) => ({ startPartitionKey: bound, endPartitionKey: bound })),
  ...KEYS.map((bound) => ({
    startPartitionKey: "a",
    startRowKey: bound,
    endPartitionKey: "é",
    endRowKey: bound,
  })),
];
const LIMITS = [
  {},
  { startsOn: START, expiresOn: EXPIRY },
  { expiresOn: EXPIRY, protocol: "https" },
  { expiresOn: EXPIRY, protocol: "https,http", ipRange: { start: "10.0.0.1" } },
  { expiresOn: EXPIRY, ipRange: { start: "10.0.0.1", end: "10.0.0.9" } },
];

const tokens = [];
for (const name of NAMES)
  for (const range of RANGES)
    for (const limits of LIMITS)
      for (const version of ["2015-04-05", "2019-02-02", "2020-12-06", "2026-02-06"]) {
        const permissions = { query: true, add: true, update: true, delete: true };
        tokens.push(generateTableSas(name, credential, { permissions, version, ...range, ...limits }));
        tokens.push(generateTableSas(name, credential, { identifier: "read'ers é", version, ...range }));
      }
// from 2020-12-06 on the SDK signs tokens of accounts as before, which the service refuses
for (const version of ["2015-04-05", "2019-02-02"])
  for (const limits of LIMITS)
    for (const services of [{ table: true }, { blob: true, table: true }])
      for (const permissions of [
        { query: true },
        { query: true, write: true, delete: true, list: true, add: true },
      ])
        tokens.push(generateAccountSas(credential, { version, services, permissions, ...limits }));

const old = legacy.createTableService(account, key, { primaryHost: "http://127.0.0.1" });
for (const name of NAMES)
  for (const bound of KEYS) {
    const range = { StartPk: bound, StartRk: bound, EndPk: bound, EndRk: bound };
    const policy = {
      Permissions: "raud",
      Start: START,
      Expiry: EXPIRY,
      Protocols: "https",
      IPAddressOrRange: "10.0.0.1",
    };
    tokens.push(old.generateSharedAccessSignature(name, { AccessPolicy: { ...policy, ...range } }));
    tokens.push(old.generateSharedAccessSignature(name, { Id: "readers", AccessPolicy: range }));
  }
for (const limits of [
  {},
  { Start: START, Protocols: "https,http" },
  { IPAddressOrRange: "10.0.0.1-10.0.0.9" },
]) {
  const policy = { Services: "bt", ResourceTypes: "sco", Permissions: "rwdlacup", Expiry: EXPIRY, ...limits };
  tokens.push(legacy.generateAccountSharedAccessSignature(account, key, { AccessPolicy: policy }));
}

console.log(JSON.stringify(tokens));
