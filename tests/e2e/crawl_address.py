#!/usr/bin/env python3
"""Many sites on one address: the crawl ends, slots are shared fairly, and a lack of file descriptors makes it slower
but loses nothing."""
import resource

from e2e import *
from crawlserver import *


def star_with_robots(count, name, **reply):
    return {'/robots.txt': Reply('User-agent: *\nDisallow: /no\n', type='text/plain', **reply),
            **star(count, name, **reply)}


def one_address(sites):
    return {host: '127.0.3.1' for host in sites}


def most_at_once(server, hosts):
    """The largest number of requests that were under way at the same time, as far as the server can tell."""
    marks = sorted([(r.time, 1) for r in server.requests if r.host in hosts] +
                   [(r.done, -1) for r in server.requests if r.host in hosts and r.done],
                   key=lambda m: (m[0], m[1]))
    now = most = 0
    for _, step in marks:
        now += step
        most = max(most, now)
    return most


@test
def a_crawl_of_more_sites_than_slots_ends(folder):
    for delay in (0, 0.1):
        sites = {'e%d.test' % i: star_with_robots(3, 'e%d' % i, wait=0.15) for i in range(30)}
        with Server(sites, addresses=one_address(sites)) as server:
            events = crawl(folder / ('r%s' % delay), server, *[server.url(h) for h in sites], '--delay', delay,
                           '--processes', 1, '--no-sitemaps')
            assert done(events)['pages'] == 90, done(events)
            assert most_at_once(server, sites) <= 8


@test
def sites_that_drip_do_not_starve_their_neighbours(folder):
    good = {'g%d.test' % i: star_with_robots(10, 'g%d' % i) for i in range(20)}
    drips = {'d%d.test' % i: {'*': Reply(b'x' * 100, end='drip')} for i in range(40)}
    sites = dict(sorted({**good, **drips}.items(), key=lambda s: hash((SEED, s[0]))))
    with Server(sites, addresses=one_address(sites)) as server:
        process = start(folder / 'r', server, *[server.url(h) for h in sites], '--delay', 0, '--processes', 1,
                        '--no-sitemaps')
        try:
            until(lambda: sum(1 for r in server.requests if r.host in good and r.path != '/robots.txt'
                              and r.done) == 200, 90)
            # A dripping site holds a slot for twenty seconds unless it is stopped. None of them got two turns before
            # the others were done.
            turns = collections.Counter(r.host for r in server.requests if r.host in drips)
            assert len([h for h, n in turns.items() if n > 1]) <= 4, turns
        finally:
            process.terminate()
            process.wait(PATIENCE)
    verified(folder / 'r')


@test
def few_file_descriptors_make_it_slower_but_lose_nothing(folder):
    sites = {'f%d.test' % i: star_with_robots(4, 'f%d' % i, wait=0.02) for i in range(120)}
    for files in (200, 96, 64):
        with Server(sites) as server:
            def few():
                resource.setrlimit(resource.RLIMIT_NOFILE, (files, files))
            events = crawl(folder / ('r%d' % files), server, *[server.url(h) for h in sites], '--delay', 0,
                           '--processes', 1, '--no-sitemaps', preexec_fn=few)
            assert done(events)['pages'] == 480, (files, done(events), crawl.words[-500:])
            assert done(events)['errors'] == 0, (files, done(events), crawl.words[-500:])
            assert crawl.words.count('ulimit -n') == (files < 120), crawl.words


@test
def one_request_at_a_time_goes_to_a_site(folder):
    """Even if pages are held for a moment to be digested together, and nothing else slows the crawl down."""
    with Server({'o.test': star_with_robots(150, 'o', wait=0.001),
                 't.test': star_with_robots(150, 't', wait=0.001)}) as server:
        for connections in (1, 3):
            events = crawl(folder / ('r%d' % connections), server, server.url('o.test'), server.url('t.test'),
                           '--delay', 0, '--no-sitemaps',
                           '--connections', connections, '--processes', 1, '--site-budget', 120)
            for host in server.sites:
                assert most_at_once(server, [host]) <= connections, (host, connections, most_at_once(server, [host]))
            assert done(events)['pages'] == 240 and done(events)['errors'] == 0, done(events)
            assert len(fetches(events, 'stored')) == 240
            assert all(len(server.pages_asked(h)) == 120 for h in server.sites)
            server.requests.clear()


@test
def urls_of_a_site_whose_address_became_private_have_lines(folder):
    became_private(folder, 0)


@test
def the_same_if_the_name_is_resolved_again(folder):
    became_private(folder, 49 * 3600)


def became_private(folder, later):
    clock = Clock(folder)
    with Server({'p.test': star_with_robots(20, 'p')}) as server:
        args = [server.url('p.test'), '--delay', 0, '--no-sitemaps']
        crawl(folder / 'r', server, *args, '--max-pages', 5)
        clock.forward(later)
        left = {server.url('p.test', '/%d' % n) for n in range(1, 20)} - {server.url('p.test', p)
                                                                          for p in server.paths('p.test')}
        assert len(left) == 15
        before = len(server.requests)
        # The same crawl continues, but private addresses are not allowed any more.
        p = subprocess.run(command(folder / 'r', 'crawl', '--json', '--user-agent', AGENT, *server.resolve(), *args),
                           capture_output=True, timeout=PATIENCE,
                           env=clock.env())
        events = lines(p.stdout)
        assert p.returncode == 0 and len(server.requests) == before, (p.stderr, server.requests[before:])
        assert {u for u, r in results(events).items() if r == 'error:private'} == left, results(events)
        why = ask(folder / 'r', 'why', sorted(left)[0])[0]
        assert why['verdict'] == 'blocked' and 'private address' in why['reason'], why


run_together()
