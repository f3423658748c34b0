/*
 * webdb_arcs.c - links as pairs of numbers, in the order of their sources or of their targets.
 *
 * Links are stored by content: outlinks has a list of page numbers for each content, inlinks a list of content numbers
 * for each target. The pages with a content are the entries of pages by MD5 from its number on.
 *
 *   by source, all   Every piece of outlinks goes into a sorter, once for each page with the content, and comes out
 *                    in the order of pages. Without texts, only the bytes of its numbers do, as they are.
 *   by source, one   From the page to its MD5, to the content, to the pieces of its list.
 *   by target        The pieces of inlinks are in the right order. The pages with their contents are gathered target
 *                    by target, and sorted (numbermap.h). With texts they are not sorted, so that nothing has to be
 *                    kept but one piece.
 *
 * A piece has at most 4096 links. After an error a walk is over.
 */
#include "base/bytes.h"
#include "os/path.h"
#include "webdb/linklist.h"
#include "webdb/numbermap.h"
#include "webdb/webdb_read.h"

enum {
    ARCS_MAGIC = 0x57425741, /* "WBWA" */
    MEMORY_DEFAULT = 64 << 20,
    MEMORY_TEXTS_MIN = 16 << 20, /* for a piece in which every link has a long anchor */
    PROGRESS_EVERY = 1 << 12,
    COUNT_BYTES = 2, /* of a record in the sorter, before its numbers */
};

_Static_assert(WB_LINKLIST_ITEMS <= 1 << 16, "the number of links in a piece, less 1, has two bytes in the sorter");

struct wb_webdb_arcs {
    uint32_t magic;
    struct wb_webdb *webdb;
    struct wb_webdb_arcs_options options;
    char *temp_dir;
    enum wb_webdb_direction direction;
    bool all;                 /* not only those of one URL */
    uint64_t number;          /* of the URL whose arcs are returned */
    struct wb_table *table;   /* of the cursor */
    struct wb_cursor *cursor; /* pieces come from here, or */
    struct wb_sorter *sorter; /* from here; if both are NULL, there are no arcs */
    int failed;               /* the error that has ended the walk */

    /* The current piece. */
    bool open;
    bool any;                /* there was one */
    uint64_t owner;          /* what it belongs to: a row of its table, or a page that came out of the sorter */
    uint32_t piece;          /* its number within its list */
    struct wb_slice value;   /* valid until the next piece is read */
    struct wb_linklist list; /* with texts: how far it was read */
    struct wb_linkitem item; /* with texts, by target: the link whose pages are next */
    uint64_t entry;          /* and the next of them; 0 if the next link must be read first */

    /* A portion. */
    uint32_t numbers[WB_LINKLIST_ITEMS];
    size_t count;
    struct wb_webdb_arc_text *texts; /* one for each of numbers */
    struct wb_numbermap pages;       /* by target, all: content -> its page; WB_NO_NUMBER if it has several */
    struct wb_numberset gathered;    /* by target: the pages that link to it */
};

static void check_walk(const struct wb_webdb_arcs *arcs)
{
    WB_CHECK(arcs->magic == ARCS_MAGIC);
    WB_CHECK(arcs->webdb->magic == WB_WEBDB_MAGIC);
    WB_CHECK(arcs->count <= WB_LINKLIST_ITEMS);
}

static int damaged(const struct wb_webdb_arcs *arcs, const char *what)
{
    const char *file = arcs->direction == WB_ARCS_OUT ? WB_OUTLINKS_FILE : WB_INLINKS_FILE;

    WB_CHECK(arcs->magic == ARCS_MAGIC);
    return wb_fail(WB_E_CORRUPT, "%s/%s: the list of number %llu %s", arcs->webdb->path, file,
                   (unsigned long long)arcs->owner, what);
}

/* ---- pieces ---------------------------------------------------------------------------------- */

/* Whether this piece may come after the current one: the next piece of its list, or the first one of another. */
static bool follows(const struct wb_webdb_arcs *arcs, uint64_t owner, uint32_t piece)
{
    bool same = arcs->any && owner == arcs->owner;

    return piece == (same ? arcs->piece + 1 : 0);
}

