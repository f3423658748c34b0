/*
 * commands.c - the table of commands: every command with its options and the words of its help. It holds words only;
 * what a command does is in its cmd_*.c.
 *
 * Descriptions are paragraphs of at most 88 columns. In option help, "(default X)" is what happens without the option.
 */
#include "cli/commands.h"

#include <string.h>

#define END {NULL, 0, WB_OPTION_FLAG, NULL, NULL}

const struct wb_option wb_common_options[] = {
    {"repository", 'r', WB_OPTION_DIR, "DIR", "the repository (default $WEBBASE_REPO, or else ./webbase-data)"},
    {"json", 0, WB_OPTION_FLAG, NULL, "print JSON, one object per line"},
    {"help", 'h', WB_OPTION_FLAG, NULL, "show how the command is used"},
    {"version", 'V', WB_OPTION_FLAG, NULL, "print the version"},
    END,
};

/* ---- options that several commands take -------------------------------------------------------- */

/* Everything that steers a crawl: the options of crawl, which run takes as well. */
#define CRAWL_OPTIONS                                                                                                  \
    {"seeds", 0, WB_OPTION_FILE, "FILE", "read more seeds from FILE, one per line, with settings of their sites; "     \
                                         "- is standard input"},                                                       \
    {"scope", 0, WB_OPTION_CHOICE, "site|domain|any", "which links are followed: those to the seeds' sites, to "       \
                                                      "their domains, or to any site (default site)"},                 \
    {"max-pages", 0, WB_OPTION_NUMBER, "N", "stop after storing N pages"},                                             \
    {"max-depth", 0, WB_OPTION_COUNT, "N", "follow links at most N steps away from a seed"},                           \
    {"max-time", 0, WB_OPTION_DURATION, "S", "stop after S seconds (or 10m, 6h)"},                                     \
    {"delay", 0, WB_OPTION_DURATION, "S", "seconds between two requests to a site (default 5)"},                       \
    {"max-crawl-delay", 0, WB_OPTION_DURATION, "S", "never wait longer than this for a Crawl-delay in robots.txt "     \
                                                    "(default 60)"},                                                   \
    {"processes", 0, WB_OPTION_NUMBER, "N", "crawler processes (default one per processor)"},                          \
    {"sites", 0, WB_OPTION_NUMBER, "N", "sites that a process crawls at the same time (default 1000)"},                \
    {"connections", 0, WB_OPTION_NUMBER, "N", "simultaneous requests to a site that has no delay (default 1)"},        \
    {"per-address", 0, WB_OPTION_NUMBER, "N", "simultaneous requests to one IP address (default 8)"},                  \
    {"user-agent", 0, WB_OPTION_TEXT, "S", "the crawler's name; robots.txt is read for the part before the first / "   \
                                           "or blank"},                                                                \
    {"allow-private", 0, WB_OPTION_FLAG, NULL, "also contact loopback and private addresses"},                         \
    {"resolve", 0, WB_OPTION_LIST, "HOST:PORT:ADDR", "use ADDR for HOST instead of asking a name server; HOST may be " \
                                                     "* or *.suffix; may be given several times"},                     \
    {"dns", 0, WB_OPTION_TEXT, "ADDR:PORT", "ask these name servers, separated by commas, instead of the system's"},   \
    {"dns-rate", 0, WB_OPTION_NUMBER, "N", "names looked up per second (default 100)"},                                \
    {"dispenser", 0, WB_OPTION_TEXT, "URL", "keep the list of sites in PostgreSQL (postgres://...), so that crawlers " \
                                            "on several machines share it; later commands remember this; "             \
                                            "'sqlite' goes back to the repository's own list"},                        \
    {"fresh", 0, WB_OPTION_DURATION, "S", "do not fetch pages again that were fetched within the last S seconds"},     \
    {"timeout", 0, WB_OPTION_DURATION, "S", "how long to wait for a response (default 30)"},                           \
    {"max-bytes", 0, WB_OPTION_NUMBER, "N", "keep at most N bytes of a page and mark longer ones as truncated "        \
                                            "(default 16777216)"},                                                     \
    {"site-budget", 0, WB_OPTION_NUMBER, "N", "pages stored of one site in one visit (default 1000000)"},              \
    {"lifetime", 0, WB_OPTION_NUMBER, "DAYS", "how long a page is kept without being seen again (default 90)"},        \
    {"root-first", 0, WB_OPTION_FLAG, NULL, "enter each site at its root page, and at other seeds only if the root "   \
                                            "cannot be fetched"},                                                      \
    {"no-sitemaps", 0, WB_OPTION_FLAG, NULL, "ignore sitemaps and feeds"},                                             \
    {"ca-file", 0, WB_OPTION_FILE, "FILE", "trust the certificates in FILE instead of the system's"},                  \
    {"log", 0, WB_OPTION_FILE, "FILE", "append an event for every fetch to FILE, in the format of --json"},

