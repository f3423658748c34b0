#!/usr/bin/env python3
"""Every command once, and what each says when it fails."""
import hashlib, os, pty, signal, subprocess, time

from e2e import *

COMMANDS = ('init import export get stream versions snapshot history stat verify compact nodes backup restore url help webdb update generate push '
            'expunge run control serve advise cluster').split()


@test
def help_and_version(folder):
    assert call(None, '--version').stdout.startswith(b'webbase 0.')
    top = call(None, '--help').stdout.decode()
    for name in COMMANDS:
        assert '\n  %s ' % name in top, name
        assert call(None, name, '--help').stdout == call(None, 'help', name).stdout
    assert not list(folder.iterdir())


@test
def man_page_and_completion_are_well_formed(folder):
    page, completion = call(None, 'help', '--man').stdout, call(None, 'help', '--completion').stdout
    assert page.startswith(b'.TH WEBBASE 1')
    subprocess.run(['bash', '-n'], input=completion, check=True)
    (folder / 'c').write_bytes(completion)
    script = '. ./c; COMP_WORDS=(webbase init --organisation ha); COMP_CWORD=3; _webbase; echo ${COMPREPLY[*]}; ' \
             'COMP_WORDS=(webbase -r d expo); COMP_CWORD=3; _webbase; echo ${COMPREPLY[*]}; ' \
             'COMP_WORDS=(webbase export --s); COMP_CWORD=2; _webbase; echo ${COMPREPLY[*]}; ' \
             'COMP_WORDS=(webbase -r d snapshot ""); COMP_CWORD=4; _webbase; echo ${COMPREPLY[*]}; ' \
             'COMP_WORDS=(webbase history a); COMP_CWORD=2; _webbase; echo ${COMPREPLY[*]}'
    out = subprocess.run(['bash', '-c', script], cwd=folder, capture_output=True,
                         check=True).stdout.decode().split('\n')
    assert out[:5] == ['hash hashed-log', 'export', '--snapshot --site --sites --suffix --since --status', 'list drop', 'all'], out


@test
def usage_errors_exit_2_and_name_the_word(folder):
    repo = folder / 'r'
    for words, named in ((['frobnicate'], 'frobnicate'), ([], 'no command'), (['stat', '--frobnicate'], '--frobnicate'),
                         (['get'], 'get'), (['import'], 'import'), (['export'], '--warc'), (['stat', 'x'], "'x'"),
                         (['import', 'f', '--max-bytes', 'x'], "'x'"), (['import', '--dir', '.'], '--url'),
                         (['import', '--dir', '.', '--url', 'nothing'], 'nothing'),
                         (['init', '--organisation', 'drawer'], 'drawer'),
                         (['export', '--warc', 'x.txt'], 'x.txt'),
                         (['get', 'http://h/', '--body', '--headers'], '--headers'),
                         (['nodes', 'frobnicate'], 'frobnicate'), (['nodes', 'add'], 'directory'),
                         (['nodes', 'remove'], 'number'), (['nodes', 'remove', '1', '2'], "'2'"),
                         (['nodes', 'list', '--update'], '--update'), (['nodes', 'list', 'x'], "'x'"),
                         (['advise'], '--add'), (['advise', '--add', 'many'], 'many'),
                         (['advise', '--add', '1e3'], '1e3'), (['advise', '--get', '-0.5'], '-0.5'),
                         (['emulate', 's'], '--rate'), (['emulate', 's', '--rate', '0.0'], "'0.0'"),
                         (['emulate', 's', '--rate', '1.2.3'], '1.2.3'), (['emulate', 's', '--rate', 'nan'], 'nan'),
                         (['advise', '--add', '1', '--update-ratio', '1.5'], '--update-ratio'),
                         (['advise', '--add', '1', '--update-ratio', 'often'], 'often'),
                         (['advise', '--get', '1', '--nodes', '0'], '--nodes'),
                         (['advise', '--get', '1', '--nodes', '65'], '64'), (['advise', '--get', '1', '--nodes', '1000000'], '--nodes')):
        text = refused(repo, named, *words, status=2, one_line=False)
        assert '--help' in text, text
    assert not repo.exists()


