/*
 * command_options.c - the options of every command, with the words of their help. In the help, "(default X)" is what
 * happens without the option.
 */
#include "cli/command_options.h"

#define END {NULL, 0, WB_OPTION_FLAG, NULL, NULL}

const struct wb_option wb_common_options[] = {
    {"repository", 'r', WB_OPTION_DIR, "DIR", "the repository (default $WEBBASE_REPO, or else ./webbase-data)"},
    {"json", 0, WB_OPTION_FLAG, NULL, "print JSON, one object per line"},
    {"help", 'h', WB_OPTION_FLAG, NULL, "show how the command is used"},
    {"version", 'V', WB_OPTION_FLAG, NULL, "print the version"},
    END,
};

/* ---- options that several commands take -------------------------------------------------------- */

#define MAX_LINKS_OPTION                                                                                               \
    {"max-links", 0, WB_OPTION_NUMBER, "N", "follow and record only the first N links of a page (default no limit)"}

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
    {"max-rate", 0, WB_OPTION_SIZE, "BYTES", "receive at most this many bytes per second, all processes together "     \
                                             "(500k, 2M)"},                                                            \
    {"site-budget", 0, WB_OPTION_NUMBER, "N", "pages stored of one site in one visit (default 1000000)"},              \
    {"lifetime", 0, WB_OPTION_NUMBER, "DAYS", "how long a page is kept without being seen again (default 90)"},        \
    {"root-first", 0, WB_OPTION_FLAG, NULL, "enter each site at its root page, and at other seeds only if the root "   \
                                            "cannot be fetched"},                                                      \
    {"no-sitemaps", 0, WB_OPTION_FLAG, NULL, "ignore sitemaps and feeds"},                                             \
    {"with", 0, WB_OPTION_LIST, "KIND,...", "also fetch what stored pages need to be displayed, wherever it is: "      \
                                            "images, styles, scripts, media; may be given several times"},             \
    {"class", 0, WB_OPTION_TEXT, "NAME", "work only for sites of this class, as the seeds say or said; links to "      \
                                         "others are recorded; 'default': sites without a class"},                     \
    {"types", 0, WB_OPTION_LIST, "TYPE,...", "store only pages of these media types, such as image/*,application/pdf; " \
                                             "HTML is still read for its links; may be given several times"},          \
    MAX_LINKS_OPTION,                                                                                                  \
    {"ca-file", 0, WB_OPTION_FILE, "FILE", "trust the certificates in FILE instead of the system's"},                  \
    {"log", 0, WB_OPTION_FILE, "FILE", "append an event for every fetch to FILE, in the format of --json"},

#define SNAPSHOT_OPTION {"snapshot", 0, WB_OPTION_TEXT, "N|NAME", "the state of this snapshot instead of the latest"}
#define DISPENSER_OPTION {"dispenser", 0, WB_OPTION_TEXT, "URL", "use this list of sites instead of the last crawl's"}
#define MEMORY_OPTION {"memory", 0, WB_OPTION_SIZE, "BYTES", "memory for sorting and merging (default 268435456)"}
#define BUDGET_OPTION {"budget", 0, WB_OPTION_NUMBER, "N", "fetch at most N pages in a cycle (default no limit)"}
#define REFRESH_OPTIONS                                                                                                \
    {"policy", 0, WB_OPTION_CHOICE, "optimal|uniform|proportional|adaptive", "how often pages are visited again "      \
                                                                             "(default optimal)"},                     \
    {"min-interval", 0, WB_OPTION_DURATION, "S", "never visit a page sooner than this after the last visit "           \
                                                 "(seconds, or 10m, 6h, 1d)"},                                         \
    {"max-interval", 0, WB_OPTION_DURATION, "S", "visit every existing page at least this often"}

