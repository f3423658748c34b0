#!/usr/bin/env python3
"""make deb: what is in the package, what its scripts do, and whether the service that it describes works."""
import atexit, functools, http.client, re, shlex, shutil, signal, stat, subprocess, urllib.parse

from e2e import *

FILES = {
    'etc/default/webbase': 0o644, 'etc/default/webbase-backup': 0o600, 'etc/webbase/sites.txt': 0o644, 'usr/bin/webbase': 0o755,
    'usr/include/webbase/handler.h': 0o644, 'usr/include/webbase/module.h': 0o644, 'usr/lib/systemd/system/webbase.service': 0o644,
    'usr/lib/systemd/system/webbase-backup.service': 0o644,
    'usr/share/bash-completion/completions/webbase': 0o644, 'usr/share/man/man1/webbase.1.gz': 0o644,
    'usr/share/doc/webbase/copyright': 0o644, 'usr/share/doc/webbase/changelog.gz': 0o644,
    'usr/share/doc/webbase/README.md': 0o644, 'usr/share/doc/webbase/docs/search.png': 0o644,
    'usr/share/doc/webbase/docs/tour.md': 0o644, 'usr/share/doc/webbase/examples/handlers/words.c': 0o644,
    'usr/lib/python3/dist-packages/webbase/__init__.py': 0o644, 'usr/lib/python3/dist-packages/webbase/py.typed': 0o644,
}


def build(folder):
    """Builds the package from the program under test, with the script behind `make deb`."""
    out = subprocess.run([ROOT / 'scripts' / 'deb', folder], check=True, capture_output=True, timeout=PATIENCE,
                         env=dict(os.environ, WEBBASE=WEBBASE)).stdout.decode()
    deb = pathlib.Path(out.strip())
    assert deb.parent == folder and deb.is_file(), out
    return deb


@functools.lru_cache(1)
def package():
    """The package, which is built once for all tests."""
    folder = pathlib.Path(tempfile.mkdtemp(prefix='webbase-e2e-'))
    atexit.register(shutil.rmtree, folder)
    return build(folder)


def field(deb, name):
    return subprocess.run(['dpkg-deb', '-f', deb, name], check=True, capture_output=True).stdout.decode().strip()


def unpacked(folder):
    subprocess.run(['dpkg-deb', '-R', package(), folder / 'root'], check=True)
    return folder / 'root'


@test
def the_content(folder):
    deb = package()
    version = call(None, '--version').stdout.decode().split()[1]
    assert (field(deb, 'Package'), field(deb, 'Version')) == ('webbase', version)
    assert re.search(r'\blibc6 \(', field(deb, 'Depends')) and 'adduser' in field(deb, 'Depends')
    listed = subprocess.run(['dpkg-deb', '-c', deb], check=True, capture_output=True).stdout.decode().splitlines()
    assert all(line.split()[1] == 'root/root' for line in listed), listed
    names = {line.split()[5].lstrip('./') for line in listed}
    assert set(FILES) <= names, set(FILES) - names
    assert not [n for n in names if 'pycache' in n or n.endswith(('.a', '.o', '.pc'))], names
    root = folder / 'root'
    subprocess.run(['dpkg-deb', '-R', deb, root], check=True)
    for name, mode in FILES.items():
        assert stat.S_IMODE((root / name).stat().st_mode) == mode, name
    subprocess.run(['md5sum', '--check', '--quiet', 'DEBIAN/md5sums'], cwd=root, check=True)
    for name in (root / 'DEBIAN/conffiles').read_text().split():
        assert (root / name[1:]).is_file(), name
    assert call(None, '--version').stdout == subprocess.run([root / 'usr/bin/webbase', '--version'], check=True,
                                                            capture_output=True).stdout


@test
def python_finds_the_client(folder):
    place = unpacked(folder) / 'usr/lib/python3/dist-packages'
    said = subprocess.run([sys.executable, '-B', '-c', 'import webbase; print(webbase.Client("http://a.example"), webbase.__file__)'],
                          check=True, capture_output=True, env=dict(os.environ, PYTHONPATH=str(place)), text=True).stdout
    assert said == "Client('http://a.example') %s/webbase/__init__.py\n" % place, said
    assert {p.name for p in (place / 'webbase').iterdir()} == {p.name for p in (ROOT / 'clients/python/webbase').iterdir()} - {'__pycache__'}


@test
def the_same_sources_give_the_same_package(folder):
    assert build(folder).read_bytes() == package().read_bytes()


