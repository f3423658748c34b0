#!/usr/bin/env node
// Moving in time in Chromium: the calendar in the reader's zone, the captures of a site, the bar over a stored page,
// and two versions side by side; with the keyboard, on a phone, without JavaScript, and with pages that try to get out.
import {writeFileSync} from 'node:fs';
import {join} from 'node:path';
import {expect, run, started, test, until, warcRecord, webbase} from './browser.mjs';

const SITE = 'http://time.example.org';
const HOME = `${SITE}/`;
const filler = Array.from({length: 60}, (_, i) => `<p>line ${i} of the filler</p>`).join('');

// The first change is at the top, the second one far below it; on the left more is above it.
const pageOf = (words, more = '') => `<!DOCTYPE html><html lang="en"><title>Home</title>` +
  `<link rel="stylesheet" href="/s.css"><h1>Home</h1><p>the ${words} words</p>${filler}${more}` +
  `<p id="end">the ${words} end</p>${filler}`;

// Names that could stand in the place of what a script of ours uses, and scripts that leave their mark where they run.
const HOSTILE = `<img name="documentElement"><form id="getElementById"></form><a name="scrollTo">x</a>` +
  `<script>parent.owned=1;top.document.title='owned';document.title='owned'</script>` +
  `<img src="x" onerror="parent.owned=1"><svg onload="parent.owned=1"></svg>` +
  `<iframe srcdoc="<script>parent.parent.owned=1</script>"></iframe>` +
  `<a id="trap" href="javascript:parent.owned=1">trap</a><a id="on" href="/next">on</a>` +
  `<meta http-equiv="refresh" content="0;url=/next">`;

function records() {
  const home = (date, ...page) => warcRecord({url: HOME, date, body: pageOf(...page)});
  const rest = Array.from({length: 30}, (_, i) => warcRecord({url: `${SITE}/docs/${String(i).padStart(2, '0')}`,
    date: `2025-01-${String(1 + i % 28).padStart(2, '0')}T00:00:00Z`, body: `text ${i}`,
    status: i % 10 ? '200 OK' : '404 Not Found'}));
  return [home('2023-06-01T12:00:00Z', 'first'), home('2025-03-05T20:00:00Z', 'old', filler),
    home('2025-03-05T20:30:00Z', 'old', filler), home('2025-03-08T20:00:00Z', 'new'),
    home('2025-03-09T06:30:00Z', 'new'), home('2025-11-02T05:30:00Z', 'last'),
    warcRecord({url: `${SITE}/s.css`, date: '2025-04-01T00:00:00Z', type: 'text/css', body: 'h1{color:navy}'}),
    warcRecord({url: `${SITE}/next`, date: '2025-03-05T20:00:00Z', body: '<title>Next</title>the next page'}),
    ...['two', 'too'].map((word, i) => warcRecord({url: `${SITE}/hostile`, date: `2025-01-0${i + 1}T00:00:00Z`,
      body: `<title>h</title><p>one ${word}</p>${filler}${HOSTILE}<p>end`})),
    ...rest];
}

async function served(folder, later) {
  const [repo, archive] = ['repo', 'in.warc'].map(name => join(folder, name));
  writeFileSync(archive, Buffer.concat(records()));
  await webbase(repo, 'init', '--history', 'all');
  await webbase(repo, 'import', archive);
  await webbase(repo, 'index');
  return started(repo, later, 'serve', '--listen', '127.0.0.1:0');
}

// A page of a reader elsewhere, or with another browser.
async function reader(context, later, options) {
  const other = await context.browser().newContext({viewport: {width: 1280, height: 900}, ...options});
  later(() => other.close());
  return other.newPage();
}

const days = page => page.locator('.month a').evaluateAll(all => all.map(a => a.getAttribute('aria-label')));

