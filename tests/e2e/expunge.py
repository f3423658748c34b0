#!/usr/bin/env python3
"""What leaves: pages that are gone, pages whose lifetime ended, and what is taken down, with its bytes."""
import time

from e2e import *
from crawlserver import *


def star(count, name=''):
    return {'/': page(*['/%d' % n for n in range(1, count)], text=name), **{'/%d' % n: page('/', text='page %s %d' % (name, n)) for n in range(1, count)}}


def cycle(repo, server, *args, **kw):
    return lines(call(repo, 'run', '--cycles', 1, '--allow-private', '--user-agent', AGENT, '--delay', 0, '--json', *server.resolve(), *args, **kw).stdout)


def stored(repo, url, **kw):
    return call(repo, 'get', url, status=None, **kw).returncode == 0


def files_with(repo, mark):
    return [p.name for p in repo.rglob('*') if p.is_file() and mark in p.read_bytes()]


# ---- gone and expired ------------------------------------------------------------------------------------

@test
def gone_pages_leave_by_themselves(folder):
    with Server({'g.test': star(8)}) as server:
        crawl(folder / 'r', server, server.url('g.test'), '--delay', 0)
        del server.sites['g.test']['/3']
        server.sites['g.test']['/4'] = Reply('gone', 410)
        events = cycle(folder / 'r', server)
        assert [e['expunged'] for e in events if e['event'] == 'cycle'] == [2], events[-2:]
        for n in (3, 4):
            assert not stored(folder / 'r', server.url('g.test', '/%d' % n))
        # The page that links there is seen again, so they are known again, looked at once more, and then left alone.
        server.sites['g.test']['/'] = star(8, 'again')['/']
        cycle(folder / 'r', server)
        for n in range(3):
            before = server.counts['g.test', '/3']
            cycle(folder / 'r', server)
        assert server.counts['g.test', '/3'] == before and before <= 4, before
        verified(folder / 'r')


@test
def lifetimes_end(folder):
    """Listed when its lifetime ends; unlinked and still there it lives on; not there it goes; not to be verified it stays."""
    clock = Clock(folder)
    hosts = {'a.test': star(6, 'a'), 'b.test': star(4, 'b')}
    with Server(hosts) as server:
        repo = folder / 'r'
        crawl(repo, server, *[server.url(h) for h in hosts], '--delay', 0, '--lifetime', 3, env=clock.env())
        call(repo, 'update', env=clock.env())
        assert 2.9 < ask(repo, 'webdb', 'page', server.url('a.test', '/1'), env=clock.env())[0]['lifetime_left'] <= 3
        # Off for months: nothing is thrown away before it was asked for.
        clock.forward(100 * 86400)
        assert done(ask(repo, 'expunge', env=clock.env()))['pages'] == 0
        assert ask(repo, 'webdb', 'page', server.url('a.test', '/1'), env=clock.env())[0]['lifetime_left'] < -90
        hosts['a.test']['/2'] = Reply('no', 404)
        for path in list(hosts['b.test']):
            hosts['b.test'][path] = Reply('sorry', 503)
        hosts['b.test']['/robots.txt'] = Reply('sorry', 503)
        said = [e for e in cycle(repo, server, '--lifetime', 3, '--budget', 100, '--max-time', 4, env=clock.env()) if e['event'] == 'cycle'][0]
        assert said['expunged'] == 1, said
        assert not stored(repo, server.url('a.test', '/2'), env=clock.env())
        for host, n in (('a.test', 1), ('a.test', 5), ('b.test', 1), ('b.test', 3)):
            assert stored(repo, server.url(host, '/%d' % n), env=clock.env()), (host, n)
        assert 2.9 < ask(repo, 'webdb', 'page', server.url('a.test', '/1'), env=clock.env())[0]['lifetime_left'] <= 3
        left = done(ask(repo, 'expunge', env=clock.env()))
        assert left['pages'] == 0, left


@test
def expiring_pages_are_asked_for_first(folder):
    clock = Clock(folder)
    with Server({'e.test': star(30)}) as server:
        repo, site = folder / 'r', server.sites['e.test']
        crawl(repo, server, server.url('e.test'), '--delay', 0, '--lifetime', 10, env=clock.env())
        call(repo, 'update', env=clock.env())
        clock.forward(5 * 86400)
        (folder / 'list').write_text('\n'.join(server.url('e.test', p) for p in site if p not in ('/7', '/8')))
        call(repo, 'push', folder / 'list', env=clock.env())
        cycle(repo, server, '--lifetime', 10, '--budget', 28, env=clock.env())
        clock.forward(4.5 * 86400)
        before = len(server.requests)
        said = cycle(repo, server, '--lifetime', 10, '--budget', 2, env=clock.env())
        assert sorted(r.path for r in server.requests[before:] if r.path != '/robots.txt') == ['/7', '/8'], server.requests[before:]


# ---- taken down --------------------------------------------------------------------------------------------

