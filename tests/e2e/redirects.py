#!/usr/bin/env python3
"""Redirects as captures: those that a crawl stores and those that an import brings, in all that reads a repository."""
import itertools, urllib.parse

import serving
from e2e import *
from crawlserver import *

STATUS = (301, 302, 303, 307, 308)
DAY = '2024-05-01T10:00:0%dZ'


def versions(repo, url):
    return [(v['status'], v['captures']) for v in ask(repo, 'versions', url)]


def statuses(server, url):
    return [r['status'] for r in map(json.loads, server.ask('/cdx', url=url, output='json').body.splitlines())]


def browse(server, path, hops=10):
    """What a browser ends with: the status, the body, and the addresses on the way. It gives up after some hops."""
    way = [path]
    for _ in range(hops):
        r = server.ask(path)
        place = r.field('Location')
        if not place:
            return r.status, r.body, way
        full = urllib.parse.urljoin(server.url + path, place)
        assert full.startswith(server.url + '/web/'), 'leads out of the archive: ' + full
        path = full[len(server.url):]
        way.append(path)
    raise AssertionError('a circle: %s' % way)


def moved_site(**more):
    site = {'/r%d' % s: Reply('moved %d' % s, s, [('Location', '/to/%d' % s)]) for s in STATUS}
    site.update({'/to/%d' % s: page(text='arrived %d' % s) for s in STATUS})
    return {'/': page(*['/r%d' % s for s in STATUS]), **site, **more}


@test
def a_crawled_redirect_is_a_capture(folder):
    repo = folder / 'r'
    with Server({'a.test': moved_site()}) as web:
        call(repo, 'init', '--history', 'all')
        events = crawl(repo, web, web.url('a.test'), '--delay', 0, '--no-sitemaps')
        old = [web.url('a.test', '/r%d' % s) for s in STATUS]
        assert all(results(events)[u] == 'redirect' for u in old), results(events)
        assert done(events)['pages'] == 6 and ask(repo, 'stat')[0]['pages'] == 11
        for status, url in zip(STATUS, old):
            fact = ask(repo, 'get', url)[0]
            assert fact['status'] == status and fact['length'] == 9, fact
            assert call(repo, 'get', url).stdout == b'moved %d' % status
            assert b'Location: /to/%d' % status in call(repo, 'get', '--headers', url).stdout
            why = ask(repo, 'why', url)[0]
            assert why['verdict'] == 'fetched' and 'redirects to ' + web.url('a.test', '/to/%d' % status) in why['reason']
        # The same redirects again are further captures; to elsewhere, with the same body, is another version.
        crawl(repo, web, web.url('a.test'), '--delay', 0, '--no-sitemaps')
        assert all(versions(repo, u) == [(s, 2)] for u, s in zip(old, STATUS)), versions(repo, old[0])
        web.sites['a.test']['/r302'].headers = [('Location', '/to/301')]
        crawl(repo, web, web.url('a.test'), '--delay', 0, '--no-sitemaps')
        assert versions(repo, old[1]) == [(302, 2), (302, 1)] and versions(repo, old[0]) == [(301, 3)]
        call(repo, 'update')
        call(repo, 'index')
        assert ask(repo, 'webdb', 'count')[0]['fetched'] == 6
        hits = [e['url'] for e in ask(repo, 'search', 'arrived', '--limit', '20') if 'url' in e]
        assert sorted(hits) == [web.url('a.test', '/to/%d' % s) for s in STATUS], hits
        assert not [e for e in ask(repo, 'search', 'moved') if 'url' in e]
        delivered = call(repo, 'stream', '--format', 'urls').stdout.decode().split()
        assert set(old) <= set(delivered) and len(delivered) == 11, delivered
        verified(repo)
        call(repo, 'export', '--warc', folder / 'out.warc.gz', '--versions')
        copy = folder / 'copy'
        call(copy, 'init', '--history', 'all')
        call(copy, 'import', folder / 'out.warc.gz')
        assert all(versions(copy, u) == versions(repo, u) for u in old)
        for where in (repo, copy):
            with serving.Server(where) as server:
                for status, url in zip(STATUS, old):
                    last = 301 if status == 302 else status
                    code, body, way = browse(server, '/web/' + url)
                    assert code == 200 and b'arrived %d' % last in body, (status, way)
                    assert set(statuses(server, url)) <= {str(status), '-'}, statuses(server, url)
                root = server.ask('/page', url=old[0])
                assert root.status == 200 and b'never fetched' not in root.body


