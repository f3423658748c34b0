#!/usr/bin/env node
// An exported WACZ in ReplayWeb.page: the page, its picture, a second version, and the search for words.
import {writeFileSync} from 'node:fs';
import {join} from 'node:path';
import {MODULES, expect, run, serveFiles, test, until, warcRecord, webbase} from './browser.mjs';

// A PNG of 3 x 2 pixels.
const PICTURE = Buffer.from('iVBORw0KGgoAAAANSUhEUgAAAAMAAAACCAIAAAASFvFNAAAAFElEQVR4nGP8z8DAwMDAxAADMAYADjABBPp0' +
  'ceYAAAAASUVORK5CYII=', 'base64');
const SITE = 'http://wacz.example.org';
// A reader that looks this host up leaves out www. If the index does not, nothing is found in it.
const FILLER = 'http://www.wacz.example.org/Filler';
const html = (title, text) => `<!DOCTYPE html><html><head><title>${title}</title></head><body><h1>${title}</h1>
<p id="text">${text}</p><img id="picture" src="/picture.png"><a href="/other">other</a></body></html>`;

// Pages enough that the index has several blocks.
function filler(count) {
  return Array.from({length: count}, (_, i) => warcRecord({url: `${FILLER}/${i}?B=${i}&a=1`,
    date: '2026-01-01T00:00:00Z', body: html(`Filler ${i}`, `filler ${i}`)}));
}

async function exported(folder, ...options) {
  const [repo, archive, wacz] = ['repo', 'in.warc', 'out.wacz'].map(name => join(folder, name));
  const versions = [['2026-01-02T03:04:05Z', 'First', 'the first version'],
    ['2026-02-03T04:05:06Z', 'Second', 'the second version'],
    ['2026-03-04T05:06:07Z', 'Second', 'the second version']];
  writeFileSync(archive, Buffer.concat([
    ...versions.map(([date, title, text]) => warcRecord({url: `${SITE}/`, date, body: html(title, text)})),
    ...versions.map(([date]) => warcRecord({url: `${SITE}/picture.png`, date, body: PICTURE, type: 'image/png'})),
    ...filler(3000)]));
  await webbase(repo, 'init', '--history', 'all');
  await webbase(repo, 'import', archive);
  await webbase(repo, 'export', '--wacz', wacz, ...options);
  return wacz;
}

async function openReplay(page, wacz, later, {url, ts}) {
  const app = join(MODULES, 'replaywebpage');
  const server = await serveFiles({'/': join(app, 'index.html'), '/ui.js': join(app, 'ui.js'),
    '/sw.js': join(app, 'sw.js'), '/out.wacz': wacz}, later);
  await page.goto(`${server.origin}/?source=${encodeURIComponent(`${server.origin}/out.wacz`)}` +
    `#view=resources&url=${encodeURIComponent(url)}&ts=${ts}`);
  return server;
}

// The frame in which the archived page is, once it shows the text.
async function replayed(page, url, text) {
  return until(`${url} with "${text}"`, async () => {
    for (const frame of page.frames()) {
      if (!/\/\d*mp_\//.test(frame.url()) || !frame.url().endsWith(url)) continue;
      const found = await frame.evaluate(() => document.getElementById('text')?.textContent).catch(() => '');
      if (found === text) return frame;
    }
    return null;
  });
}

async function expectPicture(frame) {
  const size = await until('the picture', () => frame.evaluate(() => {
    const picture = document.getElementById('picture');
    return picture.complete && [picture.naturalWidth, picture.naturalHeight].join('x');
  }));
  expect(size === '3x2', `the picture has ${size} pixels`);
}

test('a page, its picture and its second version', async ({page, folder, later}) => {
  const wacz = await exported(folder, '--versions');
  await openReplay(page, wacz, later, {url: `${SITE}/`, ts: '20260102030405'});
  await expectPicture(await replayed(page, `${SITE}/`, 'the first version'));
  await openReplay(page, wacz, later, {url: `${SITE}/`, ts: '20260203040506'});
  await expectPicture(await replayed(page, `${SITE}/`, 'the second version'));
});

test('a capture without new bytes', async ({page, folder, later}) => {
  await openReplay(page, await exported(folder, '--versions'), later, {url: `${SITE}/`, ts: '20260304050607'});
  await expectPicture(await replayed(page, `${SITE}/`, 'the second version'));
});

test('a page from the last block of the index, and only parts of the file are read', async ({page, folder, later}) => {
  const url = `${FILLER}/999?B=999&a=1`;
  const server = await openReplay(page, await exported(folder), later, {url, ts: '20260101000000'});
  await replayed(page, url, 'filler 999');
  const reads = server.requests.filter(r => r.path === '/out.wacz' && r.method === 'GET');
  expect(reads.length > 0 && reads.every(r => r.range), `a read without a range: ${JSON.stringify(reads)}`);
});

test('the list of pages leads to them', async ({page, folder, later}) => {
  await openReplay(page, await exported(folder, '--versions', '--until', '2026-02-10'), later, {url: '', ts: ''});
  await page.goto(`${page.url().split('#')[0]}#view=pages`);
  await page.locator('a', {hasText: 'First'}).first().waitFor();
  await page.locator('a', {hasText: 'Second'}).first().click();
  await expectPicture(await replayed(page, `${SITE}/`, 'the second version'));
});

// Writes an archive of pages of which each has a word of its own far below, and opens the list of pages.
async function openList(page, folder, later, count, words) {
  const [repo, archive, wacz] = ['repo', 'in.warc', 'out.wacz'].map(name => join(folder, name));
  writeFileSync(archive, Buffer.concat(Array.from({length: count}, (_, i) => warcRecord({url: `${SITE}/${i}`,
    date: '2026-01-02T03:04:05Z', body: html(`Page ${i}`, `${'many words in a row '.repeat(words)} needle${i}x`)}))));
  await webbase(repo, 'init');
  await webbase(repo, 'import', archive);
  await webbase(repo, 'export', '--wacz', wacz);
  await openReplay(page, wacz, later, {url: '', ts: ''});
  await page.goto(`${page.url().split('#')[0]}#view=pages`);
  await page.locator('wr-page-entry').first().waitFor();
}

// Types a word into the search of ReplayWeb.page: only page i is listed, with the words around it.
async function expectHit(page, i) {
  await page.getByPlaceholder('Search by Page URL, Title, or Text').fill(`needle${i}x`);
  const shown = await until('one result', async () => {
    const all = await page.locator('wr-page-entry').evaluateAll(x => x.map(e => [e.page.title, e.textSnippet]));
    return all.length === 1 && all[0][1]?.includes(`needle${i}x`) && all[0];
  });
  expect(shown[0] === `Page ${i}` && shown[1].includes(`in a row needle${i}x`), JSON.stringify(shown));
}

test('words of the text are found', async ({page, folder, later}) => {
  await openList(page, folder, later, 20, 50);
  await expectHit(page, 7);
  await page.locator('wr-page-entry a').click();
  await replayed(page, `${SITE}/7`, `${'many words in a row '.repeat(50)} needle7x`);
});

test('a list of pages that is too long to be searched in one piece', async ({page, folder, later}) => {
  await openList(page, folder, later, 200, 400);
  await expectHit(page, 3);
  await expectHit(page, 199);
});

await run();
