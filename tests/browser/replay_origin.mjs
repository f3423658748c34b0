#!/usr/bin/env node
// Stored pages on origins of their own (serve --replay-listen): what they need works as it did, the bar follows them,
// and two sites share nothing.
import {readFileSync} from 'node:fs';
import {join} from 'node:path';
import {MODULES, expect, run, test, until} from './browser.mjs';
import {A, B, TIME, at, replayed} from './replay.mjs';

const FONT = () => readFileSync(join(MODULES, '@fortawesome/fontawesome-free/webfonts/fa-regular-400.woff2'));

// A page whose script puts the results of these tests into an object: name -> expression, which may wait.
const testing = (tests, front = '') => `<!DOCTYPE html><title>testing</title>${front}<body><div id=done></div><script type=module>
  const results = {};
  const tests = {${Object.entries(tests).map(([name, code]) => `${JSON.stringify(name)}: async () => (${code})`).join(',\n')}};
  for (const [name, f] of Object.entries(tests))
    results[name] = await Promise.race([f().then(String, e => 'error ' + e), new Promise(d => setTimeout(() => d('timeout'), 5000))]);
  document.getElementById('done').textContent = JSON.stringify(results);
</script>`;

async function resultsOf(page) {
  const done = page.frameLocator('#page').locator('#done:not(:empty)');
  await done.waitFor({state: 'attached'});
  return JSON.parse(await done.textContent());
}

function compare(results, wanted) {
  const wrong = Object.entries(wanted).filter(([name, want]) => results[name] !== want)
    .map(([name, want]) => `${name}: ${results[name]}, not ${want}`);
  expect(wrong.length === 0, wrong.join('\n'));
}

const event = (make, name) => `new Promise((yes, no) => { const e = ${make}; e.on${name} = x => yes(x.data ?? '${name}'); e.onerror = () => no('failed'); })`;

