#!/usr/bin/env python3
"""Snapshots: sealing, listing, reading and dropping them, and everything that can be wrong about their names."""
import subprocess

from e2e import *

FIELDS = {'snapshot', 'name', 'epoch', 'time', 'pages', 'expires', 'held_by'}


def urls(count):
    return ['http://www.alpha.example/%d' % i for i in range(count)]


def put(repo, folder, name, bodies, date):
    """Imports one body for each of the first URLs."""
    pages = [Page(url, body, date) for url, body in zip(urls(len(bodies)), bodies)]
    assert done(ask(repo, 'import', archive(folder / (name + '.warc'), pages)))['errors'] == 0


def seal(repo, *options):
    out = ask(repo, 'snapshot', *options)
    assert len(out) == 1 and FIELDS <= set(out[0]), out
    return out[0]


def listed(repo):
    return ask(repo, 'snapshot', 'list')


def exported(repo, folder, *options):
    """{URL: body}"""
    path = folder / 'out.warc'
    end = done(ask(repo, 'export', '--warc', path, '--force', *options))
    found, records = {}, path.read_bytes().split(b'WARC/1.1\r\n')[2:]
    for r in records:
        url = r.partition(b'WARC-Target-URI: ')[2].partition(b'\r\n')[0].decode()
        found[url] = r.split(b'\r\n\r\n')[2]
    assert end['pages'] == len(records) == len(found), end
    return found


@test
def a_snapshot_stays_as_it_was(folder):
    repo = folder / 'r'
    put(repo, folder, 'one', [b'a1', b'b1'], '2026-01-01T00:00:00Z')
    s = seal(repo, '--name', 'corpus-2026')
    assert (s['snapshot'], s['name'], s['pages'], s['expires'], s['held_by']) == \
        (1, 'corpus-2026', 2, None, ['person']), s
    put(repo, folder, 'two', [b'a2', b'b1', b'c2'], '2026-01-02T00:00:00Z')
    second = seal(repo)
    assert (second['snapshot'], second['name'], second['pages']) == (2, None, 3) and second['epoch'] > s['epoch'], second
    put(repo, folder, 'three', [b'a3', b'b3', b'c3', b'd3'], '2026-01-03T00:00:00Z')
    call(repo, 'compact')
    a, b, c, d = urls(4)
    states = {'1': {a: b'a1', b: b'b1'}, 'corpus-2026': {a: b'a1', b: b'b1'}, '2': {a: b'a2', b: b'b1', c: b'c2'}}
    for which, state in states.items():
        assert exported(repo, folder, '--snapshot', which) == state, which
        for url in urls(4):
            if url in state:
                assert call(repo, 'get', url, '--snapshot', which).stdout == state[url], (which, url)
            else:
                text = refused(repo, url, 'get', url, '--snapshot', which)
                assert 'snapshot %s' % which in text, text
    assert exported(repo, folder) == {a: b'a3', b: b'b3', c: b'c3', d: b'd3'}
    assert exported(repo, folder, '--snapshot', '2', '--site', 'nobody.example') == {}
    assert len(exported(repo, folder, '--snapshot', '1', '--since', '2026-01-01', '--until', '2026-01-02')) == 2
    assert exported(repo, folder, '--snapshot', '2', '--until', '2026-01-02') == {}
    assert [x['snapshot'] for x in listed(repo)] == [1, 2] and listed(repo)[0] == s
    stat = ask(repo, 'stat')[0]
    assert (stat['snapshot'], stat['snapshots'], stat['pages'], stat['versions']) == (2, 2, 4, 8), stat
    verified(repo)


@test
def words_for_people(folder):
    repo = folder / 'r'
    call(repo, 'init')
    assert call(repo, 'snapshot', 'list').stdout == b'there are no snapshots\n' and listed(repo) == []
    put(repo, folder, 'one', [b'a'], '2026-01-01T00:00:00Z')
    text = call(repo, 'snapshot', '--name', 'n').stdout
    assert text == b'sealed snapshot 1 (n) with 1 page; it is kept until it is dropped\n', text
    assert b'it is kept until 20' in call(repo, 'snapshot', '--keep', '2w').stdout
    rows = call(repo, 'snapshot', 'list').stdout.decode().split('\n')
    assert len(rows) == 4 and 'held by' in rows[0] and rows[1].split()[:2] == ['1', 'n'] and 'never' in rows[1], rows
    assert rows[2].endswith('  person') and 'never' not in rows[2], rows
    assert b'snapshot      2 (2 can be read)' in call(repo, 'stat').stdout
    assert call(repo, 'snapshot', 'drop', 'n').stdout.startswith(b'dropped snapshot 1 (n);')
    assert ask(repo, 'snapshot', 'drop', '2') == [{'event': 'done', 'snapshot': 2, 'name': None}]


