#!/usr/bin/env python3
"""Fetch lists: a listed visit requests its list and URLs that were unknown, within its budget, however often it is
killed. When the journal's logs are gone, webdb knows enough for everything else."""
import os, signal, time

from e2e import *
from crawlserver import *


def push(repo, *urls):
    call(repo, 'push', '-', input=''.join(u + '\n' for u in urls).encode())


def make_list(repo, *urls, **kw):
    """Makes these URLs, and no others, the next to be fetched."""
    push(repo, *urls)
    call(repo, 'update')
    listed = ask(repo, 'generate', '--budget', len(urls), **kw)[-1]
    assert listed['urls'] == len(urls), listed


def asked_since(server, began, kills=()):
    """Pages that were requested since a moment. A page that was under way when a process was killed counts once."""
    last, found = {}, []
    for r in server.requests:
        if r.time >= began and r.path != '/robots.txt':
            before = last.get((r.host, r.path))
            if not before or not server.unsettled(before, kills):
                found.append(r.host + r.path)
            last[r.host, r.path] = r
    return sorted(found)


def start_cycle(repo, server, *args):
    return spawn(command(repo, 'run', '--cycles', '1', '--allow-private', '--user-agent', AGENT, *server.resolve(),
                         *args))


def first_crawl(folder, server, *args, hosts=None):
    crawl(folder / 'r', server, *[server.url(h) for h in hosts or server.sites], '--delay', 0, *args)
    call(folder / 'r', 'update')
    time.sleep(0.01)
    return folder / 'r', time.time()


def logs(repo):
    return sorted(p.name for p in (repo / 'journal').iterdir())


# ---- what is requested -------------------------------------------------------------------------

@test
def the_list_and_new_links_and_nothing_else(folder):
    with Server({'l.test': star(12)}) as server:
        repo, began = first_crawl(folder, server)
        site = server.sites['l.test']
        site['/3'] = page('/new', '/4', '/5', '/', text='changed')
        site['/new'] = page('/newer', '/6', '/moved', text='new')
        site['/newer'] = page(text='newer')
        site['/moved'] = redirect('/7')
        site['/pushed'] = page('/8', text='pushed')
        make_list(repo, server.url('l.test', '/pushed'), server.url('l.test', '/3'), server.url('l.test', '/9'))
        events = crawl(repo, server, '--delay', 0)
        assert asked_since(server,
                           began) == ['l.test' + p
                                      for p in ('/3', '/9', '/moved', '/new', '/newer',
                                                '/pushed')], asked_since(server, began)
        got = results(events)
        assert got[server.url('l.test', '/9')] == 'unchanged' and got[server.url('l.test', '/3')] == 'stored', got
        # The list is finished: there is nothing to continue.
        assert b'no unfinished' in call(repo, 'crawl', status=1).stderr
        call(repo, 'update')
        assert ask(repo, 'webdb', 'page', server.url('l.test', '/newer'))[0]['depth'] == 3


@test
def the_order_is_that_of_the_list(folder):
    with Server({'o.test': star(9)}) as server:
        repo, began = first_crawl(folder, server)
        call(repo, 'generate', '--budget', 6)
        crawl(repo, server, '--delay', 0, '--processes', 1)
        assert len(asked_since(server, began)) == 6


@test
def redirects_and_links_to_other_sites(folder):
    """A link to another site in scope fetches what is new there, and only that."""
    with Server({'a.dom.test': star(5, 'a'), 'b.dom.test': star(5, 'b')}) as server:
        repo, began = first_crawl(folder, server, '--scope', 'domain')
        server.sites['a.dom.test']['/2'] = page(server.url('b.dom.test', '/3'), server.url('b.dom.test', '/new'),
                                                '/new', text='changed')
        server.sites['b.dom.test']['/new'] = page('/4', '/newer', text='new')
        server.sites['b.dom.test']['/newer'] = page(text='newer')
        server.sites['a.dom.test']['/new'] = redirect(server.url('b.dom.test', '/2'))
        push(repo, server.url('a.dom.test', '/2'))
        cycle(repo, server, '--scope', 'domain', '--budget', 20, '--policy', 'uniform', '--min-interval', '1d')
        assert asked_since(server, began) == ['a.dom.test/2', 'a.dom.test/new', 'b.dom.test/new', 'b.dom.test/newer'], \
            asked_since(server, began)