/* Reads the next piece of the table. Returns 1, 0 at the end, or an error. */
static int next_in_table(struct wb_webdb_arcs *arcs)
{
    struct wb_table_record record;
    uint64_t owner;
    uint32_t piece;
    int more = wb_cursor_next(arcs->cursor, &record);

    check_walk(arcs);
    WB_CHECK(arcs->cursor != NULL);
    if (more <= 0)
        return more;
    if (!wb_linklist_key_parse(record.key, &owner, &piece))
        return damaged(arcs, "is followed by an invalid key");
    if (!arcs->all && owner != arcs->owner)
        return 0;
    if (!follows(arcs, owner, piece))
        return damaged(arcs, "has a missing piece");
    arcs->owner = owner;
    arcs->piece = piece;
    arcs->value = record.value;
    return 1;
}

/* Reads the next piece of the sorter, whose keys are page and number of the piece. */
static int next_sorted(struct wb_webdb_arcs *arcs)
{
    struct wb_table_record record;
    int more = wb_sorter_next(arcs->sorter, &record);

    check_walk(arcs);
    if (more <= 0)
        return more;
    WB_CHECK(record.key.len == 8);
    WB_CHECK(record.value.len > COUNT_BYTES);
    if (!follows(arcs, wb_get32_be(record.key.ptr), wb_get32_be(record.key.ptr + 4)))
        return wb_fail(WB_E_CORRUPT, "%s: page %u has several contents", arcs->webdb->path,
                       wb_get32_be(record.key.ptr));
    arcs->owner = wb_get32_be(record.key.ptr);
    arcs->piece = wb_get32_be(record.key.ptr + 4);
    arcs->value = record.value;
    return 1;
}

static int next_piece(struct wb_webdb_arcs *arcs)
{
    check_walk(arcs);
    if (!arcs->cursor && !arcs->sorter)
        return 0;
    int more = arcs->sorter ? next_sorted(arcs) : next_in_table(arcs);
    arcs->open = more > 0;
    arcs->any = arcs->any || arcs->open;
    return more;
}

/* Reads all numbers of the piece into arcs->numbers; all must be below limit. */
static int read_numbers(struct wb_webdb_arcs *arcs, uint64_t limit)
{
    struct wb_linklist list;
    struct wb_slice tail;
    uint32_t last = arcs->piece && arcs->count ? arcs->numbers[arcs->count - 1] : 0;

    check_walk(arcs);
    WB_CHECK(arcs->open);
    arcs->count = 0;
    if (arcs->sorter) {
        arcs->count = (size_t)wb_get16(arcs->value.ptr) + 1;
        tail = wb_slice(arcs->value.ptr + COUNT_BYTES, arcs->value.len - COUNT_BYTES);
    } else {
        if (wb_linklist_open(&list, arcs->value) < 0)
            return damaged(arcs, "is damaged");
        arcs->count = list.count;
        tail = wb_linklist_tail(&list);
    }
    check_walk(arcs);
    if (wb_linklist_numbers(tail, arcs->count, limit, arcs->numbers) < 0)
        return damaged(arcs, "is damaged, or names something that does not exist");
    if (arcs->piece && arcs->numbers[0] <= last)
        return damaged(arcs, "is not in order");
    return 0;
}

/* ---- the pages of a content ------------------------------------------------------------------ */

/* The page of an entry of pages by MD5. */
static int page_of_entry(struct wb_webdb_arcs *arcs, uint64_t entry, uint32_t *page_out)
{
    const struct wb_webdb *webdb = arcs->webdb;

    WB_CHECK(entry < webdb->contents.count);
    int err = wb_column_check(&webdb->contents, entry, 1);
    *page_out = 0;
    if (err < 0)
        return err;
    uint64_t page = wb_get64_be(wb_webdb_content(webdb, entry)->page);
    if (page >= webdb->manifest.rows)
        return wb_fail(WB_E_CORRUPT, "%s: a content belongs to a page that does not exist", webdb->path);
    *page_out = (uint32_t)page;
    return 0;
}

