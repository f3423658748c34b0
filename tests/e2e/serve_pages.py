#!/usr/bin/env python3
"""The web pages without a browser: fields, errors, escaping, who may read and give orders; and that docs/http.md
has every page."""
import base64, gzip, json, re, urllib.parse
from html.parser import HTMLParser

from e2e import *
from crawlserver import Server, page, start, until
import serving

TOKEN = 'secret-of-the-test'
NASTY = '</title><script>alert(1)</script>"\'><img src=x onerror=alert(1)>'


class Serving(serving.Server):
    """Answers are (status, fields, body): most tests here need one of these."""

    def __init__(self, repo, *args, **more):
        super().__init__(repo, *args, token=TOKEN, **more)

    def fetch(self, path, method='GET', body=None, **fields):
        r = self.ask(path, method, {k.replace('_', '-'): v for k, v in fields.items()}, body)
        return r.status, r.headers, r.body.decode()

    def order(self, path, token=TOKEN, **body):
        fields = {'Authorization': 'Bearer ' + token} if token else {}
        status, _, text = self.fetch(path, 'POST', json.dumps(body), **fields)
        return status, json.loads(text)


class Markup(HTMLParser):
    """All tags of a page, and whether each that must be closed is."""
    VOID = {'meta', 'link', 'input', 'img', 'br'}

    def __init__(self, text):
        super().__init__()
        self.tags, self.open, self.ids = [], [], []
        self.feed(text)
        assert not self.open, 'not closed: %s' % self.open

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        self.ids += [v for k, v in attrs if k == 'id']
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag):
        assert self.open and self.open.pop() == tag, '</%s> closes another element' % tag


def quote(text):
    return urllib.parse.quote(text, safe='')


def repository(folder):
    repo = folder / 'r'
    body = '<html><title>%s</title><body>wombat %%s <a href="http://b.example/">%s</a><a href="/lost">x</a></body>' % (
        NASTY.replace('<', '&lt;'), NASTY.replace('<', '&lt;'))
    pages = [Page('http://a.example/', (body % 'one').encode(), '2026-01-01T00:00:00Z'),
             Page('http://a.example/', (body % 'two').encode(), '2026-01-02T00:00:00Z'),
             Page('http://b.example/', b'<title>B</title>wombat', '2026-01-01T00:00:00Z')]
    call(repo, 'init', '--history', 'all')
    assert done(ask(repo, 'import', archive(folder / 'a.warc', pages)))['errors'] == 0
    call(repo, 'index')
    return repo


def checked(reply, status, what):
    """A page of ours: its fields, well-formed, nothing that came from elsewhere is markup, every id once."""
    got, fields, text = reply
    assert got == status, '%s: %d, %s' % (what, got, text[:200])
    assert fields['Content-Type'] == 'text/html; charset=utf-8', fields['Content-Type']
    policy = fields['Content-Security-Policy']
    assert "default-src 'self'" in policy and 'unsafe' not in policy, policy
    assert fields.get_all('X-Content-Type-Options') == ['nosniff'] and fields['Referrer-Policy'] == 'same-origin'
    page = Markup(text)
    assert len(set(page.ids)) == len(page.ids), '%s: an id is there twice' % what
    for tag, attrs in page.tags:
        assert not any(k.startswith('on') or k == 'style' for k in attrs), (what, tag, attrs)
        assert tag != 'script' or attrs['src'].startswith('/assets/'), (what, attrs)
        assert attrs.get('src') != 'x', (what, tag)
        assert not attrs.get('href', '').lower().startswith(('javascript:', 'data:')), (what, attrs)
    assert sum(tag == 'h1' for tag, _ in page.tags) == 1, '%s: not one h1' % what
    return page


