// Stored access policies, properties of the service and its statistics.

import assert from "node:assert/strict";

import { check } from "./checks.mjs";
import {
  TableClient,
  TableServiceClient,
  codeOf,
  credential,
  endpoint,
  hostEndpoint,
  newName,
  newTable,
  options,
  refusal,
  service,
  tableNamed,
} from "./sdk.mjs";

const START = new Date("2021-06-08T02:10:09Z");
const EXPIRY = new Date("2999-12-31T23:59:59Z");

check("has no policies at first", async () => {
  assert.deepEqual([...(await (await newTable()).getAccessPolicy())], []);
});

check("keeps policies as they were set", async () => {
  const table = await newTable();
  const policies = [
    { id: "all", accessPolicy: { start: START, expiry: EXPIRY, permission: "raud" } },
    { id: "start", accessPolicy: { start: START } },
    { id: "expiry", accessPolicy: { expiry: EXPIRY } },
    { id: "é<&>\"'😀", accessPolicy: { permission: "dr" } },
    // the SDK makes an empty policy of none
    { id: "x".repeat(64), accessPolicy: {} },
  ];

  await table.setAccessPolicy(policies);

  assert.deepEqual(found(await table.getAccessPolicy()), policies);
});

check("replaces and removes policies", async () => {
  const table = await newTable();
  await table.setAccessPolicy([{ id: "a" }, { id: "b", accessPolicy: { permission: "r" } }]);

  await table.setAccessPolicy([{ id: "b", accessPolicy: { permission: "a" } }]);
  assert.deepEqual(found(await table.getAccessPolicy()), [{ id: "b", accessPolicy: { permission: "a" } }]);

  await table.setAccessPolicy([]);
  assert.deepEqual(found(await table.getAccessPolicy()), []);
});

check("keeps policies of a table at the name of a host", async () => {
  const table = new TableClient(hostEndpoint, newName(), credential, options);
  await table.createTable();

  await table.setAccessPolicy([{ id: "a", accessPolicy: { permission: "r" } }]);

  assert.deepEqual(found(await table.getAccessPolicy()), [{ id: "a", accessPolicy: { permission: "r" } }]);
});

check("refuses a sixth policy and wrong ones", async () => {
  const table = await newTable();
  const six = [..."abcdef"].map((id) => ({ id }));
  for (const [policies, code] of [
    [six, "InvalidXmlDocument"],
    [[{ id: "a" }, { id: "a" }], "InvalidXmlDocument"],
    [[{ id: "a", accessPolicy: { permission: "w" } }], "InvalidXmlNodeValue"],
    [[{ id: "x".repeat(65) }], undefined],
  ]) {
    const error = await refusal(table.setAccessPolicy(policies));
    assert.equal(error.statusCode, 400);
    if (code) assert.equal(codeOf(error), code);
  }
  assert.deepEqual(found(await table.getAccessPolicy()), []);
});

check("misses the table of policies", async () => {
  const table = tableNamed(newName());
  for (const error of [await refusal(table.getAccessPolicy()), await refusal(table.setAccessPolicy([]))]) {
    assert.equal(error.statusCode, 404);
    assert.equal(codeOf(error), "ResourceNotFound");
  }
});

check("keeps the properties of the service as they were set", async () => {
  const before = await service.getProperties();
  const week = { enabled: true, days: 7 };
  const properties = {
    logging: { version: "1.0", read: true, write: true, delete: false, retentionPolicy: week },
    hourMetrics: { version: "1.0", enabled: true, includeAPIs: true, retentionPolicy: week },
    minuteMetrics: { version: "1.0", enabled: false, retentionPolicy: { enabled: false } },
    cors: [
      {
        allowedOrigins: "https://a.example,https://b.example",
        allowedMethods: "GET,MERGE",
        allowedHeaders: "x-ms-*",
        exposedHeaders: "x-ms-*,etag",
        maxAgeInSeconds: 60,
      },
      {
        allowedOrigins: "*",
        allowedMethods: "GET",
        allowedHeaders: "",
        exposedHeaders: "",
        maxAgeInSeconds: 0,
      },
    ],
  };
  try {
    await service.setProperties(properties);

    const { logging, hourMetrics, minuteMetrics, cors } = await service.getProperties();
    assert.deepEqual(defined({ logging, hourMetrics, minuteMetrics, cors }), properties);
  } finally {
    await restore(before);
  }
});

check("sets one property of the service and leaves the others", async () => {
  const before = await service.getProperties();
  const hourMetrics = { version: "1.0", enabled: false, retentionPolicy: { enabled: false } };
  try {
    await service.setProperties({ hourMetrics });

    const after = await service.getProperties();
    assert.deepEqual(defined(after.hourMetrics), hourMetrics);
    assert.deepEqual(after.minuteMetrics, before.minuteMetrics);
    assert.deepEqual(after.logging, before.logging);
  } finally {
    await restore(before);
  }
});

check("refuses wrong properties of the service", async () => {
  const rule = {
    allowedOrigins: "*",
    allowedMethods: "GET",
    allowedHeaders: "",
    exposedHeaders: "",
    maxAgeInSeconds: 1,
  };
  for (const wrong of [
    { cors: Array(6).fill(rule) },
    { cors: [{ ...rule, allowedMethods: "TRACE" }] },
    {
      hourMetrics: {
        version: "1.0",
        enabled: true,
        includeAPIs: true,
        retentionPolicy: { enabled: true, days: 366 },
      },
    },
    { hourMetrics: { version: "1.0", enabled: true, retentionPolicy: { enabled: false } } },
    { hourMetrics: { version: "2.0", enabled: false, retentionPolicy: { enabled: false } } },
  ])
    assert.equal((await refusal(service.setProperties(wrong))).statusCode, 400);
});

check("has statistics at the secondary only", async () => {
  // which the SDK finds by the name of the host
  const named = new TableServiceClient(hostEndpoint, credential, options);
  const { geoReplication } = await named.getStatistics();
  assert.equal(geoReplication.status, "live");
  assert.ok(Math.abs(Date.now() - geoReplication.lastSyncTime) < 3600_000);

  const error = await refusal(new TableServiceClient(endpoint, credential, options).getStatistics());
  assert.equal(codeOf(error), "InvalidQueryParameterValue");
});

/** Policies without the headers that came with them. */
const found = (policies) => [...policies].map(defined);

/** Without members that are undefined, which the SDK adds. */
function defined(value) {
  if (Array.isArray(value)) return value.map(defined);
  if (value?.constructor !== Object) return value;
  const members = Object.entries(value).filter(([, member]) => member !== undefined);
  return Object.fromEntries(members.map(([name, member]) => [name, defined(member)]));
}

async function restore({ logging, hourMetrics, minuteMetrics, cors }) {
  await service.setProperties({ logging, hourMetrics, minuteMetrics, cors: cors ?? [] });
}