@test
def a_page_and_its_bytes(folder):
    mark = rng('mark').randbytes(40000)
    with Server({'t.test': {**star(5), '/secret': Reply(mark, type='application/octet-stream')}}) as server:
        server.sites['t.test']['/'] = page('/1', '/2', '/3', '/4', '/secret')
        repo, url = folder / 'r', server.url('t.test', '/secret')
        cycle(repo, server, server.url('t.test'))
        assert files_with(repo, mark[1000:1032])
        events = lines(call(repo, 'expunge', url.replace('http:', 'HTTP:') + '#x', '--json').stdout)
        assert events[0]['event'] == 'expunge' and events[0]['url'] == url and done(events)['pages'] == 1 and done(events)['bytes'] == len(mark), events
        assert not stored(repo, url)
        call(repo, 'compact')
        assert not files_with(repo, mark[1000:1032])
        f = ask(repo, 'webdb', 'page', url)[0]
        assert f['flags'] == ['barred'] and f['md5'] is None and f['inlinks'] == 1 and f['next_due'] is None, f
        cycle(repo, server)
        assert server.counts['t.test', '/secret'] == 1
        why = ask(repo, 'why', url)[0]
        assert why['verdict'] == 'blocked', why
        refused(repo, server.url('t.test', '/1'), 'expunge', server.url('t.test', '/1'), '--allow')
        assert b'fetched again' in call(repo, 'expunge', url, '--allow').stdout
        cycle(repo, server)
        assert stored(repo, url)
        verified(repo)


@test
def a_site_and_not_its_neighbour(folder):
    with Server({'one.test': star(15, 'one'), 'two.test': star(15, 'two')}) as server:
        repo = folder / 'r'
        crawl(repo, server, server.url('one.test'), server.url('two.test'), '--delay', 0)
        call(repo, 'update')
        name = 'one.test:%d' % server.port
        assert b'15 pages of ONE.test' in call(repo, 'expunge', name.replace('one', 'ONE')).stdout
        assert ask(repo, 'webdb', 'count')[0]['fetched'] == 15 and ask(repo, 'stat')[0]['pages'] == 15
        refused(repo, 'three.test', 'expunge', 'three.test')
        refused(repo, 'one.test', 'expunge', 'one.test')
        refused(repo, 'a b', 'expunge', 'a b')
        refused(repo, '--allow', 'expunge', '--allow', status=2, one_line=False)
        refused(repo, server.url('one.test', '/never'), 'expunge', server.url('one.test', '/never'))
        cycle(repo, server)
        assert all(n == 1 for (host, path), n in server.counts.items() if host == 'one.test'), server.counts
        verified(repo)


@test
def without_any_update_before(folder):
    with Server({'n.test': star(5)}) as server:
        repo = folder / 'r'
        crawl(repo, server, server.url('n.test'), '--delay', 0)
        assert done(ask(repo, 'expunge', 'n.test:%d' % server.port))['pages'] == 5
        assert ask(repo, 'stat')[0]['pages'] == 0 and ask(repo, 'webdb', 'count')[0]['fetched'] == 0


@test
def pages_in_the_hands_of_a_killed_crawler(folder):
    mark = rng('spool').randbytes(30000)
    with Server({'s.test': {'/': page('/secret', *['/%d' % n for n in range(50)]), '/secret': Reply(mark, type='application/octet-stream'),
                            '*': lambda r: page(text=r.path)}}) as server:
        repo, url = folder / 'r', server.url('s.test', '/secret')
        p = start(repo, server, server.url('s.test'), '--delay', 0.05, '--processes', 1)
        until(lambda: any(r.path == '/secret' and r.done for r in server.requests))
        time.sleep(0.1)
        kill_all(p)
        assert done(ask(repo, 'expunge', url))['pages'] == 1
        call(repo, 'compact')
        assert not files_with(repo, mark[1000:1032]), files_with(repo, mark[1000:1032])
        crawl(repo, server, server.url('s.test'), '--delay', 0)
        assert not stored(repo, url) and server.counts['s.test', '/secret'] == 1


@test
def killed_at_any_moment(folder):
    random_ = rng('kill')
    with Server({'k.test': star(300, 'k'), 'l.test': star(20, 'l')}) as server:
        repo = folder / 'r'
        crawl(repo, server, server.url('k.test'), server.url('l.test'), '--delay', 0, '--connections', 8)
        call(repo, 'update')
        for attempt in range(8):
            p = subprocess.Popen(command(repo, 'expunge', 'k.test:%d' % server.port), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            time.sleep(random_.uniform(0.001, 0.04))
            p.kill()
            p.wait()
            call(repo, 'webdb', 'check')
        # What the killed ones began, the others end: the page walks of update and expunge know of it.
        call(repo, 'update')
        call(repo, 'expunge')
        call(repo, 'expunge', 'k.test:%d' % server.port, status=None)
        assert ask(repo, 'stat')[0]['pages'] == 20 and ask(repo, 'webdb', 'count')[0]['fetched'] == 20
        verified(repo)


run_together(5)
