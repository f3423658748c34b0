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
