#!/usr/bin/env python3
"""`update` and `webdb`: what is known after a crawl, in three forms; what is said about unknown, damaged and missing
things; merges that are killed, run twice at once, or run out of disk space."""
import csv, hashlib, io, signal, time

from e2e import *
from crawlserver import *


def small_site():
    return {'/': page('/a', '/b', '/gone', text='home', title='Home'),
            '/a': Reply(page('/b', text='a'),
                        headers=[('ETag', '"1"'), ('Last-Modified', 'Sun, 01 Mar 2026 10:00:00 GMT')]),
            '/b': Reply('<a href="/a" rel=nofollow>tab\there</a> <a href="http://far.test/x?q=1">far</a>')}


def crawled(folder, sites=None):
    server = Server(sites or {'w.test': small_site()})
    with server:
        crawl(folder / 'r', server, *[server.url(h) for h in server.sites], '--delay', 0)
    return server, folder / 'r'


def facts(repo, url, **kw):
    return ask(repo, 'webdb', 'page', url, **kw)[0]


# ---- what is known -----------------------------------------------------------------------------------

@test
def a_page_in_three_forms(folder):
    server, repo = crawled(folder)
    done(ask(repo, 'update'))
    url, body = server.url('w.test', '/a'), small_site()['/a'].body
    f = facts(repo, url)
    assert f['url'] == url and f['md5'] == hashlib.md5(body).hexdigest() and f['status'] == 200 and f['depth'] == 1, f
    assert f['inlinks'] == 2 and f['flags'] == ['wanted'] and f['result'] == 'stored' and f['etag'] == '"1"', f
    assert f['bytes'] == len(body), f
    assert f['first_seen'] <= f['last_seen'] < f['next_due'] and f['last_changed'].startswith('2026-03-01T10:00:00'), f
    assert f['lifetime'] == 90 and 89 < f['lifetime_left'] <= 90 and f['change_rate'] > 0, f
    assert [(x['result'], x['status']) for x in f['fetches']] == [('stored', 200)], f
    words = dict(line.split(None, 1) for line in call(repo, 'webdb', 'page', url).stdout.decode().splitlines())
    assert words['url'] == url and words['status'] == '200' and words['md5'] == f['md5'], words
    table = list(csv.DictReader(io.StringIO(call(repo, 'webdb', 'page', url, '--tsv').stdout.decode()), delimiter='\t',
                                quoting=csv.QUOTE_NONE))
    # Columns can be imported again. What the store knows about versions, and the index about ranks, is not among them.
    past = ['versions', 'captures', 'latest_since', 'gone_since']
    assert len(table) == 1 and table[0]['url'] == url, table
    assert list(table[0]) + past == [name for name in f if name != 'rank'] and f['rank'] is None, (table, list(f))
    assert (f['versions'], f['captures'], f['gone_since']) == (1, 1, None) and f['latest_since'] == f['last_seen'], f
    assert words['versions'] == '1' and 'gone_since' not in words, words
    never = facts(repo, 'http://far.test/x?q=1')
    assert never['md5'] is None and never['status'] is None and never['last_seen'] is None, never
    assert never['fetches'] == [] and never['first_seen'], never
    gone = facts(repo, server.url('w.test', '/gone'))
    assert gone['status'] == 404 and gone['result'] == 'gone' and gone['flags'] == ['wanted', 'gone'], gone