test('the calendar has the days of the reader', async ({context, folder, later}) => {
  const origin = await served(folder, later);
  const address = `${origin}/web/*/${HOME}`;
  const wants = {
    'UTC': ['2 captures on 5 March 2025', '1 capture on 8 March 2025', '1 capture on 9 March 2025',
      '1 capture on 2 November 2025'],
    'Asia/Kolkata': ['2 captures on 6 March 2025', '2 captures on 9 March 2025', '1 capture on 2 November 2025'],
    'America/New_York': ['2 captures on 5 March 2025', '1 capture on 8 March 2025', '1 capture on 9 March 2025',
      '1 capture on 2 November 2025'],
    'Pacific/Marquesas': ['2 captures on 5 March 2025', '2 captures on 8 March 2025', '1 capture on 1 November 2025'],
  };
  for (const [timezoneId, want] of Object.entries(wants)) {
    const page = await reader(context, later, {timezoneId});
    await page.goto(address);
    await until('the zone', async () => timezoneId === 'UTC' || !/UTC/.test(await page.locator('#zone').textContent()));
    const found = (await days(page)).map(label => label.split(':')[0]);
    expect(found.join() === want.join(), `${timezoneId}: ${found}`);
    const time = page.locator('tbody time').first();
    await time.waitFor();
    const size = await page.locator('#calendar .wide tbody td:last-child').first().textContent();
    expect(/^\d\.\d kB$/.test(size), `a size is written as "${size}"`);
    expect(/^2025-1[01]-0[12] \d\d:[03]0:00 \S+$/.test(await time.textContent()), await time.textContent());
    expect(await time.getAttribute('title') === '2025-11-02 05:30:00 UTC', await time.getAttribute('title'));
  }
  const plain = await reader(context, later, {timezoneId: 'Asia/Kolkata', javaScriptEnabled: false});
  await plain.goto(address);
  expect((await days(plain)).map(label => label.split(':')[0]).join() === wants.UTC.join(), 'without scripts, not UTC');
  expect((await plain.locator('tbody time').first().textContent()).endsWith('UTC'), 'no zone without scripts');
});

test('days and years are chosen with the keyboard', async ({page, folder, later}) => {
  const origin = await served(folder, later);
  await page.goto(`${origin}/calendar?url=${encodeURIComponent(HOME)}`);
  await until('the captures', () => page.locator('tbody time').count());
  await page.getByRole('link', {name: '2 captures on 5 March 2025'}).focus();
  await page.keyboard.press('Enter');
  await until('two captures', async () => await page.locator('#calendar .wide tbody tr').count() === 2);
  expect(/day=2025-03-05/.test(page.url()), page.url());
  expect(await page.locator('.month [aria-current=date]').textContent() === '5', 'the day is not marked');
  expect(await page.evaluate(() => document.activeElement.id) === 'day', 'the focus does not go to the day');
  await page.getByRole('link', {name: /^2023: 1 capture/}).click();
  await until('2023', async () => await page.locator('#months').textContent() === '2023');
  expect((await days(page)).length === 1, 'more than one day of 2023');
  await page.goBack();
  await until('the day again', async () => await page.locator('.month [aria-current=date]').count() === 1 &&
    await page.locator('#months').textContent() === '2025');
  await page.getByRole('link', {name: '1 capture on 8 March 2025'}).click();
  await page.getByRole('link', {name: 'what changed'}).click();
  await page.waitForURL(/\/compare\?/);
});