@test
def names_of_one_address_are_not_probed_again(folder):
    with Server({'p1.test': star(4, 'one'), 'p2.test': star(4, 'two')},
                addresses={'p1.test': '127.0.1.9', 'p2.test': '127.0.1.9'}) as server:
        repo, began = first_crawl(folder, server)
        make_list(repo, server.url('p1.test', '/2'), server.url('p2.test', '/3'))
        crawl(repo, server, '--delay', 0)
        assert asked_since(server, began) == ['p1.test/2', 'p2.test/3'], asked_since(server, began)


@test
def sitemaps_once_a_day(folder):
    clock = Clock(folder)
    with Server({'m.test': star(6)}) as server:
        site = server.sites['m.test']
        site['/robots.txt'] = Reply('User-agent: *\nSitemap: %s\n' % server.url('m.test', '/map.xml'),
                                    type='text/plain')
        told = ['/1', '/2']
        site['/map.xml'] = lambda r: Reply('<urlset>%s</urlset>' %
                                           ''.join('<url><loc>%s</loc></url>' % server.url('m.test', p) for p in told),
                                           type='text/xml')
        crawl(folder / 'r', server, server.url('m.test'), '--delay', 0, env=clock.env())
        call(folder / 'r', 'update', env=clock.env())
        assert server.counts['m.test', '/map.xml'] == 1
        told.append('/hidden')
        site['/hidden'] = page(text='hidden')
        for n in range(3):
            make_list(folder / 'r', server.url('m.test', '/%d' % (n + 1)), env=clock.env())
            crawl(folder / 'r', server, '--delay', 0, env=clock.env())
            clock.forward(3 * 3600)
        assert server.counts['m.test', '/map.xml'] == 1 and server.counts['m.test', '/hidden'] == 0
        clock.forward(24 * 3600)
        make_list(folder / 'r', server.url('m.test', '/4'), env=clock.env())
        began = time.time()
        crawl(folder / 'r', server, '--delay', 0, env=clock.env())
        assert asked_since(server, began) == ['m.test/4', 'm.test/hidden', 'm.test/map.xml'], asked_since(server, began)
        # A crawl from seeds requests them as usual.
        crawl(folder / 'r', server, server.url('m.test'), '--delay', 0, env=clock.env())
        assert server.counts['m.test', '/map.xml'] == 3


# ---- budgets ------------------------------------------------------------------------------------------

@test
def a_budget_is_never_exceeded(folder):
    for processes in (1, 2):
        with Server({'b%d.test' % n: star(20, 'b%d' % n) for n in range(4)}, latency=lambda: 0.003) as server:
            for host in server.sites:
                server.sites[host]['/robots.txt'] = Reply('User-agent: *\nSitemap: %s\n' % server.url(host, '/map.xml'),
                                                          type='text/plain')
                server.sites[host]['/map.xml'] = Reply('<urlset/>', type='text/xml')
            repo = folder / str(processes)
            for url in [server.url(h) for h in server.sites]:
                crawl(repo, server, url, '--delay', 0)
            call(repo, 'update')
            for budget in (1, 7, 30):
                began = time.time()
                events = cycle(repo, server, '--budget', budget, '--processes', processes)
                pages = [p for p in asked_since(server, began) if not p.endswith('.xml')]
                assert len(pages) == budget, (budget, processes, pages)
                assert [e['fetched'] for e in events if e.get('event') == 'cycle'] == [budget], \
                    [e for e in events if e.get('event') == 'cycle']


@test
def slow_responses_are_awaited_when_the_budget_is_used_up(folder):
    with Server({'w.test': star(8)}) as server:
        repo, began = first_crawl(folder, server)
        for n in range(1, 8):
            server.sites['w.test']['/%d' % n] = Reply(page(text='slow %d' % n), wait=1.5)
        push(repo, server.url('w.test', '/1'))
        events = cycle(repo, server, '--budget', 1)
        assert asked_since(server, began) == ['w.test/1'], events
        assert results(events)[server.url('w.test', '/1')] == 'stored', events


@test
def killed_in_the_middle_it_requests_nothing_twice(folder):
    with Server({'k%d.test' % n: star(12, 'k%d' % n) for n in range(2)}) as server:
        repo, began = first_crawl(folder, server)
        args, kills = ['--budget', 16, '--delay', 0.2, '--processes', 2], []
        for _ in range(3):
            before = len(server.requests)
            p = start_cycle(repo, server, *args)
            until(lambda: len(server.requests) >= before + 3)
            kills.append(time.time())
            kill_all(p)
        ended = time.time()
        cycle(repo, server, '--budget', 16, '--processes', 2)
        pages = asked_since(server, began, kills)
        assert len(set(pages)) == len(pages) and 16 - len(kills) * len(server.sites) <= len(pages) <= 16, pages
        for host in server.sites:
            seen = [r for r in server.requests if r.host == host and began < r.time < ended]
            assert all(b.time - a.earliest > 0.18 for a, b in zip(seen, seen[1:])), seen


