#!/usr/bin/env python3
"""The past of a page: history policies, versions, get --at, and archives of every capture."""
import base64, concurrent.futures, itertools, subprocess

from e2e import *

PROFILE = 'http://netpreserve.org/warc/1.1/revisit/identical-payload-digest'
URL = 'http://www.alpha.example/page'


def day(n, clock='00:00:00'):
    return '2026-01-%02dT%sZ' % (n, clock)


def full(date):
    return date[:-1] + '.000Z' if '.' not in date else date


def made(folder, policy, captures, name='r'):
    """A repository with that policy, and captures: (day, body) of URL, imported in this order, each by itself."""
    repo = folder / name
    call(repo, 'init', '--history', policy)
    for i, (n, body) in enumerate(captures):
        done(ask(repo, 'import', archive(folder / ('%s-%d.warc' % (name, i)), [Page(URL, body, day(n))])))
    return repo


def rows(repo, url=URL):
    return [(r['version'], r['time'], r['last_seen'], r['captures'], r['md5']) for r in ask(repo, 'versions', url)]


def row(version, first, last, captures, body):
    return version, full(day(first)), full(day(last)), captures, hashlib.md5(body).hexdigest()


def sha1(body):
    return 'sha1:' + base64.b32encode(hashlib.sha1(body).digest()).decode()


def read_warc(path):
    """[(header fields, block)] of an uncompressed archive"""
    data, out = path.read_bytes(), []
    while data:
        head, _, data = data.partition(b'\r\n\r\n')
        first, *fields = head.decode().split('\r\n')
        assert first == 'WARC/1.1', first
        fields = dict(f.split(': ', 1) for f in fields)
        length = int(fields['Content-Length'])
        assert data[length:length + 4] == b'\r\n\r\n', data[length:length + 4]
        out.append((fields, data[:length]))
        data = data[length + 4:]
    return out


def exported(repo, folder, *options):
    """[(type, URL, date, body)] of the records that export writes, in their order, without the warcinfo"""
    path = folder / 'out.warc'
    end = done(ask(repo, 'export', '--warc', path, '--force', *options))
    records = read_warc(path)
    assert end['records'] == len(records) and end['errors'] == 0, end
    assert end['pages'] == len({f['WARC-Target-URI'] for f, _ in records[1:]}), end
    return [(f['WARC-Type'], f['WARC-Target-URI'], f['WARC-Date'], block.partition(b'\r\n\r\n')[2])
            for f, block in records[1:]]


@test
def versions_are_listed_oldest_first(folder):
    repo = made(folder, 'all', [(5, b'B'), (1, b'A'), (3, b'A'), (9, b'A'), (6, b'B'), (6, b'B')])
    want = [row(1, 1, 3, 2, b'A'), row(2, 5, 6, 2, b'B'), row(3, 9, 9, 1, b'A')]
    assert rows(repo) == want, rows(repo)
    first = ask(repo, 'versions', URL)[0]
    assert {k: first[k] for k in ('url', 'status', 'type', 'length')} == \
        {'url': URL, 'status': 200, 'type': 'text/html', 'length': 1}, first
    assert ask(repo, 'versions', ask(repo, 'get', URL)[0]['id']) == ask(repo, 'versions', URL)
    text = call(repo, 'versions', URL).stdout.decode().split('\n')
    assert len(text) == 5 and 'captures' in text[0] and text[3].split()[:4] == ['3', full(day(9)), full(day(9)), '1'], text
    s = ask(repo, 'stat')[0]
    assert (s['pages'], s['versions'], s['captures'], s['history']) == (1, 3, 5, 'all'), s
    assert b'versions      3 with 5 captures (history all)' in call(repo, 'stat').stdout
    call(repo, 'compact')
    assert rows(repo) == want, rows(repo)
    verified(repo)


@test
def import_counts_captures(folder):
    repo = made(folder, 'all', [(1, b'A')])
    pages = [Page(URL, b'A', day(2)), Page(URL, b'A', day(1)), Page(URL, b'B', day(3)),
             Page('http://new.example/', b'C', day(1))]
    end = done(ask(repo, 'import', archive(folder / 'more.warc', pages)))
    assert (end['records'], end['pages'], end['captures'], end['older']) == (4, 2, 1, 1), end
    end = done(ask(repo, 'import', folder / 'more.warc'))
    assert (end['pages'], end['captures'], end['older'], end['errors']) == (0, 0, 4, 0), end