test('the captures of a site', async ({page, folder, later}) => {
  const origin = await served(folder, later);
  await page.goto(`${origin}/web/*/time.example.org/*`);
  expect(/\/captures\?/.test(page.url()), page.url());
  const rows = () => page.locator('tbody tr').count();
  expect(await rows() === 34, `${await rows()} rows`);
  await page.getByRole('link', {name: 'Captures'}).click();
  await page.waitForURL(/sort=-captures/);
  const first = await page.locator('tbody tr').first().textContent();
  expect(first.startsWith(`${HOME}6`), `not the most captures, but ${first}`);
  await page.getByLabel('Contains').fill('DOCS/');
  await page.getByLabel('Status').fill('4xx');
  await page.keyboard.press('Enter');
  await page.waitForURL(/status=4xx/);
  expect(await rows() === 3, `${await rows()} rows with 4xx`);
  await page.goto(`${origin}/captures?url=time.example.org/docs/*&limit=20`);
  await page.getByRole('link', {name: 'Go on'}).click();
  await page.waitForURL(/after=/);
  expect(await rows() === 10, `${await rows()} rows on the second page`);
  await page.locator('tbody a').first().click();
  await page.waitForURL(/\/calendar\?/);
});

test('the bar', async ({page, folder, later}) => {
  const origin = await served(folder, later);
  await page.goto(`${origin}/web/20250308200000/${HOME}`);
  const bar = page.locator('header');
  expect((await bar.textContent()).includes('4 of 6'), await bar.textContent());
  // How many files are apart from the page lies over the bar, so that neither the bar nor the page moves.
  const files = bar.locator('#stage-files'), mark = files.locator('b');
  const heights = () => page.evaluate(() => ['.stage-bar', '#stage-files', '#page'].map(name => {
    const {x, y, width, height} = document.querySelector(name).getBoundingClientRect();
    return [x, y, width, height];
  }).join());
  await mark.waitFor();
  expect(await mark.textContent() === '1', await mark.textContent());
  const words = 'files: 1 captured more than 60 minutes apart from the page, up to 23 days later';
  expect(await files.getAttribute('title') === words, await files.getAttribute('title'));
  expect(await page.getByRole('link', {name: words}).count() === 1, 'a screen reader is not told');
  const marked = await heights();
  await mark.evaluate(b => b.remove());
  expect(await heights() === marked, `the number moves something: ${marked} instead of ${await heights()}`);
  await bar.getByRole('link', {name: '2 days earlier'}).click();
  await page.waitForURL(/20250305203000/);
  await bar.getByRole('link', {name: '30 minutes earlier'}).click();
  await page.waitForURL(/20250305200000/);
  await until('the number of files', async () => (await files.getAttribute('title'))?.endsWith('up to 26 days later'));
  await files.click();
  await page.waitForURL(/\/files\?/);
  expect((await page.locator('main').textContent()).includes('26 days later'), 'the style sheet is not apart');
  await page.goBack();
  await bar.getByRole('link', {name: 'changes'}).click();
  await page.waitForURL(/\/compare\?/);
});

const frameOf = (page, side) => page.frames().find(frame => frame.url().includes(`side=${side}`));
const scrolled = (page, side) => frameOf(page, side).evaluate(() => scrollY);

test('two versions side by side', async ({page, folder, later}) => {
  const origin = await served(folder, later);
  await page.goto(`${origin}/page?url=${encodeURIComponent(HOME)}`);
  await page.getByLabel('Compare from version 2').check();
  await page.getByLabel('Compare to version 3').check();
  await page.getByRole('button', {name: 'Compare the two'}).click();
  await page.waitForURL(/\/compare\?/);
  await page.waitForLoadState('load');
  expect(/^\d+ changes$/.test(await page.locator('#place').textContent()), await page.locator('#place').textContent());
  const [before, after] = ['a', 'b'].map(side => frameOf(page, side));
  expect(await before.locator('del').first().textContent() === 'old', 'the old word is not marked');
  expect(await after.locator('ins').first().textContent() === 'new', 'the new word is not marked');
  const next = page.getByRole('button', {name: 'Next change'});
  for (let i = 0; i < 4; i++) await next.click();
  await until('both to scroll', async () => await scrolled(page, 'a') > 100 && await scrolled(page, 'b') > 100);
  const place = await page.locator('#place').textContent();
  expect(place === 'Change 4 of 4', place);
  for (const side of ['a', 'b']) {
    const top = await frameOf(page, side).evaluate(() =>
      document.getElementById('webbase-change-4').getBoundingClientRect().top / innerHeight);
    expect(top > 0 && top < 1, `change 4 is out of sight on side ${side}`);
  }
  // The reader scrolls one, and the other follows to the end, although it is longer.
  await page.locator('iframe').nth(1).hover();
  await page.mouse.wheel(0, 100000);
  const rest = side =>
    frameOf(page, side).evaluate(() => document.documentElement.scrollHeight - innerHeight - scrollY);
  await until('both to be at the end', async () => await rest('a') < 2 && await rest('b') < 2);
});

