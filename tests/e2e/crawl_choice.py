#!/usr/bin/env python3
"""What a crawl chooses: sites of a class (--class), media types (--types), a page's first links (--max-links). And a
page that is deleted by hand (webdb delete)."""
from e2e import *
from crawlserver import *


def seeds_file(folder, server):
    path = folder / 'seeds'
    path.write_text('class news delay=0\nclass shop delay=0\n%s class=news\n%s class=shop\n%s\n' %
                    (server.url('news.test'), server.url('shop.test'), server.url('plain.test')))
    return path


def three_sites():
    sites = {}
    for host in ('news.test', 'shop.test', 'plain.test'):
        sites[host] = {'/': page('/a', '/b', text='root of ' + host), '/a': page(text='a ' + host),
                       '/b': page(text='b ' + host), '/linked': page(text='linked ' + host)}
    server = Server(sites)
    return server


def link_all(server):
    for host in server.sites:
        others = [server.url(h, '/linked') for h in server.sites if h != host]
        server.sites[host]['/'] = page('/a', '/b', *others, text='root of ' + host)


def expect_asked(server, host, *paths):
    got = set(server.paths(host)) - {'/robots.txt', '/sitemap.xml'}
    assert got == set(paths), '%s was asked for %s, not %s' % (host, sorted(got), paths)


@test
def only_sites_of_the_class_are_asked(folder):
    with three_sites() as server:
        link_all(server)
        seeds = seeds_file(folder, server)
        crawl(folder / 'r', server, '--seeds', seeds, '--class', 'news', '--scope', 'any', '--delay', 0)
        expect_asked(server, 'news.test', '/', '/a', '/b')
        expect_asked(server, 'shop.test')
        expect_asked(server, 'plain.test')
        call(folder / 'r', 'update')
        links = ask(folder / 'r', 'webdb', 'links', '--to', server.url('shop.test', '/linked'))
        assert len(links) == 1, 'the link to another class is not recorded: %s' % links
        # The dispenser knows the other classes now: no seeds are needed, and links between sites of a class are followed.
        crawl(folder / 'r', server, '--class', 'shop', '--delay', 0)
        expect_asked(server, 'shop.test', '/', '/a', '/b')
        crawl(folder / 'r', server, '--seeds', seeds, '--class', 'default', '--delay', 0)
        expect_asked(server, 'plain.test', '/', '/a', '/b')
        # A seed of another class is no work for this one, and no mistake.
        events = crawl(folder / 'r', server, server.url('plain.test'), '--class', 'news', '--delay', 0)
        assert done(events)['requests'] == 0
        verified(folder / 'r')


@test
def processes_with_different_classes_share_a_repository(folder):
    with three_sites() as server:
        link_all(server)
        seeds = seeds_file(folder, server)
        together = [start(folder / 'r', server, '--seeds', seeds, '--class', name, '--delay', 0.05, '--scope', 'any',
                          stderr=subprocess.PIPE) for name in ('news', 'shop', 'default')]
        for process in together:
            _, errors = process.communicate(timeout=PATIENCE)
            assert process.returncode == 0, errors
        for host in server.sites:
            expect_asked(server, host, '/', '/a', '/b')
            assert len(server.paths(host)) == len(set(server.paths(host))), 'asked twice: %s' % server.paths(host)
        verified(folder / 'r')


@test
def a_cycle_stays_in_its_class(folder):
    with three_sites() as server:
        link_all(server)
        seeds = seeds_file(folder, server)
        for _ in range(2):
            go(folder / 'r', server, '--seeds', seeds, '--class', 'shop', '--cycles', 2, '--every', 0, '--delay', 0)
        expect_asked(server, 'shop.test', '/', '/a', '/b')
        expect_asked(server, 'news.test')
        expect_asked(server, 'plain.test')


@test
def a_class_nobody_defined(folder):
    with three_sites() as server:
        url = server.url('news.test')
        refused(folder / 'r', 'nowhere', 'crawl', url, '--class', 'nowhere')
        refused(folder / 'r', 'nowhere', 'run', url, '--cycles', 1, '--class', 'nowhere')
        assert not (folder / 'r').exists() and not server.paths('news.test')


def mixed_site():
    return Server({'m.test': {
        '/': page('/pic', '/deep', '/x.zip', '/y.txt', '/moved', text='root'), '/deep': page('/hidden.png', text='deep'),
        '/pic': Reply(b'\x89PNG\r\n\x1a\npic', type='image/png'),
        '/hidden.png': Reply(b'\x89PNG\r\n\x1a\nhidden', type='image/png'),
        '/moved': redirect('/there'), '/there': Reply(b'GIF89a', type='image/gif'),
        '/x.zip': Reply(b'PK', type='application/zip'), '/y.txt': Reply(b'words', type='text/plain')}})


