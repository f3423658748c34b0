#!/usr/bin/env python3
"""Streams from a directory: every page exactly once, in every order, killed and resumed while the repository changes."""
import signal

from e2e import *

ORDERS = 'stored url rank date modified -stored -url -rank -date -modified'.split()


def page(n, word, date='2026-01-02T03:04:05Z', links=()):
    host = ('alpha.example', 'beta.example', 'www.gamma.example')[n % 3]
    body = '<html lang=en><head><title>page %d</title></head><body><p>%s number%d %s</p>%s</body></html>' % (
        n, word, n, 'quokka' if n % 4 == 0 else 'wombat', ''.join('<a href="%s">to %d</a>' % (url(k), k) for k in links))
    return Page('http://%s/p/%d' % (host, n), body.encode(), date)


def url(n):
    return page(n, '').url


class Corpus:
    def __init__(self, folder, name='r', history='newest'):
        self.folder, self.repo, self.pages, self.files = folder, folder / name, {}, 0
        call(self.repo, 'init', '--history', history)

    def put(self, pages):
        self.files += 1
        done(ask(self.repo, 'import', archive(self.folder / ('%s-%d.warc' % (self.repo.name, self.files)), pages)))
        self.pages.update((p.url, p) for p in pages)

    def publish(self):
        call(self.repo, 'update')
        call(self.repo, 'index')


def some_corpus(folder, count=200, **kw):
    c = Corpus(folder, **kw)
    c.put([page(n, 'first', '2026-01-%02dT00:00:%02dZ' % (n % 28 + 1, n % 60), [k for k in range(n % 7)])
           for n in range(count)])
    return c


def stream(repo, *args, **kw):
    return call(repo, 'stream', *args, **kw).stdout


def urls(repo, *args):
    return stream(repo, '--format', 'urls', *args).decode().split('\n')[:-1]


def tokens(repo, *args):
    return [line.split('\t') for line in urls(repo, '--tokens', *args)]


def started(repo, *args):
    return subprocess.Popen(command(repo, 'stream', *args), stdout=subprocess.PIPE, stderr=subprocess.PIPE)


def killed(repo, count, *args):
    """The records that a stream has written when it is killed after `count` of them were read."""
    p = started(repo, '--format', 'jsonl', *args)
    first = b''.join(p.stdout.readline() for _ in range(count))
    p.kill()
    rest = p.stdout.read()
    p.wait(PATIENCE)
    return lines(first + rest)


def once(got, want):
    assert sorted(got) == sorted(want), (len(got), len(set(got)), len(want))


# ---- each page once --------------------------------------------------------------

@test
def every_order_survives_kills_and_new_generations(folder):
    """Tokens of a stream go on with the state and the ranks with which it began."""
    random_, c = rng('orders'), some_corpus(folder)
    c.publish()
    whole = {order: urls(c.repo, '--order', order) for order in ORDERS}
    first = {order: killed(c.repo, random_.randrange(1, 150), '--order', order) for order in ORDERS}
    selected = killed(c.repo, 7, '--query', 'quokka', '--lang', 'en', '--order', 'rank')
    for round_ in range(2):
        c.put([page(n, 'second', '2026-02-0%dT00:00:00Z' % (round_ + 1), [n + 1, 199]) for n in range(50 * round_, 150)])
        c.publish()
        call(c.repo, 'compact')
    for order in ORDERS:
        got = first[order]
        assert [x['url'] for x in got] == whole[order][:len(got)], order
        rest = lines(stream(c.repo, '--resume', got[-1]['token']))
        assert [x['url'] for x in got + rest] == whole[order], order
        assert all('first' in x['text'].split() for x in got + rest), order
    rest = urls(c.repo, '--resume', selected[-1]['token'])
    once([x['url'] for x in selected] + rest, [url(n) for n in range(0, 200, 4)])
    once(urls(c.repo), c.pages)
    verified(c.repo)


