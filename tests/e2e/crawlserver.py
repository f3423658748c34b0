"""What the crawl tests share: a web server that behaves as a test wants, what it saw, and crawls of it.

A server plays many hosts on one port of 127.0.0.0/8; --resolve directs names to it. A page is bytes, a Reply, or a
function of a Request that returns one of these. The server remembers every request with its time, so that a test can
check intervals and repetitions over several runs of the crawler. On a busy machine the server reads a request some time
after it arrived; its heartbeat shows how late that may have been (Request.earliest, Server.lag). run_together() runs
the tests of a script in parallel, because they spend most of their time waiting for intervals.
"""
import asyncio, bisect, collections, contextlib, ctypes, os, pathlib, re, signal, ssl, subprocess, sys, tempfile
import threading, time

from e2e import PATIENCE, Skip, chosen_tests, command, lines, run_test

AGENT = 'PromiseCheck/1.0'
BEAT = 0.01


class Reply:
    """ end: None, 'reset' (the body is cut off), 'hang' (the connection stays open, and not a byte is sent), 'drip'
    (one byte per second, from the first byte on) or 'close' (the connection is closed before a byte is sent).
    """

    def __init__(self, body=b'', status=200, headers=(), type='text/html', wait=0.0, end=None):
        self.body = body.encode() if isinstance(body, str) else body
        self.status, self.headers, self.type, self.wait, self.end = status, list(headers), type, wait, end


class Request:
    def __init__(self, host, path, headers, number, earliest):
        self.earliest = earliest      # the request arrived between this time and self.time
        self.time, self.host, self.path, self.headers, self.number = time.time(), host, path, headers, number
        self.done = None      # when the response had been sent
        self.status = None

    def __repr__(self):
        return '%.3f %s%s %s' % (self.time, self.host, self.path, self.status)


def page(*links, text='', title='page'):
    """A page with these links."""
    return ('<!DOCTYPE html><title>%s</title><p>%s</p>%s' %
            (title, text, ' '.join('<a href="%s">x</a>' % l for l in links))).encode()


def redirect(to, status=301):
    return Reply(status=status, headers=[('Location', to)])


def star(count, name='', links=(), **reply):
    """A site: a root page that links to /1, /2, ..., and these pages, which link back. links: more links of the root
    page."""
    pages = {'/': page(*['/%d' % n for n in range(1, count)], *links, text=name)}
    pages.update(('/%d' % n, page('/', text='page %s %d' % (name, n))) for n in range(1, count))
    return {path: Reply(body, **reply) for path, body in pages.items()} if reply else pages


