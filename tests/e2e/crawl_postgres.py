#!/usr/bin/env python3
"""Crawls whose dispenser is in PostgreSQL: the same as with SQLite, shared by two crawls, and with a server that goes
away."""
import json, socket, time

from e2e import *
from crawlserver import *

DELAY = 0.25


class Postgres:
    """A PostgreSQL server that can be made unreachable: connections go through a socket of this script."""

    def __init__(self, folder):
        self.process = subprocess.Popen([ROOT / 'tests' / 'postgres'], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        stderr=subprocess.PIPE)
        line = self.process.stdout.readline().decode().strip()
        if not line:
            raise AssertionError(self.process.stderr.read().decode())
        self.inner = re.search(r'host=([^&]+)', line).group(1) + '/.s.PGSQL.5432'
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix='wb-pg-'))
        self.url = 'postgres://webbase@/postgres?host=%s' % self.folder
        self.open, self.pairs = True, []
        self.listener = socket.socket(socket.AF_UNIX)
        self.listener.bind(str(self.folder / '.s.PGSQL.5432'))
        self.listener.listen(50)
        threading.Thread(target=self.accept, daemon=True).start()

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self.listener.close()
        self.process.stdin.close()
        self.process.wait(PATIENCE)
        shutil.rmtree(self.folder, ignore_errors=True)

    def accept(self):
        with contextlib.suppress(OSError):
            while True:
                outer = self.listener.accept()[0]
                if not self.open:
                    outer.close()
                    continue
                inner = socket.socket(socket.AF_UNIX)
                inner.connect(self.inner)
                self.pairs.append((outer, inner))
                for a, b in ((outer, inner), (inner, outer)):
                    threading.Thread(target=self.pump, args=(a, b), daemon=True).start()

    def pump(self, a, b):
        with contextlib.suppress(OSError):
            while data := a.recv(65536):
                b.sendall(data)
        for s in (a, b):
            with contextlib.suppress(OSError):
                s.shutdown(socket.SHUT_RDWR)

    def go_away(self):
        self.open = False
        for pair in self.pairs:
            for s in pair:
                with contextlib.suppress(OSError):
                    s.shutdown(socket.SHUT_RDWR)
        self.pairs = []

    def come_back(self):
        self.open = True

    def forget_leases(self):
        """As if nobody had renewed a lease for longer than leases last."""
        words = ['psql', '-q', '-h', self.folder, '-U', 'webbase', 'postgres', '-c',
                 'UPDATE webbase_site SET lease_ms = 1 WHERE state = 3; UPDATE webbase_home SET until_ms = 1']
        subprocess.run(words, check=True, capture_output=True, timeout=PATIENCE)


def web(count, pages):
    """Sites that link to each other. The last one can only be reached through links."""
    hosts = ['p%d.test' % i for i in range(count)]
    sites = {h: {'/': page(*['/%d' % n for n in range(1, pages)], text=h),
                 **{'/%d' % n: page(text='%s %d' % (h, n)) for n in range(1, pages)}} for h in hosts}
    return hosts, sites


def stored_urls(repo, server):
    return {server.url(h, p) for h in server.sites for p in server.sites[h]
            if call(repo, 'get', server.url(h, p), status=None).returncode == 0}


@test
def the_same_as_with_sqlite(folder):
    with Postgres(folder) as postgres:
        hosts, sites = web(5, 6)
        with Server(sites) as server:
            for host in hosts[:-1]:
                sites[host]['/1'] = page(server.url(hosts[-1], '/3'), text=host + ' leads out')
            found = []
            for name, dispenser in (('lite', []), ('pg', ['--dispenser', postgres.url])):
                begin = len(server.requests)
                events = crawl(folder / name, server, *[server.url(h) for h in hosts[:-1]], '--scope', 'any', '--delay',
                               0.01, '--processes', 2, *dispenser)
                asked = sorted((r.host, r.path) for r in server.requests[begin:])
                found.append((asked, sorted((e['url'], e['result']) for e in fetches(events)), done(events)['pages'],
                              verified(folder / name)['pages']))
            assert found[0] == found[1], found
            assert not (folder / 'pg' / 'dispenser.db').exists()
            why = ask(folder / 'pg', 'why', server.url(hosts[0], '/1'), '--dispenser', postgres.url)[0]
            assert why['verdict'] == 'fetched', why
            assert ask(folder / 'pg', 'why', hosts[0] + ':%d' % server.port, '--dispenser',
                       postgres.url)[0]['verdict'] == 'fetched'


