#!/usr/bin/env python3
"""What is removed: pages that are gone, pages whose lifetime has ended, and pages that are taken down, including their
bytes."""
import time

from e2e import *
from crawlserver import *


def is_stored(repo, url, **kw):
    return call(repo, 'get', url, status=None, **kw).returncode == 0


def files_with(repo, mark):
    return [p.name for p in repo.rglob('*') if p.is_file() and mark in p.read_bytes()]


# ---- gone and expired ------------------------------------------------------------------------------------

@test
def gone_pages_are_removed(folder):
    with Server({'g.test': star(8)}) as server:
        crawl(folder / 'r', server, server.url('g.test'), '--delay', 0)
        del server.sites['g.test']['/3']
        server.sites['g.test']['/4'] = Reply('gone', 410)
        events = cycle(folder / 'r', server)
        assert [e['expunged'] for e in events if e['event'] == 'cycle'] == [2], events[-2:]
        for n in (3, 4):
            assert not is_stored(folder / 'r', server.url('g.test', '/%d' % n))
        # The page that links to them is seen again, so they are known again, requested once more, and then left alone.
        server.sites['g.test']['/'] = star(8, 'again')['/']
        cycle(folder / 'r', server)
        for n in range(3):
            before = server.counts['g.test', '/3']
            cycle(folder / 'r', server)
        assert server.counts['g.test', '/3'] == before and before <= 4, before
        verified(folder / 'r')


@test
def lifetimes_end(folder):
    """A page is listed when its lifetime ends. If it still exists, even without a link, it stays; if it is gone, it is
    removed; if that cannot be checked, it stays."""
    clock = Clock(folder)
    hosts = {'a.test': star(6, 'a'), 'b.test': star(4, 'b')}
    with Server(hosts) as server:
        repo = folder / 'r'
        crawl(repo, server, *[server.url(h) for h in hosts], '--delay', 0, '--lifetime', 3, env=clock.env())
        call(repo, 'update', env=clock.env())
        assert 2.9 < ask(repo, 'webdb', 'page', server.url('a.test', '/1'), env=clock.env())[0]['lifetime_left'] <= 3
        # After months without a run, nothing is removed before it was requested.
        clock.forward(100 * 86400)
        assert done(ask(repo, 'expunge', env=clock.env()))['pages'] == 0
        assert ask(repo, 'webdb', 'page', server.url('a.test', '/1'), env=clock.env())[0]['lifetime_left'] < -90
        hosts['a.test']['/2'] = Reply('no', 404)
        for path in list(hosts['b.test']):
            hosts['b.test'][path] = Reply('sorry', 503)
        hosts['b.test']['/robots.txt'] = Reply('sorry', 503)
        said = [e for e in cycle(repo, server, '--lifetime', 3, '--budget', 100, '--max-time', 4, env=clock.env())
                if e['event'] == 'cycle'][0]
        assert said['expunged'] == 1, said
        assert not is_stored(repo, server.url('a.test', '/2'), env=clock.env())
        for host, n in (('a.test', 1), ('a.test', 5), ('b.test', 1), ('b.test', 3)):
            assert is_stored(repo, server.url(host, '/%d' % n), env=clock.env()), (host, n)
        assert 2.9 < ask(repo, 'webdb', 'page', server.url('a.test', '/1'), env=clock.env())[0]['lifetime_left'] <= 3
        left = done(ask(repo, 'expunge', env=clock.env()))
        assert left['pages'] == 0, left


@test
def expiring_pages_are_requested_first(folder):
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
        assert sorted(r.path for r in server.requests[before:] if r.path != '/robots.txt') == ['/7', '/8'], \
            server.requests[before:]


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
        assert events[0]['event'] == 'expunge' and events[0]['url'] == url and done(events)['pages'] == 1, events
        assert done(events)['bytes'] == len(mark), events
        assert not is_stored(repo, url)
        call(repo, 'compact')
        assert not files_with(repo, mark[1000:1032])
        f = ask(repo, 'webdb', 'page', url)[0]
        assert f['flags'] == ['barred'] and f['md5'] is None and f['inlinks'] == 1 and f['next_due'] is None, f
        cycle(repo, server)
        assert server.counts['t.test', '/secret'] == 1
        why = ask(repo, 'why', url)[0]
        assert why['verdict'] == 'blocked', why
        refused(repo, server.url('t.test', '/1'), 'expunge', server.url('t.test', '/1'), '--allow')
        assert b'imported again' in call(repo, 'expunge', url, '--allow').stdout
        cycle(repo, server)
        assert is_stored(repo, url)
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
        for nobody in ('three.test', 'one.test'):
            assert done(ask(repo, 'expunge', nobody))['pages'] == 0
        refused(repo, 'four.test', 'expunge', '--allow', 'four.test')
        refused(repo, 'a b', 'expunge', 'a b')
        refused(repo, '--allow', 'expunge', '--allow', status=2, one_line=False)
        assert done(ask(repo, 'expunge', server.url('one.test', '/never')))['pages'] == 0
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
def pages_that_a_killed_crawler_had_not_committed(folder):
    mark = rng('spool').randbytes(30000)
    with Server({'s.test': {'/': page('/secret', *['/%d' % n for n in range(50)]),
                            '/secret': Reply(mark, type='application/octet-stream'),
                            '*': lambda r: page(text=r.path)}}) as server:
        repo, url = folder / 'r', server.url('s.test', '/secret')
        p = start(repo, server, server.url('s.test'), '--delay', 0.05, '--processes', 1)
        # Two requests later, the page is in the journal.
        until(lambda: '/secret' in server.paths('s.test')[:-2])
        kill_all(p)
        assert done(ask(repo, 'expunge', url))['pages'] == 0 # it never reached the store
        call(repo, 'compact')
        assert not files_with(repo, mark[1000:1032]), files_with(repo, mark[1000:1032])
        crawl(repo, server, server.url('s.test'), '--delay', 0)
        assert not is_stored(repo, url) and server.counts['s.test', '/secret'] == 1


