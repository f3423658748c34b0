#!/usr/bin/env python3
"""`run`: cycle after cycle, from seeds, within a budget, killed at any point, alone, on time, on a full disk; and what
`stat` says about it."""
import contextlib, fcntl, signal, time

from e2e import *
from crawlserver import *
from websim import seconds_of


def start_run(repo, server, *args, **kw):
    return spawn(run_command(repo, server, *args), **kw)


def cycles(events):
    return [e for e in events if e.get('event') == 'cycle']


def asked(server, since=0):
    return [r.path for r in server.requests if r.time >= since and r.path != '/robots.txt']


# ---- going around -------------------------------------------------------------------------------------------

@test
def from_seeds_to_refreshes(folder):
    with Server({'f.test': star(20)}) as server:
        repo, site = folder / 'r', server.sites['f.test']
        events = go(repo, server, server.url('f.test'), '--cycles', 1)
        assert cycles(events)[0]['stored'] == 20 and cycles(events)[0]['cycle'] == 1, events[-2:]
        assert done(events)['cycles'] == 1, events[-2:]
        assert len(asked(server)) == 20, 'a page was requested twice in a cycle'
        site['/3'] = page('/new', text='changed')
        site['/new'] = page('/newer', text='new')
        site['/newer'] = page(text='newer')
        del site['/4']
        said = cycles(go(repo, server, '--cycles', 2))
        assert [s['cycle'] for s in said] == [2, 3] and said[0]['stored'] == 3 and said[0]['gone'] == 1, said
        assert said[0]['expunged'] == 1, said
        for path in ('/3', '/new', '/newer'):
            assert call(repo, 'get', server.url('f.test', path)).stdout == site[path]
        stat = ask(repo, 'stat')[0]
        assert stat['snapshot'] == stat['generation'] == 3 and stat['versions'] == stat['pages'], stat
        assert stat['bytes_dead'] == 0 and stat['unmerged_bytes'] == 0, stat
        assert stat['cycle']['cycle'] == 3 and stat['cycle']['step'] == 'rest' and not stat['cycle']['running'], stat
        assert stat['cycle']['error'] is None, stat
        verified(repo)


@test
def new_seeds_join_a_running_repository(folder):
    with Server({'a.test': star(5, 'a'), 'b.test': star(5, 'b'), 'dead.test': {}}) as server:
        repo = folder / 'r'
        go(repo, server, server.url('a.test'), '--cycles', 1)
        seeds = folder / 'seeds'
        seeds.write_text('# mine\nclass slow delay=0.05\n%s\n%s class=slow\nhttp://nowhere.invalid/\n' %
                         (server.url('a.test'), server.url('b.test')))
        began = time.time()
        said = cycles(go(repo, server, '--seeds', seeds, '--cycles', 1))[0]
        assert said['stored'] == 5 and said['unchanged'] == 5, said
        assert len(asked(server, began)) == 10
        assert len(set((r.host, r.path) for r in server.requests if r.time >= began)) >= 10
        server.expect_gaps(0.05, ['b.test'])


@test
def the_budget_counts_seeds_too(folder):
    with Server({'s.test': star(40)}) as server:
        repo = folder / 'r'
        for n in range(1, 5):
            said = cycles(go(repo, server, server.url('s.test'), '--cycles', 1, '--budget', 10))[0]
            assert said['fetched'] == 10 and len(asked(server)) == 10 * n, (said, len(asked(server)))
        assert ask(repo, 'webdb', 'count')[0]['fetched'] == 40, 'pages that were never fetched must come first'


@test
def a_cycle_with_nothing_to_fetch(folder):
    with Server({'n.test': star(3)}) as server:
        repo = folder / 'r'
        go(repo, server, server.url('n.test'), '--cycles', 1)
        before = len(server.requests)
        said = cycles(go(repo, server, '--cycles', 3, '--min-interval', '1h'))
        assert len(said) == 3 and [s['listed'] for s in said] == [0, 0, 0] and len(server.requests) == before, said


@test
def nothing_to_start_from(folder):
    with Server({'x.test': star(2)}) as server:
        go(folder / 'missing', server, '--cycles', 1, status=1)
        assert 'seeds' in go.words and not (folder / 'missing').exists(), go.words
        call(folder / 'empty', 'init')
        go(folder / 'empty', server, '--cycles', 1, status=1)
        assert 'seeds' in go.words and not (folder / 'empty' / 'cycle').exists(), go.words
        for words in (['--seeds', '-'], ['--budget', '0'], ['--policy', 'random'],
                      ['--min-interval', '2d', '--max-interval', '1d'], ['--every', 'x']):
            refused(folder / 'empty', words[0], 'run', *words, status=2, one_line=False)