@test
def orders_are_what_they_say(folder):
    c = some_corpus(folder)
    c.publish()
    by_date = urls(c.repo, '--order', 'date')
    assert [c.pages[u].date for u in by_date] == sorted(p.date for p in c.pages.values())
    assert urls(c.repo, '--order', '-date', '--limit', 3) and \
        [c.pages[u].date for u in urls(c.repo, '--order', '-date')] == sorted((p.date for p in c.pages.values()), reverse=True)
    assert urls(c.repo, '--order', '-url') == urls(c.repo, '--order', 'url')[::-1]
    assert urls(c.repo, '--order', '-stored') == urls(c.repo, '--order', 'stored')[::-1] == urls(c.repo)[::-1]
    assert urls(c.repo, '--order', 'crawl') == by_date and urls(c.repo) != by_date
    assert urls(c.repo, '--order', '-crawl') == urls(c.repo, '--order', '-date')
    token = tokens(c.repo, '--order', 'crawl')[50][1]
    assert urls(c.repo, '--resume', token) == urls(c.repo, '--order', 'crawl', '--resume', token) == by_date[51:]
    ranked = [r['url'] for r in ask(c.repo, 'search', 'first', '--sort', 'rank', '--limit', 5) if 'url' in r]
    assert urls(c.repo, '--order', 'rank', '--limit', 5) == ranked
    for order in ('url', 'rank'):
        parts = [urls(c.repo, '--order', order, '--partition', '%d/3' % i) for i in (1, 2, 3)]
        once(sum(parts, []), c.pages)
        once(parts[1], urls(c.repo, '--partition', '2/3'))


@test
def limits_continue(folder):
    c = some_corpus(folder)
    whole = tokens(c.repo, '--order', 'url', '--limit', 20)
    assert len(whole) == 20
    assert urls(c.repo, '--resume', whole[4][1]) == [u for u, _ in whole[5:]]
    assert urls(c.repo, '--resume', whole[4][1], '--limit', 20) == [u for u, _ in whole[5:]]
    assert urls(c.repo, '--resume', whole[-1][1]) == []
    refused(c.repo, 'limit', 'stream', '--resume', whole[4][1], '--limit', 21)


@test
def languages_without_an_index(folder):
    """Without an index, or with --latest, the pages are read; with one, its column answers: both find the same."""
    c = Corpus(folder)
    german = 'Der schnelle braune Fuchs springt ueber den faulen Hund, und alle Kinder freuen sich darueber sehr.'
    english = 'The quick brown fox jumps over the lazy dog, and all of the children are very happy about it.'
    c.put([Page('http://a.example/%d' % n, ('<p>%s %d</p>' % (german if n % 3 == 0 else english, n)).encode())
           for n in range(30)])
    want = ['http://a.example/%d' % n for n in range(0, 30, 3)]
    once(urls(c.repo, '--lang', 'de'), want)
    c.publish()
    for more in ([], ['--latest'], ['--order', 'url'], ['--order', 'url', '--latest'], ['--versions']):
        once(urls(c.repo, '--lang', 'DE', *more), want)
    assert len(urls(c.repo, '--lang', 'de', '--order', 'date', '--latest', '--limit', 4)) == 4


# ---- tokens and selections --------------------------------------------------------

@test
def a_selection_that_is_too_large_for_a_token(folder):
    c = some_corpus(folder)
    hosts = folder / 'hosts'
    hosts.write_text(''.join('h%d.example\n' % n for n in range(5000)) + 'alpha.example\nbeta.example\n')
    whole = tokens(c.repo, '--sites', hosts)
    once([u for u, _ in whole], [u for u in c.pages if 'gamma' not in u])
    assert all(len(t) < 300 for _, t in whole), whole[0]
    assert urls(c.repo, '--resume', whole[9][1]) == [u for u, _ in whole[10:]]
    assert urls(c.repo, '--resume', whole[9][1], '--sites', hosts) == [u for u, _ in whole[10:]]
    refused(c.repo, 'site', 'stream', '--resume', whole[9][1], '--site', 'alpha.example')
    shutil.rmtree(c.repo / 'streams')
    refused(c.repo, 'selection', 'stream', '--resume', whole[9][1])
    assert urls(c.repo, '--resume', whole[9][1], '--sites', hosts) == [u for u, _ in whole[10:]]


@test
def a_kept_file_that_is_damaged(folder):
    c = some_corpus(folder)
    whole = tokens(c.repo, '--order', 'url', '--latest')
    kept, = (c.repo / 'streams' / 'shelf').iterdir()
    for at in (3, 20, 40, 300):
        data = bytearray(kept.read_bytes())
        data[at] ^= 1
        (folder / 'good').write_bytes(kept.read_bytes())
        kept.write_bytes(data)
        refused(c.repo, 'damaged', 'stream', '--resume', whole[9][1])
        kept.write_bytes((folder / 'good').read_bytes())
    assert urls(c.repo, '--resume', whole[9][1]) == [u for u, _ in whole[10:]]


