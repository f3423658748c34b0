// Checks a description with Redocly's recommended rules: a line for each problem, exit status 1 if there is one.
import { createConfig, lint } from "@redocly/openapi-core";

const problems = await lint({ ref: process.argv[2], config: await createConfig({ extends: ["recommended"] }) });
for (const problem of problems)
  console.log(`${problem.severity} ${problem.ruleId}: ${problem.message} (${problem.location?.[0]?.pointer})`);
process.exit(problems.length ? 1 : 0);
