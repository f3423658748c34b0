#!/usr/bin/env python3
"""What the tests of pywb ask its CDX server (tests/test_cdx_server_app.py there), asked of ours, about captures of the
same shape as those of its sample archive. docs/http.md says which of them do not apply here."""
import re

from e2e import *
from serving import *

CSS, PRINT = 'http://www.iana.org/_css/2013.1/screen.css', 'http://www.iana.org/_css/2013.1/print.css'
# The times at which the style sheets of the sample were captured; all captures after the first one are revisits.
TIMES = ['20140126200625'] + ['20140126' + t for t in '200653 200706 200716 200737 200804 200816 200825 200912 200929 201054 201127 201227 201239 '
                              '201248 201307'.split()] + ['20140127171239']


def date(digits):
    return '%s-%s-%sT%s:%s:%sZ' % re.fullmatch('(....)(..)(..)(..)(..)(..)', digits).groups()


def sample(folder):
    pages = [Page('http://www.iana.org/', b'<title>iana</title><p>one', date('20140126200624')),
             Page('http://iana.org/', b'', date('20140127171238'), type='text/html', status='302 Found', headers=['Location: http://www.iana.org/']),
             Page('http://www.iana.org/', b'<title>iana</title><p>one', date('20140127171238')),
             Page('http://www.iana.org/domains', b'<p>domains', date('20140126200825')),
             Page('http://www.iana.org/_css/2013.1/fonts/Inconsolata.otf', b'font', date('20140126200826'), type='application/octet-stream'),
             Page('http://www.iana.orgx.example/', b'<p>another site', date('20140126200825'))]
    for url in (CSS, PRINT):
        pages += [Page(url, b'body { color: %d }' % len(url), date(t), type='text/css') for t in TIMES]
    repo = folder / 'r'
    call(repo, 'init', '--history', 'all')
    done(ask(repo, 'import', archive(folder / 'a.warc', pages)))
    call(repo, 'update')
    call(repo, 'index')
    return repo


def lines_of(s, url, kind='text/x-cdxj', **q):
    r = s.ask('/cdx', url=url, **q)
    assert r.status == 200 and r.field('Content-Type').split(';')[0] == kind, (q, r.status, r.fields, r.body)
    return r.body.decode().splitlines()


def parse(line):
    """What pywb's CDXObject reads: a line of CDXJ, or 7, 9, 10, 11 or more fields."""
    key, moment, rest = line.split(' ', 2)
    if rest.startswith('{'):
        return dict(json.loads(rest), urlkey=key, timestamp=moment)
    values = line.split(' ')
    assert len(values) == 7, line
    return dict(zip('urlkey timestamp url mime status digest length'.split(), values))


def rows(s, url, **q):
    return [parse(line) for line in lines_of(s, url, **q)]


@test
def one_url(folder):
    with Server(sample(folder)) as s:
        assert len(rows(s, 'http://www.iana.org/')) == 3, 'with and without www'
        assert len([json.loads(x) for x in lines_of(s, 'http://www.iana.org/', 'text/x-ndjson', output='json')]) == 3
        plain = lines_of(s, 'http://www.iana.org/', 'text/plain', output='text')
        assert len(plain) == 3 and not any('{' in line for line in plain)
        keys = {r['urlkey'] for r in rows(s, 'http://www.iana.org/', matchType='prefix')}
        assert any(len(k) > len('org,iana)/') for k in keys) and all(k.startswith('org,iana)/') for k in keys), keys
        assert {r['urlkey'] for r in rows(s, 'iana.org/_CSS/2013.1/fonts/inconsolata.otf')} == {'org,iana)/_css/2013.1/fonts/inconsolata.otf'}


@test
def filters_and_limits(folder):
    with Server(sample(folder)) as s:
        found = rows(s, CSS, filter=['mime:warc/revisit', '=timestamp:20140127171239'])
        assert [(r['urlkey'], r['timestamp'], r['mime']) for r in found] == [('org,iana)/_css/2013.1/screen.css', '20140127171239', 'warc/revisit')]
        assert rows(s, CSS, filter=['!mime:warc/revisit', 'timestamp:20140127'], allowFuzzy='false') == []
        found = rows(s, CSS, filter='!mime:warc/revisit')
        assert [(r['timestamp'], r['mime']) for r in found] == [('20140126200625', 'text/css')]
        assert [r['mime'] for r in rows(s, CSS, limit=1)] == ['text/css']
        last = rows(s, CSS, limit=1, reverse=1)
        assert [(r['timestamp'], r['mime']) for r in last] == [('20140127171239', 'warc/revisit')]
        assert [r['timestamp'] for r in rows(s, CSS, filter='~timestamp:2014012620(06|07)')] == TIMES[:5]


