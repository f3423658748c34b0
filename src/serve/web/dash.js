// The dashboard: asks /api/dash and /api/history again and again, fills in numbers and tables, draws charts with uPlot,
// and sends the operator's orders. Texts are put in as text, never as HTML. Parts of pages that the server makes (data-live)
// are asked for again and replaced as a whole; they go through the parser of documents, which runs no scripts.
'use strict';
(() => {
  const $ = id => document.getElementById(id);
  const KEY = 'webbase-token';
  const bearer = () => {
    const token = sessionStorage.getItem(KEY);
    return token === null ? {} : {Authorization: 'Bearer ' + token};
  };

  // ---- times ------------------------------------------------------------------------------
  // All in the zone of the browser, which the text names; UTC is a touch away.

  const zone = new Intl.DateTimeFormat(undefined, {timeZoneName: 'short'}).formatToParts(new Date())
    .find(part => part.type === 'timeZoneName').value;
  const two = n => String(n).padStart(2, '0');
  const local = date => `${date.getFullYear()}-${two(date.getMonth() + 1)}-${two(date.getDate())} ` +
    `${two(date.getHours())}:${two(date.getMinutes())}:${two(date.getSeconds())}`;
  const utc = date => date.toISOString().slice(0, 19).replace('T', ' ') + ' UTC';

  function moment(text) {
    const time = document.createElement('time');
    time.dateTime = text;
    return localize(time);
  }

  function localize(time) {
    const date = new Date(time.dateTime);
    if (!isNaN(date)) {
      time.textContent = local(date) + ' ' + zone;
      time.title = utc(date);
    }
    return time;
  }

  document.querySelectorAll('time[datetime]').forEach(localize);

  // ---- numbers as text --------------------------------------------------------------------

  const count = n => n == null ? '–' : Math.round(n).toLocaleString('en');
  const short = n => n == null ? '' : n >= 1e9 ? (n / 1e9).toFixed(1) + 'G' : n >= 1e6 ? (n / 1e6).toFixed(1) + 'M'
    : n >= 1e4 ? (n / 1e3).toFixed(0) + 'k' : n >= 100 ? n.toFixed(0) : String(Number(n.toFixed(2)));
  const bytes = n => n == null ? '–' : wbBytes(n);
  const days = n => n == null ? '–' : n < 1 / 24 ? (n * 1440).toFixed(0) + ' min' : n < 2 ? (n * 24).toFixed(1) + ' h'
    : n.toFixed(1) + ' d';
  const percent = n => n == null ? '–' : (100 * n).toFixed(1) + ' %';

  // ---- charts -----------------------------------------------------------------------------
  // Which lines a chart has is said in its figure, which the server has made.

  const past = $('charts');
  const style = getComputedStyle(document.documentElement);
  const color = name => style.getPropertyValue(name).trim();
  const write = {'': short, bytes, share: percent, days};
  const charts = [...document.querySelectorAll('figure[data-lines]')].map(figure => ({
    id: figure.dataset.chart, place: figure.querySelector('.chart'), table: figure.querySelector('tbody'),
    lines: figure.dataset.lines.split(';').map(line => {
      const [name, label, unit, second] = line.split('|');
      return {name, label, unit, second: second === 'second'};
    })}));
  let history = null;

  // Hours and minutes within two days, days beyond.
  function ticks(all) {
    const long = history.to - history.from > 2 * 86400e3;
    return all.map(seconds => {
      const date = new Date(seconds * 1000), text = local(date);
      return !long ? text.slice(11, history.step < 5 ? 19 : 16) : date.getHours() ? text.slice(11, 16) : text.slice(5, 10);
    });
  }

  // A value between two gaps is no line: it gets a point.
  const alone = values =>
    values.map((_, i) => i).filter(i => values[i] != null && values[i - 1] == null && values[i + 1] == null);

  function options(chart) {
    const strokes = ['--accent', '--visited', '--good'].map(color), dashes = [[], [6, 3], [2, 3]];
    const axis = {stroke: color('--quiet'), grid: {stroke: color('--line'), width: 1}, ticks: {show: false},
      font: '12px system-ui, sans-serif'};
    const first = chart.lines[0], second = chart.lines.find(line => line.second);
    const range = unit => (u, low, high) => [0, unit === 'share' ? 1 : high > 0 ? high * 1.1 : unit === 'bytes' ? 1000 : 1];
    const scales = {x: {time: true, range: () => [history.from / 1000, history.to / 1000]}, y: {range: range(first.unit)}};
    const axes = [{...axis, space: 60, size: 30, values: (u, all) => ticks(all)},
      {...axis, size: 60, values: (u, all) => all.map(write[first.unit])}];
    if (second) {
      scales.second = {range: range(second.unit)};
      axes.push({...axis, scale: 'second', side: 1, size: 60, grid: {show: false},
        values: (u, all) => all.map(write[second.unit])});
    }
    return {
      width: chart.place.clientWidth, height: 170, scales, axes,
      legend: {markers: {dash: (u, i) => ['solid', 'dashed', 'dotted'][i - 1]}},
      cursor: {y: false, drag: {x: true, y: false, setScale: false}},
      // Dragging over a stretch shows it: as a page of its own, so that going back leads back.
      hooks: {setSelect: [u => {
        if (u.select.width < 8) return;
        const at = x => Math.round(u.posToVal(x, 'x')) * 1000;
        location.href = `/dash?from=${at(u.select.left)}&to=${Math.max(at(u.select.left + u.select.width), at(u.select.left) + 10000)}`;
      }]},
      series: [{label: 'time', value: (u, t) => t == null ? '–' : local(new Date(t * 1000))},
        ...chart.lines.map((line, i) => ({label: line.label, stroke: strokes[i], dash: dashes[i], width: 1.75,
          points: {show: true, size: 4, fill: strokes[i], filter: (u, at) => alone(u.data[at])}, spanGaps: false,
          scale: line.second ? 'second' : 'y', value: (u, v) => v == null ? '–' : write[line.unit](v)}))],
    };
  }

  function draw(chart) {
    const data = [history.time.map(t => t / 1000), ...chart.lines.map(line => history.metrics[line.name].values)];
    if (chart.plot) {
      chart.plot.setData(data);
    } else {
      chart.place.replaceChildren(); // the picture of the server
      chart.plot = new uPlot(options(chart), data, chart.place);
    }
    // Without a mouse on the chart, the legend has the newest values.
    const known = i => data.slice(1).some(values => values[i] != null);
    let newestKnown = data[0].length - 1;
    while (newestKnown > 0 && !known(newestKnown)) newestKnown--;
    // uPlot clears it after it has drawn.
    setTimeout(() => chart.plot && chart.plot.cursor.idx == null && chart.plot.setLegend({idx: newestKnown}, false), 50);
  }

  function redraw() {
    for (const chart of charts) {
      if (chart.plot) chart.plot.destroy();
      chart.plot = null;
      if (history) draw(chart);
    }
  }

  // The same twelve rows as the server makes: means of what was watched.
  function tabulate(chart) {
    const each = Math.ceil(history.time.length / 12), rows = [];
    for (let i = 0; i < history.time.length; i += each) {
      const row = document.createElement('tr');
      row.append(cell(moment(new Date(history.time[i]).toISOString())));
      for (const line of chart.lines) {
        const known = history.metrics[line.name].values.slice(i, i + each).filter(v => v != null);
        const td = cell(known.length ? write[line.unit](known.reduce((sum, v) => sum + v, 0) / known.length) : '–');
        td.className = 'number';
        row.append(td);
      }
      rows.push(row);
    }
    chart.table.replaceChildren(...rows);
  }

  async function askHistory() {
    const names = [...new Set(charts.flatMap(chart => chart.lines.map(line => line.name)))];
    const {range, from, to, step} = past.dataset;
    const when = range ? `range=${range}&step=${step}` : `from=${from}&to=${to}&step=${step}`;
    const reply = await fetch(`/api/history?metric=${names.join(',')}&${when}`, {cache: 'no-store'});
    if (!reply.ok) throw new Error('the server answers ' + reply.status);
    history = await reply.json();
    charts.forEach(draw);
    charts.filter(chart => chart.table.closest('details').open).forEach(tabulate);
  }

  // ---- numbers and tables -----------------------------------------------------------------

  function put(id, text) {
    const element = $(id);
    if (element.textContent !== text) element.textContent = text;
  }

  function cell(content) {
    const td = document.createElement('td');
    if (content instanceof Node) td.append(content);
    else td.textContent = content;
    if (typeof content === 'string' && /^[\d,]+$/.test(content)) td.className = 'number';
    return td;
  }

  function rows(id, all) {
    const none = cell('None.');
    none.colSpan = 8;
    $(id).replaceChildren(...(all.length ? all.map(contents => contents.map(cell)) : [[none]]).map(cells => {
      const row = document.createElement('tr');
      row.append(...cells);
      return row;
    }));
  }

  let now = {}; // the newest sample
  const newest = name => now[name] === undefined ? null : now[name];

  function showNumbers(stat) {
    put('pages', count(stat.pages));
    put('versions', count(stat.versions));
    put('sites', count(stat.sites));
    put('known', count(newest('known')));
    put('stored', bytes(newest('stored_bytes')));
    put('fragmented', percent(newest('stored_bytes') ? newest('dead_bytes') / newest('stored_bytes') : 0));
    put('unmerged', bytes(newest('unmerged_bytes')));
    put('generation', newest('generation') == null ? '–' : String(newest('generation')));
    put('streams', count(newest('streams')));
    put('freshness', percent(newest('freshness')));
    put('age', days(newest('age_days')));
  }

  function showCrawls(crawls) {
    const stopped = crawls.flatMap(c => c.stopped), slowed = crawls.flatMap(c => c.slowed);
    put('orders-now', (stopped.length ? `Stopped: ${stopped.join(', ')}. ` : '') +
      (slowed.length ? `Slowed down: ${slowed.map(s => `${s.site} (${s.delay} s)`).join(', ')}.` : ''));
    const errors = {};
    for (const crawl of crawls)
      for (const [kind, n] of Object.entries(crawl.errors)) errors[kind] = (errors[kind] || 0) + n;
    const most = Math.max(1, ...Object.values(errors));
    const all = Object.entries(errors).sort((a, b) => b[1] - a[1]).map(([kind, n]) => {
      const meter = document.createElement('meter');
      [meter.min, meter.max, meter.value] = [0, most, n];
      meter.setAttribute('aria-hidden', 'true');
      return [kind, meter, count(n)];
    });
    rows('error-rows', all);
  }

  function facts(id, all) {
    $(id).replaceChildren(...all.map(([name, value]) => {
      const row = document.createElement('div');
      row.append(document.createElement('dt'), document.createElement('dd'));
      row.firstChild.textContent = name;
      row.lastChild.replaceChildren(value);
      return row;
    }));
  }

  function showState(state) {
    if ($('state').dataset.text !== state.text + state.until) {
      $('state').dataset.text = state.text + state.until;
      $('state').replaceChildren(state.text, ...(state.until ? [' ', moment(state.until), '.'] : []));
    }
    $('problem').hidden = !state.problem;
    put('problem', state.problem || '');
    if ($('begin')) $('begin').hidden = !/^Nothing is stored/.test(state.text);
  }

  function showCrawl(crawls) {
    const sum = pick => count(crawls.reduce((n, c) => n + pick(c), 0));
    facts('crawl', crawls.length === 0 ? [['None is running.', '']] : [
      ['Requests', sum(c => c.requests)], ['Pages stored', sum(c => c.pages)], ['Unchanged', sum(c => c.unchanged)],
      ['Redirects', sum(c => c.redirects)], ['Copies', sum(c => c.duplicates)], ['Gone', sum(c => c.gone)],
      ['Kept out by robots.txt', sum(c => c.robots)], ['Errors', sum(c => c.error_count)],
      ['Queued URLs', sum(c => c.queued)], ['Sites unfinished', sum(c => c.sites.open)],
      ['Sites finished', sum(c => c.sites.done)], ['Processes', sum(c => c.processes)]]);
  }

  function showCycle(cycle) {
    if (!cycle) return;
    facts('cycle', [['Number', count(cycle.cycle)], ['Step', cycle.step], ['Began', cycle.began ? moment(cycle.began) : '–'],
      ['Listed', count(cycle.listed)], ['Fetched', count(cycle.fetched)], ['Stored', count(cycle.stored)],
      ['Errors', count(cycle.errors)]]);
  }

  function showBackups(backups) {
    $('backups').hidden = backups.length === 0;
    rows('backup-rows', backups.map((b, i) => [String(i + 1), b.kind, b.safe ? moment(b.safe) : 'nothing yet', count(b.pages),
      b.unsafe_since ? moment(b.unsafe_since) : 'nothing waits', bytes(b.bytes_waiting),
      b.failing ? 'fails' : b.following ? 'follows' : 'not running']));
  }

  function showNodes(nodes) {
    $('nodes').hidden = nodes.length < 2 && nodes.every(n => n.state !== 'down');
    rows('node-rows', nodes.map(n => [String(n.node), n.role, n.state, count(n.pages), bytes(n.used), bytes(n.free),
      bytes(n.capacity), `${count(n.requests.get)} / ${count(n.requests.put)} / ${count(n.requests.stream)}`]));
  }

  function showLists(data) {
    put('snapshots', count(data.snapshot_count));
    rows('snapshot-rows', data.snapshots.map(s => [String(s.snapshot), s.name || '', s.time ? moment(s.time) : '', count(s.pages),
      (s.held_by || []).map(h => typeof h === 'string' ? h : h.holder || h.name || '').join(', ')]));
    rows('stream-rows', data.streams.map(s => [s.name, String(s.snapshot), count(s.delivered),
      s.damaged ? 'damaged' : s.finished ? 'finished' : 'open', s.saved ? moment(s.saved) : '']));
  }

  // ---- parts that the server makes --------------------------------------------------------

  // Replaces the content of a part by that of the same part of a page. Not while somebody is in it with the keyboard or
  // reads a selection: that would be gone.
  async function renew(part) {
    const held = part.contains(document.activeElement) && document.activeElement !== document.body;
    if (document.hidden || held || part.dataset.paused || !getSelection().isCollapsed) return;
    if ('token' in part.dataset && sessionStorage.getItem(KEY) === null) return;
    const reply = await fetch(part.dataset.from || location.href, {cache: 'no-store', headers: bearer()});
    if (!reply.ok) return;
    const page = new DOMParser().parseFromString(await reply.text(), 'text/html');
    const fresh = page.getElementById(part.dataset.part || part.id);
    if (!fresh || part.dataset.paused) return;
    fresh.querySelectorAll('time[datetime]').forEach(localize);
    const wide = part.querySelector('.wide'), left = wide ? wide.scrollLeft : 0;
    // On the dashboard only the table is of interest; its page has the rest.
    const whole = !part.dataset.from;
    part.replaceChildren(...(whole ? fresh.childNodes : [fresh.querySelector('.wide')]));
    if (left) part.querySelector('.wide').scrollLeft = left;
    part.dataset.renewed = Number(part.dataset.renewed || 0) + 1;
  }

  for (const part of document.querySelectorAll('[data-live]')) {
    const loop = async () => {
      try {
        await renew(part);
      } catch (error) { // the next one may work
        part.dataset.failed = error.message;
      }
      setTimeout(loop, 1000 * part.dataset.live);
    };
    loop();
    if (part.dataset.from) continue;
    const button = document.createElement('button');
    button.type = 'button';
    button.className = 'pause';
    button.textContent = 'Pause';
    button.setAttribute('aria-pressed', 'false');
    button.addEventListener('click', () => {
      const paused = !part.dataset.paused;
      if (paused) part.dataset.paused = 'yes'; else delete part.dataset.paused;
      button.setAttribute('aria-pressed', String(paused));
      button.textContent = paused ? 'Go on' : 'Pause';
    });
    part.before(button);
  }
  if (!past) return; // one of the other pages

  // ---- polling ----------------------------------------------------------------------------

  let last = Date.now() - 10000, polls = 0;

  async function ask() {
    const reply = await fetch('/api/dash?since=' + last, {cache: 'no-store'});
    if (!reply.ok) throw new Error('the server answers ' + reply.status);
    const data = await reply.json();
    const newestAt = data.series.time.length - 1;
    if (newestAt >= 0) {
      for (const [name, values] of Object.entries(data.series)) now[name] = values[newestAt];
      last = now.time;
    } else if (!polls) {
      last = 0; // the clock of the server is another one
    }
    showState(data.state);
    showNumbers(data.stat);
    showCrawls(data.crawls);
    showCrawl(data.crawls);
    showCycle(data.stat.cycle);
    showBackups(data.stat.backup);
    showNodes(data.nodes);
    showLists(data);
    document.body.dataset.samples = ++polls;
  }

  // A stretch that is over stays as it is. The others move on by a step at a time.
  let drawn = 0;
  async function loop() {
    try {
      if (!document.hidden || !polls) await ask();
      const due = past.dataset.range && Date.now() - drawn >= 1000 * Math.min(60, Math.max(2, past.dataset.step / 2));
      if ((!drawn || due) && !document.hidden) {
        drawn = Date.now();
        await askHistory();
      }
    } catch (error) {
      $('state').dataset.text = '';
      put('state', 'No answer: ' + error.message);
    }
    setTimeout(loop, 2000);
  }

  let width = 0;
  new ResizeObserver(() => {
    if (innerWidth !== width) redraw();
    width = innerWidth;
  }).observe(document.body);
  matchMedia('(prefers-color-scheme: dark)').addEventListener('change', redraw);
  for (const chart of charts)
    chart.table.closest('details').addEventListener('toggle', () => history && tabulate(chart));
  loop();

  // ---- orders -----------------------------------------------------------------------------

  function showForms() {
    const known = sessionStorage.getItem(KEY) !== null;
    $('token-form').hidden = known;
    $('order-forms').hidden = !known;
  }

  function bodyOf(form) {
    const values = Object.fromEntries(new FormData(form));
    if ('delay' in values) values.delay = Number(values.delay);
    return 'url' in values ? {urlList: [values.url]} : values;
  }

  async function order(form) {
    const name = form.querySelector('button').textContent;
    if (form.dataset.sure && !confirm(form.dataset.sure)) return;
    put('order-answer', name + ' …');
    const reply = await fetch(form.dataset.call, {method: 'POST', body: JSON.stringify(bodyOf(form)),
      headers: {'Content-Type': 'application/json', Authorization: 'Bearer ' + sessionStorage.getItem(KEY)}});
    const answer = await reply.json().catch(() => ({}));
    if (reply.status === 401) sessionStorage.removeItem(KEY);
    showForms();
    put('order-answer', reply.ok ? name + ': done.' : name + ': ' + (answer.error || 'status ' + reply.status));
    $('order-answer').classList.toggle('problem', !reply.ok);
    renewAll();
    if (reply.ok) form.reset();
  }

  // What the order did is in the tables; nobody should have to wait for their turn.
  function renewAll() {
    for (const part of document.querySelectorAll('[data-live][data-token]')) renew(part).catch(() => {});
  }

  $('order-area').hidden = false;
  showForms();
  // A token is asked about before it is kept, so that a wrong one is noticed here and not at the first order.
  async function take(token) {
    put('order-answer', 'Checking the token …');
    const reply = await fetch('/api/token', {headers: {Authorization: 'Bearer ' + token}});
    const answer = await reply.json().catch(() => ({}));
    if (reply.ok) sessionStorage.setItem(KEY, token);
    put('order-answer', reply.ok ? '' : reply.status === 401 ? 'This is not the operator’s token.'
      : answer.error || 'status ' + reply.status);
    showForms();
    if (reply.ok) renewAll();
  }

  $('token-form').addEventListener('submit', event => {
    event.preventDefault();
    const token = $('token').value.trim();
    $('token').value = '';
    take(token).catch(error => put('order-answer', error.message));
  });
  $('forget').addEventListener('click', () => {
    sessionStorage.removeItem(KEY);
    showForms();
  });
  for (const form of document.querySelectorAll('form[data-call]'))
    form.addEventListener('submit', event => {
      event.preventDefault();
      order(form).catch(error => put('order-answer', error.message));
    });
})();