@test
def taken_down_between_fetch_and_commit(folder):
    """The line of the page waits for the commit, which leaves the page out. So the line must not say that the page was
    stored."""
    with Server({'s.test': {'/': page('/secret', *['/%d' % n for n in range(30)]),
                            '*': lambda r: page(text=r.path)}}) as server:
        repo, url = folder / 'r', server.url('s.test', '/secret')
        with open(folder / 'out', 'wb') as out:
            p = start(repo, server, server.url('s.test'), '--delay', 0.02, '--processes', 1, stdout=out)
        until(lambda: any(r.path == '/secret' and r.done for r in server.requests))
        removed = done(ask(repo, 'expunge', url))['pages']
        assert p.wait(PATIENCE) == 0
        events = lines((folder / 'out').read_bytes())
        told = results(events)
        assert not is_stored(repo, url) and ask(repo, 'stat')[0]['pages'] == 31
        # Either it was committed before and then removed, or it was left out and the line says so.
        assert told[url] == ('stored' if removed else 'expunged'), told
        assert all(r == 'stored' for u, r in told.items() if u != url and not u.endswith('robots.txt')), told
        print('# the line says %s' % told[url])


@test
def killed_with_the_page_in_its_spool(folder):
    """The page is taken down when a crawler has fetched but not committed it; then the crawler is killed and
    continued."""
    mark = rng('spool2').randbytes(30000)
    with Server({'s.test': {'/': page('/secret', *['/%d' % n for n in range(30)]),
                            '/secret': Reply(mark, type='application/octet-stream'),
                            '*': lambda r: page(text=r.path)}}) as server:
        for n in range(4):
            repo, url = folder / ('r%d' % n), server.url('s.test', '/secret')
            server.requests.clear()
            p = start(repo, server, server.url('s.test'), '--delay', 0.05, '--processes', 1)
            until(lambda: any(r.path == '/secret' and r.done for r in server.requests))
            time.sleep(0.05 * n)
            call(repo, 'expunge', url)
            assert not is_stored(repo, url)
            kill_all(p)
            crawl(repo, server, server.url('s.test'), '--delay', 0)
            assert not is_stored(repo, url), 'the page is back after kill -9'
            assert server.counts['s.test', '/secret'] == n + 1, 'the page was requested again'
            assert ask(repo, 'why', url)[0]['reason'].startswith('taken down')
            call(repo, 'compact')
            assert not files_with(repo, mark[1000:1032]), files_with(repo, mark[1000:1032])
            assert ask(repo, 'stat')[0]['pages'] == 31
            verified(repo)


@test
def removed_between_a_conditional_request_and_its_304(folder):
    """If the page is taken down meanwhile, it stays out; if it is only removed, it is requested again. Neither ends the
    crawl."""
    repo, held = folder / 'r', []

    def answer(n, allow):
        def reply(r):
            if 'if-none-match' not in r.headers:
                return Reply(page('/', text='page %d' % n), headers=[('ETag', '"one"')])
            held.append(n)
            call(repo, 'expunge', server.url('c.test', '/%d' % n))
            if allow:
                call(repo, 'expunge', '--allow', server.url('c.test', '/%d' % n))
            return Reply(status=304, headers=[('ETag', '"one"')])
        return reply

    with Server({'c.test': {**star(8), '/3': answer(3, False), '/5': answer(5, True)}}) as server:
        crawl(repo, server, server.url('c.test'), '--delay', 0)
        call(repo, 'update')
        events = crawl(repo, server, server.url('c.test'), '--delay', 0)
        assert sorted(held) == [3, 5], held
        assert not is_stored(repo, server.url('c.test', '/3')) and is_stored(repo, server.url('c.test', '/5'))
        assert ask(repo, 'stat')[0]['pages'] == 7
        assert server.counts['c.test', '/5'] == 3 and server.counts['c.test', '/7'] == 2
        said = results(events)
        assert said[server.url('c.test', '/3')] == 'expunged' and said[server.url('c.test', '/5')] == 'stored', said
        verified(repo)


