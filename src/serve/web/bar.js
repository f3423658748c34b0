// The bar over a stored page follows the page in the frame: stage.js tells where that is ("webbase-at"), and the server
// makes the bar for it. It is HTML of the server itself, in which everything from pages is escaped.
//
// Once the page is there, a number beside "files" says how many of its files were captured at another time, or never.
// It lies over the bar, so that nothing moves. Without this script, the link leads to the same facts.
'use strict';
(() => {
  const bar = document.querySelector('.stage-bar');
  let asked = 0;
  let shown = location.pathname + location.search;

  const UNITS = [[31556952, 'years'], [86400, 'days'], [3600, 'hours'], [60, 'minutes'], [1, 'seconds']];

  // The words of distance.c, for distances of two seconds and more.
  function distance(seconds) {
    const [size, unit] = UNITS.find(([size]) => Math.abs(seconds) >= 2 * size) || UNITS[4];
    return `${Math.floor(Math.abs(seconds) / size)} ${unit}`;
  }

  function filesInWords({apart, far, missing, files}) {
    const farthest = files.reduce((most, file) => Math.abs(file.seconds) > Math.abs(most) ? file.seconds : most, 0);
    const said = [];
    if (far) said.push(`${far} captured more than ${distance(apart)} apart from the page, ` +
      `up to ${distance(farthest)} ${farthest < 0 ? 'earlier' : 'later'}`);
    if (missing) said.push(`${missing} never captured`);
    return `files: ${said.join('; ')}`;
  }

  async function markFiles() {
    const link = bar.querySelector('#stage-files');
    if (!link || link.querySelector('b')) return;
    const reply = await fetch(link.href.replace('/files?', '/api/embedded?')).catch(() => null);
    const answer = reply && reply.ok && await reply.json().catch(() => null);
    const count = answer ? answer.far + answer.missing : 0;
    if (!count || !link.isConnected || link.querySelector('b')) return;
    const mark = document.createElement('b');
    mark.textContent = count > 99 ? '99+' : count;
    link.append(' ', mark);
    link.title = filesInWords(answer);
    link.setAttribute('aria-label', link.title);
  }

  const showTimes = () => bar.querySelectorAll('time[datetime]').forEach(wbTimes.show);

  document.addEventListener('webbase-at', async ({detail: {url, time}}) => {
    const place = `/web/${time}/${url}`, number = ++asked;
    showTimes();
    if (place === shown) return;
    const reply = await fetch(`/bar?url=${encodeURIComponent(url)}&time=${time}`).catch(() => null);
    if (number !== asked || !reply || !reply.ok) return; // stage.js has changed what it knows
    const made = new DOMParser().parseFromString(await reply.text(), 'text/html');
    if (number !== asked) return;
    shown = place;
    bar.replaceChildren(...made.body.childNodes);
    showTimes();
    if (loaded) markFiles();
  });

  // The page itself comes first: its files are counted when it has loaded.
  let loaded = false;
  const whenLoaded = () => {
    loaded = true;
    markFiles();
  };
  if (document.readyState === 'complete') whenLoaded();
  else addEventListener('load', whenLoaded);
})();