@test
def unchanged_after_kills(folder):
    """Whenever a crawl is killed, each redirect that was told of is stored, and none is asked for twice."""
    count = 60
    site = {'/': page(*['/m%d' % i for i in range(count)])}
    site.update({'/m%d' % i: redirect('/n%d' % i, 302) for i in range(count)})
    site.update({'/n%d' % i: page(text='page %d' % i) for i in range(count)})
    repo, random_ = folder / 'r', rng('kills')
    with Server({'a.test': site}, latency=lambda: 0.005) as web:
        args = [web.url('a.test'), '--delay', 0, '--no-sitemaps', '--processes', 1]
        kills = 0
        for limit in sorted(random_.sample(range(10, 2 * count), 2)):
            p = start(repo, web, *args)
            until(lambda: len(web.requests) >= limit or p.poll() is not None)
            kills += 1
            kill_all(p)
        crawl(repo, web, *args)
        assert ask(repo, 'stat')[0]['pages'] == 2 * count + 1
        again = {k: n for k, n in web.counts.items() if n > 1 and k[1] != '/robots.txt'}
        assert len(again) <= kills * 2, again
        for i in range(count):
            assert versions(repo, web.url('a.test', '/m%d' % i))[0][0] == 302
        verified(repo)


@test
def fresh_redirects_are_followed_without_a_request(folder):
    repo = folder / 'r'
    with Server({'a.test': moved_site()}) as web:
        args = [web.url('a.test'), '--delay', 0, '--no-sitemaps', '--fresh', '3600']
        crawl(repo, web, *args)
        since = len(web.requests)
        told = results(crawl(repo, web, *args))
        assert not [r for r in web.requests[since:] if r.path != '/robots.txt']
        assert all(told[web.url('a.test', p)] == 'fresh' for p in ('/', '/r301', '/to/301', '/to/308')), told


@test
def limits_count_pages_and_no_redirects(folder):
    with Server({'a.test': moved_site()}) as web:
        events = crawl(folder / 'r', web, web.url('a.test'), '--delay', 0, '--no-sitemaps', '--max-pages', 6,
                       '--processes', 1)
        assert done(events)['pages'] == 6 and len(fetches(events, 'redirect')) == 5


@test
def another_spelling_of_the_page(folder):
    """/a leads to /a/, which has the same key: only the page is stored, and the archive leads to it."""
    repo = folder / 'r'
    with Server({'a.test': {'/': page('/a', '/b'), '/a': redirect('/a/'), '/a/': page(text='inside'),
                            '/b': redirect('/b/'), '/b/': Reply('away', 404)}}) as web:
        call(repo, 'init', '--history', 'all')
        events = crawl(repo, web, web.url('a.test'), '--delay', 0, '--no-sitemaps')
        assert results(events)[web.url('a.test', '/a')] == 'redirect' and ask(repo, 'stat')[0]['pages'] == 2
        for path in ('/a', '/a/'):
            assert versions(repo, web.url('a.test', path)) == [(200, 1)]
        call(repo, 'get', web.url('a.test', '/b'), status=1)
        with serving.Server(repo) as server:
            assert browse(server, '/web/' + web.url('a.test', '/a'))[:2][0] == 200


@test
def gone_after_a_redirect(folder):
    """A page that redirects, then is there, then redirects, then is gone: each is seen, and expunge removes the last."""
    repo, url = folder / 'r', None
    with Server({'a.test': {'/': page('/p'), '/to': page(text='to')}}) as web:
        call(repo, 'init', '--history', 'all')
        url, site = web.url('a.test', '/p'), web.sites['a.test']
        for reply in (redirect('/to'), page(text='there'), redirect('/to', 302)):
            site['/p'] = reply
            crawl(repo, web, web.url('a.test'), '--delay', 0, '--no-sitemaps')
        assert versions(repo, url) == [(301, 1), (200, 1), (302, 1)]
        del site['/p']
        crawl(repo, web, web.url('a.test'), '--delay', 0, '--no-sitemaps')
        call(repo, 'update')
        assert done(ask(repo, 'expunge'))['pages'] == 1
        call(repo, 'get', url, status=1)
        assert call(repo, 'get', web.url('a.test', '/to')).stdout == site['/to']
        assert [v[0] for v in versions(repo, url)] == [301, 200, 302]


