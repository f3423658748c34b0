#!/usr/bin/env python3
"""Importing graphs into webdb and exporting them: vertices and edges as Common Crawl writes them, and rows as webdb
prints them."""
from e2e import *

DATA = pathlib.Path(os.environ.get('WEBBASE_DATA', ROOT.parent / 'shared' / 'data'))


def write(path, *rows):
    data = ''.join('\t'.join(map(str, row)) + '\n' for row in rows).encode()
    path.write_bytes(gzip.compress(data) if path.suffix == '.gz' else data)
    return path


def read(path):
    data = path.read_bytes()
    return [tuple(line.split('\t'))
            for line in (gzip.decompress(data) if path.suffix == '.gz' else data).decode().splitlines()]


def load(repo, vertices, edges, *args, **kw):
    if not repo.exists():
        call(repo, 'init')
    return done(ask(repo, 'webdb', 'import', '--vertices', vertices, '--edges', edges, *args, **kw))


def unload(repo, folder, *args, name='out', suffix=''):
    vertices, edges = folder / (name + '.v' + suffix), folder / (name + '.e' + suffix)
    end = done(ask(repo, 'webdb', 'export', '--vertices', vertices, '--edges', edges, *args))
    v, e = read(vertices), [(int(a), int(b)) for a, b in read(edges)]
    assert (end['vertices'], end['edges']) == (len(v), len(e)), end
    assert [int(id_) for id_, _ in v] == list(range(len(v))) and e == sorted(set(e))
    return [name for _, name in v], e


def named(names, edges):
    """Edges as pairs of names."""
    return sorted((names[a], names[b]) for a, b in edges)