/* Whether an entry belongs to the same content as the one before it. Returns 1 or 0, or an error. */
static int is_copy(const struct wb_webdb_arcs *arcs, uint64_t entry)
{
    const struct wb_webdb *webdb = arcs->webdb;

    WB_CHECK(entry > 0);
    if (entry >= webdb->contents.count)
        return 0;
    int err = wb_column_check(&webdb->contents, entry - 1, 2);
    if (err < 0)
        return err;
    return memcmp(wb_webdb_content(webdb, entry)->md5, wb_webdb_content(webdb, entry - 1)->md5, WB_MD5_BYTES) == 0;
}

/* ---- by source ------------------------------------------------------------------------------- */

/* Adds the current piece to the sorter, once for each page that has the content. */
static int sort_piece(struct wb_webdb_arcs *arcs, struct wb_sorter *sorter, struct wb_buf *record)
{
    struct wb_linklist list;
    char key[8];
    int copy = 1;

    check_walk(arcs);
    WB_CHECK(arcs->open);
    if (arcs->owner >= arcs->webdb->contents.count || (arcs->owner && (copy = is_copy(arcs, arcs->owner)) != 0))
        return copy < 0 ? copy : damaged(arcs, "does not belong to a content");
    if (wb_linklist_open(&list, arcs->value) < 0)
        return damaged(arcs, "is damaged");
    struct wb_slice part = arcs->options.texts ? arcs->value : wb_linklist_tail(&list);
    wb_buf_clear(record);
    int err = wb_buf_reserve(record, COUNT_BYTES + part.len);
    if (err < 0)
        return err;
    wb_put16(record->ptr, (uint16_t)(list.count - 1));
    record->len = COUNT_BYTES;
    err = wb_buf_append_slice(record, part);
    for (uint64_t entry = arcs->owner; err == 0; entry++) {
        uint32_t page;
        err = page_of_entry(arcs, entry, &page);
        wb_put32_be(key, page);
        wb_put32_be(key + 4, arcs->piece);
        if (err == 0)
            err = wb_sorter_add(sorter, wb_slice(key, sizeof key), wb_buf_slice(record));
        copy = err < 0 ? err : is_copy(arcs, entry + 1);
        if (copy <= 0)
            return copy;
    }
    return err;
}

static int tell_progress(const struct wb_webdb_arcs *arcs, uint64_t done)
{
    const struct wb_webdb_arcs_options *options = &arcs->options;

    if (done % PROGRESS_EVERY || !options->progress)
        return 0;
    if (!options->progress(options->progress_context, "links by page", done, arcs->webdb->manifest.count.contents))
        return wb_fail(WB_E_STOPPED, "stopped");
    return 0;
}

/* Sorts the pieces of outlinks by page. */
static int sort_by_source(struct wb_webdb_arcs *arcs)
{
    struct wb_sorter_options options = {
        .dir = arcs->temp_dir, .memory_bytes = arcs->options.memory_bytes, .threads = arcs->options.threads};
    struct wb_buf record = WB_BUF_INIT;
    struct wb_sorter *sorter = NULL;
    int more = 1, err = wb_sorter_open(&options, &sorter);

    check_walk(arcs);
    WB_CHECK(arcs->sorter == NULL);
    WB_CHECK(arcs->all);
    for (uint64_t done = 0; err == 0 && (more = next_piece(arcs)) > 0; done++) {
        err = sort_piece(arcs, sorter, &record);
        if (err == 0)
            err = tell_progress(arcs, done);
    }
    wb_buf_release(&record);
    if (err == 0)
        err = more < 0 ? more : wb_sorter_sort(sorter);
    arcs->open = arcs->any = false;
    arcs->sorter = sorter;
    return err;
}

/* ---- by target ------------------------------------------------------------------------------- */

/* Gathers the pages that have a content. */
static int gather_content(struct wb_webdb_arcs *arcs, uint64_t content)
{
    uint64_t entry = content;
    int copy = content ? is_copy(arcs, content) : 0;

    check_walk(arcs);
    if (copy > 0)
        return damaged(arcs, "names a content by the wrong number");
    if (copy < 0)
        return copy;
    do {
        uint32_t page;
        int err = page_of_entry(arcs, entry, &page);
        if (err == 0)
            err = wb_numberset_add(&arcs->gathered, page);
        if (err < 0)
            return err;
        copy = is_copy(arcs, ++entry);
    } while (copy > 0);
    return copy;
}

