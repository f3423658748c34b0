#!/usr/bin/env node
// The search box and the results in Chromium: completion with keyboard, mouse and touch, what it tells screen readers, slow
// answers; where titles lead; folded results; small screens; without JavaScript.
import {writeFileSync} from 'node:fs';
import {join} from 'node:path';
import {expect, run, started, test, until, warcRecord, webbase} from './browser.mjs';

const SITE = 'http://manual.example.org';
const ENGLISH = 'This guide explains how the filter works and which rules are followed before anything else is done. '.repeat(8);
const GERMAN = 'Diese Anleitung erklärt, wie der Filter arbeitet und welche Regeln befolgt werden, bevor etwas geschieht. '.repeat(8);
const copies = Array.from({length: 400}, (_, i) => `word${i}`).join(' ');

function record(path, title, text, lang = 'en') {
  return warcRecord({url: `${SITE}${path}`, date: '2026-01-02T03:04:05Z',
    body: `<!DOCTYPE html><html lang="${lang}"><meta charset="utf-8"><title>${title}</title><body><h1>${title}</h1><p>${text}</p></body></html>`});
}

async function served(folder, later) {
  const [repo, archive] = ['repo', 'in.warc'].map(name => join(folder, name));
  writeFileSync(archive, Buffer.concat([
    record('/en/filter.html', 'Netfilter manual: filter tables - Handbook', `zqword ${ENGLISH}`),
    record('/de/filter.html', 'Netfilter-Handbuch: Filtertabellen - Handbuch', `zqword ${GERMAN}`, 'de'),
    ...[1, 2, 3].map(i => record(`/copy/${i}`, 'Filter of copies', `zqword filter ${copies}`)),
    ...Array.from({length: 12}, (_, i) => record(`/other/a-rather-long-name/of-a-place/${i}.html`, `Filing cabinet ${i}`,
      `zqword ${Array.from({length: 60}, (_, k) => `other${i * 100 + k}`).join(' ')}`))]));
  await webbase(repo, 'init');
  await webbase(repo, 'import', archive);
  await webbase(repo, 'index');
  return started(repo, later, 'serve', '--listen', '127.0.0.1:0');
}

const shot = (page, name) => process.env.SHOTS && page.screenshot({path: join(process.env.SHOTS, `search-${name}.png`)});
const options = page => page.locator('#completions [role=option]').evaluateAll(list => list.map(o => o.dataset.text));
const open = page => until('completions', async () => await page.locator('#completions').isVisible());
const closed = page => until('no completions', async () => !await page.locator('#completions').isVisible());
const type = async (page, text) => {
  await page.locator('#q').pressSequentially(text);
  await open(page);
};

test('completion with the keyboard', async ({page, folder, later}) => {
  const origin = await served(folder, later);
  await page.goto(`${origin}/`);
  const box = page.getByRole('combobox', {name: 'Search the collection'});
  await type(page, 'filt');
  const all = await options(page);
  expect(all.includes('Netfilter manual: filter tables') && all.includes('Filter of copies'), `completions are ${all}`);
  expect(await box.getAttribute('aria-expanded') === 'true' && await box.getAttribute('aria-controls') === 'completions',
    'the box does not say that its list is open');
  expect(/\d+ completions/.test(await page.getByRole('status').last().textContent()), 'the number is not announced');
  expect(await box.getAttribute('aria-activedescendant') === null, 'one is chosen already');
  await page.keyboard.press('ArrowDown');
  await page.keyboard.press('ArrowDown');
  expect(await box.inputValue() === all[1], `the box has ${await box.inputValue()}`);
  const active = page.locator(`#${await box.getAttribute('aria-activedescendant')}`);
  expect(await active.getAttribute('aria-selected') === 'true' && await active.getAttribute('data-text') === all[1], 'another one is active');
  expect(await page.locator('[aria-selected=true]').count() === 1, 'several are chosen');
  await page.keyboard.press('ArrowUp');
  await page.keyboard.press('ArrowUp');
  expect(await box.inputValue() === 'filt', 'what was typed does not come back');
  await page.keyboard.press('ArrowUp');
  expect(await box.inputValue() === all.at(-1), 'the last one does not come before the first');
  await page.keyboard.press('Escape');
  await closed(page);
  expect(await box.inputValue() === 'filt' && await box.evaluate(b => b === document.activeElement), 'Escape loses what was typed');
  await page.keyboard.press('ArrowDown');
  await open(page);
  await page.keyboard.press('Tab');
  await closed(page);
  await box.fill('');
  await type(page, 'NETF');
  await page.keyboard.press('ArrowDown');
  await page.keyboard.press('Enter');
  await page.waitForURL(/q=Netfilter\+manual/);
  expect((await page.locator('.hit h2 a').first().textContent()).startsWith('Netfilter'), 'the page with this title is not first');
  expect(!await page.locator('#completions').isVisible(), 'the list is open among the results');
});

