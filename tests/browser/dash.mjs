#!/usr/bin/env node
// The dashboard in a browser: its past through a restart, ranges and zoom, live parts that can be paused, orders and their
// outcome next to the buttons, times in one zone, and the same without scripts.
import {join} from 'node:path';

import {expect, run, started, test, until, webbase} from './browser.mjs';

const TOKEN = 'secret-of-the-test';
const SHOTS = process.env.SHOTS;

async function shot(page, name) {
  if (SHOTS) await page.screenshot({path: join(SHOTS, `${name}.png`), fullPage: true});
}

async function crawled(folder, later) {
  const repo = join(folder, 'r');
  const web = await started(null, later, 'web', '--sites', '12', '--pages', '60');
  await webbase(repo, 'init');
  const origin = await started(repo, later, 'serve', '--listen', '127.0.0.1:0', '--token', TOKEN);
  await webbase(repo, 'crawl', `${web}/`, '--scope', 'any', '--delay', '0', '--allow-private', '--processes', '1');
  return {repo, web, origin};
}

const narrow = page => page.evaluate(() => document.documentElement.scrollWidth <= innerWidth);

test('the past, its ranges and a closer look', async ({page, folder, later}) => {
  const {origin} = await crawled(folder, later);
  await page.goto(`${origin}/dash`);
  await until('the charts', async () => await page.locator('.chart canvas').count() === 8);
  // What the crawl did is there, though the page was not open then.
  const stored = await until('the pages that were stored', () => page.evaluate(async () => {
    const said = await (await fetch('/api/history?metric=crawl_pages&range=hour&step=1')).json();
    return said.metrics.crawl_pages.values.some(v => v > 0);
  }));
  expect(stored, 'the crawl is not in the history');
  await page.locator('#chart-rate ~ details summary').click();
  expect(await page.locator('#chart-rate ~ details tbody tr').count() === 12, 'the table has other than 12 rows');
  await shot(page, 'dash');
  await page.getByRole('link', {name: 'Week'}).click();
  await until('the week', () => page.locator('.ranges a[aria-current]').textContent().then(t => t === 'Week'));
  await until('the charts of the week', async () => await page.locator('.chart canvas').count() === 8);
  // All that is known is in one step of the week, at the right edge: no line, but a point.
  const blue = () => page.locator('#chart-store canvas').evaluate(canvas => {
    const {width, height} = canvas, [r, g, b] = [31, 95, 191]; // --accent
    const {data} = canvas.getContext('2d').getImageData(0, 0, width, height);
    let found = 0;
    for (let i = 0; i < data.length; i += 4) found += data[i] === r && data[i + 1] === g && data[i + 2] === b && data[i + 3] === 255;
    return found;
  });
  await until('a point', async () => await blue() > 2);
  const box = await page.locator('#chart-rate .u-over').boundingBox();
  await page.mouse.move(box.x + box.width * 0.5, box.y + 50);
  await page.mouse.down();
  await page.mouse.move(box.x + box.width * 0.75, box.y + 50, {steps: 4});
  await page.mouse.up();
  await page.waitForURL(/from=\d+&to=\d+/);
  const range = new URL(page.url()).searchParams;
  const days = (range.get('to') - range.get('from')) / 86400e3;
  expect(days > 1.4 && days < 2.1, `a quarter of a week has ${days} days`);
  await page.getByRole('link', {name: 'Zoom out'}).click();
  await page.waitForURL(url => url.searchParams.get('from') < range.get('from'));
});

