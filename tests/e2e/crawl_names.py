#!/usr/bin/env python3
"""Names: a resolver that is down, fails, does not answer, or says that a name does not exist, and what happens to the
sites."""
import contextlib, ctypes, random, signal, socket, threading, time

from e2e import *
from crawlserver import *

A, AAAA = 1, 28


class Names:
    """A name server on UDP. rules: first label of a name -> 'servfail', 'nx', 'silent', 'empty'; any other name has the
    address 127.0.0.1, for `life` seconds. down: a name server that is not up yet, and whose port this one takes
    over."""

    def __init__(self, down=None, life=60, **rules):
        self.rules, self.life, self.asked = rules, life, []
        self.socket = down.socket if down else udp_socket()
        self.port = self.socket.getsockname()[1]
        if down:
            down.come_up()
        self.thread = threading.Thread(target=self.serve, daemon=True)
        self.thread.start()

    def serve(self):
        while True:
            try:
                packet, peer = self.socket.recvfrom(512)
            except OSError:
                return
            if not packet:
                return
            at, labels = 12, []
            while packet[at]:
                labels.append(packet[at + 1:at + 1 + packet[at]].decode())
                at += packet[at] + 1
            kind, at = int.from_bytes(packet[at + 1:at + 3], 'big'), at + 5
            self.asked.append((labels[0], kind))
            rule = self.rules.get(labels[0])
            if rule == 'silent':
                continue
            code = {'servfail': 2, 'nx': 3}.get(rule, 0)
            count = int(rule is None and kind == A)
            answer = packet[:2] + bytes([0x81, 0x80 | code, 0, 1, 0, count, 0, 0, 0, 0]) + packet[12:at]
            if count:
                answer += b'\xc0\x0c' + bytes([0, A, 0, 1, 0, 0, 0, self.life, 0, 4, 127, 0, 0, 1])
            self.socket.sendto(answer, peer)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
            s.sendto(b'', ('127.0.0.1', self.port))
        self.thread.join()
        self.socket.close()


def udp_socket():
    """A socket whose port is chosen here: one that the system chose would be lost when a connection is dissolved."""
    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    for _ in range(1000):
        with contextlib.suppress(OSError):
            s.bind(('127.0.0.1', random.randrange(10000, 30000)))
            return s
    raise AssertionError('no port is free')


class Down:
    """A name server that is not up: its port is held, so that nobody else can take it, but datagrams to it are refused
    as if there were nobody, because the socket is connected to somewhere else."""

    def __init__(self):
        self.socket = udp_socket()
        self.port = self.socket.getsockname()[1]
        self.socket.connect(('127.0.0.1', 1))

    def come_up(self):
        """Dissolves the connection. Python has no call for that: it is a connect() to an address without family."""
        assert ctypes.CDLL(None).connect(self.socket.fileno(), bytes(16), 16) == 0


def words(server, port, *args):
    return ['crawl', '--json', '--allow-private', '--user-agent', AGENT, '--delay', 0, '--dns', '127.0.0.1:%d' % port,
            *[server.url(h) for h in server.sites], *args]


def start_crawl(repo, server, port):
    return subprocess.Popen(command(repo, *words(server, port)), stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                            preexec_fn=end_together)


def unresolvable(repo, host):
    return (repo / 'dispenser.db').exists() and b'cannot be resolved' in call(repo, 'why', host, status=None).stdout


def sites(*names):
    return {n + '.test': {'/': page('/1', text=n), '/1': page(text=n + '1')} for n in names}


@test
def the_crawl_waits_for_a_resolver_that_is_down(folder):
    """Nobody answers when the crawl starts; then the resolver comes back, and the same run continues."""
    repo, down = folder / 'r', Down()
    with Server(sites('a', 'b', 'c')) as server:
        p = start_crawl(repo, server, down.port)
        until(lambda: p.poll() is not None or unresolvable(repo, 'a.test'))
        assert p.poll() is None, p.stderr.read()
        assert not server.requests
        with Names(down):
            out, err = p.communicate(timeout=PATIENCE)
        assert p.returncode == 0, err
        end = done(lines(out))
        assert end['pages'] == 6 and end['sites_done'] == 3 and end['sites_left'] == 0, end


@test
def a_run_without_a_resolver_closes_nothing(folder):
    """The run ends and leaves its sites for later, `why` names the reason, and the next run asks for their names at
    once."""
    repo, down = folder / 'r', Down()
    with Server(sites('a', 'b')) as server:
        p = start_crawl(repo, server, down.port)
        until(lambda: p.poll() is not None or all(unresolvable(repo, h) for h in ('a.test', 'b.test')))
        kill(p.pid, signal.SIGTERM)
        out, err = p.communicate(timeout=PATIENCE)
        end = done(lines(out))
        assert end['pages'] == 0 and end['sites_done'] == 0 and end['sites_left'] == 2, end
        for what in (server.url('a.test'), 'a.test:%d' % server.port):
            why = ask(repo, 'why', what)[0]
            assert why['verdict'] == 'waiting' and 'cannot be resolved' in why['reason'], why
        with Names(down):
            end = done(lines(call(repo, *words(server, down.port)).stdout))
        assert end['pages'] == 4 and end['sites_done'] == 2 and end['sites_left'] == 0, end


@test
def addresses_expire_while_pages_are_held(folder):
    """Without an interval, a site's name is looked up again just after a page came, which waits to be digested with
    others at that moment."""
    with Server({'e%d.test' % i: star(200, 'e%d' % i, wait=0.01) for i in range(4)}) as server, \
            Names(life=1) as names:
        p = call(folder / 'r', *words(server, names.port, '--processes', 1))
        assert done(lines(p.stdout))['pages'] == 800, done(lines(p.stdout))
        assert b'died' not in p.stderr, p.stderr
        # It happened: each name was looked up in advance, and then again and again.
        assert names.asked.count(('e0', A)) >= 3, names.asked


@test
def failures_differ_from_names_that_do_not_exist(folder):
    """After SERVFAIL, no answer or no address, a site waits without delaying others; NXDOMAIN closes it."""
    repo = folder / 'r'
    with Server(sites('good', 'servfail', 'silent', 'empty', 'nx')) as server, \
            Names(servfail='servfail', silent='silent', empty='empty', nx='nx') as names:
        # Long enough for the other sites, and for a second query for the names that fail at once.
        p = start_crawl(repo, server, names.port)
        until(lambda: p.poll() is not None
              or (len([r for r in server.requests if r.host == 'good.test']) >= 3
                  and names.asked.count(('empty', A)) >= 2))
        assert p.poll() is None, p.stderr.read()
        kill(p.pid, signal.SIGTERM)
        out, err = p.communicate(timeout=PATIENCE)
        said = {e['url']: e['result'] for e in fetches(lines(out))}
        assert said[server.url('nx.test')] == 'error:dns' and said[server.url('good.test')] == 'stored', said
        for name, verdict, reason in (('servfail', 'waiting', 'cannot be resolved'), ('empty', 'waiting', 'no address'),
                                      ('nx', 'blocked', 'no such name')):
            why = ask(repo, 'why', server.url(name + '.test'))[0]
            assert why['verdict'] == verdict and reason in why['reason'], (name, why)
        assert {r.host for r in server.requests} == {'good.test'}
        names.rules.clear()
        end = done(lines(call(repo, *words(server, names.port), timeout=PATIENCE).stdout))
        assert end['sites_left'] == 0 and {r.host for r in server.requests} == set(server.sites), end


run_together()
