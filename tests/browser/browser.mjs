// What the browser tests share: a runner that prints TAP, Chromium, the program, archives, and a small web server.
//
// A script registers its tests with test() and ends with run(). Each test gets a context of a new browser profile and
// a folder of its own, and later(f) makes f run when it ends. It fails by throwing; with SHOTS=FOLDER, a picture of
// the page is left there. All tests of a script are skipped if there is no browser, which happens
// only where scripts/deps could not install one.
import {execFile, spawn} from 'node:child_process';
import {randomUUID} from 'node:crypto';
import {createReadStream, existsSync, mkdtempSync, rmSync, statSync} from 'node:fs';
import {createServer} from 'node:http';
import {tmpdir} from 'node:os';
import {dirname, extname, join, resolve} from 'node:path';
import {fileURLToPath} from 'node:url';
import {promisify} from 'node:util';

const HERE = dirname(fileURLToPath(import.meta.url));
export const MODULES = join(HERE, 'node_modules');
export const WEBBASE = process.env.WEBBASE || resolve(HERE, '../../build/webbase');
const CHROMIUM = process.env.CHROMIUM || '/usr/bin/chromium';
// The longest time to wait for anything. It only ends tests that hang; no test depends on how fast something is.
export const PATIENCE = 1000 * Number(process.env.WEBBASE_PATIENCE || 120);
// Some waits of Playwright have no limit, so a whole test has one.
const TEST_MS = 5 * PATIENCE;

const tests = [];

export function test(title, run) {
  tests.push({title, run});
}

export function expect(condition, message) {
  if (!condition) throw new Error(message);
}

// Calls the function until it returns something true, and returns that.
export async function until(what, function_) {
  const end = Date.now() + PATIENCE;
  for (;;) {
    const value = await function_();
    if (value) return value;
    if (Date.now() > end) throw new Error(`waited in vain for ${what}`);
    await new Promise(done => setTimeout(done, 100));
  }
}

async function within(limit_ms, work) {
  let timer;
  const limit = new Promise((_, fail) => { timer = setTimeout(() => fail(new Error(`did not end within ${limit_ms} ms`)), limit_ms); });
  try {
    return await Promise.race([work, limit]);
  } finally {
    clearTimeout(timer);
  }
}

// ---- the runner ---------------------------------------------------------------------------

function whyNoBrowser() {
  if (!existsSync(CHROMIUM)) return `no browser: ${CHROMIUM} is missing; run scripts/deps browser`;
  if (!existsSync(join(MODULES, 'playwright-core')))
    return 'no browser: playwright-core is missing; run scripts/deps browser';
  return '';
}

async function runTest(browser, number, {title, run}) {
  const folder = mkdtempSync(join(tmpdir(), 'webbase-browser-'));
  const context = await browser.newContext({viewport: {width: 1280, height: 900}});
  const closers = [];
  const page = await context.newPage();
  const said = [];
  page.on('console', message => said.push(message.text()));
  page.on('pageerror', error => said.push(String(error)));
  page.setDefaultTimeout(PATIENCE);
  try {
    await within(TEST_MS, run({page, context, folder, later: closer => closers.push(closer)}));
    console.log(`ok ${number} - ${title}`);
    return true;
  } catch (error) {
    console.log(`not ok ${number} - ${title}`);
    for (const line of [...String(error.stack || error).split('\n'), 'the browser says:', ...said.slice(-20)])
      console.log(`# ${line}`);
    const shot = process.env.SHOTS && join(process.env.SHOTS, `failed-${number}.png`);
    if (shot) await page.screenshot({path: shot}).catch(() => 0);
    return false;
  } finally {
    await context.close();
    for (const closer of closers.reverse()) await closer();
    rmSync(folder, {recursive: true, force: true});
  }
}

export async function run() {
  const chosen = tests.filter(t => process.argv.length < 3 || process.argv.slice(2).includes(t.title));
  const missing = whyNoBrowser();
  let failed = 0;
  console.log(`1..${chosen.length}`);
  if (missing) {
    chosen.forEach((t, i) => console.log(`ok ${i + 1} - ${t.title} # SKIP ${missing}`));
    return;
  }
  const {chromium} = await import('playwright-core');
  // Only root needs --no-sandbox. The pages are ours.
  // The last list of features counts, so this takes the place of Playwright's, which disables the storage that frames of
  // other sites have for themselves (ThirdPartyStoragePartitioning) and that every browser of today has.
  const args = ['--no-sandbox', '--disable-gpu', '--disable-dev-shm-usage',
    '--disable-features=HttpsUpgrades,MediaRouter,NetworkTimeServiceQuerying,OptimizationHints,PreconnectToSearch,Translate'];
  const browser = await chromium.launch({executablePath: CHROMIUM, args});
  try {
    for (const [i, t] of chosen.entries()) failed += !await runTest(browser, i + 1, t);
  } finally {
    await browser.close();
  }
  process.exitCode = failed ? 1 : 0;
}

