#!/usr/bin/env python3
"""Nodes: the table that `nodes` prints, adding and removing them, and directories that are not what they should be."""
import fcntl, os, pathlib, signal, subprocess, time

from e2e import *
from crawlserver import *

FIELDS = 'node dir role organisation state capacity used free fragmentation pages requests'.split()


def table(repo):
    rows = ask(repo, 'nodes')
    for row in rows:
        assert list(row)[:4] == FIELDS[:4] and not set(FIELDS) - set(row), row
        assert set(row['requests']) == {'get', 'put', 'stream'}, row
    return {row['node']: row for row in rows}


def until(what):
    """Waits until what() is true."""
    end = time.time() + PATIENCE
    while not what():
        assert time.time() < end, 'this never happens'
        time.sleep(0.05)


def make(folder, name, count, *options):
    repo, pages = folder / 'repo', some_pages(rng(name), count)
    call(repo, 'init', *options)
    call(repo, 'import', archive(folder / 'pages.warc', pages))
    return repo, pages


def all_there(repo, pages):
    verified(repo)
    for page in pages[::7]:
        assert call(repo, 'get', page.url).stdout == page.body, page.url


@test
def a_repository_of_one_node_is_its_own_node(folder):
    repo, pages = make(folder, 'one', 40)
    rows = table(repo)
    assert list(rows) == [1] and rows[1]['role'] == 'both' and rows[1]['state'] == 'idle', rows
    assert rows[1]['pages'] == 40 and 0 < rows[1]['used'] < rows[1]['capacity'], rows
    words = call(repo, 'nodes', 'list').stdout.decode().splitlines()
    assert len(words) == 2 and words[0].split() == ('node state role organisation pages capacity used free dead get put '
                                                    'stream directory').split(), words
    assert words[1].split()[:7] == ['1', 'idle', 'both', 'log', '40', *(str(rows[1][n]) for n in ('capacity', 'used'))], words
    refused(repo, '77', 'nodes', 'remove', '77')
    refused(repo, 'mine', 'nodes', 'remove', 'mine')
    refused(repo, '1', 'nodes', 'remove', '1')


@test
def nodes_are_added_and_removed(folder):
    for distribution in ('hash', 'uniform'):
        place = folder / distribution
        place.mkdir()
        repo, pages = make(place, distribution, 200, '--distribution', distribution, '--nodes', '2')
        assert done(ask(repo, 'nodes', 'add', place / 'new')) == {'event': 'done', 'node': 3, 'dir': str(place / 'new')}
        rows = table(repo)
        assert sorted(rows) == [1, 2, 3] and sum(r['pages'] for r in rows.values()) == 200, rows
        assert (rows[3]['pages'] > 0) == (distribution == 'hash'), rows
        assert (place / 'new' / 'webbase.node').read_text().startswith('webbase node\nformat 1\n')
        all_there(repo, pages)
        assert done(ask(repo, 'nodes', 'remove', '1')) == {'event': 'done', 'node': 1}
        rows = table(repo)
        assert sorted(rows) == [2, 3] and sum(r['pages'] for r in rows.values()) == 200, rows
        all_there(repo, pages)
        assert not (repo / 'node1' / 'webbase.node').exists()
        call(repo, 'nodes', 'remove', '3')
        assert os.listdir(place / 'new') == [], os.listdir(place / 'new')
        # Numbers of nodes that were removed never come again.
        assert done(ask(repo, 'nodes', 'add', place / 'new'))['node'] == 4
        call(repo, 'nodes', 'remove', '4')
        assert done(ask(repo, 'nodes', 'add', place / 'new'))['node'] == 5
        call(repo, 'nodes', 'remove', '5')
        refused(repo, '2', 'nodes', 'remove', '2')
        all_there(repo, pages)