@test
def pages_are_sound_whatever_is_asked(folder):
    with Serving(repository(folder)) as s:
        a = quote('http://a.example/')
        for path, status in (('/', 200), ('/?q=', 200), ('/?q=wombat', 200), ('/?q=wombat&offset=500', 200),
                             ('/?q=(wombat', 400), ('/?q=wombat&offset=x', 400), ('/?q=wombat&sort=colour', 400),
                             ('/page?url=' + a, 200), ('/page?url=%s&a=2026&b=20260102000000' % a, 200),
                             ('/page?url=%s&a=x&b=y' % a, 400), ('/page?url=%s&a=2026' % a, 400), ('/page', 400),
                             ('/page?url=%s&in=x' % a, 400), ('/page?url=http://nowhere.example/', 404),
                             ('/page?url=' + quote('http://a.example/lost'), 200), ('/page?url=javascript:alert(1)', 404),
                             ('/site?host=a.example', 200), ('/site?host=a.example&why=1', 200), ('/site', 400),
                             ('/site?host=nowhere.example', 404), ('/site?host=%2F%2F', 400), ('/dash', 200),
                             ('/web/2026/http://nowhere.example/', 404)):
            checked(s.fetch(path), status, path)
            for name in ('q', 'url', 'host', 'sort', 'a', 'limit'):
                nasty = s.fetch(path + ('&' if '?' in path else '?') + name + '=' + quote(NASTY))
                if nasty[1]['Content-Type'].startswith('text/html'):
                    checked(nasty, nasty[0], '%s with a nasty %s' % (path, name))
        checked(s.fetch('/' + quote(NASTY), Accept='text/html,*/*'), 404, 'a nasty path')
        assert s.fetch('/nowhere')[1]['Content-Type'] == 'application/json'
        assert s.fetch('/dash', 'POST', '')[0] == 405


@test
def without_an_index(folder):
    repo = folder / 'r'
    call(repo, 'init')
    with Serving(repo) as s:
        for path, status in (('/', 200), ('/?q=x', 503), ('/dash', 200), ('/page?url=http://a.example/', 404),
                             ('/site?host=a.example', 404)):
            checked(s.fetch(path), status, path)
        ask(repo, 'import', archive(folder / 'a.warc', [Page('http://a.example/', b'<title>Alpha</title>one')]))
        checked(s.fetch('/page?url=http://a.example/'), 200, 'a page that is not indexed')
        assert '<h1>Alpha</h1>' in s.fetch('/page?url=http://a.example/')[2]


@test
def what_changed_is_shown_as_text(folder):
    with Serving(repository(folder)) as s:
        text = s.fetch('/page?url=%s&a=20260101000000&b=20260102000000' % quote('http://a.example/'))[2]
        assert re.search('<del>one ?</del><ins>two ?</ins>', text), text
        same = s.fetch('/page?url=%s&a=20260102000000&b=20260102000000' % quote('http://a.example/'))[2]
        assert 'The text is the same' in same


@test
def opensearch_robots_and_icon(folder):
    with Serving(repository(folder)) as s:
        _, fields, text = s.fetch('/opensearch.xml')
        assert fields['Content-Type'] == 'application/opensearchdescription+xml'
        assert '"%s/?q={searchTerms}"' % s.url in text, text
        assert s.fetch('/robots.txt')[2] == 'User-agent: *\nDisallow: /\n'
        assert s.fetch('/favicon.ico')[1]['Content-Type'] == 'image/svg+xml'
        for path in re.findall(r'(?:href|src)="(/assets/[^"]*)"', s.fetch('/dash')[2]):
            status, fields, _ = s.fetch(path)
            assert status == 200 and s.fetch(path, If_None_Match=fields['ETag'])[0] == 304, path


@test
def a_password_is_good_for_reading_only(folder):
    def basic(password):
        return 'Basic ' + base64.b64encode(b'anyone:' + password.encode()).decode()
    with Serving(repository(folder), listen='0.0.0.0:0') as s:
        status, fields, text = s.fetch('/?q=wombat')
        assert status == 401 and 'Basic' in str(fields.get_all('WWW-Authenticate')), fields
        Markup(text)
        assert s.fetch('/?q=wombat', Authorization=basic(TOKEN))[0] == 200
        assert s.fetch('/api/dash', Authorization=basic(TOKEN))[0] == 200
        for wrong in (basic('wrong-token'), basic(''), basic(TOKEN + 'x'), 'Basic', 'Basic !!!!', 'Basic ' + 'A' * 4000,
                      'Basic ' + base64.b64encode(TOKEN.encode()).decode()):
            assert s.fetch('/?q=wombat', Authorization=wrong)[0] == 401, wrong
        for path in ('/api/expunge', '/api/control/pause'):
            assert s.fetch(path, 'POST', '{}', Authorization=basic(TOKEN))[0] == 401, path
        assert 'WWW-Authenticate' not in s.fetch('/assets/webbase.css')[1]