@test
def tokens_of_others_are_refused(folder):
    a, b = some_corpus(folder, name='a'), some_corpus(folder, name='b')
    token = tokens(a.repo, '--limit', 1)[0][1]
    refused(b.repo, 'another repository', 'stream', '--resume', token)
    refused(a.repo, 'order', 'stream', '--resume', token, '--order', 'url')
    refused(a.repo, 'site', 'stream', '--resume', token, '--site', 'alpha.example')
    for wrong in ('x', token[:-1], token + token, token + 'A', '../../etc/passwd', 'A' * 5000):
        refused(a.repo, 'not a token', 'stream', '--resume', wrong)


@test
def wrong_options(folder):
    c = some_corpus(folder, count=3)
    for status, word, args in ((2, 'order', ['--order', 'sideways']), (2, 'partition', ['--partition', '0/3']),
                               (2, 'partition', ['--partition', '4/3']), (2, 'format', ['--format', 'xml']),
                               (2, 'limit', ['--limit', '0']), (2, 'name', ['--name', 'a/b']), (2, 'lang', ['--lang', 'xx']),
                               (1, 'index', ['--query', 'quokka']), (1, 'index', ['--order', 'rank']),
                               (1, 'snapshot', ['--latest', '--snapshot', '1']), (1, 'no-such', ['--snapshot', 'no-such']),
                               (1, 'join', ['--join', 'crew']), (1, 'snapshot', ['--versions', '--snapshot', '1'])):
        p = call(c.repo, 'stream', *args, status=status)
        assert word.encode() in p.stderr and not p.stdout, (args, p.stderr)
    c.publish()
    p = call(c.repo, 'stream', '--query', '(quokka', status=1)
    assert p.stderr and not p.stdout


# ---- named streams -----------------------------------------------------------------

@test
def a_named_stream_continues(folder):
    c = some_corpus(folder, count=5000)     # far more than fits into a pipe, so that it cannot end before it is killed
    first = killed(c.repo, 2500, '--name', 'nightly', '--order', 'url')
    c.put([page(n, 'second', '2026-03-01T00:00:00Z') for n in range(300)])
    call(c.repo, 'compact')
    listed, = ask(c.repo, 'stream', 'list')
    assert listed['name'] == 'nightly' and not listed['finished'] and listed['records'] <= len(first), listed
    rest = lines(stream(c.repo, '--name', 'nightly'))
    assert set(x['url'] for x in first + rest) == set(c.pages) and all('first' in x['text'] for x in rest)
    assert len(first) + len(rest) - len(c.pages) <= 1000
    assert stream(c.repo, '--name', 'nightly') == b''
    refused(c.repo, 'site', 'stream', '--name', 'nightly', '--site', 'alpha.example')
    assert ask(c.repo, 'stream', 'list')[0]['finished']
    done(ask(c.repo, 'stream', 'drop', 'nightly'))
    assert ask(c.repo, 'stream', 'list') == []
    refused(c.repo, 'nightly', 'stream', 'drop', 'nightly')
    once(urls(c.repo, '--name', 'nightly'), c.pages)


@test
def a_name_is_used_by_one_process(folder):
    c = some_corpus(folder, count=3000)
    p = started(c.repo, '--name', 'busy')
    p.stdout.readline()
    refused(c.repo, 'busy', 'stream', '--name', 'busy')
    refused(c.repo, 'busy', 'stream', 'drop', 'busy')
    p.kill()
    p.stdout.close()
    p.wait(PATIENCE)
    assert len(urls(c.repo, '--name', 'busy')) > 0


@test
def the_file_of_a_named_stream_is_damaged(folder):
    c = some_corpus(folder)
    urls(c.repo, '--name', 'torn', '--limit', 5)
    file = c.repo / 'streams' / 'names' / 'torn.stream'
    data = bytearray(file.read_bytes())
    for at in range(100, len(data), 8192):
        data[at] ^= 4
    file.write_bytes(data)
    refused(c.repo, 'damaged', 'stream', '--name', 'torn')
    assert ask(c.repo, 'stream', 'list')[0]['damaged']
    done(ask(c.repo, 'stream', 'drop', 'torn'))
    once(urls(c.repo, '--name', 'torn'), c.pages)