@test
def killed_at_any_moment_the_budget_holds(folder):
    random_ = rng('budget')
    with Server({'q%d.test' % n: star(30, 'q%d' % n) for n in range(3)}, latency=lambda: 0.005) as server:
        repo, began = first_crawl(folder, server)
        for kills in range(4):
            p = start_cycle(repo, server, '--budget', 50, '--delay', 0, '--processes', 2)
            time.sleep(random_.uniform(0.05, 0.35))
            kill_all(p)
        cycle(repo, server, '--budget', 50, '--processes', 2)
        verified(repo)
        # If a kill came at the end of a cycle, the next cycle had its own budget.
        cycles, pages = ask(repo, 'stat')[0]['cycle']['cycle'], asked_since(server, began)
        assert len(pages) <= 50 * cycles, (len(pages), cycles)


# ---- one list after another ---------------------------------------------------------------------------------

@test
def the_next_list_supersedes_a_visit(folder):
    with Server({'s.test': star(20)}) as server:
        repo, began = first_crawl(folder, server)
        for n in range(1, 20):
            server.sites['s.test']['/%d' % n] = page('/fresh%d' % n, text='again %d' % n)
            server.sites['s.test']['/fresh%d' % n] = page(text='fresh %d' % n)
            server.sites['s.test']['/pushed%d' % n] = page('/found%d' % n, text='pushed %d' % n)
            server.sites['s.test']['/found%d' % n] = page(text='found %d' % n)
        assert ask(repo, 'generate', '--budget', 8)[-1]['urls'] == 8
        crawl(repo, server, '--delay', 0, '--max-pages', 3)
        first = asked_since(server, began)
        assert len(first) >= 3, first
        began = time.time()
        make_list(repo, server.url('s.test', '/pushed1'), server.url('s.test', '/pushed2'))
        crawl(repo, server, '--delay', 0)
        # What the first list left undone stays undone, and so do the pages it linked to, because webdb knows them.
        assert asked_since(server, began) == ['s.test' + p for p in ('/found1', '/found2', '/pushed1', '/pushed2')], \
            asked_since(server, began)


@test
def a_killed_visit_is_superseded_too(folder):
    with Server({'d.test': star(20)}) as server:
        repo, began = first_crawl(folder, server)
        assert ask(repo, 'generate', '--budget', 11)[-1]['urls'] == 11
        p = start(repo, server, '--delay', 0.2, '--processes', 1)
        until(lambda: len(asked_since(server, began)) >= 3)
        kill_all(p)
        began = time.time()
        server.sites['d.test']['/pushed'] = page(text='pushed')
        make_list(repo, server.url('d.test', '/pushed'))
        crawl(repo, server, '--delay', 0)
        assert asked_since(server, began) == ['d.test/pushed'], asked_since(server, began)


@test
def a_crawl_from_seeds_after_lists_requests_everything(folder):
    """Even after an unfinished list, the whole site is visited, including what webdb knows about it."""
    with Server({'e.test': star(10, links=['/island'])}) as server:
        server.sites['e.test']['/island'] = page(text='island')
        repo, began = first_crawl(folder, server)
        server.sites['e.test']['/'] = star(10)['/']
        for n in range(1, 5):
            server.sites['e.test']['/%d' % n] = page(text='changed %d' % n)
        make_list(repo, *[server.url('e.test', '/%d' % n) for n in range(1, 5)])
        crawl(repo, server, '--delay', 0, '--max-pages', 2, '--processes', 1)
        assert len(asked_since(server, began)) == 2
        began = time.time()
        # If it is killed, it also continues the visit that it started.
        p = start(repo, server, server.url('e.test'), '--delay', 0.1, '--processes', 1)
        until(lambda: len(asked_since(server, began)) > 3)
        killed = time.time()
        kill_all(p)
        crawl(repo, server, server.url('e.test'), '--delay', 0)
        assert asked_since(server, began,
                           [killed]) == sorted('e.test' + p
                                               for p in ['/', '/island'] +
                                               ['/%d' % n for n in range(1, 10)]), asked_since(server, began)


