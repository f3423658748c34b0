/*
 * dictionary_write.c - writes the dictionary: takes entries in order and makes pages of them; see dictionary.h.
 */
#include "postings/dictionary.h"
#include "base/check.h"
#include "base/error.h"
#include "base/mem.h"

enum { DICTIONARY_WRITER_MAGIC = 0x57424457 }; /* "WBDW" */

struct wb_dictionary_writer {
    uint32_t magic;
    struct wb_blob_writer *blob;
    struct wb_postings_stat stat;
    uint64_t list_at, positions_at;           /* where the next list and positions will be */
    uint64_t page_list_at, page_positions_at; /* where those of the page start */
    struct wb_buf page;                       /* terms of the page */
    struct wb_buf restarts;                   /* where restart points are in `page`, 4 bytes each */
    uint32_t since;                           /* terms since the last restart point, including it */
    struct wb_buf last_key;
    struct wb_buf page_at, key_ends, keys; /* the top */
};

int wb_entry_get(const char **p, const char *end, struct wb_term *term_out)
{
    uint64_t first, more, bytes, positions = 0;

    if (!wb_get_varint(p, end, &first))
        return -1;
    if (first == ENTRY_ALIAS)
        return ENTRY_ALIAS;
    if ((first & 3) > ENTRY_LIST || first >> 3 == 0 || first >> 3 >= UINT32_MAX || !wb_get_varint(p, end, &more) ||
        !wb_get_varint(p, end, &bytes) || more >> 60 || bytes >> 48)
        return -1;
    *term_out = (struct wb_term){.df = (uint32_t)(first >> 3), .positions = first >> 2 & 1, .list_bytes = bytes};
    term_out->total = more + term_out->df;
    if ((first & 3) == ENTRY_INLINED) {
        if (bytes > (size_t)(end - *p))
            return -1;
        term_out->inlined = wb_slice(*p, (size_t)bytes);
        *p += bytes;
        return ENTRY_INLINED;
    }
    if (term_out->positions && (!wb_get_varint(p, end, &positions) || positions >> 48))
        return -1;
    term_out->positions_bytes = positions;
    return ENTRY_LIST;
}

int wb_dictionary_create(const char *path, struct wb_dictionary_writer **writer_out)
{
    struct wb_dictionary_writer *writer = wb_alloc_zero(1, sizeof *writer);
    int err = writer ? wb_blob_create(path, DICTIONARY_KIND, &writer->blob) : WB_E_NOMEM;

    *writer_out = writer;
    if (err == 0) {
        writer->magic = DICTIONARY_WRITER_MAGIC;
        return 0;
    }
    wb_free(writer);
    *writer_out = NULL;
    return err;
}

static void free_dictionary_writer(struct wb_dictionary_writer *writer)
{
    WB_CHECK(writer->magic == DICTIONARY_WRITER_MAGIC);
    writer->magic = 0;
    wb_blob_abandon(writer->blob);
    wb_buf_release(&writer->page);
    wb_buf_release(&writer->restarts);
    wb_buf_release(&writer->last_key);
    wb_buf_release(&writer->page_at);
    wb_buf_release(&writer->key_ends);
    wb_buf_release(&writer->keys);
    wb_free(writer);
}

void wb_dictionary_abandon(struct wb_dictionary_writer *writer)
{
    if (writer)
        free_dictionary_writer(writer);
}

/* ---- pages --------------------------------------------------------------------------------------- */

static int append_varint(struct wb_buf *buf, uint64_t v)
{
    char bytes[WB_VARINT_MAX];

    return wb_buf_append(buf, bytes, wb_put_varint(bytes, v));
}

