// /compare: the two frames scroll together, and "next change" needs no new page. Nothing in the frames runs scripts.
// They hold pages of strangers, whose elements can have any name or id, so only properties of the window are used, and
// functions of Document.prototype: an element cannot be in their place.
'use strict';
(() => {
  const tools = document.getElementById('changes');
  const frames = [...document.querySelectorAll('.side iframe')];
  const count = Number(tools.dataset.count);
  let change = Number(tools.dataset.change);
  let leader = null; // the frame that the reader scrolls, for as long as it moves
  let rest = 0;

  const call = (document_, name, ...values) => Document.prototype[name].call(document_, ...values);
  const rootOf = document_ =>
    Object.getOwnPropertyDescriptor(Document.prototype, 'documentElement').get.call(document_);

  // The stored page, if the reader has not followed a link in the frame.
  function documentOf(frame) {
    try {
      return frame.contentDocument && frame.contentWindow.location.pathname === '/compare/frame' ?
        frame.contentDocument : null;
    } catch {
      return null; // a page of the archive is of no origin
    }
  }

  function placeOf(frame, number) {
    const document_ = documentOf(frame);
    const mark = document_ && call(document_, 'getElementById', `webbase-change-${number}`);
    return mark ? mark.getBoundingClientRect().top + frame.contentWindow.scrollY : null;
  }

  // Places that belong together: the top, each change that has a mark in both, and the bottom.
  function anchors() {
    const bottoms = frames.map(frame => rootOf(frame.contentDocument).scrollHeight - frame.contentWindow.innerHeight);
    const found = [[0, 0]];
    const third = frames[0].contentWindow.innerHeight / 3;
    for (let number = 1; number <= Math.min(count, 500); number++) {
      const places = frames.map(frame => placeOf(frame, number));
      if (places.includes(null)) continue;
      const pair = places.map((place, i) => Math.min(Math.max(place - third, 0), Math.max(bottoms[i], 0)));
      if (pair.every((place, i) => place >= found.at(-1)[i])) found.push(pair);
    }
    found.push(bottoms.map((bottom, i) => Math.max(bottom, found.at(-1)[i])));
    return found;
  }

  function follow(from) {
    const to = 1 - from;
    if (frames.some(frame => !documentOf(frame))) return;
    const y = frames[from].contentWindow.scrollY, all = anchors();
    const at = all.findIndex(pair => pair[from] >= y);
    const [low, high] = at <= 0 ? [all.at(at), all.at(at)] : [all[at - 1], all[at]];
    const part = high[from] > low[from] ? (y - low[from]) / (high[from] - low[from]) : 0;
    frames[to].contentWindow.scrollTo({top: low[to] + part * (high[to] - low[to]), behavior: 'instant'});
  }

  function lead(index) {
    leader = index;
    clearTimeout(rest);
    rest = setTimeout(() => leader = null, 150);
  }

  function listen(frame, index) {
    if (!documentOf(frame)) return;
    for (const hand of ['wheel', 'touchmove', 'pointerdown', 'keydown'])
      frame.contentWindow.addEventListener(hand, () => lead(index), {passive: true});
    frame.contentWindow.addEventListener('scroll', () => {
      if (leader !== null && leader !== index) return;
      lead(index);
      follow(index);
    }, {passive: true});
  }

  function go(number, event) {
    event.preventDefault();
    change = Math.min(Math.max(number, 1), count);
    lead(-1); // neither of them follows the other
    for (const frame of frames) {
      const place = documentOf(frame) ? placeOf(frame, change) : null;
      if (place === null) continue;
      frame.contentWindow.scrollTo({top: place - frame.contentWindow.innerHeight / 3, behavior: 'instant'});
    }
    document.getElementById('place').textContent = `Change ${change} of ${count}`;
  }

  frames.forEach((frame, index) => {
    frame.addEventListener('load', () => listen(frame, index));
    listen(frame, index);
  });
  for (const [id, by] of [['previous', -1], ['next', 1]]) {
    const old = document.getElementById(id);
    const button = document.createElement('button');
    button.type = 'button';
    button.id = id;
    button.textContent = old.textContent;
    button.disabled = count === 0;
    button.addEventListener('click', event => go(change + by, event));
    old.replaceWith(button);
  }
  if (change) document.getElementById('place').textContent = `Change ${change} of ${count}`;
})();