@test
def the_newest_place_of_a_named_stream_is_damaged(folder):
    """One flipped byte: it is said, the stream goes on from the place before, and verify names it."""
    c = some_corpus(folder, count=3000)
    p = started(c.repo, '--name', 'set-back')
    for _ in range(1200):
        p.stdout.readline()
    p.kill()
    p.stdout.close()
    p.wait(PATIENCE)
    file = c.repo / 'streams' / 'names' / 'set-back.stream'
    sound = file.read_bytes()
    slots = [sound[at:at + 8192] for at in range(0, len(sound), 8192)]
    newest = max(range(len(slots)), key=lambda i: int.from_bytes(slots[i][8:16], 'little'))
    verified(c.repo)
    for at, told in ((newest * 8192 + 70, True), (newest * 8192 + 600, True), ((newest + 1) % len(slots) * 8192 + 70, False)):
        data = bytearray(sound)
        data[at] ^= 4
        file.write_bytes(data)
        verdict = ask(c.repo, 'verify', status=1)[0]
        assert [f['file'] for f in verdict['problems']] == ['streams/names/set-back.stream'], verdict
        # A limit would be another selection, so the stream is left after a few records.
        p = started(c.repo, '--name', 'set-back')
        p.stdout.readline()
        p.kill()
        words = p.communicate(timeout=PATIENCE)[1]
        assert (b'set-back.stream is damaged' in words and b'a second time' in words) == told, (at, words)
    file.write_bytes(sound)
    verified(c.repo)


# ---- holding -----------------------------------------------------------------------

@test
def a_stream_holds_its_snapshot(folder):
    c = some_corpus(folder, count=3000)
    seal = ask(c.repo, 'snapshot', '--name', 'mine')[0]['snapshot']
    p = started(c.repo, '--snapshot', 'mine')
    p.stdout.readline()
    refused(c.repo, 'stream', 'snapshot', 'drop', 'mine')
    p.stdout.read()
    assert p.wait(PATIENCE) == 0
    call(c.repo, 'snapshot', 'drop', seal)      # a finished stream does not hold it
    killed(c.repo, 1, '--latest')
    held = [s for s in ask(c.repo, 'snapshot', 'list') if any(h.startswith('stream') for h in s['held_by'])]
    assert len(held) == 1 and held[0]['expires'], held


@test
def resuming_again_and_again_adds_no_holder(folder):
    c = some_corpus(folder)
    token = tokens(c.repo, '--latest', '--limit', 50)[0][1]
    for _ in range(5):
        token = killed(c.repo, 1, '--resume', token)[0]['token']
    held, = ask(c.repo, 'snapshot', 'list')
    assert len(held['held_by']) <= 2, held      # that of the stream, and that of streams that have ended
    for _ in range(5):
        urls(c.repo, '--resume', token)
    held, = ask(c.repo, 'snapshot', 'list')
    assert held['held_by'] == ['stream finished'], held


@test
def a_repository_that_cannot_be_written_to(folder):
    become_root()
    with small_disk(folder / 'disk', '64m'):
        c = Corpus(folder / 'disk')
        c.put([page(n, 'first') for n in range(50)])
        c.publish()
        remount(folder / 'disk', 'ro')
        once(urls(c.repo), c.pages)
        once(urls(c.repo, '--latest'), c.pages)
        once(urls(c.repo, '--versions'), c.pages)
        for args in ([], ['--latest'], ['--order', 'rank'], ['--query', 'quokka']):
            whole = tokens(c.repo, *args)
            assert urls(c.repo, '--resume', whole[4][1]) == [u for u, _ in whole[5:]], args
        assert call(c.repo, 'stream', '--name', 'x', status=1).stderr
        remount(folder / 'disk', 'rw')


# ---- formats -------------------------------------------------------------------------

@test
def archives_can_be_imported_again(folder):
    c = some_corpus(folder)
    for name in ('warc', 'warc.gz', 'warc.zst'):
        (folder / ('out.' + name)).write_bytes(stream(c.repo, '--format', name))
        copy = folder / ('copy-' + name)
        call(copy, 'init')
        assert done(ask(copy, 'import', folder / ('out.' + name)))['pages'] == len(c.pages)
        once(urls(copy), c.pages)
    text = stream(c.repo, '--format', 'text', '--limit', 3).decode()
    assert text.count('WARC-Type: conversion') == 3 and text.count('WebBase-Token: ') == 3 and '<p>' not in text


