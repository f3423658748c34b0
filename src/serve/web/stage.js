// The page around a stored page: its bar, title and address follow the page in the frame. Without this script, all links
// of the bar work for the page that was asked for.
//
// What the frame says comes from a stranger: it is believed about its own site only, which its origin proves, and shown
// as text. Others learn where the page is by the event "webbase-at" of the document: {url, time, title}.
'use strict';
(() => {
  const frame = document.getElementById('page'), inside = new URL(frame.src);
  const base = /^(?:.*\.)?\d{14}-https?\d*-[a-z0-9_-]*\.(.+)$/.exec(inside.host)?.[1];
  if (!base) return; // a sandbox without scripts, whose links lead this page on

  // The time and the live origin of an origin of replay; null: it is another one.
  function siteOf(origin) {
    let url;
    try {
      url = new URL(origin);
    } catch {
      return null;
    }
    if (url.protocol !== inside.protocol || !url.host.endsWith(`.${base}`)) return null;
    const site = /^(?:(.+)\.)?(\d{14})-(https?)(\d*)-(.*)$/.exec(url.host.slice(0, -base.length - 1));
    const host = site && (site[1] || site[5].replace(/--?/g, s => s === '-' ? '.' : '-'));
    return site && {time: site[2], live: `${site[3]}://${host}${site[4] && ':'}${site[4]}`};
  }

  const $ = id => document.getElementById(id);
  function setLink(id, href) {
    if ($(id)) $(id).href = href;
  }

  function show({url, time, title}) {
    const [y, mo, d, h, mi, s] = /^(\d{4})(..)(..)(..)(..)(..)$/.exec(time).slice(1);
    const element = document.createElement('time');
    element.dateTime = `${y}-${mo}-${d}T${h}:${mi}:${s}.000Z`;
    element.textContent = `${y}-${mo}-${d} ${h}:${mi}:${s} UTC`;
    $('stage-time')?.replaceChildren(element);
    if ($('stage-url')) $('stage-url').textContent = $('stage-url').title = url;
    setLink('stage-newest', `/web/${url}`);
    setLink('stage-all', `/web/*/${url}`);
    setLink('stage-live', url);
    document.title = title || url;
    const place = `/web/${time}/${url}`;
    if (location.pathname + location.search + location.hash !== place) history.replaceState(null, '', place);
    document.dispatchEvent(new CustomEvent('webbase-at', {detail: {url, time, title}}));
  }

  // A URL of the web, as text, of this live origin if one is given.
  function webUrl(text, live) {
    try {
      const url = new URL(text);
      return /^https?:$/.test(url.protocol) && !url.username && (!live || url.origin === live) ? url.href : null;
    } catch {
      return null;
    }
  }

  let next = null; // where the page said that it goes, until what is there says so itself
  addEventListener('message', event => {
    const site = event.source === frame.contentWindow && siteOf(event.origin), said = Object(event.data);
    if (!site || said.webbase !== true) return;
    if (typeof said.at === 'string') {
      const url = webUrl(said.at, site.live);
      const time = /^\d{14}$/.test(said.time) ? said.time : site.time;
      next = null;
      if (url) show({url, time, title: String(said.title).slice(0, 300)});
    } else if (typeof said.to === 'string') {
      const url = webUrl(said.to);
      next = url && {url, time: site.time, title: ''};
    } else if (typeof said.open === 'string') {
      const url = webUrl(said.open);
      if (url) open(`/web/${site.time}/${url}`, '_blank', 'noopener');
    }
  });
  // A text or a picture says nothing.
  frame.addEventListener('load', () => {
    if (next) show(next);
    next = null;
  });
})();
