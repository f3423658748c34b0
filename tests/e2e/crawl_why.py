#!/usr/bin/env python3
"""`why` in every situation, plain and as JSON, after a crawl and while one runs."""
import signal, time

from e2e import *
from crawlserver import *
from websim import seconds_of


def why(repo, what, verdict, *words, **kw):
    """Runs `why` and returns its answer. The verdict and the words must be in it, with --json and without."""
    got = ask(repo, 'why', what, '--user-agent', AGENT, **kw)
    assert len(got) == 1, got
    got = got[0]
    assert got['verdict'] == verdict, (what, got)
    assert {'url', 'verdict', 'reason', 'robots_line', 'next_time'} <= set(got), got
    for word in words:
        assert word in got['reason'], (what, word, got)
    plain = call(repo, 'why', what, '--user-agent', AGENT, **kw).stdout.decode()
    assert verdict in plain and all(word in plain for word in words), (plain, words)
    return got


ROBOTS = Reply('# rules\nUser-agent: *\nDisallow: /\n\nUser-agent: promisecheck\nDisallow: /shut\nAllow: /shut/open\n',
               type='text/plain')


@test
def why_explains_every_outcome(folder):
    trap = '/' + 'a/b/' * 12
    with Server({'w.test': {'/robots.txt': ROBOTS}, 'elsewhere.test': {'/': page(text='e')}}) as server:
        site = server.sites['w.test']
        site['/'] = page('/fine', '/moved', '/gone', '/missing', '/broken', '/cut', '/shut/in', '/shut/open',
                         server.url('elsewhere.test', '/x'), '/slow', trap) + \
            b'<a rel=nofollow href=/shy>x</a>'
        site.update({'/fine': page(text='fine'), '/moved': redirect('/fine'), '/gone': Reply('', 410),
                     '/broken': Reply('', 500), '/shut/open': page(text='o'),
                     '/cut': Reply(b'x' * 1000, end='reset'), '/slow': Reply('', wait=30)})
        url = lambda path: server.url('w.test', path)
        crawl(folder / 'r', server, url('/'), '--delay', 0, '--timeout', 3)
        r = folder / 'r'
        assert why(r, url('/fine'), 'fetched', 'stored', '200')['next_time'] is None
        why(r, url('/fine/'), 'fetched')
        why(r, url('/fine#part'), 'fetched')
        why(r, url('/moved'), 'fetched', 'redirects to', '/fine')
        why(r, url('/gone'), 'blocked', 'gone', '410')
        why(r, url('/missing'), 'blocked', 'gone', '404')
        why(r, url('/broken'), 'blocked', 'error:status')
        why(r, url('/cut'), 'blocked', 'error:')
        why(r, url('/slow'), 'blocked', 'error:timeout')
        got = why(r, url('/shut/in'), 'blocked', 'robots.txt', 'line 6')
        assert got['robots_line'] == 'Disallow: /shut', got
        why(r, url('/shut/open'), 'fetched')
        # The same line forbids a URL that nobody links to.
        assert why(r, url('/shut/never-seen'), 'blocked', 'robots.txt')['robots_line'] == 'Disallow: /shut'
        why(r, url('/shy'), 'blocked', 'not to be followed', url('/'))
        why(r, server.url('elsewhere.test', '/x'), 'blocked', 'scope', url('/'))
        why(r, url('/never'), 'unknown')
        why(r, 'http://unheard.test/of', 'unknown')
        why(r, 'unheard.test', 'unknown')
        why(r, url(trap), 'blocked', 'guard')
        why(r, 'w.test:%d' % server.port, 'fetched', 'pages')
        why(r, 'w.test', 'fetched', 'pages')
        assert call(r, 'why', 'http://', status=None).returncode in (1, 2)
        assert call(r, 'why', status=None).returncode == 2
        refused(folder / 'none', 'none', 'why', url('/'))