@test
def hostile_pages_are_still_json(folder):
    random_, c = rng('hostile'), Corpus(folder)
    c.put([Page('http://h.example/%d' % n, random_.randbytes(3000) + b'<a href="http://x.example/\x80\xff">\x00\xc3(</a>',
                type=random_.choice(['text/html', 'text/plain; charset=utf-16', 'application/xml', 'image/png', 'x']))
           for n in range(60)])
    got = [json.loads(line.decode()) for line in stream(c.repo).split(b'\n')[:-1]]
    once([g['url'] for g in got], c.pages)


@test
def captures_and_revisits(folder):
    c = Corpus(folder, history='all')
    for day in range(1, 7):
        c.put([page(n, 'odd' if day % 3 else 'even', '2026-01-0%dT00:00:00Z' % day) for n in range(10)])
    got = lines(stream(c.repo, '--versions'))
    once([(g['url'], g['time']) for g in got], [(url(n), '2026-01-0%dT00:00:00.000Z' % d) for n in range(10) for d in range(1, 7)])
    assert sum(g.get('revisit', False) for g in got) == 40 and all(g['text'] for g in got)
    for k in (0, 3, 31, 58, 59):
        rest = lines(stream(c.repo, '--resume', got[k]['token']))
        assert [(g['url'], g['time']) for g in got[:k + 1] + rest] == [(g['url'], g['time']) for g in got], k
    some = lines(stream(c.repo, '--versions', '--since', '2026-01-03', '--until', '2026-01-05', '--order', 'url'))
    assert len(some) == 20
    (folder / 'all.warc').write_bytes(stream(c.repo, '--versions', '--format', 'warc'))
    copy = Corpus(folder, 'copy', history='all')
    done(ask(copy.repo, 'import', folder / 'all.warc'))
    assert ask(copy.repo, 'versions', url(3)) == ask(c.repo, 'versions', url(3))