@test
def only_wanted_types_are_stored(folder):
    with mixed_site() as server:
        events = crawl(folder / 'r', server, server.url('m.test'), '--delay', 0, '--no-sitemaps', '--types', 'image/*')
        said = {e['url'].rsplit('/', 1)[1]: e['result'] for e in fetches(events) if e['result'] != 'rules'}
        assert said == {'': 'unwanted', 'deep': 'unwanted', 'pic': 'stored', 'hidden.png': 'stored', 'there': 'stored',
                        'moved': 'redirect', 'x.zip': 'unwanted', 'y.txt': 'unwanted'}, said
        expect_asked(server, 'm.test', '/', '/deep', '/pic', '/hidden.png', '/moved', '/there')
        assert ask(folder / 'r', 'stat')[0]['pages'] == 3
        verified(folder / 'r')
        # Cycles look at the pages with links again, and do not list what says its type by name.
        go(folder / 'r', server, '--cycles', 2, '--every', 0, '--delay', 0, '--no-sitemaps', '--types', 'image/*')
        assert '/x.zip' not in server.paths('m.test') and '/y.txt' not in server.paths('m.test')
        assert server.paths('m.test').count('/deep') >= 2, server.paths('m.test')
        assert ask(folder / 'r', 'stat')[0]['pages'] == 3


@test
def a_killed_crawl_goes_on_behind_unwanted_pages(folder):
    with mixed_site() as server:
        args = [server.url('m.test'), '--delay', 0, '--no-sitemaps', '--types', 'image/*', '--processes', 1]
        crawl(folder / 'r', server, *args, '--max-pages', 1)
        crawl(folder / 'r', server, *args)
        assert ask(folder / 'r', 'stat')[0]['pages'] == 3
        asked = [p for p in server.paths('m.test') if p in ('/', '/deep')]
        assert len(asked) == len(set(asked)), 'an unwanted page was asked for twice in one run: %s' % asked


@test
def wrong_types(folder):
    for bad in ('image', '', '*', 'image/png,pdf', '/', 'image/', '/png', 'text/html;q=1', '*/png'):
        refused(folder / 'r', '--types', 'crawl', 'http://a.test/', '--types', bad, status=2, one_line=False)
    assert not (folder / 'r').exists()


@test
def the_first_links_of_a_page(folder):
    with Server({'l.test': {'/': page(*['/%d' % i for i in range(20)], '/0', text='root'),
                            **{'/%d' % i: page(text=str(i)) for i in range(20)}}}) as server:
        crawl(folder / 'r', server, server.url('l.test'), '--delay', 0, '--no-sitemaps', '--max-links', 7)
        expect_asked(server, 'l.test', '/', *['/%d' % i for i in range(7)])
        call(folder / 'r', 'update')
        assert ask(folder / 'r', 'webdb', 'count')[0]['links'] == 7
    (folder / 'tree').mkdir()
    (folder / 'tree/index.html').write_text(''.join('<a href=/%d>x</a>' % i for i in range(20)))
    call(folder / 'i', 'import', '--dir', folder / 'tree', '--url', 'http://i.test/', '--max-links', 3)
    call(folder / 'i', 'update')
    assert ask(folder / 'i', 'webdb', 'count')[0]['links'] == 3
    for command in ('crawl', 'run', 'import'):
        for bad in ('-1', 'x', '', '0'):
            refused(folder / 'n', '--max-links', command, 'http://a.test/', '--max-links', bad, status=2, one_line=False)


@test
def a_deleted_page_may_come_back(folder):
    repo = folder / 'r'
    with Server({'d.test': {'/': page('/p', text='root'), '/p': page(text='marmalade')}}) as server:
        url, other = server.url('d.test', '/p'), server.url('d.test')
        crawl(repo, server, other, '--delay', 0, '--no-sitemaps')
        # The index is made of what was stored; a page that no update has seen yet can be deleted, too.
        call(repo, 'index')
        call(repo, 'webdb', 'delete', url)
        found = lambda query: [h['url'] for h in ask(repo, 'search', query) if 'url' in h]
        assert found('marmalade') == [] and url not in found('site:d.test:%d' % server.port), found('site:d.test')
        refused(repo, url, 'get', url)
        refused(repo, url, 'webdb', 'page', url)
        assert len(ask(repo, 'webdb', 'links', '--to', url)) == 1
        refused(repo, url, 'webdb', 'delete', url)
        refused(repo, 'no URL', 'webdb', 'delete', 'no URL')
        refused(repo, url, 'expunge', '--allow', url)
        verified(repo)
        crawl(repo, server, other, '--delay', 0, '--no-sitemaps')
        call(repo, 'index')
        assert found('marmalade') == [url]
        call(repo, 'get', url)


run_together()
