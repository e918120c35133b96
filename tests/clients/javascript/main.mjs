import { run } from "./checks.mjs";

import "./tables.mjs";
import "./types.mjs";
import "./entities.mjs";
import "./queries.mjs";
import "./transactions.mjs";
import "./connections.mjs";
import "./access.mjs";
import "./policies.mjs";
import "./legacy.mjs";
import "./atom.mjs";
import "./cosmos.mjs";

await run();