test('what pages need works', async ({page, folder, later}) => {
  const tests = {
    path: ['location.pathname + location.search', '/dir/page?q=1'],
    root: ['fetch("/data.json").then(r => r.json()).then(x => x.n)', '7'],
    absolute: [`fetch("${A}/data.json").then(r => r.json()).then(x => x.n)`, '7'],
    other: [`fetch("${B}/data.json").then(r => r.json()).then(x => x.n)`, '8'],
    preflight: [`fetch("${B}/data.json", {headers: {"X-Mine": "1"}, credentials: "include"}).then(r => r.status)`, '200'],
    missing: ['fetch("/none").then(r => r.status)', '404'],
    post: ['fetch("/data.json", {method: "POST", body: "x"}).then(r => r.status)', '404'],
    xhr: [`new Promise(yes => { const x = new XMLHttpRequest(); x.open("GET", "//cdn.example/data.json"); x.onload = () => yes(x.responseText); x.send(); })`, '{"n":8}'],
    module: ['import("./module.js").then(m => m.value)', '42'],
    worker: [event('new Worker("/worker.js")', 'message'), 'worker 7'],
    shared: ['new Promise(yes => { const w = new SharedWorker("/shared.js"); w.port.onmessage = e => yes(e.data); w.port.start(); })', 'shared'],
    font: ['document.fonts.load("16px Mine").then(f => f.length)', '1'],
    storage: ['(localStorage.x = "y", sessionStorage.x = "z", localStorage.x + sessionStorage.x)', 'yz'],
    database: [event('indexedDB.open("d")', 'success'), 'success'],
    cookie: ['(document.cookie = "own=1; domain=a-site.example; secure", document.cookie.split("; ").sort().join())', 'own=1,seen=2'],
    sent: ['fetch("/echo").then(() => navigator.cookieEnabled)', 'true'],
    domain: ['document.domain', 'www.a-site.example'],
    time: ['new Date().toISOString().slice(0, 16) + Date().slice(11, 15) + (Date.now() - performance.timeOrigin < 1e6)', '2026-01-02T03:042026true'],
    dates: ['new Date(0).getTime() + (new Date() instanceof Date) + new Date(2020, 1).getFullYear()', '2021'],
    push: ['(history.pushState(1, "", "/pushed"), history.replaceState(1, "", "' + A + '/dir/page?q=1"), location.pathname)', '/dir/page'],
    image: [event(`Object.assign(new Image(), {src: "${A}/i.svg"})`, 'load'), 'load'],
    inserted: [`new Promise(yes => { const d = document.createElement("div"); document.body.append(d); d.innerHTML = '<img src="${B}/i.svg">'; d.firstChild.onload = () => yes("load"); })`, 'load'],
    set: [`new Promise(yes => { const i = document.createElement("img"); i.setAttribute("src", "//cdn.example/i.svg"); i.onload = () => yes("load"); })`, 'load'],
    style: [`(document.body.style.backgroundImage = 'url("${B}/i.svg")', await 0, document.body.style.backgroundImage.includes('cdn-example.localhost'))`, 'true'],
    canvas: [`new Promise(yes => { const i = new Image(); i.src = "/i.svg"; i.onload = () => { const c = document.createElement("canvas").getContext("2d"); c.drawImage(i, 0, 0); yes(c.getImageData(0, 0, 1, 1).data.length); }; })`, '4'],
    script: [`new Promise(yes => { const s = document.createElement("script"); s.src = "${B}/typeless"; s.onload = () => yes(window.typeless); document.head.append(s); })`, 'ran'],
    message: [`new Promise(yes => { onmessage = e => yes(e.origin); postMessage(1, "${A}"); })`, A],
    use: ['document.querySelector("use").getBBox().width > 0', 'true'],
    track: [`new Promise(yes => { const t = document.querySelector("track"); t.onload = () => yes(t.track.cues.length); t.track.mode = "showing"; })`, '1'],
    service: ['navigator.serviceWorker.register("/worker.js").catch(e => e.name)', 'NotSupportedError'],
    long: [`fetch("https://${'l'.repeat(50)}.example/data.json").then(r => r.text())`, 'long'],
  };
  const svg = '<svg xmlns="http://www.w3.org/2000/svg" width="9" height="9"><rect id="r" width="9" height="9"/></svg>';
  const {place} = await replayed(folder, later, [
    at(`${A}/dir/page?q=1`, testing(Object.fromEntries(Object.entries(tests).map(([name, [code]]) => [name, code])),
      `<style>@font-face{font-family:Mine;src:url(${B}/font.woff2)}</style><svg><use href="/i.svg#r"/></svg>` +
      '<video src="/none"><track src="/t.vtt"></video>'), undefined, {headers: ['Set-Cookie: seen=2; Domain=a-site.example',
      'Set-Cookie: hidden=3; HttpOnly; Path=/']}),
    at(`${A}/data.json`, '{"n":7}', 'application/json'), at(`${B}/data.json`, '{"n":8}', 'application/json'),
    at(`https://${'l'.repeat(50)}.example/data.json`, 'long', 'application/json'),
    at(`${A}/dir/module.js`, 'import {x} from "/x.js"; export const value = x + 1', 'text/javascript'),
    at(`${A}/x.js`, 'export const x = 41', 'text/javascript'),
    at(`${A}/worker.js`, 'fetch("/data.json").then(r => r.json()).then(x => postMessage("worker " + x.n))', 'text/javascript'),
    at(`${A}/shared.js`, 'onconnect = e => e.ports[0].postMessage("shared")', 'text/javascript'),
    at(`${A}/i.svg`, svg, 'image/svg+xml'), at(`${B}/i.svg`, svg, 'image/svg+xml'), at(`${A}/echo`, '', 'text/plain'),
    at(`${B}/typeless`, 'window.typeless = "ran"', 'text/plain'), at(`${B}/font.woff2`, FONT(), 'font/woff2'),
    at(`${A}/t.vtt`, 'WEBVTT\n\n00:00.000 --> 00:09.000\nwords\n', 'text/vtt')]);
  await page.goto(place(`${A}/dir/page?q=1`));
  compare(await resultsOf(page), Object.fromEntries(Object.entries(tests).map(([name, [, want]]) => [name, want])));
});

