#!/usr/bin/env python3
"""webbase control: a running crawl is paused, slowed down at a site, stopped at a site, and asked what it is doing."""
import os, shutil, time

from e2e import *
from crawlserver import *


def endless(name, count=3000):
    """A site with more pages than a test will ever fetch."""
    return {'/': page(*['/%d' % n for n in range(count)], text=name), '*': lambda r: page(text=name + r.path)}


def status(repo, **kw):
    return ask(repo, 'control', 'status', **kw)


def asked(server, host):
    return len(server.paths(host))


def moves(server, hosts, more=5):
    """Waits until each of these hosts got so many more requests."""
    before = {host: asked(server, host) for host in hosts}
    until(lambda: all(asked(server, host) >= before[host] + more for host in hosts))


def quiet(server, host, seconds=1.5):
    """Waits until nothing more arrives at a host, and says whether it stays so for some time."""
    before = asked(server, host)
    time.sleep(seconds)
    return asked(server, host) == before


@test
def a_crawl_is_paused_and_goes_on(folder):
    with Server({'a.test': endless('a'), 'b.test': endless('b')}) as server:
        p = start(folder / 'r', server, *[server.url(h) for h in server.sites], '--delay', 0.05, '--processes', 2)
        moves(server, server.sites)
        call(folder / 'r', 'control', 'pause')
        call(folder / 'r', 'control', 'pause')    # twice is the same as once
        until(lambda: status(folder / 'r')[0]['in_flight'] == 0)
        assert all(quiet(server, host) for host in server.sites)
        assert status(folder / 'r')[0]['paused'] is True and p.poll() is None
        why = ask(folder / 'r', 'why', 'a.test:%d' % server.port)[0]
        assert 'paused' in why['reason'], why
        call(folder / 'r', 'control', 'resume')
        assert status(folder / 'r')[0]['paused'] is False
        moves(server, server.sites)
        server.expect_gaps(0.05)
        kill(p.pid, signal.SIGTERM)
        assert p.wait(PATIENCE) in (0, 1)


@test
def a_paused_crawl_obeys_signals_and_a_later_one_is_not_paused(folder):
    with Server({'a.test': star(30, 'a')}) as server:
        p = start(folder / 'r', server, server.url('a.test'), '--delay', 0.1)
        moves(server, ['a.test'], 3)
        call(folder / 'r', 'control', 'pause')
        kill(p.pid, signal.SIGTERM)
        assert p.wait(PATIENCE) in (0, 1)
        crawl(folder / 'r', server, server.url('a.test'), '--delay', 0)
        assert len(set(server.pages_asked('a.test'))) == 30


@test
def a_site_is_slowed_down_and_never_sped_up(folder):
    rules = lambda r: Reply('User-agent: *\nCrawl-delay: 0.6\n', type='text/plain')
    with Server({'slow.test': endless('slow'), 'fast.test': endless('fast'),
                 'asks.test': {**endless('asks'), '/robots.txt': rules}}) as server:
        p = start(folder / 'r', server, *[server.url(h) for h in server.sites], '--delay', 0.1)
        moves(server, ['slow.test', 'fast.test'])
        call(folder / 'r', 'control', 'delay', 'SLOW.test:%d' % server.port, 1)
        call(folder / 'r', 'control', 'delay', 'fast.test:%d' % server.port, 0)
        call(folder / 'r', 'control', 'delay', 'asks.test:%d' % server.port, '200ms')
        # The order was given; a request may have begun before a worker saw it, and the interval counts from that one.
        time.sleep(0.5)
        count = len(server.requests)
        moves(server, ['slow.test'], 3)
        later = server.requests[count:]
        mine = [r for r in later if r.host == 'slow.test']
        for before, after in zip(mine, mine[1:]):
            assert after.time - before.earliest >= 0.95, (before, after)
        assert len([r for r in later if r.host == 'fast.test']) > len(mine)
        server.expect_gaps(0.1, ['fast.test'])
        pages = [r for r in server.requests if r.host == 'asks.test' and r.path != '/robots.txt']
        for before, after in zip(pages, pages[1:]):
            assert after.time - before.earliest >= 0.57, (before, after)
        s = status(folder / 'r')[0]
        assert {x['site'].split(':')[0]: x['delay'] for x in s['slowed']} == {'slow.test': 1, 'asks.test': 0.2}, s
        why = ask(folder / 'r', 'why', server.url('slow.test', '/2999'))[0]
        assert why['verdict'] == 'waiting' and 'every 1 s' in why['reason'], why
        kill_all(p)