test('sites, fetches and orders stay current', async ({page, context, folder, later}) => {
  const {repo, web, origin} = await crawled(folder, later);
  await page.goto(`${origin}/dash`);
  await until('the sites', async () => await page.locator('[data-part=live-sites] tbody tr').count() === 10);
  expect(/Only operators/.test(await page.locator('[data-part=live-fetches]').textContent()), 'fetches without a token');
  await page.fill('#token', TOKEN);
  await page.getByRole('button', {name: 'Use'}).click();
  await until('the fetches', async () => await page.locator('[data-part=live-fetches] tbody tr').count() === 12);
  await page.getByRole('button', {name: 'Pause the crawl'}).click();
  await until('the failure', async () => /no crawl is running/.test(await page.locator('#order-answer').textContent()));
  const rows = page.locator('[data-part=live-orders] tbody tr');
  await until('the order in the log', async () => /pause.*failed.*no crawl is running/.test(await rows.first().textContent()));
  await shot(page, 'dash-orders');
  // The page of fetches: it renews itself, stops when paused, and goes on.
  const reader = await context.browser().newContext({httpCredentials: {username: 'me', password: TOKEN}});
  later(() => reader.close());
  const log = await reader.newPage();
  await log.goto(`${origin}/dash/fetches?limit=20`);
  const newest = () => log.locator('.fetches tbody tr').first().textContent();
  const before = await newest();
  await webbase(repo, 'crawl', `${web}/`, '--scope', 'any', '--delay', '0', '--allow-private', '--processes', '1');
  await until('news', async () => await newest() !== before);
  await log.getByRole('button', {name: 'Pause'}).click();
  const renewed = () => log.locator('#live-fetches').getAttribute('data-renewed').then(Number);
  const paused = await renewed();
  await new Promise(done => setTimeout(done, 3000)); // longer than it takes to renew itself
  expect(await renewed() === paused, 'a paused log has moved');
  await log.getByRole('button', {name: 'Go on'}).click();
  await until('the log to go on', async () => await renewed() > paused);
  await log.selectOption('select[name=status]', '3xx');
  await log.getByRole('button', {name: 'Show'}).click();
  await log.waitForURL(/status=3xx/);
  const statuses = await log.locator('.fetches tbody td:nth-child(2)').allTextContents();
  expect(statuses.length && statuses.every(s => /^3\d\d$/.test(s)), `statuses ${statuses}`);
  await shot(log, 'dash-fetches');
  await log.goto(`${origin}/dash/sites`);
  await log.getByRole('link', {name: 'Pages'}).click();
  await log.waitForURL(/sort=pages&.*order=down/);
  const tops = await log.locator('.filter label').evaluateAll(all => all.map(label => label.getBoundingClientRect().top));
  expect(tops.length > 1 && tops.every(top => top === tops[0]), `the fields of the filter begin at ${tops}`);
  const pages = (await log.locator('.sites tbody td:nth-child(6)').allTextContents()).map(Number);
  expect(pages.length > 3 && pages.every((n, i) => i === 0 || n <= pages[i - 1]), `not sorted: ${pages}`);
  await shot(log, 'dash-sites');
});

test('times are in the zone of the browser', async ({context, folder, later}) => {
  const {origin} = await crawled(folder, later);
  const there = await context.browser().newContext({timezoneId: 'Asia/Kathmandu', locale: 'en-GB'});
  later(() => there.close());
  const page = await there.newPage();
  await page.goto(`${origin}/dash`);
  const time = page.locator('#charts time').first();
  const shown = await time.textContent(), utc = await time.getAttribute('title'), iso = await time.getAttribute('datetime');
  expect(/UTC$/.test(utc) && utc.slice(0, 10) === iso.slice(0, 10), `the title is ${utc}`);
  const minutes = text => Date.parse(text.slice(0, 19).replace(' ', 'T') + 'Z') / 60000;
  expect(minutes(shown) - minutes(utc) === 345, `${shown} is not ${utc} in Kathmandu`);
  expect(/GMT\+5:45/.test(shown), `${shown} names no zone`);
});

test('without scripts, small and dark', async ({context, folder, later}) => {
  const {origin} = await crawled(folder, later);
  for (const [name, options] of [['plain', {}], ['dark', {colorScheme: 'dark'}], ['narrow', {viewport: {width: 390, height: 800}}]])
    for (const javaScriptEnabled of [true, false]) {
      const other = await context.browser().newContext({javaScriptEnabled, httpCredentials: {username: 'me', password: TOKEN},
        ...options});
      const page = await other.newPage();
      const errors = [];
      page.on('console', message => message.type() === 'error' && errors.push(message.text()));
      for (const path of ['/dash', '/dash?range=year', '/dash/sites', '/dash/fetches', '/dash/orders']) {
        await page.goto(origin + path);
        if (!javaScriptEnabled && path.startsWith('/dash?')) {
          expect(await page.locator('figure.plot .chart > svg').count() === 8, 'pictures are missing');
          expect(/UTC/.test(await page.locator('#charts time').first().textContent()), 'times without a zone');
        }
        if (!javaScriptEnabled) {
          const empty = await page.locator('tbody').evaluateAll(all => all.filter(t => !t.children.length).length);
          expect(empty === 0, `${path} has ${empty} empty tables`);
        }
        expect(await narrow(page), `${path} is wider than the window (${name})`);
        await shot(page, `watch-${name}${javaScriptEnabled ? '' : '-bare'}${path.replace(/\W/g, '-')}`);
      }
      expect(errors.length === 0, errors.join('; '));
      await other.close();
    }
});

test('an empty repository says how to begin', async ({page, folder, later}) => {
  const repo = join(folder, 'empty');
  await webbase(repo, 'init');
  const origin = await started(repo, later, 'serve', '--listen', '127.0.0.1:0');
  await page.goto(`${origin}/dash`);
  expect(await page.locator('#begin pre').textContent().then(t => t.trim().split('\n').length === 2), 'not two commands');
  await until('a sample', () => page.evaluate(() => Number(document.body.dataset.samples)));
  expect(await page.locator('#begin').isVisible(), 'the commands have gone');
  await shot(page, 'dash-empty');
});

await run();
