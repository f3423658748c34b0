#!/usr/bin/env python3
"""After update, webdb knows what was imported as if it had been crawled. A killed import loses nothing."""
import base64, html as entities, signal

from e2e import *


def linked(*links, title='T', text='some words'):
    body = ''.join('<a href="%s">%s</a>' % (entities.escape(url), words) for url, words in links)
    return ('<!DOCTYPE html><title>%s</title><p>%s</p>%s' % (title, text, body)).encode()


def md5(body):
    return hashlib.md5(body).hexdigest()


def known(repo, url):
    return ask(repo, 'webdb', 'page', url)[0]


def links(repo, *args):
    return [(l['from_md5'], l['to'], l['anchor']) for l in ask(repo, 'webdb', 'links', *args)]


def take_in(repo, *sources, **kw):
    end = done(ask(repo, 'import', *sources, **kw))
    ask(repo, 'update')
    return end


@test
def pages_and_links_are_known(folder):
    a = linked(('/b', 'bee'), ('/b#part', 'again'), ('http://other.example/x', 'far'), ('mailto:x@y', 'mail'),
               title='A')
    b = linked(('http://www.alpha.example/a', 'back'), title='B')
    pages = [Page('http://www.alpha.example/a', a, '2026-01-02T03:04:05Z',
                  headers=['ETag: "e1"', 'Last-Modified: Thu, 01 Jan 2026 00:00:00 GMT']),
             Page('http://www.alpha.example/b', b, '2026-01-02T03:04:06Z')]
    take_in(folder / 'r', archive(folder / 'a.warc.gz', pages))
    page = known(folder / 'r', 'http://www.alpha.example/a')
    assert (page['md5'], page['status'], page['depth'], page['result']) == (md5(a), 200, 0, 'stored'), page
    assert page['first_seen'] == page['last_seen'] == '2026-01-02T03:04:05.000Z' and page['inlinks'] == 1, page
    assert (page['etag'], page['modified']) == ('"e1"', 'Thu, 01 Jan 2026 00:00:00 GMT'), page
    far = known(folder / 'r', 'http://other.example/x')
    assert far['md5'] is None and far['status'] is None and far['depth'] == 1, far
    assert sorted(links(folder / 'r')) == sorted([(md5(a), 'http://www.alpha.example/b', 'bee'),
                                                  (md5(a), 'http://other.example/x', 'far'),
                                                 (md5(b), 'http://www.alpha.example/a', 'back')]), links(folder / 'r')
    assert links(folder / 'r', '--to', 'http://www.alpha.example/a') == [(md5(b), 'http://www.alpha.example/a', 'back')]
    count = ask(folder / 'r', 'webdb', 'count')[0]
    assert (count['pages'], count['fetched'], count['links']) == (3, 2, 3), count
    call(folder / 'r', 'webdb', 'check')


@test
def responses_that_are_not_pages(folder):
    pages = [Page('http://h.example/moved', b'', status='301 Moved', headers=['Location: /to#there']),
             Page('http://h.example/lost', b'', status='302 Found'),
             Page('http://h.example/gone', linked(('/x', 'x')), status='404 Not Found'),
             Page('http://h.example/broken', linked(('/x', 'x')), status='500 Oops')]
    end = take_in(folder / 'r', archive(folder / 'a.warc', pages))
    assert end['pages'] == 4, end
    results = {name: known(folder / 'r', 'http://h.example/' + name) for name in ('moved', 'lost', 'gone', 'broken')}
    assert {n: (p['result'], p['status'], p['md5']) for n, p in results.items()} == {
        'moved': ('redirect', 301, None), 'lost': ('error', 302, None), 'gone': ('gone', 404, None),
        'broken': ('error', 500, None)}, results
    assert results['moved']['location'] == 'http://h.example/to', results['moved']
    assert known(folder / 'r', 'http://h.example/to')['status'] is None
    assert 'gone' in results['gone']['flags'], results['gone']
    assert links(folder / 'r') == []
    call(folder / 'r', 'webdb', 'page', 'http://h.example/x', status=1)


