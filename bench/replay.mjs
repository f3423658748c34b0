#!/usr/bin/env node
// The browser part of bench/replay. Its first call opens live pages, notes what they show, and prints a line of JSON for
// each with the files that it loaded. The next one opens the same pages replayed, and prints a line for each page and
// system that says how it differs from the live page.
//
//   node replay.mjs live CONFIG.json        {pages, folder, live}: see measure() in bench/replay
//   node replay.mjs replayed CONFIG.json    {pages, folder, systems, keep}
//
// Each system has a browser of its own. Whatever it asks for beyond the servers that it is there for goes to a proxy of
// ours, which answers nothing and writes it down.
import {readFileSync, writeFileSync} from 'node:fs';
import {createServer} from 'node:http';
import {createRequire} from 'node:module';
import {join} from 'node:path';
import {inflateSync} from 'node:zlib';
import {MODULES, serveFiles} from '../tests/browser/browser.mjs';

const {chromium} = createRequire(join(MODULES, 'x'))('playwright-core');
const CHROMIUM = process.env.CHROMIUM || '/usr/bin/chromium';
const [WIDTH, HEIGHT] = [1200, 900];
const STILL_MS = 1500;     // a page is ready if nothing has happened for so long: scripts wait before they load more
const PATIENCE_MS = 60000; // ... or after this time
const CHANNEL_MAX = 8;     // pixels that differ by more than this in red, green or blue are different

// ---- pictures -----------------------------------------------------------------------------

// Which of three neighbours is nearest to what they predict (the PNG standard, 9.4).
function paeth(left, above, corner) {
  const guess = left + above - corner;
  const [l, a, c] = [Math.abs(guess - left), Math.abs(guess - above), Math.abs(guess - corner)];
  if (l <= a && l <= c) return left;
  return a <= c ? above : corner;
}

// The pixels of a PNG as Chromium writes it: 8 bits per channel, not interlaced.
function pixels(png) {
  const [width, height, channels] = [png.readUInt32BE(16), png.readUInt32BE(20), png[25] === 6 ? 4 : 3];
  const parts = [];
  for (let at = 8; at < png.length; at += 12 + png.readUInt32BE(at))
    if (png.toString('latin1', at + 4, at + 8) === 'IDAT') parts.push(png.subarray(at + 8, at + 8 + png.readUInt32BE(at)));
  const raw = inflateSync(Buffer.concat(parts));
  const stride = width * channels;
  const out = Buffer.alloc(stride * height);
  for (let y = 0; y < height; y++) {
    const filter = raw[y * (stride + 1)];
    for (let x = 0; x < stride; x++) {
      const left = x >= channels ? out[y * stride + x - channels] : 0;
      const above = y > 0 ? out[(y - 1) * stride + x] : 0;
      const corner = x >= channels && y > 0 ? out[(y - 1) * stride + x - channels] : 0;
      let guess = 0;
      if (filter === 1) guess = left;
      else if (filter === 2) guess = above;
      else if (filter === 3) guess = (left + above) >> 1;
      else if (filter === 4) guess = paeth(left, above, corner);
      out[y * stride + x] = raw[y * (stride + 1) + 1 + x] + guess;
    }
  }
  return {width, height, channels, bytes: out};
}

// Which share of the pixels differs; of pictures with different sizes, what only one of them has differs.
function difference(one, other) {
  if (one.equals(other)) return 0;
  const [a, b] = [pixels(one), pixels(other)];
  const [width, height] = [Math.max(a.width, b.width), Math.max(a.height, b.height)];
  let different = width * height - Math.min(a.width, b.width) * Math.min(a.height, b.height);
  for (let y = 0; y < Math.min(a.height, b.height); y++) {
    for (let x = 0; x < Math.min(a.width, b.width); x++) {
      const [i, j] = [(y * a.width + x) * a.channels, (y * b.width + x) * b.channels];
      different += Math.abs(a.bytes[i] - b.bytes[j]) > CHANNEL_MAX ||
        Math.abs(a.bytes[i + 1] - b.bytes[j + 1]) > CHANNEL_MAX || Math.abs(a.bytes[i + 2] - b.bytes[j + 2]) > CHANNEL_MAX;
    }
  }
  return different / (width * height);
}