@test
def two_crawls_with_two_repositories_share_the_work(folder):
    with Postgres(folder) as postgres:
        hosts, sites = web(8, 8)
        with Server(sites, latency=lambda: 0.02) as server:
            args = [*[server.url(h) for h in hosts], '--delay', DELAY, '--processes', 1, '--sites', 2, '--dispenser',
                    postgres.url]
            both = [start(folder / name, server, *args, stderr=subprocess.PIPE) for name in ('a', 'b')]
            for p in both:
                assert p.wait(PATIENCE) == 0, p.stderr.read()
            server.expect_gaps(DELAY)
            twice = {k: n for k, n in server.counts.items() if n > 1 and k[1] != '/robots.txt'}
            assert not twice, twice
            a, b = stored_urls(folder / 'a', server), stored_urls(folder / 'b', server)
            assert a | b == {server.url(h, p) for h in sites for p in sites[h]} and not a & b
            assert a and b, 'one of the crawls did everything'
            for name in ('a', 'b'):
                verified(folder / name)


def linked_web(count, pages, random_):
    """Sites whose pages link to pages of the others, so that sites are opened again and again."""
    hosts = ['x%d.test' % i for i in range(count)]
    sites = {h: {'/': page(*['/%d' % n for n in range(1, pages)], text=h)} for h in hosts}
    return hosts, sites, lambda server: [
        sites[h].__setitem__('/%d' % n, page('/', *[server.url(random_.choice(hosts), '/%d' % random_.randrange(pages + 3))
                                                     for _ in range(3)], text='%s %d' % (h, n)))
        for h in hosts for n in range(1, pages + 3)]


def urls_of(repo):
    return set(call(repo, 'stream', '--latest', '--format', 'urls').stdout.decode().split())


def fetched_from(server):
    return {server.url(r.host, r.path) for r in server.requests if r.status == 200 and r.path != '/robots.txt'}


def asked_twice(server):
    return {k: n for k, n in server.counts.items() if n > 1 and k[1] != '/robots.txt'}


@test
def a_site_stays_with_the_repository_that_visits_it(folder):
    """Sites that are opened again by links go to the machine whose journal knows what was fetched."""
    with Postgres(folder) as postgres:
        hosts, sites, link = linked_web(6, 8, rng('stays'))
        with Server(sites, latency=lambda: 0.003) as server:
            link(server)
            args = ['--delay', 0.2, '--processes', 1, '--sites', 3, '--no-sitemaps', '--dispenser', postgres.url]
            # The second one has no seeds and no repository yet: it joins the crawl of the first.
            both = [start(folder / 'a', server, *[server.url(h) for h in hosts], *args, stderr=subprocess.PIPE)]
            until(lambda: len(server.requests) > 5 or both[0].poll() is not None)
            both.append(start(folder / 'b', server, *args, stderr=subprocess.PIPE))
            for p in both:
                assert p.wait(PATIENCE) == 0, p.stderr.read()
            assert not asked_twice(server), asked_twice(server)
            a, b = urls_of(folder / 'a'), urls_of(folder / 'b')
            assert a | b == fetched_from(server) and not a & b and a and b, (len(a), len(b))
            for name in ('a', 'b'):
                verified(folder / name)


@test
def killed_and_started_again_beside_another(folder):
    """A machine that is killed and comes back goes on with its own sites; the other one leaves them alone meanwhile."""
    with Postgres(folder) as postgres:
        hosts, sites, link = linked_web(6, 8, rng('beside'))
        with Server(sites, latency=lambda: 0.01) as server:
            link(server)
            args = [*[server.url(h) for h in hosts], '--delay', 0, '--processes', 1, '--sites', 3, '--no-sitemaps',
                    '--dispenser', postgres.url]
            jobs = {name: start(folder / name, server, *args) for name in ('a', 'b')}
            kills = []
            for name in ('a', 'b'):
                seen = len(server.requests)
                until(lambda: len(server.requests) > seen + 15 or jobs[name].poll() is not None)
                kill_all(jobs[name])
                kills.append(time.time())
                jobs[name] = start(folder / name, server, *args)
            for p in jobs.values():
                assert p.wait(PATIENCE) == 0
            twice = asked_twice(server)
            pardoned = {(r.host, r.path) for r in server.requests if server.unsettled(r, kills)}
            assert set(twice) <= pardoned, (twice, pardoned)
            assert urls_of(folder / 'a') | urls_of(folder / 'b') == fetched_from(server)


