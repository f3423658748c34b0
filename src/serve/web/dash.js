// The dashboard: asks /api/dash every two seconds, draws charts with uPlot, fills in numbers and tables, and sends the
// operator's orders. Texts are put in as text, never as HTML.
'use strict';
(() => {
  const $ = id => document.getElementById(id);
  const KEEP = 1800; // samples: an hour
  const series = {}; // name -> values; time is in seconds, as uPlot wants it
  let last = 0;

  // ---- numbers as text --------------------------------------------------------------------

  const count = n => n == null ? '–' : Math.round(n).toLocaleString('en');
  const short = n => n == null ? '' : n >= 1e9 ? (n / 1e9).toFixed(1) + 'G' : n >= 1e6 ? (n / 1e6).toFixed(1) + 'M'
    : n >= 1e4 ? (n / 1e3).toFixed(0) + 'k' : n >= 100 ? n.toFixed(0) : String(Number(n.toFixed(2)));
  const bytes = n => {
    if (n == null) return '–';
    const units = ['B', 'kB', 'MB', 'GB', 'TB', 'PB'];
    let unit = 0;
    for (; n >= 999.5 && unit < units.length - 1; unit++) n /= 1000;
    return (unit && n < 9.95 ? n.toFixed(1) : n.toFixed(0)) + ' ' + units[unit];
  };
  const days = n => n == null ? '–' : n < 1 / 24 ? (n * 1440).toFixed(0) + ' min' : n < 2 ? (n * 24).toFixed(1) + ' h'
    : n.toFixed(1) + ' d';
  const percent = n => n == null ? '–' : (100 * n).toFixed(1) + ' %';
  const clock = seconds => new Date(seconds * 1000).toTimeString().slice(0, 5);
  const when = text => text ? text.slice(0, 16).replace('T', ' ') : '';

  // ---- samples ----------------------------------------------------------------------------

  function keep(news) {
    for (const [name, values] of Object.entries(news)) {
      const all = series[name] || (series[name] = []);
      for (const v of values) all.push(name === 'time' ? v / 1000 : v);
      if (all.length > KEEP) all.splice(0, all.length - KEEP);
    }
    if (news.time.length) last = news.time[news.time.length - 1];
  }

  const newest = name => series[name] && series[name].length ? series[name][series[name].length - 1] : null;

  // How fast a counter grows. A counter that starts again at 0 belongs to another crawl.
  function rate(name, span = 5) {
    const t = series.time, v = series[name];
    return t.map((now, i) => {
      let j = Math.max(0, i - span);
      while (j < i && v[j] == null) j++;
      if (i === j || v[i] == null) return null;
      return v[i] >= v[j] ? (v[i] - v[j]) / (now - t[j]) : 0;
    });
  }

  // ---- charts -----------------------------------------------------------------------------

  const style = getComputedStyle(document.documentElement);
  const color = name => style.getPropertyValue(name).trim();
  const charts = [
    {id: 'rate', unit: short, lines: () => [['crawled', rate('crawl_pages')], ['captures', rate('captures')]]},
    {id: 'errors', unit: short, lines: () => [['failed', rate('crawl_errors')]]},
    {id: 'queues', unit: short, second: short, lines: () => [['sites', series.crawl_sites_active],
      ['queued URLs', series.crawl_queued], ['sites that wait', series.crawl_sites_waiting]]},
    {id: 'traffic', unit: bytes, lines: () => [['bytes', rate('crawl_bytes')]]},
    {id: 'store', unit: bytes, lines: () => [['stored', series.stored_bytes], ['free to compact', series.dead_bytes]]},
    {id: 'fresh', unit: percent, second: days, lines: () => [['fresh', series.freshness], ['mean age', series.age_days]]},
    {id: 'requests', unit: short, lines: () => [['answers', rate('requests')], ['failed', rate('requests_failed')]]},
    {id: 'open', unit: short, lines: () => [['connections', series.connections], ['streams', series.streams]]},
  ];

  function options(chart, place, lines) {
    const strokes = ['--accent', '--visited', '--good'].map(color);
    const axis = {stroke: color('--quiet'), grid: {stroke: color('--line'), width: 1}, ticks: {show: false},
      font: '12px system-ui, sans-serif'};
    const top = high => high > 0 ? high * 1.1 : chart.unit === bytes ? 1000 : 1;
    const scales = {x: {time: true, range: (u, low, high) => [Math.min(low, high - 300), high]},
      y: {range: (u, low, high) => chart.unit === percent ? [0, 1] : [0, top(high)]}};
    const axes = [{...axis, space: 60, size: 30, values: (u, all) => all.map(clock)}, {...axis, size: 60, values: (u, all) => all.map(chart.unit)}];
    if (chart.second) {
      scales.second = {range: (u, low, high) => [0, top(high)]};
      axes.push({...axis, scale: 'second', side: 1, size: 60, grid: {show: false},
        values: (u, all) => all.map(chart.second)});
    }
    return {
      width: place.clientWidth, height: 170, scales, axes, cursor: {y: false},
      series: [{label: 'time', value: (u, t) => t == null ? '–' : new Date(t * 1000).toTimeString().slice(0, 8)}, ...lines.map(([label], i) => ({label, stroke: strokes[i], width: 1.75,
        points: {show: false}, scale: i === 1 && chart.second ? 'second' : 'y',
        value: (u, v) => v == null ? '–' : (i === 1 && chart.second ? chart.second : chart.unit)(v)}))],
    };
  }

  function draw(chart) {
    const lines = chart.lines();
    const data = [series.time, ...lines.map(([, values]) => values)];
    const place = $('chart-' + chart.id);
    if (chart.plot) chart.plot.setData(data);
    else chart.plot = new uPlot(options(chart, place, lines), data, place);
    // Without a mouse on the chart, the legend has the newest values.
    if (chart.plot.cursor.idx == null) chart.plot.setLegend({idx: series.time.length - 1}, false);
  }

  function redraw() {
    for (const chart of charts) {
      if (chart.plot) chart.plot.destroy();
      chart.plot = null;
      if (series.time) draw(chart);
    }
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

  function showCrawls(crawls, cycle) {
    const paused = crawls.some(c => c.paused), pages = crawls.reduce((n, c) => n + c.rate.pages, 0);
    const loop = cycle && cycle.running ? `Cycle ${cycle.cycle}, ${cycle.step}. ` : '';
    put('state', loop + (crawls.length === 0 ? 'No crawl is running.' : paused ? 'The crawl is paused.'
      : `Crawling: ${short(pages)} pages per second, ${count(newest('crawl_sites_active'))} sites, ` +
        `${count(newest('crawl_in_flight'))} requests under way.`));
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
      row.lastChild.textContent = value;
      return row;
    }));
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
    facts('cycle', [['Number', count(cycle.cycle)], ['Step', cycle.step], ['Began', when(cycle.began)],
      ['Listed', count(cycle.listed)], ['Fetched', count(cycle.fetched)], ['Stored', count(cycle.stored)],
      ['Errors', count(cycle.errors)]]);
  }

  function showNodes(nodes) {
    $('nodes').hidden = nodes.length < 2 && nodes.every(n => n.state !== 'down');
    rows('node-rows', nodes.map(n => [String(n.node), n.role, n.state, count(n.pages), bytes(n.used), bytes(n.free),
      bytes(n.capacity), `${count(n.requests.get)} / ${count(n.requests.put)} / ${count(n.requests.stream)}`]));
  }

  function showLists(data) {
    put('snapshots', count(data.snapshot_count));
    rows('snapshot-rows', data.snapshots.map(s => [String(s.snapshot), s.name || '', when(s.time), count(s.pages),
      (s.held_by || []).map(h => typeof h === 'string' ? h : h.holder || h.name || '').join(', ')]));
    rows('stream-rows', data.streams.map(s => [s.name, String(s.snapshot), count(s.delivered),
      s.damaged ? 'damaged' : s.finished ? 'finished' : 'open', when(s.saved)]));
  }

  // ---- polling ----------------------------------------------------------------------------

  async function ask() {
    const reply = await fetch('/api/dash?since=' + last, {cache: 'no-store'});
    if (!reply.ok) throw new Error('the server answers ' + reply.status);
    const data = await reply.json();
    keep(data.series);
    showNumbers(data.stat);
    showCrawls(data.crawls, data.stat.cycle);
    showCrawl(data.crawls);
    showCycle(data.stat.cycle);
    showNodes(data.nodes);
    showLists(data);
    charts.forEach(draw);
    document.body.dataset.samples = series.time.length;
  }

  async function loop() {
    try {
      if (!document.hidden || !last) await ask();
    } catch (error) {
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
  loop();

  // ---- orders -----------------------------------------------------------------------------

  const KEY = 'webbase-token';

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
    if (reply.ok) form.reset();
  }

  $('orders').hidden = false;
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