@test
def takedown_needs_the_token(folder):
    repo = repository(folder)
    with Serving(repo, '--push-token', 'token-of-provider=a.example') as s:
        url = '/page?url=' + quote('http://a.example/')
        assert s.order('/api/expunge', None, what='http://a.example/')[0] == 401
        assert s.order('/api/expunge', 'wrong-token', what='http://a.example/')[0] == 401
        assert s.order('/api/expunge', 'token-of-provider', what='http://a.example/')[0] == 403
        for body in ('', '[]', '{', '{"what":3}', '{"what":""}', '{"what":"a","what":"b"}', '\0'):
            status, _, text = s.fetch('/api/expunge', 'POST', body, Authorization='Bearer ' + TOKEN)
            assert status == 400 and 'error' in json.loads(text), (body, status)
        assert s.fetch('/api/expunge', 'POST', 'x' * 100000, Authorization='Bearer ' + TOKEN)[0] == 413
        assert s.fetch(url)[0] == 200
        status, answer = s.order('/api/expunge', what='http://a.example/')
        assert status == 200 and answer['pages'] == 1, answer
        assert s.fetch(url)[0] == 404 and s.fetch('/web/2026/http://a.example/')[0] == 404
        for path in ('/?q=wombat', '/page?url=' + quote('http://b.example/'), '/site?host=a.example'):
            text = s.fetch(path)[2]
            assert '/page?url=http://a.example/"' not in text and 'alert' not in text, path
        assert s.order('/api/expunge', what='http://a.example/', allow=True)[0] == 200
        assert s.order('/api/expunge', what='http://a.example/', allow=True)[0] == 404


@test
def orders_reach_the_crawl(folder):
    site = {'/': page(*['/%d' % n for n in range(3000)]), '*': lambda r: page(text=r.path)}
    with Server({'a.test': site, 'b.test': site}) as server:
        crawl = start(folder / 'r', server, *[server.url(h) for h in server.sites], '--delay', 0.05)
        until(lambda: len(server.paths('a.test')) > 3)
        with Serving(folder / 'r') as s:
            name = 'a.test:%d' % server.port
            assert s.order('/api/control/pause', None)[0] == 401
            assert s.order('/api/control/dance')[0] == 404
            assert s.order('/api/control/stop')[0] == 400 and s.order('/api/control/delay', site=name)[0] == 400
            assert s.order('/api/control/delay', site=name, delay=-1)[0] == 400
            assert s.order('/api/control/delay', site='nowhere.test', delay=1)[0] == 404
            assert s.order('/api/control/pause') == (200, {'crawls': [{'paused': True}]})
            until(lambda: any(c['paused'] for c in json.loads(s.fetch('/api/dash')[2])['crawls']))
            assert s.order('/api/control/resume') == (200, {'crawls': [{'paused': False}]})
            assert s.order('/api/control/delay', site=name, delay=2.5)[1]['crawls'][0]['delay'] == 2.5
            assert s.order('/api/control/stop', site=name)[1]['crawls'][0]['stopped'] is True
            until(lambda: json.loads(s.fetch('/api/dash')[2])['crawls'][0]['stopped'] == [name])
        crawl.terminate()
        crawl.wait(PATIENCE)
        with Serving(folder / 'r') as s:
            status, answer = s.order('/api/control/pause')
            assert status == 404 and 'crawl' in answer['error'], answer


@test
def the_dashboard_samples(folder):
    with Serving(repository(folder)) as s:
        def data(since=0):
            return json.loads(s.fetch('/api/dash?since=%d' % since)[2])
        until(lambda: len(data()['series']['time']) >= 2)
        first = data()
        lengths = {name: len(values) for name, values in first['series'].items()}
        assert len(set(lengths.values())) == 1, lengths
        assert first['series']['pages'][-1] == 2 and 0 <= first['series']['freshness'][-1] <= 1, first['series']
        assert first['stat']['pages'] == 2 and len(first['snapshots']) == first['snapshot_count'] == 1
        times = first['series']['time']
        assert times == sorted(times) and all(t > times[-2] for t in data(times[-2])['series']['time'])
        assert s.fetch('/api/dash?since=x')[0] == 400


