#!/usr/bin/env python3
"""scripts/arrows and scripts/docs-check: each of their rules finds what it is for, in a small tree of its own."""
import textwrap

from e2e import *

SOUND = {
    'src/base/buf.h': '/* bytes */\n', 'src/base/buf.c': '#include "base/buf.h"\n',
    'src/os/os.h': '/* files */\n', 'src/os/file.c': '#include "os/os.h"\n#include "base/buf.h"\n',
    'src/url/url.h': 'struct wb_url {\n    int port;\n};\n', 'src/url/url.c': '#include "url/url.h"\n#include <stdio.h>\n',
    'src/url/host.h': '/* hosts */\n',
    'src/page/page.c': '#include "url/url.h"\n#include "base/buf.h"\n',
}
FOLDERS = {
    'src/url/low/a.h': '/* a */\n', 'src/url/low/a.c': '#include "url/low/a.h"\n#include "url/url.h"\n',
    'src/url/high/b.h': '#include "url/low/a.h"\n',
}


def tree(folder, files, edits=(), of='arrows'):
    """A project with these files, and with a script of ours in which each (old, new) is replaced."""
    shutil.rmtree(folder, ignore_errors=True)
    for path, text in files.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text)
    (folder / 'scripts').mkdir()
    shutil.copy(ROOT / 'scripts' / 'tap.py', folder / 'scripts')
    text = (ROOT / 'scripts' / of).read_text()
    for old, new in edits:
        assert old in text, old
        text = text.replace(old, new)
    (folder / 'scripts' / of).write_text(text)


def found(folder, of='arrows'):
    """What a script finds: its comments."""
    p = subprocess.run([sys.executable, folder / 'scripts' / of], capture_output=True, text=True, timeout=PATIENCE)
    problems = [line[2:] for line in p.stdout.splitlines() if line.startswith('# ')]
    assert p.returncode == bool(problems) and p.stdout.startswith('1..'), (p.stdout, p.stderr)
    return problems


def expect(folder, files, *wanted, edits=()):
    tree(folder / 'p', files, edits)
    problems = found(folder / 'p')
    assert len(problems) == len(wanted), problems
    for problem, words in zip(problems, wanted):
        assert words in problem, (words, problem)


@test
def includes_follow_the_arrows_between_rooms(folder):
    expect(folder, SOUND)
    expect(folder, {**SOUND, 'src/url/url.c': '\n#include "page/page.h"\n'},
           'src/url/url.c:2: includes page/page.h: no arrow from url to page', 'the rooms page, url')
    expect(folder, {**SOUND, 'src/page/page.c': '#include "url/host.h"\n'},
           'src/page/page.c:1: includes url/host.h: not its door')
    expect(folder, {**SOUND, 'src/page/page.c': '#include "url/host.h"\n'},
           edits=[("INNER_DOORS = {", "INNER_DOORS = {'url/host.h': {'page'}, ")])
    expect(folder, {**SOUND, 'src/attic/x.c': '#include "url/url.h"\n'}, 'ARROWS does not list the room attic')


@test
def folders_follow_the_arrows_within_a_room(folder):
    listed = [('FOLDERS = {\n', "FOLDERS = {\n    'url': {'low': '', 'high': 'low', '.': '*'},\n")]
    files = {**SOUND, **FOLDERS, 'src/url/url.c': '#include "url/high/b.h"\n'}
    expect(folder, files)
    expect(folder, files, edits=listed)
    upward = {**files, 'src/url/low/a.c': '#include "url/host.h"\n'}
    expect(folder, upward, 'src/url/low/a.c:1: includes url/host.h: no arrow from low to .', 'the folders', edits=listed)
    expect(folder, {**files, 'src/url/new/c.c': '#include "url/low/a.h"\n'},
           'src/url/new/c.c:1: FOLDERS does not list the folder new of url', edits=listed)


@test
def arrows_lead_to_what_is_listed_before(folder):
    expect(folder, SOUND, 'ARROWS: base has an arrow to os, which is not listed before it', edits=[("'base': ''", "'base': 'os'")])
    folders = "FOLDERS = {\n    'url': {'low': 'high', 'high': ''},\n    'none': {},\n"
    expect(folder, SOUND, 'FOLDERS[url]: low has an arrow to high', 'FOLDERS: there is no room none',
           edits=[('FOLDERS = {\n', folders)])


