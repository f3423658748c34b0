/*
 * storage_help.h - the help texts of the commands that concern storage designs, for the table in commands.c.
 */
#ifndef WB_CLI_STORAGE_HELP_H
#define WB_CLI_STORAGE_HELP_H

#define WB_HELP_INIT \
    "Creates a repository in DIR. import and crawl also create one if there is none; use init\n" \
    "to choose the design, or how much history is kept.\n" \
    "\n" \
    "--history says which old versions of pages are kept: newest (none), all, a number N (the N\n" \
    "newest versions of each page) or a duration, such as 30d or 1y (versions that were the\n" \
    "latest at some moment of that time). The latest version is always kept.\n" \
    "'webbase history' changes this later.\n" \
    "\n" \
    "The design says how pages are stored: Incr[p,o], or Batch[U(p,o),R(p,o)] for update\n" \
    "nodes, which take new pages, and read nodes, which serve them. p is the distribution of\n" \
    "pages over nodes (hash: by page id, uniform: any node), o the organisation of a node (log,\n" \
    "hash, hashed-log). A node is a directory, typically on its own disk. --nodes N makes the\n" \
    "directories inside the repository; directories that you name must be new or empty, and\n" \
    "the directory above each of them must exist. 'webbase advise' helps to choose a design.\n" \
    "A copy of DIR made with cp has its own nodes if they are inside; directories that you name\n" \
    "it would share, and change: copy such a repository with 'webbase convert'.\n" \
    "\n" \
    "  webbase -r big init --design 'Incr[uniform,log]' --nodes /disk1/pages,/disk2/pages"

#define WB_HELP_CLUSTER \
    "A cluster is a collection on many machines. Its registry, which says which machine has\n" \
    "which part of it, is in a database: -r postgres://USER@HOST:PORT/NAME, or, for machines of\n" \
    "one host, -r sqlite:///FILE. Everything that is to outlive a machine is in the store.\n" \
    "\n" \
    "  init    make the registry of a cluster without machines. The number of shards, the store\n" \
    "          and the lease cannot be changed later; more shards than machines let new ones\n" \
    "          have their share. Each site belongs to one shard\n" \
    "  status  show what somebody should see to, the machines (up, down or draining, with what\n" \
    "          is left of their leases) and what they hold\n" \
    "\n" \
    "With --json, status prints one object: machines, shards (with holder, term, copies, pages\n" \
    "and safe_ms, for how long the oldest thing that is not in the store has waited), the\n" \
    "generation that readers use, and problems, which are sentences.\n" \
    "\n" \
    "A password is best kept in ~/.pgpass. One in the URL is in no message, and is hidden from\n" \
    "the list of processes as soon as the command runs.\n" \
    "\n" \
    "  webbase cluster init -r postgres://web@db/web --store s3://pages/web --copies 2\n" \
    "  webbase cluster status -r postgres://web@db/web"

#define WB_HELP_TRANSFER \
    "In a batch design, crawls and imports store pages on the update nodes, where readers do\n" \
    "not see them. transfer waits until running exports and streams have ended, moves all\n" \
    "waiting pages to the read nodes, and frees the space of the pages they replace. Exports\n" \
    "and streams that are started meanwhile wait until it is done; get and search work all the\n" \
    "time. If it is interrupted, every page is either old or new, and the next transfer\n" \
    "completes the work. 'webbase run' transfers before it builds the index.\n" \
    "\n" \
    "Pages that need a node which is down, or a read node which is read-only or full, go on\n" \
    "waiting until the next transfer. All others are moved; transfer says how many pages wait\n" \
    "for which node, and the exit status is 1.\n" \
    "\n" \
    "  webbase import crawl.warc.gz && webbase transfer"

#define WB_HELP_CONVERT \
    "Copies the repository into a new one in the directory TARGET: all versions and captures of\n" \
    "pages, snapshots with their numbers, names and times, what was taken down and must not\n" \
    "come back, the history policy, pages that wait for a transfer, webdb and the journal. The\n" \
    "options say how the new one stores pages, as with init. The repository itself is not\n" \
    "changed, and others can go on using it; the copy shows it as it was when convert began.\n" \
    "\n" \
    "Not copied are indexes ('webbase -r TARGET index' builds one), streams, and the state of\n" \
    "crawls: give the next crawl its seeds again. Snapshots that only an index or a stream\n" \
    "holds are not copied either.\n" \
    "\n" \
    "A version whose bytes are damaged cannot be copied. It is reported with its URL, if webdb\n" \
    "knows it, and its time; all other versions are copied, the exit status is 1, and the\n" \
    "target can be used. If it was the latest version, the page counts as gone in the target.\n" \
    "If a node is down or the catalog is damaged, nothing is copied.\n" \
    "\n" \
    "TARGET must be new or empty, and the directory above it must exist. Until the copy is\n" \
    "complete, every command refuses to use TARGET. If convert is stopped or killed, run it\n" \
    "again: it starts from the beginning.\n" \
    "\n" \
    "  webbase -r crawl convert /archive --design 'Incr[hash,hashed-log]' --nodes /d1,/d2\n" \
    "\n" \
    "  {\"event\":\"lost\",\"url\":\"http://...\",\"id\":\"...\",\"time\":\"...\",\"latest\":true,\n" \
    "   \"message\":\"...\"}                          for each version that is lost\n" \
    "  {\"event\":\"done\",\"pages\":37,\"versions\":52,\"bytes\":90112,\"lost\":0,\n" \
    "   \"lost_pages\":0,\"ms\":210}"