// ---- browsers -----------------------------------------------------------------------------

// What Chromium itself asks for, whatever page it shows.
const BROWSERS_OWN = ['accounts.google.com', 'android.clients.google.com', 'clients2.google.com',
  'content-autofill.googleapis.com', 'optimizationguide-pa.googleapis.com', 'update.googleapis.com', 'www.google.com'];

// A proxy that answers nothing. Returns its address and the list of what it was asked for.
async function recorder(later) {
  const asked = [];
  const note = ({method, url}) => {
    const host = /^(?:\w+:\/\/)?([^/:]+)/.exec(url)?.[1];
    if (!BROWSERS_OWN.includes(host)) asked.push(`${method} ${url}`);
  };
  const server = createServer((request, response) => {
    note(request);
    response.writeHead(502).end();
  });
  const refuse = (request, socket) => {
    note(request);
    socket.end('HTTP/1.1 502 Bad Gateway\r\n\r\n');
  };
  server.on('connect', refuse);
  server.on('upgrade', refuse);
  await new Promise(done => server.listen(0, '127.0.0.1', done));
  later(() => new Promise(done => {
    server.closeAllConnections();
    server.close(done);
  }));
  return {port: server.address().port, asked};
}

// A browser that reaches nothing but the hosts; * is allowed in them. Whatever else it wants goes to the proxy.
async function browser(hosts, rules, later) {
  const proxy = await recorder(later);
  // The last list of features counts. Playwright's would take away the storage that frames of other sites have for
  // themselves, as in every browser of today (tests/browser/browser.mjs).
  const args = ['--no-sandbox', '--disable-gpu', '--disable-dev-shm-usage', '--hide-scrollbars', '--disable-webrtc',
    '--disable-features=HttpsUpgrades,MediaRouter,NetworkTimeServiceQuerying,OptimizationHints,PreconnectToSearch,Translate',
    `--proxy-server=http://127.0.0.1:${proxy.port}`, `--proxy-bypass-list=${['<-loopback>', ...hosts].join(';')}`,
    ...(rules ? [`--host-resolver-rules=${rules}`] : [])];
  const program = await chromium.launch({executablePath: CHROMIUM, args, handleSIGTERM: false, handleSIGINT: false});
  later(() => program.close());
  return {program, asked: proxy.asked};
}

// ---- one page -----------------------------------------------------------------------------

// What the page shows, asked from inside it.
const inside = () => ({
  text: (document.body?.innerText || '').replace(/\s+/g, ' ').trim(),
  fonts: [...document.fonts].filter(f => f.status === 'loaded').map(f => `${f.family} ${f.weight} ${f.style}`),
  busy: document.readyState !== 'complete' || document.fonts.status === 'loading',
  height: document.documentElement?.scrollHeight || 0,
});

const path = url => {
  const parsed = new URL(url);
  return parsed.pathname + parsed.search;
};

// The frame that shows the archived page: the one in which its address ends like the live one.
async function findFrame(page, system, url) {
  if (system.name === 'live') return page.mainFrame();
  const found = page.frames().filter(f => f !== page.mainFrame() && f.url().split('#')[0].endsWith(path(url)));
  return found.find(f => f.parentFrame() === page.mainFrame()) || found[0];
}

// Waits until nothing happens any more, and returns the frame and what it shows.
async function settled(page, system, url, network) {
  const end = Date.now() + PATIENCE_MS;
  let [seen, since, last] = ['', Date.now(), null];
  while (Date.now() < end) {
    const frame = await findFrame(page, system, url);
    const now = frame && await frame.evaluate(inside).catch(() => null);
    const state = JSON.stringify([now, network.count]);
    if (!now || now.busy || network.open.size || state !== seen) [seen, since] = [state, Date.now()];
    else if (Date.now() - since >= STILL_MS) return {frame, now, still: true};
    if (now) last = {frame, now, still: false};
    await new Promise(done => setTimeout(done, 50));
  }
  return last || {frame: null, now: {text: '', fonts: []}, still: false};
}

