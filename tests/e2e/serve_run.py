#!/usr/bin/env python3
"""serve --run: the server and the cycle in one tree of processes."""
import os, pathlib, signal, subprocess

from e2e import *
from crawlserver import *
from serving import TOKEN, Server as Serving, wait_for


def options(server, *more):
    return ('--run', '--every', '1', '--allow-private', '--resolve', '*:*:127.0.0.1', '--delay', '0', *more)


def children(pid):
    """The processes that this one has started: [(pid, command line)]."""
    found = []
    for entry in pathlib.Path('/proc').iterdir():
        try:
            if entry.name.isdigit() and int((entry / 'stat').read_text().rsplit(')', 1)[1].split()[1]) == pid:
                found.append((int(entry.name), (entry / 'cmdline').read_bytes().split(b'\0')))
        except (OSError, IndexError):
            pass
    return found


def runs(s):
    return [pid for pid, words in children(s.process.pid) if b'run' in words]


def is_gone(pid):
    try:
        return pathlib.Path('/proc/%d/stat' % pid).read_text().rsplit(')', 1)[1].split()[0] == 'Z'
    except OSError:
        return True


def total(s, query):
    r = s.ask('/api/search', q=query)
    assert r.status in (200, 503), (r.status, r.body)
    return r.json()['total'] if r.status == 200 else None


def begun(folder, server, *more):
    return Serving(folder / 'r', *options(server), *more, *[server.url(h) for h in server.sites], token=TOKEN)


@test
def it_serves_crawls_and_indexes(folder):
    with Server({'a.test': star(5)}) as server, begun(folder, server) as s:
        assert s.get('/healthz')
        wait_for(lambda: total(s, 'site:a.test'), 'there is a generation', s)
        server.sites['a.test']['/1'] = page(text='pterodactyl')
        s.post('/api/push', {'url': server.url('a.test', '/1')}, TOKEN)
        wait_for(lambda: total(s, 'pterodactyl') == 1, 'the pushed change is found', s)
        assert s.stop() == 0, s.errors()
        assert 'cycle 1:' in s.said(), s.said()     # what the run prints goes to stderr
        assert not any('cycle' in line for line in s.out), s.out
    verified(folder / 'r')


@test
def without_seeds_it_waits_for_content(folder):
    with Server({'a.test': star(1)}) as server:
        with Serving(folder / 'r', *options(server), token=TOKEN) as s:
            s.ask('/api/search', q='x').error(503, 'no index yet')
            assert s.get('/healthz')
            assert s.get('/api/stat')['pages'] == 0
            assert s.ask('/api/page', url='http://a.test/').status == 404
            pages = [{'url': 'http://p.test/', 'html': '<title>Coelacanth</title>'}]
            assert s.post('/api/push', {'pages': pages}, TOKEN).status == 200
            wait_for(lambda: total(s, 'coelacanth') == 1, 'the pushed page is found', s)
            assert s.stop() == 0


@test
def a_run_that_dies_is_started_again(folder):
    with Server({'a.test': star(3)}) as server, begun(folder, server) as s:
        wait_for(lambda: total(s, 'site:a.test'), 'there is a generation', s)
        first, = runs(s)
        os.kill(first, signal.SIGKILL)
        wait_for(lambda: any('signal 9' in e and 'starts again' in e for e in s.said().splitlines()),
                 'the reason is told', s)
        assert s.get('/healthz')
        wait_for(lambda: runs(s) and runs(s) != [first], 'there is another run', s)
        server.sites['a.test']['/2'] = page(text='quetzal')
        s.post('/api/push', {'url': server.url('a.test', '/2')}, TOKEN)
        wait_for(lambda: total(s, 'quetzal') == 1, 'the second run goes on', s)
        second, = runs(s)
        assert s.stop() == 0
        assert is_gone(second)


@test
def the_run_ends_with_the_server(folder):
    with Server({'a.test': star(3)}) as server:
        for number in (signal.SIGKILL, signal.SIGTERM, signal.SIGINT):
            with begun(folder, server) as s:
                run, = wait_for(lambda: runs(s), 'there is a run', s)
                wait_for(lambda: total(s, 'site:a.test'), 'there is an index', s)
                status = s.stop(number)
                wait_for(lambda: is_gone(run), 'the run has ended')
                assert status == (-number if number == signal.SIGKILL else 0), status
    verified(folder / 'r')


@test
def the_run_inherits_no_sockets(folder):
    with Server({'a.test': star(1)}) as server, begun(folder, server, '--every', '1h') as s:
        run, = wait_for(lambda: runs(s), 'there is a run', s)
        listening = {os.readlink(fd) for fd in pathlib.Path('/proc/%d/fd' % s.process.pid).iterdir()
                     if os.readlink(fd).startswith('socket:')}
        assert listening
        wait_for(lambda: total(s, 'site:a.test'), 'there is an index', s)
        assert not listening & {os.readlink(fd) for fd in pathlib.Path('/proc/%d/fd' % run).iterdir()}


@test
def a_run_with_an_end_leaves_the_server(folder):
    with Server({'a.test': star(3)}) as server, begun(folder, server, '--cycles', '1', '--budget', '10') as s:
        wait_for(lambda: 'has done its cycles' in s.said(), 'the run has ended', s)
        assert runs(s) == [] and total(s, 'site:a.test')
        assert s.stop() == 0


@test
def a_run_that_cannot_work_is_tried_again(folder):
    with Server({'a.test': star(3)}) as server:
        with Serving(folder / 'r', *options(server), '--seeds', folder / 'missing', token=TOKEN) as s:
            wait_for(lambda: 'ended with status 1' in s.said(), 'the first failure', s)
            assert 'missing' in s.said(), s.said()
            (folder / 'missing').write_text(server.url('a.test') + '\n')
            wait_for(lambda: total(s, 'site:a.test'), 'a run works', s)
            assert s.stop() == 0


@test
def mistakes_are_seen_at_once(folder):
    repo = folder / 'r'
    refused(repo, '--run', 'serve', '--budget', '10', status=2, one_line=False)
    refused(repo, '--run', 'serve', 'http://a.test/', status=2, one_line=False)
    refused(repo, '--seeds', 'serve', '--run', '--seeds', '-', status=2, one_line=False)
    refused(repo, '--dispenser', 'serve', '--run', '--dispenser', 'x', status=2, one_line=False)
    assert not repo.exists()


run()
