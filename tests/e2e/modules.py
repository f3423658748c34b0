#!/usr/bin/env python3
"""--module: what a module says about a page is found, counted and remembered; one that misbehaves costs only that."""
from e2e import *

NOTE = ROOT / 'examples' / 'modules' / 'note.c'
BAD = r'''
#include <webbase/module.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
const char *const webbase_module_types = "text/x-bad";
int webbase_module_init(const struct webbase_host *host, void **state_out) { (void)host; *state_out = NULL; return 0; }
int webbase_module_process(void *state, const struct webbase_record *r, const struct webbase_output *out)
{
    char what = r->body.len ? r->body.ptr[0] : ' ';
    (void)state;
    out->title(out, "said before the end", 19);
    if (what == 'c') abort();
    if (what == 'h') for (;;) pause();
    if (what == 'm') for (;;) { char *p = malloc(1 << 20); if (p) memset(p, 1, 1 << 20); }
    if (what == 'o') memset(malloc((size_t)1 << 40), 1, (size_t)1 << 40);
    if (what == 'x') { close(3); for (;;) ; }
    if (what == 'w') { write(3, "\xff\xff\xff\x7f", 4); for (;;) pause(); }
    if (what == 'f') return -1;
    if (what == 'e') {
        if (open("/etc/passwd", O_RDONLY) >= 0) out->fact(out, "opened", "1", 1);
        if (socket(AF_INET, SOCK_STREAM, 0) >= 0) out->fact(out, "socket", "1", 1);
        if (fork() >= 0) out->fact(out, "forked", "1", 1);
        if (getenv("PATH")) out->fact(out, "environment", "1", 1);
    }
    return 0;
}
int webbase_module_finish(void *state, int complete) { (void)state; (void)complete; return 0; }
'''


def compiled(folder, name, source):
    (folder / (name + '.c')).write_text(source)
    subprocess.run(['cc', '-shared', '-fPIC', '-w', '-I', str(ROOT / 'include'), '-o', str(folder / (name + '.so')),
                    str(folder / (name + '.c'))], check=True)
    return folder / (name + '.so')


def note(path, mood, text='some words'):
    return Page('http://n.example/' + path, ('Note %s\nmood: %s\n%s\nhttp://n.example/next-%s' % (path, mood, text, path)).encode(),
                type='text/x-note')


def found(repo, query):
    return sorted(h['url'] for h in ask(repo, 'search', query) if 'url' in h)


def facts_of(repo, folder, force=[]):
    out = folder / 'facts.jsonl'
    out.unlink(missing_ok=True)
    call(repo, 'export', '--facts', out)
    return {r['url']: r for r in map(json.loads, out.read_text().splitlines())}


@test
def what_a_module_says_is_everywhere(folder):
    so, repo = compiled(folder, 'note', NOTE.read_text()), folder / 'r'
    ask(repo, 'import', '--module', '%s=here' % so, archive(folder / 'in.warc.gz', [note('a', 'sunny'), note('b', '7')]))
    stat, = ask(repo, 'stat')
    assert stat['modules'] == [{'name': 'note', 'types': 'text/x-note', 'pages': 2, 'errors': 0}], stat['modules']
    ask(repo, 'index')
    assert found(repo, 'mood:sunny source:here') == ['http://n.example/a'] and len(found(repo, 'title:note')) == 2
    rows = {r['url']: r for r in ask(repo, 'stream', '--format', 'jsonl')if 'url' in r}
    assert rows['http://n.example/b']['facts'] == {'mood': 7, 'source': 'here'}, rows
    assert [l['url'] for l in rows['http://n.example/b']['links']] == ['http://n.example/next-b']
    assert facts_of(repo, folder)['http://n.example/a']['mood'] == 'sunny'


@test
def columns_follow_the_pages(folder):
    """A later build takes over what it does not read again, and gives what one from scratch gives."""
    so, repo = compiled(folder, 'note', NOTE.read_text()), folder / 'r'
    ask(repo, 'import', '--module', so, archive(folder / '1.warc.gz', [note('a', '5'), note('b', '6'), note('c', '9')]))
    ask(repo, 'index')
    assert found(repo, 'mood:>=6') == ['http://n.example/b', 'http://n.example/c']
    ask(repo, 'import', archive(folder / '2.warc.gz', [note('b', 'sunny'), note('d', '8')], ))
    ask(repo, 'index')
    one = facts_of(repo, folder)
    assert found(repo, 'mood:5') == ['http://n.example/a']
    ask(repo, 'index', '--force', '--from-scratch')
    assert facts_of(repo, folder) == one and {r['mood'] for r in one.values()} >= {'5', '9', '8'}, one
    call(repo, 'verify')


@test
def none_are_used_if_so_asked(folder):
    so, repo = compiled(folder, 'note', NOTE.read_text()), folder / 'r'
    ask(repo, 'import', '--module', so, archive(folder / '1.warc.gz', [note('a', '5')]))
    ask(repo, 'index', '--no-modules')
    assert not found(repo, 'title:note')
    ask(repo, 'index', '--force', '--from-scratch')
    assert found(repo, 'title:note')
    so.unlink()
    gone = call(repo, 'index', '--force', '--from-scratch', status=1)
    assert b'note.so' in gone.stderr, gone.stderr
    ask(repo, 'index', '--force', '--from-scratch', '--no-modules')


@test
def a_module_that_misbehaves_costs_its_page(folder):
    so = compiled(folder, 'bad', BAD)
    want = {'c': 'crash', 'h': 'time', 'm': 'memory', 'o': 'memory', 'x': 'time', 'w': 'failed', 'f': 'failed', 'e': None}
    for what, error in want.items():
        (folder / what).write_text(what)
        page, = ask(None, 'extract', '--module', so, '--module-time', '2' if what in 'hx' else '60', '--module-memory', '100M',
                    '--type', 'text/x-bad', folder / what)
        expected = {error} if what != 'x' else {'time', 'crash'}
        assert page.get('module_error') in expected, (what, page)
        assert page['title'] == ('' if error else 'said before the end') and 'facts' not in page, page


@test
def what_is_no_module_is_refused(folder):
    (folder / 'junk.so').write_text('junk')
    old = compiled(folder, 'old', NOTE.read_text().replace('#include <string.h>', '#include <string.h>\n'
                   'const unsigned webbase_module_abi = 99;').replace('#include <webbase/module.h>',
                   '#define webbase_module_abi unused_abi\n#include <webbase/module.h>\n#undef webbase_module_abi'))
    repo = folder / 'r'
    for so in (folder / 'junk.so', compiled(folder, 'empty', 'int nothing;'), old, folder / 'none.so'):
        p = call(repo, 'crawl', '--module', so, 'http://127.0.0.1:9/', status=1)
        assert so.name.encode() in p.stderr and not repo.exists(), p.stderr
    for option, value in (('--module-time', '0'), ('--module-time', '99d'), ('--module-memory', '1')):
        p = call(repo, 'crawl', option, value, 'http://127.0.0.1:9/', status=2)
        assert option.encode() in p.stderr, p.stderr


run()