@test
def a_machine_that_never_comes_back(folder):
    """When its leases have ended, another one goes on with its sites, and fetches nothing that it has fetched."""
    with Postgres(folder) as postgres:
        hosts, sites, link = linked_web(4, 14, rng('never'))
        with Server(sites, latency=lambda: 0.01) as server:
            link(server)
            sites[hosts[0]]['/1'] = redirect('/moved')
            sites[hosts[0]]['/moved'] = page('/behind')
            sites[hosts[0]]['/behind'] = page(text='behind')
            args = ['--delay', 0.1, '--processes', 1, '--no-sitemaps', '--dispenser', postgres.url]
            gone = start(folder / 'a', server, *[server.url(h) for h in hosts], *args)
            until(lambda: len(server.requests) > 20 or gone.poll() is not None)
            # What was committed is told; the rest dies with the machine.
            until(lambda: len(urls_of(folder / 'a')) > 5 or gone.poll() is not None)
            assert gone.poll() is None
            kill_all(gone)
            told = urls_of(folder / 'a')
            postgres.forget_leases()
            end = done(crawl(folder / 'b', server, *args))
            assert end['sites_left'] == 0, (end, crawl.words)
            twice = {server.url(*k) for k in asked_twice(server)}
            assert not twice & told, twice & told
            assert told | urls_of(folder / 'b') == fetched_from(server) | {server.url(hosts[0], '/1')}
            assert {server.url(h, '/%d' % n) for h in hosts for n in range(1, 14)} <= fetched_from(server) | {
                server.url(hosts[0], '/1')}
            verified(folder / 'b')
            # It comes back after all: nothing is left to do, and it fetches nothing.
            since = len(server.requests)
            refused(folder / 'a', 'no unfinished crawl', 'crawl', '--dispenser', postgres.url)
            assert len(server.requests) == since


@test
def a_machine_that_is_stopped(folder):
    """Another one goes on with its sites at once, and nothing is fetched twice, not even when the first one returns."""
    with Postgres(folder) as postgres:
        hosts, sites, link = linked_web(4, 8, rng('stopped'))
        with Server(sites, latency=lambda: 0.01) as server:
            link(server)
            seeds = [server.url(h) for h in hosts]
            args = ['--delay', 0.1, '--processes', 1, '--no-sitemaps', '--dispenser', postgres.url]
            crawl_until(folder / 'a', server, lambda: len(server.requests) > 15, *seeds, *args)
            crawl_until(folder / 'b', server, lambda: len(server.requests) > 30, *args)
            end = done(crawl(folder / 'a', server, *seeds, *args))
            assert end['sites_left'] == 0 and not asked_twice(server), (end, asked_twice(server))
            a, b = urls_of(folder / 'a'), urls_of(folder / 'b')
            assert a | b == fetched_from(server) and not a & b and a and b
            assert {server.url(h, '/%d' % n) for h in hosts for n in range(1, 8)} <= a | b


@test
def without_seeds_and_without_work(folder):
    """A dispenser that has no work makes no repository."""
    with Postgres(folder) as postgres:
        text = refused(folder / 'none', 'no unfinished crawl', 'crawl', '--dispenser', postgres.url)
        assert 'PostgreSQL' in text or 'host' in text or 'postgres' in text, text
        assert not (folder / 'none').exists()
        refused(folder / 'none', 'no seeds', 'crawl')


@test
def killed_with_a_shared_dispenser(folder):
    with Postgres(folder) as postgres:
        hosts, sites = web(4, 9)
        with Server(sites, latency=lambda: 0.02) as server:
            args = [*[server.url(h) for h in hosts], '--delay', DELAY, '--processes', 2, '--dispenser', postgres.url]
            random_, kills = rng('pg'), 0
            for _ in range(2):
                p = start(folder / 'r', server, *args)
                time.sleep(random_.uniform(0.4, 1.0))
                kill_all(p)
                kills += 1
            crawl(folder / 'r', server, *args)
            server.expect_gaps(DELAY)
            again = {k: n for k, n in server.counts.items() if n > 1 and k[1] != '/robots.txt'}
            assert len(again) <= kills * len(hosts) and ask(folder / 'r', 'stat')[0]['pages'] == 36, again
            verified(folder / 'r')


