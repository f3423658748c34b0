#!/usr/bin/env python3
"""Limits, seeds and continuing: a crawl leaves out what it was told to leave out, and a later crawl finds it."""
import signal, time

from e2e import *
from crawlserver import *


def chain(length, host='c'):
    """A chain of pages, each of which links to the next."""
    return {'/' if n == 0 else '/%d' % n: page('/%d' % (n + 1), text='%s %d' % (host, n)) for n in range(length)}


def asked_once(server):
    twice = {k: n for k, n in server.counts.items() if n > 1 and k[1] != '/robots.txt'}
    assert not twice, twice


# ---- limits ----------------------------------------------------------------------------------

@test
def max_pages_is_never_exceeded_and_the_crawl_can_be_continued(folder):
    sites = {'m%d.test' % i: star(30, 'm%d' % i) for i in range(4)}
    with Server(sites, latency=lambda: 0.004) as server:
        seeds = [server.url(h) for h in sites]
        for limit, total in ((1, 1), (37, 38), (50, 88)):
            assert done(crawl(folder / 'r', server, *seeds, '--delay', 0, '--processes', 3, '--max-pages',
                              limit))['pages'] == limit
            assert ask(folder / 'r', 'stat')[0]['pages'] == total
        verdict = [ask(folder / 'r', 'why', server.url(h, '/%d' % n))[0] for h in sites for n in range(1, 30)]
        waiting = [v for v in verdict if v['verdict'] == 'waiting']
        assert len(waiting) >= 30 and all('queue' in v['reason'] for v in waiting), verdict[:3]
        assert done(crawl(folder / 'r', server, *seeds, '--delay', 0))['pages'] == 120 - 88
        assert ask(folder / 'r', 'stat')[0]['pages'] == 120
        asked_once(server)


@test
def max_bytes_truncates_and_says_so(folder):
    big, small = b'<p>' + b'0123456789' * 10000, b'<p>' + b'x' * 400
    with Server({'b.test': {'/': page('/big', '/small'), '/big': Reply(big, headers=[('ETag', '"v1"')]),
                            '/small': small}}) as server:
        events = crawl(folder / 'r', server, server.url('b.test'), '--delay', 0, '--max-bytes', 5000)
        assert results(events)[server.url('b.test', '/big')] == 'truncated'
        assert results(events)[server.url('b.test', '/small')] == 'stored'
        facts = ask(folder / 'r', 'get', server.url('b.test', '/big'))[0]
        assert facts['truncated'] is True and facts['length'] == 5000, facts
        assert call(folder / 'r', 'get', server.url('b.test', '/big')).stdout == big[:5000]
        assert ask(folder / 'r', 'get', server.url('b.test', '/small'))[0]['truncated'] is False
        assert 'truncated' in ask(folder / 'r', 'why', server.url('b.test', '/big'))[0]['reason']
        # A truncated page is not compared with later versions.
        crawl(folder / 'r', server, server.url('b.test'), '--delay', 0)
        assert 'if-none-match' not in [r for r in server.requests if r.path == '/big'][-1].headers
        assert call(folder / 'r', 'get', server.url('b.test', '/big')).stdout == big
        assert ask(folder / 'r', 'get', server.url('b.test', '/big'))[0]['truncated'] is False
        verified(folder / 'r')


@test
def a_timeout_costs_only_the_page(folder):
    slow = Reply(b'x' * 1000, wait=3000)
    with Server({'t.test': {**star(4), '/2': slow, '/3': Reply(end='hang')}}) as server:
        events = crawl(folder / 'r', server, server.url('t.test'), '--delay', 0, '--timeout', 3)
        found = results(events)
        assert found[server.url('t.test', '/2')] == found[server.url('t.test', '/3')] == 'error:timeout', found
        assert done(events)['pages'] == 2
        reason = ask(folder / 'r', 'why', server.url('t.test', '/2'))[0]
        assert reason['verdict'] == 'blocked' and 'timeout' in reason['reason'], reason


@test
def site_budget(folder):
    with Server({'a.test': star(10, 'a'), 'b.test': star(10, 'b'), 'c.test': star(10, 'c')}) as server:
        seeds = folder / 'seeds'
        seeds.write_text('%s budget=2\n%s budget=0\n%s\n' %
                         (server.url('a.test'), server.url('b.test'), server.url('c.test')))
        crawl(folder / 'r', server, '--seeds', seeds, '--delay', 0, '--site-budget', 5)
        assert len(server.pages_asked('a.test')) == 2 and len(server.pages_asked('b.test')) == 0
        assert len(server.pages_asked('c.test')) == 5
        assert 'budget' in ask(folder / 'r', 'why', 'c.test:%d' % server.port)[0]['reason']