/* The options of run, which `serve --run` takes as well: its --memory is the server's, too. */
#define RUN_OPTIONS                                                                                                    \
    CRAWL_OPTIONS                                                                                                      \
    {"cycles", 0, WB_OPTION_NUMBER, "N", "stop after N cycles (default never)"},                                       \
    {"every", 0, WB_OPTION_DURATION, "S", "time from the start of a cycle to the start of the next, such as 30s, 6h "  \
                                          "or 1d (default 1d; with --cycles or --budget 0, which means at once)"},     \
    BUDGET_OPTION, REFRESH_OPTIONS,

/* What selects pages by facts that every page has. */
#define SELECTION_OPTIONS                                                                                              \
    {"site", 0, WB_OPTION_LIST, "HOST", "only pages of exactly this host; give its port if that is not the default; "  \
                                        "may be given several times"},                                                 \
    {"sites", 0, WB_OPTION_FILE, "FILE", "only pages of the hosts in FILE, one per line"},                             \
    {"suffix", 0, WB_OPTION_LIST, "DOMAIN", "only pages of hosts below this domain, such as edu or example.org; may "  \
                                            "be given several times"},                                                 \
    {"since", 0, WB_OPTION_TIME, "TIME", "only pages fetched at this time or later; RFC 3339, or a date"},             \
    {"until", 0, WB_OPTION_TIME, "TIME", "only pages fetched before this time"},                                       \
    {"type", 0, WB_OPTION_TEXT, "TYPE", "only pages of this media type; html means HTML and XHTML"},                   \
    {"status", 0, WB_OPTION_TEXT, "STATUS", "only pages with this HTTP status, such as 404 or 4xx"},

/* ---- options of one command -------------------------------------------------------------------- */

/* What describes a new repository. */
#define DESIGN_OPTIONS                                                                                                 \
    {"design", 0, WB_OPTION_TEXT, "DESIGN", "how pages are stored: 'Incr[p,o]' or 'Batch[U(p,o),R(p,o)]' (default "    \
                                            "Incr[hash,log])"},                                                        \
    {"organisation", 0, WB_OPTION_CHOICE, "log|hash|hashed-log", "instead of --design: how a node lays out pages"},    \
    {"update", 0, WB_OPTION_CHOICE, "incremental|batch", "instead of --design: whether readers see new pages at "      \
                                                         "once, or a batch at a time"},                                \
    {"distribution", 0, WB_OPTION_CHOICE, "hash|uniform", "instead of --design: which node a page is put on"},         \
    {"nodes", 0, WB_OPTION_TEXT, "N|DIR,DIR,...", "N nodes inside the repository, or these directories (default 1)"},\
    {"update-nodes", 0, WB_OPTION_TEXT, "N|DIR,DIR,...", "the same for the update nodes of a batch design (default 1)"},

/* What reads pages that are no HTML. */
#define MODULE_OPTIONS                                                                                                 \
    {"module", 0, WB_OPTION_LIST, "FILE.so", "read pages of its types with this module; FILE.so=ARG gives it an "     \
                                             "argument (include/webbase/module.h)"},                                  \
    {"module-time", 0, WB_OPTION_DURATION, "S", "seconds that a module may take for a page (default 10)"},             \
    {"module-memory", 0, WB_OPTION_SIZE, "BYTES", "memory that a module may take (default 512M)"},                     \
    {"no-modules", 0, WB_OPTION_FLAG, NULL, "use none of the modules that the repository remembers"},

const struct wb_option wb_init_options[] = {
    DESIGN_OPTIONS
    {"history", 0, WB_OPTION_TEXT, "newest|all|N|DURATION", "which old versions of pages are kept (default newest)"},
    END,
};