@test
def advice_ranks_every_design(folder):
    call(None, 'advise', '--get', '1', '--nodes', '64')
    load = ['advise', '--add', '5000', '--get', '20', '--stream', '100', '--update-ratio', '0.1', '--nodes', '3']
    rows = ask(folder / 'r', *load)
    assert len(rows) == 42 and len({r['design'] for r in rows}) == 42, len(rows)
    assert [r['score'] for r in rows] == sorted((r['score'] for r in rows), reverse=True)
    assert all(r['add'] > 0 and r['get'] > 0 and r['stream'] > 0 and len(r['reason']) > 20 for r in rows)
    half = ask(folder / 'r', 'advise', '--add', '0.5')[0]      # half as much can be carried twice as often
    assert abs(half['score'] / ask(folder / 'r', 'advise', '--add', '1')[0]['score'] - 2) < 0.2, half
    text = call(folder / 'r', *load).stdout.decode()
    ends = {len(line) for line in text.split('\n')[:43]}
    assert len(ends) == 1, ends                                # every design fits into its column
    assert text.count('\n') == 46 and '\n' + rows[0]['design'] + ': ' + rows[0]['reason'] in text, text
    assert not list(folder.iterdir())


@test
def a_directory_that_is_not_a_repository_is_refused(folder):
    for words in (['stat'], ['verify'], ['compact'], ['get', 'http://h.example/'],
                  ['export', '--warc', folder / 'x.warc']):
        refused(folder / 'missing', 'missing', *words)
    (folder / 'file').write_bytes(b'hello')
    (folder / 'tree').mkdir()
    (folder / 'tree' / 'thesis').write_bytes(b'work')
    source = archive(folder / 'a.warc', some_pages(rng('foreign'), 2))
    for place in ('file', 'tree'):
        for words in (['stat'], ['verify'], ['compact'], ['get', 'http://h.example/'], ['import', source], ['init']):
            refused(folder / place, place, *words)
    assert sorted(p.name for p in folder.rglob('*')) == ['a.warc', 'file', 'thesis', 'tree']


@test
def init_creates_each_supported_organisation(folder):
    p = call(folder / 'a', 'init', '--organisation', 'log', '--update', 'incremental')
    assert p.stdout.endswith(b'/a (Incr[hash,log], history newest)\n'), p.stdout
    s = ask(folder / 'a', 'stat')[0]
    assert (s['organisation'], s['update'], s['history'], s['pages'], s['versions']) == \
        ('log', 'incremental', 'newest', 0, 0), s
    verified(folder / 'a')
    refused(folder / 'a', 'a', 'init')


@test
def the_repository_comes_from_the_environment(folder):
    p = call(None, 'init', env=dict(os.environ, WEBBASE_REPO=str(folder / 'env')))
    assert (folder / 'env').is_dir() and p.stderr == b''
    call(None, 'init', cwd=folder, env={k: v for k, v in os.environ.items() if k != 'WEBBASE_REPO'})
    assert (folder / 'webbase-data').is_dir()


@test
def a_page_is_imported_and_read_back(folder):
    repo, body = folder / 'r', b'<title>x</title>\xff\x00 any bytes'
    page = Page('https://WWW.alpha.example:443/a/../b/?q=1#part', body, headers=['X-Test: one'])
    end = done(ask(repo, 'import', archive(folder / 'a.warc.gz', [page])))
    assert (end['files'], end['records'], end['pages'], end['errors']) == (1, 1, 1, 0), end
    for url in (page.url, 'http://www.alpha.example/b/?q=1'):
        assert call(repo, 'get', url).stdout == body
    f = ask(repo, 'get', page.url)[0]
    assert ask(repo, 'get', f['id']) == [f] and call(repo, 'get', f['id'].upper()).stdout == body
    refused(repo, '0' * 32, 'get', '0' * 32)
    want = {'url': 'https://www.alpha.example/b/?q=1#part', 'key': 'www.alpha.example/b/?q=1', 'status': 200,
            'type': 'text/html', 'charset': 'utf-8', 'length': len(body), 'time': '2026-01-02T03:04:05.000Z',
            'md5': hashlib.md5(body).hexdigest(), 'sha1': hashlib.sha1(body).hexdigest(), 'truncated': False}
    assert {k: f[k] for k in want} == want, f
    assert call(repo, 'get', page.url, '--headers').stdout == page.http().partition(b'\r\n\r\n')[0] + b'\r\n'
    written = call(repo, 'get', page.url, '--record').stdout
    assert written.startswith(b'WARC/1.1\r\n') and body + b'\r\n\r\n' in written
    s = ask(repo, 'stat')[0]
    assert (s['pages'], s['sites'], s['bytes_pages']) == (1, 1, len(body)), s
    assert b'1 page checked' in call(repo, 'verify').stdout
    call(repo, 'compact')
    assert call(repo, 'get', page.url).stdout == body


