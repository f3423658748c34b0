/*
 * import_revisit.c - resolves the revisit records of an import.
 *
 * A revisit record says "the same bytes as before" about a page, its original:
 *
 *   the original has the same URL               the store finds it, at once or when it arrives
 *   another URL, and it is in the store         it is stored under the revisit's URL as well
 *   another URL, and it arrives later           the revisit waits in the store; the put of the original copies it
 *
 * The original is known by its digest, unless the record is about an answer without a body ("304 Not Modified", for
 * which Heritrix writes the digest of nothing): then by the date that the record names, or it is what was there just
 * before.
 *
 * The store shows a writer the latest version of its own uncommitted pages, so an original from earlier in the same
 * archive is found, unless a newer version came between them: then it is found after the next commit.
 */
#include "ingest/import_revisit.h"
#include "base/check.h"
#include "base/error.h"

/* Old versions of a page that are compared with a digest, at the cost of reading each. */
enum { VERSIONS_MAX = 64 };

static bool same_second(int64_t a_ms, int64_t b_ms)
{
    return a_ms / 1000 == b_ms / 1000;
}

/*
 * Whether page is the original that the revisit means. If the record has a digest, the digest decides; otherwise the
 * URL and the date that it names do.
 */
static bool is_original(const struct wb_page *page, const struct wb_store_revisit *revisit)
{
    if (revisit->has_sha1)
        return memcmp(page->sha1, revisit->sha1, WB_SHA1_BYTES) == 0 ||
               (page->has_payload_sha1 && memcmp(page->payload_sha1, revisit->sha1, WB_SHA1_BYTES) == 0);
    if (revisit->original_ms)
        return same_second(page->time_ms, revisit->original_ms);
    return revisit->not_modified && page->time_ms <= revisit->time_ms;
}

/* True if this is the SHA-1 of no bytes. */
static bool is_of_nothing(const uint8_t sha1[WB_SHA1_BYTES])
{
    static const uint8_t nothing[WB_SHA1_BYTES] = {0xda, 0x39, 0xa3, 0xee, 0x5e, 0x6b, 0x4b, 0x0d, 0x32, 0x55,
                                                   0xbf, 0xef, 0x95, 0x60, 0x18, 0x90, 0xaf, 0xd8, 0x07, 0x09};

    return memcmp(sha1, nothing, WB_SHA1_BYTES) == 0;
}

/* ---- journal ------------------------------------------------------------------------------------------------- */

static int journal_page(struct wb_importer *importer, const struct wb_page *page, enum wb_edit_outcome outcome)
{
    return importer->journal ? wb_import_journal_revisit(importer->journal, page, outcome) : 0;
}

/*
 * A stored page was seen again. webdb cares for the newest capture only; which content that is, the store knows. It
 * need not be the content that was the latest until now.
 */
static int journal_capture(struct wb_importer *importer, const struct wb_store_revisit *revisit)
{
    struct wb_page page;

    if (!importer->journal)
        return 0;
    int err = wb_store_get(importer->store, revisit->id, &page, &importer->body);
    if (err < 0)
        return err == WB_E_NOTFOUND || err == WB_E_CORRUPT || err == WB_E_DOWN ? 0 : err;
    return page.time_ms == revisit->time_ms ? journal_page(importer, &page, WB_OUTCOME_UNCHANGED) : 0;
}

/* ---- copies -------------------------------------------------------------------------------------------------- */

/* A copy that cannot be stored because a node is down does no harm: the revisit waits on. */
static int unless_down(int err)
{
    return err == WB_E_DOWN ? 0 : err;
}