@test
def a_revisit_is_a_visit(folder):
    body = linked(('/b', 'bee'))
    first = Page('http://h.example/a', body, '2026-01-02T00:00:00Z')
    digest = 'WARC-Payload-Digest: sha1:' + base64.b32encode(hashlib.sha1(body).digest()).decode()
    profile = 'WARC-Profile: http://netpreserve.org/warc/1.1/revisit/identical-payload-digest'
    again = record('http://h.example/a', b'', '2026-01-05T00:00:00Z', 'revisit', 'application/http; msgtype=response',
                   extra=[digest, profile])
    copy = record('http://mirror.example/a', b'', '2026-01-06T00:00:00Z', 'revisit',
                  'application/http; msgtype=response',
                  extra=[digest, profile, 'WARC-Refers-To-Target-URI: http://h.example/a',
                         'WARC-Refers-To-Date: 2026-01-02T00:00:00Z'])
    lost = record('http://h.example/nowhere', b'', '2026-01-06T00:00:00Z', 'revisit',
                  'application/http; msgtype=response', extra=[digest[:-4] + 'AAAA', profile])
    write_archive(folder / 'a.warc', [first.record(), again, copy, lost])
    assert take_in(folder / 'r', folder / 'a.warc')['revisits'] == 3
    page, mirror = known(folder / 'r', 'http://h.example/a'), known(folder / 'r', 'http://mirror.example/a')
    assert (page['result'], page['last_seen'], page['last_changed']) == ('unchanged', '2026-01-05T00:00:00.000Z',
                                                                         '2026-01-02T00:00:00.000Z'), page
    assert (page['visits'], page['changes']) == (1, 0), page
    assert mirror['md5'] == page['md5'] == md5(body) and mirror['simhash'] == page['simhash'], mirror
    assert links(folder / 'r') == [(md5(body), 'http://h.example/b', 'bee')]
    call(folder / 'r', 'webdb', 'page', 'http://h.example/nowhere', status=1)


@test
def a_later_import_is_a_later_visit(folder):
    """Whichever archive is imported first, webdb has the newer fetch, as the store does."""
    old, new = linked(('/old', 'o')), linked(('/new', 'n'))
    for order in (1, -1):
        repo = folder / ('r%d' % order)
        for name, body, time_ in [('old', old, '2026-01-01T00:00:00Z'), ('new', new, '2026-02-01T00:00:00Z')][::order]:
            take_in(repo, archive(folder / ('%s%d.warc' % (name, order)), [Page('http://h.example/', body, time_)]))
        page = known(repo, 'http://h.example/')
        assert page['md5'] == md5(new) == ask(repo, 'get', 'http://h.example/')[0]['md5'], (order, page)
        assert links(repo) == [(md5(new), 'http://h.example/new', 'n')], (order, links(repo))
        call(repo, 'webdb', 'check')


@test
def only_http_and_https_urls(folder):
    pages = [Page('ftp://h.example/a', b'x'), Page('http://h.example/a', b'x')]
    take_in(folder / 'r', archive(folder / 'a.warc', pages))
    assert [p['url'] for p in ask(folder / 'r', 'webdb', 'pages')] == ['http://h.example/a']


@test
def a_tree_of_files(folder):
    (folder / 't' / 'sub').mkdir(parents=True)
    (folder / 't' / 'index.html').write_bytes(linked(('sub/x.html', 'ex')))
    (folder / 't' / 'sub' / 'x.html').write_bytes(linked(('../', 'up')))
    take_in(folder / 'r', '--dir', folder / 't', '--url', 'https://docs.example/')
    assert sorted(l[1:] for l in links(folder / 'r')) == [('https://docs.example/', 'up'),
                                                          ('https://docs.example/sub/x.html', 'ex')]


@test
def without_a_journal(folder):
    end = done(ask(folder / 'r', 'import', '--no-journal', archive(folder / 'a.warc', some_pages(rng('none'), 5))))
    assert end['pages'] == 5 and not (folder / 'r' / 'journal').exists()


