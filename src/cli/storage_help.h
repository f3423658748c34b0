/*
 * storage_help.h - the help texts of the commands that concern storage designs, for the table in commands.c.
 */
#ifndef WB_CLI_STORAGE_HELP_H
#define WB_CLI_STORAGE_HELP_H

#define WB_HELP_INIT \
    "Creates a repository in DIR. import and crawl also create one if there is none; use init\n" \
    "to choose the design, or how much history is kept.\n" \
    "\n" \
    "--history says which old versions of pages are kept: newest (none), all, a number (so\n" \
    "many of the newest versions of each page) or a duration, such as 30d or 1y (versions that\n" \
    "were the latest at some moment of that time). The latest version is always kept.\n" \
    "'webbase history' changes this later.\n" \
    "\n" \
    "The design says how pages are stored: Incr[p,o], or Batch[U(p,o),R(p,o)] for update\n" \
    "nodes, which take new pages, and read nodes, which serve them. p is the distribution of\n" \
    "pages over nodes (hash: by page id, uniform: any node), o the organisation of a node (log,\n" \
    "hash, hashed-log). A node is a directory, typically a disk of its own. 'webbase advise'\n" \
    "helps to choose."

#define WB_HELP_TRANSFER \
    "In a batch design, crawls and imports store pages on the update nodes, where readers do\n" \
    "not see them. transfer waits until exports and streams that are under way have ended,\n" \
    "brings everything that waits to the read nodes, and frees the space of what it replaces.\n" \
    "New exports and streams begin when it is done; get and search work all the time. It can\n" \
    "be interrupted at any moment: every page is then old or new, and the next transfer\n" \
    "completes the work. 'webbase run' transfers before it builds the index.\n" \
    "\n" \
    "  webbase import crawl.warc.gz && webbase transfer"

#define WB_HELP_CONVERT \
    "Copies the repository into a new one in the directory TARGET: all versions and captures of\n" \
    "pages, snapshots with their numbers, names and times, what was taken down and must not\n" \
    "come back, the history policy, pages that wait for a transfer, webdb and the journal. The\n" \
    "options say how the new one stores pages, as with init. The repository itself is not\n" \
    "changed, and others can go on using it; the copy is of the moment at which it began.\n" \
    "\n" \
    "Not copied are indexes ('webbase index' builds one), streams, and the state of crawls.\n" \
    "Snapshots that only an index or a stream holds are not copied either.\n" \
    "\n" \
    "TARGET must be new or empty, and the directory above it must exist. Until the copy is\n" \
    "complete, TARGET is not a repository and says so. If convert is stopped or killed, run it\n" \
    "again: it starts anew.\n" \
    "\n" \
    "  webbase -r crawl convert /archive --design 'Incr[hash,hashed-log]' --nodes /d1,/d2\n" \
    "\n" \
    "  {\"event\":\"done\",\"pages\":37,\"versions\":52,\"bytes\":90112,\"ms\":210}"

#define WB_HELP_EMULATE \
    "Takes pages from the repository SOURCE, in the order in which they are stored, and adds\n" \
    "them to this repository, N in a second, as a crawler would: each gets the time at which it\n" \
    "is added. SOURCE is not changed. For measuring how a design copes with a crawl, without a\n" \
    "web to crawl.\n" \
    "\n" \
    "  webbase -r test emulate /archive --rate 100 --pages 10000"

#define WB_HELP_ADVISE \
    "Lists all storage designs for a described load, the best first. The score is how many\n" \
    "times the load a design can carry: below 1 it is too much. add, get and stream are the\n" \
    "pages per second that the design manages on these nodes if nothing else is asked of it.\n" \
    "The last lines give the reason for the best.\n" \
    "\n" \
    "In a batch design the nodes are divided into update nodes and read nodes as it suits the\n" \
    "load. Readers wait while pages are transferred; if they must never wait, choose the best\n" \
    "incremental design. The costs of each operation were measured by 'bench/run paper', on a\n" \
    "machine that the last line describes; run it on yours before you rely on the order of\n" \
    "designs that are close. It needs no repository.\n" \
    "\n" \
    "  webbase advise --add 100 --get 50 --stream 1000 --update-ratio 0.25 --nodes 4"

#endif
