#!/usr/bin/env python3
"""A crawl is killed, stopped and disturbed: nothing is lost, only requests that were under way are repeated, and
intervals are kept.

The server is the witness. It knows which responses it had sent when the crawler died, and when each request came, over
all runs.
"""
import signal, time

from e2e import *
from crawlserver import *

DELAY = 0.3


def small_web(random_, sites, pages, size=300):
    """Hosts with pages that link to each other and to other hosts. Every page can be reached from the roots."""
    web, hosts = {}, ['s%d.test' % i for i in range(sites)]
    for host in hosts:
        links = {n: ['/p%d' % m for m in (2 * n + 1, 2 * n + 2) if m < pages] for n in range(pages)}
        web[host] = {'/robots.txt': Reply(b'User-agent: *\nDisallow: /closed\n', type='text/plain')}
        for n in range(pages):
            body = page(*links[n], '/closed/%d' % n, text='%s %d %s' % (host, n, random_.randbytes(size).hex()))
            web[host]['/p%d' % n if n else '/'] = body
    return web


def bodies(server):
    """{url: body} of everything that a crawl must store."""
    return {server.url(host, path): body for host, paths in server.sites.items()
            for path, body in paths.items() if isinstance(body, bytes)}


def expect_stored(repo, server, want=None):
    want = bodies(server) if want is None else want
    some = list(want) if len(want) < 200 else rng('stored').sample(list(want), 60)
    for url, body in ((url, want[url]) for url in some):
        got = call(repo, 'get', url, status=None)
        assert got.returncode == 0, '%s is not stored: %s' % (url, got.stderr)
        assert got.stdout == body, 'the stored body of %s is not what was served' % url
    stat = ask(repo, 'stat')[0]
    assert stat['pages'] == len(want), '%d pages stored, %d served' % (stat['pages'], len(want))
    assert verified(repo)['pages'] == len(want)


def expect_once(server, kills):
    """Checks that a page was requested again only if, when a process was killed, it had no response yet or had just got
    it."""
    first = {}
    for r in server.requests:
        if r.path == '/robots.txt':
            continue
        before = first.get((r.host, r.path))
        first[r.host, r.path] = r
        if before is None:
            continue
        assert server.unsettled(before, kills), \
            '%s%s was requested at %.3f, answered at %s, and requested again at %.3f; kills: %s' % (
                r.host, r.path, before.time, before.done, r.time, ['%.3f' % k for k in kills])
    for host in server.sites:
        robots = server.paths(host).count('/robots.txt')
        assert robots <= 1 + len(kills), \
            '%s: robots.txt was requested %d times after %d kills' % (host, robots, len(kills))
        assert not any(p.startswith('/closed') for p in server.paths(host))


def finish(repo, server, args, kills):
    """Crawls to the end. Then every page must be stored and requested once (except around kills), and all intervals
    kept."""
    crawl(repo, server, *args)
    expect_once(server, kills)
    server.expect_gaps(DELAY)
    expect_stored(repo, server)


# ---- kill -9 ---------------------------------------------------------------------------------

def killed_crawl(folder, random_, moments, **web):
    with Server(small_web(random_, **web), latency=lambda: random_.uniform(0, 0.06)) as server:
        seeds = [server.url(h) for h in server.sites]
        args = [*seeds, '--delay', DELAY, '--processes', 2]
        kills = []
        for victim, moment in moments:
            # A crawl that has finished is not continued: it starts again.
            if len(server.counts) > 0.6 * len(bodies(server)):
                break
            p = start(folder / 'r', server, *args)
            time.sleep(moment)
            if victim == 'all':
                kills.append(time.time())
                kill_all(p)
            elif victim == 'parent':
                kills.append(time.time())
                kill(p.pid)
                p.wait()
            else:
                for _ in range(2):
                    found = workers_of(p)
                    if found:
                        kills.append(time.time())
                        kill(random_.choice(found))
                    time.sleep(0.4)
                kills.append(time.time())
                kill_all(p)
        assert len(kills) >= 2
        finish(folder / 'r', server, args, kills)


@test
def all_are_killed_again_and_again(folder):
    random_ = rng('all')
    killed_crawl(folder, random_, [('all', random_.uniform(0.1, 2.2)) for _ in range(6)], sites=6, pages=16)


@test
def the_parent_alone_is_killed(folder):
    """Its workers end on their own; the next crawl may start before they have."""
    random_ = rng('parent')
    killed_crawl(folder, random_, [('parent', random_.uniform(0.1, 2.0)) for _ in range(6)], sites=6, pages=16)


def group_lives(pid):
    with contextlib.suppress(ProcessLookupError):
        os.killpg(pid, 0)
        return True
    return False


@test
def the_parent_is_killed_while_it_starts_workers(folder):
    """A worker that has not begun when its parent dies ends too: otherwise it would crawl on for ever, alone."""
    with Server({'a.test': star(3)}) as server:
        for n in range(8):
            p = start(folder / str(n), server, server.url('a.test'), '--processes', 8)
            children = os.open('/proc/%d/task/%d/children' % (p.pid, p.pid), os.O_RDONLY)
            with contextlib.suppress(ProcessLookupError):      # on a busy machine, the crawl may end before we look
                while p.poll() is None and not os.pread(children, 64, 0):
                    pass
            kill(p.pid)
            assert p.wait() in (-signal.SIGKILL, 0)
            os.close(children)
            try:
                until(lambda: not group_lives(p.pid))
            finally:
                kill_all(p)