static int finish_page(struct wb_dictionary_writer *writer)
{
    size_t count = writer->restarts.len / 4, head_len = DICTIONARY_PAGE_HEAD + writer->restarts.len;
    char head[DICTIONARY_PAGE_HEAD];
    int err;

    if (writer->page.len == 0)
        return 0;
    WB_CHECK(count > 0);
    for (size_t i = 0; i < count; i++) /* counted from the start of the page */
        wb_put32(writer->restarts.ptr + 4 * i, wb_get32(writer->restarts.ptr + 4 * i) + (uint32_t)head_len);
    wb_put32(head, (uint32_t)count);
    wb_put64(head + 4, writer->page_list_at);
    wb_put64(head + 12, writer->page_positions_at);
    err = wb_blob_append(writer->blob, head, 4);
    if (err == 0)
        err = wb_blob_append(writer->blob, writer->restarts.ptr, writer->restarts.len);
    if (err == 0)
        err = wb_blob_append(writer->blob, head + 4, sizeof head - 4);
    if (err == 0)
        err = wb_blob_append(writer->blob, writer->page.ptr, writer->page.len);
    wb_buf_clear(&writer->page);
    wb_buf_clear(&writer->restarts);
    return err;
}

/* Begins a page with this key: notes where it is. */
static int begin_page(struct wb_dictionary_writer *writer, struct wb_slice key, size_t shared)
{
    char at[8], end[4];
    int err = 0;

    WB_CHECK(writer->page.len == 0);
    writer->page_list_at = writer->list_at;
    writer->page_positions_at = writer->positions_at;
    if (writer->page_at.len > 0)
        err = wb_buf_append(&writer->keys, key.ptr, shared + 1);
    if (err == 0 && writer->keys.len > UINT32_MAX)
        err = wb_fail(WB_E_LIMIT, "the dictionary has too many terms");
    wb_put64(at, wb_blob_tell(writer->blob));
    wb_put32(end, (uint32_t)writer->keys.len);
    if (err == 0)
        err = wb_buf_append(&writer->page_at, at, sizeof at);
    return err == 0 ? wb_buf_append(&writer->key_ends, end, sizeof end) : err;
}

/* Begins a term as a restart point: the whole key, and where its list is. */
static int put_restart(struct wb_dictionary_writer *writer, struct wb_slice key)
{
    char at[4];
    int err;

    wb_put32(at, (uint32_t)writer->page.len);
    writer->since = 0;
    err = wb_buf_append(&writer->restarts, at, sizeof at);
    if (err == 0)
        err = append_varint(&writer->page, key.len);
    if (err == 0)
        err = wb_buf_append_slice(&writer->page, key);
    if (err == 0)
        err = append_varint(&writer->page, writer->list_at - writer->page_list_at);
    return err == 0 ? append_varint(&writer->page, writer->positions_at - writer->page_positions_at) : err;
}

static int put_term(struct wb_dictionary_writer *writer, struct wb_slice key, bool alias, struct wb_slice entry)
{
    struct wb_slice last = wb_buf_slice(&writer->last_key);
    size_t shared = 0;
    int err = 0;

    while (shared < last.len && shared < key.len && last.ptr[shared] == key.ptr[shared])
        shared++;
    if (!alias && writer->page.len >= DICTIONARY_PAGE_BYTES)
        err = finish_page(writer);
    if (err == 0 && writer->page.len == 0) {
        WB_CHECK(!alias);
        err = begin_page(writer, key, shared);
    }
    if (err == 0 && (writer->page.len == 0 || (!alias && writer->since >= DICTIONARY_RESTART))) {
        err = put_restart(writer, key);
    } else if (err == 0) {
        err = append_varint(&writer->page, shared);
        if (err == 0)
            err = append_varint(&writer->page, key.len - shared);
        if (err == 0)
            err = wb_buf_append(&writer->page, key.ptr + shared, key.len - shared);
    }
    writer->since++;
    return err == 0 ? wb_buf_append_slice(&writer->page, entry) : err;
}

/* ---- entries of a part ----------------------------------------------------------------------------- */