@test
def get_at_a_time(folder):
    repo = made(folder, 'all', [(1, b'A'), (3, b'B'), (5, b'B'), (7, b'C')])
    for when, body in (('2020-01-01', b'A'), ('2026-01-01', b'A'), ('2026-01-02T23:59:59.999Z', b'A'),
                       ('2026-01-03', b'B'), (day(3), b'B'), ('2026-01-03T02:00:00+02:00', b'B'),
                       ('2026-01-02T19:00:00-05:00', b'B'), ('2026-01-06', b'B'), ('2026-01-07', b'C'),
                       ('9999-12-31T23:59:59Z', b'C')):
        assert call(repo, 'get', URL, '--at', when).stdout == body, when
    f = ask(repo, 'get', URL, '--at', '2026-01-03')[0]
    assert (f['time'], f['length'], f['md5']) == (full(day(5)), 1, hashlib.md5(b'B').hexdigest()), f
    assert b'WARC-Date: %s\r\n' % full(day(5)).encode() in call(repo, 'get', URL, '--at', day(4), '--record').stdout
    assert call(repo, 'get', URL, '--at', day(4), '--headers').stdout.startswith(b'HTTP/1.1 200 OK\r\n')


@test
def nonsense_is_named(folder):
    repo = made(folder, 'all', [(1, b'A'), (2, b'B')])
    before = ask(repo, 'stat')
    unknown = 'http://www.alpha.example/unknown'
    for named, words in (('yesterday', ['get', URL, '--at', 'yesterday']), ('--at', ['get', URL, '--at', '']),
                         ('2026-02-30', ['get', URL, '--at', '2026-02-30']), ("'12'", ['get', URL, '--at', '12']),
                         ('25:00', ['get', URL, '--at', '2026-01-01T25:00:00Z']),
                         ('--snapshot', ['get', URL, '--at', '2026-01-01', '--snapshot', '1']),
                         ('versions', ['versions']), ("'b'", ['versions', 'a', 'b']),
                         ('--frobnicate', ['versions', URL, '--frobnicate']),
                         ('--frobnicate', ['history', '--frobnicate']), ("'3'", ['history', 'all', '3']),
                         ('--snapshot', ['export', '--warc', folder / 'x.warc', '--versions', '--snapshot', '1'])):
        refused(repo, named, *words, status=2, one_line=False)
    for policy in ('0', 'banana', '3x', '', '1.5', '30 d', '0d', '99999999999999999999', '5000y', 'ALL', 'new\nest'):
        text = refused(repo, "'%s'" % policy.replace('\n', '?'), 'history', policy, status=2, one_line=False)
        assert text.count('\n') == 2, text
        refused(folder / 'new', 'history', 'init', '--history', policy, status=2, one_line=False)
    refused(repo, '-1', 'history', '-1', status=2, one_line=False)
    assert not (folder / 'new').exists() and not (folder / 'x.warc').exists()
    refused(repo, unknown, 'versions', unknown)
    refused(repo, unknown, 'versions', unknown, '--json')
    refused(repo, unknown, 'get', unknown, '--at', '2026-01-01')
    refused(repo, 'no-scheme', 'versions', 'no-scheme')
    for words in (['versions', URL], ['history'], ['history', 'all'], ['get', URL, '--at', '2026-01-01']):
        refused(folder / 'missing', 'missing', *words)
    assert not (folder / 'missing').exists()
    assert ask(repo, 'stat') == before
    verified(repo)