const struct wb_option wb_cluster_options[] = {
    {"store", 0, WB_OPTION_TEXT, "URL", "init: where all machines bring what is to be safe: s3://BUCKET/PREFIX or "
                                        "file:///DIR; required"},
    {"shards", 0, WB_OPTION_NUMBER, "N", "init: into how many shards sites are divided, a power of two (default 64)"},
    {"copies", 0, WB_OPTION_NUMBER, "N", "init: on how many machines each shard is, the holder counted (default 1)"},
    {"lease", 0, WB_OPTION_DURATION, "DURATION",
     "init: how long a machine that is silent keeps its shards (default 5s)"},
    {"history", 0, WB_OPTION_TEXT, "newest|all|N|DURATION",
     "init: which old versions of pages are kept (default newest)"},
    END,
};

const struct wb_option wb_convert_options[] = {DESIGN_OPTIONS END};

const struct wb_option wb_backup_options[] = {
    {"follow", 0, WB_OPTION_FLAG, NULL, "go on until a signal: ship whatever is new"},
    {"every", 0, WB_OPTION_DURATION, "DURATION", "with --follow: how often (default: 5s)"},
    {"keep", 0, WB_OPTION_DURATION, "DURATION",
     "how long older states can be restored (default: 7d; 0: only the newest)"},
    {"take-over", 0, WB_OPTION_FLAG, NULL, "become the owner of the vault, instead of another copy of this repository"},
    {"list", 0, WB_OPTION_FLAG, NULL, "only print the states that can be restored, oldest first"},
    {"verify", 0, WB_OPTION_FLAG, NULL, "only read and check every object of the vault"},
    END,
};

const struct wb_option wb_restore_options[] = {
    {"at", 0, WB_OPTION_TIME, "TIME", "the newest state that is not later: RFC 3339, or a date, which means its "
                                      "midnight (UTC)"},
    END,
};

const struct wb_option wb_emulate_options[] = {
    {"rate", 0, WB_OPTION_RATE, "N", "add N pages per second, 0.5 for one in two seconds; required"},
    {"pages", 0, WB_OPTION_NUMBER, "N", "stop after N pages (default: all)"},
    END,
};

const struct wb_option wb_import_options[] = {
    {"dir", 0, WB_OPTION_DIR, "DIR", "import the files below DIR as the pages of a site"},
    {"url", 0, WB_OPTION_TEXT, "BASE", "with --dir: the URL of DIR"},
    {"max-bytes", 0, WB_OPTION_NUMBER, "N", "keep at most N bytes of a body and mark longer ones as truncated "
                                            "(default 50331648)"},
    MAX_LINKS_OPTION,
    {"no-journal", 0, WB_OPTION_FLAG, NULL, "do not record the pages and their links in the journal; this is faster, "
                                            "but webdb will not know them"},
    MODULE_OPTIONS
    END,
};

const struct wb_option wb_export_options[] = {
    {"warc", 0, WB_OPTION_FILE, "FILE", "write to FILE: .warc, .warc.gz or .warc.zst; - is standard output, "
                                        "uncompressed"},
    {"wacz", 0, WB_OPTION_FILE, "FILE", "write to FILE, a WACZ: archives with an index and a list of pages, for "
                                        "replay tools; - is standard output"},
    {"facts", 0, WB_OPTION_FILE, "FILE", "write what is known about pages to FILE: .sqlite, .csv or .jsonl"},
    SNAPSHOT_OPTION,
    {"versions", 0, WB_OPTION_FLAG, NULL, "write every capture, not only the latest version of each page"},
    SELECTION_OPTIONS
    {"lang", 0, WB_OPTION_TEXT, "CODE", "only pages in this language, such as de (with --facts)"},
    {"query", 0, WB_OPTION_TEXT, "QUERY", "only pages that 'webbase search' would find (with --facts)"},
    {"force", 0, WB_OPTION_FLAG, NULL, "replace FILE if it exists"},
    END,
};

const struct wb_option wb_get_options[] = {
    {"body", 0, WB_OPTION_FLAG, NULL, "print the body, byte for byte (this is the default)"},
    {"headers", 0, WB_OPTION_FLAG, NULL, "print the status line and the headers as received"},
    {"record", 0, WB_OPTION_FLAG, NULL, "print the page as a WARC record"},
    {"at", 0, WB_OPTION_TIME, "TIME", "the version of this time: RFC 3339, or a date, which means its midnight (UTC)"},
    SNAPSHOT_OPTION,
    END,
};