@test
def dpkg_unpacks_and_removes_it(folder):
    """In a root of its own. Its scripts cannot run there; they are tested below."""
    as_root = [] if os.geteuid() == 0 else ['unshare', '--map-root-user']
    root = folder / 'root'
    for name in ('var/lib/dpkg/updates', 'var/lib/dpkg/info', 'var/lib/dpkg/triggers'):
        (root / name).mkdir(parents=True)
    (root / 'var/lib/dpkg/status').touch()
    base = [*as_root, 'dpkg', '--root=%s' % root, '--force-depends', '--force-not-root', '--log=/dev/null']
    subprocess.run([*base, '--unpack', package()], check=True, capture_output=True)
    said = subprocess.run([*base, '--verify', 'webbase'], check=True, capture_output=True).stdout
    assert re.fullmatch(rb'(missing   c /etc/\S+\n)*', said), said     # these two arrive with the scripts
    assert (root / 'usr/bin/webbase').is_file()
    for script in ('prerm', 'postrm'):
        (root / 'var/lib/dpkg/info' / ('webbase.' + script)).unlink()
    subprocess.run([*base, '--purge', 'webbase'], check=True, capture_output=True)
    left = [p for p in root.rglob('*') if p.is_file() and 'var/lib/dpkg' not in str(p)]
    assert left == [], left


def run_script(folder, root, name, *args, present=()):
    """Runs a script of the package with stand-ins for every program that it calls. Returns their calls. present: what
    getent finds, and services that somebody has enabled."""
    bin_, log = folder / 'bin', folder / 'log'
    shutil.rmtree(bin_, ignore_errors=True)
    bin_.mkdir()
    for program in ('getent', 'adduser', 'systemctl', 'deb-systemd-helper', 'deb-systemd-invoke', 'rm', 'rmdir'):
        absent = '' if 'webbase-backup.service' in present else \
            'case "$*" in *installed*-backup.service | *was-enabled*-backup.service) exit 1;; esac\n'
        (bin_ / program).write_text('#!/bin/sh\necho %s "$@" >>%s\n%sexit %d\n' %
                                    (program, shlex.quote(str(log)), absent, program == 'getent' and program not in present))
        (bin_ / program).chmod(0o755)
    log.write_text('')
    subprocess.run(['/bin/sh', root / 'DEBIAN' / name, *args], check=True, env={'PATH': str(bin_)})
    return log.read_text().splitlines()


@test
def the_scripts_of_the_package(folder):
    root = unpacked(folder)
    for name in ('postinst', 'prerm', 'postrm'):
        subprocess.run(['/bin/sh', '-n', root / 'DEBIAN' / name], check=True)
        assert stat.S_IMODE((root / 'DEBIAN' / name).stat().st_mode) == 0o755
    calls = run_script(folder, root, 'postinst', 'configure', '')
    assert any(c.startswith('adduser --system') and c.endswith(' webbase') for c in calls), calls
    assert 'deb-systemd-helper enable webbase.service' in calls, calls
    # Somebody must say first where the vault is.
    assert 'deb-systemd-helper enable webbase-backup.service' not in calls, calls
    calls = run_script(folder, root, 'postinst', 'configure', '0.0.9', present=('getent', 'webbase-backup.service'))
    assert 'deb-systemd-helper enable webbase-backup.service' in calls, calls
    calls = run_script(folder, root, 'postinst', 'configure', '0.0.9', present=('getent',))
    assert not any(c.startswith('adduser') for c in calls), calls
    run_script(folder, root, 'prerm', 'upgrade', '9')
    assert not any(c.startswith('rm ') for c in run_script(folder, root, 'postrm', 'remove'))
    assert not any(c.startswith('rm ') for c in run_script(folder, root, 'postrm', 'upgrade', '9'))
    assert 'rm -rf /var/lib/webbase' in run_script(folder, root, 'postrm', 'purge')


def settings(path):
    return dict(re.findall(r'(?m)^(\w+)="(.*)"$', path.read_text()))


