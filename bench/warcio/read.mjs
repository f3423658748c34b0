// Reads every record of an archive with warcio, whole payloads; prints one JSON line.
import fs from 'node:fs';
import { WARCParser } from 'warcio';

const path = process.argv[2];
const start = process.hrtime.bigint();
let records = 0, bytes = 0;

const parser = new WARCParser(fs.createReadStream(path, { highWaterMark: 1 << 20 }));
for await (const record of parser) {
  const payload = await record.readFully(false);
  records++;
  bytes += payload ? payload.length : 0;
}
const seconds = Number(process.hrtime.bigint() - start) / 1e9;
console.log(JSON.stringify({
  bench: 'warc_read', peer: 'warcio', file: path, records, bytes, seconds,
  records_per_second: Math.round(records / seconds),
}));
