// Reads queries from standard input, one in a line, and prints those that the grammar of Grafana's editor rejects.
import { createRequire } from "node:module";
import { readFileSync } from "node:fs";

const require = createRequire(`${process.argv[2]}/`);
const { parser } = require("@grafana/lezer-traceql");
for (const query of readFileSync(0, "utf8").split("\n").filter(Boolean)) {
  let wrong = false;
  parser.parse(query).iterate({ enter: (node) => { wrong ||= node.type.isError; } });
  if (wrong) console.log(query);
}