@test
def lists_and_budgets(folder):
    """Cycles whose dispenser is in PostgreSQL request the list and no more, within the budget, killed or not."""
    with Postgres(folder) as postgres:
        hosts, sites = web(3, 12)
        with Server(sites) as server:
            shared = ['--dispenser', postgres.url]
            crawl(folder / 'r', server, *[server.url(h) for h in hosts], '--delay', 0, *shared)
            call(folder / 'r', 'update', *shared)
            sites[hosts[0]]['/1'] = page('/new', '/2', text='changed')
            sites[hosts[0]]['/new'] = page(text='new')
            call(folder / 'r', 'push', '-', input=server.url(hosts[0], '/1').encode())
            call(folder / 'r', 'update', *shared)
            assert ask(folder / 'r', 'generate', '--budget', 1, *shared)[-1]['urls'] == 1
            begin = len(server.requests)
            crawl(folder / 'r', server, '--delay', 0, *shared)
            assert [(r.host, r.path) for r in server.requests[begin:]
                    if r.path != '/robots.txt'] == [(hosts[0], '/1'), (hosts[0], '/new')]
            begin = len(server.requests)
            cycle = command(folder / 'r', 'run', '--cycles', '1', '--budget', '9', '--allow-private', '--user-agent',
                            AGENT, '--processes', '2',
                            *server.resolve(), *shared)
            p = spawn([*cycle, '--delay', '0.15'])
            until(lambda: len(server.requests) > begin + 4)
            kill_all(p)
            subprocess.run([*cycle, '--delay', '0'], check=True, capture_output=True, timeout=PATIENCE)
            pages = [(r.host, r.path) for r in server.requests[begin:] if r.path != '/robots.txt']
            # a request that was about to be sent when the crawl was killed counts as used
            assert 7 <= len(pages) <= 9, pages
            verified(folder / 'r')


@test
def the_server_goes_away_and_comes_back(folder):
    """If it is away for a moment, nothing happens. If it is away for longer, the crawl says so and ends with 1; it can
    be continued later."""
    with Postgres(folder) as postgres:
        hosts, sites = web(3, 9)
        with Server(sites) as server:
            args = [*[server.url(h) for h in hosts], '--delay', DELAY, '--processes', 2, '--dispenser', postgres.url]
            p = start(folder / 'r', server, *args, stderr=subprocess.PIPE)
            until(lambda: len(server.requests) > 5)
            postgres.go_away()
            time.sleep(1.2)
            postgres.come_back()
            time.sleep(0.5)
            assert p.poll() is None, p.stderr.read()
            postgres.go_away()
            assert p.wait(PATIENCE) == 1
            words = p.stderr.read().decode()
            assert words.startswith('webbase: ') and 'webbase@' not in words, words
            verified(folder / 'r')
            postgres.come_back()
            crawl(folder / 'r', server, *args)
            server.expect_gaps(DELAY)
            assert ask(folder / 'r', 'stat')[0]['pages'] == 27
            again = {k: n for k, n in server.counts.items() if n > 1 and k[1] != '/robots.txt'}
            assert len(again) <= 6, again
            refused(folder / 'none', 'PostgreSQL', 'crawl', server.url(hosts[0]), '--dispenser',
                    'postgres://webbase@/postgres?host=/nonexistent', one_line=False)


@test
def the_repository_remembers_its_dispenser(folder):
    """The option is given once to crawl, and all other commands use it. Only the owner can read the file, and no
    password is shown."""
    web = {'a.test': {'/': page('/b'), '/b': page(text='b')}}
    repo = folder / 'r'
    with Postgres(folder) as postgres, Server(web) as server:
        url = postgres.url.replace('webbase@', 'webbase:secret@')
        crawl(repo, server, server.url('a.test'), '--delay', 0, '--dispenser', url)
        assert not (repo / 'dispenser.db').exists()
        remembered = repo / 'dispenser.url'
        assert remembered.stat().st_mode & 0o777 == 0o600
        shown = json.loads(call(repo, 'stat', '--json').stdout)['dispenser']
        assert shown.startswith('postgres://webbase:***@') and 'secret' not in shown, shown
        assert b'secret' not in call(repo, 'stat').stdout
        why = json.loads(call(repo, 'why', server.url('a.test', '/b'), '--json').stdout)
        assert why['verdict'] == 'fetched', why
        call(repo, 'update')
        call(repo, 'generate', '--budget', 5)
        call(repo, 'expunge')
        assert fetches(crawl(repo, server, server.url('a.test'), '--delay', 0))
        assert not (repo / 'dispenser.db').exists()
        verified(repo)
        # Damage is reported, and another crawl with the option repairs it.
        text = bytearray(remembered.read_bytes())
        text[30] ^= 1
        remembered.write_bytes(text)
        assert b'dispenser.url' in call(repo, 'why', server.url('a.test', '/b'), status=1).stderr
        assert b'dispenser.url' in call(repo, 'verify', status=1).stdout
        crawl(repo, server, server.url('a.test'), '--delay', 0, '--dispenser', url)
        verified(repo)
        # Back to SQLite: the sites in PostgreSQL stay there, and a message says so.
        crawl(repo, server, server.url('a.test'), '--delay', 0, '--dispenser', 'sqlite')
        assert 'sites stay in the one before' in crawl.words and 'secret' not in crawl.words, crawl.words
        assert not remembered.exists() and (repo / 'dispenser.db').exists()
        assert json.loads(call(repo, 'stat', '--json').stdout)['dispenser'] == 'sqlite'


run_together()