/* Stores page, an original, as what was seen at the URL and the time of the revisit. */
static int put_copy(struct wb_importer *importer, const struct wb_store_revisit *revisit,
                    const struct wb_page *original, const struct wb_page *own_head)
{
    enum wb_store_outcome put;
    struct wb_page page = *original;
    int err = wb_url_parse(revisit->url, NULL, &importer->url);

    if (err == 0)
        err = wb_url_key(&importer->url, &importer->key);
    if (err < 0)
        return err == WB_E_NOMEM ? err : 0; /* such a row was never written by us */
    page.url = wb_url_href(&importer->url);
    page.key = wb_buf_slice(&importer->key);
    page.id = wb_pageid_of_key(page.key);
    page.time_ms = revisit->time_ms;
    if (own_head && own_head->head.len && !revisit->not_modified && own_head->status != 304) {
        page.kind = WB_PAGE_RESPONSE;
        page.head = own_head->head;
        page.status = own_head->status;
        if (own_head->type.len) {
            page.type = own_head->type;
            page.charset = own_head->charset;
        }
    }
    importer->uncommitted++;
    err = wb_store_put(importer->store, &page, &put);
    if (err < 0 || put == WB_STORE_PUT_BARRED || put == WB_STORE_PUT_KNOWN || put == WB_STORE_PUT_OLDER)
        return err;
    return journal_page(importer, &page, WB_OUTCOME_DUPLICATE);
}

/* ---- originals elsewhere ------------------------------------------------------------------------------------- */

/* Reads a version, of which a capture has this time. 1, 0 or an error. */
static int read_version(struct wb_importer *importer, const struct wb_store_revisit *revisit,
                        const struct wb_store_version *version, int64_t time_ms, struct wb_page *page_out)
{
    /* There may be several captures of one time. */
    struct wb_store_when when = {.kind = WB_STORE_WHEN_CAPTURE, .time_ms = time_ms, .content = version->content};
    int err = wb_store_get_when(importer->store, revisit->original, &when, page_out, &importer->body);

    if (err < 0)
        return err == WB_E_NOTFOUND || err == WB_E_CORRUPT ? 0 : err;
    return !revisit->has_sha1 || is_original(page_out, revisit);
}

/* The version that has the capture with this index. */
static const struct wb_store_version *owner_of(const struct wb_store_timeline *timeline, size_t capture)
{
    size_t i = timeline->count;

    while (i > 1 && timeline->versions[i - 1].first > capture)
        i--;
    return &timeline->versions[i - 1];
}

/* Looks for the original among the committed versions, newest first. 1, 0 or an error. */
static int search_versions(struct wb_importer *importer, const struct wb_store_revisit *revisit,
                           const struct wb_store_timeline *timeline, struct wb_page *page_out)
{
    size_t looked = 0;
    int got = 0;

    for (size_t i = timeline->time_count; got == 0 && revisit->original_ms && i-- > 0;)
        if (same_second(timeline->times[i], revisit->original_ms))
            got = read_version(importer, revisit, owner_of(timeline, i), timeline->times[i], page_out);
    if (!revisit->has_sha1)
        return got;
    for (size_t i = timeline->count; got == 0 && i-- > 0 && looked < VERSIONS_MAX;)
        if (timeline->versions[i].same == i) {
            got = read_version(importer, revisit, &timeline->versions[i], timeline->versions[i].time_ms, page_out);
            looked++;
        }
    return got;
}

/* Returns 1 with the original in *page_out, which borrows from the importer, or 0 if it is not in the store. */
static int find_original(struct wb_importer *importer, const struct wb_store_revisit *revisit, struct wb_page *page_out)
{
    struct wb_store_timeline timeline;
    int err = wb_store_get(importer->store, revisit->original, page_out, &importer->body);

    if (err == 0 && is_original(page_out, revisit))
        return 1;
    if (err < 0 && err != WB_E_NOTFOUND && err != WB_E_CORRUPT)
        return err;
    err = wb_store_timeline(importer->store, revisit->original, &timeline);
    if (err < 0)
        return err == WB_E_NOTFOUND || err == WB_E_CORRUPT ? 0 : err;
    int found = search_versions(importer, revisit, &timeline, page_out);
    wb_store_timeline_release(&timeline);
    return found;
}

static int remember(struct wb_importer *importer, const struct wb_store_revisit *revisit)
{
    struct wb_store_revisit late = *revisit;
    int err = wb_arena_copy(&importer->not_found_text, revisit->url, &late.url);

    late.site = WB_SLICE_EMPTY;
    importer->waiting = true;
    return err < 0 ? err : wb_vec_push(&importer->not_found, late);
}