def digits(time):
    return re.sub('[^0-9]', '', time)[:14]


@test
def files_of_a_page_are_those_of_its_crawl(folder):
    """What a replayed page names is the capture nearest to it: files are fetched after their page."""
    repo, dates = folder / 'r', ('2026-01-01T10:00:00Z', '2026-01-02T10:00:00Z', '2026-01-03T10:00:00Z')
    after = [d.replace('00Z', '40Z') for d in dates]
    records = [Page('http://a.example/', b'<link rel=stylesheet href=/s.css><img src=/i.png><a href=/next>n</a>%d' % n, d)
               for n, d in enumerate(dates)]
    records += [Page('http://a.example/s.css', b'a{b:c%d}' % n, d, 'text/css') for n, d in enumerate(after)]
    records += [Page('http://a.example/next', b'next%d' % n, d) for n, d in enumerate(after[:2])]
    records += [Page('http://a.example/i.png', b'old image', after[0], 'image/png')]
    call(repo, 'init', '--history', 'all')
    ask(repo, 'import', archive(folder / 'a.warc', records))
    with Serving(repo) as s:
        for n, date in enumerate(dates):
            text = s.fetch('/web/%s/http://a.example/' % digits(date))[2]
            for name, want, time in (('s.css', 'c%d' % n, after[n]), ('next', 'next%d' % min(n, 1), after[min(n, 1)]),
                                     ('i.png', 'old image', after[0])):
                path = re.search('"?(/web/%s/http://a.example/%s)' % (digits(date), name), text)[1]
                status, fields, _ = s.fetch(path)       # a browser is led to the time of the capture...
                assert status == 302 and fields['Location'] == '/web/%s/http://a.example/%s' % (digits(time), name), (n, name, fields['Location'])
                assert want in s.fetch(fields['Location'])[2]
                status, fields, body = s.fetch(path, Sec_Fetch_Dest='style')        # ...or gets it at once for a page
                assert status == 200 and want in body and fields['Memento-Datetime'], (n, name, body)
        # A day, or a date for the timegate, means the state at that time, not the nearest capture.
        assert s.fetch('/web/20260102/http://a.example/s.css')[1]['Location'] == '/web/%s/http://a.example/s.css' % digits(after[1])
        gate = s.fetch('/web/http://a.example/s.css', Accept_Datetime='Sat, 03 Jan 2026 10:00:39 GMT')[1]
        assert gate['Location'] == '/web/%s/http://a.example/s.css' % digits(after[1]) and gate['Vary'] == 'accept-datetime'


