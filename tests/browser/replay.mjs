// What the tests of replay origins share: a server over an archive of a few pages, all of one time.
import {writeFileSync} from 'node:fs';
import {join} from 'node:path';
import {started, warcRecord, webbase} from './browser.mjs';

const DATE = '2026-01-02T03:04:05Z';
export const TIME = '20260102030405';
export const A = 'https://www.a-site.example', B = 'https://cdn.example';
export const at = (url, body, type = 'text/html; charset=utf-8', rest = {}) => warcRecord({url, date: DATE, body, type, ...rest});

// Starts a server over one archive with these records; returns where its stages and its origins are.
export async function replayed(folder, later, records) {
  const [repo, archive] = ['repo', 'in.warc'].map(name => join(folder, name));
  writeFileSync(archive, Buffer.concat([...records, at('https://base.example/', 'base')]));
  await webbase(repo, 'import', archive);
  const origin = await started(repo, later, 'serve', '--listen', '127.0.0.1:0', '--replay-listen', '127.0.0.1:0');
  const frame = await fetch(`${origin}/web/${TIME}/https://base.example/`, {headers: {'Sec-Fetch-Dest': 'document'}});
  const base = /frame-src http:\/\/\*\.(\S+);/.exec(frame.headers.get('content-security-policy'))?.[1];
  return {origin, base, place: url => `${origin}/web/${TIME}/${url}`};
}