test('the bar follows the page, and pages follow their links', async ({page, context, folder, later}) => {
  const link = (id, url, rest = '') => `<a id=${id} href="${url}" ${rest}>${id}</a> `;
  const {origin, base, place} = await replayed(folder, later, [
    at(`${A}/`, `<title>Front</title>${link('next', '/next')}${link('other', `${B}/page`)}${link('gone', '/gone')}` +
      `${link('outside', 'https://nowhere.example/x')}${link('blank', '/next', 'target=_blank')}${link('top', '/next', 'target=_top')}` +
      `${link('moved', 'http://www.a-site.example/next')}${link('text', '/text')}<button id=go onclick="location='${B}/page'">go</button>` +
      `<button id=push onclick="history.pushState(0,'','/pushed');document.title='Pushed'">push</button>` +
      `<form id=get action="${A}/found"><input name=q value="a b"><button id=send>send</button></form>` +
      `<form method=post action="/found"><button id=post>post</button></form>`),
    at(`${A}/next`, `<title>Next</title><base href="${B}/dir/">${link('based', 'page2')}`),
    at('http://www.a-site.example/next', '', undefined, {status: '301 Moved', headers: [`Location: ${A}/next`]}),
    at(`${B}/page`, '<title>Other</title>other'), at(`${B}/dir/page2`, '<title>Based</title>based'),
    at(`${A}/text`, 'plain words', 'text/plain'), at(`${A}/found?q=a+b`, '<title>Found</title>found'),
    at(`${A}/refresh`, `<meta http-equiv=refresh content="0; url=${B}/page">`),
    at(`${A}/frames`, '<frameset cols="50%,50%"><frame name=menu src=/menu><frame name=main src=/next></frameset>'),
    at(`${A}/menu`, link('inmain', '/text', 'target=main') + link('intop', '/', 'target=_top'))]);
  const frame = page.frameLocator('#page'), bar = page.locator('#stage-url');
  const isAt = async (url, title) => {
    await page.waitForURL(place(url));
    await until(`the bar at ${url}`, async () => await bar.textContent() === url);
    if (title) await until(`the title ${title}`, async () => await page.title() === title);
  };
  const from = async (id, url, title) => {
    await page.goto(place(`${A}/`));
    await frame.locator(`#${id}`).click();
    await isAt(url, title);
  };
  await from('other', `${B}/page`, 'Other');
  await from('go', `${B}/page`, 'Other');
  await from('top', `${A}/next`, 'Next');
  await from('moved', `${A}/next`, 'Next');
  await from('text', `${A}/text`);
  await from('push', `${A}/pushed`, 'Pushed');
  await from('send', `${A}/found?q=a+b`, 'Found');
  await from('post', `${A}/found`);
  await frame.getByText('What forms sent').waitFor();
  for (const [id, url] of [['gone', `${A}/gone`], ['outside', 'https://nowhere.example/x']]) {
    await from(id, url);
    await frame.getByText('Not in the archive').first().waitFor();
    expect(await page.locator('#stage-live').getAttribute('href') === url, 'the link to the live web is another one');
    await page.locator('.stage-bar').getByText('not stored').waitFor();
    expect(await page.locator('.stage-near').count() === 0, 'the bar shows the captures of the page before');
    await page.goBack();
    await isAt(`${A}/`, 'Front');
    await page.locator('.stage-near').getByText('1 of 1').waitFor();
  }
  await from('next', `${A}/next`, 'Next');
  await frame.locator('#based').click();
  await isAt(`${B}/dir/page2`, 'Based');
  await page.goBack();
  await isAt(`${A}/next`, 'Next');
  await page.goBack();
  await isAt(`${A}/`, 'Front');
  await page.goForward();
  await isAt(`${A}/next`, 'Next');
  await page.reload();
  await isAt(`${A}/next`, 'Next');
  await page.goto(place(`${A}/refresh`));
  await isAt(`${B}/page`, 'Other');
  await page.goto(place(`${A}/`));
  const [tab] = await Promise.all([context.waitForEvent('page'), frame.locator('#blank').click()]);
  await tab.locator('.stage-bar').waitFor();
  expect(tab.url() === place(`${A}/next`), `the new tab is at ${tab.url()}`);
  await tab.close();
  await page.goto(place(`${A}/frames`));
  await frame.frameLocator('[name=menu]').locator('#inmain').click();
  await frame.frameLocator('[name=main]').getByText('plain words').waitFor();
  await frame.frameLocator('[name=menu]').locator('#intop').click();
  await isAt(`${A}/`, 'Front');
  // An origin that is opened by itself leads to the stage.
  await page.goto(`http://${TIME}-https-www-a--site-example.${base}/next`);
  await isAt(`${A}/next`, 'Next');
  expect(page.url().startsWith(`${origin}/`), page.url());
});