test('completion with the mouse and with a finger', async ({page, context, folder, later}) => {
  const origin = await served(folder, later);
  await page.goto(`${origin}/?q=zqword`);
  await page.locator('#q').fill('');
  await type(page, 'filter o');
  await shot(page, 'complete');
  await page.locator('#completions').getByText('Filter of copies').click();
  await page.waitForURL(/q=Filter\+of\+copies/);
  await page.locator('#q').fill('');
  await type(page, 'filt');
  await page.locator('.foot').click({position: {x: 5, y: 5}});
  await closed(page);
  const phone = await context.browser().newContext({viewport: {width: 390, height: 800}, hasTouch: true, colorScheme: 'dark'});
  later(() => phone.close());
  const small = await phone.newPage();
  await small.goto(`${origin}/`);
  await type(small, 'fil');
  await shot(small, 'complete-phone');
  expect(await small.evaluate(() => document.documentElement.scrollWidth <= innerWidth), 'the list is wider than the screen');
  await small.locator('#completions [role=option]').first().tap();
  await small.waitForURL(/q=/);
});

test('slow answers and none', async ({page, folder, later}) => {
  const origin = await served(folder, later);
  const waiting = [];
  await page.goto(`${origin}/`);
  await page.route('**/api/complete*', route => waiting.push(route));
  await page.locator('#q').pressSequentially('netf');
  await until('a question', () => waiting.length);
  await page.locator('#q').pressSequentially('ilter', {delay: 5});
  await until('a later question', () => waiting.some(route => route.request().url().endsWith('=netfilter')));
  const late = waiting.find(route => route.request().url().endsWith('=netfilter'));
  await late.continue();
  await open(page);
  for (const route of waiting.filter(route => route !== late)) await route.fulfill({json: {completions: [{text: 'stale', kind: 'word'}]}}).catch(() => {});
  expect((await options(page)).every(text => text !== 'stale'), 'an old answer replaces a newer one');
  await page.unroute('**/api/complete*');
  await page.route('**/api/complete*', route => route.fulfill({status: 503, body: '{}'}));
  await page.locator('#q').pressSequentially(' man');
  await closed(page);
  await page.keyboard.press('Enter');
  await page.waitForURL(/q=netfilter\+man/);
});

test('results, folded ones, and where they lead', async ({page, folder, later}) => {
  const origin = await served(folder, later);
  await page.goto(`${origin}/?q=zqword&limit=50`);
  expect(/^17 results, 14 after folding/.test(await page.locator('.total').textContent()), await page.locator('.total').textContent());
  const guide = page.locator('.hit', {has: page.locator('summary', {hasText: 'also in'})});
  const copy = page.locator('.hit', {has: page.locator('summary', {hasText: '2 near duplicates'})});
  expect(await guide.count() === 1 && await copy.count() === 1, 'translations and copies are not folded');
  expect(!await copy.locator('.folded li').first().isVisible(), 'what is folded is shown');
  await copy.locator('summary').focus();
  await page.keyboard.press('Enter');
  await until('what is folded', () => copy.locator('.folded li').first().isVisible());
  expect(await copy.locator('.folded li').count() === 2, 'not all copies are there');
  await guide.locator('summary').click();
  await guide.scrollIntoViewIfNeeded();
  await shot(page, 'folded');
  const live = guide.getByRole('link', {name: 'live web'});
  expect(/noopener/.test(await live.getAttribute('rel')) && /noreferrer/.test(await live.getAttribute('rel')), 'the live web learns who comes');
  await guide.getByRole('link', {name: 'facts'}).click();
  await page.waitForURL(/\/page\?url=/);
  await page.goBack();
  await guide.locator('h2 a').click();
  await page.waitForURL(/\/web\/20260102030405[^/]*\/http:\/\/manual\.example\.org\//);
  await page.goto(`${origin}/?q=zqword&limit=50`);
  await page.getByRole('link', {name: 'Show duplicates'}).click();
  await page.waitForURL(/fold=0/);
  expect(await page.locator('.hit').count() === 17, 'not all results are shown');
  await page.getByRole('link', {name: 'Fold duplicates'}).click();
  await until('folded results', async () => await page.locator('.hit').count() === 10 || await page.locator('.hit').count() === 14);
});

test('dark, small, and without JavaScript', async ({context, folder, later}) => {
  const origin = await served(folder, later);
  for (const [name, options_] of [['dark', {colorScheme: 'dark', viewport: {width: 1280, height: 900}}],
    ['phone', {viewport: {width: 390, height: 800}}], ['plain', {javaScriptEnabled: false, viewport: {width: 1280, height: 900}}]]) {
    const other = await context.browser().newContext(options_);
    later(() => other.close());
    const reader = await other.newPage();
    await reader.goto(`${origin}/`);
    await reader.locator('#q').fill('zqword filter');
    await reader.getByRole('button', {name: 'Search'}).click();
    await reader.waitForURL(/q=zqword/);
    await reader.locator('.folded summary').first().click();
    expect(await reader.locator('.folded li').first().isVisible(), `${name}: what is folded does not open`);
    await shot(reader, name);
    if (name === 'phone')
      expect(await reader.evaluate(() => document.documentElement.scrollWidth <= innerWidth), 'results are wider than the screen');
    if (name === 'plain') {
      expect(await reader.getByRole('searchbox').count() === 1, 'the box is not a plain one');
      await reader.locator('.hit h2 a').first().click();
      await reader.waitForURL(/\/web\/2026/);
    }
  }
});

await run();
