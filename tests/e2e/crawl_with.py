#!/usr/bin/env python3
"""crawl --with: what stored pages need to be displayed is fetched too, wherever it is, and nothing else."""
from e2e import *
from crawlserver import *

PIXEL = (b'\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\1\0\0\0\1\x08\x06\0\0\0\x1f\x15\xc4\x89\0\0\0\nIDATx\x9cc\0\1\0\0\5\0\1'
         b'\r\n-\xb4\0\0\0\0IEND\xaeB`\x82')


def image(name=''):
    return Reply(PIXEL + name.encode(), type='image/png')


def file(text, type):
    return Reply(text, type=type)


def robots(text):
    return Reply('User-agent: *\n' + text, type='text/plain')


def there(repo, server, host, path='/'):
    return call(repo, 'get', server.url(host, path), status=None).returncode == 0


def small_web():
    """Two pages, and what they need on three other hosts."""
    return Server({'a.test': {}, 'img.test': {}, 'css.test': {}, 'far.test': {}})


def fill(server):
    i, c, f = (lambda path: server.url('img.test', path)), (lambda path: server.url('css.test', path)), \
        (lambda path: server.url('far.test', path))
    server.sites['a.test'].update({
        '/': ('<title>root</title><link rel=stylesheet href="%s"><img src="%s"><img src="%s"><script src="%s"></script>'
              '<video src="%s" poster="%s"></video><a href="/second">second</a><a href="%s">far</a>' %
              (c('/look.css'), i('/pixel.png'), i('/private/pixel.png'), c('/run.js'), i('/film.mp4'), i('/poster.png'),
               f('/page'))).encode(),
        '/second': ('<title>second</title><img srcset="%s 2x, /own.png 1x"><p style="background: url(%s)">two' %
                    (i('/pixel.png'), i('/back.png'))).encode(),
        '/own.png': image('own')})
    server.sites['img.test'].update({
        '/robots.txt': robots('Disallow: /private/\n'), '/': page('/unwanted', text='the root of the host of images'),
        '/pixel.png': image(), '/private/pixel.png': image('private'), '/poster.png': image('poster'),
        '/back.png': image('back'), '/film.mp4': file(b'film', 'video/mp4'), '/deep.png': image('deep'),
        '/font.woff': file(b'font', 'font/woff')})
    server.sites['css.test'].update({
        '/robots.txt': robots('Sitemap: %s\n' % c('/map.xml')), '/': page('/unwanted', text='another root'),
        '/map.xml': file('<urlset><url><loc>%s</loc></url></urlset>' % c('/unwanted'), 'text/xml'),
        '/look.css': file('@import "more.css"; @font-face { src: url(%s) }' % i('/font.woff'), 'text/css'),
        '/more.css': file('p { background: url(%s) } /* url(/never.png) */' % i('/deep.png'), 'text/css'),
        '/run.js': file('var x = "/never.js";', 'text/javascript')})
    server.sites['far.test'].update({'/': page(text='far root'), '/page': page(text='far page')})


IMAGES = {('img.test', p) for p in ('/pixel.png', '/poster.png', '/back.png')} | {('a.test', '/own.png')}
STYLES = {('css.test', '/look.css'), ('css.test', '/more.css'), ('img.test', '/font.woff')}
EVERYTHING = {(h, p) for h in ('img.test', 'css.test', 'far.test') for p in ('/', '/unwanted', '/page', '/map.xml')} | \
    IMAGES | STYLES | {('img.test', '/deep.png'), ('css.test', '/run.js'), ('img.test', '/film.mp4')} | \
    {('a.test', '/'), ('a.test', '/second')}


def expect_stored(repo, server, wanted):
    wanted = wanted | {('a.test', '/'), ('a.test', '/second')}
    got = {(h, p) for h, p in EVERYTHING if there(repo, server, h, p)}
    assert got == wanted, (sorted(got - wanted), sorted(wanted - got))


def variant(options, wanted):
    def check(folder):
        with small_web() as server:
            fill(server)
            crawl(folder / 'r', server, server.url('a.test'), '--delay', 0, '--processes', 2, *options)
            expect_stored(folder / 'r', server, wanted)
            for host in server.sites:
                asked = server.paths(host)
                assert len(asked) == len(set(asked)), 'asked twice: %s %s' % (host, asked)
                assert not asked or asked[0] == '/robots.txt', asked
                if host != 'a.test':
                    assert set(asked) == {'/robots.txt'} | {p for h, p in wanted if h == host} or not asked, asked
            verified(folder / 'r')
    return check


