#!/usr/bin/env python3
"""webbase backup: what it prints, what it refuses, whose a vault is, what is kept; and --follow as a process.

Vaults are directories here (file:///); vault_s3.py does the rest with a real S3, vault.py what comes back.
"""
import shutil, signal, subprocess, time

from e2e import *

PATIENCE = 300


def vault(folder, name='vault'):
    return 'file://%s' % (folder / name)


def repository(folder, name='r', pages=20):
    repo, random_ = folder / name, rng(name)
    call(repo, 'init', '--history', 'all')
    add(repo, random_, pages)
    return repo


def add(repo, random_, pages, host='www.alpha.example'):
    call(repo, 'import', archive(repo.parent / 'pages.warc', some_pages(random_, pages, host)))


def events(repo, *args):
    """(the safe event or None, the done event)"""
    found = ask(repo, 'backup', *args)
    assert [e['event'] for e in found] in (['safe', 'done'], ['done']), found
    assert found[-1]['pages'] == ask(repo, 'stat')[0]['pages'], found
    return (found[0] if len(found) == 2 else None), found[-1]


def objects(folder, name='vault'):
    return {p.relative_to(folder / name): p.stat().st_size for p in (folder / name).rglob('*') if p.is_file()}


def states(repo, url):
    return ask(repo, 'backup', url, '--list')


def pages_of(url, target, *args):
    shutil.rmtree(target, ignore_errors=True)
    call(None, 'restore', url, target, *args)
    verified(target)
    return sorted(call(target, 'stream', '--format', 'urls').stdout.splitlines())


def is_following(repo):
    return ask(repo, 'stat')[0]['backup'][0]['following']


def start(repo, url, out, *options):
    return subprocess.Popen(command(repo, 'backup', url, '--follow', '--every', '0.2', '--json', *options), stdout=open(out, 'wb'),
                            stderr=subprocess.PIPE)


def wait_for(process, condition, what):
    end = time.time() + PATIENCE
    while not condition():
        assert process.poll() is None, 'it has ended before ' + what
        assert time.time() < end, 'waited in vain until ' + what
        time.sleep(0.05)


# ---- what it prints ----------------------------------------------------------------------

@test
def numbers(folder):
    """objects and bytes are what the store has got; nothing is written if nothing is new."""
    repo, url = repository(folder), vault(folder)
    safe, end = events(repo, url)
    there = objects(folder)
    assert safe['pages'] == end['pages'] and end['objects'] == len(there) and end['bytes'] == sum(there.values()), (end, there)
    assert events(repo, url) == (None, {'event': 'done', 'objects': 0, 'bytes': 0, 'pages': end['pages']})
    assert objects(folder) == there
    add(repo, rng('more'), 5, 'more.example')
    safe, end = events(repo, url)
    assert safe['pages'] == end['pages'] and end['bytes'] < sum(there.values())
    rows = states(repo, url)
    assert [r['pages'] for r in rows] == [safe['pages'] - 5, safe['pages']] and rows[1]['shipment'] == safe['shipment'], rows
    said = call(repo, 'backup', url).stdout.decode()
    assert 'nothing is new' in said, said
    add(repo, rng('words'), 1, 'words.example')
    said = call(repo, 'backup', url).stdout.decode()
    assert 'safe at' in said and 'wrote' in said, said


@test
def an_index_alone_is_news(folder):
    repo, url = repository(folder), vault(folder)
    call(repo, 'update')
    events(repo, url)
    call(repo, 'index')
    assert events(repo, url)[0], 'a generation was not shipped'
    copy = folder / 'copy'
    call(None, 'restore', url, copy)
    found = [[{k: v for k, v in hit.items() if k != 'ms'} for hit in ask(r, 'search', 'site:www.alpha.example')] for r in (repo, copy)]
    assert found[0] == found[1] and len(found[0]) > 1, found


# ---- what it refuses -----------------------------------------------------------------------

@test
def wrong_options(folder):
    repo, url = repository(folder, pages=1), vault(folder)
    for args in (['--list', '--verify'], ['--list', '--follow'], ['--verify', '--take-over'], ['--list', '--keep', '1d'], ['--every', '1s'],
                 ['--every', '0x'], ['--keep', 'ever'], ['--nonsense'], ['again']):
        refused(repo, args[0].lstrip('-').split('=')[0] if args != ['again'] else 'backup', 'backup', url, *args, status=2, one_line=False)
    refused(repo, 'gopher', 'backup', 'gopher://x', status=2, one_line=False)
    refused(folder / 'none', 'none', 'backup', url)
    refused(repo, str(folder / 'vault'), 'backup', url, '--list')
    assert not (folder / 'vault').exists() and not (repo / 'vault').exists()


@test
def a_refusal_leaves_nothing(folder):
    repo, other, url = repository(folder), repository(folder, 'other', 2), vault(folder)
    events(repo, url)
    before = objects(folder)
    refused(other, 'another repository', 'backup', url)
    assert objects(folder) == before
    assert [p.name for p in (other / 'vault').iterdir()] == ['owner'], list((other / 'vault').iterdir())
    assert 'backup' not in ask(other, 'stat')[0] or not ask(other, 'stat')[0]['backup']