@test
def an_archive_is_enough_to_start_from(folder):
    archive(folder / 'a.warc', some_pages(rng('archive'), 5))
    call(folder / 'r', 'import', folder / 'a.warc')
    with Server({'x.test': star(2)}) as server:
        said = cycles(go(folder / 'r', server, '--cycles', 1))[0]
        assert said['listed'] == 0 and ask(folder / 'r', 'webdb', 'count')[0]['fetched'] == 5, said


# ---- time and signals ---------------------------------------------------------------------------------------------

@test
def every_counts_from_start_to_start(folder):
    with Server({'e.test': star(4)}) as server:
        said = cycles(go(folder / 'r', server, server.url('e.test'), '--cycles', 3, '--every', '1.2s'))
        times = [seconds_of(s['began']) for s in said]
        for a, b in zip(times, times[1:]):
            assert b - a >= 1.19, times


@test
def a_signal_ends_the_rest_between_cycles(folder):
    with Server({'r.test': star(4)}) as server:
        p = start_run(folder / 'r', server, server.url('r.test'), '--every', '1h', stderr=subprocess.PIPE)
        until(lambda: (folder / 'r' / 'cycle').exists() and ask(folder / 'r', 'stat')[0]['cycle']['step'] == 'rest')
        stat = ask(folder / 'r', 'stat')[0]['cycle']
        assert stat['running'] and stat['next'] > stat['began'], stat
        assert b'rests until' in call(folder / 'r', 'stat').stdout, stat
        p.send_signal(signal.SIGTERM)
        assert p.wait(PATIENCE) == 1, p.stderr.read()     # it does not wait for an hour
        assert not ask(folder / 'r', 'stat')[0]['cycle']['running']


@test
def a_signal_in_a_crawl_loses_nothing(folder):
    with Server({'c.test': star(30)}) as server:
        repo = folder / 'r'
        go(repo, server, server.url('c.test'), '--cycles', 1)
        began = time.time()
        server.latency = lambda: 0.1     # so that the crawl is not over before `stat` has answered
        p = start_run(repo, server, '--cycles', 1)
        until(lambda: len(asked(server, began)) > 5)
        stat = ask(repo, 'stat')[0]['cycle']
        assert stat['running'] and stat['step'] == 'crawl' and stat['listed'] == 30, stat
        p.send_signal(signal.SIGINT)
        assert p.wait(PATIENCE) == 1
        assert ask(repo, 'stat')[0]['cycle']['step'] == 'crawl' and b'continues there' in call(repo, 'stat').stdout
        said = cycles(go(repo, server, '--cycles', 1))
        assert [s['cycle'] for s in said] == [2] and said[0]['fetched'] == 30, said
        assert sorted(asked(server, began)) == sorted(server.sites['c.test']), \
            'a page was requested twice, or not at all'


@test
def one_run_at_a_time(folder):
    with Server({'o.test': star(4)}) as server:
        p = start_run(folder / 'r', server, server.url('o.test'), '--every', '1h')
        until(lambda: (folder / 'r' / 'cycle').exists())
        go(folder / 'r', server, '--cycles', 1, status=1)
        assert 'another run' in go.words, go.words
        kill_all(p)
        go(folder / 'r', server, '--cycles', 1)


def prose(random_, words):
    letters = 'abcdefghijklmnopqrstuvwxyz'
    return ' '.join(''.join(random_.choices(letters, k=random_.randrange(3, 9))) for _ in range(words))