@test
def policies(folder):
    captures = [(n, b'content %d' % n) for n in range(1, 7)]
    for policy, kept in (('newest', 1), ('3', 3), ('all', 6), ('1000y', 6)):
        repo = made(folder, policy, captures, 'r' + policy)
        assert ask(repo, 'history') == [{'history': policy}] and call(repo, 'history').stdout == policy.encode() + b'\n'
        assert [r[1] for r in rows(repo)] == [full(day(n)) for n, _ in captures[6 - kept:]], rows(repo)
        s = ask(repo, 'stat')[0]
        assert (s['history'], s['versions'], s['pages']) == (policy, kept, 1), s
    assert ask(repo, 'history', '2') == [{'history': '2'}]
    assert [r[0] for r in rows(repo)] == [1, 2], rows(repo)
    end = done(ask(repo, 'compact'))
    assert end['versions'] == 4, end
    assert ask(repo, 'history', 'all') and [r[1] for r in rows(repo)] == [full(day(5)), full(day(6))], rows(repo)
    for policy, shown in (('60s', '1m'), ('7d', '1w'), ('36h', '36h'), ('365d', '1y')):
        assert ask(repo, 'history', policy) == [{'history': shown}], policy
    verified(repo)


@test
def a_page_that_is_gone_keeps_its_past(folder):
    repo = folder / 'r'
    call(repo, 'init', '--history', 'all')
    with served(folder / 'site') as (site, url):
        (site / 'index.html').write_bytes(b'<a href="b.html">b</a>')
        (site / 'b.html').write_bytes(b'<p>was here</p>')
        words = ['crawl', url, '--allow-private', '--delay', '0', '--no-sitemaps']
        call(repo, *words)
        (site / 'b.html').unlink()
        call(repo, *words)
    call(repo, 'update')
    call(repo, 'expunge')
    gone = url + 'b.html'
    text = refused(repo, gone, 'get', gone)
    assert 'gone since 20' in text and 'versions' in text, text
    listed = ask(repo, 'versions', gone)
    assert len(listed) >= 1 and listed[0]['md5'] == hashlib.md5(b'<p>was here</p>').hexdigest(), listed
    assert b'gone since 20' in call(repo, 'versions', gone).stdout
    assert call(repo, 'get', gone, '--at', listed[0]['time']).stdout == b'<p>was here</p>'
    assert gone not in [r[1] for r in exported(repo, folder)]
    assert gone in [r[1] for r in exported(repo, folder, '--versions')]


@test
def every_capture_is_exported_and_imported_again(folder):
    repo = made(folder, 'all', [(1, b'A'), (2, b'A'), (3, b'B'), (5, b'A'), (6, b'A'), (4, b'B')])
    end = done(ask(repo, 'export', '--warc', folder / 'all.warc', '--versions'))
    assert (end['records'], end['pages'], end['captures'], end['revisits']) == (7, 1, 6, 4), end
    records = read_warc(folder / 'all.warc')[1:]
    got = [(f['WARC-Type'], f['WARC-Date'], f.get('WARC-Refers-To-Date')) for f, _ in records]
    at = [full(day(n)) for n in range(7)]
    assert got == [('response', at[1], None), ('revisit', at[2], at[1]), ('response', at[3], None),
                   ('revisit', at[4], at[3]), ('revisit', at[5], at[1]), ('revisit', at[6], at[1])], got
    for (f, block), body in zip(records, (b'A', b'A', b'B', b'B', b'A', b'A')):
        assert f['WARC-Target-URI'] == URL and f['WARC-Payload-Digest'] == sha1(body), f
        if f['WARC-Type'] == 'revisit':
            assert f['WARC-Profile'] == PROFILE and f['WARC-Refers-To-Target-URI'] == URL and block == b'', f
    assert b'wrote 1 page with 6 captures to ' in call(repo, 'export', '--versions', '--warc', folder / 'w.warc').stdout
    for name in ('out.warc', 'out.warc.gz', 'out.warc.zst'):
        call(repo, 'export', '--warc', folder / name, '--versions')
        again = folder / (name + '.r')
        call(again, 'init', '--history', 'all')
        end = done(ask(again, 'import', folder / name))
        assert (end['pages'], end['captures'], end['errors']) == (3, 3, 0), end      # A is a version again on day 5
        assert rows(again) == rows(repo), name
        assert call(again, 'get', URL).stdout == b'A'
        verified(again)
    assert exported(repo, folder) == [('response', URL, at[6], b'A')]