@test
def max_depth(folder):
    with Server({'d.test': chain(6)}) as server:
        for depth in (0, 2):
            repo = folder / ('r%d' % depth)
            crawl(repo, server, server.url('d.test'), '--delay', 0, '--max-depth', depth)
            assert ask(repo, 'stat')[0]['pages'] == depth + 1
        # The next visit may go deeper.
        crawl(folder / 'r2', server, server.url('d.test'), '--delay', 0, '--max-depth', 4)
        assert ask(folder / 'r2', 'stat')[0]['pages'] == 5
        deep = ask(folder / 'r2', 'why', server.url('d.test', '/5'))[0]
        assert deep['verdict'] == 'blocked' and 'depth' in deep['reason'], deep


@test
def max_time_ends_the_crawl_and_it_can_be_continued(folder):
    with Server({'e.test': star(50)}) as server:
        # Half of the time that all pages would take.
        crawl(folder / 'r', server, server.url('e.test'), '--delay', 0.1, '--max-time', 2.5)
        assert ask(folder / 'r', 'stat')[0]['pages'] < 50
        crawl(folder / 'r', server, server.url('e.test'), '--delay', 0.1)
        assert ask(folder / 'r', 'stat')[0]['pages'] == 50
        asked_once(server)
        server.expect_gaps(0.1)


@test
def fresh_pages_are_left_alone_and_their_links_followed(folder):
    with Server({'f.test': chain(5)}) as server:
        crawl(folder / 'r', server, server.url('f.test'), '--delay', 0, '--max-depth', 1)
        events = crawl(folder / 'r', server, server.url('f.test'), '--delay', 0, '--fresh', '1h')
        asked_once(server)
        assert results(events)[server.url('f.test')] == 'fresh'
        assert ask(folder / 'r', 'stat')[0]['pages'] == 5
        crawl(folder / 'r', server, server.url('f.test'), '--delay', 0, '--fresh', '0.001')
        assert server.counts['f.test', '/3'] == 2


# ---- the root first -----------------------------------------------------------------------------

DEEP = {'/deep/%d' % n: page(text='deep %d' % n) for n in range(4)}


@test
def a_site_is_entered_at_its_root_if_possible(folder):
    roots = {'ok.test': page('/deep/0'), 'gone.test': Reply('', 404), 'broken.test': Reply('', 500),
             'moved.test': redirect('/home'),
             'closed.test': page('/deep/2')}
    with Server({h: {'/': root, '/home': page('/deep/1'), **DEEP} for h, root in roots.items()}) as server:
        server.sites['closed.test']['/robots.txt'] = Reply('User-agent: *\nDisallow: /$\n', type='text/plain')
        server.sites['gone.test']['/deep/1'] = page('/deep/0', '/deep/2')
        seeds = [server.url(h, p) for h in roots for p in DEEP]
        crawl(folder / 'r', server, *seeds, '--delay', 0, '--root-first')
        assert set(server.pages_asked('ok.test')) == {'/', '/deep/0'}
        assert set(server.pages_asked('moved.test')) == {'/', '/home', '/deep/1'}
        assert set(server.pages_asked('gone.test')) == {'/', *DEEP}
        assert set(server.pages_asked('broken.test')) == {'/', *DEEP}
        assert set(server.pages_asked('closed.test')) == {*DEEP}
        asked_once(server)


@test
def deep_seeds_survive_an_interruption(folder):
    """The crawl is stopped or killed while it waits for the root page, or after the root turned out to be gone."""
    for n, (sig, moment) in enumerate([(signal.SIGTERM, 'before'), (signal.SIGKILL, 'before'),
                                       (signal.SIGTERM, 'after'), (signal.SIGKILL, 'after')]):
        with Server({'g.test': {'/': Reply('', 404, wait=0.25), **DEEP}}) as server:
            repo = folder / str(n)
            args = [server.url('g.test', p) for p in DEEP] + ['--delay', 0.1, '--root-first', '--processes', 1]
            p = start(repo, server, *args)
            until(lambda: '/' in server.paths('g.test') and (moment == 'before' or '/deep/0' in server.paths('g.test')))
            time.sleep(0.05)
            os.killpg(p.pid, sig)
            p.wait(PATIENCE)
            crawl(repo, server, *args)
            assert set(server.pages_asked('g.test')) == {'/', *DEEP}, \
                'lost after %s, %s the root: %s' % (sig.name, moment, server.paths('g.test'))
            server.expect_gaps(0.1)


# ---- seeds --------------------------------------------------------------------------------------