@test
def one_page_of_a_family_is_visited_often(folder):
    """Near duplicates name the first of their family. Cycles with a budget for all pages visit that one, and the others
    only once a week."""
    random_, clock = rng('family'), Clock(folder)
    text = prose(random_, 2000)
    site = {'/near%d' % n: page('/', text='%s %s' % (text, prose(random_, 1))) for n in range(5)}
    site.update({'/apart%d' % n: page('/', text=prose(random_, 500)) for n in range(3)})
    # Texts that are too short to count as near duplicates.
    site.update({'/tiny%d' % n: page('/', text='nothing here', title='%d' % n) for n in range(2)})
    with Server({'n.test': {'/': page(*site), **site}}) as server:
        repo = folder / 'r'
        go(repo, server, server.url('n.test'), '--cycles', 1, env=clock.env())
        rows = {p: ask(repo, 'webdb', 'page', server.url('n.test', p))[0] for p in sorted(['/', *site])}
        near, hashes = {p: r['near'] for p, r in rows.items()}, {p: int(r['simhash'], 16) for p, r in rows.items()}
        family = [p for p in near if p.startswith('/near')]
        for at, p in enumerate(family):
            first = [q for q in family[:at] if (hashes[p] ^ hashes[q]).bit_count() <= 3]
            assert near[p] == (server.url('n.test', first[0]) if first else None), (p, near, hashes)
        assert sum(n is not None for n in near.values()) >= 2, near
        assert not any(n for p, n in near.items() if p not in family), near
        listed = {p['url']: p['near'] for p in ask(repo, 'webdb', 'pages')}
        assert listed == {server.url('n.test', p): n for p, n in near.items()}, listed
        for day in range(3):
            clock.forward(86400)
            go(repo, server, '--cycles', 1, '--budget', 100, env=clock.env())
        count = {p: server.paths('n.test').count(p) for p in near}
        assert count == {p: 4 if near[p] is None else 1 for p in near}, count
        clock.forward(5 * 86400)
        go(repo, server, '--cycles', 1, '--budget', 100, env=clock.env())
        assert all(server.paths('n.test').count(p) == 2 for p in near if near[p]), server.paths('n.test')
        verified(repo)


# ---- at the same time as other commands ----------------------------------------------------------

@contextlib.contextmanager
def held(path):
    """Holds the lock of a command, as if somebody else were running it."""
    path.parent.mkdir(exist_ok=True)
    with open(path, 'ab') as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