# ---- without the journal -----------------------------------------------------------------------------------------

def prune(repo):
    """Removes the logs that webdb contains, except the newest; here that is the log of an announcement."""
    push(repo, 'http://nobody.test/')
    call(repo, 'update')


@test
def nothing_is_lost_with_the_logs(folder):
    with Server({'j.test': star(10, links=['/island', '/shut']), 'h.test': star(3, 'h')}) as server:
        site = server.sites['j.test']
        site['/island'] = page(text='island')
        site['/robots.txt'] = Reply('User-agent: *\nDisallow: /shut\n', type='text/plain')
        repo, began = first_crawl(folder, server, '--processes', 2)
        before = logs(repo)
        prune(repo)
        assert not set(logs(repo)) & set(before[:-1]) and len(logs(repo)) == 1, (before, logs(repo))
        site['/'] = star(10)['/']
        began = time.time()
        events = crawl(repo, server, server.url('j.test'), '--delay', 0)
        assert 'history' not in crawl.words, crawl.words
        assert asked_since(server,
                           began) == sorted('j.test' + p
                                            for p in ['/', '/island'] +
                                            ['/%d' % n for n in range(1, 10)]), asked_since(server, began)
        assert results(events)[server.url('j.test', '/island')] == 'unchanged'
        # `why` still knows, without the logs.
        prune(repo)
        why = ask(repo, 'why', server.url('j.test', '/shut'), '--user-agent', AGENT)[0]
        assert why['verdict'] == 'blocked' and 'robots.txt' in why['reason'], why
        assert ask(repo, 'why', server.url('h.test', '/1'))[0]['verdict'] == 'fetched'
        verified(repo)


@test
def unfinished_visits_keep_their_logs(folder):
    with Server({'u.test': star(30)}) as server:
        crawl(folder / 'r', server, server.url('u.test'), '--delay', 0, '--max-pages', 9, '--processes', 1)
        kept = logs(folder / 'r')
        prune(folder / 'r')
        assert set(kept) <= set(logs(folder / 'r')), (kept, logs(folder / 'r'))
        # After a kill, its logs are read before any log is removed.
        p = start(folder / 'r', server, server.url('u.test'), '--delay', 0.05, '--processes', 1)
        until(lambda: len(server.pages_asked('u.test')) > 15)
        killed = time.time()
        kill_all(p)
        prune(folder / 'r')
        crawl(folder / 'r', server, server.url('u.test'), '--delay', 0)
        assert asked_since(server, 0, [killed]) == sorted(['u.test/'] + ['u.test/%d' % n for n in range(1, 30)]), \
            server.pages_asked('u.test')
        # The visit is over, so they may be removed.
        prune(folder / 'r')
        prune(folder / 'r')
        assert len(logs(folder / 'r')) == 1, logs(folder / 'r')


@test
def superseded_lists_keep_no_logs(folder):
    """Every cycle leaves another site unfinished; that does not make the journal grow."""
    with Server({'g%d.test' % n: star(3, 'g%d' % n) for n in range(9)}) as server:
        repo, began = first_crawl(folder, server)
        for n, host in enumerate(server.sites):
            server.sites[host]['/1'] = page(*['/n%d' % k for k in range(6)], text='changed')
            push(repo, server.url(host, '/1'))
            cycle(repo, server, '--budget', 1, '--processes', 1)
        assert len(logs(repo)) <= 4, logs(repo)


@test
def updates_while_a_crawl_runs(folder):
    with Server({'r%d.test' % n: star(25, 'r%d' % n) for n in range(2)}) as server:
        p = start(folder / 'r', server, *[server.url(h) for h in server.sites], '--delay', 0.03, '--processes', 2,
                  stderr=subprocess.PIPE)
        until(lambda: len(server.requests) > 6)
        while p.poll() is None:
            prune(folder / 'r')
        assert p.wait() == 0, p.stderr.read()
        assert all(n == 1 for n in server.counts.values()), {k: n for k, n in server.counts.items() if n > 1}
        call(folder / 'r', 'update')
        assert ask(folder / 'r', 'webdb', 'count')[0]['fetched'] == 50
        began = time.time()
        crawl(folder / 'r', server, server.url('r0.test'), '--delay', 0)
        assert len(asked_since(server, began)) == 25


# ---- what is not fetched --------------------------------------------------------------------------------------

