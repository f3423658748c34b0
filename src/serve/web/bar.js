// The bar over a stored page follows the page in the frame: stage.js tells where that is ("webbase-at"), and the server
// makes the bar for it. It is HTML of the server itself, in which everything from pages is escaped.
'use strict';
(() => {
  const bar = document.querySelector('.stage-bar');
  let asked = 0;
  let shown = location.pathname + location.search;

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
  });
})();
