// Compares answers with a description. Reads {"description":...,"answers":[{"path","method","status","type","body","at"}]}
// from stdin, where path is a path of the description; prints a line for each difference. A member of an object that the
// description does not have is a difference, too.
import { readFileSync } from "node:fs";
import Ajv from "ajv";
import formats from "ajv-formats";

const { description, answers } = JSON.parse(readFileSync(0, "utf8"));

function close(schema) {
  if (Array.isArray(schema)) schema.forEach(close);
  if (!schema || typeof schema !== "object" || Array.isArray(schema)) return;
  Object.values(schema).forEach(close);
  if (schema.type === "object" && schema.properties) schema.additionalProperties ??= false;
}

close(description.components.schemas);
const ajv = new Ajv({ strict: false, allErrors: true });
formats(ajv);
ajv.addSchema(description, "d");

const follow = (x) => (x?.$ref ? x.$ref.slice(2).split("/").reduce((at, key) => at[key], description) : x);
const escape = (s) => encodeURIComponent(s.replaceAll("~", "~0").replaceAll("/", "~1"));

function differences({ path, method, status, type, body, at }) {
  const responses = description.paths[path][method].responses;
  if (!responses[status]) return [`${at}: the description has no status ${status} for ${path}`];
  const response = follow(responses[status]);
  const mime = type.split(";")[0];
  const content = response.content?.[mime] ?? response.content?.["*/*"];
  if (!content) return response.content ? [`${at}: the description has no ${mime} for ${path} ${status}`] : [];
  const place = responses[status].$ref ? responses[status].$ref.slice(1) : `/paths/${escape(path)}/${method}/responses/${status}`;
  const values = mime === "application/json" ? [JSON.parse(body)]
    : mime.endsWith("ndjson") ? body.split("\n").filter(Boolean).map((line) => JSON.parse(line)) : [];
  const check = values.length ? ajv.getSchema(`d#${place}/content/${escape(mime)}/schema`) : null;
  if (values.length && !check) return [`${at}: there is no schema`];
  return values.flatMap((value) => (check(value) ? [] : check.errors.map((e) => `${at}: ${e.instancePath} ${e.message} ${JSON.stringify(e.params)}`)));
}

const found = answers.flatMap(differences);
found.forEach((line) => console.log(line));
process.exit(found.length ? 1 : 0);