@test
def a_run_waits_for_an_update_by_somebody_else(folder):
    with Server({'u.test': star(5)}) as server:
        repo = folder / 'r'
        go(repo, server, server.url('u.test'), '--cycles', 1)
        server.sites['u.test']['/1'] = page('/', text='changed')
        with held(repo / 'webdb' / 'lock'):
            p = start_run(repo, server, '--cycles', 1, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
            until(lambda: p.poll() is not None or 'another update' in str(ask(repo, 'stat')[0]['cycle']['error']))
            assert p.poll() is None and ask(repo, 'stat')[0]['cycle']['running'], p.stderr.read()
        out, err = p.communicate(timeout=PATIENCE)
        assert p.returncode == 0 and cycles(lines(out))[0]['stored'] == 1, (out, err)
        assert b'waiting' in err and b'another update' in err and cycles(lines(out))[0]['error'] is None, err


@test
def a_run_skips_compaction_while_somebody_else_compacts(folder):
    with Server({'c.test': star(5)}) as server:
        repo = folder / 'r'
        go(repo, server, server.url('c.test'), '--cycles', 1)
        with held(repo / 'compact.lock'):
            said = cycles(go(repo, server, '--cycles', 2))
        assert [s['cycle'] for s in said] == [2, 3], (said, go.words)
        assert go.words.count('compact is left out of cycle') == 2, (said, go.words)


@test
def an_endless_run_survives_a_step_that_fails(folder):
    with Server({'e.test': star(5)}) as server:
        repo = folder / 'r'
        go(repo, server, server.url('e.test'), '--cycles', 1)
        (repo / 'thresholds').unlink()
        (repo / 'thresholds').mkdir()
        go(repo, server, '--cycles', 1, status=1)
        out, err = folder / 'out', folder / 'err'
        with open(out, 'wb') as o, open(err, 'wb') as e:
            p = start_run(repo, server, '--every', '1h', stdout=o, stderr=e)
        until(lambda: p.poll() is not None or 'done again in 10 s' in err.read_text())
        assert p.poll() is None and 'thresholds' in err.read_text(), err.read_text()
        assert 'thresholds' in ask(repo, 'stat')[0]['cycle']['error']
        (repo / 'thresholds').rmdir()
        until(lambda: p.poll() is not None or cycles(lines(out.read_bytes())))
        assert p.poll() is None and ask(repo, 'stat')[0]['cycle']['step'] == 'rest'
        assert ask(repo, 'stat')[0]['cycle']['error'] is None
        p.send_signal(signal.SIGTERM)
        p.wait(PATIENCE)
        assert len(cycles(lines(out.read_bytes()))) == 1, err.read_text()


# ---- killed ---------------------------------------------------------------------------------------------------------

@test
def killed_in_every_step(folder):
    """kill -9 at random moments, many times. In the end the pages are those of the web, no cycle is counted twice, and
    nothing is damaged."""
    random_ = rng('killed')
    with Server({'k%d.test' % n: star(25, 'k%d' % n) for n in range(2)}, latency=lambda: 0.002) as server:
        repo, seen = folder / 'r', set()
        seeds = [server.url(h) for h in server.sites]
        for attempt in range(14):
            p = start_run(repo, server, *seeds, '--budget', 40)
            time.sleep(random_.uniform(0.02, 0.5))
            kill_all(p)
            if (repo / 'cycle').exists():
                seen.add(ask(repo, 'stat')[0]['cycle']['step'])
                # Its crawlers are killed too, but may take a moment longer.
                until(lambda: not ask(repo, 'stat')[0]['cycle']['running'])
            host = random_.choice(list(server.sites))
            server.sites[host]['/%d' % random_.randrange(1, 25)] = page('/', text='changed %d' % attempt)
        before = ask(repo, 'stat')[0]['cycle']
        said = cycles(go(repo, server, *seeds, '--cycles', 3, '--budget', 60))
        unfinished = before['step'] != 'rest'
        assert [s['cycle'] for s in said] == [before['cycle'] + n + (not unfinished) for n in range(3)], (before, said)
        verified(repo)
        for host, site in server.sites.items():
            for path, body in site.items():
                assert call(repo, 'get', server.url(host, path)).stdout == body, (host, path)
        count = ask(repo, 'webdb', 'count')[0]
        assert count['fetched'] == count['pages'] == 50, count
        # The newest edition, and perhaps the one before, which the last generation held until a moment ago.
        assert len(list((repo / 'webdb').glob('0*'))) <= 2 and not list((repo / 'webdb').glob('new-*'))
        assert len(list((repo / 'index').glob('0*'))) == 1 and not list((repo / 'index').glob('new-*'))


@test
def a_parent_that_is_killed_alone(folder):
    with Server({'p.test': star(40)}, latency=lambda: 0.02) as server:
        repo = folder / 'r'
        go(repo, server, server.url('p.test'), '--cycles', 1)
        began = time.time()
        p = start_run(repo, server, '--cycles', 1)
        until(lambda: len(asked(server, began)) > 3)
        kill(p.pid)
        p.wait()
        assert len(cycles(go(repo, server, '--cycles', 1))) == 1


@test
def a_damaged_state_is_started_again(folder):
    with Server({'d.test': star(4)}) as server:
        repo = folder / 'r'
        go(repo, server, server.url('d.test'), '--cycles', 2)
        text = (repo / 'cycle').read_bytes()
        (repo / 'cycle').write_bytes(text.replace(b'cycle 2', b'cycle 7'))
        assert ask(repo, 'verify', status=1)[0]['ok'] is False
        said = cycles(go(repo, server, '--cycles', 1))
        assert [s['cycle'] for s in said] == [1] and 'cycle is damaged' in go.words, (said, go.words)
        verified(repo)
        (repo / 'cycle').write_bytes(b'webbase cycle 9\nfrom the future\n')
        go(repo, server, '--cycles', 1, status=1)
        assert 'has format 9; this program reads format 1' in go.words, go.words


@test
def a_full_disk_is_reported_and_the_run_can_be_continued(folder):
    random_ = rng('full')
    with small_disk(folder / 'disk', '16m') as disk:
        site = {'/%d' % n: Reply(b'%d ' % n + random_.randbytes(100000), type='application/octet-stream')
                for n in range(200)}
        with Server({'h.test': {'/': page(*site), **site}}) as server:
            repo = disk / 'r'
            go(repo, server, server.url('h.test'), '--cycles', 1, '--budget', 30)
            go(repo, server, '--cycles', 1, status=1)
            assert 'space' in go.words.lower(), go.words
            remount(disk, 'size=200m')
            stat = ask(repo, 'stat')[0]['cycle']
            assert stat['cycle'] == 2 and not stat['running'] and stat['step'] != 'rest', stat
            said = cycles(go(repo, server, '--cycles', 1))
            assert [s['cycle'] for s in said] == [2], said
            assert ask(repo, 'stat')[0]['pages'] == 201
            verified(repo)


# ---- step by step --------------------------------------------------------------------------------

@test
def each_step_is_a_command(folder):
    with Server({'m.test': star(20)}) as server:
        repo = folder / 'r'
        crawl(repo, server, server.url('m.test'), '--delay', 0)
        call(repo, 'update')
        began = time.time()
        listed = done(ask(repo, 'generate', '--budget', 7, '--policy', 'uniform'))
        assert listed['urls'] == 7 and listed['due'] == 7 and listed['known'] == 20 and listed['theta'] > 0, listed
        again = done(ask(repo, 'generate', '--budget', 7, '--policy', 'uniform'))
        assert again['urls'] == 7
        crawl(repo, server, '--delay', 0)
        assert len(asked(server, began)) == 7
        done(ask(repo, 'update'))
        assert len([p for p in ask(repo, 'webdb', 'pages') if p['visits'] == 1]) == 7
        assert b'7 URLs of 1 site listed' in call(repo, 'generate', '--budget', '7').stdout


def ranked_site():
    """/low has three links, from pages with many; /high only one, from a page with few, so its rank is higher."""
    site = {'/': page('/hub', '/a', '/b', '/c'), '/hub': page('/', '/high'), '/low': page(), '/high': page()}
    for name in ('/a', '/b', '/c'):
        site[name] = page('/', '/low', *('%s%d' % (name, i) for i in range(20)))
    return site


@test
def pages_of_high_rank_are_fetched_first(folder):
    with Server({'r.test': ranked_site()}) as server:
        repo = folder / 'r'

        def first_choice():
            began = time.time()
            assert done(ask(repo, 'generate', '--budget', 1))['fresh'] == 1
            crawl(repo, server, '--delay', 0)
            return asked(server, began)

        crawl(repo, server, server.url('r.test'), '--delay', 0, '--max-depth', 1)
        assert sorted(asked(server)) == ['/', '/a', '/b', '/c', '/hub']
        call(repo, 'update')
        shutil.copytree(repo, folder / 'copy')
        assert first_choice() == ['/low']
        # The same with an index, which knows the ranks: of this edition, and of an older one.
        for older in (False, True):
            repo = folder / ('older' if older else 'newest')
            shutil.copytree(folder / 'copy', repo)
            call(repo, 'index')
            if older:
                call(repo, 'import', archive(folder / 'more.warc', [Page('http://q.test/', b'new'),
                                                                    Page('http://s.test/', b'new')]))
                call(repo, 'update')
                stat = ask(repo, 'stat')[-1]
                assert ask(repo, 'search', 'status:200', '--limit', 99)[-1]['total'] == 5 and stat['edition'] > 1
            assert first_choice() == ['/high'], older
        # An index that is damaged is reported, and the crawl goes on without it.
        repo = folder / 'damaged'
        shutil.copytree(folder / 'copy', repo)
        call(repo, 'index')
        ranks = list((repo / 'index').rglob('rank.wbc'))
        assert len(ranks) == 1
        ranks[0].write_bytes(b'?' * ranks[0].stat().st_size)
        said = call(repo, 'generate', '--budget', 1).stderr.decode()
        assert 'without their PageRank' in said and 'rank.wbc' in said, said
        began = time.time()
        crawl(repo, server, '--delay', 0)
        assert asked(server, began) == ['/low']


@test
def classes_have_their_own_budgets(folder):
    with Server({'news.test': star(20, 'news'), 'rest.test': star(20, 'rest')}) as server:
        repo, seeds = folder / 'r', folder / 'seeds'
        seeds.write_text('class news fetches=3 max=1d\n%s class=news\n%s\n' %
                         (server.url('news.test'), server.url('rest.test')))
        go(repo, server, '--seeds', seeds, '--cycles', 1)
        began = time.time()
        said = cycles(go(repo, server, '--seeds', seeds, '--cycles', 1, '--budget', 10))[0]
        assert said['fetched'] == 10, said
        hosts = [r.host for r in server.requests if r.time >= began and r.path != '/robots.txt']
        assert hosts.count('news.test') == 3 and hosts.count('rest.test') == 7, hosts


@contextlib.contextmanager
def postgres():
    p = subprocess.Popen([ROOT / 'tests' / 'postgres'], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                         stderr=subprocess.PIPE)
    url = p.stdout.readline().decode().strip()
    try:
        assert url, p.stderr.read()
        yield url
    finally:
        p.stdin.close()
        p.wait(PATIENCE)


@test
def sites_in_postgres(folder):
    with Server({'g.test': star(12)}) as server, postgres() as url:
        repo, there = folder / 'r', ['--dispenser', url]
        go(repo, server, server.url('g.test'), '--cycles', 1, '--budget', 5, *there)
        server.sites['g.test']['/2'] = Reply('gone', 410)
        said = cycles(go(repo, server, '--cycles', 2, *there))
        assert sum(s['expunged'] for s in said) <= 1 and said[1]['fetched'] >= 10, said
        assert not (repo / 'dispenser.db').exists()
        assert done(ask(repo, 'generate', '--budget', 3, *there))['urls'] == 3
        crawl(repo, server, '--delay', 0, *there)
        call(repo, 'update', *there)
        assert done(ask(repo, 'expunge', 'g.test:%d' % server.port, *there))['pages'] == 11
        assert done(ask(repo, 'generate', *there))['urls'] == 0
        verified(repo)


run_together(6)