@test
def a_node_that_is_half_added_or_removed_is_shown(folder):
    repo, pages = make(folder, 'half', 60, '--nodes', '2')
    third = folder / 'third'
    for command_, number, word in ((('add', third), 3, 'arriving'), (('remove', 3), 3, 'leaving')):
        with open(repo / 'compact.lock', 'ab') as lock:         # pages cannot be moved meanwhile
            fcntl.flock(lock, fcntl.LOCK_EX)
            p = subprocess.Popen(command(repo, 'nodes', *command_), stdout=subprocess.DEVNULL)
            until(lambda: number in table(repo) and table(repo)[number].get('moving') == word)
            p.kill()
            p.wait()
            assert [r['node'] for r in table(repo).values() if 'moving' in r] == [number], table(repo)
            assert "repeat 'webbase nodes %s" % command_[0] in call(repo, 'nodes').stdout.decode()
        call(repo, 'nodes', *command_)
        assert not [r for r in table(repo).values() if 'moving' in r], table(repo)
        all_there(repo, pages)


@test
def directories_that_cannot_be_nodes_are_named(folder):
    repo, pages = make(folder, 'refused', 20, '--nodes', '2')
    (folder / 'file').write_text('x')
    (folder / 'full').mkdir()
    (folder / 'full' / 'thesis.txt').write_text('years of work')
    refused(repo, 'nowhere', 'nodes', 'add', folder / 'nowhere' / 'node')
    refused(repo, 'file', 'nodes', 'add', folder / 'file')
    refused(repo, 'full', 'nodes', 'add', folder / 'full')
    refused(repo, 'node1', 'nodes', 'add', repo / 'node1')
    assert (folder / 'full' / 'thesis.txt').read_text() == 'years of work'
    assert sorted(table(repo)) == [1, 2]
    all_there(repo, pages)


@test
def a_node_of_this_repository_cannot_be_added_again(folder):
    """Neither as the other kind of node, nor by a copy of the repository from before it was added."""
    a, u = folder / 'a', folder / 'u'
    repo, pages = make(folder, 'again', 60, '--design', 'Batch[U(hash,log),R(hash,hash)]')
    call(repo, 'transfer')
    shutil.copytree(repo, folder / 'copy')
    call(repo, 'nodes', 'add', a)
    call(repo, 'nodes', 'add', u, '--update')
    more = [Page('http://more.example/%d' % n, b'<p>more %d' % n) for n in range(40)]
    call(repo, 'import', archive(folder / 'more.warc', more))
    refused(repo, 'is node 102 already', 'nodes', 'add', u)
    refused(repo, 'is node 2 already', 'nodes', 'add', a, '--update')
    refused(folder / 'copy', 'node 2', 'nodes', 'add', a)
    refused(folder / 'copy', 'node 102', 'nodes', 'add', u, '--update')
    assert all(row['state'] == 'idle' and row['pages'] > 0 for row in table(repo).values()), table(repo)
    call(repo, 'transfer')
    all_there(repo, pages + more)
    assert ask(repo, 'stat')[0]['pages'] == 100
    call(repo, 'nodes', 'remove', 2)            # it is nobody's now
    call(folder / 'copy', 'nodes', 'add', a)
    all_there(folder / 'copy', pages)


@test
def a_node_that_is_missing_or_swapped_is_down_until_it_is_back(folder):
    repo, pages = make(folder, 'down', 100, '--nodes', '2')
    one, two, away = repo / 'node1', repo / 'node2', folder / 'away'
    before = table(repo)
    two.rename(away)
    for make_wrong, why in ((lambda: None, 'missing'), (lambda: two.mkdir(), 'empty'),
                            (lambda: (two / 'notes').write_text('x'), 'webbase.node')):
        make_wrong()
        rows = table(repo)
        assert rows[1]['state'] == 'idle' and rows[2]['state'] == 'down', rows
        assert why in rows[2]['why'] and 'mounted' in rows[2]['why'] or why == 'webbase.node', rows
        assert rows[2]['pages'] == before[2]['pages'], rows
        assert rows[2]['why'] in call(repo, 'nodes').stdout.decode()
    said = refused(repo, 'node 2 is down', 'index', one_line=False).splitlines()
    assert len(said) == len(set(said)), said                    # a warning of the update, and the error
    assert os.listdir(two) == ['notes']
    (two / 'notes').unlink()
    two.rmdir()
    one.rename(two)
    away.rename(one)
    rows = table(repo)
    assert [rows[n]['state'] for n in (1, 2)] == ['down', 'down'] and 'is node 2' in rows[1]['why'], rows
    two.rename(away)
    one.rename(two)
    away.rename(one)
    rows = table(repo)
    assert {n: (r['state'], r['pages']) for n, r in rows.items()} == {n: ('idle', r['pages'])
                                                                      for n, r in before.items()}, rows
    all_there(repo, pages)


