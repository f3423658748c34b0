#!/usr/bin/env python3
"""docs/recipes.md: each block is run, with a repository and a server as the document says. WEBBASE_RECIPES=pandas,duckdb,r also runs
those whose programs make check does not install (DuckDB as the npm module @duckdb/node-api, which NODE_PATH leads to)."""
import re

from e2e import *
from serving import *

MORE = set(os.environ.get('WEBBASE_RECIPES', '').split(',')) - {''}
DUCK = '''
const { DuckDBInstance } = require("@duckdb/node-api");
(async () => {
  const connection = await (await DuckDBInstance.create(":memory:")).connect();
  console.log(JSON.stringify((await connection.runAndReadAll(process.argv[2])).getRowsJson()));
})().catch((error) => { console.error(error); process.exit(1); });
'''


def repository(folder):
    repo = folder / 'webbase-data'
    call(repo, 'init', '--history', 'all')
    for k in range(2):
        done(ask(repo, 'import', archive(folder / ('%d.warc' % k), [
            Page('http://example.com/', b'<html lang=en><title>Example</title><p>An example of a page that is about the words of a language, state %d. <a href="/one">one</a> <a href="http://b.example/">b, "quoted"</a>' % k,
                 '2026-01-0%dT00:00:00Z' % (k + 1)),
            Page('http://example.com/one', b'<title>One</title><p>This example is the first one of them. <a href="/">home</a>'),
            Page('http://b.example/', b'just plain text with an example', type='text/plain')])))
    call(repo, 'update')
    call(repo, 'index')
    return repo


def blocks():
    """(heading, info string, code) of the document."""
    heading = ''
    for mark in re.finditer(r'(?m)^##+ (.*)$|^```(\w.*)\n((?:.*\n)*?)```$', (ROOT / 'docs/recipes.md').read_text()):
        if mark[1]:
            heading = mark[1]
        else:
            yield heading, mark[2], mark[3]


def words_for(folder, info, code):
    """The command that runs a block; None if it is not for this run."""
    if info == 'sh':
        return ['sh', '-euc', code]
    if info in ('python', 'python pandas') and (info == 'python' or 'pandas' in MORE):
        return ['/usr/bin/python3' if 'pandas' in info else sys.executable, '-c', code]
    if info == 'sql' and 'duckdb' in MORE:
        (folder / 'duck.js').write_text(DUCK)
        return ['node', 'duck.js', code]
    if info == 'r' and 'r' in MORE:
        return ['Rscript', '-e', code]
    assert info in ('text', 'python pandas', 'sql', 'r'), 'nobody runs a block of ' + info
    return None


@test
def every_recipe_works(folder):
    repo, ran = repository(folder), []
    (folder / 'bin').mkdir()
    os.symlink(WEBBASE, folder / 'bin/webbase')
    with Server(repo) as s:
        env = dict(os.environ, PATH='%s:%s' % (folder / 'bin', os.environ['PATH']), PYTHONPATH=str(ROOT / 'clients/python'))
        for heading, info, code in blocks():
            words = words_for(folder, info, code.replace('http://127.0.0.1:8080', s.url))
            if not words:
                continue
            p = subprocess.run(words, cwd=folder, env=env, capture_output=True, text=True, timeout=PATIENCE)
            assert p.returncode == 0 and 'null' not in p.stderr, (heading, code, p.stdout, p.stderr)
            assert p.stdout or 'export' in code or heading == 'Python', (heading, code, 'it prints nothing')
            ran.append((heading, info, p.stdout))
            if heading == 'Python':     # again: nothing is left to do
                assert subprocess.run(words, cwd=folder, env=env, timeout=PATIENCE).returncode == 0
                assert [x.name for x in (folder / 'texts').iterdir()] == ['000000.jsonl.gz']
    said = {}
    for heading, _, out in ran:
        said[heading] = said.get(heading, '') + out
    assert '2 text/html' in said['jq'] and '20260101000000\t' in said['jq'] and ' example\n' in said['jq'], said['jq']
    assert 'http://b.example/ is called b, "quoted"' in said['SQLite'], said['SQLite']
    for name, heading, word in (('pandas', 'pandas', 'text/plain'), ('duckdb', 'DuckDB', 'b.example'), ('r', 'R', 'text/plain')):
        assert name not in MORE or word in said[heading], said[heading]
    print('# also run: %s' % (', '.join(sorted(MORE)) or 'none of pandas, duckdb and r'))


run()
