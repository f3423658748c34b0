/*
 * commands.c - the table of commands: every command with the words of its help. It holds words only; what a command
 * does is in its cmd_*.c, and its options are in command_options.c.
 *
 * Descriptions are paragraphs of at most 88 columns.
 */
#include "cli/command_options.h"
#include "cli/storage_help.h"

#include <string.h>

const struct wb_command wb_commands[] = {
    {"init", "[OPTION...]", NULL, "create an empty repository",
     WB_HELP_INIT,
     wb_init_options, 0, 0, wb_cmd_init},

    {"import", "FILE... | --dir DIR --url BASE", NULL, "import web archives or a tree of files",
     "Stores every response and resource record of the archives, whatever its status and type.\n"
     "Each record is a capture of its page. The newest capture decides what the page is now; an\n"
     "older one takes its place in the past, or is left out if the history policy keeps nothing\n"
     "that old. A revisit, or a record with the same status, type and bytes as the capture\n"
     "before, is a further capture of the same version. FILE is a WARC (0.17 to 1.1) or ARC 1.0\n"
     "archive, uncompressed, gzip'd or zstd'd, or a WACZ, whose archives are read without\n"
     "unpacking it; webbase finds out from the content of the file. It cannot be a pipe.\n"
     "\n"
     "A damaged record is reported with its offset in the file, and the import continues with\n"
     "the next record. A body that is longer than --max-bytes is cut, marked as truncated and\n"
     "reported; an import uses up to five times that much memory. If a file cannot be read, or\n"
     "is not an archive, the other files are still imported, and the exit status is 1. SIGINT\n"
     "and SIGTERM end the import cleanly: what was read so far is kept. If a node goes down,\n"
     "pages that need it are reported and not stored, all others are, and the exit status is 1.\n"
     "Import the same again when the node is back: what is stored already is not stored twice.\n"
     "\n"
     "Pages that were taken down with 'webbase expunge' are counted, but not stored. If a\n"
     "fetch time is more than a day ahead of the clock, it is reported as an error, and the\n"
     "time of the import is used instead.\n"
     "\n"
     "http and https pages and their links are recorded in the journal, as if they had been\n"
     "crawled, so webdb knows them after the next update. Responses without a page are\n"
     "recorded as what they are: a redirect, gone, or an error.\n"
     "\n"
     "With --dir each file below DIR becomes a page. Its URL is BASE followed by its path, and\n"
     "index.html is the page of its folder. The media type follows from the file's name, and\n"
     "the fetch time is the time of the last change. Symbolic links are not followed.\n"
     "\n"
     "  webbase import crawl-1.warc.gz crawl-2.warc.gz\n"
     "  webbase import collection.wacz\n"
     "  webbase import --dir /usr/share/doc/python3.11/html --url https://docs.python.org/3.11/",
     wb_import_options, 0, WB_ARGS_ANY, wb_cmd_import},

    {"crawl", "URL... | --seeds FILE", NULL, "copy sites politely into the repository",
     "Fetches the seeds and the pages they link to, within --scope. A site gets one request at\n"
     "a time, at least --delay seconds apart; robots.txt, nofollow, Retry-After and\n"
     "Crawl-delay are respected. A site that answers 429 or 503, or does not answer, is left\n"
     "alone for some seconds, and longer after each further failure; if it would have to wait\n"
     "for minutes, it is left for the next crawl.\n"
     "\n"
     "A crawl can be killed at any moment. If it was killed or stopped, or has reached a\n"
     "limit, the next crawl continues where it was. If it has finished, the next crawl visits\n"
     "every page again, with conditional requests, so that unchanged pages cost little.\n"
     "Without seeds it continues with everything that is unfinished. With --dispenser, a new\n"
     "repository without seeds joins the crawls of other machines.\n"
     "\n"
     "Redirects are stored like pages, but do not count towards --max-pages.\n"
     "\n"
     "--with also fetches what stored pages need in order to be displayed, from whatever host,\n"
     "under the same rules: the robots.txt and the interval of that host apply. These files are\n"
     "stored as pages and count towards --max-pages, but not towards --max-depth. No links in\n"
     "them are followed, and nothing else of their hosts is fetched, except that style sheets\n"
     "and scripts need other files: what a module imports, and what a script seems to name.\n"
     "\n"
     "While it runs, 'webbase control' can pause it, slow it down or stop it at a site.\n"
     "\n"
     "A line of --seeds is a URL, followed by settings of its site: delay=SECONDS,\n"
     "budget=PAGES, priority=N (higher ones come first), class=NAME. A line 'class NAME\n"
     "delay=...' defines a class of sites. The class 'small' is predefined: a delay of 20\n"
     "seconds, after all other sites. For 'generate' and 'run' a class may also have fetches=N\n"
     "(how many fetches of a cycle the class gets) and min=10m max=1d (limits of the time\n"
     "between two visits to a page).\n"
     "\n"
     "PDF, images (PNG, JPEG, GIF, WebP), EPUB, DOCX, XLSX, PPTX and OpenDocument are read:\n"
     "their text, titles, dates and links, and facts such as width and pages. --module FILE.so\n"
     "reads other types; how to write one is in webbase/module.h. PDFs and modules are read in\n"
     "processes without network and files. If one crashes, or takes more than --module-time or\n"
     "--module-memory, the page is stored all the same, and --json has a line for it: event\n"
     "module, with url, module and error (crash, time, memory or failed). The repository\n"
     "remembers modules, so that later commands use them as well.\n"
     "\n"
     "With --json every fetch is one line. Its result is stored, unchanged, redirect,\n"
     "duplicate (stored, but another page has the same bytes), truncated (stored up to a\n"
     "limit), gone, robots, fresh, trap:KIND or error:KIND; or rules or sitemap for responses\n"
     "that are not pages. A line is printed once what it says is durable.\n"
     "\n"
     "  webbase crawl https://example.org/ --max-pages 1000\n"
     "  webbase crawl --seeds sites.txt --scope domain --max-time 6h",
     wb_crawl_options, 0, WB_ARGS_ANY, wb_cmd_crawl},

    {"webdb", "page URL | pages | exists MD5 | links | sites | count | check | delete URL | import | export",
     "page|pages|exists|links|sites|count|check|delete|import|export",
     "show what is known about pages and links",
     "webdb knows every URL that a crawl or import came across, and every link of a stored\n"
     "page, as of the last update.\n"
     "\n"
     "  page URL    everything about one page; exit status 1 if the URL is unknown\n"
     "  pages       all pages in the order of URLs; the pages of a site come together\n"
     "  exists MD5  exit status 0 if a stored page has the content with this MD5, otherwise 1\n"
     "  links       the MD5 of the content that has the link, its target and its anchor text\n"
     "  sites       the sites, each with its numbers of pages, visits and changes\n"
     "  count       the numbers of pages, of pages with content, and of links\n"
     "  check       read everything and compare the tables; exit status 1 if they are damaged\n"
     "  delete URL  remove one page from webdb, the store and searches, with all its versions; it is\n"
     "              not barred, so a crawl may bring it back, and links to it stay\n"
     "  import      load a graph (--vertices, --edges; Common Crawl's format) or rows (--pages,\n"
     "              --links); the files may be gzip'd\n"
     "  export      write the graph of pages, or of --hosts, to --vertices and --edges\n"
     "\n"
     "A link belongs to a content, so pages with the same bytes share their links. Unknown\n"
     "times are null. score was set, or follows from the links to the page; rank, which only\n"
     "'page' shows, is its PageRank in the newest generation of the index, and steers 'generate'\n"
     "instead of a score that was not set. change_rate is in changes per day; lifetime and\n"
     "lifetime_left are in days; result is the outcome of the last request. near is the page\n"
     "that this one is a near duplicate of: the first one, in the order of URLs, whose text has\n"
     "nearly the same fingerprint (simhash). It is null for that first page, and for a page that\n"
     "no other is similar to.\n"
     "\n"
     "flags: wanted (a seed, a hint, a push or a followed link leads there), gone, pushed,\n"
     "pushed-gone, barred (taken down), blocked (by robots.txt), scored, loaded (from a\n"
     "graph).\n"
     "\n"
     "  webbase webdb page https://example.org/\n"
     "  webbase webdb pages --md5 900150983cd24fb0d6963f7d28e17f72\n"
     "  webbase webdb links --to https://example.org/ --tsv",
     wb_webdb_options, 1, 2, wb_cmd_webdb},

    {"update", "[OPTION...]", NULL, "merge what crawls and imports have found into webdb",
     "Sorts and merges the journal into the next edition of webdb. The new edition appears\n"
     "when it is complete; readers keep the one they have opened. Then the logs of the journal\n"
     "that neither webdb nor an unfinished crawl needs are removed.\n"
     "\n"
     "Crawls may continue meanwhile, but only one update can run at a time. If it is killed,\n"
     "the old edition stays, and the next update does the work again. Damage in the journal\n"
     "costs the records concerned and is reported.\n"
     "\n"
     "update refuses a damaged webdb ('webdb check' finds damage) and leaves it as it is.\n"
     "--rebuild makes a new one from the rows that can be read, from the pages in the store,\n"
     "whose links are extracted again, and from the journal. Pages whose rows are lost start\n"
     "with an empty history.",
     wb_update_options, 0, 0, wb_cmd_update},

    {"index", "[OPTION...]", NULL, "make everything stored so far searchable",
     "Merges the journal into webdb, freezes the state of the store, and builds indexes of it:\n"
     "words, links, anchor texts, PageRank, host rank (PageRank on the graph of sites), and\n"
     "everything that is known about each page. The new generation appears when it is complete;\n"
     "searches that are under way finish with the old one. Only pages that are new or have\n"
     "changed are read. If it is killed, the old generation stays. If nothing is new, it says so\n"
     "at once and builds nothing, unless --force or --from-scratch is given.\n"
     "\n"
     "--column makes values of your own searchable: each line of FILE has a URL, a tab and a\n"
     "number or word. 'webbase search' then knows NAME:>=0.5 and --sort NAME. The column stays\n"
     "until it is given again, or removed with NAME=.\n"
     "\n"
     "--rank makes such a column of a rank of your own: PageRank for a reader who starts, and\n"
     "starts again, at the seeds in FILE instead of anywhere. Each line is a URL, or a host,\n"
     "which stands for its pages and those of hosts below it; lines that start with # are\n"
     "skipped. Every later build computes the rank again, until it is given again or removed.\n"
     "Seeds that are not known are counted and reported; if none is known, nothing is built.\n"
     "\n"
     "  webbase index\n"
     "  webbase index --column quality=scores.tsv && webbase search 'quality:>=0.8 lang:en'\n"
     "  webbase index --rank trust=seeds.txt && webbase search stanford --sort trust",
     wb_index_options, 0, 0, wb_cmd_index},

    {"search", "QUERY", NULL, "find pages by words, links and facts",
     "Finds the pages that match the query, the best first. All words must be there; OR, -not,\n"
     "\"phrases\", \"near words\"~5, prefix* and parentheses work as expected. Fields restrict a\n"
     "word (title: heading: url: anchor:), select by links (link: linkfrom: related:) or by\n"
     "facts (site: suffix: type: lang: status: inlinks: rank: hostrank: size: after: before:\n"
     "changed: published: modified: and columns of your own); dup:no leaves out near\n"
     "duplicates. docs/query.md describes the language. Put -- before a query that starts with\n"
     "a minus.\n"
     "\n"
     "It reads the newest generation that 'webbase index' has built. Pages that were taken\n"
     "down since then are left out.\n"
     "\n"
     "  webbase search title:stanford 'link:www-db.stanford.edu/' 'inlinks:>=10'\n"
     "  webbase search '\"exact phrase\" -word (a OR b) after:2026-01-01' --sort date",
     wb_search_options, 1, WB_ARGS_ANY, wb_cmd_search},

    {"links", "URL --in | --out", NULL, "list the links to a page, or from it",
     "Lists the pages that link to the URL, or the URLs that the page links to, with the text\n"
     "of each link, as of the newest generation of the index. The URL need not be stored.\n"
     "\n"
     "  webbase links https://example.org/ --in",
     wb_links_options, 1, 1, wb_cmd_links},

    {"similar", "URL", NULL, "list pages that are like a page",
     "Lists the pages most similar to a page: near duplicates first, then by common words and\n"
     "by pages that link to both.\n"
     "\n"
     "  webbase similar https://example.org/ --by links",
     wb_similar_options, 1, 1, wb_cmd_similar},

    {"serve", "[OPTION...] [--run [URL... | --seeds FILE]]", NULL, "serve pages and searches over HTTP",
     "Answers searches, shows pages and their versions, and serves programs over HTTP: see\n"
     "docs/http.md. It listens on this machine only, unless --listen says otherwise; then\n"
     "readers need a token, unless --public is given. Whatever changes something always needs\n"
     "the operator's token. A new generation of the index is used as soon as it is there.\n"
     "\n"
     "It answers only requests for its own address (or localhost, where that leads to it), so\n"
     "that no web page can read it under another name. If people reach it under a name, as\n"
     "they do behind a proxy, say so with --allow-host NAME.\n"
     "\n"
     "Providers can announce pages that are new, changed or gone, and send whole pages, with\n"
     "POST /api/push; --push-token says which token is good for which host.\n"
     "\n"
     "Stored pages are shown without their scripts. With --replay-listen they run them, at a\n"
     "second address, where each site has an origin of its own that nothing leaves.\n"
     "\n"
     "--run is everything in one: a process beside the server crawls, updates and indexes\n"
     "forever. It takes the seeds and options of 'webbase run', makes a repository if there is\n"
     "none, and is started again if it dies. SIGINT and SIGTERM end both.\n"
     "\n"
     "  webbase serve --listen 127.0.0.1:8080 --replay-listen 127.0.0.1:8081\n"
     "  webbase serve --listen 0.0.0.0:8080 --allow-host archive.example.org\n"
     "  webbase serve --run --seeds sites.txt --budget 50000 --every 1d",
     wb_serve_options, 0, WB_ARGS_ANY, wb_cmd_serve},

    {"generate", "[OPTION...]", NULL, "list the pages to fetch next",
     "Chooses pages from webdb and puts them on the list of the next crawl, at most --budget\n"
     "of them: first announced pages, then pages whose lifetime ends within a day, then all\n"
     "others by the value of a visit, whether they were never fetched or may have changed. The\n"
     "next 'webbase crawl' without seeds fetches them.\n"
     "\n"
     "Sites that no crawl was given are out of scope, unless --scope says otherwise. Pages are\n"
     "left out if they were taken down, if robots.txt forbade them within the last week, if\n"
     "they were gone at the last visit, or if they belong to an endless family of URLs. If a\n"
     "site could not be reached the last time, only a few of its pages are listed. Of a family\n"
     "of near duplicates one page is visited as often as it is worth, and the others at most\n"
     "once a week. A class of sites ('class NAME fetches=N delay=S min=S max=S' in --seeds)\n"
     "has its own number of fetches and its own intervals.\n"
     "\n"
     "Policies: optimal maximises the number of pages, weighted by score, that are the same in\n"
     "the repository as on the web; uniform visits all pages equally often; proportional\n"
     "visits a page as often as it changes; adaptive keeps an interval for each page, which\n"
     "gets shorter after a visit that found a change, and longer after one that found none.\n"
     "\n"
     "  webbase update && webbase generate --budget 10000 && webbase crawl",
     wb_generate_options, 0, 0, wb_cmd_generate},

    {"emulate", "SOURCE --rate N [--pages N]", NULL, "add the pages of another repository at a set rate",
     WB_HELP_EMULATE,
     wb_emulate_options, 1, 1, wb_cmd_emulate},

    {"push", "FILE|-", NULL, "announce pages that are new, changed or gone",
     "A line of FILE is a URL that is new or has changed (also 'new URL' or 'changed URL'), or\n"
     "'gone URL' for one that is gone; # starts a comment. FILE may also be one JSON object:\n"
     "{\"urlList\": [...]}, as in IndexNow, or {\"changed\": [...], \"gone\": [...]}, or\n"
     "{\"pages\": [...]} with whole pages, which are stored at once (docs/http.md). - is\n"
     "standard input.\n"
     "\n"
     "The next cycle fetches these pages before all others. A page that is announced as gone\n"
     "is removed if it really is gone. Lines that are not http or https URLs are reported and\n"
     "left out.\n"
     "\n"
     "  echo https://example.org/news | webbase push -",
     wb_no_options, 1, 1, wb_cmd_push},

    {"expunge", "[URL | HOST[:PORT] [--allow]]", NULL, "remove pages that are gone, or on request",
     "Without an argument it removes pages that answered 404 or 410, and pages whose lifetime\n"
     "has ended and which could not be fetched when they were tried for that reason, although\n"
     "their site could be reached. Pages that could not be tried stay for a while.\n"
     "\n"
     "With a URL, in any spelling, or a host, it takes down that page, or all pages of exactly\n"
     "that site: they are removed at once, and barred. Barred pages are neither fetched nor\n"
     "imported, not even by a crawl that is running, until --allow lifts the bar. The URL or\n"
     "host need not be known yet; all URLs of a barred host that are found later are barred\n"
     "too. Damaged pages can also be taken down. Links to the removed pages stay.\n"
     "\n"
     "--allow HOST lifts the bar on the host and on its pages. --allow URL allows this page\n"
     "even if its host is barred; the rest of the host stays barred. The exit status is 1 if\n"
     "nothing of that name was taken down.\n"
     "\n"
     "A page that is gone or has expired keeps its old versions, as far as the history policy\n"
     "or a snapshot keeps them. A takedown removes every version, from every snapshot too. The\n"
     "bytes stay on disk until the next compact. With --json each removed page is one line.\n"
     "\n"
     "  webbase expunge https://example.org/private.html && webbase compact",
     wb_expunge_options, 0, 1, wb_cmd_expunge},

    {"run", "[URL... | --seeds FILE] [OPTION...]", NULL, "crawl forever, and visit pages again as they change",
     "Repeats a cycle: generate, crawl, update, expunge, index, compact. A cycle fetches at\n"
     "most --budget pages, and starts --every so often, or as soon as the last one has ended. No\n"
     "more pages of a site are listed than it can be asked for within --every. Seeds that were\n"
     "never fetched are crawled at the start of the first cycle, within its budget.\n"
     "\n"
     "It can be killed at any moment: the next run continues with the step that was\n"
     "interrupted, and that cycle counts towards --cycles. SIGINT and SIGTERM end it cleanly.\n"
     "If another process is running update or compact, run waits, or skips that step and says\n"
     "so. A step that fails for another reason, such as a full disk, is reported. With\n"
     "--cycles that ends the run, and the next run repeats the step; otherwise the step is\n"
     "repeated after a while. Only one run can work at a time; 'webbase stat' shows what it is\n"
     "doing.\n"
     "\n"
     "All options of crawl apply to its crawls; limits such as --max-time are for the crawl of\n"
     "one cycle. --seeds is read in every cycle, so it cannot be standard input. With --json\n"
     "each fetch is a line, as in crawl, and each cycle ends with a line {\"event\":\"cycle\"}.\n"
     "\n"
     "  webbase run --seeds sites.txt --budget 50000 --every 1d\n"
     "  webbase run --cycles 1 --budget 1000",
     wb_run_options, 0, WB_ARGS_ANY, wb_cmd_run},

    {"control", "pause | resume | stop SITE | delay SITE S | status", "pause|resume|stop|delay|status",
     "tell a running crawl what to do",
     "Acts on the crawl (of crawl or run) that is running on the repository, within seconds:\n"
     "\n"
     "  pause         begin no new request; those under way end, and nothing is lost\n"
     "  resume        go on\n"
     "  stop SITE     ask SITE (a host, with its port if it has one) for nothing more in this\n"
     "                crawl. The pages that are in its queue stay there for the next crawl\n"
     "  delay SITE S  leave at least S seconds between two requests to SITE from now on. This\n"
     "                can only make it slower than robots.txt, --delay and its seeds say\n"
     "  status        print what the crawl has done and is doing, as JSON: counters, errors by\n"
     "                kind, rates per second over the last ten seconds, sites and queues\n"
     "\n"
     "Orders hold until the crawl ends. Under run, a pause and delays hold until run ends, and\n"
     "a stop until the cycle ends. A paused crawl still ends at --max-time. If several crawls\n"
     "are running on the repository, all of them are told. The exit status is 1 if no crawl is\n"
     "running, or if it has no such site. Only root and the user who runs the crawl are obeyed,\n"
     "and only on the same machine.\n"
     "\n"
     "  webbase control delay example.org 30\n"
     "  webbase control status | jq .rate",
     wb_no_options, 1, 3, wb_cmd_control},

    {"why", "URL | HOST", NULL, "say why a page or a site is, or is not, fetched",
     "Names what decides: a line of robots.txt, the time until the site's next request, a\n"
     "back-off, a budget, a guard against traps, an error, or that nothing leads to the page.\n"
     "verdict is fetched, waiting, blocked or unknown. It works while a crawl is running.\n"
     "\n"
     "  webbase why https://example.org/private/\n"
     "  webbase why example.org",
     wb_why_options, 1, 1, wb_cmd_why},

    {"export", "--warc FILE | --wacz FILE | --facts FILE [OPTION...]", NULL,
     "write pages to a web archive, or facts to a table",
     "--warc writes the latest version of the selected pages as WARC 1.1, in the order in which\n"
     "the repository stores them. Without selecting options it writes all pages. FILE appears\n"
     "when everything is written.\n"
     "\n"
     "--wacz writes the same records into a WACZ (1.1.1): archives of about 1 GiB in a ZIP file,\n"
     "with an index by URL and a list of the HTML pages with their texts. ReplayWeb.page and\n"
     "other tools show such a file in a browser, also from a web server, without reading all of\n"
     "it, and search the texts.\n"
     "\n"
     "--snapshot writes the pages as they were when that snapshot was sealed. --versions writes\n"
     "every capture that is kept, also of pages that are gone: page by page, oldest first.\n"
     "Captures that saw bytes which are in FILE already are written as revisit records. --since\n"
     "and --until then select captures, and --type and --status select versions. Importing FILE\n"
     "into a repository with --history all gives the same versions and captures.\n"
     "\n"
     "--facts writes one row per page of the index, in the order of URLs:\n"
     "\n"
     "  url id time status type length lang title published modified depth inlinks outlinks rank\n"
     "  hostrank\n"
     "\n"
     "and the columns that 'webbase index' has added with --column and --rank. The ending of\n"
     "FILE decides: .csv has a header line, .jsonl one object per line, .parquet columns with\n"
     "types for DuckDB, pandas and Spark, and .sqlite the tables pages and links(from_url,\n"
     "to_url, anchor), which has the links of the selected pages. What is not known is null, or\n"
     "empty in CSV. Pages of any status are written, unless --query is given without --status;\n"
     "it finds what 'webbase search' finds.\n"
     "\n"
     "  webbase export --warc all.warc.gz\n"
     "  webbase export --warc corpus.warc.gz --snapshot corpus-2026\n"
     "  webbase export --warc everything.warc.gz --versions\n"
     "  webbase export --wacz example.wacz --site example.org --versions\n"
     "  webbase export --warc html.warc.zst --suffix edu --type html --since 2026-01-01\n"
     "  webbase export --facts pages.sqlite --site example.org --query 'crawler inlinks:>=10'",
     wb_export_options, 0, 0, wb_cmd_export},

    {"get", "URL|ID [--body | --headers | --record] [--at TIME | --snapshot N|NAME]", NULL, "print a page",
     "Prints the latest version of a page. Every spelling of its URL with the same normal form\n"
     "finds it, with or without http:// in front. ID is the page id, 32 hexadecimal digits,\n"
     "which --json and 'webbase url' show.\n"
     "With --json it prints everything about the page except the body.\n"
     "\n"
     "--at TIME prints the version that has the newest capture at or before TIME, or else the\n"
     "oldest version that is kept. --snapshot prints the page as it was in that snapshot. The\n"
     "time that --json and --record show is that of the version's newest capture. A page that\n"
     "is gone can still be read with --at, if the history policy keeps its versions.\n"
     "\n"
     "  webbase get https://example.org/ --at 2026-01-31\n"
     "  webbase get https://example.org/ --snapshot corpus-2026",
     wb_get_options, 1, 1, wb_cmd_get},

    {"stream", "[OPTION...] [DIR | http://HOST:PORT] | list | drop NAME", "list|drop",
     "deliver whole collections, each page exactly once",
     "Writes the pages of one state of the repository to standard output, whatever their status.\n"
     "The state is that of the active index; with --latest, or if there is no index, that of\n"
     "this moment; with --snapshot that of a snapshot. Crawls, updates and compaction go on\n"
     "meanwhile and change nothing. Formats:\n"
     "\n"
     "  jsonl  an object per line: url id time status type lang title text links token\n"
     "  warc   WARC 1.1; the token is in the header WebBase-Token. Also warc.gz and warc.zst\n"
     "  text   the visible text, in WARC records of type conversion (WET)\n"
     "  urls   one URL per line; with --tokens a tab and the token follow\n"
     "\n"
     "Every record has a token. --resume TOKEN goes on with the record after it, even if this\n"
     "process, the repository's server or the whole machine was restarted meanwhile. A token\n"
     "stands for the whole request: selection, order, part and limit need not be given again.\n"
     "The state is held for 24 hours after a stream was last heard from.\n"
     "\n"
     "--name keeps the place in the repository: 'stream --name NAME' goes on where it was, and\n"
     "repeats at most the last 1000 records if it was killed. The state is then held for 30\n"
     "days. A finished stream delivers nothing. list shows the named streams, drop NAME forgets\n"
     "one.\n"
     "\n"
     "--versions delivers every capture that is kept, also of pages that are gone, page by page\n"
     "and oldest first; --since and --until then select captures. --query and --order rank need\n"
     "an index. They are about the pages as the index knows them; with --latest, --snapshot or\n"
     "--versions the stream delivers other versions of these pages. Pages without a rank or a\n"
     "date come last. --order modified uses what pages say about themselves, or\n"
     "else their servers (Last-Modified).\n"
     "\n"
     "Instead of being printed, records can go to a command (--exec, run by the shell), or to\n"
     "handlers: functions in shared objects, see include/webbase/handler.h and examples/. With\n"
     "--workers, handlers that define merge make one result; any other one writes to ARG.1 to\n"
     "ARG.N. From a server, the same streams come over HTTP; a lost connection is resumed.\n"
     "Without --token, a server holds the state for an hour only, and keeps a few names until\n"
     "others need them.\n"
     "\n"
     "  webbase stream --format warc.gz --suffix edu > edu.warc.gz\n"
     "  webbase stream http://127.0.0.1:8080 --exec 'python3 count.py'\n"
     "  webbase stream --query 'crawler inlinks:>=10' --order rank --limit 100\n"
     "  webbase stream --partition 1/4 --format text | my-program\n"
     "  webbase stream --name nightly --format jsonl >> pages.jsonl",
     wb_stream_options, 0, 2, wb_cmd_stream},

    {"versions", "URL|ID", NULL, "list the versions of a page",
     "Prints every version of a page that can be read, oldest first: those that the history\n"
     "policy keeps, and those that a snapshot contains. A version is one combination of status,\n"
     "media type and body. Every fetch that saw it is a capture; time is that of the first one\n"
     "and last_seen that of the last one. 'webbase get --at' prints a version. The exit status\n"
     "is 1 if there is none.",
     wb_no_options, 1, 1, wb_cmd_versions},

    {"snapshot", "[--name NAME] [--keep DURATION] | list | drop N|NAME", "list|drop",
     "freeze the present state, so that it can be read later",
     "Seals a snapshot of all pages as they are now. It takes no time and no space. Later\n"
     "crawls and imports do not change what is in it: get and export read it with --snapshot.\n"
     "Only a takedown (expunge URL) removes pages from snapshots.\n"
     "\n"
     "  list         the snapshots that can be read, and who holds them\n"
     "  drop N|NAME  give a snapshot up; what only it contained is freed by the next compact\n"
     "\n"
     "Snapshots are numbered from 1, and numbers are never used again. A name has 1 to 64\n"
     "letters, digits, '.', '_' or '-', and is not a number. A snapshot that a generation or a\n"
     "stream holds cannot be dropped; one whose time is over is dropped by itself. expires is\n"
     "null if a snapshot is kept until it is dropped.\n"
     "\n"
     "  webbase snapshot --name corpus-2026\n"
     "  webbase snapshot --keep 30d",
     wb_snapshot_options, 0, 2, wb_cmd_snapshot},

    {"history", "[newest | all | N | DURATION]", "newest|all", "show or set which old versions are kept",
     "Without an argument it prints the history policy of the repository. With one it sets it:\n"
     "\n"
     "  newest    only the latest version of each page\n"
     "  all       every version\n"
     "  N         the N newest versions of each page, such as 3\n"
     "  DURATION  versions that were the latest at some moment of that time, such as 12h, 30d,\n"
     "            6w or 1y\n"
     "\n"
     "The latest version is always kept, and snapshots keep what is in them. Versions that a\n"
     "narrower policy no longer keeps cannot be read any more at once; their bytes are freed by\n"
     "the next compact.\n"
     "\n"
     "  webbase history all",
     wb_no_options, 0, 1, wb_cmd_history},

    {"stat", "", NULL, "count pages, versions, sites and bytes",
     "versions counts those that can be read, at least one for each page, and captures how\n"
     "often they were seen. bytes_pages is the total size of the bodies of the latest versions,\n"
     "bytes_stored the size of the repository on disk, and bytes_dead what compact could free.\n"
     "waiting counts the pages of a batch design that a transfer has still to bring.\n"
     "epoch grows with every commit that changes a page; snapshot is the number of the newest\n"
     "snapshot, even if it was dropped, and 0 if there was none. webdb says how much is known\n"
     "about pages and links, unmerged how much update would merge, and cycle what run is doing\n"
     "or where it stopped. It works while other commands are running.",
     wb_no_options, 0, 0, wb_cmd_stat},

    {"verify", "", NULL, "read and check everything",
     "Checks every block, record and catalog entry, the journal, the tables of webdb and the\n"
     "state of the cycle against their checksums and against each other. The exit status is 1\n"
     "if anything is damaged. What a crash left behind is not damage; it is reported as a\n"
     "note.",
     wb_no_options, 0, 0, wb_cmd_verify},

    {"compact", "", NULL, "free the space of replaced and removed pages",
     "Gives up old versions that neither the history policy nor a snapshot keeps, and rewrites\n"
     "files that contain dead pages. Old versions that are kept are put next to newer ones of\n"
     "the same page, where they take little space. Other processes can read and write\n"
     "meanwhile; files in use are left for another time. 'webbase run' does the same after each\n"
     "cycle, with the files of which a quarter is dead.\n"
     "\n"
     "Damage does not stop it: a damaged part is dropped if no page needs it, and otherwise\n"
     "kept as it is. Both are reported with file and offset. The exit status is 1 if damage\n"
     "remains; 'webbase verify' shows all of it.",
     wb_no_options, 0, 0, wb_cmd_compact},

    {"cluster", "init --store URL [OPTION...] | status", "init|status", "make a cluster of machines, and show it",
     WB_HELP_CLUSTER,
     wb_cluster_options, 1, 1, wb_cmd_cluster},

    {"nodes", "[list] | add DIR [--update] | remove N", "list|add|remove",
     "show, add and remove the directories that hold the pages",
     "A repository may consist of several nodes. A node is a directory, typically on its own\n"
     "disk; 'webbase init --nodes' makes a repository with several of them.\n"
     "\n"
     "  list      show each node: its state, role (update nodes take new pages, read nodes serve\n"
     "            them, both do both), organisation, pages, the bytes of its disk, those that\n"
     "            are used by pages and those that are free, how much of the used ones compact\n"
     "            would free (dead), and the requests under way in all processes, by kind; who\n"
     "            gets single pages is counted for a second or two after each (the default)\n"
     "  add DIR   make a new or empty directory a node. If pages are distributed by hash, its\n"
     "            share of them is moved there from all others, so that all nodes have the same\n"
     "            number of pages; otherwise only new pages go to it\n"
     "  remove N  move all pages of a node to the others, then remove the node\n"
     "\n"
     "The state is idle, streaming (a process is reading all of it), storing (a process has\n"
     "pages for it that are not committed yet, or rewrites its files) or down: its directory\n"
     "is missing, empty, or belongs to another node. A node that is down is never written to,\n"
     "and is used again as soon as it is back. Other processes can read and write while nodes\n"
     "are added and removed. If add or remove is interrupted, list says so; repeat the\n"
     "command to continue. The last node cannot be removed.\n"
     "\n"
     "  webbase nodes\n"
     "  webbase nodes add /disk2/pages",
     wb_nodes_options, 0, 2, wb_cmd_nodes},

    {"transfer", "", NULL, "bring waiting pages to the read nodes (batch designs)",
     WB_HELP_TRANSFER,
     wb_no_options, 0, 0, wb_cmd_transfer},

    {"convert", "TARGET [OPTION...]", NULL, "copy everything into a new repository of another design",
     WB_HELP_CONVERT,
     wb_convert_options, 1, 1, wb_cmd_convert},

    {"backup", "URL [OPTION...]", NULL, "bring what is new to a vault, from which 'restore' makes a repository",
     WB_HELP_BACKUP,
     wb_backup_options, 1, 1, wb_cmd_backup},

    {"restore", "URL DIR [--at TIME]", NULL, "make a repository of what is in a vault",
     WB_HELP_RESTORE,
     wb_restore_options, 2, 2, wb_cmd_restore},

    {"graph", "import ADJACENCY | stat | rank", "import|stat|rank", "rank the nodes of a bare link graph",
     "For a graph without pages. The repository keeps one such graph, apart from its pages.\n"
     "\n"
     "  import FILE  read the graph, which replaces the one before. The first line of FILE is\n"
     "               the number of nodes; then each line has the successors of one node: 0, 1\n"
     "               and so on. Numbers are separated by blanks, in any order, and repeated\n"
     "               ones count once. FILE may be gzip'd. If any line is wrong, its number is\n"
     "               reported, and nothing is imported.\n"
     "  stat         the numbers of nodes and arcs, and how little space they take\n"
     "  rank         PageRank of every node, one per line: a random walk follows a link with\n"
     "               probability 0.85, and otherwise, or if there is none, jumps to any node.\n"
     "               With --from it jumps to the given nodes only (personalised rank).\n"
     "\n"
     "webdb import brings a graph whose nodes are URLs into webdb.\n"
     "\n"
     "  webbase graph import cnr-2000.graph-txt.gz && webbase graph rank > ranks.txt",
     wb_graph_options, 1, 2, wb_cmd_graph},

    {"url", "[--base URL] URL...", NULL, "show how a URL is read",
     "Prints for each URL its serialisation according to the WHATWG standard, the normal form\n"
     "that names the page, the page id, the site, the SURT and the registrable domain. - reads\n"
     "URLs from standard input, one per line. The exit status is 1 if one of them is not a URL.\n"
     "It needs no repository.",
     wb_url_options, 1, WB_ARGS_ANY, wb_cmd_url},

    {"robots", "FILE [--agent NAME] URL...", NULL, "show how a robots.txt is read",
     "Prints for each URL whether the robots.txt in FILE allows it, and which line decides. If\n"
     "FILE is -, it is read from standard input; if a URL is -, URLs are read from there, one\n"
     "a line. Without a URL it prints the crawl delay and the sitemaps. The exit status does\n"
     "not depend on the decision; it is 1 if FILE cannot be read. It needs no repository and\n"
     "fetches nothing.\n"
     "\n"
     "  webbase robots robots.txt --agent examplebot https://example.org/private/",
     wb_robots_options, 1, WB_ARGS_ANY, wb_cmd_robots},

    {"advise", "--add N --get N --stream N [--update-ratio X] [--nodes N]", NULL, "say which design suits a load",
     WB_HELP_ADVISE,
     wb_advise_options, 0, 0, wb_cmd_advise},

    {"web", "[OPTION...]", NULL, "serve a synthetic web to crawl",
     "Plays many sites on the loopback interface: s1.localhost:PORT, s2.localhost:PORT and so\n"
     "on. They have robots.txt, sitemaps, aliases, redirects and copies; with --speed their\n"
     "pages change, appear and vanish. Everything is computed from --seed; nothing is stored.\n"
     "\n"
     "The first line of output says where it listens. The page / there links to all sites.\n"
     "/_truth says, as JSON, which pages exist, which of them can be reached and are allowed,\n"
     "and what was requested when. SIGINT or SIGTERM ends it. It needs no repository.\n"
     "\n"
     "  webbase web --listen 127.0.0.1:8080 --seed 7 --sites 1000 --pages 100000\n"
     "  webbase crawl http://127.0.0.1:8080/ --scope any --delay 0.1 --allow-private",
     wb_web_options, 0, 0, wb_cmd_web},

    {"extract", "[--url URL] FILE...", NULL, "show what is found in a page",
     "Prints for each FILE, or for standard input if it is -: the encoding, title, language,\n"
     "dates, author and type, its instructions to robots, its links as written and resolved,\n"
     "the visible text, the main text (without navigation, comments and the like), and the\n"
     "fingerprint that finds near duplicates. It reads HTML, XML, feeds, sitemaps, plain\n"
     "text, PDF, images, Office documents and EPUB, and with --module other types. It needs no\n"
     "repository.\n"
     "\n"
     "  webbase extract --url https://example.org/ index.html",
     wb_extract_options, 1, WB_ARGS_ANY, wb_cmd_extract},

    {"help", "[COMMAND]", NULL, "show how webbase, or a command, is used",
     "Prints the same as --help, or the man page, or the completion script for bash.",
     wb_help_options, 0, 1, wb_cmd_help},

    {NULL, NULL, NULL, NULL, NULL, NULL, 0, 0, NULL},
};

const struct wb_command *wb_command_find(const char *name)
{
    for (const struct wb_command *c = wb_commands; c->name; c++)
        if (strcmp(c->name, name) == 0)
            return c;
    return NULL;
}