@test
def captures_are_selected(folder):
    repo = made(folder, 'all', [(1, b'A'), (2, b'A'), (3, b'B'), (4, b'A')])
    other = Page('http://www.beta.example/', b'plain', day(2), type='text/plain')
    call(repo, 'import', archive(folder / 'other.warc', [other]))
    def chosen(*options):
        return sorted((url, date[8:10], kind, body) for kind, url, date, body in
                      exported(repo, folder, '--versions', *options))
    assert chosen('--site', 'www.beta.example') == [(other.url, '02', 'response', b'plain')]
    assert chosen('--type', 'text/plain') == [(other.url, '02', 'response', b'plain')]
    assert len(chosen('--type', 'html')) == 4
    assert chosen('--suffix', 'nobody') == []
    # The bytes come with the first capture that is selected.
    assert chosen('--site', 'www.alpha.example', '--since', '2026-01-02') == \
        [(URL, '02', 'response', b'A'), (URL, '03', 'response', b'B'), (URL, '04', 'revisit', b'')]
    assert chosen('--since', '2026-01-04') == [(URL, '04', 'response', b'A')]
    assert chosen('--until', '2026-01-03', '--type', 'html') == [(URL, '01', 'response', b'A'), (URL, '02', 'revisit', b'')]
    assert chosen('--since', '2026-01-03', '--until', '2026-01-04') == [(URL, '03', 'response', b'B')]
    assert chosen('--since', '2027-01-01') == []


@test
def the_same_body_with_another_status_is_another_version(folder):
    """A digest alone would not say which of two versions a revisit means, so the bytes are written again."""
    repo = folder / 'r'
    call(repo, 'init', '--history', 'all')
    pages = [Page(URL, b'', day(n), status=status) for n, status in
             ((1, '301 Moved'), (2, '302 Found'), (3, '301 Moved'), (4, '301 Moved'), (5, '302 Found'))]
    call(repo, 'import', archive(folder / 'a.warc', pages))
    want = [(r['status'], r['captures']) for r in ask(repo, 'versions', URL)]
    assert want == [(301, 1), (302, 1), (301, 2), (302, 1)], want
    assert [r[0] for r in exported(repo, folder, '--versions')] == ['response'] * 3 + ['revisit', 'response']
    call(folder / 'again', 'init', '--history', 'all')
    call(folder / 'again', 'import', folder / 'out.warc')
    assert [(r['status'], r['captures']) for r in ask(folder / 'again', 'versions', URL)] == want


@test
def many_pages_out_and_in_again(folder):
    random_ = rng('many')
    pages = {}
    for i in range(60):
        url = 'http://h%d.example/%d' % (i % 4, i)
        contents = [html(random_, 30) for _ in range(3)]
        for n in sorted(random_.sample(range(1, 29), random_.randint(1, 8))):
            pages[url, n] = Page(url, random_.choice(contents), day(n, '%02d:00:00' % (i % 24)))
    repo, shuffled = folder / 'r', random_.sample(list(pages.values()), len(pages))
    call(repo, 'init', '--history', 'all')
    for n in range(3):
        call(repo, 'import', archive(folder / ('%d.warc.gz' % n), shuffled[n::3]))
    got = exported(repo, folder, '--versions')
    assert len(got) == len(pages)
    urls = {u for u, _ in pages}
    by_url = {u: [r for r in got if r[1] == u] for u in urls}
    for u in urls:
        want = [p for (v, _), p in sorted(pages.items()) if v == u]
        assert [r[2] for r in by_url[u]] == [full(p.date) for p in want], u
        bodies = set()
        for r, p in zip(by_url[u], want):
            assert r[0] == ('revisit' if p.body in bodies else 'response') and (r[0] == 'revisit' or r[3] == p.body), u
            bodies.add(p.body)
    call(folder / 'again', 'init', '--history', 'all')
    assert done(ask(folder / 'again', 'import', folder / 'out.warc'))['errors'] == 0
    for u in urls:
        assert ask(folder / 'again', 'versions', u) == ask(repo, 'versions', u), u


@test
def warcio_reads_revisits(folder):
    repo = made(folder, 'all', [(1, b'A'), (2, b'A'), (3, b'B'), (4, b'A')])
    for name in ('out.warc', 'out.warc.gz'):
        call(repo, 'export', '--warc', folder / name, '--versions')
        p = subprocess.run(['node', str(HERE / 'read_warc.mjs'), str(folder / name)], capture_output=True)
        assert p.returncode == 0 and p.stderr == b'', (name, p.stderr.decode()[-800:])
        seen = [json.loads(line)['type'] for line in p.stdout.decode().splitlines()]
        assert seen == ['warcinfo', 'response', 'revisit', 'response', 'revisit'], seen