@test
def various_processes_are_killed(folder):
    random_ = rng('anyone')
    killed_crawl(folder, random_,
                 [(random_.choice(['all', 'parent', 'one']), random_.uniform(0.1, 1.5)) for _ in range(6)], sites=6,
                 pages=16)


@test
def a_site_that_was_just_finished_is_not_visited_again(folder):
    """The end of a visit is in the journal, but its crawler dies before it tells the dispenser."""
    random_ = rng('finished')
    web = {'short.test': {'/': page('/a'), '/a': page(text='a')}, **small_web(random_, 1, 12)}
    with Server(web) as server:
        args = [server.url(h) for h in web] + ['--delay', DELAY, '--processes', 1]
        p = start(folder / 'r', server, *args)
        until(lambda: '/a' in server.paths('short.test'))
        time.sleep(DELAY + 0.4)
        kills = [time.time()]
        kill_all(p)
        finish(folder / 'r', server, args, kills)


@test
def links_to_other_sites_survive_a_kill(folder):
    """A page is in the journal, but the sites it links to are not in the dispenser yet."""
    for moment in (0.05, 0.3):
        names = ['o%d.test' % i for i in range(8)]
        web = {'hub.test': {'/': None}, **{n: {'/': page(text=n), '/deep': page(text=n + ' deep')} for n in names}}
        with Server(web) as server:
            web['hub.test']['/'] = page(*[server.url(n, '/deep') for n in names], '/more')
            web['hub.test']['/more'] = page(text='more')
            del web['o0.test']['/']
            for n in names[1:]:
                del web[n]['/']
            repo = folder / ('r%g' % moment)
            args = [server.url('hub.test'), '--scope', 'any', '--delay', DELAY, '--processes', 1]
            p = start(repo, server, *args)
            until(lambda: any(r.path == '/' and r.done for r in server.requests))
            time.sleep(moment)
            kills = [time.time()]
            kill_all(p)
            crawl(repo, server, *args)
            for n in names:
                assert '/deep' in server.paths(n), \
                    '%s was never requested; the crawl was killed %.2f s after the link was read' % (n, moment)
            server.expect_gaps(DELAY)


@test
def recovery_is_killed_too(folder):
    random_ = rng('recovery')
    with Server(small_web(random_, sites=3, pages=120, size=30000)) as server:
        args = [server.url(h) for h in server.sites] + ['--delay', 0, '--processes', 2]
        kills = []
        for n in range(3):
            p = start(folder / 'r', server, *args)
            until(lambda: len(server.requests) > 40 * (n + 1))
            kills.append(time.time())
            kill_all(p)
            for _ in range(4):
                p = start(folder / 'r', server, *args)
                time.sleep(random_.uniform(0.01, 0.09))
                kills.append(time.time())
                kill_all(p)
        crawl(folder / 'r', server, *args)
        expect_once(server, kills)
        expect_stored(folder / 'r', server)


