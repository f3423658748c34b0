/*
 * commands.c - the table: every command with its options and what is said about
 * it. It holds words only; what a command does is in its cmd_*.c.
 */
#include "cli/commands.h"

#include <string.h>

#define END {NULL, 0, WB_OPTION_FLAG, NULL, NULL}

const struct wb_option wb_common_options[] = {
    {"repository", 'r', WB_OPTION_DIR, "DIR", "the repository; otherwise $WEBBASE_REPO, otherwise ./webbase-data"},
    {"json", 0, WB_OPTION_FLAG, NULL, "print one JSON object a line"},
    {"help", 'h', WB_OPTION_FLAG, NULL, "say how the command is used"},
    {"version", 'V', WB_OPTION_FLAG, NULL, "print the version"},
    END,
};

static const struct wb_option init_options[] = {
    {"organisation", 0, WB_OPTION_CHOICE, "log|hash|hashed-log", "how pages lie on disk: log unless told"},
    {"update", 0, WB_OPTION_CHOICE, "incremental|batch", "whether new pages are seen at once, or a batch at a time"},
    END,
};

static const struct wb_option import_options[] = {
    {"dir", 0, WB_OPTION_DIR, "DIR", "import the files under DIR as pages of a site"},
    {"url", 0, WB_OPTION_TEXT, "BASE", "with --dir: the URL that DIR stands for"},
    {"max-bytes", 0, WB_OPTION_NUMBER, "N", "keep at most N bytes of a body, and mark what was cut as truncated (50331648)"},
    {"no-journal", 0, WB_OPTION_FLAG, NULL, "do not tell the web database of the pages and their links: faster, and they stay unknown to it"},
    END,
};

static const struct wb_option export_options[] = {
    {"warc", 0, WB_OPTION_FILE, "FILE", "write there: .warc, .warc.gz or .warc.zst; - is standard output, plain"},
    {"site", 0, WB_OPTION_TEXT, "HOST", "only pages of exactly this host, with its port where that is not the default"},
    {"suffix", 0, WB_OPTION_TEXT, "DOMAIN", "only pages of hosts that end in these labels, such as edu or example.org"},
    {"since", 0, WB_OPTION_TIME, "TIME", "only pages fetched then or later: RFC 3339, or a date"},
    {"until", 0, WB_OPTION_TIME, "TIME", "only pages fetched before"},
    {"type", 0, WB_OPTION_TEXT, "TYPE", "only pages of this media type; html means HTML and XHTML"},
    {"force", 0, WB_OPTION_FLAG, NULL, "replace FILE where it is there already"},
    END,
};

static const struct wb_option get_options[] = {
    {"body", 0, WB_OPTION_FLAG, NULL, "the body, bytes as stored (this is the default)"},
    {"headers", 0, WB_OPTION_FLAG, NULL, "status line and headers as received"},
    {"record", 0, WB_OPTION_FLAG, NULL, "the page as a WARC record"},
    END,
};