#define DISPENSER_OPTION {"dispenser", 0, WB_OPTION_TEXT, "URL", "use this list of sites instead of the last crawl's"}
#define MEMORY_OPTION {"memory", 0, WB_OPTION_NUMBER, "BYTES", "memory for sorting and merging (default 268435456)"}
#define BUDGET_OPTION {"budget", 0, WB_OPTION_NUMBER, "N", "fetch at most N pages in a cycle (default no limit)"}
#define REFRESH_OPTIONS                                                                                                \
    {"policy", 0, WB_OPTION_CHOICE, "optimal|uniform|proportional|adaptive", "how often pages are visited again "      \
                                                                             "(default optimal)"},                     \
    {"min-interval", 0, WB_OPTION_DURATION, "S", "never visit a page sooner than this after the last visit "           \
                                                 "(seconds, or 10m, 6h, 1d)"},                                         \
    {"max-interval", 0, WB_OPTION_DURATION, "S", "visit every existing page at least this often"}

/* ---- options of one command -------------------------------------------------------------------- */

static const struct wb_option init_options[] = {
    {"organisation", 0, WB_OPTION_CHOICE, "log|hash|hashed-log", "how pages are laid out on disk (default log)"},
    {"update", 0, WB_OPTION_CHOICE, "incremental|batch", "whether readers see new pages at once, or a batch at a time "
                                                         "(default incremental)"},
    END,
};

static const struct wb_option import_options[] = {
    {"dir", 0, WB_OPTION_DIR, "DIR", "import the files below DIR as the pages of a site"},
    {"url", 0, WB_OPTION_TEXT, "BASE", "with --dir: the URL of DIR"},
    {"max-bytes", 0, WB_OPTION_NUMBER, "N", "keep at most N bytes of a body and mark longer ones as truncated "
                                            "(default 50331648)"},
    {"no-journal", 0, WB_OPTION_FLAG, NULL, "do not record the pages and their links in the journal; this is faster, "
                                            "but webdb will not know them"},
    END,
};

static const struct wb_option export_options[] = {
    {"warc", 0, WB_OPTION_FILE, "FILE", "write to FILE: .warc, .warc.gz or .warc.zst; - is standard output, "
                                        "uncompressed"},
    {"site", 0, WB_OPTION_TEXT, "HOST", "only pages of exactly this host; give its port if that is not the default"},
    {"suffix", 0, WB_OPTION_TEXT, "DOMAIN", "only pages of hosts below this domain, such as edu or example.org"},
    {"since", 0, WB_OPTION_TIME, "TIME", "only pages fetched at this time or later; RFC 3339, or a date"},
    {"until", 0, WB_OPTION_TIME, "TIME", "only pages fetched before this time"},
    {"type", 0, WB_OPTION_TEXT, "TYPE", "only pages of this media type; html means HTML and XHTML"},
    {"force", 0, WB_OPTION_FLAG, NULL, "replace FILE if it exists"},
    END,
};

static const struct wb_option get_options[] = {
    {"body", 0, WB_OPTION_FLAG, NULL, "print the body, byte for byte (this is the default)"},
    {"headers", 0, WB_OPTION_FLAG, NULL, "print the status line and the headers as received"},
    {"record", 0, WB_OPTION_FLAG, NULL, "print the page as a WARC record"},
    END,
};

static const struct wb_option crawl_options[] = {
    CRAWL_OPTIONS
    END,
};

