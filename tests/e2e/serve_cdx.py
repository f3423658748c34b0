#!/usr/bin/env python3
"""The CDX server, and Memento, against a model in Python: random collections with several captures of each page."""
import base64, calendar, email.utils, re, time, urllib.parse

from e2e import *
from serving import *

FIELDS = ['urlkey', 'timestamp', 'url', 'mime', 'status', 'digest', 'length', 'redirect']
IA = {'url': 'original', 'mime': 'mimetype', 'status': 'statuscode'}
HOSTS = ['a.example', 'www.a.example', 'b.example', 'sub.b.example', 'deep.sub.b.example', 'notb.example', 'b.example.org',
         'a-b.example', 'b.example:8080', 'xn--bcher-kva.example', '192.0.2.7']


# ---- the model -------------------------------------------------------------------------

def urlkey(url):
    """The key that pywb has for a URL, of the kinds that are here."""
    site, path, query = re.fullmatch(r'https?://([^/]+)(/[^?]*)(\??.*)', url).groups()
    host, _, port = re.sub(r'^www\d*\.', '', site).partition(':')
    labels = ','.join(reversed(host.split('.')))
    path = urllib.parse.quote(urllib.parse.unquote_to_bytes(path), "!\"$&'()*+,-./:;<=>?@[\\]^_`{|}~")
    query = query.strip('?') and '?' + '&'.join(sorted(query[1:].split('&')))
    return (labels + (':' + port if port else '') + ')' + (path.rstrip('/') or '/') + query).lower()


class Model:
    """rows: a dictionary of fields for each capture, in the order of the answer."""

    def __init__(self):
        self.captures = {}      # key: {URL: [Page]}

    def add(self, page):
        self.captures.setdefault(urlkey(page.url), {}).setdefault(page.url, []).append(page)

    def rows_of(self, key):
        """The captures of all pages that have this key; no two of them have the same time."""
        return sorted((r for pages in self.captures[key].values() for r in self.rows_of_page(key, pages)), key=lambda r: r['timestamp'])

    def rows_of_page(self, key, pages):
        rows, before = [], None
        for p in sorted(pages, key=lambda p: p.date):
            same = before is not None and before.body == p.body
            first = first if same else p
            place = [h.split(': ', 1)[1] for h in first.headers if h.startswith('Location: ')]
            rows.append(dict(urlkey=key, timestamp=re.sub(r'\D', '', p.date)[:14], url=first.url,
                             mime='warc/revisit' if same else first.type.split(';')[0], status=first.status[:3],
                             digest=base64.b32encode(hashlib.sha1(first.body).digest()).decode(),
                             length=str(len(first.body)), redirect=place[0] if place else ''))
            before = p
        return rows

    def select(self, url, match):
        """Keys that match."""
        site = re.sub(r'^www\d*\.', '', re.sub(r'^https?://', '', url).split('/')[0])
        wanted = urlkey(url if url.count('/') > 2 else 'http://%s/' % site)
        if match == 'prefix' and url.endswith('/') and not wanted.endswith('/'):
            wanted += '/'
        def fits(key):
            host, port = re.fullmatch(r'([^:)]*)(:\d+)?\).*', key).groups()
            name = '.'.join(reversed(host.split(',')))
            if match == 'exact':
                return key == wanted
            if match == 'prefix':
                return key.startswith(wanted)
            if match == 'host':
                return name + (port or '') == site
            return name + (port or '') == site or (':' not in site and (name == site or name.endswith('.' + site)))
        return sorted((k for k in self.captures if fits(k)), key=str.encode)

    def query(self, url, match, ia=False, **q):
        rows = [r for key in self.select(url, match) for r in self.rows_of(key)]
        rows = [r for r in rows if r['timestamp'][:len(q.get('from', ''))] >= q.get('from', '')
                and r['timestamp'][:len(q.get('to', ''))] <= q.get('to', '')]
        rows = [r for r in rows if all(passes(r, f, ia) for f in q.get('filter', []))]
        if q.get('sort') == 'reverse':
            rows.reverse()
        if 'closest' in q:
            at = seconds(q['closest'])
            rows.sort(key=lambda r: (abs(seconds(r['timestamp']) - at), r['timestamp']))
        rows = collapse(rows, q.get('collapse', []))
        limit = q.get('limit')
        if limit is not None and limit < 0:
            rows = rows[limit:]
        rows = rows[q.get('offset', 0):]
        return rows[:limit] if limit is not None and limit >= 0 else rows


