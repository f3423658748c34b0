"""What web.py and crawlweb.py share: starting `webbase web` and talking to it as a simple client."""
import gzip, http.client, json, re, socket, subprocess, time, urllib.parse

from e2e import PATIENCE, WEBBASE

__all__ = ['Web', 'Robots', 'links_of', 'split', 'seconds_of']


def split(url):
    """Splits a URL into (host with port, path with query)."""
    host, _, rest = url[len('http://'):].partition('/')
    return host, '/' + rest


def seconds_of(text):
    """Converts an RFC 3339 time with milliseconds to seconds."""
    import calendar
    return calendar.timegm(time.strptime(text[:19], '%Y-%m-%dT%H:%M:%S')) + float(text[19:-1])


def links_of(base, body):
    """The URLs that a page of the synthetic web links to."""
    return [urllib.parse.urljoin(base, m) for m in re.findall(r'<a href="([^"]*)"', body)]


class Reply:
    def __init__(self, status, headers, body):
        self.status, self.headers, self.body = status, headers, body

    def text(self):
        return self.body.decode('utf-8', 'replace')


class Web:
    """A running synthetic web; use with `with`."""

    def __init__(self, *args):
        self.process = subprocess.Popen([WEBBASE, 'web'] + [str(a) for a in args], stdout=subprocess.PIPE)
        line = self.process.stdout.readline().decode()
        assert re.fullmatch(r'listening on http://[^/]+/\n', line), line
        self.root = line.split()[-1]
        self.port = int(self.root.rstrip('/').rpartition(':')[2])
        self.open = {}

    def __enter__(self):
        return self

    def __exit__(self, *error):
        for c in self.open.values():
            c.close()
        if self.process.poll() is None:
            self.process.terminate()
        assert self.process.wait(PATIENCE) == 0, self.process.returncode
        self.process.stdout.close()

    def get(self, url, method='GET', **headers):
        """Makes one request, over a connection that is kept for each thread of the test."""
        host, path = split(url)
        headers = {k.replace('_', '-'): v for k, v in headers.items()}
        for attempt in (1, 2):
            c = self.open.get(0) or http.client.HTTPConnection('127.0.0.1', self.port, timeout=PATIENCE)
            self.open[0] = c
            try:
                c.request(method, path, headers={'Host': host, **headers})
                r = c.getresponse()
                return Reply(r.status, r.headers, r.read())
            except (http.client.RemoteDisconnected, ConnectionResetError, BrokenPipeError):
                self.open.pop(0).close()
                if attempt == 2:
                    raise

    def bytes(self, url, limit=1 << 24, seconds=PATIENCE):
        """Returns (all bytes received, how it ended: 'closed', 'reset', 'silent' or 'limit')."""
        host, path = split(url)
        got, end = [], time.time() + seconds
        with socket.create_connection(('127.0.0.1', self.port)) as s:
            s.sendall(('GET %s HTTP/1.1\r\nHost: %s\r\nConnection: close\r\n\r\n' % (path, host)).encode())
            while sum(map(len, got)) < limit:
                s.settimeout(max(0.01, end - time.time()))
                try:
                    data = s.recv(1 << 18)
                except ConnectionResetError:
                    return b''.join(got), 'reset'
                except (TimeoutError, socket.timeout):
                    return b''.join(got), 'silent'
                if not data:
                    return b''.join(got), 'closed'
                got.append(data)
        return b''.join(got), 'limit'

    def truth(self, query=''):
        r = self.get(self.root + '_truth' + ('?' + query if query else ''))
        assert r.status == 200, r.status
        return json.loads(r.body)

    def pages(self, *kinds, **want):
        """Pages of the truth with these kinds (default: all) and these facts."""
        return [p for p in self.truth('requests=0&sites=0')['pages'] if (not kinds or p['kind'] in kinds)
                and all(p.get(k, False) == v for k, v in want.items())]

    def site_root(self, host):
        return 'http://%s/' % host

    def sitemap_urls(self, host):
        """All URLs in the sitemaps that robots.txt names."""
        found, left = [], re.findall(r'(?mi)^Sitemap: (\S+)', self.get('http://%s/robots.txt' % host).text())
        while left:
            url = left.pop()
            r = self.get(url)
            assert r.status == 200, (url, r.status)
            body = gzip.decompress(r.body) if url.endswith('.gz') else r.body
            if url.endswith('.txt'):
                found += body.decode().split()
            elif b'<sitemapindex' in body:
                left += re.findall(r'<loc>([^<]*)</loc>', body.decode())
            else:
                found += re.findall(r'<loc>([^<]*)</loc>', body.decode())
        return found


class Robots:
    """A simple reader of robots.txt for an agent that no group names: the longest rule wins, and Allow wins ties."""

    def __init__(self, status, text):
        self.rules, self.delay, self.closed = [], None, status >= 500
        agents, in_rules = set(), False
        for line in text.splitlines() if status == 200 else ():
            key, colon, value = line.partition('#')[0].partition(':')
            key, value = key.strip().lower(), value.strip()
            if not colon:
                continue
            if key == 'user-agent':
                agents = (set() if in_rules else agents) | {value.lower()}
                in_rules = False
            elif key in ('allow', 'disallow', 'crawl-delay'):
                in_rules = True
                if '*' in agents and key == 'crawl-delay':
                    self.delay = float(value)
                elif '*' in agents and value:
                    pattern = ''.join('.*' if c == '*' else re.escape(c)
                                      for c in value.rstrip('$')) + ('$' if value.endswith('$') else '')
                    self.rules.append((len(value), key == 'allow', re.compile(pattern)))

    def allows(self, url):
        if self.closed:
            return False
        path = split(url)[1]
        best = max([(n, allow) for n, allow, pattern in self.rules if pattern.match(path)], default=(0, True))
        return best[1]