/* Whether a term with this key may follow the last one; first: whether it is the first of a part. */
static int check_order(const struct wb_dictionary_writer *writer, struct wb_slice key, bool first)
{
    struct wb_slice last = wb_buf_slice(&writer->last_key);

    if (key.len == 0 || key.len > WB_TERM_MAX || wb_slice_compare(last, key) >= 0)
        return wb_fail(WB_E_INVALID, "the term \"%.*s\" is not in order", WB_SLICE_ARG(key));
    if (first && key.len > 1 && last.len == key.len && memcmp(last.ptr, key.ptr, key.len - 1) == 0)
        return wb_fail(WB_E_INVALID, "the term \"%.*s\" is not in the same range as the one before it",
                       WB_SLICE_ARG(key));
    return 0;
}

static int append_entry_of_part(struct wb_dictionary_writer *writer, const char **p, const char *end, bool first)
{
    struct wb_term term = {0};
    uint64_t key_len;

    if (!wb_get_varint(p, end, &key_len) || key_len > (size_t)(end - *p))
        return wb_fail(WB_E_INVALID, "a range of terms is malformed");
    struct wb_slice key = wb_slice(*p, (size_t)key_len);
    *p += key_len;
    const char *entry = *p;
    int kind = wb_entry_get(p, end, &term), err = check_order(writer, key, first);
    if (err == 0 && (kind < 0 || (kind == ENTRY_ALIAS && first)))
        err = wb_fail(WB_E_INVALID, "a range of terms is malformed");
    if (err == 0)
        err = put_term(writer, key, kind == ENTRY_ALIAS, wb_slice(entry, (size_t)(*p - entry)));
    if (kind == ENTRY_LIST) {
        writer->list_at += term.list_bytes;
        writer->positions_at += term.positions_bytes;
    }
    writer->stat.terms++;
    writer->stat.aliases += kind == ENTRY_ALIAS;
    writer->stat.inlined += kind == ENTRY_INLINED;
    writer->stat.postings += term.df;
    wb_buf_clear(&writer->last_key);
    return err == 0 ? wb_buf_append_slice(&writer->last_key, key) : err;
}

int wb_dictionary_append(struct wb_dictionary_writer *writer, const struct wb_postings_part *part)
{
    const char *p = wb_buf_slice(&part->entries).ptr, *end = p + part->entries.len;
    uint64_t list_at = writer->list_at + part->lists.len, positions_at = writer->positions_at + part->positions.len;
    int err = 0;

    WB_CHECK(writer->magic == DICTIONARY_WRITER_MAGIC);
    for (bool first = true; err == 0 && p < end; first = false)
        err = append_entry_of_part(writer, &p, end, first);
    if (err == 0 && (writer->list_at != list_at || writer->positions_at != positions_at))
        err = wb_fail(WB_E_INVALID, "a range of terms does not match its lists");
    return err;
}

int wb_dictionary_finish(struct wb_dictionary_writer *writer, struct wb_postings_stat *stat)
{
    WB_CHECK(writer->magic == DICTIONARY_WRITER_MAGIC);
    char foot[DICTIONARY_FOOT_BYTES] = DICTIONARY_FOOT_MAGIC;
    int err = finish_page(writer);

    wb_put64(foot + 8, writer->stat.terms);
    wb_put64(foot + 16, writer->page_at.len / 8);
    wb_put64(foot + 24, wb_blob_tell(writer->blob));
    wb_put64(foot + 32, writer->list_at);
    wb_put64(foot + 40, writer->positions_at);
    if (err == 0)
        err = wb_blob_append(writer->blob, writer->page_at.ptr, writer->page_at.len);
    if (err == 0)
        err = wb_blob_append(writer->blob, writer->key_ends.ptr, writer->key_ends.len);
    if (err == 0)
        err = wb_blob_append(writer->blob, writer->keys.ptr, writer->keys.len);
    if (err == 0)
        err = wb_blob_append(writer->blob, foot, sizeof foot);
    *stat = writer->stat;
    if (err == 0) {
        err = wb_blob_finish(writer->blob, &stat->dictionary_bytes);
        writer->blob = NULL;
    }
    free_dictionary_writer(writer);
    return err;
}