@test
def pages_whose_old_version_is_away_do_not_stop_an_import(folder):
    """A bucket file has all versions of a page that are on its node: the page cannot change while one is away."""
    repo, pages = make(folder, 'away', 90, '--design', 'Incr[uniform,hash]', '--nodes', '3')
    held = {n: r['pages'] for n, r in table(repo).items()}
    newer = [Page(p.url, p.body + b'!', '2026-02-02T03:04:05Z') for p in pages]
    revisits = [record(p.url, b'', '2026-03-02T03:04:05Z', 'revisit',
                       extra=['WARC-Profile: http://netpreserve.org/warc/1.1/revisit/identical-payload-digest',
                              'WARC-Refers-To-Target-URI: ' + p.url, 'WARC-Refers-To-Date: ' + p.date]) for p in pages]
    (repo / 'node2').rename(folder / 'node2')
    said = ask(repo, 'import', archive(folder / 'newer.warc', newer), status=1)
    assert done(said)['pages'] == 90 - held[2] and done(said)['errors'] == held[2], said[-1]
    assert all('node 2' in e['message'] for e in said if e['event'] == 'error'), said
    call(repo, 'import', write_archive(folder / 'revisits.warc', revisits), status=None)
    (folder / 'node2').rename(repo / 'node2')
    assert done(ask(repo, 'import', folder / 'newer.warc'))['pages'] == held[2]
    all_there(repo, newer)
    verified(repo)


@test
def pages_that_a_node_has_are_not_refused_while_it_is_down(folder):
    """They are stored. An import that loses a node meets them too, because it starts again."""
    for design in ('Incr[hash,log]', 'Incr[hash,hash]', 'Incr[hash,hashed-log]', 'Incr[uniform,hash]'):
        place = folder / design
        place.mkdir()
        repo, pages = make(place, 'known', 60, '--design', design, '--nodes', '3')
        more = pages + some_pages(rng('more'), 60, 'www.beta.example')
        before = table(repo)[2]['pages']
        (repo / 'node2').rename(place / 'away')
        said = ask(repo, 'import', archive(place / 'more.warc', more), status=None)
        end, refused_ = done(said), [e for e in said if e['event'] == 'error']
        assert end['older'] == 60 and end['pages'] + end['errors'] == 60 and len(refused_) == end['errors'], end
        assert all('www.beta.example' in e['file'] for e in refused_) and ('hash,' in design) == bool(refused_), refused_
        (place / 'away').rename(repo / 'node2')
        assert before and done(ask(repo, 'import', place / 'more.warc'))['pages'] == end['errors']
        all_there(repo, more)