@test
def captures_are_right_while_everything_changes(folder):
    """Imports, compactions and changes of policy under running exports and lists: whatever they show was there."""
    repo, random_ = folder / 'r', rng('changes')
    urls = ['http://h%d.example/%d' % (i % 3, i) for i in range(30)]
    known, files = {}, []
    for n in range(1, 29):
        pages = [Page(u, b'%d ' % random_.randrange(3) + u.encode() * 50, day(n)) for u in urls]
        known.update({(p.url, full(p.date)): p.body for p in pages})
        files.append(archive(folder / ('%d.warc' % n), pages))
    call(repo, 'init', '--history', 'all')
    call(repo, 'import', files[0])
    def change():
        for n, file in enumerate(random_.sample(files, len(files))):
            call(repo, 'import', file)
            if n % 3 == 0:
                call(repo, 'history', ('2', 'all', '3', 'newest')[n // 3 % 4])
            if n % 4 == 0:
                call(repo, 'compact')
    pool = concurrent.futures.ThreadPoolExecutor(1)
    changes, rounds = pool.submit(change), 0
    while not changes.done() or rounds < 2:
        rounds += 1
        call(repo, 'export', '--warc', folder / 'out.warc', '--force', '--versions')
        for f, block in read_warc(folder / 'out.warc')[1:]:
            body = known[f['WARC-Target-URI'], f['WARC-Date']]
            assert f['WARC-Payload-Digest'] == sha1(body), f
            assert f['WARC-Type'] == 'revisit' or block.endswith(b'\r\n\r\n' + body), f
        url = random_.choice(urls)
        for r in ask(repo, 'versions', url):
            assert r['md5'] == hashlib.md5(known[url, r['time']]).hexdigest(), r
            assert r['md5'] == hashlib.md5(known[url, r['last_seen']]).hexdigest(), r
    changes.result()
    verified(repo)


@test
def damage_costs_the_versions_in_it(folder):
    random_ = rng('damage')
    bodies = [random_.randbytes(30000) for _ in range(4)]
    repo = made(folder, 'all', list(enumerate(bodies, 1)))
    segments = [p for p in (repo / 'pages').iterdir() if bodies[1][10000:10032] in p.read_bytes()]
    assert len(segments) == 1, segments
    data = bytearray(segments[0].read_bytes())
    data[data.index(bodies[1][10000:10032])] ^= 1
    segments[0].write_bytes(data)
    p = call(repo, 'versions', URL, '--json', status=1)
    listed = lines(p.stdout)
    assert [r['md5'] for r in listed] == \
        [None if i == 1 else hashlib.md5(b).hexdigest() for i, b in enumerate(bodies)], listed
    assert [r['time'] for r in listed] == [full(day(n)) for n in range(1, 5)], listed
    assert p.stderr.count(b'\n') == 1 and URL.encode() in p.stderr and segments[0].name.encode() in p.stderr, p.stderr
    assert b'(damaged)' in call(repo, 'versions', URL, status=1).stdout
    p = call(repo, 'export', '--warc', folder / 'out.warc', '--versions', '--json', status=1)
    assert segments[0].name.encode() in p.stderr, p.stderr
    end = done(lines(p.stdout))
    assert (end['captures'], end['errors']) == (3, 1), end
    assert [f['WARC-Date'] for f, _ in read_warc(folder / 'out.warc')[1:]] == [full(day(n)) for n in (1, 3, 4)]
    refused(repo, segments[0].name, 'get', URL, '--at', day(2))
    assert call(repo, 'get', URL, '--at', day(3)).stdout == bodies[2]


@test
def a_closed_pipe_and_a_full_disk_are_not_success(folder):
    repo = made(folder, 'all', [(1, b'A'), (2, b'x' * 3000000)])
    with open('/dev/full', 'wb') as device:
        for words in (['versions', URL], ['versions', URL, '--json'], ['history'], ['history', 'all', '--json'],
                      ['get', URL, '--at', day(1)], ['export', '--warc', '-', '--versions']):
            p = subprocess.run(command(repo, *words), stdout=device, stderr=subprocess.PIPE)
            assert p.returncode == 1 and b'standard output' in p.stderr, (words, p)
    p = subprocess.Popen(command(repo, 'export', '--warc', '-', '--versions'), stdout=subprocess.PIPE,
                         stderr=subprocess.PIPE)
    p.stdout.read(10)
    p.stdout.close()
    assert p.wait(PATIENCE) == 1 and p.stderr.read() == b''


@test
def a_signal_ends_an_export_of_captures(folder):
    repo = made(folder, 'all', [(n, rng('signal').randbytes(10) + b'x' * 2000000 + b'%d' % n) for n in range(1, 9)])
    p = subprocess.Popen(command(repo, 'export', '--warc', '-', '--versions'), stdout=subprocess.PIPE,
                         stderr=subprocess.PIPE)
    p.stdout.read(10)       # it is under way, and waits for its reader
    p.terminate()
    _, errors = p.communicate(timeout=PATIENCE)
    assert p.returncode == 1 and b'stopped by a signal' in errors, (p.returncode, errors)
    verified(repo)


def whole_and_cut(body, date, cut=None):
    """A record of URL, or its beginning, marked as truncated."""
    shown = body if cut is None else body[:cut]
    head = b'HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: %d\r\n\r\n' % len(shown)
    fields = ['WARC/1.0', 'WARC-Type: response', 'WARC-Target-URI: ' + URL, 'WARC-Date: ' + date,
              'WARC-Record-ID: <urn:uuid:%s>' % hashlib.md5(shown).hexdigest(),
              'Content-Type: application/http; msgtype=response', 'Content-Length: %d' % len(head + shown)]
    fields += ['WARC-Truncated: length'] if cut is not None else []
    return '\r\n'.join(fields).encode() + b'\r\n\r\n' + head + shown + b'\r\n\r\n'


def seen(repo):
    """Everything that commands say about URL."""
    facts = ask(repo, 'get', '--json', URL)[0]
    return (rows(repo), call(repo, 'get', URL).stdout, facts.get('truncated'), facts['length'], facts['md5'],
            facts['sha1'], facts['time'])


DESIGNS = ('Incr[hash,log]', 'Incr[uniform,hash]', 'Incr[hash,hashed-log]', 'Batch[U(hash,log),R(hash,hash)]')


def brought(repo, path):
    """Imports an archive so that readers see it."""
    call(repo, 'import', path)
    if ask(repo, 'stat')[0]['design'].startswith('Batch'):
        call(repo, 'transfer')


@test
def captures_of_one_second(folder):
    bodies, path, out = [b'first', b'second', b'', b'last of them'], folder / 'a.warc', folder / 'out.warc'
    path.write_bytes(b''.join(whole_and_cut(b, day(3)) for b in bodies))
    for n, design in enumerate(DESIGNS):
        # Both policies in the first design, one of them in the others; the model test has all of them.
        for policy in ('all', 'newest') if n == 0 else (('all', 'newest')[n % 2],):
            repo, copy, other = (folder / ('%s%d-%s' % (name, n, policy)) for name in ('r', 'copy', 'to'))
            call(repo, 'init', '--design', design, '--history', policy)
            brought(repo, path)
            before = seen(repo)
            assert before[1] == bodies[-1] and len(before[0]) == (4 if policy == 'all' else 1), before
            brought(repo, path) # nothing of it is new
            assert seen(repo) == before
            call(repo, 'export', '--warc', out, '--versions', '--force')
            call(copy, 'init', '--history', policy)
            brought(copy, out)
            assert seen(copy) == before
            call(repo, 'convert', other, '--design', 'Incr[hash,hash]')
            assert seen(other) == before
            brought(other, path)
            assert seen(other) == before
            verified(repo), verified(other)


@test
def a_stream_goes_on_between_captures_of_one_second(folder):
    path, repo = folder / 'a.warc', folder / 'r'
    call(repo, 'init', '--history', 'all')
    path.write_bytes(b''.join(whole_and_cut(b'<p>%d' % i, day(3)) for i in range(4)))
    call(repo, 'import', path)
    records = [r for r in ask(repo, 'stream', '--latest', '--versions', '--format', 'jsonl') if 'token' in r]
    assert [r['text'].strip() for r in records] == ['0', '1', '2', '3'], records
    for i, record in enumerate(records):
        rest = [r for r in ask(repo, 'stream', '--resume', record['token'], '--format', 'jsonl') if 'token' in r]
        assert [r['text'] for r in rest] == [r['text'] for r in records[i + 1:]], (i, rest)


@test
def the_longer_record_of_a_capture_counts(folder):
    body, path = b'<title>long</title>' + b'text ' * 100, folder / 'a.warc'
    for n, design in enumerate(DESIGNS):
        policy, results = ('all', 'newest')[n % 2], []
        # All orders in the first design, two of them in the others; the model test has all of them.
        orders = list(itertools.permutations((50, 120, None)))
        for order in orders if n == 0 else (orders[n % 6], orders[(n + 3) % 6]):
            repo = folder / ('%d-%s' % (n, '-'.join(map(str, order))))
            call(repo, 'init', '--design', design, '--history', policy)
            for i, cut in enumerate(order):
                path.write_bytes(whole_and_cut(body, day(3), cut))
                brought(repo, path)
                if i == 0:
                    call(repo, 'snapshot', '--name', 'first')
            results.append(seen(repo))
            assert results[-1] == results[0] and len(results[0][0]) == 1, results
            assert results[-1][1] == body and not results[-1][2], results[-1]
            # The snapshot has what it had.
            assert call(repo, 'get', URL, '--snapshot', 'first').stdout == body[:order[0]], (design, order)
            facts = ask(repo, 'get', URL, '--snapshot', 'first', '--json')[0]
            assert bool(facts.get('truncated')) == (order[0] is not None), facts
            verified(repo)


@test
def webdb_and_index_follow_a_repair(folder):
    body, path = b'<title>long</title><a href="http://b.example/linked">' + b'needle ' * 30, folder / 'a.warc'
    for n, order in enumerate(((40, None), (None, 40))):
        repo = folder / str(n)
        call(repo, 'init', '--history', ('newest', 'all')[n])
        for cut in order:
            path.write_bytes(whole_and_cut(body, day(3), cut))
            call(repo, 'import', path)
            call(repo, 'update')
            call(repo, 'index')
        page = ask(repo, 'webdb', 'page', URL)[0]
        assert (page['result'], page['md5'], page['bytes']) == ('stored', hashlib.md5(body).hexdigest(), len(body)), page
        assert page['changes'] == 0, page
        hits = [h for h in ask(repo, 'search', 'needle') if h.get('url') == URL]
        assert len(hits) == 1, hits
        call(repo, 'export', '--facts', folder / 'f.jsonl', '--force')
        facts = [json.loads(line) for line in (folder / 'f.jsonl').read_text().splitlines()]
        assert [f['length'] for f in facts if f.get('url') == URL] == [len(body)], facts


@test
def what_a_snapshot_says_is_frozen(folder):
    path, out = folder / 'a.warc', folder / 'o.warc'
    for n, design in enumerate(DESIGNS):
        repo = folder / str(n)
        call(repo, 'init', '--design', design, '--history', ('all', 'newest')[n % 2])
        path.write_bytes(whole_and_cut(b'the same', day(3)))
        brought(repo, path)
        for k, when in enumerate((7, 5, 9)):
            call(repo, 'snapshot', '--name', 's%d' % k)
            path.write_bytes(whole_and_cut(b'the same', day(when)))
            brought(repo, path)
        for k, last in enumerate((3, 7, 7)):
            held = '--snapshot', 's%d' % k
            assert ask(repo, 'get', URL, *held, '--json')[0]['time'] == full(day(last)), (design, k)
            for until, pages in (last, 0), (last + 1, 1):
                end = done(ask(repo, 'export', '--warc', out, '--force', *held, '--until', day(until)))
                urls = call(repo, 'stream', *held, '--until', day(until), '--format', 'urls').stdout.split()
                assert (end['pages'], len(urls)) == (pages, pages), (design, k, until, end, urls)
        assert ask(repo, 'get', URL, '--json')[0]['time'] == full(day(9))
        verified(repo)


run()