# ---- every way into the repository ---------------------------------------------------------------------------

def arc(path, pages):
    with open(path, 'wb') as f:
        block = b'1 0 Test\nURL IP-address Archive-date Content-type Archive-length\n\n'
        f.write(b'filedesc://x.arc 0.0.0.0 20260101000000 text/plain %d\n' % len(block) + block + b'\n')
        for p in pages:
            block = b'HTTP/1.0 200 OK\r\nContent-Type: text/html\r\n\r\n' + p.body
            f.write(b'%s 0.0.0.0 20260601000000 text/html %d\n' % (p.url.encode(), len(block)) + block + b'\n')
    return path


@test
def no_way_in_after_a_takedown(folder):
    """A page and a host that were taken down stay out of import (in three ways), crawl, push, run, update --rebuild and
    webdb import."""
    with Server({'d.test': star(6, 'd'), 'h.test': star(4, 'h')}) as server:
        repo = folder / 'r'
        crawl(repo, server, server.url('d.test'), server.url('h.test'), '--delay', 0)
        call(repo, 'update')
        secret, open_, host = server.url('d.test', '/3'), server.url('d.test', '/4'), 'h.test:%d' % server.port
        never = server.url('d.test', '/never')
        of_host, new_of_host = server.url('h.test', '/1'), server.url('h.test', '/found-later')
        assert done(ask(repo, 'expunge', secret))['pages'] == 1
        assert done(ask(repo, 'expunge', never))['pages'] == 0
        assert done(ask(repo, 'expunge', host))['pages'] == 4
        barred = [secret, never, of_host, new_of_host]

        def look(after):
            for url in barred:
                assert not is_stored(repo, url), '%s is back after %s' % (url, after)
                assert ask(repo, 'why', url)[0]['reason'].startswith('taken down'), (url, after)
            assert b'found-later' not in call(repo, 'export', '--warc', '-').stdout
            assert ask(repo, 'why', host)[0]['verdict'] == 'blocked'

        pages = [Page(u, b'<p>from an archive ' + u.encode(), '2026-06-01T00:00:00Z') for u in barred + [open_]]
        for path in (archive(folder / 'a.warc', pages), arc(folder / 'a.arc', pages)):
            for options in ((), ('--no-journal',)):
                end = done(ask(repo, 'import', path, *options))
                assert end['barred'] == 4 and end['pages'] + end['older'] == 1 and end['errors'] == 0, end
                look(path.name)
        assert b'4 kept out' in call(repo, 'import', folder / 'a.warc').stdout
        tree = folder / 'tree'
        for name in ('3', 'never', '4'):
            tree.mkdir(exist_ok=True)
            (tree / name).write_bytes(b'<p>from a tree')
        assert done(ask(repo, 'import', '--dir', tree, '--url', server.url('d.test', '/')))['barred'] == 2
        look('import --dir')
        revisit = record(secret, b'', '2026-07-01T00:00:00Z', 'revisit',
                         extra=['WARC-Profile: http://netpreserve.org/warc/1.1/revisit/identical-payload-digest',
                                'WARC-Payload-Digest: sha1:3I42H3S6NNFQ2MSVX7XZKYAYSCX5QBYJ'])
        write_archive(folder / 'revisit.warc', [revisit])
        assert done(ask(repo, 'import', folder / 'revisit.warc'))['barred'] == 1
        call(repo, 'update')
        look('update')
        before = dict(server.counts)
        crawl(repo, server, server.url('d.test'), secret, never, of_host, new_of_host, '--delay', 0)
        look('crawl')
        (folder / 'list').write_text('\n'.join(barred))
        call(repo, 'push', folder / 'list')
        cycle(repo, server, '--budget', 100)
        look('run')
        call(repo, 'update', '--rebuild')
        cycle(repo, server, '--budget', 100)
        look('update --rebuild')
        for key in (('d.test', '/3'), ('d.test', '/never'), ('h.test', '/1'), ('h.test', '/found-later')):
            assert server.counts.get(key, 0) == before.get(key, 0), 'requested: %s %s' % key
        # What another repository marked as taken down is taken down here, too.
        (folder / 'rows').write_bytes(call(repo, 'webdb', 'pages', '--json').stdout)
        other = folder / 'other'
        call(other, 'init')
        call(other, 'webdb', 'import', '--pages', folder / 'rows')
        end = done(ask(other, 'import', folder / 'a.warc'))
        assert end['barred'] >= 2 and not is_stored(other, secret) and is_stored(other, open_), end
        # When the bar is lifted, the page comes back through all of them.
        call(repo, 'expunge', '--allow', secret)
        call(repo, 'expunge', '--allow', host)
        assert done(ask(repo, 'import', folder / 'a.warc'))['barred'] == 1
        assert all(is_stored(repo, u) for u in (secret, of_host, new_of_host)) and not is_stored(repo, never)
        crawl(repo, server, server.url('h.test'), '--delay', 0)
        assert is_stored(repo, server.url('h.test', '/2'))
        verified(repo)