@test
def a_stopped_site_gets_no_more_requests_and_the_next_crawl_continues_it(folder):
    with Server({'one.test': star(60, 'one'), 'two.test': star(60, 'two')}) as server:
        seeds = [server.url(h) for h in server.sites]
        site = 'one.test:%d' % server.port
        p = start(folder / 'r', server, *seeds, '--delay', 0.1, '--processes', 2)
        moves(server, server.sites)
        call(folder / 'r', 'control', 'stop', site)
        until(lambda: 'stopped' in ask(folder / 'r', 'why', site)[0]['reason'])
        before = asked(server, 'one.test')
        assert status(folder / 'r')[0]['stopped'] == [site]
        # The crawl ends when the other site is done: a stopped site does not keep it.
        assert p.wait(PATIENCE) == 0
        assert asked(server, 'one.test') == before < 60
        assert len(set(server.pages_asked('two.test'))) == 60
        crawl(folder / 'r', server, *seeds, '--delay', 0.1)
        assert len(set(server.pages_asked('one.test'))) == 60
        assert len(server.pages_asked('one.test')) == 60, 'a page was asked for twice'
        assert len(server.pages_asked('two.test')) == 60, 'the finished site was crawled again'
        server.expect_gaps(0.1)


@test
def orders_survive_the_death_of_a_worker_but_not_of_the_crawl(folder):
    with Server({'one.test': star(50, 'one'), 'two.test': endless('two')}) as server:
        seeds = [server.url(h) for h in server.sites]
        site = 'one.test:%d' % server.port
        p = start(folder / 'r', server, *seeds, '--delay', 0.1, '--processes', 1)
        moves(server, server.sites)
        call(folder / 'r', 'control', 'stop', site)
        until(lambda: 'stopped' in ask(folder / 'r', 'why', site)[0]['reason'])
        before, worker = asked(server, 'one.test'), workers_of(p)
        kill(worker[0])
        until(lambda: workers_of(p) and workers_of(p) != worker)
        moves(server, ['two.test'])
        assert asked(server, 'one.test') == before
        kill_all(p)
        # The crawl was killed: nobody has said that the site may be crawled again, and yet the next crawl does so.
        refused(folder / 'r', 'no crawl', 'control', 'pause')
        crawl_until(folder / 'r', server, lambda: len(set(server.pages_asked('one.test'))) == 50, *seeds,
                    '--delay', 0.1)
        assert len(set(server.pages_asked('one.test'))) == 50


@test
def two_crawls_on_one_repository_are_both_told(folder):
    with Server({'a.test': endless('a'), 'b.test': endless('b')}) as server:
        repo = folder / 'r'
        one = start(repo, server, server.url('a.test'), '--delay', 0.05)
        until(lambda: asked(server, 'a.test') > 3)
        two = start(repo, server, server.url('b.test'), '--delay', 0.05)
        until(lambda: asked(server, 'b.test') > 3)
        assert {s['pid'] for s in status(repo)} == {one.pid, two.pid}
        call(repo, 'control', 'pause')
        until(lambda: all(s['in_flight'] == 0 for s in status(repo)))
        assert quiet(server, 'a.test') and quiet(server, 'b.test')
        call(repo, 'control', 'stop', 'b.test:%d' % server.port)
        call(repo, 'control', 'resume')
        moves(server, ['a.test'])
        kill_all(two)
        until(lambda: [s['pid'] for s in status(repo)] == [one.pid])
        kill_all(one)
        refused(repo, 'no crawl', 'control', 'resume')


