#!/usr/bin/env python3
"""Batch designs: pages wait on the update nodes until they are transferred; readers, takedowns and signals on the way."""
import fcntl, signal, subprocess, time

from e2e import *
from crawlserver import *

DESIGN = 'Batch[U(hash,log),R(hash,log)]'


def waiting_repository(folder, count=40, design=DESIGN):
    pages = some_pages(rng('transfer'), count)
    call(folder / 'r', 'init', '--design', design)
    call(folder / 'r', 'import', archive(folder / 'a.warc', pages))
    return pages


@test
def pages_wait_until_they_are_transferred(folder):
    pages = waiting_repository(folder)
    stat = ask(folder / 'r', 'stat')[0]
    assert (stat['pages'], stat['pages_waiting'], stat['waiting'], stat['nodes']) == (0, 40, 40, 2), stat
    assert 'waiting       40 pages' in call(folder / 'r', 'stat').stdout.decode()
    refused(folder / 'r', pages[0].url, 'get', pages[0].url)
    said = ask(folder / 'r', 'transfer')
    assert [s['stage'] for s in said[:-1]] == ['isolate', 'id lists', 'intersection', 'transfer', 'index', 'empty', 'compact', 'restart']
    assert (said[-1]['added'], said[-1]['replaced']) == (40, 0), said[-1]
    stat = ask(folder / 'r', 'stat')[0]
    assert (stat['pages'], stat['pages_waiting'], stat['waiting']) == (40, 0, 0), stat
    for page in pages[::7]:
        assert call(folder / 'r', 'get', page.url).stdout == page.body, page.url
    said = done(ask(folder / 'r', 'transfer'))
    assert (said['added'], said['replaced']) == (0, 0), said
    verified(folder / 'r')


@test
def the_same_archive_again_changes_nothing(folder):
    waiting_repository(folder)
    call(folder / 'r', 'transfer')
    call(folder / 'r', 'import', folder / 'a.warc')
    assert ask(folder / 'r', 'stat')[0]['pages_waiting'] == 0
    said = done(ask(folder / 'r', 'transfer'))
    assert (said['added'], said['replaced']) == (0, 0), said


@test
def what_is_taken_down_does_not_come_back(folder):
    pages = waiting_repository(folder)
    call(folder / 'r', 'expunge', pages[3].url)
    assert ask(folder / 'r', 'stat')[0]['pages_waiting'] == 39
    assert done(ask(folder / 'r', 'transfer'))['added'] == 39
    call(folder / 'r', 'import', folder / 'a.warc')
    assert done(ask(folder / 'r', 'transfer'))['added'] == 0
    refused(folder / 'r', pages[3].url, 'get', pages[3].url)
    verified(folder / 'r')


@test
def an_incremental_design_is_refused(folder):
    call(folder / 'r', 'init')
    refused(folder / 'r', 'Incr[hash,log]', 'transfer')


