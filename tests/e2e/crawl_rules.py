#!/usr/bin/env python3
"""robots.txt over time, back-off, aliases, scopes, feeds: what is requested from whom, and when."""
import calendar, email.utils, gzip, itertools, time

import serving
from e2e import *
from crawlserver import *


def robots(text, **kw):
    return Reply('User-agent: *\n' + text, type='text/plain', **kw)


def waited(server, host):
    """The longest time between two requests to a site."""
    r = [r for r in server.requests if r.host == host]
    return [b.time - a.earliest for a, b in zip(r, r[1:])]


def times(server, host, path=None):
    return [r.time for r in server.requests if r.host == host and path in (None, r.path)]


def moment(text):
    return calendar.timegm(time.strptime(text[:19], '%Y-%m-%dT%H:%M:%S')) + float(text[19:-1])


# ---- robots.txt ----------------------------------------------------------------------------------

@test
def robots_are_remembered_for_a_day_or_as_the_server_says(folder):
    clock = Clock(folder)
    with Server({'day.test': {'/robots.txt': robots('Disallow: /x\n'), '/': page('/x', '/y'), '/y': page(text='y')},
                 'short.test': {'/robots.txt': robots('Disallow: /x\n',
                                                      headers=[('Cache-Control', 'public, max-age=600')]),
                                '/': page('/x', '/y', text='s')}}) as server:
        args = [server.url(h) for h in server.sites] + ['--delay', 0]
        count = lambda: [server.counts[h, '/robots.txt'] for h in ('day.test', 'short.test')]
        crawl(folder / 'r', server, *args, env=clock.env())
        assert count() == [1, 1]
        # The rules change, but the crawler does not know yet.
        for host in server.sites:
            server.sites[host]['/robots.txt'] = robots('Disallow: /\n')
        for forward, want in ((300, [1, 1]), (400, [1, 2]), (22 * 3600, [1, 2]), (2 * 3600, [2, 3])):
            clock.forward(forward)
            before = len(server.requests)
            events = crawl(folder / 'r', server, *args, env=clock.env())
            assert count() == want, (forward, count(), want)
            pages = {r.host for r in server.requests[before:] if r.path != '/robots.txt'}
            assert ('day.test' in pages) == (want[0] == 1), (forward, pages)
            assert ('short.test' in pages) == (want[1] == 1), (forward, pages)
        assert results(events)[server.url('day.test')] == 'robots'
        assert not times(server, 'day.test', '/x') and not times(server, 'short.test', '/x')
        why = ask(folder / 'r', 'why', server.url('day.test'), '--user-agent', AGENT, env=clock.env())[0]
        assert why['verdict'] == 'blocked' or why['verdict'] == 'fetched', why


@test
def a_robots_txt_elsewhere_keeps_the_interval_there(folder):
    """The host that has it is crawled by another process, or by none."""
    sites = {'h%d.test' %
             i: {'/': page('/a', '/b', text=str(i)), '/a': page(text='a%d' % i), '/b': page(text='b%d' % i),
                 '/robots.txt': None} for i in range(6)}
    with Server(sites, latency=lambda: 0.02) as server:
        for host in list(sites)[1:]:
            sites[host]['/robots.txt'] = redirect(server.url('h0.test', '/common.txt'), 302)
        sites['h0.test']['/robots.txt'] = redirect(server.url('nobody.test', '/rules'), 307)
        sites['h0.test']['/common.txt'] = robots('Disallow: /b\n')
        sites['nobody.test'] = {'/rules': robots('Disallow: /a\n')}
        crawl(folder / 'r', server, *[server.url(h) for h in list(sites)[:6]], '--delay', 0.25, '--processes', 3)
        server.expect_gaps(0.25)
        assert set(server.pages_asked('h0.test')) == {'/', '/b', '/common.txt'}
        for host in list(sites)[1:6]:
            assert set(server.pages_asked(host)) == {'/', '/a'}, (host, server.paths(host))
        assert server.paths('nobody.test') == ['/rules']


