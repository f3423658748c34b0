#!/usr/bin/env python3
"""Importing archives and exporting them again gives the same pages, and another program accepts every record."""
import base64, shutil, subprocess

from e2e import *


def import_(repo, *sources):
    return done(ask(repo, 'import', *sources))


def facts(repo, pages):
    keep = ('url', 'key', 'id', 'time', 'status', 'type', 'charset', 'length', 'md5', 'sha1', 'truncated')
    return [{k: f[k] for k in keep} for f in (ask(repo, 'get', p.url)[0] for p in pages)]


def mixed_pages():
    random_ = rng('mixed')
    pages = some_pages(random_, 30) + some_pages(random_, 10, 'beta.example:8080')
    body = html(random_)
    pages.append(Page('http://c.example/gz', body))
    pages[-1].http = lambda: (b'HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Encoding: gzip\r\n'
                              b'Transfer-Encoding: chunked\r\n\r\n' + chunked(gzip.compress(body)))
    pages.append(Page('http://c.example/empty', b''))
    pages.append(Page('http://c.example/moved', b'', status='301 Moved', headers=['Location: /else']))
    pages.append(Page('http://c.example/warc', b'\r\n\r\nWARC/1.1\r\nWARC-Type: response\r\n\r\n'))
    pages.append(Page('http://c.example/bytes', random_.randbytes(300000), type='application/octet-stream'))
    pages.append(Page('http://c.example/resource', b'only bytes', type='text/plain'))
    pages[-1].record = lambda: record('http://c.example/resource', b'only bytes', '2026-01-02T03:04:05.678Z',
                                      'resource', 'text/plain')
    return pages


def chunked(data):
    return b''.join(b'%x\r\n%s\r\n' % (len(data[i:i + 100]), data[i:i + 100])
                    for i in range(0, len(data), 100)) + b'0\r\n\r\n'


@test
def import_export_import_gives_the_same_pages(folder):
    pages = mixed_pages()
    assert import_(folder / 'r', archive(folder / 'a.warc.gz', pages))['pages'] == len(pages)
    before = facts(folder / 'r', pages)
    for name in ('out.warc', 'out.warc.gz', 'out.warc.zst'):
        end = done(ask(folder / 'r', 'export', '--warc', folder / name))
        assert end['pages'] == len(pages) and end['records'] == len(pages) + 1, end
        again = folder / (name + '.r')
        end = import_(again, folder / name)
        assert (end['pages'], end['errors']) == (len(pages), 0), end
        assert facts(again, pages) == before, name
        for page in pages:
            assert call(again, 'get', page.url).stdout == page.body, page.url
    plain = call(folder / 'r', 'export', '--warc', '-').stdout
    assert plain.startswith(b'WARC/1.1\r\n') and plain.count(b'WARC-Target-URI') == len(pages)
    assert not list(folder.glob('*.tmp'))


@test
def an_archive_is_not_overwritten(folder):
    call(folder / 'r', 'import', archive(folder / 'a.warc', some_pages(rng('over'), 3)))
    (folder / 'out.warc').write_bytes(b'precious')
    refused(folder / 'r', 'out.warc', 'export', '--warc', folder / 'out.warc')
    assert (folder / 'out.warc').read_bytes() == b'precious'
    call(folder / 'r', 'export', '--warc', folder / 'out.warc', '--force')
    assert (folder / 'out.warc').read_bytes().startswith(b'WARC/1.1')
    refused(folder / 'r', str(folder / 'no'), 'export', '--warc', folder / 'no' / 'x.warc')