@test
def a_killed_import_stores_nothing_that_webdb_does_not_learn(folder):
    random_ = rng('kill')
    pages = some_pages(random_, 6000)
    source, killed = archive(folder / 'a.warc', pages), 0
    took = []
    for n in range(3):
        began = time.time()
        call(folder / ('whole%d' % n), 'import', source)
        took.append(time.time() - began)
    for n in range(6):
        repo = folder / ('r%d' % n)
        p = subprocess.Popen(command(repo, 'import', source, '--json'), stdout=subprocess.PIPE,
                             stderr=subprocess.DEVNULL)
        time.sleep(min(took) * random_.uniform(0.1, 0.9))
        p.send_signal(signal.SIGKILL)
        if p.wait() < 0:
            killed += 1
        else:
            took.append(0.7 * min(took))
        p.stdout.close()
        if not (repo / 'webbase.repo').exists():
            continue
        call(repo, 'verify')
        stored = ask(repo, 'stat')[0]['pages']
        ask(repo, 'update')
        fetched = ask(repo, 'webdb', 'count')[0]['fetched'] if stored else 0
        assert fetched >= stored, (stored, fetched)
        # The same import again adds what the journal knew but the store did not have.
        take_in(repo, source)
        count = ask(repo, 'webdb', 'count')[0]
        assert count['fetched'] == ask(repo, 'stat')[0]['pages'] == len(pages), count
        call(repo, 'webdb', 'check')
    assert killed, 'no import was killed'
    print('# %d of 6 killed' % killed)



@test
def dates_in_the_future(folder):
    """A date in the future is reported as an error, with the position of the record, and replaced by a time that has
    been, so that a later version is accepted."""
    ahead = time.strftime('%Y-%m-%dT%H:%M:%SZ', time.gmtime(time.time() + 2 * 86400))
    soon = time.strftime('%Y-%m-%dT%H:%M:%SZ', time.gmtime(time.time() + 3600))
    pages = [Page('http://f.example/past', b'1'), Page('http://f.example/ahead', b'2', ahead),
             Page('http://f.example/soon', b'3', soon),
             Page('http://f.example/far', b'4', '9998-01-01T00:00:00Z')]
    source, repo = archive(folder / 'f.warc', pages), folder / 'r'
    events = ask(repo, 'import', source)
    errors = [e for e in events if e['event'] == 'error']
    assert done(events)['errors'] == 2 and done(events)['pages'] == 4 and len(errors) == 2, events
    assert errors[0]['file'] == str(source) and errors[0]['offset'] == len(pages[0].record()), errors
    assert ahead[:10] in errors[0]['message'], errors
    for name in ('ahead', 'far'):
        t = ask(repo, 'get', 'http://f.example/' + name)[0]['time']
        assert t[:19] <= time.strftime('%Y-%m-%dT%H:%M:%S', time.gmtime()), t
    assert ask(repo, 'get', 'http://f.example/soon')[0]['time'][:19] == soon[:19] # clocks may differ a little
    time.sleep(1.1) # dates of archives are in whole seconds
    now = time.strftime('%Y-%m-%dT%H:%M:%SZ', time.gmtime())
    again = done(ask(repo, 'import', archive(folder / 'g.warc', [Page(p.url, b'newer', now) for p in pages])))
    assert again['replaced'] == 3 and again['older'] == 1, again
    call(repo, 'update')
    assert ask(repo, 'webdb', 'page', 'http://f.example/far')[0]['md5'] == hashlib.md5(b'newer').hexdigest()
    # The files of a directory have dates, too.
    tree = folder / 'tree'
    tree.mkdir()
    (tree / 'x').write_bytes(b'x')
    os.utime(tree / 'x', (time.time() + 3 * 86400,) * 2)
    events = ask(repo, 'import', '--dir', tree, '--url', 'http://t.example/')
    assert done(events)['errors'] == 1 and done(events)['pages'] == 1, events
    assert [e['file'] for e in events if e['event'] == 'error'] == [str(tree / 'x')]


run()