@test
def intervals_of_favours_survive_a_kill_too(folder):
    """The host that has another site's robots.txt was requested just before its crawler was killed."""
    with Server({'owner.test': {'/': page(*['/%d' % n for n in range(20)]), '*': lambda r: page(text=r.path),
                                '/robots.txt': robots('Disallow: /x\n')}, 'asker.test': {'/': page()}}) as server:
        server.sites['asker.test']['/robots.txt'] = redirect(server.url('owner.test', '/rules.txt'))
        for n in range(2):
            p = start(folder / 'r', server, server.url('owner.test'), '--delay', 1, '--processes', 1)
            count = len(server.requests)
            until(lambda: len(server.requests) > count)
            time.sleep(0.05 + 0.1 * n)
            kill_all(p)
            asked = server.counts['asker.test', '/']
            crawl_until(folder / 'r', server, lambda: server.counts['asker.test', '/'] > asked,
                        server.url('asker.test'), '--delay', 1)
        assert '/rules.txt' in server.paths('owner.test')
        server.expect_gaps(1)


@test
def robots_that_lead_to_each_other(folder):
    """Each of two sites waits for a request that the other one must make. Both redirects end like any chain that is
    too long: there are no rules."""
    with Server({}) as server:
        for host, other in (('a.test', 'b.test'), ('b.test', 'a.test')):
            to = redirect(server.url(other, '/robots.txt'), 302)
            to.wait = 0.3   # so that each is asked before the other has answered
            server.sites[host] = {'/robots.txt': to, '/': page(text=host)}
        events = crawl(folder / 'r', server, server.url('a.test'), server.url('b.test'), '--delay', 0.1,
                       '--processes', 1)
        assert done(events)['pages'] == 2, done(events)
        server.expect_gaps(0.1)


@test
def the_crawl_waits_for_robots_that_fail(folder):
    """After 5xx twice, nothing else is requested, the waits double, and the crawl continues in the same run."""
    def unsure(request):
        return Reply('', 503) if request.number < 3 else robots('Disallow: /closed\n')
    with Server({'w.test': {'/robots.txt': unsure, '/': page('/closed', '/open'), '/open': page(text='o')}}) as server:
        crawl(folder / 'r', server, server.url('w.test'), '--delay', 0)
        asked = server.paths('w.test')
        assert asked == ['/robots.txt'] * 3 + ['/', '/open'], asked
        waits = waited(server, 'w.test')
        assert waits[0] >= 1.9 and waits[1] >= 3.9, waits


@test
def robots_survive_the_removal_of_their_logs(folder):
    """Logs are merged and removed, webdb is rebuilt, crawls are killed: robots.txt is requested once a day, even a
    missing one, and `why` knows its line."""
    clock = Clock(folder)
    with Server({'r.test': {'/robots.txt': robots('Disallow: /x\n'), '/': page('/x', '/y'), '/x': page(text='x'),
                            '/y': page(text='y')},
                 'none.test': {'/': page('/y', text='n'), '/y': page(text='ny')}}) as server:
        repo, args = folder / 'r', [server.url(h) for h in ('r.test', 'none.test')] + ['--delay', 0]
        count = lambda: [server.counts[h, '/robots.txt'] for h in ('r.test', 'none.test')]
        crawl(repo, server, *args, env=clock.env())
        assert count() == [1, 1]
        for n, words in enumerate((['update'], ['update'], ['update', '--rebuild'], ['update'])):
            call(repo, *words, env=clock.env())
            why = ask(repo, 'why', server.url('r.test', '/x'), env=clock.env())[0]
            assert why['verdict'] == 'blocked' and why['robots_line'] == 'Disallow: /x', why
            clock.forward(3600)
            crawl(repo, server, *args, env=clock.env())
            assert count() == [1, 1], (n, words, count())
        assert '/x' not in server.paths('r.test')
        server.sites['r.test']['/robots.txt'] = robots('Disallow: /y\n')
        call(repo, 'update', env=clock.env())
        clock.forward(20.5 * 3600)
        crawl(repo, server, *args, env=clock.env())
        assert count() == [2, 2] and server.paths('r.test').count('/x') == 1, count()