@test
def what_was_taken_down_is_not_fetched(folder):
    with Server({'t.test': star(6)}) as server:
        repo, began = first_crawl(folder, server)
        call(repo, 'expunge', server.url('t.test', '/3'))
        call(repo, 'update')
        began = time.time()
        events = crawl(repo, server, server.url('t.test'), '--delay', 0)
        assert 't.test/3' not in asked_since(server, began), asked_since(server, began)
        assert len(asked_since(server, began)) == 5, asked_since(server, began)
        assert results(events)[server.url('t.test', '/3')] == 'expunged', results(events)
        why = ask(repo, 'why', server.url('t.test', '/3'))[0]
        assert why['verdict'] == 'blocked' and 'taken down' in why['reason'], why
        push(repo, server.url('t.test', '/3'))
        cycle(repo, server, '--budget', 3)
        assert server.counts['t.test', '/3'] == 1


@test
def what_robots_txt_forbids_is_recorded_once(folder):
    with Server({'n.test': star(5, links=['/shut/1', '/shut/2'])}) as server:
        server.sites['n.test']['/robots.txt'] = Reply('User-agent: *\nDisallow: /shut\n', type='text/plain')
        for n in range(1, 5):
            server.sites['n.test']['/%d' % n] = page('/shut/1', '/shut/2', text=str(n))
        p = start(folder / 'r', server, server.url('n.test'), '--delay', 0.1, '--processes', 1)
        until(lambda: len(server.requests) > 3)
        kill_all(p)
        events = crawl(folder / 'r', server, server.url('n.test'), '--delay', 0)
        assert len([e for e in fetches(events, 'robots')]) <= 2
        got = ask(folder / 'r', 'why', server.url('n.test', '/shut/1'))[0]
        assert got['verdict'] == 'blocked' and got['robots_line'] == 'Disallow: /shut', got
        call(folder / 'r', 'update')
        facts = ask(folder / 'r', 'webdb', 'page', server.url('n.test', '/shut/1'))[0]
        assert facts['status'] in (0, None), facts
        listed = ask(folder / 'r', 'generate', '--budget', 100)[-1]
        assert listed['blocked'] == 2, listed
        crawl(folder / 'r', server, '--delay', 0)
        assert not [r for r in server.requests if r.path.startswith('/shut')]


@test
def why_explains_what_only_webdb_knows(folder):
    with Server({'y.test': star(6), 'far.test': star(2)}) as server:
        site = server.sites['y.test']
        repo, began = first_crawl(folder, server, hosts=['y.test'])
        site['/2'] = page('/later', server.url('far.test', '/x'), text='changed')
        site['/later'] = page(text='later')
        push(repo, server.url('y.test', '/2'))
        cycle(repo, server, '--budget', 1)
        assert server.counts['y.test', '/later'] == 0
        why = ask(repo, 'why', server.url('y.test', '/later'))[0]
        assert why['verdict'] == 'waiting' and 'queue' in why['reason'], why
        # The next list supersedes that visit; then only webdb knows about the page.
        make_list(repo, server.url('y.test', '/1'))
        crawl(repo, server, '--delay', 0)
        prune(repo)
        prune(repo)
        why = ask(repo, 'why', server.url('y.test', '/later'))[0]
        assert why['verdict'] == 'waiting' and 'never fetched' in why['reason'], why
        why = ask(repo, 'why', server.url('far.test', '/x'))[0]
        assert why['verdict'] == 'blocked' and 'scope' in why['reason'], why
        assert ask(repo, 'why', server.url('y.test', '/nothing'))[0]['verdict'] == 'unknown'
        why = ask(repo, 'why', server.url('y.test', '/1'))[0]
        assert why['verdict'] == 'fetched' and why['next_time'], why


# ---- classes ----------------------------------------------------------------------------------------------------

@test
def new_sites_of_a_seeds_file_join_the_list(folder):
    with Server({'old.test': star(4, 'old'), 'fresh.test': star(5, 'fresh')}) as server:
        repo, began = first_crawl(folder, server, hosts=['old.test'])
        seeds = folder / 'seeds.txt'
        seeds.write_text('class slow delay=0.2 fetches=2 min=1h\n%s class=slow\n' % server.url('fresh.test'))
        push(repo, server.url('old.test', '/2'))
        call(repo, 'update')
        ask(repo, 'generate', '--budget', 1, '--seeds', seeds)
        crawl(repo, server, '--delay', 0)
        assert asked_since(server, began) == sorted(['old.test/2'] + ['fresh.test' + p for p in star(5)]), \
            asked_since(server, began)
        server.expect_gaps(0.2, ['fresh.test'])


run_together()