test('side by side without JavaScript', async ({context, folder, later}) => {
  const origin = await served(folder, later);
  const page = await reader(context, later, {javaScriptEnabled: false, viewport: {width: 390, height: 800}});
  await page.goto(`${origin}/compare?url=${encodeURIComponent(HOME)}&a=20250305&b=20250308`);
  await page.getByRole('link', {name: 'Next change'}).click();
  await page.waitForURL(/change=1/);
  await page.getByRole('link', {name: 'Next change'}).click();
  await page.waitForURL(/change=2/);
  expect(await page.locator('iframe[src$="#webbase-change-2"]').count() === 2, 'the frames are not at the change');
  const [first, second] = await page.locator('iframe').evaluateAll(all => all.map(f => f.getBoundingClientRect().top));
  expect(second > first + 100, 'on a phone they are not one above the other');
  await page.getByRole('link', {name: 'Text', exact: true}).click();
  await page.waitForURL(/view=text/);
  expect(await page.locator('.changes del').count() > 0, 'no changed text');
});

test('nothing of a stored page runs beside another one', async ({page, folder, later}) => {
  const origin = await served(folder, later);
  const elsewhere = [];
  page.on('request', request => request.url().startsWith(`${origin}/`) || elsewhere.push(request.url()));
  await page.goto(`${origin}/compare?url=${encodeURIComponent(`${SITE}/hostile`)}&a=20250101&b=20250102`);
  await page.waitForLoadState('load');
  const before = frameOf(page, 'a');
  await page.getByRole('button', {name: 'Next change'}).click();
  expect(await page.locator('#place').textContent() === 'Change 1 of 1', await page.locator('#place').textContent());
  await before.locator('#trap').click();
  expect(await page.title() === 'What changed \u00b7 WebBase', await page.title());
  expect(await page.evaluate(() => window.owned) === undefined, 'a script ran');
  expect(new URL(before.url()).pathname === '/compare/frame', `the frame went to ${before.url()}`);
  // What a link leads to belongs to no origin any more.
  await before.locator('#on').click();
  await until('the next page', () => page.frames().some(frame => frame.url().includes('/next')));
  expect(await page.evaluate(() => {
    try {
      return document.querySelector('iframe').contentWindow.document === null;
    } catch {
      return true;
    }
  }), 'a stored page in a frame has our origin');
  expect(await page.evaluate(() => window.owned) === undefined && elsewhere.length === 0, `loads ${elsewhere}`);
});

test('on a phone, nothing is wider than the screen', async ({context, folder, later}) => {
  const origin = await served(folder, later);
  const page = await reader(context, later, {viewport: {width: 390, height: 800}, colorScheme: 'dark'});
  const url = encodeURIComponent(HOME);
  for (const path of [`/calendar?url=${url}`, '/captures?url=time.example.org/*', `/compare?url=${url}&a=2025&b=2024`,
    `/compare?url=${url}&a=2024&b=2025&view=text`, `/files?url=${url}`, `/page?url=${url}`,
    `/web/20250308200000/${HOME}`]) {
    await page.goto(origin + path);
    const wide = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
    expect(wide <= 0, `${path} is ${wide} pixels too wide`);
  }
});

await run();