/* What steers crawling: the options of crawl, which run takes, too. */
#define CRAWL_OPTIONS \
    {"seeds", 0, WB_OPTION_FILE, "FILE", "more seeds, a line each, with settings of their sites; - is standard input"}, \
    {"scope", 0, WB_OPTION_CHOICE, "site|domain|any", "where links may lead: the seeds' sites (the default), their domains, anywhere"}, \
    {"max-pages", 0, WB_OPTION_NUMBER, "N", "end after N pages were stored"}, \
    {"max-depth", 0, WB_OPTION_COUNT, "N", "follow links up to N away from a seed"}, \
    {"max-time", 0, WB_OPTION_DURATION, "S", "end after S seconds (or 10m, 6h)"}, \
    {"delay", 0, WB_OPTION_DURATION, "S", "seconds between two requests to a site (5)"}, \
    {"max-crawl-delay", 0, WB_OPTION_DURATION, "S", "the most that a Crawl-delay of robots.txt is given (60)"}, \
    {"processes", 0, WB_OPTION_NUMBER, "N", "crawler processes (one a processor)"}, \
    {"sites", 0, WB_OPTION_NUMBER, "N", "sites at once in a process (1000)"}, \
    {"connections", 0, WB_OPTION_NUMBER, "N", "requests at once to a site that has no delay (1)"}, \
    {"per-address", 0, WB_OPTION_NUMBER, "N", "requests at once to one IP address (8)"}, \
    {"user-agent", 0, WB_OPTION_TEXT, "S", "what the crawler calls itself; robots.txt goes by the part before / or a blank"}, \
    {"allow-private", 0, WB_OPTION_FLAG, NULL, "also contact loopback and private addresses"}, \
    {"resolve", 0, WB_OPTION_LIST, "HOST:PORT:ADDR", "this is where HOST is; may be given several times; HOST may be * or *.suffix"}, \
    {"dns", 0, WB_OPTION_TEXT, "ADDR:PORT", "ask these name servers, comma-separated, not the system's"}, \
    {"dns-rate", 0, WB_OPTION_NUMBER, "N", "names asked for in a second (100)"}, \
    {"dispenser", 0, WB_OPTION_TEXT, "URL", "keep the list of sites in PostgreSQL (postgres://...), for crawlers on several machines; remembered (sqlite: back to the repository's own)"}, \
    {"fresh", 0, WB_OPTION_DURATION, "S", "leave pages alone that were fetched within that time"}, \
    {"timeout", 0, WB_OPTION_DURATION, "S", "for one answer (30)"}, \
    {"max-bytes", 0, WB_OPTION_NUMBER, "N", "keep at most N bytes of a page, and mark what was cut as truncated (16777216)"}, \
    {"site-budget", 0, WB_OPTION_NUMBER, "N", "pages of one site in a visit (1000000)"}, \
    {"lifetime", 0, WB_OPTION_NUMBER, "DAYS", "how long a page is kept without being seen again (90)"}, \
    {"root-first", 0, WB_OPTION_FLAG, NULL, "no deep entry: enter a site at its root, at other seeds only where the root cannot be had"}, \
    {"no-sitemaps", 0, WB_OPTION_FLAG, NULL, "ignore sitemaps and feeds"}, \
    {"ca-file", 0, WB_OPTION_FILE, "FILE", "certificates to trust, not the system's"}, \
    {"log", 0, WB_OPTION_FILE, "FILE", "append an event for every fetch to FILE, as --json prints them"},

static const struct wb_option crawl_options[] = {
    CRAWL_OPTIONS
    END,
};

#define DISPENSER_OPTION {"dispenser", 0, WB_OPTION_TEXT, "URL", "another one than the last crawl was given"}
#define MEMORY_OPTION {"memory", 0, WB_OPTION_NUMBER, "BYTES", "for sorting and merging (268435456)"}

static const struct wb_option webdb_options[] = {
    {"by", 0, WB_OPTION_CHOICE, "url|md5", "pages: in order of URLs (the default), or those with a stored page in order of its MD5"},
    {"md5", 0, WB_OPTION_TEXT, "MD5", "pages: only those whose stored content has this MD5"},
    {"site", 0, WB_OPTION_TEXT, "HOST", "pages: only those of exactly this host, with its port where that is not the default"},
    {"to", 0, WB_OPTION_TEXT, "URL", "links: only those that lead there"},
    {"from", 0, WB_OPTION_TEXT, "MD5", "links: only those of the content with this MD5"},
    {"tsv", 0, WB_OPTION_FLAG, NULL, "tab-separated, with a header line"},
    {"vertices", 0, WB_OPTION_FILE, "FILE", "import, export: the vertices of a graph, a number and a URL or reversed host name a line"},
    {"edges", 0, WB_OPTION_FILE, "FILE", "import, export: its edges, two numbers a line"},
    {"hosts", 0, WB_OPTION_FLAG, NULL, "export: the graph of hosts, not of pages"},
    {"force", 0, WB_OPTION_FLAG, NULL, "export: replace files that are there already"},
    {"pages", 0, WB_OPTION_FILE, "FILE", "import: rows of pages, as 'webdb pages' writes them with --json or --tsv"},
    {"links", 0, WB_OPTION_FILE, "FILE", "import: rows of links, as 'webdb links' writes them"},
    MEMORY_OPTION,
    END,
};

static const struct wb_option update_options[] = {
    DISPENSER_OPTION,
    MEMORY_OPTION,
    {"rebuild", 0, WB_OPTION_FLAG, NULL, "make webdb anew, where it is damaged"},
    END,
};