@test
def a_damaged_segment(folder):
    """What cannot be read is reported; everything else is delivered."""
    random_, c = rng('damage'), Corpus(folder)
    c.put([Page('http://h.example/%d' % n, b'<p>%d</p>' % n + random_.randbytes(2000)) for n in range(300)])
    segment, = (c.repo / 'pages').iterdir()
    data = bytearray(segment.read_bytes())
    data[len(data) // 2:len(data) // 2 + 50] = bytes(50)
    segment.write_bytes(data)
    for order in ('stored', 'url'):
        p = call(c.repo, 'stream', '--format', 'warc', '--order', order, status=1)
        assert b'damaged' in p.stderr, p.stderr
        got = p.stdout.count(b'WARC-Type: response')
        assert 0 < got < 300, got


# ---- handlers ------------------------------------------------------------------------

def handler(folder, source):
    """A shared object from a file of the examples, or from a text."""
    name = source if source.isidentifier() else 'own'
    file, so = ROOT / 'examples' / 'handlers' / (name + '.c'), folder / (name + '.so')
    if name == 'own':
        file = folder / 'own.c'
        file.write_text(source)
    subprocess.run(['cc', '-shared', '-fPIC', '-I', ROOT / 'include', '-o', so, file], check=True)
    return so


# Writes URLs to the file or standard output, in pieces that are not lines.
URLS = r'''
#include <stdio.h>
#include <webbase/handler.h>
static FILE *out;
int webbase_handler_init(const struct webbase_host *host, void **state_out)
{
    *state_out = NULL;
    out = host->argument[0] ? fopen(host->argument, "w") : stdout;
    return out ? WEBBASE_OK : WEBBASE_FAILED;
}
int webbase_handler_process(void *state, const struct webbase_record *record)
{
    (void)state;
    for (size_t i = 0; i < record->url.len; i++) {
        fputc(record->url.ptr[i], out);
        fflush(out);
    }
    fputc('\n', out);
    return WEBBASE_OK;
}
int webbase_handler_finish(void *state, int complete)
{
    (void)state, (void)complete;
    return (out == stdout ? fflush(out) : fclose(out)) == 0 ? WEBBASE_OK : WEBBASE_FAILED;
}
'''


@test
def handlers_that_merge_give_one_result(folder):
    """Several workers write what one writes, to a file and to standard output."""
    c = some_corpus(folder, count=120)
    anchors, words = handler(folder, 'anchors'), handler(folder, 'words')
    call(c.repo, 'stream', '--handler', '%s=%s' % (anchors, folder / 'one'))
    want, counted = (folder / 'one').read_bytes(), stream(c.repo, '--handler', '%s=20' % words)
    assert len(want.splitlines()) > 300 and len(counted.splitlines()) == 20, (want[:200], counted[:200])
    for n in (2, 5):
        call(c.repo, 'stream', '--workers', n, '--handler', '%s=%s' % (anchors, folder / 'many'))
        assert (folder / 'many').read_bytes() == want, n
        assert stream(c.repo, '--workers', n, '--handler', anchors) == want, n
        assert stream(c.repo, '--workers', n, '--handler', '%s=20' % words) == counted, n
    assert sorted(p.name for p in folder.iterdir() if p.name.startswith(('one', 'many'))) == ['many', 'one']
    p = call(c.repo, 'stream', '--workers', 2, '--handler', '%s=%s' % (anchors, folder / 'none' / 'out'), status=1)
    assert b'none/out' in p.stderr and b'merge' in p.stderr, p.stderr


@test
def handlers_that_cannot_merge_lose_nothing(folder):
    """A file for each worker, which the command names; on standard output, one worker after the other."""
    c, so, out = some_corpus(folder, count=120), handler(folder, URLS), folder / 'urls'
    p = call(c.repo, 'stream', '--workers', 3, '--handler', '%s=%s' % (so, out))
    parts = [(folder / ('urls.%d' % n)).read_text().split() for n in (1, 2, 3)]
    assert all(parts) and not out.exists()
    once(sum(parts, []), c.pages)
    assert ('%s.1 to %s.3' % (out, out)).encode() in p.stderr, p.stderr
    p = call(c.repo, 'stream', '--workers', 3, '--handler', so)
    assert p.stdout.decode().split() == sum(parts, []) and p.stderr == b'', p.stderr
    p = call(c.repo, 'stream', '--workers', 3, '--handler', '%s=%s' % (so, folder / 'none' / 'out'), status=1)
    assert b'3 of 3 workers failed' in p.stderr and b'cannot merge' not in p.stderr, p.stderr
    p = call(c.repo, 'stream', '--workers', 3, '--handler', folder / 'none.so', status=1)
    assert p.stderr.count(b'cannot load') == 1, p.stderr


@test
def damage_is_left_out_of_what_workers_make(folder):
    """The result is made of everything else, and the exit status tells."""
    random_, c, so = rng('damaged parts'), Corpus(folder), handler(folder, 'anchors')
    c.put([Page('http://h.example/%d' % n, b'<a href=/%d>to</a>' % n + random_.randbytes(2000).hex().encode())
           for n in range(300)])
    segment, = (c.repo / 'pages').iterdir()
    data = bytearray(segment.read_bytes())
    data[len(data) // 2:len(data) // 2 + 50] = bytes(50)
    segment.write_bytes(data)
    for n in (1, 2):
        p = call(c.repo, 'stream', '--workers', n, '--handler', '%s=%s' % (so, folder / str(n)), status=1)
        assert b'damaged' in p.stderr and b'failed' not in p.stderr, p.stderr
    one, two = ((folder / name).read_bytes() for name in '12')
    assert one == two and 0 < len(one.splitlines()) < 300


# ---- ending --------------------------------------------------------------------------

@test
def a_signal_says_how_to_go_on(folder):
    c = some_corpus(folder, count=3000)
    p = started(c.repo, '--format', 'jsonl')
    first = [p.stdout.readline() for _ in range(10)]
    p.send_signal(signal.SIGTERM)
    rest, errors = p.stdout.read(), p.stderr.read()
    assert p.wait(PATIENCE) == 1 and b'--resume' in errors, errors
    token = errors.decode().split('--resume ')[1].split()[0]
    before = lines(b''.join(first) + rest)
    once([x['url'] for x in before] + urls(c.repo, '--resume', token), c.pages)


@test
def a_reader_that_goes_away(folder):
    c = some_corpus(folder, count=3000)
    p = started(c.repo)
    p.stdout.readline()
    p.stdout.close()
    assert p.wait(PATIENCE) == 1 and p.stderr.read() == b''


@test
def what_json_says_at_the_end(folder):
    c = some_corpus(folder, count=5)
    p = call(c.repo, 'stream', '--json', '--format', 'urls')
    end = json.loads(p.stderr)
    assert end['event'] == 'done' and end['records'] == 5 and end['damaged'] == 0, end
    assert urls(c.repo, '--resume', end['token']) == []


run()