@test
def a_node_that_is_lost_during_an_import_costs_its_own_pages_only(folder):
    pages = [Page(p.url, p.body * 20, p.date) for p in some_pages(rng('lost'), 1500)]
    path = archive(folder / 'pages.warc', pages)
    for design in ('Incr[hash,log]', 'Incr[uniform,hash]'):
        repo = folder / design
        call(repo, 'init', '--design', design, '--nodes', '3')
        p = subprocess.Popen(command(repo, 'import', path, '--json'), stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        until(lambda: ask(repo, 'nodes')[1]['requests']['put'] or p.poll() is not None)
        (repo / 'node2').rename(folder / 'away')
        said = lines(p.communicate()[0])
        end = done(said)
        refused_ = [e for e in said if e['event'] == 'error']
        assert end['pages'] + end['errors'] == 1500 and len(refused_) == end['errors'] < 800, end
        assert p.returncode == (1 if refused_ else 0) and (not refused_ or 'uniform' not in design), said[-3:]
        assert all('node 2 is down' in e['message'] for e in refused_), refused_[:3]
        assert ask(repo, 'stat')[0]['pages'] == end['pages']
        (folder / 'away').rename(repo / 'node2')
        assert done(ask(repo, 'import', path))['pages'] == end['errors']
        all_there(repo, pages)


@test
def compact_leaves_a_node_out_that_is_down(folder):
    for organisation in ('log', 'hash', 'hashed-log'):
        place = folder / organisation
        place.mkdir()
        repo, pages = make(place, organisation, 200, '--organisation', organisation, '--nodes', '2')
        newer = [Page(p.url, p.body + b'!', '2026-02-02T03:04:05Z') for p in pages[:20]]     # few: buckets are not merged
        call(repo, 'import', archive(place / 'newer.warc', newer))
        (repo / 'node2').rename(place / 'away')
        said = ask(repo, 'compact')
        assert done(said)['segments'] >= 1 and done(said)['skipped'] >= 1 and done(said)['damaged'] == 0, said
        assert [e for e in said if e['event'] == 'note' and 'node 2 is down' in e['message']], said
        (place / 'away').rename(repo / 'node2')
        said = ask(repo, 'compact')
        assert done(said)['segments'] >= 1 and done(said)['skipped'] == 0, said
        all_there(repo, newer)


@test
def a_takedown_does_not_wait_for_a_node_that_is_down(folder):
    for design in ('Incr[hash,hash]', 'Incr[uniform,hash]', 'Incr[hash,log]', 'Batch[U(hash,log),R(hash,hash)]'):
        place = folder / design
        place.mkdir()
        random_ = rng(design)
        pages = [Page('http://down.example/%d' % i, random_.randbytes(3000), type='application/octet-stream') for i in range(60)]
        repo = place / 'repo'
        call(repo, 'init', '--design', design, '--nodes', '2')

        def add(name, more):
            call(repo, 'import', archive(place / name, more))
            if 'Batch' in design:
                call(repo, 'transfer')
        add('pages.warc', pages)
        (repo / 'node2').rename(place / 'away')
        gone, left = pages[:6], pages[6:]                      # about half of them are on that node
        for page_ in gone:
            call(repo, 'expunge', page_.url)
            refused(repo, page_.url, 'get', page_.url)
        (place / 'away').rename(repo / 'node2')

        def there(where):
            for page_ in gone:
                refused(where, page_.url, 'get', page_.url)
            for page_ in left[::17]:
                assert call(where, 'get', page_.url).stdout == page_.body, page_.url
            urls = call(where, 'stream', '--latest', '--format', 'urls').stdout.decode().split()
            assert sorted(urls) == sorted(page_.url for page_ in left), (design, len(urls))
            verified(where)
        there(repo)                                     # the buckets do not know it yet, and must not be believed
        call(repo, 'convert', place / 'copy')
        there(place / 'copy')
        fresh = [Page('http://fresh.example/%d' % i, random_.randbytes(3000), type='application/octet-stream') for i in range(3)]
        add('fresh.warc', fresh)
        left += fresh
        there(repo)
        add('again.warc', gone)                         # they stay barred
        call(repo, 'nodes', 'add', place / 'third')
        call(repo, 'compact')
        there(repo)
        for path in [p for p in place.rglob('*') if p.is_file() and p.suffix in ('.bkt', '.seg', '.dw')]:
            data = path.read_bytes()
            assert not [p for p in gone if p.body[100:140] in data], (design, path)


@test
def a_run_goes_on_while_a_node_is_down(folder):
    for design in ('Incr[hash,log]', 'Incr[uniform,hash]', 'Batch[U(hash,log),R(hash,hash)]'):
        with Server({'n.test': star(40)}) as server:
            repo, site, away = folder / design, server.sites['n.test'], folder / 'away'
            call(repo, 'init', '--design', design, '--nodes', '2')
            go(repo, server, server.url('n.test'), '--cycles', 1)
            before = ask(repo, 'stat')[0]['generation']
            (repo / 'node2').rename(away)
            for i in range(1, 40):
                site['/%d' % i] = page('/', text='changed %d' % i)
            said = [e['cycle'] for e in go(repo, server, '--cycles', 2, status=1) if e.get('event') == 'cycle']
            assert said == [2, 3] and 'node 2 is down' in go.words, (said, go.words)
            assert 'index' in go.words and 'the cycle goes on without it' in go.words, go.words
            assert ask(repo, 'stat')[0]['generation'] == before
            call(repo, 'update')
            away.rename(repo / 'node2')
            go(repo, server, '--cycles', 1)
            assert ask(repo, 'stat')[0]['generation'] > before
            for i in range(1, 40):
                assert b'changed %d' % i in call(repo, 'get', server.url('n.test', '/%d' % i)).stdout, (design, i)
            assert ask(repo, 'webdb', 'count')[0]['fetched'] == 40
            verified(repo)


@test
def a_pipe_in_the_place_of_a_file_is_not_waited_for(folder):
    repo, pages = make(folder, 'pipe', 100, '--nodes', '2')
    node = repo / 'node2'
    for path, state in ((node / 'webbase.node', 'down'), (next((node / 'pages').glob('*.seg')), 'idle')):
        path.rename(folder / 'away')
        os.mkfifo(path)
        assert table(repo)[2]['state'] == state
        refused(repo, path.name, 'stream', '--latest', '--format', 'urls', one_line=False)
        report = ask(repo, 'verify', status=1)[-1]
        assert report['ok'] is False and any(path.name in str(p) for p in report['problems']), report
        path.unlink()
        (folder / 'away').rename(path)
    verified(repo)
    all_there(repo, pages)


@test
def what_looks_like_a_number_of_nodes_is_not_a_directory(folder):
    for text in ('0', '-1', '+3', '1.5', '0x3', ' ', '65', ',', 'a,,b', 'a,'):
        refused(folder / 'r', '--nodes ' + text, 'init', '--nodes', text, status=2, one_line=False, cwd=folder)
        assert os.listdir(folder) == [], text
    call(folder / 'r', 'init', '--nodes', './1.5', cwd=folder)
    assert sorted(os.listdir(folder)) == ['1.5', 'r']


@test
def a_node_that_cannot_be_made_leaves_nothing_behind(folder):
    (folder / 'link').symlink_to(folder / 'nowhere' / 'node')
    for design in ('Incr[hash,log]', 'Batch[U(hash,log),R(uniform,hash)]'):
        for bad in (folder / ('x' * 300), folder / 'link', pathlib.Path('/proc/node')):
            lists = ['--nodes', '%s,%s' % (folder / 'one', bad)]
            if 'Batch' in design:
                lists = ['--nodes', '2', '--update-nodes', lists[1]]
            refused(folder / 'r', bad.name, 'init', '--design', design, *lists)
            assert os.listdir(folder) == ['link'], (design, bad, os.listdir(folder))


@test
def requests_under_way_are_counted_until_their_process_is_killed(folder):
    repo, pages = make(folder, 'busy', 3000, '--nodes', '2')
    streams = [subprocess.Popen(command(repo, 'stream', '--latest'), stdout=subprocess.PIPE) for _ in range(2)]
    total = lambda kind: sum(row['requests'][kind] for row in table(repo).values())
    until(lambda: total('stream') == 2)
    assert all((row['state'] == 'streaming') == (row['requests']['stream'] > 0) for row in table(repo).values())
    for left, process in ((1, streams[0]), (0, streams[1])):
        process.send_signal(signal.SIGKILL)
        process.wait()
        process.stdout.close()
        assert total('stream') == left, table(repo)
    assert all(row['state'] == 'idle' for row in table(repo).values()), table(repo)

    # A command that is stopped now and then, until it is counted; then it is killed.
    def counted(kind, state, next_command):
        running = [subprocess.Popen(next_command(), stdout=subprocess.DEVNULL)]

        def look():
            if running[-1].poll() is not None:
                running.append(subprocess.Popen(next_command(), stdout=subprocess.DEVNULL))
            running[-1].send_signal(signal.SIGSTOP)
            if total(kind) > 0:
                return True
            running[-1].send_signal(signal.SIGCONT)
            return False

        until(look)
        assert kind == 'get' or state in [row['state'] for row in table(repo).values()], table(repo)
        running[-1].send_signal(signal.SIGKILL)
        running[-1].wait()
        assert total(kind) == 0 and all(row['state'] == 'idle' for row in table(repo).values()), table(repo)

    # A writer has pages that are not committed.
    source = archive(folder / 'more.warc', some_pages(rng('more'), 5000, 'www.beta.example'))
    counted('put', 'storing', lambda: command(repo, 'import', source))
    # A page is read.
    counted('get', 'idle', lambda: command(repo, 'get', pages[0].url))
    # Pages are moved to a node, which is added and removed in turn.
    third = folder / 'third'

    def change():
        numbers = table(repo)
        return command(repo, 'nodes', *(('add', third) if len(numbers) == 2 else ('remove', max(numbers))))

    counted('put', 'storing', change)
    verified(repo)


run()
