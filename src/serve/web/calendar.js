// The calendar of /calendar in the browser's zone: the same bars, months and list as page_calendar.c makes for UTC,
// from one answer of /api/calendar. Only the captures of a day are asked for when the day is chosen.
'use strict';
(() => {
  const root = document.getElementById('calendar');
  const url = root.dataset.url;
  const MONTHS = ['January', 'February', 'March', 'April', 'May', 'June', 'July', 'August', 'September', 'October',
    'November', 'December'];
  const WORDS = {new: 'new content', same: 'unchanged', redirect: 'redirect', error: 'error'};
  const number = value => value.toLocaleString('en');
  const many = (count, word) => `${number(count)} ${word}${count === 1 ? '' : 's'}`;
  let days, year, day;

  function make(name, attributes = {}, ...inside) {
    const element = document.createElement(name);
    for (const [key, value] of Object.entries(attributes)) if (value !== null) element.setAttribute(key, value);
    element.append(...inside);
    return element;
  }

  // ---- counting

  // Days of this zone, as "2026-03-05", in order. A span is short enough to be within one day of any zone.
  function count(answer) {
    const found = new Map();
    for (const [start, captures, fresh, redirects, errors] of answer.spans) {
      const name = wbTimes.dayOf(new Date(start * answer.unit * 1000));
      const one = found.get(name) || {name, count: 0, new: 0, same: 0, redirect: 0, error: 0};
      one.count += captures;
      one.new += fresh;
      one.redirect += redirects;
      one.error += errors;
      one.same += captures - fresh - redirects - errors;
      found.set(name, one);
    }
    return found;
  }

  function countBars() {
    const all = [...days.values()], first = Number(all[0].name.slice(0, 4)), last = Number(all.at(-1).name.slice(0, 4));
    const months = last - first <= 1, bars = new Map();
    const add = (y, m) => bars.set(m ? `${y}-${m}` : `${y}`, {year: y, month: m, count: 0, fresh: 0});
    if (last - first < 60)
      for (let y = first; y <= last; y++)
        if (months) for (let m = 1; m <= 12; m++) add(y, m);
        else add(y, 0);
    for (const one of all) {
      const y = Number(one.name.slice(0, 4)), m = months ? Number(one.name.slice(5, 7)) : 0;
      const key = m ? `${y}-${m}` : `${y}`;
      if (!bars.has(key)) add(y, m);
      bars.get(key).count += one.count;
      bars.get(key).fresh += one.new;
    }
    return [...bars.values()].slice(-200);
  }

  // ---- bars

  const HEIGHT = 48;

  function rect(kind, height) {
    const element = document.createElementNS('http://www.w3.org/2000/svg', 'rect');
    for (const [key, value] of Object.entries({class: kind, width: 10, y: HEIGHT - height, height}))
      element.setAttribute(key, value);
    return element;
  }

  function makeBar(bar, most) {
    const height = bar.count ? 2 + bar.count * (HEIGHT - 2) / most : 0;
    const name = bar.month ? `${MONTHS[bar.month - 1]} ${bar.year}` : `${bar.year}`;
    const svg = document.createElementNS('http://www.w3.org/2000/svg', 'svg');
    svg.setAttribute('viewBox', `0 0 10 ${HEIGHT}`);
    svg.setAttribute('preserveAspectRatio', 'none');
    svg.setAttribute('aria-hidden', 'true');
    svg.append(rect('seen', height), rect('fresh', bar.count ? height * bar.fresh / bar.count : 0));
    const link = make('a', {href: `/calendar?url=${encodeURIComponent(url)}&year=${bar.year}`,
      class: bar.year === year ? 'now' : null, 'aria-label': `${name}: ${many(bar.count, 'capture')}`,
      'data-year': bar.year}, svg, make('span', {}, bar.month ? name.slice(0, 3) : name));
    if (bar.month === 1) link.append(make('b', {}, `${bar.year}`));
    return make('li', {}, link);
  }

  function makeBars() {
    const bars = countBars(), most = Math.max(1, ...bars.map(bar => bar.count));
    return make('nav', {'aria-label': 'Years'},
      make('ul', {class: 'years'}, ...bars.map(bar => makeBar(bar, most))));
  }

  // ---- months

  const dateWords = name =>
    `${Number(name.slice(8))} ${MONTHS[Number(name.slice(5, 7)) - 1]} ${Number(name.slice(0, 4))}`;

  function makeDay(one) {
    const kinds = Object.keys(WORDS).filter(kind => one[kind]);
    const plural = kind => one[kind] > 1 && (kind === 'redirect' || kind === 'error') ? 's' : '';
    const found = kinds.map(kind => `${number(one[kind])} ${WORDS[kind]}${plural(kind)}`);
    const size = one.count >= 10 ? 4 : one.count >= 4 ? 3 : one.count >= 2 ? 2 : 1;
    return make('a', {class: `${kinds[0]} d${size}`,
      href: `/calendar?url=${encodeURIComponent(url)}&day=${one.name}#day`,
      'aria-current': one.name === day ? 'date' : null, 'data-day': one.name,
      'aria-label': `${many(one.count, 'capture')} on ${dateWords(one.name)}: ${found.join(', ')}`},
    `${Number(one.name.slice(8))}`);
  }

  // Days of a month are counted in UTC, where all of them are equally long.
  function makeMonth(month) {
    const first = new Date(0), body = make('tbody');
    first.setUTCFullYear(year, month, 1);
    let row = null;
    const lead = (first.getUTCDay() + 6) % 7;
    for (let i = -lead; ; i++) {
      const date = new Date(first.getTime() + i * 86400000);
      if (i >= 0 && date.getUTCMonth() !== month) break;
      if ((i + lead) % 7 === 0) body.append(row = make('tr'));
      const one = i >= 0 && days.get(date.toISOString().slice(0, 10));
      row.append(make('td', {}, one ? makeDay(one) : i >= 0 ? `${i + 1}` : ''));
    }
    const heads = ['Mo', 'Tu', 'We', 'Th', 'Fr', 'Sa', 'Su'].map(name => make('th', {scope: 'col'}, name));
    return make('table', {class: 'month'}, make('caption', {}, `${MONTHS[month]} ${year}`),
      make('thead', {}, make('tr', {}, ...heads)), body);
  }

  // ---- one day

  // Midnight of this zone. A day whose midnight is skipped (a change of the clock) begins at the next moment.
  const midnight = (name, by) =>
    new Date(Number(name.slice(0, 4)), Number(name.slice(5, 7)) - 1, Number(name.slice(8)) + by);

  function makeRow(capture) {
    const time = make('time', {datetime: capture.time});
    wbTimes.show(time);
    const digits = time => time.replace(/[-:TZ]|\.\d+/g, '').slice(0, 14);
    const found = make('td', {}, WORDS[capture.kind]);
    if (capture.before) found.append(' (', make('a', {href: `/compare?url=${encodeURIComponent(url)}` +
      `&a=${digits(capture.before)}&b=${digits(capture.time)}`}, 'what changed'), ')');
    return make('tr', {}, make('td', {}, make('a', {href: `/web/${digits(capture.time)}/${url}`}, time)),
      make('td', {class: 'number'}, `${capture.status}`), found,
      make('td', {class: 'number'}, `${capture.version}`),
      make('td', {class: 'number'}, wbBytes(capture.length)));
  }

  async function fillDay(section, after) {
    const query = new URLSearchParams({url, from: midnight(day, 0).toISOString(),
      to: new Date(midnight(day, 1) - 1).toISOString(), limit: 200, after});
    const reply = await fetch(`/api/calendar?${query}`);
    if (!reply.ok) throw new Error(`status ${reply.status}`);
    const answer = await reply.json();
    const body = section.querySelector('tbody');
    body.append(...answer.list.map(makeRow));
    if (answer.next === null) return;
    const more = make('button', {type: 'button'}, 'More');
    more.addEventListener('click', () => { more.remove(); fillDay(section, answer.next); });
    section.append(more);
  }

  function makeList() {
    const heads = [['Time'], ['Status', 'number'], ['What was found'], ['Version', 'number'], ['Size', 'number']];
    const section = make('section', {'aria-labelledby': 'day'},
      make('h2', {id: 'day', tabindex: '-1'}, dateWords(day)));
    section.append(make('div', {class: 'wide'}, make('table', {}, make('thead', {}, make('tr', {}, ...heads.map(
      ([text, kind]) => make('th', {scope: 'col', class: kind || null}, text)))), make('tbody'))));
    fillDay(section, 0).catch(error => section.append(make('p', {class: 'problem'},
      `The captures of this day could not be read: ${error.message}.`)));
    return section;
  }

  // ---- all of it

  function show(focus) {
    const months = make('div', {class: 'months'}, ...MONTHS.map((_, month) => makeMonth(month)));
    const legend = root.querySelector('.legend');
    root.replaceChildren(makeBars(), make('section', {'aria-labelledby': 'months'},
      make('h2', {id: 'months'}, `${year}`), months, legend), makeList());
    const place = focus && (focus === 'day' ? root.querySelector('#day') : root.querySelector('.years .now'));
    if (place) place.focus();
  }

  function choose(newYear, newDay) {
    const all = [...days.keys()];
    day = newDay || all.filter(name => !newYear || Number(name.slice(0, 4)) <= newYear).at(-1) || all[0];
    year = newYear || Number(day.slice(0, 4));
  }

  root.addEventListener('click', event => {
    const link = event.target.closest('a[data-day], a[data-year]');
    if (!link || event.ctrlKey || event.metaKey || event.shiftKey || event.altKey) return;
    event.preventDefault();
    choose(Number(link.dataset.year) || 0, link.dataset.day || '');
    history.pushState({year, day}, '', link.href);
    show(link.dataset.day ? 'day' : 'year');
  });
  addEventListener('popstate', event => {
    if (!event.state) return;
    ({year, day} = event.state);
    show();
  });

  async function begin() {
    const reply = await fetch(`/api/calendar?url=${encodeURIComponent(url)}`);
    if (!reply.ok) return; // what the server made stays
    const answer = await reply.json();
    if (answer.spans.length === 0 || answer.unit > 900) return; // spans that are longer may be of two days
    days = count(answer);
    if (root.dataset.chosen) choose(0, root.dataset.day);
    else choose(/[?&]year=/.test(location.search) ? Number(root.dataset.year) : 0, '');
    history.replaceState({year, day}, '');
    document.getElementById('zone').textContent =
      `Days are those of ${Intl.DateTimeFormat().resolvedOptions().timeZone}.`;
    show();
  }
  begin();
})();