@test
def missing_pages_and_files_are_named(folder):
    repo = folder / 'r'
    call(repo, 'import', archive(folder / 'a.warc', some_pages(rng('named'), 3)))
    refused(repo, 'http://www.alpha.example/nothing', 'get', 'http://www.alpha.example/nothing')
    refused(repo, 'http://www.alpha.example/nothing', 'get', '--json', 'http://www.alpha.example/nothing')
    for url in ('http://[::1', 'http://exa mple.com/', 'no-scheme', 'http://h:99999/'):
        refused(repo, url, 'get', url)
    refused(repo, 'no/such.warc', 'import', folder / 'no' / 'such.warc')
    refused(repo, 'nowhere', 'import', '--dir', folder / 'nowhere', '--url', 'http://h.example/')
    (folder / 'notes.warc.gz').write_bytes(b'notes, not an archive\n' * 40)
    p = call(repo, 'import', folder / 'notes.warc.gz', status=1)
    assert b'notes.warc.gz' in p.stderr
    text = refused(repo, 'new\x1b[2Jline'.replace('\x1b', '?'), 'get', 'http://h.example/new\x1b[2Jline\n')
    assert '\x1b' not in text
    assert ask(repo, 'stat')[0]['pages'] == 3


@test
def a_pipe_is_refused_and_not_waited_for(folder):
    repo = folder / 'r'
    call(repo, 'init')
    os.mkfifo(folder / 'fifo')
    refused(repo, 'fifo is a pipe', 'import', folder / 'fifo', timeout=PATIENCE)
    text = subprocess.run(command(repo, 'import', '/dev/stdin'), input=b'WARC/1.1', capture_output=True).stderr
    assert b'/dev/stdin is a pipe' in text, text
    path = archive(folder / 'a.warc', some_pages(rng('stdin'), 3))
    with open(path, 'rb') as f:                            # this is a file after all
        assert subprocess.run(command(repo, 'import', '/dev/stdin'), stdin=f, capture_output=True).returncode == 0
    assert ask(repo, 'stat')[0]['pages'] == 3


@test
def one_bad_file_does_not_stop_the_others(folder):
    repo, pages = folder / 'r', some_pages(rng('others'), 4)
    good = [archive(folder / 'a.warc', pages[:2]), archive(folder / 'b.warc.gz', pages[2:])]
    p = call(repo, 'import', good[0], folder / 'missing.warc', good[1], '--json', status=1)
    end = done(lines(p.stdout))
    assert (end['files'], end['pages'], end['errors']) == (2, 4, 1), end
    assert b'missing.warc' in p.stderr and p.stderr.count(b'\n') == 1, p.stderr


@test
def url_shows_how_a_url_is_parsed(folder):
    out = ask(None, 'url', 'HTTP://B\u00fccher.example:80/a/%7eb?#x', '--base', 'http://h/', '/c')
    assert out[0]['href'] == 'http://xn--bcher-kva.example/a/%7eb?#x', out
    assert out[0]['key'] == 'xn--bcher-kva.example/a/~b', out
    assert out[0]['surt'].startswith('example,xn--bcher-kva)/') and len(out[0]['id']) == 32
    assert out[1]['href'] == 'http://h/c' and out[1]['site'] == 'h'
    p = call(None, 'url', '--json', '-', status=1, input=b'http://a.example/\r\nhttp://[\nhttps://b.co.uk/')
    out = lines(p.stdout)
    assert [o['input'] for o in out] == ['http://a.example/', 'http://[', 'https://b.co.uk/'] and 'error' in out[1], out
    assert out[2]['domain'] == 'b.co.uk' and p.stderr == b''
    out = lines(call(None, 'url', '--json', '-', status=1,
                     input=b'http://a.example/' + b'x' * 3000000 + b'\n\nhttp://b.example/').stdout)
    assert ['error' in o for o in out] == [True, True, False], [o['input'][:40] for o in out]
    assert len(out[0]['input']) < 70000, [o['input'][:40] for o in out]
    assert b'surt' in call(None, 'url', 'http://a.example/').stdout
    refused(None, 'nobase', 'url', '--base', 'nobase', 'x')