@test
def nothing_more_without_the_option(folder):
    variant([], set())(folder)


@test
def images(folder):
    variant(['--with', 'images'], IMAGES)(folder)


@test
def styles(folder):
    variant(['--with', 'styles'], STYLES)(folder)


@test
def images_of_style_sheets(folder):
    variant(['--with', 'images,styles'], IMAGES | STYLES | {('img.test', '/deep.png')})(folder)


@test
def everything_given_one_by_one(folder):
    variant(['--with', 'images', '--with', 'styles,scripts', '--with', 'media'],
            IMAGES | STYLES | {('img.test', '/deep.png'), ('css.test', '/run.js'), ('img.test', '/film.mp4')})(folder)


@test
def one_process_does_the_same(folder):
    variant(['--with', 'images,styles', '--processes', 1], IMAGES | STYLES | {('img.test', '/deep.png')})(folder)


@test
def depth_does_not_count(folder):
    with small_web() as server:
        fill(server)
        crawl(folder / 'r', server, server.url('a.test'), '--delay', 0, '--max-depth', 0, '--with', 'images,styles')
        assert server.pages_asked('a.test') == ['/']
        assert set(server.pages_asked('img.test')) == {'/pixel.png', '/poster.png', '/font.woff', '/deep.png'}


@test
def they_count_as_stored_pages(folder):
    with small_web() as server:
        fill(server)
        events = crawl(folder / 'r', server, server.url('a.test'), '--delay', 0, '--with', 'images', '--max-pages', 3)
        assert done(events)['pages'] == 3 and ask(folder / 'r', 'stat')[0]['pages'] == 3
        crawl(folder / 'r', server, server.url('a.test'), '--delay', 0, '--with', 'images')
        expect_stored(folder / 'r', server, IMAGES)
        assert all(len(server.pages_asked(h)) == len(set(server.pages_asked(h))) for h in server.sites)


@test
def the_interval_of_the_host_is_kept(folder):
    with Server({'a.test': {}}) as server:
        port = server.port
        server.sites['a.test']['/'] = ''.join('<img src="//b.test:%d/%d.png">' % (port, n) for n in range(6)).encode()
        server.sites['b.test'] = {'*': lambda r: image(r.path), '/robots.txt': Reply('', 404)}
        crawl(folder / 'r', server, server.url('a.test'), '--delay', 0.3, '--with', 'images', '--resolve',
              'b.test:%d:127.0.9.9' % port)
        assert len(server.pages_asked('b.test')) == 6
        server.expect_gaps(0.3)


@test
def a_link_to_a_picture_that_is_also_embedded(folder):
    """The link leads out of scope, but the page needs its target."""
    with Server({'a.test': {}, 'b.test': {'/p.png': image(), '/': page('/q'), '/robots.txt': Reply('', 404)}}) as server:
        u = server.url('b.test', '/p.png')
        server.sites['a.test']['/'] = ('<a href="%s"><img src="%s"></a>' % (u, u)).encode()
        crawl(folder / 'r', server, server.url('a.test'), '--delay', 0, '--with', 'images')
        assert server.pages_asked('b.test') == ['/p.png']


@test
def names_that_share_an_address_are_not_compared(folder):
    """The root page of a host is asked for to find aliases, but not if it only has files that others need."""
    same = {h: '127.0.7.7' for h in ('a.test', 'b.test', 'c.test')}
    with Server({h: {} for h in same}, addresses=same) as server:
        server.sites['a.test']['/'] = ('<img src="%s"><img src="%s">' % (server.url('b.test', '/1.png'),
                                                                         server.url('c.test', '/2.png'))).encode()
        for h, p in (('b.test', '/1.png'), ('c.test', '/2.png')):
            server.sites[h] = {p: image(h), '/': page('/x', text=h), '/robots.txt': Reply('', 404)}
        crawl(folder / 'r', server, server.url('a.test'), '--delay', 0, '--with', 'images')
        assert server.pages_asked('b.test') == ['/1.png'] and server.pages_asked('c.test') == ['/2.png']