const struct wb_option wb_snapshot_options[] = {
    {"name", 0, WB_OPTION_TEXT, "NAME", "call the snapshot by this name"},
    {"keep", 0, WB_OPTION_DURATION, "DURATION", "how long it is kept, such as 12h or 30d (default until it is "
                                                "dropped)"},
    END,
};

const struct wb_option wb_nodes_options[] = {
    {"update", 0, WB_OPTION_FLAG, NULL, "add: an update node of a batch design, which takes new pages"},
    END,
};

const struct wb_option wb_crawl_options[] = {
    CRAWL_OPTIONS
    MODULE_OPTIONS
    END,
};

const struct wb_option wb_webdb_options[] = {
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

const struct wb_option wb_update_options[] = {
    DISPENSER_OPTION,
    MEMORY_OPTION,
    {"rebuild", 0, WB_OPTION_FLAG, NULL, "make a damaged webdb again from everything that can still be read"},
    END,
};

const struct wb_option wb_index_options[] = {
    {"column", 0, WB_OPTION_LIST, "NAME=FILE", "make a column of a file: lines of URL, tab, value; NAME= removes it"},
    {"rank", 0, WB_OPTION_LIST, "NAME=FILE", "make a column of the rank from your own seeds: lines of a URL or host; "
                                             "NAME= removes it"},
    {"index-dir", 0, WB_OPTION_DIR, "DIR", "keep the index in this directory from now on, such as on another disk"},
    {"force", 0, WB_OPTION_FLAG, NULL, "build a generation even if nothing is new"},
    {"from-scratch", 0, WB_OPTION_FLAG, NULL, "read every page again instead of only the changed ones"},
    DISPENSER_OPTION,
    MEMORY_OPTION,
    MODULE_OPTIONS
    END,
};

const struct wb_option wb_search_options[] = {
    {"limit", 0, WB_OPTION_NUMBER, "N", "show so many hits (default: 10)"},
    {"offset", 0, WB_OPTION_COUNT, "N", "leave out the first N hits"},
    {"sort", 0, WB_OPTION_TEXT, "[-]KEY", "score, rank, hostrank, date, url, published, modified, size, ... or a "
                                          "column of yours"},
    {"facet", 0, WB_OPTION_LIST, "NAME", "count the results by site, type, lang or status; may be repeated"},
    {"one-per-site", 0, WB_OPTION_FLAG, NULL, "show only the best hit of each site"},
    {"fold", 0, WB_OPTION_FLAG, NULL, "show near duplicates of a hit, and the same in other languages, under that hit"},
    {"quick", 0, WB_OPTION_FLAG, NULL, "do not count all results; the total may be too small"},
    {"explain", 0, WB_OPTION_FLAG, NULL, "show the plan, and what each score is made of"},
    {"plain", 0, WB_OPTION_FLAG, NULL, "rank by plain BM25: all words of a page count alike, and PageRank does not"},
    {"exhaustive", 0, WB_OPTION_FLAG, NULL, "look at every document; finds the same, slowly"},
    END,
};

const struct wb_option wb_links_options[] = {
    {"in", 0, WB_OPTION_FLAG, NULL, "the pages that link to the URL"},
    {"out", 0, WB_OPTION_FLAG, NULL, "the URLs that the page links to"},
    END,
};

const struct wb_option wb_serve_options[] = {
    {"listen", 0, WB_OPTION_TEXT, "ADDR:PORT", "where to listen (default: 127.0.0.1:8080; port 0: any free one)"},
    {"allow-host", 0, WB_OPTION_LIST, "NAME[:PORT]", "a name under which people reach this server, besides its "
                                                     "address; may be given several times"},
    {"public", 0, WB_OPTION_FLAG, NULL, "reading needs no token, even if others than this machine can connect"},
    {"token", 0, WB_OPTION_TEXT, "TOKEN", "of the operator (default: the one in DIR/token, which is made)"},
    {"push-token", 0, WB_OPTION_LIST, "TOKEN=HOST", "lets a provider push pages of this host and its subdomains; "
                                                    "may be given several times"},
    {"certificate", 0, WB_OPTION_FILE, "FILE", "serve HTTPS with this certificate chain (PEM); SIGHUP: read it again"},
    {"key", 0, WB_OPTION_FILE, "FILE", "the certificate's key, if it is in another file"},
    {"replay-listen", 0, WB_OPTION_TEXT, "ADDR:PORT",
     "also listen here, where each stored site gets an origin of its own, on which its pages run their scripts"},
    {"replay-host", 0, WB_OPTION_TEXT, "NAME[:PORT]",
     "the name whose subdomains lead to --replay-listen; https://NAME if they do so with TLS (default: localhost)"},
    {"query-time", 0, WB_OPTION_DURATION, "S", "a query that takes longer answers with what it has (default: 2)"},
    {"memory", 0, WB_OPTION_SIZE, "SIZE", "how much all caches together may keep in memory, beyond mapped files "
                                          "(default 256M); --run sorts and merges in as much again"},
    {"run", 0, WB_OPTION_FLAG, NULL, "also crawl, update and index forever, as 'webbase run' does; all options below "
                                     "are for this"},
    RUN_OPTIONS
    MODULE_OPTIONS
    END,
};

/* serve has the most options. */
_Static_assert(sizeof wb_serve_options / sizeof *wb_serve_options <= WB_COMMAND_OPTIONS_MAX + 1, "each has a value");

const struct wb_option wb_similar_options[] = {
    {"limit", 0, WB_OPTION_NUMBER, "N", "show so many pages (default: 20)"},
    {"by", 0, WB_OPTION_CHOICE, "words|links|both", "what makes pages similar (default: both)"},
    END,
};

const struct wb_option wb_stream_options[] = {
    {"format", 0, WB_OPTION_TEXT, "FORMAT", "jsonl, warc, warc.gz, warc.zst, text or urls (default jsonl)"},
    {"tokens", 0, WB_OPTION_FLAG, NULL, "with --format urls: put a tab and a token behind each URL"},
    SELECTION_OPTIONS
    {"lang", 0, WB_OPTION_TEXT, "CODE", "only pages in this language, such as de"},
    {"query", 0, WB_OPTION_TEXT, "QUERY", "only pages that match this query, as for 'webbase search'"},
    {"order", 0, WB_OPTION_TEXT, "[-]ORDER", "stored, url, rank, date, crawl (as date) or modified; with - backwards "
                                             "(default stored, which is the fastest)"},
    {"limit", 0, WB_OPTION_NUMBER, "N", "end after N records"},
    {"partition", 0, WB_OPTION_TEXT, "I/N", "only part I of N, counted from 1"},
    {"latest", 0, WB_OPTION_FLAG, NULL, "the state of this moment instead of that of the index"},
    {"snapshot", 0, WB_OPTION_TEXT, "N|NAME", "the state of this snapshot"},
    {"versions", 0, WB_OPTION_FLAG, NULL, "every capture, not only one version of each page"},
    {"resume", 0, WB_OPTION_TEXT, "TOKEN", "go on after the record that had this token"},
    {"name", 0, WB_OPTION_TEXT, "NAME", "remember the stream under this name, or go on with it"},
    {"join", 0, WB_OPTION_TEXT, "NAME", "take part in a stream that workers share (with a server)"},
    {"handler", 0, WB_OPTION_LIST, "FILE.so[=ARG]", "pass the records to a handler; may be given several times"},
    {"exec", 0, WB_OPTION_TEXT, "COMMAND", "write the records to the standard input of a command"},
    {"workers", 0, WB_OPTION_NUMBER, "N", "N processes, each with its own handlers or command, share the work"},
    {"patience", 0, WB_OPTION_DURATION, "S", "of a server: wait this long for it to come back (default 300)"},
    {"token", 0, WB_OPTION_TEXT, "TOKEN", "of a server that asks for one"},
    {"ca-file", 0, WB_OPTION_FILE, "FILE", "trust the certificates in FILE instead of the system's"},
    END,
};

const struct wb_option wb_generate_options[] = {
    BUDGET_OPTION,
    REFRESH_OPTIONS,
    {"seeds", 0, WB_OPTION_FILE, "FILE", "first read the sites and classes in FILE"},
    {"scope", 0, WB_OPTION_CHOICE, "site|domain|any", "which pages may be listed: those of the sites that crawls were "
                                                      "given, of their domains, or of any site (default site)"},
    DISPENSER_OPTION,
    END,
};

const struct wb_option wb_expunge_options[] = {
    {"allow", 0, WB_OPTION_FLAG, NULL, "undo a takedown: the page or site may be fetched and imported again"},
    DISPENSER_OPTION,
    MEMORY_OPTION,
    END,
};

const struct wb_option wb_run_options[] = {
    RUN_OPTIONS
    MEMORY_OPTION,
    MODULE_OPTIONS
    END,
};

const struct wb_option wb_why_options[] = {
    DISPENSER_OPTION,
    {"user-agent", 0, WB_OPTION_TEXT, "S", "the crawler's name, as given to crawl; robots.txt is read for it"},
    END,
};

const struct wb_option wb_graph_options[] = {
    {"from", 0, WB_OPTION_LIST, "NODE", "rank: jump to this node only; may be given several times"},
    {"threads", 0, WB_OPTION_NUMBER, "N", "rank: threads; the result is the same for any number (default 2)"},
    {"memory", 0, WB_OPTION_NUMBER, "BYTES", "rank: keep the graph in memory if it needs no more than this, and read "
                                             "it in each iteration otherwise (default 1073741824)"},
    END,
};

const struct wb_option wb_url_options[] = {
    {"base", 0, WB_OPTION_TEXT, "URL", "resolve the other URLs against this one"},
    END,
};

const struct wb_option wb_robots_options[] = {
    {"agent", 0, WB_OPTION_TEXT, "NAME", "the crawler that asks: its name or its whole User-Agent (default webbase)"},
    END,
};

const struct wb_option wb_advise_options[] = {
    {"add", 0, WB_OPTION_RATE, "N", "pages that a crawl adds per second (default 0)"},
    {"get", 0, WB_OPTION_RATE, "N", "single pages that are read per second (default 0)"},
    {"stream", 0, WB_OPTION_RATE, "N", "pages that streams deliver per second (default 0)"},
    {"update-ratio", 0, WB_OPTION_TEXT, "X", "the fraction of pages that is replaced between two transfers or "
                                             "compactions, from 0 to 1 (default 0.25)"},
    {"nodes", 0, WB_OPTION_NUMBER, "N", "the number of nodes, including update nodes (default 1)"},
    END,
};

const struct wb_option wb_web_options[] = {
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

const struct wb_option wb_extract_options[] = {
    {"url", 0, WB_OPTION_TEXT, "URL", "the URL of the page; links are resolved against it"},
    {"type", 0, WB_OPTION_TEXT, "TYPE", "its media type, with or without a charset (default by the file's name, or "
                                        "else by its bytes)"},
    {"charset", 0, WB_OPTION_TEXT, "CHARSET", "the encoding that the server named"},
    MODULE_OPTIONS
    END,
};

const struct wb_option wb_help_options[] = {
    {"man", 0, WB_OPTION_FLAG, NULL, "print the man page"},
    {"completion", 0, WB_OPTION_FLAG, NULL, "print the completion script for bash"},
    END,
};

const struct wb_option wb_no_options[] = {END};