@test
def selections(folder):
    random_ = rng('selections')
    pages = [Page('http://www.one.edu/a', html(random_), '2026-01-01T00:00:00Z'),
             Page('http://one.edu/a', html(random_), '2026-02-01T00:00:00Z'),
             Page('http://stone.edu/a', html(random_), '2026-03-01T00:00:00Z', type='text/plain'),
             Page('http://one.edu:81/a', html(random_), '2026-03-01T12:00:00Z', type='application/xhtml+xml')]
    call(folder / 'r', 'import', archive(folder / 'a.warc', pages))
    def chosen(*selection):
        name = folder / 'out.warc'
        call(folder / 'r', 'export', '--warc', name, '--force', *selection)
        return [i for i, p in enumerate(pages) if ('WARC-Target-URI: %s\r\n' % p.url).encode() in name.read_bytes()]
    assert chosen() == [0, 1, 2, 3]
    assert chosen('--site', 'one.edu') == [1]
    assert chosen('--site', 'one.edu:81') == [3]
    assert chosen('--suffix', 'one.edu') == [0, 1, 3]
    assert chosen('--suffix', 'edu', '--since', '2026-02-01') == [1, 2, 3]
    assert chosen('--until', '2026-02-01') == [0]
    assert chosen('--since', '2026-01-01T00:00:00.001Z', '--until', '2026-03-01T12:00:00Z') == [1, 2]
    assert chosen('--type', 'html') == [0, 1, 3]
    assert chosen('--type', 'text/plain') == [2]
    assert chosen('--site', 'nobody.example') == []


def sha1(body):
    return 'sha1:' + base64.b32encode(hashlib.sha1(body).digest()).decode()


@test
def revisits(folder):
    pages, date = some_pages(rng('revisits'), 3), '2026-05-05T00:00:00Z'
    profile = 'WARC-Profile: http://netpreserve.org/warc/1.1/revisit/identical-payload-digest'
    def revisit(url, body, *extra):
        return record(url, b'', date, 'revisit', extra=[profile, 'WARC-Payload-Digest: ' + sha1(body), *extra])
    records = [p.record() for p in pages] + [
        revisit(pages[0].url, pages[0].body), revisit(pages[1].url, b'something else'),
        revisit('http://mirror.example/', pages[2].body, 'WARC-Refers-To-Target-URI: ' + pages[2].url),
        revisit('http://unknown.example/', b'never seen')]
    end = import_(folder / 'r', write_archive(folder / 'a.warc.gz', records))
    assert (end['records'], end['pages'], end['revisits'], end['errors']) == (7, 4, 4, 0), end
    assert ask(folder / 'r', 'get', pages[0].url)[0]['time'] == '2026-05-05T00:00:00.000Z'
    assert ask(folder / 'r', 'get', pages[1].url)[0]['time'].startswith('2026-01-02')
    assert call(folder / 'r', 'get', 'http://mirror.example/').stdout == pages[2].body
    assert 'revisit at 2026-05-05' in refused(folder / 'r', 'http://unknown.example/', 'get', 'http://unknown.example/')
    assert ask(folder / 'r', 'stat')[0]['revisits'] >= 1
    verified(folder / 'r')


def captures(repo, url):
    return [v['captures'] for v in ask(repo, 'versions', url) if 'captures' in v]


NOTHING = 'WARC-Payload-Digest: sha1:3I42H3S6NNFQ2MSVX7XZKYAYSCX5QBYJ'


