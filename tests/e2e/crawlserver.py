"""A web server that does as a test tells it, what it saw, and crawls of it: what the crawl*.py tests share.

A server plays many hosts on one port of 127.0.0.0/8; names are led there with --resolve. A page
is bytes, a Reply, or a function of a Request that gives one. Every request is remembered with
its time, so that a test can judge intervals and repetitions over several runs of the crawler. On a busy machine the
server reads a request some time after it came: a heart beat tells how late it may have been (Request.earliest, Server.lag).
run_together() runs the tests of a script at the same time: most of their time is courtesy.
"""
import asyncio, bisect, collections, contextlib, ctypes, os, pathlib, re, shutil, signal, ssl, subprocess, sys, tempfile, threading, time, traceback

import e2e
from e2e import PATIENCE, Skip, command, lines

AGENT = 'PromiseCheck/1.0'
BEAT = 0.01


class Reply:
    """
    end: None, 'reset' (the body is cut off), 'hang' (the connection stays, silent, before a byte is sent), 'drip' (a byte a
    second, from the first on) or 'close' (the connection is closed without a byte).
    """

    def __init__(self, body=b'', status=200, headers=(), type='text/html', wait=0.0, end=None):
        self.body = body.encode() if isinstance(body, str) else body
        self.status, self.headers, self.type, self.wait, self.end = status, list(headers), type, wait, end


class Request:
    def __init__(self, host, path, headers, number, earliest):
        self.earliest = earliest      # it came between this and time
        self.time, self.host, self.path, self.headers, self.number = time.time(), host, path, headers, number
        self.done = None      # when the answer was on its way
        self.status = None

    def __repr__(self):
        return '%.3f %s%s %s' % (self.time, self.host, self.path, self.status)


def page(*links, text='', title='page'):
    """A page that links there."""
    return ('<!DOCTYPE html><title>%s</title><p>%s</p>%s' % (title, text, ' '.join('<a href="%s">x</a>' % l for l in links))).encode()


def redirect(to, status=301):
    return Reply(status=status, headers=[('Location', to)])


