#!/usr/bin/env node
// The web pages in Chromium: search, paging, facets, keyboard, without JavaScript, one page and its versions, a site,
// the dashboard during a crawl, the operator's buttons, the nodes, and hostile pages that must not run script.
import {renameSync, writeFileSync} from 'node:fs';
import {spawn} from 'node:child_process';
import {join} from 'node:path';
import {WEBBASE, expect, run, serveFiles, started, test, until, warcRecord, webbase} from './browser.mjs';

const SITE = 'http://pages.example.org';
const html = (title, text, rest = '') => `<!DOCTYPE html><html lang="en"><head><title>${title}</title></head><body>` +
  `<h1>${title}</h1><p id="text">${text}</p>${rest}</body></html>`;

// A script that leaves its mark where it runs: in the title, and with a request.
const ATTACK = `<script>document.title='owned';parent.owned=1;new Image().src='/owned'</script>` +
  `<img src="x" onerror="document.title='owned'"><svg onload="document.title='owned'"></svg>` +
  `<a id="trap" href="javascript:document.title='owned'">trap</a>`;
const HOSTILE_TITLE = `&lt;/title&gt;&lt;script&gt;document.title='owned'&lt;/script&gt;&lt;img src=x onerror=alert(1)&gt;`;

function records() {
  const filler = Array.from({length: 35}, (_, i) => warcRecord({url: `${SITE}/filler/${i}`,
    date: '2026-01-01T00:00:00Z', body: html(`Filler ${i}`, `wombat number ${i} of the fillers`,
      `<a href="/versions">the page with versions</a>`)}));
  return [...filler,
    warcRecord({url: 'http://other.example.com/', date: '2026-01-05T00:00:00Z',
      body: html('Other site', 'a wombat elsewhere', `<a href="${SITE}/versions">&lt;b&gt;bold&lt;/b&gt; words</a>`)}),
    warcRecord({url: 'http://other.example.com/plain.txt', date: '2026-01-05T00:00:00Z', type: 'text/plain',
      body: 'a wombat in plain text'}),
    warcRecord({url: `${SITE}/versions`, date: '2026-01-02T03:04:05Z', body: html('Versions', 'the old wombat text')}),
    warcRecord({url: `${SITE}/versions`, date: '2026-02-03T04:05:06Z', body: html('Versions', 'the new wombat text')}),
    warcRecord({url: 'http://hostile.example.net/', date: '2026-01-05T00:00:00Z',
      body: html(HOSTILE_TITLE, `quokka ${HOSTILE_TITLE}`, ATTACK)})];
}

async function served(folder, later, ...options) {
  const [repo, archive] = ['repo', 'in.warc'].map(name => join(folder, name));
  writeFileSync(archive, Buffer.concat(records()));
  await webbase(repo, 'init', '--history', 'all');
  await webbase(repo, 'import', archive);
  await webbase(repo, 'index');
  const where = options.includes('--listen') ? [] : ['--listen', '127.0.0.1:0'];
  return started(repo, later, 'serve', ...where, '--token', 'secret-of-the-test', ...options);
}

const titles = page => page.locator('.hit h2 a').allTextContents();

test('search, paging and what loads', async ({page, folder, later}) => {
  const origin = await served(folder, later);
  const elsewhere = [];
  page.on('request', request => request.url().startsWith(`${origin}/`) || elsewhere.push(request.url()));
  await page.goto(`${origin}/`);
  await page.getByRole('combobox').fill('wombat');
  await page.keyboard.press('Enter');
  await page.waitForURL(/q=wombat/);
  expect(/^38 results/.test(await page.locator('.total').textContent()), await page.locator('.total').textContent());
  const seen = await titles(page);
  expect(seen.length === 10, `${seen.length} results on the first page`);
  for (let i = 0; i < 3; i++) {
    await page.getByRole('link', {name: 'Next'}).click();
    await page.waitForURL(new RegExp(`offset=${10 * (i + 1)}`));
    seen.push(...await titles(page));
  }
  expect(seen.length === 38 && await page.getByRole('link', {name: 'Next'}).count() === 0, `${seen.length} results in all`);
  await page.getByRole('link', {name: 'Page 2', exact: true}).click();
  await page.waitForURL(/offset=10/);
  expect(elsewhere.length === 0, `loads ${elsewhere}`);
});