@test
def lists_of_pages_links_and_sites(folder):
    server, repo = crawled(folder)
    call(repo, 'update')
    urls = [p['url'] for p in ask(repo, 'webdb', 'pages')]
    assert urls == ['http://far.test/x?q=1'] + [server.url('w.test', p) for p in ('/', '/a', '/b', '/gone')], urls
    host = 'w.test:%d' % server.port
    assert [p['url'] for p in ask(repo, 'webdb', 'pages', '--site', host.upper())] == urls[1:]
    assert ask(repo, 'webdb', 'pages', '--site', 'nobody.test') == []
    by_md5 = ask(repo, 'webdb', 'pages', '--by', 'md5')
    assert len(by_md5) == 3 and [p['md5'] for p in by_md5] == sorted(p['md5'] for p in by_md5)
    for p in by_md5:
        assert [q['url'] for q in ask(repo, 'webdb', 'pages', '--md5', p['md5'].upper())] == [p['url']], p
        assert ask(repo, 'webdb', 'exists', p['md5']) == [{'md5': p['md5'], 'exists': True}]
        assert not call(repo, 'webdb', 'exists', p['md5']).stdout
    assert ask(repo, 'webdb', 'pages', '--md5', '0' * 32) == []
    assert ask(repo, 'webdb', 'exists', '0' * 32, status=1) == [{'md5': '0' * 32, 'exists': False}]
    refused(repo, '0' * 32, 'webdb', 'exists', '0' * 32)
    assert ask(repo, 'webdb', 'sites')[1]['site'] == host, ask(repo, 'webdb', 'sites')
    assert ask(repo, 'webdb', 'sites')[1]['fetched'] == 3, ask(repo, 'webdb', 'sites')
    count = ask(repo, 'webdb', 'count')[0]
    assert (count['pages'], count['fetched'], count['links'], count['sites']) == (5, 3, 6, 2), count
    links = ask(repo, 'webdb', 'links', '--to', server.url('w.test', '/a'))
    assert len(links) == 2 and sorted(l['nofollow'] for l in links) == [False, True], links
    assert {l['tag'] for l in links} == {'a'}, links
    b = hashlib.md5(small_site()['/b'].body).hexdigest()
    rows = call(repo, 'webdb', 'links', '--from', b.upper(), '--tsv').stdout.decode().splitlines()
    assert rows[0] == 'from_md5\tto\tanchor\ttag\tnofollow', rows
    assert rows[1:] == [b + '\thttp://far.test/x?q=1\tfar\ta\t0',
                        b + '\t%s\ttab here\ta\t1' % server.url('w.test', '/a')], rows
    assert call(repo, 'webdb', 'links', '--from', '0' * 32, '--tsv').stdout == b'from_md5\tto\tanchor\ttag\tnofollow\n'
    assert call(repo, 'webdb', 'links', '--from', '0' * 32).stdout == b''
    assert len(call(repo, 'webdb', 'links').stdout.splitlines()) == 6
    assert len(call(repo, 'webdb', 'pages').stdout.splitlines()) == 5
    assert b'sound: 5 pages, 6 links' in call(repo, 'webdb', 'check').stdout
    assert ask(repo, 'webdb', 'check')[0] == {'event': 'done', 'ok': True, 'problems': 0, 'pages': 5, 'fetched': 3,
                                              'links': 6, 'edition': 1}
    stat = ask(repo, 'stat')[0]
    assert stat['webdb']['known'] == 5 and stat['webdb']['links'] == 6 and stat['unmerged_bytes'] == 0, stat
    assert 'cycle' not in stat, stat


@test
def foreign_text_cannot_control_the_terminal(folder):
    server, repo = crawled(folder,
                           {'w.test': {'/': '<a href="/x">red \x1b[31m &#10; &#9; end</a>', '/x': page(text='x')}})
    call(repo, 'update')
    for args in (['webdb', 'links'], ['webdb', 'links', '--tsv'], ['webdb', 'page', server.url('w.test')]):
        out = call(repo, *args).stdout
        assert b'\x1b' not in out and all(len(l.split(b'\t')) == 5 for l in out.splitlines() if '--tsv' in args), out