// ---- the program --------------------------------------------------------------------------

// Runs the program on a repository to its end and returns what it printed.
export async function webbase(repo, ...args) {
  const {stdout} = await promisify(execFile)(WEBBASE, ['-r', repo, ...args], {timeout: PATIENCE, maxBuffer: 1 << 28});
  return stdout;
}

// Starts the program; it runs until the test ends. Returns what its first line says that it listens on, without the
// last slash. repo: null for commands that need none.
export async function started(repo, later, ...args) {
  const child = spawn(WEBBASE, [...(repo ? ['-r', repo] : []), ...args], {stdio: ['ignore', 'pipe', 'inherit']});
  const ended = new Promise(done => child.on('exit', done));
  later(async () => {
    child.kill();
    await ended;
  });
  let said = '';
  child.stdout.on('data', bytes => said += bytes);
  const line = await until(`${args[0]} to listen`, () => {
    if (child.exitCode !== null) throw new Error(`${args[0]} has ended with ${child.exitCode}`);
    return said.includes('\n') && said;
  });
  const where = /https?:\/\/[^/\s]+/.exec(line);
  expect(where, `${args[0]} says "${line}" instead of where it listens`);
  return where[0];
}

// ---- archives -----------------------------------------------------------------------------

// The WARC record of a response. body: a string or a Buffer.
export function warcRecord({url, date, body, type = 'text/html; charset=utf-8', status = '200 OK', headers = []}) {
  const bytes = Buffer.from(body);
  const http = [`HTTP/1.1 ${status}`, `Content-Type: ${type}`, ...headers, `Content-Length: ${bytes.length}`, '', '']
    .join('\r\n');
  const block = Buffer.concat([Buffer.from(http), bytes]);
  const head = ['WARC/1.1', 'WARC-Type: response', `WARC-Target-URI: ${url}`, `WARC-Date: ${date}`,
    `WARC-Record-ID: <urn:uuid:${randomUUID()}>`, 'Content-Type: application/http; msgtype=response',
    `Content-Length: ${block.length}`, '', ''].join('\r\n');
  return Buffer.concat([Buffer.from(head), block, Buffer.from('\r\n\r\n')]);
}

// ---- a web server -------------------------------------------------------------------------

const TYPES = {'.html': 'text/html; charset=utf-8', '.js': 'text/javascript', '.wacz': 'application/wacz'};

function sendFile(request, response, path) {
  const size = statSync(path).size;
  const range = /^bytes=(\d*)-(\d*)$/.exec(request.headers.range || '');
  let [first, last, status] = [0, size - 1, 200];
  if (range) {
    status = 206;
    first = range[1] ? Number(range[1]) : Math.max(0, size - Number(range[2]));
    last = range[1] && range[2] ? Math.min(Number(range[2]), size - 1) : size - 1;
    response.setHeader('Content-Range', `bytes ${first}-${last}/${size}`);
  }
  response.writeHead(status, {'Content-Type': TYPES[extname(path)] || 'application/octet-stream',
    'Content-Length': last - first + 1, 'Accept-Ranges': 'bytes', 'Cache-Control': 'no-store'});
  if (request.method === 'HEAD' || last < first) response.end();
  else createReadStream(path, {start: first, end: last}).pipe(response);
}

// Serves files on a free port of this machine. files: path of the URL -> file. Returns the origin, and a list of
// requests that grows.
export async function serveFiles(files, later) {
  const requests = [];
  const server = createServer((request, response) => {
    const path = decodeURIComponent(new URL(request.url, 'http://localhost').pathname);
    requests.push({method: request.method, path, range: request.headers.range || ''});
    if (files[path]) return sendFile(request, response, files[path]);
    response.writeHead(404).end();
  });
  await new Promise(done => server.listen(0, '127.0.0.1', done));
  later(() => new Promise(done => {
    server.closeAllConnections();
    server.close(done);
  }));
  return {origin: `http://127.0.0.1:${server.address().port}`, requests};
}