@test
def parts_compression_and_tags(folder):
    repo, data, text = folder / 'r', bytes(range(256)) * 20, b'<p>' + b'words of a long page ' * 200
    ask(repo, 'import', archive(folder / 'a.warc', [Page('http://a.example/film', data, type='video/mp4'), Page('http://a.example/', text),
                                                    Page('http://a.example/short', b'<p>x'), Page('http://a.example/gone', data, type='video/mp4', status='404 Not Found')]))
    with Serving(repo) as s:
        for path in ('/web/20260102030405/http://a.example/film', '/web/20260102030405id_/http://a.example/film'):
            whole = s.ask(path)
            assert whole.body == data and whole.field('Accept-Ranges') == 'bytes' and whole.field('Content-Encoding') is None
            tag = whole.field('ETag')
            for field, more, want in (('bytes=5-9', {}, (206, data[5:10], 'bytes 5-9/5120')), ('bytes=-3', {}, (206, data[-3:], 'bytes 5117-5119/5120')),
                                      ('bytes=5120-', {}, (416, None, 'bytes */5120')), ('bytes=0-1,4-5', {}, (200, data, None)),
                                      ('bytes=5-9', {'If-Range': tag}, (206, data[5:10], 'bytes 5-9/5120')),
                                      ('bytes=5-9', {'If-Range': '"other"'}, (200, data, None)),
                                      ('bytes=5-9', {'If-None-Match': tag}, (304, b'', None))):
                r = s.ask(path, headers={'Range': field, 'Accept-Encoding': 'gzip', **more})
                assert (r.status, r.field('Content-Range')) == (want[0], want[2]) and want[1] in (None, r.body), (path, field, r.status, r.fields)
            assert s.ask(path, 'HEAD', headers={'Range': 'bytes=0-9'}).field('Content-Length') == '10'
        r = s.ask('/web/20260102030405/http://a.example/gone', headers={'Range': 'bytes=0-9'})
        assert r.status == 404 and r.body == data
        page, packed = s.ask('/web/20260102030405/http://a.example/'), s.ask('/web/20260102030405/http://a.example/', headers={'Accept-Encoding': 'br, gzip'})
        assert text in page.body and page.field('Content-Encoding') is None and page.field('Cache-Control') == 'private, no-cache'
        assert gzip.decompress(packed.body) == page.body and packed.field('Content-Encoding') == 'gzip'
        assert packed.field('ETag') == 'W/' + page.field('ETag') and page.field('Vary') == packed.field('Vary') == 'Sec-Fetch-Dest, Accept-Encoding'
        for tag in (page.field('ETag'), packed.field('ETag'), '"x", ' + page.field('ETag')):
            r = s.ask('/web/20260102030405/http://a.example/', headers={'If-None-Match': tag})
            assert r.status == 304 and not r.body and 'sandbox' in r.field('Content-Security-Policy')
        for fields in ({'If-None-Match': '"x"'}, {'If-None-Match': page.field('ETag'), 'Sec-Fetch-Dest': 'iframe'}):       # there it has no bar
            assert s.ask('/web/20260102030405/http://a.example/', headers=fields).status == 200
        assert s.ask('/web/20260102030405id_/http://a.example/short', headers={'Accept-Encoding': 'gzip'}).field('Content-Encoding') is None
        for path in ('/page?url=http://a.example/', '/api/openapi.json', '/assets/webbase.css'):
            r, plain = s.ask(path, headers={'Accept-Encoding': 'gzip'}), s.ask(path, headers={'Accept-Encoding': 'gzip;q=0'})
            assert gzip.decompress(r.body) == plain.body and 'Accept-Encoding' in r.field('Vary'), path
        tag = s.ask('/assets/webbase.css', headers={'Accept-Encoding': 'gzip'}).field('ETag')
        assert tag.startswith('W/') and s.ask('/assets/webbase.css', headers={'If-None-Match': tag}).status == 304


@test
def pages_without_a_type(folder):
    def bare(url, body, *fields):
        head = '\r\n'.join(['HTTP/1.1 200 OK', *fields, 'Content-Length: %d' % len(body), '', ''])
        return record(url, head.encode() + body, '2026-01-02T03:04:05Z')
    html = b'<!DOCTYPE html><title>Untyped</title><a href=/other>x</a>'
    write_archive(folder / 'a.warc', [bare('http://a.example/', html), bare('http://a.example/png', b'\x89PNG\r\n\x1a\n\0'), bare('http://a.example/text', b'x' + html),
                                      bare('http://a.example/plain', html, 'Content-Type: text/plain'), bare('http://a.example/unknown', html, 'Content-Type: unknown/unknown')])
    ask(folder / 'r', 'import', folder / 'a.warc')
    with Serving(folder / 'r') as s:
        for name, want in (('', 'text/html'), ('png', 'image/png'), ('text', 'text/plain'), ('plain', 'text/plain'), ('unknown', 'text/html')):
            for modifier in ('', 'id_'):
                r = s.ask('/web/20260102030405%s/http://a.example/%s' % (modifier, name))
                assert r.status == 200 and r.field('Content-Type').split(';')[0] == want and r.field('X-Content-Type-Options') == 'nosniff', (name, r.fields)
                assert 'sandbox' in r.field('Content-Security-Policy') and r.field('Content-Disposition') is None
        assert b'/web/20260102030405/http://a.example/other' in s.ask('/web/20260102030405/http://a.example/').body