// Makes the window so large that the archived page has the same size as the live one, and takes its picture.
async function picture(page, frame) {
  if (!frame || frame === page.mainFrame()) return page.screenshot({animations: 'disabled', caret: 'hide'});
  let box;
  for (let turn = 0; turn < 4; turn++) {
    box = await (await frame.frameElement()).boundingBox();
    const view = page.viewportSize();
    if (!box || (box.width === WIDTH && box.height === HEIGHT)) break;
    await page.setViewportSize({width: Math.ceil(view.width + WIDTH - box.width),
      height: Math.ceil(view.height + HEIGHT - box.height)});
    await new Promise(done => setTimeout(done, 100));
  }
  return page.screenshot({animations: 'disabled', caret: 'hide', clip: box});
}

// The script of a service worker: the browser never says that it has arrived.
const isWorkerScript = request => request.serviceWorker() !== null || /\/sw\.js\?/.test(request.url());

function watch(page) {
  const network = {open: new Set(), count: 0, loaded: [], failed: [], errors: []};
  page.on('request', r => {
    network.count++;
    if (!isWorkerScript(r)) network.open.add(r);
  });
  const over = async r => {
    network.open.delete(r);
    network.count++;
    const response = await r.response().catch(() => null);
    if (!response || response.status() >= 400) network.failed.push(`${response?.status() || 'no answer'} ${r.url()}`);
    else if (/^http/.test(r.url())) network.loaded.push({url: r.url(), type: r.resourceType()});
  };
  page.on('requestfinished', over);
  page.on('requestfailed', over);
  page.on('pageerror', error => network.errors.push(String(error).split('\n')[0]));
  page.on('console', message => message.type() === 'error' && !/Failed to load resource/.test(message.text()) &&
    network.errors.push(message.text().split('\n')[0]));
  return network;
}

async function visit(system, {url, time}) {
  const context = await system.browser.program.newContext({viewport: system.viewport || {width: WIDTH, height: HEIGHT},
    locale: 'en-US', timezoneId: 'UTC'});
  const page = await context.newPage();
  const network = watch(page);
  const before = system.browser.asked.length;
  const start = Date.now();
  try {
    await page.goto(system.address(url, time), {timeout: PATIENCE_MS, waitUntil: 'commit'}).catch(() => 0);
    const {frame, now, still} = await settled(page, system, url, network);
    const seconds = (Date.now() - start - (still ? STILL_MS : 0)) / 1000;
    const png = await picture(page, frame);
    system.viewport = page.viewportSize(); // the next page needs the same
    // The picture may have changed what is shown: a larger window.
    const shown = frame ? await frame.evaluate(inside).catch(() => now) : now;
    return {...shown, png, seconds, still, found: Boolean(frame), left: system.browser.asked.slice(before),
      loaded: network.loaded, failed: network.failed, errors: network.errors};
  } finally {
    await context.close();
  }
}

// ---- comparing ----------------------------------------------------------------------------

function missing(wanted, there) {
  const rest = [...there];
  return wanted.filter(w => !rest.some(r => r === w || r.endsWith(w)));
}

// Where two texts begin to differ.
function firstDifference(a, b) {
  let i = 0;
  while (i < a.length && a[i] === b[i]) i++;
  const part = text => JSON.stringify(text.slice(Math.max(0, i - 20), i + 40));
  return `live ${part(a)}, replayed ${part(b)}`;
}

const scriptsOf = shot => [...new Set(shot.loaded.filter(f => f.type === 'script').map(f => f.url))];

function compare(live, mine) {
  const fonts = missing(live.fonts, mine.fonts);
  const scripts = missing(scriptsOf(live).map(path), scriptsOf(mine));
  const errors = missing(mine.errors, live.errors);
  const share = difference(live.png, mine.png);
  const same = live.text === mine.text;
  const short = text => text.length > 110 ? `${text.slice(0, 110)}...` : text;
  const name = list => list.slice(0, 3).map(short).join(', ') + (list.length > 3 ? ` and ${list.length - 3} more` : '');
  const reasons = [!mine.found && 'the page is not shown', !same && `text: ${firstDifference(live.text, mine.text)}`,
    share > 0.001 && `${(100 * share).toFixed(2)} % of the pixels`, mine.left.length && `left: ${name(mine.left)}`,
    fonts.length && `fonts: ${name(fonts)}`, scripts.length && `scripts: ${name(scripts)}`,
    errors.length && `errors: ${name(errors)}`, !mine.still && 'never ready'];
  return {text_same: same, pixels: share, left: mine.left.length, fonts: live.fonts.length, fonts_failed: fonts.length,
    scripts: scriptsOf(live).length, scripts_failed: scripts.length, errors: errors.length, seconds: mine.seconds,
    reasons: reasons.filter(Boolean), failed: mine.failed, live_failed: live.failed};
}