@test
def files_of_pages_that_redirect(folder):
    repo = folder / 'r'
    style = Reply('body { color: red }', type='text/css')
    site = {'/': b'<link rel=stylesheet href=/s.css><p>x', '/s.css': redirect('/real.css'), '/real.css': style}
    with Server({'a.test': site}) as web:
        crawl(repo, web, web.url('a.test'), '--delay', 0, '--no-sitemaps', '--with', 'styles')
        assert versions(repo, web.url('a.test', '/s.css')) == [(301, 1)]
        with serving.Server(repo) as server:
            code, body, _ = browse(server, '/web/' + web.url('a.test', '/s.css'))
            assert code == 200 and b'color: red' in body


@test
def imported_in_any_order(folder):
    """A redirect from http to https, or to the page with a slash, does not displace the only version of the page. Where
    old versions are kept, it is one of them."""
    for n, (old, new) in enumerate((('http://h.example/', 'https://h.example/'),
                                    ('http://h.example/a', 'http://h.example/a/'),
                                    ('http://h.example/a/', '/a'))):
        full = urllib.parse.urljoin(old, new)
        for k, (moved, here, first, history) in enumerate(itertools.product((1, 2), (1, 2), (0, 1), ('newest', 'all'))):
            records = [Page(old, b'', DAY % moved, status='301 Moved', headers=['Location: ' + new]),
                       Page(full, b'<p>the page itself', DAY % here)]
            if moved == here and first:
                continue        # of two captures of one moment, the last one is the page
            repo = folder / ('r%d-%d' % (n, k))
            call(repo, 'init', '--history', history)
            for i, r in enumerate(records if first == 0 else records[::-1]):
                call(repo, 'import', archive(folder / ('%d.warc' % i), [r]))
            got = call(repo, 'get', old).stdout
            if history == 'newest':
                assert got == b'<p>the page itself', (old, moved, here, first, got)
            else:
                captures = ask(repo, 'versions', old)
                assert sorted((v['status'], v['time']) for v in captures) == sorted(
                    [(301, (DAY % moved)[:-1] + '.000Z'), (200, (DAY % here)[:-1] + '.000Z')]), captures
            assert ask(repo, 'stat')[0]['pages'] == 1
            verified(repo)


@test
def replay_never_leads_in_a_circle(folder):
    """Neither a redirect of a page to itself, alone or beside the page, nor two pages that lead to each other."""
    repo = folder / 'r'
    call(repo, 'init', '--history', 'all')
    to = lambda url, place, n: Page(url, b'moved', DAY % n, status='301 Moved', headers=['Location: ' + place])
    call(repo, 'import', archive(folder / 'in.warc', [
        to('http://alone.example/', 'https://alone.example/', 1),
        to('http://both.example/', 'https://both.example/', 1), Page('https://both.example/', b'<p>both', DAY % 3),
        to('http://old.example/x', '/x/', 1), to('http://old.example/x', 'http://new.example/', 5),
        Page('http://new.example/', b'<p>new', DAY % 5)]))
    with serving.Server(repo) as server:
        stamp = '2024050110000%d'
        for url, n, want in (('http://both.example/', 1, b'both'), ('http://both.example/', 3, b'both'),
                             ('http://old.example/x', 5, b'new'), ('http://alone.example/', 1, b'moved'),
                             ('http://old.example/x', 1, b'')):
            code, body, way = browse(server, '/web/%s/%s' % (stamp % n, url))
            assert want in body, (url, n, way)
            raw = server.ask('/web/%sid_/%s' % (stamp % n, url))
            assert raw.status in (200, 301), raw.status
        assert [r.split()[1] for r in server.ask('/cdx', url='both.example/').body.decode().splitlines()] == \
            [stamp % 1, stamp % 3]


run_together()