@test
def dropping_frees_what_only_that_snapshot_had(folder):
    repo, random_ = folder / 'r', rng('drop')
    bodies = [[random_.randbytes(50000) for _ in range(10)] for _ in range(3)]
    for n in range(3):
        put(repo, folder, str(n), bodies[n], '2026-01-0%dT00:00:00Z' % (n + 1))
        if n < 2:
            seal(repo, '--name', 'state-%d' % n)
    before = ask(repo, 'stat')[0]
    assert before['versions'] == 30 and before['pages'] == 10, before
    call(repo, 'snapshot', 'drop', '1')
    for words in (['get', urls(1)[0], '--snapshot', 'state-0'], ['snapshot', 'drop', 'state-0'],
                  ['export', '--warc', folder / 'never.warc', '--snapshot', 'state-0']):
        refused(repo, 'state-0', *words)
    assert not (folder / 'never.warc').exists()
    end = done(ask(repo, 'compact'))
    assert end['versions'] == 10, end
    after = ask(repo, 'stat')[0]
    assert after['versions'] == 20 and after['bytes_stored'] < before['bytes_stored'] - 400000, (before, after)
    assert exported(repo, folder, '--snapshot', 'state-1') == dict(zip(urls(10), bodies[1]))
    assert seal(repo, '--name', 'state-0')['snapshot'] == 3        # the name is free again, the number is not
    verified(repo)


@test
def an_expired_snapshot_is_gone(folder):
    repo = folder / 'r'
    put(repo, folder, 'one', [b'a'], '2026-01-01T00:00:00Z')
    s = seal(repo, '--name', 'brief', '--keep', '1ms')
    assert s['expires'] > s['time'] or s['expires'] >= s['time'], s
    deadline = time.time() + PATIENCE
    while listed(repo) and time.time() < deadline:
        time.sleep(0.01)
    refused(repo, 'brief', 'get', urls(1)[0], '--snapshot', 'brief')
    refused(repo, '1', 'get', urls(1)[0], '--snapshot', '1')
    refused(repo, 'brief', 'snapshot', 'drop', 'brief')
    assert seal(repo, '--name', 'brief', '--keep', '1d')['snapshot'] == 2


@test
def nonsense_is_named(folder):
    repo = folder / 'r'
    put(repo, folder, 'one', [b'a'], '2026-01-01T00:00:00Z')
    only = seal(repo, '--name', 'taken')
    url = urls(1)[0]
    for which in ('99', 'unknown', '0', '00', '99999999999999999999999', 'x' * 300, 'Taken', '1.0', 'new\x1bline'):
        shown = which.replace('\x1b', '?')[:60]
        refused(repo, shown, 'get', url, '--snapshot', which)
        refused(repo, shown, 'export', '--warc', folder / 'never.warc', '--snapshot', which)
        refused(repo, shown, 'snapshot', 'drop', which)
    for named, words in (('--snapshot', ['get', url, '--snapshot', '']), ('drop', ['snapshot', 'drop']),
                         ('frobnicate', ['snapshot', 'frobnicate']), ("''", ['snapshot', '']),
                         ("'x'", ['snapshot', 'list', 'x']), ("'y'", ['snapshot', 'drop', 'x', 'y']),
                         ('--name', ['snapshot', 'list', '--name', 'x']), ('--keep', ['snapshot', 'drop', '1', '--keep', '1d']),
                         ('--frobnicate', ['snapshot', '--frobnicate']), ('--name', ['snapshot', '--name']),
                         ('-3', ['snapshot', 'drop', '-3'])):
        refused(repo, named, *words, status=2, one_line=False)
    for name in ('a/b', '..' + '/x', 'new\nline', 'tab\t', '\x1b[31m', '\x7f', '', 'x' * 65, 'x' * 5000, '17', 'ü', 'a b'):
        text = refused(repo, '--name', 'snapshot', '--name', name, status=2, one_line=False)
        assert text.count('\n') == 2 and '\x1b' not in text, text
    for keep in ('banana', '-1s', '0', '0s', '', '5 parsecs', '1e99y'):
        text = refused(repo, '--keep', 'snapshot', '--keep', keep, status=2, one_line=False)
        assert "'%s'" % keep in text, text
    refused(repo, 'taken', 'snapshot', '--name', 'taken')
    for words in (['snapshot'], ['snapshot', 'list'], ['snapshot', 'drop', '1']):
        refused(folder / 'missing', 'missing', *words)
    assert not (folder / 'missing').exists() and not (folder / 'never.warc').exists()
    assert not list(folder.glob('*.tmp'))
    assert listed(repo) == [only]
    verified(repo)