@test
def robots_with_a_short_retry_after(folder):
    """503 with a short Retry-After forever: our own back-off doubles nevertheless, continues in the next run, and `why`
    names it."""
    clock = Clock(folder)
    with Server({'s.test': {'/robots.txt': Reply('', 503, [('Retry-After', '1')]), '/': page()}}) as server:
        repo, args = folder / 'r', (server.url('s.test'), '--delay', 0)
        crawl(repo, server, *args, '--max-time', 15, env=clock.env())
        t = times(server, 's.test')
        assert set(server.paths('s.test')) == {'/robots.txt'} and 2 <= len(t) <= 4, t
        for n, gap in enumerate(waited(server, 's.test')):
            assert gap >= 1.9 * 2 ** n, t
        why = ask(repo, 'why', 's.test:%d' % server.port, env=clock.env())[0]
        assert why['verdict'] == 'waiting' and '503' in why['reason'] and why['next_time'], why
        clock.forward(3600)
        crawl(repo, server, *args, '--max-time', 5, env=clock.env())
        assert len(times(server, 's.test')) == len(t) + 1, 'the next run started with short waits again'
        why = ask(repo, 'why', 's.test:%d' % server.port, env=clock.env())[0]
        assert '503' in why['reason'], (why, len(t))
        assert moment(why['next_time']) >= server.requests[-1].earliest + 3600 + 2 ** (len(t) + 1) - 0.1, (why, len(t))


# ---- refusals --------------------------------------------------------------------------------------

@test
def retry_after_in_both_forms(folder):
    """429 and 503: the whole site waits for as long as it asked, then continues."""
    def seconds(request):
        return Reply('', 429, [('Retry-After', '3')]) if request.number == 1 else page(text='s')

    def date(request):
        return Reply('', 503,
                     [('Retry-After',
                       email.utils.formatdate(int(time.time()) + 4,
                                              usegmt=True))]) if request.number == 1 else page(text='d')
    with Server({'sec.test': {'/': page('/1', '/2'), '/1': seconds, '/2': page()},
                 'date.test': {'/': page('/1', '/2'), '/1': date, '/2': page(text='2')}}) as server:
        events = crawl(folder / 'r', server, *[server.url(h) for h in server.sites], '--delay', 0)
        assert done(events)['pages'] == 6
        for host, least in (('sec.test', 3), ('date.test', 3)):
            r = [r for r in server.requests if r.host == host]
            first = [i for i, x in enumerate(r) if x.path == '/1'][0]
            assert r[first + 1].time - r[first].earliest >= least - 0.02, r


@test
def back_offs_double(folder):
    with Server({'b.test': {'/': page('/never', '/fine'), '/never': Reply('', 503), '/fine': page()}}) as server:
        def third():
            return sum(1 for r in server.requests if r.path == '/never' and r.done) == 3
        events = crawl_until(folder / 'r', server, third, server.url('b.test'), '--delay', 0)
        assert server.paths('b.test')[:5] == ['/robots.txt', '/', '/never', '/never', '/never'], server.requests
        waits = waited(server, 'b.test')[2:]
        assert waits[0] >= 1.9 and waits[1] >= 3.9, waits
        # The third request may be under way when the crawl is stopped.
        assert [e['result'] for e in fetches(events)
                if e['url'] == server.url('b.test', '/never')][:2] == ['error:status'] * 2


@test
def long_waits_are_left_for_another_run(folder):
    clock = Clock(folder)
    def later(request):
        return Reply('', 503, [('Retry-After', '3600')]) if request.number == 1 else page(text='at last')
    with Server({'l.test': {'/': page('/1', '/2'), '/1': later, '/2': page()},
                 'm.test': {'/': page(text='m')}}) as server:
        args = [server.url(h) for h in server.sites] + ['--delay', 0]
        crawl(folder / 'r', server, *args, env=clock.env())     # it does not wait for an hour
        why = ask(folder / 'r', 'why', server.url('l.test', '/2'), env=clock.env())[0]
        assert why['verdict'] == 'waiting' and why['next_time'], why
        count = len(times(server, 'l.test'))
        for forward in (0, 1800, 1700):
            clock.forward(forward)
            crawl(folder / 'r', server, *args, env=clock.env())
            assert len(times(server, 'l.test')) == count, 'requested after %s s' % forward
        clock.forward(200)
        crawl(folder / 'r', server, *args, env=clock.env())
        assert {'/1', '/2'} <= set(server.paths('l.test')[count:])
        assert ask(folder / 'r', 'stat')[0]['pages'] == 4
        assert server.counts['l.test', '/'] == 1, 'the visit was not continued, but started again'