@test
def versions_of_one_minute_are_told_apart(folder):
    repo, dates = folder / 'r', ('2026-01-02T10:17:05Z', '2026-01-02T10:17:41Z', '2026-01-02T10:17:59Z')
    call(repo, 'init', '--history', 'all')
    ask(repo, 'import', archive(folder / 'a.warc', [Page('http://a.example/', b'<p>%d' % n, d) for n, d in enumerate(dates)]))
    with Serving(repo) as s:
        text = s.fetch('/page?url=http://a.example/')[2]
        for second in ('05', '41', '59'):
            assert '2026-01-02 10:17:%s UTC</time></a>' % second in text, second
        parts = [json.loads(s.fetch('/api/versions?url=http://a.example/&limit=2&after=%d' % n)[2]) for n in (0, 2, 5)]
        assert [[v['version'] for v in p['versions']] for p in parts] == [[1, 2], [3], []] and [p['next'] for p in parts] == [2, None, None], parts
        assert s.fetch('/api/versions?url=http://a.example/&limit=10001')[0] == 400


@test
def a_browser_gets_a_bar_and_a_frame(folder):
    repo, place = folder / 'r', '/web/20260102030405%s/http://a.example/%s'
    ask(repo, 'import', archive(folder / 'a.warc', [Page('http://a.example/', b'<p>stored<a href=/n target=_self>n</a><meta http-equiv=refresh content="3;url=/n">'),
                                                    Page('http://a.example/i', b'GIF89a', type='image/gif'), Page('http://a.example/z', b'PK', type='application/zip')]))
    with Serving(repo) as s:
        def seen(path, **fields):
            status, reply, text = s.fetch(path, **fields)
            policy = reply['Content-Security-Policy']
            assert reply['Referrer-Policy'] == 'no-referrer' and reply['X-DNS-Prefetch-Control'] == 'off', reply
            assert 'allow-same-origin' not in policy + text and 'allow-scripts' not in policy + text
            what = 'stage' if '<iframe' in text else 'page'
            assert (what == 'page') == policy.startswith('sandbox ') == ("script-src 'none'" in policy), policy
            assert what == 'page' or "frame-src 'self'" in policy and "frame-ancestors 'none'" in policy
            return status, what, 'Archived page</summary>' in text, text
        status, what, _, text = seen(place % ('', ''), Sec_Fetch_Dest='document')
        assert (status, what) == (200, 'stage') and 'src="%s"' % (place % ('mp_', '')) in text and '2026-01-02 03:04:05 UTC' in text, text
        assert s.fetch(place % ('', ''), Sec_Fetch_Dest='document')[1]['Refresh'] == '3;url=' + place % ('', 'n')
        assert seen(place % ('', 'i'), Sec_Fetch_Dest='document')[1] == 'stage'
        assert seen(place % ('', 'z'), Sec_Fetch_Dest='document')[1] == 'page'
        framed = seen(place % ('mp_', ''), Sec_Fetch_Dest='iframe')
        assert framed[:3] == (200, 'page', False) and '<base target="_top" />' in framed[3] and 'target=_self' not in framed[3], framed
        inner = seen(place % ('', ''), Sec_Fetch_Dest='iframe')
        assert inner[:3] == (200, 'page', False) and '<base' not in inner[3] and 'target=_self' in inner[3], inner
        for fields in ({}, {'User_Agent': 'Mozilla/5.0 (X11; Linux x86_64)'}):   # a program, and a browser that says nothing
            assert seen(place % ('', ''), **fields)[:3] == (200, 'page', True)
        assert seen(place % ('id_', ''), Sec_Fetch_Dest='document')[:3] == (200, 'page', False)
        assert s.fetch(place % ('mp_', ''), Sec_Fetch_Dest='document')[1]['Location'] == place % ('', '')