@test
def the_door_is_found_from_anywhere(folder):
    """By a relative path, through a link, with a very long path; a copy of the repository has no crawl."""
    deep = folder / ('d' * 100) / ('e' * 100)
    deep.mkdir(parents=True)
    with Server({'a.test': endless('a')}) as server:
        here = os.getcwd()
        os.chdir('/')
        try:
            p = start(os.path.relpath(deep / 'r', '/'), server, server.url('a.test'), '--delay', 0.05)
        finally:
            os.chdir(here)
        moves(server, ['a.test'], 3)
        assert call('r', 'control', 'status', cwd=deep).stdout
        (folder / 'link').symlink_to(deep / 'r')
        assert status(folder / 'link')[0]['pid'] == p.pid
        shutil.copytree(deep / 'r', folder / 'copy', ignore=lambda *_: ['spool', 'lines'])
        refused(folder / 'copy', 'no crawl', 'control', 'pause')
        kill(workers_of(p)[0], signal.SIGSTOP)    # the parent answers, whatever its workers do
        call(deep / 'r', 'control', 'pause')
        kill_all(p)


@test
def a_run_is_told_too(folder):
    with Server({'a.test': endless('a')}) as server:
        p = spawn(run_command(folder / 'r', server, server.url('a.test'), '--delay', 0.1, '--cycles', 1))
        moves(server, ['a.test'])
        until(lambda: status(folder / 'r')[0]['queued'] > 2000)
        s = status(folder / 'r')[0]
        assert s['requests'] >= 5 and s['sites']['active'] == 1 and s['queued'] > 2000, s
        assert set(s) >= {'pages', 'bytes', 'errors', 'rate', 'sites', 'workers', 'seconds'}, s
        call(folder / 'r', 'control', 'stop', 'a.test:%d' % server.port)
        assert p.wait(PATIENCE) == 0
        verified(folder / 'r')


@test
def errors_are_counted_by_kind(folder):
    with Server({'a.test': {'/': page('/x', '/y'), '/x': Reply('', 500), '/y': Reply('', 403),
                            '/robots.txt': Reply('', 404)}, 'b.test': endless('b')}) as server:
        p = start(folder / 'r', server, *[server.url(h) for h in server.sites], '--delay', 0.1)
        until(lambda: server.counts['a.test', '/y'] == 1)
        until(lambda: status(folder / 'r')[0]['errors'] == {'status': 2})
        kill_all(p)


@test
def wrong_commands_are_refused(folder):
    repo = folder / 'r'
    for words in ([], ['dance'], ['stop'], ['delay', 'a.test'], ['delay', 'a.test', 'soon'], ['delay', 'a.test', '-1'],
                  ['pause', 'a.test'], ['stop', 'a.test', 'b.test'], ['stop', 'not a site'], ['stop', '']):
        p = call(repo, 'control', *words, status=2)
        assert p.stderr.startswith(b'webbase: '), p.stderr
    refused(repo, repo, 'control', 'pause')     # there is no such repository
    call(repo, 'init')
    refused(repo, 'no crawl', 'control', 'pause')
    refused(repo, 'no crawl', 'control', 'stop', 'a.test')
    with Server({'a.test': endless('a'), 'other.test': endless('o')}) as server:
        p = start(repo, server, server.url('a.test'), '--delay', 0.1)
        moves(server, ['a.test'], 3)
        refused(repo, 'nowhere.example', 'control', 'stop', 'nowhere.example')
        refused(repo, 'a.test', 'control', 'stop', 'a.test')     # its port belongs to its name
        refused(repo, 'other.test', 'control', 'delay', 'other.test:%d' % server.port, 5)
        moves(server, ['a.test'], 3)
        kill_all(p)


if __name__ == '__main__':
    run_together()