#define WB_HELP_EMULATE \
    "Takes pages from the repository SOURCE, in the order in which they are stored, and adds\n" \
    "N of them per second to this repository, as a crawler would. Each page gets the time at\n" \
    "which it is added. SOURCE is not changed. Use it to measure how a design copes with a\n" \
    "crawl when there is no web to crawl.\n" \
    "\n" \
    "  webbase -r test emulate /archive --rate 100 --pages 10000"

#define WB_HELP_ADVISE \
    "Lists all storage designs for the load that you describe, the best first. The score says\n" \
    "how many times this load the design can carry; below 1, it cannot carry it. add, get and\n" \
    "stream are the pages per second that the design reaches on these nodes if it does nothing\n" \
    "else. The last lines give the reason for the first choice.\n" \
    "\n" \
    "In a batch design, the nodes are divided into update nodes and read nodes in the way that\n" \
    "suits the load best. Readers wait while pages are transferred; if they must never wait,\n" \
    "choose the best incremental design. 'bench/run paper' measured what each operation costs,\n" \
    "on the machine that the last line describes. If two designs are close, run it on your own\n" \
    "machine before you choose. advise needs no repository.\n" \
    "\n" \
    "  webbase advise --add 100 --get 50 --stream 1000 --update-ratio 0.25 --nodes 4"

#define WB_HELP_BACKUP \
    "Brings the newest state of the repository to the vault at URL, s3://BUCKET/PREFIX or\n" \
    "file:///DIR, while others go on writing to it. Only what is new is shipped: bytes behind those\n" \
    "that went before, rows of the catalog that differ, new files. When it has ended, 'webbase\n" \
    "restore URL DIR' makes a repository with everything that was in this one: pages with all\n" \
    "versions, snapshots, webdb, the journal, indexes and streams.\n" \
    "\n" \
    "Older states can be restored for as long as --keep says, and 'webbase backup URL --list' shows\n" \
    "them. After 'expunge' and 'compact', the next backup deletes every object that has bytes of the\n" \
    "page, and all older states with it.\n" \
    "\n" \
    "A vault belongs to one copy of one repository. If this directory was copied, or restored,\n" \
    "--take-over makes it the owner; the other copy is refused from then on.\n" \
    "\n" \
    "Keys for s3:// are in AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or in ~/.aws/credentials;\n" \
    "AWS_ENDPOINT_URL names a store that is not Amazon's. If the store is away, backup gives up\n" \
    "after 30 seconds; with --follow it goes on trying, and says so once.\n" \
    "\n" \
    "  webbase backup s3://archive/pages\n" \
    "  webbase backup file:///mnt/vault --follow --every 1s\n" \
    "  webbase backup s3://archive/pages --verify"

#define WB_HELP_RESTORE \
    "Makes a repository in DIR of the newest state that 'webbase backup' has brought to the\n" \
    "vault at URL, or with --at of an older one ('webbase backup URL --list' shows which there\n" \
    "are). It has everything that the original had then: pages with all versions, snapshots,\n" \
    "webdb, the journal, indexes and streams; named streams and tokens go on. URL is\n" \
    "s3://BUCKET/PREFIX or file:///DIR. All nodes are directories inside DIR.\n" \
    "\n" \
    "DIR must be new or empty. Every object is checked before a byte of it is used; if one is\n" \
    "damaged or missing, it is named, and DIR is as it was before. Until everything is there,\n" \
    "every command refuses to use DIR. If restore is killed, run it again.\n" \
    "\n" \
    "The repository does not become the owner of the vault: to back it up to the same URL, use\n" \
    "'webbase backup URL --take-over'.\n" \
    "\n" \
    "  webbase restore s3://archive/pages /srv/pages\n" \
    "  webbase restore file:///mnt/vault /srv/pages --at 2026-11-01"

#endif