const fileOf = (folder, number, system) => join(folder, `${String(number).padStart(3, '0')}-${system}`);

function save(folder, number, system, {png, ...shot}) {
  writeFileSync(`${fileOf(folder, number, system)}.png`, png);
  writeFileSync(`${fileOf(folder, number, system)}.json`, `${JSON.stringify(shot, null, 1)}\n`);
}

const saved = (folder, number, system) => ({...JSON.parse(readFileSync(`${fileOf(folder, number, system)}.json`)),
  png: readFileSync(`${fileOf(folder, number, system)}.png`)});

// ---- systems ------------------------------------------------------------------------------

// ReplayWeb.page as people put it into their own pages: the element, without its tool bar.
async function replayWebPage(system, folder, later) {
  const app = join(MODULES, 'replaywebpage');
  const index = join(folder, 'index.html');
  writeFileSync(index, `<!DOCTYPE html><meta charset="utf-8"><style>html,body{margin:0}replay-web-page{display:block;
    width:${WIDTH}px;height:${HEIGHT}px}</style><script src="/ui.js"></script><script>addEventListener('DOMContentLoaded',
    () => {const e = document.createElement('replay-web-page'), q = new URLSearchParams(location.search);
    for (const [k, v] of Object.entries({source: location.origin + '/out.wacz', url: q.get('url'), ts: q.get('ts'),
    embed: 'replayonly', replayBase: '/replay/'})) e.setAttribute(k, v); document.body.append(e);});</script><body>`);
  // Its frame is answered by its service worker, or by the server if that one is not there yet.
  const server = await serveFiles({'/': index, '/ui.js': join(app, 'ui.js'), '/replay/': join(app, 'index.html'),
    '/replay/ui.js': join(app, 'ui.js'), '/replay/sw.js': join(app, 'sw.js'), '/out.wacz': system.wacz}, later);
  system.hosts = [new URL(server.origin).host];
  system.address = (url, time) => `${server.origin}/?url=${encodeURIComponent(url)}&ts=${time}`;
}

async function prepare(system, folder, later) {
  if (system.wacz) await replayWebPage(system, folder, later);
  else {
    system.hosts = [new URL(system.origin).host, ...system.replayHosts];
    system.address = (url, time) => `${system.origin}/web/${time}/${url}`;
  }
  system.browser = await browser(system.hosts, '', later);
}

async function showLive({pages, folder, live}, later) {
  const system = {name: 'live', address: url => url};
  system.browser = await browser([`${live.hosts}:${live.port}`], `MAP ${live.hosts} 127.0.0.1`, later);
  for (const [number, page] of pages.entries()) {
    const shot = await visit(system, page);
    save(folder, number, 'live', shot);
    console.log(JSON.stringify({url: page.url, seconds: shot.seconds, loaded: shot.loaded, failed: shot.failed}));
  }
}

async function showReplayed({pages, folder, systems, keep}, later) {
  for (const system of systems) await prepare(system, folder, later);
  for (const [number, page] of pages.entries()) {
    const live = saved(folder, number, 'live');
    for (const system of systems) {
      const mine = await visit(system, page);
      const row = {site: page.site, url: page.url, system: system.name, live_seconds: live.seconds, ...compare(live, mine)};
      console.log(JSON.stringify(row));
      if (!keep || !row.reasons.length) continue;
      save(keep, number, 'live', live);
      save(keep, number, system.name, mine);
    }
  }
}

const closers = [];
async function close() {
  while (closers.length) await closers.pop()();
}
for (const signal of ['SIGTERM', 'SIGINT']) process.once(signal, () => close().finally(() => process.exit(1)));
const config = JSON.parse(readFileSync(process.argv[3]));
try {
  await {live: showLive, replayed: showReplayed}[process.argv[2]](config, closer => closers.push(closer));
} finally {
  await close();
}