static const struct wb_option webdb_options[] = {
    {"by", 0, WB_OPTION_CHOICE, "url|md5", "pages: in the order of their URLs, or only those with content, in the "
                                           "order of its MD5 (default url)"},
    {"md5", 0, WB_OPTION_TEXT, "MD5", "pages: only those whose content has this MD5"},
    {"site", 0, WB_OPTION_TEXT, "HOST", "pages: only those of exactly this host; give its port if that is not the "
                                        "default"},
    {"to", 0, WB_OPTION_TEXT, "URL", "links: only those that lead to URL"},
    {"from", 0, WB_OPTION_TEXT, "MD5", "links: only those of the content with this MD5"},
    {"tsv", 0, WB_OPTION_FLAG, NULL, "print tab-separated columns below a header line"},
    {"vertices", 0, WB_OPTION_FILE, "FILE", "import, export: the vertices of a graph; a line is a number and a URL or "
                                            "a reversed host name"},
    {"edges", 0, WB_OPTION_FILE, "FILE", "import, export: the edges of a graph; a line is two numbers"},
    {"hosts", 0, WB_OPTION_FLAG, NULL, "export: the graph of hosts instead of pages"},
    {"force", 0, WB_OPTION_FLAG, NULL, "export: replace files that exist"},
    {"pages", 0, WB_OPTION_FILE, "FILE", "import: rows of pages, as 'webdb pages' prints them with --json or --tsv"},
    {"links", 0, WB_OPTION_FILE, "FILE", "import: rows of links, as 'webdb links' prints them with --json or --tsv"},
    MEMORY_OPTION,
    END,
};

static const struct wb_option update_options[] = {
    DISPENSER_OPTION,
    MEMORY_OPTION,
    {"rebuild", 0, WB_OPTION_FLAG, NULL, "make a damaged webdb again from everything that can still be read"},
    END,
};

static const struct wb_option generate_options[] = {
    BUDGET_OPTION,
    REFRESH_OPTIONS,
    {"seeds", 0, WB_OPTION_FILE, "FILE", "first read the sites and classes in FILE"},
    {"scope", 0, WB_OPTION_CHOICE, "site|domain|any", "which pages may be listed: those of the sites that crawls were "
                                                      "given, of their domains, or of any site (default site)"},
    DISPENSER_OPTION,
    END,
};

static const struct wb_option expunge_options[] = {
    {"allow", 0, WB_OPTION_FLAG, NULL, "undo a takedown: the page or site may be fetched and imported again"},
    DISPENSER_OPTION,
    MEMORY_OPTION,
    END,
};

static const struct wb_option run_options[] = {
    CRAWL_OPTIONS
    {"cycles", 0, WB_OPTION_NUMBER, "N", "stop after N cycles (default never)"},
    {"every", 0, WB_OPTION_DURATION, "S", "time from the start of a cycle to the start of the next, such as 30s, 6h or "
                                          "1d (default 1d; with --cycles or --budget 0, which means at once)"},
    BUDGET_OPTION,
    REFRESH_OPTIONS,
    MEMORY_OPTION,
    END,
};

/* run has the most options. */
_Static_assert(sizeof run_options / sizeof *run_options <= WB_COMMAND_OPTIONS_MAX + 1, "all options have a value");

static const struct wb_option why_options[] = {
    DISPENSER_OPTION,
    {"user-agent", 0, WB_OPTION_TEXT, "S", "the crawler's name, as given to crawl; robots.txt is read for it"},
    END,
};

static const struct wb_option url_options[] = {
    {"base", 0, WB_OPTION_TEXT, "URL", "resolve the other URLs against this one"},
    END,
};

static const struct wb_option robots_options[] = {
    {"agent", 0, WB_OPTION_TEXT, "NAME", "the crawler that asks: its name or its whole User-Agent (default webbase)"},
    END,
};

static const struct wb_option web_options[] = {
    {"listen", 0, WB_OPTION_TEXT, "ADDR:PORT", "where to listen (default 127.0.0.1:0, a free port that only this "
                                               "machine can reach)"},
    {"seed", 0, WB_OPTION_TEXT, "N", "which web to play: the same number gives the same bytes (default 1)"},
    {"sites", 0, WB_OPTION_NUMBER, "N", "number of sites (default 100)"},
    {"pages", 0, WB_OPTION_NUMBER, "N", "approximate number of pages of all sites together (default 2000)"},
    {"speed", 0, WB_OPTION_TEXT, "X", "seconds that pass in the synthetic web for each real one; with 0 nothing ever "
                                      "changes (default 0)"},
    {"page-bytes", 0, WB_OPTION_NUMBER, "N", "approximate size of a page (default 4096)"},
    {"latency", 0, WB_OPTION_TEXT, "MS", "wait this long before each response (default 0)"},
    {"hostile", 0, WB_OPTION_FLAG, NULL, "add errors, slow and dying connections, traps, decompression bombs, and "
                                         "responses that are not HTTP"},
    {"raw", 0, WB_OPTION_DIR, "DIR", "also serve the files DIR/NAME.response byte for byte; /raw/ lists them"},
    END,
};

