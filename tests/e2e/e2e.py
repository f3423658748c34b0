"""What the end-to-end scripts share: running the program, making archives, printing TAP.

A script marks functions with @test and ends with run(). Each test gets its own folder. It
fails by raising an exception, and skips itself by raising Skip.
"""
import contextlib, ctypes, fcntl, functools, gzip, hashlib, http.server, json, os, pathlib, random, shutil, signal, socket
import struct, subprocess, sys, tempfile, threading, time, traceback

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
WEBBASE = os.environ.get('WEBBASE', str(ROOT / 'build' / 'webbase'))
# The longest time, in seconds, to wait for anything. It only ends tests that hang; no test depends on how fast
# something is.
PATIENCE = float(os.environ.get('WEBBASE_PATIENCE', 400))
SEED = int(os.environ.get('SEED', random.SystemRandom().randrange(1 << 31)))
# `make soak` does this percentage of the rounds that are thorough; `make check` does fewer.
PERCENT = os.environ.get('WEBBASE_TEST_ROUNDS')
# How many percent of the tests of a script are done, others in each run.
SHARE = int(os.environ.get('WEBBASE_TEST_SHARE', 100)) if PERCENT is None else 100

tests = []


class Skip(Exception):
    pass


def test(function):
    tests.append(function)
    return function


def rng(name):
    """A random generator for one test. The seed is printed at the start."""
    return random.Random('%d %s' % (SEED, name))