@test
def a_redirect_is_followed_out_of_scope(folder):
    with Server({'a.test': {}, 'b.test': {'/p.png': image()}, 'c.test': {}}) as server:
        server.sites['c.test']['/old.png'] = redirect(server.url('b.test', '/p.png'))
        server.sites['a.test']['/'] = ('<img src="%s">' % server.url('c.test', '/old.png')).encode()
        crawl(folder / 'r', server, server.url('a.test'), '--delay', 0, '--with', 'images')
        assert there(folder / 'r', server, 'b.test', '/p.png')


@test
def a_page_that_is_embedded_is_not_followed(folder):
    """A file that calls itself a page, and style sheets that import each other without end."""
    with Server({'a.test': {}, 'b.test': {'/x': page('/never', text='x'), '/never': page(text='n'),
                                          '*': lambda r: file('@import "%s/x.css";' % r.path, 'text/css')}}) as server:
        server.sites['a.test']['/'] = ('<img src="%s"><link rel=stylesheet href="%s">' %
                                       (server.url('b.test', '/x'), server.url('b.test', '/s'))).encode()
        crawl(folder / 'r', server, server.url('a.test'), '--delay', 0, '--with', 'images,styles')
        asked = server.pages_asked('b.test')
        assert '/never' not in asked and '/x' in asked
        assert 3 <= len(asked) <= 12, asked


@test
def scripts_name_what_they_load(folder):
    """Modules import modules, and a script names a file beside it. What does not exist costs one request."""
    js = lambda text: file(text, 'text/javascript')
    with Server({'a.test': {'/': b'<script src="/js/main.js"></script><script type=module>import "./own.js"</script>',
                            '/js/main.js': js('load("search.js"); load("none.js"); base + "/config.js"; // "comment.js"'),
                            '/js/search.js': js('draw("sign.png")'), '/js/sign.png': image(),
                            '/own.js': js('import x from "./lib/a.js"'), '/lib/a.js': js('export * from "../b.js"'),
                            '/b.js': js('import("/own.js")'), '/robots.txt': Reply('', 404)}}) as server:
        crawl(folder / 'r', server, server.url('a.test'), '--delay', 0, '--with', 'scripts,images')
        asked = server.pages_asked('a.test')
        assert sorted(asked) == ['/', '/b.js', '/js/main.js', '/js/none.js', '/js/search.js', '/js/sign.png', '/lib/a.js',
                                 '/own.js'], asked
        verified(folder / 'r')


@test
def a_page_that_is_embedded_and_linked_is_followed(folder):
    """First only as something that a page needs; a link to it is found later. It is fetched once."""
    with Server({'a.test': {'/': b'<object data="/x"></object><a href="/y">y</a>', '/y': page('/x', text='y'),
                            '/x': page('/z', text='x'), '/z': page(text='z'), '/robots.txt': Reply('', 404)}}) as server:
        crawl(folder / 'r', server, server.url('a.test'), '--delay', 0.1, '--with', 'media')
        assert sorted(server.pages_asked('a.test')) == ['/', '/x', '/y', '/z'], server.pages_asked('a.test')
        verified(folder / 'r')


@test
def a_killed_crawl_goes_on(folder):
    with Server({'a.test': {}, 'b.test': {'*': lambda r: image(r.path), '/robots.txt': Reply('', 404)}}) as server:
        server.sites['a.test']['/'] = ''.join('<img src="%s">' % server.url('b.test', '/%d.png' % n)
                                              for n in range(40)).encode()
        args = [server.url('a.test'), '--delay', 0.1, '--with', 'images', '--processes', 2]
        for n in (10, 20):
            p = start(folder / 'r', server, *args)
            until(lambda: len(server.pages_asked('b.test')) >= n)
            kill_all(p)
        crawl(folder / 'r', server, *args)
        asked = server.pages_asked('b.test')
        assert len(set(asked)) == 40, len(set(asked))
        assert len(asked) <= 42, 'one request may be lost with each kill'
        assert server.pages_asked('a.test') == ['/'], 'the page was finished and is not asked for again'
        server.expect_gaps(0.1)
        verified(folder / 'r')