@test
def a_server_that_comes_up_late(folder):
    with Server({'z.test': {'/': page('/a', text='z'), '/a': page(text='za')}}) as server:
        import socket
        s = socket.socket()
        s.bind(('127.0.7.7', 0))         # refuses connections, and keeps the port until it listens
        port = s.getsockname()[1]
        p = subprocess.Popen(command(folder / 'r', 'crawl', '--json', 'http://late.test:%d/' % port, '--allow-private',
                                     '--delay', '0',
                                     '--resolve', 'late.test:%d:127.0.7.7' % port), stdout=subprocess.PIPE,
                             stderr=subprocess.PIPE)
        time.sleep(1)
        server.sites['late.test'] = server.sites['z.test']
        s.listen(50)

        async def begin():
            await asyncio.start_server(server.serve, sock=s, limit=1 << 20)
        asyncio.run_coroutine_threadsafe(begin(), server.loop).result(PATIENCE)
        out, err = p.communicate(timeout=PATIENCE)
        assert p.returncode == 0 and done(lines(out))['pages'] == 2, err


# ---- leases --------------------------------------------------------------------------------------------

@test
def a_worker_that_slept_past_its_lease(folder):
    """Another worker takes over its sites. When it wakes up it must not request anything, and the crawl ends with
    success."""
    clock = Clock(folder)
    sites = {'k%d.test' %
             i: {'/': page(*['/%d' % n for n in range(1, 14)], text=str(i)),
                 **{'/%d' % n: page(text='%d %d' % (i, n)) for n in range(1, 14)}} for i in range(4)}
    with Server(sites, latency=lambda: 0.01) as server:
        p = start(folder / 'r', server, *[server.url(h) for h in sites], '--delay', 0.3, '--processes', 2,
                  env=clock.env(), stderr=subprocess.PIPE)
        until(lambda: len(server.requests) > 16)
        sleeper = workers_of(p)[0]
        kill(sleeper, signal.SIGSTOP)
        time.sleep(0.3)
        moved = time.time()
        clock.forward(61)
        time.sleep(1.6)
        kill(sleeper, signal.SIGCONT)
        assert p.wait(PATIENCE) == 0, p.stderr.read()
        server.expect_gaps(0.3, jump=moved)
        assert ask(folder / 'r', 'stat')[0]['pages'] == 56
        # Its journal is locked while it lives, so its sites start again. Each page requested since then is requested
        # once.
        since = collections.Counter((r.host, r.path) for r in server.requests if r.earliest > moved)
        assert max(since.values()) == 1, since
        verified(folder / 'r')


# ---- names -------------------------------------------------------------------------------------------------

def same_site(count):
    return {'/robots.txt': robots('Disallow: /x\n'), '/': page(*['/%d' % n for n in range(count)], text='the site'),
            **{'/%d' % n: page(text='page %d' % n) for n in range(count)}}


@test
def the_first_page_waits_for_the_crawl_delay(folder):
    """Also if robots.txt comes by a redirect, here or elsewhere, and if the crawl is killed in between."""
    delay = 0.8
    rules = robots('Crawl-delay: %s\n' % delay)
    names = ('plain', 'here', 'away', 'killed')
    sites = {'%s.test' % n: {'/': page('/1', text=n), '/1': page(text=n + ' 1'), '/robots.txt': rules} for n in names}
    sites['here.test'].update({'/robots.txt': redirect('/rules', 302), '/rules': rules})
    with Server(sites) as server:
        sites['away.test']['/robots.txt'] = redirect(server.url('plain.test', '/robots.txt'), 302)
        seeds = [server.url(h) for h in sites]
        p = start(folder / 'r', server, *seeds, '--delay', 0, '--processes', 1, '--no-sitemaps')
        until(lambda: any(r.host == 'killed.test' and r.done for r in server.requests) or p.poll() is not None)
        kill_all(p)
        crawl(folder / 'r', server, *seeds, '--delay', 0, '--processes', 2, '--no-sitemaps')
        for host in sites:
            asked = sorted((r for r in server.requests if r.host == host), key=lambda r: r.time)
            assert [r.path for r in asked if r.path in ('/', '/1')] == ['/', '/1'], asked
            for before, r in zip(asked, asked[1:]):
                assert r.path in ('/robots.txt', '/rules') or r.time - before.earliest >= delay - 0.05, asked


