#!/usr/bin/env node
// Three live sites, crawled with all that their pages need, look the same when they are replayed on origins of their own:
// the same text, fonts and scripts, and not one request to the live sites. bench/replay does this with real ones.
import {readFileSync} from 'node:fs';
import {createServer} from 'node:http';
import {join} from 'node:path';
import {MODULES, expect, run, started, test, until, webbase} from './browser.mjs';

const FONT = join(MODULES, '@fortawesome/fontawesome-free/webfonts/fa-regular-400.woff2');
const TYPES = {html: 'text/html; charset=utf-8', css: 'text/css', js: 'text/javascript', json: 'application/json',
  svg: 'image/svg+xml', woff2: 'font/woff2'};
const document_ = (title, head, body) => `<!DOCTYPE html><html lang="en"><head><meta charset="utf-8">
<title>${title}</title>${head}</head><body><h1>${title}</h1>${body}</body></html>`;

// The files of the sites: 'host path' -> content. Each host is a name below localhost, with the port of the server.
function files(port) {
  const at = host => `http://${host}.localhost:${port}`;
  return {
    // Navigation that only scripts make, from files that only scripts name, as Doxygen does it.
    'manual /': document_('Manual', '<link rel="stylesheet" href="style/all.css"><script src="tree.js"></script>',
      '<nav id="tree"></nav><p class="icon">text in a font of the site</p><img src="logo.svg" alt="">'),
    'manual /deep/er/page.html': document_('Deep', '<link rel="stylesheet" href="../../style/all.css">' +
      '<script>var root = "../../";</script><script src="../../tree.js"></script>', '<nav id="tree"></nav>'),
    'manual /style/all.css': '@import "more/fonts.css"; body { color: #123456; }',
    'manual /style/more/fonts.css': '@font-face { font-family: Icons; src: url(../icons.woff2); } .icon { font-family: Icons; }',
    'manual /style/icons.woff2': readFileSync(FONT),
    'manual /logo.svg': '<svg xmlns="http://www.w3.org/2000/svg" width="30" height="20"><rect width="30" height="20"/></svg>',
    'manual /tree.js': `addEventListener('DOMContentLoaded', () => {
      const script = document.createElement('script');
      script.src = (window.root || '') + 'tree' + 'data' + 0 + '.js';
      script.onload = () => { document.getElementById('tree').innerHTML =
        '<ul>' + tree.map(([name, to]) => '<li><a href="' + to + '">' + name + '</a>').join('') + '</ul>'; };
      document.head.append(script); });`,
    'manual /treedata0.js': 'var tree = [["First chapter", "index.html"], ["Second chapter", "deep/er/page.html"]];',
    // Modules, fetch and XMLHttpRequest, a worker, storage, and a script and data of another site.
    'app /': document_('Application', `<script src="${at('cdn')}/lib.js"></script><script type="module" src="main.js">
      </script>`, '<ul id="out"></ul><iframe src="part.html" title="part" width="300" height="80"></iframe>'),
    'app /main.js': `import {name} from './lib/name.js';
      const say = text => { const li = document.createElement('li'); li.textContent = text;
        document.getElementById('out').append(li); };
      say(name); say(window.fromOtherSite);
      say((await (await fetch('data.json?page=1')).json()).said);
      say((await (await fetch('${at('cdn')}/open.json')).json()).said);
      say(await new Promise(done => { const x = new XMLHttpRequest(); x.open('GET', '/data.json?page=1'); x.responseType = 'json';
        x.onload = () => done('again: ' + x.response.said); x.send(); }));
      localStorage.visits = Number(localStorage.visits || 0) + 1; say('visit ' + localStorage.visits);
      document.cookie = 'taste=sweet'; say(document.cookie);
      say(location.pathname);
      say(await new Promise(done => { new Worker('worker.js').onmessage = event => done(event.data); }));
      say((await import('./lib/late.js')).late);
      say('the end');`,
    'app /lib/name.js': 'export {name} from "./deeper.js";',
    'app /lib/deeper.js': 'export const name = "a module of a module";',
    'app /lib/late.js': 'export const late = "a module that came late";',
    'app /worker.js': 'importScripts("sum.js"); postMessage("a worker says " + sum(40, 2));',
    'app /sum.js': 'const sum = (a, b) => a + b;',
    'app /data.json': '{"said": "fetched"}',
    'app /part.html': document_('Part', '', '<script>document.write("<p>written by a script</p>");</script>'),
    'cdn /lib.js': 'window.fromOtherSite = "a script of another site";',
    'cdn /open.json': '{"said": "fetched from another site"}',
  };
}