def seconds(digits):
    return calendar.timegm(time.strptime(digits, '%Y%m%d%H%M%S'))


def passes(row, text, ia):
    negated, kind, name, value = re.fullmatch(r'(!?)([=~]?)(\w+):(.*)', text).groups()
    field = row[{v: k for k, v in IA.items()}.get(name, name)]
    if kind == '=':
        found = field == value
    elif kind == '~' or ia:
        found = bool(re.fullmatch(value, field) if ia else re.match(value, field))
    else:
        found = value in field
    return found != bool(negated)


def collapse(rows, by):
    out, before = [], None
    for r in rows:
        now = [r[f.split(':')[0]][:int(f.split(':')[1]) if ':' in f else None] for f in by]
        if not by or now != before:
            out.append(r)
        before = now
    return out


# ---- the collection --------------------------------------------------------------------

def variant(random_, url, k):
    """The k-th state of a URL: everything but the time depends on these two alone."""
    kind = random.Random('%s %d' % (url, k)).random()
    body = ('<title>%s</title><p>state %d</p>' % (url, k)).encode()
    if kind < 0.15:
        return dict(body=body + b'moved', status='301 Moved', headers=['Location: ' + random.Random(url).choice(
            ['/else where', 'http://b.example/?x=1&y="2"', 'https://a.example/\u00e4'])])
    if kind < 0.3:
        return dict(body=body + b'gone', status='404 Not Found')
    if kind < 0.4:
        return dict(body=body, type='application/pdf')
    return dict(body=body)