@test
def aliases_are_crawled_once_and_virtual_hosts_by_their_own_rules(folder):
    one = same_site(12)
    sites = {'www.one.test': one, 'one.test': one, 'mirror.test': one,
             'v1.test': {**same_site(3), '/': page('/0', '/1', '/2', text='v1')},
             'v2.test': {**same_site(3), '/': page('/0', '/1', '/2', text='v2'),
                         '/robots.txt': robots('Disallow: /1\n')}}
    with Server(sites, addresses={h: '127.0.9.1' for h in sites}) as server:
        crawl(folder / 'r', server, *[server.url(h) for h in sites], '--delay', 0.02, '--processes', 2)
        names = [h for h in ('www.one.test', 'one.test', 'mirror.test') if len(server.pages_asked(h)) > 1]
        assert len(names) == 1, [server.paths(h) for h in sites]
        for other in {'www.one.test', 'one.test', 'mirror.test'} - set(names):
            assert set(server.paths(other)) <= {'/', '/robots.txt'}
            why = ask(folder / 'r', 'why', '%s:%d' % (other, server.port))[0]
            assert why['verdict'] == 'blocked' and names[0] in why['reason'], why
            why = ask(folder / 'r', 'why', server.url(other, '/3'))[0]
            assert why['verdict'] == 'fetched' and server.url(names[0], '/3') in why['reason'], why
        assert set(server.pages_asked('v1.test')) == {'/', '/0', '/1', '/2'}
        assert set(server.pages_asked('v2.test')) == {'/', '/0', '/2'}


@test
def a_twin_that_has_just_got_a_page(folder):
    """When the root of a name comes, another name of the same site may have a page that waits to be digested with
    others. a is known first, b is faster. c and more keep the slots of the address busy."""
    sites, addresses, ends = {}, {}, {}

    def root_of(i):
        def reply(request):
            ends.setdefault(i, time.time() + 0.8)
            return Reply(page('/1', text='root %d' % i), wait=max(0, ends[i] - time.time()))
        return reply

    def one_of(i):
        # It comes a moment before the root of the other name.
        return lambda request: Reply(page(text='one %d' % i),
                                     wait=max(0, ends.get(i, 0) - time.time() - i % 6 * 0.0004))

    for i in range(12):
        sites['a%d.test' % i] = {'/robots.txt': robots('Disallow: /no'), '/': root_of(i), '/1': one_of(i)}
        sites['b%d.test' % i] = {'/robots.txt': robots('Disallow: /no'), '/1': one_of(i),
                                 '/': page('/1', text='root %d' % i)}
        for c in ('c%d-%d.test' % (i, k) for k in range(3)):
            sites[c] = {'/robots.txt': robots('Disallow: /' + c), **star(40, c, wait=0.02)}
        addresses.update({host: '127.0.4.%d' % (i + 1) for host in sites if host not in addresses})
    with Server(sites, addresses=addresses) as server:
        events = crawl(folder / 'r', server, *[server.url(h) for h in sites], '--delay', 0, '--processes', 1,
                       '--no-sitemaps', '--per-address', 2)
        assert 'died' not in crawl.words, crawl.words
        assert done(events)['sites_done'] == 60, done(events)
        got = {i: {e['url'].split(':')[1] for e in events if e.get('result') in ('stored', 'duplicate') and
                   e['url'].endswith('/1') and e['url'][7] in 'ab' and e['url'].split(':')[1][3:] == '%d.test' % i}
               for i in range(12)}
        assert all(got.values()), got