@test
def not_modified_counts_for_what_it_refers_to(folder):
    """The digest of an answer without a body says nothing; the date that the record names does, in any order of arrival."""
    old, new = '2026-01-02T03:04:05.678Z', '2026-02-01T00:00:00Z'
    a, b = b'<p>first', b'<p>second'
    def not_modified(at, *extra, url='URL', name='server-not-modified'):
        return record(url, b'HTTP/1.1 304 Not Modified\r\nETag: "1"\r\n\r\n', at, 'revisit',
                      extra=['WARC-Profile: http://netpreserve.org/warc/1.0/revisit/' + name, *extra])
    def to(date, uri='URL'):
        return ['WARC-Refers-To-Target-URI: ' + uri, 'WARC-Refers-To-Date: ' + date]
    first, second = (Page('URL', text, date).record() for text, date in ((a, old), (b, new)))
    cases = [
        ([first, not_modified('2026-03-01T00:00:00Z', NOTHING, *to(old))], [2]),
        ([not_modified('2026-03-01T00:00:00Z', NOTHING, *to(old)), first], [2]),
        ([first, not_modified('2026-03-01T00:00:00Z', NOTHING, *to('2026-01-02T03:04:05Z'))], [2]),
        ([first, not_modified('2026-03-01T00:00:00Z', NOTHING, *to(old, 'OTHER SPELLING'))], [2]),
        ([first, not_modified('2026-03-01T00:00:00Z', *to(old))], [2]),
        ([first, not_modified('2026-03-01T00:00:00Z', NOTHING)], [2]),
        ([first, second, not_modified('2026-03-01T00:00:00Z', NOTHING, *to(new))], [1, 2]),
        ([first, second, not_modified('2026-01-20T00:00:00Z', NOTHING, *to(old))], [2, 1]),
        ([first, second, not_modified('2026-03-01T00:00:00Z', 'WARC-Payload-Digest: ' + sha1(a), *to(new))], [1, 2]),
        ([first, not_modified('2026-03-01T00:00:00Z', 'WARC-Payload-Digest: ' + sha1(a), *to('2020-01-01T00:00:00Z'))], [2]),
        ([first, not_modified('2026-03-01T00:00:00Z', NOTHING, *to('2020-01-01T00:00:00Z'))], [1]),
        ([first, not_modified('2026-03-01T00:00:00Z', NOTHING, *to(old), name='identical-payload-digest')], [2]),
    ]
    def own(n, r):
        """The record, about a URL of this case."""
        r = r.replace(b'OTHER SPELLING', b'HTTPS://H%02d.example:443/x/' % n)
        return r.replace(b': URL\r\n', b': http://h%02d.example/x\r\n' % n)
    for split in (False, True):     # everything in one archive; or the first record of each, then the second...
        repo = folder / ('all%d' % split)
        call(repo, 'init', '--history', 'all')
        whole = [[own(n, r[i]) for n, (r, _) in enumerate(cases) if i < len(r)] for i in range(3)] if split else [[own(n, r) for n, (rs, _) in enumerate(cases) for r in rs]]
        for i, part in enumerate(whole):
            import_(repo, write_archive(folder / ('%d-%d.warc' % (split, i)), part))
        for n, (_, want) in enumerate(cases):
            assert captures(repo, 'http://h%02d.example/x' % n) == want, (n, split, captures(repo, 'http://h%02d.example/x' % n), want)
            assert call(repo, 'get', 'http://h%02d.example/x' % n).stdout == (a, b)[len(want) - 1], (n, split)
    url, other = 'http://h.example/x', 'http://www.h.example/x'
    first = Page(url, a, old).record()
    # The original under another URL: its bytes are stored under this one as well, also if it arrives later.
    pair = [first, not_modified('2026-03-01T00:00:00Z', NOTHING, *to(old, url), url=other)]
    for repo, order in ((folder / 'other0', pair), (folder / 'other1', pair[::-1])):
        for i, r in enumerate(order):
            import_(repo, write_archive(folder / ('%s-%d.warc' % (repo.name, i)), [r]))
        assert call(repo, 'get', other).stdout == a, repo.name
        assert ask(repo, 'get', other)[0]['time'] == '2026-03-01T00:00:00.000Z'
        verified(repo)