class Server:
    """sites: {host without port: {path: page}}; use with `with`. Hosts get addresses of their own unless told otherwise."""

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
        """The longest that this server was kept from running between two moments."""
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
        request = Request(host, path, headers, self.counts[host, path], self.beats[-4] if len(self.beats) > 3 else self.beats[0])
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
        top = ['HTTP/1.1 %d X' % reply.status, 'Content-Length: %d' % len(reply.body)] + ['%s: %s' % h for h in reply.headers]
        if reply.body and not any(k.lower() == 'content-type' for k, _ in reply.headers):
            top.append('Content-Type: ' + reply.type)
        for byte in b'HTTP/1.1 200 OK\r\n' * 20 if reply.end == 'drip' else ():
            writer.write(bytes([byte]))
            await writer.drain()
            await asyncio.sleep(1)
        writer.write('\r\n'.join(top).encode('latin-1') + b'\r\n\r\n' + (reply.body[:len(reply.body) // 2] if reply.end == 'reset' else reply.body))
        await writer.drain()
        request.done = time.time()
        return reply.end is None

    def unsettled(self, request, kills, grace=0.25):
        """Whether a page may be asked for again: it had not been answered, or only a moment before, when a process was killed.

        The moment is longer on a machine that is busy: longer by a multiple of what this server was kept from running."""
        return any(request.earliest <= k <= (request.done or k) + grace + 25 * self.lag(request.earliest, k) for k in kills)

    # ---- where things are ----------------------------------------------------------------

    def url(self, host, path='/'):
        return '%s://%s:%d%s' % ('https' if self.tls else 'http', host, self.port, path)

    def resolve(self):
        """Options that lead names here: each host has its own address."""
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
        """No two requests to a host closer than the interval, whatever they were for. jump: when the crawler's clock was put forward."""
        # At least so much lay between two requests, however late this server was. A clock that was lost gives gaps near 0.
        last, slack = {}, 0.02 + 0.05 * interval
        for r in sorted(self.requests, key=lambda r: r.time):
            if hosts and r.host not in hosts:
                continue
            before = last.get(r.host)
            last[r.host] = r
            if not before or before.earliest - 0.1 < jump < r.time + 0.1:
                continue
            gap = r.time - before.earliest
            assert gap >= interval - slack, '%s%s came at most %.3f s after %s' % (r.host, r.path, gap, before.path)


# ---- crawls --------------------------------------------------------------------------------

def crawl_command(repo, server, *args):
    return command(repo, 'crawl', '--json', '--allow-private', '--user-agent', AGENT, *(server.resolve() if server else ()), *args)


def crawl(repo, server, *args, status=0, timeout=PATIENCE, **kw):
    """A crawl to its end: its events, and its words."""
    p = subprocess.run(crawl_command(repo, server, *args), capture_output=True, timeout=timeout, **kw)
    assert p.returncode == status, 'exit %d, not %s: %s' % (p.returncode, status, p.stderr[-800:])
    crawl.words = p.stderr.decode('utf-8', 'replace')
    return lines(p.stdout)


def crawl_until(repo, server, condition, *args, **kw):
    """A crawl that is told to stop (SIGTERM) when a condition holds; its events. It may also end by itself."""
    with tempfile.TemporaryFile() as out:
        p = start(repo, server, *args, stdout=out, **kw)
        until(lambda: condition() or p.poll() is not None)
        kill(p.pid, signal.SIGTERM)
        assert p.wait(PATIENCE) in (0, 1)
        out.seek(0)
        return lines(out.read())


def end_together():
    """The process is killed when the one that started it ends."""
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)


def start(repo, server, *args, **kw):
    """A crawl that goes on meanwhile, in a process group of its own."""
    return subprocess.Popen(crawl_command(repo, server, *args), stdout=kw.pop('stdout', subprocess.DEVNULL), stderr=kw.pop('stderr', subprocess.DEVNULL),
                            start_new_session=True, preexec_fn=end_together, **kw)


def workers_of(process):
    with contextlib.suppress(OSError):
        return [int(p) for p in pathlib.Path('/proc/%d/task/%d/children' % (process.pid, process.pid)).read_text().split()]
    return []


def kill(pid, sig=signal.SIGKILL):
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, sig)


def kill_all(process):
    """The parent and its workers at once, and waits for the parent."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def until(what, seconds=PATIENCE, every=0.02):
    """Waits until what() is true."""
    end = time.time() + seconds
    while not what():
        assert time.time() < end, 'it did not come in %d s' % seconds
        time.sleep(every)


def fetches(events, result=None):
    return [e for e in events if e.get('event') == 'fetch' and (result is None or e['result'] == result)]


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
        offset_ms = map;   /* of both clocks; after it, of the time of day alone */
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
    """Both clocks of programs that are started with env(), put forward by any amount at any moment; or the time of day alone, set."""

    def __init__(self, folder):
        self.file, self.library, source = folder / 'clock', folder / 'clock.so', folder / 'clock.c'
        source.write_text(CLOCK_SOURCE)
        subprocess.run(['gcc', '-shared', '-fPIC', '-O1', '-o', self.library, source, '-ldl'], check=True, capture_output=True)
        self.seconds = self.wall = 0
        self.forward(0)

    def set(self, seconds):
        """Moves the time of day, as an administrator or NTP does; time itself goes on as it was."""
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


# ---- running tests together -----------------------------------------------------------------

def one_test(function, number, write_fd):
    """In a process of its own, which ends with this script."""
    end_together()
    folder = pathlib.Path(tempfile.mkdtemp(prefix='webbase-e2e-'))
    title = function.__name__.replace('_', ' ')
    out, status = '', 0
    try:
        function(folder)
        out = 'ok %d - %s\n' % (number, title)
    except Skip as e:
        out = 'ok %d - %s # SKIP %s\n' % (number, title, e)
    except BaseException:
        status = 1
        out = 'not ok %d - %s\n%s\n' % (number, title, '\n'.join('# ' + line for line in traceback.format_exc().splitlines()))
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    os.write(write_fd, out.encode())
    os._exit(status)


def run_together(at_once=10):
    wanted = sys.argv[1:]
    chosen = [t for t in e2e.tests if not wanted or t.__name__ in wanted]
    print('1..%d' % len(chosen))
    print('# SEED=%d' % e2e.SEED, flush=True)
    queue, running, failed = list(enumerate(chosen, 1)), {}, 0
    while queue or running:
        while queue and len(running) < at_once:
            number, function = queue.pop(0)
            read_fd, write_fd = os.pipe()
            pid = os.fork()
            if pid == 0:
                os.close(read_fd)
                one_test(function, number, write_fd)
            os.close(write_fd)
            running[pid] = (read_fd, number, function, time.time())
        pid, status = os.wait()
        read_fd, number, function, began = running.pop(pid)
        with os.fdopen(read_fd) as f:
            text = f.read()
        failed += status != 0
        sys.stdout.write(text or 'not ok %d - %s\n# its process ended with %d\n' % (number, function.__name__, status))
        print('# %s: %.1f s' % (function.__name__, time.time() - began), flush=True)
    sys.exit(1 if failed else 0)