@test
def names_of_every_kind(folder):
    repo = folder / 'r'
    put(repo, folder, 'one', [b'a'], '2026-01-01T00:00:00Z')
    for n, name in enumerate(('x', 'x' * 64, '2026-01', '1a', '.', '-x', 'A_b.c-d'), 1):
        assert seal(repo, '--name=' + name)['snapshot'] == n
        assert call(repo, 'get', urls(1)[0], '--snapshot=' + name).stdout == b'a', name
    assert len(listed(repo)) == 7


@test
def a_takedown_reaches_snapshots(folder):
    repo = folder / 'r'
    put(repo, folder, 'one', [b'a1', b'b1'], '2026-01-01T00:00:00Z')
    seal(repo, '--name', 'kept')
    put(repo, folder, 'two', [b'a2', b'b2'], '2026-01-02T00:00:00Z')
    a, b = urls(2)
    call(repo, 'expunge', a)
    assert exported(repo, folder, '--snapshot', 'kept') == {b: b'b1'}
    for words in (['get', a], ['get', a, '--snapshot', 'kept'], ['get', a, '--at', '2026-01-01'], ['versions', a]):
        refused(repo, a, *words)


@test
def a_read_only_disk_and_a_full_one(folder):
    archive(folder / 'a.warc', [Page(urls(1)[0], b'one', '2026-01-01T00:00:00Z')])
    archive(folder / 'b.warc', [Page(urls(1)[0], b'two', '2026-01-02T00:00:00Z')])
    with small_disk(folder / 'disk', '64m') as disk:
        repo = disk / 'pages.repo'
        call(repo, 'init', '--history', 'all')
        call(repo, 'import', folder / 'a.warc')
        seal(repo, '--name', 'kept')
        call(repo, 'import', folder / 'b.warc')
        remount(disk, 'ro')
        for words in (['snapshot'], ['snapshot', 'drop', 'kept'], ['history', 'newest']):
            refused(repo, 'pages.repo', *words)
        refused(repo, 'out.warc', 'export', '--warc', disk / 'out.warc', '--versions')
        assert [s['name'] for s in listed(repo)] == ['kept'] and ask(repo, 'history') == [{'history': 'all'}]
        assert call(repo, 'get', urls(1)[0], '--snapshot', 'kept').stdout == b'one'
        assert len(ask(repo, 'versions', urls(1)[0])) == 2
        remount(disk, 'rw')
        with contextlib.suppress(OSError), open(disk / 'ballast', 'wb', buffering=0) as ballast:
            while ballast.write(bytes(4096)):
                pass
        for n in range(100):
            p = call(repo, 'snapshot', '--name', 'full-%d' % n, status=None)
            assert p.returncode == 0 or p.returncode == 1 and b'pages.repo' in p.stderr, p
            if p.returncode:
                break
        p = call(repo, 'export', '--warc', disk / 'out.warc', '--versions', status=1)
        assert b'out.warc' in p.stderr and not list(disk.glob('out.warc*')), p
        (disk / 'ballast').unlink()
        assert [s['name'] for s in listed(repo)][:1] == ['kept']
        assert call(repo, 'get', urls(1)[0], '--snapshot', 'kept').stdout == b'one'
        verified(repo)


@test
def an_export_sees_its_snapshot_while_everything_changes(folder):
    repo, random_ = folder / 'r', rng('change')
    first = [random_.randbytes(20000) for _ in range(200)]
    put(repo, folder, 'first', first, '2026-01-01T00:00:00Z')
    seal(repo, '--name', 'state')
    p = subprocess.Popen(command(repo, 'export', '--warc', '-', '--snapshot', 'state'), stdout=subprocess.PIPE,
                         stderr=subprocess.PIPE, bufsize=0)
    data = p.stdout.read(1000)
    put(repo, folder, 'second', [random_.randbytes(20000) for _ in range(200)], '2026-01-02T00:00:00Z')
    call(repo, 'snapshot', 'drop', 'state')
    call(repo, 'compact')
    rest, errors = p.communicate(timeout=PATIENCE)
    assert p.returncode == 0, errors
    (folder / 'out.warc').write_bytes(data + rest)
    again = folder / 'again'
    assert done(ask(again, 'import', folder / 'out.warc'))['pages'] == 200
    for url, body in list(zip(urls(200), first))[::20]:
        assert call(again, 'get', url).stdout == body, url


run()