@test
def a_barred_host_is_left_alone(folder):
    """No request goes there, not even for robots.txt, unless one of its pages is allowed."""
    sites = {'a.test': {'/': page('/1', 'http://b.test:%d/', 'http://b.test:%d/2'), '/1': page()},
             'b.test': {**star(4), '/sitemap.xml': Reply('<urlset/>', type='text/xml')}}
    with Server(sites) as server:
        sites['a.test']['/'] = sites['a.test']['/'].replace(b'%d', b'%d' % server.port)
        repo, host = folder / 'r', 'b.test:%d' % server.port
        call(repo, 'init')
        call(repo, 'expunge', host)
        events = crawl(repo, server, server.url('a.test'), server.url('b.test', '/3'), '--scope', 'any', '--delay', 0)
        assert server.paths('b.test') == [], server.paths('b.test')
        assert sorted({e['url'] for e in fetches(events, 'expunged')}) == [server.url('b.test', p)
                                                                           for p in ('/', '/2', '/3')], events
        assert ask(repo, 'stat')[0]['pages'] == 2
        call(repo, 'expunge', '--allow', server.url('b.test', '/2'))
        crawl(repo, server, server.url('a.test'), server.url('b.test', '/3'), '--scope', 'any', '--delay', 0)
        assert sorted(set(server.paths('b.test'))) == ['/2', '/robots.txt'], server.paths('b.test')
        assert is_stored(repo, server.url('b.test', '/2')) and ask(repo, 'stat')[0]['pages'] == 3
        call(repo, 'expunge', '--allow', host)
        crawl(repo, server, server.url('a.test'), server.url('b.test', '/3'), '--scope', 'any', '--delay', 0)
        assert ask(repo, 'stat')[0]['pages'] == 6
        verified(repo)


@test
def a_takedown_during_imports(folder):
    """Two imports of the same page run while it is taken down. In whatever order, the page is not there when expunge
    has returned."""
    random_ = rng('beside')
    pages = [Page('http://b%d.example/%d' % (i % 5, i), html(random_, 60)) for i in range(4000)]
    archive(folder / 'a.warc', pages)
    repo = folder / 'r'
    call(repo, 'init')
    for n in range(3):
        jobs = [subprocess.Popen(command(repo, 'import', folder / 'a.warc', '--json'), stdout=subprocess.PIPE,
                                 stderr=subprocess.DEVNULL) for _ in range(2)]
        time.sleep(random_.uniform(0, 0.3))
        victim = random_.choice(pages).url
        call(repo, 'expunge', victim)
        assert not is_stored(repo, victim)
        for job in jobs:
            job.communicate()
            assert job.returncode == 0
        assert not is_stored(repo, victim)
        assert ask(repo, 'stat')[0]['pages'] == len(pages) - 1
        call(repo, 'expunge', '--allow', victim)
        assert done(ask(repo, 'import', folder / 'a.warc'))['pages'] == 1
    verified(repo)


@test
def killed_at_any_moment(folder):
    random_ = rng('kill')
    with Server({'k.test': star(300, 'k'), 'l.test': star(20, 'l')}) as server:
        repo = folder / 'r'
        crawl(repo, server, server.url('k.test'), server.url('l.test'), '--delay', 0, '--connections', 8)
        call(repo, 'update')
        for attempt in range(8):
            p = subprocess.Popen(command(repo, 'expunge', 'k.test:%d' % server.port), stdout=subprocess.DEVNULL,
                                 stderr=subprocess.DEVNULL)
            time.sleep(random_.uniform(0.001, 0.04))
            p.kill()
            p.wait()
            call(repo, 'webdb', 'check')
        # The next update and expunge complete what the killed ones started.
        call(repo, 'update')
        call(repo, 'expunge')
        call(repo, 'expunge', 'k.test:%d' % server.port, status=None)
        assert ask(repo, 'stat')[0]['pages'] == 20 and ask(repo, 'webdb', 'count')[0]['fetched'] == 20
        verified(repo)


run_together(5)
