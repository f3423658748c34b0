#!/usr/bin/env python3
"""Files of another format: each is refused with the number that it has, and left as it is."""
from e2e import *

XXH3 = ctypes.CDLL('libxxhash.so.0').XXH3_64bits
XXH3.restype, XXH3.argtypes = ctypes.c_uint64, (ctypes.c_char_p, ctypes.c_size_t)
OTHER = 'has format 2; this program reads format 1'
URL = 'http://www.alpha.example/dir1/1.html'
LOCKS = ('lock', 'busy', 'gate')     # files that commands make and that have nothing in them


def files(folder):
    return {str(p.relative_to(folder)): p.read_bytes() for p in sorted(folder.rglob('*'))
            if p.is_file() and not p.name.endswith(LOCKS)}


def corpus(folder, *design):
    repo = folder / 'repo'
    call(repo, 'init', *design)
    call(repo, 'import', archive(folder / 'a.warc', some_pages(rng('corpus'), 40)))
    call(repo, 'update')
    call(repo, 'index')
    return repo


def with_number(data, at, number, start=None, end=None, check=None):
    """The bytes with another number at an offset, and the checksum of the bytes from start to end in its place."""
    data = bytearray(data)
    data[at:at + len(number)] = number
    if check is not None:
        data[check:check + 8] = XXH3(bytes(data[start:end]), end - start).to_bytes(8, 'little')
    return bytes(data)


def head(number_at, check_at, start=0):
    return lambda data: with_number(data, start + number_at, b'\2', start, start + check_at, start + check_at)


def manifest_of_webdb(data):
    return with_number(data, 8, b'\2', 0, len(data) - 8, len(data) - 8)


def manifest_of_generation(data):
    lines_, end = data.replace(b'webbase generation 1\n', b'webbase generation 2\n').rsplit(b'checksum ', 1)
    return lines_ + b'checksum %016x\n' % XXH3(lines_, len(lines_))


def both_roots(data):
    return with_number(with_number(data, 7, b'2'), 4096 + 7, b'2')


def text(first):
    return lambda data: first.encode() + b'\nwhatever follows in that format\n'


# The file, what gives it another number, and commands that must refuse it.
CASES = (
    ('webbase.repo', text('webbase repository\nformat 2'), ['stat'], ['verify'], ['compact'], ['import', 'a.warc'],
     ['get', URL]),
    ('catalog.wbt', both_roots, ['stat'], ['compact'], ['import', 'a.warc'], ['get', URL]),
    ('pages/00000001.seg', head(4, 56), ['get', URL]),
    ('pages/00000001.seg', head(4, 72, 64), ['get', URL]),      # its first block
    ('journal/00000002.wbe', head(4, 24), ['update']),
    ('webdb/00000001/manifest', manifest_of_webdb, ['webdb', 'count'], ['update'], ['update', '--rebuild']),
    ('webdb/00000001/pages.wbt', head(8, 24), ['webdb', 'page', URL]),
    ('webdb/00000001/degrees.wbc', head(8, 56), ['webdb', 'page', URL]),
    ('index/00000001/manifest', manifest_of_generation, ['search', 'the']),
    ('index/00000001/dictionary', head(8, 56), ['search', 'the']),
    ('index/00000001/out.wbg', head(8, 56), ['search', 'the']),
    ('cycle', text('webbase cycle 2'), ['stat'], ['run', '--cycles', '1']),
    ('thresholds', text('webbase thresholds 2'), ['generate']),
)


@test
def another_format_is_refused_and_left_alone(folder):
    repo = corpus(folder)
    call(repo, 'import', archive(folder / 'more.warc', some_pages(rng('more'), 3, 'www.beta.example')))
    for name, change, *commands in CASES:
        copy = folder / 'copy'
        shutil.copytree(repo, copy)
        file = copy / name
        file.write_bytes(change(file.read_bytes() if file.exists() else b''))
        before = files(copy)
        for args in commands:
            message = refused(copy, OTHER, *args, one_line=False, cwd=folder)
            assert name in message, (name, message)
            after = files(copy)
            after.pop('dispenser.db', None)     # generate makes it first
            assert after == before, (name, args, [n for n in after if after[n] != before.get(n)])
        if name not in ('webbase.repo', 'thresholds'):      # one cannot be verified, the other is not
            problems = ask(copy, 'verify', status=1)[-1]['problems']
            assert any(OTHER in p['message'] for p in problems), (name, problems)
        shutil.rmtree(copy)
    verified(repo)


@test
def an_index_of_another_format_is_made_again(folder):
    repo = corpus(folder)
    manifest = repo / 'index/00000001/manifest'
    hits = lambda: [h for h in ask(repo, 'search', 'site:www.alpha.example') if 'ms' not in h]
    before = hits()
    manifest.write_bytes(manifest_of_generation(manifest.read_bytes()))
    assert OTHER in call(repo, 'index').stderr.decode()
    assert hits() == before and before
    verified(repo)


@test
def what_is_under_way_or_learned_can_be_deleted(folder):
    """As docs/formats/README.md says: nothing but what it says there is lost."""
    repo = corpus(folder)
    call(repo, 'stream', '--name', 'mine')
    call(repo, 'generate')
    stat = ask(repo, 'stat')[0]
    for name in 'index', 'streams', 'spool', 'lines', 'control':
        shutil.rmtree(repo / name, ignore_errors=True)
    for name in 'thresholds', 'cycle', 'nodes.busy', 'webbase.lock', 'compact.lock', 'cycle.lock':
        (repo / name).unlink(missing_ok=True)
    verified(repo)
    call(repo, 'index')
    assert len(ask(repo, 'stream', '--name', 'mine')) == len(ask(repo, 'stream', '--latest')) >= 40
    call(repo, 'generate')
    assert ask(repo, 'stat')[0]['pages'] == stat['pages']
    verified(repo)


run()