static const struct wb_option extract_options[] = {
    {"url", 0, WB_OPTION_TEXT, "URL", "the URL of the page; links are resolved against it"},
    {"type", 0, WB_OPTION_TEXT, "TYPE", "its media type, with or without a charset (default by the file's name, or "
                                        "else by its bytes)"},
    {"charset", 0, WB_OPTION_TEXT, "CHARSET", "the encoding that the server named"},
    END,
};

static const struct wb_option help_options[] = {
    {"man", 0, WB_OPTION_FLAG, NULL, "print the man page"},
    {"completion", 0, WB_OPTION_FLAG, NULL, "print the completion script for bash"},
    END,
};

static const struct wb_option no_options[] = {END};

/* ---- commands ---------------------------------------------------------------------------------- */

const struct wb_command wb_commands[] = {
    {"init", "[OPTION...]", "create an empty repository",
     "Creates a repository in DIR. import and crawl also create one if there is none; use init\n"
     "to choose the organisation.\n"
     "\n"
     "The organisation log appends pages to segments in the order they arrive. This version\n"
     "knows the names hash, hashed-log and batch, but cannot create such repositories yet.",
     init_options, 0, 0, wb_cmd_init},

    {"import", "FILE... | --dir DIR --url BASE", "import web archives or a tree of files",
     "Stores every response and resource record of the archives, whatever its status and type.\n"
     "A newer fetch of a page replaces an older one, never the other way round. FILE is a WARC\n"
     "(0.17 to 1.1) or ARC 1.0 archive, uncompressed, gzip'd or zstd'd; webbase finds out from\n"
     "the content of the file.\n"
     "\n"
     "A damaged record is reported with its offset in the file, and the import continues with\n"
     "the next record. A body that is longer than --max-bytes is cut, marked as truncated and\n"
     "reported; an import uses up to five times that much memory. If a file cannot be read, or\n"
     "is not an archive, the other files are still imported, and the exit status is 1. SIGINT\n"
     "and SIGTERM end the import cleanly: what was read so far is kept.\n"
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
     "  webbase import --dir /usr/share/doc/python3.11/html --url https://docs.python.org/3.11/",
     import_options, 0, WB_ARGS_ANY, wb_cmd_import},

    {"crawl", "URL... | --seeds FILE", "copy sites politely into the repository",
     "Fetches the seeds and the pages they link to, within --scope. A site gets one request at\n"
     "a time, at least --delay seconds apart; robots.txt, nofollow, Retry-After and\n"
     "Crawl-delay are respected. A site that answers 429 or 503, or does not answer, is left\n"
     "alone for some seconds, and longer after each further failure; if it would have to wait\n"
     "for minutes, it is left for the next crawl.\n"
     "\n"
     "A crawl can be killed at any moment. If it was killed or stopped, or has reached a\n"
     "limit, the next crawl continues where it was. If it has finished, the next crawl visits\n"
     "every page again, with conditional requests, so that unchanged pages cost little.\n"
     "Without seeds it continues with everything that is unfinished.\n"
     "\n"
     "A line of --seeds is a URL, followed by settings of its site: delay=SECONDS,\n"
     "budget=PAGES, priority=N (higher ones come first), class=NAME. A line 'class NAME\n"
     "delay=...' defines a class of sites. The class 'small' is predefined: a delay of 20\n"
     "seconds, after all other sites. For 'generate' and 'run' a class may also have fetches=N\n"
     "(how many fetches of a cycle the class gets) and min=10m max=1d (limits of the time\n"
     "between two visits to a page).\n"
     "\n"
     "With --json every fetch is one line. Its result is stored, unchanged, redirect,\n"
     "duplicate (stored, but another page has the same bytes), truncated (stored up to a\n"
     "limit), gone, robots, fresh, trap:KIND or error:KIND; or rules or sitemap for responses\n"
     "that are not pages. A line is printed once what it says is durable.\n"
     "\n"
     "  webbase crawl https://example.org/ --max-pages 1000\n"
     "  webbase crawl --seeds sites.txt --scope domain --max-time 6h",
     crawl_options, 0, WB_ARGS_ANY, wb_cmd_crawl},

    {"webdb", "page URL | pages | exists MD5 | links | sites | count | check | import | export",
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
     "  import      load a graph (--vertices, --edges; Common Crawl's format) or rows (--pages,\n"
     "              --links); the files may be gzip'd\n"
     "  export      write the graph of pages, or of --hosts, to --vertices and --edges\n"
     "\n"
     "A link belongs to a content, so pages with the same bytes share their links. Unknown\n"
     "times are null. score was set, or follows from the links to the page; change_rate is in\n"
     "changes per day; lifetime and lifetime_left are in days; result is the outcome of the last\n"
     "request. near is the page that this one is a near duplicate of: the first one, in the\n"
     "order of URLs, whose text has nearly the same fingerprint (simhash). It is null for that\n"
     "first page, and for a page that no other is similar to.\n"
     "\n"
     "flags: wanted (a seed, a hint, a push or a followed link leads there), gone, pushed,\n"
     "pushed-gone, barred (taken down), blocked (by robots.txt), scored, loaded (from a\n"
     "graph).\n"
     "\n"
     "  webbase webdb page https://example.org/\n"
     "  webbase webdb pages --md5 900150983cd24fb0d6963f7d28e17f72\n"
     "  webbase webdb links --to https://example.org/ --tsv",
     webdb_options, 1, 2, wb_cmd_webdb},

    {"update", "[OPTION...]", "merge what crawls and imports have found into webdb",
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
     update_options, 0, 0, wb_cmd_update},

    {"generate", "[OPTION...]", "list the pages to fetch next",
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
     generate_options, 0, 0, wb_cmd_generate},

    {"push", "FILE|-", "announce pages that are new, changed or gone",
     "A line of FILE is a URL that is new or has changed (also 'new URL' or 'changed URL'), or\n"
     "'gone URL' for one that is gone; # starts a comment. FILE may also be one JSON object:\n"
     "{\"urlList\": [...]}, as in IndexNow, or {\"changed\": [...], \"gone\": [...]}. - is standard\n"
     "input.\n"
     "\n"
     "The next cycle fetches these pages before all others. A page that is announced as gone\n"
     "is removed if it really is gone. Lines that are not http or https URLs are reported and\n"
     "left out.\n"
     "\n"
     "  echo https://example.org/news | webbase push -",
     no_options, 1, 1, wb_cmd_push},

    {"expunge", "[URL | HOST[:PORT] [--allow]]", "remove pages that are gone, or on request",
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
     "The bytes stay on disk until the next compact. With --json each removed page is one\n"
     "line.\n"
     "\n"
     "  webbase expunge https://example.org/private.html && webbase compact",
     expunge_options, 0, 1, wb_cmd_expunge},

    {"run", "[URL... | --seeds FILE] [OPTION...]", "crawl forever, and visit pages again as they change",
     "Repeats a cycle: generate, crawl, update, expunge, swap (take a snapshot of the store\n"
     "and drop the pages that were replaced), compact. A cycle fetches at most --budget pages,\n"
     "and starts --every so often, or as soon as the last one has ended. No more pages of a\n"
     "site are listed than it can be asked for within --every. Seeds that were never fetched\n"
     "are crawled at the start of the first cycle, within its budget.\n"
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
     run_options, 0, WB_ARGS_ANY, wb_cmd_run},

    {"why", "URL | HOST", "say why a page or a site is, or is not, fetched",
     "Names what decides: a line of robots.txt, the time until the site's next request, a\n"
     "back-off, a budget, a guard against traps, an error, or that nothing leads to the page.\n"
     "verdict is fetched, waiting, blocked or unknown. It works while a crawl is running.\n"
     "\n"
     "  webbase why https://example.org/private/\n"
     "  webbase why example.org",
     why_options, 1, 1, wb_cmd_why},

    {"export", "--warc FILE [OPTION...]", "write pages to a web archive",
     "Writes the latest version of the selected pages as WARC 1.1, in the order in which the\n"
     "repository stores them. Without selecting options it writes all pages. FILE appears when\n"
     "everything is written.\n"
     "\n"
     "  webbase export --warc all.warc.gz\n"
     "  webbase export --warc html.warc.zst --suffix edu --type html --since 2026-01-01",
     export_options, 0, 0, wb_cmd_export},

    {"get", "URL|ID [--body | --headers | --record]", "print a page",
     "Prints the latest version of a page. Every spelling of its URL with the same normal form\n"
     "finds it. ID is the page id, 32 hexadecimal digits, which --json and 'webbase url' show.\n"
     "With --json it prints everything about the page except the body.",
     get_options, 1, 1, wb_cmd_get},

    {"stat", "", "count pages, sites and bytes",
     "bytes_pages is the total size of the bodies of live pages, bytes_stored the size of the\n"
     "repository on disk, and bytes_dead what compact could free. webdb says how much is known\n"
     "about pages and links, unmerged how much update would merge, and cycle what run is doing\n"
     "or where it stopped. It works while other commands are running.",
     no_options, 0, 0, wb_cmd_stat},

    {"verify", "", "read and check everything",
     "Checks every block, record and catalog entry, the journal, the tables of webdb and the\n"
     "state of the cycle against their checksums and against each other. The exit status is 1\n"
     "if anything is damaged. What a crash left behind is not damage; it is reported as a\n"
     "note.",
     no_options, 0, 0, wb_cmd_verify},

    {"compact", "", "free the space of replaced and removed pages",
     "Rewrites segments that contain dead pages. Other processes can read and write meanwhile;\n"
     "segments in use are left for another time.\n"
     "\n"
     "Damage does not stop it: a damaged part is dropped if no page needs it, and otherwise\n"
     "kept as it is. Both are reported with file and offset. The exit status is 1 if damage\n"
     "remains; 'webbase verify' shows all of it.",
     no_options, 0, 0, wb_cmd_compact},

    {"url", "[--base URL] URL...", "show how a URL is read",
     "Prints for each URL its serialisation according to the WHATWG standard, the normal form\n"
     "that names the page, the page id, the site, the SURT and the registrable domain. - reads\n"
     "URLs from standard input, one per line. The exit status is 1 if one of them is not a URL.\n"
     "It needs no repository.",
     url_options, 1, WB_ARGS_ANY, wb_cmd_url},

    {"robots", "FILE [--agent NAME] URL...", "show how a robots.txt is read",
     "Prints for each URL whether the robots.txt in FILE allows it, and which line decides. If\n"
     "FILE is -, it is read from standard input; if a URL is -, URLs are read from there, one\n"
     "a line. Without a URL it prints the crawl delay and the sitemaps. The exit status does\n"
     "not depend on the decision; it is 1 if FILE cannot be read. It needs no repository and\n"
     "fetches nothing.\n"
     "\n"
     "  webbase robots robots.txt --agent examplebot https://example.org/private/",
     robots_options, 1, WB_ARGS_ANY, wb_cmd_robots},

    {"web", "[OPTION...]", "serve a synthetic web to crawl",
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
     web_options, 0, 0, wb_cmd_web},

    {"extract", "[--url URL] FILE...", "show what is found in a page",
     "Prints for each FILE, or for standard input if it is -: the encoding, title, language,\n"
     "dates, author and type, its instructions to robots, its links as written and resolved,\n"
     "the visible text, the main text (without navigation, comments and the like), and the\n"
     "fingerprint that finds near duplicates. It reads HTML, XML, feeds, sitemaps and plain\n"
     "text, and needs no repository.\n"
     "\n"
     "  webbase extract --url https://example.org/ index.html",
     extract_options, 1, WB_ARGS_ANY, wb_cmd_extract},

    {"help", "[COMMAND]", "show how webbase, or a command, is used",
     "Prints the same as --help, or the man page, or the completion script for bash.",
     help_options, 0, 1, wb_cmd_help},

    {NULL, NULL, NULL, NULL, NULL, 0, 0, NULL},
};

const struct wb_command *wb_command_find(const char *name)
{
    for (const struct wb_command *c = wb_commands; c->name; c++)
        if (strcmp(c->name, name) == 0)
            return c;
    return NULL;
}
