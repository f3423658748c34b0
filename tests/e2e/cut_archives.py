#!/usr/bin/env python3
"""Archives that are cut off, or that have wrong lengths and dates: what is there is kept and marked, and each fault is
reported."""
import re

from e2e import *


def shortened(record_, by):
    return re.sub(rb'(?m)^Content-Length: (\d+)', lambda m: b'Content-Length: %d' % (int(m[1]) - by), record_, count=1)


def errors_of(events):
    return [e for e in events if e['event'] == 'error']


def imported(folder, name, data):
    """Imports an archive; returns the repository and the error events."""
    path, repo = folder / name, folder / ('repo-' + name)
    path.write_bytes(data)
    return repo, errors_of(ask(repo, 'import', path))


def stored(repo, page):
    """The body of a page, and its facts."""
    return call(repo, 'get', page.url).stdout, ask(repo, 'get', page.url)[0]


def random_pages(name, count=5):
    random_ = rng(name)
    return [Page('http://cut.example/%d' % i, b'%d ' % i + random_.randbytes(5000).hex().encode())
            for i in range(count)]


@test
def a_last_record_that_is_cut_off(folder):
    pages = random_pages('cut')
    last, before = pages[-1], [p.record() for p in pages[:-1]]
    whole = last.record()
    for kept in (0, 1, 40, len(last.body) - 3):
        head = len(whole) - len(last.body) - 4
        data = b''.join(before)
        repo, errors = imported(folder, 'cut-%d.warc' % kept, data + whole[:head + kept])
        assert [e['offset'] for e in errors] == [len(data)], errors
        body, facts = stored(repo, last)
        assert body == last.body[:kept] and facts['truncated'] is True, (kept, len(body))
        assert all(stored(repo, p)[0] == p.body and stored(repo, p)[1]['truncated'] is False for p in pages[:-1])


@test
def a_last_record_cut_off_before_its_page(folder):
    """There is nothing of the page, so nothing is stored, and this is reported once."""
    pages = random_pages('head')
    last, data, whole = pages[-1], b''.join(p.record() for p in pages[:-1]), pages[-1].record()
    start = whole.index(b'HTTP/1.1')
    for i, cut in enumerate((20, start, start + 3, start + 10)):
        repo, errors = imported(folder, 'head-%d.warc' % i, data + whole[:cut])
        assert [e['offset'] for e in errors] == [len(data)], (cut, errors)
        call(repo, 'get', last.url, status=1)
        assert all(stored(repo, p)[0] == p.body for p in pages[:-1])
    # A cut inside the HTTP head, after the status line, gives a page without a body.
    repo, errors = imported(folder, 'inside.warc', data + whole[:start + 30])
    assert [e['offset'] for e in errors] == [len(data)], errors
    body, facts = stored(repo, last)
    assert body == b'' and facts['status'] == 200 and facts['truncated'] is True, facts


@test
def a_last_member_that_is_cut_off(folder):
    pages = random_pages('members')
    last, before = pages[-1], b''.join(gzip.compress(p.record()) for p in pages[:-1])
    member = gzip.compress(last.record())
    repo, errors = imported(folder, 'cut.warc.gz', before + member[:len(member) // 2])
    assert [e['offset'] for e in errors] == [len(before)], errors
    body, facts = stored(repo, last)
    assert last.body.startswith(body) and len(body) > 1000 and facts['truncated'] is True
    # The same with one member for all records.
    whole = gzip.compress(b''.join(p.record() for p in pages))
    repo, errors = imported(folder, 'whole.warc.gz', whole[:len(whole) * 9 // 10])
    assert len(errors) == 1, errors
    body, facts = stored(repo, last)
    assert last.body.startswith(body) and body and facts['truncated'] is True
    assert all(stored(repo, p)[0] == p.body for p in pages[:-1])


@test
def lengths_that_are_too_short(folder):
    pages = random_pages('short')
    for by in (1, 3, 30, 1000):
        records = [p.record() for p in pages]
        records[2] = shortened(records[2], by)
        for name, data in (('short-%d.warc' % by, b''.join(records)),
                           ('short-%d.warc.gz' % by, b''.join(map(gzip.compress, records)))):
            repo, errors = imported(folder, name, data)
            assert len(errors) == 1, (name, errors)
            assert stored(repo, pages[2])[0] in (pages[2].body, pages[2].body[:-by]), name
            assert all(stored(repo, p)[0] == p.body for p in pages if p is not pages[2]), name


@test
def invalid_dates(folder):
    for i, date in enumerate(('99999-01-01T00:00:00Z', 'yesterday', '2026-02-30T00:00:00Z')):
        page = Page('http://dates.example/', b'<p>dated', date)
        repo, errors = imported(folder, 'date-%d.warc' % i, page.record())
        assert len(errors) == 1 and 'date' in errors[0]['message'] and errors[0]['offset'] == 0, errors
        body, facts = stored(repo, page)
        # Nothing else in the archive has a date. Whatever the page gets instead must be the same in a second import.
        assert body == page.body and facts['time'] == '1990-01-01T00:00:00.000Z', facts
        call(repo, 'import', folder / ('date-%d.warc' % i))
        assert [v['captures'] for v in ask(repo, 'versions', page.url)] == [1]


@test
def arc_records_without_a_type(folder):
    data = b'filedesc://x.arc 0.0.0.0 20260102030405 text/plain 2\n1\n\n'
    for i, kind in enumerate((b'text/html', b'', b'text/html')):
        data += b'http://arc.example/%d 192.0.2.1 20260102030405 %s 7\n<p>page\n' % (i, kind)
    repo, errors = imported(folder, 'empty.arc', data)
    assert not errors, errors
    assert [call(repo, 'get', 'http://arc.example/%d' % i).stdout for i in range(3)] == [b'<p>page'] * 3
    # The last record is cut off.
    repo, errors = imported(folder, 'cut.arc', data[:-4])
    assert len(errors) == 1, errors
    facts = ask(repo, 'get', 'http://arc.example/2')[0]
    assert facts['truncated'] is True and call(repo, 'get', 'http://arc.example/2').stdout == b'<p>p'


run()