@test
def copies_of_a_directory(folder):
    """cp -r makes another copy of the repository; so does losing DIR/vault. mv does not."""
    repo, url, copy = repository(folder), vault(folder), folder / 'copy'
    events(repo, url)
    shutil.copytree(repo, copy)
    refused(copy, str(repo), 'backup', url)
    refused(copy, '--take-over', 'backup', url)
    moved = folder / 'moved'
    repo.rename(moved)
    assert events(moved, url)[0] is None
    add(copy, rng('copy'), 3, 'copy.example')
    before = len(objects(folder))
    assert events(copy, url, '--take-over')[0]
    assert len(objects(folder)) < 2 * before, 'what both have was put again'
    refused(moved, str(copy), 'backup', url)
    shutil.rmtree(copy / 'vault')
    refused(copy, '--take-over', 'backup', url)
    add(copy, rng('again'), 3, 'again.example')
    events(copy, url, '--take-over')
    assert pages_of(url, folder / 'restored') == sorted(call(copy, 'stream', '--format', 'urls').stdout.splitlines())
    refused(repository(folder, 'other', 2), 'another repository', 'backup', url, '--take-over')


@test
def another_format(folder):
    repo, url = repository(folder, pages=2), vault(folder)
    events(repo, url)
    memory = next((repo / 'vault').glob('*/memory'))
    text = memory.read_text()
    memory.write_text(text.replace('format 1', 'format 2'))
    refused(repo, 'format 2', 'backup', url)
    memory.write_text(text)
    events(repo, url)


# ---- what is kept ----------------------------------------------------------------------------

@test
def keep(folder):
    repo, url = repository(folder), vault(folder)
    for n in range(4):
        add(repo, rng('keep%d' % n), 3, 'keep%d.example' % n)
        events(repo, url)
    assert len(states(repo, url)) == 4
    events(repo, url, '--keep', '0')
    assert len(states(repo, url)) == 1
    assert events(repo, url, '--keep', '0')[0] is None, 'the newest state is replaced again and again'
    call(repo, 'backup', url, '--verify')


@test
def takedowns(folder):
    """After expunge, compact and backup no object has the bytes, though older states were to be kept."""
    repo, url, secret = folder / 'r', vault(folder), rng('secret').randbytes(5000)
    call(repo, 'init', '--history', 'all')
    call(repo, 'import', archive(folder / 'secret.warc', [Page('http://secret.example/', secret)]))
    add(repo, rng('takedown'), 10)
    events(repo, url)

    def holding():
        return [p for p in (folder / 'vault').rglob('*') if p.is_file() and secret[100:200] in p.read_bytes()]
    assert holding(), 'this test cannot see what it looks for'
    call(repo, 'expunge', 'http://secret.example/')
    events(repo, url)
    assert len(states(repo, url)) == 2 and holding()
    call(repo, 'compact')
    events(repo, url)
    assert len(states(repo, url)) == 1 and not holding(), (states(repo, url), holding())
    call(repo, 'backup', url, '--verify')


# ---- following ---------------------------------------------------------------------------------

@test
def follow(folder):
    repo, url, out = repository(folder), vault(folder), folder / 'out'
    process = start(repo, url, out)
    try:
        safe = lambda: [e['pages'] for e in lines(out.read_bytes()) if e['event'] == 'safe']
        wait_for(process, lambda: safe() == [20], 'the first state is safe')
        refused(repo, 'another process', 'backup', url)
        for n in range(1, 4):
            add(repo, rng('follow%d' % n), 2, 'follow%d.example' % n)
            wait_for(process, lambda: safe()[-1] == 20 + 2 * n, 'state %d is safe' % n)
        assert is_following(repo)
        process.terminate()
        assert process.wait(PATIENCE) == 0 and process.stderr.read() == b''
    finally:
        process.kill()
    assert lines(out.read_bytes())[-1]['event'] == 'done' and not is_following(repo)
    assert len(pages_of(url, folder / 'restored')) == 26


@test
def killed(folder):
    """kill -9 at any moment: what was safe is safe, and the next backup leaves nothing behind that nothing needs."""
    random_, repo, url, out = rng('killed'), repository(folder), vault(folder), folder / 'out'
    safe, total = 0, 20
    for n in range(rounds(6, 60)):
        process = start(repo, url, out)
        total += 5
        add(repo, rng('killed%d' % n), 5, 'killed%d.example' % n)
        time.sleep(random_.uniform(0, 0.6))
        process.kill()
        process.wait(PATIENCE)
        process.stderr.close()
        safe = max([safe] + [e['pages'] for e in lines(out.read_bytes()) if e['event'] == 'safe'])
        if safe:
            assert len(pages_of(url, folder / 'restored')) >= safe
    events(repo, url)
    assert len(pages_of(url, folder / 'restored')) == total
    said = call(repo, 'backup', url, '--verify').stdout.decode()
    assert 'note' not in said, said


run()