static int gather_piece(struct wb_webdb_arcs *arcs)
{
    int err = read_numbers(arcs, arcs->webdb->contents.count);

    check_walk(arcs);
    for (size_t i = 0; err == 0 && i < arcs->count; i++) {
        uint32_t content = arcs->numbers[i], page = arcs->all ? arcs->pages.numbers[content] : WB_NO_NUMBER;
        err = page != WB_NO_NUMBER ? wb_numberset_add(&arcs->gathered, page) : gather_content(arcs, content);
    }
    return err;
}

/* Nearly every content has one page. Finding it in an array is several times as fast as in pages by MD5. */
static int map_contents(struct wb_webdb_arcs *arcs)
{
    uint64_t count = arcs->webdb->contents.count;
    int copy = 0, next = 0, err = wb_numbermap_open(arcs->temp_dir, count, &arcs->pages);

    check_walk(arcs);
    WB_CHECK(arcs->all);
    for (uint64_t entry = 0; err == 0 && entry < count; entry++, copy = next) {
        err = page_of_entry(arcs, entry, &arcs->pages.numbers[entry]);
        next = err < 0 ? err : is_copy(arcs, entry + 1);
        if (copy || next)
            arcs->pages.numbers[entry] = WB_NO_NUMBER;
        err = next < 0 ? next : 0;
    }
    return err;
}

/* Gathers the pages that link to the next target. Returns 1, 0 at the end, or an error. */
static int gather(struct wb_webdb_arcs *arcs)
{
    int more = arcs->open ? 1 : next_piece(arcs), err = 0;

    check_walk(arcs);
    if (more <= 0)
        return more;
    arcs->number = arcs->owner;
    if (arcs->owner >= arcs->webdb->manifest.rows)
        return damaged(arcs, "belongs to a page that does not exist");
    while (err == 0 && more > 0 && arcs->owner == arcs->number) {
        err = gather_piece(arcs);
        if (err == 0)
            more = next_piece(arcs);
    }
    if (err == 0)
        err = more < 0 ? more : wb_numberset_sort(&arcs->gathered);
    return err < 0 ? err : 1;
}

/* Returns some of the pages that are gathered, or gathers those of the next target. */
static int next_by_target(struct wb_webdb_arcs *arcs, struct wb_webdb_portion *portion)
{
    check_walk(arcs);
    while (wb_numberset_next(&arcs->gathered, &portion->ends, &portion->count) == 0) {
        int more = gather(arcs);
        if (more <= 0)
            return more;
    }
    return 1;
}

/* ---- with texts ------------------------------------------------------------------------------ */

/* Opens the next piece to read it link by link. */
static int open_texts(struct wb_webdb_arcs *arcs)
{
    int more = next_piece(arcs);

    check_walk(arcs);
    WB_CHECK(arcs->options.texts);
    if (more <= 0)
        return more;
    size_t head = arcs->sorter ? COUNT_BYTES : 0;
    if (arcs->direction == WB_ARCS_IN && arcs->owner >= arcs->webdb->manifest.rows)
        return damaged(arcs, "belongs to a page that does not exist");
    if (wb_linklist_open(&arcs->list, wb_slice(arcs->value.ptr + head, arcs->value.len - head)) < 0)
        return damaged(arcs, "is damaged");
    arcs->entry = 0;
    return 1;
}

static void put_text(struct wb_webdb_arcs *arcs, uint32_t number)
{
    WB_CHECK(arcs->count < WB_LINKLIST_ITEMS);
    arcs->texts[arcs->count] = (struct wb_webdb_arc_text){arcs->item.anchor, arcs->item.tag, arcs->item.flags};
    arcs->numbers[arcs->count++] = number;
}

/* Adds the next page of the current link, by target. Afterwards arcs->entry is 0 if it was the last one. */
static int put_page(struct wb_webdb_arcs *arcs)
{
    uint32_t page;
    uint64_t entry = arcs->entry ? arcs->entry : arcs->item.number;
    int err = page_of_entry(arcs, entry, &page);

    check_walk(arcs);
    WB_CHECK(arcs->direction == WB_ARCS_IN);
    if (err < 0)
        return err;
    put_text(arcs, page);
    int copy = is_copy(arcs, entry + 1);
    arcs->entry = copy > 0 ? entry + 1 : 0;
    return copy < 0 ? copy : 0;
}

