#!/usr/bin/env python3
"""Announcements: announced pages are fetched first, and pages that are announced as gone are checked."""
import json, time

from e2e import *
from crawlserver import *


def begun(folder, server):
    crawl(folder / 'r', server, *[server.url(h) for h in server.sites], '--delay', 0)
    call(folder / 'r', 'update')
    return folder / 'r', len(server.requests)


@test
def announced_pages_come_first(folder):
    with Server({'p.test': star(30)}) as server:
        repo, before = begun(folder, server)
        server.sites['p.test']['/new'] = page(text='new')
        server.sites['p.test']['/7'] = page(text='seven, changed')
        (folder / 'list').write_text('%s\n# two\nchanged %s\n' %
                                     (server.url('p.test', '/new'), server.url('p.test', '/7')))
        said = done(ask(repo, 'push', folder / 'list'))
        assert said == {'event': 'done', 'changed': 2, 'gone': 0, 'refused': 0}, said
        cycle(repo, server, '--budget', 3)
        asked = [r.path for r in server.requests[before:] if r.path != '/robots.txt']
        assert sorted(asked[:2]) == ['/7', '/new'] and len(asked) == 3, asked
        assert call(repo, 'get', server.url('p.test', '/7')).stdout == server.sites['p.test']['/7']
        assert call(repo, 'get', server.url('p.test', '/new')).stdout == server.sites['p.test']['/new']
        f = ask(repo, 'webdb', 'page', server.url('p.test', '/new'))[0]
        assert 'pushed' not in f['flags'] and f['status'] == 200, f


@test
def pages_announced_as_gone_are_checked(folder):
    with Server({'g.test': star(10)}) as server:
        repo, before = begun(folder, server)
        del server.sites['g.test']['/3']
        body = {'urlList': [server.url('g.test', '/5')]}
        call(repo, 'push', '-', input=json.dumps(body).encode())
        body = {'changed': [],
                'gone': [server.url('g.test', '/3'), server.url('g.test', '/4'), 'http://elsewhere.test/x']}
        said = done(lines(call(repo, 'push', '-', '--json', input=json.dumps(body).encode()).stdout))
        assert said['gone'] == 3, said
        cycle(repo, server, '--budget', 3)
        assert sorted(r.path for r in server.requests[before:] if r.path != '/robots.txt') == ['/3', '/4', '/5']
        call(repo, 'get', server.url('g.test', '/3'), status=1)
        assert call(repo, 'get', server.url('g.test', '/4')).stdout == server.sites['g.test']['/4']
        call(repo, 'webdb', 'page', server.url('g.test', '/3'), status=1)
        call(repo, 'webdb', 'page', 'http://elsewhere.test/x', status=1)


@test
def invalid_announcements(folder):
    with Server({'b.test': star(3)}) as server:
        repo, before = begun(folder, server)
        (folder / 'list').write_text('nonsense\n%s\nmailto:a@b\n' % server.url('b.test', '/1'))
        p = call(repo, 'push', folder / 'list')
        assert b'1 page announced' in p.stdout and b'2 refused' in p.stdout, p.stdout
        words = p.stderr.decode().splitlines()
        assert len(words) == 2 and 'line 1' in words[0] and 'nonsense' in words[0] and 'line 3' in words[1], words
        assert str(folder / 'list') in words[1], words
        refused(repo, 'no-such-file', 'push', folder / 'no-such-file')
        (folder / 'bad.json').write_text('{"urlList": [')
        refused(repo, 'bad.json', 'push', folder / 'bad.json')
        refused(repo, 'push', 'push', status=2, one_line=False)
        # A URL that is out of scope is known, but not requested.
        call(repo, 'push', '-', input=b'http://elsewhere.test/x\n')
        call(repo, 'update')
        listed = done(ask(repo, 'generate'))
        assert listed['outside'] == 1 and listed['pushed'] == 1, listed


run_together()