@test
def a_real_graph_survives_import_and_export(folder):
    source, nodes = DATA / 'graph' / 'cnr-2000' / 'cnr-2000.graph-txt.gz', 20000
    if not source.exists():
        raise Skip('no ' + str(source))
    with gzip.open(source, 'rt') as f:
        f.readline()
        edges = [(i, int(t)) for i, line in zip(range(nodes), f) for t in line.split() if int(t) < nodes]
    urls = ['http://h%02d.example/p/%05d' % (i // 500, i) for i in range(nodes)]
    write(folder / 'v.gz', *enumerate(urls))
    write(folder / 'e', *edges)
    # 4 MiB, the smallest value allowed, makes it sort on disk.
    end = load(folder / 'r', folder / 'v.gz', folder / 'e', '--memory', 4 << 20)
    assert (end['vertices'], end['edges'], end['pages_added'], end['links_added'],
            end['bad_lines']) == (nodes, len(edges), nodes, len(edges), 0), end
    for suffix in ('', '.gz'):
        assert unload(folder / 'r', folder, suffix=suffix) == (urls, edges), suffix
    count = ask(folder / 'r', 'webdb', 'count')[0]
    assert (count['pages'], count['fetched'], count['links']) == (nodes, 0, len(edges)), count
    call(folder / 'r', 'webdb', 'check')
    # Importing it again changes nothing.
    end = load(folder / 'r', folder / 'v.gz', folder / 'e')
    assert (end['pages_added'], end['links_added']) == (0, 0), end
    assert unload(folder / 'r', folder, name='again') == (urls, edges)
    # Compare hosts with what a few lines of Python compute.
    hosts = sorted({(a // 500, b // 500) for a, b in edges if a // 500 != b // 500})
    assert unload(folder / 'r', folder, '--hosts', name='hosts') == (['example.h%02d' % i for i in range(nodes // 500)],
                                                                     hosts)


@test
def ids_in_any_order_and_hosts_by_name(folder):
    write(folder / 'v', (2**63, 'com.example.www'), (7, 'com.example'), (900, 'https://Example.com:443/a/b?q#f'),
          (3, '192.0.2.7'), (5, 'org.example'))
    write(folder / 'e', (900, 7), (2**63, 900), (7, 3), (7, 2**63), (7, 7), (7, 3))
    end = load(folder / 'r', folder / 'v', folder / 'e')
    assert (end['vertices'], end['edges'], end['links_added']) == (5, 6, 5), end
    names, edges = unload(folder / 'r', folder)
    assert names == ['http://192.0.2.7/', 'http://example.com/', 'https://example.com/a/b?q', 'http://www.example.com/',
                     'http://example.org/'], names
    assert named(names, edges) == sorted([('https://example.com/a/b?q', 'http://example.com/'),
                                          ('http://www.example.com/', 'https://example.com/a/b?q'),
                                          ('http://example.com/', 'http://192.0.2.7/'),
                                          ('http://example.com/', 'http://www.example.com/'),
                                          ('http://example.com/', 'http://example.com/')]), edges
    names, edges = unload(folder / 'r', folder, '--hosts', name='hosts')
    assert names == ['192.0.2.7', 'com.example', 'com.example.www', 'org.example'], names
    assert named(names, edges) == [('com.example', '192.0.2.7'), ('com.example', 'com.example.www'),
                                   ('com.example.www', 'com.example')], edges
    page = ask(folder / 'r', 'webdb', 'page', 'http://example.com/')[0]
    assert page['status'] is None and page['md5'] == hashlib.md5(b'vertex example.com/').hexdigest(), page
    assert 'loaded' in page['flags'], page


@test
def bad_lines_are_skipped_and_counted(folder):
    (folder / 'v').write_bytes(b'0\thttp://a.example/\n1 http://b.example/\nx\thttp://c.example/\n'
                               b'2\tmailto:x@y\n3\n\n-4\thttp://d.example/\n'
                               b'5\thttp://e.example/\textra\r\n6\thttp://[bad/\n7\t' + b'z' * (2 << 20) +
                               b'\n8\thttp://f.example/\n')
    write(folder / 'e', (0, 5), (5, 'x'), (5, 8), (0, 4711), (4711, 0), (0,))
    p = call(folder / 'r', 'init') and call(folder / 'r', 'webdb', 'import', '--vertices', folder / 'v', '--edges',
                                            folder / 'e', '--json')
    end = done(lines(p.stdout))
    assert (end['vertices'], end['edges'], end['bad_lines'], end['loose'], end['links_added']) == (3, 4, 9, 2, 2), end
    text = p.stderr.decode()
    assert '%s, line 2: ' % (folder / 'v') in text and '%s, line 2: ' % (folder / 'e') in text, text
    assert text.count('\n') == 9, text
    assert unload(folder / 'r', folder)[0] == ['http://a.example/', 'http://e.example/', 'http://f.example/']


@test
def unreadable_input(folder):
    call(folder / 'r', 'init')
    write(folder / 'v', *((i, 'http://h.example/%d' % i) for i in range(20000)))
    write(folder / 'e', (0, 1))
    (folder / 'bad').write_bytes(b'nothing\nof use\n')
    options = ['--vertices', folder / 'v', '--edges', folder / 'e']
    refused(folder / 'r', folder / 'bad', 'webdb', 'import', '--vertices', folder / 'bad', '--edges', folder / 'e',
            one_line=False)
    refused(folder / 'r', folder / 'none', 'webdb', 'import', '--vertices', folder / 'none', '--edges', folder / 'e')
    refused(folder / 'r', folder / 'none', 'webdb', 'import', '--vertices', folder / 'v', '--edges', folder / 'none')
    refused(folder / 'r', 'a directory', 'webdb', 'import', '--vertices', folder, '--edges', folder / 'e')
    refused(folder / 'r', '--vertices', 'webdb', 'import', '--edges', folder / 'e', status=2, one_line=False)
    refused(folder / 'r', '--pages', 'webdb', 'import', *options, '--pages', folder / 'v', status=2, one_line=False)
    refused(folder / 'r', 'update', 'webdb', 'export', *options)
    call(folder / 'r', 'webdb', 'count', status=1)  # none of this created a webdb
    # If a gzipped file breaks off, everything before that is imported, and the exit status shows it.
    data = gzip.compress((folder / 'v').read_bytes())
    (folder / 'cut.gz').write_bytes(data[:len(data) // 2])
    text = refused(folder / 'r', folder / 'cut.gz', 'webdb', 'import', '--vertices', folder / 'cut.gz', '--edges',
                   folder / 'e')
    assert 'breaks off' in text
    assert 1000 < ask(folder / 'r', 'webdb', 'count')[0]['pages'] < 20000
    # Existing files are not changed.
    refused(folder / 'r', folder / 'v', 'webdb', 'export', *options)
    assert read(folder / 'e') == [('0', '1')] and not list(folder.glob('*.tmp'))
    call(folder / 'r', 'webdb', 'export', *options, '--force')
    assert len(read(folder / 'v')) > 1000


@test
def fetched_pages_keep_their_content(folder):
    body = b'<title>t</title><a href="http://h.example/known">known</a><p>words'
    copies = [Page('http://h.example/a', body), Page('http://h.example/copy', body)]
    call(folder / 'r', 'import', archive(folder / 'a.warc', copies))
    call(folder / 'r', 'update')
    before = ask(folder / 'r', 'webdb', 'page', 'http://h.example/a')[0]
    write(folder / 'v', (0, 'http://h.example/a'), (1, 'http://h.example/known'), (2, 'http://h.example/new'))
    write(folder / 'e', (0, 2), (1, 0), (2, 1))
    end = load(folder / 'r', folder / 'v', folder / 'e')
    assert end['known'] == 1 and end['pages_added'] == 1, end
    after = ask(folder / 'r', 'webdb', 'page', 'http://h.example/a')[0]
    steady = lambda row: {k: v for k, v in row.items() if k not in ('inlinks', 'score', 'next_due')}
    assert steady(after) == steady(before)
    assert ask(folder / 'r', 'webdb', 'count')[0]['fetched'] == 2
    # An edge starts at a content, so at both pages that have it.
    a, copy, known, new = ('http://h.example/' + n for n in ('a', 'copy', 'known', 'new'))
    names, edges = unload(folder / 'r', folder)
    assert named(names, edges) == sorted([(a, known), (a, new), (copy, known), (copy, new), (known, a),
                                          (new, known)]), named(names, edges)
    call(folder / 'r', 'webdb', 'check')


@test
def rows_move_to_another_repository(folder):
    random_ = rng('rows')
    pages = some_pages(random_, 50) + [Page('http://www.alpha.example/gone', b'', status='404 Not Found'),
                                       Page('http://www.alpha.example/tabs',
                                            b'<a href="/t?a%09b">w\xc3\xb6rds &amp; "quotes" \\ \x01</a>')]
    call(folder / 'r', 'import', archive(folder / 'a.warc', pages))
    call(folder / 'r', 'update')
    for n, form in enumerate(('--json', '--tsv')):
        for kind in ('pages', 'links'):
            (folder / (kind + form)).write_bytes(call(folder / 'r', 'webdb', kind, form).stdout)
        repo = folder / ('moved%d' % n)
        call(repo, 'init')
        end = done(ask(repo, 'webdb', 'import', '--pages', folder / ('pages' + form), '--links',
                       folder / ('links' + form)))
        count = ask(folder / 'r', 'webdb', 'count')[0]
        assert (end['pages'], end['links'], end['bad_lines'], end['loose']) == (count['pages'], count['links'], 0, 0), \
            end
        for kind in ('pages', 'links'):
            got, want = ask(repo, 'webdb', kind), ask(folder / 'r', 'webdb', kind)
            if form == '--tsv':  # a control character becomes a blank there
                want = [dict(row, **({'anchor': row['anchor'].replace('\x01', ' ')} if kind == 'links' else {}))
                        for row in want]
            assert got == want, (form, kind, [(a, b) for a, b in zip(got, want) if a != b][:1])
        call(repo, 'webdb', 'check')


@test
def rows_made_by_hand(folder):
    call(folder / 'r', 'init')
    (folder / 'p').write_text('url\tscore\tmd5\nhttp://a.example/\t7.5\t%032x\nhttp://b.example/\t\t\nno url\t\t\n'
                              'http://c.example/\tx\t\n' % 1)
    (folder / 'l').write_text('{"from_md5":"%032x","to":"http://b.example/","anchor":"b","nofollow":true}\n'
                              '{"from_md5":"%032x","to":"http://b.example/"}\n{"to":"http://b.example/"}\n'
                              '[]\n{"from_md5":\n' % (1, 2))
    p = call(folder / 'r', 'webdb', 'import', '--pages', folder / 'p', '--links', folder / 'l', '--json')
    end = done(lines(p.stdout))
    assert (end['pages'], end['links'], end['bad_lines'], end['loose'], end['links_added']) == (2, 2, 5, 1, 1), end
    text = p.stderr.decode()
    assert '%s, line 4: ' % (folder / 'p') in text and '%s, line 5: ' % (folder / 'l') in text, text
    page = ask(folder / 'r', 'webdb', 'page', 'http://a.example/')[0]
    assert page['score'] == 7.5 and page['flags'] == ['scored'], page
    assert ask(folder / 'r', 'webdb',
               'links') == [{'from_md5': '%032x' % 1, 'to': 'http://b.example/', 'anchor': 'b', 'tag': 'a',
                             'nofollow': True}]
    refused(folder / 'r', folder / 'l', 'webdb', 'import', '--links', write(folder / 'l', ('{',)), one_line=False)


run()