/* Reads the next link of the piece. Returns 1, 0 at its end, or an error. */
static int next_item(struct wb_webdb_arcs *arcs)
{
    uint64_t limit = arcs->direction == WB_ARCS_OUT ? arcs->webdb->manifest.rows : arcs->webdb->contents.count;
    int more = wb_linklist_next(&arcs->list, &arcs->item);

    check_walk(arcs);
    if (more < 0)
        return damaged(arcs, "is damaged");
    if (more && arcs->item.number >= limit)
        return damaged(arcs, "names something that does not exist");
    int copy = more && arcs->direction == WB_ARCS_IN && arcs->item.number ? is_copy(arcs, arcs->item.number) : 0;
    if (copy > 0)
        return damaged(arcs, "names a content by the wrong number");
    return copy < 0 ? copy : more;
}

/* Fills a portion from the current piece, or from the next one if that is used up. */
static int next_with_texts(struct wb_webdb_arcs *arcs)
{
    int err = 0;

    check_walk(arcs);
    arcs->count = 0;
    while (arcs->count == 0) {
        int more = arcs->open ? 1 : open_texts(arcs);
        if (more <= 0)
            return more;
        while (arcs->count < WB_LINKLIST_ITEMS) {
            if (!arcs->entry && (more = next_item(arcs)) <= 0)
                break;
            if (arcs->direction == WB_ARCS_IN)
                err = put_page(arcs);
            else
                put_text(arcs, (uint32_t)arcs->item.number);
            if (err < 0)
                return err;
        }
        if (more < 0)
            return more;
        arcs->open = more > 0;
    }
    return 1;
}

/* ---- the walk -------------------------------------------------------------------------------- */

static int next_by_source(struct wb_webdb_arcs *arcs)
{
    int more = next_piece(arcs);

    check_walk(arcs);
    if (more <= 0)
        return more;
    int err = read_numbers(arcs, arcs->webdb->manifest.rows);
    return err < 0 ? err : 1;
}

int wb_webdb_arcs_next(struct wb_webdb_arcs *arcs, struct wb_webdb_portion *portion_out)
{
    bool texts = arcs->options.texts, gathered = arcs->direction == WB_ARCS_IN && !texts;

    check_walk(arcs);
    *portion_out = (struct wb_webdb_portion){.number = 0};
    if (arcs->failed)
        return wb_fail(arcs->failed, "%s: the walk over its links has failed before", arcs->webdb->path);
    int more = texts ? next_with_texts(arcs) : gathered ? next_by_target(arcs, portion_out) : next_by_source(arcs);
    arcs->failed = more < 0 ? more : 0;
    if (more <= 0)
        return more;
    if (!gathered) {
        WB_CHECK(arcs->count > 0);
        portion_out->count = arcs->count;
        portion_out->ends = arcs->numbers;
        arcs->number = arcs->all ? arcs->owner : arcs->number;
    }
    portion_out->number = arcs->number;
    portion_out->texts = texts ? arcs->texts : NULL;
    return 1;
}

void wb_webdb_arcs_close(struct wb_webdb_arcs *arcs)
{
    if (!arcs)
        return;
    check_walk(arcs);
    arcs->magic = 0;
    wb_webdb_give_back(arcs->webdb, arcs->table, arcs->cursor);
    wb_sorter_close(arcs->sorter);
    wb_numbermap_close(&arcs->pages);
    wb_numberset_release(&arcs->gathered);
    wb_free(arcs->texts);
    wb_free(arcs->temp_dir);
    wb_free(arcs);
}

