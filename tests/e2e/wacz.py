#!/usr/bin/env python3
"""WACZ files: what export writes is read by Python's zipfile, what others write is imported, and damage is reported."""
import base64, io, re, signal, zipfile

from e2e import *

HEADER = re.compile(r'(\S+) (\d{14}) (\{.*\})$')


def pages_of(name, count=60):
    """HTML pages of several hosts, among them some that are not pages to browse."""
    random_ = rng(name)
    pages = [Page('http://www.site%d.example/p/%d?b=2&a=%d' % (i % 4, i, i), b'%d ' % i + html(random_),
                  '2026-01-02T03:%02d:%02dZ' % (i // 60, i % 60)) for i in range(count)]
    pages.append(Page('http://www.site1.example/gone', b'<title>gone</title>', status='404 Not Found'))
    pages.append(Page('http://www.site2.example/n.txt', b'notes\n', type='text/plain'))
    pages.append(Page('http://www.site3.example/logo.png', bytes(range(256)), type='image/png'))
    return pages


def stored(repo):
    """{URL: body} of all pages of a repository."""
    found = {}
    for r in call(repo, 'export', '--warc', '-').stdout.split(b'WARC/1.1\r\n')[2:]:
        url = r.partition(b'WARC-Target-URI: ')[2].partition(b'\r\n')[0].decode()
        found[url] = r.split(b'\r\n\r\n', 2)[2].removesuffix(b'\r\n\r\n')
    return found


def base32_sha1(data):
    return base64.b32encode(hashlib.sha1(data).digest()).decode()


def read_index(z):
    """The lines of index.cdx.gz, each block found through index.idx: (urlkey, time, dict)."""
    data = z.read('indexes/index.cdx.gz')
    meta, *blocks = z.read('indexes/index.idx').decode().splitlines()
    assert json.loads(meta.partition(' 0 ')[2]) == {'format': 'cdxj-gzip-1.0', 'filename': 'index.cdx.gz'}, meta
    lines_, end = [], 0
    for block in blocks:
        place = json.loads(block[block.index(' {'):])
        piece = data[place['offset']:place['offset'] + place['length']]
        assert place['offset'] == end and place['digest'] == 'sha256:' + hashlib.sha256(piece).hexdigest(), block
        text = gzip.decompress(piece).decode()
        assert text.startswith(block[:block.index(' {')]), block
        end += len(piece)
        lines_ += text.splitlines()
    assert end == len(data) and lines_ == sorted(lines_)
    return [(m[1], m[2], json.loads(m[3])) for m in map(HEADER.match, lines_)]


def check_package(z):
    names = z.namelist()
    assert z.testzip() is None and len(set(names)) == len(names)
    package = json.loads(z.read('datapackage.json'))
    assert package['profile'] == 'data-package' and package['wacz_version'] == '1.1.1', package
    assert re.match(r'\d{4}-\d\d-\d\dT', package['created']) and 'WebBase' in package['software'], package
    listed = {r['path']: r for r in package['resources']}
    assert set(listed) == {n for n in names if not n.startswith('datapackage')}, listed
    for name, r in listed.items():
        data = z.read(name)
        assert r['bytes'] == len(data) and r['hash'] == 'sha256:' + hashlib.sha256(data).hexdigest(), name
        assert r['name'] == name.rpartition('/')[2], r
    digest = json.loads(z.read('datapackage-digest.json'))
    wanted = 'sha256:' + hashlib.sha256(z.read('datapackage.json')).hexdigest()
    assert digest == {'path': 'datapackage.json', 'hash': wanted}, digest


def check_wacz(path, pages):
    """Everything that a reader of a WACZ relies on. pages: [Page], one capture each."""
    with zipfile.ZipFile(path) as z:
        check_package(z)
        archives = [n for n in z.namelist() if n.startswith('archive/')]
        assert archives == ['archive/data.warc.gz'], archives
        assert z.getinfo(archives[0]).compress_type == zipfile.ZIP_STORED
        data, by_url = z.read(archives[0]), {p.url: p for p in pages}
        index = read_index(z)
        assert sorted(x[2]['url'] for x in index) == sorted(by_url), [x[2]['url'] for x in index]
        for urlkey, time_, x in index:
            page = by_url[x['url']]
            assert list(x) == ['url', 'mime', 'status', 'digest', 'length', 'offset', 'filename'], x
            assert urlkey.startswith('example,site') and urlkey == urlkey.lower(), urlkey
            assert time_ == re.sub(r'\D', '', page.date) and x['filename'] == 'data.warc.gz', (time_, x)
            assert x['mime'] == page.type.partition(';')[0] and x['status'] == page.status[:3], x
            assert x['digest'] == 'sha1:' + base32_sha1(page.body), x
            record_ = gzip.decompress(data[int(x['offset']):int(x['offset']) + int(x['length'])])
            assert record_.startswith(b'WARC/1.1\r\n') and b'WARC-Target-URI: %s\r\n' % page.url.encode() in record_
            assert record_.endswith(page.body + b'\r\n\r\n'), page.url
        head, *entries = [json.loads(x) for x in z.read('pages/pages.jsonl').decode().splitlines()]
        assert head['format'] == 'json-pages-1.0' and head['hasText'] is True and 'url' not in head, head
        browsed = {p.url: p for p in pages if p.type.startswith('text/html') and p.status.startswith('2')}
        assert sorted(e['url'] for e in entries) == sorted(browsed), entries
        assert len({e['id'] for e in entries}) == len(entries)
        for e in entries:
            body = browsed[e['url']].body.decode()
            assert e['ts'] == browsed[e['url']].date.replace('Z', '.000Z'), e
            assert e['title'] == ' '.join(re.search('<title>(.*?)</title>', body)[1].split()), e
            assert e['text'].split()[-1] in body and '<' not in e['text'], e


@test
def what_is_exported_is_a_wacz(folder):
    repo, pages, out = folder / 'repo', pages_of('export'), folder / 'out.wacz'
    ask(repo, 'import', archive(folder / 'in.warc', pages))
    end = done(ask(repo, 'export', '--wacz', out))
    assert end['pages'] == len(pages) and end['records'] == len(pages) + 1 and end['errors'] == 0, end
    check_wacz(out, pages)
    assert os.listdir(folder).count('out.wacz.tmp') == 0
    some = folder / 'some.wacz'
    end = done(ask(repo, 'export', '--wacz', some, '--site', 'www.site1.example'))
    chosen = [p for p in pages if '//www.site1.' in p.url]
    assert end['pages'] == len(chosen), end
    check_wacz(some, chosen)
    refused(repo, some, 'export', '--wacz', some)
    check_wacz(some, chosen)
    ask(repo, 'export', '--wacz', some, '--force')
    check_wacz(some, pages)
    piped = call(repo, 'export', '--wacz', '-').stdout
    (folder / 'piped.wacz').write_bytes(piped)
    check_wacz(folder / 'piped.wacz', pages)
    refused(repo, '--warc', 'export', '--wacz', some, '--warc', folder / 'x.warc', status=2, one_line=False)
    call(repo, 'snapshot', '--name', 'then')
    ask(repo, 'import', archive(folder / 'more.warc', [Page('http://www.site9.example/', html(rng('more')))]))
    ask(repo, 'export', '--wacz', folder / 'then.wacz', '--snapshot', 'then')
    check_wacz(folder / 'then.wacz', pages)


@test
def what_is_exported_is_imported(folder):
    repo, pages = folder / 'repo', pages_of('again')
    ask(repo, 'import', archive(folder / 'in.warc', pages))
    ask(repo, 'export', '--wacz', folder / 'out.wacz')
    end = done(ask(folder / 'other', 'import', folder / 'out.wacz'))
    assert end['pages'] == len(pages) and end['errors'] == 0 and end['files'] == 1, end
    assert end['records'] == len(pages) + 1, end
    assert stored(folder / 'other') == {p.url: p.body for p in pages}
    os.rename(folder / 'out.wacz', folder / 'nameless')     # the content says what it is
    end = done(ask(folder / 'third', 'import', folder / 'nameless'))
    assert end['pages'] == len(pages) and end['errors'] == 0, end
    verified(folder / 'third')


@test
def versions_travel_in_a_wacz(folder):
    repo, url = folder / 'repo', 'http://www.site.example/'
    captures = [Page(url, b'<title>%s</title>' % body, '2026-0%d-01T00:00:00Z' % (n + 1))
                for n, body in enumerate((b'A', b'A', b'B', b'A'))]
    call(repo, 'init', '--history', 'all')
    ask(repo, 'import', archive(folder / 'in.warc', captures))
    end = done(ask(repo, 'export', '--wacz', folder / 'out.wacz', '--versions'))
    assert end['captures'] == 4 and end['revisits'] == 2, end
    with zipfile.ZipFile(folder / 'out.wacz') as z:
        check_package(z)
        index = read_index(z)
        assert [x[1][:6] for x in index] == ['202601', '202602', '202603', '202604'], index
        assert [x[2]['mime'] for x in index] == ['text/html', 'warc/revisit', 'text/html', 'warc/revisit'], index
        entries = [json.loads(x) for x in z.read('pages/pages.jsonl').decode().splitlines()[1:]]
        assert [e['title'] for e in entries] == ['A', 'B'] and len({e['id'] for e in entries}) == 2, entries
    call(folder / 'other', 'init', '--history', 'all')
    end = done(ask(folder / 'other', 'import', folder / 'out.wacz'))
    assert end['errors'] == 0 and end['revisits'] == 2, end
    assert ask(repo, 'versions', url) == ask(folder / 'other', 'versions', url)


def foreign(path, pages, mode=zipfile.ZIP_STORED, spoil=lambda name, data: data, package=True, extra=()):
    """A WACZ as another tool writes it: two archives and no index. spoil changes what is stored, but not its hash."""
    halves = {'archive/part-0.warc.gz': b''.join(gzip.compress(p.record()) for p in pages[::2]),
              'archive/part-1.warc': b''.join(p.record() for p in pages[1::2])}
    with zipfile.ZipFile(path, 'w') as z:
        for name, data in halves.items():
            z.writestr(name, spoil(name, data), mode)
        z.writestr('pages/pages.jsonl', '{"format": "json-pages-1.0", "id": "pages"}\n', zipfile.ZIP_DEFLATED)
        for name, data in extra:
            z.writestr(name, data)
        if package:
            resources = [{'name': n.rpartition('/')[2], 'path': n, 'bytes': len(d),
                          'hash': 'sha256:' + hashlib.sha256(d).hexdigest()} for n, d in halves.items()]
            text = json.dumps({'profile': 'data-package', 'resources': resources})
            z.writestr('datapackage.json', text, zipfile.ZIP_DEFLATED)
    return path


@test
def what_others_write_is_imported(folder):
    pages = pages_of('foreign', 40)
    for mode in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        repo = folder / ('repo-%d' % mode)
        end = done(ask(repo, 'import', foreign(folder / 'in.wacz', pages, mode)))
        assert end['pages'] == len(pages) and end['errors'] == 0 and end['files'] == 1, end
        assert stored(repo) == {p.url: p.body for p in pages}


@test
def hashes_are_compared(folder):
    pages = pages_of('hashes', 10)
    other = Page('http://www.site5.example/', b'added by somebody else').record()
    path = foreign(folder / 'in.wacz', pages, spoil=lambda name, data: data + other if name.endswith('.warc') else data)
    p = call(folder / 'repo', 'import', path, '--json', status=1)
    errors = [e for e in lines(p.stdout) if e['event'] == 'error']
    assert [e['file'] for e in errors] == ['%s:archive/part-1.warc' % path], errors
    assert 'datapackage.json' in errors[0]['message'], errors
    assert done(lines(p.stdout))['pages'] == len(pages) + 1
    path = foreign(folder / 'bare.wacz', pages, package=False)
    events = ask(folder / 'bare', 'import', path)
    assert done(events)['pages'] == len(pages) and done(events)['errors'] == 1, events[-1]


@test
def damage_is_reported_where_it_is(folder):
    pages = pages_of('damage', 10)
    path = foreign(folder / 'in.wacz', pages)
    data = bytearray(path.read_bytes())
    offset = gzip_starts(data)[2]
    data[offset + 200] ^= 0xff
    path.write_bytes(data)
    p = call(folder / 'repo', 'import', path, '--json', status=1)
    errors = [e for e in lines(p.stdout) if e['event'] == 'error']
    start = zipfile.ZipFile(path).getinfo('archive/part-0.warc.gz').header_offset + 30 + len('archive/part-0.warc.gz')
    assert errors[0]['file'] == '%s:archive/part-0.warc.gz' % path and errors[0]['offset'] == offset - start, errors
    assert any('CRC' in e['message'] for e in errors), errors
    assert done(lines(p.stdout))['pages'] >= len(pages) - 1, errors
    text = call(folder / 'again', 'import', path, status=1).stderr.decode()
    assert 'in.wacz:archive/part-0.warc.gz' in text, text


def gzip_starts(data):
    return [m.start() for m in re.finditer(rb'\x1f\x8b\x08', data)]


@test
def files_that_are_not_wacz(folder):
    pages = pages_of('bad', 20)
    whole = foreign(folder / 'in.wacz', pages).read_bytes()
    out = io.BytesIO()
    with zipfile.ZipFile(out, 'w') as z:
        z.writestr('readme.txt', 'text')
    bad = {'cut': whole[:len(whole) // 2], 'empty': b'', 'text': b'this is no archive\n' * 100, 'other': out.getvalue(),
           'tail': whole[:-30], 'front': whole[100:]}
    for name, data in bad.items():
        path = folder / (name + '.wacz')
        path.write_bytes(data)
        refused(folder / 'repo', path, 'import', path)
    call(folder / 'repo', 'import', folder, status=1)
    refused(folder / 'repo', 'nowhere.wacz', 'import', folder / 'nowhere.wacz')
    good = foreign(folder / 'good.wacz', pages)     # the others are imported all the same
    p = call(folder / 'both', 'import', folder / 'text.wacz', good, '--json', status=1)
    assert done(lines(p.stdout))['pages'] == len(pages)


@test
def hostile_files(folder):
    pages = pages_of('hostile', 6)
    cases = {'parent': [('../../evil', b'x')], 'absolute': [('/etc/evil', b'x')], 'up': [('archive/../x.warc', b'x')]}
    for name, extra in cases.items():
        path = foreign(folder / (name + '.wacz'), pages, extra=extra)
        refused(folder / 'repo', path, 'import', path)
    data = bytearray(foreign(folder / 'locked.wacz', pages).read_bytes())
    data[data.index(b'PK\1\2') + 8] |= 1
    (folder / 'locked.wacz').write_bytes(data)
    text = call(folder / 'locked', 'import', folder / 'locked.wacz', status=1).stderr.decode()
    assert 'archive/part-0.warc.gz is encrypted' in text, text
    # 64 MiB of zeros in 64 KiB.
    path = folder / 'bomb.wacz'
    with zipfile.ZipFile(path, 'w', zipfile.ZIP_DEFLATED) as z:
        with z.open('archive/zeros.warc', 'w') as f:
            for _ in range(64):
                f.write(bytes(1 << 20))
    text = call(folder / 'bomb', 'import', path, status=1).stderr.decode()
    assert 'archive/zeros.warc would expand' in text, text


@test
def a_signal_leaves_nothing_behind(folder):
    repo = folder / 'repo'
    ask(repo, 'import', archive(folder / 'in.warc', some_pages(rng('signal'), 3000)))
    out = folder / 'out.wacz'
    p = subprocess.Popen(command(repo, 'export', '--wacz', out), stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    p.send_signal(signal.SIGTERM)
    p.communicate()
    if p.returncode:        # it may have been faster than the signal
        assert not out.exists() and not (folder / 'out.wacz.tmp').exists(), os.listdir(folder)
    call(repo, 'export', '--wacz', out, '--force')


run()
