"""What benchmarks with servers share: the repository, servers, and processor time of programs that go on running."""
import contextlib, os, pathlib, shutil, signal, socket, subprocess, sys, time

sys.dont_write_bytecode = True
from harness import BUILD, DATA, HERE, WORK, busy_seconds

PROGRAM = str(BUILD / 'webbase')
REPO = WORK / 'repo'              # that of bench/search


def prepare():
    """The corpus, imported and indexed."""
    if (REPO / 'index').exists():
        return
    shutil.rmtree(REPO, ignore_errors=True)
    REPO.parent.mkdir(parents=True, exist_ok=True)
    for command in (['init'], ['import', str(DATA / 'pages.warc.gz')], ['index', '--from-scratch']):
        subprocess.run(['nice', PROGRAM, '-r', str(REPO), *command], check=True, stdout=subprocess.DEVNULL)


def segments():
    """The files with the pages: what `cat` and nginx read."""
    return sorted(str(f) for f in (REPO / 'pages').glob('*.seg')) or sys.exit('bench: %s has no segments' % REPO)


def cpu_of(pid):
    """Processor seconds of a process that runs, all threads that it has."""
    return sum(int(pathlib.Path(t, 'schedstat').read_text().split()[0])
               for t in pathlib.Path('/proc/%d/task' % pid).iterdir()) / 1e9


def io_of(pid):
    """(bytes read by system calls, bytes read from the disk) of a process."""
    fields = dict(line.split(': ') for line in open('/proc/%d/io' % pid))
    return int(fields['rchar']), int(fields['read_bytes'])


def memory_of(pid):
    """Bytes of a process in memory: (all, without mapped files)."""
    status = dict(line.split(':', 1) for line in open('/proc/%d/status' % pid))
    return tuple(int(status[f].split()[0]) * 1024 for f in ('VmRSS', 'RssAnon'))


def drop_cache(paths):
    """Forgets what is in the page cache of these files. Needs no rights, and leaves other files alone."""
    for path in paths:
        with open(path, 'rb') as f:
            os.fsync(f.fileno())
            os.posix_fadvise(f.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def free_port():
    with socket.socket() as s:
        s.bind(('127.0.0.1', 0))
        return s.getsockname()[1]


@contextlib.contextmanager
def webbase_server(*options, repo=REPO):
    """(pid, URL without the last slash) of a server of a repository."""
    child = subprocess.Popen([PROGRAM, '-r', str(repo), 'serve', '--listen', '127.0.0.1:0', *options],
                             stdout=subprocess.PIPE, text=True)
    try:
        line = child.stdout.readline()
        if not line.startswith('listening on '):
            sys.exit('bench: the server does not start')
        yield child.pid, line.split()[-1].rstrip('/')
    finally:
        child.send_signal(signal.SIGTERM)
        child.wait()


@contextlib.contextmanager
def nginx_server(root):
    """(pid of its worker, URL) of nginx with the files of a folder."""
    folder, port = WORK / 'nginx', free_port()
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    text = (HERE / 'nginx.conf').read_text()
    for name, value in (('FOLDER', folder), ('PORT', port), ('ROOT', root)):
        text = text.replace('@%s@' % name, str(value))
    (folder / 'nginx.conf').write_text('user root;\n' + text if os.getuid() == 0 else text)
    child = subprocess.Popen(['/usr/sbin/nginx', '-p', str(folder), '-c', str(folder / 'nginx.conf')])
    try:
        for _ in range(100):
            workers = pathlib.Path('/proc/%d/task/%d/children' % (child.pid, child.pid)).read_text().split()
            if workers and socket.socket().connect_ex(('127.0.0.1', port)) == 0:
                break
            time.sleep(0.05)
        yield int(workers[0]), 'http://127.0.0.1:%d' % port
    finally:
        child.send_signal(signal.SIGTERM)
        child.wait()


class Timer:
    """Seconds, processor seconds of children that end meanwhile and of processes that go on, and what others used.

    with Timer(pid) as t: ...       t.seconds, t.children, t.running, t.cpu, t.others
    """

    def __init__(self, *pids):
        self.pids = pids

    def _now(self):
        times = os.times()
        return (time.monotonic(), times.children_user + times.children_system, sum(cpu_of(p) for p in self.pids),
                busy_seconds(), times.user + times.system)

    def __enter__(self):
        self.start = self._now()
        return self

    def __exit__(self, *_):
        self.seconds, self.children, self.running, busy, own = (b - a for a, b in zip(self.start, self._now()))
        self.cpu = self.children + self.running
        self.others = max(0.0, busy - self.cpu - own) / max(self.seconds, 0.001) / os.cpu_count()