class Server:
    """sites: {host without port: {path: page}}; use with `with`. Each host gets its own address unless `addresses`
    names one."""

    def __init__(self, sites, addresses=None, tls=None, latency=None):
        self.sites, self.tls, self.latency = sites, tls, latency
        self.requests, self.counts, self.beats = [], collections.Counter(), []
        self.given = addresses or {}
        self.loop = asyncio.new_event_loop()
        self.port = None

    def __enter__(self):
        ready = threading.Event()
        self.thread = threading.Thread(target=self.work, args=(ready,), daemon=True)
        self.thread.start()
        assert ready.wait(PATIENCE)
        return self

    def __exit__(self, *error):
        self.loop.call_soon_threadsafe(self.loop.stop)
        self.thread.join(PATIENCE)

    def work(self, ready):
        async def begin():
            server = await asyncio.start_server(self.serve, '0.0.0.0', 0, ssl=self.tls, backlog=1000, limit=1 << 20)
            self.port = server.sockets[0].getsockname()[1]
            asyncio.ensure_future(self.beat())
            await asyncio.sleep(0)
            ready.set()
        asyncio.set_event_loop(self.loop)
        self.loop.set_exception_handler(lambda loop, context: None)
        self.loop.run_until_complete(begin())
        self.loop.run_forever()

    async def beat(self):
        while True:
            self.beats.append(time.time())
            await asyncio.sleep(BEAT)

    def lag(self, begin, end):
        """The longest time between two moments in which this server could not run."""
        first, last = max(0, bisect.bisect(self.beats, begin) - 1), bisect.bisect(self.beats, end) + 1
        beats = self.beats[first:last]
        return max([b - a - BEAT for a, b in zip(beats, beats[1:])], default=0)

    async def serve(self, reader, writer):
        with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError, TimeoutError):
            while await self.answer(reader, writer):
                pass
        writer.close()

    async def answer(self, reader, writer):
        head = (await reader.readuntil(b'\r\n\r\n')).decode('latin-1').split('\r\n')
        path = head[0].split(' ')[1]
        headers = {k.lower(): v.strip() for k, _, v in (h.partition(':') for h in head[1:] if h)}
        host = headers['host'].rpartition(':')[0] or headers['host']
        self.counts[host, path] += 1
        request = Request(host, path, headers, self.counts[host, path],
                          self.beats[-4] if len(self.beats) > 3 else self.beats[0])
        self.requests.append(request)
        reply = self.sites.get(host, {}).get(path)
        if reply is None and '*' in self.sites.get(host, {}):
            reply = self.sites[host]['*']
        if callable(reply):
            reply = reply(request)
        if reply is None:
            reply = Reply('no such page', 404)
        if isinstance(reply, (bytes, str)):
            reply = Reply(reply)
        wait = reply.wait + (self.latency() if self.latency else 0)
        if wait:
            await asyncio.sleep(wait)
        if reply.end == 'hang':
            await asyncio.sleep(3600)
            return False
        if reply.end == 'close':
            return False
        request.status = reply.status
        top = ['HTTP/1.1 %d X' % reply.status,
               'Content-Length: %d' % len(reply.body)] + ['%s: %s' % h for h in reply.headers]
        if reply.body and not any(k.lower() == 'content-type' for k, _ in reply.headers):
            top.append('Content-Type: ' + reply.type)
        for byte in b'HTTP/1.1 200 OK\r\n' * 20 if reply.end == 'drip' else ():
            writer.write(bytes([byte]))
            await writer.drain()
            await asyncio.sleep(1)
        writer.write('\r\n'.join(top).encode('latin-1') + b'\r\n\r\n' +
                     (reply.body[:len(reply.body) // 2] if reply.end == 'reset' else reply.body))
        await writer.drain()
        request.done = time.time()
        return reply.end is None

    def unsettled(self, request, kills, grace=0.25):
        """Whether the page may be requested again: when a process was killed, the response had not been sent yet, or
        had just been sent.

        "Just" means a longer time on a busy machine: it grows with the time in which this server could not run."""
        return any(request.earliest <= k <= (request.done or k) + grace + 25 * self.lag(request.earliest, k)
                   for k in kills)

    # ---- where things are ----------------------------------------------------------------

    def url(self, host, path='/'):
        return '%s://%s:%d%s' % ('https' if self.tls else 'http', host, self.port, path)

    def resolve(self):
        """Options that direct the names of all hosts here."""
        out = []
        for n, host in enumerate(self.sites):
            if not host[0].isdigit():
                out += ['--resolve', '%s:%d:%s' % (host, self.port, self.given.get(host, '127.0.1.%d' % (n + 1)))]
        return out

    # ---- what was seen ---------------------------------------------------------------------

    def paths(self, host, since=0):
        return [r.path for r in self.requests if r.host == host and r.time >= since]

    def pages_asked(self, host):
        return [p for p in self.paths(host) if p != '/robots.txt']

    def expect_gaps(self, interval, hosts=None, jump=0):
        """Checks that any two requests to a host were at least the interval apart. jump: when the crawler's clock was
        put forward."""
        # The computed gap is an upper bound, however late this server was. If the crawler forgets the time of a
        # request, gaps are near 0.
        last, slack = {}, 0.02 + 0.05 * interval
        for r in sorted(self.requests, key=lambda r: r.time):
            if hosts and r.host not in hosts:
                continue
            before = last.get(r.host)
            last[r.host] = r
            if not before or before.earliest - 0.1 < jump < r.time + 0.1:
                continue
            gap = r.time - before.earliest
            assert gap >= interval - slack, \
                '%s%s was requested at most %.3f s after %s' % (r.host, r.path, gap, before.path)


# ---- crawls --------------------------------------------------------------------------------

def crawl_command(repo, server, *args):
    return command(repo, 'crawl', '--json', '--allow-private', '--user-agent', AGENT,
                   *(server.resolve() if server else ()), *args)


def crawl(repo, server, *args, status=0, timeout=PATIENCE, **kw):
    """Crawls to the end and returns the events. What the crawl wrote to standard error is in crawl.words."""
    p = subprocess.run(crawl_command(repo, server, *args), capture_output=True, timeout=timeout, **kw)
    assert p.returncode == status, 'exit %d, not %s: %s' % (p.returncode, status, p.stderr[-800:])
    crawl.words = p.stderr.decode('utf-8', 'replace')
    return lines(p.stdout)


def crawl_until(repo, server, condition, *args, **kw):
    """Crawls until a condition holds, then sends SIGTERM; returns the events. The crawl may also end earlier."""
    with tempfile.TemporaryFile() as out:
        p = start(repo, server, *args, stdout=out, **kw)
        until(lambda: condition() or p.poll() is not None)
        kill(p.pid, signal.SIGTERM)
        assert p.wait(PATIENCE) in (0, 1)
        out.seek(0)
        return lines(out.read())


def end_together():
    """Makes the kernel kill this process when its parent ends."""
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)


def spawn(words, **kw):
    """Starts a program in its own process group, without output unless told otherwise. It is killed when this script
    ends."""
    return subprocess.Popen(words, **{'stdout': subprocess.DEVNULL, 'stderr': subprocess.DEVNULL, **kw},
                            start_new_session=True,
                            preexec_fn=end_together)


def start(repo, server, *args, **kw):
    """Starts a crawl and does not wait for it."""
    return spawn(crawl_command(repo, server, *args), **kw)


def run_command(repo, server, *args):
    return command(repo, 'run', '--json', '--allow-private', '--user-agent', AGENT, '--delay', 0, *server.resolve(),
                   *args)


def go(repo, server, *args, status=0, timeout=PATIENCE, **kw):
    """Runs `webbase run` to its end and returns the events. What it wrote to standard error is in go.words."""
    p = subprocess.run(run_command(repo, server, *args), capture_output=True, timeout=timeout, **kw)
    assert p.returncode == status, 'exit status %d, not %d: %s' % (p.returncode, status, p.stderr[-500:])
    go.words = p.stderr.decode('utf-8', 'replace')
    return lines(p.stdout)


def cycle(repo, server, *args, **kw):
    """Runs one cycle and returns the events."""
    return go(repo, server, '--cycles', 1, *args, **kw)


def workers_of(process):
    with contextlib.suppress(OSError):
        return [int(p) for p in pathlib.Path('/proc/%d/task/%d/children' %
                                             (process.pid, process.pid)).read_text().split()]
    return []


def kill(pid, sig=signal.SIGKILL):
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, sig)


def kill_all(process):
    """Kills the parent and its workers at once, and waits for the parent."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def until(what, seconds=PATIENCE, every=0.02):
    """Waits until what() is true."""
    end = time.time() + seconds
    while not what():
        assert time.time() < end, 'the condition did not hold within %d s' % seconds
        time.sleep(every)


def fetches(events, result=None):
    return [e for e in events if e.get('event') == 'fetch' and (result is None or e['result'] == result)]


def stored(events):
    """URLs of the pages that were stored."""
    return [e['url'] for e in fetches(events) if e['result'] in ('stored', 'duplicate')]


def results(events):
    return {e['url']: e['result'] for e in fetches(events)}


# ---- time ------------------------------------------------------------------------------------

CLOCK_SOURCE = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <time.h>

static volatile int64_t *offset_ms;

__attribute__((constructor)) static void begin(void)
{
    const char *path = getenv("PROMISE_CLOCK");
    int fd = path ? open(path, O_RDONLY) : -1;
    void *map = fd >= 0 ? mmap(NULL, 16, PROT_READ, MAP_SHARED, fd, 0) : MAP_FAILED;
    if (map != MAP_FAILED)
        offset_ms = map;   /* [0] moves all clocks, [1] moves only the time of day */
}

int clock_gettime(clockid_t clock, struct timespec *ts)
{
    static int (*real)(clockid_t, struct timespec *);
    if (!real)
        real = (int (*)(clockid_t, struct timespec *))dlsym(RTLD_NEXT, "clock_gettime");
    int err = real(clock, ts);
    int cpu = clock == CLOCK_PROCESS_CPUTIME_ID || clock == CLOCK_THREAD_CPUTIME_ID;
    if (err == 0 && offset_ms && !cpu) {
        int64_t ms = offset_ms[0] + (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE ? offset_ms[1] : 0);
        ts->tv_sec += ms / 1000;
        ts->tv_nsec += ms % 1000 * 1000000;
        if (ts->tv_nsec >= 1000000000 || ts->tv_nsec < 0) {
            int up = ts->tv_nsec > 0 ? 1 : -1;
            ts->tv_sec += up;
            ts->tv_nsec -= up * 1000000000;
        }
    }
    return err;
}

int gettimeofday(struct timeval *tv, void *zone)
{
    struct timespec ts;
    (void)zone;
    int err = clock_gettime(CLOCK_REALTIME, &ts);
    tv->tv_sec = ts.tv_sec;
    tv->tv_usec = ts.tv_nsec / 1000;
    return err;
}

time_t time(time_t *out)
{
    struct timespec ts;
    clock_gettime(CLOCK_REALTIME, &ts);
    if (out)
        *out = ts.tv_sec;
    return ts.tv_sec;
}
"""


class Clock:
    """The clocks of programs started with env(): forward() moves all of them at any moment, set() moves only the time
    of day."""

    def __init__(self, folder):
        self.file, self.library, source = folder / 'clock', folder / 'clock.so', folder / 'clock.c'
        source.write_text(CLOCK_SOURCE)
        subprocess.run(['gcc', '-shared', '-fPIC', '-O1', '-o', self.library, source, '-ldl'], check=True,
                       capture_output=True)
        self.seconds = self.wall = 0
        self.forward(0)

    def set(self, seconds):
        """Moves the time of day, as an administrator or NTP does. The other clocks do not notice."""
        self.wall += seconds
        self.forward(0)

    def forward(self, seconds):
        self.seconds += seconds
        data = b''.join(int(s * 1000).to_bytes(8, 'little', signed=True) for s in (self.seconds, self.wall))
        if not self.file.exists():
            self.file.write_bytes(data)
        with open(self.file, 'r+b') as f:
            f.write(data)

    def env(self):
        return dict(os.environ, LD_PRELOAD=str(self.library), PROMISE_CLOCK=str(self.file))


# ---- running tests in parallel ---------------------------------------------------------------

def run_in_child(number, function, write_fd):
    """Runs a test in this process, which was forked for it, and writes its TAP lines."""
    end_together()
    status = 1
    try:
        ok, text = run_test(number, function)
        os.write(write_fd, text.encode())
        status = 0 if ok else 1
    finally:
        os._exit(status)


def run_together(at_once=10):
    """Like e2e.run(), with several tests at a time, each in its own process."""
    queue, running, failed = chosen_tests(), {}, 0
    while queue or running:
        while queue and len(running) < at_once:
            number, function = queue.pop(0)
            read_fd, write_fd = os.pipe()
            pid = os.fork()
            if pid == 0:
                os.close(read_fd)
                run_in_child(number, function, write_fd)
            os.close(write_fd)
            running[pid] = (read_fd, number, function)
        pid, status = os.wait()
        read_fd, number, function = running.pop(pid)
        with os.fdopen(read_fd) as f:
            text = f.read()
        failed += status != 0
        print(text or 'not ok %d - %s\n# its process ended with status %d\n' % (number, function.__name__, status),
              end='', flush=True)
    sys.exit(1 if failed else 0)