@test
def why_explains_sites_that_are_not_contacted(folder):
    with Server({'p.test': {'/': page()}}) as server:
        p = call(folder / 'r', 'crawl', '--json', server.url('p.test', '/x'), 'http://127.0.0.1:%d/' % server.port,
                 'http://no-such-name.invalid/', *server.resolve(),
                 '--delay', '0', '--dns', '127.0.0.1:1', timeout=PATIENCE)
        said = {e['url']: e['result'] for e in fetches(lines(p.stdout))}
        assert said[server.url('p.test', '/x')] == 'error:private', said
        assert said['http://no-such-name.invalid/'] == 'error:dns', said
        assert not server.requests
        for what in (server.url('p.test', '/x'), 'p.test:%d' % server.port, server.url('p.test', '/other'), 'p.test',
                     '127.0.0.1:%d' % server.port, '127.0.0.1'):
            assert why(folder / 'r', what, 'blocked', 'private')['next_time'] is None
        why(folder / 'r', 'http://no-such-name.invalid/', 'blocked')
        why(folder / 'r', 'no-such-name.invalid', 'blocked')


@test
def why_explains_what_waits(folder):
    """After a limit was reached, and after a site said when to come back."""
    with Server({'q.test': {'/': page(*['/%d' % n for n in range(9)], '/shut'), '*': lambda r: page(text=r.path),
                            '/robots.txt': ROBOTS},
                 'busy.test': {'/': page('/next', '/later'), '/next': Reply('', 429, [('Retry-After', '900')]),
                               '/robots.txt': Reply('', 404)},
                 'down.test': {'/robots.txt': Reply('', 503, [('Retry-After', '900')])}}) as server:
        crawl(folder / 'r', server, server.url('q.test'), '--delay', 0, '--max-pages', 3)
        r = folder / 'r'
        why(r, server.url('q.test', '/8'), 'waiting', 'queue')
        why(r, server.url('q.test', '/shut'), 'blocked', 'robots.txt')
        why(r, 'q.test:%d' % server.port, 'waiting')
        crawl(r, server, server.url('busy.test'), server.url('down.test'), '--delay', 0)
        word_of = {'429': 'busy.test', '503': 'down.test'}
        for what, word in ((server.url('busy.test', '/next'), '429'), (server.url('busy.test', '/later'), '429'),
                           ('busy.test:%d' % server.port, '429'), ('busy.test', '429'),
                           (server.url('down.test'), '503'), ('down.test:%d' % server.port, '503')):
            got = why(r, what, 'waiting', word)
            until_then, last = seconds_of(got['next_time']), [x for x in server.requests if x.host == word_of[word]][-1]
            assert last.earliest + 899 < until_then < time.time() + 901, (what, got)


@test
def why_works_while_a_crawl_runs(folder):
    with Server({'run.test': {'/': page(*['/%d' % n for n in range(900)], '/shut/x'), '*': lambda r: page(text=r.path),
                              '/robots.txt': ROBOTS}}) as server:
        p = start(folder / 'r', server, server.url('run.test'), '--delay', 0.2, '--processes', 1,
                  stderr=subprocess.PIPE)
        until(lambda: len(server.requests) > 4)
        for _ in range(5):
            why(folder / 'r', server.url('run.test', '/899'), 'waiting', 'queue')
            assert why(folder / 'r', server.url('run.test', '/shut/x'), 'blocked',
                       'robots')['robots_line'] == 'Disallow: /shut'
            why(folder / 'r', 'run.test:%d' % server.port, 'waiting', 'being crawled')
            # This includes what is not committed yet.
            why(folder / 'r', server.url('run.test', '/0'), 'fetched')
            why(folder / 'r', server.url('run.test', '/nowhere'), 'unknown')
        kill(p.pid, signal.SIGTERM)
        assert p.wait(PATIENCE) == 1
        why(folder / 'r', server.url('run.test', '/899'), 'waiting', 'queue')
        server.expect_gaps(0.2)


run_together()
