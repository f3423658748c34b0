#!/usr/bin/env python3
"""serve --run: the server and the cycle in one tree of processes."""
import os, pathlib, signal, subprocess

from crawlserver import *
from serverun import *


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
    r = s.get('/api/search', q=query)
    assert r.status in (200, 503), (r.status, r.body)
    return r.json['total'] if r.status == 200 else None


def begun(folder, server, *more):
    return Serving(folder / 'r', *options(server), *more, *[server.url(h) for h in server.sites])


@test
def it_serves_crawls_and_indexes(folder):
    with Server({'a.test': star(5)}) as server, begun(folder, server) as s:
        assert s.get('/healthz').status == 200
        wait_for(lambda: total(s, 'site:a.test'), 'the first generation', s.process)
        server.sites['a.test']['/1'] = page(text='pterodactyl')
        s.post('/api/push', {'url': server.url('a.test', '/1')}, TOKEN)
        wait_for(lambda: total(s, 'pterodactyl') == 1, 'the pushed change to be found', s.process)
        status, said = s.stop()
        assert status == 0, (status, said)
        assert 'cycle 1:' in said, said     # what the run prints goes to stderr
        assert not any('cycle' in line for line in s.out), s.out
    verified(folder / 'r')


@test
def without_seeds_it_waits_for_content(folder):
    with Server({'a.test': star(1)}) as server:
        with Serving(folder / 'r', *options(server)) as s:
            r = s.get('/api/search', q='x')
            assert r.status == 503 and 'no index yet' in r.json['error'], (r.status, r.body)
            assert s.get('/healthz').status == 200
            assert s.get('/api/stat').json['pages'] == 0
            assert s.get('/api/page', url='http://a.test/').status == 404
            pages = [{'url': 'http://p.test/', 'html': '<title>Coelacanth</title>'}]
            assert s.post('/api/push', {'pages': pages}, TOKEN).status == 200
            wait_for(lambda: total(s, 'coelacanth') == 1, 'the pushed page to be found', s.process)
            assert s.stop()[0] == 0


@test
def a_run_that_dies_is_started_again(folder):
    with Server({'a.test': star(3)}) as server, begun(folder, server) as s:
        wait_for(lambda: total(s, 'site:a.test'), 'the first generation', s.process)
        first, = runs(s)
        os.kill(first, signal.SIGKILL)
        wait_for(lambda: any('signal 9' in e and 'starts again' in e for e in s.errors), 'the reason', s.process)
        assert s.get('/healthz').status == 200
        wait_for(lambda: runs(s) and runs(s) != [first], 'another run', s.process)
        server.sites['a.test']['/2'] = page(text='quetzal')
        s.post('/api/push', {'url': server.url('a.test', '/2')}, TOKEN)
        wait_for(lambda: total(s, 'quetzal') == 1, 'the second run to go on', s.process)
        second, = runs(s)
        assert s.stop()[0] == 0
        assert is_gone(second)


@test
def the_run_ends_with_the_server(folder):
    with Server({'a.test': star(3)}) as server:
        for number in (signal.SIGKILL, signal.SIGTERM, signal.SIGINT):
            with begun(folder, server) as s:
                run, = wait_for(lambda: runs(s), 'the run', s.process)
                wait_for(lambda: total(s, 'site:a.test'), 'an index', s.process)
                s.process.send_signal(number)
                s.process.wait(PATIENCE)
                wait_for(lambda: is_gone(run), 'the run to end')
                assert s.process.returncode == (-number if number == signal.SIGKILL else 0), s.process.returncode
    verified(folder / 'r')


@test
def the_run_inherits_no_sockets(folder):
    with Server({'a.test': star(1)}) as server, begun(folder, server, '--every', '1h') as s:
        run, = wait_for(lambda: runs(s), 'the run', s.process)
        listening = {os.readlink(fd) for fd in pathlib.Path('/proc/%d/fd' % s.process.pid).iterdir()
                     if os.readlink(fd).startswith('socket:')}
        assert listening
        wait_for(lambda: total(s, 'site:a.test'), 'an index', s.process)
        assert not listening & {os.readlink(fd) for fd in pathlib.Path('/proc/%d/fd' % run).iterdir()}


@test
def a_run_with_an_end_leaves_the_server(folder):
    with Server({'a.test': star(3)}) as server, begun(folder, server, '--cycles', '1', '--budget', '10') as s:
        wait_for(lambda: any('has done its cycles' in e for e in s.errors), 'the end of the run', s.process)
        assert runs(s) == [] and total(s, 'site:a.test')
        assert s.stop()[0] == 0


@test
def a_run_that_cannot_work_is_tried_again(folder):
    with Server({'a.test': star(3)}) as server:
        with Serving(folder / 'r', *options(server), '--seeds', folder / 'missing') as s:
            wait_for(lambda: any('ended with status 1' in e for e in s.errors), 'the first failure', s.process)
            assert any('missing' in e for e in s.errors), s.errors
            (folder / 'missing').write_text(server.url('a.test') + '\n')
            wait_for(lambda: total(s, 'site:a.test'), 'a run that works', s.process)
            assert s.stop()[0] == 0


@test
def mistakes_are_seen_at_once(folder):
    repo = folder / 'r'
    refused(repo, '--run', 'serve', '--budget', '10', status=2, one_line=False)
    refused(repo, '--run', 'serve', 'http://a.test/', status=2, one_line=False)
    refused(repo, '--seeds', 'serve', '--run', '--seeds', '-', status=2, one_line=False)
    refused(repo, '--dispenser', 'serve', '--run', '--dispenser', 'x', status=2, one_line=False)
    assert not repo.exists()


run()