@test
def one_worker_is_killed_and_replaced(folder):
    random_ = rng('replaced')
    with Server(small_web(random_, sites=6, pages=12), latency=lambda: 0.03) as server:
        kills = []
        p = start(folder / 'r', server, *[server.url(h) for h in server.sites], '--delay', DELAY, '--processes', 2,
                  stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        for n in range(3):
            time.sleep(random_.uniform(0.4, 1.0))
            until(lambda: len(workers_of(p)) == 2)
            found = workers_of(p)
            kills.append(time.time())
            kill(found[n % 2])
        out, err = p.communicate(timeout=PATIENCE)
        assert p.returncode == 0, err
        assert err.count(b'died of signal 9') == 3, err
        assert done(lines(out))['pages'] == 72, done(lines(out))
        expect_once(server, kills)
        server.expect_gaps(DELAY)
        expect_stored(folder / 'r', server)


@test
def a_killed_worker_does_not_use_up_the_page_limit(folder):
    """Pages that it was fetching when it died do not count towards --max-pages."""
    with Server({'a.test': {'/': page(*['/%d' % i for i in range(20)]),
                            '*': lambda r: Reply(page(text=r.path), wait=0.4)}}) as server:
        p = start(folder / 'r', server, server.url('a.test'), '--delay', 0, '--processes', 1, '--max-pages', 4)
        until(lambda: len(server.requests) >= 3)
        time.sleep(0.1)
        kill(workers_of(p)[0])
        assert p.wait(PATIENCE) == 0
        assert ask(folder / 'r', 'stat')[0]['pages'] == 4


# ---- signals and company -----------------------------------------------------------------------

@test
def signals_end_it_cleanly(folder):
    random_ = rng('signals')
    # There are more pages than five runs of 0.6 s can request. A run that ignored the signal would finish, with status
    # 0.
    with Server(small_web(random_, sites=3, pages=30), latency=lambda: random_.uniform(0, 0.1)) as server:
        args = [server.url(h) for h in server.sites] + ['--delay', DELAY, '--processes', 2]
        stops = []
        for n, sig in enumerate([signal.SIGTERM, signal.SIGINT, signal.SIGTERM, signal.SIGINT, signal.SIGINT]):
            p = start(folder / 'r', server, *args, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
            count = len(server.requests)
            until(lambda: len(server.requests) > count)
            time.sleep(random_.uniform(0, 0.6))
            stops.append(time.time())
            # Send it to the parent alone, or to all processes as a terminal does.
            kill(p.pid, sig) if n < 2 else os.killpg(p.pid, sig)
            out, err = p.communicate(timeout=PATIENCE)
            assert p.returncode == 1 and b'signal' in err and b'gave up' not in err, (p.returncode, err)
            for e in fetches(lines(out), 'stored'):
                assert call(folder / 'r', 'get', e['url']).stdout == bodies(server)[e['url']]
        finish(folder / 'r', server, args, stops)


@test
def a_second_signal_ends_it_at_once(folder):
    """The second signal ends the parent at once; the next crawl repairs what it leaves behind."""
    random_ = rng('twice')
    with Server(small_web(random_, sites=3, pages=8), latency=lambda: random_.uniform(0, 0.1)) as server:
        args = [server.url(h) for h in server.sites] + ['--delay', DELAY, '--processes', 2]
        stops = []
        for sig in (signal.SIGTERM, signal.SIGINT):
            p = start(folder / 'r', server, *args)
            count = len(server.requests)
            until(lambda: len(server.requests) > count)
            time.sleep(random_.uniform(0, 0.6))
            stops.append(time.time())
            for _ in range(2):
                os.killpg(p.pid, sig)
            assert p.wait(PATIENCE) in (1, -sig)
        finish(folder / 'r', server, args, stops)


@test
def two_crawls_of_one_repository(folder):
    """With the same seeds and with different ones: each page is requested once, intervals are kept, and both end with
    success."""
    random_ = rng('two')
    with Server(small_web(random_, sites=6, pages=7)) as server:
        seeds = [server.url(h) for h in server.sites]
        args = ['--delay', DELAY, '--processes', 2]
        both = [start(folder / 'r', server, *mine, *args, stderr=subprocess.PIPE)
                for mine in (seeds[:4], seeds[:2] + seeds[4:])]
        for p in both:
            assert p.wait(PATIENCE) == 0, p.stderr.read()
        expect_once(server, [])
        server.expect_gaps(DELAY)
        expect_stored(folder / 'r', server)


@test
def other_commands_work_meanwhile(folder):
    random_ = rng('meanwhile')
    with Server(small_web(random_, sites=4, pages=200, size=2000)) as server:
        repo = folder / 'r'
        p = start(repo, server, *[server.url(h) for h in server.sites], '--delay', 0.01, '--processes', 2,
                  stderr=subprocess.PIPE)
        until(lambda: len(server.requests) > 30)
        want, rounds = bodies(server), 0
        while p.poll() is None and rounds < 200:
            url = random_.choice(list(want))
            got = call(repo, 'get', url, status=None)
            assert got.returncode == 1 and b'no such page' in got.stderr or got.stdout == want[url], got
            verdict = ask(repo, 'why', url)[0]
            assert verdict['verdict'] in ('fetched', 'waiting', 'unknown', 'blocked'), verdict
            ask(repo, 'stat')
            verified(repo)
            if rounds % 3 == 0:
                call(repo, 'compact')
                call(repo, 'export', '--warc', folder / 'out.warc', '--force')
            rounds += 1
        assert p.wait(PATIENCE) == 0, p.stderr.read()
        assert rounds > 0      # on a busy machine, the crawl may end soon after
        expect_once(server, [])
        expect_stored(repo, server)


@test
def a_stored_version_that_is_dated_later(folder):
    """If the stored version is an hour ahead, as another machine's clock may be, nothing is stored and the line says
    so. If it is years ahead, it is replaced."""
    with Server({'o.test': {'/': page('/a', '/b'), '/a': page(text='a'), '/b': page(text='b')}}) as server:
        repo, soon = folder / 'r', time.strftime('%Y-%m-%dT%H:%M:%SZ', time.gmtime(time.time() + 3600))
        call(repo, 'import', archive(folder / 'a.warc', [Page(server.url('o.test', '/a'), b'from an archive', soon)]))
        events = crawl(repo, server, server.url('o.test'), '--delay', 0)
        said = results(events)
        assert said[server.url('o.test', '/a')] == 'older' and said[server.url('o.test', '/b')] == 'stored', said
        assert done(events)['pages'] == 2
        assert call(repo, 'get', server.url('o.test', '/a')).stdout == b'from an archive'
        call(repo, 'update')
        row = ask(repo, 'webdb', 'page', server.url('o.test', '/a'))[0]
        assert row['md5'] == hashlib.md5(b'from an archive').hexdigest(), row


run_together()