@test
def the_next_crawl_asks_for_what_pages_name_again(folder):
    """With validators. A host of images that another crawl used is not asked for the other's images."""
    def tagged(r):
        body = image(r.path)
        if r.headers.get('if-none-match') == '"1"':
            return Reply(b'', 304)
        body.headers.append(('ETag', '"1"'))
        return body
    with Server({'a.test': {}, 'z.test': {}, 'b.test': {'*': tagged, '/robots.txt': Reply('', 404)}}) as server:
        server.sites['a.test']['/'] = ('<img src="%s">' % server.url('b.test', '/a.png')).encode()
        server.sites['z.test']['/'] = ('<img src="%s">' % server.url('b.test', '/z.png')).encode()
        with_images = ['--delay', 0, '--with', 'images']
        crawl(folder / 'r', server, server.url('a.test'), *with_images)
        crawl(folder / 'r', server, server.url('z.test'), *with_images)
        assert server.pages_asked('b.test') == ['/a.png', '/z.png']
        events = crawl(folder / 'r', server, server.url('a.test'), *with_images)
        assert server.pages_asked('b.test') == ['/a.png', '/z.png', '/a.png']
        assert results(events)[server.url('b.test', '/a.png')] == 'unchanged'
        # Without the option nobody asks.
        crawl(folder / 'r', server, server.url('a.test'), '--delay', 0)
        assert server.pages_asked('b.test') == ['/a.png', '/z.png', '/a.png']


@test
def a_site_that_was_crawled_before_is_not_crawled_again_for_an_image(folder):
    with Server({'a.test': {}, 'b.test': {'/': page('/1', '/2'), '/1': page(text='1'), '/2': page(text='2'),
                                          '/p.png': image()}}) as server:
        server.sites['a.test']['/'] = ('<img src="%s">' % server.url('b.test', '/p.png')).encode()
        crawl(folder / 'r', server, server.url('b.test'), '--delay', 0)
        before = len(server.requests)
        crawl(folder / 'r', server, server.url('a.test'), '--delay', 0, '--with', 'images')
        asked = [r.path for r in server.requests[before:] if r.host == 'b.test']
        assert asked == ['/p.png'], asked
        # The same after an update, which removes the logs of finished visits.
        call(folder / 'r', 'update')
        before = len(server.requests)
        crawl(folder / 'r', server, server.url('a.test'), '--delay', 0, '--with', 'images')
        asked = [r.path for r in server.requests[before:] if r.host == 'b.test']
        assert asked == ['/p.png'], asked
        # It is still a site of its own.
        before = len(server.requests)
        crawl(folder / 'r', server, server.url('b.test'), '--delay', 0)
        assert {'/', '/1', '/2'} <= {r.path for r in server.requests[before:] if r.host == 'b.test'}


@test
def run_fetches_them_too_and_its_scope_stays(folder):
    with small_web() as server:
        fill(server)
        server.sites['a.test']['/second'] += ('<a href="%s">a page there</a>' %
                                              server.url('img.test', '/unwanted')).encode()
        cycle(folder / 'r', server, server.url('a.test'), '--with', 'images,styles')
        wanted = IMAGES | STYLES | {('img.test', '/deep.png')}
        expect_stored(folder / 'r', server, wanted)
        for n in range(2):
            cycle(folder / 'r', server, '--with', 'images,styles')
        expect_stored(folder / 'r', server, wanted)
        for host in ('img.test', 'css.test'):
            assert not {'/', '/unwanted', '/map.xml'} & set(server.paths(host)), server.paths(host)
        assert len([p for p in server.paths('img.test') if p == '/pixel.png']) > 1, 'it is kept fresh'
        verified(folder / 'r')


@test
def webdb_knows_them(folder):
    with small_web() as server:
        fill(server)
        crawl(folder / 'r', server, server.url('a.test'), '--delay', 0, '--with', 'images,styles')
        call(folder / 'r', 'update')
        row = ask(folder / 'r', 'webdb', 'page', server.url('img.test', '/pixel.png'))[0]
        assert row['depth'] == 1 and 'wanted' not in row['flags'], row
        sheet = ask(folder / 'r', 'webdb', 'page', server.url('css.test', '/look.css'))[0]
        links = ask(folder / 'r', 'webdb', 'links', '--from', sheet['md5'])
        assert {l['tag'] for l in links} == {'style'}, links


@test
def wrong_words_are_refused(folder):
    for words in (['smells'], ['images,smells'], ['images', '--with', 'smells'], ['images,'], [',']):
        text = refused(folder / 'r', '--with', 'crawl', 'http://a.test/', '--with', *words, status=2, one_line=False)
        assert 'smells' in text or "''" in text, text
    refused(folder / 'r', 'smells', 'run', 'http://a.test/', '--with', 'smells', status=2, one_line=False)


run_together()
