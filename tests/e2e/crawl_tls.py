#!/usr/bin/env python3
"""https and HTTP/2 with nginx: certificates, and redirects between spellings of a page."""
import time

from e2e import *
from crawlserver import *
from websim import seconds_of

CONFIG = '''
daemon off; worker_processes 1; pid {f}/pid; error_log {f}/error.log; {user}
events {{}}
http {{
    access_log {f}/access.log combined; log_format proto '$server_protocol $scheme $host $request_uri $status';
    access_log {f}/proto.log proto;
    client_body_temp_path {f}/t1; proxy_temp_path {f}/t2; fastcgi_temp_path {f}/t3; uwsgi_temp_path {f}/t4;
    scgi_temp_path {f}/t5;
    types {{ text/html html; text/plain txt; }} default_type text/html;
    server {{ listen {a}:80; server_name secure.test; return 301 https://$host$request_uri; }}
    server {{
        listen {a}:443 ssl http2; server_name secure.test; root {f}/www;
        ssl_certificate {f}/cert.pem; ssl_certificate_key {f}/key.pem;
    }}
}}
'''


class Nginx:
    """nginx with http and https on their default ports, at its own loopback address."""

    def __init__(self, folder, name='secure.test'):
        become_root(network=True)
        self.folder = folder
        self.address = '127.77.%d.%d' % (os.getpid() >> 8 & 255, os.getpid() & 255 or 1)
        www = folder / 'www'
        (www / 'dir').mkdir(parents=True)
        self.files = {'index.html': page('/dir', '/plain.html'), 'dir/index.html': page(text='in a directory'),
                      'plain.html': page(text='plain'),
                      'robots.txt': b'User-agent: *\nDisallow: /no\n'}
        for path, body in self.files.items():
            (www / path).write_bytes(body)
        subprocess.run(['openssl', 'req', '-x509', '-newkey', 'rsa:2048', '-nodes', '-days', '2', '-subj',
                        '/CN=' + name, '-addext',
                        'subjectAltName=DNS:' + name, '-keyout', folder / 'key.pem', '-out', folder / 'cert.pem'],
                       check=True, capture_output=True)
        (folder / 'nginx.conf').write_text(CONFIG.format(f=folder, a=self.address, user='user root;'))

    def __enter__(self):
        self.process = subprocess.Popen([shutil.which('nginx') or '/usr/sbin/nginx', '-p', self.folder, '-c',
                                         self.folder / 'nginx.conf', '-e', self.folder / 'error.log'],
                                        stderr=subprocess.DEVNULL)
        import socket
        def up():
            if self.process.poll() is not None:
                raise AssertionError('nginx does not start: %s' % (self.folder / 'error.log').read_text()[-300:])
            with contextlib.suppress(OSError):
                socket.create_connection((self.address, 443), 1).close()
                return True
        until(up)
        return self

    def __exit__(self, *error):
        self.process.terminate()
        self.process.wait(PATIENCE)

    def log(self):
        return [l.split() for l in (self.folder / 'proto.log').read_text().splitlines()]

    def crawl(self, repo, *args):
        return crawl(repo, None, '--resolve', 'secure.test:443:' + self.address, '--resolve',
                     'secure.test:80:' + self.address, '--delay', 0, *args)


@test
def an_untrusted_certificate(folder):
    with Nginx(folder) as web:
        events = web.crawl(folder / 'r', 'https://secure.test/', '--max-time', 4)
        assert {e['result'] for e in fetches(events)} == {'error:tls'}, events
        assert web.log() == [], 'something was requested'
        why = ask(folder / 'r', 'why', 'secure.test')[0]
        # On a slow machine the wait may already be over.
        assert why['verdict'] == 'waiting', why
        assert ('tls' in why['reason'] or seconds_of(why['next_time']) <= time.time()), why


@test
def a_certificate_for_another_name(folder):
    with Nginx(folder, 'other.test') as web:
        events = web.crawl(folder / 'r', 'https://secure.test/', '--ca-file', folder / 'cert.pem', '--max-time', 4)
        assert {e['result'] for e in fetches(events)} == {'error:tls'} and web.log() == [], events


@test
def https_with_http_2_and_redirects_between_spellings(folder):
    """http to https, and /dir to /dir/: other spellings of the same page, which is stored once, under the final
    spelling."""
    with Nginx(folder) as web:
        events = web.crawl(folder / 'r', 'http://secure.test/', '--ca-file', folder / 'cert.pem')
        assert done(events)['pages'] == 3, events
        spoken = {l[0] for l in web.log() if l[1] == 'https'}
        assert spoken == {'HTTP/2.0'}, spoken
        for url, path in (('http://secure.test/', 'index.html'), ('https://secure.test/dir', 'dir/index.html'),
                          ('https://secure.test/plain.html', 'plain.html')):
            assert call(folder / 'r', 'get', url).stdout == web.files[path], url
        assert ask(folder / 'r', 'get', 'http://secure.test/')[0]['url'] == 'https://secure.test/'
        assert ask(folder / 'r', 'stat')[0]['pages'] == 3
        # The second crawl uses validators and mistakes nothing for another page.
        events = web.crawl(folder / 'r', 'http://secure.test/', '--ca-file', folder / 'cert.pem')
        assert done(events)['pages'] == 0 and sum(e['result'] == 'unchanged' for e in fetches(events)) == 3, events
        assert sum(l[-1] == '304' for l in web.log()) == 3


@test
def a_rate_holds_http_2_up_too(folder):
    """--max-rate pauses responses. Over HTTP/2 that must neither lose bytes nor end the connection."""
    with Nginx(folder) as web:
        big = os.urandom(400000)
        (folder / 'www' / 'big.bin').write_bytes(big)
        (folder / 'www' / 'index.html').write_bytes(page('/big.bin', '/plain.html'))
        events = web.crawl(folder / 'r', 'https://secure.test/', '--ca-file', folder / 'cert.pem', '--max-rate', '200k',
                           '--timeout', 1)
        assert done(events)['pages'] == 3, events
        assert call(folder / 'r', 'get', 'https://secure.test/big.bin').stdout == big
        took = {e['url']: e['ms'] for e in fetches(events)}['https://secure.test/big.bin']
        assert took >= 1000 * len(big) / 200000 * 0.8, took


run_together()