@test
def pages_that_are_linked_only_under_the_name_of_an_alias(folder):
    """They are fetched once, under the name that is crawled, whichever that is; `why`, webdb and replay find them."""
    deep = {'/deep/%d' % n: page(text='deep %d' % n) for n in range(5)}
    both = {**same_site(4), **deep, '/deep/0': page('/deep/4', text='deep 0')}
    orders = list(itertools.permutations(('a.test', 'b.test', 'www.b.test')))
    for k in (*rng('orders').sample(range(5), 2), 5):
        order = orders[k]
        sites = {'a.test': {'/': page('/far', text='a'), '/far': None}, 'b.test': both, 'www.b.test': both}
        repo = folder / str(k)
        with Server(sites, addresses={'b.test': '127.0.9.3', 'www.b.test': '127.0.9.3'}) as server:
            links = [server.url(h, '/deep/%d' % n) for n, h in enumerate(('b.test', 'www.b.test') * 2)]
            sites['a.test']['/far'] = page(*links[:2])
            seeds = [server.url(h) for h in order]
            seeds.insert(k % 4, links[2])
            args = ['--delay', 0.01, '--processes', 1 + k % 2, '--no-sitemaps']
            if k == 5:
                p = start(repo, server, *seeds, *args)
                until(lambda: '/far' in server.paths('a.test') or p.poll() is not None)
                kill_all(p)
            crawl(repo, server, *seeds, *args)
            names = [h for h in ('b.test', 'www.b.test') if len(server.pages_asked(h)) > 1]
            assert len(names) == 1, (order, names)
            asked = collections.Counter(server.pages_asked(names[0]))
            assert all(asked['/deep/%d' % n] >= 1 for n in (0, 1, 2, 4)), (order, names, asked)
            assert k == 5 or max(asked.values()) == 1, (order, asked)
            # A page of an alias that is stored, such as its root, stays known.
            call(repo, 'update')
            assert ask(repo, 'webdb', 'count')[0]['fetched'] == ask(repo, 'stat')[0]['pages'], order
            # In the next run the page behind a new link is fetched, too.
            sites['a.test']['/'] = page('/far', links[3], text='a')
            crawl(repo, server, *[server.url(h) for h in order], *args)
            assert '/deep/3' in server.pages_asked(names[0]), (order, server.pages_asked(names[0]))
            verified(repo)
            call(repo, 'update')
            with serving.Server(repo) as archive:
                for n, url in enumerate(links):
                    real = server.url(names[0], '/deep/%d' % n)
                    why = ask(repo, 'why', url)[0]
                    assert why['verdict'] == 'fetched' and why['status'] == 200, why
                    if url != real:
                        assert real in why['reason'], why
                        assert ask(repo, 'webdb', 'page', url)[0]['location'] == real
                        answer = archive.ask('/web/20990101000000/' + url)
                        assert answer.field('Location') == '/web/20990101000000/' + real, answer.fields


@test
def aliases_stay_aliases_after_a_kill(folder):
    one = same_site(8)
    sites = {'a1.test': one, 'a2.test': one, 'a3.test': one}
    for moment in (0.45, 0.9):
        with Server(sites, addresses={h: '127.0.9.2' for h in sites}) as server:
            repo = folder / str(moment)
            args = [server.url(h) for h in sites] + ['--delay', 0.2, '--processes', 2]
            p = start(repo, server, *args)
            until(lambda: server.requests)
            time.sleep(moment)
            kill_all(p)
            killed = time.time()
            crawl(repo, server, *args)
            asked = {h: set(server.paths(h, killed)) - {'/', '/robots.txt'} for h in sites}
            assert sum(1 for h in sites if asked[h]) == 1, asked
            server.expect_gaps(0.2)


@test
def scopes(folder):
    with Server({'www.in.test': {}, 'docs.in.test': {'/': page(), '/d': page(text='d')},
                 'out.test': {'/': page(), '/o': page(text='o')},
                 'far.out.test': {'/f': page(text='f')}}) as server:
        server.sites['www.in.test']['/'] = page(server.url('docs.in.test', '/d'), server.url('out.test', '/o'))
        server.sites['out.test']['/o'] = page(server.url('far.out.test', '/f'))
        for scope, want in (('site', ['www.in.test']), ('domain', ['docs.in.test', 'www.in.test']),
                            ('any', ['docs.in.test', 'far.out.test', 'out.test', 'www.in.test'])):
            begin = time.time()
            crawl(folder / scope, server, server.url('www.in.test'), '--scope', scope, '--delay', 0, '--processes', 2)
            asked = sorted({r.host for r in server.requests if r.time > begin})
            assert asked == want, (scope, asked)
        assert ask(folder / 'site', 'why', server.url('out.test', '/o'))[0]['verdict'] == 'blocked'