@test
def a_tree_of_files(folder):
    repo, tree = folder / 'r', folder / 'tree'
    files = {'index.html': 'manual/', 'guide/index.html': 'manual/guide/', 'a b.html': 'manual/a%20b.html',
             'c#?.txt': 'manual/c%23%3F.txt',
             '50%25.css': 'manual/50%2525.css', '\u6c34/x.png': 'manual/%E6%B0%B4/x.png',
             'empty.html': 'manual/empty.html'}
    for name in files:
        (tree / name).parent.mkdir(parents=True, exist_ok=True)
        (tree / name).write_bytes(b'' if name.startswith('empty') else name.encode())
        os.utime(tree / name, (1767323045.25, 1767323045.25))
    os.symlink(tree / 'index.html', tree / 'link.html')
    os.symlink(tree, tree / 'loop')
    os.mkfifo(tree / 'pipe')
    end = done(ask(repo, 'import', '--dir', tree, '--url', 'http://docs.example/manual'))
    assert (end['pages'], end['files'], end['records'], end['errors']) == (7, 7, 7, 0), end
    for name, url in files.items():
        assert call(repo, 'get', 'http://docs.example/' + url).stdout == (tree / name).read_bytes(), name
    f = ask(repo, 'get', 'http://docs.example/manual/c%23%3F.txt')[0]
    assert (f['type'], f['charset'], f['status'], f['time']) == ('text/plain', None, 200, '2026-01-02T03:04:05.250Z'), f
    refused(repo, 'link.html', 'get', 'http://docs.example/manual/link.html')
    end = done(ask(repo, 'import', '--dir', tree, '--url', 'http://docs.example/manual/'))
    assert end['pages'] == 0, end


@test
def bodies_are_cut_at_the_limit(folder):
    repo = folder / 'r'
    source = archive(folder / 'a.warc',
                     [Page('http://h.example/long', b'x' * 5000), Page('http://h.example/short', b'y' * 999)])
    events = ask(repo, 'import', source, '--max-bytes', '1000')
    assert done(events)['pages'] == 2
    assert call(repo, 'get', 'http://h.example/long').stdout == b'x' * 1000
    assert ask(repo, 'get', 'http://h.example/long')[0]['truncated'] is True
    assert ask(repo, 'get', 'http://h.example/short')[0]['truncated'] is False
    refused(repo, '--max-bytes', 'import', source, '--max-bytes', 1 << 40, status=2, one_line=False)


@test
def a_closed_pipe_and_a_full_disk_are_not_success(folder):
    repo = folder / 'r'
    call(repo, 'import', archive(folder / 'a.warc', [Page('http://h.example/', b'x' * 3000000)]))
    p = subprocess.Popen(command(repo, 'get', 'http://h.example/'), stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    p.stdout.read(10)
    p.stdout.close()
    assert p.wait(PATIENCE) == 1 and p.stderr.read() == b''
    with open('/dev/full', 'wb') as full:
        for words in (['get', 'http://h.example/'], ['stat'], ['--help'], ['url', 'http://h.example/'],
                      ['export', '--warc', '-']):
            p = subprocess.run(command(repo, *words), stdout=full, stderr=subprocess.PIPE)
            assert p.returncode == 1 and b'standard output' in p.stderr, (words, p)


@test
def progress_is_drawn_on_a_terminal(folder):
    source = folder / 'a.warc'
    random_ = rng('progress')
    paragraphs = [html(random_) for _ in range(50)]
    write_archive(source,
                  [Page('http://h%d.example/%d' % (i % 50, i), random_.choice(paragraphs) * 8).record()
                   for i in range(12000)])
    # A fast machine needs more data before a line of progress is due.
    seen, times = b'', 3
    while not seen and times < 1000:
        ours, theirs = pty.openpty()
        p = subprocess.Popen(command(folder / ('r%d' % times), 'import', *[source] * times), stdout=subprocess.PIPE,
                             stderr=theirs)
        p.communicate(timeout=PATIENCE)
        os.close(theirs)
        os.set_blocking(ours, False)
        with contextlib.suppress(OSError):
            while chunk := os.read(ours, 65536):
                seen += chunk
        os.close(ours)
        times *= 4
    assert b' pages, ' in seen and b'/s' in seen and seen.rstrip().endswith(b'\x1b[K'), seen[-200:]


run()