#define BUDGET_OPTION {"budget", 0, WB_OPTION_NUMBER, "N", "pages at most that are asked for in a cycle (no limit)"}
#define REFRESH_OPTIONS \
    {"policy", 0, WB_OPTION_CHOICE, "optimal|uniform|proportional|adaptive", "how often pages are looked at again: optimal unless told"}, \
    {"min-interval", 0, WB_OPTION_DURATION, "S", "no page is asked for sooner after its last visit (or 10m, 6h, 1d)"}, \
    {"max-interval", 0, WB_OPTION_DURATION, "S", "every page that is there is asked for again after this"}

static const struct wb_option generate_options[] = {
    BUDGET_OPTION,
    REFRESH_OPTIONS,
    {"seeds", 0, WB_OPTION_FILE, "FILE", "take in its sites and classes first"},
    {"scope", 0, WB_OPTION_CHOICE, "site|domain|any", "pages of which sites: those that crawls were told of (the default), of their domains, of any"},
    DISPENSER_OPTION,
    END,
};

static const struct wb_option expunge_options[] = {
    {"allow", 0, WB_OPTION_FLAG, NULL, "lift it instead: what was taken down may be fetched and imported again"},
    DISPENSER_OPTION,
    MEMORY_OPTION,
    END,
};

static const struct wb_option run_options[] = {
    CRAWL_OPTIONS
    {"cycles", 0, WB_OPTION_NUMBER, "N", "end after N cycles (goes on for ever)"},
    {"every", 0, WB_OPTION_DURATION, "S", "from the begin of a cycle to that of the next, such as 30s, 6h or 1d (0: at once; without --cycles and --budget 1d)"},
    BUDGET_OPTION,
    REFRESH_OPTIONS,
    MEMORY_OPTION,
    END,
};

static const struct wb_option why_options[] = {
    {"dispenser", 0, WB_OPTION_TEXT, "URL", "another one than the last crawl was given"},
    {"user-agent", 0, WB_OPTION_TEXT, "S", "as given to crawl: robots.txt is read for it"},
    END,
};

static const struct wb_option url_options[] = {
    {"base", 0, WB_OPTION_TEXT, "URL", "resolve the others against this one"},
    END,
};

static const struct wb_option robots_options[] = {
    {"agent", 0, WB_OPTION_TEXT, "NAME", "the crawler whose rules are asked for: a token or a whole User-Agent; ours unless told"},
    END,
};

static const struct wb_option web_options[] = {
    {"listen", 0, WB_OPTION_TEXT, "ADDR:PORT", "where to listen (127.0.0.1:0: a free port of this machine alone)"},
    {"seed", 0, WB_OPTION_TEXT, "N", "which web: the same number gives the same bytes (1)"},
    {"sites", 0, WB_OPTION_NUMBER, "N", "how many sites (100)"},
    {"pages", 0, WB_OPTION_NUMBER, "N", "how many pages they have together, about (2000)"},
    {"speed", 0, WB_OPTION_TEXT, "X", "seconds of the web that pass in a second; 0: nothing ever changes (0)"},
    {"page-bytes", 0, WB_OPTION_NUMBER, "N", "how long a page is, about (4096)"},
    {"latency", 0, WB_OPTION_TEXT, "MS", "wait so long before each answer (0)"},
    {"hostile", 0, WB_OPTION_FLAG, NULL, "with errors, slow and dying connections, traps, bombs, bytes that are not HTTP"},
    {"raw", 0, WB_OPTION_DIR, "DIR", "serve the files DIR/NAME.response byte for byte as well; /raw/ lists them"},
    END,
};

static const struct wb_option extract_options[] = {
    {"url", 0, WB_OPTION_TEXT, "URL", "where the page is from: links are resolved against it"},
    {"type", 0, WB_OPTION_TEXT, "TYPE", "its media type, with or without a charset; otherwise by the file's name, otherwise by its bytes"},
    {"charset", 0, WB_OPTION_TEXT, "CHARSET", "what the server said of its encoding"},
    END,
};