test('facets, one page per site, order, spelling', async ({page, folder, later}) => {
  const origin = await served(folder, later);
  await page.goto(`${origin}/?q=wombat`);
  await page.locator('.facets').getByRole('link', {name: 'other.example.com'}).click();
  await page.waitForURL(/site/);
  expect(/^2 results/.test(await page.locator('.total').textContent()), 'the facet does not narrow the results');
  await page.locator('.facets').getByRole('link', {name: 'text/plain'}).click();
  await page.waitForURL(/type/);
  expect((await titles(page)).length === 1, 'two facets together');
  await page.locator('.chip', {hasText: 'site:'}).click();
  await page.locator('.chip', {hasText: 'type:'}).click();
  await until('all results', async () => /^38 results/.test(await page.locator('.total').textContent()));
  await page.getByRole('link', {name: 'One page per site'}).click();
  await page.waitForURL(/one_per_site/);
  expect((await titles(page)).length === 2, 'one page per site shows more');
  await page.getByRole('link', {name: 'newest'}).click();
  await page.waitForURL(/sort=date/);
  expect((await titles(page))[0] === 'Versions', 'the newest page is not first');
  await page.goto(`${origin}/?q=womabt`);
  await page.locator('.mean a').click();
  await page.waitForURL(/q=wombat/);
  await page.goto(`${origin}/?q=wombat+inlinks:many`);
  expect((await page.locator('mark').textContent()).includes('many'), 'the mistake is not marked');
});

test('keyboard', async ({page, folder, later}) => {
  const origin = await served(folder, later);
  const focused = selector => page.evaluate(s => document.activeElement.matches(s), selector);
  await page.goto(`${origin}/`);
  expect(await focused('#q'), 'the front page does not begin in the search box');
  await page.goto(`${origin}/?q=wombat`);
  await page.keyboard.press('Tab');
  expect(await focused('.skip'), 'the first stop is not the link to the content');
  await page.keyboard.press('Enter');
  expect(await focused('#main'), 'the link to the content does not lead there');
  await page.keyboard.press('/');
  expect(await focused('#q') && await page.inputValue('#q') === 'wombat', '/ does not lead into the search box');
  await page.keyboard.type('filler/');
  expect(await page.inputValue('#q') === 'filler/', 'the box is not ready to be typed over');
  await page.keyboard.press('Escape');
  await page.keyboard.press('j');
  await page.keyboard.press('j');
  expect(await page.evaluate(() => [...document.querySelectorAll('.hit h2 a')].indexOf(document.activeElement)) === 1,
    'j does not walk through the results');
  await page.keyboard.press('Enter');
  await page.waitForURL(/\/web\/2026/);
});

test('without JavaScript', async ({page, context, folder, later}) => {
  const origin = await served(folder, later);
  const plain = await context.browser().newContext({javaScriptEnabled: false});
  later(() => plain.close());
  const reader = await plain.newPage();
  await reader.goto(`${origin}/`);
  await reader.fill('#q', 'wombat');
  await reader.getByRole('button', {name: 'Search'}).click();
  await reader.waitForURL(/q=wombat/);
  await reader.getByRole('link', {name: 'Next'}).click();
  await reader.waitForURL(/offset=10/);
  await reader.locator('.hit').first().getByRole('link', {name: 'facts'}).click();
  await reader.waitForURL(/\/page\?url=/);
  expect(await reader.getByRole('heading', {name: 'Facts'}).count() === 1, 'the page view needs scripts');
  for (const width of [1280, 390]) {
    await reader.setViewportSize({width, height: 800});
    const wide = await reader.locator('.facts > div').evaluateAll(all => all.filter(e => e.scrollWidth > e.clientWidth)
      .map(e => e.textContent));
    expect(wide.length === 0, `${width}: facts reach into the next column: ${wide}`);
  }
  await reader.goto(`${origin}/web/20260101000000/${SITE}/nowhere`);
  expect(await reader.getByText('There is no copy').count() === 1, 'a missing page is not said to be missing');
  await reader.getByRole('link', {name: 'All captures of this site'}).click();
  await reader.locator('td').getByText(`${SITE}/filler/0`, {exact: true}).waitFor();
  await until('a sample', async () => {
    await reader.goto(`${origin}/dash`);
    return await reader.locator('#streams').textContent() === '0';
  });
  expect(await reader.locator('#pages').textContent() === '39', 'the dashboard shows nothing without scripts');
  for (const id of ['freshness', 'age'])
    expect(/\d/.test(await reader.locator(`#${id}`).textContent()), `${id} is empty without scripts`);
  const orders = reader.locator('#orders');
  expect(await orders.locator('button:visible, input:visible').count() === 0, 'buttons are shown that cannot work');
  // Playwright finds no texts in <noscript>, so it is asked by element.
  const instead = orders.locator('noscript code').first();
  expect(await instead.isVisible() && await instead.textContent() === 'webbase control', 'nothing says what can be done instead of the buttons');
});

