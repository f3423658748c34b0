#!/usr/bin/env python3
"""A repository that a program of format 2 has made: read as it is, upgraded by the first writer."""
from e2e import *

FORMAT_2 = ROOT / 'tests' / 'unit' / 'store' / 'format2'
PAGES = 38  # tests/unit/store/test_upgrade.c says which


def files(folder):
    return {str(p.relative_to(folder)): p.read_bytes() for p in sorted(folder.rglob('*')) if p.is_file()}


def copied(folder):
    repo = folder / 'r'
    shutil.copytree(FORMAT_2, repo)
    return repo


def format_of(repo):
    return (repo / 'webbase.repo').read_text().split('\n')[1]


def read_all(repo, folder):
    """Reads everything in several ways; returns the exported archive without what differs each time."""
    s = ask(repo, 'stat')[0]
    assert (s['pages'], s['versions'], s['captures'], s['revisits'], s['sites']) == (PAGES, PAGES, PAGES, 3, 5), s
    report = verified(repo)
    assert report['pages'] == PAGES, report
    out = folder / 'out.warc'
    end = done(ask(repo, 'export', '--warc', out, '--force'))
    assert end['pages'] == PAGES and end['errors'] == 0, end
    page = ask(repo, 'get', 'https://site2.example/page/12')[0]
    assert page['time'] == '2023-11-14T22:15:12.000Z', page
    assert len(call(repo, 'get', 'https://site2.example/page/12').stdout) == 300 + 12 * 137 % 900
    refused(repo, 'site0.example/page/30', 'get', 'https://site0.example/page/30')
    return out


@test
def reading_changes_nothing(folder):
    repo = copied(folder)
    before = files(repo)
    read_all(repo, folder)
    assert files(repo) == before and format_of(repo) == 'format 2'


@test
def the_first_writer_upgrades(folder):
    repo = copied(folder)
    call(repo, 'compact')
    assert format_of(repo) == 'format 5'
    out = read_all(repo, folder)
    # The pages of the fixture have types that their heads do not say, and six of them keys that are not those of their
    # URLs. So in an archive, 25 have other contents, and six are new; the others are known.
    end = done(ask(repo, 'import', '--no-journal', out))
    assert (end['pages'], end['replaced'], end['errors']) == (31, 25, 0), end
    # What is there already is not stored again.
    end = done(ask(repo, 'import', '--no-journal', out))
    assert (end['pages'], end['replaced'], end['older'], end['errors']) == (0, 0, PAGES, 0), end
    assert verified(repo)['pages'] == PAGES + 6


@test
def a_newer_format_is_refused(folder):
    repo = copied(folder)
    text = (repo / 'webbase.repo').read_text().replace('format 2', 'format 6')
    (repo / 'webbase.repo').write_text(text)
    before = files(repo)
    for command in 'stat', 'verify', 'compact':
        message = refused(repo, 'format 6', command)
        assert 'up to 5' in message, message
    assert files(repo) == before


run()
