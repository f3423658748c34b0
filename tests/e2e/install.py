#!/usr/bin/env python3
"""make install: everything is installed where it belongs, and a program can link the library."""
import re, shutil, subprocess

from e2e import *

PROGRAM = r'''
#include "store/store.h"
#include "base/error.h"
#include <stdio.h>
int main(int argc, char **argv)
{
    struct wb_store *store = NULL;
    struct wb_store_stat stat;
    if (argc < 2 || wb_store_open(argv[1], WB_STORE_READ, &store) < 0 || wb_store_stat(store, &stat) < 0) {
        fprintf(stderr, "%s\n", wb_error_message());
        return 1;
    }
    printf("%llu pages\n", (unsigned long long)stat.pages);
    wb_store_close(store);
    return 0;
}
'''


def install(folder):
    subprocess.run(['make', '-s', 'install', 'PREFIX=/usr', 'DESTDIR=%s' % folder], cwd=ROOT, check=True,
                   capture_output=True)


@test
def everything_is_where_it_belongs(folder):
    install(folder)
    for name in ('usr/bin/webbase', 'usr/share/man/man1/webbase.1',
                 'usr/share/bash-completion/completions/webbase.bash',
                 'usr/include/webbase/store/store.h', 'usr/include/webbase/base/buf.h'):
        assert (folder / name).is_file(), name
    assert len(list(folder.rglob('libwebbase-core.a'))) == 1
    version = subprocess.run([folder / 'usr/bin/webbase', '--version'], capture_output=True, check=True).stdout
    assert version.startswith(b'webbase '), version
    finds_client(folder)


def finds_client(root):
    """Whether the Python of the system looks where the package is."""
    python = '/usr/bin/python3' if os.path.exists('/usr/bin/python3') else 'python3'
    looked = json.loads(subprocess.run([python, '-c', 'import json, sys; print(json.dumps(sys.path))'], check=True, capture_output=True).stdout)
    found = next(root.rglob('webbase/py.typed')).parent.parent
    assert '/' + str(found.relative_to(root)) in looked, (found, looked)
    subprocess.run([python, '-B', '-c', 'import webbase; webbase.Client()'], env=dict(os.environ, PYTHONPATH=str(found)), check=True)


@test
def python_finds_the_client(folder):
    """Debian's packages are in one folder, and in another what an administrator installs."""
    subprocess.run(['make', '-s', 'install', 'PREFIX=/usr/local', 'DESTDIR=%s' % folder], cwd=ROOT, check=True, capture_output=True)
    finds_client(folder)


@test
def headers_include_only_what_is_installed(folder):
    install(folder)
    headers = folder / 'usr/include/webbase'
    for header in sorted(headers.rglob('*.h')):
        for name in re.findall(r'(?m)^#include "([^"]+)"', header.read_text()):
            assert (headers / name).is_file(), '%s includes %s' % (header.relative_to(headers), name)


@test
def a_program_links_the_library(folder):
    install(folder / 'root')
    (folder / 'p.c').write_text(PROGRAM)
    found = next((folder / 'root').rglob('webbase.pc')).parent
    # The .pc file names /usr, but our files are below the test's root.
    flags = subprocess.run(['pkg-config', '--cflags', '--libs', '--define-variable=prefix=%s' % (folder / 'root/usr'),
                            'webbase'],
                           env=dict(os.environ, PKG_CONFIG_PATH=str(found)), capture_output=True,
                           check=True).stdout.decode().split()
    subprocess.run(['gcc', '-std=c17', 'p.c', '-o', 'p', *flags], cwd=folder, check=True)
    call(folder / 'r', 'import', archive(folder / 'a.warc', some_pages(rng('link'), 3)))
    out = subprocess.run([folder / 'p', folder / 'r'], capture_output=True, check=True).stdout
    assert out == b'3 pages\n', out


run()