@test
def a_file_of_seeds(folder):
    with Server({'quick.test': star(6, 'q'), 'slow.test': star(4, 's'), 'own.test': star(4, 'o')}) as server:
        seeds = folder / 'seeds.txt'
        seeds.write_text('# comment\n\nclass lazy delay=0.4 budget=3\n%s\nnot a url\n%s class=lazy\nhttp://[bad/\n'
                         '%s delay=0.25 # slower\n'
                         'ftp://x.test/\n%s delay=never\n%s class=none\nmailto:a@b.c\n' %
                         (server.url('quick.test'), server.url('slow.test'),
                         server.url('own.test'), server.url('quick.test', '/x'), server.url('quick.test', '/y')))
        crawl(folder / 'r', server, '--seeds', seeds, '--delay', 0.05)
        for line in (5, 7, 9, 10, 11, 12):
            assert '%s:%d: ' % (seeds, line) in crawl.words, (line, crawl.words)
        assert crawl.words.count('seeds.txt:') == 6, crawl.words
        server.expect_gaps(0.4, ['slow.test'])
        server.expect_gaps(0.25, ['own.test'])
        assert len(server.pages_asked('slow.test')) == 3 and len(server.pages_asked('quick.test')) == 6
        last = {r.host: r.time for r in server.requests}
        assert last['quick.test'] < last['slow.test'], 'six intervals of 0.05 s are shorter than three of 0.4 s'
        # They are kept for the next run, which names only the site.
        crawl(folder / 'r', server, server.url('slow.test'), '--delay', 0.05)
        server.expect_gaps(0.4, ['slow.test'])


@test
def no_seeds_and_nonsense(folder):
    with Server({'n.test': star(2)}) as server:
        assert b'seeds' in call(folder / 'none', 'crawl', status=1).stderr
        assert not (folder / 'none').exists()
        empty = folder / 'empty'
        empty.write_text('# nothing\n')
        call(folder / 'r', 'crawl', '--seeds', empty, status=1)
        refused(folder / 'r', 'missing', 'crawl', '--seeds', folder / 'missing')
        for nonsense in ('http://', 'ftp://a.test/', 'http://a b/', 'http://[::1', 'javascript:alert(1)', ''):
            p = call(folder / 'r', 'crawl', nonsense, status=None)
            assert p.returncode in (1, 2) and p.stderr.startswith(b'webbase: '), (nonsense, p)
        for bad in (['--delay', '-1'], ['--delay', 'x'], ['--scope', 'all'], ['--max-pages', 'many'],
                    ['--resolve', 'x'], ['--dispenser', 'mysql://x'],
                    ['--ca-file', folder / 'nope'], ['--processes', '-3']):
            p = call(folder / 'r', 'crawl', server.url('n.test'), '--allow-private', *bad, status=None)
            assert p.returncode in (1, 2) and p.stderr.startswith(b'webbase: '), (bad, p)
        assert not server.requests
        crawl(folder / 'r', server, server.url('n.test'), '--delay', 0)
        p = call(folder / 'r', 'crawl', status=1)
        assert b'no unfinished' in p.stderr, p.stderr


@test
def seeds_from_standard_input_and_more_of_them_later(folder):
    with Server({'x.test': {'/': page('/a'), '/a': page(), '/island': page('/b'), '/b': page(text='b')},
                 'y.test': star(3)}) as server:
        crawl(folder / 'r', server, '--seeds', '-', '--delay', 0, input=('%s\n' % server.url('x.test')).encode())
        assert set(server.pages_asked('x.test')) == {'/', '/a'}
        # Seeds of the same site and of another site: the new pages are requested, and the old ones again in the new
        # visit.
        crawl(folder / 'r', server, server.url('x.test', '/island'), server.url('y.test'), '--delay', 0)
        assert {'/island', '/b'} <= set(server.pages_asked('x.test')) and len(server.pages_asked('y.test')) == 3
        assert ask(folder / 'r', 'stat')[0]['pages'] == 7


@test
def without_seeds_everything_unfinished_is_continued(folder):
    with Server({'u%d.test' % i: star(8, 'u%d' % i) for i in range(3)}) as server:
        crawl(folder / 'r', server, *[server.url(h) for h in server.sites], '--delay', 0, '--max-pages', 7)
        crawl(folder / 'r', server, '--delay', 0)
        assert ask(folder / 'r', 'stat')[0]['pages'] == 24
        asked_once(server)


@test
def another_seed_does_not_continue_what_is_unfinished(folder):
    """After an interrupted crawl of two sites, a crawl of the finished one alone visits it again, and does not continue
    the other."""
    with Server({'one.test': star(2, 'one'), 'two.test': star(30, 'two')}) as server:
        crawl(folder / 'r', server, server.url('one.test'), server.url('two.test'), '--delay', 0.1, '--max-time', 1.5)
        assert server.counts['one.test', '/'] == 1 and len(server.pages_asked('two.test')) < 30
        before = len(server.pages_asked('two.test'))
        crawl(folder / 'r', server, server.url('one.test'), '--delay', 0.1)
        assert server.counts['one.test', '/'] == 2 and len(server.pages_asked('two.test')) == before
        crawl(folder / 'r', server, server.url('two.test'), '--delay', 0)
        assert all(server.counts['two.test', '/%d' % n] == 1 for n in range(1, 30))


run_together()
