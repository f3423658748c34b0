// Reads a table with npm's hyparquet, of which nothing is ours: one JSON line for what the footer says, then one a row,
// unless the rows are to be compared.
// Times become RFC 3339, integers numbers, or texts if a number cannot hold them. Exit status 1 with words where the
// statistics of a group contradict its rows, or a row is not that of the second argument, a file of JSON lines.
import { readFileSync } from "node:fs";
import { isDeepStrictEqual } from "node:util";
import { asyncBufferFromFile, parquetMetadataAsync, parquetRead } from "hyparquet";
import { compressors } from "hyparquet-compressors";

const file = await asyncBufferFromFile(process.argv[2]);
const metadata = await parquetMetadataAsync(file);
const columns = metadata.schema.slice(1);
let status = 0;

function plain(value) {
  if (value instanceof Date) return value.toISOString();
  if (typeof value === "bigint") return Number.isSafeInteger(Number(value)) ? Number(value) : String(value);
  return value === undefined ? null : value;
}

function complain(text) {
  console.error(text);
  status = 1;
}

// Compares code points, as the format does; JavaScript's own order is that of UTF-16.
function less(a, b) {
  return typeof a === "string" ? Buffer.compare(Buffer.from(a), Buffer.from(b)) < 0 : a < b;
}

function check(group, rows) {
  columns.forEach((column, i) => {
    const { statistics, num_values } = group.columns[i].meta_data;
    const known = rows.map((row) => row[column.name]).filter((value) => value !== null && value !== undefined);
    if (rows.length - known.length !== Number(statistics.null_count) || Number(num_values) !== rows.length)
      complain(`${column.name}: ${rows.length - known.length} nulls, ${statistics.null_count} are claimed`);
    for (const value of known.filter((v) => !Number.isNaN(v)))
      if ((statistics.min_value !== undefined && less(value, statistics.min_value)) || (statistics.max_value !== undefined && less(statistics.max_value, value)))
        complain(`${column.name}: ${value} is not between ${statistics.min_value} and ${statistics.max_value}`);
  });
}

const wanted = process.argv[3] ? readFileSync(process.argv[3], "utf8").split("\n").slice(0, -1) : null;
if (!wanted)
  console.log(JSON.stringify({
    rows: Number(metadata.num_rows), groups: metadata.row_groups.length, created_by: metadata.created_by,
    columns: columns.map((c) => [c.name, c.type, c.repetition_type, c.logical_type?.type ?? null]),
    codecs: [...new Set(metadata.row_groups.flatMap((g) => g.columns.map((c) => c.meta_data.codec)))],
    bounds: metadata.row_groups.map((g) => Object.fromEntries(g.columns.map((c) => [c.meta_data.path_in_schema[0], [plain(c.meta_data.statistics.min_value), plain(c.meta_data.statistics.max_value)]]))),
  }));
if (wanted && wanted.length !== Number(metadata.num_rows)) complain(`${metadata.num_rows} rows, not ${wanted.length}`);

function show(row, number) {
  const object = Object.fromEntries(columns.map((c) => [c.name, plain(row[c.name])]));
  if (!wanted) console.log(JSON.stringify(object));
  else if (!isDeepStrictEqual(object, JSON.parse(wanted[number]))) complain(`row ${number}: ${JSON.stringify(object)}, not ${wanted[number]}`);
}

let rowStart = 0;
for (const group of metadata.row_groups) {
  const rowEnd = rowStart + Number(group.num_rows);
  await parquetRead({ file, metadata, compressors, rowStart, rowEnd, rowFormat: "object", onComplete: (rows) => {
    check(group, rows);
    rows.forEach((row, i) => show(row, rowStart + i));
  } });
  rowStart = rowEnd;
}
process.exitCode = status;