@test
def odd_heads_and_dates(folder):
    """Whatever the status line says, what follows the head is the body; and an archive that is imported twice doubles nothing."""
    body, fields = b'<p>body', b'Content-Type: text/html\r\nX-Marker: yes\r\nX-Folded: a\r\n b\r\n'
    lines = {b'HTTP/1.1 0 No Content': 200, b'HTTP/1.x 404 Not Found': 404, b'ICY 200 OK': 200, b'HTTP/1.1 200': 200, b'HTTP/2 301': 301,
             b'HTTP/1.1': 200, b'HTTP/1.1 OK': 200, b'http/1.0 410 Gone': 410, b'\r\n\r\nHTTP/1.1 200 OK': 200,
             b'HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 203 x': 203}
    records = [record('http://a.example/%d' % n, line + b'\r\n' + fields + b'\r\n' + body, '2026-01-02T00:00:00Z') for n, line in enumerate(lines)]
    records += [record('http://a.example/lf', (b'HTTP/1.1 200 OK\n' + fields.replace(b'\r', b'') + b'\n') + body, '2026-01-02T00:00:00Z'),
                record('http://a.example/bare', b'HTTP/1.1 200 OK\r\n\r\n' + body, '2026-01-02T00:00:00Z')]
    want = {n: s for n, s in enumerate(lines.values())} | {'lf': 200, 'bare': 200}
    import_(folder / 'heads', write_archive(folder / 'heads.warc', records))
    call(folder / 'heads', 'export', '--warc', folder / 'out.warc')
    for repo in ('heads', 'again'):
        for n, status in want.items():
            url = 'http://a.example/%s' % n
            assert call(folder / repo, 'get', url).stdout == body, (repo, n)
            assert ask(folder / repo, 'get', url)[0]['status'] == status, (repo, n)
        import_(folder / 'again', folder / 'out.warc')

    info = record('', b'', '2026-05-06T00:00:00Z', 'warcinfo', 'application/warc-fields').replace(b'WARC-Target-URI: \r\n', b'')
    def dated(path, date, *headers):
        return Page('http://d.example/' + path, body, date, headers=headers).record()
    future = 'Date: Tue, 05 May 2026 00:00:00 GMT'
    dates = {'clue': ('2008-10-294T12:00:00Z', '2008-10-20T12:00:00.000Z'), 'zone': ('2009-03-65T08:43:19-0800', '2009-03-06T16:43:19.000Z'),
             'bad': ('yesterday', '1990-01-01T00:00:00.000Z')}
    files = {'a.warc': [dated('bad', 'yesterday'), dated('clue', dates['clue'][0]), dated('zone', dates['zone'][0]), dated('near', 'noon')],
             'b.warc': [info, dated('info', 'never'), dated('head', 'never', future)]}
    dates |= {'near': (0, '2009-03-06T16:43:19.000Z'), 'info': (0, '2026-05-06T00:00:00.000Z'),
              'head': (0, '2026-05-05T00:00:00.000Z')}
    call(folder / 'd', 'init', '--history', 'all')
    for round_ in range(2):
        errors = 0
        for name, records in files.items():
            path = write_archive(folder / name, records)
            if round_:
                path.write_bytes(path.read_bytes().replace(b'WARC/1.1', b'warc/1.1'))
            errors += done(ask(folder / 'd', 'import', path))['errors']
        assert errors == 4, errors
        for n, (_, time) in dates.items():
            assert ask(folder / 'd', 'get', 'http://d.example/' + n)[0]['time'] == time, n
            assert captures(folder / 'd', 'http://d.example/' + n) == [1], n


@test
def damage_costs_one_record(folder):
    pages = some_pages(rng('damage'), 9)
    units = [gzip.compress(p.record()) for p in pages]
    start = sum(map(len, units[:4]))
    broken = bytearray(units[4])
    broken[len(broken) // 2] ^= 0x55
    (folder / 'a.warc.gz').write_bytes(b''.join(units[:4]) + bytes(broken) + b''.join(units[5:]))
    events = ask(folder / 'r', 'import', folder / 'a.warc.gz')
    errors = [e for e in events if e['event'] == 'error']
    assert len(errors) >= 1 and errors[0]['offset'] == start and errors[0]['file'].endswith('a.warc.gz'), errors
    end = done(events)
    assert end['errors'] == len(errors) and end['pages'] >= 8, end
    for i, page in enumerate(pages):
        if i != 4:
            assert call(folder / 'r', 'get', page.url).stdout == page.body, page.url
    p = call(folder / 'plain', 'import', folder / 'a.warc.gz')
    assert b'a.warc.gz, offset %d: ' % start in p.stderr, p.stderr
    assert p.stderr.count(b'a.warc.gz') == p.stderr.count(b'\n'), p.stderr


@test
def warcio_accepts_every_record(folder):
    pages = mixed_pages()
    import_(folder / 'r', archive(folder / 'a.warc.gz', pages))
    for name in ('out.warc', 'out.warc.gz'):
        call(folder / 'r', 'export', '--warc', folder / name)
        p = subprocess.run(['node', str(HERE / 'read_warc.mjs'), str(folder / name)], capture_output=True)
        assert p.returncode == 0 and p.stderr == b'', (name, p.stderr.decode()[-800:])
        seen = [json.loads(line) for line in p.stdout.decode().splitlines()]
        assert len(seen) == len(pages) + 1 and seen[0]['type'] == 'warcinfo', (name, len(seen))
        got = {s['uri']: (s['type'], s['payload_sha1']) for s in seen[1:]}
        want = {p.url: ('resource' if p.url.endswith('resource') else 'response', hashlib.sha1(p.body).hexdigest())
                for p in pages}
        assert got == want, name
        assert all(s['digests'] == 2 for s in seen[1:]), name


run()