int wb_import_revisit_retry(struct wb_importer *importer)
{
    struct wb_page page;
    int err = 0;

    for (size_t i = 0; err == 0 && i < importer->not_found.count; i++) {
        const struct wb_store_revisit *revisit = &importer->not_found.items[i];
        int found = find_original(importer, revisit, &page);
        err = unless_down(found > 0 ? put_copy(importer, revisit, &page, NULL) : found);
    }
    wb_vec_clear(&importer->not_found);
    wb_arena_clear(&importer->not_found_text);
    return err;
}

/* ---- how the original is known --------------------------------------------------------------------------------- */

/*
 * Decides whether the digest of the record says what the original is. That of nothing does not, unless there is nothing
 * else to go by. The digest of an answer without a body may be anything, so the date counts first.
 */
static int choose_clue(struct wb_importer *importer, struct wb_store_revisit *revisit)
{
    struct wb_store_revisit by_time = *revisit;
    struct wb_page page;

    by_time.has_sha1 = false;
    if (!revisit->has_sha1 || (!revisit->not_modified && !is_of_nothing(revisit->sha1)))
        return 0;
    if (is_of_nothing(revisit->sha1)) {
        revisit->has_sha1 = !revisit->not_modified && revisit->original_ms == 0;
        return 0;
    }
    int found = revisit->original_ms ? find_original(importer, &by_time, &page) : 0;
    revisit->has_sha1 = found <= 0;
    return found < 0 ? found : 0;
}

/* ---- revisits that arrive -------------------------------------------------------------------------------------- */

int wb_import_revisit_take(struct wb_importer *importer, const struct wb_import_item *item)
{
    const struct wb_import_original *original = &item->original;
    struct wb_store_revisit revisit = {.id = item->page.id,
                                       .site = wb_key_site(item->page.key),
                                       .time_ms = item->page.time_ms,
                                       .has_sha1 = original->has_sha1,
                                       .not_modified = original->not_modified,
                                       .original_ms = original->time_ms,
                                       .original = original->id,
                                       .url = item->page.url};
    enum wb_store_outcome put;
    struct wb_page page;

    importer->revisits++;
    /* A record with an unknown profile must not be interpreted (ISO 28500, 6.7). */
    if (!original->known_profile)
        return 0;
    memcpy(revisit.sha1, original->sha1, sizeof revisit.sha1);
    importer->uncommitted++;
    int err = choose_clue(importer, &revisit);
    if (err < 0)
        return err;
    int found = original->elsewhere ? find_original(importer, &revisit, &page) : 0;
    if (found != 0)
        return found < 0 ? found : put_copy(importer, &revisit, &page, &item->page);
    /* A matching digest is proof enough, even if the page is not where the record points: the store looks here, too. */
    err = wb_store_put_revisit(importer->store, &revisit, &put);
    if (err == 0 && put == WB_STORE_PUT_CAPTURE)
        err = journal_capture(importer, &revisit);
    if (err == 0 && put == WB_STORE_PUT_NEW && original->elsewhere)
        err = remember(importer, &revisit);
    return err;
}

/* ---- originals that arrive ----------------------------------------------------------------------------------- */

struct match {
    struct wb_importer *importer;
    const struct wb_page *page;
};

static int gather_match(void *context, const struct wb_store_revisit *revisit)
{
    struct match *match = context;
    struct wb_importer *importer = match->importer;
    struct wb_store_revisit copy = *revisit;

    if (!is_original(match->page, revisit) || revisit->url.len == 0)
        return 0;
    int err = wb_arena_copy(&importer->matching_text, revisit->url, &copy.url);
    copy.site = WB_SLICE_EMPTY;
    return err < 0 ? err : wb_vec_push(&importer->matching, copy);
}

int wb_import_revisit_feed(struct wb_importer *importer, const struct wb_page *page)
{
    struct wb_page original = *page;
    struct match match = {importer, &original};

    if (!original.digested)
        wb_page_digest(&original);
    wb_vec_clear(&importer->matching);
    wb_arena_clear(&importer->matching_text);
    int err = wb_store_waiting_each(importer->store, page->id, gather_match, &match);
    for (size_t i = 0; err == 0 && i < importer->matching.count; i++)
        err = unless_down(put_copy(importer, &importer->matching.items[i], &original, NULL));
    return err;
}