@test
def circles_are_found_between_rooms_folders_and_headers(folder):
    # Rooms: the arrows permit it, because the table is wrong.
    expect(folder, {**SOUND, 'src/os/os.h': '#include "url/url.h"\n', 'src/url/url.c': '#include "os/os.h"\n'},
           'ARROWS: os has an arrow to url', 'the rooms os, url: os -> url (os.h:1) -> os (url.c:1)',
           edits=[("'os': 'base'", "'os': 'base url'"), ("'url': 'base'", "'url': 'base os'")])
    # Folders: with arrows or without.
    files = {**SOUND, **FOLDERS, 'src/url/low/a.c': '#include "url/high/b.h"\n'}
    circle = 'the folders high, low of url: high -> low (b.h:1) -> high (a.c:1)'
    expect(folder, files, circle)
    expect(folder, {**SOUND, **FOLDERS, 'src/url/url.c': '#include "url/low/a.h"\n', 'src/url/low/a.c': '#include "url/host.h"\n'},
           'the folders ., low of url')
    # All files of a room may include its door, and the file beside the door includes them.
    expect(folder, {**SOUND, **FOLDERS, 'src/url/url.c': '#include "url/low/a.h"\n'})
    # Headers.
    expect(folder, {**SOUND, 'src/url/url.h': '#include "url/host.h"\n', 'src/url/host.h': '#include "url/url.h"\n'},
           'the headers url/host.h -> url/url.h (host.h:1) -> url/host.h (url.h:1)')


@test
def names_have_one_meaning_and_lines_an_end(folder):
    expect(folder, {**SOUND, 'tests/unit/url/buf.c': '', 'src/page/more.c': 'struct wb_url {\n};\n' + '/*%s*/\n' % ('x' * 120)},
           'buf.c: src/base/buf.c and tests/unit/url/buf.c', 'wb_url: src/page/more.c:1 and src/url/url.h:1',
           'src/page/more.c:3: 124 columns')


@test
def sizes_are_advice(folder):
    body = 'int f(void)\n{\n' + '    f();\n' * 300 + '}\n'
    expect(folder, {**SOUND, 'src/page/long.c': body + '\n' * 2000})
    p = subprocess.run([sys.executable, folder / 'p/scripts/arrows', '--advice'], capture_output=True, text=True, check=True)
    for line in ('    2303  src/page/long.c', '    2305  page', '     301  src/page/long.c:2'):
        assert line in p.stdout.splitlines(), (line, p.stdout)


DOCUMENTS = {
    'README.md': '# R\n\nSee [the room](ARCHITECTURE.md#the-rooms) and `url.c`.\n',
    'ARCHITECTURE.md': '# A\n\n## The rooms\n\n### url: which?\n\n| files | what |\n|---|---|\n| `url.c` | parses |\n\n## More\n',
    'docs/glossary.md': '| word | meaning |\n|---|---|\n| page | a *page* |\n',
    'docs/design/README.md': '', 'docs/formats/README.md': '',
    'src/url/url.c': '/* url.c - all of it. */\nint wb_url(void)\n{\n    return 0;\n}\n',
    'bench/run': 'a script\n',
}


@test
def documents_name_what_is_there(folder):
    for added, wanted in (
            ('', None),
            ('`urls.c`', 'urls.c does not exist'),
            ('`src/url/none.c`', 'src/url/none.c does not exist'),
            ('by bench/run', None),
            ('by bench/walk.', 'bench/walk does not exist'),
            ('`tests/unit`', 'tests/unit does not exist'),
            ('`wb_url()` and wb_url', None),
            ('wb_urls', 'wb_urls is not in the source'),
            ('`parse_all` is it', 'parse_all is not in the source'),
            ('calls parse_all().', 'parse_all is not in the source'),
            ('`test_none`', 'there is no test_none'),
            ('[x](docs/none.md)', 'docs/none.md leads nowhere'),
            ('[x](ARCHITECTURE.md#none)', 'ARCHITECTURE.md#none has no such heading'),
            ('| files | what |\n|---|---|\n| `url.c` | a |\n| `url.c` | b |\n', '`url.c` also has a row in line'),
            ('| bytes | what |\n|---|---|\n| 4 | a |\n| 4 | b |\n', None),
            ('| bytes | what |\n|---|---|\n| 4 | a |\n| 4 | a |\n', '4 also has a row in line')):
        files = dict(DOCUMENTS)
        files['README.md'] += '\n' + textwrap.dedent(added) + '\n'
        tree(folder / 'p', files, of='docs-check')
        problems = found(folder / 'p', 'docs-check')
        assert any(wanted in p for p in problems) if wanted else problems == [], (added, problems)
    # No file is in two tables of rooms.
    files = dict(DOCUMENTS)
    files['ARCHITECTURE.md'] += '\n### page: which?\n\n| folder | files | what |\n|---|---|---|\n| x | `url.c` | again |\n'
    tree(folder / 'p', files, of='docs-check')
    assert found(folder / 'p', 'docs-check') == ['ARCHITECTURE.md:17: url.c also has a row in line 9']


run()