@test
def a_reader_that_goes_away(folder):
    big = {'/': page(*['/%d' % i for i in range(3000)], text='big')}
    closed = Reply('User-agent: *\n' + ''.join('Disallow: /%d\n' % i for i in range(10)), type='text/plain')
    server, repo = crawled(folder, {'w.test': {**big, '/robots.txt': closed}})
    call(repo, 'update')
    for what in ('links', 'pages'):
        p = subprocess.Popen(command(repo, 'webdb', what, '--json'), stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        p.stdout.readline()
        p.stdout.close()
        assert p.wait(PATIENCE) == 1 and p.stderr.read() == b''


# ---- what is not there -----------------------------------------------------------------------------------

@test
def unknown_things_are_named(folder):
    server, repo = crawled(folder)
    refused(repo, 'update', 'webdb', 'count')
    assert b'nothing to check' in call(repo, 'webdb', 'check').stdout
    call(repo, 'update')
    unknown = server.url('w.test', '/never')
    refused(repo, unknown, 'webdb', 'page', unknown)
    refused(repo, 'ftp://x/', 'webdb', 'page', 'ftp://x/')
    refused(repo, 'nonsense', 'webdb', 'page', 'nonsense')
    for named, words in (("'xyz'", ['links', '--from', 'xyz']), ("'" + '0' * 31 + "'", ['links', '--from', '0' * 31]),
                         ('--to', ['links', '--to', 'http://h/', '--from', '0' * 32]),
                         ('frobnicate', ['frobnicate']), ('--to', ['pages', '--to', 'http://h/']),
                         ("'more'", ['count', 'more']), ('page', ['page']), ('--by', ['pages', '--by', 'size']),
                         ('--site', ['pages', '--by', 'md5', '--site', 'h']), ('a/b', ['pages', '--site', 'a/b']),
                         ("'xyz'", ['pages', '--md5', 'xyz']), ('--md5', ['pages', '--md5', '0' * 32, '--site', 'h']),
                         ("'xyz'", ['exists', 'xyz']),
                         ('exists', ['exists']), ('--vertices', ['export'])):
        refused(repo, named, 'webdb', *words, status=2, one_line=False)
    for words in (['webdb', 'count'], ['webdb', 'check'], ['update'], ['generate'], ['expunge'],
                  ['expunge', 'http://h/'], ['push', '/dev/null']):
        refused(folder / 'missing', 'missing', *words)
    assert not (folder / 'missing').exists()


@test
def damage_is_reported_and_nothing_worse_happens(folder):
    server, repo = crawled(folder)
    call(repo, 'update')
    random_ = rng('damage')
    for path in sorted((repo / 'webdb').glob('0*/*')):
        whole = path.read_bytes()
        for at in sorted(random_.sample(range(len(whole)), min(4, len(whole)))):
            path.write_bytes(whole[:at] + bytes([whole[at] ^ 1 << random_.randrange(8)]) + whole[at + 1:])
            p = call(repo, 'webdb', 'check', status=None)
            assert p.returncode == 1 and (path.name in p.stdout.decode() + p.stderr.decode()), (path, at, p)
            assert ask(repo, 'verify', status=1)[0]['ok'] is False
            for words in (['page', server.url('w.test', '/a')], ['pages'], ['links'],
                          ['links', '--to', server.url('w.test', '/a')], ['count'], ['sites']):
                p = call(repo, 'webdb', *words, status=None)
                assert p.returncode in (0, 1), (words, p)
                assert (p.returncode == 0 or path.name in p.stderr.decode() or 'webdb' in p.stderr.decode()), (words, p)
        path.write_bytes(whole[:len(whole) // 2])
        assert call(repo, 'webdb', 'check', status=None).returncode == 1
        path.write_bytes(whole)
    assert call(repo, 'webdb', 'check').returncode == 0


# ---- update --------------------------------------------------------------------------------------------------

@test
def nothing_new_makes_no_edition(folder):
    server, repo = crawled(folder)
    first = done(ask(repo, 'update'))
    assert first['edition'] == 1 and first['pages_added'] == 5 and first['links_added'] == 6, first
    assert first['records'] > 5, first
    again = done(ask(repo, 'update'))
    assert again['edition'] == 1 and again['records'] == 0, again
    assert b'nothing new' in call(repo, 'update').stdout
    assert sorted(p.name for p in (repo / 'webdb').iterdir()) == ['00000001', 'lock']


@test
def a_torn_log_costs_its_last_record(folder):
    server, repo = crawled(folder)
    log = max((repo / 'journal').iterdir(), key=lambda p: p.stat().st_size)
    text = bytearray(log.read_bytes())
    text[32:48] = bytes(16)     # it did not end cleanly
    log.write_bytes(text[:-7])
    p = call(repo, 'update')
    assert log.name in p.stderr.decode() and p.stderr.count(b'\n') == 1, p.stderr
    call(repo, 'webdb', 'check')


@test
def a_damaged_webdb_is_rebuilt(folder):
    server, repo = crawled(folder)
    call(repo, 'update')
    call(repo, 'expunge', server.url('w.test', '/a'))
    links, pages = ask(repo, 'webdb', 'links'), ask(repo, 'webdb', 'pages')
    names = ['pages.wbt', 'inlinks.wbt', 'outlinks.wbt', 'contents.wbc', 'degrees.wbc', 'sites.wbt', 'manifest']
    for n, name in enumerate(names):
        copy = folder / name
        subprocess.run(['cp', '-a', repo, copy], check=True)
        path = next((copy / 'webdb').glob('0*')) / name
        data = bytearray(path.read_bytes())
        data[len(data) // 3] ^= 0x55
        path.write_bytes(data)
        if n % 2:
            path.unlink()
        call(copy, 'push', '-', input=b'http://new.test/\n')
        refused(copy, '--rebuild', 'update', one_line=False)
        call(copy, 'update', '--rebuild')
        call(copy, 'webdb', 'check')
        assert sorted(map(str, ask(copy, 'webdb', 'links'))) == sorted(map(str, links)), name
        now = {p['url']: p for p in ask(copy, 'webdb', 'pages')}
        assert set(now) == {p['url'] for p in pages} | {'http://new.test/'}, name
        for p in pages:
            assert now[p['url']]['md5'] == p['md5'], (name, p)
            # Only what the damaged row alone knew is lost.
            assert name == 'pages.wbt' or now[p['url']]['flags'] == p['flags'], (name, p, now[p['url']])
        call(copy, 'update')


@test
def damage_in_the_journal_is_reported_and_skipped(folder):
    server, repo = crawled(folder)
    log = max((repo / 'journal').iterdir(), key=lambda p: p.stat().st_size)
    text = bytearray(log.read_bytes())
    text[len(text) // 2] ^= 0xff
    log.write_bytes(text)
    p = call(repo, 'update')
    assert log.name in p.stderr.decode(), p.stderr
    call(repo, 'webdb', 'check')


@test
def two_updates_at_once(folder):
    server, repo = crawled(folder)
    lock = repo / 'webdb' / 'lock'
    lock.parent.mkdir(exist_ok=True)
    with open(lock, 'w') as f:
        import fcntl
        fcntl.flock(f, fcntl.LOCK_EX)
        refused(repo, repo, 'update')
    call(repo, 'update')
    assert ask(repo, 'webdb', 'count')[0]['links'] == 6


@test
def killed_updates_leave_nothing_behind(folder):
    sites = {'k.test': {'/': page(*['/%d' % i for i in range(60)]),
                        **{'/%d' % i: page(*['/x%d' % (i * j % 997) for j in range(1, 120)], text=str(i))
                           for i in range(60)}}}
    server, repo = crawled(folder, sites)
    random_ = rng('kill')
    for attempt in range(6):
        p = subprocess.Popen(command(repo, 'update'), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        time.sleep(random_.uniform(0.001, 0.06))
        p.kill()
        p.wait()
        call(repo, 'webdb', 'check')
    call(repo, 'update')
    assert sorted(p.name for p in (repo / 'webdb').iterdir() if p.name != 'lock')[-1:]
    assert not list((repo / 'webdb').glob('new-*'))
    assert len(list((repo / 'webdb').glob('0*'))) == 1
    verified(repo)


@test
def a_full_disk_leaves_the_old_edition(folder):
    random_ = rng('disk')
    with small_disk(folder / 'disk', '48m') as disk:
        site = {'/': page('/1', text='start')}
        with Server({'d.test': site}) as server:
            crawl(disk / 'r', server, server.url('d.test'), '--delay', 0)
            call(disk / 'r', 'update')
            site['/'] = page(*['/%d' % i for i in range(1, 40)], text='more')
            for i in range(1, 40):
                site['/%d' % i] = page(*['/%032x' % random_.getrandbits(128) for _ in range(400)], text=str(i))
            crawl(disk / 'r', server, server.url('d.test'), '--delay', 0, '--max-depth', 1)
        before = ask(disk / 'r', 'webdb', 'count')[0]
        with open(disk / 'filler', 'wb', buffering=0) as f:
            try:
                while True:
                    f.write(bytes(1 << 16))
            except OSError:
                pass
        text = refused(disk / 'r', 'webdb', 'update')
        assert 'space' in text.lower(), text
        assert ask(disk / 'r', 'webdb', 'count')[0] == before
        (disk / 'filler').unlink()
        call(disk / 'r', 'webdb', 'check')
        call(disk / 'r', 'update')
        assert ask(disk / 'r', 'webdb', 'count')[0]['links'] > 10000


@test
def signals_end_it_cleanly(folder):
    sites = {'s.test': {'/': page(*['/%d' % i for i in range(80)]),
                        **{'/%d' % i: page(*['/x%d-%d' % (i, j) for j in range(300)], text=str(i)) for i in range(80)}}}
    sites['s.test']['/robots.txt'] = Reply('User-agent: *\nDisallow: /x\n', type='text/plain')
    server, repo = crawled(folder, sites)
    p = subprocess.Popen(command(repo, 'update'), stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    until(lambda: list((repo / 'webdb').glob('new-*')) or p.poll() is not None, every=0.001)
    p.send_signal(signal.SIGTERM)
    out, err = p.communicate(timeout=PATIENCE)
    assert p.returncode in (0, 1), (p.returncode, err)
    call(repo, 'webdb', 'check')
    call(repo, 'update')
    assert ask(repo, 'webdb', 'count')[0]['links'] == 80 + 80 * 300


run_together(4)