static const struct wb_option help_options[] = {
    {"man", 0, WB_OPTION_FLAG, NULL, "print the man page"},
    {"completion", 0, WB_OPTION_FLAG, NULL, "print the completion for bash"},
    END,
};

static const struct wb_option no_options[] = {END};

const struct wb_command wb_commands[] = {
    {"init", "[OPTION...]", "make an empty repository",
     "Makes a repository in DIR. import does so too where there is none; init is for\n"
     "choosing the organisation.\n"
     "\n"
     "log appends pages to segments in the order they arrive. hash and hashed-log, and\n"
     "batch updates, are names that this version knows and does not make.",
     init_options, 0, 0, wb_cmd_init},

    {"import", "FILE... | --dir DIR --url BASE", "take in web archives, or a tree of files",
     "Stores every response and resource record of the archives, whatever its status\n"
     "and type. A newer fetch of a page replaces an older one, never the other way\n"
     "round. FILE is a WARC (0.17 to 1.1) or ARC 1.0 archive, plain, gzip'd or zstd'd;\n"
     "its content says which.\n"
     "\n"
     "A damaged record costs one message with its place in the file; the records after\n"
     "it are read. A body longer than --max-bytes is kept up to there, marked as\n"
     "truncated and told; an import takes about five times that much memory at most.\n"
     "A file that cannot be read, or is no archive, makes the exit status\n"
     "1, after the other files. SIGINT and SIGTERM end the import cleanly: what was\n"
     "read is kept.\n"
     "\n"
     "What was taken down with 'webbase expunge' is kept out and counted. A fetch time more\n"
     "than a day ahead of the clock is an error, and replaced by the time of import.\n"
     "\n"
     "Pages of http and https URLs, and their links, are journaled as a crawl's are:\n"
     "after the next update the web database knows them. Answers that are no page are told as\n"
     "what they are: moved, gone, refused.\n"
     "\n"
     "With --dir each file below DIR is a page: its URL is BASE and its path,\n"
     "index.html is its folder's page, the media type goes by the name, the time is\n"
     "that of the last change. Symbolic links are not followed.\n"
     "\n"
     "  webbase import crawl-1.warc.gz crawl-2.warc.gz\n"
     "  webbase import --dir /usr/share/doc/python3.11/html --url https://docs.python.org/3.11/",
     import_options, 0, WB_ARGS_ANY, wb_cmd_import},

    {"crawl", "URL... | --seeds FILE", "copy sites politely into the repository",
     "Fetches the seeds and what they link to, within --scope, into the repository. One\n"
     "request at a time goes to a site, --delay seconds apart; robots.txt, nofollow,\n"
     "Retry-After and Crawl-delay are kept. A site that says 429 or 503, or does not\n"
     "answer, is left alone for seconds, then for longer and longer; one that must wait\n"
     "for minutes is left for the next run.\n"
     "\n"
     "The crawl can be killed at any moment. Run again after it was killed, stopped or\n"
     "reached a limit, it goes on where it was; run again after it finished, it asks for\n"
     "every page anew, with validators, so that unchanged pages cost little. Without\n"
     "seeds it goes on with everything that is unfinished.\n"
     "\n"
     "A line of --seeds is a URL and settings of its site: delay=SECONDS, budget=PAGES,\n"
     "priority=N (higher ones first), class=NAME. A line 'class NAME delay=...' defines a\n"
     "class; 'small' is there already: 20 seconds, after the others. For 'generate' and 'run' a\n"
     "class may also have fetches=N (of a cycle, for the class) and min=10m max=1d (between\n"
     "two visits to a page).\n"
     "\n"
     "With --json every fetch is a line: result is stored, unchanged, redirect, duplicate\n"
     "(stored; the bytes are those of another page), truncated (stored as far as limits\n"
     "allow), gone, robots, fresh, trap:KIND or error:KIND; rules and sitemap are answers\n"
     "that are no pages. Lines come when what they tell is durable.\n"
     "\n"
     "  webbase crawl https://example.org/ --max-pages 1000\n"
     "  webbase crawl --seeds sites.txt --scope domain --max-time 6h",
     crawl_options, 0, WB_ARGS_ANY, wb_cmd_crawl},

    {"webdb", "page URL | pages | exists MD5 | links | sites | count | check | import | export", "show what is known of pages and links",
     "webdb knows every URL that was ever heard of and every link of a stored page, as of the\n"
     "last update.\n"
     "\n"
     "  page URL   everything about one page; exit status 1 where nobody heard of it\n"
     "  pages      all pages in the order of URLs, the pages of a site together\n"
     "  exists MD5 exit status 0 if a stored page has the content with this MD5, 1 if none has\n"
     "  links      links: the MD5 of the content that has it, where it leads, its words\n"
     "  sites      sites with their numbers of pages, of visits and of changes seen\n"
     "  count      how many pages, pages with a stored content, links\n"
     "  check      read everything and compare the tables; exit status 1 where they are damaged\n"
     "  import     take in a graph (--vertices and --edges, as Common Crawl has them), or rows\n"
     "             (--pages, --links); files may be gzip'd\n"
     "  export     write the graph of pages, or of --hosts, to --vertices and --edges\n"
     "\n"
     "A link comes from a content: pages with the same bytes have their links once. Times\n"
     "that never were are null. score is set or follows from the links that lead to a page,\n"
     "change_rate is in changes a day, lifetime and lifetime_left in days; result is the\n"
     "outcome of the last request. near is the page that this one is a near duplicate of: the\n"
     "first in order of URLs whose text has nearly the same fingerprint (simhash); null for a\n"
     "page that is like no other, and for the first page of a family. flags: wanted (a seed, a hint, a push or a link that is\n"
     "followed leads there), gone, pushed, pushed-gone, barred (taken down), blocked (by\n"
     "robots.txt), scored, loaded (from a graph).\n"
     "\n"
     "  webbase webdb page https://example.org/\n"
     "  webbase webdb pages --md5 900150983cd24fb0d6963f7d28e17f72\n"
     "  webbase webdb links --to https://example.org/ --tsv",
     webdb_options, 1, 2, wb_cmd_webdb},

    {"update", "[OPTION...]", "merge what crawls and imports told into webdb",
     "Sorts and merges the journal into the next edition of webdb, which appears whole or\n"
     "not at all; readers keep the one they have. Then removes the logs of the journal that\n"
     "neither webdb nor an unfinished crawl needs. Killed at any moment, it leaves the old\n"
     "edition, and the next update does the work again. One update at a time: another\n"
     "one is refused. Damage in the journal costs the records concerned and is told.\n"
     "Crawls may go on meanwhile.\n"
     "\n"
     "A webdb that is damaged ('webdb check' says so) is refused and left as it is. --rebuild\n"
     "makes it anew: of its rows that can be read, of the pages in the store, whose links\n"
     "are read again, and of the journal. Histories of pages whose rows are lost begin anew.",
     update_options, 0, 0, wb_cmd_update},

    {"generate", "[OPTION...]", "list what is fetched next",
     "Chooses among the pages of webdb and fills the dispenser: announced pages first, then\n"
     "pages whose lifetime ends within a day, then everything else by what a visit is worth,\n"
     "pages that were never fetched and pages that may have changed in one order. At most\n"
     "--budget of them; the next 'webbase crawl' without seeds fetches them.\n"
     "\n"
     "Out of scope are sites that no crawl was told of, unless --scope says otherwise. Left\n"
     "out are pages that were taken down, that robots.txt forbade in the last week, that were\n"
     "gone when they were looked at, or that are of a family of URLs without end. Of a site\n"
     "that could not be reached the last time a few are listed. Of near duplicates one is\n"
     "visited as often as it is worth, the others seldom: once a week at most. A class of sites ('class NAME\n"
     "fetches=N delay=S min=S max=S' in --seeds) has fetches and intervals of its own.\n"
     "\n"
     "optimal maximises how many pages, weighted by score, are as they are on the web;\n"
     "uniform visits every page equally often, proportional as often as it changes, adaptive\n"
     "keeps an interval a page, shorter after a change and longer after none.\n"
     "\n"
     "  webbase update && webbase generate --budget 10000 && webbase crawl",
     generate_options, 0, 0, wb_cmd_generate},

    {"push", "FILE|-", "announce pages that are new, changed or gone",
     "A line of FILE is a URL that is new or changed (also 'new URL', 'changed URL'), or\n"
     "'gone URL' for one that went; # begins a comment. Or FILE is one JSON object:\n"
     "{\"urlList\": [...]} as IndexNow has it, or {\"changed\": [...], \"gone\": [...]}. - is\n"
     "standard input. The next cycle asks for these pages before all others; one that is\n"
     "said to be gone is removed when it is. Lines that are no http or https URL are told\n"
     "and left out.\n"
     "\n"
     "  echo https://example.org/news | webbase push -",
     no_options, 1, 1, wb_cmd_push},

    {"expunge", "[URL | HOST[:PORT] [--allow]]", "remove pages that are gone, or on request",
     "Without an argument: removes pages that answered 404 or 410, and pages whose lifetime\n"
     "has ended, that were asked for because of that, and that did not come although their\n"
     "site could be visited. What could not be verified stays for a while.\n"
     "\n"
     "With a URL, in any spelling, or a host: removes that page, or all pages of exactly that\n"
     "site, at once, and bars it. What is barred is neither fetched nor imported, not by a\n"
     "crawl that is running either, until --allow lifts it. It need not be known yet: a URL\n"
     "can be barred in advance, and a host is barred with all URLs that are found later.\n"
     "Damaged pages can be taken down like others. Links that lead to them stay.\n"
     "\n"
     "--allow HOST lifts the bar on the host and those on its pages. --allow URL lets that\n"
     "page in, also where its host is barred; the rest of the host stays barred. Exit status\n"
     "1 where nothing of that name was taken down.\n"
     "\n"
     "The bytes are gone from disk after the next compact. With --json each removed page is a\n"
     "line.\n"
     "\n"
     "  webbase expunge https://example.org/private.html && webbase compact",
     expunge_options, 0, 1, wb_cmd_expunge},

    {"run", "[URL... | --seeds FILE] [OPTION...]", "crawl for ever, looking again at what changes",
     "Goes around: generate, crawl, update, expunge, swap (the next snapshot of the store;\n"
     "replaced versions go), compact. A cycle asks for at most --budget pages and begins\n"
     "--every so often, or as soon as the one before has ended; of a site no more are listed\n"
     "than it can be asked for in --every. Seeds that were never asked for are crawled at the\n"
     "begin of the first cycle, within its budget.\n"
     "\n"
     "It can be killed at any moment: run again, it goes on with the step that it was in; that\n"
     "cycle counts as one of --cycles. SIGINT and SIGTERM end it cleanly. If somebody else\n"
     "runs update or compact meanwhile, it waits, or leaves that step out and says so. A step\n"
     "that fails for another reason (a full disk) is reported; with --cycles it ends the run,\n"
     "and the next run repeats it, otherwise it is done again after a while. One run at a time.\n"
     "'webbase stat' shows what it does. All options of crawl steer its crawls; limits such as\n"
     "--max-time are those of the crawl of one cycle. --seeds is read in every cycle and cannot be\n"
     "standard input.\n"
     "\n"
     "With --json each fetch is a line as in crawl, and each cycle ends with a line\n"
     "{\"event\":\"cycle\"}.\n"
     "\n"
     "  webbase run --seeds sites.txt --budget 50000 --every 1d\n"
     "  webbase run --cycles 1 --budget 1000",
     run_options, 0, WB_ARGS_ANY, wb_cmd_run},

    {"why", "URL | HOST", "say why a page or a site is, or is not, fetched",
     "Names what decides: the line of robots.txt, the clock of the site, a back-off, a\n"
     "budget, a guard against traps, an error, or that nothing ever led there. verdict is\n"
     "fetched, waiting, blocked or unknown. Can be asked while a crawl runs.\n"
     "\n"
     "  webbase why https://example.org/private/\n"
     "  webbase why example.org",
     why_options, 1, 1, wb_cmd_why},

    {"export", "--warc FILE [OPTION...]", "write pages to a web archive",
     "Writes the latest version of the selected pages as WARC 1.1, in the order they\n"
     "lie in the repository. Without options that select, all of them. FILE appears\n"
     "whole when everything is written, or not at all.\n"
     "\n"
     "  webbase export --warc all.warc.gz\n"
     "  webbase export --warc html.warc.zst --suffix edu --type html --since 2026-01-01",
     export_options, 0, 0, wb_cmd_export},

    {"get", "URL|ID [--body | --headers | --record]", "print a page",
     "Prints the latest version of the page of that URL; every spelling of a URL that\n"
     "has the same normal form finds it. ID is the page's id, 32 hexadecimal digits, as\n"
     "--json and 'webbase url' show it. With --json: everything that is known of it but\n"
     "the body.",
     get_options, 1, 1, wb_cmd_get},

    {"stat", "", "count pages, sites and bytes",
     "bytes_pages is the sum of the bodies of live pages, bytes_stored what the\n"
     "repository takes on disk, bytes_dead what compact could give back. webdb tells what is\n"
     "known of pages and links, unmerged what update would merge, cycle what run is doing or\n"
     "where it was. Can be asked while anything else works.",
     no_options, 0, 0, wb_cmd_stat},

    {"verify", "", "read and check everything",
     "Checks every block, record and catalog entry, the journal of crawls, the tables of webdb\n"
     "and the state of the cycle against checksums and against each other. Exit status 1\n"
     "where something is damaged. What a crash left behind is no damage, and is told as a\n"
     "note.",
     no_options, 0, 0, wb_cmd_verify},

    {"compact", "", "give back the space of replaced and removed pages",
     "Rewrites segments that hold dead pages. Other processes can read and write\n"
     "meanwhile; segments in use are left for another time.\n"
     "\n"
     "Damage does not stop it: a damaged part is dropped if no page needs it, and otherwise\n"
     "kept as it is. Either is told with file and offset. Exit status 1 where damage stays;\n"
     "'webbase verify' shows all of it.",
     no_options, 0, 0, wb_cmd_compact},

    {"url", "[--base URL] URL...", "show how a URL is read",
     "For each URL: its serialisation as the WHATWG standard has it, the normal form\n"
     "that names the page, the page id, the site, the SURT and the registrable domain.\n"
     "- stands for the lines of standard input. Exit status 1 where one is no URL.\n"
     "Needs no repository.",
     url_options, 1, WB_ARGS_ANY, wb_cmd_url},

    {"robots", "FILE [--agent NAME] URL...", "show how a robots.txt is read",
     "For each URL: whether the robots.txt in FILE allows it, and by which line. FILE -\n"
     "is standard input; URL - stands for the lines of standard input. Without a URL:\n"
     "the crawl delay and the sitemaps. The exit status does not tell the decision; it\n"
     "is 1 where FILE cannot be read. Needs no repository and fetches nothing.\n"
     "\n"
     "  webbase robots robots.txt --agent examplebot https://example.org/private/",
     robots_options, 1, WB_ARGS_ANY, wb_cmd_robots},

    {"web", "[OPTION...]", "serve a synthetic web to crawl",
     "Plays many sites on loopback: s1.localhost:PORT, s2.localhost:PORT and so on. They\n"
     "have robots.txt, sitemaps, second names, redirects, copies; with --speed, pages that\n"
     "change, appear and vanish. Everything is computed from --seed; nothing is stored.\n"
     "The first line says where it listens; / there links to all sites, and /_truth\n"
     "tells as JSON which pages there are, which of them can be reached and are allowed,\n"
     "and what was asked for when. Ends on SIGINT or SIGTERM. Needs no repository.\n"
     "\n"
     "  webbase web --listen 127.0.0.1:8080 --seed 7 --sites 1000 --pages 100000\n"
     "  webbase crawl http://127.0.0.1:8080/ --scope any --delay 0.1 --allow-private",
     web_options, 0, 0, wb_cmd_web},

    {"extract", "[--url URL] FILE...", "show what is seen in a page",
     "Of each FILE, or standard input for -: encoding, title, language, dates, author, type,\n"
     "what it says to robots, its links as written and resolved, the visible text, the main\n"
     "text without navigation, comments and the like, and the fingerprint by which near copies\n"
     "are known.\n"
     "HTML, XML, feeds, sitemaps and plain text. Needs no repository.\n"
     "\n"
     "  webbase extract --url https://example.org/ index.html",
     extract_options, 1, WB_ARGS_ANY, wb_cmd_extract},

    {"help", "[COMMAND]", "say how webbase, or a command, is used",
     "The same as --help. The man page and the shell completion come from here too.",
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