@test
def a_url_in_the_search_box(folder):
    pages = [Page('http://www.shop.example/guide/a~b', b'<title>Shop</title>zqshop'), Page('https://plain.example/x/y?id=3', b'<title>Plain</title>'),
             Page('http://plain.example/wiki/Foo_(bar)', b'<title>Foo</title>'), Page('http://node.js/', b'<title>A site</title>'),
             Page('http://words.example/', b'<title>Words</title>node.js is written with a dot, www shop example guide a b')]
    repo = folder / 'r'
    call(repo, 'import', archive(folder / 'box.warc', pages))
    call(repo, 'update')
    call(repo, 'index')
    spellings = {
        pages[0].url: ['http://www.shop.example/guide/a~b', 'www.shop.example/guide/a~b', 'shop.example/guide/a~b/', 'https://SHOP.example./guide/a%7eb#top',
                       '  HTTP://www.Shop.Example:80/guide/x/../a~b ', '<http://www.shop.example/guide/a~b>', '//shop.example/guide/a~b',
                       'http%3A%2F%2Fwww.shop.example%2Fguide%2Fa~b', 'shop.example:80/guide/a~b', 'shop.example:443/guide/a~b',
                       'http://user:word@shop.example/guide/a~b'],
        pages[1].url: ['plain.example/x/y?id=3', 'www.plain.example/x/y/?id=3', 'http://plain.example/x/y?id=3'],
        pages[2].url: ['plain.example/wiki/Foo_(bar)', 'http://plain.example/wiki/Foo_%28bar%29'],
        pages[3].url: ['http://node.js', 'www.node.js/'],
    }
    with Serving(repo) as s:
        for url, ways in spellings.items():
            for typed in ways:
                answer = json.loads(s.fetch('/api/search?' + urllib.parse.urlencode({'q': typed, 'facet': 'site'}))[2])
                assert [h['url'] for h in answer['hits']][:1] == [url], (typed, answer)
                assert answer['total'] == len(answer['hits']) == sum(x['count'] for x in answer['facets']['site']), answer
                r = s.ask('/?' + urllib.parse.urlencode({'q': typed}))
                assert r.status == 302 and urllib.parse.unquote(r.field('Location')) == '/page?url=' + url, (typed, r.status, r.fields)
                assert s.ask(r.field('Location')).status == 200
                assert [h['url'] for h in ask(repo, 'search', typed) if 'url' in h][:1] == [url], typed
        # What may as well be a word shows results; so does anything that the language says.
        for typed, first, total in (('node.js', pages[3].url, 2), ('"node.js"', None, 2), ('site:plain.example', None, 2), ('site:plain.example/x', None, 2),
                                    ('url:shop.example/guide', pages[0].url, 1), ('http://nowhere.example/', None, 0), ('-site:plain.example', None, 3)):
            answer = json.loads(s.fetch('/api/search?' + urllib.parse.urlencode({'q': typed}))[2])
            assert total is None or answer['total'] == total, (typed, answer)
            assert first is None or answer['hits'][0]['url'] == first, (typed, answer)
            assert s.ask('/?' + urllib.parse.urlencode({'q': typed})).status == 200, typed
        nowhere = s.ask('/?' + urllib.parse.urlencode({'q': 'http://nowhere.example/a"b'})).body.decode()
        assert 'href="/web/*/http://nowhere.example/*"' in nowhere and 'href="http://nowhere.example/a&quot;b"' in nowhere, nowhere
        words = s.ask('/?q=zqnothing').body.decode()
        assert 'No page matches' in words and 'not stored' not in words, words
        # The place among the results is that of the first one only in the usual order.
        answer = json.loads(s.fetch('/api/search?q=node.js&offset=1')[2])
        assert [h['url'] for h in answer['hits']] == [pages[4].url] and answer['total'] == 2, answer
        assert s.ask('/?q=http://node.js/&sort=date').status == 200
        # A page that no index knows yet.
        call(repo, 'import', archive(folder / 'late.warc', [Page('http://late.example/x', b'late')]))
        for typed in ('http://late.example/x', 'Late.example/x/#y'):
            r = s.ask('/?' + urllib.parse.urlencode({'q': typed}))
            assert r.status == 302 and s.ask(r.field('Location')).status == 200, (typed, r.status, r.field('Location'))


@test
def the_manual_has_every_page(folder):
    routes = re.findall(r'^    \{"(/[^"]*)", ', (ROOT / 'src/serve/routes.c').read_text(), re.M)
    manual = (ROOT / 'docs/http.md').read_text()
    for path in routes:
        assert re.search(r'(?:GET|POST) %s' % re.escape(path), manual), 'docs/http.md does not have %s' % path


run()
