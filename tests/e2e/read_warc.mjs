// Reads an archive with npm's warcio and verifies every digest: one JSON line a record,
// exit status 1 with words where something does not hold.
import { createHash } from "node:crypto";
import { createReadStream } from "node:fs";
import { WARCParser } from "warcio";

const path = process.argv[2];
const alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567";

function base32(bytes) {
  let bits = 0, value = 0, text = "";
  for (const byte of bytes) {
    value = (value << 8) | byte;
    bits += 8;
    while (bits >= 5) {
      text += alphabet[(value >>> (bits - 5)) & 31];
      bits -= 5;
      value &= (1 << bits) - 1;
    }
  }
  return text;
}

async function readAll(parseHttp) {
  const records = [];
  const parser = new WARCParser(createReadStream(path), { parseHttp });
  for await (const record of parser) {
    const hash = createHash("sha1");
    let length = 0;
    for await (const chunk of record.reader) {
      hash.update(chunk);
      length += chunk.length;
    }
    records.push({
      type: record.warcType,
      uri: record.warcTargetURI,
      length,
      claimed: Number(record.warcHeaders.headers.get("Content-Length")),
      block: record.warcHeaders.headers.get("WARC-Block-Digest"),
      payload: record.warcHeaders.headers.get("WARC-Payload-Digest"),
      id: record.warcHeaders.headers.get("WARC-Record-ID"),
      sha1: hash.digest(),
    });
  }
  return records;
}

const blocks = await readAll(false);
const payloads = await readAll(true);
const ids = new Set();
let status = blocks.length === payloads.length ? 0 : 1;
blocks.forEach((block, i) => {
  const payload = payloads[i];
  let digests = 0;
  // The payload of a revisit is in another record.
  const payloadClaim = block.type === "revisit" ? null : block.payload;
  for (const [claimed, found] of [[block.block, block.sha1], [payloadClaim, payload.sha1]]) {
    if (!claimed) continue;
    digests++;
    if (claimed !== "sha1:" + base32(found)) {
      console.error(`${block.uri}: ${claimed} is not sha1:${base32(found)}`);
      status = 1;
    }
  }
  if (block.length !== block.claimed || ids.has(block.id)) {
    console.error(`${block.uri}: ${block.length} bytes, ${block.claimed} claimed, id ${block.id}`);
    status = 1;
  }
  ids.add(block.id);
  console.log(JSON.stringify({ type: block.type, uri: block.uri, digests, payload_sha1: payload.sha1.toString("hex") }));
});
process.exit(status);