test('pages of other encodings, bases, types and drawings', async ({page, folder, later}) => {
  const link = bytes => Buffer.concat([Buffer.from('<title>x</title><a id=a href="/q?w='), bytes, Buffer.from('">x</a>')]);
  const encodings = {shift_jis: ['\u65e5\u672c\u30bd', '93fa967b835c'], gbk: ['\u4e2d\u6587', 'd6d0cec4'], 'windows-1251': ['\u041f\u0440', 'cff0']};
  const records = Object.entries(encodings).flatMap(([name, [words, hex]]) => {
    const bytes = Buffer.from(hex, 'hex');
    const coded = hex.replace(/../g, b => parseInt(b, 16) < 128 ? String.fromCharCode(parseInt(b, 16)) : `%${b.toUpperCase()}`);
    return [at(`https://${name.replace('_', '')}.example/`, link(bytes), `text/html; charset=${name}`),
      at(`https://utf8.example/${name}`, link(bytes), `text/html; charset=${name}`),
      at(`https://${name.replace('_', '')}.example/q?w=${coded}`, `<title>found ${name}</title>`),
      at(`https://utf8.example/q?w=${encodeURIComponent(words)}`, `<title>found ${name}</title>`)];
  });
  const style = '<xsl:stylesheet version="1.0" xmlns:xsl="http://www.w3.org/1999/XSL/Transform"><xsl:template match="/">' +
    '<html><body><p id="made">by a style sheet</p></body></html></xsl:template></xsl:stylesheet>';
  const {place} = await replayed(folder, later, [...records,
    at(`${A}/base`, `<link rel=stylesheet href=before.css><base href="${B}/deep/"><link rel=stylesheet href=after.css><p id=p>x</p>`),
    at(`${A}/before.css`, 'p{color:rgb(1,2,3)}', 'text/css'), at(`${B}/deep/after.css`, 'p{background:rgb(4,5,6)}', 'text/css'),
    at(`${A}/xhtml`, '<html xmlns="http://www.w3.org/1999/xhtml"><head><title>x</title></head><body><p id="p">x</p><script>' +
      'document.getElementById("p").textContent = document.domain</script></body></html>', 'application/xhtml+xml'),
    at(`${A}/xml`, '<?xml version="1.0"?><?xml-stylesheet type="text/xsl" href="/style.xsl"?><doc/>', 'text/xml'),
    at(`${A}/style.xsl`, style, 'text/xsl'),
    at(`${A}/srcdoc`, `<title>x</title><iframe srcdoc="<p id=p>x</p><script>p.textContent = 'ran'</script>"></iframe>`),
    at(`${A}/data`, `<title>x</title><iframe src="data:text/html,<p id=p>data</p>"></iframe>`),
    at(`${A}/svg`, '<svg xmlns="http://www.w3.org/2000/svg"><text id="t" y="20">x</text><script>document.getElementById("t").textContent = location.pathname</script></svg>', 'image/svg+xml')]);
  const frame = page.frameLocator('#page');
  for (const name of Object.keys(encodings))
    for (const url of [`https://${name.replace('_', '')}.example/`, `https://utf8.example/${name}`]) {
      await page.goto(place(url));
      await frame.locator('#a').click();
      await until(`the link of ${url}`, async () => await page.title() === `found ${name}`);
    }
  await page.goto(place(`${A}/base`));
  await until('both style sheets', async () => await frame.locator('#p').evaluate(p => getComputedStyle(p).color + getComputedStyle(p).backgroundColor) ===
    'rgb(1, 2, 3)rgb(4, 5, 6)');
  for (const [path, where, text] of [['xhtml', frame.locator('#p'), 'www.a-site.example'], ['xml', frame.locator('#made'), 'by a style sheet'],
    ['srcdoc', frame.frameLocator('iframe').locator('#p'), 'ran'], ['data', frame.frameLocator('iframe').locator('#p'), 'data'],
    ['svg', frame.locator('#t'), '/svg']]) {
    await page.goto(place(`${A}/${path}`));
    await until(`${path}: ${text}`, async () => await where.textContent() === text);
  }
});