def collection(folder, random_, count=150, history='all'):
    model, repo = Model(), folder / 'r'
    call(repo, 'init', '--history', history)
    paths = ['/', '/a', '/a/b', '/a/b/c', '/ab', '/a?x=1', '/a?x=1&b=2', '/a/?q', '/A', '/%C3%A4', '/d/1', '/d/10', '/d/2', '/~u', '/x;y=(1)', '/e/*']
    urls = random_.sample(['http://' + h + p for h in HOSTS for p in paths], count)
    pages, moment = [], 1735689600      # 2025-01-01
    for _ in range(5):
        batch = []
        for u in random_.sample(urls, len(urls) * 2 // 3):
            moment += random_.choice([1, 1, 60, 3600, 86400])
            date = time.strftime('%Y-%m-%dT%H:%M:%SZ', time.gmtime(moment))
            batch.append(Page(u, date=date, **variant(random_, u, random_.randrange(3))))
        # Links to URLs of which nothing is stored: they are in the generation, but have no captures.
        batch.append(Page('http://links.example/', ''.join('<a href="%s">x</a>' % u for u in urls + ['http://b.example/never/%d' % n for n in range(20)]).encode(),
                          time.strftime('%Y-%m-%dT%H:%M:%SZ', time.gmtime(moment))))
        for p in batch:
            model.add(p)
        pages.append(batch)
    for n, batch in enumerate(pages):
        done(ask(repo, 'import', archive(folder / ('%d.warc' % n), batch)))
    call(repo, 'update')
    call(repo, 'index')
    model.urls = sorted({p.url for batch in pages for p in batch} - {'http://links.example/'})
    return repo, model


# ---- asking ------------------------------------------------------------------------------

def rows(s, path='/cdx', **q):
    """Full rows, from cdxj."""
    r = s.ask(path, **q)
    assert r.status == 200, (q, r.status, r.body)
    out = []
    for line in r.body.decode().split('\n')[:-1]:
        key, moment, rest = line.split(' ', 2)
        row = dict.fromkeys(FIELDS, '')
        row.update(json.loads(rest), urlkey=key, timestamp=moment)
        out.append(row)
    return out


def same(got, want, what):
    if got != want:
        at = next((i for i, (a, b) in enumerate(zip(got, want)) if a != b), min(len(got), len(want)))
        raise AssertionError('%s: %d rows, not %d; the first difference is %d:\n%s\n%s' % (
            what, len(got), len(want), at, got[at:at + 1], want[at:at + 1]))


def random_query(random_, model, ia=False):
    url = random_.choice(model.urls)
    match = random_.choice(['exact', 'prefix', 'prefix', 'host', 'domain', 'domain'])
    site = url.split('/')[2]
    if match == 'prefix':
        url = url[:random_.randrange(len('http://') + len(site) + 1, len(url) + 1)]
        if re.search(r'%.?$', url) or url.endswith('?'):
            url = 'http://%s/' % site
    elif match == 'host':
        url = site
    elif match == 'domain':
        url = random_.choice([site, 'example', 'b.example', 'org', 'nothing.example'])
    q = {}
    if random_.random() < 0.4:
        q['from'] = time.strftime('%Y%m%d%H%M%S', time.gmtime(1735689600 + random_.randrange(8000000)))[:random_.choice([4, 6, 8, 10, 14])]
    if random_.random() < 0.4:
        q['to'] = time.strftime('%Y%m%d%H%M%S', time.gmtime(1735689600 + random_.randrange(16000000)))[:random_.choice([4, 6, 8, 10, 14])]
    choices = ['=status:200', '!=status:404', 'mime:html', '!mime:revisit', '~status:[23]0.', '~urlkey:.*/a', '!~url:https?://b', 'url:d/1', '=redirect:', 'original:example/a']
    if ia:
        choices = ['statuscode:200', '!statuscode:404', 'mimetype:text/.*', '!mimetype:warc/revisit', 'statuscode:[23]0.', 'original:.*/a.*', 'urlkey:example,b.*', '=statuscode:301']
    if random_.random() < 0.5:
        q['filter'] = random_.sample(choices, random_.choice([1, 1, 2]))
    if random_.random() < 0.4:
        q['collapse'] = random_.sample(['digest', 'timestamp:4', 'timestamp:6', 'timestamp:8', 'urlkey', 'status', 'urlkey:9'], random_.choice([1, 1, 2]))
    if random_.random() < 0.3:
        q['sort'] = 'reverse'
    if random_.random() < 0.3:
        q['limit'] = random_.choice([0, 1, 5, 50, 10000])
    if random_.random() < 0.2:
        q['offset'] = random_.choice([0, 1, 7, 100])
    if random_.random() < 0.15 and 'offset' not in q and 'sort' not in q and not (match != 'exact' and 'collapse' in q):
        q['limit'] = -random_.choice([1, 2, 10, 1000])
    if match == 'exact' and random_.random() < 0.3 and q.get('limit', 0) >= 0 and 'collapse' not in q:
        q.pop('sort', None)
        q['closest'] = time.strftime('%Y%m%d%H%M%S', time.gmtime(1735689600 + random_.randrange(16000000)))
    return url, match, q


# ---- tests ----------------------------------------------------------------------------------

@test
def random_queries(folder):
    random_ = rng('queries')
    repo, model = collection(folder, random_)
    with Server(repo) as s:
        for n in range(600):
            url, match, q = random_query(random_, model)
            sent = dict(q, url=url, matchType=match, **({'sort': 'closest'} if 'closest' in q else {}))
            if match == 'prefix' and random_.random() < 0.5:
                sent['url'] += '*'
                del sent['matchType']
            elif match == 'domain' and random_.random() < 0.5:
                sent['url'] = '*.' + sent['url']
                del sent['matchType']
            elif random_.random() < 0.3:
                sent['url'] = re.sub('^https?://', '', sent['url'])
            want = model.query(url if '/' in url else 'http://' + url, match, **q)
            same(rows(s, **sent), want, sent)
            if n % 10 == 0:      # the other outputs say the same
                got = [json.loads(line) for line in s.ask('/cdx', output='json', **sent).body.decode().split('\n')[:-1]]
                same(got, [{k: v for k, v in r.items() if v} for r in want], sent)
                fields = random_.sample(FIELDS, random_.randrange(1, 6))
                form = random_.choice([dict(fl=','.join(fields)), dict(fields=','.join(fields), output='text')])
                text = s.ask('/cdx', **dict(sent, **form)).body.decode()
                same(text, ''.join(' '.join(r[f].replace(' ', '%20') or '-' for f in fields) + '\n' for r in want), (sent, fields))


@test
def the_internet_archives_dialect(folder):
    random_ = rng('ia')
    repo, model = collection(folder, random_)
    with Server(repo) as s:
        for n in range(200):
            url, match, q = random_query(random_, model, ia=True)
            sent = dict(q, url=url, matchType=match, **({'sort': 'closest'} if 'closest' in q else {}))
            want = model.query(url if '/' in url else 'http://' + url, match, ia=True, **q)
            text = s.ask('/cdx/search/cdx', **sent).body.decode()
            same(text, ''.join(' '.join(r[f].replace(' ', '%20') or '-' for f in FIELDS[:7]) + '\n' for r in want), sent)
            r = s.ask('/cdx/search/cdx', output='json', **sent)
            same(r.json(), [[IA.get(f, f) for f in FIELDS[:7]]] + [[r[f] or '-' for f in FIELDS[:7]] for r in want], sent)
            assert r.field('Content-Type') == 'application/json'
        got = s.ask('/cdx/search/cdx', url='*.example', fl='original,statuscode', output='json').json()
        assert got[0] == ['original', 'statuscode'] and len(got) > 100


@test
def pages_and_resume_keys_lead_to_the_end(folder):
    random_ = rng('pages')
    repo, model = collection(folder, random_)
    with Server(repo) as s:
        for n in range(40):
            url, match, q = random_query(random_, model)
            if match == 'exact':
                continue
            for name in ('limit', 'offset', 'sort', 'collapse'):
                q.pop(name, None)
            sent = dict(q, url=url, matchType=match)
            want = model.query(url if '/' in url else 'http://' + url, match, **q)
            size = random_.choice([1, 3, 10, 10000])
            count = json.loads(s.ask('/cdx', showNumPages='true', pageSize=size, **sent).body)
            assert count['pages'] == int(s.ask('/cdx/search/cdx', showNumPages='true', pageSize=size, **sent).body)
            got = sum([rows(s, page=i, pageSize=size, **sent) for i in range(count['pages'])], [])
            same(got, want, (sent, size))
            for page in (max(count['pages'], 1), 10 ** 12):     # pywb refuses pages behind the last one
                r = s.ask('/cdx', page=page, pageSize=size, **sent)
                assert r.status == 400 and b'page=' in r.body, (r.status, r.body)
                assert s.ask('/cdx/search/cdx', page=page, pageSize=size, **sent).body == b''
            got, key = [], {}
            for i in range(1000):
                text = s.ask('/cdx', limit=random_.choice([1, 2, 7]) if size < 10 else 100, showResumeKey='true', fl='urlkey,timestamp', **sent, **key).body.decode()
                part, found, next_ = text.partition('\n\n')
                got += [line for line in part.split('\n') if line]
                if not found:
                    break
                key = {'resumeKey': next_.strip()}
            same(got, ['%s %s' % (r['urlkey'], r['timestamp']) for r in want], sent)
        # The other dialect: the key is the last row.
        part = s.ask('/cdx/search/cdx', url='*.example', limit=3, showResumeKey='true', output='json').json()
        assert part[-2] == [] and len(part) == 6
        rest = s.ask('/cdx/search/cdx', url='*.example', resumeKey=part[-1][0], output='json').json()
        assert part[1:4] + rest[1:] == s.ask('/cdx/search/cdx', url='*.example', output='json').json()[1:]


@test
def captures_in_the_same_second(folder):
    repo = folder / 'r'
    call(repo, 'init', '--history', 'all')
    done(ask(repo, 'import', archive(folder / 'a.warc', [
        Page('http://a.example/%s' % u, b'<p>%s %d</p>' % (u.encode(), n // 2), '2026-01-02T03:04:05.%03dZ' % (n * 100))
        for n in range(9) for u in 'xy'])))
    call(repo, 'update')
    call(repo, 'index')
    with Server(repo) as s:
        for url, want in (('http://a.example/x', 9), ('http://a.example/*', 18)):
            whole = s.ask('/cdx', url=url, fl='url,digest,mime').body.decode().split('\n')[:-1]
            assert len(whole) == want
            got, key = [], {}
            for _ in range(50):
                text = s.ask('/cdx', url=url, fl='url,digest,mime', limit=2, showResumeKey=1, **key).body.decode()
                part, found, next_ = text.partition('\n\n')
                got += [line for line in part.split('\n') if line]
                if not found:
                    break
                key = {'resumeKey': next_.strip()}
            assert got == whole, (len(got), len(whole))


def dates_of(s, url, path='/cdx', **q):
    return [r['timestamp'] for r in rows(s, path, url=url, **q)]


@test
def what_pywb_and_the_archive_agree_on(folder):
    """All spellings find a page, before there is an index too; what is not supported is refused by its name."""
    repo, urls = folder / 'r', ['http://www.a.example/Dir/Page?b=2&a=1', 'http://a.example/dir/page?a=1&b=2', 'http://www3.a.example/dir//page?b=2&a=1']
    call(repo, 'init', '--history', 'all')
    done(ask(repo, 'import', archive(folder / 'a.warc', [
        Page(u, b'<p>%d %d' % (n, k), '2026-01-%02dT00:00:%02d.%03dZ' % (1 + k, 10 * n, 500 * n)) for n, u in enumerate(urls) for k in range(3)])))
    with Server(repo) as s:
        assert dates_of(s, urls[0]) == ['202601%02d0000%02d' % (1 + k, 10 * n) for k in range(3) for n in range(2)], 'without an index'
        call(repo, 'update')
        call(repo, 'index')
        every = ['202601%02d0000%02d' % (1 + k, 10 * n) for k in range(3) for n in range(3)]
        assert wait_for(lambda: dates_of(s, urls[0]) == every, 'the index is used')
        for url in urls + ['A.EXAMPLE/DIR/PAGE/?b=2&a=1', 'https://www.a.example:443/dir/./page?a=1&b=2', 'http://user:pass@a.example/dir/page?a=1&b=2']:
            for path in ('/cdx', '/cdx/search/cdx'):
                assert dates_of(s, url, path, output='cdxj') == every, url
        for q in (dict(reverse=1, limit=2), dict(reverse='true', limit=2), dict(sort='reverse', limit=2)):
            assert dates_of(s, urls[0], **q) == every[:-3:-1], q
        assert dates_of(s, urls[0], reverse='false', limit=2) == every[:2]
        assert dates_of(s, urls[0], closest='20260102000010', limit=3) == [every[4], every[3], every[5]]
        assert dates_of(s, urls[0], closest='20260102000020', sort='closest', limit=1) == ['20260102000020'], 'the very second first'
        assert dates_of(s, urls[0], collapseTime=8) == [every[0], every[3], every[6]]
        assert dates_of(s, urls[0], resolveRevisits='false', gzip='false', fastLatest='false') == every
        assert dates_of(s, urls[0], fastLatest='true', limit=-1) == every[-1:]
        text = s.ask('/cdx', url=urls[0], output='text', limit=1).body.decode().split(' ')
        assert text[:5] == ['example,a)/dir/page?a=1&b=2', every[0], urls[0], 'text/html', '200'], text
        assert s.ask('/cdx', url=urls[0], output='cdxj', fl='status', limit=1).body.decode() == 'example,a)/dir/page?a=1&b=2 %s {"status":"200"}\n' % every[0]
        links = s.ask('/cdx', url=urls[0], output='link')
        assert links.field('Content-Type') == 'application/link-format'
        assert re.findall(r'/web/(\d{14})/[^>]*>; rel="memento"; datetime="', links.body.decode()) == every
        wrong = [dict(showPagedIndex='true'), dict(showDupeCount='true'), dict(gzip='true'), dict(colour='red'), dict(fastLatest='true'), dict(Limit='1'),
                 dict(collapseTime='x'), dict(collapseTime='0'), dict(reverse='2'), dict(page='1'), dict(output='link', matchType='host'), dict(sort='closest'),
                 dict(pageSize=5), dict(fl='url', output='link')]
        for q in wrong:
            r = s.ask('/cdx', url=urls[0], **q)
            assert r.status == 400 and (list(q)[0] in r.json()['error']), (q, r.status, r.body)
        for q in wrong[:9] + [dict(output='link'), dict(resolveRevisits='true')]:
            r = s.ask('/cdx/search/cdx', url=urls[0], **q)
            assert r.status == 400 and (list(q)[0] in r.json()['error']), (q, r.status, r.body)


@test
def readers_never_see_passwords(folder):
    repo, secret = folder / 'r', 's3cret'
    page = Page('http://user:%s@a.example/x' % secret, b'<title>t</title><p>hello <a href="/y">y</a>', '2026-01-02T00:00:00Z')
    moved = Page('http://user:%s@a.example/y' % secret, b'moved', '2026-01-02T00:00:00Z', status='301 Moved', headers=['Location: http://user:l0cation@a.example/x'])
    done(ask(repo, 'import', archive(folder / 'a.warc', [page, moved])))
    call(repo, 'update')
    call(repo, 'index')
    with Server(repo) as s:
        whole = 0
        for path, q in (('/cdx', dict(url='a.example', matchType='host')), ('/cdx', dict(url='a.example/x', output='link')), ('/cdx', dict(url='a.example/y')),
                        ('/cdx/search/cdx', dict(url='a.example', matchType='host')), ('/api/search', dict(q='hello')), ('/', dict(q='hello')),
                        ('/api/page', dict(url='a.example/x')), ('/page', dict(url='a.example/x')), ('/api/links', dict(url='a.example/x')),
                        ('/api/links', dict(url='a.example/y', dir='in')), ('/api/versions', dict(url='a.example/x')), ('/api/similar', dict(url='a.example/x')),
                        ('/api/stream', dict(format='jsonl')), ('/api/stream', dict(format='urls')), ('/api/stream', dict(format='warc')),
                        ('/api/stream', dict(format='text')), ('/timemap/link/http://a.example/x', {}), ('/web/20260102000000/http://a.example/x', {}),
                        ('/web/20260102000000id_/http://a.example/x', {}), ('/web/http://a.example/y', {}), ('/web/*/http://a.example/x', {}),
                        ('/page/versions', dict(url='a.example/x'))):
            r = s.ask(path, **q)
            seen = r.body + repr(r.fields).encode()
            assert secret.encode() not in seen, (path, q, seen[max(seen.index(secret.encode()) - 200, 0):][:400])
            assert b'l0cation' not in seen or q.get('format') == 'warc', (path, q)     # there it is the answer of the site
            whole += r.status == 200 and b'a.example' in seen
        assert whole >= 14, whole


@test
def what_cannot_be_read_is_said(folder):
    repo = folder / 'r'
    pages = [Page('http://a.example/%s' % n, bytes(random.Random(n).randbytes(3000)), '2026-01-02T00:00:00Z') for n in range(60)]
    done(ask(repo, 'import', archive(folder / 'a.warc', pages[:30])))
    done(ask(repo, 'import', archive(folder / 'b.warc', pages[30:])))
    call(repo, 'update')
    call(repo, 'index')
    segments = sorted(repo.glob('pages/*.seg'))
    raw = bytearray(segments[0].read_bytes())
    raw[30000] ^= 1
    segments[0].write_bytes(raw)
    with Server(repo) as s:
        whole = {n: s.ask('/cdx', url='a.example/%d' % n).status for n in range(60)}
        lost = [n for n, status in whole.items() if status != 200]
        assert 0 < len(lost) < 60 and {whole[n] for n in lost} == {500}, whole
        for path, output, mark in (('/cdx', '', '!incomplete 0 {'), ('/cdx', 'json', '{"error":'), ('/cdx', 'text', '# incomplete'), ('/cdx/search/cdx', '', '# incomplete')):
            r = s.ask(path, url='a.example', matchType='host', **({'output': output} if output else {}))
            lines = r.body.decode().split('\n')[:-1]
            assert r.status == 200 and r.field('X-Left-Out') == str(len(lost)) and len(lines) == 61 - len(lost), (lines[-2:], r.fields)
            assert lines[-1].startswith(mark) and '%d captures could not be read' % len(lost) in lines[-1], lines[-1]
        table = s.ask('/cdx/search/cdx', url='a.example', matchType='host', output='json').json()
        assert table[-2] == [] and 'could not be read' in table[-1][0]


@test
def mementos(folder):
    random_ = rng('mementos')
    repo, model = collection(folder, random_)
    with Server(repo) as s:
        for url in random_.sample(model.urls, 60):
            mine = model.captures[urlkey(url)][url]
            want, pages = model.rows_of_page(urlkey(url), mine), sorted(mine, key=lambda p: p.date)
            r = s.ask('/timemap/link/' + url)
            assert r.status == 200 and r.field('Content-Type') == 'application/link-format'
            got = re.findall(r'<http://[^>]*/web/(\d{14})/([^>]*)>; rel="([^"]*)"; datetime="([^"]*)"', r.body.decode())
            assert [g[0] for g in got] == [w['timestamp'] for w in want] and {g[1] for g in got} == {url}, (got, want)
            assert [seconds(g[0]) for g in got] == [int(email.utils.parsedate_to_datetime(g[3]).timestamp()) for g in got]
            assert got[0][2].startswith('first') and got[-1][2].endswith('last memento')
            # The timegate: the newest that is not after the time, or else the first.
            for _ in range(4):
                moment = 1735689600 + random_.randrange(-100000, 16000000)
                at = ([i for i, w in enumerate(want) if seconds(w['timestamp']) <= moment] or [0])[-1]
                digits = want[at]['timestamp']
                r = s.ask('/web/' + url, headers={'Accept-Datetime': email.utils.formatdate(moment, usegmt=True)})
                assert r.status == 302 and r.field('Location') == '/web/%s/%s' % (digits, url), (moment, r.fields)
                assert r.field('Vary').lower() == 'accept-datetime' and 'rel="original"' in r.field('Link')
                asked = time.strftime('%Y%m%d%H%M%S', time.gmtime(moment))
                r = s.ask('/web/%s/%s' % (asked, url))
                near = min(want, key=lambda w: (abs(seconds(w['timestamp']) - moment), -seconds(w['timestamp'])))['timestamp']
                if asked != near:
                    assert r.status == 302 and r.field('Location') == '/web/%s/%s' % (near, url), (asked, near, r.fields)
                r = s.ask('/web/%s/%s' % (asked[:8], url))
                day = [w['timestamp'] for w in want if w['timestamp'][:8] <= asked[:8]] or [want[0]['timestamp']]
                assert r.status == 302 and r.field('Location') == '/web/%s/%s' % (day[-1], url), (asked, day[-1], r.fields)
                r = s.ask('/web/%sid_/%s' % (digits, url))
                assert r.status == int(want[at]['status']) and r.body == pages[at].body, (r.status, want[at])
                r = s.ask('/web/%s/%s' % (digits, url))
                assert r.status == int(want[at]['status']), r.status
                assert int(email.utils.parsedate_to_datetime(r.field('Memento-Datetime')).timestamp()) == seconds(digits)
                assert 'sandbox' in r.field('Content-Security-Policy')
                rel = re.search(r'/web/%s/%s>; rel="([^"]*)"' % (digits, re.escape(url)), r.field('Link'))[1].split()
                assert ('first' in rel) == (at == 0) and ('last' in rel) == (at == len(want) - 1), (rel, at)
            assert s.ask('/web/' + url).field('Location') == '/web/%s/%s' % (want[-1]['timestamp'], url)


@test
def large_answers_are_whole_while_the_index_is_rebuilt(folder):
    """They are pulled slowly, in both directions, beside new generations and new captures of other hosts."""
    repo, count = folder / 'r', 5000
    call(repo, 'init', '--history', 'all')
    for day in range(1, 5):
        done(ask(repo, 'import', archive(folder / ('%d.warc' % day), [
            Page('http://h%d.big.example/%d' % (n % 7, n), b'<p>%d %d</p>' % (n, day // 2), '2026-01-%02dT00:00:00Z' % day) for n in range(count)])))
    call(repo, 'update')
    call(repo, 'index')
    want = sorted('%s %s' % (urlkey('http://h%d.big.example/%d' % (n % 7, n)), '202601%02d000000' % d) for n in range(count) for d in range(1, 5))
    with Server(repo) as s:
        clients = []
        for more in ('', '&sort=reverse', '&limit=-18000'):
            c = socket.create_connection((s.host, s.port), timeout=PATIENCE)
            c.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 16)
            c.sendall(('GET /cdx?url=*.big.example%s HTTP/1.0\r\n\r\n' % more).encode())
            clients.append((c, [c.recv(2000)]))
        for round_ in range(3):
            done(ask(repo, 'import', archive(folder / 'x.warc', [Page('http://other%d.example/%d' % (round_, n), b'<p>new</p>') for n in range(50)])))
            call(repo, 'update')
            call(repo, 'index')
            assert wait_for(lambda: s.get('/api/search', q='new')['total'] == 50 * (round_ + 1), 'the generation is used')
            for c, got in clients:
                got.append(c.recv(100000))
        answers = []
        for c, got in clients:
            text = (b''.join(got) + read_all(c)).partition(b'\r\n\r\n')[2].decode()
            answers.append([' '.join(line.split(' ')[:2]) for line in text.split('\n')[:-1]])
            c.close()
        same(answers[0], want, 'forwards')
        same(answers[1], want[::-1], 'backwards')
        same(answers[2], want[-18000:], 'the last')
        # A filter that lets nothing through reads everything, and keeps nobody waiting.
        slow = [threading.Thread(target=s.ask, args=('/cdx?url=*.big.example&filter=~digest:(.*,){3}x',)) for _ in range(12)]
        for t in slow:
            t.start()
        assert s.get('/healthz') == {'ok': True}
        for t in slow:
            t.join(PATIENCE)


run()