@test
def a_transfer_waits_for_an_export_and_stops_on_a_signal(folder):
    waiting_repository(folder, 400)
    call(folder / 'r', 'transfer')
    export = subprocess.Popen(command(folder / 'r', 'export', '--warc', '-'), stdout=subprocess.PIPE)
    export.stdout.read(1000)                    # it is under way, and waits for us
    transfer = subprocess.Popen(command(folder / 'r', 'transfer'), stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    heed(transfer)
    time.sleep(0.5)
    assert transfer.poll() is None, 'the transfer has not waited'
    transfer.send_signal(signal.SIGTERM)
    _, err = transfer.communicate(timeout=PATIENCE)
    assert transfer.returncode == 1 and b'stopped' in err, err
    export.stdout.read()
    assert export.wait(PATIENCE) == 0
    call(folder / 'r', 'transfer')


@test
def a_takedown_does_not_wait_for_a_transfer(folder):
    """Nor does update: the transfer waits for a stream, which may take hours."""
    pages, repo = waiting_repository(folder, 400), folder / 'r'
    call(repo, 'transfer')
    more = [Page('http://more.example/%d' % n, b'<p>more %d' % n) for n in range(20)]
    call(repo, 'import', archive(folder / 'b.warc', more))
    export = subprocess.Popen(command(repo, 'export', '--warc', '-'), stdout=subprocess.PIPE)
    export.stdout.read(1000)                    # it is under way, and waits for us
    transfer = subprocess.Popen(command(repo, 'transfer', '--json'), stdout=subprocess.PIPE)
    time.sleep(0.5)
    call(repo, 'expunge', pages[7].url)
    call(repo, 'expunge', more[7].url)
    call(repo, 'update')
    call(repo, 'update', '--rebuild')
    assert transfer.poll() is None, 'the transfer has not waited'
    for url in (pages[7].url, more[7].url):
        refused(repo, url, 'get', url)
        assert 'barred' in ask(repo, 'webdb', 'page', url)[0]['flags'], url
    export.stdout.read()
    assert export.wait(PATIENCE) == 0 and transfer.wait(PATIENCE) == 0
    for url in (pages[7].url, more[7].url):
        refused(repo, url, 'get', url)
    assert (ask(repo, 'stat')[0]['pages'], ask(repo, 'webdb', 'count')[0]['fetched']) == (418, 418)
    call(repo, 'update')
    assert ask(repo, 'webdb', 'count')[0]['fetched'] == 418
    verified(repo)


@test
def a_transfer_succeeds_while_somebody_else_compacts(folder):
    """Everything was brought; the space of what was replaced is freed by a later compaction."""
    pages = waiting_repository(folder)
    call(folder / 'r', 'transfer')
    call(folder / 'r', 'import', archive(folder / 'b.warc', [Page(p.url, p.body + b'!', '2026-02-02T03:04:05Z') for p in pages]))
    with open(folder / 'r' / 'compact.lock', 'ab') as here, open(folder / 'r' / 'update' / 'compact.lock', 'ab') as there:
        for file in (here, there):
            fcntl.flock(file, fcntl.LOCK_EX)
        said = done(ask(folder / 'r', 'transfer'))
    assert (said['added'], said['replaced']) == (0, 40), said
    for page in pages[::7]:
        assert call(folder / 'r', 'get', page.url).stdout == page.body + b'!', page.url
    call(folder / 'r', 'compact')
    verified(folder / 'r')


@test
def webdb_knows_pages_that_wait(folder):
    """An update before the transfer must not take them for pages that were never stored."""
    for design in (DESIGN, 'Batch[U(uniform,hash),R(hash,hashed-log)]'):
        place = folder / design
        place.mkdir()
        pages, repo = waiting_repository(place, design=design), place / 'r'
        seen = []
        for step in ('update', 'transfer', 'update'):
            call(repo, step)
            rows = [ask(repo, 'webdb', 'page', p.url)[0] for p in pages[::7]]
            seen.append([[row[name] for name in ('md5', 'status', 'last_seen', 'next_due', 'result', 'etag')] for row in rows])
            assert ask(repo, 'webdb', 'count')[0]['fetched'] == 40, step
        assert seen[0] == seen[1] == seen[2] and seen[0][0][1] == 200, seen


@test
def run_transfers_before_it_indexes(folder):
    with Server({'f.test': star(20)}) as server:
        repo, site = folder / 'r', server.sites['f.test']
        call(repo, 'init', '--design', DESIGN)
        said = [e for e in go(repo, server, server.url('f.test'), '--cycles', 1) if e.get('event') == 'cycle'][0]
        assert said['stored'] == 20, said
        site['/3'] = page('/new', text='changed')
        site['/new'] = page(text='new')
        del site['/4']
        said = [e for e in go(repo, server, '--cycles', 2) if e.get('event') == 'cycle']
        assert said[0]['stored'] == 2 and said[0]['gone'] == said[0]['expunged'] == 1, said
        assert said[1]['stored'] == 0 and said[1]['unchanged'] > 0, said     # a crawl knows what was transferred
        for path in ('/3', '/new'):
            assert call(repo, 'get', server.url('f.test', path)).stdout == site[path]
        refused(repo, '/4', 'get', server.url('f.test', '/4'))
        stat = ask(repo, 'stat')[0]
        assert stat['pages'] == stat['versions'] == 20 and stat['pages_waiting'] == 0, stat
        assert stat['snapshot'] == stat['generation'] == 3, stat
        assert ask(repo, 'search', 'changed')[0]['url'] == server.url('f.test', '/3')
        verified(repo)


def waits(events):
    return {e['node']: e['pages'] for e in events if e['event'] == 'waiting'}


@test
def a_node_that_is_down_keeps_back_only_its_own_pages(folder):
    for number, design in enumerate(('Batch[U(hash,log),R(hash,log)]', 'Batch[U(uniform,hash),R(hash,hash)]')):
        repo, away, pages = folder / str(number), folder / 'away', some_pages(rng('down'), 60)
        call(repo, 'init', '--design', design, '--nodes', '2', '--update-nodes', '2')
        for i in range(0, 60, 5):                               # in small parts, so that both nodes get some
            call(repo, 'import', archive(folder / 'a.warc', pages[i:i + 5]))
        there = {row['node']: row['pages'] for row in ask(repo, 'nodes', 'list')}
        (repo / 'update' / 'node102').rename(away)
        said = ask(repo, 'transfer', status=1)
        assert waits(said) == {102: there[102]} and 0 < there[102] < 60, (said, there)
        assert done(said)['waiting'] == there[102] and done(said)['added'] == 60 - there[102], said
        text = refused(repo, 'node 102 is down', 'transfer')
        assert 'pages wait for node 102' in text and 'everything else was brought' in text, text
        stat = ask(repo, 'stat')[0]
        assert (stat['pages'], stat['pages_waiting']) == (60 - there[102], there[102]), stat
        away.rename(repo / 'update' / 'node102')
        (repo / 'node2').rename(away)                           # and now a read node
        said = ask(repo, 'transfer', status=1)
        assert list(waits(said)) == [2] and done(said)['waiting'] > 0, said
        away.rename(repo / 'node2')
        assert done(ask(repo, 'transfer'))['waiting'] == 0
        for page in pages:
            assert call(repo, 'get', page.url).stdout == page.body, page.url
        verified(repo)


@test
def a_read_node_that_cannot_be_written_keeps_back_only_its_own_pages(folder):
    random_ = rng('full')
    for number, (design, options) in enumerate((('Batch[U(hash,log),R(hash,log)]', 'ro'), ('Batch[U(hash,log),R(hash,hash)]', 'ro'),
                                                ('Batch[U(hash,log),R(hash,log)]', 'size=1m'), ('Batch[U(hash,log),R(hash,hash)]', 'size=1m'))):
        place = folder / str(number)
        place.mkdir()
        with small_disk(place / 'disk', '128m') as disk:
            repo = place / 'r'
            call(repo, 'init', '--design', design, '--nodes', '%s,%s' % (place / 'one', disk / 'two'))
            pages = [Page('http://full.example/%d' % i, random_.randbytes(60000), type='application/octet-stream') for i in range(60)]
            call(repo, 'import', archive(folder / 'a.warc', pages))
            remount(disk, options)
            said = ask(repo, 'transfer', status=1)
            assert list(waits(said)) == [2] and 0 < waits(said)[2] < 60, (design, options, said)
            assert done(said)['added'] == 60 - waits(said)[2] == ask(repo, 'stat')[0]['pages'], said
            remount(disk, 'rw' if options == 'ro' else 'size=128m')
            assert done(ask(repo, 'transfer'))['waiting'] == 0
            for page in pages[::5]:
                assert call(repo, 'get', page.url).stdout == page.body, page.url
            verified(repo)


@test
def a_run_indexes_what_was_brought(folder):
    with Server({'f.test': star(40)}) as server:
        repo, away = folder / 'r', folder / 'away'
        call(repo, 'init', '--design', 'Batch[U(uniform,log),R(hash,log)]', '--update-nodes', '2')
        (repo / 'update' / 'node102').rename(away)
        go(repo, server, server.url('f.test'), '--cycles', 1)   # nothing waits there
        away.rename(repo / 'update' / 'node102')
        (repo / 'update' / 'node101').rename(away)
        call(repo, 'import', archive(folder / 'a.warc', some_pages(rng('late'), 5)))
        (repo / 'update' / 'node102').rename(folder / 'other')
        away.rename(repo / 'update' / 'node101')
        before = ask(repo, 'stat')[0]['generation']
        server.sites['f.test']['/3'] = page(text='changed')
        go(repo, server, '--cycles', 1, status=1)
        assert '5 pages wait for node 102' in go.words and 'without it' not in go.words, go.words
        assert ask(repo, 'stat')[0]['generation'] > before and ask(repo, 'search', 'changed')[0]['url'] == server.url('f.test', '/3')
        (folder / 'other').rename(repo / 'update' / 'node102')
        assert done(ask(repo, 'transfer'))['added'] == 5
        verified(repo)


run()