test('two sites share nothing, and none of them sees our own pages', async ({page, folder, later}) => {
  const cookie = ['localhost', 'b-site.example', ''].map((d, i) => `w.document.cookie = 'c${i}=1; Secure; SameSite=None; path=/${d && `; domain=${d}`}'`);
  const write = `(${cookie.join()}, document.cookie = 'own=1', localStorage.s = 1, sessionStorage.s = 1, w.name = 'n', await caches.open('k'), new Promise(yes => {
    const r = indexedDB.open('d'); r.onsuccess = () => yes('written'); }))`;
  const read = `[document.cookie, localStorage.s, sessionStorage.s, (await caches.keys()).length, (await indexedDB.databases()).length].join()`;
  const hear = `new Promise(yes => { new BroadcastChannel('b').onmessage = () => yes('heard'); setTimeout(() => yes('nothing'), 700) })`;
  const say = `(setInterval(() => new BroadcastChannel('b').postMessage(1), 50), 'said')`;
  const reach = `(await Promise.all(['/api/stat', '/api/token', '/', '/dash'].flatMap(path => ['cors', 'no-cors'].map(mode =>
    w.fetch([...location.ancestorOrigins].pop() + path, {mode}).then(() => 'yes', () => 'no'))))).join('')`;
  const w = `<iframe hidden id=w></iframe><script>const w = document.getElementById('w').contentWindow;</script>`;
  const apart = code => `(() => { try { return ${code} } catch { return 'apart' } })()`;
  const {origin, place} = await replayed(folder, later, [
    at(`${A}/write`, testing({write, say}, `${w}<iframe src="${B}/read"></iframe>`)), at(`${A}/again`, testing({read}, w)),
    at(`${B}/read`, testing({read, hear, reach, parent: apart('parent.document.title'), top: apart('top.document.title')}, w))]);
  await page.goto(place(`${A}/write`));
  compare(await resultsOf(page), {write: 'written', say: 'said'});
  const inner = page.frameLocator('#page').frameLocator('iframe:not(#w)').locator('#done:not(:empty)');
  await inner.waitFor({state: 'attached'});
  compare(JSON.parse(await inner.textContent()), {read: ',,,0,0', hear: 'nothing', parent: 'apart', top: 'apart', reach: 'no'.repeat(8)});
  await page.goto(place(`${B}/read`));
  compare(await resultsOf(page), {read: ',,,0,0', parent: 'apart'});
  await page.goto(place(`${A}/again`));
  compare(await resultsOf(page), {read: 'own=1,1,1,1,1'});
  await page.goto(`${origin}/web/20260203040506/${A}/again`); // the same capture, found from another time, has its own address
  compare(await resultsOf(page), {read: 'own=1,1,1,1,1'});
});

await run();