test('a token as a password', async ({context, folder, later}) => {
  const origin = (await served(folder, later, '--listen', '0.0.0.0:0')).replace('0.0.0.0', '127.0.0.1');
  const visit = async password => {
    const reader = await context.browser().newContext({httpCredentials: {username: 'anyone', password}});
    later(() => reader.close());
    const page = await reader.newPage();
    return {page, reply: await page.goto(`${origin}/dash`)};
  };
  expect((await visit('wrong')).reply.status() === 401, 'a wrong password is good enough');
  const {page, reply} = await visit('secret-of-the-test');
  expect(reply.status() === 200, `the password is not accepted: ${reply.status()}`);
  await until('samples', () => page.evaluate(() => Number(document.body.dataset.samples)));
});

test('a page, its versions and its site', async ({page, folder, later}) => {
  const origin = await served(folder, later);
  await page.goto(`${origin}/page?url=${encodeURIComponent(`${SITE}/versions`)}`);
  expect(await page.locator('svg.line a').count() === 2, 'the line of time has not two versions');
  await page.getByRole('button', {name: 'Compare'}).click();
  await page.waitForURL(/compare.*a=20260102030405/);
  await page.getByRole('link', {name: 'Text', exact: true}).click();
  await page.waitForURL(/view=text/);
  expect(await page.locator('.changes del').textContent() === 'old ', await page.locator('.changes').innerHTML());
  expect(await page.locator('.changes ins').textContent() === 'new ', await page.locator('.changes').innerHTML());
  await page.getByRole('link', {name: 'Other versions'}).click();
  await page.waitForURL(/page.url=/);
  const anchors = await page.locator('section:has(#in) q').allTextContents();
  expect(anchors.includes('<b>bold</b> words'), `anchors: ${anchors}`);
  await page.locator('section:has(#in)').getByRole('link', {name: 'More'}).click();
  await page.waitForURL(/in=25/);
  expect(await page.locator('section:has(#in) li').count() === 11, 'the rest of the links is not shown');
  await page.locator('table a').last().click();
  await page.waitForURL(/\/web\/20260102030405\//);
  expect((await page.frameLocator('#page').locator('#text').textContent()) === 'the old wombat text', 'the copy is not the old one');
  await page.goto(`${origin}/site?host=pages.example.org`);
  expect((await page.locator('article').textContent()).includes('text/html'), 'the site view has no types');
  for (const path of ['/page?url=http://nowhere.example/', '/site?host=nowhere.example', '/nowhere']) {
    const reply = await page.goto(origin + path);
    expect(reply.status() === 404 && (await page.locator('h1').textContent()) === 'Not found', `${path}: ${reply.status()}`);
  }
});

test('hostile pages run nothing', async ({page, folder, later}) => {
  const origin = await served(folder, later);
  const asked = [];
  page.on('request', request => asked.push(request.url()));
  page.on('dialog', dialog => dialog.dismiss().then(() => asked.push('/owned')));
  const url = encodeURIComponent('http://hostile.example.net/');
  for (const path of ['/?q=quokka', `/page?url=${url}`, '/site?host=hostile.example.net', `/?q=${encodeURIComponent(ATTACK)}`,
    `/page?url=${encodeURIComponent(ATTACK)}`, `/${ATTACK}`, '/web/20260105000000/http://hostile.example.net/',
    '/web/20260105000000id_/http://hostile.example.net/']) {
    await page.goto(origin + path);
    await page.waitForLoadState('networkidle');
    if (await page.locator('#trap').count()) await page.locator('#trap').click({noWaitAfter: true});
    expect(await page.title() !== 'owned' && !asked.some(u => u.endsWith('/owned')), `${path} ran a script`);
  }
  await page.goto(`${origin}/page?url=${url}`);
  expect((await page.locator('h1').textContent()).startsWith('</title><script>'), 'the title is not shown as it is');
});

// Starts a server over one archive with these records; returns its origin.
async function replayed(folder, later, records, ...options) {
  const [repo, archive] = ['repo', 'in.warc'].map(name => join(folder, name));
  writeFileSync(archive, Buffer.concat(records));
  await webbase(repo, 'import', archive);
  return started(repo, later, 'serve', '--listen', '127.0.0.1:0', ...options);
}

test('the bar over a stored page cannot be hidden, and follows its links', async ({page, context, folder, later}) => {
  const hide = `*,body>:first-child,div{display:none!important;opacity:0!important;visibility:hidden!important;` +
    `position:fixed!important;left:-9999px!important;height:0!important;clip-path:inset(100%)!important;z-index:-1!important}` +
    `html,body,p,a{display:block!important;visibility:visible!important;opacity:1!important;` +
    `position:static!important;height:auto!important;clip-path:none!important}` +
    `.cover{display:block!important;position:fixed!important;inset:-500px!important;height:auto!important;left:0!important;` +
    `z-index:2147483647!important;background:red;opacity:1!important;visibility:visible!important;clip-path:none!important}`;
  const date = '2026-01-02T03:04:05Z', style = `<style>${hide}</style><div class="cover"></div>`;
  const records = [warcRecord({url: `${SITE}/html`, date, body: `<!DOCTYPE html><title>x</title><body>${style}<p>stored</p>`}),
    warcRecord({url: `${SITE}/xhtml`, date, type: 'application/xhtml+xml', body: '<?xml version="1.0"?><html ' +
      `xmlns="http://www.w3.org/1999/xhtml"><head><title>x</title></head><body>${style}<p>stored</p></body></html>`}),
    warcRecord({url: `${SITE}/text`, date, type: 'text/plain', body: 'stored as text'}),
    warcRecord({url: `${SITE}/links`, date, body: `<title>x</title><p><a id=plain href=text>1</a> <a id=self target=_self href=text>2</a>` +
      `<a id=parent target=_parent href=text>3</a> <a id=blank target=_blank href=text>4</a> <a id=frame target=inner href=text>5</a>` +
      `<iframe name=inner src=inner></iframe>`}),
    warcRecord({url: `${SITE}/inner`, date, body: '<a id=within href=text>inner</a>'}),
    warcRecord({url: `${SITE}/refresh`, date, body: '<meta http-equiv=refresh content="0; url=links">'})];
  const origin = await replayed(folder, later, records);
  const plain = await context.browser().newContext({javaScriptEnabled: false, viewport: {width: 390, height: 600}});
  later(() => plain.close());
  const reader = await plain.newPage(), place = name => `${origin}/web/20260102030405/${SITE}/${name}`;
  for (const name of ['html', 'xhtml', 'text']) {
    await reader.goto(place(name));
    const bar = reader.locator('.stage-bar'), box = await bar.boundingBox();
    expect(box && box.x === 0 && box.y === 0 && box.width === 390 && box.height > 30, `${name}: the bar is at ${JSON.stringify(box)}`);
    const hit = await bar.evaluate(e => e.contains(document.elementFromPoint(200, e.getBoundingClientRect().height / 2)));
    expect(hit, `${name}: the bar is covered`);
    const rest = await reader.locator('#page').boundingBox();
    expect(rest.x === 0 && rest.width === 390 && rest.y === box.height && Math.abs(rest.y + rest.height - 600) < 1,
      `${name}: the frame is at ${JSON.stringify(rest)}`);
    expect((await bar.textContent()).includes('2026-01-02 03:04:05 UTC'), `the bar says ${await bar.textContent()}`);
    expect((await reader.frameLocator('#page').locator('body').textContent()).includes('stored'), `${name} is not in the frame`);
    if (process.env.SHOTS) await reader.screenshot({path: join(process.env.SHOTS, `bar-${name}.png`)});
  }
  const inside = reader.frameLocator('#page');
  for (const id of ['plain', 'self', 'parent']) {
    await reader.goto(place('links'));
    await inside.locator(`#${id}`).click();
    await reader.waitForURL(place('text'));
  }
  await reader.goto(place('links'));
  const [tab] = await Promise.all([plain.waitForEvent('page'), inside.locator('#blank').click()]);
  await tab.locator('.stage-bar').waitFor();
  expect(tab.url() === place('text'), `the new tab is at ${tab.url()}`);
  await inside.frameLocator('iframe').locator('#within').click();
  await inside.frameLocator('iframe').getByText('stored as text').waitFor();
  expect(reader.url() === place('links'), `a link of an inner frame leads to ${reader.url()}`);
  await reader.goto(place('refresh'));
  await inside.locator('#plain').waitFor();
});

test('the dashboard during a crawl, and the buttons', async ({page, folder, later}) => {
  const repo = join(folder, 'crawl');
  const web = await started(null, later, 'web', '--sites', '20', '--pages', '3000', '--latency', '20');
  await webbase(repo, 'init');
  const origin = await started(repo, later, 'serve', '--listen', '127.0.0.1:0', '--token', 'secret-of-the-test');
  const crawl = spawn(WEBBASE, ['-r', repo, 'crawl', `${web}/`, '--scope', 'any', '--delay', '0.2', '--allow-private',
    '--processes', '1'], {stdio: 'ignore'});
  const ended = new Promise(done => crawl.on('exit', done));
  later(() => ended);
  later(() => crawl.kill());
  await page.goto(`${origin}/dash`);
  const number = id => page.locator(id).textContent().then(text => Number(text.replace(/\D/g, '')));
  await until('the crawl on the dashboard', async () => /Crawling/.test(await page.locator('#state').textContent()));
  const first = await until('pages', () => number('#pages'));
  await until('more pages', async () => await number('#pages') > first);
  expect(await page.locator('.chart canvas').count() === 8, 'charts are missing');
  expect(/Requests\d+/.test(await page.locator('#crawl').textContent()), 'the crawl has no numbers');
  const samples = () => page.evaluate(() => Number(document.body.dataset.samples));
  const before = await samples();
  await until('samples', async () => await samples() > before);
  if (process.env.SHOTS) await page.screenshot({path: join(process.env.SHOTS, 'dash-crawl.png'), fullPage: true});
  await page.fill('#token', 'wrong-token');
  await page.getByRole('button', {name: 'Use'}).click();
  await until('the refusal', async () => /not the operator/.test(await page.locator('#order-answer').textContent()));
  expect(!await page.getByRole('button', {name: 'Pause'}).isVisible(), 'a wrong token is taken');
  await page.fill('#token', 'secret-of-the-test');
  await page.getByRole('button', {name: 'Use'}).click();
  await page.getByRole('button', {name: 'Pause'}).click();
  await until('the pause', async () => /paused/.test(await page.locator('#state').textContent()));
  await page.getByRole('button', {name: 'Resume'}).click();
  await until('the end of the pause', async () => /Crawling/.test(await page.locator('#state').textContent()));
  await page.fill('#delay-site', 'nowhere.example');
  await page.getByRole('button', {name: 'Set'}).click();
  await until('the message', async () => /nowhere\.example/.test(await page.locator('#order-answer').textContent()));
  await page.fill('#push-url', `${web}/`);
  await page.getByRole('button', {name: 'Push'}).click();
  await until('the push', async () => /Push: done/.test(await page.locator('#order-answer').textContent()));
  page.on('dialog', dialog => dialog.accept());
  await page.fill('#expunge-what', `${web}/`);
  await page.getByRole('button', {name: 'Take down'}).click();
  await until('the takedown', async () => /Take down: done/.test(await page.locator('#order-answer').textContent()));
  const gone = await page.request.get(`${origin}/api/page?url=${encodeURIComponent(`${web}/`)}`);
  expect(gone.status() === 404, `the page that was taken down gives ${gone.status()}`);
});

test('the nodes on the dashboard', async ({page, folder, later}) => {
  const repo = join(folder, 'nodes');
  await webbase(repo, 'init', '--nodes', '2');
  const origin = await started(repo, later, 'serve', '--listen', '127.0.0.1:0');
  await page.goto(`${origin}/dash`);
  expect(await page.locator('#nodes').isVisible(), 'two nodes are not shown');
  expect(/Incr\[hash,log\]/.test(await page.locator('#nodes').textContent()), 'the design is not shown');
  const states = () => page.locator('#node-rows tr td:nth-child(3)').allTextContents();
  expect((await states()).join() === 'idle,idle', `the nodes are ${await states()}`);
  renameSync(join(repo, 'node2'), join(folder, 'away'));
  await until('a node that is down', async () => (await states()).join() === 'idle,down');
  renameSync(join(folder, 'away'), join(repo, 'node2'));
  await until('a node that is back', async () => (await states()).join() === 'idle,idle');
  if (process.env.SHOTS) await page.screenshot({path: join(process.env.SHOTS, 'dash-nodes.png'), fullPage: true});
  const one = join(folder, 'one');
  await webbase(one, 'init');
  await page.goto(`${await started(one, later, 'serve', '--listen', '127.0.0.1:0')}/dash`);
  await until('samples', () => page.evaluate(() => Number(document.body.dataset.samples)));
  expect(!await page.locator('#nodes').isVisible(), 'a single node is shown');
});

await run();