@test
def the_units_are_valid_and_hardened(folder):
    root = unpacked(folder)
    for name in ('webbase.service', 'webbase-backup.service'):
        text = (root / 'usr/lib/systemd/system' / name).read_text()
        for line in ('User=webbase', 'ProtectSystem=strict', 'StateDirectory=webbase', 'NoNewPrivileges=yes',
                     'PrivateTmp=yes', 'Restart=on-failure'):
            assert line in text.splitlines(), (name, line)
        unit = folder / name
        unit.write_text(text.replace('/usr/bin/webbase', str(root / 'usr/bin/webbase')))
        p = subprocess.run(['systemd-analyze', 'verify', '--man=no', unit], capture_output=True)
        assert p.returncode == 0 and name.encode() not in p.stderr, p.stderr
        p = subprocess.run(['systemd-analyze', 'security', '--offline=true', '--threshold=30', unit], capture_output=True)
        assert p.returncode == 0, p.stdout[-300:]


def command_of(root, name, state, **changed):
    """The command line of a unit with the settings of the package, some of them changed, in this folder."""
    unit = (root / 'usr/lib/systemd/system' / (name + '.service')).read_text()
    line = re.search(r'(?m)^ExecStart=(.*)$', unit).group(1)
    values, words = {**settings(root / 'etc/default' / name), **changed}, []
    for word in line.split():
        words += shlex.split(values[word[1:]]) if word.startswith('$') else [word]
    words = [re.sub('^/(usr|etc)/', str(root) + r'/\1/', w).replace('/var/lib/webbase', str(state)) for w in words]
    assert words[0] == str(root / 'usr/bin/webbase'), words
    return words


@test
def the_service_works_as_it_is_configured(folder):
    """Starts the very command line of the unit, with the files of the package, but in this folder."""
    root, state = unpacked(folder), folder / 'state'
    serve = settings(root / 'etc/default/webbase')['WEBBASE_SERVE']
    words = command_of(root, 'webbase', state, WEBBASE_SERVE=serve.replace(':8080', ':0').replace(':8081', ':0'))   # another may be running here
    assert '--run' in words, words
    p = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=open(folder / 'errors', 'w'), text=True)
    try:
        said = p.stdout.readline()
        assert said.startswith('listening on http://127.0.0.1:'), (folder / 'errors').read_text()
        where = urllib.parse.urlsplit(said.split()[-1])
        connection = http.client.HTTPConnection(where.hostname, where.port, timeout=PATIENCE)
        connection.request('GET', '/healthz')
        assert connection.getresponse().status == 200
        replaying = re.fullmatch(r'replaying at http://localhost:(\d+)/\n', p.stdout.readline())
        assert replaying, 'stored pages have no origins of their own'
        connection = http.client.HTTPConnection(where.hostname, int(replaying[1]), timeout=PATIENCE)
        connection.request('GET', '/', headers={'Host': '20260102030405-http-a-example.localhost:' + replaying[1]})
        assert connection.getresponse().status == 404      # it answers for a stored site, of which it has nothing
        assert stat.S_IMODE((state / 'token').stat().st_mode) & 0o077 == 0
        p.send_signal(signal.SIGTERM)
        assert p.wait(PATIENCE) == 0, (folder / 'errors').read_text()
        assert 'starts again' not in (folder / 'errors').read_text(), (folder / 'errors').read_text()
    finally:
        if p.poll() is None:
            p.kill()
        p.wait(PATIENCE)


@test
def the_backup_service_works_as_it_is_configured(folder):
    """Nothing without a vault; with one, what is in the repository becomes safe, and SIGTERM ends it."""
    root, state, vault = unpacked(folder), folder / 'state', folder / 'vault'
    pages = some_pages(rng('backup'), 20)
    call(state, 'import', archive(folder / 'a.warc', pages))
    unset = command_of(root, 'webbase-backup', state)
    assert subprocess.run(unset, capture_output=True, timeout=PATIENCE).returncode == 2, unset
    vault.mkdir()
    words = command_of(root, 'webbase-backup', state, WEBBASE_VAULT='file://%s' % vault)
    p = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=open(folder / 'errors', 'w'))
    try:
        end = time.time() + PATIENCE
        while not any(b['pages'] == 20 for b in ask(state, 'stat')[0]['backup']):
            assert p.poll() is None and time.time() < end, (folder / 'errors').read_text()
            time.sleep(0.05)
        assert [b['following'] for b in ask(state, 'stat')[0]['backup']] == [True]
        p.send_signal(signal.SIGTERM)
        assert p.wait(PATIENCE) == 0, (folder / 'errors').read_text()
    finally:
        if p.poll() is None:
            p.kill()
        p.wait(PATIENCE)
    call(None, 'restore', 'file://%s' % vault, folder / 'copy')
    assert verified(folder / 'copy')['pages'] == 20


run()
