// Checks by name. Each is one test of pytest, which finds the names in these files and the outcomes on stdout.

const checks = new Map();

export function check(name, body) {
  if (checks.has(name)) throw new Error(`two checks are called "${name}"`);
  checks.set(name, body);
}

/** Run all checks, or those that the variable CHECKS names as a list in JSON. */
export async function run() {
  const wanted = process.env.CHECKS ? JSON.parse(process.env.CHECKS) : [...checks.keys()];
  for (const [name, body] of checks) {
    if (!wanted.includes(name)) continue;
    console.log(JSON.stringify({ name, failure: await outcome(body) }));
  }
}

async function outcome(body) {
  try {
    await body();
    return null;
  } catch (error) {
    return error.stack ?? String(error);
  }
}