// Serves all of them, and writes down what is asked for.
async function live(later) {
  const requests = [];
  let all = {};
  const server = createServer((request, response) => {
    const {hostname, pathname} = new URL(request.url, `http://${request.headers.host}`);
    const path = `${hostname.split('.')[0]} ${pathname}`;
    requests.push(path);
    if (!(path in all)) return response.writeHead(404).end();
    response.writeHead(200, {'Content-Type': TYPES[path.split('.')[1] || 'html'], 'Access-Control-Allow-Origin': '*'});
    response.end(all[path]);
  });
  await new Promise(done => server.listen(0, '127.0.0.1', done));
  later(() => new Promise(done => {
    server.closeAllConnections();
    server.close(done);
  }));
  all = files(server.address().port);
  const at = host => `http://${host}.localhost:${server.address().port}`;
  const urls = Object.keys(all).map(path => path.split(' ')).map(([host, path]) => at(host) + path);
  return {requests, at, urls};
}

// What a document shows, when its text has that end.
async function shown(frameOf, end) {
  return until(`"${end}"`, async () => {
    const frame = frameOf();
    const now = await frame?.evaluate(async () => {
      await document.fonts.ready;
      return {text: document.body.innerText.replace(/\s+/g, ' ').trim(), color: getComputedStyle(document.body).color,
        fonts: [...document.fonts].filter(f => f.status === 'loaded').map(f => f.family),
        images: [...document.images].map(i => [i.naturalWidth, i.naturalHeight].join('x')),
        inner: [...document.querySelectorAll('iframe')].map(f => f.contentDocument?.body?.innerText.trim())};
    }).catch(() => null);
    return now?.text.includes(end) && now;
  });
}

async function archived(folder, later, sites) {
  const repo = join(folder, 'repo');
  await webbase(repo, 'crawl', ...sites.urls, `${sites.at('app')}/data.json?page=1`, '--max-depth', '0', '--delay', '0',
    '--allow-private', '--no-sitemaps', '--with', 'images,styles,scripts,media');
  return started(repo, later, 'serve', '--listen', '127.0.0.1:0', '--replay-listen', '127.0.0.1:0');
}

async function compare(page, sites, origin, path, end) {
  await page.goto(path);
  const wanted = await shown(() => page.mainFrame(), end);
  sites.requests.length = 0;
  await page.goto(`${origin}/web/2100/${path}`);
  const found = await shown(() => page.mainFrame().childFrames()[0], end);
  expect(JSON.stringify(found) === JSON.stringify(wanted),
    `${path}: live ${JSON.stringify(wanted)}, replayed ${JSON.stringify(found)}`);
  expect(sites.requests.length === 0, `${path} asked the live site for ${sites.requests}`);
  return found;
}

test('pages look as they did', async ({page, folder, later}) => {
  const sites = await live(later);
  const origin = await archived(folder, later, sites);
  const manual = await compare(page, sites, origin, `${sites.at('manual')}/`, 'Second chapter');
  expect(manual.fonts.includes('Icons') && manual.images[0] === '30x20', JSON.stringify(manual));
  await compare(page, sites, origin, `${sites.at('manual')}/deep/er/page.html`, 'Second chapter');
  const app = await compare(page, sites, origin, `${sites.at('app')}/`, 'the end');
  expect(app.inner[0].includes('written by a script') && app.text.includes('a worker says 42'), JSON.stringify(app));
});

await run();