static int open_walk(struct wb_webdb *webdb, enum wb_webdb_direction direction,
                     const struct wb_webdb_arcs_options *options, struct wb_webdb_arcs **arcs_out)
{
    struct wb_webdb_arcs *arcs = wb_alloc_zero(1, sizeof *arcs);

    WB_CHECK(webdb->magic == WB_WEBDB_MAGIC);
    WB_CHECK(direction == WB_ARCS_OUT || direction == WB_ARCS_IN);
    *arcs_out = arcs;
    if (!arcs)
        return WB_E_NOMEM;
    arcs->magic = ARCS_MAGIC;
    arcs->webdb = webdb;
    arcs->direction = direction;
    arcs->table = direction == WB_ARCS_OUT ? webdb->outlinks : webdb->inlinks;
    if (options)
        arcs->options = *options;
    if (arcs->options.memory_bytes == 0)
        arcs->options.memory_bytes = MEMORY_DEFAULT;
    if (arcs->options.texts && arcs->options.memory_bytes < MEMORY_TEXTS_MIN)
        arcs->options.memory_bytes = MEMORY_TEXTS_MIN;
    /* The edition itself may be read-only for us, and temporary files have no names anyway: so the directory above. */
    arcs->temp_dir = options && options->temp_dir ? wb_strdup(options->temp_dir) : wb_path_join(webdb->path, "..");
    if (arcs->options.texts)
        arcs->texts = wb_alloc_zero(WB_LINKLIST_ITEMS, sizeof *arcs->texts);
    if (!arcs->temp_dir || (arcs->options.texts && !arcs->texts))
        return WB_E_NOMEM;
    arcs->gathered.dir = arcs->temp_dir;
    arcs->gathered.limit = webdb->manifest.rows;
    return 0;
}

/* Closes the walk if opening it has failed. */
static int opened(int err, struct wb_webdb_arcs **arcs_out)
{
    WB_CHECK(err < 0 || (*arcs_out)->magic == ARCS_MAGIC);
    if (err < 0) {
        wb_webdb_arcs_close(*arcs_out);
        *arcs_out = NULL;
    }
    return err;
}

static int seek(struct wb_webdb_arcs *arcs, uint64_t owner)
{
    char key[WB_LINKLIST_KEY_MAX];
    int err = wb_webdb_borrow(arcs->webdb, arcs->table, &arcs->cursor);

    check_walk(arcs);
    arcs->owner = owner;
    return err < 0 ? err : wb_cursor_seek(arcs->cursor, wb_slice(key, wb_linklist_key(owner, 0, key)));
}

int wb_webdb_arcs(struct wb_webdb *webdb, enum wb_webdb_direction direction,
                  const struct wb_webdb_arcs_options *options, struct wb_webdb_arcs **arcs_out)
{
    WB_CHECK(webdb->magic == WB_WEBDB_MAGIC);
    int err = open_walk(webdb, direction, options, arcs_out);

    if (err == 0) {
        (*arcs_out)->all = true;
        err = seek(*arcs_out, 0);
    }
    if (err == 0 && direction == WB_ARCS_OUT)
        err = sort_by_source(*arcs_out);
    else if (err == 0 && !(*arcs_out)->options.texts)
        err = map_contents(*arcs_out);
    return opened(err, arcs_out);
}

int wb_webdb_arcs_of(struct wb_webdb *webdb, uint64_t number, enum wb_webdb_direction direction,
                     const struct wb_webdb_arcs_options *options, struct wb_webdb_arcs **arcs_out)
{
    struct wb_webdb_page page;
    int err;

    WB_CHECK(webdb->magic == WB_WEBDB_MAGIC);
    *arcs_out = NULL;
    err = wb_webdb_get_number(webdb, number, &page);
    if (err < 0)
        return err;
    err = open_walk(webdb, direction, options, arcs_out);
    uint64_t owner = number;
    bool none = direction == WB_ARCS_IN ? page.inlinks == 0 : !page.has_content;
    if (err == 0 && !none && direction == WB_ARCS_OUT)
        err = wb_contents_find(&webdb->contents, page.md5, &owner);
    if (err == WB_E_NOTFOUND)
        err = wb_fail(WB_E_CORRUPT, "%s: the content of page %llu is not among the contents", webdb->path,
                      (unsigned long long)number);
    if (err == 0 && !none)
        err = seek(*arcs_out, owner);
    if (err == 0)
        (*arcs_out)->number = number;
    return opened(err, arcs_out);
}