@test
def fields(folder):
    with Server(sample(folder)) as s:
        chosen = rows(s, PRINT, fields='urlkey,timestamp,status')
        assert len(chosen) == len(TIMES) and all(sorted(r) == ['status', 'timestamp', 'urlkey'] for r in chosen), chosen[0]
        for line in lines_of(s, PRINT, 'text/x-ndjson', fields='urlkey,timestamp,status', output='json'):
            row = json.loads(line)
            assert len(row) == 3 and row['urlkey'] == 'org,iana)/_css/2013.1/print.css' and re.fullmatch(r'\d{14}', row['timestamp'])
            assert re.fullmatch(r'\d{3}', row['status'])
        assert lines_of(s, PRINT, 'text/plain', fields='timestamp,status', output='text', limit=1) == ['20140126200625 200']
        assert lines_of(s, PRINT, 'text/plain', fl='timestamp,status', limit=1) == ['20140126200625 200']
        for q in (dict(fields='urlkey,nosuchfield'), dict(fields='urlkey,nosuchfield', output='json'), dict(fields='url,orig.length')):
            s.ask('/cdx', url=PRINT, **q).error(400, 'fields', q['fields'].split(',')[1])


@test
def revisits(folder):
    """resolveRevisits gives them the type of what they repeat, and its length."""
    with Server(sample(folder)) as s:
        plain, resolved = rows(s, PRINT), rows(s, PRINT, resolveRevisits='true')
        assert [r['timestamp'] for r in resolved] == TIMES
        assert {r['mime'] for r in resolved} == {'text/css'} and [r['mime'] for r in plain].count('warc/revisit') == len(TIMES) - 1
        assert [r['orig.length'] for r in resolved] == ['-'] + [plain[0]['length']] * (len(TIMES) - 1)
        assert {r['orig.offset'] + r['orig.filename'] for r in resolved} == {'--'}, 'there are no files'
        assert [set(a) - set(b) for a, b in zip(resolved, plain)] == [{'orig.length', 'orig.offset', 'orig.filename'}] * len(TIMES)
        chosen = rows(s, PRINT, resolveRevisits='1', fields='urlkey,orig.length,orig.offset,orig.filename')
        assert [r['orig.length'] for r in chosen] == [r['orig.length'] for r in resolved] and len(chosen[0]) == 5
        assert len(rows(s, PRINT, resolveRevisits=1, filter='mime:css')) == len(TIMES) and rows(s, PRINT, resolveRevisits=1, filter='mime:revisit') == []
        three = rows(s, PRINT, collapseTime=11, resolveRevisits='true', reverse='true')
        assert [r['timestamp'] for r in three] == ['20140127171239', '20140126201307', '20140126200929']


@test
def what_is_refused_is_named(folder):
    with Server(sample(folder)) as s:
        for name, value, word in (('output', 'foo', 'foo'), ('matchType', 'foo', 'foo'), ('filter', '=filename:dupes.warc.gz', 'filename'),
                                  ('filter', 'offset:1', 'offset'), ('fields', 'url,filename', 'filename'), ('fl', 'offset', 'offset'),
                                  ('showPagedIndex', 'true', 'showPagedIndex'), ('allowFuzzy', 'true', 'allowFuzzy'), ('collapse', 'offset', 'offset'),
                                  ('filter', 'nothing', 'nothing'), ('resolveRevisits', 'maybe', 'resolveRevisits'), ('page', '9', 'page')):
            s.ask('/cdx', url=PRINT, **{name: value}).error(400, name, word)
        s.ask('/cdx').error(400, 'url')
        s.ask('/cdx/search/cdx', url=PRINT, resolveRevisits='true').error(400, 'resolveRevisits')


run()
