#!/usr/bin/env python3
"""Moving in time: when a URL was captured, the captures of a site, the files of a page, and two versions side by side;
also with what is malformed or too much."""
import datetime, re, urllib.parse

from e2e import *
import serving

SITE = 'http://site.example'
HOME = SITE + '/'


def digits(time):
    return re.sub(r'\D', '', time)[:14]


def captures(url, *times, body=b'<p>same words', **more):
    return [Page(url, body, time, **more) for time in times]


def repository(folder, pages, index=True):
    repo = folder / 'r'
    call(repo, 'init', '--history', 'all')
    events = ask(repo, 'import', archive(folder / 'a.warc', pages))
    counts = done(events)
    assert counts['errors'] == 0, events[:3]
    if index:
        call(repo, 'index')
    return repo


@test
def a_calendar_has_every_capture(folder):
    chance = rng('calendar')
    start = datetime.datetime(2019, 12, 20)
    times, pages = set(), []
    while len(times) < 300:
        moment = start + datetime.timedelta(seconds=chance.randrange(3 * 366 * 86400))
        times.add(moment.strftime('%Y-%m-%dT%H:%M:%SZ'))
    for time in sorted(times):
        pages += captures(HOME, time, body=b'<p>words %d' % chance.randrange(3))
    with serving.Server(repository(folder, pages, index=False)) as s:
        r = s.get('/api/calendar', url=HOME)
        assert r['captures'] == 300 and r['unit'] == 900 and r['left_out'] == 0 and r['gone'] is None, r
        assert (digits(r['first']), digits(r['last'])) == (digits(min(times)), digits(max(times))), r
        want = {}
        for time in times:
            moment = datetime.datetime.strptime(time, '%Y-%m-%dT%H:%M:%SZ').replace(tzinfo=datetime.timezone.utc)
            want[int(moment.timestamp()) // 900] = want.get(int(moment.timestamp()) // 900, 0) + 1
        assert {row[0]: row[1] for row in r['spans']} == want
        assert sum(row[2] for row in r['spans']) == r['versions'], r
        # The same days in the page for people.
        shown = {}
        for year in (2019, 2020, 2021, 2022):
            text = s.ask('/calendar', url=HOME, year=year).body.decode()
            shown.update({day: int(n) for day, n in
                          re.findall(r'day=([\d-]{10})#day"[^>]* aria-label="(\d+) captures? on', text)})
        by_day = {}
        for time in times:
            by_day[time[:10]] = by_day.get(time[:10], 0) + 1
        assert shown == by_day, (len(shown), len(by_day))
        # All captures of a day, in parts.
        day = max(by_day, key=by_day.get)
        found, after = [], 0
        while after is not None:
            part = s.get('/api/calendar', url=HOME, **{'from': day, 'to': digits(day)}, limit=1, after=after)
            found += part['list']
            after = part['next']
        assert [digits(x['time']) for x in found] == sorted(digits(t) for t in times if t.startswith(day)), found
        text = s.ask('/calendar', url=HOME, day=day).body.decode()
        assert all('/web/%s/%s' % (digits(x['time']), HOME) in text for x in found), day


@test
def kinds_of_captures(folder):
    pages = (captures(HOME, '2025-01-01T10:00:00Z', '2025-01-01T11:00:00Z', '2025-01-02T00:00:00Z') +
             captures(HOME, '2025-01-01T12:00:00Z', body=b'<p>other') +
             captures(HOME, '2025-01-03T00:00:00Z', body=b'gone', status='404 Not Found') +
             captures(HOME, '2025-01-04T00:00:00Z', body=b'moved', status='301 Moved', headers=['Location: /x']))
    with serving.Server(repository(folder, pages, index=False)) as s:
        r = s.get('/api/calendar', url=HOME, **{'from': '2025', 'to': '2025'})
        assert [x['kind'] for x in r['list']] == ['new', 'same', 'new', 'new', 'error', 'redirect'], r['list']
        assert [x['before'] is None for x in r['list']] == [True, True, False, False, False, False], r['list']
        assert [x['status'] for x in r['list']] == [200, 200, 200, 200, 404, 301]
        text = s.ask('/calendar', url=HOME).body.decode()
        for want in ('class="new d2" href="/calendar?url=%s&amp;day=2025-01-01#day" aria-label="3 captures on 1 January '
                     '2025: 2 new content, 1 unchanged"' % urllib.parse.quote(HOME, safe=':/'),
                     '1 capture on 3 January 2025: 1 error"', '1 capture on 4 January 2025: 1 redirect"', 'January: 6'):
            assert want in text or want == 'January: 6' and 'January 2025: 6 captures' in text, (want, text)
        for year in ('2023', '2024', '2100'): # February of a leap year has 29 days
            text = s.ask('/calendar', url=HOME, year=year).body.decode()
            february = text[text.index('<caption>February'):text.index('<caption>March')]
            assert ('>29<' in february) == (year == '2024'), year


@test
def malformed_dates_and_places(folder):
    with serving.Server(repository(folder, captures(HOME, '2025-01-01T10:00:00Z'))) as s:
        for params in ({'day': '2025-13-01'}, {'day': '2025-02-29'}, {'day': '2025-1-1'}, {'day': '<script>'},
                       {'day': '2025-01-01T00'}, {'year': '0'}, {'year': '10000'}, {'year': '-1'}, {'year': 'x'},
                       {'after': 'x'}):
            assert s.ask('/calendar', url=HOME, **params).status == 400, params
        for params in ({'day': '0001-01-01'}, {'day': '9999-12-31'}, {'year': '1'}, {'year': '9999'}, {'after': '99'}):
            assert s.ask('/calendar', url=HOME, **params).status == 200, params
        for params in ({'from': '2025'}, {'to': '2025'}, {'from': 'x', 'to': '2025'}, {'from': '2025', 'to': '20251301'},
                       {'from': '2' * 40, 'to': '2025'}, {'limit': '10001'}):
            s.ask('/api/calendar', url=HOME, **params).error(400)
        assert s.get('/api/calendar', url=HOME, **{'from': '2027', 'to': '2020'})['list'] == []
        for path in ('/api/calendar', '/api/embedded', '/calendar', '/files'):
            assert s.ask(path).status == 400 and s.ask(path, url='http://nowhere.example/').status == 404, path
        for params in ({'a': '2025'}, {'b': '2025'}, {'a': 'x', 'b': '2025'}, {'a': '2025', 'b': '99999999999999'},
                       {'a': '2025', 'b': '2025', 'view': 'x'}, {'a': '2025', 'b': '2025', 'change': 'x'}):
            assert s.ask('/compare', url=HOME, **params).status == 400, params
        assert s.ask('/compare/frame', url=HOME, a='2025', b='2025').status == 400
        assert s.ask('/compare', url=HOME, a='2025', b='2025', change='4294967295').status == 200
        for params in ({'status': '4x'}, {'status': '6xx'}, {'sort': 'x'}, {'sort': '-'}, {'limit': '0'}, {'limit': '1001'},
                       {'sort': 'last', 'after': 'x'}):
            s.ask('/api/captures', url=HOME + '*', **params).error(400)
        for params in ({'time': 'x'}, {'time': '2' * 40}, {'apart': '-1'}):
            s.ask('/api/embedded', url=HOME, **params).error(400)


@test
def where_the_star_leads(folder):
    with serving.Server(repository(folder, captures(HOME, '2025-01-01T10:00:00Z'))) as s:
        r = s.ask('/web/*/' + HOME)
        assert r.status == 302 and s.ask(r.field('Location')).status == 200, r.fields
        assert r.field('Location').startswith('/calendar?url='), r.field('Location')
        for place in ('site.example/*', HOME + '*', 'http://site.example/d*'):
            r = s.ask('/web/*/' + place)
            assert r.status == 302 and r.field('Location').startswith('/captures?url='), (place, r.fields)
            assert s.ask(r.field('Location')).status == 200, r.field('Location')


def all_rows(s, **params):
    rows, after = [], {}
    while True:
        r = s.get('/api/captures', **params, **after)
        rows += r['rows']
        if r['next'] is None:
            return rows
        after = {'after': r['next']}


@test
def the_captures_of_a_site(folder):
    pages = []
    for i in range(60):
        url = '%s/docs/%02d.%s' % (SITE, i, 'png' if i % 5 == 0 else 'html')
        for k in range(1 + i % 3):
            pages += captures(url, '2025-%02d-%02dT00:00:00Z' % (1 + i % 12, 1 + k), body=b'words %d' % (k // 2),
                              type='image/png' if i % 5 == 0 else 'text/html',
                              **({'status': '404 Not Found'} if i % 7 == 0 else {}))
    pages += captures('http://www.site.example/docs/03.html', '2024-01-01T00:00:00Z')
    pages += captures('http://sub.site.example/', '2024-01-01T00:00:00Z') + captures(HOME, '2024-01-01T00:00:00Z')
    repo = repository(folder, pages)
    with serving.Server(repo) as s:
        rows = all_rows(s, url='site.example/docs/*', limit=7)
        assert len(rows) == 60 and len({r['url'] for r in rows}) == 60, len(rows)
        by_name = {r['url'].rsplit('/', 1)[1]: r for r in rows}
        assert sorted(by_name) == list(by_name), 'not in the order of URLs'
        assert by_name['04.html']['captures'] == 2 and by_name['04.html']['versions'] == 1, by_name['04.html']
        assert by_name['02.html']['captures'] == 3 and by_name['02.html']['versions'] == 2, by_name['02.html']
        # Another spelling of the same key belongs to the row.
        assert by_name['03.html']['captures'] == 2 and by_name['03.html']['first'].startswith('2024'), by_name['03.html']
        assert by_name['07.html']['status'] == 404 and by_name['10.png']['type'] == 'image/png'
        assert len(all_rows(s, url='site.example/docs/*', status='4xx', limit=2)) == 9
        assert len(all_rows(s, url='site.example/docs/*', status='200')) == 51
        assert len(all_rows(s, url='site.example/docs/*', type='image', limit=5)) == 12
        assert len(all_rows(s, url='site.example/docs/*', type='image/pn')) == 0
        assert [r['url'][-7:] for r in all_rows(s, url='site.example/docs/*', q='1.HTML', limit=1)] == \
            ['%d1.html' % i for i in range(6)]
        for sort in ('url', 'captures', 'first', 'last'):
            for mark in ('', '-'):
                found = all_rows(s, url='site.example/docs/*', sort=mark + sort, limit=11)
                values = [r[sort] for r in found]
                assert len(found) == 60 and values == sorted(values, reverse=bool(mark)), (mark + sort, values)
        assert len(all_rows(s, url='*.site.example')) == 62 and len(all_rows(s, url='site.example/*')) == 61
        assert s.get('/api/captures', url='nowhere.example/*')['rows'] == []
        text = s.ask('/captures', url='site.example/docs/*', status='4xx', limit=4).body.decode()
        assert text.count('<tr>') == 5 and 'Go on' in text, text
        # What is taken down is gone at once.
        call(repo, 'expunge', '%s/docs/01.html' % SITE)
        assert len(all_rows(s, url='site.example/docs/*')) == 59


@test
def without_an_index_there_is_a_calendar(folder):
    with serving.Server(repository(folder, captures(HOME, '2025-01-01T10:00:00Z'), index=False)) as s:
        assert s.ask('/api/captures', url='site.example/*').status == 503
        assert s.get('/api/calendar', url=HOME)['captures'] == 1 and s.ask('/calendar', url=HOME).status == 200


@test
def the_files_of_a_page(folder):
    page = b'''<link rel=stylesheet href=/a.css><img src=near.png><img src=/far.png#x><img src=far.png>
        <script src=//other.example/x.js></script><iframe src=/frame></iframe><a href=/link>a link</a>
        <img src=data:image/png;base64,x><img src=missing.png>'''
    noon = '2025-03-05T12:00:00Z'
    pages = captures(HOME, noon, body=page)
    pages += captures(HOME + 'a.css', '2025-03-17T12:00:00Z', body=b'p{background:url(in.png)}', type='text/css')
    pages += captures(HOME + 'near.png', '2025-03-05T11:30:00Z', type='image/png')
    pages += captures(HOME + 'far.png', '2025-03-05T10:00:00Z', '2025-03-05T13:30:00Z', type='image/png')
    # The style sheet's own time is asked for, so this is the one of the 18th.
    pages += captures(HOME + 'in.png', '2025-03-05T12:00:00Z', body=b'1', type='image/png')
    pages += captures(HOME + 'in.png', '2025-03-18T12:00:00Z', body=b'2', type='image/png')
    pages += captures(HOME + 'frame', noon, body=b'not here', status='404 Not Found')
    with serving.Server(repository(folder, pages, index=False)) as s:
        r = s.get('/api/embedded', url=HOME, time='2025')
        files = {f['url']: f for f in r['files']}
        assert r['time'].startswith('2025-03-05T12:00:00') and r['apart'] == 3600 and r['cut'] is False, r
        assert (r['near'], r['far'], r['missing']) == (2, 3, 2), r
        assert set(files) == {HOME + 'a.css', HOME + 'near.png', HOME + 'far.png', 'http://other.example/x.js',
                              HOME + 'frame', HOME + 'missing.png', HOME + 'in.png'}, set(files)
        assert files[HOME + 'a.css']['seconds'] == 12 * 86400 and files[HOME + 'a.css']['kind'] == 'style'
        assert files[HOME + 'far.png']['seconds'] == 5400 and files[HOME + 'near.png']['seconds'] == -1800
        assert files[HOME + 'in.png']['seconds'] == 13 * 86400 and files[HOME + 'in.png']['in'] == HOME + 'a.css'
        assert files[HOME + 'missing.png']['seconds'] is None and files[HOME + 'frame']['status'] == 404
        for f in files.values(): # what it says is what replay shows
            shown = s.ask('/web/%s/%s' % (digits(r['time'] if not f['in'] else files[f['in']]['time']), f['url']),
                          headers={'Sec-Fetch-Dest': 'image'})
            assert (shown.status == 404) == (f['time'] is None or f['status'] == 404), (f, shown.status)
            assert f['time'] is None or digits(f['time']) in shown.field('Content-Location'), (f, shown.fields)
        assert s.get('/api/embedded', url=HOME, apart=0)['far'] == 4
        assert s.get('/api/embedded', url=HOME, apart=20 * 86400)['far'] == 0
        text = s.ask('/files', url=HOME).body.decode()
        assert '12 days later' in text and 'Missing: 2' in text and 'Apart: 3' in text, text
        assert 'rel="nofollow" href="/files?url=' in s.ask('/web/20250305120000/' + HOME).body.decode() or \
            '/files?url=' in s.ask('/web/20250305120000/' + HOME, headers={'Sec-Fetch-Dest': 'document'}).body.decode()


@test
def two_versions_side_by_side(folder):
    nasty = b'<script>x()</script><img src=x onerror=x()><svg onload=x()></svg><a href="javascript:x()">a</a>'
    pages = captures(HOME, '2025-01-01T00:00:00Z', body=b'<title>t</title><p>the old words' + nasty)
    pages += captures(HOME, '2025-02-01T00:00:00Z', body=b'<title>u</title><p>the new words and more' + nasty)
    pages += captures(SITE + '/text', '2025-01-01T00:00:00Z', body=b'<b>old', type='text/plain')
    pages += captures(SITE + '/text', '2025-02-01T00:00:00Z', body=b'<b>new', type='text/plain')
    with serving.Server(repository(folder, pages, index=False)) as s:
        times = {'a': '20250101000000', 'b': '20250201000000'}
        text = s.ask('/compare', url=HOME, **times).body.decode()
        assert '2 changes' in text and text.count('<iframe') == 2 and text.count('sandbox="allow-same-origin"') == 2, text
        sides = [s.ask('/compare/frame', url=HOME, **times, side=side) for side in 'ab']
        for side in sides:
            policy = side.field('Content-Security-Policy')
            assert 'allow-scripts' not in policy and "script-src 'none'" in policy and 'sandbox' in policy, policy
            assert "form-action 'none'" in policy and "frame-ancestors 'self'" in policy, policy
            assert side.field('Content-Type') == 'text/html; charset=utf-8', side.field('Content-Type')
        old, new = (side.body.decode() for side in sides)
        assert re.search('the <del id="webbase-change-1" style="[^"]*">old</del> words<.*<del id="webbase-change-2"', old), old
        assert re.search('the <ins id="webbase-change-1" style="[^"]*">new</ins> words <ins id="webbase-change-2" '
                         'style="[^"]*">and more</ins>', new), new
        assert '<title>u</title>' in new and '<ins' not in old and '<del' not in new
        text = s.ask('/compare', url=HOME, **times, change=2).body.decode()
        assert text.count('#webbase-change-2"') == 2 and 'change=1"' in text and 'change=3"' not in text, text
        text = s.ask('/compare', url=HOME, **times, view='text').body.decode()
        assert re.search('<del>old [^<]*</del><ins>new [^<]*</ins>', text) and '<iframe' not in text, text
        plain = s.ask('/compare/frame', url=SITE + '/text', **times, side='b')
        assert plain.body == b'<b>new' and plain.field('Content-Type').startswith('text/plain'), plain.body


@test
def of_a_version_that_was_captured_often_the_asked_capture_counts(folder):
    """Its label, the distances of its files, and what its frame shows; not those of its newest capture."""
    page = b'<title>t</title><link rel=stylesheet href=s.css><p>words'
    pages = captures(HOME, '2025-01-01T00:00:00Z', '2025-01-05T00:00:00Z', '2025-03-01T00:00:00Z', body=page)
    pages += captures(HOME, '2025-04-01T00:00:00Z', '2025-05-01T00:00:00Z', body=page + b' and more')
    pages += captures(SITE + '/s.css', '2025-01-05T02:00:00Z', '2025-03-01T02:00:00Z', body=b'p{}', type='text/css')
    with serving.Server(repository(folder, pages, index=False)) as s:
        for asked, captured in (('20250105000000', '2025-01-05 00:00:00'), ('20250110', '2025-01-05 00:00:00'),
                                ('2024', '2025-01-01 00:00:00'), ('2026', '2025-05-01 00:00:00')):
            text = s.ask('/files', url=HOME, time=asked).body.decode()
            assert re.search('was captured <a href="/web/%s/[^>]*><time[^>]*>%s' % (digits(captured), captured), text), text
            text = s.ask('/compare', url=HOME, a=asked, b='20250405').body.decode()
            assert re.search('Before</b> <a href="/web/%s/[^>]*><time[^>]*>%s' % (digits(captured), captured), text), text
            assert 'After</b> <a href="/web/20250401000000/' in text, text
            text = s.ask('/compare', url=HOME, a=asked, b='20250405', view='text').body.decode()
            assert re.search('From <time[^>]*>%s' % captured, text), text
        same = s.ask('/compare', url=HOME, a='20250101', b='20250301').body.decode()
        assert 'Nothing changed' in same and 'Removed' not in same and '/web/20250301000000/' in same, same
        sheet = s.ask('/files', url=SITE + '/s.css').body.decode()
        assert 'no files' in sheet and 'Apart' not in sheet, sheet
        file, = s.get('/api/embedded', url=HOME, time='20250105000000')['files']
        assert file['seconds'] == 7200 and file['time'] == '2025-01-05T02:00:00.000Z', file
        frame = s.ask('/compare/frame', url=HOME, a='20250105000000', b='20250405', side='a').body.decode()
        assert '/web/20250105000000' in frame and '20250301' not in frame, frame


@test
def the_bar(folder):
    pages = captures(HOME, '2025-01-01T00:00:00Z', '2025-01-04T00:00:00Z', '2025-01-04T02:00:00Z')
    with serving.Server(repository(folder, pages, index=False)) as s:
        bar = s.ask('/bar', url=HOME, time='20250104000000').body.decode()
        for want in ('3 days earlier', '2 of 3', '2 hours later', '/web/20250101000000/' + HOME, '/files?url=',
                     '/compare?url=http://site.example/&amp;a=20250101000000&amp;b=20250104000000', '/web/*/' + HOME):
            assert want in bar, (want, bar)
        first = s.ask('/bar', url=HOME, time='20250101000000').body.decode()
        assert 'earlier' not in first and '/compare' not in first and '1 of 3' in first, first
        for params in ({}, {'time': 'x'}, {'time': '2025'}):
            assert s.ask('/bar', url=HOME, **params).status == 400, params
        # Over "not in the archive" there is a bar too, which knows nothing of the page before.
        missing = s.ask('/bar', url='http://nowhere.example/x', time='20250101000000')
        text = missing.body.decode()
        assert missing.status == 200 and 'not stored' in text and '/web/*/http://nowhere.example/*' in text, text
        assert not re.search(r'\d of \d', text) and 'earlier' not in text and '/files' not in text, text


@test
def captures_between_those_that_only_a_snapshot_keeps(folder):
    """A page went, and a snapshot still has its version; then an older archive brings a capture of the time between."""
    repo, body = folder / 'r', b'<title>a</title><p>first words'
    call(repo, 'init', '--history', 'newest')
    with served(folder / 'site') as (site, url):
        (site / 'index.html').write_bytes(b'<a href="b.html">b</a>')
        (site / 'b.html').write_bytes(body)
        page = url + 'b.html'
        crawl = ['crawl', url, '--allow-private', '--delay', '0', '--no-sitemaps']
        call(repo, *crawl)
        call(repo, 'import', archive(folder / 'old.warc', captures(page, '2024-01-01T00:00:00Z', body=body)))
        assert len(ask(repo, 'versions', page)) == 1
        call(repo, 'snapshot')
        (site / 'b.html').unlink()
        call(repo, *crawl)
    call(repo, 'update')
    call(repo, 'expunge')
    call(repo, 'history', 'all')
    call(repo, 'import', archive(folder / 'between.warc', captures(page, '2024-06-01T00:00:00Z', body=b'other words')))
    with serving.Server(repo) as s:
        times = [line.split()[1] for line in s.ask('/cdx', url=page).body.decode().splitlines()]
        assert len(times) == 3 and times == sorted(times) and times[1] == '20240601000000', times
        assert b'other words' in s.ask('/web/20240601000000id_/' + page).body
        shown = s.ask('/web/20240615000000/' + page)
        assert '/web/20240601000000/' in shown.field('Location'), shown.headers
        newest = s.ask('/web/' + page)
        assert '/web/%s/' % times[2] in newest.field('Location'), (newest.field('Location'), times)
        bar = s.ask('/bar', url=page, time='20240601000000').body.decode()
        assert '/web/%s/' % times[0] in bar and '/web/%s/' % times[2] in bar, bar


@test
def very_many_captures(folder):
    """Answers of one URL with 20,000 captures are bounded, and so is the page."""
    times = [(datetime.datetime(2020, 1, 1) + datetime.timedelta(minutes=7 * i)).strftime('%Y-%m-%dT%H:%M:%SZ')
             for i in range(20000)]
    with serving.Server(repository(folder, captures(HOME, *times), index=False)) as s:
        r = s.get('/api/calendar', url=HOME)
        assert r['captures'] == 20000 and sum(row[1] for row in r['spans']) == 20000 and len(r['spans']) <= 100000
        page = s.ask('/calendar', url=HOME, day='2020-01-02')
        assert len(page.body) < 200000 and re.search('>[56] more<', page.body.decode()), len(page.body)
        assert s.get('/api/calendar', url=HOME, **{'from': '2020', 'to': '2020'}, limit=10)['next'] == 10
        assert '20,000' in s.ask('/bar', url=HOME, time='20200101000000').body.decode()


run()
