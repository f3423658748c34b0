#!/usr/bin/env python3
"""The crawler emulator: pages of another repository arrive at about the set rate, and nothing of the source changes."""
import signal, subprocess, time

from e2e import *


def source_of(folder, count):
    pages = some_pages(rng('emulate'), count)
    call(folder / 'source', 'import', archive(folder / 'a.warc', pages))
    return pages


@test
def pages_arrive_at_the_rate(folder):
    pages = source_of(folder, 60)
    before = call(folder / 'source', 'stat', '--json').stdout
    start = time.time()
    said = done(ask(folder / 'r', 'emulate', folder / 'source', '--rate', 30))
    assert time.time() - start >= 60 / 30 - 0.5         # never faster; slower only on a busy machine
    assert said['pages'] == said['records'] == 60 and said['errors'] == 0, said
    assert call(folder / 'source', 'stat', '--json').stdout == before
    for url in (p.url for p in pages):
        assert call(folder / 'r', 'get', url).stdout == call(folder / 'source', 'get', url).stdout, url
    said = done(ask(folder / 'r', 'emulate', folder / 'source', '--rate', 1000, '--pages', 7))
    assert said['records'] == 7 and said['captures'] == 7, said      # the same bytes, seen again
    verified(folder / 'r')


@test
def a_rate_may_have_a_fraction(folder):
    source_of(folder, 5)
    said = done(ask(folder / 'r', 'emulate', folder / 'source', '--rate', '2.5', '--pages', 2))
    assert said['pages'] == said['records'] == 2, said


@test
def the_repository_itself_is_refused(folder):
    source_of(folder, 3)
    refused(folder / 'source', 'source', 'emulate', folder / 'source', '--rate', 5)
    refused(folder / 'r', 'nowhere', 'emulate', folder / 'nowhere', '--rate', 5)
    assert not (folder / 'r').exists()


@test
def what_cannot_be_read_is_reported_and_counted(folder):
    source_of(folder, 60)
    segment = next((folder / 'source' / 'pages').glob('*.seg'))
    damaged = bytearray(segment.read_bytes())
    damaged[len(damaged) // 2] ^= 1
    segment.write_bytes(damaged)
    said = ask(folder / 'r', 'emulate', folder / 'source', '--rate', 1000, status=1)
    errors = [e for e in said if e['event'] == 'error']
    assert errors and done(said)['errors'] == len(errors) and done(said)['pages'] < 60, said
    verified(folder / 'r')


@test
def a_signal_ends_it_cleanly(folder):
    source_of(folder, 50)
    p = subprocess.Popen(command(folder / 'r', 'emulate', folder / 'source', '--rate', 5), stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    while p.poll() is None and not any(row['pages'] for row in ask(folder / 'r', 'stat', status=None)):
        pass
    p.send_signal(signal.SIGTERM)
    out, err = p.communicate(timeout=PATIENCE)
    assert p.returncode == 1 and b'stopped by a signal' in err, err
    assert 1 <= ask(folder / 'r', 'stat')[0]['pages'] < 50
    verified(folder / 'r')


run()
