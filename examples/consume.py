#!/usr/bin/env python3
"""Reads a whole collection from a webbase server and counts pages by host, going on where it was after a break.

    examples/consume.py http://127.0.0.1:8080 [suffix=edu] [lang=en] ...
"""
import collections, http.client, json, sys, time, urllib.error, urllib.parse, urllib.request


def records(server, **params):
    """Each record of the stream exactly once, however often the connection breaks."""
    token, pause = None, 0.1
    while True:
        query = dict(params, format='jsonl', **({'resume': token} if token else {}))
        try:
            with urllib.request.urlopen(server + '/api/stream?' + urllib.parse.urlencode(query)) as stream:
                for line in stream:
                    record = json.loads(line)
                    token, pause = record['token'], 0.1
                    yield record
            return      # a stream that is cut short does not end properly, so this is the end
        except urllib.error.HTTPError as e:
            sys.exit(json.load(e)['error'])
        except (http.client.HTTPException, OSError, ValueError) as e:
            time.sleep(pause)
            pause = min(2 * pause, 30)


hosts = collections.Counter()
for page in records(sys.argv[1].rstrip('/'), **dict(a.split('=', 1) for a in sys.argv[2:])):
    hosts[urllib.parse.urlsplit(page['url']).netloc] += 1
for host, count in hosts.most_common(20):
    print('%8d  %s' % (count, host))
