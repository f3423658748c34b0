"""What a topic of bench/run needs that may not be installed: its programs are built with it, or run it.

A program whose library is missing is left out of the build (bench/meson.build), so that all others can be measured.
"""
import os, pathlib, shutil, subprocess, sys

# A library: the Debian package that has its header.
HEADERS = {'librocksdb-dev': 'rocksdb/c.h', 'libsqlite3-dev': 'sqlite3.h', 'libgumbo-dev': 'gumbo.h',
           'libxml2-dev': 'libxml2/libxml/parser.h', 'libxapian-dev': 'xapian.h'}
BROWSER = pathlib.Path(__file__).resolve().parent.parent / 'tests/browser'
INCLUDE = ('/usr/include', '/usr/local/include')

# A program of ours: the libraries without which it is not built.
PROGRAMS = {'bench_store': ('librocksdb-dev', 'libsqlite3-dev'), 'bench_webdb': ('librocksdb-dev', 'libsqlite3-dev'),
            'bench_page': ('libgumbo-dev', 'libxml2-dev'), 'peer_xapian': ('libxapian-dev',)}

# A command: the Debian package that has it.
COMMANDS = {'node': 'nodejs', 'npm': 'npm', 'nginx': 'nginx-light', 'wget2': 'wget2', 'httrack': 'httrack', 'wrk': 'wrk',
            'java': 'default-jdk-headless', 'javac': 'default-jdk-headless', 'curl': 'curl', 'chromium': 'chromium',
            'ceph-mon': 'ceph-mon', 'ceph-mgr': 'ceph-mgr', 'ceph-osd': 'ceph-osd', 'radosgw': 'radosgw', 'restic': 'restic',
            'rclone': 'rclone'}

# A package from npm: the file that shows that it is installed, below tests/browser/node_modules.
MODULES = {'playwright-core': 'playwright-core/package.json', 'replaywebpage': 'replaywebpage/package.json'}

# What a topic runs. A topic that is not here needs nothing but what builds the program itself.
TOPICS = {'warc': ('node', 'npm'), 'page': ('bench_page',), 'store': ('bench_store',), 'shuffled': ('bench_store',),
          'memory': ('bench_store',), 'grow': ('bench_store',), 'compact': ('bench_store',), 'webdb': ('bench_webdb',),
          'index': ('peer_xapian', 'java', 'javac'), 'query': ('peer_xapian', 'java', 'javac'),
          'quality': ('java', 'javac'),
          'crawl': ('nginx', 'wget2', 'httrack'), 'stream': ('nginx', 'curl'), 'serve': ('nginx', 'wrk'),
          'vault': ('ceph-mon', 'ceph-mgr', 'ceph-osd', 'radosgw', 'restic', 'rclone', 'curl'),
          'replay': ('nginx', 'node', 'npm', 'chromium', 'playwright-core', 'replaywebpage')}


def has_header(package):
    return any(os.path.exists(os.path.join(folder, HEADERS[package])) for folder in INCLUDE)


def has_command(name):
    return shutil.which(name, path=os.environ.get('PATH', '') + ':/usr/sbin:/usr/local/sbin') is not None


def missing(topic, programs):
    """The packages that the topic lacks. programs: the folder with our programs, as far as they were built."""
    packages = []
    for name in TOPICS.get(topic, ()):
        if name in COMMANDS and not has_command(name):
            packages.append(COMMANDS[name])
        elif name in MODULES and not (BROWSER / 'node_modules' / MODULES[name]).exists():
            packages.append(name)
        elif name in PROGRAMS and not (programs / name).exists():
            packages += [p for p in PROGRAMS[name] if not has_header(p)] or PROGRAMS[name]
    return sorted(set(packages))


def ask(topics, build_folder):
    """Ends the program, with the names, if a topic needs something that is not there. After the build."""
    lacks = {topic: missing(topic, build_folder / 'bench') for topic in topics}
    if any(PROGRAMS.keys() & set(TOPICS.get(topic, ())) for topic in topics if lacks[topic]):
        # It may have been installed since the build was configured.
        subprocess.run(['meson', 'setup', '--reconfigure', str(build_folder)], check=True, stdout=subprocess.DEVNULL)
        subprocess.run(['ninja', '-C', str(build_folder)], check=True, stdout=subprocess.DEVNULL)
        lacks = {topic: missing(topic, build_folder / 'bench') for topic in topics}
    lines = ['bench: the topic %s needs %s' % (topic, ', '.join(packages)) for topic, packages in lacks.items() if packages]
    if lines:
        sys.exit('\n'.join(lines + ['bench: scripts/deps bench installs what all topics need']))