def rounds(few, thorough):
    """How often a test repeats something at random."""
    return few if PERCENT is None else max(1, thorough * int(PERCENT) // 100)


def chosen_tests():
    """(number, function) of the tests named on the command line, or of all or a share. Prints the TAP plan."""
    wanted = sys.argv[1:]
    if not wanted and SHARE < 100:
        wanted = rng('share').sample([t.__name__ for t in tests], -(-len(tests) * SHARE // 100))
    chosen = [t for t in tests if not wanted or t.__name__ in wanted]
    print('1..%d' % len(chosen))
    print('# SEED=%d' % SEED, flush=True)
    return list(enumerate(chosen, 1))


def run_test(number, function):
    """Runs one test in a new folder. Returns (whether it passed, its TAP lines)."""
    folder = pathlib.Path(tempfile.mkdtemp(prefix='webbase-e2e-'))
    title, start = function.__name__.replace('_', ' '), time.time()
    try:
        function(folder)
        return True, 'ok %d - %s\n# %.1f s\n' % (number, title, time.time() - start)
    except Skip as e:
        return True, 'ok %d - %s # SKIP %s\n' % (number, title, e)
    except Exception:
        return False, 'not ok %d - %s\n' % (number,
                                            title) + ''.join('# %s\n' % line
                                                             for line in traceback.format_exc().splitlines())
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def run():
    failed = 0
    for number, function in chosen_tests():
        ok, text = run_test(number, function)
        failed += not ok
        print(text, end='', flush=True)
    sys.exit(1 if failed else 0)


class Pulse:
    """Measures how busy the machine is: how late a thread wakes up that sleeps for 10 ms. Use with `with`."""

    def __enter__(self):
        self.beats, self.going = [time.time()], True
        self.thread = threading.Thread(target=self.beat, daemon=True)
        self.thread.start()
        return self

    def __exit__(self, *error):
        self.going = False
        self.thread.join()

    def beat(self):
        while self.going:
            time.sleep(0.01)
            self.beats.append(time.time())

    def lag(self, begin, end):
        """The longest delay between two moments."""
        near = [t for t in self.beats if begin - 1 <= t <= end + 1]
        return max([b - a - 0.01 for a, b in zip(near, near[1:]) if b >= begin and a <= end], default=0)


# ---- the program -------------------------------------------------------------

def command(repo, *args):
    return [WEBBASE] + (['-r', str(repo)] if repo else []) + [str(a) for a in args]


def call(repo, *args, status=0, **kw):
    """Runs the program to its end; returns a CompletedProcess with bytes. status: the expected exit status; None:
    any."""
    p = subprocess.run(command(repo, *args), capture_output=True, timeout=kw.pop('timeout', PATIENCE), **kw)
    assert p.returncode >= 0, 'died of signal %d: %s' % (-p.returncode, args)
    assert status is None or p.returncode == status, \
        'exit %d, not %d: %s: %s %s' % (p.returncode, status, args, p.stderr[-500:], p.stdout[-500:])
    return p


def heed(process, number=signal.SIGTERM):
    """Waits until a program handles a signal itself. Before that, the signal would just end it."""
    end = time.time() + PATIENCE
    while process.poll() is None:
        status = pathlib.Path('/proc/%d/status' % process.pid).read_text()
        if int(status.partition('SigCgt:')[2].split()[0], 16) >> number - 1 & 1:
            return
        assert time.time() < end, status
        time.sleep(0.01)


def lines(data):
    """Parses JSON objects, one per line. An incomplete last line is left out."""
    return [json.loads(line) for line in data.decode().split('\n')[:-1] if line]


def ask(repo, *args, **kw):
    return lines(call(repo, *args, '--json', **kw).stdout)


def done(events):
    found = [e for e in events if e.get('event') == 'done']
    assert len(found) == 1, events[-3:]
    return found[0]


def refused(repo, named, *args, status=1, one_line=True, **kw):
    """Checks that the command fails with that status and a message that contains `named`. Returns the message."""
    p = call(repo, *args, status=status, **kw)
    text = p.stderr.decode('utf-8', 'replace')
    assert text.startswith('webbase: '), text
    assert str(named) in text, '%r is not in %r' % (named, text)
    assert not one_line or text.count('\n') == 1, text
    return text


def verified(repo):
    report = ask(repo, 'verify')[-1]
    assert report['ok'] is True and report['problems'] == [], report
    return report


# ---- archives ----------------------------------------------------------------

class Page:
    def __init__(self, url, body, date='2026-01-02T03:04:05Z', type='text/html; charset=utf-8', status='200 OK',
                 headers=()):
        self.url, self.body, self.date = url, body, date
        self.type, self.status, self.headers = type, status, list(headers)

    def http(self):
        head = ['HTTP/1.1 ' + self.status, 'Content-Type: ' + self.type, *self.headers,
                'Content-Length: %d' % len(self.body)]
        return '\r\n'.join(head).encode() + b'\r\n\r\n' + self.body

    def record(self):
        return record(self.url, self.http(), self.date)


def record(url, block, date, kind='response', type='application/http; msgtype=response', extra=()):
    rid = hashlib.md5((url + date + kind).encode()).hexdigest()
    head = ['WARC/1.1', 'WARC-Type: ' + kind, 'WARC-Target-URI: ' + url, 'WARC-Date: ' + date,
            'WARC-Record-ID: <urn:uuid:%s-%s-%s-%s-%s>' % (rid[:8], rid[8:12], rid[12:16], rid[16:20], rid[20:]),
            'Content-Type: ' + type, 'Content-Length: %d' % len(block), *extra]
    return '\r\n'.join(head).encode() + b'\r\n\r\n' + block + b'\r\n\r\n'


WORDS = 'log hash segment block catalog page site link crawl index stream query rank anchor robots archive'.split()


def html(random_, words=80):
    text = ' '.join(random_.choice(WORDS) for _ in range(words))
    nav = ''.join('<li><a href="/section/%d">Section %d</a></li>' % (i, i) for i in range(15))
    return ('<!DOCTYPE html><title>%s</title><ul>%s</ul><p>%s</p>' % (text[:30], nav, text)).encode()


def some_pages(random_, count, host='www.alpha.example'):
    return [Page('http://%s/dir%d/%d.html' % (host, i % 5, i), b'%d ' % i + html(random_),
                 '2026-01-02T03:%02d:%02dZ' % (i // 60 % 60, i % 60))
            for i in range(count)]


def write_archive(path, records, gz=None):
    gz = str(path).endswith('.gz') if gz is None else gz
    with open(path, 'wb') as f:
        for r in records:
            f.write(gzip.compress(r, 3) if gz else r)
    return path


def archive(path, pages):
    return write_archive(path, [p.record() for p in pages])


# ---- places ------------------------------------------------------------------

def become_root(network=False):
    """If the user is not root, moves this process (which must have only one thread) into namespaces in which it is."""
    if os.geteuid() == 0:
        return
    uid, gid, flags = os.geteuid(), os.getegid(), 0x10000000 | 0x00020000 | (0x40000000 if network
                                                                             else 0)     # user, mount, network
    if ctypes.CDLL(None, use_errno=True).unshare(flags):
        raise OSError(ctypes.get_errno(),
                      'this test must run as root, or on a system where users may create namespaces')
    pathlib.Path('/proc/self/setgroups').write_text('deny')
    pathlib.Path('/proc/self/uid_map').write_text('0 %d 1' % uid)
    pathlib.Path('/proc/self/gid_map').write_text('0 %d 1' % gid)
    if network:
        start_loopback()


def start_loopback():
    with socket.socket() as s:
        fcntl.ioctl(s, 0x8914, struct.pack('16sH14x', b'lo', 0x41))     # SIOCSIFFLAGS: up, running


def own_network():
    """Moves this process, which must have only one thread, into a network of its own, in which every port is free."""
    if os.geteuid() != 0:
        become_root(network=True)
        return
    if ctypes.CDLL(None, use_errno=True).unshare(0x40000000):
        raise OSError(ctypes.get_errno(), 'this test must run where root may create namespaces')
    start_loopback()


@contextlib.contextmanager
def small_disk(folder, size):
    """Mounts a separate file system of the given size."""
    become_root()
    folder.mkdir()
    p = subprocess.run(['mount', '-t', 'tmpfs', '-o', 'size=' + size, 'tmpfs', folder], capture_output=True)
    assert p.returncode == 0, 'cannot mount: ' + p.stderr.decode().strip()
    try:
        yield folder
    finally:
        subprocess.run(['umount', '-l', folder], capture_output=True)


def remount(folder, options):
    """Remounts with 'ro', 'rw' or 'size=...'. Does not use mount(8), which repeats options that only the real root may
    set."""
    flags = 0x20 | (1 if options == 'ro' else 0)      # MS_REMOUNT, MS_RDONLY
    data = options.encode() if '=' in options else None
    if ctypes.CDLL(None, use_errno=True).mount(b'tmpfs', bytes(folder), b'tmpfs', ctypes.c_ulong(flags), data):
        raise OSError(ctypes.get_errno(), 'cannot remount %s with %s' % (folder, options))


class Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_):
        pass


@contextlib.contextmanager
def served(folder):
    """Serves the files of a new folder; yields it and its URL."""
    folder.mkdir()
    server = http.server.ThreadingHTTPServer(('127.0.0.1', 0), functools.partial(Quiet, directory=str(folder)))
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield folder, 'http://127.0.0.1:%d/' % server.server_port
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