@test
def a_page_that_only_another_site_links_to(folder):
    """Its own site is finished long before the link is found."""
    with Server({'i.test': {'/': page(text='i'), '/island': page('/behind', text='island'),
                            '/behind': page(text='behind')},
                 'j.test': {'/': page('/1'), '/1': page('/2'), '/2': page('/3', text='2'), '/3': None}}) as server:
        server.sites['j.test']['/3'] = page(server.url('i.test', '/island'), text='3')
        crawl(folder / 'r', server, server.url('i.test'), server.url('j.test'), '--delay', 0.3, '--processes', 2)
        assert {'/island', '/behind'} <= set(server.paths('i.test')), server.paths('i.test')
        assert server.counts['i.test', '/'] == 1
        server.expect_gaps(0.3)


# ---- hints ---------------------------------------------------------------------------------------------------

@test
def pages_are_found_in_feeds_and_sitemaps(folder):
    with Server({'f.test': {'*': lambda r: page(text=r.path)}}) as server:
        url = lambda path: server.url('f.test', path)
        site = server.sites['f.test']
        site['/'] = ('<title>t</title><link rel=alternate type="application/rss+xml" href=/rss>'
                     '<link rel="alternate" type="application/atom+xml" href="/atom.xml">'
                     '<link rel=alternate hreflang=de href=/de>').encode()
        site['/rss'] = Reply('<rss version="2.0"><channel><item><link>%s</link></item></channel></rss>' %
                             url('/from-rss'), type='application/rss+xml')
        site['/atom.xml'] = Reply('<feed xmlns="http://www.w3.org/2005/Atom"><entry><link href="/from-atom"/></entry>'
                                  '</feed>', type='application/atom+xml')
        site['/robots.txt'] = robots('Disallow: /secret\nSitemap: %s\nSitemap: %s\n' %
                                     (url('/index.xml'), url('/list.txt')))
        site['/index.xml'] = Reply('<sitemapindex xmlns="http://www.sitemaps.org/schemas/sitemap/0.9"><sitemap>'
                                   '<loc>%s</loc></sitemap></sitemapindex>' % url('/one.xml.gz'), type='text/xml')
        urls = (url('/from-sitemap'), url('/secret'), 'http://elsewhere.test/x')
        sitemap = ('<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">%s</urlset>' %
                   ''.join('<url><loc>%s</loc></url>' % u for u in urls))
        site['/one.xml.gz'] = Reply(gzip.compress(sitemap.encode()), type='application/x-gzip')
        site['/list.txt'] = Reply(url('/from-list') + '\n', type='text/plain')
        crawl(folder / 'r', server, url('/'), '--delay', 0)
        asked = set(server.paths('f.test'))
        assert {'/from-rss', '/from-atom', '/from-sitemap', '/from-list'} <= asked and '/secret' not in asked, asked
        assert all(n == 1 for n in server.counts.values()), server.counts
        begin = time.time()
        crawl(folder / 'none', server, url('/'), '--delay', 0, '--no-sitemaps')
        assert set(server.paths('f.test', begin)) == {'/robots.txt', '/'}, server.paths('f.test', begin)


@test
def nofollow_from_every_source_is_obeyed(folder):
    heads = {'/other': 'otherbot: nofollow', '/all': 'noindex, nofollow', '/we': 'promisecheck: nofollow',
             '/date': 'unavailable_after: 25 Jun 2010 15:00:00 PST', '/none': 'none'}
    with Server({'n.test': {'/': page(*heads, '/meta', '/rel'), '*': lambda r: page(text=r.path)}}) as server:
        site = server.sites['n.test']
        for path, value in heads.items():
            site[path] = Reply(page('/from' + path, text=path), headers=[('X-Robots-Tag', value)])
        site['/meta'] = b'<meta name=robots content="index, NOFOLLOW"><a href=/from/meta>x</a>'
        site['/rel'] = b'<a rel="external nofollow" href=/from/rel>x</a><a href=/from/rel2>y</a>'
        crawl(folder / 'r', server, server.url('n.test'), '--delay', 0)
        got = {p for p in server.paths('n.test') if p.startswith('/from')}
        assert got == {'/from/other', '/from/date', '/from/rel2'}, got


run_together()
